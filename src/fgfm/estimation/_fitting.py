"""Fit the models of many targets with one base learner: "ridge", "auto", or any other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from fgfm._utils.rows import n_rows, on_all_rows, take_rows
from fgfm.estimation._calibration import CALIBRATIONS, needs_calibration
from fgfm.estimation._fit_learners import fit_learners
from fgfm.estimation._folds import is_splitter, target_folds
from fgfm.estimation._learner import is_auto, is_ridge
from fgfm.estimation._models import Models, Predictions, RidgeModels, StackModels, Target
from fgfm.ridge import RidgeFit, RidgeLogistic, fit_ridge_logistic
from fgfm.stack import StackedLearner, StackedPredictions

__all__ = ["LearnerSettings", "fit_models"]

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.bool_]
Fitted = tuple[Models, Predictions | None]

_PENALTY_FOLDS = 3  # in which the learner "ridge" chooses its penalty, as in the paper


class LearnerSettings(NamedTuple):
    """The base learner and how to fit it."""

    estimator: Any = None  # "auto", "ridge", None for "ridge", or a scikit-learn classifier
    calibration: Any = "auto"  # as in FGFMClassifier
    cv: Any = None  # folds for the penalty of "ridge" and for calibration
    n_jobs: int | None = None
    random_state: Any = None  # seeds the folds, and base learners without a seed
    fit_params: dict[str, Any] | None = None  # for fit; None passes the sample weights, if any


def fit_models(
    X: Any,
    targets: Sequence[Target],
    weight: Floats | None,
    settings: LearnerSettings,
    progress: Callable[[int], None] = lambda count: None,
    *,
    held_out: bool = False,
) -> Fitted:
    """Fit the models of all targets; return them, and held-out predictions if requested.

    These come from the folds in which "ridge" chooses its penalty, or in which other learners are
    calibrated; a learner that needs neither is fitted in three additional folds. "auto" has them
    at no cost. Rows of weight 0 are removed. `progress` is called with the number of models
    fitted so far.
    """
    method = _calibration_method(settings)
    if is_auto(settings.estimator):
        if method is not None:
            raise ValueError(
                f"calibration is {settings.calibration!r} and estimator is 'auto', whose stack is "
                "its calibration: calibration must be 'auto' or None"
            )
        return _fit_stack(X, targets, weight, settings, progress)
    if is_ridge(settings.estimator) and method is None:
        return _fit_ridge(X, targets, weight, settings, progress, held_out)
    return fit_learners(X, targets, weight, settings, method, progress, held_out)


def _calibration_method(settings: LearnerSettings) -> str | None:
    """Return "sigmoid", "isotonic", or None for no calibration."""
    calibration = settings.calibration
    if calibration is None:
        return None
    if isinstance(calibration, str):
        if calibration == "auto":
            named = is_ridge(settings.estimator) or is_auto(settings.estimator)
            return "sigmoid" if not named and needs_calibration(settings.estimator) else None
        if calibration in CALIBRATIONS:
            return calibration
    elif is_splitter(calibration):
        return "sigmoid"
    raise ValueError(
        f"calibration is {calibration!r}: it must be 'auto', 'sigmoid', 'isotonic', None, or a "
        "scikit-learn splitter for the folds"
    )


def _fit_ridge(
    X: Any,
    targets: Sequence[Target],
    weight: Floats | None,
    settings: LearnerSettings,
    progress: Callable[[int], None],
    held_out: bool,
) -> Fitted:
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
            progress=_continued(progress, len(fits)),
            **params,
        )
        fits.update(zip(group, group_fits, strict=True))
    found = [fits[t] for t in range(len(targets))]
    models = RidgeModels(found, [target.extra is not None for target in targets])
    if not held_out:
        return models, None
    # each row has its own value of the additional feature
    proba: Any = lambda target, extra: found[target].held_out  # noqa: E731
    return models, Predictions(n_rows(X), models.classes, proba)


def _continued(progress: Callable[[int], None], done: int) -> Callable[[int], None]:
    """Return a callback for further models after some that are done."""
    return lambda count: progress(done + count)


def _same_rows(targets: Sequence[Target]) -> list[tuple[list[int], Labels]]:
    """Return groups of targets that are known in the same rows, and these rows as a mask."""
    groups: dict[bytes, tuple[list[int], Labels]] = {}
    for t, target in enumerate(targets):
        known = target.values >= 0
        groups.setdefault(np.packbits(known).tobytes(), ([], known))[0].append(t)
    return list(groups.values())


def _fit_stack(
    X: Any,
    targets: Sequence[Target],
    weight: Floats | None,
    settings: LearnerSettings,
    progress: Callable[[int], None],
) -> Fitted:
    """Fit the learner "auto" to all targets together."""
    n = n_rows(X)
    w = np.ones(n) if weight is None else weight
    rows = np.flatnonzero(w > 0.0)
    seed = int(check_random_state(settings.random_state).randint(np.iinfo(np.int32).max))
    if settings.cv is not None:  # is not used, but must be valid
        target_folds(None, settings.cv, X, rows, n, seed, n_splits=2)
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
