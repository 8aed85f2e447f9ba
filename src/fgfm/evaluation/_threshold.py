"""The single probability threshold with the best mean F-measure."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["best_threshold"]

_MAX_CANDIDATES = 1000


def best_threshold(
    proba: npt.NDArray[np.float64],
    labels: npt.NDArray[np.bool_],
    beta: float = 1.0,
    zero_division: float = 1.0,
) -> float:
    """Return the threshold on probabilities with the best mean F-measure of rows.

    Parameters
    ----------
    proba : ndarray of shape (n, m)
        Probabilities of the labels.
    labels : ndarray of bool, shape (n, m)
        True labels.
    beta : float, default=1.0
        Weight of recall in the F-measure.
    zero_division : float, default=1.0
        F-measure of an empty decision for a row without labels.

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
    values = np.unique(proba)
    if len(values) > _MAX_CANDIDATES:  # a finer grid would not change the score noticeably
        values = np.unique(np.quantile(values, np.linspace(0.0, 1.0, _MAX_CANDIDATES)))
    middle = (values[1:] + values[:-1]) / 2.0
    candidates = np.concatenate([[0.0], middle, [values[-1]]])  # (T,)
    weighted_size = beta**2 * labels.sum(axis=1)  # (n,)
    total = np.zeros(len(candidates))
    for row, y, weight in zip(proba, labels, weighted_size, strict=True):
        # numbers of labels of the row, and of its true labels, above each candidate: (T,)
        chosen = len(row) - np.searchsorted(np.sort(row), candidates, side="right")
        positive = np.sort(row[y])
        hits = len(positive) - np.searchsorted(positive, candidates, side="right")
        f = np.full(len(candidates), zero_division)
        np.divide((1.0 + beta**2) * hits, weight + chosen, out=f, where=weight + chosen > 0.0)
        total += f
    best = candidates[total >= total.max() - 1e-9 * len(labels)]  # equal but for rounding
    return float(best[np.argmin(np.abs(best - 0.5 * (best[0] + best[-1])))])
