r"""The Markov boundary of a label in the features: IAMB on discrete data.

The Markov boundary of y is the least set M of features such that y is independent of all others
given M. IAMB (Tsamardinos, Aliferis and Statnikov, 2003) looks for it greedily:

- grow: test y against every feature outside M given M, take in the one with the smallest p-value,
  and go on while that p-value is at most alpha;
- shrink: test y against each member given the other members, put out the one with the largest
  p-value, and go on while that p-value exceeds alpha.

References
----------
Tsamardinos, I., Aliferis, C. F. and Statnikov, A. (2003). Algorithms for Large Scale Markov Blanket
Discovery. FLAIRS 2003.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array

from fgfm._validation import check_same_rows, label_sets
from fgfm.factors._counts import Columns, encode, make_strata, refine
from fgfm.factors.independence import Degrees, g_test_columns, g_test_each

__all__ = ["check_alpha", "iamb", "markov_boundary"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_TIE = 1e-9  # relative difference that may be rounding


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
    degrees = Degrees.checked(df, n_tables)
    alpha = check_alpha(alpha)
    X = check_array(X, accept_sparse="csc", dtype=None)
    target = label_sets(y, "y", allow_flat=True)  # (n, 1)
    if target.shape[1] != 1:
        raise ValueError(f"y has shape {target.shape}: it must have 1 dimension (row)")
    check_same_rows([X.shape[0], target.shape[0]], ["X", "y"])
    if not isinstance(target, np.ndarray):
        target = target.toarray()
    rng = np.random.default_rng(random_state)
    return iamb(encode(X), [target[:, 0].astype(np.int64)], alpha, degrees, [rng])[0]


def check_alpha(alpha: Any) -> float:
    """Give the level of a test as a float."""
    if isinstance(alpha, (bool, np.bool_)) or not isinstance(alpha, numbers.Real):
        raise TypeError(f"alpha is {alpha!r}: it must be a number in (0, 1)")
    if not 0.0 < float(alpha) < 1.0:
        raise ValueError(f"alpha is {alpha!r}: it must be a number in (0, 1)")
    return float(alpha)


def iamb(
    columns: Columns,
    targets: Sequence[Integers],
    alpha: float,
    degrees: Degrees,
    rngs: Sequence[Any],
) -> list[Integers]:
    """Find the Markov boundaries of 0/1 targets, all in step, ascending.

    Targets do not influence each other; in step, their tables are computed with together.
    """
    grown = grow(columns, targets, alpha, degrees, rngs)
    return [
        np.sort(shrink(columns, target, members, alpha, degrees, rng))
        for target, members, rng in zip(targets, grown, rngs, strict=True)
    ]


def grow(
    columns: Columns,
    targets: Sequence[Integers],
    alpha: float,
    degrees: Degrees,
    rngs: Sequence[Any],
) -> list[list[int]]:
    """Take in the most strongly associated column, again and again; in order of inclusion."""
    members: list[list[int]] = [[] for _ in targets]
    strata = [(np.zeros(len(target), dtype=np.int64), 1) for target in targets]
    active = list(range(len(targets)))
    while active:
        problems = [make_strata(targets[t], 2, *strata[t]) for t in active]
        result = g_test_columns(problems, columns, degrees, [rngs[t] for t in active])
        growing = []
        for row, t in enumerate(active):
            G, p = result.statistic[row], result.p_value[row]
            p[members[t]] = np.inf
            best = strongest(G, p)
            if p[best] <= alpha:
                members[t].append(best)
                strata[t] = refine(*strata[t], columns.codes(best), int(columns.levels[best]))
                growing.append(t)
        active = growing
    return members


def strongest(G: Floats, p: Floats) -> int:
    """Give the column with the smallest p-value, then the largest G, then the lowest index.

    What differs by rounding only is equal: else the order of the strata would decide.
    """
    tied = np.flatnonzero(p <= p.min() * (1.0 + _TIE))
    return int(tied[np.argmax(G[tied] >= G[tied].max() * (1.0 - _TIE))])


def shrink(
    columns: Columns,
    target: Integers,
    members: Sequence[int],
    alpha: float,
    degrees: Degrees,
    rng: Any,
) -> Integers:
    """Put out the member with the largest p-value given the others, while it exceeds alpha.

    Of those with the same p-value, the one that came in last goes.
    """
    kept = list(members)
    codes = {j: (columns.codes(j), int(columns.levels[j])) for j in kept}
    while len(kept) > 1:  # a lone member was tested given none when it came in
        strata = _leave_one_out([codes[j] for j in kept], len(target))
        problems = [make_strata(target, 2, *others) for others in strata]
        result = g_test_each(problems, [codes[j] for j in kept], degrees, [rng] * len(kept))
        p = result.p_value
        worst = len(kept) - 1 - int(np.argmax(p[::-1] >= p.max() * (1.0 - _TIE)))
        if p[worst] <= alpha:
            break
        del kept[worst]
    return np.array(kept, dtype=np.int64)


def _leave_one_out(columns: Sequence[tuple[Integers, int]], n: int) -> list[tuple[Integers, int]]:
    """Give the strata of all columns but one, for each one."""
    nothing = (np.zeros(n, dtype=np.int64), 1)
    before, after = [nothing], [nothing]
    for column in columns[:-1]:
        before.append(refine(*before[-1], *column))
    for column in columns[:0:-1]:
        after.append(refine(*after[-1], *column))
    return [refine(*b, *a) for b, a in zip(before, after[::-1], strict=True)]
