"""Any scikit-learn classifier as base learner: clones fitted to many targets, in parallel."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import has_fit_parameter

from fgfm._utils.folds import Fold, make_folds
from fgfm._utils.parallel import Shared, limit_openmp, run_jobs
from fgfm._utils.rows import append_column, n_rows, on_all_rows, take_param_rows, take_rows
from fgfm.estimation._calibration import fit_calibrator, scores_to_proba
from fgfm.estimation._learner import (
    LearnerSettings,
    fits_label_matrix,
    is_ridge,
    is_splitter,
    last_step,
    seed_learner,
)
from fgfm.estimation._models import Predictions, Target
from fgfm.estimation._scores import Scores, class_scores, label_scores
from fgfm.ridge import RidgeLogistic

__all__ = ["LearnerModel", "LearnerModels", "fit_learners"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_CALIBRATION_FOLDS = 5
_HELD_OUT_FOLDS = 3  # for learners that are not calibrated


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
                scores = matrix_scores(calibrated).of_label(model.column)
            return scores_to_proba(scores, model.calibrator, model.frequencies)

        return Predictions(n, self.classes, proba)


@dataclass
class _Task(Shared):
    """What all fits share: an argument of each job, which a cluster ships once."""

    estimator: Any
    X: Any  # (n, p) features of the rows of positive weight
    weight: Floats  # (n,) their weights
    params: dict[str, Any]  # arguments of the fit
    method: str | None  # "sigmoid", "isotonic", or None for no calibration
    n_workers: int  # number of jobs at a time

    @property
    def needs_scores(self) -> bool:
        """Whether a model cannot predict without scores of held-out rows to calibrate it."""
        return self.method is not None and not hasattr(self.estimator, "predict_proba")


class _Fits(NamedTuple):
    """The fits to one target, or to several labels at once: in folds, and to all rows."""

    targets: list[int]
    y: Integers  # (n,) with -1 where the class is not known, or (n, m)
    extra: Floats | None
    folds: list[Fold]
    seed: int | None

    def is_fitted_in(self, fold: Fold) -> bool:
        """Whether a fold has a model: its training rows have several classes."""
        return self.y.ndim == 2 or _varies(self.y[fold.train])

    def jobs(self, task: _Task) -> list[Any]:
        """Return the jobs: one per fold with a model, and one of all rows."""
        rows: list[Any] = [fold for fold in self.folds if self.is_fitted_in(fold)]
        known = np.arange(len(self.y)) if self.y.ndim == 2 else np.flatnonzero(self.y >= 0)
        if not _varies(self.y[known]) or (task.needs_scores and not rows):
            return []
        rows.append((known, None))
        return [delayed(_fit)(task, (self.y, self.extra, *one), self.seed) for one in rows]


def _fit(
    task: _Task, own: tuple[Integers, Floats | None, Integers, Integers | None], seed: int | None
) -> Any:
    """Fit a clone to the training rows; return it, or its scores for the test rows if any."""
    y, extra, train, test = own
    X = task.X if extra is None else append_column(task.X, extra)
    n_features = X.shape[1] if len(X.shape) > 1 else 1
    with limit_openmp(task.n_workers, len(y) * n_features):
        model: Any = seed_learner(clone(task.estimator), seed)
        if len(train) == len(y):
            model.fit(X, y, **task.params)
        else:
            params = take_param_rows(task.params, train, len(y))
            model.fit(take_rows(X, train), y[train], **params)
        if test is None:
            return model
        X_test, calibrated = take_rows(X, test), task.method is not None
        if y.ndim == 2:
            return label_scores(model, X_test, y.shape[1], calibrated)
        return class_scores(model, X_test, np.unique(y[y >= 0]), calibrated)


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
    task = _make_task(X, targets, weight, rows, settings, method)
    fits = _plan(task, targets, rows, n, settings, held_out)
    jobs = [one.jobs(task) for one in fits]
    results = run_jobs(itertools.chain.from_iterable(jobs), settings.n_jobs)
    models: dict[int, LearnerModel] = {}
    proba: dict[int, Floats] = {}
    for one, own_jobs in zip(fits, jobs, strict=True):
        estimator, scores = None, []
        if own_jobs:
            scores = [next(results) if one.is_fitted_in(fold) else None for fold in one.folds]
            estimator = next(results)
        for column, t in enumerate(one.targets):
            values = one.y if one.y.ndim == 1 else one.y[:, column]
            of_matrix = None if one.y.ndim == 1 else column
            models[t], p = _calibrated(task, values, one.folds, scores, estimator, of_matrix)
            if held_out:
                proba[t] = on_all_rows(p, rows, n)
        progress(len(models))
    n_columns = max((len(one.targets) for one in fits if one.y.ndim == 2), default=0)
    found = LearnerModels([models[t] for t in range(len(targets))], n_columns)
    if not held_out:
        return found, None
    return found, Predictions(n, found.classes, lambda target, extra: proba[target])


def _make_task(
    X: Any,
    targets: Sequence[Target],
    weight: Floats | None,
    rows: Integers,
    settings: LearnerSettings,
    method: str | None,
) -> _Task:
    """Check the base learner, and return what all its fits share, for the given rows."""
    estimator = RidgeLogistic() if is_ridge(settings.estimator) else settings.estimator
    if not hasattr(estimator, "predict_proba") and method is None:
        raise TypeError(
            f"estimator is {estimator!r}, which has no predict_proba, and calibration is "
            "None: its scores need a calibration to become probabilities"
        )
    last = last_step(estimator)
    tags = get_tags(last).classifier_tags if hasattr(last, "__sklearn_tags__") else None
    if tags is not None and not tags.multi_class and any(t.values.max() > 1 for t in targets):
        raise ValueError(
            f"estimator is {type(last).__name__}, whose tags say that it takes no target of more "
            "than two classes, and the method models the number of labels: choose "
            "factors='independent', or fgfm.FClassifier(estimator)"
        )
    if any(target.extra is not None for target in targets):
        _warn_dropped_column(estimator)
    params = dict(settings.fit_params or {})
    if settings.fit_params is None and weight is not None:
        if not has_fit_parameter(estimator, "sample_weight"):
            raise ValueError(
                f"sample_weight is given, but the fit of estimator {type(estimator).__name__} "
                "does not take it: leave it out, or choose a learner that takes it (in a "
                "pipeline: by scikit-learn's metadata routing)"
            )
        params["sample_weight"] = weight
    n = n_rows(X)
    if len(rows) < n:
        X, params = take_rows(X, rows), take_param_rows(params, rows, n)
    kept_weight = np.ones(n) if weight is None else weight[rows]
    return _Task(estimator, X, kept_weight, params, method, effective_n_jobs(settings.n_jobs))


def _plan(
    task: _Task,
    targets: Sequence[Target],
    rows: Integers,
    n: int,
    settings: LearnerSettings,
    held_out: bool,
) -> list[_Fits]:
    """Return the fits to all targets."""
    random = check_random_state(settings.random_state)
    fold_seed = int(random.randint(np.iinfo(np.int32).max))
    seeds: list[int | None] = [None] * len(targets)
    if settings.random_state is not None:
        seeds = [int(seed) for seed in random.randint(np.iinfo(np.int32).max, size=len(targets))]
    n_splits = _CALIBRATION_FOLDS if task.method else _HELD_OUT_FOLDS if held_out else 0
    folds_of = _make_folds(settings, task.X, rows, n, fold_seed, n_splits)
    values = [target.values[rows] for target in targets]
    # targets that share an additional feature still share it
    extras = {id(t.extra): t.extra[rows] for t in targets if t.extra is not None}
    columns: list[int] = []
    if fits_label_matrix(task.estimator):
        # Labels that are not observed in some row are fitted each to its own rows: rows in which
        # all labels are observed may be few.
        columns = [
            t
            for t, (target, v) in enumerate(zip(targets, values, strict=True))
            if target.is_label and v.min() == 0 and v.max() == 1
        ]
    fits = []
    if len(columns) > 1:
        Y = np.column_stack([values[t] for t in columns])  # (n, m)
        fits.append(_Fits(columns, Y, None, folds_of(Y), seeds[columns[0]]))
    else:
        columns = []
    for t in sorted(set(range(len(targets))) - set(columns)):
        y = values[t]
        folds = [Fold(*(part[y[part] >= 0] for part in fold)) for fold in folds_of(y)]
        folds = [fold for fold in folds if len(fold.train) and len(fold.test)]
        fits.append(_Fits([t], y, extras.get(id(targets[t].extra)), folds, seeds[t]))
    return fits


def _make_folds(
    settings: LearnerSettings, X: Any, rows: Integers, n: int, seed: int, n_splits: int
) -> Callable[[Integers], list[Fold]]:
    """Return a function from a target (n,), or labels (n, m), to its folds; none if n_splits is 0.

    They are those that the user chose, or stratified by class, or by the rarest label of each
    row. Splitters take one target, and may warn of classes with fewer rows than folds: they get
    the label nearest to a frequency of one half.
    """
    if n_splits == 0:
        return lambda y: []
    cv = settings.calibration if is_splitter(settings.calibration) else settings.cv
    cv = n_splits if cv is None else cv
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool) and cv > 1:
        return lambda y: _stratified(y if y.ndim == 1 else _rarest_label(y), int(cv), seed)
    folds = make_folds(cv, seed, X, rows, n)
    return lambda y: folds(y if y.ndim == 1 else y[:, np.abs(y.mean(axis=0) - 0.5).argmin()])


def _stratified(y: Integers, n_splits: int, seed: int) -> list[Fold]:
    """Return shuffled stratified folds, also for classes with fewer rows than folds.

    StratifiedKFold of scikit-learn warns of such classes, and raises if there are no others.
    """
    shuffled = np.random.RandomState(seed).permutation(len(y))
    fold_of_row = np.empty(len(y), dtype=np.int64)
    # Sorted by class, consecutive rows go to different folds.
    fold_of_row[shuffled[np.argsort(y[shuffled], kind="stable")]] = np.arange(len(y)) % n_splits
    return [
        Fold(np.flatnonzero(fold_of_row != f), np.flatnonzero(fold_of_row == f))
        for f in range(min(n_splits, len(y)))
    ]


def _rarest_label(Y: Integers) -> Integers:
    """Return the rarest label (n,) of each row; m for none."""
    rarest_first = np.argsort(Y.sum(axis=0), kind="stable")
    at = Y[:, rarest_first].argmax(axis=1)
    return np.asarray(np.where(Y.any(axis=1), rarest_first[at], Y.shape[1]))


def _calibrated(
    task: _Task,
    values: Integers,
    folds: Sequence[Fold],
    scores: Sequence[Scores | None],
    estimator: Any,
    column: int | None,
) -> tuple[LearnerModel, Floats]:
    """Return the model of a target, calibrated by scores of test rows, and held-out predictions.

    A fold whose training rows are of one class has no model and no scores: it does not calibrate,
    and predicts its only class. `estimator` is the learner of all rows.
    """
    known = values >= 0
    classes, of_known = np.unique(values[known], return_inverse=True)
    frequencies = np.bincount(of_known, weights=task.weight[known]) / task.weight[known].sum()
    held_out = np.full((len(values), len(classes)), np.nan)
    used: list[tuple[Integers, Scores]] = []
    for fold, of_fold in zip(folds, scores, strict=False):  # without scores if nothing is fitted
        if of_fold is None or not _varies(values[fold.train]):
            held_out[fold.test] = classes == values[fold.train[0]]
        else:
            used.append((fold.test, of_fold if column is None else of_fold.of_label(column)))
    if estimator is None or (task.needs_scores and not used):
        held_out[:] = frequencies
        return LearnerModel(None, classes, frequencies), held_out
    calibrator = None
    if used:
        rows = np.concatenate([test for test, _ in used])
        together = Scores(
            np.concatenate([s.values for _, s in used]), used[0][1].are_probabilities
        )
        if task.method is not None:
            code = np.searchsorted(classes, values[rows])
            calibrator = fit_calibrator(task.method, together, code, task.weight[rows])
        held_out[rows] = scores_to_proba(together, calibrator, frequencies)
    return LearnerModel(estimator, classes, frequencies, calibrator, column), held_out


def _varies(values: Integers) -> bool:
    return bool((values != values[0]).any())


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
