"""Columns of texts among which some look like numbers, such as the film title 1917."""

from __future__ import annotations

import csv
from itertools import islice
from pathlib import Path

from fgfm.data._formats import default_delimiter
from fgfm.data._numbers import MISSING, parse_number
from fgfm.data._options import ReadOptions
from fgfm.data._text_files import open_text

__all__ = ["columns_of_words"]

_ROWS = 1000  # read to find them


def columns_of_words(path: Path, options: ReadOptions, format: str) -> list[str]:
    """Return the columns of CSV or TSV in which more than half of the first cells have letters.

    Columns of numbers with a few texts are left out: those texts are faults.
    """
    with open_text(path, options.encoding, newline="") as text:
        reader = csv.reader(text, delimiter=options.delimiter or default_delimiter(format))
        try:
            rows = list(islice(filter(None, reader), _ROWS + 1))
        except csv.Error:
            return []  # the reader of the whole file reports it
    if any(len(row) != len(rows[0]) for row in rows):
        return []
    found = []
    for name, *cells in zip(*rows, strict=True):
        present = [cell for cell in cells if cell.strip().lower() not in MISSING]
        words = [
            cell for cell in present if parse_number(cell) is None and any(map(str.isalpha, cell))
        ]
        if 2 * len(words) > len(present):
            found.append(name.strip(" \t"))
    return [name for name in found if name]
