"""The benchmark on real data: splits, rules, processes, resuming, statistics, report, command."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats
from sklearn import metrics
from sklearn.datasets import make_multilabel_classification
from typer.testing import CliRunner

import benchmark_parts
from benchmarks.real import benchmark, write_benchmark_report
from benchmarks.real import run as real
from benchmarks.real.ranks import (
    bootstrap_means,
    critical_difference,
    friedman,
    groups_within,
    interval,
    ranks,
)
from benchmarks.real.records import Record
from benchmarks.real.rules import (
    LEARNERS,
    RULES,
    Family,
    best_thresholds,
    make_problem,
)
from benchmarks.real.splits import Split, find_sources, load_split
from benchmarks.real.summary import standings
from benchmarks.real.tables import markdown, terminal
from fgfm import FGFMClassifier, data, f_measure
from fgfm.cli._app import app
from fgfm.estimation._fitting import LearnerSettings, fit_models
from fgfm.estimation._models import ModelTarget

QUICK = ["half", "independent", "lp", "powerset"]
TIMES = ("fit_s", "predict_s", "peak_mib")


def write(folder, name, n, m, *, split=None, as_sparse=False, seed=0):
    X, Y = make_multilabel_classification(
        n, n_features=5, n_classes=m, allow_unlabeled=name == "b", random_state=seed
    )
    train, test = (None, None) if split is None else np.split(np.arange(n), [split])
    X = sparse.csr_array(X) if as_sparse else X
    data.save(data.Dataset(X, Y, train=train, test=test), folder / f"{name}.npz")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Give a folder with one data set that has a split, and one that has none."""
    path = tmp_path_factory.mktemp("data")
    write(path, "a", 120, 4, split=80)
    write(path, "b", 60, 3, as_sparse=True, seed=1)
    return path


@pytest.fixture(scope="module")
def small(folder, tmp_path_factory):
    return benchmark(tmp_path_factory.mktemp("out"), data=folder, rules=QUICK, n_jobs=2)


def odd(monkeypatch, tmp_path):
    """Add rules that go wrong."""
    monkeypatch.setattr(
        real, "FAMILIES", [*real.FAMILIES, *benchmark_parts.odd(tmp_path / "mark")]
    )


def wait_for(condition):
    until = time.monotonic() + 120.0
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def untimed(records):
    return [r._replace(**dict.fromkeys(TIMES, 0.0)) for r in records]


def same(first, second):
    """Tell whether rows are equal, NaN being equal to itself."""
    return [list(map(repr, row)) for row in first] == [list(map(repr, row)) for row in second]


def decided(results):
    """Give what does not depend on the clock."""
    return [(*r[:5], r.f1, r.f2_own, r.labels_per_row) for r in results.records]


# --- data -------------------------------------------------------------------------------------


def test_a_split_is_that_of_the_file_scaled_by_its_training_rows(folder):
    split = load_split(folder / "a.npz")
    stored = data.load(folder / "a.npz")
    X = stored.X[:80]
    assert_allclose(split.X_train, (X - X.mean(axis=0)) / X.std(axis=0))
    assert_allclose(split.X_test, (stored.X[80:] - X.mean(axis=0)) / X.std(axis=0))
    assert_array_equal(split.Y_test, stored.Y[80:])


def test_without_a_split_five_folds_hold_every_row_once(folder):
    folds = [load_split(folder / "b.npz", fold, seed=3) for fold in range(5)]
    assert [len(fold.Y_test) for fold in folds] == [12] * 5
    assert all(sparse.issparse(fold.X_train) for fold in folds)
    assert all(abs(fold.X_train).max() == 1.0 for fold in folds)
    truth = data.load(folder / "b.npz").Y
    found = np.concatenate([fold.Y_test for fold in folds])
    assert_array_equal(np.sort(found @ [1, 2, 4]), np.sort(truth @ np.array([1, 2, 4])))
    other = load_split(folder / "b.npz", 0, seed=4)
    assert (other.Y_test != folds[0].Y_test).any()


def test_small_data_sets_come_first_and_names_are_those_of_files(folder, monkeypatch):
    sources = find_sources(folder, None)
    assert [(s.name, s.folds) for s in sources] == [("b", 5), ("a", 1)]
    assert [s.name for s in find_sources([folder / "a.npz"], None)] == ["a"]
    monkeypatch.setenv("FGFM_DATA", os.fspath(folder))
    assert [s.name for s in find_sources(None, ["a"])] == ["a"]


