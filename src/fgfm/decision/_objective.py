"""What is maximised, what is answered, and how a kernel is run on a block of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm._utils.blocks import n_threads
from fgfm._utils.validation import check_beta, check_flag, check_zero_division
from fgfm.decision._quadrature import Rules, rules

__all__ = ["Decision", "Objective", "run_kernel"]

Real = npt.NDArray[Any]


class Decision(NamedTuple):
    """Decided label sets, and what they are expected to score.

    Attributes
    ----------
    labels : array, sparse array or data frame of shape (n, m)
        The label sets, 0 or 1, as 8-bit integers. Sparse where the probabilities were, a data
        frame with the same index and columns where they were one, an array of the same library on
        the same device where they were one of PyTorch, CuPy or JAX.
    expected_f : array or Series of shape (n,)
        The expected F-measure of each label set, under the given probabilities.
    """

    labels: Any
    expected_f: Any

    def at(self, rows: slice) -> Decision:
        """Give the part of it that some rows have."""
        return Decision(self.labels[rows], self.expected_f[rows])


class Objective(NamedTuple):
    """What is maximised, and by how many threads."""

    beta: float
    beta2: float
    zero_division: float
    nonempty: bool
    threads: int

    @classmethod
    def checked(cls, beta: Any, zero_division: Any, nonempty: Any, n_jobs: Any) -> Objective:
        """Give the objective for what a user passed."""
        beta = check_beta(beta)
        return cls(
            beta,
            beta * beta,
            check_zero_division(zero_division),
            check_flag(nonempty, "nonempty"),
            n_threads(n_jobs),
        )

    @property
    def arguments(self) -> tuple[float, float, bool]:
        """What every kernel takes."""
        return self.beta2, self.zero_division, self.nonempty

    @property
    def rules(self) -> Rules:
        """The quadrature rules for this beta."""
        return rules(self.beta)


def run_kernel(
    kernel: Callable[..., tuple[int, float, int]],
    values: Real,
    known: tuple[Any, ...],
    chosen: Real,
    check: Callable[[], None],
) -> tuple[int, int]:
    """Run a kernel, which takes values in [0, 1] and no others.

    If it refuses one, `check` raises unless rounding is to blame, which is then removed. Gives the
    first row that is refused for another reason, or -1, and its factor.
    """
    from fgfm._kernels.constants import NOT_PROBABILITY

    row, status, factor = kernel(values, *known)
    if status == NOT_PROBABILITY:
        check()
        chosen[...] = 0
        row, status, factor = kernel(np.clip(values, 0.0, 1.0), *known)
    return row, factor
