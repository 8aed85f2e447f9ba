"""ARFF, dense and sparse, with labels as MULAN or as MEKA say them.

MULAN has the names of the labels in an XML file beside; MEKA has ``-C n`` in the name of the
relation: the first n attributes are labels, or the last n where n is negative.
"""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
from scipy import sparse

from fgfm.data._errors import DataError, bad, shown
from fgfm.data._table import (
    Options,
    Table,
    check_names,
    cut_labels,
    dropped,
    make_categorical,
    make_csr,
    positions,
    select_labels,
)
from fgfm.data._text import number, open_text, plain, write_text, written

__all__ = ["read_arff", "write_arff"]

_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|[^\s'\"{{]\S*)\s*(.+)", re.IGNORECASE)
_VALUE = re.compile(rf"\s*({_QUOTED}|[^,'\"\s][^,]*?|)\s*(,|$)")
_ENTRY = re.compile(rf"\s*([0-9]{{1,10}})\s+({_QUOTED}|[^,'\"\s][^,]*?)\s*(,|$)")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_MEKA = re.compile(r"-C\s+(-?[0-9]{1,9})(?![0-9])")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}


@dataclass
class _Attribute:
    name: str
    kind: str  # "number", "nominal" or "text"
    values: dict[str, float]  # what each category becomes


def read_arff(path: Path, options: Options) -> Table:
    """Read an ARFF file, and the XML file of its labels where there is one."""
    source = str(path)
    with open_text(path, options.encoding) as text:
        lines = enumerate(text, 1)
        relation, attributes = _header(lines, source)
        body = _Body(source, attributes)
        for k, line in lines:
            line = line.strip()
            if line and not line.startswith("%"):
                body.add(line, k)
    table = make_categorical(body.table(), options.categorical)
    names = [attribute.name for attribute in attributes]
    if options.with_labels:
        where = _label_columns(path, relation, names, options)
        drop = dropped(names, options, source)
    else:
        drop = dropped(names, replace(options, labels=None), source)
        where = None
        if options.labels is not None or options.encoder is None:
            found = _label_columns(path, relation, names, replace(options, with_labels=True))
            drop |= set(found or ())
    if where is not None:
        table = cut_labels(table, [j for j in where if j not in drop])
    gone = {names[j] for j in drop}
    assert table.names is not None
    return table.keep([j for j, name in enumerate(table.names) if name not in gone])


def _header(lines: Any, source: str) -> tuple[str, list[_Attribute]]:
    relation: str | None = None
    attributes: list[_Attribute] = []
    for k, line in lines:
        line = line.strip()
        if not line or line.startswith("%"):
            continue
        word = line.split(None, 1)[0].lower()
        if word == "@relation":
            relation = _unquoted(line[len(word) :].strip(), source, k)
        elif word == "@attribute":
            attributes.append(_attribute(line, source, k))
        elif word == "@data":
            if not attributes:
                raise bad(source, "there is no @attribute before @data", line=k)
            check_names([attribute.name for attribute in attributes], source)
            return relation or "", attributes
        else:
            raise bad(
                source,
                f"{shown(line)} is no line of an ARFF header: @relation, @attribute and @data are",
                line=k,
            )
    raise bad(source, "the file ends before @data: it is truncated, or is no ARFF file")


def _attribute(line: str, source: str, k: int) -> _Attribute:
    match = _ATTRIBUTE.fullmatch(line)
    if match is None:
        raise bad(source, f"{shown(line)} is no attribute: it must have a name and a type", line=k)
    name, kind = _unquoted(match.group(1), source, k), match.group(2).strip()
    if kind.lower() in ("numeric", "real", "integer"):
        return _Attribute(name, "number", {})
    if kind.lower() == "string":
        return _Attribute(name, "text", {})
    if not (kind.startswith("{") and kind.endswith("}")):
        raise bad(
            source,
            f"attribute {shown(name)} has type {shown(kind)}: it must be numeric, real, integer, "
            "string or {a,list,of,values}",
            line=k,
        )
    texts = [text for text, _ in _cells(kind[1:-1], source, k)]
    if len(set(texts)) < len(texts) or "" in texts:
        raise bad(
            source,
            f"attribute {shown(name)} has an empty value or one twice: {shown(kind)}",
            line=k,
        )
    return _Attribute(name, "nominal", {text: float(code) for code, text in enumerate(texts)})


