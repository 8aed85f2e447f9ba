"""LabelGraphDisplay: labels, edges and factors of a graph."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from fgfm import FGFMClassifier, ILFCompo
from fgfm.plotting import LabelGraphDisplay


def test_from_estimator(fitted):
    display = LabelGraphDisplay.from_estimator(fitted)
    assert [factor.tolist() for factor in fitted.factors_] == [[0], [1, 3], [2]]
    assert display.figure_ is display.ax_.figure
    assert display.ax_.get_title() == "4 labels in 3 factors"
    assert [text.get_text() for text in display.text_] == ["a", "b", "c", "d"]
    places = np.asarray(display.nodes_.get_offsets())
    (edge,) = display.edges_.get_segments()
    np.testing.assert_allclose(edge, places[[1, 3]])
    colors = display.nodes_.get_facecolors()
    np.testing.assert_array_equal(colors[1], colors[3])
    np.testing.assert_array_equal(colors[0], colors[2])
    assert not np.array_equal(colors[0], colors[1])


def test_from_classifier(network):
    model = FGFMClassifier(factors="ilf").fit(*network)
    graph = LabelGraphDisplay.from_estimator(model)
    assert [text.get_text() for text in graph.text_] == ["a", "b", "c", "d"]
    assert graph.ax_.get_title() == "4 labels in 3 factors"


def test_given_axes_and_options(fitted):
    figure, axes = plt.subplots(1, 2)
    graph = LabelGraphDisplay.from_estimator(fitted, ax=axes[0], names=False)
    assert graph.ax_ is axes[0]
    assert graph.figure_ is figure
    assert graph.text_ == []
    names = ["w", "x", "y", "z"]
    graph = LabelGraphDisplay.from_estimator(fitted, label_names=names)
    assert [text.get_text() for text in graph.text_] == names


def test_plot_again_makes_the_same_graph(fitted):
    display = LabelGraphDisplay(fitted.graph_, fitted.factors_)
    first = display.plot().nodes_.get_offsets()
    np.testing.assert_array_equal(display.plot().nodes_.get_offsets(), first)
    assert len(plt.get_fignums()) == 2


def test_stronger_edges_are_wider():
    p = np.ones((4, 4))
    p[0, 1], p[1, 2], p[2, 3] = 1e-4, 1e-12, 1e-8
    display = LabelGraphDisplay.from_p_values(p, correction=None)
    widths = display.edges_.get_linewidths()
    assert np.all(np.diff(widths) > 0.0)
    ends = [segment.mean(axis=0) for segment in display.edges_.get_segments()]
    places = np.asarray(display.nodes_.get_offsets())
    np.testing.assert_allclose(ends[-1], places[[1, 2]].mean(axis=0))
    strengths = np.zeros((4, 4))
    strengths[0, 1] = 5.0
    display = LabelGraphDisplay.from_p_values(p, correction=None, strengths=strengths)
    np.testing.assert_allclose(
        display.edges_.get_segments()[-1], np.asarray(display.nodes_.get_offsets())[[0, 1]]
    )


def test_no_edges():
    assert len(LabelGraphDisplay.from_p_values(np.ones((3, 3))).edges_.get_segments()) == 0
    assert LabelGraphDisplay([[0]], [[0]]).plot().ax_.get_title() == "1 label in 1 factor"


@pytest.mark.parametrize(
    ("sizes", "name"),
    [
        ([3, 2, 1], "label"),
        ([7, 4, 2, 2, 1, 1], "metabolism of lipids"),
        pytest.param(
            [60, 30, 9, 4, 3, 2, 2] + [1] * 40, "label", marks=pytest.mark.slow, id="many"
        ),
        pytest.param([150], "label", marks=pytest.mark.slow, id="large"),
    ],
)
def test_names_do_not_overlap(sizes, name, chains):
    """No two labels are at the same place; names are inside the figure and rarely overlap."""
    p = chains(sizes)
    names = [f"{name} {k}" for k in range(len(p))] if name != "label" else None
    display = LabelGraphDisplay.from_p_values(p, label_names=names)
    places = np.asarray(display.nodes_.get_offsets())
    apart = np.linalg.norm(places[:, None] - places, axis=2)[np.triu_indices(len(p), 1)]
    assert apart.min() > 0.2
    assert len(display.text_) == len(p)
    renderer = display.figure_.canvas.get_renderer()
    display.figure_.draw_without_rendering()
    page = display.figure_.bbox
    boxes = [text.get_window_extent(renderer) for text in display.text_]
    assert all(page.x0 <= box.x0 and box.x1 <= page.x1 for box in boxes)
    overlaps = sum(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])
    assert overlaps <= 0.1 * len(p)


def test_more_than_200_labels_have_no_names():
    graph = np.zeros((201, 201))
    display = LabelGraphDisplay(graph, [[k] for k in range(201)]).plot()
    assert display.text_ == []


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda fitted: LabelGraphDisplay(np.eye(3), [[0, 1]]).plot(),
            r"^factors is \[\[0, 1\]\]: it must contain each of the labels 0 to 2 once$",
        ),
        (
            lambda fitted: LabelGraphDisplay.from_estimator(fitted, label_names=["a"]),
            r"^label_names has 1 names: it must have 4, one per label",
        ),
        (
            lambda fitted: LabelGraphDisplay(
                fitted.graph_, fitted.factors_, strengths=[[1.0]]
            ).plot(),
            r"^strengths has shape \(1, 1\): it must be \(4, 4\)",
        ),
        (
            lambda fitted: LabelGraphDisplay(np.empty((0, 0)), []).plot(),
            r"^graph has shape \(0, 0\): it must have at least one label$",
        ),
        (
            lambda fitted: LabelGraphDisplay.from_p_values(np.ones((3, 3)), correction="x"),
            r"^correction is 'x': it must be one of None, 'bonferroni', 'bh'$",
        ),
    ],
)
def test_invalid_arguments_raise(make, message, fitted):
    with pytest.raises(ValueError, match=message):
        make(fitted)


class Pairs(BaseEstimator):
    """Finds factors without p-values."""

    def fit(self, X, Y):
        self.factors_ = [[0, 1], [2, 3]]
        return self


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        (
            "independent",
            r"^estimator is a FGFMClassifier, which has no effects_: it must be an I",
        ),
        (Pairs(), r"^estimator is a FGFMClassifier with a Pairs as factor_finder_, which has no "),
    ],
)
def test_classifier_without_p_values_raises(factors, message, network):
    model = FGFMClassifier(factors=factors).fit(*network)
    with pytest.raises(ValueError, match=message):
        LabelGraphDisplay.from_estimator(model)


@pytest.mark.parametrize("estimator", [ILFCompo(), FGFMClassifier()])
def test_estimator_that_is_not_fitted_raises(estimator):
    with pytest.raises(NotFittedError):
        LabelGraphDisplay.from_estimator(estimator)
