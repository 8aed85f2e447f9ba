"""Reading of data sets: features and labels."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fgfm._utils.optional import import_optional
from fgfm._utils.validation import check_choice, check_count
from fgfm.io._arff import read_arff, read_xml_labels
from fgfm.io._cells import Faults, as_array, as_numbers, as_texts
from fgfm.io._dataset import Dataset
from fgfm.io._encoder import FeatureEncoder, find_kind
from fgfm.io._errors import DataError
from fgfm.io._files import TABLES, detect_format, source_name
from fgfm.io._labels import label_order, likely_labels, read_labels, select_columns
from fgfm.io._npz import read_arrays, read_npz_features
from fgfm.io._svmlight import read_svmlight
from fgfm.io._tables import Table, TextFormat, open_table, rebatched

__all__ = ["FORMATS", "load", "load_blocks"]

FORMATS = (*TABLES, "arff", "svmlight", "xmc", "npz")
_OPENML = "openml:"
_BLOCK_CELLS = 1 << 18
LabelColumns = int | str | Sequence[str] | None


def load(
    path: str | os.PathLike[str],
    labels: LabelColumns = None,
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
    n_features: int | None = None,
    zero_based: tuple[bool, bool] | None = None,
    delimiter: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    header: bool | None = None,
) -> Dataset:
    """Read features and labels from a file.

    A table (CSV, TSV, Parquet, JSON lines, Excel) becomes a data frame, and its labels are
    columns of it; `FeatureEncoder` makes numbers of the rest. Missing values of CSV are empty,
    ``?``, NA, N/A, NaN, null or none. An invalid file raises `DataError`, which names the
    place.

    Parameters
    ----------
    path : str or path-like
        The file, which may be compressed with gzip if it is text; ``-`` is standard input.
        ``openml:name``, ``openml:name:version`` or ``openml:number`` is fetched by
        scikit-learn.
    labels : int, str or sequence of str, optional
        The label columns of a table: names, patterns such as ``"genre*"``, or their number,
        the first n columns or, negative, the last. Their form is found: one column of lists
        (``a;b``, ``a|b``, ``a, b``, JSON or Python lists, lists of Parquet), columns of 0 and
        1, or columns of names. For ARFF it may be the XML file; for svmlight it is the number
        of labels or their names. By default the labels are those that the file declares.
    format : str, optional
        "csv", "tsv", "parquet", "jsonl", "xlsx", "arff", "svmlight", "xmc" (extreme
        classification) or "npz"; by default it follows from the file name, else from its
        content.
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
    n_features : int, optional
        The number of features of svmlight rows; by default the highest that occurs.
    zero_based : tuple of two bool, optional
        Whether svmlight numbers features, and labels, from 0; by default they do if a 0
        occurs.
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
    check_choice(format, "format", (None, *FORMATS))
    name = os.fspath(path)
    text = TextFormat(delimiter, decimal, encoding, header)
    text.check()
    if encoder is not None:
        zero_based = encoder.zero_based_ if zero_based is None else zero_based
        n_features = encoder.n_features_in_ if encoder.columns_ is None else n_features
    if name.startswith(_OPENML) and format is None:
        found = _load_openml(name, labels, missing_labels, drop, strict)
    else:
        given = {"separator": separator, "known": label_names, "missing": missing_labels}
        format = format or detect_format(path)
        check_choice(format, "format", FORMATS)
        if (ids and format not in TABLES) or (drop and format not in (*TABLES, "arff")):
            argument, value = ("ids", ids) if ids else ("drop", drop)
            raise ValueError(f"{argument} is {list(value)!r}: {name} has no named columns")
        if format in TABLES:
            with open_table(path, format, text) as table:
                found = _from_table(table, labels, given, ids, drop, strict)
        elif format in ("svmlight", "xmc"):
            named = labels if label_names is None else label_names
            if isinstance(named, str):
                raise ValueError(f"labels is {named!r}: {name} has no named columns")
            count = named if isinstance(named, int) else tuple(named or ()) or None
            found = read_svmlight(Path(path), format, encoding, n_features, count, zero_based)
        elif format == "arff":
            found = _load_arff(Path(path), labels, given, encoding, drop)
        else:
            found = _load_npz(Path(path), label_names)
    found = replace(found, source=source_name(path))
    if hasattr(found.X, "columns"):
        found.X.attrs["source"] = found.source  # for messages of FeatureEncoder
    if require_labels and found.Y is None:
        raise _no_labels(found)
    if encoder is None:
        return found
    X = found.X.to_numpy() if encoder.columns_ is None and hasattr(found.X, "columns") else found.X
    return replace(found, X=encoder.transform(X))


