"""Decisions from marginals as NumPy arrays: of each row, of each column, of all entries."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm._kernels import (
    NOT_PROBABILITY,
    constrain_dense_rows,
    decide_dense_rows,
    decide_jaccard_dense_rows,
    transpose,
)
from fgfm._kernels import decide_dense_columns as scan_dense_columns
from fgfm._utils.blocks import BLOCK_BYTES, float_block, float_dtype, run_blocks
from fgfm._utils.validation import check_logits, check_marginals
from fgfm.decision._objective import Decision, Objective, empty_decision, run_kernel

__all__ = [
    "DenseMarginals",
    "decide_dense_columns",
    "decide_dense_entries",
    "decide_dense_marginals",
]

Real = npt.NDArray[Any]
_STRIP_BYTES = 128  # of a row: two cache lines
_ALL = slice(None)
_MANY_ROWS = 8192  # columns of fewer rows are transposed
_CHUNK = 16  # columns, a multiple of what the kernel reads together
_KERNELS = {"f": decide_dense_rows, "jaccard": decide_jaccard_dense_rows}


class DenseMarginals:
    """Marginal probabilities of shape (n, m), which are validated when they are decided.

    Parameters
    ----------
    values : ndarray of shape (n, m) or (n,)
        Probabilities or logits. A 1-D array is one label.
    logits : bool, default=False
        Whether the probabilities are the sigmoid of `values`.
    """

    def __init__(self, values: Real, logits: bool = False) -> None:
        self._given = values
        self._logits = logits
        self.values = values if values.ndim == 2 else values[:, None]

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and labels."""
        n, m = self.values.shape
        return n, m

    def proba(self, block: Real) -> Real:
        """Return the probabilities of a block of `values`, for the kernels."""
        block = float_block(block)
        if not self._logits:
            return block
        from scipy.special import expit

        proba: Real = expit(block, dtype=np.float64)  # float32 has none below a logit of -104
        return proba

    def by_rows(self) -> bool:
        """Return True if there are many rows, of probabilities one after the other."""
        n, m = self.values.shape
        return (
            not self._logits
            and n >= _MANY_ROWS
            and m >= 4
            and self.values.dtype in (np.float32, np.float64)
            and self.values.dtype.isnative
            and self.values.strides[1] == self.values.itemsize
            and self.values.strides[0] % self.values.itemsize == 0
        )

    def checked(self) -> Real:
        """Validate all values; return the probabilities, with rounding errors clipped."""
        self.check()
        return np.clip(self.proba(self.values), 0.0, 1.0)

    def check(self, rows: slice = _ALL, labels: slice = _ALL) -> None:
        """Raise unless all values of some rows and labels are valid, up to rounding."""
        check = check_logits if self._logits else check_marginals
        first = rows.start or 0, labels.start or 0
        if self._given.ndim == 1:
            check(self._given[rows], "proba", first[:1])
        else:
            check(self._given[rows, labels], "proba", first)


def decide_dense_marginals(
    n: int,
    m: int,
    itemsize: int,
    objective: Objective,
    read: Callable[[slice], Real],
    check: Callable[[slice], None],
) -> Decision:
    """Decide each row of marginals that are read block by block.

    Parameters
    ----------
    n, m : int
        The numbers of rows and labels.
    itemsize : int
        The number of bytes of a probability.
    objective : Objective
        What is maximised.
    read : callable
        Returns the marginals of a slice of rows.
    check : callable
        Raises unless all values of a slice of rows are probabilities, up to rounding.

    Returns
    -------
    Decision
        As arrays.
    """
    decision = empty_decision(n, m)
    constraints = objective.constraints(m)

    def decide_block(rows: slice) -> None:
        proba, decided = float_block(read(rows)), decision.at(rows)
        _decide_rows(proba, objective, decided, lambda: check(rows))
        if constraints is not None:
            arguments = (*objective.kernel_arguments, objective.rules, *decided, constraints)
            constrain_dense_rows(proba, *arguments)

    run_blocks(n, m * itemsize, objective.threads, decide_block)
    return decision


