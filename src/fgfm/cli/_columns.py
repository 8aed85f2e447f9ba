"""The table of columns that ``fgfm fit`` prints."""

from __future__ import annotations

from typing import Any

from fgfm._utils.text import WIDTH, clipped, escaped

__all__ = ["column_lines"]

_MOST_NUMBERS = 8  # columns of numbers that are printed one by one
_MOST = 40  # lines
_KIND = 12  # width of the kind


def column_lines(encoder: Any) -> list[str]:
    """Return a line for each column of a fitted encoder: its name, kind and encoding.

    There are none if all columns are numbers without missing values.
    """
    columns = encoder.summary() if hasattr(encoder, "feature_names_in_") else []
    plain = [column for column in columns if column.becomes == "1 number"]
    if len(plain) == len(columns):
        return []
    if len(plain) > _MOST_NUMBERS:
        columns = [column for column in columns if column not in plain[_MOST_NUMBERS - 1 :]]
    hidden = len(plain) - _MOST_NUMBERS + 1 if len(plain) > _MOST_NUMBERS else 0
    rows = [("column", "kind", "becomes"), *columns[:_MOST]]
    if hidden:
        rows.append((f"{hidden} more", "", "1 number each"))
    if len(columns) > _MOST:
        rows.append((f"{len(columns) - _MOST} more", "", ""))
    longest = max(len(escaped(name)) for name, _, _ in rows)
    width = min(longest, WIDTH - _KIND - 4 - max(len(becomes) for _, _, becomes in rows))
    return [
        f"{clipped(name, width):<{width}}  {kind:<{_KIND}}{becomes}".rstrip()
        for name, kind, becomes in rows
    ]
