"""Independent labels given their number: its distribution, and exponents of the odds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq, root
from scipy.special import expit

from fgfm._kernels import poisson_binomial, reweight_marginals
from fgfm._utils.blocks import row_blocks

__all__ = ["fit_exponents", "independent_cardinalities", "tempered"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_ROWS = 2000  # that exponents are fitted to, at most
_LEAST, _MOST = 0.05, 20.0
_MARGIN = 1e-12


def independent_cardinalities(p: Floats, cardinalities: Integers) -> Floats:
    """Return the probabilities (n, K) of increasing numbers of independent labels.

    p (n, m) are their marginals, `cardinalities` (K,) the numbers.
    """
    pi = np.empty((len(p), int(cardinalities[-1]) + 1))
    for rows in row_blocks(len(p), p.itemsize * p.shape[1]):
        poisson_binomial(np.ascontiguousarray(p[rows]), pi[rows])
    return pi[:, cardinalities]


def tempered(p: Floats, exponent: float, of_rest: float | None = None) -> Floats:
    r"""Return probabilities with the odds :math:`p^t / (1 - p)^u`; 0 stays 0.

    Without `of_rest`, which is u, it is t: a power of the odds.
    """
    present, absent = _logarithms(p)
    u = exponent if of_rest is None else of_rest
    return np.where(p > 0.0, expit(exponent * present - u * absent), 0.0)


def _logarithms(p: Floats) -> tuple[Floats, Floats]:
    """Return log p and log(1 - p) of clipped probabilities."""
    p = np.clip(p, _MARGIN, 1.0 - _MARGIN)
    return np.log(p), np.log1p(-p)


def _zero(derivative: Callable[[float], float], most: float) -> float:
    """Return where a decreasing function of an exponent is 0, or the nearest limit."""
    if derivative(_LEAST) <= 0.0:
        return _LEAST
    if derivative(most) >= 0.0:
        return most
    bounds = np.log([_LEAST, most])
    return float(np.exp(brentq(lambda log_t: derivative(np.exp(log_t)), *bounds, xtol=1e-3)))


def fit_exponents(p: Floats, Y: Floats, weight: Floats) -> Floats:
    r"""Fit t and u of :math:`p(y \mid |y|) \propto \prod_i (p_i^t / (1 - p_i)^u)^{y_i}`.

    They are 1 and 1 for independent labels, and 1 and 0 for one label per row of probability p_i.
    The log-likelihood is concave, with a prior about (1, 1); u is not negative. p (n, m) are
    held-out probabilities, Y (n, m) the true labels. Return t and u, (2,).
    """
    start = np.ones(2)
    gradient = _gradient(p, Y, weight)
    if gradient is None:
        return start
    t, u = root(lambda at: gradient(*at) - 0.5 * (at - start), start, tol=1e-4).x
    if u < 0.0 or t < _LEAST:  # the odds have to increase in p
        t, u = _zero(lambda t: float(gradient(t, 0.0)[0]) - 0.5 * (t - 1.0), _MOST), 0.0
    return np.array([t, u])


def _gradient(p: Floats, Y: Floats, weight: Floats) -> Callable[[float, float], Floats] | None:
    """Return the gradient of the log-likelihood in t and u; None if it is constant."""
    s: Integers = Y.sum(axis=1).astype(np.int64)
    rows = np.flatnonzero((s > 0) & (s < (p > 0.0).sum(axis=1)))  # other sizes have one set only
    if not len(rows):
        return None
    rows = rows[:: -(-len(rows) // _ROWS)]
    p, Y, s, w = p[rows], Y[rows], s[rows], weight[rows, None]
    possible = p > 0.0
    scores = [np.where(possible, w * part, 0.0) for part in _logarithms(p)]  # of p and 1 - p
    given = np.zeros((len(s), int(s.max()) + 1))
    given[np.arange(len(s)), s] = 1.0
    expected = np.empty(p.shape)

    def gradient(t: float, u: float) -> Floats:
        reweight_marginals(p, given, t, u, expected)
        present, absent = (float((part * (Y - expected)).sum()) for part in scores)
        return np.array([present, -absent])

    return gradient