def test_data_that_are_not_there_are_named(folder, tmp_path, monkeypatch):
    monkeypatch.delenv("FGFM_DATA", raising=False)
    with pytest.raises(ValueError, match="FGFM_DATA is not set: pass a folder"):
        find_sources(None, None)
    with pytest.raises(ValueError, match=r"datasets\[1\] is 'x': it must be one of a, b"):
        find_sources(folder, ["a", "x"])
    with pytest.raises(ValueError, match="no such folder or file"):
        find_sources(tmp_path / "none", None)
    with pytest.raises(ValueError, match=r"has no file \.npz"):
        find_sources(tmp_path, None)
    with pytest.raises(ValueError, match="have one name"):
        find_sources([folder / "a.npz", folder / "a.npz"], None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rules": ["best"]}, r"rules\[0\] is 'best': it must be one of 'default', 'half'"),
        ({"learners": ["ridge", "x"]}, r"learners\[1\] is 'x'"),
        ({"rules": []}, "nothing is to be done"),
        ({"limit": 0}, "limit is 0: it must be a positive number"),
        ({"seed": -1}, "seed is -1"),
        ({"n_jobs": 0}, "n_jobs is 0"),
    ],
)
def test_wrong_arguments_are_named_before_anything_is_written(folder, tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        benchmark(tmp_path / "new", data=folder, **change)
    assert not (tmp_path / "new").exists()


# --- rules ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rows(folder, tmp_path_factory):
    """Give the row of each rule on one data set, computed in this process."""
    out = tmp_path_factory.mktemp("rows")
    (out / "rows").mkdir()
    source = find_sources(folder, ["a"])[0]
    found = {}
    for family in real.FAMILIES:
        task = real.Task(source, 0, "ridge", LEARNERS["ridge"], family, family.rules, 0, out)
        found |= {row[3]: Record(*row) for row in real.run_task(task)}
    return found, load_split(folder / "a.npz"), out


def test_every_rule_gives_a_row_of_numbers(rows):
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
def test_an_optimal_rule_is_the_classifier_for_each_beta(rows, rule, parameters):
    found, split, _ = rows
    model = FGFMClassifier(random_state=0, **parameters).fit(split.X_train, split.Y_train)
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


def test_other_measures_are_those_of_scikit_learn(rows):
    found, split, _ = rows
    model = FGFMClassifier(factors="independent", random_state=0)
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


def test_thresholds_are_chosen_on_rows_that_models_did_not_see(rows):
    found, split, _ = rows
    problem = make_problem(split, LEARNERS["ridge"], 0)
    targets = [ModelTarget(y) for y in split.Y_train.T]
    settings = LearnerSettings(random_state=0)
    _, out_of_fold = fit_models(split.X_train, targets, None, settings, out_of_fold=True)
    held_out = out_of_fold.positive_proba(slice(0, len(targets)))
    truth = split.Y_train.astype(bool)
    model = problem.classifier(factors="independent").fit(split.X_train, split.Y_train)
    assert np.abs(held_out - model.predict_proba(split.X_train)).max() > 0.01
    p = model.predict_proba(split.X_test)
    for beta, measured in ((1.0, found["thresholds"].f1), (2.0, found["thresholds"].f2_own)):
        decided = p > best_thresholds(held_out, truth, beta)
        assert_allclose(measured, f_measure(split.Y_test, decided, beta), rtol=1e-9)


def test_thresholds_of_labels_are_the_best_of_all_cuts():
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


def test_the_size_of_topk_is_the_most_probable_one(rows):
    found, split, _ = rows
    model = FGFMClassifier(factors="single", method="tilted", random_state=0)
    model.fit(split.X_train, split.Y_train)
    size = model.predict_cardinality_proba(split.X_test).argmax(axis=1)
    assert_allclose(found["topk"].labels_per_row, size.mean())


@pytest.mark.parametrize("name", ["forest", "boosting"])
def test_other_learners_take_sparse_features(name, monkeypatch):
    X, Y = make_multilabel_classification(80, n_features=5, n_classes=2, random_state=0)
    X = sparse.csr_array(X)
    problem = make_problem(Split(X, Y, X[:9], Y[:9]), LEARNERS[name], 0)
    few = {"forest": "n_estimators", "boosting": "max_iter"}[name]
    problem.learner.set_params(**{few: 5})
    for family in real.FAMILIES:
        if family.rules[0] in ("default", "powerset", "chain"):
            assert all(o.labels[1.0].shape == (9, 2) for o in family.run(problem))
    monkeypatch.setattr("benchmarks.real.rules._DENSE_BYTES", 100)
    if name == "boosting":
        with pytest.raises(ValueError, match="needs dense features, of 0 MiB"):
            make_problem(Split(X, Y, X, Y), LEARNERS[name], 0)


# --- the run ----------------------------------------------------------------------------------


def test_every_fold_and_rule_has_its_record(small):
    assert [(r.dataset, r.fold, r.rule) for r in small.records] == [
        (name, fold, rule)
        for name, folds in (("a", 1), ("b", 5))
        for fold in range(folds)
        for rule in QUICK
    ]
    assert {r.status for r in small.records} == {"ok"}
    lines = (small.folder / "results.csv").read_text().splitlines()
    assert lines[0].startswith(
        "dataset,fold,learner,rule,status,f1,f2,f05,f2_own,f05_own,micro_f1"
    )
    assert len(lines) == 1 + len(small.records)


def test_processes_change_nothing_but_times(small, folder, tmp_path):
    other = benchmark(tmp_path, data=folder, rules=QUICK, n_jobs=1)
    assert same(untimed(other.records), untimed(small.records))
    # times and memory are among the measures
    assert repr(other.summary._replace(measures={})) == repr(small.summary._replace(measures={}))


def test_what_is_there_is_not_computed_again(small, folder, tmp_path):
    told = []
    again = benchmark(small.folder, data=folder, rules=QUICK, progress=lambda *t: told.append(t))
    assert told == [(0, 0)]
    assert same(again.records, small.records)


def test_a_file_that_was_cut_off_is_completed(small, folder, tmp_path):
    told = []
    out = tmp_path / "cut"
    benchmark(out, data=folder, datasets=["b"], rules=QUICK)
    content = (out / "results.csv").read_bytes()
    lines = content.splitlines(keepends=True)
    (out / "results.csv").write_bytes(b"".join(lines[:-1]) + lines[-1][:20])
    (out / "rows" / "b.0.ridge.half.npy").unlink()  # without it the row is of no use
    found = benchmark(
        out, data=folder, datasets=["b"], rules=QUICK, progress=lambda *t: told.append(t)
    )
    assert told[-1] == (2, 2)
    wanted = [r for r in small.records if r.dataset == "b"]
    assert same(untimed(found.records), untimed(wanted))


def test_settings_of_another_run_are_refused(small, folder):
    with pytest.raises(ValueError, match="seed = 0, not 1"):
        benchmark(small.folder, data=folder, rules=QUICK, seed=1)


def test_a_slow_task_ends_at_the_limit_and_others_go_on(folder, tmp_path, monkeypatch):
    odd(monkeypatch, tmp_path)
    rules = ["quick", "slow", "half"]
    results = benchmark(tmp_path, data=folder, datasets=["a"], rules=rules, limit=6.0)
    status = {r.rule: r.status for r in results.records}
    assert status == {"half": "ok", "quick": "ok", "slow": "limit"}
    assert [e.rule for e in results.summary.errors] == ["slow"]
    slow = next(r for r in results.records if r.rule == "slow")
    assert math.isnan(slow.f1)
    missing = dict(zip(*results.summary.rankings[0][1:4:2], strict=True))
    assert missing == {("ridge", "half"): 0, ("ridge", "quick"): 0, ("ridge", "slow"): 1}


def test_folds_are_not_tried_where_one_took_too_long(folder, tmp_path, monkeypatch):
    odd(monkeypatch, tmp_path)
    results = benchmark(tmp_path, data=folder, datasets=["b"], rules=["waiting"], limit=2.0)
    assert [r.status for r in results.records] == ["limit"] + ["limit in another fold"] * 4


def test_errors_and_crashes_are_rows(folder, tmp_path, monkeypatch):
    odd(monkeypatch, tmp_path)
    rules = ["broken", "early", "killed"]
    results = benchmark(tmp_path, data=folder, datasets=["a"], rules=rules)
    status = {r.rule: r.status for r in results.records}
    assert status["broken"] == "ValueError: there is no such thing"
    assert status["early"] == "ok"
    assert status["killed"].startswith("the process ended by")


def test_retry_computes_what_failed(folder, tmp_path, monkeypatch):
    odd(monkeypatch, tmp_path)
    how = {"data": folder, "datasets": ["a"], "rules": ["marked", "half"]}
    first = benchmark(tmp_path / "out", **how)
    assert {r.status for r in first.records} == {"ok", "RuntimeError: not yet"}
    (tmp_path / "mark").touch()
    assert same(benchmark(tmp_path / "out", **how).records, first.records)
    second = benchmark(tmp_path / "out", retry=True, **how)
    assert {r.rule: r.status for r in second.records} == {"half": "ok", "marked": "ok"}
    assert same(second.records[:1], first.records[:1])


def test_other_data_of_the_same_name_are_refused(folder, tmp_path):
    how = {"datasets": ["a"], "rules": ["half"]}
    benchmark(tmp_path / "out", data=folder, **how)
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(folder / "b.npz", other / "a.npz")
    with pytest.raises(ValueError, match=r"data has another a than the results in .* are of"):
        benchmark(tmp_path / "out", data=other, **how)


def test_limits_may_be_endless_and_chains_are_seeded(folder, tmp_path):
    how = {"data": folder, "datasets": ["a"], "learners": ["forest"], "rules": ["chain"]}
    first = benchmark(tmp_path / "one", limit=float("inf"), **how)
    assert same(decided(benchmark(tmp_path / "two", limit=1e9, **how)), decided(first))


def test_peers_are_learners_whose_rules_they_name(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(real, "_PEERS", "benchmark_parts")
    how = {"data": folder, "datasets": ["a"], "rules": ["default"], "limit": 60.0}
    results = benchmark(tmp_path, peers=["fake", "absent", "weak"], **how)
    found = {(r.learner, r.rule): r for r in results.records}
    assert found["absent", "all"].status == "PeerError: there is no network"
    assert found["weak", "all"].status == "PeerError: it cannot do that"
    on = found["fake", "all-on"]
    assert (on.status, on.fit_s, on.predict_s, on.peak_mib) == ("ok", 2.0, 1.0, 77.0)
    assert (on.labels_per_row, on.expected_f) == (4.0, 0.5)
    assert math.isnan(found["fake", "off"].expected_f)
    first, second = results.summary.rankings[-2:]
    assert (first.learner, second.learner) == ("ridge", "peers")
    assert second.systems[0] == ("ridge", "default")
    assert set(second.systems[1:]) == {("fake", rule) for rule in ("all-on", "off", "fgfm")}
    compared = [(d.reference, d.learner, d.rule) for d in results.summary.differences]
    assert set(compared) == {("ridge", "fake", rule) for rule in ("all-on", "off", "fgfm")}
    again = benchmark(tmp_path, peers=["fake", "absent", "weak"], **how)
    assert same(again.records, results.records)
    # of a peer whose rows are not all there, all are computed again
    left = [r for r in (tmp_path / "results.csv").read_text().splitlines() if ",off," not in r]
    (tmp_path / "results.csv").write_text("\n".join(left) + "\n")
    (tmp_path / "rows" / "a.0.fake.all-on.npy").unlink()
    mended = benchmark(tmp_path, peers=["fake", "absent", "weak"], **how)
    assert same(decided(mended), decided(again))
    with pytest.raises(ValueError, match=r"peers\[0\] is 'x': it must be one of 'fake'"):
        benchmark(tmp_path, peers=["x"], **how)


# --- statistics -------------------------------------------------------------------------------

# Demsar (2006), table 6: AUC of C4.5 with and without two parameters tuned, 14 data sets.
DEMSAR = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9751, 0.9750],  # printed as equal, with ranks that are not
        [0.957, 0.978, 0.946, 0.970],
    ]
)


