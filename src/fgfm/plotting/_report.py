"""Display of what a decider changes against thresholds, label by label."""

from __future__ import annotations

from typing import Any

import numpy as np

from fgfm._utils.validation import check_choice, check_count
from fgfm.plotting._common import estimator_and_rows, new_axes
from fgfm.plotting._decision import shorten

__all__ = ["ReportDisplay"]

_MEASURES = {
    "f": "F-measure",
    "precision": "precision",
    "recall": "recall",
    "predicted": "share of rows that get the label",
}
# From the rule of interest to its rivals
_STYLES = (
    {"marker": "o", "color": "C0", "markersize": 7, "zorder": 3},
    {"marker": "o", "color": "0.45", "mfc": "white", "markersize": 6, "zorder": 2},
    {"marker": "D", "color": "C1", "mfc": "none", "markersize": 5, "zorder": 4},
)
_LEGEND = {"tuned": "tuned on other rows"}
_WORDS = {"better": "#00754F", "level": "0.45", "worse": "#B3470E"}


class ReportDisplay:
    """What a decider changes against thresholds, label by label.

    Each label has one dot for each decision rule of a report; the last line is that of all labels.
    F-measures of the decider have bars, their 95 % intervals, and a word says whether it is better
    than the last rule by more than chance. Other measures are joined by a line.

    Parameters
    ----------
    report : pandas.DataFrame
        What `fgfm.FDecider.report` returns.
    measure : {"f", "precision", "recall", "predicted"}, default="f"
        Column of the report to draw.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the labels.
    figure_ : matplotlib Figure
        Figure with the axes.
    dots_ : dict of matplotlib Line2D
        The dots of each decision rule.
    bars_ : matplotlib LineCollection
        The intervals, or the lines that join the dots of other measures.
    words_ : list of matplotlib Text
        "better", "level" or "worse", from top to bottom; none for other measures.
    labels_ : list
        The labels shown, from top to bottom.

    See Also
    --------
    fgfm.FDecider.report : The numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from fgfm import FDecider
    >>> from fgfm.plotting import ReportDisplay
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random((600, 3)) ** 2
    >>> Y = (rng.random((600, 3)) < p).astype(int)
    >>> decider = FDecider(average="macro").fit(p[:300], Y[:300])
    >>> display = ReportDisplay.from_estimator(decider, p[300:], Y[300:])
    >>> display.labels_[-1]
    'overall'
    """

    ax_: Any
    figure_: Any
    dots_: dict[str, Any]
    bars_: Any
    words_: list[Any]
    labels_: list[Any]

    def __init__(self, report: Any, *, measure: str = "f") -> None:
        self.report = report
        self.measure = measure

    def plot(self, ax: Any = None, *, max_labels: int = 30) -> ReportDisplay:
        """Draw the labels, those first that gain most against the first rival.

        The title has the values of all labels together, or of the only one.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into; by default those of a new figure, whose height grows with the number
            of labels shown.
        max_labels : int, default=30
            Number of labels shown, besides that of all: those that change most.

        Returns
        -------
        ReportDisplay
            The display, with the artists as attributes.
        """
        check_choice(self.measure, "measure", tuple(_MEASURES))
        check_count(max_labels, "max_labels", 1)
        rules = list(dict.fromkeys(self.report.index.get_level_values("decision")))
        names = self.report.index.get_level_values("label")[:: len(rules)].tolist()
        values = self.report[self.measure].to_numpy(dtype=float).reshape(-1, len(rules))
        several = len(names) > 1  # and the last one is of all labels
        gain = values[:, 0] - values[:, 1]
        labels = np.arange(len(names) - several)
        largest = labels[np.argsort(-np.abs(gain[labels]), kind="stable")[:max_labels]]
        order = largest[np.argsort(-gain[largest], kind="stable")].tolist() + [-1] * several
        self.labels_ = [names[i] for i in order]
        n = len(order)
        if ax is None:
            ax = new_axes("ReportDisplay", (6.4, np.clip(1.6 + 0.25 * n, 2.5, 15.0)))
        self.ax_, self.figure_ = ax, ax.figure
        at, shown = np.arange(n) + 0.3 * (several & (np.arange(n) == n - 1)), values[order]
        if self.measure == "f":
            first = self.report.iloc[:: len(rules)].iloc[order]  # of the decider
            bars = first["low"], first["high"], {"color": "C0", "alpha": 0.3, "linewidth": 5.0}
            words, legend = first["verdict"].tolist(), {rules[0]: f"{rules[0]}, 95 % interval"}
        else:
            bars = shown.min(axis=1), shown.max(axis=1), {"color": "0.8", "linewidth": 2.0}
            words, legend = [], {}
        self.bars_ = ax.hlines(at, *bars[:2], zorder=1, **bars[2])
        self.dots_ = {
            rule: ax.plot(
                *(x, at),
                ls="none",
                label=(_LEGEND | legend).get(rule, rule),
                clip_on=False,
                **style,
            )[0]
            for rule, x, style in zip(rules, shown.T, _STYLES[: len(rules)], strict=True)
        }
        ax.set(xlabel=_MEASURES[self.measure], ylim=(at[-1] + 0.6, -0.6))
        # Points for each label, with some for the axis and the legend.
        line = float(ax.get_window_extent().height) * 65.0 / float(ax.figure.dpi) / n
        shown_names = shorten([str(name) for name in self.labels_])
        ax.set_yticks(at, shown_names, fontsize=min(0.85 * line, 10.0), parse_math=False)
        if several:
            ax.get_yticklabels()[-1].set_fontweight("bold")
            ax.axhline(at[-1] - 0.65, color="0.3", linewidth=0.8)
        ax.tick_params(axis="y", length=0)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.grid(axis="x", color="0.92")
        ax.set_axisbelow(True)
        beside = ax.get_yaxis_transform()  # at the right end of each line
        self.words_ = [
            ax.text(1.02, y, word, transform=beside, va="center", size="small", color=_WORDS[word])
            for y, word in zip(at, words, strict=False)
        ]
        rivals = " and ".join(f"{value:.3f}" for value in values[-1, 1:])
        title = f"{'overall ' if several else ''}{values[-1, 0]:.3f}, against {rivals}"
        if words:
            title += f": {words[-1]}"
        ax.set_title(title, pad=30)
        ax.legend(
            loc="lower center",
            bbox_to_anchor=(0.5, 1.0),
            ncols=len(rules),
            frameon=False,
            fontsize="small",
        )
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        measure: str = "f",
        ax: Any = None,
        **options: Any,
    ) -> ReportDisplay:
        """Draw the report of a fitted decider.

        Parameters
        ----------
        estimator : estimator of fgfm with `report`, or a pipeline that ends with one
            Fitted, on other rows.
        X : array-like, sparse matrix, data frame or list of arrays
            Rows, as in `fit`.
        y : array-like, sparse matrix or data frame of shape (n, m) or (n,)
            True labels.
        measure : {"f", "precision", "recall", "predicted"}, default="f"
            Column of the report to draw.
        ax : matplotlib Axes, optional
            Axes to draw into.
        **options : dict
            Keyword arguments of `plot`.

        Returns
        -------
        ReportDisplay
            The display.
        """
        decider, X = estimator_and_rows(estimator, X, "report")
        return cls(decider.report(X, y), measure=measure).plot(ax, **options)