def _unquoted(text: str, source: str, line: int) -> str:
    """Take quotes and escapes away."""
    if not text or text[0] not in "'\"":
        return text
    if len(text) < 2 or text[-1] != text[0]:
        raise bad(source, f"the quote in {shown(text)} is not closed", line=line)
    return _ESCAPE.sub(
        lambda found: (
            chr(int(found[1][1:], 16)) if len(found[1]) == 5 else _ESCAPED.get(found[1], found[1])
        ),
        text[1:-1],
    )


def _cells(text: str, source: str, line: int) -> list[tuple[str, bool]]:
    """Give the values of a line, and whether each was quoted."""
    if "'" not in text and '"' not in text:
        return [(cell.strip(), False) for cell in text.split(",")]
    cells: list[tuple[str, bool]] = []
    at, more = 0, True
    while more:
        match = _VALUE.match(text, at)
        if match is None:
            raise bad(source, f"the quotes in {shown(text[at:])} do not match", line=line)
        quoted = match[1][:1] in ("'", '"') and len(match[1]) > 0
        cells.append((_unquoted(match[1], source, line), quoted))
        at, more = match.end(), match[2] == ","
    return cells


def _easy(line: str) -> bool:
    """Say whether a line has nothing that needs care: quotes, missing values, odd digits."""
    return plain(line) and "'" not in line and '"' not in line and "?" not in line


