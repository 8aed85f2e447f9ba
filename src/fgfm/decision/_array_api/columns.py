"""The best set size and its labels from columns of Delta: GFM on a block of rows.

Delta_ik is a weighted sum over the columns q of C_iq, with weights that depend on k, as in
`fgfm._kernels.search`, and so are the bounds that leave out labels and sizes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from fgfm.decision._array_api.selection import finish, largest_labels, power_of_two
from fgfm.decision._array_api.space import Space, full_precision
from fgfm.decision._dispatch import Objective

__all__ = ["Candidates", "Columns", "decide_columns", "gather", "rank_candidates"]

Array = Any


class Candidates(NamedTuple):
    """The labels that can be in an optimal set, the same number in every row of a block."""

    order: Array  # (n, M) labels, most probable first
    rank: Array  # (n, m) the place of each label in the order of all
    guess: Array  # (n,) a likely size of the best set
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
    `fgfm._kernels.candidates` for the bounds.
    """
    xp, beta2 = space.xp, objective.beta2
    order = xp.argsort(p, axis=1, descending=True, stable=True)  # (n, m)
    x = xp.take_along_axis(p, order, axis=1)
    mass = xp.cumulative_sum(x, axis=1)
    load = xp.cumulative_sum(xp.take_along_axis(weighted, order, axis=1), axis=1)
    k = space.upto(p.shape[1])[None, :]
    size = xp.where(mass > 0.0, beta2 * load / mass, 0.0) + k
    lower = (1.0 + beta2) * mass / size  # (n, m)
    best = xp.max(lower, axis=1)
    guess = xp.min(xp.where(lower >= best[:, None], k, float(p.shape[1])), axis=1)
    floor = xp.where(best > empty, best, empty) * (1.0 - space.margin)
    least = floor / (beta2 * s_max + 1.0)
    (count,) = space.fetch(xp.max(space.counted(x >= least[:, None], 1)))
    M = power_of_two(max(count, 1.0), p.shape[1])
    rank = xp.argsort(order, axis=1, stable=True)
    return Candidates(order[:, :M], rank, guess, floor)


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
    xp, M = space.xp, columns.C.shape[2]
    with full_precision(space):
        V = _search(space, columns, candidates)  # (n, K)
        size, expected = finish(space, objective, V, empty, present)
        own = xp.where(size > 0.0, size, 1.0)  # (n,)
        worth = _column(space, columns, own)  # (n, M)
    at = space.places(own - 1.0)[:, None]
    least = xp.take_along_axis(xp.sort(worth, axis=1, descending=True), at, axis=1)[:, 0]
    rank = candidates.rank
    inside = xp.take_along_axis(worth, xp.clip(rank, 0, M - 1), axis=1)
    worth = xp.where(rank < M, inside, -1.0)  # (n, m), in the order of the labels
    return largest_labels(space, worth, least, size, space.tie), expected


def _column(space: Space, columns: Columns, k: Array) -> Array:
    """Give Delta_ik, (n, M), where every row has a size k, (n,), of its own."""
    weights = columns.weights(space, k[:, None, None])  # (n, Q, 1)
    return (space.xp.permute_dims(weights, (0, 2, 1)) @ columns.C)[:, 0, :]


def _search(space: Space, columns: Columns, candidates: Candidates) -> Array:
    """Give V_k, (n, K), where it can be the largest, and 0 elsewhere.

    K bounds the sizes that T(k) admits. Every row values the size of its guess, 1 and K, and then,
    again and again, the size whose bound is the highest, until no bound exceeds the largest value:
    see `fgfm._kernels.search` for the bound between two sizes whose columns are known.
    """
    xp = space.xp
    n, M = columns.C.shape[0], columns.C.shape[2]
    every = space.upto(M)
    totals = xp.sum(columns.C, axis=2)[:, None, :]  # (n, 1, Q)
    bound = (totals @ columns.weights(space, every[None, None, :]))[:, 0, :]  # (n, M)
    admitted = bound >= candidates.floor[:, None]
    (limit,) = space.fetch(xp.max(space.counted(admitted, 1)))
    K = power_of_two(max(limit, 1.0), M)
    k = xp.broadcast_to(every[None, :K], (n, K))
    V = xp.zeros((n, K), dtype=space.dtype, device=space.device)
    # for each size the nearest ones whose column is known, and the k largest Delta of these
    left, right, left_sum, right_sum = V, V + (K + 1.0), V, V
    guess = xp.clip(candidates.guess, 1.0, float(K))
    size, first = guess, [xp.ones_like(guess), xp.ones_like(guess) * K]
    while True:
        delta = xp.sort(_column(space, columns, size), axis=1, descending=True)
        sums = xp.cumulative_sum(delta[:, :K], axis=1)
        at = size[:, None]
        V = xp.where(k == at, sums, V)
        nearer = (k >= at) & (left <= at)
        left, left_sum = xp.where(nearer, at, left), xp.where(nearer, sums, left_sum)
        nearer = (k <= at) & (right >= at)
        right, right_sum = xp.where(nearer, at, right), xp.where(nearer, sums, right_sum)
        if first:
            size = first.pop()
            continue
        upper = _bound(space, k, left, right, left_sum, right_sum)
        peak = xp.max(V, axis=1)[:, None]
        low, high = peak * (1.0 - space.tie), peak * (1.0 + space.tie)
        best = xp.min(xp.where(low <= V, k, K + 1.0), axis=1)[:, None]
        least = xp.where(k < best, low, high)  # a smaller set need only be as good
        unclear = (V == 0.0) & admitted[:, :K] & (upper > least)
        (left_over,) = space.fetch(xp.any(unclear))
        if not left_over:
            return V
        upper = xp.where(unclear, upper, -1.0)
        highest = xp.max(upper, axis=1)[:, None]
        size = xp.min(xp.where(unclear & (upper >= highest), k, K + 1.0), axis=1)
        size = xp.where(size > K, guess, size)  # nothing is unclear in this row


def _bound(
    space: Space, k: Array, left: Array, right: Array, left_sum: Array, right_sum: Array
) -> Array:
    """Bound V_k, (n, K), from the sums of the k largest Delta at sizes on both sides."""
    xp = space.xp
    apart = right > left
    share = (right - k) / xp.where(apart, right - left, 1.0)
    ratio = left_sum / xp.where(right_sum > 0.0, right_sum, 1.0)
    below = share + (1.0 - share) * ratio
    inside = apart & (right_sum > 0.0)
    return xp.where(inside, left_sum / xp.where(inside, below, 1.0), left_sum)
