"""Fit the models of many targets with one base learner, in parallel."""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.utils import check_random_state
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import has_fit_parameter

from fgfm._utils.folds import Fold
from fgfm._utils.parallel import limit_openmp, run_jobs
from fgfm._utils.rows import append_column, n_rows, on_all_rows, take_param_rows, take_rows
from fgfm.estimation._calibration import (
    IsotonicCalibrator,
    Scores,
    SigmoidCalibrator,
    needs_calibration,
)
from fgfm.estimation._learner import (
    class_scores,
    fits_label_matrix,
    flat_learner,
    is_auto,
    is_ridge,
    label_scores,
    seed_learner,
)
from fgfm.estimation._models import (
    GivenPredictions,
    HeldOut,
    LearnerModel,
    LearnerModels,
    Models,
    ModelTarget,
    RidgeModels,
    StackModels,
    StackPredictions,
    label_column,
    scores_to_proba,
)
from fgfm.estimation._target_folds import is_splitter, target_folds
from fgfm.ridge import RidgeFit, RidgeLogistic, fit_ridge_logistic
from fgfm.stack import StackedLearner, StackedPredictions

__all__ = ["LearnerSettings", "fit_models"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Labels = npt.NDArray[np.bool_]

_CALIBRATORS: dict[str, Any] = {"sigmoid": SigmoidCalibrator, "isotonic": IsotonicCalibrator}
_CALIBRATION_FOLDS = 5
_OUT_OF_FOLD_FOLDS = 3  # for learners that are not calibrated
_PENALTY_FOLDS = 3  # in which the default learner chooses its penalty, as in the paper
_LONG = 120.0  # seconds that fits of one model per label may take without a warning


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
) -> tuple[Models, HeldOut | None]:
    """Fit the models of all targets.

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
    predictions : GivenPredictions, StackPredictions or None
        The out-of-fold predictions, if requested.
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
        return _fit_ridge(X, targets, weight, settings, progress, out_of_fold)
    return _fit_learners(X, targets, weight, settings, method, progress, out_of_fold)


def _fit_ridge(
    X: Any,
    targets: Sequence[ModelTarget],
    weight: Floats | None,
    settings: LearnerSettings,
    progress: Callable[[int], None] | None,
    out_of_fold: bool,
) -> tuple[Models, HeldOut | None]:
    """Fit the default learner to all targets together, as far as they have the same rows."""
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
            held_out=out_of_fold,
            progress=None if progress is None else _continued(progress, len(fits)),
            **params,
        )
        fits.update(zip(group, group_fits, strict=True))
    found = [fits[t] for t in range(len(targets))]
    models = RidgeModels(found, [target.extra is not None for target in targets])
    proba = [fit.held_out for fit in found if fit.held_out is not None]
    return models, GivenPredictions(proba, models.classes) if out_of_fold else None


def _continued(progress: Callable[[int], None], done: int) -> Callable[[int], None]:
    """Return a callback for further models after some that are done."""
    return lambda count: progress(done + count)


def _same_rows(targets: Sequence[ModelTarget]) -> list[tuple[list[int], Labels]]:
    """Return groups of targets that are known in the same rows, and these rows as a mask."""
    groups: dict[bytes, tuple[list[int], Labels]] = {}
    for t, target in enumerate(targets):
        known = target.values >= 0
        groups.setdefault(np.packbits(known).tobytes(), ([], known))[0].append(t)
    return list(groups.values())


def _fit_stack(
    X: Any,
    targets: Sequence[ModelTarget],
    weight: Floats | None,
    settings: LearnerSettings,
    progress: Callable[[int], None] | None,
) -> tuple[Models, StackPredictions]:
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
    if settings.cv is not None:  # is not used, but must be valid
        target_folds(None, settings.cv, X, rows, n, seed, _OUT_OF_FOLD_FOLDS)
    learner = StackedLearner()
    stacked = learner.fit(
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
    held_out = StackedPredictions(
        on_all_rows(stacked.positive, rows, n),
        [on_all_rows(p, rows, n) for p in stacked.distributions],
    )
    return models, StackPredictions(learner, held_out)


def _fit_learners(
    X: Any,
    targets: Sequence[ModelTarget],
    weight: Floats | None,
    settings: LearnerSettings,
    method: str | None,
    progress: Callable[[int], None] | None,
    out_of_fold: bool,
) -> tuple[Models, HeldOut | None]:
    """Fit clones of the base learner, calibrated by `method` if it is not None.

    One is fitted to each target; but one to all labels, if the learner takes a matrix of labels.
    """
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
        fit_params = take_param_rows(fit_params, rows, n)
    kept_weight = np.ones(len(rows)) if weight is None else weight[rows]
    random = check_random_state(settings.random_state)
    fold_seed = int(random.randint(np.iinfo(np.int32).max))
    seeds: list[int | None] = [None] * len(targets)
    if settings.random_state is not None:
        seeds = [int(seed) for seed in random.randint(np.iinfo(np.int32).max, size=len(targets))]
    make_target_folds = None
    if method or out_of_fold:
        n_splits = _CALIBRATION_FOLDS if method else _OUT_OF_FOLD_FOLDS
        make_target_folds = target_folds(
            settings.calibration, settings.cv, X, rows, n, fold_seed, n_splits
        )
    n_workers = effective_n_jobs(settings.n_jobs)
    shared = _matrix_columns(targets) if fits_label_matrix(estimator) else []
    own = sorted(set(range(len(targets))) - set(shared))
    folds: list[Fold] = []
    jobs: list[Any] = []
    if shared:
        Y = np.column_stack([targets[t].values for t in shared])  # (n, m)
        if make_target_folds is not None:
            folds = make_target_folds.shared(X, Y)
        jobs = [
            delayed(_fit_matrix)(
                estimator, X, Y, (rows_of_fit,), method, seeds[shared[0]], n_workers, **fit_params
            )
            for rows_of_fit in (*folds, None)
        ]
    one_target = flat_learner(estimator)
    own_jobs = (
        delayed(_fit_target)(
            one_target,
            X,
            (targets[t].values,),
            targets[t].extra,
            kept_weight,
            method,
            make_target_folds,
            seeds[t],
            out_of_fold,
            n_workers,
            **fit_params,
        )
        for t in own
    )
    results = run_jobs(itertools.chain(jobs, own_jobs), settings.n_jobs)
    fitted: dict[int, tuple[LearnerModel, Floats]] = {}
    if shared:
        scores = [next(results) for _ in folds]
        model = next(results)
        for column, t in enumerate(shared):
            fitted[t] = _label_model(
                model, column, targets[t].values, kept_weight, folds, scores, method, out_of_fold
            )
        if progress is not None:
            progress(len(fitted))
    n_own_labels = sum(targets[t].is_label for t in own)
    for t, (model, predicted, seconds) in zip(own, results, strict=True):
        fitted[t] = model, predicted
        if targets[t].is_label and model.estimator is not None and n_own_labels > 1:
            _warn_long(estimator, seconds, n_own_labels, n_workers)
            n_own_labels = 0  # once
        if progress is not None:
            progress(len(fitted))
    models = LearnerModels([fitted[t][0] for t in range(len(targets))])
    if not out_of_fold:
        return models, None
    proba = [on_all_rows(fitted[t][1], rows, n) for t in range(len(targets))]
    return models, GivenPredictions(proba, models.classes)


def _matrix_columns(targets: Sequence[ModelTarget]) -> list[int]:
    """Return the targets that one learner of a label matrix is fitted to; none if it is one.

    Labels that are not observed in some row are fitted each to its own rows: rows in which all
    labels are observed may be few.
    """
    columns = [
        t
        for t, target in enumerate(targets)
        if target.is_label and target.values.min() == 0 and target.values.max() == 1
    ]
    return columns if len(columns) > 1 else []


def _fit_matrix(
    estimator: Any,
    X: Any,
    Y: Integers,
    own: tuple[Fold | None],
    method: str | None,
    seed: int | None,
    n_workers: int,
    /,
    **fit_params: Any,
) -> Any:
    """Fit one learner to all labels (n, m): return it, or its scores for the test rows of a fold.

    Parameters of jobs are explained in `_fit_target`.
    """
    (fold,) = own
    model: Any = seed_learner(clone(estimator), seed)
    with limit_openmp(n_workers, _n_values(X)):
        if fold is None:
            return model.fit(X, Y, **fit_params)
        params = take_param_rows(fit_params, fold.train, len(Y))
        model.fit(take_rows(X, fold.train), Y[fold.train], **params)
        return label_scores(model, take_rows(X, fold.test), method is not None)


def _label_model(
    estimator: Any,
    column: int,
    values: Integers,
    weight: Floats,
    folds: Sequence[Fold],
    scores_of_folds: Sequence[Scores],
    method: str | None,
    out_of_fold: bool,
) -> tuple[LearnerModel, Floats]:
    """Return the model of one label, and its out-of-fold predictions as `_fit_target` does."""
    used = [
        label_column(scores, column) if _varies(values[fold.train]) else None
        for fold, scores in zip(folds, scores_of_folds, strict=True)
    ]
    frequencies = np.bincount(values, weights=weight) / weight.sum()
    calibrator, proba = _calibrate(
        values, frequencies, weight, folds, used, method, len(values) if out_of_fold else 0
    )
    if method is not None and calibrator is None and not hasattr(estimator, "predict_proba"):
        proba[:] = frequencies
        return LearnerModel(None, np.arange(2), frequencies, None), proba
    return LearnerModel(estimator, np.arange(2), frequencies, calibrator, column), proba


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
    n_workers: int,
    /,
    **fit_params: Any,
) -> tuple[LearnerModel, Floats, float]:
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
    seconds : float
        The time it took.
    """
    start = time.perf_counter()
    (values,) = own
    n = len(values)
    known = np.flatnonzero(values >= 0)
    classes, of_known = np.unique(values[known], return_inverse=True)
    code = np.full(n, -1)
    code[known] = of_known
    frequencies = np.bincount(of_known, weights=weight[known]) / weight[known].sum()
    n_predicted = n if out_of_fold else 0
    if len(classes) == 1:
        constant = LearnerModel(None, classes, frequencies, None)
        return constant, np.ones((n_predicted, 1)), time.perf_counter() - start
    folds = [] if make_target_folds is None else _known_folds(make_target_folds(X, values), values)
    if extra is not None:
        X = append_column(X, extra)

    def fit(rows: Integers) -> Any:
        model: Any = seed_learner(clone(estimator), seed)
        if len(rows) == n:
            return model.fit(X, values, **fit_params)
        params = take_param_rows(fit_params, rows, n)
        return model.fit(take_rows(X, rows), values[rows], **params)

    with limit_openmp(n_workers, _n_values(X)):
        scores = [
            class_scores(fit(train), take_rows(X, test), classes, method is not None)
            if _varies(code[train])
            else None
            for train, test in folds
        ]
        calibrator, proba = _calibrate(
            code, frequencies, weight, folds, scores, method, n_predicted
        )
        if method is not None and calibrator is None and not hasattr(estimator, "predict_proba"):
            proba[:] = frequencies
            model = LearnerModel(None, classes, frequencies, None)
        else:
            model = LearnerModel(fit(known), classes, frequencies, calibrator)
    return model, proba, time.perf_counter() - start


