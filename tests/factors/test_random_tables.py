"""Random tables with fixed margins."""

from __future__ import annotations

import numpy as np
import pytest

from fgfm.factors._g_moments import moments_2x2
from fgfm.factors._random_tables import mean_random_g


def test_margins_are_kept_and_moments_are_exact():
    rows, columns = np.array([[4, 6]]), np.array([[5, 5]])
    rng = np.random.default_rng(0)
    G = [mean_random_g(rows, columns, 1, rng)[0] for _ in range(3000)]
    mean, variance = moments_2x2([10], [4], [5])
    assert np.mean(G) == pytest.approx(mean[0], rel=0.1)
    assert np.var(G) == pytest.approx(variance[0], rel=0.15)
    possible = set()
    for a in range(5):
        table = np.array([[a, 4 - a], [5 - a, 1 + a]])
        expected = np.outer([4, 6], [5, 5]) / 10
        filled = table > 0
        g = 2.0 * (table[filled] * np.log(table[filled] / expected[filled])).sum()
        possible.add(round(g, 9))
    assert {round(value, 9) for value in G} <= possible
