"""The exponent of the odds in the distribution of a label set given its size."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import expit, logit

from fgfm._utils.blocks import row_blocks
from fgfm.cardinality import of_marginals

__all__ = ["fit_exponent", "powered"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_ROWS = 2000  # that the exponent is fitted to, at most
_PRECISION = 2.0  # of its prior, about 1, in units of the log-likelihood of a row
_LEAST, _MOST = 0.05, 20.0
_MARGIN = 1e-12


def powered(p: Floats, exponent: float) -> Floats:
    """Return probabilities whose odds are those of p to a power; 0 stays 0."""
    q = expit(exponent * logit(np.clip(p, _MARGIN, 1.0 - _MARGIN)))
    return np.where(p > 0.0, q, 0.0)


def fit_exponent(p: Floats, Y: Floats, weight: Floats, most: float = _MOST) -> float:
    r"""Fit the exponent t of :math:`p(y \mid |y|) \propto \prod_i o_i^{t y_i}`.

    The derivative of log p(y | \|y\|) by t is the sum of (y_i - p(y_i = 1 | \|y\|)) times the
    logit. It decreases in t, so that it has one zero.

    Parameters
    ----------
    p : ndarray of shape (n, m)
        Held-out probabilities, with odds o; labels of probability 0 are impossible.
    Y : ndarray of shape (n, m)
        True labels, 0 or 1.
    weight : ndarray of shape (n,)
        Sample weights.
    most : float, default=20
        The largest exponent.

    Returns
    -------
    float
        The exponent: 1 for independent labels, and less where labels exclude each other, because
        their probabilities account for that already.
    """
    s: Integers = Y.sum(axis=1).astype(np.int64)
    rows = np.flatnonzero((s > 0) & (s < (p > 0.0).sum(axis=1)))  # other sizes have one set only
    if not len(rows):
        return 1.0
    rows = rows[:: -(-len(rows) // _ROWS)]
    p, Y, s = p[rows], Y[rows], s[rows]
    logits = np.where(p > 0.0, logit(np.clip(p, _MARGIN, 1.0 - _MARGIN)), 0.0)
    scores = weight[rows, None] * logits
    given = np.zeros((len(s), int(s.max()) + 1))
    given[np.arange(len(s)), s] = 1.0
    blocks = row_blocks(len(s), max(1, p.shape[1] * given.shape[1] // 2))  # P of 64 MiB

    def derivative(log_t: float) -> float:
        t = float(np.exp(log_t))
        total = -_PRECISION * (t - 1.0)  # of the prior
        for block in blocks:
            P = of_marginals(powered(p[block], t), given[block], method="condition")
            total += float((scores[block] * (Y[block] - P.sum(axis=2))).sum())
        return total

    low, high = np.log(_LEAST), np.log(most)
    if derivative(low) <= 0.0:
        return _LEAST
    if derivative(high) >= 0.0:
        return most
    return float(np.exp(brentq(derivative, low, high, xtol=1e-3)))
