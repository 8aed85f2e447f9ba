"""Types of features: discrete or not, with missing values, as numbers.

`ILFCompo` chooses its test by these properties.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm.factors._contingency import combine, count_levels, encode

_POPULATED = 5  # rows of a populated stratum
_MAX_CATEGORIES = 50  # one-hot columns of a categorical feature


def is_discrete(X: Any, max_levels: int) -> bool:
    """Return True if all columns hold integers or categories, with at most `max_levels` levels."""
    values = X.data if sparse.issparse(X) else np.asarray(X)
    if values.dtype.kind == "f" and not bool((values == np.floor(values)).all()):
        return False
    if values.dtype.kind == "O" and any(
        isinstance(v, (float, np.floating)) and not float(v).is_integer() for v in values.flat
    ):
        return False
    return bool((count_levels(X) <= max_levels).all())


def rows_in_populated_strata(X: Any, boundaries: Sequence[npt.NDArray[np.int64]]) -> float:
    """Return the share of rows whose stratum has five rows or more, averaged over boundaries."""
    columns = encode(X)
    shares = []
    for boundary in boundaries:
        codes, count = combine([columns.column(j) for j in boundary], X.shape[0])
        sizes = np.bincount(codes, minlength=count)
        shares.append(float(sizes[sizes >= _POPULATED].sum()) / max(1, X.shape[0]))
    return float(np.mean(shares)) if shares else 1.0


def has_missing(X: Any) -> bool:
    """Return True if any value is missing: NaN, None, or pandas' NA or NaT."""
    values = X.data if sparse.issparse(X) else np.asarray(X)
    if values.dtype.kind == "f":
        return bool(np.isnan(values).any())
    return values.dtype.kind == "O" and any(_is_missing(v) for v in values.flat)


def _is_missing(value: Any) -> bool:
    # pandas is optional: its missing values are recognised by name.
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))


def as_numbers(X: Any) -> Any:
    """Encode features as numbers.

    Categories become one-hot columns; missing numbers become the mean of the column, with an
    indicator column in front. A category with fewer than five rows, or that is not among the fifty
    most frequent ones of its column, has no one-hot column.
    """
    if sparse.issparse(X) or (X.dtype.kind in "biuf" and not has_missing(X)):
        return X
    columns: list[npt.NDArray[np.float64]] = []
    for column in X.T:
        missing = np.array([_is_missing(v) for v in column], dtype=np.bool_)
        known = [_as_number(v) for v in column[~missing]]
        if any(number is None for number in known):
            columns += _one_hot(np.array([str(v) for v in column]))
            continue
        numbers = np.zeros(len(column))
        numbers[~missing] = known
        if missing.any():
            numbers[missing] = numbers[~missing].mean() if known else 0.0
            columns.append(missing.astype(np.float64))
        columns.append(numbers)
    return np.column_stack(columns) if columns else np.zeros((X.shape[0], 1))


def _one_hot(names: npt.NDArray[np.str_]) -> list[npt.NDArray[np.float64]]:
    """Return an indicator column for each frequent category."""
    levels, count = np.unique(names, return_counts=True)
    frequent = levels[np.argsort(-count, kind="stable")][:_MAX_CATEGORIES]
    return [
        (names == level).astype(np.float64)
        for level in np.sort(frequent)
        if np.count_nonzero(names == level) >= min(_POPULATED, len(names))
    ]


def _as_number(value: Any) -> float | None:
    """Return a value as a float, dates in seconds, or None for a category."""
    if hasattr(value, "timestamp"):
        return float(value.timestamp())
    if isinstance(value, np.datetime64):
        return float(value.astype("datetime64[us]").astype(np.int64)) * 1e-6
    if isinstance(value, (str, bytes)):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
