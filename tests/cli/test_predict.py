"""The command ``fgfm predict``."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fgfm
from command_line import (
    NAMES,
    assert_one_line_error,
    label_sets,
    make_rows,
    names_of,
    run,
    run_ok,
    save_arff,
    started,
)
from fgfm.io import decide, load


@pytest.fixture(scope="module")
def table_model(folder):
    """A model of a table with texts, missing values and a dropped column."""
    path = folder / "table.fgfm"
    run_ok(
        "fit", folder / "table.csv", "--labels", ",".join(NAMES), "--drop", "id", "-o", path,
    )  # fmt: skip
    return path


@pytest.fixture(scope="module")
def tags_model(folder):
    """The same for a column of label lists."""
    path = folder / "tags.fgfm"
    run_ok(
        "fit", folder / "tags.csv", "--labels", "tags", "--separator", ";", "--drop", "id",
        "-o", path,
    )  # fmt: skip
    return path


@pytest.mark.parametrize("beta", [1.0, 2.0])
def test_output_formats_agree_with_python(folder, tmp_path, model, beta):
    X = load(folder / "test.arff").X
    saved = fgfm.load(model)
    saved.set_params(beta=beta)
    decision = saved.decide(X)
    sets = names_of(decision.labels, NAMES)
    command = ["predict", model, folder / "test.arff", "--beta", beta]
    run_ok(*command, "-o", tmp_path / "s.parquet")
    frame = pd.read_parquet(tmp_path / "s.parquet")
    assert [set(cell) for cell in frame["labels"]] == sets
    assert_array_equal(frame["expected_f"], decision.expected_f)
    run_ok(*command, "-o", tmp_path / "s.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()]
    assert [set(line["labels"]) for line in lines] == sets
    run_ok(*command, "-o", tmp_path / "s.tsv", "--wide")
    wide = pd.read_csv(tmp_path / "s.tsv", sep="\t")
    assert_array_equal(wide[list(NAMES)], decision.labels)
    printed = run_ok(*command)
    assert printed.stdout.startswith("labels,expected_f\n")
    assert printed.stdout.count("\n") == 41
    assert f"mean expected F{beta:g} {decision.expected_f.mean():.3f}" in printed.stderr


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_averages_decide_all_rows_together(folder, tmp_path, table_model, average):
    sets, proba = tmp_path / "sets.csv", tmp_path / "p.csv"
    command = ["predict", table_model, folder / "new.csv", "--ids", "id", "--average", average]
    result = run_ok(*command, "--wide", "-o", sets, "--proba", proba)
    frame = pd.read_csv(folder / "new.csv", dtype={"id": str})
    model = fgfm.load(table_model)
    X = frame.drop(columns="id")
    decision = model.decide(X, average=average)
    written = pd.read_csv(sets, dtype={"id": str})
    assert written["id"].tolist() == frame["id"].tolist()
    assert_array_equal(written.drop(columns="id"), decision.labels)
    assert_allclose(pd.read_csv(proba).drop(columns="id"), model.predict_proba(X), rtol=1e-14)
    expected = "mean expected F1 of labels" if average == "macro" else "expected F1 of all labels"
    assert f"{expected} {np.mean(decision.expected_f):.3f}: " in result.stderr


def test_id_columns_are_copied(folder, tmp_path, table_model):
    sets, proba = tmp_path / "sets.csv", tmp_path / "p.csv"
    command = ["predict", table_model, folder / "new.csv", "--ids", "id"]
    run_ok(*command, "-o", sets, "--proba", proba)
    model = fgfm.load(table_model)
    frame = pd.read_csv(folder / "new.csv", dtype={"id": str})
    names = [str(name) for name in model.label_names_in_]
    assert label_sets(sets)[0] == names_of(model.predict(frame.drop(columns="id")), names)
    assert pd.read_csv(sets, dtype=str)["id"].tolist() == frame["id"].tolist()
    p = pd.read_csv(proba, dtype={"id": str})
    assert list(p.columns) == ["id", *names]
    assert_allclose(p[names], model.predict_proba(frame.drop(columns="id")), rtol=1e-14)
    assert decide(proba, tmp_path / "decided.csv", ids=["id"]).rows == 120


def test_id_columns_of_parquet_and_probabilities_to_standard_output(folder, tmp_path, tags_model):
    command = ["predict", tags_model, folder / "new.parquet", "--ids", "id", "--proba", "-"]
    printed = run_ok(*command, "-o", tmp_path / "ids.csv").stdout
    assert printed.startswith("id,blue,dark,green,red\n000,0.")
    assert (tmp_path / "ids.csv").read_text().startswith("id,labels,expected_f\n000,")


@pytest.mark.parametrize("kind", ["table", "tags"])
def test_labels_in_the_data_are_ignored(folder, tmp_path, request, kind):
    path = request.getfixturevalue(f"{kind}_model")
    target = tmp_path / "sets.csv"
    run_ok("predict", path, folder / "new.csv", "-o", target)
    expected = target.read_text()
    invalid = ["", "?", "soon", "['red']", "red;pink"] * 24
    columns = {"tags": invalid} if kind == "tags" else {"red": invalid, "dark": invalid}
    frame = pd.read_csv(folder / "new.csv", dtype=str).assign(**columns)
    frame.to_csv(tmp_path / "odd.csv", index=False)
    run_ok("predict", path, tmp_path / "odd.csv", "-o", target)
    assert target.read_text() == expected
    # fgfm evaluate reads them
    assert run("evaluate", tmp_path / "odd.csv", "--model", path).exit_code == 2


def test_standard_input(folder, tmp_path, table_model):
    run_ok("predict", table_model, folder / "new.csv", "-o", tmp_path / "s.csv", "--ids", "id")
    content = (folder / "new.csv").read_bytes()
    command = ["predict", table_model, "-", "--format", "csv", "--ids", "id"]
    assert run_ok(*command, stdin=content).stdout == (tmp_path / "s.csv").read_text()


def test_model_without_names(folder, tmp_path):
    X, Y = make_rows()
    classifier = fgfm.FClassifier(random_state=0).fit(X, Y)
    fgfm.save(classifier, tmp_path / "m.fgfm")
    run_ok("predict", tmp_path / "m.fgfm", folder / "all.arff", "-o", tmp_path / "s.csv")
    expected = names_of(classifier.predict(X), ["0", "1", "2", "3"])
    assert label_sets(tmp_path / "s.csv")[0] == expected
    fgfm.save(classifier.fit(X, Y[:, 0]), tmp_path / "m.fgfm")
    result = run("predict", tmp_path / "m.fgfm", folder / "all.arff")
    assert_one_line_error(result, "predicts one class for each row: use its predict in Python")


def test_model_without_an_encoder_matches_columns_by_name(dataset, tmp_path):
    frame = pd.DataFrame(dataset.X, columns=dataset.feature_names)
    classifier = fgfm.FClassifier(random_state=0).fit(frame, dataset.Y)
    path = tmp_path / "m.fgfm"
    fgfm.save(classifier, path)
    frame[frame.columns[::-1]].assign(more=1.0).to_csv(tmp_path / "reversed.csv", index=False)
    run_ok("predict", path, tmp_path / "reversed.csv", "-o", tmp_path / "s.csv")
    found, _ = label_sets(tmp_path / "s.csv")
    assert found == names_of(classifier.predict(frame), ["0", "1", "2", "3"])
    frame.rename(columns={"x1": "X1"}).to_csv(tmp_path / "less.csv", index=False)
    assert_one_line_error(
        run("predict", path, tmp_path / "less.csv"),
        "there is no column 'x1' (did you mean 'X1'?), which training had",
    )


def test_missing_library_is_named(folder, monkeypatch, tmp_path, model):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = run("predict", model, folder / "all.arff", "-o", tmp_path / "s.csv")
    assert_one_line_error(result, "pip install 'fgfm[data]'")


def test_closed_output_ends_the_program_quietly(tmp_path, model):
    X, Y = make_rows(20000)
    save_arff(tmp_path / "many.arff", X, Y)
    command = ["predict", model, tmp_path / "many.arff", "-o", "-"]
    with started(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"labels,expected_f\n"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


def test_limits_replace_those_of_the_model(folder, model, tmp_path):
    (tmp_path / "rules.json").write_text('{"required": ["dark"], "groups": [["red", 1]]}')
    options = ["--min-labels", "2", "--max-labels", "2", "--constraints", tmp_path / "rules.json"]
    run_ok("predict", model, folder / "all.arff", "-o", tmp_path / "s.csv", *options)
    loaded = fgfm.load(model)
    rules = fgfm.decision.Constraints(required=["dark"], groups=[["red", "green"]])
    loaded.set_params(min_labels=2, max_labels=2, constraints=rules)
    X = load(folder / "all.arff").X
    found, expected_f = label_sets(tmp_path / "s.csv")
    assert found == names_of(loaded.predict(X), NAMES)
    assert all(len(labels) == 2 and "dark" in labels for labels in found)
    assert_allclose(expected_f, loaded.expected_f(X), atol=1e-6)
    (tmp_path / "rules.json").write_text('{"required": ["drak"]}')
    result = run("predict", model, folder / "all.arff", "--constraints", tmp_path / "rules.json")
    assert_one_line_error(result, "required has label 'drak': there is no such label; did you")
