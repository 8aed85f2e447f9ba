"""Read the probabilities that an FDecider takes, in all their forms."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import expit
from sklearn.utils.validation import validate_data

from fgfm._utils.label_table import LabelTable
from fgfm._utils.rows import frame_library, frame_maker, n_rows
from fgfm._utils.validation import (
    check_same_rows,
    check_stored_probabilities,
    clip_probabilities,
    real_array,
    sparse_marginals,
)
from fgfm.decider._entries import Entries, dense_entries, sparse_entries
from fgfm.decision import Decision

__all__ = ["Probabilities", "check_labels_match", "count_rows", "read_probabilities"]

Real = npt.NDArray[Any]

_TRANSPOSED = 10.0  # difference in log-likelihood that shows that X is transposed


class Probabilities(NamedTuple):
    """Validated probabilities, and the form in which they were passed."""

    entries: Entries
    X: Any  # as it was passed
    sparse_class: Any  # CSR array or matrix; None for a dense X

    def with_names(self, decision: Decision, names: list[Any] | None, average: str) -> Decision:
        """Return a decision with index and names if X is a data frame or series.

        `names` are those of the labels; None for a flat y.
        """
        library = frame_library(self.X)
        if library is None:
            return decision
        labels, expected_f = decision
        make_frame = frame_maker(self.X, "decide")
        frame = make_frame(labels.reshape(len(labels), -1), names or ["labels"])
        if names is None:
            frame = frame["labels"]
        if library == "pandas" and np.ndim(expected_f):
            import pandas as pd

            index = self.X.index if average == "samples" else names
            expected_f = pd.Series(expected_f, index=index, name="expected_f")
        elif np.ndim(expected_f):
            import polars as pl

            expected_f = pl.Series("expected_f", expected_f)
        return Decision(frame, expected_f)


def count_rows(X: Any) -> int:
    """Return the number of rows of probabilities in any form."""
    if _is_list_of_pairs(X):
        return n_rows(X[0])
    return n_rows(X)


def read_probabilities(owner: Any, X: Any, flat: bool, *, reset: bool) -> Probabilities:
    """Validate probabilities, or logits, in any form.

    Parameters
    ----------
    owner : FDecider
        The estimator, whose ``n_features_in_`` and ``feature_names_in_`` are set or checked.
    X : array-like, sparse matrix, data frame or list of arrays
        The probabilities.
    flat : bool
        Whether there is one label, given as a flat y: X may then be flat, or have two columns.
    reset : bool
        Whether this is a fit.

    Returns
    -------
    Probabilities
        The probabilities of each label.
    """
    matrix = _on_host(X)
    if _is_list_of_pairs(matrix):
        matrix = _positive_columns(matrix)
    if frame_library(matrix) is not None and len(matrix.shape) == 1:
        matrix = matrix.to_numpy()[:, None]
    if flat:
        matrix = _positive_class(matrix)
    if frame_library(matrix) is not None:
        validate_data(owner, matrix, reset=reset, skip_check_array=True)
    else:
        matrix = validate_data(
            owner,
            matrix,
            accept_sparse=True,
            dtype="numeric",
            ensure_all_finite=False,
            reset=reset,
        )
    if sparse.issparse(matrix):
        if owner.logits:
            raise ValueError(
                "logits is True and X is sparse: entries that are not stored would be logits of "
                "0, which is probability 1/2; pass a dense X, or probabilities"
            )
        csr = sparse_marginals(matrix, "X").copy()
        csr.sum_duplicates()
        _with_hint(check_stored_probabilities, csr)
        kind = sparse.csr_array if isinstance(X, sparse.sparray) else sparse.csr_matrix
        return Probabilities(sparse_entries(csr), X, kind)
    values = real_array(matrix, "X", ("row", "label"))
    if owner.logits:
        _check_not_nan(values)
        p = expit(values.astype(np.float64))
    else:
        p = _with_hint(clip_probabilities, values)
    return Probabilities(dense_entries(p), X, None)


def check_labels_match(given: Probabilities, y: Any, table: LabelTable) -> None:
    """Raise unless X and y have the same labels and rows, as far as that can be seen."""
    n, m = len(given.entries.p), given.entries.m
    columns = table.labels.shape[1]
    if columns != m:
        raise ValueError(
            f"X has {m} columns and y has {columns}: there must be one probability for each label"
        )
    X = given.X
    if frame_library(X) == "pandas" and frame_library(y) == "pandas":
        different = np.asarray(X.index != y.index)
        if different.any():
            row = int(np.argmax(different))
            raise ValueError(
                f"row {row} of X has index {X.index[row]!r} and that of y has {y.index[row]!r}: X "
                "and y must have the same rows, in the same order"
            )
    names = list(X.columns) if hasattr(X, "columns") else None
    if table.names is not None and names is not None:
        for at, (one, other) in enumerate(zip(names, table.names, strict=True)):
            if one != other:
                raise ValueError(
                    f"column {at} of X is {one!r} and that of y is {other!r}: X and y must have "
                    "the same labels, in the same order"
                )
    if n == m and given.entries.labels is None:
        _check_not_transposed(given.entries.p, table.labels)


def _check_not_transposed(p: Real, Y: Any) -> None:
    """Raise if the transposed probabilities explain square labels far better."""
    Y = Y.toarray() if sparse.issparse(Y) else Y
    p = np.clip(p, 1e-3, 1.0 - 1e-3)
    here, there = (
        float(np.where(Y, np.log(q), np.log1p(-q)).sum()) for q in (p, np.ascontiguousarray(p.T))
    )
    if there > here + _TRANSPOSED:
        raise ValueError(
            f"X of shape {p.shape} fits y far better when it is transposed: its rows must be the "
            "rows of y, and its columns the labels"
        )


def _is_list_of_pairs(X: Any) -> bool:
    """Return True for a list of arrays (n, K), or their stack (m, n, 2)."""
    if isinstance(X, (list, tuple)):
        return len(X) > 0 and all(len(np.shape(part)) == 2 for part in X)
    return isinstance(X, np.ndarray) and X.ndim == 3 and X.shape[2] == 2


def _positive_columns(parts: Any) -> Real:
    """Return the probabilities of the positive class from arrays (n, 2), as (n, m)."""
    columns = []
    for j, part in enumerate(parts):
        part = real_array(_on_host(part), f"X[{j}]", ("row", "class"))
        if part.shape[1] != 2:
            raise ValueError(
                f"X[{j}] has shape {part.shape}: it must have two columns, the probabilities that "
                f"label {j} is absent and present; a label with one class in training has one"
            )
        columns.append(part[:, 1])
    check_same_rows([len(c) for c in columns], [f"X[{j}]" for j in range(len(columns))])
    return np.column_stack(columns)


def _positive_class(X: Any) -> Any:
    """Return the column (n, 1) of the positive class from a flat X, or one of two columns."""
    if sparse.issparse(X):
        return X
    if frame_library(X) is None:
        X = np.asarray(X)
    if len(X.shape) == 1:
        return np.asarray(X)[:, None]
    if len(X.shape) == 2 and X.shape[1] == 2:
        both = real_array(X, "X", ("row", "class"))
        wrong = ~(np.abs(both.sum(axis=1) - 1.0) <= 1e-4)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(
                f"X[{row}] is {both[row].tolist()} and y is flat: two columns must be the "
                "probabilities of the two classes, which sum to 1"
            )
        return both[:, 1:]
    return X


def _on_host(X: Any) -> Any:
    """Return a tensor of PyTorch or CuPy as a NumPy array; anything else as it is."""
    if hasattr(X, "detach"):
        return X.detach().cpu().numpy()
    if type(X).__module__.partition(".")[0] == "cupy":
        return X.get()
    return X


def _check_not_nan(values: Real) -> None:
    wrong = np.isnan(values)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise ValueError(f"X[{row}, {column}] is nan: logits must be numbers")


def _with_hint(check: Any, values: Any) -> Any:
    """Validate probabilities; values outside [0, 1] may be logits, which the message mentions."""
    try:
        return check(values, "X")
    except ValueError as error:
        stored = values.data if sparse.issparse(values) else values
        if np.isfinite(stored).all():
            raise ValueError(f"{error}; apply a sigmoid, or pass logits=True") from None
        raise
