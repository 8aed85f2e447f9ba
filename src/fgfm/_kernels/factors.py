"""F-GFM: the F-optimal set of a row from the P of each of its independent label factors.

E[y_i zeta^s] = G_i(zeta) prod_{g != f(i)} D_g(zeta), so that C_ir = E[y_i zeta_r^s] at the nodes
of a quadrature rule takes one product of generating functions, and the whole P is never built. A
factor with one label costs no generating function: small ones enter through power sums, as they
do where all labels are independent.
"""

from __future__ import annotations

import math

import numpy as np

from fgfm._kernels._compile import compiled, entry_point
from fgfm._kernels.cardinalities import rank_candidates
from fgfm._kernels.power_sums import (
    POWERS,
    SMALL,
    add_power_sums,
    fill_products,
    log_probability_of_empty,
)
from fgfm._kernels.rule import NOT_PROBABILITY, TAIL, TIE, TOO_MUCH_MASS, load_rule
from fgfm._kernels.search import choose, search

__all__ = ["GROWTH", "decide_factor_rows", "decide_sparse_factor_rows"]

# Rates at which the tail of |y| is bounded: P(s >= x) <= exp(sum_s H_s (e^(rate s) - 1) - rate x).
GROWTH = np.array([2.0, 1.0, 0.5, 0.25, 0.125, 0.0625])


