"""Weighted means of columns with missing values."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["known_means"]

Floats = npt.NDArray[np.float64]

_BLOCK = 128  # columns whose weights exist at the same time


def known_means(values: npt.NDArray[Any], weight: Floats) -> Floats:
    """Return the weighted mean (p,) of the known values of each column; 0 if there are none.

    Parameters
    ----------
    values : ndarray of shape (n, p)
        Values; NaN where one is not known.
    weight : ndarray of shape (n,)
        Weights of the rows.

    Returns
    -------
    ndarray of shape (p,)
        The means.

    Examples
    --------
    >>> known_means(np.array([[1.0, np.nan], [4.0, 5.0]]), np.array([2.0, 1.0]))
    array([2., 5.])
    """
    means = np.empty(values.shape[1])
    for start in range(0, len(means), _BLOCK):
        block = values[:, start : start + _BLOCK]
        w = np.where(np.isnan(block), 0.0, weight[:, None])
        total = np.maximum(w.sum(axis=0), np.finfo(float).tiny)
        means[start : start + _BLOCK] = (w * np.nan_to_num(block)).sum(axis=0) / total
    return means
