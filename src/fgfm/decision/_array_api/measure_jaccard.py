"""The Jaccard index of independent labels: bounds and values of the k most probable labels.

Formulas and bounds are those of `fgfm._kernels.jaccard`: with the labels in order of falling p,
u = 1 - z and M_k the sum of the first k, their value is

    V_k = M_k sum_r w_r z_r^k prod_{i > k} (1 - p_i u_r).
"""

from __future__ import annotations

import math
from typing import Any

from fgfm.decision._array_api.backend import Backend
from fgfm.decision._array_api.search import power_sums, small_exponent
from fgfm.decision._objective import Objective
from fgfm.decision._quadrature import nodes

__all__ = ["least_probability", "lower_bound", "upper_bound", "values"]

Array = Any


def lower_bound(backend: Backend, M: Array, mean: Array, k: Array, beta2: float) -> Array:
    """Bound V_k, (n, m), from M_k, the sum of the k largest p, and E[s], (n, 1), by Jensen."""
    union = k + mean - M
    return M / backend.xp.where(union > k, union, k)


def upper_bound(mean: Array, k: Array, beta2: float) -> Array:
    """Bound V_k, (n, m), from E[s], (n, 1)."""
    return mean / k


def least_probability(V: Array, beta2: float) -> Array:
    """Bound the probabilities in an optimal set of two or more labels and value V.

    It holds none with 3/2 p / (1 - p) < V.
    """
    return V / (1.5 + V)


def values(
    backend: Backend, x: Array, K: int, width: int, reach: int, objective: Objective
) -> Array:
    """Compute V_k, (n, K), from the probabilities x, (n, m), in falling order.

    The labels from `width` >= K on are at most SMALL, and no row has more than `reach` labels.
    """
    xp = backend.xp
    rule = nodes(0.0, 0, K + reach)  # a = k + S starts at 1, as it does for beta = 0
    sums = power_sums(backend, x[:, width:])
    head = x[:, :width]
    rest = 1.0 - head
    k = backend.one_to(K)[None, :]
    total = xp.zeros((x.shape[0], K), dtype=backend.dtype, device=backend.device)
    for log_z, weight in zip(rule.log_z.tolist(), rule.weight.tolist(), strict=True):
        u, z = -math.expm1(log_z), math.exp(log_z)
        own = xp.log(xp.where(head < 0.5, 1.0, rest + head * z))
        own = xp.where(head < 0.5, xp.log1p(-xp.clip(head, None, 0.5) * u), own)  # log(1 - p u)
        # sums from the right: over the labels after the k-th one
        after = xp.flip(xp.cumulative_sum(xp.flip(own, axis=1), axis=1), axis=1) - own
        outside = after[:, :K] - small_exponent(sums, u)[:, None]
        total = total + weight * xp.exp(k * log_z + outside)
    return xp.cumulative_sum(head, axis=1)[:, :K] * total