@compiled
def _read_factors(values, d, given, shape, slack, p, weighted, histogram):
    """Read the factors of more than one label.

    Fills in the distributions d (unless given), the marginals p_i, E[y_i (s_f - E s_f)], and the
    sum of the distributions. Gives a status, the factor it belongs to, the mean of |y| and
    log p(no label) of these factors.
    """
    sizes, depths, _, multiple = shape
    mean = 0.0
    log_empty = 0.0
    at = label = at_d = 0
    for f in range(multiple):
        m = sizes[f]
        S = depths[f]
        if not given:
            for s in range(1, S + 1):
                d[at_d + s] = 0.0
        for i in range(m):
            total = 0.0
            load = 0.0
            for s in range(1, S + 1):
                x = values[at]
                if not 0.0 <= x <= 1.0:
                    return NOT_PROBABILITY, f, 0.0, 0.0
                total += x
                load += x * s
                if not given:
                    d[at_d + s] += x
                at += 1
            if total > 1.0 + slack:
                return TOO_MUCH_MASS, f, 0.0, 0.0
            p[label + i] = total
            weighted[label + i] = load
        present = 0.0
        own_mean = 0.0
        for s in range(1, S + 1):
            if not given:
                d[at_d + s] /= s
            present += d[at_d + s]
            own_mean += s * d[at_d + s]
            histogram[s] += d[at_d + s]
        if not given:
            if present > 1.0 + slack:
                return TOO_MUCH_MASS, f, 0.0, 0.0
            d[at_d] = max(0.0, 1.0 - present)
        for i in range(m):
            weighted[label + i] -= own_mean * p[label + i]
        mean += own_mean
        if present < 0.5:
            log_empty += math.log1p(-present)
        else:  # a given d_0 may be far smaller than the rounding of the others' sum
            log_empty += math.log(d[at_d]) if d[at_d] > 0.0 else -math.inf
        label += m
        at_d += S + 1
    return 0.0, 0, mean, log_empty


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
def _fill_labels(values, shape, row_of, powers, D, product, C, totals):
    """Fill in C_ir = G_i(zeta_r) * (the product over the other factors), and add to column sums.

    Row ``row_of[i]`` of C takes label i; labels with row -1 are left out. Where the value of a
    factor is 0, so is every G_i of it, and the quotient is not needed.
    """
    sizes, depths, _, multiple = shape
    count = len(product)
    others = np.empty(count)
    at = label = 0
    for f in range(multiple):
        S = depths[f]
        for r in range(count):
            others[r] = product[r] / D[f, r] if D[f, r] > 0.0 else 0.0
        for _ in range(sizes[f]):
            row = row_of[label]
            if row >= 0:
                for r in range(count):
                    C[row, r] = 0.0
                for s in range(0, S - 3, 4):
                    p1 = values[at + s]
                    p2 = values[at + s + 1]
                    p3 = values[at + s + 2]
                    p4 = values[at + s + 3]
                    for r in range(count):
                        C[row, r] += (
                            p1 * powers[s + 1, r]
                            + p2 * powers[s + 2, r]
                            + p3 * powers[s + 3, r]
                            + p4 * powers[s + 4, r]
                        )
                for s in range(S - S % 4, S):
                    p1 = values[at + s]
                    for r in range(count):
                        C[row, r] += p1 * powers[s + 1, r]
                for r in range(count):
                    C[row, r] *= others[r]
                    totals[r] += C[row, r]
            at += S
            label += 1


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
    totals = np.zeros(count)
    for j in range(len(singles)):
        row = row_of[label + j]
        if row >= 0:
            x = singles[j]
            for r in range(count):
                own = 1.0 - x * u[r]
                C[row, r] = x * zeta[r] * product[r] / own if own > 0.0 else 0.0
                totals[r] += C[row, r]
    _fill_labels(values, shape, row_of, powers, D, product, C, totals)
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
    status, f, mean, log_empty = _read_factors(
        values, d, given, shape, slack, p, weighted, histogram
    )
    if status < 0.0:
        return status, f
    at = label = 0
    for f in range(multiple):
        at += sizes[f] * depths[f]
        label += sizes[f]
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
    size, guess, floor = rank_candidates(p, weighted, s_max, beta2, empty, order)
    if size == 0:
        return math.nan if nonempty else empty, 0
    order = order[:size]
    limit = size
    if not given:  # T(k) <= (1 + beta^2) E / (beta^2 E + k), by Jensen
        most = mean * ((1.0 + beta2) / floor * (1.0 + TIE) - beta2) + 1.0
        limit = size if most >= size else max(np.int64(1), int(most))

    log_z = np.empty(rules.longest)
    z = np.empty(rules.longest)
    zeta = np.empty(rules.longest)
    u = np.empty(rules.longest)
    weight = np.empty(rules.longest)
    count = load_rule(
        rules, beta2, beta2 * s_min + 1.0, beta2 * s_max + limit, log_z, z, zeta, u, weight
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
    best_order = np.empty(size, dtype=np.int64)
    best_delta = np.empty(size)
    k, value, _ = search(
        C,
        order,
        totals,
        log_z[:count],
        scale,
        True,
        limit,
        guess,
        floor,
        empty,
        best_order,
        best_delta,
    )
    if k:
        choose(best_order, best_delta, k, names, chosen)
    return value / present if nonempty else value, 0


@entry_point
def decide_factor_rows(
    values, d, given, shape, slack, beta2, zero_division, nonempty, rules, labels, expected
):
    """Decide every row of a block; give the first that is wrong, or -1, a status, a factor."""
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
            return row, expected[row], factor
    return -1, 0.0, 0


@entry_point
def decide_sparse_factor_rows(
    values,
    stored,
    indptr,
    d,
    width,
    shape,
    slack,
    beta2,
    zero_division,
    nonempty,
    rules,
    found,
    ends,
    expected,
):
    """Decide rows that store further factors of one label each, as in CSR; else as above.

    `stored` names their labels. `values` holds for each row the `width` values of the factors that
    all rows have, then the marginals that it stores. Fills in the chosen labels, row after row and
    in order, and where each row ends.
    """
    sizes, depths, fixed, multiple = shape
    count = 0
    for row in range(len(indptr) - 1):
        start = indptr[row]
        stop = indptr[row + 1]
        names = np.concatenate((fixed, stored[start:stop]))
        order = np.argsort(names)
        rank = np.empty_like(order)
        for j in range(len(order)):
            rank[order[j]] = j
        chosen = np.zeros(len(names), dtype=np.int8)
        at = row * width + start
        expected[row], factor = _decide(
            values[at : at + width + stop - start],
            d,
            False,
            (sizes, depths, rank, multiple),
            slack,
            beta2,
            zero_division,
            nonempty,
            rules,
            chosen,
        )
        if expected[row] < 0.0:
            return row, expected[row], factor
        for j in range(len(chosen)):
            if chosen[j]:
                found[count] = names[order[j]]
                count += 1
        ends[row] = count
    return -1, 0.0, 0
