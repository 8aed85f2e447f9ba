"""CSV and TSV, read in blocks and written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from fgfm._utils.text import quoted
from fgfm.data._block_reader import open_table
from fgfm.data._errors import DataError
from fgfm.data._label_columns import (
    add_tag_labels,
    dropped_columns,
    find_tag_column,
    select_labels,
    split_labels,
    split_tags,
)
from fgfm.data._numbers import MISSING, category_name, format_numbers
from fgfm.data._options import ReadOptions
from fgfm.data._row_buffer import RowBuffer
from fgfm.data._table import Table, check_names, column_positions, numbered_names
from fgfm.data._text_files import write_text
from fgfm.data._text_table import RowBlock, TextTable

__all__ = ["read_csv", "write_csv"]

_BLOCK = 1 << 18  # cells written at a time
# Numbers in notations that `float` does not read: 0,53 and 1,500 and 1 234.5 and 5% and $5.
_GAP = r"[.,' \u2019\u00a0\u202f]"
_CURRENCY = "[$€£¥]"
_SIGN = r"[+\-\u2212]?"
_NUMBERLIKE = re.compile(
    rf"{_SIGN}\s*{_CURRENCY}?\s*{_SIGN}"
    rf"(?:[0-9]+(?:[.,][0-9]*)?|[.,][0-9]+|[0-9]{{1,3}}(?:{_GAP}[0-9]{{3}})+(?:[.,][0-9]+)?)"
    rf"(?:[eE][+-]?[0-9]+)?\s*(?:%|{_CURRENCY})?"
)


def read_csv(path: Path, options: ReadOptions, format: str) -> Table:
    """Read a table; without a header its columns are x1, x2 and so on."""
    with open_table(path, format, **options.text_format._asdict()) as text:
        assert isinstance(text, TextTable)
        if options.header is False:
            text.names = [f"x{j + 1}" for j in range(text.p)]
        text.names = numbered_names(text.names, {*options.drop, *options.dropped_in_training})
        check_names(text.names, text.source, text.line, unnamed="drop")
        columns = _Columns(text, options)
        for block in text.blocks(columns.texts | set(columns.ids), columns.skipped):
            columns.add(block)
    return columns.table()


class _Columns:
    """The columns of a table while it is read."""

    def __init__(self, text: TextTable, options: ReadOptions) -> None:
        self.text, self.options = text, options
        self.names, self.source = text.names, text.source
        names, source = self.names, self.source
        if text.p == 1 and any(mark in names[0] for mark in {*",;\t|"} - {text.delimiter}):
            raise DataError(
                f"with the delimiter {quoted(text.delimiter)} there is one column, "
                f"{quoted(names[0])}: the file has another delimiter",
                source=source,
                line=text.line,
                arguments=["delimiter"],
            )
        self.label_columns: list[int] | None = None
        self.tags = find_tag_column(names, options, source)
        if self.tags is None:
            self.label_columns = select_labels(names, options, source)
        elif text.p == 1:
            reason = "the labels are the only column: there must be features"
            raise DataError(reason, source=source)
        dropped = dropped_columns(names, options, source)
        if self.label_columns is not None:
            self.label_columns = [j for j in self.label_columns if j not in dropped]
        where = column_positions(names, options.ids, source, arguments=["ids"])
        self.ids: dict[int, list[Any]] = {j: [] for j in where}  # their cells, in blocks
        self.skipped = dropped - set(where)
        self.dropped = dropped
        wanted = column_positions(names, options.categorical, source, arguments=["categorical"])
        self.texts = {*wanted, *(j for j in range(text.p) if names[j] in options.text_columns)}
        self.texts -= dropped
        if self.tags is not None:
            self.texts.add(self.tags)
        self.codes: dict[int, dict[str, int]] = {j: {} for j in self.texts - {self.tags}}
        self.first_number: dict[int, tuple[int, str]] = {}  # line and text, by column
        self.first_text: dict[int, tuple[int, str]] = {}
        self.lists: list[list[str]] = []
        self.lines: list[Any] = []
        self.rows = RowBuffer(text.p)

    def add(self, block: RowBlock) -> None:
        """Append some rows."""
        numbers = block.numbers
        for j, cells in block.others.items():
            if j in self.ids:
                self.ids[j].append(cells)
            if j == self.tags:
                self.add_lists(cells.to_pylist(), block.lines)
            elif j not in self.dropped:
                numbers[:, j] = self.encode(j, cells, block.lines)
        if len(self.first_number) + len(self.codes) + len(self.skipped) < self.text.p:
            for j in np.flatnonzero(~np.isnan(numbers).all(axis=0)).tolist():
                if j not in self.first_number and j not in block.others:
                    row = int(np.argmax(~np.isnan(numbers[:, j])))
                    text = category_name(numbers[row, j])
                    self.first_number[j] = (int(block.lines[row]), text)
        self.check_mixed_columns()
        infinite = np.isinf(numbers)
        if infinite.any():
            row, j = (int(i) for i in np.argwhere(infinite)[0])
            reason = f"{numbers[row, j]:g} is not a finite number: features must be finite"
            raise self.text.error(reason, int(block.lines[row]), j)
        self.lines.append(np.asarray(block.lines, dtype=np.int64))
        self.rows.append(numbers)

    def add_lists(self, cells: Sequence[str], lines: Any) -> None:
        """Append the label lists of some rows."""
        for row, cell in enumerate(cells):
            make_error = partial(self.text.error, line=int(lines[row]), j=self.tags)
            self.lists.append(split_tags(cell, self.options, make_error))

    def encode(self, j: int, cells: Any, lines: Any) -> Any:
        """Return the codes of the texts of a column; NaN if a value is missing."""
        encoded = cells.dictionary_encode()
        rows = np.asarray(encoded.indices)
        found = [text.strip() for text in encoded.dictionary.to_pylist()]
        parsed = [None if j in self.texts else self.text.parse(text) for text in found]
        first = np.unique(rows, return_index=True)[1].tolist()  # the row of each text
        are_numbers = j in self.ids and j not in self.codes and None not in parsed
        codes = {} if are_numbers else self.codes.setdefault(j, {})
        values = np.full(len(found), np.nan)
        for k, (text, number) in enumerate(zip(found, parsed, strict=True)):
            if text.lower() in MISSING or (number is not None and number != number):
                continue
            place = int(lines[first[k]]), text
            if number is not None:
                self.first_number.setdefault(j, place)
                values[k] = number
                continue
            values[k] = codes.setdefault(text, len(codes))
            if j not in self.texts:
                self.first_text.setdefault(j, place)
        return values[rows]

    def table(self) -> Table:
        """Return the table of all rows."""
        if not self.rows.rows:
            raise DataError("there are no rows after the header", source=self.source)
        self.check_numberlike_texts()
        matrix = self.rows.array()  # (n, p)
        categories = {}
        for j, codes in self.codes.items():
            texts = sorted(codes)
            rank = np.empty(len(texts))  # of each code, in alphabetical order
            rank[[codes[text] for text in texts]] = np.arange(len(texts))
            present = ~np.isnan(matrix[:, j])
            matrix[present, j] = rank[matrix[present, j].astype(np.intp)]
            categories[j] = tuple(texts)
        lines = np.concatenate(self.lines)
        table = Table(
            self.source, matrix, tuple(self.names), categories, lines, ids=self.id_columns()
        )
        removed = {self.names[j] for j in self.dropped}
        if self.label_columns is not None:
            table = split_labels(table, self.label_columns)
        if self.tags is not None:
            tag_name = self.names[self.tags]
            table = add_tag_labels(self.lists, table, tag_name, self.options)
            removed.add(tag_name)
        return table.without(removed)

    def id_columns(self) -> Any:
        """Return the cells of the id columns, None if there are none."""
        if not self.ids:
            return None
        import pyarrow

        return pyarrow.table(
            {self.names[j]: pyarrow.chunked_array(cells) for j, cells in self.ids.items()}
        )

    def check_mixed_columns(self) -> None:
        """Raise if a column has both numbers and texts."""
        for j in sorted(self.first_text.keys() & self.first_number.keys()):
            line, text = self.first_text[j]
            if j in (self.label_columns or ()):
                reason = f"the label is {quoted(text)}: labels must be 0 or 1"
                raise self.text.error(reason, line, j)
            other, value = self.first_number[j]
            numberlike = _NUMBERLIKE.fullmatch(text)
            raise self.text.error(
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
                raise self.text.error(
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
