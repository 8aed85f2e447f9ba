"""The models of many targets on the same features: fitted together, asked together.

An estimate of P takes one model per label and one of the number of labels, for each label factor.
A `Target` says what is modelled; `fit_models` fits all targets of all factors with one base
learner; `Models.answers` gives the probabilities for a block of rows. `HeldOut` gives those of the
training rows, from models that did not see them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.utils import check_random_state
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import has_fit_parameter

from fgfm._parallel import Shared, run_jobs
from fgfm.estimation._design import Fold, make_folds
from fgfm.estimation._rows import append_column, n_rows, on_all_rows, take_rows
from fgfm.estimation.calibration import (
    IsotonicCalibrator,
    Scores,
    SigmoidCalibrator,
    needs_calibration,
)
from fgfm.estimation.ridge import RidgeFit, RidgeLogistic, fit_ridge_logistic

__all__ = [
    "Answers",
    "EstimatorModels",
    "FittedModel",
    "HeldOut",
    "Models",
    "RidgeModels",
    "Settings",
    "Target",
    "fit_models",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_CALIBRATORS: dict[str, Any] = {"sigmoid": SigmoidCalibrator, "isotonic": IsotonicCalibrator}
_FOLDS = 5  # in which a calibrator is fitted
_HELD_OUT = 3  # in which rows are held out where no calibrator asks for it
_CV = 3  # in which the default learner chooses its penalty, as in the paper


class Target(NamedTuple):
    """What one model is fitted to."""

    values: Integers  # (n,) the class of each row
    extra: Floats | None = None  # (n,) a column beside the features; targets may share it


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
        return _proba_of(scores, self.calibrator, self.frequencies)


def _proba_of(scores: Scores, calibrator: Any, frequencies: Floats) -> Floats:
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
            "there, or parameters='tilted'",
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
        _progress=progress,
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
            judged[rows] = _proba_of(scores, calibrator, frequencies)
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
