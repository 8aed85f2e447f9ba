"""The command ``fgfm evaluate``."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import fgfm
from command_line import (
    read_terminal,
    run,
    run_ok,
    started_on_terminal,
)
from fgfm.evaluation import evaluate
from fgfm.io import load


def run_json(*arguments):
    return json.loads(run_ok("evaluate", *arguments, "--json").stdout)


def test_cross_validation_agrees_with_python(folder, dataset):
    options = ["--factors", "independent", "--folds", "4", "--inner-folds", "0", "-e", "ridge"]
    found = run_json(folder / "all.npz", *options)
    classifier = fgfm.FGFMClassifier("ridge", factors="independent", random_state=0)
    model = Pipeline([("scaler", StandardScaler()), ("classifier", classifier)])
    expected = evaluate(model, dataset.X, dataset.Y, folds=4, inner_folds=0).as_dict()
    assert found["measures"] == expected["measures"]
    assert found["thresholds"] == expected["thresholds"]
    assert found["gains"] == expected["gains"]
    assert found["protocol"] == "4-fold cross-validation"
    assert found["factors"] == "independent"
    assert found["n_factors"] == [4] * 4
    assert (found["rows"], found["features"], found["labels"]) == (120, 5, 4)


def test_split_two_files_and_fitted_model_agree(folder, tmp_path, dataset, model):
    whole = pd.read_csv(folder / "all.csv")
    whole.iloc[dataset.train].to_csv(tmp_path / "train.csv", index=False)
    whole.iloc[dataset.test].to_csv(tmp_path / "test.csv", index=False)
    options = ["--factors", "single", "--inner-folds", "2", "-e", "ridge"]
    split = run_json(folder / "all.npz", "--split", "test", *options)
    files = run_json(tmp_path / "train.csv", "--test", tmp_path / "test.csv", "-l", "-4", *options)
    fitted = run_json(folder / "all.npz", "--split", "test", "--model", model)
    assert files["measures"] == split["measures"]
    assert fitted["n_rows"] == split["n_rows"] == 40
    for measure, by_rule in split["measures"].items():
        for rule in ("f_optimal", "half"):
            assert_allclose(
                fitted["measures"][measure][rule]["value"], by_rule[rule]["value"], rtol=1e-9
            )


def test_beta_of_a_fitted_model_is_replaced(folder, model):
    sizes = []
    for beta in (1, 3):
        found = run_json(folder / "all.npz", "--split", "test", "--model", model, "--beta", beta)
        assert found["beta"] == beta
        sizes.append(found["measures"]["labels_per_row"]["f_optimal"]["value"])
    assert sizes[0] < sizes[1]


def test_model_without_names_is_evaluated(folder, tmp_path):
    data = load(folder / "all.npz")
    classifier = fgfm.FGFMClassifier(factors="single", random_state=0).fit(data.X, data.Y)
    fgfm.save(classifier, tmp_path / "m.fgfm")
    found = run_json(folder / "all.npz", "--model", tmp_path / "m.fgfm")
    f = found["measures"]["instance_f"]["f_optimal"]["value"]
    assert_allclose(f, classifier.score(data.X, data.Y))


def test_table_shows_measures_gains_and_notes(folder):
    options = ["--factors", "independent", "--folds", "2"]
    table = run_ok("evaluate", folder / "all.npz", *options).stdout
    for text in ("F-optimal", "p > 0.5", "p > t", "instance F1", "gain of F-optimal", "t = "):
        assert text in table
    assert "4 factors (independent); 2-fold cross-validation" in table.replace("\n", " ")


@pytest.mark.filterwarnings("ignore:rows without probability")
def test_contradiction_of_nonempty_raises(tmp_path):
    (tmp_path / "d.csv").write_text("x,k,l\n" + "0.5,0,0\n0.1,0,0\n" * 10)
    result = run(
        "evaluate", tmp_path / "d.csv", "--labels", "k,l", "--nonempty", "yes", "--folds", "2",
        "--inner-folds", "0", "--factors", "independent",
    )  # fmt: skip
    assert result.exit_code == 2
    assert "contradicts nonempty" in result.stderr


@pytest.mark.slow
def test_progress_shows_what_is_done(folder, model):
    data = folder / "all.npz"
    for options, wanted in (
        (["--folds", "2", "--inner-folds", "2"], [" of 6: fitting models"]),
        (["--model", model], ["deciding 120 rows"]),
    ):
        with started_on_terminal("evaluate", data, *options) as (process, terminal):
            seen = read_terminal(terminal).decode()
            assert process.wait() == 0
        assert all(text in seen for text in ["reading all.npz", *wanted]), seen
