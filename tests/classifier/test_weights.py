"""Sample weights and metadata routing."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedGroupKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import fgfm
from fgfm import FGFMClassifier
from fgfm.ridge import RidgeLogistic
from multilabel import X, Y, assert_close, assert_same, one_factor


def test_weights_as_a_series():
    pd = pytest.importorskip("pandas")
    weight = np.linspace(0.0, 2.0, 60)
    series = pd.Series(weight, index=np.arange(60)[::-1])
    for learner in (None, GaussianNB()):
        model = FGFMClassifier(learner, random_state=0)
        assert_same(
            clone(model).fit(X, Y, sample_weight=series), model.fit(X, Y, sample_weight=weight)
        )


def test_score_takes_weights():
    model = FGFMClassifier(random_state=0).fit(X, Y)
    weight = np.linspace(0.0, 1.0, 60)
    expected = fgfm.f_measure(Y, model.predict(X), sample_weight=weight)
    assert model.score(X, Y, sample_weight=weight) == expected
    model.set_params(beta=2.0, zero_division=0.0)
    expected = fgfm.f_measure(Y, model.predict(X), 2.0, zero_division=0.0)
    assert model.score(X, Y) == expected


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_routed_weights():
    weight = np.linspace(0.0, 2.0, 60)
    with sklearn.config_context(enable_metadata_routing=False):
        expected = {
            name: FGFMClassifier(learner, random_state=0).fit(X, Y, sample_weight=weight)
            for name, learner in (("auto", "auto"), ("bayes", GaussianNB()))
        }
    auto = FGFMClassifier(random_state=0).fit(X, Y, sample_weight=weight)
    assert_close(auto, expected["auto"], atol=1e-12)
    asked = GaussianNB().set_fit_request(sample_weight=True)
    model = FGFMClassifier(asked, random_state=0).fit(X, Y, sample_weight=weight)
    assert_close(model, expected["bayes"], atol=1e-12)
    pipeline = make_pipeline(
        StandardScaler().set_fit_request(sample_weight=True),
        GaussianNB().set_fit_request(sample_weight=True),
    )
    weighted = FGFMClassifier(pipeline, random_state=0).fit(X, Y, sample_weight=weight)
    unweighted = FGFMClassifier(pipeline, random_state=0).fit(X, Y)
    assert np.abs(weighted.predict_proba(X) - unweighted.predict_proba(X)).max() > 1e-3


@pytest.mark.parametrize("enabled", [False, True])
@pytest.mark.parametrize("learner", ["ridge", RidgeLogistic(), GaussianNB(), LinearSVC()])
def test_groups_reach_the_splitter(enabled, learner):
    groups = np.arange(60) // 10
    folds = list(GroupKFold(3).split(X, groups=groups))
    with sklearn.config_context(enable_metadata_routing=enabled):
        model = FGFMClassifier(learner, cv=GroupKFold(3), random_state=0)
        grouped = clone(model).fit(X, Y, groups=groups)
        if isinstance(learner, RidgeLogistic):
            learner = RidgeLogistic(cv=folds)
        assert_same(grouped, FGFMClassifier(learner, cv=folds, random_state=0).fit(X, Y))
    if isinstance(learner, GaussianNB):
        chosen = FGFMClassifier(learner, calibration=StratifiedGroupKFold(3), random_state=0)
        assert chosen.fit(X, Y, groups=groups).score(X, Y) > 0.5
        with pytest.raises(ValueError, match="groups"):
            clone(model).fit(X, Y)


def test_groups_that_no_splitter_takes_raise():
    with pytest.raises(ValueError, match="groups is given and estimator is 'auto', which holds"):
        FGFMClassifier(cv=GroupKFold(3)).fit(X, Y, groups=np.arange(60) // 10)
    with pytest.raises(TypeError, match="fit got groups: method is an object without cv"):
        FGFMClassifier(method=one_factor("tilted")).fit(X, Y, groups=np.arange(60) // 10)
    with pytest.raises(ValueError, match="groups is given and cv is None: it must be a scikit-l"):
        FGFMClassifier("ridge").fit(X, Y, groups=np.arange(60) // 10)


@pytest.mark.usefixtures("routing")
def test_unrequested_metadata_raises():
    with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sample_weight"):
        FGFMClassifier(GaussianNB()).fit(X, Y, sample_weight=np.ones(60))
    with pytest.raises(TypeError, match="colour"):
        FGFMClassifier().fit(X, Y, colour="red")


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("kind", [RidgeLogistic, GaussianNB])
def test_learner_that_declines_weights(kind):
    labels = Y.copy()
    labels[labels.sum(axis=1) == 4, 0] = 0
    labels[9] = 1  # the only row with four labels has the weight 0
    weight = np.where(np.arange(60) == 9, 0.0, 1.0)
    learner = kind().set_fit_request(sample_weight=False)
    model = FGFMClassifier(learner, random_state=0).fit(X, labels, sample_weight=weight)
    d = model.predict_cardinality_proba(X)
    np.testing.assert_allclose(d.sum(axis=1), 1.0, atol=1e-9)
    assert model.predict(X).shape == (60, 4)


@pytest.mark.usefixtures("routing")
def test_routing_through_a_grid_search():
    weight = np.linspace(0.1, 2.0, 60)
    model = FGFMClassifier(random_state=0).set_fit_request(sample_weight=True)
    scorer = make_scorer(fgfm.f_measure).set_score_request(sample_weight=True)
    search = GridSearchCV(model, {"beta": [1.0]}, cv=3, scoring=scorer)
    search.fit(X, Y, sample_weight=weight)
    assert_close(search.best_estimator_, clone(model).fit(X, Y, sample_weight=weight), atol=1e-12)
