"""Features as the kernel ridge regressions take them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

__all__ = ["CountFeatures", "StandardFeatures", "are_counts"]

Floats = npt.NDArray[np.float64]

_CLIP = 4.0  # standard deviations
_MOSTLY_ZERO = 0.8


def are_counts(X: Any) -> bool:
    """Return True for features like counts of words: sparse, or not negative and mostly 0."""
    if sparse.issparse(X):
        return True
    return bool((X >= 0.0).all()) and float(np.mean(X == 0.0)) > _MOSTLY_ZERO


class StandardFeatures:
    """Columns of mean 0 and variance 1, clipped; missing values become the mean.

    Attributes
    ----------
    mean, scale : ndarray of shape (p,)
        Mean and standard deviation of each column.
    """

    def fit(self, X: Any, weight: Floats) -> StandardFeatures:
        """Compute the moments of training rows."""
        X = _dense(X)
        w = np.where(np.isnan(X), 0.0, weight[:, None])
        total = np.maximum(w.sum(axis=0), np.finfo(float).tiny)
        values = np.nan_to_num(X)
        self.mean = (w * values).sum(axis=0) / total
        variance = (w * (values - self.mean) ** 2).sum(axis=0) / total
        self.scale = np.where(variance > 0.0, np.sqrt(variance), 1.0)
        return self

    def transform(self, X: Any) -> Floats:
        """Return the features of some rows."""
        Z = np.clip((_dense(X) - self.mean) / self.scale, -_CLIP, _CLIP)
        return np.asarray(np.nan_to_num(Z, copy=False))


class CountFeatures:
    """Logarithms of counts, log(1 + x), in rows of unit length; -log(1 - x) where x < 0.

    Parameters
    ----------
    idf : bool
        Weight each column by its inverse document frequency.

    Attributes
    ----------
    weights : ndarray of shape (p,)
        The weight of each column.
    """

    def __init__(self, idf: bool) -> None:
        self.idf = idf

    def fit(self, X: Any, weight: Floats) -> CountFeatures:
        """Compute the weights from training rows."""
        counts = sparse.csr_array(X)
        self.weights = np.ones(counts.shape[1])
        if self.idf:
            occurs = sparse.csr_array(
                (np.ones(counts.nnz), counts.indices, counts.indptr), counts.shape
            )
            frequency = weight @ occurs  # (p,)
            self.weights = np.log((1.0 + weight.sum()) / (1.0 + frequency)) + 1.0
        return self

    def transform(self, X: Any) -> Any:
        """Return the features of some rows, in CSR."""
        rows = sparse.csr_array(X, dtype=np.float64, copy=True)
        rows.data = np.sign(rows.data) * np.log1p(np.abs(rows.data)) * self.weights[rows.indices]
        norm = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
        rows.data /= np.repeat(np.where(norm > 0.0, norm, 1.0), np.diff(rows.indptr))
        return rows


def _dense(X: Any) -> Floats:
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
