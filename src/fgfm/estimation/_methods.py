r"""The methods that estimate P of one label factor, by the names of ``FGFMClassifier(method=)``.

A method returns the targets that the base learner is fitted to, and combines predictions for new
rows into P and d. The models of all targets of all factors are fitted together, so a method stores
the number of its first target. With m labels of which s are present, in every method
:math:`p_{is} = p(y_i = 1, |y| = s \mid x)` and :math:`d_s = p(|y| = s \mid x)`.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fgfm._utils.log_linear_pool import LogLinearPool
from fgfm.cardinality import make_coherent, of_conditionals, of_joint, of_marginals
from fgfm.estimation._estimates import FactorEstimate
from fgfm.estimation._exponent import fit_exponent, independent_cardinalities, powered
from fgfm.estimation._learner import AUTO, RIDGE
from fgfm.estimation._models import Predictions, Target

__all__ = ["METHODS", "Method"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Labels = npt.NDArray[np.bool_]

_MARGIN = 1e-12  # least distance from 0 and 1 of the marginal of a label that is not constant


class Method:
    """Base class of the methods.

    A factor with one label is one binary target in every method but "powerset".

    Parameters
    ----------
    coherent : bool
        Project P onto coherent ones, in methods whose P need not be coherent.

    Attributes
    ----------
    n_labels : int
        Number m of labels of the factor.
    cardinalities : ndarray
        The numbers of labels that occur in training, in increasing order.
    max_cardinality : int
        S: the largest of them, but at least 1.
    """

    default_learner: ClassVar[str] = RIDGE

    def __init__(self, coherent: bool) -> None:
        self.coherent = coherent

    def make_targets(self, Y: Labels, kept: Labels, first_target: int) -> list[Target]:
        """Return the targets to fit.

        Y (n, m) has booleans, or 0, 1, and -1 where a label was not observed; `kept` (n,) are the
        rows of positive weight. The number of labels is known in rows with all labels only.
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

    def _targets(self, Y: Labels, s: Integers, kept: Labels) -> list[Target]:
        """Return the targets, given also the number of labels (n,), -1 where it is unknown."""
        raise NotImplementedError

    @property
    def is_binary(self) -> bool:
        """Whether the factor is one label with one binary target."""
        return self.n_labels == 1

    @property
    def needs_held_out(self) -> bool:
        """Whether `learn` must be called; valid after `make_targets`."""
        return False

    def learn(self, held_out: Predictions, Y: Labels, weight: Floats | None) -> None:
        """Learn from predictions for the training rows by models that were not fitted to them."""

    def estimate(self, predictions: Predictions) -> FactorEstimate:
        """Combine the predicted probabilities into P and d."""
        if not self.is_binary:
            return self._combine(predictions)
        p = predictions.positive(range(self.first_target, self.first_target + 1))  # (n, 1)
        return FactorEstimate(p[:, :, None], np.column_stack([1.0 - p, p]))

    def _combine(self, predictions: Predictions) -> FactorEstimate:
        raise NotImplementedError

    @property
    def floats_per_row(self) -> int:
        """The approximate number of floats that `estimate` allocates per row."""
        return 4 * self.n_labels * self.max_cardinality

    def _label_targets(self) -> range:
        """Return the targets of the single labels, where the first target is the cardinality."""
        return range(self.first_target + 1, self.first_target + 1 + self.n_labels)

    def _distribution(self, proba: Floats) -> Floats:
        """Return d (n, S + 1) from the probabilities (n, K) of the cardinalities that occur."""
        d = np.zeros((len(proba), self.max_cardinality + 1))
        d[:, self.cardinalities] = proba
        return d


