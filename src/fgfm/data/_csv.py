"""Tables in text: CSV and TSV, with a header.

The standard library's reader knows on which line it is. Cells become numbers in blocks, so that a
wide table is never held as Python objects.
"""

from __future__ import annotations

import csv
import re
from array import array
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from fgfm.data._errors import bad, shown
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
from fgfm.data._text import MISSING, number, open_text, plain, write_text, written

__all__ = ["read_csv", "write_csv"]

_BLOCK = 1 << 18  # cells that are Python objects at a time
# numbers that are not written as `float` reads them: 0,53 and 1,500 and 1 234.5 and 5% and $5
_GAP = r"[.,' \u2019\u00a0\u202f]"
_MONEY = "[$€£¥]"
_SIGN = r"[+\-\u2212]?"
_NUMBERLIKE = re.compile(
    rf"{_SIGN}\s*{_MONEY}?\s*{_SIGN}"
    rf"(?:[0-9]+(?:[.,][0-9]*)?|[.,][0-9]+|[0-9]{{1,3}}(?:{_GAP}[0-9]{{3}})+(?:[.,][0-9]+)?)"
    rf"(?:[eE][+-]?[0-9]+)?\s*(?:%|{_MONEY})?"
)


def read_csv(path: Path, options: Options, delimiter: str) -> Table:
    """Read a table; the first line has the names of its columns."""
    source = str(path)
    with open_text(path, options.encoding, newline="") as text:
        records = _records(csv.reader(text, delimiter=delimiter, strict=True), source)
        first = next(records, None)
        if first is None:
            raise bad(path, "the file is empty")
        names = _header(first[1], options, source, first[0])
        check_names(names, source, line=first[0])
        columns = _Columns(source, names, options, delimiter)
        for line, cells in records:
            columns.add(line, cells)
    return columns.table()


def _header(cells: list[str], options: Options, source: str, line: int) -> list[str]:
    """Give the names of the columns; one without a name may be dropped by its number."""
    names = [name.strip(" \t") for name in cells]
    left_out = {*options.drop, *getattr(options.encoder, "dropped_", ())}
    for j, name in enumerate(names):
        if name:
            continue
        if str(j + 1) not in left_out or str(j + 1) in names:
            raise bad(
                source,
                "this column has no name: every column needs one; write the table without its "
                "index (index=False) and without a separator at the end of lines, or leave the "
                f"column out by its number, {j + 1}, with drop=[...]",
                line=line,
                column=j + 1,
            )
        names[j] = str(j + 1)
    return names


def _records(reader: Any, source: str) -> Iterator[tuple[int, list[str]]]:
    """Give each record and the line where it begins; empty lines are no records."""
    line = 1
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise bad(source, f"this is no table: {error}", line=line) from error
        if cells:
            yield line, cells
        line = reader.line_num + 1


