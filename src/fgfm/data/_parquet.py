"""Parquet, read and written with pyarrow; the metadata declare the label columns."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from fgfm._utils.atomic import atomic_file
from fgfm._utils.optional import import_optional
from fgfm._utils.text import one_line
from fgfm.data._errors import DataError
from fgfm.data._frames import table_from_columns
from fgfm.data._label_columns import column_roles
from fgfm.data._options import ReadOptions
from fgfm.data._table import Table, check_names
from fgfm.data._text_table import RowBlock

__all__ = [
    "ParquetTable",
    "is_number",
    "open_parquet",
    "read_parquet_blocks",
    "rows_per_block",
    "write_parquet",
]

_LABELS_KEY = b"fgfm.labels"  # of the metadata
# Tests of pyarrow.types; some are not in all versions.
_NUMBERS = ("is_floating", "is_integer", "is_boolean", "is_decimal")
_TEXTS = ("is_string", "is_large_string", "is_string_view")
_LISTS = ("is_list", "is_large_list", "is_fixed_size_list", "is_list_view", "is_large_list_view")
_LONGEST_ERROR = 200  # characters of pyarrow's messages
_BLOCK_ROWS = 1 << 16
_BLOCK_NUMBERS = 1 << 21


def _import_pyarrow(purpose: str) -> tuple[Any, Any]:
    return (
        import_optional("pyarrow", purpose, "data"),
        import_optional("pyarrow.parquet", purpose, "data"),
    )


@contextmanager
def _damage(source: str) -> Iterator[None]:
    """Raise `DataError` for errors of pyarrow, which are of many types for damaged files."""
    try:
        yield
    except (ImportError, DataError):
        raise
    except Exception as error:
        raise DataError(
            "this is not a Parquet file, or it is damaged: " + one_line(error, _LONGEST_ERROR),
            source=source,
        ) from error


def rows_per_block(columns: int) -> int:
    """Return the number of rows that are held in memory at a time."""
    return max(1, min(_BLOCK_ROWS, _BLOCK_NUMBERS // max(1, columns)))


class ParquetTable:
    """An open Parquet file, to be read in blocks of rows."""

    line = None  # of the names

    def __init__(self, file: Any, source: str) -> None:
        self._file, self.source = file, source
        self.schema = file.schema_arrow
        self.names = [str(name) for name in self.schema.names]

    def blocks(
        self, texts: Collection[int] = (), skipped: Collection[int] = ()
    ) -> Iterator[RowBlock]:
        """Yield the rows, with NaN in the columns to skip; `texts` are returned as they are."""
        pyarrow, _ = _import_pyarrow("reading Parquet")
        kept = sorted(set(range(len(self.names))) - set(skipped))
        types = {j: self.schema.field(j).type for j in kept}
        numbers = [j for j in kept if j not in texts and is_number(pyarrow.types, types[j])]
        single = {types[j] for j in numbers} <= {pyarrow.float32(), pyarrow.float16()}
        dtype = np.float32 if single and numbers else np.float64
        first = 0
        with _damage(self.source):
            # One thread: blocks are read ahead, and many files may be read at a time.
            for batch in self._file.iter_batches(
                batch_size=rows_per_block(len(kept)),
                columns=[self.schema.names[j] for j in kept],
                use_threads=False,
            ):
                columns = {j: batch.column(self.schema.names[j]) for j in kept}
                values = np.full((batch.num_rows, len(self.names)), np.nan, dtype)  # (n, p)
                for j in numbers:
                    values[:, j] = _column_values(pyarrow, columns.pop(j), "", "")
                yield RowBlock(first, None, values, columns)
                first += batch.num_rows


@contextmanager
def open_parquet(path: Path) -> Iterator[ParquetTable]:
    """Open a Parquet file, to be read in blocks of rows."""
    _, parquet = _import_pyarrow("reading Parquet")
    source = str(path)
    with ExitStack() as stack:
        with _damage(source):
            file = stack.enter_context(
                parquet.ParquetFile(path, page_checksum_verification=True, pre_buffer=False)
            )
            table = ParquetTable(file, source)
        yield table


def read_parquet_blocks(
    path: Path, options: ReadOptions, rows: int | None = None
) -> Iterator[Table]:
    """Yield the rows of a table of numbers, booleans, dates, texts and lists of texts.

    There is one table of all rows, or there are tables of up to `rows` rows.
    """
    pyarrow, _ = _import_pyarrow("reading Parquet")
    source = str(path)
    with open_parquet(path) as opened, _damage(source):
        file = opened._file
        if rows is None or file.metadata.num_rows <= rows:
            yield _arrow_table(pyarrow, file.read(use_threads=False), options, source)
            return
        for batch in file.iter_batches(rows, use_threads=False):
            arrow = pyarrow.Table.from_batches([batch], file.schema_arrow)
            yield _arrow_table(pyarrow, arrow, options, source)


def _arrow_table(pyarrow: Any, arrow: Any, options: ReadOptions, source: str) -> Table:
    """Return a table of pyarrow as a table of features and labels."""
    arrow.validate(full=True)
    metadata = arrow.schema.metadata or {}
    names = [str(name) for name in arrow.column_names]
    check_names(names, source)
    index = _index_columns(metadata.get(b"pandas"), options)
    where = [j for j, name in enumerate(names) if name not in index]
    names = [names[j] for j in where]
    declared = metadata.get(_LABELS_KEY)
    if declared is not None and options.labels is None and options.encoder is None:
        options = replace(options, labels=_declared_labels(declared, source))
    has_lists = options.labels in names and _is_any(
        pyarrow.types, arrow.schema.field(options.labels).type, _LISTS
    )
    roles = column_roles(names, options, source, has_lists)
    # Dropped columns may be of any type.
    empty = np.full(arrow.num_rows, np.nan)
    columns = [
        empty if k in roles.dropped else _column_values(pyarrow, arrow.column(j), names[k], source)
        for k, j in enumerate(where)
    ]
    ids = arrow.select(list(options.ids)) if options.ids else None
    return replace(table_from_columns(source, names, columns, options, roles), ids=ids)


def is_number(types: Any, kind: Any) -> bool:
    """Return True for types of numbers, booleans among them."""
    return _is_any(types, kind, _NUMBERS)


def _is_any(types: Any, kind: Any, tests: Sequence[str]) -> bool:
    return any(getattr(types, test)(kind) for test in tests if hasattr(types, test))


def _declared_labels(text: bytes, source: str) -> list[str]:
    try:
        names = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"its list of labels is damaged: {error}", source=source) from error
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise DataError("its list of labels is damaged: it must be strings", source=source)
    return names


def _index_columns(text: bytes | None, options: ReadOptions) -> set[str]:
    """Return the unnamed index of a pandas data frame: its columns are not features."""
    try:
        described = json.loads(text or b"{}")
    except (ValueError, RecursionError):  # metadata of other programs are not validated
        return set()
    found = described.get("index_columns") if isinstance(described, dict) else None
    requested = {*options.drop, *options.ids, *options.categorical, *options.training_features}
    requested.update([options.labels] if isinstance(options.labels, str) else [])
    return {
        name
        for name in (found if isinstance(found, list) else [])
        if isinstance(name, str) and re.fullmatch(r"__index_level_\d+__", name)
    } - requested


def _column_values(pyarrow: Any, column: Any, name: str, source: str) -> Any:
    """Return a column as an array of numbers, or as a list if it has texts or lists."""
    kind, types = column.type, pyarrow.types
    if types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if types.is_boolean(kind):
        column, kind = column.cast(pyarrow.int8()), pyarrow.int8()
    if types.is_decimal(kind):
        column, kind = column.cast(pyarrow.float64()), pyarrow.float64()
    if types.is_integer(kind) or types.is_floating(kind):
        if column.null_count:
            column = column.cast(pyarrow.float64(), safe=False)
        return np.asarray(column)  # null becomes NaN
    if types.is_date(kind) or types.is_timestamp(kind):
        return [None if day is None else str(day)[:10] for day in column.to_pylist()]
    inner = kind
    if _is_any(types, kind, _LISTS):
        inner = kind.value_type
        inner = inner.value_type if types.is_dictionary(inner) else inner
    if _is_any(types, inner, _TEXTS) or types.is_null(inner):
        return column.to_pylist()
    reason = f"values of type {kind} are neither numbers nor texts"
    raise DataError(reason, source=source, column=name)


def write_parquet(
    path: Path, X: Any, Y: Any, feature_names: Sequence[str], label_names: Sequence[str]
) -> None:
    """Write a table, and declare its labels in the metadata."""
    pyarrow, parquet = _import_pyarrow("writing Parquet")
    csc = sparse.csc_array(X) if sparse.issparse(X) else None
    columns: list[Any] = []
    for j in range(X.shape[1]):
        dense = X[:, j] if csc is None else csc[:, [j]].toarray()[:, 0]
        columns.append(pyarrow.array(np.ascontiguousarray(dense)))
    names = list(feature_names)
    if Y is not None:
        columns.extend(pyarrow.array(np.ascontiguousarray(Y[:, k])) for k in range(Y.shape[1]))
        names.extend(label_names)
    table = pyarrow.table(columns, names=names)
    if Y is not None:
        table = table.replace_schema_metadata({_LABELS_KEY: json.dumps(list(label_names))})
    with atomic_file(path) as file:
        parquet.write_table(table, file, write_page_checksum=True)
