"""Calibration: against plain optimisation, scikit-learn's own, and known distortions."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import (
    LogisticRegression,
    LogisticRegressionCV,
    Perceptron,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC, NuSVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from fgfm.estimation import needs_calibration
from fgfm.estimation._calibration import SigmoidCalibrator, fit_calibrator, scores_to_proba
from fgfm.estimation._scores import Scores
from fgfm.ridge import RidgeLogistic
from multilabel import one_factor

MISCALIBRATED = [
    AdaBoostClassifier(),
    BaggingClassifier(),
    BernoulliNB(),
    CategoricalNB(),
    ComplementNB(),
    DecisionTreeClassifier(),
    ExtraTreeClassifier(),
    ExtraTreesClassifier(),
    GaussianNB(),
    GradientBoostingClassifier(),
    HistGradientBoostingClassifier(),
    LinearSVC(),
    MultinomialNB(),
    NuSVC(),
    Perceptron(),
    RandomForestClassifier(),
    RidgeClassifier(),
    SGDClassifier(),
    SVC(),
]
CALIBRATED = [
    CalibratedClassifierCV(GaussianNB()),
    DummyClassifier(),
    KNeighborsClassifier(),
    LinearDiscriminantAnalysis(),
    LogisticRegression(),
    LogisticRegressionCV(),
    MLPClassifier(),
    RidgeLogistic(),
    SGDClassifier(loss="log_loss"),
]


def name_of(estimator):
    return type(estimator).__name__


@pytest.mark.parametrize("estimator", MISCALIBRATED, ids=name_of)
def test_miscalibrated_learners(estimator):
    assert needs_calibration(estimator)
    assert needs_calibration(make_pipeline(StandardScaler(), estimator))
    assert needs_calibration(Pipeline([("last", estimator)]))
    assert needs_calibration(GridSearchCV(estimator, {}))
    assert needs_calibration(RandomizedSearchCV(make_pipeline(StandardScaler(), estimator), {}))
    assert needs_calibration(make_pipeline(StandardScaler(), GridSearchCV(estimator, {})))


@pytest.mark.parametrize("estimator", CALIBRATED, ids=name_of)
def test_calibrated_learners(estimator):
    assert not needs_calibration(estimator)
    assert not needs_calibration(make_pipeline(StandardScaler(), estimator))
    assert not needs_calibration(GridSearchCV(estimator, {}))
    assert not needs_calibration(RandomizedSearchCV(estimator, {}))
    assert not needs_calibration(make_pipeline(StandardScaler(), GridSearchCV(estimator, {})))


def test_fitted_search_is_judged_by_its_estimator():
    X, y = np.arange(20.0)[:, None], np.arange(20) % 2
    assert needs_calibration(GridSearchCV(GaussianNB(), {}, cv=2).fit(X, y))
    assert not needs_calibration(GridSearchCV(LogisticRegression(), {}, cv=2).fit(X, y))


def test_subclasses_are_judged_by_their_base_class():
    class Mine(GaussianNB):
        pass

    class GaussianNBOfMine(LogisticRegression):
        pass

    assert needs_calibration(Mine())
    assert not needs_calibration(GaussianNBOfMine())


@pytest.mark.parametrize("library", ["catboost", "lightgbm", "xgboost"])
def test_boosting_of_other_libraries_is_miscalibrated(library):
    kind = type("Boosted", (LogisticRegression,), {"__module__": f"{library}.sklearn"})
    assert needs_calibration(kind())


def calibrated(method, scores, y, weight=None, fresh=None):
    """Fit a calibrator to scores, and return the probabilities that it gives them, or others."""
    weight = np.ones(len(y)) if weight is None else weight
    total = np.bincount(y, weights=weight, minlength=scores.values.shape[1])
    calibrator = fit_calibrator(method, scores, y, weight)
    return scores_to_proba(scores if fresh is None else fresh, calibrator, total / total.sum())


# The sigmoid


def two_columns(v):
    """Return the decision values v of the second class as scores of two classes."""
    return Scores(np.column_stack([-0.5 * v, 0.5 * v]), False)


def platt(v, y, weight):
    """Fit sigmoid(a v + b) to Platt's targets by plain optimisation; a is not negative."""
    positive, negative = weight[y == 1].sum(), weight[y == 0].sum()
    t = np.where(y == 1, (positive + 1.0) / (positive + 2.0), 1.0 / (negative + 2.0))

    def loss(theta):
        eta = theta[0] * v + theta[1]
        return (weight * (np.logaddexp(0.0, eta) - t * eta)).sum()

    best = minimize(
        loss, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}
    )
    return best.x


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [12, 300])
def test_two_classes_are_platts_sigmoid(n, weighted):
    rng = np.random.default_rng(n)
    v = 3.0 * rng.normal(size=n) + 1.0
    y = (rng.random(n) < expit(0.4 * v - 1.0)).astype(int)
    weight = rng.exponential(size=n) + 0.1 if weighted else np.ones(n)
    a, b = platt(v, y, weight)
    assert a > 0.05
    calibrator = SigmoidCalibrator().fit(two_columns(v), y, weight)
    grid = np.linspace(-8.0, 8.0, 50)
    p = calibrator.predict_proba(two_columns(grid))
    np.testing.assert_allclose(p[:, 1], expit(a * grid + b), atol=2e-4)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)


