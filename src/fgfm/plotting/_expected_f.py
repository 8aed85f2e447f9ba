"""Display of the expected F-measure against the size of the label set, for one row."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm import cardinality
from fgfm import decision as decisions
from fgfm._utils.text import counted
from fgfm._utils.validation import (
    check_beta,
    check_count,
    check_distributions,
    check_parts,
    unit_rows,
)
from fgfm.decision import Decision
from fgfm.plotting._common import (
    check_vector,
    classifier_and_features,
    decide_arrays,
    decide_row,
    dense,
    f_symbol,
    new_axes,
    select_row,
)
from fgfm.plotting._set_sizes import SetSizes, sizes_of_factors, sizes_of_marginals

__all__ = ["ExpectedFDisplay"]

Floats = npt.NDArray[np.float64]


class ExpectedFDisplay:
    r"""Expected F-measure of the best label set of each size, for one row.

    The decision is the maximum of the curve, :math:`\max_k V_k`, where

    .. math:: V_k = \max_{|h| = k} E[F_\beta(y, h)] \le T(k) = E\left[
              \frac{(1 + \beta^2) |y|}{\beta^2 |y| + k}\right].

    The bound T(k) decreases with k: once it is below the best value, no larger set can be better.
    The empty set is drawn separately, since its value depends on `zero_division` alone.

    Parameters
    ----------
    values : array-like of shape (m + 1,)
        The value of the best set of each size, 0 to m; NaN at 0 if the empty set is not allowed.
    bounds : array-like of shape (m + 1,), optional
        The bound at each size; it is not drawn at 0.
    size : int, optional
        The chosen size; by default the smallest one with the maximal value.
    beta : float, default=1.0
        The beta of the F-measure.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the curve.
    figure_ : matplotlib Figure
        Figure with the axes.
    line_ : matplotlib Line2D
        The value of each size from 1.
    bound_ : matplotlib Line2D, or None
        The bound.
    empty_ : matplotlib Line2D, or None
        The empty set, if it is allowed.
    chosen_ : matplotlib Line2D
        The chosen size.

    See Also
    --------
    DecisionDisplay : The chosen labels.

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

    def plot(self, ax: Any = None, *, max_size: int | None = None) -> ExpectedFDisplay:
        """Draw the curve, with the value and the size of the chosen set as title.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into; by default those of a new figure.
        max_size : int, optional
            Largest size shown; by default twice the size beyond which the bound excludes better
            sets, and at least 10.

        Returns
        -------
        ExpectedFDisplay
            The display, with the artists as attributes.
        """
        measure = f_symbol(check_beta(self.beta))
        values, bounds, size = self._validate()
        m = len(values) - 1
        last = _last_shown(values, bounds, size)
        if max_size is not None:
            last = min(m, check_count(max_size, "max_size", 1))
        ax = new_axes("ExpectedFDisplay", (6.4, 4.8)) if ax is None else ax
        self.ax_, self.figure_ = ax, ax.figure
        self._draw(values, bounds, size, last)
        ax.set(
            title=f"expected {measure} = {values[size]:.3f} with {size} of {counted(m, 'label')}",
            xlabel="size of the label set",
            ylabel=f"expected {measure}",
        )
        ax.legend(fontsize="small")
        return self

    def _validate(self) -> tuple[Floats, Floats | None, int]:
        """Return the values and bounds as arrays, and the chosen size."""
        values = check_vector(self.values, "values", "size")
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
            bounds = check_vector(self.bounds, "bounds", "size", m + 1)
        size = _smallest_best(values) if self.size is None else self.size
        integral = isinstance(size, (int, np.integer)) and not isinstance(size, bool)
        if not integral or not 0 <= size <= m or np.isnan(values[size]):
            raise ValueError(f"size is {size}: it must be a size that values has a number for")
        return values, bounds, size

    def _draw(self, values: Floats, bounds: Floats | None, size: int, last: int) -> None:
        """Draw curve, bound, empty set and chosen size, for sizes up to `last`."""
        from matplotlib.ticker import MaxNLocator

        ax = self.ax_
        k = np.arange(1, len(values))
        marker = "o" if last <= 40 else None
        (self.line_,) = ax.plot(
            k, values[1:], color="C0", marker=marker, markersize=4, label="best set of each size"
        )
        self.bound_ = self.empty_ = None
        if bounds is not None:
            (self.bound_,) = ax.plot(
                k, bounds[1:], color="0.45", linestyle="--", linewidth=1.2, label="bound $T(k)$"
            )
        if not np.isnan(values[0]):
            (self.empty_,) = ax.plot(0, values[0], "s", mfc="none", color="C0", label="empty set")
        ax.plot([size, size], [0.0, values[size]], color="C3", linestyle=":", linewidth=1.2)
        chosen = f"chosen: {counted(size, 'label') if size else 'empty set'}"
        style = {"color": "C3", "mec": "white", "markersize": 9, "zorder": 3}
        (self.chosen_,) = ax.plot(size, values[size], "D", label=chosen, **style)
        # The bound of small sets often exceeds 1: the scale is that of the values.
        top = 1.05 * max(1.0, float(np.nanmax(values)))
        ax.set(xlim=(-0.03 * last - 0.2, last * 1.03 + 0.2), ylim=(0.0, top))
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, row: int = 0, ax: Any = None, **options: Any
    ) -> ExpectedFDisplay:
        """Draw the set sizes of a row as a fitted classifier evaluates them.

        Parameters
        ----------
        estimator : FGFMClassifier, or a pipeline that ends with one
            Fitted. Its beta, zero_division and nonempty apply.
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.
        row : int, default=0
            Index of the row of X to draw.
        ax : matplotlib Axes, optional
            Axes to draw into.
        **options : dict
            Keyword arguments of `plot`.

        Returns
        -------
        ExpectedFDisplay
            The display.
        """
        classifier, X = classifier_and_features(estimator, select_row(X, row, "X"))
        decision = decide_row(partial(decide_arrays, classifier), [X], [X], row)
        Ps, ds = zip(*classifier.estimate(X), strict=True)
        params = classifier.decision_params()
        objective = {name: params[name] for name in ("beta", "zero_division", "nonempty")}
        sizes = _sizes(Ps, ds, objective)
        return cls._from_sizes(sizes, decision, objective["beta"]).plot(ax, **options)

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
        """Draw the set sizes of a row of marginals of independent labels.

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
        ax : matplotlib Axes, optional
            Axes to draw into.
        **options : dict
            Keyword arguments of `plot`.

        Returns
        -------
        ExpectedFDisplay
            The display.
        """
        objective: dict[str, Any] = {
            "beta": beta,
            "zero_division": zero_division,
            "nonempty": nonempty,
        }
        decide = partial(decisions.from_marginals, **objective)
        of_row = select_row(proba, row, "proba")
        decision = decide_row(decide, [of_row], [proba], row)
        sizes = sizes_of_marginals(np.clip(dense(of_row)[0], 0.0, 1.0), **objective)
        return cls._from_sizes(sizes, decision, beta).plot(ax, **options)

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
        """Draw the set sizes of a row of independent label factors.

        Parameters
        ----------
        Ps : list of array-like of shape (n, m_f, S_f)
            Joint probabilities of each factor, as for `fgfm.decision.from_factors`.
        factors : list of list of int
            The labels of each factor, in the order of its P.
        distributions : list of array-like of shape (n, S_f + 1), optional
            The probabilities of 0 to S_f labels of each factor.
        row : int, default=0
            Index of the row to draw.
        beta : float, default=1.0
            Weight of recall relative to precision.
        zero_division : float, default=1.0
            F-measure of an empty prediction if the true set is empty, in [0, 1].
        nonempty : bool, default=False
            Assume that the true set is not empty.
        ax : matplotlib Axes, optional
            Axes to draw into.
        **options : dict
            Keyword arguments of `plot`.

        Returns
        -------
        ExpectedFDisplay
            The display.
        """
        objective: dict[str, Any] = {
            "beta": beta,
            "zero_division": zero_division,
            "nonempty": nonempty,
        }

        def decide(Ps: Any, ds: Any) -> Decision:  # numpydoc ignore=GL08
            return decisions.from_factors(Ps, factors, distributions=ds, **objective)

        parts = check_parts(Ps)
        given = check_distributions(distributions, parts)
        of_row = [select_row(P, row, f"Ps[{f}]") for f, P in enumerate(parts)]
        ds = None
        if given is not None:
            ds = [select_row(d, row, f"distributions[{f}]") for f, d in enumerate(given)]
        decision = decide_row(decide, [of_row, ds], [parts, given], row)
        return cls._from_sizes(_sizes(of_row, ds, objective), decision, beta).plot(ax, **options)

    @classmethod
    def _from_sizes(cls, sizes: SetSizes, decision: Decision, beta: float) -> ExpectedFDisplay:
        size = int(dense(decision.labels).sum())
        return cls(sizes.values, sizes.bounds, size=size, beta=beta)


def _sizes(Ps: Sequence[Any], ds: Sequence[Any] | None, objective: dict[str, Any]) -> SetSizes:
    """Return the value of each size for the factors of one row, which the decision validated."""
    parts = [np.clip(dense(P)[0], 0.0, 1.0) for P in Ps]
    if ds is None:
        ds = [cardinality.distribution(P) for P in Ps]
    given = [unit_rows(np.asarray(d), "d")[0] for d in ds]
    return sizes_of_factors(parts, given, **objective)


def _smallest_best(values: Floats) -> int:
    """Return the smallest size with the maximal value, up to rounding."""
    return int(np.flatnonzero(values >= np.nanmax(values) * (1.0 - 1e-12))[0])


def _last_shown(values: Floats, bounds: Floats | None, size: int) -> int:
    """Return the largest size of interest: twice the one beyond which the bound is too low."""
    last = 2 * size
    if bounds is not None:
        last = 2 * int(np.count_nonzero(bounds[1:] > values[size]))
    return min(len(values) - 1, max(10, last, size))
