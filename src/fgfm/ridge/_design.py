"""The design matrix: equal rows grouped, columns centred and rotated.

Everything here depends on X and on the column that may be appended to it, not on the target. It is
computed once and serves all targets.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._utils.parallel import Shared

__all__ = ["NEWTON_LIMIT", "Design", "GroupedRows", "RowSubset", "group_rows"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

# Largest number of unknowns, columns * (classes - 1), of a model that is fitted by itself with a
# Cholesky factor of its Hessian; larger ones are fitted in batches by conjugate gradients.
NEWTON_LIMIT = 300
# Dense rows up to this number are rotated into their span where that has fewer dimensions.
_ROTATED_ROWS = 1024
_DENSE_LIMIT = 1 << 24  # entries of a sparse X that may be densified (128 MB)
_PAIRS_LIMIT = 1 << 20  # entries of `GroupedRows.pairs`
_PAIRED_COLUMNS = 24  # with more columns, a matrix product per pair of classes is as fast
_CACHED_EXTRAS = 16  # targets that share an extra column come one after the other


class GroupedRows(NamedTuple):
    """The distinct rows Z, and the transformation from the columns of X to those of Z."""

    Z: Any  # (G, q): the constant, then the columns, centred and perhaps rotated; dense or CSR
    pairs: Floats  # (G, q (q + 1) / 2): products of its columns, or (0, 0) if too large
    of_row: Integers  # (n,): the group of each row
    mean: Floats  # (p,): subtracted from the columns
    basis: Floats | None  # (q - 1, p): the rotation

    def coefficients(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return the weights (J, p) and intercepts (J,) of the columns of X."""
        weights = theta[1:].T  # (J, q - 1)
        if self.basis is not None:
            weights = weights @ self.basis
        return weights, theta[0] - weights @ self.mean


class RowSubset:
    """The groups that a subset of the rows belongs to.

    Parameters
    ----------
    groups : GroupedRows
        All groups.
    weight : ndarray of shape (n,)
        Weights of all rows.
    rows : ndarray of shape (m,) or slice
        The subset.
    keep_all : bool, default=False
        Keep the groups of the other rows with weight 0, which needs no copy of Z.
    """

    def __init__(
        self, groups: GroupedRows, weight: Floats, rows: Any, keep_all: bool = False
    ) -> None:
        self.groups = groups
        self.rows = rows
        G = groups.Z.shape[0]
        total = np.bincount(groups.of_row[rows], weight[rows], minlength=G).astype(np.float64)
        self.kept = np.arange(G) if keep_all else np.flatnonzero(total)  # (G_kept,)
        self.weight = total[self.kept]
        self.Z = groups.Z if len(self.kept) == G else groups.Z[self.kept]


def group_rows(columns: Iterable[npt.NDArray[Any]], n: int) -> Integers | None:
    """Return the group of equal rows that each row belongs to, or None if few rows are equal.

    The groups are split by one column after the other. The function returns None as soon as there
    are more than n / 2 groups, so that continuous columns cost one sort instead of p.
    """
    of_row = np.zeros(n, dtype=np.int64)
    for column in columns:
        values, code = np.unique(column, return_inverse=True)
        if len(values) == 1:
            continue
        # at most n values and n groups: the combined code is below n^2 and does not overflow
        values, of_row = np.unique(of_row * len(values) + code, return_inverse=True)
        if 2 * len(values) > n:
            return None
    return of_row


def _column_products(Z: Floats) -> Floats:
    """Return the products of all pairs of columns, from which small Hessians are one product."""
    G, q = Z.shape
    if q > _PAIRED_COLUMNS or G * q * (q + 1) // 2 > _PAIRS_LIMIT:
        return np.empty((0, 0))
    j, i = np.tril_indices(q)
    return np.ascontiguousarray(Z[:, j] * Z[:, i])


