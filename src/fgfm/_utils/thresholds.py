"""The single probability threshold with the best F-measure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._utils.validation import check_average

_MAX_CANDIDATES = 1000
Floats = npt.NDArray[np.float64]


def best_threshold(
    proba: Any,
    labels: Any,
    beta: float = 1.0,
    zero_division: float = 1.0,
    average: str = "samples",
) -> float:
    """Return the threshold on probabilities with the best F-measure.

    Parameters
    ----------
    proba : ndarray or sparse matrix of shape (n, m)
        Probabilities of the labels.
    labels : ndarray of bool, or sparse matrix, of shape (n, m)
        True labels; sparse if `proba` is.
    beta : float, default=1.0
        Weight of recall in the F-measure.
    zero_division : float, default=1.0
        F-measure of an empty decision where there is no true label.
    average : {"samples", "macro", "weighted", "micro"}, default="samples"
        The mean F-measure of rows, or of labels, with equal weights or weighted by their numbers
        of rows, or the F-measure of all entries.

    Returns
    -------
    float
        The threshold, half-way between two probabilities; among equally good ones, the one
        nearest to the middle of their range.

    Examples
    --------
    >>> proba = np.array([[0.1, 0.4], [0.3, 0.2]])
    >>> best_threshold(proba, np.array([[False, True], [True, False]]))
    0.25
    """
    check_average(average)
    values = np.unique(proba.data if sparse.issparse(proba) else proba)
    if len(values) > _MAX_CANDIDATES:  # a finer grid would not change the score noticeably
        values = np.unique(np.quantile(values, np.linspace(0.0, 1.0, _MAX_CANDIDATES)))
    middle = (values[1:] + values[:-1]) / 2.0
    candidates = np.concatenate([[0.0], middle, values[-1:]])  # (T,)
    total = np.zeros(len(candidates))
    mass = 0
    for p, y, size in _problems(_problem_rows(proba, average), _problem_rows(labels, average)):
        # numbers of labels of the problem, and of its true labels, above each candidate: (T,)
        chosen = len(p) - np.searchsorted(np.sort(p), candidates, side="right")
        positive = np.sort(p[y])
        hits = len(positive) - np.searchsorted(positive, candidates, side="right")
        sizes = beta**2 * size + chosen
        f = np.full(len(candidates), zero_division)
        np.divide((1.0 + beta**2) * hits, sizes, out=f, where=sizes > 0.0)
        weight = size if average == "weighted" else 1
        total += weight * f
        mass += weight
    best = candidates[total >= total.max() - 1e-9 * mass]  # equal but for rounding
    return float(best[np.argmin(np.abs(best - 0.5 * (best[0] + best[-1])))])


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
