"""FClassifier: a classifier with F-optimal decisions, learned from held-out probabilities."""

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

from fgfm._held_out import (
    FittedModel,
    TrainingRows,
    check_classes,
    check_model,
    check_not_one_label,
    gives_scores,
    input_tags,
    score_bounds,
)
from fgfm._utils.folds import make_folds, split_by_metadata
from fgfm._utils.label_table import LabelTable, read_labels, set_label_attributes
from fgfm._utils.names import check_same_index
from fgfm._utils.parallel import run_jobs
from fgfm._utils.parameters import check_parameters, record_parameters
from fgfm._utils.progress import CallbackSupportMixin, FitProgress, with_callbacks
from fgfm._utils.rows import n_rows, take_rows
from fgfm._utils.validation import clip_probabilities, row_weights
from fgfm.decider import FDecider
from fgfm.decider._entries import Entries, dense_entries
from fgfm.decider._inputs import Probabilities
from fgfm.decider._known_rows import feature_entries, known_rows, row_digests
from fgfm.decider._methods import DeciderMixin

__all__ = ["FClassifier"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_FOLDS = 5
_OF_MODEL = {"estimator", "cv", "random_state", "verbose"}  # others are those of the decider


class FClassifier(DeciderMixin, CallbackSupportMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier with F-optimal decisions: a model, and an `FDecider` behind it.

    `fit` fits the model to all rows, and an `FDecider` to probabilities of these rows that are
    held out: those that the model has for its training rows, or those of folds. Then `predict`
    returns the labels that maximise the expected F-measure.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        The model: a forest, a network, a pipeline, ``ClassifierChain(...)``. It needs
        ``predict_proba``, or ``decision_function``, the scores of `FDecider`. One that refuses a
        matrix y, and whose tags do not promise to take it, is fitted to each label, by a
        ``MultiOutputClassifier``, or a ``OneVsRestClassifier`` without ``predict_proba``. By
        default it is a `StackClassifier`, which needs no setting and no scaling of the features.
    cv : int, splitter, iterable or "prefit", optional
        Folds. By default there are none if the fitted model has ``oob_decision_function_``, held-
        out probabilities of its training rows, as the default model and forests with
        ``oob_score=True`` have; otherwise 5, shuffled, and stratified if y is flat. "prefit" takes
        a fitted model, and the rows of `fit` as validation rows, which the model must not be
        trained on; so does a ``FrozenEstimator``.
    average, labels, beta, calibration, nonempty, zero_division : object
        As in `FDecider`.
    min_labels, max_labels, constraints, min_precision, min_recall, confidence, pos_label : object
        As in `FDecider`. `confidence` needs a fitted model, with ``cv="prefit"``: the models of
        folds are not the one that predicts, nor are their rows independent.
    n_jobs : int, optional
        Number of processes that fit folds, and of threads that decide, as in joblib. It does not
        change the result.
    random_state : int, RandomState instance or None, default=None
        Seeds the default folds and the default model. Another model keeps its own seed.
    verbose : int, default=0
        1 prints the progress of the fit at most every five seconds, 2 after every model.

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
    StackClassifier : The default model.
    FGFMClassifier : The classifier of Gasse and Aussem (2016).

    Notes
    -----
    How it differs from scikit-learn's ``TunedThresholdClassifierCV``:

    - it takes several labels, and maximises the F-measure of rows, labels or all entries;
    - thresholds are not tried out on the rows, which overfits where labels are rare: they follow
      from calibrated probabilities, and label sets of rows have no threshold at all;
    - `predict_proba` is calibrated, and `expected_f` is the F-measure to expect;
    - the measure is the F-measure, not any scorer.

    In both, the folds' models are a little worse than the model of all rows.

    A pipeline goes inside: ``FClassifier(make_pipeline(scaler, model))``. Held-out probabilities
    of its last step are used unless a transformer is fitted to y.

    A label that is constant in training rows is left out of the fit there, since most models
    refuse it; its probability is then 0 or 1. Rows that are in no test fold, or in every bag of a
    forest, are not validation rows; of several folds with the same test row the last one counts.

    A model with the attribute ``accepts_missing_labels = True`` gets -1 for labels that are not
    known; of another, one clone is fitted to each label, with the rows where it is known.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from fgfm import FClassifier
    >>> X, Y = make_multilabel_classification(300, n_classes=4, random_state=0)
    >>> forest = RandomForestClassifier(50, random_state=0)
    >>> model = FClassifier(forest, average="macro", random_state=0).fit(X[:200], Y[:200])
    >>> model.predict(X[200:202])
    array([[0, 0, 1, 0],
           [1, 0, 1, 0]])
    >>> round(model.score(X[200:], Y[200:]), 2)
    0.76

    With the default model:

    >>> model = FClassifier(random_state=0).fit(X[:200], Y[:200])
    >>> model.expected_f(X[200:203]).round(2)
    array([0.97, 0.78, 0.87])
    """

    _constants: Floats

    def __init__(
        self,
        estimator: Any = None,
        *,
        cv: Any = None,
        average: str = "samples",
        labels: Any = None,
        beta: float = 1.0,
        calibration: str | None = "auto",
        nonempty: Any = "auto",
        zero_division: float = 1.0,
        min_labels: int = 0,
        max_labels: int | None = None,
        constraints: Any = None,
        min_precision: float | None = None,
        min_recall: float | None = None,
        confidence: float | None = None,
        pos_label: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.cv = cv
        self.average = average
        self.labels = labels
        self.beta = beta
        self.calibration = calibration
        self.nonempty = nonempty
        self.zero_division = zero_division
        self.min_labels = min_labels
        self.max_labels = max_labels
        self.constraints = constraints
        self.min_precision = min_precision
        self.min_recall = min_recall
        self.confidence = confidence
        self.pos_label = pos_label
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._takes_classes()
        tags.classifier_tags.multi_label = True
        accepted = input_tags(self._model())
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
                estimator=self._model(),
                method_mapping=MethodMapping().add(caller="fit", callee="fit"),
            )
            .add(
                splitter=self.cv,
                method_mapping=MethodMapping().add(caller="fit", callee="split"),
            )
        )

    def _model(self) -> Any:
        """Return the model to fit."""
        if self.estimator is not None:
            return self.estimator
        from fgfm.learner import StackClassifier

        model = StackClassifier(
            n_jobs=self.n_jobs, random_state=self.random_state, verbose=self.verbose
        )
        if get_config()["enable_metadata_routing"]:
            model.set_fit_request(sample_weight=True)
        return model

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> FClassifier:
        """Fit the model to all rows, and the decider to held-out probabilities of them.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.
        y : array-like, sparse matrix or data frame of shape (n, m) or (n,)
            Labels, 0 or 1, one column each. A flat y may have any classes, as in `FDecider`.
            Lists of the names of labels, one for each row, are sorted into columns. NaN or -1 is
            a label that is not known (see Notes of the class).
        sample_weight : array-like of shape (n,), optional
            Sample weights, for the decider and for a model that accepts them.
        **fit_params : dict
            ``groups``, for a splitter `cv` that takes them; further arguments for the ``fit`` of
            the model. With scikit-learn's metadata routing, what the model and `cv` request.

        Returns
        -------
        FClassifier
            The fitted estimator.
        """
        decider = FDecider(**self._decider_params())
        decider._check_parameters()
        estimator = self._model()
        check_model(estimator)
        check_same_index(X=X, y=y, sample_weight=sample_weight)
        (X,) = indexable(X)
        n = n_rows(X)
        owner = type(self).__name__
        table = read_labels(y, n, owner, allow_missing=True, allow_classes=True, allow_lists=True)
        table = decider._checked_labels(table, y)
        set_label_attributes(self, table)
        weight = None if sample_weight is None else row_weights(sample_weight, n, "X")
        rows = np.arange(n) if weight is None else np.flatnonzero(weight)
        digests = row_digests(feature_entries(X), table.labels)
        self._known_rows = known_rows(digests[rows])
        progress = FitProgress(self, self.verbose)
        cardinality = None
        if self._is_prefit():
            proba = self._prefit(estimator, X, table, rows)
        else:
            proba, cardinality = self._fit_model(
                estimator, X, table, weight, rows, fit_params, progress
            )
        self._informed = cardinality is not None
        predicted = ~np.isnan(proba).any(axis=1)
        if not predicted.any():
            raise ValueError("no row has held-out probabilities: choose other folds with cv")
        used = rows[predicted]
        if decider.scores:
            bounds = score_bounds(proba[predicted])
            proba, self._constants = (np.clip(x, *bounds) for x in (proba, self._constants))
        self.decider_ = decider._fit_table(
            proba[predicted],
            None,
            table.at(used),
            None if weight is None else weight[used],
            foreign=self._is_prefit() or decider.scores,
            cardinality=None if cardinality is None else cardinality[predicted],
        )
        self.classes_ = self.decider_.classes_
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)  # of an earlier fit
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        record_parameters(self)
        progress.end()
        return self

    def _decider_params(self) -> dict[str, Any]:
        """Return the parameters of the decider."""
        params = self.get_params(deep=False)
        shared = {name: value for name, value in params.items() if name not in _OF_MODEL}
        return shared | {"scores": gives_scores(self._model())}

    def _is_prefit(self) -> bool:
        """Whether the model is fitted already."""
        if isinstance(self.cv, str) and self.cv != "prefit":
            raise ValueError(
                f"cv is {self.cv!r}: it must be 'prefit', a number of folds, a splitter or an "
                "iterable"
            )
        return isinstance(self.cv, str) or isinstance(self.estimator, FrozenEstimator)

    def _prefit(self, estimator: Any, X: Any, table: LabelTable, rows: Integers) -> Floats:
        """Return the probabilities of some rows from a model that is fitted already."""
        check_is_fitted(estimator)
        m = table.labels.shape[1]
        self.estimator_ = estimator
        self._columns, self._constants = np.arange(m), np.zeros(m)
        check_classes(estimator, table)
        X = take_rows(X, rows) if len(rows) < len(table.labels) else X
        proba = self._fitted_model().predict(X)
        check_not_one_label(proba, table.labels[rows], estimator)
        return proba

    def _fit_model(
        self,
        estimator: Any,
        X: Any,
        table: LabelTable,
        weight: Floats | None,
        rows: Integers,
        fit_params: dict[str, Any],
        progress: FitProgress,
    ) -> tuple[Floats, Floats | None]:
        """Fit the model to rows of positive weight, and return what it predicts of held-out rows.

        These are their probabilities (n, m), NaN in rows that are never held out, and
        distributions (n, S + 1) of the number of labels if the model has them.
        """
        if self.confidence is not None:
            raise ValueError(
                f"confidence is {self.confidence} and cv is {self.cv!r}: certificates need "
                "cv='prefit' and a fitted model, since the models of folds are not the one that "
                "predicts"
            )
        params, metadata = self._fit_params(estimator, weight, fit_params)
        n = len(table.labels)
        training = TrainingRows(X, table, params)
        cv = split_by_metadata(self.cv, X, training.targets(), metadata)
        if len(rows) < n:
            training = training.take(rows)
        folds = None if cv is None else self._folds(cv, training, rows, n)
        model = training.fit(estimator)
        self.estimator_, self._columns, self._constants = model[:3]
        proba = model.out_of_bag() if folds is None else None
        if proba is not None:
            progress.begin_models(1)
            progress.models_done(1)
            return proba, model.held_out_cardinality()
        if folds is None:
            folds = self._folds(_FOLDS, training, rows, n)
        progress.begin_models(len(folds) + 1)
        progress.models_done(1)
        jobs = (delayed(training.predict_fold)(estimator, (train, test)) for train, test in folds)
        proba = np.full(training.table.labels.shape, np.nan)
        for k, values in enumerate(run_jobs(jobs, self.n_jobs)):
            proba[folds[k].test] = values
            progress.models_done(k + 2)
        return proba, None

    def _fit_params(
        self, estimator: Any, weight: Floats | None, fit_params: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the arguments for the fit of the model, and those for the split of `cv`."""
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", sample_weight=weight, **fit_params)
            return dict(routed.estimator.fit), dict(routed.splitter.split)
        groups = fit_params.pop("groups", None)
        metadata = {} if groups is None else {"groups": groups}
        if weight is None:
            return fit_params, metadata
        if not has_fit_parameter(estimator, "sample_weight"):
            raise ValueError(
                f"sample_weight is given, but the fit of estimator {type(estimator).__name__}"
                " does not take it: leave it out, or choose a model that takes it (in a pipeline: "
                "by scikit-learn's metadata routing)"
            )
        return fit_params | {"sample_weight": weight}, metadata

    def _folds(self, cv: Any, training: TrainingRows, rows: Integers, n: int) -> Any:
        """Return the folds of the training rows, which are those in `rows` of n."""
        y = training.targets()
        # Folds of a multi-label y cannot be stratified; those of a flat one are, if possible.
        stratified = y.ndim == 1 and isinstance(cv, (int, np.integer)) and cv > 1
        if stratified and np.unique(y, return_counts=True)[1].min() >= cv:
            cv = StratifiedKFold(cv, shuffle=True, random_state=self.random_state)
        return make_folds(cv, self.random_state, training.X, rows, n)(y)

    def _fitted_model(self) -> FittedModel:
        known = self._columns, self._constants, self._classes, self._label_form
        return FittedModel(self.estimator_, *known)

    def _fitted(self) -> FDecider:
        """Return the decider, with the parameters of this estimator."""
        decider = self.decider_
        params = self._decider_params()
        changed = {k: v for k, v in params.items() if getattr(decider, k) is not v}
        return decider.set_params(**changed) if changed else decider

    def _read(self, X: Any) -> Probabilities:
        """Return the probabilities of the fitted model as `FDecider` reads them."""
        check_is_fitted(self, "decider_")
        check_parameters(self, {*self.decider_.get_params(), "verbose"})
        model, scores, cardinality = self._fitted_model(), self.decider_.scores, None
        if self._informed:
            p, cardinality = model.predict_with_cardinality(X)
        else:
            p = model.predict(X)
        p = p if scores else clip_probabilities(p, "X")
        entries = dense_entries(p)._replace(cardinality=cardinality)
        return Probabilities(entries, X, None, scores)

    def _row_values(self, X: Any, rows: Probabilities) -> Entries:
        return feature_entries(X)


def __dir__() -> list[str]:
    return __all__
