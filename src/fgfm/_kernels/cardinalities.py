"""GFM: decide from p(y_i = 1, |y| = s), in full (Dembczynski et al., 2011).

A row is a matrix C with one row per label and one column per cardinality s that can occur: P
itself, or the matrix that `samples` and `joint` build.
"""

from __future__ import annotations

import math

import numpy as np

from fgfm._kernels._compile import compiled, compiled_sums, entry_point
from fgfm._kernels.candidates import rank_candidates
from fgfm._kernels.constants import NOT_PROBABILITY, TOO_MUCH_MASS
from fgfm._kernels.search import choose, search

__all__ = ["decide_cardinality_rows", "decide_matrix"]


@compiled_sums
def _fill_sums(C, s, p, expected_ys, totals):
    """Fill p_i, E[y_i s] and the column sums of C; return the number of invalid values."""
    n_invalid = 0
    for q in range(len(s)):
        totals[q] = 0.0
    for i in range(len(C)):
        p_i = 0.0
        ys_i = 0.0
        for q in range(len(s)):
            x = float(C[i, q])
            n_invalid += not x - x * x >= 0.0  # in one comparison: outside [0, 1], or NaN
            p_i += x
            ys_i += x * s[q]
        p[i] = p_i
        expected_ys[i] = ys_i
        for q in range(len(s)):
            totals[q] += C[i, q]
    return n_invalid


@compiled
def decide_matrix(
    C, s, d_0, p_nonempty, trusted, slack, beta2, zero_division, nonempty, label_of, chosen
):
    """Mark the F-optimal set of a row in `chosen`; return its expected F, or a status.

    Parameters
    ----------
    C : (m, q) array
        ``C[i, j] = p(y_i = 1, |y| = s[j])``.
    s : (q,) array
        The cardinalities that can occur, increasing.
    d_0, p_nonempty : float
        The probabilities of the empty set and of all others; NaN if C determines them.
    trusted : bool
        Whether C was computed here; if not, its values are validated.
    slack : float
        How far sums of probabilities may exceed 1.
    beta2, zero_division, nonempty
        The objective.
    label_of : (m,) int64 array
        The label of each row of C.
    chosen : int8 array
        Set to 1 at the chosen labels.

    Returns
    -------
    float
        The expected F, a negative status, or NaN if `nonempty` is set and the row has no mass for
        non-empty sets.
    """
    m = len(C)
    p = np.empty(m)
    expected_ys = np.empty(m)
    totals = np.empty(len(s))
    if _fill_sums(C, s, p, expected_ys, totals) and not trusted:
        return NOT_PROBABILITY
    for i in range(m):
        if p[i] > 1.0 + slack and not trusted:
            return TOO_MUCH_MASS
    if math.isnan(d_0):
        p_nonempty = 0.0  # sum_s d_s with d_s = (1/s) sum_i p_is
        for q in range(len(s)):
            p_nonempty += totals[q] / s[q]
        if p_nonempty > 1.0 + slack:
            return TOO_MUCH_MASS
        p_nonempty = min(p_nonempty, 1.0)
        d_0 = 1.0 - p_nonempty
    empty_value = -1.0 if nonempty else zero_division * d_0  # negative: not allowed
    if nonempty and p_nonempty == 0.0:
        return math.nan
    order = np.empty(m, dtype=np.int64)
    size, guess, floor = rank_candidates(p, expected_ys, s[-1], beta2, empty_value, order)
    if size == 0:
        return math.nan if nonempty else empty_value
    # Delta_ik = sum_j C_ij (1 + beta^2) / (beta^2 s_j + k)
    base = np.empty(len(s))
    scale = np.empty(len(s))
    for q in range(len(s)):
        base[q] = beta2 * s[q]
        scale[q] = 1.0 + beta2
    best_order = np.empty(size, dtype=np.int64)
    best_delta = np.empty(size)
    k, value, _ = search(
        C,
        order[:size],
        totals,
        base,
        scale,
        False,
        size,
        guess,
        floor,
        empty_value,
        best_order,
        best_delta,
    )
    if k:
        choose(best_order, best_delta, k, label_of, chosen)
    return value / p_nonempty if nonempty else value


@entry_point
def decide_cardinality_rows(
    P, mass, label_of, slack, beta2, zero_division, nonempty, labels, expected
):
    """Decide every row of `P` (n, m, S); return the first invalid row or -1, a status, 0.

    `mass` is (2, n), the probabilities of the empty set and of all others, or NaN if P determines
    them. The i-th label of P is label ``label_of[i]``.
    """
    n, _, S = P.shape
    s = np.empty(S)
    for q in range(S):
        s[q] = q + 1.0
    for row in range(n):
        expected[row] = decide_matrix(
            P[row],
            s,
            mass[0, row],
            mass[1, row],
            False,
            slack,
            beta2,
            zero_division,
            nonempty,
            label_of,
            labels[row],
        )
        if expected[row] < 0.0:
            return row, expected[row], 0
    return -1, 0.0, 0