def _calibrate(
    code: Integers,
    frequencies: Floats,
    weight: Floats,
    folds: Sequence[Fold],
    scores: Sequence[Scores | None],
    method: str | None,
    n_predicted: int,
) -> tuple[Any, Floats]:
    """Fit a calibrator to the scores of the test rows of folds; return it, and predictions.

    A fold whose training rows are of one class has no model and no scores: it does not calibrate,
    and predicts its only class.
    """
    proba = np.full((n_predicted, len(frequencies)), np.nan)
    used = [(fold.test, s) for fold, s in zip(folds, scores, strict=True) if s is not None]
    if n_predicted:
        for fold, fold_scores in zip(folds, scores, strict=True):
            if fold_scores is None:
                proba[fold.test] = np.arange(len(frequencies)) == code[fold.train[0]]
    if not used:
        return None, proba
    rows = np.concatenate([test for test, _ in used])
    together = Scores(np.concatenate([s.values for _, s in used]), used[0][1].are_probabilities)
    calibrator = None
    if method is not None:
        calibrator = _CALIBRATORS[method]().fit(together, code[rows], weight[rows])
    if n_predicted:
        proba[rows] = scores_to_proba(together, calibrator, frequencies)
    return calibrator, proba


def _varies(code: Integers) -> bool:
    return bool((code != code[0]).any())


