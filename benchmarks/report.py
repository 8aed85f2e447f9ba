"""Results as tables of text."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

WIDTH = 80


def number(value: float) -> str:
    """Format a number with one or two digits after the point."""
    return f"{value:.2f}" if abs(value) < 10.0 else f"{value:,.1f}".replace(",", " ")


def count(value: float) -> str:
    """Format a whole number in groups of three digits."""
    return f"{value:,.0f}".replace(",", " ")


def ratio(value: float) -> str:
    """Format a ratio, rounded down, so that it is not overstated."""
    if value < 10.0:
        return f"{math.floor(10.0 * value) / 10.0:.1f}x"
    return count(math.floor(value)) + "x"


def duration(seconds: float) -> str:
    """Format a time with three digits."""
    units = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
    unit, name = next((u for u in units if seconds >= 0.9995 * u[0]), units[-1])
    value = seconds / unit
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{digits}f} {name}"


FORMATS = {
    "left": str,
    "text": str,
    "number": number,
    "count": count,
    "ratio": ratio,
    "duration": duration,
    "MiB": lambda value: f"{value / 2**20:.0f} MiB",
    "percent": lambda value: f"{100.0 * value:.1f} %",
    "tiny": lambda value: f"{value:.0e}" if value else "0",
}


def show(value: Any, kind: str) -> str:
    """Format a value by a name of `FORMATS` or a format specification; None as a dash."""
    if value is None:
        return "-"
    return FORMATS[kind](value) if kind in FORMATS else format(value, kind)


@dataclass
class Table:
    """Rows of values under columns.

    `columns` are names with formats, as in "rows: left; m: count; difference: +.3f".
    """

    title: str
    columns: str
    rows: list[Sequence[Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, *values: Any) -> None:
        """Append a row."""
        self.rows.append(values)

    def lines(self) -> Iterator[str]:
        """Return the table as lines of text."""
        columns = [column.rpartition(": ") for column in self.columns.split("; ")]
        heads, kinds = [name for name, _, _ in columns], [kind for _, _, kind in columns]
        cells = [[show(*pair) for pair in zip(row, kinds, strict=True)] for row in self.rows]
        widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
        yield self.title
        yield "-" * min(WIDTH, max(len(self.title), sum(widths) + 2 * (len(widths) - 1)))
        for row in (heads, *cells):
            aligned = (
                part.ljust(width) if kind == "left" else part.rjust(width)
                for part, width, kind in zip(row, widths, kinds, strict=True)
            )
            yield "  ".join(aligned).rstrip()
        for sentence in self.notes:
            yield from textwrap.wrap(sentence, WIDTH)


def print_tables(tables: Iterable[Table]) -> None:
    """Print tables, each with an empty line below."""
    for table in tables:
        print("\n".join(table.lines()), end="\n\n", flush=True)


class Target(NamedTuple):
    """A number required by the design, and its measurement."""

    what: str
    ours: float | None
    rival: float | None
    measured: float | None
    goal: float
    at_least: bool
    kind: str = "ratio"

    def row(self, assessed: bool) -> tuple[Any, ...]:
        """Return the target as a row of a table; not `assessed` in a quick run."""
        bound = f"{'>=' if self.at_least else '<='} {self.goal:g}" + "x" * (self.kind == "ratio")
        verdict = None
        if self.measured is not None and assessed:
            met = self.measured >= self.goal if self.at_least else self.measured <= self.goal
            verdict = "yes" if met else "MISSED"
        return self.what, self.ours, self.rival, show(self.measured, self.kind), bound, verdict


@dataclass
class Results:
    """The tables and targets of a part of the run."""

    tables: list[Table] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)

    def add(self, other: Results) -> None:
        """Append the results of another part."""
        self.tables += other.tables
        self.targets += other.targets

    def at_least(self, what: str, ours: float, rival: float | None, goal: float) -> None:
        """Append a target for the time of a rival, as a multiple of ours."""
        ratio = rival / ours if rival else None
        self.targets.append(Target(what, ours, rival, ratio, goal, at_least=True))

    def at_most(self, what: str, ours: float, unit: float, goal: float) -> None:
        """Append a target for our time, as a multiple of another one."""
        self.targets.append(Target(what, ours, unit, ours / unit, goal, False, "number"))

    def target_table(self, assessed: bool = True) -> Table:
        """Return the targets as a table."""
        columns = (
            "what: left; ours: duration; rival: duration; ratio: text; target: text; met: left"
        )
        return Table("Targets", columns, [target.row(assessed) for target in self.targets])