def test_published_ranks_and_critical_difference():
    assert_allclose(ranks(DEMSAR).mean(axis=0), [3.143, 2.000, 2.893, 1.964], atol=5e-4)
    assert_allclose(critical_difference(4, 14), 1.25, atol=5e-3)
    assert_allclose(critical_difference(4, 14, 0.1), 1.12, atol=5e-3)


@pytest.mark.parametrize(
    ("k", "q"),
    [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (6, 2.850), (8, 3.031), (10, 3.164)],
)
def test_published_critical_values(k, q):
    assert_allclose(critical_difference(k, 1) / math.sqrt(k * (k + 1) / 6.0), q, atol=1.5e-3)


def test_friedman_is_that_of_scipy():
    expected = stats.friedmanchisquare(*DEMSAR.T)
    assert_allclose(friedman(ranks(DEMSAR)), (expected.statistic, expected.pvalue), rtol=1e-9)
    assert math.isnan(friedman(ranks(np.ones((3, 2)))).p_value)


def test_missing_scores_share_the_last_ranks():
    table = np.array([[0.5, np.nan, 0.6, np.nan], [np.nan] * 4])
    assert_array_equal(ranks(table), [[2, 3.5, 1, 3.5], [2.5] * 4])


def test_groups_are_the_largest_ones():
    assert groups_within(np.array([1.0, 2.0, 3.0, 3.5, 9.0]), 1.6) == [(0, 1), (1, 3)]
    assert groups_within(np.array([1.0, 3.0]), 1.0) == []


