"""What the displays of label factors share: the pairs of labels, and where they come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

__all__ = ["check_square", "checked_factors", "checked_square", "factor_title", "finder"]

Floats = npt.NDArray[np.float64]


def factor_title(factors: Sequence[Any]) -> str:
    m, n = sum(map(len, factors)), len(factors)
    return f"{m} label{'' if m == 1 else 's'} in {n} factor{'' if n == 1 else 's'}"


def finder(estimator: Any) -> tuple[Any, Any]:
    """Give what found the factors, with its p-values, and the names of the labels if any."""
    check_is_fitted(estimator, "factors_")
    found = getattr(estimator, "factor_finder_", estimator)
    needed = ("p_values_", "effects_", "graph_", "cuts_", "rule")
    missing = [name for name in needed if not hasattr(found, name)]
    if missing:
        kind = type(estimator).__name__
        inside = "" if found is estimator else f" with a {type(found).__name__} as factor_finder_"
        raise ValueError(
            f"estimator is a {kind}{inside}, which has no {missing[0]}: it must be an ILFCompo, "
            "or a classifier whose factors an ILFCompo found (factors='ilf', two labels or more)"
        )
    names = getattr(estimator, "label_names_in_", None)
    return found, getattr(found, "label_names_in_", None) if names is None else names


def check_square(shape: tuple[int, ...], name: str, m: int | None = None) -> None:
    if len(shape) != 2 or shape[0] != shape[1] or m not in (None, shape[0]):
        wanted = "(m, m)" if m is None else str((m, m))
        raise ValueError(f"{name} has shape {shape}: it must be {wanted}")
    if shape[0] == 0:
        raise ValueError(f"{name} has shape {shape}: a picture must have at least one label")


def checked_square(values: Any, name: str, m: int | None = None) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    check_square(array.shape, name, m)
    return array


def checked_factors(factors: Sequence[Any], m: int) -> list[npt.NDArray[np.int64]]:
    arrays = [np.asarray(factor, dtype=np.int64) for factor in factors]
    members = np.sort(np.concatenate(arrays)) if arrays else np.empty(0)
    if not np.array_equal(members, np.arange(m)):
        raise ValueError(f"factors must hold each of the labels 0 to {m - 1} once: {factors!r}")
    return arrays
