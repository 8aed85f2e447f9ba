"""Rules that decide from probabilities: against scikit-learn and against all thresholds."""

from __future__ import annotations

import sys
from textwrap import dedent

import numpy as np
import pytest

import fgfm
from benchmarks.deciders import peers
from benchmarks.deciders.probabilities import Probabilities
from benchmarks.deciders.rules import AVERAGES, RULES, label_cuts
from benchmarks.real.peers import Peer
from fgfm import f_measure

THRESHOLDS = ("half", "threshold", "per-label", "tuned-cv")


def make_problem(seed=0, n=60, m=4):
    random = np.random.default_rng(seed)
    proba = random.beta(0.6, 1.2, size=(2, n, m))
    Y = (random.random(size=(2, n, m)) < proba).astype(np.uint8)
    return Probabilities(proba[0], Y[0], proba[1], Y[1])


def make_constant_problem():
    """Return a problem with a label that is always there, and two that never are."""
    p = make_problem()
    for Y in (p.Y_val, p.Y_test):
        Y[:, 1], Y[:, 2:] = 1, 0
    p.proba_val[:, 3] = 0.25
    return p


@pytest.mark.parametrize("digits", [1, 9])  # with ties, and without
def test_label_cuts_are_the_best_of_all_thresholds(digits):
    random = np.random.default_rng(2)
    proba = random.random(size=(12, 200)).round(digits)
    Y = (random.random(size=(12, 200)) < 0.2).astype(np.uint8)
    cuts = label_cuts(proba, Y)
    for k in range(proba.shape[1]):
        best = max(
            f_measure(Y[:, [k]], proba[:, [k]] > t, average="micro")
            for t in (-1.0, *np.unique(proba[:, k]))
        )
        obtained = f_measure(Y[:, [k]], proba[:, [k]] > cuts[k], average="micro")
        # a threshold of 0 takes no row of probability 0, though taking all may be best
        assert obtained == pytest.approx(best) or (cuts[k] == 0.0 and proba[:, k].min() == 0.0)


@pytest.mark.parametrize("rule", [*THRESHOLDS, "f-optimal"])
def test_each_average_has_one_decision(rule):
    p = make_problem()
    outcomes = list(RULES[rule](p))
    assert [outcome.average for outcome in outcomes] == list(AVERAGES)
    for outcome in outcomes:
        assert outcome.labels.shape == p.Y_test.shape
        assert outcome.tune_s >= 0.0 <= outcome.decide_s
        assert np.isnan(outcome.expected_f) == (rule != "f-optimal")


def test_one_threshold_is_better_on_validation_rows_than_others():
    p = make_problem()
    same = p._replace(proba_test=p.proba_val)
    for outcome in RULES["threshold"](same):
        obtained = f_measure(p.Y_val, outcome.labels, average=outcome.average)
        for t in np.linspace(0.01, 0.99, 99):
            assert obtained >= f_measure(p.Y_val, p.proba_val >= t, average=outcome.average)


def test_thresholds_per_label_keep_constant_labels():
    p = make_constant_problem()
    for rule in ("per-label", "tuned-cv"):
        for outcome in RULES[rule](p):
            np.testing.assert_array_equal(outcome.labels[:, 1:], p.Y_test[:, 1:], rule)


def test_tuned_thresholds_cannot_beat_the_best_ones_on_validation_rows():
    p = make_problem()
    same = p._replace(proba_test=p.proba_val)
    (best, *_), (tuned, *_) = (list(RULES[rule](same)) for rule in ("per-label", "tuned-cv"))
    gap = f_measure(p.Y_val, best.labels, average="macro") - f_measure(
        p.Y_val, tuned.labels, average="macro"
    )
    assert 0.0 <= gap < 0.05  # scikit-learn tries 100 thresholds


