"""Reading of data sets: features and labels."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fgfm._utils.optional import import_optional
from fgfm._utils.text import counted
from fgfm._utils.validation import check_count
from fgfm.io._arff import read_xml_labels
from fgfm.io._cells import Faults, as_texts
from fgfm.io._errors import DataError
from fgfm.io._files import TextFormat
from fgfm.io._formats import open_file
from fgfm.io._kinds import find_kind
from fgfm.io._labels import Labels, likely_labels, read_labels, select_columns
from fgfm.io._tables import Table, rebatched

if TYPE_CHECKING:
    from fgfm.io._encoder import FeatureEncoder

_BLOCK_CELLS = 1 << 18


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Features and labels of a file.

    Parameters
    ----------
    X : pandas.DataFrame, ndarray or CSR array of shape (n, p)
        The features: a data frame of a table, else numbers.
    Y : ndarray of shape (n, m), optional
        The labels: 0 or 1, or NaN if not observed; None if the file has none.
    label_names : tuple of str, default=()
        A name for each label; its number in formats without names.
    label_columns : tuple of str, default=()
        The columns that hold the labels.
    ids : pyarrow.Table, optional
        The columns of `load`'s argument ``ids``, with n rows.
    zero_based : tuple of two bool, optional
        Whether svmlight rows number features, and labels, from 0.
    source : str
        The file.
    label_form : str
        How the labels are written in a table, such as "labels split at '|'".

    Examples
    --------
    >>> import numpy as np
    >>> from fgfm.io import Dataset
    >>> Dataset(np.zeros((3, 2)), np.eye(3, dtype=np.uint8), ("a", "b", "c"))
    <Dataset: 3 rows, 2 features, 3 labels (1.00 per row)>
    """

    X: Any
    Y: npt.NDArray[Any] | None = None
    label_names: tuple[str, ...] = ()
    label_columns: tuple[str, ...] = ()
    ids: Any = None
    zero_based: tuple[bool, bool] | None = None
    source: str = ""
    label_form: str = ""

    def __repr__(self) -> str:
        n, p = self.X.shape
        labels = "no labels"
        if self.Y is not None:
            mean = float(np.nansum(self.Y)) / max(1, n)
            labels = f"{counted(self.Y.shape[1], 'label')} ({mean:.2f} per row)"
        name = f" {self.source}" if self.source else ""
        return f"<Dataset{name}: {counted(n, 'row')}, {counted(p, 'feature')}, {labels}>"

    def rows(self, index: npt.NDArray[np.int64] | slice) -> Dataset:
        """Return some of the rows.

        Parameters
        ----------
        index : ndarray of int, or slice
            The rows.

        Returns
        -------
        Dataset
            The data set of these rows.
        """
        X = self.X.iloc[index] if hasattr(self.X, "iloc") else self.X[index]
        Y = None if self.Y is None else self.Y[index]
        ids = None if self.ids is None else self.ids.take(np.arange(self.X.shape[0])[index])
        return replace(self, X=X, Y=Y, ids=ids)


