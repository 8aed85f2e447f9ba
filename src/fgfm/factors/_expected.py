r"""The mean and variance of G over random tables with given margins, exactly.

For a table of n rows with margins :math:`r_i` and :math:`c_j`,

.. math::

    G = 2 \sum_{ij} a_{ij} \log \frac{n \, a_{ij}}{r_i c_j},

and if rows and columns were joined at random, each cell :math:`a_{ij}` is hypergeometric. G is a
sum over cells, so its expectation needs the distribution of one cell at a time (Vinh, Epps and
Bailey, 2010, who call E[G] / 2n the expected mutual information). The terms are written as

.. math::

    a \log (a / \mu) - (a - \mu), \qquad \mu = r c / n,

which changes no sum over a table, is never negative, and loses no digits. The first cell of a
2 x 2 table determines the others, so that the variance of G comes from the same sum.

References
----------
Vinh, N. X., Epps, J. and Bailey, J. (2010). Information Theoretic Measures for Clusterings
Comparison. Journal of Machine Learning Research 11, 2837-2854.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

__all__ = ["expected_cell", "moments_2x2", "x_log_x"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_TERMS = 1 << 16  # that are held in memory at a time


@lru_cache(maxsize=4)
def _tables(size: int) -> tuple[Floats, npt.NDArray[np.complex128]]:
    """Give x log x, and log x! + i x log x, for x = 0 .. size - 1."""
    x = np.arange(size, dtype=np.float64)
    products = x * np.log(np.maximum(x, 1.0))
    both = gammaln(x + 1.0) + 1j * products
    products.flags.writeable = both.flags.writeable = False
    return products, both


def _upto(largest: int) -> tuple[Floats, npt.NDArray[np.complex128]]:
    """Give the tables for 0 .. largest at least; their sizes are powers of two, so few occur."""
    return _tables(1 << max(10, int(largest).bit_length()))


def x_log_x(largest: int) -> Floats:
    """Give x log x for x = 0 .. largest, and perhaps beyond; 0 log 0 = 0."""
    return _upto(largest)[0]


def moments_2x2(n: Any, r: Any, c: Any) -> tuple[Floats, Floats]:
    """Give E[G] and var(G) of 2 x 2 tables of n rows, r in the first row, c in the first column.

    The arguments are integer arrays of one dimension and the same length.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.metrics.cluster import expected_mutual_information
    >>> table = np.array([[3, 1], [2, 4]])
    >>> mean, variance = moments_2x2([10], [4], [5])
    >>> bool(np.isclose(mean[0], 20 * expected_mutual_information(table, 10)))
    True
    """
    n, r, c = (np.asarray(v, dtype=np.int64) for v in (n, r, c))
    # Exchanging rows or columns changes no G: the first cell is the smallest, its range short.
    mean, square = _moments(n, np.minimum(r, n - r), np.minimum(c, n - c), whole=True)
    return mean, np.maximum(square - mean**2, 0.0)


def expected_cell(n: Any, r: Any, c: Any) -> Floats:
    """Give the share of one cell in E[G], in a table of n rows whose margins at the cell are r, c.

    E[G] is the sum of the shares of all cells.

    Examples
    --------
    >>> cells = expected_cell([10, 10, 10, 10], [4, 4, 6, 6], [5, 5, 5, 5])
    >>> bool(abs(cells.sum() - moments_2x2([10], [4], [5])[0][0]) < 1e-12)
    True
    """
    n, r, c = (np.asarray(v, dtype=np.int64) for v in (n, r, c))
    return _moments(n, r, c, whole=False)[0]


def _moments(n: Integers, r: Integers, c: Integers, *, whole: bool) -> tuple[Floats, Floats]:
    """Give E[v] and E[v^2] for v = G of the table, or one cell's share in it."""
    result = np.zeros((2, len(n)))
    # A table with an empty row or column is certain: its G is 0.
    todo = np.flatnonzero((r > 0) & (r < n) & (c > 0) & (c < n))
    if len(todo) == 0:
        return result[0], result[1]
    n, r, c = n[todo], r[todo], c[todo]
    products, both = _upto(int(n.max()))
    mean = r * (c / n)
    deviation = np.sqrt(mean * ((n - r) / n) * ((n - c) / np.maximum(n - 1, 1)))
    # By Bernstein's inequality the mass outside this window is lost in rounding.
    reach = 8.0 * deviation + 20.0
    low = np.maximum(np.maximum(0, r + c - n), (mean - reach).astype(np.int64))
    high = np.minimum(np.minimum(r, c), (mean + reach).astype(np.int64) + 1)
    fixed = both[r] + both[n - r] + both[c] + both[n - c] - both[n]
    length = high - low + 1
    ends = np.cumsum(length)
    log_mean = np.log(mean)
    start = 0
    while start < len(n):
        done = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + _TERMS, side="right")))
        part = slice(start, stop)
        lengths = length[part]
        first = ends[part] - lengths - done  # of each table's terms
        a = np.arange(ends[stop - 1] - done) + np.repeat(low[part] - first, lengths)
        beside, below = np.repeat(r[part], lengths) - a, np.repeat(c[part], lengths) - a
        rest = np.repeat((n - r - c)[part], lengths) + a
        # Real part: minus the log-probability of a. Imaginary part: half of the table's G.
        terms = both[a] + both[beside] + both[below] + both[rest]
        terms -= np.repeat(fixed[part], lengths)
        mass = np.exp(-terms.real)
        value = terms.imag
        if not whole:
            value = products[a] - a * np.repeat(log_mean[part], lengths)
            value -= a - np.repeat(mean[part], lengths)
        total = np.add.reduceat(mass, first)
        weighted = mass * value
        result[0, todo[part]] = 2.0 * np.add.reduceat(weighted, first) / total
        result[1, todo[part]] = 4.0 * np.add.reduceat(weighted * value, first) / total
        start = stop
    return result[0], result[1]
