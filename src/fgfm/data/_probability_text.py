"""CSV and TSV tables of probabilities, parsed in blocks of whole lines by pyarrow."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import re
import sys
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fgfm._utils.optional import import_optional
from fgfm._utils.text import quoted
from fgfm.data._errors import DataError
from fgfm.data._probability_tables import (
    ID_HINT,
    Block,
    Columns,
    ProbabilityTable,
    arrow_block,
)
from fgfm.data._text_files import is_gzip_name

__all__ = ["open_text_table"]

_BLOCK_BYTES = 1 << 22
_LONGEST_LINE = 1 << 26  # bytes
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.I)
_READ_ERRORS = (EOFError, OSError, zlib.error)


def open_text_table(
    path: Path | None,
    source: str,
    columns: Columns,
    delimiter: str,
    stack: contextlib.ExitStack,
) -> ProbabilityTable:
    """Open a table with a header; standard input if there is no path. `stack` closes the file."""
    pyarrow = import_optional("pyarrow", "reading tables of probabilities", "data")
    if path is None:
        if sys.stdin is None:
            raise DataError("it is closed: there must be a table to read", source=source)
        # Without Python's buffer, whose lock a blocked thread would hold until the exit.
        file: Any = _Unbuffered(io.FileIO(sys.stdin.fileno(), closefd=False))
    else:
        opener: Any = gzip.open if is_gzip_name(path) else open
        file = stack.enter_context(opener(path, "rb"))
    table = _TextTable(file, source, columns, delimiter)
    empty_ids = pyarrow.table({name: pyarrow.array([], pyarrow.string()) for name in table.ids})
    return ProbabilityTable(table.labels, table.blocks(pyarrow), empty_ids)


class _TextTable:
    """A table after its header has been read."""

    def __init__(self, file: Any, source: str, columns: Columns, delimiter: str) -> None:
        self.file, self.source, self.delimiter = file, source, delimiter
        self.names = self.read_header()
        self.labels, self.ids = columns.split(self.names, source)
        self.blank_rows = self.names == [columns.lists]  # empty label sets

    def error(
        self,
        reason: str,
        row: int,
        column: str | None = None,
        arguments: Sequence[str] = (),
    ) -> DataError:
        line = row + 2  # line 1 is the header
        return DataError(reason, source=self.source, line=line, column=column, arguments=arguments)

    def read_header(self) -> list[str]:
        """Return the names of the columns."""
        try:
            text = self.file.readline(_LONGEST_LINE).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            reason = f"it is not UTF-8: {error.reason}"
            raise DataError(reason, source=self.source, line=1) from None
        except _READ_ERRORS as error:
            raise DataError(f"it cannot be read: {error}", source=self.source) from None
        if not text.strip():
            raise DataError(
                "it is empty: its first line must have the names of the labels",
                source=self.source,
            )
        try:
            return next(csv.reader([text.rstrip("\r\n")], delimiter=self.delimiter))
        except csv.Error as error:
            reason = f"the header cannot be parsed: {error}"
            raise DataError(reason, source=self.source, line=1) from None

    def blocks(self, pyarrow: Any) -> Iterator[tuple[int, Block]]:
        """Yield the blocks, each with the number of its first row."""
        from pyarrow import csv as arrow_csv

        types = {name: pyarrow.float64() for name in self.labels}
        types |= {name: pyarrow.string() for name in self.ids}
        parse = arrow_csv.ParseOptions(delimiter=self.delimiter, ignore_empty_lines=False)
        convert = arrow_csv.ConvertOptions(
            column_types=types,
            include_columns=list(types),
            null_values=[""],
            strings_can_be_null=False,
        )
        first = 0
        for lines in self.whole_lines():
            read = arrow_csv.ReadOptions(
                column_names=self.names, block_size=len(lines) + 1, use_threads=False
            )
            try:
                table = arrow_csv.read_csv(pyarrow.BufferReader(lines), read, parse, convert)
            except pyarrow.ArrowInvalid as error:
                raise self.diagnose(lines, first, str(error)) from None
            if table.num_rows != lines.count(b"\n") + (not lines.endswith(b"\n")):
                raise self.diagnose(lines, first, "a row must be a line")
            yield first, arrow_block(pyarrow, table, self.labels, self.ids)
            first += table.num_rows

    def whole_lines(self) -> Iterator[bytes]:
        """Yield blocks of whole lines, without the empty lines at the end of the file."""
        rest = b""
        while True:
            try:
                part = self.file.read(_BLOCK_BYTES)
            except _READ_ERRORS as error:
                reason = f"it cannot be read to its end: {error}"
                raise DataError(reason, source=self.source) from None
            if not part:
                break
            if b"\r" in part or rest.endswith(b"\r"):
                part = (rest + part).replace(b"\r\n", b"\n")
                rest = b""
            part = rest + part
            cut = len(part.rstrip(b"\r\n"))  # empty lines are kept back: they may be the last
            cut = part.rfind(b"\n", 0, cut) + 1
            rest = part[cut:]
            if len(rest) > _LONGEST_LINE:
                reason = f"a line is longer than {_LONGEST_LINE} bytes"
                raise DataError(reason, source=self.source)
            if cut:
                yield part[:cut]
        rest = rest if self.blank_rows else rest.rstrip(b"\r\n")
        if rest:
            yield rest

    def diagnose(self, lines: bytes, first: int, message: str) -> DataError:
        """Return the error for the first invalid line of a block that could not be parsed."""
        numbers = set(self.labels)
        for row, raw in enumerate(
            lines.split(b"\n")[: lines.rstrip(b"\n").count(b"\n") + 1], start=first
        ):
            try:
                line = raw.decode()
            except UnicodeDecodeError as error:
                return self.error(f"it is not UTF-8: {error.reason}", row)
            if "\r" in line:
                return self.error("there is a carriage return within the line", row)
            try:
                fields = next(csv.reader([line], delimiter=self.delimiter), [])
            except csv.Error as error:
                return self.error(f"the row cannot be parsed: {error}", row)
            if len(fields) != len(self.names):
                found = "the line is empty" if not line else f"there are {len(fields)} values"
                return self.error(f"{found}: the header has {len(self.names)} columns", row)
            for name, value in zip(self.names, fields, strict=True):
                if name not in numbers or not value or _NUMBER.fullmatch(value.strip(" \t")):
                    continue
                reason = f"{quoted(value)} is not a number"
                if self.ids:
                    return self.error(reason, row, name)
                return self.error(f"{reason}; {ID_HINT}", row, name, ["ids"])
        last = first + lines.count(b"\n")
        reason = f"lines {first + 2} to {last + 2} cannot be parsed: {message}"
        return DataError(reason, source=self.source)


class _Unbuffered:
    """A file without a buffer, read in blocks of the requested size."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self._rest = b""

    def read(self, size: int) -> bytes:
        """Return `size` bytes, or the rest of the file."""
        parts, length = [self._rest], len(self._rest)
        while length < size and (part := self._raw.read(size - length)):
            parts.append(part)
            length += len(part)
        found = b"".join(parts)
        self._rest = found[size:]
        return found[:size]

    def readline(self, size: int) -> bytes:
        """Return the next line, or `size` bytes of it."""
        found = self._rest
        while b"\n" not in found and len(found) < size and (part := self._raw.read(1 << 16)):
            found += part
        end = found.find(b"\n") + 1 or len(found)
        self._rest = found[end:]
        return found[:end]
