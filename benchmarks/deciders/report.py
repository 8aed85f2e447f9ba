"""Format the summary for a terminal and as Markdown, draw its figure, and write the files."""

from __future__ import annotations

import csv
import io
import json
import math
import textwrap
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.deciders.compare import Record
from benchmarks.deciders.rules import AVERAGES, FDECIDER, RULES
from benchmarks.deciders.summary import GROUPS, Summary
from benchmarks.real.tables import count
from fgfm._utils.atomic import atomic_file
from fgfm.experiments._figure import new_figure
from fgfm.experiments._table import grid

__all__ = ["format_markdown", "format_terminal", "write_report"]

_WIDTH = 80
_MISSING = "-"
_TICKS = (-0.5, -0.1, -0.05, 0.0, 0.05, 0.1, 0.5)  # of differences
_COLOURS = {"samples": "#0072B2", "macro": "#D55E00", "micro": "#009E73"}


class _Table(NamedTuple):
    title: str
    rows: list[list[str]]  # the first is the head
    notes: list[str]


def _decimal(value: float, digits: int = 3) -> str:
    return _MISSING if math.isnan(value) else f"{value:.{digits}f}"


def _signed(value: float) -> str:
    return _MISSING if math.isnan(value) else f"{value:+.4f}"


def _groups(summary: Summary) -> list[str]:
    found = {ranking.group for ranking in summary.rankings}
    return [group for group in GROUPS if group in found]


def _rank_tables(summary: Summary) -> Iterator[_Table]:
    for group in _groups(summary):
        for packages in (False, True):
            rankings = [r for r in summary.rankings if r.group == group and r.packages == packages]
            if rankings:
                yield _rank_table(group, packages, rankings)


def _rank_table(group: str, packages: bool, rankings: Sequence[Any]) -> _Table:
    rules = list(dict.fromkeys(rule for r in rankings for rule in r.rules))
    heads = [head for r in rankings for head in (r.average, "F1")]
    rows = [["rule", *heads]]
    for rule in sorted(rules, key=lambda r: list(RULES).index(r) if r in RULES else len(RULES)):
        row = [rule]
        for r in rankings:
            at = r.rules.index(rule) if rule in r.rules else None
            row += [_MISSING] * 2 if at is None else [
                _decimal(r.mean_ranks[at], 2), _decimal(r.mean_f1[at])
            ]  # fmt: skip
        rows.append(row)
    notes = []
    for r in rankings:
        text = (
            f"{r.average}: {count(r.n_pairs, 'pair')} of a learner and one of "
            f"{count(r.n_datasets, 'data set')}"
        )
        if r.n_incomplete:
            text += f", {r.n_incomplete} more without a score of every rule"
        if not math.isnan(r.friedman_p):
            text += (
                f"; Friedman test over data sets p = {r.friedman_p:.2g}, critical difference "
                f"{r.critical_difference:.2f} (Nemenyi, level 0.05)"
            )
        notes.append(text + ".")
    extent = "all variants and packages" if packages else "rules"
    return _Table(f"Mean ranks and mean F1 by average: {extent}, {group} data sets", rows, notes)


def _difference_tables(summary: Summary) -> Iterator[_Table]:
    kinds = dict.fromkeys((d.group, d.decider) for d in summary.differences)
    for group, decider in kinds:
        found = [d for d in summary.differences if (d.group, d.decider) == (group, decider)]
        rows = [[f"{decider} minus", "average", "mean", "low", "high", "wins", "share"]]
        rows += [
            [
                d.rule,
                d.average,
                *map(_signed, (d.mean, d.low, d.high)),
                f"{d.wins}/{d.wins + d.ties + d.losses}",
                f"{100.0 * (d.wins + 0.5 * d.ties) / (d.wins + d.ties + d.losses):.0f} %",
            ]
            for d in found
            if d.wins + d.ties + d.losses
        ]
        note = (
            "mean: over pairs of data set and learner; low, high: 95 % bootstrap interval over "
            "data sets; wins: pairs where it is ahead; share: with half of the ties."
        )
        yield _Table(f"F1 of {decider} minus that of each rule: {group} data sets", rows, [note])


