"""The command ``fgfm reproduce``."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest

from command_line import assert_one_line_error, run, run_ok, started
from fgfm.paper import reproduce

FEW = ["--reps", "1", "--sizes", "50", "--dags", "1,4", "--interactions", "none"]
MORE = ["--sizes", "50,100", "--dags", "1,4", "--interactions", "none"]


def test_command_prints_the_table_and_names_the_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = [*FEW, "--methods", "gfm,ilf", "--estimates", "both", "-o", "here", "-j", "1"]
    done = run_ok("reproduce", *arguments)
    assert "Published estimates" in done.stdout
    assert "Our estimates" in done.stdout
    assert "DAG 4 (8)" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "4 networks computed" in done.stderr
    assert "summary.json, published/results.csv, ours/results.csv" in " ".join(done.stderr.split())
    assert (tmp_path / "here" / "figure.svg").is_file()
    assert (tmp_path / "here" / "ours" / "results.csv").is_file()
    again = run_ok("reproduce", *arguments)
    assert again.stdout == done.stdout
    assert "nothing to compute: here contains all results" in again.stderr


def test_base_learner_by_name(tmp_path):
    done = run_ok("reproduce", *FEW, "--learner", "logistic", "--out", str(tmp_path), "-j", "1")
    assert "Mean F1 on test rows, LogisticRegression base learner" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sizes", "50,x"], "fgfm: --sizes is '50,x'"),
        (["--dags", "9"], "fgfm: structures[0] is 9"),
        (["--dags", "a+b"], "fgfm: --dags is 'a+b'"),
        (["--dags", "40+"], "fgfm: 4 parents and a factor of 40 labels"),
        (["--methods", "gmf"], "fgfm: methods[0] is 'gmf'"),
        (["--estimates", "x"], "fgfm: estimates is 'x'"),
        (["--learner", "svm"], "fgfm: --learner is 'svm': it must be one of ridge, logistic"),
        (["--reps", "0"], "fgfm: reps is 0"),
        (["--out", "/dev/null/x"], "fgfm: "),
    ],
)
def test_errors_are_one_sentence(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert_one_line_error(run("reproduce", *arguments), message)


def reproduced(folder, *, reps, jobs):
    """Start the program in a session of its own."""
    arguments = [*MORE, "--reps", reps, "--out", folder, "--jobs", jobs]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return started("reproduce", *arguments, start_new_session=True, **pipes)


def wait_for_networks(folder, count, process):
    end = time.monotonic() + 120
    while len(list(folder.glob("published/networks/*.json"))) < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.mark.slow
def test_killed_runs_continue_and_end_the_same(tmp_path):
    settings = {"reps": 3, "sizes": [50, 100], "structures": [1, 4], "interactions": "none"}
    whole = reproduce(tmp_path / "one", **settings)
    other = tmp_path / "other"
    for count in (1, 3):
        with reproduced(other, reps=3, jobs=2) as process:
            wait_for_networks(other, count, process)
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    steps = []
    assert reproduce(other, progress=lambda *s: steps.append(s), **settings).runs == whole.runs
    assert steps[0][1] <= 3


@pytest.mark.slow
def test_control_c_explains_how_to_continue(tmp_path):
    with reproduced(tmp_path / "here", reps=100, jobs=1) as process:
        wait_for_networks(tmp_path / "here", 1, process)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "the same command continues from there" in errors
    assert "Traceback" not in errors
