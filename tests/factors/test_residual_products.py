"""The statistics of GCM from given residuals, against plain loops."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from fgfm.factors._residual_products import pairwise_p_values, residual_moments


def given_residuals(rng, n=400, m=5, p=0.4):
    """Return residuals of labels about their true probability."""
    Y = (rng.random((n, m)) < p).astype(float)
    return residual_moments(Y, Y - p)


def test_mean_by_plain_loops():
    residuals = given_residuals(np.random.default_rng(0))
    R = residuals.values
    p_values = pairwise_p_values(residuals, []).p_values
    for i, j in itertools.combinations(range(R.shape[1]), 2):
        products = [float(a) * float(b) for a, b in zip(R[:, i], R[:, j], strict=True)]
        mean = sum(products) / len(R)
        square = sum(product**2 for product in products) / len(R)
        T = math.sqrt(len(R)) * mean / math.sqrt(square)
        # The Poisson distribution keeps the skewness, the normal one does not.
        assert p_values[i, j] == pytest.approx(2.0 * stats.norm.sf(abs(T)), rel=0.1, abs=0.02)


def test_heterogeneity_by_plain_loops():
    """For two groups Cochran's Q is the squared difference of their means, standardised."""
    rng = np.random.default_rng(1)
    n, half = 4000, 2000
    Y = (rng.random((n, 2)) < 0.5).astype(float)
    agree = rng.random(n) < np.where(np.arange(n) < half, 0.5 + 0.06, 0.5 - 0.06)
    Y[:, 1] = np.where(agree, Y[:, 0], 1.0 - Y[:, 0])
    residuals = residual_moments(Y, Y - 0.5)
    groups = (np.arange(n) >= half).astype(np.int64)
    result = pairwise_p_values(residuals, [groups])
    products = residuals.values[:, 0] * residuals.values[:, 1]
    difference = products[:half].mean() - products[half:].mean()
    Q = difference**2 / (2.0 * 0.25**2 / half)
    expected = 1.0 - (1.0 - stats.chi2.sf(Q, 1)) ** 2
    assert result.p_values[0, 1] == pytest.approx(expected, rel=0.2)
    assert result.effects[0, 1] == pytest.approx(math.sqrt((Q - 1.0) / n), rel=0.1)


def test_order_of_labels_and_rows_does_not_matter():
    rng = np.random.default_rng(3)
    residuals = given_residuals(rng, p=0.2)
    n, m = residuals.values.shape
    groups = rng.integers(0, 4, n)
    result = pairwise_p_values(residuals, [groups])
    labels, rows = rng.permutation(m), rng.permutation(n)

    def permuted(array):
        return np.ascontiguousarray(array[np.ix_(rows, labels)])

    moved = residuals._replace(
        values=permuted(residuals.values),
        variance=permuted(residuals.variance),
        third=permuted(residuals.third),
        fourth=permuted(residuals.fourth),
        fitted=permuted(residuals.fitted),
    )
    again = pairwise_p_values(moved, [groups[rows]])
    both = np.ix_(labels, labels)
    np.testing.assert_allclose(again.p_values, result.p_values[both], rtol=1e-9)
    np.testing.assert_allclose(again.effects, result.effects[both], rtol=1e-7, atol=1e-9)


def test_one_group_is_no_test():
    residuals = given_residuals(np.random.default_rng(4))
    n = len(residuals.values)
    plain = pairwise_p_values(residuals, [])
    grouped = pairwise_p_values(residuals, [np.zeros(n, dtype=int)])
    np.testing.assert_array_equal(grouped.p_values, plain.p_values)


def test_moments_are_those_of_bernoulli_variables():
    rng = np.random.default_rng(4)
    p = np.where(rng.random((20000, 1)) < 0.5, 0.1, 0.6)
    Y = (rng.random((20000, 1)) < p).astype(float)
    residuals = residual_moments(Y, Y - p)
    v = p * (1.0 - p)
    np.testing.assert_allclose(residuals.variance, v, rtol=0.1)
    np.testing.assert_allclose(residuals.third, v * (1.0 - 2.0 * p), rtol=0.15)
    np.testing.assert_allclose(residuals.fourth, v * (1.0 - 3.0 * v), rtol=0.15)
    assert residuals.variance.sum() == pytest.approx(np.sum(residuals.values**2))
