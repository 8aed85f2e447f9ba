"""The design matrix: equal rows grouped, columns centred and rotated.

Everything here depends on X and on the column that may be appended to it, not on the target. It is
computed once and serves all targets.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import cython_blas, cython_lapack

from fgfm._kernels import Lapack, RidgeRows, group_rows
from fgfm._utils.parallel import Shared, interruptible

__all__ = ["Design", "GroupedRows"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_LAPACK = Lapack(  # the functions that the kernel calls
    dgemm=cython_blas.__pyx_capi__["dgemm"],
    dsyrk=cython_blas.__pyx_capi__["dsyrk"],
    dpotrf=cython_lapack.__pyx_capi__["dpotrf"],
)
# Largest number of unknowns, columns * (classes - 1), of a model that is fitted by itself with a
# Cholesky factor of its Hessian; larger ones are fitted in batches by conjugate gradients.
_CHOLESKY_LIMIT = 300
# Dense rows up to this number are rotated into their span where that has fewer dimensions, and
# columns up to this number to their principal axes for conjugate gradients, which scale them.
_ROTATED = 1024
_DENSE_LIMIT = 1 << 24  # entries of a sparse X that may be densified (128 MB)
_CACHED_EXTRAS = 16  # targets that share an extra column come one after the other


class GroupedRows(NamedTuple):
    """The distinct rows Z, and the transformation from the columns of X to those of Z."""

    rows: RidgeRows  # Z (G, q): the constant, then the columns, centred and perhaps rotated
    n_columns: int  # q
    of_row: Integers  # (n,): the group of each row
    mean: Floats  # (p,): subtracted from the columns
    basis: Floats | None  # (q - 1, p): the rotation

    def coefficients(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return the weights (C, p) and intercepts (C,) of the columns of X."""
        weights = theta[1:].T  # (C, q - 1)
        if self.basis is not None:
            weights = weights @ self.basis
        return np.ascontiguousarray(weights), theta[0] - weights @ self.mean


class Design(Shared):
    """The features in the forms that the solver needs; threads may share it.

    Grouped rows are computed on first use and cached. They are not pickled: a copy in another
    process computes its own, once for all jobs there.

    `X` is an array or CSR matrix (n, p) of finite float64, `weight` (n,) are positive weights of
    the rows. `centred` subtracts the column means, which is possible where the intercept is not
    penalised: it keeps large means out of the Hessian.
    """

    def __init__(self, X: Any, weight: Floats, *, centred: bool) -> None:
        self.X = X
        self.weight = weight
        self.centred = centred
        self.n, self.p = int(X.shape[0]), int(X.shape[1])
        self.is_sparse = sparse.issparse(X)
        self._reset_caches()

    def _reset_caches(self) -> None:
        self._base: tuple[Floats, Integers | None, Any] | None = None  # X, and its groups
        self._grouped: dict[Any, tuple[Any, GroupedRows]] = {}  # by id of the extra column
        self._sparse: GroupedRows | None = None
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._reset_caches()

    def is_small(self, n_classes: int, extra: Floats | None) -> bool:
        """Return True if a model is small enough to form its Hessian."""
        p = self.p + (extra is not None)
        # after the rotation there are no more columns than rows
        small = (min(p, self.n) + 1) * (n_classes - 1) <= _CHOLESKY_LIMIT
        return small and (not self.is_sparse or self.n * p <= _DENSE_LIMIT)

    def is_dense(self, n_classes: int, *, small: bool) -> bool:
        """Return True if models are fitted to dense rows.

        Conjugate gradients for more than two classes need the principal axes of few columns.
        """
        if not self.is_sparse or small:
            return True
        few = self.p <= _CHOLESKY_LIMIT and self.n * self.p <= _DENSE_LIMIT
        return n_classes > 2 and few

    def grouped(self, extra: Floats | None, *, principal: bool = False) -> GroupedRows:
        """Return the distinct rows of X, densified, with `extra` as its last column.

        If `principal` is true, few columns are rotated to their principal axes.
        """
        key = None if extra is None else id(extra), principal
        with self._lock:
            if key not in self._grouped:
                # the entry holds a reference to extra: no other array gets its id meanwhile
                self._grouped[key] = extra, self._group(extra, principal)
                cached = [k for k in self._grouped if k[0] is not None]
                for k in cached[: len(cached) - _CACHED_EXTRAS]:
                    del self._grouped[k]
            return self._grouped[key][1]

    def sparse_rows(self) -> GroupedRows:
        """Return the rows of a sparse X behind a constant column, neither grouped nor centred."""
        with self._lock:
            if self._sparse is None:
                X = sparse.csr_array(self.X, copy=not self.X.has_canonical_format)
                X.sum_duplicates()  # sorts the columns, too
                indices = X.indices.astype(np.uint32)
                rows = RidgeRows(_LAPACK, X.data, indices, X.indptr.astype(np.int64), self.p)
                of_row = np.arange(self.n)
                self._sparse = GroupedRows(rows, self.p + 1, of_row, np.zeros(self.p), None)
            return self._sparse

    def mean(self, X: Floats) -> Floats:
        """Return what is subtracted from each column: its weighted mean, or 0."""
        if not self.centred:
            return np.zeros(X.shape[1])
        return np.asarray(np.average(X, axis=0, weights=self.weight))

    def _group(self, extra: Floats | None, principal: bool) -> GroupedRows:
        if self._base is None:
            dense = self.X.toarray() if self.is_sparse else np.ascontiguousarray(self.X)
            self._base = dense, *_equal_rows(dense)
        dense, of_row, first = self._base
        X = dense if extra is None else np.column_stack([dense, extra])
        mean = self.mean(X)
        if of_row is not None and extra is not None:
            of_row, first = _equal_rows(np.column_stack([of_row, extra]))
        if of_row is None:
            of_row = np.arange(self.n)
        else:
            X = X[first]
        columns = X - mean if len(X) > 1 else np.zeros_like(X)  # (G, p)
        basis = None
        if _ROTATED >= len(columns) < columns.shape[1]:
            # columns = U s V'. With W = V' w the logits are U s W, and |W| = |w| at the minimum,
            # where w lies in the span of the rows: G columns suffice.
            left, size, basis = interruptible(np.linalg.svd, columns, full_matrices=False)
            columns = left * size  # (G, G)
        elif principal and columns.shape[1] <= _ROTATED:
            basis = interruptible(np.linalg.eigh, columns.T @ columns)[1].T
            columns = columns @ basis.T
        Z = np.empty((len(columns), columns.shape[1] + 1))
        Z[:, 0] = 1.0
        Z[:, 1:] = columns
        return GroupedRows(RidgeRows(_LAPACK, Z), Z.shape[1], of_row, mean, basis)


def _equal_rows(X: Floats) -> tuple[Integers | None, Any]:
    """Return the group of equal rows of each row, and the first rows of the groups.

    If there are more than n / 2 groups, the first is None: grouping would hardly pay.
    """
    of_row = np.empty(len(X), dtype=np.int64)
    first = group_rows(X, len(X) // 2, of_row)
    return (of_row, first) if first else (None, first)
