"""Calibrated probabilities of classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from fgfm.decider._calibration import ScoreCalibrator, ShrunkCalibrator, half_step
from fgfm.decider._entries import Entries
from fgfm.decider._log_linear_pool import LogLinearPool
from fgfm.decider._quantiles import inverse_spread

__all__ = ["ClassModel"]

Floats = npt.NDArray[np.float64]


class ClassModel:
    r"""Calibrated probabilities of classes.

    The default is :math:`q_c \propto \exp(b_c) \, p_c^a` with shrunk shifts b: a `LogLinearPool`
    of one distribution. Where there are probabilities of exactly 0, small ones are raised to 1, 2,
    4 or 8 times half of the smallest others, to that with the largest likelihood.

    Scores are pooled in two readings: their softmax in a common unit, as for the logits of a
    network, which only differences in a row matter to; and the odds of each class against the
    others by a `ScoreCalibrator`, which units of their own do not matter to.

    Attributes
    ----------
    calibrator : LogLinearPool or calibrator
        Calibrates the probabilities; those of a calibrator of labels are divided by their sum.
    least : float
        The least probability; smaller ones count as this.
    of_classes : ScoreCalibrator or None
        Calibrates the scores of each class by itself.
    rate : float
        1 / the common unit of scores.
    """

    def __init__(self, calibrator: Any) -> None:
        self.of_classes = calibrator if isinstance(calibrator, ScoreCalibrator) else None
        shrunk = isinstance(calibrator, ShrunkCalibrator)
        self.calibrator = LogLinearPool() if shrunk else calibrator

    def fit(self, entries: Entries, Y: Floats, weight: Floats) -> ClassModel:
        """Fit to validation rows with the classes Y (n, C), one 1 in each row."""
        self.least = 0.0
        if not isinstance(self.calibrator, LogLinearPool):
            self.calibrator.fit(entries, Y, weight)
            return self
        if self.of_classes is not None:
            differences = entries.p - entries.p.mean(axis=1, keepdims=True)
            self.rate = inverse_spread(differences.ravel(), np.repeat(weight, entries.m))
            self.of_classes.fit(entries, Y, weight)
            q = self.of_classes.predict_left_out(entries, Y, weight)
            self.calibrator.fit(self._readings(entries, q), Y.argmax(axis=1), weight)
            return self
        steps = [0.0]
        if (entries.p == 0.0).any():
            half = half_step(entries.p.ravel(), np.repeat(weight, entries.m))
            steps = [half, 2.0 * half, 4.0 * half, 8.0 * half]
        code, best = Y.argmax(axis=1), -np.inf
        for step in steps:
            raised = [np.maximum(entries.p, step)]
            pool = LogLinearPool().fit(raised, code, weight)
            own = pool.predict_proba(raised)[np.arange(len(code)), code]
            likelihood = float(weight @ np.log(np.maximum(own, 1e-300)))
            if likelihood > best:
                self.calibrator, self.least, best = pool, step, likelihood
        return self

    def marginals(self, entries: Entries, threads: int) -> Entries:
        """Return the probability of each class; `threads` is not used."""
        if self.of_classes is not None:
            readings = self._readings(entries, self.of_classes.predict(entries))
            return entries.with_p(self.calibrator.predict_proba(readings))
        if isinstance(self.calibrator, LogLinearPool):
            p = np.maximum(entries.p, self.least)
            return entries.with_p(self.calibrator.predict_proba([p]))
        q = self.calibrator.predict(entries).p
        return entries.with_p(q / q.sum(axis=1, keepdims=True))

    def _readings(self, entries: Entries, q: Entries) -> list[Floats]:
        """Return two distributions (n, C) of the class, from scores and from odds of classes."""
        odds = q.p / (1.0 - q.p)
        return [softmax(self.rate * entries.p, axis=1), odds / odds.sum(axis=1, keepdims=True)]
