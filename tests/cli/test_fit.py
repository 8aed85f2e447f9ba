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
from sklearn.preprocessing import MaxAbsScaler

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
    save_npz,
    started_on_terminal,
)
from fgfm.io import load
from fgfm.store import foreign_classes

TABLES = ("all.csv", "all.parquet", "all.jsonl")


@pytest.mark.parametrize(
    ("name", "options", "params"),
    [
        ("all.csv", ["--labels", "red,green,blue,dark"], {}),
        (
            "all.csv",
            ["--labels", "-4", "-e", "logistic", "--set", "C=0.5"],
            {"estimator": LogisticRegression(C=0.5, max_iter=1000)},
        ),
        ("all.parquet", ["--labels", "-4", "--no-scale"], {"scaler": "passthrough"}),
        ("all.jsonl", ["--labels", "red,green,blue,dark"], {}),
        ("all.arff", ["-e", "ridge"], {"estimator": "ridge"}),
        ("all.svm", ["-e", "ridge"], {"estimator": "ridge", "scaler": MaxAbsScaler()}),
        ("all.xmc", [], {}),
        ("all.npz", ["--beta", "2", "--nonempty", "no"], {"beta": 2.0, "nonempty": False}),
    ],
)
def test_every_format_gives_the_model_of_python(folder, tmp_path, name, options, params):
    path, target = tmp_path / "model.fgfm", tmp_path / "sets.csv"
    fitted = run_ok("fit", folder / name, *options, "--factors", "independent", "-o", path)
    assert "rows     120\nfeatures 5\nlabels   4" in fitted.stdout
    assert fitted.stderr == ""
    run_ok("predict", path, folder / name, "-o", target)

    data = load(folder / name, labels=-4 if name in TABLES else None)
    expected = fit_in_python(data, **params)
    decision = expected[-1].decide(expected[:-1].transform(data.X))
    found, expected_f = label_sets(target)
    assert found == names_of(decision.labels, data.label_names)
    assert_allclose(expected_f, decision.expected_f, atol=1e-6)
    saved = fgfm.load(path)
    assert saved.steps[0][0] == "encoder"
    assert list(saved[-1].label_names_in_) == list(data.label_names)


def test_average_of_the_model_is_that_of_predict(folder, tmp_path):
    path, target = tmp_path / "model.fgfm", tmp_path / "sets.csv"
    run_ok("fit", folder / "all.npz", "-e", "ridge", "--average", "macro", "-o", path)
    model = fgfm.load(path)
    assert model[-1].average == "macro"
    assert model[-1].thresholds_.shape == (4,)
    printed = run_ok("predict", path, folder / "all.npz", "--wide", "-o", target)
    decision = model[-1].decide(model[:-1].transform(load(folder / "all.npz").X))
    assert (pd.read_csv(target).to_numpy() == decision.labels).all()
    assert f"mean expected F1 of labels {decision.expected_f.mean():.3f}" in printed.stderr


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("table.csv", ["--labels", "red,green", "--labels", "blue,dark"]),
        ("tags.csv", ["--labels", "tags", "--separator", ";"]),
    ],
)
def test_saved_model_reads_data_frames(folder, tmp_path, name, options):
    path, target = tmp_path / "model.fgfm", tmp_path / "sets.csv"
    factors = ["--factors", "green,red|dark", "--method", "tilted"]
    run_ok("fit", folder / name, *options, "--drop", "id", *factors, "-o", path)
    assert path.stat().st_mode & 0o777 == 0o666 & ~_umask()
    model = fgfm.load(path)
    assert sorted(map(len, model[-1].factors_)) == [1, 1, 2]
    run_ok("predict", path, folder / "new.csv", "-o", target)
    frame = pd.read_csv(folder / "new.csv").drop(columns="id")
    names = [str(name) for name in model[-1].label_names_in_]
    assert label_sets(target)[0] == names_of(model.predict(frame), names)


def _umask():
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def test_decimal_commas(dataset, tmp_path):
    frame = pd.DataFrame(dataset.X, columns=dataset.feature_names)
    frame = frame.assign(**dict(zip(NAMES, dataset.Y.T, strict=True)))
    frame.to_csv(tmp_path / "d.csv", index=False, sep=";", decimal=",")
    command = ["fit", tmp_path / "d.csv", "--labels", ",".join(NAMES), "-o", tmp_path / "m.fgfm"]
    command += ["--factors", "independent", "--delimiter", ";"]
    assert_one_line_error(run(*command), "(options: --decimal, --category)")
    run_ok(*command, "--decimal", ",")
    options = ["--delimiter", ";", "--decimal", ",", "-o", tmp_path / "s.csv"]
    run_ok("predict", tmp_path / "m.fgfm", tmp_path / "d.csv", *options)
    found, _ = label_sets(tmp_path / "s.csv")
    assert found == names_of(fit_in_python(dataset).predict(dataset.X), NAMES)


def test_number_that_is_the_name_of_a_column_raises(tmp_path):
    (tmp_path / "d.csv").write_text("x,1,2\n" + "1,1,0\n0,0,1\n" * 5)
    command = ["fit", tmp_path / "d.csv", "-o", tmp_path / "m.fgfm", "--factors", "independent"]
    assert_one_line_error(run(*command, "--labels", "1"), "write '[1]' for the column")
    run_ok(*command, "--labels", "[1]")


