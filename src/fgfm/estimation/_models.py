"""The models of many targets on the same features, which are asked together.

An estimate of P takes one model per label and one of the number of labels, for each label factor.
A `Target` says what is modelled; `Models.answers` gives the probabilities for a block of rows.
`HeldOut` gives those of the training rows, from models that did not see them. `_fitting` fits
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax

from fgfm._utils.rows import append_column, n_rows
from fgfm.estimation.calibration import Scores
from fgfm.ridge import RidgeFit

__all__ = [
    "Answers",
    "EstimatorModels",
    "Fit",
    "FittedModel",
    "HeldOut",
    "Models",
    "RidgeModels",
    "Target",
    "class_scores",
    "proba_of",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class Target(NamedTuple):
    """What one model is fitted to."""

    values: Integers  # (n,) the class of each row
    extra: Floats | None = None  # (n,) a column beside the features; targets may share it


class Answers(Protocol):
    """Probabilities for one block of rows."""

    def proba(self, target: int, extra: float | None = None) -> Floats:
        """Give (rows, K) probabilities of the classes of a target."""

    def positives(self, targets: slice, extra: float | None = None) -> Floats:
        """Give (rows, targets) probabilities of class 1, for targets with classes in {0, 1}."""


class Models(Protocol):
    """Fitted models of many targets."""

    classes: list[Integers]

    def answers(self, X: Any) -> Answers:
        """Answer for rows of X."""


class HeldOut:
    """Probabilities of the training rows from models that did not see them: `Answers`.

    Parameters
    ----------
    proba : list of ndarray of shape (n, K)
        The probabilities of the classes of each target; NaN for rows that were not held out.
    classes : list of ndarray of shape (K,)
        The classes.
    """

    def __init__(self, proba: Sequence[Floats], classes: Sequence[Integers]) -> None:
        self._proba = proba
        self._classes = classes

    def proba(self, target: int, extra: float | None = None) -> Floats:
        """Give the probabilities of the classes of one target.

        Parameters
        ----------
        target : int
            Number of the target.
        extra : float, optional
            Not used: rows were answered for with the extra values that they have.

        Returns
        -------
        ndarray of shape (n, K)
            Probabilities.
        """
        return self._proba[target]

    def positives(self, targets: slice, extra: float | None = None) -> Floats:
        """Give the probabilities of class 1 of several targets.

        Parameters
        ----------
        targets : slice
            Numbers of the targets; their classes are 0 and 1, or one of them.
        extra : float, optional
            Not used.

        Returns
        -------
        ndarray of shape (n, targets)
            Probabilities.
        """
        columns = [
            p @ (classes == 1).astype(np.float64)  # NaN stays NaN
            for p, classes in zip(self._proba[targets], self._classes[targets], strict=True)
        ]
        return np.stack(columns, axis=1)


class Fit(NamedTuple):
    """Models, and what they would have said of their training rows without having seen them."""

    models: Models
    held_out: HeldOut | None


class RidgeModels:
    """Ridge logistic regressions, their weights in one matrix: one product answers for all.

    Parameters
    ----------
    fits : list of RidgeFit
        The models.
    extra : list of bool
        Which of them have an extra column.
    """

    def __init__(self, fits: Sequence[RidgeFit], extra: Sequence[bool]) -> None:
        self.classes = [fit.classes for fit in fits]
        self.penalties = np.array([fit.penalty for fit in fits])
        self.starts = np.cumsum([0] + [len(fit.coef) for fit in fits])
        weights = [fit.coef[:, :-1] if e else fit.coef for fit, e in zip(fits, extra, strict=True)]
        of_extra = [
            fit.coef[:, -1] if e else np.zeros(len(fit.coef))
            for fit, e in zip(fits, extra, strict=True)
        ]
        self.coef = np.concatenate(weights)  # (logits, p)
        self.coef_extra = np.concatenate(of_extra)  # (logits,)
        self.intercept = np.concatenate([fit.intercept for fit in fits])  # (logits,)

    def answers(self, X: Any) -> RidgeAnswers:
        """Answer for rows of X.

        Parameters
        ----------
        X : ndarray or CSR of shape (rows, p)
            Features.

        Returns
        -------
        RidgeAnswers
            Probabilities on request.
        """
        return RidgeAnswers(self, np.asarray(X @ self.coef.T + self.intercept))


class RidgeAnswers:
    """Probabilities of `RidgeModels` for one block of rows.

    Parameters
    ----------
    models : RidgeModels
        The models.
    logits : ndarray of shape (rows, logits)
        The logits where the extra column is 0.
    """

    def __init__(self, models: RidgeModels, logits: Floats) -> None:
        self.models = models
        self.logits = logits

    def _columns(self, at: slice, extra: float | None) -> Floats:
        logits = self.logits[:, at]
        return logits if extra is None else logits + extra * self.models.coef_extra[at]

    def proba(self, target: int, extra: float | None = None) -> Floats:
        """Give the probabilities of the classes of one target.

        Parameters
        ----------
        target : int
            Number of the target.
        extra : float, optional
            Value of the extra column, where the target has one.

        Returns
        -------
        ndarray of shape (rows, K)
            Probabilities.
        """
        at = slice(*self.models.starts[target : target + 2])
        K = len(self.models.classes[target])
        if K == 1:
            return np.ones((len(self.logits), 1))
        logits = self._columns(at, extra)
        if K == 2:
            return np.column_stack([expit(-logits[:, 0]), expit(logits[:, 0])])
        return np.asarray(softmax(logits, axis=1))

    def positives(self, targets: slice, extra: float | None = None) -> Floats:
        """Give the probabilities of class 1 of several targets.

        Parameters
        ----------
        targets : slice
            Numbers of the targets; their classes are 0 and 1, or one of them.
        extra : float, optional
            Value of the extra column, where the targets have one.

        Returns
        -------
        ndarray of shape (rows, targets)
            Probabilities.
        """
        starts = self.models.starts
        # a model of up to two classes has one logit
        p = expit(self._columns(slice(starts[targets.start], starts[targets.stop]), extra))
        for j, classes in enumerate(self.models.classes[targets]):
            if len(classes) == 1:
                p[:, j] = classes[0]
        return np.asarray(p)


class FittedModel:
    """One base learner, fitted to one target, with its calibrator.

    Parameters
    ----------
    estimator : scikit-learn classifier or None
        The base learner, fitted; None where the target has one class, or where there are too few
        rows to tell probabilities: the frequencies are the answer.
    classes : ndarray of shape (K,)
        The classes of the target.
    frequencies : ndarray of shape (K,)
        How often they occur: the answer for a row to which the learner gives no class.
    calibrator : SigmoidCalibrator, IsotonicCalibrator or None
        What makes probabilities of its scores.
    """

    def __init__(
        self, estimator: Any, classes: Integers, frequencies: Floats, calibrator: Any
    ) -> None:
        self.estimator = estimator
        self.classes = classes
        self.frequencies = frequencies
        self.calibrator = calibrator

    def proba(self, X: Any) -> Floats:
        """Give the probabilities of the classes.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (rows, p)
            Features, with the extra column where the target has one.

        Returns
        -------
        ndarray of shape (rows, K)
            Probabilities; rows sum to 1.
        """
        if self.estimator is None:
            return np.tile(self.frequencies, (n_rows(X), 1))
        scores = class_scores(self.estimator, X, self.classes, self.calibrator is not None)
        return proba_of(scores, self.calibrator, self.frequencies)


def proba_of(scores: Scores, calibrator: Any, frequencies: Floats) -> Floats:
    """Make probabilities of scores; a row that no class claims gets the frequencies."""
    if calibrator is not None:
        return np.asarray(calibrator.proba(scores))
    p = scores.values
    total = p.sum(axis=1, keepdims=True)
    p = np.where(total > 0.0, p, frequencies)
    return np.asarray(p / p.sum(axis=1, keepdims=True))


class EstimatorModels:
    """Base learners of any kind, one per target.

    Parameters
    ----------
    models : list of FittedModel
        The models.
    """

    def __init__(self, models: list[FittedModel]) -> None:
        self.models = models
        self.classes = [model.classes for model in models]

    def answers(self, X: Any) -> EstimatorAnswers:
        """Answer for rows of X.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (rows, p)
            Features.

        Returns
        -------
        EstimatorAnswers
            Probabilities on request.
        """
        return EstimatorAnswers(self, X)


class EstimatorAnswers:
    """Probabilities of `EstimatorModels` for one block of rows.

    Parameters
    ----------
    models : EstimatorModels
        The models.
    X : array, sparse matrix or data frame of shape (rows, p)
        Features.
    """

    def __init__(self, models: EstimatorModels, X: Any) -> None:
        self.models = models
        self.X = X
        self.appended: tuple[float, Any] | None = None  # the last value, and X with it

    def _features(self, extra: float | None) -> Any:
        if extra is None:
            return self.X
        if self.appended is None or self.appended[0] != extra:
            self.appended = extra, append_column(self.X, extra)
        return self.appended[1]

    def proba(self, target: int, extra: float | None = None) -> Floats:
        """Give the probabilities of the classes of one target.

        Parameters
        ----------
        target : int
            Number of the target.
        extra : float, optional
            Value of the extra column, where the target has one.

        Returns
        -------
        ndarray of shape (rows, K)
            Probabilities.
        """
        return self.models.models[target].proba(self._features(extra))

    def positives(self, targets: slice, extra: float | None = None) -> Floats:
        """Give the probabilities of class 1 of several targets.

        Parameters
        ----------
        targets : slice
            Numbers of the targets; their classes are 0 and 1, or one of them.
        extra : float, optional
            Value of the extra column, where the targets have one.

        Returns
        -------
        ndarray of shape (rows, targets)
            Probabilities.
        """
        X = self._features(extra)
        columns = []
        for model in self.models.models[targets]:
            at_one = np.flatnonzero(model.classes == 1)
            p = model.proba(X)
            columns.append(p[:, at_one[0]] if len(at_one) else np.zeros(len(p)))
        return np.stack(columns, axis=1)


def class_scores(estimator: Any, X: Any, classes: Integers, by_decision: bool) -> Scores:
    """Give what a fitted learner says of each class, whatever shape it says it in.

    Parameters
    ----------
    estimator : scikit-learn classifier
        Fitted; it may have seen fewer classes.
    X : array, sparse matrix or data frame of shape (n, p)
        Features.
    classes : ndarray of shape (K,)
        All classes.
    by_decision : bool
        Take decision values where the learner has them.

    Returns
    -------
    Scores
        Probabilities (n, K), 0 for a class that it did not see; or decision values, the least of
        all for such a class.
    """
    known = np.searchsorted(classes, np.asarray(estimator.classes_))
    if by_decision and hasattr(estimator, "decision_function"):
        _refuse_pairwise(estimator, len(known))
        values = np.asarray(estimator.decision_function(X), dtype=np.float64)
        if values.ndim == 1:  # of the second class
            values = np.column_stack([-0.5 * values, 0.5 * values])
        probabilities, missing = False, values.min(initial=0.0)
    else:
        values = np.asarray(estimator.predict_proba(X), dtype=np.float64)
        if values.ndim == 1 or values.shape[1] == 1 < len(known):
            values = np.column_stack([1.0 - values.ravel(), values.ravel()])
        probabilities, missing = True, 0.0
    if values.shape != (n_rows(X), len(known)) or not np.isfinite(values).all():
        raise ValueError(
            f"estimator {type(estimator).__name__} gave scores of shape {values.shape}"
            f"{'' if np.isfinite(values).all() else ' that are not all finite'}: there must be a "
            f"finite number for each of {n_rows(X)} rows and {len(known)} classes"
        )
    scores = np.full((len(values), len(classes)), missing)  # (n, K)
    scores[:, known] = values
    return Scores(scores, probabilities)


def _refuse_pairwise(estimator: Any, n_classes: int) -> None:
    """Refuse decision values of pairs of classes, which may be as many as there are classes."""
    while hasattr(estimator, "steps"):
        estimator = estimator.steps[-1][1]
    if n_classes > 2 and getattr(estimator, "decision_function_shape", None) == "ovo":
        raise ValueError(
            f"estimator {type(estimator).__name__} has decision_function_shape 'ovo', a score for "
            "each pair of classes: it must be 'ovr', a score for each class"
        )
