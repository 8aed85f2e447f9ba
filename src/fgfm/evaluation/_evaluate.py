"""Decide for rows not used for fitting, by a classifier or a decider, and score the decisions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from fgfm._utils.label_table import split_missing
from fgfm._utils.names import check_same_index, check_same_names, column_names
from fgfm._utils.progress import current_callback, report_progress
from fgfm._utils.rows import take_rows
from fgfm.classifier import FClassifier
from fgfm.decider import FDecider
from fgfm.evaluation._comparison import Comparison, HeldOut, spread_folds
from fgfm.metrics import FDifference, f_measure
from fgfm.metrics._best_threshold import read_rows

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Labels = npt.NDArray[np.bool_]

_AVERAGES = ("samples", "macro", "micro")


@dataclass(frozen=True)
class RowDecisions:
    """The label sets of all rows that were decided."""

    rows: Integers = field(repr=False, compare=False)
    truth: Labels = field(repr=False, compare=False)  # (n, m)
    sets: dict[str, Labels] = field(repr=False, compare=False)  # by rule, (n, m)
    expected_f: Floats = field(repr=False, compare=False)  # of the rule "f_optimal"
    f: Floats = field(repr=False, compare=False)


class Evaluation(NamedTuple):
    """Scores of three decision rules with the same models.

    Attributes
    ----------
    averages : dict of str to Comparison
        For "samples", "macro" and "micro" the F-measures of label sets that were decided for this
        average, by rule, with their intervals and differences.
    measures : dict
        ``measures[measure][rule]``, of the label sets decided for each row: mean F-measure of
        rows, micro and macro F-measure, mean Jaccard index, Hamming loss, share of exact matches,
        and labels per row.
    expected_f : float
        Mean F-measure that the models expect of the "f_optimal" decisions.
    excess : float
        Expected minus obtained F-measure; above 0 if the models are too optimistic.
    true_labels_per_row : float
        Mean number of true labels.
    n_rows : int
        Number of rows that were decided.
    folds : int
        Number of folds; 0 for a model that was fitted before.
    threshold_from : str
        The rows that the thresholds were chosen on.
    decisions : object
        The decisions, row by row: ``rows``, their indices; ``truth``, true labels (n, m);
        ``sets``, label sets (n, m) by rule; ``expected_f`` and ``f``, expected and obtained
        F-measure of the rule "f_optimal".
    """

    averages: dict[str, Comparison]
    measures: dict[str, dict[str, float]]
    expected_f: float
    excess: float
    true_labels_per_row: float
    n_rows: int
    folds: int
    threshold_from: str
    decisions: RowDecisions

    def as_dict(self) -> dict[str, Any]:
        """Convert to dictionaries, lists and numbers for JSON; NaN becomes None.

        Returns
        -------
        dict
            One entry per attribute but ``decisions``.
        """
        parts = self._asdict()
        del parts["decisions"]
        return {name: _to_json(value) for name, value in parts.items()}


def _to_json(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        verdict = {"verdict": value.verdict} if isinstance(value, FDifference) else {}
        value = value._asdict() | verdict
    if isinstance(value, dict):
        return {key: _to_json(part) for key, part in value.items()}
    if isinstance(value, tuple):
        return [_to_json(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


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
        Number of folds of the cross-validation; at most one for each row.
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
        Measures, with intervals of F-measures.

    See Also
    --------
    evaluate_decider : The same for an `fgfm.FDecider` and probabilities.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from fgfm import FClassifier
    >>> from fgfm.evaluation import evaluate
    >>> X, Y = make_multilabel_classification(400, n_classes=6, n_labels=3, random_state=0)
    >>> forest = RandomForestClassifier(100, oob_score=True, random_state=0)
    >>> evaluation = evaluate(FClassifier(forest), X, Y, folds=3)
    >>> samples = evaluation.averages["samples"]
    >>> for rule, (f, low, high) in samples.f.items():
    ...     print(f"{rule:<10} {f:.3f} ({low:.3f} to {high:.3f})")
    f_optimal  0.657 (0.633 to 0.679)
    half       0.629 (0.603 to 0.654)
    threshold  0.659 (0.636 to 0.681)
    >>> samples.differences["half"].verdict
    'better'
    """
    check_same_index(X=X, Y=Y)
    check_same_index(X_test=X_test, Y_test=Y_test)
    check_same_names(column_names(Y_test), column_names(Y), "Y_test", "Y")
    classifier = _final_classifier(model)
    labels, scored = _scored_rows(Y)
    if X_test is not None:
        fitted = _fit(model, X, Y, 0, 1, progress)
        return evaluate_fitted(fitted, X_test, Y_test, random_state=random_state)
    parts = spread_folds(labels[scored], folds, random_state)
    measure = classifier.beta, classifier.zero_division
    decided = []
    for k, part in enumerate(parts):
        rows = scored[part]
        train = np.setdiff1d(np.arange(len(labels)), rows)  # rows with missing labels too
        fitted = _fit(model, take_rows(X, train), take_rows(Y, train), k, len(parts), progress)
        sets, proba, expected_f = _decide(fitted, take_rows(X, rows))
        decided.append((*sets.values(), proba, expected_f))
        if partial is not None:
            truth, (beta, empty) = labels[rows], measure
            f = (
                f_measure(truth, chosen, beta, zero_division=empty)
                for chosen in (sets["samples"], proba > 0.5)
            )
            partial(k + 1, *f)
    order = np.argsort(np.concatenate(parts))
    *of_averages, proba, expected_f = (
        np.concatenate(of)[order] for of in zip(*decided, strict=True)
    )
    sets = dict(zip(_AVERAGES, of_averages, strict=True))
    from_rows = "the rows of the other folds"
    held_out = HeldOut(proba, labels[scored], parts, len(parts), *measure)
    return _score(held_out, scored, sets, expected_f, from_rows)


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
        Measures, with intervals of F-measures.
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
    halves = [half for _, half in KFold(2, shuffle=True, random_state=random_state).split(scored)]
    measure = classifier.beta, classifier.zero_division
    held_out = HeldOut(proba, labels[scored], halves, 0, *measure)
    return _score(held_out, scored, sets, expected_f, "the other half of the rows")


