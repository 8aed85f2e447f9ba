"""Tests of all pairs of labels given Markov boundaries."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from fgfm.factors import ILFCompo, g_test, markov_boundary


def toy(n, m=6):
    """Return binary features, and labels that depend on them and in part on each other."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (n, 4))
    Y = X[:, np.arange(m) % 4] ^ (rng.random((n, m)) < 0.25)
    Y[:, 3] |= Y[:, 0]
    Y[:, 4] &= Y[:, 2]
    return X, Y.astype(int)


def as_lists(arrays):
    return [array.tolist() for array in arrays]


def few_ones(n=300, d=300):
    """Return features with few ones, stored sparse, on two of which labels depend."""
    rng = np.random.default_rng(1)
    X = (rng.random((n, d)) < 0.05).astype(int)
    X[:, :2] = rng.random((n, 2)) < 0.4
    return X, X[:, [0, 1, 0]] ^ (rng.random((n, 3)) < 0.15)


def many_levels(n=400):
    """Return features with up to ten levels, two of them constant."""
    rng = np.random.default_rng(2)
    X = rng.integers(0, [2, 3, 10, 4, 1], (n, 5)) * (rng.random((n, 5)) < 0.7)
    X[:, 3] = 3
    return X, (X[:, [0, 1, 2, 2]] + rng.integers(0, 3, (n, 4)) > [1, 1, 3, 5]).astype(int)


@pytest.mark.parametrize("data", [lambda: toy(300), few_ones, many_levels])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize("df", ["mi", "moments"])
def test_p_values_are_those_of_single_tests(data, form, df):
    X, Y = data()
    result = ILFCompo(df).fit(form(X), Y)
    for i, j in itertools.permutations(range(Y.shape[1]), 2):
        one = g_test(Y[:, j], Y[:, i], X[:, result.markov_boundaries_[i]], df=df)
        assert result.p_values_[i, j] == pytest.approx(one.p_value)
        assert result.effects_[i, j] == pytest.approx(one.statistic / (2 * len(X)))
    for i, boundary in enumerate(result.markov_boundaries_):
        np.testing.assert_array_equal(markov_boundary(X, Y[:, i], df=df), boundary)


def test_tables_that_do_not_fit_into_memory_at_once():
    """More than 2^20 cells: labels are split into batches, and columns into blocks."""
    rng = np.random.default_rng(2)
    n, d = 1200, 1200
    X = rng.integers(0, 3, (n, d))
    X[:, 0] = rng.integers(0, 600, n)
    Y = (X[:, :1] % 2) ^ (rng.random((n, 2)) < 0.05)
    result = ILFCompo("mi", 1e-6, max_levels=600).fit(X, Y)
    for i, boundary in enumerate(result.markov_boundaries_):
        few = markov_boundary(X[:, boundary], Y[:, i], 1e-6)
        assert few.tolist() == list(range(len(boundary)))
        assert 0 in boundary


def test_number_of_jobs_does_not_matter():
    X, Y = toy(120)
    expected = ILFCompo("mi").fit(X, Y)
    for n_jobs in (1, 2):
        result = ILFCompo("mi", n_jobs=n_jobs).fit(X, Y)
        np.testing.assert_array_equal(result.p_values_, expected.p_values_)
        assert as_lists(result.markov_boundaries_) == as_lists(expected.markov_boundaries_)


def test_labels_do_not_affect_each_other():
    """40 labels are tested in three batches, 6 of them in one."""
    X, Y = toy(200, m=40)
    some = [0, 3, 15, 16, 31, 39]
    few, many = ILFCompo("mi").fit(X, Y[:, some]), ILFCompo("mi").fit(X, Y)
    np.testing.assert_array_equal(many.p_values_[np.ix_(some, some)], few.p_values_)
    np.testing.assert_array_equal(many.effects_[np.ix_(some, some)], few.effects_)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_levels_are_counted_before_encoding(form):
    """The indicators of a feature with 20 000 levels would need 400 MB."""
    X = form(np.column_stack([np.zeros(20_000, dtype=int), np.arange(20_000)]))
    y = np.arange(20_000) % 2
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"^X\[:, 1\] has 20000 levels: .*max_levels=14; "):
            ILFCompo("moments", max_levels=14).fit(X, y[:, None])
        assert tracemalloc.get_traced_memory()[1] < 100e6
    finally:
        tracemalloc.stop()
