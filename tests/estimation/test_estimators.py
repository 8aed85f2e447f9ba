"""Properties of all five estimators: the truth, coherence, weights, forms of data, messages."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import fsolve
from scipy.special import expit
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from fgfm.cardinality import is_coherent
from fgfm.estimation import FactorEstimate
from fgfm.ridge import RidgeLogistic, fit_ridge_logistic
from multilabel import METHODS, close, interleaved_folds, make_data, one_factor
from oracle import all_labelsets, cardinality_distribution, cardinality_matrix, random_joint

estimates = pytest.mark.parametrize("method", METHODS)


def two_step_truth():
    """Return a joint for three values of x with logit q_i(s) = a_i(x) + b_i s, s in {1, 2}."""
    b = np.array([1.0, 2.0, 3.5])
    sets = all_labelsets(3)
    proba = np.zeros((3, len(sets)))
    for x, (first, d) in enumerate([(-2.0, (0.5, 0.5)), (-3.0, (0.8, 0.2)), (-2.5, (0.3, 0.7))]):

        def excess(rest, first=first):
            a = np.append(first, rest)
            return [expit(a + b).sum() - 1.0, expit(a + 2.0 * b).sum() - 2.0]

        rest, _, found, _ = fsolve(excess, [-3.0, -4.0], full_output=True)
        assert found == 1
        a = np.append(first, rest)
        for i in range(3):
            alone, left_out = np.eye(3)[i], 1.0 - np.eye(3)[i]
            proba[x, (sets == alone).all(axis=1)] = d[0] * expit(a + b)[i]
            proba[x, (sets == left_out).all(axis=1)] = d[1] * (1.0 - expit(a + 2.0 * b)[i])
    return sets, proba


def exchangeable_truth():
    """Return a joint for three values of x, with exchangeable labels given their number."""
    sets = all_labelsets(3)
    size = sets.sum(axis=1)
    d = np.array([[0.1, 0.2, 0.3, 0.4], [0.4, 0.4, 0.1, 0.1], [0.25, 0.25, 0.25, 0.25]])
    return sets, d[:, size] / np.array([1, 3, 3, 1])[size]


def any_truth():
    return random_joint(np.random.default_rng(7), 3, 3)


def draw(joint, n, rng):
    """Draw rows: x as three indicator columns, and a label set."""
    sets, proba = joint
    cell = rng.integers(0, 3, n)
    of_set = (rng.random((n, 1)) > proba.cumsum(axis=1)[cell]).sum(axis=1)
    return np.eye(3)[cell], sets[np.minimum(of_set, len(sets) - 1)]


@pytest.mark.parametrize(
    ("method", "truth"),
    [
        ("reweighted", exchangeable_truth),
        ("two-step", two_step_truth),
        ("tilted", exchangeable_truth),
        ("direct", any_truth),
        ("powerset", any_truth),
    ],
)
def test_truth_is_recovered(method, truth):
    joint = truth()
    exact, d_exact = cardinality_matrix(*joint), cardinality_distribution(*joint)
    error = {}
    for n in (150, 30_000):
        found = []
        for seed in range(4):
            X, Y = draw(joint, n, np.random.default_rng(seed))
            P, d = one_factor(method, random_state=seed).fit(X, Y).estimate(np.eye(3))
            S = P.shape[2]
            assert not exact[:, :, S:].any()
            found.append(np.abs(P - exact[:, :, :S]).max())
            if n > 1000:
                close(d, d_exact[:, : S + 1], atol=0.03)
        error[n] = np.mean(found)
    assert error[30_000] < 0.015
    assert error[30_000] < 0.4 * error[150]


def test_truths_are_distributions():
    for truth in (two_step_truth, exchangeable_truth, any_truth):
        sets, proba = truth()
        assert (proba >= 0.0).all()
        close(proba.sum(axis=1), 1.0, atol=1e-9)
        assert is_coherent(cardinality_matrix(sets, proba)).all()


@estimates
@pytest.mark.parametrize(
    "learner",
    [
        None,
        RidgeLogistic([1.0]),
        LogisticRegression(),
        GaussianNB(),
        KNeighborsClassifier(3),
        LinearSVC(),
        DummyClassifier(),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_estimates_are_coherent(method, learner):
    X, Y = make_data(60, 3)
    model = one_factor(method, learner, random_state=0).fit(X, Y)
    estimated = model.estimate(X[:20])
    assert isinstance(estimated, FactorEstimate)
    P, d = estimated
    assert P.shape == (20, 3, 3)
    assert d.shape == (20, 4)
    assert (d >= 0.0).all()
    close(d.sum(axis=1), 1.0)
    assert is_coherent(P, d).all()


@estimates
def test_cardinalities_that_do_not_occur_get_probability_0(method):
    X, _ = make_data(60)
    Y = np.zeros((60, 6), dtype=int)
    Y[np.arange(60), np.arange(60) % 4] = 1  # one label of six
    Y[::3, :3] = 1  # three or four labels of six
    Y = np.where(Y.sum(axis=1, keepdims=True) == 4, np.eye(6, dtype=int)[0], Y)
    assert set(Y.sum(axis=1)) == {1, 3}
    model = one_factor(method, random_state=0).fit(X, Y)
    P, d = model.estimate(X)
    assert P.shape == (60, 6, 3)
    assert not P[:, :, 1].any()
    assert not d[:, 2].any()
    assert P[:, :4, 0].any(axis=0).all()
    if method != "direct":  # it has no model of the cardinality
        assert not d[:, 0].any()
    assert not P[:, 5].any()


@estimates
def test_single_label_takes_one_binary_model(method):
    pd = pytest.importorskip("pandas")
    X, Y = make_data(50)
    y = pd.DataFrame(Y[:, :1])  # an array of one column is a flat y
    model = one_factor(method, cv=interleaved_folds(50)).fit(X, y)
    P, d = model.estimate(X)
    (by_hand,) = fit_ridge_logistic(X, [Y[:, 0]], cv=interleaved_folds(50))
    p = by_hand.predict_proba(X)
    close(P, p[:, 1:, None])
    close(d, p)
    flat = one_factor(method, cv=interleaved_folds(50)).fit(X, Y[:, 0]).estimate(X)
    assert (flat.P == P).all()


@estimates
@pytest.mark.parametrize("value", [0, 1])
@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("learner", [None, GaussianNB()], ids=["ridge", "GaussianNB"])
def test_constant_labels(method, value, m, learner):
    X, _ = make_data(20)
    Y = sparse.csr_array(np.full((20, m), value))  # an array of one column is a flat y
    P, d = one_factor(method, learner).fit(X, Y).estimate(X[:5])
    S = m if value else 1
    assert P.shape == (5, m, S)
    expected = np.zeros((5, m, S))
    expected[:, :, -1] = value
    close(P, expected)
    close(d, np.eye(S + 1)[[S if value else 0] * 5])


@estimates
@pytest.mark.parametrize(
    ("learner", "how"),
    [
        (None, {}),
        (GaussianNB(), {"calibration": None}),
        (GaussianNB(), {}),
        (GaussianNB(), {"calibration": "isotonic"}),
    ],
)
def test_weight_two_is_the_row_twice(method, learner, how):
    X, Y = make_data(60, 3, n_features=2, noise=1.0)
    weight = np.where(np.arange(60) % 4 == 0, 2.0, 1.0)
    weighted = one_factor(method, learner, cv=interleaved_folds(60), **how).fit(
        X, Y, sample_weight=weight
    )
    rows = np.concatenate([np.arange(60), np.flatnonzero(weight == 2.0)])
    twice = [
        tuple(np.flatnonzero(np.isin(rows, part)) for part in (train, test))
        for train, test in interleaved_folds(60)
    ]
    repeated = one_factor(method, learner, cv=twice, **how).fit(X[rows], Y[rows])
    close(weighted.estimate(X).P, repeated.estimate(X).P, atol=2e-5)
    close(weighted.estimate(X).d, repeated.estimate(X).d, atol=2e-5)
    unweighted = one_factor(method, learner, cv=interleaved_folds(60), **how).fit(X, Y)
    assert np.abs(unweighted.estimate(X).P - repeated.estimate(X).P).max() > 1e-3


@estimates
@pytest.mark.parametrize(
    ("learner", "how", "cv"),
    [
        (None, {}, None),
        (None, {}, "given"),
        (None, {}, KFold(3)),
        (GaussianNB(), {"calibration": None}, None),
        (GaussianNB(), {}, "given"),
        (GaussianNB(), {"calibration": "isotonic"}, KFold(3)),
        (GaussianNB(), {"calibration": "isotonic"}, 3),
    ],
)
def test_weight_zero_removes_a_row(method, learner, how, cv):
    X, Y = make_data(60, 4)
    Y[Y.sum(axis=1) == 4, 0] = 0
    Y[[7, 20]] = 1  # the only rows with four labels
    weight = np.ones(60)
    weight[[7, 20, 21, 33]] = 0.0
    kept = np.flatnonzero(weight)
    cv_all, cv_kept = cv, cv
    if cv == "given":
        cv_all = interleaved_folds(60)
        cv_kept = [tuple(np.flatnonzero(np.isin(kept, part)) for part in fold) for fold in cv_all]
    whole = one_factor(method, learner, cv=cv_all, random_state=0, **how).fit(
        X, Y, sample_weight=weight
    )
    part = one_factor(method, learner, cv=cv_kept, random_state=0, **how).fit(X[kept], Y[kept])
    assert whole.estimate(X).P.shape == (60, 4, 3)
    close(whole.estimate(X).P, part.estimate(X).P, atol=1e-7)
    close(whole.estimate(X).d, part.estimate(X).d, atol=1e-7)
    if method == "powerset":
        sets = whole.fitted_method().labelsets
        assert (sets == part.fitted_method().labelsets).all()
        assert not sets.all(axis=1).any()


# not Reweighted: the penalty of its pool counts as one row, whatever the weights
@pytest.mark.parametrize("method", METHODS[1:])
def test_scale_of_weights_does_not_matter(method):
    X, Y = make_data(60, 3)
    model = one_factor(method, GaussianNB(), calibration=None)
    one = model.fit(X, Y, sample_weight=np.ones(60)).estimate(X)
    many = clone(model).fit(X, Y, sample_weight=np.full(60, 5.0)).estimate(X)
    close(one.P, many.P, atol=1e-9)
