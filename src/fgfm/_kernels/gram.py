"""Products of the columns of sparse rows with each other, every row with a weight.

A product of two sparse matrices would form the pattern of the result as well, which takes five
times as long where the result is dense.
"""

from __future__ import annotations

import numpy as np

from fgfm._kernels._compile import entry_point

__all__ = ["weighted_gram"]


@entry_point
def weighted_gram(data, indices, indptr, weight, gram):
    """Set the lower triangle of ``Z' diag(weight) Z``, Z in CSR with columns in order.

    Parameters
    ----------
    data : ndarray of shape (nnz,)
        The entries.
    indices : ndarray of shape (nnz,), uint32
        Their columns: numba would ask of a signed number whether it counts from the end.
    indptr : ndarray of shape (G + 1,)
        Where each row begins.
    weight : ndarray of shape (G,)
        Weights of the rows.
    gram : ndarray of shape (q, q)
        The result. What is above the diagonal is 0.
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
