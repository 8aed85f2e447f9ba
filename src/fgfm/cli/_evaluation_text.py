"""The result of ``fgfm evaluate`` as a table and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fgfm._utils.text import clipped, counted, wrapped

if TYPE_CHECKING:
    from fgfm.evaluation import Evaluation

__all__ = [
    "RULE_NAMES",
    "Result",
    "as_json_text",
    "as_table",
    "calibration_note",
    "errors_note",
    "format_gain",
    "format_value",
    "heading",
    "measure_name",
    "threshold_note",
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
    measured["n_factors"] = measured.pop("factors", None)  # "factors" is the option
    return json.dumps(result.description | {"beta": result.beta} | measured, indent=1)


def as_table(result: Result) -> str:
    """Return the measures of each rule with their standard errors, and notes on them."""
    found, beta = result.evaluation, result.beta
    lines = [wrapped(line) for line in heading(result)]
    lines += ["", _row("", RULE_NAMES.values())]
    for measure, by_rule in found.measures.items():
        cells = [format_value(measure, value) for value in by_rule.values()]
        lines.append(_row(measure_name(measure, beta), cells))
        if measure == "instance_f":
            lines.append(_gains(found.gains))
    lines += ["", wrapped(f"With label sets and t chosen for macro and micro F{beta:g}:")]
    for average in ("macro", "micro"):
        measure = f"{average}_f"
        scores = found.averages[average]
        cells = [format_value(measure, value) for value in scores.f.values()]
        lines += [_row(measure_name(measure, beta), cells), _gains(scores.gains)]
    lines.append("")
    notes = [errors_note(result), calibration_note(result), threshold_note(result)]
    return "\n".join([*lines, *map(wrapped, notes)])


def _row(name: str, cells: Iterable[str]) -> str:
    return f"{name:<20}" + "".join(f"{cell:>20}" for cell in cells)


def _gains(gains: dict[str, Any]) -> str:
    return _row("  gain of F-optimal", ["", *map(format_gain, gains.values())])


def measure_name(measure: str, beta: float) -> str:
    """Return the name of a measure of `fgfm.evaluation.Evaluation`."""
    return _MEASURES[measure].format(beta=beta)


def format_value(measure: str, value: Any) -> str:
    """Return a value with its standard error in brackets."""
    digits = 2 if measure == "labels_per_row" else 4
    return f"{value.value:.{digits}f} ({value.standard_error:.{digits}f})"


def format_gain(gain: Any) -> str:
    """Return a difference with its sign and its standard error."""
    return f"{gain.value:+.4f} ({gain.standard_error:.4f})"


def heading(result: Result) -> list[str]:
    """Return a line on the data and one on the model."""
    about = result.description
    data = (
        f"{clipped(about['data'], 40)}: {counted(about['rows'], 'row')}, "
        f"{counted(about['features'], 'feature')}, {counted(about['labels'], 'label')}"
    )
    if "model" in about:
        return [data, f"model {clipped(about['model'], 60)}"]
    low, high = min(result.evaluation.factors), max(result.evaluation.factors)
    factors = counted(high, "factor") if low == high else f"{low} to {high} factors"
    model = (
        f"learner {clipped(about['learner'], 30)}, method {about['method']}, {factors} "
        f"({clipped(about['factors'], 20)}); {about['protocol']}"
    )
    return [data, model]


def errors_note(result: Result) -> str:
    """Return the note on standard errors and on the number of labels."""
    found = result.evaluation
    over = f"{found.folds} folds" if found.folds else counted(found.n_rows, "row")
    return (
        f"Standard errors over {over} in brackets. True labels per row: "
        f"{found.true_labels_per_row:.2f}."
    )


def calibration_note(result: Result) -> str:
    """Return the note on the expected F-measure."""
    found, excess = result.evaluation, result.evaluation.excess
    direction = "above" if excess.value >= 0.0 else "below"
    return (
        f"Expected F{result.beta:g} {found.expected_f.value:.4f}, {abs(excess.value):.4f} "
        f"({excess.standard_error:.4f}) {direction} the observed one; mean absolute "
        f"difference over bins {found.bin_difference:.4f}."
    )


def threshold_note(result: Result) -> str:
    """Return the note on the threshold t."""
    found = result.evaluation
    low, high = min(found.thresholds), max(found.thresholds)
    t = f"{low:.3f}" if high - low < 5e-4 else f"{low:.3f} to {high:.3f}"
    return f"t = {t}, chosen on {found.threshold_from}."
