"""Tables of named columns as record batches: CSV, TSV, Parquet, JSON lines and Excel.

pyarrow parses. The cells of CSV and TSV are strings here; `fgfm.io._cells` makes numbers of them.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import os
import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, BinaryIO, NamedTuple

from fgfm._utils.optional import import_optional
from fgfm._utils.text import one_line, quoted
from fgfm._utils.validation import check_choice, check_flag
from fgfm.io._errors import DataError
from fgfm.io._files import Chained, bad_encoding, check_encoding, open_bytes, source_name

__all__ = ["Table", "TextFormat", "open_table"]

_BLOCK_BYTES = 1 << 22
_BLOCK_CELLS = 1 << 20  # of a batch of Parquet or JSON lines
_HEAD = 1 << 22  # bytes within which the header of CSV must end
_HEAD_LINES = 64
_LINES_PER_BLOCK = 64
_JSON_ROWS = 1 << 13
_DELIMITERS = ",;\t|"
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")
_ROW = re.compile(r"Row #([0-9]+)")


class TextFormat(NamedTuple):
    """How CSV and TSV are written."""

    delimiter: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    header: bool | None = None

    def check(self) -> None:
        """Raise if an option is not valid."""
        if self.delimiter is not None and (
            len(self.delimiter) != 1 or self.delimiter in '"\r\n' or not self.delimiter.isascii()
        ):
            raise ValueError(f"delimiter is {self.delimiter!r}: it must be one character")
        check_choice(self.decimal, "decimal", (".", ","))
        if self.header is not None:
            check_flag(self.header, "header")
        check_encoding(self.encoding)
        if self.decimal == self.delimiter:
            raise ValueError("decimal and delimiter are both ',': they must differ")


_PLAIN = TextFormat()


@dataclass
class Table:
    """An open table.

    Parameters
    ----------
    source : str
        The file, for messages.
    names : list of str
        The names of the columns.
    batches : iterator of pyarrow.RecordBatch
        The rows.
    is_text : bool
        Whether all cells are strings, as in CSV.
    has_names : bool
        Whether the file has the names; otherwise the columns are numbered from 0.
    decimal : str
        The decimal mark of numbers in text.
    header_lines : int
        The number of lines before the first row.
    metadata : dict
        The metadata of a Parquet file.
    """

    source: str
    names: list[str]
    batches: Iterator[Any]
    is_text: bool = False
    has_names: bool = True
    decimal: str = "."
    header_lines: int = 0
    metadata: dict[bytes, bytes] = field(default_factory=dict)

    def read(self) -> Any:
        """Return all rows as a pyarrow.Table."""
        import pyarrow as pa

        batches = list(self.batches)
        if batches:
            return pa.Table.from_batches(batches)
        return pa.table({name: pa.array([], "string") for name in self.names})


@contextmanager
def open_table(
    path: str | os.PathLike[str], format: str, text: TextFormat = _PLAIN
) -> Iterator[Table]:
    """Open a table in one of the formats `fgfm.io._files.TABLES`."""
    import_optional("pyarrow", f"reading {format}", "data")
    import pyarrow as pa

    source = source_name(path)
    text.check()
    header_lines = 0
    try:
        if format == "parquet":
            with _open_parquet(path, source) as table:
                yield table
        elif format == "xlsx":
            yield _open_excel(path, source)
        else:
            with open_bytes(path) as file:
                if format == "jsonl":
                    yield _open_jsonl(file, source)
                else:
                    table = _open_csv(file, format, text, source)
                    header_lines = table.header_lines
                    yield table
    except pa.ArrowInvalid as error:
        raise _readable(error, source, text, header_lines) from error
    except UnicodeDecodeError:
        raise bad_encoding(text.encoding, path) from None


def _readable(error: Exception, source: str, text: TextFormat, header_lines: int) -> DataError:
    """Return an error of pyarrow as one that names the file and, where pyarrow does, the line."""
    reason = one_line(error, 300).removeprefix("CSV parse error: ")
    if "UTF8" in reason or "UTF-8" in reason:
        return bad_encoding(text.encoding, source)
    row = _ROW.search(reason)
    reason = _ROW.sub("", reason, count=1).removeprefix(": ").strip()
    line = None if row is None else header_lines + int(row[1]) + 1  # pyarrow counts from 0
    return DataError(reason[:1].lower() + reason[1:], source=source, line=line)


def check_names(names: Sequence[str], source: str) -> None:
    """Raise if a name is empty or occurs twice."""
    seen = set()
    for j, name in enumerate(names):
        if not name:
            reason = f"column {j + 1} has no name: every column must have one"
            raise DataError(reason, source=source, arguments=["header"])
        if name in seen:
            raise DataError(
                f"two columns are called {quoted(name)}: names must be unique", source=source
            )
        seen.add(name)


def _open_csv(file: Any, format: str, text: TextFormat, source: str) -> Table:
    """Open CSV or TSV; the header is parsed here, the rows by pyarrow."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    if codecs.lookup(text.encoding).name not in ("utf-8", "ascii"):
        file = pa.transcoding_input_stream(pa.PythonFile(file, "r"), text.encoding, "utf-8")
    head = b""
    while head.count(b"\n") < _HEAD_LINES and len(head) < _HEAD and (part := file.read(1 << 16)):
        head += part
    head = head.removeprefix(codecs.BOM_UTF8)
    raw = head.splitlines(keepends=True)
    lines = [line.decode("utf-8", "replace") for line in raw]
    first = next((k for k, line in enumerate(lines) if line.strip()), None)
    if first is None:
        raise DataError("the file is empty", source=source)
    delimiter = text.delimiter or _find_delimiter(lines[first:], format, text.decimal)
    rows = csv.reader(lines[first:], delimiter=delimiter)
    cells = next(rows)
    names = [cell.strip() for cell in cells]
    if text.header is False:
        names = [str(j) for j in range(len(cells))]
        used = first
    else:
        if text.header is None and _are_values(names):
            raise DataError(
                f"the first row, {quoted(delimiter.join(cells), 30)}, has only numbers: declare "
                "whether it is a header, the names of the columns, or a row of values",
                source=source,
                line=first + 1,
                arguments=["header"],
            )
        used = first + rows.line_num
        if not names[0]:
            names[0] = "row"  # the index that pandas writes
    b"".join(raw[first:used]).decode()  # raises unless the names are UTF-8
    check_names(names, source)
    rest = b"".join(raw[used:])
    table = Table(source, names, iter(()), True, text.header is not False, text.decimal, used)
    if not rest.strip() and not (more := file.read(1)):
        return table
    rest = rest if rest.strip() else more
    reader = arrow_csv.open_csv(
        io.BufferedReader(Chained(rest, file), 1 << 20),
        arrow_csv.ReadOptions(
            column_names=names,
            block_size=max(_BLOCK_BYTES, _LINES_PER_BLOCK * len(lines[-1])),
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
    table.batches = iter(reader)
    return table


def _find_delimiter(lines: Sequence[str], format: str, decimal: str) -> str:
    """Return the delimiter: another than that of the format if the header has only that one."""
    usual = "\t" if format == "tsv" else ","
    found = [mark for mark in _DELIMITERS.replace(decimal, "") if mark in lines[0]]
    if usual in found or len(found) != 1:
        return usual
    widths = {len(cells) for cells in islice(csv.reader(lines, delimiter=found[0]), 2)}
    return found[0] if len(widths) == 1 else usual


def _are_values(names: Sequence[str]) -> bool:
    """Return True if a header has only numbers that are not 0, 1, 2 and so on."""
    is_numbered = len(names) > 2 and names == [str(j) for j in range(len(names))]
    return not is_numbered and all(_NUMBER.fullmatch(name) for name in names)


@contextmanager
def _open_parquet(path: Any, source: str) -> Iterator[Table]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path, page_checksum_verification=True, pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, (FileNotFoundError, IsADirectoryError, PermissionError)):
            raise
        reason = f"this is not a Parquet file, or it is damaged: {one_line(error, 200)}"
        raise DataError(reason, source=source) from error
    with file:
        schema = file.schema_arrow
        index = _pandas_index(schema.metadata or {})
        names = [str(name) for name in schema.names if name not in index]
        check_names(names, source)
        rows = max(1, min(1 << 16, _BLOCK_CELLS // max(1, len(names))))
        batches = file.iter_batches(rows, columns=names, use_threads=False)
        yield Table(source, names, _checked(batches, source), metadata=schema.metadata or {})


def _checked(batches: Iterator[Any], source: str) -> Iterator[Any]:
    """Yield batches; damaged ones raise an error that names the file."""
    import pyarrow as pa

    try:
        yield from batches
    except (pa.ArrowException, OSError) as error:
        reason = f"the file is damaged: {one_line(error, 200)}"
        raise DataError(reason, source=source) from error


def _pandas_index(metadata: dict[bytes, bytes]) -> set[str]:
    """Return the columns of an unnamed index of pandas, which are not part of the table."""
    try:
        columns = json.loads(metadata.get(b"pandas", b"{}"))["index_columns"]
        return {name for name in columns if re.fullmatch(r"__index_level_\d+__", name)}
    except (KeyError, TypeError, ValueError, RecursionError):  # metadata of other programs
        return set()


def _open_jsonl(file: BinaryIO, source: str) -> Table:
    """Open JSON lines. The columns are the keys of the first rows; absent ones are missing."""
    import pyarrow as pa

    rows = _json_rows(file, source)
    first = list(islice(rows, _JSON_ROWS))
    if not first:
        raise DataError("there are no rows", source=source)
    names = list(dict.fromkeys(key for row in first for key in row))
    check_names(names, source)

    def batches() -> Iterator[Any]:
        part = first
        while part:
            columns = [_json_column([row.get(name) for row in part]) for name in names]
            yield pa.RecordBatch.from_arrays(columns, names)
            part = list(islice(rows, _JSON_ROWS))

    return Table(source, names, batches())


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


def _json_column(values: list[Any]) -> Any:
    """Return JSON values as an array; values of several types become strings."""
    import pyarrow as pa

    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array(
            [None if v is None else v if isinstance(v, str) else json.dumps(v) for v in values],
            "string",
        )


def _open_excel(path: Any, source: str) -> Table:
    """Read the first sheet of an Excel file by pandas."""
    import pyarrow as pa

    pandas = import_optional("pandas", "reading Excel files", "data")
    try:
        frame = pandas.read_excel(path)
    except ImportError as error:
        raise ImportError("reading Excel files needs openpyxl: pip install openpyxl") from error
    except (ValueError, KeyError, zipfile.BadZipFile) as error:
        raise DataError(f"it is not an Excel file: {error}", source=source) from error
    names = [str(name) for name in frame.columns]
    check_names(names, source)
    columns = [_json_column(_plain(frame[name])) for name in frame.columns]
    return Table(source, names, iter([pa.RecordBatch.from_arrays(columns, names)]))


def _plain(column: Any) -> list[Any]:
    """Return the cells of a column as Python values, None where one is missing."""
    return [None if value is None or value != value else value for value in column.tolist()]