def load(
    path: str | os.PathLike[str],
    labels: int | str | Sequence[str] | None = None,
    *,
    format: str | None = None,
    separator: str | None = None,
    missing_labels: bool = False,
    label_names: Sequence[str] | None = None,
    require_labels: bool = False,
    encoder: FeatureEncoder | None = None,
    ids: Sequence[str] = (),
    drop: Sequence[str] = (),
    strict: bool = False,
    delimiter: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    header: bool | None = None,
) -> Dataset:
    """Read features and labels from a file.

    A table (CSV, TSV, Parquet, JSON lines, Excel, ARFF) becomes a data frame, and its labels are
    columns of it; `FeatureEncoder` makes numbers of the rest. Missing values of CSV are empty,
    ``?``, NA, N/A, NaN, null or none. An invalid file raises `DataError`, which names the place.

    Parameters
    ----------
    path : str or path-like
        The file, which may be compressed with gzip if it is text; ``-`` is standard input.
    labels : int, str or sequence of str, optional
        The label columns of a table: names, patterns such as ``"genre*"``, or their number,
        the first n columns or, negative, the last. Their form is found: one column of lists
        (``a;b``, ``a|b``, ``a, b``, JSON or Python lists, lists of Parquet), columns of 0 and
        1, or columns of names. For ARFF it may be the XML file. By default the labels are those
        that the file declares.
    format : str, optional
        A key of `FORMATS`; by default it follows from the file name, else from its content.
    separator : str, optional
        The separator of label lists in texts; by default ``;``, ``|`` or ``,`` is found.
    missing_labels : bool, default=False
        Whether a blank cell is a label that was not observed, NaN in Y; otherwise it is no
        label.
    label_names : sequence of str, optional
        All labels, in their order: those of training. By default those of the file.
    require_labels : bool, default=False
        Whether a file without labels is an error, which names columns that may be labels.
    encoder : FeatureEncoder, optional
        The fitted encoder of the training data: X is encoded by it. By default X is not
        encoded.
    ids, drop : sequence of str, default=()
        Columns of a table to keep apart in ``Dataset.ids``, and to leave out.
    strict : bool, default=False
        Whether a text in a column of numbers is an error. Otherwise it is missing, with a
        warning that counts them; more than 5 % of a column make it a column of texts.
    delimiter, decimal, encoding, header : optional
        How CSV is written. By default the delimiter is found, and the first row is a header.

    Returns
    -------
    Dataset
        Features, labels and their names.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from fgfm.io import load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "films.csv"
    ...     _ = path.write_text("year,country,genre\\n1999,FR,drama;crime\\n2004,IT,comedy\\n")
    ...     films = load(path, "genre")
    >>> films.X
         year country
    0  1999.0      FR
    1  2004.0      IT
    >>> films.label_names
    ('comedy', 'crime', 'drama')
    >>> films.Y
    array([[0, 1, 1],
           [1, 0, 0]], dtype=uint8)
    """
    text = TextFormat(delimiter, decimal, encoding, header)
    of_labels = {"separator": separator, "known": label_names, "missing": missing_labels}
    with open_file(path, format, text, encoder) as content:
        data = _dataset(content, labels, of_labels, ids, drop, strict)
    if require_labels and data.Y is None:
        raise _no_labels(data)
    return data if encoder is None else replace(data, X=encoder.transform(data.X))


def _dataset(
    content: Any,
    labels: int | str | Sequence[str] | None = None,
    of_labels: Mapping[str, Any] = {},
    ids: Sequence[str] = (),
    drop: Sequence[str] = (),
    strict: bool = False,
) -> Dataset:
    """Return the data set of an open file; `of_labels` are arguments of `read_labels`."""
    source, names = content.source, content.names
    is_table = isinstance(content, Table)
    for argument, value in {"ids": ids, "drop": drop, "labels": labels}.items():
        if value and (names is None or (argument == "ids" and not is_table)):
            raise ValueError(f"{argument} is {value!r}: {source} has no named columns")
    if names is None:
        Y, label_names = content.indicator(of_labels.get("known"))
        return Dataset(content.X, Y, label_names, zero_based=content.zero_based, source=source)
    if is_table:
        import_optional("pandas", "reading tables", "data")
        content.check_has(ids, "ids")
        content.check_has(drop, "drop")
        if content.rows.num_rows == 0:
            raise DataError("there are no rows", source=source)
    if isinstance(labels, str) and labels.endswith(".xml"):
        labels = read_xml_labels(Path(labels))
    wanted = content.declared if labels is None else labels
    chosen = [] if wanted is None else select_columns(names, wanted, source)
    chosen = [name for name in chosen if name not in drop]
    apart = {*ids, *drop, *chosen}
    features = [j for j, name in enumerate(names) if name not in apart]
    if not features:
        reason = "there are no features: every column is a label or is left out"
        raise DataError(reason, source=source, arguments=["labels"])
    read = Labels(None, ())
    if chosen:
        read = read_labels(content.columns(chosen), source, **of_labels)
    X = (
        _frame(content, [names[j] for j in features], strict)
        if is_table
        else content.X[:, features]
    )
    kept = content.rows.select(list(ids)) if ids else None
    return Dataset(X, read.Y, read.names, tuple(chosen), kept, source=source, label_form=read.form)


