"""The result of ``fgfm evaluate`` as a table and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fgfm._utils.text import clipped, counted, wrapped
from fgfm.cli._console import format_table

if TYPE_CHECKING:
    from fgfm.evaluation import Evaluation

__all__ = [
    "RULE_NAMES",
    "Result",
    "as_json_text",
    "as_table",
    "average_rows",
    "heading",
    "measure_name",
    "measure_rows",
    "notes",
]

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
    measured.pop("factors", None)
    return json.dumps(result.description | {"beta": result.beta} | measured, indent=1)


def as_table(result: Result) -> str:
    """Return the measures of each rule with their standard errors, and notes on them."""
    first, *others = measure_rows(result)
    by_average = [(row[:4], ["  gain of F-optimal", "", *row[4:]]) for row in average_rows(result)]
    rows = [["", *RULE_NAMES.values()], first, by_average[0][1], *others]
    chosen = [row for both in by_average[1:] for row in both]
    table = format_table([*rows, *chosen], "<>>>", gap="", width=20)
    title = f"With label sets and t chosen for macro and micro F{result.beta:g}:"
    parts = [heading(result), table[: len(rows)], [title, *table[len(rows) :]], notes(result)]
    return "\n\n".join("\n".join(map(wrapped, part)) for part in parts)


def measure_name(measure: str, beta: float) -> str:
    """Return the name of a measure, such as macro F1."""
    return _MEASURES[measure].format(beta=beta)


def measure_rows(result: Result) -> Rows:
    """Return the name of each measure, and the value of each rule with its standard error."""
    return [
        [measure_name(measure, result.beta), *_cells(measure, by_rule)]
        for measure, by_rule in result.evaluation.measures.items()
    ]


def average_rows(result: Result) -> Rows:
    """Return the name of each F-measure, the values of the rules chosen for it, and the gains."""
    return [
        [
            measure_name(_AVERAGES[average], result.beta),
            *_cells(average, scores.f),
            *(f"{gain.value:+.4f} ({gain.standard_error:.4f})" for gain in scores.gains.values()),
        ]
        for average, scores in result.evaluation.averages.items()
    ]


def _cells(measure: str, values: dict[str, Any]) -> list[str]:
    digits = 2 if measure == "labels_per_row" else 4
    return [f"{v.value:.{digits}f} ({v.standard_error:.{digits}f})" for v in values.values()]


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
    """Return notes on standard errors, on the expected F-measure and on the thresholds t."""
    found, excess = result.evaluation, result.evaluation.excess
    over = f"{found.folds} folds" if found.folds else counted(found.n_rows, "row")
    low, high = min(found.thresholds), max(found.thresholds)
    t = f"{low:.3f}" if high - low < 5e-4 else f"{low:.3f} to {high:.3f}"
    side = "above" if excess.value >= 0.0 else "below"
    intervals = []
    for average, scores in found.averages.items():
        _, low_f, high_f = scores.intervals["f_optimal"]
        verdict = scores.differences["threshold"].verdict
        name = measure_name(_AVERAGES[average], result.beta)
        intervals.append(f"{name} {low_f:.3f} to {high_f:.3f} ({verdict})")
    return [
        f"Standard errors over {over} in brackets. True labels per row: "
        f"{found.true_labels_per_row:.2f}.",
        f"Expected F{result.beta:g} {found.expected_f.value:.4f}, {abs(excess.value):.4f} "
        f"({excess.standard_error:.4f}) {side} the observed one; mean absolute "
        f"difference over bins {found.bin_difference:.4f}.",
        f"t = {t}, chosen on {found.threshold_from}: the better of one threshold and one for each "
        "label.",
        "95 % intervals of F-optimal decisions, and whether they are better than p > t by more "
        f"than chance: {', '.join(intervals)}.",
    ]
