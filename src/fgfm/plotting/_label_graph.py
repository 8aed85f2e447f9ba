"""Display of the labels as a graph: an edge for each dependence, a colour for each factor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._utils.text import counted
from fgfm.factors import group_labels
from fgfm.plotting._estimator import factor_finder
from fgfm.plotting._figure import import_pyplot, points_per_unit
from fgfm.plotting._graph_layout import Layout, factor_layout
from fgfm.plotting._validation import (
    check_factors,
    check_label_names,
    check_matrix,
    check_square,
)

__all__ = ["LabelGraphDisplay", "factor_title"]

Floats = npt.NDArray[np.float64]

_SINGLE_COLOR = "0.62"  # grey, for labels that are a factor by themselves


class LabelGraphDisplay:
    """Graph of the labels: an edge for each dependence, a colour for each factor.

    Every factor of several labels has a disc of its own, larger ones near the centre. Distances
    within a factor follow the number of edges between labels. Stronger dependences have wider and
    darker edges. Labels that are a factor by themselves are in grey rows at the bottom.

    Parameters
    ----------
    graph : sparse array or array-like of shape (m, m)
        The edges, symmetric.
    factors : sequence of array-like
        The labels of each factor. There must be no edges between factors.
    strengths : array-like of shape (m, m), optional
        Strength of the dependence of each pair; by default all edges look the same.
    label_names : sequence of str, optional
        Names of the labels; by default their indices.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the graph.
    figure_ : matplotlib Figure
        Figure with the axes.
    nodes_ : matplotlib PathCollection
        The labels.
    edges_ : matplotlib LineCollection
        The edges, weakest first.
    text_ : list of matplotlib Text
        The names shown.

    See Also
    --------
    PValueDisplay : The p-values of all pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from fgfm.plotting import LabelGraphDisplay
    >>> graph = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    >>> display = LabelGraphDisplay(graph, [[0, 1], [2]], label_names=["sad", "quiet", "loud"])
    >>> display.plot().ax_.get_title()
    '3 labels in 2 factors'
    """

    ax_: Any
    figure_: Any
    nodes_: Any
    edges_: Any
    text_: list[Any]

    def __init__(
        self,
        graph: Any,
        factors: Sequence[Any],
        *,
        strengths: Any = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        self.graph = graph
        self.factors = factors
        self.strengths = strengths
        self.label_names = label_names

    def plot(
        self,
        ax: Any = None,
        *,
        names: bool | str = "auto",
        cmap: Any = "tab10",
        node_size: float | None = None,
        title: str | None = None,
    ) -> LabelGraphDisplay:
        """Draw the graph.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into; by default those of a new figure, whose size grows with the number
            of labels.
        names : bool or "auto", default="auto"
            Whether to write the names; "auto" writes up to 200.
        cmap : str or matplotlib Colormap, default="tab10"
            Colours of factors with more than one label, in turn.
        node_size : float, optional
            Area of a label's dot in square points.
        title : str, optional
            Title; by default the numbers of labels and factors.

        Returns
        -------
        LabelGraphDisplay
            The display, with the artists as attributes.
        """
        plt = import_pyplot("LabelGraphDisplay")
        graph = sparse.csr_array(self.graph).astype(float)
        check_square(graph.shape, "graph")
        m = graph.shape[0]
        factors = check_factors(self.factors, m)
        label_names = check_label_names(self.label_names, m)
        i, j, strength = _edges(graph, self.strengths)
        named = names is True or (names == "auto" and m <= 200)
        lengths = np.array([len(name) for name in label_names]) if named else None
        layout = factor_layout(graph, factors, lengths)
        low, high = layout.extent()
        if ax is None:
            # One inch per unit, the distance of neighbours, up to the size of a page.
            size = (high - low) * min(1.0, *(np.array([16.0, 12.0]) / (high - low)))
            size = np.maximum(size + np.array([0.0, 0.4]), [4.0, 3.0])  # with the title
            _, ax = plt.subplots(figsize=tuple(size), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        ax.set(xlim=(low[0] - 0.2, high[0] + 0.2), ylim=(low[1] - 0.2, high[1] + 0.2))
        ax.set_aspect("equal")
        ax.set_axis_off()
        unit = points_per_unit(ax)
        colors = _factor_colors(plt, factors, cmap)  # (m, 4)
        self._draw_discs(factors, layout, colors)
        self._draw_edges(layout.labels[i], layout.labels[j], strength, unit)
        area = np.clip(0.22 * unit, 2.5, 16.0) ** 2 if node_size is None else node_size
        self.nodes_ = ax.scatter(
            *layout.labels.T, s=area, c=colors, edgecolors="white", linewidths=0.8, zorder=2
        )
        self.text_ = []
        if named:
            self._write_names(label_names, layout.labels, graph, unit, float(np.sqrt(area)))
        ax.set_title(factor_title(factors) if title is None else title)
        return self

    def _draw_discs(self, factors: Sequence[Any], layout: Layout, colors: Floats) -> None:
        """Draw a tinted disc behind each factor of several labels."""
        from matplotlib.collections import PatchCollection
        from matplotlib.patches import Circle

        several = [k for k, factor in enumerate(factors) if len(factor) > 1]
        discs = [Circle(tuple(layout.centres[k]), layout.radii[k]) for k in several]
        tints = [(*colors[factors[k][0]][:3], 0.10) for k in several]
        self.ax_.add_collection(
            PatchCollection(discs, facecolors=tints, edgecolors="none", zorder=0)
        )

    def _draw_edges(self, starts: Floats, ends: Floats, strength: Floats, unit: float) -> None:
        """Draw the edges, thinner and lighter if they are weak or many."""
        from matplotlib.collections import LineCollection

        n_edges = len(strength)
        crowd = min(1.0, 60.0 / max(1, n_edges)) ** 0.5  # 1 up to 60 edges, then smaller
        relative = np.ones(n_edges)
        if n_edges and strength.max() > 0:
            relative = strength / strength.max()
        self.edges_ = LineCollection(
            list(np.stack([starts, ends], axis=1)),  # (E, 2, 2)
            linewidths=np.clip(0.1 * unit, 0.5, 4.5) * (0.15 + relative * (0.25 + 0.75 * crowd)),
            colors=[(0.15, 0.15, 0.15, (0.15 + 0.2 * crowd) + 0.5 * r) for r in relative],
            capstyle="round",
            zorder=1,
        )
        self.ax_.add_collection(self.edges_)

    def _write_names(
        self, names: Sequence[str], places: Floats, graph: Any, unit: float, dot: float
    ) -> None:
        """Write each name above or below its dot, on the side with fewer edges."""
        from matplotlib.patheffects import withStroke

        font = float(np.clip(0.17 * unit, 4.0, 10.0))
        y = places[:, 1]
        upwards = np.where(graph @ y < graph.sum(axis=1) * y, 1.0, -1.0)  # neighbours are below
        for place, up, name in zip(places, upwards, names, strict=True):
            self.text_.append(
                self.ax_.annotate(
                    name,
                    place,
                    xytext=(0.0, 0.6 * up * dot),
                    textcoords="offset points",
                    ha="center",
                    va="bottom" if up > 0 else "top",
                    fontsize=font,
                    zorder=3,
                    path_effects=[withStroke(linewidth=0.25 * font, foreground="white")],
                )
            )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        label_names: Sequence[str] | None = None,
        ax: Any = None,
        **options: Any,
    ) -> LabelGraphDisplay:
        """Draw the labels of a fitted `fgfm.ILFCompo`, or of a classifier that has one.

        Parameters
        ----------
        estimator : ILFCompo, FGFMClassifier, or a pipeline that ends with one
            Fitted; of a classifier with ``factors="ilf"`` its ``factor_finder_`` is drawn.
        label_names : sequence of str, optional
            Names of the labels; by default those seen in `fit`.
        ax : matplotlib Axes, optional
            Axes to draw into.
        **options : dict
            Keyword arguments of `plot`.

        Returns
        -------
        LabelGraphDisplay
            The display.
        """
        finder, names = factor_finder(estimator)
        return cls(
            finder.graph_,
            finder.factors_,
            strengths=_symmetric(finder.effects_, finder.rule),
            label_names=names if label_names is None else label_names,
        ).plot(ax, **options)

    @classmethod
    def from_p_values(
        cls,
        p_values: Any,
        *,
        alpha: float = 0.01,
        rule: str = "or",
        correction: str | None = "bonferroni",
        strengths: Any = None,
        label_names: Sequence[str] | None = None,
        ax: Any = None,
        **options: Any,
    ) -> LabelGraphDisplay:
        """Draw the graph that p-values define.

        Parameters
        ----------
        p_values : array-like of shape (m, m)
            ``p_values[i, j]`` is the p-value of label i against label j.
        alpha : float, default=0.01
            Level of the tests.
        rule : {"or", "and"}, default="or"
            Draw an edge if either of the two tests rejects, or only if both do.
        correction : {None, "bonferroni", "bh", "by"}, default="bonferroni"
            Correction for the number of pairs, as in `fgfm.ILFCompo`.
        strengths : array-like of shape (m, m), optional
            Strength of each dependence; by default the logarithm of 1 / p, at most 30.
        label_names : sequence of str, optional
            Names of the labels.
        ax : matplotlib Axes, optional
            Axes to draw into.
        **options : dict
            Keyword arguments of `plot`.

        Returns
        -------
        LabelGraphDisplay
            The display.
        """
        p = check_matrix(p_values, "p_values")
        grouping = group_labels(p, alpha, rule, correction=correction)
        if strengths is None:
            strengths = -np.log(np.maximum(p, np.exp(-30.0)))
        else:
            strengths = check_matrix(strengths, "strengths")
        return cls(
            grouping.graph,
            grouping.factors,
            strengths=_symmetric(strengths, rule),
            label_names=label_names,
        ).plot(ax, **options)


def factor_title(factors: Sequence[Any]) -> str:
    """Return the numbers of labels and factors as text."""
    m = sum(map(len, factors))
    return f"{counted(m, 'label')} in {counted(len(factors), 'factor')}"


def _symmetric(strengths: Any, rule: str) -> Floats:
    """Return the strength of each pair: of the stronger test by "or", of the weaker by "and"."""
    return np.asarray((np.fmax if rule == "or" else np.fmin)(strengths, np.transpose(strengths)))


def _edges(graph: Any, strengths: Any) -> tuple[Any, Any, Floats]:
    """Return the two ends and the strength of each edge, weakest first."""
    i, j = sparse.triu(graph, 1).nonzero()
    if strengths is None:
        return i, j, np.ones(len(i))
    strength = np.nan_to_num(check_matrix(strengths, "strengths", graph.shape[0])[i, j])
    order = np.argsort(strength, kind="stable")
    return i[order], j[order], np.maximum(strength[order], 0.0)


def _factor_colors(plt: Any, factors: Sequence[Any], cmap: Any) -> Floats:
    """Return the colour of each label, (m, 4)."""
    from matplotlib.colors import to_rgba

    cmap = plt.get_cmap(cmap)
    colors = np.tile(to_rgba(_SINGLE_COLOR), (sum(map(len, factors)), 1))
    several = [factor for factor in factors if len(factor) > 1]
    for k, factor in enumerate(several):
        # A qualitative map is used in turn, a continuous one from end to end.
        colors[factor] = cmap(k % cmap.N if cmap.N <= 20 else k / max(1, len(several) - 1))
    return np.asarray(colors)
