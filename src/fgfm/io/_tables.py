"""Tables of named columns as record batches: CSV, TSV, Parquet, JSON lines and Excel.

pyarrow parses. The cells of CSV and TSV are strings here; `fgfm.io._cells` makes numbers of them.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
import sys
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import Any

from fgfm._utils.optional import import_optional
from fgfm._utils.text import missing_columns, one_line, quoted
from fgfm.io._cells import as_array
from fgfm.io._errors import DataError
from fgfm.io._files import (
    Chained,
    TextFormat,
    bad_encoding,
    check_names,
    open_bytes,
    source_name,
)

_BLOCK_BYTES = 1 << 20  # of CSV; pyarrow reads 32 blocks ahead
_BLOCK_CELLS = 1 << 20  # of a batch of Parquet
_HEAD = 1 << 22  # bytes within which the header of CSV must end
_HEAD_LINES = 64
_JSON_ROWS = 1 << 13
_DELIMITERS = ",;\t|"
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")
_ROW = re.compile(r"(?:CSV parse error: )?Row #([0-9]+): ")


@dataclass
class Table:
    """An open table."""

    source: str  # the file, for messages
    names: list[str]
    batches: Iterator[Any]  # of pyarrow.RecordBatch
    declared: list[str] | None = None  # the columns that are labels, if the file says so
    is_text: bool = False  # whether all cells are strings, as in CSV
    has_names: bool = True  # otherwise the columns are numbered from 0
    decimal: str = "."

    @classmethod
    def of(cls, source: str, columns: dict[str, Any], declared: Any = None) -> Table:
        """Return a table of columns in memory."""
        import pyarrow as pa

        return cls(source, list(columns), iter([pa.record_batch(columns)]), declared)

    @cached_property
    def rows(self) -> Any:
        """All rows, as a pyarrow.Table."""
        import pyarrow as pa

        empty = pa.table({name: pa.array([], "string") for name in self.names})
        return next(rebatched(self.batches, sys.maxsize), empty)

    def columns(self, names: Sequence[str]) -> dict[str, Any]:
        """Return some columns, each as one array."""
        return {name: self.rows.column(name).combine_chunks() for name in names}

    def check_has(self, names: Sequence[str], argument: str) -> None:
        """Raise unless there are the columns that an argument names."""
        absent = [name for name in names if name not in self.names]
        if absent:
            reason = missing_columns(absent, self.names)
            raise DataError(reason, source=self.source, arguments=[argument])


def rebatched(batches: Iterable[Any], rows: int) -> Iterator[Any]:
    """Yield tables of a given number of rows, the last of which may have fewer.

    They do not depend on the batches, and so neither do floating-point results of models whose
    matrix products depend on the number of rows.
    """
    waiting: list[Any] = []
    count = 0
    for batch in batches:
        waiting.append(batch)
        count += batch.num_rows
        if count < rows:
            continue
        table = _joined(waiting)
        full = count - count % rows
        for start in range(0, full, rows):
            yield table.slice(start, rows)
        waiting, count = table.slice(full).to_batches(), count - full
    if count:
        yield _joined(waiting)


def _joined(batches: Sequence[Any]) -> Any:
    """Return batches as one table; JSON may have another type of values in each."""
    import pyarrow as pa

    tables = [pa.Table.from_batches([batch]) for batch in batches]
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        parts = zip(*(table.to_pydict().values() for table in tables), strict=True)
        columns = [as_array(list(chain.from_iterable(values))) for values in parts]
        return pa.table(columns, tables[0].column_names)


@contextmanager
def open_csv(path: Any, text: TextFormat, encoder: Any) -> Iterator[Table]:
    """Open CSV or TSV; the header is parsed here, the rows by pyarrow."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    source = source_name(path)
    with open_bytes(path) as file:
        if codecs.lookup(text.encoding).name not in ("utf-8", "ascii"):
            file = pa.transcoding_input_stream(pa.PythonFile(file, "r"), text.encoding, "utf-8")
        head = b""
        while head.count(b"\n") < _HEAD_LINES and len(head) < _HEAD:
            part = file.read(1 << 16)
            if not part:
                break
            head += part
        raw = head.removeprefix(codecs.BOM_UTF8).splitlines(keepends=True)
        names, delimiter, used = _read_header(raw, source, text)
        options = (
            arrow_csv.ReadOptions(
                column_names=names,
                block_size=max(_BLOCK_BYTES, 64 * len(raw[-1])),
                use_threads=False,  # with threads, errors do not name the row
            ),
            arrow_csv.ParseOptions(
                delimiter=delimiter,
                newlines_in_values=True,
                ignore_empty_lines=len(names) > 1,  # one empty cell is an empty label set
            ),
            arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )

        def batches() -> Iterator[Any]:
            stream = io.BufferedReader(Chained(b"".join(raw[used:]), file), 1 << 20)
            try:
                yield from arrow_csv.open_csv(stream, *options)
            except pa.ArrowInvalid as error:
                if "Empty CSV file" not in str(error):
                    raise _csv_error(error, path, text) from error

        has_names = text.header is not False
        yield Table(source, names, batches(), None, True, has_names, text.decimal)


