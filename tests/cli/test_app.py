"""The program as a whole: help, version and width."""

from __future__ import annotations

import pytest

import fgfm
from command_line import read_terminal, run, run_ok, started_on_terminal

COMMANDS = ["demo", "fit", "predict", "decide", "tune", "evaluate", "factors"]


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
    data = folder / "long.npz"
    path = tmp_path / ("model" * 10 + ".fgfm")
    for arguments in (
        ["fit", data, "--factors", "single", "-o", path],
        ["evaluate", data, "--factors", "independent", "--folds", "2"],
        ["evaluate", data, "--model", path],
        ["factors", data, "--correction", "none", "--alpha", "0.5"],
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


def test_unknown_option_is_refused():
    assert run("fit", "a.csv", "--parameters", "x").exit_code == 2
