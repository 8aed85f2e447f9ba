"""Files: their formats, standard input, gzip and encodings."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from fgfm.io._errors import DataError

__all__ = ["SUFFIXES", "TABLES", "detect_format", "open_bytes", "open_text", "source_name"]

# The formats that are data frames: named columns, read in batches of rows.
TABLES = ("csv", "tsv", "parquet", "jsonl", "xlsx")
SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".xlsx": "xlsx",
    ".arff": "arff",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".xmc": "xmc",
    ".npz": "npz",
    ".npy": "npy",
}
_HEAD = 1 << 16  # bytes from which a format is found
_XMC_HEADER = re.compile(rb"[0-9]+[ \t]+[0-9]+[ \t]+[0-9]+[ \t]*\r?\n")
_SVMLIGHT_ROW = re.compile(rb"[0-9,]*[ \t]+[0-9]+:")


def source_name(path: str | os.PathLike[str]) -> str:
    """Return the name of a file in messages."""
    return "standard input" if os.fspath(path) == "-" else os.fspath(path)


def detect_format(path: str | os.PathLike[str]) -> str:
    """Return the format of a file by its name, else by its first bytes; CSV for standard input.

    Examples
    --------
    >>> detect_format("films.csv.gz"), detect_format("-")
    ('csv', 'csv')
    """
    if os.fspath(path) == "-":
        return "csv"
    suffix = Path(Path(path).name.lower().removesuffix(".gz")).suffix
    if suffix in SUFFIXES:
        return SUFFIXES[suffix]
    with open_bytes(path) as file:
        head = file.read(_HEAD)
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"PK\x03\x04"):
        return "npz"
    if head.lstrip()[:9].lower() == b"@relation" or b"\n@attribute" in head.lower():
        return "arff"
    if head.lstrip().startswith(b"{"):
        return "jsonl"
    if _XMC_HEADER.match(head):
        return "xmc"
    if _SVMLIGHT_ROW.match(head):
        return "svmlight"
    return "tsv" if b"\t" in head.partition(b"\n")[0] else "csv"


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
    check_encoding(encoding)
    with open_bytes(path) as file:
        marked = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
        try:
            yield io.TextIOWrapper(file, encoding=marked)
        except UnicodeDecodeError as error:
            raise bad_encoding(encoding, path) from error


def check_encoding(encoding: str) -> None:
    """Raise unless Python knows an encoding."""
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise ValueError(
            f"encoding is {encoding!r}: it must be the name of an encoding, such as utf-8 or "
            "latin-1"
        ) from None


def bad_encoding(encoding: str, path: Any, line: int | None = None) -> DataError:
    """Return the error for a text in another encoding."""
    reason = f"this is not {encoding} text: the file has another encoding"
    return DataError(reason, source=source_name(path), line=line, arguments=["encoding"])


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
