"""0/1 labels, dense or sparse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._utils.validation._arrays import (
    check_axes,
    check_real,
    first_entry,
    first_index,
    place,
    real_array,
)

__all__ = ["check_labels", "label_sets"]

Real = npt.NDArray[Any]


def check_labels(block: Real, name: str, first_row: int = 0) -> None:
    """Raise unless every element is 0 or 1; `first_row` is the number of the block's first row."""
    wrong = (block != 0) & (block != 1)
    if wrong.any():
        index = first_index(wrong)
        where = place(name, (first_row + index[0], *index[1:]))
        raise ValueError(f"{where} is {block[index]!s}: labels must be 0 or 1")


def label_sets(
    value: Any, name: str, axes: Sequence[str] = ("row", "label"), *, allow_flat: bool = False
) -> Any:
    """Validate 0/1 labels; return booleans, or CSR that stores the ones only.

    With `allow_flat` a 1-D array is one label; the returned array is 2-D in any case.
    """
    if sparse.issparse(value):
        return _sparse_label_sets(value, name, axes, allow_flat)
    flat = allow_flat and np.ndim(value) == 1
    array = real_array(value, name, axes[:1] if flat else axes)
    check_labels(array, name)
    labels = array == 1
    return labels[:, None] if flat else labels


def _sparse_label_sets(value: Any, name: str, axes: Sequence[str], allow_flat: bool) -> Any:
    check_real(value.dtype, name, "0 or 1")
    flat = allow_flat and value.ndim == 1
    if flat:
        value = value.reshape((value.shape[0], 1))
    else:
        check_axes(value.shape, name, axes)
    labels = sparse.csr_array(value, copy=True)  # (n, m)
    labels.sum_duplicates()  # also sorts the entries of each row
    labels.eliminate_zeros()
    wrong = labels.data != 1
    if wrong.any():
        *index, found = first_entry(labels, wrong)
        where = place(name, index[:1] if flat else index)
        raise ValueError(f"{where} is {found!s}: labels must be 0 or 1")
    return labels
