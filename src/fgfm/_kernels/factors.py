"""F-GFM: decide from the P of independent label factors (Gasse and Aussem, 2016).

For label i of factor f, with generating functions of its factor and of the others,

    E[y_i zeta^s] = G_i(zeta) prod_{g != f} D_g(zeta),
    G_i(zeta) = sum_s p^f_is zeta^s,      D_g(zeta) = sum_s d^g_s zeta^s.

So C_ir = E[y_i zeta_r^s] at the nodes of a quadrature rule takes one product of generating
functions, and the P of all labels is never built (docs/design.md, "Factors"). Factors of one label
need no generating function: small ones enter through power sums, as in `marginals`.

The kernels describe the factors by `layout`, a tuple of

    sizes    (F,) the number of labels of each factor, m_f
    depths   (F,) its largest cardinality, S_f
    labels   (m,) the labels of all factors, one factor after the other
    n_multi  the number of factors with more than one label; these come first

and `values`, the P of all factors in that order, flat: (sum_f m_f S_f,). `d` contains the
distributions of the first n_multi factors, flat: (sum_f (S_f + 1),).
"""

from __future__ import annotations

import math

import numpy as np

from fgfm._kernels._compile import compiled, entry_point
from fgfm._kernels.candidates import rank_candidates
from fgfm._kernels.constants import NOT_PROBABILITY, TIE, TOO_MUCH_MASS
from fgfm._kernels.power_sums import (
    POWERS,
    SMALL,
    add_power_sums,
    fill_products,
    log_probability_of_empty,
)
from fgfm._kernels.quadrature import TAIL, load_rule
from fgfm._kernels.search import choose, search

__all__ = ["GROWTH", "decide_factor_rows", "decide_sparse_factor_rows"]

# Rates at which the tail of s = |y| is bounded, with H_s = sum_f d^f_s:
# P(s >= x) <= exp(sum_s H_s (e^(rate s) - 1) - rate x).
GROWTH = np.array([2.0, 1.0, 0.5, 0.25, 0.125, 0.0625])


@compiled
def _read_factors(values, d, d_given, layout, slack, p, covariance, H):
    """Read and validate the factors with more than one label.

    Fills `d` unless it is given, the marginals p_i, the covariances E[y_i (s_f - E s_f)] and H_s,
    the sum of the distributions of the factors. Returns a status, the factor to which it refers,
    the mean of |y| and log p(y = 0) over these factors.
    """
    sizes, depths, _, n_multi = layout
    mean = 0.0
    log_p_empty = 0.0
    at = label = at_d = 0  # positions in `values`, among the labels, and in `d`
    for f in range(n_multi):
        m_f = sizes[f]
        S_f = depths[f]
        if not d_given:
            for s in range(1, S_f + 1):
                d[at_d + s] = 0.0
        for i in range(m_f):
            p_i = 0.0
            ys_i = 0.0
            for s in range(1, S_f + 1):
                x = values[at]
                if not 0.0 <= x <= 1.0:
                    return NOT_PROBABILITY, f, 0.0, 0.0
                p_i += x
                ys_i += x * s
                if not d_given:
                    d[at_d + s] += x
                at += 1
            if p_i > 1.0 + slack:
                return TOO_MUCH_MASS, f, 0.0, 0.0
            p[label + i] = p_i
            covariance[label + i] = ys_i
        p_nonempty = 0.0
        mean_f = 0.0
        for s in range(1, S_f + 1):
            if not d_given:
                d[at_d + s] /= s  # d_s = (1/s) sum_i p_is
            p_nonempty += d[at_d + s]
            mean_f += s * d[at_d + s]
            H[s] += d[at_d + s]
        if not d_given:
            if p_nonempty > 1.0 + slack:
                return TOO_MUCH_MASS, f, 0.0, 0.0
            d[at_d] = max(0.0, 1.0 - p_nonempty)
        for i in range(m_f):
            covariance[label + i] -= mean_f * p[label + i]
        mean += mean_f
        if p_nonempty < 0.5:
            log_p_empty += math.log1p(-p_nonempty)
        else:  # a given d_0 can be far smaller than the rounding error of 1 - p_nonempty
            log_p_empty += math.log(d[at_d]) if d[at_d] > 0.0 else -math.inf
        label += m_f
        at_d += S_f + 1
    return 0.0, 0, mean, log_p_empty


