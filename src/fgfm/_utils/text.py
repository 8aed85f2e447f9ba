"""Text of messages and terminal output: counts, lists of names, shortened and wrapped lines."""

from __future__ import annotations

import difflib
import re
import textwrap
from collections.abc import Sequence

WIDTH = 80  # columns of a terminal
# Characters that terminals obey (controls, line ends, directions of writing), and surrogates,
# which cannot be encoded.
_CONTROL = re.compile(
    r"[\x00-\x1f\x80-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless the number is 1.

    Examples
    --------
    >>> counted(1, "row"), counted(3, "label")
    ('1 row', '3 labels')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def listed(names: Sequence[str], most: int = 8) -> str:
    """Return names in quotes, separated by commas; at most `most` of them.

    Examples
    --------
    >>> listed(["a", "b", "c"], most=2)
    "'a', 'b' and 1 more"
    """
    texts = ", ".join(map(repr, names[:most]))
    return texts if len(names) <= most else f"{texts} and {len(names) - most} more"


def near_match(name: str, known: Sequence[str]) -> str:
    """Return the end of a message about an unknown name: a similar one, or the first ones.

    Examples
    --------
    >>> near_match("crme", ["crime", "drama"])
    "did you mean 'crime'?"
    >>> near_match("x", ["crime", "drama"])
    "there are 'crime', 'drama'"
    """
    near = difflib.get_close_matches(name, known, 1)
    return f"did you mean {near[0]!r}?" if near else f"there are {listed(known, 4)}"


def missing_columns(absent: Sequence[str], names: Sequence[str]) -> str:
    """Return the beginning of a message about columns that are absent, with similar names.

    Examples
    --------
    >>> missing_columns(["plot", "year"], ["Plot", "cast"])
    "there are no columns 'plot', 'year' (did you mean 'Plot'?)"
    """
    lower = {name.lower(): name for name in reversed(names)}
    near = {
        lower[match[0]]: None
        for name in absent
        if (match := difflib.get_close_matches(name.lower(), list(lower), 1))
    }
    text = f"there {'is no column' if len(absent) == 1 else 'are no columns'} {listed(absent)}"
    return f"{text} (did you mean {listed(list(near))}?)" if near else text


def ignored_columns(names: Sequence[str]) -> str:
    """Return the message about columns that training did not have.

    Examples
    --------
    >>> ignored_columns(["year"])
    "the column 'year' is ignored: training had no such column"
    """
    noun, verb = ("column", "is") if len(names) == 1 else ("columns", "are")
    return f"the {noun} {listed(names)} {verb} ignored: training had no such {noun}"


def quoted(value: object, length: int = 60) -> str:
    """Return the text of a value in quotes, truncated to `length` characters.

    Examples
    --------
    >>> quoted("ab" * 50, length=10)
    "'ababababab'..."
    """
    text = str(value)
    return repr(text) if len(text) <= length else f"{text[:length]!r}..."


def escaped(text: str, keep: str = "") -> str:
    r"""Return a text from a file with control characters escaped, except those to keep.

    Examples
    --------
    >>> print(escaped("a\x1b[2J\rb"))
    a\x1b[2J\rb
    """
    return _CONTROL.sub(lambda match: match[0] if match[0] in keep else repr(match[0])[1:-1], text)


def clipped(text: str, width: int) -> str:
    """Return an escaped text with an ellipsis for its middle if it is longer than `width`.

    Examples
    --------
    >>> clipped("a/very/long/path.csv", 11)
    'a/ver…h.csv'
    """
    text = escaped(text)
    if len(text) <= width:
        return text
    end = (width - 1) // 2
    return f"{text[: width - 1 - end]}…{text[len(text) - end :]}"


def one_line(value: object, length: int | None = None) -> str:
    """Return the text of a value on one line, truncated to `length` characters."""
    return " ".join(str(value).split())[:length]


def wrapped(text: str, indent: str = "") -> str:
    """Wrap a text at `WIDTH` columns; lines after the first begin with `indent`."""
    return textwrap.fill(text, WIDTH, subsequent_indent=indent, break_on_hyphens=False)