def test_bootstrap_means_have_the_law_of_a_binomial():
    values = np.repeat([0.0, 1.0], [60, 40])
    means = bootstrap_means(values, 20000, np.random.default_rng(0))
    assert_allclose(interval(means), stats.binom(100, 0.4).ppf([0.025, 0.975]) / 100, atol=0.011)
    assert_allclose(means.std(), math.sqrt(0.4 * 0.6 / 100), rtol=0.03)
    assert_array_equal(bootstrap_means(np.full(7, 0.25), 5, np.random.default_rng(0)), [0.25] * 5)


def record(dataset, fold, learner, rule, f, folder, status="ok"):
    numbers = dict.fromkeys(Record._fields[5:-1], float("nan"))
    n = len(f)
    if status == "ok":
        numbers["f1"] = float(np.mean(f))
        np.save(folder / f"{dataset}.{fold}.{learner}.{rule}.npy", np.float32(f))
    return Record(dataset, fold, learner, rule, status, **numbers, n_test=n)


@pytest.fixture
def made_up(tmp_path):
    """Give the standings of made-up results: two data sets, one with two folds."""
    parts = [
        ("x", 0, "ridge", "default", [1.0, 0.5]),
        ("x", 1, "ridge", "default", [0.0] * 6),
        ("x", 0, "ridge", "half", [0.5, 0.5]),
        ("x", 1, "ridge", "half", [0.5] * 6),
        ("y", 0, "ridge", "default", [0.5] * 4),
        ("y", 0, "ridge", "half", [0.25] * 4),
        ("y", 0, "ridge", "chain", [1.0] * 4),
        ("x", 0, "ridge", "chain", [1.0] * 2),
    ]
    records = [record(*part, tmp_path) for part in parts]
    records.append(record("x", 1, "ridge", "chain", [], tmp_path, "limit"))
    return standings(records, tmp_path, 0)


