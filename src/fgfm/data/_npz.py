"""NumPy archives of X (or the parts of a CSR matrix), Y, names and a split."""

from __future__ import annotations

import json
import math
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._utils.atomic import atomic_file
from fgfm._utils.text import quoted
from fgfm.data._errors import DataError
from fgfm.data._label_columns import check_label_count, dropped_columns
from fgfm.data._options import ReadOptions
from fgfm.data._table import Table, check_names, make_categorical, make_csr

if TYPE_CHECKING:
    from fgfm.data._dataset import Dataset

__all__ = ["read_npz", "write_npz"]

_CSR_PARTS = ("X_data", "X_indices", "X_indptr", "X_shape")
_MEMBERS = {"X", *_CSR_PARTS, "Y", "label_names", "feature_names", "train_idx", "test_idx"}
_MEMBERS |= {"nominal_mask", "nominal_categories_json"}
_ERRORS = (  # of zipfile, zlib and NumPy for damaged archives
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    KeyError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)


def read_npz(path: Path, options: ReadOptions) -> Table:
    """Read an archive; columns that it declares nominal become categories."""
    arrays = _read_arrays(path)
    source = str(path)
    X = _features(arrays, source)
    n, p = X.shape
    names = _names(arrays, "feature_names", p, source)
    categories: dict[int, tuple[str, ...]] = {}
    if "nominal_categories_json" in arrays:
        X, categories = _nominal(X, names, arrays["nominal_categories_json"], source)
    Y = None
    label_names = None
    if "Y" in arrays and options.with_labels:
        Y = _labels(arrays["Y"], n, source)
        label_names = _names(arrays, "label_names", Y.shape[1], source)
        if label_names is None:
            label_names = options.schema.label_names
            if label_names is None or len(label_names) != Y.shape[1]:
                label_names = tuple(str(k) for k in range(Y.shape[1]))
    table = Table(
        source,
        X,
        names,
        categories,
        Y=Y,
        label_names=label_names,
        train=_row_indices(arrays, "train_idx", n, source),
        test=_row_indices(arrays, "test_idx", n, source),
    )
    table = make_categorical(table, options.categorical)
    if names is None:
        if options.drop:
            raise DataError(
                "the columns have no names: none can be dropped",
                source=source,
                arguments=["drop"],
            )
        return table
    dropped = dropped_columns(names, options, source, extra=False)
    return table.select([j for j in range(len(names)) if j not in dropped])


def _read_arrays(path: Path) -> dict[str, Any]:
    """Read the members of the archive, after comparing the sizes that their headers declare."""
    found: dict[str, Any] = {}
    name = ""
    try:
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                name = info.filename.removesuffix(".npy")
                if name not in _MEMBERS:
                    continue
                with archive.open(info) as member:
                    _check_size(member, info.file_size)
                with archive.open(info) as member:
                    found[name] = np.lib.format.read_array(member, allow_pickle=False)
                    if member.read(1):  # zipfile compares the checksum at the end only
                        raise ValueError("it is longer than its header declares")
    except _ERRORS as error:
        member_name = f"array {quoted(name)}: " if name else ""
        raise DataError(
            f"{member_name}this is not a NumPy archive, or it is damaged: {error}", source=path
        ) from error
    return found


def _check_size(member: Any, size: int) -> None:
    """Raise unless the header of an array declares the size of the member."""
    version = np.lib.format.read_magic(member)
    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if read_header is None:
        raise ValueError(f"its format version {version} is not supported")
    shape, _, dtype = read_header(member)
    if dtype.hasobject:
        raise ValueError("it holds Python objects, which are not read")
    if (
        any(axis < 0 for axis in shape)
        or math.prod(shape) * dtype.itemsize != size - member.tell()
    ):
        raise ValueError(f"its header declares shape {shape}, and it has {size} bytes")


def _features(arrays: dict[str, Any], source: str) -> Any:
    """Return X, dense or CSR."""
    if "X" in arrays:
        X = arrays["X"]
        if X.ndim != 2 or X.dtype.kind not in "fiub" or 0 in X.shape:
            reason = f"X has dtype {X.dtype} and shape {X.shape}: it must be (n, p) numbers"
            raise DataError(reason, source=source)
        with np.errstate(over="ignore"):  # infinite values are refused later
            return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    for name in _CSR_PARTS:
        if name not in arrays:
            raise DataError(
                f"there is neither X nor {name}: the features must be X or a CSR matrix",
                source=source,
            )
    data, indices, indptr, shape = (arrays[name] for name in _CSR_PARTS)
    return _csr_features(data, indices, indptr, shape, source)


