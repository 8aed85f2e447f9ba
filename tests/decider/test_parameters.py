"""Parameters after `fit`, and the positive class."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB

from decider_data import exclusive, independent
from fgfm import FClassifier, FDecider, FGFMClassifier, StackClassifier
from fgfm.decider._calibration import CALIBRATORS
from fgfm.factors import ILFCompo
from fgfm.ridge import RidgeLogistic

P, Y = independent(300, 4)
OTHER = {  # another value of every parameter
    "average": "weighted",
    "beta": 3.0,
    "calibration": None,
    "confidence": 0.7,
    "constraints": [],
    "cv": 4,
    "estimator": GaussianNB(),
    "scores": True,
    "labels": [0],
    "max_labels": 1,
    "min_labels": 2,
    "min_precision": 0.9,
    "min_recall": 0.99,
    "n_jobs": 2,
    "nonempty": True,
    "pos_label": 1,
    "random_state": 7,
    "verbose": 1,
    "zero_division": 0.0,
}
CHANGES_NOTHING = {"n_jobs", "verbose"}


def estimators():
    """Return estimators, with the arguments of each rule, and the X and y that they take."""
    model = MultiOutputClassifier(LogisticRegression())
    for average in ("samples", "macro", "micro"):
        yield FDecider(average=average), P, Y
        yield FDecider(average=average, min_precision=0.6), P, Y
        yield FDecider(average=average, min_precision=0.6, confidence=0.6), P, Y
        yield FDecider(average=average, max_labels=2), P, Y
        yield FClassifier(model, average=average, random_state=0), P, Y
    yield FDecider(), P[:, 0], Y[:, 0]
    p, one_hot = exclusive(300, 4)
    for parameters in ({"average": "macro"}, {"average": "micro", "labels": [1, 2]}):
        yield FDecider(**parameters), p, one_hot.argmax(axis=1)


@pytest.mark.parametrize(("estimator", "X", "y"), list(estimators()))
@pytest.mark.filterwarnings("ignore:.*certified", "ignore:.*satisfies")
def test_every_parameter_is_followed_or_refused(estimator, X, y):
    for name in estimator.get_params(deep=False):
        value = OTHER[name]
        if name == "constraints":
            from fgfm.decision import Constraints

            value = Constraints(forbidden=[0])
        fitted = estimator.fit(X, y)
        before = {**fitted.get_params(deep=False)}[name]
        fitted.set_params(**{name: value})
        refusals, after = [], []
        for method in (fitted.predict, fitted.decide, fitted.predict_proba):
            try:
                after.append(method(X))
            except (ValueError, TypeError) as error:
                refusals.append(str(error))
        if refusals:
            assert name not in CHANGES_NOTHING
            assert all(name in text or "cannot be combined" in text for text in refusals)
            fitted.set_params(**{name: before})
            continue
        after[1] = after[1].labels
        try:
            fresh = fitted.fit(X, y)
            expected = [fresh.predict(X), fresh.decide(X).labels, fresh.predict_proba(X)]
        finally:
            fitted.set_params(**{name: before})
        for one, other in zip(after, expected, strict=True):
            np.testing.assert_array_equal(one, other)


METHODS = ("decide", "expected_f", "predict", "predict_frame", "predict_proba", "report", "score")
FOLLOWED = {
    RidgeLogistic: set(),
    StackClassifier: {"n_jobs", "verbose"},
    FGFMClassifier: {"beta", "n_jobs", "nonempty", "zero_division"},
    FDecider: {"n_jobs"},
    FClassifier: {"n_jobs", "verbose"},
}


def results(estimator, y):
    """Return what each method returns, or the message of its error."""
    found = {}
    for name in ("decision_function", "estimate", *METHODS):
        method = getattr(estimator, name, None)
        if method is not None:
            arguments = (P, y) if name in ("report", "score") else (P,)
            try:
                found[name] = method(*arguments)
            except ValueError as error:
                found[name] = str(error)
    return found


@pytest.mark.parametrize(
    "estimator",
    [
        RidgeLogistic(random_state=0),
        StackClassifier(random_state=0),
        FGFMClassifier(random_state=0),
        FGFMClassifier(LogisticRegression(), factors=ILFCompo(), random_state=0),
        FDecider(average="macro"),
        FClassifier(LogisticRegression(), average="micro", random_state=0),
    ],
    ids=str,
)
def test_every_method_follows_or_refuses(estimator):
    y = Y[:, 0] if isinstance(estimator, RidgeLogistic) else Y
    model = estimator.fit(P, y)
    before = results(model, y)
    assert not any(isinstance(result, str) for result in before.values())
    params = model.get_params(deep=False)
    followed = FOLLOWED[type(model)]
    for name, value in params.items():
        model.set_params(**{name: OTHER.get(name, 5)})
        for method, result in results(model, y).items():
            if name in followed:
                assert not isinstance(result, str), (name, method)
            else:
                start = rf"{name} is .* and was .* in fit, which used it: fit again"
                assert re.match(start, str(result)), (name, method)
        model.set_params(**{name: value})
    after = results(model, y)
    np.testing.assert_array_equal(after["predict"], before["predict"])


def test_an_array_that_changes_is_noticed():
    penalties = np.array([0.1, 1.0])
    model = RidgeLogistic(penalties, random_state=0).fit(P, Y[:, 0])
    penalties[0] = 0.2
    with pytest.raises(ValueError, match=r"penalties is .* fit again"):
        model.predict(P)


def test_parameters_of_the_model():
    model = FClassifier(LogisticRegression(), random_state=0).fit(P, Y[:, 0])
    model.set_params(estimator__C=0.1)
    with pytest.raises(ValueError, match=r"estimator is LogisticRegression.* in fit, which used"):
        model.predict(P)
    assert model.fit(P, Y[:, 0]).predict(P).shape == (300,)


def test_floors_and_then_a_limit():
    decider = FDecider(min_recall=0.9).fit(P, Y).set_params(max_labels=1)
    with pytest.raises(ValueError, match="min_recall cannot be combined with min_labels, max_la"):
        decider.predict(P)


@pytest.mark.parametrize(
    "make",
    [
        lambda **k: FDecider(**k),
        lambda **k: FClassifier(LogisticRegression(), random_state=0, **k),
    ],
)
@pytest.mark.parametrize("names", [["bad", "good"], [1, 2], [-5, 0]])
def test_the_positive_class(make, names):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 1))
    is_first = rng.random(600) < 1 / (1 + np.exp(3.0 - 2.0 * x[:, 0]))
    y = np.where(is_first, names[0], names[1])
    first = 1.0 / (1.0 + np.exp(3.0 - 2.0 * x))
    estimator = make()
    X = np.hstack([first, 1.0 - first]) if isinstance(estimator, FDecider) else x
    with pytest.raises(
        ValueError, match=r"y has the classes .* pos_label is None: pos_label must"
    ):
        estimator.fit(X, y)
    scores = {}
    for name in names:
        model = make(pos_label=name).fit(X[:300], y[:300])
        assert model.classes_.tolist() == names
        predicted = model.predict(X[300:])
        score = f1_score(y[300:], predicted, pos_label=name)
        assert model.score(X[300:], y[300:]) == pytest.approx(score)
        scores[name] = score
        proba = model.predict_proba(X[300:])
        assert abs(proba[:, 0].mean() - is_first.mean()) < 0.05
        assert model.report(X[300:], y[300:]).index[0] == (name, "decider")
        np.testing.assert_array_equal(
            model.decide(X[300:]).labels.mean(), np.mean(model.decide(X[300:]).labels)
        )
    zero_one = make().fit(X[:300], is_first[:300]) if not isinstance(estimator, FDecider) else None
    if zero_one is not None:
        assert zero_one.score(X[300:], is_first[300:]) == pytest.approx(scores[names[0]])
    with pytest.raises(
        ValueError, match="pos_label is 'ugly': it must be a class of y, which are"
    ):
        make(pos_label="ugly").fit(X, y)


def test_positive_class_elsewhere():
    with pytest.raises(ValueError, match="pos_label is 1 and y is a matrix"):
        FDecider(pos_label=1).fit(P, Y)
    for values in ([0, 1], [-1, 1], [False, True]):
        y = np.array(values)[Y[:, 0]]
        assert set(FDecider().fit(P[:, 0], y).predict(P[:, 0])) == set(values)


def test_binary_is_the_average_of_a_flat_y():
    one, other = FDecider(average="binary").fit(P[:, 0], Y[:, 0]), FDecider().fit(P[:, 0], Y[:, 0])
    assert one.thresholds_ == other.thresholds_
    assert one.score(P[:, 0], Y[:, 0]) == other.score(P[:, 0], Y[:, 0])
    column = sparse.csr_array(P[:, :1])
    assert FDecider(average="binary").fit(column, Y[:, 0]).predict(column).shape == (300,)


@pytest.mark.parametrize("average", ["samples", "macro", "weighted", "micro"])
def test_one_fit_serves_every_average(average):
    decider = FDecider().fit(P, Y)
    same = FDecider(average=average).fit(P, Y)
    one, other = decider.decide(P, average=average), same.decide(P)
    np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_array_equal(one.expected_f, other.expected_f)
    with pytest.raises(
        ValueError, match="average is 'rows': it must be one of 'samples', 'macro'"
    ):
        decider.decide(P, average="rows")


class PowerCalibrator:
    """The calibration of CONTRIBUTING: all probabilities to one power."""

    def fit(self, entries, Y, weight):
        power = np.linspace(0.2, 5.0, 100)
        means = [(entries.p**a).mean() for a in power]
        self.power_ = power[np.argmin(np.abs(np.array(means) - Y.mean()))]
        return self

    def predict(self, entries):
        return entries.with_p(entries.p**self.power_)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_a_calibration_is_a_class_and_a_line(form, monkeypatch):
    monkeypatch.setitem(CALIBRATORS, "power", PowerCalibrator)
    rng = np.random.default_rng(0)
    truth = rng.random((2000, 4)) ** 2
    labels = (rng.random((2000, 4)) < truth).astype(int)
    decider = FDecider(calibration="power").fit(form(truth**2), labels)
    assert decider._rule.model.calibrator.power_ == pytest.approx(0.5, abs=0.05)
    assert decider.score(form(truth**2), labels) > 0.6
    scored = FDecider(calibration="power", scores=True).fit(form(truth**2), labels)
    assert scored.score(form(truth**2), labels) == decider.score(form(truth**2), labels)
    classes = truth / truth.sum(axis=1, keepdims=True)
    y = (rng.random((2000, 1)) > np.cumsum(classes, axis=1)).sum(axis=1).clip(max=3)
    model = FDecider(calibration="power", average="macro").fit(classes, y)
    np.testing.assert_allclose(model.predict_proba(classes).sum(axis=1), 1.0)
    assert model.score(classes, y) > 0.4
