"""Decide from independent labels: the F-optimal set of a row in a pass or two over its marginals.

The best set of size k consists of the k largest marginals. With u = 1 - zeta, its expected F is

    V_k = (1 + beta^2) sum_r w_r z_r^k zeta_r D(zeta_r) A_k(u_r),
    D(zeta) = prod_i (1 - p_i u),      A_k(u) = sum_{i <= k} p_i / (1 - p_i u),

for any quadrature rule w, z that covers the row. Three bounds limit what is computed
(docs/design.md, "Independent labels"):

- an optimal set of two or more labels has no label with
  p (1 + beta^2) (1 + 1 / (beta^2 + 2)) < V, because removing it would be better: labels below are
  not listed;
- V_k <= T(k) <= (1 + beta^2) E / (beta^2 E + k), by Jensen's inequality: larger sets are not
  evaluated;
- the bounds of `marginals_window` on single ranks.
"""

from __future__ import annotations

import math

import numpy as np

from fgfm._kernels._compile import compiled, compiled_sums, entry_point
from fgfm._kernels.constants import NOT_PROBABILITY, TIE
from fgfm._kernels.marginals_short import (
    SHORT,
    decide_short_row,
    load_short_rule,
    short_workspace,
)
from fgfm._kernels.marginals_window import FEW, add_moments, find_window, lower_bound
from fgfm._kernels.marginals_workspace import CHUNK, workspace
from fgfm._kernels.power_sums import (
    ABOVE_SMALL,
    POWERS,
    SMALL,
    add_power_sums,
    fill_fractions,
    fill_products,
    largest,
    log_probability_of_empty,
)
from fgfm._kernels.quadrature import TAIL, largest_cardinality, load_rule

__all__ = ["decide_csr_rows", "decide_dense_rows"]

_RESTART = 64  # set sizes after which z^k is computed anew, and A_k is compensated


@compiled_sums
def _count_below(p, start, stop, threshold):
    """Return the number of labels of ``p[start:stop]`` with p < threshold."""
    count = 0
    for i in range(start, stop):
        count += p[i] < threshold
    return count


