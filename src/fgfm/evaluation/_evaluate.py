"""Fit or take a classifier, decide for rows not used for fitting, and score the decisions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from fgfm._utils.label_table import split_missing
from fgfm._utils.names import check_same_index, check_same_names, column_names
from fgfm._utils.progress import current_callback, report_progress
from fgfm._utils.rows import take_rows
from fgfm.classifier import FClassifier
from fgfm.evaluation._scores import AVERAGES, Evaluation, HeldOut, score
from fgfm.metrics import f_measure

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Labels = npt.NDArray[np.bool_]


def evaluate(
    model: Any,
    X: Any,
    Y: Any,
    X_test: Any = None,
    Y_test: Any = None,
    *,
    folds: int = 5,
    random_state: int = 0,
    progress: Callable[[int, int, str, int, int], object] | None = None,
    partial: Callable[[int, float, float], object] | None = None,
) -> Evaluation:
    """Fit a model, decide for rows not used for fitting, and score the decisions.

    Scores are of all rows together: in cross-validation every row is decided once, so that rare
    labels count as often as they occur. Labels that are neither true nor decided in any row are
    left out of the macro F-measure.

    Parameters
    ----------
    model : FClassifier, or a pipeline that ends with one
        The model; it is cloned before it is fitted.
    X : array-like, sparse matrix or data frame of shape (n, p)
        Features, or what the first step of the pipeline takes.
    Y : array-like of shape (n, m)
        Labels, 0 or 1, or NaN if not observed; the columns of a data frame are their names. Rows
        with labels that were not observed are fitted to, and never scored.
    X_test, Y_test : optional
        Rows to decide for, as by `evaluate_fitted`. By default those of (X, Y), by
        cross-validation; then thresholds are chosen on the rows of the other folds.
    folds : int, default=5
        Number of folds of the cross-validation.
    random_state : int, default=0
        Seed for shuffling rows into folds.
    progress : callable, optional
        Called with the number of finished fits, the number of all fits, and the stage of the
        current fit: its name, the steps done, and the steps in all.
    partial : callable, optional
        Called after each fold with the number of folds done, and the mean instance F-measure in
        this fold of the F-optimal rule and of the threshold 0.5.

    Returns
    -------
    Evaluation
        Measures with standard errors.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from fgfm import FClassifier
    >>> from fgfm.evaluation import evaluate
    >>> X, Y = make_multilabel_classification(400, n_classes=6, n_labels=3, random_state=0)
    >>> forest = RandomForestClassifier(100, oob_score=True, random_state=0)
    >>> evaluation = evaluate(FClassifier(forest), X, Y, folds=3)
    >>> for rule, f in evaluation.measures["instance_f"].items():
    ...     print(f"{rule:<10} {f.value:.3f}")
    f_optimal  0.654
    half       0.638
    threshold  0.655
    """
    check_same_index(X=X, Y=Y)
    check_same_index(X_test=X_test, Y_test=Y_test)
    check_same_names(column_names(Y_test), column_names(Y), "Y_test", "Y")
    classifier = _final_classifier(model)
    labels, scored = _scored_rows(Y)
    if X_test is not None:
        fitted = _fit(model, X, Y, 0, 1, progress)
        return evaluate_fitted(fitted, X_test, Y_test, random_state=random_state)
    n = len(scored)
    if n < 2:
        raise ValueError(f"len(Y) is {n}: cross-validation needs at least 2 rows")
    if not 2 <= folds <= n:
        raise ValueError(f"folds is {folds}: it must be from 2 to {n}, the number of rows")
    parts = [
        scored[test]
        for _, test in KFold(folds, shuffle=True, random_state=random_state).split(scored)
    ]
    decided = []
    for k, rows in enumerate(parts):
        train = np.setdiff1d(np.arange(len(labels)), rows)  # rows with missing labels too
        fitted = _fit(model, take_rows(X, train), take_rows(Y, train), k, folds, progress)
        decided.append(_decide(fitted, take_rows(X, rows)))
        if partial is not None:
            sets, proba, _ = decided[-1]
            beta, zero_division = classifier.beta, classifier.zero_division
            optimal, half = (
                f_measure(labels[rows], chosen, beta=beta, zero_division=zero_division)
                for chosen in (sets["samples"], proba > 0.5)
            )
            partial(k + 1, optimal, half)
    rows = np.concatenate(parts)
    ends = np.cumsum([len(part) for part in parts])
    sets = {name: np.concatenate([of[0][name] for of in decided]) for name in AVERAGES}
    proba, expected_f = (np.concatenate([of[i] for of in decided]) for i in (1, 2))
    held_out = HeldOut(
        proba,
        labels[rows],
        np.split(np.arange(len(rows)), ends[:-1]),
        classifier.beta,
        classifier.zero_division,
    )
    return score(held_out, rows, sets, expected_f, folds, "the rows of the other folds")


def evaluate_fitted(model: Any, X: Any, Y: Any, *, random_state: int = 0) -> Evaluation:
    """Score the decisions of a fitted model for rows not used for fitting.

    Parameters
    ----------
    model : FClassifier, or a pipeline that ends with one
        The fitted model.
    X : array-like, sparse matrix or data frame of shape (n, p)
        Features, or what the first step of the pipeline takes.
    Y : array-like of shape (n, m)
        Labels, 0 or 1. Rows with NaN, a label that was not observed, are left out.
    random_state : int, default=0
        Seed for splitting the rows into halves: the thresholds for each half are chosen on the
        other, because there are no training rows.

    Returns
    -------
    Evaluation
        Measures with standard errors.
    """
    classifier = _final_classifier(model)
    check_is_fitted(classifier)
    check_same_index(X=X, Y=Y)
    names = getattr(classifier.decider_, "label_names_in_", None)
    check_same_names(column_names(Y), names, "Y", "fit")
    labels, scored = _scored_rows(Y)
    if len(scored) < 2:
        raise ValueError(f"len(Y) is {len(scored)}: an evaluation needs at least 2 rows")
    sets, proba, expected_f = _decide(model, take_rows(X, scored))
    halves = KFold(2, shuffle=True, random_state=random_state).split(scored)
    parts = [half for _, half in halves]
    held_out = HeldOut(proba, labels[scored], parts, classifier.beta, classifier.zero_division)
    return score(held_out, scored, sets, expected_f, 0, "the other half of the rows")


def _fit(model: Any, X: Any, Y: Any, done: int, total: int, progress: Any) -> Any:
    """Fit a clone, and report its progress after `done` of `total` fits."""
    outer = current_callback()

    def report(stage: str, step: int, of: int) -> None:
        if progress is not None:
            progress(done, total, stage, step, of)
        elif outer is not None:
            outer(stage, step, of)

    with report_progress(report):
        return clone(model).fit(X, Y)


def _final_classifier(model: Any) -> FClassifier:
    """Return the classifier itself, or the last step of a pipeline."""
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    if not isinstance(last, FClassifier):
        raise TypeError(
            f"model is {type(model).__name__}: it must be an FClassifier, or a pipeline that ends "
            "with one"
        )
    return last


def _scored_rows(Y: Any) -> tuple[Labels, Integers]:
    """Return labels as booleans, and the rows in which all were observed."""
    complete, observed = split_missing(Y, "Y")
    values = np.asarray(complete) > 0
    scored = np.flatnonzero(np.ones(len(values)) if observed is None else observed.all(axis=1))
    if len(values) and not len(scored):
        raise ValueError(
            "Y has no row in which all labels were observed: only such rows can be scored"
        )
    return values, scored


def _decide(model: Any, X: Any) -> tuple[dict[str, Labels], Floats, Floats]:
    """Return the F-optimal sets of each average, the probabilities and expected F-measures."""
    classifier = _final_classifier(model)
    if isinstance(model, Pipeline) and len(model.steps) > 1:
        X = model[:-1].transform(X)
    decisions = {average: classifier.decide(X, average=average) for average in AVERAGES}
    sets = {average: np.asarray(d.labels).astype(np.bool_) for average, d in decisions.items()}
    return sets, classifier.predict_proba(X), np.asarray(decisions["samples"].expected_f)
