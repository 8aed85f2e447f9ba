"""Models of many targets on the same features: ridge regressions and the learner "auto".

A `Target` is what one model is fitted to. `RidgeModels`, `StackModels`, and `LearnerModels` of any
other learner (`fgfm.estimation._learners`) hold the models of all targets; their `predictions` for
a block of rows compute probabilities on request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax
from sklearn.utils import check_random_state

from fgfm._utils.folds import make_folds
from fgfm._utils.rows import n_rows, on_all_rows, take_rows
from fgfm.estimation._learner import LearnerSettings
from fgfm.learner import StackedLearner, StackedPredictions
from fgfm.ridge import RidgeFit, RidgeLogistic, fit_ridge_logistic

__all__ = ["Predictions", "RidgeModels", "StackModels", "Target", "fit_ridge", "fit_stack"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Labels = npt.NDArray[np.bool_]

_PENALTY_FOLDS = 3  # in which the learner "ridge" chooses its penalty, as in the paper


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

    def at(self, rows: Any) -> Predictions:
        """Return held-out predictions for some of the rows."""
        proba = [self._proba(target, None)[rows] for target in range(len(self._classes))]
        return Predictions(len(proba[0]), self._classes, lambda target, extra: proba[target])

    def complete_rows(self) -> Labels:
        """Return which rows (n,) have held-out probabilities of all targets."""
        complete = np.ones(self.n_rows, dtype=np.bool_)
        for target in range(len(self._classes)):
            complete &= np.isfinite(self._proba(target, None)).all(axis=1)
        return complete


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

        def logits_of(start: int, stop: int, extra: float | None) -> Floats:
            at = slice(self.first_logit[start], self.first_logit[stop])
            return logits[:, at] if extra is None else logits[:, at] + extra * self.coef_extra[at]

        def proba(target: int, extra: float | None) -> Floats:
            K = len(self.classes[target])
            if K == 1:
                return np.ones((len(logits), 1))
            f = logits_of(target, target + 1, extra)
            return np.asarray(expit(f * np.array([-1.0, 1.0])) if K == 2 else softmax(f, axis=1))

        def positive(targets: range, extra: float | None) -> Floats:
            return np.asarray(expit(logits_of(targets.start, targets.stop, extra)))

        return Predictions(len(logits), self.classes, proba, positive)


def fit_ridge(
    X: Any,
    targets: Sequence[Target],
    weight: Floats | None,
    settings: LearnerSettings,
    progress: Callable[[int], None],
    held_out: bool,
) -> tuple[RidgeModels, Predictions | None]:
    """Fit ridge logistic regressions to all targets that are known in the same rows at once."""
    estimator = settings.estimator
    if not isinstance(estimator, RidgeLogistic):
        estimator = RidgeLogistic(cv=_PENALTY_FOLDS if settings.cv is None else settings.cv)
    params = estimator.get_params(deep=False)
    if params["random_state"] is None:
        params["random_state"] = settings.random_state
    if settings.fit_params is not None and weight is not None:
        # Metadata routing decides whether the learner gets the weights. Rows of weight 0 are
        # removed in any case.
        routed = settings.fit_params.get("sample_weight")
        weight = np.where(weight > 0.0, 1.0 if routed is None else routed, 0.0)
    groups = _same_rows(targets)
    if len(groups) > 1 and hasattr(params["cv"], "__iter__"):
        params["cv"] = list(params["cv"])  # read once per group
    fits: dict[int, RidgeFit] = {}
    for group, known in groups:
        group_fits = fit_ridge_logistic(
            X,
            [targets[t].values for t in group],
            extra=[targets[t].extra for t in group],
            sample_weight=weight if known.all() else known * (1.0 if weight is None else weight),
            n_jobs=settings.n_jobs,
            held_out=held_out,
            progress=lambda count: progress(len(fits) + count),
            **params,
        )
        fits.update(zip(group, group_fits, strict=True))
    found = [fits[t] for t in range(len(targets))]
    models = RidgeModels(found, [target.extra is not None for target in targets])
    if not held_out:
        return models, None

    def proba(target: int, extra: Any) -> Any:
        return found[target].held_out  # each row has its own value of the additional feature

    return models, Predictions(n_rows(X), models.classes, proba)


def _same_rows(targets: Sequence[Target]) -> list[tuple[list[int], Labels]]:
    """Return groups of targets that are known in the same rows, and these rows as a mask."""
    groups: dict[bytes, tuple[list[int], Labels]] = {}
    for t, target in enumerate(targets):
        known = target.values >= 0
        groups.setdefault(np.packbits(known).tobytes(), ([], known))[0].append(t)
    return list(groups.values())


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
        column = np.full(len(learner.classes), -1)  # of each target among the binary ones
        column[learner.binary] = np.arange(len(learner.binary))

        def proba(target: int, extra: float | None) -> Floats:
            if column[target] >= 0:
                p = stacked.positive[:, column[target]]
                return np.column_stack([1.0 - p, p])
            if target in learner.multiclass:
                return stacked.distributions[learner.multiclass.index(target)]
            return np.ones((n, len(learner.classes[target])))

        def positive(targets: range, extra: float | None) -> Floats:
            at = column[targets.start : targets.stop]
            p = np.empty((n, len(at)))
            p[:, at >= 0] = stacked.positive[:, at[at >= 0]]
            return p

        return Predictions(n, learner.classes, proba, positive, left_one_out=True)


def fit_stack(
    X: Any,
    targets: Sequence[Target],
    weight: Floats | None,
    settings: LearnerSettings,
    progress: Callable[[int], None],
) -> tuple[StackModels, Predictions]:
    """Fit the learner "auto" to all targets together."""
    n = n_rows(X)
    w = np.ones(n) if weight is None else weight
    rows = np.flatnonzero(w > 0.0)
    seed = int(check_random_state(settings.random_state).randint(np.iinfo(np.int32).max))
    if settings.cv is not None:  # is not used, but must be valid
        make_folds(settings.cv, seed, X, rows, n)
    learner = StackedLearner()
    stacked = learner.fit(
        X if len(rows) == n else take_rows(X, rows),
        [target.values[rows] for target in targets],
        w[rows],
        seed,
        settings.n_jobs,
        lambda share: progress(int(share * len(targets))),
    )
    progress(len(targets))
    models = StackModels(learner)
    stacked = StackedPredictions(
        on_all_rows(stacked.positive, rows, n),
        [on_all_rows(p, rows, n) for p in stacked.distributions],
    )
    return models, models.as_predictions(stacked)
