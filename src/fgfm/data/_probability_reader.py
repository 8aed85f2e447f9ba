"""Tables of probabilities, logits or labels, read in blocks of rows."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from bisect import bisect
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._utils.validation import check_choice, first_entry, tolerance
from fgfm.data._errors import DataError
from fgfm.data._formats import PROBABILITY_FORMATS, probability_format
from fgfm.data._options import TextFormat
from fgfm.data._parquet import open_parquet
from fgfm.data._probability_tables import (
    Block,
    Columns,
    ProbabilityTable,
    named_table,
    open_npy,
    open_npz,
)
from fgfm.data._text_table import open_text_table

__all__ = ["ProbabilityReader"]

_CONTENTS = {  # what a value is called, and the rule that it must obey
    "probabilities": ("a probability", "it must lie in [0, 1]"),
    "logits": ("a logit", "it must be a number"),
    "labels": ("a label", "it must be 0 or 1"),
}


class ProbabilityReader(contextlib.AbstractContextManager["ProbabilityReader"]):
    """Read a table of probabilities in blocks: a row per instance, a column per label.

    A thread reads and validates the next blocks while the caller works on one. The source "-" is
    standard input, by default in CSV; "npz" is a sparse matrix of `scipy.sparse.save_npz`. The
    labels are numbered if the file does not name them (`has_names`). `content` is what the values
    of labels must be: "probabilities", "logits" or "labels".
    """

    def __init__(
        self,
        source: str | os.PathLike[str],
        *,
        format: str | None = None,
        columns: Columns,
        text: TextFormat,
        content: str = "probabilities",
    ) -> None:
        check_choice(format, "format", (None, *PROBABILITY_FORMATS))
        self.is_stream = os.fspath(source) == "-"
        self.source = "standard input" if self.is_stream else os.fspath(source)
        self.content = content
        self.columns = columns
        self.label_names: list[str] = []  # once the table is open
        self.empty_ids: Any = None  # pyarrow.Table of the id columns without rows, or None
        self.cpu_seconds = 0.0  # of reading so far
        self._path = None if self.is_stream else Path(source)
        self.format = format or ("csv" if self._path is None else probability_format(self._path))
        if self.is_stream and self.format not in ("csv", "tsv"):
            raise ValueError(f"format is {self.format!r}: standard input must be 'csv' or 'tsv'")
        if content == "logits" and self.format == "npz":
            raise DataError(
                "it is sparse, and logits that are not stored would be probabilities of 1/2: it "
                "must hold probabilities",
                source=self.source,
                arguments=["logits"],
            )
        self._text = text
        self.has_names = self.format == "parquet" or (
            self.format in ("csv", "tsv") and self._text.header is not False
        )
        self._stack = contextlib.ExitStack()
        self._queue: queue.Queue[Any] = queue.Queue(maxsize=2)
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._blocks: Iterator[Block] = iter(())
        self._lines: list[tuple[int, Any]] = []  # the first row and the lines of each block

    def __enter__(self) -> ProbabilityReader:
        if self._path is not None and (self._path.is_dir() or not self._path.exists()):
            fault = "it is a folder" if self._path.is_dir() else "it does not exist"
            raise DataError(f"{fault}: it must be a file", source=self.source)
        with self._stack:  # closes the file if an error is raised
            table = self._open()
            self._stack = self._stack.pop_all()
        self.label_names, self.empty_ids = table.label_names, table.empty_ids
        self._blocks = table.blocks
        return self

    def _open(self) -> ProbabilityTable:
        columns = self.columns._replace(booleans=self.content == "labels")
        if self.format in ("csv", "tsv"):
            opened = open_text_table(self._path, self.format, self._text, blank="refuse")
            return named_table(self._stack.enter_context(opened), columns)
        assert self._path is not None
        if self.format == "parquet":
            return named_table(self._stack.enter_context(open_parquet(self._path)), columns)
        open_array = open_npy if self.format == "npy" else open_npz
        return open_array(self._path, columns)

    def __exit__(self, *error: Any) -> None:
        self._closed.set()
        if self._thread is not None and not self.is_stream:  # a stream may block forever
            self._thread.join()
        self._stack.close()

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        """Yield the blocks in order: the values (n, m), and a pyarrow.Table of ids or None."""
        self._thread = threading.Thread(target=self._read_ahead, daemon=True)
        self._thread.start()
        while True:
            found = self._queue.get()
            if found is None:
                return
            if isinstance(found, BaseException):
                raise found
            yield found.proba, found.ids

    def _read_ahead(self) -> None:
        """Put the blocks into the queue, then None or the error that was raised."""
        found: Block | BaseException | None
        while not self._closed.is_set():
            start = time.thread_time()
            try:
                found = next(self._blocks, None)
                if found is not None:
                    if found.lines is not None:
                        self._lines.append((found.first, found.lines))
                    self._check(found.proba, found.first)
            except BaseException as error:  # raised again by the thread of the caller
                found = error
            self.cpu_seconds += time.thread_time() - start
            while not self._closed.is_set():
                try:
                    self._queue.put(found, timeout=0.2)
                    break
                except queue.Full:
                    continue
            if not isinstance(found, Block):
                return

    def _check(self, block: Any, first: int) -> None:
        """Raise unless all values are valid; `first` is the number of the first row."""
        values = block.data if sparse.issparse(block) else block
        if self.content == "logits":
            wrong = np.isnan(values)
        elif self.content == "labels":
            wrong = (values != 0) & (values != 1)
        else:
            slack = tolerance(values)
            if not values.size or (values.min() >= -slack and values.max() <= 1.0 + slack):
                return
            wrong = ~((values >= -slack) & (values <= 1.0 + slack))
        if wrong.any():
            raise self._invalid_value(block, wrong, first)

    def _invalid_value(self, block: Any, wrong: npt.NDArray[np.bool_], first: int) -> DataError:
        row, column, value = first_entry(block, wrong)
        noun, rule = _CONTENTS[self.content]
        arguments: tuple[str, ...] = ()
        if np.isnan(value):
            needed = rule if self.content == "labels" else f"every label needs {noun}"
            reason = f"there is no value: {needed}"
        else:
            reason = f"{value!s} is not {noun}: {rule}"
            if self.content == "probabilities" and np.isfinite(value):
                reason, arguments = f"{reason}; apply a sigmoid to logits", ("logits",)
        return self.error(reason, first + row, self.label_names[column], arguments)

    def error(
        self, reason: str, row: int, column: str | None = None, arguments: Sequence[str] = ()
    ) -> DataError:
        """Return the error for a row, by its line in text files."""
        line = None
        if self._lines:
            first, lines = self._lines[bisect(self._lines, row, key=lambda block: block[0]) - 1]
            line = int(lines[row - first])
        return DataError(
            reason, source=self.source, line=line, row=row, column=column, arguments=arguments
        )
