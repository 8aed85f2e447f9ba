"""GFM on a block of rows, from columns of Delta.

Delta_ik = sum_q C_iq w_q(k), a weighted sum of the columns of C with weights that depend on the
set size k. The value of the best set of size k, V_k, is the sum of its k largest entries. C is P
itself (GFM), or generating functions at the nodes of a quadrature rule (F-GFM). The bounds that
discard labels and set sizes are those of `fgfm._kernels.search` and of
`fgfm._kernels.cardinalities`; docs/design.md, "Which set sizes are looked at", has the proofs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm.decision._array_api.backend import Backend, full_precision
from fgfm.decision._array_api.search import best_size, largest_labels, power_of_two, scaled_up
from fgfm.decision._objective import Objective

__all__ = [
    "Candidates",
    "Columns",
    "decide_by_kernel",
    "decide_cardinality_columns",
    "decide_columns",
    "gather",
    "rank_candidates",
]

Array = Any
Floats = npt.NDArray[np.float64]
_SIZES = 16  # set sizes evaluated at once
_FEW_SIZES = 64  # so few are all evaluated where Triton has a kernel for it
_MOST_LABELS = 1024  # of a row of P that a Triton kernel decides
_MOST_CARDINALITIES = 64


class Candidates(NamedTuple):
    """The labels that can be in an optimal set, the same number in every row of a block."""

    order: Array  # (n, M) candidate labels, most probable first
    rank: Array  # (n, m) the rank of each label among all, by probability
    guess: Array  # (n,) a likely size of the best set
    floor: Array  # (n,) a lower bound on the optimum


class Columns(NamedTuple):
    """The matrix C for the candidates, and the weights of its columns."""

    C: Array  # (n, Q, M)
    base: Array  # (n or 1, Q)
    scale: Array  # (n or 1, Q)
    quadrature: bool  # weights are scale exp(k base) if True, else scale / (base + k)

    def weights(self, backend: Backend, k: Array) -> Array:
        """Return the weights w_q(k), (n or 1, Q, K), for sizes k of shape (n or 1, 1, K)."""
        base, scale = self.base[:, :, None], self.scale[:, :, None]
        if self.quadrature:
            return scale * backend.xp.exp(k * base)
        return scale / (base + k)


def rank_candidates(
    backend: Backend, p: Array, weighted: Array, s_max: Array, empty: Array, objective: Objective
) -> Candidates:
    """Order the labels by marginal, and discard those that are in no optimal set.

    `p`, (n, m), are the marginals, `weighted`, (n, m), is E[y_i s], `s_max`, (n,), an upper bound
    on s, and `empty`, (n,), the value of the empty set.
    """
    xp, beta2 = backend.xp, objective.beta2
    order = xp.argsort(p, axis=1, descending=True, stable=True)  # (n, m)
    x = xp.take_along_axis(p, order, axis=1)
    # Jensen: the k first labels have at least the value (1 + beta^2) M / (beta^2 W / M + k), with
    # M = sum p_i and W = sum E[y_i s].
    M_k = xp.cumulative_sum(x, axis=1)  # (n, m)
    W_k = xp.cumulative_sum(xp.take_along_axis(weighted, order, axis=1), axis=1)  # (n, m)
    k = backend.one_to(p.shape[1])[None, :]
    size = xp.where(M_k > 0.0, beta2 * W_k / M_k, 0.0) + k
    lower = (1.0 + beta2) * M_k / size  # (n, m)
    best = xp.max(lower, axis=1)
    guess = xp.min(xp.where(lower >= best[:, None], k, float(p.shape[1])), axis=1)
    floor = xp.where(best > empty, best, empty) * (1.0 - backend.margin)
    # A label of an optimal set has p_i (beta^2 s_max + 1) >= V: else leaving it out would gain.
    least = floor / (beta2 * s_max + 1.0)
    (count,) = backend.fetch(xp.max(backend.count_true(x >= least[:, None], 1)))
    M = power_of_two(max(count, 1.0), p.shape[1])
    rank = xp.argsort(order, axis=1, stable=True)  # the inverse permutation
    return Candidates(order[:, :M], rank, guess, floor)


def gather(backend: Backend, values: Array, order: Array) -> Array:
    """Select the candidates from (n, m, Q), as (n, Q, M)."""
    xp = backend.xp
    where = xp.broadcast_to(order[:, :, None], (*order.shape, values.shape[2]))
    return xp.permute_dims(xp.take_along_axis(values, where, axis=1), (0, 2, 1))


def decide_by_kernel(
    backend: Backend, P: Array, s: Floats, objective: Objective, masses: Sequence[Array] = ()
) -> tuple[Array, Array] | None:
    """Decide from P, (n, m, Q), by a Triton kernel; return None if none applies, or P is invalid.

    `s`, (Q,), are the cardinalities of P. `masses` are the probabilities that the true set is
    empty, and that it is not, two arrays (n,), if not those of P.
    """
    n, m, Q = P.shape
    fits = n > 0 and m <= _MOST_LABELS and Q <= _MOST_CARDINALITIES
    if not (fits and backend.has_triton):
        return None
    from fgfm.decision._array_api.columns_triton import cardinality_tables, decide_table

    tables = cardinality_tables(backend, s, m, objective)
    given = backend.xp.stack(masses, axis=1) if masses else None
    return decide_table(backend, P, m, tables, objective, given)


def decide_cardinality_columns(
    backend: Backend, P: Array, s: Floats, absent: Array, present: Array, objective: Objective
) -> tuple[Array, Array]:
    """Decide a block from P, (n, m, Q); return labels and expected F-measure.

    `s`, (Q,), are the cardinalities of P; `absent` and `present`, (n,), the probabilities that the
    true set is empty, and that it is not.
    """
    xp, beta2 = backend.xp, objective.beta2
    decided = decide_by_kernel(backend, P, s, objective, [absent, present])
    if decided is not None:
        return decided
    P, present = scaled_up(backend, objective, present, P, present)
    empty = absent * objective.empty_value
    sizes = backend.array(s)[None, :]  # (1, Q)
    p, weighted = xp.sum(P, axis=2), xp.sum(P * sizes[None, :, :], axis=2)  # (n, m)
    candidates = rank_candidates(backend, p, weighted, xp.max(sizes, axis=1), empty, objective)
    scale = (1.0 + beta2) * xp.ones_like(sizes)
    columns = Columns(gather(backend, P, candidates.order), beta2 * sizes, scale, False)
    return decide_columns(backend, columns, candidates, empty, present, objective)


def decide_columns(
    backend: Backend,
    columns: Columns,
    candidates: Candidates,
    empty: Array,
    present: Array,
    objective: Objective,
) -> tuple[Array, Array]:
    """Decide a block of rows; return labels and expected F-measure."""
    xp, M = backend.xp, columns.C.shape[2]
    with full_precision(backend):
        V = _search(backend, columns, candidates)  # (n, K)
        size, expected = best_size(backend, objective, V, empty, present)
        own = xp.where(size > 0.0, size, 1.0)  # (n,)
        delta = _column(backend, columns, own)  # (n, M)
    at = backend.indices(own - 1.0)[:, None]
    least = xp.take_along_axis(xp.sort(delta, axis=1, descending=True), at, axis=1)[:, 0]
    rank = candidates.rank
    inside = xp.take_along_axis(delta, xp.clip(rank, 0, M - 1), axis=1)
    delta = xp.where(rank < M, inside, -1.0)  # (n, m), in the order of the labels
    return largest_labels(backend, delta, least, size, backend.tie), expected


def _column(backend: Backend, columns: Columns, k: Array) -> Array:
    """Return Delta_ik, (n, M), for one size k per row, (n,)."""
    weights = columns.weights(backend, k[:, None, None])  # (n, Q, 1)
    return (backend.xp.permute_dims(weights, (0, 2, 1)) @ columns.C)[:, 0, :]


def _search(backend: Backend, columns: Columns, candidates: Candidates) -> Array:
    """Return V_k, (n, K), for the sizes k that can be optimal, and 0 for the others.

    K bounds the sizes that T(k) = sum_i Delta_ik admits. Every row evaluates its guess, 1 and K,
    and then repeatedly the size with the highest bound, until no bound exceeds the largest value.
    """
    xp = backend.xp
    n, M = columns.C.shape[0], columns.C.shape[2]
    every = backend.one_to(M)
    totals = xp.sum(columns.C, axis=2)[:, None, :]  # (n, 1, Q)
    bound = (totals @ columns.weights(backend, every[None, None, :]))[:, 0, :]  # (n, M) T(k)
    admitted = bound >= candidates.floor[:, None]
    (limit,) = backend.fetch(xp.max(backend.count_true(admitted, 1)))
    K = power_of_two(max(limit, 1.0), M)
    if K <= _FEW_SIZES and backend.has_triton:
        return _all_values(backend, columns, K, backend.count_true(admitted, 1))
    k = xp.broadcast_to(every[None, :K], (n, K))
    V = xp.zeros((n, K), dtype=backend.dtype, device=backend.device)
    # For each size k: the nearest evaluated sizes, and the sums of their k largest Delta.
    left, right, left_sum, right_sum = V, V + (K + 1.0), V, V
    guess = xp.clip(candidates.guess, 1.0, float(K))
    size, first = guess, [xp.ones_like(guess), xp.ones_like(guess) * K]
    while True:
        delta = xp.sort(_column(backend, columns, size), axis=1, descending=True)
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
        upper = _harmonic_bound(backend, k, left, right, left_sum, right_sum)
        peak = xp.max(V, axis=1)[:, None]
        low, high = peak * (1.0 - backend.tie), peak * (1.0 + backend.tie)
        best = xp.min(xp.where(low <= V, k, K + 1.0), axis=1)[:, None]
        least = xp.where(k < best, low, high)  # a smaller set wins a tie
        is_open = (V == 0.0) & admitted[:, :K] & (upper > least)
        (any_open,) = backend.fetch(xp.any(is_open))
        if not any_open:
            return V
        upper = xp.where(is_open, upper, -1.0)
        highest = xp.max(upper, axis=1)[:, None]
        size = xp.min(xp.where(is_open & (upper >= highest), k, K + 1.0), axis=1)
        size = xp.where(size > K, guess, size)  # rows without an open size repeat their guess


def _all_values(backend: Backend, columns: Columns, K: int, admitted: Array) -> Array:
    """Return V_k, (n, K), for all sizes up to those admitted, (n,), by a Triton kernel."""
    from fgfm.decision._array_api.columns_triton import largest_sums

    xp = backend.xp
    values = []
    for start in range(0, K, _SIZES):
        k = backend.one_to(min(start + _SIZES, K))[None, None, start:]
        weights = xp.permute_dims(columns.weights(backend, k), (0, 2, 1))  # (n or 1, sizes, Q)
        values.append(largest_sums(weights @ columns.C, start, admitted))
    return xp.concat(values, axis=1)


def _harmonic_bound(
    backend: Backend, k: Array, left: Array, right: Array, left_sum: Array, right_sum: Array
) -> Array:
    """Bound V_k, (n, K), by the harmonic mean of the sums of the k largest Delta on both sides.

    V_k <= 1 / (l / Q_1(k) + (1 - l) / Q_2(k)) at k = l k_1 + (1 - l) k_2, since the reciprocal of
    sum_{i in h} Delta_ik is concave in k.
    """
    xp = backend.xp
    between = right > left
    share = (right - k) / xp.where(between, right - left, 1.0)  # l
    ratio = left_sum / xp.where(right_sum > 0.0, right_sum, 1.0)
    below = share + (1.0 - share) * ratio
    inside = between & (right_sum > 0.0)
    return xp.where(inside, left_sum / xp.where(inside, below, 1.0), left_sum)
