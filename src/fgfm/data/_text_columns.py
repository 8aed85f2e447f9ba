"""Columns of texts as 0/1 features."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._utils.text import quoted
from fgfm.data._label_columns import BINARY_WORDS
from fgfm.data._numbers import category_name
from fgfm.data._table import Table, make_csr

__all__ = ["binary_column", "insert_dense", "insert_sparse", "one_hot"]

# Codes with leading zeros, such as 01234, are not numbers.
_NUMBER = re.compile(r"[+-]?(?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,4})?")


def _exact_number(text: str) -> Decimal | None:
    """Return the number in a text without rounding, None if it is not a number."""
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def _texts(table: Table, j: int) -> list[str | None]:
    """Return the texts of a column; numbers are formatted as categories."""
    values = table.column(j)
    texts = table.categories.get(j)
    if texts is None:
        return [None if value != value else category_name(value) for value in values.tolist()]
    return [None if value != value else texts[int(value)] for value in values.tolist()]


def binary_column(table: Table, j: int) -> npt.NDArray[np.float64]:
    """Return a column of words for 0 and 1 as numbers."""
    out = np.zeros(table.matrix.shape[0])  # (n,)
    for row, text in enumerate(_texts(table, j)):
        if text is None:
            continue
        value = BINARY_WORDS.get(text.lower(), _exact_number(text))
        if value not in (0, 1):
            raise table.error(
                f"{quoted(text)} is neither 0 nor 1: in training this column had no and yes, or "
                "false and true",
                row,
                j,
            )
        out[row] = float(value)
    return out


def one_hot(table: Table, j: int, categories: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return one 0/1 column per category; warn about unseen categories."""
    texts = _texts(table, j)
    where: dict[str, int] = {text: k for k, text in enumerate(categories)}
    numbers = {_exact_number(text): k for k, text in enumerate(categories)}
    all_numbers = len(numbers) == len(categories) and None not in numbers
    out = np.zeros((len(texts), len(categories)))
    unseen: dict[str, int] = {}  # the number of rows of each
    for row, text in enumerate(texts):
        if text is None:
            continue
        k = where.get(text)
        if k is None and all_numbers and (value := _exact_number(text)) is not None:
            k = numbers.get(value)
            if k is not None:
                where[text] = k
        if k is None:
            unseen[text] = unseen.get(text, 0) + 1
        else:
            out[row, k] = 1.0
    if unseen:
        table.warn(
            f"{sum(unseen.values())} of {len(texts)} rows have a category that training did not "
            f"have, such as {quoted(next(iter(unseen)))}",
            column=j,
        )
    return out


def _layout(p: int, blocks: dict[int, Any]) -> tuple[npt.NDArray[np.int64], int]:
    """Return the first encoded feature of each of the p columns, and their total width."""
    widths = np.ones(p, dtype=np.int64)
    for j, block in blocks.items():
        widths[j] = block.shape[1]
    return np.cumsum(widths) - widths, int(widths.sum())


def insert_dense(X: npt.NDArray[Any], blocks: dict[int, Any], indicators: Any) -> npt.NDArray[Any]:
    """Return X with some columns replaced by blocks, and with the indicators appended."""
    n, p = X.shape
    starts, width = _layout(p, blocks)
    extra = 0 if indicators is None else indicators.shape[1]
    out = np.empty((n, width + extra), dtype=X.dtype)
    numeric = [j for j in range(p) if j not in blocks]
    out[:, starts[numeric]] = X[:, numeric]
    for j, block in blocks.items():
        out[:, starts[j] : starts[j] + block.shape[1]] = block
    if indicators is not None:
        out[:, width:] = indicators
    return out


def insert_sparse(X: Any, blocks: dict[int, Any], indicators: Any) -> Any:
    """Do the same as `insert_dense` for CSR."""
    n, p = X.shape
    starts, width = _layout(p, blocks)
    coo = X.tocoo()
    numeric = ~np.isin(coo.col, list(blocks))
    rows, columns, data = [coo.row[numeric]], [starts[coo.col[numeric]]], [coo.data[numeric]]
    pieces = [(int(starts[j]), block) for j, block in blocks.items()]
    total = width
    if indicators is not None:
        pieces.append((width, indicators.astype(np.float64)))
        total += indicators.shape[1]
    for start, block in pieces:
        row, column = np.nonzero(block)
        rows.append(row)
        columns.append(start + column)
        data.append(block[row, column])
    at = (np.concatenate(rows), np.concatenate(columns))
    out = sparse.csr_array((np.concatenate(data).astype(X.dtype), at), shape=(n, total))
    return make_csr(out.data, out.indices, out.indptr, (n, total))
