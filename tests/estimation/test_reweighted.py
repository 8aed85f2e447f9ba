"""Reweighted: its formula by enumeration, the model that it nests, unusual labels."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from fgfm import FGFMClassifier
from fgfm._utils.log_linear_pool import LogLinearPool
from fgfm.cardinality import (
    is_coherent,
)
from fgfm.ridge import fit_ridge_logistic
from multilabel import close, interleaved_folds, make_data, one_factor
from oracle import (
    cardinality_distribution,
    cardinality_matrix,
    independent_joint,
)


def formula(model, X, Y, cv):
    """Return the joint of the estimate by enumeration, from models fitted one by one."""
    s, m = Y.sum(axis=1), Y.shape[1]
    number, *labels = fit_ridge_logistic(X, [s, *Y.T], cv=cv)
    p = np.column_stack([fit.predict_proba(X)[:, 1] for fit in labels])
    mu = np.zeros((len(X), m + 1))
    mu[:, number.classes] = number.predict_proba(X)
    sets, proba = independent_joint(p)
    pi = cardinality_distribution(sets, proba)
    a, b = model.fitted_method().pool.weights_, np.zeros(m + 1)
    b[number.classes] = model.fitted_method().pool.shifts_
    d = np.where(np.isin(np.arange(m + 1), number.classes), np.exp(b), 0.0)
    d = d * pi ** a[0] * mu ** a[1]
    d /= d.sum(axis=1, keepdims=True)
    size = sets.sum(axis=1)
    return sets, proba * (d / pi)[:, size]


@pytest.mark.parametrize("gap", [False, True])
def test_reweighted_is_its_formula(gap):
    X, Y = make_data(90)
    if gap:
        Y[Y.sum(axis=1) == 2, 0] ^= 1  # never two labels
        assert 2 not in Y.sum(axis=1)
    model = one_factor("reweighted", cv=interleaved_folds(90)).fit(X, Y)
    P, d = model.estimate(X)
    S = P.shape[2]
    joint = formula(model, X, Y, interleaved_folds(90))
    close(joint[1].sum(axis=1), 1.0)
    close(P, cardinality_matrix(*joint)[:, :, :S], atol=1e-9)
    close(d, cardinality_distribution(*joint)[:, : S + 1], atol=1e-9)
    assert is_coherent(P, d).all()
    assert not d[:, ~np.isin(np.arange(S + 1), Y.sum(axis=1))].any()


def test_pool_is_fitted_to_out_of_fold_predictions():
    X, Y = make_data(90)
    model = one_factor("reweighted", cv=interleaved_folds(90)).fit(X, Y)
    s = Y.sum(axis=1)
    classes, code = np.unique(s, return_inverse=True)
    number, *labels = fit_ridge_logistic(X, [s, *Y.T], cv=interleaved_folds(90), held_out=True)
    p = np.column_stack([fit.held_out[:, 1] for fit in labels])
    pi = cardinality_distribution(*independent_joint(p))[:, classes]
    by_hand = LogLinearPool().fit([pi, number.held_out], code)
    close(model.fitted_method().pool.weights_, by_hand.weights_, atol=1e-6)
    close(model.fitted_method().pool.shifts_, by_hand.shifts_, atol=1e-6)


def test_independent_labels_stay_independent():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (20_000, 2)).astype(float)
    p = np.array([[0.1, 0.5, 0.7], [0.4, 0.3, 0.8], [0.6, 0.2, 0.5], [0.3, 0.9, 0.1]])
    cell = (X @ [1, 2]).astype(int)
    X = np.eye(4)[cell]
    Y = (rng.random((20_000, 3)) < p[cell]).astype(int)
    P, d = one_factor("reweighted", random_state=0).fit(X, Y).estimate(np.eye(4))
    joint = independent_joint(p)
    close(P, cardinality_matrix(*joint), atol=0.02)
    close(d, cardinality_distribution(*joint), atol=0.02)


class Counting(GaussianNB):
    """Counts its fits."""

    fits = 0

    def fit(self, X, y, sample_weight=None):
        type(self).fits += 1
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize(
    ("factors", "fits"),
    [("independent", 3), ("single", 4 * 4), ([[0], [1, 2]], 4 * 4)],
)
def test_folds_are_fitted_only_for_factors_of_several_labels(factors, fits):
    X, Y = make_data(90, 3)
    Counting.fits = 0
    FGFMClassifier(Counting(), factors=factors, calibration=None, random_state=0).fit(X, Y)
    assert Counting.fits == fits


def test_single_label_has_no_pool():
    X, Y = make_data(90)
    model = one_factor("reweighted", random_state=0).fit(X, Y[:, 0])
    assert not hasattr(model.fitted_method(), "pool")
    assert model.estimate(X).P.shape == (90, 1, 1)


def test_cardinality_0_that_never_occurs_gets_probability_0():
    X, Y = make_data(90)
    Y[Y.sum(axis=1) == 0, 0] = 1
    model = FGFMClassifier(random_state=0).fit(X, Y)
    assert model.nonempty_
    assert not model.predict_cardinality_proba(X)[:, 0].any()
    assert model.predict(X).any(axis=1).all()
    # rows of weight 0 do not count
    weight = np.ones(91)
    weight[90] = 0.0
    X = np.concatenate([X, X[:1]])
    Y = np.concatenate([Y, np.zeros((1, 4), dtype=int)])
    weighted = one_factor("reweighted", cv=interleaved_folds(91)).fit(X, Y, sample_weight=weight)
    without = one_factor("reweighted", cv=interleaved_folds(90)).fit(X[:90], Y[:90])
    assert 0 not in weighted.fitted_method().cardinalities
    assert (weighted.estimate(X).P == without.estimate(X).P).all()


def test_labels_that_occur_once_do_not_prevent_the_fit_of_the_pool():
    X, Y = make_data(90, 3)
    rare = np.zeros((90, 3), dtype=int)
    rare[[0, 1, 2], [0, 1, 2]] = 1  # one in each fold
    model = one_factor("reweighted", LogisticRegression(), cv=interleaved_folds(90)).fit(
        X, np.hstack([Y, rare])
    )
    assert model.fitted_method().pool.shifts_.any()
    P, d = model.estimate(X)
    assert is_coherent(P, d).all()


def test_label_that_never_occurs_gets_probability_0_even_if_others_have_marginal_0():
    X, _ = make_data(30, 2)
    once = np.zeros((30, 3), dtype=int)
    once[5, :2] = 1  # isotonic calibration predicts probability 0 for both
    model = one_factor("reweighted", GaussianNB(), calibration="isotonic", cv=2, random_state=0)
    P, d = model.fit(X, once).estimate(X)
    assert d[:, 2].max() > 1e-3
    assert not P[:, 2].any()
    always = np.ones((30, 1), dtype=int)
    P, d = model.fit(X, np.hstack([once, always])).estimate(X)
    assert not P[:, 2].any()
    close(P[:, 3], d[:, 1:])


def test_conditioned_labels_are_surer_than_marginals_that_exclude_each_other():
    """With one label in every row, the odds p_i / (1 - p_i) count the exclusion twice."""
    rng = np.random.default_rng(0)
    p = np.array([0.5, 0.3, 0.2])
    Y = np.eye(3, dtype=int)[rng.choice(3, 6000, p=p)]
    P, d = one_factor("reweighted", random_state=0).fit(np.zeros((6000, 1)), Y).estimate([[0.0]])
    close(d, [[0.0, 1.0]])
    odds = p / (1.0 - p)
    close(P[0, :, 0], odds / odds.sum(), atol=0.02)
