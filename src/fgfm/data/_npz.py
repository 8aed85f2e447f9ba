"""NumPy archives: X (or the pieces of a CSR matrix), Y, names, and a split if there is one."""

from __future__ import annotations

import json
import math
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from fgfm._utils.atomic import atomic_file
from fgfm.data._errors import DataError, bad, shown
from fgfm.data._table import (
    Options,
    Table,
    check_label_count,
    check_names,
    dropped,
    make_categorical,
    make_csr,
)

__all__ = ["read_npz", "write_npz"]

_PIECES = ("X_data", "X_indices", "X_indptr", "X_shape")
_READ = {"X", *_PIECES, "Y", "label_names", "feature_names", "train_idx", "test_idx"}
_READ |= {"nominal_mask", "nominal_categories_json"}


def read_npz(path: Path, options: Options) -> Table:
    """Read an archive; nominal columns become categories, as the archive declares them."""
    arrays = _arrays(path)
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
            known = getattr(options.encoder, "label_names_", None)
            if known is None or len(known) != Y.shape[1]:
                known = [str(k) for k in range(Y.shape[1])]
            label_names = tuple(known)
    table = Table(
        source,
        X,
        names,
        categories,
        Y=Y,
        label_names=label_names,
        train=_indices(arrays, "train_idx", n, source),
        test=_indices(arrays, "test_idx", n, source),
    )
    table = make_categorical(table, options.categorical)
    if names is None:
        if options.drop:
            raise bad(source, "drop= needs names of columns, and there are none")
        return table
    gone = dropped(names, options, source)
    return table.keep([j for j in range(len(names)) if j not in gone])


def _arrays(path: Path) -> dict[str, Any]:
    """Read the members of the archive; one that claims to be larger than it is gets no room."""
    found: dict[str, Any] = {}
    name = ""
    try:
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                name = info.filename.removesuffix(".npy")
                if name not in _READ:
                    continue
                with archive.open(info) as member:
                    _check_size(member, info.file_size)
                with archive.open(info) as member:
                    found[name] = np.lib.format.read_array(member, allow_pickle=False)
                    if member.read(1):  # the checksum is compared at the end only
                        raise ValueError("there is more in it than its header says")
    except DataError:
        raise
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        KeyError,
        NotImplementedError,
        OSError,
        RuntimeError,
        SyntaxError,
        TypeError,
        ValueError,
        OverflowError,
    ) as error:
        member_of = f"array {shown(name)}: " if name else ""
        raise bad(path, f"{member_of}this is no NumPy archive, or is damaged: {error}") from error
    return found


def _check_size(member: Any, size: int) -> None:
    version = np.lib.format.read_magic(member)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if read is None:
        raise ValueError(f"its version {version} is not known")
    shape, _, dtype = read(member)
    if dtype.hasobject:
        raise ValueError("it holds Python objects, which are not read")
    if (
        any(axis < 0 for axis in shape)
        or math.prod(shape) * dtype.itemsize != size - member.tell()
    ):
        raise ValueError(f"its header says shape {shape}, and it holds {size} bytes")


def _features(arrays: dict[str, Any], source: str) -> Any:
    if "X" in arrays:
        X = arrays["X"]
        if X.ndim != 2 or X.dtype.kind not in "fiub" or 0 in X.shape:
            raise bad(
                source, f"X has dtype {X.dtype} and shape {X.shape}: it must be (n, p) numbers"
            )
        with np.errstate(over="ignore"):  # what becomes infinite is refused later
            return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    for name in _PIECES:
        if name not in arrays:
            raise bad(
                source, f"there is neither X nor {name}: the features are X, or a CSR matrix"
            )
    data, indices, indptr, shape = (arrays[name] for name in _PIECES)
    if data.dtype.kind not in "fiub" or any(
        a.dtype.kind not in "iu" for a in (indices, indptr, shape)
    ):
        raise bad(source, "X_data must hold numbers, and the other pieces of X whole numbers")
    if shape.shape != (2,) or any(a.ndim != 1 for a in (data, indices, indptr)):
        raise bad(source, "the pieces of X must be flat, and X_shape two numbers")
    n, p = (int(size) for size in shape)
    steps = np.diff(indptr.astype(np.int64))
    whole = (
        n > 0
        and 0 < p < 1 << 31
        and len(indptr) == n + 1
        and indptr[0] == 0
        and (steps >= 0).all()
        and indptr[-1] == len(indices) == len(data)
        and ((indices >= 0) & (indices < p)).all()
    )
    if not whole:
        raise bad(source, f"the pieces of X do not make a CSR matrix of shape {(n, p)}")
    kind = data.dtype if data.dtype in (np.float32, np.float64) else np.float64
    X = make_csr(data.astype(kind), indices, indptr, (n, p))
    rows = np.repeat(np.arange(n), np.diff(X.indptr))
    twice = (np.diff(X.indices) == 0) & (np.diff(rows) == 0)
    if twice.any():
        at = int(np.argmax(twice))
        raise bad(
            source,
            f"feature {X.indices[at]} occurs twice: it must have one value",
            row=int(rows[at]),
        )
    X.eliminate_zeros()
    return X