@compiled
def _cardinality_range(H, max_depth, total_depth, mean):
    """Return bounds on |y| that hold with probability 1 - exp(-TAIL), also given any y_i = 1.

    Above, Chernoff's bound with log(1 + x) <= x; below, for independent non-negative s_f,
    P(s <= mean - x) <= exp(-x^2 / (2 sum_f E[s_f^2])) (Maurer, 2003). Given y_i = 1, the factor of
    label i changes, and with it |y| by at most `max_depth`, the largest S_f.
    """
    upper = float(total_depth)
    for rate in GROWTH:
        if rate * max_depth < 50.0:  # no overflow
            exponent = TAIL
            for s in range(1, max_depth + 1):
                exponent += H[s] * math.expm1(rate * s)
            upper = min(upper, exponent / rate + max_depth)
    squares = 0.0  # sum_f E[s_f^2]
    for s in range(1, max_depth + 1):
        squares += H[s] * s * s
    lower = mean - max_depth - math.sqrt(2.0 * TAIL * squares)
    return max(1.0, lower), max(1.0, upper)


@compiled
def _fill_generating_functions(d, depths, n_multi, powers, D, product):
    """Fill D_f(zeta_r) = sum_s d_s zeta_r^s, and multiply `product` by all of them.

    ``powers[s, r]`` is zeta_r^s.
    """
    count = len(product)
    at = 0
    for f in range(n_multi):
        for r in range(count):
            D[f, r] = d[at]
        for s in range(1, depths[f] + 1):
            for r in range(count):
                D[f, r] += d[at + s] * powers[s, r]
        for r in range(count):
            product[r] *= D[f, r]
        at += depths[f] + 1


@compiled
def _fill_labels(values, layout, row_of, powers, D, product, C, totals):
    """Fill C_ir = G_i(zeta_r) prod_{g != f} D_g(zeta_r), and add to its column sums.

    Label i has row ``row_of[i]`` of C, or none if that is -1. Where D_f(zeta_r) is 0, so is every
    G_i of the factor, and the product over the other factors is not needed.
    """
    sizes, depths, _, n_multi = layout
    count = len(product)
    others = np.empty(count)
    at = label = 0
    for f in range(n_multi):
        S_f = depths[f]
        for r in range(count):
            others[r] = product[r] / D[f, r] if D[f, r] > 0.0 else 0.0
        for _ in range(sizes[f]):
            row = row_of[label]
            if row >= 0:
                for r in range(count):
                    C[row, r] = 0.0
                for s in range(0, S_f - 3, 4):  # four cardinalities per pass over the nodes
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
                for s in range(S_f - S_f % 4, S_f):
                    p1 = values[at + s]
                    for r in range(count):
                        C[row, r] += p1 * powers[s + 1, r]
                for r in range(count):
                    C[row, r] *= others[r]
                    totals[r] += C[row, r]
            at += S_f
            label += 1


@compiled
def _fill_matrix(values, d, layout, row_of, sums, powers, nodes, C):
    """Fill the rows of C, one per candidate; return its column sums.

    `sums` are the power sums of the small factors of one label, `nodes` is (zeta, u).
    """
    sizes, depths, _, n_multi = layout
    zeta, u = nodes
    count = len(zeta)
    at = 0
    label = 0
    for f in range(n_multi):
        at += sizes[f] * depths[f]
        label += sizes[f]
    single_p = values[at:]
    product = np.empty(count)  # prod_f D_f(zeta_r)
    fill_products(product, u, count, sums, single_p)
    D = np.empty((n_multi, count))
    _fill_generating_functions(d, depths, n_multi, powers, D, product)
    totals = np.zeros(count)
    for j in range(len(single_p)):
        row = row_of[label + j]
        if row >= 0:
            x = single_p[j]
            for r in range(count):  # G = p zeta and D = 1 - p u
                own = 1.0 - x * u[r]
                C[row, r] = x * zeta[r] * product[r] / own if own > 0.0 else 0.0
                totals[r] += C[row, r]
    _fill_labels(values, layout, row_of, powers, D, product, C, totals)
    return totals


