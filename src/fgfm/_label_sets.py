"""What all classifiers of label sets share: predictions in the form of y, and scores."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import ClassifierMixin

from fgfm._utils.label_table import format_labels, read_true_labels
from fgfm._utils.names import check_same_index
from fgfm._utils.rows import frame_maker
from fgfm.metrics import f_measure

__all__ = ["LabelSetMixin"]


class LabelSetMixin(ClassifierMixin):  # type: ignore[misc]
    """Mixin of classifiers that have `decide`, and the attributes of `set_label_attributes`."""

    decide: Any

    def _fitted(self) -> Any:
        """Return the object that has the attributes and the parameters of the decision."""
        return self

    def _labels(self, X: Any) -> Any:
        """Return the labels (n, m) of rows, each decided by itself: an array or CSR."""
        raise NotImplementedError

    def _column_names(self) -> list[Any]:
        """Return the names of labels, or of several classes; or of the series of a flat y."""
        fitted = self._fitted()
        several = fitted.multilabel_ or len(fitted.classes_) > 2
        return list(fitted.classes_) if several else ["labels"]

    def predict(self, X: Any) -> Any:
        """Predict F-optimal label sets, each row by itself.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Rows, as in `fit`.

        Returns
        -------
        ndarray or sparse matrix of shape (n, m), or ndarray of shape (n,)
            Labels, of the dtype of y in `fit`; sparse if y was sparse; classes if y was flat; a
            list of arrays if X and y were lists.
        """
        labels, fitted = self._labels(X), self._fitted()
        return format_labels(labels, fitted._label_form, fitted._label_dtype, fitted._classes)

    def predict_names(self, X: Any) -> list[list[Any]]:
        """Predict F-optimal label sets as lists of the names of labels.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Rows, as in `fit`.

        Returns
        -------
        list of lists
            The names of the labels of each row, in the order of the labels; their numbers, 0 to
            m - 1, if they have no names.
        """
        labels, fitted = self._labels(X), self._fitted()
        if fitted._label_form in ("flat", "classes"):
            raise ValueError("y was flat in fit: predict returns the names of classes")
        _check_columns(fitted)
        if sparse.issparse(labels):
            columns, ends = labels.indices, labels.indptr
        else:
            rows, columns = np.nonzero(labels)
            ends = np.searchsorted(rows, np.arange(len(labels) + 1))
        names = np.array(self._column_names(), dtype=object)[columns].tolist()
        return [names[start:end] for start, end in pairwise(ends.tolist())]

    def predict_frame(self, X: Any) -> Any:
        """Predict F-optimal label sets as a data frame.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Rows, as in `fit`.

        Returns
        -------
        data frame of shape (n, m)
            One column per label, with the index of X; a polars data frame if X is one, otherwise a
            pandas data frame.
        """
        make_frame = frame_maker(X, "predict_frame")
        labels = self.predict(X)
        _check_columns(self._fitted())
        labels = labels.toarray() if sparse.issparse(labels) else labels
        names = self._column_names() if labels.ndim == 2 else ["labels"]
        return make_frame(labels.reshape(len(labels), -1), names)

    def expected_f(self, X: Any) -> Any:
        """Compute the F-measure to expect of the label sets that `decide` returns.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Rows, as in `fit`.

        Returns
        -------
        ndarray of shape (n,) or (m,), or float
            One value per row for "samples", per label for "macro" and "weighted", and one for
            "micro"; a series if X is a data frame. The mean is an estimate of the `score`; for
            "weighted" that with the sums of `predict_proba` as weights.
        """
        return self.decide(X).expected_f

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Compute the F-measure of the predictions, for the average and beta of this estimator.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Rows, as in `fit`.
        y : array-like, sparse matrix or data frame of shape (n, m) or (n,)
            True labels.
        sample_weight : array-like of shape (n,), optional
            Sample weights.

        Returns
        -------
        float
            The F-measure: with "samples", the mean over rows.
        """
        check_same_index(X=X, y=y, sample_weight=sample_weight)
        labels, fitted = self._labels(X), self._fitted()
        return float(
            f_measure(
                read_true_labels(y, fitted),
                labels,
                fitted.beta,
                zero_division=fitted.zero_division,
                sample_weight=sample_weight,
            )
        )


def _check_columns(fitted: Any) -> None:
    """Raise if there are no columns, but lists."""
    if fitted._label_form == "lists":
        raise ValueError("X and y were lists in fit, whose places have no names: call predict")
