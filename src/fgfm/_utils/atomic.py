"""Files that appear under their name when they are complete, and not before.

Until then they are hidden beside it, and locked: one that is there without a lock was left behind.
"""

from __future__ import annotations

import errno
import os
import re
import tempfile
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

__all__ = ["atomic_file", "remove_leftovers"]

_MASK = threading.Lock()
_HIDDEN = re.compile(r"\.(.+)\.[a-z0-9_]{8}\.part", re.DOTALL)  # as `_begin` names a file


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file beside `path` that takes its place at the end, or goes away after an error.

    Parameters
    ----------
    path : str or path-like
        The file. One that was there is replaced at the end; through a link, the one it leads to.
        A pipe or a device is written to as it is.

    Yields
    ------
    binary file
        Open for reading and writing.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file() and not target.is_dir():
        with target.open("wb") as stream:
            yield stream
        return
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", os.fspath(target.parent))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "it is a folder", os.fspath(target))
    handle, name = _begin(target)
    try:
        with os.fdopen(handle, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if os.name == "nt":
                file.close()  # what is open cannot be moved there
            mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
            os.chmod(name, mode)
            os.replace(name, target)  # while it is locked
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name)
        raise


def remove_leftovers(folder: Path, names: Collection[str]) -> None:
    """Remove what processes left behind that were killed while they wrote files.

    What a process is still writing is locked, and stays; so does everything where the system
    knows no locks.

    Parameters
    ----------
    folder : Path
        Where the files are.
    names : collection of str
        The names of the files that they were to become.
    """
    with os.scandir(folder) as entries:
        hidden = [e for e in entries if (found := _HIDDEN.fullmatch(e.name)) and found[1] in names]
    for entry in hidden:
        with suppress(OSError):  # it may be gone, or belong to others
            if entry.is_file(follow_symlinks=False):
                _remove_unless_locked(entry.path)


def _remove_unless_locked(path: str) -> None:
    handle = os.open(path, os.O_RDWR)
    try:
        if _lock(handle, wait=False):
            os.unlink(path)
    finally:
        os.close(handle)


def _begin(target: Path) -> tuple[int, str]:
    """Make a hidden file beside another, and lock it."""
    while True:
        handle, name = tempfile.mkstemp(
            dir=target.parent, prefix=f".{target.name}.", suffix=".part"
        )
        _lock(handle, wait=True)
        if os.path.exists(name):
            return handle, name
        os.close(handle)  # it was taken for a leftover before it was locked


def _lock(handle: int, *, wait: bool) -> bool:
    """Lock an open file until it is closed; tell whether it was possible."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # another process has it, or the file system has no locks
        return False
    return True


def _umask() -> int:
    """Give the mask of new files; there is no way to read it but to set it."""
    with _MASK:
        mask = os.umask(0o022)
        os.umask(mask)
    return mask
