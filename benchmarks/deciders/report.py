"""Summarise the scores as tables and a figure: ranks, differences, expected F1, guarantees, times.

`fgfm.FDecider` was designed on the data sets of `DEVELOPMENT`; all others confirm it. Both groups
are summarised separately, and together.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.deciders.compare import Record
from benchmarks.deciders.rules import (
    AVERAGES,
    FDECIDER,
    FDECIDER_ROWS,
    GUARANTEE,
    ORACLE,
    PER_LABEL,
    RULES,
    THRESHOLD,
)
from benchmarks.real.statistics import bootstrap_means, critical_difference, friedman, interval
from benchmarks.real.subprocesses import OK
from benchmarks.real.tables import count
from fgfm._utils.atomic import atomic_file
from fgfm.experiments._figure import new_figure
from fgfm.experiments._table import grid

__all__ = ["DEVELOPMENT", "GROUPS", "Scores", "format_terminal", "in_group", "write_report"]

DEVELOPMENT = frozenset({
    "cal500", "emotions", "enron", "flags", "foodtruck", "genbase", "image", "langlog", "medical",
    "reutersk500", "scene", "stackex_chess", "yeast",
})  # fmt: skip
GROUPS = ("development", "confirmation", "all")
_UNRANKED = (FDECIDER_ROWS, GUARANTEE, ORACLE)
_LEVEL = 0.005  # difference of F1
_BOOTSTRAP_SAMPLES = 2000
_WIDTH = 80
_TICKS = (-0.5, -0.1, -0.05, 0.0, 0.05, 0.1, 0.5)  # of differences
_COLOURS = {"samples": "#0072B2", "macro": "#D55E00", "micro": "#009E73"}


class Table(NamedTuple):
    """A table of texts, the first row being the head."""

    title: str
    rows: list[list[str]]
    notes: list[str]


def in_group(dataset: str, group: str) -> bool:
    """Return True if a data set belongs to a group of `GROUPS`."""
    return group == "all" or (group == "development") == (dataset in DEVELOPMENT)


def _signed(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:+.4f}"


def _decimal(value: float, digits: int = 3) -> str:
    return "-" if np.isnan(value) else f"{value:.{digits}f}"


class Scores:
    """The scores that were computed, by group of data sets and average."""

    def __init__(self, records: Sequence[Record], seed: int = 0) -> None:
        self.records, self.seed = records, seed
        frame = pd.DataFrame(records, columns=Record._fields)
        self.ok = frame[frame.status == OK]
        order = list(RULES)
        self.rules = sorted(  # ours first
            self.ok.rule.unique(), key=lambda r: (order.index(r) if r in order else 99, r)
        )
        groups = [g for g in GROUPS if any(in_group(d, g) for d in self.ok.dataset)]
        # one group, and the same data sets as "all"
        self.groups = groups[:1] if len(groups) == 2 else groups

    def chosen(self, group: str) -> pd.DataFrame:
        """Return the scores of a group."""
        return self.ok[[in_group(d, group) for d in self.ok.dataset]]

    def matrix(self, group: str, average: str, value: str = "f1") -> pd.DataFrame:
        """Return a score by data set and learner (rows), and rule (columns)."""
        rows = self.chosen(group).query("average == @average and rule != @GUARANTEE")
        found = rows.pivot(index=["dataset", "learner"], columns="rule", values=value)
        return found[[rule for rule in self.rules if rule in found]]

    def ranked(self, group: str, average: str, packages: bool) -> pd.DataFrame:
        """Return F1 of our own rules, or of those of packages too."""
        f1 = self.matrix(group, average)
        own = [rule for rule in f1 if rule in RULES and rule not in _UNRANKED]
        if packages:
            return f1 if len(own) < f1.shape[1] else f1.iloc[:0, :0]
        return f1[own].dropna(how="all")

    def tables(self) -> Iterator[Table]:
        """Yield all tables."""
        for group in self.groups:
            for packages in (False, True):
                yield from self._rank_table(group, packages)
        yield from self._standing_table()
        for group in self.groups:
            for decider in (FDECIDER, FDECIDER_ROWS):
                yield from self._difference_table(group, decider)
        yield from self._deviation_table()
        yield from self._guarantee_table()
        yield self._time_table()

    def _rank_table(self, group: str, packages: bool) -> Iterator[Table]:
        parts = {average: self.ranked(group, average, packages) for average in AVERAGES}
        parts = {average: f1 for average, f1 in parts.items() if f1.shape[1]}
        if not parts:
            return
        heads, columns, notes = [], [], []
        for average, f1 in parts.items():
            complete = f1.dropna()
            by_dataset = complete.groupby(level="dataset").mean()
            ranks = complete.rank(axis=1, ascending=False)
            heads += [average, "F1"]
            columns += [(ranks.mean(), 2), (complete.mean(), 3)]
            text = (
                f"{average}: {count(len(complete), 'pair')} of a learner and one of "
                f"{count(len(by_dataset), 'data set')}"
            )
            if len(f1) > len(complete):
                text += f", {len(f1) - len(complete)} more without a score of every rule"
            if len(by_dataset) > 1 and f1.shape[1] > 1:
                p = friedman(by_dataset.rank(axis=1, ascending=False).to_numpy()).p_value
                text += (
                    f"; Friedman test over data sets p = {p:.2g}, critical difference "
                    f"{critical_difference(f1.shape[1], len(by_dataset)):.2f} (Nemenyi, "
                    "level 0.05)"
                )
            notes.append(text + ".")
        rows = [["rule", *heads]]
        for rule in self.rules:
            if any(rule in f1 for f1 in parts.values()):
                cells = [_decimal(values.get(rule, np.nan), digits) for values, digits in columns]
                rows.append([rule, *cells])
        extent = "all variants and packages" if packages else "rules"
        title = f"Mean ranks and mean F1 by average: {extent}, {group} data sets"
        yield Table(title, rows, notes)

    def _standing_table(self) -> Iterator[Table]:
        rows = [["average", "data sets", FDECIDER, "threshold", ORACLE, "pairs"]]
        for average in AVERAGES:
            for group in self.groups:
                f1 = self.matrix(group, average)
                if not {FDECIDER, THRESHOLD, PER_LABEL, ORACLE} <= set(f1):
                    continue
                f1 = f1[[FDECIDER, THRESHOLD, PER_LABEL, ORACLE]].dropna()
                best = f1[[THRESHOLD, PER_LABEL]].max(axis=1)
                d = f1[FDECIDER] - best
                means = (f1[FDECIDER].mean(), best.mean(), f1[ORACLE].mean())
                counts = (d > _LEVEL, d.abs() <= _LEVEL, d < -_LEVEL)
                pairs = "/".join(str(c.sum()) for c in counts)
                rows.append([average, group, *map(_decimal, means), pairs])
        note = (
            "threshold: the better one, on the test rows, of one for all labels and one per "
            "label, both tuned on the validation rows; oracle: thresholds tuned on the test "
            f"rows; pairs: FDecider ahead of threshold, level (by at most {_LEVEL}), behind."
        )
        if len(rows) > 1:
            yield Table("FDecider and the better of two tuned thresholds", rows, [note])

    def _difference_table(self, group: str, decider: str) -> Iterator[Table]:
        rows = [[f"{decider} minus", "average", "mean", "low", "high", "wins", "share"]]
        for average in AVERAGES:
            f1 = self.matrix(group, average)
            if decider not in f1:
                continue
            for rule in f1.columns.difference([FDECIDER, FDECIDER_ROWS], sort=False):
                d = (f1[decider] - f1[rule]).dropna()
                by_dataset = d.groupby(level="dataset").mean().to_numpy()
                low = high = np.nan
                if len(by_dataset) > 1:
                    random = np.random.default_rng(self.seed)
                    low, high = interval(bootstrap_means(by_dataset, _BOOTSTRAP_SAMPLES, random))
                if len(d):
                    share = 100.0 * ((d > 0.0).mean() + 0.5 * (d == 0.0).mean())
                    wins = f"{(d > 0.0).sum()}/{len(d)}"
                    signed = map(_signed, (d.mean(), low, high))
                    rows.append([rule, average, *signed, wins, f"{share:.0f} %"])
        note = (
            "mean: over pairs of data set and learner; low, high: 95 % bootstrap interval over "
            "data sets; wins: pairs where it is ahead; share: with half of the ties."
        )
        if len(rows) > 1:
            title = f"F1 of {decider} minus that of each rule: {group} data sets"
            yield Table(title, rows, [note])

    def _deviation_table(self) -> Iterator[Table]:
        rows = [["rule", "average", "group", "mean", "absolute", "highest"]]
        notes = []
        for group in self.groups:
            for average in AVERAGES:
                f1 = self.matrix(group, average)
                excess = self.matrix(group, average, "expected_f") - f1
                for rule, d in excess.items():
                    d = d[f1[rule].notna()]
                    if d.isna().any():
                        continue
                    rows.append(
                        [str(rule), average, group, _signed(d.mean()),
                         _decimal(d.abs().mean(), 4), _signed(d.max())]
                    )  # fmt: skip
                    if rule == FDECIDER:
                        at = " ".join(d.idxmax())
                        notes.append(f"{rule}, {average}, {group}: highest on {at}.")
        if len(rows) > 1:
            yield Table("Expected minus obtained F1", rows, notes)

    def _guarantee_table(self) -> Iterator[Table]:
        rows = [["data sets", "pairs", "held", "mean bound", "mean F1", "below by"]]
        for group in self.groups:
            found = self.chosen(group).query("rule == @GUARANTEE")
            if len(found):
                bound, f1 = found.bound.mean(), found.f1.mean()
                held = (found.f1 >= found.bound).sum()
                means = (_decimal(value) for value in (bound, f1, f1 - bound))
                rows.append([group, str(len(found)), f"{held}/{len(found)}", *means])
        notes = [
            "FDecider for samples, fitted on half of the validation rows; lower bound at 95 % "
            "confidence by the others; held: F1 of the test rows is at least the bound."
        ]
        missed = self.ok.query("rule == @GUARANTEE and f1 < bound")
        if len(missed):
            notes.append(f"Not held: {', '.join(missed.dataset + ' ' + missed.learner)}.")
        if len(rows) > 1:
            yield Table("Guarantee", rows, notes)

    def _time_table(self) -> Table:
        found = self.ok.groupby("rule")[["tune_s", "decide_s"]].agg(["median", "max"])
        rows = [["rule", "tune, s", "largest", "decide, s", "largest"]]
        rows += [[rule, *(f"{s:.3g}" for s in found.loc[rule])] for rule in self.rules]
        notes = ["Medians over pairs and averages, and the largest."]
        if any(rule not in RULES for rule in self.rules):
            notes.append("Times of other packages are those of all their rules together.")
        return Table("Time", rows, notes)


def format_terminal(scores: Scores) -> str:
    """Format the tables as lines of at most 80 characters."""
    lines: list[str] = []
    for title, (heads, *rows), notes in scores.tables():
        lines += [*textwrap.wrap(title, _WIDTH), *grid(heads, rows)]
        for note in notes:
            lines += textwrap.wrap(note, _WIDTH)
        lines.append("")
    failures = len(scores.records) - len(scores.ok)
    if failures:
        lines.append(f"{count(failures, 'result')} missing: see table.md")
    return "\n".join(lines).rstrip()


def format_markdown(scores: Scores, missing: dict[str, str], command: str) -> str:
    """Format the tables as Markdown, with the bounds of all pairs and all missing results."""
    tables = list(scores.tables())
    bounds = scores.ok.query("rule == @GUARANTEE")
    if len(bounds):
        rows = [["data set", "learner", "bound", "F1", "expected F1"]]
        rows += [
            [r.dataset, r.learner, *(_decimal(v) for v in (r.bound, r.f1, r.expected_f))]
            for r in bounds.itertuples()
        ]
        tables.append(Table("Bounds of all pairs", rows, []))
    rows = [["data set and learner", "rule", "reason"]]
    rows += [[name, "all", reason] for name, reason in sorted(missing.items())]
    rows += [
        [f"{r.dataset}-{r.learner}", f"{r.rule}, {r.average}", r.status]
        for r in scores.records
        if r.status != OK
    ]
    if len(rows) > 1:
        tables.append(Table("Missing results", rows, []))
    parts = [f"Computed by `{command}`.", ""]
    for title, rows, notes in tables:
        lines = ["| " + " | ".join(c.replace("|", "\\|") for c in row) + " |" for row in rows]
        lines.insert(1, "|---|" + "--:|" * (len(rows[0]) - 1))
        parts += [f"## {title}", "", *lines, ""]
        for note in notes:
            parts += [note, ""]
    return "\n".join(parts)


def draw(scores: Scores) -> Any:
    """Draw mean ranks, and differences of F1 from FDecider on all pairs."""
    averages = [a for a in AVERAGES if scores.ranked(scores.groups[-1], a, False).shape[1]]
    figure = new_figure(7.2, 1.9 * len(averages) + 0.6)
    axes = figure.subplots(len(averages), 2, squeeze=False, sharex="col", sharey="row")
    markers = dict(zip(GROUPS, "osD", strict=True))
    for (left, right), average in zip(axes, averages, strict=True):
        for group in scores.groups:
            ranks = scores.ranked(group, average, False).dropna().rank(axis=1, ascending=False)
            left.plot(
                ranks.mean(), -np.arange(ranks.shape[1]), markers[group], color=_COLOURS[average],
                markerfacecolor="none" if group != "all" else None, markersize=5, linestyle="",
                label=group,
            )  # fmt: skip
        rules = list(ranks)
        left.set_yticks(-np.arange(len(rules)), rules)
        left.set_ylabel(average, fontsize=9)
        right.axvline(0.0, color="#000000", linewidth=0.8)
        f1 = scores.matrix(scores.groups[-1], average)
        for place, rule in enumerate(rules):
            if rule == FDECIDER or FDECIDER not in f1:
                continue
            d = (f1[FDECIDER] - f1[rule]).dropna()
            right.plot(
                d, -place + np.linspace(-0.25, 0.25, len(d)), ".", color="#999999", markersize=3
            )
            right.plot([d.mean()], [-place], "|", color=_COLOURS[average], markersize=14)
        right.set_xscale("symlog", linthresh=0.1)
        right.set_xticks(_TICKS, [f"{tick:g}" for tick in _TICKS])
        for ax in (left, right):
            ax.tick_params(labelsize=8)
            ax.grid(True, axis="x", color="#E5E5E5", linewidth=0.6)
            ax.set_axisbelow(True)
    axes[-1, 0].set_xlabel("mean rank", fontsize=9)
    axes[-1, 1].set_xlabel("F1 of FDecider minus F1 of the rule", fontsize=9)
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=3, fontsize=8, frameon=False)
    return figure


def write_report(
    folder: Path, scores: Scores, missing: dict[str, str], command: str
) -> list[Path]:
    """Write ``results.csv``, ``table.md`` and ``deciders.png``."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = pd.DataFrame(scores.records, columns=Record._fields)
    texts = {
        "results.csv": rows.to_csv(index=False, float_format="%.6g", na_rep="nan"),
        "table.md": format_markdown(scores, missing, command),
    }
    for name, text in texts.items():
        with atomic_file(folder / name) as file:
            file.write(text.encode())
    if len(scores.ok):
        with atomic_file(folder / "deciders.png") as file:
            draw(scores).savefig(file, format="png", dpi=150)
    return sorted(folder.iterdir())
