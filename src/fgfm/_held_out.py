"""Multi-label models of any kind: fit them to some rows, and read what they predict."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import clone
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.utils import InputTags, get_tags

from fgfm._utils.label_table import LabelTable, format_labels
from fgfm._utils.rows import n_rows, take_param_rows, take_rows

__all__ = [
    "FittedModel",
    "TrainingRows",
    "check_classes",
    "check_model",
    "gives_scores",
    "input_tags",
    "score_bounds",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def check_model(estimator: Any) -> None:
    """Raise TypeError unless a model is an instance with ``fit`` that predicts scores."""
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        raise TypeError(f"estimator is {estimator!r}: it must be a scikit-learn classifier")
    if not (hasattr(estimator, "predict_proba") or hasattr(estimator, "decision_function")):
        raise TypeError(
            f"estimator is {estimator!r}: it must have predict_proba or decision_function"
        )


def gives_scores(estimator: Any) -> bool:
    """Return whether a model has decision values, and no probabilities."""
    return not hasattr(estimator, "predict_proba")


def score_bounds(values: Floats) -> tuple[Floats, Floats]:
    """Return the least and the largest score (m,) of labels that are not constant in training.

    The scores of others are infinite; these get the bounds of all labels.
    """
    known = np.isfinite(values)
    least = np.min(values, axis=0, where=known, initial=np.inf)
    most = np.max(values, axis=0, where=known, initial=-np.inf)
    varies = least <= most
    return np.where(varies, least, least.min()), np.where(varies, most, most.max())


def input_tags(estimator: Any) -> InputTags:
    """Return the input tags of a model; without tags it is taken to accept anything."""
    try:
        return get_tags(estimator).input_tags
    except AttributeError:  # no tags, or scikit-learn's mixins without BaseEstimator
        return InputTags(sparse=True, allow_nan=True)


class FittedModel(NamedTuple):
    """A fitted model, and which labels it predicts.

    Attributes
    ----------
    estimator : estimator
        The model.
    columns : ndarray
        The label of each column that it predicts.
    constants : ndarray of shape (m,)
        The probabilities, or scores, of the labels that it does not predict.
    classes : ndarray
        The classes of a flat y; of two the positive one is the last.
    form : str
        The form of y, as in `LabelTable`.
    """

    estimator: Any
    columns: Integers
    constants: Floats
    classes: Any
    form: str

    def predict(self, X: Any) -> Floats:
        """Return the probabilities or scores (n, m) of all labels, or of all classes.

        The scores of labels that were constant in training are infinite.
        """
        estimator, n = self.estimator, n_rows(X)
        are_scores = gives_scores(estimator)
        returned = estimator.decision_function(X) if are_scores else estimator.predict_proba(X)
        return self._of_rows(returned, n, are_scores)

    def predict_with_cardinality(self, X: Any) -> tuple[Floats, Floats]:
        """Return probabilities (n, m), and distributions (n, S + 1) of the number of labels."""
        estimator, n = self.estimator, n_rows(X)
        while hasattr(estimator, "steps"):
            X = estimator[:-1].transform(X) if len(estimator.steps) > 1 else X
            estimator = estimator.steps[-1][1]
        returned, cardinality = estimator.predict_with_cardinality(X)
        return self._of_rows(returned, n, False), cardinality

    def _of_rows(self, returned: Any, n: int, are_scores: bool) -> Floats:
        """Return the probabilities or scores (n, m) in what a model returned for n rows."""
        if self.form == "classes":
            return self._of_all_classes(returned, n, are_scores)
        return self._of_all_labels(self._of_columns(returned, n, are_scores))

    def _of_all_classes(self, returned: Any, n: int, are_scores: bool) -> Floats:
        """Return the values (n, C) of all classes, of which the model may have seen some.

        The others have probability 0, or the least of all scores.
        """
        seen = np.searchsorted(self.classes, np.asarray(self.estimator.classes_))
        values = np.asarray(returned, dtype=np.float64)
        if are_scores:
            _check_not_pairwise(self.estimator, len(seen))
        if values.ndim == 1 or values.shape[1] == 1 < len(seen):  # those of the second of two
            one = values.ravel()
            pair = (-0.5 * one, 0.5 * one) if are_scores else (1.0 - one, one)
            values = np.stack(pair, axis=-1)
        self._check(values, (n, len(seen)), "classes")
        missing = values.min(initial=0.0) if are_scores else 0.0
        return _spread(values, seen, np.full(len(self.classes), missing))

    def _of_columns(self, returned: Any, n: int, are_scores: bool) -> Floats:
        """Return the values (n, columns) that the model predicts for its labels.

        ``predict_proba`` may return an array (n, m) of the probabilities of 1, a list with the
        probabilities of the classes of each label, or the two columns of one label.
        """
        m = len(self.columns)
        if isinstance(returned, list):
            seen = getattr(self.estimator, "classes_", [np.arange(2)] * len(returned))
            parts = zip(returned, seen, strict=True)
            values = np.column_stack([_of_label(self.estimator, *part) for part in parts])
        else:
            values = np.asarray(
                returned.toarray() if sparse.issparse(returned) else returned, dtype=np.float64
            )
            if m == 1 and values.ndim == 1:
                values = values[:, None]
            elif m == 1 and not are_scores and values.shape[1:] == (2,):
                values = values[:, 1:]
        self._check(values, (n, m), "labels")
        return values

    def _check(self, values: Floats, shape: tuple[int, int], kind: str) -> None:
        """Raise ValueError unless there are finite scores for each of n rows and each class."""
        finite = bool(np.isfinite(values).all())
        if values.shape == shape and finite:
            return
        raise ValueError(
            f"estimator {type(self.estimator).__name__} returned scores of shape {values.shape}"
            f"{'' if finite else ' that are not all finite'}: there must be a finite number for "
            f"each of {shape[0]} rows and {shape[1]} {kind}"
        )

    def out_of_bag(self) -> Floats | None:
        """Return the held-out probabilities (n, m) of the training rows, if the model has them.

        These are scikit-learn's ``oob_decision_function_``, NaN in rows without such values.
        """
        estimator = self.estimator
        while hasattr(estimator, "steps"):
            if any(_uses_labels(step) for _, step in estimator.steps[:-1]):
                return None  # the transformed rows have seen their labels
            estimator = estimator.steps[-1][1]
        values = getattr(estimator, "oob_decision_function_", None)
        if values is None:
            return None
        # A list has arrays (n, 2) of labels, an array the shape (n, m), (n, C) or (n, 2, m).
        p = np.stack(values, axis=-1) if isinstance(values, list) else np.asarray(values)
        p = np.asarray(p, dtype=np.float64)
        if p.ndim == 3 or self.form in ("flat", "classes"):
            never = p.sum(axis=1, keepdims=True) == 0.0  # in every bag: forests have 0, not NaN
            p = np.where(never, np.nan, p)
        if self.form == "classes":
            seen = np.searchsorted(self.classes, estimator.classes_)
            return _spread(p, seen, np.zeros(len(self.classes)))
        if p.ndim == 3 or self.form == "flat":
            p = p[:, 1].reshape(len(p), -1)
        return self._of_all_labels(p)

    def held_out_cardinality(self) -> Floats | None:
        """Return distributions (n, S + 1) of the number of labels of the training rows, if any.

        They do not count labels that the model was not fitted to.
        """
        if self.form in ("flat", "classes") or (self.constants == 1.0).any():
            return None
        estimator = self.estimator
        while hasattr(estimator, "steps"):
            estimator = estimator.steps[-1][1]
        return getattr(estimator, "oob_cardinality_", None)

    def _of_all_labels(self, p: Floats) -> Floats:
        """Return the values (n, m) of all labels from those of the model's columns."""
        if self.form == "flat" and len(self.classes) == 2 and self.classes[1] < self.classes[0]:
            p = -p if gives_scores(self.estimator) else 1.0 - p
        if np.array_equal(self.columns, np.arange(len(self.constants))):
            return np.asarray(p)
        return _spread(p, self.columns, self.constants)


