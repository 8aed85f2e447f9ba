"""The results of the paper's experiment as a self-contained HTML page."""

from __future__ import annotations

import base64
import math
from html import escape
from importlib.metadata import version
from pathlib import Path

from fgfm._utils.html import Cell, format_html, format_html_table
from fgfm.experiments._findings import LEVEL
from fgfm.experiments._records import NAMES, Difference, Summary
from fgfm.experiments._reproduce import PaperResults
from fgfm.experiments._table import ESTIMATES_TITLES, format_mean, structure_title

__all__ = ["format_page"]

_LEARNERS = {
    "linear": "Logistic regression, linear in the features (the paper's)",
    "interactions": "Logistic regression with all products of up to four features",
}


def format_page(results: PaperResults, command: str, figure: Path) -> str:
    """Format results as an HTML page without external files.

    Parameters
    ----------
    results : PaperResults
        The results.
    command : str
        The command that computed them.
    figure : Path
        The figure, an SVG file.

    Returns
    -------
    str
        The page.
    """
    settings = next(iter(results.runs.values())).summary.settings
    beta = f"F<sub>{settings['beta']:g}</sub>"
    parts = [
        "<h1>F-GFM: the synthetic experiment of Gasse and Aussem (ECML 2016)</h1>",
        f"<p>{settings['reps']} random distributions of each structure, "
        f"{settings['n_test']} test rows, mean {beta}. All methods have the same training rows "
        f"and folds. Computed by <code>{escape(command)}</code>, seed {settings['seed']}, fgfm "
        f"{escape(version('fgfm'))}.</p>",
        _image(figure, "Mean F and differences from GFM against the number of training rows"),
        '<p class="note">Bars: 95 % intervals of paired differences.</p>',
    ]
    for estimates, run in results.runs.items():
        parts.append(f"<h2>{escape(ESTIMATES_TITLES[estimates])}</h2>")
        for section in (_findings, _means, _bayes_gaps, _differences, _factors):
            parts += section(run.summary)
    return format_html("F-GFM: synthetic experiment", parts)


def _image(path: Path, text: str) -> str:
    data = base64.b64encode(path.read_bytes()).decode()
    return f'<img alt="{escape(text)}" src="data:image/svg+xml;base64,{data}">'


def _findings(summary: Summary) -> list[str]:
    if not summary.findings:
        return []
    published = summary.settings["estimates"] == "published"
    items = [
        f"<li>{escape(f.claim)}: <b>{escape(f.verdict or '')}</b>; {escape(f.detail)}.</li>"
        if published
        else f"<li>{escape(f.topic)}: {escape(f.detail)}.</li>"
        for f in summary.findings
    ]
    return [
        f"<h3>{'Findings of the paper' if published else 'Findings'}</h3><ul>",
        *items,
        "</ul>",
    ]


def _means(summary: Summary) -> list[str]:
    settings = summary.settings
    methods = settings["methods"]
    parts = [
        "<h3>Mean F on test rows</h3>",
        '<p class="note">In brackets: standard error, in units of the last digit; bold: the '
        "best of GFM, F-GFM true and F-GFM ILF.</p>",
    ]
    for learner in settings["learners"]:
        parts.append(f"<h4>{escape(_LEARNERS[learner])}</h4>")
        for structure in settings["structures"]:
            means = [m for m in summary.means if (m.structure, m.learner) == (structure, learner)]
            cells = {(m.n, m.method): m for m in means}
            rows: list[list[Cell]] = [
                [
                    str(n),
                    *(
                        (format_mean(m.mean, m.standard_error), "best" if m.best else "")
                        for m in (cells[n, k] for k in methods)
                    ),
                ]
                for n in dict.fromkeys(m.n for m in means)
            ]
            heads = ["n", *(NAMES[k] for k in methods)]
            parts.append(format_html_table(structure_title(structure), heads, rows))
    return parts


def _bayes_gaps(summary: Summary) -> list[str]:
    settings = summary.settings
    methods = [k for k in settings["methods"] if k != "bayes"]
    largest = [m for m in summary.means if m.n == settings["sizes"][-1] and m.method in methods]
    means = [m for m in largest if not math.isnan(m.bayes_gap)]
    if not means:
        return []
    cells = {
        (m.structure, m.learner, m.method): f"{m.bayes_gap:.4f}"
        + ("" if math.isnan(m.bayes_gap_error) else f" ± {m.bayes_gap_error:.4f}")
        for m in means
    }
    keys = dict.fromkeys((m.structure, m.learner) for m in means)
    rows = [[f"{s}, {le}", *(cells.get((s, le, k), "-") for k in methods)] for s, le in keys]
    return [
        "<h3>Distance from the optimum</h3>",
        format_html_table(
            f"Exact expected F of the Bayes-optimal decision minus that of the method, n = "
            f"{settings['sizes'][-1]}, mean and standard error",
            ["structure, learner", *(NAMES[k] for k in methods)],
            rows,
        ),
    ]


def _differences(summary: Summary) -> list[str]:
    parts = ["<h3>Paired differences</h3>"] if summary.differences else []
    groups: dict[tuple[str, str, str], list[Difference]] = {}
    for d in summary.differences:
        groups.setdefault((d.learner, d.first, d.second), []).append(d)
    heads = ["structure", "n", "mean", "s.e.", "95 %", "p", "p (Holm)", "wins / losses"]
    for (learner, first, second), members in groups.items():
        rows: list[list[Cell]] = [
            [
                structure_title(d.structure),
                str(d.n),
                (f"{d.mean:+.4f}", "sig" if d.p_holm < LEVEL else ""),
                _format_number(d.standard_error, ".4f"),
                "-" if math.isnan(d.low) else f"[{d.low:+.4f}, {d.high:+.4f}]",
                _format_number(d.p_value, ".2g"),
                _format_number(d.p_holm, ".2g"),
                f"{d.wins} / {d.losses}",
            ]
            for d in members
        ]
        caption = f"{NAMES[first]} minus {NAMES[second]}, {learner} learner, paired t-tests"
        table = format_html_table(caption, heads, rows)
        parts.append(f"<details><summary>{escape(caption)}</summary>{table}</details>")
    return parts


def _factors(summary: Summary) -> list[str]:
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
        "<h3>Learned factors</h3>",
        format_html_table(
            "Precision and recall of the pairs of labels that share a learned factor (means over "
            "distributions), and how often all factors are the true ones",
            ["structure", "n", "precision", "recall", "all true"],
            rows,
        ),
    ]


def _format_number(value: float, spec: str) -> str:
    return "-" if math.isnan(value) else format(value, spec)
