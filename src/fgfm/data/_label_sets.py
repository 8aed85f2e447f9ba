"""Label sets on their way to a file: block by block, as CSV, JSON lines or Parquet."""

from __future__ import annotations

import contextlib
import csv as plain_csv
import io
import json
import math
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._utils.atomic import atomic_file
from fgfm._utils.validation import check_choice
from fgfm.data._extras import need

__all__ = ["OUTPUTS", "LabelSetWriter", "output_format"]

OUTPUTS = ("csv", "tsv", "jsonl", "parquet")
STREAM = "-"  # standard output
_DENSE = 1 << 21  # numbers that are made dense at a time
_DECIMALS = 6  # of expectations, in text
_SUFFIXES = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_SUFFIXES |= {".parquet": "parquet", ".pq": "parquet"}


def output_format(target: str | os.PathLike[str], format: str | None) -> str:
    """Give the format of a file of label sets: as named, or by its name.

    Parameters
    ----------
    target : str or path-like
        The file; "-" is standard output.
    format : str or None
        One of `OUTPUTS`, or None.

    Returns
    -------
    str
        The format.
    """
    check_choice(format, "format", (None, *OUTPUTS))
    if format is not None:
        return format
    if os.fspath(target) == STREAM:
        return "csv"
    suffix = Path(target).suffix.lower()
    if suffix not in _SUFFIXES:
        raise ValueError(
            f"{target} has the extension {suffix!r}: it must be one of "
            f"{', '.join(_SUFFIXES)}, or the format must be named"
        )
    return _SUFFIXES[suffix]


