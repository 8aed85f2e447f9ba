"""The parameter method of FGFMClassifier: names, and objects of the user."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from fgfm import FGFMClassifier
from multilabel import METHODS, X, Y, assert_close, assert_same, one_factor


@pytest.mark.parametrize("method", METHODS)
def test_factors_are_fitted_as_by_themselves(method):
    model = FGFMClassifier("ridge", factors=[[2, 0], [1, 3]], method=method, random_state=0)
    estimates = model.fit(X, Y).estimate(X)
    p = model.predict_proba(X)
    for factor, (P, d) in zip([[2, 0], [1, 3]], estimates, strict=True):
        alone = one_factor(method, random_state=0).fit(X, Y[:, factor]).estimate(X)
        np.testing.assert_allclose(P, alone.P, atol=1e-12)
        np.testing.assert_allclose(d, alone.d, atol=1e-12)
        np.testing.assert_allclose(p[:, factor], alone.P.sum(axis=2), atol=1e-12)


def test_predict_mode_needs_its_method():
    model = FGFMClassifier(random_state=0).fit(X, Y)
    assert not hasattr(model, "predict_mode")
    with pytest.raises(AttributeError) as caught:
        _ = model.predict_mode
    assert "needs method='powerset'" in str(caught.value.__cause__)
    factors = [[1, 3], [0, 2]]
    mode = FGFMClassifier(factors=factors, method="powerset", random_state=0).fit(X, Y)
    for factor in factors:
        alone = one_factor("powerset", random_state=0).fit(X, Y[:, factor])
        assert (mode.predict_mode(X)[:, factor] == alone.predict_mode(X)).all()


class Constant(BaseEstimator):
    """A model of P that ignores the features, and returns d or not."""

    def __init__(self, with_d=True):
        self.with_d = with_d

    def fit(self, X, Y, sample_weight=None):
        self.model_ = one_factor("powerset", DummyClassifier()).fit(X, Y, sample_weight)
        return self

    def estimate(self, X):
        P, d = self.model_.estimate(X)
        return (P, d) if self.with_d else P


def test_object_with_fit_and_estimate():
    expected = FGFMClassifier(DummyClassifier(), factors=[[0, 1], [2, 3]], method="powerset").fit(
        X, Y
    )
    for with_d in (True, False):
        model = FGFMClassifier(factors=[[0, 1], [2, 3]], method=Constant(with_d)).fit(X, Y)
        assert_close(model, expected)
        assert (model.predict(X) == expected.predict(X)).all()
        np.testing.assert_allclose(
            model.predict_cardinality_proba(X), expected.predict_cardinality_proba(X), atol=1e-12
        )
    assert not hasattr(model.method, "model_")
    weight = np.linspace(0.5, 2.0, 60)
    assert_close(model.fit(X, Y, sample_weight=weight), expected.fit(X, Y, sample_weight=weight))


def test_object_that_returns_the_wrong_shape_raises():
    class Wrong(BaseEstimator):
        def fit(self, X, Y):
            return self

        def estimate(self, X):
            return np.zeros((len(X), 2, 2))

    model = FGFMClassifier(method=Wrong()).fit(X, Y)
    sentence = (
        r"method\.estimate for factor 0 returned P of shape \(60, 2, 2\): it must have shape"
    )
    with pytest.raises(ValueError, match=sentence + r" \(60, 4, S\)"):
        model.predict(X)


def test_object_gets_the_features_unchanged():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"word": np.where(X[:, 0] > 0.0, "left", "right"), "x": X[:, 1]})
    words = ColumnTransformer([("w", OneHotEncoder(), ["word"])], remainder="passthrough")
    learner = make_pipeline(words, LogisticRegression())
    own = FGFMClassifier(method=one_factor("two-step", learner, random_state=0)).fit(frame, Y)
    named = FGFMClassifier(learner, method="two-step", random_state=0).fit(frame, Y)
    assert_same(own, named, frame)
