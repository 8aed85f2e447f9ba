"""Decisions from independent factors, some of them given as marginals in CSR.

A sparse matrix stands for factors of one label each. The labels are returned in CSR; nothing of
shape (n, m) is formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._kernels import decide_sparse_factor_rows
from fgfm._utils.blocks import run_blocks
from fgfm._utils.validation import check_probabilities, raise_excess_mass, tolerance
from fgfm.decision._averages import raise_excess_factor, rows_as_factors
from fgfm.decision._factors_dense import kernel_shape
from fgfm.decision._marginals_sparse import (
    CSRMarginals,
    CSRRows,
    decide_csr_entries,
    decide_csr_marginals,
    valid_csr,
)
from fgfm.decision._objective import Decision, Objective, run_kernel

__all__ = ["decide_sparse_factors", "decide_sparse_rows_as_factors", "side_by_side"]

Real = npt.NDArray[Any]
Integers = npt.NDArray[np.int64]


def decide_sparse_factors(
    parts: Sequence[Any], members: Sequence[Integers], objective: Objective
) -> Decision:
    """Decide from the P of factors and sparse matrices of marginals."""
    stored = [f for f, part in enumerate(parts) if sparse.issparse(part)]
    marginals = CSRMarginals(
        [parts[f] for f in stored], [f"Ps[{f}]" for f in stored], [members[f] for f in stored]
    )
    dense = [f for f, part in enumerate(parts) if not sparse.issparse(part)]
    dense.sort(key=lambda f: parts[f].shape[1] == 1)  # the kernel reads factors of one label last
    if not dense:
        return decide_csr_marginals(marginals, sum(map(len, members)), objective)
    return _decide_both(parts, members, dense, marginals, objective)


def _decide_both(
    parts: Sequence[Any],
    members: Sequence[Integers],
    order: list[int],
    marginals: CSRMarginals,
    objective: Objective,
) -> Decision:
    """Decide from the P of the factors in `order`, and marginals in CSR."""
    dense: list[Real] = [parts[f] for f in order]
    n_multiple = sum(P.shape[1] > 1 for P in dense)
    shape = kernel_shape(parts, members, order, n_multiple)
    n_dense_labels = len(shape[2])
    width = sum(P.shape[1] * P.shape[2] for P in dense)
    total_depth = sum(P.shape[2] + 1 for P in dense[:n_multiple])
    slack = max(tolerance(P) for P in dense)
    expected_f = np.empty(marginals.n)
    constraints = objective.constraints(sum(map(len, members)), sparse=True)

    def check(rows: slice) -> None:
        for f, P in zip(order, dense, strict=True):
            check_probabilities(P[rows], f"Ps[{f}]", rows.start)
        marginals.check(rows)

    def decide_block(rows: slice) -> tuple[Real, Real]:
        entries = marginals.read(rows)
        n = len(entries.indptr) - 1
        values = _interleave([P[rows].reshape(n, -1) for P in dense], entries)
        sizes = np.diff(entries.indptr) + n_dense_labels  # (n,) labels that may be possible
        room = int(sizes.sum()) if constraints is None else constraints.most_chosen(sizes)
        chosen = np.zeros(room, dtype=np.int64)
        ends = np.empty(n, dtype=np.int64)
        arguments = (
            entries.indices.astype(np.int64),
            entries.indptr,
            np.empty(total_depth),  # work space for the distributions of one row
            width,
            *shape,
            slack,
            *objective.kernel_arguments,
            objective.rules,
            chosen,
            ends,
            expected_f[rows],
            constraints,
        )
        row, factor = run_kernel(
            decide_sparse_factor_rows, values, arguments, chosen, lambda: check(rows)
        )
        if row >= 0:
            f = order[factor]
            raise_excess_mass(parts[f][rows], row, f"Ps[{f}]", rows.start)
        return chosen[: ends[-1]].copy(), ends  # a copy, so that the rest of `chosen` is freed

    row_bytes = marginals.row_bytes + 8 * (width + n_dense_labels)
    blocks = run_blocks(marginals.n, row_bytes, objective.threads, decide_block)
    return marginals.to_decision(blocks, sum(map(len, members)), expected_f)


def decide_sparse_rows_as_factors(
    parts: Sequence[Any], members: Sequence[Integers], objective: Objective
) -> Decision:
    """Decide all rows together, where every row has the same factors, some of them sparse."""
    stored = [f for f, part in enumerate(parts) if sparse.issparse(part)]
    csr = side_by_side(
        [valid_csr(parts[f], f"Ps[{f}]") for f in stored],
        np.arange(sum(len(members[f]) for f in stored)),
    )
    columns = np.concatenate([members[f] for f in stored])  # the label of each column
    dense = [f for f, part in enumerate(parts) if not sparse.issparse(part)]
    n, m = csr.shape[0], sum(map(len, members))
    if n == 0:
        return Decision(type(csr)((n, m), dtype=np.int8), objective.value_without_labels)
    row = np.repeat(np.arange(n), np.diff(csr.indptr))  # (nnz,)
    entries = m * row + columns[csr.indices]  # (nnz,) their numbers in the label matrix
    order = np.argsort(entries)
    if not dense:
        canonical = type(csr)((csr.data[order], entries[order] % m, csr.indptr), shape=(n, m))
        return decide_csr_entries(canonical, objective)
    names = [f"Ps[{f}]" for f in dense]
    batch = rows_as_factors([parts[f] for f in dense], [members[f] for f in dense], None, m)
    values = np.concatenate([batch.values, csr.data])
    chosen = np.zeros(len(batch.entries) + csr.nnz, dtype=np.int64)
    ends, expected_f = np.empty(1, dtype=np.int64), np.empty(1)
    arguments = (
        entries,
        np.array([0, csr.nnz]),
        np.empty(int((batch.depths[: batch.n_multiple] + 1).sum())),  # work space
        len(batch.values),
        *batch.kernel_shape,
        max(tolerance(parts[f]) for f in dense),
        *objective.kernel_arguments,
        objective.rules,
        chosen,
        ends,
        expected_f,
    )

    def check() -> None:
        for f, name in zip(dense, names, strict=True):
            check_probabilities(parts[f], name)

    failed, factor = run_kernel(decide_sparse_factor_rows, values, arguments, chosen, check)
    if failed >= 0:
        raise_excess_factor(factor, [parts[f] for f in dense], None, names)
    found = chosen[: ends[0]]
    ones = np.ones(len(found), dtype=np.int8)
    indptr = np.searchsorted(found, m * np.arange(n + 1))
    return Decision(type(csr)((ones, found % m, indptr), shape=(n, m)), expected_f[0])


def side_by_side(blocks: Sequence[Any], order: Integers) -> Any:
    """Join marginals, (n, m_f), dense or CSR, to CSR with the columns in the given order."""
    kind = next(type(block) for block in blocks if sparse.issparse(block))
    joined = sparse.hstack([sparse.csr_array(block) for block in blocks], format="csr")
    joined = kind(joined[:, order])
    joined.sort_indices()
    return joined


def _interleave(dense: list[Real], entries: CSRRows) -> npt.NDArray[np.float64]:
    """Return the values of each row, those of the dense P before the stored ones, as a flat array.

    Row r begins at ``entries.indptr[r] + width * r``, with `width` values of the dense P.
    """
    n = len(entries.indptr) - 1
    dense_values = np.concatenate(dense, axis=1, dtype=np.float64)  # (n, width)
    width = dense_values.shape[1]
    values = np.empty(n * width + len(entries.data))
    starts = entries.indptr[:-1] + width * np.arange(n)  # (n,)
    values[starts[:, None] + np.arange(width)] = dense_values
    lengths = np.diff(entries.indptr)
    shift = width * np.repeat(np.arange(1, n + 1), lengths)  # (nnz,)
    values[np.arange(len(entries.data)) + shift] = entries.data
    return values
