"""Constraints on the predictions of the classifier: at prediction, by name, in every path."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

import fgfm
from fgfm import FGFMClassifier, decision
from fgfm.decision import Constraints
from multilabel import X, Y

TREE = Constraints(parents={0: 1, 2: 3})


@pytest.fixture(scope="module", params=["single", "independent", [[0, 3], [1, 2]]], ids=str)
def model(request):
    return FGFMClassifier(factors=request.param, random_state=0).fit(X, Y)


def test_limits_take_effect_without_a_new_fit(model):
    free = model.decide(X)
    limited = clone(model).set_params(max_labels=1)
    model.set_params(min_labels=2, max_labels=3, constraints=TREE)
    try:
        labels, expected_f = model.decide(X)
        assert (labels.sum(axis=1) >= 2).all()
        assert (labels.sum(axis=1) <= 3).all()
        assert (labels[:, [0, 2]] <= labels[:, [1, 3]]).all()
        assert (expected_f <= free.expected_f + 1e-12).all()
        np.testing.assert_array_equal(model.predict(X), labels)
        estimates = model.estimate(X)
        decided = decision.from_factors(
            [P for P, _ in estimates],
            model.factors_,
            distributions=[d for _, d in estimates],
            **model.decision_params(),
        )
        np.testing.assert_array_equal(decided.labels, labels)
    finally:
        model.set_params(min_labels=0, max_labels=None, constraints=None)
    np.testing.assert_array_equal(model.decide(X).labels, free.labels)
    assert (limited.fit(X, Y).predict(X).sum(axis=1) <= 1).all()


def test_names_of_labels():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(Y, columns=["a", "b", "c", "d"])
    constraints = Constraints(groups=[["a", "b", "c"]], required=["d"])
    model = FGFMClassifier(constraints=constraints, random_state=0).fit(X, frame)
    predicted = model.predict_frame(X)
    assert (predicted["d"] == 1).all()
    assert (predicted[["a", "b", "c"]].sum(axis=1) <= 1).all()
    assert model.decision_params()["constraints"] == Constraints(groups=[[0, 1, 2]], required=[3])
    wrong = Constraints(required=["e"], groups=[["a", "b"]])
    with pytest.raises(ValueError, match="required has label 'e': there is no such label"):
        model.set_params(constraints=wrong).fit(X, frame)
    with pytest.raises(ValueError, match="there is no such label"):
        model.predict(X)


def test_rows_decided_by_label_frequencies_obey():
    class NoLabels(BaseEstimator):
        """A model that gives no label any probability."""

        def fit(self, X, Y):
            self.m = Y.shape[1]
            return self

        def estimate(self, X):
            n = len(X)
            d = np.zeros((n, self.m + 1))
            d[:, 0] = 1.0
            return np.zeros((n, self.m, self.m)), d

    model = FGFMClassifier(method=NoLabels(), nonempty=True).fit(X, Y)
    assert model.predict(X).sum(axis=1).max() > 1
    model.set_params(max_labels=1, constraints=Constraints(forbidden=[0]))
    most_frequent = Y[:, 1:].mean(axis=0).argmax() + 1
    np.testing.assert_array_equal(model.predict(X)[0], np.arange(4) == most_frequent)


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"min_labels": 5}, ValueError, "min_labels is 5, but there are 4 labels"),
        ({"max_labels": 0}, ValueError, "max_labels is 0: it must be an integer, 1 or more"),
        ({"constraints": {"required": [0]}}, TypeError, "it must be a fgfm.decision.Constraints"),
        ({"constraints": Constraints(forbidden=[9])}, ValueError, "forbidden has label 9"),
    ],
)
def test_invalid_limits_are_refused_before_the_fit(params, error, message):
    with pytest.raises(error, match=message):
        FGFMClassifier(factors="ilf", **params).fit(X, Y)


def test_saved_with_the_model(tmp_path):
    pytest.importorskip("skops")
    constraints = Constraints(groups=[[0, 1]], costs={2: 0.1, 3: 0.2}, forbidden=(3,))
    for given in (constraints, TREE, Constraints(parents=[None, 0, 0, -1], costs=0.1)):
        model = FGFMClassifier(max_labels=2, constraints=given, random_state=0).fit(X, Y)
        fgfm.save(model, tmp_path / "model.fgfm")
        again = fgfm.load(tmp_path / "model.fgfm")
        assert again.constraints == given
        assert again.max_labels == 2
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
