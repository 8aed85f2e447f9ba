"""The report: tables that fit a terminal, the figure, and files that are reproducible."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fgfm.paper import PaperResults, format_tables, reproduce, write_report
from fgfm.paper._experiment import METHODS, PaperRun
from fgfm.paper._report import draw
from fgfm.paper._summary import summarise
from paper_records import SETTINGS, make_records

COMMAND = "fgfm reproduce --out <folder>"


def results_of(records, *estimates, reps=3):
    """Return results with the same records for each kind of estimates."""
    runs = {
        kind: PaperRun(records, summarise(records, SETTINGS | {"estimates": kind}, reps))
        for kind in estimates or ["published"]
    }
    return PaperResults(runs, Path())


def test_files_are_complete_and_reproducible(small):
    paths = write_report(small, COMMAND)
    first = {path.name: path.read_bytes() for path in paths}
    assert sorted(first) == [
        "figure.pdf",
        "figure.png",
        "figure.svg",
        "results.csv",
        "summary.json",
        "table.txt",
    ]
    assert first["figure.png"].startswith(b"\x89PNG")
    assert first["figure.pdf"].startswith(b"%PDF")
    assert first["table.txt"].decode() == f"{COMMAND}\n\n{format_tables(small)}"
    lines = first["results.csv"].decode().splitlines()
    assert lines[0] == "structure,n,repetition,learner,method,f,f_exact,factors"
    assert len(lines) == 1 + len(small.runs["published"].records)
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


def test_tables_show_structures_and_the_best_methods(small):
    lines = format_tables(small).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "Published estimates (as in the authors' scripts)"
    assert "DAG 2 (4+4)" in lines
    assert sum("*" in line for line in lines) >= 4  # a best method in every row
    assert "The paper's findings (2 of 100 distributions):" in lines


def test_our_estimates_are_reported_without_verdicts():
    records = make_records({"gfm": [0.5, 0.6, 0.7], "ilf": [0.4, 0.5, 0.6]})
    text = format_tables(results_of(records, "ours", reps=100))
    assert "With our estimates:\n- F-GFM ILF against GFM: " in text
    assert "hold" not in text


@pytest.mark.parametrize("structure", ["2+1", "+".join(["2"] * 30)])
def test_tables_fit_a_terminal_whatever_is_in_them(structure):
    given = []
    for n in [*range(10, 20), 100_000, 1_000_000]:
        given += make_records({m: [0.5, 0.7] for m in METHODS}, n, structure, "0")
    lines = format_tables(results_of(given)).splitlines()
    assert max(map(len, lines)) <= 80
    assert any("1000000" in line for line in lines)


def figure_of(*estimates, methods=METHODS):
    values = {method: [0.5, 0.6, 0.8] for method in methods}
    cells = [(n, structure) for structure in ("6+2", "8") for n in (50, 100)]
    records = [record for cell in cells for record in make_records(values, *cell, "0 1")]
    return draw(results_of(records, *estimates))


@pytest.mark.parametrize("estimates", [("published",), ("published", "ours")])
def test_means_and_differences_have_plain_axes_of_one_scale(estimates):
    figure = figure_of(*estimates)
    assert len(figure.axes) == 2 * (1 + len(estimates))
    means = figure.axes[:: 1 + len(estimates)]
    differences = [ax for ax in figure.axes if ax not in means]
    for alike in (means, differences):
        assert len({ax.get_ylim() for ax in alike}) == 1
    assert all(ax.get_yscale() == "linear" for ax in figure.axes)
    (legend,) = figure.legends
    shown = [text.get_text() for text in legend.get_texts()]
    assert len(shown) == len(METHODS)
    assert "p > 0.5" in shown
    titles = [ax.get_title() for ax in figure.axes[:2]]
    assert titles == ["mean F1", "F1 minus GFM,\npublished estimates"]


@pytest.mark.parametrize("methods", [("gfm",), ("threshold", "bayes")])
def test_methods_without_comparisons_have_one_column(methods):
    assert len(figure_of("published", methods=methods).axes) == 2
