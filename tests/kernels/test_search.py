"""The search for the best set size: exact, and few columns are computed."""

from __future__ import annotations

import numpy as np
import pytest

from fgfm import cardinality
from fgfm._kernels import rank_candidates, search


def count_columns(P, beta2=1.0):
    """Compare the search on P (m, S) with all columns; return how many it computed."""
    m, S = P.shape
    s = np.arange(1.0, S + 1.0)
    order = np.empty(m, dtype=np.int64)
    p, expected_ys = P.sum(axis=1), P @ s
    size, guess, floor = rank_candidates(p, expected_ys, float(S), beta2, 0.0, order)
    scale = np.full(S, 1.0 + beta2)
    k, value, count = search(
        P, order[:size], P.sum(axis=0), beta2 * s, scale, False, size, guess, floor, 0.0
    )
    sizes = np.arange(1, m + 1)
    delta = (1.0 + beta2) * P @ (1.0 / (beta2 * s[:, None] + sizes))  # (m, k)
    V = np.cumsum(-np.sort(-delta, axis=0), axis=0).diagonal()
    assert value == pytest.approx(V.max(), rel=1e-12)
    assert k == np.argmax(V) + 1
    return count


@pytest.mark.parametrize("beta2", [0.01, 1.0, 25.0])
@pytest.mark.parametrize("m", [20, 60, 100])
def test_few_columns_for_independent_labels(m, beta2):
    rng = np.random.default_rng(m)
    counts = []
    for power in (1, 2, 4, 8):
        P = cardinality.of_marginals(rng.random((3, m)) ** power)
        counts += [count_columns(row, beta2) for row in P]
    assert np.mean(counts) <= 5.0
    assert max(counts) <= 12


def test_few_columns_for_uncertain_cardinality():
    """Half of the mass on small sets, half on large ones: the bounds are looser."""
    rng = np.random.default_rng(2)
    m = 60
    sizes = np.where(rng.random(80) < 0.5, rng.integers(1, 4, 80), rng.integers(40, 60, 80))
    sets = np.array([rng.permutation(np.arange(m) < size) for size in sizes]).astype(int)
    P = cardinality.of_joint(sets, rng.dirichlet(np.full(80, 0.3), size=20))
    counts = [count_columns(row) for row in P]
    assert max(counts) <= 25  # of 60


def test_search_ends_for_equal_labels():
    """All sets of a size have the same value, and the values of the sizes are close."""
    m = 30
    P = np.zeros((m, m))
    P[:, 0] = 1.0 / m  # exactly one label is present, each with the same probability
    assert count_columns(P) <= m
