"""Scores of label sets with their standard errors."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm.metrics import (
    FDifference,
    FInterval,
    best_threshold,
    calibration_bins,
    f_difference,
    f_interval,
    f_measure,
)

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.bool_]

MEASURES = (
    "instance_f",
    "micro_f",
    "macro_f",
    "jaccard",
    "hamming_loss",
    "subset_accuracy",
    "labels_per_row",
)
AVERAGES = {"samples": "instance_f", "macro": "macro_f", "micro": "micro_f"}
_BINS = 10  # of rows, by their expected F-measure


class Value(NamedTuple):
    """An estimate and its standard error, which is NaN if it cannot be estimated."""

    value: float
    standard_error: float


class AverageScores(NamedTuple):
    """The F-measure of an average, with label sets that were decided for this average."""

    f: dict[str, Value]  # by rule
    gains: dict[str, Value]  # of "f_optimal" over the other rules, paired by row
    thresholds: tuple[float, ...]  # of all folds: one, or one of each label
    intervals: dict[str, FInterval]  # of 95 %, by rule
    differences: dict[str, FDifference]  # of "f_optimal" to the other rules, with a verdict


@dataclass(frozen=True)
class RowDecisions:
    """The label sets of all rows that were decided, in the order of the decisions."""

    rows: npt.NDArray[np.int64] = field(repr=False, compare=False)
    truth: Labels = field(repr=False, compare=False)  # (n, m)
    sets: dict[str, Labels] = field(repr=False, compare=False)  # by rule, (n, m)
    expected_f: Floats = field(repr=False, compare=False)  # of the rule "f_optimal"
    f: Floats = field(repr=False, compare=False)


class Evaluation(NamedTuple):
    """Scores of three decision rules with the same models.

    Attributes
    ----------
    measures : dict
        ``measures[measure][rule]`` has a ``value`` and its ``standard_error``. The measures: mean
        F-measure of rows, micro and macro F-measure, mean Jaccard index, Hamming loss, share of
        exact matches, and labels per row. The rules: "f_optimal", the label set with the largest
        expected F-measure; "half", labels with a probability above 0.5; "threshold", labels with a
        probability above one threshold, or one for each label, that are best for the F-measure of
        other rows: the better of the two.
    gains : dict
        ``gains[rule]`` is the F-measure of "f_optimal" minus that of the rule, paired by row.
    averages : dict
        ``averages[average]`` has the scores of label sets that were decided for "samples", "macro"
        or "micro": ``f[rule]`` and ``gains[rule]``, each a `Value`; the ``thresholds``; and
        ``intervals[rule]`` and ``differences[rule]``, 95 % intervals of F-measures and of their
        differences, whose ``verdict`` is "better", "level" or "worse".
    expected_f : Value
        Mean F-measure that the models expect of the "f_optimal" decisions.
    excess : Value
        Expected minus obtained F-measure; above 0 if the models are too optimistic.
    bin_difference : float
        Mean absolute difference of the two over ten bins of rows of similar expectation.
    true_labels_per_row : float
        Mean number of true labels.
    n_rows : int
        Number of rows that were decided.
    folds : int
        Number of folds; standard errors are over folds, or over rows if it is 0.
    thresholds : tuple of float
        The thresholds of all folds, one or one for each label.
    threshold_from : str
        The rows that the thresholds were chosen on.
    decisions : object
        The decisions, row by row: ``rows``, their indices; ``truth``, true labels (n, m);
        ``sets``, label sets (n, m) by rule; ``expected_f`` and ``f``, expected and obtained
        F-measure of the rule "f_optimal".
    """

    measures: dict[str, dict[str, Value]]
    gains: dict[str, Value]
    averages: dict[str, AverageScores]
    expected_f: Value
    excess: Value
    bin_difference: float
    true_labels_per_row: float
    n_rows: int
    folds: int
    thresholds: tuple[float, ...]
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


class HeldOut(NamedTuple):
    """Held-out probabilities of rows, from which all rules but one decide.

    Attributes
    ----------
    proba : ndarray or CSR of shape (n, m)
        The probabilities.
    truth : ndarray or CSR of shape (n, m)
        True labels.
    parts : list of ndarray
        The rows of each part; the thresholds of a part are chosen on the other parts.
    beta, zero_division : float
        The F-measure.
    half : float
        What the rule "half" compares with: 0.5, or 0 if `proba` has scores.
    """

    proba: Any
    truth: Any
    parts: list[npt.NDArray[np.int64]]
    beta: float
    zero_division: float
    half: float = 0.5

    def rules(self, average: str, optimal: Any) -> tuple[dict[str, Any], tuple[float, ...]]:
        """Return the label sets (n, m) of each rule for an average, and the tuned thresholds.

        The rules: "f_optimal", whose sets are given; "half", labels above 0.5; "threshold", the
        better of one threshold, the best for the average, and one of each label, the best for its
        own F-measure, as chosen for each part on the other parts.
        """
        best, chosen = -1.0, None
        for choose in (best_threshold, _label_thresholds):
            thresholds, above = [], []
            for rows in self.parts:
                others = np.setdiff1d(np.arange(self.proba.shape[0]), rows)
                p, truth = self.proba[others], self.truth[others]
                thresholds.append(choose(p, truth, self.beta, self.zero_division, average))
                above.append(_above(self.proba[rows], thresholds[-1]))
            sets = self.in_order(above)
            f = self.f_measure(sets, average)
            if f > best:
                best, chosen = f, (sets, tuple(np.ravel(np.array(thresholds)).tolist()))
        assert chosen is not None
        sets, flat = chosen
        return {"f_optimal": optimal, "half": self.proba > self.half, "threshold": sets}, flat

    def in_order(self, of_parts: Sequence[Any]) -> Any:
        """Return the label sets of all rows from those of the parts."""
        if sparse.issparse(of_parts[0]):
            sets = sparse.csr_array(sparse.vstack(of_parts))
        else:
            sets = np.concatenate(of_parts)
        return sets[np.argsort(np.concatenate(self.parts))]

    def f_measure(self, sets: Any, average: str) -> float:
        """Return the F-measure of label sets (n, m) of all rows together."""
        options: dict[str, Any] = {"average": average, "zero_division": self.zero_division}
        return float(f_measure(self.truth, sets.astype(np.int8), self.beta, **options))


def _label_thresholds(
    proba: Any, truth: Any, beta: float, zero_division: float, average: str
) -> Floats:
    """Return the best threshold of each label (m,), whatever the average."""
    one, other = (sparse.csc_array(a) if sparse.issparse(a) else a for a in (proba, truth))
    return np.array(
        [
            best_threshold(one[:, [j]], other[:, [j]], beta, zero_division, "macro")
            for j in range(proba.shape[1])
        ]
    )


def _above(p: Any, thresholds: Any) -> Any:
    """Return which probabilities (n, m), dense or CSR, are above the threshold of their label."""
    if not sparse.issparse(p):
        return p > thresholds
    limits = np.broadcast_to(thresholds, (p.shape[1],))[p.indices]
    return sparse.csr_array((p.data > limits, p.indices, p.indptr), p.shape)


def score(
    held_out: HeldOut,
    rows: npt.NDArray[np.int64],
    optimal: dict[str, Labels],
    expected: Floats,
    folds: int,
    threshold_from: str,
) -> Evaluation:
    """Score the decisions of all rows together.

    `optimal` are the F-optimal sets (n, m) of each average, `expected` (n,) what they expect. With
    `folds` the parts of `held_out` follow each other, and standard errors are over them.
    """
    truth, beta, zero_division = held_out.truth, held_out.beta, held_out.zero_division
    ends = np.cumsum([len(part) for part in held_out.parts])[:-1] if folds else None
    measures: dict[str, dict[str, Value]] = {measure: {} for measure in MEASURES}
    decided: dict[str, Labels] = {}
    obtained: dict[str, Floats] = {}
    averages: dict[str, AverageScores] = {}
    for average, measure in AVERAGES.items():
        of_rule, thresholds = held_out.rules(average, optimal[average])
        scores = {}
        for rule, sets in of_rule.items():
            f = f_measure(truth, sets, beta, zero_division=zero_division, per_row=True)
            values = score_measures(truth, sets, f, beta)
            scores[rule] = values[measure]
            if average == "samples":
                decided[rule], obtained[rule] = sets, f
                for name, (value, terms) in values.items():
                    measures[name][rule] = Value(value, _standard_error(terms, ends))
        # Labels that are neither true nor decided are left out of the macro F-measure.
        empty = zero_division if average == "samples" else math.nan
        compared = intervals(truth, of_rule, average=average, beta=beta, zero_division=empty)
        averages[average] = _compare(scores, thresholds, ends, *compared)
    f = obtained["f_optimal"]
    bins = calibration_bins(expected, f, _BINS)
    gap = np.abs(bins.expected - bins.obtained)
    return Evaluation(
        measures=measures,
        gains=averages["samples"].gains,
        averages=averages,
        expected_f=_mean(expected, ends),
        excess=_mean(expected - f, ends),
        bin_difference=float(np.average(gap, weights=bins.n_rows)),
        true_labels_per_row=float(truth.sum(axis=1).mean()),
        n_rows=len(truth),
        folds=folds,
        thresholds=averages["samples"].thresholds,
        threshold_from=threshold_from,
        decisions=RowDecisions(rows, truth, decided, expected, f),
    )


def intervals(
    truth: Any, sets: dict[str, Any], **options: Any
) -> tuple[dict[str, FInterval], dict[str, FDifference]]:
    """Return the intervals of the F-measure of each rule, and of the first one minus the others.

    Warnings about few rows are not repeated for every rule.
    """
    (_, ours), *others = sets.items()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "only|labels that fewer", UserWarning)
        of_rules = {rule: f_interval(truth, labels, **options) for rule, labels in sets.items()}
        pairs = {rule: f_difference(truth, ours, labels, **options) for rule, labels in others}
    return of_rules, pairs


def _compare(
    scores: dict[str, tuple[float, Floats]], thresholds: tuple[float, ...], ends: Any, *found: Any
) -> AverageScores:
    """Return the scores of an average and the gains of the F-optimal rule."""
    best, best_terms = scores["f_optimal"]
    return AverageScores(
        {
            rule: Value(value, _standard_error(terms, ends))
            for rule, (value, terms) in scores.items()
        },
        {
            rule: Value(best - value, _standard_error(best_terms - terms, ends))
            for rule, (value, terms) in scores.items()
            if rule != "f_optimal"
        },
        thresholds,
        *found,
    )


def _mean(values: Floats, ends: Any) -> Value:
    return Value(float(values.mean()), _standard_error(values, ends))


def _standard_error(terms: Floats, ends: Any) -> float:
    """Return the standard error of the mean of rows, over folds or, without `ends`, over rows."""
    values = terms
    if ends is not None:
        values = np.array([part.mean() for part in np.split(terms, ends)])
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def score_measures(
    truth: Labels, decided: Labels, f: Floats, beta: float
) -> dict[str, tuple[float, Floats]]:
    """Compute each measure, and the term of each row whose mean is the measure.

    A ratio of sums, such as the micro F-measure, is linear in the rows to first order; the
    spread of its terms gives the standard error (delta method).
    """
    hits = truth & decided
    union = (truth | decided).sum(axis=1)
    jaccard = np.ones(len(truth))
    np.divide(hits.sum(axis=1), union, out=jaccard, where=union > 0)
    wrong = truth != decided
    means = {
        "instance_f": f,
        "jaccard": jaccard,
        "hamming_loss": wrong.mean(axis=1),
        "subset_accuracy": (~wrong.any(axis=1)).astype(np.float64),
        "labels_per_row": decided.sum(axis=1).astype(np.float64),
    }
    scores = {name: (float(values.mean()), values) for name, values in means.items()}
    numerator = (1.0 + beta**2) * hits.astype(np.float64)  # (n, m)
    denominator = beta**2 * truth.astype(np.float64) + decided  # (n, m)
    scores["micro_f"] = _ratio(
        numerator.sum(axis=1, keepdims=True), denominator.sum(axis=1, keepdims=True)
    )
    scores["macro_f"] = _ratio(numerator, denominator)
    return {name: scores[name] for name in MEASURES}


def _ratio(numerator: Floats, denominator: Floats) -> tuple[float, Floats]:
    """Return the mean over columns of sum(numerator) / sum(denominator), and its terms.

    Columns whose denominator is 0 are left out: labels that are neither true nor decided.
    """
    occurs = denominator.any(axis=0)
    if not occurs.any():
        return 1.0, np.ones(len(numerator))
    numerator, denominator = numerator[:, occurs], denominator[:, occurs]
    size = denominator.mean(axis=0)  # (columns,)
    ratio = numerator.mean(axis=0) / size
    # derivative of the ratio with respect to the weight of each row
    terms = (numerator / size - denominator * (ratio / size)).mean(axis=1)  # (n,), of mean 0
    return float(ratio.mean()), float(ratio.mean()) + terms
