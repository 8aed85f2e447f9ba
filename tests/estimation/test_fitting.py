"""Models of many targets: out-of-fold predictions against refits, seeds and scores of learners."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from fgfm.estimation._calibration import SigmoidCalibrator
from fgfm.estimation._fitting import fit_models
from fgfm.estimation._learner import LearnerSettings
from fgfm.estimation._models import Predictions, Target
from fgfm.estimation._scores import Scores
from fgfm.ridge import RidgeLogistic, fit_ridge_logistic
from multilabel import interleaved_folds, make_data, one_factor


def make_targets(n=60, p=4, seed=0):
    """Return features, and targets of two classes, three classes, and with a rare class."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n, p)).astype(float)
    first = (X[:, 0] + rng.normal(size=n) > 1.0).astype(int)
    second = (X @ rng.normal(size=(p, 3)) + rng.gumbel(size=(n, 3))).argmax(axis=1)
    rare = np.where(np.arange(n) == 3, 7, first)  # in one row only
    return X, [first, second, rare]


def refitted(learner, X, y, cv, calibrated):
    """Return the predictions for the test rows of each fold, perhaps calibrated by a sigmoid."""
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
def test_out_of_fold_predictions_are_those_of_refits(calibration, n_jobs):
    X, targets = make_targets()
    settings = LearnerSettings(
        GaussianNB(var_smoothing=1e-2), calibration, interleaved_folds(60), n_jobs
    )
    model_targets = [Target(y) for y in targets]
    models, out_of_fold = fit_models(X, model_targets, None, settings, held_out=True)
    plain, nothing = fit_models(X, model_targets, None, settings)
    assert nothing is None
    for t, y in enumerate(targets):
        expected = refitted(
            settings.estimator, X, y, interleaved_folds(60), calibration is not None
        )
        np.testing.assert_allclose(out_of_fold.proba(t), expected, atol=1e-12)
        found = models.predictions(X).proba(t)
        assert (found == plain.predictions(X).proba(t)).all()
    positives = out_of_fold.positive(range(1))
    np.testing.assert_allclose(positives[:, 0], out_of_fold.proba(0)[:, 1])


def test_learner_without_calibration_is_fitted_in_three_folds():
    X, targets = make_targets()
    fitted = []

    class Recorder(GaussianNB):
        def fit(self, X, y):
            fitted.append(len(X))
            return super().fit(X, y)

    settings = LearnerSettings(Recorder(), None, random_state=0)
    _, out_of_fold = fit_models(X, [Target(targets[0])], None, settings, held_out=True)
    assert sorted(fitted) == [40, 40, 40, 60]
    assert np.isfinite(out_of_fold.proba(0)).all()
    fitted.clear()
    fit_models(X, [Target(targets[0])], None, settings)
    assert fitted == [60]


def test_rows_of_weight_0_and_rows_in_no_fold_are_nan():
    X, (y, *_) = make_targets()
    weight = np.where(np.arange(60) % 5 == 0, 0.0, 1.0)
    cv = KFold(4)
    settings = LearnerSettings(GaussianNB(), None, cv)
    _, out_of_fold = fit_models(X, [Target(y)], weight, settings, held_out=True)
    found = out_of_fold.proba(0)
    assert (np.isnan(found).all(axis=1) == (weight == 0.0)).all()
    kept = weight > 0.0
    expected = refitted(GaussianNB(), X[kept], y[kept], cv.split(X[kept]), False)
    np.testing.assert_allclose(found[kept], expected, atol=1e-12)
    some = ShuffleSplit(1, test_size=10, random_state=0)
    _, out_of_fold = fit_models(
        X, [Target(y)], None, LearnerSettings(GaussianNB(), None, some), held_out=True
    )
    assert np.isfinite(out_of_fold.proba(0)).all(axis=1).sum() == 10


@pytest.mark.parametrize("learner", [LogisticRegression(), LinearSVC()])
def test_class_that_occurs_once_leaves_no_row_without_prediction(learner):
    X, _ = make_targets()
    y = np.zeros(60, dtype=int)
    y[5] = 1
    calibration = None if hasattr(learner, "predict_proba") else "sigmoid"
    settings = LearnerSettings(learner, calibration, interleaved_folds(60))
    _, out_of_fold = fit_models(X, [Target(y)], None, settings, held_out=True)
    found = out_of_fold.proba(0)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert (found[5 % 3 :: 3] == [1.0, 0.0]).all()
    assert (found[0::3, 1] > 0.0).all()


def test_scores_that_no_fold_can_calibrate_give_the_frequencies():
    y = np.array([0, 0, 0, 1])
    settings = LearnerSettings(LinearSVC(), "sigmoid", [(np.array([0, 1]), np.array([2, 3]))])
    _, out_of_fold = fit_models(np.eye(4), [Target(y)], None, settings, held_out=True)
    np.testing.assert_array_equal(out_of_fold.proba(0), [[0.75, 0.25]] * 4)


def test_constant_targets():
    X, _ = make_targets()
    targets = [Target(np.full(60, value)) for value in (0, 1)]
    for learner in (None, GaussianNB()):
        _, out_of_fold = fit_models(X, targets, None, LearnerSettings(learner), held_out=True)
        assert (out_of_fold.positive(range(2)) == [0.0, 1.0]).all()


def test_positive_proba_keeps_nan():
    proba = np.array([[0.2, 0.8], [np.nan, np.nan]])
    held_out = Predictions(2, [np.array([0, 1])], lambda target, extra: proba)
    np.testing.assert_array_equal(held_out.positive(range(1)), [[0.8], [np.nan]])


def test_ridge_learner_keeps_its_parameters():
    X, Y = make_data(60, 3)
    found = one_factor("tilted", RidgeLogistic([0.5])).fit(X, Y[:, 0]).estimate(X)
    (expected,) = fit_ridge_logistic(X, [Y[:, 0]], penalties=[0.5])
    np.testing.assert_allclose(found.d, expected.predict_proba(X), atol=1e-12)
    default = one_factor("two-step", random_state=3).fit(X, Y).estimate(X)
    same = one_factor("two-step", RidgeLogistic(random_state=3)).fit(X, Y).estimate(X)
    assert (same.P == default.P).all()


def test_only_learners_without_a_seed_get_one():
    seeds = []

    class Recorder(DummyClassifier):
        def fit(self, X, y, sample_weight=None):
            seeds.append(self.random_state)
            return super().fit(X, y)

    X, Y = make_data(20, 3)
    one_factor("tilted", Recorder(), random_state=0).fit(X, Y)
    first, seeds[:] = list(seeds), []
    assert len(set(first)) == 4
    one_factor("tilted", Recorder(), random_state=0).fit(X, Y)
    assert seeds == first
    seeds.clear()
    one_factor("tilted", Recorder(random_state=5), random_state=0).fit(X, Y)
    assert seeds == [5] * 4
    seeds.clear()
    one_factor("tilted", Recorder()).fit(X, Y)
    assert seeds == [None] * 4


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
def test_invalid_scores_raise(scores, sentence):
    class Odd(DummyClassifier):
        def predict_proba(self, X):
            return scores

    X, Y = make_data(40, 1)
    model = one_factor("tilted", Odd(), calibration=None).fit(X, Y[:, 0])
    with pytest.raises(ValueError, match="estimator Odd " + sentence):
        model.estimate(X[:5])