def _labels(Y: Any, n: int, source: str) -> Any:
    if Y.ndim != 2 or Y.dtype.kind not in "fiub" or len(Y) != n or Y.shape[1] == 0:
        raise bad(
            source,
            f"Y has dtype {Y.dtype} and shape {Y.shape}: it must be numbers, {n} rows as X has",
        )
    check_label_count(Y.shape[1], n, source)
    wrong = ~((Y == 0) | (Y == 1))
    if wrong.any():
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        raise bad(
            source,
            f"Y[{row}, {column}] is {Y[row, column]!s}: labels must be 0 or 1",
            row=row,
        )
    return Y.astype(np.uint8)


def _names(arrays: dict[str, Any], key: str, count: int, source: str) -> tuple[str, ...] | None:
    if key not in arrays:
        return None
    names = arrays[key]
    if names.dtype.kind != "U" or names.shape != (count,):
        raise bad(
            source,
            f"{key} has dtype {names.dtype} and shape {names.shape}: it must be {count} texts",
        )
    found = tuple(str(name) for name in names.tolist())
    check_names(found, f"{source}, {key}")
    return found


def _indices(arrays: dict[str, Any], key: str, n: int, source: str) -> Any:
    if key not in arrays:
        return None
    rows = arrays[key]
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or not ((rows >= 0) & (rows < n)).all():
        raise bad(source, f"{key} must be numbers of rows, from 0 to {n - 1}")
    return rows.astype(np.int64)


def _nominal(X: Any, names: Any, text: Any, source: str) -> tuple[Any, dict[int, tuple[str, ...]]]:
    """Turn the values of nominal columns into codes."""
    try:
        declared = json.loads(str(text))
        where = {name: names.index(name) for name in declared}
        values = {
            name: {str(k): float(v) for k, v in codes.items()} for name, codes in declared.items()
        }
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise bad(source, f"nominal_categories_json is not as it must be: {error}") from error
    if sparse.issparse(X):
        raise bad(source, "nominal columns must be in a dense X")
    X = X.copy()
    categories = {}
    for name, codes in values.items():
        column = X[:, where[name]]
        new = np.full(len(column), np.nan, dtype=X.dtype)
        for k, value in enumerate(codes.values()):
            new[column == value] = k
        unknown = np.isnan(new) & ~np.isnan(column)
        if unknown.any():
            row = int(np.argmax(unknown))
            raise bad(
                source,
                f"the value {column[row]:g} is not declared: it must be one of {', '.join(codes)}",
                row=row,
                column=name,
            )
        X[:, where[name]] = new
        categories[where[name]] = tuple(codes)
    return X, categories


def write_npz(path: Any, dataset: Any) -> None:
    """Write an archive."""
    arrays: dict[str, Any] = {}
    X = dataset.X
    if sparse.issparse(X):
        csr = sparse.csr_array(X)
        arrays["X_data"], arrays["X_indices"], arrays["X_indptr"] = (
            csr.data,
            csr.indices,
            csr.indptr,
        )
        arrays["X_shape"] = np.array(csr.shape, dtype=np.int64)
    else:
        arrays["X"] = np.asarray(X)
    if dataset.Y is not None:
        arrays["Y"] = np.asarray(dataset.Y, dtype=np.uint8)
    if dataset.Y is not None and dataset.label_names is not None:
        arrays["label_names"] = np.array(dataset.label_names, dtype=np.str_)
    if dataset.feature_names is not None:
        arrays["feature_names"] = np.array(dataset.feature_names, dtype=np.str_)
    if dataset.train is not None:
        arrays["train_idx"] = dataset.train.astype(np.int32)
    if dataset.test is not None:
        arrays["test_idx"] = dataset.test.astype(np.int32)
    with atomic_file(path) as file:
        np.savez_compressed(file, **arrays)
