"""CSV and TSV with a header.

The reader of the standard library reports line numbers. Cells are converted to numbers in blocks,
so that a large table is never held as Python objects.
"""

from __future__ import annotations

import csv
import re
from array import array
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from fgfm._utils.optional import import_optional
from fgfm._utils.text import quoted
from fgfm.data._errors import DataError
from fgfm.data._label_columns import (
    add_tag_labels,
    dropped_columns,
    find_tag_column,
    select_labels,
    split_labels,
    split_tags,
)
from fgfm.data._numbers import MISSING, format_numbers, is_plain, parse_number
from fgfm.data._options import ReadOptions
from fgfm.data._table import Table, check_names, column_positions
from fgfm.data._text_files import open_text, write_text

__all__ = ["read_csv", "read_csv_blocks", "write_csv"]

_BLOCK = 1 << 18  # cells held as Python objects at a time
# Numbers in notations that `float` does not read: 0,53 and 1,500 and 1 234.5 and 5% and $5.
_GAP = r"[.,' \u2019\u00a0\u202f]"
_CURRENCY = "[$€£¥]"
_SIGN = r"[+\-\u2212]?"
_NUMBERLIKE = re.compile(
    rf"{_SIGN}\s*{_CURRENCY}?\s*{_SIGN}"
    rf"(?:[0-9]+(?:[.,][0-9]*)?|[.,][0-9]+|[0-9]{{1,3}}(?:{_GAP}[0-9]{{3}})+(?:[.,][0-9]+)?)"
    rf"(?:[eE][+-]?[0-9]+)?\s*(?:%|{_CURRENCY})?"
)


def read_csv(path: Path, options: ReadOptions, delimiter: str) -> Table:
    """Read a table; its first line has the names of the columns."""
    return next(read_csv_blocks(path, options, delimiter))


def read_csv_blocks(
    path: Path, options: ReadOptions, delimiter: str, rows: int | None = None
) -> Iterator[Table]:
    """Yield tables of some rows each; of all rows by default."""
    source = str(path)
    with open_text(path, options.encoding, newline="") as text:
        records = _records(csv.reader(text, delimiter=delimiter, strict=True), source)
        first = next(records, None)
        if first is None:
            raise DataError("the file is empty", source=source)
        names = _header(first[1], options, source, first[0])
        check_names(names, source, line=first[0])
        columns = _Columns(source, names, options, delimiter)
        is_first = True
        for line, cells in records:
            if len(columns.lines) == rows:
                yield columns.table()
                columns, is_first = _Columns(source, names, options, delimiter), False
            columns.add(line, cells)
    if is_first or columns.lines:
        yield columns.table()


def _header(cells: list[str], options: ReadOptions, source: str, line: int) -> list[str]:
    """Return the names of the columns; a column without a name may be dropped by its number."""
    names = [name.strip(" \t") for name in cells]
    dropped = {*options.drop, *options.dropped_in_training}
    for j, name in enumerate(names):
        if name:
            continue
        if str(j + 1) not in dropped or str(j + 1) in names:
            raise DataError(
                "this column has no name: every column needs one; write the table without its "
                "index (index=False) and without a separator at the end of lines, or drop the "
                f"column by its number, {j + 1}",
                source=source,
                line=line,
                column=j + 1,
                arguments=["drop"],
            )
        names[j] = str(j + 1)
    return names


