"""The kind of a column of a table, found from its values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm._utils.text import quoted
from fgfm.io._cells import as_numbers, as_texts, date_format
from fgfm.io._errors import DataError

MANY = 20  # rows from which a different value in each row makes an identifier
_LONG = 8.0  # tokens per text from which repeated texts are free text too
_SAMPLE = 1000  # distinct texts in which tokens are counted
_TOKEN = re.compile(r"\w\w+")
ID_NAME = re.compile(r"(?i:(?:^|[\W_])(?:id|ids|idx|index|key|row|uid|uuid|guid)$)|[a-z]I[dD]$")
_OTHER_NUMBER = re.compile(
    r"[+-]?[$€£]? ?(?:[0-9]+|[0-9]+[.,][0-9]+|[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?) ?[%$€£]?"
)
_LETTER = re.compile(r"[^\W\d_]")


def count_tokens(texts: Sequence[str]) -> tuple[float, bool]:
    """Return the number of tokens per text, and whether long texts have spaces."""
    sample = [text for text in texts[:: 1 + len(texts) // _SAMPLE] if text]
    if not sample:
        return 0.0, True
    spaces = sum(" " in text for text in sample)
    return sum(len(_TOKEN.findall(t)) for t in sample) / len(sample), spaces >= 0.1 * len(sample)


def find_kind(column: Any, name: str | None, decimal: str = ".") -> str:
    """Return the kind of a column of pyarrow; without a name it is no identifier."""
    import pyarrow as pa

    types = pa.types
    if types.is_temporal(column.type):
        is_date = types.is_timestamp(column.type) or types.is_date(column.type)
        return "date" if is_date else "number"
    if types.is_dictionary(column.type):
        return "category"
    try:
        values, wrong = as_numbers(column, decimal)
        if wrong.sum() <= 0.05 * (~np.isnan(values) | wrong).sum():
            is_id = name is not None and _numbers_rows(values, name)
            return "identifier" if is_id else "number"
    except pa.ArrowInvalid:
        if types.is_nested(column.type) or types.is_binary(column.type):
            return "identifier"
    return _kind_of_texts(as_texts(column))


def _kind_of_texts(cells: npt.NDArray[Any]) -> str:
    texts = [text for text in cells.tolist() if text is not None]
    rows, different = len(texts), list(dict.fromkeys(texts))
    if not texts:
        return "category"
    if len(different) > 1 and date_format(np.array(different, dtype=object)) is not None:
        return "date"
    tokens, _ = count_tokens(different)
    if tokens >= _LONG and len(different) > 2:
        return "text"
    if rows < MANY or len(different) <= rows / 2:
        return "category"
    sample = different[:: 1 + len(different) // _SAMPLE]
    codes = sum(
        t.isascii() and " " not in t and any(c.isdigit() for c in t) for t in sample
    ) / len(sample)
    if codes > 0.9 or not any(_LETTER.search(text) for text in sample):
        return "identifier" if len(different) > 0.9 * rows else "category"
    return "text"


def check_notation(column: Any, name: str, source: str) -> None:
    """Raise if a column has numbers in a notation that is not read: 0,5 or 1,500 or 5 % or $5."""
    texts = as_texts(column).tolist()
    if not all(text is None or _OTHER_NUMBER.fullmatch(text) for text in texts):
        return
    odd = next((text for text in texts if text and not text.isdecimal()), None)
    if odd is not None:
        raise DataError(
            f"{quoted(odd)} is not a number, although the column looks like one: numbers are "
            "written as 1234.5, or with a decimal comma",
            source=source,
            row=texts.index(odd),
            column=name,
            arguments=["decimal", "category"],
        )


def _numbers_rows(values: npt.NDArray[np.float64], name: str) -> bool:
    """Return True if a column has an integer for each row that is only its name or number."""
    n = len(values)
    for part in (values[:MANY], values):  # the first rows exclude most columns
        if n < MANY or (part != np.floor(part)).any() or len(np.unique(part)) < len(part):
            return False  # a missing value is not equal to itself
    ascending = bool((np.diff(values) > 0).all())
    return ascending or bool(np.ptp(values) < 2 * n) or ID_NAME.search(name) is not None
