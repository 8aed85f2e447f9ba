"""Text files, plain or compressed: opened, decoded, written, and what can go wrong there."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

import numpy as np

from fgfm._utils.atomic import atomic_file
from fgfm.data._errors import DataError, bad

__all__ = [
    "MISSING",
    "check_file",
    "number",
    "open_text",
    "plain",
    "read_head",
    "spooled",
    "text_of",
    "write_text",
    "written",
]

MISSING = frozenset({"", "?", "na", "n/a", "nan", "null"})  # in lower case
_GZIP = b"\x1f\x8b"


def check_file(path: Path) -> None:
    """Raise unless there is a file that can be read and has something in it."""
    if path.is_dir():
        raise bad(path, "this is a directory: a file is needed")
    try:
        with path.open("rb") as file:
            first = file.read(1)
    except FileNotFoundError:
        raise bad(path, "there is no such file") from None
    except (OSError, ValueError) as error:  # no permission; a NUL in the name
        raise bad(path, f"the file cannot be read: {error}") from error
    if not first:
        raise bad(path, "the file is empty")


def _is_stream(path: Path) -> bool:
    """Say whether what is read from a path is gone after that: a pipe, or a terminal."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISCHR(mode):
            with path.open("rb") as file:
                return file.isatty()
    except (OSError, ValueError):  # `check_file` says what is wrong
        return False
    return stat.S_ISFIFO(mode)


@contextmanager
def spooled(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a file that can be opened again and again; "-" is standard input.

    A pipe is read once, into a temporary file of the same name. Errors name the pipe.
    """
    source = Path(path)
    standard = os.fspath(path) == "-"
    if not standard and not _is_stream(source):
        yield source
        return
    with tempfile.TemporaryDirectory(prefix="fgfm-") as folder:
        copy = Path(folder) / source.name
        try:
            with copy.open("wb") as target:
                if standard:
                    shutil.copyfileobj(sys.stdin.buffer, target)
                else:
                    with source.open("rb") as file:
                        shutil.copyfileobj(file, target)
        except (OSError, ValueError) as error:
            raise bad(path, f"the stream cannot be read: {error}") from error
        try:
            yield copy
        except DataError as error:
            raise DataError(str(error).replace(str(copy), str(source))) from error


def _open_bytes(path: Path) -> BinaryIO:
    with path.open("rb") as file:
        packed = file.read(2) == _GZIP
    return cast(BinaryIO, gzip.open(path, "rb")) if packed else path.open("rb")


@contextmanager
def open_text(path: Path, encoding: str, newline: str | None = None) -> Iterator[TextIO]:
    """Open a text file, compressed by gzip or not; errors of reading it become `DataError`."""
    name = "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding
    try:
        "".encode(name)
    except LookupError:
        raise ValueError(f"encoding is {encoding!r}: Python knows no such encoding") from None
    try:
        with (
            _open_bytes(path) as file,
            io.TextIOWrapper(file, encoding=name, newline=newline) as text,
        ):
            yield text
    except UnicodeError as error:
        raise _undecodable(path, encoding, name) from error
    except EOFError as error:
        raise bad(path, "the compressed file ends too early: it is truncated") from error
    except (zlib.error, OSError) as error:
        raise bad(path, f"the file cannot be read: {error}") from error


def _undecodable(path: Path, encoding: str, name: str) -> Exception:
    """Find the line that made decoding fail."""
    sentence = f"this is not {encoding} text: give the file's own encoding=..."
    with _open_bytes(path) as file:
        try:
            for k, line in enumerate(file, 1):
                try:
                    line.decode("utf-8" if name == "utf-8-sig" else name)
                except UnicodeError:
                    return bad(path, sentence, line=k)
        except (EOFError, zlib.error, OSError):
            pass
    return bad(path, sentence)


def read_head(path: Path, size: int = 1 << 16) -> bytes:
    """Give the first bytes of what is in a file, compressed or not; none where it is damaged."""
    with _open_bytes(path) as file:
        try:
            return file.read(size)
        except (EOFError, zlib.error, OSError):
            return b""


@contextmanager
def write_text(path: str | os.PathLike[str]) -> Iterator[TextIO]:
    """Open a UTF-8 file that appears when complete, compressed if its name ends in .gz."""
    with atomic_file(path) as file:
        packed = os.fspath(path).lower().endswith(".gz")
        # no time and no name inside: the same data make the same file
        target: Any = gzip.GzipFile("", "wb", 6, file, mtime=0) if packed else file
        text = io.TextIOWrapper(target, encoding="utf-8", newline="")
        yield text
        text.flush()
        text.detach()
        if packed:
            target.close()


def plain(text: str) -> bool:
    """Say whether `float` reads this as others do: it takes 1_000 and the digits of any script."""
    return text.isascii() and "_" not in text


def number(text: str) -> float | None:
    """Give the number that a text is, NaN where a value is missing, None where it is no number."""
    text = text.strip()
    if text.lower() in MISSING:
        return float("nan")
    if not plain(text):
        return None
    try:
        return float(text)
    except ValueError:
        return None


def written(values: Any) -> list[str]:
    """Write numbers with the fewest digits that give back the same number of their type."""
    array = np.asarray(values)
    if array.dtype.kind != "f":
        return [str(int(value)) for value in array.tolist()]
    if array.dtype == np.float64:
        texts = list(map(repr, array.tolist()))
    else:
        texts = array.astype(np.str_).tolist()
    return [text.removesuffix(".0") for text in texts]


def text_of(value: float) -> str:
    """Give a number as the name of a category: 3, not 3.0.

    Examples
    --------
    >>> text_of(3.0), text_of(0.5)
    ('3', '0.5')
    """
    return repr(float(value)).removesuffix(".0")
