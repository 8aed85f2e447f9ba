"""Data and helpers for the tests of the program ``fgfm``."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline
from typer.testing import CliRunner

import fgfm
from fgfm.cli._app import app
from fgfm.io import FeatureEncoder

PROGRAM = [sys.executable, "-W", "error", "-m", "fgfm.cli"]
NAMES = ("red", "green", "blue", "dark")


def make_rows(n=120, seed=0):
    """Return features and dependent labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)).round(3)
    logits = X[:, :4] * [2.0, 1.5, 1.0, 2.0] + rng.logistic(size=(n, 1)) - [0, 0.5, 1, 1.5]
    Y = (logits + rng.logistic(size=(n, 4)) > 0).astype(np.uint8)
    return X, Y


def save_arff(path, X, Y=None, label_names=NAMES, feature_names=None):
    """Write a data set whose labels are declared, as ARFF of MEKA."""
    names = [f"x{j}" for j in range(1, X.shape[1] + 1)] if feature_names is None else feature_names
    labels = [] if Y is None else list(label_names)
    values = (
        X.tolist()
        if Y is None
        else [[*x, *y] for x, y in zip(X.tolist(), Y.tolist(), strict=True)]
    )
    quoted = [name.replace("\\", "\\\\").replace("'", "\\'") for name in [*names, *labels]]
    kinds = ["numeric"] * len(names) + ["{0,1}"] * len(labels)
    head = [f"@attribute '{name}' {kind}" for name, kind in zip(quoted, kinds, strict=True)]
    relation = f"@relation 'r: -C -{len(labels)}'" if labels else "@relation r"
    rows = [",".join(map(repr, row)) for row in values]
    path.write_text("\n".join([relation, *head, "@data", *rows, ""]))


def run(*arguments, stdin=None):
    """Run a command in this process, at 80 columns."""
    texts = [str(argument) for argument in arguments]
    return CliRunner().invoke(app, texts, input=stdin, env={"COLUMNS": "80"})


def run_ok(*arguments, stdin=None):
    """Run a command that must succeed."""
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == 0, (result.stderr, result.exception)
    return result


def notes_of(result):
    """Return what a command printed to standard error, without the lines on its progress."""
    lines = result.stderr.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("fgfm: ["))


def assert_one_line_error(result, message):
    """Assert that a command ended with one line that contains the message."""
    assert result.exit_code == 2, (result.stdout, result.exception)
    assert result.stdout == ""
    assert notes_of(result).startswith("fgfm: ")
    assert notes_of(result).count("\n") == 1
    assert message in result.stderr


@contextmanager
def started(*arguments, **options):
    """Start the program as a process, which is killed at the end if it still runs."""
    command = [*PROGRAM, *map(str, arguments)]

    def stop_by_signals():  # which a background job of a shell, or nohup, ignores
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)

    options["preexec_fn"] = stop_by_signals
    with subprocess.Popen(command, **options) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


@contextmanager
def started_on_terminal(*arguments):
    """Start the program with a terminal of 80 columns as standard error; yield both."""
    terminal, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    try:
        with started(*arguments, stdout=subprocess.DEVNULL, stderr=theirs, env=env) as process:
            os.close(theirs)
            yield process, terminal
    finally:
        os.close(terminal)


def read_terminal(terminal, until=None):
    """Return what a program writes to a terminal, to its end or to some text."""
    seen = b""
    while until is None or until not in seen:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        seen += part
    return seen


def fit_in_python(data, learner=None, **params):
    """Fit the model that ``fgfm fit`` should fit."""
    learner = fgfm.StackClassifier(random_state=0) if learner is None else learner
    model = fgfm.FClassifier(make_pipeline(FeatureEncoder(), learner), random_state=0, **params)
    return model.fit(data.X, pd.DataFrame(data.Y, columns=list(data.label_names)))


def label_sets(path):
    """Return the label sets of a CSV file, and the expected F-measures."""
    frame = pd.read_csv(path, keep_default_na=False)
    return [set(filter(None, cell.split(";"))) for cell in frame["labels"]], frame["expected_f"]


def names_of(labels, names):
    """Return the label sets of an (n, m) array."""
    return [{names[j] for j in np.flatnonzero(row)} for row in np.asarray(labels)]
