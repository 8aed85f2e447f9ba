"""The estimate without a model of the number of labels: each label tells it for itself."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from fgfm.cardinality import make_coherent
from fgfm.estimation._models import Answers, Target
from fgfm.estimation.base import (
    FactorEstimate,
    FactorEstimator,
    Labels,
    singleton_estimate,
    validate_features,
)

__all__ = ["Direct", "Repair"]

Floats = npt.NDArray[np.float64]


class Repair(NamedTuple):
    """What had to be mended in the P of each row, as `Direct.repair` gives it."""

    d_0: Floats  # (n,) the probability of no label that the raw P implies; it may be negative
    moved: Floats  # (n,) the sum of |p'_is - p_is|


class Direct(FactorEstimator):
    r"""Estimate P by one multinomial model per label (Dembczynski et al., ICML 2013).

    The model of label i has the classes 0 (without the label) and s (with it, among s labels), so
    that :math:`p_{is}` is the probability of class s. Nothing makes the labels agree on the number
    of labels: :math:`d_0 = 1 - \sum_s \frac1s \sum_i p_{is}` may come out negative, and
    :math:`p_{is}` may exceed :math:`d_s`.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        The base learner; `RidgeLogistic` by default.
    coherent : bool, default=True
        Replace P by the nearest coherent one in relative entropy
        (`fgfm.cardinality.make_coherent`). False leaves P as it is, and cuts :math:`d_0` at 0.
    calibration : {"auto", "sigmoid", "isotonic"}, splitter or None, default="auto"
        See `fgfm.FGFMClassifier`.
    cv : int, splitter or iterable, optional
        Folds for the penalty of the default learner (3) and for calibration (5).
    n_jobs : int, optional
        How many processes fit models.
    random_state : int, RandomState instance or None, default=None
        Seeds the folds, and base learners that have no seed of their own.

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

    def targets(self, Y: Labels, seen: Labels) -> list[Target]:
        """Say what is to be modelled.

        Parameters
        ----------
        Y : ndarray of shape (n, m)
            Labels of the factor.
        seen : ndarray of shape (n,)
            Rows of positive weight.

        Returns
        -------
        list of Target
            The product of each label and the number of labels.
        """
        s = self._remember(Y, seen)
        self.classes_of_label_ = [np.unique((y * s)[seen]) for y in Y.T]
        return [Target(y * s) for y in Y.T]

    def _raw(self, answers: Answers, first: int) -> Floats:
        P: Floats | None = None
        for i, classes in enumerate(self.classes_of_label_):
            proba = answers.proba(first + i)  # (n, K)
            if P is None:
                P = np.zeros((len(proba), self.n_labels_, self.largest_))  # (n, m, S)
            present = classes > 0
            P[:, i, classes[present] - 1] = proba[:, present]
        assert P is not None
        return P

    def combine(self, answers: Answers, first: int) -> FactorEstimate:
        """Make P and d of the answers of the models.

        Parameters
        ----------
        answers : Answers
            Probabilities for a block of rows.
        first : int
            Number of this factor's first target.

        Returns
        -------
        FactorEstimate
            P and d.
        """
        if self.n_labels_ == 1:
            return singleton_estimate(answers, first)
        P = self._raw(answers, first)
        if self.coherent:
            P = make_coherent(P)
        d = np.empty((len(P), self.largest_ + 1))
        d[:, 1:] = P.sum(axis=1) / np.arange(1, self.largest_ + 1)
        total = d[:, 1:].sum(axis=1)
        d[:, 1:] /= np.maximum(1.0, total)[:, None]
        d[:, 0] = np.maximum(0.0, 1.0 - total)
        return FactorEstimate(P, d)

    def repair(self, X: Any) -> Repair:
        """Tell how incoherent the models' own P is, row by row.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        Repair
            The d_0 that the raw P implies, and how much probability the projection onto coherent P
            moves.
        """
        check_is_fitted(self, "models_")
        X = validate_features(self, X, self.estimator, reset=False)
        return self.measure_repair(self.models_.answers(X), 0)

    def measure_repair(self, answers: Answers, first: int) -> Repair:
        """Tell how incoherent the models' own P is, for a block of rows.

        Parameters
        ----------
        answers : Answers
            Probabilities for a block of rows.
        first : int
            Number of this factor's first target.

        Returns
        -------
        Repair
            The d_0 that the raw P implies, and how much probability is moved.
        """
        P = self._raw(answers, first)
        d_0 = 1.0 - (P.sum(axis=1) / np.arange(1, self.largest_ + 1)).sum(axis=1)
        return Repair(d_0, np.abs(make_coherent(P) - P).sum(axis=(1, 2)))
