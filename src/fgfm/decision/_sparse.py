"""Decisions where probabilities are stored in CSR: never a dense (n, m), whatever m is.

What costs memory is what is stored for a block of rows. The labels come in CSR as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._utils.blocks import float_block, run_blocks
from fgfm._utils.validation import (
    check_probabilities,
    check_stored_probabilities,
    refuse_mass,
    sparse_marginals,
    tolerance,
)
from fgfm.decision._objective import Decision, Objective, run_kernel

__all__ = ["decide_sparse_factors", "decide_sparse_marginals"]

Real = npt.NDArray[Any]
Integers = npt.NDArray[np.int64]


class _Entries(NamedTuple):
    """What is stored of a block of rows, named as in CSR: each label once, in order."""

    data: Real
    indices: Real
    indptr: Integers


class _Stored:
    """Marginals in CSR, read by blocks of rows; several matrices stand side by side.

    Column i of matrix f is label ``members[f][i]``.
    """

    def __init__(
        self, matrices: Sequence[Any], names: Sequence[str], members: Sequence[Integers] | None
    ) -> None:
        self._matrices = matrices
        self._names = names
        self._labels = None if members is None else np.concatenate(members)
        self.n = int(matrices[0].shape[0])
        self.nnz = sum(int(matrix.nnz) for matrix in matrices)

    def read(self, rows: slice) -> _Entries:
        """Give the entries of some rows, without a copy where they are in order already."""
        if self._labels is None:
            (matrix,) = self._matrices
            indptr = matrix.indptr[rows.start : rows.stop + 1].astype(np.int64)
            first, last = int(indptr[0]), int(indptr[-1])
            entries = matrix.data[first:last], matrix.indices[first:last], indptr - first
            # What the matrix itself says of its order may be from before it was changed.
            block = sparse.csr_array(entries, (len(indptr) - 1, matrix.shape[1]))
            if block.has_canonical_format:
                return _Entries(*entries)
            block = block.copy()
        else:
            whole = sparse.hstack([matrix[rows] for matrix in self._matrices], format="csr")
            entries = whole.data, self._labels[whole.indices], whole.indptr
            block = sparse.csr_array(entries, (whole.shape[0], int(self._labels.max()) + 1))
        block.sum_duplicates()
        return _Entries(block.data, block.indices, block.indptr.astype(np.int64))

    def check(self, rows: slice) -> None:
        """Raise unless all entries of some rows are probabilities, up to rounding."""
        for matrix, name in zip(self._matrices, self._names, strict=True):
            block = matrix[rows]
            block.sum_duplicates()
            check_stored_probabilities(block, name, rows.start)

    def answer(
        self, blocks: Sequence[tuple[Real, Real]], m: int, expected_f: npt.NDArray[np.float64]
    ) -> Decision:
        """Give the decision; a block is its labels, row after row, and where each row ends."""
        kind = type(self._matrices[0])
        inputs = tuple(a for x in self._matrices for a in (x.indices, x.indptr))
        most = max(m, sum(len(chosen) for chosen, _ in blocks))
        dtype = sparse.get_index_dtype(inputs, maxval=most)
        indices = np.concatenate(
            [np.empty(0, dtype=dtype), *(chosen for chosen, _ in blocks)],
            dtype=dtype,
            casting="same_kind",
        )
        indptr = np.zeros(self.n + 1, dtype=dtype)
        at = passed = 0
        for chosen, ends in blocks:
            indptr[at + 1 : at + 1 + len(ends)] = passed + ends
            at += len(ends)
            passed += len(chosen)
        ones = np.ones(len(indices), dtype=np.int8)
        return Decision(kind((ones, indices, indptr), shape=(self.n, m)), expected_f)

    @property
    def row_bytes(self) -> int:
        """How much a row stores, on average."""
        return 16 * (self.nnz // max(1, self.n) + 1)


def decide_sparse_marginals(proba: Any, objective: Objective) -> Decision:
    """Decide from marginals in a sparse matrix."""
    csr = sparse_marginals(proba, "proba")
    return _decide_stored(_Stored([csr], ["proba"], None), csr.shape[1], objective)


def _decide_stored(stored: _Stored, m: int, objective: Objective) -> Decision:
    from fgfm._kernels.marginals import decide_csr_rows

    expected_f = np.empty(stored.n)

    def decide(rows: slice) -> tuple[Real, Real]:
        entries = stored.read(rows)
        chosen = np.zeros(len(entries.data), dtype=np.int8)
        known = (
            entries.indptr,
            *objective.arguments,
            objective.rules,
            chosen,
            expected_f[rows],
        )
        run_kernel(
            decide_csr_rows, float_block(entries.data), known, chosen, lambda: stored.check(rows)
        )
        at = np.flatnonzero(chosen)
        return entries.indices[at], np.searchsorted(at, entries.indptr[1:])

    blocks = run_blocks(stored.n, stored.row_bytes, objective.threads, decide)
    return stored.answer(blocks, m, expected_f)


def decide_sparse_factors(
    parts: Sequence[Any], members: Sequence[Integers], objective: Objective
) -> Decision:
    """Decide from the P of factors, some of them a sparse matrix: factors of one label each."""
    is_stored = [sparse.issparse(part) for part in parts]
    at = [f for f in range(len(parts)) if is_stored[f]]
    stored = _Stored([parts[f] for f in at], [f"Ps[{f}]" for f in at], [members[f] for f in at])
    m = sum(map(len, members))
    # Factors of one label come last, those that are stored after all others.
    order = [f for f in range(len(parts)) if not is_stored[f]]
    order.sort(key=lambda f: parts[f].shape[1] == 1)
    if not order:
        return _decide_stored(stored, m, objective)
    return _decide_both(parts, members, order, stored, m, objective)


def _decide_both(
    parts: Sequence[Any],
    members: Sequence[Integers],
    order: list[int],
    stored: _Stored,
    m: int,
    objective: Objective,
) -> Decision:
    """Decide from dense P, in this order, and stored marginals together."""
    from fgfm._kernels.factors import decide_sparse_factor_rows

    dense: list[Real] = [parts[f] for f in order]
    multiple = sum(P.shape[1] > 1 for P in dense)
    shape = (
        np.array([P.shape[1] for P in dense]),
        np.array([P.shape[2] for P in dense]),
        np.concatenate([members[f] for f in order]),
        multiple,
    )
    width = sum(P.shape[1] * P.shape[2] for P in dense)
    depth = sum(P.shape[2] + 1 for P in dense[:multiple])
    slack = max(tolerance(P) for P in dense)
    expected_f = np.empty(stored.n)

    def check(rows: slice) -> None:
        for f, P in zip(order, dense, strict=True):
            check_probabilities(P[rows], f"Ps[{f}]", rows.start)
        stored.check(rows)

    def decide(rows: slice) -> tuple[Real, Real]:
        entries = stored.read(rows)
        n = len(entries.indptr) - 1
        values = _side_by_side([P[rows].reshape(n, -1) for P in dense], entries)
        found = np.zeros(len(entries.data) + n * len(shape[2]), dtype=np.int64)
        ends = np.empty(n, dtype=np.int64)
        known = (
            entries.indices.astype(np.int64),
            entries.indptr,
            np.empty(depth),
            width,
            shape,
            slack,
            *objective.arguments,
            objective.rules,
            found,
            ends,
            expected_f[rows],
        )
        row, factor = run_kernel(
            decide_sparse_factor_rows, values, known, found, lambda: check(rows)
        )
        if row >= 0:
            f = order[factor]
            refuse_mass(parts[f][rows], row, f"Ps[{f}]", rows.start)
        return found[: ends[-1]].copy(), ends  # the room for all of them is given back

    row_bytes = stored.row_bytes + 8 * (width + len(shape[2]))
    blocks = run_blocks(stored.n, row_bytes, objective.threads, decide)
    return stored.answer(blocks, m, expected_f)


def _side_by_side(dense: list[Real], entries: _Entries) -> npt.NDArray[np.float64]:
    """Give the values of each row, those of dense arrays before those that are stored, flat."""
    n = len(entries.indptr) - 1
    first = np.concatenate(dense, axis=1, dtype=np.float64)  # (n, width)
    width = first.shape[1]
    values = np.empty(n * width + len(entries.data))
    starts = entries.indptr[:-1] + width * np.arange(n)  # (n,)
    values[starts[:, None] + np.arange(width)] = first
    lengths = np.diff(entries.indptr)
    values[np.arange(len(entries.data)) + width * np.repeat(np.arange(1, n + 1), lengths)] = (
        entries.data
    )
    return values
