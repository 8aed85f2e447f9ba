"""Estimates of P for label factors, by models of the number of labels and of each label.

The models are ridge regressions that are fitted together, or clones of any learner.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter

from fgfm._utils.rows import frame_library, n_rows, take_param_rows, take_rows
from fgfm.cardinality import make_coherent, of_conditionals
from fgfm.ridge import RidgeFit, RidgeLogistic, fit_ridge_logistic

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Labels = npt.NDArray[np.bool_]

METHODS = ("two-step", "direct")
_COLUMN = "number of labels"  # the column that the method "two-step" appends


class FactorEstimate(NamedTuple):
    """P and d of one label factor, for some rows."""

    P: Floats  # (n, m, S): P[r, i, s - 1] = p(y_i = 1, |y| = s)
    d: Floats  # (n, S + 1): d[r, s] = p(|y| = s)


def check_learner(learner: Any) -> None:
    """Raise TypeError unless a base learner is a classifier with probabilities."""
    if isinstance(learner, type) or not (
        hasattr(learner, "fit") and hasattr(learner, "predict_proba")
    ):
        raise TypeError(
            f"estimator is {learner!r}: it must be a scikit-learn classifier (an instance) with "
            "the methods fit and predict_proba"
        )


class Target(NamedTuple):
    """What one model is fitted to."""

    values: Integers  # (n,) class of each row
    extra: Floats | None = None  # (n,) a further feature; targets may share the array


class FactorModels:
    """Models of label factors, which may overlap.

    Parameters
    ----------
    method, coherent : object
        As in `fgfm.FGFMClassifier`.

    Attributes
    ----------
    sizes : list of int
        The number of labels of each factor.
    cardinalities : list of ndarray
        The numbers of labels that occur in training, in increasing order, of each factor.
    models : RidgeModels or ClonedModels
        The models of all factors, one after the other.
    """

    def __init__(self, method: str = "two-step", coherent: bool = True) -> None:
        self.method = method
        self.coherent = coherent

    def fit(
        self,
        learner: Any,
        X: Any,
        Y: Labels,
        factors: Sequence[Any],
        *,
        kept: Any = slice(None),
        params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> FactorModels:
        """Fit the models.

        Parameters
        ----------
        learner : scikit-learn classifier
            The base learner.
        X, Y : features and ndarray of shape (n, m)
            Training rows.
        factors : sequence of sequences of int
            The labels of each factor.
        kept : slice or ndarray, default=slice(None)
            All rows, or the numbers of those with weight.
        params : dict, optional
            Arguments for the fit of the learner.
        n_jobs, random_state : object
            As in `fgfm.FGFMClassifier`.

        Returns
        -------
        FactorModels
            The fitted models.
        """
        targets: list[Target] = []
        self.sizes, self.cardinalities = [len(factor) for factor in factors], []
        for factor in factors:
            labels = Y[:, factor].T.astype(np.int64)
            s = labels.sum(axis=0)
            self.cardinalities.append(np.unique(s[kept]))
            if len(factor) == 1:
                targets.append(Target(labels[0]))
            elif self.method == "direct":
                targets += [Target(y * s) for y in labels]
            else:
                extra = s.astype(np.float64)  # one object, whose computations are shared
                targets += [Target(s), *(Target(y, extra) for y in labels)]
        fit = _fit_ridge if type(learner) is RidgeLogistic else _fit_clones
        self.models = fit(learner, X, targets, kept, dict(params or {}), n_jobs, random_state)
        return self

    def estimate(self, X: Any) -> list[FactorEstimate]:
        """Return P and d of each factor."""
        rows, first = self.models.rows(X), 0
        estimates = []
        for m, cardinalities in zip(self.sizes, self.cardinalities, strict=True):
            if m == 1:
                p = self.models.positive(rows, slice(first, first + 1))  # (n, 1)
                estimates.append(FactorEstimate(p[:, :, None], np.column_stack([1.0 - p, p])))
            elif self.method == "direct":
                estimates.append(self._direct(rows, first, m, cardinalities))
            else:
                estimates.append(self._two_step(rows, first, m, cardinalities))
                first += 1
            first += m
        return estimates

    def _two_step(self, rows: Any, first: int, m: int, cardinalities: Integers) -> FactorEstimate:
        """Estimate p_is as d_s q_is, with q_is = p(y_i = 1 | s, x)."""
        proba = self.models.proba(rows, first)  # (n, K) of the numbers of labels that occur
        S = max(1, int(cardinalities[-1]))
        d = np.zeros((len(proba), S + 1))
        d[:, cardinalities] = proba
        q = np.zeros((len(proba), m, S))
        for s in cardinalities[cardinalities > 0].tolist():
            q[:, :, s - 1] = self.models.positive(rows, slice(first + 1, first + 1 + m), float(s))
        # of_conditionals tilts q, so that sum_i q_is = s.
        return FactorEstimate(of_conditionals(q, d) if self.coherent else q * d[:, None, 1:], d)

    def _direct(self, rows: Any, first: int, m: int, cardinalities: Integers) -> FactorEstimate:
        """Estimate p_is by one model for each label, of the classes 0 and s."""
        S = max(1, int(cardinalities[-1]))
        columns = []
        for t in range(first, first + m):
            proba, classes = self.models.proba(rows, t), self.models.classes[t]
            column = np.zeros((len(proba), S))
            column[:, classes[classes > 0] - 1] = proba[:, classes > 0]
            columns.append(column)
        P = np.stack(columns, axis=1)
        if self.coherent:
            P = make_coherent(P)
        d = np.empty((len(P), S + 1))
        d[:, 1:] = P.sum(axis=1) / np.arange(1, S + 1)  # a set of s labels is counted s times
        total = d[:, 1:].sum(axis=1)
        d[:, 1:] /= np.maximum(1.0, total)[:, None]  # an incoherent P may imply more than 1
        d[:, 0] = np.maximum(0.0, 1.0 - total)
        return FactorEstimate(P, d)


class RidgeModels:
    """Ridge logistic regressions with their weights in one matrix.

    One product with X gives the logits of all targets. A target of K > 2 classes has K logits, any
    other target has one, which is infinite for K = 1.

    Parameters
    ----------
    fits : list of RidgeFit
        The fitted models.
    p : int
        Number of features, without the further one.
    """

    def __init__(self, fits: Sequence[RidgeFit], p: int) -> None:
        self.classes = [fit.classes for fit in fits]
        self.penalties = np.array([fit.penalty for fit in fits])
        self.first_logit = np.cumsum([0] + [len(fit.coef) for fit in fits])  # (T + 1,)
        self.coef = np.concatenate([fit.coef[:, :p] for fit in fits])  # (logits, p)
        # (logits,), 0 for a target without further feature
        self.coef_extra = np.concatenate([fit.coef[:, p:].sum(axis=1) for fit in fits])
        self.intercept = np.concatenate(
            [
                fit.intercept
                if len(fit.classes) > 1
                else np.array([np.inf if fit.classes[0] else -np.inf])
                for fit in fits
            ]
        )

    def rows(self, X: Any) -> Floats:
        """Return what the other methods need of rows of X: the logits without further feature."""
        return np.asarray(X @ self.coef.T + self.intercept)

    def proba(self, rows: Floats, target: int) -> Floats:
        """Return the probabilities (n, K) of the classes of a target without further feature."""
        logits = rows[:, self.first_logit[target] : self.first_logit[target + 1]]
        K = len(self.classes[target])
        if K == 1:
            return np.ones((len(rows), 1))
        return np.asarray(expit(logits * np.array([-1.0, 1.0])) if K == 2 else softmax(logits, 1))

    def positive(self, rows: Floats, targets: slice, extra: float | None = None) -> Floats:
        """Return the probabilities (n, T) of class 1 of targets with classes in {0, 1}."""
        columns = slice(self.first_logit[targets.start], self.first_logit[targets.stop])
        logits = rows[:, columns]
        if extra is not None:
            logits = logits + extra * self.coef_extra[columns]
        return np.asarray(expit(logits))


def _fit_ridge(
    learner: RidgeLogistic,
    X: Any,
    targets: Sequence[Target],
    kept: Any,
    params: dict[str, Any],
    n_jobs: int | None,
    random_state: Any,
) -> RidgeModels:
    """Fit ridge logistic regressions to all targets at once."""
    weight = params.get("sample_weight")
    if not isinstance(kept, slice) and weight is None:  # rows have weights, not for the learner
        weight = np.bincount(kept, minlength=len(targets[0].values)).astype(np.float64)
    own = learner.get_params(deep=False)
    if own["random_state"] is None:
        own["random_state"] = random_state
    values, extra = zip(*targets, strict=True)
    fits = fit_ridge_logistic(
        X, values, extra=list(extra), sample_weight=weight, n_jobs=n_jobs, **own
    )
    return RidgeModels(fits, X.shape[1])


class ClonedModels:
    """Clones of a learner, one for each target that varies.

    Parameters
    ----------
    estimators : list
        The fitted clones; None for a target with one class.
    classes : list of ndarray of shape (K,)
        The classes of each target.
    """

    def __init__(self, estimators: list[Any], classes: list[Integers]) -> None:
        self.estimators = estimators
        self.classes = classes

    def rows(self, X: Any) -> Any:
        """Return what the other methods need of rows of X: the rows themselves."""
        return X

    def proba(self, rows: Any, target: int) -> Floats:
        """Return the probabilities (n, K) of the classes of a target."""
        shape = (n_rows(rows), len(self.classes[target]))
        estimator = self.estimators[target]
        if estimator is None:
            return np.ones(shape)
        proba = np.asarray(estimator.predict_proba(rows), dtype=np.float64)
        if proba.shape != shape or not np.isfinite(proba).all():
            kind = "" if proba.shape != shape else " that are not all finite"
            raise ValueError(
                f"estimator {type(estimator).__name__} returned probabilities of shape "
                f"{proba.shape}{kind}: there must be a finite number for each of {shape[0]} rows "
                f"and {shape[1]} classes"
            )
        # Sums differ from 1 by the rounding of logarithms; other differences are errors later.
        total = proba.sum(axis=1, keepdims=True)
        return np.asarray(proba / np.where(np.abs(total - 1.0) < 1e-6, total, 1.0))

    def positive(self, rows: Any, targets: slice, extra: float | None = None) -> Floats:
        """Return the probabilities (n, T) of class 1 of targets with classes in {0, 1}."""
        X = rows if extra is None else _append_column(rows, extra)
        p = [
            self.proba(X, t)[:, -1] * self.classes[t][-1]
            for t in range(targets.start, targets.stop)
        ]
        return np.stack(p, axis=1)


def _fit_clones(
    learner: Any,
    X: Any,
    targets: Sequence[Target],
    kept: Any,
    params: dict[str, Any],
    n_jobs: int | None,
    random_state: Any,
) -> ClonedModels:
    """Fit a clone of a learner to each target that varies; `params` are arguments of its fit."""
    if not isinstance(kept, slice):
        params = take_param_rows(params, kept, n_rows(X))
        X = take_rows(X, kept)
        targets = [Target(y[kept], s if s is None else s[kept]) for y, s in targets]
    name = type(learner).__name__
    classes = [np.unique(target.values) for target in targets]
    if "sample_weight" in params and not has_fit_parameter(learner, "sample_weight"):
        raise ValueError(
            f"sample_weight is given, but the fit of estimator {name} does not take it: leave it "
            "out, or choose a learner that takes it (in a pipeline: by scikit-learn's metadata "
            "routing)"
        )
    tags = get_tags(learner).classifier_tags if hasattr(learner, "__sklearn_tags__") else None
    if tags is not None and not tags.multi_class and any(len(c) > 2 for c in classes):
        raise ValueError(
            f"estimator is {name}, whose tags say that it takes no target of more than two "
            "classes, and the number of labels is one: choose factors='independent', or another "
            "learner"
        )
    if any(target.extra is not None for target in targets):
        _warn_dropped_column(learner)
    seeds: list[int | None] = [None] * len(targets)
    if random_state is not None:
        random = check_random_state(random_state)
        seeds = [int(seed) for seed in random.randint(np.iinfo(np.int32).max, size=len(targets))]
    estimators = Parallel(n_jobs=n_jobs)(
        delayed(_fit_clone)(learner, X, target, seed, params)
        for target, seed, c in zip(targets, seeds, classes, strict=True)
        if len(c) > 1
    )
    fitted = iter(estimators)
    return ClonedModels([next(fitted) if len(c) > 1 else None for c in classes], classes)


def _fit_clone(learner: Any, X: Any, target: Target, seed: int | None, params: Any) -> Any:
    """Fit a clone, in which every ``random_state`` that is None becomes a seed."""
    model = clone(learner)
    if seed is not None:
        unset = [
            name
            for name, value in model.get_params(deep=True).items()
            if value is None and (name == "random_state" or name.endswith("__random_state"))
        ]
        model.set_params(**dict.fromkeys(unset, seed))
    if target.extra is not None:
        X = _append_column(X, target.extra)
    return model.fit(X, target.values, **params)


def _warn_dropped_column(learner: Any) -> None:
    """Warn if a column appended to X would not reach the learner."""
    first = learner.steps[0][1] if hasattr(learner, "steps") else None
    if isinstance(first, ColumnTransformer) and first.remainder == "drop":
        warnings.warn(
            "estimator begins with a ColumnTransformer that drops other columns, and with them "
            "the number of labels, which 'two-step' appends to X: set remainder='passthrough' "
            "there, or method='direct'",
            UserWarning,
            stacklevel=6,  # the caller of fit
        )


def _append_column(X: Any, values: float | npt.NDArray[np.float64]) -> Any:
    """Return X with a last column appended; in a data frame it gets an unused name."""
    n = n_rows(X)
    column = np.broadcast_to(np.asarray(values, dtype=np.float64), (n,))
    if sparse.issparse(X):
        return sparse.hstack([X, sparse.csr_array(column[:, None])], format="csr")
    library = frame_library(X)
    if library is None:
        return np.column_stack([X, column])
    name = _free_name(list(X.columns))
    if library == "polars":
        import polars as pl

        return X.with_columns(pl.Series(name, column))
    appended = X.copy(deep=False)
    appended[name] = column
    return appended


def _free_name(taken: list[Any]) -> Any:
    """Return an unused column name: a string, unless no other name is one."""
    if not any(isinstance(name, str) for name in taken):
        return 1 + max((n for n in taken if isinstance(n, (int, np.integer))), default=-1)
    name = _COLUMN
    while name in taken:
        name += "_"
    return name
