"""The method "tilted": marginals tilted to each cardinality."""

from __future__ import annotations

import numpy as np

from fgfm.cardinality import of_marginals
from fgfm.estimation._base import FactorEstimator
from fgfm.estimation._learner import AUTO
from fgfm.estimation._models import ModelTarget, Predictions
from fgfm.estimation._strategy import Integers, Labels, Strategy
from fgfm.estimation._types import FactorEstimate

__all__ = ["Tilted", "TiltedStrategy"]


class TiltedStrategy(Strategy):
    """One target for the cardinality |y| and one for each label."""

    name = "tilted"
    default_learner = AUTO

    def _targets(self, Y: Labels, s: Integers, kept: Labels) -> list[ModelTarget]:
        labels = [ModelTarget(y.astype(np.int64), is_label=True) for y in Y.T]
        return labels if len(labels) == 1 else [ModelTarget(s), *labels]

    def _combine(self, predictions: Predictions) -> FactorEstimate:
        d = self._distribution(predictions.predict_proba(self.first_target))
        p = predictions.positive_proba(self._label_targets())  # (n, m)
        # The logits of all labels are shifted by one c_s for each s, so that sum_i p_is = s d_s.
        return FactorEstimate(of_marginals(p, d), d)


class Tilted(FactorEstimator):  # numpydoc ignore=PR02
    r"""Estimate P by marginals that are tilted to each cardinality.

    .. math:: p_{is} = d_s \, \operatorname{sigmoid}(\operatorname{logit} p_i + c_s), \qquad
              \sum_i p_{is} = s \, d_s,

    with :math:`p_i = p(y_i = 1 \mid x)` from one binary model per label and d from one multinomial
    model of the number of labels (`fgfm.cardinality.of_marginals`). P is coherent.

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
    """

    def _strategy(self) -> TiltedStrategy:
        return TiltedStrategy()
