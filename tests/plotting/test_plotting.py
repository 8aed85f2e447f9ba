"""Pictures: what is drawn is what was found, and names fit."""

from __future__ import annotations

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

mpl.use("Agg")

import matplotlib.pyplot as plt

import fgfm.plotting
from fgfm import FGFMClassifier, ILFCompo
from fgfm.plotting import LabelGraphDisplay, PValueDisplay
from fgfm.plotting._graph_layout import factor_layout


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def some_p_values(sizes, seed=0):
    """Chains of labels with small p-values, in a random order of the labels."""
    rng = np.random.default_rng(seed)
    m = sum(sizes)
    p = rng.uniform(0.05, 1.0, (m, m))
    start = 0
    for size in sizes:
        for k in range(start + 1, start + size):
            p[k, k - 1] = 10.0 ** -rng.uniform(6.0, 14.0)
        start += size
    order = rng.permutation(m)
    p = p[np.ix_(order, order)]
    np.fill_diagonal(p, np.nan)
    return p


@pytest.fixture(scope="module")
def some_data():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (800, 3))
    Y = X[:, [0, 0, 1, 2]] ^ (rng.random((800, 4)) < 0.2)
    Y[:, 3] |= Y[:, 1]
    return X, pd.DataFrame(Y.astype(int), columns=["a", "b", "c", "d"])


@pytest.fixture(scope="module")
def fitted(some_data):
    return ILFCompo().fit(*some_data)


def test_graph_from_estimator(fitted):
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


def test_p_values_from_estimator(fitted):
    display = PValueDisplay.from_estimator(fitted)
    assert display.order_.tolist() == [1, 3, 0, 2]
    assert [text.get_text() for text in display.ax_.get_xticklabels()] == ["b", "d", "a", "c"]
    shown = display.image_.get_array()
    np.testing.assert_allclose(shown[0, 2], fitted.p_values_[1, 0])
    assert np.ma.getmaskarray(shown).diagonal().all()
    (outline,) = display.outlines_
    assert outline.get_bbox().bounds == (-0.5, -0.5, 2.0, 2.0)
    smaller = np.fmin(fitted.p_values_, fitted.p_values_.T)
    assert display.level == pytest.approx(smaller[1, 3])
    assert display.colorbar_ is not None
    assert PValueDisplay.from_estimator(fitted, colorbar=False).colorbar_ is None


def test_given_axes_and_options(fitted):
    figure, axes = plt.subplots(1, 2)
    graph = LabelGraphDisplay.from_estimator(fitted, ax=axes[0], names=False, title="one")
    matrix = PValueDisplay.from_estimator(fitted, ax=axes[1], names=False, title="two")
    assert graph.ax_ is axes[0]
    assert matrix.ax_ is axes[1]
    assert graph.figure_ is matrix.figure_ is figure
    assert graph.text_ == []
    assert len(axes[1].get_xticks()) == 0
    assert [ax.get_title() for ax in axes] == ["one", "two"]
    names = ["w", "x", "y", "z"]
    graph = LabelGraphDisplay.from_estimator(fitted, label_names=names)
    assert [text.get_text() for text in graph.text_] == names


def test_displays_can_be_drawn_again(fitted):
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


def test_no_edge_at_all():
    p = np.ones((3, 3))
    assert len(LabelGraphDisplay.from_p_values(p).edges_.get_segments()) == 0
    display = PValueDisplay.from_p_values(p)
    assert display.level is None
    assert display.outlines_ == []
    assert display.ax_.get_title() == "3 labels in 3 factors"
    assert LabelGraphDisplay([[0]], [[0]]).plot().ax_.get_title() == "1 label in 1 factor"


@pytest.mark.parametrize("sizes", [[3, 2, 1], [60, 30, 9, 4, 3, 2, 2] + [1] * 40, [150]])
def test_names_are_apart(sizes):
    """No two labels at the same place, names included; all of them inside the figure."""
    p = some_p_values(sizes)
    display = LabelGraphDisplay.from_p_values(p)
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
    assert len(PValueDisplay.from_p_values(p).ax_.get_xticks()) == len(p)


def test_many_labels_have_no_names():
    p = some_p_values([3, 2, 1] * 70)
    assert LabelGraphDisplay.from_p_values(p).text_ == []
    assert len(PValueDisplay.from_p_values(p).ax_.get_xticks()) == 0


@pytest.mark.parametrize("seed", range(3))
def test_layout(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 12, 25)
    members = np.split(rng.permutation(sizes.sum()), np.cumsum(sizes)[:-1])
    m = sizes.sum()
    graph = np.zeros((m, m))
    for factor in members:
        for k in range(1, len(factor)):
            a, b = factor[k], factor[rng.integers(k)]
            graph[a, b] = graph[b, a] = 1.0
    places, centres, radii = factor_layout(sparse.csr_array(graph), members)
    assert np.isfinite(places).all()
    for factor, centre, radius in zip(members, centres, radii, strict=True):
        assert np.linalg.norm(places[factor] - centre, axis=1).max() <= radius
    several = np.flatnonzero(sizes > 1)
    for a, b in zip(*np.triu_indices(len(several), 1), strict=True):
        a, b = several[a], several[b]
        assert np.linalg.norm(centres[a] - centres[b]) >= radii[a] + radii[b]
    alone = np.flatnonzero(sizes == 1)
    if len(alone):
        assert centres[alone, 1].max() < (centres[several, 1] - radii[several]).min()


