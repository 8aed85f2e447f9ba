r"""Exact mean and variance of G over random tables with fixed margins.

For a table of n rows with margins :math:`r_i` and :math:`c_j`,

.. math::

    G = 2 \sum_{ij} a_{ij} \log \frac{n \, a_{ij}}{r_i c_j}.

If rows and columns are paired at random, each cell :math:`a_{ij}` is hypergeometric. G is a sum
over cells, so that E[G] needs the distribution of one cell at a time (Vinh, Epps and Bailey, 2010,
who call E[G] / 2n the expected mutual information). The terms are computed as

.. math::

    a \log (a / \mu) - (a - \mu), \qquad \mu = r c / n.

The added :math:`a - \mu` cancels in the sum over a table; each term is non-negative, so that the
sum has no cancellation. In a 2 x 2 table the first cell determines the other three, so that the
same sum over its distribution also gives the variance of G.

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

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_MAX_TERMS = 1 << 16  # terms of the sums in memory at a time


@lru_cache(maxsize=4)
def _tables(size: int) -> tuple[Floats, npt.NDArray[np.complex128]]:
    """Return x log x, and log x! + i x log x, for x = 0 .. size - 1.

    A complex number holds both logarithms, so that one lookup and one addition serve the
    probability of a table (real part) and its G (imaginary part).
    """
    x = np.arange(size, dtype=np.float64)
    products = x * np.log(np.maximum(x, 1.0))
    both = gammaln(x + 1.0) + 1j * products
    products.flags.writeable = both.flags.writeable = False
    return products, both


def _tables_up_to(largest: int) -> tuple[Floats, npt.NDArray[np.complex128]]:
    """Return tables that reach to `largest` at least; sizes are powers of two, for the cache."""
    return _tables(1 << max(10, int(largest).bit_length()))


def x_log_x(largest: int) -> Floats:
    """Return x log x for x = 0 .. largest at least, with 0 log 0 = 0."""
    return _tables_up_to(largest)[0]


def moments_2x2(n: Any, r: Any, c: Any) -> tuple[Floats, Floats]:
    """Return E[G] and var(G) of 2 x 2 tables of n rows, r in the first row, c in the first column.

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
    # G is invariant to exchanging rows or columns: sum over the smallest cell, whose range is
    # the shortest.
    mean, square = _moments(n, np.minimum(r, n - r), np.minimum(c, n - c), whole_table=True)
    return mean, np.maximum(square - mean**2, 0.0)


def expected_cell(n: Any, r: Any, c: Any) -> Floats:
    """Return the contribution of single cells to E[G], which is their sum over a table.

    Examples
    --------
    >>> cells = expected_cell([10, 10, 10, 10], [4, 4, 6, 6], [5, 5, 5, 5])
    >>> bool(abs(cells.sum() - moments_2x2([10], [4], [5])[0][0]) < 1e-12)
    True
    """
    n, r, c = (np.asarray(v, dtype=np.int64) for v in (n, r, c))
    return _moments(n, r, c, whole_table=False)[0]


def _moments(n: Integers, r: Integers, c: Integers, *, whole_table: bool) -> tuple[Floats, Floats]:
    """Return E[v] and E[v^2], where v is G of the table, or the contribution of one cell."""
    result = np.zeros((2, len(n)))
    # With an empty row or column only one table is possible, and its G is 0.
    todo = np.flatnonzero((r > 0) & (r < n) & (c > 0) & (c < n))
    if len(todo) == 0:
        return result[0], result[1]
    n, r, c = n[todo], r[todo], c[todo]
    products, both = _tables_up_to(int(n.max()))
    mean = r * (c / n)
    deviation = np.sqrt(mean * ((n - r) / n) * ((n - c) / np.maximum(n - 1, 1)))
    # Sum over a window of the cell's range: by Bernstein's inequality the mass beyond 8 standard
    # deviations plus 20 is less than the rounding error.
    reach = 8.0 * deviation + 20.0
    low = np.maximum(np.maximum(0, r + c - n), (mean - reach).astype(np.int64))
    high = np.minimum(np.minimum(r, c), (mean + reach).astype(np.int64) + 1)
    # p(a) = r! (n-r)! c! (n-c)! / (n! a! (r-a)! (c-a)! (n-r-c+a)!): the first five do not
    # depend on a.
    fixed = both[r] + both[n - r] + both[c] + both[n - c] - both[n]
    length = high - low + 1
    ends = np.cumsum(length)
    log_mean = np.log(mean)
    start = 0
    while start < len(n):
        done = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + _MAX_TERMS, side="right")))
        part = slice(start, stop)
        lengths = length[part]
        first = ends[part] - lengths - done  # first term of each table
        a = np.arange(ends[stop - 1] - done) + np.repeat(low[part] - first, lengths)  # (terms,)
        beside, below = np.repeat(r[part], lengths) - a, np.repeat(c[part], lengths) - a
        rest = np.repeat((n - r - c)[part], lengths) + a
        # Real part: -log p(a). Imaginary part: G / 2 of the table.
        terms = both[a] + both[beside] + both[below] + both[rest]
        terms -= np.repeat(fixed[part], lengths)
        mass = np.exp(-terms.real)
        value = terms.imag
        if not whole_table:
            value = products[a] - a * np.repeat(log_mean[part], lengths)
            value -= a - np.repeat(mean[part], lengths)
        total = np.add.reduceat(mass, first)  # 1, up to the window and rounding
        weighted = mass * value
        result[0, todo[part]] = 2.0 * np.add.reduceat(weighted, first) / total
        result[1, todo[part]] = 4.0 * np.add.reduceat(weighted * value, first) / total
        start = stop
    return result[0], result[1]
