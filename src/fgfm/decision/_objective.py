"""The decision, the objective that it maximises, and the call of a kernel on a block of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm._kernels import NOT_PROBABILITY, Rules
from fgfm._utils.blocks import n_threads
from fgfm._utils.validation import check_beta, check_choice, check_flag, check_zero_division
from fgfm.decision._limits import Limits
from fgfm.decision._quadrature import rules

__all__ = ["Decision", "Objective", "empty_decision", "run_kernel"]

Real = npt.NDArray[Any]


class Decision(NamedTuple):
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
    """

    labels: Any
    expected_f: Any

    def at(self, rows: slice) -> Decision:
        """Return the decision for some of the rows.

        Parameters
        ----------
        rows : slice
            The rows.

        Returns
        -------
        Decision
            Views of ``labels`` and ``expected_f``, which is that of rows.
        """
        return Decision(self.labels[rows], self.expected_f[rows])


class Objective(NamedTuple):
    """The measure whose expectation is maximised, over which sets, and the number of threads."""

    beta: float
    beta2: float
    zero_division: float
    nonempty: bool
    threads: int
    measure: str = "f"
    limits: Limits | None = None

    @classmethod
    def checked(
        cls,
        beta: Any,
        zero_division: Any,
        nonempty: Any,
        n_jobs: Any,
        measure: Any = "f",
        limits: Limits | None = None,
    ) -> Objective:
        """Validate the parameters that the five public functions share, and the measure."""
        beta = check_beta(beta)
        check_choice(measure, "measure", ("f", "jaccard"))
        if measure == "jaccard" and beta != 1.0:
            raise ValueError(f"beta is {beta!r}: it must be 1 if measure is 'jaccard'")
        return cls(
            beta,
            beta * beta,
            check_zero_division(zero_division),
            check_flag(nonempty, "nonempty"),
            n_threads(n_jobs),
            measure,
            limits,
        )

    @property
    def kernel_arguments(self) -> tuple[float, float, bool]:
        """The parameters that every kernel takes."""
        return self.beta2, self.zero_division, self.nonempty

    def constraints(self, m: int, *, sparse: bool = False) -> Any:
        """Return the limits of sets of m labels as the kernels take them, or None.

        Raises ValueError if no set satisfies them, or if `sparse` probabilities are not enough.
        """
        if self.limits is None:
            return None
        return self.limits.for_labels(m, nonempty=self.nonempty, sparse=sparse)

    @property
    def rules(self) -> Rules:
        """The quadrature rules for this beta."""
        return rules(self.beta)

    @property
    def empty_value(self) -> float:
        """The value of the empty decision where the true set is empty.

        It is 0 under `nonempty`: the true set is never empty.
        """
        return 0.0 if self.nonempty else self.zero_division

    @property
    def value_without_labels(self) -> float:
        """The value of a problem without labels: a column, or all entries, of no rows."""
        return np.nan if self.nonempty else self.zero_division


def empty_decision(n: int, m: int) -> Decision:
    """Allocate a decision for n rows of m labels, with no label chosen yet."""
    return Decision(np.zeros((n, m), dtype=np.int8), np.empty(n))


def run_kernel(
    kernel: Callable[..., tuple[int, float, int]],
    values: Real,
    arguments: tuple[Any, ...],
    chosen: Real,
    check: Callable[[], None],
) -> tuple[int, int]:
    """Run a kernel on a block of rows, so that valid input is read once.

    A kernel accepts values in [0, 1] only, and stops at the first other value. Then `check` raises
    if the value is wrong by more than rounding; else the kernel runs again on clipped values.

    Parameters
    ----------
    kernel : callable
        A function of `fgfm._kernels`.
    values : ndarray
        The probabilities.
    arguments : tuple
        Further arguments of the kernel.
    chosen : ndarray
        The array among `arguments` that the kernel marks chosen labels in.
    check : callable
        Raises unless all values are probabilities, up to rounding.

    Returns
    -------
    row : int
        The first row with too much probability, or -1.
    factor : int
        The factor of this row that has too much.
    """
    row, status, factor = kernel(values, *arguments)
    if status == NOT_PROBABILITY:
        check()
        chosen[...] = 0
        row, status, factor = kernel(np.clip(values, 0.0, 1.0), *arguments)
    return row, factor
