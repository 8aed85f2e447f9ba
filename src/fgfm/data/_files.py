"""One way in and one way out: which format a file has, and who reads or writes it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import clone

from fgfm._utils.validation import check_choice
from fgfm.data._arff import read_arff, write_arff
from fgfm.data._csv import read_csv, write_csv
from fgfm.data._dataset import Dataset
from fgfm.data._encoder import FeatureEncoder
from fgfm.data._errors import DataError, bad, shown
from fgfm.data._npz import read_npz, write_npz
from fgfm.data._openml import PREFIX, read_openml
from fgfm.data._parquet import read_parquet, write_parquet
from fgfm.data._svmlight import XMC_HEADER, read_svmlight, read_xmc, write_svmlight, write_xmc
from fgfm.data._table import Options, Table, check_names
from fgfm.data._text import check_file, read_head, spooled

__all__ = ["FORMATS", "load", "save"]

FORMATS = ("csv", "tsv", "parquet", "arff", "meka", "svmlight", "xmc", "npz")
_EXTENSIONS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arff": "arff",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".xmc": "xmc",
    ".npz": "npz",
}

_NAMED = ("csv", "tsv", "parquet", "arff", "meka", "npz")
_ONLY = {  # which formats an argument of `load` is for
    "labels": tuple(format for format in FORMATS if format != "npz"),
    "separator": ("csv", "tsv", "parquet"),
    "categorical": _NAMED,
    "drop": _NAMED,
    "n_features": ("svmlight",),
    "zero_based": ("svmlight",),
    "zero_based_labels": ("svmlight",),
    "delimiter": ("csv", "tsv"),
    "decimal": ("csv", "tsv"),
}


def load(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    labels: int | str | Sequence[str] | None = None,
    separator: str | None = None,
    encoder: FeatureEncoder | None = None,
    categorical: Sequence[str] = (),
    drop: Sequence[str] = (),
    n_features: int | None = None,
    zero_based: bool | None = None,
    zero_based_labels: bool | None = None,
    delimiter: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    dtype: npt.DTypeLike | None = None,
    with_labels: bool = True,
) -> Dataset:
    """Read features and labels from a file.

    Text files may be compressed by gzip. In tables a missing value is empty, ``?``, NA, N/A, NaN
    or null; ARFF has ``?`` only, and the sparse formats of rows have none. A file that is not as
    it should be raises `DataError`, whose message names the file, the line and the rule.

    Parameters
    ----------
    path : str or path-like
        The file, or ``openml:name``, ``openml:name:version`` or ``openml:number``, which
        scikit-learn fetches. A pipe is read into a temporary file first; ``-`` is standard input.
    format : str, optional
        One of

        - "csv", "tsv": a table with a header; "parquet": a table;
        - "arff": with the labels in an XML file of the same name (MULAN) or in the name of the
          relation (MEKA); "meka" is the same for reading;
        - "svmlight": rows ``1,3 5:0.2 9:1``, labels first;
        - "xmc": the same, counting from 0, after a line with the numbers of rows, features and
          labels (the extreme classification repository);
        - "npz": arrays X (or X_data, X_indices, X_indptr, X_shape), Y, and feature_names,
          label_names, train_idx, test_idx where there are any.

        By default the name of the file tells, or its first lines.
    labels : int, str or list of str, optional
        Which columns of a table are labels: their names, patterns such as ``"label_*"``, or how
        many, the first n, or the last n where it is negative. For ARFF it may be the XML file;
        for svmlight and xmc, which have no names, it is the number of labels, or their names. By
        default the labels that the file declares; CSV declares none.
    separator : str, optional
        The labels are lists such as ``a;b``, with this between them, in the one column that
        `labels` names.
    encoder : FeatureEncoder, optional
        That of the data set of training: the file must have the same features, and may have the
        same labels or none. By default a new one is fitted; one that is not fitted yet says how.
    categorical : list of str, optional
        Columns whose numbers are the names of categories.
    drop : list of str, optional
        Columns to leave out, such as identifiers.
    n_features : int, optional
        The number of features of svmlight rows; by default the highest that occurs.
    zero_based, zero_based_labels : bool, optional
        Whether svmlight rows count features, and labels, from 0. By default they do if a 0 occurs.
    delimiter : str, optional
        What stands between the values of CSV: by default a comma, in TSV a tab.
    decimal : {".", ","}, default="."
        What stands before the decimals of numbers in CSV and TSV.
    encoding : str, default="utf-8"
        The encoding of text files.
    dtype : float32 or float64, optional
        The type of X. By default float32 if the file has it, which .npz and Parquet can, and
        float64 otherwise.
    with_labels : bool, default=True
        Whether labels are read. If not, Y is None, and label columns may hold anything, or be
        absent.

    Returns
    -------
    Dataset
        X, Y, their names, and the encoder that further files are read with.

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
    given = _checked_encoder(encoder)
    encoder = given if hasattr(given, "n_features_in_") else None
    options = Options(
        labels=_checked_labels(labels),
        separator=_checked_text(separator, "separator"),
        categorical=_checked_names(categorical, "categorical"),
        drop=_checked_names(drop, "drop"),
        n_features=_checked_count(n_features),
        zero_based=_checked_flag(zero_based, "zero_based"),
        zero_based_labels=_checked_flag(zero_based_labels, "zero_based_labels"),
        delimiter=_checked_text(delimiter, "delimiter"),
        decimal=_checked_decimal(decimal),
        encoding=encoding,
        encoder=encoder,
        with_labels=bool(_checked_flag(with_labels, "with_labels")),
    )
    if with_labels is None:
        raise TypeError("with_labels is None: it must be True or False")
    if dtype is not None and np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype is {dtype!r}: it must be float32 or float64")
    table = _read(path, format, options)
    if encoder is not None:
        table = _match_labels(table, encoder)
    if table.matrix.shape[1] == 0:
        raise bad(table.source, "there are no features: every column is a label or is left out")
    if encoder is None:
        encoder = (FeatureEncoder() if given is None else clone(given)).fit(table)
        encoder.separator_ = options.separator
        encoder.dropped_ = list(options.drop)
    X = encoder.transform(table)
    named = table.names is not None or hasattr(encoder, "feature_names_in_")
    encoded = len(encoder.categorical_) + len(encoder.indicated_) > 0
    return Dataset(
        X if dtype is None else _cast(X, np.dtype(dtype), table.source),
        table.Y,
        tuple(encoder.get_feature_names_out()) if named or encoded else None,
        table.label_names,
        encoder,
        table.train,
        table.test,
        table.source,
    )


