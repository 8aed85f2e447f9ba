"""Label sets and probabilities, written in blocks as CSV, TSV, JSON lines or Parquet."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
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

FORMATS = ("csv", "tsv", "jsonl", "parquet")
_DECIMALS = 6  # of the expected F-measure in text


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
        import_optional("pyarrow", "writing label sets", "data")
        check_choice(format, "format", (None, *FORMATS))
        is_stream = os.fspath(target) == "-"
        if format is None:
            suffix = ".csv" if is_stream else Path(target).suffix.lower()
            format = suffix_format(suffix) or suffix
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
        self._is_stream, self._is_terminal = is_stream, False
        self._stack = contextlib.ExitStack()
        self._file: Any = None
        self._parquet: Any = None  # pyarrow's writer, made with the schema of the first block
        self._has_header = False

    def __enter__(self) -> Any:
        if self._is_stream:
            if sys.stdout is None:
                raise ValueError("standard output is closed: there must be a file to write to")
            self._file, self._is_terminal = sys.stdout.buffer, sys.stdout.isatty()
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

    def _append(self, columns: dict[str, Any], ids: Any, rows: slice) -> None:
        """Write columns after the rows of `ids`; before the first, the header or schema."""
        if ids is not None:
            taken = next((name for name in ids.column_names if name in columns), None)
            if taken is not None:
                raise ValueError(
                    f"ids has the column {taken!r}, which is written too: names must be unique"
                )
            ids = ids.slice(rows.start, rows.stop - rows.start)
            columns = {name: ids[name].combine_chunks() for name in ids.column_names} | columns
        if self.format == "parquet":
            import pyarrow as pa
            import pyarrow.parquet as pq

            table = pa.table(columns)
            if self._parquet is None:
                self._parquet = pq.ParquetWriter(self._file, table.schema)
            self._parquet.write_table(table)
            return
        cells = [column.tolist() for column in columns.values()]  # of NumPy, or of pyarrow
        text = io.StringIO()
        if self.format == "jsonl":
            encode = json.JSONEncoder(default=str, ensure_ascii=False).encode
            for row in zip(*cells, strict=True):
                # JSON has neither NaN nor dates
                values = (None if cell != cell else cell for cell in row)
                text.write(encode(dict(zip(columns, values, strict=True))) + "\n")
        else:
            delimiter = "\t" if self.format == "tsv" else ","
            writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
            if not self._has_header:
                writer.writerow(columns)
                self._has_header = True
            for k, column in enumerate(columns.values()):
                if _is_list(column):
                    cells[k] = [self.separator.join(names) for names in cells[k]]
            writer.writerows(zip(*cells, strict=True))
        content = text.getvalue()
        if self._is_terminal:
            content = escaped(content, keep="\n\t")
        self._file.write(content.encode())


def _is_list(column: Any) -> bool:
    import pyarrow as pa

    return hasattr(column, "type") and pa.types.is_list(column.type)


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
        if self.format in ("csv", "tsv") and not wide:
            for name in self.label_names:
                if separator in name:
                    raise ValueError(
                        f"separator is {separator!r}, which occurs in the label {name!r}: it must "
                        "not occur in a label"
                    )
        if wide and "expected_f" in self.label_names:
            raise ValueError(
                "a label is called 'expected_f', as is the column of expected F-measures: wide "
                "output needs unique names"
            )

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
        import pyarrow as pa

        is_thin = sparse.issparse(labels) and not self.wide
        width = 512 if is_thin else 8 * labels.shape[1]
        for rows in row_blocks(labels.shape[0], width) or [slice(0, 0)]:
            columns: dict[str, Any] = {}
            part = sparse.csr_array(labels[rows])
            if self.wide:
                flags = np.asfortranarray(part.toarray().astype(np.int8))
                columns = {name: flags[:, j] for j, name in enumerate(self.label_names)}
            else:
                names = pa.array(self.label_names, pa.string()).take(pa.array(part.indices))
                columns["labels"] = pa.ListArray.from_arrays(part.indptr.astype(np.int32), names)
            if expected_f is not None:
                values = expected_f[rows]
                if self.format != "parquet":
                    values = np.round(values, _DECIMALS)
                columns["expected_f"] = pa.array(values, from_pandas=True)  # NaN: null
                if self.format in ("csv", "tsv"):  # 1, not 1.0
                    columns["expected_f"] = columns["expected_f"].cast(pa.string())
            self._append(columns, ids, rows)


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
        for rows in row_blocks(proba.shape[0], 8 * proba.shape[1]) or [slice(0, 0)]:
            part = np.asfortranarray(proba[rows])
            columns = {name: part[:, j] for j, name in enumerate(self.label_names)}
            self._append(columns, ids, rows)
