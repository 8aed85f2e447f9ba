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
    lines: list[int] = []
    tags: list[list[int]] = []
    features: list[list[str]] = []  # of each row: index, value, index, value, ...
    header = None
    with open_text(path, encoding) as text:
        for k, line in enumerate(text, 1):
            content = line.rstrip("\r\n")
            if format == "xmc" and k == 1:
                header = _HEADER.fullmatch(content)
                if header is None:
                    raise DataError(
                        f"{quoted(content)} is not a header: it must be the numbers of rows, "
                        "features and labels",
                        source=source,
                        line=1,
                    )
                continue
            if format == "svmlight":
                content = content.partition("#")[0]
                if not content.strip():
                    continue
            match = _ROW.fullmatch(content)
            if match is None:
                raise _malformed(content, source, k)
            tags.append([int(tag) for tag in match[1].split(",")] if match[1] else [])
            features.append(match[2].replace(":", " ").split())
            lines.append(k)
    if header is not None:
        n, n_features, m = map(int, header.groups())
        while len(lines) > n and not features[-1] and not tags[-1]:  # empty lines at the end
            lines.pop(), features.pop(), tags.pop()
        if len(lines) != n:
            reason = f"there are {len(lines)} rows: the header declares {n}"
            raise DataError(reason, source=source)
        labels, zero_based = labels or m, (True, True)
    if not lines:
        raise DataError("there are no rows", source=source)
    X, features_from_0 = _features(features, n_features, zero_based, lines, source)
    Y, names, labels_from_0 = _labels(tags, labels, zero_based, lines, source)
    return Dataset(X, Y, names, zero_based=(features_from_0, labels_from_0))


def _malformed(text: str, source: str, line: int) -> DataError:
    wrong = next((t for t in text.split() if not _TOKEN.fullmatch(t)), text)
    return DataError(
        f"{quoted(wrong)}: a row must be labels separated by commas, then features as "
        "number:value, such as 1,3 5:0.2 9:1",
        source=source,
        line=line,
    )


def _features(
    rows: list[list[str]],
    p: int | None,
    zero_based: tuple[bool, bool] | None,
    lines: list[int],
    source: str,
) -> tuple[Any, bool]:
    """Return X, and whether its features are numbered from 0."""
    counts = np.array([len(row) // 2 for row in rows])
    indptr = np.concatenate([[0], np.cumsum(counts)])
    numbers = np.array(list(chain.from_iterable(rows)), dtype=object)
    indices, data = numbers[::2].astype(np.int64), numbers[1::2].astype(np.float64)
    from_0 = bool(len(indices) and indices.min() == 0) if zero_based is None else zero_based[0]
    columns = indices - (not from_0)
    width = max(1, int(columns.max(initial=0)) + 1) if p is None else p
    wrong = (columns < 0) | (columns >= width) | ~np.isfinite(data)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise DataError(
            f"there is a feature {indices[at]}:{data[at]:g}: features must be finite, and "
            f"numbered from {int(not from_0)} to {width - from_0}",
            source=source,
            line=lines[int(np.searchsorted(indptr, at, side="right")) - 1],
        )
    X = sparse.csr_array((data, columns, indptr), shape=(len(rows), width))
    X.sum_duplicates()
    if X.nnz < len(data):
        row = int(np.argmax(counts != np.diff(X.indptr)))
        reason = "a feature occurs twice: it must have one value"
        raise DataError(reason, source=source, line=lines[row])
    return X, from_0


def _labels(
    rows: list[list[int]],
    labels: int | tuple[str, ...] | None,
    zero_based: tuple[bool, bool] | None,
    lines: list[int],
    source: str,
) -> tuple[Any, tuple[str, ...], bool]:
    """Return Y, the names of the labels, and whether they are numbered from 0."""
    numbers = np.array(list(chain.from_iterable(rows)), dtype=np.int64)
    if not len(numbers) and labels is None:
        return None, (), False
    counts = [len(row) for row in rows]
    from_0 = bool(len(numbers) and numbers.min() == 0) if zero_based is None else zero_based[1]
    columns = numbers - (not from_0)
    names = labels if isinstance(labels, tuple) else ()
    m = int(len(names) or labels or columns.max(initial=0) + 1)
    wrong = (columns < 0) | (columns >= m)
    at_row = np.repeat(np.arange(len(rows)), counts)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise DataError(
            f"{numbers[at]} is an unknown label: labels must be numbered from {int(not from_0)} "
            f"to {m - from_0}",
            source=source,
            line=lines[at_row[at]],
        )
    check_size(len(rows), m, source)
    Y = np.zeros((len(rows), m), dtype=np.uint8)  # (n, m)
    Y[at_row, columns] = 1
    return Y, names or tuple(str(k + (not from_0)) for k in range(m)), from_0
