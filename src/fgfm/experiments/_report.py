"""The paper's experiment as files: figures, tables, a page of HTML, and a summary for machines."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Sequence
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fgfm._utils.atomic import atomic_file
from fgfm.experiments._figure import draw, draw_differences, save_figure
from fgfm.experiments._statistics import NAMES, Difference, Summary
from fgfm.experiments._table import structure_title, tables, value_text
from fgfm.experiments.paper import PaperResults

__all__ = ["write_report"]

_LEARNERS = {
    "linear": "Logistic regression, linear in the features (the paper's)",
    "interactions": "Logistic regression with all products of up to four features",
}
_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; }
body { padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { padding: .15rem .6rem; text-align: right; border-bottom: 1px solid #8884; }
th:first-child, td:first-child { text-align: left; }
.wide { overflow-x: auto; } .best { font-weight: bold; } .sig { font-weight: bold; }
img { max-width: 100%; background: #fff; } caption { text-align: left; padding: .4rem 0; }
code { background: #8882; padding: .1rem .3rem; } .note { font-size: .85rem; }
"""


def write_report(results: PaperResults, command: str) -> list[Path]:
    """Write figures, tables, the page and the summary into the folder of the results.

    Parameters
    ----------
    results : PaperResults
        The results.
    command : str
        The command that made them, for the page.

    Returns
    -------
    list of Path
        The files.
    """
    folder, summary = results.folder, results.summary
    paths = save_figure(draw(summary), folder, "figure")
    pictures = {"figure": folder / "figure.svg"}
    if summary.differences:
        paths += save_figure(draw_differences(summary), folder, "differences")
        pictures["differences"] = folder / "differences.svg"
    document = summary.as_dict() | {"command": command, "fgfm": version("fgfm")}
    texts = {
        "table.txt": f"{command}\n\n{tables(summary)}\n",
        "summary.json": json.dumps(document, indent=1, allow_nan=False) + "\n",
        "report.html": _page(summary, command, pictures),
    }
    for name, text in texts.items():
        with atomic_file(folder / name) as file:
            file.write(text.encode())
        paths.append(folder / name)
    return paths


def _page(summary: Summary, command: str, pictures: dict[str, Path]) -> str:
    settings = summary.settings
    beta = f"F<sub>{settings['beta']:g}</sub>"
    parts = [
        "<h1>F-GFM: the synthetic experiment of Gasse and Aussem (ECML 2016)</h1>",
        f"<p>{settings['reps']} random distributions of each structure, "
        f"{settings['n_test']} test rows, mean {beta}. All methods have the same training rows "
        f"and folds. Made by <code>{escape(command)}</code>, seed {settings['seed']}, fgfm "
        f"{escape(version('fgfm'))}"
        + (", estimated as the published scripts do" if settings["published"] else "")
        + ".</p>",
        _picture(pictures["figure"], "Mean F against the number of training rows"),
        '<p class="note">Bars: standard errors over distributions, which all methods share; '
        "compare methods by the paired differences below.</p>",
    ]
    if summary.findings:
        parts.append("<h2>The paper's findings</h2><ul>")
        parts += [
            f"<li>{escape(f.claim)}: <b>{escape(f.verdict)}</b>; {escape(f.detail)}.</li>"
            for f in summary.findings
        ]
        parts.append("</ul>")
    parts += _mean_tables(summary)
    parts += _limit_table(summary)
    if "differences" in pictures:
        parts += [
            "<h2>Paired differences</h2>",
            _picture(pictures["differences"], "Paired differences between methods"),
        ]
    parts += _difference_tables(summary)
    parts += _factor_table(summary)
    return (
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>F-GFM: synthetic experiment</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )


def _picture(path: Path, text: str) -> str:
    data = base64.b64encode(path.read_bytes()).decode()
    return f'<img alt="{escape(text)}" src="data:image/svg+xml;base64,{data}">'


