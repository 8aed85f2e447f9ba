"""RidgeLogistic against scikit-learn, a general optimiser and plain loops over folds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    PredefinedSplit,
    ShuffleSplit,
    StratifiedKFold,
)
from sklearn.utils.estimator_checks import parametrize_with_checks

from fgfm.ridge import RidgeLogistic
from ridge_cases import binary_rows, clipped_loss, normal_rows, reference, reference_losses


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("rows", [binary_rows, normal_rows])
@pytest.mark.parametrize("weighted", [False, True])
def test_minimum_agrees_with_scikit_learn(n_classes, rows, weighted):
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
def test_minimum_agrees_with_a_general_optimiser(
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
def test_penalty_agrees_with_a_plain_loop(n_classes, cv, weighted):
    X, y = binary_rows(70, 3, n_classes, seed=5)
    weight = np.random.default_rng(3).exponential(size=70) if weighted else np.ones(70)
    penalties = np.array([1e-4, 10.0, 1e-2, 0.1, 1.0, 1e3])  # in any order
    splitter = KFold(3, shuffle=True, random_state=7) if cv == 3 else cv
    losses = reference_losses(X, y, splitter.split(X, y), penalties, weight)
    model = RidgeLogistic(penalties, cv=cv, random_state=7).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.cv_losses_, losses, atol=1e-6)
    assert model.penalty_ == penalties[np.argmin(losses.mean(axis=0))]
    assert (model.penalties_ == penalties).all()
    assert model.n_iter_ >= 1


def test_first_of_equally_good_penalties_is_taken():
    X, y = binary_rows(40, 2, 2)
    model = RidgeLogistic([0.1, 0.1], random_state=0).fit(X, y)
    assert model.penalty_ == 0.1
    constant = RidgeLogistic([5.0, 0.1], random_state=0).fit(X, np.zeros(40))
    assert constant.penalty_ == 5.0


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(2, 4))
@settings(max_examples=15, deadline=None)
def test_repeated_rows_are_equivalent_to_weights(seed, p, n_classes):
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
    y[:5] = 9  # a class that no other row has
    weight = np.ones(60)
    weight[:5] = weight[20:30] = 0.0
    kept = weight > 0.0
    first = RidgeLogistic(cv=cv, random_state=0).fit(X, y, sample_weight=weight)
    second = RidgeLogistic(cv=cv, random_state=0).fit(X[kept], y[kept])
    assert (first.classes_ == second.classes_).all()
    assert (first.cv_losses_ == second.cv_losses_).all()
    assert (first.coef_ == second.coef_).all()


def test_class_missing_in_a_training_fold():
    X, y = binary_rows(30, 2, 2)
    y = np.where(np.arange(30) < 3, 2, y)  # all of class 2 are test rows of the first fold
    folds = [(np.arange(10, 30), np.arange(10)), (np.arange(10), np.arange(10, 30))]
    model = RidgeLogistic([0.1, 1.0], cv=folds).fit(X, y)
    expected = [
        [clipped_loss(reference(X[train], y[train], c), X[test], y[test]) for c in (0.1, 1.0)]
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


@pytest.mark.parametrize("n", [1, 5])
def test_constant_target_is_certain(n):
    X = np.random.default_rng(0).normal(size=(n, 3))
    model = RidgeLogistic(random_state=0).fit(X, np.full(n, "yes"))
    assert (model.predict_proba(X) == 1.0).all()
    assert model.predict_proba(X).shape == (n, 1)
    assert (model.predict(X) == "yes").all()
    assert model.penalty_ == 1e-4


@pytest.mark.parametrize("penalize_intercept", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_constant_features_give_class_frequencies(penalize_intercept, n_classes):
    y = np.arange(20) % 7 % n_classes
    model = RidgeLogistic(penalize_intercept=penalize_intercept, random_state=0)
    model.fit(np.full((20, 2), 0.1), y)
    expected = np.bincount(y) / 20
    np.testing.assert_allclose(model.predict_proba([[0.1, 0.1]])[0], expected, atol=1e-12)


def test_constant_feature_has_weight_zero():
    X, y = binary_rows(60, 3, 3)
    plain = RidgeLogistic(random_state=0).fit(X, y)
    more = RidgeLogistic(random_state=0).fit(np.column_stack([X, np.full(60, 5.0)]), y)
    np.testing.assert_allclose(more.coef_[:, 3], 0.0, atol=1e-12)
    np.testing.assert_allclose(more.coef_[:, :3], plain.coef_, atol=1e-8)
    np.testing.assert_allclose(more.intercept_, plain.intercept_, atol=1e-8)


def test_fewer_rows_than_folds():
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


def test_too_few_iterations_warn():
    X, y = normal_rows(50, 3, 2)
    with pytest.warns(ConvergenceWarning, match=r"^25 ridge fits did not converge within max_"):
        RidgeLogistic(max_iter=1, random_state=0).fit(X, y)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"penalties": []}, ValueError, "penalties is empty: it must hold at least one penalty"),
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
        ({"cv": PredefinedSplit([-1] * 40)}, ValueError, "cv is empty: it must yield at least"),
        ({"cv": GroupKFold(2)}, ValueError, "groups"),
        ({"penalize_intercept": 1}, TypeError, "penalize_intercept is 1: it must be True or"),
        ({"reference_class": None}, TypeError, "reference_class is None: it must be True or"),
        ({"max_iter": 0}, ValueError, "max_iter is 0: it must be an integer, 1 or more"),
        ({"max_iter": 1.5}, ValueError, "max_iter is 1.5: it must be an integer, 1 or more"),
        ({"tol": -1.0}, ValueError, "tol is -1.0: it must be a finite number greater than 0"),
        ({"tol": "x"}, TypeError, "tol is 'x': it must be a finite number greater than 0"),
    ],
)
def test_invalid_options_raise(options, error, message):
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
def test_invalid_weights_raise(weight, message):
    X, y = binary_rows(40, 2, 2)
    with pytest.raises(ValueError, match=message):
        RidgeLogistic().fit(X, y, sample_weight=weight)


@parametrize_with_checks([RidgeLogistic()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
