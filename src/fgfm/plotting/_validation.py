"""Validation of the data of displays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm._utils.validation import real_array

__all__ = ["check_factors", "check_label_names", "check_matrix", "check_square", "check_vector"]

Floats = npt.NDArray[np.float64]


def check_label_names(names: Sequence[str] | None, m: int) -> list[str]:
    """Return the names of m labels, by default their indices."""
    if names is None:
        return [str(k) for k in range(m)]
    if len(names) != m:
        raise ValueError(f"label_names has {len(names)} names: it must have {m}, one per label")
    return [str(name) for name in names]


def check_vector(values: Any, name: str, axis: str, n: int | None = None) -> Floats:
    """Return a non-empty flat array of floats, of length n if that is given."""
    array = real_array(values, name, (axis,))
    if len(array) == 0 or n not in (None, len(array)):
        wanted = "one number or more" if n is None else f"{n} numbers"
        raise ValueError(
            f"{name} has shape {array.shape}: it must have {wanted}, one for each {axis}"
        )
    return array.astype(np.float64)


def check_square(shape: tuple[int, ...], name: str, m: int | None = None) -> None:
    """Raise unless a shape is (m, m) with at least one label."""
    if len(shape) != 2 or shape[0] != shape[1] or m not in (None, shape[0]):
        wanted = "(m, m)" if m is None else str((m, m))
        raise ValueError(f"{name} has shape {shape}: it must be {wanted}")
    if shape[0] == 0:
        raise ValueError(f"{name} has shape {shape}: it must have at least one label")


def check_matrix(values: Any, name: str, m: int | None = None) -> Floats:
    """Return a square array of floats, of shape (m, m) if m is given."""
    array = np.asarray(values, dtype=np.float64)
    check_square(array.shape, name, m)
    return array


def check_factors(factors: Sequence[Any], m: int) -> list[npt.NDArray[np.int64]]:
    """Return the factors as arrays; they must partition the m labels."""
    arrays = [np.asarray(factor, dtype=np.int64) for factor in factors]
    members = np.sort(np.concatenate(arrays)) if arrays else np.empty(0)
    if not np.array_equal(members, np.arange(m)):
        raise ValueError(
            f"factors is {factors!r}: it must contain each of the labels 0 to {m - 1} once"
        )
    return arrays
