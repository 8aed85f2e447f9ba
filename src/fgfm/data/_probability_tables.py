"""Tables of a number per label: named columns, .npy and sparse .npz."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from fgfm._utils.text import near_match, quoted
from fgfm.data._errors import DataError
from fgfm.data._parquet import ParquetTable, is_number, rows_per_block
from fgfm.data._table import check_names, numbered_names
from fgfm.data._text_table import RowBlock, TextTable

__all__ = [
    "ID_HINT",
    "Block",
    "Columns",
    "ProbabilityTable",
    "named_table",
    "open_npy",
    "open_npz",
]

ID_HINT = "a column that is not a label must be an id column or be removed"
_BLOCK_ROWS = 1 << 16


class Block(NamedTuple):
    """Some rows of a table."""

    first: int  # the number of the first row
    lines: Any  # the line of each row in a text file, or None
    proba: Any  # ndarray or CSR of shape (n, m)
    ids: Any  # pyarrow.Table of the id columns, or None


class ProbabilityTable(NamedTuple):
    """An open table of probabilities."""

    label_names: list[str]
    blocks: Iterator[Block]
    empty_ids: Any = None  # pyarrow.Table of the id columns without rows, or None


class Columns(NamedTuple):
    """Which columns of a table are not labels.

    If the table has the column `lists` of label lists, this is the last of the id columns, and
    there are no label columns.
    """

    ids: Sequence[str] = ()  # to keep as they are
    ignored: Sequence[str] = ()  # to skip, if there are any
    optional: bool = False  # whether `ids` may be missing
    lists: str | None = None
    booleans: bool = False  # whether labels may be booleans in Parquet

    def split(self, names: Sequence[str], source: str) -> tuple[list[str], list[str]]:
        """Return the label columns and the id columns of a table."""
        ids = [name for name in self.ids if name in names or not self.optional]
        apart = {*ids, *self.ignored}
        if self.lists in names:
            for name in names:
                if name not in apart and name != self.lists:
                    raise DataError(
                        f"it stands beside the column {quoted(self.lists)} of label lists; "
                        f"{ID_HINT}",
                        source=source,
                        column=name,
                        arguments=["ids"],
                    )
            return [], [*ids, str(self.lists)]
        for name in ids:
            if name not in names:
                raise DataError(
                    f"there is no column {quoted(name)}: {near_match(name, names)}",
                    source=source,
                    arguments=["ids"],
                )
        labels = [name for name in names if name not in apart]
        if not labels:
            reason = "there are no labels: every column is an id column"
            raise DataError(reason, source=source, arguments=["ids"])
        return labels, ids


def named_table(table: TextTable | ParquetTable, columns: Columns) -> ProbabilityTable:
    """Return a table with names as labels and id columns."""
    import pyarrow

    source = table.source
    names = numbered_names(table.names, columns.ids)
    check_names(names, source, table.line, unnamed="ids")
    table.names = names
    labels, ids = columns.split(names, source)
    if isinstance(table, TextTable):
        if names == [columns.lists]:
            table.blank = "row"  # an empty label set
        empty = pyarrow.table({name: pyarrow.array([], "string") for name in ids})
    else:
        _check_types(table, labels, ids, columns)
        empty = table.schema.empty_table().select(ids)
    apart = {*ids, *columns.ignored}
    at = [j for j, name in enumerate(names) if name not in apart] if labels else []
    blocks = _named_blocks(table, at, [names.index(name) for name in ids])
    return ProbabilityTable(labels, blocks, empty)


def _check_types(
    table: ParquetTable, labels: Sequence[str], ids: Sequence[str], columns: Columns
) -> None:
    """Raise unless labels are numbers, and id columns are values that can be written as text."""
    from pyarrow import types

    for name in labels:
        kind = table.schema.field(name).type
        is_boolean = types.is_boolean(kind) and not columns.booleans
        if is_boolean or not is_number(types, kind):
            raise DataError(
                f"it is of type {kind}: labels must be columns of numbers; {ID_HINT}",
                source=table.source,
                column=name,
                arguments=["ids"],
            )
    for name in ids:
        kind = table.schema.field(name).type
        if (types.is_nested(kind) or types.is_binary(kind)) and name != columns.lists:
            reason = f"it is of type {kind}: id columns must be numbers, texts or dates"
            raise DataError(reason, source=table.source, column=name)


def _named_blocks(
    table: TextTable | ParquetTable, labels: Sequence[int], ids: Sequence[int]
) -> Iterator[Block]:
    import pyarrow

    names, p = table.names, len(table.names)
    skipped = set(range(p)) - {*labels, *ids} if len(labels) + len(ids) < p else ()
    for block in table.blocks(ids, skipped):
        if isinstance(table, TextTable) and len(block.others) > len(ids):
            raise _not_a_number(table, block, labels, has_ids=bool(ids))
        proba = block.numbers if len(labels) == p else block.numbers.take(labels, axis=1)
        columns = {names[j]: block.others[j] for j in ids}
        yield Block(block.first, block.lines, proba, pyarrow.table(columns) if ids else None)


def _not_a_number(
    table: TextTable, block: RowBlock, labels: Sequence[int], has_ids: bool
) -> DataError:
    """Return the error for the first text in a column of numbers."""
    row, j, cell = min(
        next((row, j, c) for row, c in enumerate(cells.to_pylist()) if table.parse(c) is None)
        for j, cells in block.others.items()
        if j in labels
    )
    line = int(block.lines[row])
    if table.decimal == "." and table.parse(cell.replace(",", ".")) is not None:
        reason = f"{quoted(cell)} is not a number, unless commas are decimal marks"
        return table.error(reason, line, j, ["decimal"])
    reason = f"{quoted(cell)} is not a number"
    if has_ids:
        return table.error(reason, line, j)
    return table.error(f"{reason}; {ID_HINT}", line, j, ["ids"])


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


def _row_blocks(table: Any) -> Iterator[Block]:
    is_sparse = sparse.issparse(table)
    rows = _BLOCK_ROWS if is_sparse else rows_per_block(table.shape[1])
    for first in range(0, table.shape[0], rows):
        block = table[first : first + rows]
        if not is_sparse:  # copied out of the memory-mapped file
            dtype = block.dtype if block.dtype in (np.float32, np.float64) else np.float64
            block = np.array(block, dtype=dtype)
        yield Block(first, None, block, None)
