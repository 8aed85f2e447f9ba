"""Results in a file that survives its program: rows are appended whole, and none twice.

A run that was stopped, by whatever means, is taken up where it was: what the file holds is done.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fgfm._utils.atomic import atomic_file

__all__ = ["ResultFile"]

Row = tuple[Any, ...]


class ResultFile:
    """Rows of a CSV file, each with a key of its own.

    Parameters
    ----------
    path : path
        The file. It is made if it is not there.
    columns : dict of str to callable
        The columns: name, and what makes a value of its text (`int`, `float`, `str`).
    n_key : int
        How many columns, the first, are the key of a row.
    settings : dict
        What the rows depend on. They are kept in settings.json beside the file, and a file of
        other settings is refused.
    """

    def __init__(
        self, path: Path, columns: dict[str, Any], n_key: int, settings: dict[str, Any]
    ) -> None:
        self.path = path
        self.settings = settings
        self.columns = columns
        self.n_key = n_key
        self.rows: dict[Row, Row] = {}  # by key

    def __contains__(self, key: Row) -> bool:
        return key in self.rows

    @contextmanager
    def opened(self) -> Iterator[ResultFile]:
        """Read the file and hold it open to append to, for this program alone.

        Yields
        ------
        ResultFile
            The file.
        """
        with self.path.with_suffix(".lock").open("wb") as lock:
            _take_lock(lock, self.path)
            there = self.path.exists()
            if there:
                self._read()
            _check_settings(self.path.with_name("settings.json"), self.settings, bool(self.rows))
            if not there:
                self.rewrite()
            self._file = self.path.open("ab")
            try:
                yield self
            finally:
                self._file.close()

    def append(self, rows: Iterable[Row]) -> None:
        """Write rows to the end of the file, in one step.

        Parameters
        ----------
        rows : iterable of tuple
            The rows; their keys must be new.
        """
        rows = list(rows)
        for row in rows:
            self._take(row)
        self._file.write(self._text(rows).encode())
        self._file.flush()

    def discard(self, keys: Iterable[Row]) -> None:
        """Remove rows from the file, which must be open.

        Parameters
        ----------
        keys : iterable of tuple
            The keys of the rows.
        """
        keys = list(keys)
        for key in keys:
            del self.rows[key]
        if keys:
            self._file.close()
            self.rewrite()
            self._file = self.path.open("ab")

    def rewrite(self) -> None:
        """Write all rows anew, in the order of their keys: the same rows give the same bytes."""
        rows = [self.rows[key] for key in sorted(self.rows)]
        with atomic_file(self.path) as file:
            file.write((",".join(self.columns) + "\n" + self._text(rows)).encode())

    def _text(self, rows: Sequence[Row]) -> str:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(
            [repr(v) if isinstance(v, float) else v for v in row] for row in rows
        )
        return text.getvalue()

    def _take(self, row: Row) -> None:
        key = row[: self.n_key]
        if key in self.rows:
            raise ValueError(f"{self.path} has two rows for {key}")
        self.rows[key] = row

    def _read(self) -> None:
        """Read what is there; a last line that was cut off is taken away."""
        content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        try:
            lines = whole.decode().splitlines()
        except UnicodeDecodeError:
            lines = []
        if not lines or lines[0] != ",".join(self.columns):
            raise ValueError(
                f"{self.path} is no file of results: its first line must be "
                f"{','.join(self.columns)!r}"
            )
        self.rows.clear()
        kinds = list(self.columns.values())
        for number, fields in enumerate(csv.reader(lines[1:]), start=2):
            try:
                row = tuple(kind(v) for kind, v in zip(kinds, fields, strict=True))
            except ValueError:
                raise ValueError(
                    f"{self.path}, line {number} is no row of results: {','.join(fields)!r}"
                ) from None
            self._take(row)
        if len(whole) < len(content):
            self.rewrite()


def _take_lock(lock: Any, path: Path) -> None:
    """Take a file for this program alone, where the system can do so."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ValueError(f"{path} is being written to by another program") from None


def _check_settings(path: Path, settings: dict[str, Any], needed: bool) -> None:
    """Keep the settings that results depend on, or raise if others are there.

    Parameters
    ----------
    path : path
        The file that keeps them.
    settings : dict
        What the results depend on.
    needed : bool
        There are results: the file must be there too.
    """
    if not path.exists():
        if needed:
            raise ValueError(
                f"{path} is missing: nothing tells what the results beside it depend on. Choose "
                "another folder"
            )
        with atomic_file(path) as file:
            file.write((json.dumps(settings, indent=2) + "\n").encode())
        return
    try:
        there = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    if not isinstance(there, dict):
        raise ValueError(f"{path} is damaged: it must hold the settings of a run")
    other = [k for k in settings.keys() | there.keys() if settings.get(k) != there.get(k)]
    if other:
        told = ", ".join(f"{k} = {there.get(k)!r}, not {settings.get(k)!r}" for k in sorted(other))
        raise ValueError(
            f"{os.fspath(path.parent)} holds results of another run: {told}. Choose another folder"
        )