def decide_dense_columns(marginals: DenseMarginals, objective: Objective) -> Decision:
    """Decide each column: one problem per label, over the rows.

    The kernel for whole rows decides long columns in which many rows are expected, if the rows are
    stored one after the other; the others are transposed.
    """
    values = marginals.values
    if not (objective.measure == "f" and marginals.by_rows()):
        return _decide_strips(marginals, objective)
    n, m = values.shape
    labels, expected_f = empty_decision(n, m).labels, np.empty(m)
    done = np.zeros(m, dtype=np.uint8)
    statuses = []

    def decide_chunk(chunk: slice) -> None:
        columns = slice(chunk.start * _CHUNK, min(m, chunk.stop * _CHUNK))
        status = scan_dense_columns(
            values[:, columns],
            *objective.kernel_arguments,
            objective.rules,
            labels[:, columns],
            expected_f[columns],
            done[columns],
        )
        statuses.append(status[1])

    # The columns of a chunk are read together: one chunk for each thread.
    n_chunks = math.ceil(m / _CHUNK)
    run_blocks(
        n_chunks, BLOCK_BYTES * objective.threads // n_chunks, objective.threads, decide_chunk
    )
    left = np.flatnonzero(done == 0)
    # Invalid values are named there, and rounding errors clipped; few columns are copied below.
    if NOT_PROBABILITY in statuses or 2 * len(left) > m:
        return _decide_strips(marginals, objective)
    for start in range(0, len(left), _CHUNK):
        at = left[start : start + _CHUNK]
        labels[:, at], expected_f[at] = _decide_strips(DenseMarginals(values[:, at]), objective)
    return Decision(labels, expected_f)


def _decide_strips(marginals: DenseMarginals, objective: Objective) -> Decision:
    """Decide each column, transposed.

    Strips of columns are transposed to rows one after the other, so that the array is not copied
    as a whole; they are wide enough to read most cache lines once. The labels are in Fortran
    order, column by column.
    """
    n, m = marginals.shape
    values = marginals.values
    chosen, expected_f = empty_decision(m, n)
    if n == 0:
        expected_f[:] = objective.value_without_labels
        return Decision(chosen.T, expected_f)
    width = min(m, max(_STRIP_BYTES, BLOCK_BYTES // n) // values.itemsize)
    own = threading.local()  # work space of a thread

    def decide_strip(strip: slice) -> None:
        labels = slice(strip.start * width, min(m, strip.stop * width))
        if not hasattr(own, "buffer"):
            own.buffer = np.empty((width, n), dtype=float_dtype(values.dtype))
        columns = marginals.proba(_transposed(values[:, labels], own.buffer))  # (labels, n)
        decided = Decision(chosen[labels], expected_f[labels])
        _decide_rows(columns, objective, decided, lambda: marginals.check(_ALL, labels))

    run_blocks(math.ceil(m / width), BLOCK_BYTES, objective.threads, decide_strip)
    return Decision(chosen.T, expected_f)


def decide_dense_entries(marginals: DenseMarginals, objective: Objective) -> Decision:
    """Decide all entries together: one problem over all rows and labels."""
    n, m = marginals.shape
    labels, expected_f = np.zeros((n, m), dtype=np.int8), np.empty(1)
    if n == 0:
        return Decision(labels, objective.value_without_labels)
    decided = Decision(labels.reshape(1, -1), expected_f)
    _decide_rows(
        marginals.proba(marginals.values.reshape(1, -1)), objective, decided, marginals.check
    )
    return Decision(labels, expected_f[0])


def _decide_rows(
    proba: Real, objective: Objective, decision: Decision, check: Callable[[], None]
) -> None:
    """Run the kernel for independent labels on rows of probabilities; fill in the decision."""
    arguments = (*objective.kernel_arguments, objective.rules, *decision)
    kernel = _KERNELS[objective.measure]
    run_kernel(kernel, float_block(proba), arguments, decision.labels, check)


def _transposed(block: Real, buffer: Real) -> Real:
    """Return the columns of a block as the rows of a contiguous array, perhaps the buffer."""
    if block.T.flags.c_contiguous:
        return block.T
    if block.dtype != buffer.dtype or any(step % block.itemsize for step in block.strides):
        block = float_block(block)
    columns = buffer[: block.shape[1]]
    transpose(block, columns)
    return columns
