"""True labels from files: matrices of 0 and 1, label sets as `decide` writes them, data sets."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._utils.optional import import_optional
from fgfm._utils.text import near_match, quoted
from fgfm._utils.validation import check_choice
from fgfm.data._errors import DataError
from fgfm.data._formats import FORMATS, PROBABILITY_FORMATS, true_label_format
from fgfm.data._label_columns import label_order
from fgfm.data._load import load
from fgfm.data._options import TextFormat
from fgfm.data._probability_reader import ProbabilityReader
from fgfm.data._probability_tables import Columns
from fgfm.data._row_buffer import RowBuffer
from fgfm.data._text_files import check_file, open_text

__all__ = ["TrueLabels", "read_true_labels"]

_LISTS, _EXPECTED = "labels", "expected_f"  # columns that `decide` writes
_JSON_ROWS = 1 << 14  # of a block
Order = npt.NDArray[np.int64]
RowError = Callable[[str, int], DataError]  # of a reason and a row


class TrueLabels(NamedTuple):
    """True labels of a file, in the order of given names."""

    labels: Any  # (n, m) ndarray of int8 or CSR, 0 or 1
    names: list[str] | None  # of the labels in this order; None if the file has none
    ids: Any  # pyarrow.Table of the id columns, or None
    error: RowError


class Wanted(NamedTuple):
    """The labels and the id columns that a file of true labels may have."""

    names: list[str]
    are_numbers: bool  # the names are positions: they match any names
    ids: tuple[str, ...]

    def columns(self) -> Columns:
        """Return which columns of a table are not labels."""
        known = () if self.are_numbers else self.names
        return Columns(
            self.ids,
            ignored=[] if _EXPECTED in known else [_EXPECTED],
            optional=True,
            lists=None if _LISTS in known else _LISTS,
        )

    def order(self, found: Sequence[str], are_names: bool, source: Any) -> Order | None:
        """Return the column of each label; None if they are in order. Raise if labels differ."""
        if are_names and not self.are_numbers:
            order = label_order(found, self.names, "the probabilities", source, ["ids"])
            return None if order == list(range(len(order))) else np.array(order)
        if len(found) != len(self.names):
            raise DataError(
                f"the number of labels is {len(found)}: it must be {len(self.names)}, that of the "
                "probabilities",
                source=source,
            )
        return None


def read_true_labels(
    path: Path,
    wanted: Wanted,
    *,
    format: str | None,
    text: TextFormat,
    separator: str,
    progress: Callable[[int], object] | None,
) -> TrueLabels:
    """Read true labels, with the columns in the order of `wanted`."""
    formats = tuple(dict.fromkeys([*PROBABILITY_FORMATS, "jsonl", *FORMATS]))
    check_choice(format, "labels_format", (None, *formats))
    check_file(path)
    found = format or true_label_format(path)
    if found == "jsonl":
        return _from_json(path, wanted, separator, progress)
    if found not in PROBABILITY_FORMATS or (found == "npz" and _is_dataset(path)):
        return _from_dataset(path, wanted, found)
    reader = ProbabilityReader(
        path, format=found, text=text, content="labels", columns=wanted.columns()
    )
    with reader:
        names, order = None, None
        has_lists = not reader.label_names
        if not has_lists:
            order = wanted.order(reader.label_names, reader.has_names, path)
            names = reader.label_names if reader.has_names else None
        buffer = _joined(reader, wanted, separator, order, reader.error, progress)
    names = names if order is None else wanted.names
    return TrueLabels(buffer.array(), names, buffer.ids(), reader.error)


def _joined(
    blocks: Any,
    wanted: Wanted,
    separator: str,
    order: Order | None,
    error: RowError,
    progress: Callable[[int], object] | None,
) -> RowBuffer:
    """Join blocks; lists in their last id column become rows of 0 and 1."""
    buffer = RowBuffer(len(wanted.names), np.int8)
    for labels, ids in blocks:
        if labels.shape[1] == 0:
            labels = _from_lists(ids.column(_LISTS), wanted, separator, error, buffer.rows)
            ids = ids.drop_columns([_LISTS])
        elif order is not None:
            labels = labels[:, order]
        if ids is not None and not ids.num_columns:
            ids = None
        buffer.append(labels.astype(np.int8), ids)
        if progress is not None:
            progress(buffer.rows)
    return buffer


def _from_lists(
    column: Any, wanted: Wanted, separator: str, error: RowError, first_row: int
) -> Any:
    """Return a column of label lists, or of texts of them, as a CSR matrix of 0 and 1."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not pa.types.is_nested(column.type):
        column = pc.split_pattern(column.cast(pa.string()), separator)
    lengths = pc.list_value_length(column)
    if lengths.null_count:
        row = first_row + int(np.argmax(np.asarray(lengths.is_null())))
        raise error("there is no label list: it must be there, or be empty", row)
    rows = np.repeat(np.arange(len(column)), np.asarray(lengths))
    names = column.flatten().cast(pa.string())
    at = pc.index_in(names, value_set=pa.array(wanted.names, pa.string()))
    empty = np.asarray(pc.fill_null(pc.equal(names, ""), False))
    unknown = np.asarray(at.is_null()) & ~empty
    if unknown.any():
        first = int(np.argmax(unknown))
        name = str(names[first].as_py())
        raise error(
            f"there is no label {quoted(name)} among those of the probabilities; "
            f"{near_match(name, wanted.names)}",
            first_row + int(rows[first]),
        )
    columns = np.asarray(at.filter(pa.array(~empty)), dtype=np.int64)
    rows = rows[~empty]
    shape = len(column), len(wanted.names)
    labels = sparse.csr_array((np.ones(len(rows), dtype=np.int8), (rows, columns)), shape=shape)
    labels.data[:] = 1  # a label that is listed twice
    return labels


