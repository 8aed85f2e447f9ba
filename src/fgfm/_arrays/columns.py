"""The best set size and its labels from columns of Delta: GFM on a block of rows.

Delta_ik is a weighted sum over the columns q of C_iq, with weights that depend on k, as in
`fgfm._kernels.search`. Labels that no optimal set holds, and sizes beyond T(k), are left out; all
other sizes are valued.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from fgfm._arrays.chosen import WORK_BYTES, finish, largest_labels, power_of_two
from fgfm._arrays.space import Space, full_precision
from fgfm._dispatch import Objective

__all__ = ["Candidates", "Columns", "decide_columns", "gather", "rank_candidates"]

Array = Any


class Candidates(NamedTuple):
    """The labels that can be in an optimal set, the same number in every row of a block."""

    order: Array  # (n, M) labels, most probable first
    rank: Array  # (n, m) the place of each label in the order of all
    floor: Array  # (n,) a lower bound on the optimum


class Columns(NamedTuple):
    """What Delta is made of, for the candidates."""

    C: Array  # (n, Q, M)
    base: Array  # (n or 1, Q)
    scale: Array  # (n or 1, Q)
    quadrature: bool  # the weights are scale exp(k base), else scale / (base + k)

    def weights(self, space: Space, k: Array) -> Array:
        """Give the weight of each column in Delta_ik, (n or 1, Q, K), for k of (n or 1, 1, K)."""
        base, scale = self.base[:, :, None], self.scale[:, :, None]
        if self.quadrature:
            return scale * space.xp.exp(k * base)
        return scale / (base + k)


def rank_candidates(
    space: Space, p: Array, weighted: Array, s_max: Array, empty: Array, objective: Objective
) -> Candidates:
    """Order the labels by marginal, and leave out those that no optimal set holds.

    `weighted` is E[y_i s], (n, m), and `s_max` (n,) bounds s: see `rank_candidates` of
    `fgfm._kernels.cardinalities` for the bounds.
    """
    xp, beta2 = space.xp, objective.beta2
    order = xp.argsort(p, axis=1, descending=True, stable=True)  # (n, m)
    x = xp.take_along_axis(p, order, axis=1)
    mass = xp.cumulative_sum(x, axis=1)
    load = xp.cumulative_sum(xp.take_along_axis(weighted, order, axis=1), axis=1)
    k = space.upto(p.shape[1])[None, :]
    size = xp.where(mass > 0.0, beta2 * load / mass, 0.0) + k
    best = xp.max((1.0 + beta2) * mass / size, axis=1)
    floor = xp.where(best > empty, best, empty) * (1.0 - space.margin)
    least = floor / (beta2 * s_max + 1.0)
    (count,) = space.fetch(xp.max(space.counted(x >= least[:, None], 1)))
    M = power_of_two(max(count, 1.0), p.shape[1])
    return Candidates(order[:, :M], xp.argsort(order, axis=1, stable=True), floor)


def gather(space: Space, values: Array, order: Array) -> Array:
    """Give the candidates' part of (n, m, Q), as (n, Q, M)."""
    xp = space.xp
    where = xp.broadcast_to(order[:, :, None], (*order.shape, values.shape[2]))
    return xp.permute_dims(xp.take_along_axis(values, where, axis=1), (0, 2, 1))


def decide_columns(
    space: Space,
    columns: Columns,
    candidates: Candidates,
    empty: Array,
    present: Array,
    objective: Objective,
) -> tuple[Array, Array]:
    """Decide a block of rows; give labels and expected F."""
    xp, C = space.xp, columns.C
    M = C.shape[2]
    with full_precision(space):
        V = _set_values(space, columns, candidates.floor)  # (n, K)
        size, expected = finish(space, objective, V, empty, present)
        own = xp.where(size > 0.0, size, 1.0)  # (n,)
        weights = columns.weights(space, own[:, None, None])  # (n, Q, 1)
        worth = xp.sum(C * weights, axis=1)  # (n, M)
    at = xp.astype(own - 1.0, xp.int64)[:, None]
    least = xp.take_along_axis(xp.sort(worth, axis=1, descending=True), at, axis=1)[:, 0]
    rank = candidates.rank
    inside = xp.take_along_axis(worth, xp.clip(rank, 0, M - 1), axis=1)
    worth = xp.where(rank < M, inside, -1.0)  # (n, m), in the order of the labels
    return largest_labels(space, worth, least, size, space.tie), expected


def _set_values(space: Space, columns: Columns, floor: Array) -> Array:
    """Give V_k, (n, K), for all sizes up to the last that T(k) admits."""
    xp, C = space.xp, columns.C
    n, _, M = C.shape
    k = space.upto(M)
    totals = xp.sum(C, axis=2)[:, None, :]  # (n, 1, Q)
    bound = (totals @ columns.weights(space, k[None, None, :]))[:, 0, :]  # (n, M)
    (limit,) = space.fetch(xp.max(space.counted(bound >= floor[:, None], 1)))
    K = power_of_two(max(limit, 1.0), M)
    step = max(1, WORK_BYTES // (4 * n * M * space.itemsize))
    parts = []
    for start in range(0, K, step):
        sizes = k[start : min(start + step, K)]
        weights = columns.weights(space, sizes[None, None, :])
        delta = xp.permute_dims(weights, (0, 2, 1)) @ C  # (n, sizes, M)
        delta = xp.sort(delta, axis=2, descending=True)
        counts = k[None, None, :] <= sizes[None, :, None]
        parts.append(xp.sum(xp.where(counts, delta, 0.0), axis=2))
    return xp.concat(parts, axis=1)
