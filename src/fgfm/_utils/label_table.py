"""Labels as users have them: what they are, and how to answer in kind."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from fgfm._utils.validation import check_factors, check_same_rows, label_sets

__all__ = ["LabelTable", "partition", "read_labels"]

Integers = npt.NDArray[np.int64]
Labels = npt.NDArray[np.bool_]


class LabelTable(NamedTuple):
    """The labels of some rows, and the kind of table that they came in."""

    labels: Labels  # (n, m)
    classes: npt.NDArray[Any]  # names or numbers of the labels; the classes of a flat y
    names: npt.NDArray[Any] | None  # (m,) columns of a data frame
    kind: str  # "flat", "dense", "sparse array" or "sparse matrix"
    dtype: str  # of a matrix


def read_labels(y: Any, n: int, owner: str) -> LabelTable:
    """Check labels of any kind.

    Parameters
    ----------
    y : array-like, sparse matrix or data frame of shape (n, m) or (n,)
        Labels: 0 or 1 in a matrix, any two classes in a flat array.
    n : int
        The number of rows that they must have.
    owner : str
        Who asks.

    Returns
    -------
    LabelTable
        The labels, and how to answer in kind.
    """
    if y is None:
        raise ValueError(
            f"{owner} requires y to be passed, but the target y is None: "
            "give the labels as a 0/1 matrix"
        )
    if isinstance(y, np.ma.MaskedArray):
        raise TypeError("y is a masked array: fill in what is masked first")
    _refuse_tag_lists(y)
    if not sparse.issparse(y) and not hasattr(y, "columns"):
        y = np.asarray(y)
    if len(y.shape) == 1 or (isinstance(y, np.ndarray) and y.shape[1:] == (1,)):
        table = _flat_table(y)
    else:
        labels = label_sets(y, "y")
        kind = "dense"
        if sparse.issparse(labels):
            kind = "sparse array" if isinstance(y, sparse.sparray) else "sparse matrix"
            labels = labels.toarray()
        names = _names(y.columns) if hasattr(y, "columns") else None
        classes = np.arange(labels.shape[1]) if names is None else names
        table = LabelTable(np.asarray(labels, np.bool_), classes, names, kind, _dtype_of(y))
    check_same_rows([n, len(table.labels)], ["X", "y"])
    return table


def _flat_table(y: Any) -> LabelTable:
    y = column_or_1d(y, warn=True)
    if y.dtype.kind == "f":
        assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    kind = type_of_target(y, input_name="y", raise_unknown=True)
    if kind != "binary":
        raise ValueError(
            f"Only binary classification is supported. The type of the target is {kind}: a "
            "flat y must have two classes; give several labels as a 0/1 matrix (n, m)"
        )
    classes = np.unique(y)
    labels = np.asarray(y == classes[-1])[:, None] & (len(classes) == 2)
    return LabelTable(labels, classes, None, "flat", "")


def _names(columns: Any) -> npt.NDArray[Any]:
    names = np.empty(len(columns), dtype=object)
    names[:] = list(columns)
    return names


def _dtype_of(y: Any) -> str:
    """Give the name of the dtype of the answers to labels of this kind."""
    found = y.dtype if hasattr(y, "dtype") else np.asarray(y).dtype
    numeric = isinstance(found, np.dtype) and found.kind in "biuf"
    return str(found) if numeric else "int64"


def _refuse_tag_lists(y: Any) -> None:
    """Refuse lists of the labels of each row, where a 0/1 matrix is meant."""
    rows: Any = None
    if isinstance(y, (list, tuple)):
        rows = y
    elif isinstance(y, np.ndarray) and y.dtype == np.dtype(object) and y.ndim == 1:
        rows = list(y)
    elif hasattr(y, "to_list"):  # a series
        rows = y.to_list()
    if not rows:
        return
    sequences = [row for row in rows if isinstance(row, (list, tuple, set, frozenset, np.ndarray))]
    lengths = {len(row) for row in sequences}
    by_name = any(isinstance(label, str) for row in sequences for label in row)
    if sequences and (by_name or len(lengths) > 1 or isinstance(sequences[0], (set, frozenset))):
        raise ValueError(
            f"y[0] is {rows[0]!r}: labels must be a matrix (n, m) of 0 and 1; "
            "sklearn.preprocessing.MultiLabelBinarizer makes one of lists of labels"
        )


def partition(factors: Any, m: int, names: npt.NDArray[Any] | None) -> list[Integers]:
    """Give a partition of the labels, by number or by name, as arrays of numbers."""
    if isinstance(factors, (str, bytes)) or not hasattr(factors, "__iter__"):
        raise TypeError(
            f"factors is {factors!r}: it must be 'single', 'independent', 'ilf', a partition of "
            "the labels (a list of lists), or an object with fit(X, Y) and factors_"
        )
    number = {} if names is None else {str(name): i for i, name in enumerate(names)}
    found: list[list[int]] = []
    for f, factor in enumerate(factors):
        if isinstance(factor, (str, bytes)) or not hasattr(factor, "__iter__"):
            raise TypeError(
                f"factors[{f}] is {factor!r}: a factor must be a list of label numbers or names"
            )
        labels = []
        for label in factor:
            if isinstance(label, str):
                if label not in number:
                    known = "y has no label names" if names is None else "y has no such column"
                    raise ValueError(f"factors[{f}] holds label {label!r}: {known}")
                label = number[label]
            if isinstance(label, (bool, np.bool_)) or not isinstance(label, (int, np.integer)):
                raise TypeError(
                    f"factors[{f}] is {factor!r}: "
                    "a factor must be a list of label numbers or names"
                )
            labels.append(int(label))
        found.append(labels)
    empty = [f for f, labels in enumerate(found) if not labels]
    if empty:
        raise ValueError(f"factors[{empty[0]}] is empty: a factor must have one label at least")
    numbers = [i for labels in found for i in labels]
    missing = sorted(set(range(m)) - set(numbers))
    if missing and len(numbers) < m:
        label = missing[0] if names is None else f"{missing[0]} ({names[missing[0]]!r})"
        raise ValueError(
            f"factors leaves out label {label}: every label must be in exactly one factor"
        )
    if len(numbers) > m:
        twice = next(i for at, i in enumerate(numbers) if i in set(numbers[:at]) or i >= m)
        raise ValueError(
            f"factors holds label {twice} twice, or one too many: "
            "every label must be in exactly one factor"
        )
    return check_factors(found, [len(labels) for labels in found])
