"""Independent factors, some of them given as marginals in CSR.

A sparse matrix stands for factors of one label each. The labels are returned in CSR; nothing of
shape (n, m) is formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm.decision._factors import Factors
from fgfm.decision._marginals_sparse import CSRRows, SparseMarginals, SparseProblem
from fgfm.decision._objective import Objective
from fgfm.decision._problem import Problem, run_kernel
from fgfm.decision._quadrature import rules

Real = npt.NDArray[Any]
Integers = npt.NDArray[np.int64]


def sparse_problem(
    parts: Sequence[Any], members: Sequence[Integers], names: Sequence[str]
) -> Problem:
    """Return the problem of the P of factors, and sparse matrices of marginals."""
    m = sum(map(len, members))
    stored = [f for f, part in enumerate(parts) if sparse.issparse(part)]
    dense = [f for f, part in enumerate(parts) if not sparse.issparse(part)]
    sides = [
        ([parts[f] for f in side], [members[f] for f in side], [names[f] for f in side])
        for side in (stored, dense)
    ]
    (matrices, columns, titles), (Ps, labels, P_titles) = sides
    marginals = SparseMarginals(matrices, titles, columns, m)
    if not dense:
        return marginals
    return SparseFactors(Factors(Ps, labels, None, P_titles, m=m), marginals)


class SparseFactors(SparseProblem):
    """Factors of labels, some given by P and some, of one label each, by marginals in CSR."""

    def __init__(self, dense: Factors, marginals: SparseMarginals) -> None:
        self._dense, self._marginals = dense, marginals
        self.shape, self.kind = marginals.shape, marginals.kind
        self.index_arrays = marginals.index_arrays
        self.row_bytes = marginals.row_bytes + dense.row_bytes + 8 * len(dense.layout.members)

    def decide_block(
        self, rows: slice, objective: Objective, constraints: Any, expected_f: Real
    ) -> tuple[Real, Real]:
        dense, layout = self._dense, self._dense.layout
        entries = self._marginals.entries(rows)
        dense_values = dense.P_rows(rows)  # (n, width)
        n, width = dense_values.shape
        sizes = np.diff(entries.indptr) + len(layout.members)  # (n,) labels that may be possible
        room = int(sizes.sum()) if constraints is None else constraints.most_chosen(sizes)
        chosen = np.zeros(room, dtype=np.int64)
        ends = np.empty(n, dtype=np.int64)
        arguments = (
            entries.indices.astype(np.int64),
            entries.indptr,
            np.empty(layout.total_depth),  # work space for the distributions of one row
            width,
            *layout,
            dense.slack,
            objective.kernel_argument,
            rules(objective.beta),
            chosen,
            ends,
            expected_f,
            constraints,
        )

        def check() -> None:
            dense.check(rows)
            self._marginals.check(rows)

        kernel = objective.measure.kernels["sparse factors"]
        values = _interleave(dense_values, entries)
        row, factor = run_kernel(kernel, values, arguments, chosen, check)
        if row >= 0:
            dense.raise_excess(row, factor, rows)
        return chosen[: ends[-1]].copy(), ends  # a copy, so that the rest of `chosen` is freed

    def marginals(self) -> SparseMarginals:
        dense = self._dense.marginals().values
        labels = np.concatenate(self._dense.members)
        order = np.argsort(labels)  # the columns of `dense` are in the order of their labels
        matrices = [self._marginals.valid(), self.kind(dense)]
        names = [""] * 2  # both are valid
        return SparseMarginals(
            matrices, names, [np.arange(self.shape[1]), labels[order]], self.shape[1]
        )

    def as_one_row(self) -> SparseFactors:
        return SparseFactors(self._dense.as_one_row(), self._marginals.as_one_row())


def _interleave(dense: Real, entries: CSRRows) -> npt.NDArray[np.float64]:
    """Return the values of each row, those of the dense P before the stored ones, as a flat array.

    Row r begins at ``entries.indptr[r] + width * r``, with `width` values of the dense P.
    """
    n, width = dense.shape
    values = np.empty(dense.size + len(entries.data))
    starts = entries.indptr[:-1] + width * np.arange(n)  # (n,)
    values[starts[:, None] + np.arange(width)] = dense
    lengths = np.diff(entries.indptr)
    shift = width * np.repeat(np.arange(1, n + 1), lengths)  # (nnz,)
    values[np.arange(len(entries.data)) + shift] = entries.data
    return values
