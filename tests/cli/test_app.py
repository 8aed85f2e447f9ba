"""The program as a whole: help, version and width."""

from __future__ import annotations

import ast
import os
import pty
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer

import fgfm
import fgfm.cli
import fgfm.io
from command_line import make_rows, read_terminal, run, run_ok, started, started_on_terminal
from fgfm.cli._app import app

RNG = np.random.default_rng(0)
COMMANDS = ["demo", "fit", "predict", "decide", "tune", "evaluate"]


def test_version():
    assert run_ok("--version").stdout == f"fgfm {fgfm.__version__}\n"


def test_help_lists_all_commands():
    printed = run_ok("--help").stdout
    assert all(f"  {name} " in printed for name in COMMANDS)
    assert "..." not in printed.partition("Commands:")[2]  # no summary is cut off


def test_program_without_arguments_shows_what_it_can_do():
    printed = run_ok().stdout
    assert all(f"  fgfm {name}" in printed for name in COMMANDS)
    assert max(map(len, printed.splitlines())) <= 80
    assert printed.count("\n") <= 24  # of a terminal


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_examples_and_fits_the_terminal(name):
    printed = run_ok(name, "--help").stdout
    assert "Examples:" in printed
    assert max(map(len, printed.splitlines())) <= 80


def test_results_fit_the_terminal(folder, tmp_path):
    data = folder / "long.arff"
    path = tmp_path / ("model" * 10 + ".fgfm")
    for arguments in (
        ["fit", data, "-o", path],
        ["evaluate", data, "--folds", "2"],
        ["evaluate", data, "--model", path],
    ):
        printed = run_ok(*arguments).stdout
        assert max(map(len, printed.splitlines())) <= 80, printed


def test_messages_are_wrapped_on_a_terminal(folder):
    command = ["fit", folder / "all.csv", "-l", "red", "-e", "no such learner", "-o", "m.fgfm"]
    with started_on_terminal(*command) as (process, terminal):
        seen = read_terminal(terminal).decode()
        assert process.wait() == 2
    message = run(*command).stderr
    shown = seen[seen.index("fgfm: ") :]  # after the progress bar
    assert max(map(len, shown.splitlines())) <= 80 < len(message)
    assert " ".join(shown.split()) == message.strip()


