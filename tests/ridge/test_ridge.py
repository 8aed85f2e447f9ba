"""The ridge path: the same minimum and the same choice as plain loops over other solvers."""

from __future__ import annotations

import gc
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    PredefinedSplit,
    ShuffleSplit,
    StratifiedKFold,
)
from sklearn.utils.estimator_checks import parametrize_with_checks

from fgfm.ridge import RidgeLogistic, fit_ridge_logistic
from fgfm.ridge._design import NEWTON_LIMIT, Design, Fold, Part, group_rows
from fgfm.ridge._path import cut
from fgfm.ridge._preconditioner import Common, Factor, _inverse
from fgfm.ridge._problem import Target

GRID = 10.0 ** np.arange(-4, 4)


def binary_rows(n, p, n_classes, seed=0):
    """Binary features with many equal rows, and classes that depend on them."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n, p)).astype(float)
    noise = rng.gumbel(size=(n, n_classes))
    return X, (X @ rng.normal(size=(p, n_classes)) + noise).argmax(axis=1)


def normal_rows(n, p, n_classes, seed=0):
    """Features that are never equal, some with a large mean or scale."""
    X, y = binary_rows(n, p, n_classes, seed)
    rng = np.random.default_rng(seed + 1)
    return (X + 0.3 * rng.normal(size=X.shape)) * 3.0 ** np.arange(p) + 10.0 * np.arange(p), y


def reference(X, y, penalty, weight=None):
    """Fit scikit-learn's model, as closely as it can."""
    model = LogisticRegression(C=0.5 / penalty, solver="newton-cholesky", tol=1e-10, max_iter=500)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it stops where rounding begins
        return model.fit(X, y, sample_weight=weight)


def clipped_loss(model, X, y, weight):
    """Judge a model; a class that it doesn't know has the probability 0."""
    proba = np.zeros(len(y))
    for k, name in enumerate(model.classes_):
        proba[y == name] = model.predict_proba(X[y == name])[:, k] if (y == name).any() else 0.0
    return np.average(-np.log(np.clip(proba, 1e-15, 1 - 1e-15)), weights=weight)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("rows", [binary_rows, normal_rows])
@pytest.mark.parametrize("weighted", [False, True])
def test_minimum_is_that_of_scikit_learn(n_classes, rows, weighted):
    X, y = rows(90, 4, n_classes)
    weight = np.random.default_rng(3).exponential(size=90) if weighted else None
    for penalty in [1e-4, 1e-2, 1.0, 1e3]:
        ours = RidgeLogistic([penalty], random_state=0).fit(X, y, sample_weight=weight)
        theirs = reference(X, y, penalty, weight)
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
        assert ours.coef_.shape == theirs.coef_.shape
        assert ours.intercept_.shape == theirs.intercept_.shape
        np.testing.assert_allclose(
            ours.decision_function(X), theirs.decision_function(X), atol=1e-4
        )
        assert (ours.predict(X) == theirs.predict(X)).all()


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("penalize_intercept", [False, True])
@pytest.mark.parametrize("reference_class", [False, True])
@pytest.mark.parametrize("penalty", [1e-3, 1.0, 100.0])
def test_minimum_is_that_of_the_written_objective(
    n_classes, penalize_intercept, reference_class, penalty
):
    X, y = binary_rows(60, 3, n_classes)
    X = np.column_stack([X, np.arange(60) % 4])
    free = 1 if n_classes == 2 or reference_class else 0  # first class with weights of its own
    Z = np.column_stack([np.ones(60), X])

    def logits(flat):
        W = np.zeros((n_classes, Z.shape[1]))
        W[free:] = flat.reshape(-1, Z.shape[1])
        return W, Z @ W.T

    def objective(flat):
        W, eta = logits(flat)
        eta = eta - eta.max(axis=1, keepdims=True)
        log_p = eta - np.log(np.exp(eta).sum(axis=1, keepdims=True))
        squares = (W**2).sum() if penalize_intercept else (W[:, 1:] ** 2).sum()
        gradient = (np.exp(log_p) - np.eye(n_classes)[y]).T @ Z + 2 * penalty * W
        if not penalize_intercept:
            gradient[:, 0] -= 2 * penalty * W[:, 0]
        value = -log_p[np.arange(60), y].sum() + penalty * squares
        return value, gradient[free:].ravel()

    start = np.zeros((n_classes - free) * Z.shape[1])
    best = minimize(objective, start, jac=True, method="BFGS", options={"gtol": 1e-9}).x
    eta = logits(best)[1]
    expected = np.exp(eta - eta.max(axis=1, keepdims=True))
    expected /= expected.sum(axis=1, keepdims=True)
    model = RidgeLogistic(
        [penalty],
        penalize_intercept=penalize_intercept,
        reference_class=reference_class,
        random_state=0,
    ).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-7)
    if reference_class and n_classes > 2:
        assert not model.coef_[0].any()
        assert model.intercept_[0] == 0.0
    np.testing.assert_allclose(model.coef_, logits(best)[0][int(n_classes == 2) :, 1:], atol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("cv", [3, KFold(4), StratifiedKFold(3), ShuffleSplit(2, random_state=1)])
@pytest.mark.parametrize("weighted", [False, True])
def test_penalty_is_that_of_a_plain_loop(n_classes, cv, weighted):
    X, y = binary_rows(70, 3, n_classes, seed=5)
    weight = np.random.default_rng(3).exponential(size=70) if weighted else np.ones(70)
    penalties = np.array([1e-4, 10.0, 1e-2, 0.1, 1.0, 1e3])  # in any order
    splitter = KFold(3, shuffle=True, random_state=7) if cv == 3 else cv
    losses = []
    for train, test in splitter.split(X, y):
        models = [reference(X[train], y[train], c, weight[train]) for c in penalties]
        losses.append([clipped_loss(m, X[test], y[test], weight[test]) for m in models])
    model = RidgeLogistic(penalties, cv=cv, random_state=7).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.cv_losses_, losses, atol=1e-6)
    assert model.penalty_ == penalties[np.argmin(np.mean(losses, axis=0))]
    assert (model.penalties_ == penalties).all()
    assert model.n_iter_ >= 1


