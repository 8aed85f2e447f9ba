"""Tables from columns in memory: data frames, mappings and arrays."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from fgfm._utils.text import quoted
from fgfm.data._errors import DataError
from fgfm.data._label_columns import (
    ColumnRoles,
    add_tag_labels,
    column_roles,
    split_labels,
    split_tags,
)
from fgfm.data._numbers import MISSING, category_name
from fgfm.data._options import ReadOptions
from fgfm.data._table import Table, check_names

__all__ = ["table_from_columns", "table_from_features"]


def table_from_features(X: Any) -> Table:
    """Return features of any type as a table: a data frame, columns by name or a matrix."""
    if isinstance(X, Table):
        return X
    if sparse.issparse(X):
        if X.ndim != 2 or X.dtype.kind not in "fiub":
            raise DataError(
                f"X has dtype {X.dtype} and shape {X.shape}: it must be (n, p) numbers"
            )
        return Table("X", sparse.csr_array(X, dtype=_float_type(X.dtype)))
    if isinstance(X, Mapping) or (hasattr(X, "columns") and hasattr(X, "shape")):
        keys = list(X) if isinstance(X, Mapping) else list(X.columns)
        names = [str(key) for key in keys]
        check_names(names, "X")
        return _coded("X", tuple(names), [X[key] for key in keys], set())
    array = np.asarray(X)
    if array.ndim != 2:
        raise DataError(
            f"X has shape {array.shape}: it must have 2 dimensions (row, feature). Reshape your "
            "data"
        )
    if array.dtype.kind == "c":
        raise DataError(f"X has dtype {array.dtype}. Complex data not supported")
    if array.dtype.kind in "fiub":
        return Table("X", array.astype(_float_type(array.dtype), copy=False))
    return _coded("X", None, list(array.T), set())


def table_from_columns(
    source: str,
    names: list[str],
    columns: Sequence[Any],
    options: ReadOptions,
    roles: ColumnRoles | None = None,
    lines: Any = None,
) -> Table:
    """Return named columns as a table, with the labels among them in Y.

    Columns are arrays of numbers, or lists of texts, label lists and None. `lines` has the line of
    each row of a text file.
    """
    check_names(names, source)
    if not columns or len(columns[0]) == 0:
        raise DataError("there are no rows", source=source)
    dropped, tags, labels, as_texts = roles or column_roles(names, options, source)
    skipped = dropped | ({tags} if tags is not None else set())
    empty = np.full(len(columns[0]), np.nan)
    kept = [empty if j in skipped else column for j, column in enumerate(columns)]
    table = _coded(source, tuple(names), kept, as_texts, lines)
    if labels is not None:
        table = split_labels(table, labels)
    if tags is not None:
        lists = [_tags(cell, options, table, row, tags) for row, cell in enumerate(columns[tags])]
        table = add_tag_labels(lists, table, names[tags], options)
    return table.without({names[j] for j in skipped})


def _tags(cell: Any, options: ReadOptions, table: Table, row: int, column: int) -> list[str]:
    """Return the labels of one row."""
    if _is_missing(cell):
        return []
    if isinstance(cell, str):
        return split_tags(cell, options, lambda reason: table.error(reason, row, column))
    if isinstance(cell, (list, tuple)) and all(isinstance(tag, str) for tag in cell):
        return list(cell)
    raise table.error(f"{quoted(cell)} is not a list of labels", row, column)


def _is_missing(value: Any) -> bool:
    # Comparing pandas.NA gives neither True nor False.
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def _float_type(dtype: Any) -> Any:
    return np.float32 if dtype == np.float32 else np.float64


def _coded(
    source: str,
    names: tuple[str, ...] | None,
    columns: Sequence[Any],
    as_texts: set[int],
    lines: Any = None,
) -> Table:
    """Return columns of numbers, booleans, texts and None as a table."""
    n = len(columns[0]) if columns else 0
    dtypes = [getattr(column, "dtype", None) for column in columns]
    single = any(dtype == np.float32 for dtype in dtypes) and all(
        np.can_cast(dtype, np.float32) for dtype in dtypes if isinstance(dtype, np.dtype)
    )
    matrix = np.full((n, len(columns)), np.nan, np.float32 if single else np.float64)  # (n, p)
    table = Table(source, matrix, names, lines=lines)
    for j, column in enumerate(columns):
        if len(column) != n:
            raise DataError(
                f"there are {len(column)} values and {n} in the first column",
                source=source,
                column=j + 1,
            )
        if getattr(getattr(column, "dtype", None), "kind", "") == "M":
            days = np.asarray(column).astype("datetime64[D]")
            column = np.datetime_as_string(days).astype(object)
            column[np.isnat(days)] = None
        if not isinstance(column, list) and j not in as_texts:
            array = np.asarray(column)
            if array.dtype.kind in "fiub":
                matrix[:, j] = array
                continue
        values = column.tolist() if hasattr(column, "tolist") else list(column)
        if j in as_texts:
            values = [
                category_name(v) if isinstance(v, (int, float)) and v == v else v for v in values
            ]
        _code_column(table, j, values)
    return table


def _code_column(table: Table, j: int, values: Sequence[Any]) -> None:
    """Write the numbers of a column, or the codes of its texts, into the table."""
    texts: dict[str, list[int]] = {}  # the rows of each text
    number_row: int | None = None
    for row, value in enumerate(values):
        if _is_missing(value):
            continue
        if isinstance(value, datetime.date):
            value = str(value)[:10]
        if isinstance(value, str):
            if value.strip().lower() not in MISSING:
                texts.setdefault(value.strip(), []).append(row)
            continue
        try:
            table.matrix[row, j] = float(value)
        except (TypeError, ValueError, OverflowError) as error:
            reason = f"a {type(value).__name__} is neither a number nor a text"
            raise table.error(reason, row, j) from error
        number_row = row if number_row is None else number_row
    if texts and number_row is not None:
        text, rows = next(iter(texts.items()))
        raise table.error(
            f"{quoted(text)} is not a number, and row {number_row} has one: a column must have "
            "either numbers or texts",
            rows[0],
            j,
        )
    if texts:
        table.categories[j] = tuple(sorted(texts))
        for code, text in enumerate(table.categories[j]):
            table.matrix[texts[text], j] = code
