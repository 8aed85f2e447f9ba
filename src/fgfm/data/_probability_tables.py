"""Tables of a number per label: their columns; Parquet, .npy and sparse .npz."""

from __future__ import annotations

import contextlib
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from fgfm._utils.optional import import_optional
from fgfm._utils.text import quoted
from fgfm.data._errors import DataError

__all__ = [
    "ID_HINT",
    "Block",
    "Columns",
    "ProbabilityTable",
    "arrow_block",
    "open_npy",
    "open_npz",
    "open_parquet",
]

ID_HINT = "a column that is not a label must be an id column or be removed"
_BLOCK_ROWS = 1 << 16
_BLOCK_NUMBERS = 1 << 21


class Block(NamedTuple):
    """Some rows of a table."""

    proba: Any  # ndarray or CSR of shape (n, m)
    ids: Any  # pyarrow.Table of the id columns, or None


class ProbabilityTable(NamedTuple):
    """An open table of probabilities."""

    label_names: list[str]
    blocks: Iterator[tuple[int, Block]]  # with the number of the first row
    empty_ids: Any = None  # pyarrow.Table of the id columns without rows, or None


class Columns(NamedTuple):
    """Which columns of a table are not labels.

    Attributes
    ----------
    ids : sequence of str
        Columns to keep as they are.
    ignored : sequence of str
        Columns to skip, if there are any.
    optional : bool
        Whether `ids` may be missing.
    lists : str or None
        Column of label lists: if the table has it, it is the last of the id columns, and there
        are no label columns.
    """

    ids: Sequence[str] = ()
    ignored: Sequence[str] = ()
    optional: bool = False
    lists: str | None = None

    def split(self, names: Sequence[str], source: str) -> tuple[list[str], list[str]]:
        """Return the label columns and the id columns of a table."""
        ids = [name for name in self.ids if name in names or not self.optional]
        names = [name for name in names if name in ids or name not in self.ignored]
        if self.lists in names:
            for name in names:
                if name not in (*ids, self.lists):
                    raise DataError(
                        f"it stands beside the column {quoted(self.lists)} of label lists; "
                        f"{ID_HINT}",
                        source=source,
                        column=name,
                        arguments=["ids"],
                    )
            return [], [*ids, str(self.lists)]
        return _label_columns(names, ids, source), ids


def _label_columns(names: Sequence[str], ids: Sequence[str], source: str) -> list[str]:
    """Return the names of the columns that are not id columns."""
    for at, name in enumerate(names, start=1):
        if not name and name not in ids:
            raise DataError(
                f"column {at} has no name: every label needs one; {ID_HINT}",
                source=source,
                arguments=["ids"],
            )
    if len(set(names)) < len(names):
        repeated = next(name for name in names if list(names).count(name) > 1)
        reason = f"there are two columns {quoted(repeated)}: names must be unique"
        raise DataError(reason, source=source)
    for name in ids:
        if name not in names:
            raise DataError(
                f"there is no column {quoted(name)}: the columns are "
                f"{', '.join(names[:5])}{', ...' if len(names) > 5 else ''}",
                source=source,
                arguments=["ids"],
            )
    found = [name for name in names if name not in ids]
    if not found:
        raise DataError(
            "there are no labels: every column is an id column",
            source=source,
            arguments=["ids"],
        )
    return found


def arrow_block(pyarrow: Any, batch: Any, labels: Sequence[str], ids: Sequence[str]) -> Block:
    """Return the labels of a batch as one array, and its id columns."""
    types = {batch.schema.field(name).type for name in labels}
    single = types <= {pyarrow.float32(), pyarrow.float16()}
    proba = np.empty((batch.num_rows, len(labels)), np.float32 if single else np.float64)
    for j, name in enumerate(labels):
        proba[:, j] = batch.column(name).to_numpy(zero_copy_only=False)  # null becomes NaN
    if not ids:
        return Block(proba, None)
    return Block(proba, pyarrow.table([batch.column(name) for name in ids], names=list(ids)))