def _deviation_table(summary: Summary) -> Iterator[_Table]:
    if not summary.deviations:
        return
    rows = [["rule", "average", "group", "mean", "absolute", "highest"]]
    notes = []
    for d in summary.deviations:
        rows.append(
            [d.rule, d.average, d.group, _signed(d.mean), _decimal(d.mean_absolute, 4),
             _signed(d.highest)]
        )  # fmt: skip
        if d.rule == FDECIDER:
            notes.append(f"{d.rule}, {d.average}, {d.group}: highest on {d.highest_at}.")
    yield _Table("Expected minus obtained F1", rows, notes)


def _guarantee_table(summary: Summary) -> Iterator[_Table]:
    if not summary.guarantees:
        return
    rows = [["data sets", "pairs", "held", "mean bound", "mean F1", "below by"]]
    rows += [
        [g.group, str(g.n_pairs), f"{g.n_held}/{g.n_pairs}", _decimal(g.mean_bound),
         _decimal(g.mean_f1), _decimal(g.mean_f1 - g.mean_bound)]
        for g in summary.guarantees
    ]  # fmt: skip
    notes = [
        "FDecider for samples, fitted on half of the validation rows; lower bound at 95 % "
        "confidence by the others; held: F1 of the test rows is at least the bound."
    ]
    missed = [f"{r.dataset} {r.learner}" for r in summary.bounds if r.f1 < r.bound]
    if missed:
        notes.append(f"Not held: {', '.join(missed)}.")
    yield _Table("Guarantee", rows, notes)


def _time_table(summary: Summary) -> Iterator[_Table]:
    rows = [["rule", "tune, s", "largest", "decide, s", "largest"]]
    rows += [[t.rule, *(f"{seconds:.3g}" for seconds in t[1:])] for t in summary.times]
    notes = ["Medians over pairs and averages, and the largest."]
    if any(t.rule not in RULES for t in summary.times):
        notes.append("Times of other packages are those of all their rules together.")
    yield _Table("Time", rows, notes)


def _tables(summary: Summary) -> Iterator[_Table]:
    yield from _rank_tables(summary)
    yield from _difference_tables(summary)
    yield from _deviation_table(summary)
    yield from _guarantee_table(summary)
    yield from _time_table(summary)


def format_terminal(summary: Summary) -> str:
    """Format the summary as lines of at most 80 characters."""
    lines: list[str] = []
    for title, (heads, *rows), notes in _tables(summary):
        lines += [*textwrap.wrap(title, _WIDTH), *grid(heads, rows)]
        for note in notes:
            lines += textwrap.wrap(note, _WIDTH)
        lines.append("")
    if summary.failures:
        lines.append(f"{count(len(summary.failures), 'result')} missing: see table.md")
    return "\n".join(lines).rstrip()


def format_markdown(summary: Summary, missing: dict[str, str], command: str) -> str:
    """Format the summary as Markdown, with the bounds of all pairs and all missing results."""
    parts = [f"Computed by `{command}`.", ""]
    for title, rows, notes in _tables(summary):
        parts += [f"## {title}", "", *_markdown(rows), ""]
        for note in notes:
            parts += [note, ""]
    if summary.bounds:
        rows = [["data set", "learner", "bound", "F1", "expected F1"]]
        rows += [
            [r.dataset, r.learner, *(_decimal(v) for v in (r.bound, r.f1, r.expected_f))]
            for r in summary.bounds
        ]
        parts += ["## Bounds of all pairs", "", *_markdown(rows), ""]
    if missing or summary.failures:
        rows = [["data set and learner", "rule", "reason"]]
        rows += [[name, "all", reason] for name, reason in sorted(missing.items())]
        rows += [
            [f"{r.dataset}-{r.learner}", f"{r.rule}, {r.average}", r.status]
            for r in summary.failures
        ]
        parts += ["## Missing results", "", *_markdown(rows), ""]
    return "\n".join(parts)


