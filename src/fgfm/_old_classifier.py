"""FGFMClassifier: a scikit-learn classifier that predicts F-optimal label sets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn import get_config
from sklearn.base import BaseEstimator, clone
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from fgfm._utils.blocks import n_threads, row_blocks
from fgfm._utils.folds import split_by_metadata
from fgfm._utils.label_table import check_partition, read_labels, set_label_attributes
from fgfm._utils.names import check_same_index
from fgfm._utils.progress import CallbackSupportMixin, FitProgress, with_callbacks
from fgfm._utils.rows import as_frames, n_rows, take_rows
from fgfm._utils.validation import (
    check_beta,
    check_choice,
    check_flag,
    check_zero_division,
    resolve_nonempty,
    row_weights,
)
from fgfm.cardinality import merge_distributions
from fgfm.decision import (
    Constraints,
    Decision,
    from_factors,
    from_marginals,
)
from fgfm.decision._objective import Objective
from fgfm.decision._problem import AVERAGES
from fgfm.estimation._entries import dense_entries
from fgfm.estimation._estimates import (
    FactorEstimate,
    concatenate_rows,
    conditional_marginals,
    decide_together,
    label_sums,
    replace_by_independent,
)
from fgfm.estimation._fitting import fit_custom_models, fit_factor_models
from fgfm.estimation._label_sets import LabelSetMixin
from fgfm.estimation._learner import (
    AUTO,
    LearnerSettings,
    check_learner,
    check_not_frozen,
    is_auto,
    is_ridge,
    is_splitter,
    learner_input_tags,
    validate_features,
    validate_raw_features,
)
from fgfm.estimation._methods import METHODS
from fgfm.estimation._models import Predictions
from fgfm.estimation._weighted import limit_f
from fgfm.factors import ILFCompo
from fgfm.ridge import RidgeLogistic

__all__ = ["FGFMClassifier"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Labels = npt.NDArray[np.bool_]


def _models_label_sets(classifier: Any) -> bool:
    """Return True if the classifier has `predict_mode`."""
    if classifier.method == "powerset":
        return True
    raise AttributeError(f"needs method='powerset'; method is {classifier.method!r}")


class FGFMClassifier(CallbackSupportMixin, LabelSetMixin, BaseEstimator):  # type: ignore[misc]
    r"""Multi-label classifier that maximises the expected F-measure of its label sets: F-GFM.

    For each row x it predicts the set h of labels that maximises

    .. math:: E[F_\beta(y, h) \mid x], \qquad
              F_\beta(y, h) = \frac{(1 + \beta^2) \, y \cdot h}{\beta^2 |y| + |h|}, \quad 0/0 = 1,

    under its model of the label set y: label factors that are independent of each other given x,
    by default one factor of all labels, and within each factor f the probabilities
    :math:`p(y_i = 1, |y_f| = s \mid x)` of each label jointly with the number of labels.

    Parameters
    ----------
    estimator : {"auto", "ridge"} or scikit-learn classifier, default="auto"
        The base learner:

        - "auto": a random forest and two ridge regressions, each for all labels at once, stacked
          by their held-out predictions, and, where they pay, logistic regressions on counts of at
          least 1000 rows, or boosting of each label on a dense X of at least 5000. It needs no
          setting and no scaling, and takes missing values in a dense X. The methods "two-step",
          "direct" and "powerset" need other models: there it is "ridge";
        - "ridge": `fgfm.ridge.RidgeLogistic`, logistic regression with a ridge penalty chosen by
          cross-validation, the learner of the paper (scale your features);
        - any other learner, of which one is fitted per label and per factor, or one to all labels
          if it takes a matrix of labels (see Notes). It gets X as you pass it; with "two-step" one
          more column comes last, the number of labels, which a `ColumnTransformer` passes on only
          with ``remainder="passthrough"``.
    factors : {"single", "independent", "ilf"}, partition or estimator, default="single"
        Which labels are modelled together:

        - "single": all of them (GFM);
        - "independent": none;
        - "ilf": those that tests find to depend on each other given the features
          (`fgfm.ILFCompo`), as in the paper; rows of weight 0 are removed, other weights are
          ignored by the tests;
        - a partition, a list of lists of label numbers (positions, whatever the columns are
          called), or of label names if y has columns;
        - an object with ``fit(X, Y)`` that sets ``factors_``, e.g. ``ILFCompo(alpha=0.05)``.
    method : str or object, default="reweighted"
        How the probabilities of a factor are estimated: "reweighted", "two-step" (the paper),
        "tilted", "direct" or "powerset" (`fgfm.estimation` describes them); or an object with
        ``fit(X, Y_factor)`` and ``estimate(X)``, of which each factor gets a clone. Such an object
        has its own base learner, calibration, folds and seed: `estimator`, `coherent`,
        `calibration` and `cv` are then ignored.
    coherent : bool, default=True
        Make the probabilities of "two-step" and "direct" coherent; False gives the numbers of the
        paper.
    calibration : {"auto", "sigmoid", "isotonic"}, splitter or None, default="auto"
        Calibration of every model on out-of-fold scores. "auto" calibrates, by a sigmoid, base
        learners whose probabilities are known to be miscalibrated: boosting, trees and forests,
        support vector machines, naive Bayes. A splitter defines the folds of a sigmoid
        calibration; otherwise `cv` defines them. The learner "auto" is calibrated by its stack.
    nonempty : {"auto"} or bool, default="auto"
        Condition the decision on a true label set that is not empty. "auto" does so if no training
        row is empty.
    zero_division : float, default=1.0
        Value of an empty prediction if the true set is empty, from 0 to 1.
    beta : float, default=1.0
        Importance of recall relative to precision. It takes effect in prediction:
        ``set_params(beta=2.0)`` needs no new fit, and neither do `nonempty`, `zero_division`,
        ``min_labels``, ``max_labels`` and ``constraints``; but with another `average` than
        "samples" beta and nonempty take effect in `fit`, which computes `thresholds_`.
    average : {"samples", "macro", "weighted", "micro"}, default="samples"
        The F-measure to maximise: the mean over rows; the mean over labels, with equal weights or
        weighted by the number of positives; or that of all rows and labels together. With one of
        the last three, `predict` compares the probabilities of each row with `thresholds_`, so
        that rows are decided one by one as in a large batch, and `decide` decides the rows of X
        together; limits and constraints, about the label set of a row, are then not possible.
    min_labels, max_labels : int, default=0 and None
        The least and the largest number of labels to predict; None is no limit.
    constraints : fgfm.decision.Constraints, optional
        Labels that are required, forbidden, exclude each other or imply each other, and costs of
        labels; by number, or by name if y has columns. They constrain predictions, not the fit.
    cv : int, splitter or iterable, optional
        Folds in which the learner "ridge" chooses its penalty (3), and in which models are
        calibrated (5). "reweighted" learns the distribution of the number of labels from their
        test rows; a learner that needs neither is fitted in three additional folds. The learner
        "auto" needs no folds.
    n_jobs : int, optional
        Number of processes that fit models, and of threads that predict, as in joblib. It does not
        change the result.
    random_state : int, RandomState instance or None, default=None
        Seeds the folds, and base learners without a seed.
    verbose : int, default=0
        1 prints the progress of the fit at most every five seconds, 2 after every model.

    Attributes
    ----------
    thresholds_ : ndarray of shape (m,), or float
        If `average` is not "samples": the probability above which a label is predicted, learned
        from held-out predictions of the training rows; one number for "micro".
    factors_ : list of ndarray
        The labels of each factor.
    factor_finder_ : estimator
        The fitted object that found the factors; with "ilf", or if `factors` has ``fit``.
    classes_ : ndarray
        The labels: their names, or 0 to m - 1. With a flat y its two classes.
    multilabel_ : bool
        False if y was flat.
    label_names_in_ : ndarray of shape (m,)
        The columns of y, if it has any.
    label_frequencies_ : ndarray of shape (m,)
        The weighted frequency of each label in training, where it is observed.
    parts_ : dict of str to float
        The parts of the stack "auto" and the weights that labels share.
    nonempty_ : bool
        Whether no training row is empty, of those with all labels; always False with a flat y.
    n_parameters_ : int
        Number of probabilities p(y_i = 1, \|y_f\| = s) that describe a row, over all factors.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (p,)
        Names of the features, if X has string column names.

    See Also
    --------
    fgfm.FClassifier : F-optimal decisions around any model of all labels.
    fgfm.decision : Decisions from the probabilities of any other model.

    Notes
    -----
    A flat binary y is one label; with ``zero_division=1`` the prediction is then the class of
    probability above 0.5. An array with one column is taken as flat, with a warning, as elsewhere
    in scikit-learn; a data frame or a sparse matrix with one column is not.

    `score` is the mean :math:`F_\beta` for the beta of the classifier. To search over beta, fix
    the measure, e.g. ``GridSearchCV(..., scoring=fgfm.f_scorer)``.

    The classifier of the paper is ``factors="ilf", method="two-step"``.

    Learners that take a matrix of labels are those whose scikit-learn tags say so: trees, forests,
    neighbours, `MLPClassifier`, `RidgeClassifier`, pipelines that end in one. Where a method has
    one binary model per label ("reweighted", "tilted", and factors of one label), such a learner
    is fitted once for all labels that vary, and each label is calibrated. With `class_weight` or
    `monotonic_cst`, and in a search, it is fitted to each label.

    Missing labels: the model of a label is fitted to the rows in which it is observed, that of the
    number of labels, and whatever else depends on it, to the rows in which all labels of the
    factor are; label factors are found from rows in which all labels are. Labels are assumed to
    be missing at random given the features.

    If the models give a row no label at all, although the decision is conditioned on a non-empty
    set, the row is decided by `label_frequencies_`, with independent labels.

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
           [1, 1, 0, 1]])
    >>> model.expected_f(X[200:203]).round(2)
    array([0.98, 0.78, 0.87])
    >>> round(model.score(X[200:], Y[200:]), 2)
    0.79

    With label factors learned from the data:

    >>> model = FGFMClassifier(factors="ilf", random_state=0).fit(X[:200], Y[:200])
    >>> model.factors_
    [array([0, 3]), array([1, 2])]
    """

    def __init__(
        self,
        estimator: Any = "auto",
        *,
        factors: Any = "single",
        method: Any = "reweighted",
        coherent: bool = True,
        calibration: Any = "auto",
        nonempty: Any = "auto",
        zero_division: float = 1.0,
        beta: float = 1.0,
        average: str = "samples",
        min_labels: int = 0,
        max_labels: int | None = None,
        constraints: Constraints | None = None,
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
        self.average = average
        self.min_labels = min_labels
        self.max_labels = max_labels
        self.constraints = constraints
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        accepted = learner_input_tags(self._learner())
        tags.input_tags.sparse = accepted.sparse
        tags.input_tags.allow_nan = accepted.allow_nan
        return tags

    def get_metadata_routing(self) -> Any:
        """Return the metadata routing of this estimator, its base learner and its folds.

        Returns
        -------
        MetadataRouter
            The routing.
        """
        learner = self._learner()
        if isinstance(learner, str):
            learner = RidgeLogistic()
            if get_config()["enable_metadata_routing"]:
                learner.set_fit_request(sample_weight=True)
        return (
            MetadataRouter(owner=type(self).__name__)
            .add_self_request(self)
            .add(
                estimator=learner,
                method_mapping=MethodMapping().add(caller="fit", callee="fit"),
            )
            .add(
                splitter=self.calibration if is_splitter(self.calibration) else self.cv,
                method_mapping=MethodMapping().add(caller="fit", callee="split"),
            )
        )

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> FGFMClassifier:
        """Find the label factors and fit the models of each.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.
        y : array-like, sparse matrix or data frame of shape (n, m) or (n,)
            Labels, 0 or 1, one column each. NaN or -1 in a matrix marks a label that was not
            observed in that row (see Notes of the class). A flat y is one label, and may have any
            two classes.
        sample_weight : array-like of shape (n,), optional
            Sample weights: weight 2 is a row twice, weight 0 none. Their scale matters: weights
            that sum to 1 count as one row of data.
        **fit_params : dict
            ``groups``, for a splitter `cv` or `calibration` that takes them; further arguments for
            the ``fit`` of the base learner. With scikit-learn's metadata routing, what the learner
            and the splitter request. The learner "auto" holds out single rows, not groups.

        Returns
        -------
        FGFMClassifier
            The fitted estimator.
        """
        self._check_parameters()
        check_same_index(X=X, y=y, sample_weight=sample_weight)
        X = self._validate_features(X, reset=True)
        table = read_labels(y, n_rows(X), type(self).__name__, allow_missing=True)
        Y = table.labels  # (n, m); -1 where a label was not observed
        if table.observed is not None:
            Y = np.where(table.observed, Y, -1).astype(np.int8)
        set_label_attributes(self, table)
        weight = None if sample_weight is None else row_weights(sample_weight, len(Y), "X")
        routed, metadata = self._routed_params(sample_weight, fit_params)
        progress = FitProgress(self, self.verbose)
        kept = Y if weight is None else Y[weight > 0.0]
        complete = kept[(kept >= 0).all(axis=1)]
        self.nonempty_ = bool(len(complete) and complete.any(axis=1).all()) and self.multilabel_
        self.label_frequencies_ = _frequencies(Y, weight, self.classes_)
        Objective.checked(n_jobs=None, **self.decision_params()).constraints(Y.shape[1])
        self._fitted_params = self._threshold_params()
        for name in ("parts_", "thresholds_"):
            self.__dict__.pop(name, None)  # of an earlier fit
        self._find_factors(X, Y, weight)
        progress.factors_found(len(self.factors_), Y.shape[1])
        self._factor_models: Any
        if isinstance(self.method, str):
            check_not_frozen(self.estimator, Y.shape[1])
            methods = [METHODS[self.method](self.coherent) for _ in self.factors_]
            settings = LearnerSettings(
                self._learner(), self.calibration, self.cv, self.n_jobs, self.random_state, routed
            )
            settings = _with_groups(settings, X, Y, metadata)
            self._factor_models, held_out = fit_factor_models(
                X,
                Y,
                self.factors_,
                methods,
                weight,
                settings,
                progress,
                held_out=self.average != "samples",
            )
            if self.average != "samples" and held_out is not None:
                self._learn_thresholds(held_out, weight)
        else:
            if metadata:
                raise TypeError(f"fit got {', '.join(metadata)}: method is an object without cv")
            self._factor_models = fit_custom_models(
                self.method, X, Y, self.factors_, sample_weight, progress
            )
        if is_auto(self._learner()) and isinstance(self.method, str):
            self.parts_ = self._factor_models.models.learner.weights
            progress.parts_fitted(self.parts_)
        self.n_parameters_ = sum(
            len(factor) * int(np.count_nonzero(_cardinalities(kept[:, factor])))
            for factor in self.factors_
        )
        progress.end()
        return self

    def _check_parameters(self) -> None:
        """Raise if a constructor parameter is invalid."""
        check_beta(self.beta)
        check_zero_division(self.zero_division)
        check_flag(self.coherent, "coherent")
        check_learner(self.estimator)
        n_threads(self.n_jobs)
        resolve_nonempty(self.nonempty, False)
        _check_method(self.method)
        check_choice(self.average, "average", AVERAGES)
        if self.average == "samples":
            return
        if not isinstance(self.method, str) or self.method == "two-step":
            raise ValueError(
                f"average is {self.average!r} and method is {self.method!r}, which has no "
                "held-out probabilities: fit with average='samples', and decide(X, average=...)"
            )
        if self.constraints is not None or self.max_labels is not None or self.min_labels != 0:
            raise ValueError(
                f"average is {self.average!r}: min_labels, max_labels and constraints are about "
                "the label set of a row, and need average='samples'"
            )

    def _learner(self) -> Any:
        """Return the base learner, with the default resolved for the method."""
        if self.estimator is not None and not is_auto(self.estimator):
            return self.estimator
        known = isinstance(self.method, str) and self.method in METHODS
        return METHODS[self.method].default_learner if known else AUTO

    def _validate_features(self, X: Any, *, reset: bool) -> Any:
        if isinstance(self.method, str):
            return validate_features(self, X, self._learner(), reset=reset)
        # An object of the user validates the values itself.
        return validate_raw_features(self, X, accept_sparse=True, reset=reset)

    def _routed_params(
        self, sample_weight: Any, fit_params: dict[str, Any]
    ) -> tuple[dict[str, Any] | None, dict[str, Any]]:
        """Return the arguments of the base learner's fit, and those of the splitter.

        The first is None if only weights may be passed.
        """
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", sample_weight=sample_weight, **fit_params)
            return dict(routed.estimator.fit), dict(routed.splitter.split)
        groups = fit_params.pop("groups", None)
        metadata = {} if groups is None else {"groups": groups}
        if not fit_params:
            return None, metadata
        if is_auto(self._learner()) or is_ridge(self._learner()):
            raise TypeError(
                f"fit got {', '.join(fit_params)}: the learners 'auto' and 'ridge' take no "
                "argument but sample_weight"
            )
        if sample_weight is not None:
            fit_params["sample_weight"] = sample_weight
        return fit_params, metadata

    def _find_factors(self, X: Any, Y: Labels, weight: Floats | None) -> None:
        """Set `factors_`, and `factor_finder_` if an object finds them."""
        self.__dict__.pop("factor_finder_", None)  # of an earlier fit
        names = getattr(self, "label_names_in_", None)
        factors = self.factors
        if isinstance(factors, str) and factors == "ilf" and Y.shape[1] > 1:
            factors = ILFCompo(n_jobs=self.n_jobs, verbose=max(0, self.verbose - 1))
            if self.random_state is not None:
                factors.random_state = self.random_state
        if hasattr(factors, "fit") and not isinstance(factors, type):
            factors = self.factor_finder_ = _fit_finder(factors, X, Y, weight, self.random_state)
            if isinstance(factors, ILFCompo) and names is not None:
                factors.label_names_in_ = names  # for the displays
        self.factors_ = _partition(factors, Y.shape[1], names)

    def decision_params(self) -> dict[str, Any]:
        """Return the parameters of the decision, for the functions of `fgfm.decision`.

        Returns
        -------
        dict
            ``beta``, ``zero_division``, and ``nonempty`` as True or False, with "auto" resolved;
            also ``min_labels``, ``max_labels`` and ``constraints`` (by number) where they are set.

        Examples
        --------
        >>> from fgfm import FGFMClassifier
        >>> model = FGFMClassifier().fit([[0], [0], [1]], [[1, 0], [1, 0], [0, 1]])
        >>> model.decision_params()
        {'beta': 1.0, 'zero_division': 1.0, 'nonempty': True}
        """
        check_is_fitted(self)
        constraints = self.constraints
        if isinstance(constraints, Constraints):
            names = getattr(self, "label_names_in_", None)
            constraints = constraints.numbered(len(self.label_frequencies_), names)
        limits = {
            "min_labels": self.min_labels if self.min_labels != 0 else None,
            "max_labels": self.max_labels,
            "constraints": constraints,
        }
        return {
            "beta": check_beta(self.beta),
            "zero_division": check_zero_division(self.zero_division),
            "nonempty": resolve_nonempty(self.nonempty, self.nonempty_),
            **{name: value for name, value in limits.items() if value is not None},
        }

    def estimate(self, X: Any) -> list[FactorEstimate]:
        """Estimate P and d of each factor: the probabilities that the decision is based on.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        list of FactorEstimate
            One for each factor in `factors_`: P of shape (n, m_f, S_f) and d of shape
            (n, S_f + 1). A row that is decided by `label_frequencies_` (see Notes of the class)
            has the P and d of independent labels with these frequencies; if there is such a row,
            S_f is m_f.

        Examples
        --------
        >>> from sklearn.datasets import make_multilabel_classification
        >>> from fgfm import FGFMClassifier, decision
        >>> X, Y = make_multilabel_classification(100, n_classes=3, random_state=0)
        >>> model = FGFMClassifier(factors=[[0, 2], [1]], random_state=0).fit(X, Y)
        >>> estimates = model.estimate(X)
        >>> labels, expected_f = decision.from_factors(
        ...     [P for P, d in estimates],
        ...     model.factors_,
        ...     distributions=[d for P, d in estimates],
        ...     **model.decision_params(),
        ... )
        >>> bool((labels == model.predict(X)).all())
        True
        """
        blocks = self._map_blocks(X, self._estimate_block)
        return [concatenate_rows(of_factor) for of_factor in zip(*blocks, strict=True)]

    def decide(self, X: Any, *, average: str | None = None) -> Decision:
        """Compute the F-optimal label sets and their expected F-measure.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.
        average : {"samples", "macro", "weighted", "micro"}, optional
            Whether to maximise the F-measure of each row, of each label over all rows of X, or of
            all entries together; that of the classifier by default. But for "samples" the rows of
            X are decided together; decisions are exact also where labels depend on each other.

        Returns
        -------
        Decision
            ``labels`` of shape (n, m), 0 or 1, and ``expected_f``: of shape (n,), of shape (m,)
            for "macro" and "weighted", a number for "micro". With a flat y, ``labels`` of shape
            (n,), and a number for those too. A data frame or series each if X is a data frame.

        Notes
        -----
        Where the decision is conditioned on non-empty label sets (`nonempty`), every row is,
        whatever the average; a label may still be in no row.
        """
        average = self.average if average is None else average
        check_choice(average, "average", AVERAGES)
        if average == "samples":
            labels, expected_f = self._decide_rows(X)
        else:
            params = self.decision_params() | {"average": average, "n_jobs": self.n_jobs}
            labels, expected_f = decide_together(self.estimate(X), self.factors_, params)
        if not self.multilabel_:
            labels = labels[:, 0]
            expected_f = expected_f[0] if average in ("macro", "weighted") else expected_f
        return Decision(*as_frames(labels, expected_f, X, self._column_names(), average))

    def predict_proba(self, X: Any) -> Floats:
        """Predict the probability of each label.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        ndarray of shape (n, m)
            Marginal probabilities of the model, not conditioned on a non-empty set. With a flat y
            the probabilities of its classes.
        """
        p = np.concatenate(self._map_blocks(X, self._marginals))
        if self.multilabel_:
            return p
        return np.column_stack([1.0 - p, p])[:, : len(self.classes_)]

    def predict_cardinality_proba(self, X: Any) -> Floats:
        """Predict the distribution of the number of labels.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        ndarray of shape (n, S + 1)
            The probabilities of 0, 1, .. S labels, where S is the sum of the largest cardinalities
            of the factors.
        """

        def merged(block: Any) -> Floats:
            return merge_distributions([d for _, d in self._factor_models.estimate(block)])

        return np.concatenate(self._map_blocks(X, merged))

    @available_if(_models_label_sets)  # type: ignore[untyped-decorator]
    def predict_mode(self, X: Any) -> npt.NDArray[np.int8]:
        """Predict the most probable label sets: optimal for exact matches, not for the F-measure.

        Available with ``method="powerset"`` only.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        ndarray of shape (n, m)
            Label sets.
        """
        blocks = self._map_blocks(X, lambda block: self._factor_models.estimate(block, "mode"))
        labels = np.concatenate([np.hstack(block) for block in blocks])
        return np.asarray(labels[:, np.argsort(np.concatenate(self.factors_))])

    def _map_blocks(self, X: Any, function: Callable[[Any], Any]) -> list[Any]:
        """Return the results of a function of blocks of rows that bound the memory.

        The blocks do not depend on the number of threads, so that neither does the rounding.
        """
        check_is_fitted(self)
        X = self._validate_features(X, reset=False)
        models = self._factor_models
        floats = models.floats_per_row + 2 * len(self.label_frequencies_)
        # row_blocks makes blocks of 4 MiB: half a byte per float makes them of 64 MiB.
        blocks = row_blocks(n_rows(X), max(1, floats // 2))
        threads = n_threads(self.n_jobs)
        if threads == 1 or len(blocks) < 2 or not models.thread_safe:
            return [function(take_rows(X, rows)) for rows in blocks]
        jobs = (delayed(function)(take_rows(X, rows)) for rows in blocks)
        return list(Parallel(n_jobs=threads, require="sharedmem")(jobs))

    def _marginals(self, X: Any) -> Floats:
        """Return the probability of each label (n, m) for a block of rows."""
        p = self._binary_marginals(X)
        if p is None:
            p = np.minimum(label_sums(self._factor_models.estimate(X), self.factors_), 1.0)
        return p

    def _binary_marginals(self, X: Any) -> Floats | None:
        """Return the same if each factor is one label with a binary model, otherwise None."""
        p: Floats | None = self._factor_models.marginals(X)
        return None if p is None else p[:, np.argsort(np.concatenate(self.factors_))]

    def _labels(self, X: Any) -> Any:
        """Return the labels (n, m) of rows, each decided by itself."""
        check_is_fitted(self)
        if self.average == "samples":
            return self._decide_rows(X).labels
        self._check_parameters()  # limits may have been set since the fit
        asked = self._threshold_params()
        for name, value in self._fitted_params.items():
            if value != asked[name]:
                raise ValueError(
                    f"{name} is {asked[name]!r} and was {value!r} in fit, which computes the "
                    "thresholds of averages other than 'samples': fit again"
                )

        def above(block: Any) -> Labels:
            estimates = self._estimate_block(block)
            p = conditional_marginals(estimates, self.factors_, asked["nonempty"])
            return p > self.thresholds_

        return np.concatenate(self._map_blocks(X, above)).astype(np.int8)

    def _threshold_params(self) -> dict[str, Any]:
        """Return the parameters that `thresholds_` depend on."""
        params = self.decision_params()
        return {"average": self.average, "beta": params["beta"], "nonempty": params["nonempty"]}

    def _learn_thresholds(self, held_out: Predictions, weight: Floats | None) -> None:
        """Set `thresholds_`, from the rows with held-out predictions of all models."""
        rows = np.flatnonzero(held_out.complete_rows() & (True if weight is None else weight > 0))
        held_out = held_out.at(rows)
        models, nonempty = self._factor_models, self._fitted_params["nonempty"]
        # A first part without rows, in case that there are none.
        parts = [np.empty((0, len(self.label_frequencies_)))]
        for block in row_blocks(len(rows), max(1, models.floats_per_row // 2)):
            estimates = models.combine(held_out.at(block))
            parts.append(conditional_marginals(estimates, self.factors_, nonempty))
        entries = dense_entries(np.concatenate(parts))
        one = self.average == "micro"
        w = np.ones(len(rows)) if weight is None else weight[rows]
        f = limit_f(entries.as_one_label() if one else entries, w, self.beta, self.zero_division)
        # For large batches the optimal cut tends to F / (1 + beta^2), F the expected F-measure.
        cut = f / (1.0 + self.beta**2)
        self.thresholds_ = float(cut[0]) if one else cut

    def _score_average(self) -> str:
        return self.average

    def _decide_rows(self, X: Any) -> Decision:
        """Decide each row by itself: labels (n, m) and expected F-measures (n,)."""
        blocks = self._map_blocks(X, self._decide_block)
        labels, expected_f = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        return Decision(labels, expected_f)

    def _decide_block(self, X: Any) -> Decision:
        """Decide a block of rows."""
        params = self.decision_params()
        # The blocks of thread-safe models are decided in threads already.
        params["n_jobs"] = None if self._factor_models.thread_safe else self.n_jobs
        p = self._binary_marginals(X)
        if p is not None:
            if self._replaces_empty_rows():
                p[~p.any(axis=1)] = self.label_frequencies_
            return from_marginals(p, **params)
        estimates = self._estimate_block(X)
        return from_factors(
            [P for P, _ in estimates],
            [factor.tolist() for factor in self.factors_],
            distributions=[d for _, d in estimates],
            **params,
        )

    def _estimate_block(self, X: Any) -> list[FactorEstimate]:
        """Return P and d of each factor for a block of rows, as the decision needs them."""
        estimates: list[FactorEstimate] = self._factor_models.estimate(X)
        if not self._replaces_empty_rows():
            return estimates
        rows = ~np.any([P.any(axis=(1, 2)) for P, _ in estimates], axis=0)
        if not rows.any():
            return estimates
        return [
            replace_by_independent(one, rows, self.label_frequencies_[factor])
            for one, factor in zip(estimates, self.factors_, strict=True)
        ]

    def _replaces_empty_rows(self) -> bool:
        """Whether rows without any probability get that of the label frequencies.

        They contradict a decision that is conditioned on a non-empty set.
        """
        return bool(self.decision_params()["nonempty"] and self.label_frequencies_.any())


def _with_groups(settings: LearnerSettings, X: Any, Y: Labels, metadata: Any) -> LearnerSettings:
    """Return settings with the folds of a splitter that takes metadata such as groups."""
    if not metadata:
        return settings
    if is_auto(settings.estimator):
        raise ValueError(
            f"{', '.join(metadata)} is given and estimator is 'auto', which holds out single "
            "rows: choose another learner, or fgfm.FClassifier(FGFMClassifier(), cv=...)"
        )
    chosen = is_splitter(settings.calibration)
    balanced = Y[:, np.abs(Y.mean(axis=0) - 0.5).argmin()]  # splitters take one target
    folds = split_by_metadata(
        settings.calibration if chosen else settings.cv, X, balanced, metadata
    )
    settings = settings._replace(
        cv=folds, calibration="sigmoid" if chosen else settings.calibration
    )
    if isinstance(settings.estimator, RidgeLogistic):  # whose folds are its own
        settings = settings._replace(estimator=clone(settings.estimator).set_params(cv=folds))
    return settings


def _check_method(method: Any) -> None:
    """Raise unless `method` is a known name or an object with fit and estimate."""
    names = ", ".join(map(repr, METHODS))
    if isinstance(method, str):
        if method not in METHODS:
            raise ValueError(
                f"method is {method!r}: it must be one of {names}, or an object with fit and "
                "estimate"
            )
    elif isinstance(method, type) or not (hasattr(method, "fit") and hasattr(method, "estimate")):
        raise TypeError(
            f"method is {method!r}: it must be one of {names}, or an object (an instance) with "
            "fit and estimate"
        )


def _cardinalities(Y: Labels) -> Integers:
    """Return the numbers of labels that occur in rows with all labels."""
    return np.unique(Y[(Y >= 0).all(axis=1)].sum(axis=1, dtype=np.int64))


def _frequencies(Y: Labels, weight: Floats | None, classes: npt.NDArray[Any]) -> Floats:
    """Return the weighted frequency of each label (m,) where it is observed."""
    if (Y >= 0).all():
        return np.asarray(np.average(Y, axis=0, weights=weight))
    w = (Y >= 0) * (1.0 if weight is None else weight[:, None])  # (n, m)
    total = w.sum(axis=0)
    if not total.all():
        label = classes.tolist()[int(np.argmin(total))]
        raise ValueError(
            f"y has no value of label {label!r} in rows of positive weight: each label must be "
            "observed in at least one row"
        )
    return np.asarray((w * (Y == 1)).sum(axis=0) / total)


def _fit_finder(finder: Any, X: Any, Y: Labels, weight: Floats | None, random_state: Any) -> Any:
    """Fit a clone of an object that finds the factors, to rows of positive weight.

    These are rows in which all labels are observed.
    """
    used = (Y >= 0).all(axis=1) & (True if weight is None else weight > 0.0)
    rows = np.flatnonzero(used)
    if not len(rows):
        raise ValueError(
            "y has no row in which all labels are observed: label factors are found from such "
            "rows; choose factors='independent' or a partition"
        )
    finder = clone(finder)
    if getattr(finder, "random_state", random_state) is None:
        finder.random_state = random_state
    weights = {}
    if weight is not None and has_fit_parameter(finder, "sample_weight"):
        weights["sample_weight"] = weight[rows]
    X = X if len(rows) == len(Y) else take_rows(X, rows)
    finder.fit(X, Y[rows].astype(np.int8), **weights)
    return finder


def _partition(factors: Any, m: int, names: npt.NDArray[Any] | None) -> list[Integers]:
    """Return the labels of each factor, from a name, an object with factors_, or a partition."""
    if isinstance(factors, str):
        if factors == "independent":
            return list(np.arange(m)[:, None])
        if factors == "single" or (factors == "ilf" and m == 1):
            return [np.arange(m)]
        raise ValueError(
            f"factors is {factors!r}: it must be 'single', 'independent', 'ilf', a partition of "
            "the labels, or an object with fit(X, Y) and factors_"
        )
    if isinstance(factors, type):
        raise TypeError(
            f"factors is {factors!r}, a class: it must be an object (an instance) with fit(X, Y) "
            "and factors_"
        )
    return check_partition(getattr(factors, "factors_", factors), m, names)


def __dir__() -> list[str]:
    return __all__
