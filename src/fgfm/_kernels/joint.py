"""Decide from probabilities of whole label sets: GFM on their cardinalities."""

from __future__ import annotations

import numpy as np

from fgfm._kernels._compile import entry_point
from fgfm._kernels.cardinalities import decide_matrix

__all__ = ["decide_joint_rows"]


@entry_point
def decide_joint_rows(
    indptr, indices, column, s, label_of, proba, beta2, zero_division, nonempty, labels, expected
):
    """Decide every row of `proba` (n, L), the probabilities of L label sets.

    Set j consists of the labels ``indices[indptr[j]:indptr[j + 1]]``, and its cardinality is
    ``s[column[j]]``; the empty set has column -1. The i-th label is label ``label_of[i]``.
    """
    n, m = labels.shape
    for row in range(n):
        C = np.zeros((m, len(s)))
        d_0 = 0.0
        p_nonempty = 0.0
        for j in range(len(column)):
            mass = proba[row, j]
            if column[j] < 0:
                d_0 += mass
            elif mass:
                p_nonempty += mass
                for t in range(indptr[j], indptr[j + 1]):
                    C[indices[t], column[j]] += mass
        expected[row] = decide_matrix(
            C,
            s,
            d_0,
            p_nonempty,
            True,
            0.0,
            beta2,
            zero_division,
            nonempty,
            label_of,
            labels[row],
        )
