"""Calibration of base learners on out-of-fold scores.

F-optimal decisions from badly calibrated probabilities can be worse than a threshold. Boosting,
forests, support vector machines and naive Bayes are known to be miscalibrated; logistic regression
is not. A calibrator is fitted to out-of-fold scores, for two classes or more: the model of the
cardinality |y| is calibrated too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.isotonic import IsotonicRegression

__all__ = ["IsotonicCalibrator", "Scores", "SigmoidCalibrator", "needs_calibration"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

# Classes with miscalibrated probabilities, by library and name, so that none is imported.
_MISCALIBRATED = {
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
_BOOSTING = {"catboost", "lightgbm", "xgboost"}  # all classifiers of these libraries
_SMALLEST = 1e-300  # probabilities are raised to this before taking logarithms


def needs_calibration(estimator: Any) -> bool:
    """Return True if the probabilities of a base learner are known to be miscalibrated.

    ``calibration="auto"`` calibrates such learners.

    Parameters
    ----------
    estimator : scikit-learn classifier
        The base learner. For a pipeline its last step counts, for a search its estimator.

    Returns
    -------
    bool
        True for boosting, trees and forests, support vector machines, naive Bayes, and learners
        without ``predict_proba``.

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
        if library in _BOOSTING or base.__name__ in _MISCALIBRATED.get(library, ()):
            return True
    if hasattr(estimator, "steps"):
        return needs_calibration(estimator.steps[-1][1])
    searches = ("best_estimator_", "param_distributions", "param_grid")
    if any(hasattr(estimator, attribute) for attribute in searches):
        return needs_calibration(estimator.estimator)
    return False


class Scores(NamedTuple):
    """Scores of a model for each class: probabilities, or decision values."""

    values: Floats  # (n, K)
    are_probabilities: bool


def _logarithms(scores: Scores, floor: Floats) -> Floats:
    """Return decision values as they are, and the logarithms of probabilities."""
    if not scores.are_probabilities:
        return scores.values
    return np.asarray(np.log(np.maximum(scores.values, floor)))


class SigmoidCalibrator:
    r"""Calibrator with one slope for all classes and one shift per class.

    With :math:`f_k` the logarithms of probabilities, or decision values,

    .. math:: p_k \propto \exp(a f_k + b_k), \qquad a \ge 0,

    fitted by maximum likelihood to out-of-fold scores. For two classes this is Platt's sigmoid.
    His smoothed targets are used for any number of classes, so that a perfect ranking of few rows
    does not lead to probabilities of 0 and 1.

    Attributes
    ----------
    slope_ : float
        The slope a.
    shifts_ : ndarray of shape (K,)
        The shifts b.
    floor_ : ndarray of shape (K,)
        Lower bound of the probabilities of each class: half of the smallest positive one of the
        class, or of all classes if the class has none.
    """

    def fit(self, scores: Scores, code: Integers, weight: Floats) -> SigmoidCalibrator:
        """Fit slope and shifts.

        Parameters
        ----------
        scores : Scores
            Out-of-fold scores (n, K).
        code : ndarray of shape (n,)
            Class of each row, 0 to K - 1.
        weight : ndarray of shape (n,)
            Sample weights.

        Returns
        -------
        SigmoidCalibrator
            The fitted calibrator.
        """
        K = scores.values.shape[1]
        positive = np.where(scores.values > 0.0, scores.values, np.inf)
        smallest = positive.min(axis=0)  # (K,)
        smallest = np.where(np.isfinite(smallest), smallest, smallest.min())
        self.floor_ = np.maximum(0.5 * smallest, _SMALLEST)
        f = _logarithms(scores, self.floor_)  # (n, K)
        # softmax ignores an offset of the row; a common scale makes the optimisation well posed.
        f = f - f.mean(axis=1, keepdims=True)
        scale = float(np.sqrt(np.average((f**2).mean(axis=1), weights=weight))) or 1.0
        f = f / scale

        # Platt's smoothed targets: (n_k + 1) / (n_k + K) for the true class k of n_k rows, and
        # 1 / (n_k + K) for the other classes.
        total = np.bincount(code, weights=weight, minlength=K)  # (K,)
        targets = np.tile((1.0 / (total + K))[:, None], (1, K))  # (K, K): true class, class
        np.fill_diagonal(targets, (total + 1.0) / (total + K))
        expected = total @ targets  # (K,) sums of the targets: all that the shifts depend on
        T = targets[code]  # (n, K)
        linear = float(weight @ (T * f).sum(axis=1))
        mass = float(weight.sum())

        def loss(theta: Floats) -> tuple[float, Floats]:
            eta = theta[0] * f + np.append(0.0, theta[1:])
            log_p = log_softmax(eta, axis=1)
            p = weight[:, None] * np.exp(log_p)
            value = -float(weight @ (T * log_p).sum(axis=1))
            slope = float((p * f).sum()) - linear
            return value / mass, np.append(slope, (p.sum(axis=0) - expected)[1:]) / mass

        # The start is the identity for probabilities; f has been divided by `scale`.
        start = np.append(1.0 if not scores.are_probabilities else scale, np.zeros(K - 1))
        bounds = [(0.0, None)] + [(None, None)] * (K - 1)
        found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
        self.slope_ = float(found.x[0]) / scale
        self.shifts_ = np.append(0.0, found.x[1:])
        return self

    def predict_proba(self, scores: Scores) -> Floats:
        """Return calibrated probabilities.

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
    """Calibrator with an isotonic regression per class, normalised over the classes.

    It assumes less than the sigmoid and needs more rows: about a thousand.

    Attributes
    ----------
    regressors_ : list of IsotonicRegression
        One per class; for two classes only that of the second.
    frequencies_ : ndarray of shape (K,)
        Class frequencies, the probabilities of rows that get 0 for every class.
    """

    def fit(self, scores: Scores, code: Integers, weight: Floats) -> IsotonicCalibrator:
        """Fit the isotonic regressions.

        Parameters
        ----------
        scores : Scores
            Out-of-fold scores (n, K).
        code : ndarray of shape (n,)
            Class of each row, 0 to K - 1.
        weight : ndarray of shape (n,)
            Sample weights.

        Returns
        -------
        IsotonicCalibrator
            The fitted calibrator.
        """
        K = scores.values.shape[1]
        total = np.bincount(code, weights=weight, minlength=K)
        self.frequencies_ = total / total.sum()
        self.regressors_ = []
        for k in range(1 if K == 2 else 0, K):
            regressor = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
            regressor.fit(scores.values[:, k], code == k, sample_weight=weight)
            self.regressors_.append(regressor)
        return self

    def predict_proba(self, scores: Scores) -> Floats:
        """Return calibrated probabilities.

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
            p = self.regressors_[0].predict(scores.values[:, 1])
            return np.column_stack([1.0 - p, p])
        p = np.column_stack(
            [step.predict(scores.values[:, k]) for k, step in enumerate(self.regressors_)]
        )  # (n, K)
        total = p.sum(axis=1, keepdims=True)
        p = np.where(total > 0.0, p, self.frequencies_)
        return np.asarray(p / p.sum(axis=1, keepdims=True))