def test_standings_by_hand(made_up):
    scores = {rule: part for (_, rule), part in made_up.scores.items()}
    assert scores["default"] == {"x": 1.5 / 8, "y": 0.5}  # weighted by test rows
    assert scores["half"] == {"x": 0.5, "y": 0.25}
    assert math.isnan(scores["chain"]["x"])  # one fold is missing
    ranking, complete = made_up.rankings
    # where all have a score: on y
    assert ranking.systems == [("ridge", "chain"), ("ridge", "default"), ("ridge", "half")]
    assert (ranking.mean_ranks, ranking.n_datasets) == ([1.0, 2.0, 3.0], 1)
    assert ranking.missing == [1, 0, 0]
    # those that have a score on x and y
    assert complete.systems == [("ridge", "default"), ("ridge", "half")]
    assert (complete.mean_ranks, complete.n_datasets) == ([1.5, 1.5], 2)
    f1 = {rule: part["y"]["f1"] for (_, rule), part in made_up.measures.items()}
    assert f1 == {"default": 0.5, "half": 0.25, "chain": 1.0}
    assert set(made_up.measures["ridge", "chain"]) == {"y"}
    (shortfall,) = made_up.shortfalls
    assert shortfall == ("ridge", "y", "chain", 0.5)
    found = {(d.rule, d.dataset): d for d in made_up.differences}
    assert set(found) == {
        ("half", "x"),
        ("half", "y"),
        ("half", ""),
        ("chain", "y"),
        ("chain", ""),
    }
    y = found["half", "y"]
    assert (y.mean, y.low, y.high, y.n) == (0.25, 0.25, 0.25, 4)
    x = found["half", "x"]
    assert_allclose(x.mean, -0.3125)
    assert x.low < x.mean < x.high
    mean = found["half", ""]
    assert_allclose([mean.mean, mean.low, mean.high], np.add(x[4:7], 0.25) / 2.0)
    assert mean.n == 2


# --- report and command -----------------------------------------------------------------------


