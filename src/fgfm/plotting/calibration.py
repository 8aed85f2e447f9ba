"""The F-measure that was expected against the one that was obtained."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm._utils.label_table import read_true_labels
from fgfm._utils.validation import check_beta, check_same_rows
from fgfm.metrics import f_measure
from fgfm.plotting._figure import (
    check_count,
    checked_vector,
    f_name,
    plural,
    points,
    pyplot,
    text_scale,
    write,
)
from fgfm.plotting._rows import classifier_and_features

__all__ = ["CalibrationBins", "CalibrationDisplay", "calibration_bins"]

Floats = npt.NDArray[np.float64]

_LEAST_ROWS = 5  # of a bin, as far as rows of equal expectation allow


class CalibrationBins(NamedTuple):
    """Rows of similar expectation: means, and how sure they are."""

    expected: Floats  # (bins,) mean of the expected F-measure
    obtained: Floats  # (bins,) mean of the obtained one
    standard_error: Floats  # (bins,) of that mean; NaN for a bin of one row
    n_rows: npt.NDArray[np.int64]  # (bins,)


class CalibrationDisplay:
    """What decisions scored, against what they were expected to score.

    Rows are put into bins of equal number by their expected F-measure, and for each bin the mean
    of the obtained one is drawn with its standard error. On the diagonal a model knows what it is
    worth; below, it promises too much. Bars at the bottom show how many rows expect what.

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
        Axes with the picture.
    figure_ : matplotlib Figure
        Figure with the axes.
    line_ : matplotlib ErrorbarContainer
        The bins.
    diagonal_ : matplotlib Line2D
        Where expected and obtained are the same.
    histogram_ : matplotlib BarContainer
        The rows by their expectation.
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

    def plot(
        self,
        ax: Any = None,
        *,
        n_bins: int = 10,
        legend: bool = True,
        title: str | None = None,
    ) -> CalibrationDisplay:
        """Draw the bins, the diagonal and the histogram.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into; by default those of a new figure.
        n_bins : int, default=10
            Number of bins; there are fewer where rows are few or expect the same.
        legend : bool, default=True
            Whether to draw the legend.
        title : str, optional
            Title; by default the mean difference with its standard error.

        Returns
        -------
        CalibrationDisplay
            The display, with the artists as attributes.
        """
        plt = pyplot("CalibrationDisplay")
        measure = f_name(check_beta(self.beta))
        n_bins = check_count(n_bins, "n_bins")
        expected, obtained, left_out = self._rows()
        n = len(expected)
        self.bins_ = bins = calibration_bins(expected, obtained, n_bins)
        difference = obtained - expected
        self.mean_difference_ = float(difference.mean())
        scale = 1.0 if ax is None else text_scale(ax)
        if ax is None:
            _, ax = plt.subplots(figsize=(5.4, 5.0), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure

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
            label=_rows_shown(n, left_out),
            zorder=0,
        )
        (self.diagonal_,) = ax.plot(
            [0.0, top], [0.0, top], color="0.3", linestyle="--", linewidth=1.0, label="as expected"
        )
        single = np.isnan(bins.standard_error)
        self.line_ = ax.errorbar(
            bins.expected,
            bins.obtained,
            yerr=np.where(single, 0.0, bins.standard_error),
            color="C0",
            marker="o",
            markersize=5,
            linewidth=1.2,
            elinewidth=1.2,
            capsize=3,
            label="mean and standard error",
        )
        ax.set(xlim=(0.0, top), ylim=(0.0, 1.02 * top))
        write(
            ax,
            scale,
            _title(difference) if title is None else title,
            xlabel=f"expected {measure}",
            ylabel=f"obtained {measure}",
        )
        if legend:
            ax.legend(
                handles=[self.line_, self.diagonal_, self.histogram_],
                loc="best",
                fontsize=points("small", scale),
            )
        return self

    def _rows(self) -> tuple[Floats, Floats, int]:
        """Give what was expected and obtained, without rows of NaN, and the number of these."""
        expected = checked_vector(self.expected_f, "expected_f", "row")
        obtained = checked_vector(self.obtained_f, "obtained_f", "row", len(expected))
        for values, name in [(expected, "expected_f"), (obtained, "obtained_f")]:
            wrong = np.isinf(values) | (values < 0.0)
            if name == "obtained_f":
                wrong |= ~(values <= 1.0)
            if wrong.any():
                at = int(np.argmax(wrong))
                rule = "a number in [0, 1]" if name == "obtained_f" else "a number from 0, or NaN"
                raise ValueError(f"{name}[{at}] is {values[at]!s}: it must be {rule}")
        known = ~np.isnan(expected)
        if not known.any():
            raise ValueError("expected_f is NaN in every row: one must have an expectation")
        return expected[known], obtained[known], int(np.count_nonzero(~known))

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, Y: Any, *, ax: Any = None, **options: Any
    ) -> CalibrationDisplay:
        """Draw how well a fitted classifier knows its own score.

        Parameters
        ----------
        estimator : FGFMClassifier, or a pipeline that ends with one
            Fitted, on other rows.
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.
        Y : array-like, sparse matrix or data frame of shape (n, m) or (n,)
            True labels.
        ax : matplotlib Axes, optional
            Axes to draw into.
        **options : dict
            Passed on to `plot`.

        Returns
        -------
        CalibrationDisplay
            The display.
        """
        classifier, X = classifier_and_features(estimator, X)
        labels, expected_f = classifier.decide(X)
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
        """Draw how well decisions knew their own score.

        Parameters
        ----------
        Y_true : array-like, sparse matrix or data frame of shape (n, m)
            True labels, 0 or 1.
        Y_pred : array-like, sparse matrix or data frame of shape (n, m)
            Decided labels.
        expected_f : array-like of shape (n,)
            What they were expected to score.
        beta : float, default=1.0
            The beta that was decided for.
        zero_division : float, default=1.0
            What an empty decision is worth where the true set is empty, from 0 to 1.
        ax : matplotlib Axes, optional
            Axes to draw into.
        **options : dict
            Passed on to `plot`.

        Returns
        -------
        CalibrationDisplay
            The display.
        """
        obtained = f_measure(Y_true, Y_pred, beta, zero_division=zero_division, per_row=True)
        expected = checked_vector(expected_f, "expected_f", "row")
        check_same_rows([len(obtained), len(expected)], ["Y_true", "expected_f"])
        return cls(expected, obtained, beta=beta).plot(ax, **options)


