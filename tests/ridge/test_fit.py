"""fit_ridge_logistic: many targets at once, extra columns and threads."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold

from fgfm.ridge import RidgeLogistic, fit_ridge_logistic
from ridge_cases import binary_rows, large_rows, normal_rows, sparse_rows


def test_many_targets_agree_with_single_targets():
    X, s = binary_rows(80, 4, 4)
    rng = np.random.default_rng(1)
    targets = [rng.integers(0, 2, 80), s, np.array(list("abc"))[rng.integers(0, 3, 80)]]
    other = rng.normal(size=80)
    extra = [s, None, other]
    models = fit_ridge_logistic(X, targets, extra=extra, random_state=2)
    for y, column, model in zip(targets, extra, models, strict=True):
        wide = X if column is None else np.column_stack([X, column])
        single = RidgeLogistic(random_state=2).fit(wide, y)
        assert (model.classes == single.classes_).all()
        assert model.penalty == single.penalty_
        np.testing.assert_allclose(model.cv_losses, single.cv_losses_, atol=1e-7)
        np.testing.assert_allclose(
            model.predict_proba(X, column), single.predict_proba(wide), atol=1e-7
        )


def test_extra_column_may_be_shared_or_a_number():
    X, s = binary_rows(80, 4, 4)
    y = np.random.default_rng(1).integers(0, 2, 80)
    (one,) = fit_ridge_logistic(X, [y], extra=[s], random_state=2)
    (shared,) = fit_ridge_logistic(X, [y], extra=s, random_state=2)
    assert (shared.coef == one.coef).all()
    np.testing.assert_allclose(
        one.predict_proba(X, extra=2), one.predict_proba(X, np.full(80, 2.0))
    )


@pytest.mark.parametrize("rows", [sparse_rows, large_rows])
@pytest.mark.parametrize("dense", [False, True])
def test_number_of_threads_does_not_change_a_bit(rows, dense):
    X, Y, s = rows()
    X = X.toarray() if dense else X
    targets = [*Y[:, :4].T, s]
    options = {"penalties": [100.0, 1.0], "random_state": 0}
    one, two = (fit_ridge_logistic(X, targets, n_jobs=j, **options) for j in (1, 2))
    for first, second in zip(one, two, strict=True):
        assert (first.coef == second.coef).all()
        assert (first.cv_losses == second.cv_losses).all()


def test_each_target_has_the_folds_of_its_splitter():
    X, Y, _ = sparse_rows()
    cv = StratifiedKFold(3)
    for model, y in zip(fit_ridge_logistic(X, Y[:, :3], cv=cv), Y.T[:3], strict=True):
        single = RidgeLogistic(cv=cv).fit(X, y)
        assert (model.coef == single.coef_).all()
        assert (model.cv_losses == single.cv_losses_).all()


def test_too_large_features_raise():
    X, y = normal_rows(30, 3, 2)
    RidgeLogistic([1.0], random_state=0).fit(X * 1e50, y)  # without a warning
    for large in (X * 1e200, sparse.csr_matrix(X * 1e200)):
        with pytest.raises(
            ValueError, match=r"of magnitude 3.1.*e\+201: features must not exceed 1e\+60"
        ):
            RidgeLogistic([1.0]).fit(large, y)
    with pytest.raises(ValueError, match=r"X or extra has a value of magnitude 1e\+99"):
        fit_ridge_logistic(X, [y], extra=np.full(30, 1e99))


def test_too_few_iterations_of_large_models_warn():
    X, Y, s = large_rows()
    with pytest.warns(ConvergenceWarning, match=r"^8 ridge fits did not converge within max_"):
        fit_ridge_logistic(X, Y[:, :2], extra=s, penalties=[1.0], max_iter=1, random_state=0)


def test_equal_rows_count_as_their_number():
    X, y = binary_rows(60, 3, 3)
    folds = [(np.arange(40), np.arange(40, 60)), (np.arange(20, 60), np.arange(20))]
    (grouped,) = fit_ridge_logistic(X, [y], cv=folds)
    apart = X + 1e-13 * np.random.default_rng(0).normal(size=X.shape)
    (model,) = fit_ridge_logistic(apart, [y], cv=folds)
    assert model.penalty == grouped.penalty
    np.testing.assert_allclose(model.cv_losses, grouped.cv_losses, atol=1e-8)
    np.testing.assert_allclose(model.coef, grouped.coef, atol=1e-8)


def test_losses_of_rows_are_log_one_plus_exp():
    """Each fold is fitted to all rows and tested on one, so that its loss is that of the row."""
    u = np.concatenate([np.linspace(-34.0, 34.0, 137), [-1e-9, 0.0, 1e-9, 0.4142, 0.8814]])
    rng = np.random.default_rng(0)
    y = (rng.random(len(u)) < 1.0 / (1.0 + np.exp(-u))).astype(int)
    folds = [(np.arange(len(u)), [row]) for row in range(len(u))]
    (fit,) = fit_ridge_logistic(u[:, None], [y], penalties=[1e-3], cv=folds, tol=1e-12)
    eta = u * fit.coef[0, 0] + fit.intercept[0]
    assert np.abs(eta).max() > 20.0
    margin = np.where(y == 1, eta, -eta)
    np.testing.assert_allclose(fit.cv_losses[:, 0], np.logaddexp(0.0, -margin), rtol=1e-9)