def _frame(table: Table, names: Sequence[str], strict: bool) -> Any:
    """Return columns as a data frame; those of texts that are nearly all numbers as numbers."""
    import pandas as pd

    parts: dict[str, Any] = {}
    faults = Faults(table.source, strict, table.decimal)
    for name, column in table.columns(names).items():
        if not table.is_text:
            parts[name] = column.to_pandas()
        elif find_kind(column, None, table.decimal) == "number":
            parts[name] = faults.numbers(name, column)
        else:
            parts[name] = pd.Series(as_texts(column), dtype=object)
    faults.report(table.rows.num_rows)
    frame = pd.DataFrame(parts)
    frame.attrs["source"] = table.source  # for messages of FeatureEncoder
    return frame


def _no_labels(data: Dataset) -> DataError:
    """Return the error for a data set without labels; it names columns that may be labels."""
    such = ""
    if hasattr(data.X, "columns"):
        import pyarrow as pa

        table = pa.Table.from_pandas(data.X, preserve_index=False)
        such = likely_labels(dict(zip(table.column_names, table.columns, strict=True)))
    return DataError(
        f"the file does not declare which columns are labels: name them{such}",
        source=data.source,
        arguments=["labels"],
    )


def load_blocks(
    path: str | os.PathLike[str],
    encoder: FeatureEncoder,
    *,
    rows: int | None = None,
    ids: Sequence[str] = (),
    format: str | None = None,
    strict: bool = False,
    delimiter: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    header: bool | None = None,
) -> Iterator[Dataset]:
    """Read the features of a file in blocks of rows, encoded as in training.

    Memory does not grow with the number of rows of a table; sparse rows are one block. The rows
    have the same features for any size of the blocks. More than 5 % of cells of a column that are
    not valid are an error after the last block; with blocks of the default size, also after the
    first one.

    Parameters
    ----------
    path : str or path-like
        The file; ``-`` is standard input.
    encoder : FeatureEncoder
        The fitted encoder of the training data.
    rows : int, optional
        The number of rows of a block; by default it depends on the number of columns.
    ids : sequence of str, default=()
        Columns to keep in ``Dataset.ids``.
    format, strict, delimiter, decimal, encoding, header : optional
        As in `load`.

    Yields
    ------
    Dataset
        Consecutive rows: X, and ids if there are any.
    """
    text = TextFormat(delimiter, decimal, encoding, header)
    if rows is not None:
        check_count(rows, "rows", least=1)
    with open_file(path, format, text, encoder) as content:
        if encoder.columns_ is None or not isinstance(content, Table):
            data = _dataset(content, ids=ids, strict=strict)
            yield replace(data, X=encoder.transform(data.X))
            return
        content.check_has(ids, "ids")
        apart = {*ids, *(content.declared or ())} - {*encoder.kinds_}
        names = [name for name in content.names if name not in apart]
        size = rows or max(1, _BLOCK_CELLS // max(1, len(content.names)))
        faults = Faults(content.source, strict, content.decimal)
        for block in rebatched(content.batches, size):
            columns = {name: block.column(name).combine_chunks() for name in names}
            X = encoder._encode(columns, faults)
            faults.next_batch(block.num_rows, check_first=rows is None)
            kept = block.select(list(ids)) if ids else None
            yield Dataset(X, ids=kept, source=content.source)
        faults.report(faults.rows)
