"""The method "two-step" of the paper: the cardinality, then each label given the cardinality."""

from __future__ import annotations

from typing import Any

import numpy as np

from fgfm.cardinality import of_conditionals
from fgfm.estimation._base import FactorEstimator
from fgfm.estimation._models import ModelTarget, Predictions
from fgfm.estimation._strategy import Integers, Labels, Strategy
from fgfm.estimation._types import FactorEstimate

__all__ = ["TwoStep", "TwoStepStrategy"]


class TwoStepStrategy(Strategy):
    """One target for the cardinality |y|, and one for each label with |y| as extra feature."""

    name = "two-step"

    def _targets(self, Y: Labels, s: Integers, kept: Labels) -> list[ModelTarget]:
        labels = [np.where(s < 0, -1, y.astype(np.int64)) for y in Y.T]
        if len(labels) == 1:
            return [ModelTarget(labels[0], is_label=True)]
        extra = s.astype(np.float64)  # one object, shared by the targets of all labels
        return [ModelTarget(s), *(ModelTarget(y, extra) for y in labels)]

    def _combine(self, predictions: Predictions) -> FactorEstimate:
        d = self._distribution(predictions.predict_proba(self.first_target))
        q = np.zeros((len(d), self.n_labels, self.max_cardinality))  # (n, m, S): q_i(s)
        for s in self.cardinalities[self.cardinalities > 0]:
            q[:, :, s - 1] = predictions.positive_proba(self._label_targets(), extra=float(s))
        # p_is = d_s q_i(s): Gasse and Aussem (2016), section 5. Tilting makes sum_i q_i(s) = s.
        P = of_conditionals(q, d) if self.coherent else q * d[:, None, 1:]
        return FactorEstimate(P, d)


class TwoStep(FactorEstimator):
    r"""Estimate P in two steps, as in Gasse and Aussem (2016, section 5).

    .. math:: p_{is} = d_s \, q_i(s), \qquad d_s = p(|y| = s \mid x), \qquad
              q_i(s) = p(y_i = 1 \mid |y| = s, x),

    with d from one multinomial model of the number of labels, and :math:`q_i` from one binary
    model per label with s as an additional numeric feature. A factor with one label takes one
    binary model.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        The base learner; `fgfm.ridge.RidgeLogistic` by default.
    coherent : bool, default=True
        Tilt :math:`q(s)` so that it sums to s (`fgfm.cardinality.of_conditionals`); False gives
        the numbers of the paper.
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

    References
    ----------
    Gasse, M. and Aussem, A. (2016). F-measure Maximization in Multi-Label Classification with
    Conditionally Independent Label Subsets. ECML PKDD 2016. doi:10.1007/978-3-319-46128-1_39

    Examples
    --------
    >>> import numpy as np
    >>> from fgfm.estimation import TwoStep
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (500, 3))
    >>> Y = (rng.random((500, 2)) < 0.2 + 0.6 * X[:, :2]).astype(int)
    >>> P, d = TwoStep(random_state=0).fit(X, Y).estimate(X[:1])
    >>> P.shape, d.shape
    ((1, 2, 2), (1, 3))
    >>> bool(np.allclose(P.sum(axis=1), d[:, 1:] * [1, 2]))
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        coherent: bool = True,
        calibration: Any = "auto",
        cv: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            estimator, calibration=calibration, cv=cv, n_jobs=n_jobs, random_state=random_state
        )
        self.coherent = coherent

    def _strategy(self) -> TwoStepStrategy:
        return TwoStepStrategy(self.coherent)
