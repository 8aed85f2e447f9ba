"""GCM: level, power, estimators and types of features."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from fgfm.factors import ILFCompo


def gcm(X, Y, seed=0, n_jobs=None):
    """Return the fitted object, which has the p-values and the effects."""
    return ILFCompo("gcm", random_state=seed, n_jobs=n_jobs).fit(X, Y)


def confounded(rng, n, m=6, d=4):
    """Return labels that depend on the features, not linearly, and on nothing else."""
    X = rng.normal(size=(n, d))
    logits = X @ rng.normal(size=(d, m)) + np.sin(2.0 * X[:, :1] + 6.0 * rng.random(m))
    return X, (rng.random((n, m)) < 1.0 / (1.0 + np.exp(-logits))).astype(int)


def toy_network(rng, n):
    """Return the paper's first structure: four pairs given four of six binary features."""
    X = (rng.random((n, 4)) < rng.random(4)).astype(int)
    cell = X @ 2 ** np.arange(4)
    Y = np.empty((n, 8), dtype=int)
    for first in range(0, 8, 2):
        Y[:, first] = rng.random(n) < rng.random(16)[cell]
        Y[:, first + 1] = rng.random(n) < rng.random((2, 16))[Y[:, first], cell]
    return np.hstack([X, rng.integers(0, 2, (n, 2))]), Y


def steep(rng, logistic):
    """Return 12 labels with one shared direction: a steep sigmoid, or a step with noise."""
    X = rng.normal(size=(600, 10 if logistic else 5))
    total = X.sum(axis=1, keepdims=True)
    p = 1.0 / (1.0 + np.exp(-3.0 * total / 10**0.5)) if logistic else np.where(total > 0, 0.9, 0.1)
    return X, (rng.random((600, 12)) < p).astype(int)


def upper(matrix):
    return matrix[np.triu_indices(len(matrix), 1)]


# Level


def test_rare_labels_without_a_common_row_are_not_dependent():
    """The normal approximation would give p = 0.0001."""
    Y = np.zeros((1000, 3), dtype=int)
    Y[:30, 0] = Y[30:60, 1] = Y[60:63, 2] = 1
    X = np.random.default_rng(5).normal(size=(1000, 2))
    p_values = upper(gcm(X, Y).p_values_)
    assert (p_values > 0.3).all()


@pytest.mark.parametrize(("together", "dependent"), [(0, False), (1, False), (3, True)])
def test_labels_with_three_rows(together, dependent):
    Y = np.zeros((1000, 2), dtype=int)
    Y[:3, 0] = 1
    Y[3 - together : 6 - together, 1] = 1
    X = np.random.default_rng(6).normal(size=(1000, 2))
    p = gcm(X, Y).p_values_[0, 1]
    assert p < 1e-4 if dependent else p > 0.01