class _Columns:
    """The columns of a table, as it is read."""

    def __init__(self, source: str, names: list[str], options: Options, delimiter: str) -> None:
        self.source, self.names, self.options = source, names, options
        self.p = len(names)
        self.label_columns: list[int] | None = None
        if self.p == 1 and any(mark in names[0] for mark in {*",;\t|"} - {delimiter}):
            raise bad(
                source,
                f"{shown(delimiter)} gives one column, {shown(names[0])}: give the file's own "
                "delimiter=...",
                line=1,
            )
        self.tags = tag_column(names, options, source)
        if self.tags is not None:
            if self.p == 1:
                raise bad(source, "the labels are the only column: there must be features")
        else:
            self.label_columns = select_labels(names, options, source)
        self.dropped = dropped(names, options, source)
        if self.label_columns is not None:
            self.label_columns = [j for j in self.label_columns if j not in self.dropped]
        remembered = set(getattr(options.encoder, "categorical_names_", ()))
        wanted = positions(names, options.categorical, source, "categorical= asks for")
        self.texts = {*wanted, *(j for j, name in enumerate(names) if name in remembered)}
        self.texts -= self.dropped
        self.special = {*self.texts, *self.dropped}
        if self.tags is not None:
            self.special.add(self.tags)
        self.codes: dict[int, dict[str, int]] = {j: {} for j in self.texts}
        self.first_number: dict[int, tuple[int, str]] = {}
        self.first_text: dict[int, tuple[int, str]] = {}
        self.lists: list[list[str]] = []
        self.lines = array("q")
        self.rows: list[list[str]] = []
        self.blocks: list[Any] = []
        self.size = max(1, _BLOCK // self.p)

    def add(self, line: int, cells: list[str]) -> None:
        if len(cells) != self.p:
            raise bad(
                self.source,
                f"there are {len(cells)} values: the header has {self.p} columns",
                line=line,
            )
        self.lines.append(line)
        self.rows.append(cells)
        if len(self.rows) == self.size:
            self.convert()

    def convert(self) -> None:
        """Make numbers of the rows at hand."""
        rows, self.rows = self.rows, []
        if not rows:
            return
        begin = len(self.lines) - len(rows)
        block = None
        easy = not self.special and not self.codes and self.options.decimal is None
        if easy and plain("".join(chain.from_iterable(rows))):
            try:
                block = np.array([list(map(float, row)) for row in rows])  # (k, p)
            except ValueError:  # a text, or an empty cell
                block = None
        if block is None:
            block = np.full((len(rows), self.p), np.nan)
            for j, cells in enumerate(zip(*rows, strict=True)):
                if j == self.tags:
                    for k, cell in enumerate(cells):
                        place = {"line": self.lines[begin + k], "column": self.names[j]}
                        self.lists.append(split_tags(cell, self.options, self.source, place))
                elif j not in self.dropped:
                    block[:, j] = self.column(j, cells, begin)
        else:
            for j in np.flatnonzero(~np.isnan(block).all(axis=0)).tolist():
                if j not in self.first_number:
                    k = int(np.argmax(~np.isnan(block[:, j])))
                    self.first_number[j] = (self.lines[begin + k], rows[k][j])
        infinite = np.isinf(block)
        if infinite.any():
            k, j = (int(i) for i in np.argwhere(infinite)[0])
            raise bad(
                self.source,
                f"{shown(rows[k][j])} is not a finite number: features must be",
                line=self.lines[begin + k],
                column=self.names[j],
            )
        self.blocks.append(block)

    def number(self, cell: str) -> float | None:
        """Give the number in a cell, NaN where it is missing, None where it is no number."""
        if self.options.decimal is None:
            return number(cell)
        return None if "." in cell else number(cell.replace(",", "."))

    def column(self, j: int, cells: Sequence[str], begin: int) -> Any:
        """Give the numbers of a column, or the codes of its texts."""
        codes = self.codes.get(j)
        easy = codes is None and j in self.first_number and self.options.decimal is None
        if easy and plain("".join(cells)):
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
            value = self.number(cell)
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
        """Give all that was read."""
        self.convert()
        if not self.lines:
            raise bad(self.source, "there are no rows after the header")
        self.refuse_mixed()
        self.refuse_numbers_as_texts()
        matrix = np.concatenate(self.blocks) if len(self.blocks) > 1 else self.blocks[0]
        self.blocks = []
        categories = {}
        for j, codes in self.codes.items():
            if j in self.dropped:
                continue
            texts = sorted(codes)
            new = np.empty(len(texts))
            new[[codes[text] for text in texts]] = np.arange(len(texts))
            known = ~np.isnan(matrix[:, j])
            matrix[known, j] = new[matrix[known, j].astype(np.intp)]
            categories[j] = tuple(texts)
        lines = np.frombuffer(self.lines, dtype=np.int64)
        table = Table(self.source, matrix, tuple(self.names), categories, lines)
        if self.label_columns is not None:
            table = cut_labels(table, self.label_columns)
        if self.tags is not None:
            table = tag_labels(self.lists, table, self.names[self.tags], self.options)
        gone = {self.names[j] for j in self.dropped}
        if self.tags is not None:
            gone.add(self.names[self.tags])
        assert table.names is not None
        return table.keep([j for j, name in enumerate(table.names) if name not in gone])

    def refuse_mixed(self) -> None:
        """Refuse columns of numbers with a text among them: which is it?"""
        labels = set(self.label_columns or ())
        for j in sorted(self.first_text.keys() & self.first_number.keys()):
            line, text = self.first_text[j]
            if j in labels:
                raise bad(
                    self.source,
                    f"the label is {shown(text)}: labels must be 0 or 1",
                    line=line,
                    column=self.names[j],
                )
            other, value = self.first_number[j]
            hint = ""
            if _NUMBERLIKE.fullmatch(text):
                hint = f"; {self.how_numbers_are()}"
            raise bad(
                self.source,
                f"{shown(text)} is not a number, and line {other} has {shown(value)}: a column "
                "has numbers or texts, unless categorical=[...] says that all of it is texts"
                + hint,
                line=line,
                column=self.names[j],
            )

    def how_numbers_are(self) -> str:
        """Say how numbers are written in a file that is read like this."""
        if self.options.decimal is not None:
            return "numbers are written as 1234,5 where decimal=',' is given"
        return "numbers are written as 1234.5, or as 1234,5 where decimal=',' says so"

    def refuse_numbers_as_texts(self) -> None:
        """Refuse columns whose texts all look like numbers: decimal commas, percents, money."""
        labels = set(self.label_columns or ())
        for j, (line, text) in sorted(self.first_text.items()):
            if j in labels or not all(map(_NUMBERLIKE.fullmatch, self.codes[j])):
                continue
            raise bad(
                self.source,
                f"{shown(text)} is not a number here, and every text of this column looks like "
                f"one: {self.how_numbers_are()}, without marks for thousands, money or percents; "
                "categorical=[...] takes them for texts",
                line=line,
                column=self.names[j],
            )


def _quoted(name: str, delimiter: str) -> str:
    # the standard library's writer leaves a carriage return as it is, and its reader stops there
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
    """Write a table: the features, then a column of 0 and 1 for each label."""
    with write_text(path) as text:
        names = [_quoted(name, delimiter) for name in (*feature_names, *label_names)]
        text.write(delimiter.join(names) + "\n")
        size = max(1, _BLOCK // X.shape[1])
        for begin in range(0, X.shape[0], size):
            block = X[begin : begin + size]
            block = block.toarray() if sparse.issparse(block) else block
            texts = iter(written(block.ravel()))
            labels = [()] * len(block) if Y is None else Y[begin : begin + size].tolist()
            for row in labels:
                cells = [*islice(texts, X.shape[1]), *map(str, row)]
                text.write(delimiter.join(cells) + "\n")  # numbers need no quotes