def _known_folds(folds: Sequence[Fold], values: Integers) -> list[Fold]:
    """Return folds without the rows whose class is not known."""
    known = [Fold(*(rows[values[rows] >= 0] for rows in fold)) for fold in folds]
    return [fold for fold in known if len(fold.train) and len(fold.test)]


def _n_values(X: Any) -> int:
    """Return the number of values of X."""
    return n_rows(X) * (X.shape[1] if len(X.shape) > 1 else 1)


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
    return [t._replace(values=t.values[rows], extra=extras.get(id(t.extra))) for t in targets]


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


def _warn_long(estimator: Any, seconds: float, n_labels: int, n_workers: int) -> None:
    """Warn if models of single labels, of which one took some seconds, will take long."""
    expected = seconds * n_labels / min(n_workers, n_labels)
    if expected > _LONG:
        warnings.warn(
            f"estimator {type(estimator).__name__} is fitted to each of {n_labels} labels, which "
            f"takes about {expected / 60.0:.0f} minutes: estimator='auto', or a learner that "
            "takes a matrix of labels, is fitted to all labels at once, and fgfm.FDeciderCV makes "
            "F-optimal decisions from the probabilities of any multi-label model",
            UserWarning,
            stacklevel=6,  # the caller of fit
        )


def _calibration_method(settings: LearnerSettings) -> str | None:
    """Return "sigmoid", "isotonic", or None for no calibration."""
    calibration = settings.calibration
    if calibration is None:
        return None
    if isinstance(calibration, str):
        if calibration == "auto":
            estimator = settings.estimator
            named = is_ridge(estimator) or is_auto(estimator)
            calibrate = not named and needs_calibration(estimator)
            return "sigmoid" if calibrate else None
        if calibration in _CALIBRATORS:
            return calibration
    elif is_splitter(calibration):
        return "sigmoid"
    raise ValueError(
        f"calibration is {calibration!r}: it must be 'auto', 'sigmoid', 'isotonic', None, or a "
        "scikit-learn splitter for the folds"
    )
