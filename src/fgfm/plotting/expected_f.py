"""The expected F-measure against the size of the label set, for one row."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm import decision as decisions
from fgfm._utils.validation import check_beta, check_distributions, check_parts, unit_rows
from fgfm.decision import Decision
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
from fgfm.plotting._rows import classifier_and_features, decide_row, dense, one_row
from fgfm.plotting._set_sizes import (
    SetSizes,
    sizes_of_cardinalities,
    sizes_of_factors,
    sizes_of_marginals,
)

__all__ = ["ExpectedFDisplay"]

Floats = npt.NDArray[np.float64]


class ExpectedFDisplay:
    r"""What the best set of each size is worth: the expected F-measure of a row against size.

    The decision is the highest point, :math:`\max_k V_k`, where

    .. math:: V_k = \max_{|h| = k} E[F_\beta(y, h)] \le T(k) = E\left[
              \frac{(1 + \beta^2) |y|}{\beta^2 |y| + k}\right].

    The bound T(k) falls with k: where it is below the best value, no larger set needs a look. The
    empty set stands apart, as it scores by `zero_division` alone.

    Parameters
    ----------
    values : array-like of shape (m + 1,)
        The worth of the best set of each size, 0 to m; NaN at 0 where it is no choice.
    bounds : array-like of shape (m + 1,), optional
        The bound at each size; it is not drawn at 0.
    size : int, optional
        The size that was chosen; by default the smallest of the best.
    beta : float, default=1.0
        The beta of the F-measure.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the curve.
    figure_ : matplotlib Figure
        Figure with the axes.
    line_ : matplotlib Line2D
        The worth of each size from 1.
    bound_ : matplotlib Line2D, or None
        The bound.
    empty_ : matplotlib Line2D, or None
        The empty set, where it is a choice.
    chosen_ : matplotlib Line2D
        The chosen size.

    See Also
    --------
    DecisionDisplay : The labels that were chosen.

    Examples
    --------
    >>> from fgfm.plotting import ExpectedFDisplay
    >>> display = ExpectedFDisplay.from_marginals([[0.8, 0.45, 0.4]])
    >>> display.values.round(3), display.size
    (array([0.066, 0.597, 0.649, 0.667]), 3)
    """

    ax_: Any
    figure_: Any
    line_: Any
    bound_: Any
    empty_: Any
    chosen_: Any

    def __init__(
        self,
        values: Any,
        bounds: Any = None,
        *,
        size: int | None = None,
        beta: float = 1.0,
    ) -> None:
        self.values = values
        self.bounds = bounds
        self.size = size
        self.beta = beta

    def plot(
        self,
        ax: Any = None,
        *,
        max_size: int | None = None,
        bound: bool = True,
        legend: bool = True,
        title: str | None = None,
    ) -> ExpectedFDisplay:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into; by default those of a new figure.
        max_size : int, optional
            Largest size that is shown; by default twice the size beyond which the bound says that
            no set is better, and 10 at least.
        bound : bool, default=True
            Whether to draw the bound.
        legend : bool, default=True
            Whether to draw the legend.
        title : str, optional
            Title; by default what the chosen set is worth.

        Returns
        -------
        ExpectedFDisplay
            The display, with the artists as attributes.
        """
        plt = pyplot("ExpectedFDisplay")
        from matplotlib.ticker import MaxNLocator

        measure = f_name(check_beta(self.beta))
        values = checked_vector(self.values, "values", "size")
        m = len(values) - 1
        if m == 0:
            raise ValueError(
                "values has shape (1,): it must have a number for each size from 0 to m"
            )
        if not np.isfinite(values[1:]).all():
            wrong = 1 + int(np.argmin(np.isfinite(values[1:])))
            raise ValueError(
                f"values[{wrong}] is {values[wrong]}: there must be a number for each size from 1"
            )
        bounds = None
        if self.bounds is not None:
            bounds = checked_vector(self.bounds, "bounds", "size", m + 1)
        size = _smallest_best(values) if self.size is None else self.size
        whole = isinstance(size, (int, np.integer)) and not isinstance(size, bool)
        if not whole or not 0 <= size <= m or np.isnan(values[size]):
            raise ValueError(f"size is {size}: it must be one that values has a number for")
        last = _last_shown(values, bounds, size)
        if max_size is not None:
            last = min(m, check_count(max_size, "max_size"))
        scale = 1.0 if ax is None else text_scale(ax)
        if ax is None:
            _, ax = plt.subplots(layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure

        k = np.arange(1, m + 1)
        dots = "o" if min(m, last) <= 40 else None
        (self.line_,) = ax.plot(
            k, values[1:], color="C0", marker=dots, markersize=4, label="best set of each size"
        )
        self.bound_ = self.empty_ = None
        if bound and bounds is not None:
            (self.bound_,) = ax.plot(
                k, bounds[1:], color="0.45", linestyle="--", linewidth=1.2, label="bound $T(k)$"
            )
        if not np.isnan(values[0]):
            (self.empty_,) = ax.plot(
                0, values[0], "s", mfc="none", color="C0", markersize=6, label="empty set"
            )
        ax.plot([size, size], [0.0, values[size]], color="C3", linestyle=":", linewidth=1.2)
        (self.chosen_,) = ax.plot(
            size,
            values[size],
            "D",
            color="C3",
            mec="white",
            markersize=9,
            label=f"chosen: {plural(size, 'label') if size else 'empty set'}",
            zorder=3,
            clip_on=False,
        )
        # What the bound says of small sets is often more than 1, and of no use.
        top = 1.05 * max(1.0, float(np.nanmax(values)))
        ax.set(xlim=(-0.03 * last - 0.2, last * 1.03 + 0.2), ylim=(0.0, top))
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        worth = f"expected {measure} = {values[size]:.3f} with {size} of {plural(m, 'label')}"
        write(
            ax,
            scale,
            worth if title is None else title,
            xlabel="size of the label set",
            ylabel=f"expected {measure}",
        )
        if legend:
            ax.legend(loc="best", fontsize=points("small", scale))
        return self

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, row: int = 0, ax: Any = None, **options: Any
    ) -> ExpectedFDisplay:
        """Draw what a fitted classifier expects of each set size for a row.

        Parameters
        ----------
        estimator : FGFMClassifier, or a pipeline that ends with one
            Fitted. Its beta, zero_division and nonempty apply.
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.
        row : int, default=0
            The row of X to draw.
        ax : matplotlib Axes, optional
            Axes to draw into.
        **options : dict
            Passed on to `plot`.

        Returns
        -------
        ExpectedFDisplay
            The display.
        """
        classifier, X = classifier_and_features(estimator, one_row(X, row, "X"))
        decided = decide_row(classifier.decide, [X], [X], row)
        estimates = classifier.estimate(X)
        how = classifier.decision_params()
        sizes = _sizes([e.P for e in estimates], [e.d for e in estimates], how)
        return cls._of(sizes, decided, how["beta"]).plot(ax, **options)

    @classmethod
    def from_marginals(
        cls,
        proba: Any,
        *,
        row: int = 0,
        beta: float = 1.0,
        zero_division: float = 1.0,
        nonempty: bool = False,
        ax: Any = None,
        **options: Any,
    ) -> ExpectedFDisplay:
        """Draw the set sizes of a row of marginals, labels taken as independent.

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
        ax : matplotlib Axes, optional
            Axes to draw into.
        **options : dict
            Passed on to `plot`.

        Returns
        -------
        ExpectedFDisplay
            The display.
        """
        how: dict[str, Any] = {"beta": beta, "zero_division": zero_division, "nonempty": nonempty}
        of_row = one_row(proba, row, "proba")
        decided = decide_row(partial(decisions.from_marginals, **how), [of_row], [proba], row)
        sizes = sizes_of_marginals(np.clip(dense(of_row)[0], 0.0, 1.0), **how)
        return cls._of(sizes, decided, beta).plot(ax, **options)

    @classmethod
    def from_cardinalities(
        cls,
        P: Any,
        *,
        distribution: Any = None,
        row: int = 0,
        beta: float = 1.0,
        zero_division: float = 1.0,
        nonempty: bool = False,
        ax: Any = None,
        **options: Any,
    ) -> ExpectedFDisplay:
        """Draw the set sizes of a row of joint probabilities of label and number of labels.

        Parameters
        ----------
        P : array-like of shape (n, m, S)
            As for `fgfm.decision.from_cardinalities`.
        distribution : array-like of shape (n, S + 1), optional
            The probabilities of 0 to S labels, where P need not agree with them.
        row : int, default=0
            The row to draw.
        beta : float, default=1.0
            How many times as important recall is as precision.
        zero_division : float, default=1.0
            What an empty decision is worth where the true set is empty, from 0 to 1.
        nonempty : bool, default=False
            Suppose that the true set is not empty.
        ax : matplotlib Axes, optional
            Axes to draw into.
        **options : dict
            Passed on to `plot`.

        Returns
        -------
        ExpectedFDisplay
            The display.
        """
        how: dict[str, Any] = {"beta": beta, "zero_division": zero_division, "nonempty": nonempty}

        def decide(P: Any, d: Any) -> Decision:  # numpydoc ignore=GL08
            return decisions.from_cardinalities(P, distribution=d, **how)

        part = one_row(P, row, "P")
        d = None if distribution is None else one_row(distribution, row, "distribution")
        decided = decide_row(decide, [part, d], [P, distribution], row)
        sizes = _sizes([part], None if d is None else [d], how)
        return cls._of(sizes, decided, beta).plot(ax, **options)

    @classmethod
    def from_factors(
        cls,
        Ps: Sequence[Any],
        factors: Sequence[Sequence[int]],
        *,
        distributions: Sequence[Any] | None = None,
        row: int = 0,
        beta: float = 1.0,
        zero_division: float = 1.0,
        nonempty: bool = False,
        ax: Any = None,
        **options: Any,
    ) -> ExpectedFDisplay:
        """Draw the set sizes of a row whose label factors are independent of each other.

        Parameters
        ----------
        Ps : list of array-like of shape (n, m_f, S_f)
            As for `fgfm.decision.from_factors`.
        factors : list of list of int
            The labels of each factor, in the order of its P.
        distributions : list of array-like of shape (n, S_f + 1), optional
            The probabilities of 0 to S_f labels of each factor.
        row : int, default=0
            The row to draw.
        beta : float, default=1.0
            How many times as important recall is as precision.
        zero_division : float, default=1.0
            What an empty decision is worth where the true set is empty, from 0 to 1.
        nonempty : bool, default=False
            Suppose that the true set is not empty.
        ax : matplotlib Axes, optional
            Axes to draw into.
        **options : dict
            Passed on to `plot`.

        Returns
        -------
        ExpectedFDisplay
            The display.
        """
        how: dict[str, Any] = {"beta": beta, "zero_division": zero_division, "nonempty": nonempty}

        def decide(Ps: Any, ds: Any) -> Decision:  # numpydoc ignore=GL08
            return decisions.from_factors(Ps, factors, distributions=ds, **how)

        parts = check_parts(Ps)
        given = check_distributions(distributions, parts)
        of_row = [one_row(P, row, f"Ps[{f}]") for f, P in enumerate(parts)]
        ds = None
        if given is not None:
            ds = [one_row(d, row, f"distributions[{f}]") for f, d in enumerate(given)]
        decided = decide_row(decide, [of_row, ds], [parts, given], row)
        return cls._of(_sizes(of_row, ds, how), decided, beta).plot(ax, **options)

    @classmethod
    def _of(cls, sizes: SetSizes, decided: Decision, beta: float) -> ExpectedFDisplay:
        size = int(dense(decided.labels).sum())
        return cls(sizes.values, sizes.bounds, size=size, beta=beta)


def _sizes(Ps: Sequence[Any], ds: Sequence[Any] | None, how: dict[str, Any]) -> SetSizes:
    """Give the worth of each size for factors of one row, which the decision has accepted."""
    parts = [np.clip(dense(P)[0], 0.0, 1.0) for P in Ps]
    given = None if ds is None else [unit_rows(np.asarray(d), "d")[0] for d in ds]
    if len(parts) == 1:
        return sizes_of_cardinalities(parts[0], None if given is None else given[0], **how)
    return sizes_of_factors(parts, given, **how)


def _smallest_best(values: Floats) -> int:
    return int(np.flatnonzero(values >= np.nanmax(values) * (1.0 - 1e-12))[0])


def _last_shown(values: Floats, bounds: Floats | None, size: int) -> int:
    """Give the largest size of interest."""
    last = 2 * size
    if bounds is not None:
        last = 2 * int(np.count_nonzero(bounds[1:] > values[size]))
    return min(len(values) - 1, max(10, last, size))
