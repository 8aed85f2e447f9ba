"""Draw the picture of the README: F1 of three decision rules on the real data sets.

    python docs/figures/gain.py

reads docs/benchmark/results.csv and writes docs/_static/gain.png (for the README, which PyPI shows
too) and docs/_static/gain.svg (for the documentation). Both files carry a digest of the plotted
values, so that a test can compare them with the table without drawing anything.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent.parent
RULES = {"half": "p > 0.5", "threshold": "best single threshold", "default": "fgfm"}


def read_scores(learner: str = "ridge") -> dict[str, dict[str, float]]:
    """Return F1 by rule and data set, as a mean over folds, for the models of one learner."""
    folds: dict[tuple[str, str], list[float]] = defaultdict(list)
    results = "benchmark/auto/results.csv" if learner == "auto" else "benchmark/results.csv"
    with (DOCS / results).open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["learner"] == learner and row["status"] == "ok":
                folds[row["rule"], row["dataset"]].append(float(row["f1"]))
    scores: dict[str, dict[str, float]] = defaultdict(dict)
    for (rule, dataset), values in sorted(folds.items()):
        scores[rule][dataset] = sum(values) / len(values)
    return dict(scores)


def mean_scores(scores: dict[str, dict[str, float]]) -> dict[str, float]:
    """Return the mean over data sets for each rule that has a score on all of them."""
    datasets = scores["default"].keys()
    return {
        rule: sum(values.values()) / len(values)
        for rule, values in scores.items()
        if values.keys() == datasets
    }


def digest(scores: dict[str, dict[str, float]]) -> str:
    """Return a digest of the plotted values, rounded to four decimals."""
    plotted = {rule: {name: f"{f1:.4f}" for name, f1 in scores[rule].items()} for rule in RULES}
    text = json.dumps(plotted, sort_keys=True)
    return "values " + hashlib.sha256(text.encode()).hexdigest()[:16]


def short(value: float) -> str:
    """Format a score as in the tables: three decimals, without the leading zero."""
    return f"{value:.3f}".lstrip("0")


# Colours of Okabe and Ito. The shapes differ too, so that no mark hides another.
MARKS: dict[str, dict[str, Any]] = {
    "half": {"marker": "o", "facecolor": "white", "edgecolor": "#555555", "s": 64},
    "threshold": {"marker": "|", "color": "#0072B2", "s": 130, "linewidth": 2.4, "zorder": 4},
    "default": {"marker": "o", "color": "#D55E00", "s": 40},
}
STYLE = {
    "font.size": 11.5,
    "font.family": "DejaVu Sans",
    "svg.fonttype": "path",
    "svg.hashsalt": "fgfm",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.axisbelow": True,
}


def plot_scores(ax: Any, scores: dict[str, dict[str, float]]) -> None:
    """Plot a line with three marks for each data set, and one for the means above them."""
    means = mean_scores(scores)
    datasets = sorted(scores["default"], key=scores["default"].__getitem__)
    rows = [*range(len(datasets)), len(datasets) + 1.6]
    columns = {rule: [*(scores[rule][name] for name in datasets), means[rule]] for rule in RULES}
    ends = list(zip(*columns.values(), strict=True))
    ax.hlines(rows, list(map(min, ends)), list(map(max, ends)), color="#bbbbbb", zorder=2)
    for rule, name in RULES.items():
        mark = {"zorder": 3, "linewidth": 1.4} | MARKS[rule]
        mark["s"] = [mark["s"]] * len(datasets) + [1.8 * mark["s"]]
        ax.scatter(columns[rule], rows, label=name, **mark)
    for rule, shift, align in (
        ("half", (-10, -1), {"ha": "right", "va": "center"}),
        ("threshold", (0, 11), {"ha": "center", "va": "bottom"}),
        ("default", (10, -1), {"ha": "left", "va": "center"}),
    ):
        ax.annotate(
            short(means[rule]),
            (means[rule], rows[-1]),
            xytext=shift,
            textcoords="offset points",
            fontweight="bold",
            color=MARKS[rule].get("color", "#555555"),
            **align,
        )
    ax.axhline(len(datasets) + 0.3, color="#dddddd", linewidth=1)
    ax.set_yticks(rows, [*datasets, f"mean of {len(datasets)}"])
    ax.get_yticklabels()[-1].set_fontweight("bold")
    ax.tick_params(axis="y", length=0)
    ax.set(xlim=(0, 1.02), ylim=(-0.7, rows[-1] + 1.5), xlabel="mean instance F1 on test rows")
    ax.xaxis.grid(color="#eeeeee")


def draw(folder: Path = DOCS / "_static") -> None:
    """Write the picture as PNG and as SVG."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    scores = read_scores()
    with mpl.rc_context(STYLE):
        figure, ax = plt.subplots(figsize=(6.2, 6.8), layout="constrained")
        plot_scores(ax, scores)
        figure.legend(
            loc="outside upper center",
            ncols=3,
            frameon=False,
            handletextpad=0.2,
            columnspacing=1.2,
            title="Same label models, three decision rules",
            title_fontproperties={"size": 13, "weight": "bold"},
        )
        text = {"Description": digest(scores)}
        figure.savefig(folder / "gain.png", dpi=200, metadata=text | {"Software": None})
        figure.savefig(folder / "gain.svg", metadata=text | {"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    draw()
