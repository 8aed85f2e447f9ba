"""Parsing and formatting of numbers in text files."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["MISSING", "category_name", "format_numbers", "is_plain", "parse_number"]

MISSING = frozenset({"", "?", "na", "n/a", "nan", "null"})  # texts of a missing value, lower case


def is_plain(text: str) -> bool:
    """Return True if `float` reads a text as other programs do.

    `float` also accepts underscores (1_000) and the digits of any script.
    """
    return text.isascii() and "_" not in text


def parse_number(text: str) -> float | None:
    """Return the number in a text, NaN if the value is missing, None if it is not a number.

    Examples
    --------
    >>> parse_number(" 2e3"), parse_number("NA"), parse_number("1_000")
    (2000.0, nan, None)
    """
    text = text.strip()
    if text.lower() in MISSING:
        return float("nan")
    if not is_plain(text):
        return None
    try:
        return float(text)
    except ValueError:
        return None


def format_numbers(values: Any) -> list[str]:
    """Return the shortest texts that parse to the same numbers of the same type.

    Examples
    --------
    >>> format_numbers(np.float32([0.1, 2])), format_numbers([1, 0])
    (['0.1', '2'], ['1', '0'])
    """
    array = np.asarray(values)
    if array.dtype.kind != "f":
        return [str(int(value)) for value in array.tolist()]
    if array.dtype == np.float64:
        texts = list(map(repr, array.tolist()))
    else:
        texts = array.astype(np.str_).tolist()
    return [text.removesuffix(".0") for text in texts]


def category_name(value: float) -> str:
    """Return a number as the name of a category: 3, not 3.0.

    Examples
    --------
    >>> category_name(3.0), category_name(0.5)
    ('3', '0.5')
    """
    return repr(float(value)).removesuffix(".0")
