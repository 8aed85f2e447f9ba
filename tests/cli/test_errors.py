"""Invalid arguments and files of the commands on data sets: one line, and no file is left."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler

import fgfm
from command_line import NAMES, assert_one_line_error, make_rows, run, save_npz

CASES = {
    "fit": [
        (["none.npz"], "none.npz"),
        (
            ["all.csv"],
            "does not declare which columns are labels: name them, such as 'red', 'green', 'blue' "
            "and 1 more (0 or 1) (option: --labels)",
        ),
        (["tags.csv"], "name them, such as 'tags' (lists) (option: --labels)"),
        (["tags.csv", "-l", "tag"], "no column is called 'tag': did you mean 'tags'? (option"),
        (["tags.csv", "-l", "tags", "--text", "plase"], "'plase' (did you mean 'place'?) (option"),
        (
            ["all.csv", "-l", "-4", "--date", "x1"],
            "is not a date such as 1999-12-31, nor are ",
        ),
        (
            ["tags.csv", "-l", "tags", "--number", "place"],
            "row 0, column 'place': 'south' is not a number, nor are 119 further cells of 120: "
            "declare what the column holds, or leave it out (options: --category, --text, --drop)",
        ),
        (
            ["tags.csv", "-l", "tags", "--category", "id", "--number", "id"],
            "the column 'id' is both number and category",
        ),
        (["all.csv", "-l", "purple"], "no column is called 'purple': there are 'x1', "),
        (["all.csv", "-l", "-9"], "labels is -9: there are 9 columns"),
        (["all.npz", "-o", "no/m"], "there is no folder"),
        (["all.npz", "-o", "."], "a folder: it must be a file"),
        (["all.npz", "-e", "rigde"], "it must be one of auto, ridge, logistic, forest"),
        (["all.npz", "-e", "no.such:Thing"], "No module named"),
        (["all.npz", "-e", "sklearn.svm:Thing"], "has no attribute 'Thing'"),
        (
            ["all.npz", "-e", "knn", "--set", "k=3"],
            "Invalid parameter 'k' for estimator KNeighbors",
        ),
        (["all.npz", "--set", "k"], "it must be name=value"),
        (["all.npz", "-e", "sklearn.svm:LinearSVC", "--set", "C"], "it must be name=value"),
        (["all.npz", "--factors", "some"], "--factors is 'some': it must be"),
        (["all.npz", "--factors", "red,pink"], "no label 'pink'"),
        (["all.npz", "--factors", "red|red"], "'red' occurs twice"),
        (["all.npz", "--factors", "all.npz"], "all.npz is not a text file"),
        (["all.npz", "--factors", "bad.json"], "bad.json must hold factors as lists of labels"),
        (["all.npz", "--method", "x"], "method is 'x'"),
        (["all.npz", "--calibration", "x"], "calibration is 'x'"),
        (["all.npz", "--nonempty", "x"], "--nonempty is 'x'"),
        (["all.npz", "--beta", "-1"], "beta is -1"),
        (["all.npz", "--jobs", "0"], "n_jobs is 0"),
        (["all.npz", "--split", "x"], "--split is 'x'"),
        (["all.svm", "--split", "train"], "--split is 'train': all.svm has no split"),
        (["all.svm", "-e", "boosting"], "give --dense"),
        (["all.npz", "--format", "x"], "format is 'x'"),
    ],
    "predict": [
        (["all.npz", "all.npz", "-o", "s.csv"], "model saved by fgfm"),
        (["all.csv", "all.npz", "-o", "s.csv"], "model saved by fgfm"),
        (["none.fgfm", "all.npz", "-o", "s.csv"], "none.fgfm: no such file"),
        (["scaler.fgfm", "all.npz", "-o", "s.csv"], "holds StandardScaler: it must hold a fitted"),
        (["model.fgfm", "all.npz", "-o", "-", "--proba", "-"], "they must be two files"),
        (["model.fgfm", "all.npz", "-o", "s.doc"], "has the extension '.doc'"),
        (["model.fgfm", "bad.csv", "-o", "s.csv"], "there are no columns 'x1', 'x2', 'x3' (did"),
        (
            ["model.fgfm", "all.npz", "-o", "s.csv", "--ids", "x"],
            "ids is ['x']: all.npz has no named columns",
        ),
        (["model.fgfm", "new.csv", "-o", "s.csv", "--ids", "x"], "no column 'x' (did you mean 'x"),
        (["model.fgfm", "wide.npz", "-o", "s.csv"], "X has 6 features, but"),
        (["model.fgfm", "all.npz", "-o", "s.csv", "--beta", "nan"], "beta is nan"),
        (["model.fgfm", "all.npz", "--average", "mean"], "average is 'mean': it must be"),
        (["model.fgfm", "all.npz", "--average", "micro", "--max-labels", "1"], "'micro'"),
    ],
    "evaluate": [
        (["new.csv", "--drop", "id"], "(option: --labels)"),
        (["all.npz", "--folds", "1"], "folds is 1: it must be from 2 to 120"),
        (["all.npz", "--inner-folds", "1"], "inner_folds is 1"),
        (["all.npz", "--split", "test", "--test", "all.npz"], "give one of them"),
        (["all.npz", "--test", "all.npz", "--model", "model.fgfm"], "give one of them"),
        (["all.npz", "--split", "train"], "--split is 'train'"),
        (["all.npz", "--test", "long.npz"], "is not a label of training"),
        (["long.npz", "--model", "model.fgfm"], "is not a label of training"),
        (
            ["long.npz", "--model", "named.fgfm"],
            "is not a label of training: there are 'red', 'green'",
        ),
        (
            ["all.npz", "--model", "model.fgfm", "-e", "knn"],
            "--learner is an option for fit",
        ),
        (["all.npz", "--model", "model.fgfm", "--set", "C=1"], "--set is an option for fitting"),
    ],
    "factors": [
        (["all.npz", "--alpha", "2"], "alpha is 2"),
        (["all.npz", "--test", "x"], "test is 'x'"),
        (["all.npz", "--correction", "x"], "correction is 'x'"),
        (["all.npz", "--edges", "-1"], "--edges is -1"),
        (["all.npz", "--graph", "g.bmp"], "must end in one of .png, .pdf, .svg"),
        (["new.csv", "--drop", "id"], "(option: --labels)"),
    ],
}


@pytest.fixture(scope="module")
def faulty(folder, model):
    """The folder of all files, and some that a command refuses."""
    (folder / "bad.json").write_text("[[1]]")
    (folder / "bad.csv").write_text("X1,x-2,y,x4,x5\n1,2,3,4,5\n")
    save_npz(folder / "wide.npz", np.eye(6))
    fgfm.save(StandardScaler().fit(np.eye(5)), folder / "scaler.fgfm")
    X, Y = make_rows()
    named = fgfm.FGFMClassifier(factors="independent").fit(X, pd.DataFrame(Y, columns=NAMES))
    fgfm.save(named, folder / "named.fgfm")
    return folder


@pytest.mark.parametrize(
    ("command", "arguments", "message"),
    [(command, *case) for command, cases in CASES.items() for case in cases],
)
def test_invalid_input_gives_one_line(faulty, monkeypatch, command, arguments, message):
    monkeypatch.chdir(faulty)
    before = set(os.listdir())
    out = ["-o", "m"] if command == "fit" and "-o" not in arguments else []
    assert_one_line_error(run(command, *arguments, *out), message)
    assert set(os.listdir()) == before
