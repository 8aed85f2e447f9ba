"""The figure: one row of panels per structure, one column per quantity."""

from __future__ import annotations

from pathlib import Path

import pytest

from fgfm.experiments import PaperResults, PaperRun
from fgfm.experiments._cell import METHODS
from fgfm.experiments._figure import draw
from fgfm.experiments._summary import summarise
from paper_records import SETTINGS, make_records


def results_of(*estimates, methods=METHODS):
    runs = {}
    for kind in estimates:
        records = []
        for structure in ("6+2", "8"):
            for n in (50, 100):
                values = {method: [0.5, 0.6, 0.8] for method in methods}
                records += make_records(values, n, structure, "0 1")
        runs[kind] = PaperRun(records, summarise(records, SETTINGS | {"estimates": kind}))
    return PaperResults(runs, Path())


@pytest.mark.parametrize("estimates", [("published",), ("published", "ours")])
def test_means_and_differences_have_plain_axes_of_one_scale(estimates):
    figure = draw(results_of(*estimates))
    rows = 2
    assert len(figure.axes) == rows * (1 + len(estimates))
    means = figure.axes[:: 1 + len(estimates)]
    assert len({ax.get_ylim() for ax in means}) == 1
    assert all(ax.get_yscale() == "linear" for ax in figure.axes)
    differences = [ax for ax in figure.axes if ax not in means]
    assert len({ax.get_ylim() for ax in differences}) == 1
    (legend,) = figure.legends
    shown = [text.get_text() for text in legend.get_texts()]
    assert len(shown) == len(METHODS)
    assert "p > 0.5" in shown
    titles = [ax.get_title() for ax in figure.axes[: 1 + len(estimates)]]
    assert titles[0] == "mean F1"
    assert titles[1] == "F1 minus GFM,\npublished estimates"


@pytest.mark.parametrize("methods", [("gfm",), ("threshold", "bayes")])
def test_methods_without_comparisons_have_one_column(methods):
    assert len(draw(results_of("published", methods=methods)).axes) == 2
