"""Text files, plain or compressed with gzip: checking, opening, decoding and writing."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from fgfm._utils.atomic import atomic_file
from fgfm.data._errors import DataError

__all__ = [
    "check_file",
    "is_gzip_name",
    "open_text",
    "open_utf8",
    "read_head",
    "spooled",
    "write_text",
]

_GZIP = b"\x1f\x8b"


def check_file(path: Path) -> None:
    """Raise unless a path is a file that can be read and is not empty."""
    if path.is_dir():
        raise DataError("this is a directory: a file is needed", source=path)
    try:
        with path.open("rb") as file:
            first = file.read(1)
    except FileNotFoundError:
        raise DataError("there is no such file", source=path) from None
    except (OSError, ValueError) as error:  # no permission; a NUL in the name
        raise DataError(f"the file cannot be read: {error}", source=path) from error
    if not first:
        raise DataError("the file is empty", source=path)


def _is_stream(path: Path) -> bool:
    """Return True if a path can be read only once: a pipe or a terminal."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISCHR(mode):
            with path.open("rb") as file:
                return file.isatty()
    except (OSError, ValueError):  # reported by `check_file`
        return False
    return stat.S_ISFIFO(mode)


@contextmanager
def spooled(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a file that can be opened repeatedly; "-" is standard input.

    A stream is copied to a temporary file of the same name. Errors name the stream.
    """
    source = Path(path)
    standard_input = os.fspath(path) == "-"
    if not standard_input and not _is_stream(source):
        yield source
        return
    with tempfile.TemporaryDirectory(prefix="fgfm-") as folder:
        copy = Path(folder) / source.name
        try:
            with copy.open("wb") as target:
                if standard_input:
                    shutil.copyfileobj(sys.stdin.buffer, target)
                else:
                    with source.open("rb") as file:
                        shutil.copyfileobj(file, target)
        except (OSError, ValueError) as error:
            raise DataError(f"the stream cannot be read: {error}", source=path) from error
        try:
            yield copy
        except DataError as error:
            if error.source == os.fspath(copy):
                error.source = os.fspath(path)
            raise


@contextmanager
def _open_bytes(path: Path) -> Iterator[BinaryIO]:
    """Open a file, compressed or not; a pipe is opened only once."""
    with path.open("rb") as file:
        if file.peek(2)[:2] != _GZIP:
            yield file
            return
        with gzip.open(file, "rb") as inner:
            yield cast(BinaryIO, inner)


def _codec(encoding: str) -> str:
    """Return the name of an encoding; a byte order mark of UTF-8 is skipped."""
    codec = "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding
    try:
        "".encode(codec)
    except LookupError:
        raise ValueError(f"encoding is {encoding!r}: Python has no such encoding") from None
    return codec


@contextmanager
def _read_errors(source: str | os.PathLike[str]) -> Iterator[None]:
    """Raise `DataError` for errors while a file is read."""
    try:
        yield
    except EOFError as error:
        raise DataError(
            "the compressed file ends too early: it is truncated", source=source
        ) from error
    except (zlib.error, OSError) as error:
        raise DataError(f"the file cannot be read: {error}", source=source) from error


@contextmanager
def open_text(path: Path, encoding: str) -> Iterator[TextIO]:
    """Open a text file, compressed or not; errors while reading it become `DataError`."""
    codec = _codec(encoding)
    try:
        with (
            _read_errors(path),
            _open_bytes(path) as file,
            io.TextIOWrapper(file, encoding=codec) as text,
        ):
            yield text
    except UnicodeError as error:
        raise _decoding_error(path, encoding, codec) from error


@contextmanager
def open_utf8(path: Path | None, encoding: str) -> Iterator[Callable[[int], bytes]]:
    """Open a text file, compressed or not, or standard input if there is no path.

    Yields
    ------
    callable
        Returns the next bytes of the text in UTF-8, as many as requested unless the text ends.
    """
    codec = _codec(encoding)
    source = "standard input" if path is None else path
    with ExitStack() as stack:
        if path is not None:
            with _read_errors(source):
                file = stack.enter_context(_open_bytes(path))
        elif sys.stdin is None:
            raise DataError("it is closed: there must be a table to read", source=source)
        else:
            # Not Python's buffer, whose lock a blocked thread would hold until the exit.
            file = io.BufferedReader(io.FileIO(sys.stdin.fileno(), closefd=False))
        text = None
        if codec != "utf-8-sig":
            text = stack.enter_context(io.TextIOWrapper(file, encoding=codec, newline=""))

        def read(size: int) -> bytes:
            with _read_errors(source):
                try:
                    return file.read(size) if text is None else text.read(size).encode()
                except UnicodeError as error:
                    raise _decoding_error(path, encoding, codec) from error

        yield read


def _decoding_error(path: Path | None, encoding: str, codec: str) -> DataError:
    """Return the error for the first line that cannot be decoded."""
    return DataError(
        f"this is not {encoding} text: the file has another encoding",
        source="standard input" if path is None else path,
        line=None if path is None else _undecodable_line(path, codec),
        arguments=["encoding"],
    )


def _undecodable_line(path: Path, codec: str) -> int | None:
    with suppress(EOFError, zlib.error, OSError), _open_bytes(path) as file:
        for k, line in enumerate(file, 1):
            try:
                line.decode("utf-8" if codec == "utf-8-sig" else codec)
            except UnicodeError:
                return k
    return None


def read_head(path: Path) -> bytes:
    """Return the first bytes of a file after decompression; b"" if it is damaged."""
    with _open_bytes(path) as file:
        try:
            return file.read(1 << 16)
        except (EOFError, zlib.error, OSError):
            return b""


def is_gzip_name(path: str | os.PathLike[str]) -> bool:
    """Return True if a file name ends in .gz."""
    return os.fspath(path).lower().endswith(".gz")


@contextmanager
def write_text(path: str | os.PathLike[str]) -> Iterator[TextIO]:
    """Open a UTF-8 file for writing that replaces `path` when it is complete.

    It is compressed if its name ends in .gz.
    """
    compressed = is_gzip_name(path)
    with atomic_file(path) as file:
        # No time and no name in the gzip header: the same data make the same file.
        target: Any = gzip.GzipFile("", "wb", 6, file, mtime=0) if compressed else file
        text = io.TextIOWrapper(target, encoding="utf-8", newline="")
        yield text
        text.flush()
        text.detach()
        if compressed:
            target.close()
