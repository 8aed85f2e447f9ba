"""What all displays share: matplotlib when it is needed, and the names of the labels."""

from __future__ import annotations

import numbers
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm._utils.validation import real_array

__all__ = [
    "check_count",
    "checked_names",
    "checked_vector",
    "f_name",
    "plural",
    "points",
    "points_per_unit",
    "pyplot",
    "room_on_the_left",
    "shortened",
    "text_scale",
    "write",
]


def pyplot(name: str) -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(f"{name} needs matplotlib: pip install 'fgfm[plot]'") from error
    return plt


def checked_names(names: Sequence[str] | None, m: int) -> list[str]:
    if names is None:
        return [str(k) for k in range(m)]
    if len(names) != m:
        raise ValueError(f"label_names has {len(names)} names: it must have {m}, one per label")
    return [str(name) for name in names]


def points_per_unit(ax: Any) -> float:
    """Give the length of one data unit on paper, in points, for axes of equal aspect."""
    ax.apply_aspect()
    box = ax.get_window_extent()
    across = np.abs(np.diff(ax.get_xlim())[0]), np.abs(np.diff(ax.get_ylim())[0])
    scale = 72.0 / float(ax.figure.dpi)
    return float(min(box.width / across[0], box.height / across[1])) * scale


def checked_vector(
    values: Any, name: str, axis: str, n: int | None = None
) -> npt.NDArray[np.float64]:
    """Give a flat array of floats, n of them if that is said."""
    array = real_array(values, name, (axis,))
    if len(array) == 0 or n not in (None, len(array)):
        wanted = "one number or more" if n is None else f"{n} numbers"
        raise ValueError(
            f"{name} has shape {array.shape}: it must have {wanted}, one for each {axis}"
        )
    return array.astype(np.float64)


def check_count(value: Any, name: str) -> int:
    """Give a number of things as an int; it must be positive."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise ValueError(f"{name} is {value!r}: it must be an integer of at least 1")
    return int(value)


def shortened(names: Sequence[str], letters: int) -> list[str]:
    """Shorten names in the middle; what comes out equal gets the number of the label.

    Examples
    --------
    >>> shortened(["metabolism of lipids", "metabolism of sugars", "growth"], 12)
    ['metab…lipids', 'metab…sugars', 'growth']
    """
    letters = max(letters, 5)
    whole = [" ".join(name.split()) for name in names]
    short = [_shortened(name, letters) for name in whole]
    count = Counter(short)
    for at, name in enumerate(whole):
        if count[short[at]] > 1 and short[at] != name:
            number = f" ({at})"
            short[at] = _shortened(name, max(letters - len(number), 3)) + number
    return short


def _shortened(name: str, letters: int) -> str:
    if len(name) <= letters:
        return name
    end = letters // 2
    return f"{name[: letters - 1 - end].rstrip()}…{name[len(name) - end :].lstrip()}"


def f_name(beta: float) -> str:
    """Give the name of the F-measure."""
    return rf"$F_{{{beta:g}}}$"


def plural(count: int, noun: str) -> str:
    """Give a number of things."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def text_scale(ax: Any) -> float:
    """Give how much smaller than usual text must be, in axes that are smaller than usual."""
    box = ax.get_window_extent()
    inches = np.array([box.width, box.height]) / float(ax.figure.dpi)
    return float(np.clip(np.min(inches / [4.6, 3.4]), 0.65, 1.0))


def write(
    ax: Any, scale: float, title: str, *, xlabel: str, ylabel: str = "", pad: float = 6.0
) -> None:
    """Write title and names of axes, in scaled sizes."""
    from matplotlib import rcParams

    ax.set_title(title, fontsize=points(rcParams["axes.titlesize"], scale), pad=pad)
    size = points(rcParams["axes.labelsize"], scale)
    close = {} if scale == 1.0 else {"labelpad": 1.0}
    ax.set_xlabel(xlabel, fontsize=size, **close)
    ax.set_ylabel(ylabel, fontsize=size, **close)
    ax.tick_params(labelsize=points(rcParams["xtick.labelsize"], scale))
    if scale < 1.0:
        ax.tick_params(length=2.5, pad=2.0)


def points(size: Any, scale: float) -> float:
    """Give a font size, which may be a name, in points."""
    from matplotlib.font_manager import FontProperties

    return float(FontProperties(size=size).get_size_in_points()) * scale


def room_on_the_left(ax: Any, wanted: float) -> float:
    """Give the points that tick labels left of axes may take, of those wanted.

    A layout engine makes room: a third of the figure at most. Otherwise there is what lies between
    the axes and their neighbour, or the edge, and what the axes can give up themselves.
    """
    figure = ax.figure
    scale = 72.0 / float(figure.dpi)
    width = float(figure.bbox.width) * scale
    if figure.get_layout_engine() is not None:
        return min(wanted, width / 3.0)
    box = ax.get_window_extent()
    left = figure.bbox.x0
    for other in figure.axes:
        beside = other.get_window_extent()
        if beside.x1 <= box.x0 and beside.y0 < box.y1 and box.y0 < beside.y1:
            left = max(left, beside.x1)
    room = float(box.x0 - left) * scale - 8.0  # pads to the axes and to the edge
    taken = min(wanted - room, 0.35 * float(box.width) * scale)
    if taken <= 0.0:
        return wanted
    place = ax.get_position()
    share = taken / width
    ax.set_position((place.x0 + share, place.y0, place.width - share, place.height))
    return room + taken
