"""Results as tables of at most 80 columns, and as values for JSON."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "Column",
    "Results",
    "Table",
    "Target",
    "count",
    "duration",
    "mebibytes",
    "number",
    "ratio",
    "text",
]

WIDTH = 80


def text(value: Any) -> str:
    """Format a text, or a dash for None."""
    return "-" if value is None else str(value)


def number(value: float | None) -> str:
    """Format a number with one or two digits after the point."""
    if value is None:
        return "-"
    return f"{value:.2f}" if abs(value) < 10.0 else f"{value:,.1f}".replace(",", " ")


def count(value: float | None) -> str:
    """Format a whole number in groups of three digits."""
    return "-" if value is None else f"{value:,.0f}".replace(",", " ")


def ratio(value: float | None) -> str:
    """Format a ratio, rounded down, so that it is not overstated."""
    if value is None:
        return "-"
    if value < 10.0:
        return f"{math.floor(10.0 * value) / 10.0:.1f}x"
    return count(math.floor(value)) + "x"


def duration(seconds: float | None) -> str:
    """Format a time with three digits."""
    if seconds is None:
        return "-"
    units = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
    unit, name = next((u for u in units if seconds >= 0.9995 * u[0]), units[-1])
    value = seconds / unit
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{digits}f} {name}"


def mebibytes(value: float | None) -> str:
    """Format bytes in MiB."""
    return "-" if value is None else f"{value / 2**20:.0f} MiB"


@dataclass
class Column:
    """A column of a table: its name, the format of its values, and their alignment."""

    name: str
    show: Callable[[Any], str] = text
    left: bool = False


@dataclass
class Table:
    """Rows of values under columns."""

    title: str
    columns: Sequence[Column]
    rows: list[Sequence[Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def lines(self) -> Iterable[str]:
        """Return the table as lines of text."""
        heads = [column.name for column in self.columns]
        cells = [
            [column.show(value) for column, value in zip(self.columns, row, strict=True)]
            for row in self.rows
        ]
        widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]

        def line(parts: Sequence[str]) -> str:
            aligned = (
                part.ljust(width) if column.left else part.rjust(width)
                for part, width, column in zip(parts, widths, self.columns, strict=True)
            )
            return "  ".join(aligned).rstrip()

        yield self.title
        yield "-" * min(WIDTH, max(len(self.title), sum(widths) + 2 * (len(widths) - 1)))
        yield line(heads)
        yield from map(line, cells)
        for sentence in self.notes:
            yield from textwrap.wrap(sentence, WIDTH)

    def record(self) -> dict[str, Any]:
        """Return the table as values for JSON."""
        names = [column.name for column in self.columns]
        return {
            "title": self.title,
            "notes": self.notes,
            "rows": [dict(zip(names, row, strict=True)) for row in self.rows],
        }


@dataclass
class Target:
    """A number required by the design, and its measurement."""

    what: str
    ours: float | None
    rival: float | None
    measured: float | None
    goal: float
    at_least: bool
    show: Callable[[Any], str] = ratio
    assessed: bool = True  # False in a quick run

    @property
    def met(self) -> bool | None:
        """Whether the target is met, or None if it was not measured."""
        if self.measured is None or not self.assessed:
            return None
        return self.measured >= self.goal if self.at_least else self.measured <= self.goal

    @property
    def verdict(self) -> str:
        """Whether the target is met, as text."""
        return {True: "yes", False: "MISSED", None: "-"}[self.met]

    @property
    def bound(self) -> str:
        """The goal, as text."""
        unit = "x" if self.show is ratio else ""
        return f"{'>=' if self.at_least else '<='} {self.goal:g}{unit}"


@dataclass
class Results:
    """The tables and targets of a part of the run."""

    tables: list[Table] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)

    def add(self, other: Results) -> None:
        """Append the results of another part."""
        self.tables += other.tables
        self.targets += other.targets

    def target_table(self) -> Table:
        """Return the targets as a table."""
        table = Table(
            "Targets",
            [
                Column("what", left=True),
                Column("ours", duration),
                Column("rival", duration),
                Column("ratio"),
                Column("target"),
                Column("met", left=True),
            ],
        )
        for t in self.targets:
            table.rows.append((t.what, t.ours, t.rival, t.show(t.measured), t.bound, t.verdict))
        return table

    def record(self) -> dict[str, Any]:
        """Return everything as values for JSON."""
        targets = [
            {
                "what": t.what,
                "ours": t.ours,
                "rival": t.rival,
                "measured": t.measured,
                "goal": t.goal,
                "at_least": t.at_least,
                "met": t.met,
            }
            for t in self.targets
        ]
        return {"targets": targets, "tables": [table.record() for table in self.tables]}
