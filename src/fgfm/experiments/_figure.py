"""The figure of the paper: F against the number of training rows, one panel per structure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fgfm._utils.atomic import atomic_file
from fgfm.experiments._statistics import NAMES, Summary
from fgfm.experiments._table import structure_title

__all__ = ["FORMATS", "draw", "draw_differences", "new_figure", "save_figure"]

FORMATS = ("png", "pdf", "svg")
# Told apart by marker, line and lightness too, so that print in grey can be read.
_STYLES: dict[str, dict[str, Any]] = {
    "gfm": {"color": "#000000", "marker": "o", "linestyle": "-"},
    "true": {"color": "#0072B2", "marker": "s", "linestyle": "--"},
    "ilf": {"color": "#D55E00", "marker": "^", "linestyle": "-"},
    "independent": {"color": "#56B4E9", "marker": "v", "linestyle": ":"},
    "threshold": {"color": "#999999", "marker": "x", "linestyle": "-."},
    "bayes": {"color": "#BBBBBB", "marker": "", "linestyle": "-", "linewidth": 4.0},
}


def new_figure(width: float, height: float) -> Any:
    """Make a figure of so many inches.

    Parameters
    ----------
    width, height : float
        Its size.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, without axes.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("the figure needs matplotlib: pip install 'fgfm[plot]'") from error
    return Figure(figsize=(width, height), layout="constrained")