class LabelSetWriter(contextlib.AbstractContextManager["LabelSetWriter"]):
    """Write label sets and what is expected of them, block by block.

    A file appears when it is complete; standard output gets every block at once. Expectations
    have six decimals in text, and all digits in Parquet.

    Parameters
    ----------
    target : str or path-like
        The file; "-" is standard output.
    label_names : sequence of str
        Names of the labels.
    format : {"csv", "tsv", "jsonl", "parquet"}, optional
        By default the name of the file tells; standard output gets CSV.
    separator : str, default=";"
        What stands between the labels of a row in CSV and TSV.
    wide : bool, default=False
        Write one column of 0 and 1 for each label, not one with the labels that are there.
    metadata : dict of bytes to bytes, optional
        What a Parquet file tells beside its table.
    """

    def __init__(
        self,
        target: str | os.PathLike[str],
        label_names: Sequence[str],
        *,
        format: str | None = None,
        separator: str = ";",
        wide: bool = False,
        metadata: dict[bytes, bytes] | None = None,
    ) -> None:
        self._pa = need("pyarrow", "writing label sets")
        self.format = output_format(target, format)
        self.target = target
        self.wide = wide
        self.separator = separator
        self.metadata = metadata or {}
        names = [str(name) for name in label_names]
        if self.format in ("csv", "tsv") and not wide:
            for name in names:
                if separator in name:
                    raise ValueError(
                        f"label {name!r} has {separator!r} in its name: choose another separator"
                    )
        if wide and "expected_f" in names:
            raise ValueError(
                "a label is called 'expected_f', as the column of expectations is: wide output "
                "cannot tell them apart"
            )
        self.label_names = names
        self._names = self._pa.array(names, self._pa.string())
        self._quoted = self._pa.array([json.dumps(name) for name in names], self._pa.string())
        self._stack = contextlib.ExitStack()
        self._writer: Any = None
        self._file: Any = None
        self._begun = False

    def __enter__(self) -> LabelSetWriter:
        if os.fspath(self.target) == STREAM:
            if sys.stdout is None:
                raise ValueError("standard output is closed: there must be a file to write to")
            self._file = sys.stdout.buffer
            self._stack.callback(self._file.flush)
        else:
            self._file = self._stack.enter_context(atomic_file(self.target))
        return self

    def __exit__(self, *error: Any) -> bool | None:
        if error[0] is None and self._writer is not None:
            self._writer.close()
        return self._stack.__exit__(*error)

    def write(self, labels: Any, expected_f: npt.NDArray[np.float64], ids: Any = None) -> None:
        """Write a block of rows.

        Parameters
        ----------
        labels : ndarray or CSR of shape (n, m)
            Label sets, 0 or 1.
        expected_f : ndarray of shape (n,)
            What is expected of each; NaN is written as missing.
        ids : pyarrow.Table, optional
            Columns that stand before the labels, such as identifiers.
        """
        if self.wide and sparse.issparse(labels):  # a bounded number of rows is made dense
            rows = max(1, _DENSE // max(1, labels.shape[1]))
            for start in range(0, max(1, labels.shape[0]), rows):
                part = slice(start, start + rows)
                kept = None if ids is None else ids.slice(start, rows)
                self.write(labels[part].toarray(), expected_f[part], kept)
            return
        pa = self._pa
        columns: dict[str, Any] = (
            {} if ids is None else dict(zip(ids.column_names, ids, strict=True))
        )
        own = {*(self.label_names if self.wide else ["labels"]), "expected_f"}
        for name in columns:
            if name in own:
                raise ValueError(f"column {name!r} is among those to keep, and is written itself")
        if self.format != "parquet":
            expected_f = np.round(expected_f, _DECIMALS)
        expected = pa.array(expected_f, from_pandas=True)  # NaN is null
        if self.format == "jsonl":
            self._write_lines(self._json_lines(columns, labels, expected))
            return
        if self.wide:
            dense = np.asarray(labels)
            added = {
                name: pa.array(np.ascontiguousarray(dense[:, j]), pa.int8())
                for j, name in enumerate(self.label_names)
            }
        elif self.format == "parquet":
            added = {"labels": self._lists(labels, self._names)}
        else:
            added = {"labels": self._joined(self._lists(labels, self._names), self.separator)}
        added["expected_f"] = expected
        self._append(pa.table(columns | added))

    def write_nothing(self, ids: Any = None) -> None:
        """Write the header or schema of a file without rows.

        Parameters
        ----------
        ids : pyarrow.Table, optional
            A table without rows of the columns that would stand before the labels.
        """
        self.write(np.zeros((0, len(self.label_names)), dtype=np.int8), np.zeros(0), ids)

    def _append(self, table: Any) -> None:
        """Write a table, after a header or schema where it is the first."""
        if self.format == "parquet":
            import pyarrow.parquet as pq

            if self._writer is None:
                told = (table.schema.metadata or {}) | self.metadata
                self._writer = pq.ParquetWriter(self._file, table.schema.with_metadata(told))
            self._writer.write_table(table)
            return
        import pyarrow.compute as pc

        delimiter = "," if self.format == "csv" else "\t"
        if not self._begun:
            text = io.StringIO()
            plain_csv.writer(text, delimiter=delimiter, lineterminator="\n").writerow(
                table.column_names
            )
            self._file.write(text.getvalue().encode())
            self._begun = True
        cells = [self._cells(column, delimiter) for column in table.columns]
        lines = pc.binary_join_element_wise(*cells, delimiter)
        self._write_lines(pc.binary_join_element_wise(lines, "", "\n"))

    def _cells(self, column: Any, delimiter: str) -> Any:
        """Give the text of values, in quotes where it would be read as something else."""
        import pyarrow.compute as pc

        types = self._pa.types
        plain = types.is_floating(column.type) or types.is_integer(column.type)
        column = pc.fill_null(column.cast(self._pa.string()), "")
        if plain:
            return column
        special = pc.match_substring_regex(column, f'[{re.escape(delimiter)}"\r\n]')
        doubled = pc.replace_substring(column, '"', '""')
        quoted = pc.binary_join_element_wise('"', doubled, '"', "")
        return pc.if_else(special, quoted, column)

    def _write_lines(self, lines: Any) -> None:
        """Write texts as they lie in memory, one after the other."""
        for chunk in lines.chunks if hasattr(lines, "chunks") else [lines]:
            _, offsets, text = chunk.buffers()
            if text is not None and len(chunk):
                ends = np.frombuffer(offsets, dtype=np.int32)[chunk.offset :]
                self._file.write(memoryview(text)[ends[0] : ends[len(chunk)]])

    def _lists(self, labels: Any, names: Any) -> Any:
        """Give the names of the labels of each row, as a list array."""
        if sparse.issparse(labels):
            offsets, at = labels.indptr, labels.indices
        else:
            rows, at = np.nonzero(labels)
            counts = np.bincount(rows, minlength=len(labels))
            offsets = np.concatenate([[0], np.cumsum(counts)])
        return self._pa.ListArray.from_arrays(
            self._pa.array(offsets, self._pa.int32()), names.take(self._pa.array(at))
        )

    def _joined(self, lists: Any, separator: str) -> Any:
        import pyarrow.compute as pc

        return pc.binary_join(lists, separator)

    def _json_lines(self, columns: dict[str, Any], labels: Any, expected: Any) -> Any:
        """Give a JSON object for each row."""
        import pyarrow.compute as pc

        pa = self._pa
        sets = self._joined(self._lists(labels, self._quoted), ", ")
        if self.wide:
            sets = pa.array(
                [
                    ", ".join(f"{name}: {int(v)}" for name, v in zip(quoted, row, strict=True))
                    for quoted, row in self._wide_rows(labels)
                ],
                pa.string(),
            )
        parts: list[Any] = []
        opening = "{"
        for name, values in columns.items():
            encoded = [_json(v) for v in values.to_pylist()]
            parts += [f"{opening}{json.dumps(name)}: ", pa.array(encoded, pa.string())]
            opening = ", "
        if self.wide:
            parts += [opening, sets]
        else:
            parts += [f'{opening}"labels": [', sets, "]"]
        told = pc.fill_null(expected.cast(pa.string()), "null")
        parts += [', "expected_f": ', told, "}\n"]
        return pc.binary_join_element_wise(*parts, "")

    def _wide_rows(self, labels: Any) -> Any:
        quoted = [json.dumps(name) for name in self.label_names]
        return ((quoted, row) for row in np.asarray(labels))


def _json(value: Any) -> str:
    """Write a value of a column as JSON, which knows neither NaN nor dates."""
    if isinstance(value, float) and not math.isfinite(value):
        return "null"
    return json.dumps(value, default=str)
