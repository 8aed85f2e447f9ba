"""ARFF, dense and sparse."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from fgfm._utils.text import quoted
from fgfm.data._arff_labels import arff_label_columns, write_xml_labels
from fgfm.data._errors import DataError
from fgfm.data._label_columns import dropped_columns, split_labels
from fgfm.data._numbers import format_numbers, is_plain, parse_number
from fgfm.data._options import ReadOptions
from fgfm.data._table import Table, check_names, make_categorical, make_csr
from fgfm.data._text_files import open_text, write_text

__all__ = ["read_arff", "write_arff"]

_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|[^\s'\"{{]\S*)\s*(.+)", re.IGNORECASE)
_VALUE = re.compile(rf"\s*({_QUOTED}|[^,'\"\s][^,]*?|)\s*(,|$)")
_ENTRY = re.compile(rf"\s*([0-9]{{1,10}})\s+({_QUOTED}|[^,'\"\s][^,]*?)\s*(,|$)")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
_LineError = Callable[[str], DataError]  # of a reason
_TO_ESCAPE = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


@dataclass
class _Attribute:
    name: str
    kind: str  # "number", "nominal" or "text"
    values: dict[str, float]  # the code of each category


def read_arff(path: Path, options: ReadOptions) -> Table:
    """Read an ARFF file, and the XML file of its labels if there is one."""
    source = str(path)
    with open_text(path, options.encoding) as text:
        lines = enumerate(text, 1)
        relation, attributes = _read_header(lines, source)
        rows = _Rows(source, attributes)
        for k, line in lines:
            line = line.strip()
            if line and not line.startswith("%"):
                rows.add(line, k)
    table = make_categorical(rows.table(), options.categorical)
    names = [attribute.name for attribute in attributes]
    if options.with_labels:
        labels = arff_label_columns(path, relation, names, options)
        dropped = dropped_columns(names, options, source, extra=False)
        if labels is not None:
            table = split_labels(table, [j for j in labels if j not in dropped])
    else:
        dropped = dropped_columns(names, replace(options, labels=None), source, extra=False)
        if options.labels is not None or options.encoder is None:
            with_labels = replace(options, with_labels=True)
            dropped |= set(arff_label_columns(path, relation, names, with_labels) or ())
    return table.without({names[j] for j in dropped})


def _read_header(lines: Iterator[tuple[int, str]], source: str) -> tuple[str, list[_Attribute]]:
    """Return the name of the relation and the attributes."""
    relation: str | None = None
    attributes: list[_Attribute] = []
    for k, line in lines:
        line = line.strip()
        if not line or line.startswith("%"):
            continue
        word, error = line.split(None, 1)[0].lower(), partial(DataError, source=source, line=k)
        if word == "@relation":
            relation = _unquoted(line[len(word) :].strip(), error)
        elif word == "@attribute":
            attributes.append(_parse_attribute(line, error))
        elif word == "@data":
            if not attributes:
                raise error("there is no @attribute before @data")
            check_names([attribute.name for attribute in attributes], source)
            return relation or "", attributes
        else:
            raise error(
                f"{quoted(line)} is not a line of an ARFF header: these begin with @relation, "
                "@attribute or @data"
            )
    raise DataError(
        "the file ends before @data: it is truncated, or is not an ARFF file", source=source
    )


def _parse_attribute(line: str, error: _LineError) -> _Attribute:
    match = _ATTRIBUTE.fullmatch(line)
    if match is None:
        raise error(f"{quoted(line)} is not an attribute: it must have a name and a type")
    name, kind = _unquoted(match.group(1), error), match.group(2).strip()
    if kind.lower() in ("numeric", "real", "integer"):
        return _Attribute(name, "number", {})
    if kind.lower() == "string":
        return _Attribute(name, "text", {})
    if not (kind.startswith("{") and kind.endswith("}")):
        raise error(
            f"attribute {quoted(name)} has type {quoted(kind)}: it must be numeric, real, "
            "integer, string or {a,list,of,values}"
        )
    texts = [text for text, _ in _split_values(kind[1:-1], error)]
    if len(set(texts)) < len(texts) or "" in texts:
        raise error(f"attribute {quoted(name)} has an empty or a repeated value: {quoted(kind)}")
    return _Attribute(name, "nominal", {text: float(code) for code, text in enumerate(texts)})


def _unquoted(text: str, error: _LineError) -> str:
    """Return a text without its quotes and escapes."""
    if not text or text[0] not in "'\"":
        return text
    if len(text) < 2 or text[-1] != text[0]:
        raise error(f"the quote in {quoted(text)} is not closed")
    return _ESCAPE.sub(
        lambda found: (
            chr(int(found[1][1:], 16)) if len(found[1]) == 5 else _ESCAPED.get(found[1], found[1])
        ),
        text[1:-1],
    )


def _split_values(text: str, error: _LineError) -> list[tuple[str, bool]]:
    """Return the comma-separated values of a line, and whether each was quoted."""
    if "'" not in text and '"' not in text:
        return [(value.strip(), False) for value in text.split(",")]
    values: list[tuple[str, bool]] = []
    at, more = 0, True
    while more:
        match = _VALUE.match(text, at)
        if match is None:
            raise error(f"the quotes in {quoted(text[at:])} do not match")
        values.append((_unquoted(match[1], error), match[1].startswith(("'", '"'))))
        at, more = match.end(), match[2] == ","
    return values


def _is_simple(line: str) -> bool:
    """Return True if a line has no quotes, missing values or unusual digits: the fast path."""
    return is_plain(line) and "'" not in line and '"' not in line and "?" not in line


class _Rows:
    """The rows of a file while it is read."""

    def __init__(self, source: str, attributes: list[_Attribute]) -> None:
        self.source, self.attributes = source, attributes
        self.p = len(attributes)
        self.sparse: bool | None = None
        self.lines = array("q")
        self.values = array("d")
        self.columns = array("q")  # of the values of sparse rows
        self.counts = array("q")  # values of each sparse row
        # The fast path: one function per column, which raises if the value is unusual.
        self.parsers: list[Callable[[str], float]] = [
            float if attribute.kind == "number" else attribute.values.__getitem__
            for attribute in attributes
        ]

    def error(self, reason: str, line: int, j: int | None = None) -> DataError:
        name = None if j is None else self.attributes[j].name
        return DataError(reason, source=self.source, line=line, column=name)

    def add(self, line: str, k: int) -> None:
        is_sparse = line.startswith("{")
        if self.sparse is None:
            self.sparse = is_sparse
        elif self.sparse != is_sparse:
            raise self.error("dense and sparse rows must not be mixed", k)
        self.lines.append(k)
        if is_sparse and not line.endswith("}"):
            raise self.error("a sparse row must end with }", k)
        text = line[1:-1].strip() if is_sparse else line
        columns, values = self.simple_values(text) or self.checked_values(text, k)
        self.values.extend(values)
        if is_sparse:
            self.columns.extend(columns)
            self.counts.append(len(columns))

    def simple_values(self, text: str) -> tuple[Sequence[int], list[float]] | None:
        """Return the columns and the values of a row, None if one is unusual."""
        if not _is_simple(text):
            return None
        columns: Sequence[int] = range(self.p)
        parsers, cells = self.parsers, text.split(",")
        try:
            if self.sparse:
                pairs = [cell.split() for cell in cells]
                columns = [int(column) for column, _ in pairs if column.isdigit()]
                parsers, cells = [parsers[j] for j in columns], [value for _, value in pairs]
            values = [parse(cell.strip()) for parse, cell in zip(parsers, cells, strict=True)]
        except (ValueError, KeyError, IndexError):
            return None
        return None if math.isnan(sum(values)) else (columns, values)  # ARFF has no "nan"

    def checked_values(self, text: str, k: int) -> tuple[Sequence[int], list[float]]:
        """Return the columns and the values of a row one by one, with all checks."""
        error = partial(self.error, line=k)
        if not self.sparse:
            found = _split_values(text, error)
            if len(found) != self.p:
                raise error(f"there are {len(found)} values: the header has {self.p} attributes")
            return range(self.p), [self.parse(j, *value, k) for j, value in enumerate(found)]
        columns, values = [], []
        at, more = 0, bool(text)
        while more:
            match = _ENTRY.match(text, at)
            if match is None:
                raise error(
                    f"{quoted(text[at:])} is not an entry of a sparse row: it must be an index "
                    "and a value"
                )
            j = int(match[1])
            if j >= self.p:
                rule = f"attributes are numbered from 0 to {self.p - 1}"
                raise error(f"there is an attribute {j}: {rule}")
            columns.append(j)
            is_quoted = match[2][0] in "'\""
            values.append(self.parse(j, _unquoted(match[2], error), is_quoted, k))
            at, more = match.end(), match[3] == ","
        return columns, values

    def parse(self, j: int, text: str, is_quoted: bool, k: int) -> float:
        """Return the number or the code of a value; NaN if it is missing."""
        attribute = self.attributes[j]
        if not is_quoted and text in ("?", ""):
            if text == "":
                raise self.error("the value is empty: a missing value is written ?", k, j)
            return float("nan")
        if attribute.kind == "text":
            return attribute.values.setdefault(text, float(len(attribute.values)))
        if attribute.kind == "nominal":
            if text not in attribute.values:
                reason = f"{quoted(text)} is not one of the values that the header declares"
                raise self.error(reason, k, j)
            return attribute.values[text]
        found = parse_number(text)
        if found is None or math.isnan(found):
            reason = f"{quoted(text)} is not a number; a missing value is written ?"
            raise self.error(reason, k, j)
        return found

    def table(self) -> Table:
        """Return the table of all rows."""
        n = len(self.lines)
        if n == 0:
            raise DataError("there are no rows after @data", source=self.source)
        names = tuple(attribute.name for attribute in self.attributes)
        lines = np.frombuffer(self.lines, dtype=np.int64)
        categories = {}
        for j, attribute in enumerate(self.attributes):
            texts = tuple(attribute.values)
            if attribute.kind == "text" and self.sparse:
                raise DataError(
                    "sparse rows cannot have strings: 0 would be one of them",
                    source=self.source,
                    column=attribute.name,
                )
            if attribute.kind != "number" and texts != ("0", "1"):
                categories[j] = texts
        values = np.frombuffer(self.values) if len(self.values) else np.empty(0)
        if not self.sparse:
            return Table(self.source, values.reshape(n, self.p).copy(), names, categories, lines)
        indptr = np.concatenate([[0], np.cumsum(self.counts)])
        columns = np.array(self.columns, dtype=np.int64)

        def repeated(row: int, j: int) -> DataError:
            reason = f"attribute {j} occurs twice: it must have one value"
            return self.error(reason, self.lines[row])

        matrix = make_csr(values.copy(), columns, indptr, self.p, repeated)
        return Table(self.source, matrix, names, categories, lines)


def write_arff(
    path: Path,
    X: Any,
    Y: Any,
    feature_names: Sequence[str],
    label_names: Sequence[str],
    meka: bool,
) -> None:
    """Write ARFF with the labels last: sparse if X is, and with an XML file unless for MEKA."""
    m = 0 if Y is None else Y.shape[1]
    name = path.name.removesuffix(".gz").removesuffix(".arff")
    if not meka and m:
        write_xml_labels(path, label_names)
    with write_text(path) as text:
        relation = f"{name}: -C -{m}" if meka and m else name
        text.write(f"@relation {_with_quotes(relation, always=True)}\n\n")
        for feature in feature_names:
            text.write(f"@attribute {_with_quotes(feature)} numeric\n")
        for label in label_names[:m]:
            text.write(f"@attribute {_with_quotes(label)} {{0,1}}\n")
        text.write("\n@data\n")
        if sparse.issparse(X):
            _write_sparse(text, X, Y)
            return
        for row in range(X.shape[0]):
            labels = [] if Y is None else list(map(str, Y[row].tolist()))
            text.write(",".join(format_numbers(X[row]) + labels) + "\n")


def _write_sparse(text: Any, X: Any, Y: Any) -> None:
    csr = sparse.csr_array(X)
    csr.sort_indices()
    p = csr.shape[1]
    values, indices, indptr = format_numbers(csr.data), csr.indices.tolist(), csr.indptr.tolist()
    for row in range(csr.shape[0]):
        span = range(indptr[row], indptr[row + 1])
        entries = [f"{indices[at]} {values[at]}" for at in span]
        if Y is not None:
            entries += [f"{p + k} 1" for k in np.flatnonzero(Y[row]).tolist()]
        text.write("{" + ",".join(entries) + "}\n")


def _with_quotes(name: str, always: bool = False) -> str:
    """Return a name with quotes and escapes if it needs them."""
    if not always and re.fullmatch(r"[A-Za-z0-9_.\-]+", name):
        return name
    return "'" + "".join(map(_escaped, name)) + "'"


def _escaped(character: str) -> str:
    if character in _TO_ESCAPE:
        return _TO_ESCAPE[character]
    if character.isprintable() or ord(character) >= 1 << 16:
        return character
    return f"\\u{ord(character):04x}"
