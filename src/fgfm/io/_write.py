"""Label sets and probabilities, written in blocks as CSV, TSV, JSON lines or Parquet."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._utils.atomic import atomic_file, named_errors
from fgfm._utils.blocks import row_blocks
from fgfm._utils.optional import import_optional
from fgfm._utils.text import escaped
from fgfm._utils.validation import check_choice
from fgfm.io._formats import suffix_format

__all__ = ["LabelSetWriter", "ProbabilityWriter"]

FORMATS = ("csv", "tsv", "jsonl", "parquet")
_DECIMALS = 6  # of the expected F-measure in text


class _Terminal:
    """Standard output of tables on a terminal, with control characters escaped."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.flush = file.flush

    def write(self, content: Any) -> None:
        self._file.write(escaped(bytes(content).decode(), keep="\n\t").encode())


class _TableWriter:
    """A file of columns, written in blocks of rows.

    A file is replaced when the new one is complete; standard output gets every block at once.
    """

    def __init__(
        self,
        target: str | os.PathLike[str],
        label_names: Sequence[str],
        *,
        format: str | None = None,
    ) -> None:
        self._pa = import_optional("pyarrow", "writing label sets", "data")
        check_choice(format, "format", (None, *FORMATS))
        self._standard_output = os.fspath(target) == "-"
        if format is None:
            suffix = "csv" if self._standard_output else Path(target).suffix.lower()
            format = "csv" if self._standard_output else suffix_format(suffix) or suffix
            if format not in FORMATS:
                raise ValueError(
                    f"{target} has the extension {suffix!r}: it must be .csv, .tsv, .jsonl or "
                    ".parquet, or the format must be given"
                )
        self.format = format
        self.target = target
        self.label_names = [str(name) for name in label_names]
        self.separator = ";"  # of lists in CSV
        self.metadata: dict[str, str] = {}  # of a Parquet file, written at its end
        self._stack = contextlib.ExitStack()
        self._file: Any = None
        self._parquet: Any = None  # pyarrow's writer, made with the schema of the first block
        self._has_header = False

    def __enter__(self) -> Any:
        if self._standard_output:
            if sys.stdout is None:
                raise ValueError("standard output is closed: there must be a file to write to")
            self._file = sys.stdout.buffer
            if sys.stdout.isatty() and self.format != "parquet":
                self._file = _Terminal(self._file)
            self._stack.enter_context(named_errors("standard output"))
            self._stack.callback(self._file.flush)
        else:
            self._file = self._stack.enter_context(atomic_file(self.target))
        return self

    def __exit__(self, *error: Any) -> bool | None:
        if error[0] is None and self._parquet is not None:
            self._parquet.add_key_value_metadata(self.metadata)
            self._parquet.close()
        return self._stack.__exit__(*error)

    def _append(self, columns: dict[str, Any], ids: Any) -> None:
        """Write columns after those of `ids`; before the first rows, the header or schema."""
        if ids is not None:
            taken = next((name for name in ids.column_names if name in columns), None)
            if taken is not None:
                raise ValueError(
                    f"ids has the column {taken!r}, which is written too: names must be unique"
                )
            columns = dict(zip(ids.column_names, ids.columns, strict=True)) | columns
        import pyarrow.compute as pc

        if self.format == "parquet":
            import pyarrow.parquet as pq

            table = self._pa.table(columns)
            if self._parquet is None:
                self._parquet = pq.ParquetWriter(self._file, table.schema)
            self._parquet.write_table(table)
        elif self.format == "jsonl":
            parts: list[Any] = []
            for name, column in columns.items():
                parts += [f"{', ' if parts else '{'}{_json(name)}: ", self._json_cells(column)]
            self._write_strings(pc.binary_join_element_wise(*parts, "}\n", ""))
        else:
            delimiter = "\t" if self.format == "tsv" else ","
            if not self._has_header:
                text = io.StringIO()
                csv.writer(text, delimiter=delimiter, lineterminator="\n").writerow(columns)
                self._file.write(text.getvalue().encode())
                self._has_header = True
            cells = [self._cells(column, delimiter) for column in columns.values()]
            if len(cells) == 1:  # readers of CSV skip empty lines
                cells = [pc.if_else(pc.equal(cells[0], ""), '""', cells[0])]
            lines = pc.binary_join_element_wise(*cells, delimiter)
            self._write_strings(pc.binary_join_element_wise(lines, "", "\n"))

    def _cells(self, column: Any, delimiter: str) -> Any:
        """Return the texts of a column, quoted where the delimiter or a quote occurs."""
        import pyarrow.compute as pc

        types = self._pa.types
        if types.is_list(column.type):
            column = pc.binary_join(column, self.separator)
        is_number = types.is_floating(column.type) or types.is_integer(column.type)
        column = pc.fill_null(column.cast(self._pa.string()), "")
        if is_number:
            return column
        special = pc.match_substring_regex(column, f'[{re.escape(delimiter)}"\r\n]')
        doubled = pc.replace_substring(column, '"', '""')
        in_quotes = pc.binary_join_element_wise('"', doubled, '"', "")
        return pc.if_else(special, in_quotes, column)

    def _json_cells(self, column: Any) -> Any:
        """Return the values of a column as JSON, which has neither NaN nor dates."""
        import pyarrow.compute as pc

        pa = self._pa
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            numbers = pc.if_else(pc.is_finite(column), column, pa.scalar(None, column.type))
            return pc.fill_null(numbers.cast(pa.string()), "null")
        if isinstance(column, pa.ListArray):
            names = column.flatten().dictionary_encode()
            texts = pa.array([_json(name) for name in names.dictionary.to_pylist()], pa.string())
            lists = pa.ListArray.from_arrays(column.offsets, texts.take(names.indices))
            return pc.binary_join_element_wise("[", pc.binary_join(lists, ", "), "]", "")
        return pa.array([_json(value) for value in column.to_pylist()], pa.string())

    def _write_strings(self, strings: Any) -> None:
        """Write an array of strings from its buffer, without making Python objects."""
        for chunk in strings.chunks if hasattr(strings, "chunks") else [strings]:
            _, offsets, text = chunk.buffers()
            if text is not None and len(chunk):
                ends = np.frombuffer(offsets, dtype=np.int32)[chunk.offset :]
                self._file.write(memoryview(text)[ends[0] : ends[len(chunk)]])


