"""ARFF, dense and sparse, with labels declared as in MULAN or as in MEKA.

MULAN keeps the names of the labels in an XML file of the same name. MEKA writes ``-C n`` into the
name of the relation: the first n attributes are labels, or the last n if n is negative.

A reader of our own: that of SciPy reads no sparse rows, and liac-arff takes minutes for large
files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from scipy import sparse

from fgfm._utils.text import quoted
from fgfm.io._cells import Faults
from fgfm.io._errors import DataError
from fgfm.io._files import TextFormat, check_names, open_text, source_name
from fgfm.io._sparse import SparseRows
from fgfm.io._tables import Table

_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|[^\s'\"{{]\S*)\s*(.+)", re.IGNORECASE)
_KIND = re.compile(r"(?i)(numeric|real|integer)|(?:string|date)(?: .*)?|\{(.*)\}")
_ENTRY = re.compile(rf"\s*([0-9]{{1,10}})\s+({_QUOTED}|[^,'\"\s][^,]*?)\s*(?:,|$)")
_VALUE = re.compile(rf"\s*({_QUOTED}|[^,'\"]*?)\s*(?:,|$)")
_MEKA = re.compile(r"-[Cc]\s*(-?[0-9]+)")
Attributes = dict[str, list[str] | None]  # the values of each attribute; None: numbers


@contextmanager
def open_arff(path: Any, text: TextFormat, encoder: Any) -> Iterator[Table | SparseRows]:
    """Read an ARFF file, and the XML file of its labels if there is one."""
    source, relation = source_name(path), ""
    attributes: Attributes = {}
    rows: list[tuple[int, str]] | None = None
    with open_text(path, text.encoding) as lines:
        for k, line in enumerate(map(str.strip, lines), 1):
            word = line.partition(" ")[0].lower()
            if not line or line.startswith("%"):
                continue
            if rows is not None:
                rows.append((k, line))
            elif word == "@relation":
                relation = _unquoted(line[len(word) :].strip())
            elif word == "@data" and attributes:
                rows = []
            else:
                _add_attribute(line, attributes, source, k)
    if not rows:
        reason = "there are no rows after @data" if rows is not None else "there is no @data"
        raise DataError(f"{reason}: the file is truncated, or is not ARFF", source=source)
    names = list(attributes)
    check_names(names, source)
    labels = _declared_labels(path, relation, names, source)
    if not rows[0][1].startswith("{"):
        columns = dict(zip(names, _dense_columns(rows, len(names), source), strict=True))
        yield Table.of(source, _typed(columns, attributes, source), labels)
        return
    index, texts = _entries(rows, len(names), source)
    if all(values is None for values in attributes.values()):
        numbers = _typed({"": texts}, {"": None}, source)[""].to_numpy(zero_copy_only=False)
        X = sparse.csr_array((numbers, tuple(index.T)), shape=(len(rows), len(names)))
        yield SparseRows(source, X, names, labels)
        return
    columns = {  # where no entry is: the first value
        name: ["0" if values is None else (values or [""])[0]] * len(rows)
        for name, values in attributes.items()
    }
    for (row, j), cell in zip(index.tolist(), texts, strict=True):
        columns[names[j]][row] = None if cell == "?" else cell
    yield Table.of(source, _typed(columns, attributes, source), labels)


def _add_attribute(line: str, attributes: Attributes, source: str, k: int) -> None:
    match = _ATTRIBUTE.fullmatch(line)
    kind = match and _KIND.fullmatch(match[2].strip())
    if match is None or kind is None:
        raise DataError(
            f"{quoted(line)} is not a line of an ARFF header: these are @relation; @attribute, a "
            "name and a type (numeric, real, integer, string, date or {a,list,of,values}); and, "
            "after them, @data",
            source=source,
            line=k,
        )
    name = _unquoted(match[1])
    if name in attributes:
        reason = f"two attributes are called {quoted(name)}: names must be unique"
        raise DataError(reason, source=source, line=k)
    values = None if kind[1] else _split(kind[2] or "")
    attributes[name] = None if values == ["0", "1"] else values


def _unquoted(text: str) -> str:
    if text[:1] in ("'", '"') and text[-1:] == text[:1] and len(text) > 1:
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _split(text: str) -> list[str]:
    """Return the comma-separated values of a line, without quotes."""
    if "'" not in text and '"' not in text:
        return [value.strip() for value in text.split(",")]
    return [_unquoted(value) for value in _VALUE.findall(text + ",")[:-1]]


def _typed(columns: dict[str, Any], attributes: Attributes, source: str) -> dict[str, Any]:
    """Return arrays of pyarrow: numbers where an attribute has no values, else texts."""
    import pyarrow as pa

    faults, found = Faults(source), {}
    for name, values in attributes.items():
        column = pa.array(columns[name], pa.string())
        found[name] = pa.array(faults.numbers(name, column)) if values is None else column
    faults.report(len(column))
    return found


def _dense_columns(rows: list[tuple[int, str]], p: int, source: str) -> Iterator[Any]:
    cells = []
    for k, line in rows:
        cells.append([None if value == "?" else value for value in _split(line)])
        if len(cells[-1]) != p:
            reason = f"there are {len(cells[-1])} values: the header has {p} attributes"
            raise DataError(reason, source=source, line=k)
    return zip(*cells, strict=True)


def _entries(rows: list[tuple[int, str]], p: int, source: str) -> tuple[Any, list[str]]:
    """Return the row and column of each entry of sparse rows, and its text."""
    where: list[tuple[int, int]] = []
    texts: list[str] = []
    for row, (k, line) in enumerate(rows):
        if not (line.startswith("{") and line.endswith("}")):
            reason = "a sparse row must be in braces, and dense and sparse rows must not be mixed"
            raise DataError(reason, source=source, line=k)
        at, body, seen = 0, line[1:-1].strip(), set()
        while at < len(body):
            match = _ENTRY.match(body, at)
            if match is None or int(match[1]) >= p or int(match[1]) in seen:
                raise DataError(
                    f"{quoted(body[at:])}: an entry of a sparse row must be an index from 0 to "
                    f"{p - 1}, once in a row, and a value",
                    source=source,
                    line=k,
                )
            seen.add(int(match[1]))
            where.append((row, int(match[1])))
            texts.append(_unquoted(match[2]))
            at = match.end()
    return np.array(where, dtype=np.int64).reshape(-1, 2), texts


def _declared_labels(path: Any, relation: str, names: list[str], source: str) -> Any:
    """Return the labels of the XML file, or those that the name of the relation declares."""
    xml = Path(str(path).removesuffix(".gz")).with_suffix(".xml")
    if xml.is_file():
        labels = read_xml_labels(xml)
        absent = [name for name in labels if name not in names]
        if absent:
            reason = f"the label {quoted(absent[0])} is not an attribute of {path}"
            raise DataError(reason, source=xml)
        return labels
    match = _MEKA.search(relation)
    if match is None:
        return None
    count = int(match[1])
    if not 0 < abs(count) < len(names):
        reason = f"the relation declares {count} labels of {len(names)} attributes"
        raise DataError(f"{reason}: there must be a label and a feature", source=source)
    return names[:count] if count > 0 else names[count:]


def read_xml_labels(path: Path) -> list[str]:
    """Return the names of the labels in an XML file of MULAN, also those of a hierarchy."""
    content = path.read_bytes()
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise DataError("document types and entities are not allowed", source=path)
    try:
        root = ElementTree.fromstring(content)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise DataError(f"this is not XML: {error}", source=path) from error
    elements = [element for element in root.iter() if element.tag.rpartition("}")[2] == "label"]
    names = [str(element.get("name", "")) for element in elements]
    if not names:
        raise DataError("there must be <label name=...> elements", source=path)
    check_names(names, str(path))
    return names
