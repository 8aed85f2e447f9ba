"""The estimates of P: the truth where it is known, the same models put together by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import fsolve
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from fgfm.cardinality import (
    distribution,
    from_conditionals,
    from_joint,
    from_marginals,
    is_coherent,
    make_coherent,
)
from fgfm.estimation import (
    Direct,
    FactorEstimate,
    FactorModel,
    Powerset,
    Reweighted,
    Tilted,
    TwoStep,
)
from fgfm.ridge import RidgeLogistic, fit_ridge_logistic
from oracle import all_labelsets, cardinality_distribution, cardinality_matrix, random_joint

ESTIMATES = [Reweighted, TwoStep, Tilted, Direct, Powerset]
estimates = pytest.mark.parametrize("estimate", ESTIMATES, ids=lambda kind: kind.__name__)


def some_data(n=80, m=4, seed=0):
    """Two features, and labels that depend on them and on each other."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    shared = rng.normal(size=(n, 1))
    Y = (X @ rng.normal(size=(2, m)) + shared + rng.normal(size=(n, m)) > 0.4).astype(int)
    return X, Y


def folds(n, k=3):
    """Folds as a list of row indices."""
    of_row = np.arange(n) % k
    return [(np.flatnonzero(of_row != f), np.flatnonzero(of_row == f)) for f in range(k)]


def close(actual, expected, atol=1e-12):
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=atol)


# The truth


def two_step_truth():
    """Three cells of x in which logit q_i(s) = a_i(x) + b_i s, for one or two of three labels."""
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
    """Three cells of x; the number of labels depends on x, and all labels are alike given it."""
    sets = all_labelsets(3)
    size = sets.sum(axis=1)
    d = np.array([[0.1, 0.2, 0.3, 0.4], [0.4, 0.4, 0.1, 0.1], [0.25, 0.25, 0.25, 0.25]])
    return sets, d[:, size] / np.array([1, 3, 3, 1])[size]


def any_truth():
    return random_joint(np.random.default_rng(7), 3, 3)


def draw(joint, n, rng):
    """Draw rows: a cell of x as three indicator columns, and a label set."""
    sets, proba = joint
    cell = rng.integers(0, 3, n)
    of_set = (rng.random((n, 1)) > proba.cumsum(axis=1)[cell]).sum(axis=1)
    return np.eye(3)[cell], sets[np.minimum(of_set, len(sets) - 1)]


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("estimate", "truth"),
    [
        (Reweighted, exchangeable_truth),
        (TwoStep, two_step_truth),
        (Tilted, exchangeable_truth),
        (Direct, any_truth),
        (Powerset, any_truth),
    ],
)
def test_truth_is_recovered(estimate, truth):
    joint = truth()
    exact, d_exact = cardinality_matrix(*joint), cardinality_distribution(*joint)
    error = {}
    for n in (150, 30_000):
        found = []
        for seed in range(4):
            X, Y = draw(joint, n, np.random.default_rng(seed))
            P, d = estimate(random_state=seed).fit(X, Y).estimate(np.eye(3))
            S = P.shape[2]
            assert not exact[:, :, S:].any()
            found.append(np.abs(P - exact[:, :, :S]).max())
            if n > 1000:
                close(d, d_exact[:, : S + 1], atol=0.03)
        error[n] = np.mean(found)
    assert error[30_000] < 0.015
    assert error[30_000] < 0.4 * error[150]


def test_the_truths_are_distributions():
    for truth in (two_step_truth, exchangeable_truth, any_truth):
        sets, proba = truth()
        assert (proba >= 0.0).all()
        close(proba.sum(axis=1), 1.0, atol=1e-9)
        assert is_coherent(cardinality_matrix(sets, proba)).all()


def test_two_step_truth_is_linear_in_the_number_of_labels():
    P, d = cardinality_matrix(*two_step_truth()), cardinality_distribution(*two_step_truth())
    q = P[:, :, :2] / d[:, None, 1:3]
    slope = logit(q[:, :, 1]) - logit(q[:, :, 0])
    close(slope, [[1.0, 2.0, 3.5]] * 3, atol=1e-6)


# What they all promise


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
def test_estimates_are_coherent(estimate, learner):
    X, Y = some_data(60, 3)
    model = estimate(learner, random_state=0).fit(X, Y)
    answer = model.estimate(X[:20])
    assert isinstance(answer, FactorEstimate)
    P, d = answer
    assert P.shape == (20, 3, 3)
    assert d.shape == (20, 4)
    assert (d >= 0.0).all()
    close(d.sum(axis=1), 1.0)
    assert is_coherent(P, d).all()


