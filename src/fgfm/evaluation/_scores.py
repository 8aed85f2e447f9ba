"""Scores of label sets with their standard errors."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm.metrics import calibration_bins, f_measure

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
RULES = ("f_optimal", "half", "threshold")
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
    thresholds: tuple[float, ...]  # of each fold, best for the average


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
        probability above the single threshold that is best for the F-measure.
    gains : dict
        ``gains[rule]`` is the F-measure of "f_optimal" minus that of the rule, paired by row.
    averages : dict
        ``averages[average]`` has the scores of label sets that were decided for "samples", "macro"
        or "micro": ``f[rule]`` and ``gains[rule]``, each a `Value`, and the ``thresholds``.
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
        The threshold of each fold.
    threshold_from : str
        The rows that the thresholds were chosen on.
    factors : tuple of int
        Number of label factors of each model.
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
    factors: tuple[int, ...]
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
    if isinstance(value, (Value, AverageScores)):
        value = value._asdict()
    if isinstance(value, dict):
        return {key: _to_json(part) for key, part in value.items()}
    if isinstance(value, tuple):
        return [_to_json(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class Decided(NamedTuple):
    """Decisions of all rules for some rows, by one model."""

    rows: npt.NDArray[np.int64]
    sets: dict[str, dict[str, Labels]]
    expected_f: Floats
    thresholds: dict[str, tuple[float, ...]]
    n_factors: int


def score(
    parts: list[Decided],
    labels: Labels,
    beta: float,
    zero_division: float,
    folds: int,
    threshold_from: str,
) -> Evaluation:
    """Score the decisions of all folds together."""
    rows = np.concatenate([part.rows for part in parts])
    truth = labels[rows]  # in the order of decisions
    expected = np.concatenate([part.expected_f for part in parts])
    _check_expected(expected)
    ends = np.cumsum([len(part.rows) for part in parts])[:-1] if folds else None
    measures: dict[str, dict[str, Value]] = {measure: {} for measure in MEASURES}
    decided: dict[str, Labels] = {}
    obtained: dict[str, Floats] = {}
    averages: dict[str, AverageScores] = {}
    for average, measure in AVERAGES.items():
        scores = {}
        for rule in RULES:
            sets = np.concatenate([part.sets[average][rule] for part in parts])
            f = f_measure(truth, sets, beta, zero_division=zero_division, per_row=True)
            found = score_measures(truth, sets, f, beta)
            scores[rule] = found[measure]
            if average == "samples":
                decided[rule], obtained[rule] = sets, f
                for name, (value, terms) in found.items():
                    measures[name][rule] = Value(value, _standard_error(terms, ends))
        averages[average] = _compare(scores, parts, average, ends)
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
        factors=tuple(part.n_factors for part in parts),
        decisions=RowDecisions(rows, truth, decided, expected, f),
    )


def _compare(
    scores: dict[str, tuple[float, Floats]], parts: list[Decided], average: str, ends: Any
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
        tuple(t for part in parts for t in part.thresholds[average]),
    )


def _check_expected(expected: Floats) -> None:
    undefined = int(np.isnan(expected).sum())
    if undefined:
        raise ValueError(
            f"{undefined} of {len(expected)} rows have probability 0 for every label, which "
            "contradicts nonempty: their expected F-measure is undefined"
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
