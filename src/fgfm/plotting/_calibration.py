"""Display of the obtained against the expected F-measure."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm._utils.label_table import read_true_labels
from fgfm._utils.names import check_same_index
from fgfm._utils.text import counted
from fgfm._utils.validation import check_beta, check_count, check_same_rows
from fgfm.metrics import f_measure
from fgfm.plotting._common import (
    check_vector,
    decide_arrays,
    estimator_and_rows,
    f_symbol,
    new_axes,
)

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class CalibrationBins(NamedTuple):
    """Rows binned by their expected F-measure.

    Attributes
    ----------
    expected : ndarray of shape (bins,)
        Mean of the expected F-measure.
    obtained : ndarray of shape (bins,)
        Mean of the obtained F-measure.
    standard_error : ndarray of shape (bins,)
        Standard error of the mean of the obtained F-measure; NaN for a bin of one row.
    n_rows : ndarray of shape (bins,)
        Number of rows.
    """

    expected: Floats
    obtained: Floats
    standard_error: Floats
    n_rows: Integers


class CalibrationDisplay:
    """Obtained against expected F-measure of decisions.

    Rows are binned by their expected F-measure, and for each bin the mean of the obtained one is
    drawn with its standard error. A calibrated model is on the diagonal; below it, the model is
    overconfident. Bars at the bottom show the distribution of the expected F-measure.

    Parameters
    ----------
    expected_f : array-like of shape (n,)
        The expected F-measure of each row; rows with NaN are left out.
    obtained_f : array-like of shape (n,)
        The F-measure that each row obtained.
    beta : float, default=1.0
        The beta of both.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the plot.
    figure_ : matplotlib Figure
        Figure with the axes.
    line_ : matplotlib ErrorbarContainer
        The bins.
    diagonal_ : matplotlib Line2D
        The line on which expected and obtained are equal.
    histogram_ : matplotlib BarContainer
        The distribution of the expected F-measure.
    bins_ : CalibrationBins
        Means, standard errors and numbers of rows of the bins.
    mean_difference_ : float
        Mean of obtained minus expected.

    See Also
    --------
    fgfm.f_measure : The F-measure of rows.

    Examples
    --------
    >>> from fgfm.plotting import CalibrationDisplay
    >>> display = CalibrationDisplay([0.5, 0.7, 0.9], [0.4, 0.8, 0.8]).plot()
    >>> round(display.mean_difference_, 3)
    -0.033
    """

    ax_: Any
    figure_: Any
    line_: Any
    diagonal_: Any
    histogram_: Any
    bins_: CalibrationBins
    mean_difference_: float

    def __init__(self, expected_f: Any, obtained_f: Any, *, beta: float = 1.0) -> None:
        self.expected_f = expected_f
        self.obtained_f = obtained_f
        self.beta = beta

    def plot(self, ax: Any = None, *, n_bins: int = 10) -> CalibrationDisplay:
        """Draw the bins, the diagonal and the histogram.

        The title is the mean difference with its standard error.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into; by default those of a new figure.
        n_bins : int, default=10
            Number of bins; fewer if there are few rows or few distinct expectations.

        Returns
        -------
        CalibrationDisplay
            The display, with the artists as attributes.
        """
        measure = f_symbol(check_beta(self.beta))
        n_bins = check_count(n_bins, "n_bins", 1)
        expected, obtained, n_left_out = self._validate()
        self.bins_ = _bins(expected, obtained, n_bins)
        difference = obtained - expected
        self.mean_difference_ = float(difference.mean())
        ax = new_axes("CalibrationDisplay", (5.4, 5.0)) if ax is None else ax
        self.ax_, self.figure_ = ax, ax.figure
        rows = counted(len(expected), "row")
        if n_left_out:
            rows = f"{rows}; {n_left_out:,} with NaN left out"
        self._draw(expected, rows)
        ax.set(
            title=_title(difference),
            xlabel=f"expected {measure}",
            ylabel=f"obtained {measure}",
        )
        ax.legend(handles=[self.line_, self.diagonal_, self.histogram_], fontsize="small")
        return self

    def _validate(self) -> tuple[Floats, Floats, int]:
        """Return expected and obtained F-measures without NaN, and the number of NaN."""
        expected = check_vector(self.expected_f, "expected_f", "row")
        obtained = check_vector(self.obtained_f, "obtained_f", "row", len(expected))
        no_expectation = np.isinf(expected) | (expected < 0.0)
        outside = ~((obtained >= 0.0) & (obtained <= 1.0))
        for name, values, wrong, rule in (
            ("expected_f", expected, no_expectation, "a non-negative number, or NaN"),
            ("obtained_f", obtained, outside, "in [0, 1]"),
        ):
            if wrong.any():
                row = int(np.argmax(wrong))
                raise ValueError(f"{name}[{row}] is {values[row]!s}: it must be {rule}")
        known = ~np.isnan(expected)
        if not known.any():
            raise ValueError("expected_f is NaN in every row: at least one must be a number")
        return expected[known], obtained[known], int(np.count_nonzero(~known))

    def _draw(self, expected: Floats, rows: str) -> None:
        """Draw histogram, diagonal and bins."""
        ax, bins = self.ax_, self.bins_
        top = max(1.0, float(expected.max()))
        count, edges = np.histogram(expected, bins=25, range=(0.0, top))
        self.histogram_ = ax.bar(
            edges[:-1],
            0.2 * count / count.max(),
            width=np.diff(edges),
            align="edge",
            color="0.85",
            edgecolor="white",
            linewidth=0.5,
            transform=ax.get_xaxis_transform(),  # heights are shares of the axes
            label=rows,
            zorder=0,
        )
        (self.diagonal_,) = ax.plot(
            [0.0, top], [0.0, top], color="0.3", linestyle="--", linewidth=1.0, label="as expected"
        )
        self.line_ = ax.errorbar(
            bins.expected,
            bins.obtained,
            yerr=np.nan_to_num(bins.standard_error),  # no error bar for a single row
            color="C0",
            marker="o",
            markersize=5,
            linewidth=1.2,
            elinewidth=1.2,
            capsize=3,
            label="mean and standard error",
        )
        ax.set(xlim=(0.0, top), ylim=(0.0, 1.02 * top))

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, Y: Any, *, ax: Any = None, **options: Any
    ) -> CalibrationDisplay:
        """Draw the calibration of a fitted estimator.

        Parameters
        ----------
        estimator : estimator of fgfm with `decide`, or a pipeline that ends with one
            Fitted, on other rows.
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.
        Y : array-like, sparse matrix or data frame of shape (n, m) or (n,)
            True labels.
        ax : matplotlib Axes, optional
            Axes to draw into.
        **options : dict
            Keyword arguments of `plot`.

        Returns
        -------
        CalibrationDisplay
            The display.
        """
        check_same_index(X=X, Y=Y)
        classifier, X = estimator_and_rows(estimator, X)
        labels, expected_f = decide_arrays(classifier, X)
        return cls.from_predictions(
            read_true_labels(Y, classifier),
            labels,
            expected_f,
            beta=classifier.beta,
            zero_division=classifier.zero_division,
            ax=ax,
            **options,
        )

    @classmethod
    def from_predictions(
        cls,
        Y_true: Any,
        Y_pred: Any,
        expected_f: Any,
        *,
        beta: float = 1.0,
        zero_division: float = 1.0,
        ax: Any = None,
        **options: Any,
    ) -> CalibrationDisplay:
        """Draw the calibration of given decisions.

        Parameters
        ----------
        Y_true : array-like, sparse matrix or data frame of shape (n, m)
            True labels, 0 or 1.
        Y_pred : array-like, sparse matrix or data frame of shape (n, m)
            Predicted labels.
        expected_f : array-like of shape (n,)
            Their expected F-measures.
        beta : float, default=1.0
            The beta of the decisions.
        zero_division : float, default=1.0
            F-measure of an empty prediction if the true set is empty, in [0, 1].
        ax : matplotlib Axes, optional
            Axes to draw into.
        **options : dict
            Keyword arguments of `plot`.

        Returns
        -------
        CalibrationDisplay
            The display.
        """
        obtained = f_measure(Y_true, Y_pred, beta, zero_division=zero_division, per_row=True)
        expected = check_vector(expected_f, "expected_f", "row")
        check_same_rows([len(obtained), len(expected)], ["Y_true", "expected_f"])
        return cls(expected, obtained, beta=beta).plot(ax, **options)


def _title(difference: Floats) -> str:
    """Return the mean difference with its standard error, if there are two rows or more."""
    title = f"obtained minus expected: {difference.mean():+.3f}".replace("-", "\N{MINUS SIGN}")
    if len(difference) == 1:
        return title
    return f"{title} ± {difference.std(ddof=1) / np.sqrt(len(difference)):.3f}"


def _bins(expected: Floats, obtained: Floats, n_bins: int) -> CalibrationBins:
    """Return bins of about equal size, quantiles of `expected`, of five rows or more.

    Rows with the same expectation are in the same bin.
    """
    n_bins = max(1, min(n_bins, len(expected) // 5))
    cuts = np.quantile(expected, np.arange(1, n_bins) / n_bins)
    which = np.searchsorted(np.unique(cuts), expected, side="right")  # (n,)
    count = np.bincount(which)
    filled = np.flatnonzero(count)
    count = count[filled]  # (bins,)
    means = [np.bincount(which, f)[filled] / count for f in (expected, obtained)]
    errors = np.full(len(filled), np.nan)
    for b in np.flatnonzero(count > 1):
        errors[b] = obtained[which == filled[b]].std(ddof=1) / np.sqrt(count[b])
    return CalibrationBins(means[0], means[1], errors, count)
