"""The parameter factors of FGFMClassifier: names, partitions, objects that find factors."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from threadpoolctl import threadpool_limits

import fgfm
from fgfm import FGFMClassifier
from multilabel import X, Y, assert_close, assert_same


def test_partition_by_label_names():
    pd = pytest.importorskip("pandas")
    labels = pd.DataFrame(Y, columns=["cat", "dog", "cow", "hen"])
    by_name = FGFMClassifier(factors=[["hen", "cat"], ("dog", "cow")], random_state=0)
    by_number = FGFMClassifier(factors=[[3, 0], np.array([1, 2])], random_state=0)
    assert_same(by_name.fit(X, labels), by_number.fit(X, Y))
    assert [f.tolist() for f in by_name.factors_] == [[3, 0], [1, 2]]


def test_order_of_factors_and_labels_does_not_matter():
    one = FGFMClassifier("ridge", factors=[[0, 2], [1, 3]], cv=KFold(3)).fit(X, Y)
    two = FGFMClassifier("ridge", factors=[[3, 1], [2, 0]], cv=KFold(3)).fit(X, Y)
    assert_close(one, two)
    assert (one.predict(X) == two.predict(X)).all()


def test_singletons_are_independent_labels():
    one = FGFMClassifier(factors="independent", random_state=0).fit(X, Y)
    two = FGFMClassifier(factors=[[2], [0], [3], [1]], random_state=0).fit(X, Y)
    assert_close(one, two)
    assert (one.predict(X) == two.predict(X)).all()
    decision = fgfm.decision.from_marginals(one.predict_proba(X), nonempty=one.nonempty_)
    assert (one.predict(X) == decision.labels).all()


class Finder(BaseEstimator):
    """Sets the factors of its constructor, and records the arguments of fit."""

    def __init__(self, found=None, random_state=None):
        self.found = found
        self.random_state = random_state

    def fit(self, X, Y, sample_weight=None):
        assert set(np.unique(Y)) <= {0, 1}
        self.factors_ = self.found
        Finder.last = (self, X.shape, Y.shape, sample_weight)
        return self


def test_factors_found_by_an_object():
    finder = Finder([[0, 3], [1, 2]])
    model = FGFMClassifier(factors=finder, random_state=0).fit(X, Y)
    assert_same(model, FGFMClassifier(factors=[[0, 3], [1, 2]], random_state=0).fit(X, Y))
    assert not hasattr(finder, "factors_")
    used, *shapes, weight = Finder.last
    assert used.random_state == 0
    assert shapes == [(60, 3), (60, 4)]
    assert weight is None
    model.fit(X, Y, sample_weight=np.ones(60))
    assert len(Finder.last[3]) == 60
    with pytest.raises(ValueError, match="factors leaves out label 3: every label must be in"):
        FGFMClassifier(factors=Finder([[0, 1], [2]])).fit(X, Y)


def pairs_of_labels(n=400):
    """Draw features, and two pairs of labels that depend on each other given the features."""
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(n, 2))
    noise = rng.random((n, 4)) < 0.15
    labels = (rows[:, [0, 0, 1, 1]] + rng.normal(size=(n, 2))[:, [0, 0, 1, 1]] > 0.0) ^ noise
    return rows, labels.astype(int)


def test_ilf_finds_factors():
    rows, labels = pairs_of_labels()
    model = FGFMClassifier(factors="ilf", random_state=0).fit(rows, labels)
    assert [factor.tolist() for factor in model.factors_] == [[0, 1], [2, 3]]
    assert type(model.factor_finder_) is fgfm.ILFCompo
    assert_same(
        model, FGFMClassifier(factors=[[0, 1], [2, 3]], random_state=0).fit(rows, labels), rows
    )
    weight = np.ones(2 * len(rows))
    weight[len(rows) :] = 0.0  # the tests ignore rows of weight 0 too
    twice = FGFMClassifier(factors="ilf", random_state=0)
    twice.fit(np.vstack([rows, rows]), np.vstack([labels, labels[::-1]]), sample_weight=weight)
    assert_same(twice, model, rows)
    stricter = FGFMClassifier(factors=fgfm.ILFCompo(alpha=1e-300)).fit(rows, labels)
    assert len(stricter.factors_) == 4
    assert not hasattr(stricter.set_params(factors="single").fit(rows, labels), "factor_finder_")


def test_ilf_accepts_frames_with_categories_and_missing_values():
    pd = pytest.importorskip("pandas")
    rows, labels = pairs_of_labels()
    frame = pd.DataFrame({"x": rows[:, 0], "word": np.where(rows[:, 1] > 0.0, "left", "right")})
    frame.loc[::7, "x"] = np.nan
    learner = make_pipeline(
        make_column_transformer(
            (OneHotEncoder(sparse_output=False), ["word"]), remainder="passthrough"
        ),
        HistGradientBoostingClassifier(max_iter=5),
    )
    model = FGFMClassifier(learner, factors="ilf", calibration=None, random_state=0)
    with threadpool_limits(1):  # OpenMP threads wait for each other on busy machines
        model.fit(frame, labels)
    assert [factor.tolist() for factor in model.factors_] == [[0, 1], [2, 3]]
    assert model.predict(frame).shape == labels.shape


def test_factor_finder_keeps_label_names():
    pd = pytest.importorskip("pandas")
    rows, labels = pairs_of_labels()
    model = FGFMClassifier(factors="ilf")
    model.fit(rows, pd.DataFrame(labels, columns=list("abcd")))
    assert model.factor_finder_.label_names_in_.tolist() == list("abcd")


def test_class_instead_of_a_factor_finder_raises():
    with pytest.raises(TypeError, match=r"factors is .*ILFCompo.*, a class: it must be an object"):
        FGFMClassifier(factors=fgfm.ILFCompo).fit(X, Y)
