"""The p-values of all pairs of labels as a picture."""

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
from fgfm.plotting._pairs import checked_factors, checked_square, factor_title, finder

__all__ = ["PValueDisplay"]

Floats = npt.NDArray[np.float64]


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
        plt = pyplot("PValueDisplay")
        from matplotlib.colors import LogNorm
        from matplotlib.patches import Rectangle

        p = checked_square(self.p_values, "p_values")
        m = len(p)
        factors = checked_factors(self.factors, m)
        shown = checked_names(self.label_names, m)
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
        cell = abs(points_per_unit(ax))
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
        found, seen = finder(estimator)
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
        p = checked_square(p_values, "p_values")
        alpha = check_alpha(alpha)
        check_choice(rule, "rule", ("or", "and"))
        check_choice(correction, "correction", CORRECTIONS)
        factors, graph, _ = group_labels(p, -p, alpha, rule, correction=correction)
        level = _level(p, graph, rule, [])
        return cls(p, factors, level=level, label_names=label_names).plot(ax, **options)


def _level(p_values: Floats, graph: Any, rule: str, cuts: Sequence[tuple[int, int]]) -> Any:
    """Give the largest p-value of an edge, None without any."""
    i, j = sparse.triu(graph, 1).nonzero()
    pairs = [*zip(i, j, strict=True), *cuts]
    if not pairs:
        return None
    p = edge_p_values(p_values, rule)
    return float(max(p[pair] for pair in pairs))