def _from_table(
    table: Table,
    labels: LabelColumns,
    given: dict[str, Any],
    ids: Sequence[str],
    drop: Sequence[str],
    strict: bool,
) -> Dataset:
    """Return the data set of an open table."""
    import_optional("pandas", "reading tables", "data")
    source = table.source
    table.check_has(ids, "ids")
    table.check_has(drop, "drop")
    arrow = table.read()
    if arrow.num_rows == 0:
        raise DataError("there are no rows", source=source)
    columns = {name: arrow.column(name).combine_chunks() for name in table.names}
    Y: Any = None
    label_names: tuple[str, ...] = ()
    form = ""
    chosen: list[str] = []
    if labels is not None:
        chosen = [n for n in select_columns(table.names, labels, source) if n not in drop]
        Y, label_names, form = read_labels({n: columns[n] for n in chosen}, source, **given)
    apart = {*ids, *drop, *chosen}
    features = {name: column for name, column in columns.items() if name not in apart}
    if not features:
        reason = "there are no features: every column is a label or is left out"
        raise DataError(reason, source=source, arguments=["labels"])
    faults = Faults(source, strict, table.decimal)
    X = _frame(features, table.is_text, faults)
    faults.report(len(X))
    kept = arrow.select(list(ids)) if ids else None
    return Dataset(X, Y, label_names, tuple(chosen), kept, label_form=form)


def _frame(columns: dict[str, Any], is_text: bool, faults: Faults) -> Any:
    """Return columns as a data frame; those of texts that are nearly all numbers as numbers."""
    import pandas as pd

    parts: dict[str, Any] = {}
    for name, column in columns.items():
        if not is_text:
            parts[name] = column.to_pandas()
        elif find_kind(column, None, faults.decimal) == "number":
            parts[name] = as_numbers(column, name, faults)
        else:
            parts[name] = pd.Series(as_texts(column), dtype=object)
    return pd.DataFrame(parts)


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


def _load_arff(
    path: Path, labels: LabelColumns, given: dict[str, Any], encoding: str, drop: Sequence[str]
) -> Dataset:
    import pandas as pd

    found = read_arff(path, encoding)
    declared = found.labels
    if isinstance(labels, str) and labels.endswith(".xml"):
        declared = read_xml_labels(Path(labels))
    elif labels is not None:
        declared = select_columns(found.names, labels, str(path))
    apart = {*(declared or ()), *drop}
    kept = [name for name in found.names if name not in apart]
    if found.matrix is not None:
        where = {name: j for j, name in enumerate(found.names)}
        X = found.matrix[:, [where[name] for name in kept]]
        flags = {n: found.matrix[:, [where[n]]].toarray()[:, 0] for n in declared or ()}
    else:
        assert found.columns is not None
        X = pd.DataFrame({name: found.columns[name] for name in kept})
        flags = {name: found.columns[name] for name in declared or ()}
    if not flags:
        return Dataset(X)
    columns = {name: as_array(values) for name, values in flags.items()}
    Y, names, _ = read_labels(columns, str(path), **given)
    return Dataset(X, Y, names, tuple(flags))


