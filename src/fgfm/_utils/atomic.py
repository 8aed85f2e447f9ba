"""Atomic writes: a file appears under its name only when it is complete.

Until then it has a hidden name in the same folder and is locked. A hidden file without a lock was
left behind by a process that was killed; the next one that writes the same file removes it.
"""

from __future__ import annotations

import errno
import os
import re
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_UMASK_LOCK = threading.Lock()
_unfinished: set[str] = set()  # hidden files of this process
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # errors of writing, which name no file
# the hidden name that `_create_locked` makes of a file's name
_HIDDEN = re.compile(r"\.(.+)\.[a-z0-9_]{8}\.part", re.DOTALL)


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a hidden file that replaces `path` at the end, or is removed after an error.

    Parameters
    ----------
    path : str or path-like
        The file. An existing one is replaced at the end; of a symbolic link, its target. A pipe or
        a device is written to directly.

    Yields
    ------
    binary file
        Open for reading and writing.
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
    _remove_leftovers(target)
    with named_errors(path):
        handle, name = _create_locked(target)
    _unfinished.add(name)
    try:
        with named_errors(path), os.fdopen(handle, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if os.name == "nt":
                file.close()  # Windows does not replace open files
            mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
            os.chmod(name, mode)
            os.replace(name, target)  # still locked: no `_remove_leftovers` interferes
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name)
        raise
    finally:
        _unfinished.discard(name)


def remove_unfinished() -> None:
    """Remove the hidden files of all threads, before a program is stopped by a signal."""
    for name in list(_unfinished):
        with suppress(OSError):
            os.unlink(name)


@contextmanager
def named_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let errors of a file that is written name that file, and never its hidden name.

    Parameters
    ----------
    path : str or path-like
        The name of the file.
    """
    try:
        yield
    except OSError as error:
        hidden = isinstance(error.filename, str) and _HIDDEN.fullmatch(Path(error.filename).name)
        if not hidden and (error.filename is not None or error.errno not in _FULL):
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def _remove_leftovers(target: Path) -> None:
    """Remove the hidden files of processes that were killed while writing `target`.

    Files that are still being written are locked and stay. On systems without locks all stay.
    """
    with suppress(OSError), os.scandir(target.parent) as entries:  # the folder may be unreadable
        for entry in entries:
            found = entry.name.endswith(".part") and _HIDDEN.fullmatch(entry.name)
            if found and found[1] == target.name and entry.is_file(follow_symlinks=False):
                with suppress(OSError):  # removed meanwhile, or owned by another user
                    _remove_unless_locked(entry.path)


def _remove_unless_locked(path: str) -> None:
    handle = os.open(path, os.O_RDWR)
    try:
        if _lock(handle, wait=False):
            os.unlink(path)
    finally:
        os.close(handle)


def _create_locked(target: Path) -> tuple[int, str]:
    """Create a hidden file in the folder of `target` and lock it; return its handle and name."""
    while True:
        handle, name = tempfile.mkstemp(
            dir=target.parent, prefix=f".{target.name}.", suffix=".part"
        )
        _lock(handle, wait=True)
        if os.path.exists(name):
            return handle, name
        os.close(handle)  # another process removed it as a leftover before it was locked


def _lock(handle: int, *, wait: bool) -> bool:
    """Lock an open file until it is closed; return False if that is not possible."""
    try:
        import fcntl
    except ImportError:  # Windows
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # locked by another process, or no locks on this file system
        return False
    return True


def _umask() -> int:
    """Return the file mode mask, which can only be read by setting it."""
    with _UMASK_LOCK:
        mask = os.umask(0o022)
        os.umask(mask)
    return mask