def test_single_row_does_not_join_labels():
    """A label with one positive row, in which a well predicted label is not as predicted."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(500, 2))
    y = ((X[:, 0] > 0) ^ (rng.random(500) < 0.02)).astype(int)
    B = np.zeros((500, 40), dtype=int)
    B[rng.integers(0, 500, 40), np.arange(40)] = 1
    p_values = gcm(X, np.column_stack([y, B])).p_values_
    assert p_values[0, 1:].min() > 1e-3  # the normal approximation gives 3e-34
    assert np.mean(p_values[0, 1:] <= 0.01) <= 0.05


@pytest.mark.slow
def test_level_under_nonlinear_confounding():
    p = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        p.append(upper(gcm(*confounded(rng, 300, m=10), seed).p_values_))
    p = np.concatenate(p)  # 360 pairs
    for alpha in (0.01, 0.05, 0.2):
        error = math.sqrt(alpha * (1.0 - alpha) / len(p))
        assert np.mean(p <= alpha) < alpha + 3.0 * error
    assert np.mean(p <= 0.5) > 0.3  # and not by never rejecting


def test_level_with_many_labels():
    """45 pairs: the quick version of the test above."""
    X, Y = confounded(np.random.default_rng(0), 300, m=10)
    p = upper(gcm(X, Y).p_values_)
    assert np.mean(p <= 0.05) <= 0.15
    assert np.mean(p <= 0.5) > 0.2


@pytest.mark.slow
def test_level_of_rare_labels():
    p = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(500, 3))
        odds = np.exp(X @ rng.normal(size=(3, 12)) - rng.uniform(3.0, 5.0, 12))
        Y = (rng.random((500, 12)) < odds / (1.0 + odds)).astype(int)
        p.append(upper(gcm(X, Y, seed).p_values_))
    p = np.concatenate(p)  # 264 pairs
    assert np.mean(p <= 0.01) <= 0.03
    assert np.mean(p <= 0.05) <= 0.09


@pytest.mark.slow
@pytest.mark.parametrize("logistic", [True, False])
def test_one_steep_direction_for_all_labels(logistic):
    """Ridge and forest alone reject half of the pairs of one case and all of the other."""
    p = []
    for seed in range(3):
        X, Y = steep(np.random.default_rng([seed, 28]), logistic)
        p.append(upper(gcm(X, Y, seed).p_values_))
    assert np.mean(np.concatenate(p) <= 0.01) <= 0.08


# Power


@pytest.mark.slow
def test_toy_networks():
    """Structure 1 at n = 1000: finds at least 0.8 of the true pairs, and 0.02 false edges."""
    true = np.zeros((8, 8), dtype=bool)
    true[[0, 2, 4, 6], [1, 3, 5, 7]] = True
    found, false = [], []
    for seed in range(6):
        X, Y = toy_network(np.random.default_rng([seed, 8]), 1000)
        edges = upper(gcm(X, Y, seed).p_values_) <= 0.01
        found.append(edges[upper(true)])
        false.append(edges[~upper(true)])
    assert np.mean(found) >= 0.8
    assert np.mean(false) <= 0.02


def test_copies_of_a_label():
    X, Y = confounded(np.random.default_rng(10), 300, m=2)
    Y = np.column_stack([Y, Y[:, 0], 1 - Y[:, 0]])
    result = gcm(X, Y)
    assert (result.p_values_[[0, 0, 2], [2, 3, 3]] < 1e-15).all()
    assert (result.effects_[[0, 0, 2], [2, 3, 3]] > 0.7).all()


def test_dependence_whose_sign_changes_with_x():
    rng = np.random.default_rng(9)
    X = rng.normal(size=(600, 4))
    Y = rng.integers(0, 2, (600, 4))
    Y[:, 1] = np.where((X[:, 0] > 0) ^ (rng.random(600) < 0.2), Y[:, 0], 1 - Y[:, 0])
    result = gcm(X, Y)
    assert abs(np.corrcoef(Y[:, 0], Y[:, 1])[0, 1]) < 0.1  # the mean of the products is small
    assert result.p_values_[0, 1] < 1e-6
    assert result.effects_[0, 1] > 0.3
    others = upper(result.p_values_)[1:]
    assert (others > 0.01 / len(others)).all()


# Results


def test_symmetric_with_nan_on_the_diagonal():
    result = gcm(*confounded(np.random.default_rng(11), 150))
    assert result.test_ == "gcm"
    assert result.markov_boundaries_ is None
    for matrix in (result.p_values_, result.effects_):
        assert matrix.shape == (6, 6)
        np.testing.assert_array_equal(matrix, matrix.T)
        assert np.isnan(np.diag(matrix)).all()
        assert ((upper(matrix) >= 0.0) & (upper(matrix) <= 1.0)).all()


def test_constant_label_depends_on_nothing():
    X, Y = confounded(np.random.default_rng(12), 200, m=4)
    reference = gcm(X, Y)
    wider = np.insert(Y, [1, 4], [0, 1], axis=1)
    result = gcm(X, wider)
    others = [0, 2, 3, 4]
    np.testing.assert_array_equal(result.p_values_[np.ix_(others, others)], reference.p_values_)
    for constant in (1, 5):
        rest = np.delete(result.p_values_[constant], constant)
        assert (rest == 1.0).all()
        assert (np.delete(result.effects_[constant], constant) == 0.0).all()


@pytest.mark.parametrize("Y", [[0, 1, 1, 0, 1], [[0], [1], [1], [0], [1]], [[0, 0]] * 5])
def test_nothing_to_test(Y):
    p_values = gcm(np.arange(5.0)[:, None], Y).p_values_
    assert np.isnan(np.diag(p_values)).all()
    assert (upper(p_values) == 1.0).all()


def test_more_labels_than_targets_of_the_forest():
    X, Y = confounded(np.random.default_rng(19), 200, m=40)
    Y[:, 39] = Y[:, 0]
    p_values = gcm(X, Y).p_values_
    assert p_values[0, 39] < 1e-10
    assert np.mean(upper(p_values) <= 0.01) < 0.03


def test_number_of_jobs_does_not_matter():
    X, Y = confounded(np.random.default_rng(17), 150, m=4)
    one = gcm(X, Y)
    two = gcm(X, Y, n_jobs=2)
    np.testing.assert_array_equal(one.p_values_, two.p_values_)


def test_random_state():
    X, Y = confounded(np.random.default_rng(18), 150, m=3)
    one, two, other = (gcm(X, Y, seed).p_values_ for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, two)
    assert (upper(one) != upper(other)).any()


# Features


def test_constant_features():
    rng = np.random.default_rng(14)
    Y = rng.integers(0, 2, (200, 3))
    Y[:, 1] = Y[:, 0] ^ (rng.random(200) < 0.2)
    p_values = gcm(np.ones((200, 2)), Y).p_values_
    assert p_values[0, 1] < 1e-6
    assert (p_values[2, :2] > 0.001).all()


def bands(rng, X, width):
    """Return two labels that depend on the absolute value of the first feature."""
    p = np.where(np.abs(X[:, :1]) < width, 0.9, 0.1)
    return (rng.random((len(X), 2)) < p).astype(int)


def test_units_and_offsets_of_features_do_not_matter():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    Y = bands(rng, X, 0.67)
    expected = gcm(X, Y).p_values_[0, 1]
    assert expected > 0.01
    for scaled in (X * 2.0**-40, X * 2.0**1000):
        assert gcm(scaled, Y).p_values_[0, 1] == expected
    for moved in (X * 1e-300, X + 1.7e9, np.column_stack([X, np.full(300, 0.1)])):
        assert gcm(moved, Y).p_values_[0, 1] > 0.01


@pytest.mark.slow
def test_units_of_sparse_features_do_not_matter():
    """With 13 000 empty columns the features are too many to be densified."""
    rng = np.random.default_rng(30)
    X = np.where(rng.random((400, 3)) < 0.5, 0.0, rng.normal(size=(400, 3)))
    Y = bands(rng, X, 0.2)
    wide = sparse.hstack([sparse.csr_array(X), sparse.csr_array((400, 13_000))], format="csr")
    one, two = (gcm(features, Y).p_values_[0, 1] for features in (wide, wide * 2.0**-60))
    assert one == two > 0.01


@pytest.mark.parametrize("as_sparse", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_sparse_equals_dense(as_sparse):
    rng = np.random.default_rng(15)
    X, Y = confounded(rng, 150, m=3)
    X[np.abs(X) < 0.5] = 0.0
    dense = gcm(X, Y)
    result = gcm(as_sparse(X), as_sparse(Y))
    np.testing.assert_array_equal(result.p_values_, dense.p_values_)


@pytest.mark.slow
def test_many_rows_and_sparse_features():
    """More than 1000 rows and features: the regression uses leading components."""
    rng = np.random.default_rng(16)
    X = sparse.random_array((1100, 5000), density=2e-3, format="csr", rng=rng)
    Y = rng.integers(0, 2, (1100, 4))
    Y[:, 1] = Y[:, 0] ^ (rng.random(1100) < 0.1)
    p_values = gcm(X, Y).p_values_
    assert p_values[0, 1] < 1e-6
    assert (p_values[2:, :2] > 1e-3).all()


def test_wide_sparse_features_are_not_densified():
    n, d = 200, 60_000
    rng = np.random.default_rng(31)
    X = sparse.random_array((n, d), density=2e-4, format="csr", rng=rng)
    Y = rng.integers(0, 2, (n, 3))
    tracemalloc.start()
    try:
        p_values = gcm(X, Y).p_values_
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (upper(p_values) > 1e-3).all()
    assert peak < n * d * 4  # a dense copy in single precision


# Errors


def test_invalid_data_raise():
    X, Y = confounded(np.random.default_rng(26), 20, m=2)
    wrong = Y.copy()
    wrong[4, 1] = 2
    with pytest.raises(ValueError, match=r"Y\[4, 1\] is 2: labels must be 0 or 1"):
        gcm(X, wrong)
    with pytest.raises(ValueError, match="Y has 19 rows and X has 20"):
        gcm(X, Y[:19])
