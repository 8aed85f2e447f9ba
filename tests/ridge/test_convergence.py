"""Small models: convergence in hard cases, and rows with more columns than rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fgfm.ridge import RidgeLogistic
from ridge_cases import binary_rows, fit_as_large, normal_rows


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_separable_data_converge(scale, n_classes):
    y = np.arange(60) % n_classes
    X = scale * np.column_stack([y, np.random.default_rng(0).normal(size=60)])
    for paper in (False, True):
        model = RidgeLogistic(penalize_intercept=paper, reference_class=paper, random_state=0).fit(
            X, y
        )  # without a warning
        assert 1 <= model.n_iter_ < 60
        if scale >= 1.0:
            assert model.penalty_ == 1e-4
            assert model.score(X, y) == 1.0


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize(
    ("seed", "paper", "penalty"), [(30, True, None), (160, False, 7.8), (1232, False, 0.00316)]
)
def test_diverging_newton_steps_are_damped(large, seed, paper, penalty):
    # Columns of very different scale, for which undamped steps diverged; by both solvers.
    rng = np.random.default_rng(seed)
    n, p, n_classes = (int(rng.integers(*ends)) for ends in ((3, 120), (1, 12), (2, 7)))
    X = rng.normal(size=(n, p)) if rng.random() < 0.5 else rng.integers(0, 2, (n, p)) * 1.0
    X = X * 10.0 ** rng.uniform(-4, 4, p)
    X = X + (10.0 ** rng.uniform(-2, 4, p) if rng.random() < 0.3 else 0.0)
    y = rng.integers(0, n_classes, n)
    if rng.random() >= 0.4:
        y = np.digitize(X[:, 0], np.quantile(X[:, 0], np.linspace(0, 1, n_classes + 1)[1:-1]))
    for reference_class in (False, True):
        options = {"penalize_intercept": paper, "reference_class": reference_class}
        if penalty is not None:
            options["penalties"] = [penalty]
        if large:
            (model,) = fit_as_large(X, [y], **options)
            chosen, coef, n_iter = model.penalty, model.coef, model.n_iter
        else:
            model = RidgeLogistic(**options, random_state=0).fit(X, y)  # without a warning
            chosen, coef, n_iter = model.penalty_, model.coef_, model.n_iter_
        assert n_iter < 80
        residual = model.predict_proba(X) - (y[:, None] == np.unique(y))  # (n, K)
        slope = residual.T @ X + 2.0 * chosen * coef  # (K, p)
        assert (np.abs(slope[1:]) <= 1e-6 * np.abs(X).sum(axis=0)).all()


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("rows", [binary_rows, normal_rows])
def test_tolerance_below_rounding_does_not_warn(large, rows):
    X, y = rows(60, 3, 3)
    for target in (y, (y > 0).astype(int), X.argmax(axis=1)):
        if large and len(np.unique(target)) > 1:
            (model,) = fit_as_large(X, [target], tol=1e-30)
            n_iter = model.n_iter
        else:
            n_iter = RidgeLogistic(tol=1e-30, random_state=0).fit(X, target).n_iter_
        assert n_iter < 60


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("penalize_intercept", [False, True])
def test_more_columns_than_rows_agree_with_scikit_learn(n_classes, penalize_intercept):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 100)) + 1.0
    y = np.arange(30) % n_classes
    model = RidgeLogistic([1.0], penalize_intercept=penalize_intercept, random_state=0).fit(X, y)
    wide = LogisticRegression(C=0.5, fit_intercept=not penalize_intercept, tol=1e-9, max_iter=5000)
    X = np.column_stack([X, np.ones(30)]) if penalize_intercept else X
    np.testing.assert_allclose(
        model.predict_proba(X[:, :100]), wide.fit(X, y).predict_proba(X), atol=1e-6
    )
