"""Display of the labels as a graph: an edge for each dependence, a colour for each factor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from fgfm._utils.text import counted
from fgfm.factors import group_labels
from fgfm.plotting._common import check_label_names, new_axes

__all__ = ["LabelGraphDisplay"]

Floats = npt.NDArray[np.float64]

_SINGLE_COLOR = "0.62"  # grey, for labels that are a factor by themselves
_PAGE = np.array([16.0, 12.0])  # inches; the largest figure
_ROTATED = 8  # names of larger factors are rotated


class LabelGraphDisplay:
    """Graph of the labels: an edge for each dependence, a colour for each factor.

    The labels of a factor stand on a circle, the largest factor first. Stronger dependences have
    wider and darker edges. Labels that are a factor by themselves are in grey rows at the bottom.

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

    def plot(self, ax: Any = None, *, names: bool | str = "auto") -> LabelGraphDisplay:
        """Draw the graph, with the numbers of labels and factors as title.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into; by default those of a new figure, whose size grows with the number
            of labels.
        names : bool or "auto", default="auto"
            Whether to write the names; "auto" writes up to 200.

        Returns
        -------
        LabelGraphDisplay
            The display, with the artists as attributes.
        """
        graph = sparse.csr_array(self.graph).astype(float)
        _check_square(graph.shape, "graph")
        m = graph.shape[0]
        factors = _check_factors(self.factors, m)
        label_names = check_label_names(self.label_names, m)
        named = names is True or (names == "auto" and m <= 200)
        length = max(map(len, label_names)) if named else 0
        places, angles, size = _place(factors, 0.3 + 0.085 * length)
        if ax is None:
            inches = size * min(1.0, *(_PAGE / size))
            ax = new_axes("LabelGraphDisplay", np.maximum(inches, [4.0, 3.0]))
        self.ax_, self.figure_ = ax, ax.figure
        ax.set(xlim=(0.0, size[0]), ylim=(size[1], 0.0), aspect="equal")
        ax.set_axis_off()
        # Inches per unit, of which a name of ten letters takes one; text and dots are in points.
        unit = min(1.0, *(np.array(ax.figure.get_size_inches()) / size))
        colors = _factor_colors(factors)  # (m, 4)
        i, j, strength = _edges(graph, self.strengths)
        self._draw_edges(places[i], places[j], strength, unit)
        dot = 3.0 + 8.0 * unit  # points
        self.nodes_ = ax.scatter(
            *places.T, s=dot**2, c=colors, edgecolors="white", linewidths=0.8, zorder=2
        )
        self.text_ = []
        crowded = np.zeros(m, dtype=bool)
        for factor in factors:
            crowded[factor] = len(factor) > _ROTATED
        for k in range(m if named else 0):
            style = _name_style(angles[k], dot, bool(crowded[k]))
            self.text_.append(
                ax.annotate(
                    label_names[k],
                    places[k],
                    textcoords="offset points",
                    fontsize=max(4.0, 10.0 * unit),
                    zorder=3,
                    **style,
                )
            )
        ax.set_title(f"{counted(m, 'label')} in {counted(len(factors), 'factor')}")
        return self

    def _draw_edges(self, starts: Floats, ends: Floats, strength: Floats, unit: float) -> None:
        """Draw the edges, thinner and lighter if they are weak or many."""
        from matplotlib.collections import LineCollection

        n_edges = len(strength)
        crowd = min(1.0, 60.0 / max(1, n_edges)) ** 0.5  # 1 up to 60 edges, then smaller
        relative = strength / strength.max() if n_edges and strength.max() > 0 else strength + 1.0
        self.edges_ = LineCollection(
            list(np.stack([starts, ends], axis=1)),  # (E, 2, 2)
            linewidths=(1.0 + 3.5 * unit) * (0.15 + relative * (0.25 + 0.75 * crowd)),
            colors=[(0.15, 0.15, 0.15, (0.15 + 0.2 * crowd) + 0.5 * r) for r in relative],
            capstyle="round",
            zorder=1,
        )
        self.ax_.add_collection(self.edges_)

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
        finder, names = _factor_finder(estimator)
        return cls(
            finder.graph_,
            finder.factors_,
            strengths=np.fmax(finder.effects_, finder.effects_.T),
            label_names=names if label_names is None else label_names,
        ).plot(ax, **options)

    @classmethod
    def from_p_values(
        cls,
        p_values: Any,
        *,
        alpha: float = 0.01,
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
        correction : {None, "bonferroni", "bh"}, default="bonferroni"
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
        p = _check_matrix(p_values, "p_values")
        grouping = group_labels(p, alpha, correction=correction)
        if strengths is None:
            strengths = -np.log(np.maximum(p, np.exp(-30.0)))
        strengths = _check_matrix(strengths, "strengths")
        return cls(
            grouping.graph,
            grouping.factors,
            strengths=np.fmax(strengths, strengths.T),
            label_names=label_names,
        ).plot(ax, **options)


def _factor_finder(estimator: Any) -> tuple[Any, Any]:
    """Return the fitted `ILFCompo` of an estimator, and the names of the labels, if any."""
    if isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    check_is_fitted(estimator, "factors_")
    finder = getattr(estimator, "factor_finder_", estimator)
    missing = [name for name in ("effects_", "graph_") if not hasattr(finder, name)]
    if missing:
        kind = type(estimator).__name__
        inside = (
            "" if finder is estimator else f" with a {type(finder).__name__} as factor_finder_"
        )
        raise ValueError(
            f"estimator is a {kind}{inside}, which has no {missing[0]}: it must be an ILFCompo, "
            "or a classifier with factors found by one (factors='ilf', two labels or more)"
        )
    names = getattr(estimator, "label_names_in_", None)
    return finder, getattr(finder, "label_names_in_", None) if names is None else names


def _check_square(shape: tuple[int, ...], name: str, m: int | None = None) -> None:
    """Raise unless a shape is (m, m) with at least one label."""
    if len(shape) != 2 or shape[0] != shape[1] or m not in (None, shape[0]):
        wanted = "(m, m)" if m is None else str((m, m))
        raise ValueError(f"{name} has shape {shape}: it must be {wanted}")
    if shape[0] == 0:
        raise ValueError(f"{name} has shape {shape}: it must have at least one label")


def _check_matrix(values: Any, name: str, m: int | None = None) -> Floats:
    """Return a square array of floats, of shape (m, m) if m is given."""
    array = np.asarray(values, dtype=np.float64)
    _check_square(array.shape, name, m)
    return array


def _check_factors(factors: Sequence[Any], m: int) -> list[npt.NDArray[np.int64]]:
    """Return the factors as arrays; they must partition the m labels."""
    arrays = [np.asarray(factor, dtype=np.int64) for factor in factors]
    members = np.sort(np.concatenate(arrays)) if arrays else np.empty(0)
    if not np.array_equal(members, np.arange(m)):
        raise ValueError(
            f"factors is {factors!r}: it must contain each of the labels 0 to {m - 1} once"
        )
    return arrays


def _place(factors: Sequence[Any], width: float) -> tuple[Floats, Floats, Floats]:
    """Place labels whose names have a width, in rows.

    The labels of a factor stand on a circle, with their names outside. Circles fill rows from left
    to right, the largest first, then single labels; y points downwards. Returned are the positions
    (m, 2), the angles of the names (m,), NaN for names below a label, and the size of the whole.
    """
    ordered = sorted(factors, key=len, reverse=True)  # stable
    m = sum(map(len, factors))
    radii = [0.08 * len(f) if len(f) > 6 else 0.5 * (len(f) > 1) for f in ordered]
    boxes = []
    for factor, r in zip(ordered, radii, strict=True):
        around = width if len(factor) > 2 else width / 2.0 + 0.1
        above = 0.4 if len(factor) <= _ROTATED else width + 0.2
        boxes.append((2.0 * (r * (len(factor) > 2) + around), 2.0 * (r + above)))
    row = max(boxes[0][0], 1.5 * np.sqrt(sum(w * h for w, h in boxes)))  # width of a row
    places, angles = np.empty((m, 2)), np.full(m, np.nan)
    x = y = height = right = 0.0
    for factor, r, (w, h) in zip(ordered, radii, boxes, strict=True):
        if x + w > row + 1e-9 or (len(factor) == 1 and x > 0.0 and height > h):  # a new row
            x, y, height = 0.0, y + height, 0.0
        turn = 2.0 * np.pi * np.arange(len(factor)) / len(factor) - np.pi / 2.0  # from the top
        centre = np.array([x + w / 2.0, y + h / 2.0])
        places[factor] = centre + r * np.column_stack([np.cos(turn), np.sin(turn)])
        if len(factor) > 1:
            angles[factor] = turn
        x, height = x + w, max(height, h)
        right = max(right, x)
    return places, angles, np.array([right, y + height])


def _name_style(angle: float, dot: float, rotated: bool) -> dict[str, Any]:
    """Return how the name of a label is written: away from its circle, or below it."""
    if np.isnan(angle):
        return {"xytext": (0.0, -0.7 * dot), "ha": "center", "va": "top"}
    x, y = np.cos(angle), -np.sin(angle)  # in points y points upwards
    style: dict[str, Any] = {"xytext": (0.8 * dot * x, 0.8 * dot * y)}
    if rotated:
        turned = np.degrees(np.arctan2(y, x)) + (180.0 if x < -1e-9 else 0.0)
        ha = "right" if x < -1e-9 else "left"
        return style | {"ha": ha, "va": "center", "rotation": turned, "rotation_mode": "anchor"}
    if abs(x) < 0.3:
        return style | {"ha": "center", "va": "bottom" if y > 0.0 else "top"}
    return style | {"ha": "left" if x > 0.0 else "right", "va": "center"}


def _edges(graph: Any, strengths: Any) -> tuple[Any, Any, Floats]:
    """Return the two ends and the strength of each edge, weakest first."""
    i, j = sparse.triu(graph, 1).nonzero()
    if strengths is None:
        return i, j, np.ones(len(i))
    strength = np.nan_to_num(_check_matrix(strengths, "strengths", graph.shape[0])[i, j])
    order = np.argsort(strength, kind="stable")
    return i[order], j[order], np.maximum(strength[order], 0.0)


def _factor_colors(factors: Sequence[Any]) -> Floats:
    """Return the colour of each label, (m, 4): grey for single labels, else one per factor."""
    from matplotlib.colors import to_rgba

    colors = np.tile(to_rgba(_SINGLE_COLOR), (sum(map(len, factors)), 1))
    for k, factor in enumerate(factor for factor in factors if len(factor) > 1):
        colors[factor] = to_rgba(f"C{k % 10}")
    return np.asarray(colors)
