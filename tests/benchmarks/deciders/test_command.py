"""The command: probabilities, scores and report of small data, and how it continues."""

from __future__ import annotations

import numpy as np
import pytest

import fgfm
from benchmarks.deciders.__main__ import main
from benchmarks.deciders.compare import Pair, compare
from benchmarks.deciders.probabilities import Probabilities, path_of
from benchmarks.deciders.rules import AVERAGES, RULES


def store(folder, name="yeast"):
    random = np.random.default_rng(0)
    proba = random.random(size=(2, 30, 3)).astype(np.float32)
    Y = (random.random(size=(2, 30, 3)) < proba).astype(np.uint8)
    path = path_of(folder, name, "ridge")
    np.savez(path, proba_val=proba[0], Y_val=Y[0], proba_test=proba[1], Y_test=Y[1])
    return Pair(name, "ridge", path)


def run(folder, pairs, rules, **changes):
    lines = []
    options = {"limit": 60.0, "seed": 0, "n_jobs": 1, "again": []} | changes
    records = compare(folder, pairs, rules, [], progress=lines.append, **options)
    return records, lines


def test_scores_are_those_of_the_rules_and_are_stored(tmp_path):
    pair = store(tmp_path)
    records, lines = run(tmp_path, [pair], ["half", "f-optimal"])
    assert lines == ["yeast, ridge, half: ok", "yeast, ridge, f-optimal: ok"]
    p = Probabilities.read(pair.path)
    expected = {
        (rule, o.average): fgfm.f_measure(p.Y_test, o.labels, average=o.average)
        for rule in ("half", "f-optimal")
        for o in RULES[rule](p)
    }
    assert {(r.rule, r.average): r.f1 for r in records} == expected
    again, lines = run(tmp_path, [pair], ["half", "f-optimal"])
    assert lines == []
    assert [r.f1 for r in again] == [r.f1 for r in records]
    _, lines = run(tmp_path, [pair], ["half", "f-optimal"], again=["half"])
    assert lines == ["yeast, ridge, half: ok"]


def test_a_rule_that_fails_has_rows_with_the_reason(tmp_path):
    records, lines = run(tmp_path, [store(tmp_path)], ["half"], limit=0.0)
    assert lines == ["yeast, ridge, half: limit"]
    assert [(r.average, r.status) for r in records] == [(a, "limit") for a in sorted(AVERAGES)]
    assert np.isnan([r.f1 for r in records]).all()


def test_the_guarantee_is_left_out_if_fdecider_has_none(tmp_path, monkeypatch):
    monkeypatch.delattr(fgfm.FDecider, "lower_bound", raising=False)
    records, lines = run(tmp_path, [store(tmp_path)], ["fdecider", "guarantee"])
    assert lines == ["yeast, ridge, fdecider: ok"]
    assert {r.rule for r in records} == {"fdecider"}


def test_command_computes_and_reports(tmp_path, capsys):
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 2))
    Y = (X @ random.normal(size=(2, 3)) > 0.0).astype(np.int64)
    np.savez(tmp_path / "toy.npz", X=X, Y=Y)
    out, report = tmp_path / "out", tmp_path / "report"
    arguments = [str(tmp_path), "--out", str(out), "--report", str(report)]
    arguments += ["--learners", "ridge", "--rules", "half,per-label", "--peers", ""]
    main(arguments)
    printed = capsys.readouterr()
    assert "toy-ridge: ok" in printed.err
    assert "confirmation data sets" in printed.out
    assert (report / "table.md").exists()
    main([*arguments, "--learners", "ridge,forest", "--stored"])
    printed = capsys.readouterr()
    assert "ok" not in printed.err
    assert "| toy-forest | all | not computed |" in (report / "table.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rules", "halves"], "'halves' is not one of half, threshold"),
        (["--learners", "ridge,x"], "'x' is not one of ridge, forest, boosting, mlp"),
        (["--again", "x"], "'x' is not one of half"),
        (["/no/such/folder"], "there is no such folder or file"),
    ],
)
def test_bad_arguments(arguments, message, capsys):
    with pytest.raises(SystemExit):
        main(arguments)
    assert message in capsys.readouterr().err
