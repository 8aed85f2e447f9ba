"""FGFMClassifier: the classifier of Gasse and Aussem (2016)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn import get_config
from sklearn.base import BaseEstimator, clone
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from fgfm._factor_models import METHODS, FactorEstimate, FactorModels, check_learner
from fgfm._held_out import input_tags
from fgfm._label_sets import LabelSetMixin
from fgfm._utils.blocks import n_threads, row_blocks
from fgfm._utils.label_table import read_labels, set_label_attributes
from fgfm._utils.names import check_same_index
from fgfm._utils.parameters import check_parameters, record_parameters
from fgfm._utils.rows import as_frames, frame_library, n_rows, take_rows
from fgfm._utils.validation import (
    check_beta,
    check_choice,
    check_flag,
    check_partition,
    check_zero_division,
    resolve_nonempty,
    row_weights,
)
from fgfm.decision import Decision, from_factors
from fgfm.factors import ILFCompo
from fgfm.learner import validate_numbers
from fgfm.ridge import RidgeLogistic

__all__ = ["FGFMClassifier", "FactorEstimate"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Labels = npt.NDArray[np.bool_]


class FGFMClassifier(LabelSetMixin, BaseEstimator):  # type: ignore[misc]
    r"""F-GFM, the classifier of Gasse and Aussem (2016): label factors and their estimates of P.

    The labels are split into factors, which are independent of each other given the features x.
    For each factor f, models estimate :math:`p_{is} = p(y_i = 1, |y_f| = s \mid x)`, the
    probability of each label jointly with the number of labels of the factor. The prediction is
    the label set h that maximises

    .. math:: E[F_\beta(y, h) \mid x], \qquad
              F_\beta(y, h) = \frac{(1 + \beta^2) \, y \cdot h}{\beta^2 |y| + |h|}, \quad 0/0 = 1.

    This is the paper as it is: probabilities are not calibrated. `fgfm.FClassifier` corrects the
    probabilities of a learner by held-out rows, and usually predicts better.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        The base learner, with ``predict_proba`` for several classes. None is
        `fgfm.ridge.RidgeLogistic`, the learner of the paper (scale your features). Any other
        learner gets X as you pass it; with "two-step" one more column comes last, the number of
        labels.
    factors : {"ilf", "single", "independent"}, partition or estimator, default="ilf"
        Which labels are modelled together:

        - "ilf": those that tests find to depend on each other given the features
          (`fgfm.ILFCompo`); rows of weight 0 are removed, other weights are ignored by the tests;
        - "single": all of them (GFM);
        - "independent": none;
        - a partition, a list of lists of label numbers, or of label names if y has columns;
        - an object with ``fit(X, Y)`` that sets ``factors_``, e.g. ``ILFCompo(alpha=0.05)``.
    method : {"two-step", "direct"}, default="two-step"
        How P of a factor is estimated:

        - "two-step": one model of the number of labels s, and one of each label with s as a
          further feature: :math:`p_{is} = p(s \mid x) \, p(y_i = 1 \mid s, x)`;
        - "direct": one model of each label, whose classes are 0 without the label, and s with it.
    beta : float, default=1.0
        Importance of recall relative to precision. It takes effect in prediction, and so do
        `zero_division` and `nonempty`: ``set_params(beta=2.0)`` needs no new fit.
    zero_division : float, default=1.0
        Value of an empty prediction if the true set is empty, from 0 to 1.
    nonempty : {"auto"} or bool, default="auto"
        Condition the decision on a true label set that is not empty. "auto" does so if no training
        row is empty.
    coherent : bool, default=True
        Make the estimates of the models agree with each other, so that
        :math:`\sum_i p_{is} = s \, p(s)`; False leaves them as in the paper.
    cv : int, splitter or iterable, optional
        Folds in which the default learner chooses its penalty, 3 by default. Other learners
        have their own.
    n_jobs : int, optional
        Number of processes that fit models, and of threads that decide, as in joblib. It does not
        change the result.
    random_state : int, RandomState instance or None, default=None
        Seeds the folds, and base learners without a seed.

    Attributes
    ----------
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
    nonempty_ : bool
        Whether no training row is empty; always False with a flat y.
    n_parameters_ : int
        Number of probabilities p(y_i = 1, \|y_f\| = s) that describe a row, over all factors.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (p,)
        Names of the features, if X has string column names.

    See Also
    --------
    fgfm.FClassifier : F-optimal decisions from calibrated probabilities of any learner.
    fgfm.decision.from_factors : Decisions from P of each factor.

    Notes
    -----
    If the models give a row no label at all, although the decision is conditioned on a non-empty
    set, the row has the P and d of the training rows.

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
    >>> [factor.tolist() for factor in model.factors_]
    [[0, 3], [1, 2]]
    >>> model.predict(X[200:203])
    array([[0, 0, 1, 0],
           [1, 0, 1, 0],
           [0, 1, 0, 1]])
    >>> round(model.score(X[200:], Y[200:]), 2)
    0.66

    With trees instead of logistic regressions:

    >>> from sklearn.ensemble import RandomForestClassifier
    >>> model = FGFMClassifier(RandomForestClassifier(), factors="single", random_state=0)
    >>> model.fit(X[:200], Y[:200]).n_parameters_
    16
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        factors: Any = "ilf",
        method: str = "two-step",
        beta: float = 1.0,
        zero_division: float = 1.0,
        nonempty: Any = "auto",
        coherent: bool = True,
        cv: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.factors = factors
        self.method = method
        self.beta = beta
        self.zero_division = zero_division
        self.nonempty = nonempty
        self.coherent = coherent
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        accepted = input_tags(self._learner())
        tags.input_tags.sparse, tags.input_tags.allow_nan = accepted.sparse, accepted.allow_nan
        return tags

    def get_metadata_routing(self) -> Any:
        """Return the metadata routing of this estimator and of its base learner.

        Returns
        -------
        MetadataRouter
            The routing.
        """
        learner = self._learner()
        if self.estimator is None and get_config()["enable_metadata_routing"]:
            learner.set_fit_request(sample_weight=True)
        return (
            MetadataRouter(owner=type(self).__name__)
            .add_self_request(self)
            .add(estimator=learner, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
        )

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> FGFMClassifier:
        """Find the label factors and fit the models of each.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.
        y : array-like, sparse matrix or data frame of shape (n, m) or (n,)
            Labels, 0 or 1, one column each. A flat y is one label, and may have any two classes.
        sample_weight : array-like of shape (n,), optional
            Sample weights: weight 2 is a row twice, weight 0 none. Their scale matters: weights
            that sum to 1 count as one row of data.
        **fit_params : dict
            Further arguments for the ``fit`` of the base learner; with scikit-learn's metadata
            routing, what the learner requests.

        Returns
        -------
        FGFMClassifier
            The fitted estimator.
        """
        self._check_parameters()
        check_same_index(X=X, y=y, sample_weight=sample_weight)
        X = self._validate_features(X, reset=True)
        table = read_labels(y, n_rows(X), type(self).__name__)
        set_label_attributes(self, table)
        weight = None if sample_weight is None else row_weights(sample_weight, n_rows(X), "X")
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", sample_weight=sample_weight, **fit_params)
            fit_params = dict(routed.estimator.fit)
        elif sample_weight is not None:
            fit_params["sample_weight"] = weight
        learner = self._learner()
        unknown = sorted(set(fit_params) - {"sample_weight"})
        if type(learner) is RidgeLogistic and unknown:
            raise TypeError(
                f"fit got {', '.join(unknown)}: RidgeLogistic takes no argument but sample_weight"
            )
        kept = slice(None) if weight is None or weight.all() else np.flatnonzero(weight)
        Y = table.labels  # (n, m)
        self.nonempty_ = bool(Y[kept].any(axis=1).all()) and self.multilabel_
        self._find_factors(take_rows(X, kept), Y[kept], None if weight is None else weight[kept])
        how = {"n_jobs": self.n_jobs, "random_state": self.random_state}
        models = self._factor_models = FactorModels(self.method, self.coherent)
        models.fit(learner, X, Y, self.factors_, kept=kept, params=fit_params, **how)
        share = np.ones(len(Y)) if weight is None else weight
        self.n_parameters_, self._frequencies = 0, []
        for factor, s in zip(self.factors_, models.cardinalities, strict=True):
            self.n_parameters_ += len(factor) * int(np.count_nonzero(s))
            frequencies = _frequencies(Y[:, factor], share / share.sum(), int(s[-1]))
            self._frequencies.append(frequencies)
        record_parameters(self)
        return self

    def _check_parameters(self) -> None:
        """Raise if a constructor parameter is invalid."""
        check_choice(self.method, "method", METHODS)
        check_flag(self.coherent, "coherent")
        n_threads(self.n_jobs)
        self._decision_params(False)
        check_learner(self._learner())

    def _decision_params(self, nonempty: bool) -> dict[str, Any]:
        """Return the parameters of the decision, given what "auto" is for `nonempty`."""
        return {
            "beta": check_beta(self.beta),
            "zero_division": check_zero_division(self.zero_division),
            "nonempty": resolve_nonempty(self.nonempty, nonempty),
        }

    def _learner(self) -> Any:
        """Return the base learner."""
        if self.estimator is not None:
            return self.estimator
        return RidgeLogistic(cv=3 if self.cv is None else self.cv)

    def _validate_features(self, X: Any, *, reset: bool) -> Any:
        """Return features as numbers for ridge regressions, as they are for other learners."""
        learner = self._learner()
        if type(learner) is RidgeLogistic:
            return validate_numbers(self, X, allow_nan=False, reset=reset)
        if frame_library(X) is not None and n_rows(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
            return X
        accepts_sparse = input_tags(learner).sparse
        return validate_data(
            self,
            X,
            accept_sparse="csr" if accepts_sparse else False,
            dtype=None,
            ensure_all_finite=False,  # missing values are left to the learner
            reset=reset,
        )

    def _find_factors(self, X: Any, Y: Labels, weight: Floats | None) -> None:
        """Set `factors_`, and `factor_finder_` if an object finds them."""
        self.__dict__.pop("factor_finder_", None)  # of an earlier fit
        m, names = Y.shape[1], getattr(self, "label_names_in_", None)
        factors = self.factors
        if isinstance(factors, type):
            raise TypeError(
                f"factors is {factors!r}, a class: it must be an object (an instance) with "
                "fit(X, Y) and factors_"
            )
        if isinstance(factors, str):
            check_choice(factors, "factors", ("ilf", "single", "independent"))
            if factors == "ilf" and m > 1:
                factors = ILFCompo(n_jobs=self.n_jobs)
                if self.random_state is not None:
                    factors.random_state = self.random_state
            else:
                factors = list(np.arange(m)[:, None]) if factors == "independent" else [range(m)]
        if hasattr(factors, "fit"):
            finder = self.factor_finder_ = clone(factors)
            if getattr(finder, "random_state", self.random_state) is None:
                finder.random_state = self.random_state
            weights = {}
            if weight is not None and has_fit_parameter(finder, "sample_weight"):
                weights["sample_weight"] = weight
            finder.fit(X, Y.astype(np.int8), **weights)
            factors = finder.factors_
            if isinstance(finder, ILFCompo) and names is not None:
                finder.label_names_in_ = names  # for the displays
        self.factors_ = check_partition(factors, m, names=names)

    def estimate(self, X: Any) -> list[FactorEstimate]:
        """Estimate P and d of each factor: the probabilities that the decision is based on.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        list of FactorEstimate
            One for each factor in `factors_`: P of shape (n, m_f, S_f), where S_f is the largest
            number of its labels in training, and d of shape (n, S_f + 1).

        Examples
        --------
        >>> from sklearn.datasets import make_multilabel_classification
        >>> from fgfm import decision
        >>> from fgfm import FGFMClassifier
        >>> X, Y = make_multilabel_classification(100, n_classes=3, random_state=0)
        >>> model = FGFMClassifier(factors=[[0, 2], [1]], nonempty=False, random_state=0).fit(X, Y)
        >>> estimates = model.estimate(X)
        >>> labels, expected_f = decision.from_factors(
        ...     [P for P, d in estimates],
        ...     model.factors_,
        ...     distributions=[d for P, d in estimates],
        ... )
        >>> bool((labels == model.predict(X)).all())
        True
        """
        blocks = self._map_blocks(X, self._estimate)
        return [
            FactorEstimate(*(np.concatenate(parts) for parts in zip(*of_factor, strict=True)))
            for of_factor in zip(*blocks, strict=True)
        ]

    def _estimate(self, X: Any) -> list[FactorEstimate]:
        """Return P and d of each factor for a block of rows."""
        estimates = self._factor_models.estimate(X)
        if self._decision_params(self.nonempty_)["nonempty"]:
            without = ~np.any([P.any(axis=(1, 2)) for P, _ in estimates], axis=0)
            if without.any():
                for (P, d), frequencies in zip(estimates, self._frequencies, strict=True):
                    P[without], d[without] = frequencies
        return estimates

    def decide(self, X: Any) -> Decision:
        """Compute the F-optimal label sets and their expected F-measure.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        Decision
            ``labels`` of shape (n, m), 0 or 1, or (n,) with a flat y, and ``expected_f`` of shape
            (n,). A data frame or series each if X is a data frame.
        """
        labels, expected_f = self._decide_rows(X)
        if not self.multilabel_:
            labels = labels[:, 0]
        return Decision(*as_frames(labels, expected_f, X, self._column_names(), "samples"))

    def predict_proba(self, X: Any) -> Floats:
        """Predict the probability of each label.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        ndarray of shape (n, m)
            The sums of P over the number of labels, not conditioned on a non-empty set. With a
            flat y the probabilities of its classes.
        """

        def marginals(block: Any) -> Floats:
            p = np.empty((n_rows(block), sum(map(len, self.factors_))))
            for factor, (P, _) in zip(self.factors_, self._estimate(block), strict=True):
                p[:, factor] = P.sum(axis=2)
            return np.minimum(p, 1.0)

        p = np.concatenate(self._map_blocks(X, marginals))
        if self.multilabel_:
            return p
        return np.column_stack([1.0 - p, p])[:, : len(self.classes_)]

    def _labels(self, X: Any) -> Any:
        return self._decide_rows(X).labels

    def _decide_rows(self, X: Any) -> Decision:
        """Decide each row: labels (n, m) and expected F-measures (n,)."""

        def decide(block: Any) -> Decision:
            Ps, ds = zip(*self._estimate(block), strict=True)
            params = self._decision_params(self.nonempty_)
            factors = [factor.tolist() for factor in self.factors_]
            return from_factors(Ps, factors, distributions=ds, n_jobs=self.n_jobs, **params)

        blocks = self._map_blocks(X, decide)
        labels, expected_f = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        return Decision(labels, expected_f)

    def _map_blocks(self, X: Any, function: Callable[[Any], Any]) -> list[Any]:
        """Return the results of a function of blocks of rows that bound the memory."""
        check_is_fitted(self)
        check_parameters(self, {"beta", "zero_division", "nonempty", "n_jobs"})
        X = self._validate_features(X, reset=False)
        floats = sum(
            len(factor) * (4 * int(s[-1]) + 2)
            for factor, s in zip(self.factors_, self._factor_models.cardinalities, strict=True)
        )
        # row_blocks makes blocks of 4 MiB: half a byte per float makes them of 64 MiB.
        return [function(take_rows(X, rows)) for rows in row_blocks(n_rows(X), floats // 2)]


def _frequencies(Y: Labels, share: Floats, largest: int) -> tuple[Floats, Floats]:
    """Return P (m, S) and d (S + 1,) of the training rows; `share` (n,) are their weights."""
    S, s = max(1, largest), Y.sum(axis=1)
    of_number = np.where(s[:, None] == np.arange(S + 1), share[:, None], 0.0)  # (n, S + 1)
    return Y.T.astype(np.float64) @ of_number[:, 1:], of_number.sum(axis=0)


def __dir__() -> list[str]:
    return __all__
