"""The method "powerset": one multinomial model over the label sets that occur in training."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm.cardinality import of_joint
from fgfm.estimation._base import FactorEstimator
from fgfm.estimation._models import ModelTarget, Predictions
from fgfm.estimation._strategy import Integers, Labels, Strategy
from fgfm.estimation._types import FactorEstimate

__all__ = ["Powerset", "PowersetStrategy"]


class PowersetStrategy(Strategy):
    """One target: the index of the label set."""

    name = "powerset"

    def _targets(self, Y: Labels, s: Integers, kept: Labels) -> list[ModelTarget]:
        used = kept & (s >= 0)
        self.labelsets, of_row = np.unique(Y[used] == 1, axis=0, return_inverse=True)  # (L, m)
        code = np.full(len(Y), -1, dtype=np.int64)
        code[used] = of_row.ravel()
        return [ModelTarget(code)]

    def combine(self, predictions: Predictions) -> FactorEstimate:
        """Combine the predicted probabilities into P and d."""
        proba = predictions.predict_proba(self.first_target)  # (n, L)
        d = np.zeros((len(proba), self.max_cardinality + 1))
        for label_set, p in zip(self.labelsets, proba.T, strict=True):
            d[:, int(label_set.sum())] += p
        return FactorEstimate(of_joint(self.labelsets, proba), d)

    def mode(self, predictions: Predictions) -> npt.NDArray[np.int8]:
        """Return the most probable label set (n, m); the first one among equals."""
        best = predictions.predict_proba(self.first_target).argmax(axis=1)
        return np.asarray(self.labelsets[best], dtype=np.int8)

    def floats_per_row(self) -> int:
        """Return the approximate number of floats that `combine` allocates per row."""
        return 4 * (self.n_labels * self.max_cardinality + len(self.labelsets))


class Powerset(FactorEstimator):  # numpydoc ignore=PR02
    r"""Estimate P by one multinomial model over the label sets that occur in training.

    .. math:: p_{is} = \sum_{l : |y^l| = s} p(y = y^l \mid x) \, y^l_i,

    for the label sets :math:`y^l` seen in the factor. P is coherent, and the most probable label
    set is available too (`mode`). The method suits small factors: there are as many classes as
    label sets.

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

    Attributes
    ----------
    cardinalities_ : ndarray
        The numbers of labels that occur in training; others get probability 0.
    labelsets_ : ndarray of shape (L, m)
        The label sets that occur in training; others get probability 0.

    Examples
    --------
    >>> import numpy as np
    >>> from fgfm.estimation import Powerset
    >>> X = np.array([[0], [0], [0], [1], [1], [1]])
    >>> Y = np.array([[1, 0], [1, 0], [0, 1], [0, 1], [0, 1], [1, 0]])
    >>> model = Powerset(random_state=0).fit(X, Y)
    >>> model.labelsets_.astype(int)
    array([[0, 1],
           [1, 0]])
    >>> model.mode([[0], [1]])
    array([[1, 0],
           [0, 1]], dtype=int8)
    """

    def _strategy(self) -> PowersetStrategy:
        return PowersetStrategy()

    @property
    def labelsets_(self) -> npt.NDArray[np.bool_]:
        """The label sets that occur in training."""
        labelsets: npt.NDArray[np.bool_] = self._fitted_strategy.labelsets
        return labelsets

    def mode(self, X: Any) -> npt.NDArray[np.int8]:
        """Return the most probable label set of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        ndarray of shape (n, m)
            Label sets; of equally probable ones the first in `labelsets_`.
        """
        X = self._validate_fitted(X)
        return self._factor_models.mode(X)[0]
