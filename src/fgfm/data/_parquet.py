"""Parquet, through pyarrow. The file says which columns are labels, if `fgfm` wrote it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from fgfm._utils.atomic import atomic_file
from fgfm.data._columns import table_of_columns
from fgfm.data._errors import DataError, bad
from fgfm.data._extras import need
from fgfm.data._table import Options, Table, check_names, dropped

__all__ = ["read_parquet", "write_parquet"]

_KEY = b"fgfm.labels"


def _pyarrow(doing: str) -> tuple[Any, Any]:
    purpose = f"{doing} Parquet"
    return need("pyarrow", purpose), need("pyarrow.parquet", purpose)


def read_parquet(path: Path, options: Options) -> Table:
    """Read a table of numbers, truth values, texts, and lists of texts."""
    pyarrow, parquet = _pyarrow("reading")
    source = str(path)
    try:
        with parquet.ParquetFile(
            path, page_checksum_verification=True, memory_map=False, pre_buffer=False
        ) as file:
            arrow = file.read(use_threads=False)
        arrow.validate(full=True)
        metadata = arrow.schema.metadata or {}
        names = [str(name) for name in arrow.column_names]
        check_names(names, source)
        index = _index_columns(metadata.get(b"pandas"), options)
        where = [j for j, name in enumerate(names) if name not in index]
        names = [names[j] for j in where]
        declared = metadata.get(_KEY)
        if declared is not None and options.labels is None and options.encoder is None:
            options = replace(options, labels=_declared(declared, source))
        # what is left out may be of any type
        gone = dropped(names, options, source)
        empty = np.full(arrow.num_rows, np.nan)
        columns = [
            empty if k in gone else _values(pyarrow, arrow.column(j), names[k], source)
            for k, j in enumerate(where)
        ]
    except (ImportError, DataError):
        raise
    except Exception as error:  # a damaged file: pyarrow has many errors
        raise bad(path, f"this is no Parquet file, or is damaged: {_one_line(error)}") from error
    return table_of_columns(source, names, columns, options)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _declared(text: bytes, source: str) -> list[str]:
    try:
        names = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise bad(source, f"its list of labels is damaged: {error}") from error
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise bad(source, "its list of labels is damaged: it must be a list of texts")
    return names


def _index_columns(text: bytes | None, options: Options) -> set[str]:
    """Give the columns that are the nameless index of a data frame of pandas: no features."""
    try:
        described = json.loads(text or b"{}")
    except (ValueError, RecursionError):  # not ours to judge
        return set()
    found = described.get("index_columns") if isinstance(described, dict) else None
    asked = {*options.drop, *options.categorical}
    asked.update(getattr(options.encoder, "feature_names_in_", ()))
    asked.update([options.labels] if isinstance(options.labels, str) else [])
    return {
        name
        for name in (found if isinstance(found, list) else [])
        if isinstance(name, str) and re.fullmatch(r"__index_level_\d+__", name)
    } - asked


def _is_text(types: Any, kind: Any) -> bool:
    view = getattr(types, "is_string_view", None)  # of polars; pyarrow has it since version 16
    return bool(
        types.is_string(kind) or types.is_large_string(kind) or (view is not None and view(kind))
    )


def _is_list(types: Any, kind: Any) -> bool:
    tests = (
        "is_list",
        "is_large_list",
        "is_fixed_size_list",
        "is_list_view",
        "is_large_list_view",
    )
    return any(getattr(types, test)(kind) for test in tests if hasattr(types, test))


def _values(pyarrow: Any, column: Any, name: str, source: str) -> Any:
    """Give a column as numbers, or as Python objects where it has texts or gaps."""
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
        return np.asarray(column.to_numpy())  # a gap becomes NaN
    if _is_list(types, kind):
        inner = kind.value_type
        inner = inner.value_type if types.is_dictionary(inner) else inner
    else:
        inner = kind
    if _is_text(types, inner) or types.is_null(inner):
        return column.to_pylist()
    raise bad(source, f"values of type {kind} are neither numbers nor texts", column=name)


def write_parquet(
    path: Any, X: Any, Y: Any, feature_names: Sequence[str], label_names: Sequence[str]
) -> None:
    """Write a table; what its labels are is written with it."""
    pyarrow, parquet = _pyarrow("writing")
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
        table = table.replace_schema_metadata({_KEY: json.dumps(list(label_names))})
    with atomic_file(path) as file:
        parquet.write_table(table, file, write_page_checksum=True)