def test_probabilities_are_calibrated_on_their_logits():
    rng = np.random.default_rng(1)
    v = 4.0 * rng.normal(size=200)
    y = (rng.random(200) < expit(0.5 * v)).astype(int)
    a, b = platt(v, y, np.ones(200))
    p = expit(v)
    scores = Scores(np.column_stack([1.0 - p, p]), True)
    calibrated = SigmoidCalibrator().fit(scores, y, np.ones(200)).predict_proba(scores)
    np.testing.assert_allclose(calibrated[:, 1], expit(a * v + b), atol=2e-4)


def noisy_binary(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + 0.8 * rng.normal(size=n) > 0.5).astype(int)


@pytest.mark.parametrize(
    ("learner", "method"),
    [
        (LinearSVC(random_state=0), "sigmoid"),
        (LinearSVC(random_state=0), "isotonic"),
        (GaussianNB(), "isotonic"),
    ],
)
def test_one_label_is_calibrated_as_by_scikit_learn(learner, method):
    X, y = noisy_binary()
    of_row = np.arange(len(y)) % 5
    folds = [(np.flatnonzero(of_row != f), np.flatnonzero(of_row == f)) for f in range(5)]
    theirs = CalibratedClassifierCV(learner, method=method, cv=folds, ensemble=False).fit(X, y)
    ours = one_factor("tilted", learner, calibration=method, cv=folds).fit(X, y)
    fresh, _ = noisy_binary(seed=9)
    np.testing.assert_allclose(ours.estimate(fresh).d, theirs.predict_proba(fresh), atol=5e-4)


def multinomial_rows(n, seed, slope, shifts):
    """Draw classes from softmax(slope f + shifts) for random f."""
    rng = np.random.default_rng(seed)
    f = 1.5 * rng.normal(size=(n, len(shifts)))
    p = softmax(slope * f + np.asarray(shifts), axis=1)
    return f, (rng.random((n, 1)) > p.cumsum(axis=1)).sum(axis=1)


@pytest.mark.parametrize("as_probabilities", [False, True])
def test_temperature_and_shifts_are_recovered(as_probabilities):
    shifts = np.array([0.5, -0.7, 0.2, 1.0])
    f, y = multinomial_rows(20_000, 0, 0.6, shifts)
    scores = Scores(softmax(f, axis=1) if as_probabilities else f, as_probabilities)
    calibrator = SigmoidCalibrator().fit(scores, y, np.ones(len(y)))
    assert calibrator.slope_ == pytest.approx(0.6, abs=0.03)
    np.testing.assert_allclose(
        calibrator.shifts_ - calibrator.shifts_[0], shifts - shifts[0], atol=0.1
    )
    truth = softmax(0.6 * f + shifts, axis=1)
    np.testing.assert_allclose(calibrator.predict_proba(scores), truth, atol=0.03)


