"""FDecider and FClassifier with lists of label names, and with missing labels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.svm import LinearSVC

from decider_data import distorted, independent
from fgfm import FClassifier, FDecider
from multilabel import close, interleaved_folds, make_data

P, Y = independent(400, 4)
NAMES = np.array(["rain", "fog", "sun", "hail"])
LISTS = [NAMES[row == 1].tolist() for row in Y]
AVERAGES = ["samples", "macro", "micro"]


@pytest.mark.parametrize("kind", ["list", "sets", "array", "series"])
def test_names_are_those_of_the_columns(kind):
    pd = pytest.importorskip("pandas")
    y = {
        "list": LISTS,
        "sets": [set(row) for row in LISTS],
        "array": np.array([*LISTS, []], dtype=object)[:-1],
        "series": pd.Series(LISTS),
    }[kind]
    X = pd.DataFrame(P, columns=NAMES)
    expected = FDecider(average="macro").fit(X, pd.DataFrame(Y, columns=NAMES))
    decider = FDecider(average="macro").fit(X, y)
    assert decider.classes_.tolist() == NAMES.tolist()
    assert (decider.predict(X) == expected.predict(X)).all()
    assert decider.score(X, y) == expected.score(X, Y)
    pd.testing.assert_frame_equal(decider.report(X, y), expected.report(X, Y))


def test_columns_without_names_are_in_sorted_order():
    order = np.argsort(NAMES)
    decider = FDecider().fit(P[:, order], LISTS)
    expected = FDecider().fit(P[:, order], Y[:, order])
    assert decider.classes_.tolist() == sorted(NAMES)
    assert (decider.predict(P[:, order]) == expected.predict(P[:, order])).all()
    other, Y_other = independent(300, 4, seed=1)
    lists = [NAMES[order][row == 1].tolist() for row in Y_other]
    assert decider.lower_bound(other, lists) == expected.lower_bound(other, Y_other)
    with pytest.raises(ValueError, match="X has 3 columns and y has 4"):
        FDecider().fit(P[:, :3], LISTS)


def test_lists_behind_a_model():
    order = np.argsort(NAMES)
    model = FClassifier(LogisticRegression(), random_state=0)
    expected = FClassifier(LogisticRegression(), random_state=0).fit(P, Y[:, order])
    model.fit(P, LISTS)
    assert model.classes_.tolist() == sorted(NAMES)
    assert (model.predict(P) == expected.predict(P)).all()
    assert model.score(P, LISTS) == expected.score(P, Y[:, order])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (["snow"], r"y\[5\] has the label 'snow': the labels are 'rain', 'fog', 'sun', 'hail'"),
        ("rain", r"y\[5\] is 'rain': it must be a list of the names of labels"),
        (["rain", 3], r"y\[5\] is \['rain', 3\]: it must be a list of the names of labels"),
    ],
)
def test_bad_lists(row, message):
    pd = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match=message):
        FDecider().fit(pd.DataFrame(P, columns=NAMES), [*LISTS[:5], row, *LISTS[6:]])


@pytest.mark.parametrize("mark", [np.nan, -1.0])
@pytest.mark.parametrize("calibration", ["auto", "isotonic", None])
@pytest.mark.parametrize("average", AVERAGES)
def test_missing_rows_are_left_out(average, calibration, mark):
    # A row without any known label says nothing but how probable labels are.
    y = Y.astype(float)
    y[300:] = mark
    weight = np.r_[np.ones(300), np.zeros(100)]
    decider = FDecider(average=average, calibration=calibration)
    one = decider.fit(P, y).predict_proba(P)
    close(one, decider.fit(P, Y, weight).predict_proba(P), 1e-9)


def test_missing_labels_are_ignored_in_the_calibration():
    p = distorted(P, 0.5, 0.5)
    missing = np.random.default_rng(0).random(Y.shape) < 0.4
    y = np.where(missing, np.nan, Y)
    close(FDecider().fit(p, y).predict_proba(p), P, 0.25)
    as_absent = FDecider().fit(p, np.where(missing, 0, Y)).predict_proba(p)
    found = FDecider().fit(p, y).predict_proba(p)
    assert np.abs(found - P).mean() < 0.5 * np.abs(as_absent - P).mean()


@pytest.mark.parametrize("average", AVERAGES)
def test_no_row_is_complete(average):
    y = Y.astype(float)
    y[np.arange(400), np.arange(400) % 4] = np.nan
    decider = FDecider(average=average).fit(P, y)
    assert not decider.nonempty_
    assert decider.score(P, Y) > FDecider(average=average).fit(P, Y).score(P, Y) - 0.03


def test_missing_labels_need_dense_probabilities():
    y = Y.astype(float)
    y[0, 0] = np.nan
    with pytest.raises(ValueError, match="missing labels need a dense X"):
        FDecider().fit(sparse.csr_array(P), y)


@pytest.mark.parametrize("single", [False, True])
def test_models_are_fitted_where_labels_are_known(single):
    X, Y = make_data(240, 3)
    missing = np.random.default_rng(0).random(Y.shape) < 0.3
    y = np.where(missing, np.nan, Y)
    folds = interleaved_folds(240, 3)
    one = LogisticRegression()
    model = FClassifier(one if single else MultiOutputClassifier(one), cv=folds).fit(X, y)
    p = np.empty(Y.shape)
    for train, test in folds:
        for j in range(3):
            known = train[~missing[train, j]]
            p[test, j] = one.fit(X[known], Y[known, j]).predict_proba(X[test])[:, 1]
    decider = FDecider().fit(p, y)
    everything = np.empty(Y.shape)
    for j in range(3):
        known = ~missing[:, j]
        everything[:, j] = one.fit(X[known], Y[known, j]).predict_proba(X)[:, 1]
    close(model.predict_proba(X), decider.predict_proba(everything), 1e-9)
    assert (model.predict(X) == decider.predict(everything)).all()
    rows = FClassifier(model.estimator_, cv="prefit").fit(X, y)
    close(rows.predict_proba(X), FDecider().fit(everything, y).predict_proba(everything), 1e-9)


def test_labels_that_are_missing_or_constant_in_folds():
    X, Y = make_data(60, 3)
    y = Y.astype(float)
    y[20:, 0] = np.nan  # known in the first fold only
    y[:, 1] = 1.0
    folds = [(np.arange(20, 60), np.arange(20)), (np.arange(20), np.arange(20, 60))]
    p = FClassifier(LogisticRegression(), cv=folds).fit(X, y).predict_proba(X)
    assert np.isfinite(p).all()
    with pytest.raises(
        TypeError, match=r"y has labels that are missing, and .* must have predict_"
    ):
        FClassifier(LinearSVC(), cv=folds).fit(X, y)
