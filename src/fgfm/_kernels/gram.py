"""Weighted Gram matrices of sparse rows.

SciPy's product of two sparse matrices also computes the sparsity pattern of the result, which
takes five times as long where the result is dense.
"""

from __future__ import annotations

import numpy as np

from fgfm._kernels._compile import entry_point

__all__ = ["weighted_gram"]


@entry_point
def weighted_gram(data, indices, indptr, weight, gram):
    """Set the lower triangle of ``Z' diag(weight) Z``, Z in CSR with sorted indices.

    Parameters
    ----------
    data : ndarray of shape (nnz,)
        The entries.
    indices : ndarray of shape (nnz,), uint32
        Their columns. For a signed index numba would check whether it counts from the end.
    indptr : ndarray of shape (G + 1,)
        The start of each row.
    weight : ndarray of shape (G,)
        The weight of each row.
    gram : ndarray of shape (q, q)
        The result; 0 above the diagonal.
    """
    gram[:] = 0.0
    flat = gram.reshape(gram.size)
    width = np.uint64(gram.shape[1])
    for g in range(len(weight)):
        start, end = indptr[g], indptr[g + 1]
        for i in range(start, end):
            entry = weight[g] * data[i]
            row = np.uint64(indices[i]) * width
            for k in range(start, i + 1):
                flat[row + np.uint64(indices[k])] += entry * data[k]
