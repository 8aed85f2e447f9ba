"""Invalid arguments and files of the commands on data sets: one line, and no file is left."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler

import fgfm
from command_line import NAMES, assert_one_line_error, make_rows, run

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
        (["all.csv", "-l", "-4", "--date", "x1"], "is not a date such as 1999-12-31, nor are "),
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
        (["all.arff", "-o", "no/m"], "there is no folder"),
        (["all.arff", "-o", "."], "a folder: it must be a file"),
        (["all.arff", "-e", "rigde"], "it must be one of auto, ridge, logistic, forest"),
        (["all.arff", "--beta", "-1"], "beta is -1"),
        (["all.arff", "--jobs", "0"], "n_jobs is 0"),
        (["all.arff", "--format", "x"], "format is 'x'"),
    ],
    "predict": [
        (["all.arff", "all.arff", "-o", "s.csv"], "model saved by fgfm"),
        (["all.csv", "all.arff", "-o", "s.csv"], "model saved by fgfm"),
        (["none.fgfm", "all.arff", "-o", "s.csv"], "none.fgfm: no such file"),
        (["scaler.fgfm", "all.arff", "-o", "s.csv"], "holds StandardScaler: it must"),
        (["model.fgfm", "all.arff", "-o", "-", "--proba", "-"], "they must be two files"),
        (["model.fgfm", "all.arff", "-o", "s.doc"], "has the extension '.doc'"),
        (["model.fgfm", "bad.csv", "-o", "s.csv"], "there are no columns 'x1', 'x2', 'x3' (did"),
        (
            ["model.fgfm", "all.svm", "-o", "s.csv", "--ids", "x"],
            "ids is ['x']: all.svm has no named columns",
        ),
        (["model.fgfm", "new.csv", "-o", "s.csv", "--ids", "x"], "no column 'x' (did you mean 'x"),
        (["model.fgfm", "all.arff", "-o", "s.csv", "--beta", "nan"], "beta is nan"),
        (["model.fgfm", "all.arff", "--average", "mean"], "average is 'mean': it must be"),
    ],
    "evaluate": [
        (["new.csv", "--drop", "id"], "(option: --labels)"),
        (["all.arff", "--folds", "1"], "folds is 1: it must be 2 or more"),
        (["all.arff", "--test", "all.arff", "--model", "model.fgfm"], "give one of them"),
        (["all.arff", "--test", "long.arff"], "no column is called 'red'"),
        (["long.arff", "--model", "model.fgfm"], "no column is called 'red'"),
        (
            ["long.arff", "--model", "named.fgfm"],
            "is not a label of training: there are 'red', 'green'",
        ),
        (["all.arff", "--model", "model.fgfm", "-e", "svm"], "--learner is an option for fit"),
    ],
}


@pytest.fixture(scope="module")
def faulty(folder, model):
    """The folder of all files, and some that a command refuses."""
    (folder / "bad.csv").write_text("X1,x-2,y,x4,x5\n1,2,3,4,5\n")
    fgfm.save(StandardScaler().fit(np.eye(5)), folder / "scaler.fgfm")
    X, Y = make_rows()
    named = fgfm.FClassifier().fit(X, pd.DataFrame(Y, columns=NAMES))
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
