"""Decisions from marginals in CSR, without densifying.

Memory is that of the stored entries of one block of rows, and of the decided labels, which are
returned in CSR too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._kernels import constrain_csr_rows, decide_csr_rows, decide_jaccard_csr_rows
from fgfm._utils.blocks import float_block, run_blocks
from fgfm._utils.validation import check_stored_probabilities, sparse_marginals
from fgfm.decision._objective import Decision, Objective, run_kernel

__all__ = [
    "CSRMarginals",
    "CSRRows",
    "decide_csr_columns",
    "decide_csr_entries",
    "decide_csr_marginals",
    "decide_sparse_marginals",
    "valid_csr",
]

Real = npt.NDArray[Any]
Integers = npt.NDArray[np.int64]
_KERNELS = {"f": decide_csr_rows, "jaccard": decide_jaccard_csr_rows}


class CSRRows(NamedTuple):
    """The entries of a block of rows in canonical CSR: each label once, in increasing order."""

    data: Real
    indices: Real
    indptr: Integers


class CSRMarginals:
    """Marginals in one or several CSR matrices side by side, read by blocks of rows.

    Parameters
    ----------
    matrices : sequence of CSR matrices
        The marginals.
    names : sequence of str
        The name of each matrix in error messages.
    members : sequence of ndarray, default=None
        Column i of matrix f is label ``members[f][i]``. By default there is one matrix, and its
        columns are the labels.
    """

    def __init__(
        self,
        matrices: Sequence[Any],
        names: Sequence[str],
        members: Sequence[Integers] | None = None,
    ) -> None:
        self._matrices = matrices
        self._names = names
        self._labels = None if members is None else np.concatenate(members)
        self.n = int(matrices[0].shape[0])
        self.nnz = sum(int(matrix.nnz) for matrix in matrices)

    @property
    def row_bytes(self) -> int:
        """The mean size of the entries of a row: 8 bytes each for value and index."""
        return 16 * (self.nnz // max(1, self.n) + 1)

    def read(self, rows: slice) -> CSRRows:
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
            block = sparse.csr_array(entries, (joined.shape[0], int(self._labels.max()) + 1))
        block.sum_duplicates()
        return CSRRows(block.data, block.indices, block.indptr.astype(np.int64))

    def check(self, rows: slice) -> None:
        """Raise unless all entries of some rows are probabilities, up to rounding."""
        for matrix, name in zip(self._matrices, self._names, strict=True):
            block = matrix[rows]
            block.sum_duplicates()
            check_stored_probabilities(block, name, rows.start)

    def to_decision(
        self, blocks: Sequence[tuple[Real, Real]], m: int, expected_f: npt.NDArray[np.float64]
    ) -> Decision:
        """Join decided blocks to CSR labels, of the type of the given matrices.

        Parameters
        ----------
        blocks : sequence of tuple of ndarray
            For each block the chosen labels, row after row, and the end of each row among them.
        m : int
            The number of labels.
        expected_f : ndarray of shape (n,)
            The expected F-measure of each row.

        Returns
        -------
        Decision
            With CSR labels.
        """
        kind = type(self._matrices[0])
        given = tuple(a for x in self._matrices for a in (x.indices, x.indptr))
        total = sum(len(chosen) for chosen, _ in blocks)
        # Labels of dense factors may exceed what the index type of the given matrices can count.
        dtype = sparse.get_index_dtype(given, maxval=max(m, total))
        indices = np.concatenate(
            [np.empty(0, dtype=dtype), *(chosen for chosen, _ in blocks)],
            dtype=dtype,
            casting="same_kind",
        )
        indptr = np.zeros(self.n + 1, dtype=dtype)
        row = start = 0
        for chosen, ends in blocks:
            indptr[row + 1 : row + 1 + len(ends)] = start + ends
            row += len(ends)
            start += len(chosen)
        ones = np.ones(len(indices), dtype=np.int8)
        return Decision(kind((ones, indices, indptr), shape=(self.n, m)), expected_f)


def valid_csr(proba: Any, name: str) -> Any:
    """Convert a sparse matrix of marginals to canonical CSR, and validate its entries."""
    csr = sparse_marginals(proba, name)
    # The flags of the given matrix may be from before a change in place.
    csr = type(csr)((csr.data, csr.indices, csr.indptr), shape=csr.shape)
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    check_stored_probabilities(csr, name)
    return csr


def decide_sparse_marginals(proba: Any, objective: Objective) -> Decision:
    """Decide from marginals in a sparse matrix of any format."""
    csr = sparse_marginals(proba, "proba")
    return decide_csr_marginals(CSRMarginals([csr], ["proba"]), csr.shape[1], objective)


def decide_csr_marginals(marginals: CSRMarginals, m: int, objective: Objective) -> Decision:
    """Decide from marginals of m independent labels in CSR."""
    expected_f = np.empty(marginals.n)
    constraints = objective.constraints(m, sparse=True)

    def decide_block(rows: slice) -> tuple[Real, Real]:
        entries = marginals.read(rows)
        at = _decide_rows(entries, objective, expected_f[rows], lambda: marginals.check(rows))
        if constraints is not None:
            return _constrain_rows(entries, at, objective, expected_f[rows], constraints)
        return entries.indices[at], np.searchsorted(at, entries.indptr[1:])

    blocks = run_blocks(marginals.n, marginals.row_bytes, objective.threads, decide_block)
    return marginals.to_decision(blocks, m, expected_f)


def decide_csr_columns(csr: Any, objective: Objective) -> Decision:
    """Decide each column of valid marginals in canonical CSR: one problem per label."""
    columns = CSRMarginals([csr.T.tocsr()], ["proba"])
    decision = decide_csr_marginals(columns, csr.shape[0], objective)
    return Decision(decision.labels.T.tocsr(), decision.expected_f)


def decide_csr_entries(csr: Any, objective: Objective) -> Decision:
    """Decide all entries of valid marginals in canonical CSR: one problem over rows and labels."""
    expected_f = np.empty(1)
    entries = CSRRows(csr.data, csr.indices, np.array([0, csr.nnz]))
    at = _decide_rows(entries, objective, expected_f, lambda: None)
    chosen = np.ones(len(at), dtype=np.int8), csr.indices[at], np.searchsorted(at, csr.indptr)
    return Decision(type(csr)(chosen, shape=csr.shape), expected_f[0])


def _decide_rows(
    entries: CSRRows, objective: Objective, expected_f: Real, check: Callable[[], None]
) -> Integers:
    """Run the kernel for independent labels; return the positions of the chosen entries."""
    chosen = np.zeros(len(entries.data), dtype=np.int8)
    arguments = (entries.indptr, *objective.kernel_arguments, objective.rules, chosen, expected_f)
    kernel = _KERNELS[objective.measure]
    run_kernel(kernel, float_block(entries.data), arguments, chosen, check)
    return np.flatnonzero(chosen)


def _constrain_rows(
    entries: CSRRows, at: Integers, objective: Objective, expected_f: Real, constraints: Any
) -> tuple[Integers, Integers]:
    """Replace infeasible label sets, which are given by the positions of chosen entries.

    Returns the chosen labels, row after row, and the end of each row among them.
    """
    chosen = np.zeros(len(entries.data), dtype=np.int8)
    chosen[at] = 1
    labels = np.empty(constraints.most_chosen(np.diff(entries.indptr)), dtype=np.int64)
    ends = np.empty(len(expected_f), dtype=np.int64)
    constrain_csr_rows(
        float_block(entries.data),
        entries.indices.astype(np.int64),
        entries.indptr,
        *objective.kernel_arguments,
        objective.rules,
        chosen,
        labels,
        ends,
        expected_f,
        constraints,
    )
    return labels[: ends[-1]].copy(), ends  # a copy, so that the rest of `labels` is freed
