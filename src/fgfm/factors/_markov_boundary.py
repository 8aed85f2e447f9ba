r"""Markov boundaries of labels in discrete features, by IAMB.

The Markov boundary of y is the smallest set M of features such that y is independent of all other
features given M. IAMB (Tsamardinos, Aliferis and Statnikov, 2003) searches for it greedily:

- grow: test y against every feature outside M given M, add the one with the smallest p-value,
  and repeat while that p-value is at most alpha;
- shrink: test y against each member given the other members, remove the one with the largest
  p-value, and repeat while that p-value exceeds alpha.

References
----------
Tsamardinos, I., Aliferis, C. F. and Statnikov, A. (2003). Algorithms for Large Scale Markov
Blanket Discovery. FLAIRS 2003.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array

from fgfm._utils.validation import check_choice, check_fraction
from fgfm.factors._contingency import Columns, encode, make_strata, refine
from fgfm.factors._g_test import KINDS, g_test_columns, g_test_each
from fgfm.factors._pairwise import check_labels

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_TIE = 1e-9  # relative differences up to this are taken for rounding


def markov_boundary(
    X: Any, y: Any, alpha: float = 0.01, *, df: str = "mi"
) -> npt.NDArray[np.int64]:
    r"""Find the features given which all other features are irrelevant to a label.

    This is the smallest set M with :math:`y \perp X \setminus M \mid M`, as found by IAMB with
    the G tests of `fgfm.factors.g_test`.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        Discrete features. Each distinct value of a column is a level.
    y : array-like of shape (n,)
        The label, 0 or 1.
    alpha : float, default=0.01
        A feature is added if its p-value is at most alpha.
    df : {"mi", "moments"}, default="mi"
        Degrees of freedom of the tests, as in `fgfm.factors.g_test`.

    Returns
    -------
    ndarray of int
        The columns of the boundary, ascending.

    Notes
    -----
    Among features with the same p-value the one with the largest G is added, then the first. All
    features are tested at once, from counts computed by one matrix product; strata in which y is
    constant are left out.

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
    check_choice(df, "df", KINDS)
    alpha = check_fraction(alpha, "alpha")
    X = check_array(X, accept_sparse="csc", dtype=None)
    target = check_labels(y, X.shape[0], "y")  # (n, 1)
    if target.shape[1] != 1:
        raise ValueError(f"y has shape {target.shape}: it must have 1 dimension (row)")
    return iamb(encode(X), [target[:, 0].astype(np.int64)], alpha, df)[0]


def iamb(columns: Columns, targets: Sequence[Integers], alpha: float, df: str) -> list[Integers]:
    """Find the Markov boundaries of several 0/1 targets, each ascending.

    The targets do not influence each other. They advance in step, so that each step of all of
    them is one batch of tests.
    """
    return shrink(columns, targets, grow(columns, targets, alpha, df), alpha, df)


def grow(columns: Columns, targets: Sequence[Integers], alpha: float, df: str) -> list[list[int]]:
    """Add the most strongly associated column, in this order, while p is at most alpha."""
    members: list[list[int]] = [[] for _ in targets]
    strata = [(np.zeros(len(target), dtype=np.int64), 1) for target in targets]
    active = list(range(len(targets)))
    while active:
        problems = [make_strata(targets[t], 2, *strata[t]) for t in active]
        result = g_test_columns(problems, columns, df)
        growing = []
        for row, t in enumerate(active):
            G, p = result.statistic[row], result.p_value[row]
            p[members[t]] = np.inf
            best = strongest(G, p)
            if p[best] <= alpha:
                members[t].append(best)
                strata[t] = refine(*strata[t], *columns.column(best))
                growing.append(t)
        active = growing
    return members


def strongest(G: Floats, p: Floats) -> int:
    """Return the column with the smallest p-value, then the largest G, then the lowest index.

    Values that differ by rounding only count as equal: otherwise the order of the strata, on
    which rounding depends, could change the result.
    """
    tied = np.flatnonzero(p <= p.min() * (1.0 + _TIE))
    return int(tied[np.argmax(G[tied] >= G[tied].max() * (1.0 - _TIE))])


def shrink(
    columns: Columns,
    targets: Sequence[Integers],
    members: Sequence[Sequence[int]],
    alpha: float,
    df: str,
) -> list[Integers]:
    """Remove the member with the largest p-value given the others while it exceeds alpha.

    Among members with the same p-value the one added last is removed. The result is sorted.
    """
    kept = [list(chosen) for chosen in members]
    codes = {j: columns.column(j) for j in {j for k in kept for j in k}}
    # A single member needs no test: it was tested given the empty set when it was added.
    active = [t for t, chosen in enumerate(kept) if len(chosen) > 1]
    while active:
        problems, others = [], []
        for t in active:
            mine = [codes[j] for j in kept[t]]
            strata = _leave_one_out(mine, len(targets[t]))
            problems += [make_strata(targets[t], 2, *rest) for rest in strata]
            others += mine
        p_values = g_test_each(problems, others, df).p_value
        shrinking = []
        for t in active:
            p, p_values = p_values[: len(kept[t])], p_values[len(kept[t]) :]
            weakest = len(p) - 1 - int(np.argmax(p[::-1] >= p.max() * (1.0 - _TIE)))
            if p[weakest] > alpha:
                del kept[t][weakest]
                if len(kept[t]) > 1:
                    shrinking.append(t)
        active = shrinking
    return [np.array(sorted(chosen), dtype=np.int64) for chosen in kept]


def _leave_one_out(columns: Sequence[tuple[Integers, int]], n: int) -> list[tuple[Integers, int]]:
    """Return, for each column, the strata of all other columns: prefixes times suffixes."""
    nothing = (np.zeros(n, dtype=np.int64), 1)
    before, after = [nothing], [nothing]
    for column in columns[:-1]:
        before.append(refine(*before[-1], *column))
    for column in columns[:0:-1]:
        after.append(refine(*after[-1], *column))
    return [refine(*b, *a) for b, a in zip(before, after[::-1], strict=True)]
