"""The command ``fgfm factors``."""

from __future__ import annotations

import json
import sys

import fgfm
from command_line import NAMES, assert_one_line_error, run, run_ok

OPTIONS = ["--test", "gcm", "--alpha", "0.2", "--correction", "none"]


def test_json_agrees_with_python(folder, dataset):
    found = json.loads(run_ok("factors", folder / "all.npz", *OPTIONS, "--json").stdout)
    finder = fgfm.ILFCompo("gcm", 0.2, correction=None).fit(dataset.X, dataset.Y)
    assert found["factors"] == [[NAMES[k] for k in factor] for factor in finder.factors_]
    assert len(found["edges"]) == finder.graph_.nnz // 2 > 0
    for edge in found["edges"]:
        i, j = (NAMES.index(name) for name in edge["labels"])
        assert edge["p_value"] == max(finder.p_values_[i, j], finder.p_values_[j, i])
    p = [edge["p_value"] for edge in found["edges"]]
    assert p == sorted(p)


def test_table_shows_edges(folder):
    found = json.loads(run_ok("factors", folder / "all.npz", *OPTIONS, "--json").stdout)
    table = run_ok("factors", folder / "all.npz", *OPTIONS, "--edges", "1").stdout
    assert "test gcm, alpha 0.2, no" in table
    first = found["edges"][0]["labels"]
    assert f"{first[0]} - {first[1]}" in table
    assert "4 labels" in table.splitlines()[0]


def test_tests_given_the_most_informative_features(folder, dataset):
    command = ["factors", folder / "all.npz", *OPTIONS]
    found = json.loads(run_ok(*command, "--max-features", "4", "--json").stdout)
    assert (found["features"], found["features_used"]) == (5, 4)
    finder = fgfm.ILFCompo("gcm", 0.2, correction=None).fit(dataset.X[:, :4], dataset.Y)
    p = [max(finder.p_values_[i, j], finder.p_values_[j, i]) for i, j in _pairs(found)]
    assert [edge["p_value"] for edge in found["edges"]] == p  # the fifth feature is noise
    assert "4 of 5 features" in run_ok(*command, "--max-features", "4").stdout
    assert "4 of" not in run_ok(*command).stdout.splitlines()[0]


def _pairs(found):
    return [[NAMES.index(name) for name in edge["labels"]] for edge in found["edges"]]


def test_maximum_size_cuts_edges(folder):
    table = run_ok("factors", folder / "all.npz", *OPTIONS, "--max-size", "2").stdout
    assert "to limit factor sizes" in table


def test_graph_is_drawn(folder, tmp_path):
    picture = tmp_path / "graph.svg"
    result = run_ok("factors", folder / "all.npz", *OPTIONS, "--graph", picture)
    assert picture.read_text().startswith("<?xml")
    assert "graph drawn to" in result.stderr


def test_factors_can_be_passed_to_fit(folder, tmp_path):
    printed = run_ok("factors", folder / "all.npz", *OPTIONS, "--json").stdout
    (tmp_path / "factors.json").write_text(printed)
    (tmp_path / "factors.txt").write_text("red, blue\ngreen\n")
    sizes = sorted(map(len, json.loads(printed)["factors"]))
    for name, expected in [("factors.json", sizes), ("factors.txt", [1, 1, 2])]:
        path = tmp_path / "model.fgfm"
        run_ok("fit", folder / "all.npz", "--factors", tmp_path / name, "-o", path)
        assert sorted(len(factor) for factor in fgfm.load(path)[-1].factors_) == expected


def test_missing_library_is_named(folder, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    result = run("factors", folder / "all.npz", "--graph", tmp_path / "g.png")
    assert_one_line_error(result, "--graph needs matplotlib: pip install 'fgfm[cli]'")
