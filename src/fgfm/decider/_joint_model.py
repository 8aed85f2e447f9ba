r"""The distribution of the label set of a row, from its marginal probabilities.

.. math:: p(y) \propto \prod_i o_i^{t y_i} \; g(|y|),

with :math:`o_i` the odds of the calibrated probabilities, an exponent t, and g such that the number
of labels has a distribution d that is learned (docs/design.md, "FDecider").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import expit, logit

from fgfm._kernels import poisson_binomial
from fgfm._utils.blocks import row_blocks, run_blocks
from fgfm.cardinality import from_marginals
from fgfm.decider._entries import Entries
from fgfm._utils.log_linear_pool import LogLinearPool

__all__ = ["JointModel", "RowModel"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_ROWS = 2000  # validation rows that the exponent is fitted to, at most
_PRECISION = 2.0  # of the exponent's prior, about 1, in units of the log-likelihood of a row
_LEAST, _MOST = 0.05, 20.0  # of the exponent
_MARGIN = 1e-12


class RowModel(NamedTuple):
    """P and d of some rows, as in `fgfm.decision.from_cardinalities`."""

    P: Floats  # (n, K, S)
    d: Floats  # (n, S + 1)

    @property
    def marginals(self) -> Floats:
        """The probability (n, K) of each entry."""
        return np.minimum(self.P.sum(axis=2), 1.0)


class JointModel:
    """Independent labels reweighted to a learned cardinality distribution.

    Attributes
    ----------
    calibrator : object
        Calibrates the probabilities.
    cardinalities : ndarray
        The numbers of labels that occur in the validation rows.
    pool : LogLinearPool
        The distribution of the number of labels, from that of independent labels.
    exponent : float
        The exponent t of the odds. It is below 1 where labels exclude each other: the calibrated
        probabilities account for that already, and so does the number of labels.
    """

    def __init__(self, calibrator: Any) -> None:
        self.calibrator = calibrator

    def fit(self, entries: Entries, Y: Floats, weight: Floats) -> JointModel:
        """Fit to validation rows.

        Parameters
        ----------
        entries : Entries
            Probabilities of n rows.
        Y : ndarray of shape (n, K)
            The true labels at these entries, 0 or 1.
        weight : ndarray of shape (n,)
            Sample weights; at least one is positive.

        Returns
        -------
        JointModel
            The fitted model.
        """
        kept = np.flatnonzero(weight)
        entries, Y, weight = entries.at(kept), Y[kept], weight[kept]
        self.calibrator.fit(entries, Y, weight)
        self.exponent = 1.0
        s = Y.sum(axis=1).astype(np.int64)  # (n,)
        self.cardinalities = np.unique(s)
        if entries.m == 1:
            return self
        q = self.calibrator.predict(entries)
        code = np.searchsorted(self.cardinalities, s)
        self.pool = LogLinearPool().fit([self._independent(q.p)], code, weight)
        self.exponent = _fit_exponent(q, Y, s, weight)
        return self

    def predict(self, entries: Entries) -> RowModel:
        """Return P and d of some rows.

        Parameters
        ----------
        entries : Entries
            Probabilities of n rows.

        Returns
        -------
        RowModel
            P of shape (n, K, S) and d of shape (n, S + 1).
        """
        q = self.calibrator.predict(entries)
        if entries.m == 1:
            p = q.p[:, :1]
            return RowModel(p[:, :, None], np.hstack([1.0 - p, p]))
        S = max(1, int(self.cardinalities[-1]))
        d = np.zeros((len(q.p), S + 1))
        d[:, self.cardinalities] = self.pool.predict_proba([self._independent(q.p)])
        d = _possible(d, q)
        return RowModel(from_marginals(_powered(q, self.exponent), d, method="condition"), d)

    def marginals(self, entries: Entries, threads: int) -> Entries:
        """Return the probability of each entry under the model."""
        p = np.empty(entries.p.shape)

        def fill(rows: slice) -> None:
            p[rows] = self.predict(entries.at(rows)).marginals

        self.run_blocks(entries, threads, fill)
        return entries._replace(p=p)

    def run_blocks(self, entries: Entries, threads: int, work: Callable[[slice], None]) -> None:
        """Call ``work(rows)`` for blocks of rows, with at most 64 MiB of P per thread."""
        n, K = entries.p.shape
        run_blocks(n, max(1, K * max(1, int(self.cardinalities[-1])) // 2), threads, work)

    def _independent(self, p: Floats) -> Floats:
        """Return the probabilities (n, C) of `cardinalities` for independent labels."""
        pi = np.empty((len(p), int(self.cardinalities[-1]) + 1))
        poisson_binomial(np.ascontiguousarray(p), pi)
        return pi[:, self.cardinalities]


def _possible(d: Floats, q: Entries) -> Floats:
    """Move probability from more labels than a row can have to as many as it can have."""
    if q.labels is None:
        return d
    most = np.minimum((q.labels < q.m).sum(axis=1), d.shape[1] - 1)  # (n,)
    beyond = np.arange(d.shape[1]) > most[:, None]
    excess = np.where(beyond, d, 0.0).sum(axis=1)
    d = np.where(beyond, 0.0, d)
    d[np.arange(len(d)), most] += excess
    return d


def _powered(q: Entries, exponent: float) -> Floats:
    """Return probabilities whose odds are those of q to a power, for sums of rows below 1."""
    p = expit(exponent * logit(np.clip(q.p, _MARGIN, 1.0 - _MARGIN)))
    return q.with_p(np.asarray(p)).p


def _fit_exponent(q: Entries, Y: Floats, s: Integers, weight: Floats) -> float:
    """Return the exponent that maximises the likelihood of label sets given their size.

    The derivative of log p(y | |y|) by t is the sum of (y_i - p(y_i = 1 | |y|)) times the logit.
    It decreases in t, so that it has one zero.
    """
    possible = (q.p > 0.0).sum(axis=1)
    rows = np.flatnonzero((s > 0) & (s < possible))  # other sizes have one set only
    rows = rows[:: -(-len(rows) // _ROWS)] if len(rows) else rows
    if not len(rows):
        return 1.0
    q, Y, s = q.at(rows), Y[rows], s[rows]
    w = weight[rows, None] * np.where(q.p > 0.0, logit(np.clip(q.p, _MARGIN, 1.0 - _MARGIN)), 0.0)

    def derivative(log_t: float) -> float:
        t = float(np.exp(log_t))
        given = np.zeros((len(s), int(s.max()) + 1))
        given[np.arange(len(s)), s] = 1.0
        total = -_PRECISION * (t - 1.0)  # of the prior
        n, K = q.p.shape
        for block in row_blocks(n, max(1, K * given.shape[1] // 2)):
            P = from_marginals(_powered(q.at(block), t), given[block], method="condition")
            total += float((w[block] * (Y[block] - P.sum(axis=2))).sum())
        return total

    low, high = np.log(_LEAST), np.log(_MOST)
    if derivative(low) <= 0.0:
        return _LEAST
    if derivative(high) >= 0.0:
        return _MOST
    return float(np.exp(brentq(derivative, low, high, xtol=1e-3)))
