"""G tests in bulk: many targets in their strata, each against all columns or one of its own."""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import gammaincc

from fgfm.factors._counts import MAX_CELLS, Columns, Strata
from fgfm.factors._expected import expected_cell, expected_g_2x2, x_log_x
from fgfm.factors._random_tables import mean_random_g

__all__ = ["Degrees", "GTest", "g_test_columns", "g_test_each"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_KINDS = ("mi", "g", "permutation")
_DUST = 1e-9  # a G below this is rounding
_NO_EVIDENCE = float(gammaincc(0.5, 0.5))  # P(chi-square_1 > 1)


class Degrees(NamedTuple):
    """The kind of degrees of freedom, and how many tables "permutation" draws."""

    kind: str = "mi"
    n_tables: int = 100

    @classmethod
    def checked(cls, df: Any, n_tables: Any) -> Degrees:
        """Check what a user asks for.

        Parameters
        ----------
        df : object
            Must be one of the three kinds.
        n_tables : object
            Must be a positive integer.

        Returns
        -------
        Degrees
            The two together.
        """
        if not isinstance(df, str) or df not in _KINDS:
            raise ValueError(f"df is {df!r}: it must be one of {', '.join(map(repr, _KINDS))}")
        integral = isinstance(n_tables, numbers.Integral) and not isinstance(n_tables, bool)
        if not integral or n_tables < 1:
            raise ValueError(f"n_tables is {n_tables!r}: it must be an integer greater than 0")
        return cls(df, int(n_tables))


class GTest(NamedTuple):
    """The outcome of a G test, or of one per column.

    Attributes
    ----------
    statistic : float or ndarray of shape (d,)
        G, which is 2 n times the empirical conditional mutual information in nats.
    df : float or ndarray of shape (d,)
        Degrees of freedom; 0 where no stratum tells anything.
    p_value : float or ndarray of shape (d,)
        The p-value; 1 where no stratum tells anything.
    """

    statistic: Any
    df: Any
    p_value: Any


def g_test_columns(
    problems: Sequence[Strata], columns: Columns, degrees: Degrees, rngs: Sequence[Any]
) -> GTest:
    """Test the target of each problem against each column, given the strata of the problem.

    Parameters
    ----------
    problems : sequence of Strata
        Targets with the same number of levels, and their counts in strata.
    columns : Columns
        The columns, d of them.
    degrees : Degrees
        Degrees of freedom.
    rngs : sequence of numpy.random.Generator or None
        One for each problem; used by "permutation" only.

    Returns
    -------
    GTest
        Three arrays, one row for each problem and one column for each column.
    """
    G, df = (np.zeros((len(problems), len(columns.levels))) for _ in range(2))
    for batch in _batches(problems, int(columns.starts[-1])):
        rows = np.concatenate([problems[p].counts for p in batch])  # (K, L)
        for block, part in columns.blocks(rows.size):
            N = np.concatenate([columns.counts(problems[p], part) for p in batch])  # (K, L, Q)
            starts = columns.starts[block] - columns.starts[block.start]
            first = np.cumsum([0, *(len(problems[p].counts) for p in batch[:-1])])
            tables = _Tables(rows, N, starts, first)
            G[batch, block] = tables.g()
            df[batch, block] = tables.df(degrees, [rngs[p] for p in batch])
    return _p_values(G, df)


def g_test_each(
    problems: Sequence[Strata],
    others: Sequence[tuple[Integers, int]],
    degrees: Degrees,
    rngs: Sequence[Any],
) -> GTest:
    """Test the target of each problem against a variable of its own.

    Parameters
    ----------
    problems : sequence of Strata
        Targets with the same number of levels, and their counts in strata.
    others : sequence of (codes, levels)
        For each problem the other variable, by rows, and its number of levels.
    degrees : Degrees
        Degrees of freedom.
    rngs : sequence of numpy.random.Generator or None
        One for each problem; used by "permutation" only.

    Returns
    -------
    GTest
        Three arrays with one element for each problem.
    """
    G, df = (np.zeros((len(problems), 1)) for _ in range(2))
    width = max([2, *(levels for _, levels in others)])
    for batch in _batches(problems, width):
        parts = []
        for p in batch:
            strata = problems[p]
            joint = strata.joint * width + others[p][0][strata.rows]
            counts = np.bincount(joint, minlength=strata.counts.size * width)
            parts.append(counts.reshape(*strata.counts.shape, width)[:, :, 1:])
        rows = np.concatenate([problems[p].counts for p in batch])  # (K, L)
        first = np.cumsum([0, *(len(part) for part in parts[:-1])])
        tables = _Tables(rows, np.concatenate(parts), np.zeros(1, dtype=np.int64), first)
        G[batch] = tables.g()
        df[batch] = tables.df(degrees, [rngs[p] for p in batch])
    return GTest(*(values[:, 0] for values in _p_values(G, df)))


def _batches(problems: Sequence[Strata], width: int) -> Iterator[list[int]]:
    """Put problems together as long as their tables fit; those that tell nothing are left out."""
    batch: list[int] = []
    cells = 0
    for p, strata in enumerate(problems):
        if len(strata.counts) == 0:
            continue
        if batch and cells + strata.counts.size * width > MAX_CELLS:
            yield batch
            batch, cells = [], 0
        batch.append(p)
        cells += strata.counts.size * width
    if batch:
        yield batch


def _p_values(G: Floats, df: Floats) -> GTest:
    G[G < _DUST] = 0.0
    p_value = np.ones(G.shape)
    told = df > 0.0
    p_value[told] = gammaincc(df[told] / 2.0, G[told] / 2.0)
    none = df >= G
    p_value[none] = np.maximum(p_value[none], _NO_EVIDENCE)
    return GTest(G, df, p_value)


class _Tables:
    """Tables of targets with L levels against a block of columns, in the strata of problems."""

    def __init__(self, rows: Integers, N: Integers, starts: Integers, first: Integers) -> None:
        self.rows = rows  # (K, L)
        self.n = rows.sum(axis=1)  # (K,)
        self.first = first  # stratum of each problem
        self.starts = starts  # (d,) first indicator of each column
        self.binary = N.shape[2] == len(starts)
        self.N = N  # (K, L, Q) levels 1, 2, ... of the columns
        self.N0 = rows[:, :, None] - self._by_column(N)  # (K, L, d) level 0
        self.c = N.sum(axis=1)  # (K, Q)
        self.c0 = self.N0.sum(axis=1)  # (K, d)

    def _by_column(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Sum over the levels of each column, which are on the last axis."""
        return values if self.binary else np.add.reduceat(values, self.starts, axis=-1)

    def _by_problem(self, values: npt.NDArray[Any]) -> Floats:
        """Sum over the strata of each problem, which are on the first axis."""
        return np.add.reduceat(values, self.first, axis=0).astype(np.float64)

    def g(self) -> Floats:
        """Give G, by sums of x log x."""
        products = x_log_x(int(self.n.max()))
        cells = self._by_column(products[self.N].sum(axis=1)) + products[self.N0].sum(axis=1)
        margins = self._by_column(products[self.c]) + products[self.c0]
        fixed = products[self.n] - products[self.rows].sum(axis=1)
        return 2.0 * self._by_problem(cells - margins + fixed[:, None])

    def df(self, degrees: Degrees, rngs: Sequence[Any]) -> Floats:
        """Give the degrees of freedom, one row for each problem."""
        if degrees.kind == "mi":
            return self._by_problem(self._expected())
        if degrees.kind == "g":
            return self._by_problem(self._free_cells())
        return self._drawn(degrees.n_tables, rngs)

    def _expected(self) -> Floats:
        """Give E[G] by stratum; columns with the same count in a stratum share the work."""
        offset = np.concatenate([[0], np.cumsum(self.n + 1)])
        at, at0 = offset[:-1, None] + self.c, offset[:-1, None] + self.c0
        present = np.zeros(offset[-1], dtype=bool)
        present[at] = True
        whole = self.binary and self.rows.shape[1] == 2
        if not whole:
            present[at0] = True
        where = np.flatnonzero(present)
        z = np.searchsorted(offset, where, side="right") - 1
        n, c = self.n[z], where - offset[z]
        share = np.zeros(offset[-1])
        if whole:
            share[where] = expected_g_2x2(n, self.rows[z, 1], c)
            return np.asarray(share[at])
        for level in range(self.rows.shape[1]):
            share[where] += expected_cell(n, self.rows[z, level], c)
        return np.asarray(self._by_column(share[at]) + share[at0])

    def _free_cells(self) -> Integers:
        """Give the number of free cells by stratum, among levels that the stratum has."""
        rows = np.count_nonzero(self.rows, axis=1) - 1  # (K,)
        columns = self._by_column((self.c > 0).astype(np.int64)) + (self.c0 > 0) - 1
        return np.asarray(rows[:, None] * columns)

    def _drawn(self, n_tables: int, rngs: Sequence[Any]) -> Floats:
        """Give the mean G of drawn tables, each problem with its own generator."""
        ends = np.append(self.starts[1:], self.c.shape[1])
        last = np.append(self.first[1:], len(self.n))
        degrees = np.zeros((len(self.first), len(self.starts)))
        for p, rng in enumerate(rngs):
            strata = slice(self.first[p], last[p])
            for j, (start, stop) in enumerate(zip(self.starts, ends, strict=True)):
                c = np.column_stack([self.c0[strata, j], self.c[strata, start:stop]])
                c = c[:, c.any(axis=0)]  # levels that only others have must not draw
                degrees[p, j] = mean_random_g(self.rows[strata], c, n_tables, rng).sum()
        return degrees
