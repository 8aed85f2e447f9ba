"""One row of a table, or of what a classifier knows of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from fgfm._utils.rows import n_rows, take_rows
from fgfm.classifier import FGFMClassifier
from fgfm.decision import Decision

__all__ = ["classifier_and_features", "decide_row", "dense", "label_names_of", "one_row"]

Floats = npt.NDArray[np.float64]


def one_row(table: Any, row: Any, name: str) -> Any:
    """Give one row as a table of its own, of the same kind."""
    if isinstance(row, (bool, np.bool_)) or not isinstance(row, (int, np.integer)):
        raise TypeError(f"row is {row!r}: it must be the number of a row, an integer")
    n = n_rows(table)
    if not 0 <= row < n:
        raise ValueError(f"row is {row}: {name} has {n} rows, so it must be from 0 to {n - 1}")
    if sparse.issparse(table):
        table = table.tocsr()
    return take_rows(table, slice(int(row), int(row) + 1))


def dense(table: Any) -> Floats:
    """Give a table of one row as floats."""
    array = table.toarray() if sparse.issparse(table) else np.asarray(table)
    return np.asarray(array, dtype=np.float64)


def decide_row(
    decide: Callable[..., Decision], tables: Sequence[Any], whole: Sequence[Any], row: int
) -> Decision:
    """Decide for one row; what is wrong with it is told as of the whole tables.

    Parameters
    ----------
    decide : callable
        The decision.
    tables : sequence
        Its arguments for this row alone.
    whole : sequence
        Its arguments for all rows.
    row : int
        The number of the row.

    Returns
    -------
    Decision
        For one row.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a contradiction is refused below
        try:
            decision = decide(*tables)
        except ValueError:
            decide(*whole)  # this names the place
            raise
    if np.isnan(np.asarray(decision.expected_f)[0]):
        raise ValueError(
            f"row {row} has no probability for a non-empty label set, which nonempty=True "
            "supposes: there is nothing to decide"
        )
    return decision


def classifier_and_features(estimator: Any, X: Any) -> tuple[FGFMClassifier, Any]:
    """Give the classifier, the last step of a pipeline maybe, and X as it gets it."""
    given = estimator
    if isinstance(estimator, Pipeline):
        estimator = given.steps[-1][1]
    if not isinstance(estimator, FGFMClassifier):
        inside = "" if estimator is given else f" that ends with a {type(estimator).__name__}"
        raise TypeError(
            f"estimator is a {type(given).__name__}{inside}: it must be an FGFMClassifier, or a "
            "pipeline that ends with one"
        )
    check_is_fitted(estimator)
    if isinstance(given, Pipeline) and len(given.steps) > 1:
        X = given[:-1].transform(X)
    return estimator, X


def label_names_of(classifier: FGFMClassifier) -> Sequence[Any] | None:
    """Give the names of the labels; of a flat y the class that the one label stands for."""
    if not classifier.multilabel_:
        return list(classifier.classes_[-1:])
    names: Sequence[Any] | None = getattr(classifier, "label_names_in_", None)
    return names
