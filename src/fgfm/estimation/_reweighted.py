"""The method "reweighted": independent labels reweighted to a learned cardinality distribution."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fgfm._utils.log_linear_pool import LogLinearPool
from fgfm.cardinality import of_marginals
from fgfm.estimation._base import FactorEstimator
from fgfm.estimation._exponent import fit_exponent, powered
from fgfm.estimation._models import HeldOut, ModelTarget, Predictions
from fgfm.estimation._strategy import Integers, Labels
from fgfm.estimation._tilted import TiltedStrategy
from fgfm.estimation._types import FactorEstimate

__all__ = ["Reweighted", "ReweightedStrategy"]

Floats = npt.NDArray[np.float64]

_MARGIN = 1e-12  # least distance from 0 and 1 of the marginal of a label that is not constant


class ReweightedStrategy(TiltedStrategy):
    """The targets of "tilted", with d pooled from two distributions of the cardinality.

    Attributes
    ----------
    margin : ndarray of shape (m,)
        Marginals are clipped to [margin, 1 - margin]; it is 0 for constant labels.
    pool : LogLinearPool
        Pools pi, the cardinality distribution of independent labels, and mu, that of the
        multinomial model; where there is more than one label.
    exponent : float
        The exponent t of the odds given the number of labels, at most 1. It is fitted where
        held-out predictions are as certain as those of the models of all rows.
    """

    name = "reweighted"
    exponent = 1.0  # unless it is fitted

    def _targets(self, Y: Labels, s: Integers, kept: Labels) -> list[ModelTarget]:
        Y_kept = Y[kept]
        varies = (Y_kept == 1).any(axis=0) & (Y_kept == 0).any(axis=0)
        self.margin = np.where(varies, _MARGIN, 0.0)
        return super()._targets(Y, s, kept)

    def needs_out_of_fold(self) -> bool:
        """Return True if the factor has more than one label."""
        return self.n_labels > 1

    def fit_out_of_fold(self, predictions: HeldOut, Y: Labels, weight: Floats | None) -> None:
        """Fit the weights and shifts of the pool, to the rows in which all labels are observed."""
        w = np.where((Y >= 0).all(axis=1), 1.0 if weight is None else weight, 0.0)
        s = Y.sum(axis=1, dtype=np.int64)  # (n,)
        # Rows of weight 0 may have a cardinality that is not in the list; they do not count.
        code = np.minimum(np.searchsorted(self.cardinalities, s), len(self.cardinalities) - 1)
        p = self._marginals(predictions)
        pi = self._independent_cardinalities(p)
        mu = predictions.predict_proba(self.first_target)
        # d_s ~ exp(b_s) pi_s^a_1 mu_s^a_2, fitted to the cardinality of each row
        self.pool = LogLinearPool().fit([pi, mu], code, w)
        if predictions.left_one_out:
            kept = np.flatnonzero(np.isfinite(p).all(axis=1) & (w > 0.0))
            self.exponent = fit_exponent(p[kept], Y[kept].astype(np.float64), w[kept], most=1.0)

    def _combine(self, predictions: Predictions) -> FactorEstimate:
        p = self._marginals(predictions)
        pi = self._independent_cardinalities(p)
        mu = predictions.predict_proba(self.first_target)
        d = self._distribution(self.pool.predict_proba([pi, mu]))
        # p_is = d_s p(y_i = 1 | |y| = s) for independent labels of odds o^t; the derivation is in
        # docs/design.md, "Estimating P for one factor".
        return FactorEstimate(of_marginals(powered(p, self.exponent), d, method="condition"), d)

    def _marginals(self, predictions: Predictions) -> Floats:
        """Return the marginals (n, m) of the labels, clipped.

        Where d gives mass to a cardinality larger than the number of labels with p_i > 0, the
        excess would be shared among all labels with p_i = 0, those that never occur in training
        included. The margin keeps it with the labels that occur.
        """
        p = predictions.positive_proba(self._label_targets())
        return np.asarray(np.clip(p, self.margin, 1.0 - self.margin))

    def _independent_cardinalities(self, p: Floats) -> Floats:
        """Return pi (n, K): probabilities of `cardinalities` for independent labels."""
        from fgfm._kernels import poisson_binomial

        pi = np.empty((len(p), self.max_cardinality + 1))
        poisson_binomial(np.ascontiguousarray(p), pi)
        return pi[:, self.cardinalities]


class Reweighted(FactorEstimator):  # numpydoc ignore=PR02
    r"""Estimate P by independent labels, reweighted to a learned cardinality distribution.

    .. math:: p(y) \propto \prod_i p_i^{y_i} (1 - p_i)^{1 - y_i} \; g(|y|),

    with :math:`p_i = p(y_i = 1 \mid x)` from one binary model per label, and g such that the
    number of labels has the distribution d. Among all distributions of y with this d it is the
    nearest to independent labels in relative entropy. The distribution d is learned:

    .. math:: d_s \propto \exp(b_s) \; \pi_s^{a_1} \; \mu_s^{a_2},

    where :math:`\pi` is the distribution of the number of independent labels, :math:`\mu` that of
    a multinomial model of the number of labels, and a and b are fitted by maximum likelihood to
    out-of-fold predictions for the training rows. The fit starts from, and is penalised towards,
    a = (1, 0) and b = 0, which is the model of independent labels.

    Where labels exclude each other, the binary models already account for it in part, and
    conditioning on the number of labels counts it twice: the expected F-measure is then some
    hundredths too high. Decisions did not suffer from it in the benchmark.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        The base learner; `fgfm.ridge.RidgeLogistic` by default.
    calibration : {"auto", "sigmoid", "isotonic"}, splitter or None, default="auto"
        Calibration of the base learner, as in `fgfm.FGFMClassifier`.
    cv : int, splitter or iterable, optional
        Folds for choosing the penalty of the default learner (3) and for calibration (5). d is
        learned from their test rows; a learner that is not calibrated is fitted in three
        additional folds for this purpose.
    n_jobs : int, optional
        Number of jobs that fit models, as in joblib.
    random_state : int, RandomState instance or None, default=None
        Seeds the folds, and base learners without a seed.

    Attributes
    ----------
    cardinalities_ : ndarray
        The numbers of labels that occur in training; others get probability 0.
    pool_ : LogLinearPool
        Its ``weights_`` are a, its ``shifts_`` b. Only if there is more than one label.

    See Also
    --------
    fgfm.cardinality.of_marginals : P from marginals and d, by ``method="condition"``.

    Examples
    --------
    >>> import numpy as np
    >>> from fgfm.estimation import Reweighted
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (500, 3))
    >>> first = rng.random(500) < 0.2 + 0.6 * X[:, 0]
    >>> Y = np.stack([first, ~first], axis=1)  # one label, always
    >>> P, d = Reweighted(random_state=0).fit(X, Y).estimate(X[:1])
    >>> d
    array([[0., 1.]])
    """

    def _strategy(self) -> ReweightedStrategy:
        return ReweightedStrategy()

    @property
    def pool_(self) -> LogLinearPool:
        """The fitted pool of cardinality distributions."""
        pool: LogLinearPool = self._fitted_strategy.pool
        return pool
