"""Fitted models of many targets on the same features, and their predictions.

A `Target` is what one model is fitted to. `RidgeModels`, `StackModels` and `LearnerModels` (of any
other learner) hold the models of all targets; their `predictions` for a block of rows compute
probabilities on request. The models are fitted in `fgfm.estimation._fitting`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax

from fgfm._utils.rows import append_column, n_rows
from fgfm.estimation._calibration import scores_to_proba
from fgfm.estimation._scores import Scores, class_scores, label_scores
from fgfm.ridge import RidgeFit
from fgfm.stack import StackedLearner, StackedPredictions

__all__ = [
    "LearnerModel",
    "LearnerModels",
    "Models",
    "Predictions",
    "RidgeModels",
    "StackModels",
    "Target",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class Target(NamedTuple):
    """What one model is fitted to."""

    values: Integers  # (n,) class of each row, 0 or more; -1 where it is not known
    extra: Floats | None = None  # (n,) additional feature; targets may share the array
    is_label: bool = False  # a label without `extra`: a learner may fit all of them at once


class Predictions:
    """Probabilities of targets for some rows.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    classes : sequence of ndarray of shape (K,)
        The classes of each target.
    proba : callable
        Returns the probabilities (n, K) of a target, given the value of its additional feature.
        They are NaN for training rows that no fold left out.
    positive : callable, optional
        Returns the probabilities (n, T) of class 1 of several targets, those with one class left
        out, in less time than `proba` takes for one after the other.
    left_one_out : bool, default=False
        Whether they are held-out predictions by models of nearly all other rows: as certain as
        those of the models of all rows.
    """

    def __init__(
        self,
        n_rows: int,
        classes: Sequence[Integers],
        proba: Callable[[int, float | None], Floats],
        positive: Callable[[range, float | None], Floats] | None = None,
        left_one_out: bool = False,
    ) -> None:
        self.n_rows = n_rows
        self.left_one_out = left_one_out
        self._classes = classes
        self._proba = proba
        self._positive = positive

    def proba(self, target: int, extra: float | None = None) -> Floats:
        """Return the probabilities (n, K) of the classes of a target."""
        return self._proba(target, extra)

    def positive(self, targets: range, extra: float | None = None) -> Floats:
        """Return the probabilities (n, T) of class 1, for T targets with classes in {0, 1}."""
        if self._positive is not None:
            p = self._positive(targets, extra)
        else:
            p = np.stack([self._proba(target, extra)[:, -1] for target in targets], axis=1)
        for k, target in enumerate(targets):
            if len(self._classes[target]) == 1:
                p[:, k] = self._proba(target, extra)[:, 0] * self._classes[target][0]
        return p


class RidgeModels:
    """Ridge logistic regressions with their weights in one matrix.

    One product with X gives the logits of all targets. A target of K > 2 classes has K logits, any
    other target has one.

    Parameters
    ----------
    fits : list of RidgeFit
        The fitted models.
    has_extra : list of bool
        Whether the last weight of each model belongs to an additional feature.
    """

    thread_safe = True

    def __init__(self, fits: Sequence[RidgeFit], has_extra: Sequence[bool]) -> None:
        self.classes = [fit.classes for fit in fits]
        self.penalties = np.array([fit.penalty for fit in fits])
        self.first_logit = np.cumsum([0] + [len(fit.coef) for fit in fits])  # (T + 1,)
        p = min(fit.coef.shape[1] - extra for fit, extra in zip(fits, has_extra, strict=True))
        self.coef = np.concatenate([fit.coef[:, :p] for fit in fits])  # (logits, p)
        self.coef_extra = np.concatenate(
            [fit.coef[:, p:].sum(axis=1) for fit in fits]  # 0 without additional feature
        )  # (logits,)
        self.intercept = np.concatenate([fit.intercept for fit in fits])  # (logits,)

    def predictions(self, X: Any) -> Predictions:
        """Return the predictions for rows of X, an array or CSR matrix of floats."""
        logits = np.asarray(X @ self.coef.T + self.intercept)  # (n, logits)

        def proba(target: int, extra: float | None) -> Floats:
            K = len(self.classes[target])
            if K == 1:
                return np.ones((len(logits), 1))
            at = slice(self.first_logit[target], self.first_logit[target + 1])
            f = logits[:, at] if extra is None else logits[:, at] + extra * self.coef_extra[at]
            if K == 2:
                return np.asarray(expit(f * np.array([-1.0, 1.0])))
            return np.asarray(softmax(f, axis=1))

        def positive(targets: range, extra: float | None) -> Floats:
            at = slice(self.first_logit[targets.start], self.first_logit[targets.stop])
            f = logits[:, at] if extra is None else logits[:, at] + extra * self.coef_extra[at]
            return np.asarray(expit(f))

        return Predictions(len(logits), self.classes, proba, positive)


class StackModels:
    """The learner "auto", which models all targets at once.

    Parameters
    ----------
    learner : StackedLearner
        The fitted learner.
    """

    thread_safe = True

    def __init__(self, learner: StackedLearner) -> None:
        self.learner = learner

    @property
    def classes(self) -> list[Integers]:
        """The classes of each target."""
        return self.learner.classes

    def predictions(self, X: Any) -> Predictions:
        """Return the predictions for rows of X, an array or CSR matrix of floats."""
        return self.as_predictions(self.learner.predict(X))

    def as_predictions(self, stacked: StackedPredictions) -> Predictions:
        """Return probabilities of the learner as predictions; held-out ones are left-one-out."""
        learner, n = self.learner, len(stacked.positive)
        column = {target: k for k, target in enumerate(learner.binary)}

        def proba(target: int, extra: float | None) -> Floats:
            if target in column:
                p = stacked.positive[:, column[target]]
                return np.column_stack([1.0 - p, p])
            if target in learner.multiclass:
                return stacked.distributions[learner.multiclass.index(target)]
            return np.ones((n, len(learner.classes[target])))

        def positive(targets: range, extra: float | None) -> Floats:
            p = np.empty((n, len(targets)))
            for k, target in enumerate(targets):
                if target in column:
                    p[:, k] = stacked.positive[:, column[target]]
            return p

        return Predictions(n, learner.classes, proba, positive, left_one_out=True)


class LearnerModel(NamedTuple):
    """One base learner, fitted to one target or to several labels, with its calibrator."""

    estimator: Any  # None predicts the frequencies: one class, or scores that no fold calibrated
    classes: Integers  # (K,) of the target
    frequencies: Floats  # (K,) also the prediction for rows to which the learner gives no class
    calibrator: Any = None  # maps scores to probabilities; None if they are probabilities already
    column: int | None = None  # the label, if the estimator is shared by a matrix of labels


class LearnerModels:
    """Base learners of any kind: one per target, or one for several labels.

    Parameters
    ----------
    models : list of LearnerModel
        The models.
    n_columns : int
        Number of labels of the matrix that one learner was fitted to; 0 if there is none.
    """

    thread_safe = False  # a foreign learner may not be

    def __init__(self, models: list[LearnerModel], n_columns: int) -> None:
        self.models = models
        self.n_columns = n_columns

    @property
    def classes(self) -> list[Integers]:
        """The classes of each target."""
        return [model.classes for model in self.models]

    def predictions(self, X: Any) -> Predictions:
        """Return the predictions for rows of X, in the form that was passed to fit."""
        n = n_rows(X)

        @cache
        def matrix_scores(calibrated: bool) -> Scores:
            estimator = next(one.estimator for one in self.models if one.column is not None)
            return label_scores(estimator, X, self.n_columns, calibrated)

        @lru_cache(maxsize=1)
        def features(extra: float | None) -> Any:
            return X if extra is None else append_column(X, extra)

        def proba(target: int, extra: float | None) -> Floats:
            model = self.models[target]
            calibrated = model.calibrator is not None
            if model.estimator is None:
                return np.tile(model.frequencies, (n, 1))
            if model.column is None:
                scores = class_scores(model.estimator, features(extra), model.classes, calibrated)
            else:
                values, are_probabilities = matrix_scores(calibrated)
                scores = Scores(values[:, model.column], are_probabilities)
            return scores_to_proba(scores, model.calibrator, model.frequencies)

        return Predictions(n, self.classes, proba)


Models = RidgeModels | StackModels | LearnerModels
