"""`Problem`: what is known of the labels of n rows; and `decide`, which solves any of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm._kernels import NOT_PROBABILITY
from fgfm._utils.blocks import run_blocks
from fgfm.decision._objective import Decision, Objective

__all__ = ["AVERAGES", "DenseProblem", "Problem", "decide", "run_kernel"]

Real = npt.NDArray[Any]
AVERAGES = ("samples", "macro", "weighted", "micro")


class Problem:
    """The distributions of the label sets of n independent rows.

    There is one class per kind of input, and a second one of the same name for arrays of PyTorch,
    CuPy and JAX, in the module ``*_array_api``. A constructor validates shapes; values are
    validated when they are read, block by block.
    """

    shape: tuple[int, int]  # rows and labels, (n, m)
    row_bytes: int  # of the input, or of the work space, of one row
    is_sparse = False  # decided labels are in CSR

    @classmethod
    def read(cls, *arrays: Any, **shared: Any) -> Problem:
        """Return the problem of arrays with one entry per row, and what all rows share."""
        return cls(*arrays, **shared)

    def decide_rows(self, objective: Objective) -> Decision:
        """Decide each row."""
        raise NotImplementedError

    def marginals(self) -> Any:
        """Return the marginals, a problem that also has the method `decide_columns`."""
        raise NotImplementedError

    def as_one_row(self, threads: int = 1) -> Problem:
        """Return all entries as the labels of one row: every row is a factor, or several."""
        raise NotImplementedError

    def decide_limited(self, objective: Objective, average: str) -> Decision:
        """Decide all rows together, each with a limited number of labels."""
        if average == "micro":
            raise ValueError(
                "min_labels and max_labels with average='micro' need independent labels: only "
                "from_marginals has them"
            )
        decision: Decision = self.marginals().decide_limited(objective, average)
        return decision

    def no_labels(self) -> Any:
        """Return the labels of no rows, (0, m)."""
        return np.zeros((0, self.shape[1]), dtype=np.int8)

    def numbers(self, values: list[float]) -> Any:
        """Return expectations as an array."""
        return np.array(values)

    def matrix(self, labels: Any) -> Any:
        """Return labels of shape (1, n m) in the shape (n, m)."""
        return labels.reshape(self.shape)


class DenseProblem(Problem):
    """A problem of NumPy arrays."""

    def decide_block(
        self, rows: slice, objective: Objective, constraints: Any, labels: Real, expected_f: Real
    ) -> None:
        """Decide some of the rows: fill in their labels, which are 0, and expectations."""
        raise NotImplementedError

    def decide_rows(self, objective: Objective) -> Decision:
        """Decide each row."""
        n, m = self.shape
        labels, expected_f = np.zeros((n, m), dtype=np.int8), np.empty(n)
        constraints = None if objective.limits is None else objective.constraints(m)

        def decide_block(rows: slice) -> None:
            self.decide_block(rows, objective, constraints, labels[rows], expected_f[rows])

        run_blocks(n, self.row_bytes, objective.threads, decide_block)
        return Decision(labels, expected_f)


def decide(problem: Problem, objective: Objective, average: str) -> Decision:
    """Decide each row, each label over the rows, or all entries together.

    Rows are independent of each other. So are the entries of a column: its marginals determine
    it. All entries together are one row in which every given row is a factor, or several
    (docs/design.md, "Averages"). Weights of labels ("weighted") change no decision.
    """
    if average == "samples":
        return problem.decide_rows(objective)
    if problem.shape[0] == 0:
        count = 1 if average == "micro" else problem.shape[1]
        expected_f = problem.numbers([objective.value_without_labels] * count)
        return Decision(problem.no_labels(), expected_f[0] if average == "micro" else expected_f)
    if objective.limits is not None:
        return problem.decide_limited(objective, average)
    if average == "micro":
        labels, expected_f = problem.as_one_row(objective.threads).decide_rows(objective)
        return Decision(problem.matrix(labels), expected_f[0])
    decision: Decision = problem.marginals().decide_columns(objective)
    return decision


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
    `chosen` is the array among `arguments` that the kernel marks chosen labels in. Returns the
    first row with too much probability, or -1, and its factor that has too much.
    """
    row, status, factor = kernel(values, *arguments)
    if status == NOT_PROBABILITY:
        check()
        chosen[...] = 0
        row, status, factor = kernel(np.clip(values, 0.0, 1.0), *arguments)
    return row, factor
