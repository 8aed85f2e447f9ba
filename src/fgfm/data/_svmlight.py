"""Sparse rows in text: multi-label svmlight, and xmc of the extreme classification repository.

A row is ``1,3 5:0.2 9:1``: its labels, then its features. One regular expression validates a line;
only a malformed line is examined token by token, to report the place.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._utils.text import quoted
from fgfm.data._errors import DataError
from fgfm.data._formats import XMC_HEADER
from fgfm.data._label_columns import check_label_count
from fgfm.data._numbers import format_numbers
from fgfm.data._options import ReadOptions
from fgfm.data._table import Table, make_csr
from fgfm.data._text_files import open_text, write_text

__all__ = ["read_svmlight", "read_xmc", "write_svmlight", "write_xmc"]

# Each run of digits has a single match, so that matching takes linear time.
_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_PAIR = rf"[0-9]{{1,10}}:{_NUMBER}"
_ROW = re.compile(
    rf"(?P<labels>[0-9]{{1,10}}(?:,[0-9]{{1,10}})*)?"
    rf"(?P<features>(?:(?:(?<![^ \t])|[ \t]+){_PAIR}(?=[ \t]|$))*)[ \t]*"
)
_LABELS = re.compile(r"[0-9]{1,10}(?:,[0-9]{1,10})*")
_FEATURE = re.compile(_PAIR)
_BLOCK = 1 << 18  # numbers held as texts at a time
_MAX_FEATURES = (1 << 31) - 1


class _Rows:
    """The rows of a file while it is read."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.lines = array("q")
        self.counts = array("q")  # features of each row
        self.label_counts = array("q")
        self.labels = array("q")
        self.texts: list[str] = []  # index, value, index, value, ...
        self.indices: list[Any] = []
        self.data: list[Any] = []

    def add(self, text: str, line: int) -> None:
        match = _ROW.fullmatch(text)
        if match is None:
            raise _malformed_line(text, self.source, line)
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
        """Return X and the number of its first feature.

        That is `first` if given, else 0 if a feature 0 occurs, else 1.
        """
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
            largest = min(width - 1 + first, _MAX_FEATURES)
            reason = f"there is a feature {indices[at]}: {rule} from {first} to {largest}"
            raise self.error(_row(indptr, at), reason)
        if not np.isfinite(data).all():
            at = int(np.argmin(np.isfinite(data)))
            raise self.error(_row(indptr, at), f"feature {indices[at]} is not a finite number")

        def repeated(row: int, column: int) -> DataError:
            return self.error(
                row, f"feature {column + first} occurs twice: it must have one value"
            )

        return make_csr(data, indices - first, indptr, width, repeated), first

    def error(self, row: int, reason: str) -> DataError:
        return DataError(reason, source=self.source, line=self.lines[row])

    def label_matrix(
        self, first: int | None, m: int | None, rule: str
    ) -> tuple[npt.NDArray[np.uint8], int]:
        """Return Y and the number of its first label, as `features` does for X."""
        labels = np.array(self.labels, dtype=np.int64)
        counts = np.array(self.label_counts, dtype=np.int64)
        rows = np.repeat(np.arange(len(counts)), counts)
        if first is None:
            first = 0 if len(labels) and labels.min() == 0 else 1
        width = m if m is not None else max(int(labels.max(initial=0)) - first + 1, 1)
        if m is None and len(labels):
            line = self.lines[int(rows[np.argmax(labels)])]
            check_label_count(width, len(counts), self.source, line)
        check_label_count(width, len(counts), self.source)
        wrong = (labels < first) | (labels - first >= width)
        if wrong.any():
            at = int(np.argmax(wrong))
            reason = (
                f"{labels[at]} is an unknown label: {rule} from {first} to {width - 1 + first}"
            )
            raise self.error(int(rows[at]), reason)
        Y = np.zeros((len(counts), width), dtype=np.uint8)  # (n, m)
        Y[rows, labels - first] = 1
        return Y, first


def _row(indptr: Any, at: int) -> int:
    """Return the row of a stored entry."""
    return int(np.searchsorted(indptr, at, side="right")) - 1


def _malformed_line(text: str, source: str, line: int) -> DataError:
    """Return the error for the first malformed token of a line."""
    for k, match in enumerate(re.finditer(r"[^ \t]+", text)):
        token, column = match.group(), match.start() + 1
        reason = None
        if k == 0 and ":" not in token:
            if column > 1 and _LABELS.fullmatch(token):
                reason = f"the labels {quoted(token)} are not at the beginning of the line"
            elif not _LABELS.fullmatch(token):
                reason = (
                    f"{quoted(token)} is not a list of labels: labels are integers separated by "
                    "commas, such as 1,3"
                )
        elif not _FEATURE.fullmatch(token):
            reason = f"{quoted(token)} is not a feature: it must be number:value, such as 5:0.2"
        if reason is not None:
            return DataError(reason, source=source, line=line, column=column)
    return DataError("the line is malformed", source=source, line=line)