@compiled
def _decide_row(values, d, d_given, layout, slack, beta2, zero_division, nonempty, rules, chosen):
    """Mark the F-optimal set of a row; return its expected F, or a status, and the invalid factor.

    The expected F is NaN if `nonempty` is set and the row has no mass for non-empty sets.
    """
    sizes, depths, labels, n_multi = layout
    m = len(labels)
    p = np.empty(m)
    expected_ys = np.empty(m)  # first the covariances E[y_i (s_f - E s_f)]
    max_depth = np.int64(1)
    for f in range(n_multi):
        max_depth = max(max_depth, depths[f])
    H = np.zeros(max_depth + 1)
    status, f, mean, log_p_empty = _read_factors(
        values, d, d_given, layout, slack, p, expected_ys, H
    )
    if status < 0.0:
        return status, f
    at = label = 0
    for f in range(n_multi):
        at += sizes[f] * depths[f]
        label += sizes[f]
    single_p = values[at:]
    for j in range(len(single_p)):
        x = single_p[j]
        if not 0.0 <= x <= 1.0:
            return NOT_PROBABILITY, n_multi + j
        p[label + j] = x
        expected_ys[label + j] = x * (1.0 - x)
        H[1] += x
        mean += x
    sums = np.zeros(POWERS)
    add_power_sums(single_p, np.int64(0), len(single_p), 0.0, SMALL, sums)
    log_p_empty += log_probability_of_empty(sums, single_p)
    p_nonempty = -math.expm1(log_p_empty)
    if nonempty and p_nonempty == 0.0:
        return math.nan, 0
    empty_value = -1.0 if nonempty else zero_division * math.exp(log_p_empty)

    for i in range(m):
        expected_ys[i] += mean * p[i]  # E[y_i s] = E[y_i (s_f - E s_f)] + p_i E s
    total_depth = len(single_p)
    for f in range(n_multi):
        total_depth += depths[f]
    s_min, s_max = _cardinality_range(H, max_depth, total_depth, mean)
    order = np.empty(m, dtype=np.int64)
    size, guess, floor = rank_candidates(p, expected_ys, s_max, beta2, empty_value, order)
    if size == 0:
        return math.nan if nonempty else empty_value, 0
    order = order[:size]
    limit = size
    if not d_given:  # T(k) <= (1 + beta^2) E / (beta^2 E + k), by Jensen's inequality
        max_size = mean * ((1.0 + beta2) / floor * (1.0 + TIE) - beta2) + 1.0
        limit = size if max_size >= size else max(np.int64(1), int(max_size))

    log_z = np.empty(rules.longest)
    z = np.empty(rules.longest)
    zeta = np.empty(rules.longest)
    u = np.empty(rules.longest)
    weight = np.empty(rules.longest)
    count = load_rule(
        rules, beta2, beta2 * s_min + 1.0, beta2 * s_max + limit, log_z, z, zeta, u, weight
    )
    powers = np.empty((max_depth + 1, count))  # zeta_r^s
    scale = np.empty(count)
    for r in range(count):
        scale[r] = (1.0 + beta2) * weight[r]
        powers[0, r] = 1.0
        for s in range(1, max_depth + 1):
            powers[s, r] = powers[s - 1, r] * zeta[r]
    # From here on, candidates are numbered by their rows in C.
    row_of = np.empty(m, dtype=np.int64)
    for i in range(m):
        row_of[i] = -1
    label_of = np.empty(size, dtype=np.int64)
    for j in range(size):
        row_of[order[j]] = j
        label_of[j] = labels[order[j]]
        order[j] = j
    C = np.empty((size, count))
    totals = _fill_matrix(values, d, layout, row_of, sums, powers, (zeta[:count], u[:count]), C)
    best_order = np.empty(size, dtype=np.int64)
    best_delta = np.empty(size)
    # Delta_ik = (1 + beta^2) sum_r w_r z_r^k C_ir
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
        empty_value,
        best_order,
        best_delta,
    )
    if k:
        choose(best_order, best_delta, k, label_of, chosen)
    return value / p_nonempty if nonempty else value, 0


@entry_point
def decide_factor_rows(
    values, d, d_given, layout, slack, beta2, zero_division, nonempty, rules, labels, expected
):
    """Decide every row; return the first invalid row or -1, a status, and the invalid factor.

    `values` is (n, sum_f m_f S_f) and `d` (n, sum_f (S_f + 1)); `d` is filled unless `d_given`.
    `slack` is how far sums of probabilities may exceed 1.
    """
    for row in range(len(values)):
        expected[row], factor = _decide_row(
            values[row],
            d[row],
            d_given,
            layout,
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
    indices,
    indptr,
    d,
    width,
    layout,
    slack,
    beta2,
    zero_division,
    nonempty,
    rules,
    found,
    ends,
    expected,
):
    """Decide rows that store further factors of one label each, as in CSR.

    `values` is flat and contains, for each row, the `width` values of the factors in `layout`
    followed by the marginals that the row stores; ``indices[indptr[row]:indptr[row + 1]]`` are the
    labels of these. `d` is scratch space for one row. Fills `found` with the chosen labels, row by
    row in ascending order, and `ends` with the position where each row ends. Returns the same as
    `decide_factor_rows`.
    """
    sizes, depths, dense_labels, n_multi = layout
    count = 0
    for row in range(len(indptr) - 1):
        start = indptr[row]
        stop = indptr[row + 1]
        # The row is decided with its labels renumbered 0, 1, ... in ascending order.
        label_of = np.concatenate((dense_labels, indices[start:stop]))
        order = np.argsort(label_of)
        rank = np.empty_like(order)
        for j in range(len(order)):
            rank[order[j]] = j
        chosen = np.zeros(len(label_of), dtype=np.int8)
        at = row * width + start
        expected[row], factor = _decide_row(
            values[at : at + width + stop - start],
            d,
            False,
            (sizes, depths, rank, n_multi),
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
                found[count] = label_of[order[j]]
                count += 1
        ends[row] = count
    return -1, 0.0, 0
