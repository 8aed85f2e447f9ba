"""The results of the paper's experiment: text of at most 80 columns, a figure, and files.

The figure has one row of panels for each structure of label factors.
"""

from __future__ import annotations

import csv
import io
import json
import math
import textwrap
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fgfm._utils.atomic import atomic_file
from fgfm._utils.optional import import_optional
from fgfm.paper._experiment import PaperResults
from fgfm.paper._networks import STRUCTURES
from fgfm.paper._summary import LEVEL, Difference, Mean, Record, Summary

NAMES = {
    "gfm": "GFM",
    "true": "F-GFM true",
    "ilf": "F-GFM ILF",
    "independent": "F-GFM ind.",
    "threshold": "p > 0.5",
    "bayes": "Bayes",
}
_TITLES = {
    "published": "Published estimates (as in the authors' scripts)",
    "ours": "Our estimates",
}
_PAPER_REPS = 100
_WIDTH = 80
_DAGS = {"+".join(map(str, sizes)): dag for dag, sizes in STRUCTURES.items()}
_SHOWN = (("ilf", "gfm"), ("ilf", "true"))  # comparisons shown in the terminal

_INCHES = 5.8  # width of the figure: text stays legible when a phone shows it at 360 pixels
_PANEL_HEIGHT = 1.45
# Colours of Okabe and Ito, which colour-blind readers can distinguish; markers and lines differ.
_STYLES: dict[str, dict[str, Any]] = {
    "bayes": {"color": "#999999", "marker": "", "linestyle": "-", "linewidth": 3.0},
    "threshold": {"color": "#CC79A7", "marker": "x", "linestyle": "-."},
    "true": {"color": "#0072B2", "marker": "s", "linestyle": "--"},
    "ilf": {"color": "#D55E00", "marker": "^", "linestyle": "-"},
    "independent": {"color": "#009E73", "marker": "v", "linestyle": ":"},
    "gfm": {"color": "#000000", "marker": "o", "linestyle": "-"},
}
_LINE = {"linewidth": 1.1, "markersize": 3.8, "markerfacecolor": "none"}
_LEGEND = ("bayes", "threshold", "gfm", "true", "ilf", "independent")  # column by column
_COMPARED = ("true", "ilf", "independent")  # with GFM, in the panels of differences
_FILE_DATES: dict[str, dict[str, Any]] = {
    "png": {},
    "pdf": {"CreationDate": None},
    "svg": {"Date": None},
}


def write_report(results: PaperResults, command: str) -> list[Path]:
    """Write the figure, the tables and a summary into the output folder.

    Parameters
    ----------
    results : PaperResults
        The results.
    command : str
        The command that computed them, shown in the files.

    Returns
    -------
    list of Path
        The files: ``figure.png``, ``figure.pdf``, ``figure.svg``, ``table.txt``, ``summary.json``,
        and ``results.csv`` of each kind of estimates in its subfolder.
    """
    import_optional("matplotlib", "the figure", "plot")
    import matplotlib as mpl

    figure = draw(results)
    summary = {
        "command": command,
        "fgfm": version("fgfm"),
        "runs": {estimates: run.summary.as_dict() for estimates, run in results.runs.items()},
    }
    contents: dict[str, bytes] = {}
    with mpl.rc_context({"svg.hashsalt": "fgfm", "svg.fonttype": "path"}):
        for extension, dates in _FILE_DATES.items():  # the same figure gives the same bytes
            image = io.BytesIO()
            figure.savefig(image, format=extension, dpi=200, metadata=dates)
            contents[f"figure.{extension}"] = image.getvalue()
    contents["table.txt"] = f"{command}\n\n{format_tables(results)}".encode()
    contents["summary.json"] = (json.dumps(summary, indent=1, allow_nan=False) + "\n").encode()
    for estimates, run in results.runs.items():
        table = io.StringIO()
        rows = csv.writer(table, lineterminator="\n")
        rows.writerows([Record._fields, *run.records])  # floats keep all their digits
        contents[f"{estimates}/results.csv"] = table.getvalue().encode()
    paths = []
    for name, content in contents.items():
        paths.append(results.folder / name)
        with atomic_file(paths[-1]) as file:
            file.write(content)
    return paths


def format_tables(results: PaperResults) -> str:
    """Format all results as text for a terminal.

    Parameters
    ----------
    results : PaperResults
        The results.

    Returns
    -------
    str
        Lines of at most 80 characters: for each kind of estimates mean F, distance from the
        optimum, paired differences, learned factors and the paper's findings.
    """
    lines: list[str] = []
    for estimates, run in results.runs.items():
        title = _TITLES[estimates]
        lines += [title, "=" * len(title), ""]
        for part in (_means, _bayes_gaps, _differences, _factors, _findings):
            lines += part(run.summary)
    return "\n".join(lines).rstrip() + "\n"


def _structure_title(structure: str) -> str:
    """Return the title of a structure: DAG 2 (4+4), or Factors of 3+1."""
    dag = _DAGS.get(structure)
    return f"Factors of {_shorten(structure)}" if dag is None else f"DAG {dag} ({structure})"


