"""Independent labels: the F-optimal set of a row in one pass over its probabilities.

With u = 1 - zeta, the best set of size k holds the k largest marginals and is worth

    V_k = (1 + beta^2) sum_r w_r z_r^k zeta_r D(zeta_r) A_k(u_r),
    D(zeta) = prod_i (1 - p_i u),      A_k(u) = sum_{i <= k} p_i / (1 - p_i u).

Bounds decide what of this has to be computed:

- an optimal set of two or more labels holds no label with
  p (1 + beta^2) (1 + 1 / (beta^2 + 2)) < V (leaving the label out would gain): labels below are
  not even listed;
- V_k <= (1 + beta^2) E / (beta^2 E + k), which is T(k) by Jensen: larger sets are not looked at;
- the bounds of the module `window` for single ranks.
"""

from __future__ import annotations

import math

import numpy as np

from fgfm._kernels._compile import compiled, compiled_sums, entry_point
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
from fgfm._kernels.rule import NOT_PROBABILITY, TAIL, TIE, largest_cardinality, load_rule
from fgfm._kernels.short import SHORT, decide_short_row, load_short_rule, short_space
from fgfm._kernels.window import FEW, add_moments, find_window, lower_bound
from fgfm._kernels.workspace import CHUNK, workspace

__all__ = ["decide_csr_rows", "decide_dense_rows"]

_RESTART = 64  # powers of z are advanced by multiplication for so many steps


@compiled_sums
def _count_below(p, start, stop, threshold):
    count = 0
    for i in range(start, stop):
        count += p[i] < threshold
    return count


