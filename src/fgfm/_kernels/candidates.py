"""Labels that can be in an optimal set, and a first guess of its size, from marginals alone."""

from __future__ import annotations

import numpy as np

from fgfm._kernels._compile import entry_point
from fgfm._kernels.ordering import sort_descending

__all__ = ["rank_candidates"]


@entry_point
def rank_candidates(p, expected_ys, s_max, beta2, floor, order):
    """Order the labels that can be in an optimal set by marginal, and guess the size of that set.

    With M and W the sums of p_i and of E[y_i s] over a set of size k, Jensen's inequality gives

        value >= (1 + beta^2) M / (beta^2 W / M + k).

    The guess is the size at which this bound is largest for the labels in descending order of p.
    Conversely, no optimal set of value V contains a label with p_i (beta^2 s_max + 1) < V, because
    removing it would be better (docs/design.md, "Which set sizes are evaluated").

    Parameters
    ----------
    p, expected_ys : (m,) arrays
        p_i and E[y_i s].
    s_max : float
        The largest cardinality.
    beta2 : float
        Beta squared.
    floor : float
        A lower bound on the value of the optimal set.
    order : (m,) int64 array
        Filled with the indices of the candidates.

    Returns
    -------
    size, guess, floor
        Number of candidates, guessed set size, and the best lower bound found.
    """
    m = len(p)
    top = 0
    for i in range(m):
        if p[i] > p[top]:
            top = i
    if p[top] == 0.0:
        return 0, 0, floor
    bound = (1.0 + beta2) * p[top] / (beta2 * expected_ys[top] / p[top] + 1.0)  # of {top}
    floor = max(floor, bound)
    min_p = floor / (beta2 * s_max + 1.0) * (1.0 - 1e-9)  # lowered against rounding
    sorted_p = np.empty(m)
    size = 0
    for i in range(m):
        sorted_p[size] = p[i]
        order[size] = i
        size += p[i] >= min_p
    spare_index = np.empty(size, dtype=np.int64)
    count = np.empty(size + 2, dtype=np.int64)
    sort_descending(sorted_p[:size], order[:size], np.empty(size), spare_index, count)
    M = 0.0
    W = 0.0
    guess = 1
    best_bound = 0.0
    for j in range(size):
        M += sorted_p[j]
        W += expected_ys[order[j]]
        bound = (1.0 + beta2) * M * (M / (beta2 * W + (j + 1) * M))
        if bound > best_bound:
            best_bound = bound
            guess = j + 1
    floor = max(floor, best_bound)
    min_p = floor / (beta2 * s_max + 1.0) * (1.0 - 1e-9)
    while size > guess and sorted_p[size - 1] < min_p:
        size -= 1
    return size, guess, floor
