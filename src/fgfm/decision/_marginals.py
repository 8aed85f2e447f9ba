"""Independent labels from a NumPy array of marginals: rows, columns, all entries."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._kernels import NOT_PROBABILITY, constrain_dense_rows, transpose
from fgfm._utils.blocks import BLOCK_BYTES, float_block, run_blocks
from fgfm._utils.validation import check_logits, check_marginals, is_flat, real_array
from fgfm.decision._floors import Missed, decide_with_floors
from fgfm.decision._marginals_sparse import SparseMarginals
from fgfm.decision._objective import Decision, Objective
from fgfm.decision._problem import DenseProblem, Problem, run_kernel
from fgfm.decision._quadrature import rules

Real = npt.NDArray[Any]
_STRIP_BYTES = 128  # of a row: two cache lines
_ALL = slice(None)
_MANY_ROWS = 8192  # columns of fewer rows are transposed
_CHUNK = 16  # columns, a multiple of what the kernel reads together


class Marginals(DenseProblem):
    """Independent labels with marginals of shape (n, m), or (n,) for one label.

    `rows_of` is the problem whose entries `proba` has in one row: errors name their places.
    `missed` are true items beside the labels: of each row, or of all rows if `proba` is 1-D.
    """

    kernel_on_device = "marginals"

    def __init__(
        self,
        proba: Any,
        logits: bool = False,
        rows_of: Marginals | None = None,
        missed: Missed | None = None,
    ) -> None:
        flat = proba.ndim == 1 if isinstance(proba, np.ndarray) else is_flat(proba)
        self._given = real_array(proba, "proba", ("row",) if flat else ("row", "label"))
        self._logits = logits
        self._rows_of = rows_of
        self._missed = missed
        self.values = self._given if self._given.ndim == 2 else self._given[:, None]
        self.shape = self.values.shape
        self.row_bytes = self.shape[1] * self.values.itemsize

    @classmethod
    def read(cls, proba: Any, missed: Any = None, logits: bool = False) -> Problem:
        """Return the problem of a dense array, or of a sparse matrix."""
        if not sparse.issparse(proba):
            problem = cls(proba, logits)
            if missed is not None:
                flat = problem._given.ndim == 1
                problem._missed = Missed.read(missed, problem.shape[0], flat=flat)
            return problem
        if logits:
            raise ValueError(
                "proba is a sparse matrix and logits is True: entries that are not stored would "
                "have the probability 1/2; pass a dense array, or a sparse matrix of probabilities"
            )
        sparse_problem = SparseMarginals([proba], ["proba"])
        if missed is not None:
            sparse_problem.missed = Missed.read(missed, sparse_problem.shape[0], flat=False)
        return sparse_problem

    def decide_block(
        self, decision: Decision, objective: Objective, constraints: Any, rows: slice
    ) -> None:
        proba = float_block(self.values[rows])
        if self._logits:
            proba = _sigmoid(proba)
        missed = self._missed and self._missed.of_rows(rows)
        results = decision.labels[rows], decision.expected_f[rows]
        check = partial(self._check, rows)
        decide_marginal_rows(proba, objective, constraints, results, check, missed, rows.start)

    def marginals(self) -> Marginals:
        return self

    def as_one_row(self) -> Marginals:
        missed = self._missed and self._missed.of_all(self.shape[0])
        return Marginals(self.values.reshape(1, -1), self._logits, self, missed)

    def valid(self) -> Real:
        """Validate all values; return the probabilities, with rounding errors clipped."""
        self._check()
        proba = float_block(self.values)
        return np.clip(_sigmoid(proba) if self._logits else proba, 0.0, 1.0)

    def decide_columns(self, objective: Objective) -> Decision:
        """Decide each column: one problem per label, over the rows.

        The kernel for whole rows decides long columns in which many rows are expected, if the rows
        are stored one after the other; the others are transposed.
        """
        kernel = objective.measure.kernels.get("dense columns")
        if kernel is None or objective.floors or self._missed or not self._has_long_columns():
            return self._decide_strips(objective)
        n, m = self.shape
        labels, expected_f = np.zeros((n, m), dtype=np.int8), np.empty(m)
        done = np.zeros(m, dtype=np.uint8)
        statuses = []

        def decide_chunk(chunk: slice) -> None:
            columns = slice(chunk.start * _CHUNK, min(m, chunk.stop * _CHUNK))
            status = kernel(
                self.values[:, columns],
                objective.kernel_argument,
                rules(objective.beta),
                labels[:, columns],
                expected_f[columns],
                done[columns],
            )
            statuses.append(status.code)

        # The columns of a chunk are read together: one chunk for each thread.
        n_chunks = math.ceil(m / _CHUNK)
        chunk_bytes = BLOCK_BYTES * objective.threads // n_chunks
        run_blocks(n_chunks, chunk_bytes, objective.threads, decide_chunk)
        left = np.flatnonzero(done == 0)
        # Invalid values are named there, and rounding errors clipped; few columns are copied.
        if NOT_PROBABILITY in statuses or 2 * len(left) > m:
            return self._decide_strips(objective)
        for start in range(0, len(left), _CHUNK):
            columns_left = left[start : start + _CHUNK]
            labels[:, columns_left], expected_f[columns_left] = Marginals(
                self.values[:, columns_left]
            )._decide_strips(objective)
        return Decision(labels, expected_f)

    def _has_long_columns(self) -> bool:
        """Return True if there are many rows, of probabilities one after the other."""
        n, m = self.shape
        values = self.values
        return (
            not self._logits
            and n >= _MANY_ROWS
            and m >= 4
            and values.dtype in (np.float32, np.float64)
            and values.dtype.isnative
            and values.flags.aligned
            and values.strides[1] == values.itemsize
            and values.strides[0] % values.itemsize == 0
        )

    def _decide_strips(self, objective: Objective) -> Decision:
        """Decide each column, transposed.

        Strips of columns are transposed to rows one after the other, so that the array is not
        copied as a whole; they are wide enough to read most cache lines once. The labels are in
        Fortran order, column by column.
        """
        n, m = self.shape
        values = self.values
        chosen, expected_f = np.zeros((m, n), dtype=np.int8), np.empty(m)
        width = min(m, max(_STRIP_BYTES, BLOCK_BYTES // n) // values.itemsize)
        own = threading.local()  # work space of a thread

        def decide_strip(strip: slice) -> None:
            labels = slice(strip.start * width, min(m, strip.stop * width))
            if not hasattr(own, "buffer"):
                own.buffer = np.empty((width, n), dtype=float_block(values[:0]).dtype)
            columns = _transposed(values[:, labels], own.buffer)  # (labels, n)
            if self._logits:
                columns = _sigmoid(columns)
            results = chosen[labels], expected_f[labels]
            check = partial(self._check, _ALL, labels)
            decide_marginal_rows(
                columns, objective, None, results, check, self._missed, labels.start
            )

        run_blocks(math.ceil(m / width), BLOCK_BYTES, objective.threads, decide_strip)
        return Decision(chosen.T, expected_f)

    def _check(self, rows: slice = _ALL, labels: slice = _ALL) -> None:
        """Raise unless all values of some rows and labels are valid, up to rounding."""
        if self._rows_of is not None:
            self._rows_of._check()
            return
        check = check_logits if self._logits else check_marginals
        first = rows.start or 0, labels.start or 0
        if self._given.ndim == 1:
            check(self._given[rows], "proba", first[:1])
        else:
            check(self._given[rows, labels], "proba", first)


def decide_marginal_rows(
    proba: Real,
    objective: Objective,
    constraints: Any,
    results: tuple[Real, Real],
    check: Callable[[], None],
    missed: Missed | None = None,
    first: int = 0,
) -> None:
    """Run the kernel for independent labels on rows of probabilities.

    `results` are the labels, which are 0, and expectations, which are filled in; `first` is the
    number of the first row, for warnings.
    """
    labels, expected_f = results
    if missed or objective.floors:
        n, m = proba.shape
        indptr = m * np.arange(n + 1)
        chosen = labels.reshape(-1)
        decide_with_floors(proba, indptr, objective, missed, first, chosen, expected_f, check)
        return
    arguments = (objective.kernel_argument, rules(objective.beta), labels, expected_f)
    run_kernel(objective.measure.kernels["dense rows"], proba, arguments, labels, check)
    if constraints is not None:
        constrain_dense_rows(proba, *arguments, constraints)


def _sigmoid(logits: Real) -> Real:
    from scipy.special import expit

    proba: Real = expit(logits, dtype=np.float64)  # float32 has none below a logit of -104
    return proba


def _transposed(block: Real, buffer: Real) -> Real:
    """Return the columns of a block as the rows of a contiguous array, perhaps the buffer."""
    if block.T.flags.c_contiguous:
        return float_block(block.T)
    in_place = block.dtype == buffer.dtype and block.flags.aligned
    if not in_place or any(step % block.itemsize for step in block.strides):
        block = float_block(block)
    columns = buffer[: block.shape[1]]
    transpose(block, columns)
    return columns
