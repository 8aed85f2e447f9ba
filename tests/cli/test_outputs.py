"""Outputs of the commands: nothing overwrites what a command reads."""

from __future__ import annotations

import os
import shutil

import pytest

from command_line import assert_one_line_error, run, run_ok

pytestmark = pytest.mark.filterwarnings("ignore:n_samples=")

PROBS = "id,a,b\n0,0.9,0.2\n1,0.3,0.6\n"


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.csv").write_text(PROBS)
    (tmp_path / "y.csv").write_text("id,labels\n0,a\n1,b\n")
    (tmp_path / "rules.json").write_text('{"required": ["a"]}')
    run_ok("tune", "p.csv", "y.csv", "--ids", "id", "--folds", "0", "-o", "d.fgfm")
    os.symlink("d.fgfm", "link.fgfm")
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        ["decide", "p.csv", "-o", "p.csv"],
        ["decide", "p.csv", "--with", "d.fgfm", "-o", "d.fgfm", "--output-format", "csv"],
        ["decide", "p.csv", "--with", "link.fgfm", "-o", "d.fgfm", "--output-format", "csv"],
        ["decide", "p.csv", "--constraints", "rules.json", "-o", "./rules.json"],
        ["tune", "p.csv", "y.csv", "--constraints", "rules.json", "-o", "rules.json"],
        ["tune", "p.csv", "y.csv", "-o", "y.csv"],
        ["predict", "d.fgfm", "p.csv", "--constraints", "rules.json", "-o", "rules.json"],
        ["predict", "d.fgfm", "p.csv", "-o", "s.csv", "--proba", "s.csv"],
        ["predict", "d.fgfm", "p.csv", "-o", "-", "--proba", "-"],
        ["evaluate", "p.csv", "-l", "a", "--test", "y.csv", "--report", "y.csv"],
        ["fit", "all.arff", "-o", "all.xml"],
        ["fit", "all.arff", "-l", "labels.xml", "-o", "labels.xml"],
    ],
)
def test_no_output_replaces_an_input(work, folder, command):
    shutil.copy(folder / "all.arff", work)
    (work / "all.xml").write_text("<labels/>")
    (work / "labels.xml").write_text("<labels/>")
    before = {path.name: path.read_bytes() for path in work.iterdir()}
    assert_one_line_error(run(*command), "they must be two files")
    assert {path.name: path.read_bytes() for path in work.iterdir()} == before


def test_a_folder_needs_a_folder_as_target(work):
    os.mkdir("parts")
    assert_one_line_error(run("decide", "parts"), "cannot be written to standard output")
    assert not os.path.exists("-")


def test_ids_0_and_1_are_not_a_label(work):
    assert run_ok("decide", "p.csv").stdout.splitlines()[0] == "id,labels,expected_f"
    assert run_ok("decide", "p.csv").stdout.splitlines()[1].startswith("0,a,")


def test_the_form_of_labels_is_printed(work):
    (work / "t.csv").write_text(
        "x,y,g\n" + "".join(f"{k % 7},{k % 3},a|b\n1,0,c\n" for k in range(9))
    )
    done = run_ok("fit", "t.csv", "-l", "g", "-e", "ridge", "-o", "m.fgfm")
    assert "labels split at '|': a, b, c (3)" in done.stdout
    done = run_ok("tune", "p.csv", "y.csv", "--folds", "0", "-o", "d2.fgfm")
    assert "labels split at ';': a, b (2)" in done.stderr
