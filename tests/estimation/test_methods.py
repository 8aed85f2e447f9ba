"""Each method against the combination of its models by hand, and what its formula implies."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from fgfm import FGFMClassifier
from fgfm._utils.log_linear_pool import LogLinearPool
from fgfm.cardinality import (
    distribution,
    is_coherent,
    make_coherent,
    of_conditionals,
    of_joint,
    of_marginals,
)
from fgfm.ridge import fit_ridge_logistic
from multilabel import close, interleaved_folds, make_data, one_factor
from oracle import cardinality_distribution, cardinality_matrix, independent_joint


def fitted(method, X, Y, **how):
    """Return a fitted classifier of one factor, with the folds that `models` has."""
    return one_factor(method, cv=interleaved_folds(len(X)), **how).fit(X, Y)


def models(X, targets, **how):
    """Return the ridge models of targets, fitted by themselves."""
    return fit_ridge_logistic(X, targets, cv=interleaved_folds(len(X)), **how)


# "two-step"


def test_two_step_is_the_product_of_its_models():
    X, Y = make_data(80)
    s = Y.sum(axis=1).astype(float)
    number, *labels = models(X, [s.astype(int), *Y.T], extra=[None] + [s] * 4)
    d = np.zeros((80, int(s.max()) + 1))
    d[:, number.classes] = number.predict_proba(X)
    q = np.zeros((80, 4, int(s.max())))
    for i, label in enumerate(labels):
        for k in number.classes[number.classes > 0]:
            q[:, i, k - 1] = label.predict_proba(X, extra=float(k))[:, 1]
    raw = fitted("two-step", X, Y, coherent=False).estimate(X)
    close(raw.d, d)
    close(raw.P, d[:, None, 1:] * q)
    assert not is_coherent(raw.P, raw.d).any()
    coherent = fitted("two-step", X, Y).estimate(X)
    close(coherent.d, d)
    close(coherent.P, of_conditionals(q, d))


def test_base_learners_get_the_cardinality_as_last_column():
    seen = []

    class Recorder(DummyClassifier):
        def fit(self, X, y, sample_weight=None):
            seen.append(np.array(X))
            return super().fit(X, y)

    X, Y = make_data(20, 3)
    one_factor("two-step", Recorder(), calibration=None).fit(X, Y)
    assert [x.shape[1] for x in seen] == [3, 4, 4, 4]
    for x in seen[1:]:
        assert (x == np.column_stack([X, Y.sum(axis=1)])).all()


# "tilted" and "powerset"


def test_tilted_is_the_tilt_of_its_models():
    X, Y = make_data(80)
    number, *labels = models(X, [Y.sum(axis=1), *Y.T])
    p = np.column_stack([label.predict_proba(X)[:, 1] for label in labels])
    P, d = fitted("tilted", X, Y).estimate(X)
    close(d, number.predict_proba(X))
    close(P, of_marginals(p, d))


def test_powerset_is_the_sum_over_label_sets():
    X, Y = make_data(80)
    sets, code = np.unique(Y, axis=0, return_inverse=True)
    proba = models(X, [code.ravel()])[0].predict_proba(X)
    model = fitted("powerset", X, Y)
    assert (model.fitted_method().labelsets == sets).all()
    P, d = model.estimate(X)
    close(P, of_joint(sets, proba))
    close(d, cardinality_distribution(sets, proba)[:, : d.shape[1]])
    assert (model.predict_mode(X) == sets[proba.argmax(axis=1)]).all()
    assert model.predict_mode(X).dtype == np.int8


def test_row_without_any_probable_class_gets_the_frequencies():
    class Silent(DummyClassifier):
        def predict_proba(self, X):
            return np.zeros((len(X), len(self.classes_)))

    X, Y = make_data(40, 2)
    d = one_factor("powerset", Silent(), calibration=None).fit(X, Y).estimate(X[:2]).d
    close(d[0], np.bincount(Y.sum(axis=1), minlength=3) / 40)


# "direct"


def test_direct_is_one_multinomial_model_per_label():
    X, Y = make_data(80)
    s = Y.sum(axis=1)
    raw = np.zeros((80, 4, int(s.max())))
    for i, model in enumerate(models(X, [y * s for y in Y.T])):
        for k, name in enumerate(model.classes):
            if name > 0:
                raw[:, i, name - 1] = model.predict_proba(X)[:, k]
    close(fitted("direct", X, Y, coherent=False).estimate(X).P, raw)
    P, d = fitted("direct", X, Y).estimate(X)
    close(P, make_coherent(raw))
    close(d, distribution(P))
    assert np.abs(P - raw).sum(axis=(1, 2)).max() > 1e-3


@pytest.mark.parametrize(("method", "coherent"), [("direct", 0), ("direct", 1), ("powerset", 1)])
def test_label_that_never_occurs_with_a_cardinality_gets_probability_0(method, coherent):
    X, _ = make_data(40)
    Y = np.array([[1, 0, 0], [0, 1, 1], [1, 1, 0], [0, 1, 0]] * 10)  # label 2 is never alone
    P, _ = one_factor(method, coherent=bool(coherent)).fit(X, Y).estimate(X)
    assert not P[:, 2, 0].any()
    assert P[:, 2, 1].all()


class ColumnProba(ClassifierMixin, BaseEstimator):
    """Finds the feature that equals its target, and predicts this feature as the probability."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.column_ = int(np.flatnonzero(((y > 0)[:, None] == X).all(axis=0))[0])
        return self

    def predict_proba(self, X):
        p = X[:, self.column_]
        return np.column_stack([1.0 - p, p])


