"""Discrete columns, strata and contingency tables.

A column with levels 0 .. L - 1 is stored as the 0/1 indicators of its levels 1 .. L - 1. Level 0,
the most frequent one in sparse data, needs no storage: its counts follow from the margins. One
matrix product then counts all columns against a target within strata.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

Integers = npt.NDArray[np.int64]

MAX_CELLS = 1 << 20  # cells of contingency tables in memory at a time
_SPARSE_SHARE = 0.1  # indicators with a smaller share of ones are stored sparse
_ONE_HOT_SIZE = 1 << 20  # largest dense one-hot matrix, in elements


class Columns(NamedTuple):
    """Discrete columns of n rows, as indicators of their levels.

    `indicators` is a dense array of shape (n, Q), or a CSR array of its transpose, (Q, n). The
    indicators of column j are those from `starts[j]` to `starts[j + 1]`. A constant column has
    one indicator, which is 0 in every row.
    """

    indicators: Any
    starts: Integers  # (d + 1,)
    levels: Integers  # (d,)

    def column(self, j: int) -> tuple[Integers, int]:
        """Return the level of each row in column j, and the number of levels."""
        start, stop, levels = int(self.starts[j]), int(self.starts[j + 1]), int(self.levels[j])
        if sparse.issparse(self.indicators):
            codes = np.zeros(self.indicators.shape[1], dtype=np.int64)
            indptr, indices = self.indicators.indptr, self.indicators.indices
            for level, q in enumerate(range(start, stop), start=1):
                codes[indices[indptr[q] : indptr[q + 1]]] = level
            return codes, levels
        weights = np.arange(1, stop - start + 1, dtype=np.float64)
        return np.asarray(self.indicators[:, start:stop] @ weights, dtype=np.int64), levels

    def blocks(self, cells: int) -> Iterator[tuple[slice, slice]]:
        """Split the columns into blocks whose tables have at most about `MAX_CELLS` cells.

        One indicator needs `cells` of them, strata times levels of the target. Yields the columns
        of a block and their indicators.
        """
        d, Q = len(self.levels), int(self.starts[-1])
        width = max(1, MAX_CELLS // max(1, cells))  # indicators in a block
        step = d if width >= Q else max(1, d * width // Q)
        for first in range(0, d, step):
            last = min(first + step, d)
            yield slice(first, last), slice(int(self.starts[first]), int(self.starts[last]))

    def counts(self, strata: Strata, part: slice) -> Integers:
        """Count some indicators by stratum and level of the target, (K, L, Q).

        The counts are S^T B for the one-hot matrix S of the pairs (stratum, level), (rows, K L),
        and the indicators B, (rows, Q).
        """
        K, L = strata.counts.shape
        if sparse.issparse(self.indicators):
            n = self.indicators.shape[1]
            filled = np.zeros(n + 1, dtype=np.int32)
            filled[1:][strata.rows] = 1
            ones = np.ones(len(strata.joint), dtype=np.int32)
            S = sparse.csr_array((ones, strata.joint, np.cumsum(filled)), shape=(n, K * L))
            whole = part == slice(0, int(self.starts[-1]))
            B = self.indicators if whole else self.indicators[part]  # (Q, n)
            counts = (B @ S).toarray().T  # (K L, Q)
        else:
            B = self.indicators[:, part][strata.rows]  # (rows, Q)
            n = len(strata.joint)
            if n * K * L <= _ONE_HOT_SIZE:
                S = np.zeros((n, K * L), dtype=B.dtype)
                S[np.arange(n), strata.joint] = 1
            else:
                ones = np.ones(n, dtype=B.dtype)
                S = sparse.csr_array((ones, strata.joint, np.arange(n + 1)), shape=(n, K * L))
            counts = S.T @ B  # (K L, Q)
        return np.asarray(counts).astype(np.int64).reshape(K, L, -1)


class Strata(NamedTuple):
    """A target within strata: only the strata in which the target varies.

    A table of a stratum with a constant target has one row: its G and its expectation are 0.
    """

    rows: npt.NDArray[np.bool_] | slice  # (n,) rows in such strata, or slice(None) for all
    joint: Integers  # (rows,) stratum * L + level of the target
    counts: Integers  # (K, L)


def refine(codes: Integers, n_codes: int, values: Integers, levels: int) -> tuple[Integers, int]:
    """Split strata by one more column, and renumber those that have rows."""
    joint = codes * levels + values
    if n_codes * levels > 8 * len(codes) + 64:  # far more cells than rows: sort instead of count
        kept, renumbered = np.unique(joint, return_inverse=True)
        return renumbered.reshape(-1), len(kept)
    present = np.bincount(joint, minlength=n_codes * levels) > 0
    if present.all():
        return joint, n_codes * levels
    order = present.cumsum()
    return (order - 1)[joint], int(order[-1])


def combine(columns: Sequence[tuple[Integers, int]], n: int) -> tuple[Integers, int]:
    """Return the stratum of each of n rows, by columns (codes, levels), and how many there are."""
    codes, count = np.zeros(n, dtype=np.int64), 1
    for values, levels in columns:
        codes, count = refine(codes, count, values, levels)
    return codes, count


def make_strata(target: Integers, target_levels: int, codes: Integers, n_codes: int) -> Strata:
    """Count a target within strata, and drop the strata in which it is constant."""
    joint = codes * target_levels + target
    counts = np.bincount(joint, minlength=n_codes * target_levels).reshape(-1, target_levels)
    varies = (counts > 0).sum(axis=1) > 1  # (K,)
    if varies.all():
        return Strata(slice(None), joint, counts)
    rows = varies[codes]  # (n,)
    renumbered = varies.cumsum() - 1
    joint = renumbered[codes[rows]] * target_levels + target[rows]
    return Strata(rows, joint, counts[varies])


def encode_labels(Y: npt.NDArray[np.bool_]) -> Columns:
    """Encode 0/1 labels of shape (n, m)."""
    m = Y.shape[1]
    levels = np.where(Y.any(axis=0), 2, 1) if len(Y) else np.ones(m, dtype=np.int64)
    return Columns(_pack(Y), np.arange(m + 1), levels.astype(np.int64))


def count_levels(X: Any) -> Integers:
    """Count the levels of each column, without building indicators."""
    if not sparse.issparse(X):
        # A set, not np.unique: columns may mix numbers and strings, which cannot be sorted.
        columns = np.asarray(X).T
        return np.array([max(1, len(set(column.tolist()))) for column in columns], dtype=np.int64)
    csc = _canonical(X)
    n, d = csc.shape
    levels = np.ones(d, dtype=np.int64)
    for j in range(d):
        stored = csc.data[csc.indptr[j] : csc.indptr[j + 1]]
        levels[j] = max(1, len(np.unique(stored)) + (len(stored) < n))
    return levels


def encode(X: Any) -> Columns:
    """Encode the columns of a dense array or of a sparse matrix by their levels."""
    return _encode_sparse(X) if sparse.issparse(X) else _encode_dense(np.asarray(X))


def _encode_dense(X: npt.NDArray[Any]) -> Columns:
    n, d = X.shape
    if X.dtype.kind in "biuf" and n and bool(((X == 0) | (X == 1)).all()):
        ones = X == 1
        varies = ones.any(axis=0) & ~ones.all(axis=0)
        return Columns(_pack(ones), np.arange(d + 1), np.where(varies, 2, 1).astype(np.int64))
    blocks, levels = [], np.ones(d, dtype=np.int64)
    for j in range(d):
        values, codes = np.unique(X[:, j], return_inverse=True)
        levels[j] = max(1, len(values))
        blocks.append(codes.reshape(-1, 1) == np.arange(1, max(2, len(values))))
    return Columns(_pack(np.hstack(blocks)), _starts(levels), levels)


def _encode_sparse(X: Any) -> Columns:
    csc = _canonical(X)
    n, d = csc.shape
    if bool((csc.data == 1).all()):
        ones = sparse.csr_array(
            (np.ones(csc.nnz, dtype=np.int32), csc.indices, csc.indptr), shape=(d, n)
        )
        filled = np.diff(csc.indptr)
        levels = np.where((filled > 0) & (filled < n), 2, 1).astype(np.int64)
        return Columns(ones, np.arange(d + 1), levels)
    levels = np.ones(d, dtype=np.int64)
    indices, lengths = [], []
    for j in range(d):
        stored = slice(int(csc.indptr[j]), int(csc.indptr[j + 1]))
        values, codes = np.unique(csc.data[stored], return_inverse=True)
        filled = stored.stop - stored.start == n  # no zeros: the first stored value is level 0
        levels[j] = max(1, len(values) + (not filled))
        for level in range(int(filled), len(values)):
            rows = csc.indices[stored][codes == level]
            indices.append(rows)
            lengths.append(len(rows))
        if levels[j] == 1:
            lengths.append(0)
    flat = np.concatenate(indices) if indices else np.empty(0, dtype=np.int32)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    ones = sparse.csr_array(
        (np.ones(len(flat), dtype=np.int32), flat.astype(np.int32), indptr),
        shape=(len(lengths), n),
    )
    return Columns(ones, _starts(levels), levels)


def _canonical(X: Any) -> Any:
    """Return a CSC copy without duplicates and without stored zeros."""
    csc = sparse.csc_array(X, copy=True)
    csc.sum_duplicates()
    csc.eliminate_zeros()
    return csc


def _starts(levels: Integers) -> Integers:
    """Return the first indicator of each column, and the number of all indicators."""
    return np.concatenate([[0], np.cumsum(np.maximum(1, levels - 1))]).astype(np.int64)


def _pack(ones: npt.NDArray[np.bool_]) -> Any:
    """Store indicators of shape (n, Q) in the format that is counted fastest."""
    if ones.size > _ONE_HOT_SIZE // 16 and np.count_nonzero(ones) < _SPARSE_SHARE * ones.size:
        return sparse.csr_array(np.ascontiguousarray(ones.T).astype(np.int32))
    # Floats, for the matrix product of BLAS; sums of ones are exact in float32 up to 2^24.
    return ones.astype(np.float32 if len(ones) < 1 << 24 else np.float64)
