"""What models say of rows that they did not see, against models refitted by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from fgfm.estimation._calibration import Scores, SigmoidCalibrator
from fgfm.estimation._fitting import LearnerSettings, fit_models
from fgfm.estimation._models import ModelTarget, OutOfFoldPredictions
from fgfm.ridge import RidgeLogistic, _design, fit_ridge_logistic

GRID = 10.0 ** np.arange(-2, 3)


def rows_and_targets(n=60, p=4, seed=0):
    """Features, a binary target, one of three classes, and one with a rare class."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n, p)).astype(float)
    first = (X[:, 0] + rng.normal(size=n) > 1.0).astype(int)
    second = (X @ rng.normal(size=(p, 3)) + rng.gumbel(size=(n, 3))).argmax(axis=1)
    rare = np.where(np.arange(n) == 3, 7, first)  # one row has it: a fold must do without
    return X, [first, second, rare]


def folds(n, k=3):
    of_row = np.arange(n) % k
    return [(np.flatnonzero(of_row != f), np.flatnonzero(of_row == f)) for f in range(k)]


def refitted(X, y, penalty, cv, weight=None, extra=None):
    """Fit each fold again, with the penalty that was chosen."""
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


@pytest.fixture(params=["newton", "batch"])
def way(request, monkeypatch):
    """Fit small models one by one, or as if they were large; give the accuracy in folds."""
    if request.param == "batch":
        monkeypatch.setattr(_design, "NEWTON_LIMIT", 0)
    return {"newton": 1e-6, "batch": 1e-4}[request.param]


def same_fits(one, other):
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
def test_ridge_is_each_fold_refitted(way, form, weighted, with_extra):
    X, targets = rows_and_targets()
    weight = np.random.default_rng(1).integers(0, 3, 60).astype(float) if weighted else None
    if weighted:
        weight[3] = 1.0
    extra = np.random.default_rng(2).integers(0, 4, 60).astype(float) if with_extra else None
    given = [extra] * 3 if with_extra else None
    how = {"penalties": GRID, "extra": given, "sample_weight": weight, "cv": folds(60)}
    fits = fit_ridge_logistic(form(X), targets, held_out=True, **how)
    same_fits(fits, fit_ridge_logistic(form(X), targets, **how))
    for fit, y in zip(fits, targets, strict=True):
        expected = refitted(X, y, fit.penalty, folds(60), weight, extra)
        np.testing.assert_allclose(fit.held_out, expected, rtol=0.0, atol=way)
        assert np.isnan(fit.held_out).any() == weighted  # rows of weight 0
    rare = fits[2]
    assert rare.held_out[3, 2] == 0.0  # nobody else has the class


def test_ridge_with_many_columns_and_sparse_rows():
    rng = np.random.default_rng(0)
    X = sparse.random_array((80, 400), density=0.05, rng=rng, format="csr")
    score = X @ rng.normal(size=400)
    targets = [(score > 0).astype(int), np.digitize(score, [-0.5, 0.5])]
    for form in (X, X.toarray()):
        fits = fit_ridge_logistic(form, targets, penalties=GRID, cv=folds(80), held_out=True)
        same_fits(fits, fit_ridge_logistic(form, targets, penalties=GRID, cv=folds(80)))
        for fit, y in zip(fits, targets, strict=True):
            expected = refitted(X, y, fit.penalty, folds(80))
            np.testing.assert_allclose(fit.held_out, expected, rtol=0.0, atol=1e-4)


def test_rows_that_no_fold_holds_out(way):
    X, targets = rows_and_targets()
    splitter = ShuffleSplit(2, test_size=15, random_state=1)
    cv = list(splitter.split(X))
    never = np.setdiff1d(np.arange(60), np.concatenate([test for _, test in cv]))
    assert len(never) > 0
    fits = fit_ridge_logistic(X, targets, penalties=GRID, cv=splitter, held_out=True)
    for fit, y in zip(fits, targets, strict=True):
        assert np.isnan(fit.held_out[never]).all()
        # a row that two folds hold out gets the word of the last
        expected = refitted(X, y, fit.penalty, cv)
        np.testing.assert_allclose(fit.held_out, expected, rtol=0.0, atol=way)


@pytest.mark.parametrize("seen", [[(0, 1, 2), (0, 1)], [(0, 1), (2,)], [(2,), (0, 1)]])
def test_last_fold_speaks_of_a_row_whatever_classes_it_knows(way, seen):
    X, (_, y, _) = rows_and_targets()
    rest = np.arange(10, 60)
    cv = [(rest[np.isin(y[rest], classes)], np.arange(10)) for classes in seen]
    (fit,) = fit_ridge_logistic(X, [y], penalties=[1.0], cv=cv, held_out=True)
    expected = refitted(X, y, 1.0, cv)
    np.testing.assert_allclose(fit.held_out, expected, rtol=0.0, atol=way)


def test_ridge_where_a_fold_trains_on_one_class(way):
    X, _ = rows_and_targets()
    y = np.zeros(60, dtype=int)
    y[5] = 1
    constant = np.full(60, 4)
    one, sure = fit_ridge_logistic(X, [y, constant], penalties=GRID, cv=folds(60), held_out=True)
    assert (one.held_out[5 % 3 :: 3] == [1.0, 0.0]).all()  # it was the only one
    assert (one.held_out[0::3, 1] > 0.0).all()
    assert (sure.held_out == np.ones((60, 1))).all()


def test_held_out_must_be_a_flag():
    with pytest.raises(TypeError, match="held_out is 'yes'"):
        fit_ridge_logistic([[0.0], [1.0]], [[0, 1]], held_out="yes")


