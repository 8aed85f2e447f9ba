"""Labels among the columns of a table, in every common form.

One column of lists: texts such as ``a;b`` or ``["a", "b"]``, or lists of Parquet and JSON. Several
columns: 0 and 1 for each label, or the names of labels (genre1, genre2, ...).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm._utils.text import listed, missing_columns, near_match, quoted
from fgfm.io._cells import BINARY_WORDS, as_texts
from fgfm.io._errors import DataError

_SEPARATORS = (";", "|", ",")  # of label lists, by preference
_MANY = 20  # rows from which labels must be repeated
_MAX_BYTES = 1 << 32  # labels are a dense matrix
_BRACKETS = re.compile(r"\[.*\]|\{.*\}|\(.*\)", re.DOTALL)
_PLAIN_LIST = re.compile(r"[\[{][^\[\](){}]*[\]}]")  # [a, b], without quotes
_PAIRS = ({"0", "1"}, {"no", "yes"}, {"false", "true"}, {"0.0", "1.0"})


class Labels(NamedTuple):
    """Labels of rows."""

    Y: Any  # (n, m): uint8, or float64 with NaN where a label was not observed
    names: tuple[str, ...]
    form: str = ""  # how they were found, such as "labels split at '|'"


def select_columns(
    names: Sequence[str], wanted: int | str | Sequence[str], source: str
) -> list[str]:
    """Return the label columns: a count from the front (or, negative, the end), names, patterns.

    Examples
    --------
    >>> select_columns(["year", "genre_a", "genre_b"], "genre_*", "films.csv")
    ['genre_a', 'genre_b']
    >>> select_columns(["year", "genre_a", "genre_b"], -1, "films.csv")
    ['genre_b']
    """
    if isinstance(wanted, int):
        if not 0 < abs(wanted) < len(names):
            raise DataError(
                f"labels is {wanted}: there are {len(names)} columns, of which at least one must "
                "be a label and one a feature",
                source=source,
                arguments=["labels"],
            )
        return list(names[:wanted] if wanted > 0 else names[wanted:])
    found: dict[str, None] = {}  # an ordered set
    for name in [wanted] if isinstance(wanted, str) else wanted:
        matches = [name] if name in names else [n for n in names if fnmatchcase(n, name)]
        if not matches:
            reason = f"no column is called {quoted(name)}: {near_match(name, names)}"
            raise DataError(reason, source=source, arguments=["labels"])
        found.update(dict.fromkeys(matches))
    return list(found)


def read_labels(
    columns: dict[str, Any],
    source: str,
    *,
    separator: str | None = None,
    known: Sequence[str] | None = None,
    missing: bool = False,
) -> Labels:
    """Return the labels that columns of pyarrow declare.

    `known` are all labels, in their order; by default those that occur. With `missing`, a blank
    cell is a label that was not observed; otherwise it is no label.
    """
    if _are_flags(columns) or set(columns) == set(known or ()):
        return _from_flags(columns, source, known, missing)
    lists: list[set[str]] = [set() for _ in next(iter(columns.values()))]
    blank = np.ones(len(lists), dtype=bool)
    form = "labels in lists"
    for column in columns.values():
        cells, separator = _cell_lists(column, separator)
        if separator is not None:
            form = f"labels split at {separator!r}"
        for row, tags in enumerate(cells):
            if tags is not None:
                lists[row] |= tags
                blank[row] = False
    names = _label_names(lists, ", ".join(columns), source) if known is None else list(known)
    Y = _indicator(lists, names, source)
    if missing and blank.any():
        Y = Y.astype(np.float64)
        Y[blank] = np.nan
    return Labels(Y, tuple(names), form)


def _are_flags(columns: dict[str, Any]) -> bool:
    """Return True if each column has 0 and 1, booleans, or words for them."""
    import pyarrow as pa

    for column in columns.values():
        if pa.types.is_nested(column.type):
            return False
        words = {text.lower() for text in as_texts(column) if text is not None}
        if not words and len(columns) == 1:
            return False
        if words and not any(words <= pair for pair in _PAIRS):
            # A text or 2 among 0 and 1 is an error that names its place, not a label; but a
            # column by itself may have classes 0, 1 and 2.
            return len(columns) > 1 and len(words & {"0", "1"}) == 2
    return True


def _from_flags(
    columns: dict[str, Any], source: str, known: Sequence[str] | None, missing: bool
) -> Labels:
    """Return labels of columns of 0 and 1."""
    names, n = list(columns), len(next(iter(columns.values())))
    check_size(n, len(names), source)
    Y = np.zeros((n, len(names)))
    for k, (name, column) in enumerate(columns.items()):
        texts = as_texts(column)
        words = {**BINARY_WORDS, "0": 0.0, "1": 1.0, "0.0": 0.0, "1.0": 1.0}
        Y[:, k] = [np.nan if t is None else words.get(str(t).lower(), 2.0) for t in texts]
        wrong = Y[:, k] == 2.0
        if wrong.any():
            row = int(np.argmax(wrong))
            reason = f"the label is {quoted(texts[row])}: labels must be 0 or 1"
            raise DataError(reason, source=source, row=row, column=name)
    if known is not None:
        Y = Y[:, label_order(names, known, "training", source)]
        names = list(known)
    if not (missing and np.isnan(Y).any()):
        Y = np.nan_to_num(Y).astype(np.uint8)
    return Labels(Y, tuple(names), "a column of 0 and 1 for each label")


def _cell_lists(column: Any, separator: str | None) -> tuple[list[set[str] | None], str | None]:
    """Return the set of labels of each cell, None for a blank one, and the separator."""
    import pyarrow as pa

    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        parts = column.to_pylist()
    else:
        parts = [None if text is None else _literal(text) for text in as_texts(column)]
        texts = [part for part in parts if isinstance(part, str)]
        if separator is None and texts:
            separator = _find_separator(texts)
        parts = [part.split(separator) if isinstance(part, str) else part for part in parts]
    sets = [
        None if part is None else {tag for v in part if v is not None and (tag := str(v).strip())}
        for part in parts
    ]
    return sets, separator


def _literal(text: str) -> list[Any] | str:
    """Return the elements of a list in the notation of Python or JSON; other texts as they are.

    Of an object those names count whose value is neither 0, false nor null.

    Examples
    --------
    >>> _literal("['a', 'b']"), _literal('["a"]'), _literal("[a, b]")
    (['a', 'b'], ['a'], ['a', ' b'])
    >>> _literal("{'a': 1, 'b': 0}")
    ['a']
    >>> _literal("a;b"), _literal("(US)|(UK)"), _literal("(no genres listed)")
    ('a;b', '(US)|(UK)', '(no genres listed)')
    """
    if not _BRACKETS.fullmatch(text):
        return text
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        if not _PLAIN_LIST.fullmatch(text):
            return text
        inner = text[1:-1].strip()
        return inner.split(",") if inner else []
    if isinstance(value, dict):
        return [name for name, flag in value.items() if flag]
    return list(value) if isinstance(value, (list, tuple, set)) else text


def _find_separator(texts: Sequence[str]) -> str:
    """Return the separator that leaves the least text in the different labels.

    Splitting at a mark within a label leaves combinations of labels, which have more text.

    Examples
    --------
    >>> _find_separator(["crime|drama", "comedy", "comedy|sci-fi, fantasy"])
    '|'
    """

    def length(mark: str) -> int:
        return sum(map(len, {part.strip() for text in different for part in text.split(mark)}))

    different = set(texts)
    return min(_SEPARATORS, key=length)


def _label_names(lists: list[set[str]], column: str, source: str) -> list[str]:
    """Return the different labels in alphabetical order; raise if there are none, or too many."""
    names = sorted(set().union(*lists))
    if not names:
        reason = "no row has a label: there must be at least one"
        raise DataError(reason, source=source, column=column)
    if len(lists) >= _MANY and len(names) > len(lists) / 2:
        raise DataError(
            f"there are {len(names)} different labels in {len(lists)} rows, such as "
            f"{quoted(names[0])}: this is not a column of labels, or they have another separator",
            source=source,
            column=column,
            arguments=["labels", "separator"],
        )
    return names


def _indicator(lists: list[set[str]], names: Sequence[str], source: str) -> npt.NDArray[np.uint8]:
    """Return label sets as rows of 0 and 1."""
    check_size(len(lists), len(names), source)
    where = {name: k for k, name in enumerate(names)}
    Y = np.zeros((len(lists), len(names)), dtype=np.uint8)  # (n, m)
    for row, tags in enumerate(lists):
        for tag in tags:
            if tag not in where:
                raise DataError(
                    f"there is no label {quoted(tag)} among the known ones; "
                    f"{near_match(tag, names)}",
                    source=source,
                    row=row,
                )
            Y[row, where[tag]] = 1
    return Y


def check_size(n: int, m: int, source: str) -> None:
    """Raise if a dense matrix of labels is too large."""
    if n * m > _MAX_BYTES:
        raise DataError(
            f"{n} rows of {m} labels are too many: labels are a dense matrix of at most "
            f"{_MAX_BYTES >> 30} GiB",
            source=source,
        )


def label_order(
    found: Sequence[str],
    wanted: Sequence[str],
    whose: str,
    source: Any,
    arguments: Sequence[str] = (),
) -> list[int]:
    """Return the position of each wanted label; raise unless the same labels are found."""
    where, known = {name: j for j, name in enumerate(found)}, set(wanted)
    unknown = next((name for name in found if name not in known), None)
    if unknown is not None:
        reason = f"{quoted(unknown)} is not a label of {whose}: {near_match(unknown, wanted)}"
        raise DataError(reason, source=source, arguments=arguments)
    absent = [name for name in wanted if name not in where]
    if absent:
        reason = f"{missing_columns(absent, found)}: {whose} has these labels"
        raise DataError(reason, source=source)
    return [where[name] for name in wanted]


def likely_labels(columns: dict[str, Any]) -> str:
    """Return the end of a message on columns that may be labels."""
    lists = [name for name, column in columns.items() if _has_lists(column)]
    flags = [n for n, column in columns.items() if n not in lists and _are_flags({n: column})]
    found = [f"{listed(lists, 3)} (lists)"] if lists else []
    found += [f"{listed(flags, 3)} (0 or 1)"] if flags else []
    return f", such as {', '.join(found)}" if found else ""


def _has_lists(column: Any) -> bool:
    """Return True if the cells are lists of repeated labels."""
    import pyarrow as pa

    if not (pa.types.is_string(column.type) or pa.types.is_list(column.type)):
        return False
    cells = [cell for cell in _cell_lists(column, None)[0] if cell is not None]
    parts = [tag for cell in cells for tag in cell]
    return len(parts) > 1.2 * len(cells) and len(set(parts)) <= len(parts) / 2
