r"""The G test of conditional independence of two discrete variables.

Rows with the same values of Z form a stratum z. The statistic of X against Y given Z is

.. math::

    G = 2 n \, \hat I(X; Y \mid Z) = 2 \sum_z \sum_{xy} n_{xyz}
        \log \frac{n_{xyz} \, n_z}{n_{xz} \, n_{yz}},

and its p-value the probability that a chi-square variable exceeds it. There are two kinds of
degrees of freedom:

- "mi": E[G] over random tables with the margins of each stratum. The semiparametric test of the
  paper (Tsamardinos and Borboudakis, 2010) takes the mean G of 100 random tables; the expectation
  is exact, since G is a sum over cells and each cell is hypergeometric.
- "moments": the chi-square variable is also scaled to have the exact variance of G over the same
  tables. With small strata "mi" rejects too rarely, with rare values too often; this kind keeps
  its level.

Tests run in batches: a *problem* is a target within strata (`fgfm.factors._contingency.Strata`),
tested against all columns or one. The tables of several problems are stacked along the axis of
strata, so that NumPy loops over cells, not over tests.

References
----------
Tsamardinos, I. and Borboudakis, G. (2010). Permutation Testing Improves Bayesian Network Learning.
ECML PKDD 2010. doi:10.1007/978-3-642-15939-8_21
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import gammaincc

from fgfm._utils.validation import check_choice, check_same_rows
from fgfm.factors._contingency import MAX_CELLS, Columns, Strata, combine, make_strata
from fgfm.factors._g_moments import expected_cell, moments_2x2, x_log_x

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

KINDS = ("mi", "moments")  # of degrees of freedom
_CERTAIN = 1e-9  # relative variance below which all tables with these margins have the same G
_ROUNDING = 1e-12  # a mean below this is 0 up to rounding
_NO_EVIDENCE = float(gammaincc(0.5, 0.5))  # P(chi-square_1 > 1)


class GTest(NamedTuple):
    """Result of a G test, or of one test per column."""

    statistic: Any  # G, 2 n times the empirical conditional mutual information in nats
    df: Any  # degrees of freedom, 0 where every stratum is uninformative
    p_value: Any  # 1 where every stratum is uninformative


def g_test(x: Any, y: Any, given: Any = None, *, df: str = "mi") -> GTest:
    r"""Test whether x and y are independent given other variables, all of them discrete.

    .. math::

        G = 2 \sum_z \sum_{xy} n_{xyz} \log \frac{n_{xyz} \, n_z}{n_{xz} \, n_{yz}},
        \qquad p = P(\chi^2_{df} > G).

    Parameters
    ----------
    x, y : array-like of shape (n,)
        Values of the two variables, of any sortable type.
    given : array-like of shape (n,) or (n, k), optional
        Values of the conditioning variables.
    df : {"mi", "moments"}, default="mi"
        Degrees of freedom: "mi", the exact mean of G over tables with the margins of the strata;
        "moments", those of a scaled chi-square variable with the exact mean and variance.

    Returns
    -------
    GTest
        ``statistic``, G, which is 2 n times the empirical conditional mutual information in nats;
        ``df``, degrees of freedom, for "moments" those of a scaled chi-square variable;
        ``p_value``. Where every stratum is uninformative, df is 0 and the p-value 1.

    Notes
    -----
    If one of the values is rare, the exact mean is far below 1, and a chi-square variable with
    this mean would call even G = 0 unlikely. Since a G that does not exceed its mean is not
    evidence of dependence, its p-value is at least P(chi-square_1 > 1) = 0.317; with one degree of
    freedom or more this changes nothing. The variance for "moments" is exact if x and y have two
    levels each; otherwise it is twice the mean, as for "mi".

    Examples
    --------
    >>> from fgfm.factors import g_test
    >>> x = [0, 0, 0, 0, 1, 1, 1, 1] * 10
    >>> y = [0, 0, 0, 1, 0, 1, 1, 1] * 10
    >>> statistic, df, p_value = g_test(x, y)
    >>> round(statistic, 2), round(df, 3), round(p_value, 6)
    (20.93, 1.019, 5e-06)
    >>> g_test(x, y, given=y).p_value
    1.0
    """
    check_choice(df, "df", KINDS)
    x, y = _flat(x, "x"), _flat(y, "y")
    n = check_same_rows([len(x), len(y)], ["x", "y"])
    conditions: list[tuple[Integers, int]] = []
    if given is not None:
        Z = np.asarray(given)
        Z = Z[:, None] if Z.ndim == 1 else Z
        if Z.ndim != 2:
            raise ValueError(f"given has shape {Z.shape}: it must have 1 or 2 dimensions")
        check_same_rows([n, len(Z)], ["x", "given"])
        conditions = [_encode(Z[:, k]) for k in range(Z.shape[1])]
    target, levels = _encode(y)
    strata = make_strata(target, levels, *combine(conditions, n))
    result = g_test_each([strata], [_encode(x)], df)
    return GTest(*(float(value[0]) for value in result))


def _flat(values: Any, name: str) -> npt.NDArray[Any]:
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}: it must have 1 dimension (row)")
    return array


def _encode(values: npt.NDArray[Any]) -> tuple[Integers, int]:
    """Return the levels of a variable, numbered from 0, and their number."""
    levels, codes = np.unique(values, return_inverse=True)
    return codes.reshape(-1).astype(np.int64), max(1, len(levels))


def g_test_columns(problems: Sequence[Strata], columns: Columns, df: str) -> GTest:
    """Test the target of each problem against each column, given the strata of the problem.

    The targets have the same number of levels. Arrays of shape (problems, d).
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
            mean[batch, block], variance[batch, block] = tables.null_moments(df)
    return _compare(G, mean, variance)


