"""Products over many small probabilities from a few power sums; constants of the kernels.

-log prod (1 - p u) = sum_j u^j (sum_i p_i^j) / j, where all p are at most `SMALL`.
"""

from __future__ import annotations

import math
from typing import Any

from fgfm._kernels import native
from fgfm.decision._array_api.backend import Backend

__all__ = ["POWERS", "SMALL", "TAIL", "largest_cardinality", "power_sums", "small_exponent"]

Array = Any
SMALL: float = native.SMALL  # labels up to this probability enter products through power sums
POWERS: int = native.POWERS  # of them: SMALL^POWERS / POWERS is below the rounding error
TAIL: float = native.TAIL  # cardinalities of probability below exp(-TAIL) need no accurate rule


def power_sums(backend: Backend, small: Array) -> list[Array]:
    """Return sum_i p_i^j, (n,), for j = 1 .. POWERS."""
    sums, power = [], small
    for _ in range(POWERS):
        sums.append(backend.xp.sum(power, axis=1))
        power = power * small
    return sums


def small_exponent(sums: list[Array], u: float) -> Array:
    """Return -log prod (1 - p u) of small labels from their power sums: Horner's rule."""
    exponent = 0.0 * sums[0]
    for j in range(POWERS, 0, -1):
        exponent = (exponent + sums[j - 1] / j) * u
    return exponent


def largest_cardinality(mean: float) -> float:
    """Return x with P(s >= x) <= exp(-TAIL) for independent labels (Bernstein)."""
    return mean + TAIL / 3.0 + math.sqrt(TAIL * TAIL / 9.0 + 2.0 * TAIL * mean)
