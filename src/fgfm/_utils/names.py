"""Names of rows and columns: those of two tables must be the same, in the same order.

Names of columns are compared by one rule everywhere. Two names are the same if they are equal, or
if their texts are (polars has no other names) and no two names of a table have the same text.
Numbers 0 to m - 1 are what pandas calls columns without names, and ``column_0`` and so on what
polars calls them: such columns are matched by position, unless the other table has the same
numbers in another order. All other differences are errors; columns are never reordered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm._utils.rows import frame_library

Names = npt.NDArray[Any]  # of objects
AnyNames = Names | Sequence[Any]


def column_names(table: Any) -> Names | None:
    """Return the column names (m,) of a data frame, and None for anything else."""
    if not hasattr(table, "columns"):
        return None
    names = np.empty(len(table.columns), dtype=object)
    names[:] = list(table.columns)
    return names


def is_unnamed(names: AnyNames) -> bool:
    """Return True for the names that a library gives to columns without names."""
    return all(isinstance(name, int) and name == j for j, name in enumerate(_numbers(names)))


def known_names(*tables: Names | None) -> Names | None:
    """Return the first names that no library has made up, else the first names at all."""
    named = [names for names in tables if names is not None]
    return next((names for names in named if not is_unnamed(names)), named[0] if named else None)


def check_same_names(names: Names | None, expected: Names | None, table: str, beside: str) -> None:
    """Raise if the columns of two tables, as many in both, have other names or another order.

    Parameters
    ----------
    names, expected : ndarray or None
        Names of the columns; None if there are none, and nothing to compare.
    table, beside : str
        What the tables are called in the message.

    Examples
    --------
    >>> numbers, names = np.array([0, 1], dtype=object), np.array(["a", "b"], dtype=object)
    >>> check_same_names(numbers, names, "X", "y")
    >>> check_same_names(numbers, numbers[::-1], "X", "y")
    Traceback (most recent call last):
        ...
    ValueError: column 0 of X is 0 and that of y is 1: both must have the same names, in the s...
    """
    if names is None or expected is None or len(names) != len(expected):
        return
    one, other = _numbers(names), _numbers(expected)
    column = _first_difference(one, other)
    by_position = is_unnamed(names) or is_unnamed(expected)
    if column is None or (by_position and {*map(str, one)} != {*map(str, other)}):
        return
    raise ValueError(
        f"column {column} of {table} is {names[column]!r} and that of {beside} is "
        f"{expected[column]!r}: both must have the same names, in the same order"
    )


def check_same_index(**tables: Any) -> None:
    """Raise if tables of pandas, by the names of their arguments, have different row names."""
    framed = [(name, t) for name, t in tables.items() if frame_library(t) == "pandas"]
    for name, table in framed[1:]:
        first, beside = framed[0]
        if len(table) != len(beside) or table.index.equals(beside.index):
            continue
        one, other = beside.index.tolist(), table.index.tolist()
        row = _first_difference(one, other)
        if row is not None:
            raise ValueError(
                f"row {row} of {first} has index {one[row]!r} and that of {name} has "
                f"{other[row]!r}: {first} and {name} must have the same rows, in the same order "
                "(if they have, reset the index)"
            )


def _first_difference(one: AnyNames, other: AnyNames) -> int | None:
    """Return the first position at which names differ, None if there is none."""
    texts = [[str(name) for name in names] for names in (one, other)]
    if all(len(set(names)) == len(names) for names in texts):
        one, other = texts
    pairs = enumerate(zip(one, other, strict=True))
    return next((position for position, (a, b) in pairs if a is not b and a != b), None)


def _numbers(names: AnyNames) -> list[Any]:
    """Return names, with those that polars makes up replaced by those that pandas does."""
    of_polars = [f"column_{j}" for j in range(len(names))]
    return [*range(len(names))] if [*map(str, names)] == of_polars else list(names)
