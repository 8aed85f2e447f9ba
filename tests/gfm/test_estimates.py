"""P and d of each factor: the formulas of the methods, the truth, weights, label factors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import fsolve
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

import fgfm
from fgfm import FGFMClassifier
from fgfm.cardinality import distribution, is_coherent, make_coherent, of_conditionals
from fgfm.ridge import RidgeLogistic, fit_ridge_logistic
from multilabel import X, Y, close, interleaved_folds, make_data
from oracle import all_labelsets, cardinality_distribution, cardinality_matrix, random_joint

METHODS = ["two-step", "direct"]
LEARNERS = [None, RidgeLogistic([1.0]), LogisticRegression(), GaussianNB(), DummyClassifier()]


def estimate(X, Y, rows=None, *, weight=None, **how):
    """Return P and d of one factor of all labels, for the training rows by default."""
    model = FGFMClassifier(**{"factors": "single", "random_state": 0} | how)
    (estimated,) = model.fit(X, Y, sample_weight=weight).estimate(X if rows is None else rows)
    return estimated


def test_two_step_is_the_product_of_its_models():
    X, Y = make_data(80)
    s, cv = Y.sum(axis=1).astype(float), interleaved_folds(80)
    number, *labels = fit_ridge_logistic(X, [s.astype(int), *Y.T], extra=[None] + [s] * 4, cv=cv)
    d = np.zeros((80, int(s.max()) + 1))
    d[:, number.classes] = number.predict_proba(X)
    q = np.zeros((80, 4, int(s.max())))
    for i, label in enumerate(labels):
        for k in number.classes[number.classes > 0]:
            q[:, i, k - 1] = label.predict_proba(X, extra=float(k))[:, 1]
    raw = estimate(X, Y, coherent=False, cv=cv)
    close(raw.d, d)
    close(raw.P, d[:, None, 1:] * q)
    assert not is_coherent(raw.P, raw.d).any()
    coherent = estimate(X, Y, cv=cv)
    close(coherent.d, d)
    close(coherent.P, of_conditionals(q, d))


def test_direct_is_one_multinomial_model_per_label():
    X, Y = make_data(80)
    s, cv = Y.sum(axis=1), interleaved_folds(80)
    raw = np.zeros((80, 4, int(s.max())))
    for i, model in enumerate(fit_ridge_logistic(X, [y * s for y in Y.T], cv=cv)):
        for k, name in enumerate(model.classes):
            if name > 0:
                raw[:, i, name - 1] = model.predict_proba(X)[:, k]
    close(estimate(X, Y, method="direct", coherent=False, cv=cv).P, raw)
    P, d = estimate(X, Y, method="direct", cv=cv)
    close(P, make_coherent(raw))
    close(d, distribution(P))
    assert np.abs(P - raw).sum(axis=(1, 2)).max() > 1e-3


def test_learners_get_the_number_of_labels_as_last_column():
    seen = []

    class Recorder(DummyClassifier):
        def fit(self, X, y, sample_weight=None):
            seen.append(np.array(X))
            return super().fit(X, y)

    X, Y = make_data(20, 3)
    estimate(X, Y, estimator=Recorder())
    assert [x.shape[1] for x in seen] == [3, 4, 4, 4]
    for x in seen[1:]:
        assert (x == np.column_stack([X, Y.sum(axis=1)])).all()


@pytest.mark.parametrize("coherent", [False, True])
def test_label_that_never_occurs_with_a_number_of_labels_gets_probability_0(coherent):
    X, _ = make_data(40)
    Y = np.array([[1, 0, 0], [0, 1, 1], [1, 1, 0], [0, 1, 0]] * 10)  # label 2 is never alone
    P, _ = estimate(X, Y, method="direct", coherent=coherent)
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
    P, d_found = estimate(
        Y.astype(float), Y, [raw], estimator=ColumnProba(), method="direct", coherent=coherent
    )
    close(P[0, :, -1], expected, atol=1e-6)
    close(d_found[0], d)
    assert is_coherent(P, d_found).all() == coherent


def two_step_truth():
    """Return a joint for three values of x with logit q_i(s) = a_i(x) + b_i s, s in {1, 2}."""
    b = np.array([1.0, 2.0, 3.5])
    sets = all_labelsets(3)
    proba = np.zeros((3, len(sets)))
    for x, (first, d) in enumerate([(-2.0, (0.5, 0.5)), (-3.0, (0.8, 0.2)), (-2.5, (0.3, 0.7))]):

        def excess(rest, first=first):
            a = np.append(first, rest)
            return [expit(a + b).sum() - 1.0, expit(a + 2.0 * b).sum() - 2.0]

        a = np.append(first, fsolve(excess, [-3.0, -4.0]))
        for i in range(3):
            alone, left_out = np.eye(3)[i], 1.0 - np.eye(3)[i]
            proba[x, (sets == alone).all(axis=1)] = d[0] * expit(a + b)[i]
            proba[x, (sets == left_out).all(axis=1)] = d[1] * (1.0 - expit(a + 2.0 * b)[i])
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=1e-9)
    return sets, proba


def any_truth():
    return random_joint(np.random.default_rng(7), 3, 3)


@pytest.mark.parametrize(
    ("method", "truth"), [("two-step", two_step_truth), ("direct", any_truth)]
)
def test_truth_is_recovered(method, truth):
    sets, proba = truth()
    exact = cardinality_matrix(sets, proba)
    d_exact = cardinality_distribution(sets, proba)
    error = {}
    for n in (150, 30_000):
        errors = []
        for seed in range(4):
            rng = np.random.default_rng(seed)
            x = rng.integers(0, 3, n)
            drawn = (rng.random((n, 1)) > proba.cumsum(axis=1)[x]).sum(axis=1)
            labels = sets[np.minimum(drawn, len(sets) - 1)]
            P, d = estimate(np.eye(3)[x], labels, np.eye(3), method=method, random_state=seed)
            S = P.shape[2]
            assert not exact[:, :, S:].any()
            errors.append(np.abs(P - exact[:, :, :S]).max())
            if n > 1000:
                close(d, d_exact[:, : S + 1], atol=0.03)
        error[n] = np.mean(errors)
    assert error[30_000] < 0.015
    assert error[30_000] < 0.4 * error[150]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "learner", [*LEARNERS, KNeighborsClassifier(3)], ids=lambda learner: type(learner).__name__
)
def test_estimates_are_coherent(method, learner):
    P, d = estimate(X, Y[:, :3], X[:20], method=method, estimator=learner)
    assert P.shape == (20, 3, 3)
    assert d.shape == (20, 4)
    assert (d >= 0.0).all()
    close(d.sum(axis=1), 1.0)
    assert is_coherent(P, d).all()


@pytest.mark.parametrize("method", METHODS)
def test_numbers_of_labels_that_do_not_occur_get_probability_0(method):
    Y = np.zeros((60, 6), dtype=int)
    Y[np.arange(60), np.arange(60) % 4] = 1  # one label of six
    Y[::3, :3] = 1  # three or four labels of six
    Y = np.where(Y.sum(axis=1, keepdims=True) == 4, np.eye(6, dtype=int)[0], Y)
    assert set(Y.sum(axis=1)) == {1, 3}
    P, d = estimate(X, Y, method=method)
    assert P.shape == (60, 6, 3)
    assert not P[:, :, 1].any()
    assert not d[:, 2].any()
    assert P[:, :4, 0].any(axis=0).all()
    if method == "two-step":
        assert not d[:, 0].any()
    assert not P[:, 5].any()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("value", [0, 1])
@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("learner", [None, GaussianNB()], ids=["ridge", "GaussianNB"])
def test_constant_labels(method, value, m, learner):
    labels = sparse.csr_array(np.full((60, m), value))  # an array of one column is a flat y
    P, d = estimate(X, labels, X[:5], method=method, estimator=learner)
    S = m if value else 1
    expected = np.zeros((5, m, S))
    expected[:, :, -1] = value
    close(P, expected)
    close(d, np.eye(S + 1)[[S if value else 0] * 5])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("learner", [None, GaussianNB()], ids=["ridge", "GaussianNB"])
def test_weights_are_repeated_and_removed_rows(method, learner):
    X, Y = make_data(60, 3, n_features=2, noise=1.0)
    Y = np.column_stack([Y, np.zeros(60, int)])
    Y[[7, 20]] = 1  # the only rows with four labels have no weight
    weight = np.where(np.arange(60) % 4 == 0, 2.0, 1.0)
    weight[[7, 20, 33]] = 0.0
    rows = np.repeat(np.arange(60), weight.astype(int))
    folds, of_row = interleaved_folds(60), np.arange(60) % 3
    repeated = [
        (np.flatnonzero(of_row[rows] != f), np.flatnonzero(of_row[rows] == f)) for f in range(3)
    ]
    how = {"method": method, "estimator": learner}
    cv = [{"cv": folds}, {"cv": repeated}] if learner is None else [{}, {}]
    weighted = estimate(X, Y, weight=weight, **how, **cv[0])
    plain = estimate(X[rows], Y[rows], X, **how, **cv[1])
    assert plain.P.shape == (60, 4, 3)
    close(weighted.P, plain.P, atol=2e-5)
    close(weighted.d, plain.d, atol=2e-5)
    assert np.abs(estimate(X, Y, **how, **cv[0]).P[:, :, :3] - plain.P).max() > 1e-3


# label factors


@pytest.mark.parametrize("method", METHODS)
def test_factors_are_fitted_as_by_themselves(method):
    factors = [[2, 0], [1, 3]]
    model = FGFMClassifier(factors=factors, method=method, random_state=0).fit(X, Y)
    p = model.predict_proba(X)
    for factor, (P, d) in zip(factors, model.estimate(X), strict=True):
        alone = estimate(X, Y[:, factor], method=method)
        close(P, alone.P)
        close(d, alone.d)
        close(p[:, factor], alone.P.sum(axis=2))
    numbers = [set(Y[:, factor].sum(axis=1)) - {0} for factor in factors]
    assert model.n_parameters_ == sum(2 * len(s) for s in numbers)


def test_independent_labels_have_one_binary_model_each():
    model = FGFMClassifier(factors="independent", cv=interleaved_folds(60)).fit(X, Y)
    fits = fit_ridge_logistic(X, list(Y.T), cv=interleaved_folds(60))
    p = np.column_stack([one.predict_proba(X)[:, 1] for one in fits])
    close(model.predict_proba(X), p)
    decision = fgfm.decision.from_marginals(p, nonempty=model.nonempty_)
    assert (model.predict(X) == decision.labels).all()
    close(model.expected_f(X), decision.expected_f)
    flat = FGFMClassifier(cv=interleaved_folds(60)).fit(X, Y[:, 0])
    close(flat.predict_proba(X)[:, 1], p[:, 0])


def test_partition_by_label_names():
    pd = pytest.importorskip("pandas")
    labels = pd.DataFrame(Y, columns=["cat", "dog", "cow", "hen"])
    by_name = FGFMClassifier(factors=[["hen", "cat"], ("dog", "cow")], random_state=0)
    by_number = FGFMClassifier(factors=[[3, 0], np.array([1, 2])], random_state=0)
    by_name.fit(X, labels)
    assert [f.tolist() for f in by_name.factors_] == [[3, 0], [1, 2]]
    assert (by_name.predict_proba(X) == by_number.fit(X, Y).predict_proba(X)).all()


def pairs_of_labels(n=400):
    """Draw features, and two pairs of labels that depend on each other given the features."""
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(n, 2))
    noise = rng.random((n, 4)) < 0.15
    labels = (rows[:, [0, 0, 1, 1]] + rng.normal(size=(n, 2))[:, [0, 0, 1, 1]] > 0.0) ^ noise
    return rows, labels.astype(int)


def test_ilf_finds_factors():
    pd = pytest.importorskip("pandas")
    rows, labels = pairs_of_labels()
    model = FGFMClassifier(random_state=0).fit(rows, pd.DataFrame(labels, columns=list("abcd")))
    assert [factor.tolist() for factor in model.factors_] == [[0, 1], [2, 3]]
    assert type(model.factor_finder_) is fgfm.ILFCompo
    assert model.factor_finder_.label_names_in_.tolist() == list("abcd")
    twice, weight = FGFMClassifier(random_state=0), np.ones(800)
    weight[400:] = 0.0  # the tests ignore rows of weight 0 too
    twice.fit(np.vstack([rows, rows]), np.vstack([labels, labels[::-1]]), sample_weight=weight)
    close(twice.predict_proba(rows), model.predict_proba(rows), atol=1e-9)
    stricter = FGFMClassifier(factors=fgfm.ILFCompo(alpha=1e-300)).fit(rows, labels)
    assert len(stricter.factors_) == 4
    assert not hasattr(stricter.set_params(factors="single").fit(rows, labels), "factor_finder_")


class Finder(BaseEstimator):
    """Sets the factors of its constructor, and records the arguments of fit."""

    def __init__(self, partition=None, random_state=None):
        self.partition = partition
        self.random_state = random_state

    def fit(self, X, Y, sample_weight=None):
        assert set(np.unique(Y)) <= {0, 1}
        self.factors_ = self.partition
        Finder.last = (self, X.shape, Y.shape, sample_weight)
        return self


def test_factors_found_by_an_object():
    finder = Finder([[0, 3], [1, 2]])
    model = FGFMClassifier(factors=finder, random_state=0).fit(X, Y)
    assert [f.tolist() for f in model.factors_] == [[0, 3], [1, 2]]
    assert not hasattr(finder, "factors_")
    used, *shapes, weight = Finder.last
    assert used.random_state == 0
    assert shapes == [(60, 3), (60, 4)]
    assert weight is None
    model.fit(X, Y, sample_weight=np.ones(60))
    assert len(Finder.last[3]) == 60
    with pytest.raises(ValueError, match="factors leaves out label 3: every label must be in"):
        FGFMClassifier(factors=Finder([[0, 1], [2]])).fit(X, Y)
