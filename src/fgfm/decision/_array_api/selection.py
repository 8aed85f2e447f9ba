"""What all routes share once the values of the set sizes are known."""

from __future__ import annotations

from typing import Any

import numpy as np

from fgfm.decision._array_api.space import Space, work_bytes
from fgfm.decision._dispatch import Decision, Objective

__all__ = ["decide_blocks", "finish", "largest_labels", "power_of_two"]

Array = Any


def power_of_two(count: float, limit: int) -> int:
    """Give a size for arrays that hold `count` things: few sizes occur, and none over `limit`."""
    return min(limit, 1 << max(0, int(count) - 1).bit_length())


def decide_blocks(space: Space, n: int, m: int, row_bytes: int, decide: Any) -> Decision:
    """Call ``decide(rows)`` for blocks of rows that fit the work space; give one decision."""
    xp = space.xp
    rows = max(1, work_bytes(space) // max(1, row_bytes))
    with np.errstate(all="ignore"):  # of libraries that compute with NumPy
        blocks = [decide(slice(start, min(start + rows, n))) for start in range(0, n, rows)]
    if not blocks:
        return Decision(
            xp.zeros((0, m), dtype=xp.int8, device=space.device),
            xp.zeros((0,), dtype=space.dtype, device=space.device),
        )
    if len(blocks) == 1:
        return Decision(*blocks[0])
    return Decision(
        xp.concat([labels for labels, _ in blocks]), xp.concat([value for _, value in blocks])
    )


def finish(
    space: Space, objective: Objective, V: Array, empty: Array, present: Array
) -> tuple[Array, Array]:
    """Give the size of the best set of each row and its expected F, from the values of all sizes.

    ``V`` is (n, K), for the sizes 1 .. K; ``empty`` (n,) is the worth of the empty set, and
    ``present`` (n,) the probability of the other ones.
    """
    xp = space.xp
    peak = xp.max(V, axis=1)  # (n,)
    sizes = xp.broadcast_to(space.upto(V.shape[1])[None, :], V.shape)
    size = xp.min(xp.where((peak * (1.0 - space.tie))[:, None] <= V, sizes, V.shape[1]), axis=1)
    value = xp.max(xp.where(sizes == size[:, None], V, 0.0), axis=1)
    if objective.nonempty:
        possible = present > 0.0
        size = xp.where(possible & (peak > 0.0), size, 0.0)
        return size, xp.where(size > 0.0, value, xp.nan) / xp.where(possible, present, 1.0)
    wins = peak > empty * (1.0 + space.tie)
    return xp.where(wins, size, 0.0), xp.where(wins, value, empty)


def largest_labels(space: Space, worth: Array, least: Array, size: Array, tie: float) -> Array:
    """Mark the `size` labels of the largest worth, (n, m); of equal ones those of lowest index.

    `least` is the smallest worth among them.
    """
    xp = space.xp
    low, high = (least * (1.0 - tie))[:, None], (least * (1.0 + tie))[:, None]
    above = worth > high
    equal = (worth >= low) & (worth <= high)
    left = size - space.counted(above, 1)  # (n,)
    first = xp.cumulative_sum(xp.astype(equal, xp.int32), axis=1, dtype=xp.int32)
    chosen = above | (equal & (space.floats(first) <= left[:, None]))
    return xp.astype(chosen & (size > 0.0)[:, None], xp.int8)
