"""The summary of made-up records, and its tables and figures."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from benchmarks.real import BenchmarkResults, write_report
from benchmarks.real.records import Record
from benchmarks.real.summary import summarise
from benchmarks.real.tables import format_errors, format_markdown, format_terminal


def make_record(dataset, fold, learner, rule, f, folder, status="ok"):
    numbers = dict.fromkeys(Record._fields[5:-1], float("nan"))
    if status == "ok":
        numbers["f1"] = float(np.mean(f))
        np.save(folder / f"{dataset}.{fold}.{learner}.{rule}.npy", np.float32(f))
    return Record(dataset, fold, learner, rule, status, **numbers, n_test=len(f))


@pytest.fixture
def made_up(tmp_path):
    """Return the summary of two data sets, one with two folds."""
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
    records = [make_record(*part, tmp_path) for part in parts]
    records.append(make_record("x", 1, "ridge", "chain", [], tmp_path, "limit"))
    return summarise(records, tmp_path, 0)


def test_scores_and_ranks_by_hand(made_up):
    scores = {rule: part for (_, rule), part in made_up.scores.items()}
    assert scores["default"] == {"x": 1.5 / 8, "y": 0.5}  # weighted by test rows
    assert scores["half"] == {"x": 0.5, "y": 0.25}
    assert math.isnan(scores["chain"]["x"])  # one fold is missing
    ranking, complete = made_up.rankings
    # on y, where all rules have a score
    assert ranking.systems == [("ridge", "chain"), ("ridge", "default"), ("ridge", "half")]
    assert (ranking.mean_ranks, ranking.n_datasets) == ([1.0, 2.0, 3.0], 1)
    assert ranking.missing == [1, 0, 0]
    # the rules with a score on x and y
    assert complete.systems == [("ridge", "default"), ("ridge", "half")]
    assert (complete.mean_ranks, complete.n_datasets) == ([1.5, 1.5], 2)
    f1 = {rule: part["y"]["f1"] for (_, rule), part in made_up.measures.items()}
    assert f1 == {"default": 0.5, "half": 0.25, "chain": 1.0}
    assert set(made_up.measures["ridge", "chain"]) == {"y"}
    (shortfall,) = made_up.shortfalls
    assert shortfall == ("ridge", "y", "chain", 0.5)


def test_differences_by_hand(made_up):
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
    ends = np.add([x.mean, x.low, x.high], 0.25) / 2.0
    assert_allclose([mean.mean, mean.low, mean.high], ends)
    assert mean.n == 2


def test_report_has_tables_figures_and_errors(made_up, tmp_path):
    paths = write_report(BenchmarkResults([], made_up, tmp_path), "python -m benchmarks.real x")
    names = {path.name for path in paths}
    assert names >= {"table.md", "errors.md", "summary.json", "ranks.png", "ranks.svg"}
    assert "differences.png" in names
    assert all(path.stat().st_size > 0 for path in paths)
    table = (tmp_path / "table.md").read_text()
    assert table.startswith("Computed by `python -m benchmarks.real x`.\n")
    assert "| y | **1.0000** | .5000 | .2500 |" in table
    assert "| missing | 1 | 0 | 0 |" in table
    assert "## ridge: mean F1 of test rows\n" in table
    assert "ranks of the rules with a score on all 2 data sets" in table
    assert "### ridge: all measures, means over 1 data set\n" in table
    assert "### ridge: all measures, means over 2 data sets\n" in table
    assert "F2 of the default is higher if it decides for F2 than for F1 on 0 of 2" in table
    assert "| x | 1 | ridge | chain | limit |" in (tmp_path / "errors.md").read_text()
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["command"] == "python -m benchmarks.real x"
    assert summary["scores"][2]["f1"] == {"x": None, "y": 1.0}


def test_terminal_output_has_at_most_80_columns(made_up):
    name = "a_name_that_is_rather_long_for_a_data_set_of_any_kind"
    many = made_up._replace(
        datasets=[name, *made_up.datasets],
        scores={s: part | {name: 0.5} for s, part in made_up.scores.items()},
        measures={s: part | {name: part["y"]} for s, part in made_up.measures.items()},
    )
    lines = format_terminal(many).splitlines()
    assert max(map(len, lines)) <= 80
    assert "1 result missing: see errors.md" in lines
    assert "**" in format_markdown(many, "command")


def test_no_missing_result_is_a_sentence(made_up):
    assert format_errors(made_up._replace(errors=[])) == "No result is missing.\n"
