"""GFM: the F-optimal set of a row from p(y_i = 1, |y| = s).

A row is a matrix C with one row per label and one column per cardinality that can occur: P itself,
or what samples or a joint distribution give.
"""

from __future__ import annotations

import math

import numpy as np

from fgfm._kernels._compile import compiled, compiled_sums, entry_point
from fgfm._kernels.ordering import sort_descending
from fgfm._kernels.rule import NOT_PROBABILITY, TOO_MUCH_MASS
from fgfm._kernels.search import choose, search

__all__ = [
    "decide_cardinality_rows",
    "decide_joint_rows",
    "decide_sample_rows",
    "rank_candidates",
]


@compiled_sums
def _scan(C, s, p, weighted, totals):
    """Fill in the sums of the rows, the same weighted by s, and the sums of the columns.

    Gives the number of values that are no probabilities.
    """
    bad = 0
    for q in range(len(s)):
        totals[q] = 0.0
    for i in range(len(C)):
        total = 0.0
        load = 0.0
        for q in range(len(s)):
            x = float(C[i, q])
            bad += not x - x * x >= 0.0  # in one comparison: outside [0, 1], or NaN
            total += x
            load += x * s[q]
        p[i] = total
        weighted[i] = load
        for q in range(len(s)):
            totals[q] += C[i, q]
    return bad


@entry_point
def rank_candidates(p, weighted, s_max, beta2, floor, order):
    """Order the labels that can be in an optimal set by marginal, and guess its size.

    A set h of size k is worth at least (1 + beta^2) M / (beta^2 W / M + k), with M and W the sums
    of p_i and of E[y_i s] over it (Jensen). The guess is the size where this is highest for the
    labels in order. Conversely, leaving label i out of an optimal set gains
    Delta_jk / (beta^2 s_max + k - 1) or more for each other label j, so that no label with
    p_i (beta^2 s_max + 1) < V is in it. Gives the number of labels, the guess, and the best lower
    bound met.
    """
    m = len(p)
    top = 0
    for i in range(m):
        if p[i] > p[top]:
            top = i
    if p[top] == 0.0:
        return 0, 0, floor
    bound = (1.0 + beta2) * p[top] / (beta2 * weighted[top] / p[top] + 1.0)
    floor = max(floor, bound)
    least = floor / (beta2 * s_max + 1.0) * (1.0 - 1e-9)
    value = np.empty(m)
    size = 0
    for i in range(m):
        value[size] = p[i]
        order[size] = i
        size += p[i] >= least
    spare_place = np.empty(size, dtype=np.int64)
    count = np.empty(size + 2, dtype=np.int64)
    sort_descending(value[:size], order[:size], np.empty(size), spare_place, count)
    mass = 0.0
    load = 0.0
    guess = 1
    highest = 0.0
    for j in range(size):
        mass += value[j]
        load += weighted[order[j]]
        bound = (1.0 + beta2) * mass * (mass / (beta2 * load + (j + 1) * mass))
        if bound > highest:
            highest = bound
            guess = j + 1
    floor = max(floor, highest)
    least = floor / (beta2 * s_max + 1.0) * (1.0 - 1e-9)
    while size > guess and value[size - 1] < least:
        size -= 1
    return size, guess, floor


@compiled
def _decide(C, s, d_0, present, trusted, slack, beta2, zero_division, nonempty, labels, chosen):
    """Mark the F-optimal set of a row; give its expected F, or a negative number as above.

    `d_0` is the probability of the empty set and `present` that of all others; both are NaN where
    C itself tells them, up to `slack`. A `trusted` C was computed here, and is not refused. The
    answer is NaN where the row leaves no mass for the non-empty sets that `nonempty` asks for.
    """
    m = len(C)
    p = np.empty(m)
    weighted = np.empty(m)
    totals = np.empty(len(s))
    if _scan(C, s, p, weighted, totals) and not trusted:
        return NOT_PROBABILITY
    for i in range(m):
        if p[i] > 1.0 + slack and not trusted:
            return TOO_MUCH_MASS
    if math.isnan(d_0):
        present = 0.0
        for q in range(len(s)):
            present += totals[q] / s[q]
        if present > 1.0 + slack:
            return TOO_MUCH_MASS
        present = min(present, 1.0)
        d_0 = 1.0 - present
    empty = -1.0 if nonempty else zero_division * d_0
    if nonempty and present == 0.0:
        return math.nan
    order = np.empty(m, dtype=np.int64)
    size, guess, floor = rank_candidates(p, weighted, s[-1], beta2, empty, order)
    if size == 0:
        return math.nan if nonempty else empty
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
        empty,
        best_order,
        best_delta,
    )
    if k:
        choose(best_order, best_delta, k, labels, chosen)
    return value / present if nonempty else value


@entry_point
def decide_cardinality_rows(
    P, mass, names, slack, beta2, zero_division, nonempty, labels, expected
):
    """Decide every row of a block of P; give the first that is wrong, or -1, a status, 0.

    ``mass[0]`` and ``mass[1]`` are the probabilities of the empty set and of the others, or NaN.
    The i-th label of P is label ``names[i]``.
    """
    n, _, S = P.shape
    s = np.empty(S)
    for q in range(S):
        s[q] = q + 1.0
    for row in range(n):
        expected[row] = _decide(
            P[row],
            s,
            mass[0, row],
            mass[1, row],
            False,
            slack,
            beta2,
            zero_division,
            nonempty,
            names,
            labels[row],
        )
        if expected[row] < 0.0:
            return row, expected[row], 0
    return -1, 0.0, 0


@entry_point
def decide_sample_rows(samples, names, beta2, zero_division, nonempty, labels, expected):
    """Decide every row of a block of draws, (n, T, m) of 0 and 1; label i is ``names[i]``."""
    n, T, m = samples.shape
    cardinality = np.empty(T, dtype=np.int64)
    column = np.empty(m + 1, dtype=np.int64)
    for row in range(n):
        for c in range(m + 1):
            column[c] = 0
        for t in range(T):
            cardinality[t] = 0
            for i in range(m):
                cardinality[t] += samples[row, t, i]
            column[cardinality[t]] += 1
        d_0 = column[0] / T
        present = (T - column[0]) / T
        # The cardinalities that were drawn, and the column that each has in C.
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
        expected[row] = _decide(
            C, s[:q], d_0, present, True, 0.0, beta2, zero_division, nonempty, names, labels[row]
        )


@entry_point
def decide_joint_rows(
    indptr, indices, column, s, names, proba, beta2, zero_division, nonempty, labels, expected
):
    """Decide every row of a block of probabilities over label sets.

    Set j holds the labels ``indices[indptr[j]:indptr[j + 1]]``, and its cardinality is
    ``s[column[j]]``; sets without labels have column -1. Label i is ``names[i]``.
    """
    n, m = labels.shape
    for row in range(n):
        C = np.zeros((m, len(s)))
        d_0 = 0.0
        present = 0.0
        for at in range(len(column)):
            mass = proba[row, at]
            if column[at] < 0:
                d_0 += mass
            elif mass:
                present += mass
                for j in range(indptr[at], indptr[at + 1]):
                    C[indices[j], column[at]] += mass
        expected[row] = _decide(
            C, s, d_0, present, True, 0.0, beta2, zero_division, nonempty, names, labels[row]
        )
