"""The quadrature rule of a row: docs/design.md, "Separating s from k".

A rule has positive weights w_r and nodes 0 < z_r < 1 with

    sum_r w_r z_r^a = 1 / a     for all a = beta^2 s + k in [a_min, a_max].

The shorter the range, the fewer nodes it takes. The range of a row covers the set sizes k that can
be optimal and the cardinalities s that are not too improbable.
"""

from __future__ import annotations

import math

from fgfm._kernels._compile import compiled

__all__ = ["TAIL", "largest_cardinality", "load_rule"]

TAIL = 34.0  # cardinalities of total probability exp(-TAIL) = 2e-15 may lie outside the range


@compiled
def largest_cardinality(mean):
    """Return x with P(s >= x) <= exp(-TAIL), s a sum of independent 0/1 variables of this mean.

    By Chernoff's bound, P(s >= x) <= exp(-(x log(x / mean) - x + mean)).
    """
    if mean < 1e-15:
        return 1.0  # P(s >= 1) <= mean, by Markov's inequality
    # Bernstein's bound has a closed form and is looser. Newton's iteration for
    # x log(x / mean) - x + mean = TAIL starts there; the left side is convex and increasing, so
    # that the iterates stay above the root and each of them is a bound.
    x = mean + TAIL / 3.0 + math.sqrt(TAIL * TAIL / 9.0 + 2.0 * TAIL * mean)
    for _ in range(3):
        slope = math.log(x / mean)
        x -= (x * slope - x + mean - TAIL) / slope
    return x


@compiled
def load_rule(rules, beta2, a_min, a_max, log_z, z, zeta, u, weight):
    """Load the shortest rule for [a_min, a_max] into the last five arrays; return its length.

    The arrays have room for ``rules.longest`` nodes. ``zeta = z^(beta^2)`` and ``u = 1 - zeta``.
    """
    if a_min <= beta2 + 1.0:
        # The range starts at the smallest possible a: the table has all that the kernels need.
        t = 0
        while rules.fixed_reach[t] < a_max:
            t += 1
        first = rules.fixed_start[t]
        count = rules.fixed_start[t + 1] - first
        for r in range(count):
            log_z[r] = rules.fixed_log_z[first + r]
            z[r] = rules.fixed_z[first + r]
            zeta[r] = rules.fixed_zeta[first + r]
            u[r] = rules.fixed_u[first + r]
            weight[r] = rules.fixed_weight[first + r]
        return count
    # 1 / x = sum_r omega_r exp(-t_r x) on [1, ratio], with x = a / a_min.
    t = 0
    while rules.ratio[t] * a_min < a_max:
        t += 1
    first = rules.start[t]
    count = rules.start[t + 1] - first
    for r in range(count):
        log_z[r] = -rules.exponent[first + r] / a_min
        z[r] = math.exp(log_z[r])
        u[r] = -math.expm1(beta2 * log_z[r])  # no cancellation where zeta is close to 1
        zeta[r] = 1.0 - u[r]
        weight[r] = rules.weight[first + r] / a_min
    return count