@estimates
def test_protocol(estimate):
    model = estimate()
    assert isinstance(model, FactorModel)
    assert clone(estimate(GaussianNB(), cv=4)).get_params()["cv"] == 4
    with pytest.raises(NotFittedError):
        model.estimate([[0.0]])


@estimates
def test_numbers_of_labels_that_do_not_occur(estimate):
    X, _ = some_data(60)
    Y = np.zeros((60, 6), dtype=int)
    Y[np.arange(60), np.arange(60) % 4] = 1  # one label, or
    Y[::3, :3] = 1  # three or four, of six
    Y = np.where(Y.sum(axis=1, keepdims=True) == 4, np.eye(6, dtype=int)[0], Y)
    assert set(Y.sum(axis=1)) == {1, 3}
    model = estimate(random_state=0).fit(X, Y)
    P, d = model.estimate(X)
    assert model.cardinalities_.tolist() == [1, 3]
    assert P.shape == (60, 6, 3)
    assert not P[:, :, 1].any()
    assert not d[:, 2].any()
    assert P[:, :4, 0].any(axis=0).all()
    if estimate is not Direct:  # which has no model of the number of labels
        assert not d[:, 0].any()
    assert not P[:, 5].any()


@pytest.mark.parametrize("model", [Direct(coherent=False), Direct(), Powerset()])
def test_a_label_that_does_not_occur_with_a_number_gets_nothing_there(model):
    X, _ = some_data(40)
    Y = np.array([[1, 0, 0], [0, 1, 1], [1, 1, 0], [0, 1, 0]] * 10)  # label 2 is never alone
    P, _ = model.fit(X, Y).estimate(X)
    assert not P[:, 2, 0].any()
    assert P[:, 2, 1].all()


@estimates
def test_singletons_take_one_binary_model(estimate):
    X, Y = some_data(50)
    y = Y[:, :1]
    model = estimate(cv=folds(50)).fit(X, y)
    assert [c.tolist() for c in model._factor_models.models.classes] == [[0, 1]]
    P, d = model.estimate(X)
    (by_hand,) = fit_ridge_logistic(X, [y[:, 0]], cv=folds(50))
    p = by_hand.predict_proba(X)
    close(P, p[:, 1:, None])
    close(d, p)
    flat = estimate(cv=folds(50)).fit(X, y[:, 0]).estimate(X)
    assert (flat.P == P).all()


@estimates
@pytest.mark.parametrize("value", [0, 1])
@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("learner", [None, GaussianNB()], ids=["ridge", "GaussianNB"])
def test_constant_labels(estimate, value, m, learner):
    X, _ = some_data(20)
    P, d = estimate(learner).fit(X, np.full((20, m), value)).estimate(X[:5])
    S = m if value else 1
    assert P.shape == (5, m, S)
    expected = np.zeros((5, m, S))
    expected[:, :, -1] = value
    close(P, expected)
    close(d, np.eye(S + 1)[[S if value else 0] * 5])


@pytest.mark.compiled
@estimates
def test_sparse_and_frames(estimate):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    X, Y = some_data()
    expected = estimate(random_state=0).fit(X, Y).estimate(X)
    names = list("ab")
    for X_other, Y_other in [
        (sparse.csr_array(X), sparse.csr_array(Y)),
        (sparse.csc_matrix(X), sparse.lil_matrix(Y)),
        (pd.DataFrame(X, columns=names), pd.DataFrame(Y)),
        (pl.DataFrame(X, schema=names), pl.DataFrame(Y)),
        (X.tolist(), Y.tolist()),
    ]:
        found = estimate(random_state=0).fit(X_other, Y_other).estimate(X_other)
        close(found.P, expected.P, atol=1e-8)
        close(found.d, expected.d, atol=1e-8)


@estimates
def test_refusals(estimate):
    X, Y = some_data(10)
    with pytest.raises(ValueError, match=r"Y\[3, 1\] is 2: labels must be 0 or 1"):
        estimate().fit(X, np.where((np.arange(40) == 13).reshape(10, 4), 2, Y))
    with pytest.raises(ValueError, match="Y has 9 rows and X has 10: they must have the same"):
        estimate().fit(X, Y[:9])
    with pytest.raises(ValueError, match=r"sample_weight\[2\] is -1.0: weights must be finite"):
        estimate().fit(X, Y, sample_weight=[1, 1, -1, 1, 1, 1, 1, 1, 1, 1])
    with pytest.raises(ValueError, match=r"X has 1 features, but \w+ is expecting 2 features"):
        estimate().fit(X, Y).estimate(X[:, :1])