def g_test_each(
    problems: Sequence[Strata], others: Sequence[tuple[Integers, int]], df: str
) -> GTest:
    """Test the target of each problem against one variable, its own.

    The targets have the same number of levels. Arrays of shape (problems,).
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
            mean[batch], variance[batch] = tables.null_moments(df)
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

    def null_moments(self, df: str) -> tuple[Floats, Floats]:
        """Return mean and variance of G under independence, one row for each problem.

        For "mi" the variance is that of a chi-square variable, twice the mean.
        """
        mean, variance = (self._by_problem(part) for part in self._exact())
        return mean, variance if df == "moments" else 2.0 * mean

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
        pair, numbers, z, c = self._distinct(counts)
        moments = np.zeros((2, int(numbers[-1]) + 1))
        moments[0, numbers], moments[1, numbers] = moments_2x2(self.n[z], self.rows[z, 1], c)
        return moments[0][pair], moments[1][pair]

    def _mean_large(self, chosen: npt.NDArray[np.bool_]) -> Floats:
        """Return E[G] of the tables of some columns: the sum of the contributions of cells."""
        width = self.width[chosen]
        counts = np.hstack([self.c[:, np.repeat(chosen, self.width)], self.c0[:, chosen]])
        pair, numbers, z, c = self._distinct(counts)
        contribution = np.zeros(int(numbers[-1]) + 1)
        for level in range(self.rows.shape[1]):
            contribution[numbers] += expected_cell(self.n[z], self.rows[z, level], c)
        shares, last = contribution[pair], int(width.sum())
        starts = np.cumsum(width) - width
        return np.asarray(_sum_from(shares[:, :last], starts) + shares[:, last:])

    def _distinct(self, counts: Integers) -> tuple[Integers, Integers, Integers, Integers]:
        """Find the distinct pairs of a stratum and a count: E[G] is computed once for each.

        Returns
        -------
        pair : ndarray of shape (K, columns)
            The number of the pair of each element of `counts`.
        numbers, z, c : ndarray of shape (pairs,)
            The numbers that occur, ascending, with their strata and counts.
        """
        offset = np.concatenate([[0], np.cumsum(self.n + 1)])
        pair = offset[:-1, None] + counts
        present = np.zeros(offset[-1], dtype=bool)
        present[pair] = True
        numbers = np.flatnonzero(present)
        z = np.searchsorted(offset, numbers, side="right") - 1
        return pair, numbers, z, numbers - offset[z]


def _sum_from(values: npt.NDArray[Any], starts: Integers) -> npt.NDArray[Any]:
    """Sum over segments of the last axis, given the start of each."""
    if values.shape[-1] == len(starts):
        return values
    return np.asarray(np.add.reduceat(values, starts, axis=-1))