def read_svmlight(path: Path, options: ReadOptions) -> Table:
    """Read multi-label svmlight; ``#`` begins a comment, and empty lines are skipped."""
    encoder, labels = options.encoder, _given_labels(options)
    rows = _Rows(str(path))
    with open_text(path, options.encoding) as text:
        for k, line in enumerate(text, 1):
            content = line.partition("#")[0].rstrip("\r\n")
            if content.strip(" \t"):
                rows.add(content, k)
    if not rows.lines:
        raise DataError("there are no rows", source=path)
    p = options.n_features
    zero_based, zero_based_labels = options.zero_based, options.zero_based_labels
    if encoder is not None:
        p = encoder.n_features_in_
        zero_based = encoder.schema_.zero_based if zero_based is None else zero_based
        if zero_based_labels is None:
            zero_based_labels = encoder.schema_.zero_based_labels
    X, first = rows.features(_first(zero_based), p, "features must be numbered")
    table = Table(
        rows.source,
        X,
        _feature_names(options, X.shape[1]),
        lines=np.array(rows.lines),
        zero_based=first == 0,
    )
    if not options.with_labels or (not len(rows.labels) and options.labels is None):
        return table
    m = len(labels) if isinstance(labels, list) else labels
    Y, first = rows.label_matrix(_first(zero_based_labels), m, "labels must be numbered")
    if not isinstance(labels, list):
        labels = [str(k + first) for k in range(Y.shape[1])]
    return replace(table, Y=Y, label_names=tuple(labels), zero_based_labels=first == 0)


def _first(zero_based: bool | None) -> int | None:
    return None if zero_based is None else 1 - int(zero_based)


def _feature_names(options: ReadOptions, p: int) -> tuple[str, ...] | None:
    """Return the names of training for features that only have numbers."""
    names = options.training_features
    return names if len(names) == p else None


def _given_labels(options: ReadOptions) -> int | list[str] | None:
    """Return the number of labels or their names; those of training if none are given."""
    labels: int | str | list[str] | None = options.labels
    if labels is None and options.schema.label_names is not None:
        return list(options.schema.label_names)
    if isinstance(labels, str):
        raise ValueError(
            f"labels is {labels!r}: this format has no names, so that it must be the number of "
            "labels or the list of their names"
        )
    return abs(labels) if isinstance(labels, int) else labels


def read_xmc(path: Path, options: ReadOptions) -> Table:
    """Read the format of the extreme classification repository: a header, then rows from 0."""
    labels = _given_labels(options)
    source = str(path)
    rows, p, m = _read_xmc_rows(path, options.encoding)
    X, _ = rows.features(0, p, "with this header features are numbered")
    names = _feature_names(options, p)
    table = Table(source, X, names, lines=np.array(rows.lines), zero_based=True)
    if not options.with_labels:
        return table
    if m == 0:
        if len(rows.labels):
            rows.label_matrix(0, 0, "the header declares no labels, so that none is numbered")
        return table
    Y, _ = rows.label_matrix(0, m, "with this header labels are numbered")
    count = len(labels) if isinstance(labels, list) else labels
    if count not in (None, m):
        reason = f"the header declares {m} labels: there must be {count}"
        raise DataError(reason, source=source, line=1)
    if not isinstance(labels, list):
        labels = [str(k) for k in range(m)]
    return replace(table, Y=Y, label_names=tuple(labels), zero_based_labels=True)


def _read_xmc_rows(path: Path, encoding: str) -> tuple[_Rows, int, int]:
    """Return the rows, and the numbers of features and of labels that the header declares."""
    rows = _Rows(str(path))
    with open_text(path, encoding) as text:
        header = next(text, "").rstrip("\r\n")
        match = XMC_HEADER.fullmatch(header)
        if match is None:
            raise DataError(
                f"{quoted(header)} is not a header: it must be the numbers of rows, features and "
                "labels",
                source=path,
                line=1,
            )
        n, p, m = map(int, match.groups())
        if n == 0 or p == 0:
            reason = f"there are {n} rows of {p} features: there must be at least one of each"
            raise DataError(reason, source=path, line=1)
        if p > _MAX_FEATURES:
            reason = f"{p} features are too many: at most {_MAX_FEATURES} are read"
            raise DataError(reason, source=path, line=1)
        check_label_count(m, n, rows.source, line=1)
        for k, line in enumerate(text, 2):
            content = line.rstrip("\r\n")
            if len(rows.lines) < n:
                rows.add(content, k)
            elif content.strip(" \t"):
                reason = f"there are more rows than the {n} of the header"
                raise DataError(reason, source=path, line=k)
    if len(rows.lines) < n:
        raise DataError(
            f"the file ends after {len(rows.lines)} of the {n} rows of its header",
            source=path,
            line=len(rows.lines) + 2,
        )
    return rows, p, m


def _write_rows(text: Any, X: Any, Y: Any, first: int) -> None:
    csr = sparse.csr_array(X)
    csr.sort_indices()
    indptr = csr.indptr.tolist()
    size = max(1, _BLOCK * csr.shape[0] // max(1, csr.nnz))
    for begin in range(0, csr.shape[0], size):
        end = min(begin + size, csr.shape[0])
        offset = indptr[begin]
        values = format_numbers(csr.data[offset : indptr[end]])
        columns = (csr.indices[offset : indptr[end]] + first).tolist()
        pairs = [f"{column}:{value}" for column, value in zip(columns, values, strict=True)]
        for row in range(begin, end):
            labels = "" if Y is None else ",".join(map(str, (np.flatnonzero(Y[row]) + first)))
            features = pairs[indptr[row] - offset : indptr[row + 1] - offset]
            if not features and not labels:
                features = [f"{first}:0"]  # an empty line would not be a row
            text.write(" ".join([labels, *features]) + "\n")


def write_svmlight(path: Path, X: Any, Y: Any) -> None:
    """Write multi-label svmlight, with features and labels numbered from 1."""
    with write_text(path) as text:
        _write_rows(text, X, Y, 1)


def write_xmc(path: Path, X: Any, Y: Any) -> None:
    """Write the format of the extreme classification repository, numbered from 0."""
    with write_text(path) as text:
        text.write(f"{X.shape[0]} {X.shape[1]} {0 if Y is None else Y.shape[1]}\n")
        _write_rows(text, X, Y, 0)
