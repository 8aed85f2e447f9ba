"""Features in bins, which trees are grown on."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

__all__ = ["BinnedFeatures"]

_BINS = 63  # of values; the last one, 63, is that of missing values


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