ONE_OF_THREE = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
TWO_OF_THREE = [[1, 1, 0], [1, 0, 1], [0, 1, 1], [0, 0, 0]]


@pytest.mark.parametrize(
    ("sets", "coherent", "raw", "expected", "d"),
    [
        (ONE_OF_THREE, True, [0.5, 0.5, 0.5], [1 / 3] * 3, [0.0, 1.0]),  # too much probability
        (ONE_OF_THREE, True, [0.2, 0.2, 0.2], [0.2] * 3, [0.4, 0.6]),  # coherent already
        (ONE_OF_THREE, True, [0.6, 0.3, 0.3], [0.5, 0.25, 0.25], [0.0, 1.0]),
        (ONE_OF_THREE, False, [0.5, 0.6, 0.7], [0.5, 0.6, 0.7], [0.0, 1.0]),
        (TWO_OF_THREE, True, [0.6, 0.1, 0.1], [0.4, 0.2, 0.2], [0.6, 0.0, 0.4]),  # p_0 > d_2
    ],
)
def test_repair_of_incoherent_estimates(sets, coherent, raw, expected, d):
    Y = np.array(sets)
    model = one_factor("direct", ColumnProba(), calibration=None, coherent=coherent)
    P, found = model.fit(Y.astype(float), Y).estimate(np.array([raw]))
    close(P[0, :, -1], expected, atol=1e-6)
    close(found[0], d)
    assert is_coherent(P, found).all() == coherent


# "reweighted"


def formula(model, X, Y):
    """Return the joint of "reweighted" by enumeration, from models fitted one by one."""
    s, m = Y.sum(axis=1), Y.shape[1]
    number, *labels = models(X, [s, *Y.T])
    mu = np.zeros((len(X), m + 1))
    mu[:, number.classes] = number.predict_proba(X)
    sets, proba = independent_joint(
        np.column_stack([label.predict_proba(X)[:, 1] for label in labels])
    )
    pi = cardinality_distribution(sets, proba)
    a, b = model.fitted_method().pool.weights_, np.zeros(m + 1)
    b[number.classes] = model.fitted_method().pool.shifts_
    d = np.where(np.isin(np.arange(m + 1), number.classes), np.exp(b), 0.0)
    d = d * pi ** a[0] * mu ** a[1]
    d /= d.sum(axis=1, keepdims=True)
    return sets, proba * (d / pi)[:, sets.sum(axis=1)]


@pytest.mark.parametrize("gap", [False, True])
def test_reweighted_is_its_formula(gap):
    X, Y = make_data(90)
    if gap:
        Y[Y.sum(axis=1) == 2, 0] ^= 1  # never two labels
    model = fitted("reweighted", X, Y)
    P, d = model.estimate(X)
    S = P.shape[2]
    joint = formula(model, X, Y)
    close(P, cardinality_matrix(*joint)[:, :, :S], atol=1e-9)
    close(d, cardinality_distribution(*joint)[:, : S + 1], atol=1e-9)
    assert d[:, ~np.isin(np.arange(S + 1), Y.sum(axis=1))].any() == 0.0
    assert (2 in Y.sum(axis=1)) != gap