def evaluate_decider(
    decider: FDecider,
    proba: Any,
    Y: Any,
    *,
    folds: int = 5,
    random_state: int = 0,
    progress: Callable[[int, int], object] | None = None,
) -> Comparison:
    """Cross-validate a decider on validation rows, beside thresholds on the probabilities.

    Every row is decided once, by rules that were fitted to the rows of the other folds; the
    F-measure, of the average and beta of the decider, is that of all rows together. Labels that
    are neither true nor decided in any row are left out of the macro F-measure.

    Parameters
    ----------
    decider : FDecider
        The decider; it is cloned before it is fitted.
    proba : ndarray or CSR of shape (n, m), or (n,)
        Probabilities, or scores if the decider takes them.
    Y : ndarray, data frame or CSR of the same shape
        True labels, 0 or 1; sparse if `proba` is. The F-measure of a single label is that of the
        positive class.
    folds : int, default=5
        Number of folds; at most one for each row.
    random_state : int, default=0
        Seed for shuffling rows into folds.
    progress : callable, optional
        Called with the number of finished folds and that of all.

    Returns
    -------
    Comparison
        The F-measure of each rule; "f_optimal" is the decider.

    Examples
    --------
    >>> import numpy as np
    >>> from fgfm import FDecider
    >>> from fgfm.evaluation import evaluate_decider
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random((300, 4)) ** 2
    >>> Y = (rng.random((300, 4)) < truth).astype(int)
    >>> for rule, f in evaluate_decider(FDecider(), truth**2, Y).f.items():
    ...     print(f"{rule:<10} {f.f:.2f} ({f.low:.2f} to {f.high:.2f})")
    f_optimal  0.68 (0.64 to 0.72)
    half       0.47 (0.42 to 0.52)
    threshold  0.69 (0.65 to 0.73)
    """
    proba = proba if sparse.issparse(proba) else np.asarray(proba)
    p, truth = read_rows(proba, Y, "Y")
    parts = spread_folds(truth, folds, random_state)
    half = 0.0 if decider.scores else 0.5
    held_out = HeldOut(p, truth, parts, len(parts), decider.beta, decider.zero_division, half)
    n, m = truth.shape
    decided = []
    for k, test in enumerate(parts):
        train = np.setdiff1d(np.arange(n), test)
        labels = clone(decider).fit(proba[train], take_rows(Y, train)).predict(proba[test])
        decided.append(labels.reshape((-1, m)))
        if progress is not None:
            progress(k + 1, len(parts))
    stored = sparse.issparse(decided[0])
    labels = sparse.vstack(decided, "csr") if stored else np.concatenate(decided)
    average = decider.average if m > 1 else "macro"  # of one label: that of the positive class
    return held_out.compare(average, labels[np.argsort(np.concatenate(parts))])[0]


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
    rows = classifier._read(X)  # the model predicts once, for all averages
    decisions = {average: classifier._decide_rows(rows, average) for average in _AVERAGES}
    sets = {average: np.asarray(d.labels).astype(np.bool_) for average, d in decisions.items()}
    return sets, classifier._proba_of_rows(rows), np.asarray(decisions["samples"].expected_f)