def _spread(values: Floats, columns: Integers, others: Floats) -> Floats:
    """Return rows (n, m) with values (n, K) in some columns, and the same others in each row."""
    everything = np.tile(others, (len(values), 1))
    everything[:, columns] = values
    return everything


def _of_label(estimator: Any, part: Any, classes: Any) -> Floats:
    """Return the probabilities (n,) of 1 of a label that may have been constant in training."""
    p: Floats = np.asarray(part, dtype=np.float64)
    if p.shape[1] == 1:
        return p[:, 0] if np.asarray(classes).ravel()[0] == 1 else np.zeros(len(p))
    if p.shape[1] != 2:
        raise ValueError(
            f"estimator {type(estimator).__name__} predicts {p.shape[1]} classes for a label: "
            "a label must be 0 or 1"
        )
    return p[:, 1]


def _check_not_pairwise(estimator: Any, n_classes: int) -> None:
    """Raise if decision values belong to pairs of classes: three classes have three pairs."""
    while hasattr(estimator, "steps"):
        estimator = estimator.steps[-1][1]
    if n_classes > 2 and getattr(estimator, "decision_function_shape", None) == "ovo":
        raise ValueError(
            f"estimator {type(estimator).__name__} has decision_function_shape 'ovo', a score for "
            "each pair of classes: it must be 'ovr', a score for each class"
        )


