"""The estimate of the paper: a model of the number of labels, then one per label given it."""

from __future__ import annotations

from typing import Any

import numpy as np

from fgfm.cardinality import from_conditionals
from fgfm.estimation._models import Answers, Target
from fgfm.estimation.base import FactorEstimate, FactorEstimator, Labels, singleton_estimate

__all__ = ["TwoStep"]


class TwoStep(FactorEstimator):
    r"""Estimate P in two steps, as Gasse and Aussem (2016, section 5) do.

    .. math:: p_{is} = d_s \, q_i(s), \qquad d_s = p(|y| = s \mid x), \qquad
              q_i(s) = p(y_i = 1 \mid |y| = s, x),

    with d from one multinomial model of the number of labels, and :math:`q_i` from one binary
    model per label that has s as one more numeric feature. A factor of one label takes one binary
    model.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        The base learner; `RidgeLogistic` by default.
    coherent : bool, default=True
        Tilt :math:`q(s)` so that it sums to s (`fgfm.cardinality.from_conditionals`); False gives
        the paper's own numbers.
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
            The number of labels, and each label beside it; one label alone is one target.
        """
        s = self._remember(Y, seen)
        columns = [Target(y.astype(np.int64)) for y in Y.T]
        if len(columns) == 1:
            return columns
        beside = s.astype(np.float64)  # one object: the models of all labels share it
        return [Target(s), *(Target(target.values, beside) for target in columns)]

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
        m = self.n_labels_
        if m == 1:
            return singleton_estimate(answers, first)
        d = self._spread(answers.proba(first), self.cardinalities_)
        q = np.zeros((len(d), m, self.largest_))  # (n, m, S)
        for s in self.cardinalities_[self.cardinalities_ > 0]:
            labels = slice(first + 1, first + 1 + m)
            q[:, :, s - 1] = answers.positives(labels, extra=float(s))
        P = from_conditionals(q, d) if self.coherent else q * d[:, None, 1:]
        return FactorEstimate(P, d)
