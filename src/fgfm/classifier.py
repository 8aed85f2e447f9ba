"""FGFMClassifier: from features and labels to F-optimal label sets, as a scikit-learn estimator."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import assert_all_finite, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, column_or_1d

from fgfm._blocks import n_threads, row_blocks
from fgfm._validation import (
    check_beta,
    check_factors,
    check_flag,
    check_same_rows,
    check_zero_division,
    label_sets,
    row_weights,
)
from fgfm.cardinality import distribution, merge_distributions
from fgfm.decision import Decision, from_factors, from_marginals
from fgfm.estimation._rows import frame_library, n_rows, take_rows
from fgfm.estimation.base import FactorEstimate, FactorEstimator, validate_features
from fgfm.estimation.direct import Direct, Repair
from fgfm.estimation.models import RidgeModels, Settings, Target, fit_models
from fgfm.estimation.powerset import Powerset
from fgfm.estimation.ridge import RidgeLogistic
from fgfm.estimation.tilted import Tilted
from fgfm.estimation.two_step import TwoStep
from fgfm.metrics import f_measure

try:  # scikit-learn 1.9
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before it there are no callbacks to support

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands for the mixin of scikit-learn 1.9."""

    def with_callbacks(method: Any) -> Any:  # numpydoc ignore=GL08
        return method


