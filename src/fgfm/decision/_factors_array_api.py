"""Independent factors: generating functions at the nodes of a rule.

See `fgfm._kernels.factors`. Here the factors of a block of rows are padded to one depth, and the
labels stand in their final order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm.decision._array_api.checks import read_group, read_units
from fgfm.decision._array_api.columns import Columns, decide_columns, gather, rank_candidates
from fgfm.decision._array_api.selection import decide_blocks
from fgfm.decision._array_api.space import Space, full_precision
from fgfm.decision._dispatch import Decision, Objective
from fgfm.decision._marginals_array_api import TAIL
from fgfm.decision._quadrature import nodes

__all__ = ["GROWTH", "decide_factors"]

Array = Any
GROWTH = (2.0, 1.0, 0.5, 0.25, 0.125, 0.0625)  # rates at which the tail of |y| is bounded


def decide_factors(
    space: Space,
    parts: Sequence[Array],
    members: Sequence[npt.NDArray[np.int64]],
    distributions: Sequence[Array],
    objective: Objective,
) -> Decision:
    """Decide from the P of each factor, (n, m_f, S_f), and perhaps their distributions."""
    xp = space.xp
    longest = max(P.shape[2] for P in parts)
    groups: dict[tuple[Any, ...], list[int]] = {}  # factors of one form are read together
    for f, P in enumerate(parts):
        groups.setdefault((*P.shape[1:], str(P.dtype)), []).append(f)
    sequence = [f for group in groups.values() for f in group]
    order = np.argsort(np.concatenate([members[f] for f in sequence]))
    owner = np.repeat(np.arange(len(parts)), [parts[f].shape[1] for f in sequence])[order]
    place = xp.asarray(order, device=space.device)  # (m,) where each label is
    factor = xp.asarray(owner, device=space.device)  # (m,) the factor of each label
    n, m = parts[0].shape[0], len(order)

    def decide(rows: slice) -> tuple[Array, Array]:
        values, depths = [], []
        for group in groups.values():
            stacked = xp.stack([parts[f][rows, ...] for f in group], axis=1)  # (rows, F, m, S)
            P, d = read_group(
                space, stacked, [f"Ps[{f}]" for f in group], rows.start, given=bool(distributions)
            )
            present = xp.sum(d, axis=2, keepdims=True)
            d = xp.concat([xp.clip(1.0 - present, 0.0, None), d], axis=2)  # (rows, F, S + 1)
            if distributions:
                given = [
                    read_units(
                        space, distributions[f][rows, ...], f"distributions[{f}]", rows.start
                    )
                    for f in group
                ]
                d = xp.stack(given, axis=1)
            values.append(_padded(space, xp.reshape(P, (P.shape[0], -1, P.shape[3])), longest))
            depths.append(_padded(space, d, longest + 1))
        P = xp.take(xp.concat(values, axis=1), place, axis=1)  # (rows, m, longest)
        return _decide_block(space, P, xp.concat(depths, axis=1), factor, objective)

    most_nodes = len(nodes(objective.beta, m, m).log_z)
    row_bytes = (2 * m * longest + 7 * most_nodes * m + most_nodes * len(parts)) * space.itemsize
    return decide_blocks(space, n, m, row_bytes, decide)


def _padded(space: Space, array: Array, size: int) -> Array:
    """Fill the last axis up with zeros."""
    missing = size - array.shape[-1]
    if missing == 0:
        return array
    shape = (*array.shape[:-1], missing)
    rest = space.xp.zeros(shape, dtype=space.dtype, device=space.device)
    return space.xp.concat([array, rest], axis=-1)


def _decide_block(
    space: Space, P: Array, d: Array, factor: Array, objective: Objective
) -> tuple[Array, Array]:
    """Decide from P, (n, m, S), and the distributions of the factors, (n, F, S + 1)."""
    xp, beta2 = space.xp, objective.beta2
    n, m, S = P.shape
    s = space.upto(S)
    own_present = xp.sum(d[:, :, 1:], axis=2)  # (n, F)
    # a given d_0 may be far smaller than the rounding of the others' sum
    log_absent = xp.where(
        own_present < 0.5, xp.log1p(-xp.clip(own_present, 0.0, 0.5)), xp.log(d[:, :, 0])
    )
    log_empty = xp.sum(log_absent, axis=1)
    present = -xp.expm1(log_empty)
    empty = xp.exp(log_empty) * (0.0 if objective.nonempty else objective.zero_division)
    own_mean = xp.sum(d[:, :, 1:] * s, axis=2)  # (n, F)
    others = xp.sum(own_mean, axis=1)[:, None] - xp.take(own_mean, factor, axis=1)  # (n, m)
    p = xp.sum(P, axis=2)
    weighted = xp.sum(P * s, axis=2) + others * p  # E[y_i |y|]
    s_max = _cardinality_bound(space, xp.sum(d[:, :, 1:], axis=1), m)
    found = rank_candidates(space, p, weighted, s_max, empty, objective)
    M = found.order.shape[1]
    (reach,) = space.fetch(xp.max(s_max))
    rule = nodes(objective.beta, math.ceil(reach), M)
    log_zeta = beta2 * rule.log_z  # (R,)
    powers = np.exp(np.arange(S + 1)[:, None] * log_zeta)  # (S + 1, R)
    with full_precision(space):
        D = d @ space.array(powers)[None, :, :]  # (n, F, R)
        G = xp.permute_dims(gather(space, P, found.order), (0, 2, 1))  # (n, M, S)
        G = G @ space.array(powers[:-1])[None, :, :]  # (n, M, R), divided by zeta
    product = xp.prod(D, axis=1)[:, None, :]  # (n, 1, R)
    at = xp.take(factor, xp.reshape(found.order, (-1,)))
    at = xp.reshape(at, (n, M, 1))
    own = xp.take_along_axis(D, xp.broadcast_to(at, G.shape), axis=1)  # (n, M, R)
    C = xp.where(own > 0.0, G * product / xp.where(own > 0.0, own, 1.0), 0.0)
    scale = (1.0 + beta2) * rule.weight * np.exp(log_zeta)
    columns = Columns(
        xp.permute_dims(C, (0, 2, 1)),
        space.array(rule.log_z)[None, :],
        space.array(scale)[None, :],
        True,
    )
    return decide_columns(space, columns, found, empty, present, objective)


def _cardinality_bound(space: Space, histogram: Array, total: int) -> Array:
    """Bound |y| up to a probability of exp(-TAIL), given any y_i = 1 as well; (n,).

    `histogram` (n, S) sums d_1 .. d_S over the factors. Chernoff, with log(1 + x) <= x.
    """
    xp, S = space.xp, histogram.shape[1]
    upper = xp.sum(histogram, axis=1) * 0.0 + float(total)
    for rate in GROWTH:
        if rate * S < 50.0:
            growth = space.array(np.expm1(rate * np.arange(1.0, S + 1.0)))
            bound = (TAIL + xp.sum(histogram * growth, axis=1)) / rate + S
            upper = xp.where(bound < upper, bound, upper)
    return xp.where(upper > 1.0, upper, 1.0)
