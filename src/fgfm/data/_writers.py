"""Label sets and probabilities, written in blocks as CSV, TSV, JSON lines or Parquet."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._utils.atomic import atomic_file, named_errors
from fgfm._utils.optional import import_optional
from fgfm._utils.text import escaped
from fgfm._utils.validation import check_choice
from fgfm.data._formats import LABEL_SET_FORMATS, default_delimiter, label_set_format

__all__ = ["LabelSetWriter", "ProbabilityWriter"]

_MOST_ROWS = 1 << 16  # that are written at a time
_DENSE_NUMBERS = 1 << 21  # of dense labels
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
        format: str | None,
        metadata: Mapping[bytes, bytes] | None = None,
    ) -> None:
        self._pa = import_optional("pyarrow", "writing label sets", "data")
        check_choice(format, "format", (None, *LABEL_SET_FORMATS))
        self._standard_output = os.fspath(target) == "-"
        if format is None:
            format = "csv" if self._standard_output else label_set_format(target)
        self.format = format
        self.target = target
        self.label_names = [str(name) for name in label_names]
        self._metadata = dict(metadata or {})
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
            self._parquet.close()
        return self._stack.__exit__(*error)

    def _append(self, table: Any) -> None:
        """Write a table, after the header or schema if it is the first."""
        if self.format == "parquet":
            import pyarrow.parquet as pq

            if self._parquet is None:
                metadata = (table.schema.metadata or {}) | self._metadata
                self._parquet = pq.ParquetWriter(self._file, table.schema.with_metadata(metadata))
            self._parquet.write_table(table)
            return
        import pyarrow.compute as pc

        delimiter = default_delimiter(self.format)
        if not self._has_header:
            text = io.StringIO()
            csv.writer(text, delimiter=delimiter, lineterminator="\n").writerow(table.column_names)
            self._file.write(text.getvalue().encode())
            self._has_header = True
        cells = [self._cells(column, delimiter) for column in table.columns]
        if len(cells) == 1:  # readers of CSV skip empty lines
            cells = [pc.if_else(pc.equal(cells[0], ""), '""', cells[0])]
        lines = pc.binary_join_element_wise(*cells, delimiter)
        self._write_strings(pc.binary_join_element_wise(lines, "", "\n"))

    def _cells(self, column: Any, delimiter: str) -> Any:
        """Return the texts of a column, quoted where the delimiter or a quote occurs."""
        import pyarrow.compute as pc

        types = self._pa.types
        is_number = types.is_floating(column.type) or types.is_integer(column.type)
        column = pc.fill_null(column.cast(self._pa.string()), "")
        if is_number:
            return column
        special = pc.match_substring_regex(column, f'[{re.escape(delimiter)}"\r\n]')
        doubled = pc.replace_substring(column, '"', '""')
        in_quotes = pc.binary_join_element_wise('"', doubled, '"', "")
        return pc.if_else(special, in_quotes, column)

    def _write_strings(self, strings: Any) -> None:
        """Write an array of strings from its buffer, without making Python objects."""
        for chunk in strings.chunks if hasattr(strings, "chunks") else [strings]:
            _, offsets, text = chunk.buffers()
            if text is not None and len(chunk):
                ends = np.frombuffer(offsets, dtype=np.int32)[chunk.offset :]
                self._file.write(memoryview(text)[ends[0] : ends[len(chunk)]])


def _block_rows(m: int) -> int:
    """Return the number of dense rows to write at a time: texts of pyarrow have at most 2 GiB."""
    return min(_MOST_ROWS, max(1, _DENSE_NUMBERS // max(1, m)))


def _id_columns(ids: Any, reserved: Sequence[str]) -> dict[str, Any]:
    """Return the id columns by name; raise if a name is that of a written column."""
    if ids is None:
        return {}
    taken = set(reserved)
    for name in ids.column_names:
        if name in taken:
            raise ValueError(
                f"ids has the column {name!r}, which is written too: names must be unique"
            )
    return dict(zip(ids.column_names, ids, strict=True))


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
    metadata : dict of bytes to bytes, optional
        Metadata of a Parquet file.

    See Also
    --------
    decide : Read probabilities from a file and write label sets.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from fgfm.data import LabelSetWriter
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
        metadata: Mapping[bytes, bytes] | None = None,
    ) -> None:
        super().__init__(target, label_names, format, metadata)
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
        if self.format == "jsonl":
            self._json_names = self._pa.array([_json(name) for name in names], self._pa.string())

    def write(
        self, labels: Any, expected_f: npt.NDArray[np.float64] | None, ids: Any = None
    ) -> None:
        """Write a block of rows.

        Parameters
        ----------
        labels : ndarray or CSR of shape (n, m)
            The label sets, 0 or 1.
        expected_f : ndarray of shape (n,) or None
            The expected F-measure of each; NaN is written as missing. None in all blocks writes
            no such column.
        ids : pyarrow.Table, optional
            Columns to write before the labels, such as identifiers.
        """
        n, m = labels.shape
        rows = _block_rows(m) if self.wide or not sparse.issparse(labels) else _MOST_ROWS
        if n > rows:
            for start in range(0, n, rows):
                block = slice(start, start + rows)
                part = None if expected_f is None else expected_f[block]
                self.write(labels[block], part, None if ids is None else ids.slice(start, rows))
            return
        if self.wide and sparse.issparse(labels):
            labels = labels.toarray()
        pa = self._pa
        own = self.label_names if self.wide else ["labels"]
        columns = _id_columns(ids, [*own, "expected_f"])
        expected = None
        if expected_f is not None:
            values = expected_f if self.format == "parquet" else np.round(expected_f, _DECIMALS)
            expected = pa.array(values, from_pandas=True)  # NaN becomes null
        if self.format == "jsonl":
            self._write_strings(self._json_lines(columns, labels, expected))
            return
        if self.wide:
            dense = np.asarray(labels)
            for j, name in enumerate(self.label_names):
                columns[name] = pa.array(np.ascontiguousarray(dense[:, j]), pa.int8())
        elif self.format == "parquet":
            columns["labels"] = self._lists(labels, self._names)
        else:
            columns["labels"] = self._joined(labels, self._names, self.separator)
        if expected is not None:
            columns["expected_f"] = expected
        self._append(pa.table(columns))

    def write_header(self, ids: Any = None, *, expected_f: bool = True) -> None:
        """Write the header or schema of a file without rows.

        Parameters
        ----------
        ids : pyarrow.Table, optional
            The columns before the labels, without rows.
        expected_f : bool, default=True
            Whether there is a column of expected F-measures.
        """
        nothing = np.zeros((0, len(self.label_names)), dtype=np.int8)
        self.write(nothing, np.zeros(0) if expected_f else None, ids)

    def _lists(self, labels: Any, names: Any) -> Any:
        """Return the names of the labels of each row, as a list array."""
        if sparse.issparse(labels):
            offsets, at = labels.indptr, labels.indices
        else:
            rows, at = np.nonzero(labels)
            counts = np.bincount(rows, minlength=len(labels))
            offsets = np.concatenate([[0], np.cumsum(counts)])
        return self._pa.ListArray.from_arrays(
            self._pa.array(offsets, self._pa.int32()), names.take(self._pa.array(at))
        )

    def _joined(self, labels: Any, names: Any, separator: str) -> Any:
        import pyarrow.compute as pc

        return pc.binary_join(self._lists(labels, names), separator)

    def _json_lines(self, columns: dict[str, Any], labels: Any, expected: Any) -> Any:
        """Return a JSON object for each row."""
        import pyarrow.compute as pc

        pa = self._pa
        parts: list[Any] = []
        opening = "{"
        for name, values in columns.items():
            encoded = [_json(v) for v in values.to_pylist()]
            parts += [f"{opening}{_json(name)}: ", pa.array(encoded, pa.string())]
            opening = ", "
        if self.wide:
            parts += [opening, self._json_wide(labels)]
        else:
            sets = self._joined(labels, self._json_names, ", ")
            parts += [f'{opening}"labels": [', sets, "]"]
        if expected is not None:
            parts += [', "expected_f": ', pc.fill_null(expected.cast(pa.string()), "null")]
        parts.append("}\n")
        return pc.binary_join_element_wise(*parts, "")

    def _json_wide(self, labels: Any) -> Any:
        """Return the members ``"label": 0`` or ``"label": 1`` of each row, for all labels."""
        names = [_json(name) for name in self.label_names]
        return self._pa.array(
            [
                ", ".join(f"{name}: {int(value)}" for name, value in zip(names, row, strict=True))
                for row in np.asarray(labels)
            ],
            self._pa.string(),
        )


def _json(value: Any) -> str:
    """Return a value as JSON, which has neither NaN nor dates."""
    if isinstance(value, float) and not math.isfinite(value):
        return "null"
    return json.dumps(value, default=str, ensure_ascii=False)


class ProbabilityWriter(_TableWriter):
    """Write a table of probabilities, in blocks of rows, as `decide` reads it.

    Use it as a context manager, as `LabelSetWriter`.

    Parameters
    ----------
    target : str or path-like
        The file, which is replaced when the new one is complete; "-" is standard output.
    label_names : sequence of str
        The names of the labels.
    format : {"csv", "tsv", "parquet"}, optional
        By default it follows from the file name; standard output is CSV.

    See Also
    --------
    decide : Read probabilities from a file and write label sets.
    """

    def __init__(
        self,
        target: str | os.PathLike[str],
        label_names: Sequence[str],
        *,
        format: str | None = None,
    ) -> None:
        super().__init__(target, label_names, format)
        if self.format == "jsonl":
            raise ValueError(f"{target}: probabilities are written as CSV, TSV or Parquet")

    def write(self, proba: npt.NDArray[np.float64], ids: Any = None) -> None:
        """Write a block of rows.

        Parameters
        ----------
        proba : ndarray of shape (n, m)
            The probabilities, written with all their digits.
        ids : pyarrow.Table, optional
            Columns to write before them, such as identifiers.
        """
        id_columns = _id_columns(ids, self.label_names)
        rows = _block_rows(len(self.label_names))
        for start in range(0, len(proba), rows):
            columns = {name: column.slice(start, rows) for name, column in id_columns.items()}
            for j, name in enumerate(self.label_names):
                values = np.ascontiguousarray(proba[start : start + rows, j])
                columns[name] = self._pa.array(values)
            self._append(self._pa.table(columns))
