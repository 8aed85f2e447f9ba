"""The estimate that held-out rows teach how many labels to expect."""

from __future__ import annotations

import numpy as np

from fgfm.cardinality import from_marginals
from fgfm.estimation._models import Answers, HeldOut, Target
from fgfm.estimation._stack import LogStack
from fgfm.estimation.base import FactorEstimate, Floats, Labels, singleton_estimate
from fgfm.estimation.tilted import Tilted

__all__ = ["Reweighted"]

_SURE = 1e-12  # nearer to 0 or 1 comes no label that training shows both with and without


class Reweighted(Tilted):  # numpydoc ignore=PR02
    r"""Estimate P by independent labels whose number is put right.

    .. math:: p(y) \propto \prod_i p_i^{y_i} (1 - p_i)^{1 - y_i} \; g(|y|),

    with :math:`p_i = p(y_i = 1 \mid x)` from one binary model per label, and g such that the
    number of labels has the distribution d. Among all distributions of y with this d it is the
    nearest to independent labels in relative entropy. d itself is learned:

    .. math:: d_s \propto \exp(b_s) \; \pi_s^{a_1} \; \mu_s^{a_2},

    where :math:`\pi` is the distribution of the number of independent labels, :math:`\mu` that of
    a multinomial model of the number of labels, and a and b are fitted by maximum likelihood to
    what the models say of training rows that they did not see. With a = (1, 0), b = 0, where the
    fit starts from, it is the model of independent labels.

    Where labels exclude each other, the models of single labels already know it in part, and to
    condition on their number counts it twice: the expected F-measure is then some hundredths too
    high. Decisions did not suffer from it in the benchmark.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        The base learner; `RidgeLogistic` by default.
    calibration : {"auto", "sigmoid", "isotonic"}, splitter or None, default="auto"
        See `fgfm.FGFMClassifier`.
    cv : int, splitter or iterable, optional
        Folds for the penalty of the default learner (3) and for calibration (5). Their test rows
        are the ones that d is learned from; a learner that is not calibrated is fitted in three
        folds for this.
    n_jobs : int, optional
        How many processes fit models.
    random_state : int, RandomState instance or None, default=None
        Seeds the folds, and base learners that have no seed of their own.

    Attributes
    ----------
    cardinalities_ : ndarray
        The numbers of labels that occur in training; others get probability 0.
    stack_ : LogStack
        Its ``weights_`` are a, its ``shifts_`` b; where there is more than one label.

    See Also
    --------
    fgfm.cardinality.from_marginals : P from marginals and d, by ``method="condition"``.

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
        kept = Y[seen]
        self._slack = np.where(kept.any(axis=0) & ~kept.all(axis=0), _SURE, 0.0)  # (m,)
        return super().targets(Y, seen)

    def uses_held_out(self) -> bool:
        """Tell whether there is a number of labels to learn.

        Returns
        -------
        bool
            Whether the factor has more than one label.
        """
        return self.n_labels_ > 1

    def learn(self, held_out: HeldOut, first: int, Y: Labels, weight: Floats | None) -> None:
        """Learn how many labels to expect.

        Parameters
        ----------
        held_out : HeldOut
            Probabilities of the training rows.
        first : int
            Number of this factor's first target.
        Y : ndarray of shape (n, m)
            Labels of the factor.
        weight : ndarray of shape (n,) or None
            Weights of the rows.
        """
        s = Y.sum(axis=1, dtype=np.int64)  # (n,)
        code = np.minimum(
            np.searchsorted(self.cardinalities_, s), len(self.cardinalities_) - 1
        )  # rows of weight 0 may have other numbers, and do not count
        p = self._positives(held_out, first)
        self.stack_ = LogStack().fit([self._counts(p), held_out.proba(first)], code, weight)

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
        p = self._positives(answers, first)
        stacked = self.stack_.proba([self._counts(p), answers.proba(first)])
        d = self._spread(stacked, self.cardinalities_)
        return FactorEstimate(from_marginals(p, d, method="condition"), d)

    def _positives(self, answers: Answers, first: int) -> Floats:
        """Give the marginals (n, m).

        A number of labels that takes more labels than have a chance would be shared out among all
        others, those that never occur included. Hence the slack.
        """
        p = answers.positives(slice(first + 1, first + 1 + self.n_labels_))
        return np.asarray(np.clip(p, self._slack, 1.0 - self._slack))

    def _counts(self, p: Floats) -> Floats:
        """Give how probable the numbers that occur are for independent labels, (n, K)."""
        from fgfm._kernels import poisson_binomial

        d = np.empty((len(p), self.largest_ + 1))
        poisson_binomial(np.ascontiguousarray(p), d)
        return d[:, self.cardinalities_]
