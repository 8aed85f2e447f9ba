"""Small charts as SVG for HTML pages, in the colours of the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from fgfm.cli._html import escape

__all__ = ["Interval", "calibration_chart", "interval_chart"]

_WIDTH = 360.0  # as on a phone; the page enlarges charts where there is room
_LINE = 21.0


class Interval(NamedTuple):
    """An estimate with its standard error, drawn as a dot with a line of two errors each way."""

    name: str
    style: str
    value: float
    standard_error: float


def interval_chart(groups: Sequence[tuple[str, Sequence[Interval]]], title: str) -> str:
    """Draw estimates below each other, in groups with one scale, as SVG.

    The title is for screen readers.
    """
    ends = [x for _, members in groups for m in members for x in _ends(m.value, m.standard_error)]
    low, high, ticks = _scale(min(ends), max(ends))
    left, right = 78.0, _WIDTH - 52.0
    bottom = 4.0 + sum(_LINE * (1.2 + len(members)) for _, members in groups)

    def x(value: float) -> float:
        return left + (right - left) * (value - low) / (high - low)

    parts = []
    for tick in ticks:
        parts.append(_line(x(tick), 0.0, x(tick), bottom, "grid"))
        parts.append(_text(x(tick), bottom + 14.0, f"{tick:.2f}", "middle"))
    y = 0.0
    for name, members in groups:
        y += 1.2 * _LINE
        parts.append(_text(0.0, y - 6.0, name, "start", "group"))
        for member in members:
            y += _LINE
            a, b = _ends(member.value, member.standard_error)
            parts.append(_text(0.0, y - 4.0, member.name, "start"))
            parts.append(_line(x(a), y - 8.0, x(b), y - 8.0, member.style))
            parts.append(_dot(x(member.value), y - 8.0, member.style))
            parts.append(_text(_WIDTH, y - 4.0, f"{member.value:.4f}", "end"))
    return _svg(parts, bottom + 20.0, title)


def calibration_chart(
    expected: Sequence[float], obtained: Sequence[float], errors: Sequence[float], f: str
) -> str:
    """Draw obtained against expected F-measures of groups of rows, as SVG.

    The errors are the standard errors of those that were obtained; `f` is the name of the measure.
    """
    low, _, ticks = _scale(min([*expected, *obtained]), 1.0)
    size, left, top = 270.0, 50.0, 8.0

    def place(share: float) -> float:
        return size * (min(max(share, low), 1.0) - low) / (1.0 - low)

    parts = []
    for tick in ticks:
        at = place(tick)
        parts.append(_line(left + at, top, left + at, top + size, "grid"))
        parts.append(_line(left, top + size - at, left + size, top + size - at, "grid"))
        parts.append(_text(left + at, top + size + 15.0, f"{tick:.1f}", "middle"))
        parts.append(_text(left - 6.0, top + size - at + 4.0, f"{tick:.1f}", "end"))
    parts.append(_line(left, top + size, left + size, top, "diagonal"))
    for e, o, error in zip(expected, obtained, errors, strict=True):
        a, b = (top + size - place(end) for end in _ends(o, error))
        parts.append(_line(left + place(e), a, left + place(e), b, "f_optimal"))
        parts.append(_dot(left + place(e), top + size - place(o), "f_optimal"))
    parts.append(_text(left + size / 2.0, top + size + 32.0, f"expected {f}", "middle"))
    middle = top + size / 2.0
    parts.append(
        f'<text x="12" y="{middle:.1f}" text-anchor="middle" '
        f'transform="rotate(-90 12 {middle:.1f})">{escape(f"obtained {f}")}</text>'
    )
    return _svg(parts, top + size + 40.0, f"Obtained against expected {f} of groups of rows")


def _ends(value: float, standard_error: float) -> tuple[float, float]:
    spread = 0.0 if math.isnan(standard_error) else 2.0 * standard_error
    return value - spread, value + spread


def _scale(low: float, high: float) -> tuple[float, float, list[float]]:
    """Return the ends of an axis in [0, 1] and its ticks, about four of them."""
    low, high = max(low, 0.0), min(high, 1.0)
    step = next(s for s in (0.02, 0.05, 0.1, 0.2, 0.25) if s * 5.0 >= high - low or s == 0.25)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    last = max(last, first + 1)
    return first * step, last * step, [step * k for k in range(first, last + 1)]


def _svg(parts: Sequence[str], height: float, title: str) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH:g} {height:.0f}" role="img" aria-label="{escape(title)}">'
        + "".join(parts)
        + "</svg>"
    )


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{style}"/>'


def _dot(x: float, y: float, style: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" class="{style}"/>'


def _text(x: float, y: float, text: str, anchor: str, style: str = "") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{style}">'
        f"{escape(text)}</text>"
    )
