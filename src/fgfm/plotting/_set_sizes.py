r"""The expected F-measure of the best label set of each size.

With :math:`\Delta_{ik} = \sum_s (1 + \beta^2) p_{is} / (\beta^2 s + k)`, as in
`fgfm.decision.from_cardinalities`, the best set of size k has the value V_k, the sum of the k
largest :math:`\Delta_{ik}`. It is bounded by
:math:`T(k) = \sum_i \Delta_{ik} = E[(1 + \beta^2) s / (\beta^2 s + k)]`. Decisions skip most
sizes; the curves here contain all of them.

If labels or factors are independent of each other, the sums over s are not computed from their
joint distribution. The reciprocal is a sum of exponentials,

.. math:: \frac{1}{a} = \int_{-\infty}^{\infty} \exp(v - a e^v) \, dv
          \approx \sum_r w_r z_r^a, \qquad z_r = \exp(-e^{v_r}),

by the trapezoidal rule, so that each :math:`\Delta_{ik}` is a sum of products of generating
functions at :math:`\zeta_r = z_r^{\beta^2}` (docs/design.md, "Separating s from k").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["SetSizes", "sizes_of_factors", "sizes_of_marginals"]

Floats = npt.NDArray[np.float64]


class SetSizes(NamedTuple):
    """The expected F-measure of the best set of each size 0 .. m, and its bound."""

    values: Floats  # (m + 1,) NaN at 0 if the empty set is not allowed
    bounds: Floats  # (m + 1,) NaN at 0


def sizes_of_marginals(p: Floats, beta: float, zero_division: float, nonempty: bool) -> SetSizes:
    """Return the value of each size for independent labels with marginals p (m,)."""
    m = len(p)
    log_z, weight = _reciprocal_sum(beta**2 * m + m)
    p = -np.sort(-p)  # the most probable labels are the best set of any size
    log_zeta = beta**2 * log_z
    D = 1.0 + np.outer(p, np.expm1(log_zeta))  # (m, R) 1 - p + p zeta
    C = _expectations(np.outer(p, np.exp(log_zeta)), D, np.arange(m))
    k = np.arange(1, m + 1)
    W = (1.0 + beta**2) * weight * np.exp(np.outer(k, log_z))  # (m, R)
    values = (W * np.cumsum(C, axis=0)).sum(axis=1)
    with np.errstate(divide="ignore"):
        log_empty = float(np.log1p(-p).sum())
    return _with_empty_set(values, W @ C.sum(axis=0), log_empty, zero_division, nonempty)


def sizes_of_factors(
    Ps: Sequence[Floats],
    ds: Sequence[Floats],
    beta: float,
    zero_division: float,
    nonempty: bool,
) -> SetSizes:
    """Return the value of each size for P (m_f, S_f) and d (S_f + 1,) of independent factors."""
    sizes = [len(P) for P in Ps]
    log_z, weight = _reciprocal_sum(beta**2 * sum(P.shape[1] for P in Ps) + sum(sizes))
    longest = max(P.shape[1] for P in Ps)
    powers = np.exp(beta**2 * np.outer(np.arange(longest + 1), log_z))  # (S + 1, R) zeta^s
    G = np.concatenate([P @ powers[1 : P.shape[1] + 1] for P in Ps])  # (m, R)
    D = np.stack([d @ powers[: len(d)] for d in ds])  # (F, R)
    C = _expectations(G, D, np.repeat(np.arange(len(Ps)), sizes))
    m = len(C)
    values, bounds = np.empty(m), np.empty(m)
    for k in range(1, m + 1):  # the k largest Delta_ik = C_i . w_k, and all of them
        delta = C @ ((1.0 + beta**2) * weight * np.exp(k * log_z))  # (m,)
        bounds[k - 1] = delta.sum()
        values[k - 1] = np.partition(delta, m - k)[m - k :].sum()
    log_empty = sum(_log_empty(d) for d in ds)
    return _with_empty_set(values, bounds, log_empty, zero_division, nonempty)


def _reciprocal_sum(largest: float) -> tuple[Floats, Floats]:
    """Return log z and w with sum_r w_r z_r^a = 1 / a for all a in [1, largest].

    The trapezoidal rule converges like exp(-pi^2 / step): 0.27 gives 1e-15 relative to 1 / a. The
    integrand is below 1e-15 / largest for v < -log(largest) - 34.5, since log(1e-15) = -34.5, and
    below 1e-21 for v > 4.
    """
    step = 0.27
    v = np.arange(-np.log(largest) - 34.5, 4.0, step)  # (R,)
    return -np.exp(v), step * np.exp(v)


def _expectations(G: Floats, D: Floats, factor: npt.NDArray[np.int64]) -> Floats:
    """Return E[y_i zeta^s] = G_i(zeta) prod_{g != f(i)} D_g(zeta), (m, R)."""
    own = D[factor]
    with np.errstate(divide="ignore"):  # where D is 0, so is G
        product = np.exp(np.log(D).sum(axis=0))
    return np.asarray(G * np.divide(product, own, out=np.zeros_like(own), where=own > 0.0))


def _log_empty(d: Floats) -> float:
    """Return log d_0 as log(1 - (d_1 + ... + d_S)), so that 1 - d_0 keeps its digits if small."""
    present = float(d[1:].sum())
    return float(np.log1p(-present)) if present < 1.0 else -np.inf


def _with_empty_set(
    values: Floats, bounds: Floats, log_empty: float, zero_division: float, nonempty: bool
) -> SetSizes:
    """Prepend the value of the empty set, or condition on a true set that is not empty."""
    present = -np.expm1(log_empty)
    if nonempty and present == 0.0:
        return SetSizes(*np.full((2, len(values) + 1), np.nan))
    empty = np.nan if nonempty else zero_division * np.exp(log_empty)
    share = present if nonempty else 1.0
    return SetSizes(
        np.concatenate([[empty], values / share]), np.concatenate([[np.nan], bounds / share])
    )
