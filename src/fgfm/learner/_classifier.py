"""StackClassifier: the default learner as a scikit-learn classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from fgfm._utils.blocks import n_threads, run_blocks
from fgfm._utils.label_table import format_labels, read_labels, set_label_attributes
from fgfm._utils.names import check_same_index
from fgfm._utils.parameters import check_parameters, record_parameters
from fgfm._utils.progress import CallbackSupportMixin, FitProgress, with_callbacks
from fgfm._utils.rows import n_rows, on_all_rows
from fgfm._utils.validation import row_weights
from fgfm.learner._features import UsedFeatures
from fgfm.learner._inputs import validate_numbers
from fgfm.learner._parts import PERCENT, StackFit

__all__ = ["StackClassifier"]

Floats = npt.NDArray[np.float64]

_MOST_NUMBERS = 100  # of labels that rows have; more are not learned
_LEAST = 0.002  # probability of a number of labels, before normalisation


class StackClassifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Multi-label classifier that needs no setting: several models of all labels, stacked.

    A random forest and two ridge regressions predict all labels at once; many rows have other
    parts where these pay: logistic regressions on counts, boosted trees on other features. Each
    part has held-out predictions of the training rows, from which a logistic regression of each
    label learns how to combine them. The held-out probabilities of the stack are an attribute, so
    that what is learned from probabilities (calibrations, thresholds, label sets) needs no folds.

    Parameters
    ----------
    n_jobs : int, optional
        Number of threads, as in joblib. It does not change the result.
    random_state : int, RandomState instance or None, default=None
        Seeds the forest and the folds of the further parts.
    verbose : int, default=0
        1 prints the progress of the fit at most every five seconds, 2 of every step.

    Attributes
    ----------
    oob_decision_function_ : ndarray of shape (n, m) or (n, K)
        Held-out probabilities of the training rows, in the form of `predict_proba`; NaN in rows of
        weight 0.
    oob_cardinality_ : ndarray of shape (n, S + 1) or None
        Held-out distributions of the number of labels of the training rows, 0 to S, the largest
        one in training. None with a flat y, or if the number is the same in all rows.
    classes_ : ndarray
        The labels: their names, or 0 to m - 1. With a flat y its classes.
    multilabel_ : bool
        False if y was flat.
    label_names_in_ : ndarray of shape (m,)
        The columns of y, if it has any.
    parts_ : dict of str to float
        The parts, and the weights that labels share.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (p,)
        Names of the features, if X has string column names.

    See Also
    --------
    fgfm.FDecider : F-optimal decisions from its probabilities.

    Notes
    -----
    X may be sparse, and a dense X may have missing values. It needs no scaling.

    The forest and the ridge regressions also learn the number of labels of a row, of which
    features may say more than the probabilities of the labels do. `FClassifier` uses it.

    Missing labels: each part takes an unknown label as its mean or leaves the row out, and the
    stack of a label is fitted to the rows in which it is observed.

    A label that does not vary in training is predicted with certainty. The classes of a flat y are
    predicted one against the rest, and the probabilities normalised.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from fgfm import FDecider, StackClassifier
    >>> X, Y = make_multilabel_classification(300, n_classes=4, random_state=0)
    >>> model = StackClassifier(random_state=0).fit(X[:200], Y[:200])
    >>> model.predict_proba(X[200:202]).round(1)
    array([[0. , 0. , 1. , 0. ],
           [0.9, 0. , 0.8, 0. ]])
    >>> decider = FDecider().fit(model.oob_decision_function_, Y[:200])
    >>> round(decider.score(model.predict_proba(X[200:]), Y[200:]), 2)
    0.79
    """

    accepts_missing_labels = True  # `FClassifier` asks

    def __init__(
        self, *, n_jobs: int | None = None, random_state: Any = None, verbose: int = 0
    ) -> None:
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> StackClassifier:
        """Fit all parts and the stack.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features; NaN for missing values in a dense X.
        y : array-like, sparse matrix or data frame of shape (n, m) or (n,)
            Labels, 0 or 1, one column each; NaN or -1 for labels that were not observed. Or the
            classes of a flat y.
        sample_weight : array-like of shape (n,), optional
            Sample weights: weight 2 is a row twice, weight 0 none.

        Returns
        -------
        StackClassifier
            The fitted estimator.
        """
        n_threads(self.n_jobs)  # raises if it is invalid
        check_same_index(X=X, y=y, sample_weight=sample_weight)
        X = validate_numbers(self, X, allow_nan=True, reset=True)
        table = read_labels(
            y, n_rows(X), type(self).__name__, allow_missing=True, allow_classes=True
        )
        n = len(table.labels)
        set_label_attributes(self, table)
        weight = np.ones(n) if sample_weight is None else row_weights(sample_weight, n, "X")
        rows = np.flatnonzero(weight > 0.0)
        Y = table.labels.astype(np.int64)
        if table.observed is not None:
            Y[~table.observed] = -1
        progress = FitProgress(self, self.verbose)
        progress.begin_models(PERCENT, "percent")
        self._constants = _constants(Y[rows])
        self._varying = np.flatnonzero(np.isnan(self._constants))
        self._features = UsedFeatures().fit(X if len(rows) == n else X[rows])
        self._parts: dict[str, Any] = {}
        self._numbers = np.empty(0, dtype=np.int64)
        self.oob_cardinality_ = None
        held_out = np.empty((len(rows), 0))
        if len(self._varying):
            labels = np.where(Y[rows] < 0, np.nan, Y[rows])[:, self._varying]
            numbers = self._indicators(Y[rows])
            seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
            fit = StackFit(
                self._features.transform(X if len(rows) == n else X[rows]),
                labels.astype(np.float32),
                numbers,
                weight[rows],
                seed,
                self.n_jobs,
                progress.models_done,
            )
            self._parts, self._stack = fit.parts, fit.stack
            held_out = self._stack.predict(list(fit.held_out.values()))
            if len(self._numbers):
                self._number_stack = fit.number_stack
                d = self._cardinality(fit.held_out_numbers)
                # The number may be known in no row that a row shares a leaf with.
                d = np.where(np.isnan(d), np.nanmean(d, axis=0), d)
                self.oob_cardinality_ = on_all_rows(d, rows, n)
        progress.models_done(PERCENT)
        shared = self._stack.shared.tolist() if self._parts else []
        self.parts_ = dict(zip(self._parts, shared, strict=True))
        self.oob_decision_function_ = on_all_rows(self._proba(held_out), rows, n)
        progress.parts_fitted(self.parts_)
        progress.end()
        record_parameters(self)
        return self

    def _indicators(self, Y: npt.NDArray[np.int64]) -> Any:
        """Return indicators (n, K) of the number of labels, and set the K numbers."""
        complete = (Y >= 0).all(axis=1)
        sizes = Y.sum(axis=1)
        numbers = np.unique(sizes[complete])
        if self.multilabel_ and 1 < len(numbers) <= _MOST_NUMBERS:
            self._numbers = numbers
        indicators = (sizes[:, None] == self._numbers).astype(np.float32)
        indicators[~complete] = np.nan
        return indicators

    def _cardinality(self, logits: list[Any]) -> Floats:
        """Return distributions (n, S + 1) of the number of labels from the logits of parts."""
        p = np.maximum(self._number_stack.predict(logits), _LEAST)
        d = np.zeros((len(p), int(self._numbers[-1]) + 1))
        d[:, self._numbers] = p / p.sum(axis=1, keepdims=True)
        return d

    def _proba(self, varying: Floats) -> Floats:
        """Return the probabilities of all labels or classes from those of labels that vary."""
        p = np.tile(self._constants, (len(varying), 1))  # (n, m)
        p[:, self._varying] = varying
        if self.multilabel_:
            return p
        if len(self.classes_) < 3:
            return np.column_stack([1.0 - p, p])[:, : len(self.classes_)]
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def predict_proba(self, X: Any) -> Floats:
        """Predict the probability of each label.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        ndarray of shape (n, m) or (n, K)
            Probabilities of the labels; of the classes if y was flat.
        """
        return self.predict_with_cardinality(X)[0]

    def predict_with_cardinality(self, X: Any) -> tuple[Floats, Floats | None]:
        """Predict the probability of each label, and the distribution of the number of labels.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        proba : ndarray of shape (n, m) or (n, K)
            Probabilities, as by `predict_proba`.
        cardinality : ndarray of shape (n, S + 1) or None
            Distributions of the number of labels, as in `oob_cardinality_`.
        """
        check_is_fitted(self)
        check_parameters(self, ("n_jobs", "verbose"))
        X = validate_numbers(self, X, allow_nan=True, reset=False)
        if not self._parts:
            return self._proba(np.empty((X.shape[0], 0))), None
        X, m = self._features.transform(X), len(self._varying)

        def of_rows(rows: slice) -> tuple[Floats, Floats | None]:
            logits = [part.predict(X[rows]) for part in self._parts.values()]
            p = self._stack.predict([values[:, :m] for values in logits])
            if not len(self._numbers):
                return p, None
            return p, self._cardinality([v[:, m:] for v in logits if v.shape[1] > m])

        row_bytes = 8 * (X.shape[1] + 8 * (m + len(self._numbers)))
        blocks = run_blocks(X.shape[0], row_bytes, n_threads(self.n_jobs), of_rows)
        p, d = zip(*blocks, strict=True)
        return self._proba(np.concatenate(p)), None if d[0] is None else np.concatenate(d)

    def predict(self, X: Any) -> Any:
        """Predict the labels with a probability above 0.5, or the most probable class.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        ndarray or sparse matrix of shape (n, m), or ndarray of shape (n,)
            Labels, of the dtype of y in `fit`; sparse if y was sparse; classes if y was flat.
        """
        proba = self.predict_proba(X)
        if not self.multilabel_:
            return self.classes_[proba.argmax(axis=1)]
        return format_labels(proba > 0.5, self._label_form, self._label_dtype, self.classes_)


def _constants(Y: npt.NDArray[np.int64]) -> Floats:
    """Return the value of each label (m,) that does not vary; NaN of others.

    -1 is a label that is not known; one that is never known counts as 0.
    """
    without, present = (Y == 0).any(axis=0), (Y == 1).any(axis=0)
    return np.where(without & present, np.nan, present.astype(float))
