"""Bounds that select the ranks to evaluate, for independent labels.

With M_k the sum of the k largest marginals, E and v the mean and variance of s = |y|,

    M_k / (beta^2 (1 + E) + k)
        <= V_k / (1 + beta^2)
        <= M_k (1 + beta^4 v / ((beta^2 E + k) (beta^2 + k))) / (beta^2 E + k)

(docs/design.md, "Independent labels"). Where many labels are expected the two bounds are close,
and only a short window of ranks k can be optimal. Counting labels into buckets gives the bounds
without sorting; only the labels of the window are sorted.
"""

from __future__ import annotations

import numpy as np

from fgfm._kernels._compile import compiled, compiled_sums
from fgfm._kernels.constants import TIE
from fgfm._kernels.marginals_workspace import BUCKETS
from fgfm._kernels.ordering import TINY, sort_descending

__all__ = ["FEW", "add_moments", "find_window", "lower_bound"]

FEW = 64  # this many candidates or fewer are sorted without further bounds
_ROUNDING = 1e-15  # relative error of the edges of a bucket


@compiled_sums
def add_moments(p, above):
    """Return number, sum and sum of squares of the labels with p > above; how many exceed 1."""
    count = 0
    n_above_one = 0
    total = squares = 0.0
    for i in range(len(p)):
        x = float(p[i])
        inside = x > above
        y = x if inside else 0.0
        count += inside
        n_above_one += x > 1.0
        total += y
        squares += y * y
    return count, total, squares, n_above_one


@compiled
def lower_bound(M, k, moments):
    """Return the lower bound on V_k; `M` is the sum of the k largest marginals.

    By Jensen's inequality, E[1 / (beta^2 s + k) | y_i = 1] >= 1 / (beta^2 (1 + E) + k), since the
    other labels have a mean of at most E.
    """
    beta2, mean, _ = moments
    return (1.0 + beta2) * M / (beta2 * (1.0 + mean) + k)


@compiled
def _upper_bound(M, k, moments):
    """Return the upper bound on V_k; `M` is the sum of the k largest marginals."""
    beta2, mean, variance = moments
    size = beta2 * mean + k
    spread = variance * (beta2 / size) * (beta2 / (beta2 + k))
    return (1.0 + beta2) * M * (1.0 + spread) / size


@compiled
def _narrow(p, index, bottom, top, rank, M_above, floor, moments, work):
    """Extract the labels that can be last in an optimal set, without sorting.

    Candidates are the labels with p in [bottom, top]; `rank` labels of total probability `M_above`
    lie above `top`. An empty `index` stands for 0, 1, 2, ... The labels found are written, in
    their order, to the window arrays of `work`, which may be `p` and `index` themselves.

    Returns their number, the number and the total probability of the labels above them, and
    `floor`, raised to the best lower bound found.
    """
    window, window_index, count = work.window, work.window_index, work.bucket_count
    n = len(p)
    identity = len(index) == 0
    buckets = max(2, min(BUCKETS, n // 4))
    width = (top - bottom) / (buckets - 1)
    if not width > TINY:  # nearly equal values cannot be separated: one bucket
        buckets = 1
        width = top - bottom
    scale = 1.0 / width if buckets > 1 else 0.0
    slack = _ROUNDING * top
    for b in range(buckets + 1):
        count[b] = 0
    for i in range(n):
        x = float(p[i])
        count[int((top - x) * scale) if x >= bottom else buckets] += 1
    # M_k lies between sums of bucket counts times the lower and the upper edges. Lower edges give
    # the lower bound at the last rank of each bucket.
    k = rank
    M = M_above
    for b in range(buckets):
        k += count[b]
        M += count[b] * max(bottom, top - (b + 1) * width - slack)
        floor = max(floor, lower_bound(M, k, moments))
    # Upper edges give an upper bound for all ranks of a bucket: M is largest at its last rank, and
    # the rest of the bound decreases with k.
    first = buckets
    last = -1
    k = rank
    M = M_above
    for b in range(buckets):
        if count[b]:
            M += count[b] * (top - b * width + slack)
            if _upper_bound(M, k + 1, moments) >= floor * (1.0 - TIE):
                first = min(first, b)
                last = b
            k += count[b]
    if last < 0:
        return 0, rank, M_above, floor
    # Widened by the rounding error: labels that are removed lie outside the buckets found.
    high = top - first * width + slack
    low = top - (last + 1) * width - slack
    n_removed, M, _, _ = add_moments(p, high)
    size = 0
    for i in range(n):
        x = float(p[i])
        window_index[size] = i if identity else index[i]
        window[size] = x
        size += (x >= low) & (x >= bottom) & (x <= high)
    return size, rank + n_removed, M_above + M, floor


@compiled
def find_window(p, index, threshold, top, floor, moments, work):
    """Find and sort the labels that can be last in an optimal set.

    Candidates are the labels with p in [threshold, top]; no p exceeds `top`. An empty `index`
    stands for 0, 1, 2, ... The labels found are sorted into the window arrays of `work`.

    Returns `rank`, the number of labels above the window (none equals one in it), the range
    [`low`, `high`) of the window in which optimal sets can end, and `floor`, raised to the best
    lower bound found.
    """
    window, window_index = work.window, work.window_index
    rank = np.int64(0)
    if len(p) <= FEW:
        size = 0
        M_above = 0.0
        for i in range(len(p)):
            window[size] = p[i]
            window_index[size] = index[i] if len(index) else i
            size += p[i] >= threshold
    else:
        size, rank, M_above, floor = _narrow(
            p, index, threshold, top, rank, 0.0, floor, moments, work
        )
    # Narrow again while that removes at least a quarter of the labels.
    previous_size = 2 * size
    while size > FEW and 4 * size <= 3 * previous_size:
        previous_size = size
        top = bottom = window[0]
        for i in range(size):
            top = max(top, window[i])
            bottom = min(bottom, window[i])
        if top == bottom:
            break
        size, rank, M_above, floor = _narrow(
            window[:size], window_index, bottom, top, rank, M_above, floor, moments, work
        )
    sort_descending(
        window[:size], window_index[:size], work.spare, work.spare_index, work.bucket_count
    )
    # With the labels sorted, the bounds are evaluated at every rank.
    M = M_above
    for i in range(size):
        M += window[i]
        floor = max(floor, lower_bound(M, rank + i + 1, moments))
    low = size
    high = 0
    M = M_above
    for i in range(size):
        M += window[i]
        if _upper_bound(M, rank + i + 1, moments) >= floor * (1.0 - TIE):
            low = min(low, i)
            high = i + 1
    return rank, low, high, floor
