"""Tables of a number per label: probabilities, logits or scores, in blocks of rows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from fgfm._utils.validation import first_entry, tolerance
from fgfm.io._cells import Faults, as_numbers
from fgfm.io._errors import DataError
from fgfm.io._files import TextFormat
from fgfm.io._formats import open_file
from fgfm.io._kinds import ID_NAME
from fgfm.io._labels import label_order
from fgfm.io._tables import Table


class Block(NamedTuple):
    """Some rows of a table."""

    values: Any  # ndarray of shape (n, m)
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
        return Block(np.vstack(values), None if ids[0] is None else pa.concat_tables(ids))


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
    """Open a table with a column per label.

    `labels` are those of a decider, in whose order the columns are returned; by default all
    columns are labels but the id columns. These are `ids`, which may be absent if `optional_ids`;
    without any, columns that are called like an identifier and do not hold probabilities are. A
    cell that is not a number is 0, with a warning, or an error if `strict`.
    """
    with open_file(path, format, text) as table:
        if not isinstance(table, Table):
            reason = "it has sparse rows: probabilities must be a table with a column per label"
            raise DataError(reason, source=table.source)
        if not optional_ids:
            table.check_has(ids, "ids")
        ids, wanted = _split_columns(table, ids, labels, logits)
        blocks = _blocks(table, wanted, ids, logits, strict)
        yield Probabilities(table.source, list(labels or wanted), table.has_names, blocks)


def _split_columns(
    table: Table, ids: Sequence[str], labels: Sequence[str] | None, logits: bool
) -> tuple[list[str], list[str]]:
    """Return the id columns, and the label columns in their order."""
    apart = [name for name in table.names if name in ids]
    if not apart and table.has_names:
        apart = [name for name in table.names if ID_NAME.search(name)]
        if labels is not None:
            apart = [name for name in apart if name not in labels]
        elif apart and (first := next(table.batches, None)) is not None:
            table.batches = chain([first], table.batches)
            apart = [n for n in apart if not _fits(first.column(n), logits, table.decimal)]
    wanted = [name for name in table.names if name not in apart]
    if not wanted:
        reason = "there are no labels: every column is an id column"
        raise DataError(reason, source=table.source, arguments=["ids"])
    if labels is None:
        return apart, wanted
    if table.has_names:
        label_order(wanted, labels, "the decider", table.source, ["ids"])
        return apart, list(labels)
    if len(labels) != len(wanted):
        reason = f"the number of labels is {len(wanted)}: it must be {len(labels)}"
        raise DataError(reason, source=table.source)
    return apart, wanted


def _fits(column: Any, logits: bool, decimal: str) -> bool:
    """Return True if the values of a column may be probabilities (or logits), not only 0 and 1."""
    import pyarrow as pa

    try:
        values, wrong = as_numbers(column, decimal)
    except pa.ArrowInvalid:
        return False
    values = np.nan_to_num(values)
    in_range = (values >= -1e-6) & (values <= 1.0 + 1e-6)
    return not wrong.any() and bool((values % 1.0).any()) and (logits or bool(in_range.all()))


def _blocks(
    table: Table, labels: Sequence[str], ids: Sequence[str], logits: bool, strict: bool
) -> Iterator[Block]:
    import pyarrow as pa

    what = "a logit" if logits else "a probability"
    faults = Faults(table.source, strict, becomes="a probability of 0", remedies=("ids",))
    single = {pa.float32(), pa.float16()}
    for batch in table.batches:
        columns = batch.select(list(labels)).columns
        dtype = np.float32 if {column.type for column in columns} <= single else np.float64
        values = np.empty((batch.num_rows, len(labels)), dtype)  # (n, m)
        for j, (name, column) in enumerate(zip(labels, columns, strict=True)):
            try:
                values[:, j], _ = as_numbers(column, table.decimal)
            except pa.ArrowInvalid as error:
                raise DataError(
                    f"{error}; a column that is not a label must be an id column or be removed",
                    source=table.source,
                    column=name,
                    arguments=["ids"],
                ) from None
            missing = np.isnan(values[:, j])
            faults.add(name, column, missing, what)
            values[missing, j] = -np.inf if logits else 0.0
        if not logits:
            _check_range(values, labels, table.source, faults.rows)
        faults.next_batch(batch.num_rows, check_first=True)
        yield Block(values, pa.Table.from_batches([batch.select(list(ids))]) if ids else None)
    if faults.rows == 0:
        kept = pa.table({name: pa.array([], "string") for name in ids}) if ids else None
        yield Block(np.zeros((0, len(labels))), kept)
    faults.report(faults.rows)


def _check_range(values: Any, labels: Sequence[str], source: str, first: int) -> None:
    """Raise unless all values of some rows, from `first` on, are probabilities."""
    slack = tolerance(values)
    if not values.size or (values.min() >= -slack and values.max() <= 1.0 + slack):
        return
    row, column, value = first_entry(values, ~((values >= -slack) & (values <= 1.0 + slack)))
    hint, arguments = "a column that is not a label must be an id column", ["ids"]
    cells = values[:, column]
    if (cells != np.floor(cells)).any():  # integers are codes, not logits
        hint, arguments = f"{hint}; apply a sigmoid to logits", ["ids", "logits"]
    raise DataError(
        f"{value!s} is not a probability: probabilities must lie in [0, 1]; {hint}",
        source=source,
        row=first + row,
        column=labels[column],
        arguments=arguments,
    )
