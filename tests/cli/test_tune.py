"""The command ``fgfm tune``, and ``fgfm decide --with``."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logit

import fgfm
from command_line import (
    NAMES,
    assert_one_line_error,
    label_sets,
    names_of,
    run,
    run_ok,
)
from fgfm.evaluation import evaluate_decider
from fgfm.io import LabelSetWriter


@pytest.fixture(scope="module")
def rows():
    """Probabilities of a model that is too sure, and labels."""
    rng = np.random.default_rng(0)
    truth = rng.random((300, 4)) ** 2
    return (truth**1.5).round(4), (rng.random((300, 4)) < truth).astype(np.int8)


@pytest.fixture
def files(rows, tmp_path, monkeypatch):
    """A folder with validation rows 0 to 199, and new rows."""
    monkeypatch.chdir(tmp_path)
    proba, Y = rows
    ids = [f"d{k}" for k in range(300)]
    table = pd.DataFrame(proba, columns=NAMES).assign(id=ids)
    table[:200].to_csv("p.csv", index=False)
    table[200:].to_csv("new.csv", index=False)
    labels = pd.DataFrame(Y, columns=NAMES).assign(id=ids)[:200]
    labels.sample(frac=1.0, random_state=0)[[*NAMES[::-1], "id"]].to_csv("y.csv", index=False)
    return tmp_path


def fitted(rows, **params):
    """Fit the decider that ``fgfm tune`` should fit."""
    Y = pd.DataFrame(rows[1][:200], columns=NAMES)
    return fgfm.FDecider(**params).fit(rows[0][:200], Y)


@pytest.mark.parametrize("average", ["samples", "macro", "micro"])
def test_tune_then_decide(rows, files, average):
    printed = run_ok("tune", "p.csv", "y.csv", "--ids", "id", "-o", "d.fgfm", "--average", average)
    decider = fitted(rows, average=average)
    run_ok("decide", "new.csv", "--with", "d.fgfm", "--ids", "id", "-o", "s.csv")
    found = pd.read_csv("s.csv", keep_default_na=False)
    assert found["id"].tolist() == [f"d{k}" for k in range(200, 300)]
    sets = [set(filter(None, cell.split(";"))) for cell in found["labels"]]
    assert sets == names_of(decider.predict(rows[0][200:]), NAMES)
    assert ("expected_f" in found) == (average == "samples")
    if average == "samples":
        assert_allclose(label_sets("s.csv")[1], decider.expected_f(rows[0][200:]), atol=1e-6)
    names = {path.name for path in files.iterdir()}
    assert names == {"d.fgfm", "new.csv", "p.csv", "s.csv", "y.csv"}
    lines = printed.stdout.splitlines()
    expected = np.mean(decider.expected_f(rows[0][:200]))
    f = evaluate_decider(fgfm.FDecider(average=average), rows[0][:200], rows[1][:200]).f
    assert lines[2:4] == [
        "rows           200",
        f"labels         4, {rows[1][:200].sum() / 200:.2f} per row",
    ]
    assert (
        lines[4] == f"measure        {'F1 of rows' if average == 'samples' else average + ' F1'}"
    )
    assert lines[5] == f"expected       {expected:.4f}"
    assert lines[6] == "obtained       by 5-fold cross-validation:"
    assert [line.split()[-4] for line in lines[7:10]] == [f"{value.f:.4f}" for value in f.values()]


def test_options_are_passed_on(rows, files):
    values = logit(np.clip(rows[0][:200], 0.001, 0.999))
    pd.DataFrame(values).to_parquet("z.parquet")
    with LabelSetWriter("sets.jsonl", ["0", "1", "2", "3"]) as writer:
        writer.write(rows[1][:200], None)
    (files / "rules.json").write_text('{"forbidden": ["1"]}')
    options = "--beta 2 --calibration isotonic --nonempty no --zero-division 0 --scores"
    options += " --min-labels 1 --max-labels 2 --folds 0 --constraints rules.json -j 1"
    printed = run_ok(
        "tune", "z.parquet", "sets.jsonl", "-o", "d.fgfm", *options.split(), "--json"
    ).stdout
    report = json.loads(printed)
    assert report["cross_validation"] is None
    assert (report["rows"], report["labels"], report["beta"]) == (200, 4, 2.0)
    decider = fgfm.load("d.fgfm")
    params = decider.get_params()
    assert params.pop("constraints").forbidden in (("1",), (1,))
    given = {"beta": 2.0, "calibration": "isotonic", "nonempty": False, "zero_division": 0.0}
    given |= {"scores": True, "min_labels": 1, "max_labels": 2}
    expected = fgfm.FDecider(**given).get_params()
    expected.pop("constraints")
    assert params == expected
    run_ok("decide", "z.parquet", "--with", "d.fgfm", "--wide", "-o", "s.csv")
    found = pd.read_csv("s.csv").to_numpy()[:, :4]
    assert_array_equal(found, decider.predict(values))
    assert not found[:, 1].any()
    assert found.sum(axis=1).max() <= 2


def test_one_label_is_a_binary_classifier(rows, files):
    pd.read_csv("p.csv")[["red"]].to_csv("p1.csv", index=False)
    pd.DataFrame(rows[1][:200, 0], columns=["red"]).to_csv("y1.csv", index=False)
    report = json.loads(run_ok("tune", "p1.csv", "y1.csv", "-o", "d.fgfm", "--json").stdout)
    assert (report["average"], report["labels"]) == ("macro", 1)
    run_ok("decide", "p1.csv", "--with", "d.fgfm", "-o", "s.csv")
    decider = fgfm.FDecider().fit(rows[0][:200, 0], rows[1][:200, 0])
    sets = pd.read_csv("s.csv", keep_default_na=False)["labels"]
    assert_array_equal(sets == "red", decider.predict(rows[0][:200, 0]) == 1)


def test_many_rows_are_sampled_for_the_cross_validation(rows, files, monkeypatch):
    monkeypatch.setattr("fgfm.cli._tune._MOST_ROWS", 100)
    printed = run_ok(
        "tune", "p.csv", "y.csv", "--ids", "id", "-o", "d.fgfm", "--folds", "3"
    ).stdout
    assert "obtained       by 3-fold cross-validation of 100 random rows:\n" in printed


def test_labels_that_were_not_observed(files):
    whole = pd.read_csv("y.csv", dtype=str)
    gaps = whole["id"].isin(["d3", "d50"])
    whole.assign(red=whole["red"].mask(gaps)).to_csv("gaps.csv", index=False)
    whole[~gaps].to_csv("less.csv", index=False)
    table = pd.read_csv("p.csv")
    table[~table["id"].isin(["d3", "d50"])].to_csv("p_less.csv", index=False)
    options = ["--ids", "id", "--json", "-o", "d.fgfm"]
    found = run_ok("tune", "p.csv", "gaps.csv", *options, "--missing-labels")
    expected = json.loads(run_ok("tune", "p_less.csv", "less.csv", *options).stdout)
    same = ("rows", "labels_per_row", "expected_f", "cross_validation")
    report = json.loads(found.stdout)
    assert [report[name] for name in same] == [expected[name] for name in same]
    assert "2 of 200 rows left out" in found.stderr


@pytest.mark.filterwarnings("default")
def test_few_rows_have_no_cross_validation(files):
    (files / "p2.csv").write_text("a,b\n0.1,0.7\n0.8,0.6\n")
    (files / "y2.csv").write_text("a,b\n0,1\n1,1\n")
    done = run_ok("tune", "p2.csv", "y2.csv", "-o", "d.fgfm")
    assert "cross-validation" not in done.stdout
    assert "fgfm: warning: n_samples=2: FDecider learns little" in done.stderr


def test_output_fits_the_terminal(rows, files):
    folder = files / ("long" * 20)
    folder.mkdir()
    (files / "p.csv").rename(folder / "p.csv")
    out = folder / ("decider" * 12 + ".fgfm")
    printed = run_ok("tune", folder / "p.csv", "y.csv", "--ids", "id", "-o", out).stdout
    assert max(map(len, printed.splitlines())) <= 80


INVALID = {
    "logits": ("a,b\n-3,2\n1,1\n", "a,b\n1,0\n0,1\n", "p1.csv, row 0, column 'a': -3.0 is not a"),
    "one row": (
        "a,b\n0.3,0.2\n",
        "a,b\n1,0\n",
        "n_samples=1: FDecider needs at least 2 validation rows",
    ),
    "no label": (
        "a,b\n" + "0.3,0.2\n" * 30,
        "a,b\n" + "0,0\n" * 30,
        "y has no positive label: validation rows",
    ),
    "rows": ("a,b\n0.3,0.2\n0.1,0.2\n", "a,b\n1,0\n", "y1.csv: there are 1 row, and p1.csv has 2"),
    "names": ("a,b\n0.3,0.2\n0.1,0.2\n", "a,c\n1,0\n0,1\n", "'c' is not a label of the prob"),
    "text": ("a,b\n0.3,x\n0.1,y\n", "a,b\n1,0\n0,1\n", "'x' is not a probability, nor are 1 fur"),
}


@pytest.mark.parametrize("case", INVALID)
def test_invalid_files_give_one_line(files, case):
    proba, labels, message = INVALID[case]
    (files / "p1.csv").write_text(proba)
    (files / "y1.csv").write_text(labels)
    (files / "d.fgfm").write_text("old")
    assert_one_line_error(run("tune", "p1.csv", "y1.csv", "-o", "d.fgfm"), message)
    assert (files / "d.fgfm").read_text() == "old"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "p.csv"], "-o is p.csv, as is p.csv: they must be two files"),
        (["-o", "none/d.fgfm"], "there is no folder none"),
        (["-o", "d.fgfm", "--average", "binary"], "average is 'binary'"),
        (["-o", "d.fgfm", "--calibration", "platt"], "calibration is 'platt'"),
        (["-o", "d.fgfm", "--nonempty", "maybe"], "--nonempty is 'maybe'"),
        (["-o", "d.fgfm", "--folds", "1"], "folds is 1: it must be 2 or more"),
        (
            ["-o", "d.fgfm", "--average", "macro", "--min-labels", "9"],
            "min_labels is 9, but there",
        ),
    ],
)
def test_invalid_options_give_one_line(files, options, message):
    assert_one_line_error(run("tune", "p.csv", "y.csv", "--ids", "id", *options), message)
    assert sorted(path.name for path in files.iterdir()) == ["new.csv", "p.csv", "y.csv"]


def test_with_refuses_other_options_and_files(files, model):
    run_ok("tune", "p.csv", "y.csv", "--ids", "id", "-o", "d.fgfm", "--folds", "0")
    for option in (["--beta", "1"], ["--average", "samples"], ["--max-labels", "2"], ["--logits"]):
        result = run("decide", "new.csv", "--ids", "id", "--with", "d.fgfm", *option)
        assert_one_line_error(result, f"{option[0]} is an option on the decision, and --with is")
    result = run("decide", "new.csv", "--ids", "id", "--with", model)
    assert_one_line_error(result, "holds FClassifier: it must hold a fitted FDecider")
    result = run("decide", "new.csv", "--ids", "id", "--with", "p.csv")
    assert_one_line_error(result, "p.csv is damaged, or is not a model saved by fgfm")
    fgfm.save(fgfm.FDecider(), "unfitted.fgfm")
    result = run("decide", "new.csv", "--ids", "id", "--with", "unfitted.fgfm")
    assert_one_line_error(result, "holds FDecider: it must hold a fitted FDecider")
    pd.read_csv("new.csv").rename(columns={"id": "name"}).to_csv("named.csv", index=False)
    result = run("decide", "named.csv", "--with", "d.fgfm")
    assert_one_line_error(result, "'name' is not a label of the decider: there are 'red'")
    assert result.stderr.endswith("(option: --ids)\n")
    assert not (files / "s.csv").exists()


def test_model_of_foreign_classes_is_no_decider(rows, files):
    from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier

    fgfm.save(GradientBoostingRegressor(n_estimators=2).fit(rows[0], rows[0][:, 0]), "trees.fgfm")
    result = run("decide", "new.csv", "--ids", "id", "--with", "trees.fgfm")
    assert_one_line_error(result, "holds sklearn.tree._tree.Tree: it must hold a fitted FDecider")
    fgfm.save(RandomForestClassifier(2).fit(*rows), "forest.fgfm")
    result = run("decide", "new.csv", "--ids", "id", "--with", "forest.fgfm")
    assert_one_line_error(result, "holds RandomForestClassifier: it must hold a fitted FDecider")


def test_folder_with_decider(rows, files):
    tune = ["tune", "p.csv", "y.csv", "--ids", "id", "-o", "d.fgfm", "--average", "macro"]
    run_ok(*tune)
    (files / "parts").mkdir()
    pd.read_csv("new.csv").to_parquet("parts/0.parquet")
    command = ["decide", "parts", "--ids", "id", "-o", "sets"]
    result = run(*command, "--average", "macro")
    assert_one_line_error(
        result, "pass one file, or a decider, which decides row by row (option: --with)"
    )
    command += ["--with", "d.fgfm", "--json"]
    assert json.loads(run_ok(*command).stderr)["kept"] == 0
    report = json.loads(run_ok(*command).stderr)
    assert (report["kept"], report["mean_expected_f"]) == (1, None)
    run_ok(*tune, "--beta", "2")
    assert json.loads(run_ok(*command).stderr)["kept"] == 0  # another decider


@pytest.mark.filterwarnings("ignore:min_precision=0.7 is not certified")
def test_floors_are_passed_on(rows, files):
    options = ["--average", "macro", "--min-precision", "0.7", "--confidence", "0.8"]
    run_ok("tune", "p.csv", "y.csv", "--ids", "id", "-o", "d.fgfm", "--folds", "0", *options)
    expected = fitted(rows, average="macro", min_precision=0.7, confidence=0.8)
    found = fgfm.load("d.fgfm")
    assert found.get_params() == expected.get_params() | {"n_jobs": -1}
    assert_array_equal(found.predict(rows[0][200:]), expected.predict(rows[0][200:]))
    command = ["tune", "p.csv", "y.csv", "--ids", "id", "-o", "e.fgfm", "--min-recall", "2"]
    assert_one_line_error(run(*command), "min_recall is 2")
