"""Columns of cells as numbers, texts and dates, and what was wrong with them.

A cell that is not what its column holds becomes missing. `Faults` counts such cells, so that a
file gives one warning, or an error where there are many.
"""

from __future__ import annotations

import contextlib
import json
import re
import warnings
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm._utils.text import quoted
from fgfm.io._errors import DataError

# Texts for a missing value, in lower case.
_MISSING = ("", "?", "na", "n/a", "nan", "null", "none")
# Texts for 0 and 1, in lower case.
BINARY_WORDS = {"no": 0.0, "yes": 1.0, "false": 0.0, "true": 1.0}
# Notations of dates that pandas is asked for, in this order: in 3/4/1999 the day comes first.
_DATE_FORMATS = (
    "ISO8601",
    "%Y/%m/%d",
    "%d.%m.%Y",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d-%m-%Y",
    "%d %B %Y",
    "%d %b %Y",
    "%B %d, %Y",
    "%b %d, %Y",
)
_MOST_BAD = 0.05  # of the cells of a column


class Faults:
    """Cells of a file that were replaced by missing values, counted over batches of rows.

    `becomes` says in words what such a cell is taken as; `remedies` are the arguments that declare
    what a column holds.
    """

    def __init__(
        self,
        source: str,
        strict: bool = False,
        decimal: str = ".",
        becomes: str = "missing",
        remedies: tuple[str, ...] = ("category", "text", "drop"),
    ) -> None:
        self.source, self.strict, self.decimal = source, strict, decimal
        self.becomes, self.remedies = becomes, remedies
        self._found: dict[str, tuple[int, str, int]] = {}  # column: first row, its text, count
        self._unseen: dict[str, tuple[str, int]] = {}  # column: an example, count
        self.rows = 0  # before the present batch

    def numbers(self, column: str, cells: Any) -> npt.NDArray[np.float64]:
        """Return the cells of a column as numbers, and count those that are none."""
        values, wrong = as_numbers(cells, self.decimal)
        self.add(column, cells, wrong, "a number")
        return values

    def add(self, column: str, cells: Any, wrong: npt.NDArray[np.bool_], what: str) -> None:
        """Count the cells of a column, among the present rows, that are not `what`."""
        count = int(wrong.sum())
        if not count:
            return
        at = int(np.argmax(wrong))
        reason = f"{quoted(str(cells[at]).strip())} is not {what}"
        if self.strict:
            raise DataError(reason, source=self.source, row=self.rows + at, column=column)
        row, first, before = self._found.get(column, (self.rows + at, reason, 0))
        self._found[column] = (row, first, before + count)

    def add_unseen(self, column: str, values: Any, wrong: npt.NDArray[np.bool_]) -> None:
        """Count the categories of a column that training did not have."""
        if wrong.any():
            example, before = self._unseen.get(column, (str(values[int(np.argmax(wrong))]), 0))
            self._unseen[column] = (example, before + int(wrong.sum()))

    def check(self, rows: int) -> None:
        """Raise if a column of `rows` rows has more than 5 % of such cells."""
        for column, (row, reason, count) in self._found.items():
            # One bad cell does not stop a file, unless there is no other.
            if count > max(1.0, _MOST_BAD * rows) or count == rows:
                more = f", nor are {count - 1} further cells of {rows}" if count > 1 else ""
                decimals = ("decimal",) if re.search(r"'[+-]?\d+,\d+'", reason) else ()
                raise DataError(
                    f"{reason}{more}: declare what the column holds, or leave it out",
                    source=self.source,
                    row=row,
                    column=column,
                    arguments=(*decimals, *self.remedies),
                )

    def next_batch(self, rows: int, check_first: bool) -> None:
        """Go on to the next batch; the first may be checked before its rows are written."""
        if check_first and self.rows == 0:
            self.check(rows)
        self.rows += rows

    def report(self, rows: int) -> None:
        """Warn of the cells found in `rows` rows; raise if a column has more than 5 % of them."""
        self.check(rows)
        if self._found:
            column, (row, reason, _) = min(self._found.items(), key=lambda item: item[1][0])
            count = sum(count for *_, count in self._found.values())
            more = f"; {count - 1} more such cells" if count > 1 else ""
            place = DataError(f"{reason}{more}", source=self.source, row=row, column=column)
            noun = "It is" if count == 1 else "They are"
            warnings.warn(f"{place}. {noun} taken as {self.becomes}", UserWarning, stacklevel=3)
        for column, (example, count) in self._unseen.items():
            error = DataError(
                f"{count} of {rows} rows have a category that training did not have, such as "
                f"{quoted(example)}",
                source=self.source,
                column=column,
            )
            warnings.warn(str(error), UserWarning, stacklevel=3)


