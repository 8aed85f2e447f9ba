"""Fitted models of many targets on the same features, and their predictions.

A `ModelTarget` is what one model is fitted to. `RidgeModels` (the default learner) and
`LearnerModels` (any other) hold the models of all targets; their `predictions` for a block of rows
compute probabilities on request. `GivenPredictions` holds those for the training rows. The
models are fitted in `fgfm.estimation._fitting`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax

from fgfm._utils.rows import append_column, n_rows
from fgfm.estimation._calibration import Scores
from fgfm.estimation._learner import class_scores, label_scores
from fgfm.ridge import RidgeFit
from fgfm.stack import StackedLearner, StackedPredictions

__all__ = [
    "GivenPredictions",
    "HeldOut",
    "LearnerModel",
    "LearnerModels",
    "ModelTarget",
    "Models",
    "Predictions",
    "RidgeModels",
    "StackModels",
    "StackPredictions",
    "label_column",
    "scores_to_proba",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class ModelTarget(NamedTuple):
    """What one model is fitted to."""

    values: Integers  # (n,) class of each row, 0 or more; -1 where it is not known
    extra: Floats | None = None  # (n,) additional feature; targets may share the array
    is_label: bool = False  # a label without `extra`: a learner may fit all of them at once


class Predictions(Protocol):
    """Predicted probabilities of many targets, for a block of rows."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    def predict_proba(self, target: int, extra: float | None = None) -> Floats:
        """Return the probabilities (n, K) of the classes of a target.

        `extra` is the value of the additional feature, for targets that have one.
        """

    def positive_proba(self, targets: slice, extra: float | None = None) -> Floats:
        """Return the probabilities (n, T) of class 1, for T targets with classes in {0, 1}."""


class Models(Protocol):
    """Fitted models of many targets."""

    thread_safe: bool

    @property
    def classes(self) -> list[Integers]:
        """The classes of each target."""

    def predictions(self, X: Any) -> Predictions:
        """Return the predictions for rows of X."""


class GivenPredictions:
    """Predictions that are computed already, such as those for rows that were held out.

    Parameters
    ----------
    proba : list of ndarray of shape (n, K)
        Probabilities of the classes of each target; NaN for rows that no fold left out, and for
        rows whose class is not known.
    classes : list of ndarray of shape (K,)
        The classes of each target.
    """

    left_one_out = False  # models of a fold are less certain than those of all rows

    def __init__(self, proba: Sequence[Floats], classes: Sequence[Integers]) -> None:
        self._proba = proba
        self._classes = classes

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self._proba[0])

    def predict_proba(self, target: int, extra: float | None = None) -> Floats:
        """Return the probabilities (n, K) of a target; each row has its own value of `extra`."""
        return self._proba[target]

    def positive_proba(self, targets: slice, extra: float | None = None) -> Floats:
        """Return the probabilities (n, T) of class 1."""
        columns = [
            p @ (classes == 1).astype(np.float64)  # a product, so that NaN stays NaN
            for p, classes in zip(self._proba[targets], self._classes[targets], strict=True)
        ]
        return np.stack(columns, axis=1)


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
        coef = [
            fit.coef[:, :-1] if extra else fit.coef
            for fit, extra in zip(fits, has_extra, strict=True)
        ]
        coef_extra = [
            fit.coef[:, -1] if extra else np.zeros(len(fit.coef))
            for fit, extra in zip(fits, has_extra, strict=True)
        ]
        self.coef = np.concatenate(coef)  # (logits, p)
        self.coef_extra = np.concatenate(coef_extra)  # (logits,)
        self.intercept = np.concatenate([fit.intercept for fit in fits])  # (logits,)

    def predictions(self, X: Any) -> RidgePredictions:
        """Return the predictions for rows of X, an array or CSR matrix of floats."""
        return RidgePredictions(self, np.asarray(X @ self.coef.T + self.intercept))


class RidgePredictions:
    """Predictions of `RidgeModels` for a block of rows.

    Parameters
    ----------
    models : RidgeModels
        The models.
    logits : ndarray of shape (n, logits)
        The logits where the additional feature is 0.
    """

    def __init__(self, models: RidgeModels, logits: Floats) -> None:
        self._models = models
        self._logits = logits

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self._logits)

    def _logits_of(self, first: int, last: int, extra: float | None) -> Floats:
        """Return the logits of the targets from `first` to before `last`."""
        at = slice(self._models.first_logit[first], self._models.first_logit[last])
        logits = self._logits[:, at]
        return logits if extra is None else logits + extra * self._models.coef_extra[at]

    def predict_proba(self, target: int, extra: float | None = None) -> Floats:
        """Return the probabilities (n, K) of the classes of a target."""
        K = len(self._models.classes[target])
        if K == 1:
            return np.ones((self.n_rows, 1))
        logits = self._logits_of(target, target + 1, extra)
        if K == 2:
            return np.column_stack([expit(-logits[:, 0]), expit(logits[:, 0])])
        return np.asarray(softmax(logits, axis=1))

    def positive_proba(self, targets: slice, extra: float | None = None) -> Floats:
        """Return the probabilities (n, T) of class 1."""
        p = expit(self._logits_of(targets.start, targets.stop, extra))
        for j, classes in enumerate(self._models.classes[targets]):
            if len(classes) == 1:
                p[:, j] = classes[0]
        return np.asarray(p)


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

    def predictions(self, X: Any) -> StackPredictions:
        """Return the predictions for rows of X, an array or CSR matrix of floats."""
        return StackPredictions(self.learner, self.learner.predict(X))


