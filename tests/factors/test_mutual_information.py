"""Tests of all pairs of labels given Markov boundaries."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from fgfm.factors import ILFCompo, MutualInformation, g_test, markov_boundary


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


def test_p_values_are_those_of_single_tests():
    X, Y = toy(300)
    result = MutualInformation().pairs(X, Y)
    for i, j in itertools.permutations(range(6), 2):
        one = g_test(Y[:, j], Y[:, i], X[:, result.markov_boundaries[i]])
        assert result.p_values[i, j] == pytest.approx(one.p_value)
        assert result.effects[i, j] == pytest.approx(one.statistic / 600)


def test_number_of_jobs_does_not_matter():
    X, Y = toy(120)
    test = MutualInformation()
    expected = test.pairs(X, Y)
    for n_jobs in (1, 2):
        found = test.pairs(X, Y, n_jobs=n_jobs)
        np.testing.assert_array_equal(found.p_values, expected.p_values)
        assert as_lists(found.markov_boundaries) == as_lists(expected.markov_boundaries)


def test_features_with_different_numbers_of_levels():
    """A feature with three levels in one label's boundary does not affect another label."""
    rng = np.random.default_rng(50)
    n = 150
    X = np.column_stack([rng.integers(0, 2, (n, 4)), rng.integers(0, 3, (n, 1))])
    Y = np.empty((n, 6), dtype=int)
    for i in range(6):
        logit = (X[:, i % 4] - 0.5) * 1.2 + (X[:, (i + 1) % 4] - 0.5)
        logit = logit + ((X[:, 4] - 1) * 1.2 if i % 2 else 0.0)
        Y[:, i] = rng.random(n) < 1.0 / (1.0 + np.exp(-1.3 * logit))
    Y[:, 1] |= Y[:, 0] & (rng.random(n) < 0.5)
    test = MutualInformation(df="moments")
    one, two = test.pairs(X, Y), test.pairs(X, Y, n_jobs=2)
    np.testing.assert_array_equal(one.p_values, two.p_values)
    np.testing.assert_array_equal(one.effects, two.effects)
    assert as_lists(one.markov_boundaries) == as_lists(two.markov_boundaries)
    for i, boundary in enumerate(one.markov_boundaries):
        np.testing.assert_array_equal(markov_boundary(X, Y[:, i], df="moments"), boundary)


def test_labels_do_not_affect_each_other():
    """40 labels are tested in three batches, 6 of them in one."""
    X, Y = toy(200, m=40)
    some = [0, 3, 15, 16, 31, 39]
    few, many = MutualInformation().pairs(X, Y[:, some]), MutualInformation().pairs(X, Y)
    np.testing.assert_array_equal(many.p_values[np.ix_(some, some)], few.p_values)
    np.testing.assert_array_equal(many.effects[np.ix_(some, some)], few.effects)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_levels_are_counted_before_encoding(form):
    """The indicators of a feature with 20 000 levels would need 400 MB."""
    X = form(np.column_stack([np.zeros(20_000, dtype=int), np.arange(20_000)]))
    y = np.arange(20_000) % 2
    tracemalloc.start()
    try:
        for fit in (
            ILFCompo("moments", max_levels=14).fit,
            MutualInformation(max_levels=14).pairs,
        ):
            with pytest.raises(
                ValueError, match=r"^X\[:, 1\] has 20000 levels: .*max_levels=14; "
            ):
                fit(X, y[:, None])
        assert tracemalloc.get_traced_memory()[1] < 100e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"df": "chi"}, r"^df is 'chi': it must be one of 'mi', 'moments'$"),
        ({"alpha": 2}, r"^alpha is 2: it must be a number in \(0, 1\)$"),
    ],
)
def test_invalid_parameters_raise(options, message):
    with pytest.raises(ValueError, match=message):
        MutualInformation(**options).pairs(*toy(20))