@pytest.mark.parametrize("learner", [None, RidgeLogistic(), GaussianNB()])
def test_unknown_calibration_is_refused_for_every_learner(learner):
    X, Y = some_data(10)
    with pytest.raises(ValueError, match="calibration is 'platt': it must be 'auto', 'sigmoid'"):
        TwoStep(learner, calibration="platt").fit(X, Y)


# Put together by hand


def by_hand(X, Y, cv):
    """Fit the models of the paper one by one; give d and q on the same rows."""
    s = Y.sum(axis=1).astype(float)
    d_model, *models = fit_ridge_logistic(
        X, [s.astype(int), *Y.T], extra=[None] + [s] * Y.shape[1], cv=cv
    )
    S = int(s.max())
    d = np.zeros((len(X), S + 1))
    d[:, d_model.classes] = d_model.predict_proba(X)
    q = np.zeros((len(X), Y.shape[1], S))
    for i, model in enumerate(models):
        for k in d_model.classes[d_model.classes > 0]:
            q[:, i, k - 1] = model.predict_proba(X, extra=float(k))[:, 1]
    return d, q


def test_two_step_is_the_product_of_its_models():
    X, Y = some_data()
    d, q = by_hand(X, Y, folds(80))
    raw = TwoStep(coherent=False, cv=folds(80)).fit(X, Y).estimate(X)
    close(raw.d, d)
    close(raw.P, d[:, None, 1:] * q)
    assert not is_coherent(raw.P, raw.d).any()
    mended = TwoStep(cv=folds(80)).fit(X, Y).estimate(X)
    close(mended.d, d)
    close(mended.P, from_conditionals(q, d))


def test_two_step_models_know_the_number_of_labels():
    X, Y = some_data(400)
    model = TwoStep(cv=folds(400)).fit(X, Y)
    assert [len(c) for c in model._factor_models.models.classes] == [5, 2, 2, 2, 2]
    assert (
        model._factor_models.models.coef_extra[5:].min() > 0.1
    )  # more labels, and each is more probable


def test_tilted_is_the_tilt_of_its_models():
    X, Y = some_data()
    d_model, *models = fit_ridge_logistic(X, [Y.sum(axis=1), *Y.T], cv=folds(80))
    p = np.column_stack([model.predict_proba(X)[:, 1] for model in models])
    P, d = Tilted(cv=folds(80)).fit(X, Y).estimate(X)
    close(d, d_model.predict_proba(X))
    close(P, from_marginals(p, d))


def test_direct_is_one_multinomial_model_per_label():
    X, Y = some_data()
    s = Y.sum(axis=1)
    raw = np.zeros((80, 4, int(s.max())))
    for i, model in enumerate(fit_ridge_logistic(X, [y * s for y in Y.T], cv=folds(80))):
        for k, name in enumerate(model.classes):
            if name > 0:
                raw[:, i, name - 1] = model.predict_proba(X)[:, k]
    P, d = Direct(cv=folds(80), coherent=False).fit(X, Y).estimate(X)
    close(P, raw)
    model = Direct(cv=folds(80)).fit(X, Y)
    P, d = model.estimate(X)
    close(P, make_coherent(raw))
    close(d, distribution(P))
    d_0, moved = model.repair(X)
    sizes = np.arange(1, raw.shape[2] + 1)
    close(d_0, 1.0 - (raw.sum(axis=1) / sizes).sum(axis=1))
    close(moved, np.abs(P - raw).sum(axis=(1, 2)))
    assert (moved > 1e-3).any()


def test_powerset_is_the_sum_over_label_sets():
    X, Y = some_data()
    sets, code = np.unique(Y, axis=0, return_inverse=True)
    (by_hand,) = fit_ridge_logistic(X, [code.ravel()], cv=folds(80))
    proba = by_hand.predict_proba(X)
    model = Powerset(cv=folds(80)).fit(X, Y)
    assert (model.labelsets_ == sets).all()
    P, d = model.estimate(X)
    close(P, from_joint(sets, proba))
    close(d, cardinality_distribution(sets, proba)[:, : d.shape[1]])
    assert (model.mode(X) == sets[proba.argmax(axis=1)]).all()
    assert model.mode(X).dtype == np.int8