def test_the_first_of_equal_penalties_is_taken():
    X, y = binary_rows(40, 2, 2)
    model = RidgeLogistic([0.1, 0.1], random_state=0).fit(X, y)
    assert model.penalty_ == 0.1
    constant = RidgeLogistic([5.0, 0.1], random_state=0).fit(X, np.zeros(40))
    assert constant.penalty_ == 5.0


def test_equal_rows_are_grouped():
    X = np.array([[0.0, 1.0], [1.0, 1.0], [0.0, 1.0], [-0.0, 1.0], [1.0, 1.0], [1.0, 1.0]])
    assert (group_rows(X.T, 6) == [0, 1, 0, 0, 1, 1]).all()
    assert group_rows(np.arange(6.0)[None], 6) is None


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(2, 4))
@settings(max_examples=15, deadline=None)
def test_repeated_rows_are_weights(seed, p, n_classes):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (12, p)).astype(float)
    y = rng.integers(0, n_classes, 12)
    times = rng.integers(0, 4, 12)
    times[:2] += 1
    options = {"penalties": [1e-3, 1.0]}
    fold = np.arange(12) % 3
    fold[:3] = np.arange(3)
    times[:3] = 2
    again = np.repeat(np.arange(12), times)

    def splits(fold_of):
        return [(np.flatnonzero(fold_of != f), np.flatnonzero(fold_of == f)) for f in range(3)]

    weighted = RidgeLogistic(cv=splits(fold), **options).fit(X, y, sample_weight=times)
    repeated = RidgeLogistic(cv=splits(fold[again]), **options).fit(X[again], y[again])
    np.testing.assert_allclose(weighted.cv_losses_, repeated.cv_losses_, atol=1e-7)
    assert weighted.penalty_ == repeated.penalty_
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-7)


@pytest.mark.parametrize("cv", [3, KFold(3), StratifiedKFold(2)])
def test_weight_zero_removes_a_row(cv):
    X, y = binary_rows(60, 3, 3)
    y[:5] = 9  # a class that is seen nowhere else
    weight = np.ones(60)
    weight[:5] = weight[20:30] = 0.0
    kept = weight > 0.0
    first = RidgeLogistic(cv=cv, random_state=0).fit(X, y, sample_weight=weight)
    second = RidgeLogistic(cv=cv, random_state=0).fit(X[kept], y[kept])
    assert (first.classes_ == second.classes_).all()
    assert (first.cv_losses_ == second.cv_losses_).all()
    assert (first.coef_ == second.coef_).all()


def test_many_targets_are_single_targets():
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
    np.testing.assert_allclose(
        models[0].predict_proba(X, extra=2), models[0].predict_proba(X, np.full(80, 2.0))
    )
    shared = fit_ridge_logistic(X, targets[:1], extra=s, random_state=2)
    assert (shared[0].coef == models[0].coef).all()
    Y = np.column_stack([targets[0], s])
    for one, two in zip(
        fit_ridge_logistic(X, Y, random_state=2),
        fit_ridge_logistic(X, list(Y.T), random_state=2),
        strict=True,
    ):
        assert (one.coef == two.coef).all()


def test_class_that_a_training_fold_lacks():
    X, y = binary_rows(30, 2, 2)
    y = np.where(np.arange(30) < 3, 2, y)  # the first fold tests on all of class 2
    folds = [(np.arange(10, 30), np.arange(10)), (np.arange(10), np.arange(10, 30))]
    model = RidgeLogistic([0.1, 1.0], cv=folds).fit(X, y)
    expected = [
        [
            clipped_loss(reference(X[train], y[train], c), X[test], y[test], None)
            for c in (0.1, 1.0)
        ]
        for train, test in folds
    ]
    np.testing.assert_allclose(model.cv_losses_, expected, atol=1e-6)
    assert model.cv_losses_[0, 0] > 0.3 * -np.log(1e-15)
    assert model.predict_proba(X).shape == (30, 3)


