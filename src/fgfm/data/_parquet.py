"""Parquet, through pyarrow. The file says which columns are labels, if `fgfm` wrote it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from fgfm._atomic import atomic_file
from fgfm.data._columns import table_of_columns
from fgfm.data._errors import DataError, bad
from fgfm.data._table import Options, Table

__all__ = ["read_parquet", "write_parquet"]

_KEY = b"fgfm.labels"


def _pyarrow(doing: str) -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(f"{doing} Parquet needs pyarrow: pip install 'fgfm[data]'") from error
    return pyarrow, pyarrow.parquet


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
        names = [str(name) for name in arrow.column_names]
        columns = [_values(pyarrow, arrow.column(j), names[j], source) for j in range(len(names))]
        declared = (arrow.schema.metadata or {}).get(_KEY)
    except (ImportError, DataError):
        raise
    except Exception as error:  # a damaged file: pyarrow has many errors
        raise bad(path, f"this is no Parquet file, or is damaged: {_one_line(error)}") from error
    if declared is not None and options.labels is None and options.encoder is None:
        options = replace(options, labels=_declared(declared, source))
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
    texts = types.is_string(kind) or types.is_large_string(kind) or types.is_null(kind)
    if texts or (
        (types.is_list(kind) or types.is_large_list(kind)) and types.is_string(kind.value_type)
    ):
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
