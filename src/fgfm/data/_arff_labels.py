"""Labels of ARFF files, declared as in MULAN or as in MEKA.

MULAN keeps the names of the labels in an XML file of the same name. MEKA writes ``-C n`` into the
name of the relation: the first n attributes are labels, or the last n if n is negative.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.sax.saxutils import quoteattr

from fgfm.data._errors import DataError
from fgfm.data._label_columns import select_labels
from fgfm.data._options import ReadOptions
from fgfm.data._table import check_names, column_positions
from fgfm.data._text_files import is_gzip_name, write_text

__all__ = ["arff_label_columns", "write_xml_labels"]

_MEKA = re.compile(r"-C\s+(-?[0-9]{1,9})(?![0-9])")
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def arff_label_columns(
    path: Path, relation: str, names: list[str], options: ReadOptions
) -> list[int] | None:
    """Return the positions of the labels: by `labels`, else the XML file, else the relation."""
    source = str(path)
    labels = options.labels
    if isinstance(labels, str) and labels.lower().endswith(".xml") and labels not in names:
        wanted = _read_xml_labels(Path(labels))
        return sorted(column_positions(names, wanted, source, required_by=f"{labels} names"))
    if labels is not None:
        return select_labels(names, options, source)
    if options.encoder is not None:
        where = select_labels(names, options, source)
        if where is not None or set(options.training_features).issuperset(names):
            return where
    xml = _xml_path(path)
    if xml.is_file():
        wanted = _read_xml_labels(xml)
        if not set(wanted).intersection(names):
            return None  # rows without labels
        return sorted(column_positions(names, wanted, source, required_by=f"{xml} names"))
    match = _MEKA.search(relation)
    if match is None or int(match[1]) == 0:
        return None
    return select_labels(names, replace(options, labels=int(match[1])), source)


def _xml_path(path: Path) -> Path:
    """Return the path of the XML file of an ARFF file."""
    uncompressed = path.with_suffix("") if is_gzip_name(path) else path
    return uncompressed.with_suffix(".xml")


def _read_xml_labels(path: Path) -> list[str]:
    """Return the names of the labels in a MULAN XML file, including those of a hierarchy."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"the file cannot be read: {error}", source=path) from error
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise DataError("document types and entities are not allowed", source=path)
    try:
        root = ElementTree.fromstring(content)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise DataError(f"this is not XML: {error}", source=path) from error
    elements = [element for element in root.iter() if element.tag.rpartition("}")[2] == "label"]
    names = [element.get("name") for element in elements]
    if not names or None in names:
        raise DataError("there must be <label name=...> elements, each with a name", source=path)
    found = [str(name) for name in names]
    check_names(found, str(path))
    return found


def write_xml_labels(path: Path, label_names: Sequence[str]) -> None:
    """Write the names of the labels of an ARFF file as MULAN does."""
    with write_text(_xml_path(path)) as text:
        text.write('<?xml version="1.0" encoding="utf-8"?>\n')
        text.write('<labels xmlns="http://mulan.sourceforge.net/labels">\n')
        for label in label_names:
            if _NOT_IN_XML.search(label):
                raise DataError(f"the label {label!r} has characters that XML does not allow")
            text.write(f"<label name={quoteattr(label)}></label>\n")
        text.write("</labels>\n")
