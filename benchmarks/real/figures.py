"""Figures of the benchmark: mean ranks with critical differences, and differences of F1."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.real.statistics import groups_within
from benchmarks.real.summary import Ranking, Summary
from benchmarks.real.tables import count, system_name
from fgfm.experiments._report import new_figure

__all__ = ["draw_differences", "draw_ranks"]

_GREY = "#999999"
_MAX_TICKS = 14


def draw_ranks(summary: Summary) -> Any:
    """Draw mean ranks; bars join systems that do not differ significantly."""
    heights = [
        0.9 + 0.11 * len(_bars(r)) + 0.2 * -(-len(r.systems) // 2) for r in summary.rankings
    ]
    figure = new_figure(7.4, sum(heights))
    axes = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    for ax, ranking in zip(axes, summary.rankings, strict=True):
        _draw_ranking(ax, ranking)
    return figure


def _bars(ranking: Ranking) -> list[tuple[int, int]]:
    if math.isnan(ranking.critical_difference):
        return []
    return groups_within(ranking.mean_ranks.to_numpy(), ranking.critical_difference)


def _draw_ranking(ax: Any, ranking: Ranking) -> None:
    """Draw the scale at the top, the bars below it, and names to the left and right."""
    k, at = len(ranking.systems), ranking.mean_ranks.to_numpy()
    gaps = ranking.scores.isna().sum().to_numpy()
    bars, half = _bars(ranking), -(-k // 2)
    low, high = 1.0, float(max(k, 2))
    margin = 0.3 * (high - low)
    ax.plot([low, high], [0, 0], color="#000000", linewidth=1.0)
    for tick in range(1, int(high) + 1, -(-k // _MAX_TICKS)):
        ax.plot([tick, tick], [0, 0.25], color="#000000", linewidth=0.8)
        ax.text(tick, 0.4, str(tick), ha="center", va="bottom", fontsize=8)
    top = 0.9 + 0.55 * len(bars)  # of the names
    for place, (first, last) in enumerate(bars):
        y = -0.6 - 0.55 * place
        ax.plot([at[first] - 0.04, at[last] + 0.04], [y, y], color="#000000", linewidth=3.0)
    for j, system in enumerate(ranking.systems):
        left = j < half
        y = -top - (j if left else k - 1 - j)
        x = low - 0.1 * margin if left else high + 0.1 * margin
        ax.plot([at[j], at[j], x], [0, y, y], color="#0072B2", linewidth=0.9)
        name = f"{system_name(system, ranking.learner)} ({at[j]:.2f})"
        missing = f", {gaps[j]} missing" if gaps[j] else ""
        side = {"ha": "right" if left else "left", "va": "center", "fontsize": 8}
        ax.text(x - (0.05 if left else -0.05) * margin, y, name + missing, **side)
    title = f"{ranking.learner}: mean ranks on {count(len(ranking.shared), 'data set')}"
    if bars or not math.isnan(ranking.critical_difference):
        title += f", critical difference {ranking.critical_difference:.2f}"
    ax.set_title(title, fontsize=9)
    ax.set_xlim(low - 1.6 * margin, high + 1.6 * margin)
    ax.set_ylim(-top - half + 0.4, 1.2)
    ax.set_axis_off()


def draw_differences(summary: Summary) -> Any:
    """Draw F1 of "default" minus that of each other rule, with 95 % intervals."""
    systems = list(dict.fromkeys((d.learner, d.rule) for d in summary.differences.itertuples()))
    names = [*summary.datasets, ""]
    columns = min(4, len(systems))
    rows = -(-len(systems) // columns)
    figure = new_figure(1.9 * columns + 1.2, (0.16 * len(names) + 0.7) * rows + 0.3)
    axes = figure.subplots(rows, columns, squeeze=False, sharey=True).ravel()
    one_learner = len({learner for learner, _ in systems}) == 1
    for ax, system in zip(axes, systems, strict=False):
        ax.axvline(0.0, color="#000000", linewidth=0.8)
        for d in summary.differences.itertuples():
            if (d.learner, d.rule) == system:
                y = -names.index(d.dataset)
                colour = _GREY if d.dataset else "#D55E00"
                ax.plot([d.low, d.high], [y, y], color=colour, linewidth=1.4)
                ax.plot([d.mean], [y], color=colour, marker="o", markersize=3.5)
        ax.set_title(system_name(system, system[0] if one_learner else ""), fontsize=9)
        ax.tick_params(labelsize=7)
        ax.grid(True, axis="x", color="#E5E5E5", linewidth=0.6)
        ax.set_axisbelow(True)
    for ax in axes[len(systems) :]:
        ax.set_axis_off()
    axes[0].set_yticks(-np.arange(len(names)), [name or "mean" for name in names])
    figure.supxlabel("F1 of default minus F1 of the rule, 95 % interval", fontsize=9)
    return figure
