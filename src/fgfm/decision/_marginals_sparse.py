"""Independent labels from marginals in CSR, without densifying.

Memory is that of the stored entries of one block of rows, and of the decided labels, which are
returned in CSR too.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._kernels import constrain_csr_rows
from fgfm._utils.blocks import float_block, run_blocks
from fgfm._utils.validation import check_probabilities, sparse_marginals
from fgfm.decision._floors import Missed, decide_with_floors
from fgfm.decision._objective import Decision, Objective
from fgfm.decision._problem import Problem, run_kernel
from fgfm.decision._quadrature import rules

Real = npt.NDArray[Any]
Integers = npt.NDArray[np.int64]


class CSRRows(NamedTuple):
    """The entries of a block of rows in canonical CSR: each label once, in increasing order."""

    data: Real
    indices: Real
    indptr: Integers


class SparseProblem(Problem):
    """A problem whose decided labels are in CSR."""

    is_sparse = True
    kind: type  # of the decided labels
    index_arrays: tuple[Real, ...]  # indices of the decision have their type, if that counts m

    def no_labels(self) -> Any:
        return self.kind((0, self.shape[1]), dtype=np.int8)

    def matrix(self, labels: Any) -> Any:
        n, m = self.shape
        indptr = np.searchsorted(labels.indices, m * np.arange(n + 1))
        return self.kind((labels.data, labels.indices % m, indptr), shape=(n, m))

    def decide_block(
        self, rows: slice, objective: Objective, constraints: Any, expected_f: Real
    ) -> tuple[Real, Real]:
        """Decide some of the rows: fill in their expectations.

        Returns the chosen labels, row after row, and the end of each row among them.
        """
        raise NotImplementedError

    def decide_rows(self, objective: Objective) -> Decision:
        n, m = self.shape
        expected_f = np.empty(n)
        constraints = objective.constraints(m, sparse=True)

        def decide_block(rows: slice) -> tuple[Real, Real]:
            return self.decide_block(rows, objective, constraints, expected_f[rows])

        blocks = run_blocks(n, self.row_bytes, objective.threads, decide_block)
        total = sum(len(chosen) for chosen, _ in blocks)
        # Labels of dense factors may exceed what the index type of the given matrices can count.
        dtype = sparse.get_index_dtype(self.index_arrays, maxval=max(m, total))
        indices = np.concatenate(
            [np.empty(0, dtype=dtype), *(chosen for chosen, _ in blocks)],
            dtype=dtype,
            casting="same_kind",
        )
        indptr = np.zeros(n + 1, dtype=dtype)
        row = start = 0
        for chosen, ends in blocks:
            indptr[row + 1 : row + 1 + len(ends)] = start + ends
            row += len(ends)
            start += len(chosen)
        ones = np.ones(len(indices), dtype=np.int8)
        return Decision(self.kind((ones, indices, indptr), shape=(n, m)), expected_f)


class SparseMarginals(SparseProblem):
    """Independent labels with marginals in one or several sparse matrices side by side.

    `names` are those of the matrices in error messages. Column i of matrix f is label
    ``members[f][i]``, of `m` labels in all; by default there is one matrix, whose columns are
    the labels. `missed` are true items beside the labels, of each row.
    """

    def __init__(
        self,
        matrices: Sequence[Any],
        names: Sequence[str],
        members: Sequence[Integers] | None = None,
        m: int | None = None,
        missed: Missed | None = None,
    ) -> None:
        self.missed = missed
        self._matrices = [
            sparse_marginals(x, name) for x, name in zip(matrices, names, strict=True)
        ]
        self._names = names
        n = int(self._matrices[0].shape[0])
        m = m or sum(matrix.shape[1] for matrix in self._matrices)
        self.shape = n, m
        self._labels = None
        if members is not None:
            self._labels = np.concatenate(members).astype(sparse.get_index_dtype(maxval=m))
        self.kind = type(self._matrices[0])
        self.index_arrays = tuple(a for x in self._matrices for a in (x.indices, x.indptr))
        nnz = sum(int(matrix.nnz) for matrix in self._matrices)
        self.row_bytes = 16 * (nnz // max(1, n) + 1)  # 8 bytes each for value and index

    def decide_block(
        self, rows: slice, objective: Objective, constraints: Any, expected_f: Real
    ) -> tuple[Real, Real]:
        entries = self.entries(rows)
        data = float_block(entries.data)
        chosen = np.zeros(len(data), dtype=np.int8)
        parameters = (objective.kernel_argument, rules(objective.beta))
        check = partial(self.check, rows)
        if self.missed or objective.floors:
            missed = self.missed and self.missed.of_rows(rows)
            arguments = (data, entries.indptr, objective, missed, rows.start, chosen, expected_f)
            decide_with_floors(*arguments, check)
        else:
            kernel = objective.measure.kernels["csr rows"]
            results = (entries.indptr, *parameters, chosen, expected_f)
            run_kernel(kernel, data, results, chosen, check)
        if constraints is None:
            positions = np.flatnonzero(chosen)
            return entries.indices[positions], np.searchsorted(positions, entries.indptr[1:])
        labels = np.empty(constraints.most_chosen(np.diff(entries.indptr)), dtype=np.int64)
        ends = np.empty(len(expected_f), dtype=np.int64)
        indices = entries.indices.astype(np.int64)
        outputs = (chosen, labels, ends, expected_f)
        constrain_csr_rows(data, indices, entries.indptr, *parameters, *outputs, constraints)
        return labels[: ends[-1]].copy(), ends  # a copy, so that the rest of `labels` is freed

    def marginals(self) -> SparseMarginals:
        return self

    def decide_columns(self, objective: Objective) -> Decision:
        columns = SparseMarginals([self.valid().T.tocsr()], ["proba"])
        labels, expected_f = columns.decide_rows(objective)
        return Decision(labels.T.tocsr(), expected_f)

    def as_one_row(self) -> SparseMarginals:
        n, m = self.shape
        csr = self.valid()
        row = np.repeat(m * np.arange(n), np.diff(csr.indptr))  # (nnz,)
        one = self.kind((csr.data, row + csr.indices, [0, csr.nnz]), shape=(1, n * m))
        return SparseMarginals([one], ["proba"], missed=self.missed and self.missed.of_all(n))

    def valid(self) -> Any:
        """Validate all entries; return them in canonical CSR, (n, m)."""
        n, m = self.shape
        rows = slice(0, n)
        data, indices, indptr = self.entries(rows)
        arrays = float_block(data), indices, indptr.astype(indices.dtype)
        csr = self.kind(arrays, shape=(n, m))
        if self._labels is None:
            check_probabilities(csr, self._names[0])
        else:
            self.check(rows)
        return csr

    def entries(self, rows: slice) -> CSRRows:
        """Return the entries of some rows, as views if they are in canonical order already."""
        if self._labels is None:
            (matrix,) = self._matrices
            indptr = matrix.indptr[rows.start : rows.stop + 1].astype(np.int64)
            first, last = int(indptr[0]), int(indptr[-1])
            entries = matrix.data[first:last], matrix.indices[first:last], indptr - first
            # A new matrix, since the flags of the given one may be from before a change in place.
            block = sparse.csr_array(entries, (len(indptr) - 1, matrix.shape[1]))
            if block.has_canonical_format:
                return CSRRows(*entries)
            block = block.copy()
        else:
            joined = sparse.hstack([matrix[rows] for matrix in self._matrices], format="csr")
            entries = joined.data, self._labels[joined.indices], joined.indptr
            block = sparse.csr_array(entries, (joined.shape[0], self.shape[1]))
        block.sum_duplicates()
        return CSRRows(block.data, block.indices, block.indptr.astype(np.int64))

    def check(self, rows: slice) -> None:
        """Raise unless all entries of some rows are probabilities, up to rounding."""
        for matrix, name in zip(self._matrices, self._names, strict=True):
            block = matrix[rows]
            block.sum_duplicates()
            check_probabilities(block, name, rows.start)
