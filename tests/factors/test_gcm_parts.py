"""The regressions and distributions of GCM, against independent implementations."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.linear_model import LogisticRegression, Ridge

from fgfm.factors._regression import (
    _feature_basis,
    _logistic_residuals,
    _ridge_residuals,
    standardise,
)
from fgfm.factors._residual_products import (
    pairwise_p_values,
    residual_moments,
    signed_normal,
    two_sided,
)


def sample(n, d, m=2):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    Y = (X[:, :m] + rng.normal(size=(n, m)) > 0).astype(float)
    U, s = _feature_basis(standardise(X), rng)
    return U, s, Y


def test_ridge_residuals_are_those_of_fits_without_the_row():
    U, s, Y = sample(60, 4)
    R, penalties = _ridge_residuals(U, s, Y, 2)
    for i, row in itertools.product(range(2), range(0, 60, 7)):
        rest = np.arange(60) != row
        model = Ridge(penalties[i]).fit((U * s)[rest], Y[rest, i])
        left_out = Y[row, i] - model.predict((U * s)[[row]])[0]
        assert R[row, i] == pytest.approx(left_out, rel=1e-9)


def test_logistic_residuals_are_close_to_fits_without_the_row():
    U, s, Y = sample(100, 2)
    _, penalties = _ridge_residuals(U, s, Y, 2)
    none, bad = np.empty((100, 0)), np.ones_like(Y)  # logistic regression is better than `bad`
    R, index = _logistic_residuals(U, s, Y, none, bad, penalties, None)
    assert index.shape == (100, 2)
    for row in range(0, 100, 25):
        rest = np.arange(100) != row
        errors = []
        for share in (1.0, 0.1, 0.01):
            C = 1.0 / (penalties[0] * np.var(Y[:, 0]) * share)
            model = LogisticRegression(C=C, tol=1e-8).fit((U * s)[rest], Y[rest, 0])
            left_out = Y[row, 0] - model.predict_proba((U * s)[[row]])[0, 1]
            errors.append(abs(R[row, 0] - left_out))
        assert min(errors) < 0.02
    good = np.full_like(Y, 1e-3)
    kept, _ = _logistic_residuals(U, s, Y, none, good, penalties, None)
    np.testing.assert_array_equal(kept, good)


def test_many_features_get_a_logistic_curve_through_the_linear_predictions():
    """2000 rows x 1001^2 x 11 labels are too many for logistic regressions on all features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 1000))
    Y = (rng.random((2000, 11)) < 1.0 / (1.0 + np.exp(-8.0 * X[:, :1]))).astype(float)
    U, s = _feature_basis(X, rng)
    noise = rng.choice([-1.0, 1.0], (2000, 4))
    R, penalties = _ridge_residuals(U, s, np.hstack([Y, noise]), 11)
    curved, index = _logistic_residuals(U, s, Y, noise, R, penalties, None)
    assert index.shape == (2000, 0)
    assert ((curved[:, :11] ** 2).sum(axis=0) < (R[:, :11] ** 2).sum(axis=0)).all()
    np.testing.assert_array_equal(curved[:, 11:], R[:, 11:])


def test_wide_sparse_features_have_the_same_basis():
    X = sparse.random_array((30, 80), density=0.2, format="csr", rng=np.random.default_rng(32))
    U, s = _feature_basis(X, np.random.default_rng(0))
    V, t = _feature_basis(X.toarray(), np.random.default_rng(0))
    np.testing.assert_allclose(s, t, rtol=1e-9)
    np.testing.assert_allclose(np.abs(np.sum(U * V, axis=0)), 1.0, rtol=1e-9)


# The null distribution


@pytest.mark.parametrize("rate", [0.01, 0.9, 7.0, 200.0])
def test_counts_are_poisson(rate):
    count = np.arange(0.0, math.ceil(rate + 6.0 * math.sqrt(rate) + 3.0))
    above, below = stats.poisson.sf(count - 1, rate), stats.poisson.cdf(count, rate)
    expected = np.minimum(1.0, 2.0 * np.minimum(above, below))
    cumulant = np.full_like(count, rate)
    np.testing.assert_allclose(
        two_sided(count - rate, cumulant, cumulant, cumulant), expected, rtol=1e-9
    )
    # mirrored and scaled
    mirrored = two_sided(3.0 * (rate - count), 9.0 * cumulant, -27.0 * cumulant, 81.0 * cumulant)
    np.testing.assert_allclose(mirrored, expected, rtol=1e-9)


def test_without_skewness_it_is_normal():
    S = np.linspace(-6.0, 6.0, 49)
    one, none = np.ones_like(S), np.zeros_like(S)
    expected = 2.0 * stats.norm.sf(np.abs(S))
    np.testing.assert_allclose(two_sided(S, one, none, none), expected, rtol=0.01)
    np.testing.assert_allclose(signed_normal(S, one, none, none), S, atol=2e-3)


@pytest.mark.parametrize("z", [-25.0, -6.0, -1.0, 0.3, 2.0, 6.0, 25.0])
def test_large_counts(z):
    """Gamma functions up to 10^4, an expansion beyond: no jump, and positive in far tails."""
    rates = np.array([9.99e3, 1.001e4])
    p = two_sided(z * np.sqrt(rates), rates, rates, rates)
    assert p[0] == pytest.approx(p[1], rel=0.15 if abs(z) > 6.0 else 0.03)
    assert (p > 0.0).all()


def test_if_skewness_cancels_a_single_row_decides():
    """A product that is 1 or -1 with probability 0.01 each, else 0."""
    k2, k3, k4 = np.array(0.02), np.array(0.0), np.array(0.02 - 3 * 0.02**2)
    for S in (1.0, -1.0):
        assert 0.02 <= two_sided(np.array(S), k2, k3, k4) <= 0.05
        assert np.sign(signed_normal(np.array(S), k2, k3, k4)) == S


def test_mean_by_plain_loops():
    rng = np.random.default_rng(0)
    Y = (rng.random((400, 5)) < 0.4).astype(float)
    R = Y - 0.4
    p_values = pairwise_p_values(residual_moments(Y, R), []).p_values
    for i, j in itertools.combinations(range(5), 2):
        products = [float(a) * float(b) for a, b in zip(R[:, i], R[:, j], strict=True)]
        T = sum(products) / math.sqrt(sum(product**2 for product in products))
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
    result = pairwise_p_values(residuals, [(np.arange(n) >= half).astype(np.int64)])
    products = residuals.values[:, 0] * residuals.values[:, 1]
    Q = (products[:half].mean() - products[half:].mean()) ** 2 / (2.0 * 0.25**2 / half)
    expected = 1.0 - (1.0 - stats.chi2.sf(Q, 1)) ** 2
    assert result.p_values[0, 1] == pytest.approx(expected, rel=0.2)
    assert result.effects[0, 1] == pytest.approx(math.sqrt((Q - 1.0) / n), rel=0.1)
    one_group = pairwise_p_values(residuals, [np.zeros(n, dtype=int)])  # is no test
    assert one_group.p_values[0, 1] == pairwise_p_values(residuals, []).p_values[0, 1]


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