def _read(path: str | os.PathLike[str], format: str | None, options: Options) -> Table:
    name = os.fspath(path)
    if name.startswith(PREFIX) and format is None:
        return read_openml(name, options)
    with spooled(path) as source:
        table = _read_file(source, format, options)
    return table if source == Path(path) else replace(table, source=name)


def _read_file(source: Path, format: str | None, options: Options) -> Table:
    check_file(source)
    if format is None:
        format = _guess(source)
    for argument, formats in _ONLY.items():
        given = getattr(options, argument)
        if given not in (None, ()) and format not in formats:
            raise ValueError(
                f"{argument} is {given!r}, and {source} is read as {format!r}: {argument}= is for "
                f"{', '.join(formats)}"
            )
    if format in ("csv", "tsv"):
        delimiter = options.delimiter or ("," if format == "csv" else "\t")
        return read_csv(source, options, delimiter)
    if format in ("arff", "meka"):
        return read_arff(source, options)
    readers = {
        "parquet": read_parquet,
        "svmlight": read_svmlight,
        "xmc": read_xmc,
        "npz": read_npz,
    }
    return readers[format](source, options)


def _match_labels(table: Table, encoder: FeatureEncoder) -> Table:
    """Put labels into the order of training; they must be the same."""
    if table.Y is None or table.label_names is None or encoder.label_names_ is None:
        return table
    known, found = list(encoder.label_names_), list(table.label_names)
    if known == found:
        return table
    for name in found:
        if name not in known:
            raise bad(table.source, f"{shown(name)} is an unknown label: training did not have it")
    for name in known:
        if name not in found:
            raise bad(table.source, f"there is no label {shown(name)}, which training had")
    order = [found.index(name) for name in known]
    return replace(table, Y=table.Y[:, order], label_names=tuple(known))


def _cast(X: Any, dtype: Any, source: str) -> Any:
    with np.errstate(over="ignore"):
        out = X.astype(dtype, copy=False)
    if not np.isfinite(out.data if sparse.issparse(out) else out).all():
        raise bad(source, f"a value is too large for {dtype}")
    return out


def _extension(path: Path) -> str | None:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    return _EXTENSIONS.get(suffixes[-1]) if suffixes else None


def _guess(path: Path) -> str:
    """Tell the format by the name of a file, or by how it begins."""
    found = _extension(path)
    if found not in (None, "svmlight"):
        return str(found)
    head = read_head(path)
    if head.startswith(b"PK\x03\x04"):
        return "npz"
    if head.startswith(b"PAR1"):
        return "parquet"
    lines = [line.strip() for line in head.decode("utf-8", "replace").splitlines()]
    first = next((line for line in lines if line and line[0] not in "#%"), "")
    if XMC_HEADER.fullmatch(first):
        return "xmc"
    if found is not None:
        return found
    if first.lower().startswith("@relation"):
        return "arff"
    if re.match(r"(?:[0-9]+(?:,[0-9]+)*[ \t]+)?[0-9]+:[0-9.+-]", first):
        return "svmlight"
    raise bad(
        path,
        f"neither its name nor its first line tells the format: give format=, one of "
        f"{', '.join(map(repr, FORMATS))}",
    )


def _checked_encoder(encoder: Any) -> FeatureEncoder | None:
    if encoder is not None and not isinstance(encoder, FeatureEncoder):
        raise TypeError(f"encoder is {type(encoder).__name__}: it must be a FeatureEncoder")
    return encoder


