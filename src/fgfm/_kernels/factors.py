"""F-GFM: the F-optimal set of a row from the P of each of its independent label factors.

E[y_i zeta^s] = G_i(zeta) prod_{g != f(i)} D_g(zeta), so that C_ir = E[y_i zeta_r^s] at the nodes
of a quadrature rule takes one product of generating functions, and the whole P is never built. A
factor with one label costs no generating function: small ones enter through power sums, as they
do where all labels are independent.
"""

from __future__ import annotations

import math

import numpy as np

from fgfm._compile import compiled, entry_point
from fgfm._kernels.cardinalities import NOT_PROBABILITY, TOO_MUCH_MASS, rank_candidates
from fgfm._kernels.power_sums import (
    POWERS,
    SMALL,
    add_power_sums,
    fill_products,
    log_probability_of_empty,
)
from fgfm._kernels.rule import TAIL, load_rule
from fgfm._kernels.search import choose, search

__all__ = ["GROWTH", "decide_factor_rows"]

# Rates at which the tail of |y| is bounded: P(s >= x) <= exp(sum_s H_s (e^(rate s) - 1) - rate x).
GROWTH = np.array([2.0, 1.0, 0.5, 0.25, 0.125, 0.0625])


@compiled
def _read_factor(P, m, S, d, given, p, weighted, slack):
    """Fill in d (unless given), the marginals p_i and E[y_i s_f] of one factor; give a status."""
    for i in range(m):
        p[i] = 0.0
        weighted[i] = 0.0
        for s in range(S):
            x = P[i * S + s]
            if not 0.0 <= x <= 1.0:
                return NOT_PROBABILITY
            p[i] += x
            weighted[i] += x * (s + 1)
    if given:
        return 0.0
    present = 0.0
    for s in range(S):
        d[s + 1] = 0.0
        for i in range(m):
            d[s + 1] += P[i * S + s]
        d[s + 1] /= s + 1
        present += d[s + 1]
    if present > 1.0 + slack:
        return TOO_MUCH_MASS
    d[0] = max(0.0, 1.0 - present)
    return 0.0


@compiled
def _cardinality_range(histogram, longest, total, mean):
    """Give bounds on |y| that hold up to a probability of exp(-TAIL), given any y_i = 1 as well.

    `histogram` sums d_s over the factors; `longest` is the largest cardinality of one factor.
    Above: Chernoff with log(1 + x) <= x. Below: for independent non-negative s_f,
    P(s <= mean - x) <= exp(-x^2 / (2 sum_f E[s_f^2])) (Maurer 2003).
    """
    upper = float(total)
    for rate in GROWTH:
        if rate * longest < 50.0:
            load = TAIL
            for s in range(1, longest + 1):
                load += histogram[s] * math.expm1(rate * s)
            upper = min(upper, load / rate + longest)
    squares = 0.0
    for s in range(1, longest + 1):
        squares += histogram[s] * s * s
    lower = mean - longest - math.sqrt(2.0 * TAIL * squares)
    return max(1.0, lower), max(1.0, upper)


@compiled
def _fill_generating_functions(d, depths, multiple, powers, D, product):
    """Fill in D_f(zeta_r) = sum_s d_s zeta_r^s, and multiply the product over all factors."""
    count = len(product)
    at = 0
    for f in range(multiple):
        for r in range(count):
            D[f, r] = d[at]
        for s in range(1, depths[f] + 1):
            for r in range(count):
                D[f, r] += d[at + s] * powers[s, r]
        for r in range(count):
            product[r] *= D[f, r]
        at += depths[f] + 1


@compiled
def _fill_labels(values, at, m, S, label, row_of, powers, own, product, others, C):
    """Fill in C_ir = G_i(zeta_r) * (the product over the other factors) for a factor's labels.

    Row ``row_of[label + i]`` of C takes label i; labels with row -1 are left out. Where the
    factor's own value is 0, so is every G_i of it, and the quotient is not needed.
    """
    count = len(product)
    for r in range(count):
        others[r] = product[r] / own[r] if own[r] > 0.0 else 0.0
    for i in range(m):
        row = row_of[label + i]
        if row >= 0:
            for r in range(count):
                C[row, r] = 0.0
            first = at + i * S
            for s in range(0, S - 3, 4):
                p1 = values[first + s]
                p2 = values[first + s + 1]
                p3 = values[first + s + 2]
                p4 = values[first + s + 3]
                for r in range(count):
                    C[row, r] += (
                        p1 * powers[s + 1, r]
                        + p2 * powers[s + 2, r]
                        + p3 * powers[s + 3, r]
                        + p4 * powers[s + 4, r]
                    )
            for s in range(S - S % 4, S):
                p1 = values[first + s]
                for r in range(count):
                    C[row, r] += p1 * powers[s + 1, r]
            for r in range(count):
                C[row, r] *= others[r]