def test_training_fold_of_one_class():
    X, y = binary_rows(30, 2, 2)
    y = np.where(np.arange(30) < 10, 0, 1)
    y[10] = 0
    folds = [(np.arange(10), np.arange(10, 30)), (np.arange(10, 30), np.arange(10))]
    model = RidgeLogistic([0.1, 1.0], cv=folds).fit(X, y)
    np.testing.assert_allclose(model.cv_losses_[0], -19 / 20 * np.log(1e-15), rtol=1e-12)
    np.testing.assert_allclose(
        model.predict_proba(X), reference(X, y, model.penalty_).predict_proba(X), atol=1e-6
    )


def test_one_positive():
    X, _ = binary_rows(40, 3, 2)
    y = (np.arange(40) == 17).astype(int)
    model = RidgeLogistic(random_state=0).fit(X, y)
    np.testing.assert_allclose(
        model.predict_proba(X), reference(X, y, model.penalty_).predict_proba(X), atol=1e-6
    )


@pytest.mark.parametrize("n", [1, 5])
def test_constant_target_needs_no_model(n):
    X = np.random.default_rng(0).normal(size=(n, 3))
    model = RidgeLogistic(random_state=0).fit(X, np.full(n, "yes"))
    assert (model.predict_proba(X) == 1.0).all()
    assert model.predict_proba(X).shape == (n, 1)
    assert (model.predict(X) == "yes").all()
    assert model.penalty_ == 1e-4


@pytest.mark.parametrize("penalize_intercept", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_constant_features_give_frequencies(penalize_intercept, n_classes):
    y = np.arange(20) % 7 % n_classes
    model = RidgeLogistic(penalize_intercept=penalize_intercept, random_state=0)
    model.fit(np.full((20, 2), 0.1), y)
    expected = np.bincount(y) / 20
    np.testing.assert_allclose(model.predict_proba([[0.1, 0.1]])[0], expected, atol=1e-12)


def test_feature_without_variance_changes_nothing():
    X, y = binary_rows(60, 3, 3)
    plain = RidgeLogistic(random_state=0).fit(X, y)
    more = RidgeLogistic(random_state=0).fit(np.column_stack([X, np.full(60, 5.0)]), y)
    np.testing.assert_allclose(more.coef_[:, 3], 0.0, atol=1e-12)
    np.testing.assert_allclose(more.coef_[:, :3], plain.coef_, atol=1e-8)
    np.testing.assert_allclose(more.intercept_, plain.intercept_, atol=1e-8)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_separable_data_converge(scale, n_classes):
    y = np.arange(60) % n_classes
    X = scale * np.column_stack([y, np.random.default_rng(0).normal(size=60)])
    for paper in (False, True):
        model = RidgeLogistic(penalize_intercept=paper, reference_class=paper, random_state=0).fit(
            X, y
        )  # a warning would be an error
        assert 1 <= model.n_iter_ < 60
        if scale >= 1.0:
            assert model.penalty_ == 1e-4
            assert model.score(X, y) == 1.0


@pytest.mark.parametrize("limit", [0, NEWTON_LIMIT])
@pytest.mark.parametrize(
    ("seed", "paper", "penalty"), [(30, True, None), (160, False, 7.8), (1232, False, 0.00316)]
)
def test_newton_steps_that_lead_astray_are_damped(monkeypatch, limit, seed, paper, penalty):
    # Columns of very different scale, where undamped steps ran off to infinity.
    monkeypatch.setattr("fgfm.ridge._design.NEWTON_LIMIT", limit)
    rng = np.random.default_rng(seed)
    n, p, n_classes = (int(rng.integers(*ends)) for ends in ((3, 120), (1, 12), (2, 7)))
    X = rng.normal(size=(n, p)) if rng.random() < 0.5 else rng.integers(0, 2, (n, p)) * 1.0
    X = X * 10.0 ** rng.uniform(-4, 4, p)
    X = X + (10.0 ** rng.uniform(-2, 4, p) if rng.random() < 0.3 else 0.0)
    y = rng.integers(0, n_classes, n)
    if rng.random() >= 0.4:
        y = np.digitize(X[:, 0], np.quantile(X[:, 0], np.linspace(0, 1, n_classes + 1)[1:-1]))
    for reference_class in (False, True):
        model = RidgeLogistic(
            None if penalty is None else [penalty],
            penalize_intercept=paper,
            reference_class=reference_class,
            random_state=0,
        ).fit(X, y)  # a warning would be an error
        assert model.n_iter_ < 80
        residual = model.predict_proba(X) - (y[:, None] == model.classes_)  # (n, K)
        slope = residual.T @ X + 2.0 * model.penalty_ * model.coef_  # (K, p)
        assert (np.abs(slope[1:]) <= 1e-6 * np.abs(X).sum(axis=0)).all()


def test_features_beyond_all_bounds_are_refused():
    X, y = normal_rows(30, 3, 2)
    RidgeLogistic([1.0], random_state=0).fit(X * 1e50, y)  # a warning would be an error
    for large in (X * 1e200, sparse.csr_matrix(X * 1e200)):
        with pytest.raises(
            ValueError, match=r"of size 3.1.*e\+201: features must not exceed 1e\+60"
        ):
            RidgeLogistic([1.0]).fit(large, y)
    with pytest.raises(ValueError, match=r"X or extra holds a number of size 1e\+99"):
        fit_ridge_logistic(X, [y], extra=np.full(30, 1e99))


def test_single_feature_and_fewer_rows_than_folds():
    X = np.array([[0.0], [1.0]])
    model = RidgeLogistic(cv=5, random_state=0).fit(X, [0, 1])
    assert model.cv_losses_.shape == (2, 8)
    three = RidgeLogistic(cv=5, random_state=0).fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    assert three.cv_losses_.shape == (3, 8)
    np.testing.assert_allclose(
        three.predict_proba([[0.5]]),
        reference([[0.0], [1.0], [2.0]], [0, 1, 1], three.penalty_).predict_proba([[0.5]]),
        atol=1e-6,
    )


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("penalize_intercept", [False, True])
def test_more_columns_than_rows_are_turned(n_classes, penalize_intercept):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 100)) + 1.0
    y = np.arange(30) % n_classes
    model = RidgeLogistic([1.0], penalize_intercept=penalize_intercept, random_state=0).fit(X, y)
    wide = LogisticRegression(C=0.5, fit_intercept=not penalize_intercept, tol=1e-9, max_iter=5000)
    X = np.column_stack([X, np.ones(30)]) if penalize_intercept else X
    np.testing.assert_allclose(
        model.predict_proba(X[:, :100]), wide.fit(X, y).predict_proba(X), atol=1e-6
    )


