"""The best set size and its labels, from a dozen columns of Delta.

Delta_ik, what label i is worth in a set of size k, is a weighted sum of row i of a matrix C, with
weights that depend on k: C is P itself (GFM), or generating functions at the nodes of a quadrature
rule (F-GFM). V_k is the sum of the k largest Delta_ik.

Columns are skipped exactly. For any set h, f(k) = sum_{i in h} Delta_ik = E[c / (beta^2 s + k)] is
a mixture of reciprocals, so 1 / f is concave in k (Cauchy-Schwarz). Hence for k1 < k < k2 and
k = l k1 + (1 - l) k2,

    V_k <= 1 / (l / Q_1(k) + (1 - l) / Q_2(k)),

where Q_1(k) and Q_2(k) are the sums of the k largest Delta at k1 and at k2. This harmonic mean is
never above the geometric mean that log-convexity (Hoelder) gives, and exact when s is certain.
"""

from __future__ import annotations

import math

import numpy as np

from fgfm._kernels._compile import compiled, compiled_sums, entry_point
from fgfm._kernels.ordering import repair_order
from fgfm._kernels.rule import TIE

__all__ = ["choose", "search"]

_DEPTH = 40  # cutting a third off an interval of set sizes so often leaves nothing


@compiled
def _fill_weights(k, base, scale, quadrature, weights):
    """Fill in the weight of each column of C in Delta_ik.

    By quadrature ``scale exp(k base)``, else ``scale / (base + k)``.
    """
    for r in range(len(base)):
        if quadrature:
            weights[r] = scale[r] * math.exp(k * base[r])
        else:
            weights[r] = scale[r] / (base[r] + k)


@compiled_sums
def _dot(row, weights):
    result = 0.0
    for r in range(len(weights)):
        result += row[r] * weights[r]
    return result


@compiled_sums
def _column(C, order, weights, delta):
    """Fill in Delta_ik for the labels (rows of C) in `order`."""
    for j in range(len(order)):
        i = order[j]
        total = 0.0
        for r in range(len(weights)):
            total += C[i, r] * weights[r]
        delta[j] = total


@compiled_sums
def _three_columns(C, order, weights, delta):
    """Fill in Delta_ik for three sizes in one pass over C."""
    for j in range(len(order)):
        i = order[j]
        first = second = third = 0.0
        for r in range(weights.shape[1]):
            x = C[i, r]
            first += x * weights[0, r]
            second += x * weights[1, r]
            third += x * weights[2, r]
        delta[0, j] = first
        delta[1, j] = second
        delta[2, j] = third


@compiled
def _bound(left, right, k1, k2):
    """Give the highest bound on V_k for k1 < k < k2, and where it is, from the prefix sums."""
    best = 0.0
    at = k1 + 1
    for k in range(k1 + 1, k2):
        share = (k2 - k) / (k2 - k1)
        # Written so that nothing underflows; right[k] is 0 only where it is below any use.
        bound = left[k]
        if right[k] > 0.0:
            bound /= share + (1.0 - share) * (left[k] / right[k])
        if bound > best:
            best = bound
            at = k
    return best, at


@compiled
def _bound_all(totals, k, base, scale, quadrature, weights):
    """Give T(k) = sum_i Delta_ik, which no set of size k exceeds."""
    _fill_weights(k, base, scale, quadrature, weights)
    return _dot(totals, weights)


@compiled
def _last_size(totals, base, scale, quadrature, weights, floor, limit):
    """Give a size up to `limit` beyond which T(k) < floor; 0 if that is so from the start.

    1 / T is concave as well, so that its chord crosses 1 / floor beyond the point where T does:
    two steps come near enough from above.
    """
    low = np.int64(1)
    high = limit
    at_low = _bound_all(totals, low, base, scale, quadrature, weights)
    if at_low < floor:
        return low - 1
    at_high = _bound_all(totals, high, base, scale, quadrature, weights)
    if at_high >= floor:
        return high
    for _ in range(2):
        share = (1.0 / floor - 1.0 / at_low) / (1.0 / at_high - 1.0 / at_low)
        k = min(low + int(share * (high - low)) + 1, high - 1)
        if k <= low:
            break
        value = _bound_all(totals, k, base, scale, quadrature, weights)
        if value < floor:
            high = k
            at_high = value
        else:
            low = k
            at_low = value
    return high - 1


@compiled
def _accumulate(delta, sums):
    """Fill in the sums of the largest Delta_ik."""
    sums[0] = 0.0
    for i in range(len(sums) - 1):
        sums[i + 1] = sums[i] + delta[i]


@compiled
def _push(stack, at, k1, row1, k2, row2, depth):
    stack[at, 0] = k1
    stack[at, 1] = row1
    stack[at, 2] = k2
    stack[at, 3] = row2
    stack[at, 4] = depth
    return at + 1


@compiled
def _better(value, k, peak, best):
    """Give the higher of two values and its size; the smaller size where they are equal."""
    if value > peak * (1.0 + TIE) or best < 0 or (k < best and value >= peak * (1.0 - TIE)):
        best = k
    return max(value, peak), best