@compiled
def _gather(p, n_below, threshold, listed_p, listed_index):
    """List the labels that are not below `threshold`, in their order; return their number.

    ``n_below[c]`` is the number of labels below it in chunk c; chunks without others are skipped.
    NaN is listed as well.
    """
    count = 0
    m = len(p)
    for start in range(0, m, CHUNK):
        stop = min(m, start + CHUNK)
        if n_below[start // CHUNK] < stop - start:
            for i in range(start, stop):
                x = float(p[i])
                listed_p[count] = x
                listed_index[count] = i
                count += not x < threshold
    return count


@compiled_sums
def _next_value(A, A_recent, multiplier, z, u, count, x):
    """Add a label with p = x to A_k, return V_k, and multiply the powers of z by z."""
    result = 0.0
    for r in range(count):
        A_recent[r] += x / (1.0 - x * u[r])
        result += multiplier[r] * (A[r] + A_recent[r])
        multiplier[r] *= z[r]
    return result


@compiled
def _restart(A, A_error, A_recent, count):
    """Add the recent terms to A_k by Kahan summation.

    Sums over very many labels keep their accuracy, at the cost of plain additions in between.
    """
    for r in range(count):
        y = A_recent[r] - A_error[r]
        t = A[r] + y
        A_error[r] = (t - A[r]) - y
        A[r] = t
        A_recent[r] = 0.0


@compiled
def _evaluate(large, m, sums, rank, low, high, moments, rules, work):
    """Fill V_k of the sets that end at window positions [low, high); return the largest.

    Position i of the window is the set of size ``rank + i + 1``. `large` contains every label
    above ``SMALL`` and every label above the window; `sums` are the power sums of the others, and
    `m` is the number of all labels.
    """
    beta2, mean, _ = moments
    window, set_value, log_z, z, u = work.window, work.set_value, work.log_z, work.z, work.u
    A, A_error, A_recent = work.A, work.A_error, work.A_recent
    multiplier = work.multiplier
    # The range of a = beta^2 s + k, with s given that one label is present: s <= 1 + (the others),
    # and P(s <= E - x) <= exp(-x^2 / (2 E)) (Chernoff).
    s_max = min(float(m), 1.0 + largest_cardinality(mean))
    s_min = max(1.0, mean - math.sqrt(2.0 * TAIL * mean))
    a_min = beta2 * s_min + rank + low + 1
    a_max = beta2 * s_max + rank + high
    count = load_rule(rules, beta2, a_min, a_max, log_z, z, work.zeta, u, work.weight)
    fill_products(work.product, u, count, sums, large)
    for r in range(count):
        A[r] = 0.0
        A_error[r] = 0.0
        A_recent[r] = 0.0
        multiplier[r] = 0.0
    if rank:
        fill_fractions(A, u, count, large, window[0])
    for i in range(low):  # these sets cannot be optimal: only A_k is needed, the multiplier is 0
        _next_value(A, A_recent, multiplier, z, u, count, window[i])
        if i % _RESTART == 0:
            _restart(A, A_error, A_recent, count)
    peak = 0.0
    for i in range(low, high):
        if (i - low) % _RESTART == 0:
            _restart(A, A_error, A_recent, count)
            for r in range(count):  # (1 + beta^2) w_r zeta_r D(zeta_r) z_r^k
                multiplier[r] = (1.0 + beta2) * work.weight[r] * work.zeta[r] * work.product[r]
                multiplier[r] *= math.exp((rank + i + 1) * log_z[r])
        set_value[i] = _next_value(A, A_recent, multiplier, z, u, count, window[i])
        peak = max(peak, set_value[i])
    return peak


@compiled
def _choose_above(p, above, chosen):
    """Mark the labels with p > above, and no others."""
    for i in range(len(p)):
        chosen[i] = p[i] > above


@compiled
def _decide_row(p, chosen, beta2, zero_division, nonempty, rules, work):
    """Mark the F-optimal set of one row in `chosen`; return its expected F.

    Returns ``NOT_PROBABILITY`` if a value of p is not in [0, 1], and NaN if `nonempty` is set and
    every p is 0.
    """
    m = len(p)
    listed_p, listed_index = work.listed_p, work.listed_index
    window, window_index = work.window, work.window_index
    n_below, set_value = work.n_below, work.set_value
    no_index = listed_index[:0]
    # One pass adds up the small labels and counts the large ones, p > 1/64. Invalid values are
    # counted among these, and found below because the counts then differ: negative ones are not
    # gathered, NaN is not above SMALL, and values above 1 are counted.
    sums = np.zeros(POWERS)
    count = m
    for start in range(0, m, CHUNK):
        n_small = add_power_sums(p, start, min(m, start + CHUNK), 0.0, SMALL, sums)
        n_below[start // CHUNK] = n_small
        count -= n_small
    # The large labels are listed, unless they are so many that reading p itself costs as much.
    listed = 4 * count < m or m <= 4 * FEW
    if listed:
        if _gather(p, n_below, ABOVE_SMALL, listed_p, listed_index) < count:
            return NOT_PROBABILITY
        found, mean, squares, n_above_one = add_moments(listed_p[:count], SMALL)
    else:
        found, mean, squares, n_above_one = add_moments(p, SMALL)
    if found < count or n_above_one:
        return NOT_PROBABILITY
    mean += sums[0]
    # An upper bound on the variance sum_i p_i (1 - p_i): squares of small labels are left out.
    moments = (beta2, mean, mean - squares)

    log_p_empty = -math.inf  # log p(y = 0) <= -mean: negligible where the mean is large
    if mean < 100.0:
        if listed:
            log_p_empty = log_probability_of_empty(sums, listed_p[:count])
        else:
            log_p_empty = log_probability_of_empty(sums, p)
    p_nonempty = -math.expm1(log_p_empty)
    empty_value = 0.0
    if nonempty:
        if p_nonempty == 0.0:
            return math.nan
    else:
        empty_value = zero_division * math.exp(log_p_empty)
        if (1.0 + beta2) * mean <= empty_value * (1.0 + TIE) * (beta2 * mean + 1.0):
            return empty_value  # T(1), which bounds every other set, is not above it

    # A first lower bound from the large labels limits how small a label can be.
    floor = empty_value
    top = 1.0
    if count == 0:
        top = largest(p)
        floor = max(floor, lower_bound(top, np.int64(1), moments))
        rank = low = high = 0
    elif listed:
        rank, low, high, floor = find_window(
            listed_p[:count], listed_index, SMALL, top, floor, moments, work
        )
    else:
        rank, low, high, floor = find_window(p, no_index, SMALL, top, floor, moments, work)
    # Labels below min_p are in no optimal set of two or more labels; lowered against rounding.
    min_p = floor / ((1.0 + beta2) * (1.0 + 1.0 / (beta2 + 2.0))) * (1.0 - 1e-9)
    if min_p < SMALL:  # small labels can be chosen: find the window again, with them
        count = m
        for start in range(0, m, CHUNK):
            n_below[start // CHUNK] = _count_below(p, start, min(m, start + CHUNK), min_p)
            count -= n_below[start // CHUNK]
        listed = 4 * count < m or m <= 4 * FEW
        if listed:
            _gather(p, n_below, min_p, listed_p, listed_index)
            rank, low, high, floor = find_window(
                listed_p[:count], listed_index, min_p, top, floor, moments, work
            )
        else:
            rank, low, high, floor = find_window(p, no_index, min_p, top, floor, moments, work)
    # Beyond this size (1 + beta^2) E / (beta^2 E + k) < floor.
    max_size = mean * ((1.0 + beta2) / floor * (1.0 + TIE) - beta2) + 1.0
    if max_size < rank + high:
        high = int(max_size) - rank
    if high <= low:
        return empty_value

    if listed:
        peak = _evaluate(listed_p[:count], m, sums, rank, low, high, moments, rules, work)
    else:
        peak = _evaluate(p, m, sums, rank, low, high, moments, rules, work)
    if not nonempty and peak <= empty_value * (1.0 + TIE):
        return empty_value
    end = low  # of equal values the smallest set is chosen
    while set_value[end] < peak * (1.0 - TIE):
        end += 1
    if rank:
        if listed:
            for i in range(count):
                if listed_p[i] > window[0]:
                    chosen[listed_index[i]] = 1
        else:
            _choose_above(p, window[0], chosen)
    for i in range(end + 1):
        chosen[window_index[i]] = 1
    return set_value[end] / p_nonempty if nonempty else set_value[end]


@entry_point
def decide_dense_rows(proba, beta2, zero_division, nonempty, rules, labels, expected):
    """Decide every row of `proba` (n, m); return the first invalid row or -1, a status, 0."""
    work = workspace(proba.shape[1], rules.longest)
    for row in range(proba.shape[0]):
        expected[row] = _decide_row(
            proba[row], labels[row], beta2, zero_division, nonempty, rules, work
        )
        if expected[row] < 0.0:
            return row, expected[row], 0
    return -1, 0.0, 0


@entry_point
def decide_csr_rows(data, indptr, beta2, zero_division, nonempty, rules, chosen, expected):
    """Decide rows in CSR form; return the first invalid row or -1, a status, 0.

    Entries that are not stored are 0 and never chosen. `chosen` (nnz,) marks stored entries.
    """
    max_length = 0
    for row in range(len(indptr) - 1):
        max_length = max(max_length, indptr[row + 1] - indptr[row])
    work = workspace(max_length, rules.longest)
    short = short_workspace(rules.longest)
    loaded_length = -1  # the row length whose rule is loaded in `short`
    first = last = rules.fixed_start[0]
    for row in range(len(indptr) - 1):
        p = data[indptr[row] : indptr[row + 1]]
        marks = chosen[indptr[row] : indptr[row + 1]]
        if len(p) > SHORT:
            expected[row] = _decide_row(p, marks, beta2, zero_division, nonempty, rules, work)
        else:
            if len(p) != loaded_length:
                loaded_length = len(p)
                first, last = load_short_rule(rules, beta2, loaded_length, short)
            z = rules.fixed_z[first:last]
            u = rules.fixed_u[first:last]
            expected[row] = decide_short_row(p, marks, beta2, zero_division, nonempty, z, u, short)
        if expected[row] < 0.0:
            return row, expected[row], 0
    return -1, 0.0, 0
