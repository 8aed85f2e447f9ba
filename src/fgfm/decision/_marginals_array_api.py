"""Independent labels: see `fgfm._kernels.marginals` for the formulas and the bounds."""

from __future__ import annotations

import math
from importlib.util import find_spec
from typing import Any

from fgfm._utils.validation import check_probabilities
from fgfm.decision._array_api.selection import decide_blocks, finish, largest_labels, power_of_two
from fgfm.decision._array_api.space import Space, to_host
from fgfm.decision._dispatch import Decision, Objective
from fgfm.decision._quadrature import nodes

__all__ = ["LONGEST", "POWERS", "SMALL", "TAIL", "decide_marginals"]

Array = Any
SMALL = 1.0 / 64.0  # labels up to here enter products through power sums
POWERS = 8
TAIL = 34.0  # what happens with probability exp(-TAIL) needs no accurate rule
LONGEST = 16384  # labels of a row, at most, that the Triton kernel holds in registers
_TEMPORARIES = 10  # arrays of the size of a block that are alive at once


def has_kernel(space: Space) -> bool:
    """Tell whether a Triton kernel can run where the arrays are."""
    return getattr(space.device, "type", "") == "cuda" and find_spec("triton") is not None


def largest_cardinality(mean: float) -> float:
    """Give x with P(s >= x) <= exp(-TAIL) for independent labels: Bernstein."""
    return mean + TAIL / 3.0 + math.sqrt(TAIL * TAIL / 9.0 + 2.0 * TAIL * mean)


def decide_marginals(space: Space, proba: Array, objective: Objective) -> Decision:
    """Decide from marginals, (n, m)."""
    n, m = proba.shape
    if n and m <= LONGEST and has_kernel(space):
        from fgfm.decision._marginals_triton import decide_rows

        return decide_rows(space, proba, objective)

    def decide(rows: slice) -> tuple[Array, Array]:
        return _decide_block(space, proba[rows, ...], objective, rows.start)

    return decide_blocks(space, n, m, _TEMPORARIES * m * space.itemsize, decide)


def _decide_block(
    space: Space, raw: Array, objective: Objective, first_row: int
) -> tuple[Array, Array]:
    xp, m = space.xp, raw.shape[1]
    p = space.floats(raw)
    wrong = xp.any(~((p >= -space.slack) & (p <= 1.0 + space.slack)))
    p = xp.clip(p, 0.0, 1.0)
    x = xp.sort(p, axis=1, descending=True)  # (n, m)
    mean = xp.sum(p, axis=1)  # (n,)
    log_empty = xp.sum(xp.log1p(-p), axis=1)
    present = -xp.expm1(log_empty)
    empty = xp.exp(log_empty) * (0.0 if objective.nonempty else objective.zero_division)
    high = _last_size(space, x, mean, empty, objective)  # (n,)
    bad, most, large, top_mean = space.fetch(
        wrong, xp.max(high), xp.max(space.counted(p > SMALL, 1)), xp.max(mean)
    )
    if bad:
        check_probabilities(to_host(raw), "proba", first_row)
    K = power_of_two(max(most, 1.0), m)
    V = _set_values(space, x, K, power_of_two(large, m), top_mean, objective)
    size, expected = finish(space, objective, V, empty, present)
    at = space.places(xp.clip(size - 1.0, 0.0, None))[:, None]
    last = xp.take_along_axis(x, at, axis=1)[:, 0]
    labels = largest_labels(space, p, last, size, 0.0)
    return labels, expected


def _last_size(space: Space, x: Array, mean: Array, empty: Array, objective: Objective) -> Array:
    """Give a size beyond which no set of a row can be optimal; 0 where none can."""
    xp, beta2 = space.xp, objective.beta2
    k = space.upto(x.shape[1])[None, :]
    mass = xp.cumulative_sum(x, axis=1)  # (n, m)
    lower = (1.0 + beta2) * mass / (beta2 * (1.0 + mean[:, None]) + k)
    best = xp.max(lower, axis=1)
    floor = xp.where(best > empty, best, empty)[:, None] * (1.0 - space.margin)
    least = floor / ((1.0 + beta2) * (1.0 + 1.0 / (beta2 + 2.0)))
    bound = (1.0 + beta2) * mean[:, None] / (beta2 * mean[:, None] + k)  # T(k), by Jensen
    possible = (bound >= floor) & ((x >= least) | (k == 1.0)) & (x > 0.0)
    return xp.max(xp.where(possible, k, 0.0), axis=1)


def _set_values(
    space: Space, x: Array, K: int, large: int, top_mean: float, objective: Objective
) -> Array:
    """Give V_k of the sets of the k first labels, (n, K); no more than `large` exceed SMALL."""
    xp, beta2 = space.xp, objective.beta2
    reach = math.ceil(min(x.shape[1], 1.0 + largest_cardinality(top_mean)))
    rule = nodes(objective.beta, reach, K)
    sums = _power_sums(space, xp.where(x <= SMALL, x, 0.0))
    head = x[:, : max(K, large)]
    rest = 1.0 - head
    is_large = head > SMALL
    k = space.upto(K)
    V = xp.zeros((x.shape[0], K), dtype=space.dtype, device=space.device)
    for log_z, weight in zip(rule.log_z.tolist(), rule.weight.tolist(), strict=True):
        u, zeta = -math.expm1(beta2 * log_z), math.exp(beta2 * log_z)
        own = rest + head * zeta  # 1 - p u without cancellation
        own = xp.where(own > 0.0, own, 1.0)  # where zeta underflows: its weight is 0 then
        exponent = 0.0 * sums[0]
        for j in range(POWERS, 0, -1):
            exponent = (exponent + sums[j - 1] / j) * u
        product = xp.prod(xp.where(is_large, own, 1.0), axis=1) * xp.exp(-exponent)  # (n,)
        share = xp.cumulative_sum(head[:, :K] / own[:, :K], axis=1)
        scale = (1.0 + beta2) * weight * zeta
        V = V + scale * product[:, None] * xp.exp(k * log_z)[None, :] * share
    return V


def _power_sums(space: Space, small: Array) -> list[Array]:
    sums, power = [], small
    for _ in range(POWERS):
        sums.append(space.xp.sum(power, axis=1))
        power = power * small
    return sums
