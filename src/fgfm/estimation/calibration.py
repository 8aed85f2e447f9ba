r"""Probabilities that mean what they say: calibration of base learners, out of fold.

The expected F-measure is a function of probabilities, and F-optimal decisions from badly
calibrated ones can be worse than a threshold. Boosting, forests, support vector machines and naive
Bayes are known to be off; logistic regression is not. A calibrator is fitted to the scores of rows
that the model did not see, for two classes or for many: the model of the number of labels needs it
as well.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.isotonic import IsotonicRegression

__all__ = [
    "IsotonicCalibrator",
    "SigmoidCalibrator",
    "needs_calibration",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

# Classes whose probabilities are known to be off: by the name of the class, with its library.
_OFF = {
    "sklearn": {
        "AdaBoostClassifier",
        "BaggingClassifier",
        "BernoulliNB",
        "CategoricalNB",
        "ComplementNB",
        "DecisionTreeClassifier",
        "ExtraTreeClassifier",
        "ExtraTreesClassifier",
        "GaussianNB",
        "GradientBoostingClassifier",
        "HistGradientBoostingClassifier",
        "MultinomialNB",
        "NuSVC",
        "RandomForestClassifier",
        "SVC",
    },
}
_BOOSTING = {"catboost", "lightgbm", "xgboost"}  # every classifier of these libraries
_SMALLEST = 1e-300


def needs_calibration(estimator: Any) -> bool:
    """Tell whether the probabilities of a base learner are known to be off.

    Parameters
    ----------
    estimator : scikit-learn classifier
        A pipeline is judged by its last step, a search by what it searches over.

    Returns
    -------
    bool
        True for boosting, trees and forests, support vector machines, naive Bayes, and all that
        give scores only.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from sklearn.linear_model import LogisticRegression
    >>> needs_calibration(RandomForestClassifier()), needs_calibration(LogisticRegression())
    (True, False)
    """
    if not hasattr(estimator, "predict_proba"):
        return True
    for base in type(estimator).__mro__:
        library = base.__module__.partition(".")[0]
        if library in _BOOSTING or base.__name__ in _OFF.get(library, ()):
            return True
    if hasattr(estimator, "steps"):
        return needs_calibration(estimator.steps[-1][1])
    searches = ("best_estimator_", "param_distributions", "param_grid")
    if any(hasattr(estimator, attribute) for attribute in searches):
        return needs_calibration(estimator.estimator)
    return False


class Scores(NamedTuple):
    """What a model says of each class: probabilities, or decision values."""

    values: Floats  # (n, K)
    are_probabilities: bool


def _logarithms(scores: Scores, floor: Floats) -> Floats:
    """Give scores on a scale where a class is linear: logarithms of probabilities."""
    if not scores.are_probabilities:
        return scores.values
    return np.asarray(np.log(np.maximum(scores.values, floor)))


class SigmoidCalibrator:
    r"""Calibrate by one slope for all classes and one shift for each.

    With :math:`f_k` the logarithms of probabilities, or decision values,

    .. math:: p_k \propto \exp(a f_k + b_k), \qquad a \ge 0,

    fitted by maximum likelihood to rows that the model did not see. For two classes this is
    Platt's sigmoid; his smoothed targets are used for any number of classes, so that a perfect
    ranking of few rows does not give certainties.

    Attributes
    ----------
    slope_ : float
        The slope a.
    shifts_ : ndarray of shape (K,)
        The shifts b.
    floor_ : ndarray of shape (K,)
        What a probability of 0 counts as: half of the smallest other of its class, or of all
        classes where its class has no other.
    """

    def fit(self, scores: Scores, code: Integers, weight: Floats) -> SigmoidCalibrator:
        """Fit slope and shifts.

        Parameters
        ----------
        scores : Scores
            Scores (n, K) of rows that the model did not see.
        code : ndarray of shape (n,)
            Class of each row, 0 to K - 1.
        weight : ndarray of shape (n,)
            Weight of each row.

        Returns
        -------
        SigmoidCalibrator
            Itself.
        """
        K = scores.values.shape[1]
        positive = np.where(scores.values > 0.0, scores.values, np.inf)
        smallest = positive.min(axis=0)
        smallest = np.where(np.isfinite(smallest), smallest, smallest.min())
        self.floor_ = np.maximum(0.5 * smallest, _SMALLEST)
        f = _logarithms(scores, self.floor_)  # (n, K)
        f = f - f.mean(axis=1, keepdims=True)
        scale = float(np.sqrt(np.average((f**2).mean(axis=1), weights=weight))) or 1.0
        f = f / scale

        total = np.bincount(code, weights=weight, minlength=K)  # (K,)
        targets = np.tile((1.0 / (total + K))[:, None], (1, K))  # by true class, then class
        np.fill_diagonal(targets, (total + 1.0) / (total + K))
        # The sum of the targets of a class over its rows: shifts see nothing else.
        expected = total @ targets  # (K,)
        T = targets[code]  # (n, K)
        linear = float(weight @ (T * f).sum(axis=1))
        mass = float(weight.sum())

        def loss(theta: Floats) -> tuple[float, Floats]:  # numpydoc ignore=GL08
            eta = theta[0] * f + np.append(0.0, theta[1:])
            log_p = log_softmax(eta, axis=1)
            p = weight[:, None] * np.exp(log_p)
            value = -float(weight @ (T * log_p).sum(axis=1))
            slope = float((p * f).sum()) - linear
            return value / mass, np.append(slope, (p.sum(axis=0) - expected)[1:]) / mass

        start = np.append(1.0 if not scores.are_probabilities else scale, np.zeros(K - 1))
        bounds = [(0.0, None)] + [(None, None)] * (K - 1)
        found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
        self.slope_ = float(found.x[0]) / scale
        self.shifts_ = np.append(0.0, found.x[1:])
        return self

    def proba(self, scores: Scores) -> Floats:
        """Give calibrated probabilities.

        Parameters
        ----------
        scores : Scores
            Scores (n, K).

        Returns
        -------
        ndarray of shape (n, K)
            Probabilities; rows sum to 1.
        """
        f = _logarithms(scores, self.floor_)
        return np.asarray(softmax(self.slope_ * f + self.shifts_, axis=1))


class IsotonicCalibrator:
    """Calibrate each class by an increasing step function of its score, then normalise.

    It assumes less than the sigmoid and needs more rows: about a thousand.

    Attributes
    ----------
    steps_ : list of IsotonicRegression
        One per class; one in all where there are two classes.
    frequencies_ : ndarray of shape (K,)
        What a row gets that no class claims.
    """

    def fit(self, scores: Scores, code: Integers, weight: Floats) -> IsotonicCalibrator:
        """Fit the step functions.

        Parameters
        ----------
        scores : Scores
            Scores (n, K) of rows that the model did not see.
        code : ndarray of shape (n,)
            Class of each row, 0 to K - 1.
        weight : ndarray of shape (n,)
            Weight of each row.

        Returns
        -------
        IsotonicCalibrator
            Itself.
        """
        K = scores.values.shape[1]
        total = np.bincount(code, weights=weight, minlength=K)
        self.frequencies_ = total / total.sum()
        self.steps_ = []
        for k in range(1 if K == 2 else 0, K):
            step = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
            step.fit(scores.values[:, k], code == k, sample_weight=weight)
            self.steps_.append(step)
        return self

    def proba(self, scores: Scores) -> Floats:
        """Give calibrated probabilities.

        Parameters
        ----------
        scores : Scores
            Scores (n, K).

        Returns
        -------
        ndarray of shape (n, K)
            Probabilities; rows sum to 1.
        """
        K = len(self.frequencies_)
        if K == 2:
            p = self.steps_[0].predict(scores.values[:, 1])
            return np.column_stack([1.0 - p, p])
        p = np.column_stack(
            [step.predict(scores.values[:, k]) for k, step in enumerate(self.steps_)]
        )
        total = p.sum(axis=1, keepdims=True)
        p = np.where(total > 0.0, p, self.frequencies_)
        return np.asarray(p / p.sum(axis=1, keepdims=True))
