"""Preconditioner of the conjugate gradients: inverses of diagonal blocks of the Hessian.

The block of one logit is ``A = Z' D Z + ridge``, D the curvature of that logit in every row. Its
inverse is computed for a problem whose conjugate gradients are slow, and kept while the penalty
decreases. Blocks of more than 1024 columns are never formed.

`python -m benchmarks.ridge_solvers` measures its effect. Without it the number of labels takes 1.7
to 7 times as long on dense data (cal500, yeast, image), and tmc2007_500 4 times; on most sparse
data it is hardly ever needed, because plain conjugate gradients take few products. An inverse of
``1 + Z Z' / ridge``, for fewer rows than columns, was tried and was slower than none.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg.blas import dsymv
from scipy.linalg.lapack import get_lapack_funcs

__all__ = ["INVERSES_LIMIT", "LARGEST_BLOCK", "BlockInverses", "Inverses", "break_even", "take"]

Floats = npt.NDArray[np.float64]

LARGEST_BLOCK = 1024  # columns
# Entries of the inverses of all folds (256 MB in double precision). If one target needs more, it
# gets none.
INVERSES_LIMIT = 1 << 25
# Dense floating-point operations in BLAS level 3 that take as long as one operation in a product
# with a sparse array, in a matrix-vector product, and in the product of sparse columns.
_SPARSE = 2
_VECTOR = 4
_SCATTERED = 10
# Further Newton steps that an inverse serves, about: the first one for all smaller penalties, one
# that replaces an older one for fewer.
_STEPS = (6, 2)


def break_even(Z: Any, n_folds: int, replaces: bool) -> float:
    """Return the number of products in a Newton step from which an inverse pays.

    Parameters
    ----------
    Z : ndarray, CSR or tensor of shape (G, q)
        The rows.
    n_folds : int
        Number of folds: each has inverses of its own.
    replaces : bool
        Whether there is an older inverse already.

    Returns
    -------
    float
        Number of products; inf if an inverse would be too large, and on a device, where a product
        takes little time.
    """
    G, q = Z.shape
    on_device = not (isinstance(Z, np.ndarray) or sparse.issparse(Z))
    if on_device or q > LARGEST_BLOCK or q * q * n_folds > INVERSES_LIMIT:
        return math.inf
    if sparse.issparse(Z):
        product = 4.0 * Z.nnz * _SPARSE
        forming = float((np.diff(Z.indptr).astype(float) ** 2).sum() * _SCATTERED)
    else:
        product = 4.0 * G * q
        forming = float(G * q * q)
    if replaces:
        product += 2.0 * q * q * _VECTOR
    return float(max(3.0, (q**3 + forming) / (product * _STEPS[replaces])))


class BlockInverses:
    """The inverses of the blocks of one problem, one for each logit.

    Parameters
    ----------
    Z : ndarray or CSR of shape (G, q)
        The rows.
    extra : ndarray of shape (G,) or None
        One more column, beside sparse rows.
    curvature : ndarray of shape (G, C)
        Second derivatives of the loss with respect to each logit.
    ridge : float
        Twice the penalty.
    damping : ndarray of shape (q,)
        Added to the diagonal.
    first : int
        First penalised column.
    single : bool
        Store matrices in single precision.

    Attributes
    ----------
    matrices : ndarray of shape (C, q, q)
        The inverses.
    """

    def __init__(
        self,
        Z: Any,
        extra: Floats | None,
        curvature: Floats,
        ridge: float,
        damping: Floats,
        first: int,
        single: bool = False,
    ) -> None:
        self.single = single
        inverses = []
        for root in np.sqrt(curvature).T:
            block = _weighted_products(Z, extra, root)  # (q, q)
            diagonal = np.einsum("jj->j", block)  # a view
            diagonal += damping
            diagonal[first:] += ridge
            inverses.append(_inverse(block.astype(np.float32) if single else block))
        self.matrices = np.stack(inverses)

    def solve(self, R: Floats) -> Floats:
        """Return ``A^(-1) R``, (q, C), each column with the inverse of its logit."""
        columns = [
            dsymv(1.0, inverse.T, column, lower=0)
            for inverse, column in zip(self.matrices, R.T, strict=True)
        ]
        return np.stack(columns, axis=1)


Inverses = dict[int, BlockInverses]  # of the problems of a batch that have any


def take(inverses: Inverses, some: Any) -> Inverses:
    """Return the inverses of some of the problems."""
    if not inverses:
        return {}
    return {j: inverses[b] for j, b in enumerate(some.tolist()) if b in inverses}


def _weighted_products(Z: Any, extra: Floats | None, root: Floats) -> Floats:
    """Return ``Z' D Z`` with ``D = root^2``; for sparse rows its lower triangle."""
    if not sparse.issparse(Z):
        weighted = Z * root[:, None]
        return np.asarray(weighted.T @ weighted)
    from fgfm._kernels import weighted_gram

    curvature = root**2
    q = Z.shape[1] + (extra is not None)
    block = np.empty((q, q))
    columns = Z.indices.astype(np.int32, copy=False).view(np.uint32)
    weighted_gram(Z.data, columns, Z.indptr.astype(np.int64), curvature, block)
    if extra is not None:
        weighted = curvature * extra
        block[-1, :-1] = Z.T @ weighted
        block[-1, -1] = weighted @ extra
    return block


def _inverse(block: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the inverse of a symmetric matrix, from its lower triangle.

    One product with the inverse takes half the time of two triangular solves, and there are
    hundreds of products. A preconditioner need not be accurate.
    """
    potrf, potri = get_lapack_funcs(("potrf", "potri"), (block,))
    diagonal = np.diagonal(block).copy()
    factor, failed = potrf(block.T, lower=0, overwrite_a=1)
    if not failed:
        inverse, failed = potri(factor, lower=0, overwrite_c=1)
    if failed:  # not positive definite by rounding: use the diagonal
        return np.diag(1.0 / diagonal)
    inverse = np.triu(inverse)
    return np.asarray(inverse + np.triu(inverse, 1).T)
