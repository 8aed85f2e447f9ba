"""The estimate for which any multi-label model will do: marginals, and the number of labels."""

from __future__ import annotations

import numpy as np

from fgfm.cardinality import from_marginals
from fgfm.estimation._models import Answers, Target
from fgfm.estimation.base import FactorEstimate, FactorEstimator, Labels, singleton_estimate

__all__ = ["Tilted"]


class Tilted(FactorEstimator):  # numpydoc ignore=PR02
    r"""Estimate P by marginals that are tilted to each number of labels.

    .. math:: p_{is} = d_s \, \operatorname{sigmoid}(\operatorname{logit} p_i + c_s), \qquad
              \sum_i p_{is} = s \, d_s,

    with :math:`p_i = p(y_i = 1 \mid x)` from one binary model per label and d from one multinomial
    model of the number of labels (`fgfm.cardinality.from_marginals`). P is coherent.

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
    cardinalities_ : ndarray
        The numbers of labels that occur in training; others get probability 0.
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
            The number of labels, and each label; one label alone is one target.
        """
        s = self._remember(Y, seen)
        columns = [Target(y.astype(np.int64)) for y in Y.T]
        return columns if len(columns) == 1 else [Target(s), *columns]

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
        if self.n_labels_ == 1:
            return singleton_estimate(answers, first)
        d = self._spread(answers.proba(first), self.cardinalities_)
        p = answers.positives(slice(first + 1, first + 1 + self.n_labels_))  # (n, m)
        return FactorEstimate(from_marginals(p, d), d)
