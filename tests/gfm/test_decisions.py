"""Decisions of FGFMClassifier: exhaustive enumeration, parameters, unusual labels, blocks."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.naive_bayes import GaussianNB

import fgfm
from fgfm import FGFMClassifier
from fgfm.cardinality import merge_factors
from multilabel import X, Y, close
from oracle import all_labelsets

FACTORS = ["single", "independent", [[0, 2], [3, 1]], [[3], [0, 1, 2]]]


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
    return values


@pytest.mark.parametrize("factors", FACTORS, ids=str)
@pytest.mark.parametrize("method", ["two-step", "direct"])
@pytest.mark.parametrize("coherent", [True, False])
def test_decisions_are_the_exhaustive_optimum(factors, method, coherent):
    model = FGFMClassifier(factors=factors, method=method, coherent=coherent, random_state=0)
    Ps, ds = zip(*model.fit(X, Y).estimate(X), strict=True)
    P, d = merge_factors(Ps, [factor.tolist() for factor in model.factors_], ds)
    np.testing.assert_allclose(model.predict_proba(X), np.minimum(P.sum(axis=2), 1.0), atol=1e-12)
    for beta in (0.5, 1.0, 2.0):
        for zero_division, nonempty in [(1.0, False), (0.3, False), (0.0, False), (1.0, True)]:
            model.set_params(beta=beta, zero_division=zero_division, nonempty=nonempty)
            values = values_of_all_sets(P, d[:, 0], beta, zero_division, nonempty)
            labels, expected_f = model.decide(X)
            np.testing.assert_allclose(expected_f, values.max(axis=1), rtol=1e-9)
            chosen = values[np.arange(len(X)), labels @ (1 << np.arange(4)[::-1])]
            np.testing.assert_allclose(chosen, values.max(axis=1), rtol=1e-9)
            assert (model.predict(X) == labels).all()
            assert (model.expected_f(X) == expected_f).all()
            assert model.score(X, Y) == pytest.approx(
                fgfm.f_measure(Y, labels, beta, zero_division=zero_division)
            )


def test_decision_parameters_need_no_refit():
    model = FGFMClassifier(random_state=0).fit(X, Y)
    for setting in ({"beta": 2.0}, {"beta": 0.25}, {"nonempty": True}, {"zero_division": 0.0}):
        changed = clone(model).set_params(**setting).fit(X, Y)
        assert (changed.expected_f(X) == model.set_params(**setting).expected_f(X)).all()


def test_flat_y_is_decided_by_the_half_threshold():
    y = np.array(["no", "yes"])[Y[:, 0]]
    model = FGFMClassifier(random_state=0).fit(X, y)
    p = model.predict_proba(X)
    assert p.shape == (60, 2)
    assert model.classes_.tolist() == ["no", "yes"]
    assert (model.predict(X) == np.array(["no", "yes"])[(p[:, 1] > 0.5).astype(int)]).all()
    labels, expected_f = model.decide(X)
    assert labels.shape == expected_f.shape == (60,)


@pytest.mark.parametrize("factors", ["single", "independent"])
def test_nonempty_auto(factors):
    some = np.column_stack([Y, ~Y.any(axis=1)])
    model = FGFMClassifier(factors=factors, random_state=0).fit(X, some)
    assert model.nonempty_
    assert model.predict(X).any(axis=1).all()
    assert not FGFMClassifier(factors=factors, random_state=0).fit(X, Y).nonempty_
    weight = Y.any(axis=1).astype(float)  # empty rows without weight do not count
    assert FGFMClassifier(factors=factors).fit(X, Y, sample_weight=weight).nonempty_


def unusual_labels():
    n = 18
    few = (np.random.default_rng(1).random((n, 3)) < 0.4).astype(int)
    once = np.zeros(n, dtype=int)
    once[5] = 1
    all_once = np.where(few.sum(axis=1, keepdims=True) == 3, [1, 0, 1], few)
    all_once[11] = 1
    return {
        "a label that is never present": np.column_stack([few, np.zeros(n, int)]),
        "a label that is always present": np.column_stack([few, np.ones(n, int)]),
        "one positive": np.column_stack([few, once]),
        "one negative": np.column_stack([few, 1 - once]),
        "no label at all": np.zeros((n, 3), int),
        "all labels always": np.ones((n, 3), int),
        "one row that is not empty": np.outer(once, [1, 1, 0]),
        "a number of labels seen once": all_once,
        "more labels than rows": (np.random.default_rng(1).random((n, 20)) < 0.1).astype(int),
        "exactly one label": np.eye(3, dtype=int)[np.arange(n) % 3],
        "equal labels": np.repeat(few[:, :1], 3, axis=1),
    }


UNUSUAL = unusual_labels()


@pytest.mark.parametrize("case", UNUSUAL)
@pytest.mark.parametrize(
    "settings",
    [
        {"factors": "single"},
        {"factors": "independent"},
        {"factors": "single", "method": "direct", "coherent": False},
        {"factors": "single", "estimator": GaussianNB()},
    ],
    ids=str,
)
def test_unusual_labels(case, settings):
    labels = UNUSUAL[case]
    rows = np.random.default_rng(0).normal(size=(18, 2))
    model = FGFMClassifier(random_state=0, **settings).fit(rows, labels)
    assert model.nonempty_ == labels.any(axis=1).all()
    predicted = model.predict(rows)
    assert predicted.shape == labels.shape
    if model.nonempty_:
        assert predicted.any(axis=1).all()
    p = model.predict_proba(rows)
    assert ((p >= 0.0) & (p <= 1.0)).all()
    expected_f = model.expected_f(rows)
    assert ((expected_f >= 0.0) & (expected_f <= 1.0 + 1e-12)).all()
    assert not p[:, ~labels.any(axis=0)].any()


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("learner", [None, GaussianNB()])
@pytest.mark.parametrize("factors", ["single", "independent"])
def test_few_rows(n, learner, factors):
    labels = np.array([[1, 0, 1], [0, 0, 1], [0, 0, 0]])[:n]
    model = FGFMClassifier(learner, factors=factors, random_state=0).fit(X[:n], labels)
    predicted = model.predict(X)
    assert predicted.shape == (60, 3)
    if n == 1:
        assert (predicted == labels).all()
        np.testing.assert_allclose(model.expected_f(X), 1.0)


@pytest.mark.parametrize("learner", [None, GaussianNB()])
def test_jobs_and_blocks_do_not_change_a_bit(learner, monkeypatch):
    model = FGFMClassifier(learner, factors=[[0, 1], [2, 3]], random_state=0).fit(X, Y)
    parallel = clone(model).set_params(n_jobs=2).fit(X, Y)
    expected = model.decide(X)
    assert (parallel.decide(X).expected_f == expected.expected_f).all()
    assert (parallel.estimate(X)[0].P == model.estimate(X)[0].P).all()
    monkeypatch.setattr("fgfm._utils.blocks.BLOCK_BYTES", 100)  # a few rows in each block
    np.testing.assert_allclose(model.expected_f(X), expected.expected_f, rtol=1e-12)
    assert (model.predict(X) == expected.labels).all()


class Never(DummyClassifier):
    """Is certain of class 0."""

    def predict_proba(self, X):
        return np.tile(np.asarray(self.classes_ == 0, dtype=float), (len(X), 1))


@pytest.mark.parametrize("factors", ["independent", [[0, 1], [2]]], ids=str)
def test_rows_without_probable_labels_have_the_frequencies_of_training(factors):
    labels = np.eye(3, dtype=int)[np.arange(12) % 3]
    labels[:2] = [1, 1, 0]
    weight = np.linspace(0.5, 1.5, 12)
    model = FGFMClassifier(Never(), factors=factors).fit(X[:12], labels, sample_weight=weight)
    frequencies = np.average(labels, axis=0, weights=weight)
    close(model.predict_proba(X), np.tile(frequencies, (60, 1)))
    assert model.predict(X).any(axis=1).all()
    if factors == "independent":
        decision = fgfm.decision.from_marginals(frequencies[None], nonempty=True)
        assert model.expected_f(X)[0] == pytest.approx(decision.expected_f[0])
    else:
        P, d = model.estimate(X)[0]
        s = labels[:, :2].sum(axis=1)
        close(d[0], [np.average(s == k, weights=weight) for k in range(3)])
        for k in (1, 2):
            close(P[0, :, k - 1], np.average(labels[:, :2].T * (s == k), axis=1, weights=weight))
    assert not model.set_params(nonempty=False).predict(X).any()
