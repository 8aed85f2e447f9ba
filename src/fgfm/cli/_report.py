"""The result of ``fgfm evaluate`` as a self-contained HTML page."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterable, Sequence
from html import escape
from importlib.metadata import version
from pathlib import PurePath
from typing import Any

import numpy as np

from fgfm._utils.text import clipped, escaped
from fgfm.cli import _evaluation_text as printed
from fgfm.cli._evaluation_text import RULE_NAMES, Result
from fgfm.decider import compare
from fgfm.plotting import CalibrationDisplay, ReportDisplay

_MOST_LABELS, _HARD_ROWS = 200, 20
_LENGTH = 60  # of a name
_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; }
body { padding: 0 1rem; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { padding: .15rem .6rem; text-align: right; border: 0; border-bottom: 1px solid #8884; }
td:first-child, .words td { overflow-wrap: anywhere; text-align: left; }
td { white-space: nowrap; } .words td { min-width: 4rem; white-space: normal; }
.wide { overflow-x: auto; }
svg { background: #fff; display: block; height: auto; max-width: 36rem; width: 100%; }
"""


def format_report(result: Result, command: str) -> str:
    """Format an evaluation, computed by a command, as an HTML page without external files."""
    f = f"F{result.beta:g}"
    title = PurePath(result.description["data"]).name + ": F-optimal decisions and thresholds"
    report, decided = _label_report(result), result.evaluation.decisions
    gains = [f"gain over {RULE_NAMES[rule]}" for rule in ("half", "threshold")]
    calibration = CalibrationDisplay(decided.expected_f, decided.f, beta=result.beta)
    parts = [
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{_text(title)}</title><style>{_STYLE}</style></head>\n<body>",
        f"<h1>{_text(title)}</h1>",
        *(f"<p>{_text(line)}</p>" for line in printed.heading(result)),
        "<h2>Gain over thresholds</h2>",
        f"<p>The same probabilities, decided in three ways: F-optimal, the label sets of largest "
        f"expected {f}; all labels with a probability above 0.5; and all labels above t. Instance "
        f"{f} is the mean over rows, macro {f} the mean over labels, micro {f} that of all rows "
        "and labels together. Label sets and t are chosen for each of them.</p>",
        _table(["", *RULE_NAMES.values(), *gains], printed.average_rows(result)),
        *(f"<p>{_text(line)}</p>" for line in printed.notes(result)),
        "<h2>All measures</h2>",
        _table(
            ["Of the label sets of each row", *RULE_NAMES.values()], printed.measure_rows(result)
        ),
        "<h2>Calibration</h2>",
        f"<p>Rows are grouped by the {f} that the model expects of its decision. On the diagonal, "
        "they obtain it.</p>",
        _svg(calibration, f"Obtained against expected {f} of groups of rows"),
        "<h2>Labels</h2>",
        "<p>Label sets decided for each row; first the labels with the largest changes.</p>",
        _svg(ReportDisplay(report), f"{f} of each label by the three rules"),
        _label_table(result, report),
        "<h2>Hard rows</h2>",
        f"<p>The rows whose decisions have the lowest expected {f}.</p>",
        _hard_rows(result),
        f"<p>Computed by <code>{_text(command)}</code>, fgfm {version('fgfm')}.</p>\n"
        "</body>\n</html>\n",
    ]
    return "\n".join(parts)


def _text(text: str) -> str:
    """Return a text as HTML, with control characters escaped too."""
    return escape(escaped(text))


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], style: str = "") -> str:
    """Return a table whose texts are escaped; the style "words" is for columns of words."""
    import pandas as pd

    frame = pd.DataFrame([list(map(escaped, row)) for row in rows], columns=list(heads))
    with pd.option_context("display.max_colwidth", None):
        return f'<div class="wide">{frame.to_html(index=False, border=0, classes=style)}</div>'


def _svg(display: Any, title: str) -> str:
    """Draw a display as an SVG element; the title is for screen readers."""
    import matplotlib
    from matplotlib.figure import Figure

    height = 4.0 + 0.2 * min(30, len(getattr(display, "report", ())) // len(RULE_NAMES))
    figure, text = Figure((6.0, height), layout="constrained"), io.StringIO()
    display.plot(ax=figure.subplots())
    # Texts stay texts; without a date and random ids, the same figure is the same text.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": title}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    _, tag, element = text.getvalue().partition("<svg ")
    # Within HTML, SVG needs no names of its namespaces, and no metadata.
    element = re.sub(
        r'xmlns(:\w+)?="[^"]*"|<metadata>.*?</metadata>', "", element, flags=re.DOTALL
    )
    return f'{tag}role="img" aria-label="{_text(title)}" {element}'


def _label_report(result: Result) -> Any:
    """Return precision, recall and F-measure of each label and rule, as `FDecider.report`."""
    decided, names = result.evaluation.decisions, [escaped(name) for name in result.label_names]
    sets = {RULE_NAMES[rule]: (found.astype(int), np.nan) for rule, found in decided.sets.items()}
    measure: dict[str, Any] = {"beta": result.beta, "average": "samples", "zero_division": 1.0}
    with warnings.catch_warnings():  # on labels of few rows, as the page shows
        warnings.simplefilter("ignore", UserWarning)
        return compare(sets, decided.truth.astype(int), names, **measure)


def _label_table(result: Result, report: Any) -> str:
    """Return a table of the labels, most frequent first."""
    decided, k = result.evaluation.decisions, len(RULE_NAMES)
    true, chosen = decided.truth.sum(axis=0), decided.sets["f_optimal"].sum(axis=0)  # (m,)
    values = report[["precision", "recall", "f"]].to_numpy().reshape(-1, k, 3)  # (m, rules, 3)
    order = np.argsort(-true, kind="stable")
    rows = []
    for j in order[:_MOST_LABELS]:
        either = [true[j] + sets[:, j].sum() for sets in decided.sets.values()]
        ratios = zip(
            [*values[j, 0, :2], *values[j, :, 2]], [chosen[j], true[j], *either], strict=True
        )
        cells = (f"{ratio:.4f}" if of else "-" for ratio, of in ratios)
        rows.append(
            [clipped(result.label_names[j], _LENGTH), str(true[j]), str(chosen[j]), *cells]
        )
    heads = ["label", "true", "decided", "precision", "recall"]
    heads += [f"F{result.beta:g} {name}" for name in RULE_NAMES.values()]
    more = f"<p>The {_MOST_LABELS} most frequent of {len(order)} labels.</p>"
    return _table(heads, rows) + more * (len(order) > _MOST_LABELS)


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
                clipped(result.row_names[decided.rows[k]], _LENGTH),
                f"{decided.expected_f[k]:.4f}",
                f"{decided.f[k]:.4f}",
                *(clipped(", ".join(labels), 3 * _LENGTH) for labels in sets),
            ]
        )
    heads = ["row", f"expected {f}", f"obtained {f}", "right", "wrong", "missed"]
    return _table(heads, rows, "words")
