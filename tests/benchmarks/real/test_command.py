"""The command ``python -m benchmarks.real``."""

from __future__ import annotations

import os

import pytest

from benchmarks.real.__main__ import main, make_parser


def test_command_prints_a_table_and_writes_files(folder, tmp_path, capsys):
    arguments = [os.fspath(folder), "--datasets", "a", "--rules", "default,half", "-j", "1"]
    arguments += ["-o", os.fspath(tmp_path / "out")]
    main(arguments)
    first = capsys.readouterr()
    assert "rank, F1: means over the data sets" in first.out
    assert max(map(len, first.out.splitlines())) <= 80
    assert "1 task computed" in first.err
    assert "table.md" in first.err
    command = (tmp_path / "out" / "table.md").read_text().splitlines()[0]
    assert "python -m benchmarks.real" in command
    main(arguments)
    again = capsys.readouterr()
    assert "nothing to compute" in again.err
    assert again.out == first.out


def test_errors_are_one_line(folder, tmp_path, capsys):
    with pytest.raises(SystemExit) as caught:
        main([os.fspath(folder), "--learners", "x", "-o", os.fspath(tmp_path / "out")])
    assert caught.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("python -m benchmarks.real: learners[0] is 'x'")


def test_lists_may_be_repeated():
    options = make_parser().parse_args(["--rules", "half,lp", "--rules", "chain"])
    assert options.rules == ["half", "lp", "chain"]
    assert options.data == []


def test_help_names_rules_learners_and_packages(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    for word in ("two-step", "forest", "napkinxc", "openml:yeast"):
        assert word in text
