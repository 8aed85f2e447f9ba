"""Sparse rows in text: multi-label svmlight, and xmc of the extreme classification repository.

A row is ``1,3 5:0.2 9:1``: its labels, then its features. scikit-learn's reader drops empty rows
and reads 1_0 as 10, so that this one validates each line with a regular expression.
"""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from fgfm._utils.text import quoted
from fgfm.io._dataset import Dataset
from fgfm.io._errors import DataError
from fgfm.io._files import open_text
from fgfm.io._labels import check_size

__all__ = ["read_svmlight"]

# Each run of digits has a single match, so that matching takes linear time.
_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_PAIR = rf"[0-9]{{1,9}}:{_NUMBER}"
_ROW = re.compile(
    rf"((?:[0-9]{{1,9}}(?:,[0-9]{{1,9}})*)?)((?:(?:(?<![^ \t])|[ \t]+){_PAIR}(?=[ \t]|$))*)[ \t]*"
)
_TOKEN = re.compile(rf"[0-9]{{1,9}}(?:,[0-9]{{1,9}})*|{_PAIR}")
_HEADER = re.compile(r"([0-9]{1,9})[ \t]+([0-9]{1,9})[ \t]+([0-9]{1,9})[ \t]*")


def read_svmlight(
    path: Path,
    format: str,
    encoding: str,
    n_features: int | None,
    labels: int | tuple[str, ...] | None,
    zero_based: tuple[bool, bool] | None,
) -> Dataset:
    """Read svmlight, with ``#`` for comments; or xmc, with a header and numbers from 0."""
    source = str(path)
    header, lines, tags, features = _read_rows(path, format, encoding)
    if header is not None:
        n, n_features, m = header
        while len(lines) > n and not features[-1] and not tags[-1]:  # empty lines at the end
            lines.pop(), features.pop(), tags.pop()
        if len(lines) != n:
            reason = f"there are {len(lines)} rows: the header declares {n}"
            raise DataError(reason, source=source)
        labels, zero_based = labels or m, (True, True)
    if not lines:
        raise DataError("there are no rows", source=source)
    features_from_0, labels_from_0 = zero_based or (None, None)
    counts = [len(row) // 2 for row in features]
    numbers = np.array(list(chain.from_iterable(features)), dtype=object)
    indices, values = numbers[::2].astype(np.int64), numbers[1::2].astype(np.float64)
    columns, features_from_0, p = _columns(indices, features_from_0, n_features)
    wrong = (columns < 0) | (columns >= p) | ~np.isfinite(values)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise DataError(
            f"there is a feature {indices[at]}:{values[at]:g}: features must be finite, and "
            f"numbered from {int(not features_from_0)} to {p - features_from_0}",
            source=source,
            line=int(np.repeat(lines, counts)[at]),
        )
    indptr = np.concatenate([[0], np.cumsum(counts)])
    X = sparse.csr_array((values, columns, indptr), shape=(len(lines), p))
    X.sum_duplicates()
    if X.nnz < len(values):
        row = int(np.argmax(counts != np.diff(X.indptr)))
        raise DataError("a feature occurs twice in a row", source=source, line=lines[row])
    if labels is None and not any(tags):
        return Dataset(X, zero_based=(features_from_0, False))
    names = labels if isinstance(labels, tuple) else ()
    numbers = np.array(list(chain.from_iterable(tags)), dtype=np.int64)
    columns, labels_from_0, m = _columns(numbers, labels_from_0, len(names) or labels)
    rows = np.repeat(np.arange(len(lines)), [len(row) for row in tags])
    wrong = (columns < 0) | (columns >= m)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise DataError(
            f"{numbers[at]} is an unknown label: labels must be numbered from "
            f"{int(not labels_from_0)} to {m - labels_from_0}",
            source=source,
            line=lines[rows[at]],
        )
    check_size(len(lines), m, source)
    Y = np.zeros((len(lines), m), dtype=np.uint8)  # (n, m)
    Y[rows, columns] = 1
    numbered = tuple(str(k + (not labels_from_0)) for k in range(m))
    return Dataset(X, Y, names or numbered, zero_based=(features_from_0, labels_from_0))


def _read_rows(
    path: Path, format: str, encoding: str
) -> tuple[list[int] | None, list[int], list[list[int]], list[list[str]]]:
    """Return the numbers of the header; of each row the line, the labels and the features."""
    header, lines, tags, features = None, [], [], []
    with open_text(path, encoding) as text:
        for k, line in enumerate(text, 1):
            content = line.rstrip("\r\n")
            if format == "xmc" and k == 1:
                match = _HEADER.fullmatch(content)
                if match is None:
                    reason = f"{quoted(content)} is not a header: it must be the numbers of rows, "
                    raise DataError(f"{reason}features and labels", source=path, line=1)
                header = [int(number) for number in match.groups()]
                continue
            if format == "svmlight":
                content = content.partition("#")[0]
                if not content.strip():
                    continue
            match = _ROW.fullmatch(content)
            if match is None:
                raise _malformed(content, str(path), k)
            tags.append([int(tag) for tag in match[1].split(",")] if match[1] else [])
            features.append(match[2].replace(":", " ").split())  # index, value, index, value, ...
            lines.append(k)
    return header, lines, tags, features


def _malformed(text: str, source: str, line: int) -> DataError:
    wrong = next((t for t in text.split() if not _TOKEN.fullmatch(t)), text)
    return DataError(
        f"{quoted(wrong)}: a row must be labels separated by commas, then features as "
        "number:value, such as 1,3 5:0.2 9:1",
        source=source,
        line=line,
    )


def _columns(numbers: Any, from_0: bool | None, count: Any) -> tuple[Any, bool, int]:
    """Return column indices, whether numbers begin at 0 (if one does), and how many there are."""
    if from_0 is None:
        from_0 = bool(numbers.min(initial=1) == 0)
    columns = numbers - (not from_0)
    return columns, from_0, int(count or columns.max(initial=0) + 1)
