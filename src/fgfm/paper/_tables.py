"""The results of the paper's experiment as text of at most 80 columns."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence

from fgfm.paper._experiment import PaperResults
from fgfm.paper._networks import STRUCTURES
from fgfm.paper._summary import LEVEL, Difference, Mean, Summary

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


def structure_title(structure: str) -> str:
    """Return the title of a structure.

    Examples
    --------
    >>> structure_title("4+4"), structure_title("3+1")
    ('DAG 2 (4+4)', 'Factors of 3+1')
    """
    dag = _DAGS.get(structure)
    return f"Factors of {_shorten(structure)}" if dag is None else f"DAG {dag} ({structure})"


def format_mean(mean: float, error: float) -> str:
    """Format a mean with its standard error in units of the last digit.

    Examples
    --------
    >>> format_mean(0.67312, 0.00405)
    '.6731(40)'
    """
    shown = f"{mean:.4f}"
    shown = shown[1:] if shown.startswith("0") else shown
    return shown if math.isnan(error) else f"{shown}({round(1e4 * error)})"


def format_difference(d: Difference) -> str:
    """Format a difference with its standard error in units of 1e-4, with a star if significant.

    Examples
    --------
    >>> format_difference(Difference("8", 50, "linear", "ilf", "gfm", 0.0031, 0.0010, 0.0011,
    ...                              0.0051, 0.002, 0.03, 70, 30))
    '+31(10)*'
    """
    error = "" if math.isnan(d.standard_error) else f"({round(1e4 * d.standard_error)})"
    return f"{round(1e4 * d.mean):+d}{error}" + ("*" if d.p_holm < LEVEL else " ")


def grid(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
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
    methods = settings["methods"]
    by_structure: dict[tuple[str, str], list[Mean]] = {}
    for m in summary.means:
        by_structure.setdefault((m.learner, m.structure), []).append(m)
    for learner in settings["learners"]:
        if len({m.n for m in summary.means if m.learner == learner}) < len(settings["sizes"]):
            continue  # run for the largest size only: shown by `_bayes_gaps`
        yield (
            f"Mean F{settings['beta']:g} on test rows, {learner} base learner "
            f"(distributions: {settings['reps']})"
        )
        for structure in settings["structures"]:
            cells = {(m.n, m.method): m for m in by_structure.get((learner, structure), ())}
            rows = [
                [f"{n}"]
                + [
                    format_mean(cells[n, k].mean, cells[n, k].standard_error)
                    + ("*" if cells[n, k].best else " ")
                    for k in methods
                ]
                for n in settings["sizes"]
                if (n, methods[0]) in cells
            ]
            yield ""
            yield structure_title(structure)
            yield from grid(["n", *(NAMES[k] + " " for k in methods)], rows)
        yield ""
    yield "In brackets: standard error, in units of the last digit."
    if any(m.best for m in summary.means):
        yield "* best of GFM, F-GFM true and F-GFM ILF"
    yield ""


def _bayes_gaps(summary: Summary) -> Iterator[str]:
    settings = summary.settings
    largest = settings["sizes"][-1]
    gaps = {
        (m.learner, m.structure, m.method): m
        for m in summary.means
        if m.n == largest and m.method != "bayes" and not math.isnan(m.bayes_gap)
    }
    methods = [k for k in settings["methods"] if k != "bayes"]
    if not gaps or not methods:
        return
    yield f"Bayes-optimal F minus exact F at n = {largest}, in units of 1e-4"
    rows = []
    for structure in settings["structures"]:
        for learner in settings["learners"]:
            cells = [_format_gap(gaps.get((learner, structure, k))) for k in methods]
            rows.append([f"{structure}, {learner}", *cells])
    yield from grid(["", *(NAMES[k] for k in methods)], rows)
    yield ""


def _format_gap(mean: Mean | None) -> str:
    if mean is None:
        return "-"
    error = mean.bayes_gap_error
    return f"{1e4 * mean.bayes_gap:.0f}" + ("" if math.isnan(error) else f"({1e4 * error:.0f})")


def _differences(summary: Summary) -> Iterator[str]:
    pairs = [p for p in _SHOWN if any((d.first, d.second) == p for d in summary.differences)]
    for first, second in pairs:
        cells = {
            (d.structure, d.n): d
            for d in summary.differences
            if (d.first, d.second, d.learner) == (first, second, "linear")
        }
        yield f"{NAMES[first]} minus {NAMES[second]}, linear, paired, in units of 1e-4"
        sizes = summary.settings["sizes"]
        rows = [
            [s, *(format_difference(cells[s, n]) for n in sizes)]
            for s in summary.settings["structures"]
        ]
        yield from grid(["n", *(f"{n} " for n in sizes)], rows)
        yield ""
    if pairs:
        yield f"* significant: paired t-test at level {LEVEL}, corrected for all cells (Holm)"
        yield ""


def _factors(summary: Summary) -> Iterator[str]:
    if not summary.factors:
        return
    yield "Learned factors: precision / recall of the pairs of labels that share one"
    cells = {(s.structure, s.n): s for s in summary.factors}
    sizes = summary.settings["sizes"]
    rows = [
        [s, *(f"{cells[s, n].precision:.2f}/{cells[s, n].recall:.2f}" for n in sizes)]
        for s in summary.settings["structures"]
    ]
    yield from grid(["n", *map(str, sizes)], rows)
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
