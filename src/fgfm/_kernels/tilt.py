"""Inclusion probabilities tilted to a given sum: docs/design.md, "Incoherent estimates".

Given logits u_i and a cardinality s, find the c for which q_i = sigmoid(u_i + c) sum to s. With
the labels in descending order of u, the first s lack as much as the others have,

    A(c) = sum_{i <= s} (1 - q_i)   =   B(c) = sum_{i > s} q_i.

The equation solved is g(c) = log B(c) - log A(c) = 0, not sum_i q_i - s = 0: both sums have
positive terms only, so that q_i and 1 - q_i keep their relative accuracy however small they are,
and g is almost linear. Its slope is a weighted mean of 1 - q_i over the last labels (at least 1 -
q_s) plus one of q_i over the first (at least q_s), hence between 1 and 2 everywhere, and Newton's
iteration takes a few steps from any start.
"""

from __future__ import annotations

import math

import numpy as np

from fgfm._kernels._compile import compiled, entry_point

__all__ = ["include", "tilt"]

LAST_STEP = 1e-8  # convergence is quadratic: after a step this short only rounding errors remain
_STEPS = 200  # more than bisection alone would take


@compiled
def _solve(u, start, stop, s, last_step, q):
    """Set ``q[start:stop]`` to sigmoid(u + c) with sum s, for finite u in descending order.

    Requires ``0 < s < stop - start``. The iteration ends after a step of c of at most `last_step`.
    """
    split = start + s
    # c is measured from the middle of the two logits at the split, where it is small: u + c then
    # loses no digits to a large c.
    middle = 0.5 * u[split - 1] + 0.5 * u[split]
    even = math.log(s / (stop - start - s))  # the logit of s / m, with m = stop - start
    low = even - (u[start] - middle)  # no q exceeds s / m here, so that they sum to at most s
    high = even - (u[stop - 1] - middle)
    c = min(max(0.0, low), high)
    for _ in range(_STEPS):
        deficit = 0.0  # A(c), and the sum of q (1 - q) over the first s labels
        deficit_slope = 0.0
        for i in range(start, split):
            x = u[i] - middle + c
            e = math.exp(-abs(x))
            small = e / (1.0 + e)
            large = 1.0 / (1.0 + e)
            deficit += small if x >= 0.0 else large
            deficit_slope += small * large
        excess = 0.0  # B(c), and the sum of q (1 - q) over the other labels
        excess_slope = 0.0
        for i in range(split, stop):
            x = u[i] - middle + c
            e = math.exp(-abs(x))
            small = e / (1.0 + e)
            large = 1.0 / (1.0 + e)
            excess += large if x >= 0.0 else small
            excess_slope += small * large
        if deficit == 0.0 and excess == 0.0:
            break
        if deficit == 0.0 or excess == 0.0:  # underflow: the sign of g is known, its size is not
            if deficit == 0.0:
                high = c
            else:
                low = c
            c = 0.5 * (low + high)
            continue
        g = math.log(excess / deficit)
        if g > 0.0:
            high = c
        else:
            low = c
        step = -g / (excess_slope / excess + deficit_slope / deficit)
        if abs(step) <= last_step:
            c += step
            break
        c += step
        if not low < c < high:  # rounding: bisect instead
            c = 0.5 * (low + high)
    for i in range(start, stop):
        x = u[i] - middle + c
        e = math.exp(-abs(x))
        q[i] = 1.0 / (1.0 + e) if x >= 0.0 else e / (1.0 + e)


@compiled
def include(u, m, s, last_step, q):
    """Set ``q[:m]`` to the limit of sigmoid(u + c) with sum s, for u in descending order.

    The sum is s as precisely as a last step of c of at most `last_step` makes it.

    Infinite logits are certain labels (+) and impossible ones (-). The limit of ever larger finite
    logits is lexicographic: certain labels come first, impossible ones last, equal ones share.
    """
    certain = 0  # labels [0, certain) are certain, labels [possible, m) impossible
    while certain < m and u[certain] == np.inf:
        certain += 1
    possible = m
    while possible > certain and u[possible - 1] == -np.inf:
        possible -= 1
    for i in range(certain):
        q[i] = min(1.0, s / certain)
    for i in range(possible, m):
        q[i] = max(0.0, (s - possible) / (m - possible))
    if certain < s < possible:
        _solve(u, certain, possible, s - certain, last_step, q)
    else:
        for i in range(certain, possible):
            q[i] = 1.0 if s >= possible else 0.0


@entry_point
def tilt(logits, d, P):
    """Fill ``P[r, i, s - 1] = d[r, s] q_i`` with q_i = sigmoid(logits[r, i, s - 1] + c), of sum s.

    ``logits`` is (n, m, S), or (n, m, 1) if they do not depend on s; ``d`` is (n, S + 1), and
    ``P`` is (n, m, S). Where ``d[r, s]`` is 0 nothing is solved.
    """
    n, m, S = P.shape
    shared = logits.shape[2] == 1
    u = np.empty(m)
    label = np.arange(m)
    q = np.empty(m)
    for r in range(n):
        is_sorted = False
        for s in range(1, S + 1):
            if d[r, s] == 0.0:
                for i in range(m):
                    P[r, i, s - 1] = 0.0
                continue
            if not (shared and is_sorted):
                column = logits[r, :, 0 if shared else s - 1]
                label = np.argsort(-column, kind="mergesort")
                for i in range(m):
                    u[i] = column[label[i]]
                is_sorted = True
            include(u, m, s, LAST_STEP, q)
            for i in range(m):
                P[r, label[i], s - 1] = d[r, s] * q[i]
