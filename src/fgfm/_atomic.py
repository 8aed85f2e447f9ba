"""Files that appear under their name when they are complete, and not before."""

from __future__ import annotations

import errno
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["atomic_file"]

_MASK = threading.Lock()


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
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
        os.chmod(name, mode)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def _umask() -> int:
    """Give the mask of new files; there is no way to read it but to set it."""
    with _MASK:
        mask = os.umask(0o022)
        os.umask(mask)
    return mask
