"""Exact mean and variance of G, against enumeration and scikit-learn's expectation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import hypergeom
from sklearn.metrics.cluster import expected_mutual_information

from fgfm.factors._g_moments import expected_cell, moments_2x2


def g_of_table(table, n):
    table = np.array(table)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
    filled = table > 0
    return 2.0 * (table[filled] * np.log(table[filled] / expected[filled])).sum()


@pytest.mark.parametrize("n", [2, 9, 40])
def test_all_small_tables(n):
    margins = list(itertools.product(range(n + 1), repeat=2))
    r, c = (np.array(part) for part in zip(*margins, strict=True))
    mean, variance = moments_2x2(np.full(len(r), n), r, c)
    for k, (row, column) in enumerate(margins):
        a = np.arange(max(0, row + column - n), min(row, column) + 1)
        mass = hypergeom.pmf(a, n, row, column)
        G = np.array(
            [g_of_table([[v, row - v], [column - v, n - row - column + v]], n) for v in a]
        )
        assert mean[k] == pytest.approx(mass @ G, abs=1e-10)
        assert variance[k] == pytest.approx(mass @ (G - mass @ G) ** 2, abs=1e-9)


@pytest.mark.parametrize(
    ("n", "r", "c"), [(5000, 2500, 2500), (5000, 3, 4000), (20000, 9000, 700), (100000, 50, 60)]
)
def test_large_tables_are_accurate(n, r, c):
    """The sum extends over a window of the cell's range only."""
    first = max(0, r + c - n)
    table = np.array([[first, r - first], [c - first, n - r - c + first]])
    expected = 2 * n * expected_mutual_information(table, n)
    mean, _ = moments_2x2([n], [r], [c])
    assert mean[0] == pytest.approx(expected, rel=1e-7)
    cells = expected_cell([n] * 4, [r, r, n - r, n - r], [c, n - c, c, n - c])
    assert cells.sum() == pytest.approx(mean[0], rel=1e-7)


def test_tables_do_not_affect_each_other():
    """60 tables with 2500 terms each do not fit into one block of terms."""
    rng = np.random.default_rng(0)
    n = np.full(60, 100_000)
    r, c = rng.integers(30_000, 70_000, (2, 60))
    together = np.array(moments_2x2(n, r, c))
    alone = [np.array(moments_2x2([n[k]], [r[k]], [c[k]]))[:, 0] for k in range(60)]
    np.testing.assert_array_equal(together.T, alone)
