"""Read the probabilities, or scores, that an FDecider takes, in all their forms."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.stats import rankdata
from sklearn.utils.validation import validate_data

from fgfm._utils.label_table import LabelTable, separated_texts
from fgfm._utils.names import check_same_index, check_same_names, column_names
from fgfm._utils.rows import frame_library, n_rows
from fgfm._utils.validation import (
    check_finite,
    check_probabilities,
    place,
    real_array,
    sparse_marginals,
    stacked_classes,
)
from fgfm.decider._candidates import are_named, listed_entries, named_entries
from fgfm.decider._entries import Entries, dense_entries, padded_entries, sparse_entries
from fgfm.decision._arrays import is_foreign, to_host
from fgfm.decision._classes import read_classes

__all__ = [
    "Probabilities",
    "check_class_order",
    "check_columns_match",
    "check_labels_match",
    "count_rows",
    "on_host",
    "read_probabilities",
]

Real = npt.NDArray[Any]

_HINT = "pass scores=True if X has scores"
_TRANSPOSED = 10.0  # gain in log-likelihood that shows that X is transposed


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


def count_rows(X: Any) -> int:
    """Return the number of rows of probabilities in any form."""
    if _is_list_of_pairs(X):
        return n_rows(X[0])
    return n_rows(X)


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
    if form == "lists" or are_named(X):
        return _read_candidates(owner, X, form, reset=reset)
    matrix = on_host(X)
    if isinstance(matrix, list) and not matrix and not reset:
        matrix = np.zeros((0, owner.n_features_in_))
    for part in matrix if isinstance(matrix, (list, tuple)) else [matrix]:
        if isinstance(part, np.ma.MaskedArray):
            raise TypeError("X is a masked array: fill the masked values first")
    if _is_list_of_pairs(matrix):
        # The axes of a square stack may be (label, row, class) or (row, label, class).
        square = isinstance(matrix, np.ndarray) and matrix.shape[0] == matrix.shape[1]
        parts = matrix if square else [np.asarray(on_host(part)) for part in matrix]
        if owner.scores and isinstance(parts, (list, tuple)):
            raise ValueError(
                "scores is True and X is a list of arrays, the class probabilities of each label: "
                "pass scores as one array (n, m), or the list without scores=True"
            )
        matrix = stacked_classes(parts, "X")
    if frame_library(matrix) is not None and len(matrix.shape) == 1:
        matrix = matrix.to_numpy()[:, None]
    if form == "flat":
        matrix = _positive_class(matrix, owner.scores, classes)
    if frame_library(matrix) is not None and not reset and not hasattr(owner, "feature_names_in_"):
        matrix = real_array(matrix, "X", ("row", "label"))  # whose names scikit-learn warns about
    # scikit-learn's validation takes longer than the decision of a row.
    is_array = type(matrix) is np.ndarray or sparse.issparse(matrix)
    plain = is_array and matrix.ndim == 2 and matrix.dtype.kind == "f"
    known = not reset and not hasattr(owner, "feature_names_in_")
    if plain and known and matrix.shape[1] == owner.n_features_in_:
        pass
    elif frame_library(matrix) is not None:
        validate_data(owner, matrix, reset=reset, skip_check_array=True)
        if len(matrix) == 0 and reset:
            raise ValueError(f"X has no rows: {type(owner).__name__} needs at least 1")
    else:
        _check_not_text(matrix)
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


def _read_candidates(owner: Any, X: Any, form: str, *, reset: bool) -> Probabilities:
    """Validate lists of candidates, with or without names."""
    if form == "lists" and isinstance(X, list) and not X and not reset:
        entries, kind = padded_entries(np.zeros(0), None, np.zeros(0, dtype=np.int64)), list
    elif form == "lists":
        entries, kind = listed_entries(X), list
    else:
        names = getattr(owner, "label_names_in_", None)
        entries, kind = named_entries(X, names), sparse.csr_array
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


def check_columns_match(X: Any, y: Any, table: LabelTable) -> None:
    """Raise if X has columns, such as the identifiers of a data frame, that y has not."""
    found, names = column_names(X), table.names
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if table.form == "flat" and len(shape) == 2 and shape[1] > 2:
        raise ValueError(
            f"X has {shape[1]} columns and y has 1: there must be one probability for each"
            f"{separated_texts(y, '; y ')}"
        )
    if found is None or table.form in ("flat", "classes") or len(shape) != 2:
        return
    columns = table.labels.shape[1]
    if len(found) == columns:
        return
    extra = [] if names is None else [name for name in found if name not in set(names)]
    if names is None or len(extra) != len(found) - columns:
        suspects = ("id", "index", "key", "name", "row")
        extra = [name for name in found if str(name).lower().strip("_") in suspects]
    shown = f"; {', '.join(map(repr, extra[:3]))} of X is no label: leave it out" if extra else ""
    raise ValueError(
        f"X has {len(found)} columns and y has {columns}: there must be one probability for each"
        f"{shown}"
    )


def check_labels_match(rows: Probabilities, y: Any, table: LabelTable) -> None:
    """Raise unless X and y have the same labels and rows, as far as that can be seen."""
    n, m = len(rows.entries.p), rows.entries.m
    columns = table.labels.shape[1]
    if columns != m:
        raise ValueError(
            f"X has {m} columns and y has {columns}{' classes' * (table.form == 'classes')}: "
            f"there must be one probability for each{separated_texts(y, '; y ')}"
        )
    check_same_index(X=rows.X, y=y)
    if table.form in ("flat", "classes"):
        check_class_order(rows.X, np.sort(table.classes))
    check_same_names(column_names(rows.X), table.names, "X", "y")
    if n == m and rows.entries.labels is None:
        _warn_if_transposed(rows.comparable().p, table.labels)


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


def _check_not_text(X: Any) -> None:
    """Raise if probabilities are texts."""
    if sparse.issparse(X):
        return
    values = np.asarray(X)
    if values.dtype.kind in "USO" and values.size:
        for index, value in np.ndenumerate(values):
            if isinstance(value, (str, bytes)):
                raise TypeError(
                    f"{place('X', index)} is the text {str(value)!r}: it must be a number"
                )


def _warn_if_transposed(p: Real, Y: Any) -> None:
    """Warn if square labels are explained by the transposed probabilities, and not by these.

    Compares the log-likelihoods that logistic regressions with slope 1/2 gain (`_mismatch`).
    """
    Y = Y.toarray() if sparse.issparse(Y) else Y
    p = np.clip(p, 1e-3, 1.0 - 1e-3)
    logit = np.log(p) - np.log1p(-p)
    y = Y - Y.mean()
    variance = float(Y.mean() * (1.0 - Y.mean()))
    here, there = (
        0.5 * float((y * (x - x.mean())).sum()) - variance * float(x.var()) * x.size / 8.0
        for x in (logit, logit.T)
    )
    if there > _TRANSPOSED and here < 0.1 * there:
        warnings.warn(
            f"X of shape {p.shape} fits y far better when it is transposed: its rows must be the "
            "rows of y, and its columns the labels",
            UserWarning,
            stacklevel=5,
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
    return to_host(X) if is_foreign(X) else X