def _blocks(n: int, m: int) -> list[slice]:
    """Return slices of dense rows to write at a time: texts of pyarrow have at most 2 GiB."""
    return row_blocks(n, max(64, 2 * m)) or [slice(0, 0)]


def _json(value: Any) -> str:
    return json.dumps(value, default=str, ensure_ascii=False)


class LabelSetWriter(_TableWriter):
    """Write label sets and their expected F-measures, in blocks of rows.

    Use it as a context manager. A file is replaced when the new one is complete; standard output
    gets every block at once. Expected F-measures have six decimals in text, all digits in Parquet.

    Parameters
    ----------
    target : str or path-like
        The file; "-" is standard output.
    label_names : sequence of str
        The names of the labels.
    format : {"csv", "tsv", "jsonl", "parquet"}, optional
        By default it follows from the file name; standard output is CSV.
    separator : str, default=";"
        The separator of the labels of a row in CSV and TSV.
    wide : bool, default=False
        Whether to write one 0/1 column per label instead of one column of label lists.

    See Also
    --------
    decide : Read probabilities from a file and write label sets.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from fgfm.io import LabelSetWriter
    >>> from fgfm.decision import from_marginals
    >>> labels, expected_f = from_marginals([[0.9, 0.2], [0.4, 0.7]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "sets.csv"
    ...     with LabelSetWriter(path, ["cat", "dog"]) as writer:
    ...         writer.write(labels, expected_f)
    ...     print(path.read_text(), end="")
    labels,expected_f
    cat,0.84
    cat;dog,0.64
    """

    def __init__(
        self,
        target: str | os.PathLike[str],
        label_names: Sequence[str],
        *,
        format: str | None = None,
        separator: str = ";",
        wide: bool = False,
    ) -> None:
        super().__init__(target, label_names, format=format)
        self.wide = wide
        self.separator = separator
        names = self.label_names
        if self.format in ("csv", "tsv") and not wide:
            for name in names:
                if separator in name:
                    raise ValueError(
                        f"separator is {separator!r}, which occurs in the label {name!r}: it must "
                        "not occur in a label"
                    )
        if wide and "expected_f" in names:
            raise ValueError(
                "a label is called 'expected_f', as is the column of expected F-measures: wide "
                "output needs unique names"
            )
        self._names = self._pa.array(names, self._pa.string())

    def write(
        self, labels: Any, expected_f: npt.NDArray[np.float64] | None, ids: Any = None
    ) -> None:
        """Write a block of rows.

        Parameters
        ----------
        labels : ndarray or CSR of shape (n, m)
            The label sets, 0 or 1. Without rows, only the header is written.
        expected_f : ndarray of shape (n,) or None
            The expected F-measure of each; NaN is written as missing. None in all blocks writes
            no such column.
        ids : pyarrow.Table, optional
            Columns to write before the labels, such as identifiers.
        """
        n, m = labels.shape
        for rows in _blocks(n, m if self.wide or not sparse.issparse(labels) else 1):
            columns: dict[str, Any] = {}
            part = labels[rows]
            if self.wide:
                part = part.toarray() if sparse.issparse(part) else np.asarray(part)
                for j, name in enumerate(self.label_names):
                    columns[name] = self._pa.array(np.ascontiguousarray(part[:, j]), "int8")
            else:
                columns["labels"] = self._lists(part)
            if expected_f is not None:
                values = expected_f[rows]
                if self.format != "parquet":
                    values = np.round(values, _DECIMALS)
                columns["expected_f"] = self._pa.array(values, from_pandas=True)  # NaN: null
            kept = None if ids is None else ids.slice(rows.start, rows.stop - rows.start)
            self._append(columns, kept)

    def _lists(self, labels: Any) -> Any:
        """Return the names of the labels of each row, as a list array."""
        if sparse.issparse(labels):
            offsets, at = labels.indptr, labels.indices
        else:
            rows, at = np.nonzero(labels)
            counts = np.bincount(rows, minlength=len(labels))
            offsets = np.concatenate([[0], np.cumsum(counts)])
        return self._pa.ListArray.from_arrays(
            self._pa.array(offsets, self._pa.int32()), self._names.take(self._pa.array(at))
        )


class ProbabilityWriter(_TableWriter):
    """Write a table of probabilities, in blocks of rows, as `decide` reads it.

    Use it as a context manager, as `LabelSetWriter`.

    Parameters
    ----------
    target : str or path-like
        The file, which is replaced when the new one is complete; "-" is standard output.
    label_names : sequence of str
        The names of the labels.
    format : {"csv", "tsv", "jsonl", "parquet"}, optional
        By default it follows from the file name; standard output is CSV.

    See Also
    --------
    decide : Read probabilities from a file and write label sets.
    """

    def write(self, proba: npt.NDArray[np.float64], ids: Any = None) -> None:
        """Write a block of rows.

        Parameters
        ----------
        proba : ndarray of shape (n, m)
            The probabilities, written with all their digits.
        ids : pyarrow.Table, optional
            Columns to write before them, such as identifiers.
        """
        for rows in _blocks(*proba.shape):
            part = np.asfortranarray(proba[rows])
            columns = {name: self._pa.array(part[:, j]) for j, name in enumerate(self.label_names)}
            kept = None if ids is None else ids.slice(rows.start, rows.stop - rows.start)
            self._append(columns, kept)
