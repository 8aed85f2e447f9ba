"""The text tables fit a terminal and contain what they should."""

from __future__ import annotations

from pathlib import Path

import pytest

from fgfm.experiments import PaperResults, PaperRun, format_tables
from fgfm.experiments._cell import METHODS
from fgfm.experiments._summary import summarise
from paper_records import SETTINGS, make_records


def results_of(records, **settings):
    settings = SETTINGS | settings
    run = PaperRun(records, summarise(records, settings))
    return PaperResults({settings["estimates"]: run}, Path())


def test_tables_show_structures_and_the_best_methods(small):
    lines = format_tables(small).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "Published estimates (as in the authors' scripts)"
    assert "DAG 2 (4+4)" in lines
    assert sum("*" in line for line in lines) >= 4  # a best method in every row
    assert "The paper's findings (2 of 100 distributions):" in lines


def test_our_estimates_are_reported_without_verdicts():
    records = make_records({"gfm": [0.5, 0.6, 0.7], "ilf": [0.4, 0.5, 0.6]})
    text = format_tables(results_of(records, estimates="ours", reps=100))
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