def log_loss(p, y):
    return -np.log(p[np.arange(len(y)), y]).mean()


@pytest.mark.parametrize("kind", ["sigmoid", "isotonic"])
def test_distorted_probabilities_improve_on_fresh_rows(kind):
    shifts = [0.0, 1.0, -0.5]

    def distorted(f):
        p = softmax(3.0 * f, axis=1)  # overconfident, and without the shifts
        return Scores(0.999 * p + 0.001 / 3, True)

    f, y = multinomial_rows(3000, 1, 0.7, shifts)
    fresh, y_fresh = multinomial_rows(3000, 2, 0.7, shifts)
    before = log_loss(distorted(fresh).values, y_fresh)
    p = calibrated(kind, distorted(f), y, fresh=distorted(fresh))
    after = log_loss(np.maximum(p, 1e-4), y_fresh)
    best = log_loss(softmax(0.7 * fresh + shifts, axis=1), y_fresh)
    assert after < 0.75 * before
    assert after < best + 0.1


def test_calibrated_probabilities_hardly_change():
    f, y = multinomial_rows(5000, 3, 1.0, [0.0, 0.0, 0.0])
    scores = Scores(softmax(f, axis=1), True)
    calibrated = SigmoidCalibrator().fit(scores, y, np.ones(5000)).predict_proba(scores)
    np.testing.assert_allclose(calibrated, scores.values, atol=0.04)


def test_many_classes_minimise_the_smoothed_loss():
    f, y = multinomial_rows(60, 4, 0.8, [0.0, 0.5, -0.5])
    n_of = np.bincount(y, minlength=3)
    T = np.array(
        [[(n_of[k] + 1.0 if k == j else 1.0) / (n_of[k] + 3.0) for j in range(3)] for k in y]
    )

    def loss(theta):
        eta = theta[0] * f + np.append(0.0, theta[1:])
        return -(T * log_softmax(eta, axis=1)).sum()

    best = minimize(loss, [1.0, 0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-8}).x
    p = SigmoidCalibrator().fit(Scores(f, False), y, np.ones(60)).predict_proba(Scores(f, False))
    expected = softmax(best[0] * f + np.append(0.0, best[1:]), axis=1)
    np.testing.assert_allclose(p, expected, atol=5e-4)


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_scale_and_offset_of_decision_values_do_not_matter(factor):
    f, y = multinomial_rows(200, 5, 1.0, [0.0, 0.5, -0.5])
    offset = np.random.default_rng(0).normal(size=(200, 1))
    expected = (
        SigmoidCalibrator().fit(Scores(f, False), y, np.ones(200)).predict_proba(Scores(f, False))
    )
    other = Scores(factor * (f + offset), False)
    p = SigmoidCalibrator().fit(other, y, np.ones(200)).predict_proba(other)
    np.testing.assert_allclose(p, expected, atol=2e-3)


@pytest.mark.parametrize("kind", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_weight_two_is_the_row_twice(kind, n_classes):
    f, y = multinomial_rows(80, 6, 1.0, np.zeros(n_classes))
    weight = np.where(np.arange(80) % 3 == 0, 2.0, 1.0)
    rows = np.repeat(np.arange(80), weight.astype(int))
    one = calibrated(kind, Scores(f, False), y, weight)
    two = calibrated(kind, Scores(f[rows], False), y[rows], fresh=Scores(f, False))
    np.testing.assert_allclose(one, two, atol=1e-4)


# Degenerate scores


@pytest.mark.parametrize("kind", ["sigmoid", "isotonic"])
@pytest.mark.parametrize(
    "values",
    [
        [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]],
        [[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0]],
        [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.2, 0.8, 0.0], [1.0, 0.0, 0.0]],
        [[0.0, 0.0], [0.0, 0.0], [0.5, 0.5], [1.0, 0.0]],
        [[1.0 - 1e-300, 1e-300], [1.0, 5e-324], [1.0, 0.0], [0.0, 1.0]],
    ],
    ids=["certain", "constant", "a class of zeros", "rows of zeros", "tiny"],
)
def test_zeros_among_probabilities(kind, values):
    scores = Scores(np.array(values), True)
    y = np.array([0, 1, 0, 1])
    p = calibrated(kind, scores, y)
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    unseen = Scores(np.zeros_like(scores.values), True)
    zeros = calibrated(kind, scores, y, fresh=unseen)
    assert np.isfinite(zeros).all()
    np.testing.assert_allclose(zeros.sum(axis=1), 1.0, rtol=1e-12)
    if kind == "sigmoid":
        assert ((p > 0.0) & (p < 1.0)).all()


