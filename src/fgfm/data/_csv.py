"""CSV and TSV, read in blocks and written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._utils.optional import import_optional
from fgfm._utils.text import quoted
from fgfm.data._errors import DataError
from fgfm.data._frames import table_from_columns
from fgfm.data._label_columns import column_roles
from fgfm.data._numbers import category_name, format_numbers
from fgfm.data._options import ReadOptions
from fgfm.data._row_buffer import RowBuffer
from fgfm.data._table import Table, check_names, column_positions, numbered_names
from fgfm.data._text_files import write_text
from fgfm.data._text_table import RowBlock, TextTable, open_text_table

__all__ = ["read_csv_blocks", "write_csv"]

_BLOCK = 1 << 18  # cells written at a time
# Numbers in notations that `float` does not read: 0,53 and 1,500 and 1 234.5 and 5% and $5.
_GAP = r"[.,' \u2019\u00a0\u202f]"
_CURRENCY = "[$€£¥]"
_SIGN = r"[+\-\u2212]?"
_NUMBERLIKE = re.compile(
    rf"{_SIGN}\s*{_CURRENCY}?\s*{_SIGN}"
    rf"(?:[0-9]+(?:[.,][0-9]*)?|[.,][0-9]+|[0-9]{{1,3}}(?:{_GAP}[0-9]{{3}})+(?:[.,][0-9]+)?)"
    rf"(?:[eE][+-]?[0-9]+)?\s*(?:%|{_CURRENCY})?"
)


def read_csv_blocks(
    path: Path, options: ReadOptions, format: str, rows: int | None = None
) -> Iterator[Table]:
    """Yield the rows of a table; without a header its columns are x1, x2 and so on.

    There is one table of all rows, unless `rows` is given: then each block of the reader is one.
    """
    pyarrow = import_optional("pyarrow", "reading CSV", "data")
    with open_text_table(path, format, options) as text:
        names, source = _names(text, options), text.source
        roles = column_roles(names, options, source)
        texts = roles.texts | ({roles.tags} if roles.tags is not None else set())
        labels = set(roles.labels or ())
        ids = column_positions(names, options.ids, source, arguments=["ids"])
        blocks = text.blocks(texts | set(ids), roles.dropped - set(ids))
        n = 0
        for part in [blocks] if rows is None else ([block] for block in blocks):
            matrix, lines, others = _gathered(part, text.p)
            n += len(lines)
            if not n:
                break
            columns: list[Any] = list(matrix.T)
            for j in sorted(others.keys() - roles.dropped):
                if j in texts:
                    columns[j] = others[j].to_pylist()
                else:
                    columns[j] = _text_column(text, j, others[j], columns[j], lines, j in labels)
            table = table_from_columns(source, names, columns, options, roles, lines)
            id_table = pyarrow.table({names[j]: others[j] for j in ids}) if ids else None
            yield replace(table, ids=id_table)
    if not n:
        raise DataError("there are no rows after the header", source=source)


def _names(text: TextTable, options: ReadOptions) -> list[str]:
    """Return the names of the columns, after checking them."""
    if options.header is False:
        text.names = [f"x{j + 1}" for j in range(text.p)]
    text.names = numbered_names(text.names, {*options.drop, *options.dropped_in_training})
    check_names(text.names, text.source, text.line, unnamed="drop")
    if text.p == 1 and any(mark in text.names[0] for mark in {*",;\t|"} - {text.delimiter}):
        raise text.error(
            f"with the delimiter {quoted(text.delimiter)} there is one column, "
            f"{quoted(text.names[0])}: the file has another delimiter",
            text.line,
            arguments=["delimiter"],
        )
    return text.names


def _gathered(
    blocks: Iterable[RowBlock], p: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], dict[int, Any]]:
    """Return the numbers (n, p), the line of each row, and the columns that have texts."""
    import pyarrow

    rows = RowBuffer(p)
    lines = [np.empty(0, dtype=np.int64)]
    others: dict[int, list[Any]] = {}
    for block in blocks:
        for j, cells in block.others.items():
            # Texts may occur for the first time after rows of numbers or missing values.
            others.setdefault(j, [pyarrow.nulls(rows.rows, "string")]).append(cells)
        rows.append(block.numbers)
        lines.append(np.asarray(block.lines, dtype=np.int64))
    columns = {j: pyarrow.chunked_array(cells) for j, cells in others.items()}
    return rows.array(), np.concatenate(lines), columns


def _text_column(
    text: TextTable, j: int, cells: Any, numbers: Any, lines: Any, is_label: bool
) -> Any:
    """Return the texts of a column, None if they are missing, or its numbers if it has no text.

    Where there are both, all are texts if more than half have letters, such as the film title 1917
    among others. Otherwise an error is raised, as it is if all texts look like numbers: decimal
    commas, percents, prices.
    """
    import pyarrow.compute as pc

    parsed = {cell: text.parse(cell) for cell in pc.unique(cells).drop_null().to_pylist()}
    words = [cell for cell, value in parsed.items() if value is None]
    if not words:  # an id column that is a feature too
        return np.array([parsed[cell] for cell in cells.to_pylist()], dtype=np.float64)
    word, line = words[0].strip(), int(lines[pc.index(cells, words[0]).as_py()])
    rows = np.flatnonzero(~np.isnan(numbers))[:1].tolist()  # of the first number
    if not rows:
        rows = [
            pc.index(cells, cell).as_py()
            for cell, value in parsed.items()
            if value is not None and value == value
        ]
    if rows and not is_label:
        texts = _as_texts(cells.to_pylist(), numbers.tolist(), parsed)
        with_letters = {word for word in words if any(map(str.isalpha, word))}
        if 2 * sum(cell in with_letters for cell in texts) > len(texts) - texts.count(None):
            return texts
    if rows and is_label:
        raise text.error(f"the label is {quoted(word)}: labels must be 0 or 1", line, j)
    notation = "numbers are written as 1234.5, or as 1234,5 with a decimal comma"
    if text.decimal == ",":
        notation = "numbers are written as 1234,5 with a decimal comma"
    if rows:
        numberlike = _NUMBERLIKE.fullmatch(word)
        number = cells[rows[0]].as_py() or category_name(numbers[rows[0]])
        raise text.error(
            f"{quoted(word)} is not a number, and line {lines[rows[0]]} has {quoted(number)}: a "
            "column must have either numbers or texts, unless it is declared categorical"
            + (f"; {notation}" if numberlike else ""),
            line,
            j,
            ["categorical", "decimal"] if numberlike else ["categorical"],
        )
    if not is_label and all(_NUMBERLIKE.fullmatch(cell.strip()) for cell in words):
        raise text.error(
            f"{quoted(word)} is not a number, although every text of this column looks like one: "
            f"{notation}, without thousands separators, currency signs or percent signs; declare "
            "the column categorical to keep the texts",
            line,
            j,
            ["decimal", "categorical"],
        )
    missing = parsed.keys() - set(words)
    return [None if cell in missing else cell for cell in cells.to_pylist()]


def _as_texts(
    cells: Sequence[str | None], numbers: Sequence[float], parsed: Mapping[str, float | None]
) -> list[str | None]:
    """Return the texts of cells, and of numbers where there is no cell; None if missing."""
    out: list[str | None] = []
    for cell, number in zip(cells, numbers, strict=True):
        if cell is None:
            out.append(None if number != number else category_name(number))
        else:
            value = parsed[cell]
            out.append(None if value is not None and value != value else cell)
    return out


def _quoted_name(name: str, delimiter: str) -> str:
    # csv.writer does not quote a carriage return, at which csv.reader stops.
    if not any(mark in name for mark in (delimiter, '"', "\r", "\n")):
        return name
    return '"' + name.replace('"', '""') + '"'


def write_csv(
    path: Any,
    X: Any,
    Y: Any,
    feature_names: Sequence[str],
    label_names: Sequence[str],
    delimiter: str,
) -> None:
    """Write the features and one 0/1 column for each label."""
    with write_text(path) as text:
        names = [_quoted_name(name, delimiter) for name in (*feature_names, *label_names)]
        text.write(delimiter.join(names) + "\n")
        size = max(1, _BLOCK // X.shape[1])
        for begin in range(0, X.shape[0], size):
            block = X[begin : begin + size]
            block = block.toarray() if sparse.issparse(block) else block
            texts = iter(format_numbers(block.ravel()))
            labels = [()] * len(block) if Y is None else Y[begin : begin + size].tolist()
            for row in labels:
                cells = [*islice(texts, X.shape[1]), *map(str, row)]
                text.write(delimiter.join(cells) + "\n")  # numbers need no quotes
