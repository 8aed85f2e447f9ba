r"""The distribution of the label set of a row, from its marginal probabilities.

.. math:: p(y) \propto g(|y|) \prod_i \bigl(q_i^t / (1 - q_i)^u\bigr)^{y_i},

with calibrated probabilities :math:`q_i`, exponents t and u, and g such that the number of labels
has a distribution d that is learned (docs/design.md, "FDecider").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm._utils.blocks import run_blocks
from fgfm._utils.log_linear_pool import LogLinearPool
from fgfm.cardinality import of_marginals
from fgfm.estimation._calibration import ShrunkCalibrator
from fgfm.estimation._entries import Entries
from fgfm.estimation._exponent import fit_exponents, independent_cardinalities, powered

__all__ = ["JointModel", "RowModel"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class RowModel(NamedTuple):
    """P and d of some rows, as in `fgfm.decision.from_cardinalities`."""

    P: Floats  # (n, K, S)
    d: Floats  # (n, S + 1)

    @property
    def marginals(self) -> Floats:
        """The probability (n, K) of each entry."""
        return np.asarray(np.minimum(self.P.sum(axis=2), 1.0))


class JointModel:
    """Independent labels reweighted to a learned cardinality distribution.

    Attributes
    ----------
    calibrator : object
        Calibrates the probabilities.
    cardinalities : ndarray
        The numbers of labels that occur in the validation rows.
    pool : LogLinearPool
        The distribution of the number of labels, from those of `_numbers`.
    exponents : ndarray of shape (2,)
        The exponents t and u of the odds. They are below 1 where labels exclude each other: the
        calibrated probabilities account for that already, and so does the number of labels.
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
        self.exponents = np.ones(2)
        s = Y.sum(axis=1).astype(np.int64)  # (n,)
        self.cardinalities = np.unique(s)
        if entries.m == 1:
            return self
        # Fitted to probabilities that have seen the labels of their row, it would be too certain.
        if isinstance(self.calibrator, ShrunkCalibrator):
            q = self.calibrator.predict_left_out(entries, Y, weight)
        else:
            q = self.calibrator.predict(entries)
        code = np.searchsorted(self.cardinalities, s)
        self.pool = LogLinearPool().fit(self._numbers(q.p), code, weight)
        self.exponents = fit_exponents(q.p, Y, weight)
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
            P of shape (n, K, S) and d of shape (n, S + 1), with S at most K.
        """
        q = self.calibrator.predict(entries)
        if entries.m == 1:
            p = q.p[:, :1]
            return RowModel(p[:, :, None], np.hstack([1.0 - p, p]))
        S = max(1, int(self.cardinalities[-1]))
        d = np.zeros((len(q.p), S + 1))
        d[:, self.cardinalities] = self.pool.predict_proba(self._numbers(q.p))
        d = _possible(d, q)[:, : q.p.shape[1] + 1]  # the K stored labels may be fewer than S
        return RowModel(of_marginals(powered(q.p, *self.exponents), d, method="condition"), d)

    def _numbers(self, q: Floats) -> list[Floats]:
        """Return the distributions (n, K) of the number of labels that are pooled.

        The first one is that of independent labels. Where rows may have no label, two more
        distinguish only none from some: none has the probability of independent labels, or that
        the most probable label is absent. Their weights calibrate the probability of none.
        """
        independent = independent_cardinalities(q, self.cardinalities)
        if self.cardinalities[0] > 0:
            return [independent]
        empty = self.cardinalities == 0
        some = [1.0 - independent[:, :1], q.max(axis=1, keepdims=True)]
        return [independent, *(np.where(empty, 1.0 - p, p) for p in some)]

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
