"""The internal protocol of the five methods: targets to fit, predictions to combine.

A `Strategy` belongs to one label factor. `make_targets` returns the targets that the base learner
is fitted to; `fit_out_of_fold` learns what remains from out-of-fold predictions; `combine` turns
predictions for new rows into P and d. The models of all targets of all factors are fitted
together, so a strategy stores the index of its first target.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fgfm.estimation._learner import RIDGE
from fgfm.estimation._models import HeldOut, ModelTarget, Predictions
from fgfm.estimation._types import FactorEstimate

__all__ = ["Strategy"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Labels = npt.NDArray[np.bool_]


class Strategy:
    """Base class of the methods.

    A factor with one label is one binary target in every method but "powerset".

    Parameters
    ----------
    coherent : bool, default=True
        Project P onto coherent ones, in methods whose P need not be coherent.

    Attributes
    ----------
    first_target : int
        Index of the first target of the factor.
    n_labels : int
        Number m of labels of the factor.
    cardinalities : ndarray
        The numbers of labels that occur in training, in increasing order.
    max_cardinality : int
        S: the largest of them, but at least 1.
    """

    name: ClassVar[str]
    default_learner: ClassVar[str] = RIDGE

    def __init__(self, coherent: bool = True) -> None:
        self.coherent = coherent

    def make_targets(self, Y: Labels, kept: Labels, first_target: int = 0) -> list[ModelTarget]:
        """Return the targets to fit.

        Parameters
        ----------
        Y : ndarray of shape (n, m)
            Labels: booleans, or 0, 1, and -1 where a label was not observed.
        kept : ndarray of shape (n,)
            The rows of positive weight.
        first_target : int, default=0
            Index of the first target of the factor.

        Returns
        -------
        list of ModelTarget
            The targets. The number of labels is known in the rows with all labels only.
        """
        complete = (Y >= 0).all(axis=1)
        s: Integers = np.where(complete, Y.sum(axis=1, dtype=np.int64), -1)  # (n,)
        self.first_target = first_target
        self.n_labels: int = Y.shape[1]
        self.cardinalities = np.unique(s[kept & complete])
        if not len(self.cardinalities):
            raise ValueError(
                f"y has no row in which all {self.n_labels} labels of a factor are observed: the "
                "number of labels is learned from such rows; factors='independent' needs none"
            )
        self.max_cardinality = max(1, int(self.cardinalities[-1]))
        return self._targets(Y, s, kept)

    def _targets(self, Y: Labels, s: Integers, kept: Labels) -> list[ModelTarget]:
        """Return the targets, given also the number of labels (n,), -1 where it is unknown."""
        raise NotImplementedError

    def needs_out_of_fold(self) -> bool:
        """Return True if `fit_out_of_fold` must be called; valid after `make_targets`."""
        return False

    def fit_out_of_fold(self, predictions: HeldOut, Y: Labels, weight: Floats | None) -> None:
        """Learn from predictions for the training rows by models that were not fitted to them."""
        raise NotImplementedError

    def combine(self, predictions: Predictions) -> FactorEstimate:
        """Combine the predicted probabilities into P and d."""
        if self.n_labels > 1:
            return self._combine(predictions)
        p = predictions.positive_proba(slice(self.first_target, self.first_target + 1))  # (n, 1)
        return FactorEstimate(p[:, :, None], np.column_stack([1.0 - p, p]))

    def _combine(self, predictions: Predictions) -> FactorEstimate:
        raise NotImplementedError

    def floats_per_row(self) -> int:
        """Return the approximate number of floats that `combine` allocates per row."""
        return 4 * self.n_labels * self.max_cardinality

    def _label_targets(self) -> slice:
        """Return the targets of the single labels, where the first target is the cardinality."""
        return slice(self.first_target + 1, self.first_target + 1 + self.n_labels)

    def _distribution(self, proba: Floats) -> Floats:
        """Return d (n, S + 1) from the probabilities (n, K) of the cardinalities that occur."""
        d = np.zeros((len(proba), self.max_cardinality + 1))
        d[:, self.cardinalities] = proba
        return d
