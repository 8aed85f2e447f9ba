"""Independent labels given their number: docs/design.md, "Estimating P".

For labels with odds w_i, p(y | |y| = s) is the product of the odds of the labels in y, divided by
the sum of such products over all sets of s labels. A common factor of the odds cancels. It is
chosen so that the labels would have a mean of about s (`tilt`): s is then close to the mode, and
no number that matters underflows. With q the tilted probabilities, F_i(j) the probability of j
labels among the first i, and B_i(j) that of s - j labels among the others,

    p(y_i = 1 | s) = q_i sum_j F_{i-1}(j) B_i(j + 1) / F_m(s):

positive terms only, O(m s) for all labels and one s.
"""

from __future__ import annotations

import numpy as np

from fgfm._kernels._compile import compiled, entry_point
from fgfm._kernels.tilt import include

__all__ = ["condition"]

_LAST_STEP = 0.3  # of the common log odds: an error in them cancels, so that a rough tilt suffices


@compiled
def _condition_on_sum(q, start, stop, s, forward, backward):
    """Replace ``q[start:stop]``, of a sum near s, by the probabilities given that s are present.

    `forward` (m + 1, S + 1) and `backward` (S + 1,) are scratch space.
    """
    k = stop - start
    # forward[i, j] = F_i(j)
    forward[0, 0] = 1.0
    for j in range(1, s + 1):
        forward[0, j] = 0.0
    for i in range(k):
        p = q[start + i]
        forward[i + 1, 0] = forward[i, 0] * (1.0 - p)
        for j in range(1, min(s, i + 1) + 1):
            forward[i + 1, j] = forward[i, j] * (1.0 - p) + forward[i, j - 1] * p
        for j in range(min(s, i + 1) + 1, s + 1):
            forward[i + 1, j] = 0.0
    total = forward[k, s]  # F_m(s)
    # backward[j] = B_i(j), for i from the last label to the first
    for j in range(s):
        backward[j] = 0.0
    backward[s] = 1.0
    for i in range(k - 1, -1, -1):
        p = q[start + i]
        inside = 0.0
        for j in range(min(s, i + 1)):
            inside += forward[i, j] * backward[j + 1]
        q[start + i] = min(1.0, p * inside / total)
        for j in range(s):
            backward[j] = backward[j] * (1.0 - p) + backward[j + 1] * p
        backward[s] *= 1.0 - p


@entry_point
def condition(logits, d, P):
    """Fill ``P[r, i, s - 1] = d[r, s] p(y_i = 1 | s)`` for independent labels with these logits.

    ``logits`` is (n, m), ``d`` is (n, S + 1), and ``P`` is (n, m, S). Infinite logits are certain
    and impossible labels, treated as in `tilt`. Where ``d[r, s]`` is 0 nothing is computed.
    """
    n, m, S = P.shape
    u = np.empty(m)
    q = np.empty(m)
    forward = np.empty((m + 1, S + 1))
    backward = np.empty(S + 1)
    for r in range(n):
        label = np.argsort(-logits[r], kind="mergesort")
        for i in range(m):
            u[i] = logits[r, label[i]]
        certain = 0  # labels [0, certain) are certain, labels [possible, m) impossible
        while certain < m and u[certain] == np.inf:
            certain += 1
        possible = m
        while possible > certain and u[possible - 1] == -np.inf:
            possible -= 1
        for s in range(1, S + 1):
            if d[r, s] == 0.0:
                for i in range(m):
                    P[r, i, s - 1] = 0.0
                continue
            include(u, m, s, _LAST_STEP, q)
            if certain < s < possible:
                _condition_on_sum(q, certain, possible, s - certain, forward, backward)
            for i in range(m):
                P[r, label[i], s - 1] = d[r, s] * q[i]