@compiled
def _keep(order, delta, best_order, best_delta):
    for j in range(len(order)):
        best_order[j] = order[j]
        best_delta[j] = delta[j]


@entry_point
def search(
    C, order, totals, base, scale, quadrature, limit, guess, floor, empty, best_order, best_delta
):
    """Find the best set size, and the candidates ordered by their worth in sets of that size.

    `order` lists the rows of C that are candidates, best first as far as known. `totals` bounds
    the column sums of C over them, `limit` the size, `guess` is a likely size, `floor` a lower
    bound on the optimum, and `empty` the worth of the empty set (less than 0 if it is no choice).
    Fills in `best_order` and `best_delta`, and gives size, value, and the number of columns that
    were computed.
    """
    size = len(order)
    # numba would compile what it calls anew for every literal among the arguments.
    zero, one, two = np.int64(0), np.int64(1), np.int64(2)
    weights = np.empty((3, len(base)))
    peak = max(empty, 0.0)
    best = np.int64(0 if empty >= 0.0 else -1)
    floor *= 1.0 - TIE
    most = _last_size(totals, base, scale, quadrature, weights[0], floor, limit)
    if most == 0:
        if best == 0:
            return best, peak, zero
        most = one
    guess = min(guess, most)

    # Three columns to begin with: the guess, 1, and the last size that T(k) admits.
    _fill_weights(guess, base, scale, quadrature, weights[0])
    _fill_weights(one, base, scale, quadrature, weights[1])
    _fill_weights(most, base, scale, quadrature, weights[2])
    delta = np.empty((3, size))
    _three_columns(C, order, weights, delta)
    evaluations = np.int64(3)
    place = np.empty((3, size), dtype=np.int64)
    spare = np.empty(size)
    spare_place = np.empty(size, dtype=np.int64)
    prefix = np.empty((_DEPTH + 3, most + 1))
    for row in range(3):
        k = guess if row == 0 else (one if row == 1 else most)
        if row and k == guess:
            continue
        for j in range(size):
            place[row, j] = order[j]
        repair_order(delta[row], place[row], spare, spare_place)
        _accumulate(delta[row], prefix[row])
        before = best
        peak, best = _better(prefix[row, k], k, peak, best)
        if best != before:
            _keep(place[row], delta[row], best_order, best_delta)
    # A stack of intervals of set sizes: both ends, the rows of their prefix sums, and the depth.
    # An interval at depth d is split at a size whose prefix sums go into row d + 3.
    stack = np.empty((2 * _DEPTH, 5), dtype=np.int64)
    waiting = _push(stack, zero, guess, zero, most, two, zero)
    waiting = _push(stack, waiting, one, one, guess, zero, zero)
    while waiting:
        waiting -= 1
        k1 = stack[waiting, 0]
        row1 = stack[waiting, 1]
        k2 = stack[waiting, 2]
        row2 = stack[waiting, 3]
        depth = stack[waiting, 4]
        bound, k = _bound(prefix[row1], prefix[row2], k1, k2)
        if bound < peak * (1.0 - TIE) or (k1 >= best and bound <= peak * (1.0 + TIE)):
            continue
        # At the highest bound, but not so near an end that the depth could grow.
        k = min(max(k, k1 + (k2 - k1 + 2) // 3), k2 - (k2 - k1 + 2) // 3)
        row = depth + 3
        _fill_weights(k, base, scale, quadrature, weights[0])
        _column(C, place[0], weights[0], delta[0])
        repair_order(delta[0], place[0], spare, spare_place)
        _accumulate(delta[0], prefix[row, : k2 + 1])
        evaluations += 1
        before = best
        peak, best = _better(prefix[row, k], k, peak, best)
        if best != before:
            _keep(place[0], delta[0], best_order, best_delta)
        left_first = prefix[row1, k1] > prefix[row2, k2]  # the better side goes on top
        if left_first:
            waiting = _push(stack, waiting, k, row, k2, row2, depth + 1)
        waiting = _push(stack, waiting, k1, row1, k, row, depth + 1)
        if not left_first:
            waiting = _push(stack, waiting, k, row, k2, row2, depth + 1)
    return best, peak, evaluations


@compiled
def choose(order, delta, k, labels, chosen):
    """Mark the k labels with the largest Delta_ik; among equal ones those of lowest index.

    `order` and `delta` are sorted; row i of C belongs to label ``labels[i]``.
    """
    least = delta[k - 1]
    first = k - 1
    while first > 0 and delta[first - 1] <= least * (1.0 + TIE):
        first -= 1
    last = k
    while last < len(order) and delta[last] >= least * (1.0 - TIE):
        last += 1
    for j in range(k):
        chosen[labels[order[j]]] = 1
    if last > k:
        for j in range(first, last):
            chosen[labels[order[j]]] = 2
        left = k - first
        for i in range(len(chosen)):
            if chosen[i] == 2:
                chosen[i] = left > 0
                left -= 1
