"""Scaling of feature columns."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from fgfm.factors._scaling import combine_columns, scale, standardise


def test_dense_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(5.0, 3.0, (100, 4)) * [1e-300, 1.0, 1e300, 0.0]
    X[:, 3] = 0.1  # constant up to rounding
    Z = standardise(X)
    np.testing.assert_allclose(Z[:, :3].mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(Z[:, :3].std(axis=0), 1.0)
    assert (Z[:, 3] == 0.0).all()


def test_missing_values_are_kept():
    X = np.random.default_rng(1).normal(size=(50, 2))
    X[::5, 0] = np.nan
    Z = standardise(X)
    np.testing.assert_array_equal(np.isnan(Z), np.isnan(X))
    assert np.nanstd(Z[:, 0]) == pytest.approx(1.0)


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
