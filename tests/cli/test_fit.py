"""The command ``fgfm fit``."""

from __future__ import annotations

import os
import signal
import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

import fgfm
from command_line import (
    NAMES,
    assert_one_line_error,
    fit_in_python,
    label_sets,
    make_rows,
    names_of,
    read_terminal,
    run,
    run_ok,
    save_arff,
    started_on_terminal,
)
from fgfm.io import FeatureEncoder, load

TABLES = ("all.csv", "all.parquet", "all.jsonl")


@pytest.mark.parametrize(
    ("name", "options", "params"),
    [
        ("all.csv", ["--labels", "red,green,blue,dark"], {}),
        (
            "all.csv",
            ["--labels", "-4", "-e", "logistic"],
            {"learner": OneVsRestClassifier(LogisticRegression(max_iter=1000, random_state=0))},
        ),
        ("all.parquet", ["--labels", "-4"], {}),
        ("all.jsonl", ["--labels", "red,green,blue,dark"], {}),
        ("all.arff", ["--average", "macro"], {"average": "macro"}),
        ("all.svm", [], {}),
        ("all.xmc", [], {}),
        ("all.arff", ["--beta", "2"], {"beta": 2.0}),
    ],
)
def test_every_format_gives_the_model_of_python(folder, tmp_path, name, options, params):
    path, target = tmp_path / "model.fgfm", tmp_path / "sets.csv"
    fitted = run_ok("fit", folder / name, *options, "-o", path)
    assert "rows     120\nfeatures 5\nlabels   4" in fitted.stdout
    run_ok("predict", path, folder / name, "--average", "samples", "-o", target)

    data = load(folder / name, labels=-4 if name in TABLES else None)
    decision = fit_in_python(data, **params).decide(data.X, average="samples")
    found, expected_f = label_sets(target)
    assert found == names_of(decision.labels, data.label_names)
    assert_allclose(expected_f, decision.expected_f, atol=1e-6)
    saved = fgfm.load(path)
    assert isinstance(saved.estimator_[0], FeatureEncoder)
    assert list(saved.label_names_in_) == list(data.label_names)


def test_average_of_the_model_is_that_of_predict(folder, tmp_path):
    path, target = tmp_path / "model.fgfm", tmp_path / "sets.csv"
    run_ok("fit", folder / "all.arff", "--average", "macro", "-o", path)
    model = fgfm.load(path)
    assert model.average == "macro"
    assert model.decider_.thresholds_.shape == (4,)
    printed = run_ok("predict", path, folder / "all.arff", "--wide", "-o", target)
    decision = model.decide(load(folder / "all.arff").X)
    assert (pd.read_csv(target) == decision.labels.to_numpy()).all(axis=None)
    assert f"mean expected F1 of labels {decision.expected_f.mean():.3f}" in printed.stderr


def test_decimal_commas(dataset, tmp_path):
    frame = pd.DataFrame(dataset.X, columns=dataset.feature_names)
    frame = frame.assign(**dict(zip(NAMES, dataset.Y.T, strict=True)))
    frame.to_csv(tmp_path / "d.csv", index=False, sep=";", decimal=",")
    command = ["fit", tmp_path / "d.csv", "--labels", ",".join(NAMES), "-o", tmp_path / "m.fgfm"]
    command += ["--delimiter", ";"]
    assert_one_line_error(run(*command), "(options: --decimal, --category)")
    run_ok(*command, "--decimal", ",")
    options = ["--delimiter", ";", "--decimal", ",", "-o", tmp_path / "s.csv"]
    run_ok("predict", tmp_path / "m.fgfm", tmp_path / "d.csv", *options)
    found, _ = label_sets(tmp_path / "s.csv")
    assert found == names_of(fit_in_python(dataset).predict(dataset.X), NAMES)


@pytest.mark.filterwarnings("ignore:n_samples=")
def test_number_that_is_the_name_of_a_column_raises(tmp_path):
    (tmp_path / "d.csv").write_text("x,1,2\n" + "1,1,0\n0,0,1\n" * 5)
    command = ["fit", tmp_path / "d.csv", "-o", tmp_path / "m.fgfm"]
    assert_one_line_error(run(*command, "--labels", "1"), "write '[1]' for the column")
    run_ok(*command, "--labels", "[1]")


@pytest.mark.parametrize(
    "name",
    [
        "ridge",
        "svm",
        pytest.param("forest", marks=pytest.mark.slow),
        pytest.param("extra-trees", marks=pytest.mark.slow),
        pytest.param("boosting", marks=pytest.mark.slow),
    ],
)
def test_learners_by_name(folder, tmp_path, name):
    path = tmp_path / "model.fgfm"
    run_ok("fit", folder / "all.svm", "-e", name, "-o", path)
    run_ok("predict", path, folder / "all.svm", "-o", tmp_path / "sets.csv")
    model = fgfm.load(path)
    names = [str(name) for name in model.label_names_in_]
    data = load(folder / "all.svm")
    assert label_sets(tmp_path / "sets.csv")[0] == names_of(model.predict(data.X), names)
    assert model.score(data.X, data.Y) > 0.6


def test_blank_labels_are_not_observed(folder, tmp_path):
    frame = pd.read_csv(folder / "all.csv")
    frame["red"] = frame["red"].astype(float).where(frame.index % 3 > 0)
    frame.to_csv(tmp_path / "gaps.csv", index=False)
    command = ["fit", tmp_path / "gaps.csv", "-l", "-4", "--missing-labels"]
    run_ok(*command, "-o", tmp_path / "m.fgfm")
    data = load(tmp_path / "gaps.csv", labels=-4, missing_labels=True)
    proba = fgfm.load(tmp_path / "m.fgfm").predict_proba(data.X)
    assert_allclose(proba, fit_in_python(data).predict_proba(data.X))
    assert np.isnan(data.Y[:, 0]).sum() == 40


@pytest.mark.parametrize(("module", "extra"), [("skops", "fgfm[cli]"), ("pandas", "fgfm[data]")])
def test_missing_library_is_named(folder, monkeypatch, tmp_path, module, extra):
    monkeypatch.setitem(sys.modules, module, None)
    result = run("fit", folder / "all.arff", "-o", tmp_path / "m")
    assert_one_line_error(result, f"pip install '{extra}'")


@pytest.mark.parametrize("options", [["--jobs", 2], ["-e", "ridge"], ["-e", "forest"]])
def test_interrupt_ends_with_one_line_and_no_file(options, tmp_path):
    X, Y = make_rows(3000)
    X = np.hstack([X, np.random.default_rng(0).normal(size=(len(X), 400))])
    save_arff(tmp_path / "many.arff", X, Y)
    command = ["fit", tmp_path / "many.arff", *options, "-o", tmp_path / "model.fgfm"]
    with started_on_terminal(*command) as (process, terminal):
        seen = read_terminal(terminal, until=b"models")
        process.send_signal(signal.SIGINT)
        seen += read_terminal(terminal)
        assert process.wait() == 130
    assert b"fgfm: stopped" in seen
    assert b"Traceback" not in seen
    assert os.listdir(tmp_path) == ["many.arff"]
