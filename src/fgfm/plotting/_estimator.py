"""What displays read from tables and from fitted estimators: one row, its decision, its labels."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from fgfm._utils.rows import n_rows, take_rows
from fgfm._utils.validation import check_axes
from fgfm.classifier import FGFMClassifier
from fgfm.decision import Decision

__all__ = [
    "DecisionInputs",
    "classifier_and_features",
    "decide_arrays",
    "decide_row",
    "decision_inputs",
    "dense",
    "factor_finder",
    "label_names_of",
    "select_row",
]

Floats = npt.NDArray[np.float64]


def select_row(table: Any, row: Any, name: str) -> Any:
    """Return one row as a table of the same type.

    Parameters
    ----------
    table : array-like, sparse matrix or data frame
        The table.
    row : int
        Index of the row.
    name : str
        Name of the table, for error messages.

    Returns
    -------
    array, sparse matrix or data frame
        The row, as a table with one row.
    """
    if isinstance(row, (bool, np.bool_)) or not isinstance(row, (int, np.integer)):
        raise TypeError(f"row is {row!r}: it must be an integer, the index of a row")
    n = n_rows(table)
    if not 0 <= row < n:
        raise ValueError(f"row is {row}: {name} has {n} rows, so it must be from 0 to {n - 1}")
    if sparse.issparse(table):
        table = table.tocsr()
    return take_rows(table, slice(int(row), int(row) + 1))


def dense(table: Any) -> Floats:
    """Return a table as a dense array of floats."""
    array = table.toarray() if sparse.issparse(table) else np.asarray(table)
    return np.asarray(array, dtype=np.float64)


def decide_row(
    decide: Callable[..., Decision], of_row: Sequence[Any], of_all: Sequence[Any], row: int
) -> Decision:
    """Decide for one row; errors refer to the index of the row in the whole tables.

    Parameters
    ----------
    decide : callable
        The decision function.
    of_row : sequence
        Its arguments for this row alone.
    of_all : sequence
        Its arguments for all rows.
    row : int
        Index of the row.

    Returns
    -------
    Decision
        For one row.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a contradiction raises an error below
        try:
            decision = decide(*of_row)
        except ValueError:
            decide(*of_all)  # raises the same error with the right index
            raise
    if np.ndim(decision.expected_f) == 0:  # 1-D probabilities are one problem
        check_axes(np.shape(of_all[0]), "proba", ("row", "label"))
    if np.isnan(np.asarray(decision.expected_f)[0]):
        raise ValueError(
            f"row {row} has no probability for a non-empty label set, which nonempty=True "
            "assumes: there is no decision to draw"
        )
    return decision


def classifier_and_features(
    estimator: Any, X: Any, kinds: tuple[type[Any], ...] = (FGFMClassifier,)
) -> tuple[Any, Any]:
    """Return the classifier, which may be the last step of a pipeline, and its features.

    Parameters
    ----------
    estimator : FGFMClassifier or Pipeline
        Fitted.
    X : array-like, sparse matrix or data frame
        Features of the estimator.
    kinds : tuple of types
        The classes that the classifier may have.

    Returns
    -------
    tuple
        The classifier, and X transformed by the steps before it.
    """
    pipeline = estimator
    if isinstance(estimator, Pipeline):
        estimator = pipeline.steps[-1][1]
    if not isinstance(estimator, kinds):
        inside = "" if estimator is pipeline else f" that ends with a {type(estimator).__name__}"
        names = " or ".join(kind.__name__ for kind in kinds)
        raise TypeError(
            f"estimator is a {type(pipeline).__name__}{inside}: it must be an {names}, or a "
            "pipeline that ends with one"
        )
    check_is_fitted(estimator)
    if isinstance(pipeline, Pipeline) and len(pipeline.steps) > 1:
        X = pipeline[:-1].transform(X)
    return estimator, X


def decide_arrays(classifier: Any, X: Any) -> Decision:
    """Return the decision of a classifier as arrays (n, m) and (n,), whatever X and y are."""
    labels, expected_f = classifier.decide(X)
    if np.ndim(expected_f) == 0 or getattr(classifier, "average", "samples") != "samples":
        raise ValueError(
            f"estimator is a {type(classifier).__name__} that decides batches: the expected "
            "F-measures of rows need average='samples' and a matrix y"
        )
    labels = labels.toarray() if sparse.issparse(labels) else np.asarray(labels)
    return Decision(labels.reshape(len(labels), -1), np.asarray(expected_f))


class DecisionInputs(NamedTuple):
    """What the decision for one row is computed from."""

    Ps: list[Floats]  # P of each factor, (1, m_f, S_f)
    ds: list[Floats]  # d of each factor, (1, S_f + 1)
    factors: list[Any]  # labels of each factor
    objective: dict[str, Any]  # beta, zero_division and nonempty


def decision_inputs(classifier: FGFMClassifier, X: Any) -> DecisionInputs:
    """Return what a classifier's decision for one row is computed from.

    Parameters
    ----------
    classifier : FGFMClassifier
        Fitted.
    X : array-like, sparse matrix or data frame of shape (1, p)
        Features of the row.

    Returns
    -------
    DecisionInputs
        P and d of each factor; for a row decided by the label frequencies, those of independent
        labels with these frequencies.
    """
    estimates = classifier.estimate(X)
    params = classifier.decision_params()
    return DecisionInputs(
        [P for P, _ in estimates],
        [d for _, d in estimates],
        classifier.factors_,
        {name: params[name] for name in ("beta", "zero_division", "nonempty")},
    )


def label_names_of(classifier: FGFMClassifier) -> Sequence[Any] | None:
    """Return the names of the labels, if any; for a flat y the name of the positive class."""
    if not classifier.multilabel_:
        return list(classifier.classes_[-1:])
    names: Sequence[Any] | None = getattr(classifier, "label_names_in_", None)
    return names


def factor_finder(estimator: Any) -> tuple[Any, Any]:
    """Return the fitted `ILFCompo` of an estimator, and the names of the labels, if any.

    Parameters
    ----------
    estimator : ILFCompo, FGFMClassifier, or a pipeline that ends with one
        Fitted; of a classifier its ``factor_finder_`` is returned.

    Returns
    -------
    tuple
        The estimator that has p-values, and label names or None.
    """
    if isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    check_is_fitted(estimator, "factors_")
    finder = getattr(estimator, "factor_finder_", estimator)
    needed = ("p_values_", "effects_", "graph_", "cuts_", "rule")
    missing = [name for name in needed if not hasattr(finder, name)]
    if missing:
        kind = type(estimator).__name__
        inside = (
            "" if finder is estimator else f" with a {type(finder).__name__} as factor_finder_"
        )
        raise ValueError(
            f"estimator is a {kind}{inside}, which has no {missing[0]}: it must be an ILFCompo, "
            "or a classifier with factors found by one (factors='ilf', two labels or more)"
        )
    names = getattr(estimator, "label_names_in_", None)
    return finder, getattr(finder, "label_names_in_", None) if names is None else names
