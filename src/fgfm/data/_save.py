"""Writing of data sets."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from fgfm._utils.validation import check_choice
from fgfm.data._arff import write_arff
from fgfm.data._csv import write_csv
from fgfm.data._dataset import Dataset
from fgfm.data._errors import DataError
from fgfm.data._formats import FORMATS, dataset_format, default_delimiter
from fgfm.data._npz import write_npz
from fgfm.data._parquet import write_parquet
from fgfm.data._svmlight import write_svmlight, write_xmc
from fgfm.data._table import check_names
from fgfm.data._text_files import is_gzip_name

__all__ = ["save"]


def save(dataset: Dataset, path: str | os.PathLike[str], *, format: str | None = None) -> None:
    """Write a data set to a file, which is replaced when the new one is complete.

    Numbers have the digits that their type needs: float32 values are the same when they are read
    with ``dtype="float32"``. Features are written as they are encoded. CSV, TSV and svmlight do
    not declare their labels, svmlight and xmc have no names, and only .npz keeps the split.

    Parameters
    ----------
    dataset : Dataset
        The data set.
    path : str or path-like
        The file; text is compressed if its name ends in ``.gz``. "arff" also writes an XML file
        with the names of the labels.
    format : str, optional
        One of the formats of `load`; by default it follows from the file name.

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
        format = dataset_format(target)
        if format is None:
            raise ValueError(
                f"path is {str(path)!r}: the format does not follow from its name; format must be "
                f"one of {', '.join(map(repr, FORMATS))}"
            )
    if format in ("npz", "parquet") and is_gzip_name(target):
        raise ValueError(f"path is {str(path)!r}: {format} is compressed already, without .gz")
    X, Y = _checked_arrays(dataset)
    try:
        if format == "npz":
            write_npz(target, dataset)
        elif format == "svmlight":
            write_svmlight(target, X, Y)
        elif format == "xmc":
            write_xmc(target, X, Y)
        else:
            _save_named(target, X, Y, dataset, format)
    except OSError as error:
        raise DataError(f"the file cannot be written: {error}", source=target) from error


def _save_named(target: Path, X: Any, Y: Any, dataset: Dataset, format: str) -> None:
    """Write a format with names."""
    p, m = X.shape[1], 0 if Y is None else Y.shape[1]
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
        write_arff(target, X, Y, features, labels, meka=format == "meka")
    else:
        write_csv(target, X, Y, features, labels, default_delimiter(format))


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
            raise DataError(
                f"Y has shape {Y.shape}: it must be 0 or 1 of shape (n, m), with the rows of X"
            )
        Y = Y.astype(np.uint8)
    return X, Y