def as_array(values: Any) -> Any:
    """Return values as an array of pyarrow; those of several types become strings."""
    import pandas as pd
    import pyarrow as pa

    def as_text(value: Any) -> str | None:
        if isinstance(value, (list, dict)):
            return json.dumps(value)
        return None if np.ndim(value) == 0 and pd.isna(value) else str(value)

    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array(map(as_text, values), pa.string())


def as_numbers(
    column: Any, decimal: str = "."
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Return an array of pyarrow as numbers, and where a cell is a text that is no number.

    Such cells and missing ones are NaN. Durations and times of day are seconds; types that have no
    numbers raise pyarrow's error.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    column, kind = _decoded(column)
    wrong = np.zeros(len(column), dtype=np.bool_)
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    if pa.types.is_duration(kind) or pa.types.is_time(kind):
        unit = pa.duration("us") if pa.types.is_duration(kind) else pa.time64("us")
        seconds = column.cast(unit, safe=False).cast(pa.int64()).cast(pa.float64(), safe=False)
        return _to_numpy(seconds) / 1e6, wrong
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        if pa.types.is_nested(kind) or pa.types.is_temporal(kind) or pa.types.is_binary(kind):
            raise pa.ArrowInvalid(f"values of type {kind} are not numbers")
        return _to_numpy(column.cast(pa.float64(), safe=False)), wrong
    if decimal != ".":
        column = pc.replace_substring(column, decimal, ".")
    for blank in (False, True):  # cells that say that they are missing take time
        if blank:
            column = _without_blanks(column)
        with contextlib.suppress(pa.ArrowInvalid):
            return _to_numpy(column.cast(pa.float64())), wrong
    import pandas as pd

    texts = column.to_pandas()
    words = texts.str.lower().map(BINARY_WORDS)
    values = pd.to_numeric(texts, errors="coerce").fillna(words).to_numpy(np.float64)
    return np.asarray(values), np.isnan(values) & texts.notna().to_numpy()


def _to_numpy(column: Any) -> npt.NDArray[np.float64]:
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def _decoded(column: Any) -> tuple[Any, Any]:
    """Return a column without a dictionary or string views, and its type."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    return column, column.type


def _without_blanks(column: Any) -> Any:
    """Return trimmed texts of pyarrow, null where one stands for a missing value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = pc.utf8_trim_whitespace(column)
    missing = pc.is_in(pc.utf8_lower(column), value_set=pa.array(_MISSING, column.type))
    return pc.if_else(missing, pa.scalar(None, column.type), column)


def as_texts(column: Any) -> npt.NDArray[Any]:
    """Return an array of pyarrow as texts of dtype object, None where one is missing."""
    import pyarrow as pa

    column, kind = _decoded(column)
    if pa.types.is_floating(kind) or pa.types.is_temporal(kind) or pa.types.is_nested(kind):
        # 1.0 is 1, as if it had been an integer
        texts = [
            None if v is None or v != v else str(v).removesuffix(".0") for v in column.to_pylist()
        ]
        return np.array(texts, dtype=object)
    return np.asarray(_without_blanks(column.cast(pa.string())).to_numpy(zero_copy_only=False))


def as_days(texts: npt.NDArray[Any], format: str) -> npt.NDArray[np.float64]:
    """Return dates as days from 1970, NaN where one is missing or in another notation."""
    import pandas as pd

    cells = pd.Series(texts, dtype=object)
    if format == "ISO8601":  # pandas reads -1 as the first day of a year
        cells = cells.where([isinstance(t, str) and t[:4].isdigit() for t in texts], None)
    found = pd.to_datetime(cells, format=format, errors="coerce", utc=True)
    days = found.dt.tz_localize(None).to_numpy().astype("datetime64[D]")  # also 9999-12-31
    if found.dt.unit == "ns":  # pandas 2, which reads the years 1678 to 2261 only
        for i in np.flatnonzero(found.isna() & cells.notna()):
            with contextlib.suppress(ValueError, OverflowError):  # it stays missing
                date = _read_date(cells[i], format)
                days[i] = (date - (date.utcoffset() or timedelta())).date()
    return np.where(np.isnat(days), np.nan, days.astype(np.int64).astype(np.float64))


def _read_date(text: str, format: str) -> datetime:
    """Return a date of any year from 1 to 9999, or raise ValueError."""
    if format == "ISO8601":
        return datetime.fromisoformat(text)
    return datetime.strptime(text, format)


def date_format(texts: npt.NDArray[Any]) -> str | None:
    """Return the notation that nearly all of some different texts have, None if there is none."""
    for format in _DATE_FORMATS:
        days = as_days(texts, format)
        if np.isnan(days).sum() <= _MOST_BAD * len(texts):
            return format
    return None
