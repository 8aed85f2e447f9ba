"""What the estimates of P have in common: one protocol, one way to fit their models."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils import InputTags, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from fgfm._utils.rows import frame_library, n_rows
from fgfm._utils.validation import check_same_rows, label_sets, row_weights
from fgfm.estimation._fitting import Settings, fit_models, is_ridge
from fgfm.estimation._models import Answers, HeldOut, Models, Target
from fgfm.ridge._estimator import RidgeLogistic

__all__ = [
    "FactorEstimate",
    "FactorEstimator",
    "FactorModel",
    "check_learner",
    "learner_tags",
    "singleton_estimate",
    "validate_features",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Labels = npt.NDArray[np.bool_]


class FactorEstimate(NamedTuple):
    """P and d of one label factor, for some rows."""

    P: Floats  # (n, m, S)
    d: Floats  # (n, S + 1)


@runtime_checkable
class FactorModel(Protocol):
    """What estimates P for one label factor: the protocol of ``FGFMClassifier(method=...)``.

    It is also a scikit-learn estimator, so that ``sklearn.base.clone`` gives one per factor.
    """

    def fit(self, X: Any, Y: Any, sample_weight: Any = None) -> Any:
        """Fit to the rows of one factor.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, p)
            Features.
        Y : ndarray of shape (n, m)
            Labels of the factor, 0 or 1.
        sample_weight : ndarray of shape (n,), optional
            Weights of the rows; it is passed only if the user gave it.
        """

    def estimate(self, X: Any) -> Any:
        """Give P for rows of X.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        ndarray of shape (n, m, S), or tuple
            P; or the pair of P and d, of shape (n, S + 1).
        """


def validate_features(owner: Any, X: Any, learner: Any, *, reset: bool) -> Any:
    """Check features as far as the base learner does not do so itself.

    Parameters
    ----------
    owner : scikit-learn estimator
        Whose ``n_features_in_`` and ``feature_names_in_`` are set, or compared with.
    X : array-like, sparse matrix or data frame of shape (n, p)
        Features.
    learner : scikit-learn classifier or None
        The base learner. The default one takes numbers; any other gets X as it is, and reads
        names, categories and missing values in its own way.
    reset : bool
        True in ``fit``.

    Returns
    -------
    array, sparse matrix or data frame
        Features for the base learner.
    """
    if is_ridge(learner):
        return validate_data(owner, X, accept_sparse="csr", dtype=np.float64, reset=reset)
    if frame_library(X) is not None:
        validate_data(owner, X, reset=reset, skip_check_array=True)
        return X
    takes_sparse = learner_tags(learner).sparse
    return validate_data(
        owner,
        X,
        accept_sparse="csr" if takes_sparse else False,
        dtype=None,
        ensure_all_finite=False,  # missing values are the learner's affair
        reset=reset,
    )


def learner_tags(learner: Any) -> InputTags:
    """Say what features a base learner takes.

    Parameters
    ----------
    learner : scikit-learn classifier or None
        The base learner.

    Returns
    -------
    InputTags
        Its tags; those of a learner that has none say that it takes anything.
    """
    anything = InputTags(sparse=True, allow_nan=True)
    if learner is not None and not hasattr(learner, "__sklearn_tags__"):
        return anything
    try:
        tags: InputTags = get_tags(RidgeLogistic() if learner is None else learner).input_tags
    except AttributeError:  # it is made of scikit-learn's mixins alone
        return anything
    return tags


def check_learner(learner: Any) -> None:
    """Raise unless a base learner can be fitted.

    Parameters
    ----------
    learner : scikit-learn classifier or None
        The base learner.
    """
    if learner is None:
        return
    if isinstance(learner, type) or not hasattr(learner, "fit"):
        raise TypeError(
            f"estimator is {learner!r}: it must be a scikit-learn classifier (an instance), "
            "or None"
        )
    if not (hasattr(learner, "predict_proba") or hasattr(learner, "decision_function")):
        raise TypeError(
            f"estimator is {learner!r}: it must have predict_proba or decision_function"
        )


class FactorEstimator(BaseEstimator):  # type: ignore[misc]
    """Base class of the estimates of P for one label factor.

    A subclass says which targets are to be modelled (`targets`), and makes P of the answers of the
    models (`combine`). One that `uses_held_out` also learns from what models say of rows that they
    did not see (`learn`).

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
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        calibration: Any = "auto",
        cv: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.calibration = calibration
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def targets(self, Y: Labels, seen: Labels) -> list[Target]:
        """Say what is to be modelled, and remember what `combine` needs.

        Parameters
        ----------
        Y : ndarray of shape (n, m)
            Labels of the factor.
        seen : ndarray of shape (n,)
            Rows of positive weight.

        Returns
        -------
        list of Target
            The targets.
        """
        raise NotImplementedError

    def uses_held_out(self) -> bool:
        """Tell, after `targets`, whether `learn` has anything to learn.

        Returns
        -------
        bool
            Whether it has; not here.
        """
        return False

    def learn(self, held_out: HeldOut, first: int, Y: Labels, weight: Floats | None) -> None:
        """Learn from what the models say of rows that they did not see.

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
        raise NotImplementedError

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
        raise NotImplementedError

    def fit(self, X: Any, Y: Any, sample_weight: Any = None) -> FactorEstimator:
        """Fit all models of the factor.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.
        Y : array-like, sparse matrix or data frame of shape (n, m)
            Labels of the factor, 0 or 1.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows. Weight 0 removes a row.

        Returns
        -------
        FactorEstimator
            The estimator itself.
        """
        check_learner(self.estimator)
        X = validate_features(self, X, self.estimator, reset=True)
        labels = label_sets(Y, "Y", allow_flat=True)
        labels = labels.toarray() if hasattr(labels, "toarray") else labels  # (n, m)
        labels = labels.astype(np.bool_)
        n = check_same_rows([n_rows(X), len(labels)], ["X", "Y"])
        weight = None if sample_weight is None else row_weights(sample_weight, n, "X")
        seen = np.ones(n, dtype=np.bool_) if weight is None else weight > 0.0
        targets = self.targets(labels, seen)
        settings = Settings(
            self.estimator, self.calibration, self.cv, self.n_jobs, self.random_state
        )
        fit = fit_models(X, targets, weight, settings, held_out=self.uses_held_out())
        self.models_: Models = fit.models
        if fit.held_out is not None:
            self.learn(fit.held_out, 0, labels, weight)
        return self

    def estimate(self, X: Any) -> FactorEstimate:
        """Give P and d for rows of X.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        FactorEstimate
            P (n, m, S) and d (n, S + 1).
        """
        check_is_fitted(self, "models_")
        X = validate_features(self, X, self.estimator, reset=False)
        return self.combine(self.models_.answers(X), 0)

    def row_size(self) -> int:
        """Tell how much work space a row takes in `combine`.

        Returns
        -------
        int
            How many numbers, about.
        """
        return 4 * self.n_labels_ * self.largest_

    def _remember(self, Y: Labels, seen: Labels) -> Integers:
        """Keep the sizes of the factor; give the number of labels of each row."""
        s: Integers = Y.sum(axis=1, dtype=np.int64)  # (n,)
        self.n_labels_: int = Y.shape[1]
        self.cardinalities_ = np.unique(s[seen])  # those that occur
        self.largest_: int = max(1, int(self.cardinalities_[-1]))  # S
        return s

    def _spread(self, proba: Floats, classes: Integers) -> Floats:
        """Give d (rows, S + 1) from the probabilities of the cardinalities that occur."""
        d = np.zeros((len(proba), self.largest_ + 1))
        d[:, classes] = proba
        return d


def singleton_estimate(answers: Answers, first: int) -> FactorEstimate:
    """Give P and d of a factor with one label, whose target is the label itself.

    Parameters
    ----------
    answers : Answers
        Probabilities for a block of rows.
    first : int
        Number of the target.

    Returns
    -------
    FactorEstimate
        P (n, 1, 1) and d (n, 2).
    """
    p = answers.positives(slice(first, first + 1))  # (n, 1)
    return FactorEstimate(p[:, :, None], np.column_stack([1.0 - p, p]))
