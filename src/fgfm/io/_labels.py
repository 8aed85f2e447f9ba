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
from fgfm.io._cells import BINARY_WORDS, as_numbers, as_texts
from fgfm.io._errors import DataError

__all__ = [
    "Labels",
    "find_separator",
    "label_order",
    "likely_labels",
    "read_labels",
    "select_columns",
]

_SEPARATORS = (";", "|", ",")  # of label lists, by preference
_MANY = 20  # rows from which labels must be repeated
_MAX_BYTES = 1 << 32  # labels are a dense matrix
_BRACKETS = re.compile(r"[\[({].*[\])}]", re.DOTALL)
_PAIRS = ({"0", "1"}, {"no", "yes"}, {"false", "true"}, {"0.0", "1.0"})


class Labels(NamedTuple):
    """Labels of rows."""

    Y: npt.NDArray[Any]  # (n, m): uint8, or float64 with NaN where a label was not observed
    names: tuple[str, ...]
    separator: str | None  # of label lists


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

    Parameters
    ----------
    columns : dict of str to pyarrow arrays
        The label columns.
    source : str
        The file.
    separator : str, optional
        The separator of label lists in texts; by default it is found.
    known : sequence of str, optional
        All labels, in their order; by default those that occur.
    missing : bool, default=False
        Whether a blank cell is a label that was not observed; otherwise it is no label.
    """
    if _are_flags(columns) or set(columns) == set(known or ()):
        return _from_flags(columns, source, known, missing)
    lists: list[set[str]] | None = None
    blank = None
    for name, column in columns.items():
        parts, separator, empty = _cell_lists(column, separator, name, source)
        lists = parts if lists is None else [a | b for a, b in zip(lists, parts, strict=True)]
        blank = empty if blank is None else blank & empty
    assert lists is not None
    assert blank is not None
    names = _label_names(lists, ", ".join(columns), source) if known is None else list(known)
    Y = _indicator(lists, names, source)
    if missing and blank.any():
        Y = Y.astype(np.float64)
        Y[blank] = np.nan
    return Labels(Y, tuple(names), separator)


def _are_flags(columns: dict[str, Any]) -> bool:
    """Return True if each column has 0 and 1, booleans, or words for them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for column in columns.values():
        kind = column.type
        if pa.types.is_nested(kind):
            return False
        if pa.types.is_boolean(kind):
            continue
        words = {str(text).lower() for text in pc.unique(pc.drop_null(_texts(column))).to_pylist()}
        if not words and len(columns) == 1:
            return False
        if words and not any(words <= pair for pair in _PAIRS):
            # A text or 2 among 0 and 1 is an error that names its place, not a label; but a
            # column by itself may have classes 0, 1 and 2.
            return len(columns) > 1 and len(words & {"0", "1"}) == 2
    return True


def _texts(column: Any) -> Any:
    import pyarrow as pa

    return pa.array(as_texts(column), pa.string())


def _from_flags(
    columns: dict[str, Any], source: str, known: Sequence[str] | None, missing: bool
) -> Labels:
    """Return labels of columns of 0 and 1."""
    names = list(columns)
    n = len(next(iter(columns.values())))
    _check_size(n, len(names), source)
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
    return Labels(Y, tuple(names), None)


def _cell_lists(
    column: Any, separator: str | None, name: str, source: str
) -> tuple[list[set[str]], str | None, npt.NDArray[np.bool_]]:
    """Return the set of labels of each cell, the separator, and which cells are blank."""
    import pyarrow as pa

    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        cells = column.to_pylist()
        blank = np.array([cell is None for cell in cells], dtype=bool)
        return [{str(v) for v in cell or () if v is not None} for cell in cells], separator, blank
    texts = as_texts(column)
    blank = np.array([text is None for text in texts], dtype=bool)
    lists: list[set[str]] = []
    if separator is None:
        separator = find_separator([t for t in texts if t is not None and not _literal(t)])
    for _row, text in enumerate(texts):
        parts = [] if text is None else _literal(text)
        if parts is None:
            parts = text.split(separator)
        lists.append({tag for part in parts if (tag := str(part).strip())})
    return lists, separator, blank


def _literal(text: str) -> list[Any] | None:
    """Return the elements of a list in the notation of Python or JSON; None for other texts.

    Examples
    --------
    >>> _literal("['a', 'b']"), _literal('["a"]'), _literal("a;b")
    (['a', 'b'], ['a'], None)
    """
    text = text.strip()
    if not _BRACKETS.fullmatch(text):
        return None
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        inner = text[1:-1].strip()  # [a, b], without quotes
        return inner.split(",") if inner else []
    return list(found) if isinstance(found, (list, tuple, set, dict)) else [found]


def find_separator(texts: Sequence[str]) -> str:
    """Return the separator of label lists that most of the texts have.

    Examples
    --------
    >>> find_separator(["crime|drama", "comedy", "comedy|sci-fi, fantasy"])
    '|'
    """
    return max(_SEPARATORS, key=lambda mark: sum(mark in text for text in texts))


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
    _check_size(len(lists), len(names), source)
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


def _check_size(n: int, m: int, source: str) -> None:
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
    import pyarrow as pa

    lists, flags = [], []
    for name, column in columns.items():
        if pa.types.is_list(column.type) or _has_lists(column):
            lists.append(name)
        elif _are_flags({name: column}) and not _has_other_numbers(column):
            flags.append(name)
    found = [f"{listed(lists, 3)} (lists)"] if lists else []
    if flags:
        found.append(f"{listed(_patterns(flags, list(columns)), 3)} (0 or 1)")
    return f", such as {', '.join(found)}" if found else ""


def _has_other_numbers(column: Any) -> bool:
    import pyarrow as pa

    try:
        values = as_numbers(column, "", None)
    except pa.ArrowInvalid:
        return False
    return bool((~np.isnan(values) & (values != 0) & (values != 1)).any())


def _has_lists(column: Any) -> bool:
    """Return True if texts consist of repeated parts that one separator divides."""
    import pyarrow as pa

    if not pa.types.is_string(column.type):
        return False
    texts = [text for text in as_texts(column).tolist() if text is not None]
    separator = find_separator(texts)
    parts = [part.strip() for text in texts for part in _literal(text) or text.split(separator)]
    return len(parts) > 1.2 * len(texts) and len(set(parts)) <= len(parts) / 2


def _patterns(flags: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return names, or a pattern in the place of those that share the text before an _."""
    found: dict[str, None] = {}  # an ordered set
    for name in flags:
        pattern = f"{name.rpartition('_')[0]}_*"
        matched = {other for other in names if fnmatchcase(other, pattern)}
        is_shared = "_" in name and len(matched) > 1 and matched <= set(flags)
        found[pattern if is_shared else name] = None
    return list(found)
