"""What the best set of each size is worth: all that a decision chooses from.

With Delta_ik as in `fgfm.decision.from_cardinalities`, V_k is the sum of the k largest Delta_ik,
and T(k) = sum_i Delta_ik = E[(1 + beta^2) s / (beta^2 s + k)] bounds it. The decisions skip most
sizes; here none is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm.decision._quadrature import nodes

__all__ = ["SetSizes", "sizes_of_cardinalities", "sizes_of_factors", "sizes_of_marginals"]

Floats = npt.NDArray[np.float64]


class SetSizes(NamedTuple):
    """The worth of the best set of each size 0 .. m, and its bound."""

    values: Floats  # (m + 1,) NaN at 0 where the empty set is no choice
    bounds: Floats  # (m + 1,) NaN at 0


def sizes_of_marginals(p: Floats, beta: float, zero_division: float, nonempty: bool) -> SetSizes:
    """Give the worth of each size for independent labels with marginals p (m,)."""
    m = len(p)
    log_z, weight = nodes(beta, m, m)
    u = -np.expm1(beta**2 * log_z)  # (R,)
    p = -np.sort(-p)  # the most probable labels are the best set of any size
    C = _expectations(p[:, None] * np.exp(beta**2 * log_z), 1.0 - np.outer(p, u), np.arange(m))
    k = np.arange(1, m + 1)
    W = (1.0 + beta**2) * weight * np.exp(np.outer(k, log_z))  # (m, R)
    values = (W * np.cumsum(C, axis=0)).sum(axis=1)
    with np.errstate(divide="ignore"):
        log_empty = float(np.log1p(-p).sum())
    return _conditioned(values, W @ C.sum(axis=0), log_empty, zero_division, nonempty)


def sizes_of_cardinalities(
    P: Floats, d: Floats | None, beta: float, zero_division: float, nonempty: bool
) -> SetSizes:
    """Give the worth of each size for P (m, S), and d (S + 1,) where it does not come from P."""
    s = np.arange(1, P.shape[1] + 1)
    d = _distribution(P) if d is None else d
    values, bounds = _every_size(P, lambda k: (1.0 + beta**2) / (beta**2 * s + k))
    log_empty = _log_empty(d)
    return _conditioned(values, bounds, log_empty, zero_division, nonempty)


def sizes_of_factors(
    Ps: Sequence[Floats],
    ds: Sequence[Floats] | None,
    beta: float,
    zero_division: float,
    nonempty: bool,
) -> SetSizes:
    """Give the worth of each size for the P (m_f, S_f) of independent factors."""
    ds = [_distribution(P) for P in Ps] if ds is None else ds
    sizes = [len(P) for P in Ps]
    log_z, weight = nodes(beta, sum(P.shape[1] for P in Ps), sum(sizes))
    longest = max(P.shape[1] for P in Ps)
    powers = np.exp(beta**2 * np.outer(np.arange(longest + 1), log_z))  # (S + 1, R)
    G = np.concatenate([P @ powers[1 : P.shape[1] + 1] for P in Ps])  # (m, R)
    D = np.stack([d @ powers[: len(d)] for d in ds])  # (F, R)
    C = _expectations(G, D, np.repeat(np.arange(len(Ps)), sizes))
    values, bounds = _every_size(C, lambda k: (1.0 + beta**2) * weight * np.exp(k * log_z))
    log_empty = sum(_log_empty(d) for d in ds)
    return _conditioned(values, bounds, log_empty, zero_division, nonempty)


def _expectations(G: Floats, D: Floats, factor: npt.NDArray[np.int64]) -> Floats:
    """Give E[y_i zeta^s] = G_i(zeta) prod_{g != f(i)} D_g(zeta), (m, R)."""
    own = D[factor]
    with np.errstate(divide="ignore"):  # where D is 0, so is G
        product = np.exp(np.log(D).sum(axis=0))
    return np.asarray(G * np.divide(product, own, out=np.zeros_like(own), where=own > 0.0))


def _every_size(C: Floats, weights: Callable[[int], Floats]) -> tuple[Floats, Floats]:
    """Give the sum of the k largest Delta_.k = C w_k, and of all of them, for k = 1 .. m."""
    m = len(C)
    values, bounds = np.empty(m), np.empty(m)
    for k in range(1, m + 1):
        delta = C @ weights(k)  # (m,)
        bounds[k - 1] = delta.sum()
        values[k - 1] = np.partition(delta, m - k)[m - k :].sum()
    return values, bounds


def _distribution(P: Floats) -> Floats:
    """Give d (S + 1,) of P (m, S), which was checked before."""
    d = P.sum(axis=0) / np.arange(1, P.shape[1] + 1)
    return np.concatenate([[max(0.0, 1.0 - d.sum())], d])


def _log_empty(d: Floats) -> float:
    """Give log d_0, such that 1 - d_0 has no cancellation where it is small."""
    present = float(d[1:].sum())
    return float(np.log1p(-present)) if present < 1.0 else -np.inf


def _conditioned(
    values: Floats, bounds: Floats, log_empty: float, zero_division: float, nonempty: bool
) -> SetSizes:
    """Put the empty set in front, or divide by the probability of the others."""
    present = -np.expm1(log_empty)
    if nonempty and present == 0.0:
        return SetSizes(*np.full((2, len(values) + 1), np.nan))
    empty = np.nan if nonempty else zero_division * np.exp(log_empty)
    share = present if nonempty else 1.0
    return SetSizes(
        np.concatenate([[empty], values / share]), np.concatenate([[np.nan], bounds / share])
    )
