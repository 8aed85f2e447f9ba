"""Reading of data sets."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import clone

from fgfm._utils.validation import check_choice, check_flag
from fgfm.data._arff import read_arff
from fgfm.data._csv import read_csv_blocks
from fgfm.data._dataset import Dataset
from fgfm.data._encoder import FeatureEncoder
from fgfm.data._errors import DataError
from fgfm.data._formats import FORMATS, detect_format
from fgfm.data._label_columns import label_order, missing_labels
from fgfm.data._npz import read_npz
from fgfm.data._openml import PREFIX, read_openml
from fgfm.data._options import ReadOptions
from fgfm.data._parquet import read_parquet_blocks
from fgfm.data._svmlight import read_svmlight, read_xmc
from fgfm.data._table import Table
from fgfm.data._text_files import check_file, spooled

__all__ = ["load", "read_tables"]

_READERS = {
    "arff": read_arff,
    "meka": read_arff,
    "svmlight": read_svmlight,
    "xmc": read_xmc,
    "npz": read_npz,
}


def load(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    labels: int | str | Sequence[str] | None = None,
    separator: str | None = None,
    encoder: FeatureEncoder | None = None,
    text: Sequence[str] = (),
    categorical: Sequence[str] = (),
    number: Sequence[str] = (),
    date: Sequence[str] = (),
    drop: Sequence[str] = (),
    ids: Sequence[str] = (),
    n_features: int | None = None,
    zero_based: bool | None = None,
    zero_based_labels: bool | None = None,
    delimiter: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    header: bool | None = None,
    dtype: npt.DTypeLike | None = None,
    with_labels: bool = True,
    require_labels: bool = False,
) -> Dataset:
    """Read features and labels from a file.

    Text files may be compressed with gzip. Missing values are empty, ``?``, NA, N/A, NaN or null
    in CSV and TSV, and ``?`` in ARFF; svmlight and xmc have none. An invalid file raises
    `DataError`, whose message names the file, the line and the rule.

    Parameters
    ----------
    path : str or path-like
        The file; ``-`` is standard input. A pipe is first copied to a temporary file. With
        ``openml:name``, ``openml:name:version`` or ``openml:number`` the data are fetched by
        scikit-learn.
    format : str, optional
        One of

        - "csv", "tsv": a table with a header; "parquet": a table;
        - "arff": with the labels in an XML file of the same name (MULAN) or in the name of the
          relation (MEKA); "meka" is the same for reading;
        - "svmlight": rows ``1,3 5:0.2 9:1``, labels first;
        - "xmc": the same, numbered from 0, after a line with the numbers of rows, features and
          labels (the extreme classification repository);
        - "npz": arrays X (or X_data, X_indices, X_indptr, X_shape), Y, and optionally
          feature_names, label_names, train_idx, test_idx.

        By default it follows from the file name, else from the first lines.
    labels : int, str or list of str, optional
        The label columns of a table: their names, patterns such as ``"label_*"``, or their number,
        the first n columns, or the last n if it is negative. For ARFF it may be the XML file; for
        svmlight and xmc, which have no names, it is the number of labels, or their names. By
        default the labels are those that the file declares; CSV and TSV declare none.
    separator : str, optional
        The separator of label lists such as ``a;b``, which are in the one column that `labels`
        names.
    encoder : FeatureEncoder, optional
        The encoder of the training data: the file must have the same features, and may have the
        same labels or none. By default a new one is fitted; so is one that is not fitted yet.
    text, categorical, number, date : list of str, optional
        Columns that are free text, categories, numbers or dates. By default the kind of a column
        is found from its values: see `FeatureEncoder`.
    drop : list of str, optional
        Columns to leave out.
    ids : list of str, optional
        Columns of CSV, TSV or Parquet, such as identifiers, to keep as they are in
        ``Dataset.ids``. They are left out of the features unless `encoder` has them.
    n_features : int, optional
        The number of features of svmlight rows; by default the highest that occurs.
    zero_based, zero_based_labels : bool, optional
        Whether svmlight rows number features, and labels, from 0. By default they do if a 0
        occurs.
    delimiter : str, optional
        The delimiter of CSV and TSV. By default it is a comma, and a tab for TSV, or the only one
        of ``,``, ``;``, ``|`` and tab that the first two lines have.
    decimal : {".", ","}, default="."
        The decimal mark of numbers in CSV and TSV.
    encoding : str, default="utf-8"
        The encoding of text files.
    header : bool, optional
        Whether the first row of CSV and TSV has the names of the columns. By default it does, and
        an error is raised if they look like values. If False, the columns are x1, x2 and so on.
    dtype : float32 or float64, optional
        The type of X. By default float32 if the numbers of .npz or Parquet are, else float64.
    with_labels : bool, default=True
        Whether to read labels. If False, Y is None, and label columns may hold anything or be
        absent.
    require_labels : bool, default=False
        Whether a file without labels is an error, which names the columns that may be labels.

    Returns
    -------
    Dataset
        X, Y, their names, and the encoder to read further files with.

    See Also
    --------
    save : Write a data set.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from fgfm.data import load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "films.csv"
    ...     _ = path.write_text("year,country,genre\\n1999,FR,drama;crime\\n2004,IT,comedy\\n")
    ...     films = load(path, labels="genre", separator=";")
    >>> films.label_names
    ('comedy', 'crime', 'drama')
    >>> films.feature_names
    ('year', 'country=FR', 'country=IT')
    >>> films.X
    array([[1.999e+03, 1.000e+00, 0.000e+00],
           [2.004e+03, 0.000e+00, 1.000e+00]])
    """
    check_choice(format, "format", (None, *FORMATS))
    if encoder is not None and not isinstance(encoder, FeatureEncoder):
        raise TypeError(f"encoder is {type(encoder).__name__}: it must be a FeatureEncoder")
    if dtype is not None and np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype is {dtype!r}: it must be float32 or float64")
    kinds = {"text": text, "category": categorical, "number": number, "date": date}
    options = ReadOptions(
        labels=labels,
        separator=separator,
        categorical=(*categorical, *text, *date),
        drop=drop,
        ids=ids,
        n_features=n_features,
        zero_based=zero_based,
        zero_based_labels=zero_based_labels,
        delimiter=delimiter,
        decimal=decimal,
        encoding=encoding,
        header=header,
        encoder=encoder if hasattr(encoder, "n_features_in_") else None,
        with_labels=with_labels,
    )
    table = next(read_tables(path, format, options))
    if check_flag(require_labels, "require_labels") and table.Y is None:
        raise missing_labels(table)
    if options.encoder is None:
        encoder = FeatureEncoder() if encoder is None else clone(encoder)
        encoder.set_params(**{kind: names for kind, names in kinds.items() if names})
    assert encoder is not None
    return _encoded(table, options, encoder, dtype)


def read_tables(
    path: str | os.PathLike[str],
    format: str | None,
    options: ReadOptions,
    rows: int | None = None,
) -> Iterator[Table]:
    """Yield the content of a file or of a data set of OpenML.

    If `rows` is given, CSV, TSV and Parquet are read in tables of about so many rows. By default,
    and in other formats, there is one table.
    """
    name = os.fspath(path)
    if name.startswith(PREFIX) and format is None:
        if options.ids:
            raise ValueError(f"ids is {options.ids!r}: it must be empty for data from OpenML")
        yield read_openml(name, options)
        return
    with spooled(path) as source:
        check_file(source)
        format = detect_format(source) if format is None else format
        options.check_format(format, name)
        if format in ("csv", "tsv"):
            tables = read_csv_blocks(source, options, format, rows)
        elif format == "parquet":
            tables = read_parquet_blocks(source, options, rows)
        else:
            tables = iter([_READERS[format](source, options)])
        for table in tables:
            yield replace(
                table,
                source=table.source if source == Path(path) else name,  # not the copy of a stream
                separator=options.separator or table.separator,
                dropped=(*options.drop, *options.dropped_ids),
                is_typed=format not in ("csv", "tsv", "parquet"),
            )


def _encoded(
    table: Table,
    options: ReadOptions,
    encoder: FeatureEncoder,
    dtype: npt.DTypeLike | None,
) -> Dataset:
    """Encode the features of a table, with a new encoder unless a fitted one is given."""
    if options.encoder is not None:
        table = _match_labels(table, options.schema.label_names)
    if table.matrix.shape[1] == 0:
        raise table.error("there are no features: every column is a label or is left out")
    X = encoder.fit_transform(table) if options.encoder is None else encoder.transform(table)
    has_names = table.names is not None or hasattr(encoder, "feature_names_in_")
    is_changed = X.shape[1] != encoder.n_features_in_
    return Dataset(
        X if dtype is None else _cast(X, np.dtype(dtype), table.source),
        table.Y,
        tuple(encoder.get_feature_names_out()) if has_names or is_changed else None,
        table.label_names,
        encoder,
        table.train,
        table.test,
        table.source,
        table.ids,
    )


def _match_labels(table: Table, training_labels: tuple[str, ...] | None) -> Table:
    """Return the table with its labels in the order of training."""
    if table.Y is None or table.label_names is None or training_labels is None:
        return table
    if table.label_names == training_labels:
        return table
    order = label_order(table.label_names, training_labels, "training", table.source)
    return replace(table, Y=table.Y[:, order], label_names=training_labels)


def _cast(X: Any, dtype: Any, source: str) -> Any:
    with np.errstate(over="ignore"):
        out = X.astype(dtype, copy=False)
    if not np.isfinite(out.data if sparse.issparse(out) else out).all():
        raise DataError(f"a value is too large for {dtype}", source=source)
    return out