def assert_tried_losses(found, whole, atol):
    """Assert that large models try penalties from the largest on, the best among them."""
    tried = np.isfinite(found).all(axis=0)
    np.testing.assert_allclose(found[:, tried], whole[:, tried], atol=atol)
    assert np.isinf(found[:, ~tried]).all()
    assert tried[whole.mean(axis=0).argmin()]


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("penalize_intercept", [False, True])
def test_wide_and_sparse_agree_with_newton(monkeypatch, n_classes, penalize_intercept):
    X, y = binary_rows(120, 6, n_classes)
    y[:2] = n_classes  # a class that some fold lacks
    extra = np.arange(120.0) % 5
    options = {
        "extra": [None, extra],
        "penalties": [1e-2, 1.0, 100.0],
        "penalize_intercept": penalize_intercept,
        "random_state": 0,
    }
    newton = fit_ridge_logistic(X, [y, y], **options)
    small = fit_ridge_logistic(sparse.csr_matrix(X), [y, y], **options)
    monkeypatch.setattr("fgfm.ridge._design.NEWTON_LIMIT", 0)
    conjugate = fit_ridge_logistic(X, [y, y], **options)
    wide_sparse = fit_ridge_logistic(sparse.csr_array(X), [y, y], **options)
    for others in (small, conjugate, wide_sparse):
        for one, two, column in zip(newton, others, options["extra"], strict=True):
            assert one.penalty == two.penalty
            assert_tried_losses(two.cv_losses, one.cv_losses, atol=1e-6)
            np.testing.assert_allclose(
                one.predict_proba(X, column), two.predict_proba(X, column), atol=1e-6
            )


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("reference_class", [False, True])
@pytest.mark.parametrize("rows", [binary_rows, normal_rows])
def test_conjugate_gradients_agree_with_cholesky(monkeypatch, n_classes, reference_class, rows):
    X, y = rows(100, 5, n_classes)
    y[:30] = 0 if n_classes == 2 else y[:30]
    model = RidgeLogistic(
        penalize_intercept=reference_class, reference_class=reference_class, random_state=0
    )
    formed = clone(model).fit(X, y)
    monkeypatch.setattr("fgfm.ridge._design.NEWTON_LIMIT", 0)
    other = model.fit(X, y)
    assert_tried_losses(other.cv_losses_, formed.cv_losses_, atol=1e-5)
    assert other.penalty_ == formed.penalty_
    np.testing.assert_allclose(other.predict_proba(X), formed.predict_proba(X), atol=1e-8)


