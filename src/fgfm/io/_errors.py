"""The exception raised for malformed data."""

from __future__ import annotations

import os
from collections.abc import Sequence

from fgfm._utils.text import quoted


class DataError(ValueError):
    """Raised when a file or a table does not hold valid data.

    The message names the file, the place in it, the fault and the rule.

    Parameters
    ----------
    reason : str
        The fault, and the rule that it breaks.
    source : str or path-like, optional
        The file.
    line : int, optional
        The line of a text file, from 1.
    row : int, optional
        The row of a table, from 0.
    column : str or int, optional
        The name of the column.
    arguments : sequence of str, optional
        The arguments of `load` that may have to be changed.

    Examples
    --------
    >>> from fgfm.io import DataError
    >>> error = DataError("'x' is not a number", source="a.csv", row=3, column="age")
    >>> print(error)
    a.csv, row 3, column 'age': 'x' is not a number
    >>> error.row, error.column
    (3, 'age')
    """

    def __init__(
        self,
        reason: str,
        *,
        source: str | os.PathLike[str] | None = None,
        line: int | None = None,
        row: int | None = None,
        column: str | int | None = None,
        arguments: Sequence[str] = (),
    ) -> None:
        super().__init__(reason)  # pickle calls cls(reason) and restores the other attributes
        self.reason = reason
        self.source = None if source is None else os.fspath(source)
        self.line, self.row, self.column = line, row, column
        self.arguments = tuple(arguments)

    @property
    def place(self) -> str:
        """The file, the line or row and the column, as far as they are given."""
        parts = [
            self.source,
            None if self.line is None else f"line {self.line}",
            None if self.row is None else f"row {self.row}",
            None if self.column is None else f"column {quoted(self.column)}",
        ]
        return ", ".join(part for part in parts if part is not None)

    def __str__(self) -> str:
        message = f"{self.place}: {self.reason}" if self.place else self.reason
        if not self.arguments:
            return message
        noun = "argument" if len(self.arguments) == 1 else "arguments"
        return f"{message} ({noun}: {', '.join(self.arguments)})"