def test_the_report_has_tables_figures_and_errors(made_up, tmp_path):
    results = real.BenchmarkResults([], made_up, tmp_path)
    paths = write_benchmark_report(results, "fgfm benchmark here")
    names = {path.name for path in paths}
    assert names >= {"table.md", "errors.md", "summary.json", "ranks.png", "ranks.svg"}
    assert "differences.png" in names
    assert all(path.stat().st_size > 0 for path in paths)
    table = (tmp_path / "table.md").read_text()
    assert "| y | **1.0000** | .5000 | .2500 |" in table
    assert "| missing | 1 | 0 | 0 |" in table
    assert "## ridge: mean F1 of test rows\n" in table
    assert "ranks of those that have a score on all 2 data sets" in table
    assert "### ridge: all measures, means over 1 data set(s)" in table
    assert "### ridge: all measures, means over 2 data set(s)" in table
    assert "F2: default, deciding for it, is better than deciding for F1 on 0 of 2" in table
    assert "| x | 1 | ridge | chain | limit |" in (tmp_path / "errors.md").read_text()
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["command"] == "fgfm benchmark here"
    assert summary["scores"][2]["f1"] == {"x": None, "y": 1.0}


def test_a_terminal_shows_no_more_than_80_columns(made_up):
    name = "a_name_that_is_rather_long_for_a_data_set_of_any_kind"
    many = made_up._replace(
        datasets=[name, *made_up.datasets],
        scores={s: part | {name: 0.5} for s, part in made_up.scores.items()},
        measures={s: part | {name: part["y"]} for s, part in made_up.measures.items()},
    )
    lines = terminal(many).splitlines()
    assert max(map(len, lines)) <= 80
    assert "1 result(s) are missing: see errors.md" in lines
    assert "**" in markdown(many, "fgfm benchmark")


def test_the_command_writes_files_and_a_table(folder, tmp_path):
    arguments = [os.fspath(folder), "--datasets", "a", "--rules", "default,half", "-j", "1"]
    done = CliRunner().invoke(app, ["benchmark", *arguments, "-o", os.fspath(tmp_path / "out")])
    assert done.exit_code == 0, done.stderr
    assert "rank and F1: means over the data sets" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "1 task computed" in done.stderr
    assert "table.md" in done.stderr
    again = CliRunner().invoke(app, ["benchmark", *arguments, "-o", os.fspath(tmp_path / "out")])
    assert "nothing was left to compute" in again.stderr
    assert again.stdout == done.stdout
    wrong = CliRunner().invoke(app, ["benchmark", *arguments, "--learners", "x"])
    assert wrong.exit_code == 2
    assert "learners[0] is 'x'" in wrong.stderr


def test_a_killed_run_goes_on(small, folder, tmp_path):
    out = tmp_path / "out"
    program = [sys.executable, "-m", "fgfm.cli", "benchmark", os.fspath(folder)]
    program += ["--rules", ",".join(QUICK), "-j", "2", "-o", os.fspath(out)]
    run = subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    csv = out / "results.csv"
    wait_for(lambda: csv.exists() and csv.read_bytes().count(b"\n") > 2)
    run.kill()
    run.wait()
    before = csv.read_bytes()
    found = benchmark(out, data=folder, rules=QUICK)
    kept = before[: before.rfind(b"\n")].splitlines()[1:]
    assert set(kept) <= set(csv.read_bytes().splitlines())
    assert same(untimed(found.records), untimed(small.records))


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="nothing tells of processes")
def test_a_killed_run_leaves_no_process(folder, tmp_path):
    mark = tmp_path / "mark"
    code = (
        "import benchmark_parts\nfrom benchmarks.real import run as real\n"
        f"real.FAMILIES = benchmark_parts.odd({os.fspath(mark)!r})\n"
        f"real.benchmark({os.fspath(tmp_path)!r}, data={os.fspath(folder)!r}, rules=['waiting'])"
    )
    path = os.pathsep.join([os.path.dirname(os.path.dirname(__file__)), *filter(None, sys.path)])
    run = subprocess.Popen([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": path})
    wait_for(mark.exists)
    pid = int(mark.read_text())

    def gone():
        try:
            with open(f"/proc/{pid}/stat") as file:
                return file.read().rpartition(")")[2].split()[0] == "Z"
        except FileNotFoundError:
            return True

    assert not gone()
    run.kill()
    run.wait()
    wait_for(gone)


def test_a_family_may_be_added_in_a_line(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(real, "FAMILIES", [Family(("early", "killed"), benchmark_parts.killed)])
    results = benchmark(tmp_path, data=folder, datasets=["a"], rules=["early"])
    assert [(r.rule, r.status, r.labels_per_row) for r in results.records] == [
        ("early", "ok", 0.0)
    ]