@pytest.mark.parametrize("limit", [0, NEWTON_LIMIT])
@pytest.mark.parametrize("rows", [binary_rows, normal_rows])
def test_tolerance_below_rounding_ends_without_a_warning(monkeypatch, limit, rows):
    X, y = rows(60, 3, 3)
    monkeypatch.setattr("fgfm.ridge._design.NEWTON_LIMIT", limit)
    for target in (y, (y > 0).astype(int), X.argmax(axis=1)):
        model = RidgeLogistic(tol=1e-30, random_state=0).fit(X, target)
        assert model.n_iter_ < 60


def sparse_rows(n=90, p=60, seed=0):
    """Sparse counts, labels that depend on them, and the number of labels."""
    rng = np.random.default_rng(seed)
    X = sparse.csr_matrix(rng.poisson(0.1, (n, p)).astype(float))
    Y = (X @ rng.normal(size=(p, 6)) + rng.normal(size=(n, 6)) > [0, 0, 1, 2, 3, 5]).astype(int)
    Y[:, 5] = np.arange(n) == 7  # some fold lacks it
    return X, Y, Y.sum(axis=1)


@pytest.fixture
def large(monkeypatch):
    """Make every model a large one, so that n < p as well takes the batches."""
    monkeypatch.setattr("fgfm.ridge._design.NEWTON_LIMIT", 0)


@pytest.mark.parametrize("form", [sparse.csr_matrix, np.asarray])
@pytest.mark.parametrize("shape", [(90, 60), (40, 60)])
@pytest.mark.parametrize("weighted", [False, True])
def test_batches_find_the_minima_of_scikit_learn(large, form, shape, weighted):
    X, Y, s = sparse_rows(*shape)
    n = len(s)
    weight = np.random.default_rng(3).exponential(size=n) if weighted else np.ones(n)
    penalties = np.array([1e-2, 1.0, 30.0])
    targets = [*Y.T, np.minimum(s, 2)]
    extra = [s, None, s, np.arange(n) % 7, s, None, None]
    models = fit_ridge_logistic(
        form(X.toarray()),
        targets,
        extra=extra,
        penalties=penalties,
        sample_weight=weight,
        random_state=7,
    )
    for t, (y, column, model) in enumerate(zip(targets, extra, models, strict=True)):
        wide = X.toarray() if column is None else np.column_stack([X.toarray(), column])
        final = reference(wide, y, model.penalty, weight)
        np.testing.assert_allclose(
            model.predict_proba(X, column), final.predict_proba(wide), atol=1e-6
        )
        if t in (1, 3, 6) and not weighted:
            losses = []
            for train, test in KFold(3, shuffle=True, random_state=7).split(wide):
                fits = [reference(wide[train], y[train], c) for c in penalties]
                losses.append([clipped_loss(m, wide[test], y[test], None) for m in fits])
            assert_tried_losses(model.cv_losses, np.array(losses), atol=1e-6)
            assert model.penalty == penalties[np.argmin(np.mean(losses, axis=0))]


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_batches_do_not_feel_each_other(large, monkeypatch, n_jobs):
    X, Y, s = sparse_rows()
    targets = [*Y.T, s, np.minimum(s, 2)]
    extra = [s, None, s, None, s, None, None, s]
    options = {"penalties": [10.0, 0.1, 1e-3], "random_state": 0}
    done = []
    together = fit_ridge_logistic(
        X, targets, extra=extra, **options, n_jobs=n_jobs, _progress=done.append
    )
    assert done == sorted(done)
    assert done[-1] == len(targets)
    monkeypatch.setattr("fgfm.ridge._path._COLUMNS", 2)
    few = fit_ridge_logistic(X, targets[::-1], extra=extra[::-1], **options)[::-1]
    alone = [
        fit_ridge_logistic(X, [y], extra=[e], **options)[0]
        for y, e in zip(targets, extra, strict=True)
    ]
    for one, two, three in zip(together, few, alone, strict=True):
        for other in (two, three):
            assert (one.coef == other.coef).all()
            assert (one.intercept == other.intercept).all()
            assert (one.cv_losses == other.cv_losses).all()


@pytest.mark.parametrize("dense", [False, True])
def test_number_of_threads_changes_nothing(dense):
    X, Y, s = sparse_rows()
    X = X.toarray() if dense else X
    targets = [*Y.T, s]
    one, two = (fit_ridge_logistic(X, targets, random_state=0, n_jobs=j) for j in (1, 2))
    for first, second in zip(one, two, strict=True):
        assert (first.coef == second.coef).all()
        assert (first.cv_losses == second.cv_losses).all()


