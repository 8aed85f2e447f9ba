"""CSV and TSV, read in blocks of rows.

pyarrow parses a block. The standard library parses blocks that pyarrow refuses, so that an error
names the line and the column, and tables of very many columns, each of which costs pyarrow time.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice, pairwise, product
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm._utils.optional import import_optional
from fgfm._utils.text import quoted
from fgfm.data._errors import DataError
from fgfm.data._formats import default_delimiter
from fgfm.data._numbers import MISSING, parse_number
from fgfm.data._options import TextFormat
from fgfm.data._text_files import open_utf8

__all__ = ["RowBlock", "TextTable", "open_text_table"]

_BLOCK_BYTES = 1 << 22
_LONGEST_ROW = 1 << 26  # bytes
_WIDE = 1 << 10  # columns
_WIDE_BLOCK_BYTES = 1 << 20  # whose cells are Python objects
_DELIMITERS = ",;\t|"
_BOM = b"\xef\xbb\xbf"
_MISSING_SPELLINGS = [
    "".join(letters)
    for text in sorted(MISSING)
    for letters in product(*(sorted({c, c.upper()}) for c in text))
]

# An empty line is nothing; an error, except at the end; or a row of one empty cell.
_Blank = Literal["skip", "refuse", "row"]


class RowBlock(NamedTuple):
    """Some rows of a table."""

    first: int  # the number of the first row, from 0
    lines: Any  # the line of a text file in which each row begins, or None
    numbers: npt.NDArray[Any]  # (n, p), NaN if a value is missing, and in the columns of `others`
    others: dict[int, Any]  # pyarrow arrays of the other columns; texts as they are in the file


@contextmanager
def open_text_table(
    path: Path | None, format: str, text: TextFormat, blank: _Blank = "skip"
) -> Iterator[TextTable]:
    """Open a table in CSV or TSV; standard input if there is no path."""
    with open_utf8(path, text.encoding) as read:
        yield TextTable(
            read,
            "standard input" if path is None else str(path),
            delimiter=text.delimiter or default_delimiter(format),
            detect=text.delimiter is None,
            decimal=text.decimal,
            header=text.header,
            blank=blank,
        )


class TextTable:
    """A table in text, whose header has been read: `names`, in `line`; numbers without a header.

    `read` returns the next bytes of UTF-8 text, as many as requested unless the text ends. With
    `detect`, another delimiter is used if the header and the first row have only that one.
    """

    def __init__(
        self,
        read: Callable[[int], bytes],
        source: str,
        *,
        delimiter: str = ",",
        detect: bool = False,
        decimal: str = ".",
        header: bool | None = None,
        blank: _Blank = "skip",
    ) -> None:
        self._pa = import_optional("pyarrow", "reading CSV", "data")
        self.source, self.delimiter, self.decimal, self.blank = source, delimiter, decimal, blank
        self._read = read
        self._rest = b""  # read, but not parsed
        self._line = 1  # of the first byte of the rest
        self._ended = False
        self._blank_line: int | None = None
        self._skipped: frozenset[int] = frozenset()
        self.p = 0
        self._fill()
        self._rest = self._rest.removeprefix(_BOM)
        if detect:
            self.delimiter = self._detected_delimiter()
        self.line, cells, used = self._first_record()
        self.names = [name.strip(" \t") for name in cells]
        if header is False:
            self.names = [str(j) for j in range(len(cells))]
        elif header is None and _are_values(self.names):
            raise self.error(
                f"the first row, {quoted(self.delimiter.join(cells), 30)}, has only numbers: "
                "declare whether it is a header, the names of the columns, or a row of values",
                self.line,
                arguments=["header"],
            )
        else:
            self._rest = self._rest[len("".join(used).encode()) :]
            self._line += len(used)
        self.p = len(self.names)

    def error(
        self, reason: str, line: int, j: int | None = None, arguments: Sequence[str] = ()
    ) -> DataError:
        """Return the error for a line, and for one of its columns."""
        name = None if j is None else self.names[j]
        return DataError(reason, source=self.source, line=line, column=name, arguments=arguments)

    def _fill(self) -> None:
        """Read a block of bytes."""
        part = self._read(_BLOCK_BYTES if self.p < _WIDE else _WIDE_BLOCK_BYTES)
        self._ended = not part
        self._rest += part

    def _text(self, end: int) -> str:
        """Return the first bytes of the rest as text."""
        try:
            return self._rest[:end].decode()
        except UnicodeDecodeError as error:
            raise self.error(
                "this is not utf-8 text: the file has another encoding",
                self._line + self._rest.count(b"\n", 0, error.start),
                arguments=["encoding"],
            ) from None

    def _first_record(self) -> tuple[int, list[str], list[str]]:
        """Return the line and the cells of the first row, and the lines up to its end."""
        while True:
            end = len(self._rest) if self._ended else self._rest.rfind(b"\n") + 1
            used: list[str] = []

            def lines(text: str, used: list[str]) -> Iterator[str]:
                for line in io.StringIO(text, newline=""):
                    used.append(line)
                    yield line

            reader = csv.reader(
                lines(self._text(end), used), delimiter=self.delimiter, strict=True
            )
            before = 0
            try:
                for cells in reader:
                    if cells:
                        return before + 1, cells, used
                    before = reader.line_num
            except csv.Error as error:
                if self._ended or reader.line_num < self._rest.count(b"\n", 0, end):
                    reason = f"the header cannot be parsed: {error}"
                    raise self.error(reason, before + 1) from None
            if self._ended:
                raise DataError("the file is empty", source=self.source)
            self._check_length()
            self._fill()

    def _detected_delimiter(self) -> str:
        """Return the delimiter: another if the first two lines have only that one."""
        while not self._ended and b"\n" not in self._rest:
            self._check_length()
            self._fill()
        end = len(self._rest) if self._ended else self._rest.rfind(b"\n") + 1
        lines = io.StringIO(self._text(end), newline="")
        rows = list(islice(filter(str.strip, lines), 2))
        marks = _DELIMITERS.replace(self.decimal, "")
        found = [mark for mark in marks if rows and mark in rows[0]]
        if self.delimiter in found or len(found) != 1:
            return self.delimiter
        try:
            widths = {len(cells) for cells in csv.reader(rows, delimiter=found[0], strict=True)}
        except csv.Error:
            return self.delimiter
        return found[0] if len(widths) == 1 else self.delimiter

    def _check_length(self) -> None:
        if len(self._rest) > _LONGEST_ROW:
            reason = f"a row is longer than {_LONGEST_ROW} bytes: a quote may be missing"
            raise self.error(reason, self._line)

    def blocks(
        self, texts: Collection[int] = (), skipped: Collection[int] = ()
    ) -> Iterator[RowBlock]:
        """Yield the rows after the header, with NaN in the columns to skip.

        The cells of `texts` are texts, also if they look like numbers. Any other column is one of
        them from the first block on in which it has a text.
        """
        self._skipped = frozenset(skipped)
        text_columns = {*texts, *skipped}
        first = 0
        while True:
            end = len(self._rest) if self._ended else self._rest.rfind(b"\n") + 1
            if end:
                block = self._parse(end, text_columns, first)
                if block is not None:
                    yield block
                    first += len(block.numbers)
            if self._ended:
                return
            self._check_length()
            self._fill()

    def _parse(self, end: int, texts: set[int], first: int) -> RowBlock | None:
        """Parse the rows of the first bytes of the rest, and remove them from it."""
        part = self._rest[:end]
        if not part.isascii():
            self._text(end)  # raises unless it is UTF-8
        is_fast = self.p < _WIDE and self.delimiter.isascii()
        plain = _plain_lines(part, self.delimiter) if is_fast else None
        block = None if plain is None else self._parse_plain(plain, texts, first)
        if block is not None:
            self._rest = self._rest[end:]
            self._line += len(block.numbers)
            return block
        del plain
        rows, lines, rest = self._records(part.decode())
        self._rest = rest.encode() + self._rest[end:]
        return self._convert(rows, lines, texts, first) if rows else None

    def _parse_plain(self, part: bytes, texts: set[int], first: int) -> RowBlock | None:
        """Return a block in which a row is a line; None if pyarrow refuses it."""
        from pyarrow import csv as arrow_csv

        pa = self._pa
        names = [str(j) for j in range(self.p)]
        types = {name: pa.string() if j in texts else pa.float64() for j, name in enumerate(names)}
        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(part),
                arrow_csv.ReadOptions(
                    column_names=names, block_size=len(part) + 1, use_threads=False
                ),
                arrow_csv.ParseOptions(delimiter=self.delimiter),
                arrow_csv.ConvertOptions(
                    column_types=types,
                    null_values=_MISSING_SPELLINGS,
                    strings_can_be_null=False,
                    decimal_point=self.decimal,
                ),
            )
        except pa.ArrowInvalid:
            return None
        # pyarrow skips empty lines: as many rows as lines means that there are none, and that no
        # row has several lines.
        n = table.num_rows
        lines = part.count(b"\n") + (not part.endswith(b"\n"))
        if n != lines or self._blank_line is not None:
            return None
        numbers = np.empty((n, self.p))  # (n, p)
        others: dict[int, Any] = {}
        for j in range(self.p):
            if j not in texts:
                numbers[:, j] = table.column(j).to_numpy()  # null becomes NaN
                continue
            numbers[:, j] = np.nan
            if j not in self._skipped:
                others[j] = table.column(j).combine_chunks()
        nulls = sum(table.column(j).null_count for j in range(self.p) if j not in texts)
        if np.count_nonzero(np.isnan(numbers)) > nulls + n * len(texts):
            return None  # pyarrow reads nan(x) as NaN
        return RowBlock(first, range(self._line, self._line + n), numbers, others)

    def _records(self, text: str) -> tuple[list[list[str]], list[int], str]:
        """Return the complete rows of a text, their lines, and the rest of the text."""
        pieces = list(io.StringIO(text, newline=""))
        reader = csv.reader(pieces, delimiter=self.delimiter, strict=True)
        rows: list[list[str]] = []
        lines: list[int] = []
        used, start = 0, self._line
        while True:
            try:
                cells = next(reader)
            except StopIteration:
                break
            except csv.Error as error:
                if reader.line_num == len(pieces) and not self._ended:
                    break  # a quoted cell continues in the next block
                reason = f"the table cannot be parsed: {error}"
                raise self.error(reason, start + used) from None
            line, used = start + used, reader.line_num
            if not cells and self.blank != "row":
                if self.blank == "refuse" and self._blank_line is None:
                    self._blank_line = line
                continue
            if self._blank_line is not None:
                reason = f"the line is empty: the header has {self.p} columns"
                raise self.error(reason, self._blank_line)
            cells = cells or [""]
            if len(cells) != self.p:
                reason = f"there are {len(cells)} values: the header has {self.p} columns"
                raise self.error(reason, line)
            rows.append(cells)
            lines.append(line)
        self._line += used
        return rows, lines, "".join(pieces[used:])

    def _convert(
        self, rows: list[list[str]], lines: list[int], texts: set[int], first: int
    ) -> RowBlock:
        """Return rows of cells as a block; columns in which there is a text are added to texts."""
        columns = [j for j in range(self.p) if j not in texts]
        if not texts:
            cells = list(chain.from_iterable(rows))
        else:
            cells = [row[j] for row in rows for j in columns]
        values = self._cast(cells) if self.decimal == "." else None
        numbers = np.full((len(rows), self.p), np.nan)  # (n, p)
        if values is not None and not texts:
            numbers = values.reshape(len(rows), self.p)
        elif values is not None:
            numbers[:, columns] = values.reshape(len(rows), len(columns))
        else:
            for j in columns:
                parsed = [self.parse(row[j]) for row in rows]
                if None in parsed:
                    texts.add(j)
                else:
                    numbers[:, j] = parsed
        others = {
            j: self._pa.array([row[j] for row in rows], "string")
            for j in sorted(texts - self._skipped)
        }
        is_range = lines[-1] - lines[0] == len(lines) - 1
        at = range(lines[0], lines[-1] + 1) if is_range else np.array(lines)
        return RowBlock(first, at, numbers, others)

    def _cast(self, cells: list[str]) -> npt.NDArray[np.float64] | None:
        """Return cells as numbers, None if one is neither a number nor missing."""
        import pyarrow.compute as pc

        array = self._pa.array(cells, "string")
        for missing_too in (False, True):
            if missing_too:
                array = pc.utf8_trim_whitespace(array)
                missing = pc.is_in(array, value_set=self._pa.array(_MISSING_SPELLINGS))
                array = pc.if_else(missing, self._pa.scalar(None, "string"), array)
            try:
                found = array.cast(self._pa.float64())
            except self._pa.ArrowInvalid:
                continue
            values = np.asarray(found.to_numpy(zero_copy_only=False))
            if np.count_nonzero(np.isnan(values)) == found.null_count:
                return values
        return None

    def parse(self, cell: str) -> float | None:
        """Return the number in a cell, NaN if it is missing, None if it is not a number."""
        if self.decimal == ".":
            return parse_number(cell)
        return None if "." in cell else parse_number(cell.replace(",", "."))


def _are_values(names: Sequence[str]) -> bool:
    """Return True if all names are numbers, unless these ascend as the numbers of columns do."""
    if not all(name and parse_number(name) is not None for name in names):
        return False
    if all(name.lower() in MISSING for name in names):
        return False
    if len(names) < 3 or not all(name.isdigit() for name in names):
        return True
    numbers = list(map(int, names))
    return any(a >= b for a, b in pairwise(numbers))


def _plain_lines(part: bytes, delimiter: str) -> bytes | None:
    """Return text without carriage returns; None if there are others, or irregular quotes."""
    if b"\r" in part:
        part = part.replace(b"\r\n", b"\n")
        if b"\r" in part:
            return None
    if b'"' not in part:
        return part
    # Quotes open after a delimiter and close before one; others inside are doubled.
    text = np.frombuffer(b"\n" + part + b"\n", dtype=np.uint8)
    at = np.flatnonzero(text == ord('"'))
    marks = np.frombuffer(b'"\n', dtype=np.uint8)
    marks = np.append(marks, ord(delimiter))
    regular = (
        len(at) % 2 == 0
        and np.isin(text[at[::2] - 1], marks).all()
        and np.isin(text[at[1::2] + 1], marks).all()
    )
    return part if regular else None