def test_pool_is_fitted_to_out_of_fold_predictions():
    X, Y = make_data(90)
    classes, code = np.unique(Y.sum(axis=1), return_inverse=True)
    number, *labels = models(X, [Y.sum(axis=1), *Y.T], held_out=True)
    p = np.column_stack([label.held_out[:, 1] for label in labels])
    pi = cardinality_distribution(*independent_joint(p))[:, classes]
    by_hand = LogLinearPool().fit([pi, number.held_out], code)
    pool = fitted("reweighted", X, Y).fitted_method().pool
    close(pool.weights_, by_hand.weights_, atol=1e-6)
    close(pool.shifts_, by_hand.shifts_, atol=1e-6)


def test_independent_labels_stay_independent():
    rng = np.random.default_rng(0)
    p = np.array([[0.1, 0.5, 0.7], [0.4, 0.3, 0.8], [0.6, 0.2, 0.5], [0.3, 0.9, 0.1]])
    cell = rng.integers(0, 4, 20_000)
    Y = (rng.random((20_000, 3)) < p[cell]).astype(int)
    P, d = one_factor("reweighted", random_state=0).fit(np.eye(4)[cell], Y).estimate(np.eye(4))
    close(P, cardinality_matrix(*independent_joint(p)), atol=0.02)
    close(d, cardinality_distribution(*independent_joint(p)), atol=0.02)


@pytest.mark.parametrize(
    ("factors", "fits"), [("independent", 3), ("single", 4 * 4), ([[0], [1, 2]], 4 * 4)]
)
def test_folds_are_fitted_only_for_factors_of_several_labels(factors, fits):
    counted = []

    class Counting(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            counted.append(len(y))
            return super().fit(X, y, sample_weight)

    X, Y = make_data(90, 3)
    FGFMClassifier(Counting(), factors=factors, calibration=None, random_state=0).fit(X, Y)
    assert len(counted) == fits


def test_cardinality_0_that_never_occurs_gets_probability_0():
    X, Y = make_data(90)
    Y[Y.sum(axis=1) == 0, 0] = 1
    model = FGFMClassifier(random_state=0).fit(X, Y)
    assert not model.predict_cardinality_proba(X)[:, 0].any()
    assert model.predict(X).any(axis=1).all()
    # rows of weight 0 do not count
    weighted = one_factor("reweighted", cv=interleaved_folds(91)).fit(
        np.vstack([X, X[:1]]), np.vstack([Y, 0 * Y[:1]]), sample_weight=np.arange(91) < 90
    )
    assert (weighted.estimate(X).P == fitted("reweighted", X, Y).estimate(X).P).all()


def test_labels_that_occur_once_do_not_prevent_the_fit_of_the_pool():
    X, Y = make_data(90, 3)
    rare = np.zeros((90, 3), dtype=int)
    rare[[0, 1, 2], [0, 1, 2]] = 1  # one in each fold
    model = fitted("reweighted", X, np.hstack([Y, rare]), learner=LogisticRegression())
    assert model.fitted_method().pool.shifts_.any()
    assert is_coherent(*model.estimate(X)).all()


def test_label_that_never_occurs_gets_probability_0_even_if_others_have_marginal_0():
    X, _ = make_data(30, 2)
    once = np.zeros((30, 3), dtype=int)
    once[5, :2] = 1  # isotonic calibration predicts probability 0 for both
    model = one_factor("reweighted", GaussianNB(), calibration="isotonic", cv=2, random_state=0)
    P, d = model.fit(X, once).estimate(X)
    assert d[:, 2].max() > 1e-3
    assert not P[:, 2].any()
    P, d = model.fit(X, np.hstack([once, np.ones((30, 1), dtype=int)])).estimate(X)
    assert not P[:, 2].any()
    close(P[:, 3], d[:, 1:])


def test_conditioned_labels_are_surer_than_marginals_that_exclude_each_other():
    """With one label in every row, the odds p_i / (1 - p_i) count the exclusion twice."""
    p = np.array([0.5, 0.3, 0.2])
    Y = np.eye(3, dtype=int)[np.random.default_rng(0).choice(3, 6000, p=p)]
    P, d = one_factor("reweighted", random_state=0).fit(np.zeros((6000, 1)), Y).estimate([[0.0]])
    close(d, [[0.0, 1.0]])
    odds = p / (1.0 - p)
    close(P[0, :, 0], odds / odds.sum(), atol=0.02)
