"""Tables of a number per label: probabilities, logits or 0/1 labels, in blocks of rows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from fgfm._utils.blocks import row_blocks
from fgfm._utils.validation import check_choice, first_entry, tolerance
from fgfm.io._cells import Faults, as_numbers, as_texts
from fgfm.io._errors import DataError
from fgfm.io._files import TextFormat, source_name
from fgfm.io._formats import FORMATS, MATRICES, detect_format, open_file
from fgfm.io._kinds import ID_NAME
from fgfm.io._labels import label_order
from fgfm.io._tables import Table

__all__ = ["Block", "Probabilities", "open_probabilities", "read_matrix"]

_TABLES = tuple(name for name, format in FORMATS.items() if format.streamed)


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
    blocks: Iterator[Block]  # at least one

    def read(self) -> Block:
        """Return all rows."""
        import pyarrow as pa

        values, ids = zip(*self.blocks, strict=True)
        stacked = sparse.vstack(values, "csr") if sparse.issparse(values[0]) else np.vstack(values)
        return Block(stacked, None if ids[0] is None else pa.concat_tables(ids))


@contextmanager
def open_probabilities(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    text: TextFormat,
    logits: bool = False,
    labels: Sequence[str] | None = None,
    ids: Sequence[str] = (),
    optional_ids: bool = False,
    strict: bool = False,
) -> Iterator[Probabilities]:
    """Open a table with a column per label, or a matrix in .npy or sparse .npz.

    Parameters
    ----------
    path : str or path-like
        The file; "-" is standard input.
    format : str, optional
        The format; by default it follows from the file name.
    text : TextFormat
        How CSV is written.
    logits : bool
        Whether the numbers are logits.
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
    check_choice(format, "format", (None, *_TABLES, *MATRICES))
    source = source_name(path)
    format = format or detect_format(path)
    check_choice(format, f"the format of {source}", (*_TABLES, *MATRICES))
    if format not in MATRICES:
        with open_file(path, format, text) as table:
            ids, wanted, batches = _split_columns(table, ids, labels, optional_ids, logits)
            faults = Faults(
                source, strict, table.decimal, becomes="a probability of 0", remedies=("ids",)
            )
            blocks = _table_blocks(batches, wanted, ids, logits, faults)
            yield Probabilities(source, list(labels or wanted), table.has_names, blocks)
        return
    matrix = read_matrix(Path(path), format)
    if logits and format == "npz":
        raise DataError(
            "it is sparse, and logits that are not stored would be probabilities of 1/2: it must "
            "hold probabilities",
            source=source,
            arguments=["logits"],
        )
    if ids and not optional_ids:
        raise ValueError(f"ids is {list(ids)!r}: {source} has no named columns")
    names = [str(j) for j in range(matrix.shape[1])]
    _check_count(names, labels, source)
    blocks = _matrix_blocks(matrix, logits, names, source)
    yield Probabilities(source, list(labels or names), False, blocks)


