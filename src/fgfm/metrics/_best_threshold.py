"""The single threshold with the best F-measure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._utils.names import check_same_index, check_same_names, column_names
from fgfm._utils.validation import (
    AVERAGES,
    check_average_of,
    check_beta,
    check_finite,
    check_zero_division,
    label_sets,
    real_array,
    sparse_marginals,
)

_MAX_CANDIDATES = 1000
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def best_threshold(
    proba: Any,
    labels: Any,
    beta: float = 1.0,
    zero_division: float = 1.0,
    average: str = "samples",
) -> float:
    """Return the threshold on probabilities, or other scores, with the best F-measure.

    Parameters
    ----------
    proba : array-like, sparse matrix or data frame of shape (n, m) or (n,)
        Probabilities of the labels, or other scores, higher for more probable labels. Labels that
        a sparse matrix does not store are never selected.
    labels : array-like, sparse matrix or data frame of the same shape
        True labels, 0 or 1. 1-D labels are those of a binary classifier: one problem over all
        rows.
    beta : float, default=1.0
        Weight of recall in the F-measure.
    zero_division : float in [0, 1] or NaN, default=1.0
        F-measure of an empty decision where there is no true label; NaN leaves it out of means.
    average : {"samples", "macro", "weighted", "micro", "binary"}, default="samples"
        The mean F-measure of rows, or of labels, with equal weights or weighted by their numbers
        of rows, or the F-measure of all entries. "binary" is for 1-D labels.

    Returns
    -------
    float
        The threshold, half-way between two values; among equally good ones, the one
        nearest to the middle of their range.

    Examples
    --------
    >>> best_threshold([[0.1, 0.4], [0.3, 0.2]], [[0, 1], [1, 0]])
    0.25
    >>> best_threshold([[0, 1], [1, 0]], [[0.1, 0.4], [0.3, 0.2]])
    Traceback (most recent call last):
        ...
    ValueError: labels[0, 0] is 0.1: labels must be 0 or 1; are proba and labels swapped?
    """
    beta = check_beta(beta)
    zero_division = check_zero_division(zero_division, allow_nan=True)
    average = check_average_of(average, "labels", np.ndim(labels) == 1, (*AVERAGES, "binary"))
    p, truth = read_rows(proba, labels)
    return threshold_of(p, truth, beta, zero_division, average)


def read_rows(proba: Any, labels: Any, name: str = "labels") -> tuple[Any, Any]:
    """Validate probabilities or scores and true labels (n, m); both are dense, or both CSR."""
    check_same_names(column_names(proba), column_names(labels), "proba", name)
    check_same_index(**{"proba": proba, name: labels})
    truth = _true_labels(proba, labels, name)
    p = _probabilities(proba, np.ndim(labels) == 1)
    if p.shape != truth.shape:
        raise ValueError(
            f"{name} has shape {np.shape(labels)} and proba has {np.shape(proba)}: "
            "they must have the same shape"
        )
    if p.shape[0] == 0:
        raise ValueError("proba has no rows: a threshold needs at least one")
    if sparse.issparse(p):
        truth = sparse.csr_array(truth)
    elif sparse.issparse(truth):
        truth = truth.toarray().astype(np.bool_)
    return p, truth


def above_tuned(
    p: Any,
    truth: Any,
    parts: Sequence[Integers],
    *,
    each: bool,
    beta: float,
    zero_division: float,
    average: str,
) -> tuple[Any, list[Any]]:
    """Return the labels above thresholds that are tuned on other rows.

    Parameters
    ----------
    p, truth : ndarray or CSR of shape (n, m)
        Checked probabilities or scores, and true labels.
    parts : sequence of ndarray
        The rows of each part, whose thresholds are the best ones of all other rows; those of a
        single part are its own.
    each : bool
        A threshold of each label, the best for its own F-measure, instead of one for the average.
    beta, zero_division, average : float, float, str
        The F-measure.

    Returns
    -------
    ndarray or CSR of shape (n, m)
        The labels.
    list
        The thresholds of each part: numbers, or arrays (m,).
    """
    order, above, thresholds = np.concatenate(parts), [], []
    for rows in parts:
        others = np.setdiff1d(order, rows) if len(parts) > 1 else rows
        some, labels = p[others], truth[others]
        if each:
            one, other = (sparse.csc_array(a) if sparse.issparse(a) else a for a in (some, labels))
            columns = ((one[:, [j]], other[:, [j]]) for j in range(p.shape[1]))
            best: Any = np.array(
                [threshold_of(*column, beta, zero_division, "macro") for column in columns]
            )
        else:
            best = threshold_of(some, labels, beta, zero_division, average)
        thresholds.append(best)
        above.append(_above(p[rows], best))
    stacked = sparse.vstack(above, "csr") if sparse.issparse(p) else np.concatenate(above)
    return stacked[np.argsort(order)], thresholds


def _above(p: Any, thresholds: Any) -> Any:
    """Return which probabilities (n, m), dense or CSR, are above the threshold of their label."""
    if not sparse.issparse(p):
        return p > thresholds
    limits = np.broadcast_to(thresholds, (p.shape[1],))[p.indices]
    return sparse.csr_array((p.data > limits, p.indices, p.indptr), p.shape)


def threshold_of(
    proba: Any, labels: Any, beta: float, zero_division: float, average: str
) -> float:
    """Return the best threshold for checked probabilities and labels, both dense or both CSR."""
    values = np.unique(proba.data if sparse.issparse(proba) else proba)
    if len(values) > _MAX_CANDIDATES:  # a finer grid would not change the score noticeably
        values = np.unique(np.quantile(values, np.linspace(0.0, 1.0, _MAX_CANDIDATES)))
    middle = (values[1:] + values[:-1]) / 2.0
    none = values[:1] - 1.0 if len(values) and values[0] < 0.0 else [0.0]  # above it are all
    candidates = np.concatenate([none, middle, values[-1:]])  # (T,)
    total, mass = np.zeros((2, len(candidates)))
    for p, y, size in _problems(_problem_rows(proba, average), _problem_rows(labels, average)):
        # numbers of labels of the problem, and of its true labels, above each candidate: (T,)
        chosen = len(p) - np.searchsorted(np.sort(p), candidates, side="right")
        positive = np.sort(p[y])
        hits = len(positive) - np.searchsorted(positive, candidates, side="right")
        sizes = beta**2 * size + chosen
        f = np.full(len(candidates), zero_division)
        np.divide((1.0 + beta**2) * hits, sizes, out=f, where=sizes > 0.0)
        weight = np.where(np.isnan(f), 0, size if average == "weighted" else 1)
        total += weight * np.nan_to_num(f)
        mass += weight
    mean = np.divide(total, mass, out=np.zeros(len(total)), where=mass > 0)
    best = candidates[mean >= mean.max() - 1e-9]  # equal but for rounding
    return float(best[np.argmin(np.abs(best - 0.5 * (best[0] + best[-1])))])


def _true_labels(proba: Any, labels: Any, name: str) -> Any:
    """Validate the labels (n, m); recognise probabilities that were passed as labels."""
    try:
        return label_sets(labels, name, allow_flat=True)
    except ValueError as error:
        if _are_labels(proba):
            raise ValueError(f"{error}; are proba and {name} swapped?") from None
        raise


def _are_labels(value: Any) -> bool:
    try:
        label_sets(value, "proba", allow_flat=True)
    except (TypeError, ValueError):
        return False
    return True


def _probabilities(proba: Any, flat: bool) -> Any:
    """Validate probabilities or scores; return an array (n, m), or CSR if they are sparse."""
    if sparse.issparse(proba):
        csr = sparse_marginals(proba, "proba").copy()
        csr.sum_duplicates()
        check_finite(csr, "proba", "probabilities and scores")
        return csr
    p = real_array(proba, "proba", ("row",) if flat else ("row", "label"))
    check_finite(p, "proba", "probabilities and scores")
    p = p.astype(np.float64)
    return p[:, None] if flat else p


def _problem_rows(matrix: Any, average: str) -> Any:
    """Return a matrix (n, m) with one row for each problem of an average."""
    if average in ("macro", "weighted"):
        return matrix.T.tocsr() if sparse.issparse(matrix) else matrix.T
    return matrix.reshape((1, -1)) if average == "micro" else matrix


def _problems(proba: Any, labels: Any) -> Iterator[tuple[Floats, npt.NDArray[np.bool_], int]]:
    """Yield the probabilities of each problem, their labels, and the number of true labels.

    Labels that a sparse matrix does not store have probability 0, which no threshold selects.
    """
    if not sparse.issparse(proba):
        for row, y in zip(proba, labels, strict=True):
            yield row, y, int(y.sum())
        return
    proba, labels = sparse.csr_array(proba), sparse.csr_array(labels)
    labels.eliminate_zeros()
    for row in range(proba.shape[0]):
        stored = slice(proba.indptr[row], proba.indptr[row + 1])
        true = labels.indices[labels.indptr[row] : labels.indptr[row + 1]]
        yield proba.data[stored], np.isin(proba.indices[stored], true), len(true)
