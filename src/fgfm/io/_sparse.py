"""Sparse rows in text: multi-label svmlight, and the extreme classification repository.

A row is ``1,3 5:0.2 9:1``: its labels, then its features. scikit-learn parses both formats.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm._utils.text import one_line, quoted
from fgfm.io._cells import as_array
from fgfm.io._errors import DataError
from fgfm.io._files import TextFormat, open_bytes, source_name
from fgfm.io._labels import check_size

_HEADER = re.compile(rb"\s*([0-9]{1,9})[ \t]+([0-9]{1,9})[ \t]+([0-9]{1,9})\s*")


class SparseRows(NamedTuple):
    """Rows of a file that is a sparse matrix of features."""

    source: str
    X: Any  # CSR array of shape (n, p)
    names: list[str] | None = None  # of the columns
    declared: list[str] | None = None  # the columns that are labels
    tags: list[list[float]] | None = None  # the labels of each row, if they are not columns
    n_labels: int | None = None
    zero_based: tuple[bool, bool] | None = None  # whether features and tags count from 0

    def columns(self, names: Sequence[str]) -> dict[str, Any]:
        """Return some named columns, each as one array."""
        assert self.names is not None
        where = {name: j for j, name in enumerate(self.names)}
        return {name: as_array(self.X[:, [where[name]]].toarray()[:, 0]) for name in names}

    def indicator(self, names: Sequence[str] | None) -> tuple[Any, tuple[str, ...]]:
        """Return the labels (n, m) of the rows, and their names; None if no row has any."""
        tags = self.tags or []
        if names is None and self.n_labels is None and not any(tags):
            return None, ()
        first = 0 if self.zero_based is not None and self.zero_based[1] else 1
        columns = np.array([tag for row in tags for tag in row]) - first
        m = len(names) if names else self.n_labels or int(columns.max(initial=0)) + 1
        rows = np.repeat(np.arange(len(tags)), [len(row) for row in tags])
        wrong = (columns != np.floor(columns)) | (columns < 0) | (columns >= m)
        if wrong.any():
            k = int(np.argmax(wrong))
            raise DataError(
                f"{columns[k] + first:g} is an unknown label: labels must be numbered from "
                f"{first} to {m - 1 + first}",
                source=self.source,
                row=int(rows[k]),
            )
        check_size(len(tags), m, self.source)
        Y: npt.NDArray[np.uint8] = np.zeros((len(tags), m), dtype=np.uint8)
        Y[rows, columns.astype(np.int64)] = 1
        return Y, tuple(names or [str(k + first) for k in range(m)])


@contextmanager
def open_svmlight(path: Any, text: TextFormat, encoder: Any) -> Iterator[SparseRows]:
    """Read svmlight, numbered as the rows of training were, if there is an encoder."""
    source = source_name(path)
    with open_bytes(path) as file:
        lines = file.read().splitlines()
    X, tags = _parsed(lines, source)
    width, from_0 = None, None
    if encoder is not None and encoder.columns_ is None:
        width, from_0 = encoder.n_features_in_, encoder.zero_based_
    if from_0 is None:
        from_0 = (bool(X.indices.min(initial=1) == 0), any(0 in row for row in tags))
    if not from_0[0]:
        if 0 in X.indices:
            raise DataError("a feature has the number 0: training counts from 1", source=source)
        X = X[:, 1:]
    yield SparseRows(source, _of_width(X, width, source), tags=tags, zero_based=from_0)


@contextmanager
def open_xmc(path: Any, text: TextFormat, encoder: Any) -> Iterator[SparseRows]:
    """Read a header (rows, features, labels), then svmlight with numbers from 0."""
    source = source_name(path)
    with open_bytes(path) as file:
        head, *lines = file.read().splitlines() or [b""]
    match = _HEADER.fullmatch(head)
    if match is None:
        reason = f"{quoted(head.decode(errors='replace'))} is not a header: it must be the "
        raise DataError(f"{reason}numbers of rows, features and labels", source=source, line=1)
    n, p, m = map(int, match.groups())
    while len(lines) > n and not lines[-1].strip():
        lines.pop()
    if len(lines) != n:
        reason = f"there are {len(lines)} rows: the header declares {n}"
        raise DataError(reason, source=source)
    # scikit-learn leaves out empty rows, so that they get an entry, which is removed again.
    X, tags = _parsed([line if line.strip() else b"0:0" for line in lines], source)
    X.eliminate_zeros()
    X = _of_width(X, p, source)
    yield SparseRows(source, X, tags=tags, n_labels=m, zero_based=(True, True))


def _parsed(lines: Sequence[bytes], source: str) -> tuple[Any, list[list[float]]]:
    """Return the features (n, p), numbered from 0, and the labels of each row."""
    from scipy import sparse
    from sklearn.datasets import load_svmlight_file

    def parse(part: Sequence[bytes]) -> Any:
        if any(b"_" in line.partition(b"#")[0] for line in part):  # Python reads 1_0 as 10
            raise ValueError("_ is not part of a number")
        return load_svmlight_file(io.BytesIO(b"\n".join(part)), multilabel=True, zero_based=True)

    if not any(line.partition(b"#")[0].strip() for line in lines):
        raise DataError("there are no rows", source=source)
    try:
        X, tags = parse(lines)
    except (ValueError, OverflowError) as error:
        low, high = 0, len(lines)  # lines[:low] can be parsed, lines[:high] cannot
        while high - low > 1:
            middle = (low + high) // 2
            try:
                parse([*lines[:middle], b"0:0"])
                low = middle
            except (ValueError, OverflowError):
                high = middle
        line = quoted(lines[high - 1].decode(errors="replace"))
        raise DataError(
            f"{line}: a row must be labels separated by commas, then ascending features as "
            f"number:value, such as 1,3 5:0.2 9:1 ({one_line(error, 100)})",
            source=source,
            line=high,
        ) from None
    X = sparse.csr_array(X)
    finite = np.isfinite(X.data)
    if not finite.all():
        row = int(np.searchsorted(X.indptr, np.argmin(finite), "right")) - 1
        raise DataError("a feature is not finite: it must be", source=source, row=row)
    return X, [list(row) for row in tags]


def _of_width(X: Any, width: int | None, source: str) -> Any:
    """Return features (n, width), of which the last do not occur in the file."""
    if width is not None and X.shape[1] > width:
        raise DataError(
            f"there are {X.shape[1]} features: there must be at most {width}", source=source
        )
    X.resize((X.shape[0], X.shape[1] if width is None else width))
    return X
