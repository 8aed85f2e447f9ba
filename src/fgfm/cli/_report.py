"""The result of ``fgfm evaluate`` as a self-contained HTML page."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from fgfm._utils.text import clipped, counted
from fgfm.cli._evaluation_text import (
    RULE_NAMES,
    Result,
    calibration_note,
    errors_note,
    format_gain,
    format_value,
    heading,
    measure_name,
    threshold_note,
)
from fgfm.cli._html import Cell, escape, format_html, format_html_table
from fgfm.plotting import CalibrationDisplay

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["format_report"]

AVERAGES = {"samples": "instance_f", "macro": "macro_f", "micro": "micro_f"}
_COLOURS = {"f_optimal": "#0a6e80", "half": "#c04e00", "threshold": "#66676b"}
_MOST_LABELS = 200
_HARD_ROWS = 20
_NAME_LENGTH = 60
_STYLE = """
.cards { display: flex; flex-wrap: wrap; gap: 1rem; margin: 1.5rem 0; }
.card { border: 1px solid #8886; border-radius: 6px; flex: 1 1 14rem; padding: .7rem 1rem; }
.card b { color: var(--best); display: block; font-size: 2rem; line-height: 1.3; }
.card span { display: block; font-size: .9rem; }
:root { --best: #0a6e80; }
svg { background: #fff; display: block; height: auto; margin: 0 0 1rem; max-width: 31rem; }
svg { width: 100%; }
td { white-space: nowrap; }
.words { overflow-wrap: anywhere; text-align: left; white-space: normal; }
td.words { min-width: 6rem; }
@media (max-width: 600px) { th, td { padding: .15rem .3rem; } }
@media (prefers-color-scheme: dark) {
  :root { --best: #4fc3d6; }
  body { background: #15171c; color: #dfe1e5; }
}
"""


def format_report(result: Result, command: str) -> str:
    """Format an evaluation, computed by a command, as an HTML page without external files."""
    title = f"{PurePath(result.description['data']).name}: F-optimal decisions and thresholds"
    parts = [
        f"<h1>{escape(title)}</h1>",
        *(f"<p>{escape(line)}</p>" for line in heading(result)),
        *_averages(result),
        *_measures(result),
        *_calibration(result),
        *_labels(result),
        *_hard_rows(result),
        f'<p class="note">Computed by <code>{escape(command)}</code>, fgfm '
        f"{escape(version('fgfm'))}.</p>",
    ]
    return format_html(title, parts, _STYLE)


def _averages(result: Result) -> list[str]:
    """Return the gains over thresholds: in words, as a chart, and as a table."""
    found, f = result.evaluation, f"F{result.beta:g}"
    cards, rows = [], []
    for average, scores in found.averages.items():
        measure = AVERAGES[average]
        name = measure_name(measure, result.beta)
        best = scores.f["f_optimal"].value
        gains = "".join(
            f"<span>{scores.gains[rule].value:+.4f} over {escape(RULE_NAMES[rule])}</span>"
            for rule in scores.gains
        )
        cards.append(f'<div class="card">{name}<b>{best:.4f}</b>{gains}</div>')
        cells = [format_value(measure, value) for value in scores.f.values()]
        rows.append([name, *cells, *map(format_gain, scores.gains.values())])
    heads = ["", *RULE_NAMES.values(), *(f"gain over {RULE_NAMES[r]}" for r in scores.gains)]
    return [
        '<div class="cards">',
        *cards,
        "</div>",
        "<h2>Gain over thresholds</h2>",
        f"<p>The same probabilities, decided in three ways: F-optimal, the label sets of largest "
        f"expected {f}; all labels with a probability above 0.5; and all labels above t, the best "
        f"single threshold. Instance {f} is the mean over rows, macro {f} the mean over labels, "
        f"micro {f} that of all rows and labels together. Label sets and t are chosen for each "
        "of them.</p>",
        _interval_chart(result, f"{f} of the three rules, with two standard errors each way"),
        format_html_table("", heads, rows),
        f'<p class="note">{escape(errors_note(result))} {escape(threshold_note(result))}</p>',
    ]


def _measures(result: Result) -> list[str]:
    rows = [
        [measure_name(measure, result.beta), *(format_value(measure, v) for v in values.values())]
        for measure, values in result.evaluation.measures.items()
    ]
    return [
        "<h2>All measures</h2>",
        format_html_table(
            "Of the label sets decided for each row", ["", *RULE_NAMES.values()], rows
        ),
    ]


def _calibration(result: Result) -> list[str]:
    """Return the expected against the obtained F-measure."""
    decided, f = result.evaluation.decisions, f"F{result.beta:g}"
    display = CalibrationDisplay(decided.expected_f, decided.f, beta=result.beta)
    _, ax = _axes(4.2, 4.0)
    display.plot(ax=ax)
    return [
        "<h2>Calibration</h2>",
        f"<p>Rows are grouped by the {f} that the model expects of its decision. On the diagonal, "
        f"they obtain it. {escape(calibration_note(result))}</p>",
        _svg(ax.figure, f"Obtained against expected {f} of groups of rows"),
    ]


def _axes(width: float, height: float) -> Any:
    """Return a figure that needs no window, and its axes."""
    from matplotlib.figure import Figure

    figure = Figure((width, height), layout="constrained")
    return figure, figure.subplots()


def _interval_chart(result: Result, title: str) -> str:
    """Draw the F-measures of the rules with two standard errors each way."""
    averages = result.evaluation.averages
    figure, ax = _axes(4.8, 3.0)
    for k, (rule, name) in enumerate(RULE_NAMES.items()):
        values = np.array([scores.f[rule] for scores in averages.values()])  # (averages, 2)
        at = np.arange(len(values)) + 0.2 * (k - 1)
        errors = 2.0 * np.nan_to_num(values[:, 1])
        ax.errorbar(values[:, 0], at, xerr=errors, fmt="o", color=_COLOURS[rule], label=name)
    names = [measure_name(AVERAGES[average], result.beta) for average in averages]
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.grid(axis="x", alpha=0.4)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=3, frameon=False)
    return _svg(figure, title)


def _svg(figure: Any, title: str) -> str:
    """Return a figure as an SVG element; the title is for screen readers."""
    import matplotlib

    text = io.StringIO()
    # Texts stay texts; without a date and random ids, the same figure is the same text.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": title}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    _, tag, element = text.getvalue().partition("<svg ")
    # Within HTML, SVG needs no names of its namespaces, and no metadata.
    element = re.sub(
        r'xmlns(:\w+)?="[^"]*"|<metadata>.*?</metadata>', "", element, flags=re.DOTALL
    )
    return f'{tag}role="img" aria-label="{escape(title)}" {element}'


def _labels(result: Result) -> list[str]:
    """Return a table of the labels, most frequent first."""
    decided, f = result.evaluation.decisions, f"F{result.beta:g}"
    truth, best = decided.truth, decided.sets["f_optimal"]
    true, chosen = truth.sum(axis=0), best.sum(axis=0)  # (m,)
    hits = (truth & best).sum(axis=0)
    scores = {rule: _f(truth, sets, result.beta) for rule, sets in decided.sets.items()}
    order = np.argsort(-true, kind="stable")
    rows: list[list[Cell]] = [
        [
            (clipped(result.label_names[j], _NAME_LENGTH), "words"),
            str(true[j]),
            str(chosen[j]),
            _share(hits[j], chosen[j]),
            _share(hits[j], true[j]),
            *(_number(scores[rule][j]) for rule in RULE_NAMES),
        ]
        for j in order[:_MOST_LABELS]
    ]
    caption = "Label sets decided for each row; most frequent labels first"
    if len(order) > _MOST_LABELS:
        caption += f"; {_MOST_LABELS} of {counted(len(order), 'label')}"
    heads = ["label", "true", "decided", "precision", "recall"]
    heads += [f"{f} {name}" for name in RULE_NAMES.values()]
    return ["<h2>Labels</h2>", format_html_table(caption, heads, rows)]


def _hard_rows(result: Result) -> list[str]:
    """Return the rows of lowest expected F-measure, with what was right and wrong."""
    decided, f = result.evaluation.decisions, f"F{result.beta:g}"
    best, names = decided.sets["f_optimal"], np.array(result.label_names, dtype=object)
    order = np.lexsort((decided.rows, decided.expected_f))[:_HARD_ROWS]
    rows: list[Sequence[Cell]] = []
    for k in order:
        truth, chosen = decided.truth[k], best[k]
        sets = (names[truth & chosen], names[chosen & ~truth], names[truth & ~chosen])
        rows.append(
            [
                (clipped(result.row_names[decided.rows[k]], _NAME_LENGTH), "words"),
                f"{decided.expected_f[k]:.4f}",
                f"{decided.f[k]:.4f}",
                *((clipped(", ".join(labels), 3 * _NAME_LENGTH), "words") for labels in sets),
            ]
        )
    heads: list[Cell] = ["row", f"expected {f}", f"obtained {f}"]
    heads += [(name, "words") for name in ("right", "wrong", "missed")]
    return [
        "<h2>Hard rows</h2>",
        f"<p>The rows whose decisions have the lowest expected {f}.</p>",
        format_html_table("", heads, rows),
    ]


def _f(truth: Any, decided: Any, beta: float) -> npt.NDArray[np.float64]:
    """Return the F-measure of each label; NaN if it is neither true nor decided."""
    hits = (1.0 + beta**2) * (truth & decided).sum(axis=0)
    size = beta**2 * truth.sum(axis=0) + decided.sum(axis=0)
    f = np.full(len(size), np.nan)
    np.divide(hits, size, out=f, where=size > 0)
    return f


def _share(part: int, whole: int) -> str:
    return _number(part / whole if whole else np.nan)


def _number(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.4f}"
