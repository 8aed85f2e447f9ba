"""Every decision rule of the benchmark, against the classifier and scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn import metrics
from sklearn.datasets import make_multilabel_classification

from benchmarks.real.problem import LEARNERS, make_problem
from benchmarks.real.records import Record
from benchmarks.real.rules import FAMILIES, RULES, _LabelModels, best_thresholds
from benchmarks.real.run import Task, run_task
from benchmarks.real.splits import Split, find_sources, load_split
from fgfm import FGFMClassifier, f_measure


@pytest.fixture(scope="module")
def rows(folder, tmp_path_factory):
    """Return the record of each rule on one data set, computed in this process."""
    out = tmp_path_factory.mktemp("rows")
    (out / "rows").mkdir()
    source = find_sources(folder, ["a"])[0]
    found = {}
    for family in FAMILIES:
        task = Task(source, 0, "ridge", LEARNERS["ridge"], family, family.rules, 0, out)
        found |= {row[3]: Record(*row) for row in run_task(task)}
    return found, load_split(folder / "a.npz"), out


def test_every_rule_has_a_record(rows):
    found, split, out = rows
    assert set(found) == set(RULES)
    for rule, row in found.items():
        assert (row.status, row.n_test, row.fold) == ("ok", len(split.Y_test), 0)
        f = np.load(out / "rows" / f"a.0.ridge.{rule}.npy")
        assert f.dtype == np.float32
        assert_allclose(f.mean(), row.f1, rtol=1e-6)
        assert row.fit_s > 0.0
        assert row.peak_mib > 1.0
        expects = rule not in ("half", "threshold", "thresholds", "topk", "lp", "chain")
        assert math.isfinite(row.expected_f) == math.isfinite(row.calibration_gap) == expects


@pytest.mark.parametrize(
    ("rule", "parameters"),
    [
        ("default", {}),
        ("independent", {"factors": "independent"}),
        ("tilted", {"factors": "single", "method": "tilted"}),
        ("two-step", {"factors": "single", "method": "two-step"}),
        ("direct", {"factors": "single", "method": "direct"}),
        ("powerset", {"factors": "single", "method": "powerset"}),
        ("ilf", {"factors": "ilf", "method": "two-step"}),
    ],
)
def test_optimal_rules_agree_with_the_classifier_for_each_beta(rows, rule, parameters):
    found, split, _ = rows
    model = FGFMClassifier("ridge", random_state=0, **parameters).fit(split.X_train, split.Y_train)
    labels = model.predict(split.X_test)
    truth, row = split.Y_test, found[rule]
    assert_allclose(row.f1, f_measure(truth, labels), rtol=1e-9)
    assert_allclose(row.expected_f, model.expected_f(split.X_test).mean(), rtol=1e-9)
    for beta, own, plain in ((2.0, row.f2_own, row.f2), (0.5, row.f05_own, row.f05)):
        assert_allclose(plain, f_measure(truth, labels, beta), rtol=1e-9)
        decided = model.set_params(beta=beta).predict(split.X_test)
        assert_allclose(own, f_measure(truth, decided, beta), rtol=1e-9)
    if rule == "powerset":
        mode = model.predict_mode(split.X_test)
        assert_allclose(found["lp"].f1, f_measure(truth, mode), rtol=1e-9)


def test_other_measures_agree_with_scikit_learn(rows):
    found, split, _ = rows
    model = FGFMClassifier("ridge", factors="independent", random_state=0)
    p = model.fit(split.X_train, split.Y_train).predict_proba(split.X_test)
    labels, truth, row = (p > 0.5).astype(int), split.Y_test, found["half"]
    assert_allclose(row.f1, metrics.f1_score(truth, labels, average="samples", zero_division=1.0))
    assert_allclose(row.micro_f1, metrics.f1_score(truth, labels, average="micro"))
    assert_allclose(row.macro_f1, metrics.f1_score(truth, labels, average="macro"))
    assert_allclose(row.jaccard, metrics.jaccard_score(truth, labels, average="samples"))
    assert_allclose(row.hamming_loss, metrics.hamming_loss(truth, labels))
    assert_allclose(row.subset_accuracy, metrics.accuracy_score(truth, labels))
    assert_allclose(row.labels_per_row, labels.sum(axis=1).mean())
    assert (row.f2_own, row.f05_own) == (row.f2, row.f05)


def test_thresholds_are_chosen_on_held_out_rows(rows):
    found, split, _ = rows
    problem = make_problem(split, LEARNERS["ridge"], 0)
    held_out, truth = _LabelModels(problem).held_out, split.Y_train.astype(bool)
    model = problem.classifier(factors="independent").fit(split.X_train, split.Y_train)
    assert np.abs(held_out - model.predict_proba(split.X_train)).max() > 0.01
    p = model.predict_proba(split.X_test)
    for beta, measured in ((1.0, found["thresholds"].f1), (2.0, found["thresholds"].f2_own)):
        decided = p > best_thresholds(held_out, truth, beta)
        assert_allclose(measured, f_measure(split.Y_test, decided, beta), rtol=1e-9)


def test_best_thresholds_are_the_best_of_all_cuts():
    random = np.random.default_rng(0)
    proba = random.integers(1, 12, size=(40, 6)) / 12.0  # with ties
    labels = random.random((40, 6)) < proba
    labels[:, 5] = False
    for beta in (0.5, 1.0, 2.0):
        chosen = best_thresholds(proba, labels, beta)
        assert chosen[5] == 1.0
        for j in range(5):
            score = [
                metrics.fbeta_score(labels[:, j], proba[:, j] > t, beta=beta, zero_division=0.0)
                for t in (*np.unique(proba[:, j]), 0.0, chosen[j])
            ]
            assert score[-1] == max(score)


def test_topk_takes_the_most_probable_number_of_labels(rows):
    found, split, _ = rows
    model = FGFMClassifier("ridge", factors="single", method="tilted", random_state=0)
    model.fit(split.X_train, split.Y_train)
    size = model.predict_cardinality_proba(split.X_test).argmax(axis=1)
    assert_allclose(found["topk"].labels_per_row, size.mean())


@pytest.mark.parametrize("name", ["forest", pytest.param("boosting", marks=pytest.mark.slow)])
def test_other_learners_accept_sparse_features(name):
    X, Y = make_multilabel_classification(80, n_features=5, n_classes=2, random_state=0)
    X = sparse.csr_array(X)
    problem = make_problem(Split(X, Y, X[:9], Y[:9]), LEARNERS[name], 0)
    few = {"forest": "n_estimators", "boosting": "max_iter"}[name]
    problem.learner.set_params(**{few: 5})
    for family in FAMILIES:
        if family.rules[0] in ("default", "powerset", "chain"):
            assert all(o.labels[1.0].shape == (9, 2) for o in family.run(problem))


def test_features_too_large_to_be_dense_raise():
    X, Y = sparse.csr_array((5, 20_000_000)), np.zeros((5, 2), dtype=int)
    split = Split(X, Y, X, Y)
    with pytest.raises(ValueError, match="needs dense features of 1526 MiB: the limit is 1024"):
        make_problem(split, LEARNERS["boosting"], 0)
