"""The files of a report: complete and reproducible."""

from __future__ import annotations

import json

import pytest

from fgfm.experiments import format_tables, reproduce, write_report

COMMAND = "fgfm reproduce --out <folder>"


@pytest.fixture(scope="module")
def paths(small):
    return write_report(small, COMMAND)


def test_report_is_complete_and_reproducible(small, paths):
    assert {path.name for path in paths} == {
        "figure.png",
        "figure.pdf",
        "figure.svg",
        "table.txt",
        "summary.json",
    }
    first = {path.name: path.read_bytes() for path in paths}
    assert first["figure.png"].startswith(b"\x89PNG")
    assert first["figure.pdf"].startswith(b"%PDF")
    assert first["table.txt"].decode() == f"{COMMAND}\n\n{format_tables(small)}"
    summary = json.loads(first["summary.json"])
    assert summary["command"] == COMMAND
    published = summary["runs"]["published"]
    assert len(published["means"]) == 2 * 2 * 6
    assert published["settings"]["structures"] == ["4+4", "2+1"]
    assert published["settings"]["estimates"] == "published"
    write_report(small, COMMAND)
    assert {path.name: path.read_bytes() for path in paths} == first


@pytest.mark.parametrize(
    "methods",
    [
        pytest.param(["gfm"], marks=pytest.mark.slow),
        pytest.param(["threshold"], marks=pytest.mark.slow),
        ["ilf", "true"],
        ["bayes"],
    ],
)
def test_reports_of_few_methods(tmp_path, methods):
    results = reproduce(
        tmp_path,
        estimates="both" if methods == ["ilf", "true"] else "published",
        reps=1,
        sizes=[50],
        structures=[(1, 1)],
        methods=methods,
        interactions="all",
    )
    write_report(results, "command")
    text = format_tables(results)
    assert "Factors of 1+1" in text
    assert max(map(len, text.splitlines())) <= 80