@pytest.mark.parametrize("factored", [0, 1024])
@pytest.mark.parametrize("shape", [(90, 20), (40, 60)])
def test_factors_change_the_way_alone(large, monkeypatch, factored, shape):
    X, Y, s = sparse_rows(*shape)
    targets = [Y[:, 0], np.minimum(s, 3)]
    options = {"extra": s, "penalties": [1e-3, 0.1, 10.0], "random_state": 0}
    plain = fit_ridge_logistic(X, targets, **options)
    monkeypatch.setattr("fgfm.ridge._preconditioner.FACTORED", factored)
    monkeypatch.setattr("fgfm.ridge._preconditioner._STEPS", (1e9, 1e9))  # made at once
    for one, two in zip(plain, fit_ridge_logistic(X, targets, **options), strict=True):
        np.testing.assert_allclose(one.cv_losses, two.cv_losses, atol=1e-5)
        np.testing.assert_allclose(one.predict_proba(X, s), two.predict_proba(X, s), atol=1e-8)


@pytest.mark.parametrize("held_out", [False, True])
@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [3, 1, 4, 0, 2]])
def test_large_models_stop_where_smaller_penalties_only_do_worse(
    large, monkeypatch, order, held_out
):
    X, Y, s = sparse_rows()
    penalties = np.array([1e-3, 1e-2, 1.0, 5.0, 100.0])[order]
    options = {"penalties": penalties, "random_state": 0, "held_out": held_out}
    targets = [*Y.T, np.minimum(s, 2)]
    stopped = fit_ridge_logistic(X, targets, **options)
    monkeypatch.setattr("fgfm.ridge._batch._CLEARLY", np.inf)
    left_out = 0
    for one, two in zip(stopped, fit_ridge_logistic(X, targets, **options), strict=True):
        tried = np.isfinite(one.cv_losses).all(axis=0)
        assert np.isfinite(two.cv_losses).all()
        assert (one.cv_losses[:, tried] == two.cv_losses[:, tried]).all()
        assert np.isinf(one.cv_losses[:, ~tried]).all()
        assert (one.coef == two.coef).all()
        assert one.penalty == two.penalty == penalties[two.cv_losses.mean(axis=0).argmin()]
        if held_out:
            assert (one.held_out == two.held_out).all()
        mean = one.cv_losses.mean(axis=0)
        untried = penalties[~tried]
        left_out += len(untried)
        if len(untried):
            # the last that was tried, and no other, is clearly worse
            last = penalties[tried].argmin()
            worse = mean[tried] > 1.05 * mean.min() + 1e-6
            assert worse[last]
            assert untried.max() < penalties[tried].min()
            below = penalties[tried] < one.penalty
            assert (worse & below).sum() == 1
    assert left_out > 3


def test_a_loss_may_rise_before_it_falls(large):
    rng = np.random.default_rng(0)
    z = rng.normal(size=300)
    X = rng.normal(size=(300, 60))
    X[:, 0] = 0.03 * z  # all the others tell nothing
    y = (3.0 * z + 0.3 * rng.normal(size=300) > 0.0).astype(int)
    model = RidgeLogistic(random_state=0).fit(X, y)
    mean = model.cv_losses_.mean(axis=0)
    assert mean[-3:].max() > 1.05 * mean[-1]
    assert mean.min() < 0.9 * mean[-1]


def test_of_penalties_with_the_same_loss_large_models_take_the_first(large):
    X, Y, _ = sparse_rows()
    for penalties in ([2.0, 2.0], [9.0, 2.0, 2.0, 2.0]):
        model = RidgeLogistic(penalties, random_state=0).fit(X, Y[:, 0])
        mean = model.cv_losses_.mean(axis=0)
        assert model.penalty_ == penalties[int(mean.argmin())]


@pytest.mark.parametrize("with_extra", [False, True])
def test_blocks_of_a_hessian_from_sparse_rows(with_extra):
    rng = np.random.default_rng(0)
    X, _, _ = sparse_rows()
    Z = Design(sparse.csr_matrix(X), np.ones(X.shape[0]), centred=False).sparse_rows().Z
    extra = rng.normal(size=X.shape[0]) if with_extra else None
    curvature = rng.random((X.shape[0], 2))
    q = Z.shape[1] + with_extra
    factor = Factor(Common(Z), extra, curvature, 0.5, np.full(q, 0.25), 1)
    dense = Z.toarray() if extra is None else np.column_stack([Z.toarray(), extra])
    R = rng.normal(size=(q, 2))
    ridge = np.diag(np.where(np.arange(q) < 1, 0.25, 0.75))
    for k, solved in enumerate(factor.solve(R).T):
        block = dense.T @ (curvature[:, [k]] * dense) + ridge
        np.testing.assert_allclose(block @ solved, R[:, k], atol=1e-10)


def test_block_that_is_not_positive_leaves_its_diagonal():
    block = np.array([[4.0, 9.0], [9.0, 2.0]])
    np.testing.assert_array_equal(_inverse(block), [[0.25, 0.0], [0.0, 0.5]])


