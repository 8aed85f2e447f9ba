"""Decisions of FGFMClassifier: exhaustive enumeration, parameters, rows without labels."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

import fgfm
from fgfm import FGFMClassifier
from fgfm.cardinality import is_coherent, merge_factors
from fgfm.ridge import fit_ridge_logistic
from multilabel import METHODS, X, Y, assert_close, assert_same, interleaved_folds, make_data
from oracle import (
    all_labelsets,
    cardinality_distribution,
    cardinality_matrix,
    f_table,
    independent_joint,
    product_joint,
    random_joint,
)


def values_of_all_sets(P, d_0, beta, zero_division, nonempty):
    """Return the expected F of each of the 2^m label sets from P (n, m, S), by definition."""
    sets = all_labelsets(P.shape[1])
    size = sets.sum(axis=1)
    s = np.arange(1, P.shape[2] + 1)
    weight = (1.0 + beta**2) / (beta**2 * s[None, :] + np.maximum(size, 1)[:, None])  # (2^m, S)
    values = np.einsum("hi,nis,hs->nh", sets, P, weight)
    if nonempty:
        values /= 1.0 - d_0[:, None]
        values[:, 0] = -1.0
    else:
        values[:, 0] = zero_division * d_0
    return sets, values


def merged_estimate(model, rows):
    """Return P and d of all labels, merged from those of the factors (Algorithm 1)."""
    estimates = model.estimate(rows)
    return merge_factors(
        [e.P for e in estimates],
        [factor.tolist() for factor in model.factors_],
        [e.d for e in estimates],
    )


def test_values_of_all_sets_are_expectations_over_the_joint():
    """Check the helper above."""
    sets, proba = random_joint(np.random.default_rng(0), 20, 4)
    P, d = cardinality_matrix(sets, proba), cardinality_distribution(sets, proba)
    for beta, zero_division in [(1.0, 1.0), (2.0, 0.3)]:
        _, values = values_of_all_sets(P, d[:, 0], beta, zero_division, False)
        np.testing.assert_allclose(values, proba @ f_table(sets, beta, zero_division), atol=1e-12)


FACTORS = ["single", "independent", [[0, 2], [3, 1]], [[3], [0, 1, 2]]]


@pytest.mark.parametrize("factors", FACTORS, ids=str)
@pytest.mark.parametrize(
    ("method", "coherent"),
    [*((method, True) for method in METHODS), ("two-step", False), ("direct", False)],
)
def test_decisions_are_the_exhaustive_optimum(factors, method, coherent):
    model = FGFMClassifier(factors=factors, method=method, coherent=coherent, random_state=0)
    P, d = merged_estimate(model.fit(X, Y), X)
    if coherent:
        assert is_coherent(P, d, tol=1e-8).all()
    for beta in (0.5, 1.0, 2.0):
        for zero_division, nonempty in [(1.0, False), (0.3, False), (0.0, False), (1.0, True)]:
            model.set_params(beta=beta, zero_division=zero_division, nonempty=nonempty)
            _, values = values_of_all_sets(P, d[:, 0], beta, zero_division, nonempty)
            labels, expected_f = model.decide(X)
            np.testing.assert_allclose(expected_f, values.max(axis=1), rtol=1e-9)
            chosen = values[np.arange(len(X)), labels @ (1 << np.arange(4)[::-1])]
            np.testing.assert_allclose(chosen, values.max(axis=1), rtol=1e-9)
            assert (model.predict(X) == labels).all()
            assert (model.expected_f(X) == expected_f).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("factors", FACTORS, ids=str)
def test_predictions_agree_with_each_other(method, factors):
    model = FGFMClassifier(method=method, factors=factors, random_state=0).fit(X, Y)
    P, d = merged_estimate(model, X)
    np.testing.assert_allclose(model.predict_proba(X), P.sum(axis=2), atol=1e-12)
    np.testing.assert_allclose(model.predict_cardinality_proba(X), d, atol=1e-12)
    sizes = np.arange(d.shape[1])
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), d @ sizes, atol=1e-9)
    assert model.n_parameters_ == sum(
        len(f) * len(set(Y[:, f].sum(axis=1)) - {0}) for f in model.factors_
    )
    assert model.score(X, Y) == fgfm.f_measure(Y, model.predict(X))


def test_expected_f_is_close_to_the_score():
    rows, labels = make_data(3000, seed=4)
    model = FGFMClassifier(random_state=0).fit(rows[:2000], labels[:2000])
    assert model.expected_f(rows[2000:]).mean() == pytest.approx(
        model.score(rows[2000:], labels[2000:]), abs=0.03
    )


@pytest.mark.parametrize("learner", [None, GaussianNB()])
@pytest.mark.parametrize("factors", ["single", "independent"])
def test_decision_parameters_need_no_refit(learner, factors):
    model = FGFMClassifier(learner, factors=factors, cv=2, random_state=0).fit(X, Y)
    first = model.predict(X)
    for setting in ({"beta": 2.0}, {"beta": 0.25}, {"nonempty": True}, {"zero_division": 0.0}):
        changed = clone(model).set_params(**setting).fit(X, Y)
        assert_same(pickle.loads(pickle.dumps(model)).set_params(**setting), changed)
    assert (model.set_params(beta=4.0).predict(X) != first).any()


@pytest.mark.parametrize(
    ("setting", "error", "sentence"),
    [
        ({"beta": 0.0}, ValueError, r"beta is 0\.0: it must be a number greater than 0"),
        ({"zero_division": 1.5}, ValueError, r"zero_division is 1\.5: it must be a number in"),
        ({"nonempty": 1}, TypeError, "nonempty is 1: it must be 'auto', True or False"),
        ({"nonempty": "no"}, TypeError, "nonempty is 'no': it must be 'auto', True or False"),
    ],
    ids=str,
)
def test_invalid_decision_parameters_raise_in_predict(setting, error, sentence):
    model = FGFMClassifier(random_state=0).fit(X, Y).set_params(**setting)
    with pytest.raises(error, match=sentence):
        model.predict(X)
    with pytest.raises(error, match=sentence):
        model.expected_f(X)


@pytest.mark.parametrize("fitted", ["powerset", "two-step", "direct"])
def test_other_parameters_take_effect_with_the_next_fit(fitted):
    labels = Y.copy()
    labels[:, 1] = 1
    model = FGFMClassifier(factors="independent", method=fitted, random_state=0).fit(X, labels)
    expected = model.predict_proba(X), model.predict(X)
    for other in ["two-step", "powerset", "tilted"]:
        model.set_params(method=other, factors="single", coherent=False)
        assert (model.predict_proba(X) == expected[0]).all()
        assert (model.predict(X) == expected[1]).all()


def test_flat_y_is_decided_by_the_half_threshold():
    y = Y[:, 0]
    model = FGFMClassifier(random_state=0).fit(X, y)
    proba = model.predict_proba(X)
    assert proba.shape == (60, 2)
    assert (model.predict(X) == (proba[:, 1] > 0.5)).all()
    named = FGFMClassifier(random_state=0).fit(X, np.array(["no", "yes"])[y])
    assert (named.predict(X) == np.array(["no", "yes"])[model.predict(X)]).all()
    assert named.score(X, np.array(["no", "yes"])[y]) == model.score(X, y)
    assert not hasattr(named, "label_names_in_")
    with pytest.raises(
        ValueError, match=r"y\[0\] is .*'maybe'.*: the classes in fit were 'no', 'y"
    ):
        named.score(X[:1], ["maybe"])


def test_one_column_is_flat_only_as_an_array():
    with pytest.warns(sklearn.exceptions.DataConversionWarning):
        assert FGFMClassifier().fit(X, Y[:, :1]).predict(X).shape == (60,)
    pd = pytest.importorskip("pandas")
    frame = FGFMClassifier().fit(X, pd.DataFrame(Y[:, :1], columns=["a"]))
    assert frame.predict(X).shape == (60, 1)
    assert frame.predict_proba(X).shape == (60, 1)
    assert FGFMClassifier().fit(X, sparse.csr_array(Y[:, :1])).predict(X).shape == (60, 1)


@pytest.mark.parametrize("factors", ["single", "independent"])
def test_nonempty_auto(factors):
    labels = np.where(Y.any(axis=1, keepdims=True), Y, [1, 0, 0, 0])
    rare = np.column_stack([labels, np.zeros(60, int)])
    model = FGFMClassifier(factors=factors, random_state=0).fit(X, rare)
    assert model.nonempty_
    assert model.predict(X).any(axis=1).all()
    assert_close(
        model, FGFMClassifier(factors=factors, nonempty=True, random_state=0).fit(X, rare)
    )
    rare[3] = 0
    model.fit(X, rare)
    assert not model.nonempty_
    assert_close(
        model, FGFMClassifier(factors=factors, nonempty=False, random_state=0).fit(X, rare)
    )
    assert not FGFMClassifier().fit(X, np.ones(60, int)).nonempty_  # flat: a class, no set


@pytest.mark.parametrize("factors", ["single", "independent", [[0], [1, 2]]])
@pytest.mark.parametrize("method", METHODS)
def test_rows_without_probable_labels_are_decided_by_frequencies(factors, method):
    class Never(DummyClassifier):
        """Predicts class 0, whenever there is one."""

        def predict_proba(self, X):
            p = super().predict_proba(X)
            if 0 in self.classes_:
                p[:] = self.classes_ == 0
            return p

    labels = np.array([[1, 0, 0]] * 30 + [[0, 1, 0]] * 20 + [[0, 0, 1]] * 10)
    model = FGFMClassifier(Never(), factors=factors, method=method, calibration=None)
    decided = model.fit(X, labels).predict(X[:3])
    assert model.nonempty_
    assert decided.any(axis=1).all()
    assert np.isfinite(model.expected_f(X)).all()
    if factors == "independent":
        assert not model.predict_proba(X).any()
        prior = fgfm.decision.from_marginals(labels.mean(axis=0)[None], nonempty=True)
        assert (decided == prior.labels).all()
        np.testing.assert_allclose(model.expected_f(X), prior.expected_f[0])
    assert_estimate_is_that_of_the_decision(model, X)


def assert_estimate_is_that_of_the_decision(model, X):
    """Assert that estimate and decision_params lead to the decision of the model."""
    estimates = model.estimate(X)
    for factor, (P, d) in zip(model.factors_, estimates, strict=True):
        assert P.shape[:2] == (len(X), len(factor))
        assert d.shape == (len(X), P.shape[2] + 1)
        np.testing.assert_allclose(d.sum(axis=1), 1.0, atol=1e-9)
    labels, expected_f = fgfm.decision.from_factors(
        [e.P for e in estimates],
        model.factors_,
        distributions=[e.d for e in estimates],
        **model.decision_params(),
    )
    assert (labels == model.decide(X).labels).all()
    np.testing.assert_allclose(expected_f, model.expected_f(X), atol=1e-12)


def test_decision_params_resolve_auto():
    labels = np.where(Y.any(axis=1, keepdims=True), Y, [1, 0, 0, 0])
    model = FGFMClassifier(beta=2, random_state=0).fit(X, labels)
    assert model.decision_params() == {"beta": 2.0, "zero_division": 1.0, "nonempty": True}
    assert model.set_params(nonempty=False).decision_params()["nonempty"] is False
    assert model.fit(X, np.zeros((60, 2), int)).decision_params()["nonempty"] is False
    with pytest.raises(NotFittedError):
        FGFMClassifier().decision_params()


@pytest.mark.parametrize("coherent", [True, False])
def test_estimate_of_rows_decided_by_frequencies_is_that_of_independent_labels(coherent):
    class Half(KNeighborsClassifier):
        """Predicts class 0 for features below 5, where there is one."""

        def predict_proba(self, X):
            p = super().predict_proba(X)
            if 0 in self.classes_:
                p[np.asarray(X)[:, 0] < 5.0] = self.classes_ == 0
            return p

    rows = np.array([[0.0], [0.1], [0.2], [10.0], [10.1], [10.2]])
    labels = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0], [0, 1, 0], [0, 1, 0]])
    model = FGFMClassifier(Half(1), factors=[[0, 2], [1]], method="direct", coherent=coherent)
    (P, d), _ = model.fit(rows, labels).estimate(rows)
    p = labels.mean(axis=0)[[0, 2]]
    joint = independent_joint(p[None])
    np.testing.assert_allclose(P[:3], np.tile(cardinality_matrix(*joint), (3, 1, 1)))
    np.testing.assert_allclose(d[:3], np.tile(cardinality_distribution(*joint), (3, 1)))
    assert not P[3:, :, 1].any()  # training has no row with two labels of this factor
    assert_estimate_is_that_of_the_decision(model, rows)
    model.set_params(nonempty=False)  # no row is decided by frequencies now
    assert model.estimate(rows)[0].P.shape == (6, 2, 1)
    assert not model.estimate(rows)[0].P[:3].any()
    assert_estimate_is_that_of_the_decision(model, rows)


def test_nonempty_without_any_positive_label_warns():
    model = FGFMClassifier(nonempty=True, random_state=0).fit(X, np.zeros((60, 3), int))
    with pytest.warns(
        UserWarning, match="rows without probability for a non-empty label set.* 5,"
    ):
        decision = model.decide(X[:5])
    assert not decision.labels.any()
    assert np.isnan(decision.expected_f).all()


class KnownJoints(BaseEstimator):
    """A method whose estimate is a joint distribution of a factor; X selects its rows."""

    def fit(self, X, Y):
        self.size_ = Y.shape[1]
        return self

    def joint(self, size):
        return random_joint(np.random.default_rng(size), 3, size)

    def estimate(self, X):
        sets, proba = self.joint(self.size_)
        proba = proba[np.asarray(X)[:, 0].astype(int)]
        return cardinality_matrix(sets, proba), cardinality_distribution(sets, proba)


@pytest.mark.parametrize("factors", ["single", [[2, 0], [1]], [[0], [1], [2]]])
@pytest.mark.parametrize("nonempty", [False, True])
@pytest.mark.parametrize("average", ["macro", "micro"])
def test_rows_are_decided_together(factors, nonempty, average):
    """Every row is conditioned on not being empty, which makes its factors dependent."""
    X = np.array([[0], [1], [2]])
    method = KnownJoints()
    model = FGFMClassifier(method=method, factors=factors, nonempty=nonempty, beta=2.0)
    model.fit(X, [[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    members = [factor.tolist() for factor in model.factors_]
    sets, proba = product_joint([method.joint(len(factor)) for factor in members], members)
    if nonempty:
        proba = proba * sets.any(axis=1)
        proba /= proba.sum(axis=1, keepdims=True)
    expected = fgfm.decision.from_joint(sets, proba, beta=2.0, average=average)
    labels, expected_f = model.decide(X, average=average)
    np.testing.assert_array_equal(labels, expected.labels)
    np.testing.assert_allclose(expected_f, expected.expected_f, rtol=1e-11)


@pytest.mark.parametrize("method", METHODS)
def test_averages_of_every_method(method):
    """Macro is decided from the marginals, and shapes are those of the average."""
    model = FGFMClassifier(method=method, nonempty=False, random_state=0).fit(X, Y)
    macro, micro = (model.decide(X, average=average) for average in ("macro", "micro"))
    expected = fgfm.decision.from_marginals(model.predict_proba(X), average="macro")
    np.testing.assert_array_equal(macro.labels, expected.labels)
    np.testing.assert_allclose(macro.expected_f, expected.expected_f, rtol=1e-12)
    assert micro.labels.shape == Y.shape
    assert np.ndim(micro.expected_f) == 0
    with pytest.raises(ValueError, match="average is 'rows'"):
        model.decide(X, average="rows")


X_MANY, Y_MANY = make_data(900, 5, noise=1.5)


@pytest.mark.parametrize("average", ["macro", "weighted", "micro"])
@pytest.mark.parametrize(
    ("learner", "factors"),
    [("auto", "single"), ("ridge", [[0, 4], [1, 2, 3]]), (GaussianNB(), "independent")],
)
def test_rows_are_decided_one_by_one_as_in_a_batch(average, learner, factors):
    model = FGFMClassifier(learner, factors=factors, average=average, random_state=0)
    model.fit(X_MANY[:500], Y_MANY[:500])
    rows, labels = X_MANY[500:], Y_MANY[500:]
    predicted = model.predict(rows)
    assert (predicted[:9] == np.vstack([model.predict(rows[[i]]) for i in range(9)])).all()
    assert np.shape(model.thresholds_) == (() if average == "micro" else (5,))
    assert (predicted == (model.predict_proba(rows) > model.thresholds_)).all()
    together = model.decide(rows)  # the optimum of this batch
    assert (together.labels == model.decide(rows, average=average).labels).all()
    assert (together.labels != predicted).mean() < 0.05
    assert model.score(rows, labels) == fgfm.f_measure(labels, predicted, average=average)
    assert np.mean(model.expected_f(rows)) == pytest.approx(model.score(rows, labels), abs=0.06)
    half = fgfm.f_measure(labels, model.predict_proba(rows) > 0.5, average=average)
    assert model.score(rows, labels) > half


def test_thresholds_are_half_of_the_largest_held_out_f():
    """The constant of a label is F / (1 + beta^2), by a plain loop over all thresholds."""
    weight = np.arange(500) % 4
    model = FGFMClassifier(
        "ridge", factors="independent", average="macro", beta=2.0, cv=interleaved_folds(500)
    ).fit(X_MANY[:500], Y_MANY[:500], sample_weight=weight)
    fits = fit_ridge_logistic(
        X_MANY[:500],
        Y_MANY[:500],
        sample_weight=weight,
        cv=interleaved_folds(500),
        held_out=True,
    )
    for found, fit in zip(model.thresholds_, fits, strict=True):
        p, w = fit.held_out[weight > 0, 1], weight[weight > 0]
        f = [5.0 * w[p >= t] @ p[p >= t] / (4.0 * w @ p + w[p >= t].sum()) for t in p]
        assert found == pytest.approx(max(f) / 5.0)


def test_thresholds_of_rows_that_are_not_empty():
    labels = np.where(Y_MANY.any(axis=1, keepdims=True), Y_MANY, [1, 0, 0, 0, 0])
    model = FGFMClassifier("ridge", factors="independent", average="macro", random_state=0)
    model.fit(X_MANY[:500], labels[:500])
    assert model.nonempty_
    p = model.predict_proba(X_MANY)
    given = p / (1.0 - np.prod(1.0 - p, axis=1, keepdims=True))
    assert (model.predict(X_MANY) == (given > model.thresholds_)).all()


def test_averages_of_a_flat_y_and_of_few_rows():
    model = FGFMClassifier("ridge", average="macro", random_state=0).fit(X_MANY, Y_MANY[:, 0])
    above = model.predict_proba(X_MANY)[:, 1] > model.thresholds_
    assert (model.predict(X_MANY) == above).all()
    assert model.score(X_MANY, Y_MANY[:, 0]) == fgfm.f_measure(
        Y_MANY[:, 0], above, average="macro"
    )
    for n in (1, 2, 3):
        for learner in ("auto", "ridge", GaussianNB()):
            few = FGFMClassifier(learner, average="micro", random_state=0).fit(X[:n], Y[:n])
            assert few.predict(X).shape == Y.shape


def test_average_takes_effect_in_fit(tmp_path):
    pytest.importorskip("skops")
    model = FGFMClassifier("ridge", average="macro", random_state=0).fit(X, Y)
    fgfm.save(model, tmp_path / "model.fgfm")
    again = fgfm.load(tmp_path / "model.fgfm")
    assert (again.predict(X) == model.predict(X)).all()
    assert (again.thresholds_ == model.thresholds_).all()
    for setting, found in (
        ({"average": "micro"}, "average is 'micro' and was 'macro' in fit"),
        ({"average": "macro", "beta": 2.0}, "beta is 2.0 and was 1.0 in fit"),
    ):
        with pytest.raises(ValueError, match=found + ", which computes the thresholds"):
            again.set_params(**setting).predict(X)
    with pytest.raises(ValueError, match="average is 'macro': min_labels, max_labels and const"):
        again.set_params(beta=1.0, max_labels=1).predict(X)
    assert (again.set_params(average="samples", max_labels=None).predict(X) <= 1).all()
    assert not hasattr(again.fit(X, Y), "thresholds_")
    with pytest.raises(ValueError, match="average is 'macro' and was 'samples' in fit"):
        again.set_params(average="macro").predict(X)
