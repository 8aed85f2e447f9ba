"""The result of ``fgfm evaluate`` as a self-contained HTML page."""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Iterable, Sequence
from html import escape as escape_html
from importlib.metadata import version
from pathlib import PurePath
from typing import Any

import numpy as np

from fgfm._utils.text import clipped, counted, escaped
from fgfm.cli._evaluation_text import (
    RULE_NAMES,
    Result,
    average_rows,
    heading,
    measure_rows,
    notes,
)
from fgfm.metrics import f_measure
from fgfm.plotting import CalibrationDisplay

__all__ = ["format_report"]

_COLOURS = {"f_optimal": "#0a6e80", "half": "#c04e00", "threshold": "#66676b"}
_MOST_LABELS = 200
_HARD_ROWS = 20
_NAME_LENGTH = 60
_STYLE = """
:root { color-scheme: light dark; --best: #0a6e80; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; }
body { padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.3rem; margin-top: 2.5rem; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { padding: .15rem .6rem; text-align: right; border-bottom: 1px solid #8884; }
th:first-child, td:first-child { text-align: left; }
td { white-space: nowrap; } caption { text-align: left; padding: .4rem 0; }
.words { overflow-wrap: anywhere; text-align: left; white-space: normal; }
td.words { min-width: 6rem; }
.wide { overflow-x: auto; } .note { font-size: .85rem; }
code { background: #8882; padding: .1rem .3rem; }
.cards { display: flex; flex-wrap: wrap; gap: 1rem; margin: 1.5rem 0; }
.card { border: 1px solid #8886; border-radius: 6px; flex: 1 1 14rem; padding: .7rem 1rem; }
.card b { color: var(--best); display: block; font-size: 2rem; line-height: 1.3; }
.card span { display: block; font-size: .9rem; }
svg { background: #fff; display: block; height: auto; margin: 0 0 1rem; max-width: 31rem; }
svg { width: 100%; }
@media (max-width: 600px) { th, td { padding: .15rem .3rem; } }
@media (prefers-color-scheme: dark) {
  :root { --best: #4fc3d6; }
  body { background: #15171c; color: #dfe1e5; }
}
"""


def format_report(result: Result, command: str) -> str:
    """Format an evaluation, computed by a command, as an HTML page without external files."""
    f = f"F{result.beta:g}"
    errors, calibration, threshold = map(_escape, notes(result))
    title = _escape(PurePath(result.description["data"]).name)
    title += ": F-optimal decisions and thresholds"
    parts = [
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{title}</title><style>{_STYLE}</style></head>\n<body>",
        f"<h1>{title}</h1>",
        *(f"<p>{_escape(line)}</p>" for line in heading(result)),
        _cards(result),
        "<h2>Gain over thresholds</h2>",
        f"<p>The same probabilities, decided in three ways: F-optimal, the label sets of largest "
        f"expected {f}; all labels with a probability above 0.5; and all labels above t, the best "
        f"single threshold. Instance {f} is the mean over rows, macro {f} the mean over labels, "
        f"micro {f} that of all rows and labels together. Label sets and t are chosen for each "
        "of them.</p>",
        _rule_chart(result),
        _table(
            "",
            [
                "",
                *RULE_NAMES.values(),
                *(f"gain over {RULE_NAMES[r]}" for r in ("half", "threshold")),
            ],
            average_rows(result),
        ),
        f'<p class="note">{errors} {threshold}</p>',
        "<h2>All measures</h2>",
        _table(
            "Of the label sets decided for each row",
            ["", *RULE_NAMES.values()],
            measure_rows(result),
        ),
        "<h2>Calibration</h2>",
        f"<p>Rows are grouped by the {f} that the model expects of its decision. On the diagonal, "
        f"they obtain it. {calibration}</p>",
        _calibration_chart(result),
        "<h2>Labels</h2>",
        _labels(result),
        "<h2>Hard rows</h2>",
        f"<p>The rows whose decisions have the lowest expected {f}.</p>",
        _hard_rows(result),
        f'<p class="note">Computed by <code>{_escape(command)}</code>, fgfm '
        f"{_escape(version('fgfm'))}.</p>\n</body>\n</html>\n",
    ]
    return "\n".join(parts)


def _escape(text: str) -> str:
    """Return a text as HTML, with control characters escaped too."""
    return escape_html(escaped(text))


def _table(
    caption: str,
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    words: Collection[int] = (),
) -> str:
    """Return a table whose texts are escaped; some columns have words, the others numbers."""

    def cells(row: Sequence[str], tag: str) -> str:
        parts = []
        for k, text in enumerate(row):
            style = ' class="words"' if k in words else ""
            parts.append(f"<{tag}{style}>{_escape(text)}</{tag[:2]}>")
        return f"<tr>{''.join(parts)}</tr>"

    above = f"<caption>{_escape(caption)}</caption>" if caption else ""
    body = "".join(cells(row, "td") for row in rows)
    head = cells(heads, 'th scope="col"')
    return (
        f'<div class="wide"><table>{above}<thead>{head}</thead><tbody>{body}</tbody></table></div>'
    )


