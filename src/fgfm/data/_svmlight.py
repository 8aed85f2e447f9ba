"""Sparse rows in text: multi-label svmlight, and the extreme classification repository's format.

A row is ``1,3 5:0.2 9:1``: its labels, then its features. One regular expression decides whether a
line is well formed; only a line that is not is looked at token by token, to say where.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from fgfm.data._errors import DataError, bad, shown
from fgfm.data._table import Options, Table, check_label_count, make_csr
from fgfm.data._text import open_text, write_text, written

__all__ = ["XMC_HEADER", "read_svmlight", "read_xmc", "write_svmlight", "write_xmc"]

# written so that there is one way only to read a run of digits
_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_PAIR = rf"[0-9]{{1,10}}:{_NUMBER}"
_ROW = re.compile(
    rf"(?P<labels>[0-9]{{1,10}}(?:,[0-9]{{1,10}})*)?"
    rf"(?P<features>(?:(?:(?<![^ \t])|[ \t]+){_PAIR}(?=[ \t]|$))*)[ \t]*"
)
_LABELS = re.compile(r"[0-9]{1,10}(?:,[0-9]{1,10})*")
_FEATURE = re.compile(_PAIR)
XMC_HEADER = re.compile(r"[ \t]*([0-9]{1,18})[ \t]+([0-9]{1,18})[ \t]+([0-9]{1,18})[ \t]*")
_BLOCK = 1 << 18  # texts of numbers at a time
_MAX_FEATURES = (1 << 31) - 1


class _Rows:
    """The rows of a file, as it is read."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.lines = array("q")
        self.counts = array("q")  # features of each row
        self.label_counts = array("q")
        self.labels = array("q")
        self.texts: list[str] = []
        self.indices: list[Any] = []
        self.data: list[Any] = []

    def add(self, text: str, line: int) -> None:
        match = _ROW.fullmatch(text)
        if match is None:
            raise _explain(text, self.source, line)
        labels, features = match.groups()
        numbers = [] if labels is None else list(map(int, labels.split(",")))
        self.labels.extend(numbers)
        self.label_counts.append(len(numbers))
        before = len(self.texts)
        self.texts += features.replace(":", " ").split()
        self.counts.append((len(self.texts) - before) // 2)
        self.lines.append(line)
        if len(self.texts) > _BLOCK:
            self.convert()

    def convert(self) -> None:
        numbers = np.array(list(map(float, self.texts)))
        self.texts = []
        self.indices.append(numbers[0::2].astype(np.int64))
        self.data.append(numbers[1::2])

    def features(self, first: int | None, p: int | None, rule: str) -> tuple[Any, int]:
        """Give X, and the number of its first feature: `first`, or 0 if any is, else 1."""
        self.convert()
        indices, data = np.concatenate(self.indices), np.concatenate(self.data)
        self.indices, self.data = [], []
        indptr = np.concatenate([[0], np.cumsum(self.counts)])
        if first is None:
            first = 0 if len(indices) and indices.min() == 0 else 1
        last = int(indices.max()) - first + 1 if len(indices) else 0
        width = max(last, 1) if p is None else p
        wrong = (indices < first) | (indices - first >= width) | (indices > _MAX_FEATURES)
        if wrong.any():
            at = int(np.argmax(wrong))
            raise self.error(
                indptr,
                at,
                f"there is a feature {indices[at]}: {rule} from {first} to "
                f"{min(width - 1 + first, _MAX_FEATURES)}",
            )
        if not np.isfinite(data).all():
            at = int(np.argmin(np.isfinite(data)))
            raise self.error(indptr, at, f"feature {indices[at]} is not a finite number")
        X = make_csr(data, indices - first, indptr, (len(self.lines), width))
        same = np.flatnonzero(np.diff(X.indices) == 0)
        starts = set(indptr.tolist()) if len(same) else set()
        for at in same.tolist():
            if at + 1 not in starts:
                raise self.error(
                    indptr,
                    at,
                    f"feature {X.indices[at] + first} occurs twice: it must have one value",
                )
        X.eliminate_zeros()
        return X, first

    def error(self, indptr: Any, at: int, sentence: str) -> DataError:
        row = int(np.searchsorted(indptr, at, side="right")) - 1
        return bad(self.source, sentence, line=self.lines[row])

    def Y(self, first: int | None, m: int | None, rule: str) -> tuple[Any, int]:
        """Give the labels, and the number of the first: `first`, or 0 if any is, else 1."""
        labels = np.array(self.labels, dtype=np.int64)
        counts = np.array(self.label_counts, dtype=np.int64)
        rows = np.repeat(np.arange(len(counts)), counts)
        if first is None:
            first = 0 if len(labels) and labels.min() == 0 else 1
        width = m if m is not None else max(int(labels.max(initial=0)) - first + 1, 1)
        if m is None and len(labels):
            check_label_count(
                width, len(counts), self.source, self.lines[int(rows[np.argmax(labels)])]
            )
        check_label_count(width, len(counts), self.source)
        wrong = (labels < first) | (labels - first >= width)
        if wrong.any():
            at = int(np.argmax(wrong))
            raise bad(
                self.source,
                f"{labels[at]} is an unknown label: {rule} from {first} to {width - 1 + first}",
                line=self.lines[int(rows[at])],
            )
        Y = np.zeros((len(counts), width), dtype=np.uint8)
        Y[rows, labels - first] = 1
        return Y, first


def _explain(text: str, source: str, line: int) -> DataError:
    """Say which token of a line is wrong."""
    for k, match in enumerate(re.finditer(r"[^ \t]+", text)):
        token, column = match.group(), match.start() + 1
        if k == 0 and ":" not in token:
            if column > 1 and _LABELS.fullmatch(token):
                return bad(
                    source,
                    f"the labels {shown(token)} are not at the beginning of the line",
                    line=line,
                    column=column,
                )
            if not _LABELS.fullmatch(token):
                return bad(
                    source,
                    f"{shown(token)} is no list of labels: they are whole numbers with commas "
                    "between them, such as 1,3",
                    line=line,
                    column=column,
                )
        elif not _FEATURE.fullmatch(token):
            return bad(
                source,
                f"{shown(token)} is no feature: it must be number:value, such as 5:0.2",
                line=line,
                column=column,
            )
    return bad(source, "the line is not well formed", line=line)


def read_svmlight(path: Path, options: Options) -> Table:
    """Read multi-label svmlight; ``#`` begins a comment, and empty lines are no rows."""
    encoder, names = options.encoder, _given_names(options)
    rows = _Rows(str(path))
    with open_text(path, options.encoding) as text:
        for k, line in enumerate(text, 1):
            content = line.partition("#")[0].rstrip("\r\n")
            if content.strip(" \t"):
                rows.add(content, k)
    if not rows.lines:
        raise bad(path, "there are no rows")
    p = options.n_features if encoder is None else encoder.n_features_in_
    zero_based, zero_based_labels = options.zero_based, options.zero_based_labels
    if zero_based is None:
        zero_based = getattr(encoder, "zero_based_", None)
    if zero_based_labels is None:
        zero_based_labels = getattr(encoder, "zero_based_labels_", None)
    X, first = rows.features(_first(zero_based), p, "features must be numbered")
    table = Table(
        rows.source,
        X,
        _known_names(encoder, X.shape[1]),
        lines=np.array(rows.lines),
        zero_based=first == 0,
    )
    if not options.with_labels or (not len(rows.labels) and names is None):
        return table
    if names is None:
        names = getattr(encoder, "label_names_", None)
    count = names if names is None or isinstance(names, int) else len(names)
    Y, first = rows.Y(_first(zero_based_labels), count, "labels must be numbered")
    if names is None or isinstance(names, int):
        names = [str(k + first) for k in range(Y.shape[1])]
    return replace(table, Y=Y, label_names=tuple(names), zero_based_labels=first == 0)


def _first(zero_based: bool | None) -> int | None:
    return None if zero_based is None else 1 - int(zero_based)


def _known_names(encoder: Any, p: int) -> tuple[str, ...] | None:
    """Give the names of training to features that have only numbers."""
    names = getattr(encoder, "feature_names_in_", None)
    return None if names is None or len(names) != p else tuple(names)


def _given_names(options: Options) -> Any:
    """Give the names of the labels, or how many there are."""
    labels = options.labels
    if labels is None:
        return None
    if isinstance(labels, (int, np.integer)):
        return abs(int(labels))
    if isinstance(labels, str):
        raise ValueError(
            f"labels is {labels!r}: this format has no names, so it must be the number of labels "
            "or the list of their names"
        )
    return [str(name) for name in labels]


def read_xmc(path: Path, options: Options) -> Table:
    """Read the format of the extreme classification repository: a header, then rows from 0."""
    encoder, names = options.encoder, _given_names(options)
    rows = _Rows(str(path))
    with open_text(path, options.encoding) as text:
        header = next(text, "").rstrip("\r\n")
        match = XMC_HEADER.fullmatch(header)
        if match is None:
            raise bad(
                path,
                f"{shown(header)} is no header: it must be three numbers, of rows, features and "
                "labels",
                line=1,
            )
        n, p, m = map(int, match.groups())
        if n == 0 or p == 0:
            raise bad(path, f"there are {n} rows of {p} features: there must be one", line=1)
        if p > _MAX_FEATURES:
            raise bad(path, f"{p} features are too many: at most {_MAX_FEATURES}", line=1)
        check_label_count(m, n, rows.source, line=1)
        for k, line in enumerate(text, 2):
            content = line.rstrip("\r\n")
            if len(rows.lines) < n:
                rows.add(content, k)
            elif content.strip(" \t"):
                raise bad(path, f"there are more rows than the {n} of the header", line=k)
    if len(rows.lines) < n:
        raise bad(
            path,
            f"the file ends after {len(rows.lines)} of the {n} rows of its header",
            line=len(rows.lines) + 2,
        )
    X, _ = rows.features(0, p, "with this header they are numbered")
    table = Table(
        rows.source, X, _known_names(encoder, p), lines=np.array(rows.lines), zero_based=True
    )
    if not options.with_labels:
        return table
    if names is None:
        names = getattr(encoder, "label_names_", None)
    if m == 0:
        if len(rows.labels):
            rows.Y(0, 0, "the header says that there are none, so none is numbered")
        return table
    Y, _ = rows.Y(0, m, "with this header they are numbered")
    if names is None:
        names = [str(k) for k in range(m)]
    count = names if isinstance(names, int) else len(names)
    if count != m:
        raise bad(path, f"the header says {m} labels: there must be {count}", line=1)
    if isinstance(names, int):
        names = [str(k) for k in range(m)]
    return replace(table, Y=Y, label_names=tuple(names), zero_based_labels=True)


def _write_rows(text: Any, X: Any, Y: Any, first: int) -> None:
    csr = sparse.csr_array(X)
    csr.sort_indices()
    indptr = csr.indptr.tolist()
    size = max(1, _BLOCK * csr.shape[0] // max(1, csr.nnz))
    for begin in range(0, csr.shape[0], size):
        end = min(begin + size, csr.shape[0])
        offset = indptr[begin]
        values = written(csr.data[offset : indptr[end]])
        columns = (csr.indices[offset : indptr[end]] + first).tolist()
        pairs = [f"{column}:{value}" for column, value in zip(columns, values, strict=True)]
        for row in range(begin, end):
            labels = "" if Y is None else ",".join(map(str, (np.flatnonzero(Y[row]) + first)))
            features = pairs[indptr[row] - offset : indptr[row + 1] - offset]
            if not features and not labels:
                features = [f"{first}:0"]  # an empty line would be no row
            text.write(" ".join([labels, *features]) + "\n")


def write_svmlight(path: Any, X: Any, Y: Any) -> None:
    """Write multi-label svmlight, counting features and labels from 1."""
    with write_text(path) as text:
        _write_rows(text, X, Y, 1)


def write_xmc(path: Any, X: Any, Y: Any) -> None:
    """Write the extreme classification repository's format, counting from 0."""
    with write_text(path) as text:
        text.write(f"{X.shape[0]} {X.shape[1]} {0 if Y is None else Y.shape[1]}\n")
        _write_rows(text, X, Y, 0)
