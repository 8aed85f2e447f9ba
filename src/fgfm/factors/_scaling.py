"""Scaling and random combination of feature and label columns, dense or sparse."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

__all__ = ["combine_columns", "scale", "standardise"]

Floats = npt.NDArray[np.float64]


def combine_columns(Z: Any, limit: int, rng: np.random.Generator) -> Floats:
    """Return the columns as a dense array, or `limit` random signed sums if there are more."""
    if Z.shape[1] <= limit:
        return np.asarray(Z.toarray() if sparse.issparse(Z) else Z)
    signs = rng.choice([-1.0, 1.0], (Z.shape[1], limit))
    return np.asarray(Z @ signs)


def standardise(X: Any) -> Any:
    """Scale columns to variance 1, and centre them if they are dense.

    Constant columns become 0, where a column counts as constant if it varies by no more than
    rounding. Missing values (NaN) are kept and ignored.
    """
    X = scale(X)
    if sparse.issparse(X):
        mean = X.mean(axis=0)
        spread = np.sqrt(np.maximum(X.multiply(X).mean(axis=0) - mean**2, 0.0))
        # The difference of squares above loses half of the digits.
        return X @ sparse.diags_array(_inverse(spread, 1e-7))
    known = ~np.isnan(X)
    count = np.maximum(known.sum(axis=0), 1)
    X = X - np.where(known, X, 0.0).sum(axis=0) / count
    spread = np.sqrt((np.where(known, X, 0.0) ** 2).sum(axis=0) / count)
    return X * _inverse(spread, 1e-15)


def scale(X: Any) -> Any:
    """Divide each column by its largest absolute value, so that squares cannot overflow."""
    if sparse.issparse(X):
        X = sparse.csc_array(X, dtype=np.float64, copy=True)
        top = np.asarray(abs(X).max(axis=0).toarray()).reshape(-1)
        X.data /= np.repeat(top, np.diff(X.indptr)) + (X.data == 0.0)
        return sparse.csr_array(X)
    X = np.asarray(X, dtype=np.float64)
    top = np.fmax.reduce(np.abs(X), axis=0, initial=0.0)
    return X / np.where(top > 0.0, top, 1.0)


def _inverse(spread: Floats, smallest: float) -> Floats:
    """Return 1 / spread, and 0 where the spread is at most `smallest`."""
    varies = spread > smallest
    return np.where(varies, 1.0 / np.where(varies, spread, 1.0), 0.0)
