"""Files as streams of bytes: standard input, gzip, encodings; and how CSV is written."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TextIO

from fgfm._utils.text import quoted
from fgfm._utils.validation import check_choice, check_flag
from fgfm.io._errors import DataError


class TextFormat(NamedTuple):
    """How text files are written: the delimiter and header are those of CSV."""

    delimiter: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    header: bool | None = None

    def check(self) -> TextFormat:
        """Return this, or raise if an option is not valid."""
        if self.delimiter is not None and (
            len(self.delimiter) != 1 or self.delimiter in '"\r\n' or not self.delimiter.isascii()
        ):
            raise ValueError(f"delimiter is {self.delimiter!r}: it must be one character")
        check_choice(self.decimal, "decimal", (".", ","))
        if self.header is not None:
            check_flag(self.header, "header")
        if self.decimal == self.delimiter:
            raise ValueError("decimal and delimiter are both ',': they must differ")
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            raise ValueError(
                f"encoding is {self.encoding!r}: it must be the name of an encoding, such as "
                "utf-8 or latin-1"
            ) from None
        return self


def source_name(path: str | os.PathLike[str]) -> str:
    """Return the name of a file in messages."""
    return "standard input" if os.fspath(path) == "-" else os.fspath(path)


@contextmanager
def open_bytes(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file, decompressed if it is gzip; "-" is standard input, which is not closed."""
    if os.fspath(path) == "-":
        if sys.stdin is None:
            raise DataError("it is closed: there must be a file to read", source="standard input")
        yield sys.stdin.buffer
        return
    source = Path(path)
    if source.is_dir():
        raise DataError("it is a folder: it must be a file", source=path)
    if not source.exists():
        raise DataError("it does not exist", source=path)
    try:
        with source.open("rb") as file:
            is_gzip = file.peek(2)[:2] == b"\x1f\x8b"
            yield gzip.GzipFile(fileobj=file) if is_gzip else file  # type: ignore[misc]
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"its gzip data are damaged: {error}", source=path) from error


@contextmanager
def open_text(path: str | os.PathLike[str], encoding: str) -> Iterator[TextIO]:
    """Open a text file, decompressed if it is gzip, without the mark at its beginning."""
    marked = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
    with open_bytes(path) as file:
        try:
            yield io.TextIOWrapper(file, encoding=marked)
        except UnicodeDecodeError as error:
            raise bad_encoding(encoding, path) from error


def bad_encoding(encoding: str, path: Any) -> DataError:
    """Return the error for a text in another encoding."""
    reason = f"this is not {encoding} text: the file has another encoding"
    return DataError(reason, source=source_name(path), arguments=["encoding"])


class Chained(io.RawIOBase):
    """A stream whose first bytes have been read already."""

    def __init__(self, head: bytes, rest: Any) -> None:
        self._head, self._rest = io.BytesIO(head), rest

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read up to the length of the buffer."""
        part = self._head.read(len(buffer)) or self._rest.read(len(buffer))
        buffer[: len(part)] = part
        return len(part)


def check_names(names: Sequence[str], source: str) -> None:
    """Raise if the name of a column is empty or occurs twice."""
    seen = set()
    for j, name in enumerate(names):
        if not name:
            reason = f"column {j + 1} has no name: every column must have one"
            raise DataError(reason, source=source, arguments=["header"])
        if name in seen:
            reason = f"two columns are called {quoted(name)}: names must be unique"
            raise DataError(reason, source=source)
        seen.add(name)