def _constant_values(constants: Floats, scores: bool) -> Floats:
    """Return the probabilities of constant labels, 0 or 1, or their infinite scores."""
    return np.where(constants > 0.0, np.inf, -np.inf) if scores else constants


def _uses_labels(step: Any) -> bool:
    """Return whether a transformer, or a part of it, may be fitted to y."""
    parts = [step, *step.get_params().values()] if hasattr(step, "get_params") else [step]
    return any(_takes_labels(part) for part in parts if hasattr(part, "fit"))


def _takes_labels(estimator: Any) -> bool:
    from sklearn.feature_selection import SelectorMixin, VarianceThreshold  # slow to import

    if isinstance(estimator, SelectorMixin):  # selectors of scikit-learn need not have the tag
        return not isinstance(estimator, VarianceThreshold)
    try:
        return bool(get_tags(estimator).target_tags.required)
    except (AttributeError, TypeError):  # no tags, or a class
        return True


class TrainingRows(NamedTuple):
    """Features, labels and further arguments of fit for some rows."""

    X: Any
    table: LabelTable
    params: dict[str, Any]

    def take(self, rows: Integers) -> TrainingRows:
        """Return some of the rows; arguments of fit are indexed if they have one value per row."""
        params = take_param_rows(self.params, rows, len(self.table.labels))
        return TrainingRows(take_rows(self.X, rows), self.table.at(rows), params)

    def targets(self) -> Any:
        """Return y as a model takes it: flat with the classes of the user, or (n, m) integers."""
        Y = self.table.labels.astype(np.int64)
        if self.table.form in ("flat", "classes"):
            return format_labels(Y, self.table.form, "", self.table.classes)
        return Y

    def fit(self, estimator: Any) -> FittedModel:
        """Fit a clone to the labels that vary."""
        constants = self.means()
        columns = np.flatnonzero((constants > 0.0) & (constants < 1.0))
        if not len(columns):
            raise ValueError(
                f"y has one class for each label in all {len(self.table.labels)} rows: at least "
                "one label must vary"
            )
        y = self.targets()
        if y.ndim == 2:
            if len(columns) == 1:
                # Models take one column for a flat y, or refuse it: it is passed twice.
                columns = np.repeat(columns, 2)
            y = y[:, columns]
        fitted = self._fit(estimator, y, columns)
        constants = _constant_values(constants, gives_scores(fitted))
        return FittedModel(fitted, columns, constants, self.table.classes, self.table.form)

    def means(self) -> Floats:
        """Return the mean of each label (m,), 0 or 1 for constant labels."""
        observed = self.table.observed
        if observed is None:
            return np.asarray(self.table.labels.mean(axis=0))
        return np.asarray(self.table.labels.sum(axis=0) / np.maximum(observed.sum(axis=0), 1))

    def _fit(self, estimator: Any, y: Any, columns: Integers) -> Any:
        """Return a clone that is fitted to y, or to each of its columns."""
        if self.table.observed is not None:
            observed = self.table.observed[:, columns]
            if len(getattr(estimator, "steps", ())) > 1:
                return self._fit_pipeline(estimator, y, columns)
            if getattr(estimator, "accepts_missing_labels", False):
                return clone(estimator).fit(self.X, np.where(observed, y, -1), **self.params)
            return self._fit_observed(estimator, y, observed)
        try:
            return clone(estimator).fit(self.X, y, **self.params)
        except Exception:  # libraries have errors of their own for a y with columns
            wrapped = _one_per_label(estimator)
            if y.ndim == 1 or wrapped is None:
                raise
            return wrapped.fit(self.X, y, **self.params)

    def _fit_pipeline(self, pipeline: Any, y: Any, columns: Integers) -> Any:
        """Fit the transformers of a pipeline to all rows, its last step to the known labels."""
        fitted = clone(pipeline)
        X = fitted[:-1].fit_transform(self.X)
        name, last = fitted.steps[-1]
        fitted.steps[-1] = (name, self._replace(X=X)._fit(last, y, columns))
        return fitted

    def _fit_observed(self, estimator: Any, y: Integers, observed: Any) -> Any:
        """Fit a clone for each label to the rows where it is known (n, labels)."""
        if not hasattr(estimator, "predict_proba"):
            raise TypeError(
                f"y has labels that are missing, and estimator is {estimator!r}: it is fitted to "
                "the rows of each label by itself, and must have predict_proba"
            )
        single = estimator.estimator if isinstance(estimator, MultiOutputClassifier) else estimator
        model = MultiOutputClassifier(single)
        model.estimators_ = []
        for target, rows in zip(y.T, map(np.flatnonzero, observed.T), strict=True):
            params = take_param_rows(self.params, rows, len(y))
            X = take_rows(self.X, rows)
            model.estimators_.append(clone(single).fit(X, target[rows], **params))
        model.classes_ = [part.classes_ for part in model.estimators_]
        return model

    def predict_fold(self, estimator: Any, fold: tuple[Integers, Integers]) -> Floats:
        """Return the values (n_test, m) of a model that is fitted to the training rows."""
        train, test = fold
        training = self.take(train)
        constants = training.means()
        if np.isin(constants, [0.0, 1.0]).all():
            return np.tile(_constant_values(constants, gives_scores(estimator)), (len(test), 1))
        model = training.fit(estimator)._replace(classes=self.table.classes)
        return model.predict(take_rows(self.X, test))


