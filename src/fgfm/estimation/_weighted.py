"""The largest F-measure that large batches of weighted rows can be expected to have."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fgfm.estimation._entries import Entries

__all__ = ["as_counts", "limit_f", "nearest_counts"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_MOST_COPIES = 10  # of a row, on average


def as_counts(weight: Floats) -> Integers | None:
    """Return weights that are numbers of rows as integers; None if they are not, or too large."""
    if weight.sum() > _MOST_COPIES * len(weight) or (weight % 1.0).any():
        return None
    return weight.astype(np.int64)


def nearest_counts(weight: Floats) -> Integers:
    """Return weights as numbers of rows, rounded where they are not."""
    counts = as_counts(weight)
    if counts is None:
        counts = np.rint(weight * (_MOST_COPIES * len(weight) / weight.sum())).astype(np.int64)
    return counts


def limit_f(entries: Entries, weight: Floats, beta: float, empty: float) -> Floats:
    r"""Return the optimal F-measure of each label in the limit of many rows, (m,).

    In a large batch the numbers of hits and of labels are at their expectations: the optimum is
    the largest

    .. math:: \frac{(1 + \beta^2) \sum_{r \in h} w_r p_r}{\beta^2 \sum_r w_r p_r +
              \sum_{r \in h} w_r}

    over sets h of the most probable rows. A label without entries has the value `empty`.
    """
    m = entries.m
    labels = np.arange(m) if entries.labels is None else entries.labels
    labels = np.broadcast_to(labels, entries.p.shape).ravel()
    p, w = entries.p.ravel(), np.repeat(weight, entries.p.shape[1])
    order = np.lexsort((-p, labels))
    order = order[labels[order] < m]
    labels, p, w = labels[order], p[order], w[order]
    present, first = np.unique(labels, return_index=True)
    hits, size = np.cumsum(w * p), np.cumsum(w)
    hits_before = np.zeros(m)
    size_before = np.zeros(m)
    hits_before[present] = hits[first] - (w * p)[first]
    size_before[present] = size[first] - w[first]
    expected = np.bincount(labels, w * p, minlength=m)
    value = (1.0 + beta**2) * (hits - hits_before[labels])
    value /= beta**2 * expected[labels] + size - size_before[labels]
    best = np.full(m, empty)
    best[present] = np.maximum.reduceat(value, first) if len(first) else empty
    return best
