"""The columns of a table by their kinds: numbers, days, and categories and texts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm._utils.text import quoted
from fgfm.data._dates import find_date_format, parse_date
from fgfm.data._label_columns import BINARY_WORDS
from fgfm.data._table import Table, decoded, texts_and_codes

__all__ = ["ColumnKinds", "TypedColumns"]

# Codes with leading zeros, such as 01234, are not numbers.
_NUMBER = re.compile(r"[+-]?(?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,4})?")


class TypedColumns(NamedTuple):
    """The columns of a table, grouped by how they are encoded."""

    numbers: Any  # (n, k) numbers and booleans, dense or CSR, NaN if missing
    days: npt.NDArray[np.float64]  # (n, d) dates, in days from 1970, NaN if missing
    texts: npt.NDArray[Any]  # (n, q) categories, None if missing, and texts


@dataclass(frozen=True)
class ColumnKinds:
    """The kinds of p columns."""

    p: int
    kinds: Mapping[int, str]  # of the columns that are not numbers, by position
    date_formats: Mapping[int, str] = field(default_factory=dict)  # of each column of dates
    numeric: Sequence[int] = ()  # the columns of categories that are all numbers

    @classmethod
    def of_table(cls, table: Table, kinds: Mapping[int, str]) -> ColumnKinds:
        """Find the notation of dates and of categories in the table of training."""
        formats = {j: _date_format(table, j) for j, kind in kinds.items() if kind == "date"}
        numeric = [
            j
            for j, kind in kinds.items()
            if kind == "category" and all(map(_NUMBER.fullmatch, table.categories[j]))
        ]
        return cls(table.matrix.shape[1], kinds, formats, numeric)

    def of_kind(self, *kinds: str) -> list[int]:
        """Return the columns of some kinds other than numbers."""
        return [j for j, kind in self.kinds.items() if kind in kinds]

    @property
    def numbers(self) -> npt.NDArray[np.int64]:
        """The columns of numbers and booleans."""
        is_number = np.ones(self.p, dtype=bool)
        is_number[[j for j, kind in self.kinds.items() if kind != "boolean"]] = False
        return np.flatnonzero(is_number)

    def typed(self, table: Table) -> TypedColumns:
        """Return the columns of a table that has these columns in this order."""
        n = table.matrix.shape[0]
        days = np.full((n, len(self.date_formats)), np.nan)  # (n, d)
        for k, (j, format) in enumerate(self.date_formats.items()):
            days[:, k] = _days(table, j, format)
        order = self.of_kind("category", "text")
        texts = np.empty((n, len(order)), dtype=object)  # (n, q)
        for k, j in enumerate(order):
            values = [*self.categories(table, j), "" if self.kinds[j] == "text" else None]
            codes = texts_and_codes(table, j)[1]
            at = np.where(np.isnan(codes), -1, codes).astype(np.intp)
            texts[:, k] = np.array(values, dtype=object)[at]
        booleans = {j: _booleans(table, j) for j in self.of_kind("boolean")}
        if booleans:
            table = table.with_columns(booleans, table.categories)
        matrix = table.matrix[:, self.numbers] if self.kinds else table.matrix
        return TypedColumns(matrix, days, texts)

    def categories(self, table: Table, j: int) -> Sequence[str]:
        """Return the different texts of a column; numbers in one notation if all were numbers."""
        texts = texts_and_codes(table, j)[0]
        return list(map(_plain_number, texts)) if j in self.numeric else texts


def _exact_number(text: str) -> Decimal | None:
    """Return the number in a text without rounding, None if it is not a number."""
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def _plain_number(text: str) -> str:
    """Return a number in one notation; other texts are unchanged."""
    number = _exact_number(text)
    return text if number is None else str(number.normalize() + 0)


def _booleans(table: Table, j: int) -> npt.NDArray[np.float64]:
    """Return a column of words for 0 and 1 as numbers."""
    texts, codes = texts_and_codes(table, j)
    values = [BINARY_WORDS.get(text.lower(), _exact_number(text)) for text in texts]
    for code, value in enumerate(values):
        if value not in (0, 1):
            raise table.error(
                f"{quoted(texts[code])} is neither 0 nor 1: in training this column had no and "
                "yes, or false and true",
                int(np.argmax(codes == code)),
                j,
            )
    return decoded(codes, values)


def _days(table: Table, j: int, format: str) -> npt.NDArray[np.float64]:
    """Return a column of dates as days from 1970."""
    texts, codes = texts_and_codes(table, j)
    days = [parse_date(text, format) for text in texts]
    if None in days:
        wrong = days.index(None)
        notation = "1999-12-31" if format == "iso" else format
        raise table.error(
            f"{quoted(texts[wrong])} is not a date in the notation of training, {notation}",
            int(np.argmax(codes == wrong)),
            j,
        )
    return decoded(codes, days)


def _date_format(table: Table, j: int) -> str:
    """Return the notation of a column of dates in training."""
    texts = table.categories[j]
    format = find_date_format(texts)
    if format is not None:
        return format
    found = [find_date_format([text]) for text in texts]
    wrong = found.index(None) if None in found else 0
    raise table.error(
        f"{quoted(texts[wrong])}: a column of dates must have one notation, such as 1999-12-31",
        int(np.argmax(table.column(j) == wrong)),
        j,
        ["date"],
    )