def test_raw_decisions_are_those_of_rows_columns_and_all_entries():
    p = make_problem()
    found = {outcome.average: outcome for outcome in RULES["f-optimal"](p)}
    rows = fgfm.decision.from_marginals(p.proba_test)
    np.testing.assert_array_equal(found["samples"].labels, rows.labels)
    assert found["samples"].expected_f == pytest.approx(rows.expected_f.mean())
    column = fgfm.decision.from_marginals(p.proba_test[:, 1][None])
    np.testing.assert_array_equal(found["macro"].labels[:, 1], column.labels[0])
    entries = fgfm.decision.from_marginals(p.proba_test.reshape(1, -1))
    np.testing.assert_array_equal(found["micro"].labels.ravel(), entries.labels[0])


class FakeDecider:
    """Take what exceeds the mean of the fitted probabilities."""

    def __init__(self, average):
        self.average = average

    def fit(self, proba, Y):
        self.n_rows, self.mean = len(Y), proba.mean()
        return self

    def predict(self, proba):
        return (proba > self.mean).astype(np.int8)

    def decide(self, proba):
        return fgfm.Decision(self.predict(proba), np.full(len(proba), 0.25))

    def lower_bound(self, proba, Y, confidence):
        return 100 * confidence + self.n_rows + len(Y) / 1000


def test_fdecider_sees_validation_rows_only(monkeypatch):
    monkeypatch.setattr(fgfm, "FDecider", FakeDecider, raising=False)
    p = make_problem()
    outcomes = list(RULES["fdecider"](p))
    assert [outcome.average for outcome in outcomes] == list(AVERAGES)
    for outcome in outcomes:
        np.testing.assert_array_equal(outcome.labels, p.proba_test > p.proba_val.mean())
        assert outcome.expected_f == 0.25
    rows = list(RULES["fdecider-rows"](p))
    assert [outcome.average for outcome in rows] == ["macro", "micro"]
    np.testing.assert_array_equal(rows[0].labels, outcomes[0].labels)


def test_fdecider_decides_for_each_average():
    p = make_problem(n=200)
    for rule in ("fdecider", "fdecider-rows"):
        for outcome in RULES[rule](p):
            obtained = f_measure(p.Y_test, outcome.labels, average=outcome.average)
            half = f_measure(p.Y_test, p.proba_test > 0.5, average=outcome.average)
            assert obtained > half
            assert np.isnan(outcome.expected_f) == (rule == "fdecider-rows")


def test_the_guarantee_is_computed_on_rows_that_the_decider_was_not_fitted_on(monkeypatch):
    monkeypatch.setattr(fgfm, "FDecider", FakeDecider, raising=False)
    p = make_problem(n=61)
    (outcome,) = RULES["guarantee"](p)
    assert outcome.bound == pytest.approx(95.0 + 30 + 31 / 1000)
    np.testing.assert_array_equal(outcome.labels, p.proba_test > p.proba_val[:30].mean())


def test_packages_decide_labels_that_vary(tmp_path, monkeypatch):
    monkeypatch.delenv("PYTHONWARNINGS", raising=False)
    script = tmp_path / "script.py"
    script.write_text(
        dedent(
            """
            def fit(X, Y, seed):
                assert X.shape == Y.shape
                return Y.mean(axis=0)

            def predict(model, X):
                return {"labels": {"share/macro": X > model}}
            """
        )
    )
    fake = Peer("fake", "A fake", "fake", (), script, ("share/macro",), "", "")
    monkeypatch.setitem(peers.PEERS, "fake", fake)
    p = make_constant_problem()
    ((rule, outcome),) = peers.decide_by_peer("fake", sys.executable, 60.0, p)
    assert (rule, outcome.average) == ("fake-share", "macro")
    np.testing.assert_array_equal(outcome.labels[:, 1:], p.Y_test[:, 1:])
    np.testing.assert_array_equal(outcome.labels[:, 0], p.proba_test[:, 0] > p.Y_val[:, 0].mean())
