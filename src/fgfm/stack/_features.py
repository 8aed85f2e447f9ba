"""Features as the kernel ridge regressions take them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm.stack._means import known_means

__all__ = ["CountFeatures", "StandardFeatures", "are_counts"]

Floats = npt.NDArray[np.float64]

_CLIP = 4.0  # standard deviations
_MOSTLY_ZERO = 0.8


def are_counts(X: Any) -> bool:
    """Return True for features like counts of words: mostly 0, and none missing."""
    if sparse.issparse(X):
        return bool(
            np.count_nonzero(X.data) < (1.0 - _MOSTLY_ZERO) * np.prod(X.shape, dtype=float)
        )
    return not np.isnan(X).any() and float(np.mean(X == 0.0)) > _MOSTLY_ZERO


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
        self.mean = known_means(X, weight)
        variance = known_means((X - self.mean) ** 2, weight)
        self.scale = np.where(variance > 0.0, np.sqrt(variance), 1.0)
        return self

    def transform(self, X: Any) -> Floats:
        """Return the features of some rows."""
        Z = np.clip((_dense(X) - self.mean) / self.scale, -_CLIP, _CLIP)
        return np.asarray(np.nan_to_num(Z, copy=False))


class CountFeatures:
    r"""Logarithms of counts in rows of unit length, and the columns that are no counts.

    A count x becomes :math:`\operatorname{sign}(x) \log(1 + |x|)`. Columns of which more than half
    is not 0 are standardised, and divided by the root of their number.

    Parameters
    ----------
    idf : bool
        Weight each column of counts by its inverse document frequency.

    Attributes
    ----------
    weights : ndarray of shape (p,)
        The weight of each column of counts; 0 for the others.
    others : ndarray
        The columns that are no counts.
    standard : StandardFeatures
        Their moments.
    """

    def __init__(self, idf: bool) -> None:
        self.idf = idf

    def fit(self, X: Any, weight: Floats) -> CountFeatures:
        """Compute the weights and moments from training rows."""
        occurs = sparse.csr_array((X.data != 0.0, X.indices, X.indptr), X.shape)
        frequency = weight @ occurs  # (p,)
        self.weights = np.ones(X.shape[1])
        if self.idf:
            self.weights = np.log((1.0 + weight.sum()) / (1.0 + frequency)) + 1.0
        self.others = np.flatnonzero(frequency > 0.5 * weight.sum())
        self.weights[self.others] = 0.0
        self.standard = StandardFeatures().fit(X[:, self.others], weight)
        return self

    def transform(self, X: Any) -> Any:
        """Return the features of some rows, in CSR."""
        rows = sparse.csr_array(X, dtype=np.float64, copy=True)
        rows.data = np.sign(rows.data) * np.log1p(np.abs(rows.data)) * self.weights[rows.indices]
        norm = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
        rows.data /= np.repeat(np.where(norm > 0.0, norm, 1.0), np.diff(rows.indptr))
        if not len(self.others):
            return rows
        Z = self.standard.transform(X[:, self.others]) / np.sqrt(len(self.others))
        return sparse.hstack([rows, sparse.csr_array(Z)], format="csr")


def _dense(X: Any) -> Floats:
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
