"""The command ``fgfm decide``."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time

import numpy as np
import pandas as pd
import pytest

from command_line import PROGRAM, assert_one_line_error, run, run_ok, started
from fgfm.decision import Constraints
from fgfm.io import decide


@pytest.fixture
def source(tmp_path):
    """A table of probabilities."""
    proba = np.random.default_rng(0).random((300, 3)).round(4)
    pd.DataFrame(proba, columns=["a", "b", "c"]).to_csv(tmp_path / "p.csv", index=False)
    return tmp_path / "p.csv"


ROWS = "300 rows, mean expected F "
OPTIONS = [
    (
        ["--beta", "2", "--nonempty", "--zero-division", "0", "--wide", "--ids", "a"],
        {"beta": 2.0, "nonempty": True, "zero_division": 0.0, "wide": True, "ids": ["a"]},
        ROWS,
    ),
    (
        ["--average", "macro", "--measure", "jaccard"],
        {"average": "macro", "measure": "jaccard"},
        "300 rows, mean expected Jaccard index of labels ",
    ),
    (["--average", "micro"], {"average": "micro"}, "300 rows, expected F of all labels "),
    (
        ["--constraints", "rules.json", "--min-labels", "1", "--max-labels", "2"],
        {
            "constraints": Constraints(required=["a"], groups=[["b", "c"]]),
            "min_labels": 1,
            "max_labels": 2,
        },
        ROWS,
    ),
]


@pytest.mark.parametrize(("options", "same", "text"), OPTIONS)
def test_options_are_those_of_python(source, tmp_path, monkeypatch, options, same, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.json").write_text('{"required": ["a"], "groups": [["b", 2]]}')
    printed = run_ok("decide", source, "-o", "s.csv", *options, "--stats").stderr
    report = decide(source, "t.csv", **same)
    assert (tmp_path / "s.csv").read_bytes() == (tmp_path / "t.csv").read_bytes()
    assert printed.startswith(f"{text}{report.mean_expected_f:.4f}\n")


def test_names_of_ids_are_separated_by_commas(tmp_path):
    (tmp_path / "p.csv").write_text("id,place,a,b\n7,north,0.9,0.2\n8,south,0.1,0.6\n")
    printed = run_ok("decide", tmp_path / "p.csv", "--ids", "id,place").stdout
    assert printed.startswith("id,place,labels,expected_f\n7,north,a,")
    assert run_ok("decide", tmp_path / "p.csv", "--ids", "id", "--ids", "place").stdout == printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"require": ["a"]}', "rules.json: constraints: there is no 'require'; did you mean 're"),
        ('{"required": ["aa"]}', "required has label 'aa': there is no such label; did you mean"),
        ('{"required": ["a"], "forbidden": [0]}', "label 0 ('a') is required and forbidden"),
        ('["a"]', "rules.json: it must be a JSON object of constraints"),
        ('{"required": ', "rules.json: it is not JSON: "),
        ("", "rules.json: no such file"),
    ],
)
def test_invalid_constraints_give_one_line(source, tmp_path, text, message):
    if text:
        (tmp_path / "rules.json").write_text(text)
    result = run("decide", source, "--constraints", tmp_path / "rules.json")
    assert_one_line_error(result, message)


def test_logits_are_suggested(tmp_path):
    (tmp_path / "z.csv").write_text("a,b\n-1.5,2\n0.5,-3\n")
    result = run("decide", tmp_path / "z.csv")
    assert_one_line_error(result, "row 0, column 'a': -1.5 is not a probability: probabilities")
    assert result.stderr.endswith("; apply a sigmoid to logits (options: --ids, --logits)\n")
    assert run_ok("decide", tmp_path / "z.csv", "--logits").stdout.startswith(
        "labels,expected_f\nb,"
    )


def test_notations_of_csv(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.csv").write_text("a;b\n0.5;0.2\n")
    assert run_ok("decide", "p.csv").stdout == "labels,expected_f\na,0.466667\n"
    (tmp_path / "p.csv").write_text("a;b\n0,5;0,2\n")
    assert_one_line_error(
        run("decide", "p.csv"),
        "row 0, column 'a': '0,5' is not a probability: declare what the column holds, or leave "
        "it out (options: --decimal, --ids)",
    )
    assert run_ok("decide", "p.csv", "--decimal", ",").stdout.endswith("\na,0.466667\n")
    (tmp_path / "p.csv").write_text("0.5,0.2\n0.1,0.3\n")
    result = run("decide", "p.csv")
    assert_one_line_error(result, "p.csv, line 1: the first row, '0.5,0.2', has only numbers")
    assert result.stderr.endswith("(option: --header or --no-header)\n")
    report = run_ok("decide", "p.csv", "--no-header", "--json", "-o", "s.csv").stderr
    assert json.loads(report)["rows"] == 2
    report = run_ok("decide", "p.csv", "--header", "--json", "-o", "s.csv").stderr
    assert json.loads(report)["rows"] == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
def test_full_disk_is_reported_with_the_file(source, format):
    result = run("decide", source, "-o", "/dev/full", "--output-format", format)
    assert_one_line_error(result, "fgfm: /dev/full: no space left on device")


def test_standard_input_to_standard_output(source, tmp_path):
    command = [*PROGRAM, "decide", "-", "--stats"]
    result = subprocess.run(
        command, input=source.read_bytes(), capture_output=True, timeout=120, check=True
    )
    decide(source, tmp_path / "s.csv")
    assert result.stdout == (tmp_path / "s.csv").read_bytes()
    errors = result.stderr.decode()
    assert errors.startswith("300 rows, mean expected F 0.")
    assert "peak memory" in errors


def test_report_as_json(source, tmp_path):
    result = run_ok("decide", source, "-o", tmp_path / "s.jsonl", "--json")
    assert result.stdout == ""
    report = json.loads(result.stderr)
    assert report["rows"] == 300
    assert {"average", "mean_expected_f", "seconds", "kept", "peak_mebibytes"} <= set(report)


def test_folder_is_resumed(tmp_path):
    (tmp_path / "p").mkdir()
    for name in ("1.parquet", "2.parquet"):
        pd.DataFrame({"a": [0.2, 0.9], "b": [0.7, 0.1]}).to_parquet(tmp_path / "p" / name)
    command = ["decide", tmp_path / "p", "-o", tmp_path / "s"]
    report = json.loads(run_ok(*command, "--json").stderr)
    assert (report["rows"], report["kept"]) == (4, 0)
    assert "2 files already up to date" in run_ok(*command, "--stats").stderr


def test_invalid_input_gives_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.csv").write_text("a,b\n0.1,x\n")
    result = run("decide", "p.csv")
    assert_one_line_error(
        result, "fgfm: p.csv, row 0, column 'b': 'x' is not a probability: declare"
    )
    assert result.stderr.endswith("(option: --ids)\n")
    assert_one_line_error(run("decide", "p.csv", "--ids", "b", "--beta", "0"), "beta is 0")
    assert_one_line_error(run("decide", "p.csv", "-o", "p.csv"), "they must be two files")
    assert (tmp_path / "p.csv").read_text() == "a,b\n0.1,x\n"


@pytest.mark.slow
def test_closed_output_ends_the_program_quietly():
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with started("decide", "-", **pipes) as process:
        process.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(b"a,b\n" + b"0.25,0.75\n" * 2_000_000)
            process.stdin.close()
        errors = process.stderr.read()
        assert process.wait(60) in (0, 141)
    assert b"Traceback" not in errors


@pytest.mark.slow
@pytest.mark.parametrize(
    ("redirected", "message"), [("p.csv >&-", "standard output"), ("- <&-", "standard input")]
)
def test_closed_standard_streams_raise(tmp_path, redirected, message):
    (tmp_path / "p.csv").write_text("a,b\n0.1,0.2\n")
    command = f"{' '.join(PROGRAM)} decide {redirected}"
    result = subprocess.run(
        ["sh", "-c", command], capture_output=True, cwd=tmp_path, timeout=120, check=False
    )
    assert result.returncode == 2
    assert message in result.stderr.decode()
    assert b"Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("stop", "seconds"),
    [
        (signal.SIGKILL, 0.2),
        (signal.SIGTERM, 0.2),
        (signal.SIGHUP, 0.2),
        pytest.param(signal.SIGKILL, 0.0, marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, 0.0, marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, 0.2, marks=pytest.mark.slow),
    ],
)
def test_stopped_program_leaves_no_partial_result(tmp_path, stop, seconds):
    out = tmp_path / "s.csv"
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    with started("decide", "-", "-o", out, **pipes) as process:
        process.stdin.write(b"a,b\n" + b"0.25,0.75\n" * 1_000_000)
        process.stdin.flush()  # the program waits for more
        time.sleep(seconds)
        for _ in range(60):  # an interrupt may be lost while Python starts
            os.kill(process.pid, stop)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1)
                break
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        process.wait(60)
        # 128 and the number of the signal, unless it came while Python started
        codes = (-signal.SIGKILL,) if stop == signal.SIGKILL else (128 + stop, -stop)
        assert process.returncode in codes
    assert not out.exists()
    if stop != signal.SIGKILL:
        assert not list(tmp_path.iterdir())