PROGRESS = [
    ("fit {data} -e forest -o {out}/m.fgfm", ["models", "left"]),
    ("evaluate {data} -e ridge --folds 2", ["reading all.arff", " of 2: fitting models"]),
    ("evaluate {data} --model {model}", ["deciding 120 rows"]),
    ("tune {out}/p.csv {out}/y.csv -o {out}/d.fgfm", ["reading", "folds"]),
    (
        "reproduce --reps 40 --sizes 500 --dags 1,4 --interactions none --out {out} --jobs 1",
        ["networks", "/80", "left"],
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("command", "shown"), PROGRESS)
def test_progress_on_a_terminal_and_in_a_file(folder, model, tmp_path, command, shown):
    for name, values in zip(
        "py", (RNG.random((60, 4)), RNG.integers(2, size=(60, 4))), strict=True
    ):
        pd.DataFrame(values, columns=list("abcd")).to_csv(tmp_path / f"{name}.csv", index=False)
    arguments = command.format(data=folder / "all.arff", model=model, out=tmp_path).split()
    with started(*arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        lines = process.stderr.read().decode().splitlines()
        assert process.wait() == 0
    assert lines[0].startswith("fgfm: [0 s] ")
    assert not any("\x1b" in line for line in lines)
    if "reproduce" in arguments:
        shutil.rmtree(tmp_path / "published")
    with started_on_terminal(*arguments) as (process, terminal):
        seen = read_terminal(terminal).decode()
        assert process.wait() == 0
    assert all(text in seen for text in shown), seen


EVIL = "a\x1b]title\x07\x1b[2J\rb\x9b1m\u202ec"
SHOWN = r"a\x1b]title\x07\x1b[2J\rb\x9b1m\u202ec"


@pytest.fixture(scope="module")
def evil(tmp_path_factory):
    """A table whose labels, columns and categories try to control the terminal."""
    path = tmp_path_factory.mktemp("evil") / "evil.parquet"
    X, Y = make_rows(60)
    frame = pd.DataFrame(X, columns=[f"{EVIL} {j}" for j in range(5)])
    frame[f"{EVIL} place"] = np.where(X[:, 4] > 0, EVIL, "south")
    frame[f"{EVIL} never"] = 0
    labels = {f"label {EVIL} {j}": Y[:, j] for j in range(4)} | {f"label {EVIL}": 0}
    frame.assign(**labels).to_parquet(path)
    return path


def assert_plain(text):
    assert not set(text) & set("\x1b\x07\r\x9b\u202e"), repr(text)


def test_names_in_files_do_not_control_the_terminal(evil, tmp_path):
    model, table, report = (tmp_path / name for name in ("m.fgfm", "p.csv", "report.html"))
    labels = ["--labels", "label *"]
    table.write_text(f'"{EVIL}",b\n0.5,"{EVIL}"\n', newline="")
    for arguments, status in (
        (["fit", evil, *labels, "-e", "ridge", "-o", model], 0),
        (["evaluate", evil, *labels, "-e", "ridge", "--folds", "2", "--report", report], 0),
        (["predict", model, evil, "-o", tmp_path / "sets.csv"], 0),
        (["fit", evil, "--labels", "other *", "-o", model], 2),
        (["decide", table], 2),
    ):
        result = run(*arguments)
        assert result.exit_code == status, (result.stderr, result.exception)
        assert_plain(result.stdout)
        assert_plain(result.stderr)
    assert SHOWN in run_ok("fit", evil, *labels, "-e", "ridge", "-o", model).stdout
    assert SHOWN in report.read_text()
    assert_plain(report.read_text())


def test_tables_do_not_control_the_terminal(tmp_path):
    table = tmp_path / "p.parquet"
    pd.DataFrame({EVIL: [0.9], "b": [0.2]}).to_parquet(table)
    assert EVIL.replace('"', "") in run_ok("decide", table).stdout.replace('"', "")  # a pipe
    terminal, theirs = pty.openpty()
    with started("decide", table, stdout=theirs, stderr=subprocess.DEVNULL) as process:
        os.close(theirs)
        seen = read_terminal(terminal).decode()
        assert process.wait() == 0
    os.close(terminal)
    assert SHOWN in seen
    assert_plain(seen.replace("\r\n", "\n"))


def long_options(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))


def test_texts_name_only_options_that_there_are():
    """Messages and help name options of their command, or of one that the line names."""
    commands = typer.main.get_command(app).commands
    options = {
        name: {opt for p in command.params for opt in (*p.opts, *p.secondary_opts)} | {"--help"}
        for name, command in commands.items()
    }
    every = set().union(*options.values()) | {"--version"}
    for path in sorted(Path(fgfm.cli.__file__).parent.glob("*.py")):
        if path.stem == "_report":  # variables of CSS are written like options
            continue
        own = options.get(path.stem.removeprefix("_"), every)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for line in re.split(r"\n|; ", node.value):
                    other = re.search(r"fgfm ([a-z]+)", line)
                    allowed = own | options.get(other[1] if other else "", set())
                    assert long_options(line) <= allowed, (path.name, line)


def test_arguments_of_data_errors_are_options():
    """A hint has the option of the same name, if the command has it: some command must."""
    names = {p.name for c in typer.main.get_command(app).commands.values() for p in c.params}
    found = set()
    for path in Path(fgfm.io.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "arguments":
                found |= {c.value for c in ast.walk(node.value) if isinstance(c, ast.Constant)}
    assert "labels" in found
    assert found <= names


def test_unknown_option_is_refused():
    assert run("fit", "a.csv", "--parameters", "x").exit_code == 2
