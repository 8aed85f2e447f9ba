"""The F-measure of each row, averaged over rows."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._utils.validation import (
    check_beta,
    check_flag,
    check_zero_division,
    label_sets,
    row_weights,
)

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@overload
def f_measure(  # numpydoc ignore=GL08
    Y_true: Any,
    Y_pred: Any,
    beta: float = ...,
    *,
    zero_division: float = ...,
    per_row: Literal[False] = ...,
    sample_weight: Any = ...,
) -> float: ...
@overload
def f_measure(  # numpydoc ignore=GL08
    Y_true: Any,
    Y_pred: Any,
    beta: float = ...,
    *,
    zero_division: float = ...,
    per_row: Literal[True],
    sample_weight: Any = ...,
) -> Floats: ...
def f_measure(
    Y_true: Any,
    Y_pred: Any,
    beta: float = 1.0,
    *,
    zero_division: float = 1.0,
    per_row: bool = False,
    sample_weight: Any = None,
) -> float | Floats:
    r"""Compute the F-measure of predicted label sets, averaged over rows.

    For a row with true labels y and predicted labels h, both in {0, 1}^m,

    .. math::

        F_\beta(y, h) = \frac{(1 + \beta^2) \, y \cdot h}{\beta^2 |y| + |h|},

    where 0/0, an empty prediction for an empty true set, is `zero_division`. The functions of
    ``fgfm.decision`` maximise the expectation of this measure.

    Parameters
    ----------
    Y_true : array-like, sparse matrix or data frame of shape (n, m) or (n,)
        True labels, 0 or 1. A 1-D array is one label per row. Sparse input stays sparse.
    Y_pred : array-like, sparse matrix or data frame of the same shape
        Predicted labels. Its type may differ from that of `Y_true`.
    beta : float, default=1.0
        Weight of recall relative to precision.
    zero_division : float in [0, 1], default=1.0
        Value of predicting no label for a row that has none.
    per_row : bool, default=False
        Return the F-measure of each row instead of their mean.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows in the mean. It cannot be combined with `per_row`.

    Returns
    -------
    float or ndarray of shape (n,)
        The (weighted) mean, or the F-measure of each row.

    Notes
    -----
    The equivalent calls in scikit-learn. By default, scikit-learn scores an empty prediction for
    an empty true set as 0, with a warning.

    ============================================== ===============================================
    fgfm                                           scikit-learn
    ============================================== ===============================================
    ``f_measure(Y, H)``                            ``f1_score(Y, H, average="samples",
                                                   zero_division=1.0)``
    ``f_measure(Y, H, beta)``                      ``fbeta_score(Y, H, beta=beta,
                                                   average="samples", zero_division=1.0)``
    ``f_measure(Y, H, zero_division=0.0)``         ``f1_score(Y, H, average="samples",
                                                   zero_division=0.0)``
    ``f_measure(Y, H, zero_division=0.5)``         none: only 0, 1 and NaN are supported
    ``f_measure(Y, H, sample_weight=w)``           ``f1_score(Y, H, average="samples",
                                                   zero_division=1.0, sample_weight=w)``
    ``f_measure(Y, H, per_row=True)``              none
    ``f_measure(y, h)`` with 1-D y and h           none: ``f1_score(y, h)`` is the F-measure of
                                                   the positive class over all rows
    ============================================== ===============================================

    ``fgfm.f_scorer`` is a scikit-learn scorer for this function with its defaults. For another
    beta or `zero_division`, create a scorer::

        from sklearn.metrics import make_scorer

        f2_scorer = make_scorer(f_measure, beta=2.0)

    Examples
    --------
    >>> Y = [[1, 1, 0], [0, 0, 1], [0, 0, 0]]
    >>> H = [[1, 0, 0], [0, 1, 1], [0, 0, 0]]
    >>> f_measure(Y, H, per_row=True).round(3)
    array([0.667, 0.667, 1.   ])
    >>> round(f_measure(Y, H), 3)
    0.778
    >>> round(f_measure(Y, H, zero_division=0.0), 3)
    0.444
    >>> f_measure(Y, H, beta=2.0, per_row=True).round(3)
    array([0.556, 0.833, 1.   ])
    >>> f_measure(Y, [[1, 0, 0], [0, -1, 1], [0, 0, 0]])
    Traceback (most recent call last):
        ...
    ValueError: Y_pred[1, 1] is -1: labels must be 0 or 1
    """
    beta = check_beta(beta)
    zero_division = check_zero_division(zero_division)
    if check_flag(per_row, "per_row") and sample_weight is not None:
        raise ValueError(
            "sample_weight is given and per_row is True: weights apply to the mean over rows only"
        )
    _check_column_order(Y_true, Y_pred)
    true = label_sets(Y_true, "Y_true", allow_flat=True)  # (n, m)
    predicted = label_sets(Y_pred, "Y_pred", allow_flat=True)  # (n, m)
    if true.shape != predicted.shape:
        raise ValueError(
            f"Y_pred has shape {np.shape(Y_pred)} and Y_true has {np.shape(Y_true)}: "
            "they must have the same shape"
        )

    both = _count_common(true, predicted)  # (n,)
    size = beta**2 * _count(true) + _count(predicted)  # (n,), 0 only if both sets are empty
    f = np.full(len(both), zero_division)  # (n,)
    np.divide((1.0 + beta**2) * both, size, out=f, where=size > 0.0)
    if per_row:
        return f
    if len(f) == 0:
        raise ValueError("Y_true has no rows: the mean needs at least one")
    if sample_weight is None:
        return float(f.mean())
    return float(np.average(f, weights=row_weights(sample_weight, len(f), "Y_true")))


def _is_sparse(Y: Any) -> bool:
    return bool(sparse.issparse(Y))


def _check_column_order(Y_true: Any, Y_pred: Any) -> None:
    """Raise if two data frames have the same columns in different orders."""
    if not (hasattr(Y_true, "columns") and hasattr(Y_pred, "columns")):
        return
    true, predicted = list(Y_true.columns), list(Y_pred.columns)
    if true != predicted and set(true) == set(predicted):
        i = next(i for i, name in enumerate(predicted) if name != true[i])
        raise ValueError(
            f"Y_pred has column {i} {predicted[i]!r} and Y_true has {true[i]!r}: "
            "the columns must be in the same order"
        )


def _count(labels: Any) -> Integers:
    """Return the number of labels in each row."""
    if _is_sparse(labels):
        return np.asarray(np.diff(labels.indptr), dtype=np.int64)
    return np.asarray(np.count_nonzero(labels, axis=1))


def _count_common(first: Any, second: Any) -> Integers:
    """Return the number of common labels in each row, without densifying sparse input."""
    if not _is_sparse(first):
        first, second = second, first
    if not _is_sparse(first):
        return np.asarray(np.count_nonzero(first & second, axis=1))
    if _is_sparse(second):
        return _count(sparse.csr_array(first.multiply(second)))
    # Look the stored labels up in the dense array.
    row = np.repeat(np.arange(first.shape[0]), np.diff(first.indptr))  # (nnz,)
    return np.bincount(row[second[row, first.indices]], minlength=first.shape[0])
