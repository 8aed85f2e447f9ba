"""What a file says, before features are encoded: numbers, codes of texts, names and labels."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm.data._errors import bad, shown
from fgfm.data._text import MISSING, text_of

__all__ = [
    "MAX_LABELS",
    "TRUTH",
    "Options",
    "Table",
    "check_label_count",
    "check_names",
    "cut_labels",
    "dropped",
    "is_truth",
    "make_categorical",
    "make_csr",
    "positions",
    "select_labels",
    "split_tags",
    "tag_column",
    "tag_labels",
]

# Beyond these, a header is wrong or the labels do not fit: they are a dense matrix of bytes.
MAX_LABELS = 1 << 22
_MAX_BYTES = 1 << 32

# Words that mean 0 or 1, in lower case; the words of one column come from one pair.
TRUTH = {"0": 0, "1": 1, "no": 0, "yes": 1, "false": 0, "true": 1}
_PAIRS = ({"0", "1"}, {"no", "yes"}, {"false", "true"})

# Lists as Python or JSON write them: texts in quotes, or numbers, in brackets.
_BRACKETS = re.compile(
    r"""\[\s*\]|[\[({]\s*(?:['"].*['"]|[0-9]+(?:\s*,\s*[0-9]+)*)\s*,?\s*[\])}]""", re.DOTALL
)


@dataclass(frozen=True)
class Options:
    """How to read a file: the arguments of `fgfm.data.load`, checked."""

    labels: Any = None
    separator: str | None = None
    categorical: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    n_features: int | None = None
    zero_based: bool | None = None
    zero_based_labels: bool | None = None
    delimiter: str | None = None
    decimal: str | None = None  # a comma, where numbers have one
    encoding: str = "utf-8"
    encoder: Any = None  # a fitted FeatureEncoder: its schema is what the file must have
    with_labels: bool = True


@dataclass(frozen=True)
class Table:
    """Rows of numbers. A column with categories holds codes: where they are in its list.

    NaN stands for a missing value.
    """

    source: str
    matrix: Any  # (n, p) floats, dense or CSR
    names: tuple[str, ...] | None = None
    categories: dict[int, tuple[str, ...]] = field(default_factory=dict)
    lines: npt.NDArray[np.int64] | None = None  # (n,) where each row begins in a text file
    Y: npt.NDArray[np.uint8] | None = None
    label_names: tuple[str, ...] | None = None
    tag_column: str | None = None
    zero_based: bool | None = None
    zero_based_labels: bool | None = None
    train: npt.NDArray[np.int64] | None = None
    test: npt.NDArray[np.int64] | None = None

    def place(self, row: int, column: int | None = None) -> dict[str, Any]:
        """Give the place of a value as `bad` wants it."""
        found: dict[str, Any] = {"row": row}
        if self.lines is not None:
            found = {"line": int(self.lines[row])}
        if column is not None:
            found["column"] = column + 1 if self.names is None else self.names[column]
        return found

    def column(self, j: int) -> npt.NDArray[Any]:
        """Give one column as a dense array."""
        if not sparse.issparse(self.matrix):
            return np.asarray(self.matrix[:, j])
        by_column = self._by_column
        out = np.zeros(self.matrix.shape[0], dtype=self.matrix.dtype)
        span = slice(by_column.indptr[j], by_column.indptr[j + 1])
        out[by_column.indices[span]] = by_column.data[span]
        return out

    @cached_property
    def _by_column(self) -> Any:
        return sparse.csc_array(self.matrix)

    def keep(self, wanted: Sequence[int]) -> Table:
        """Give the table with some of its columns only."""
        if list(wanted) == list(range(self.matrix.shape[1])):
            return self
        new = {j: k for k, j in enumerate(wanted)}
        names = None if self.names is None else tuple(self.names[j] for j in wanted)
        categories = {new[j]: texts for j, texts in self.categories.items() if j in new}
        return replace(
            self, matrix=self.matrix[:, list(wanted)], names=names, categories=categories
        )


def check_names(names: Sequence[str], source: str, line: int | None = None) -> None:
    """Raise unless every column has a name of its own."""
    seen: set[str] = set()
    for k, name in enumerate(names, 1):
        if not name:
            raise bad(
                source, "this column has no name: every column needs one", line=line, column=k
            )
        if name in seen:
            first = list(names).index(name) + 1
            raise bad(
                source,
                f"the name {shown(name)} is that of column {first} too: every column needs a name "
                "of its own",
                line=line,
                column=k,
            )
        seen.add(name)


def check_label_count(m: int, n: int, source: str, line: int | None = None) -> None:
    """Raise if so many labels cannot be meant, before room is made for them."""
    if m > MAX_LABELS:
        raise bad(source, f"{m} labels are too many: at most {MAX_LABELS} are read", line=line)
    if n * m > _MAX_BYTES:
        raise bad(
            source,
            f"{n} rows of {m} labels are too many: labels are a dense matrix, of at most "
            f"{_MAX_BYTES >> 30} GiB",
            line=line,
        )


def positions(names: Sequence[str], wanted: Sequence[str], source: str, what: str) -> list[int]:
    """Give where some names are among the columns."""
    where = {name: j for j, name in enumerate(names)}
    for name in wanted:
        if name not in where:
            raise bad(source, f"there is no column {shown(name)}, which {what}")
    return [where[name] for name in wanted]


def dropped(names: Sequence[str], options: Options, source: str) -> set[int]:
    """Give which columns are left out: those asked for, and those that training left out.

    Labels are among them where they are not to be read.
    """
    known = set(getattr(options.encoder, "dropped_", ()))
    gone = positions(names, options.drop, source, "drop= asks for")
    if not options.with_labels:
        if options.labels is not None:
            gone += select_labels(names, replace(options, with_labels=True), source) or []
        labels = getattr(options.encoder, "label_names_", None)
        tags = getattr(options.encoder, "tag_column_", None)
        known |= {*(() if labels is None else labels), tags}
        known -= {*getattr(options.encoder, "feature_names_in_", ())}
    return {*gone, *(j for j, name in enumerate(names) if name in known)}


def select_labels(names: Sequence[str], options: Options, source: str) -> list[int] | None:
    """Give where the label columns are, in their order; None where nothing says that any is.

    ``options.labels`` is a list of names or patterns, one of them, or a count: the first n
    columns, or the last n where it is negative. The labels that an encoder remembers may be
    absent.
    """
    labels = options.labels
    if not options.with_labels:
        return None
    if labels is None:
        known = getattr(options.encoder, "label_names_", None)
        if known is None:
            return None
        present = set(names).intersection(known)
        if not present:
            return None
        return positions(names, list(known), source, "is one of the labels of the model")
    if isinstance(labels, (int, np.integer)):
        count = int(labels)
        if abs(count) >= len(names):
            raise bad(
                source,
                f"labels={count} leaves no features: there are {len(names)} columns in all",
            )
        return list(range(count) if count > 0 else range(len(names) + count, len(names)))
    where = {name: j for j, name in enumerate(names)}
    found: dict[int, None] = {}  # in order
    for wanted in [labels] if isinstance(labels, str) else labels:
        if wanted in where:
            if where[wanted] in found:
                raise bad(source, f"labels= names the column {shown(wanted)} twice")
            found[where[wanted]] = None
            continue
        matches = [j for j, name in enumerate(names) if fnmatchcase(name, wanted)]
        if not matches:
            raise _no_label(names, wanted, source)
        found.update(dict.fromkeys(matches))
    return list(found)


def _no_label(names: Sequence[str], wanted: str, source: str) -> Exception:
    return bad(
        source,
        f"no column is called {shown(wanted)}, which labels= asks for: the columns are "
        f"{_listed(names)}",
    )


def is_truth(texts: Sequence[str]) -> bool:
    """Say whether texts are no and yes, false and true, or 0 and 1."""
    words = {text.lower() for text in texts}
    return len(words) == len(texts) and any(words and words <= pair for pair in _PAIRS)


def make_csr(data: Any, indices: Any, indptr: Any, shape: tuple[int, int]) -> Any:
    """Make a CSR matrix with indices of 32 bits, as solvers want them, in order."""
    narrow = np.int32 if len(data) < 1 << 31 else np.int64
    pieces = (data, indices.astype(narrow, copy=False), indptr.astype(narrow, copy=False))
    matrix = sparse.csr_array(pieces, shape=shape)
    matrix.sort_indices()
    return matrix


def make_categorical(table: Table, names: Sequence[str]) -> Table:
    """Take the numbers of some columns for the names of categories."""
    if not names:
        return table
    if table.names is None:
        raise bad(table.source, "categorical= needs names of columns, and there are none")
    where = positions(table.names, names, table.source, "categorical= asks for")
    where = [j for j in where if j not in table.categories]
    matrix = table.matrix.tolil() if sparse.issparse(table.matrix) else table.matrix.copy()
    categories = dict(table.categories)
    for j in where:
        values = table.column(j)
        known = ~np.isnan(values)
        numbers, codes = np.unique(values[known], return_inverse=True)
        values = values.copy()
        values[known] = codes
        matrix[:, j] = values[:, None] if sparse.issparse(matrix) else values
        categories[j] = tuple(map(text_of, numbers))
    matrix = sparse.csr_array(matrix) if sparse.issparse(matrix) else matrix
    return replace(table, matrix=matrix, categories=categories)


def cut_labels(table: Table, where: Sequence[int]) -> Table:
    """Move label columns out of the features; each value must be 0 or 1."""
    if not where:
        raise bad(table.source, "labels= names no column: there must be at least one label")
    n, p = table.matrix.shape
    check_label_count(len(where), n, table.source)
    Y = np.zeros((n, len(where)), dtype=np.uint8)
    for k, j in enumerate(where):
        values = table.column(j)
        texts = table.categories.get(j)
        if texts is not None and len(texts) > 0:
            truth = [TRUTH.get(text.lower(), np.nan) for text in texts]
            meant = np.full(n, np.nan)
            known = ~np.isnan(values)
            meant[known] = np.take(truth, values[known].astype(np.intp))
        else:
            meant = values
        wrong = ~((meant == 0) | (meant == 1))
        if wrong.any():
            row = int(np.argmax(wrong))
            found = "missing"
            if not np.isnan(values[row]):
                found = shown(texts[int(values[row])]) if texts else f"{values[row]:g}"
            rule = "labels must be 0 or 1"
            if texts and len(where) == 1:
                rule += "; for lists of labels, separator= says what is between them"
            raise bad(table.source, f"the label is {found}: {rule}", **table.place(row, j))
        Y[:, k] = meant == 1
    taken = set(where)
    names = None if table.names is None else tuple(table.names[j] for j in where)
    rest = table.keep([j for j in range(p) if j not in taken])
    return replace(rest, Y=Y, label_names=names)


def tag_column(
    names: Sequence[str], options: Options, source: str, any_list: bool = False
) -> int | None:
    """Give which column has lists of labels, None if none does."""
    if not options.with_labels:
        return None
    remembered = getattr(options.encoder, "tag_column_", None)
    if options.labels is None and remembered is not None:
        return list(names).index(remembered) if remembered in names else None
    if options.separator is None and not any_list:
        return None
    if not isinstance(options.labels, str):
        raise ValueError(
            f"labels is {options.labels!r}: with a separator it must be the name of the column "
            "that has the lists of labels"
        )
    if options.labels not in names:
        raise _no_label(names, options.labels, source)
    return list(names).index(options.labels)


def split_tags(cell: str, options: Options, source: str, place: Mapping[str, Any]) -> list[str]:
    """Give the labels of a list such as ``a;b``; a missing value is a list of none."""
    if cell.strip().lower() in MISSING:
        return []
    if _BRACKETS.fullmatch(cell.strip()):
        raise bad(
            source,
            f"{shown(cell)} is a list in the notation of a program: labels are written with a "
            "separator between them, such as a;b, or kept as lists in Parquet",
            **place,
        )
    separator = options.separator or getattr(options.encoder, "separator_", None) or ";"
    return [tag for part in cell.split(separator) if (tag := part.strip())]


def tag_labels(
    lists: Sequence[Sequence[str]], table: Table, column: str, options: Options
) -> Table:
    """Give labels from the list of labels of each row, those of an encoder where there is one."""
    known = getattr(options.encoder, "label_names_", None)
    if known is None:
        names = sorted({tag for tags in lists for tag in tags})
        if not names:
            raise bad(
                table.source, "no row has a label: there must be at least one", column=column
            )
    else:
        names = list(known)
    check_label_count(len(names), len(lists), table.source)
    where = {name: k for k, name in enumerate(names)}
    Y = np.zeros((len(lists), len(names)), dtype=np.uint8)
    for row, tags in enumerate(lists):
        for tag in tags:
            if tag not in where:
                raise bad(
                    table.source,
                    f"{shown(tag)} is an unknown label: the model knows {_listed(names)}",
                    **{**table.place(row), "column": column},
                )
            Y[row, where[tag]] = 1
    return replace(table, Y=Y, label_names=tuple(names), tag_column=column)


def _listed(names: Sequence[str], most: int = 8) -> str:
    texts = ", ".join(map(repr, names[:most]))
    return texts if len(names) <= most else f"{texts} and {len(names) - most} more"