def _read_header(
    raw: Sequence[bytes], source: str, text: TextFormat
) -> tuple[list[str], str, int]:
    """Return the names of the columns, the delimiter, and the lines before the first row."""
    lines = [line.decode("utf-8", "replace") for line in raw]
    first = next((k for k, line in enumerate(lines) if line.strip()), None)
    if first is None:
        raise DataError("the file is empty", source=source)
    delimiter = text.delimiter or _find_delimiter(lines[first:], text.decimal)
    rows = csv.reader(lines[first:], delimiter=delimiter)
    cells = next(rows)
    used = first
    if text.header is False:
        names = [str(j) for j in range(len(cells))]
    else:
        names = [cell.strip() for cell in cells]
        if text.header is None and _are_values(names):
            raise DataError(
                f"the first row, {quoted(delimiter.join(cells), 30)}, has only numbers: declare "
                "whether it is a header, the names of the columns, or a row of values",
                source=source,
                line=first + 1,
                arguments=["header"],
            )
        used += rows.line_num
        names[0] = names[0] or "row"  # the index that pandas writes
    b"".join(raw[first:used]).decode()  # raises unless the names are UTF-8
    check_names(names, source)
    return names, delimiter, used


def _csv_error(error: Exception, path: Any, text: TextFormat) -> DataError:
    """Return an error of pyarrow as one that names the file, the row and what may help."""
    reason = one_line(error, 300)
    if "UTF8" in reason or "UTF-8" in reason:
        return bad_encoding(text.encoding, path)
    match = _ROW.search(reason)
    row = None if match is None else int(match[1]) - 1  # pyarrow counts from 1
    reason = _ROW.sub("", reason, count=1)
    reason = reason[:1].lower() + reason[1:]
    arguments = ["delimiter"] if "columns, got" in reason else []
    return DataError(reason, source=source_name(path), row=row, arguments=arguments)


def _find_delimiter(lines: Sequence[str], decimal: str) -> str:
    """Return the first mark that splits the header, and all rows alike.

    Examples
    --------
    >>> _find_delimiter(['film;"plot, short";g', 'Alien;"In space, no one";a'], ".")
    ';'
    """
    header = re.sub('"[^"]*"', "", lines[0])  # a mark in quotes delimits nothing
    marks = [mark for mark in _DELIMITERS.replace(decimal, "") if mark in header]
    whole = [*lines[: _HEAD_LINES - 1]]  # the last line of a head may be a part of one
    for mark in marks:
        rows = islice(csv.reader(whole, delimiter=mark), 2 if len(marks) == 1 else None)
        with suppress(csv.Error):  # a cell may be too long for Python
            if len({len(cells) for cells in rows if cells}) == 1:
                return mark
    return marks[0] if marks else ","


def _are_values(names: Sequence[str]) -> bool:
    """Return True if a header has only numbers that are not 0, 1, 2 and so on."""
    is_numbered = len(names) > 2 and names == [str(j) for j in range(len(names))]
    return not is_numbered and all(_NUMBER.fullmatch(name) for name in names)


@contextmanager
def open_parquet(path: Any, text: TextFormat, encoder: Any) -> Iterator[Table]:
    """Open a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = source_name(path)

    @contextmanager
    def readable() -> Iterator[None]:
        try:
            yield
        except (FileNotFoundError, IsADirectoryError, PermissionError):
            raise
        except (pa.ArrowException, OSError) as error:
            reason = f"this is not a Parquet file, or it is damaged: {one_line(error, 200)}"
            raise DataError(reason, source=source) from error

    with readable():
        file = pq.ParquetFile(path, page_checksum_verification=True, pre_buffer=False)
    with file:
        # An index of pandas without a name is not part of the table.
        names = [n for n in file.schema_arrow.names if not re.fullmatch(r"__index_level_\d+__", n)]
        check_names(names, source)
        rows = max(1, min(1 << 16, _BLOCK_CELLS // max(1, len(names))))

        def batches() -> Iterator[Any]:
            with readable():
                yield from file.iter_batches(rows, columns=names, use_threads=False)

        yield Table(source, names, batches())


@contextmanager
def open_jsonl(path: Any, text: TextFormat, encoder: Any) -> Iterator[Table]:
    """Open JSON lines. The columns are the keys of the first rows; absent ones are missing.

    pyarrow's reader refuses columns in which the type of values changes.
    """
    import pyarrow as pa

    source = source_name(path)
    with open_bytes(path) as file:
        rows = _json_rows(file, source)
        first = list(islice(rows, _JSON_ROWS))
        if not first:
            raise DataError("there are no rows", source=source)
        names = list(dict.fromkeys(key for row in first for key in row))
        check_names(names, source)

        def batches() -> Iterator[Any]:
            part = first
            while part:
                columns = [as_array([row.get(name) for row in part]) for name in names]
                yield pa.RecordBatch.from_arrays(columns, names)
                part = list(islice(rows, _JSON_ROWS))

        yield Table(source, names, batches())


def _json_rows(lines: Any, source: str) -> Iterator[dict[str, Any]]:
    """Yield the object of each line that is not empty."""
    for k, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"it is not JSON: {error}", source=source, line=k) from None
        if not isinstance(found, dict):
            reason = f"{quoted(line.decode(errors='replace').strip())} is not a JSON object"
            raise DataError(reason, source=source, line=k)
        yield found


@contextmanager
def open_excel(path: Any, text: TextFormat, encoder: Any) -> Iterator[Table]:
    """Read the first sheet of an Excel file by pandas."""
    source = source_name(path)
    pandas = import_optional("pandas", "reading Excel files", "data")
    try:
        with open_bytes(path) as file:
            frame = pandas.read_excel(file)
    except ImportError as error:
        raise ImportError("reading Excel files needs openpyxl: pip install openpyxl") from error
    except (ValueError, KeyError, zipfile.BadZipFile) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"it is not an Excel file: {error}", source=source) from error
    names = [str(name) for name in frame.columns]
    check_names(names, source)
    columns = {str(name): as_array(frame[name].tolist()) for name in frame.columns}
    yield Table.of(source, columns)
