"""Products over small probabilities by power sums, the best set size, and its labels.

-log prod (1 - p u) = sum_j u^j (sum_i p_i^j) / j, where all p are at most `SMALL`.
"""

from __future__ import annotations

import math
from typing import Any

from fgfm._kernels import native
from fgfm.decision._array_api.backend import Backend
from fgfm.decision._objective import Objective

__all__ = [
    "SMALL",
    "TAIL",
    "best_size",
    "largest_cardinality",
    "largest_labels",
    "power_of_two",
    "power_sums",
    "scaled_up",
    "small_exponent",
]

Array = Any
SMALL: float = native.SMALL  # labels up to this probability enter products through power sums
_POWERS: int = native.POWERS  # of them: SMALL^_POWERS / _POWERS is below the rounding error
TAIL: float = native.TAIL  # cardinalities of probability below exp(-TAIL) need no accurate rule


def power_sums(backend: Backend, small: Array) -> list[Array]:
    """Return sum_i p_i^j, (n,), for j = 1 .. _POWERS."""
    sums, power = [], small
    for _ in range(_POWERS):
        sums.append(backend.xp.sum(power, axis=1))
        power = power * small
    return sums


def small_exponent(sums: list[Array], u: float) -> Array:
    """Return -log prod (1 - p u) of small labels from their power sums: Horner's rule."""
    exponent = 0.0 * sums[0]
    for j in range(_POWERS, 0, -1):
        exponent = (exponent + sums[j - 1] / j) * u
    return exponent


def largest_cardinality(mean: float) -> float:
    """Return x with P(s >= x) <= exp(-TAIL) for independent labels (Bernstein)."""
    return mean + TAIL / 3.0 + math.sqrt(TAIL * TAIL / 9.0 + 2.0 * TAIL * mean)


def scaled_up(backend: Backend, objective: Objective, mass: Array, *arrays: Array) -> list[Array]:
    """Multiply rows of tiny probabilities, so that no product of theirs is subnormal.

    `mass`, (n,), bounds the probability that a row has a label. Where it is tiny, at most one
    label is true, and given that one is, nothing depends on the factor.
    """
    if not objective.nonempty:
        return list(arrays)
    tiny, factor = (2.0**-900, 2.0**600) if backend.itemsize == 8 else (2.0**-100, 2.0**60)
    by = backend.floats(mass < tiny) * (factor - 1.0) + 1.0  # (n,)
    return [x * backend.xp.reshape(by, (-1,) + (1,) * (len(x.shape) - 1)) for x in arrays]


def power_of_two(count: float, limit: int) -> int:
    """Round `count` up to a power of two, at most `limit`.

    Arrays of few different sizes reuse memory, and what JAX has compiled for their shape.
    """
    return min(limit, 1 << max(0, int(count) - 1).bit_length())


def best_size(
    backend: Backend, objective: Objective, V: Array, empty: Array, present: Array
) -> tuple[Array, Array]:
    """Return the size of the best set of each row, and its expected F-measure, (n,), as floats.

    V, (n, K), are the values of the best sets of sizes 1 .. K, `empty`, (n,), that of the empty
    set, and `present`, (n,), is the probability that the true set is not empty.
    """
    xp = backend.xp
    peak = xp.max(V, axis=1)  # (n,)
    sizes = xp.broadcast_to(backend.one_to(V.shape[1])[None, :], V.shape)
    tied = (peak * (1.0 - backend.tie))[:, None] <= V
    size = xp.min(xp.where(tied, sizes, V.shape[1]), axis=1)  # the smaller set wins a tie
    value = xp.max(xp.where(sizes == size[:, None], V, 0.0), axis=1)
    if objective.nonempty:
        possible = present > 0.0
        size = xp.where(possible & (peak > 0.0), size, 0.0)
        return size, xp.where(size > 0.0, value, xp.nan) / xp.where(possible, present, 1.0)
    wins = peak > empty * (1.0 + backend.tie)  # the empty set wins its ties
    return xp.where(wins, size, 0.0), xp.where(wins, value, empty)


def largest_labels(backend: Backend, value: Array, least: Array, size: Array, tie: float) -> Array:
    """Mark the labels of largest value; among equal ones those of lowest index: (n, m), int8.

    `value` is (n, m), `least`, (n,), the smallest value among the labels to choose, and `size`,
    (n,), their number. Values with a relative difference below `tie` count as equal.
    """
    xp = backend.xp
    low, high = (least * (1.0 - tie))[:, None], (least * (1.0 + tie))[:, None]
    above = value > high
    equal = (value >= low) & (value <= high)
    left = size - backend.count_true(above, 1)  # (n,) how many of the equal ones are chosen
    rank = xp.cumulative_sum(xp.astype(equal, xp.int32), axis=1, dtype=xp.int32)
    chosen = above | (equal & (backend.floats(rank) <= left[:, None]))
    return xp.astype(chosen & (size > 0.0)[:, None], xp.int8)