class Design(Shared):
    """The features in the forms that the two solvers need; threads may share it.

    Grouped rows are computed on first use and cached. They are not pickled: a copy in another
    process computes its own, once for all jobs there.

    Parameters
    ----------
    X : ndarray or CSR of shape (n, p)
        Features, finite float64.
    weight : ndarray of shape (n,)
        Weights of the rows, positive.
    centred : bool
        Subtract the column means, which is possible where the intercept is not penalised. It keeps
        large means out of the Hessian.
    """

    def __init__(self, X: Any, weight: Floats, *, centred: bool) -> None:
        self.X = X
        self.weight = weight
        self.centred = centred
        self.n, self.p = int(X.shape[0]), int(X.shape[1])
        self.is_sparse = sparse.issparse(X)
        self._reset_caches()

    def _reset_caches(self) -> None:
        self._base: tuple[Floats, Integers | None] | None = None  # X dense, groups of its rows
        self._grouped: dict[int | None, tuple[Any, GroupedRows]] = {}  # by id of the extra column
        self._sparse: GroupedRows | None = None
        self._subsets: weakref.WeakValueDictionary[tuple[int, int, bool], RowSubset] = (
            weakref.WeakValueDictionary()
        )
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._reset_caches()

    def suits_newton(self, n_logits: int, extra: Floats | None) -> bool:
        """Return True if a model with `n_logits` logits is small enough to form its Hessian."""
        p = self.p + (extra is not None)
        # after the rotation there are no more columns than rows
        small = (min(p, self.n) + 1) * n_logits <= NEWTON_LIMIT
        return small and (not self.is_sparse or self.n * p <= _DENSE_LIMIT)

    def grouped(self, extra: Floats | None) -> GroupedRows:
        """Return the distinct rows of X, densified, with `extra` as its last column."""
        key = None if extra is None else id(extra)
        with self._lock:
            if key not in self._grouped:
                # the entry holds a reference to extra: no other array gets its id meanwhile
                self._grouped[key] = extra, self._group(extra)
                cached = [k for k in self._grouped if k is not None]
                for k in cached[: len(cached) - _CACHED_EXTRAS]:
                    del self._grouped[k]
            return self._grouped[key][1]

    def sparse_rows(self) -> GroupedRows:
        """Return the rows of a sparse X behind a constant column, neither grouped nor centred."""
        with self._lock:
            if self._sparse is None:
                one = sparse.csr_array(np.ones((self.n, 1)))
                Z = sparse.hstack([one, sparse.csr_array(self.X)], format="csr")
                Z.sum_duplicates()  # sorts the columns, too
                self._sparse = GroupedRows(
                    Z, np.empty((0, 0)), np.arange(self.n), np.zeros(self.p), None
                )
            return self._sparse

    def subset(self, groups: GroupedRows, rows: Integers, keep_all: bool = False) -> RowSubset:
        """Return the groups of the rows of a fold; one copy is shared as long as it is in use."""
        key = id(groups.Z), id(rows), keep_all  # the subset refers to both: the ids stay valid
        with self._lock:
            subset = self._subsets.get(key)
            if subset is None:
                subset = self._subsets[key] = RowSubset(groups, self.weight, rows, keep_all)
            return subset

    def mean(self, X: Floats) -> Floats:
        """Return what is subtracted from each column: its weighted mean, or 0."""
        if not self.centred:
            return np.zeros(X.shape[1])
        return np.asarray(np.average(X, axis=0, weights=self.weight))

    def _group(self, extra: Floats | None) -> GroupedRows:
        if self._base is None:
            dense = self.X.toarray() if self.is_sparse else self.X
            self._base = dense, group_rows(dense.T, self.n)
        dense, of_row = self._base
        if of_row is not None and extra is not None:
            of_row = group_rows((of_row, extra), self.n)
        X = dense if extra is None else np.column_stack([dense, extra])
        mean = self.mean(X)
        if of_row is None:
            of_row = np.arange(self.n)
        else:
            first = np.empty(int(of_row.max()) + 1, dtype=np.int64)  # (G,): first row of a group
            first[of_row[::-1]] = np.arange(self.n)[::-1]
            X = X[first]
        columns = X - mean if len(X) > 1 else np.zeros_like(X)  # (G, p)
        basis = None
        if _ROTATED_ROWS >= len(columns) < columns.shape[1]:
            # columns = U s V'. With W = V' w the logits are U s W, and |W| = |w| at the minimum,
            # where w lies in the span of the rows: G columns suffice.
            left, size, basis = np.linalg.svd(columns, full_matrices=False)
            columns = left * size  # (G, G)
        Z = np.empty((len(columns), columns.shape[1] + 1))
        Z[:, 0] = 1.0
        Z[:, 1:] = columns
        return GroupedRows(Z, _column_products(Z), of_row, mean, basis)
