"""The reweighted estimate and its stack: the formula, what it nests, weights, edges."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from fgfm import FGFMClassifier
from fgfm.cardinality import is_coherent
from fgfm.estimation import Reweighted
from fgfm.estimation._log_linear_pool import LogLinearPool
from fgfm.ridge import RidgeLogistic, fit_ridge_logistic
from oracle import cardinality_distribution, cardinality_matrix, independent_joint


def close(actual, expected, atol=1e-12):
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=atol)


def folds(n, k=3):
    of_row = np.arange(n) % k
    return [(np.flatnonzero(of_row != f), np.flatnonzero(of_row == f)) for f in range(k)]


def some_data(n=90, m=4, seed=0):
    """Two features, and labels that depend on them and on each other."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    shared = rng.normal(size=(n, 1))
    Y = (X @ rng.normal(size=(2, m)) + shared + rng.normal(size=(n, m)) > 0.4).astype(int)
    return X, Y


# The stack


def drawn(n=400, K=4, seed=0):
    """Two distributions, and classes that are drawn from the first."""
    rng = np.random.default_rng(seed)
    first, second = rng.dirichlet(np.ones(K), size=(2, n))
    code = (rng.random((n, 1)) > first.cumsum(axis=1)).sum(axis=1)
    return [first, second], code


def loss(proba, code, weight=None):
    log_p = np.log(proba[np.arange(len(code)), code])
    return -np.average(log_p, weights=weight)


def test_stack_recovers_the_first_distribution():
    proba, code = drawn(20_000)
    stack = LogLinearPool().fit(proba, code)
    close(stack.weights_, [1.0, 0.0], atol=0.05)
    close(stack.shifts_ - stack.shifts_.mean(), 0.0, atol=0.05)
    close(stack.predict_proba(proba), proba[0], atol=0.03)


def test_stack_recovers_a_weighted_product():
    rng = np.random.default_rng(1)
    first, second = rng.dirichlet(np.ones(3), size=(2, 40_000))
    shifts = np.array([0.5, -0.5, 0.0])
    truth = softmax(0.6 * np.log(first) + 0.3 * np.log(second) + shifts, axis=1)
    code = (rng.random((len(truth), 1)) > truth.cumsum(axis=1)).sum(axis=1)
    stack = LogLinearPool().fit([first, second], code)
    close(stack.weights_, [0.6, 0.3], atol=0.05)
    close(stack.shifts_ - stack.shifts_.mean(), shifts, atol=0.05)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("swapped", [False, True])
def test_stack_is_no_worse_than_its_parts(seed, swapped):
    proba, code = drawn(seed=seed)
    if swapped:
        proba = proba[::-1]
    stack = LogLinearPool().fit(proba, code)
    found = loss(stack.predict_proba(proba), code)
    assert found <= loss(proba[0], code)
    assert found <= loss(proba[1], code) + 2.0 / len(code)  # what it may cost to leave the first
    assert (stack.weights_ >= 0.0).all()
    close(stack.predict_proba(proba).sum(axis=1), 1.0)


def test_stack_without_rows_is_the_first_distribution():
    proba, code = drawn(6)
    nothing = [np.full((6, 4), np.nan), proba[1]]
    for given in (
        LogLinearPool().fit(nothing, code),
        LogLinearPool().fit(proba, code, np.zeros(6)),
    ):
        assert given.weights_.tolist() == [1.0, 0.0]
        assert not given.shifts_.any()
        close(given.predict_proba(proba), proba[0])


def test_stack_ignores_rows_with_nan():
    proba, code = drawn()
    kept = np.arange(400) % 3 > 0
    for j in range(2):
        holes = [p.copy() for p in proba]
        holes[j][~kept, 0] = np.nan
        with_holes = LogLinearPool().fit(holes, code)
        without = LogLinearPool().fit([p[kept] for p in proba], code[kept])
        assert (with_holes.weights_ == without.weights_).all()
        assert (with_holes.shifts_ == without.shifts_).all()


def test_stack_with_weights():
    proba, code = drawn()
    weight = np.arange(400) % 3.0  # 0, 1 and 2
    rows = np.repeat(np.arange(400), weight.astype(int))
    weighted = LogLinearPool().fit(proba, code, weight)
    repeated = LogLinearPool().fit([p[rows] for p in proba], code[rows])
    close(weighted.weights_, repeated.weights_, atol=1e-5)
    close(weighted.shifts_, repeated.shifts_, atol=1e-5)
    kept = weight > 0.0
    removed = LogLinearPool().fit([p[kept] for p in proba], code[kept], weight[kept])
    assert (removed.weights_ == weighted.weights_).all()
    assert np.abs(LogLinearPool().fit(proba, code).shifts_ - weighted.shifts_).max() > 1e-3