@compiled
def _fill_matrix(values, d, shape, row_of, sums, powers, nodes, C):
    """Fill in the rows of C, one for each candidate; give its column sums."""
    sizes, depths, _, multiple = shape
    zeta, u = nodes
    count = len(zeta)
    at = 0
    label = 0
    for f in range(multiple):
        at += sizes[f] * depths[f]
        label += sizes[f]
    singles = values[at:]
    product = np.empty(count)
    fill_products(product, u, count, sums, singles)
    D = np.empty((multiple, count))
    _fill_generating_functions(d, depths, multiple, powers, D, product)
    for j in range(len(singles)):
        row = row_of[label + j]
        if row >= 0:
            x = singles[j]
            for r in range(count):
                own = 1.0 - x * u[r]
                C[row, r] = x * zeta[r] * product[r] / own if own > 0.0 else 0.0
    others = np.empty(count)
    at = np.int64(0)
    label = np.int64(0)
    for f in range(multiple):
        _fill_labels(
            values, at, sizes[f], depths[f], label, row_of, powers, D[f], product, others, C
        )
        at += sizes[f] * depths[f]
        label += sizes[f]
    totals = np.zeros(count)
    for i in range(len(C)):
        for r in range(count):
            totals[r] += C[i, r]
    return totals


@compiled
def _decide(values, d, given, shape, slack, beta2, zero_division, nonempty, rules, chosen):
    """Mark the F-optimal set of a row; give its expected F (or a status) and the factor at fault.

    `values` holds the P of all factors, flat, factors with one label last, and `d` the
    distributions of the others.
    """
    sizes, depths, labels, multiple = shape
    m = len(labels)
    p = np.empty(m)
    weighted = np.empty(m)
    longest = np.int64(1)
    for f in range(multiple):
        longest = max(longest, depths[f])
    histogram = np.zeros(longest + 1)
    log_empty = 0.0
    mean = 0.0
    at = label = at_d = 0
    for f in range(multiple):
        k, S = sizes[f], depths[f]
        P_f = values[at : at + k * S]
        d_f = d[at_d : at_d + S + 1]
        status = _read_factor(
            P_f, k, S, d_f, given, p[label : label + k], weighted[label : label + k], slack
        )
        if status < 0.0:
            return status, f
        own_mean = 0.0
        present = 0.0
        for s in range(1, S + 1):
            histogram[s] += d_f[s]
            own_mean += s * d_f[s]
            present += d_f[s]
        for i in range(label, label + k):
            weighted[i] -= own_mean * p[i]  # the mean of the other factors is added below
        mean += own_mean
        log_empty += math.log1p(-present) if present < 1.0 else -math.inf
        at += k * S
        label += k
        at_d += S + 1
    singles = values[at:]
    for j in range(len(singles)):
        x = singles[j]
        if not 0.0 <= x <= 1.0:
            return NOT_PROBABILITY, multiple + j
        p[label + j] = x
        weighted[label + j] = x * (1.0 - x)
        histogram[1] += x
        mean += x
    sums = np.zeros(POWERS)
    add_power_sums(singles, np.int64(0), len(singles), 0.0, SMALL, sums)
    log_empty += log_probability_of_empty(sums, singles)
    present = -math.expm1(log_empty)
    if nonempty and present == 0.0:
        return math.nan, 0
    empty = -1.0 if nonempty else zero_division * math.exp(log_empty)

    for i in range(m):
        weighted[i] += mean * p[i]  # now E[y_i s]
    total_depth = len(singles)
    for f in range(multiple):
        total_depth += depths[f]
    s_min, s_max = _cardinality_range(histogram, longest, total_depth, mean)
    order = np.empty(m, dtype=np.int64)
    size, guess = rank_candidates(p, weighted, s_max, beta2, empty, order)
    if size == 0:
        return max(empty, 0.0), 0
    order = order[:size]

    log_z = np.empty(rules.longest)
    z = np.empty(rules.longest)
    zeta = np.empty(rules.longest)
    u = np.empty(rules.longest)
    weight = np.empty(rules.longest)
    count = load_rule(
        rules, beta2, beta2 * s_min + 1.0, beta2 * s_max + size, log_z, z, zeta, u, weight
    )
    powers = np.empty((longest + 1, count))
    scale = np.empty(count)
    for r in range(count):
        scale[r] = (1.0 + beta2) * weight[r]
        powers[0, r] = 1.0
        for s in range(1, longest + 1):
            powers[s, r] = powers[s - 1, r] * zeta[r]
    row_of = np.empty(m, dtype=np.int64)
    for i in range(m):
        row_of[i] = -1
    names = np.empty(size, dtype=np.int64)
    for j in range(size):
        row_of[order[j]] = j
        names[j] = labels[order[j]]
        order[j] = j
    C = np.empty((size, count))
    totals = _fill_matrix(values, d, shape, row_of, sums, powers, (zeta[:count], u[:count]), C)
    k, value, _ = search(C, order, totals, log_z[:count], scale, True, guess, empty)
    if k:
        choose(C, order, k, log_z[:count], scale, True, names, chosen)
    return value / present if nonempty else value, 0


@entry_point
def decide_factor_rows(
    values, d, given, shape, slack, beta2, zero_division, nonempty, rules, labels, expected
):
    """Decide every row of a block; give the first row that is wrong and its factor, or -1."""
    for row in range(len(values)):
        expected[row], factor = _decide(
            values[row],
            d[row],
            given,
            shape,
            slack,
            beta2,
            zero_division,
            nonempty,
            rules,
            labels[row],
        )
        if expected[row] < 0.0:
            return row, factor
    return -1, 0
