"""The F-measure of rows, of labels, or of all entries."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._utils.validation import check_beta, check_flag, check_zero_division, row_weights
from fgfm.metrics._read import read_labels

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@overload
def f_measure(  # numpydoc ignore=GL08
    Y_true: Any,
    Y_pred: Any,
    beta: float = ...,
    *,
    average: Literal["samples", "macro", "weighted", "micro", "binary"] = ...,
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
    average: None,
    zero_division: float = ...,
    per_row: Literal[False] = ...,
    sample_weight: Any = ...,
) -> Floats: ...
@overload
def f_measure(  # numpydoc ignore=GL08
    Y_true: Any,
    Y_pred: Any,
    beta: float = ...,
    *,
    average: Literal["samples"] = ...,
    zero_division: float = ...,
    per_row: Literal[True],
    sample_weight: Any = ...,
) -> Floats: ...
def f_measure(
    Y_true: Any,
    Y_pred: Any,
    beta: float = 1.0,
    *,
    average: str | None = "samples",
    zero_division: float = 1.0,
    per_row: bool = False,
    sample_weight: Any = None,
) -> float | Floats:
    r"""Compute the F-measure of predicted label sets.

    For true labels y and predicted labels h, both in {0, 1}^m,

    .. math::

        F_\beta(y, h) = \frac{(1 + \beta^2) \, y \cdot h}{\beta^2 |y| + |h|},

    where 0/0, an empty prediction for an empty true set, is `zero_division`. By default y and h
    are the labels of a row, and the measure is averaged over rows. The functions of
    ``fgfm.decision`` maximise its expectation, for the same `average`. 1-D labels are those of a
    binary classifier: one problem over all rows.

    Parameters
    ----------
    Y_true : array-like, sparse matrix or data frame of shape (n, m) or (n,), or list of lists
        True labels, 0 or 1. A 1-D array is one label, of a binary classifier, or the classes of
        the rows: texts, or three or more numbers; each class is then a label. Lists have the names
        of the labels of each row. Sparse input stays sparse.
    Y_pred : array-like, sparse matrix or data frame of the same shape
        Predicted labels. Its type may differ from that of `Y_true`; data frames must have the same
        columns and, in pandas, the same index, in the same order.
    beta : float, default=1.0
        Weight of recall relative to precision.
    average : {"samples", "macro", "weighted", "micro", "binary"} or None, default="samples"
        ``"samples"``: the mean over rows of their F-measure. ``"macro"``: the mean over labels of
        the F-measure of their columns. ``"weighted"``: this mean weighted by the number of
        positives of each label, if there are any. ``"micro"``: the F-measure of all entries
        together. None: the F-measure of each column. With 1-D labels all of them, and
        ``"binary"``, are the F-measure of the positive class.
    zero_division : float in [0, 1] or NaN, default=1.0
        Value of predicting no label for a row, or column, that has none. NaN leaves these out of
        the mean.
    per_row : bool, default=False
        Return the F-measure of each row instead of their mean; for ``average="samples"``.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows: in the mean over rows, or in the counts of columns and entries. It
        cannot be combined with `per_row`.

    Returns
    -------
    float or ndarray of shape (n,) or (m,)
        The (weighted) average, or the F-measure of each row, or of each label.

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
    ``f_measure(Y, H, zero_division=np.nan)``      ``f1_score(Y, H, average="samples",
                                                   zero_division=np.nan)``
    ``f_measure(Y, H, zero_division=0.5)``         none: only 0, 1 and NaN are supported
    ``f_measure(Y, H, sample_weight=w)``           ``f1_score(Y, H, average="samples",
                                                   zero_division=1.0, sample_weight=w)``
    ``f_measure(Y, H, average=a)``, not "samples"  ``f1_score(Y, H, average=a,
                                                   zero_division=1.0)``
    ``f_measure(y, h)`` with 1-D y and h           ``f1_score(y, h, zero_division=1.0)``
    ``f_measure(Y, H, per_row=True)``              none
    ============================================== ===============================================

    ``fgfm.f_scorer`` is a scikit-learn scorer for this function with its defaults. Called with
    other parameters it returns a scorer with these, for instance
    ``fgfm.f_scorer(beta=2.0, average="macro")``.

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
    >>> f_measure(Y, H, average=None)
    array([1., 0., 1.])
    >>> round(f_measure(Y, H, average="macro"), 3), round(f_measure(Y, H, average="micro"), 3)
    (0.667, 0.667)
    >>> f_measure(Y, [[1, 0, 0], [0, -1, 1], [0, 0, 0]])
    Traceback (most recent call last):
        ...
    ValueError: Y_pred[1, 1] is -1: labels must be 0 or 1
    """
    beta = check_beta(beta)
    zero_division = check_zero_division(zero_division, allow_nan=True)
    if check_flag(per_row, "per_row"):
        if sample_weight is not None:
            raise ValueError(
                "sample_weight is given and per_row is True: weights apply to the mean over rows "
                "only"
            )
        if average != "samples":
            raise ValueError(
                f"average is {average!r} and per_row is True: rows have an F-measure of their own "
                "for average='samples' only"
            )
    (true, predicted), averaged = read_labels(
        {"Y_true": Y_true, "Y_pred": Y_pred}, average, sample_weight=sample_weight
    )
    n = true.shape[0]
    if n == 0 and not per_row:
        raise ValueError("Y_true has no rows: the mean needs at least one")
    weight = None if sample_weight is None else row_weights(sample_weight, n, "Y_true")
    if per_row or averaged == "samples":
        both = _count_common(true, predicted)  # (n,)
        f = f_of((both, _count(true), _count(predicted)), beta, zero_division)  # (n,)
        return f if per_row else _mean(f, weight)
    columns = (_common(true, predicted), true, predicted)
    counts = np.array([_count_in_columns(labels, weight) for labels in columns])  # (3, m)
    if averaged == "micro":
        counts = counts.sum(axis=1, keepdims=True)  # (3, 1)
    f = f_of(counts, beta, zero_division)  # (m,) or (1,)
    if averaged is None:
        return f
    return _mean(f, counts[1] if averaged == "weighted" and counts[1].any() else None)


def _mean(f: Floats, weight: Any) -> float:
    """Return the weighted mean of the F-measures that are defined; NaN if none is."""
    defined = ~np.isnan(f)
    if not defined.all():
        f, weight = f[defined], None if weight is None else weight[defined]
    if len(f) == 0 or (weight is not None and not weight.any()):
        return float("nan")
    return float(np.average(f, weights=weight))


def f_of(counts: Any, beta: float, zero_division: float) -> Floats:
    """Compute F-measures from the numbers (3, k) of common, true and predicted labels."""
    both, of_true, of_predicted = counts
    size = beta**2 * of_true + of_predicted  # 0 only if both sets are empty
    f = np.full(len(both), zero_division)
    np.divide((1.0 + beta**2) * both, size, out=f, where=size > 0.0)
    return f


def _is_sparse(Y: Any) -> bool:
    return bool(sparse.issparse(Y))


def _count(labels: Any) -> Integers:
    """Return the number of labels in each row."""
    if _is_sparse(labels):
        return np.asarray(np.diff(labels.indptr), dtype=np.int64)
    return np.asarray(np.count_nonzero(labels, axis=1))


def _common(first: Any, second: Any) -> Any:
    """Return the common labels, in CSR if one of the arguments is."""
    if not _is_sparse(first):
        first, second = second, first
    if not _is_sparse(first):
        return first & second
    return sparse.csr_array(first.multiply(second))


def _count_in_columns(labels: Any, weight: Floats | None) -> Any:
    """Return the (weighted) number of rows of each label, without densifying."""
    if weight is not None:
        return weight @ labels
    if _is_sparse(labels):
        return np.bincount(labels.indices[labels.data != 0], minlength=labels.shape[1])
    return np.count_nonzero(labels, axis=0)


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
