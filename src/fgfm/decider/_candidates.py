"""Rows that list their candidates: with names, or as arrays of different lengths without."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm._utils.label_table import LabelTable, label_lists
from fgfm._utils.names import column_names
from fgfm._utils.validation import check_labels, check_same_rows, place, real_array
from fgfm.decider._entries import Entries, padded_entries
from fgfm.decision._arrays import to_host

__all__ = ["are_lists", "are_named", "list_table", "listed_entries", "named_entries", "names_of"]

Names = npt.NDArray[Any]  # of objects

_FORMS = (
    'it must be a dict {"label": score}, a list of pairs ("label", score), or a list of dicts '
    '{"label": .., "score": ..}'
)


def are_named(X: Any) -> bool:
    """Return True for rows of scores by the names of labels."""
    row = next((row for row in _rows(X) if isinstance(row, Mapping) or _length(row)), None)
    if not isinstance(row, (list, tuple)):
        return isinstance(row, Mapping)
    pair = row[0]
    is_pair = isinstance(pair, (list, tuple)) and len(pair) > 0 and isinstance(pair[0], str)
    return is_pair or isinstance(pair, Mapping)


def are_lists(X: Any, y: Any) -> bool:
    """Return True for rows, and labels, of different lengths, or if both are lists of arrays."""
    rows, labels = _rows(X), _rows(y)
    lengths = {_length(row) for row in (*rows, *labels)}
    if not len(rows) or not len(labels) or None in lengths:
        return False
    arrays = all(hasattr(row, "shape") and len(row.shape) == 1 for row in (*rows, *labels))
    by_name = any(isinstance(value, str) for row in labels for value in row[:1])
    return not by_name and (arrays or len({_length(row) for row in rows}) > 1)


def _rows(X: Any) -> Any:
    """Return the rows of a list, a series or an array of objects; none of anything else."""
    if isinstance(X, (list, tuple)):
        return X
    is_column = getattr(X, "ndim", 0) == 1 and getattr(X, "dtype", None) == np.dtype(object)
    return X.tolist() if is_column else ()


def _length(row: Any) -> int | None:
    """Return the length of a list, tuple or array; None for anything else."""
    return len(row) if isinstance(row, (list, tuple)) or hasattr(row, "shape") else None


def names_of(X: Any, y: Any) -> Names:
    """Return the names of the columns of y, or else those of the rows of X and y, sorted."""
    names = column_names(y)
    if names is not None:
        return names
    lists = label_lists(y)
    if lists is None:
        raise ValueError(
            "X has names of labels and y has none: y must list the names of the labels of each "
            "row, or be a data frame with a column for each label"
        )
    listed = {name for row in lists if np.iterable(row) for name in row}
    return np.array(sorted(listed | set(_scores(X)[0])), dtype=object)


def named_entries(X: Any, names: Any) -> Entries:
    """Return the entries of rows of scores by name; labels that a row does not name are absent."""
    if names is None:
        raise ValueError("X has names of labels, and in fit there were none: pass arrays")
    found, scores, counts = _scores(X)
    number = {name: j for j, name in enumerate(names)}
    try:
        labels = np.fromiter((number[name] for name in found), np.int64, len(found))
    except KeyError:
        unknown = [name for name in dict.fromkeys(found) if name not in number]
        near = difflib.get_close_matches(unknown[0], [str(name) for name in names], 1)
        row = np.searchsorted(np.cumsum(counts), found.index(unknown[0]), side="right")
        raise ValueError(
            f"X[{row}] has the label {unknown[0]!r}, which was not in fit"
            f"{f' (did you mean {near[0]!r}?)' if near else ''}; labels that were not: "
            f"{', '.join(map(repr, unknown[:5]))}{', ..' if len(unknown) > 5 else ''}"
        ) from None
    rows = np.repeat(np.arange(len(counts)), counts)
    order = np.lexsort((labels, rows))
    twice = np.flatnonzero((np.diff(labels[order]) == 0) & (np.diff(rows[order]) == 0))
    if len(twice):
        at = order[twice[0]]
        raise ValueError(f"X[{rows[at]}] has the label {found[at]!r} twice")
    return padded_entries(scores[order], labels[order], counts, len(names))


def _scores(X: Any) -> tuple[list[str], npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Return the names and scores of all rows, one after the other, and the lengths of rows."""
    names: list[str] = []
    scores: list[Any] = []
    counts = []
    for i, row in enumerate(_rows(X)):
        try:
            pairs: Iterable[Any] = row.items() if isinstance(row, Mapping) else row
            for pair in pairs:
                name, score = (pair["label"], pair["score"]) if isinstance(pair, Mapping) else pair
                names.append(name)
                scores.append(score)
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"X[{i}] is {row!r}: {_FORMS}") from None
        counts.append(len(row))
        for name in names[len(names) - len(row) :]:
            if not isinstance(name, str):
                raise TypeError(f"X[{i}] has the label {name!r}: names of labels must be texts")
    return names, real_array(scores or np.empty(0), "X", ("score",)), np.array(counts, np.int64)


def listed_entries(X: Any) -> Entries:
    """Return the entries of lists of scores, whose labels are their positions."""
    scores, counts = _joined(X, "X")
    return padded_entries(scores, None, counts)


def list_table(y: Any, of_X: Any) -> LabelTable:
    """Return lists of labels, 0 or 1, as a table (n, K); X has lists of lengths `of_X`."""
    values, counts = _joined(y, "y")
    check_same_rows([len(of_X), len(counts)], ["X", "y"])
    wrong = np.flatnonzero(counts != np.asarray(of_X))
    if len(wrong):
        i = wrong[0]
        raise ValueError(
            f"y[{i}] has {counts[i]} labels and X[{i}] has {of_X[i]} scores: there must be one "
            "for each candidate"
        )
    table = padded_entries(values, None, counts).p
    check_labels(table, "y")
    dtype = values.dtype if values.dtype.kind in "biuf" else np.dtype(np.int64)
    return LabelTable(table == 1, np.array([0, 1]), None, "lists", str(dtype))


def _joined(lists: Any, name: str) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Return the values of 1-D lists, one after the other, and their lengths."""
    rows = lists if isinstance(lists, np.ndarray) and lists.ndim == 2 else _rows(lists)
    if not len(rows):
        raise ValueError(
            f"{name} is of type {type(lists).__name__} or empty: it must be a list of 1-D arrays, "
            "one for each row, as in fit"
        )
    arrays = [to_host(row) for row in rows]
    for i, array in enumerate(arrays):
        if array.ndim != 1:
            raise ValueError(
                f"{place(name, (i,))} has shape {array.shape}: {name} must be a list of 1-D "
                "arrays, one for each row, as in fit"
            )
    counts = np.array([len(array) for array in arrays], dtype=np.int64)
    filled = [array for array in arrays if len(array)] or [np.empty(0)]
    return real_array(np.concatenate(filled), name, ("candidate",)), counts
