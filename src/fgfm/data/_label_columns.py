"""Labels among the columns of a table: 0/1 columns, or one column of label lists."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from fgfm._utils.text import listed, near_match, quoted
from fgfm.data._errors import DataError
from fgfm.data._numbers import MISSING
from fgfm.data._options import ReadOptions
from fgfm.data._table import Table, column_positions, decoded, extra_columns

__all__ = [
    "BINARY_WORDS",
    "ColumnRoles",
    "add_tag_labels",
    "are_binary_words",
    "check_label_count",
    "column_roles",
    "dropped_columns",
    "find_separator",
    "label_order",
    "missing_labels",
    "select_labels",
    "split_labels",
    "split_tags",
]

# Larger counts are refused before memory is allocated: labels are a dense matrix of bytes.
_MAX_LABELS = 1 << 22
_MAX_BYTES = 1 << 32

# Words for 0 and 1, in lower case; the words of one column belong to one pair.
BINARY_WORDS = {"0": 0, "1": 1, "no": 0, "yes": 1, "false": 0, "true": 1}
_PAIRS = ({"0", "1"}, {"no", "yes"}, {"false", "true"})

_SEPARATORS = (";", "|", ",")  # of label lists, by preference
_MANY = 20  # rows from which labels must be repeated
# Lists as written by Python or JSON: quoted texts, or numbers, in brackets.
_BRACKETS = re.compile(
    r"""\[\s*\]|[\[({]\s*(?:['"].*['"]|[0-9]+(?:\s*,\s*[0-9]+)*)\s*,?\s*[\])}]""", re.DOTALL
)


def are_binary_words(texts: Sequence[str]) -> bool:
    """Return True if texts are no and yes, false and true, or 0 and 1."""
    words = {text.lower() for text in texts}
    return len(words) == len(texts) and any(words and words <= pair for pair in _PAIRS)


def check_label_count(m: int, n: int, source: str, line: int | None = None) -> None:
    """Raise if there are too many labels for a dense matrix."""
    if m > _MAX_LABELS:
        reason = f"{m} labels are too many: at most {_MAX_LABELS} are read"
        raise DataError(reason, source=source, line=line)
    if n * m > _MAX_BYTES:
        raise DataError(
            f"{n} rows of {m} labels are too many: labels are a dense matrix of at most "
            f"{_MAX_BYTES >> 30} GiB",
            source=source,
            line=line,
        )


class ColumnRoles(NamedTuple):
    """What the columns of a table are, by position; the others are features."""

    dropped: set[int]  # to leave out
    tags: int | None  # the column of label lists
    labels: list[int] | None  # the columns of 0 and 1; None if none are declared
    texts: set[int]  # features whose numbers are read as texts


def column_roles(
    names: Sequence[str], options: ReadOptions, source: str, has_lists: bool = False
) -> ColumnRoles:
    """Return what each column is; `has_lists` if that of `labels` holds lists, not texts."""
    dropped = dropped_columns(names, options, source)
    tags = _find_tag_column(names, options, source, has_lists)
    labels = None if tags is not None else select_labels(names, options, source)
    if labels is not None:
        labels = [j for j in labels if j not in dropped]
    texts = set(column_positions(names, options.categorical, source, arguments=["categorical"]))
    in_training = options.text_columns
    texts |= {j for j, name in enumerate(names) if name in in_training}
    return ColumnRoles(dropped, tags, labels, texts - dropped - {tags})


def dropped_columns(
    names: Sequence[str], options: ReadOptions, source: str, *, extra: bool = True
) -> set[int]:
    """Return the positions of the columns to leave out.

    They are those of `drop` and `ids`, those left out in training, those that training did not
    have (if `extra` is True, with a warning), and the labels if labels are not to be read. Columns
    of training that are absent raise an error, which names all of them.
    """
    column_positions(names, options.ids, source, arguments=["ids"])
    dropped = column_positions(names, options.drop, source, arguments=["drop"])
    optional: set[str | None] = {*options.dropped_in_training, *options.dropped_ids}
    if not options.with_labels:
        if options.labels is not None:
            dropped += select_labels(names, replace(options, with_labels=True), source) or []
        labels = {*(options.schema.label_names or ()), options.schema.tag_column}
        optional |= labels - set(options.training_features)
    found = {*dropped, *(j for j, name in enumerate(names) if name in optional)}
    left_out = set(options.dropped_in_training)
    wanted = [name for name in options.training_features if name not in left_out]
    if not extra or not wanted:
        return found
    known = {*options.schema.no_features, *(names[j] for j in found)} - set(wanted)
    if options.labels is not None and options.with_labels:
        known |= {names[j] for j in select_labels(names, options, source) or ()}
    more = extra_columns(names, wanted, known, source)
    return found | set(column_positions(names, more, source))


def select_labels(names: Sequence[str], options: ReadOptions, source: str) -> list[int] | None:
    """Return the positions of the label columns in their order; None if none are declared.

    ``options.labels`` is a list of names or patterns, one of them, or a count: the first n
    columns, or the last n if it is negative. All labels of training may be absent.
    """
    labels = options.labels
    if not options.with_labels:
        return None
    if labels is None:
        training = options.schema.label_names
        if training is None or not set(names).intersection(training):
            return None
        return column_positions(
            names, training, source, required_by="is one of the labels of the model"
        )
    if isinstance(labels, int):
        if abs(labels) >= len(names):
            raise DataError(
                f"{abs(labels)} labels leave no features: there are {len(names)} columns in all",
                source=source,
                arguments=["labels"],
            )
        return list(range(labels) if labels > 0 else range(len(names) + labels, len(names)))
    where = {name: j for j, name in enumerate(names)}
    found: dict[int, None] = {}  # an ordered set
    for wanted in [labels] if isinstance(labels, str) else labels:
        if wanted in where:
            if where[wanted] in found:
                raise DataError(
                    f"the column {quoted(wanted)} is named twice",
                    source=source,
                    arguments=["labels"],
                )
            found[where[wanted]] = None
            continue
        matches = [j for j, name in enumerate(names) if fnmatchcase(name, wanted)]
        if not matches:
            raise _unknown_column(names, wanted, source)
        found.update(dict.fromkeys(matches))
    return list(found)


def _unknown_column(names: Sequence[str], wanted: str, source: str) -> DataError:
    reason = f"no column is called {quoted(wanted)}: {near_match(wanted, names)}"
    return DataError(reason, source=source, arguments=["labels"])


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
        noun = "is no label" if len(absent) == 1 else "are no labels"
        raise DataError(f"there {noun} {listed(absent)}, unlike in {whose}", source=source)
    return [where[name] for name in wanted]


def missing_labels(table: Table) -> DataError:
    """Return the error for a file without labels; it names columns that may be labels."""
    lists, flags = [], []
    for j, name in enumerate(table.names or ()):
        texts = table.categories.get(j)
        values = table.column(j)
        if texts is not None and _are_lists(texts):
            lists.append(name)
        elif are_binary_words(texts) if texts else ((values == 0) | (values == 1)).all():
            flags.append(name)
    found = []
    if lists:
        found.append(f"{listed(lists, 3)} (lists)")
    if flags:
        found.append(f"{listed(_patterns(flags, table.names or ()), 3)} (0 or 1)")
    such = f", such as {', '.join(found)}" if found else ""
    return table.error(
        f"the file does not declare which columns are labels: name them{such}",
        arguments=["labels"],
    )


def _are_lists(texts: Sequence[str]) -> bool:
    """Return True if texts consist of repeated parts that one separator divides."""
    separator = find_separator(texts)
    parts = [part.strip() for text in texts for part in text.split(separator)]
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


def split_labels(table: Table, where: Sequence[int]) -> Table:
    """Move label columns from the features to Y; each value must be 0 or 1."""
    if not where:
        raise DataError(
            "no label column is left: there must be at least one label",
            source=table.source,
            arguments=["labels"],
        )
    texts = table.categories.get(where[0])
    if len(where) == 1 and texts and not are_binary_words(texts):
        return _split_lists(table, where[0])
    n, p = table.matrix.shape
    check_label_count(len(where), n, table.source)
    Y = np.zeros((n, len(where)), dtype=np.uint8)  # (n, m)
    for k, j in enumerate(where):
        values = table.column(j)  # (n,)
        texts = table.categories.get(j)
        numbers = values
        if texts:
            numbers = decoded(values, [BINARY_WORDS.get(text.lower(), np.nan) for text in texts])
        wrong = ~((numbers == 0) | (numbers == 1))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise _not_a_label(table, row, j)
        Y[:, k] = numbers == 1
    names = None if table.names is None else tuple(table.names[j] for j in where)
    features = table.select(sorted(set(range(p)) - set(where)))
    return replace(features, Y=Y, label_names=names)


def _split_lists(table: Table, j: int) -> Table:
    """Move a column of label lists, or of one label per row, from the features to Y."""
    assert table.names is not None
    codes, texts = table.column(j), table.categories[j]
    separator = find_separator(texts)
    options = ReadOptions(separator=separator)
    lists = []
    for row, code in enumerate(codes.tolist()):
        error = partial(table.error, row=row, column=j)
        lists.append([] if code != code else split_tags(texts[int(code)], options, error))
    different = {tag for tags in lists for tag in tags}
    if len(lists) >= _MANY and len(different) > len(lists) / 2:
        raise table.error(
            f"there are {len(different)} different labels in {len(lists)} rows, such as "
            f"{quoted(min(different))}: this is not a column of labels, or they have another "
            "separator",
            column=j,
            arguments=["labels", "separator"],
        )
    name = table.names[j]
    table = add_tag_labels(lists, table, name, options)
    return replace(table, separator=separator).without({name})


def find_separator(texts: Sequence[str]) -> str:
    """Return the separator of label lists that most of the texts have.

    Examples
    --------
    >>> find_separator(["crime|drama", "comedy", "comedy|sci-fi, fantasy"])
    '|'
    """
    return max(_SEPARATORS, key=lambda mark: sum(mark in text for text in texts))


def _not_a_label(table: Table, row: int, j: int) -> DataError:
    value, texts = table.column(j)[row], table.categories.get(j)
    if np.isnan(value):
        found = "missing"
    elif texts:
        found = quoted(texts[int(value)])
    else:
        found = f"{value:g}"
    return table.error(f"the label is {found}: labels must be 0 or 1", row, j)


def _find_tag_column(
    names: Sequence[str], options: ReadOptions, source: str, has_lists: bool
) -> int | None:
    """Return the position of the column of label lists, None if there is none."""
    if not options.with_labels:
        return None
    training = options.schema.tag_column
    if training is not None and options.labels in (None, training):
        return list(names).index(training) if training in names else None
    if options.separator is None and not has_lists:
        return None
    if not isinstance(options.labels, str):
        raise ValueError(
            f"labels is {options.labels!r}: with a separator it must be the name of the column "
            "of label lists"
        )
    if options.labels not in names:
        raise _unknown_column(names, options.labels, source)
    return list(names).index(options.labels)


def split_tags(
    cell: str, options: ReadOptions, make_error: Callable[[str], DataError]
) -> list[str]:
    """Return the labels of a list such as ``a;b``; a missing value is an empty list.

    `make_error` adds the place of the cell to the reason of an error.
    """
    if cell.strip().lower() in MISSING:
        return []
    if _BRACKETS.fullmatch(cell.strip()):
        raise make_error(
            f"{quoted(cell)} is a list in the notation of a programming language: labels must be "
            "joined by a separator, such as a;b, or be lists in Parquet"
        )
    separator = options.separator or options.schema.separator or ";"
    return [tag for part in cell.split(separator) if (tag := part.strip())]


def add_tag_labels(
    lists: Sequence[Sequence[str]], table: Table, column: str, options: ReadOptions
) -> Table:
    """Return the table with Y built from the label list of each row.

    The labels are those of training if there is an encoder, else all that occur.
    """
    if options.schema.label_names is None:
        names = sorted({tag for tags in lists for tag in tags})
        if not names:
            raise DataError(
                "no row has a label: there must be at least one",
                source=table.source,
                column=column,
            )
    else:
        names = list(options.schema.label_names)
    check_label_count(len(names), len(lists), table.source)
    where = {name: k for k, name in enumerate(names)}
    Y = np.zeros((len(lists), len(names)), dtype=np.uint8)  # (n, m)
    for row, tags in enumerate(lists):
        for tag in tags:
            if tag not in where:
                raise table.error(
                    f"{quoted(tag)} is an unknown label: {near_match(tag, names)}",
                    row,
                    list(table.names or ()).index(column),
                )
            Y[row, where[tag]] = 1
    return replace(table, Y=Y, label_names=tuple(names), tag_column=column)