class _Body:
    """The rows of the file, as it is read."""

    def __init__(self, source: str, attributes: list[_Attribute]) -> None:
        self.source, self.attributes = source, attributes
        self.p = len(attributes)
        self.sparse: bool | None = None
        self.lines = array("q")
        self.values = array("d")
        self.columns = array("q")
        self.counts = array("q")
        # the fast way: one function per column, which raises where something is odd
        self.readers: list[Callable[[str], float]] = [
            float if attribute.kind == "number" else attribute.values.__getitem__
            for attribute in attributes
        ]

    def add(self, line: str, k: int) -> None:
        is_sparse = line.startswith("{")
        if self.sparse is None:
            self.sparse = is_sparse
        elif self.sparse != is_sparse:
            raise bad(self.source, "dense and sparse rows must not be mixed", line=k)
        self.lines.append(k)
        if is_sparse:
            self.add_sparse(line, k)
        else:
            self.add_dense(line, k)

    def add_dense(self, line: str, k: int) -> None:
        cells = line.split(",") if _easy(line) else []
        if len(cells) == self.p:
            try:
                values = [read(c.strip()) for read, c in zip(self.readers, cells, strict=True)]
            except (ValueError, KeyError):
                values = [float("nan")]
            if not math.isnan(sum(values)):  # "nan" is no number here
                self.values.extend(values)
                return
        found = _cells(line, self.source, k)
        if len(found) != self.p:
            raise bad(
                self.source,
                f"there are {len(found)} values: the header has {self.p} attributes",
                line=k,
            )
        for j, (text, quoted) in enumerate(found):
            self.values.append(self.value(j, text, quoted, k))

    def add_sparse(self, line: str, k: int) -> None:
        if not line.endswith("}"):
            raise bad(self.source, "a sparse row must end with }", line=k)
        inside = line[1:-1].strip()
        before = len(self.columns)
        at, more = 0, bool(inside)
        if more and _easy(inside):
            try:
                entries = [entry.split() for entry in inside.split(",")]
                columns = [int(column) for column, _ in entries if column.isdigit()]
                if len(columns) == len(entries):
                    values = [
                        self.readers[column](text)
                        for column, (_, text) in zip(columns, entries, strict=True)
                    ]
                    if not math.isnan(sum(values)):
                        self.columns.extend(columns)
                        self.values.extend(values)
                        more = False
            except (ValueError, KeyError, IndexError):
                pass
        while more:
            match = _ENTRY.match(inside, at)
            if match is None:
                raise bad(
                    self.source,
                    f"{shown(inside[at:])} is no entry of a sparse row: it must be number value",
                    line=k,
                )
            j = int(match[1])
            if j >= self.p:
                raise bad(
                    self.source,
                    f"there is an attribute {j}: they are numbered from 0 to {self.p - 1}",
                    line=k,
                )
            quoted = match[2][0] in "'\""
            self.columns.append(j)
            self.values.append(self.value(j, _unquoted(match[2], self.source, k), quoted, k))
            at, more = match.end(), match[3] == ","
        added = self.columns[before:]
        if len(set(added)) < len(added):
            twice = next(j for j in added if added.count(j) > 1)
            raise bad(
                self.source, f"attribute {twice} occurs twice: it must have one value", line=k
            )
        self.counts.append(len(added))

    def value(self, j: int, text: str, quoted: bool, k: int) -> float:
        """Give what a value becomes; NaN where it is missing."""
        attribute = self.attributes[j]
        if not quoted and text in ("?", ""):
            if text == "":
                raise bad(
                    self.source,
                    "the value is empty: a missing one is written ?",
                    line=k,
                    column=attribute.name,
                )
            return float("nan")
        if attribute.kind == "text":
            return attribute.values.setdefault(text, float(len(attribute.values)))
        if attribute.kind == "nominal":
            if text not in attribute.values:
                raise bad(
                    self.source,
                    f"{shown(text)} is not a value that the header declares",
                    line=k,
                    column=attribute.name,
                )
            return attribute.values[text]
        found = number(text)
        if found is None or math.isnan(found):
            raise bad(
                self.source,
                f"{shown(text)} is not a number; a missing one is written ?",
                line=k,
                column=attribute.name,
            )
        return found

    def table(self) -> Table:
        n = len(self.lines)
        if n == 0:
            raise bad(self.source, "there are no rows after @data")
        names = tuple(attribute.name for attribute in self.attributes)
        lines = np.frombuffer(self.lines, dtype=np.int64)
        categories = {}
        for j, attribute in enumerate(self.attributes):
            texts = tuple(attribute.values)
            if attribute.kind == "text" and self.sparse:
                raise bad(
                    self.source,
                    "sparse rows cannot have texts: 0 would be one of them",
                    column=attribute.name,
                )
            if attribute.kind != "number" and texts != ("0", "1"):
                categories[j] = texts
        values = np.frombuffer(self.values) if len(self.values) else np.empty(0)
        if not self.sparse:
            return Table(self.source, values.reshape(n, self.p).copy(), names, categories, lines)
        indptr = np.concatenate([[0], np.cumsum(self.counts)])
        columns = np.array(self.columns, dtype=np.int64)
        matrix = make_csr(values.copy(), columns, indptr, (n, self.p))
        matrix.eliminate_zeros()
        return Table(self.source, matrix, names, categories, lines)


def _label_columns(
    path: Path, relation: str, names: list[str], options: Options
) -> list[int] | None:
    """Give where the labels are: what is asked for, else the XML file, else the relation."""
    source = str(path)
    labels = options.labels
    if isinstance(labels, str) and labels.lower().endswith(".xml") and labels not in names:
        return sorted(positions(names, _xml_labels(Path(labels)), source, f"{labels} names"))
    if labels is not None:
        return select_labels(names, options, source)
    if options.encoder is not None:
        where = select_labels(names, options, source)
        features = set(getattr(options.encoder, "feature_names_in_", ()))
        if where is not None or features.issuperset(names):
            return where
    beside = _beside(path)
    if beside.is_file():
        wanted = _xml_labels(beside)
        if not set(wanted).intersection(names):
            return None  # rows to be labelled
        return sorted(positions(names, wanted, source, f"{beside} names"))
    match = _MEKA.search(relation)
    if match is None or int(match[1]) == 0:
        return None
    return select_labels(names, replace(options, labels=int(match[1])), source)


