r"""The expectation of G over random tables with given margins, exactly.

For a table of n rows with margins :math:`r_i` and :math:`c_j`,

.. math::

    G = 2 \sum_{ij} a_{ij} \log \frac{n \, a_{ij}}{r_i c_j},

and if rows and columns were joined at random, each cell :math:`a_{ij}` is hypergeometric. G is a
sum over cells, so its expectation needs the distribution of one cell at a time (Vinh, Epps and
Bailey, 2010, who call E[G] / 2n the expected mutual information). The terms are written as

.. math::

    a \log (a / \mu) - (a - \mu), \qquad \mu = r c / n,

which changes no sum over a table, is never negative, and loses no digits.

References
----------
Vinh, N. X., Epps, J. and Bailey, J. (2010). Information Theoretic Measures for Clusterings
Comparison. Journal of Machine Learning Research 11, 2837-2854.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

__all__ = ["expected_cell", "expected_g_2x2", "x_log_x"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_TERMS = 1 << 18  # that are held in memory at a time


@lru_cache(maxsize=4)
def _tables(size: int) -> tuple[Floats, Floats]:
    """Give x log x and log x! for x = 0 .. size - 1."""
    x = np.arange(size, dtype=np.float64)
    products = x * np.log(np.maximum(x, 1.0))
    factorials = gammaln(x + 1.0)
    products.flags.writeable = factorials.flags.writeable = False
    return products, factorials


def _upto(largest: int) -> tuple[Floats, Floats]:
    """Give the tables for 0 .. largest at least; their sizes are powers of two, so few occur."""
    return _tables(1 << max(10, int(largest).bit_length()))


def x_log_x(largest: int) -> Floats:
    """Give x log x for x = 0 .. largest, and perhaps beyond; 0 log 0 = 0."""
    return _upto(largest)[0]


def expected_g_2x2(n: Any, r: Any, c: Any) -> Floats:
    """Give E[G] of 2 x 2 tables of n rows, r of them in the first row and c in the first column.

    The arguments are integer arrays of one dimension and the same length.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.metrics.cluster import expected_mutual_information
    >>> table = np.array([[3, 1], [2, 4]])
    >>> bool(np.isclose(expected_g_2x2([10], [4], [5])[0],
    ...                 20 * expected_mutual_information(table, 10)))
    True
    """
    n, r, c = (np.asarray(v, dtype=np.int64) for v in (n, r, c))
    # Exchanging rows or columns, or transposing, changes no G: the first cell is the smallest.
    r, c = np.minimum(r, n - r), np.minimum(c, n - c)
    products, _ = _upto(int(n.max(initial=0)))
    base = products[r] + products[n - r] + products[c] + products[n - c] - products[n]

    def half_g(a: Integers, n: Integers, r: Integers, c: Integers, base: Floats) -> Floats:
        cells = products[a] + products[r - a] + products[c - a] + products[n - r - c + a]
        return np.asarray(cells - base)

    return 2.0 * _hypergeometric_mean(half_g, n, r, c, base)


def expected_cell(n: Any, r: Any, c: Any) -> Floats:
    """Give the share of one cell in E[G], in a table of n rows whose margins at the cell are r, c.

    E[G] is the sum of the shares of all cells.

    Examples
    --------
    >>> cells = expected_cell([10, 10, 10, 10], [4, 4, 6, 6], [5, 5, 5, 5])
    >>> bool(abs(cells.sum() - expected_g_2x2([10], [4], [5])[0]) < 1e-12)
    True
    """
    n, r, c = (np.asarray(v, dtype=np.int64) for v in (n, r, c))
    products, _ = _upto(int(n.max(initial=0)))
    mean = r * (c / np.maximum(n, 1))
    log_mean = np.log(np.where(mean > 0.0, mean, 1.0))

    def divergence(
        a: Integers, n: Integers, r: Integers, c: Integers, mean: Floats, log_mean: Floats
    ) -> Floats:
        return np.asarray(products[a] - a * log_mean - (a - mean))

    return 2.0 * _hypergeometric_mean(divergence, n, r, c, mean, log_mean)


def _hypergeometric_mean(
    value: Callable[..., Floats], n: Integers, r: Integers, c: Integers, *more: Floats
) -> Floats:
    """Give E[value(a)] for a = the number of marked rows among c of n, where r are marked."""
    _, factorials = _upto(int(n.max(initial=0)))
    size = np.maximum(n, 1)
    mean = r * (c / size)
    deviation = np.sqrt(mean * ((n - r) / size) * ((n - c) / np.maximum(n - 1, 1)))
    # By Bernstein's inequality less than 1e-18 of the mass lies outside this window.
    reach = np.ceil(9.0 * deviation + 30.0)
    low = np.maximum(np.maximum(0, r + c - n), (mean - reach).astype(np.int64))
    high = np.minimum(np.minimum(r, c), (mean + reach).astype(np.int64))
    length = high - low + 1
    result = np.zeros(len(n))
    # A table with an empty row or column is certain: E[G] is its G, which is 0.
    todo = np.flatnonzero((r > 0) & (r < n) & (c > 0) & (c < n))
    ends = np.cumsum(length[todo])
    start = 0
    while start < len(todo):
        done = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + _TERMS, side="right")))
        part = todo[start:stop]
        lengths = length[part]
        first = ends[start:stop] - lengths - done  # of each table's terms
        owner = np.repeat(part, lengths)
        a = np.arange(len(owner)) + np.repeat(low[part] - first, lengths)
        at_n, at_r, at_c = n[owner], r[owner], c[owner]
        # Proportional to the probability: what does not depend on a is left to the division.
        logs = -(
            factorials[a]
            + factorials[at_r - a]
            + factorials[at_c - a]
            + factorials[at_n - at_r - at_c + a]
        )
        logs -= np.repeat(np.maximum.reduceat(logs, first), lengths)
        mass = np.exp(logs)
        values = value(a, at_n, at_r, at_c, *(extra[owner] for extra in more))
        result[part] = np.add.reduceat(mass * values, first) / np.add.reduceat(mass, first)
        start = stop
    return result
