"""Pictures of label factors: the graph of the labels, and the p-values behind it.

Each display keeps its data, and draws them by ``plot``; ``from_estimator`` does both at once for a
fitted `fgfm.ILFCompo` or a `fgfm.FGFMClassifier` that has one, ``from_p_values`` for the p-values
of any test. Matplotlib is imported by the first picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from fgfm._layout import factor_layout
from fgfm._validation import check_choice
from fgfm.factors._graph import CORRECTIONS, edge_p_values, group_labels
from fgfm.factors._iamb import check_alpha

__all__ = ["LabelGraphDisplay", "PValueDisplay"]

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
        plt = _pyplot("LabelGraphDisplay")
        from matplotlib.collections import LineCollection, PatchCollection
        from matplotlib.patches import Circle
        from matplotlib.patheffects import withStroke

        graph = sparse.csr_array(self.graph).astype(float)
        _check_square(graph.shape, "graph")
        m = graph.shape[0]
        factors = _checked_factors(self.factors, m)
        shown = _checked_names(self.label_names, m)
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
        unit = _points_per_unit(ax)

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
        ax.set_title(_title(factors) if title is None else title)
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
            Fitted; of a classifier its ``factor_finder_`` is drawn.
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
        found, seen = _finder(estimator)
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
        p = _checked_square(p_values, "p_values")
        alpha = check_alpha(alpha)
        check_choice(rule, "rule", ("or", "and"))
        check_choice(correction, "correction", CORRECTIONS)
        factors, graph, _ = group_labels(p, -p, alpha, rule, correction=correction)
        if strengths is None:
            strengths = -np.log(np.maximum(edge_p_values(p, rule), np.exp(-30.0)))
        else:
            strengths = _both_ways(_checked_square(strengths, "strengths"), rule)
        return cls(graph, factors, strengths=strengths, label_names=label_names).plot(
            ax, **options
        )


class PValueDisplay:
    """The p-values of all pairs of labels as a picture, ordered by factor.

    Row i, column j: the test of label i against label j given what matters to label i. The darker,
    the smaller the p-value, on a logarithmic scale. Factors of more than one label are outlined,
    largest first.

    Parameters
    ----------
    p_values : array-like of shape (m, m)
        The p-values, not corrected.
    factors : sequence of array-like
        The labels of each factor.
    level : float, optional
        Largest p-value that made an edge; it is marked on the scale.
    label_names : sequence of str, optional
        Names of the labels; by default their numbers.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the matrix.
    figure_ : matplotlib Figure
        Figure with the axes.
    image_ : matplotlib AxesImage
        The matrix.
    outlines_ : list of matplotlib Rectangle
        One for each factor of more than one label.
    colorbar_ : matplotlib Colorbar, or None
        The scale.
    order_ : ndarray of shape (m,)
        The labels in the order of rows and columns.

    See Also
    --------
    LabelGraphDisplay : The graph that the p-values lead to.

    Examples
    --------
    >>> import numpy as np
    >>> from fgfm.plotting import PValueDisplay
    >>> p = np.array([[np.nan, 0.4, 1e-9], [0.4, np.nan, 0.8], [1e-9, 0.8, np.nan]])
    >>> display = PValueDisplay(p, [[0, 2], [1]])
    >>> display.plot().order_
    array([0, 2, 1])
    """

    ax_: Any
    figure_: Any
    image_: Any
    outlines_: list[Any]
    colorbar_: Any
    order_: npt.NDArray[np.int64]

    def __init__(
        self,
        p_values: Any,
        factors: Sequence[Any],
        *,
        level: float | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        self.p_values = p_values
        self.factors = factors
        self.level = level
        self.label_names = label_names

    def plot(
        self,
        ax: Any = None,
        *,
        smallest: float = 1e-10,
        names: bool | str = "auto",
        cmap: Any = "GnBu_r",
        colorbar: bool = True,
        title: str | None = None,
    ) -> PValueDisplay:
        """Draw the matrix.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into; by default those of a new figure, which is the larger the more
            labels there are.
        smallest : float, default=1e-10
            Darkest p-value; smaller ones look the same.
        names : bool or "auto", default="auto"
            Whether to write the names; "auto" does where they fit.
        cmap : str or matplotlib Colormap, default="GnBu_r"
            Colours.
        colorbar : bool, default=True
            Whether to draw the scale.
        title : str, optional
            Title; by default the numbers of labels and factors.

        Returns
        -------
        PValueDisplay
            The display, with the artists as attributes.
        """
        plt = _pyplot("PValueDisplay")
        from matplotlib.colors import LogNorm
        from matplotlib.patches import Rectangle

        p = _checked_square(self.p_values, "p_values")
        m = len(p)
        factors = _checked_factors(self.factors, m)
        shown = _checked_names(self.label_names, m)
        by_size = sorted(factors, key=lambda factor: -len(factor))  # stable: then by first label
        self.order_ = np.concatenate(by_size)
        if ax is None:
            side = float(np.clip(2.0 + 0.26 * m, 4.0, 15.0))
            _, ax = plt.subplots(figsize=(side + 1.0, side), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        colors = plt.get_cmap(cmap).with_extremes(bad="0.9")
        self.image_ = ax.imshow(
            np.maximum(p[np.ix_(self.order_, self.order_)], smallest),
            norm=LogNorm(vmin=smallest, vmax=1.0),
            cmap=colors,
            interpolation="nearest",
        )
        self.outlines_ = []
        start = 0
        for factor in by_size:
            size = len(factor)
            if size > 1:
                outline = Rectangle(
                    (start - 0.5, start - 0.5),
                    size,
                    size,
                    fill=False,
                    edgecolor="#d62728",
                    linewidth=1.6,
                    clip_on=False,
                )
                self.outlines_.append(ax.add_patch(outline))
            start += size
        cell = abs(_points_per_unit(ax))
        if names is True or (names == "auto" and cell >= 5.0):
            font = float(np.clip(0.8 * cell, 3.5, 10.0))
            ordered = [shown[k] for k in self.order_]
            ax.set_xticks(range(m), ordered, rotation=90, fontsize=font)
            ax.set_yticks(range(m), ordered, fontsize=font)
            ax.tick_params(length=0)
        else:
            ax.set_xticks([])
            ax.set_yticks([])
        ax.spines[:].set_visible(False)
        self.colorbar_ = None
        if colorbar:
            self.colorbar_ = self.figure_.colorbar(
                self.image_, ax=ax, extend="min", shrink=0.7, label="p-value"
            )
            if self.level is not None and self.level > smallest:
                self.colorbar_.ax.axhline(self.level, color="#d62728", linewidth=1.6)
        ax.set_title(_title(factors) if title is None else title)
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        label_names: Sequence[str] | None = None,
        ax: Any = None,
        **options: Any,
    ) -> PValueDisplay:
        """Draw the p-values of a fitted `fgfm.ILFCompo`, or of a classifier that has one.

        Parameters
        ----------
        estimator : ILFCompo or FGFMClassifier
            Fitted; of a classifier its ``factor_finder_`` is drawn.
        label_names : sequence of str, optional
            Names of the labels; by default those that the estimator has seen.
        ax : matplotlib Axes, optional
            Axes to draw into.
        **options : dict
            Passed on to `plot`.

        Returns
        -------
        PValueDisplay
            The display.
        """
        found, seen = _finder(estimator)
        shown = seen if label_names is None else label_names
        cuts = [(cut[0], cut[1]) for cut in found.cuts_]
        p = found.p_values_
        level = _level(p, found.graph_, found.rule, cuts)
        display = cls(p, found.factors_, level=level, label_names=shown)
        return display.plot(ax, **options)

    @classmethod
    def from_p_values(
        cls,
        p_values: Any,
        *,
        alpha: float = 0.01,
        rule: str = "or",
        correction: str | None = "bonferroni",
        label_names: Sequence[str] | None = None,
        ax: Any = None,
        **options: Any,
    ) -> PValueDisplay:
        """Draw p-values, ordered by the factors that they lead to.

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
        label_names : sequence of str, optional
            Names of the labels.
        ax : matplotlib Axes, optional
            Axes to draw into.
        **options : dict
            Passed on to `plot`.

        Returns
        -------
        PValueDisplay
            The display.
        """
        p = _checked_square(p_values, "p_values")
        alpha = check_alpha(alpha)
        check_choice(rule, "rule", ("or", "and"))
        check_choice(correction, "correction", CORRECTIONS)
        factors, graph, _ = group_labels(p, -p, alpha, rule, correction=correction)
        level = _level(p, graph, rule, [])
        return cls(p, factors, level=level, label_names=label_names).plot(ax, **options)


def _pyplot(name: str) -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(f"{name} needs matplotlib: pip install 'fgfm[plot]'") from error
    return plt


def _title(factors: Sequence[Any]) -> str:
    m, n = sum(map(len, factors)), len(factors)
    return f"{m} label{'' if m == 1 else 's'} in {n} factor{'' if n == 1 else 's'}"


def _both_ways(effects: Any, rule: str) -> Floats:
    """Give the strength of each pair, of the stronger test or of the weaker one."""
    return np.asarray((np.fmax if rule == "or" else np.fmin)(effects, np.transpose(effects)))


def _edges(graph: Any, strengths: Any) -> tuple[Any, Any, Floats]:
    """Give the two ends and the strength of each edge, weakest first."""
    i, j = sparse.triu(graph, 1).nonzero()
    if strengths is None:
        return i, j, np.ones(len(i))
    strength = np.nan_to_num(_checked_square(strengths, "strengths", graph.shape[0])[i, j])
    order = np.argsort(strength, kind="stable")
    return i[order], j[order], np.maximum(strength[order], 0.0)


def _level(p_values: Floats, graph: Any, rule: str, cuts: Sequence[tuple[int, int]]) -> Any:
    """Give the largest p-value of an edge, None without any."""
    i, j = sparse.triu(graph, 1).nonzero()
    pairs = [*zip(i, j, strict=True), *cuts]
    if not pairs:
        return None
    p = edge_p_values(p_values, rule)
    return float(max(p[pair] for pair in pairs))


def _factor_colors(plt: Any, factors: Sequence[Any], cmap: Any) -> Floats:
    """Give the colour of each label, (m, 4)."""
    from matplotlib.colors import to_rgba

    turns = plt.get_cmap(cmap)
    colors = np.tile(to_rgba(_ALONE), (sum(map(len, factors)), 1))
    together = [factor for factor in factors if len(factor) > 1]
    for k, factor in enumerate(together):
        colors[factor] = turns(k % turns.N if turns.N <= 20 else k / max(1, len(together) - 1))
    return np.asarray(colors)


def _points_per_unit(ax: Any) -> float:
    """Give the length of one data unit on paper, in points, for axes of equal aspect."""
    ax.apply_aspect()
    box = ax.get_window_extent()
    across = np.abs(np.diff(ax.get_xlim())[0]), np.abs(np.diff(ax.get_ylim())[0])
    scale = 72.0 / float(ax.figure.dpi)
    return float(min(box.width / across[0], box.height / across[1])) * scale


def _finder(estimator: Any) -> tuple[Any, Any]:
    """Give what found the factors, with its p-values, and the names of the labels if any."""
    check_is_fitted(estimator, "factors_")
    found = getattr(estimator, "factor_finder_", estimator)
    needed = ("p_values_", "effects_", "graph_", "cuts_", "rule")
    missing = [name for name in needed if not hasattr(found, name)]
    if missing:
        kind = type(estimator).__name__
        inside = "" if found is estimator else f" with a {type(found).__name__} as factor_finder_"
        raise ValueError(
            f"estimator is a {kind}{inside}, which has no {missing[0]}: it must be an ILFCompo, "
            "or a classifier whose factors an ILFCompo found (factors='ilf', two labels or more)"
        )
    names = getattr(estimator, "label_names_in_", None)
    return found, getattr(found, "label_names_in_", None) if names is None else names


def _check_square(shape: tuple[int, ...], name: str, m: int | None = None) -> None:
    if len(shape) != 2 or shape[0] != shape[1] or m not in (None, shape[0]):
        wanted = "(m, m)" if m is None else str((m, m))
        raise ValueError(f"{name} has shape {shape}: it must be {wanted}")
    if shape[0] == 0:
        raise ValueError(f"{name} has shape {shape}: a picture must have at least one label")


def _checked_square(values: Any, name: str, m: int | None = None) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    _check_square(array.shape, name, m)
    return array


def _checked_factors(factors: Sequence[Any], m: int) -> list[npt.NDArray[np.int64]]:
    arrays = [np.asarray(factor, dtype=np.int64) for factor in factors]
    members = np.sort(np.concatenate(arrays)) if arrays else np.empty(0)
    if not np.array_equal(members, np.arange(m)):
        raise ValueError(f"factors must hold each of the labels 0 to {m - 1} once: {factors!r}")
    return arrays


def _checked_names(names: Sequence[str] | None, m: int) -> list[str]:
    if names is None:
        return [str(k) for k in range(m)]
    if len(names) != m:
        raise ValueError(f"label_names has {len(names)} names: it must have {m}, one per label")
    return [str(name) for name in names]