class TwoStep(Method):
    r"""A model of the number of labels, and one per label given that number.

    :math:`p_{is} = d_s \, q_i(s)` with :math:`q_i(s) = p(y_i = 1 \mid |y| = s, x)` from one binary
    model per label with s as an additional feature: Gasse and Aussem (2016), section 5.
    """

    def _targets(self, Y: Labels, s: Integers, kept: Labels) -> list[Target]:
        labels = [np.where(s < 0, -1, y.astype(np.int64)) for y in Y.T]
        if len(labels) == 1:
            return [Target(labels[0], is_label=True)]
        extra = s.astype(np.float64)  # one object, shared by the targets of all labels
        return [Target(s), *(Target(y, extra) for y in labels)]

    def _combine(self, predictions: Predictions) -> FactorEstimate:
        d = self._distribution(predictions.proba(self.first_target))
        q = np.zeros((len(d), self.n_labels, self.max_cardinality))  # (n, m, S): q_i(s)
        for s in self.cardinalities[self.cardinalities > 0]:
            q[:, :, s - 1] = predictions.positive(self._label_targets(), extra=float(s))
        # Tilting makes sum_i q_i(s) = s.
        P = of_conditionals(q, d) if self.coherent else q * d[:, None, 1:]
        return FactorEstimate(P, d)


class Tilted(Method):
    r"""A model of the number of labels and one per label, whose marginals are tilted.

    :math:`p_{is} = d_s \, \operatorname{sigmoid}(\operatorname{logit} p_i + c_s)` with
    :math:`c_s` such that :math:`\sum_i p_{is} = s \, d_s`.
    """

    default_learner = AUTO

    def _targets(self, Y: Labels, s: Integers, kept: Labels) -> list[Target]:
        labels = [Target(y.astype(np.int64), is_label=True) for y in Y.T]
        return labels if len(labels) == 1 else [Target(s), *labels]

    def _combine(self, predictions: Predictions) -> FactorEstimate:
        d = self._distribution(predictions.proba(self.first_target))
        p = predictions.positive(self._label_targets())  # (n, m)
        return FactorEstimate(of_marginals(p, d), d)


class Reweighted(Tilted):
    r"""Independent labels reweighted to a learned distribution of the number of labels.

    .. math:: p(y) \propto \prod_i p_i^{y_i} (1 - p_i)^{1 - y_i} \; g(|y|),

    with g such that the number of labels has the distribution
    :math:`d_s \propto \exp(b_s) \, \pi_s^{a_1} \, \mu_s^{a_2}`, where :math:`\pi` is that of
    independent labels and :math:`\mu` that of a multinomial model. a and b are fitted to held-out
    predictions (docs/design.md, "Estimating P").

    Attributes
    ----------
    margin : ndarray of shape (m,)
        Marginals are clipped to [margin, 1 - margin]; it is 0 for constant labels.
    pool : LogLinearPool
        Pools pi and mu, where there is more than one label.
    exponent : float
        The exponent t of the odds given the number of labels, at most 1. It is fitted where
        held-out predictions are as certain as those of the models of all rows.
    """

    def _targets(self, Y: Labels, s: Integers, kept: Labels) -> list[Target]:
        Y_kept = Y[kept]
        varies = (Y_kept == 1).any(axis=0) & (Y_kept == 0).any(axis=0)
        self.margin = np.where(varies, _MARGIN, 0.0)
        return super()._targets(Y, s, kept)

    @property
    def needs_held_out(self) -> bool:
        """Whether the factor has more than one label."""
        return self.n_labels > 1

    def learn(self, held_out: Predictions, Y: Labels, weight: Floats | None) -> None:
        """Fit the weights and shifts of the pool, to the rows in which all labels are observed."""
        w = np.where((Y >= 0).all(axis=1), 1.0 if weight is None else weight, 0.0)
        s = Y.sum(axis=1, dtype=np.int64)  # (n,)
        # Rows of weight 0 may have a cardinality that is not in the list; they do not count.
        code = np.minimum(np.searchsorted(self.cardinalities, s), len(self.cardinalities) - 1)
        p = self._marginals(held_out)
        self.pool = LogLinearPool().fit(self._distributions(held_out, p), code, w)
        self.exponent = 1.0
        if held_out.left_one_out:
            kept = np.flatnonzero(np.isfinite(p).all(axis=1) & (w > 0.0))
            self.exponent = fit_exponent(p[kept], Y[kept].astype(np.float64), w[kept], most=1.0)

    def _combine(self, predictions: Predictions) -> FactorEstimate:
        p = self._marginals(predictions)
        d = self._distribution(self.pool.predict_proba(self._distributions(predictions, p)))
        # p_is = d_s p(y_i = 1 | |y| = s) for independent labels of odds o^t
        return FactorEstimate(of_marginals(powered(p, self.exponent), d, method="condition"), d)

    def _marginals(self, predictions: Predictions) -> Floats:
        """Return the marginals (n, m) of the labels, clipped.

        Where d gives mass to a cardinality larger than the number of labels with p_i > 0, the
        excess would be shared among all labels with p_i = 0, those that never occur in training
        included. The margin keeps it with the labels that occur.
        """
        p = predictions.positive(self._label_targets())
        return np.asarray(np.clip(p, self.margin, 1.0 - self.margin))

    def _distributions(self, predictions: Predictions, p: Floats) -> list[Floats]:
        """Return pi and mu (n, K) of `cardinalities`."""
        pi = independent_cardinalities(p, self.cardinalities)
        return [pi, predictions.proba(self.first_target)]


