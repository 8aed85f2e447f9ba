"""What all kernels share: which quadrature rule a row needs, what ties, what is refused."""

from __future__ import annotations

import math

from fgfm._kernels._compile import compiled

__all__ = ["NOT_PROBABILITY", "TAIL", "TIE", "TOO_MUCH_MASS", "largest_cardinality", "load_rule"]

NOT_PROBABILITY = -1.0  # instead of an expected F: a value is not in [0, 1]
TOO_MUCH_MASS = -2.0  # instead of an expected F: probabilities sum to more than 1
TAIL = 34.0  # what happens with probability exp(-TAIL) = 2e-15 needs no accurate rule
TIE = 1e-12  # values closer than this, relatively, count as equal


@compiled
def largest_cardinality(mean):
    """Give x with P(s >= x) <= exp(-TAIL) for a sum of independent 0/1 variables of this mean.

    Chernoff: x log(x / mean) - x + mean = TAIL, by Newton from Bernstein's bound. The left side is
    convex, so every iterate is still a bound.
    """
    if mean < 1e-15:
        return 1.0  # P(s >= 1) <= mean
    x = mean + TAIL / 3.0 + math.sqrt(TAIL * TAIL / 9.0 + 2.0 * TAIL * mean)
    for _ in range(3):
        slope = math.log(x / mean)
        x -= (x * slope - x + mean - TAIL) / slope
    return x


@compiled
def load_rule(rules, beta2, a_min, a_max, log_z, z, zeta, u, weight):
    """Load the shortest rule for [a_min, a_max] into the five arrays; give its length.

    ``zeta = z^(beta^2)`` and ``u = 1 - zeta``.
    """
    if a_min <= beta2 + 1.0:
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
    t = 0
    while rules.ratio[t] * a_min < a_max:
        t += 1
    first = rules.start[t]
    count = rules.start[t + 1] - first
    for r in range(count):
        log_z[r] = -rules.exponent[first + r] / a_min
        z[r] = math.exp(log_z[r])
        u[r] = -math.expm1(beta2 * log_z[r])
        zeta[r] = 1.0 - u[r]
        weight[r] = rules.weight[first + r] / a_min
    return count
