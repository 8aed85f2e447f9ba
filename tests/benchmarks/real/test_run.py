"""The whole benchmark: resuming, limits, failures and other packages."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import fake_benchmark
from benchmarks.real import benchmark, run
from benchmarks.real.problem import Family

TIMES = ("fit_s", "predict_s", "peak_mib")
TESTS = Path(__file__).parents[2]


@pytest.fixture
def failing(monkeypatch, tmp_path):
    """Add rules that fail."""
    families = [*run.FAMILIES, *fake_benchmark.failing_families(tmp_path / "mark")]
    monkeypatch.setattr(run, "FAMILIES", families)


def wait_for(condition):
    end = time.monotonic() + 120.0
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def untimed(records):
    return [r._replace(**dict.fromkeys(TIMES, 0.0)) for r in records]


def are_equal(first, second):
    """Compare rows, with NaN equal to itself."""
    return [list(map(repr, row)) for row in first] == [list(map(repr, row)) for row in second]


def scores(results):
    return [(*r[:5], r.f1, r.f2_own, r.labels_per_row) for r in results.records]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rules": ["best"]}, r"rules\[0\] is 'best': it must be one of 'default', 'half'"),
        ({"learners": ["ridge", "x"]}, r"learners\[1\] is 'x'"),
        ({"peers": ["x"]}, r"peers\[0\] is 'x': it must be one of 'f1-maximizer'"),
        ({"rules": []}, "there is nothing to run"),
        ({"limit": 0}, "limit is 0: it must be a positive number"),
        ({"seed": -1}, "seed is -1"),
        ({"n_jobs": 0}, "n_jobs == 0"),
    ],
)
def test_invalid_arguments_raise_before_anything_is_written(folder, tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        benchmark(tmp_path / "new", data=folder, **change)
    assert not (tmp_path / "new").exists()


def test_every_fold_and_rule_has_its_record(small, quick_rules):
    assert [(r.dataset, r.fold, r.rule) for r in small.records] == [
        (name, fold, rule)
        for name, folds in (("a", 1), ("b", 5))
        for fold in range(folds)
        for rule in quick_rules
    ]
    assert {r.status for r in small.records} == {"ok"}
    lines = (small.folder / "results.csv").read_text().splitlines()
    assert lines[0].startswith(
        "dataset,fold,learner,rule,status,f1,f2,f05,f2_own,f05_own,micro_f1"
    )
    assert len(lines) == 1 + len(small.records)


@pytest.mark.slow
def test_only_times_depend_on_n_jobs(small, folder, quick_rules, tmp_path):
    other = benchmark(tmp_path, data=folder, rules=quick_rules, n_jobs=1)
    assert are_equal(untimed(other.records), untimed(small.records))
    # the measures contain times and memory
    assert repr(other.summary._replace(measures={})) == repr(small.summary._replace(measures={}))


def test_stored_results_are_not_computed_again(small, folder, quick_rules):
    calls = []
    again = benchmark(
        small.folder, data=folder, rules=quick_rules, progress=lambda *step: calls.append(step)
    )
    assert calls == [(0, 0)]
    assert are_equal(again.records, small.records)


def test_a_truncated_file_is_completed(small, folder, quick_rules, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(small.folder, out)
    lines = (out / "results.csv").read_bytes().splitlines(keepends=True)
    (out / "results.csv").write_bytes(b"".join(lines[:-1]) + lines[-1][:20])
    (out / "rows" / "b.0.ridge.half.npy").unlink()  # a record without its rows is recomputed
    calls = []
    found = benchmark(
        out, data=folder, rules=quick_rules, progress=lambda *step: calls.append(step)
    )
    assert calls[-1] == (2, 2)
    assert are_equal(untimed(found.records), untimed(small.records))


def test_other_settings_raise(small, folder, quick_rules):
    with pytest.raises(ValueError, match="seed = 0, not 1"):
        benchmark(small.folder, data=folder, rules=quick_rules, seed=1)


def test_other_data_of_the_same_name_raise(small, folder, quick_rules, tmp_path):
    shutil.copy(folder / "b.npz", tmp_path / "a.npz")
    with pytest.raises(ValueError, match="the data set a differs from that of the results in"):
        benchmark(small.folder, data=tmp_path, rules=quick_rules)


def test_a_new_family_needs_no_other_change(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "FAMILIES", [Family(("early", "killed"), fake_benchmark.killed)])
    results = benchmark(tmp_path, data=folder, datasets=["a"], rules=["early"])
    assert [(r.rule, r.status, r.labels_per_row) for r in results.records] == [
        ("early", "ok", 0.0)
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("failing")
def test_a_slow_task_ends_at_the_limit_and_others_continue(folder, tmp_path):
    rules = ["quick", "slow", "half"]
    results = benchmark(tmp_path, data=folder, datasets=["a"], rules=rules, limit=6.0)
    status = {r.rule: r.status for r in results.records}
    assert status == {"half": "ok", "quick": "ok", "slow": "limit"}
    assert [e.rule for e in results.summary.errors] == ["slow"]
    slow = next(r for r in results.records if r.rule == "slow")
    assert math.isnan(slow.f1)
    ranking = results.summary.rankings[0]
    missing = dict(zip(ranking.systems, ranking.missing, strict=True))
    assert missing == {("ridge", "half"): 0, ("ridge", "quick"): 0, ("ridge", "slow"): 1}


@pytest.mark.usefixtures("failing")
def test_other_folds_are_not_run_after_the_limit(folder, tmp_path):
    results = benchmark(tmp_path, data=folder, datasets=["b"], rules=["waiting"], limit=1.0)
    assert [r.status for r in results.records] == ["limit"] + ["limit in another fold"] * 4


@pytest.mark.usefixtures("failing")
def test_errors_and_crashes_are_recorded(folder, tmp_path):
    rules = ["broken", "early", "killed"]
    results = benchmark(tmp_path, data=folder, datasets=["a"], rules=rules)
    status = {r.rule: r.status for r in results.records}
    assert status["broken"] == "ValueError: the message has two lines"
    assert status["early"] == "ok"
    assert status["killed"].startswith("the process ended by signal 9")


@pytest.mark.usefixtures("failing")
def test_retry_computes_failed_results_again(folder, tmp_path):
    options = {"data": folder, "datasets": ["a"], "rules": ["marked", "half"]}
    first = benchmark(tmp_path / "out", **options)
    assert {r.status for r in first.records} == {"ok", "RuntimeError: not yet"}
    (tmp_path / "mark").touch()
    assert are_equal(benchmark(tmp_path / "out", **options).records, first.records)
    second = benchmark(tmp_path / "out", retry=True, **options)
    assert {r.rule: r.status for r in second.records} == {"half": "ok", "marked": "ok"}
    assert are_equal(second.records[:1], first.records[:1])


@pytest.mark.slow
def test_limits_may_be_infinite_and_chains_are_seeded(folder, tmp_path):
    options = {"data": folder, "datasets": ["a"], "learners": ["forest"], "rules": ["chain"]}
    first = benchmark(tmp_path / "one", limit=float("inf"), **options)
    second = benchmark(tmp_path / "two", limit=1e9, **options)
    assert are_equal(scores(second), scores(first))


def test_other_packages_are_learners_with_rules_of_their_own(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "_PEERS", "fake_benchmark")
    options = {"data": folder, "datasets": ["a"], "rules": ["default"], "limit": 60.0}
    options["peers"] = ["fake", "absent", "weak"]
    results = benchmark(tmp_path, **options)
    found = {(r.learner, r.rule): r for r in results.records}
    assert found["absent", "all"].status == "PeerError: there is no network"
    assert found["weak", "all"].status == "PeerError: it failed"
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
    again = benchmark(tmp_path, **options)
    assert are_equal(again.records, results.records)
    # if rows of a package are missing, all of them are computed again
    left = [r for r in (tmp_path / "results.csv").read_text().splitlines() if ",off," not in r]
    (tmp_path / "results.csv").write_text("\n".join(left) + "\n")
    (tmp_path / "rows" / "a.0.fake.all-on.npy").unlink()
    assert are_equal(scores(benchmark(tmp_path, **options)), scores(again))


@pytest.mark.slow
def test_a_killed_run_continues(small, folder, quick_rules, tmp_path):
    out = tmp_path / "out"
    program = [sys.executable, "-m", "benchmarks.real", os.fspath(folder)]
    program += ["--rules", ",".join(quick_rules), "-j", "2", "-o", os.fspath(out)]
    process = subprocess.Popen(
        program,
        cwd=TESTS.parent,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    csv = out / "results.csv"
    wait_for(lambda: csv.exists() and csv.read_bytes().count(b"\n") > 2)
    process.kill()
    process.wait()
    before = csv.read_bytes()
    found = benchmark(out, data=folder, rules=quick_rules)
    kept = before[: before.rfind(b"\n")].splitlines()[1:]
    assert set(kept) <= set(csv.read_bytes().splitlines())
    assert are_equal(untimed(found.records), untimed(small.records))


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="reads processes from /proc")
def test_a_killed_run_leaves_no_process(folder, tmp_path):
    mark = tmp_path / "mark"
    code = (
        "import fake_benchmark\nfrom benchmarks.real import run\n"
        f"run.FAMILIES = fake_benchmark.failing_families({os.fspath(mark)!r})\n"
        f"run.benchmark({os.fspath(tmp_path)!r}, data={os.fspath(folder)!r}, rules=['waiting'])"
    )
    path = os.pathsep.join([os.fspath(TESTS), *filter(None, sys.path)])
    process = subprocess.Popen([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": path})
    wait_for(mark.exists)
    pid = int(mark.read_text())

    def has_ended():
        try:
            with open(f"/proc/{pid}/stat") as file:
                return file.read().rpartition(")")[2].split()[0] == "Z"
        except FileNotFoundError:
            return True

    assert not has_ended()
    process.kill()
    process.wait()
    wait_for(has_ended)