def _table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Write a table; a cell is a text, or a pair of a text and a class."""
    lines = [f'<div class="wide"><table><caption>{escape(caption)}</caption><tr>']
    lines += [f"<th>{escape(head)}</th>" for head in heads]
    lines.append("</tr>")
    for row in rows:
        cells = [cell if isinstance(cell, tuple) else (cell, "") for cell in row]
        lines.append(
            "<tr>"
            + "".join(
                f'<td class="{kind}">{escape(text)}</td>' if kind else f"<td>{escape(text)}</td>"
                for text, kind in cells
            )
            + "</tr>"
        )
    return "".join([*lines, "</table></div>"])


def _mean_tables(summary: Summary) -> list[str]:
    settings = summary.settings
    methods = settings["methods"]
    parts = [
        "<h2>Mean F on test rows</h2>",
        '<p class="note">In brackets the standard error in units of the last digit; bold: the '
        "best of GFM, F-GFM true and F-GFM ILF.</p>",
    ]
    for learner in settings["learners"]:
        parts.append(f"<h3>{escape(_LEARNERS[learner])}</h3>")
        for structure in settings["structures"]:
            mine = [m for m in summary.means if (m.structure, m.learner) == (structure, learner)]
            cells = {(m.n, m.method): m for m in mine}
            rows = [
                [
                    str(n),
                    *(
                        (value_text(m.mean, m.standard_error), "best" if m.best else "")
                        for m in (cells[n, k] for k in methods)
                    ),
                ]
                for n in dict.fromkeys(m.n for m in mine)
            ]
            heads = ["n", *(NAMES[k] for k in methods)]
            parts.append(_table(structure_title(structure), heads, rows))
    return parts


def _limit_table(summary: Summary) -> list[str]:
    settings = summary.settings
    methods = [k for k in settings["methods"] if k != "bayes"]
    last = [m for m in summary.means if m.n == settings["sizes"][-1] and m.method in methods]
    rows = [m for m in last if not math.isnan(m.limit_gap)]
    if not rows:
        return []
    cells = {
        (m.structure, m.learner, m.method): f"{m.limit_gap:.4f}"
        + ("" if math.isnan(m.limit_gap_error) else f" ± {m.limit_gap_error:.4f}")
        for m in rows
    }
    keys = dict.fromkeys((m.structure, m.learner) for m in rows)
    body = [[f"{s}, {le}", *(cells.get((s, le, k), "-") for k in methods)] for s, le in keys]
    return [
        "<h2>How far from the limit</h2>",
        _table(
            f"Exact expected F of the Bayes-optimal decision less that of the method, n = "
            f"{settings['sizes'][-1]}, mean and standard error",
            ["structure, learner", *(NAMES[k] for k in methods)],
            body,
        ),
    ]


def _difference_tables(summary: Summary) -> list[str]:
    parts = []
    groups: dict[tuple[str, str, str], list[Difference]] = {}
    for d in summary.differences:
        groups.setdefault((d.learner, d.first, d.second), []).append(d)
    for (learner, first, second), members in groups.items():
        rows = [
            [
                structure_title(d.structure),
                str(d.n),
                (f"{d.mean:+.4f}", "sig" if d.p_holm < 0.05 else ""),
                _number(d.standard_error, ".4f"),
                "-" if math.isnan(d.low) else f"[{d.low:+.4f}, {d.high:+.4f}]",
                _number(d.p_value, ".2g"),
                _number(d.p_holm, ".2g"),
                f"{d.wins} / {d.losses}",
            ]
            for d in members
        ]
        heads = ["structure", "n", "mean", "s.e.", "95 %", "p", "p (Holm)", "wins / losses"]
        caption = f"{NAMES[first]} less {NAMES[second]}, {learner} learner, paired t-tests"
        parts.append(
            f"<details><summary>{escape(caption)}</summary>{_table(caption, heads, rows)}"
            "</details>"
        )
    return parts


def _factor_table(summary: Summary) -> list[str]:
    if not summary.factors:
        return []
    rows = [
        [
            structure_title(s.structure),
            str(s.n),
            f"{s.precision:.3f}",
            f"{s.recall:.3f}",
            f"{100.0 * s.exact:.0f} %",
        ]
        for s in summary.factors
    ]
    return [
        "<h2>Learned factors</h2>",
        _table(
            "Pairs of labels in one factor, found by ILF-Compo against the truth (means over "
            "distributions), and how often all factors are the true ones",
            ["structure", "n", "precision", "recall", "all true"],
            rows,
        ),
    ]


def _number(value: float, form: str) -> str:
    return "-" if math.isnan(value) else format(value, form)
