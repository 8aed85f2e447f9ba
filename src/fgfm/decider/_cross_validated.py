"""FDeciderCV: a multi-label classifier with F-optimal decisions, around any model."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from fgfm._utils.folds import make_folds, split_by_metadata
from fgfm._utils.label_table import read_labels, set_label_attributes
from fgfm._utils.names import check_same_index
from fgfm._utils.parallel import run_jobs
from fgfm._utils.rows import n_rows, take_rows
from fgfm._utils.validation import clip_probabilities, row_weights
from fgfm.decider._decider import DeciderMixin, FDecider
from fgfm.decider._inputs import Probabilities
from fgfm.decider._known_rows import feature_entries, known_rows, row_digests
from fgfm.decider._models import (
    TrainingRows,
    check_classes,
    check_model,
    check_not_one_label,
    predict_all,
)
from fgfm.estimation._entries import Entries, dense_entries
from fgfm.estimation._learner import learner_input_tags

__all__ = ["FDeciderCV"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_FOLDS = 5
_OF_MODEL = {"estimator", "cv", "random_state"}  # other parameters are those of the decider


class FDeciderCV(DeciderMixin, BaseEstimator):  # type: ignore[misc]
    """A model with F-optimal decisions, learned from its cross-validated probabilities.

    `fit` predicts the probabilities of all rows in folds, fits an `FDecider` to them, and fits the
    model to all rows. Then `predict` returns the label sets that maximise the expected F-measure.

    Parameters
    ----------
    estimator : scikit-learn classifier
        The model: a forest, a network, a pipeline, ``ClassifierChain(...)``. It needs
        ``predict_proba``, or ``decision_function``, which is then calibrated. One that refuses a
        matrix y, and whose tags do not promise to take it, is fitted to each label, by a
        ``MultiOutputClassifier``, or a ``OneVsRestClassifier`` without ``predict_proba``.
    cv : int, splitter, iterable or "prefit", optional
        Folds; 5 by default, shuffled, and stratified if y is flat. "prefit" takes a fitted model,
        and the rows of `fit` as validation rows, which the model must not be trained on; so does
        a ``FrozenEstimator``.
    beta, average, calibration, nonempty, zero_division : object
        As in `FDecider`.
    min_labels, max_labels, constraints, min_precision, min_recall, confidence : object
        As in `FDecider`. `confidence` needs a fitted model, with ``cv="prefit"``: the models of
        folds are not the one that predicts, nor are their rows independent.
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
        The labels: their names, or 0 to m - 1. With a flat y its classes.
    multilabel_ : bool
        False if y was flat.
    n_features_in_ : int
        Number of features, if the model has it.

    See Also
    --------
    FDecider : The same for the probabilities of a model that is fitted elsewhere.
    fgfm.FGFMClassifier : A classifier that also models the number of labels.

    Notes
    -----
    How it differs from scikit-learn's ``TunedThresholdClassifierCV``:

    - it takes several labels, and maximises the F-measure of rows, labels or all entries;
    - thresholds are not tried out on the rows, which overfits where labels are rare: they follow
      from calibrated probabilities, and label sets of rows have no threshold at all;
    - `predict_proba` is calibrated, and `expected_f` is the F-measure to expect;
    - the measure is the F-measure, not any scorer.

    In both, the folds' models are a little worse than the model of all rows.

    A label that is constant in the training rows of a fold is left out of the fit there, since
    most models refuse it; its probability is then 0 or 1. Rows that are in no test fold are not
    validation rows; of several folds with the same test row the last one counts.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from fgfm import FDeciderCV
    >>> X, Y = make_multilabel_classification(300, n_classes=4, random_state=0)
    >>> forest = RandomForestClassifier(50, random_state=0)
    >>> model = FDeciderCV(forest, average="macro", random_state=0).fit(X[:200], Y[:200])
    >>> model.predict(X[200:202])
    array([[0, 0, 1, 0],
           [1, 0, 1, 0]])
    >>> round(model.score(X[200:], Y[200:]), 2)
    0.76
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
        min_precision: float | None = None,
        min_recall: float | None = None,
        confidence: float | None = None,
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
        self.min_precision = min_precision
        self.min_recall = min_recall
        self.confidence = confidence
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.average == "macro"
        tags.classifier_tags.multi_label = True
        accepted = learner_input_tags(self.estimator)
        tags.input_tags.sparse = accepted.sparse
        tags.input_tags.allow_nan = accepted.allow_nan
        return tags

    def get_metadata_routing(self) -> Any:
        """Return the metadata routing of this estimator, its model and its folds.

        Returns
        -------
        MetadataRouter
            The routing.
        """
        return (
            MetadataRouter(owner=type(self).__name__)
            .add_self_request(self)
            .add(
                estimator=self.estimator,
                method_mapping=MethodMapping().add(caller="fit", callee="fit"),
            )
            .add(
                splitter=self.cv,
                method_mapping=MethodMapping().add(caller="fit", callee="split"),
            )
        )

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> FDeciderCV:
        """Predict all rows in folds, fit the decider to them, and the model to all rows.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.
        y : array-like, sparse matrix or data frame of shape (n, m) or (n,)
            Labels, 0 or 1, one column each. A flat y may have any classes, as in `FDecider`.
            Lists of the names of labels, one for each row, are sorted into columns. NaN or -1 is
            a label that is not known: one model is then fitted to each label, with the rows where
            it is known.
        sample_weight : array-like of shape (n,), optional
            Sample weights, for the decider and for a model that accepts them.
        **fit_params : dict
            ``groups``, for a splitter `cv` that takes them; further arguments for the ``fit`` of
            the model. With scikit-learn's metadata routing, what the model and `cv` request.

        Returns
        -------
        FDeciderCV
            The fitted estimator.
        """
        params = self.get_params(deep=False)
        decider = FDecider(**{name: params[name] for name in params if name not in _OF_MODEL})
        decider._check_parameters()
        check_model(self.estimator)
        check_same_index(X=X, y=y, sample_weight=sample_weight)
        (X,) = indexable(X)
        n = n_rows(X)
        owner = type(self).__name__
        table = read_labels(y, n, owner, allow_missing=True, allow_classes=True, allow_lists=True)
        decider._check_form(table)
        set_label_attributes(self, table)
        weight = None if sample_weight is None else row_weights(sample_weight, n, "X")
        rows = np.arange(n) if weight is None else np.flatnonzero(weight)
        digests = row_digests(feature_entries(X), table.labels)
        self._known_rows = known_rows(digests[rows])
        if self._is_prefit():
            check_is_fitted(self.estimator)
            self.estimator_ = self.estimator
            self._columns = np.arange(table.labels.shape[1])
            self._constants = np.zeros(table.labels.shape[1])
            X = take_rows(X, rows) if len(rows) < n else X
            check_classes(self.estimator_, table)
            proba = self._marginals(X)
            check_not_one_label(proba, table.labels[rows], self.estimator_)
        else:
            if self.confidence is not None:
                raise ValueError(
                    f"confidence is {self.confidence} and cv is {self.cv!r}: certificates need "
                    "cv='prefit' and a fitted model, since the models of folds are not the one "
                    "that predicts"
                )
            params, metadata = self._fit_params(weight, fit_params)
            training = TrainingRows(X, table, params)
            cv = split_by_metadata(self.cv, X, training.targets(), metadata)
            kept = training.at(rows) if len(rows) < n else training
            proba = self._cross_validate(kept, cv, rows, n)
            self.estimator_, self._columns, self._constants = kept.fit(self.estimator)
        predicted = ~np.isnan(proba).any(axis=1)
        at = rows[predicted]
        self.decider_ = decider._fit_table(
            proba[predicted],
            None,
            table.at(at),
            None if weight is None else weight[at],
        )
        self.classes_ = self.decider_.classes_
        self.multilabel_ = self.decider_.multilabel_
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)  # of an earlier fit
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def _is_prefit(self) -> bool:
        """Whether the model is fitted already."""
        if isinstance(self.cv, str) and self.cv != "prefit":
            raise ValueError(
                f"cv is {self.cv!r}: it must be 'prefit', a number of folds, a splitter or an "
                "iterable"
            )
        return isinstance(self.cv, str) or isinstance(self.estimator, FrozenEstimator)

    def _fit_params(
        self, weight: Floats | None, fit_params: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the arguments for the fit of the model, and those for the split of `cv`."""
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", sample_weight=weight, **fit_params)
            return dict(routed.estimator.fit), dict(routed.splitter.split)
        groups = fit_params.pop("groups", None)
        metadata = {} if groups is None else {"groups": groups}
        if weight is None:
            return fit_params, metadata
        if not has_fit_parameter(self.estimator, "sample_weight"):
            raise ValueError(
                f"sample_weight is given, but the fit of estimator {type(self.estimator).__name__}"
                " does not take it: leave it out, or choose a model that takes it (in a pipeline: "
                "by scikit-learn's metadata routing)"
            )
        return fit_params | {"sample_weight": weight}, metadata

    def _cross_validate(self, training: TrainingRows, cv: Any, rows: Integers, n: int) -> Floats:
        """Return out-of-fold probabilities of all training rows; NaN for rows in no test fold.

        The training rows are those in `rows` of n, which have a positive weight.
        """
        y = training.targets()
        cv = _FOLDS if cv is None else cv
        # Folds of a multi-label y cannot be stratified; those of a flat one are, if possible.
        stratified = y.ndim == 1 and isinstance(cv, (int, np.integer)) and cv > 1
        if stratified and np.unique(y, return_counts=True)[1].min() >= cv:
            cv = StratifiedKFold(cv, shuffle=True, random_state=self.random_state)
        folds = make_folds(cv, self.random_state, training.X, rows, n)(y)
        jobs = (
            delayed(training.predict_fold)(self.estimator, (train, test)) for train, test in folds
        )
        proba = np.full(training.table.labels.shape, np.nan)
        for (_, test), values in zip(folds, run_jobs(jobs, self.n_jobs), strict=True):
            proba[test] = values
        return proba

    def _marginals(self, X: Any) -> Floats:
        """Return the probabilities (n, m) of the fitted model."""
        check_is_fitted(self)
        classes = self.classes_ if self._label_form == "classes" else None
        return predict_all(self.estimator_, X, self._columns, self._constants, classes)

    def _fitted(self) -> FDecider:
        return self.decider_

    def _read(self, X: Any) -> Probabilities:
        """Return the probabilities of the fitted model as `FDecider` reads them."""
        return Probabilities(dense_entries(clip_probabilities(self._marginals(X), "X")), X, None)

    def _row_values(self, X: Any, given: Probabilities) -> Entries:
        return feature_entries(X)
