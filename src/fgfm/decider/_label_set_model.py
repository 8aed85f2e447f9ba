r"""The distribution of the label set of a row, from its marginal probabilities.

.. math:: p(y) \propto g(|y|) \prod_i \bigl(q_i^t / (1 - q_i)^u\bigr)^{y_i},

with calibrated probabilities :math:`q_i`, exponents t and u, and g such that the number of labels
has a distribution d that is learned (docs/design.md, "FDecider").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq, root
from scipy.special import expit

from fgfm._kernels import poisson_binomial, reweight_marginals, softmax
from fgfm._utils.blocks import row_blocks, run_blocks
from fgfm.decider._entries import Entries
from fgfm.decider._log_linear_pool import LogLinearPool, possible_numbers
from fgfm.decider._missed import MissedItems

__all__ = ["LabelSetModel", "tempered"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Labels = npt.NDArray[np.bool_]

_LEAST_NUMBER = 0.05  # probability of a number of labels by a further model
_SURE = 1e-9  # distance that the probability of some label keeps from 0 and 1
# Constants of `_fit_exponents`: rows that are used, and limits of the exponents.
_ROWS = 2000
_LEAST, _MOST = 0.05, 20.0
_MARGIN = 1e-12


class LabelSetModel:
    """Independent labels reweighted to a learned cardinality distribution.

    Attributes
    ----------
    calibrator : object
        Calibrates the probabilities.
    cardinalities : ndarray
        The numbers of labels that are possible.
    one_for_all : bool
        Whether all labels share one calibration, as positions in lists do.
    pool : LogLinearPool or None
        The distribution of the number of labels, from those of `_numbers`; None for one label.
    informed : LogLinearPool or None
        The same where a further model predicts that number too.
    missed : MissedItems or None
        The number of true items that no entry stands for, given that of labels; None without any.
    exponents : ndarray of shape (2,)
        The exponents t and u of the odds. They are below 1 where labels exclude each other: the
        calibrated probabilities account for that already, and so does the number of labels.
    """

    def __init__(self, calibrator: Any, *, one_for_all: bool = False) -> None:
        self.calibrator, self.one_for_all = calibrator, one_for_all
        self.pool: LogLinearPool | None = None
        self.informed: LogLinearPool | None = None
        self.missed: MissedItems | None = None

    def fit(
        self,
        entries: Entries,
        Y: Floats,
        weight: Floats,
        observed: Labels | None = None,
        missed: Integers | None = None,
    ) -> LabelSetModel:
        """Fit to validation rows.

        Parameters
        ----------
        entries : Entries
            Probabilities of n rows.
        Y : ndarray of shape (n, K)
            The true labels at these entries, 0 or 1.
        weight : ndarray of shape (n,)
            Sample weights; at least one is positive.
        observed : ndarray of bool of shape (n, m), optional
            Which labels are known. Rows with others are left out of the distribution of the number
            of labels and of the exponents; if all are, labels are taken as independent.
        missed : ndarray of shape (n,), optional
            Numbers of true items that no entry stands for.

        Returns
        -------
        LabelSetModel
            The fitted model.
        """
        kept = np.flatnonzero(weight)
        entries, Y, weight = entries.take(kept), Y[kept], weight[kept]
        self.exponents = np.ones(2)
        s = Y.sum(axis=1).astype(np.int64)  # (n,)
        if observed is None:
            self.calibrator.fit(self._calibrated(entries), Y, weight)
            known = s
        else:
            self.calibrator.fit(entries, Y, weight[:, None] * observed[kept])
            complete = observed[kept].all(axis=1)
            # Other rows have at least as many labels as are known.
            known = s[complete | (s > 0)] if complete.any() else np.arange(entries.m + 1)
            rows = np.flatnonzero(complete)
            entries, Y, weight, s = entries.take(rows), Y[rows], weight[rows], s[rows]
        self.cardinalities = possible_numbers(known, entries.m)
        if missed is not None and missed[kept].any():
            most = max(1, int(self.cardinalities[-1]))
            self.missed = MissedItems().fit(missed[kept], s, weight, most)
        if entries.m == 1:
            return self
        # Fitted to probabilities that have seen the labels of their row, it would be too certain.
        if hasattr(self.calibrator, "predict_left_out"):
            q = self.calibrator.predict_left_out(self._calibrated(entries), Y, weight)
        else:
            q = self.calibrator.predict(self._calibrated(entries))
        code = np.searchsorted(self.cardinalities, s)
        numbers = self._numbers(q.p)
        self.pool = LogLinearPool(self.cardinalities).fit(numbers, code, weight)
        if entries.cardinality is not None:
            numbers.append(self._of_further_model(entries.cardinality))
            self.informed = LogLinearPool(self.cardinalities).fit(numbers, code, weight)
        self.exponents = _fit_exponents(q.p, Y, weight)
        return self

    def predict(self, entries: Entries) -> tuple[Floats, Floats]:
        """Return what is known of the label sets of some rows.

        Parameters
        ----------
        entries : Entries
            Probabilities of n rows.

        Returns
        -------
        q : ndarray of shape (n, K)
            Calibrated probabilities.
        d : ndarray of shape (n, S + 1)
            Distribution of the number of labels. A row with fewer labels than s has all of them
            with probability d_s.
        """
        q = self.calibrator.predict(self._calibrated(entries)).p
        return self._label_sets(q, entries.cardinality)

    def _calibrated(self, entries: Entries) -> Entries:
        """Return entries with the labels that are calibrated."""
        return entries.as_one_label() if self.one_for_all else entries

    def _label_sets(self, q: Floats, cardinality: Floats | None) -> tuple[Floats, Floats]:
        """Return what `predict` does, from calibrated probabilities (n, K)."""
        if self.pool is None:
            return q[:, :1], np.hstack([1.0 - q[:, :1], q[:, :1]])
        d = np.zeros((len(q), max(1, int(self.cardinalities[-1])) + 1))
        if cardinality is None or self.informed is None:
            known = self.pool.log_weights(self._numbers(q))
        else:
            numbers = [*self._numbers(q), self._of_further_model(cardinality)]
            known = self.informed.log_weights(numbers)
        softmax(known)
        d[:, self.cardinalities] = known
        return q, d

    def _numbers(self, q: Floats) -> list[Floats]:
        """Return the distributions (n, K) of the number of labels that are pooled.

        The first one is that of independent labels. Where rows may have no label, two more
        distinguish only none from some: none has the probability of independent labels, or that
        the most probable label is absent. Their weights calibrate the probability of none.
        """
        independent = _independent_cardinalities(q, self.cardinalities)
        if self.cardinalities[0] > 0:
            return [independent]
        empty = self.cardinalities == 0
        # Nearer to 0 and 1 the difference of 1 and a probability is rounding error.
        some = (1.0 - independent[:, :1], q.max(axis=1, keepdims=True))
        clipped = (np.clip(p, _SURE, 1.0 - _SURE) for p in some)
        return [independent, *(np.where(empty, 1.0 - p, p) for p in clipped)]

    def _of_further_model(self, cardinality: Floats) -> Floats:
        """Return a distribution (n, S + 1) at the possible numbers, (n, K); none is impossible."""
        within = self.cardinalities < cardinality.shape[1]
        d = np.full((len(cardinality), len(within)), _LEAST_NUMBER)
        d[:, within] = np.maximum(cardinality[:, self.cardinalities[within]], _LEAST_NUMBER)
        return d

    def marginals(self, entries: Entries, threads: int) -> Entries:
        """Return the probability of each entry under the model."""
        p = np.empty(entries.p.shape)

        def fill(rows: slice) -> None:
            reweight_marginals(*self.predict(entries.take(rows)), *self.exponents, p[rows])

        self.run_blocks(entries, threads, fill)
        return entries._replace(p=p)

    def left_out_marginals(self, entries: Entries, Y: Floats, weight: Floats) -> Entries:
        """Return the marginals of the rows of `fit`, each left out of the calibration.

        The calibrator has ``predict_left_out``.
        """
        p = np.empty(entries.p.shape)
        q = self.calibrator.predict_left_out(entries, Y, weight).p
        reweight_marginals(*self._label_sets(q, entries.cardinality), *self.exponents, p)
        return entries._replace(p=p)

    def missed_items(self) -> tuple[Floats, Floats]:
        """Return J numbers of missed items, and p(number | s), (S + 1, J); empty without any."""
        if self.missed is None:
            return np.empty(0), np.empty((0, 0))
        return self.missed.numbers, self.missed.given

    def run_blocks(self, entries: Entries, threads: int, work: Callable[[slice], None]) -> None:
        """Call ``work(rows)`` for blocks of rows whose probabilities fit into a cache."""
        n, K = entries.p.shape
        S = int(self.cardinalities[-1])
        # With constraints there is a P, of at most 64 MiB.
        run_blocks(n, max(64 * (K + S), K * S // 2), threads, work)


def _independent_cardinalities(p: Floats, cardinalities: Integers) -> Floats:
    """Return the probabilities (n, K) of increasing numbers of independent labels.

    p (n, m) are their marginals, `cardinalities` (K,) the numbers.
    """
    pi = np.empty((len(p), int(cardinalities[-1]) + 1))
    for rows in row_blocks(len(p), p.itemsize * p.shape[1]):
        poisson_binomial(np.ascontiguousarray(p[rows]), pi[rows])
    return pi[:, cardinalities]


def tempered(p: Floats, t: float, u: float) -> Floats:
    r"""Return probabilities with the odds :math:`p^t / (1 - p)^u`; 0 stays 0."""
    present, absent = _logarithms(p)
    return np.where(p > 0.0, expit(t * present - u * absent), 0.0)


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


def _fit_exponents(p: Floats, Y: Floats, weight: Floats) -> Floats:
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