def _beside(path: Path) -> Path:
    """Give the name of the XML file of an ARFF file."""
    plain_path = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    return plain_path.with_suffix(".xml")


def _xml_labels(path: Path) -> list[str]:
    """Give the names of the labels in a MULAN XML file, those of a hierarchy too."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise bad(path, f"the file cannot be read: {error}") from error
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise bad(path, "a list of labels has no document type and no entities")
    try:
        root = ElementTree.fromstring(content)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise bad(path, f"this is no XML: {error}") from error
    elements = [element for element in root.iter() if element.tag.rpartition("}")[2] == "label"]
    names = [element.get("name") for element in elements]
    if not names or None in names:
        raise bad(path, "there must be <label name=...> elements, each with a name")
    found = [str(name) for name in names]
    check_names(found, str(path))
    return found


def write_arff(
    path: Any,
    X: Any,
    Y: Any,
    feature_names: Sequence[str],
    label_names: Sequence[str],
    meka: bool,
) -> None:
    """Write ARFF, the labels last: sparse where X is, for MULAN with an XML file beside."""
    m = 0 if Y is None else Y.shape[1]
    target = Path(path)
    name = target.name.removesuffix(".gz").removesuffix(".arff")
    if not meka and m:
        with write_text(_beside(target)) as text:
            text.write('<?xml version="1.0" encoding="utf-8"?>\n')
            text.write('<labels xmlns="http://mulan.sourceforge.net/labels">\n')
            for label in label_names:
                if not _in_xml(label):
                    raise DataError(f"the label {label!r} has characters that XML does not have")
                text.write(f"<label name={quoteattr(label)}></label>\n")
            text.write("</labels>\n")
    with write_text(path) as text:
        relation = f"{name}: -C -{m}" if meka and m else name
        text.write(f"@relation {_quoted(relation, always=True)}\n\n")
        for feature in feature_names:
            text.write(f"@attribute {_quoted(feature)} numeric\n")
        for label in label_names[:m]:
            text.write(f"@attribute {_quoted(label)} {{0,1}}\n")
        text.write("\n@data\n")
        if sparse.issparse(X):
            _write_sparse(text, X, Y)
        else:
            for row in range(X.shape[0]):
                cells = written(X[row]) + ([] if Y is None else list(map(str, Y[row].tolist())))
                text.write(",".join(cells) + "\n")


def _write_sparse(text: Any, X: Any, Y: Any) -> None:
    csr = sparse.csr_array(X)
    csr.sort_indices()
    p = csr.shape[1]
    values, indices, indptr = written(csr.data), csr.indices.tolist(), csr.indptr.tolist()
    for row in range(csr.shape[0]):
        span = range(indptr[row], indptr[row + 1])
        entries = [f"{indices[at]} {values[at]}" for at in span]
        if Y is not None:
            entries += [f"{p + k} 1" for k in np.flatnonzero(Y[row]).tolist()]
        text.write("{" + ",".join(entries) + "}\n")


def _in_xml(text: str) -> bool:
    return not re.search("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", text)


def _quoted(name: str, always: bool = False) -> str:
    if not always and re.fullmatch(r"[A-Za-z0-9_.\-]+", name):
        return name
    for plain_text, escaped in (
        ("\\", "\\\\"),
        ("'", "\\'"),
        ("\n", "\\n"),
        ("\r", "\\r"),
        ("\t", "\\t"),
    ):
        name = name.replace(plain_text, escaped)
    return (
        "'"
        + "".join(
            c if c.isprintable() or c == " " else f"\\u{ord(c):04x}" if ord(c) < 65536 else c
            for c in name
        )
        + "'"
    )
