"""Result files that survive a killed program.

Rows are appended as soon as they are computed, each with a unique key. A run that was stopped
continues where it ended: what the file contains is not computed again.
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

Row = tuple[Any, ...]


class ResultFile:
    """A CSV file of rows with unique keys, and the settings that its rows depend on."""

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
        """Read the file and keep it open for appending, locked against other programs."""
        with self.path.with_suffix(".lock").open("wb") as lock:
            _acquire_lock(lock, self.path)
            exists = self.path.exists()
            if exists:
                self._read()
            _check_settings(self.path.with_name("settings.json"), self.settings, bool(self.rows))
            if not exists:
                self.rewrite()
            self._file = self.path.open("ab")
            try:
                yield self
            finally:
                self._file.close()

    def append(self, rows: Iterable[Row]) -> None:
        """Append rows to the open file, in a single write."""
        rows = list(rows)
        for row in rows:
            self._add(row)
        self._file.write(self._format(rows).encode())
        self._file.flush()

    def discard(self, keys: Iterable[Row]) -> None:
        """Remove rows from the open file."""
        keys = list(keys)
        for key in keys:
            del self.rows[key]
        if keys:
            self._file.close()
            self.rewrite()
            self._file = self.path.open("ab")

    def rewrite(self) -> None:
        """Write all rows in the order of their keys: the same rows give the same bytes."""
        rows = [self.rows[key] for key in sorted(self.rows)]
        with atomic_file(self.path) as file:
            file.write((",".join(self.columns) + "\n" + self._format(rows)).encode())

    def _format(self, rows: Sequence[Row]) -> str:
        text = io.StringIO()
        # repr of a float is read back to the same float
        csv.writer(text, lineterminator="\n").writerows(
            [repr(v) if isinstance(v, float) else v for v in row] for row in rows
        )
        return text.getvalue()

    def _add(self, row: Row) -> None:
        key = row[: self.n_key]
        if key in self.rows:
            raise ValueError(f"{self.path} has two rows for {key}")
        self.rows[key] = row

    def _read(self) -> None:
        """Read the rows; remove an incomplete last line, left by a killed program."""
        content = self.path.read_bytes()
        complete = content[: content.rfind(b"\n") + 1]
        try:
            lines = complete.decode().splitlines()
        except UnicodeDecodeError:
            lines = []
        if not lines or lines[0] != ",".join(self.columns):
            raise ValueError(
                f"{self.path} is not a results file: its first line must be "
                f"{','.join(self.columns)!r}"
            )
        self.rows.clear()
        parsers = list(self.columns.values())
        for number, fields in enumerate(csv.reader(lines[1:]), start=2):
            try:
                row = tuple(parse(v) for parse, v in zip(parsers, fields, strict=True))
            except ValueError:
                raise ValueError(
                    f"{self.path}, line {number} is not a row of results: {','.join(fields)!r}"
                ) from None
            self._add(row)
        if len(complete) < len(content):
            self.rewrite()


def _acquire_lock(lock: Any, path: Path) -> None:
    """Lock an open file, where the system supports it; raise if another program holds it."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ValueError(f"{path} is being written by another program") from None


def _check_settings(path: Path, settings: dict[str, Any], required: bool) -> None:
    """Store the settings of the results, or raise if other settings are stored."""
    if not path.exists():
        if required:
            raise ValueError(
                f"{path} is missing: the settings of the results beside it are unknown. Choose "
                "another folder"
            )
        with atomic_file(path) as file:
            file.write((json.dumps(settings, indent=2) + "\n").encode())
        return
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    if not isinstance(stored, dict):
        raise ValueError(f"{path} is damaged: it must contain the settings of a run")
    names = sorted(settings.keys() | stored.keys())
    changed = [
        f"{name} = {stored.get(name)!r}, not {settings.get(name)!r}"
        for name in names
        if settings.get(name) != stored.get(name)
    ]
    if changed:
        raise ValueError(
            f"{os.fspath(path.parent)} contains results of another run: {', '.join(changed)}. "
            "Choose another folder"
        )
