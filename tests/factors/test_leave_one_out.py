"""Ridge and logistic regressions with leave-one-out residuals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge

from fgfm.factors._leave_one_out import (
    combine_columns,
    feature_basis,
    logistic_residuals,
    ridge_residuals,
    scale,
    standardise,
)


def sample(n=60, d=4, m=2):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    Y = (X[:, :m] + rng.normal(size=(n, m)) > 0).astype(float)
    return standardise(X), Y


def test_ridge_residuals_are_those_of_fits_without_the_row():
    X, Y = sample()
    U, s = feature_basis(X, np.random.default_rng(0))
    R, penalties = ridge_residuals(U, s, Y, 2)
    design = U * s
    for i in range(2):
        for row in range(0, 60, 7):
            rest = np.arange(60) != row
            model = Ridge(penalties[i]).fit(design[rest], Y[rest, i])
            left_out = Y[row, i] - model.predict(design[[row]])[0]
            assert R[row, i] == pytest.approx(left_out, rel=1e-9)


def test_each_label_has_its_own_penalty():
    rng = np.random.default_rng(1)
    X = standardise(rng.normal(size=(200, 10)))
    Y = np.column_stack([X[:, 0] > 0, rng.random(200) < 0.5]).astype(float)
    U, s = feature_basis(X, rng)
    _, penalties = ridge_residuals(U, s, Y, 2)
    assert penalties[0] < penalties[1]


def test_logistic_residuals_are_close_to_fits_without_the_row():
    X, Y = sample(n=100, d=2)
    U, s = feature_basis(X, np.random.default_rng(0))
    none = np.empty((100, 0))
    ridge, penalties = ridge_residuals(U, s, Y, 2)
    bad = np.ones_like(ridge)  # so that the logistic regression is always better
    R, index = logistic_residuals(U, s, Y, none, bad, penalties, None)
    assert index.shape == (100, 2)
    design = U * s
    errors = []
    for row in range(0, 100, 25):
        rest = np.arange(100) != row
        fits = [
            LogisticRegression(C=1.0 / (penalties[0] * np.var(Y[:, 0]) * share), tol=1e-8).fit(
                design[rest], Y[rest, 0]
            )
            for share in (1.0, 0.1, 0.01)
        ]
        residuals = [Y[row, 0] - fit.predict_proba(design[[row]])[0, 1] for fit in fits]
        errors.append(min(abs(R[row, 0] - residual) for residual in residuals))
    assert max(errors) < 0.02


def test_better_ridge_residuals_are_kept():
    X, Y = sample()
    U, s = feature_basis(X, np.random.default_rng(0))
    good = np.full((60, 2), 1e-3)
    R, _ = logistic_residuals(U, s, Y, np.empty((60, 0)), good, np.ones(2), None)
    np.testing.assert_array_equal(R, good)


def test_wide_sparse_features_have_the_same_basis():
    X = sparse.random_array((30, 80), density=0.2, format="csr", rng=np.random.default_rng(32))
    U, s = feature_basis(X, np.random.default_rng(0))
    V, t = feature_basis(X.toarray(), np.random.default_rng(0))
    np.testing.assert_allclose(s, t, rtol=1e-9)
    np.testing.assert_allclose(np.abs(np.sum(U * V, axis=0)), 1.0, rtol=1e-9)


def test_dense_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(5.0, 3.0, (100, 4)) * [1e-300, 1.0, 1e300, 0.0]
    X[:, 3] = 0.1  # constant up to rounding
    Z = standardise(X)
    np.testing.assert_allclose(Z[:, :3].mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(Z[:, :3].std(axis=0), 1.0)
    assert (Z[:, 3] == 0.0).all()


def test_sparse_columns_are_not_centred():
    X = sparse.random_array((80, 5), density=0.3, format="csr", rng=np.random.default_rng(2))
    Z = standardise(X)
    assert sparse.issparse(Z)
    assert Z.nnz == X.nnz
    np.testing.assert_allclose(Z.toarray().std(axis=0), 1.0)
    np.testing.assert_allclose(abs(scale(X)).max(axis=0).toarray().ravel(), 1.0)


def test_combined_columns():
    Z = np.random.default_rng(3).normal(size=(10, 6))
    rng = np.random.default_rng(0)
    assert combine_columns(Z, 6, rng) is Z
    few = combine_columns(Z, 4, rng)
    assert few.shape == (10, 4)
    np.testing.assert_allclose(np.abs(np.linalg.lstsq(Z, few, rcond=None)[0]), 1.0)


def test_many_features_get_a_logistic_curve_through_the_linear_predictions():
    """2000 rows x 1001^2 x 11 labels are too many for logistic regressions on all features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 1000))
    Y = (rng.random((2000, 11)) < 1.0 / (1.0 + np.exp(-8.0 * X[:, :1]))).astype(float)
    U, s = feature_basis(X, rng)
    noise = rng.choice([-1.0, 1.0], (2000, 4))
    R, penalties = ridge_residuals(U, s, np.hstack([Y, noise]), 11)
    found, index = logistic_residuals(U, s, Y, noise, R, penalties, None)
    assert index.shape == (2000, 0)
    assert ((found[:, :11] ** 2).sum(axis=0) < (R[:, :11] ** 2).sum(axis=0)).all()
    np.testing.assert_array_equal(found[:, 11:], R[:, 11:])
