"""The decision, and the objective that it maximises."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fgfm._kernels import Objective as KernelObjective
from fgfm._utils.blocks import n_threads
from fgfm._utils.validation import check_beta, check_choice, check_flag, check_zero_division
from fgfm.decision._limits import Limits
from fgfm.decision._measures import MEASURES, Measure


class _Pair(NamedTuple):
    labels: Any
    expected_f: Any


class Decision(_Pair):
    """Decided label sets and their expected F-measure.

    Attributes
    ----------
    labels : array, sparse array or data frame of shape (n, m)
        The label sets, 0 or 1, as 8-bit integers. The type is that of the probabilities: CSR for
        sparse matrices, a data frame with the same index and columns for data frames, and for
        PyTorch, CuPy or JAX an array of the same library on the same device. Of shape (n,) where
        the probabilities are 1-D.
    expected_f : array or Series of shape (n,) or (m,), or scalar
        The expected F-measure of each problem under the given probabilities: of each row, of each
        label for ``average="macro"``, of all entries for ``average="micro"`` and for 1-D
        probabilities. With the measure "jaccard" the expected Jaccard index instead.
    gap : float
        A bound on what is missing to the largest possible mean of ``expected_f``. It is 0.0 but
        for `from_classes`, and for limits on the labels of a row with ``average="macro"`` or
        ``"weighted"`` (there of the weighted mean). A decision unpacks into the first two.
    """

    gap: float = 0.0

    def __new__(cls, labels: Any, expected_f: Any, gap: float = 0.0) -> Decision:
        """Create a decision."""
        decision = super().__new__(cls, labels, expected_f)
        if gap:
            decision.gap = gap
        return decision


class Floors(NamedTuple):
    """The least expected precision and recall of a decided set; 0 is no floor."""

    precision: float
    recall: float
    short: list[tuple[int, float, float]]  # problems without such a set, and what they can have

    @classmethod
    def checked(cls, min_precision: Any, min_recall: Any) -> Floors:
        """Validate the parameters `min_precision` and `min_recall`."""
        named = {"min_precision": min_precision, "min_recall": min_recall}
        precision, recall = (
            0.0 if value is None else check_zero_division(value, name)
            for name, value in named.items()
        )
        return cls(precision, recall, [])


class Objective(NamedTuple):
    """The measure whose expectation is maximised, over which sets, and the number of threads."""

    beta: float
    beta2: float
    zero_division: float
    nonempty: bool
    threads: int
    measure: Measure
    limits: Limits | None
    floors: Floors | None = None

    @classmethod
    def checked(
        cls,
        beta: Any,
        zero_division: Any,
        nonempty: Any,
        n_jobs: Any,
        min_labels: Any = 0,
        max_labels: Any = None,
        constraints: Any = None,
        names: Any = None,
        measure: Any = "f",
        min_precision: Any = None,
        min_recall: Any = None,
    ) -> Objective:
        """Validate the parameters that the public functions share.

        `names` are the names of the labels, if they have any.
        """
        limits = None
        unlimited = max_labels is None and constraints is None and type(min_labels) is int
        if min_labels != 0 or not unlimited:
            limits = Limits.checked(min_labels, max_labels, constraints, names)
        floors = None
        if min_precision is not None or min_recall is not None:
            floors = Floors.checked(min_precision, min_recall)
        beta = check_beta(beta)
        if not isinstance(measure, str) or measure not in MEASURES:
            check_choice(measure, "measure", tuple(MEASURES))
        if beta != 1.0 and not MEASURES[measure].has_beta:
            raise ValueError(f"beta is {beta!r}: it must be 1 if measure is {measure!r}")
        return cls(
            beta,
            beta * beta,
            check_zero_division(zero_division),
            check_flag(nonempty, "nonempty"),
            n_threads(n_jobs),
            MEASURES[measure],
            limits,
            floors,
        )

    @property
    def kernel_argument(self) -> KernelObjective:
        """The objective as the kernels take it."""
        return KernelObjective(self.beta2, self.zero_division, self.nonempty)

    @property
    def value_without_labels(self) -> float:
        """The value of a problem without labels: a column, or all entries, of no rows."""
        return np.nan if self.nonempty else self.zero_division

    def constraints(self, m: int, *, sparse: bool = False) -> Any:
        """Return the limits of sets of m labels as the kernels take them, or None.

        Raises ValueError if no set satisfies them, or if `sparse` probabilities are not enough.
        """
        if self.limits is None:
            return None
        return self.limits.for_labels(m, nonempty=self.nonempty, sparse=sparse)
