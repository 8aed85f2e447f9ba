"""Fitted models of all label factors, by a named method or by objects of the user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.parallel import delayed

from fgfm._utils.parallel import run_jobs
from fgfm._utils.progress import FitProgress
from fgfm._utils.rows import n_rows
from fgfm.cardinality import distribution, of_marginals
from fgfm.estimation._fitting import LearnerSettings, fit_models
from fgfm.estimation._models import Models, ModelTarget
from fgfm.estimation._strategy import Strategy
from fgfm.estimation._types import FactorEstimate, Repair

__all__ = [
    "CustomFactorModels",
    "FactorModels",
    "concatenate_estimates",
    "fit_custom_models",
    "fit_factor_models",
    "replace_by_independent",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Labels = npt.NDArray[np.bool_]


class FactorModels:
    """Models of the targets of all factors, combined by the strategy of each factor.

    Parameters
    ----------
    strategies : list of Strategy
        One per factor, all of the same method.
    models : Models
        The fitted models of the targets of all factors.
    """

    def __init__(self, strategies: Sequence[Any], models: Models) -> None:
        self.strategies = strategies
        self.models = models

    @property
    def method(self) -> str:
        """Name of the method."""
        name: str = self.strategies[0].name
        return name

    @property
    def thread_safe(self) -> bool:
        """Whether several threads may predict at the same time."""
        return self.models.thread_safe

    @property
    def one_model_per_label(self) -> bool:
        """Whether every factor is one label with one binary model."""
        return self.method != "powerset" and all(s.n_labels == 1 for s in self.strategies)

    def floats_per_row(self) -> int:
        """Return the approximate number of floats that `estimate` allocates per row."""
        return sum(strategy.floats_per_row() for strategy in self.strategies)

    def estimate(self, X: Any) -> list[FactorEstimate]:
        """Return P and d of each factor."""
        predictions = self.models.predictions(X)
        return [strategy.combine(predictions) for strategy in self.strategies]

    def marginals(self, X: Any) -> Floats:
        """Return the marginals (n, m) in the order of the factors, if `one_model_per_label`."""
        return self.models.predictions(X).positive_proba(slice(0, len(self.strategies)))

    def mode(self, X: Any) -> list[npt.NDArray[np.int8]]:
        """Return the most probable label sets of each factor, for the method "powerset"."""
        predictions = self.models.predictions(X)
        return [strategy.mode(predictions) for strategy in self.strategies]

    def repair(self, X: Any) -> list[Repair]:
        """Return the incoherence of each factor, for the method "direct"."""
        predictions = self.models.predictions(X)
        return [strategy.repair(predictions) for strategy in self.strategies]


def fit_factor_models(
    X: Any,
    Y: Labels,
    factors: Sequence[Integers],
    strategies: Sequence[Strategy],
    weight: Floats | None,
    settings: LearnerSettings,
    progress: FitProgress | None = None,
) -> FactorModels:
    """Fit the models of all factors together.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n, p)
        Features, validated.
    Y : ndarray of shape (n, m)
        Labels: booleans, or 0, 1, and -1 where a label was not observed.
    factors : sequence of ndarray
        The labels of each factor.
    strategies : sequence of Strategy
        One new strategy per factor.
    weight : ndarray of shape (n,) or None
        Sample weights.
    settings : LearnerSettings
        The base learner and how to fit it.
    progress : FitProgress, optional
        Receives the number of models.

    Returns
    -------
    FactorModels
        The fitted models.
    """
    kept = np.ones(len(Y), dtype=np.bool_) if weight is None else weight > 0.0
    targets: list[ModelTarget] = []
    for strategy, factor in zip(strategies, factors, strict=True):
        targets += strategy.make_targets(Y[:, factor], kept, len(targets))
    if progress is not None:
        progress.begin_models(len(targets))
    models, out_of_fold = fit_models(
        X,
        targets,
        weight,
        settings,
        None if progress is None else progress.models_done,
        out_of_fold=any(strategy.needs_out_of_fold() for strategy in strategies),
    )
    if out_of_fold is not None:
        for strategy, factor in zip(strategies, factors, strict=True):
            if strategy.needs_out_of_fold():
                strategy.fit_out_of_fold(out_of_fold, Y[:, factor], weight)
    return FactorModels(list(strategies), models)


class CustomFactorModels:
    """Fitted objects of the user, one per factor.

    Parameters
    ----------
    objects : list of FactorModel
        The fitted objects.
    n_labels : list of int
        Number of labels of each factor.
    """

    method = None
    thread_safe = False
    one_model_per_label = False

    def __init__(self, objects: Sequence[Any], n_labels: Sequence[int]) -> None:
        self.objects = objects
        self.n_labels = n_labels

    def floats_per_row(self) -> int:
        """Return the approximate number of floats that `estimate` allocates per row."""
        return 4 * sum(self.n_labels) ** 2

    def estimate(self, X: Any) -> list[FactorEstimate]:
        """Return P and d of each factor; d is computed from P where an object returns P alone."""
        estimates = []
        for f, (model, m) in enumerate(zip(self.objects, self.n_labels, strict=True)):
            returned = model.estimate(X)
            P, d = returned if isinstance(returned, tuple) else (returned, None)
            P = np.asarray(P, dtype=np.float64)
            if P.ndim != 3 or P.shape[:2] != (n_rows(X), m):
                raise ValueError(
                    f"method.estimate for factor {f} returned P of shape {P.shape}: it must have "
                    f"shape ({n_rows(X)}, {m}, S)"
                )
            d = distribution(P) if d is None else np.asarray(d, dtype=np.float64)
            estimates.append(FactorEstimate(P, d))
        return estimates


def fit_custom_models(
    model: Any,
    X: Any,
    Y: Labels,
    factors: Sequence[Integers],
    sample_weight: Any,
    n_jobs: int | None,
    random_state: Any,
    progress: FitProgress,
) -> CustomFactorModels:
    """Fit a clone of the object of the user to each factor.

    Parameters
    ----------
    model : FactorModel
        The object of the user.
    X : array, sparse matrix or data frame of shape (n, p)
        Features.
    Y : ndarray of shape (n, m)
        Labels.
    factors : sequence of ndarray
        The labels of each factor.
    sample_weight : array-like of shape (n,) or None
        Sample weights; passed to ``fit`` if not None.
    n_jobs : int or None
        Number of jobs, as in joblib.
    random_state : int, RandomState instance or None
        Seeds objects without a seed. Each gets its own, since a generator cannot be shared by
        processes.
    progress : FitProgress
        Receives the number of objects.

    Returns
    -------
    CustomFactorModels
        The fitted objects.
    """
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    seeds = check_random_state(random_state).randint(np.iinfo(np.int32).max, size=len(factors))
    clones = [clone(model) for _ in factors]
    if random_state is not None:
        for one, seed in zip(clones, seeds, strict=True):
            if getattr(one, "random_state", seed) is None:
                one.random_state = int(seed)
    jobs = (
        delayed(_fit_custom_model)(one, X, Y[:, factor].astype(np.int8), **weights)
        for one, factor in zip(clones, factors, strict=True)
    )
    progress.begin_models(len(factors))
    fitted: list[Any] = []
    for one in run_jobs(jobs, n_jobs):
        fitted.append(one)
        progress.models_done(len(fitted))
    return CustomFactorModels(fitted, [len(factor) for factor in factors])


def _fit_custom_model(model: Any, X: Any, Y: npt.NDArray[np.int8], **weights: Any) -> Any:
    model.fit(X, Y, **weights)
    return model  # from another process, fit changed a copy


def concatenate_estimates(blocks: Sequence[FactorEstimate]) -> FactorEstimate:
    """Concatenate the estimates of one factor for consecutive blocks of rows."""
    S = max(P.shape[2] for P, _ in blocks)  # objects of the user may return different S
    padded = [_pad(block, S) for block in blocks]
    return FactorEstimate(
        np.concatenate([P for P, _ in padded]), np.concatenate([d for _, d in padded])
    )


def replace_by_independent(estimate: FactorEstimate, rows: Labels, p: Floats) -> FactorEstimate:
    """Replace rows, a mask (n,), by independent labels with marginals p (m,); S becomes m."""
    P, d = _pad(estimate, len(p))
    P_independent = of_marginals(p[None])  # (1, m, m)
    P[rows], d[rows] = P_independent, distribution(P_independent)
    return FactorEstimate(P, d)


def _pad(estimate: FactorEstimate, S: int) -> FactorEstimate:
    """Append cardinalities of probability 0, up to S."""
    P, d = estimate
    more = S - P.shape[2]
    if more == 0:
        return estimate
    return FactorEstimate(np.pad(P, [(0, 0), (0, 0), (0, more)]), np.pad(d, [(0, 0), (0, more)]))
