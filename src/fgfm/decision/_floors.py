"""Floors on expected precision and recall, and true items that no label stands for."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm._kernels import decide_floor_rows
from fgfm._utils.blocks import float_block
from fgfm._utils.validation import check_same_rows, real_array, unit_rows
from fgfm.decision._objective import Objective
from fgfm.decision._problem import run_kernel
from fgfm.decision._quadrature import rules

Real = npt.NDArray[Any]
_LARGEST_RATE = 1e6
_FORMS = (
    "it must be a Poisson rate (a number from 0 to 1e6), the distribution of the number of missed "
    "items, or one distribution for each row"
)


class Missed(NamedTuple):
    """The numbers of true items that no label stands for, independent of the labels."""

    rate: float  # of Poisson distributed ones
    rows: Real  # distributions, (n, N + 1) if `by_row`; else those of all items together
    by_row: bool = False
    repeat: int = 1  # how often each distribution counts

    @classmethod
    def read(cls, missed: Any, n: int, *, flat: bool) -> Missed:
        """Validate the argument `missed` for n rows, or for one problem over all of them."""
        if np.ndim(missed) == 0:
            if isinstance(missed, (bool, str)) or not isinstance(missed, (int, float, np.number)):
                raise TypeError(f"missed is {missed!r}: {_FORMS}")
            if not 0.0 <= missed <= _LARGEST_RATE:
                raise ValueError(f"missed is {missed!r}: {_FORMS}")
            return cls(float(missed), np.empty((0, 0)))
        if np.ndim(missed) == 1:
            rows = real_array(missed, "missed", ("number",))[None]
        elif flat:
            raise ValueError(
                f"missed has shape {np.shape(missed)} and proba is 1-D, one problem: it must be a "
                "Poisson rate, or one distribution"
            )
        else:
            rows = real_array(missed, "missed", ("row", "number"))
            check_same_rows([n, len(rows)], ["proba", "missed"])
        return cls(0.0, unit_rows(rows, "missed", 0), np.ndim(missed) == 2)

    def of_rows(self, rows: slice) -> Missed:
        """Return what a block of rows misses."""
        return self._replace(rows=self.rows[rows]) if self.by_row else self

    def of_all(self, n: int) -> Missed:
        """Return what n rows miss together."""
        return Missed(n * self.rate, self.rows, repeat=1 if self.by_row else n)


_NONE = Missed(0.0, np.empty((0, 0)))


def decide_with_floors(
    proba: Real,
    indptr: Real,
    objective: Objective,
    missed: Missed | None,
    first: int,
    chosen: Real,
    expected_f: Real,
    check: Callable[[], None],
) -> None:
    """Decide rows stored as in CSR; `chosen` marks entries. `first` is the number of row 0."""
    floors = objective.floors
    precision, recall = (floors.precision, floors.recall) if floors else (0.0, 0.0)
    possible = np.full((len(expected_f), 2), np.nan)
    rate, rows, _, repeat = missed or _NONE
    arguments = (indptr, objective.kernel_argument, rules(objective.beta), precision, recall)
    results = (chosen, expected_f, possible)
    values = float_block(proba, np.float64).reshape(-1)
    rows = float_block(rows, np.float64)
    run_kernel(
        decide_floor_rows, values, (*arguments, rate, rows, repeat, *results), chosen, check
    )
    if floors:
        short = np.flatnonzero(~np.isnan(possible).all(axis=1))
        floors.short.extend((first + row, *possible[row]) for row in short.tolist())


def check_floors(objective: Objective, average: str, missed: Any, *, flat: bool) -> None:
    """Raise for problems that floors and missed items are not defined for."""
    names = "min_precision, min_recall and missed"
    if objective.limits is not None:
        raise ValueError(f"{names} cannot be combined with min_labels, max_labels and constraints")
    if not objective.measure.has_limits:
        raise ValueError(f"{names} cannot be combined with measure={objective.measure.name!r}")
    if missed is not None and not flat and average in ("macro", "weighted"):
        raise ValueError(
            f"missed cannot be combined with average={average!r}: items that no label stands for "
            "belong to a row, not to a label"
        )


def warn_about_floors(objective: Objective, average: str, *, flat: bool) -> None:
    """Warn about problems of which no set but the empty one satisfies the floors."""
    floors = objective.floors
    if floors is None or not floors.short:
        return
    first, precision, recall = min(floors.short)
    names = {"min_precision": floors.precision, "min_recall": floors.recall}
    floors_text = " and ".join(f"{name}={value:g}" for name, value in names.items() if value > 0.0)
    if np.isnan(precision):
        largest = f"the largest expected recall is {recall:.4g}"
    else:
        largest = f"the largest expected precision is {precision:.4g}"
        if floors.recall > 0.0:
            largest += " at that recall"
    if flat or average == "micro":
        text = f"no label is decided for, since no set satisfies {floors_text}: {largest}"
    else:
        problem = "row" if average == "samples" else "label"
        text = (
            f"{len(floors.short)} {problem}s get the empty set, since no other one satisfies "
            f"{floors_text}: the first is {problem} {first}, where {largest}"
        )
    warnings.warn(text, UserWarning, stacklevel=4)
