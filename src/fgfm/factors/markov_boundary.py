r"""The Markov boundary of a label in the features: IAMB on discrete data.

The Markov boundary of y is the least set M of features such that y is independent of all others
given M. IAMB (Tsamardinos, Aliferis and Statnikov, 2003) looks for it greedily:

- grow: test y against every feature outside M given M, take in the one with the smallest p-value,
  and go on while that p-value is at most alpha;
- shrink: test y against each member given the other members, put out those whose p-value exceeds
  alpha, and go on until none is put out.

References
----------
Tsamardinos, I., Aliferis, C. F. and Statnikov, A. (2003). Algorithms for Large Scale Markov Blanket
Discovery. FLAIRS 2003.
"""

from __future__ import annotations

import numbers
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array

from fgfm._validation import check_same_rows, label_sets
from fgfm.factors._counts import Columns, combine, encode, make_strata, refine
from fgfm.factors.independence import GTest, check_degrees, g_test_columns

__all__ = ["Search", "check_alpha", "iamb", "markov_boundary"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_TIE = 1e-9  # relative difference that may be rounding


class Search(NamedTuple):
    """How boundaries are searched for: the level, and the degrees of freedom of the tests."""

    alpha: float = 0.01
    df: str = "mi"
    n_tables: int = 100

    def test(
        self,
        target: Integers,
        strata: tuple[Integers, int],
        columns: Columns,
        rng: np.random.Generator | None = None,
    ) -> GTest:
        """Test a 0/1 target against each column within strata."""
        return g_test_columns(
            make_strata(target, 2, *strata), columns, self.df, self.n_tables, rng
        )


def markov_boundary(
    X: Any,
    y: Any,
    alpha: float = 0.01,
    *,
    df: str = "mi",
    n_tables: int = 100,
    random_state: Any = None,
) -> Integers:
    r"""Find the features that make all others irrelevant to a label.

    That is the least set M with :math:`y \perp X \setminus M \mid M`, looked for by IAMB with the
    G tests of `fgfm.factors.g_test`.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        Discrete features. Each distinct value of a column is a level.
    y : array-like of shape (n,)
        The label, 0 or 1.
    alpha : float, default=0.01
        A feature is taken in if its p-value is at most alpha.
    df : {"mi", "g", "permutation"}, default="mi"
        Degrees of freedom of the tests.
    n_tables : int, default=100
        Number of tables that "permutation" draws.
    random_state : int, sequence of int or None, default=None
        Seed of "permutation".

    Returns
    -------
    ndarray of int
        The columns of the boundary, ascending.

    Notes
    -----
    Of features with the same p-value the one with the larger G is taken, then the first. All
    features are tested at once, from counts that one matrix product gives; strata in which y does
    not vary are left out of it.

    Examples
    --------
    >>> import numpy as np
    >>> from fgfm.factors import markov_boundary
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (500, 6))
    >>> X[:, 5] = X[:, 1] ^ (rng.random(500) < 0.1)  # depends on y, but not given column 1
    >>> y = (X[:, 1] | X[:, 3]) ^ (rng.random(500) < 0.1)
    >>> markov_boundary(X, y)
    array([1, 3])
    """
    check_degrees(df, n_tables)
    search = Search(check_alpha(alpha), df, n_tables)
    X = check_array(X, accept_sparse="csc", dtype=None)
    target = label_sets(y, "y", allow_flat=True)  # (n, 1)
    if target.shape[1] != 1:
        raise ValueError(f"y has shape {target.shape}: it must have 1 dimension (row)")
    check_same_rows([X.shape[0], target.shape[0]], ["X", "y"])
    if not isinstance(target, np.ndarray):
        target = target.toarray()
    rng = np.random.default_rng(random_state)
    return iamb(encode(X), target[:, 0].astype(np.int64), search, rng)


def check_alpha(alpha: Any) -> float:
    """Give the level of a test as a float."""
    if isinstance(alpha, (bool, np.bool_)) or not isinstance(alpha, numbers.Real):
        raise TypeError(f"alpha is {alpha!r}: it must be a number in (0, 1)")
    if not 0.0 < float(alpha) < 1.0:
        raise ValueError(f"alpha is {alpha!r}: it must be a number in (0, 1)")
    return float(alpha)


def iamb(
    columns: Columns, target: Integers, search: Search, rng: np.random.Generator | None = None
) -> Integers:
    """Find the Markov boundary of a 0/1 target, by growing and shrinking."""
    grown = grow(columns, target, search, rng)
    return np.sort(shrink(columns, target, grown, search, rng))


def grow(
    columns: Columns, target: Integers, search: Search, rng: np.random.Generator | None = None
) -> Integers:
    """Take in the most strongly associated column, again and again; in order of inclusion."""
    members: list[int] = []
    strata = (np.zeros(len(target), dtype=np.int64), 1)
    while len(members) < len(columns.levels):
        result = search.test(target, strata, columns, rng)
        result.p_value[members] = np.inf
        best = strongest(result)
        if not result.p_value[best] <= search.alpha:
            break
        members.append(best)
        strata = refine(*strata, columns.codes(best), int(columns.levels[best]))
    return np.array(members, dtype=np.int64)


def strongest(result: GTest) -> int:
    """Give the column with the smallest p-value, then the largest G, then the lowest index.

    What differs by rounding only is equal: else the order of the strata would decide.
    """
    p, G = result.p_value, result.statistic
    tied = np.flatnonzero(p <= p.min() * (1.0 + _TIE))
    return int(tied[np.argmax(G[tied] >= G[tied].max() * (1.0 - _TIE))])


def shrink(
    columns: Columns,
    target: Integers,
    members: Integers,
    search: Search,
    rng: np.random.Generator | None = None,
) -> Integers:
    """Put out members that the others make irrelevant, in order of inclusion, until none is."""
    kept = [int(j) for j in members]
    codes = {j: (columns.codes(j), int(columns.levels[j])) for j in kept}
    changed = len(kept) > 1  # a lone member was tested given none when it came in
    while changed:
        changed = False
        for j in list(kept):
            others = [codes[k] for k in kept if k != j]
            strata = combine(others, len(target))
            p = search.test(target, strata, take(columns, j), rng).p_value[0]
            if p > search.alpha:
                kept.remove(j)
                changed = True
    return np.array(kept, dtype=np.int64)


def take(columns: Columns, j: int) -> Columns:
    """Give one column by itself."""
    codes, levels = columns.codes(j), int(columns.levels[j])
    ones = codes[:, None] == np.arange(1, max(2, levels))
    return Columns(
        ones.astype(np.float32 if len(ones) < 1 << 24 else np.float64),
        np.array([0, ones.shape[1]]),
        columns.levels[j : j + 1],
    )
