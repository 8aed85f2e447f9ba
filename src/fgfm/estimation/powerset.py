"""The estimate that knows the whole distribution: one class for each label set."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from fgfm.cardinality import from_joint
from fgfm.estimation._models import Answers, Target
from fgfm.estimation.base import FactorEstimate, FactorEstimator, Labels, validate_features

__all__ = ["Powerset"]


class Powerset(FactorEstimator):  # numpydoc ignore=PR02
    r"""Estimate P by one multinomial model over the label sets that occur in training.

    .. math:: p_{is} = \sum_{l : |y^l| = s} p(y = y^l \mid x) \, y^l_i,

    for the label sets :math:`y^l` seen in the factor. P is coherent, and the most probable set is
    known too (`mode`). It suits small factors: there are as many classes as label sets.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        The base learner; `RidgeLogistic` by default.
    calibration : {"auto", "sigmoid", "isotonic"}, splitter or None, default="auto"
        See `fgfm.FGFMClassifier`.
    cv : int, splitter or iterable, optional
        Folds for the penalty of the default learner (3) and for calibration (5).
    n_jobs : int, optional
        How many processes fit models.
    random_state : int, RandomState instance or None, default=None
        Seeds the folds, and base learners that have no seed of their own.

    Attributes
    ----------
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

    def targets(self, Y: Labels, seen: Labels) -> list[Target]:
        """Say what is to be modelled.

        Parameters
        ----------
        Y : ndarray of shape (n, m)
            Labels of the factor.
        seen : ndarray of shape (n,)
            Rows of positive weight.

        Returns
        -------
        list of Target
            The number of the label set.
        """
        self._remember(Y, seen)
        # A row of weight 0 is not fitted: any number does for its set.
        self.labelsets_, of_row = np.unique(Y[seen], axis=0, return_inverse=True)
        code = np.zeros(len(Y), dtype=np.int64)
        code[seen] = of_row.ravel()
        return [Target(code)]

    def row_size(self) -> int:
        """Tell how much work space a row takes in `combine`.

        Returns
        -------
        int
            How many numbers, about.
        """
        return 4 * (self.n_labels_ * self.largest_ + len(self.labelsets_))

    def combine(self, answers: Answers, first: int) -> FactorEstimate:
        """Make P and d of the answers of the models.

        Parameters
        ----------
        answers : Answers
            Probabilities for a block of rows.
        first : int
            Number of this factor's first target.

        Returns
        -------
        FactorEstimate
            P and d.
        """
        proba = answers.proba(first)  # (n, L)
        d = np.zeros((len(proba), self.largest_ + 1))
        for label_set, p in zip(self.labelsets_, proba.T, strict=True):
            d[:, int(label_set.sum())] += p
        return FactorEstimate(from_joint(self.labelsets_, proba), d)

    def mode_of(self, answers: Answers, first: int) -> npt.NDArray[np.int8]:
        """Give the most probable label set for a block of rows.

        Parameters
        ----------
        answers : Answers
            Probabilities for a block of rows.
        first : int
            Number of this factor's first target.

        Returns
        -------
        ndarray of shape (n, m)
            Label sets; of equally probable ones the first in `labelsets_`.
        """
        best = answers.proba(first).argmax(axis=1)
        return np.asarray(self.labelsets_[best], dtype=np.int8)

    def mode(self, X: Any) -> npt.NDArray[np.int8]:
        """Give the most probable label set.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        ndarray of shape (n, m)
            Label sets; of equally probable ones the first in `labelsets_`.
        """
        check_is_fitted(self, "models_")
        X = validate_features(self, X, self.estimator, reset=False)
        return self.mode_of(self.models_.answers(X), 0)
