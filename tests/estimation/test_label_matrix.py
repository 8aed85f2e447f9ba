"""Learners that take a matrix of labels: one fit for all labels, the same predictions."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_info

import fgfm
from fgfm import FGFMClassifier
from fgfm._utils.parallel import limit_openmp
from fgfm.estimation._learner import fits_label_matrix
from fgfm.estimation._scores import label_scores
from multilabel import X, Y, assert_same, interleaved_folds, make_data

FITS = []  # shapes of the targets


class Counting(KNeighborsClassifier):
    """Records the shape of each target."""

    def fit(self, X, y):
        FITS.append(np.shape(y))
        return super().fit(X, y)


class OneByOne(KNeighborsClassifier):
    """Neighbours whose tags do not mention matrices of labels."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = False
        return tags


class PositiveOnly(ClassifierMixin, BaseEstimator):
    """Returns the probability of 1 of each label as one array, as boosting libraries do."""

    def fit(self, X, y):
        self.model_ = KNeighborsClassifier(5).fit(X, y)
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        p = self.model_.predict_proba(X)
        return np.column_stack([q[:, 1] for q in p]) if isinstance(p, list) else p

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


class BinaryOnly(PositiveOnly):
    """Takes 0 and 1 only, in a vector or a matrix, as CatBoost with the loss MultiLogloss."""

    def fit(self, X, y):
        assert np.max(y) <= 1
        return super().fit(X, y)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def test_learner_without_several_classes_cannot_model_the_number_of_labels():
    with pytest.raises(ValueError, match=r"BinaryOnly, .*factors='independent', or"):
        FGFMClassifier(BinaryOnly()).fit(X, Y)
    FGFMClassifier(BinaryOnly(), factors="independent").fit(X, Y).predict(X)
    fgfm.FClassifier(BinaryOnly()).fit(X, Y).predict(X)