def _csr_features(data: Any, indices: Any, indptr: Any, shape: Any, source: str) -> Any:
    """Return X from the parts of a CSR matrix."""
    if data.dtype.kind not in "fiub" or any(
        a.dtype.kind not in "iu" for a in (indices, indptr, shape)
    ):
        reason = "X_data must hold numbers, and the other parts of X integers"
        raise DataError(reason, source=source)
    if shape.shape != (2,) or any(a.ndim != 1 for a in (data, indices, indptr)):
        reason = "the parts of X must have one dimension, and X_shape two numbers"
        raise DataError(reason, source=source)
    n, p = (int(size) for size in shape)
    steps = np.diff(indptr.astype(np.int64))
    valid = (
        n > 0
        and 0 < p < 1 << 31
        and len(indptr) == n + 1
        and indptr[0] == 0
        and (steps >= 0).all()
        and indptr[-1] == len(indices) == len(data)
        and ((indices >= 0) & (indices < p)).all()
    )
    if not valid:
        reason = f"the parts of X do not form a CSR matrix of shape {(n, p)}"
        raise DataError(reason, source=source)
    dtype = data.dtype if data.dtype in (np.float32, np.float64) else np.float64

    def repeated(row: int, column: int) -> DataError:
        reason = f"feature {column} occurs twice: it must have one value"
        return DataError(reason, source=source, row=row)

    return make_csr(data.astype(dtype), indices, indptr, p, repeated)


def _labels(Y: Any, n: int, source: str) -> npt.NDArray[np.uint8]:
    if Y.ndim != 2 or Y.dtype.kind not in "fiub" or len(Y) != n or Y.shape[1] == 0:
        raise DataError(
            f"Y has dtype {Y.dtype} and shape {Y.shape}: it must be numbers with {n} rows, as "
            "many as X",
            source=source,
        )
    check_label_count(Y.shape[1], n, source)
    wrong = ~((Y == 0) | (Y == 1))
    if wrong.any():
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        raise DataError(
            f"Y[{row}, {column}] is {Y[row, column]!s}: labels must be 0 or 1",
            source=source,
            row=row,
        )
    return np.asarray(Y.astype(np.uint8))


def _names(arrays: dict[str, Any], key: str, count: int, source: str) -> tuple[str, ...] | None:
    if key not in arrays:
        return None
    names = arrays[key]
    if names.dtype.kind != "U" or names.shape != (count,):
        raise DataError(
            f"{key} has dtype {names.dtype} and shape {names.shape}: it must be {count} strings",
            source=source,
        )
    found = tuple(str(name) for name in names.tolist())
    check_names(found, f"{source}, {key}")
    return found


def _row_indices(arrays: dict[str, Any], key: str, n: int, source: str) -> Any:
    if key not in arrays:
        return None
    rows = arrays[key]
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or not ((rows >= 0) & (rows < n)).all():
        raise DataError(f"{key} must be row numbers from 0 to {n - 1}", source=source)
    return rows.astype(np.int64)


def _nominal(X: Any, names: Any, text: Any, source: str) -> tuple[Any, dict[int, tuple[str, ...]]]:
    """Replace the values of nominal columns by codes; return X and the categories."""
    try:
        declared = json.loads(str(text))
        where = {name: names.index(name) for name in declared}
        values = {
            name: {str(k): float(v) for k, v in codes.items()} for name, codes in declared.items()
        }
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        reason = f"nominal_categories_json is invalid: {error}"
        raise DataError(reason, source=source) from error
    if sparse.issparse(X):
        raise DataError("nominal columns must be in a dense X", source=source)
    X = X.copy()
    categories = {}
    for name, codes in values.items():
        column = X[:, where[name]]
        coded = np.full(len(column), np.nan, dtype=X.dtype)
        for k, value in enumerate(codes.values()):
            coded[column == value] = k
        unknown = np.isnan(coded) & ~np.isnan(column)
        if unknown.any():
            row = int(np.argmax(unknown))
            raise DataError(
                f"the value {column[row]:g} is not declared: it must be one of {', '.join(codes)}",
                source=source,
                row=row,
                column=name,
            )
        X[:, where[name]] = coded
        categories[where[name]] = tuple(codes)
    return X, categories


def write_npz(path: Path, dataset: Dataset) -> None:
    """Write an archive."""
    arrays: dict[str, Any] = {}
    X = dataset.X
    if sparse.issparse(X):
        csr = sparse.csr_array(X)
        shape = np.array(csr.shape, dtype=np.int64)
        arrays |= zip(_CSR_PARTS, (csr.data, csr.indices, csr.indptr, shape), strict=True)
    else:
        arrays["X"] = np.asarray(X)
    if dataset.Y is not None:
        arrays["Y"] = np.asarray(dataset.Y, dtype=np.uint8)
        if dataset.label_names is not None:
            arrays["label_names"] = np.array(dataset.label_names, dtype=np.str_)
    if dataset.feature_names is not None:
        arrays["feature_names"] = np.array(dataset.feature_names, dtype=np.str_)
    if dataset.train is not None:
        arrays["train_idx"] = dataset.train.astype(np.int32)
    if dataset.test is not None:
        arrays["test_idx"] = dataset.test.astype(np.int32)
    with atomic_file(path) as file:
        np.savez_compressed(file, **arrays)