def calibration_bins(expected: Floats, obtained: Floats, n_bins: int) -> CalibrationBins:
    """Put rows into bins by quantiles; rows that expect the same are in the same bin.

    Parameters
    ----------
    expected : ndarray of shape (n,)
        The expected F-measure of each row.
    obtained : ndarray of shape (n,)
        The F-measure that each row obtained.
    n_bins : int
        Number of bins; there are fewer where rows are few or expect the same.

    Returns
    -------
    CalibrationBins
        Means, standard errors and numbers of rows.
    """
    n_bins = max(1, min(n_bins, len(expected) // _LEAST_ROWS))
    cuts = np.quantile(expected, np.arange(1, n_bins) / n_bins)
    which = np.searchsorted(np.unique(cuts), expected, side="right")  # (n,)
    count = np.bincount(which)
    filled = np.flatnonzero(count)
    count = count[filled]
    mean, score = (np.bincount(which, x)[filled] / count for x in (expected, obtained))
    error = [_standard_error(obtained[which == b]) for b in filled]
    return CalibrationBins(mean, score, np.array(error), count)


def _standard_error(values: Floats) -> float:
    """Give the standard error of a mean, NaN for one value."""
    if len(values) == 1:
        return float("nan")
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def _rows_shown(n: int, left_out: int) -> str:
    rows = plural(n, "row")
    return f"{rows}; {left_out:,} of NaN left out" if left_out else rows


def _title(difference: Floats) -> str:
    error = _standard_error(difference)
    mean = f"obtained minus expected: {difference.mean():+.3f}".replace("-", "\N{MINUS SIGN}")
    return mean if np.isnan(error) else f"{mean} ± {error:.3f}"