@pytest.mark.parametrize(
    ("learner", "expected"),
    [
        (KNeighborsClassifier(), True),
        (RandomForestClassifier(), True),
        (ExtraTreesClassifier(), True),
        (DecisionTreeClassifier(), True),
        (MLPClassifier(), True),
        (RidgeClassifier(), True),
        (make_pipeline(StandardScaler(), MLPClassifier()), True),
        (GaussianNB(), False),
        (LogisticRegression(), False),
        (make_pipeline(StandardScaler(), LogisticRegression()), False),
        (RandomForestClassifier(class_weight="balanced"), False),
        (RandomForestClassifier(monotonic_cst=[1, 0, 0]), False),
        (GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 2]}), False),
        (object(), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_which_learners_take_a_matrix(learner, expected):
    assert fits_label_matrix(learner) == expected


@pytest.mark.parametrize("method", ["reweighted", "tilted"])
@pytest.mark.parametrize("calibration", [None, "sigmoid", "isotonic"])
@pytest.mark.parametrize("factors", ["single", "independent", [[0, 2], [1, 3]]], ids=str)
def test_one_fit_predicts_as_one_per_label(method, calibration, factors):
    labels = np.column_stack([Y, np.zeros(60, int), np.ones(60, int)])  # two constant labels
    if isinstance(factors, list):
        factors = [*factors, [4, 5]]
    models = [
        FGFMClassifier(
            learner,
            factors=factors,
            method=method,
            calibration=calibration,
            cv=interleaved_folds(60),
            random_state=0,
        ).fit(X, labels)
        for learner in (KNeighborsClassifier(5), OneByOne(5))
    ]
    assert_same(*models)


@pytest.mark.parametrize(
    "learner",
    [
        PositiveOnly(),
        make_pipeline(FunctionTransformer(), KNeighborsClassifier(5)),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_forms_of_predictions(learner):
    settings = {"calibration": "sigmoid", "cv": interleaved_folds(60), "method": "tilted"}
    model = FGFMClassifier(learner, **settings).fit(X, Y)
    expected = FGFMClassifier(OneByOne(5), **settings).fit(X, Y)
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(X), atol=1e-6)


def test_number_of_fits():
    for method, calibration, n_folds in (
        ("reweighted", None, 3),
        ("reweighted", "sigmoid", 5),
        ("tilted", None, 0),
    ):
        FITS.clear()
        FGFMClassifier(Counting(3), method=method, calibration=calibration).fit(X, Y)
        matrix = [shape for shape in FITS if len(shape) == 2]
        assert matrix[-1] == (60, 4)
        assert len(matrix) == n_folds + 1
        assert len(FITS) == 2 * (n_folds + 1)  # the other half for the number of labels
    for method in ("two-step", "direct", "powerset"):
        FITS.clear()
        FGFMClassifier(Counting(3), method=method).fit(X, Y)
        assert all(len(shape) == 1 for shape in FITS)
        FITS.clear()
        FGFMClassifier(Counting(3), method=method, factors="independent").fit(X, Y)
        expected = [(60,)] * 4 if method == "powerset" else [(60, 4)]
        assert expected == FITS
    FITS.clear()
    FGFMClassifier(Counting(3), factors="independent").fit(X, Y[:, 0])
    assert FITS == [(60,)]  # one label needs no matrix


def test_network_and_forest():
    rows, labels = make_data(300, 5)
    network = MLPClassifier((8,), max_iter=400, learning_rate_init=0.02, tol=3e-3)
    for learner in (network, RandomForestClassifier(20), RidgeClassifier()):
        model = FGFMClassifier(learner, random_state=0).fit(rows[:200], labels[:200])
        assert model.score(rows[200:], labels[200:]) > 0.7
        models = model._factor_models.models.models
        assert [one.column for one in models] == [None, 0, 1, 2, 3, 4]
        assert len({id(one.estimator) for one in models}) == 2

    parallel = FGFMClassifier(RidgeClassifier(), random_state=0, n_jobs=2)
    assert_same(parallel.fit(rows[:200], labels[:200]), model, rows)


def test_saved_models_share_the_learner(tmp_path):
    pytest.importorskip("skops")
    model = FGFMClassifier(RandomForestClassifier(5), random_state=0).fit(X, Y)
    fgfm.save(model, tmp_path / "model.fgfm")
    loaded = fgfm.load(tmp_path / "model.fgfm")
    assert_same(loaded, model)
    assert len({id(one.estimator) for one in loaded._factor_models.models.models}) == 2


def test_sample_weights_of_a_forest():
    weight = np.where(np.arange(60) % 3 == 0, 0.0, 1.0)
    rows = weight > 0.0
    forest = ExtraTreesClassifier(5)  # without bootstrap, which depends on weights
    weighted = FGFMClassifier(forest, random_state=0).fit(X, Y, sample_weight=weight)
    assert_same(weighted, FGFMClassifier(forest, random_state=0).fit(X[rows], Y[rows]))


def test_folds_spread_rare_labels():
    rng = np.random.default_rng(0)
    labels = (rng.random((200, 6)) < [0.5, 0.4, 0.3, 0.05, 0.04, 0.03]).astype(int)
    trained = []

    class Recorder(KNeighborsClassifier):
        def fit(self, X, y):
            if len(X) < 200:
                trained.append(y.sum(axis=0))
            return super().fit(X, y)

    model = FGFMClassifier(Recorder(3), factors="independent", calibration="sigmoid")
    model.fit(rng.normal(size=(200, 2)), labels)
    tested = labels.sum(axis=0) - np.array(trained)  # (folds, m)
    assert len(tested) == 5
    assert np.ptp(tested[:, labels.sum(axis=0) < 20], axis=0).max() <= 2
    splitter = StratifiedKFold(3, shuffle=True, random_state=0)
    FGFMClassifier(Counting(3), factors="independent", calibration=splitter).fit(X, Y)


def test_label_that_varies_in_no_training_fold():
    labels = Y.copy()
    labels[:, 0] = np.arange(60) < 20
    folds = [(np.arange(20, 60), np.arange(20))]
    for learner in (RidgeClassifier(), KNeighborsClassifier(3)):
        model = FGFMClassifier(learner, calibration="sigmoid", cv=folds).fit(X, labels)
        p = model.predict_proba(X)[:, 0]
        assert np.isfinite(p).all()
        first = model._factor_models.models.models[1]
        assert (first.estimator is None) == isinstance(learner, RidgeClassifier)


def test_scores_of_a_wrong_shape():
    class Flat(PositiveOnly):
        def predict_proba(self, X):
            return np.zeros(len(X))

    with pytest.raises(
        ValueError, match=r"Flat returned scores of shape \(60,\): .* of 60 rows and 4 labels"
    ):
        label_scores(Flat().fit(X, Y), X, 4)


def test_openmp_threads_are_limited():
    from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: F401, loads OpenMP

    def threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "openmp"]

    before = threads()
    assert before
    with limit_openmp(1, 10):
        assert set(threads()) == {1}
        with limit_openmp(1, 10**9):
            assert set(threads()) == {1}  # never raised
    with limit_openmp(10**6, 10**9):
        assert set(threads()) == {1}
    with limit_openmp(1, 10**9):
        assert max(threads()) <= max(before)
    assert threads() == before
