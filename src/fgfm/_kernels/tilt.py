"""Inclusion probabilities tilted to a given sum.

Given logits u_i and a cardinality s, find the c for which q_i = sigmoid(u_i + c) sum to s. With
the labels sorted downwards, that is the balance of what the first s lack and the others have,

    A(c) = sum_{i <= s} (1 - q_i)   =   B(c) = sum_{i > s} q_i.

We solve g(c) = log B(c) - log A(c) = 0 rather than sum_i q_i - s = 0: both sums have positive
terms only, so q_i and 1 - q_i keep their relative accuracy however small they are, and g is almost
a straight line. Its slope is a weighted mean of 1 - q_i over the last labels (at least 1 - q_s)
plus one of q_i over the first (at least q_s), hence between 1 and 2 everywhere, and Newton's
iteration takes a handful of steps wherever it starts.
"""

from __future__ import annotations

import math

import numpy as np

from fgfm._kernels._compile import compiled, entry_point

__all__ = ["include", "tilt"]

LAST_STEP = 1e-8  # quadratic convergence: what is left after a step this short is rounding
_STEPS = 200  # bisection alone would end in fewer


@compiled
def _solve(u, start, stop, s, last_step, q):
    """Set ``q[start:stop]`` to sigmoid(u + c) with sum s, for u finite and sorted downwards.

    Needs ``0 < s < stop - start``. A step of c no longer than `last_step` is the last one.
    """
    split = start + s
    # c is counted from here, where it is small: u + c then loses no digits to a large c
    middle = 0.5 * u[split - 1] + 0.5 * u[split]
    even = math.log(s / (stop - start - s))  # the logit that all labels would share
    low = even - (u[start] - middle)  # no q exceeds s / m here, so that they sum to s at most
    high = even - (u[stop - 1] - middle)
    c = min(max(0.0, low), high)
    for _ in range(_STEPS):
        lack = 0.0
        lack_slope = 0.0
        for i in range(start, split):
            x = u[i] - middle + c
            e = math.exp(-abs(x))
            small = e / (1.0 + e)
            large = 1.0 / (1.0 + e)
            lack += small if x >= 0.0 else large
            lack_slope += small * large
        excess = 0.0
        excess_slope = 0.0
        for i in range(split, stop):
            x = u[i] - middle + c
            e = math.exp(-abs(x))
            small = e / (1.0 + e)
            large = 1.0 / (1.0 + e)
            excess += large if x >= 0.0 else small
            excess_slope += small * large
        if lack == 0.0 and excess == 0.0:
            break
        if lack == 0.0 or excess == 0.0:  # underflow: the side is known, the distance is not
            if lack == 0.0:
                high = c
            else:
                low = c
            c = 0.5 * (low + high)
            continue
        g = math.log(excess / lack)
        if g > 0.0:
            high = c
        else:
            low = c
        step = -g / (excess_slope / excess + lack_slope / lack)
        if abs(step) <= last_step:
            c += step
            break
        c += step
        if not low < c < high:
            c = 0.5 * (low + high)
    for i in range(start, stop):
        x = u[i] - middle + c
        e = math.exp(-abs(x))
        q[i] = 1.0 / (1.0 + e) if x >= 0.0 else e / (1.0 + e)


@compiled
def include(u, m, s, last_step, q):
    """Set ``q[:m]`` to the limit of sigmoid(u + c) with sum s, for u sorted downwards.

    The sum is s as nearly as a last step of c no longer than `last_step` makes it.

    Infinite logits are certain labels (+) and impossible ones (-). The limit of ever larger finite
    ones is lexicographic: certain labels come first, impossible ones last, equal ones share.
    """
    certain = 0
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

    ``logits`` is (n, m, S), or (n, m, 1) where they do not depend on s; ``d`` is (n, S + 1), and
    ``P`` is (n, m, S). Where ``d[r, s]`` is 0 nothing is solved.
    """
    n, m, cardinalities = P.shape
    shared = logits.shape[2] == 1
    u = np.empty(m)
    label = np.arange(m)
    q = np.empty(m)
    for r in range(n):
        is_sorted = False
        for s in range(1, cardinalities + 1):
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
