"""Fit the models of many targets with one base learner, the targets of all factors together."""

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
from fgfm.estimation._models import (
    EstimatorModels,
    Fit,
    FittedModel,
    HeldOut,
    RidgeModels,
    Target,
    class_scores,
    proba_of,
)
from fgfm.estimation.calibration import (
    IsotonicCalibrator,
    Scores,
    SigmoidCalibrator,
    needs_calibration,
)
from fgfm.ridge import RidgeLogistic, fit_ridge_logistic

__all__ = ["Settings", "fit_models", "is_ridge"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_CALIBRATORS: dict[str, Any] = {"sigmoid": SigmoidCalibrator, "isotonic": IsotonicCalibrator}
_FOLDS = 5  # in which a calibrator is fitted
_HELD_OUT = 3  # in which rows are held out where no calibrator asks for it
_CV = 3  # in which the default learner chooses its penalty, as in the paper


class Settings(NamedTuple):
    """How models are fitted.

    Attributes
    ----------
    estimator : scikit-learn classifier or None
        The base learner; None is `RidgeLogistic`.
    calibration : str, splitter or None
        See `fgfm.FGFMClassifier`.
    cv : int, splitter, iterable or None
        The folds of the default learner's penalty and of calibration.
    n_jobs : int or None
        How many processes fit models.
    random_state : int, RandomState instance or None
        Seeds folds, and base learners that have no seed of their own.
    fit_params : dict or None
        What the base learner's ``fit`` gets beside the data; None is the weights of the rows,
        where there are any.
    """

    estimator: Any = None
    calibration: Any = "auto"
    cv: Any = None
    n_jobs: int | None = None
    random_state: Any = None
    fit_params: dict[str, Any] | None = None


def is_ridge(estimator: Any) -> bool:
    """Tell whether a base learner is the default one."""
    return estimator is None or type(estimator) is RidgeLogistic


def fit_models(
    X: Any,
    targets: Sequence[Target],
    weight: Floats | None,
    settings: Settings,
    progress: Callable[[int], None] | None = None,
    *,
    held_out: bool = False,
) -> Fit:
    """Fit one model for each target.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n, p)
        Features; numbers, where the base learner is the default one.
    targets : sequence of Target
        What to fit.
    weight : ndarray of shape (n,) or None
        Weights of the rows. Weight 0 removes a row.
    settings : Settings
        How to fit.
    progress : callable, optional
        Called with the number of models that are done, now and then.
    held_out : bool, default=False
        Give the probabilities of held-out rows too: from the folds in which the default learner
        chooses its penalty, and others are calibrated; a learner that has neither is fitted in
        three folds more.

    Returns
    -------
    Fit
        The models, in the order of the targets, and what they say of held-out rows.
    """
    method = _method(settings)
    estimator = settings.estimator
    if is_ridge(estimator) and method is None:
        return _fit_ridge(X, targets, weight, settings, progress, held_out)
    if estimator is None:
        estimator = RidgeLogistic()
    if not hasattr(estimator, "predict_proba") and method is None:
        raise TypeError(
            f"estimator is {estimator!r}, which has no predict_proba, and calibration is "
            "None: its scores need a calibration to become probabilities"
        )
    if any(target.extra is not None for target in targets):
        _warn_of_dropped_column(estimator)
    fit_params = settings.fit_params
    if fit_params is None:
        fit_params = {}
        if weight is not None:
            if not has_fit_parameter(estimator, "sample_weight"):
                raise ValueError(
                    f"sample_weight is given, and estimator {type(estimator).__name__} takes none "
                    "in fit: leave it out, or choose a learner that takes it (in a pipeline: by "
                    "scikit-learn's metadata routing)"
                )
            fit_params = {"sample_weight": weight}
    n = n_rows(X)
    rows = np.arange(n) if weight is None else np.flatnonzero(weight > 0.0)
    if len(rows) < n:
        X = take_rows(X, rows)
        targets = _on_rows(targets, rows)
        fit_params = {
            name: take_rows(value, rows) if _per_row(value, n) else value
            for name, value in fit_params.items()
        }
    kept_weight = np.ones(len(rows)) if weight is None else weight[rows]
    random = check_random_state(settings.random_state)
    fold_seed = int(random.randint(np.iinfo(np.int32).max))
    seeds: list[int | None] = [None] * len(targets)
    if settings.random_state is not None:
        seeds = [int(seed) for seed in random.randint(np.iinfo(np.int32).max, size=len(targets))]
    folds_of = None
    if method or held_out:
        few = _FOLDS if method else _HELD_OUT
        folds_of = _folds_for_calibration(settings, X, rows, n, fold_seed, few)
    jobs = (
        delayed(_fit_one)(
            estimator,
            X,
            (target.values,),
            target.extra,
            kept_weight,
            method,
            folds_of,
            seed,
            held_out,
            **fit_params,
        )
        for target, seed in zip(targets, seeds, strict=True)
    )
    models: list[FittedModel] = []
    proba: list[Floats] = []
    for model, judged in run_jobs(jobs, settings.n_jobs):
        models.append(model)
        if held_out:
            proba.append(on_all_rows(judged, rows, n))
        if progress is not None:
            progress(len(models))
    fitted = EstimatorModels(models)
    return Fit(fitted, HeldOut(proba, fitted.classes) if held_out else None)


def _warn_of_dropped_column(estimator: Any) -> None:
    """Warn where a column that is appended to X would not reach the learner."""
    first = estimator.steps[0][1] if hasattr(estimator, "steps") else None
    if isinstance(first, ColumnTransformer) and first.remainder == "drop":
        warnings.warn(
            "estimator begins with a ColumnTransformer that drops other columns, and with them "
            "the number of labels, which 'two-step' appends to X: set remainder='passthrough' "
            "there, or method='tilted'",
            UserWarning,
            stacklevel=5,
        )


def _on_rows(targets: Sequence[Target], rows: Integers) -> list[Target]:
    """Give targets on some rows; columns that were one object stay one."""
    shorter = {id(t.extra): t.extra[rows] for t in targets if t.extra is not None}
    return [Target(t.values[rows], shorter.get(id(t.extra))) for t in targets]


def _per_row(value: Any, n: int) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, (str, dict)) and n_rows(value) == n


