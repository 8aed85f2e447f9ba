"""Tables of a number per label: probabilities, logits or 0/1 labels, in blocks of rows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fgfm._utils.text import missing_columns
from fgfm._utils.validation import check_choice, first_entry, tolerance
from fgfm.io._cells import Faults, as_numbers
from fgfm.io._encoder import ID_NAME
from fgfm.io._errors import DataError
from fgfm.io._files import TABLES, detect_format, source_name
from fgfm.io._labels import label_order
from fgfm.io._npz import read_matrix
from fgfm.io._tables import Table, TextFormat, open_table

__all__ = ["Block", "Probabilities", "open_probabilities"]

FORMATS = (*TABLES, "npy", "npz")
_BLOCK_CELLS = 1 << 20
_CONTENTS = {
    "probabilities": ("a probability", "probabilities must lie in [0, 1]"),
    "logits": ("a logit", "logits must be numbers"),
}


class Block(NamedTuple):
    """Some rows of a table."""

    values: Any  # ndarray or CSR of shape (n, m)
    ids: Any  # pyarrow.Table of the id columns, or None


@dataclass
class Probabilities:
    """An open table of probabilities or logits."""

    source: str
    label_names: list[str]
    has_names: bool
    blocks: Iterator[Block]
    no_ids: Any = None  # pyarrow.Table of the id columns without rows, or None

    def read(self) -> Block:
        """Return all rows."""
        import pyarrow as pa
        from scipy import sparse

        blocks = list(self.blocks)
        if not blocks:
            return Block(np.zeros((0, len(self.label_names))), self.no_ids)
        values = [block.values for block in blocks]
        stacked = sparse.vstack(values, "csr") if sparse.issparse(values[0]) else np.vstack(values)
        ids = None if blocks[0].ids is None else pa.concat_tables([b.ids for b in blocks])
        return Block(stacked, ids)


@contextmanager
def open_probabilities(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    text: TextFormat,
    content: str = "probabilities",
    labels: Sequence[str] | None = None,
    ids: Sequence[str] = (),
    optional_ids: bool = False,
    strict: bool = False,
) -> Iterator[Probabilities]:
    """Open a table with a column per label; blocks are read ahead by a thread.

    Parameters
    ----------
    path : str or path-like
        A table, or a matrix in .npy or sparse .npz; "-" is standard input.
    format : str, optional
        The format; by default it follows from the file name.
    text : TextFormat
        How CSV is written.
    content : {"probabilities", "logits"}
        What the numbers are.
    labels : sequence of str, optional
        The labels of a decider, in whose order the columns are returned. By default all columns
        are labels but the id columns.
    ids : sequence of str
        Columns that are not labels; they are returned beside the values. Without any, columns
        that are called like an identifier and do not hold probabilities are.
    optional_ids : bool
        Whether the columns of `ids` may be absent.
    strict : bool
        Whether a cell that is not a number is an error; otherwise it is 0, with a warning.
    """
    check_choice(format, "format", (None, *FORMATS))
    source = source_name(path)
    format = format or detect_format(path)
    check_choice(format, "format", FORMATS)
    if format in ("npy", "npz"):
        matrix = read_matrix(Path(path), format)
        if content == "logits" and format == "npz":
            raise DataError(
                "it is sparse, and logits that are not stored would be probabilities of 1/2: it "
                "must hold probabilities",
                source=source,
                arguments=["logits"],
            )
        if ids and not optional_ids:
            raise ValueError(f"ids is {list(ids)!r}: {source} has no named columns")
        names = [str(j) for j in range(matrix.shape[1])]
        with _read_ahead(_matrix_blocks(matrix, content, names, source)) as blocks:
            yield Probabilities(source, _numbered(names, labels, source), False, blocks)
        return
    with open_table(path, format, text) as table:
        ids, wanted, batches = _split_columns(table, ids, labels, optional_ids, content)
        zero = "a probability of 0"
        faults = Faults(source, strict, table.decimal, becomes=zero, remedies=("ids",))
        with _read_ahead(_table_blocks(batches, wanted, ids, content, faults)) as blocks:
            yield Probabilities(
                source,
                wanted if labels is None else list(labels),
                table.has_names,
                blocks,
                _no_rows(ids),
            )


def _numbered(found: list[str], labels: Sequence[str] | None, source: str) -> list[str]:
    """Return the names of columns without names: those of the decider, which must be as many."""
    if labels is not None and len(labels) != len(found):
        reason = f"the number of labels is {len(found)}: it must be {len(labels)}"
        raise DataError(reason, source=source)
    return found if labels is None else list(labels)


def _split_columns(
    table: Table, ids: Sequence[str], labels: Sequence[str] | None, optional: bool, content: str
) -> tuple[list[str], list[str], Iterator[Any]]:
    """Return the id columns, the label columns in their order, and the batches."""
    names, source = table.names, table.source
    absent = [name for name in ids if name not in names]
    if absent and not optional:
        raise DataError(missing_columns(absent, names), source=source, arguments=["ids"])
    ids = [name for name in ids if name in names]
    batches = table.batches
    if labels is not None and table.has_names:
        others = [name for name in names if name not in ids]
        if not ids:  # columns that the decider does not have are kept beside its labels
            ids = [name for name in others if name not in set(labels) and ID_NAME.search(name)]
            others = [name for name in others if name not in ids]
        label_order(others, labels, "the decider", source, ["ids"])
        return ids, list(labels), batches
    wanted = [name for name in names if name not in ids]
    if not ids and table.has_names and any(map(ID_NAME.search, names)):
        first = next(batches, None)
        if first is not None:
            batches = chain([first], batches)
            ids = [n for n in names if ID_NAME.search(n) and not _fits(first.column(n), content)]
            wanted = [name for name in names if name not in ids]
    if not wanted:
        reason = "there are no labels: every column is an id column"
        raise DataError(reason, source=source, arguments=["ids"])
    _numbered(wanted, labels, source)
    return ids, wanted, batches


def _fits(column: Any, content: str) -> bool:
    """Return True if all values of a column may be probabilities (or logits)."""
    import pyarrow as pa

    try:
        values = as_numbers(column, "", None)
    except pa.ArrowInvalid:
        return False
    return content == "logits" or bool(
        np.nanmin(values, initial=0.0) >= -1e-6 and np.nanmax(values, initial=0.0) <= 1.0 + 1e-6
    )


def _no_rows(ids: Sequence[str]) -> Any:
    """Return the id columns without rows, None if there are none."""
    import pyarrow as pa

    return pa.table({name: pa.array([], "string") for name in ids}) if ids else None


def _table_blocks(
    batches: Iterator[Any], labels: Sequence[str], ids: Sequence[str], content: str, faults: Faults
) -> Iterator[Block]:
    import pyarrow as pa

    noun = _CONTENTS[content][0]
    for batch in batches:
        values = np.empty((batch.num_rows, len(labels)), _dtype(batch, labels))  # (n, m)
        for j, name in enumerate(labels):
            column = batch.column(name)
            try:
                values[:, j] = as_numbers(column, name, Faults("", decimal=faults.decimal))
            except pa.ArrowInvalid as error:
                raise DataError(
                    f"{error}; a column that is not a label must be an id column or be removed",
                    source=faults.source,
                    column=name,
                    arguments=["ids"],
                ) from None
            wrong = np.isnan(values[:, j])
            if wrong.any():
                faults.add(name, column, wrong, noun)
                values[wrong, j] = 0.0 if content == "probabilities" else -np.inf
        _check_values(values, content, labels, faults.source, faults.rows)
        faults.rows += batch.num_rows
        if faults.rows == batch.num_rows:  # before the first rows are written
            faults.check(faults.rows)
        kept = pa.Table.from_batches([batch]).select(list(ids)) if ids else None
        yield Block(values, kept)
    faults.report(faults.rows)


def _dtype(batch: Any, labels: Sequence[str]) -> Any:
    """Return single precision if all columns have it."""
    import pyarrow as pa

    kinds = {batch.schema.field(name).type for name in labels}
    return np.float32 if kinds <= {pa.float32(), pa.float16()} else np.float64


def _matrix_blocks(
    matrix: Any, content: str, labels: Sequence[str], source: str
) -> Iterator[Block]:
    rows = max(1, _BLOCK_CELLS // matrix.shape[1])
    for first in range(0, matrix.shape[0], rows):
        block = matrix[first : first + rows]
        if isinstance(block, np.ndarray):  # copied out of the memory-mapped file
            block = np.array(block, block.dtype if block.dtype.kind == "f" else np.float64)
        _check_values(block, content, labels, source, first)
        yield Block(block, None)


def _check_values(
    values: Any, content: str, labels: Sequence[str], source: str, first: int
) -> None:
    """Raise unless all values of some rows, from `first` on, are valid."""
    stored = values if isinstance(values, np.ndarray) else values.data
    slack = tolerance(stored)
    if content == "logits":
        wrong = np.isnan(stored)
    elif not stored.size or (stored.min() >= -slack and stored.max() <= 1.0 + slack):
        return
    else:
        wrong = ~((stored >= -slack) & (stored <= 1.0 + slack))  # True for NaN
    if not wrong.any():
        return
    row, column, value = first_entry(values, wrong)
    noun, rule = _CONTENTS[content]
    hint, arguments = "a column that is not a label must be an id column", ["ids"]
    cells = values[:, [column]]
    cells = cells if isinstance(cells, np.ndarray) else cells.data
    if (cells != np.floor(cells)).any():  # integers are codes, not logits
        hint, arguments = f"{hint}; apply a sigmoid to logits", ["ids", "logits"]
    raise DataError(
        f"{value!s} is not {noun}: {rule}; {hint}",
        source=source,
        row=first + row,
        column=labels[column],
        arguments=arguments,
    )


@contextmanager
def _read_ahead(blocks: Iterator[Block]) -> Iterator[Iterator[Block]]:
    """Read the next block in a thread while one is decided."""
    with ThreadPoolExecutor(1) as pool:

        def ahead() -> Iterator[Block]:
            future = pool.submit(next, blocks, None)
            while (block := future.result()) is not None:
                future = pool.submit(next, blocks, None)
                yield block

        yield ahead()
