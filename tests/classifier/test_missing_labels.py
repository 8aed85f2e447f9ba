"""Labels that were not observed in some rows, marked by NaN, NA or -1 in y."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

import fgfm
from fgfm import FGFMClassifier
from fgfm.ridge import fit_ridge_logistic
from multilabel import (
    METHODS,
    X,
    Y,
    assert_close,
    assert_same,
    interleaved_folds,
    make_data,
    one_factor,
)

LEARNERS = {"ridge": "ridge", "bayes": GaussianNB(), "neighbours": KNeighborsClassifier(3)}


def hide(labels, share=0.2, seed=0):
    """Return integer labels with -1 in random cells, and the cells that are observed."""
    observed = np.random.default_rng(seed).random(labels.shape) >= share
    return np.where(observed, labels, -1), observed


PARTLY, OBSERVED = hide(Y)
FOLDS = interleaved_folds(60)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("method", METHODS)
def test_hidden_labels_do_not_matter(learner, method):
    model = FGFMClassifier(LEARNERS[learner], method=method, random_state=0).fit(X, PARTLY)
    assert np.isfinite(model.expected_f(X)).all()
    # Features of rows without any label take no part in the fit either.
    none = np.full((5, 4), -1)
    rows = np.vstack([X, np.full((5, 3), 9.0)])
    one, other = (
        FGFMClassifier(LEARNERS[learner], method=method, cv=FOLDS, random_state=0).fit(*data)
        for data in ((X, PARTLY), (rows, np.vstack([PARTLY, none])))
    )
    assert_close(one, other)


def test_auto():
    model = FGFMClassifier("auto", random_state=0).fit(X, PARTLY)
    assert np.isfinite(model.expected_f(X)).all()
    assert len(model.parts_) == 3


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_with_missing_labels(library):
    frames = pytest.importorskip(library)
    expected = FGFMClassifier(random_state=0).fit(X, PARTLY)
    columns = {
        name: [None if v < 0 else int(v) for v in PARTLY[:, i]] for i, name in enumerate("abcd")
    }
    model = FGFMClassifier(random_state=0).fit(X, frames.DataFrame(columns))
    assert (model.predict_proba(X) == expected.predict_proba(X)).all()
    assert list(model.label_names_in_) == list("abcd")
    assert set(np.unique(model.predict(X))) <= {0, 1}
    if library == "pandas":
        nullable = frames.DataFrame(columns).astype("Int64")
        again = FGFMClassifier(random_state=0).fit(X, nullable)
        assert (again.predict_proba(X) == expected.predict_proba(X)).all()
        assert again.predict(X).dtype == np.int64


@pytest.mark.parametrize(
    "form",
    [
        lambda y: np.where(y < 0, np.nan, y),
        sparse.csr_array,
        lambda y: y.astype(np.int8),
        lambda y: np.where(y < 0, np.nan, y).tolist(),
    ],
)
def test_forms_of_missing_labels(form):
    expected = FGFMClassifier(random_state=0).fit(X, PARTLY)
    model = FGFMClassifier(random_state=0).fit(X, form(PARTLY))
    assert (model.predict_proba(X) == expected.predict_proba(X)).all()
    predicted = model.predict(X)
    assert sparse.issparse(predicted) == sparse.issparse(form(PARTLY))


@pytest.mark.parametrize("learner", ["ridge", GaussianNB()])
def test_each_label_is_fitted_to_its_own_rows(learner):
    model = FGFMClassifier(learner, factors="independent", random_state=0).fit(X, PARTLY)
    for i in range(4):
        rows = OBSERVED[:, i]
        alone = one_factor("tilted", learner, random_state=0)
        if learner == "ridge":
            alone.fit(X[rows], Y[rows, i])
            expected = alone.estimate(X).d[:, 1]
            np.testing.assert_allclose(model.predict_proba(X)[:, i], expected, atol=1e-12)
        else:
            plain = GaussianNB().fit(X[rows], Y[rows, i])
            assert plain.predict_proba(X)[:, 1].argsort().tolist() == (
                model.predict_proba(X)[:, i].argsort().tolist()
            )
    np.testing.assert_allclose(
        model.label_frequencies_, [Y[OBSERVED[:, i], i].mean() for i in range(4)]
    )


def test_number_of_labels_is_learned_from_complete_rows():
    complete = OBSERVED.all(axis=1)
    model = FGFMClassifier("ridge", method="tilted", random_state=0).fit(X, PARTLY)
    (cardinality,) = fit_ridge_logistic(X[complete], [Y[complete].sum(axis=1)], random_state=0)
    np.testing.assert_allclose(
        model.predict_cardinality_proba(X)[:, cardinality.classes],
        cardinality.predict_proba(X),
        atol=1e-12,
    )
    assert model.n_parameters_ == 4 * np.count_nonzero(np.unique(Y[complete].sum(axis=1)))
    labels = np.where(np.arange(60)[:, None] < 30, np.maximum(Y, [1, 0, 0, 0]), Y)
    labels[30:, 3] = -1
    assert FGFMClassifier(random_state=0).fit(X, labels).nonempty_
    assert not FGFMClassifier(factors="independent", random_state=0).fit(X, PARTLY).nonempty_


def test_weights_of_incomplete_rows():
    weight = np.where(OBSERVED.all(axis=1), 1.0, 0.0)
    assert 10 < weight.sum() < 60
    rows = weight > 0.0
    for learner in LEARNERS.values():
        if isinstance(learner, KNeighborsClassifier):
            continue
        weighted = FGFMClassifier(learner, random_state=0).fit(X, PARTLY, sample_weight=weight)
        assert_same(weighted, FGFMClassifier(learner, random_state=0).fit(X[rows], Y[rows]))


def test_factors_are_found_from_complete_rows():
    rows = OBSERVED.all(axis=1)
    model = FGFMClassifier(factors="ilf", random_state=0).fit(X, PARTLY)
    expected = FGFMClassifier(factors="ilf", random_state=0).fit(X[rows], Y[rows])
    assert [f.tolist() for f in model.factors_] == [f.tolist() for f in expected.factors_]


def test_constant_label_where_it_is_observed():
    labels = PARTLY.copy()
    labels[labels[:, 2] == 0, 2] = -1
    for learner in (None, GaussianNB(), "auto"):
        model = FGFMClassifier(learner, factors="independent", random_state=0).fit(X, labels)
        assert (model.predict_proba(X)[:, 2] == 1.0).all()


@pytest.mark.parametrize("learner", [None, LogisticRegression(C=10.0), "auto"])
def test_recovery_with_missing_labels(learner):
    rows, labels = make_data(900, 4, noise=0.3)
    partly, _ = hide(labels[:600], 0.3)
    complete = FGFMClassifier(learner, random_state=0).fit(rows[:600], labels[:600])
    model = FGFMClassifier(learner, random_state=0).fit(rows[:600], partly)
    found, expected = (m.score(rows[600:], labels[600:]) for m in (model, complete))
    assert found > expected - 0.03
    difference = model.predict_proba(rows[600:]) - complete.predict_proba(rows[600:])
    assert np.abs(difference).mean() < 0.05


def test_errors():
    never = PARTLY.copy()
    never[:, 1] = -1
    with pytest.raises(ValueError, match="y has no value of label 1 in rows of positive weight: "):
        FGFMClassifier().fit(X, never)
    alternating = np.where(np.arange(4) == np.arange(60)[:, None] % 4, -1, Y)
    for method in METHODS:
        with pytest.raises(ValueError, match="y has no row in which all 4 labels of a factor are"):
            FGFMClassifier(method=method).fit(X, alternating)
    with pytest.raises(ValueError, match="y has no row in which all labels are observed: label f"):
        FGFMClassifier(factors="ilf").fit(X, alternating)
    model = FGFMClassifier(factors="independent", random_state=0).fit(X, alternating)
    assert model.score(X, Y) > 0.5
    with pytest.raises(ValueError, match=r"\d missing labels and method is an object"):
        FGFMClassifier(method=one_factor("tilted")).fit(X, PARTLY)
    with pytest.raises(ValueError, match=r"\[\d+, \d\] is -1: labels must be 0 or 1"):
        model.score(X, PARTLY)
    with pytest.raises(ValueError, match=r"\[\d+, \d\] is nan: labels must be 0 or 1"):
        fgfm.f_measure(np.where(OBSERVED, Y, np.nan), Y)
    with pytest.raises(ValueError, match="Input y contains NaN"):
        FGFMClassifier().fit(X, np.where(OBSERVED[:, 0], Y[:, 0], np.nan))
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        FGFMClassifier().fit(X, PARTLY[:, 0])


def test_forest_with_missing_labels():
    labels = np.where(np.arange(4) == 3, PARTLY, Y)  # one label is missing in some rows
    model = FGFMClassifier(RandomForestClassifier(5), cv=2, random_state=0).fit(X, labels)
    columns = [one.column for one in model._factor_models.models.models]
    assert columns == [None, 0, 1, 2, None]
    assert np.isfinite(model.expected_f(X)).all()


@pytest.mark.parametrize("factors", ["independent", "single"])
def test_a_label_may_be_known_in_few_rows(factors):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 6))
    Y = (rng.random((300, 3)) < 0.3).astype(float)
    Y[12:, 0] = np.nan  # most leaves of the forest have no row in which it is known
    Y[:12, 0] = [1, 0, 0] * 4
    model = FGFMClassifier(random_state=0, factors=factors).fit(X, Y)
    p = model.predict_proba(X)
    assert np.isfinite(p).all()
    assert 0.15 < p[:, 0].mean() < 0.6
    assert np.isfinite(model.expected_f(X)).all()