def test_stack_of_one_class_is_sure():
    stack = LogLinearPool().fit([np.ones((5, 1))] * 2, np.zeros(5, dtype=int))
    close(stack.predict_proba([np.ones((3, 1))] * 2), 1.0, atol=0.0)


def test_stack_takes_probabilities_of_zero():
    proba = [np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])] * 2
    stack = LogLinearPool().fit(proba, np.array([0, 1, 0]))  # the last has what was impossible
    assert np.isfinite(stack.predict_proba(proba)).all()
    assert (stack.predict_proba(proba) > 0.0).all()


# The estimate


def formula(model, X, Y, cv):
    """Give the joint of the estimate by enumeration, from models fitted one by one."""
    s, m = Y.sum(axis=1), Y.shape[1]
    number, *labels = fit_ridge_logistic(X, [s, *Y.T], cv=cv)
    p = np.column_stack([fit.predict_proba(X)[:, 1] for fit in labels])
    mu = np.zeros((len(X), m + 1))
    mu[:, number.classes] = number.predict_proba(X)
    sets, proba = independent_joint(p)
    pi = cardinality_distribution(sets, proba)
    a, b = model.pool_.weights_, np.zeros(m + 1)
    b[number.classes] = model.pool_.shifts_
    d = np.where(np.isin(np.arange(m + 1), number.classes), np.exp(b), 0.0)
    d = d * pi ** a[0] * mu ** a[1]
    d /= d.sum(axis=1, keepdims=True)
    size = sets.sum(axis=1)
    return sets, proba * (d / pi)[:, size]


@pytest.mark.parametrize("gap", [False, True])
def test_reweighted_is_its_formula(gap):
    X, Y = some_data()
    if gap:
        Y[Y.sum(axis=1) == 2, 0] ^= 1  # never two labels
        assert 2 not in Y.sum(axis=1)
    model = Reweighted(cv=folds(90)).fit(X, Y)
    P, d = model.estimate(X)
    S = P.shape[2]
    joint = formula(model, X, Y, folds(90))
    close(joint[1].sum(axis=1), 1.0)
    close(P, cardinality_matrix(*joint)[:, :, :S], atol=1e-9)
    close(d, cardinality_distribution(*joint)[:, : S + 1], atol=1e-9)
    assert is_coherent(P, d).all()
    assert not d[:, ~np.isin(np.arange(S + 1), Y.sum(axis=1))].any()


def test_stack_is_fitted_to_what_was_held_out():
    X, Y = some_data()
    model = Reweighted(cv=folds(90)).fit(X, Y)
    s = Y.sum(axis=1)
    classes, code = np.unique(s, return_inverse=True)
    number, *labels = fit_ridge_logistic(X, [s, *Y.T], cv=folds(90), held_out=True)
    p = np.column_stack([fit.held_out[:, 1] for fit in labels])
    pi = cardinality_distribution(*independent_joint(p))[:, classes]
    by_hand = LogLinearPool().fit([pi, number.held_out], code)
    close(model.pool_.weights_, by_hand.weights_, atol=1e-6)
    close(model.pool_.shifts_, by_hand.shifts_, atol=1e-6)


def test_independent_labels_stay_independent():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (20_000, 2)).astype(float)
    p = np.array([[0.1, 0.5, 0.7], [0.4, 0.3, 0.8], [0.6, 0.2, 0.5], [0.3, 0.9, 0.1]])
    cell = (X @ [1, 2]).astype(int)
    X = np.eye(4)[cell]
    Y = (rng.random((20_000, 3)) < p[cell]).astype(int)
    P, d = Reweighted(random_state=0).fit(X, Y).estimate(np.eye(4))
    joint = independent_joint(p)
    close(P, cardinality_matrix(*joint), atol=0.02)
    close(d, cardinality_distribution(*joint), atol=0.02)


