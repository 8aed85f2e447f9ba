"""Decide from draws of the label set: GFM on their frequencies."""

from __future__ import annotations

import math

import numpy as np

from fgfm._kernels._compile import entry_point
from fgfm._kernels.cardinalities import decide_matrix

__all__ = ["decide_sample_rows"]


@entry_point
def decide_sample_rows(samples, label_of, beta2, zero_division, nonempty, labels, expected):
    """Decide every row of `samples` (n, T, m), T draws of 0 and 1.

    The i-th label is label ``label_of[i]``. C has columns only for the cardinalities drawn.
    """
    n, T, m = samples.shape
    cardinality = np.empty(T, dtype=np.int64)
    column = np.empty(m + 1, dtype=np.int64)
    for row in range(n):
        # First the number of draws of each cardinality, then its column in C.
        for c in range(m + 1):
            column[c] = 0
        for t in range(T):
            cardinality[t] = 0
            for i in range(m):
                cardinality[t] += samples[row, t, i]
            column[cardinality[t]] += 1
        d_0 = column[0] / T
        p_nonempty = (T - column[0]) / T
        s = np.empty(m)
        q = 0
        for c in range(1, m + 1):
            if column[c]:
                s[q] = c
                column[c] = q
                q += 1
        if q == 0:
            expected[row] = math.nan if nonempty else zero_division
            continue
        C = np.zeros((m, q))
        for t in range(T):
            if cardinality[t]:
                for i in range(m):
                    C[i, column[cardinality[t]]] += samples[row, t, i]
        for i in range(m):
            for j in range(q):
                C[i, j] /= T
        expected[row] = decide_matrix(
            C,
            s[:q],
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
