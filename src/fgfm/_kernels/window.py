"""Which labels can be the last one of an optimal set, where labels are independent.

With M_k the sum of the k largest marginals, E and v mean and variance of |y|,

    M_k / (beta^2 (1 + E) + k)
        <= V_k / (1 + beta^2)
        <= M_k (1 + beta^4 v / ((beta^2 E + k) (beta^2 + k))) / (beta^2 E + k),

from Jensen and from E[1/X] - 1/E[X] <= Var(X) / (E[X]^2 min X). With many expected labels the two
are close, and only a short window of ranks can hold the optimum: only that window is sorted.
"""

from __future__ import annotations

import numpy as np

from fgfm._kernels._compile import compiled, compiled_sums
from fgfm._kernels.ordering import TINY, sort_descending
from fgfm._kernels.rule import TIE
from fgfm._kernels.workspace import BUCKETS

__all__ = ["FEW", "add_moments", "find_window", "lower_bound"]

FEW = 64  # so few candidates are sorted at once
_ROUNDING = 1e-15  # relative: how far the edge of a bucket may be off


@compiled_sums
def add_moments(large, above):
    """Give number, sum and sum of squares of the labels with p > above, and how many exceed 1."""
    count = 0
    bad = 0
    total = squares = 0.0
    for i in range(len(large)):
        x = float(large[i])
        inside = x > above
        y = x if inside else 0.0
        count += inside
        bad += x > 1.0
        total += y
        squares += y * y
    return count, total, squares, bad


@compiled
def lower_bound(mass, k, moments):
    """Bound the value of the best set of size k from below: Jensen."""
    beta2, mean, _ = moments
    return (1.0 + beta2) * mass / (beta2 * (1.0 + mean) + k)


@compiled
def _upper(mass, k, moments):
    """Bound the value of the best set of size k from above."""
    beta2, mean, variance = moments
    size = beta2 * mean + k
    spread = variance * (beta2 / size) * (beta2 / (beta2 + k))
    return (1.0 + beta2) * mass * (1.0 + spread) / size


@compiled
def _narrow(source, source_place, bottom, top, rank, before, floor, moments, work):
    """Extract from `source` the labels that can be the last one of an optimal set.

    The labels in [bottom, top] are counted into buckets of equal width, and the bounds at the
    edges of the buckets tell which matter: no sorting. `rank` labels of total mass `before` lie
    above `top`. An empty `source_place` says that places are indices. What is found goes, its
    order kept, into the window arrays of `work` (which may be the source itself). Gives its size,
    rank and mass of the labels above it, and the best lower bound met.
    """
    window, window_place, count = work.window, work.window_place, work.bucket
    n = len(source)
    identity = len(source_place) == 0
    buckets = max(2, min(BUCKETS, n // 4))
    width = (top - bottom) / (buckets - 1)
    if not width > TINY:  # one bucket: what does not differ cannot be told apart
        buckets = 1
        width = top - bottom
    scale = 1.0 / width if buckets > 1 else 0.0
    slack = _ROUNDING * top
    for b in range(buckets + 1):
        count[b] = 0
    for i in range(n):
        x = float(source[i])
        count[int((top - x) * scale) if x >= bottom else buckets] += 1
    # The mass of a bucket lies between its number of labels times its lower and its upper edge.
    k = rank
    mass = before
    for b in range(buckets):
        k += count[b]
        mass += count[b] * max(bottom, top - (b + 1) * width - slack)
        floor = max(floor, lower_bound(mass, k, moments))
    first = buckets
    last = -1
    k = rank
    mass = before
    for b in range(buckets):
        if count[b]:
            mass += count[b] * (top - b * width + slack)
            if _upper(mass, k + 1, moments) >= floor * (1.0 - TIE):
                first = min(first, b)
                last = b
            k += count[b]
    if last < 0:
        return 0, rank, before, floor
    # Widened against rounding: what is cut off for good must lie outside the found buckets.
    high = top - first * width + slack
    low = top - (last + 1) * width - slack
    above, mass, _, _ = add_moments(source, high)
    size = 0
    for i in range(n):
        x = float(source[i])
        window_place[size] = i if identity else source_place[i]
        window[size] = x
        size += (x >= low) & (x >= bottom) & (x <= high)
    return size, rank + above, before + mass, floor


@compiled
def find_window(source, source_place, threshold, top, floor, moments, work):
    """Find and sort the labels that can be the last one of an optimal set.

    Candidates are the labels of `source` from `threshold` to `top`; none is larger. What is found
    is sorted into the window arrays of `work`. Gives `rank`, the number of larger labels (none of
    them equals one in the window); `low` and `high`, the part of the window where optimal sets can
    end; and the best lower bound met.
    """
    window, window_place = work.window, work.window_place
    rank = np.int64(0)
    if len(source) <= FEW:
        size = 0
        before = 0.0
        for i in range(len(source)):
            window[size] = source[i]
            window_place[size] = source_place[i] if len(source_place) else i
            size += source[i] >= threshold
    else:
        size, rank, before, floor = _narrow(
            source, source_place, threshold, top, rank, 0.0, floor, moments, work
        )
    width = 2 * size
    while size > FEW and 4 * size <= 3 * width:
        width = size
        top = bottom = window[0]
        for i in range(size):
            top = max(top, window[i])
            bottom = min(bottom, window[i])
        if top == bottom:
            break
        size, rank, before, floor = _narrow(
            window[:size], window_place, bottom, top, rank, before, floor, moments, work
        )
    sort_descending(window[:size], window_place[:size], work.spare, work.spare_place, work.bucket)
    total = before
    for i in range(size):
        total += window[i]
        floor = max(floor, lower_bound(total, rank + i + 1, moments))
    low = size
    high = 0
    total = before
    for i in range(size):
        total += window[i]
        if _upper(total, rank + i + 1, moments) >= floor * (1.0 - TIE):
            low = min(low, i)
            high = i + 1
    return rank, low, high, floor
