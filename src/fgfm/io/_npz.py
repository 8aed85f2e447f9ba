"""NumPy files: data sets in .npz, and matrices of probabilities or labels in .npy and .npz."""

from __future__ import annotations

import json
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from fgfm._utils.optional import import_optional
from fgfm.io._errors import DataError
from fgfm.io._tables import check_names

__all__ = ["is_dataset", "read_arrays", "read_matrix", "read_npz_features"]

_CSR = ("X_data", "X_indices", "X_indptr", "X_shape")
_MEMBERS = {"X", *_CSR, "Y", "label_names", "feature_names", "train_idx", "test_idx"}
_MEMBERS |= {"nominal_categories_json"}
_DAMAGE = (  # errors of zipfile, zlib, NumPy and SciPy for damaged archives
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    IndexError,
    KeyError,
    MemoryError,  # a header may declare any size
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    SyntaxError,
    tokenize.TokenError,
    TypeError,
    ValueError,
)


def is_dataset(path: Path) -> bool:
    """Return True for an archive of a data set, False for a sparse matrix of SciPy."""
    try:
        with zipfile.ZipFile(path) as archive:
            return "Y.npy" in archive.namelist()
    except (zipfile.BadZipFile, OSError):  # reported by the reader
        return False


def read_arrays(path: Path) -> dict[str, Any]:
    """Read the arrays of a data set.

    They are X (or X_data, X_indices, X_indptr, X_shape), Y, label_names, feature_names, train_idx,
    test_idx.
    """
    found: dict[str, Any] = {}
    name = ""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            for name in sorted(_MEMBERS.intersection(archive.files)):
                found[name] = archive[name]
    except _DAMAGE as error:
        reason = f"array {name!r}: this is not a NumPy archive, or it is damaged: {error}"
        raise DataError(reason, source=path) from error
    return found


def read_npz_features(arrays: dict[str, Any], path: Path) -> Any:
    """Return the features: a CSR array, an array, or a data frame if its columns have names."""
    if "X" in arrays:
        X = arrays["X"]
    elif all(part in arrays for part in _CSR):
        data, indices, indptr, shape = (arrays[part] for part in _CSR)
        try:
            X = sparse.csr_array((data, indices, indptr), shape=tuple(map(int, shape)))
            X.check_format(full_check=True)
            X.sum_duplicates()
        except (TypeError, ValueError) as error:
            reason = f"the parts of X do not form a CSR matrix: {error}"
            raise DataError(reason, source=path) from error
    else:
        reason = f"there is neither X nor {', '.join(_CSR)}: the features must be one of both"
        raise DataError(reason, source=path)
    if X.ndim != 2 or X.dtype.kind not in "fiub" or 0 in X.shape:
        reason = f"X has dtype {X.dtype} and shape {X.shape}: it must be (n, p) numbers"
        raise DataError(reason, source=path)
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    names = arrays.get("feature_names")
    if names is not None:
        if names.dtype.kind != "U" or names.shape != (X.shape[1],):
            reason = f"feature_names must be {X.shape[1]} strings"
            raise DataError(reason, source=path)
        check_names(names.tolist(), f"{path}, feature_names")
    if sparse.issparse(X) or names is None:
        return X
    return _named_frame(X, names, arrays.get("nominal_categories_json", "{}"), path)


def _named_frame(X: Any, names: Any, text: Any, path: Path) -> Any:
    """Return a data frame in which the codes of nominal columns are replaced by their texts."""
    pd = import_optional("pandas", "reading named columns", "data")
    frame = pd.DataFrame(X, columns=names.tolist())
    try:
        for name, codes in json.loads(str(text)).items():
            texts = {float(code): str(value) for value, code in codes.items()}
            frame[name] = pd.Categorical(frame[name].map(texts))
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        reason = f"nominal_categories_json is not valid: {error!r}"
        raise DataError(reason, source=path) from error
    return frame


def read_matrix(path: Path, format: str) -> Any:
    """Return a matrix (n, m): that of .npy, mapped into memory, or a sparse one of .npz."""
    try:
        if format == "npy":
            with path.open("rb") as file:
                np.lib.format.read_magic(file)  # np.load does not close files of other formats
            matrix = np.load(path, mmap_mode="r", allow_pickle=False)
        else:
            with path.open("rb") as file:
                matrix = sparse.csr_array(sparse.load_npz(file))
            matrix.check_format(full_check=True)
    except _DAMAGE as error:
        what = "an array of NumPy" if format == "npy" else "a sparse matrix of SciPy"
        raise DataError(f"it is not {what}: {error}", source=path) from error
    if matrix.dtype.kind not in "fiub" or matrix.ndim != 2 or matrix.shape[1] == 0:
        reason = f"it has dtype {matrix.dtype} and shape {matrix.shape}: it must be (n, m) numbers"
        raise DataError(reason, source=path)
    return matrix
