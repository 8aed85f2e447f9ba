"""FGFMClassifier: features and labels in, F-optimal label sets out, by scikit-learn's rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, column_or_1d, has_fit_parameter

from fgfm._utils.blocks import n_threads, row_blocks
from fgfm._utils.label_table import partition, read_labels
from fgfm._utils.parallel import run_jobs
from fgfm._utils.progress import CallbackSupportMixin, FitProgress, with_callbacks
from fgfm._utils.rows import frame_library, n_rows, take_rows
from fgfm._utils.validation import (
    check_beta,
    check_flag,
    check_zero_division,
    row_weights,
)
from fgfm.cardinality import distribution, merge_distributions
from fgfm.decision import Decision, from_factors, from_marginals
from fgfm.estimation._fitting import Settings, fit_models, is_ridge
from fgfm.estimation._models import RidgeModels, Target
from fgfm.estimation.base import (
    FactorEstimate,
    FactorEstimator,
    check_learner,
    learner_tags,
    validate_features,
)
from fgfm.estimation.direct import Direct, Repair
from fgfm.estimation.powerset import Powerset
from fgfm.estimation.reweighted import Reweighted
from fgfm.estimation.tilted import Tilted
from fgfm.estimation.two_step import TwoStep
from fgfm.factors import ILFCompo
from fgfm.metrics import f_measure
from fgfm.ridge._estimator import RidgeLogistic

__all__ = ["FGFMClassifier"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Labels = npt.NDArray[np.bool_]

_METHODS: dict[str, type[FactorEstimator]] = {
    "reweighted": Reweighted,
    "two-step": TwoStep,
    "tilted": Tilted,
    "direct": Direct,
    "powerset": Powerset,
}
_REPAIRED = (TwoStep, Direct)  # those whose P needs a repair to be coherent
_BLOCK_BYTES = 1 << 26  # of P that exist at one time, while predicting


def _knows_the_joint(classifier: Any) -> bool:
    if not classifier._has("powerset", Powerset):
        raise AttributeError(
            f"predict_mode needs method='powerset', the estimate that knows the joint "
            f"distribution; method is {classifier.method!r}"
        )
    return True


def _is_direct(classifier: Any) -> bool:
    if not classifier._has("direct", Direct):
        raise AttributeError(
            "repair needs method='direct', the estimate that is to be repaired; method is "
            f"{classifier.method!r}"
        )
    return True


class FGFMClassifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Multi-label classifier that maximises the expected F-measure of its label sets: F-GFM.

    For each row x it decides for the set h of labels that maximises

    .. math:: E[F_\beta(y, h) \mid x], \qquad
              F_\beta(y, h) = \frac{(1 + \beta^2) \, y \cdot h}{\beta^2 |y| + |h|}, \quad 0/0 = 1,

    under its model of the label set y: label factors that are independent of each other given x,
    by default one of all labels, and within each factor f the probabilities
    :math:`p(y_i = 1, |y_f| = s \mid x)` of each label together with the number of labels.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        The base learner, of which one is fitted per label and per factor. By default
        `RidgeLogistic`, logistic regression with a ridge penalty chosen by cross-validation (scale
        your features). Any other gets X as you pass it; with "two-step" it gets one column more,
        the number of labels, last, which a `ColumnTransformer` keeps only if its `remainder` says
        so.
    factors : {"single", "independent", "ilf"}, partition or estimator, default="single"
        Which labels are modelled together:

        - "single": all of them (GFM);
        - "independent": none;
        - "ilf": those that tests find to depend on each other given the features
          (`fgfm.ILFCompo`), as the paper does; where rows have weights, those of weight 0 are left
          out, and the others count alike;
        - a partition, a list of lists of label numbers (positions, whatever the columns are
          called), or of label names where y has columns;
        - an object with ``fit(X, Y)`` that finds ``factors_``, e.g. ``ILFCompo(alpha=0.05)``.
    method : str or object, default="reweighted"
        How the probabilities of a factor are estimated: "reweighted"
        (`fgfm.estimation.Reweighted`), "two-step" (`TwoStep`, the paper), "tilted" (`Tilted`),
        "direct" (`Direct`) or "powerset" (`Powerset`); or an object with their protocol,
        ``fit(X, Y_factor)`` and ``estimate(X)``, of which each factor gets a clone: base learner,
        calibration, folds and coherence are then its own affair.
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
        calibrated (5). "reweighted" learns from their test rows how many labels to expect; a
        learner that has neither is fitted in three folds more for it.
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
    factor_finder_ : estimator
        What found them, fitted; with "ilf" and with an object that has ``fit``.
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

    The paper's own classifier is ``factors="ilf", method="two-step"``.

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
    array([[0, 0, 1, 0],
           [1, 0, 1, 0],
           [1, 1, 1, 1]])
    >>> model.expected_f(X[200:203]).round(2)
    array([0.78, 0.8 , 0.78])
    >>> round(model.score(X[200:], Y[200:]), 2)
    0.79

    With tests that tell which labels depend on each other, given the features:

    >>> model = FGFMClassifier(factors="ilf", random_state=0).fit(X[:200], Y[:200])
    >>> model.factors_
    [array([0, 3]), array([1, 2])]
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        factors: Any = "single",
        method: Any = "reweighted",
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
        self.method = method
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
        taken = learner_tags(self.estimator)
        tags.input_tags.sparse = taken.sparse
        tags.input_tags.allow_nan = taken.allow_nan
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

    def _reader(self) -> Any:
        """Give the learner that reads X; of an object that the user passed nothing is known."""
        return self.estimator if isinstance(self.method, str) else self.method.estimate

    def _learner(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        learner = RidgeLogistic()
        if get_config()["enable_metadata_routing"]:
            learner.set_fit_request(sample_weight=True)
        return learner

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> FGFMClassifier:
        """Find the label factors and fit the models of each.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.
        y : array-like, sparse matrix or data frame of shape (n, m) or (n,)
            Labels, 0 or 1, one column each. A flat y is one label, and may have any two classes.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows: weight 2 is a row twice, weight 0 none. So their unit matters:
            weights that sum to 1 are one row's worth of data.
        **fit_params : dict
            Further arguments for the ``fit`` of the base learner.

        Returns
        -------
        FGFMClassifier
            The estimator itself.
        """
        self._check_parameters()
        X = validate_features(self, X, self._reader(), reset=True)
        table = read_labels(y, n_rows(X), type(self).__name__)
        labels = table.labels  # (n, m)
        self.classes_, self._kind, self._dtype = table.classes, table.kind, table.dtype
        self.__dict__.pop("label_names_in_", None)
        if table.names is not None:
            self.label_names_in_ = table.names
        weight = None if sample_weight is None else row_weights(sample_weight, len(labels), "X")
        seen = np.ones(len(labels), dtype=np.bool_) if weight is None else weight > 0.0
        routed = self._routed(sample_weight, fit_params)
        progress = FitProgress(self, self.verbose)

        self.factors_ = self._find_factors(X, labels, weight)
        progress.factors_found(len(self.factors_), labels.shape[1])
        kept = labels[seen]
        self.nonempty_ = bool(kept.any(axis=1).all()) and self._kind != "flat"
        # in float64 whatever the weights: this decides rows that no model says anything of
        self._frequencies = np.average(labels, axis=0, weights=weight)  # (m,)
        if isinstance(self.method, str):
            self._fit_named(X, labels, weight, seen, routed, progress)
        else:
            self._fit_objects(X, labels, sample_weight, progress)
        self.n_parameters_ = sum(
            len(factor) * int(np.count_nonzero(np.unique(kept[:, factor].sum(axis=1))))
            for factor in self.factors_
        )
        progress.end()
        return self

    def _check_parameters(self) -> None:
        check_beta(self.beta)
        check_zero_division(self.zero_division)
        check_flag(self.coherent, "coherent")
        check_learner(self.estimator)
        n_threads(self.n_jobs)
        _check_nonempty(self.nonempty, False)
        if isinstance(self.method, str):
            if self.method not in _METHODS:
                raise ValueError(
                    f"method is {self.method!r}: it must be one of "
                    f"{', '.join(map(repr, _METHODS))}, or an object with fit and estimate"
                )
        elif isinstance(self.method, type) or not (
            hasattr(self.method, "fit") and hasattr(self.method, "estimate")
        ):
            raise TypeError(
                f"method is {self.method!r}: it must be one of "
                f"{', '.join(map(repr, _METHODS))}, or an object (an instance) with fit and "
                "estimate"
            )

    def _routed(self, sample_weight: Any, fit_params: dict[str, Any]) -> dict[str, Any] | None:
        """Give what the base learner's fit gets, or None where nothing is said of it."""
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", sample_weight=sample_weight, **fit_params)
            return dict(routed.estimator.fit)
        if not fit_params:
            return None
        if is_ridge(self.estimator):
            raise TypeError(
                f"fit got {', '.join(fit_params)}: the default base learner takes nothing but "
                "sample_weight"
            )
        return fit_params | ({} if sample_weight is None else {"sample_weight": sample_weight})

    def _find_factors(self, X: Any, labels: Labels, weight: Floats | None) -> list[Integers]:
        """Give the labels of each factor."""
        m = labels.shape[1]
        factors = self.factors
        self.__dict__.pop("factor_finder_", None)
        if isinstance(factors, str):
            if factors == "single" or (factors == "ilf" and m == 1):
                return [np.arange(m)]
            if factors == "independent":
                return list(np.arange(m)[:, None])
            if factors != "ilf":
                raise ValueError(
                    f"factors is {factors!r}: it must be 'single', 'independent', 'ilf', a "
                    "partition of the labels, or an object with fit(X, Y) and factors_"
                )
            factors = ILFCompo(n_jobs=self.n_jobs, verbose=max(0, self.verbose - 1))
            if self.random_state is not None:
                factors.random_state = self.random_state
        if isinstance(factors, type):
            raise TypeError(
                f"factors is {factors!r}, a class: it must be an object (an instance) with "
                "fit(X, Y) and factors_"
            )
        if hasattr(factors, "fit"):
            finder = _with_seed(clone(factors), self.random_state)
            Y = labels.astype(np.int8)
            if weight is not None and has_fit_parameter(finder, "sample_weight"):
                finder.fit(X, Y, sample_weight=weight)
            else:
                rows = np.arange(len(Y)) if weight is None else np.flatnonzero(weight)
                finder.fit(X if len(rows) == len(Y) else take_rows(X, rows), Y[rows])
            self.factor_finder_ = finder
            if isinstance(finder, ILFCompo) and hasattr(self, "label_names_in_"):
                finder.label_names_in_ = self.label_names_in_  # for the displays
            factors = finder.factors_
        elif hasattr(factors, "factors_"):
            factors = factors.factors_
        return partition(factors, m, getattr(self, "label_names_in_", None))

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
        progress: FitProgress,
    ) -> None:
        """Fit the models of all factors together."""
        kind = _METHODS[self.method]
        repair = {"coherent": self.coherent} if kind in _REPAIRED else {}
        self._parts: list[Any] = []
        self._firsts: list[int] = []
        targets: list[Target] = []
        for factor in self.factors_:
            part = kind(**repair)
            self._firsts.append(len(targets))
            targets += part.targets(labels[:, factor], seen)
            self._parts.append(part)
        progress.begin_models(len(targets))
        fit = fit_models(
            X,
            targets,
            weight,
            self._settings(routed),
            progress.models_done,
            held_out=any(part.uses_held_out() for part in self._parts),
        )
        self._models: Any = fit.models
        if fit.held_out is not None:
            for part, factor, first in zip(self._parts, self.factors_, self._firsts, strict=True):
                if part.uses_held_out():
                    part.learn(fit.held_out, first, labels[:, factor], weight)

    def _fit_objects(
        self, X: Any, labels: Labels, sample_weight: Any, progress: FitProgress
    ) -> None:
        """Fit a clone of the user's object to each factor."""
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        random = check_random_state(self.random_state)
        seeded = self.random_state is not None  # one seed each: a generator cannot be shared
        seeds = random.randint(np.iinfo(np.int32).max, size=len(self.factors_))
        objects = [_with_seed(clone(self.method), int(seed) if seeded else None) for seed in seeds]
        jobs = (
            delayed(_fit_object)(part, X, labels[:, factor].astype(np.int8), **weights)
            for part, factor in zip(objects, self.factors_, strict=True)
        )
        progress.begin_models(len(self.factors_))
        self._models, self._firsts, self._parts = None, [], []
        for part in run_jobs(jobs, self.n_jobs):
            self._parts.append(part)
            progress.models_done(len(self._parts))

    def _estimates(self, X: Any) -> list[FactorEstimate]:
        """Give P and d of each factor for a block of rows."""
        if self._models is None:
            return [
                _object_estimate(part, X, f"method.estimate for factor {f}", len(factor))
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
            p: Floats = self._models.answers(X).positives(slice(0, len(self.factors_)))
            return p[:, np.argsort(np.concatenate(self.factors_))]
        p = np.empty((n_rows(X), len(self._frequencies)))
        for factor, (P, _) in zip(self.factors_, self._estimates(X), strict=True):
            p[:, factor] = np.minimum(P.sum(axis=2), 1.0)
        return p

    def _all_single(self) -> bool:
        """Tell whether every factor is one label with one binary model."""
        by_label = self._models is not None and not isinstance(self._parts[0], Powerset)
        return by_label and all(len(factor) == 1 for factor in self.factors_)

    def _has(self, name: str, kind: type[FactorEstimator]) -> bool:
        """Tell whether an estimate is the one that is fitted, or will be."""
        parts = getattr(self, "_parts", None)
        return self.method == name if parts is None else isinstance(parts[0], kind)

    def _over_blocks(self, X: Any, work: Callable[[Any], Any]) -> list[Any]:
        """Do the work for blocks of rows that bound the memory; the blocks depend on X alone."""
        check_is_fitted(self)
        X = validate_features(self, X, self._reader(), reset=False)
        if self._models is None:
            numbers = 4 * len(self._frequencies) ** 2
        else:
            numbers = sum(part.row_size() for part in self._parts) + 2 * len(self._frequencies)
        blocks = row_blocks(n_rows(X), max(1, 8 * numbers * (1 << 22) // _BLOCK_BYTES))
        threads = n_threads(self.n_jobs)
        if threads == 1 or len(blocks) < 2 or not isinstance(self._models, RidgeModels):
            return [work(take_rows(X, rows)) for rows in blocks]
        # our own models may be asked by several threads; of others nothing is known
        jobs = (delayed(work)(take_rows(X, rows)) for rows in blocks)
        return list(Parallel(n_jobs=threads, require="sharedmem")(jobs))

    def _objective(self) -> dict[str, Any]:
        """Give what is maximised, as the decisions take it."""
        return {
            "beta": self.beta,
            "zero_division": self.zero_division,
            "nonempty": _check_nonempty(self.nonempty, self.nonempty_),
        }

    def _grounds(self, X: Any) -> tuple[list[FactorEstimate], list[Integers]]:
        """Give what the decision for a block of one row rests on: P and d of factors, labels."""
        estimates = self._estimates(X)
        answerable = self._objective()["nonempty"] and bool(self._frequencies.any())
        if not _silent_rows(answerable, [e.P for e in estimates])[0]:
            return estimates, self.factors_
        prior = [
            FactorEstimate(np.full((1, 1, 1), p), np.array([[1.0 - p, p]]))
            for p in self._frequencies
        ]
        return prior, list(np.arange(len(prior))[:, None])

    def _decide(self, X: Any) -> Decision:
        """Decide for a block of rows."""
        how = self._objective()
        how["n_jobs"] = None if isinstance(self._models, RidgeModels) else self.n_jobs
        answerable = how["nonempty"] and bool(self._frequencies.any())
        if self._all_single():
            p = self._marginals(X)
            silent = _silent_rows(answerable, [p])
            decision = from_marginals(p[~silent], **how)
        else:
            estimates = self._estimates(X)
            silent = _silent_rows(answerable, [e.P for e in estimates])
            decision = from_factors(
                [e.P[~silent] for e in estimates],
                [factor.tolist() for factor in self.factors_],
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
        if self._kind == "flat":
            return self.classes_[labels[:, 0]]
        if self._kind == "dense":
            return labels.astype(self._dtype)
        answer = sparse.csr_array if self._kind == "sparse array" else sparse.csr_matrix
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
        expected_f: Floats = self.decide(X).expected_f
        return expected_f

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
        if self._kind != "flat":
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

    @available_if(_knows_the_joint)  # type: ignore[untyped-decorator]
    def predict_mode(self, X: Any) -> npt.NDArray[np.int8]:
        """Give the most probable label sets: the best for exact matches, not for the F-measure.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        ndarray of shape (n, m)
            Label sets, with ``method="powerset"`` only.
        """

        def mode(block: Any) -> npt.NDArray[np.int8]:  # numpydoc ignore=GL08
            answers = self._models.answers(block)
            labels = np.empty((n_rows(block), len(self._frequencies)), dtype=np.int8)
            for factor, part, first in zip(self.factors_, self._parts, self._firsts, strict=True):
                labels[:, factor] = part.mode_of(answers, first)
            return labels

        return np.concatenate(self._over_blocks(X, mode))

    @available_if(_is_direct)  # type: ignore[untyped-decorator]
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
            much probability the repair moves; with ``method="direct"`` only.
        """

        def measure(block: Any) -> list[Repair]:  # numpydoc ignore=GL08
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
        library = frame_library(X)
        if library != "polars":
            try:
                import pandas as pd
            except ImportError as error:
                raise ImportError(
                    "predict_frame makes a pandas data frame, and pandas is not installed: "
                    "pip install pandas, or call predict"
                ) from error
        decided = self.decide(X).labels
        columns = list(self.classes_)
        if self._kind == "flat":
            columns, labels = ["y"], self.classes_[decided[:, :1]]
        else:
            labels = decided.astype(self._dtype)
        if library == "polars":
            import polars as pl

            return pl.DataFrame(labels, schema=[str(name) for name in columns])
        index = X.index if library == "pandas" else None
        return pd.DataFrame(labels, index=index, columns=columns)

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
        return f_measure(
            self._true_labels(y),
            predicted,
            self.beta,
            zero_division=self.zero_division,
            sample_weight=sample_weight,
        )

    def _true_labels(self, y: Any) -> Any:
        """Check that labels are those of fit; give a flat y as a column of 0 and 1."""
        if self._kind == "flat":
            y = column_or_1d(y)
            unknown = ~np.isin(y, self.classes_)
            if unknown.any():
                raise ValueError(
                    f"y[{int(np.argmax(unknown))}] is {y[unknown][0]!r}: the classes in fit were "
                    f"{', '.join(map(repr, self.classes_.tolist()))}"
                )
            return ((y == self.classes_[-1]) & (len(self.classes_) == 2))[:, None]
        if hasattr(y, "columns"):
            self._check_columns(y)
        return y

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


def _check_nonempty(nonempty: Any, auto: bool) -> bool:
    """Give the flag, or what "auto" stands for."""
    if isinstance(nonempty, str) and nonempty == "auto":
        return auto
    if not isinstance(nonempty, (bool, np.bool_)):
        raise TypeError(f"nonempty is {nonempty!r}: it must be 'auto', True or False")
    return bool(nonempty)


def _with_seed(estimator: Any, seed: Any) -> Any:
    """Give an object our seed where it has none of its own."""
    if getattr(estimator, "random_state", seed) is None:
        estimator.random_state = seed
    return estimator


def _silent_rows(answerable: bool, parts: Sequence[Floats]) -> Labels:
    """Tell which rows have no probability for any label, where training knows better."""
    silent = np.full(len(parts[0]), answerable)
    for part in parts:
        if silent.any():
            silent &= ~part.reshape(len(part), -1).any(axis=1)
    return silent


def _fit_object(part: Any, X: Any, Y: npt.NDArray[np.int8], **weights: Any) -> Any:
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
