"""Fit clones of any scikit-learn classifier to many targets, in parallel."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.utils import check_random_state
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import has_fit_parameter

from fgfm._utils.folds import Fold
from fgfm._utils.parallel import Shared, limit_openmp, run_jobs
from fgfm._utils.rows import append_column, n_rows, on_all_rows, take_param_rows, take_rows
from fgfm.estimation._calibration import fit_calibrator, scores_to_proba
from fgfm.estimation._folds import target_folds
from fgfm.estimation._learner import (
    LearnerSettings,
    fits_label_matrix,
    flat_learner,
    is_ridge,
    seed_learner,
)
from fgfm.estimation._models import LearnerModel, LearnerModels, Predictions, Target
from fgfm.estimation._scores import Scores, class_scores, label_scores
from fgfm.ridge import RidgeLogistic

__all__ = ["fit_learners"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
_Fitted = tuple[LearnerModel, Floats]  # the model of a target, and its held-out predictions (n, K)

_CALIBRATION_FOLDS = 5
_HELD_OUT_FOLDS = 3  # for learners that are not calibrated


@dataclass
class _Task(Shared):
    """What the fits of all targets share: an argument of each job, which a cluster ships once."""

    estimator: Any
    X: Any  # (n, p) features of the rows of positive weight
    weight: Floats  # (n,) their weights
    params: dict[str, Any]  # arguments of the fit
    method: str | None  # "sigmoid", "isotonic", or None for no calibration
    folds: Any  # from (X, y) to the folds of a target; None if none are needed
    held_out: bool  # whether held-out predictions are requested
    n_workers: int  # number of jobs at a time

    def fit(self, estimator: Any, X: Any, y: Integers, rows: Integers, seed: int | None) -> Any:
        """Fit a clone to some of the rows."""
        model: Any = seed_learner(clone(estimator), seed)
        if len(rows) == len(y):
            return model.fit(X, y, **self.params)
        params = take_param_rows(self.params, rows, len(y))
        return model.fit(take_rows(X, rows), y[rows], **params)

    def limit_threads(self) -> Any:
        """Return a context in which a fit uses its share of the cores."""
        n_features = self.X.shape[1] if len(self.X.shape) > 1 else 1
        return limit_openmp(self.n_workers, n_rows(self.X) * n_features)


def fit_learners(
    X: Any,
    targets: Sequence[Target],
    weight: Floats | None,
    settings: LearnerSettings,
    method: str | None,
    progress: Callable[[int], None],
    held_out: bool,
) -> tuple[LearnerModels, Predictions | None]:
    """Fit clones of the base learner, calibrated by `method` if it is not None.

    One is fitted to each target; but one to all labels, if the learner takes a matrix of labels.
    The parameters are those of `fgfm.estimation._fitting.fit_models`.
    """
    n = n_rows(X)
    rows = np.arange(n) if weight is None else np.flatnonzero(weight > 0.0)
    random = check_random_state(settings.random_state)
    fold_seed = int(random.randint(np.iinfo(np.int32).max))
    seeds: list[int | None] = [None] * len(targets)
    if settings.random_state is not None:
        seeds = [int(seed) for seed in random.randint(np.iinfo(np.int32).max, size=len(targets))]
    task = _make_task(X, targets, weight, rows, settings, method, held_out, fold_seed)
    if len(rows) < n:
        targets = _take_target_rows(targets, rows)
    columns = _matrix_columns(targets) if fits_label_matrix(task.estimator) else []
    others = sorted(set(range(len(targets))) - set(columns))
    folds: list[Fold] = []
    jobs: list[Any] = []
    if columns:
        Y = np.column_stack([targets[t].values for t in columns])  # (n, m)
        folds = [] if task.folds is None else task.folds.shared(task.X, Y)
        jobs = [delayed(_fit_matrix)(task, Y, fold, seeds[columns[0]]) for fold in (*folds, None)]
    target_jobs = (delayed(_fit_target)(task, targets[t], seeds[t]) for t in others)
    results = run_jobs(itertools.chain(jobs, target_jobs), settings.n_jobs)
    found: dict[int, _Fitted] = {}
    if columns:
        scores, model = [next(results) for _ in folds], next(results)
        for column, t in enumerate(columns):
            found[t] = _label_model(task, model, column, targets[t].values, folds, scores)
        progress(len(found))
    for t, result in zip(others, results, strict=True):
        found[t] = result
        progress(len(found))
    models = LearnerModels([found[t][0] for t in range(len(targets))], len(columns))
    if not held_out:
        return models, None
    proba = [on_all_rows(found[t][1], rows, n) for t in range(len(targets))]
    return models, Predictions(n, models.classes, lambda target, extra: proba[target])


def _make_task(
    X: Any,
    targets: Sequence[Target],
    weight: Floats | None,
    rows: Integers,
    settings: LearnerSettings,
    method: str | None,
    held_out: bool,
    seed: int,
) -> _Task:
    """Check the base learner, and return what all its fits share, for the given rows."""
    estimator = RidgeLogistic() if is_ridge(settings.estimator) else settings.estimator
    if not hasattr(estimator, "predict_proba") and method is None:
        raise TypeError(
            f"estimator is {estimator!r}, which has no predict_proba, and calibration is "
            "None: its scores need a calibration to become probabilities"
        )
    if any(target.extra is not None for target in targets):
        _warn_dropped_column(estimator)
    params = _fit_params(estimator, weight, settings)
    n = n_rows(X)
    if len(rows) < n:
        X, params = take_rows(X, rows), take_param_rows(params, rows, n)
    folds = None
    if method or held_out:
        n_splits = _CALIBRATION_FOLDS if method else _HELD_OUT_FOLDS
        folds = target_folds(settings.calibration, settings.cv, X, rows, n, seed, n_splits)
    kept_weight = np.ones(len(rows)) if weight is None else weight[rows]
    n_workers = effective_n_jobs(settings.n_jobs)
    return _Task(estimator, X, kept_weight, params, method, folds, held_out, n_workers)


def _fit_params(
    estimator: Any, weight: Floats | None, settings: LearnerSettings
) -> dict[str, Any]:
    """Return the arguments for the ``fit`` of the base learner."""
    if settings.fit_params is not None:
        return dict(settings.fit_params)
    if weight is None:
        return {}
    if not has_fit_parameter(estimator, "sample_weight"):
        raise ValueError(
            f"sample_weight is given, but the fit of estimator {type(estimator).__name__} does "
            "not take it: leave it out, or choose a learner that takes it (in a pipeline: by "
            "scikit-learn's metadata routing)"
        )
    return {"sample_weight": weight}


def _take_target_rows(targets: Sequence[Target], rows: Integers) -> list[Target]:
    """Return targets for some rows; targets that share an array `extra` still share it."""
    extras = {id(t.extra): t.extra[rows] for t in targets if t.extra is not None}
    return [t._replace(values=t.values[rows], extra=extras.get(id(t.extra))) for t in targets]


def _matrix_columns(targets: Sequence[Target]) -> list[int]:
    """Return the targets that share one learner, or an empty list if there are fewer than two.

    Labels that are not observed in some row are fitted each to its own rows: rows in which all
    labels are observed may be few.
    """
    columns = [
        t
        for t, target in enumerate(targets)
        if target.is_label and target.values.min() == 0 and target.values.max() == 1
    ]
    return columns if len(columns) > 1 else []


def _fit_matrix(task: _Task, Y: Integers, fold: Fold | None, seed: int | None) -> Any:
    """Fit one learner to all labels (n, m); return it, or its scores for the test rows."""
    rows = np.arange(len(Y)) if fold is None else fold.train
    with task.limit_threads():
        model = task.fit(task.estimator, task.X, Y, rows, seed)
        if fold is None:
            return model
        X_test = take_rows(task.X, fold.test)
        return label_scores(model, X_test, Y.shape[1], task.method is not None)


def _label_model(
    task: _Task,
    estimator: Any,
    column: int,
    values: Integers,
    folds: Sequence[Fold],
    scores_of_folds: Sequence[Scores],
) -> _Fitted:
    """Return the model of one label of a learner that was fitted to a matrix of labels."""
    scores = [
        Scores(scores.values[:, column], scores.are_probabilities)
        if _varies(values[fold.train])
        else None
        for fold, scores in zip(folds, scores_of_folds, strict=True)
    ]
    return _calibrated(task, values, np.arange(2), folds, scores, lambda: estimator, column)


def _fit_target(task: _Task, target: Target, seed: int | None) -> _Fitted:
    """Fit the model of one target to all rows, and its calibrator to held-out scores."""
    values, X = target.values, task.X
    known = np.flatnonzero(values >= 0)
    classes, of_known = np.unique(values[known], return_inverse=True)
    code = np.full(len(values), -1)
    code[known] = of_known
    if len(classes) == 1:
        held_out = np.ones((len(values) if task.held_out else 0, 1))
        return LearnerModel(None, classes, np.ones(1)), held_out
    folds = [] if task.folds is None else _known_folds(task.folds(X, values), values)
    if target.extra is not None:
        X = append_column(X, target.extra)
    learner = flat_learner(task.estimator)

    def test_scores(fold: Fold) -> Scores | None:
        if not _varies(code[fold.train]):
            return None
        fitted = task.fit(learner, X, values, fold.train, seed)
        return class_scores(fitted, take_rows(X, fold.test), classes, task.method is not None)

    with task.limit_threads():
        scores = [test_scores(fold) for fold in folds]
        return _calibrated(
            task, code, classes, folds, scores, lambda: task.fit(learner, X, values, known, seed)
        )


def _known_folds(folds: Sequence[Fold], values: Integers) -> list[Fold]:
    """Return folds without the rows whose class is not known."""
    known = [Fold(*(rows[values[rows] >= 0] for rows in fold)) for fold in folds]
    return [fold for fold in known if len(fold.train) and len(fold.test)]


def _calibrated(
    task: _Task,
    code: Integers,
    classes: Integers,
    folds: Sequence[Fold],
    scores: Sequence[Scores | None],
    fit: Callable[[], Any],
    column: int | None = None,
) -> _Fitted:
    """Return the model of a target, calibrated by scores of test rows, and held-out predictions.

    A fold whose training rows are of one class has no model and no scores: it does not calibrate,
    and predicts its only class. `fit` returns the learner of all rows.
    """
    known = code >= 0
    frequencies = np.bincount(code[known], weights=task.weight[known]) / task.weight[known].sum()
    held_out = np.full((len(code) if task.held_out else 0, len(classes)), np.nan)
    used = [(fold.test, s) for fold, s in zip(folds, scores, strict=True) if s is not None]
    if task.held_out:
        for fold, fold_scores in zip(folds, scores, strict=True):
            if fold_scores is None:
                held_out[fold.test] = np.arange(len(classes)) == code[fold.train[0]]
    calibrator = None
    if used:
        rows = np.concatenate([test for test, _ in used])
        together = Scores(
            np.concatenate([s.values for _, s in used]), used[0][1].are_probabilities
        )
        if task.method is not None:
            calibrator = fit_calibrator(task.method, together, code[rows], task.weight[rows])
        if task.held_out:
            held_out[rows] = scores_to_proba(together, calibrator, frequencies)
    elif task.method is not None and not hasattr(task.estimator, "predict_proba"):
        held_out[:] = frequencies  # no fold could calibrate the scores
        return LearnerModel(None, classes, frequencies), held_out
    return LearnerModel(fit(), classes, frequencies, calibrator, column), held_out


def _varies(code: Integers) -> bool:
    return bool((code != code[0]).any())


def _warn_dropped_column(estimator: Any) -> None:
    """Warn if a column appended to X would not reach the learner."""
    first = estimator.steps[0][1] if hasattr(estimator, "steps") else None
    if isinstance(first, ColumnTransformer) and first.remainder == "drop":
        warnings.warn(
            "estimator begins with a ColumnTransformer that drops other columns, and with them "
            "the number of labels, which 'two-step' appends to X: set remainder='passthrough' "
            "there, or method='tilted'",
            UserWarning,
            stacklevel=7,  # the caller of fit
        )
