"""Inverses of the blocks of a Hessian that belong to one logit: a preconditioner.

A block is ``A = Z' D Z + ridge``, D the curvature of the logit in every row. With fewer rows than
columns the inverse is that of ``B = 1 + D^(1/2) Z Z' D^(1/2) / ridge``, and

    A^(-1) = (1 - Z' D^(1/2) B^(-1) D^(1/2) Z / ridge) / ridge

where the rows times themselves are formed once for all targets and penalties.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg.blas import dsymv
from scipy.linalg.lapack import dpotrf, dpotri

__all__ = ["FACTORED", "FACTORS", "Common", "Factor"]

Floats = npt.NDArray[np.float64]

FACTORED = 1024  # up to here, rows or columns, factors are made
# Numbers in the factors of all folds (256 MB): where one target would need more, it gets none.
FACTORS = 1 << 25
# So many dense operations take as long as one with a sparse array, one on one vector, or one in a
# product of sparse columns with themselves.
_SPARSE = 4
_VECTOR = 4
_SCATTERED = 10
# So many more steps factors serve, about: the first through all smaller penalties, fresh ones in
# place of older ones less.
_STEPS = (6, 2)


class Common:
    """What the factors of all problems on the same rows have in common.

    Parameters
    ----------
    Z : ndarray or CSR of shape (G, q)
        The rows.
    folds : int, default=1
        How many there are: each has factors of its own.
    """

    def __init__(self, Z: Any, folds: int = 1) -> None:
        self.Z = Z
        self.folds = folds
        self.is_sparse = sparse.issparse(Z)
        self.transposed = Z.T
        G, q = Z.shape
        self.by_rows = q > G
        self._gram: Floats | None = None

    @property
    def gram(self) -> Floats:
        """The rows times themselves, (G, G)."""
        if self._gram is None:
            gram = self.Z @ self.transposed
            self._gram = gram.toarray() if self.is_sparse else gram
        return self._gram

    def patience(self, factored: bool) -> float:
        """Give the number of products in a step after which new factors pay."""
        G, q = self.Z.shape
        m = min(G, q)
        if m > FACTORED or m * m * self.folds > FACTORS:
            return math.inf
        entries = self.Z.nnz if self.is_sparse else G * q
        product = 4.0 * entries * (_SPARSE if self.is_sparse else 1)
        forming = m * m * _VECTOR if self.by_rows else self._forming()
        if factored:
            product += 2.0 * m * m * _VECTOR
        return float(max(3.0, (m**3 + forming) / (product * _STEPS[factored])))

    def _forming(self) -> float:
        """Give the operations that a product of the columns with themselves takes."""
        G, q = self.Z.shape
        if not self.is_sparse:
            return float(G * q * q)
        return float((np.diff(self.Z.indptr).astype(float) ** 2).sum() * _SCATTERED)


def _inverse(block: Floats) -> Floats:
    """Give the upper triangle of the inverse of a symmetric matrix, from the lower one.

    One product with it takes half the time of two triangular solves, and there will be hundreds.
    """
    diagonal = np.diagonal(block).copy()
    factor, failed = dpotrf(block.T, lower=0, overwrite_a=1)
    if not failed:
        inverse, failed = dpotri(factor, lower=0, overwrite_c=1)
    if failed:  # by rounding: the diagonal will do
        return np.asfortranarray(np.diag(1.0 / diagonal))
    return np.asarray(inverse)


class Factor:
    """One inverse for each logit of a problem.

    Parameters
    ----------
    common : Common
        The rows.
    extra : ndarray of shape (G,) or None
        One more column.
    curvature : ndarray of shape (G, C)
        Second derivatives by the logits.
    ridge : float
        Twice the penalty.
    damping : ndarray of shape (q,)
        What is added to the diagonal; where there are fewer rows, its mean.
    first : int
        First penalised column.
    """

    def __init__(
        self,
        common: Common,
        extra: Floats | None,
        curvature: Floats,
        ridge: float,
        damping: Floats,
        first: int,
    ) -> None:
        self.common = common
        self.extra = extra
        self.root = np.sqrt(curvature)  # (G, C)
        self.ridge = ridge + float(damping.mean())
        self.inverses = []  # upper triangles
        for root in self.root.T:
            if common.by_rows:
                block = common.gram * root  # (G, G)
                if extra is not None:
                    block += np.multiply.outer(extra, extra * root)
                block *= root[:, None] / self.ridge
                np.einsum("ii->i", block)[:] += 1.0
            else:
                block = self._columns(root)  # (q, q)
                diagonal = np.einsum("jj->j", block)
                diagonal += damping
                diagonal[first:] += ridge
            self.inverses.append(_inverse(block))

    def _columns(self, root: Floats) -> Floats:
        """Give ``Z' D Z``, where Z is sparse its lower triangle."""
        from fgfm._kernels import weighted_gram

        common = self.common
        if not common.is_sparse:
            weighted = common.Z * root[:, None]
            return np.asarray(weighted.T @ weighted)
        curvature = root**2
        q = common.Z.shape[1] + (self.extra is not None)
        block = np.empty((q, q))
        Z = common.Z
        columns = Z.indices.astype(np.int32, copy=False).view(np.uint32)
        weighted_gram(Z.data, columns, Z.indptr.astype(np.int64), curvature, block)
        if self.extra is not None:
            weighted = curvature * self.extra
            block[-1, :-1] = common.transposed @ weighted
            block[-1, -1] = weighted @ self.extra
        return block

    def solve(self, R: Floats) -> Floats:
        """Give ``A^(-1) R``, column by column; (q, C)."""
        if not self.common.by_rows:
            columns = [
                dsymv(1.0, inverse, column, lower=0)
                for inverse, column in zip(self.inverses, R.T, strict=True)
            ]
            return np.stack(columns, axis=1)
        r = self.common.Z.shape[1]
        U = self.root * (self.common.Z @ np.ascontiguousarray(R[:r]))  # (G, C)
        if self.extra is not None:
            U += self.root * np.multiply.outer(self.extra, R[r])
        for k, inverse in enumerate(self.inverses):
            U[:, k] = dsymv(1.0, inverse, U[:, k], lower=0)
        U *= self.root
        S = R.copy()
        S[:r] -= self.common.transposed @ U / self.ridge
        if self.extra is not None:
            S[r] -= self.extra @ U / self.ridge
        return S / self.ridge
