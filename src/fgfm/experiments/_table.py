"""The paper's experiment as text of 80 columns."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence

from fgfm.experiments._statistics import NAMES, Difference, Mean, Summary
from fgfm.synthetic import STRUCTURES

__all__ = ["difference_text", "grid", "structure_title", "tables", "value_text"]

_WIDTH = 80
_DAGS = {"+".join(map(str, sizes)): dag for dag, sizes in STRUCTURES.items()}
_LEVEL = 0.05
_SHOWN = (("ilf", "gfm"), ("ilf", "true"))  # of the comparisons, in a terminal


def structure_title(structure: str) -> str:
    """Name a structure.

    Examples
    --------
    >>> structure_title("4+4"), structure_title("3+1")
    ('DAG 2 (4+4)', 'Factors of 3+1')
    """
    dag = _DAGS.get(structure)
    return f"Factors of {_shortened(structure)}" if dag is None else f"DAG {dag} ({structure})"


def value_text(mean: float, error: float) -> str:
    """Write a mean with its standard error in units of the last digit.

    Examples
    --------
    >>> value_text(0.67312, 0.00405)
    '.6731(40)'
    """
    shown = f"{mean:.4f}"
    shown = shown[1:] if shown.startswith("0") else shown
    return shown if math.isnan(error) else f"{shown}({round(1e4 * error)})"


def difference_text(d: Difference) -> str:
    """Write a difference with its standard error, in units of 1e-4; a star if it is significant.

    Examples
    --------
    >>> difference_text(Difference("8", 50, "linear", "ilf", "gfm", 0.0031, 0.0010, 0.0011,
    ...                            0.0051, 0.002, 0.03, 70, 30))
    '+31(10)*'
    """
    error = "" if math.isnan(d.standard_error) else f"({round(1e4 * d.standard_error)})"
    return f"{round(1e4 * d.mean):+d}{error}" + ("*" if d.p_holm < _LEVEL else " ")


def tables(summary: Summary) -> str:
    """Write all that a terminal shows of a run.

    Parameters
    ----------
    summary : Summary
        The summary.

    Returns
    -------
    str
        Lines of at most 80 characters.
    """
    parts = [_means(summary), _limit(summary), _differences(summary), _factors(summary)]
    return "\n".join(line for part in (*parts, _findings(summary)) for line in part)


def grid(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lay out rows: the first column to the left, the others to the right, evenly.

    Columns that do not fit beside each other go below, under the same first column.
    """
    table = [heads, *rows]
    names = [_shortened(row[0]) for row in table]
    first = max(map(len, names))
    needed = max((len(cell) for row in table for cell in row[1:]), default=0)
    at_once = max(1, (_WIDTH - first) // (needed + 1))
    width = needed + (2 if first + (len(heads) - 1) * (needed + 2) <= _WIDTH else 1)
    for start in range(1, len(heads), at_once):
        if start > 1:
            yield ""
        for name, row in zip(names, table, strict=True):
            cells = row[start : start + at_once]
            yield (name.ljust(first) + "".join(c.rjust(width) for c in cells)).rstrip()


def _shortened(name: str, length: int = 30) -> str:
    """Cut a name in the middle."""
    half = (length - 3) // 2
    return name if len(name) <= length else f"{name[:half]}...{name[-half:]}"


def _means(summary: Summary) -> Iterator[str]:
    settings = summary.settings
    methods = settings["methods"]
    shown: dict[tuple[str, str], list[Mean]] = {}
    for m in summary.means:
        shown.setdefault((m.learner, m.structure), []).append(m)
    beta = settings["beta"]
    for learner in settings["learners"]:
        if len({m.n for m in summary.means if m.learner == learner}) < len(settings["sizes"]):
            continue  # the next table has it
        yield f"Test F{beta:g}, {learner} base learner, {settings['reps']} distributions"
        for structure in settings["structures"]:
            cells = {(m.n, m.method): m for m in shown.get((learner, structure), ())}
            rows = [
                [f"{n}"]
                + [
                    value_text(cells[n, k].mean, cells[n, k].standard_error)
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
    yield "In brackets the standard error in units of the last digit."
    if any(m.best for m in summary.means):
        yield "* the best of GFM, F-GFM true and F-GFM ILF"
    yield ""


def _limit(summary: Summary) -> Iterator[str]:
    settings = summary.settings
    largest = settings["sizes"][-1]
    learners = settings["learners"]
    gaps = {
        (m.learner, m.structure, m.method): m
        for m in summary.means
        if m.n == largest and m.method != "bayes" and not math.isnan(m.limit_gap)
    }
    methods = [k for k in settings["methods"] if k != "bayes"]
    if not gaps or not methods:
        return
    yield f"Exact F below the Bayes-optimal one at n = {largest}, in units of 1e-4"
    rows = []
    for structure in settings["structures"]:
        for learner in learners:
            mine = [gaps.get((learner, structure, k)) for k in methods]
            cells = [
                "-"
                if m is None
                else f"{1e4 * m.limit_gap:.0f}({1e4 * m.limit_gap_error:.0f})"
                if not math.isnan(m.limit_gap_error)
                else f"{1e4 * m.limit_gap:.0f}"
                for m in mine
            ]
            rows.append([f"{structure}, {learner}", *cells])
    heads = ["", *(NAMES[k] for k in methods)]
    yield from grid(heads, rows)
    yield ""


def _differences(summary: Summary) -> Iterator[str]:
    pairs = [p for p in _SHOWN if any(d[3:5] == p for d in summary.differences)]
    for first, second in pairs:
        cells = {
            (d.structure, d.n): d
            for d in summary.differences
            if (d.first, d.second, d.learner) == (first, second, "linear")
        }
        if not cells:
            continue
        yield f"{NAMES[first]} less {NAMES[second]}, paired, linear, in units of 1e-4"
        sizes = summary.settings["sizes"]
        rows = [
            [s, *(difference_text(cells[s, n]) for n in sizes)]
            for s in summary.settings["structures"]
        ]
        yield from grid(["n", *(f"{n} " for n in sizes)], rows)
        yield ""
    if pairs:
        yield f"* paired t-test at {_LEVEL}, corrected for all cells (Holm)"
        yield ""


def _factors(summary: Summary) -> Iterator[str]:
    if not summary.factors:
        return
    yield "Learned factors: pairs of labels, precision / recall"
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
    yield "The paper's findings, held against this run"
    for finding in summary.findings:
        text = f"- {finding.claim}: {finding.verdict.upper()}; {finding.detail}."
        yield from textwrap.wrap(text, _WIDTH, subsequent_indent="  ")
