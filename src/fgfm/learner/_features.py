"""Features as the parts of the stack take them, and means of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

__all__ = [
    "BinnedFeatures",
    "CountFeatures",
    "StandardFeatures",
    "UsedFeatures",
    "are_counts",
    "known_means",
]

Floats = npt.NDArray[np.float64]

_CLIP = 4.0  # standard deviations
_MOSTLY_ZERO = 0.8
_BLOCK = 128  # columns whose weights exist at the same time
_BINS = 63  # of values; the last one, 63, is that of missing values
_EXPONENT = 60  # of 2, from which on features get other units


def are_counts(X: Any) -> bool:
    """Return True for features like counts of words: mostly 0, and none missing."""
    if sparse.issparse(X):
        return bool(
            np.count_nonzero(X.data) < (1.0 - _MOSTLY_ZERO) * np.prod(X.shape, dtype=float)
        )
    return not np.isnan(X).any() and float(np.mean(X == 0.0)) > _MOSTLY_ZERO


def known_means(values: npt.NDArray[Any], weight: Floats) -> Floats:
    """Return the weighted mean (p,) of the known values of each column; 0 if there are none.

    Examples
    --------
    >>> known_means(np.array([[1.0, np.nan], [4.0, 5.0]]), np.array([2.0, 1.0]))
    array([2., 5.])
    """
    means = np.empty(values.shape[1])
    for start in range(0, len(means), _BLOCK):
        block = values[:, start : start + _BLOCK]
        w = np.where(np.isnan(block), 0.0, weight[:, None])
        total = np.maximum(w.sum(axis=0), np.finfo(float).tiny)
        means[start : start + _BLOCK] = (w * np.nan_to_num(block)).sum(axis=0) / total
    return means


class UsedFeatures:
    """The features that vary, in units that single precision can hold; sparse if they are counts.

    Attributes
    ----------
    columns : ndarray or None
        The features that vary, if not all.
    units : ndarray or None
        Powers of two that these are multiplied by, if some are very large or small.
    counts : bool
        Whether they are like counts of words.
    """

    def fit(self, X: Any) -> UsedFeatures:
        """Choose the features and their units from training rows."""
        X = _canonical(X)
        if sparse.issparse(X):
            varies = np.bincount(X.indices[X.data != 0.0], minlength=X.shape[1]) > 0
        else:
            varies = ((X[0] != X) & ~(np.isnan(X) & np.isnan(X[0]))).any(axis=0)
        self.columns = None if varies.all() else np.flatnonzero(varies)
        if not varies.any():
            self.columns = np.zeros(1, dtype=np.intp)
        X = X if self.columns is None else X[:, self.columns]
        if sparse.issparse(X):
            largest = abs(X).max(axis=0).toarray().ravel()
        else:
            largest = np.fmax.reduce(np.abs(X), axis=0, initial=0.0)
        _, exponent = np.frexp(largest)
        extreme = (np.abs(exponent) > _EXPONENT) & (largest > 0.0)
        self.units = np.ldexp(1.0, np.where(extreme, -exponent, 0)) if extreme.any() else None
        self.counts = are_counts(X)
        return self

    def transform(self, X: Any) -> Any:
        """Return the features of some rows: in CSR if they are counts, else dense."""
        X = _canonical(X)
        X = X if self.columns is None else X[:, self.columns]
        if self.units is not None:
            X = X * self.units
        if self.counts:
            return _canonical(sparse.csr_array(X))
        return X.toarray() if sparse.issparse(X) else X


def _canonical(X: Any) -> Any:
    """Return sparse features with columns in order and no value stored in parts."""
    if not sparse.issparse(X) or X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


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


class BinnedFeatures:
    """Features as numbers of bins, dense or sparse.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, p), float32
        Features; missing values are NaN.

    Attributes
    ----------
    edges : ndarray of shape (p, 63)
        Upper ends of the bins; infinite beyond the last.
    arrays : tuple of ndarray
        The bins as `fgfm._kernels.grow_tree` takes them: columns (p, n) if X is dense; else bins,
        indices and indptr of the stored values, and the bin of 0 in each column.
    """

    def __init__(self, X: Any) -> None:
        n, p = X.shape
        self.edges = np.full((p, _BINS), np.inf)
        none = np.zeros(0, np.uint8)
        if not sparse.issparse(X):
            columns = np.empty((p, n), np.uint8)
            for j in range(p):
                columns[j] = self._bin(j, np.sort(X[:, j]), X[:, j])
            self.arrays: tuple[Any, ...] = (
                columns,
                none,
                np.zeros(0, np.int32),
                np.zeros(1, np.int64),
                none,
            )
            return
        by_column = sparse.csc_array(X)
        bins = np.empty(by_column.nnz, np.uint8)
        zero = np.empty(p, np.uint8)
        for j in range(p):
            at = slice(by_column.indptr[j], by_column.indptr[j + 1])
            stored = by_column.data[at]
            values = np.append(stored, np.float32(0.0))
            found = self._bin(j, np.sort(values), values)
            bins[at], zero[j] = found[:-1], found[-1]
        rows = sparse.csc_array((bins, by_column.indices, by_column.indptr), (n, p)).tocsr()
        self.arrays = (
            np.zeros((0, n), np.uint8),
            rows.data,
            rows.indices.astype(np.int32),
            rows.indptr.astype(np.int64),
            zero,
        )

    def _bin(
        self, column: int, ordered: npt.NDArray[Any], values: npt.NDArray[Any]
    ) -> npt.NDArray[np.uint8]:
        """Choose the edges of a column and return the bins of some values."""
        known = ordered[: len(ordered) - int(np.isnan(ordered).sum())].astype(np.float64)
        distinct = known[np.flatnonzero(np.diff(known, append=np.inf))]
        if len(distinct) > _BINS:
            ranks = np.linspace(0, len(known) - 1, _BINS - 1).astype(np.intp)[1:-1]
            zero = np.searchsorted(distinct, 0.0)
            # 0 and its neighbours stay apart: 0 is what most rows of sparse features have.
            distinct = np.union1d(known[ranks], distinct[max(zero - 1, 0) : zero + 2])
        edges = (distinct[:-1] + distinct[1:]) / 2.0
        self.edges[column, : len(edges)] = edges
        bins = np.searchsorted(edges, values, side="left").astype(np.uint8)
        bins[np.isnan(values)] = _BINS
        return bins
