"""Base learners of FGFMClassifier: classifiers, pipelines, missing values, fit parameters."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

import fgfm
from fgfm import FGFMClassifier
from fgfm.cardinality import is_coherent
from fgfm.ridge import RidgeLogistic
from multilabel import X, Y, assert_same, make_data


class NoWeights(ClassifierMixin, BaseEstimator):
    """A learner whose fit takes no sample_weight: classes are represented by their means."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.means_ = np.array([X[y == k].mean(axis=0) for k in self.classes_])
        return self

    def predict_proba(self, X):
        closeness = np.exp(-((X[:, None] - self.means_) ** 2).sum(axis=2))
        return closeness / closeness.sum(axis=1, keepdims=True)


LEARNERS = {
    "forest": RandomForestClassifier(5),
    "boosting": GradientBoostingClassifier(n_estimators=5),
    "neighbours": KNeighborsClassifier(),
    "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
    "bayes": GaussianNB(),
    "scores only": LinearSVC(),
    "no weights": NoWeights(),
    "search": GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9, 1e-2]}, cv=KFold(2)),
    "ridge": RidgeLogistic([1.0]),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_base_learners(name):
    model = FGFMClassifier(LEARNERS[name], cv=2, random_state=0).fit(X, Y)
    ((P, d),) = model.estimate(X)
    assert is_coherent(P, d, tol=1e-8).all()
    predicted = model.predict(X)
    assert predicted.shape == (60, 4)
    best = fgfm.f_measure(Y, np.tile(Y.mean(axis=0) > 0.3, (60, 1)).astype(int))
    assert model.score(X, Y) > best + 0.03
    assert_same(clone(model).fit(X, Y), model)  # the seed is passed to every learner


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_pipelines_that_select_columns_by_name(library):
    frames = pytest.importorskip(library)
    rows, labels = make_data(120, 3)
    colour = np.array(["red", "green", "blue"])[(rows[:, 0] > 0.5) + (rows[:, 0] > -0.5) * 1]
    frame = frames.DataFrame({"colour": colour, "size": rows[:, 1], "age": rows[:, 2]})
    learner = make_pipeline(
        make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["colour"]),
            remainder="passthrough",
        ),
        LogisticRegression(),
    )
    model = FGFMClassifier(learner, random_state=0).fit(frame, labels)
    assert model.score(frame, labels) > 0.6
    coded = np.column_stack([np.eye(3)[np.unique(colour, return_inverse=True)[1]], rows[:, 1:]])
    plain = FGFMClassifier(LogisticRegression(), random_state=0).fit(coded, labels)
    np.testing.assert_allclose(model.predict_proba(frame), plain.predict_proba(coded), atol=1e-3)
    assert model.predict_frame(frame[:5]).shape == (5, 3)


def test_missing_values_are_passed_to_the_learner():
    rows = X.copy()
    rows[::7, 1] = np.nan
    model = FGFMClassifier(
        HistGradientBoostingClassifier(max_iter=2), factors="independent", cv=2, random_state=0
    )
    assert sklearn.utils.get_tags(model).input_tags.allow_nan
    with threadpool_limits(1):  # OpenMP threads wait for each other on busy machines
        assert model.fit(rows, Y[:, :2]).predict(rows).shape == (60, 2)


def test_column_transformer_that_drops_the_appended_column_warns():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("xyz"))

    def learner(remainder):
        kept = ColumnTransformer([("kept", StandardScaler(), ["x", "y"])], remainder=remainder)
        return make_pipeline(kept, LogisticRegression())

    with pytest.warns(UserWarning, match="drops other columns, .* set remainder='passthrough'"):
        FGFMClassifier(learner("drop"), method="two-step").fit(frame, Y)
    FGFMClassifier(learner("passthrough"), method="two-step").fit(frame, Y)
    FGFMClassifier(learner("drop"), method="tilted").fit(frame, Y)


@pytest.mark.parametrize("learner", ["auto", "ridge", RidgeLogistic()])
def test_fit_parameters_of_named_learners_raise(learner):
    with pytest.raises(TypeError, match="fit got colour: the learners 'auto' and 'ridge' take no"):
        FGFMClassifier(learner).fit(X, Y, colour="red")


def test_fit_parameters_are_passed_to_the_learner():
    class Coloured(DummyClassifier):
        def fit(self, X, y, sample_weight=None, colour=None, shade=None):
            assert colour == "red"
            assert len(shade) == len(y)
            Coloured.rows = len(y)
            return super().fit(X, y, sample_weight)

    FGFMClassifier(Coloured(), calibration="sigmoid").fit(X, Y, colour="red", shade=np.arange(60))
    assert Coloured.rows == 60
    with pytest.raises(AssertionError):
        FGFMClassifier(Coloured()).fit(X, Y)


@pytest.mark.parametrize(
    "learner", ["ridge", GaussianNB(), LinearSVC(), KNeighborsClassifier(2)], ids=str
)
@pytest.mark.parametrize("calibration", ["auto", "sigmoid", KFold(3)], ids=str)
def test_folds_that_lack_a_class(learner, calibration):
    labels = np.zeros((30, 2), dtype=int)
    labels[:10, 0] = 1
    labels[10:20, 1] = 1  # the training rows of each unshuffled fold lack a class
    rows = np.random.default_rng(0).normal(size=(30, 2)) + 2.0 * labels
    model = FGFMClassifier(learner, calibration=calibration, cv=KFold(3)).fit(rows, labels)
    assert np.isfinite(model.expected_f(rows)).all()
    if learner == "ridge" and calibration == "auto":
        assert model.score(rows, labels) > 0.6


def test_auto_stands_for_ridge_where_a_method_needs_it():
    for method in ("two-step", "direct", "powerset"):
        auto, ridge = (
            FGFMClassifier(learner, method=method, random_state=0).fit(X, Y)
            for learner in ("auto", "ridge")
        )
        assert_same(auto, ridge)
        assert not hasattr(auto, "parts_")


def test_auto_takes_no_calibration():
    for calibration in ("sigmoid", KFold(3)):
        with pytest.raises(ValueError, match="whose stack is its calibration"):
            FGFMClassifier(calibration=calibration).fit(X, Y)
    assert_same(
        FGFMClassifier(calibration=None, random_state=0).fit(X, Y),
        FGFMClassifier(None, random_state=0).fit(X, Y),
    )


def test_most_rows_may_have_no_label():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 6))
    some = rng.random(3000) < expit(2.5 * X[:, 0] - 1.0)  # about 40 % of the rows
    Y = some[:, None] & (rng.random((3000, 4)) < expit(2.0 * X[:, 1:5]))
    model = FGFMClassifier(random_state=0).fit(X[:1500], Y[:1500].astype(int))
    none = ~Y[1500:].any(axis=1)
    p = model.predict_cardinality_proba(X[1500:])[:, 0]
    assert none.mean() > 0.6
    for tenth in np.array_split(np.argsort(p), 10):  # 150 rows: standard error at most 0.04
        assert abs(p[tenth].mean() - none[tenth].mean()) < 0.12
    assert np.mean((p - none) ** 2) < 0.75 * none.mean() * (1.0 - none.mean())
    score = model.score(X[1500:], Y[1500:].astype(int))
    assert abs(model.expected_f(X[1500:]).mean() - score) < 0.03
