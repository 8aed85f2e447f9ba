"""Products and sums over independent labels, at the cost of eight power sums.

At every node of a quadrature rule (u = 1 - zeta) the decision needs

    D(zeta) = prod_i (1 - p_i u)      and      A(u) = sum_i p_i / (1 - p_i u).

Labels with p u <= 1/64 enter both through their power sums, whatever the number of nodes:
log(1 - p u) = - sum_j (p u)^j / j, and p / (1 - p u) = sum_j p^(j+1) u^j.
"""

from __future__ import annotations

import math

import numpy as np

from fgfm._kernels._compile import compiled, compiled_extremes, compiled_sums

__all__ = [
    "ABOVE_SMALL",
    "POWERS",
    "SMALL",
    "add_power_sums",
    "fill_fractions",
    "fill_products",
    "largest",
    "log_probability_of_empty",
]

SMALL = 1.0 / 64.0  # (1/64)^8 = 4e-15: eight power sums serve labels up to here
ABOVE_SMALL = np.nextafter(SMALL, 1.0)
POWERS = 8
_PART = 4096
_UNDERFLOW = 1e-280  # a product below this is taken into the sum of logarithms


@compiled_extremes
def largest(p):
    result = 0.0
    for i in range(len(p)):
        x = float(p[i])
        result = x if x > result else result
    return result


@compiled_sums
def add_power_sums(p, start, stop, above, upto, sums):
    """Add to `sums` the power sums of the labels with above <= p <= upto; give their number."""
    s1 = s2 = s3 = s4 = s5 = s6 = s7 = s8 = 0.0
    count = 0
    for i in range(start, stop):
        x = float(p[i])
        inside = (x >= above) & (x <= upto)
        count += inside
        y = x if inside else 0.0
        y2 = y * y
        y4 = y2 * y2
        y6 = y4 * y2
        s1 += y
        s2 += y2
        s3 += y2 * y
        s4 += y4
        s5 += y4 * y
        s6 += y6
        s7 += y6 * y
        s8 += y4 * y4
    sums[0] += s1
    sums[1] += s2
    sums[2] += s3
    sums[3] += s4
    sums[4] += s5
    sums[5] += s6
    sums[6] += s7
    sums[7] += s8
    return count


@compiled
def _add_all_power_sums(p, above, upto, sums):
    """Add the power sums part by part: rounding errors grow with the length of a part."""
    for start in range(0, len(p), _PART):
        add_power_sums(p, start, min(len(p), start + _PART), above, upto, sums)


@compiled
def log_probability_of_empty(sums, large):
    """Give log prod_i (1 - p_i)."""
    result = 0.0
    for j in range(POWERS):
        result -= sums[j] / (j + 1)
    product = 1.0
    for i in range(len(large)):
        x = float(large[i])
        if x > SMALL:
            product *= 1.0 - x
            if product < _UNDERFLOW:
                if product == 0.0:
                    return -math.inf
                result += math.log(product)
                product = 1.0
    return result + math.log(product)


@compiled
def fill_products(product, u, count, sums, large):
    """Fill in D(zeta_r) from the power sums of the small labels and an array with the large ones.

    Where every u is small, large labels too can be served by power sums.
    """
    limit = SMALL / largest(u[:count])
    if limit > SMALL:
        _add_all_power_sums(large, ABOVE_SMALL, limit, sums)
    limit = max(limit, SMALL)
    for r in range(count):
        exponent = 0.0
        for j in range(POWERS, 0, -1):
            exponent = (exponent + sums[j - 1] / j) * u[r]
        product[r] = math.exp(-exponent)
    if limit < 1.0:
        for i in range(len(large)):
            x = float(large[i])
            if x > limit:
                for r in range(count):
                    product[r] *= 1.0 - x * u[r]


@compiled
def fill_fractions(total, u, count, large, above):
    """Fill in A(u_r) for the labels with p > above."""
    limit = max(above, SMALL / largest(u[:count]))
    sums = np.zeros(POWERS)
    _add_all_power_sums(large, np.nextafter(above, 2.0), limit, sums)
    for r in range(count):
        total[r] = 0.0
        for j in range(POWERS - 1, -1, -1):
            total[r] = total[r] * u[r] + sums[j]
    if limit < 1.0:
        for i in range(len(large)):
            x = float(large[i])
            if x > limit:
                for r in range(count):
                    total[r] += x / (1.0 - x * u[r])
