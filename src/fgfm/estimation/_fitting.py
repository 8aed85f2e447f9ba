"""Fit the models of many targets with one base learner, in parallel."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.utils import check_random_state
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import has_fit_parameter

from fgfm._utils.folds import Fold, make_folds
from fgfm._utils.parallel import Shared, run_jobs
from fgfm._utils.rows import append_column, n_rows, on_all_rows, take_rows
from fgfm.estimation._calibration import (
    IsotonicCalibrator,
    Scores,
    SigmoidCalibrator,
    needs_calibration,
)
from fgfm.estimation._learner import class_scores, is_auto, is_ridge, seed_learner
from fgfm.estimation._models import (
    GivenPredictions,
    LearnerModel,
    LearnerModels,
    Models,
    ModelTarget,
    RidgeModels,
    StackModels,
    scores_to_proba,
)
from fgfm.ridge import RidgeLogistic, fit_ridge_logistic
from fgfm.stack import StackedLearner

__all__ = ["LearnerSettings", "fit_models"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_CALIBRATORS: dict[str, Any] = {"sigmoid": SigmoidCalibrator, "isotonic": IsotonicCalibrator}
_CALIBRATION_FOLDS = 5
_OUT_OF_FOLD_FOLDS = 3  # for learners that are not calibrated
_PENALTY_FOLDS = 3  # in which the default learner chooses its penalty, as in the paper


class LearnerSettings(NamedTuple):
    """The base learner and how to fit it.

    Attributes
    ----------
    estimator : scikit-learn classifier or None
        The base learner; None is `RidgeLogistic`.
    calibration : str, splitter or None
        As in `fgfm.FGFMClassifier`.
    cv : int, splitter, iterable or None
        Folds for the penalty of the default learner and for calibration.
    n_jobs : int or None
        Number of jobs, as in joblib.
    random_state : int, RandomState instance or None
        Seeds the folds, and base learners without a seed.
    fit_params : dict or None
        Arguments for the ``fit`` of the base learner. None passes the sample weights, if any.
    """

    estimator: Any = None
    calibration: Any = "auto"
    cv: Any = None
    n_jobs: int | None = None
    random_state: Any = None
    fit_params: dict[str, Any] | None = None


def fit_models(
    X: Any,
    targets: Sequence[ModelTarget],
    weight: Floats | None,
    settings: LearnerSettings,
    progress: Callable[[int], None] | None = None,
    *,
    out_of_fold: bool = False,
) -> tuple[Models, GivenPredictions | None]:
    """Fit one model per target.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n, p)
        Features; floats, if the base learner is the default one.
    targets : sequence of ModelTarget
        The targets.
    weight : ndarray of shape (n,) or None
        Sample weights. Rows of weight 0 are removed.
    settings : LearnerSettings
        The base learner and how to fit it.
    progress : callable, optional
        Called with the number of models fitted so far.
    out_of_fold : bool, default=False
        Return out-of-fold predictions too. They come from the folds in which the default learner
        chooses its penalty, or in which other learners are calibrated; a learner that needs
        neither is fitted in three additional folds.

    Returns
    -------
    models : Models
        The fitted models, in the order of the targets.
    predictions : GivenPredictions or None
        The out-of-fold predictions, if requested.
    """
    if is_auto(settings.estimator):
        return _fit_stack(X, targets, weight, settings, progress)
    method = _calibration_method(settings)
    if is_ridge(settings.estimator) and method is None:
        return _fit_ridge(X, targets, weight, settings, progress, out_of_fold)
    return _fit_learners(X, targets, weight, settings, method, progress, out_of_fold)


def _fit_ridge(
    X: Any,
    targets: Sequence[ModelTarget],
    weight: Floats | None,
    settings: LearnerSettings,
    progress: Callable[[int], None] | None,
    out_of_fold: bool,
) -> tuple[Models, GivenPredictions | None]:
    """Fit the default learner to all targets together."""
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
    fits = fit_ridge_logistic(
        X,
        [target.values for target in targets],
        extra=[target.extra for target in targets],
        sample_weight=weight,
        n_jobs=settings.n_jobs,
        held_out=out_of_fold,
        progress=progress,
        **params,
    )
    models = RidgeModels(fits, [target.extra is not None for target in targets])
    proba = [fit.held_out for fit in fits if fit.held_out is not None]
    return models, GivenPredictions(proba, models.classes) if out_of_fold else None


def _fit_stack(
    X: Any,
    targets: Sequence[ModelTarget],
    weight: Floats | None,
    settings: LearnerSettings,
    progress: Callable[[int], None] | None,
) -> tuple[Models, GivenPredictions]:
    """Fit the learner "auto" to all targets together."""
    if any(target.extra is not None for target in targets):
        raise ValueError(
            "estimator is 'auto' and method is 'two-step': that method needs one model per label "
            "and an additional feature; choose another method, or estimator='ridge'"
        )
    n = n_rows(X)
    w = np.ones(n) if weight is None else weight
    rows = np.flatnonzero(w > 0.0)
    seed = int(check_random_state(settings.random_state).randint(np.iinfo(np.int32).max))
    learner = StackedLearner()
    proba = learner.fit(
        X if len(rows) == n else take_rows(X, rows),
        [target.values[rows] for target in targets],
        w[rows],
        seed,
        settings.n_jobs,
        None if progress is None else lambda share: progress(int(share * len(targets))),
    )
    if progress is not None:
        progress(len(targets))
    models = StackModels(learner)
    held_out = [on_all_rows(p, rows, n) for p in proba]
    return models, GivenPredictions(held_out, models.classes, left_one_out=True)


def _fit_learners(
    X: Any,
    targets: Sequence[ModelTarget],
    weight: Floats | None,
    settings: LearnerSettings,
    method: str | None,
    progress: Callable[[int], None] | None,
    out_of_fold: bool,
) -> tuple[Models, GivenPredictions | None]:
    """Fit a clone of the base learner to each target, calibrated by `method` if it is not None."""
    estimator = RidgeLogistic() if is_ridge(settings.estimator) else settings.estimator
    if not hasattr(estimator, "predict_proba") and method is None:
        raise TypeError(
            f"estimator is {estimator!r}, which has no predict_proba, and calibration is "
            "None: its scores need a calibration to become probabilities"
        )
    if any(target.extra is not None for target in targets):
        _warn_dropped_column(estimator)
    fit_params = _fit_params(estimator, weight, settings)
    n = n_rows(X)
    rows = np.arange(n) if weight is None else np.flatnonzero(weight > 0.0)
    if len(rows) < n:
        X = take_rows(X, rows)
        targets = _take_target_rows(targets, rows)
        fit_params = _take_param_rows(fit_params, rows, n)
    kept_weight = np.ones(len(rows)) if weight is None else weight[rows]
    random = check_random_state(settings.random_state)
    fold_seed = int(random.randint(np.iinfo(np.int32).max))
    seeds: list[int | None] = [None] * len(targets)
    if settings.random_state is not None:
        seeds = [int(seed) for seed in random.randint(np.iinfo(np.int32).max, size=len(targets))]
    make_target_folds = None
    if method or out_of_fold:
        n_splits = _CALIBRATION_FOLDS if method else _OUT_OF_FOLD_FOLDS
        make_target_folds = _target_folds(settings, X, rows, n, fold_seed, n_splits)
    jobs = (
        delayed(_fit_target)(
            estimator,
            X,
            (target.values,),
            target.extra,
            kept_weight,
            method,
            make_target_folds,
            seed,
            out_of_fold,
            **fit_params,
        )
        for target, seed in zip(targets, seeds, strict=True)
    )
    models: list[LearnerModel] = []
    proba: list[Floats] = []
    for model, predicted in run_jobs(jobs, settings.n_jobs):
        models.append(model)
        if out_of_fold:
            proba.append(on_all_rows(predicted, rows, n))
        if progress is not None:
            progress(len(models))
    fitted = LearnerModels(models)
    return fitted, GivenPredictions(proba, fitted.classes) if out_of_fold else None


def _fit_target(
    estimator: Any,
    X: Any,
    own: tuple[Integers],
    extra: Floats | None,
    weight: Floats,
    method: str | None,
    make_target_folds: Any,
    seed: int | None,
    out_of_fold: bool,
    /,
    **fit_params: Any,
) -> tuple[LearnerModel, Floats]:
    """Fit the model of one target to all rows, and its calibrator to out-of-fold scores.

    Arguments that jobs share are passed by themselves, since a cluster ships such an argument
    once. The classes of the rows belong to one job: in a tuple they travel with it, and again if
    its worker is lost.

    Returns
    -------
    model : LearnerModel
        The fitted model.
    proba : ndarray of shape (n, K)
        Out-of-fold predictions if they are requested, else an array of shape (0, K).
    """
    (values,) = own
    classes, code = np.unique(values, return_inverse=True)
    frequencies = np.bincount(code, weights=weight) / weight.sum()
    n = len(code)
    proba = np.full((n if out_of_fold else 0, len(classes)), np.nan)
    if len(classes) == 1:
        proba[:] = 1.0
        return LearnerModel(None, classes, frequencies, None), proba
    folds = [] if make_target_folds is None else make_target_folds(X, values)
    if extra is not None:
        X = append_column(X, extra)

    def fit(rows: Integers | None = None) -> Any:
        model: Any = seed_learner(clone(estimator), seed)
        if rows is None:
            return model.fit(X, values, **fit_params)
        params = _take_param_rows(fit_params, rows, n)
        return model.fit(take_rows(X, rows), values[rows], **params)

    if make_target_folds is None:
        return LearnerModel(fit(), classes, frequencies, None), proba
    fold_scores: list[Scores] = []
    fold_rows: list[Integers] = []
    for train, test in folds:
        if len(np.unique(code[train])) < 2:
            # No model can be fitted: the fold does not calibrate, and predicts its only class.
            if out_of_fold:
                proba[test] = np.arange(len(classes)) == code[train[0]]
            continue
        fold_scores.append(
            class_scores(fit(train), take_rows(X, test), classes, method is not None)
        )
        fold_rows.append(test)
    if not fold_scores and not hasattr(estimator, "predict_proba"):
        if out_of_fold:
            proba[:] = frequencies
        return LearnerModel(None, classes, frequencies, None), proba
    calibrator = None
    if fold_scores:
        rows = np.concatenate(fold_rows)
        values_of_folds = np.concatenate([scores.values for scores in fold_scores])
        scores = Scores(values_of_folds, fold_scores[0].are_probabilities)
        if method is not None:
            calibrator = _CALIBRATORS[method]().fit(scores, code[rows], weight[rows])
        if out_of_fold:
            proba[rows] = scores_to_proba(scores, calibrator, frequencies)
    return LearnerModel(fit(), classes, frequencies, calibrator), proba


def _fit_params(
    estimator: Any, weight: Floats | None, settings: LearnerSettings
) -> dict[str, Any]:
    """Return the arguments for the ``fit`` of the base learner."""
    if settings.fit_params is not None:
        return settings.fit_params
    if weight is None:
        return {}
    if not has_fit_parameter(estimator, "sample_weight"):
        raise ValueError(
            f"sample_weight is given, but the fit of estimator {type(estimator).__name__} does "
            "not take it: leave it out, or choose a learner that takes it (in a pipeline: by "
            "scikit-learn's metadata routing)"
        )
    return {"sample_weight": weight}


def _take_target_rows(targets: Sequence[ModelTarget], rows: Integers) -> list[ModelTarget]:
    """Return targets for some rows; targets that share an array `extra` still share it."""
    extras = {id(t.extra): t.extra[rows] for t in targets if t.extra is not None}
    return [ModelTarget(t.values[rows], extras.get(id(t.extra))) for t in targets]


def _take_param_rows(params: dict[str, Any], rows: Integers, n: int) -> dict[str, Any]:
    """Return fit parameters for some rows: those of length n are indexed."""

    def per_row(value: Any) -> bool:
        return (
            hasattr(value, "__len__") and not isinstance(value, (str, dict)) and n_rows(value) == n
        )

    return {k: take_rows(v, rows) if per_row(v) else v for k, v in params.items()}


def _warn_dropped_column(estimator: Any) -> None:
    """Warn if a column appended to X would not reach the learner."""
    first = estimator.steps[0][1] if hasattr(estimator, "steps") else None
    if isinstance(first, ColumnTransformer) and first.remainder == "drop":
        warnings.warn(
            "estimator begins with a ColumnTransformer that drops other columns, and with them "
            "the number of labels, which 'two-step' appends to X: set remainder='passthrough' "
            "there, or method='tilted'",
            UserWarning,
            stacklevel=6,  # the caller of fit
        )


# Calibration and its folds


def _calibration_method(settings: LearnerSettings) -> str | None:
    """Return "sigmoid", "isotonic", or None for no calibration."""
    calibration = settings.calibration
    if calibration is None:
        return None
    if isinstance(calibration, str):
        if calibration == "auto":
            estimator = settings.estimator
            calibrate = not is_ridge(estimator) and needs_calibration(estimator)
            return "sigmoid" if calibrate else None
        if calibration in _CALIBRATORS:
            return calibration
    elif _is_splitter(calibration):
        return "sigmoid"
    raise ValueError(
        f"calibration is {calibration!r}: it must be 'auto', 'sigmoid', 'isotonic', None, or a "
        "scikit-learn splitter for the folds"
    )


def _is_splitter(value: Any) -> bool:
    return hasattr(value, "split") and not isinstance(value, str)


def _target_folds(
    settings: LearnerSettings, X: Any, rows: Integers, n: int, seed: int, n_splits: int
) -> Any:
    """Return a callable from (X, y) to the folds of one target."""
    cv = settings.calibration if _is_splitter(settings.calibration) else settings.cv
    if cv is None or (isinstance(cv, (int, np.integer)) and not isinstance(cv, bool) and cv > 1):
        return _StratifiedFolds(n_splits if cv is None else int(cv), seed)
    if _is_splitter(cv):
        return _SplitterFolds(cv)
    return _GivenFolds(make_folds(cv, seed, X, rows, n)(rows))


class _StratifiedFolds:
    """Shuffled stratified folds, also for classes with fewer rows than folds.

    StratifiedKFold of scikit-learn warns of such classes, and raises if there are no others.
    """

    def __init__(self, n_splits: int, seed: int) -> None:
        self.n_splits = n_splits
        self.seed = seed

    def __call__(self, X: Any, y: Integers) -> list[Fold]:
        n = len(y)
        shuffled = np.random.RandomState(self.seed).permutation(n)
        fold_of_row = np.empty(n, dtype=np.int64)
        # Sorted by class, consecutive rows go to different folds.
        fold_of_row[shuffled[np.argsort(y[shuffled], kind="stable")]] = (
            np.arange(n) % self.n_splits
        )
        return [
            Fold(np.flatnonzero(fold_of_row != f), np.flatnonzero(fold_of_row == f))
            for f in range(min(self.n_splits, n))
        ]


class _SplitterFolds:
    """The folds of a scikit-learn splitter."""

    def __init__(self, splitter: Any) -> None:
        self.splitter = splitter

    def __call__(self, X: Any, y: Integers) -> list[Fold]:
        return [Fold(train, test) for train, test in self.splitter.split(X, y)]


class _GivenFolds(Shared):
    """The same folds for every target."""

    def __init__(self, folds: list[Fold]) -> None:
        self.folds = folds

    def __call__(self, X: Any, y: Integers) -> list[Fold]:
        return self.folds
