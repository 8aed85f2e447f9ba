"""Small multi-label data sets, folds and comparisons of models, shared by several test files."""

from __future__ import annotations

import numpy as np


def make_data(n=60, m=4, n_features=3, noise=0.7, seed=0):
    """Draw features, and labels that depend on them and on each other."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    shared = noise * rng.normal(size=(n, 1))
    score = X @ rng.normal(size=(n_features, m)) + shared + noise * rng.normal(size=(n, m))
    return X, (score > 0.4).astype(int)


def interleaved_folds(n, k=3):
    """Return k folds as pairs of row indices: row i is a test row of fold i modulo k."""
    of_row = np.arange(n) % k
    return [(np.flatnonzero(of_row != f), np.flatnonzero(of_row == f)) for f in range(k)]


X, Y = make_data()


def close(actual, expected, atol=1e-12):
    """Assert that arrays are equal up to an absolute tolerance."""
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=atol)


def assert_same(one, other, X=X):
    """Assert that two classifiers predict the same bits."""
    assert (one.predict(X) == other.predict(X)).all()
    assert (one.predict_proba(X) == other.predict_proba(X)).all()
    assert (one.expected_f(X) == other.expected_f(X)).all()
