"""Files of the paper's experiment: figure, text and summary.

The figure has one row of panels for each structure of label factors.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fgfm._utils.atomic import atomic_file
from fgfm._utils.optional import import_optional
from fgfm.paper._experiment import PaperResults
from fgfm.paper._summary import Summary
from fgfm.paper._tables import NAMES, format_tables, structure_title

FORMATS = ("png", "pdf", "svg")
_WIDTH = 5.8  # inches: text stays legible when a phone shows the figure at 360 pixels
_PANEL_HEIGHT = 1.45
# Colours of Okabe and Ito, which colour-blind readers can distinguish; markers and lines differ.
_STYLES: dict[str, dict[str, Any]] = {
    "bayes": {"color": "#999999", "marker": "", "linestyle": "-", "linewidth": 3.0},
    "threshold": {"color": "#CC79A7", "marker": "x", "linestyle": "-."},
    "true": {"color": "#0072B2", "marker": "s", "linestyle": "--"},
    "ilf": {"color": "#D55E00", "marker": "^", "linestyle": "-"},
    "independent": {"color": "#009E73", "marker": "v", "linestyle": ":"},
    "gfm": {"color": "#000000", "marker": "o", "linestyle": "-"},
}
_LEGEND = ("bayes", "threshold", "gfm", "true", "ilf", "independent")  # column by column
_COMPARED = ("true", "ilf", "independent")  # with GFM, in the panels of differences
_TITLES = {"published": "published estimates", "ours": "our estimates"}


def write_report(results: PaperResults, command: str) -> list[Path]:
    """Write the figure, the tables and a summary into the output folder.

    Parameters
    ----------
    results : PaperResults
        The results.
    command : str
        The command that computed them, shown in the files.

    Returns
    -------
    list of Path
        The files: ``figure.png``, ``figure.pdf``, ``figure.svg``, ``table.txt`` and
        ``summary.json``.
    """
    folder = results.folder
    paths = save_figure(draw(results), folder, "figure")
    summary = {
        "command": command,
        "fgfm": version("fgfm"),
        "runs": {estimates: run.summary.as_dict() for estimates, run in results.runs.items()},
    }
    texts = {
        "table.txt": f"{command}\n\n{format_tables(results)}",
        "summary.json": json.dumps(summary, indent=1, allow_nan=False) + "\n",
    }
    for name, text in texts.items():
        with atomic_file(folder / name) as file:
            file.write(text.encode())
        paths.append(folder / name)
    return paths


def new_figure(width: float, height: float) -> Any:
    """Create a figure without pyplot."""
    figures = import_optional("matplotlib.figure", "the figure", "plot")
    return figures.Figure(figsize=(width, height), layout="constrained")


def draw(results: PaperResults, learner: str = "linear") -> Any:
    """Draw mean F and differences from GFM against the number of training rows."""
    summaries = [run.summary for run in results.runs.values()]
    settings = summaries[0].settings
    structures = settings["structures"]
    compared = any(
        _differences(summaries[0], structure, learner, method)
        for structure in structures
        for method in _COMPARED
    )
    n_columns = 1 + (len(summaries) if compared else 0)
    height = _PANEL_HEIGHT * len(structures) + 1.1
    figure = new_figure(_WIDTH if compared else 0.6 * _WIDTH, height)
    axes = figure.subplots(len(structures), n_columns, squeeze=False, sharex=True)
    _share_scales(axes)
    handles: dict[str, Any] = {}
    for row, structure in zip(axes, structures, strict=True):
        handles |= _draw_means(row[0], summaries[0], structure, learner)
        for ax, summary in zip(row[1:], summaries, strict=False):
            _draw_differences(ax, summary, structure, learner)
        row[0].set_ylabel(structure_title(structure), fontsize=9)
        for ax in row:
            _format_axes(ax, settings["sizes"])
    f = f"F{settings['beta']:g}"
    axes[0, 0].set_title(f"mean {f}", fontsize=9)
    for ax, estimates in zip(axes[0, 1:], results.runs, strict=False):
        ax.set_title(f"{f} minus {NAMES['gfm']},\n{_TITLES[estimates]}", fontsize=9)
    figure.supxlabel("training rows", fontsize=9)
    figure.legend(
        handles=[handles[k] for k in _LEGEND if k in handles],
        loc="outside upper center",
        ncols=3 if compared else 2,
        fontsize=8.5,
        frameon=False,
    )
    return figure


def _share_scales(axes: Any) -> None:
    """Share one vertical scale among panels of means, another among panels of differences."""
    for ax in axes[1:, 0]:
        ax.sharey(axes[0, 0])
    for ax in axes[:, 1:].ravel()[1:]:
        ax.sharey(axes[0, 1])
    for ax in axes[:, 2:].ravel():
        ax.tick_params(labelleft=False)


def _draw_means(ax: Any, summary: Summary, structure: str, learner: str) -> dict[str, Any]:
    """Draw the mean F of every method; return the handles of the legend."""
    handles = {}
    for method, style in _STYLES.items():
        means = [
            m
            for m in summary.means
            if (m.structure, m.learner, m.method) == (structure, learner, method)
        ]
        if not means:
            continue
        n, f = [float(m.n) for m in means], [m.mean for m in means]
        if method == "bayes" and len(n) == 1:  # a line, not a point
            n, f = [n[0] / 1.4, n[0] * 1.4], f * 2
        (handles[method],) = ax.plot(
            n, f, label=NAMES[method] + ("-optimal" if method == "bayes" else ""), **_line(style)
        )
    return handles


def _draw_differences(ax: Any, summary: Summary, structure: str, learner: str) -> None:
    """Draw F minus that of GFM, with 95 % intervals."""
    ax.axhline(0.0, color=_STYLES["gfm"]["color"], linewidth=1.0)
    for place, method in enumerate(_COMPARED):
        cells = _differences(summary, structure, learner, method)
        if not cells:
            continue
        shift = 1.09 ** (place - 1)  # side by side on the logarithmic axis
        ax.errorbar(
            [shift * d.n for d in cells],
            [d.mean for d in cells],
            yerr=[[d.mean - d.low for d in cells], [d.high - d.mean for d in cells]],
            elinewidth=0.8,
            **_line(_STYLES[method]),
        )


def _differences(summary: Summary, structure: str, learner: str, method: str) -> list[Any]:
    key = (structure, learner, method, "gfm")
    return [d for d in summary.differences if (d.structure, d.learner, d.first, d.second) == key]


def _line(style: dict[str, Any]) -> dict[str, Any]:
    return {"linewidth": 1.1, "markersize": 3.8, "markerfacecolor": "none"} | style


def _format_axes(ax: Any, sizes: Sequence[int]) -> None:
    ax.set_xscale("log")
    shown = sizes[:: -(-len(sizes) // 3)]  # labels of more sizes would overlap
    ax.set_xticks(shown, [str(n) for n in shown])
    ax.set_xticks(sizes, minor=True)
    ax.tick_params(axis="x", which="minor", labelbottom=False)
    if len(sizes) == 1:
        ax.set_xlim(sizes[0] / 1.5, sizes[0] * 1.5)
    ax.tick_params(labelsize=8)
    ax.grid(True, color="#E5E5E5", linewidth=0.6)
    ax.set_axisbelow(True)


def save_figure(figure: Any, folder: Path, name: str) -> list[Path]:
    """Save a figure as PNG, PDF and SVG; the same figure gives the same bytes."""
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
