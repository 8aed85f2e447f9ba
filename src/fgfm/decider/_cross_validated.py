"""FDeciderCV: a multi-label classifier with F-optimal decisions, around any model."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.utils import get_tags
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from fgfm._utils.label_table import LabelTable, read_labels
from fgfm._utils.rows import frame_library, frame_maker, n_rows, take_rows
from fgfm._utils.validation import row_weights
from fgfm.decider._decider import FDecider
from fgfm.decision import Decision

__all__ = ["FDeciderCV"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_FOLDS = 5


class FDeciderCV(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A model with F-optimal decisions, learned from its cross-validated probabilities.

    `fit` predicts the probabilities of all rows in folds, fits an `FDecider` to them, and fits the
    model to all rows. For multi-label problems, and binary ones, it takes the place of
    scikit-learn's ``TunedThresholdClassifierCV``, which tunes a threshold for one binary label.

    Parameters
    ----------
    estimator : scikit-learn classifier
        The model, which predicts all labels: a forest, a network, a pipeline,
        ``MultiOutputClassifier(...)``, ``ClassifierChain(...)``. It needs ``predict_proba``, or
        ``decision_function``, which is then calibrated.
    cv : int, splitter, iterable or "prefit", optional
        Folds; 5 by default, shuffled. "prefit" takes a fitted model, and the rows of `fit` as
        validation rows, which the model must not be trained on; so does a ``FrozenEstimator``.
    beta, average, calibration, nonempty, zero_division, min_labels, max_labels, constraints : object
        As in `FDecider`.
    n_jobs : int, optional
        Number of processes that fit folds, and of threads that decide, as in joblib. It does not
        change the result.
    random_state : int, RandomState instance or None, default=None
        Seeds the default folds. The model keeps its own seed.

    Attributes
    ----------
    estimator_ : estimator
        The model, fitted to all rows.
    decider_ : FDecider
        The fitted decider. Its ``thresholds_`` are those of "macro" and "micro".
    classes_ : ndarray
        The labels: their names, or 0 to m - 1. With a flat y its two classes.
    multilabel_ : bool
        False if y was flat.
    n_features_in_ : int
        Number of features, if the model has it.

    See Also
    --------
    FDecider : The same for probabilities that are there already.
    fgfm.FGFMClassifier : A classifier with a model of its own for the number of labels.

    Notes
    -----
    A label that is constant in the training rows of a fold is left out of the fit there, since
    most models refuse it; its probability is then 0 or 1.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from fgfm import FDeciderCV
    >>> X, Y = make_multilabel_classification(300, n_classes=4, random_state=0)
    >>> forest = RandomForestClassifier(50, random_state=0)
    >>> model = FDeciderCV(forest, average="macro", random_state=0).fit(X[:200], Y[:200])
    >>> model.predict(X[200:202])
    array([[0, 0, 1, 1],
           [1, 1, 1, 1]])
    >>> round(model.score(X[200:], Y[200:]), 2)
    0.81
    """

    def __init__(
        self,
        estimator: Any,
        *,
        cv: Any = None,
        beta: float = 1.0,
        average: str = "samples",
        calibration: str | None = "auto",
        nonempty: Any = "auto",
        zero_division: float = 1.0,
        min_labels: int = 0,
        max_labels: int | None = None,
        constraints: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.cv = cv
        self.beta = beta
        self.average = average
        self.calibration = calibration
        self.nonempty = nonempty
        self.zero_division = zero_division
        self.min_labels = min_labels
        self.max_labels = max_labels
        self.constraints = constraints
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        inner = get_tags(self.estimator).input_tags
        tags.input_tags.sparse = inner.sparse
        tags.input_tags.allow_nan = inner.allow_nan
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> FDeciderCV:
        """Predict all rows in folds, fit the decider to them, and the model to all rows.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.
        y : array-like, sparse matrix or data frame of shape (n, m) or (n,)
            Labels, 0 or 1, one column each. A flat y may have any two classes.
        sample_weight : array-like of shape (n,), optional
            Sample weights, for the decider and for a model that accepts them.
        **fit_params : dict
            Further arguments for the ``fit`` of the model.

        Returns
        -------
        FDeciderCV
            The fitted estimator.
        """
        prefit = isinstance(self.cv, str) and self.cv == "prefit"
        if isinstance(self.cv, str) and not prefit:
            raise ValueError(
                f"cv is {self.cv!r}: it must be 'prefit', a number of folds, a splitter or an "
                "iterable"
            )
        decider = self._make_decider()
        decider._check_parameters()
        table = read_labels(y, n_rows(X), type(self).__name__)
        weight = None if sample_weight is None else row_weights(sample_weight, n_rows(X), "X")
        if prefit:
            check_is_fitted(self.estimator)
            self.estimator_ = self.estimator
            self._fitted = np.arange(table.labels.shape[1])
            self._constants = np.zeros(table.labels.shape[1])
            proba = self._marginals(X)
        else:
            if weight is not None:
                if not has_fit_parameter(self.estimator, "sample_weight"):
                    raise ValueError(
                        f"sample_weight is given and {type(self.estimator).__name__}.fit does "
                        "not accept it"
                    )
                fit_params = fit_params | {"sample_weight": weight}
            proba = self._cross_validate(X, table, fit_params)
            fitted = _fit(self.estimator, X, table, None, fit_params)
            self.estimator_, self._fitted, self._constants = fitted
        rows = np.flatnonzero(~np.isnan(proba).any(axis=1))
        self.decider_ = decider.fit(
            proba[rows] if len(rows) < len(proba) else proba,
            take_rows(y, rows) if len(rows) < len(proba) else y,
            None if weight is None else weight[rows],
        )
        self.classes_ = self.decider_.classes_
        self.multilabel_ = self.decider_.multilabel_
        if hasattr(self.estimator_, "n_features_in_"):
            self.n_features_in_ = self.estimator_.n_features_in_
        if hasattr(self.estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.estimator_.feature_names_in_
        return self

    def _make_decider(self) -> FDecider:
        return FDecider(
            beta=self.beta,
            average=self.average,
            calibration=self.calibration,
            nonempty=self.nonempty,
            zero_division=self.zero_division,
            min_labels=self.min_labels,
            max_labels=self.max_labels,
            constraints=self.constraints,
            n_jobs=self.n_jobs,
        )

    def _cross_validate(self, X: Any, table: LabelTable, fit_params: dict[str, Any]) -> Floats:
        """Return out-of-fold probabilities (n, m); NaN for rows in no test fold."""
        n, m = table.labels.shape
        proba = np.full((n, m), np.nan)
        folds = list(self._splitter(table).split(np.zeros((n, 1)), _targets(table)))
        jobs = (
            delayed(_predict_fold)(self.estimator, X, table, train, test, fit_params)
            for train, test in folds
        )
        for (_, test), values in zip(folds, Parallel(n_jobs=self.n_jobs)(jobs), strict=True):
            proba[test] = values
        return proba

    def _splitter(self, table: LabelTable) -> Any:
        flat = table.form == "flat"
        if self.cv is None or isinstance(self.cv, (int, np.integer)):
            n_folds = _FOLDS if self.cv is None else int(self.cv)
            if flat and np.bincount(table.labels[:, 0], minlength=2).min() >= n_folds:
                return StratifiedKFold(n_folds, shuffle=True, random_state=self.random_state)
            return KFold(n_folds, shuffle=True, random_state=self.random_state)
        return check_cv(self.cv, _targets(table), classifier=flat)

    def _marginals(self, X: Any) -> Floats:
        """Return the probabilities (n, m) of the fitted model."""
        return _all_labels(
            _predict(self.estimator_, X, len(self._fitted)), self._fitted, self._constants
        )

    def _probabilities(self, X: Any) -> Any:
        """Return the probabilities of the fitted model; as a data frame if X is one."""
        check_is_fitted(self)
        p = self._marginals(X)
        if frame_library(X) is None or not self.multilabel_:
            return p
        return frame_maker(X, "decide")(p, list(self.classes_))

    def decide(self, X: Any) -> Decision:
        """Compute F-optimal label sets and their expected F-measure, as `FDecider.decide`.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        Decision
            ``labels`` and ``expected_f``.
        """
        return self._decider_on(X, "decide")

    def predict(self, X: Any) -> Any:
        """Predict F-optimal label sets, each row by itself.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        ndarray or sparse matrix of shape (n, m), or ndarray of shape (n,)
            Labels, of the dtype of y in `fit`; sparse if y was sparse; classes if y was flat.
        """
        return self._decider_on(X, "predict")

    def predict_frame(self, X: Any) -> Any:
        """Predict F-optimal label sets as a data frame.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        data frame of shape (n, m)
            One column per label, with the index of X.
        """
        return self._decider_on(X, "predict_frame")

    def expected_f(self, X: Any) -> Any:
        """Compute the F-measure to expect of the label sets that `decide` returns.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        ndarray of shape (n,) or (m,), or float
            One value per row for "samples", per label for "macro", and one for "micro".
        """
        return self._decider_on(X, "expected_f")

    def predict_proba(self, X: Any) -> Any:
        """Return calibrated probabilities.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        ndarray of shape (n, m)
            The probability of each label. With a flat y the probabilities of its classes.
        """
        check_is_fitted(self)
        return self.decider_.predict_proba(self._marginals(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Compute the F-measure of the predictions, for the average and beta of this estimator.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.
        y : array-like, sparse matrix or data frame of shape (n, m) or (n,)
            True labels.
        sample_weight : array-like of shape (n,), optional
            Sample weights.

        Returns
        -------
        float
            The F-measure.
        """
        check_is_fitted(self)
        return self.decider_.score(self._marginals(X), y, sample_weight)

    def _decider_on(self, X: Any, method: str) -> Any:
        return getattr(self.decider_, method)(self._probabilities(X))


def _targets(table: LabelTable) -> Any:
    """Return the labels as a base estimator takes them: flat if y is."""
    labels = table.labels.astype(np.int64)
    return labels[:, 0] if table.form == "flat" else labels


def _fit(
    estimator: Any, X: Any, table: LabelTable, rows: Integers | None, params: dict[str, Any]
) -> tuple[Any, Integers, Floats]:
    """Fit a clone to the labels that vary in some rows.

    Returns the clone, the labels that it was fitted to, and the values of the others.
    """
    Y = table.labels if rows is None else table.labels[rows]
    values = Y.mean(axis=0)  # (m,) 0 or 1 for constant labels
    varies = np.flatnonzero((values > 0.0) & (values < 1.0))
    if not len(varies):
        raise ValueError(
            "all labels are constant in the training rows, of which there are "
            f"{len(Y)}: each class must occur"
        )
    if rows is not None:
        X = take_rows(X, rows)
        params = {
            key: value[rows] if np.ndim(value) and len(value) == len(table.labels) else value
            for key, value in params.items()
        }
    if table.form == "flat":
        y = table.classes[Y[:, 0].astype(np.int64)]
    else:
        y = Y[:, varies].astype(np.int64)
    return clone(estimator).fit(X, y, **params), varies, values


def _predict_fold(
    estimator: Any,
    X: Any,
    table: LabelTable,
    train: Integers,
    test: Integers,
    params: dict[str, Any],
) -> Floats:
    """Fit to the training rows of a fold; return the probabilities of its test rows."""
    fitted, varies, values = _fit(estimator, X, table, train, params)
    return _all_labels(_predict(fitted, take_rows(X, test), len(varies)), varies, values)


def _all_labels(p: Floats, fitted: Integers, values: Floats) -> Floats:
    """Return probabilities of all labels: those of the fitted ones, and the constant values."""
    if len(fitted) == len(values):
        return p
    everything = np.tile(values, (len(p), 1))
    everything[:, fitted] = p
    return everything


def _predict(estimator: Any, X: Any, m: int) -> Floats:
    """Return the probabilities (n, m) of the labels from a fitted model of any kind.

    ``predict_proba`` may return an array (n, m), a list of arrays (n, classes), or the two columns
    of a binary model. Decision values become probabilities by a sigmoid, to be calibrated.
    """
    name = type(estimator).__name__
    if hasattr(estimator, "predict_proba"):
        found = estimator.predict_proba(X)
        if isinstance(found, list):
            classes = list(estimator.classes_)
            columns = [_class_one(part, c) for part, c in zip(found, classes, strict=True)]
            found = np.column_stack(columns)
        elif m == 1 and np.shape(found)[1:] == (2,):
            found = np.asarray(found)[:, 1:]
    elif hasattr(estimator, "decision_function"):
        found = np.asarray(estimator.decision_function(X), dtype=np.float64)
        found = expit(found[:, None] if found.ndim == 1 else found)
    else:
        raise TypeError(
            f"estimator {name} has neither predict_proba nor decision_function: it must predict "
            "probabilities"
        )
    found = found.toarray() if sparse.issparse(found) else np.asarray(found, dtype=np.float64)
    if found.ndim != 2 or found.shape[1] != m:
        raise ValueError(
            f"estimator {name} predicts an array of shape {found.shape} and y has {m} labels: it "
            "must predict one probability for each label"
        )
    return found


def _class_one(part: Any, classes: Any) -> Floats:
    """Return the probabilities of class 1; 0 if the label was absent from all training rows."""
    at = np.flatnonzero(np.asarray(classes) == 1)
    part = np.asarray(part, dtype=np.float64)
    return part[:, at[0]] if len(at) else np.zeros(len(part))
