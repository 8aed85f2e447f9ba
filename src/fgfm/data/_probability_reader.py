"""Tables of probabilities, read in blocks of rows."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._utils.validation import check_choice, first_index, stored_row, tolerance
from fgfm.data._errors import DataError
from fgfm.data._formats import PROBABILITY_FORMATS, default_delimiter, probability_format
from fgfm.data._probability_tables import (
    Block,
    ProbabilityTable,
    open_npy,
    open_npz,
    open_parquet,
)
from fgfm.data._probability_text import open_text_table

__all__ = ["ProbabilityReader"]

_STANDARD_INPUT = "-"


class ProbabilityReader(contextlib.AbstractContextManager["ProbabilityReader"]):
    """Read a table of probabilities in blocks: a row per instance, a column per label.

    A thread reads and validates the next blocks while the caller works on one.

    Parameters
    ----------
    source : str or path-like
        The file; "-" is standard input. Text may be compressed with gzip; a row is a line.
    format : {"csv", "tsv", "parquet", "npy", "npz"}, optional
        By default it follows from the file name; standard input is CSV. CSV and TSV have a header
        with the names of the labels. "npz" is a sparse matrix of `scipy.sparse.save_npz`.
    ids : sequence of str, default=()
        Columns that are not labels, to be copied to the output.
    delimiter : str, optional
        The delimiter of CSV; a comma by default, and a tab for TSV.

    Attributes
    ----------
    label_names : list of str
        The names of the labels, once the table is open.
    empty_ids : pyarrow.Table or None
        The `ids` without rows, once the table is open.
    cpu_seconds : float
        Processor time of reading so far.
    """

    def __init__(
        self,
        source: str | os.PathLike[str],
        *,
        format: str | None = None,
        ids: Sequence[str] = (),
        delimiter: str | None = None,
    ) -> None:
        check_choice(format, "format", (None, *PROBABILITY_FORMATS))
        self.is_stream = os.fspath(source) == _STANDARD_INPUT
        self.source = "standard input" if self.is_stream else os.fspath(source)
        self.ids = list(ids)
        self.label_names: list[str] = []
        self.empty_ids: Any = None
        self.cpu_seconds = 0.0
        self._path = None if self.is_stream else Path(source)
        self.format = format or ("csv" if self._path is None else probability_format(self._path))
        if self.is_stream and self.format not in ("csv", "tsv"):
            raise ValueError(f"format is {self.format!r}: standard input must be 'csv' or 'tsv'")
        self.delimiter = delimiter or default_delimiter(self.format)
        if len(self.delimiter) != 1:
            raise ValueError(f"delimiter is {delimiter!r}: it must be one character")
        self._stack = contextlib.ExitStack()
        self._queue: queue.Queue[Any] = queue.Queue(maxsize=2)
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._blocks: Iterator[tuple[int, Block]] = iter(())

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
        if self.format in ("csv", "tsv"):
            return open_text_table(self._path, self.source, self.ids, self.delimiter, self._stack)
        assert self._path is not None
        if self.format == "parquet":
            return open_parquet(self._path, self.ids, self._stack)
        return (
            open_npy(self._path, self.ids)
            if self.format == "npy"
            else open_npz(self._path, self.ids)
        )

    def __exit__(self, *error: Any) -> None:
        self._closed.set()
        if self._thread is not None and not self.is_stream:  # a stream may block forever
            self._thread.join()
        self._stack.close()

    def __iter__(self) -> Iterator[Block]:
        """Yield the blocks in order."""
        self._thread = threading.Thread(target=self._read_ahead, daemon=True)
        self._thread.start()
        while True:
            found = self._queue.get()
            if found is None:
                return
            if isinstance(found, BaseException):
                raise found
            yield found

    def _read_ahead(self) -> None:
        """Put the blocks into the queue, then None or the error that was raised."""
        found: Block | BaseException | None
        while not self._closed.is_set():
            start = time.thread_time()
            try:
                first, found = next(self._blocks, (0, None))
                if found is not None:
                    self._check(found.proba, first)
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

    def _check(self, proba: Any, first: int) -> None:
        """Raise unless all values are probabilities; `first` is the number of the first row."""
        values = proba.data if sparse.issparse(proba) else proba
        slack = tolerance(values)
        if values.size and not (values.min() >= -slack and values.max() <= 1.0 + slack):
            wrong = ~((values >= -slack) & (values <= 1.0 + slack))
            raise self._not_a_probability(proba, wrong, first)

    def _not_a_probability(
        self, proba: Any, wrong: npt.NDArray[np.bool_], first: int
    ) -> DataError:
        if sparse.issparse(proba):
            at = first_index(wrong)[0]
            row, column, value = stored_row(proba, at), int(proba.indices[at]), proba.data[at]
        else:
            row, column = first_index(wrong)
            value = proba[row, column]
        reason = (
            "there is no value: every label needs a probability"
            if np.isnan(value)
            else f"{value!s} is not a probability: it must lie in [0, 1]"
        )
        return self.error(reason, first + row, self.label_names[column])

    def error(self, reason: str, row: int, column: str | None = None) -> DataError:
        """Return the error for a row, by its line in text files.

        Parameters
        ----------
        reason : str
            The fault, and the rule that it breaks.
        row : int
            The row, from 0.
        column : str, optional
            The name of the column.

        Returns
        -------
        DataError
            The error.
        """
        line = row + 2 if self.format in ("csv", "tsv") else None  # line 1 is the header
        return DataError(reason, source=self.source, line=line, row=row, column=column)