def test_complete_graph_of_four_is_a_square():
    graph = sparse.csr_array(np.ones((4, 4)) - np.eye(4))
    places, _, _ = factor_layout(graph, [np.arange(4)])
    sides = np.linalg.norm(places - np.roll(places, 1, axis=0), axis=1)
    np.testing.assert_allclose(sides, sides[0], rtol=1e-6)


def test_refusals(fitted):
    for make, sentence in [
        (lambda: LabelGraphDisplay(np.eye(3), [[0, 1]]).plot(), r"^factors must hold each of the"),
        (
            lambda: LabelGraphDisplay.from_estimator(fitted, label_names=["a"]),
            r"^label_names has 1 names: it must have 4, one per label",
        ),
        (
            lambda: LabelGraphDisplay(fitted.graph_, fitted.factors_, strengths=[[1.0]]).plot(),
            r"^strengths has shape \(1, 1\): it must be \(4, 4\)",
        ),
        (lambda: PValueDisplay.from_p_values([0.1]), r"^p_values has shape \(1,\): it must be \("),
        (
            lambda: PValueDisplay(np.empty((0, 0)), []).plot(),
            r"^p_values has shape \(0, 0\): a picture must have at least one label$",
        ),
        (
            lambda: LabelGraphDisplay(np.empty((0, 0)), []).plot(),
            r"^graph has shape \(0, 0\): a picture must have at least one label$",
        ),
    ]:
        with pytest.raises(ValueError, match=sentence):
            make()
    with pytest.raises(NotFittedError):
        LabelGraphDisplay.from_estimator(ILFCompo())
    with pytest.raises(NotFittedError):
        PValueDisplay.from_estimator(ILFCompo())


@pytest.mark.parametrize("display", [LabelGraphDisplay, PValueDisplay])
@pytest.mark.parametrize(
    ("options", "kind", "sentence"),
    [
        ({"rule": "xor"}, ValueError, r"^rule is 'xor': it must be one of 'or', 'and'$"),
        ({"rule": None}, ValueError, r"^rule is None: it must be one of 'or', 'and'$"),
        ({"alpha": 5}, ValueError, r"^alpha is 5: it must be a number in \(0, 1\)$"),
        ({"alpha": "5"}, TypeError, r"^alpha is '5': it must be a number in \(0, 1\)$"),
        (
            {"correction": "holm"},
            ValueError,
            r"^correction is 'holm': it must be one of None, 'bonferroni', 'bh', 'by'$",
        ),
    ],
)
def test_refused_options(display, options, kind, sentence):
    with pytest.raises(kind, match=sentence):
        display.from_p_values(np.ones((3, 3)), **options)


def test_from_classifier(some_data):
    model = FGFMClassifier(factors="ilf").fit(*some_data)
    graph = LabelGraphDisplay.from_estimator(model)
    assert [text.get_text() for text in graph.text_] == ["a", "b", "c", "d"]
    assert graph.ax_.get_title() == "4 labels in 3 factors"
    matrix = PValueDisplay.from_estimator(model)
    assert [text.get_text() for text in matrix.ax_.get_xticklabels()] == ["b", "d", "a", "c"]
    np.testing.assert_array_equal(matrix.p_values, model.factor_finder_.p_values_)


class Pairs(BaseEstimator):
    """Finds factors without any p-value."""

    def fit(self, X, Y):
        self.factors_ = [[0, 1], [2, 3]]
        return self


@pytest.mark.parametrize("display", [LabelGraphDisplay, PValueDisplay])
@pytest.mark.parametrize(
    ("factors", "sentence"),
    [
        (
            "independent",
            r"^estimator is a FGFMClassifier, which has no p_values_: it must be an I",
        ),
        (Pairs(), r"^estimator is a FGFMClassifier with a Pairs as factor_finder_, which has no "),
    ],
)
def test_classifier_without_p_values(display, factors, sentence, some_data):
    model = FGFMClassifier(factors=factors).fit(*some_data)
    with pytest.raises(ValueError, match=sentence):
        display.from_estimator(model)
    with pytest.raises(NotFittedError):
        display.from_estimator(FGFMClassifier())


@pytest.mark.parametrize("display", ["LabelGraphDisplay", "PValueDisplay"])
def test_without_matplotlib(display, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        ImportError, match=f"^{display} needs matplotlib: pip install 'fgfm\\[plot"
    ):
        getattr(fgfm.plotting, display).from_p_values(np.ones((2, 2)))


def test_importing_draws_nothing():
    code = "import sys, fgfm.plotting; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