def open_parquet(
    path: Path, columns: Columns, stack: contextlib.ExitStack, *, booleans: bool = False
) -> ProbabilityTable:
    """Open a Parquet file; `stack` closes it."""
    pyarrow = import_optional("pyarrow", "reading Parquet", "data")
    parquet = import_optional("pyarrow.parquet", "reading Parquet", "data")
    source = str(path)
    try:
        file = stack.enter_context(parquet.ParquetFile(path))
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"it is not a Parquet file: {error}", source=source) from None
    schema, types = file.schema_arrow, pyarrow.types
    labels, ids = columns.split(schema.names, source)
    for name in labels:
        kind = schema.field(name).type
        is_number = types.is_floating(kind) or types.is_integer(kind)
        if not (is_number or (booleans and types.is_boolean(kind))):
            raise DataError(
                f"it is of type {kind}: labels must be columns of numbers; {ID_HINT}",
                source=source,
                column=name,
                arguments=["ids"],
            )
    for name in ids:
        kind = schema.field(name).type
        if (types.is_nested(kind) or types.is_binary(kind)) and name != columns.lists:
            reason = f"it is of type {kind}: id columns must be numbers, texts or dates"
            raise DataError(reason, source=source, column=name)
    blocks = _parquet_blocks(pyarrow, file, labels, ids, source)
    return ProbabilityTable(labels, blocks, schema.empty_table().select(list(ids)))


def _parquet_blocks(
    pyarrow: Any, file: Any, labels: Sequence[str], ids: Sequence[str], source: str
) -> Iterator[tuple[int, Block]]:
    first = 0
    try:
        # One thread: blocks are read ahead already, and many files may be read at a time.
        batches = file.iter_batches(
            batch_size=_rows_per_block(len(labels)), columns=[*labels, *ids], use_threads=False
        )
        for batch in batches:
            yield first, arrow_block(pyarrow, batch, labels, ids)
            first += batch.num_rows
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"it cannot be read to its end: {error}", source=source) from None


def open_npy(path: Path, columns: Columns) -> ProbabilityTable:
    """Open an array of shape (n, m)."""
    try:
        with path.open("rb") as file:
            np.lib.format.read_magic(file)  # np.load does not close files of other formats
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise DataError(f"it is not an array of numbers: {error}", source=path) from None
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiub":
        raise DataError("it must hold one array of real numbers", source=path)
    return _numbered_table(path, array, columns)


def open_npz(path: Path, columns: Columns) -> ProbabilityTable:
    """Open a sparse matrix of shape (n, m)."""
    try:
        with path.open("rb") as file:
            matrix = sparse.load_npz(file)
        if hasattr(matrix, "check_format"):
            matrix.check_format(full_check=True)
        matrix = matrix.tocsr()
    except (
        ValueError,
        OSError,
        EOFError,
        KeyError,
        IndexError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise DataError(f"it is not a sparse matrix of SciPy: {error}", source=path) from None
    if matrix.dtype.kind not in "fiub":
        reason = f"it has dtype {matrix.dtype}: it must hold real numbers"
        raise DataError(reason, source=path)
    return _numbered_table(path, matrix, columns)


def _numbered_table(path: Path, table: Any, columns: Columns) -> ProbabilityTable:
    """Return a table whose labels are numbered from 0."""
    if columns.ids and not columns.optional:
        raise ValueError(
            f"ids is {list(columns.ids)!r}: it must be empty, {path} has no named columns"
        )
    if len(table.shape) != 2 or table.shape[1] == 0:
        reason = f"it has shape {table.shape}: it must have rows and labels"
        raise DataError(reason, source=path)
    return ProbabilityTable([str(j) for j in range(table.shape[1])], _row_blocks(table))


def _rows_per_block(m: int) -> int:
    return max(1, min(_BLOCK_ROWS, _BLOCK_NUMBERS // max(1, m)))


def _row_blocks(table: Any) -> Iterator[tuple[int, Block]]:
    is_sparse = sparse.issparse(table)
    rows = _BLOCK_ROWS if is_sparse else _rows_per_block(table.shape[1])
    for first in range(0, table.shape[0], rows):
        block = table[first : first + rows]
        if not is_sparse:  # copied out of the memory-mapped file
            dtype = block.dtype if block.dtype in (np.float32, np.float64) else np.float64
            block = np.array(block, dtype=dtype)
        yield first, Block(block, None)