def _with_error(shown: str, error: float, mark: str = "") -> str:
    """Return a number with its standard error in units of 1e-4 in brackets, as .6731(40)."""
    return shown + ("" if math.isnan(error) else f"({1e4 * error:.0f})") + mark


def _grid(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Align rows in columns of equal width, the first to the left, the others to the right.

    Columns that do not fit into 80 characters are continued below, with the first column
    repeated.
    """
    table = [heads, *rows]
    names = [_shorten(row[0]) for row in table]
    first = max(map(len, names))
    needed = max((len(cell) for row in table for cell in row[1:]), default=0)
    per_line = max(1, (_WIDTH - first) // (needed + 1))
    width = needed + (2 if first + (len(heads) - 1) * (needed + 2) <= _WIDTH else 1)
    for start in range(1, len(heads), per_line):
        if start > 1:
            yield ""
        for name, row in zip(names, table, strict=True):
            cells = row[start : start + per_line]
            yield (name.ljust(first) + "".join(c.rjust(width) for c in cells)).rstrip()


def _shorten(name: str, length: int = 30) -> str:
    """Shorten a name in the middle."""
    half = (length - 3) // 2
    return name if len(name) <= length else f"{name[:half]}...{name[-half:]}"


def _means(summary: Summary) -> Iterator[str]:
    settings = summary.settings
    cells = {(m.learner, m.structure, m.n, m.method): m for m in summary.means}

    def shown(m: Mean) -> str:
        mean = f"{m.mean:.4f}".removeprefix("0")
        return _with_error(mean, m.standard_error, "*" if m.best else " ")

    for learner in settings["learners"]:
        if len({m.n for m in summary.means if m.learner == learner}) < len(settings["sizes"]):
            continue  # run for the largest size only: shown by `_bayes_gaps`
        yield (
            f"Mean F{settings['beta']:g} on test rows, {_shorten(learner, 24)} base learner "
            f"(distributions: {settings['reps']})"
        )
        for structure in settings["structures"]:
            rows = [
                [f"{n}", *(shown(cells[learner, structure, n, k]) for k in settings["methods"])]
                for n in settings["sizes"]
            ]
            yield from ("", _structure_title(structure))
            yield from _grid(["n", *(NAMES[k] + " " for k in settings["methods"])], rows)
        yield ""
    yield "In brackets: standard error, in units of the last digit."
    if any(m.best for m in summary.means):
        yield "* best of GFM, F-GFM true and F-GFM ILF"
    yield ""


def _bayes_gaps(summary: Summary) -> Iterator[str]:
    settings = summary.settings
    largest = settings["sizes"][-1]
    cells = {(m.structure, m.learner, m.method): m for m in summary.means if m.n == largest}
    methods = [k for k in settings["methods"] if k != "bayes"]
    if "bayes" not in settings["methods"] or not methods:
        return

    def shown(m: Mean | None) -> str:
        return "-" if m is None else _with_error(f"{1e4 * m.bayes_gap:.0f}", m.bayes_gap_error)

    yield f"Bayes-optimal F minus exact F at n = {largest}, in units of 1e-4"
    rows = [
        [f"{s}, {learner}", *(shown(cells.get((s, learner, k))) for k in methods)]
        for s in settings["structures"]
        for learner in settings["learners"]
    ]
    yield from _grid(["", *(NAMES[k] for k in methods)], rows)
    yield ""


def _differences(summary: Summary) -> Iterator[str]:
    settings, learner = summary.settings, summary.settings["learners"][0]
    pairs = [p for p in _SHOWN if set(p) <= set(settings["methods"])]

    def shown(d: Difference) -> str:
        mark = "*" if d.p_holm < LEVEL else " "
        return _with_error(f"{round(1e4 * d.mean):+d}", d.standard_error, mark)

    for pair in pairs:
        cells = _select(summary, learner, pair)
        rows = [
            [s, *(shown(cells[s, n]) for n in settings["sizes"])] for s in settings["structures"]
        ]
        first, second = (NAMES[k] for k in pair)
        yield f"{first} minus {second}, {_shorten(learner, 24)}, paired, in units of 1e-4"
        yield from _grid(["n", *(f"{n} " for n in settings["sizes"])], rows)
        yield ""
    if pairs:
        yield f"* significant: paired t-test at level {LEVEL}, corrected for all cells (Holm)"
        yield ""


def _select(
    summary: Summary, learner: str, pair: tuple[str, str]
) -> dict[tuple[str, int], Difference]:
    """Return the differences of a pair of methods, by structure and size."""
    key = (learner, *pair)
    return {
        (d.structure, d.n): d for d in summary.differences if (d.learner, d.first, d.second) == key
    }


def _factors(summary: Summary) -> Iterator[str]:
    if not summary.factors:
        return
    yield "Learned factors: precision / recall of the pairs of labels that share one"
    cells = {(s.structure, s.n): f"{s.precision:.2f}/{s.recall:.2f}" for s in summary.factors}
    sizes = summary.settings["sizes"]
    rows = [[s, *(cells[s, n] for n in sizes)] for s in summary.settings["structures"]]
    yield from _grid(["n", *map(str, sizes)], rows)
    yield ""


def _findings(summary: Summary) -> Iterator[str]:
    if not summary.findings:
        return
    published = summary.settings["estimates"] == "published"
    title = "The paper's findings" if published else "With our estimates"
    reps = summary.settings["reps"]
    yield title + (":" if reps >= _PAPER_REPS else f" ({reps} of {_PAPER_REPS} distributions):")
    for finding in summary.findings:
        text = f"- {finding.topic}: {finding.detail}."
        if published:
            text = f"- {finding.claim}: {finding.verdict}; {finding.detail}."
        yield from textwrap.wrap(text, _WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    yield ""


# Figure


def draw(results: PaperResults) -> Any:
    """Draw mean F and differences from GFM against the number of training rows."""
    figures = import_optional("matplotlib.figure", "the figure", "plot")
    summaries = [run.summary for run in results.runs.values()]
    settings = summaries[0].settings
    structures, methods = settings["structures"], settings["methods"]
    compared = "gfm" in methods and any(method in methods for method in _COMPARED)
    n_columns = 1 + (len(summaries) if compared else 0)
    size = (_INCHES if compared else 0.6 * _INCHES), _PANEL_HEIGHT * len(structures) + 1.1
    figure = figures.Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(structures), n_columns, squeeze=False, sharex=True)
    for panels in (axes[:, 0], axes[:, 1:].ravel()):  # one scale of means, one of differences
        for ax in panels[1:]:
            ax.sharey(panels[0])
    for ax in axes[:, 2:].ravel():
        ax.tick_params(labelleft=False)
    handles: dict[str, Any] = {}
    for row, structure in zip(axes, structures, strict=True):
        handles |= _draw_means(row[0], summaries[0], structure)
        for ax, summary in zip(row[1:], summaries, strict=False):
            _draw_differences(ax, summary, structure)
        row[0].set_ylabel(_structure_title(structure), fontsize=9)
        for ax in row:
            _format_axes(ax, settings["sizes"])
    f = f"F{settings['beta']:g}"
    axes[0, 0].set_title(f"mean {f}", fontsize=9)
    for ax, estimates in zip(axes[0, 1:], results.runs, strict=False):
        title = _TITLES[estimates].partition(" (")[0].lower()
        ax.set_title(f"{f} minus {NAMES['gfm']},\n{title}", fontsize=9)
    figure.supxlabel("training rows", fontsize=9)
    figure.legend(
        handles=[handles[k] for k in _LEGEND if k in handles],
        loc="outside upper center",
        ncols=3 if compared else 2,
        fontsize=8.5,
        frameon=False,
    )
    return figure


def _draw_means(ax: Any, summary: Summary, structure: str) -> dict[str, Any]:
    """Draw the mean F of every method; return the handles of the legend."""
    handles = {}
    cell = structure, summary.settings["learners"][0]
    for method, style in _STYLES.items():
        means = [m for m in summary.means if (m.structure, m.learner, m.method) == (*cell, method)]
        if not means:
            continue
        n, f = [float(m.n) for m in means], [m.mean for m in means]
        if method == "bayes" and len(n) == 1:  # a line, not a point
            n, f = [n[0] / 1.4, n[0] * 1.4], f * 2
        label = NAMES[method] + ("-optimal" if method == "bayes" else "")
        (handles[method],) = ax.plot(n, f, label=label, **_LINE | style)
    return handles


def _draw_differences(ax: Any, summary: Summary, structure: str) -> None:
    """Draw F minus that of GFM, with 95 % intervals."""
    ax.axhline(0.0, color=_STYLES["gfm"]["color"], linewidth=1.0)
    for place, method in enumerate(_COMPARED):
        cells = _select(summary, summary.settings["learners"][0], (method, "gfm"))
        shown = [d for (s, _), d in cells.items() if s == structure]
        if not shown:
            continue
        shift = 1.09 ** (place - 1)  # side by side on the logarithmic axis
        ax.errorbar(
            [shift * d.n for d in shown],
            [d.mean for d in shown],
            yerr=[[d.mean - d.low for d in shown], [d.high - d.mean for d in shown]],
            elinewidth=0.8,
            **_LINE | _STYLES[method],
        )


def _format_axes(ax: Any, sizes: Sequence[int]) -> None:
    ax.set_xscale("log")
    marked = sizes[:: -(-len(sizes) // 3)]  # labels of more sizes would overlap
    ax.set_xticks(marked, [str(n) for n in marked])
    ax.set_xticks(sizes, minor=True)
    ax.tick_params(axis="x", which="minor", labelbottom=False)
    if len(sizes) == 1:
        ax.set_xlim(sizes[0] / 1.5, sizes[0] * 1.5)
    ax.tick_params(labelsize=8)
    ax.grid(True, color="#E5E5E5", linewidth=0.6)
    ax.set_axisbelow(True)
