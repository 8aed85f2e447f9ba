"""Random contingency tables with fixed margins, for the Monte Carlo version of the G test."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fgfm.factors._g_moments import x_log_x

__all__ = ["mean_random_g"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def mean_random_g(
    rows: Integers, columns: Integers, n_tables: int, rng: np.random.Generator
) -> Floats:
    """Return the mean G of random tables for each pair of margins.

    Parameters
    ----------
    rows : ndarray of shape (T, R)
        Row margins of T tables.
    columns : ndarray of shape (T, C)
        Column margins, with the same sums as the row margins.
    n_tables : int
        Number of random tables for each pair of margins.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of shape (T,)
        Means.
    """
    products = x_log_x(int(rows.sum(axis=1).max(initial=0)))
    free = np.broadcast_to(rows, (n_tables, *rows.shape)).copy()  # (B, T, R)
    total = np.zeros(free.shape[:2])  # (B, T)
    # Column by column, each cell is hypergeometric given the cells drawn before it.
    for j in range(columns.shape[1]):
        left = np.broadcast_to(columns[:, j], free.shape[:2]).copy()  # still to place in column j
        others = free.sum(axis=2)
        for i in range(rows.shape[1]):
            others = others - free[:, :, i]
            drawn = rng.hypergeometric(free[:, :, i], others, left)
            total += products[drawn]
            free[:, :, i] -= drawn
            left -= drawn
    margins = products[rows].sum(axis=1) + products[columns].sum(axis=1)
    total += products[rows.sum(axis=1)] - margins
    return np.asarray(2.0 * total.mean(axis=0))