@compiled
def _gather(p, below, threshold, value, place):
    """Collect what is not below `threshold` in the order of its places; give the number.

    `below` tells for each chunk how many labels are.
    """
    count = 0
    m = len(p)
    for start in range(0, m, CHUNK):
        stop = min(m, start + CHUNK)
        if below[start // CHUNK] < stop - start:
            for i in range(start, stop):
                x = float(p[i])
                value[count] = x
                place[count] = i
                count += not x < threshold
    return count


@compiled_sums
def _next_value(total, part, factor, z, u, count, x):
    """Add a label to A_k, give V_k and advance the powers of z."""
    result = 0.0
    for r in range(count):
        part[r] += x / (1.0 - x * u[r])
        result += factor[r] * (total[r] + part[r])
        factor[r] *= z[r]
    return result


@compiled
def _restart(total, carry, part, count):
    """Add to A_k what has come since the last time, with what rounding then kept out (Kahan)."""
    for r in range(count):
        y = part[r] - carry[r]
        t = total[r] + y
        carry[r] = (t - total[r]) - y
        total[r] = t
        part[r] = 0.0


@compiled
def _evaluate(large, m, sums, rank, low, high, moments, rules, work):
    """Fill in the values of the sets that end in [low, high) of the window; give the peak.

    `large` holds every label above ``SMALL`` and every label above the window; `m` is the number
    of all labels.
    """
    beta2, mean, _ = moments
    window, set_value, log_z, z, u = work.window, work.set_value, work.log_z, work.z, work.u
    total, carry, part, factor = work.total, work.carry, work.part, work.factor
    s_max = min(float(m), 1.0 + largest_cardinality(mean))
    s_min = max(1.0, mean - math.sqrt(2.0 * TAIL * mean))
    a_min = beta2 * s_min + rank + low + 1
    a_max = beta2 * s_max + rank + high
    count = load_rule(rules, beta2, a_min, a_max, log_z, z, work.zeta, u, work.weight)
    fill_products(work.product, u, count, sums, large)
    for r in range(count):
        total[r] = 0.0
        carry[r] = 0.0
        part[r] = 0.0
        factor[r] = 0.0
    if rank:
        fill_fractions(total, u, count, large, window[0])
    for i in range(low):
        _next_value(total, part, factor, z, u, count, window[i])
        if i % _RESTART == 0:
            _restart(total, carry, part, count)
    peak = 0.0
    for i in range(low, high):
        if (i - low) % _RESTART == 0:
            _restart(total, carry, part, count)
            for r in range(count):
                factor[r] = (1.0 + beta2) * work.weight[r] * work.zeta[r] * work.product[r]
                factor[r] *= math.exp((rank + i + 1) * log_z[r])
        set_value[i] = _next_value(total, part, factor, z, u, count, window[i])
        peak = max(peak, set_value[i])
    return peak


@compiled
def _choose_above(large, above, chosen):
    for i in range(len(large)):
        chosen[i] = large[i] > above


@compiled
def _decide_row(p, chosen, beta2, zero_division, nonempty, rules, work):
    """Mark the F-optimal set of one row in `chosen`; give its expected F.

    ``NOT_PROBABILITY`` says that a value of p is not in [0, 1], and NaN that the row leaves no
    mass for the non-empty sets that `nonempty` asks for.
    """
    m = len(p)
    value, place, window, window_place = work.value, work.place, work.window, work.window_place
    below, set_value = work.below, work.set_value
    nowhere = place[:0]
    sums = np.zeros(POWERS)
    count = m
    for start in range(0, m, CHUNK):
        inside = add_power_sums(p, start, min(m, start + CHUNK), 0.0, SMALL, sums)
        below[start // CHUNK] = inside
        count -= inside
    # The large labels are listed, unless they are so many that p itself is as good.
    listed = 4 * count < m or m <= 4 * FEW
    if listed:
        if _gather(p, below, ABOVE_SMALL, value, place) < count:
            return NOT_PROBABILITY
        found, mean, squares, bad = add_moments(value[:count], SMALL)
    else:
        found, mean, squares, bad = add_moments(p, SMALL)
    if found < count or bad:
        return NOT_PROBABILITY
    mean += sums[0]
    moments = (beta2, mean, mean - squares)

    log_empty = -math.inf
    if mean < 100.0:
        if listed:
            log_empty = log_probability_of_empty(sums, value[:count])
        else:
            log_empty = log_probability_of_empty(sums, p)
    present = -math.expm1(log_empty)  # P(y != 0)
    empty = 0.0
    if nonempty:
        if present == 0.0:
            return math.nan
    else:
        empty = zero_division * math.exp(log_empty)
        if (1.0 + beta2) * mean <= empty * (1.0 + TIE) * (beta2 * mean + 1.0):
            return empty  # T(1) is no more than the worth of the empty set

    # A first bound from the large labels tells how small a label can still matter.
    floor = empty
    top = 1.0
    if count == 0:
        top = largest(p)
        floor = max(floor, lower_bound(top, np.int64(1), moments))
        rank = low = high = 0
    elif listed:
        rank, low, high, floor = find_window(
            value[:count], place, SMALL, top, floor, moments, work
        )
    else:
        rank, low, high, floor = find_window(p, nowhere, SMALL, top, floor, moments, work)
    least = floor / ((1.0 + beta2) * (1.0 + 1.0 / (beta2 + 2.0))) * (1.0 - 1e-9)
    if least < SMALL:
        count = m
        for start in range(0, m, CHUNK):
            below[start // CHUNK] = _count_below(p, start, min(m, start + CHUNK), least)
            count -= below[start // CHUNK]
        listed = 4 * count < m or m <= 4 * FEW
        if listed:
            _gather(p, below, least, value, place)
            rank, low, high, floor = find_window(
                value[:count], place, least, top, floor, moments, work
            )
        else:
            rank, low, high, floor = find_window(p, nowhere, least, top, floor, moments, work)
    most = mean * ((1.0 + beta2) / floor * (1.0 + TIE) - beta2) + 1.0  # T(k) < floor beyond
    if most < rank + high:
        high = int(most) - rank
    if high <= low:
        return empty

    if listed:
        peak = _evaluate(value[:count], m, sums, rank, low, high, moments, rules, work)
    else:
        peak = _evaluate(p, m, sums, rank, low, high, moments, rules, work)
    if not nonempty and peak <= empty * (1.0 + TIE):
        return empty
    end = low
    while set_value[end] < peak * (1.0 - TIE):
        end += 1
    if rank:
        if listed:
            for i in range(count):
                if value[i] > window[0]:
                    chosen[place[i]] = 1
        else:
            _choose_above(p, window[0], chosen)
    for i in range(end + 1):
        chosen[window_place[i]] = 1
    return set_value[end] / present if nonempty else set_value[end]


@entry_point
def decide_dense_rows(proba, beta2, zero_division, nonempty, rules, labels, expected):
    """Decide every row of a dense block; give the first that is wrong, or -1, a status, 0."""
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
    """Decide rows stored as in CSR: `chosen` marks stored elements; else as for dense rows."""
    most = 0
    for row in range(len(indptr) - 1):
        most = max(most, indptr[row + 1] - indptr[row])
    work = workspace(most, rules.longest)
    short = short_space(rules.longest)
    length = -1  # that the rule in `short` is for
    first = last = rules.fixed_start[0]
    for row in range(len(indptr) - 1):
        p = data[indptr[row] : indptr[row + 1]]
        marks = chosen[indptr[row] : indptr[row + 1]]
        if len(p) > SHORT:
            expected[row] = _decide_row(p, marks, beta2, zero_division, nonempty, rules, work)
        else:
            if len(p) != length:
                length = len(p)
                first, last = load_short_rule(rules, beta2, length, short)
            z = rules.fixed_z[first:last]
            u = rules.fixed_u[first:last]
            expected[row] = decide_short_row(p, marks, beta2, zero_division, nonempty, z, u, short)
        if expected[row] < 0.0:
            return row, expected[row], 0
    return -1, 0.0, 0
