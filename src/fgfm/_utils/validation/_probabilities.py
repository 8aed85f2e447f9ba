"""Probabilities, dense or sparse, and rows of probabilities that sum to 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from fgfm._utils.validation._arrays import (
    check_axes,
    check_real,
    first_entry,
    first_index,
    place,
)

__all__ = [
    "check_logits",
    "check_marginals",
    "check_one_weight_each",
    "check_probabilities",
    "check_stored_probabilities",
    "clip_probabilities",
    "sparse_marginals",
    "stacked_classes",
    "tolerance",
    "unit_rows",
]

Real = npt.NDArray[Any]


def tolerance(array: Real) -> float:
    """Return the rounding error that is allowed for a probability, or a sum of them.

    It depends on the precision of the array's dtype. Integers and booleans are computed with as
    float64.
    """
    precise = array.dtype.kind != "f" or np.finfo(array.dtype).eps < 1e-10
    return 1e-9 if precise else 1e-5


def check_probabilities(array: Real, name: str, first_row: int = 0) -> None:
    """Raise unless every element lies in [0, 1], up to rounding.

    `first_row` is the number of the first row of the array, which may be a block of a larger one.
    """
    wrong = _outside_unit_interval(array)
    if wrong.any():
        index = first_index(wrong)
        where = place(name, (first_row + index[0], *index[1:]))
        raise ValueError(f"{where} is {array[index]!s}: probabilities must lie in [0, 1]")


def check_marginals(block: Real, name: str, first: Sequence[int]) -> None:
    """Raise unless every element lies in [0, 1], up to rounding; recognise logits.

    `first` is the index of the first element of the block, which may be a part of a larger array.
    """
    wrong = _outside_unit_interval(block)
    if wrong.any():
        hint = ""
        if (block < -0.1).any():  # far beyond rounding, and no percentages
            hint = "; these look like logits: apply a sigmoid, or pass logits=True"
        _raise_at(block, wrong, name, first, f"probabilities must lie in [0, 1]{hint}")


def check_logits(block: Real, name: str, first: Sequence[int]) -> None:
    """Raise if an element is NaN; `first` is the index of the first element of the block."""
    wrong = np.isnan(block)
    if wrong.any():
        _raise_at(block, wrong, name, first, "logits must be numbers")


def _raise_at(
    block: Real, wrong: npt.NDArray[np.bool_], name: str, first: Sequence[int], rule: str
) -> NoReturn:
    """Raise for the first wrong element of a block."""
    index = first_index(wrong)
    where = place(name, [start + i for start, i in zip(first, index, strict=True)])
    raise ValueError(f"{where} is {block[index]!s}: {rule}")


def check_stored_probabilities(csr: Any, name: str, first_row: int = 0) -> None:
    """Raise unless every stored element lies in [0, 1], up to rounding."""
    wrong = _outside_unit_interval(csr.data)
    if wrong.any():
        row, column, found = first_entry(csr, wrong)
        where = place(name, (first_row + row, column))
        raise ValueError(f"{where} is {found!s}: probabilities must lie in [0, 1]")


def _outside_unit_interval(array: Real) -> npt.NDArray[np.bool_]:
    slack = tolerance(array)
    return np.asarray(~((array >= -slack) & (array <= 1.0 + slack)))  # True for NaN


def clip_probabilities(array: Real, name: str, first_row: int = 0) -> Real:
    """Validate probabilities, and clip rounding errors to [0, 1]."""
    check_probabilities(array, name, first_row)
    return np.clip(array, 0.0, 1.0)


def unit_rows(block: Real, name: str, first_row: int = 0) -> npt.NDArray[np.float64]:
    """Validate rows that are distributions, and rescale them to sum to 1 in float64."""
    weights: npt.NDArray[np.float64] = clip_probabilities(block, name, first_row).astype(
        np.float64
    )
    total: npt.NDArray[np.float64] = weights.sum(axis=1)
    wrong = ~(np.abs(total - 1.0) <= tolerance(block))
    if wrong.any():
        row = first_index(wrong)[0]
        raise ValueError(
            f"{place(name, (first_row + row,))} sums to {total[row]:g}: "
            "the probabilities of a row must sum to 1"
        )
    return weights / total[:, None]


def check_one_weight_each(columns: int, sets: int) -> None:
    """Raise unless there is one probability for each label set of a joint distribution."""
    if columns != sets:
        raise ValueError(
            f"proba has {columns} columns and labelsets has {sets} rows: "
            "there must be one probability for each label set"
        )


def _is_nested_tensor(value: Any) -> bool:
    """Return True for nested tensors of PyTorch, whose shape cannot be read."""
    return bool(getattr(value, "is_nested", False))


def stacked_classes(proba: Any, name: str = "proba", *, logits: bool = False) -> Any:
    """Return marginals (n, m) from a list of m arrays (n, 2), the probabilities of both classes.

    This is what ``predict_proba`` of scikit-learn's forests and trees returns. Anything else is
    returned unchanged, except for 3-D arrays: the order of their axes cannot be known. A list with
    `logits` is an error, since its elements are probabilities.
    """
    axes: tuple[int, ...] = ()
    if not _is_nested_tensor(proba):
        axes = tuple(getattr(proba, "shape", ()))
    if len(axes) == 3 and axes[2] == 2:
        raise ValueError(
            f"{name} has shape {axes}: it must have 2 dimensions (row, label); if its axes are "
            f"(label, row, class), as in np.array(predict_proba(X)), pass {name}[:, :, 1].T or "
            f"the list itself, and if they are (row, label, class), pass {name}[:, :, 1]"
        )
    is_list = isinstance(proba, (list, tuple)) and len(proba) > 0
    if not (is_list and isinstance(proba[0], np.ndarray) and proba[0].ndim == 2):
        return proba
    if logits:
        raise ValueError(
            f"logits is True and {name} is a list of arrays, the class probabilities of each "
            "label: pass logits as one array (n, m), or the list without logits=True"
        )
    for i, block in enumerate(proba):
        where = place(name, (i,))
        shape = np.shape(block)
        if len(shape) == 2 and shape[1] == 1:
            raise ValueError(
                f"{where} has shape {shape}: label {i} had one class in training, and its "
                f"probabilities do not show whether that is 0 or 1; replace it by an array of "
                f"shape {(shape[0], 2)}, by the estimator's classes_[{i}]"
            )
        if len(shape) != 2 or shape != (len(proba[0]), 2):
            raise ValueError(
                f"{where} has shape {shape}: in a list with the class probabilities of each label "
                f"all must have shape {(len(proba[0]), 2)}"
            )
        check_real(block.dtype, where)
        unit_rows(block, where)
    return np.stack([block[:, 1] for block in proba], axis=1)


def sparse_marginals(value: Any, name: str) -> Any:
    """Convert a sparse matrix of marginals to CSR; its values are checked when they are read."""
    check_real(value.dtype, name)
    check_axes(value.shape, name, ("row", "label"))
    if value.format in ("csr", "csc"):
        _check_compressed(value, name)
    return value.tocsr()


def _check_compressed(matrix: Any, name: str) -> None:
    """Raise unless ``indptr`` and ``indices`` of CSR or CSC are consistent.

    Users may have changed them in place, and the kernels do not check bounds. SciPy's
    ``check_format`` is not used, because it replaces arrays of the matrix that it is called on.
    """
    indices, indptr = matrix.indices, matrix.indptr
    majors, minors = matrix.shape if matrix.format == "csr" else matrix.shape[::-1]
    stored = min(len(matrix.data), len(indices))
    if (
        len(indptr) != majors + 1
        or indptr[0] != 0
        or indptr[-1] > stored
        or (indptr[1:] < indptr[:-1]).any()
    ):
        raise ValueError(
            f"{name}.indptr is invalid: it must have {majors + 1} entries, from 0 to at most "
            f"{stored}, none smaller than the one before"
        )
    indices = indices[: int(indptr[-1])]
    if len(indices) and not (indices.min() >= 0 and indices.max() < minors):
        at = first_index((indices < 0) | (indices >= minors))
        raise ValueError(
            f"{place(f'{name}.indices', at)} is {indices[at]!s}: with shape {matrix.shape} "
            f"indices must run from 0 to {minors - 1}"
        )