def _records(reader: Any, source: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the first line and the cells of each record; empty lines are skipped."""
    line = 1
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            reason = f"the table cannot be parsed: {error}"
            raise DataError(reason, source=source, line=line) from error
        if cells:
            yield line, cells
        line = reader.line_num + 1


class _Columns:
    """The columns of a table while it is read."""

    def __init__(
        self, source: str, names: list[str], options: ReadOptions, delimiter: str
    ) -> None:
        self.source, self.names, self.options = source, names, options
        self.p = len(names)
        if self.p == 1 and any(mark in names[0] for mark in {*",;\t|"} - {delimiter}):
            raise DataError(
                f"with the delimiter {quoted(delimiter)} there is one column, {quoted(names[0])}: "
                "the file has another delimiter",
                source=source,
                line=1,
                arguments=["delimiter"],
            )
        self.label_columns: list[int] | None = None
        self.tags = find_tag_column(names, options, source)
        if self.tags is None:
            self.label_columns = select_labels(names, options, source)
        elif self.p == 1:
            reason = "the labels are the only column: there must be features"
            raise DataError(reason, source=source)
        self.dropped = dropped_columns(names, options, source)
        if self.label_columns is not None:
            self.label_columns = [j for j in self.label_columns if j not in self.dropped]
        wanted = column_positions(names, options.categorical, source, arguments=["categorical"])
        self.texts = {*wanted, *(j for j in range(self.p) if names[j] in options.text_columns)}
        self.texts -= self.dropped
        self.all_numbers = not (self.texts or self.dropped or self.tags is not None)
        self.codes: dict[int, dict[str, int]] = {j: {} for j in self.texts}
        self.first_number: dict[int, tuple[int, str]] = {}  # line and text, by column
        self.first_text: dict[int, tuple[int, str]] = {}
        self.id_columns = column_positions(names, options.ids, source, arguments=["ids"])
        self.ids: list[list[str]] = []
        self.lists: list[list[str]] = []
        self.lines = array("q")
        self.rows: list[list[str]] = []
        self.blocks: list[Any] = []
        self.size = max(1, _BLOCK // self.p)

    def error(
        self, reason: str, line: int, j: int | None = None, arguments: Sequence[str] = ()
    ) -> DataError:
        name = None if j is None else self.names[j]
        return DataError(reason, source=self.source, line=line, column=name, arguments=arguments)

    def add(self, line: int, cells: list[str]) -> None:
        if len(cells) != self.p:
            reason = f"there are {len(cells)} values: the header has {self.p} columns"
            raise self.error(reason, line)
        self.lines.append(line)
        self.rows.append(cells)
        if self.id_columns:
            self.ids.append([cells[j] for j in self.id_columns])
        if len(self.rows) == self.size:
            self.convert()

    def convert(self) -> None:
        """Convert the rows read since the last call to a block of numbers."""
        rows, self.rows = self.rows, []
        if not rows:
            return
        begin = len(self.lines) - len(rows)
        block = self.convert_numbers(rows, begin)
        if block is None:
            block = np.full((len(rows), self.p), np.nan)  # (k, p)
            for j, cells in enumerate(zip(*rows, strict=True)):
                if j == self.tags:
                    self.add_lists(cells, begin)
                elif j not in self.dropped:
                    block[:, j] = self.convert_column(j, cells, begin)
        infinite = np.isinf(block)
        if infinite.any():
            k, j = (int(i) for i in np.argwhere(infinite)[0])
            reason = f"{quoted(rows[k][j])} is not a finite number: features must be finite"
            raise self.error(reason, self.lines[begin + k], j)
        self.blocks.append(block)

    def convert_numbers(self, rows: list[list[str]], begin: int) -> Any:
        """Return a block in which every cell is a number, None if some cell is not: the fast path.

        The lines of the first numbers are noted for the error messages of later blocks.
        """
        if not self.all_numbers or self.codes or self.options.decimal == ",":
            return None
        if not is_plain("".join(chain.from_iterable(rows))):
            return None
        try:
            block = np.array([list(map(float, row)) for row in rows])  # (k, p)
        except ValueError:  # a text or an empty cell
            return None
        for j in np.flatnonzero(~np.isnan(block).all(axis=0)).tolist():
            if j not in self.first_number:
                k = int(np.argmax(~np.isnan(block[:, j])))
                self.first_number[j] = (self.lines[begin + k], rows[k][j])
        return block

    def add_lists(self, cells: Sequence[str], begin: int) -> None:
        """Append the label lists of some rows."""
        for k, cell in enumerate(cells):
            make_error = partial(self.error, line=self.lines[begin + k], j=self.tags)
            self.lists.append(split_tags(cell, self.options, make_error))

    def parse(self, cell: str) -> float | None:
        """Return the number in a cell, NaN if it is missing, None if it is not a number."""
        if self.options.decimal == ".":
            return parse_number(cell)
        return None if "." in cell else parse_number(cell.replace(",", "."))

    def convert_column(self, j: int, cells: Sequence[str], begin: int) -> Any:
        """Return the numbers of a column, or the codes of its texts."""
        codes = self.codes.get(j)
        numeric = codes is None and j in self.first_number and self.options.decimal == "."
        if numeric and is_plain("".join(cells)):
            try:
                return np.array(list(map(float, cells)))
            except ValueError:
                pass
        values = np.full(len(cells), np.nan)
        for k, cell in enumerate(cells):
            if j in self.texts:
                text = cell.strip()
                if text.lower() not in MISSING:
                    values[k] = self.codes[j].setdefault(text, len(self.codes[j]))
                continue
            value = self.parse(cell)
            if value is not None:
                values[k] = value
                if value == value and j not in self.first_number:
                    self.first_number[j] = (self.lines[begin + k], cell)
                continue
            if codes is None:
                codes = self.codes.setdefault(j, {})
            text = cell.strip()
            self.first_text.setdefault(j, (self.lines[begin + k], text))
            values[k] = codes.setdefault(text, len(codes))
        return values

    def table(self) -> Table:
        """Return the table of all rows."""
        self.convert()
        if not self.lines:
            raise DataError("there are no rows after the header", source=self.source)
        self.check_mixed_columns()
        self.check_numberlike_texts()
        matrix = np.concatenate(self.blocks) if len(self.blocks) > 1 else self.blocks[0]  # (n, p)
        self.blocks = []
        categories = {}
        for j, codes in self.codes.items():
            if j in self.dropped:
                continue
            texts = sorted(codes)
            rank = np.empty(len(texts))  # of each code, in alphabetical order
            rank[[codes[text] for text in texts]] = np.arange(len(texts))
            present = ~np.isnan(matrix[:, j])
            matrix[present, j] = rank[matrix[present, j].astype(np.intp)]
            categories[j] = tuple(texts)
        lines = np.frombuffer(self.lines, dtype=np.int64)
        table = Table(
            self.source, matrix, tuple(self.names), categories, lines, ids=self.id_table()
        )
        removed = {self.names[j] for j in self.dropped}
        if self.label_columns is not None:
            table = split_labels(table, self.label_columns)
        if self.tags is not None:
            tag_name = self.names[self.tags]
            table = add_tag_labels(self.lists, table, tag_name, self.options)
            removed.add(tag_name)
        return table.without(removed)

    def id_table(self) -> Any:
        """Return the cells of the id columns as they are, None if there are none."""
        if not self.id_columns:
            return None
        pyarrow = import_optional("pyarrow", "reading id columns", "data")
        return pyarrow.table(
            {
                self.names[j]: pyarrow.array([row[k] for row in self.ids], pyarrow.string())
                for k, j in enumerate(self.id_columns)
            }
        )

    def check_mixed_columns(self) -> None:
        """Raise if a column has both numbers and texts."""
        for j in sorted(self.first_text.keys() & self.first_number.keys()):
            line, text = self.first_text[j]
            if j in (self.label_columns or ()):
                reason = f"the label is {quoted(text)}: labels must be 0 or 1"
                raise self.error(reason, line, j)
            other, value = self.first_number[j]
            numberlike = _NUMBERLIKE.fullmatch(text)
            raise self.error(
                f"{quoted(text)} is not a number, and line {other} has {quoted(value)}: a column "
                "must have either numbers or texts, unless it is declared categorical"
                + (f"; {self.number_notation()}" if numberlike else ""),
                line,
                j,
                ["categorical", "decimal"] if numberlike else ["categorical"],
            )

    def number_notation(self) -> str:
        """Return the sentence on how numbers must be written."""
        if self.options.decimal == ",":
            return "numbers are written as 1234,5 with a decimal comma"
        return "numbers are written as 1234.5, or as 1234,5 with a decimal comma"

    def check_numberlike_texts(self) -> None:
        """Raise if all texts of a column look like numbers: decimal commas, percents, prices."""
        for j, (line, text) in sorted(self.first_text.items()):
            if j in (self.label_columns or ()):
                continue
            if all(map(_NUMBERLIKE.fullmatch, self.codes[j])):
                raise self.error(
                    f"{quoted(text)} is not a number, although every text of this column looks "
                    f"like one: {self.number_notation()}, without thousands separators, currency "
                    "signs or percent signs; declare the column categorical to keep the texts",
                    line,
                    j,
                    ["decimal", "categorical"],
                )


def _quoted_name(name: str, delimiter: str) -> str:
    # csv.writer does not quote a carriage return, at which csv.reader stops.
    if not any(mark in name for mark in (delimiter, '"', "\r", "\n")):
        return name
    return '"' + name.replace('"', '""') + '"'


def write_csv(
    path: Any,
    X: Any,
    Y: Any,
    feature_names: Sequence[str],
    label_names: Sequence[str],
    delimiter: str,
) -> None:
    """Write the features and one 0/1 column for each label."""
    with write_text(path) as text:
        names = [_quoted_name(name, delimiter) for name in (*feature_names, *label_names)]
        text.write(delimiter.join(names) + "\n")
        size = max(1, _BLOCK // X.shape[1])
        for begin in range(0, X.shape[0], size):
            block = X[begin : begin + size]
            block = block.toarray() if sparse.issparse(block) else block
            texts = iter(format_numbers(block.ravel()))
            labels = [()] * len(block) if Y is None else Y[begin : begin + size].tolist()
            for row in labels:
                cells = [*islice(texts, X.shape[1]), *map(str, row)]
                text.write(delimiter.join(cells) + "\n")  # numbers need no quotes
