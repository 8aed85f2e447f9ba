"""The kind of each column of a table: how it is encoded."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from fgfm._utils.text import quoted
from fgfm.data._dates import find_date_format
from fgfm.data._label_columns import are_binary_words
from fgfm.data._table import Table

__all__ = ["find_kinds"]

_MANY = 20  # rows from which a value of its own in each row makes an identifier
_WORD = re.compile(r"\b[^\W\d_]{2,}\b")  # letters only: part numbers and hashes have none
_LONG = 8  # words per text from which repeated texts are free text too
_SAMPLE = 1000  # distinct texts in which words are counted
_ID_NAME = re.compile(r"(?i:(?:^|[\W_])(?:id|ids|idx|index|key|row|uid|uuid|guid)$)|[a-z]I[dD]$")


def find_kinds(table: Table, given: Mapping[str, str], *, identifiers: bool) -> dict[int, str]:
    """Return the kind of each column that is not a number.

    Texts are boolean if they are no and yes or the like, dates if all of them are, and a category
    if they are repeated: if there are at most half as many different texts as rows. Other texts
    are free text if they consist of words. Texts without words, one for nearly each row, are
    identifiers. So are integers, one for each row, if they number the rows or are called so; if
    `identifiers` is False, they are categories and numbers. The kinds of some columns are `given`.
    """
    names = () if table.names is None else table.names
    kinds = {j: _kind_of_texts(table, j, texts) for j, texts in table.categories.items()}
    if not identifiers:
        kinds = {j: "category" if kind == "identifier" else kind for j, kind in kinds.items()}
    elif table.names is not None and not table.is_typed and not sparse.issparse(table.matrix):
        for j, name in enumerate(names):
            if j not in kinds and _numbers_rows(table.matrix[:, j], name):
                kinds[j] = "identifier"
    for j, name in enumerate(names):
        kind = given.get(name)
        if kind == "number":
            _check_numbers(table, j)
            if kinds.get(j) != "boolean":
                kinds.pop(j, None)
        elif kind is not None and j in table.categories:
            kinds[j] = kind
    return dict(sorted(kinds.items()))


def _kind_of_texts(table: Table, j: int, texts: Sequence[str]) -> str:
    if are_binary_words(texts):
        return "boolean"
    codes = table.column(j)
    present = codes[~np.isnan(codes)]
    rows, texts = len(present), [texts[int(code)] for code in np.unique(present)]
    if not texts:
        return "category"
    if len(texts) > 1 and find_date_format(texts) is not None:
        return "date"
    sample = texts[:: 1 + len(texts) // _SAMPLE]
    words = sum(len(_WORD.findall(text)) for text in sample) / len(sample)
    if words >= _LONG and len(texts) > 2:
        return "text"
    if rows < _MANY or len(texts) <= rows / 2:
        return "category"
    if words >= 1.5:
        return "text"
    return "identifier" if len(texts) > 0.9 * rows else "category"


def _numbers_rows(values: Any, name: str) -> bool:
    """Return True if a column has an integer for each row that is only its name or number."""
    n = len(values)
    for part in (values[:_MANY], values):  # the first rows exclude most columns
        if n < _MANY or (part != np.floor(part)).any() or len(np.unique(part)) < len(part):
            return False  # a missing value is not equal to itself
    ascending = bool((np.diff(values) > 0).all())
    return ascending or np.ptp(values) < 2 * n or _ID_NAME.search(name) is not None


def _check_numbers(table: Table, j: int) -> None:
    """Raise if a column that was declared to have numbers has texts."""
    texts = table.categories.get(j, ())
    if texts and not are_binary_words(texts):
        codes = table.column(j)
        row = int(np.argmax(~np.isnan(codes)))
        text = texts[int(codes[row])]
        raise table.error(f"{quoted(text)} is not a number", row, j, ["number"])
