"""Decision rules compared on held-out rows: models in folds, fitted models, deciders."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.special import logit
from sklearn.datasets import make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import f1_score, fbeta_score, hamming_loss, jaccard_score
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import fgfm
from fgfm.evaluation import evaluate, evaluate_decider, evaluate_fitted
from fgfm.metrics import best_threshold, f_difference, f_interval


def model(**parameters):
    forest = RandomForestClassifier(20, oob_score=True, min_samples_leaf=3, random_state=0)
    return fgfm.FClassifier(forest, random_state=0, **parameters)


@pytest.fixture(scope="module")
def data():
    return make_multilabel_classification(120, n_features=4, n_classes=4, random_state=0)


@pytest.fixture(scope="module")
def found(data):
    return evaluate(model(), *data, folds=3)


def tuned(proba, Y, parts, average, beta=1.0):
    """Return the sets of one threshold or of one per label, chosen on the other parts."""
    candidates, n = [], len(Y)
    for each in (False, True):
        H, thresholds = np.zeros_like(Y), []
        for part in parts:
            other = np.setdiff1d(np.arange(n), part)
            t = best_threshold(proba[other], Y[other] == 1, beta, average=average)
            if each:
                columns = range(Y.shape[1])
                t = [best_threshold(proba[other, j], Y[other, j] == 1, beta) for j in columns]
            H[part] = proba[part] > t
            thresholds.append(t)
        f = fgfm.f_measure(Y, H, beta, average=average)
        candidates.append((f, H, np.ravel(thresholds)))
    return max(candidates, key=lambda one: one[0])[1:]


class Recorded(fgfm.FClassifier):
    """A classifier that keeps the rows that it is fitted to and decides."""

    calls = ()

    def fit(self, X, y, sample_weight=None, **params):
        type(self).calls += (X[:, -1].astype(int),)
        return super().fit(X, y, sample_weight, **params)


def test_every_row_is_decided_once_by_a_model_of_other_rows(data):
    X, Y = data
    X = np.column_stack([X, np.arange(len(X))])  # which row it is
    Recorded.calls = ()
    found = evaluate(Recorded(**model().get_params(deep=False)), X, Y, folds=4)
    rows = np.arange(len(Y))
    parts = [np.setdiff1d(rows, train) for train in Recorded.calls]
    assert_allclose(np.sort(np.concatenate(parts)), rows)
    assert (found.n_rows, found.folds) == (120, 4)
    assert found.threshold_from == "the rows of the other folds"
    decided = {average: np.zeros_like(Y) for average in found.averages}
    proba, expected = np.zeros(Y.shape), np.zeros(len(Y))
    for train, test in zip(Recorded.calls, parts, strict=True):
        fitted = model().fit(X[train], Y[train])
        proba[test], expected[test] = fitted.predict_proba(X[test]), fitted.expected_f(X[test])
        for average, sets in decided.items():
            sets[test] = fitted.decide(X[test], average=average).labels
    for average, scores in found.averages.items():
        H, thresholds = tuned(proba, Y, parts, average)
        assert_allclose(scores.thresholds, thresholds, rtol=1e-12)
        assert (scores.n_rows, scores.folds) == (120, 4)
        sets = {"f_optimal": decided[average], "half": proba > 0.5, "threshold": H}
        for rule, labels in sets.items():
            assert_allclose(scores.f[rule], f_interval(Y, labels, average=average), rtol=1e-12)
        for rule, difference in scores.differences.items():
            wanted = f_difference(Y, decided[average], sets[rule], average=average)
            assert_allclose(difference, wanted, atol=1e-12)
            assert difference.verdict == wanted.verdict
        if average == "samples":
            check_measures(found, Y, sets, expected)


def check_measures(found, Y, sets, expected):
    for rule, H in sets.items():
        wanted = {
            "instance_f": f1_score(Y, H, average="samples", zero_division=1.0),
            "micro_f": f1_score(Y, H, average="micro"),
            "macro_f": f1_score(Y, H, average="macro"),
            "jaccard": jaccard_score(Y, H, average="samples", zero_division=1.0),
            "hamming_loss": hamming_loss(Y, H),
            "subset_accuracy": (H == Y).all(axis=1).mean(),
            "labels_per_row": H.sum(axis=1).mean(),
        }
        assert {name: of[rule] for name, of in found.measures.items()} == pytest.approx(wanted)
        assert (found.decisions.sets[rule] == H).all()
    f = fgfm.f_measure(Y, sets["f_optimal"], per_row=True)
    assert found.decisions.rows.tolist() == list(range(len(Y)))
    assert_allclose(found.decisions.f, f)
    assert_allclose(found.decisions.expected_f, expected)
    assert found.expected_f == pytest.approx(expected.mean())
    assert found.excess == pytest.approx((expected - f).mean())
    assert found.true_labels_per_row == pytest.approx(Y.sum(axis=1).mean())


def test_fitted_models_are_scored_on_halves(data):
    X, Y = data
    fitted = model(beta=2.0).fit(X[:80], Y[:80])
    found = evaluate(model(beta=2.0), X[:80], Y[:80], X[80:], Y[80:])
    proba, truth = fitted.predict_proba(X[80:]), Y[80:]
    halves = [half for _, half in KFold(2, shuffle=True, random_state=0).split(truth)]
    for average in ("macro", "micro"):
        scores = found.averages[average]
        H, thresholds = tuned(proba, truth, halves, average, beta=2.0)
        assert_allclose(scores.thresholds, thresholds, rtol=1e-12)
        decided = fitted.decide(X[80:], average=average).labels
        for rule, sets in {"f_optimal": decided, "half": proba > 0.5, "threshold": H}.items():
            f = fbeta_score(truth, sets, beta=2.0, average=average)
            assert scores.f[rule].f == pytest.approx(f, rel=1e-12)
    assert found.as_dict() == evaluate_fitted(fitted, X[80:], truth).as_dict()
    assert (found.folds, found.threshold_from) == (0, "the other half of the rows")


def test_progress_and_first_results_are_reported(data, found):
    calls, first = [], []
    again = evaluate(
        model(),
        *data,
        folds=3,
        progress=lambda *step: calls.append(step),
        partial=lambda *step: first.append(step),
    )
    assert {call[:2] for call in calls} == {(0, 3), (1, 3), (2, 3)}
    assert [fold for fold, _, _ in first] == [1, 2, 3]
    for k, rule in ((1, "f_optimal"), (2, "half")):
        mean = np.mean([step[k] for step in first])
        assert mean == pytest.approx(found.measures["instance_f"][rule])
    assert again == found


def test_a_pipeline_and_named_labels_give_the_same(data, found):
    X, Y = data
    names = pd.DataFrame(Y, columns=list("abcd"))
    # each fold is scaled by its own training rows
    piped = evaluate(make_pipeline(StandardScaler(), model()), X, names, folds=3)
    for rule, f in piped.measures["instance_f"].items():
        assert f == pytest.approx(found.measures["instance_f"][rule], abs=0.02)
    assert evaluate(Pipeline([("model", model())]), X, Y, folds=3) == found


def test_as_dict_is_json(data):
    X, Y = data
    found = evaluate_fitted(model().fit(X, Y), X[:2], Y[:2])
    stored = found.as_dict()
    assert json.loads(json.dumps(stored, allow_nan=False)) == stored
    assert set(stored) == {*found._fields} - {"decisions"}


def test_rows_with_missing_labels_are_fitted_to_and_not_scored(data):
    X, Y = data
    missing = np.arange(len(Y)) % 6 == 0
    partly = np.where(missing[:, None] & [True, False, False, True], np.nan, Y)
    complete = np.flatnonzero(~missing)
    found = evaluate(model(), X, partly, folds=3)
    assert found.decisions.rows.tolist() == complete.tolist()
    assert (found.decisions.truth == Y[complete]).all()
    # The same as a fit to all rows, scored on those that are complete.
    found = evaluate(model(), X, partly, X, partly)
    fitted = model().fit(X, partly)
    expected = fgfm.f_measure(Y[complete], fitted.predict(X[complete]))
    assert found.measures["instance_f"]["f_optimal"] == pytest.approx(expected)
    part = evaluate_fitted(fitted, X, np.where(np.isnan(partly), -1, partly))
    assert part.as_dict() == evaluate_fitted(fitted, X[complete], Y[complete]).as_dict()
    with pytest.raises(ValueError, match="Y has no row in which all labels were observed"):
        evaluate(model(), X, np.where(np.arange(4) == 1, np.nan, Y))


# Deciders


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    truth = rng.random((120, 3)) ** 2
    return truth**1.5, (rng.random((120, 3)) < truth).astype(np.int8)


@pytest.mark.parametrize("average", ["samples", "macro", "micro"])
def test_deciders_are_fitted_to_rows_of_other_folds(rows, average):
    proba, Y = rows
    decider = fgfm.FDecider(average=average, beta=2.0)
    counts = []
    found = evaluate_decider(
        decider, proba, Y, folds=4, progress=lambda k, n: counts.append((k, n))
    )
    assert counts == [(k, 4) for k in range(1, 5)]
    assert (found.folds, found.n_rows) == (4, 120)
    assert len(found.thresholds) in (4, 12)  # one of each fold, or of each label in it

    def f(labels):
        return fgfm.f_measure(Y, labels, 2.0, average=average)

    assert_allclose(found.f["half"], f_interval(Y, proba > 0.5, beta=2.0, average=average))
    of_label = [best_threshold(proba[:, j], Y[:, j] == 1, 2.0) for j in range(3)]
    best = max(f(proba > t) for t in (best_threshold(proba, Y, 2.0, average=average), of_label))
    assert found.f["half"].f < found.f["threshold"].f < best + 1e-9
    assert abs(found.f["f_optimal"].f - decider.fit(proba, Y).score(proba, Y)) < 0.05
    gain = found.f["f_optimal"].f - found.f["half"].f
    assert found.differences["half"].difference == pytest.approx(gain)
    assert evaluate_decider(decider, proba, pd.DataFrame(Y), folds=4) == found


def test_scores_and_sparse_rows_agree_with_probabilities(rows):
    proba, Y = rows
    proba = np.clip(proba, 0.01, 0.99)
    expected = evaluate_decider(fgfm.FDecider(average="macro"), proba, Y)
    by_scores = evaluate_decider(fgfm.FDecider(average="macro", scores=True), logit(proba), Y)
    assert by_scores.f["half"] == expected.f["half"]
    stored = evaluate_decider(
        fgfm.FDecider(average="macro"), sparse.csr_array(proba), sparse.csr_array(Y)
    )
    for rule, f in expected.f.items():
        assert by_scores.f[rule] == pytest.approx(f, abs=0.02)
        assert stored.f[rule] == pytest.approx(f)
    assert stored.thresholds == pytest.approx(expected.thresholds)


@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
def test_one_label_is_a_binary_problem(rows):
    p, y = rows[0][:, 0], rows[1][:, 0]
    found = evaluate_decider(fgfm.FDecider(), p, y)
    assert found.f["half"] == pytest.approx(f_interval(y, p > 0.5))
    assert found.f["f_optimal"].f == pytest.approx(found.f["threshold"].f, abs=0.05)
    assert evaluate_decider(fgfm.FDecider(), p[:, None], y[:, None]) == found


@pytest.mark.filterwarnings("ignore:n_samples=.* so few validation rows")
@pytest.mark.parametrize(("n", "folds", "least"), [(40, 10, 10), (3, 5, 3)])
def test_rows_with_labels_are_spread_over_the_folds(n, folds, least):
    Y = np.zeros((n, 2), dtype=int)
    Y[:2, 0] = 1
    found = evaluate_decider(fgfm.FDecider(), np.full((n, 2), 0.1) + 0.5 * Y, Y, folds=folds)
    assert found.folds == least


# Errors


def few(n, **options):
    return evaluate_decider(fgfm.FDecider(), np.full((n, 2), 0.5), np.ones((n, 2)), **options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X, Y: few(2), "Y has 2 rows, 2 of them with labels: cross-validation needs"),
        (
            lambda X, Y: evaluate_decider(fgfm.FDecider(), Y / 2, np.where(Y > 0, np.nan, Y)),
            r"Y\[0, \d\] is nan: labels must be 0 or 1",
        ),
        (lambda X, Y: few(9, folds=1), "folds is 1: it must be 2 or more"),
        (lambda X, Y: evaluate(model(), X, Y, folds=1), "folds is 1: it must be 2 or more"),
        (lambda X, Y: evaluate(model(), X[:1], Y[:1]), "Y has 1 rows, .* at least 3 rows"),
        (
            lambda X, Y: evaluate_fitted(model().fit(X, Y), X[:1], Y[:1]),
            r"len\(Y\) is 1: an evaluation needs at least 2 rows",
        ),
        (
            lambda X, Y: evaluate(Pipeline([("scaler", StandardScaler())]), X, Y),
            "model is Pipeline: it must be an FClassifier, or a pipeline that ends with one",
        ),
    ],
)
def test_what_cannot_be_evaluated_raises(data, call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call(*data)