def read_matrix(path: Path, format: str) -> Any:
    """Return a matrix (n, m): that of .npy, mapped into memory, or a sparse one of .npz."""
    try:
        with path.open("rb") as file:
            if format == "npy":
                np.lib.format.read_magic(file)  # np.load does not close files of other formats
                matrix = np.load(path, mmap_mode="r", allow_pickle=False)
            else:
                matrix = sparse.csr_array(sparse.load_npz(file))
                matrix.check_format(full_check=True)
    except (FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except Exception as error:  # zipfile, zlib, NumPy and SciPy have many for damaged files
        what = "an array of NumPy" if format == "npy" else "a sparse matrix of SciPy"
        reason = f"it is not {what}, or it is damaged: {error}"
        raise DataError(reason, source=path) from error
    if matrix.dtype.kind not in "fiub" or matrix.ndim != 2 or matrix.shape[1] == 0:
        reason = f"it has dtype {matrix.dtype} and shape {matrix.shape}: it must be (n, m) numbers"
        raise DataError(reason, source=path)
    return matrix


def _check_count(found: Sequence[str], labels: Sequence[str] | None, source: str) -> None:
    """Raise unless columns without names are as many as the labels of the decider."""
    if labels is not None and len(labels) != len(found):
        reason = f"the number of labels is {len(found)}: it must be {len(labels)}"
        raise DataError(reason, source=source)


def _split_columns(
    table: Table, ids: Sequence[str], labels: Sequence[str] | None, optional: bool, logits: bool
) -> tuple[list[str], list[str], Iterator[Any]]:
    """Return the id columns, the label columns in their order, and the batches."""
    names, batches = table.names, table.batches
    if not optional:
        table.check_has(ids, "ids")
    apart = [name for name in names if name in ids]
    if not apart and table.has_names:
        apart = [name for name in names if ID_NAME.search(name)]
        if labels is not None:
            known = set(labels)
            apart = [name for name in apart if name not in known]
        elif apart and (first := next(batches, None)) is not None:
            batches = chain([first], batches)
            apart = [name for name in apart if not _fits(first.column(name), logits)]
        else:
            apart = []
    found = set(apart)
    wanted = [name for name in names if name not in found]
    if not wanted:
        reason = "there are no labels: every column is an id column"
        raise DataError(reason, source=table.source, arguments=["ids"])
    if labels is not None and table.has_names:
        label_order(wanted, labels, "the decider", table.source, ["ids"])
        wanted = list(labels)
    _check_count(wanted, labels, table.source)
    return apart, wanted, batches


def _fits(column: Any, logits: bool) -> bool:
    """Return True if all values of a column may be probabilities (or logits)."""
    import pyarrow as pa

    if pa.types.is_integer(column.type):
        return False  # rows may be numbered 0 and 1
    faults = Faults("")
    try:
        values = as_numbers(column, "", faults)
    except pa.ArrowInvalid:
        return False
    if all(text is None or text.isdecimal() for text in as_texts(column) if text != ""):
        return False
    in_range = (
        np.nanmin(values, initial=0.0) >= -1e-6 and np.nanmax(values, initial=0.0) <= 1.0 + 1e-6
    )
    return not faults.count and (logits or bool(in_range))


def _table_blocks(
    batches: Iterator[Any], labels: Sequence[str], ids: Sequence[str], logits: bool, faults: Faults
) -> Iterator[Block]:
    import pyarrow as pa

    cells = Faults("", decimal=faults.decimal)  # missing values are faults here, too
    single = {pa.float32(), pa.float16()}
    for batch in batches:
        columns = batch.select(list(labels)).columns
        dtype = np.float32 if {column.type for column in columns} <= single else np.float64
        values = np.empty((batch.num_rows, len(labels)), dtype)  # (n, m)
        for j, (name, column) in enumerate(zip(labels, columns, strict=True)):
            try:
                values[:, j] = as_numbers(column, name, cells)
            except pa.ArrowInvalid as error:
                raise DataError(
                    f"{error}; a column that is not a label must be an id column or be removed",
                    source=faults.source,
                    column=name,
                    arguments=["ids"],
                ) from None
            wrong = np.isnan(values[:, j])
            if wrong.any():
                faults.add(name, column, wrong, "a logit" if logits else "a probability")
                values[wrong, j] = -np.inf if logits else 0.0
        _check_values(values, logits, labels, faults.source, faults.rows)
        faults.next_batch(batch.num_rows, check_first=True)
        yield Block(values, pa.Table.from_batches([batch.select(list(ids))]) if ids else None)
    if faults.rows == 0:
        kept = pa.table({name: pa.array([], "string") for name in ids}) if ids else None
        yield Block(np.zeros((0, len(labels))), kept)
    faults.report(faults.rows)


def _matrix_blocks(
    matrix: Any, logits: bool, labels: Sequence[str], source: str
) -> Iterator[Block]:
    for rows in row_blocks(matrix.shape[0], 4 * matrix.shape[1]) or [slice(0, 0)]:
        block = matrix[rows]
        if isinstance(block, np.ndarray):  # copied out of the memory-mapped file
            block = np.array(block, block.dtype if block.dtype.kind == "f" else np.float64)
        _check_values(block, logits, labels, source, rows.start)
        yield Block(block, None)


def _check_values(
    values: Any, logits: bool, labels: Sequence[str], source: str, first: int
) -> None:
    """Raise unless all values of some rows, from `first` on, are valid."""
    stored = values if isinstance(values, np.ndarray) else values.data
    slack = tolerance(stored)
    if logits:
        wrong = np.isnan(stored)
    elif not stored.size or (stored.min() >= -slack and stored.max() <= 1.0 + slack):
        return
    else:
        wrong = ~((stored >= -slack) & (stored <= 1.0 + slack))  # True for NaN
    if not wrong.any():
        return
    row, column, value = first_entry(values, wrong)
    rule = "a probability: probabilities must lie in [0, 1]"
    if logits:
        rule = "a logit: logits must be numbers"
    hint, arguments = "a column that is not a label must be an id column", ["ids"]
    cells = values[:, [column]]
    cells = cells if isinstance(cells, np.ndarray) else cells.data
    if (cells != np.floor(cells)).any():  # integers are codes, not logits
        hint, arguments = f"{hint}; apply a sigmoid to logits", ["ids", "logits"]
    raise DataError(
        f"{value!s} is not {rule}; {hint}",
        source=source,
        row=first + row,
        column=labels[column],
        arguments=arguments,
    )