def _load_npz(path: Path, label_names: Sequence[str] | None) -> Dataset:
    """Read an archive of arrays."""
    arrays = read_arrays(path)
    X = read_npz_features(arrays, path)
    n, Y = X.shape[0], arrays.get("Y")
    names: tuple[str, ...] = ()
    if Y is not None:
        if Y.ndim != 2 or Y.dtype.kind not in "fiub" or len(Y) != n:
            reason = f"Y has dtype {Y.dtype} and shape {Y.shape}: it must be ({n}, m) numbers"
            raise DataError(reason, source=path)
        wrong = ~((Y == 0) | (Y == 1) | np.isnan(Y))
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            reason = f"Y[{row}, {column}] is {Y[row, column]!s}: labels must be 0 or 1"
            raise DataError(reason, source=path, row=int(row))
        Y = Y if np.isnan(Y).any() else Y.astype(np.uint8)
        names = tuple(map(str, range(Y.shape[1])))
        if "label_names" in arrays:
            names = tuple(arrays["label_names"].tolist())
        elif label_names is not None and len(label_names) == len(names):
            names = tuple(label_names)
        if len(names) != Y.shape[1]:
            reason = f"there are {len(names)} label_names: Y has {Y.shape[1]} columns"
            raise DataError(reason, source=path)
        if label_names is not None:
            Y = Y[:, label_order(names, label_names, "training", path)]
            names = tuple(label_names)
    split = {part: arrays[f"{part}_idx"] for part in ("train", "test") if f"{part}_idx" in arrays}
    for rows in split.values():
        if rows.ndim != 1 or rows.dtype.kind not in "iu" or not np.isin(rows, np.arange(n)).all():
            reason = f"train_idx and test_idx must be row numbers from 0 to {n - 1}"
            raise DataError(reason, source=path)
    return Dataset(X, Y, names, **{part: rows.astype(np.int64) for part, rows in split.items()})


def _load_openml(
    name: str, labels: LabelColumns, missing: bool, drop: Sequence[str], strict: bool
) -> Dataset:
    """Fetch ``openml:name``, ``openml:name:version`` or ``openml:number`` by scikit-learn."""
    import pyarrow as pa
    from scipy import sparse
    from sklearn.datasets import fetch_openml

    wanted, _, version = name.removeprefix(_OPENML).partition(":")
    if not wanted or (version and not version.isdecimal()):
        reason = "the name must be openml:name, openml:name:version or openml:number"
        raise DataError(reason, source=name)
    query: dict[str, Any] = {"name": wanted, "version": int(version) if version else "active"}
    if wanted.isdecimal() and not version:
        query = {"data_id": int(wanted)}
    try:
        bunch = fetch_openml(**query, as_frame="auto", parser="auto")
    except Exception as error:  # no network, no such data set, a damaged response
        raise DataError(f"the data cannot be fetched: {error}", source=name) from error
    targets = [str(target) for target in bunch.get("target_names") or []]
    if sparse.issparse(bunch.data):
        target = np.asarray(bunch.target, dtype=object).reshape(bunch.data.shape[0], -1)
        columns = {t: pa.array(target[:, j].tolist()) for j, t in enumerate(targets)}
        Y, names, _ = read_labels(columns, name, missing=missing)
        return Dataset(sparse.csr_array(bunch.data), Y, names)
    arrow = pa.Table.from_pandas(bunch.frame, preserve_index=False)
    table = Table(name, list(arrow.column_names), iter(arrow.to_batches()))
    return _from_table(table, labels or targets or None, {"missing": missing}, (), drop, strict)


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

    Memory does not grow with the number of rows of a table; other files are one block. The rows
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
    is_named = encoder.columns_ is not None and not os.fspath(path).startswith(_OPENML)
    if is_named:
        format = format or detect_format(path)
    if not is_named or format not in TABLES:
        more = dict(strict=strict, encoder=encoder, **text._asdict())
        yield load(path, format=format, ids=ids, **more)
        return
    with open_table(path, format, text) as table:
        table.check_has(ids, "ids")
        names = [n for n in table.names if n not in ids or n in encoder.kinds_]
        size = rows or max(1, _BLOCK_CELLS // max(1, len(table.names)))
        faults = Faults(table.source, strict, table.decimal)
        for block in rebatched(table.batches, size):
            columns = {name: block.column(name).combine_chunks() for name in names}
            X = encoder._encode(columns, faults)
            faults.next_batch(block.num_rows, check_first=rows is None)
            kept = block.select(list(ids)) if ids else None
            yield Dataset(X, ids=kept, source=table.source)
        faults.report(faults.rows)
