"""Tables of probabilities, of any size: read block by block."""

from __future__ import annotations

import contextlib
import csv as plain_csv
import gzip
import io
import os
import queue
import re
import sys
import threading
import time
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._utils.validation import check_choice, first_index, tolerance
from fgfm.data._errors import bad, shown
from fgfm.data._extras import need

__all__ = ["INPUTS", "Block", "ProbabilityReader"]

INPUTS = ("csv", "tsv", "parquet", "npy", "npz")
STREAM = "-"  # standard input
_SUFFIXES = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".pq": "parquet"}
_SUFFIXES |= {".npy": "npy", ".npz": "npz"}
_BLOCK_BYTES = 1 << 22  # of text
_BLOCK_ROWS = 1 << 16
_BLOCK_NUMBERS = 1 << 21  # of a binary table
_LONGEST_LINE = 1 << 26  # bytes
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.I)


class Block(NamedTuple):
    """Some rows of a table."""

    proba: Any  # ndarray or CSR of shape (n, m)
    ids: Any  # pyarrow.Table of the columns to keep, or None


class ProbabilityReader(contextlib.AbstractContextManager["ProbabilityReader"]):
    """Read a table of probabilities block by block: a row per instance, a column per label.

    Parameters
    ----------
    source : str or path-like
        The file; "-" is standard input. Text may be compressed by gzip; a row is a line.
    format : {"csv", "tsv", "parquet", "npy", "npz"}, optional
        By default the name of the file tells; standard input is CSV. CSV and TSV have a header
        with the names of the labels. "npz" is a sparse matrix, as `scipy.sparse.save_npz` writes.
    ids : sequence of str, default=()
        Columns that are no labels, to be kept beside the label sets.
    delimiter : str, optional
        What stands between values: by default a comma, in TSV a tab.

    Attributes
    ----------
    label_names : list of str
        The names of the labels, once the table is open.
    no_ids : pyarrow.Table or None
        The columns to keep, without rows, once the table is open.
    seconds : float
        Processor time that reading took so far.
    """

    def __init__(
        self,
        source: str | os.PathLike[str],
        *,
        format: str | None = None,
        ids: Sequence[str] = (),
        delimiter: str | None = None,
    ) -> None:
        check_choice(format, "format", (None, *INPUTS))
        self.stream = os.fspath(source) == STREAM
        self.source = "standard input" if self.stream else os.fspath(source)
        self.ids = list(ids)
        self.label_names: list[str] = []
        self.no_ids: Any = None
        self.seconds = 0.0
        self._path = Path(source)
        self.format = format or ("csv" if self.stream else _by_name(self._path))
        if self.stream and self.format not in ("csv", "tsv"):
            raise ValueError(f"standard input can be csv or tsv, not {self.format}")
        self.delimiter = delimiter or ("\t" if self.format == "tsv" else ",")
        if len(self.delimiter) != 1:
            raise ValueError(f"delimiter is {delimiter!r}: it must be one character")
        self._stack = contextlib.ExitStack()
        self._queue: queue.Queue[Any] = queue.Queue(maxsize=2)
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._blocks: Iterator[tuple[int, Block]] = iter(())

    def __enter__(self) -> ProbabilityReader:
        if not self.stream and (self._path.is_dir() or not self._path.exists()):
            what = "is a folder" if self._path.is_dir() else "does not exist"
            raise bad(self.source, f"it {what}: it must be a file")
        open_it = {"csv": self._open_text, "tsv": self._open_text}
        open_it |= {"parquet": self._open_parquet, "npy": self._open_npy, "npz": self._open_npz}
        with self._stack:  # closes what is open, if anything goes wrong
            self._blocks = open_it[self.format]()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._ended.set()
        if self._thread is not None and not self.stream:  # a stream may never say another word
            self._thread.join()
        self._stack.close()

    def __iter__(self) -> Iterator[Block]:
        """Give block by block; the next ones are read while one is worked on."""
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
        """Put blocks into the queue, then None, or what went wrong."""
        found: Block | BaseException | None
        while not self._ended.is_set():
            start = time.thread_time()
            try:
                first, found = next(self._blocks, (0, None))
                if found is not None:
                    self._check(found.proba, first)
            except BaseException as error:  # whatever it is, the other thread raises it
                found = error
            self.seconds += time.thread_time() - start
            while not self._ended.is_set():
                try:
                    self._queue.put(found, timeout=0.2)
                    break
                except queue.Full:
                    continue
            if not isinstance(found, Block):
                return

    def _check(self, proba: Any, first: int) -> None:
        """Raise unless all numbers are probabilities."""
        values = proba.data if sparse.issparse(proba) else proba
        slack = tolerance(values)
        if values.size and not (values.min() >= -slack and values.max() <= 1.0 + slack):
            wrong = ~((values >= -slack) & (values <= 1.0 + slack))
            raise self._no_probability(proba, wrong, first)

    def _no_probability(self, proba: Any, wrong: npt.NDArray[np.bool_], first: int) -> Exception:
        if sparse.issparse(proba):
            at = int(np.argmax(wrong))
            row = int(np.searchsorted(proba.indptr, at, side="right")) - 1
            column, value = int(proba.indices[at]), proba.data[at]
        else:
            row, column = first_index(wrong)
            value = proba[row, column]
        sentence = (
            "there is no value: every label needs a probability"
            if np.isnan(value)
            else f"{value!s} is no probability: it must lie in [0, 1]"
        )
        return self._at(sentence, first + row, self.label_names[column])

    def _at(self, sentence: str, row: int, column: str | None = None) -> Exception:
        """Make an error with its place: a line of text after the header, or a row."""
        if self.format in ("csv", "tsv"):
            return bad(self.source, sentence, line=row + 2, column=column)
        return bad(self.source, sentence, row=row, column=column)

    def place(self, row: int) -> str:
        """Name a row as people find it in the file.

        Parameters
        ----------
        row : int
            Its number, from 0.

        Returns
        -------
        str
            File and line, or row.
        """
        if self.format in ("csv", "tsv"):
            return f"{self.source}, line {row + 2},"
        return f"{self.source}, row {row},"

    def _split_columns(self, names: list[str]) -> None:
        """Tell labels from columns to keep."""
        for at, name in enumerate(names, start=1):
            if not name and name not in self.ids:
                raise bad(
                    self.source,
                    f"column {at} has no name: every label needs one; name columns that are no "
                    "labels, and keep them with ids, or leave them out of the table",
                )
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise bad(self.source, f"there are two columns {shown(twice)}: names must differ")
        for name in self.ids:
            if name not in names:
                raise bad(
                    self.source,
                    f"there is no column {shown(name)}: the columns are "
                    f"{', '.join(names[:5])}{', ...' if len(names) > 5 else ''}",
                )
        self.label_names = [name for name in names if name not in self.ids]
        if not self.label_names:
            raise bad(self.source, "there are no labels: every column is to be kept")

    # --- text

    def _open_text(self) -> Iterator[tuple[int, Block]]:
        pa = need("pyarrow", "reading tables of probabilities")
        if self.stream:
            if sys.stdin is None:
                raise bad(self.source, "it is closed: there must be a table to read")
            # without Python's buffer, whose lock a waiting thread would hold to the end
            file: Any = _Stream(io.FileIO(sys.stdin.fileno(), closefd=False))
        else:
            zipped = self._path.suffix.lower() == ".gz"
            opened: Any = gzip.open if zipped else open
            file = self._stack.enter_context(opened(self._path, "rb"))
        try:
            head = file.readline(_LONGEST_LINE)
            text = head.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise bad(self.source, f"it is not UTF-8: {error.reason}", line=1) from None
        except (EOFError, OSError, zlib.error) as error:
            raise bad(self.source, f"it cannot be read: {error}") from None
        if not text.strip():
            raise bad(self.source, "it is empty: its first line must hold the names of the labels")
        try:
            names = next(plain_csv.reader([text.rstrip("\r\n")], delimiter=self.delimiter))
        except plain_csv.Error as error:
            raise bad(self.source, f"it is no line of names: {error}", line=1) from None
        self._split_columns(names)
        self.no_ids = pa.table({name: pa.array([], pa.string()) for name in self.ids})
        return self._text_blocks(pa, file, names)

    def _text_blocks(self, pa: Any, file: Any, names: list[str]) -> Iterator[tuple[int, Block]]:
        from pyarrow import csv

        types = {name: pa.float64() for name in self.label_names}
        types |= {name: pa.string() for name in self.ids}
        parse = csv.ParseOptions(delimiter=self.delimiter, ignore_empty_lines=False)
        convert = csv.ConvertOptions(
            column_types=types, null_values=[""], strings_can_be_null=False
        )
        first = 0
        for lines in self._whole_lines(file):
            read = csv.ReadOptions(
                column_names=names, block_size=len(lines) + 1, use_threads=False
            )
            try:
                table = csv.read_csv(pa.BufferReader(lines), read, parse, convert)
            except pa.ArrowInvalid as error:
                raise self._diagnosed(lines, names, first, str(error)) from None
            if table.num_rows != lines.count(b"\n") + (not lines.endswith(b"\n")):
                raise self._diagnosed(lines, names, first, "a row must be a line")
            yield first, self._from_arrow(pa, table)
            first += table.num_rows

    def _whole_lines(self, file: Any) -> Iterator[bytes]:
        """Read blocks that end with a line; empty lines at the end of the file are left out."""
        rest = b""
        while True:
            try:
                part = file.read(_BLOCK_BYTES)
            except (EOFError, OSError, zlib.error) as error:
                raise bad(self.source, f"it cannot be read to its end: {error}") from None
            if not part:
                break
            if b"\r" in part or rest.endswith(b"\r"):
                part = (rest + part).replace(b"\r\n", b"\n")
                rest = b""
            part = rest + part
            cut = len(part.rstrip(b"\r\n"))  # what follows may be the end of the file
            cut = part.rfind(b"\n", 0, cut) + 1
            rest = part[cut:]
            if len(rest) > _LONGEST_LINE:
                raise bad(self.source, f"a line is longer than {_LONGEST_LINE} bytes")
            if cut:
                yield part[:cut]
        rest = rest.rstrip(b"\r\n")
        if rest:
            yield rest

    def _diagnosed(self, lines: bytes, names: list[str], first: int, message: str) -> Exception:
        """Find what is wrong in a block of text that could not be read, line by line."""
        for row, raw in enumerate(lines.split(b"\n")[: lines.rstrip(b"\n").count(b"\n") + 1]):
            try:
                line = raw.decode()
            except UnicodeDecodeError as error:
                return self._at(f"it is not UTF-8: {error.reason}", first + row)
            if "\r" in line:
                return self._at("there is a carriage return within the line", first + row)
            try:
                fields = next(plain_csv.reader([line], delimiter=self.delimiter), [])
            except plain_csv.Error as error:
                return self._at(f"it is no row: {error}", first + row)
            if len(fields) != len(names):
                found = "the line is empty" if not line else f"there are {len(fields)} values"
                return self._at(f"{found}: the header has {len(names)} columns", first + row)
            for name, value in zip(names, fields, strict=True):
                if name not in self.ids and value and not _NUMBER.fullmatch(value.strip(" \t")):
                    hint = "" if self.ids else "; name columns that are no labels with ids"
                    return self._at(f"{shown(value)} is not a number{hint}", first + row, name)
        last = first + lines.count(b"\n")
        return bad(self.source, f"lines {first + 2} to {last + 2} cannot be read: {message}")

    def _from_arrow(self, pa: Any, batch: Any) -> Block:
        """Give the labels as one array, and the columns to keep."""
        kinds = {batch.schema.field(name).type for name in self.label_names}
        short = kinds <= {pa.float32(), pa.float16()}
        proba = np.empty((batch.num_rows, len(self.label_names)), np.float32 if short else None)
        for j, name in enumerate(self.label_names):
            proba[:, j] = batch.column(name).to_numpy(zero_copy_only=False)  # null is NaN
        if not self.ids:
            return Block(proba, None)
        return Block(proba, pa.table([batch.column(name) for name in self.ids], names=self.ids))

    # --- binary tables

    def _open_parquet(self) -> Iterator[tuple[int, Block]]:
        pa = need("pyarrow", "reading Parquet")
        import pyarrow.parquet as pq

        try:
            file = self._stack.enter_context(pq.ParquetFile(self._path))
        except (pa.ArrowException, OSError) as error:
            raise bad(self.source, f"it is no Parquet file: {error}") from None
        schema = file.schema_arrow
        self._split_columns(list(schema.names))
        for name in self.label_names:
            kind = schema.field(name).type
            if not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
                raise bad(
                    self.source,
                    f"it is of type {kind}: probabilities must be numbers; name columns that are "
                    "no labels with ids",
                    column=name,
                )
        for name in self.ids:
            kind = schema.field(name).type
            if pa.types.is_nested(kind) or pa.types.is_binary(kind):
                raise bad(
                    self.source, f"it is of type {kind}: it cannot be kept in text", column=name
                )
        self.no_ids = schema.empty_table().select(self.ids)
        return self._parquet_blocks(pa, file)

    def _parquet_blocks(self, pa: Any, file: Any) -> Iterator[tuple[int, Block]]:
        first = 0
        rows = max(1, min(_BLOCK_ROWS, _BLOCK_NUMBERS // len(self.label_names)))
        try:
            # one thread: reading goes on beside deciding as it is, and parts may be many at a time
            for batch in file.iter_batches(batch_size=rows, use_threads=False):
                yield first, self._from_arrow(pa, batch)
                first += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise bad(self.source, f"it cannot be read to its end: {error}") from None

    def _numbered(self, shape: tuple[int, ...]) -> None:
        if self.ids:
            raise ValueError(f"{self.source} has no named columns: ids must be empty")
        if len(shape) != 2 or shape[1] == 0:
            raise bad(self.source, f"it has shape {shape}: it must have rows and labels")
        self.label_names = [str(j) for j in range(shape[1])]

    def _open_npy(self) -> Iterator[tuple[int, Block]]:
        try:
            with self._path.open("rb") as file:
                np.lib.format.read_magic(file)  # NumPy leaves other files open
            array = np.load(self._path, mmap_mode="r", allow_pickle=False)
        except (ValueError, OSError, EOFError) as error:
            raise bad(self.source, f"it is no array of numbers: {error}") from None
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiub":
            raise bad(self.source, "it must hold one array of real numbers")
        self._numbered(array.shape)
        return self._row_blocks(array)

    def _open_npz(self) -> Iterator[tuple[int, Block]]:
        try:
            with self._path.open("rb") as file:
                matrix = sparse.load_npz(file)
            if hasattr(matrix, "check_format"):
                matrix.check_format(full_check=True)
            matrix = matrix.tocsr()
        except (
            ValueError,
            OSError,
            EOFError,
            KeyError,
            IndexError,
            zipfile.BadZipFile,
            zlib.error,
        ) as error:
            raise bad(self.source, f"it is no sparse matrix of scipy: {error}") from None
        if matrix.dtype.kind not in "fiub":
            raise bad(self.source, f"it has dtype {matrix.dtype}: it must hold real numbers")
        self._numbered(matrix.shape)
        return self._row_blocks(matrix)

    def _row_blocks(self, table: Any) -> Iterator[tuple[int, Block]]:
        rows = max(1, min(_BLOCK_ROWS, _BLOCK_NUMBERS // len(self.label_names)))
        if sparse.issparse(table):
            rows = _BLOCK_ROWS
        for first in range(0, table.shape[0], rows):
            part = table[first : first + rows]
            if not sparse.issparse(part):
                kind = part.dtype if part.dtype in (np.float32, np.float64) else np.float64
                part = np.array(part, dtype=kind)
            yield first, Block(part, None)


class _Stream:
    """Standard input, or another file without a buffer, read in blocks of the size asked for."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self._rest = b""

    def read(self, size: int) -> bytes:
        """Read so many bytes, or what is left."""
        parts, length = [self._rest], len(self._rest)
        while length < size and (part := self._raw.read(size - length)):
            parts.append(part)
            length += len(part)
        found = b"".join(parts)
        self._rest = found[size:]
        return found[:size]

    def readline(self, size: int) -> bytes:
        """Read to the end of a line, or so many bytes."""
        found = self._rest
        while b"\n" not in found and len(found) < size and (part := self._raw.read(1 << 16)):
            found += part
        end = found.find(b"\n") + 1 or len(found)
        self._rest = found[end:]
        return found[:end]


def _by_name(path: Path) -> str:
    suffixes = [s.lower() for s in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    suffix = suffixes[-1] if suffixes else ""
    if suffix not in _SUFFIXES:
        raise ValueError(
            f"{path} has the extension {suffix!r}: it must be one of {', '.join(_SUFFIXES)}, or "
            "the format must be named"
        )
    return _SUFFIXES[suffix]