def _markdown(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for k, row in enumerate(rows):
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
        if k == 0:
            yield "|---|" + "--:|" * (len(row) - 1)


def draw(summary: Summary, records: Sequence[Record]) -> Any:
    """Draw mean ranks, and differences of F1 from FDecider on all pairs."""
    rankings = [r for r in summary.rankings if not r.packages]
    averages = [a for a in AVERAGES if any(r.average == a for r in rankings)]
    compared = bool(summary.differences)
    figure = new_figure(7.2, 1.9 * len(averages) + 0.6)
    axes = figure.subplots(len(averages), 1 + compared, squeeze=False, sharex="col", sharey="row")
    f1 = {(r.dataset, r.learner, r.rule, r.average): r.f1 for r in records}
    markers = dict(zip(GROUPS, "osD", strict=True))
    for row, average in zip(axes, averages, strict=True):
        shown = [r for r in rankings if r.average == average]
        rules = [rule for rule in RULES if rule in shown[0].rules]
        for ranking in shown:
            x = [ranking.mean_ranks[ranking.rules.index(rule)] for rule in rules]
            row[0].plot(
                x, -np.arange(len(rules)), markers[ranking.group], color=_COLOURS[average],
                markerfacecolor="none" if ranking.group != "all" else None, markersize=5,
                linestyle="", label=ranking.group,
            )  # fmt: skip
        row[0].set_yticks(-np.arange(len(rules)), rules)
        row[0].set_ylabel(average, fontsize=9)
        for ax in row[1:]:
            ax.axvline(0.0, color="#000000", linewidth=0.8)
            for place, rule in enumerate(rules):
                d = [
                    value - f1[*key[:2], rule, average]
                    for key, value in f1.items()
                    if key[2:] == (FDECIDER, average) and (*key[:2], rule, average) in f1
                ]
                if rule != FDECIDER and d:
                    height = -place + np.linspace(-0.25, 0.25, len(d))
                    ax.plot(d, height, ".", color="#999999", markersize=3)
                    ax.plot([np.mean(d)], [-place], "|", color=_COLOURS[average], markersize=14)
            ax.set_xscale("symlog", linthresh=0.1)
            ax.set_xticks(_TICKS, [f"{tick:g}" for tick in _TICKS])
        for ax in row:
            ax.tick_params(labelsize=8)
            ax.grid(True, axis="x", color="#E5E5E5", linewidth=0.6)
            ax.set_axisbelow(True)
    axes[-1, 0].set_xlabel("mean rank", fontsize=9)
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=3, fontsize=8, frameon=False)
    if compared:
        axes[-1, 1].set_xlabel("F1 of FDecider minus F1 of the rule", fontsize=9)
    return figure


def write_report(
    folder: Path,
    records: Sequence[Record],
    summary: Summary,
    missing: dict[str, str],
    command: str,
) -> list[Path]:
    """Write ``results.csv``, ``summary.json``, ``table.md`` and ``deciders.png``."""
    folder.mkdir(parents=True, exist_ok=True)
    document = summary.as_dict() | {"command": command, "fgfm": version("fgfm")}
    texts = {
        "results.csv": _csv(records),
        "summary.json": json.dumps(document, indent=1, allow_nan=False) + "\n",
        "table.md": format_markdown(summary, missing, command),
    }
    for name, text in texts.items():
        with atomic_file(folder / name) as file:
            file.write(text.encode())
    paths = [folder / name for name in texts]
    if summary.rankings:
        with atomic_file(folder / "deciders.png") as file:
            draw(summary, records).savefig(file, format="png", dpi=150)
        paths.append(folder / "deciders.png")
    return paths


def _csv(records: Sequence[Record]) -> str:
    """Format scores with six digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Record._fields)
    writer.writerows([f"{v:.6g}" if isinstance(v, float) else v for v in r] for r in records)
    return text.getvalue()
