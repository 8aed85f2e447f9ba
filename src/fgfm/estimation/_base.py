"""Base class of the five estimators of P for one label factor."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from fgfm._utils.names import check_same_index
from fgfm._utils.rows import n_rows
from fgfm._utils.validation import check_same_rows, label_sets, row_weights
from fgfm.estimation._factor_models import fit_factor_models
from fgfm.estimation._fitting import LearnerSettings
from fgfm.estimation._learner import check_learner, check_not_frozen, validate_features
from fgfm.estimation._strategy import Strategy
from fgfm.estimation._types import FactorEstimate

__all__ = ["FactorEstimator"]


class FactorEstimator(BaseEstimator):  # type: ignore[misc]
    """Estimate P and d of one label factor by the strategy of a subclass.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        The base learner; `fgfm.ridge.RidgeLogistic` by default.
    calibration : {"auto", "sigmoid", "isotonic"}, splitter or None, default="auto"
        Calibration of the base learner, as in `fgfm.FGFMClassifier`.
    cv : int, splitter or iterable, optional
        Folds for choosing the penalty of the default learner (3) and for calibration (5).
    n_jobs : int, optional
        Number of jobs that fit models, as in joblib.
    random_state : int, RandomState instance or None, default=None
        Seeds the folds, and base learners without a seed.
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        calibration: Any = "auto",
        cv: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.calibration = calibration
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _strategy(self) -> Strategy:
        """Return a new strategy."""
        raise NotImplementedError

    def fit(self, X: Any, Y: Any, sample_weight: Any = None) -> FactorEstimator:
        """Fit the models of the factor.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.
        Y : array-like, sparse matrix or data frame of shape (n, m)
            Labels of the factor, 0 or 1.
        sample_weight : array-like of shape (n,), optional
            Sample weights. Rows of weight 0 are removed.

        Returns
        -------
        FactorEstimator
            The fitted estimator.
        """
        check_learner(self.estimator)
        check_same_index(X=X, Y=Y, sample_weight=sample_weight)
        X = validate_features(self, X, self.estimator, reset=True)
        labels = label_sets(Y, "Y", allow_flat=True)
        labels = labels.toarray() if hasattr(labels, "toarray") else labels  # (n, m)
        n = check_same_rows([n_rows(X), len(labels)], ["X", "Y"])
        check_not_frozen(self.estimator, labels.shape[1])
        weight = None if sample_weight is None else row_weights(sample_weight, n, "X")
        settings = LearnerSettings(
            self.estimator, self.calibration, self.cv, self.n_jobs, self.random_state
        )
        self._factor_models = fit_factor_models(
            X,
            labels.astype(np.bool_),
            [np.arange(labels.shape[1])],
            [self._strategy()],
            weight,
            settings,
        )
        return self

    def estimate(self, X: Any) -> FactorEstimate:
        """Estimate P and d for rows of X.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        FactorEstimate
            P of shape (n, m, S) and d of shape (n, S + 1).
        """
        X = self._validate_fitted(X)
        return self._factor_models.estimate(X)[0]

    @property
    def cardinalities_(self) -> npt.NDArray[np.int64]:
        """The numbers of labels that occur in training."""
        cardinalities: npt.NDArray[np.int64] = self._fitted_strategy.cardinalities
        return cardinalities

    @property
    def _fitted_strategy(self) -> Any:
        return self._factor_models.strategies[0]

    def _validate_fitted(self, X: Any) -> Any:
        """Return validated features; raise NotFittedError if `fit` has not been called."""
        check_is_fitted(self, "_factor_models")
        return validate_features(self, X, self.estimator, reset=False)
