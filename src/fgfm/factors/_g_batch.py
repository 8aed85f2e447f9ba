"""G tests in batches: many targets within strata, against all columns or one column each.

A *problem* is a target within strata (`fgfm.factors._contingency.Strata`). The tables of several
problems are stacked along the axis of strata, so that NumPy loops over cells, not over tests.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import gammaincc

from fgfm._utils.validation import check_choice, check_count
from fgfm.factors._contingency import MAX_CELLS, Columns, Strata
from fgfm.factors._g_moments import expected_cell, moments_2x2, x_log_x
from fgfm.factors._random_tables import mean_random_g

__all__ = ["DegreesOfFreedom", "GTest", "g_test_columns", "g_test_each"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_KINDS = ("mi", "moments", "g", "permutation")
_CERTAIN = 1e-9  # relative variance below which all tables with these margins have the same G
_ROUNDING = 1e-12  # a mean below this is 0 up to rounding
_NO_EVIDENCE = float(gammaincc(0.5, 0.5))  # P(chi-square_1 > 1)


class DegreesOfFreedom(NamedTuple):
    """Kind of degrees of freedom, and the number of tables that "permutation" draws."""

    kind: str = "mi"
    n_tables: int = 100

    @classmethod
    def validate(cls, df: Any, n_tables: Any) -> DegreesOfFreedom:
        """Validate the parameters `df` and `n_tables` of a test.

        Parameters
        ----------
        df : object
            One of the four kinds.
        n_tables : object
            Positive integer.

        Returns
        -------
        DegreesOfFreedom
            Both of them.
        """
        check_choice(df, "df", _KINDS)
        return cls(df, check_count(n_tables, "n_tables", 1))


class GTest(NamedTuple):
    """Result of a G test, or of one test per column.

    Attributes
    ----------
    statistic : float or ndarray of shape (d,)
        G, which is 2 n times the empirical conditional mutual information in nats.
    df : float or ndarray of shape (d,)
        Degrees of freedom; 0 where every stratum is uninformative. For "moments" those of a
        chi-square variable that is also scaled.
    p_value : float or ndarray of shape (d,)
        The p-value; 1 where every stratum is uninformative.
    """

    statistic: Any
    df: Any
    p_value: Any


def g_test_columns(
    problems: Sequence[Strata], columns: Columns, df: DegreesOfFreedom, rngs: Sequence[Any]
) -> GTest:
    """Test the target of each problem against each column, given the strata of the problem.

    Parameters
    ----------
    problems : sequence of Strata
        Targets with the same number of levels, within strata.
    columns : Columns
        The d columns.
    df : DegreesOfFreedom
        Degrees of freedom.
    rngs : sequence of numpy.random.Generator or None
        One for each problem; used by "permutation" only.

    Returns
    -------
    GTest
        Arrays of shape (problems, d).
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
                df, [rngs[p] for p in batch]
            )
    return _compare(G, mean, variance)


def g_test_each(
    problems: Sequence[Strata],
    others: Sequence[tuple[Integers, int]],
    df: DegreesOfFreedom,
    rngs: Sequence[Any],
) -> GTest:
    """Test the target of each problem against one variable, its own.

    Parameters
    ----------
    problems : sequence of Strata
        Targets with the same number of levels, within strata.
    others : sequence of (codes, levels)
        For each problem the other variable, (n,), and its number of levels.
    df : DegreesOfFreedom
        Degrees of freedom.
    rngs : sequence of numpy.random.Generator or None
        One for each problem; used by "permutation" only.

    Returns
    -------
    GTest
        Arrays of shape (problems,).
    """
    G, mean, variance = (np.zeros((len(problems), 1)) for _ in range(3))
    start = np.zeros(1, dtype=np.int64)
    by_levels: dict[int, list[int]] = {}
    for p, (_, levels) in enumerate(others):
        by_levels.setdefault(max(2, levels), []).append(p)
    # Variables are grouped by their number of levels instead of padded: padding would change the
    # order of summation, and with it the last bits.
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
            mean[batch], variance[batch] = tables.null_moments(df, [rngs[p] for p in batch])
    return GTest(*(values[:, 0] for values in _compare(G, mean, variance)))


