"""The labels as a graph: an edge for each dependence, a colour for each factor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._utils.validation import check_choice
from fgfm.factors._graph import CORRECTIONS, edge_p_values, group_labels
from fgfm.factors._iamb import check_alpha
from fgfm.plotting._figure import checked_names, points_per_unit, pyplot
from fgfm.plotting._graph_layout import factor_layout
from fgfm.plotting._pairs import (
    check_square,
    checked_factors,
    checked_square,
    factor_title,
    finder,
)

__all__ = ["LabelGraphDisplay"]

Floats = npt.NDArray[np.float64]

_ALONE = "0.62"  # a grey, for labels that are a factor by themselves


class LabelGraphDisplay:
    """The labels as a graph: an edge for each dependence, a colour for each factor.

    Every factor has a disc of its own; the larger a factor, the nearer to the middle. The place
    of a label says how many edges are between it and others of its factor. An edge is the wider
    and darker, the stronger the dependence. Labels that are a factor by themselves stand in grey
    rows below.

    Parameters
    ----------
    graph : sparse array or array-like of shape (m, m)
        The edges, symmetric.
    factors : sequence of array-like
        The labels of each factor; those that share none of their edges.
    strengths : array-like of shape (m, m), optional
        Strength of the dependence of each pair; by default all edges look alike.
    label_names : sequence of str, optional
        Names of the labels; by default their numbers.

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
        The names that are shown.

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
            Axes to draw into; by default those of a new figure, which is the larger the more
            labels there are.
        names : bool or "auto", default="auto"
            Whether to write the names; "auto" does up to 200 labels.
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
        plt = pyplot("LabelGraphDisplay")
        from matplotlib.collections import LineCollection, PatchCollection
        from matplotlib.patches import Circle
        from matplotlib.patheffects import withStroke

        graph = sparse.csr_array(self.graph).astype(float)
        check_square(graph.shape, "graph")
        m = graph.shape[0]
        factors = checked_factors(self.factors, m)
        shown = checked_names(self.label_names, m)
        i, j, strength = _edges(graph, self.strengths)
        named = names is True or (names == "auto" and m <= 200)
        letters = np.array([len(name) for name in shown]) if named else None
        places, centres, radii = factor_layout(graph, factors, letters)
        low, high = (centres - radii[:, None]).min(axis=0), (centres + radii[:, None]).max(axis=0)
        if ax is None:
            # An inch between labels, as far as a page allows.
            size = (high - low) * min(1.0, *(np.array([16.0, 12.0]) / (high - low)))
            size = np.maximum(size + np.array([0.0, 0.4]), [4.0, 3.0])  # with a title
            _, ax = plt.subplots(figsize=tuple(size), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        ax.set(xlim=(low[0] - 0.2, high[0] + 0.2), ylim=(low[1] - 0.2, high[1] + 0.2))
        ax.set_aspect("equal")
        ax.set_axis_off()
        unit = points_per_unit(ax)

        colors = _factor_colors(plt, factors, cmap)  # (m, 4)
        together = [k for k, factor in enumerate(factors) if len(factor) > 1]
        discs = [Circle(tuple(centres[k]), radii[k]) for k in together]
        tints = [(*colors[factors[k][0]][:3], 0.10) for k in together]
        ax.add_collection(PatchCollection(discs, facecolors=tints, edgecolors="none", zorder=0))
        crowd = min(1.0, 60.0 / max(1, len(i))) ** 0.5
        relative = strength / strength.max() if len(i) and strength.max() > 0 else np.ones(len(i))
        self.edges_ = LineCollection(
            list(np.stack([places[i], places[j]], axis=1)),  # (E, 2, 2)
            linewidths=np.clip(0.1 * unit, 0.5, 4.5) * (0.15 + relative * (0.25 + 0.75 * crowd)),
            colors=[(0.15, 0.15, 0.15, (0.15 + 0.2 * crowd) + 0.5 * r) for r in relative],
            capstyle="round",
            zorder=1,
        )
        ax.add_collection(self.edges_)
        area = np.clip(0.22 * unit, 2.5, 16.0) ** 2 if node_size is None else node_size
        self.nodes_ = ax.scatter(
            *places.T, s=area, c=colors, edgecolors="white", linewidths=0.8, zorder=2
        )
        self.text_ = []
        if named:
            font = float(np.clip(0.17 * unit, 4.0, 10.0))
            # On the side of a label where fewer edges are.
            side = np.where(graph @ places[:, 1] < graph.sum(axis=1) * places[:, 1], 1.0, -1.0)
            for place, up, name in zip(places, side, shown, strict=True):
                self.text_.append(
                    ax.annotate(
                        name,
                        place,
                        xytext=(0.0, 0.6 * up * np.sqrt(area)),
                        textcoords="offset points",
                        ha="center",
                        va="bottom" if up > 0 else "top",
                        fontsize=font,
                        zorder=3,
                        path_effects=[withStroke(linewidth=0.25 * font, foreground="white")],
                    )
                )
        ax.set_title(factor_title(factors) if title is None else title)
        return self

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
        estimator : ILFCompo or FGFMClassifier
            Fitted; of a classifier, with ``factors="ilf"``, its ``factor_finder_`` is drawn.
        label_names : sequence of str, optional
            Names of the labels; by default those that the estimator has seen.
        ax : matplotlib Axes, optional
            Axes to draw into.
        **options : dict
            Passed on to `plot`.

        Returns
        -------
        LabelGraphDisplay
            The display.
        """
        found, seen = finder(estimator)
        shown = seen if label_names is None else label_names
        strengths = _both_ways(found.effects_, found.rule)
        display = cls(found.graph_, found.factors_, strengths=strengths, label_names=shown)
        return display.plot(ax, **options)

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
        """Draw the labels that p-values join.

        Parameters
        ----------
        p_values : array-like of shape (m, m)
            ``p_values[i, j]`` is the p-value of label i against label j.
        alpha : float, default=0.01
            Level of the tests.
        rule : {"or", "and"}, default="or"
            Draw an edge if either of the two tests rejects, or only if both do.
        correction : {None, "bonferroni", "bh", "by"}, default="bonferroni"
            How p-values are corrected for their number, as in `fgfm.ILFCompo`.
        strengths : array-like of shape (m, m), optional
            Strength of each dependence; by default the logarithm of 1 / p, up to 30.
        label_names : sequence of str, optional
            Names of the labels.
        ax : matplotlib Axes, optional
            Axes to draw into.
        **options : dict
            Passed on to `plot`.

        Returns
        -------
        LabelGraphDisplay
            The display.
        """
        p = checked_square(p_values, "p_values")
        alpha = check_alpha(alpha)
        check_choice(rule, "rule", ("or", "and"))
        check_choice(correction, "correction", CORRECTIONS)
        factors, graph, _ = group_labels(p, -p, alpha, rule, correction=correction)
        if strengths is None:
            strengths = -np.log(np.maximum(edge_p_values(p, rule), np.exp(-30.0)))
        else:
            strengths = _both_ways(checked_square(strengths, "strengths"), rule)
        return cls(graph, factors, strengths=strengths, label_names=label_names).plot(
            ax, **options
        )


def _both_ways(effects: Any, rule: str) -> Floats:
    """Give the strength of each pair, of the stronger test or of the weaker one."""
    return np.asarray((np.fmax if rule == "or" else np.fmin)(effects, np.transpose(effects)))


def _edges(graph: Any, strengths: Any) -> tuple[Any, Any, Floats]:
    """Give the two ends and the strength of each edge, weakest first."""
    i, j = sparse.triu(graph, 1).nonzero()
    if strengths is None:
        return i, j, np.ones(len(i))
    strength = np.nan_to_num(checked_square(strengths, "strengths", graph.shape[0])[i, j])
    order = np.argsort(strength, kind="stable")
    return i[order], j[order], np.maximum(strength[order], 0.0)


def _factor_colors(plt: Any, factors: Sequence[Any], cmap: Any) -> Floats:
    """Give the colour of each label, (m, 4)."""
    from matplotlib.colors import to_rgba

    turns = plt.get_cmap(cmap)
    colors = np.tile(to_rgba(_ALONE), (sum(map(len, factors)), 1))
    together = [factor for factor in factors if len(factor) > 1]
    for k, factor in enumerate(together):
        colors[factor] = turns(k % turns.N if turns.N <= 20 else k / max(1, len(together) - 1))
    return np.asarray(colors)
