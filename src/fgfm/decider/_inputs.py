"""Read the probabilities, or scores, that an FDecider takes, in all their forms.

Rows may list their candidates: with names, or as arrays of different lengths without.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.stats import rankdata
from sklearn.utils.validation import validate_data

from fgfm._utils.label_table import LabelTable, label_lists, read_labels, separated_texts
from fgfm._utils.names import check_same_names, column_names, is_unnamed, known_names
from fgfm._utils.rows import frame_library, n_rows
from fgfm._utils.validation import (
    check_finite,
    check_labels,
    check_no_text,
    check_probabilities,
    check_same_rows,
    place,
    real_array,
    sparse_marginals,
    stacked_classes,
)
from fgfm.decider._entries import Entries, dense_entries, padded_entries, sparse_entries
from fgfm.decision._arrays import is_foreign, to_host
from fgfm.decision._classes import read_classes

__all__ = [
    "Probabilities",
    "check_class_order",
    "check_count",
    "known_columns",
    "list_table",
    "on_host",
    "read_probabilities",
    "read_truth",
]

Names = npt.NDArray[Any]  # of objects
Real = npt.NDArray[Any]

_HINT = "pass scores=True if X has scores"
_FORMS = (
    'it must be a dict {"label": score}, a list of pairs ("label", score), or a list of dicts '
    '{"label": .., "score": ..}'
)
_NO_MATRIX = ("flat", "classes", "lists")  # forms of y whose X is no matrix of labels


class Probabilities(NamedTuple):
    """Validated probabilities or scores, and the form in which they were passed."""

    entries: Entries
    X: Any  # as it was passed
    kind: Any  # of predictions: a class of CSR for a sparse X, `list` for lists; None if dense
    scores: bool = False

    @property
    def matrix_kind(self) -> Any:
        """The kind, of a matrix where predictions are lists."""
        return sparse.csr_array if self.kind is list else self.kind

    def comparable(self) -> Entries:
        """Return the probabilities, or the ranks of scores between 0 and 1."""
        if not self.scores:
            return self.entries
        p = self.entries.p
        ranks = rankdata(p, axis=0 if self.entries.labels is None else None).reshape(p.shape)
        return self.entries.with_p(ranks / (ranks.max(initial=0.0) + 1.0))


def read_truth(X: Any, y: Any, owner: str) -> LabelTable:
    """Validate true labels of any form, of rows of probabilities in any form."""
    if _are_lists(X, y):
        return list_table(y, [len(row) for row in X])
    names, n = column_names(X), n_rows(X[0] if _is_list_of_pairs(X) else X)
    if _are_named(X):
        names = _names_of(X, y)
    return read_labels(
        y,
        n,
        owner,
        keep_sparse=True,
        allow_missing=True,
        allow_classes=True,
        allow_lists=True,
        names=None if names is None or is_unnamed(names) else names,
    )


def read_probabilities(
    owner: Any, X: Any, form: str, classes: Any, *, reset: bool
) -> Probabilities:
    """Validate probabilities, or scores, in any form.

    Parameters
    ----------
    owner : FDecider
        The estimator, whose ``n_features_in_`` and ``feature_names_in_`` are set or checked.
    X : array-like, sparse matrix, data frame or list of arrays
        The probabilities.
    form : str
        The form of y, as in `LabelTable`. If there is one label, given as a flat y, X may be flat,
        or have two columns. The rows of several classes sum to 1.
    classes : ndarray
        The classes of y; of two the positive one is the last.
    reset : bool
        Whether this is a fit.

    Returns
    -------
    Probabilities
        The probabilities of each label.
    """
    as_array = not reset and not hasattr(owner, "feature_names_in_")
    plain = as_array and type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind == "f"
    if plain and form not in _NO_MATRIX and X.shape[1] == owner.n_features_in_:
        # The checks of scikit-learn would take longer than the decision of a row.
        return Probabilities(dense_entries(_checked(X, owner.scores)), X, None, owner.scores)
    if form == "lists" or _are_named(X):
        return _read_candidates(owner, X, form, reset=reset)
    if isinstance(X, list) and not X and not reset:
        X = np.zeros((0, owner.n_features_in_))
    matrix = _as_matrix(on_host(X), form, classes, owner.scores)
    if frame_library(matrix) is not None and as_array:
        matrix = real_array(matrix, "X", ("row", "label"))  # whose names scikit-learn warns about
    if frame_library(matrix) is not None:
        validate_data(owner, matrix, reset=reset, skip_check_array=True)
        if len(matrix) == 0 and reset:
            raise ValueError(f"X has no rows: {type(owner).__name__} needs at least 1")
    else:
        if not sparse.issparse(matrix) and np.asarray(matrix).dtype.kind in "USO":
            check_no_text(np.asarray(matrix), "X")
        matrix = validate_data(
            owner,
            matrix,
            accept_sparse=True,
            dtype="numeric",
            ensure_all_finite=False,
            ensure_min_samples=1 if reset or np.ndim(matrix) < 2 else 0,
            reset=reset,
        )
    if sparse.issparse(matrix):
        if form == "classes":
            raise TypeError("X is sparse and y has classes: class probabilities must be dense")
        csr = sparse_marginals(matrix, "X").copy()
        csr.sum_duplicates()
        if owner.scores:
            check_finite(csr, "X", "scores")
        else:
            check_probabilities(csr, "X", hint=_HINT)
        kind = sparse.csr_array if isinstance(X, sparse.sparray) else sparse.csr_matrix
        return Probabilities(sparse_entries(csr), X, kind, owner.scores)
    values = real_array(matrix, "X", ("row", "label"))
    checked = _checked(values, owner.scores)
    if form == "classes" and not owner.scores:
        checked = read_classes(values, "X", False)
    return Probabilities(dense_entries(checked), X, None, owner.scores)


def _as_matrix(X: Any, form: str, classes: Any, scores: bool) -> Any:
    """Return probabilities of any form, but lists of candidates, in two dimensions."""
    for part in X if isinstance(X, (list, tuple)) else [X]:
        if isinstance(part, np.ma.MaskedArray):
            raise TypeError("X is a masked array: fill the masked values first")
    if _is_list_of_pairs(X):
        # The axes of a square stack may be (label, row, class) or (row, label, class).
        square = isinstance(X, np.ndarray) and X.shape[0] == X.shape[1]
        if scores and not square:
            raise ValueError(
                "scores is True and X is a list of arrays, the class probabilities of each label: "
                "pass scores as one array (n, m), or the list without scores=True"
            )
        X = stacked_classes(X if square else [np.asarray(on_host(part)) for part in X], "X")
    if frame_library(X) is not None and len(X.shape) == 1:
        X = X.to_numpy()[:, None]
    return _positive_class(X, scores, classes) if form == "flat" else X


def _read_candidates(owner: Any, X: Any, form: str, *, reset: bool) -> Probabilities:
    """Validate lists of candidates, with or without names."""
    if form == "lists" and isinstance(X, list) and not X and not reset:
        entries, kind = padded_entries(np.zeros(0), None, np.zeros(0, dtype=np.int64)), list
    elif form == "lists":
        entries, kind = _listed_entries(X), list
    else:
        names = getattr(owner, "label_names_in_", None)
        entries, kind = _named_entries(X, names), sparse.csr_array
    if reset:
        for name in ("n_features_in_", "feature_names_in_"):
            vars(owner).pop(name, None)  # of an earlier fit
    if reset and form != "lists":
        owner.n_features_in_ = entries.m
    p = _checked(entries.p, owner.scores).astype(np.float64)
    return Probabilities(entries.with_p(p), X, kind, owner.scores)


def _checked(values: Real, scores: bool) -> Real:
    """Return values (n, K) that are probabilities, or scores."""
    if scores:
        check_finite(values, "X", "scores")
        return values
    check_probabilities(values, "X", hint=_HINT)
    return np.clip(values, 0.0, 1.0)


def check_count(m: int, table: LabelTable, X: Any, y: Any) -> None:
    """Raise unless X has m columns, one for each label of y."""
    columns = table.labels.shape[1]
    if m == columns:
        return
    found = column_names(X)
    extra = [] if found is None or table.names is None else sorted({*found} - {*table.names})
    one, several = len(extra) == m - columns, ", ".join(map(repr, extra[:3]))
    shown = f"; {several} of X is no label: leave it out" if one else ""
    raise ValueError(
        f"X has {m} columns and y has {columns}{' classes' * (table.form == 'classes')}: there "
        f"must be one probability for each{shown}{separated_texts(y, '; y ')}"
    )


def known_columns(X: Any, y: Any, table: LabelTable) -> Any:
    """Return the names of the columns of X and y, which must be the same."""
    names, shape = column_names(X), tuple(getattr(X, "shape", ()))
    if len(shape) == 2 and (table.form != "flat" or shape[1] > 2):
        check_count(shape[1], table, X, y)  # before columns that are no labels are read
    if table.form in ("flat", "classes"):
        check_class_order(X, np.sort(table.classes))
    check_same_names(names, table.names, "X", "y")
    return known_names(table.names, names)


def check_class_order(X: Any, classes: Any) -> None:
    """Raise if X is a data frame whose columns are named as the classes, in another order."""
    names, expected = list(getattr(X, "columns", ())), classes.tolist()
    for found, wanted in ((names, expected), ([*map(str, names)], [*map(str, expected)])):
        if found != wanted and len(found) == len(wanted) and set(found) == set(wanted):
            at = next(i for i, name in enumerate(found) if name != wanted[i])
            raise ValueError(
                f"column {at} of X is {names[at]!r}, and class {at} of y is {expected[at]!r}: the "
                "columns must be in the order of the classes"
            )


def _is_list_of_pairs(X: Any) -> bool:
    """Return True for a list of arrays (n, K), or their stack (m, n, 2)."""
    if isinstance(X, (list, tuple)):
        return len(X) > 0 and all(len(np.shape(part)) == 2 for part in X)
    return isinstance(X, np.ndarray) and X.ndim == 3 and X.shape[2] == 2


def _positive_class(X: Any, scores: bool, classes: Any) -> Any:
    """Return the column (n, 1) of the positive class from a flat X, or one of two columns.

    Columns are in the order of sorted classes. The score of the positive one of two classes is
    the difference of their scores.
    """
    if sparse.issparse(X):
        return X
    if frame_library(X) is None:
        X = np.asarray(X)
    if len(X.shape) == 1:
        return np.asarray(X)[:, None]
    if len(X.shape) == 2 and X.shape[1] == 2:
        both = real_array(X, "X", ("row", "class"))
        first_is_positive = len(classes) == 2 and classes[1] < classes[0]
        if scores:
            difference = both[:, 1:].astype(np.float64) - both[:, :1]
            return -difference if first_is_positive else difference
        wrong = ~(np.abs(both.sum(axis=1) - 1.0) <= 1e-4)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(
                f"X[{row}] is {both[row].tolist()} and y is flat: two columns must be the "
                f"probabilities of the two classes, which sum to 1; {_HINT}"
            )
        return both[:, :1] if first_is_positive else both[:, 1:]
    return X


def on_host(X: Any) -> Any:
    """Return an array of PyTorch, CuPy or JAX as a NumPy array; anything else unchanged."""
    if isinstance(X, np.ndarray):
        return X
    return to_host(X) if is_foreign(X) else X


def _are_named(X: Any) -> bool:
    """Return True for rows of scores by the names of labels."""
    row = next((row for row in _rows(X) if isinstance(row, Mapping) or _length(row)), None)
    if not isinstance(row, (list, tuple)):
        return isinstance(row, Mapping)
    pair = row[0]
    is_pair = isinstance(pair, (list, tuple)) and len(pair) > 0 and isinstance(pair[0], str)
    return is_pair or isinstance(pair, Mapping)


def _are_lists(X: Any, y: Any) -> bool:
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


def _names_of(X: Any, y: Any) -> Names:
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


def _named_entries(X: Any, names: Any) -> Entries:
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


def _listed_entries(X: Any) -> Entries:
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
