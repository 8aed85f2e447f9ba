"""Constant, rare and duplicate labels, few rows, many label sets. Warnings are errors."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from fgfm import FGFMClassifier
from multilabel import X


def slow(settings):
    return pytest.param(settings, marks=pytest.mark.slow)


def unusual_labels():
    n = 18
    rng = np.random.default_rng(1)
    few = (rng.random((n, 3)) < 0.4).astype(int)
    ordinary = few.copy()
    ordinary[few.sum(axis=1) == 0, 0] = 1

    def column(values):
        return np.column_stack([few, values])

    once = np.zeros(n, dtype=int)
    once[5] = 1
    many = (rng.random((n, 20)) < 0.1).astype(int)
    all_once = np.where(few.sum(axis=1, keepdims=True) == 3, [1, 0, 1], few)
    all_once[11] = 1
    return {
        "a label that is never present": column(np.zeros(n, int)),
        "a label that is always present": column(np.ones(n, int)),
        "one positive": column(once),
        "one negative": column(1 - once),
        "empty rows": np.where((np.arange(n) % 3 == 0)[:, None], 0, few),
        "no label at all": np.zeros((n, 3), int),
        "all labels always": np.ones((n, 3), int),
        "one row that is not empty": np.outer(once, [1, 1, 0]),
        "a number of labels seen once": all_once,
        "more labels than rows": many,
        "no empty row": ordinary,
        "exactly one label": np.eye(3, dtype=int)[np.arange(n) % 3],
        "equal labels": np.repeat(few[:, :1], 3, axis=1),
        "sorted": np.sort(few, axis=0),
    }


UNUSUAL = unusual_labels()


@pytest.mark.parametrize("case", UNUSUAL)
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"factors": "independent"},
        {"method": "two-step"},
        {"method": "direct", "coherent": False},
        slow({"method": "two-step", "coherent": False}),
        slow({"method": "tilted"}),
        slow({"method": "direct"}),
        {"method": "powerset"},
        slow({"estimator": GaussianNB(), "cv": 3}),
        slow({"estimator": GaussianNB(), "calibration": "isotonic", "cv": 2}),
        {"estimator": KNeighborsClassifier(2), "factors": "independent"},
        slow({"estimator": LinearSVC(), "cv": 2}),
    ],
    ids=str,
)
def test_unusual_labels(case, settings):
    labels = UNUSUAL[case]
    rows = np.random.default_rng(0).normal(size=(18, 2))
    model = FGFMClassifier(random_state=0, **settings).fit(rows, labels)
    assert model.nonempty_ == labels.any(axis=1).all()
    assert model.factors_ is not None
    predicted = model.predict(rows)
    assert predicted.shape == labels.shape
    if model.nonempty_:
        assert predicted.any(axis=1).all()
    p, d = model.predict_proba(rows), model.predict_cardinality_proba(rows)
    assert ((p >= 0.0) & (p <= 1.0)).all()
    np.testing.assert_allclose(d.sum(axis=1), 1.0, atol=1e-9)
    assert ((model.expected_f(rows) >= 0.0) & (model.expected_f(rows) <= 1.0 + 1e-12)).all()
    assert (p[:, ~labels.any(axis=0)] < 1e-9).all()


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("learner", [None, GaussianNB(), LinearSVC(), RandomForestClassifier(2)])
@pytest.mark.parametrize(
    ("factors", "method"),
    [("single", "two-step"), ("single", "powerset"), ("independent", "two-step")],
)
def test_few_rows(n, learner, factors, method):
    model = FGFMClassifier(learner, factors=factors, method=method, random_state=0)
    labels = np.array([[1, 0, 1], [0, 0, 1], [0, 0, 0]])[:n]
    model.fit(X[:n], labels)
    predicted = model.predict(X)
    assert predicted.shape == (60, 3)
    if n == 1:
        assert (predicted == labels).all()
        np.testing.assert_allclose(model.expected_f(X), 1.0)
