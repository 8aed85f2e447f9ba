"""G tests in bulk: many targets in their strata, each against all columns or one of its own."""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import gammaincc

from fgfm.factors._counts import MAX_CELLS, Columns, Strata
from fgfm.factors._expected import expected_cell, moments_2x2, x_log_x
from fgfm.factors._random_tables import mean_random_g

__all__ = ["Degrees", "GTest", "g_test_columns", "g_test_each"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_KINDS = ("mi", "moments", "g", "permutation")
_CERTAIN = 1e-9  # relative variance below which all tables have the same G
_DUST = 1e-12  # a mean below this is rounding
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
            Must be one of the four kinds.
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
        Degrees of freedom; 0 where no stratum tells anything. For "moments" those of a chi-square
        variable that is also scaled.
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
    G, mean, variance = (np.zeros((len(problems), len(columns.levels))) for _ in range(3))
    for batch in _batches(problems, int(columns.starts[-1])):
        rows = np.concatenate([problems[p].counts for p in batch])  # (K, L)
        for block, part in columns.blocks(rows.size):
            N = np.concatenate([columns.counts(problems[p], part) for p in batch])  # (K, L, Q)
            starts = columns.starts[block] - columns.starts[block.start]
            first = np.cumsum([0, *(len(problems[p].counts) for p in batch[:-1])])
            tables = _Tables(rows, N, starts, first)
            G[batch, block] = tables.g()
            mean[batch, block], variance[batch, block] = tables.null_moments(
                degrees, [rngs[p] for p in batch]
            )
    return _judge(G, mean, variance)


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
    G, mean, variance = (np.zeros((len(problems), 1)) for _ in range(3))
    start = np.zeros(1, dtype=np.int64)
    by_levels: dict[int, list[int]] = {}
    for p, (_, levels) in enumerate(others):
        by_levels.setdefault(max(2, levels), []).append(p)
    # Levels that a variable does not have would change its sums: none is filled up with them.
    for width, alike in sorted(by_levels.items()):
        for part in _batches([problems[p] for p in alike], width):
            batch = [alike[k] for k in part]
            N = []
            for p in batch:
                strata = problems[p]
                joint = strata.joint * width + others[p][0][strata.rows]
                counts = np.bincount(joint, minlength=strata.counts.size * width)
                N.append(counts.reshape(*strata.counts.shape, width)[:, :, 1:])
            rows = np.concatenate([problems[p].counts for p in batch])  # (K, L)
            first = np.cumsum([0, *(len(counts) for counts in N[:-1])])
            tables = _Tables(rows, np.concatenate(N), start, first)
            G[batch] = tables.g()
            mean[batch], variance[batch] = tables.null_moments(degrees, [rngs[p] for p in batch])
    return GTest(*(values[:, 0] for values in _judge(G, mean, variance)))


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


def _judge(G: Floats, mean: Floats, variance: Floats) -> GTest:
    """Compare G with a multiple of a chi-square variable that has this mean and variance."""
    G[G < 1e3 * _DUST] = 0.0  # sums of larger numbers
    df, p_value = np.zeros(G.shape), np.ones(G.shape)
    told = (mean > _DUST) & (variance > _CERTAIN * mean**2)
    mean, variance = mean[told], variance[told]
    df[told] = 2.0 * mean**2 / variance
    p = gammaincc(mean**2 / variance, G[told] * mean / variance)
    p_value[told] = np.where(G[told] <= mean, np.maximum(p, _NO_EVIDENCE), p)
    return GTest(G, df, p_value)


class _Tables:
    """Tables of targets with L levels against a block of columns, in the strata of problems."""

    def __init__(self, rows: Integers, N: Integers, starts: Integers, first: Integers) -> None:
        self.rows = rows  # (K, L)
        self.n = rows.sum(axis=1)  # (K,)
        self.first = first  # stratum of each problem
        self.starts = starts  # (d,) first indicator of each column
        self.width = np.diff(np.append(starts, N.shape[2]))  # (d,) indicators of each column
        self.N = N  # (K, L, Q) levels 1, 2, ... of the columns
        self.N0 = rows[:, :, None] - self._by_column(N)  # (K, L, d) level 0
        self.c = N.sum(axis=1)  # (K, Q)
        self.c0 = self.N0.sum(axis=1)  # (K, d)

    def _by_column(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Sum over the levels of each column, which are on the last axis."""
        return _sum_from(values, self.starts)

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

    def null_moments(self, degrees: Degrees, rngs: Sequence[Any]) -> tuple[Floats, Floats]:
        """Give the mean and variance of G if there is no dependence, one row for each problem.

        But for "moments" the variance is that of a chi-square variable, twice the mean.
        """
        if degrees.kind in ("mi", "moments"):
            mean, variance = (self._by_problem(part) for part in self._exact())
            return mean, variance if degrees.kind == "moments" else 2.0 * mean
        if degrees.kind == "g":
            mean = self._by_problem(self._free_cells())
        else:
            mean = self._drawn(degrees.n_tables, rngs)
        return mean, 2.0 * mean

    def _exact(self) -> tuple[Floats, Floats]:
        """Give E[G] and var(G) by stratum; columns with the same count there share the work.

        The variance is exact in 2 x 2 tables; larger ones get that of a chi-square variable. Each
        column is taken by itself: what it gets does not depend on the others.
        """
        small = self.width == (1 if self.rows.shape[1] == 2 else 0)  # (d,) 2 x 2 tables
        if small.all():
            return self._exact_small(self.c)
        mean = np.empty(self.c0.shape)
        variance = np.empty(self.c0.shape)
        if small.any():
            mean[:, small], variance[:, small] = self._exact_small(self.c[:, self.starts[small]])
        mean[:, ~small] = self._mean_large(~small)
        variance[:, ~small] = 2.0 * mean[:, ~small]
        return mean, variance

    def _exact_small(self, counts: Integers) -> tuple[Floats, Floats]:
        """Give E[G] and var(G) of 2 x 2 tables from the counts of level 1, (K, columns)."""
        at, where, z, c = self._distinct(counts)
        share = np.zeros((2, int(where[-1]) + 1))
        share[0, where], share[1, where] = moments_2x2(self.n[z], self.rows[z, 1], c)
        return share[0][at], share[1][at]

    def _mean_large(self, chosen: npt.NDArray[np.bool_]) -> Floats:
        """Give E[G] of the tables of some columns."""
        width = self.width[chosen]
        counts = np.hstack([self.c[:, np.repeat(chosen, self.width)], self.c0[:, chosen]])
        at, where, z, c = self._distinct(counts)
        share = np.zeros(int(where[-1]) + 1)
        for level in range(self.rows.shape[1]):
            share[where] += expected_cell(self.n[z], self.rows[z, level], c)
        shares, last = share[at], int(width.sum())
        starts = np.cumsum(width) - width
        return np.asarray(_sum_from(shares[:, :last], starts) + shares[:, last:])

    def _distinct(self, counts: Integers) -> tuple[Integers, Integers, Integers, Integers]:
        """Number the pairs of a stratum and a count.

        Given are the number of each element of `counts`, (K, columns); and ascending, without
        repetition, the numbers that occur, with their strata and counts.
        """
        offset = np.concatenate([[0], np.cumsum(self.n + 1)])
        at = offset[:-1, None] + counts
        present = np.zeros(offset[-1], dtype=bool)
        present[at] = True
        where = np.flatnonzero(present)
        z = np.searchsorted(offset, where, side="right") - 1
        return at, where, z, where - offset[z]

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
                degrees[p, j] = mean_random_g(self.rows[strata], c, n_tables, rng).sum()
        return degrees


def _sum_from(values: npt.NDArray[Any], starts: Integers) -> npt.NDArray[Any]:
    """Sum over parts of the last axis, given where each one starts."""
    if values.shape[-1] == len(starts):
        return values
    return np.asarray(np.add.reduceat(values, starts, axis=-1))
