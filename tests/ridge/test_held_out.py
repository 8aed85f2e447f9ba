"""Held-out predictions of the ridge path, against folds refitted one by one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import ShuffleSplit

from fgfm.ridge import RidgeLogistic, _fit, fit_ridge_logistic
from multilabel import interleaved_folds
from ridge_cases import LargeDesign

GRID = 10.0 ** np.arange(-2, 3)


def make_targets(n=60, p=4, seed=0):
    """Return features, and targets of two classes, three classes, and with a rare class."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n, p)).astype(float)
    first = (X[:, 0] + rng.normal(size=n) > 1.0).astype(int)
    second = (X @ rng.normal(size=(p, 3)) + rng.gumbel(size=(n, 3))).argmax(axis=1)
    rare = np.where(np.arange(n) == 3, 7, first)  # in one row only
    return X, [first, second, rare]


def refitted(X, y, penalty, cv, weight=None, extra=None):
    """Return the predictions for the test rows of each fold, refitted with the chosen penalty."""
    n = X.shape[0]
    weight = np.ones(n) if weight is None else weight
    if sparse.issparse(X):
        X = X.toarray()
    if extra is not None:
        X = np.column_stack([X, extra])
    classes = np.unique(y[weight > 0])
    proba = np.full((n, len(classes)), np.nan)
    for train, test in cv:
        train, test = train[weight[train] > 0], test[weight[test] > 0]
        proba[test] = 0.0
        seen = np.unique(y[train])
        at = np.searchsorted(classes, seen)
        if len(seen) == 1:
            proba[np.ix_(test, at)] = 1.0
            continue
        model = RidgeLogistic([penalty], cv=2, random_state=0, tol=1e-9)
        model.fit(X[train], y[train], sample_weight=weight[train])
        proba[np.ix_(test, at)] = model.predict_proba(X[test])
    return proba


@pytest.fixture(params=["cholesky", "conjugate"])
def tolerance(request, monkeypatch):
    """Select the solver of small or of large models; return its accuracy in folds."""
    if request.param == "conjugate":
        monkeypatch.setattr(_fit, "Design", LargeDesign)
    return {"cholesky": 1e-6, "conjugate": 1e-4}[request.param]


def assert_same_fits(one, other):
    for a, b in zip(one, other, strict=True):
        assert a.held_out is not None
        assert b.held_out is None
        assert (a.coef == b.coef).all()
        assert (a.intercept == b.intercept).all()
        assert a.penalty == b.penalty
        assert (a.cv_losses == b.cv_losses).all()
        assert a.n_iter == b.n_iter


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("with_extra", [False, True])
def test_held_out_predictions_are_those_of_refits(tolerance, form, weighted, with_extra):
    X, targets = make_targets()
    weight = np.random.default_rng(1).integers(0, 3, 60).astype(float) if weighted else None
    if weighted:
        weight[3] = 1.0
    extra = np.random.default_rng(2).integers(0, 4, 60).astype(float) if with_extra else None
    given = [extra] * 3 if with_extra else None
    how = {"penalties": GRID, "extra": given, "sample_weight": weight, "cv": interleaved_folds(60)}
    fits = fit_ridge_logistic(form(X), targets, held_out=True, **how)
    assert_same_fits(fits, fit_ridge_logistic(form(X), targets, **how))
    for fit, y in zip(fits, targets, strict=True):
        expected = refitted(X, y, fit.penalty, interleaved_folds(60), weight, extra)
        np.testing.assert_allclose(fit.held_out, expected, rtol=0.0, atol=tolerance)
        assert np.isnan(fit.held_out).any() == weighted  # rows of weight 0
    rare = fits[2]
    assert rare.held_out[3, 2] == 0.0  # no other row has the class


def test_many_columns_and_sparse_rows():
    rng = np.random.default_rng(0)
    X = sparse.random_array((80, 400), density=0.05, rng=rng, format="csr")
    score = X @ rng.normal(size=400)
    targets = [(score > 0).astype(int), np.digitize(score, [-0.5, 0.5])]
    for form in (X, X.toarray()):
        fits = fit_ridge_logistic(
            form, targets, penalties=GRID, cv=interleaved_folds(80), held_out=True
        )
        assert_same_fits(
            fits, fit_ridge_logistic(form, targets, penalties=GRID, cv=interleaved_folds(80))
        )
        for fit, y in zip(fits, targets, strict=True):
            expected = refitted(X, y, fit.penalty, interleaved_folds(80))
            np.testing.assert_allclose(fit.held_out, expected, rtol=0.0, atol=1e-4)


def test_rows_that_no_fold_holds_out_are_nan(tolerance):
    X, targets = make_targets()
    splitter = ShuffleSplit(2, test_size=15, random_state=1)
    cv = list(splitter.split(X))
    never = np.setdiff1d(np.arange(60), np.concatenate([test for _, test in cv]))
    assert len(never) > 0
    fits = fit_ridge_logistic(X, targets, penalties=GRID, cv=splitter, held_out=True)
    for fit, y in zip(fits, targets, strict=True):
        assert np.isnan(fit.held_out[never]).all()
        # of two folds that hold a row out, the last one counts
        expected = refitted(X, y, fit.penalty, cv)
        np.testing.assert_allclose(fit.held_out, expected, rtol=0.0, atol=tolerance)


@pytest.mark.parametrize("seen", [[(0, 1, 2), (0, 1)], [(0, 1), (2,)], [(2,), (0, 1)]])
def test_last_fold_predicts_a_row_whatever_its_classes(tolerance, seen):
    X, (_, y, _) = make_targets()
    rest = np.arange(10, 60)
    cv = [(rest[np.isin(y[rest], classes)], np.arange(10)) for classes in seen]
    (fit,) = fit_ridge_logistic(X, [y], penalties=[1.0], cv=cv, held_out=True)
    expected = refitted(X, y, 1.0, cv)
    np.testing.assert_allclose(fit.held_out, expected, rtol=0.0, atol=tolerance)


def test_fold_that_trains_on_one_class(tolerance):
    X, _ = make_targets()
    y = np.zeros(60, dtype=int)
    y[5] = 1
    constant = np.full(60, 4)
    one, sure = fit_ridge_logistic(
        X, [y, constant], penalties=GRID, cv=interleaved_folds(60), held_out=True
    )
    assert (one.held_out[5 % 3 :: 3] == [1.0, 0.0]).all()  # the only row of its class
    assert (one.held_out[0::3, 1] > 0.0).all()
    assert (sure.held_out == np.ones((60, 1))).all()
