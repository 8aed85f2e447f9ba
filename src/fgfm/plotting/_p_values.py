"""Display of the p-values of all pairs of labels as a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm.factors import group_labels
from fgfm.plotting._estimator import factor_finder
from fgfm.plotting._figure import import_pyplot, points_per_unit
from fgfm.plotting._label_graph import factor_title
from fgfm.plotting._validation import check_factors, check_label_names, check_matrix

__all__ = ["PValueDisplay"]

Floats = npt.NDArray[np.float64]

_OUTLINE_COLOR = "#d62728"


class PValueDisplay:
    """Matrix of the p-values of all pairs of labels, ordered by factor.

    Row i, column j is the test of label i against label j given the Markov boundary of label i.
    Smaller p-values are darker, on a logarithmic scale. Factors of more than one label are
    outlined, largest first.

    Parameters
    ----------
    p_values : array-like of shape (m, m)
        The p-values, not corrected.
    factors : sequence of array-like
        The labels of each factor.
    level : float, optional
        Largest p-value of an edge, marked on the colour bar.
    label_names : sequence of str, optional
        Names of the labels; by default their indices.

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
        The colour bar.
    order_ : ndarray of shape (m,)
        The labels in the order of rows and columns.

    See Also
    --------
    LabelGraphDisplay : The graph that the p-values define.

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
            Axes to draw into; by default those of a new figure, whose size grows with the number
            of labels.
        smallest : float, default=1e-10
            P-value of the darkest colour; smaller ones look the same.
        names : bool or "auto", default="auto"
            Whether to write the names; "auto" writes them if they fit.
        cmap : str or matplotlib Colormap, default="GnBu_r"
            Colours.
        colorbar : bool, default=True
            Whether to draw the colour bar.
        title : str, optional
            Title; by default the numbers of labels and factors.

        Returns
        -------
        PValueDisplay
            The display, with the artists as attributes.
        """
        plt = import_pyplot("PValueDisplay")
        from matplotlib.colors import LogNorm

        p = check_matrix(self.p_values, "p_values")
        m = len(p)
        factors = check_factors(self.factors, m)
        label_names = check_label_names(self.label_names, m)
        by_size = sorted(factors, key=lambda factor: -len(factor))  # stable: then by first label
        self.order_ = np.concatenate(by_size)
        if ax is None:
            side = float(np.clip(2.0 + 0.26 * m, 4.0, 15.0))  # inches
            _, ax = plt.subplots(figsize=(side + 1.0, side), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        self.image_ = ax.imshow(
            np.maximum(p[np.ix_(self.order_, self.order_)], smallest),
            norm=LogNorm(vmin=smallest, vmax=1.0),
            cmap=plt.get_cmap(cmap).with_extremes(bad="0.9"),
            interpolation="nearest",
        )
        self._draw_outlines([len(factor) for factor in by_size])
        cell = points_per_unit(ax)
        if names is True or (names == "auto" and cell >= 5.0):
            font = float(np.clip(0.8 * cell, 3.5, 10.0))
            ordered = [label_names[k] for k in self.order_]
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
                self.colorbar_.ax.axhline(self.level, color=_OUTLINE_COLOR, linewidth=1.6)
        ax.set_title(factor_title(factors) if title is None else title)
        return self

    def _draw_outlines(self, sizes: Sequence[int]) -> None:
        """Draw a square around each factor of several labels, along the diagonal."""
        from matplotlib.patches import Rectangle

        self.outlines_ = []
        start = -0.5
        for size in sizes:
            if size > 1:
                outline = Rectangle(
                    (start, start),
                    size,
                    size,
                    fill=False,
                    edgecolor=_OUTLINE_COLOR,
                    linewidth=1.6,
                    clip_on=False,
                )
                self.outlines_.append(self.ax_.add_patch(outline))
            start += size

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
        PValueDisplay
            The display.
        """
        finder, names = factor_finder(estimator)
        cuts = [(i, j) for i, j, _ in finder.cuts_]
        return cls(
            finder.p_values_,
            finder.factors_,
            level=_largest_of_edges(finder.p_values_, finder.graph_, finder.rule, cuts),
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
        label_names: Sequence[str] | None = None,
        ax: Any = None,
        **options: Any,
    ) -> PValueDisplay:
        """Draw p-values, ordered by the factors that they define.

        Parameters
        ----------
        p_values : array-like of shape (m, m)
            ``p_values[i, j]`` is the p-value of label i against label j.
        alpha : float, default=0.01
            Level of the tests.
        rule : {"or", "and"}, default="or"
            Join two labels if either of the two tests rejects, or only if both do.
        correction : {None, "bonferroni", "bh", "by"}, default="bonferroni"
            Correction for the number of pairs, as in `fgfm.ILFCompo`.
        label_names : sequence of str, optional
            Names of the labels.
        ax : matplotlib Axes, optional
            Axes to draw into.
        **options : dict
            Keyword arguments of `plot`.

        Returns
        -------
        PValueDisplay
            The display.
        """
        p = check_matrix(p_values, "p_values")
        grouping = group_labels(p, alpha, rule, correction=correction)
        level = _largest_of_edges(p, grouping.graph, rule, [])
        return cls(p, grouping.factors, level=level, label_names=label_names).plot(ax, **options)


def _largest_of_edges(
    p_values: Floats, graph: Any, rule: str, cuts: Sequence[tuple[int, int]]
) -> float | None:
    """Return the largest p-value of an edge, including edges that were cut; None without any."""
    i, j = sparse.triu(graph, 1).nonzero()
    pairs = [*zip(i, j, strict=True), *cuts]
    if not pairs:
        return None
    smaller = np.fmin if rule == "or" else np.fmax
    p = smaller(p_values, p_values.T)
    return float(max(p[pair] for pair in pairs))