def test_number_of_threads_changes_nothing():
    X, targets = rows_and_targets(p=40)
    answers = [
        fit_ridge_logistic(X, targets * 3, random_state=0, held_out=True, n_jobs=n_jobs)
        for n_jobs in (None, 2)
    ]
    for one, two in zip(*answers, strict=True):
        assert (one.held_out == two.held_out).all()


# Other learners


def by_hand(learner, X, y, cv, calibrated):
    """Give probabilities of the test rows; by decision values and a sigmoid if calibrated."""
    classes, code = np.unique(y, return_inverse=True)
    proba = np.full((len(y), len(classes)), np.nan)
    scores = np.zeros((len(y), len(classes)))
    for train, test in cv:
        model = clone(learner).fit(X[train], y[train])
        at = np.searchsorted(classes, model.classes_)
        scores[np.ix_(test, at)] = model.predict_proba(X[test])
    if not calibrated:
        proba[:] = scores
        return proba
    calibrator = SigmoidCalibrator().fit(Scores(scores, True), code, np.ones(len(y)))
    return calibrator.predict_proba(Scores(scores, True))


@pytest.mark.parametrize("calibration", [None, "sigmoid"])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_other_learners_are_refitted(calibration, n_jobs):
    X, targets = rows_and_targets()
    settings = LearnerSettings(GaussianNB(var_smoothing=1e-2), calibration, folds(60), n_jobs)
    models, out_of_fold = fit_models(
        X, [ModelTarget(y) for y in targets], None, settings, out_of_fold=True
    )
    plain, nothing = fit_models(X, [ModelTarget(y) for y in targets], None, settings)
    assert nothing is None
    for t, y in enumerate(targets):
        expected = by_hand(settings.estimator, X, y, folds(60), calibration is not None)
        np.testing.assert_allclose(out_of_fold.predict_proba(t), expected, atol=1e-12)
        assert (
            models.predictions(X).predict_proba(t) == plain.predictions(X).predict_proba(t)
        ).all()
    positives = out_of_fold.positive_proba(slice(0, 1))
    np.testing.assert_allclose(positives[:, 0], out_of_fold.predict_proba(0)[:, 1])


def test_a_learner_without_calibration_takes_three_folds():
    X, targets = rows_and_targets()
    fitted = []

    class Recorder(GaussianNB):
        def fit(self, X, y):
            fitted.append(len(X))
            return super().fit(X, y)

    settings = LearnerSettings(Recorder(), None, random_state=0)
    models, out_of_fold = fit_models(
        X, [ModelTarget(targets[0])], None, settings, out_of_fold=True
    )
    assert sorted(fitted) == [40, 40, 40, 60]
    assert np.isfinite(out_of_fold.predict_proba(0)).all()
    fitted.clear()
    fit_models(X, [ModelTarget(targets[0])], None, settings)
    assert fitted == [60]


def test_rows_of_weight_zero_and_never_held_out_of_other_learners():
    X, (y, *_) = rows_and_targets()
    weight = np.where(np.arange(60) % 5 == 0, 0.0, 1.0)
    cv = KFold(4)
    settings = LearnerSettings(GaussianNB(), None, cv)
    models, out_of_fold = fit_models(X, [ModelTarget(y)], weight, settings, out_of_fold=True)
    found = out_of_fold.predict_proba(0)
    assert (np.isnan(found).all(axis=1) == (weight == 0.0)).all()
    kept = weight > 0.0
    expected = by_hand(GaussianNB(), X[kept], y[kept], cv.split(X[kept]), False)
    np.testing.assert_allclose(found[kept], expected, atol=1e-12)
    some = ShuffleSplit(1, test_size=10, random_state=0)
    models, out_of_fold = fit_models(
        X, [ModelTarget(y)], None, LearnerSettings(GaussianNB(), None, some), out_of_fold=True
    )
    assert np.isfinite(out_of_fold.predict_proba(0)).all(axis=1).sum() == 10


@pytest.mark.parametrize("learner", [LogisticRegression(), LinearSVC()])
def test_a_class_that_occurs_once_leaves_no_row_unanswered(learner):
    X, _ = rows_and_targets()
    y = np.zeros(60, dtype=int)
    y[5] = 1
    calibration = None if hasattr(learner, "predict_proba") else "sigmoid"
    settings = LearnerSettings(learner, calibration, folds(60))
    models, out_of_fold = fit_models(X, [ModelTarget(y)], None, settings, out_of_fold=True)
    found = out_of_fold.predict_proba(0)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert (found[5 % 3 :: 3] == [1.0, 0.0]).all()
    assert (found[0::3, 1] > 0.0).all()


def test_scores_that_no_fold_could_calibrate():
    y = np.array([0, 0, 0, 1])
    settings = LearnerSettings(LinearSVC(), "sigmoid", [(np.array([0, 1]), np.array([2, 3]))])
    models, out_of_fold = fit_models(np.eye(4), [ModelTarget(y)], None, settings, out_of_fold=True)
    np.testing.assert_array_equal(out_of_fold.predict_proba(0), [[0.75, 0.25]] * 4)


def test_constant_targets():
    X, _ = rows_and_targets()
    targets = [ModelTarget(np.full(60, value)) for value in (0, 1)]
    for learner in (None, GaussianNB()):
        models, out_of_fold = fit_models(
            X, targets, None, LearnerSettings(learner), out_of_fold=True
        )
        assert (out_of_fold.positive_proba(slice(0, 2)) == [0.0, 1.0]).all()


def test_nan_stays_in_positives():
    held_out = OutOfFoldPredictions([np.array([[0.2, 0.8], [np.nan, np.nan]])], [np.array([0, 1])])
    np.testing.assert_array_equal(held_out.positive_proba(slice(0, 1)), [[0.8], [np.nan]])
