"""Fit the models of all label factors, with one base learner or by objects of the user."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from fgfm._utils.progress import FitProgress
from fgfm._utils.rows import n_rows
from fgfm.cardinality import distribution
from fgfm.estimation._calibration import CALIBRATIONS, needs_calibration
from fgfm.estimation._estimates import FactorEstimate
from fgfm.estimation._learner import LearnerSettings, is_auto, is_ridge, is_splitter
from fgfm.estimation._learners import LearnerModels, fit_learners
from fgfm.estimation._methods import Method
from fgfm.estimation._models import (
    Predictions,
    RidgeModels,
    StackModels,
    Target,
    fit_ridge,
    fit_stack,
)

__all__ = [
    "CustomModels",
    "FactorModels",
    "fit_custom_models",
    "fit_factor_models",
    "fit_models",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Labels = npt.NDArray[np.bool_]
Models = RidgeModels | StackModels | LearnerModels


class FactorModels:
    """Models of the targets of all factors, combined by the method of each factor.

    Parameters
    ----------
    methods : list of Method
        One per factor, all of the same class.
    models : Models
        The fitted models of the targets of all factors.
    """

    def __init__(self, methods: list[Method], models: Models) -> None:
        self.methods = methods
        self.models = models

    @property
    def thread_safe(self) -> bool:
        """Whether several threads may predict at the same time."""
        return self.models.thread_safe

    @property
    def floats_per_row(self) -> int:
        """The approximate number of floats that `estimate` allocates per row."""
        return sum(method.floats_per_row for method in self.methods)

    def marginals(self, X: Any) -> Floats | None:
        """Return the marginals (n, m) in the order of the factors, if each is a binary model."""
        if not all(method.is_binary for method in self.methods):
            return None
        return self.models.predictions(X).positive(range(len(self.methods)))

    def estimate(self, X: Any, what: str = "estimate") -> list[Any]:
        """Return P and d of each factor; or what another method of `methods` returns."""
        return self.combine(self.models.predictions(X), what)

    def combine(self, predictions: Predictions, what: str = "estimate") -> list[Any]:
        """Return the same from predictions of the targets."""
        return [getattr(method, what)(predictions) for method in self.methods]


def fit_factor_models(
    X: Any,
    Y: Labels,
    factors: Sequence[Integers],
    methods: list[Method],
    weight: Floats | None,
    settings: LearnerSettings,
    progress: FitProgress,
    *,
    held_out: bool,
) -> tuple[FactorModels, Predictions | None]:
    """Fit the models of all factors together, with a new method for each.

    Y (n, m) has booleans, or 0, 1, and -1 where a label was not observed. Returns the models, and
    held-out predictions if they are requested, or needed by a method.
    """
    kept = np.ones(len(Y), dtype=np.bool_) if weight is None else weight > 0.0
    targets: list[Target] = []
    for method, factor in zip(methods, factors, strict=True):
        targets += method.make_targets(Y[:, factor], kept, len(targets))
    progress.begin_models(len(targets))
    held_out = held_out or any(method.needs_held_out for method in methods)
    models, predictions = fit_models(
        X, targets, weight, settings, progress.models_done, held_out=held_out
    )
    for method, factor in zip(methods, factors, strict=True):
        if method.needs_held_out and predictions is not None:
            method.learn(predictions, Y[:, factor], weight)
    return FactorModels(methods, models), predictions


class CustomModels:
    """Fitted objects of the user, one per factor.

    Parameters
    ----------
    objects : list of object
        The fitted objects.
    n_labels : list of int
        Number of labels of each factor.
    """

    thread_safe = False

    def __init__(self, objects: list[Any], n_labels: list[int]) -> None:
        self.objects = objects
        self.n_labels = n_labels

    @property
    def floats_per_row(self) -> int:
        """The approximate number of floats that `estimate` allocates per row."""
        return 4 * sum(self.n_labels) ** 2

    def marginals(self, X: Any) -> None:
        """Return None: the marginals follow from P."""

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
    progress: FitProgress,
) -> CustomModels:
    """Fit a clone of an object with ``fit(X, Y_factor)`` and ``estimate(X)`` to each factor."""
    if (missing := np.count_nonzero(Y < 0)) > 0:
        raise ValueError(
            f"y has {missing} missing labels and method is an object: only the methods that have "
            "names accept missing labels"
        )
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    progress.begin_models(len(factors))
    objects = [clone(model) for _ in factors]
    for f, (one, factor) in enumerate(zip(objects, factors, strict=True)):
        one.fit(X, Y[:, factor].astype(np.int8), **weights)
        progress.models_done(f + 1)
    return CustomModels(objects, [len(factor) for factor in factors])


def fit_models(
    X: Any,
    targets: Sequence[Target],
    weight: Floats | None,
    settings: LearnerSettings,
    progress: Callable[[int], None] = lambda count: None,
    *,
    held_out: bool = False,
) -> tuple[Models, Predictions | None]:
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
        return fit_stack(X, targets, weight, settings, progress)
    if is_ridge(settings.estimator) and method is None:
        return fit_ridge(X, targets, weight, settings, progress, held_out)
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
