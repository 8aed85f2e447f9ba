"""The same bits for the same seed, any number of jobs and any block of rows."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from fgfm import FGFMClassifier
from fgfm.ridge import RidgeLogistic
from multilabel import METHODS, OneFactor, X, Y, assert_same, make_data


@pytest.mark.parametrize("learner", [None, RandomForestClassifier(3), GaussianNB(), LinearSVC()])
def test_random_state(learner):
    labels = Y[:, :2]
    model = FGFMClassifier(learner, random_state=0, cv=2).fit(X, labels)
    assert_same(model, FGFMClassifier(learner, random_state=0, cv=2).fit(X, labels))
    one = FGFMClassifier(learner, random_state=np.random.RandomState(3), cv=2)
    two = FGFMClassifier(learner, random_state=np.random.RandomState(3), cv=2)
    assert_same(one.fit(X, labels), two.fit(X, labels))
    assert_same(clone(model).fit(X, labels), model)


@pytest.mark.parametrize("learner", [None, LogisticRegression(), RandomForestClassifier(2)])
def test_n_jobs_gives_the_same_bits(learner):
    settings = {"factors": [[0, 1], [2, 3]], "random_state": 0, "cv": 2}
    one = FGFMClassifier(learner, **settings).fit(X, Y)
    two = FGFMClassifier(learner, n_jobs=2, **settings).fit(X, Y)
    assert_same(one, two)


# 40 labels, and a row with all of them: P has 1600 numbers per row, and 1300 rows fill a block.
X_MANY, Y_MANY = make_data(1500, 40)
X_TRAIN, Y_TRAIN = X_MANY[:60], np.where(np.arange(60)[:, None] == 7, 1, Y_MANY[:60])


def predictions(model, X):
    """Return all predictions for rows of X as arrays."""
    found = [
        *model.decide(X),
        model.predict_proba(X),
        model.predict_cardinality_proba(X),
        *(array for estimate in model.estimate(X) for array in estimate),
    ]
    if model.method == "powerset":
        found.append(model.predict_mode(X))
    return found


def assert_independent_of_blocks(model, X):
    """Assert that predictions for all rows are those for parts of the rows, up to rounding."""
    whole = predictions(model, X)
    n = X.shape[0]
    parts = [predictions(model, X[rows]) for rows in (slice(0, n // 3), slice(n // 3, n))]
    for found, *expected in zip(whole, *parts, strict=True):
        np.testing.assert_allclose(found, np.concatenate(expected), atol=1e-12)


@pytest.mark.parametrize(
    "method",
    [
        "tilted",
        "powerset",
        *(pytest.param(name, marks=pytest.mark.slow) for name in METHODS[:2]),
        pytest.param("direct", marks=pytest.mark.slow),
    ],
)
def test_several_blocks_of_rows(method):
    model = FGFMClassifier(RidgeLogistic([1.0]), method=method, random_state=0)
    assert_independent_of_blocks(model.fit(X_TRAIN, Y_TRAIN), X_MANY)


@pytest.mark.parametrize("form", ["sparse", "frame"])
def test_several_blocks_of_other_forms(form):
    pd = pytest.importorskip("pandas")
    convert = sparse.csr_array if form == "sparse" else pd.DataFrame
    learner = RidgeLogistic([1.0]) if form == "sparse" else GaussianNB()
    model = FGFMClassifier(learner, method="tilted", calibration=None, random_state=0)
    assert_independent_of_blocks(model.fit(convert(X_TRAIN), Y_TRAIN), convert(X_MANY))


def test_several_blocks_of_independent_labels():
    model = FGFMClassifier(RidgeLogistic([1.0]), factors="independent").fit(X_TRAIN, Y_TRAIN)
    assert_independent_of_blocks(model, np.tile(X_MANY, (24, 1)))


def test_threads_predict_the_same_bits():
    model = FGFMClassifier(RidgeLogistic([1.0]), method="tilted").fit(X_TRAIN, Y_TRAIN)
    one = predictions(model, X_MANY)
    two = predictions(model.set_params(n_jobs=2), X_MANY)
    assert all((a == b).all() for a, b in zip(one, two, strict=True))


class Recording(OneFactor):
    """Records the number of rows of each call of estimate."""

    rows: ClassVar[list[int]] = []

    def estimate(self, X):
        self.rows.append(len(X))
        return super().estimate(X)


def test_blocks_bound_the_number_of_rows():
    model = FGFMClassifier(method=Recording(RidgeLogistic([1.0]), method="tilted")).fit(
        X_TRAIN, Y_TRAIN
    )
    Recording.rows.clear()
    model.predict(X_MANY)
    assert sum(Recording.rows) == 1500
    assert max(Recording.rows) * 8 * 4 * 40 * 40 <= 2**26


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_rows_one_by_one(form):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((60, 30))
    if form == "sparse":
        rows = sparse.csr_array(np.where(rows > 1.3, rows, 0.0))
    labels = np.asarray(rows @ rng.standard_normal((30, 6)) > 0.4)
    model = FGFMClassifier(random_state=0).fit(rows, labels)
    for ask in (model.predict_proba, model.predict_cardinality_proba):
        assert (np.vstack([ask(rows[[i]]) for i in range(60)]) == ask(rows)).all()
    assert (
        np.concatenate([model.expected_f(rows[[i]]) for i in range(60)]) == model.expected_f(rows)
    ).all()
