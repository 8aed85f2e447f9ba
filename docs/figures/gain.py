"""Draw the picture of the README: F1 behind models with p > 0.5, tuned thresholds and FDecider.

    python docs/figures/gain.py

reads docs/benchmark/decider/results.csv and writes docs/_static/gain.png (for the README, which
PyPI shows too) and docs/_static/gain.svg (for the documentation). Both files carry a digest of the
plotted values, so that a test can compare them with the table without drawing anything.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pandas as pd

DOCS = Path(__file__).resolve().parent.parent
AVERAGES = {"samples": "F1 of rows", "macro": "macro F1", "micro": "micro F1"}
RULES = {"half": "p > 0.5", "tuned": "best tuned threshold", "fdecider": "FDecider"}
# Colours of Okabe and Ito. The shapes differ too, so that no mark hides another.
MARKS = {
    "half": {"marker": "o", "facecolor": "none", "edgecolor": "#777777", "s": 50},
    "tuned": {"marker": "|", "color": "#0072B2", "s": 150, "linewidth": 2.4, "zorder": 4},
    "fdecider": {"marker": "o", "color": "#D55E00", "s": 46},
}
STYLE = {
    "font.size": 11,
    "svg.fonttype": "path",
    "svg.hashsalt": "fgfm",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.axisbelow": True,
}


def read_scores() -> pd.DataFrame:
    """Return mean F1 by average and learner (rows, "mean" last) and rule (columns)."""
    results = pd.read_csv(DOCS / "benchmark" / "decider" / "results.csv")
    parts = []
    for average in AVERAGES:
        f1 = results[results["average"] == average].pivot_table(
            "f1", ["data", "learner"], "rule", sort=False
        )
        # One kind of threshold for each average: the best one by its mean over all pairs.
        best = f1[["threshold", "thresholds", "micromacro"]].mean().idxmax()
        f1 = f1.assign(tuned=f1[best])[list(RULES)]
        means = f1.groupby("learner").mean().sort_values("fdecider")
        means.loc["mean"] = f1.mean()
        parts.append(pd.concat({average: means}, names=["average"]))
    return pd.concat(parts).round(4)


def digest(scores: pd.DataFrame) -> str:
    """Return a digest of the plotted values."""
    text = json.dumps([[*map(str, key), *row] for key, *row in scores.itertuples()])
    return "values " + hashlib.sha256(text.encode()).hexdigest()[:16]


def draw(folder: Path = DOCS / "_static") -> None:
    """Write the picture as PNG and as SVG."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    scores = read_scores()
    with mpl.rc_context(STYLE):
        figure, axes = plt.subplots(1, 3, figsize=(7.2, 3.1), layout="constrained", sharey=True)
        for ax, (average, title) in zip(axes, AVERAGES.items(), strict=True):
            part = scores.loc[average].loc[scores.loc["samples"].index]  # rows in one order
            rows = range(len(part))
            ax.hlines(rows, part.min(axis=1), part.max(axis=1), color="#bbbbbb", zorder=2)
            for rule, name in RULES.items():
                ax.scatter(part[rule], rows, label=name, **{"zorder": 3} | MARKS[rule])
            ax.axhline(len(part) - 1.5, color="#dddddd", linewidth=1)
            ax.tick_params(axis="y", length=0)
            ax.set(title=title, ylim=(-0.6, len(part) - 0.4))
            ax.xaxis.grid(color="#eeeeee")
        axes[0].set_yticks(rows, part.index)
        axes[0].get_yticklabels()[-1].set_fontweight("bold")
        handles, names = axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper center", ncols=3, frameon=False)
        text = {"Description": digest(scores)}
        figure.savefig(folder / "gain.png", dpi=160, metadata=text | {"Software": None})
        figure.savefig(folder / "gain.svg", metadata=text | {"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    draw()
