"""The one error of bad files, and the sentence that it brings."""

from __future__ import annotations

import os

__all__ = ["DataError", "bad", "shown"]


class DataError(ValueError):
    """A file does not hold the data that it should: the message says where, and the rule."""


def bad(
    source: str | os.PathLike[str],
    sentence: str,
    *,
    line: int | None = None,
    row: int | None = None,
    column: str | int | None = None,
) -> DataError:
    """Make the error: the file, the place in it, and what is wrong there.

    Parameters
    ----------
    source : str or path-like
        The file.
    sentence : str
        What is wrong, and the rule.
    line : int, optional
        The line, from 1.
    row : int, optional
        The row, from 0, of a file that has no lines.
    column : str or int, optional
        The name of the column, or its number from 1.

    Returns
    -------
    DataError
        The error, to be raised.

    Examples
    --------
    >>> bad("a.csv", "'x' is not a number", line=3, column="age")
    DataError("a.csv, line 3, column 'age': 'x' is not a number")
    """
    place = os.fspath(source)
    if line is not None:
        place += f", line {line}"
    elif row is not None:
        place += f", row {row}"
    if column is not None:
        place += f", column {shown(column) if isinstance(column, str) else column}"
    return DataError(f"{place}: {sentence}")


def shown(text: object, length: int = 60) -> str:
    """Quote what a file holds, cut where it is long.

    Examples
    --------
    >>> shown("ab" * 50, length=10)
    "'ababababab'..."
    """
    text = str(text)
    return repr(text) if len(text) <= length else f"{text[:length]!r}..."