# The repair of direct estimates


class ColumnProba(ClassifierMixin, BaseEstimator):
    """Finds the feature that equals its target, and takes it as the target's probability."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        equal = ((y > 0)[:, None] == X).all(axis=0)
        self.column_ = int(np.flatnonzero(equal)[0])
        return self

    def predict_proba(self, X):
        p = X[:, self.column_]
        return np.column_stack([1.0 - p, p])


def direct_of(sets, coherent=True):
    """Give a Direct whose raw P is what it is asked: all sets have 0 labels or the same number."""
    Y = np.array(sets)
    model = Direct(ColumnProba(), calibration=None, coherent=coherent)
    return model.fit(Y.astype(float), Y)


def test_repair_of_too_much_probability():
    sets = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    asked = np.array([[0.5, 0.5, 0.5], [0.2, 0.2, 0.2], [0.6, 0.3, 0.3], [0.0, 0.0, 0.0]])
    model = direct_of(sets)
    d_0, moved = model.repair(asked)
    close(d_0, [-0.5, 0.4, -0.2, 1.0])
    close(moved, [0.5, 0.0, 0.2, 0.0])
    assert moved[1] == moved[3] == 0.0  # coherent already
    P, d = model.estimate(asked)
    close(P[:, :, 0], [[1 / 3] * 3, [0.2] * 3, [0.5, 0.25, 0.25], [0.0] * 3])
    close(d, [[0.0, 1.0], [0.4, 0.6], [0.0, 1.0], [1.0, 0.0]])
    assert is_coherent(P, d).all()


def test_repair_of_labels_that_disagree():
    sets = [[1, 1, 0], [1, 0, 1], [0, 1, 1], [0, 0, 0]]
    model = direct_of(sets)
    asked = np.array([[0.6, 0.1, 0.1]])  # d_2 = 0.4, and label 0 has more than that
    P, d = model.estimate(asked)
    close(d, [[0.6, 0.0, 0.4]])
    close(P[0, :, 1], [0.4, 0.2, 0.2], atol=1e-6)
    close(model.repair(asked).d_0, [0.6])
    close(model.repair(asked).moved, [0.4], atol=1e-6)


def test_raw_direct_estimates_stay_as_they_are():
    model = direct_of([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], coherent=False)
    asked = np.array([[0.5, 0.6, 0.7], [0.1, 0.2, 0.3]])
    P, d = model.estimate(asked)
    assert (P[:, :, 0] == asked).all()
    close(d, [[0.0, 1.0], [0.4, 0.6]])  # no probability below 0, none in all above 1
    close(model.repair(asked).d_0, [-0.8, 0.4])


# Weights


def learners():
    return [
        pytest.param(None, {}, id="ridge"),
        pytest.param(GaussianNB(), {"calibration": None}, id="plain"),
        pytest.param(GaussianNB(), {}, id="sigmoid"),
        pytest.param(GaussianNB(), {"calibration": "isotonic"}, id="isotonic"),
    ]


@estimates
@pytest.mark.parametrize(("learner", "how"), learners())
def test_weight_two_is_the_row_twice(estimate, learner, how):
    X, Y = some_data(60, 3)
    weight = np.where(np.arange(60) % 4 == 0, 2.0, 1.0)
    weighted = estimate(learner, cv=folds(60), **how).fit(X, Y, sample_weight=weight)
    rows = np.concatenate([np.arange(60), np.flatnonzero(weight == 2.0)])
    twice = [
        tuple(np.flatnonzero(np.isin(rows, part)) for part in (train, test))
        for train, test in folds(60)
    ]
    repeated = estimate(learner, cv=twice, **how).fit(X[rows], Y[rows])
    close(weighted.estimate(X).P, repeated.estimate(X).P, atol=2e-5)
    close(weighted.estimate(X).d, repeated.estimate(X).d, atol=2e-5)
    unweighted = estimate(learner, cv=folds(60), **how).fit(X, Y)
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
def test_weight_zero_removes_a_row(estimate, learner, how, cv):
    X, Y = some_data(60, 4)
    Y[Y.sum(axis=1) == 4, 0] = 0
    Y[[7, 20]] = 1  # the only rows with four labels, and the only ones with this label set
    weight = np.ones(60)
    weight[[7, 20, 21, 33]] = 0.0
    kept = np.flatnonzero(weight)
    cv_all, cv_kept = cv, cv
    if cv == "given":
        cv_all = folds(60)
        cv_kept = [tuple(np.flatnonzero(np.isin(kept, part)) for part in fold) for fold in cv_all]
    whole = estimate(learner, cv=cv_all, random_state=0, **how).fit(X, Y, sample_weight=weight)
    part = estimate(learner, cv=cv_kept, random_state=0, **how).fit(X[kept], Y[kept])
    assert whole.estimate(X).P.shape == (60, 4, 3)
    close(whole.estimate(X).P, part.estimate(X).P, atol=1e-7)
    close(whole.estimate(X).d, part.estimate(X).d, atol=1e-7)
    if estimate is Powerset:
        assert (whole.labelsets_ == part.labelsets_).all()
        assert not whole.labelsets_.all(axis=1).any()


# not Reweighted: five times the rows are more to learn the number of labels from
@pytest.mark.parametrize("estimate", [TwoStep, Tilted, Direct, Powerset])
def test_scale_of_weights_does_not_choose_the_labels(estimate):
    X, Y = some_data(60, 3)
    model = estimate(GaussianNB(), calibration=None)
    one = model.fit(X, Y, sample_weight=np.ones(60)).estimate(X)
    many = clone(model).fit(X, Y, sample_weight=np.full(60, 5.0)).estimate(X)
    close(one.P, many.P, atol=1e-9)


# Base learners


def test_a_ridge_learner_keeps_its_own_settings():
    X, Y = some_data(60, 3)
    model = TwoStep(RidgeLogistic([0.5])).fit(X, Y)
    assert (model._factor_models.models.penalties == 0.5).all()
    default = TwoStep(random_state=3).fit(X, Y).estimate(X)
    same = TwoStep(RidgeLogistic(random_state=3)).fit(X, Y).estimate(X)
    assert (same.P == default.P).all()


def test_base_learners_see_the_number_of_labels_as_last_column():
    seen = []

    class Recorder(DummyClassifier):
        def fit(self, X, y, sample_weight=None):
            seen.append(np.array(X))
            return super().fit(X, y)

    X, Y = some_data(20, 3)
    TwoStep(Recorder(), calibration=None).fit(X, Y)
    assert [x.shape[1] for x in seen] == [2, 3, 3, 3]
    for x in seen[1:]:
        assert (x[:, :2] == X).all()
        assert (x[:, 2] == Y.sum(axis=1)).all()


def test_learners_without_a_seed_get_one_and_others_keep_theirs():
    seeds = []

    class Recorder(DummyClassifier):
        def fit(self, X, y, sample_weight=None):
            seeds.append(self.random_state)
            return super().fit(X, y)

    X, Y = some_data(20, 3)
    Tilted(Recorder(), random_state=0).fit(X, Y)
    first, seeds[:] = list(seeds), []
    assert len(set(first)) == 4
    Tilted(Recorder(), random_state=0).fit(X, Y)
    assert seeds == first
    seeds.clear()
    Tilted(Recorder(random_state=5), random_state=0).fit(X, Y)
    assert seeds == [5] * 4
    seeds.clear()
    Tilted(Recorder()).fit(X, Y)
    assert seeds == [None] * 4


def test_a_row_to_which_a_learner_gives_nothing_gets_the_frequencies():
    class Silent(DummyClassifier):
        def predict_proba(self, X):
            return np.zeros((len(X), len(self.classes_)))

    X, Y = some_data(40, 2)
    d = Powerset(Silent(), calibration=None).fit(X, Y).estimate(X[:2]).d
    close(d[0], np.bincount(Y.sum(axis=1), minlength=3) / 40)


@pytest.mark.parametrize(
    ("scores", "sentence"),
    [
        (np.full((5, 2), np.nan), r"returned scores of shape \(5, 2\) that are not all finite"),
        (
            np.ones((5, 3)),
            r"returned scores of shape \(5, 3\): there must be a finite number",
        ),
    ],
)
def test_scores_that_are_none(scores, sentence):
    class Odd(DummyClassifier):
        def predict_proba(self, X):
            return scores

    X, Y = some_data(40, 1)
    model = Tilted(Odd(), calibration=None).fit(X, Y)
    with pytest.raises(ValueError, match="estimator Odd " + sentence):
        model.estimate(X[:5])