def _fit_ridge(
    X: Any,
    targets: Sequence[Target],
    weight: Floats | None,
    settings: Settings,
    progress: Callable[[int], None] | None,
    held_out: bool,
) -> Fit:
    estimator = settings.estimator
    if estimator is None:
        estimator = RidgeLogistic(cv=_CV if settings.cv is None else settings.cv)
    params = estimator.get_params(deep=False)
    if params["random_state"] is None:
        params["random_state"] = settings.random_state
    if settings.fit_params is not None and weight is not None:
        # the routing says whether it gets the weights; rows of weight 0 are left out anyway
        given = settings.fit_params.get("sample_weight")
        weight = np.where(weight > 0.0, 1.0 if given is None else given, 0.0)
    fits = fit_ridge_logistic(
        X,
        [target.values for target in targets],
        extra=[target.extra for target in targets],
        sample_weight=weight,
        n_jobs=settings.n_jobs,
        held_out=held_out,
        progress=progress,
        **params,
    )
    models = RidgeModels(fits, [target.extra is not None for target in targets])
    proba = [fit.held_out for fit in fits if fit.held_out is not None]
    return Fit(models, HeldOut(proba, models.classes) if held_out else None)


def _method(settings: Settings) -> str | None:
    """Give the kind of calibration that the settings ask for, or None."""
    calibration = settings.calibration
    if calibration is None:
        return None
    if isinstance(calibration, str):
        if calibration == "auto":
            estimator = settings.estimator
            off = estimator is not None and needs_calibration(estimator)
            return "sigmoid" if off else None
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