def test_unchecked_trees_are_loaded_if_trusted(folder, tmp_path):
    path, target = tmp_path / "forest.fgfm", tmp_path / "sets.csv"
    fitted = run_ok(
        "fit", folder / "all.npz", "-e", "sklearn.ensemble:GradientBoostingClassifier",
        "--set", "n_estimators=5", "--set", "max_depth=3", "--factors", "independent",
        "--calibration", "none", "-o", path,
    )  # fmt: skip
    assert "--trust sklearn.tree._tree.Tree" in fitted.stderr
    predict = ["predict", path, folder / "all.npz", "-o", target]
    assert_one_line_error(run(*predict), "give --trust sklearn.tree._tree.Tree")
    assert not target.exists()
    run_ok(*predict, "--trust", "sklearn.tree._tree.Tree")
    learner = fgfm.load(path, trusted=["sklearn.tree._tree.Tree"])[-1].estimator
    assert (learner.n_estimators, learner.max_depth) == (5, 3)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("knn", []),
        ("naive-bayes", []),
        ("svm", []),
        ("tree", []),
        pytest.param("boosting", ["--set", "max_iter=5"], marks=pytest.mark.slow),
        pytest.param("extra-trees", ["--set", "n_estimators=5"], marks=pytest.mark.slow),
    ],
)
def test_learners_by_name(folder, tmp_path, name, settings):
    path = tmp_path / "model.fgfm"
    options = [*settings, "--dense", "--factors", "independent"]
    run_ok("fit", folder / "all.svm", "-e", name, *options, "-o", path)
    assert not foreign_classes(path) or name == "knn"
    trust = [option for cls in foreign_classes(path) for option in ("--trust", cls)]
    run_ok("predict", path, folder / "all.svm", "-o", tmp_path / "sets.csv", *trust)
    model = fgfm.load(path, trusted=trust[1::2])
    names = [str(name) for name in model[-1].label_names_in_]
    sets = names_of(model.predict(load(folder / "all.svm").X), names)
    assert label_sets(tmp_path / "sets.csv")[0] == sets


def test_data_file_is_not_overwritten(folder, tmp_path):
    data = tmp_path / "all.csv"
    data.write_bytes((folder / "all.csv").read_bytes())
    (tmp_path / "link.csv").symlink_to(data)
    before = data.read_bytes()
    for out in (data, tmp_path / "link.csv"):
        result = run("fit", data, "--labels", ",".join(NAMES), "-o", out)
        assert_one_line_error(result, "they must be two files")
    assert data.read_bytes() == before


@pytest.mark.parametrize(
    ("module", "extra"), [("skops.io", "fgfm[cli]"), ("pandas", "fgfm[data]")]
)
def test_missing_library_is_named(folder, monkeypatch, tmp_path, module, extra):
    monkeypatch.setitem(sys.modules, module, None)
    result = run("fit", folder / "all.npz", "-o", tmp_path / "m")
    assert_one_line_error(result, f"pip install '{extra}'")


@pytest.mark.filterwarnings("default")
def test_warnings_are_one_line_each(folder, tmp_path):
    options = ["-e", "network", "--set", "max_iter=2", "--set", "hidden_layer_sizes=(3,)"]
    options += ["--factors", "independent", "-o", tmp_path / "model.fgfm"]
    errors = run_ok("fit", folder / "all.npz", *options).stderr
    assert errors.count("fgfm: warning: ") == 1
    assert "Maximum iterations (2) reached" in errors.splitlines()[0]


@pytest.mark.slow
def test_progress_bar_on_a_terminal(folder, tmp_path):
    command = ["fit", folder / "all.npz", "--factors", "single", "-o", tmp_path / "model.fgfm"]
    with started_on_terminal(*command) as (process, terminal):
        seen = read_terminal(terminal)
        assert process.wait() == 0
    assert b"models" in seen
    assert b"/5" in seen
    assert b"left" in seen


@pytest.mark.parametrize(
    "options",
    [
        ["--jobs", 2],
        ["-e", "ridge"],
        ["-e", "forest", "--set", "n_estimators=2000", "--factors", "single"],
    ],
)
def test_interrupt_ends_with_one_line_and_no_file(options, tmp_path):
    X, Y = make_rows(3000)
    X = np.hstack([X, np.random.default_rng(0).normal(size=(len(X), 400))])
    save_npz(tmp_path / "many.npz", X, Y, label_names=NAMES)
    command = ["fit", tmp_path / "many.npz", *options, "-o", tmp_path / "model.fgfm"]
    with started_on_terminal(*command) as (process, terminal):
        seen = read_terminal(terminal, until=b"models")
        process.send_signal(signal.SIGINT)
        seen += read_terminal(terminal)
        assert process.wait() == 130
    assert b"fgfm: stopped" in seen
    assert b"Traceback" not in seen
    assert os.listdir(tmp_path) == ["many.npz"]


def test_settings_are_literals_or_texts(folder, tmp_path):
    path = tmp_path / "model.fgfm"
    settings = ["--set", "n_neighbors=3", "--set", "weights=distance", "--set", "n_jobs=none"]
    options = ["--factors", "independent", "-o", path]
    run_ok("fit", folder / "all.npz", "-e", "knn", *settings, *options)
    learner = fgfm.load(path, trusted=foreign_classes(path))[-1].estimator
    assert (learner.n_neighbors, learner.weights, learner.n_jobs) == (3, "distance", None)


def test_labels_are_stored_by_name(folder, model):
    assert np.array_equal(fgfm.load(model)[-1].label_names_in_, NAMES)
