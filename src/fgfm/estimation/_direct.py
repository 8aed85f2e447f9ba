"""The method "direct": one multinomial model per label, over the cardinalities."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm.cardinality import make_coherent
from fgfm.estimation._base import FactorEstimator
from fgfm.estimation._models import ModelTarget, Predictions
from fgfm.estimation._strategy import Integers, Labels, Strategy
from fgfm.estimation._types import FactorEstimate, Repair

__all__ = ["Direct", "DirectStrategy"]

Floats = npt.NDArray[np.float64]


class DirectStrategy(Strategy):
    """One target for each label: y_i |y|, which is 0 or the cardinality."""

    name = "direct"

    def _targets(self, Y: Labels, s: Integers, kept: Labels) -> list[ModelTarget]:
        # Rows with an unknown number of labels are left out even if they lack the label: with
        # them the label would seem too rare.
        values = [np.where(s < 0, -1, y * s) for y in Y.T]
        self.classes_of_label = [np.unique(v[kept & (s >= 0)]) for v in values]
        return [ModelTarget(v, is_label=self.n_labels == 1) for v in values]

    def _raw(self, predictions: Predictions) -> Floats:
        """Return P (n, m, S) as predicted: p_is is the probability of class s of label i."""
        P = np.zeros((predictions.n_rows, self.n_labels, self.max_cardinality))
        for i, classes in enumerate(self.classes_of_label):
            proba = predictions.predict_proba(self.first_target + i)  # (n, K)
            present = classes > 0
            P[:, i, classes[present] - 1] = proba[:, present]
        return P

    def _combine(self, predictions: Predictions) -> FactorEstimate:
        P = self._raw(predictions)
        if self.coherent:
            P = make_coherent(P)
        d = np.empty((len(P), self.max_cardinality + 1))
        # A coherent P has sum_i p_is = s d_s: a set of s labels is counted s times.
        d[:, 1:] = P.sum(axis=1) / np.arange(1, self.max_cardinality + 1)
        total = d[:, 1:].sum(axis=1)
        d[:, 1:] /= np.maximum(1.0, total)[:, None]  # an incoherent P may imply more than 1
        d[:, 0] = np.maximum(0.0, 1.0 - total)
        return FactorEstimate(P, d)

    def repair(self, predictions: Predictions) -> Repair:
        """Return the incoherence of the raw P."""
        P = self._raw(predictions)
        d_0 = 1.0 - (P.sum(axis=1) / np.arange(1, self.max_cardinality + 1)).sum(axis=1)
        return Repair(d_0, np.abs(make_coherent(P) - P).sum(axis=(1, 2)))


class Direct(FactorEstimator):
    r"""Estimate P by one multinomial model per label (Dembczynski et al., ICML 2013).

    The model of label i has the classes 0 (without the label) and s (with it, among s labels), so
    that :math:`p_{is}` is the probability of class s. The models of different labels need not
    agree on the number of labels: :math:`d_0 = 1 - \sum_s \frac1s \sum_i p_{is}` may be negative,
    and :math:`p_{is}` may exceed :math:`d_s`.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        The base learner; `fgfm.ridge.RidgeLogistic` by default.
    coherent : bool, default=True
        Replace P by the nearest coherent one in relative entropy
        (`fgfm.cardinality.make_coherent`). False keeps P as predicted and clips :math:`d_0` at 0.
    calibration : {"auto", "sigmoid", "isotonic"}, splitter or None, default="auto"
        Calibration of the base learner, as in `fgfm.FGFMClassifier`.
    cv : int, splitter or iterable, optional
        Folds for choosing the penalty of the default learner (3) and for calibration (5).
    n_jobs : int, optional
        Number of jobs that fit models, as in joblib.
    random_state : int, RandomState instance or None, default=None
        Seeds the folds, and base learners without a seed.

    Attributes
    ----------
    cardinalities_ : ndarray
        The numbers of labels that occur in training; others get probability 0.

    Examples
    --------
    >>> import numpy as np
    >>> from fgfm.estimation import Direct
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (200, 3))
    >>> Y = (rng.random((200, 2)) < 0.2 + 0.6 * X[:, :2]).astype(int)
    >>> model = Direct(random_state=0).fit(X, Y)
    >>> d_0, moved = model.repair(X)
    >>> round(float(np.mean(d_0 < 0)), 2), round(float(moved.max()), 3)
    (0.0, 0.032)
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        coherent: bool = True,
        calibration: Any = "auto",
        cv: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            estimator, calibration=calibration, cv=cv, n_jobs=n_jobs, random_state=random_state
        )
        self.coherent = coherent

    def _strategy(self) -> DirectStrategy:
        return DirectStrategy(self.coherent)

    def repair(self, X: Any) -> Repair:
        """Measure how incoherent the predicted P is, row by row.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        Repair
            ``d_0``, the probability of no label that the predicted P implies, and ``moved``, the
            probability that the projection onto coherent P moves.
        """
        X = self._validate_fitted(X)
        return self._factor_models.repair(X)[0]