def _checked_labels(labels: Any) -> Any:
    rule = "a number that is not 0, a name or pattern, or a list of these"
    if labels is None or isinstance(labels, str):
        return labels
    if isinstance(labels, os.PathLike):
        return os.fspath(labels)
    if isinstance(labels, (int, np.integer)) and not isinstance(labels, bool):
        if labels == 0:
            raise ValueError(f"labels is 0: it must be {rule}")
        return int(labels)
    try:
        names = [*labels]
    except TypeError:
        raise TypeError(f"labels is {labels!r}: it must be {rule}") from None
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError(f"labels is {labels!r}: it must be {rule}")
    return [str(name) for name in names]


def _checked_names(names: Any, argument: str) -> tuple[str, ...]:
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"{argument} is {names!r}: it must be a list of names of columns")
    return tuple(names)


def _checked_text(text: Any, argument: str) -> str | None:
    if text is not None and (not isinstance(text, str) or not text):
        raise ValueError(f"{argument} is {text!r}: it must be a text")
    if text is not None and argument == "delimiter" and (len(text) != 1 or text in '\r\n"'):
        raise ValueError(f"delimiter is {text!r}: it must be one character")
    return text


def _checked_decimal(decimal: Any) -> str | None:
    if decimal not in (".", ","):
        raise ValueError(f"decimal is {decimal!r}: it must be '.' or ','")
    return None if decimal == "." else ","


def _checked_flag(value: Any, argument: str) -> bool | None:
    if value is not None and not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{argument} is {value!r}: it must be True, False or None")
    return None if value is None else bool(value)


def _checked_count(count: Any) -> int | None:
    if count is None:
        return None
    if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
        raise ValueError(f"n_features is {count!r}: it must be a number from 1")
    return int(count)


def save(dataset: Dataset, path: str | os.PathLike[str], *, format: str | None = None) -> None:
    """Write a data set to a file, which appears when it is complete.

    Numbers have the digits that their type needs: float32 values are the same again when read with
    ``dtype="float32"``. Features are written as they are encoded; CSV, svmlight and xmc do not say
    which labels they have, or how many; svmlight and xmc have no names. The split is kept by .npz
    only.

    Parameters
    ----------
    dataset : Dataset
        The data set.
    path : str or path-like
        The file; text is compressed if the name ends in ``.gz``. "arff" writes an XML file with
        the names of the labels beside it.
    format : str, optional
        One of the formats that `load` reads; by default the name of the file tells.

    See Also
    --------
    load : Read a data set.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from fgfm.data import Dataset, save
    >>> data = Dataset(np.array([[0.5, 0], [0, 2]]), np.eye(2, dtype=np.uint8))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(data, Path(folder) / "rows.svm")
    ...     print(Path(folder, "rows.svm").read_text(), end="")
    1 1:0.5
    2 2:2
    """
    check_choice(format, "format", (None, *FORMATS))
    target = Path(path)
    if format is None:
        format = _extension(target)
        if format is None:
            raise ValueError(
                f"path is {str(path)!r}: its name does not tell the format; give format=, one of "
                f"{', '.join(map(repr, FORMATS))}"
            )
    if format in ("npz", "parquet") and target.suffix.lower() == ".gz":
        raise ValueError(f"path is {str(path)!r}: {format} is compressed as it is, without .gz")
    X, Y = _checked_arrays(dataset)
    p, m = X.shape[1], 0 if Y is None else Y.shape[1]
    try:
        if format == "svmlight":
            write_svmlight(target, X, Y)
            return
        if format == "xmc":
            write_xmc(target, X, Y)
            return
        if format == "npz":
            write_npz(target, dataset)
            return
        features = dataset.feature_names or tuple(f"x{j + 1}" for j in range(p))
        labels = (dataset.label_names or tuple(f"y{k + 1}" for k in range(m))) if m else ()
        if len(features) != p or len(labels) != m:
            raise ValueError(
                f"there are {len(features)} feature_names and {len(labels)} label_names: X has "
                f"{p} columns and Y has {m}"
            )
        check_names([*features, *labels], "the names of features and labels")
        if format == "parquet":
            write_parquet(target, X, Y, features, labels)
        elif format in ("arff", "meka"):
            write_arff(target, X, Y, features, labels, format == "meka")
        else:
            write_csv(target, X, Y, features, labels, "," if format == "csv" else "\t")
    except OSError as error:
        raise bad(target, f"the file cannot be written: {error}") from error


def _checked_arrays(dataset: Any) -> tuple[Any, Any]:
    if not isinstance(dataset, Dataset):
        raise TypeError(f"dataset is {type(dataset).__name__}: it must be a Dataset")
    X, Y = dataset.X, dataset.Y
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise DataError(f"X has dtype {X.dtype} and shape {X.shape}: it must be (n, p) numbers")
    if not np.isfinite(X.data if sparse.issparse(X) else X).all():
        raise DataError("X has a value that is not finite: such values are not written")
    if Y is not None:
        Y = np.asarray(Y)
        if Y.ndim != 2 or len(Y) != X.shape[0] or not ((Y == 0) | (Y == 1)).all():
            raise DataError(f"Y has shape {Y.shape}: it must be (n, m) of 0 and 1, as X has rows")
        Y = Y.astype(np.uint8)
    return X, Y