class Direct(Method):
    r"""One multinomial model per label (Dembczynski et al., ICML 2013).

    The model of label i has the classes 0 (without the label) and s (with it, among s labels), so
    that :math:`p_{is}` is the probability of class s. The models of different labels need not
    agree on the number of labels: :math:`d_0 = 1 - \sum_s \frac1s \sum_i p_{is}` may be negative,
    and :math:`p_{is}` may exceed :math:`d_s`.
    """

    def _targets(self, Y: Labels, s: Integers, kept: Labels) -> list[Target]:
        # Rows with an unknown number of labels are left out even if they lack the label: with
        # them the label would seem too rare.
        values = [np.where(s < 0, -1, y * s) for y in Y.T]
        self.classes_of_label = [np.unique(v[kept & (s >= 0)]) for v in values]
        return [Target(v, is_label=self.n_labels == 1) for v in values]

    def _combine(self, predictions: Predictions) -> FactorEstimate:
        P = np.zeros((predictions.n_rows, self.n_labels, self.max_cardinality))  # (n, m, S)
        for i, classes in enumerate(self.classes_of_label):
            proba = predictions.proba(self.first_target + i)  # (n, K)
            present = classes > 0
            P[:, i, classes[present] - 1] = proba[:, present]
        if self.coherent:
            P = make_coherent(P)
        d = np.empty((len(P), self.max_cardinality + 1))
        # A coherent P has sum_i p_is = s d_s: a set of s labels is counted s times.
        d[:, 1:] = P.sum(axis=1) / np.arange(1, self.max_cardinality + 1)
        total = d[:, 1:].sum(axis=1)
        d[:, 1:] /= np.maximum(1.0, total)[:, None]  # an incoherent P may imply more than 1
        d[:, 0] = np.maximum(0.0, 1.0 - total)
        return FactorEstimate(P, d)


class Powerset(Method):
    r"""One multinomial model over the label sets y^l that occur in training.

    :math:`p_{is} = \sum_{l : |y^l| = s} p(y = y^l \mid x) \, y^l_i`.
    """

    def _targets(self, Y: Labels, s: Integers, kept: Labels) -> list[Target]:
        used = kept & (s >= 0)
        self.labelsets, of_row = np.unique(Y[used] == 1, axis=0, return_inverse=True)  # (L, m)
        code = np.full(len(Y), -1, dtype=np.int64)
        code[used] = of_row.ravel()
        return [Target(code)]

    is_binary = False

    def _combine(self, predictions: Predictions) -> FactorEstimate:
        proba = predictions.proba(self.first_target)  # (n, L)
        d = np.zeros((len(proba), self.max_cardinality + 1))
        for label_set, p in zip(self.labelsets, proba.T, strict=True):
            d[:, int(label_set.sum())] += p
        return FactorEstimate(of_joint(self.labelsets, proba), d)

    def mode(self, predictions: Predictions) -> npt.NDArray[np.int8]:
        """Return the most probable label set (n, m); the first one among equals."""
        best = predictions.proba(self.first_target).argmax(axis=1)
        return np.asarray(self.labelsets[best], dtype=np.int8)

    @property
    def floats_per_row(self) -> int:
        """The approximate number of floats that `estimate` allocates per row."""
        return 4 * (self.n_labels * self.max_cardinality + len(self.labelsets))


METHODS: dict[str, type[Method]] = {
    "reweighted": Reweighted,
    "two-step": TwoStep,
    "tilted": Tilted,
    "direct": Direct,
    "powerset": Powerset,
}
