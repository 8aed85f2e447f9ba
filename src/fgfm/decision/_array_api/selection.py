"""The best set size and its labels."""

from __future__ import annotations

from typing import Any

from fgfm.decision._array_api.backend import Backend
from fgfm.decision._objective import Objective

__all__ = ["best_size", "largest_labels", "power_of_two"]

Array = Any


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
