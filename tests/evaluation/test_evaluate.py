"""Evaluation of the F-optimal rule against thresholds: folds, test rows, fitted models."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import f1_score, fbeta_score, hamming_loss, jaccard_score
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import fgfm
from fgfm.evaluation import evaluate, evaluate_fitted
from fgfm.metrics import best_threshold


def model(**parameters):
    forest = RandomForestClassifier(20, oob_score=True, min_samples_leaf=3, random_state=0)
    return fgfm.FClassifier(forest, random_state=0, **parameters)


@pytest.fixture(scope="module")
def data():
    return make_multilabel_classification(120, n_features=4, n_classes=4, random_state=0)


def tuned(proba, Y, parts, average, beta=1.0):
    """Return the sets of one threshold or of one per label, chosen on the other parts."""
    found, n = [], len(Y)
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
        found.append((f, H, np.ravel(thresholds)))
    return max(found, key=lambda one: one[0])[1:]


def test_cross_validation_agrees_with_scikit_learn(data):
    X, Y = data
    found = evaluate(model(), X, Y, folds=4)
    decided = {rule: np.zeros_like(Y) for rule in ("f_optimal", "half")}
    expected, proba = np.zeros(len(Y)), np.zeros(Y.shape)
    splits = list(KFold(4, shuffle=True, random_state=0).split(X))
    for train, test in splits:
        fitted = model().fit(X[train], Y[train])
        decided["f_optimal"][test], expected[test] = fitted.decide(X[test])
        proba[test] = fitted.predict_proba(X[test])
    decided["half"] = proba > 0.5
    decided["threshold"], thresholds = tuned(proba, Y, [test for _, test in splits], "samples")
    assert_allclose(found.thresholds, thresholds, rtol=1e-12)
    for rule, H in decided.items():
        wanted = {
            "instance_f": f1_score(Y, H, average="samples", zero_division=1.0),
            "micro_f": f1_score(Y, H, average="micro"),
            "macro_f": f1_score(Y, H, average="macro"),
            "jaccard": jaccard_score(Y, H, average="samples", zero_division=1.0),
            "hamming_loss": hamming_loss(Y, H),
            "subset_accuracy": (H == Y).all(axis=1).mean(),
            "labels_per_row": H.sum(axis=1).mean(),
        }
        assert set(wanted) == set(found.measures)
        for measure, value in wanted.items():
            assert_allclose(found.measures[measure][rule].value, value, rtol=1e-12)
    f = fgfm.f_measure(Y, decided["f_optimal"], per_row=True)
    by_fold = [f[test].mean() for _, test in splits]
    error = found.measures["instance_f"]["f_optimal"].standard_error
    assert_allclose(error, np.std(by_fold, ddof=1) / 2.0)
    assert_allclose(found.expected_f.value, expected.mean())
    assert_allclose(found.excess.value, (expected - f).mean())
    gain = f - fgfm.f_measure(Y, decided["half"], per_row=True)
    assert_allclose(found.gains["half"].value, gain.mean())
    assert (found.n_rows, found.folds) == (120, 4)
    assert found.threshold_from == "the rows of the other folds"
    assert_allclose(found.true_labels_per_row, Y.sum(axis=1).mean())


def test_macro_and_micro_have_decisions_of_their_own(data):
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
            assert_allclose(scores.f[rule].value, f, rtol=1e-12)
            if rule != "f_optimal":
                gain = scores.f["f_optimal"].value - f
                assert_allclose(scores.gains[rule].value, gain, atol=1e-15)
    samples = found.averages["samples"]
    assert samples.f == found.measures["instance_f"]
    assert (samples.gains, samples.thresholds) == (found.gains, found.thresholds)
    assert found.as_dict() == evaluate_fitted(fitted, X[80:], truth).as_dict()
    assert (found.folds, found.threshold_from) == (0, "the other half of the rows")


def test_progress_and_first_results_are_reported(data):
    X, Y = data
    calls, first = [], []
    found = evaluate(
        model(),
        X,
        Y,
        folds=2,
        progress=lambda *step: calls.append(step),
        partial=lambda *step: first.append(step),
    )
    assert {call[:2] for call in calls} == {(0, 2), (1, 2)}
    assert [fold for fold, _, _ in first] == [1, 2]
    assert_allclose(
        np.mean([f for _, f, _ in first]), found.measures["instance_f"]["f_optimal"].value
    )


def test_decisions_of_all_rows_are_returned(data):
    X, Y = data
    found = evaluate(model(), X, Y, folds=3)
    decisions = found.decisions
    assert sorted(decisions.rows) == list(range(120))
    assert (decisions.truth == Y[decisions.rows]).all()
    f = fgfm.f_measure(decisions.truth, decisions.sets["f_optimal"], per_row=True)
    assert_allclose(decisions.f, f)
    assert_allclose(found.measures["instance_f"]["f_optimal"].value, f.mean())
    assert_allclose(found.expected_f.value, decisions.expected_f.mean())
    assert "decisions" not in found.as_dict()


def test_a_pipeline_and_named_labels_give_the_same(data):
    X, Y = data
    names = pd.DataFrame(Y, columns=list("abcd"))
    plain = evaluate(model(), StandardScaler().fit_transform(X), Y, folds=2)
    # each fold is scaled by its own training rows
    piped = evaluate(make_pipeline(StandardScaler(), model()), X, names, folds=2)
    for rule in plain.measures["instance_f"]:
        a, b = (e.measures["instance_f"][rule].value for e in (plain, piped))
        assert_allclose(a, b, atol=0.02)
    one_step = Pipeline([("model", model())])
    again = evaluate(one_step, X, Y, folds=2)
    assert again == evaluate(model(), X, Y, folds=2)


@pytest.mark.slow
def test_standard_errors_over_rows_agree_with_the_bootstrap():
    X, Y = make_multilabel_classification(600, n_features=4, n_classes=4, random_state=3)
    found = evaluate(model(), X[:200], Y[:200], X[200:], Y[200:])
    H = model().fit(X[:200], Y[:200]).predict(X[200:])
    samples = np.random.default_rng(0).integers(0, 400, (150, 400))
    for measure, kind in [("micro_f", "micro"), ("macro_f", "macro"), ("instance_f", "samples")]:
        scores = [
            f1_score(Y[200:][i], H[i], average=kind, zero_division=1.0 if kind == "samples" else 0)
            for i in samples
        ]
        error = found.measures[measure]["f_optimal"].standard_error
        assert_allclose(error, np.std(scores), rtol=0.2)


def test_as_dict_is_json(data):
    X, Y = data
    fitted = model().fit(X, Y)
    found = evaluate_fitted(fitted, X[:2], Y[:2])
    stored = found.as_dict()
    assert json.loads(json.dumps(stored, allow_nan=False)) == stored
    assert set(stored["measures"]) == set(found.measures)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"folds": 1}, "folds is 1: it must be from 2 to 120, the number of rows"),
        ({"folds": 121}, "folds is 121"),
    ],
)
def test_invalid_folds_raise(data, arguments, message):
    with pytest.raises(ValueError, match=message):
        evaluate(model(), *data, **arguments)


def test_too_few_rows_raise(data):
    X, Y = data
    with pytest.raises(ValueError, match=r"len\(Y\) is 1: cross-validation needs at least 2"):
        evaluate(model(), X[:1], Y[:1])
    with pytest.raises(ValueError, match=r"len\(Y\) is 1: an evaluation needs at least 2 rows"):
        evaluate_fitted(model().fit(X, Y), X[:1], Y[:1])


def test_other_models_raise(data):
    with pytest.raises(TypeError, match="model is Pipeline: it must be an FClassifier, or a pip"):
        evaluate(Pipeline([("scaler", StandardScaler())]), *data)


def test_rows_with_missing_labels_are_fitted_to_and_not_scored(data):
    X, Y = data
    missing = np.arange(len(Y)) % 6 == 0
    partly = np.where(missing[:, None] & [True, False, False, True], np.nan, Y)
    complete = np.flatnonzero(~missing)
    found = evaluate(model(), X, partly, folds=3)
    assert found.n_rows == len(complete)
    assert sorted(found.decisions.rows) == complete.tolist()
    assert (found.decisions.truth == Y[found.decisions.rows]).all()
    # The same as a fit to all rows, scored on those that are complete.
    found = evaluate(model(), X, partly, X, partly)
    fitted = model().fit(X, partly)
    expected = fgfm.f_measure(Y[complete], fitted.predict(X[complete]))
    assert_allclose(found.measures["instance_f"]["f_optimal"].value, expected, rtol=1e-12)
    part = evaluate_fitted(fitted, X, np.where(np.isnan(partly), -1, partly))
    assert part.as_dict() == evaluate_fitted(fitted, X[complete], Y[complete]).as_dict()
    with pytest.raises(ValueError, match="Y has no row in which all labels were observed"):
        evaluate(model(), X, np.where(np.arange(4) == 1, np.nan, Y))
