"""Atomic writes: a file appears under its name only when it is complete."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_unfinished: set[Path] = set()  # hidden files of this process
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # errors of writing, which name no file


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a hidden file that replaces `path` at the end, or is removed after an error.

    An existing file is replaced with its mode, a symbolic link at its target. A pipe or a device
    is written to directly.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file() and not target.is_dir():
        with named_errors(path), target.open("wb") as stream:
            yield stream
        return
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", os.fspath(target.parent))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "it is a folder", os.fspath(target))
    hidden = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    _unfinished.add(hidden)
    try:
        with named_errors(path):
            with hidden.open("x+b") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                hidden.chmod(target.stat().st_mode & 0o777)
            hidden.replace(target)
    except BaseException:
        with suppress(OSError):  # such as a name that is too long
            hidden.unlink()
        raise
    finally:
        _unfinished.discard(hidden)


def remove_unfinished() -> None:
    """Remove the hidden files of all threads, before a program is stopped by a signal."""
    for hidden in list(_unfinished):
        with suppress(OSError):
            hidden.unlink()


@contextmanager
def named_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let errors of a file that is written name that file, and never its hidden name."""
    try:
        yield
    except OSError as error:
        is_hidden = error.filename is not None and os.fspath(error.filename).endswith(".part")
        if not is_hidden and (error.filename is not None or error.errno not in _FULL):
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
