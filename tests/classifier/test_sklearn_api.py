"""FGFMClassifier as a scikit-learn estimator: common checks, tags, clone, pickle, searches."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import fgfm
from fgfm import FGFMClassifier
from multilabel import METHODS, X, Y, assert_same


def differ_by_chance(estimator):
    """Return the checks that rows drawn at random fail: those of weights as repeated rows."""
    if estimator.estimator != "auto" or estimator.method not in ("reweighted", "tilted"):
        return {}
    return {
        f"check_sample_weight_equivalence_on_{kind}_data": "the forest draws rows at random"
        for kind in ("dense", "sparse")
    }


@parametrize_with_checks(
    [
        FGFMClassifier(),
        FGFMClassifier(factors="independent"),
        FGFMClassifier("ridge"),
        FGFMClassifier("ridge", factors="independent"),
    ],
    expected_failed_checks=differ_by_chance,
)
def test_common_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some checks pass data that raise a warning
        check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        FGFMClassifier(method="two-step"),
        FGFMClassifier(method="tilted"),
        FGFMClassifier(method="powerset"),
        FGFMClassifier(method="direct"),
        FGFMClassifier(LogisticRegression(max_iter=300)),
        FGFMClassifier(GaussianNB(), cv=2, random_state=0),
    ],
    expected_failed_checks=differ_by_chance,
)
def test_common_checks_of_other_configurations(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


@pytest.mark.parametrize("learner", [None, LogisticRegression(), GaussianNB(), LinearSVC()])
def test_input_tags_are_those_of_the_base_learner(learner):
    tags = sklearn.utils.get_tags(FGFMClassifier(learner))
    assert tags.classifier_tags.multi_label
    assert not tags.classifier_tags.multi_class
    if learner is not None:
        assert tags.input_tags.sparse == sklearn.utils.get_tags(learner).input_tags.sparse


def test_fit_returns_self_and_sets_the_documented_attributes():
    model = FGFMClassifier(factors=[[0, 1], [2, 3]], random_state=0)
    assert model.fit(X, Y) is model
    documented = {
        "classes_",
        "factors_",
        "label_frequencies_",
        "multilabel_",
        "n_features_in_",
        "n_parameters_",
        "nonempty_",
        "parts_",
    }
    found = {name for name in vars(model) if name.endswith("_")}
    assert found == documented
    assert model.n_features_in_ == 3


def test_refit_removes_attributes_of_the_earlier_fit():
    pd = pytest.importorskip("pandas")
    model = FGFMClassifier(random_state=0).fit(
        pd.DataFrame(X, columns=list("xyz")), pd.DataFrame(Y, columns=list("abcd"))
    )
    model.fit(X[:, :2], Y[:, :3])
    assert not hasattr(model, "label_names_in_")
    assert not hasattr(model, "feature_names_in_")
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.n_features_in_ == 2
    assert_same(model, FGFMClassifier(random_state=0).fit(X[:, :2], Y[:, :3]), X[:, :2])
    model.fit(X, Y[:, 0])
    assert model.predict(X).ndim == 1


def test_arguments_are_not_modified():
    rows, labels, weight = X.copy(), Y.copy(), np.linspace(0.0, 2.0, 60)
    for array in (rows, labels, weight):
        array.setflags(write=False)
    for learner in (None, GaussianNB()):
        model = FGFMClassifier(learner, random_state=0).fit(rows, labels, sample_weight=weight)
        model.predict(rows)
    partition = [[0, 1], [2, 3]]
    FGFMClassifier(factors=partition).fit(X, Y)
    assert partition == [[0, 1], [2, 3]]
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("xyz"))
    FGFMClassifier(GaussianNB()).fit(frame, Y).predict(frame)
    assert list(frame.columns) == list("xyz")


@pytest.mark.parametrize(
    ("learner", "method"),
    [*((None, method) for method in METHODS), (GaussianNB(), "two-step"), (LinearSVC(), "direct")],
)
def test_pickle(learner, method):
    model = FGFMClassifier(learner, method=method, cv=2, random_state=0).fit(X, Y)
    assert_same(pickle.loads(pickle.dumps(model)), model)


def test_grid_search_over_beta():
    grid = {"beta": [0.25, 1.0, 4.0], "estimator__C": [1.0]}
    model = FGFMClassifier(LogisticRegression(), random_state=0)
    assert "GaussianNB" in FGFMClassifier(GaussianNB())._repr_html_()
    search = GridSearchCV(model, grid, scoring=fgfm.f_scorer, cv=3).fit(X, Y)
    scores = search.cv_results_["mean_test_score"]
    assert len(set(scores)) == 3
    for beta, score in zip([0.25, 1.0, 4.0], scores, strict=True):
        model = FGFMClassifier(LogisticRegression(), beta=beta, random_state=0)
        assert cross_val_score(model, X, Y, cv=3, scoring=fgfm.f_scorer).mean() == score


@pytest.mark.parametrize("learner", [None, GaussianNB()])
def test_cross_val_predict(learner):
    model = FGFMClassifier(learner, calibration=None, random_state=0)
    proba = cross_val_predict(model, X, Y, cv=KFold(3), method="predict_proba")
    assert proba.shape == (60, 4)
    for train, test in KFold(3).split(X):
        fold = clone(model).fit(X[train], Y[train])
        np.testing.assert_allclose(proba[test], fold.predict_proba(X[test]), atol=1e-12)
    flat = cross_val_predict(model, X, Y[:, 0], cv=3, method="predict_proba")
    assert flat.shape == (60, 2)
    assert (cross_val_predict(model, X, Y, cv=3) <= 1).all()
