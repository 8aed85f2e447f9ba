"""What displays share: new axes, validation, and the decisions of an estimator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from fgfm._utils.optional import import_optional
from fgfm._utils.validation import real_array
from fgfm.decision import Decision

Floats = npt.NDArray[np.float64]


def new_axes(display: str, size: Any) -> Any:
    """Return the axes of a new figure; matplotlib is optional."""
    plt = import_optional("matplotlib.pyplot", display, "plot")
    return plt.subplots(figsize=tuple(size), layout="constrained")[1]


def f_symbol(beta: float) -> str:
    """Return the symbol of the F-measure, as mathematics for matplotlib."""
    return rf"$F_{{{beta:g}}}$"


def check_label_names(names: Sequence[str] | None, m: int) -> list[str]:
    """Return the names of m labels, by default their indices."""
    if names is None:
        return [str(k) for k in range(m)]
    if len(names) != m:
        raise ValueError(f"label_names has {len(names)} names: it must have {m}, one per label")
    return [str(name) for name in names]


def check_vector(values: Any, name: str, axis: str, n: int | None = None) -> Floats:
    """Return a non-empty flat array of floats, of length n if that is given."""
    array = real_array(values, name, (axis,))
    if len(array) == 0 or n not in (None, len(array)):
        wanted = "one number or more" if n is None else f"{n} numbers"
        raise ValueError(
            f"{name} has shape {array.shape}: it must have {wanted}, one for each {axis}"
        )
    return array.astype(np.float64)


def dense(table: Any) -> Floats:
    """Return a table as a dense array of floats."""
    array = table.toarray() if sparse.issparse(table) else np.asarray(table)
    return np.asarray(array, dtype=np.float64)


def estimator_and_rows(estimator: Any, X: Any, method: str = "decide") -> tuple[Any, Any]:
    """Return the fitted estimator, which may end a pipeline, and X transformed by the pipeline.

    The estimator must have a method.
    """
    pipeline = estimator
    if isinstance(estimator, Pipeline):
        estimator = pipeline.steps[-1][1]
    if not hasattr(estimator, method):
        inside = "" if estimator is pipeline else f" that ends with a {type(estimator).__name__}"
        raise TypeError(
            f"estimator is a {type(pipeline).__name__}{inside}: it must be an estimator of fgfm "
            f"with the method {method}, or a pipeline that ends with one"
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
