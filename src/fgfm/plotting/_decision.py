"""Display of the probabilities of a row's labels, with the chosen ones marked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._utils.names import check_same_index, check_same_names, column_names
from fgfm._utils.rows import n_rows, take_rows
from fgfm._utils.text import clipped, counted
from fgfm._utils.validation import (
    check_beta,
    check_count,
    check_labels,
    check_same_rows,
    clip_probabilities,
    real_array,
)
from fgfm.decision import Decision
from fgfm.plotting._common import (
    check_label_names,
    check_vector,
    decide_arrays,
    dense,
    estimator_and_rows,
    f_symbol,
    new_axes,
)

Floats = npt.NDArray[np.float64]

_NAME = 30  # letters of a name


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
    CalibrationDisplay : Whether the expected F-measure is obtained.

    Examples
    --------
    >>> from fgfm import decision
    >>> from fgfm.plotting import DecisionDisplay
    >>> proba = [[0.4, 0.8, 0.1]]
    >>> decided = decision.from_marginals(proba)
    >>> display = DecisionDisplay.from_decision(proba, decided, label_names=["a", "b", "c"])
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

    def plot(self, ax: Any = None, *, max_labels: int = 30) -> DecisionDisplay:
        """Draw the labels, most probable first.

        The title is the number of chosen labels and their expected F-measure.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into; by default those of a new figure, whose height grows with the number
            of labels shown.
        max_labels : int, default=30
            Number of labels shown: all chosen ones, and the most probable of the others.

        Returns
        -------
        DecisionDisplay
            The display, with the artists as attributes.
        """
        p, chosen = self._validate()
        m = len(p)
        names = check_label_names(self.label_names, m)
        measure = f_symbol(check_beta(self.beta))
        self.order_ = _shown(p, chosen, check_count(max_labels, "max_labels", 1))
        n_shown = len(self.order_)
        if ax is None:
            ax = new_axes("DecisionDisplay", (6.4, np.clip(1.5 + 0.2 * n_shown, 3.0, 15.0)))
        self.ax_, self.figure_ = ax, ax.figure
        self._draw_labels(p[self.order_], chosen[self.order_])
        ax.set(
            title=self._title(measure, int(chosen.sum()), m),
            xlabel="probability",
            xlim=(0.0, 1.0),
            ylim=(n_shown - 0.4, -0.6),
            xticks=[0.0, 0.25, 0.5, 0.75, 1.0],
        )
        short = shorten(names)
        # Points for each label, with some for the axis and the title.
        line = float(ax.get_window_extent().height) * 65.0 / float(ax.figure.dpi) / n_shown
        shown = [short[i] for i in self.order_]
        ax.set_yticks(range(n_shown), shown, fontsize=min(0.85 * line, 10.0), parse_math=False)
        ax.tick_params(axis="y", length=0)
        ax.spines[["top", "right"]].set_visible(False)
        self.text_ = None
        if n_shown < m:
            rest = _not_shown(np.delete(p, self.order_))
            style = {"ha": "right", "fontsize": "small", "style": "italic"}
            self.text_ = ax.text(0.99, 0.01, rest, transform=ax.transAxes, **style)
        ax.legend(loc="lower right", bbox_to_anchor=(1.0, 0.05), fontsize="small")
        return self

    def _validate(self) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return the probabilities, and which labels are chosen."""
        proba = real_array(self.proba, "proba", ("label",))
        p = check_vector(clip_probabilities(proba, "proba"), "proba", "label")
        labels = check_vector(self.labels, "labels", "label", len(p))
        check_labels(labels, "labels")
        return p, labels == 1.0

    def _draw_labels(self, p: Floats, chosen: npt.NDArray[np.bool_]) -> None:
        """Draw a line and a dot for each label shown."""
        ax, y = self.ax_, np.arange(len(p))
        ax.hlines(y[~chosen], 0.0, p[~chosen], color="0.6", linewidth=1.0)
        ax.hlines(y[chosen], 0.0, p[chosen], color="C0", linewidth=3.0)
        ax.axvline(0.5, color="0.3", linestyle="--", linewidth=1.0, zorder=1)
        style = {"linestyle": "none", "marker": "o", "markersize": 5, "clip_on": False}
        (self.chosen_,) = ax.plot(p[chosen], y[chosen], color="C0", label="chosen", **style)
        (self.others_,) = ax.plot(
            p[~chosen], y[~chosen], color="0.45", mfc="white", label="not chosen", **style
        )
        for dots in (self.chosen_, self.others_):
            # The layout engine would place an artist without dots at a corner of the figure.
            dots.set_in_layout(False)

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
        *,
        row: int = 0,
        label_names: Sequence[str] | None = None,
        ax: Any = None,
        **options: Any,
    ) -> DecisionDisplay:
        """Draw the decision of a fitted classifier for a row.

        Parameters
        ----------
        estimator : estimator of fgfm with `decide`, or a pipeline that ends with one
            Fitted.
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.
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
            non-empty set.
        """
        classifier, X = estimator_and_rows(estimator, X)
        # rows before it, too: errors name its index
        X = _take(X, slice(0, _check_row(row, n_rows(X), "X") + 1))
        decision = decide_arrays(classifier, X)
        p = dense(classifier.predict_proba(X))
        if not classifier.multilabel_:
            p = p[:, -1:]
        if label_names is None and not classifier.multilabel_:
            label_names = list(classifier.classes_[-1:])  # the positive class of a flat y
        elif label_names is None:
            label_names = getattr(classifier, "label_names_in_", None)
        return cls.from_decision(
            p, decision, row=row, beta=classifier.beta, label_names=label_names, ax=ax, **options
        )

    @classmethod
    def from_decision(
        cls,
        proba: Any,
        decision: Decision,
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
        n = check_same_rows([n_rows(proba), n_rows(labels)], ["proba", "decision.labels"])
        check_same_index(proba=proba, decision=labels)
        check_same_names(column_names(labels), column_names(proba), "decision.labels", "proba")
        chosen = slice(_check_row(row, n, "proba"), row + 1)
        expectation = float(np.asarray(expected_f)[row])
        if np.isnan(expectation):
            raise ValueError(
                f"row {row} has no probability for a non-empty label set, which nonempty=True "
                "assumes: there is no decision to draw"
            )
        if label_names is None and hasattr(proba, "columns"):
            label_names = list(proba.columns)
        return cls(
            dense(_take(proba, chosen))[0],
            dense(_take(labels, chosen))[0].astype(np.int8),
            expected_f=expectation,
            label_names=label_names,
            beta=beta,
        ).plot(ax, **options)


def _take(table: Any, rows: slice) -> Any:
    """Return some rows as a table of the same type; a sparse matrix becomes CSR."""
    return take_rows(table.tocsr() if sparse.issparse(table) else table, rows)


def _check_row(row: Any, n: int, name: str) -> int:
    """Return the index of a row of a table called `name`."""
    if isinstance(row, (bool, np.bool_)) or not isinstance(row, (int, np.integer)):
        raise TypeError(f"row is {row!r}: it must be an integer, the index of a row")
    if not 0 <= row < n:
        raise ValueError(f"row is {row}: {name} has {n} rows, so it must be from 0 to {n - 1}")
    return int(row)


def shorten(names: Sequence[str]) -> list[str]:
    """Shorten long names in the middle; those that become equal get the index of the label."""
    whole = [" ".join(name.split()) for name in names]
    count = Counter(clipped(name, _NAME) for name in whole)
    return [
        clipped(name, _NAME)
        if len(name) <= _NAME or count[clipped(name, _NAME)] == 1
        else f"{clipped(name, _NAME - 4 - len(str(k)))} ({k})"
        for k, name in enumerate(whole)
    ]


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
