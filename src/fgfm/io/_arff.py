"""ARFF, dense and sparse, with labels declared as in MULAN or as in MEKA.

MULAN keeps the names of the labels in an XML file of the same name. MEKA writes ``-C n`` into the
name of the relation: the first n attributes are labels, or the last n if n is negative.

A reader of our own: that of SciPy reads no sparse rows, and liac-arff takes minutes for large
files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
from scipy import sparse

from fgfm._utils.text import quoted
from fgfm.io._errors import DataError
from fgfm.io._files import open_text
from fgfm.io._tables import check_names

__all__ = ["ArffFile", "read_arff"]

_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|[^\s'\"{{]\S*)\s*(.+)", re.IGNORECASE)
_ENTRY = re.compile(rf"\s*([0-9]{{1,10}})\s+({_QUOTED}|[^,'\"\s][^,]*?)\s*(?:,|$)")
_VALUE = re.compile(rf"\s*({_QUOTED}|[^,'\"]*?)\s*(?:,|$)")
_MEKA = re.compile(r"-[Cc]\s*(-?[0-9]+)")


class ArffFile(NamedTuple):
    """The content of an ARFF file."""

    names: list[str]
    columns: dict[str, Any] | None  # lists of numbers or texts by name, None where missing
    matrix: Any  # CSR of shape (n, p), if all sparse columns are numbers
    labels: list[str] | None  # names of the columns that are declared to be labels


def read_arff(path: Path, encoding: str) -> ArffFile:
    """Read an ARFF file, and the XML file of its labels if there is one."""
    source = str(path)
    with open_text(path, encoding) as text:
        lines = ((k, line.strip()) for k, line in enumerate(text, 1))
        lines = ((k, line) for k, line in lines if line and not line.startswith("%"))
        relation, attributes = _read_header(lines, source)
        names = list(attributes)
        check_names(names, source)
        rows = list(lines)
    if not rows:
        raise DataError("there are no rows after @data", source=source)
    labels = _declared_labels(path, relation, names)
    if rows[0][1].startswith("{"):
        matrix, columns = _read_sparse(rows, attributes, source)
    else:
        matrix, columns = None, _read_dense(rows, attributes, source)
    return ArffFile(names, columns, matrix, labels)


def _read_header(
    lines: Iterator[tuple[int, str]], source: str
) -> tuple[str, dict[str, list[str] | None]]:
    """Return the name of the relation, and the values of each attribute; None for numbers."""
    relation = ""
    attributes: dict[str, list[str] | None] = {}
    for k, line in lines:
        word = line.split(None, 1)[0].lower()
        if word == "@relation":
            relation = _unquoted(line[len(word) :].strip())
        elif word == "@data":
            if not attributes:
                raise DataError("there is no @attribute before @data", source=source, line=k)
            return relation, attributes
        else:
            match = _ATTRIBUTE.fullmatch(line)
            if match is None:
                raise DataError(
                    f"{quoted(line)} is not a line of an ARFF header: these are @relation, "
                    "@attribute with a name and a type, and @data",
                    source=source,
                    line=k,
                )
            name, kind = _unquoted(match[1]), match[2].strip()
            if name in attributes:
                reason = f"two attributes are called {quoted(name)}: names must be unique"
                raise DataError(reason, source=source, line=k)
            attributes[name] = _attribute_values(kind, name, source, k)
    reason = "the file ends before @data: it is truncated, or is not an ARFF file"
    raise DataError(reason, source=source)


def _attribute_values(kind: str, name: str, source: str, line: int) -> list[str] | None:
    if kind.lower() in ("numeric", "real", "integer"):
        return None
    if kind.lower().partition(" ")[0] in ("string", "date"):
        return []
    if not (kind.startswith("{") and kind.endswith("}")):
        reason = f"attribute {quoted(name)} has type {quoted(kind)}: it must be numeric, real, "
        reason += "integer, string, date or {a,list,of,values}"
        raise DataError(reason, source=source, line=line)
    values = _split(kind[1:-1])
    return None if values == ["0", "1"] else values


def _unquoted(text: str) -> str:
    if text[:1] in ("'", '"') and text[-1:] == text[:1] and len(text) > 1:
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _split(text: str) -> list[str]:
    """Return the comma-separated values of a line, without quotes."""
    if "'" not in text and '"' not in text:
        return [value.strip() for value in text.split(",")]
    return [_unquoted(value) for value in _VALUE.findall(text + ",")[:-1]]


def _number(text: str, name: str, source: str, line: int) -> float:
    """Return a number, NaN for ?."""
    if text == "?":
        return np.nan
    try:
        if "_" in text:  # Python reads 1_0 as 10
            raise ValueError
        return float(text)
    except ValueError:
        reason = f"{quoted(text)} is not a number; a missing value is written ?"
        raise DataError(reason, source=source, line=line, column=name) from None


def _read_dense(
    rows: list[tuple[int, str]], attributes: dict[str, list[str] | None], source: str
) -> dict[str, Any]:
    plain = not any("'" in line or '"' in line for _, line in rows)
    cells = [line.split(",") if plain else _split(line) for _, line in rows]
    for (k, _), row in zip(rows, cells, strict=True):
        if len(row) != len(attributes):
            reason = f"there are {len(row)} values: the header has {len(attributes)} attributes"
            raise DataError(reason, source=source, line=k)
    columns: dict[str, Any] = {}
    for (name, values), column in zip(attributes.items(), zip(*cells, strict=True), strict=True):
        texts = [text.strip() for text in column]
        if values is None:
            columns[name] = np.array(
                [_number(t, name, source, k) for t, (k, _) in zip(texts, rows, strict=True)]
            )
        else:
            columns[name] = [None if text == "?" else text for text in texts]
    return columns


def _read_sparse(
    rows: list[tuple[int, str]], attributes: dict[str, list[str] | None], source: str
) -> tuple[Any, dict[str, Any] | None]:
    """Return a CSR matrix, or columns if an attribute has values other than numbers."""
    names, p = list(attributes), len(attributes)
    entries: list[tuple[int, int, str]] = []
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
            entries.append((row, int(match[1]), _unquoted(match[2])))
            at = match.end()
    columns: dict[str, Any] = {
        name: None if values is None else [(values or [""])[0]] * len(rows)
        for name, values in attributes.items()
    }
    numbers: list[tuple[int, int, float]] = []
    for row, j, text in entries:
        column = columns[names[j]]
        if column is None:
            numbers.append((row, j, _number(text, names[j], source, rows[row][0])))
        else:
            column[row] = None if text == "?" else text
    where = [row for row, _, _ in numbers], [j for _, j, _ in numbers]
    data = np.array([value for *_, value in numbers])
    matrix = sparse.csr_array((data, where), shape=(len(rows), p))
    if all(column is None for column in columns.values()):
        return matrix, None
    for j, name in enumerate(names):
        if columns[name] is None:
            columns[name] = matrix[:, [j]].toarray()[:, 0]
    return None, columns


def _declared_labels(path: Path, relation: str, names: list[str]) -> list[str] | None:
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
        raise DataError(f"{reason}: there must be a label and a feature", source=path)
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
