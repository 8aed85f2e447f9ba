"""Encoding of discrete columns, and counts within strata."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from fgfm.factors._contingency import combine, count_levels, encode, make_strata


def some_columns(n=90):
    """Return columns with up to four levels, two of them constant."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (n, 7)) * (rng.random((n, 7)) < 0.6)
    X[:, 2], X[:, 4] = 0, 3
    return X


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_codes_are_the_levels(form):
    X = some_columns()
    columns = encode(form(X))
    np.testing.assert_array_equal(count_levels(form(X)), columns.levels)
    for j, levels in enumerate(columns.levels):
        pairs = set(zip(X[:, j].tolist(), columns.codes(j).tolist(), strict=True))
        assert len(pairs) == levels == len(set(X[:, j].tolist()))


def loop_counts(X, y, z):
    """Count the nonzero values of binary columns by stratum and level of y."""
    counts = np.zeros((z.max() + 1, 2, X.shape[1]), dtype=int)
    for row in range(len(X)):
        counts[z[row], y[row]] += X[row] != 0
    return counts


@pytest.mark.parametrize(
    ("n", "d", "share", "n_strata", "stored_sparse"),
    [(300, 20, 0.5, 3, False), (300, 400, 0.05, 3, True), (3000, 20, 0.5, 200, False)],
    ids=["dense", "sparse", "many strata"],
)
def test_counts_are_those_of_plain_loops(n, d, share, n_strata, stored_sparse):
    """Indicators with few ones are stored sparse, the strata if they are many."""
    rng = np.random.default_rng(0)
    X = (rng.random((n, d)) < share).astype(int)
    y, z = rng.integers(0, 2, n), rng.integers(0, n_strata, n)
    z[:2], y[:2] = n_strata, 1  # a stratum in which y is constant
    columns = encode(X)
    assert sparse.issparse(columns.indicators) == stored_sparse
    strata = make_strata(y, 2, z, n_strata + 1)
    counts = loop_counts(X, y, z)
    varies = [len(set(y[z == k])) == 2 for k in range(n_strata + 1)]
    assert not varies[-1]
    np.testing.assert_array_equal(columns.counts(strata, slice(0, d)), counts[varies])
    part = columns.counts(strata, slice(3, 8))
    np.testing.assert_array_equal(part, counts[varies][:, :, 3:8])


@pytest.mark.parametrize("levels", [2, 40])
def test_strata_are_the_distinct_rows(levels):
    X = np.random.default_rng(1).integers(0, levels, (50, 4))
    codes, count = combine([(column, levels) for column in X.T], 50)
    _, expected = np.unique(X, axis=0, return_inverse=True)
    assert count == expected.max() + 1
    assert len(set(zip(codes.tolist(), expected.reshape(-1).tolist(), strict=True))) == count
