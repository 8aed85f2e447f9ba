"""IAMB for many targets in step: grow by the strongest association, then shrink."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm.factors._counts import Columns, make_strata, refine
from fgfm.factors._g import Degrees, g_test_columns, g_test_each

__all__ = ["check_alpha", "grow", "iamb", "shrink", "strongest"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_TIE = 1e-9  # relative difference that may be rounding


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
    return shrink(columns, targets, grown, alpha, degrees, rngs)


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
    targets: Sequence[Integers],
    members: Sequence[Sequence[int]],
    alpha: float,
    degrees: Degrees,
    rngs: Sequence[Any],
) -> list[Integers]:
    """Put out the member with the largest p-value given the others, while it exceeds alpha.

    Of those with the same p-value, the one that came in last goes. What is left is sorted.
    """
    kept = [list(chosen) for chosen in members]
    codes = {j: (columns.codes(j), int(columns.levels[j])) for j in {j for k in kept for j in k}}
    # A lone member was tested given none when it came in.
    active = [t for t, chosen in enumerate(kept) if len(chosen) > 1]
    while active:
        problems, others = [], []
        for t in active:
            mine = [codes[j] for j in kept[t]]
            strata = _leave_one_out(mine, len(targets[t]))
            problems += [make_strata(targets[t], 2, *rest) for rest in strata]
            others += mine
        owner = [t for t in active for _ in kept[t]]
        p_values = g_test_each(problems, others, degrees, [rngs[t] for t in owner]).p_value
        shrinking = []
        for t in active:
            p, p_values = p_values[: len(kept[t])], p_values[len(kept[t]) :]
            worst = len(p) - 1 - int(np.argmax(p[::-1] >= p.max() * (1.0 - _TIE)))
            if p[worst] > alpha:
                del kept[t][worst]
                if len(kept[t]) > 1:
                    shrinking.append(t)
        active = shrinking
    return [np.array(sorted(chosen), dtype=np.int64) for chosen in kept]


def _leave_one_out(columns: Sequence[tuple[Integers, int]], n: int) -> list[tuple[Integers, int]]:
    """Give the strata of all columns but one, for each one."""
    nothing = (np.zeros(n, dtype=np.int64), 1)
    before, after = [nothing], [nothing]
    for column in columns[:-1]:
        before.append(refine(*before[-1], *column))
    for column in columns[:0:-1]:
        after.append(refine(*after[-1], *column))
    return [refine(*b, *a) for b, a in zip(before, after[::-1], strict=True)]
