"""Scores of fitted classifiers for every class, from all shapes that they return."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._utils.rows import n_rows

__all__ = ["Scores", "class_scores", "label_scores"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class Scores(NamedTuple):
    """Scores of a model for each class: probabilities, or decision values."""

    values: Floats  # (n, K), or (n, m, 2) of m labels
    are_probabilities: bool

    def of_label(self, label: int) -> Scores:
        """Return the scores (n, 2) of one of m labels."""
        return Scores(self.values[:, label], self.are_probabilities)


def class_scores(estimator: Any, X: Any, classes: Integers) -> Scores:
    """Return the scores (n, K) of a fitted learner for all classes of one target.

    The learner may have seen only some of the `classes` (K,), which are in increasing order: the
    others get probability 0, or the minimum of all decision values.
    """
    seen = np.searchsorted(classes, np.asarray(estimator.classes_))
    returned, are_probabilities = _predict(estimator, X)
    values = np.asarray(returned, dtype=np.float64)
    if are_probabilities:
        if values.ndim == 1 or values.shape[1] == 1 < len(seen):
            values = _both_classes(values.ravel(), True)
    else:
        _check_not_pairwise(estimator, len(seen))
        if values.ndim == 1:
            values = _both_classes(values, False)
    _check(estimator, values, (n_rows(X), len(seen)), "classes")
    missing = 0.0 if are_probabilities else values.min(initial=0.0)
    scores = np.full((len(values), len(classes)), missing)  # (n, K)
    scores[:, seen] = values
    return Scores(scores, are_probabilities)


def label_scores(estimator: Any, X: Any, m: int) -> Scores:
    """Return the scores (n, m, 2), of 0 and 1, of a learner that was fitted to m labels.

    ``predict_proba`` may return an array (n, m) of the probabilities of 1, a list with the
    probabilities of the classes of each label, or the two columns of one label.
    """
    returned, are_probabilities = _predict(estimator, X)
    if isinstance(returned, list):
        seen = getattr(estimator, "classes_", [np.arange(2)] * len(returned))
        parts = zip(returned, seen, strict=True)
        values = np.stack([_two_columns(estimator, *part) for part in parts], axis=1)
    else:
        dense = returned.toarray() if sparse.issparse(returned) else returned
        p = np.asarray(dense, dtype=np.float64)
        if m == 1 and are_probabilities and p.shape[1:] == (2,):
            values = p[:, None]
        else:
            values = _both_classes(p[:, None] if m == 1 and p.ndim == 1 else p, are_probabilities)
    _check(estimator, values, (n_rows(X), m, 2), "labels")
    return Scores(values, are_probabilities)


def _predict(estimator: Any, X: Any) -> tuple[Any, bool]:
    """Return what a learner predicts, and whether it is probabilities."""
    if hasattr(estimator, "predict_proba"):
        return estimator.predict_proba(X), True
    return estimator.decision_function(X), False


def _both_classes(values: Floats, are_probabilities: bool) -> Floats:
    """Return the scores of 0 and of 1, (.., 2), from those of 1."""
    if are_probabilities:
        return np.stack([1.0 - values, values], axis=-1)
    return np.stack([-0.5 * values, 0.5 * values], axis=-1)


def _two_columns(estimator: Any, part: Any, classes: Any) -> Floats:
    """Return the probabilities (n, 2) of a label that may have been constant in training."""
    p: Floats = np.asarray(part, dtype=np.float64)
    if p.shape[1] == 1:
        is_one = np.asarray(classes).ravel()[0] == 1
        return np.hstack([np.zeros_like(p), p] if is_one else [p, np.zeros_like(p)])
    if p.shape[1] != 2:
        raise ValueError(
            f"estimator {type(estimator).__name__} predicts {p.shape[1]} classes for a label: "
            "a label must be 0 or 1"
        )
    return p


def _check(estimator: Any, values: Floats, shape: tuple[int, ...], kind: str) -> None:
    """Raise ValueError unless there are finite scores for each of n rows and each class."""
    finite = bool(np.isfinite(values).all())
    if values.shape == shape and finite:
        return
    found = values.shape if kind == "classes" else values.shape[:-1]
    raise ValueError(
        f"estimator {type(estimator).__name__} returned scores of shape {found}"
        f"{'' if finite else ' that are not all finite'}: there must be a finite number for each "
        f"of {shape[0]} rows and {shape[1]} {kind}"
    )


def _check_not_pairwise(estimator: Any, n_classes: int) -> None:
    """Raise if decision values belong to pairs of classes: three classes have three pairs."""
    while hasattr(estimator, "steps"):
        estimator = estimator.steps[-1][1]
    if n_classes > 2 and getattr(estimator, "decision_function_shape", None) == "ovo":
        raise ValueError(
            f"estimator {type(estimator).__name__} has decision_function_shape 'ovo', a score for "
            "each pair of classes: it must be 'ovr', a score for each class"
        )