def _cards(result: Result) -> str:
    """Return the F-measures and the gains over thresholds in large letters."""
    cards = []
    for row, scores in zip(average_rows(result), result.evaluation.averages.values(), strict=True):
        gains = "".join(
            f"<span>{gain.value:+.4f} over {_escape(RULE_NAMES[rule])}</span>"
            for rule, gain in scores.gains.items()
        )
        best = scores.f["f_optimal"].value
        cards.append(f'<div class="card">{row[0]}<b>{best:.4f}</b>{gains}</div>')
    return f'<div class="cards">{"".join(cards)}</div>'


def _rule_chart(result: Result) -> str:
    """Draw the F-measures of the rules with two standard errors each way."""
    averages = result.evaluation.averages
    ax = _axes(4.8, 3.0)
    for k, (rule, name) in enumerate(RULE_NAMES.items()):
        values = np.array([scores.f[rule] for scores in averages.values()])  # (averages, 2)
        at = np.arange(len(values)) + 0.2 * (k - 1)
        errors = 2.0 * np.nan_to_num(values[:, 1])
        ax.errorbar(values[:, 0], at, xerr=errors, fmt="o", color=_COLOURS[rule], label=name)
    ax.set_yticks(range(len(averages)), [row[0] for row in average_rows(result)])
    ax.invert_yaxis()
    ax.grid(axis="x", alpha=0.4)
    ax.figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return _svg(
        ax.figure, f"F{result.beta:g} of the three rules, with two standard errors each way"
    )


def _calibration_chart(result: Result) -> str:
    """Draw the obtained against the expected F-measure."""
    decided = result.evaluation.decisions
    display = CalibrationDisplay(decided.expected_f, decided.f, beta=result.beta)
    figure = display.plot(ax=_axes(4.2, 4.0)).figure_
    return _svg(figure, f"Obtained against expected F{result.beta:g} of groups of rows")


def _axes(width: float, height: float) -> Any:
    """Return the axes of a figure that needs no window."""
    from matplotlib.figure import Figure

    return Figure((width, height), layout="constrained").subplots()


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
    return f'{tag}role="img" aria-label="{_escape(title)}" {element}'


def _labels(result: Result) -> str:
    """Return a table of the labels, most frequent first."""
    decided, f = result.evaluation.decisions, f"F{result.beta:g}"
    truth, best = decided.truth, decided.sets["f_optimal"]
    true, chosen, hits = truth.sum(axis=0), best.sum(axis=0), (truth & best).sum(axis=0)  # (m,)
    # The F-measure of a label is that of a row of the transpose; none if it never occurs.
    scores = np.array(
        [
            np.where(
                (truth | sets).any(axis=0),
                f_measure(truth.T.astype(int), sets.T.astype(int), result.beta, per_row=True),
                np.nan,
            )
            for sets in (decided.sets[rule] for rule in RULE_NAMES)
        ]
    )  # (rules, m)
    with np.errstate(invalid="ignore"):
        numbers = np.vstack([hits / chosen, hits / true, scores])  # precision, recall, F
    order = np.argsort(-true, kind="stable")
    rows = [
        [
            clipped(result.label_names[j], _NAME_LENGTH),
            str(true[j]),
            str(chosen[j]),
            *("-" if np.isnan(value) else f"{value:.4f}" for value in numbers[:, j]),
        ]
        for j in order[:_MOST_LABELS]
    ]
    caption = "Label sets decided for each row; most frequent labels first"
    if len(order) > _MOST_LABELS:
        caption += f"; {_MOST_LABELS} of {counted(len(order), 'label')}"
    heads = ["label", "true", "decided", "precision", "recall"]
    heads += [f"{f} {name}" for name in RULE_NAMES.values()]
    return _table(caption, heads, rows, words={0})


def _hard_rows(result: Result) -> str:
    """Return the rows of lowest expected F-measure, with what was right and wrong."""
    decided, f = result.evaluation.decisions, f"F{result.beta:g}"
    names = np.array(result.label_names, dtype=object)
    rows = []
    for k in np.lexsort((decided.rows, decided.expected_f))[:_HARD_ROWS]:
        truth, chosen = decided.truth[k], decided.sets["f_optimal"][k]
        sets = (names[truth & chosen], names[chosen & ~truth], names[truth & ~chosen])
        rows.append(
            [
                clipped(result.row_names[decided.rows[k]], _NAME_LENGTH),
                f"{decided.expected_f[k]:.4f}",
                f"{decided.f[k]:.4f}",
                *(clipped(", ".join(labels), 3 * _NAME_LENGTH) for labels in sets),
            ]
        )
    heads = ["row", f"expected {f}", f"obtained {f}", "right", "wrong", "missed"]
    return _table("", heads, rows, words={0, 3, 4, 5})
