"""The F-measure of independent labels: bounds and values of the k most probable labels.

Formulas and bounds are those of `fgfm._kernels.marginals`: with the labels in order of falling p,
zeta = z^(beta^2) and u = 1 - zeta, the value of the k first labels is

    V_k = (1 + beta^2) sum_r w_r z_r^k zeta_r D(zeta_r) A_k(u_r),
    D(zeta) = prod_i (1 - p_i u),      A_k(u) = sum_{i <= k} p_i / (1 - p_i u).
"""

from __future__ import annotations

import math
from typing import Any

from fgfm.decision._array_api.backend import Backend
from fgfm.decision._array_api.search import SMALL, power_sums, small_exponent
from fgfm.decision._objective import Objective
from fgfm.decision._quadrature import nodes

__all__ = ["least_probability", "lower_bound", "upper_bound", "values"]

Array = Any


def lower_bound(backend: Backend, M: Array, mean: Array, k: Array, beta2: float) -> Array:
    """Bound V_k, (n, m), from M_k, the sum of the k largest p, and E[s], (n, 1), by Jensen."""
    return (1.0 + beta2) * M / (beta2 * (1.0 + mean) + k)


def upper_bound(mean: Array, k: Array, beta2: float) -> Array:
    """Bound V_k, (n, m), from E[s], (n, 1), by Jensen."""
    return (1.0 + beta2) * mean / (beta2 * mean + k)


def least_probability(V: Array, beta2: float) -> Array:
    """Bound the probabilities in an optimal set of two or more labels and value V.

    By Chebyshev's sum inequality it holds none with p (1 + beta^2) (1 + 1 / (beta^2 + 2)) < V.
    """
    return V / ((1.0 + beta2) * (1.0 + 1.0 / (beta2 + 2.0)))


def values(
    backend: Backend, x: Array, K: int, width: int, reach: int, objective: Objective
) -> Array:
    """Compute V_k, (n, K), from the probabilities x, (n, m), in falling order.

    The labels from `width` >= K on are at most SMALL, and no row has more than `reach` labels.
    """
    xp, beta2 = backend.xp, objective.beta2
    rule = nodes(objective.beta, reach, K)
    sums = power_sums(backend, xp.where(x <= SMALL, x, 0.0))
    head = x[:, :width]
    rest = 1.0 - head
    is_large = head > SMALL
    k = backend.one_to(K)
    V = xp.zeros((x.shape[0], K), dtype=backend.dtype, device=backend.device)
    for log_z, weight in zip(rule.log_z.tolist(), rule.weight.tolist(), strict=True):
        u, zeta = -math.expm1(beta2 * log_z), math.exp(beta2 * log_z)
        own = rest + head * zeta  # 1 - p u without cancellation
        own = xp.where(own > 0.0, own, 1.0)  # 0 where zeta underflows; the weight is 0 there too
        exponent = small_exponent(sums, u)
        product = xp.prod(xp.where(is_large, own, 1.0), axis=1) * xp.exp(-exponent)  # (n,)
        share = xp.cumulative_sum(head[:, :K] / own[:, :K], axis=1)  # (n, K)
        scale = (1.0 + beta2) * weight * zeta
        V = V + scale * product[:, None] * xp.exp(k * log_z)[None, :] * share
    return V
