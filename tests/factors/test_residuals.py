"""Residuals of labels: conditional moments, and cross-fitting of estimators."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold

from fgfm.factors._residuals import cross_fitted_probabilities, residual_moments


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


def test_each_row_is_predicted_without_itself():
    rng = np.random.default_rng(5)
    X, Y = rng.normal(size=(60, 3)), rng.integers(0, 2, (60, 2)).astype(float)
    steps = []
    P = cross_fitted_probabilities(
        LinearRegression(), X, Y, KFold(3), 0, None, lambda: steps.append(1)
    )
    for train, test in KFold(3).split(X):
        expected = LinearRegression().fit(X[train], Y[train]).predict(X[test])
        np.testing.assert_allclose(P[test], expected)
    assert len(steps) == 2
