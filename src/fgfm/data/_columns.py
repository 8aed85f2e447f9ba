"""Tables made of columns: data frames, mappings, arrays, and what other libraries read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from fgfm.data._errors import DataError, bad, shown
from fgfm.data._table import (
    Options,
    Table,
    check_names,
    cut_labels,
    dropped,
    positions,
    select_labels,
    split_tags,
    tag_column,
    tag_labels,
)
from fgfm.data._text import MISSING, text_of

__all__ = ["table_of", "table_of_columns"]


def table_of(X: Any) -> Table:
    """Give features of any kind as a table: a data frame, columns by name, a matrix."""
    if isinstance(X, Table):
        return X
    if sparse.issparse(X):
        if X.ndim != 2 or X.dtype.kind not in "fiub":
            raise DataError(
                f"X has dtype {X.dtype} and shape {X.shape}: it must be (n, p) numbers"
            )
        csr = sparse.csr_array(X, dtype=_float_type(X.dtype))
        return Table("X", csr)
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


def table_of_columns(
    source: str, names: list[str], columns: Sequence[Any], options: Options
) -> Table:
    """Make a table of named columns, and find the labels among them."""
    check_names(names, source)
    if not columns or len(columns[0]) == 0:
        raise bad(source, "there are no rows")
    gone = dropped(names, options, source)
    tags = tag_column(names, options, source, any_list=_lists(names, columns, options))
    labels = None if tags is not None else select_labels(names, options, source)
    if labels is not None:
        labels = [j for j in labels if j not in gone]
    texts = set(positions(names, options.categorical, source, "categorical= asks for"))
    remembered = set(getattr(options.encoder, "categorical_names_", ()))
    texts |= {j for j, name in enumerate(names) if name in remembered}
    empty = np.full(len(columns[0]), np.nan)
    skipped = gone | ({tags} if tags is not None else set())
    kept = [empty if j in skipped else column for j, column in enumerate(columns)]
    table = _coded(source, tuple(names), kept, texts - skipped)
    if labels is not None:
        table = cut_labels(table, labels)
    if tags is not None:
        lists = [
            [] if _is_missing(cell) else _tags(cell, options, table, row, tags)
            for row, cell in enumerate(columns[tags])
        ]
        table = tag_labels(lists, table, names[tags], options)
    absent = {names[j] for j in skipped}
    assert table.names is not None
    return table.keep([j for j, name in enumerate(table.names) if name not in absent])


def _lists(names: Sequence[str], columns: Sequence[Any], options: Options) -> bool:
    """Say whether labels= names a column that has lists."""
    if not isinstance(options.labels, str) or options.labels not in names:
        return False
    column = columns[list(names).index(options.labels)]
    return isinstance(column, list) and any(isinstance(cell, list) for cell in column)


def _tags(cell: Any, options: Options, table: Table, row: int, column: int) -> list[str]:
    if isinstance(cell, str):
        return split_tags(cell, options, table.source, table.place(row, column))
    if isinstance(cell, (list, tuple)) and all(isinstance(tag, str) for tag in cell):
        return list(cell)
    raise bad(table.source, f"{shown(cell)} is no list of labels", **table.place(row, column))


def _is_missing(value: Any) -> bool:
    # pandas' own mark is neither true nor false when compared
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def _float_type(dtype: Any) -> Any:
    return np.float32 if dtype == np.float32 else np.float64


def _coded(
    source: str, names: tuple[str, ...] | None, columns: Sequence[Any], as_texts: set[int]
) -> Table:
    """Make a table of columns of numbers, truth values, texts and None."""
    n = len(columns[0]) if columns else 0
    dtypes = [getattr(column, "dtype", None) for column in columns]
    single = any(dtype == np.float32 for dtype in dtypes) and all(
        np.can_cast(dtype, np.float32) for dtype in dtypes if isinstance(dtype, np.dtype)
    )
    matrix = np.full((n, len(columns)), np.nan, np.float32 if single else np.float64)
    table = Table(source, matrix, names)
    for j, column in enumerate(columns):
        if len(column) != n:
            raise bad(
                source, f"there are {len(column)} values and {n} in the first column", column=j + 1
            )
        array = np.asarray(column)
        if array.dtype.kind in "fiub" and j not in as_texts:
            matrix[:, j] = array
            continue
        values = column.tolist() if hasattr(column, "tolist") else list(column)
        if j in as_texts:
            values = [
                text_of(value) if isinstance(value, (int, float)) and value == value else value
                for value in values
            ]
        _code(table, j, values)
    return table


def _code(table: Table, j: int, values: Sequence[Any]) -> None:
    """Write the numbers of a column into the table, or the codes of its texts."""
    texts: dict[str, list[int]] = {}
    number_row: int | None = None
    for row, value in enumerate(values):
        if _is_missing(value):
            continue
        if isinstance(value, str):
            if value.strip().lower() not in MISSING:
                texts.setdefault(value.strip(), []).append(row)
            continue
        try:
            table.matrix[row, j] = float(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise bad(
                table.source,
                f"a {type(value).__name__} is neither a number nor a text",
                **table.place(row, j),
            ) from error
        number_row = row if number_row is None else number_row
    if texts and number_row is not None:
        text, rows = next(iter(texts.items()))
        raise bad(
            table.source,
            f"{shown(text)} is not a number, and row {number_row} has one: a column has numbers "
            "or texts",
            **table.place(rows[0], j),
        )
    if texts:
        table.categories[j] = tuple(sorted(texts))
        for code, text in enumerate(table.categories[j]):
            table.matrix[texts[text], j] = code