def _batches(problems: Sequence[Strata], width: int) -> Iterator[list[int]]:
    """Yield groups of problems whose tables have at most `MAX_CELLS` cells together.

    Problems without an informative stratum are left out.
    """
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


def _compare(G: Floats, mean: Floats, variance: Floats) -> GTest:
    """Compare G with a scaled chi-square variable of the same mean and variance.

    c chi-square_k has mean c k and variance 2 c^2 k, so that k = 2 mean^2 / variance and
    c = variance / (2 mean); P(c chi-square_k > G) = Q(k / 2, G / 2c) with the regularised upper
    incomplete gamma function Q.
    """
    G[G < 1e3 * _ROUNDING] = 0.0  # a difference of larger sums
    df, p_value = np.zeros(G.shape), np.ones(G.shape)
    informative = (mean > _ROUNDING) & (variance > _CERTAIN * mean**2)
    mean, variance = mean[informative], variance[informative]
    df[informative] = 2.0 * mean**2 / variance
    p = gammaincc(mean**2 / variance, G[informative] * mean / variance)
    # With k < 1 the chi-square variable exceeds even its mean rarely: a G up to its mean is
    # never evidence (see the notes of g_test).
    p_value[informative] = np.where(G[informative] <= mean, np.maximum(p, _NO_EVIDENCE), p)
    return GTest(G, df, p_value)


