"""Which test suits the features? Few levels and strata with rows in them, or plain numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm.factors._counts import combine, count_levels, encode

__all__ = ["as_numbers", "has_missing", "is_discrete", "rows_in_populated_strata"]

_POPULATED = 5  # rows that make a stratum populated
_MOST_NAMES = 50  # of a column, that are told apart


def is_discrete(X: Any, max_levels: int) -> bool:
    """Tell whether each column holds whole numbers or names, and few different ones."""
    values = X.data if sparse.issparse(X) else np.asarray(X)
    if values.dtype.kind == "f" and not bool((values == np.floor(values)).all()):
        return False
    if values.dtype.kind == "O" and any(
        isinstance(v, (float, np.floating)) and not float(v).is_integer() for v in values.flat
    ):
        return False
    return bool((count_levels(X) <= max_levels).all())


def rows_in_populated_strata(X: Any, boundaries: Sequence[npt.NDArray[np.int64]]) -> float:
    """Give the share of rows whose stratum has five rows at least, averaged over boundaries."""
    columns = encode(X)
    n = columns.codes(0).shape[0]
    shares = []
    for boundary in boundaries:
        chosen = [(columns.codes(int(j)), int(columns.levels[j])) for j in boundary]
        codes, count = combine(chosen, n)
        sizes = np.bincount(codes, minlength=count)
        shares.append(float(sizes[sizes >= _POPULATED].sum()) / max(1, n))
    return float(np.mean(shares)) if shares else 1.0


def has_missing(X: Any) -> bool:
    """Tell whether a value is missing: NaN or None."""
    values = X.data if sparse.issparse(X) else np.asarray(X)
    if values.dtype.kind == "f":
        return bool(np.isnan(values).any())
    return values.dtype.kind == "O" and any(_is_missing(v) for v in values.flat)


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):  # of pandas
        return True
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))


def as_numbers(X: Any) -> Any:
    """Give features as numbers: names one-hot, missing numbers as the mean and an indicator.

    A name that fewer than five rows have, or that is not among the fifty most frequent ones of its
    column, is told apart from others of its kind by nothing.
    """
    if sparse.issparse(X) or (X.dtype.kind in "biuf" and not has_missing(X)):
        return X
    columns: list[npt.NDArray[np.float64]] = []
    for column in X.T:
        missing = np.array([_is_missing(v) for v in column], dtype=np.bool_)
        known = [_number(v) for v in column[~missing]]
        if any(number is None for number in known):
            names = np.array([str(v) for v in column])
            levels, count = np.unique(names, return_counts=True)
            frequent = levels[np.argsort(-count, kind="stable")][:_MOST_NAMES]
            columns += [
                (names == level).astype(np.float64)
                for level in np.sort(frequent)
                if np.count_nonzero(names == level) >= min(_POPULATED, len(names))
            ]
            continue
        numbers = np.zeros(len(column))
        numbers[~missing] = known
        if missing.any():
            numbers[missing] = numbers[~missing].mean() if known else 0.0
            columns.append(missing.astype(np.float64))
        columns.append(numbers)
    return np.column_stack(columns) if columns else np.zeros((X.shape[0], 1))


def _number(value: Any) -> float | None:
    """Give a value as a number, a moment in seconds; None for a name."""
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
