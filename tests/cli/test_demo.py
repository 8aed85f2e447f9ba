"""The command ``fgfm demo`` and the films that it generates."""

from __future__ import annotations

import subprocess

import pandas as pd
import pytest

from command_line import PROGRAM, assert_one_line_error, label_sets, run
from fgfm.cli import _demo
from fgfm.cli._films import GENRES, make_films


def test_films_are_the_same_for_a_seed():
    films = make_films(50, random_state=3)
    pd.testing.assert_frame_equal(films, make_films(50, random_state=3))
    pd.testing.assert_frame_equal(films[:20], make_films(20, random_state=3))
    assert not films.equals(make_films(50, random_state=4))


@pytest.mark.slow
def test_demo_prints_its_commands_and_can_be_repeated(tmp_path):
    done = subprocess.run(
        [*PROGRAM, "demo", "--out", tmp_path / "here"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    at = [done.stdout.index(f"$ {command}\n") for command in _demo.COMMANDS]
    assert at == sorted(at)
    assert max(map(len, done.stdout.splitlines()[1:])) <= 80  # after the line with the folder
    files = {path.name for path in (tmp_path / "here").iterdir()}
    assert files == {"films.csv", "new_films.csv", "report.html", "films.fgfm", "sets.csv"}
    sets, expected_f = label_sets(tmp_path / "here" / "sets.csv")
    assert all(row and row <= set(GENRES) for row in sets)
    assert expected_f.between(0.0, 1.0).all()
    shown = (tmp_path / "here" / "sets.csv").read_text().splitlines()[:2]
    assert "\n".join(shown) in done.stdout
    page = (tmp_path / "here" / "report.html").read_text(encoding="utf-8")
    assert _demo.COMMANDS[0] in page
    _demo.write_files(tmp_path / "here", _demo.make_tables())  # a second run is not refused


@pytest.mark.parametrize("name", ["films.csv", "report.html", "sets.csv"])
def test_files_of_others_are_not_replaced(tmp_path, name):
    (tmp_path / name).write_text("mine")
    result = run("demo", "--out", tmp_path)
    assert_one_line_error(result, f"{name} is not a file of this demo")
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"


def test_out_must_be_a_folder(tmp_path):
    (tmp_path / "file").write_text("")
    assert_one_line_error(run("demo", "--out", tmp_path / "file"), "it must be a folder")


def test_a_command_that_fails_ends_the_demo(tmp_path, monkeypatch):
    monkeypatch.setattr(_demo, "COMMANDS", ("fgfm fit missing.csv -o m.fgfm", "fgfm demo"))
    result = run("demo", "--out", tmp_path)
    assert result.exit_code == 2
    assert "$ fgfm demo" not in result.stdout