def _score(
    held_out: HeldOut,
    rows: Integers,
    optimal: dict[str, Labels],
    expected_f: Floats,
    threshold_from: str,
) -> Evaluation:
    """Score F-optimal sets (n, m) of each average; `expected_f` (n,) is that of "samples"."""
    averages, of_rules = {}, {}
    for average, sets in optimal.items():
        averages[average], of_rules[average] = held_out.compare(average, sets)
    decided, truth = of_rules["samples"], held_out.truth
    scores = {rule: dict(_measures(held_out, sets)) for rule, sets in decided.items()}
    measure: dict[str, Any] = {"beta": held_out.beta, "zero_division": held_out.zero_division}
    f = f_measure(truth, decided["f_optimal"], per_row=True, **measure)
    return Evaluation(
        averages=averages,
        measures={
            name: {rule: of_rule[name] for rule, of_rule in scores.items()}
            for name in scores["f_optimal"]
        },
        expected_f=float(expected_f.mean()),
        excess=float((expected_f - f).mean()),
        true_labels_per_row=float(truth.sum(axis=1).mean()),
        n_rows=len(truth),
        folds=held_out.folds,
        threshold_from=threshold_from,
        decisions=RowDecisions(rows, truth, decided, expected_f, f),
    )


def _measures(held_out: HeldOut, sets: Labels) -> Iterator[tuple[str, float]]:
    """Yield the names and the values of all measures of label sets (n, m)."""
    truth = held_out.truth
    beta, empty = held_out.beta, held_out.zero_division
    yield "instance_f", f_measure(truth, sets, beta, zero_division=empty)
    yield "micro_f", f_measure(truth, sets, beta, average="micro", zero_division=math.nan)
    yield "macro_f", f_measure(truth, sets, beta, average="macro", zero_division=math.nan)
    union = (truth | sets).sum(axis=1)
    jaccard = np.ones(len(truth))
    np.divide((truth & sets).sum(axis=1), union, out=jaccard, where=union > 0)
    yield "jaccard", float(jaccard.mean())
    yield "hamming_loss", float((truth != sets).mean())
    yield "subset_accuracy", float((truth == sets).all(axis=1).mean())
    yield "labels_per_row", float(sets.sum(axis=1).mean())
