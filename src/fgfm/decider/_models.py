"""Multi-label models of any kind: fit them to some rows, and read what they predict."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.utils import get_tags

from fgfm._utils.label_table import LabelTable, format_labels
from fgfm._utils.rows import take_param_rows, take_rows
from fgfm.estimation._scores import class_scores, label_scores

__all__ = [
    "TrainingRows",
    "check_classes",
    "check_model",
    "check_not_one_label",
    "predict_all",
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


class TrainingRows(NamedTuple):
    """Features, labels and further arguments of fit for some rows."""

    X: Any
    table: LabelTable
    params: dict[str, Any]

    def at(self, rows: Integers) -> TrainingRows:
        """Return some of the rows; arguments of fit are indexed if they have one value per row."""
        params = take_param_rows(self.params, rows, len(self.table.labels))
        return TrainingRows(take_rows(self.X, rows), self.table.at(rows), params)

    def targets(self) -> Any:
        """Return y as a model takes it: flat with the classes of the user, or (n, m) integers."""
        Y = self.table.labels.astype(np.int64)
        if self.table.form in ("flat", "classes"):
            return format_labels(Y, self.table.form, "", self.table.classes)
        return Y

    def fit(self, estimator: Any) -> tuple[Any, Integers, Floats]:
        """Fit a clone to the labels that vary.

        Returns the model, the label of each column that it predicts, and the value of every
        label that is constant.
        """
        values = self.means()
        columns = np.flatnonzero((values > 0.0) & (values < 1.0))
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
        if self.table.observed is not None:
            known = self.table.observed[:, columns]
            return self._fit_known(estimator, y, known), columns, values
        try:
            model = clone(estimator).fit(self.X, y, **self.params)
        except Exception:  # libraries have errors of their own for a y with columns
            wrapped = _one_per_label(estimator)
            if y.ndim == 1 or wrapped is None:
                raise
            model = wrapped.fit(self.X, y, **self.params)
        return model, columns, values

    def means(self) -> Floats:
        """Return the mean of each label (m,), 0 or 1 for constant labels."""
        observed = self.table.observed
        if observed is None:
            return np.asarray(self.table.labels.mean(axis=0))
        return np.asarray(self.table.labels.sum(axis=0) / np.maximum(observed.sum(axis=0), 1))

    def _fit_known(self, estimator: Any, y: Integers, known: Any) -> Any:
        """Fit a clone for each label to the rows where it is known (n, labels)."""
        if not hasattr(estimator, "predict_proba"):
            raise TypeError(
                f"y has labels that are missing, and estimator is {estimator!r}: it is fitted to "
                "the rows of each label by itself, and must have predict_proba"
            )
        single = estimator.estimator if isinstance(estimator, MultiOutputClassifier) else estimator
        model = MultiOutputClassifier(single)
        model.estimators_ = []
        for target, rows in zip(y.T, map(np.flatnonzero, known.T), strict=True):
            params = take_param_rows(self.params, rows, len(y))
            X = take_rows(self.X, rows)
            model.estimators_.append(clone(single).fit(X, target[rows], **params))
        model.classes_ = [part.classes_ for part in model.estimators_]
        return model

    def predict_fold(self, estimator: Any, fold: tuple[Integers, Integers]) -> Floats:
        """Return the probabilities (n_test, m) of a model that is fitted to the training rows."""
        train, test = fold
        training = self.at(train)
        constants = training.means()
        if np.isin(constants, [0.0, 1.0]).all():
            return np.tile(constants, (len(test), 1))
        model, columns, values = training.fit(estimator)
        classes = self.table.classes if self.table.form == "classes" else None
        return predict_all(model, take_rows(self.X, test), columns, values, classes)


def predict_all(estimator: Any, X: Any, columns: Integers, values: Floats, classes: Any) -> Floats:
    """Return the probabilities (n, m) of all labels, or of all classes if they are given.

    The model predicts the labels of some columns; the others are constant, with the given values.
    """
    if classes is not None:
        scores = class_scores(estimator, X, classes, prefer_decision=False)
        return scores.values if scores.are_probabilities else softmax(scores.values, axis=1)
    p = _predict_labels(estimator, X, len(columns))
    if np.array_equal(columns, np.arange(len(values))):
        return p
    everything = np.tile(values, (len(p), 1))
    everything[:, columns] = p
    return everything


def _predict_labels(estimator: Any, X: Any, m: int) -> Floats:
    """Return the probabilities (n, m) of m labels from a fitted model of any kind.

    Decision values become probabilities by a sigmoid, to be calibrated.
    """
    values, are_probabilities = label_scores(estimator, X, m)  # (n, m, 2)
    if are_probabilities:
        return values[:, :, 1]
    return np.asarray(expit(values[:, :, 1] - values[:, :, 0]))


def check_classes(estimator: Any, table: LabelTable) -> None:
    """Raise if a fitted model has other classes than a flat y."""
    if table.form not in ("flat", "classes") or not hasattr(estimator, "classes_"):
        return
    found = np.asarray(estimator.classes_).tolist()
    if found != table.classes.tolist():
        raise ValueError(
            f"estimator {type(estimator).__name__} has classes {found} and y has "
            f"{table.classes.tolist()}: they must be the same"
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