__all__ = ["FGFMClassifier"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Labels = npt.NDArray[np.bool_]

_PARAMETERS: dict[str, type[FactorEstimator]] = {
    "two-step": TwoStep,
    "tilted": Tilted,
    "direct": Direct,
    "powerset": Powerset,
}
_REPAIRED = (TwoStep, Direct)  # those whose P needs a repair to be coherent
_BLOCK_BYTES = 1 << 26  # of P that exist at one time, while predicting


def _knows_the_joint(classifier: Any) -> bool:
    if classifier.parameters != "powerset":
        raise AttributeError(
            f"predict_mode needs parameters='powerset', the estimate that knows the joint "
            f"distribution; parameters is {classifier.parameters!r}"
        )
    return True


def _is_direct(classifier: Any) -> bool:
    if classifier.parameters != "direct":
        raise AttributeError(
            "repair needs parameters='direct', the estimate that is to be repaired; parameters is "
            f"{classifier.parameters!r}"
        )
    return True


class FGFMClassifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Multi-label classifier that maximises the expected F-measure of its label sets: F-GFM.

    For each row x it decides for the set h of labels that maximises

    .. math:: E[F_\beta(y, h) \mid x], \qquad
              F_\beta(y, h) = \frac{(1 + \beta^2) \, y \cdot h}{\beta^2 |y| + |h|}, \quad 0/0 = 1,

    under its model of the label set y: label factors that are independent of each other given x,
    and within each factor f the probabilities :math:`p(y_i = 1, |y_f| = s \mid x)` of each label
    together with the number of labels.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        The base learner, of which one is fitted per label and per factor. By default `RidgeLogistic`,
        logistic regression with a ridge penalty chosen by cross-validation (scale your features).
        Any other gets X as you pass it.
    factors : {"single", "independent"}, partition or estimator, default="single"
        Which labels are modelled together:

        - "single": all of them (GFM);
        - "independent": none;
        - a partition, a list of lists of label numbers, or of label names where y has columns;
        - an object with ``fit(X, Y)`` that finds ``factors_``.
    parameters : {"two-step", "tilted", "direct", "powerset"} or object, default="two-step"
        How the probabilities of a factor are estimated: `fgfm.estimation.TwoStep` (the paper),
        `Tilted`, `Direct` or `Powerset`; or an object with their protocol, ``fit(X, Y_factor)``
        and ``estimate(X)``, of which each factor gets a clone.
    coherent : bool, default=True
        Repair probabilities that do not sum up ("two-step" and "direct"); False gives the paper's
        own numbers.
    calibration : {"auto", "sigmoid", "isotonic"}, splitter or None, default="auto"
        Calibration of every model on rows that it did not see. "auto" does so for base learners
        whose probabilities are known to be off: boosting, trees and forests, support vector
        machines, naive Bayes (by a sigmoid). A splitter gives the folds, else `cv` does.
    nonempty : {"auto"} or bool, default="auto"
        Decide under the condition that the true set is not empty. "auto" does so when no training
        row is empty.
    zero_division : float, default=1.0
        What an empty decision is worth where the true set is empty, from 0 to 1.
    beta : float, default=1.0
        How many times as important recall is as precision. It takes effect when predicting:
        ``set_params(beta=2.0)`` needs no new fit, and neither do `nonempty` and `zero_division`.
    cv : int, splitter or iterable, optional
        Folds in which the default base learner chooses its penalty (3), and in which models are
        calibrated (5).
    n_jobs : int, optional
        How many processes fit models, and threads decide, in joblib's meaning. It does not change
        the result.
    random_state : int, RandomState instance or None, default=None
        Seeds the folds, and base learners that have no seed of their own.
    verbose : int, default=0
        1 prints what is done and how long it took.

    Attributes
    ----------
    factors_ : list of ndarray
        The labels of each factor.
    classes_ : ndarray
        The labels: their names, or 0 to m - 1. With a flat y its two classes.
    label_names_in_ : ndarray of shape (m,)
        The columns of y, where it has any.
    nonempty_ : bool
        Whether no training row is empty.
    n_parameters_ : int
        Number of probabilities p(y_i = 1, \|y_f\| = s) that describe a row, over all factors.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (p,)
        Their names, where X has them.

    See Also
    --------
    fgfm.decision : The decision for probabilities of any other origin.

    Notes
    -----
    A flat binary y is one label; with ``zero_division=1`` the decision is then the class of
    probability above 0.5. An array of one column is taken as flat, with a warning, as elsewhere in
    scikit-learn; a data frame or a sparse matrix of one column is not.

    `score` is the mean :math:`F_\beta` for the classifier's own beta. To search over beta, choose
    the measure yourself, e.g. ``GridSearchCV(..., scoring=fgfm.f_scorer)``.

    A row to which a learner gives no label at all, in spite of ``nonempty``, is decided by the
    frequencies of the labels in training.

    References
    ----------
    Gasse, M. and Aussem, A. (2016). F-measure Maximization in Multi-Label Classification with
    Conditionally Independent Label Subsets. ECML PKDD 2016. doi:10.1007/978-3-319-46128-1_39

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from fgfm import FGFMClassifier
    >>> X, Y = make_multilabel_classification(300, n_classes=4, random_state=0)
    >>> model = FGFMClassifier(random_state=0).fit(X[:200], Y[:200])
    >>> model.predict(X[200:203])
    array([[1, 0, 1, 1],
           [1, 0, 1, 0],
           [0, 1, 0, 1]])
    >>> model.expected_f(X[200:203]).round(2)
    array([0.68, 0.7 , 0.69])
    >>> round(model.score(X[200:], Y[200:]), 2)
    0.69
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        factors: Any = "single",
        parameters: Any = "two-step",
        coherent: bool = True,
        calibration: Any = "auto",
        nonempty: Any = "auto",
        zero_division: float = 1.0,
        beta: float = 1.0,
        cv: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.factors = factors
        self.parameters = parameters
        self.coherent = coherent
        self.calibration = calibration
        self.nonempty = nonempty
        self.zero_division = zero_division
        self.beta = beta
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        learner = get_tags(self._learner())
        tags.input_tags.sparse = learner.input_tags.sparse
        tags.input_tags.allow_nan = learner.input_tags.allow_nan
        return tags

    def get_metadata_routing(self) -> Any:
        """Say which metadata are for this estimator, and which for its base learner.

        Returns
        -------
        MetadataRouter
            The routing.
        """
        return (
            MetadataRouter(owner=type(self).__name__)
            .add_self_request(self)
            .add(
                estimator=self._learner(),
                method_mapping=MethodMapping().add(caller="fit", callee="fit"),
            )
        )

    def _learner(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        learner = RidgeLogistic()
        if get_config()["enable_metadata_routing"]:
            learner.set_fit_request(sample_weight=True)
        return learner

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> FGFMClassifier:
        """Find the label factors and fit the models of each.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.
        y : array-like, sparse matrix or data frame of shape (n, m) or (n,)
            Labels, 0 or 1, one column each. A flat y is one label, and may have any two classes.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows. Weight 0 removes a row.
        **fit_params : dict
            Further arguments for the ``fit`` of the base learner.

        Returns
        -------
        FGFMClassifier
            The estimator itself.
        """
        self._check_parameters()
        X = validate_features(self, X, self.estimator, reset=True)
        labels = self._read_labels(y, n_rows(X))  # (n, m)
        weight = None if sample_weight is None else row_weights(sample_weight, len(labels), "X")
        seen = np.ones(len(labels), dtype=np.bool_) if weight is None else weight > 0.0
        routed = self._routed(sample_weight, fit_params)
        progress = _Progress(self, self.verbose)

        self.factors_ = self._find_factors(X, labels, sample_weight)
        progress.factors(len(self.factors_), labels.shape[1])
        self.nonempty_ = bool(labels[seen].any(axis=1).all()) and not self._flat
        # in float64 whatever the weights: this decides rows that no model says anything of
        self._frequencies = np.average(labels, axis=0, weights=weight)  # (m,)
        if isinstance(self.parameters, str):
            self._fit_named(X, labels, weight, seen, routed, progress)
        else:
            self._fit_objects(X, labels, sample_weight, progress)
        self.n_parameters_ = sum(
            len(factor) * np.count_nonzero(np.unique(labels[seen][:, factor].sum(axis=1)))
            for factor in self.factors_
        )
        progress.end()
        return self

    def _check_parameters(self) -> None:
        check_beta(self.beta)
        check_zero_division(self.zero_division)
        check_flag(self.coherent, "coherent")
        if not (isinstance(self.nonempty, str) and self.nonempty == "auto"):
            _check_nonempty(self.nonempty)
        if isinstance(self.parameters, str):
            if self.parameters not in _PARAMETERS:
                raise ValueError(
                    f"parameters is {self.parameters!r}: it must be one of "
                    f"{', '.join(map(repr, _PARAMETERS))}, or an object with fit and estimate"
                )
        elif not (hasattr(self.parameters, "fit") and hasattr(self.parameters, "estimate")):
            raise TypeError(
                f"parameters is {self.parameters!r}: it must be one of "
                f"{', '.join(map(repr, _PARAMETERS))}, or an object with fit and estimate"
            )

    def _routed(self, sample_weight: Any, fit_params: dict[str, Any]) -> dict[str, Any] | None:
        """Give what the base learner's fit gets, or None where nothing is said of it."""
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", sample_weight=sample_weight, **fit_params)
            return dict(routed.estimator.fit)
        if not fit_params:
            return None
        if self.estimator is None:
            raise TypeError(
                f"fit got {', '.join(fit_params)}: the default base learner takes nothing but "
                "sample_weight"
            )
        return fit_params | ({} if sample_weight is None else {"sample_weight": sample_weight})

    def _read_labels(self, y: Any, n: int) -> Labels:
        """Check the labels; keep their names, and what `predict` needs to answer in kind."""
        if y is None:
            raise ValueError(
                "FGFMClassifier requires y to be passed, but the target y is None: "
                "give the labels as a 0/1 matrix"
            )
        _refuse_tag_lists(y)
        self.__dict__.pop("label_names_in_", None)
        self._sparse_type = None
        if not sparse.issparse(y) and not hasattr(y, "columns"):
            y = np.asarray(y)
        self._flat = y.ndim == 1 or (isinstance(y, np.ndarray) and y.shape[1:] == (1,))
        if self._flat:
            labels = self._read_flat(y)
        else:
            labels = label_sets(y, "y")
            self._dtype = _dtype_of(y)
            if sparse.issparse(labels):
                self._sparse_type = "array" if isinstance(y, sparse.sparray) else "matrix"
                labels = labels.toarray()
            labels = np.asarray(labels, dtype=np.bool_)
            self.classes_ = np.arange(labels.shape[1])
            if hasattr(y, "columns"):
                self.label_names_in_ = self.classes_ = _names(y.columns)
        check_same_rows([n, len(labels)], ["X", "y"])
        return labels

    def _read_flat(self, y: Any) -> Labels:
        y = column_or_1d(y, warn=True)
        if y.dtype.kind == "f":
            assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind != "binary":
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {kind}: a "
                "flat y must have two classes; give several labels as a 0/1 matrix (n, m)"
            )
        self.classes_ = np.unique(y)
        self._dtype = ""
        return np.asarray(y == self.classes_[-1])[:, None] & (len(self.classes_) == 2)

    def _find_factors(self, X: Any, labels: Labels, sample_weight: Any) -> list[Integers]:
        """Give the labels of each factor."""
        m = labels.shape[1]
        factors = self.factors
        if isinstance(factors, str):
            if factors == "single":
                return [np.arange(m)]
            if factors == "independent":
                return list(np.arange(m)[:, None])
            raise ValueError(
                f"factors is {factors!r}: it must be 'single', 'independent', a partition of the "
                "labels, or an object with fit(X, Y) and factors_"
            )
        if hasattr(factors, "fit"):
            finder = clone(factors)
            if hasattr(finder, "random_state") and finder.random_state is None:
                finder.random_state = self.random_state
            weights = {} if sample_weight is None else {"sample_weight": sample_weight}
            factors = finder.fit(X, labels.astype(np.int8), **weights).factors_
        elif hasattr(factors, "factors_"):
            factors = factors.factors_
        return _partition(factors, m, getattr(self, "label_names_in_", None))

    def _settings(self, routed: dict[str, Any] | None) -> Settings:
        return Settings(
            self.estimator, self.calibration, self.cv, self.n_jobs, self.random_state, routed
        )

    def _fit_named(
        self,
        X: Any,
        labels: Labels,
        weight: Floats | None,
        seen: Labels,
        routed: dict[str, Any] | None,
        progress: _Progress,
    ) -> None:
        """Fit the models of all factors together."""
        kind = _PARAMETERS[self.parameters]
        repair = {"coherent": self.coherent} if kind in _REPAIRED else {}
        self._parts: list[Any] = []
        self._firsts: list[int] = []
        targets: list[Target] = []
        for factor in self.factors_:
            part = kind(**repair)
            self._firsts.append(len(targets))
            targets += part.targets(labels[:, factor], seen)
            self._parts.append(part)
        progress.models(len(targets))
        self._models = fit_models(X, targets, weight, self._settings(routed), progress.done)

    def _fit_objects(
        self, X: Any, labels: Labels, sample_weight: Any, progress: _Progress
    ) -> None:
        """Fit a clone of the user's object to each factor."""
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        jobs = (
            delayed(_fit_object)(clone(self.parameters), X, labels[:, f].astype(np.int8), weights)
            for f in self.factors_
        )
        progress.models(len(self.factors_))
        self._models, self._firsts, self._parts = None, [], []
        for part in Parallel(n_jobs=self.n_jobs, return_as="generator")(jobs):
            self._parts.append(part)
            progress.done(len(self._parts))

    def _estimates(self, X: Any) -> list[FactorEstimate]:
        """Give P and d of each factor for a block of rows."""
        if self._models is None:
            return [
                _object_estimate(part, X, f"parameters.estimate for factor {f}", len(factor))
                for f, (part, factor) in enumerate(zip(self._parts, self.factors_, strict=True))
            ]
        answers = self._models.answers(X)
        return [
            part.combine(answers, first)
            for part, first in zip(self._parts, self._firsts, strict=True)
        ]

    def _marginals(self, X: Any) -> Floats:
        """Give the probability of each label for a block of rows."""
        if self._all_single():
            p = self._models.answers(X).positives(slice(0, len(self.factors_)))
            return p[:, np.argsort(np.concatenate(self.factors_))]
        p = np.empty((n_rows(X), len(self._frequencies)))
        for factor, (P, _) in zip(self.factors_, self._estimates(X), strict=True):
            p[:, factor] = np.minimum(P.sum(axis=2), 1.0)
        return p

    def _all_single(self) -> bool:
        """Tell whether every factor is one label with one binary model."""
        named = self._models is not None and self.parameters != "powerset"
        return named and all(len(factor) == 1 for factor in self.factors_)

    def _over_blocks(self, X: Any, work: Callable[[Any], Any]) -> list[Any]:
        """Do the work for blocks of rows that bound the memory; the blocks depend on X alone."""
        check_is_fitted(self)
        X = validate_features(self, X, self.estimator, reset=False)
        if self._models is None:
            numbers = 4 * len(self._frequencies) ** 2
        else:
            numbers = sum(part.row_size for part in self._parts) + 2 * len(self._frequencies)
        blocks = row_blocks(n_rows(X), max(1, 8 * numbers * (1 << 22) // _BLOCK_BYTES))
        threads = n_threads(self.n_jobs)
        if threads == 1 or len(blocks) < 2 or not isinstance(self._models, RidgeModels):
            return [work(take_rows(X, rows)) for rows in blocks]
        # our own models may be asked by several threads; of others nothing is known
        jobs = (delayed(work)(take_rows(X, rows)) for rows in blocks)
        return list(Parallel(n_jobs=threads, prefer="threads")(jobs))

    def _decide(self, X: Any) -> Decision:
        """Decide for a block of rows."""
        auto = isinstance(self.nonempty, str)
        nonempty = self.nonempty_ if auto else _check_nonempty(self.nonempty)
        how = {
            "beta": self.beta,
            "zero_division": self.zero_division,
            "nonempty": nonempty,
            "n_jobs": None if isinstance(self._models, RidgeModels) else self.n_jobs,
        }
        if self._all_single():
            p = self._marginals(X)
            silent = _silent_rows(nonempty, [p])
            decision = from_marginals(p[~silent], **how)
        else:
            estimates = self._estimates(X)
            silent = _silent_rows(nonempty, [e.P for e in estimates])
            decision = from_factors(
                [e.P[~silent] for e in estimates],
                self.factors_,
                distributions=[e.d[~silent] for e in estimates],
                **how,
            )
        if not silent.any():
            return decision
        labels = np.empty((len(silent), len(self._frequencies)), dtype=np.int8)
        expected_f = np.empty(len(silent))
        labels[~silent], expected_f[~silent] = decision
        prior = from_marginals(self._frequencies[None], **how)
        labels[silent], expected_f[silent] = prior.labels[0], prior.expected_f[0]
        return Decision(labels, expected_f)

    def decide(self, X: Any) -> Decision:
        """Decide for the label sets, and tell the F-measure to be expected of each.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        Decision
            ``labels`` of shape (n, m), 0 or 1, and ``expected_f`` of shape (n,).
        """
        check_beta(self.beta)
        check_zero_division(self.zero_division)
        blocks = self._over_blocks(X, self._decide)
        if not blocks:
            return Decision(np.empty((0, len(self._frequencies)), dtype=np.int8), np.empty(0))
        return Decision(
            np.concatenate([block.labels for block in blocks]),
            np.concatenate([block.expected_f for block in blocks]),
        )

    def predict(self, X: Any) -> Any:
        """Give the F-optimal label sets.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        ndarray or sparse matrix of shape (n, m), or ndarray of shape (n,)
            Labels, of the dtype of y in `fit`; sparse if that was; classes if that was flat.
        """
        labels = self.decide(X).labels
        if self._flat:
            return self.classes_[labels[:, 0]]
        if self._sparse_type is None:
            return labels.astype(self._dtype)
        answer = sparse.csr_array if self._sparse_type == "array" else sparse.csr_matrix
        return answer(labels.astype(self._dtype))

    def expected_f(self, X: Any) -> Floats:
        """Give the F-measure that the model expects of its own prediction, row by row.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        ndarray of shape (n,)
            Expectations; their mean is the model's guess of its `score`.
        """
        return self.decide(X).expected_f

    def predict_proba(self, X: Any) -> Floats:
        """Give the probability of each label.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        ndarray of shape (n, m)
            Marginal probabilities of the model, not conditioned on a set that is not empty. With a
            flat y the probabilities of its classes.
        """
        blocks = self._over_blocks(X, self._marginals)
        p = np.concatenate(blocks) if blocks else np.empty((0, len(self._frequencies)))
        if not self._flat:
            return p
        return np.column_stack([1.0 - p, p])[:, : len(self.classes_)]

    def predict_cardinality_proba(self, X: Any) -> Floats:
        """Give the distribution of the number of labels.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        ndarray of shape (n, S + 1)
            The probabilities of 0, 1, .. S labels, S being the most that the factors can have.
        """
        blocks = self._over_blocks(
            X, lambda block: merge_distributions([e.d for e in self._estimates(block)])
        )
        return np.concatenate(blocks) if blocks else np.empty((0, len(self._frequencies) + 1))

    @available_if(_knows_the_joint)
    def predict_mode(self, X: Any) -> npt.NDArray[np.int8]:
        """Give the most probable label sets: the best for exact matches, not for the F-measure.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        ndarray of shape (n, m)
            Label sets, with ``parameters="powerset"`` only.
        """

        def mode(block: Any) -> npt.NDArray[np.int8]:
            answers = self._models.answers(block)
            labels = np.empty((n_rows(block), len(self._frequencies)), dtype=np.int8)
            for factor, part, first in zip(self.factors_, self._parts, self._firsts, strict=True):
                labels[:, factor] = part.mode_of(answers, first)
            return labels

        return np.concatenate(self._over_blocks(X, mode))

    @available_if(_is_direct)
    def repair(self, X: Any) -> list[Repair]:
        """Tell how incoherent the models' own probabilities are, row by row.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        list of Repair
            For each factor the d_0 that its raw P implies, negative where it cannot be, and how
            much probability the repair moves; with ``parameters="direct"`` only.
        """

        def measure(block: Any) -> list[Repair]:
            answers = self._models.answers(block)
            return [
                part.measure_repair(answers, first)
                for part, first in zip(self._parts, self._firsts, strict=True)
            ]

        blocks = self._over_blocks(X, measure)
        return [
            Repair(
                np.concatenate([block[f].d_0 for block in blocks]),
                np.concatenate([block[f].moved for block in blocks]),
            )
            for f in range(len(self.factors_))
        ]

    def predict_frame(self, X: Any) -> Any:
        """Give the F-optimal label sets as a data frame.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        data frame of shape (n, m)
            One column per label, with the index of X; of polars if X is, else of pandas.
        """
        columns = [str(name) for name in self.classes_] if self._flat else list(self.classes_)
        decided = self.decide(X).labels
        if self._flat:
            columns, labels = ["y"], self.classes_[decided[:, :1]]
        else:
            labels = decided.astype(self._dtype)
        if frame_library(X) == "polars":
            import polars as pl

            return pl.DataFrame(labels, schema=[str(name) for name in columns])
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "predict_frame makes a pandas data frame, and pandas is not installed: "
                "pip install pandas, or call predict"
            ) from error
        return pd.DataFrame(labels, index=getattr(X, "index", None), columns=columns)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Give the mean F-measure of the predictions, for the beta of this estimator.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.
        y : array-like, sparse matrix or data frame of shape (n, m) or (n,)
            True labels.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows.

        Returns
        -------
        float
            The mean over rows.
        """
        predicted = self.decide(X).labels
        if self._flat:
            y = column_or_1d(y)
            unknown = ~np.isin(y, self.classes_)
            if unknown.any():
                raise ValueError(
                    f"y[{int(np.argmax(unknown))}] is {y[unknown][0]!r}: the classes in fit were "
                    f"{', '.join(map(repr, self.classes_.tolist()))}"
                )
            y = ((y == self.classes_[-1]) & (len(self.classes_) == 2))[:, None]
        elif hasattr(y, "columns"):
            self._check_columns(y)
        return f_measure(
            y,
            predicted,
            self.beta,
            zero_division=self.zero_division,
            sample_weight=sample_weight,
        )

    def _check_columns(self, y: Any) -> None:
        """Refuse columns that are not those of fit."""
        names = getattr(self, "label_names_in_", None)
        if names is None:
            return
        for at, (expected, found) in enumerate(zip(names, y.columns, strict=False)):
            if expected != found:
                raise ValueError(
                    f"y has column {at} {found!r} where fit had {expected!r}: the columns must be "
                    "the same, in the same order"
                )


class _Progress:
    """Tells the user, and the callbacks of scikit-learn 1.9, how far the fit is."""

    def __init__(self, owner: FGFMClassifier, verbose: int) -> None:
        self.owner = owner
        self.verbose = verbose
        self.start = self.last = time.perf_counter()
        self.total = self.ended = 0
        self.root: Any = None
        self.stage: Any = None
        if hasattr(owner, "_init_callback_context"):
            self.root = owner._init_callback_context(max_subtasks=2)
            self.root.call_on_fit_task_begin(estimator=owner)
            self.stage = self.root.subcontext(task_name="label factors")
            self.stage.call_on_fit_task_begin(estimator=owner)

    def say(self, text: str) -> None:
        """Print a line with the time since the start."""
        if self.verbose:
            print(
                f"[FGFMClassifier] {text} ({time.perf_counter() - self.start:.1f} s)", flush=True
            )

    def factors(self, n_factors: int, n_labels: int) -> None:
        """Note that the factors are known."""
        self.say(f"{n_labels} label(s) in {n_factors} factor(s)")
        if self.stage is not None:
            self.stage.call_on_fit_task_end(estimator=self.owner)

    def models(self, total: int) -> None:
        """Note how many models are to be fitted."""
        self.total = total
        if self.root is not None:
            self.stage = self.root.subcontext(task_name="models", max_subtasks=total)
            self.stage.call_on_fit_task_begin(estimator=self.owner)

    def done(self, count: int) -> None:
        """Note how many models are fitted."""
        now = time.perf_counter()
        if count == self.total or self.verbose > 1 or now - self.last > 5.0:
            self.say(f"{count} of {self.total} models")
            self.last = now
        while self.stage is not None and self.ended < count:
            task = self.stage.subcontext(task_name="model")
            task.call_on_fit_task_begin(estimator=self.owner)
            task.call_on_fit_task_end(estimator=self.owner)
            self.ended += 1

    def end(self) -> None:
        """Note that all is done."""
        if self.root is not None:
            self.stage.call_on_fit_task_end(estimator=self.owner)
            self.root.call_on_fit_task_end(estimator=self.owner)


def _check_nonempty(nonempty: Any) -> bool:
    if not isinstance(nonempty, (bool, np.bool_)):
        raise TypeError(f"nonempty is {nonempty!r}: it must be 'auto', True or False")
    return bool(nonempty)


def _silent_rows(nonempty: bool, parts: Sequence[Floats]) -> Labels:
    """Tell which rows have no probability for any label, where the set cannot be empty."""
    silent = np.full(len(parts[0]), nonempty)
    for part in parts:
        if silent.any():
            silent &= ~part.reshape(len(part), -1).any(axis=1)
    return silent


def _fit_object(part: Any, X: Any, Y: npt.NDArray[np.int8], weights: dict[str, Any]) -> Any:
    part.fit(X, Y, **weights)
    return part


def _object_estimate(part: Any, X: Any, name: str, m: int) -> FactorEstimate:
    """Give P and d from a user's object, which may give P alone."""
    answer = part.estimate(X)
    P, d = answer if isinstance(answer, tuple) else (answer, None)
    P = np.asarray(P, dtype=np.float64)
    if P.ndim != 3 or P.shape[:2] != (n_rows(X), m):
        raise ValueError(
            f"{name} gave P of shape {P.shape}: it must have shape ({n_rows(X)}, {m}, S)"
        )
    return FactorEstimate(P, distribution(P) if d is None else np.asarray(d, dtype=np.float64))


def _names(columns: Any) -> npt.NDArray[Any]:
    names = np.asarray(columns)
    return names if names.ndim == 1 else np.array([str(c) for c in columns], dtype=object)


def _dtype_of(y: Any) -> str:
    """Give the name of the dtype of the answers to labels of this kind."""
    found = y.dtype if hasattr(y, "dtype") else np.asarray(y).dtype
    numeric = isinstance(found, np.dtype) and found.kind in "biuf"
    return str(found) if numeric else "int64"


def _refuse_tag_lists(y: Any) -> None:
    """Refuse lists of the labels of each row, where a 0/1 matrix is meant."""
    rows: Any = None
    if isinstance(y, (list, tuple)):
        rows = y
    elif getattr(y, "dtype", None) == object and getattr(y, "ndim", 0) == 1:
        rows = list(y)
    if not rows:
        return
    sequences = [row for row in rows if isinstance(row, (list, tuple, set, frozenset, np.ndarray))]
    lengths = {len(row) for row in sequences}
    by_name = any(isinstance(label, str) for row in sequences for label in row)
    if sequences and (by_name or len(lengths) > 1 or isinstance(sequences[0], (set, frozenset))):
        raise ValueError(
            f"y[0] is {rows[0]!r}: labels must be a matrix (n, m) of 0 and 1; "
            "sklearn.preprocessing.MultiLabelBinarizer makes one of lists of labels"
        )


def _partition(factors: Any, m: int, names: npt.NDArray[Any] | None) -> list[Integers]:
    """Give a partition of the labels, by number or by name, as arrays of numbers."""
    if isinstance(factors, (str, bytes)) or not hasattr(factors, "__iter__"):
        raise TypeError(
            f"factors is {factors!r}: it must be 'single', 'independent', a partition of the "
            "labels (a list of lists), or an object with fit(X, Y) and factors_"
        )
    number = {} if names is None else {str(name): i for i, name in enumerate(names)}
    found: list[list[Any]] = []
    for f, factor in enumerate(factors):
        if isinstance(factor, (str, bytes)) or not hasattr(factor, "__iter__"):
            raise TypeError(
                f"factors[{f}] is {factor!r}: a factor must be a list of label numbers or names"
            )
        labels = []
        for label in factor:
            if isinstance(label, str):
                if label not in number:
                    known = "y has no label names" if names is None else "y has no such column"
                    raise ValueError(f"factors[{f}] holds label {label!r}: {known}")
                label = number[label]  # noqa: PLW2901
            labels.append(label)
        found.append(labels)
    held = {int(i) for labels in found for i in labels if isinstance(i, (int, np.integer))}
    missing = sorted(set(range(m)) - held)
    total = sum(len(labels) for labels in found)
    if missing and total < m:
        label = missing[0] if names is None else f"{missing[0]} ({names[missing[0]]!r})"
        raise ValueError(
            f"factors leaves out label {label}: every label must be in exactly one factor"
        )
    empty = [f for f, labels in enumerate(found) if not labels]
    if empty:
        raise ValueError(f"factors[{empty[0]}] is empty: a factor must have one label at least")
    if total > m:
        raise ValueError(
            f"factors holds {total} labels and y has {m}: every label must be in exactly one factor"
        )
    return check_factors(found, [len(labels) for labels in found])
