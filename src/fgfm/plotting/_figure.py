"""Drawing helpers that all displays share: matplotlib, sizes of text, and short names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from fgfm._utils.optional import import_optional
from fgfm._utils.text import clipped

__all__ = [
    "f_symbol",
    "font_points",
    "import_pyplot",
    "make_left_margin",
    "points_per_unit",
    "set_labels",
    "shorten_names",
    "text_scale",
]


def import_pyplot(display: str) -> Any:
    """Import matplotlib.pyplot, which is optional, for a display."""
    return import_optional("matplotlib.pyplot", display, "plot")


def points_per_unit(ax: Any) -> float:
    """Return the printed length of one data unit in points, for axes of equal aspect."""
    ax.apply_aspect()
    box = ax.get_window_extent()
    width, height = np.abs(np.diff(ax.get_xlim())[0]), np.abs(np.diff(ax.get_ylim())[0])
    scale = 72.0 / float(ax.figure.dpi)
    return float(min(box.width / width, box.height / height)) * scale


def shorten_names(names: Sequence[str], length: int) -> list[str]:
    """Shorten names in the middle; names that become equal get the index of the label.

    Examples
    --------
    >>> shorten_names(["metabolism of lipids", "metabolism of sugars", "growth"], 12)
    ['metabo…ipids', 'metabo…ugars', 'growth']
    """
    length = max(length, 5)
    whole = [" ".join(name.split()) for name in names]
    short = [clipped(name, length) for name in whole]
    count = Counter(short)
    for at, name in enumerate(whole):
        if count[short[at]] > 1 and short[at] != name:
            index = f" ({at})"
            short[at] = clipped(name, max(length - len(index), 3)) + index
    return short


def f_symbol(beta: float) -> str:
    """Return the symbol of the F-measure, as mathematics for matplotlib."""
    return rf"$F_{{{beta:g}}}$"


def text_scale(ax: Any) -> float:
    """Return the factor by which text shrinks in axes smaller than those of a usual figure."""
    box = ax.get_window_extent()
    inches = np.array([box.width, box.height]) / float(ax.figure.dpi)
    return float(np.clip(np.min(inches / [4.6, 3.4]), 0.65, 1.0))


def set_labels(
    ax: Any, scale: float, title: str, *, xlabel: str, ylabel: str = "", pad: float = 6.0
) -> None:
    """Set title and axis labels, with all font sizes multiplied by `scale`."""
    from matplotlib import rcParams

    ax.set_title(title, fontsize=font_points(rcParams["axes.titlesize"], scale), pad=pad)
    size = font_points(rcParams["axes.labelsize"], scale)
    compact = {} if scale == 1.0 else {"labelpad": 1.0}
    ax.set_xlabel(xlabel, fontsize=size, **compact)
    ax.set_ylabel(ylabel, fontsize=size, **compact)
    ax.tick_params(labelsize=font_points(rcParams["xtick.labelsize"], scale))
    if scale < 1.0:
        ax.tick_params(length=2.5, pad=2.0)


def font_points(size: Any, scale: float) -> float:
    """Return a font size, which may be a name such as "small", in points."""
    from matplotlib.font_manager import FontProperties

    return float(FontProperties(size=size).get_size_in_points()) * scale


def make_left_margin(ax: Any, wanted: float) -> float:
    """Make room for tick labels on the left of axes, and return its width in points.

    A layout engine reserves the room by itself; a third of the figure is used at most. Without
    one, the room is the gap to the neighbouring axes or to the edge of the figure, widened by
    making the axes narrower by up to 35 percent.

    Parameters
    ----------
    ax : matplotlib Axes
        The axes, which may be moved.
    wanted : float
        Width of the longest label in points.

    Returns
    -------
    float
        Available width in points, at most `wanted` if there is a layout engine.
    """
    figure = ax.figure
    scale = 72.0 / float(figure.dpi)
    width = float(figure.bbox.width) * scale
    if figure.get_layout_engine() is not None:
        return min(wanted, width / 3.0)
    box = ax.get_window_extent()
    left = figure.bbox.x0
    for other in figure.axes:
        neighbour = other.get_window_extent()
        if neighbour.x1 <= box.x0 and neighbour.y0 < box.y1 and box.y0 < neighbour.y1:
            left = max(left, neighbour.x1)
    gap = float(box.x0 - left) * scale - 8.0  # without the padding on both sides
    taken = min(wanted - gap, 0.35 * float(box.width) * scale)
    if taken <= 0.0:
        return wanted
    position = ax.get_position()
    share = taken / width
    ax.set_position((position.x0 + share, position.y0, position.width - share, position.height))
    return gap + taken