def _one_per_label(estimator: Any) -> Any:
    """Return a model that fits clones to each label; None if the tags do not call for it."""
    if not hasattr(estimator, "__sklearn_tags__"):
        return None
    tags = get_tags(estimator)
    multi_label = tags.classifier_tags is None or tags.classifier_tags.multi_label
    if multi_label or tags.target_tags.multi_output:
        return None
    if hasattr(estimator, "predict_proba"):
        return MultiOutputClassifier(estimator)
    return OneVsRestClassifier(estimator)  # which has decision_function


def check_classes(estimator: Any, table: LabelTable) -> None:
    """Raise if a fitted model has other classes than a flat y."""
    if table.form not in ("flat", "classes") or not hasattr(estimator, "classes_"):
        return
    classes = np.asarray(estimator.classes_).tolist()
    if classes != np.sort(table.classes).tolist():
        raise ValueError(
            f"estimator {type(estimator).__name__} has classes {classes} and y has "
            f"{np.sort(table.classes).tolist()}: they must be the same"
        )


def check_not_one_label(p: Floats, Y: Any, estimator: Any) -> None:
    """Raise if two labels are predicted by the two classes of one label."""
    if p.shape[1] != 2 or (Y.sum(axis=1) == 1).all():
        return
    if np.allclose(p.sum(axis=1), 1.0, rtol=0.0, atol=1e-6):
        raise ValueError(
            f"estimator {type(estimator).__name__} predicts two probabilities that sum to 1 in "
            "every row, the classes of one label, and y has two labels: it must be fitted to both"
        )