class _StratifiedFolds:
    """Folds in which each class is spread as evenly as it can be, however rare it is."""

    def __init__(self, n_splits: int, seed: int) -> None:
        self.n_splits = n_splits
        self.seed = seed

    def __call__(self, X: Any, y: Integers) -> list[Fold]:
        n = len(y)
        shuffled = np.random.RandomState(self.seed).permutation(n)
        of_row = np.empty(n, dtype=np.int64)
        # rows of a class stand together, and neighbours go to different folds
        of_row[shuffled[np.argsort(y[shuffled], kind="stable")]] = np.arange(n) % self.n_splits
        return [
            Fold(np.flatnonzero(of_row != f), np.flatnonzero(of_row == f))
            for f in range(min(self.n_splits, n))
        ]


def _folds_for_calibration(
    settings: Settings, X: Any, rows: Integers, n: int, seed: int, n_splits: int
) -> Any:
    """Give the function from X and a target to the folds in which it is calibrated."""
    cv = settings.calibration if _is_splitter(settings.calibration) else settings.cv
    if cv is None or (isinstance(cv, (int, np.integer)) and not isinstance(cv, bool) and cv > 1):
        return _StratifiedFolds(n_splits if cv is None else int(cv), seed)
    if _is_splitter(cv):
        return _SplitterFolds(cv)
    return _GivenFolds(make_folds(cv, seed, X, rows, n)(rows))


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


def _fit_one(
    estimator: Any,
    X: Any,
    own: tuple[Integers],
    extra: Floats | None,
    weight: Floats,
    method: str | None,
    folds_of: Any,
    seed: int | None,
    held_out: bool,
    /,
    **fit_params: Any,
) -> tuple[FittedModel, Floats]:
    """Fit one target: the model on all rows, and its calibrator on those held out.

    The second answer is the probabilities of rows held out, where these are wanted, else empty.

    What jobs share is an argument by itself, which a cluster ships once. The classes of the rows
    are the job's own: in a tuple they travel with it, and again if its worker is lost.
    """
    (values,) = own
    classes, code = np.unique(values, return_inverse=True)
    frequencies = np.bincount(code, weights=weight) / weight.sum()
    n = len(code)
    judged = np.full((n if held_out else 0, len(classes)), np.nan)
    if len(classes) == 1:
        judged[:] = 1.0
        return FittedModel(None, classes, frequencies, None), judged
    folds = [] if folds_of is None else folds_of(X, values)
    if extra is not None:
        X = append_column(X, extra)

    def fitted(rows: Integers | None) -> Any:
        model: Any = _seeded(clone(estimator), seed)
        if rows is None:
            return model.fit(X, values, **fit_params)
        params = {k: take_rows(v, rows) if _per_row(v, n) else v for k, v in fit_params.items()}
        return model.fit(take_rows(X, rows), values[rows], **params)

    if folds_of is None:
        return FittedModel(fitted(None), classes, frequencies, None), judged
    scored: list[Scores] = []
    tested: list[Integers] = []
    for train, test in folds:
        if len(np.unique(code[train])) < 2:
            # nothing to learn from, and nothing to say of the model of all rows
            if held_out:  # the one class is all that such a model would know
                judged[test] = np.arange(len(classes)) == code[train[0]]
            continue
        by_decision = method is not None
        scored.append(class_scores(fitted(train), take_rows(X, test), classes, by_decision))
        tested.append(test)
    if not scored and not hasattr(estimator, "predict_proba"):
        if held_out:
            judged[:] = frequencies
        return FittedModel(None, classes, frequencies, None), judged
    calibrator = None
    if scored:
        rows = np.concatenate(tested)
        scores = Scores(np.concatenate([s.values for s in scored]), scored[0].are_probabilities)
        if method is not None:
            calibrator = _CALIBRATORS[method]().fit(scores, code[rows], weight[rows])
        if held_out:
            judged[rows] = proba_of(scores, calibrator, frequencies)
    return FittedModel(fitted(None), classes, frequencies, calibrator), judged


def _seeded(estimator: Any, seed: int | None) -> Any:
    """Give a learner a seed wherever it has none."""
    if seed is None:
        return estimator
    unset = [
        name
        for name, value in sorted(estimator.get_params(deep=True).items())
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    ]
    return estimator.set_params(**dict.fromkeys(unset, seed)) if unset else estimator