class StackPredictions:
    """Predictions of `StackModels`.

    Parameters
    ----------
    learner : StackedLearner
        The fitted learner.
    stacked : StackedPredictions
        Its probabilities.
    """

    left_one_out = True  # those for training rows, by models of nearly all other rows

    def __init__(self, learner: StackedLearner, stacked: StackedPredictions) -> None:
        self._learner = learner
        self._stacked = stacked

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self._stacked.positive)

    def predict_proba(self, target: int, extra: float | None = None) -> Floats:
        """Return the probabilities (n, K) of the classes of a target."""
        if target in self._learner.multiclass:
            return self._stacked.distributions[self._learner.multiclass.index(target)]
        if target in self._learner.binary:
            p = self._stacked.positive[:, self._learner.binary.index(target)]
            return np.column_stack([1.0 - p, p])
        return np.ones((self.n_rows, len(self._learner.classes[target])))

    def positive_proba(self, targets: slice, extra: float | None = None) -> Floats:
        """Return the probabilities (n, T) of class 1."""
        p = np.empty((self.n_rows, targets.stop - targets.start))
        column = {target: k for k, target in enumerate(self._learner.binary)}
        for k, target in enumerate(range(targets.start, targets.stop)):
            if target in column:
                p[:, k] = self._stacked.positive[:, column[target]]
            else:
                p[:, k] = float((self._learner.classes[target] == 1).any())
        return p


HeldOut = GivenPredictions | StackPredictions


class LearnerModel:
    """One base learner, fitted to one target or to several labels, with its calibrator.

    Parameters
    ----------
    estimator : scikit-learn classifier or None
        The fitted base learner. None predicts the class frequencies: for a target with one class,
        and where no fold could calibrate a learner without probabilities.
    classes : ndarray of shape (K,)
        The classes of the target.
    frequencies : ndarray of shape (K,)
        Class frequencies, predicted also for rows to which the learner gives no class.
    calibrator : SigmoidCalibrator, IsotonicCalibrator or None
        Maps scores to probabilities; None if the scores are probabilities already.
    column : int or None, default=None
        The label, if the estimator was fitted to a matrix of labels, which models share.
    """

    def __init__(
        self,
        estimator: Any,
        classes: Integers,
        frequencies: Floats,
        calibrator: Any,
        column: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.classes = classes
        self.frequencies = frequencies
        self.calibrator = calibrator
        self.column = column

    def scores(self, X: Any) -> Scores:
        """Return the scores (n, K), or (n, m, 2) of all labels if `column` is one of them."""
        calibrated = self.calibrator is not None
        if self.column is not None:
            return label_scores(self.estimator, X, calibrated)
        return class_scores(self.estimator, X, self.classes, calibrated)


def label_column(scores: Scores, column: int) -> Scores:
    """Return the scores (n, 2) of one label from those of all labels."""
    return Scores(scores.values[:, column], scores.are_probabilities)


def scores_to_proba(scores: Scores, calibrator: Any, frequencies: Floats) -> Floats:
    """Return probabilities (n, K); rows whose scores are all 0 get the frequencies."""
    if calibrator is not None:
        return np.asarray(calibrator.predict_proba(scores))
    p = scores.values
    total = p.sum(axis=1, keepdims=True)
    p = np.where(total > 0.0, p, frequencies)
    return np.asarray(p / p.sum(axis=1, keepdims=True))


class LearnerModels:
    """Base learners of any kind: one per target, or one for several labels.

    Parameters
    ----------
    models : list of LearnerModel
        The models.
    """

    thread_safe = False  # a foreign learner may not be

    def __init__(self, models: list[LearnerModel]) -> None:
        self.models = models

    @property
    def classes(self) -> list[Integers]:
        """The classes of each target."""
        return [model.classes for model in self.models]

    def predictions(self, X: Any) -> LearnerPredictions:
        """Return the predictions for rows of X, in the form that was passed to fit."""
        return LearnerPredictions(self, X)


class LearnerPredictions:
    """Predictions of `LearnerModels` for a block of rows.

    Parameters
    ----------
    models : LearnerModels
        The models.
    X : array, sparse matrix or data frame of shape (n, p)
        Features.
    """

    def __init__(self, models: LearnerModels, X: Any) -> None:
        self._models = models.models
        self._X = X
        self._appended: tuple[float, Any] | None = None  # the last `extra`, and X with it
        self._shared: dict[bool, Scores] = {}  # of the learner of all labels; calibrated or not

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return n_rows(self._X)

    def _features(self, extra: float | None) -> Any:
        if extra is None:
            return self._X
        if self._appended is None or self._appended[0] != extra:
            self._appended = extra, append_column(self._X, extra)
        return self._appended[1]

    def predict_proba(self, target: int, extra: float | None = None) -> Floats:
        """Return the probabilities (n, K) of the classes of a target."""
        model = self._models[target]
        if model.estimator is None:
            return np.tile(model.frequencies, (self.n_rows, 1))
        if model.column is None:
            scores = model.scores(self._features(extra))
        else:
            calibrated = model.calibrator is not None
            if calibrated not in self._shared:
                self._shared[calibrated] = model.scores(self._X)
            scores = label_column(self._shared[calibrated], model.column)
        return scores_to_proba(scores, model.calibrator, model.frequencies)

    def positive_proba(self, targets: slice, extra: float | None = None) -> Floats:
        """Return the probabilities (n, T) of class 1."""
        columns = []
        for target in range(*targets.indices(len(self._models))):
            at_one = np.flatnonzero(self._models[target].classes == 1)
            p = self.predict_proba(target, extra)
            columns.append(p[:, at_one[0]] if len(at_one) else np.zeros(len(p)))
        return np.stack(columns, axis=1)