@pytest.mark.parametrize("factored", [False, True])
def test_entries_of_the_same_cell_add_up(large, monkeypatch, factored):
    if factored:
        monkeypatch.setattr("fgfm.ridge._preconditioner._STEPS", (1e9, 1e9))  # made at once
    X, Y, _ = sparse_rows()
    X.sort_indices()
    twice = sparse.csr_matrix(
        (np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape
    )
    assert twice.nnz == 2 * X.nnz
    one, two = (fit_ridge_logistic(form, Y[:, :2], random_state=0) for form in (X, twice))
    for first, second in zip(one, two, strict=True):
        np.testing.assert_allclose(first.coef, second.coef, atol=1e-12)
    assert twice.nnz == 2 * X.nnz


def test_threads_share_the_rows_of_a_fold():
    X, _, _ = sparse_rows()
    design = Design(X, np.ones(X.shape[0]), centred=True)
    train = np.arange(60)
    groups = design.sparse_rows()
    part = design.part(groups, train)
    assert design.part(groups, train) is part
    assert design.part(groups, train.copy()) is not part
    del part
    gc.collect()
    assert len(design._parts) == 0


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csr_matrix.toarray])
def test_many_folds_copy_no_training_rows(large, monkeypatch, form):
    X, Y, s = sparse_rows()
    copied = []  # of each set of training rows

    class Noted(Part):
        def __init__(self, groups, weight, rows, *args):
            super().__init__(groups, weight, rows, *args)
            if len(rows) > 45:
                copied.append(self.Z is not groups.Z)

    monkeypatch.setattr("fgfm.ridge._design.Part", Noted)
    options = {"penalties": [10.0, 1.0, 0.1], "cv": 12, "random_state": 0, "held_out": True}
    targets = [Y[:, 0], np.minimum(s, 2)]
    shared = fit_ridge_logistic(form(X), targets, extra=s, **options)
    assert copied
    assert not any(copied)
    monkeypatch.setattr("fgfm.ridge._batch._COPIES", 12)
    for one, two in zip(
        shared, fit_ridge_logistic(form(X), targets, extra=s, **options), strict=True
    ):
        assert one.penalty == two.penalty
        np.testing.assert_allclose(one.coef, two.coef, atol=1e-8)
        np.testing.assert_allclose(one.cv_losses, two.cv_losses, atol=1e-5)
        np.testing.assert_allclose(one.held_out, two.held_out, atol=1e-4)
    assert any(copied)


def test_chunks_get_smaller_with_the_number_of_folds(large):
    rng = np.random.default_rng(0)
    n, p = 40, 1 << 17
    design = Design(sparse.csr_matrix((n, p)), np.ones(n), centred=True)
    code = rng.integers(0, 2, n)
    sizes = []
    for folds in (2, 3, 6, 30):
        shared = [Fold(np.arange(n), np.arange(n))] * folds
        sizes.append(len(cut(design, [Target(code, 2, None, shared)] * 64)[0]))
    assert sizes == [32, 32, 16, 3]


def test_too_many_folds_leave_no_room_for_factors():
    Z = sparse.csr_matrix(np.ones((1000, 1000)))
    assert np.isfinite(Common(Z, 30).patience(False))
    assert np.isinf(Common(Z, 40).patience(False))


def test_batch_that_does_not_converge_is_told(large):
    X, Y, s = sparse_rows()
    with pytest.warns(ConvergenceWarning, match=r"^8 ridge fits did not converge within max_"):
        fit_ridge_logistic(X, Y[:, :2], extra=s, penalties=[1.0], max_iter=1, random_state=0)


def test_batches_with_folds_of_their_own(large):
    X, Y, _ = sparse_rows()
    cv = StratifiedKFold(3)
    for model, y in zip(fit_ridge_logistic(X, Y[:, :3], cv=cv), Y.T[:3], strict=True):
        single = RidgeLogistic(cv=cv).fit(X, y)
        assert (model.coef == single.coef_).all()
        np.testing.assert_allclose(
            single.predict_proba(X), reference(X, y, model.penalty).predict_proba(X), atol=1e-6
        )


def test_same_state_same_bits():
    X, y = normal_rows(50, 3, 3)
    first, second = (RidgeLogistic(random_state=4).fit(X, y) for _ in range(2))
    assert (first.coef_ == second.coef_).all()
    assert (first.cv_losses_ == second.cv_losses_).all()
    other = clone(first).set_params(random_state=5).fit(X, y)
    assert (first.cv_losses_ != other.cv_losses_).any()


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames(library):
    frames = pytest.importorskip(library)
    X, y = binary_rows(40, 2, 2)
    frame = frames.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    model = RidgeLogistic(random_state=0).fit(frame, y)
    assert list(model.feature_names_in_) == ["a", "b"]
    plain = RidgeLogistic(random_state=0).fit(X, y)
    assert (model.predict_proba(frame) == plain.predict_proba(X)).all()


