"""Properties of all displays: legible text, and matplotlib as an optional dependency."""

from __future__ import annotations

import sys
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import fgfm.plotting
from fgfm.plotting import CalibrationDisplay, DecisionDisplay, ReportDisplay

LONG = [f"regulation of the transport of protein {k} across the membrane" for k in range(150)]
FIGURES = {
    "own": None,
    "constrained": {"layout": "constrained"},
}


def shown_ticks(axis):
    low, high = sorted(axis.get_view_interval())
    return [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]


def check_legible(display):
    """Check that no text is cut off, and that no two names overlap."""
    display.figure_.draw_without_rendering()
    ax, page = display.ax_, display.figure_.bbox
    texts = [ax.title, ax.xaxis.label, ax.yaxis.label, *ax.get_legend().get_texts()]
    texts += [*ax.texts, *shown_ticks(ax.xaxis), *shown_ticks(ax.yaxis)]
    for text in texts:
        if text.get_text():
            box = text.get_window_extent()
            assert page.x0 - 1 <= box.x0, text
            assert box.x1 <= page.x1 + 1, text
            assert page.y0 - 1 <= box.y0, text
            assert box.y1 <= page.y1 + 1, text
    boxes = [text.get_window_extent() for text in shown_ticks(ax.yaxis)]
    for first, second in pairwise(boxes):
        assert abs(first.y0 - second.y0) > 0.8 * min(first.height, second.height)
    assert not ax.title.get_window_extent().overlaps(ax.get_legend().get_window_extent())


def report_of(names):
    """Return a report with random values."""
    rules = ["decider", "p > 0.5", "tuned"]
    index = pd.MultiIndex.from_product([[*names, "overall"], rules], names=["label", "decision"])
    f = np.random.default_rng(0).random(len(index))
    return pd.DataFrame({"f": f, "low": f - 0.1, "high": f + 0.1, "verdict": "level"}, index=index)


@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize(
    ("m", "names"),
    [
        (6, "short"),
        (150, "long"),
        pytest.param(6, "long", marks=pytest.mark.slow),
        pytest.param(20, "short", marks=pytest.mark.slow),
        pytest.param(20, "long", marks=pytest.mark.slow),
        pytest.param(150, "short", marks=pytest.mark.slow),
    ],
)
def test_text_is_legible(m, names, figure):
    p = np.random.default_rng(m).random((1, m)) ** (m / 6)
    given = LONG[:m] if names == "long" else [f"label{k}" for k in range(m)]
    for make in (
        lambda ax: DecisionDisplay(p[0], p[0] > 0.4, label_names=given).plot(ax),
        lambda ax: CalibrationDisplay(p[0], p[0]).plot(ax),
        lambda ax: ReportDisplay(report_of(given)).plot(ax),
    ):
        ax = None if FIGURES[figure] is None else plt.subplots(**FIGURES[figure])[1]
        check_legible(make(ax))


@pytest.mark.parametrize("display", fgfm.plotting.__all__)
def test_without_matplotlib(display, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    data = {"ReportDisplay": (report_of("ab"),)}
    of_display = data.get(display, ([0.1, 0.5], [0.0, 1.0]))
    display_of_data = getattr(fgfm.plotting, display)(*of_display)
    with pytest.raises(
        ImportError, match=f"^{display} needs matplotlib: pip install 'fgfm\\[plot"
    ):
        display_of_data.plot()


@pytest.mark.parametrize(
    "display",
    [
        CalibrationDisplay([0.2], [0.1]),
        DecisionDisplay([0.9], [1]),
        ReportDisplay(report_of("ab")),
    ],
    ids=lambda display: type(display).__name__,
)
def test_plot_again_makes_a_new_figure(display):
    before = display.plot().ax_
    assert display.plot() is display
    assert display.ax_ is not before
    assert display.ax_.get_title() == before.get_title()
