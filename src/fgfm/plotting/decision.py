"""The probabilities of a row's labels, and which of them were chosen."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm import decision as decisions
from fgfm._utils.rows import n_rows
from fgfm._utils.validation import (
    check_beta,
    check_labels,
    check_same_rows,
    clip_probabilities,
    real_array,
)
from fgfm.plotting._figure import (
    check_count,
    checked_names,
    checked_vector,
    f_name,
    plural,
    points,
    pyplot,
    room_on_the_left,
    shortened,
    text_scale,
    write,
)
from fgfm.plotting._rows import (
    classifier_and_features,
    decide_row,
    dense,
    label_names_of,
    one_row,
)

__all__ = ["DecisionDisplay"]

Floats = npt.NDArray[np.float64]

_LEAST_LINE = 8.5  # points that a name takes, at least, where there is a choice
_LEAST_FONT = 4.0  # points; smaller names are not written


class DecisionDisplay:
    """The labels of a row by probability, with those that were chosen.

    Chosen labels have filled dots on thick lines, the others open dots on thin ones. The best set
    need not hold the labels above 0.5, nor, where labels depend on each other, the most probable.

    Parameters
    ----------
    proba : array-like of shape (m,)
        The probability of each label.
    labels : array-like of shape (m,)
        The decision, 0 or 1.
    expected_f : float, optional
        What it is expected to score.
    label_names : sequence of str, optional
        Names of the labels; by default their numbers.
    beta : float, default=1.0
        The beta of the F-measure.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the labels.
    figure_ : matplotlib Figure
        Figure with the axes.
    chosen_ : matplotlib Line2D
        The dots of chosen labels.
    others_ : matplotlib Line2D
        The dots of the others that are shown.
    text_ : matplotlib Text, or None
        How many labels are not shown.
    order_ : ndarray
        The labels that are shown, from the top.

    See Also
    --------
    ExpectedFDisplay : What sets of other sizes are worth.

    Examples
    --------
    >>> from fgfm.plotting import DecisionDisplay
    >>> display = DecisionDisplay.from_marginals([[0.4, 0.8, 0.1]], label_names=["a", "b", "c"])
    >>> display.labels, display.order_
    (array([1, 1, 0], dtype=int8), array([1, 0, 2]))
    """

    ax_: Any
    figure_: Any
    chosen_: Any
    others_: Any
    text_: Any
    order_: npt.NDArray[np.int64]

    def __init__(
        self,
        proba: Any,
        labels: Any,
        *,
        expected_f: float | None = None,
        label_names: Sequence[str] | None = None,
        beta: float = 1.0,
    ) -> None:
        self.proba = proba
        self.labels = labels
        self.expected_f = expected_f
        self.label_names = label_names
        self.beta = beta

    def plot(
        self,
        ax: Any = None,
        *,
        max_labels: int | None = None,
        legend: bool = True,
        title: str | None = None,
    ) -> DecisionDisplay:
        """Draw the labels, most probable first.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into; by default those of a new figure, which is the higher the more
            labels are shown. Axes in a figure without a layout engine become narrower where names
            need the room.
        max_labels : int, optional
            How many labels are shown: the chosen ones in any case, and the most probable of the
            others. By default 30, or as many as the given axes have room for.
        legend : bool, default=True
            Whether to draw the legend.
        title : str, optional
            Title; by default the number of chosen labels, and what they are expected to score.

        Returns
        -------
        DecisionDisplay
            The display, with the artists as attributes.
        """
        plt = pyplot("DecisionDisplay")
        from matplotlib.ticker import FixedLocator

        given = real_array(self.proba, "proba", ("label",))
        p = checked_vector(clip_probabilities(given, "proba"), "proba", "label")
        m = len(p)
        decided = checked_vector(self.labels, "labels", "label", m)
        check_labels(decided, "labels")
        chosen = decided == 1.0
        all_names = checked_names(self.label_names, m)
        measure = f_name(check_beta(self.beta))
        if max_labels is None:
            max_labels = 30 if ax is None else int(np.clip(_height(ax) / _LEAST_LINE, 3, 30))
        self.order_ = _shown(p, chosen, check_count(max_labels, "max_labels"))
        rows = len(self.order_)
        scale = 1.0 if ax is None else text_scale(ax)
        if ax is None:
            _, ax = plt.subplots(
                figsize=(6.4, float(np.clip(1.5 + 0.2 * rows, 3.0, 15.0))), layout="constrained"
            )
        self.ax_, self.figure_ = ax, ax.figure

        shown, marked = p[self.order_], chosen[self.order_]
        at = np.arange(rows)
        rest = np.delete(p, self.order_)
        note = 14.0 * scale if len(rest) else 0.0  # points at the bottom
        line = (_height(ax) - note) / (rows + 0.2)
        bottom = rows - 0.4
        thick, dot = min(3.0, 0.3 * line), min(6.0, 0.65 * line)
        ax.hlines(at[~marked], 0.0, shown[~marked], color="0.6", linewidth=thick / 3.0)
        ax.hlines(at[marked], 0.0, shown[marked], color="C0", linewidth=thick)
        ax.axvline(0.5, color="0.3", linestyle="--", linewidth=1.0, zorder=1)
        style = {"linestyle": "none", "marker": "o", "clip_on": False, "zorder": 3}
        (self.chosen_,) = ax.plot(
            shown[marked], at[marked], color="C0", markersize=dot, label="chosen", **style
        )
        (self.others_,) = ax.plot(
            shown[~marked],
            at[~marked],
            color="0.45",
            mfc="white",
            markersize=0.85 * dot,
            label="not chosen",
            **style,
        )
        for dots in (self.chosen_, self.others_):
            dots.set_in_layout(False)  # without any dot its place would be a corner of the figure
        legend_font = points("small", scale)
        write(
            ax,
            scale,
            self._title(measure, int(chosen.sum()), m) if title is None else title,
            xlabel="probability",
            pad=6.0 + 1.5 * legend_font * legend,
        )
        font = min(0.85 * line, 10.0 * scale)
        self.text_ = None
        if len(rest):
            self.text_ = ax.text(
                0.01,
                bottom + 0.5 * note / line,
                _left_out(rest),
                va="center",
                fontsize=legend_font,
                style="italic",
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
            )
        if font >= _LEAST_FONT:
            letter = 0.62 * font  # points, on average
            longest = max(len(all_names[i]) for i in self.order_)
            names = shortened(all_names, int(room_on_the_left(ax, letter * longest) / letter))
            ax.set_yticks(at, [names[i] for i in self.order_], fontsize=font, parse_math=False)
        else:
            ax.set_yticks([])
        ax.tick_params(axis="y", length=0, pad=2.0 + 0.5 * dot)
        ax.spines[["top", "right"]].set_visible(False)
        ax.set(xlim=(0.0, 1.0), ylim=(bottom + note / line, -0.6))
        ax.xaxis.set_major_locator(FixedLocator([0.0, 0.25, 0.5, 0.75, 1.0]))
        if legend:
            ax.legend(
                loc="lower center",
                bbox_to_anchor=(0.5, 1.0),
                ncols=2,
                frameon=False,
                borderpad=0.0,
                borderaxespad=0.2,
                markerscale=max(1.0, 4.5 / dot),
                fontsize=legend_font,
            )
        return self

    def _title(self, measure: str, size: int, m: int) -> str:
        count = f"{size} of {plural(m, 'label')}"
        if self.expected_f is None:
            return f"{count} chosen"
        return f"expected {measure} = {self.expected_f:.3f} with {count}"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        row: int = 0,
        label_names: Sequence[str] | None = None,
        ax: Any = None,
        **options: Any,
    ) -> DecisionDisplay:
        """Draw what a fitted classifier decides for a row.

        Parameters
        ----------
        estimator : FGFMClassifier, or a pipeline that ends with one
            Fitted.
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.
        row : int, default=0
            The row of X to draw.
        label_names : sequence of str, optional
            Names of the labels; by default those that the estimator has seen.
        ax : matplotlib Axes, optional
            Axes to draw into.
        **options : dict
            Passed on to `plot`.

        Returns
        -------
        DecisionDisplay
            The display. The probabilities are those of ``predict_proba``, not conditioned on a
            set that is not empty; the frequencies in training for a row that is decided by them.
        """
        classifier, X = classifier_and_features(estimator, one_row(X, row, "X"))
        decided = decide_row(classifier.decide, [X], [X], row)
        p = np.empty(decided.labels.shape[1])
        for factor, (P, _) in zip(classifier.factors_, classifier.estimate(X), strict=True):
            p[factor] = np.minimum(P[0].sum(axis=1), 1.0)
        return cls(
            p,
            decided.labels[0],
            expected_f=float(decided.expected_f[0]),
            label_names=label_names_of(classifier) if label_names is None else label_names,
            beta=classifier.beta,
        ).plot(ax, **options)

    @classmethod
    def from_marginals(
        cls,
        proba: Any,
        *,
        row: int = 0,
        beta: float = 1.0,
        zero_division: float = 1.0,
        nonempty: bool = False,
        label_names: Sequence[str] | None = None,
        ax: Any = None,
        **options: Any,
    ) -> DecisionDisplay:
        """Decide for a row of marginals, labels taken as independent, and draw it.

        Parameters
        ----------
        proba : array-like, sparse matrix or data frame of shape (n, m)
            As for `fgfm.decision.from_marginals`.
        row : int, default=0
            The row to draw.
        beta : float, default=1.0
            How many times as important recall is as precision.
        zero_division : float, default=1.0
            What an empty decision is worth where the true set is empty, from 0 to 1.
        nonempty : bool, default=False
            Suppose that the true set is not empty.
        label_names : sequence of str, optional
            Names of the labels; by default the columns of a data frame.
        ax : matplotlib Axes, optional
            Axes to draw into.
        **options : dict
            Passed on to `plot`.

        Returns
        -------
        DecisionDisplay
            The display.
        """
        decide = partial(
            decisions.from_marginals, beta=beta, zero_division=zero_division, nonempty=nonempty
        )
        of_row = one_row(proba, row, "proba")
        decided = decide_row(decide, [of_row], [proba], row)
        return cls.from_decision(
            of_row, decided, beta=beta, label_names=label_names, ax=ax, **options
        )

    @classmethod
    def from_decision(
        cls,
        proba: Any,
        decision: decisions.Decision,
        *,
        row: int = 0,
        beta: float = 1.0,
        label_names: Sequence[str] | None = None,
        ax: Any = None,
        **options: Any,
    ) -> DecisionDisplay:
        """Draw a decision that was made before.

        Parameters
        ----------
        proba : array-like, sparse matrix or data frame of shape (n, m)
            The probability of each label.
        decision : Decision
            The decision for these rows: labels, and what they are expected to score.
        row : int, default=0
            The row to draw.
        beta : float, default=1.0
            The beta that was decided for.
        label_names : sequence of str, optional
            Names of the labels; by default the columns of a data frame.
        ax : matplotlib Axes, optional
            Axes to draw into.
        **options : dict
            Passed on to `plot`.

        Returns
        -------
        DecisionDisplay
            The display.
        """
        labels, expected_f = decision
        check_same_rows([n_rows(proba), n_rows(labels)], ["proba", "decision.labels"])
        if label_names is None and hasattr(proba, "columns"):
            label_names = list(proba.columns)
        return cls(
            dense(one_row(proba, row, "proba"))[0],
            dense(one_row(labels, row, "decision.labels"))[0].astype(np.int8),
            expected_f=float(np.asarray(expected_f)[row]),
            label_names=label_names,
            beta=beta,
        ).plot(ax, **options)


def _height(ax: Any) -> float:
    """Give the height of axes in points."""
    return float(ax.get_window_extent().height) * 72.0 / float(ax.figure.dpi)


def _shown(p: Floats, chosen: npt.NDArray[np.bool_], max_labels: int) -> npt.NDArray[np.int64]:
    """Give the labels to show, most probable first; of equal ones the chosen first."""
    order = np.lexsort((~chosen, -p))  # stable: then by number
    room = max(0, max_labels - int(chosen.sum()))
    others = order[~chosen[order]][:room]
    return order[chosen[order] | np.isin(order, others)]


def _left_out(rest: Floats) -> str:
    most = np.ceil(rest.max() * 1000.0) / 1000.0  # rounded up: the statement is to be true
    return f"and {len(rest):,} more, at most {most:g}{' each' if len(rest) > 1 else ''}"