def _is_dataset(path: Path) -> bool:
    """Return True for an archive of a data set, False for a sparse matrix."""
    try:
        with zipfile.ZipFile(path) as archive:
            return "Y.npy" in archive.namelist()
    except zipfile.BadZipFile:  # reported by the reader
        return False


def _from_dataset(path: Path, wanted: Wanted, format: str) -> TrueLabels:
    """Read the labels of a data set."""
    data = load(path, format=format)
    if data.Y is None:
        raise DataError("the file has no labels", source=path)
    numbers = [[str(j + first) for j in range(data.Y.shape[1])] for first in (0, 1)]
    found = list(data.label_names or numbers[0])
    names = None if found in numbers else found
    order = wanted.order(found, names is not None, path)
    labels = data.Y if order is None else data.Y[:, order]
    names = names if order is None else wanted.names

    def error(reason: str, row: int) -> DataError:
        return DataError(reason, source=path, row=row)

    return TrueLabels(labels.astype(np.int8), names, None, error)


def _from_json(
    path: Path, wanted: Wanted, separator: str, progress: Callable[[int], object] | None
) -> TrueLabels:
    """Read JSON lines."""
    import_optional("pyarrow", "reading label sets", "data")

    def error(reason: str, row: int) -> DataError:
        return DataError(reason, source=path, line=row + 1)

    with open_text(path, "utf-8") as lines:
        objects = _json_objects(lines, error)
        head = next(objects, None)
        if head is None:
            raise DataError("there are no rows", source=path)
        labels, ids = wanted.columns().split(list(head), str(path))
        order = wanted.order(labels, True, path) if labels else None
        blocks = _json_blocks(chain([head], objects), labels, ids, error)
        buffer = _joined(blocks, wanted, separator, order, error, progress)
    names = labels if order is None and labels else wanted.names
    return TrueLabels(buffer.array(), names, buffer.ids(), error)


def _json_objects(lines: Any, error: RowError) -> Iterator[dict[str, Any]]:
    """Yield the object of each line."""
    for row, line in enumerate(lines):
        if not line.strip():
            if any(map(str.strip, lines)):
                raise error("the line is empty: it must hold a JSON object", row)
            return
        try:
            found = json.loads(line)
        except ValueError as fault:
            raise error(f"it is not JSON: {fault}", row) from None
        if not isinstance(found, dict):
            raise error(f"it is {quoted(line.strip())}: it must be a JSON object", row)
        yield found


def _json_blocks(
    objects: Iterator[dict[str, Any]], names: Sequence[str], ids: Sequence[str], error: RowError
) -> Iterator[tuple[Any, Any]]:
    """Yield blocks of labels (n, m) and id columns; the last of these has lists if m is 0."""
    import pyarrow as pa

    first = 0
    while rows := list(islice(objects, _JSON_ROWS)):
        labels = np.zeros((len(rows), len(names)), dtype=np.int8)
        for k, found in enumerate(rows):
            for name in (*ids, *names):
                if name not in found:
                    raise error(f"there is no {quoted(name)}", first + k)
            for j, name in enumerate(names):
                value = found[name]
                if value not in (0, 1):
                    reason = f"{quoted(name)} is {value!r}: a label must be 0 or 1"
                    raise error(reason, first + k)
                labels[k, j] = value
            if not names and not _is_list_of_names(found[_LISTS]):
                reason = f"{_LISTS!r} is {found[_LISTS]!r}: it must be a list of labels"
                raise error(reason, first + k)
        kept = [name for name in ids if name != _LISTS]
        columns = {name: pa.array([_text(row[name]) for row in rows]) for name in kept}
        if not names:
            lists = [row[_LISTS] for row in rows]
            columns[_LISTS] = pa.array(lists, pa.list_(pa.string()))
        yield labels, pa.table(columns)
        first += len(rows)


def _is_list_of_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
