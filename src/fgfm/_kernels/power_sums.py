"""Products and sums over independent labels from eight power sums.

At every node of a quadrature rule, with u = 1 - zeta, the decision needs

    D(zeta) = prod_i (1 - p_i u)      and      A(u) = sum_i p_i / (1 - p_i u).

Labels with p u <= 1/64 enter both through their power sums sum_i p_i^j, at a cost that does not
depend on the number of nodes (docs/design.md, "Independent labels"):

    log(1 - p u) = - sum_j (p u)^j / j,      p / (1 - p u) = sum_j p^(j + 1) u^j.
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

POWERS = 8
SMALL = 1.0 / 64.0  # (1/64)^8 = 4e-15: eight power sums suffice for labels with p u up to this
ABOVE_SMALL = np.nextafter(SMALL, 1.0)
_PART = 4096  # labels whose power sums are accumulated together
_UNDERFLOW = 1e-280  # a product below this is moved into a sum of logarithms


@compiled_extremes
def largest(p):
    """Return the largest value of a non-negative array."""
    result = 0.0
    for i in range(len(p)):
        x = float(p[i])
        result = x if x > result else result
    return result


@compiled_sums
def add_power_sums(p, start, stop, above, upto, sums):
    """Add the power sums of the labels with above <= p <= upto to `sums`; return their number.

    Only ``p[start:stop]`` is read; ``sums[j - 1]`` is the sum of p^j. There are no branches and no
    inner loop, so that the compiler uses vector registers.
    """
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
    """Add the power sums of the labels with above <= p <= upto, in parts.

    Rounding errors grow with the length of a part, not with that of the row.
    """
    for start in range(0, len(p), _PART):
        add_power_sums(p, start, min(len(p), start + _PART), above, upto, sums)


@compiled
def log_probability_of_empty(sums, large):
    """Return log prod_i (1 - p_i).

    `sums` are the power sums of the labels with p <= SMALL; `large` contains all others, and may
    contain the former as well.
    """
    result = 0.0
    for j in range(POWERS):
        result -= sums[j] / (j + 1)
    # One logarithm for many labels: the product is kept until it is about to underflow.
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
    """Fill ``product[r] = D(zeta_r)``, r < count.

    `sums` are the power sums of the labels with p <= SMALL; `large` contains all others, and may
    contain the former as well. Labels of `large` are added to `sums` where every u is so small
    that p u <= 1/64 for them too.
    """
    limit = SMALL / largest(u[:count])
    if limit > SMALL:
        _add_all_power_sums(large, ABOVE_SMALL, limit, sums)
    limit = max(limit, SMALL)
    for r in range(count):
        exponent = 0.0  # sum_j sums_j u^j / j, by Horner's scheme
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
def fill_fractions(A, u, count, large, above):
    """Fill ``A[r] = sum_i p_i / (1 - p_i u_r)``, r < count, over the labels with p > above."""
    limit = max(above, SMALL / largest(u[:count]))
    sums = np.zeros(POWERS)
    _add_all_power_sums(large, np.nextafter(above, 2.0), limit, sums)
    for r in range(count):
        A[r] = 0.0  # sum_j sums_(j + 1) u^j, by Horner's scheme
        for j in range(POWERS - 1, -1, -1):
            A[r] = A[r] * u[r] + sums[j]
    if limit < 1.0:
        for i in range(len(large)):
            x = float(large[i])
            if x > limit:
                for r in range(count):
                    A[r] += x / (1.0 - x * u[r])