def test_zero_counts_as_half_of_the_smallest_other():
    values = np.array([[0.9, 0.1, 0.0], [0.0, 0.8, 0.2], [0.6, 0.0, 0.4]])
    calibrator = SigmoidCalibrator().fit(Scores(values, True), np.array([0, 1, 2]), np.ones(3))
    np.testing.assert_allclose(calibrator.floor_, [0.3, 0.05, 0.1])


@pytest.mark.parametrize("n", [1, 2, 6, 60])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_perfect_separation_does_not_give_probability_1(n, n_classes):
    y = np.arange(n) % n_classes
    for scores in (
        Scores(np.eye(n_classes)[y], True),
        Scores(100.0 * np.eye(n_classes)[y], False),
        Scores(0.98 * np.eye(n_classes)[y] + 0.02 / n_classes, True),
    ):
        p = SigmoidCalibrator().fit(scores, y, np.ones(n)).predict_proba(scores)
        assert (p > 0.0).all()
        # the best that Platt's targets allow
        seen = np.bincount(y)[y]
        assert (p[np.arange(n), y] <= (seen + 1.0) / (seen + n_classes) + 0.05).all()
        if n == 60:
            assert p[np.arange(n), y].min() > 0.7


def test_scores_that_rank_backwards_are_ignored():
    v = np.linspace(-3.0, 3.0, 40)
    y = (v < 0.5).astype(int)
    calibrator = SigmoidCalibrator().fit(two_columns(v), y, np.ones(40))
    assert calibrator.slope_ == 0.0
    p = calibrator.predict_proba(two_columns(v))[:, 1]
    assert np.ptp(p) == 0.0
    assert p[0] == pytest.approx(y.mean(), abs=0.03)


@pytest.mark.parametrize("as_probabilities", [True, False])
@pytest.mark.parametrize("kind", ["sigmoid", "isotonic"])
def test_constant_scores_give_the_frequencies(kind, as_probabilities):
    y = np.array([0, 0, 0, 0, 0, 1, 1, 2] * 20)
    scores = Scores(np.tile([0.2, 0.5, 0.3], (160, 1)), as_probabilities)
    p = calibrated(kind, scores, y)
    np.testing.assert_allclose(p, np.tile([0.625, 0.25, 0.125], (160, 1)), atol=0.02)


