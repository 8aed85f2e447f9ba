"""Display of the probabilities of a row's labels, with the chosen ones marked."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm import decision as decisions
from fgfm._utils.names import check_same_index, check_same_names, column_names
from fgfm._utils.rows import n_rows
from fgfm._utils.text import counted
from fgfm._utils.validation import (
    check_beta,
    check_count,
    check_labels,
    check_same_rows,
    clip_probabilities,
    real_array,
)
from fgfm.plotting._estimator import (
    classifier_and_features,
    decide_arrays,
    decide_row,
    decision_inputs,
    dense,
    label_names_of,
    select_row,
)
from fgfm.plotting._figure import (
    f_symbol,
    font_points,
    import_pyplot,
    make_left_margin,
    set_labels,
    shorten_names,
    text_scale,
)
from fgfm.plotting._validation import check_label_names, check_vector

__all__ = ["DecisionDisplay"]

Floats = npt.NDArray[np.float64]

_MIN_LINE = 8.5  # points; smallest height of a line where the number of labels is chosen
_MIN_FONT = 4.0  # points; smaller names are not drawn


class DecisionDisplay:
    """Probabilities of the labels of one row, with the chosen labels marked.

    Chosen labels have filled dots on thick lines, the others open dots on thin ones. The best set
    need not consist of the labels above 0.5, nor, if labels depend on each other, of the most
    probable ones.

    Parameters
    ----------
    proba : array-like of shape (m,)
        The probability of each label.
    labels : array-like of shape (m,)
        The decision, 0 or 1.
    expected_f : float, optional
        The expected F-measure of the decision.
    label_names : sequence of str, optional
        Names of the labels; by default their indices.
    beta : float, default=1.0
        The beta of the F-measure.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the labels.
    figure_ : matplotlib Figure
        Figure with the axes.
    chosen_ : matplotlib Line2D
        The dots of the chosen labels.
    others_ : matplotlib Line2D
        The dots of the other labels shown.
    text_ : matplotlib Text, or None
        The number of labels that are not shown.
    order_ : ndarray
        The labels shown, from top to bottom.

    See Also
    --------
    ExpectedFDisplay : The expected F-measure of sets of other sizes.

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
            Axes to draw into; by default those of a new figure, whose height grows with the number
            of labels shown. Axes in a figure without a layout engine become narrower if the names
            need the space.
        max_labels : int, optional
            Number of labels shown: all chosen ones, and the most probable of the others. By
            default 30, or as many as fit into the given axes.
        legend : bool, default=True
            Whether to draw the legend.
        title : str, optional
            Title; by default the number of chosen labels and their expected F-measure.

        Returns
        -------
        DecisionDisplay
            The display, with the artists as attributes.
        """
        plt = import_pyplot("DecisionDisplay")
        p, chosen = self._validate()
        m = len(p)
        names = check_label_names(self.label_names, m)
        measure = f_symbol(check_beta(self.beta))
        if max_labels is None:
            max_labels = 30 if ax is None else int(np.clip(_height(ax) / _MIN_LINE, 3, 30))
        self.order_ = _shown(p, chosen, check_count(max_labels, "max_labels", 1))
        n_shown = len(self.order_)
        scale = 1.0 if ax is None else text_scale(ax)
        if ax is None:
            height = float(np.clip(1.5 + 0.2 * n_shown, 3.0, 15.0))
            _, ax = plt.subplots(figsize=(6.4, height), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        note = 14.0 * scale if n_shown < m else 0.0  # points below the labels
        line = (_height(ax) - note) / (n_shown + 0.2)  # points per label
        dot = min(6.0, 0.65 * line)
        bottom = n_shown - 0.4
        self._draw_labels(p[self.order_], chosen[self.order_], min(3.0, 0.3 * line), dot)
        legend_font = font_points("small", scale)
        set_labels(
            ax,
            scale,
            self._title(measure, int(chosen.sum()), m) if title is None else title,
            xlabel="probability",
            pad=6.0 + 1.5 * legend_font * legend,
        )
        self._write_names(names, min(0.85 * line, 10.0 * scale))
        ax.tick_params(axis="y", length=0, pad=2.0 + 0.5 * dot)
        ax.spines[["top", "right"]].set_visible(False)
        ax.set(xlim=(0.0, 1.0), ylim=(bottom + note / line, -0.6))
        ax.set_xticks([0.0, 0.25, 0.5, 0.75, 1.0])
        self.text_ = None
        if n_shown < m:
            self.text_ = ax.text(
                0.01,
                bottom + 0.5 * note / line,
                _not_shown(np.delete(p, self.order_)),
                va="center",
                fontsize=legend_font,
                style="italic",
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
            )
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

    def _validate(self) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return the probabilities, and which labels are chosen."""
        proba = real_array(self.proba, "proba", ("label",))
        p = check_vector(clip_probabilities(proba, "proba"), "proba", "label")
        labels = check_vector(self.labels, "labels", "label", len(p))
        check_labels(labels, "labels")
        return p, labels == 1.0

    def _draw_labels(
        self, p: Floats, chosen: npt.NDArray[np.bool_], thickness: float, dot: float
    ) -> None:
        """Draw a line and a dot for each label shown; sizes are in points."""
        ax = self.ax_
        at = np.arange(len(p))
        ax.hlines(at[~chosen], 0.0, p[~chosen], color="0.6", linewidth=thickness / 3.0)
        ax.hlines(at[chosen], 0.0, p[chosen], color="C0", linewidth=thickness)
        ax.axvline(0.5, color="0.3", linestyle="--", linewidth=1.0, zorder=1)
        style = {"linestyle": "none", "marker": "o", "clip_on": False, "zorder": 3}
        (self.chosen_,) = ax.plot(
            p[chosen], at[chosen], color="C0", markersize=dot, label="chosen", **style
        )
        (self.others_,) = ax.plot(
            p[~chosen],
            at[~chosen],
            color="0.45",
            mfc="white",
            markersize=0.85 * dot,
            label="not chosen",
            **style,
        )
        for dots in (self.chosen_, self.others_):
            # The layout engine would place an artist without dots at a corner of the figure.
            dots.set_in_layout(False)

    def _write_names(self, names: Sequence[str], font: float) -> None:
        """Write the names of the labels shown, shortened to the space on the left."""
        ax = self.ax_
        if font < _MIN_FONT:
            ax.set_yticks([])
            return
        letter = 0.62 * font  # average width in points
        longest = max(len(names[i]) for i in self.order_)
        short = shorten_names(names, int(make_left_margin(ax, letter * longest) / letter))
        shown = [short[i] for i in self.order_]
        ax.set_yticks(range(len(shown)), shown, fontsize=font, parse_math=False)

    def _title(self, measure: str, size: int, m: int) -> str:
        count = f"{size} of {counted(m, 'label')}"
        if self.expected_f is None:
            return f"{count} chosen"
        return f"expected {measure} = {self.expected_f:.3f} with {count}"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        Y: Any = None,
        *,
        row: int = 0,
        label_names: Sequence[str] | None = None,
        ax: Any = None,
        **options: Any,
    ) -> DecisionDisplay:
        """Draw the decision of a fitted classifier for a row.

        Parameters
        ----------
        estimator : FGFMClassifier, or a pipeline that ends with one
            Fitted.
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.
        Y : object, optional
            Not used: the expectation is that of the model. Present for the same call as
            `CalibrationDisplay.from_estimator`.
        row : int, default=0
            Index of the row of X to draw.
        label_names : sequence of str, optional
            Names of the labels; by default those seen in `fit`.
        ax : matplotlib Axes, optional
            Axes to draw into.
        **options : dict
            Keyword arguments of `plot`.

        Returns
        -------
        DecisionDisplay
            The display. The probabilities are those of ``predict_proba``, not conditioned on a
            non-empty set; for a row decided by the label frequencies, these frequencies.
        """
        classifier, X = classifier_and_features(estimator, select_row(X, row, "X"))
        decision = decide_row(partial(decide_arrays, classifier), [X], [X], row)
        inputs = decision_inputs(classifier, X)
        p = np.empty(decision.labels.shape[1])
        for factor, P in zip(inputs.factors, inputs.Ps, strict=True):
            p[factor] = np.minimum(P[0].sum(axis=1), 1.0)
        return cls(
            p,
            decision.labels[0],
            expected_f=float(decision.expected_f[0]),
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
        """Decide for a row of marginals of independent labels, and draw the decision.

        Parameters
        ----------
        proba : array-like, sparse matrix or data frame of shape (n, m)
            Marginal probabilities, as for `fgfm.decision.from_marginals`.
        row : int, default=0
            Index of the row to draw.
        beta : float, default=1.0
            Weight of recall relative to precision.
        zero_division : float, default=1.0
            F-measure of an empty prediction if the true set is empty, in [0, 1].
        nonempty : bool, default=False
            Assume that the true set is not empty.
        label_names : sequence of str, optional
            Names of the labels; by default the columns of a data frame.
        ax : matplotlib Axes, optional
            Axes to draw into.
        **options : dict
            Keyword arguments of `plot`.

        Returns
        -------
        DecisionDisplay
            The display.
        """
        decide = partial(
            decisions.from_marginals, beta=beta, zero_division=zero_division, nonempty=nonempty
        )
        of_row = select_row(proba, row, "proba")
        decision = decide_row(decide, [of_row], [proba], row)
        return cls.from_decision(
            of_row, decision, beta=beta, label_names=label_names, ax=ax, **options
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
        """Draw a given decision.

        Parameters
        ----------
        proba : array-like, sparse matrix or data frame of shape (n, m)
            The probability of each label.
        decision : Decision
            The decision for these rows: labels and expected F-measures.
        row : int, default=0
            Index of the row to draw.
        beta : float, default=1.0
            The beta of the decision.
        label_names : sequence of str, optional
            Names of the labels; by default the columns of a data frame.
        ax : matplotlib Axes, optional
            Axes to draw into.
        **options : dict
            Keyword arguments of `plot`.

        Returns
        -------
        DecisionDisplay
            The display.
        """
        labels, expected_f = decision
        check_same_rows([n_rows(proba), n_rows(labels)], ["proba", "decision.labels"])
        check_same_index(proba=proba, decision=labels)
        check_same_names(column_names(labels), column_names(proba), "decision.labels", "proba")
        if label_names is None and hasattr(proba, "columns"):
            label_names = list(proba.columns)
        return cls(
            dense(select_row(proba, row, "proba"))[0],
            dense(select_row(labels, row, "decision.labels"))[0].astype(np.int8),
            expected_f=float(np.asarray(expected_f)[row]),
            label_names=label_names,
            beta=beta,
        ).plot(ax, **options)


def _height(ax: Any) -> float:
    """Return the height of axes in points."""
    return float(ax.get_window_extent().height) * 72.0 / float(ax.figure.dpi)


def _shown(p: Floats, chosen: npt.NDArray[np.bool_], max_labels: int) -> npt.NDArray[np.int64]:
    """Return the labels to show, most probable first; among equal ones the chosen first."""
    order = np.lexsort((~chosen, -p))  # stable: then by index
    n_others = max(0, max_labels - int(chosen.sum()))
    others = order[~chosen[order]][:n_others]
    return order[chosen[order] | np.isin(order, others)]


def _not_shown(rest: Floats) -> str:
    """Describe the labels that are not shown."""
    largest = np.ceil(rest.max() * 1000.0) / 1000.0  # rounded up, so that "at most" is true
    return f"and {len(rest):,} more, at most {largest:g}{' each' if len(rest) > 1 else ''}"
