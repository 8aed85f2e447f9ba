"""The content of a file before its features are encoded."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._utils.text import ignored_columns, missing_columns, quoted
from fgfm.data._errors import DataError
from fgfm.data._numbers import category_name
from fgfm.data._schema import Schema

__all__ = [
    "Table",
    "check_names",
    "column_positions",
    "decoded",
    "extra_columns",
    "make_categorical",
    "make_csr",
    "numbered_names",
    "texts_and_codes",
]


@dataclass(frozen=True)
class Table:
    """Named columns of numbers and of categories, with the labels if there are any.

    A column of categories holds codes, the positions of the texts in its tuple of categories.
    NaN is a missing value.
    """

    source: str
    matrix: Any  # (n, p) floats, dense or CSR
    names: tuple[str, ...] | None = None
    categories: dict[int, tuple[str, ...]] = field(default_factory=dict)  # of columns with texts
    lines: npt.NDArray[np.int64] | None = None  # (n,) first line of each row in a text file
    Y: npt.NDArray[np.uint8] | None = None  # (n, m)
    label_names: tuple[str, ...] | None = None
    tag_column: str | None = None  # the column of label lists
    separator: str | None = None  # between the labels of a list
    dropped: tuple[str, ...] = ()  # columns left out on request
    zero_based: bool | None = None  # of svmlight features
    zero_based_labels: bool | None = None
    train: npt.NDArray[np.int64] | None = None  # rows of the split, if the file has one
    test: npt.NDArray[np.int64] | None = None
    ids: Any = None  # pyarrow.Table of the columns to keep as they are
    is_typed: bool = False  # the format declares which columns are numbers

    def error(
        self,
        reason: str,
        row: int | None = None,
        column: int | None = None,
        arguments: Sequence[str] = (),
    ) -> DataError:
        """Return the error for a row or a column or both."""
        name = None
        if column is not None:
            name = column + 1 if self.names is None else self.names[column]
        line = None if row is None or self.lines is None else int(self.lines[row])
        return DataError(
            reason, source=self.source, line=line, row=row, column=name, arguments=arguments
        )

    @property
    def schema(self) -> Schema:
        """Labels, omitted columns and numbering of the file."""
        return Schema(
            self.label_names,
            self.tag_column,
            self.separator,
            self.dropped,
            self.zero_based,
            self.zero_based_labels,
        )

    def column(self, j: int) -> npt.NDArray[Any]:
        """Return one column as a dense array."""
        if not sparse.issparse(self.matrix):
            return np.asarray(self.matrix[:, j])
        csc = self._csc
        out = np.zeros(self.matrix.shape[0], dtype=self.matrix.dtype)
        span = slice(csc.indptr[j], csc.indptr[j + 1])
        out[csc.indices[span]] = csc.data[span]
        return out

    @cached_property
    def _csc(self) -> Any:
        return sparse.csc_array(self.matrix)

    def select(self, columns: Sequence[int]) -> Table:
        """Return the table with some of its columns, in the given order."""
        if list(columns) == list(range(self.matrix.shape[1])):
            return self
        new = {j: k for k, j in enumerate(columns)}
        names = None if self.names is None else tuple(self.names[j] for j in columns)
        categories = {new[j]: texts for j, texts in self.categories.items() if j in new}
        return replace(
            self, matrix=self.matrix[:, list(columns)], names=names, categories=categories
        )

    def with_columns(
        self,
        columns: Mapping[int, npt.NDArray[Any]],
        categories: dict[int, tuple[str, ...]],
    ) -> Table:
        """Return the table with the values of some columns replaced, and other categories."""
        if sparse.issparse(self.matrix):
            lil = self.matrix.tolil()
            for j, values in columns.items():
                lil[:, j] = values[:, None]
            return replace(self, matrix=sparse.csr_array(lil), categories=categories)
        matrix = self.matrix.copy()
        for j, values in columns.items():
            matrix[:, j] = values
        return replace(self, matrix=matrix, categories=categories)

    def arranged(self, names: Sequence[str]) -> Table:
        """Return the table with columns of some names; those that it lacks are zero."""
        assert self.names is not None
        where = {name: j for j, name in enumerate(self.names)}
        order = [k for k, name in enumerate(names) if name in where]
        found = self.select([where[names[k]] for k in order])
        if len(order) == len(names):
            return found
        shape = (self.matrix.shape[0], len(names))
        if sparse.issparse(self.matrix):
            coo = found.matrix.tocoo()
            at = (coo.row, np.array(order)[coo.col])
            matrix = sparse.csr_array((coo.data, at), shape=shape)
        else:
            matrix = np.zeros(shape, self.matrix.dtype)
            matrix[:, order] = found.matrix
        categories = {order[k]: texts for k, texts in found.categories.items()}
        return replace(found, matrix=matrix, names=tuple(names), categories=categories)

    def without(self, names: set[str]) -> Table:
        """Return the table without the columns of some names."""
        assert self.names is not None
        return self.select([j for j, name in enumerate(self.names) if name not in names])


def check_names(
    names: Sequence[str], source: str, line: int | None = None, unnamed: str | None = None
) -> None:
    """Raise unless the names of the columns, in a line of a file, are non-empty and distinct.

    `unnamed` is the argument that accepts the number of a column without a name.
    """
    seen: dict[str, int] = {}
    for k, name in enumerate(names, 1):
        if not name:
            remedy = (
                "; write the table without its index (index=False) and without a separator at "
                f"the end of lines, or use the number of the column, {k}"
            )
            raise DataError(
                "this column has no name: every column needs one" + (remedy if unnamed else ""),
                source=source,
                line=line,
                column=k,
                arguments=[unnamed] if unnamed else [],
            )
        if name in seen:
            raise DataError(
                f"the name {quoted(name)} is that of column {seen[name]} too: names must be "
                "unique",
                source=source,
                line=line,
                column=k,
            )
        seen[name] = k


def numbered_names(names: Sequence[str], wanted: Collection[str]) -> list[str]:
    """Return the names of columns, with the number of a column without one if it is wanted.

    Examples
    --------
    >>> numbered_names(["", "x", ""], ["1", "x"])
    ['1', 'x', '']
    """
    taken = set(names)
    return [
        str(k) if not name and str(k) in wanted and str(k) not in taken else name
        for k, name in enumerate(names, 1)
    ]


def column_positions(
    names: Sequence[str],
    wanted: Sequence[str],
    source: str,
    *,
    required_by: str = "",
    arguments: Sequence[str] = (),
) -> list[int]:
    """Return the positions of some columns, or raise if there is no such column."""
    where = {name: j for j, name in enumerate(names)}
    absent = [name for name in wanted if name not in where]
    if absent:
        clause = f", which {required_by}" if required_by else ""
        reason = missing_columns(absent, names)
        raise DataError(f"{reason}{clause}", source=source, arguments=arguments)
    return [where[name] for name in wanted]


def extra_columns(
    names: Sequence[str], training: Sequence[str], optional: Collection[str], source: str
) -> list[str]:
    """Return the columns that training did not have, with a warning; raise if it had others.

    Those of `optional` may be absent or present.
    """
    known, found = {*training, *optional}, {*names, *optional}
    extra = [name for name in names if name not in known]
    absent = [name for name in training if name not in found]
    if absent:
        raise DataError(f"{missing_columns(absent, extra)}, which training had", source=source)
    if extra:
        warnings.warn(f"{source}: {ignored_columns(extra)}", UserWarning, stacklevel=3)
    return extra


def make_csr(
    data: Any, indices: Any, indptr: Any, p: int, repeated: Callable[[int, int], DataError]
) -> Any:
    """Return a CSR array with sorted indices, of 32 bits where they fit, and without stored zeros.

    If an entry is given twice, the error `repeated` of its row and column is raised.
    """
    narrow = np.int32 if len(data) < 1 << 31 else np.int64
    pieces = (data, indices.astype(narrow, copy=False), indptr.astype(narrow, copy=False))
    matrix = sparse.csr_array(pieces, shape=(len(indptr) - 1, p))
    matrix.sort_indices()
    same = np.flatnonzero(np.diff(matrix.indices) == 0)  # as the next entry, perhaps of a new row
    rows = np.searchsorted(indptr, same, side="right")
    twice = np.flatnonzero(rows == np.searchsorted(indptr, same + 1, side="right"))
    if len(twice):
        at = twice[0]
        raise repeated(int(rows[at]) - 1, int(matrix.indices[same[at]]))
    matrix.eliminate_zeros()
    return matrix


def make_categorical(table: Table, names: Sequence[str]) -> Table:
    """Return the table with some columns of numbers turned into categories."""
    if not names:
        return table
    if table.names is None:
        raise DataError(
            "the columns have no names: none can be categorical",
            source=table.source,
            arguments=["categorical"],
        )
    where = column_positions(table.names, names, table.source, arguments=["categorical"])
    columns, categories = {}, dict(table.categories)
    for j in where:
        if j in categories:
            continue
        categories[j], columns[j] = texts_and_codes(table, j)
    return table.with_columns(columns, categories)


def texts_and_codes(table: Table, j: int) -> tuple[tuple[str, ...], npt.NDArray[Any]]:
    """Return the different texts of a column, and the position of each row's; NaN if missing."""
    codes = table.column(j)
    if j in table.categories:
        return table.categories[j], codes
    present = ~np.isnan(codes)
    numbers, at = np.unique(codes[present], return_inverse=True)
    out = np.full(len(codes), np.nan)
    out[present] = at
    return tuple(map(category_name, numbers)), out


def decoded(codes: npt.NDArray[Any], values: Sequence[Any]) -> npt.NDArray[np.float64]:
    """Return the value of each code, NaN where there is none."""
    out = np.full(len(codes), np.nan)
    present = ~np.isnan(codes)
    out[present] = np.array(values, dtype=np.float64)[codes[present].astype(np.intp)]
    return out