class _Tables:
    """Contingency tables of targets with L levels against a block of d columns, in K strata."""

    def __init__(self, rows: Integers, N: Integers, starts: Integers, first: Integers) -> None:
        self.rows = rows  # (K, L)
        self.n = rows.sum(axis=1)  # (K,)
        self.first = first  # first stratum of each problem
        self.starts = starts  # (d,) first indicator of each column
        self.width = np.diff(np.append(starts, N.shape[2]))  # (d,) indicators of each column
        self.N = N  # (K, L, Q) levels 1, 2, ... of the columns
        self.N0 = rows[:, :, None] - self._by_column(N)  # (K, L, d) level 0
        self.c = N.sum(axis=1)  # (K, Q)
        self.c0 = self.N0.sum(axis=1)  # (K, d)

    def _by_column(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Sum over the levels of each column, on the last axis."""
        return _sum_from(values, self.starts)

    def _by_problem(self, values: npt.NDArray[Any]) -> Floats:
        """Sum over the strata of each problem, on the first axis."""
        return np.add.reduceat(values, self.first, axis=0).astype(np.float64)

    def g(self) -> Floats:
        """Compute G = 2 (sum N log N - sum rows log rows - sum columns log columns + n log n)."""
        products = x_log_x(int(self.n.max()))
        cells = self._by_column(products[self.N].sum(axis=1)) + products[self.N0].sum(axis=1)
        margins = self._by_column(products[self.c]) + products[self.c0]
        fixed = products[self.n] - products[self.rows].sum(axis=1)
        return 2.0 * self._by_problem(cells - margins + fixed[:, None])  # (problems, d)

    def null_moments(self, df: DegreesOfFreedom, rngs: Sequence[Any]) -> tuple[Floats, Floats]:
        """Return mean and variance of G under independence, one row for each problem.

        Except for "moments" the variance is that of a chi-square variable, twice the mean.
        """
        if df.kind in ("mi", "moments"):
            mean, variance = (self._by_problem(part) for part in self._exact())
            return mean, variance if df.kind == "moments" else 2.0 * mean
        if df.kind == "g":
            mean = self._by_problem(self._free_cells())
        else:
            mean = self._mean_of_random_tables(df.n_tables, rngs)
        return mean, 2.0 * mean

    def _exact(self) -> tuple[Floats, Floats]:
        """Return E[G] and var(G) by stratum and column, (K, d).

        The variance is exact for 2 x 2 tables; for larger ones it is that of a chi-square
        variable. Each column is computed by itself: the result does not depend on the others.
        """
        small = self.width == (1 if self.rows.shape[1] == 2 else 0)  # (d,) 2 x 2 tables
        if small.all():
            return self._exact_2x2(self.c)
        mean = np.empty(self.c0.shape)
        variance = np.empty(self.c0.shape)
        if small.any():
            mean[:, small], variance[:, small] = self._exact_2x2(self.c[:, self.starts[small]])
        mean[:, ~small] = self._mean_large(~small)
        variance[:, ~small] = 2.0 * mean[:, ~small]
        return mean, variance

    def _exact_2x2(self, counts: Integers) -> tuple[Floats, Floats]:
        """Return E[G] and var(G) of 2 x 2 tables from the counts of level 1, (K, columns)."""
        at, where, z, c = self._distinct(counts)
        moments = np.zeros((2, int(where[-1]) + 1))
        moments[0, where], moments[1, where] = moments_2x2(self.n[z], self.rows[z, 1], c)
        return moments[0][at], moments[1][at]

    def _mean_large(self, chosen: npt.NDArray[np.bool_]) -> Floats:
        """Return E[G] of the tables of some columns: the sum of the contributions of cells."""
        width = self.width[chosen]
        counts = np.hstack([self.c[:, np.repeat(chosen, self.width)], self.c0[:, chosen]])
        at, where, z, c = self._distinct(counts)
        contribution = np.zeros(int(where[-1]) + 1)
        for level in range(self.rows.shape[1]):
            contribution[where] += expected_cell(self.n[z], self.rows[z, level], c)
        shares, last = contribution[at], int(width.sum())
        starts = np.cumsum(width) - width
        return np.asarray(_sum_from(shares[:, :last], starts) + shares[:, last:])

    def _distinct(self, counts: Integers) -> tuple[Integers, Integers, Integers, Integers]:
        """Find the distinct pairs of a stratum and a count: E[G] is computed once for each.

        Returns
        -------
        at : ndarray of shape (K, columns)
            The number of the pair of each element of `counts`.
        where, z, c : ndarray of shape (pairs,)
            The numbers that occur, ascending, with their strata and counts.
        """
        offset = np.concatenate([[0], np.cumsum(self.n + 1)])
        at = offset[:-1, None] + counts
        present = np.zeros(offset[-1], dtype=bool)
        present[at] = True
        where = np.flatnonzero(present)
        z = np.searchsorted(offset, where, side="right") - 1
        return at, where, z, where - offset[z]

    def _free_cells(self) -> Integers:
        """Return (rows - 1) (columns - 1) by stratum, counting non-empty rows and columns."""
        rows = np.count_nonzero(self.rows, axis=1) - 1  # (K,)
        columns = self._by_column((self.c > 0).astype(np.int64)) + (self.c0 > 0) - 1
        return np.asarray(rows[:, None] * columns)

    def _mean_of_random_tables(self, n_tables: int, rngs: Sequence[Any]) -> Floats:
        """Return the mean G of random tables, each problem with its own generator."""
        ends = np.append(self.starts[1:], self.c.shape[1])
        last = np.append(self.first[1:], len(self.n))
        mean = np.zeros((len(self.first), len(self.starts)))
        for p, rng in enumerate(rngs):
            strata = slice(self.first[p], last[p])
            for j, (start, stop) in enumerate(zip(self.starts, ends, strict=True)):
                c = np.column_stack([self.c0[strata, j], self.c[strata, start:stop]])
                mean[p, j] = mean_random_g(self.rows[strata], c, n_tables, rng).sum()
        return mean


def _sum_from(values: npt.NDArray[Any], starts: Integers) -> npt.NDArray[Any]:
    """Sum over segments of the last axis, given the start of each."""
    if values.shape[-1] == len(starts):
        return values
    return np.asarray(np.add.reduceat(values, starts, axis=-1))