@pytest.mark.parametrize(
    "learner", [None, RidgeLogistic([1.0]), LogisticRegression(), GaussianNB()]
)
def test_number_of_jobs_changes_nothing(learner):
    X, Y = some_data()
    one = Reweighted(learner, random_state=0).fit(X, Y).estimate(X)
    two = Reweighted(learner, random_state=0, n_jobs=2).fit(X, Y).estimate(X)
    assert (one.P == two.P).all()
    assert (one.d == two.d).all()


def test_clone_has_the_settings_alone():
    model = Reweighted(GaussianNB(), calibration=None, cv=4, n_jobs=1, random_state=3)
    model.fit(*some_data())
    again = clone(model)
    assert not hasattr(again, "pool_")
    params = again.get_params(deep=False)
    assert isinstance(params.pop("estimator"), GaussianNB)
    assert params == {"calibration": None, "cv": 4, "n_jobs": 1, "random_state": 3}


class Counting(GaussianNB):
    """Tells how many fits there were."""

    fits = 0

    def fit(self, X, y, sample_weight=None):
        type(self).fits += 1
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize(
    ("factors", "fits"),
    [("independent", 3), ("single", 4 * 4), ([[0], [1, 2]], 4 * 4)],
)
def test_rows_are_held_out_only_where_there_is_a_number_to_learn(factors, fits):
    X, Y = some_data(m=3)
    Counting.fits = 0
    FGFMClassifier(Counting(), factors=factors, calibration=None, random_state=0).fit(X, Y)
    assert Counting.fits == fits


def test_a_single_label_has_no_stack():
    X, Y = some_data()
    model = Reweighted(random_state=0).fit(X, Y[:, :1])
    assert not hasattr(model, "pool_")
    assert model.estimate(X).P.shape == (90, 1, 1)


def test_empty_sets_that_never_occur_get_nothing():
    X, Y = some_data()
    Y[Y.sum(axis=1) == 0, 0] = 1
    model = FGFMClassifier(random_state=0).fit(X, Y)
    assert model.nonempty_
    assert not model.predict_cardinality_proba(X)[:, 0].any()
    assert model.predict(X).any(axis=1).all()
    # a row of weight 0 is no row, whatever its number of labels
    weight = np.ones(91)
    weight[90] = 0.0
    X = np.concatenate([X, X[:1]])
    Y = np.concatenate([Y, np.zeros((1, 4), dtype=int)])
    weighted = Reweighted(cv=folds(91)).fit(X, Y, sample_weight=weight)
    without = Reweighted(cv=folds(90)).fit(X[:90], Y[:90])
    assert 0 not in weighted.cardinalities_
    assert (weighted.estimate(X).P == without.estimate(X).P).all()


def test_labels_that_occur_once_do_not_silence_the_stack():
    X, Y = some_data(m=3)
    rare = np.zeros((90, 3), dtype=int)
    rare[[0, 1, 2], [0, 1, 2]] = 1  # one in each fold
    model = Reweighted(LogisticRegression(), cv=folds(90)).fit(X, np.hstack([Y, rare]))
    assert model.pool_.shifts_.any()
    P, d = model.estimate(X)
    assert is_coherent(P, d).all()


def test_a_label_that_never_occurs_gets_nothing_where_others_are_called_impossible():
    X, _ = some_data(30, 2)
    once = np.zeros((30, 3), dtype=int)
    once[5, :2] = 1  # isotonic calibration calls both impossible, and held-out rows know better
    model = Reweighted(GaussianNB(), calibration="isotonic", cv=2, random_state=0)
    P, d = model.fit(X, once).estimate(X)
    assert d[:, 2].max() > 1e-3
    assert not P[:, 2].any()
    always = np.ones((30, 1), dtype=int)
    P, d = model.fit(X, np.hstack([once, always])).estimate(X)
    assert not P[:, 2].any()
    close(P[:, 3], d[:, 1:])


def test_conditioned_labels_are_surer_than_marginals_that_exclude_each_other():
    """Where one label is the rule, p_i / (1 - p_i) counts the exclusion twice: p is not kept."""
    rng = np.random.default_rng(0)
    p = np.array([0.5, 0.3, 0.2])
    Y = np.eye(3, dtype=int)[rng.choice(3, 6000, p=p)]
    P, d = Reweighted(random_state=0).fit(np.zeros((6000, 1)), Y).estimate([[0.0]])
    close(d, [[0.0, 1.0]])
    odds = p / (1.0 - p)
    close(P[0, :, 0], odds / odds.sum(), atol=0.02)
