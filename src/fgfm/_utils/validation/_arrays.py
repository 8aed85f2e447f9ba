"""Arrays in general: dtype, shape, number of rows, weights of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

__all__ = [
    "check_axes",
    "check_real",
    "check_same_rows",
    "first_entry",
    "first_index",
    "is_flat",
    "place",
    "real_array",
    "row_weights",
]

Real = npt.NDArray[Any]


def place(name: str, index: Sequence[int]) -> str:
    """Format the position of an array element as Python does.

    Examples
    --------
    >>> place("proba", (17, 3))
    'proba[17, 3]'
    """
    return f"{name}[{', '.join(str(int(i)) for i in index)}]"


def first_index(wrong: npt.NDArray[np.bool_]) -> tuple[int, ...]:
    """Return the index of the first True in C order."""
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))


def first_entry(matrix: Any, wrong: npt.NDArray[np.bool_]) -> tuple[int, int, Any]:
    """Return the row, the column and the value of the first wrong entry of an array or CSR.

    `wrong` has the shape of an array, or of the stored entries of a CSR matrix.
    """
    if isinstance(matrix, np.ndarray):
        row, column = first_index(wrong)
        return row, column, matrix[row, column]
    at = int(np.argmax(wrong))
    row = int(np.searchsorted(matrix.indptr, at, side="right")) - 1
    return row, int(matrix.indices[at]), matrix.data[at]


def real_array(value: Any, name: str, axes: Sequence[str]) -> Real:
    """Convert `value` to an array of real numbers with one dimension per name in `axes`.

    The dtype is kept, also where it is neither float32 nor float64: blocks of rows are converted
    to float64 when they are computed with.
    """
    if sparse.issparse(value):
        raise TypeError(f"{name} is a sparse matrix: it must be a dense array")
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array: fill the masked values first")
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} is ragged: its rows must have the same length") from None
    if array.dtype.kind == "O" and hasattr(value, "to_numpy"):
        array = _frame_values(value, array)
    check_real(array.dtype, name)
    check_axes(array.shape, name, axes)
    return array


def _frame_values(frame: Any, values: Real) -> Real:
    """Convert a data frame of mixed or nullable columns to floats; missing values become NaN."""
    if any(isinstance(value, (str, bytes)) for value in values.ravel()):
        return values  # pandas would parse numbers from strings
    try:
        if hasattr(frame, "iloc"):
            return np.asarray(frame.to_numpy(dtype=np.float64, na_value=np.nan))
        return values.astype(np.float64)  # None becomes NaN
    except (TypeError, ValueError):
        return values  # check_real raises on its dtype, with the same message as for arrays


def check_real(dtype: Any, name: str, expected: str = "float32 or float64") -> None:
    """Raise unless a NumPy dtype is boolean, integer or real floating point."""
    if dtype.kind not in "fiub":
        raise TypeError(f"{name} has dtype {dtype}: it must hold real numbers ({expected})")


def is_flat(value: Any) -> bool:
    """Return True for 1-D arrays, series, and lists of numbers."""
    if hasattr(value, "ndim"):  # a nested tensor of PyTorch has no shape
        return bool(value.ndim == 1)
    if hasattr(value, "shape"):
        return len(value.shape) == 1
    return isinstance(value, (list, tuple)) and len(value) > 0 and np.ndim(value[0]) == 0


def check_axes(shape: tuple[int, ...], name: str, axes: Sequence[str]) -> None:
    """Raise unless there is one dimension per name in `axes`, all but the first non-empty."""
    if len(shape) != len(axes):
        raise ValueError(
            f"{name} has shape {shape}: it must have {len(axes)} dimensions ({', '.join(axes)})"
        )
    for size, axis in zip(shape[1:], axes[1:], strict=True):
        if size == 0:
            raise ValueError(f"{name} has shape {shape}: it must have at least one {axis}")


def check_same_rows(counts: Sequence[int], names: Sequence[str]) -> int:
    """Return the common number of rows; raise if there are several."""
    for count, name in zip(counts, names, strict=True):
        if count != counts[0]:
            raise ValueError(
                f"{name} has {count} rows and {names[0]} has {counts[0]}: "
                "they must have the same number of rows"
            )
    return counts[0]


# Sums of squares of weights, and their inverses, are far from overflow.
_LEAST_WEIGHT, _MOST_WEIGHT = 1e-15, 1e15


def row_weights(sample_weight: Any, n: int, beside: str) -> npt.NDArray[np.float64]:
    """Validate one weight for each of the n rows of `beside`; return ones for None."""
    if sample_weight is None:
        return np.ones(n)
    weight = real_array(sample_weight, "sample_weight", ("row",)).astype(np.float64)
    check_same_rows([n, len(weight)], [beside, "sample_weight"])
    wrong = ~((weight >= 0.0) & np.isfinite(weight))
    if wrong.any():
        index = first_index(wrong)
        raise ValueError(
            f"{place('sample_weight', index)} is {weight[index]!s}: "
            "weights must be finite and not negative"
        )
    if not weight.any():
        raise ValueError("sample_weight is zero in every row: one weight must be positive")
    largest = float(weight.max())
    if not _LEAST_WEIGHT <= largest <= _MOST_WEIGHT:
        raise ValueError(
            f"{place('sample_weight', first_index(weight == largest))} is {largest!s}: the "
            f"largest weight must lie between {_LEAST_WEIGHT:.0e} and {_MOST_WEIGHT:.0e}, since "
            "weight 2 is a row twice"
        )
    return weight