@pytest.mark.parametrize("kind", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_class_without_out_of_fold_rows(kind, n_classes):
    f, _ = multinomial_rows(40, 7, 1.0, np.zeros(n_classes))
    y = np.zeros(40, dtype=int) if n_classes == 2 else np.arange(40) % 2
    p = calibrated(kind, Scores(f, False), y)
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    assert (p[:, -1] < 0.2).all()


# The isotonic calibrator


def test_isotonic_of_two_classes_is_scikit_learns():
    v = np.random.default_rng(0).normal(size=100)
    y = (v + np.random.default_rng(1).normal(size=100) > 0).astype(int)
    weight = np.random.default_rng(2).exponential(size=100)
    step = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(v, y, weight)
    p = calibrated("isotonic", two_columns(v), y, weight)
    np.testing.assert_allclose(p[:, 1], step.predict(v), atol=1e-12)


def test_isotonic_of_many_classes_is_normalised():
    f, y = multinomial_rows(300, 8, 1.0, [0.0, 0.5, -0.5])
    steps = np.column_stack(
        [
            IsotonicRegression(y_min=0, y_max=1).fit(f[:, k], y == k).predict(f[:, k])
            for k in range(3)
        ]
    )
    claimed = steps.sum(axis=1) > 0.0
    expected = steps[claimed] / steps[claimed].sum(axis=1, keepdims=True)
    p = calibrated("isotonic", Scores(f, False), y)
    np.testing.assert_allclose(p[claimed], expected, atol=1e-12)
    far = Scores(np.full((2, 3), -100.0), False)
    nowhere = calibrated("isotonic", Scores(f, False), y, fresh=far)
    np.testing.assert_allclose(nowhere, [np.bincount(y) / 300] * 2, atol=1e-12)


# Out of fold


def test_models_are_calibrated_out_of_fold():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), rng.integers(0, 2, 300)  # y does not depend on X
    raw = one_factor("tilted", DecisionTreeClassifier(), calibration=None, random_state=0).fit(
        X, y
    )
    assert set(np.unique(raw.estimate(X).d)) == {0.0, 1.0}
    auto = one_factor("tilted", DecisionTreeClassifier(), random_state=0).fit(X, y).estimate(X).d
    assert (np.abs(auto - 0.5) < 0.2).all()


class Counting(DummyClassifier):
    """Records the number of rows of each fit."""

    rows: list[int]

    def fit(self, X, y, sample_weight=None):
        self.rows.append(len(y))
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [60]),
        ({"calibration": None}, [60]),
        ({"calibration": "sigmoid"}, [48] * 5 + [60]),
        ({"calibration": "isotonic", "cv": 3}, [40] * 3 + [60]),
        ({"calibration": KFold(4)}, [45] * 4 + [60]),
        ({"calibration": KFold(4), "cv": 2}, [45] * 4 + [60]),
        ({"calibration": "sigmoid", "cv": KFold(2)}, [30] * 2 + [60]),
        ({"calibration": "sigmoid", "cv": [(np.arange(50), np.arange(50, 60))]}, [50, 60]),
    ],
)
def test_folds_of_the_calibration(settings, expected):
    X, y = noisy_binary(60)
    Counting.rows = []
    one_factor("tilted", Counting(), **settings).fit(X, y)
    assert Counting.rows == expected


@pytest.mark.parametrize(
    "learner", [GaussianNB(), LinearSVC(), DecisionTreeClassifier(), KNeighborsClassifier(1)]
)
@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("n", [2, 3, 6, 25])
def test_rare_classes_and_few_rows(learner, method, n):
    X = np.random.default_rng(n).normal(size=(n, 2))
    Y = np.zeros((n, 2), dtype=int)
    Y[1:, 0] = 1
    Y[1] = 1  # label 1, two labels and no label occur once each
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = one_factor(
            "powerset", learner, calibration=method, cv=2 if n < 6 else 5, random_state=0
        )
        P, d = model.fit(X, Y).estimate(X)
    assert P.shape == (n, 2, 2)
    assert np.isfinite(P).all()
    np.testing.assert_allclose(d.sum(axis=1), 1.0, rtol=1e-12)


def test_pairwise_decision_values_raise():
    rng = np.random.default_rng(0)
    s = np.arange(120) % 3  # cardinality: three classes, and three pairs of classes
    X = np.column_stack([4.0 * s, np.zeros(120)]) + 0.3 * rng.normal(size=(120, 2))
    Y = (np.arange(2) < s[:, None]).astype(int)
    d = (
        one_factor("tilted", SVC(decision_function_shape="ovr"), random_state=0)
        .fit(X, Y)
        .estimate(X)
        .d
    )
    assert (d.argmax(axis=1) == s).all()
    sentence = "estimator SVC has decision_function_shape 'ovo', a score for each pair of classes"
    pairwise = make_pipeline(StandardScaler(), SVC(decision_function_shape="ovo"))
    for learner in (SVC(decision_function_shape="ovo"), pairwise):
        with pytest.raises(ValueError, match=sentence):
            one_factor("tilted", learner, random_state=0).fit(X, Y)
