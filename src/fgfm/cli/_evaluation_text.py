"""The result of ``fgfm evaluate`` as a table and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fgfm._utils.text import clipped, counted, wrapped
from fgfm.cli._console import format_table

if TYPE_CHECKING:
    from fgfm.evaluation import Evaluation

RULE_NAMES = {"f_optimal": "F-optimal", "half": "p > 0.5", "threshold": "p > t"}
_MEASURES = {
    "instance_f": "instance F{beta:g}",
    "micro_f": "micro F{beta:g}",
    "macro_f": "macro F{beta:g}",
    "jaccard": "Jaccard",
    "hamming_loss": "Hamming loss",
    "subset_accuracy": "subset accuracy",
    "labels_per_row": "labels per row",
}
_AVERAGES = {"samples": "instance_f", "macro": "macro_f", "micro": "micro_f"}
Rows = list[list[str]]


class Result(NamedTuple):
    """An evaluation with the description of its data and of its model."""

    description: dict[str, Any]
    beta: float
    evaluation: Evaluation
    label_names: Sequence[str]
    row_names: Sequence[str]


def as_json_text(result: Result) -> str:
    """Return all numbers as JSON."""
    measured = result.evaluation.as_dict()
    return json.dumps(result.description | {"beta": result.beta} | measured, indent=1)


def as_table(result: Result) -> str:
    """Return the F-measures of each rule with their intervals, other measures, and notes."""
    chosen = []
    for name, *cells in average_rows(result):
        chosen += [[name, *cells[:3]], ["  F-optimal", "", *cells[3:]]]
    title = ["Label sets and t for each row, by other measures:", ""]
    lines = format_table(
        [["", *RULE_NAMES.values()], *chosen, *measure_rows(result)], "<>>>", gap=" ", width=19
    )
    first = 1 + len(chosen)
    parts = [heading(result), lines[:first], [*title, *lines[first:]], notes(result)]
    return "\n\n".join("\n".join(map(wrapped, part)) for part in parts)


def measure_name(measure: str, beta: float) -> str:
    """Return the name of a measure, such as macro F1."""
    return _MEASURES[measure].format(beta=beta)


def measure_rows(result: Result) -> Rows:
    """Return the name of each measure, and the value of each rule."""
    return [
        [
            measure_name(measure, result.beta),
            *(f"{v:.{2 if measure == 'labels_per_row' else 4}f}" for v in by_rule.values()),
        ]
        for measure, by_rule in result.evaluation.measures.items()
    ]


def average_rows(result: Result) -> Rows:
    """Return the name of each F-measure, its intervals by rule, and the gains of F-optimal."""
    return [
        [
            measure_name(_AVERAGES[average], result.beta),
            *(f"{f:.3f} ({low:.3f}-{high:.3f})" for f, low, high in found.f.values()),
            *(f"{gain.difference:+.3f} ({gain.verdict})" for gain in found.differences.values()),
        ]
        for average, found in result.evaluation.averages.items()
    ]


def heading(result: Result) -> list[str]:
    """Return a line on the data and one on the model."""
    about = result.description
    data = (
        f"{clipped(about['data'], 40)}: {counted(about['rows'], 'row')}, "
        f"{counted(about['features'], 'feature')}, {counted(about['labels'], 'label')}"
    )
    if "model" in about:
        return [data, f"model {clipped(about['model'], 60)}"]
    model = f"learner {about['learner']}; {about['protocol']}"
    return [data, model]


def notes(result: Result) -> list[str]:
    """Return notes on the intervals, on the expected F-measure and on the thresholds t."""
    found, excess = result.evaluation, result.evaluation.excess
    thresholds = found.averages["samples"].thresholds
    low, high = min(thresholds), max(thresholds)
    t = f"{low:.3f}" if high - low < 5e-4 else f"{low:.3f} to {high:.3f}"
    side = "above" if excess >= 0.0 else "below"
    return [
        "In brackets 95 % intervals, and whether F-optimal decisions are better by more than "
        f"chance. True labels per row: {found.true_labels_per_row:.2f}.",
        f"Expected F{result.beta:g} {found.expected_f:.4f}, {abs(excess):.4f} {side} the observed "
        "one.",
        f"t = {t}, chosen on {found.threshold_from}: the better of one threshold and one for each "
        "label.",
    ]