def _figure(n: int) -> tuple[Any, list[Any]]:
    """Make a figure with room for n panels, two in a row."""
    columns = min(n, 2)
    rows = -(-n // columns)
    figure = new_figure(3.7 * columns, 2.9 * rows + 0.6)
    return figure, list(figure.subfigures(rows, columns, squeeze=False).ravel())[:n]


def _log_axis(ax: Any, sizes: list[int]) -> None:
    ax.set_xscale("log")
    few = sizes[:: -(-len(sizes) // (7 if max(sizes) < 1e5 else 4))]  # labels that have room
    ax.set_xticks(few, [str(n) for n in few])
    if len(sizes) == 1:
        ax.set_xlim(sizes[0] / 1.5, sizes[0] * 1.5)
    ax.minorticks_off()
    ax.tick_params(labelsize=8)
    ax.grid(True, color="#E5E5E5", linewidth=0.6)
    ax.set_axisbelow(True)


def _around(n: int) -> list[float]:
    """Give two ends of a line at a single size."""
    return [n / 1.4, n * 1.4]


def _broken_axes(panel: Any) -> tuple[Any, Any]:
    """Make two axes, one above the other, with the marks of an interrupted scale."""
    top, low = panel.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    top.spines.bottom.set_visible(False)
    low.spines.top.set_visible(False)
    top.tick_params(bottom=False)
    mark: dict[str, Any] = {"marker": [(-1, -0.5), (1, 0.5)], "markersize": 7, "linestyle": "none"}
    mark |= {"color": "#000000", "mew": 0.8, "clip_on": False}
    top.plot([0, 1], [0, 0], transform=top.transAxes, **mark)
    low.plot([0, 1], [1, 1], transform=low.transAxes, **mark)
    return top, low


def draw(summary: Summary, learner: str = "linear") -> Any:
    """Draw the mean F of each method against the number of training rows.

    Parameters
    ----------
    summary : Summary
        The summary of a run.
    learner : str, default="linear"
        The base learner.

    Returns
    -------
    matplotlib.figure.Figure
        One panel per structure. Bars are standard errors. The threshold is far below the other
        methods: where both are drawn, the scale is interrupted between them.
    """
    settings = summary.settings
    methods = sorted(settings["methods"], key=list(_STYLES)[::-1].index)
    broken = "threshold" in methods and len(methods) > 1
    figure, panels = _figure(len(settings["structures"]))
    shown: dict[str, Any] = {}
    for panel, structure in zip(panels, settings["structures"], strict=True):
        axes: tuple[Any, ...] = _broken_axes(panel) if broken else (panel.subplots(),)
        for place, method in enumerate(methods):
            mine = [m for m in summary.means if m[0] == structure and m[2:4] == (learner, method)]
            if not mine:
                continue
            ax = axes[-1 if method == "threshold" else 0]
            limit = method == "bayes"
            side = 0.0 if method in ("bayes", "threshold") else place - (len(methods) - 1) / 2
            shift = 1.025**side
            shown[method] = ax.errorbar(
                [shift * m.n for m in mine] if len(mine) > 1 or not limit else _around(mine[0].n),
                [m.mean for m in mine] * (1 if len(mine) > 1 or not limit else 2),
                yerr=None if limit else [m.standard_error for m in mine],
                label=NAMES[method] + (" (the limit)" if limit else ""),
                markersize=4.5,
                elinewidth=0.7,
                **{"linewidth": 1.2, "markerfacecolor": "none"} | _STYLES[method],
            )
        for ax in axes:
            _log_axis(ax, settings["sizes"])
        if broken:
            axes[0].tick_params(bottom=False)
            axes[1].locator_params(axis="y", nbins=3)
        axes[0].set_title(structure_title(structure), fontsize=10)
    handles = [shown[k] for k in _STYLES if k in shown]
    _finish(figure, handles, f"mean F{settings['beta']:g} on test rows")
    return figure


def draw_differences(summary: Summary, learner: str = "linear") -> Any:
    """Draw the paired differences between methods, with 95 % intervals.

    Parameters
    ----------
    summary : Summary
        The summary of a run.
    learner : str, default="linear"
        The base learner.

    Returns
    -------
    matplotlib.figure.Figure
        One panel per structure.
    """
    settings = summary.settings
    figure, panels = _figure(len(settings["structures"]))
    handles: dict[str, Any] = {}
    colours = {"gfm": "#D55E00", "true": "#0072B2", "independent": "#56B4E9"}
    for panel, structure in zip(panels, settings["structures"], strict=True):
        ax = panel.subplots()
        ax.axhline(0.0, color="#000000", linewidth=0.8)
        for place, (second, colour) in enumerate(colours.items()):
            mine = [
                d
                for d in summary.differences
                if d[0] == structure and d[2:5] == (learner, "ilf", second)
            ]
            if not mine:
                continue
            shift = 1.06 ** (place - 1)  # side by side
            handles[second] = ax.errorbar(
                [shift * d.n for d in mine],
                [d.mean for d in mine],
                yerr=[[d.mean - d.low for d in mine], [d.high - d.mean for d in mine]],
                label=f"F-GFM ILF less {NAMES[second]}",
                color=colour,
                marker=_STYLES[second]["marker"],
                linestyle=_STYLES[second]["linestyle"],
                markerfacecolor="none",
                markersize=4.5,
                linewidth=0.9,
                elinewidth=0.9,
            )
        ax.set_title(structure_title(structure), fontsize=10)
        _log_axis(ax, settings["sizes"])
    _finish(figure, list(handles.values()), f"difference of F{settings['beta']:g}, 95 % interval")
    return figure


def _finish(figure: Any, handles: list[Any], label: str) -> None:
    figure.supxlabel("training rows", fontsize=10)
    figure.supylabel(label, fontsize=10)
    figure.legend(handles=handles, loc="outside upper center", ncols=3, fontsize=8, frameon=False)


def save_figure(figure: Any, folder: Path, name: str) -> list[Path]:
    """Save a figure as PNG, PDF and SVG; the same figure gives the same bytes.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        The figure.
    folder : Path
        Where to.
    name : str
        The name of the files, without the extension.

    Returns
    -------
    list of Path
        The files.
    """
    import matplotlib as mpl

    paths = []
    dates = {"png": {}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}
    with mpl.rc_context({"svg.hashsalt": "fgfm", "svg.fonttype": "path"}):
        for extension in FORMATS:
            path = folder / f"{name}.{extension}"
            with atomic_file(path) as file:
                figure.savefig(file, format=extension, dpi=200, metadata=dates[extension])
            paths.append(path)
    return paths