def test_fit_that_does_not_converge_is_told():
    X, y = normal_rows(50, 3, 2)
    with pytest.warns(ConvergenceWarning, match=r"^25 ridge fits did not converge within max_"):
        RidgeLogistic(max_iter=1, random_state=0).fit(X, y)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"penalties": []}, ValueError, "penalties is empty: it must hold one penalty at least"),
        (
            {"penalties": [1.0, -2.0]},
            ValueError,
            r"penalties\[1\] is -2.0: penalties must be finite and greater than 0",
        ),
        ({"penalties": [0.0]}, ValueError, r"penalties\[0\] is 0.0: penalties must be finite"),
        ({"penalties": [np.inf]}, ValueError, r"penalties\[0\] is inf: penalties must be finite"),
        ({"penalties": [np.nan]}, ValueError, r"penalties\[0\] is nan: penalties must be finite"),
        ({"penalties": 1.0}, ValueError, r"penalties has shape \(\): it must have 1 dim"),
        ({"penalties": ["a"]}, TypeError, "penalties has dtype <U1: it must hold real numbers"),
        ({"cv": 1}, ValueError, "cv is 1: it must be 2 folds or more"),
        ({"cv": 2.5}, TypeError, "cv is 2.5: it must be a number of folds, a scikit-learn"),
        ({"cv": True}, TypeError, "cv is True: it must be a number of folds"),
        ({"cv": "three"}, TypeError, "cv is 'three': it must be a number of folds"),
        ({"cv": []}, ValueError, "cv is empty: it must give one fold at least"),
        ({"cv": PredefinedSplit([-1] * 40)}, ValueError, "cv is empty: it must give one fold at"),
        (
            {"cv": [([0, 1], [40])]},
            ValueError,
            "cv: the test rows of fold 0 run from 40 to 40; with 40 rows, indices must run from",
        ),
        ({"cv": [([0, 1], [])]}, ValueError, "cv: fold 0 has no test row of positive weight"),
        ({"cv": [([0.5], [1])]}, TypeError, "cv: the train rows of fold 0 are no flat array"),
        ({"cv": GroupKFold(2)}, ValueError, "groups"),
        ({"penalize_intercept": 1}, TypeError, "penalize_intercept is 1: it must be True or"),
        ({"reference_class": None}, TypeError, "reference_class is None: it must be True or"),
        ({"max_iter": 0}, ValueError, "max_iter is 0: it must be an integer greater than 0"),
        ({"max_iter": 1.5}, TypeError, "max_iter is 1.5: it must be an integer greater than 0"),
        ({"tol": -1.0}, ValueError, "tol is -1.0: it must be a finite number greater than 0"),
        ({"tol": "x"}, TypeError, "tol is 'x': it must be a finite number greater than 0"),
    ],
)
def test_refused_options(options, error, message):
    X, y = binary_rows(40, 2, 2)
    with pytest.raises(error, match=message):
        RidgeLogistic(**options).fit(X, y)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.zeros(40), "sample_weight is zero in every row: one weight must be positive"),
        (np.full(40, -1.0), r"sample_weight\[0\] is -1.0: weights must be finite and not neg"),
        (np.ones(39), "sample_weight has 39 rows and X has 40: they must have the same number"),
    ],
)
def test_refused_weights(weight, message):
    X, y = binary_rows(40, 2, 2)
    with pytest.raises(ValueError, match=message):
        RidgeLogistic().fit(X, y, sample_weight=weight)


@pytest.mark.parametrize(
    ("targets", "extra", "error", "message"),
    [
        (np.zeros(40), None, ValueError, r"targets has shape \(40,\): it must be an array of sh"),
        ("labels", None, TypeError, "targets is str: it must be an array of shape"),
        ([np.zeros((40, 2))], None, ValueError, r"targets\[0\] has shape \(40, 2\): it must have"),
        ([np.zeros(39)], None, ValueError, r"targets\[0\] has 39 rows and X has 40"),
        ([np.zeros(40)], [None, None], ValueError, "extra has 2 entries and targets has 1"),
        ([np.zeros(40)], np.zeros(3), ValueError, "extra has 3 rows and X has 40"),
        ([np.zeros(40)], [np.full(40, np.nan)], ValueError, r"extra\[0\]\[0\] is nan: it must be"),
    ],
)
def test_refused_targets(targets, extra, error, message):
    X, _ = binary_rows(40, 2, 2)
    with pytest.raises(error, match=message):
        fit_ridge_logistic(X, targets, extra=extra)


def test_refused_columns():
    X, y = binary_rows(40, 2, 2)
    plain, with_extra = fit_ridge_logistic(X, [y, y], extra=[None, y])
    with pytest.raises(ValueError, match="a model of 2 weights, with an extra column, it must"):
        plain.predict_proba(X, extra=1)
    with pytest.raises(ValueError, match="a model of 3 weights, without an extra column, it mu"):
        with_extra.predict_proba(X)


@parametrize_with_checks([RidgeLogistic(), RidgeLogistic(reference_class=True)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
