"""Data and reference computations of the tests of ridge models."""

from __future__ import annotations

import warnings
from unittest import mock

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from fgfm._utils.parallel import one_blas_thread
from fgfm.ridge import _fit, fit_ridge_logistic
from fgfm.ridge._design import Design


def binary_rows(n, p, n_classes, seed=0):
    """Binary features with many equal rows, and classes that depend on them."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n, p)).astype(float)
    noise = rng.gumbel(size=(n, n_classes))
    return X, (X @ rng.normal(size=(p, n_classes)) + noise).argmax(axis=1)


def normal_rows(n, p, n_classes, seed=0):
    """Features without equal rows, some with a large mean or scale."""
    X, y = binary_rows(n, p, n_classes, seed)
    rng = np.random.default_rng(seed + 1)
    return (X + 0.3 * rng.normal(size=X.shape)) * 3.0 ** np.arange(p) + 10.0 * np.arange(p), y


def sparse_rows(n=90, p=60, seed=0):
    """Sparse counts, six labels that depend on them, and the number of labels."""
    rng = np.random.default_rng(seed)
    X = sparse.csr_matrix(rng.poisson(6.0 / p, (n, p)).astype(float))
    Y = (X @ rng.normal(size=(p, 6)) + rng.normal(size=(n, 6)) > [0, 0, 1, 2, 3, 5]).astype(int)
    Y[:, 5] = np.arange(n) == 7  # missing in the training rows of one fold
    return X, Y, Y.sum(axis=1)


def large_rows(n=330, p=310, seed=0):
    """The same, of a size at which all models are large ones."""
    return sparse_rows(n, p, seed)


def reference(X, y, penalty, weight=None):
    """Fit scikit-learn's model, as accurately as it can."""
    model = LogisticRegression(C=0.5 / penalty, solver="newton-cholesky", tol=1e-10, max_iter=500)
    with one_blas_thread, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it stops at the level of rounding
        return model.fit(X, y, sample_weight=weight)


def clipped_loss(model, X, y, weight=None):
    """Return the mean log-loss of a model; unknown classes have the probability 0."""
    proba = np.zeros(len(y))
    for k, name in enumerate(model.classes_):
        proba[y == name] = model.predict_proba(X[y == name])[:, k] if (y == name).any() else 0.0
    return np.average(-np.log(np.clip(proba, 1e-15, 1 - 1e-15)), weights=weight)


def reference_losses(X, y, folds, penalties, weight=None):
    """Return the test losses (folds, L) of scikit-learn's models."""
    weight = np.ones(len(y)) if weight is None else weight
    return np.array(
        [
            [
                clipped_loss(
                    reference(X[train], y[train], penalty, weight[train]),
                    X[test],
                    y[test],
                    weight[test],
                )
                for penalty in penalties
            ]
            for train, test in folds
        ]
    )


def assert_minimum(model, X, y, weight=None, extra=None, atol=1e-6):
    """Assert that the gradient of the convex objective is 0 at the weights of a `RidgeFit`."""
    weight = np.ones(len(y)) if weight is None else weight
    wide = X if extra is None else sparse.hstack([X, sparse.csr_array(extra[:, None] * 1.0)])
    residual = model.predict_proba(X, extra) - (y[:, None] == model.classes)  # (n, K)
    residual = weight[:, None] * (residual[:, 1:] if len(model.classes) == 2 else residual)
    np.testing.assert_allclose(residual.sum(axis=0), 0.0, atol=atol)
    slope = np.asarray((wide.T @ residual).T) + 2.0 * model.penalty * model.coef
    np.testing.assert_allclose(slope, 0.0, atol=atol)


def assert_tried_losses(found, whole, atol):
    """Assert that the penalties that were tried have these losses, the least among them."""
    tried = np.isfinite(found).all(axis=0)
    np.testing.assert_allclose(found[:, tried], whole[:, tried], atol=atol)
    assert np.isinf(found[:, ~tried]).all()
    assert tried[whole.mean(axis=0).argmin()]


class LargeDesign(Design):
    """Features whose models are all fitted by conjugate gradients."""

    def is_small(self, n_classes, extra):
        return False


def fit_as_large(X, targets, **options):
    """Fit small models by the solver of large ones."""
    with mock.patch.object(_fit, "Design", LargeDesign):
        fits = fit_ridge_logistic(X, targets, **{"random_state": 0} | options)
    assert all(fit.n_failed == 0 for fit in fits)
    return fits
