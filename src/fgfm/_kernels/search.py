"""The best set size and its labels, from a few columns of Delta.

Delta_ik, the contribution of label i to the expected F of a set of size k, is a weighted sum of
row i of a matrix C, with weights that depend on k. C is P itself (GFM), or contains generating
functions at the nodes of a quadrature rule (F-GFM). V_k is the sum of the k largest Delta_ik.

Most columns are skipped without loss (docs/design.md, "Which set sizes are evaluated"). For any
set h, f(k) = sum_{i in h} Delta_ik = E[c / (beta^2 s + k)] is a mixture of reciprocals, so that
1 / f is concave in k (Cauchy-Schwarz). Hence for k1 < k < k2 and k = l k1 + (1 - l) k2,

    V_k <= 1 / (l / Q_1(k) + (1 - l) / Q_2(k)),

where Q_1(k) and Q_2(k) are the sums of the k largest Delta at k1 and at k2. This harmonic mean
never exceeds the geometric mean that log-convexity (Hoelder) gives, and is exact if s is constant.
"""

from __future__ import annotations

import math

import numpy as np

from fgfm._kernels._compile import compiled, compiled_sums, entry_point
from fgfm._kernels.constants import TIE
from fgfm._kernels.ordering import repair_order

__all__ = ["choose", "search"]

# A split leaves at most about two thirds of an interval of set sizes: the depth stays below this.
_DEPTH = 40


@compiled
def _fill_weights(k, base, scale, quadrature, weights):
    """Fill the weight of each column of C in Delta_ik.

    It is ``scale exp(k base)`` by quadrature (base = log z), and ``scale / (base + k)`` otherwise
    (base = beta^2 s).
    """
    for r in range(len(base)):
        if quadrature:
            weights[r] = scale[r] * math.exp(k * base[r])
        else:
            weights[r] = scale[r] / (base[r] + k)


@compiled_sums
def _dot(row, weights):
    """Return the scalar product of two arrays."""
    result = 0.0
    for r in range(len(weights)):
        result += row[r] * weights[r]
    return result


@compiled_sums
def _fill_column(C, order, weights, delta):
    """Fill Delta_ik of one set size for the rows of C in `order`."""
    for j in range(len(order)):
        i = order[j]
        total = 0.0
        for r in range(len(weights)):
            total += C[i, r] * weights[r]
        delta[j] = total


@compiled_sums
def _fill_three_columns(C, order, weights, delta):
    """Fill Delta_ik of three set sizes in one pass over C; `weights` and `delta` have 3 rows."""
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
def _max_bound(Q1, Q2, k1, k2):
    """Return the largest harmonic bound on V_k over k1 < k < k2, and where it is attained."""
    best = 0.0
    best_k = k1 + 1
    for k in range(k1 + 1, k2):
        share = (k2 - k) / (k2 - k1)
        # Q1 / (share + (1 - share) Q1 / Q2) does not underflow. Where Q2 is 0 its true value is
        # too small to matter.
        bound = Q1[k]
        if Q2[k] > 0.0:
            bound /= share + (1.0 - share) * (Q1[k] / Q2[k])
        if bound > best:
            best = bound
            best_k = k
    return best, best_k


@compiled
def _total_bound(totals, k, base, scale, quadrature, weights):
    """Return T(k) = sum_i Delta_ik, an upper bound on the value of every set of size k."""
    _fill_weights(k, base, scale, quadrature, weights)
    return _dot(totals, weights)


@compiled
def _last_size(totals, base, scale, quadrature, weights, floor, limit):
    """Return a size of at most `limit` beyond which T(k) < floor; 0 if T(1) < floor.

    1 / T is concave as well, so that its chord between two sizes reaches 1 / floor at a larger k
    than 1 / T does. Two secant steps come close enough, always from above.
    """
    low = np.int64(1)
    high = limit
    T_low = _total_bound(totals, low, base, scale, quadrature, weights)
    if T_low < floor:
        return low - 1
    T_high = _total_bound(totals, high, base, scale, quadrature, weights)
    if T_high >= floor:
        return high
    for _ in range(2):
        share = (1.0 / floor - 1.0 / T_low) / (1.0 / T_high - 1.0 / T_low)
        k = min(low + int(share * (high - low)) + 1, high - 1)
        if k <= low:
            break
        T_k = _total_bound(totals, k, base, scale, quadrature, weights)
        if T_k < floor:
            high = k
            T_high = T_k
        else:
            low = k
            T_low = T_k
    return high - 1


@compiled
def _fill_prefix_sums(delta, Q):
    """Fill ``Q[k]`` with the sum of the first k elements of `delta`, k < len(Q)."""
    Q[0] = 0.0
    for i in range(len(Q) - 1):
        Q[i + 1] = Q[i] + delta[i]


@compiled
def _push(stack, top, k1, row1, k2, row2, depth):
    """Put an interval of set sizes on the stack; return its new height."""
    stack[top, 0] = k1
    stack[top, 1] = row1
    stack[top, 2] = k2
    stack[top, 3] = row2
    stack[top, 4] = depth
    return top + 1


@compiled
def _better(value, k, peak, best_k):
    """Return the larger of two values and its size; the smaller size if the values are equal."""
    if value > peak * (1.0 + TIE) or best_k < 0 or (k < best_k and value >= peak * (1.0 - TIE)):
        best_k = k
    return max(value, peak), best_k


@compiled
def _copy(order, delta, best_order, best_delta):
    """Copy the order of the best column so far."""
    for j in range(len(order)):
        best_order[j] = order[j]
        best_delta[j] = delta[j]


@entry_point
def search(
    C,
    order,
    totals,
    base,
    scale,
    quadrature,
    limit,
    guess,
    floor,
    empty_value,
    best_order,
    best_delta,
):
    """Find the best set size, and the candidates ordered by their Delta at that size.

    Parameters
    ----------
    C : (rows, columns) array
        Delta_ik is the product of row i and the weights of size k.
    order : (size,) int64 array
        The rows of C that are candidates, roughly in descending order of Delta.
    totals : (columns,) array
        The column sums of C over the candidates, or upper bounds on them.
    base, scale : (columns,) arrays
        The weight of a column is ``scale exp(k base)`` or ``scale / (base + k)``.
    quadrature : bool
        Which of the two it is.
    limit, guess : int
        The largest set size, and a likely one.
    floor : float
        A lower bound on the optimal value.
    empty_value : float
        The value of the empty set; negative if the empty set is not allowed.
    best_order, best_delta : (size,) arrays
        Filled with the candidates, ordered, and their Delta at the best size.

    Returns
    -------
    best_k, peak, evaluations
        The best set size, its value, and the number of columns computed.
    """
    size = len(order)
    # Typed constants: numba would compile the callees again for every literal argument.
    zero, one, two = np.int64(0), np.int64(1), np.int64(2)
    weights = np.empty((3, len(base)))
    peak = max(empty_value, 0.0)
    best_k = np.int64(0 if empty_value >= 0.0 else -1)
    floor *= 1.0 - TIE
    last = _last_size(totals, base, scale, quadrature, weights[0], floor, limit)
    if last == 0:
        if best_k == 0:
            return best_k, peak, zero
        last = one
    guess = min(guess, last)

    # Three columns to start with: the guess, 1, and the last size that T(k) admits.
    _fill_weights(guess, base, scale, quadrature, weights[0])
    _fill_weights(one, base, scale, quadrature, weights[1])
    _fill_weights(last, base, scale, quadrature, weights[2])
    delta = np.empty((3, size))
    _fill_three_columns(C, order, weights, delta)
    evaluations = np.int64(3)
    index = np.empty((3, size), dtype=np.int64)
    spare = np.empty(size)
    spare_index = np.empty(size, dtype=np.int64)
    prefix = np.empty((_DEPTH + 3, last + 1))  # sums of the k largest Delta, one row per column
    for row in range(3):
        k = guess if row == 0 else (one if row == 1 else last)
        if row and k == guess:
            continue
        for j in range(size):
            index[row, j] = order[j]
        repair_order(delta[row], index[row], spare, spare_index)
        _fill_prefix_sums(delta[row], prefix[row])
        previous_k = best_k
        peak, best_k = _better(prefix[row, k], k, peak, best_k)
        if best_k != previous_k:
            _copy(index[row], delta[row], best_order, best_delta)
    # A stack of intervals of set sizes: both ends, the rows of their prefix sums, and the depth.
    # An interval at depth d is split at a size whose prefix sums are written to row d + 3.
    stack = np.empty((2 * _DEPTH, 5), dtype=np.int64)
    height = _push(stack, zero, guess, zero, last, two, zero)
    height = _push(stack, height, one, one, guess, zero, zero)
    while height:
        height -= 1
        k1 = stack[height, 0]
        row1 = stack[height, 1]
        k2 = stack[height, 2]
        row2 = stack[height, 3]
        depth = stack[height, 4]
        bound, k = _max_bound(prefix[row1], prefix[row2], k1, k2)
        # Skip what cannot be better, and what could only tie with a smaller set.
        if bound < peak * (1.0 - TIE) or (k1 >= best_k and bound <= peak * (1.0 + TIE)):
            continue
        # Split where the bound is largest, but leave a third on either side: the depth is bounded.
        k = min(max(k, k1 + (k2 - k1 + 2) // 3), k2 - (k2 - k1 + 2) // 3)
        row = depth + 3
        _fill_weights(k, base, scale, quadrature, weights[0])
        _fill_column(C, index[0], weights[0], delta[0])
        repair_order(delta[0], index[0], spare, spare_index)
        _fill_prefix_sums(delta[0], prefix[row, : k2 + 1])
        evaluations += 1
        previous_k = best_k
        peak, best_k = _better(prefix[row, k], k, peak, best_k)
        if best_k != previous_k:
            _copy(index[0], delta[0], best_order, best_delta)
        left_first = prefix[row1, k1] > prefix[row2, k2]  # the more promising half goes on top
        if left_first:
            height = _push(stack, height, k, row, k2, row2, depth + 1)
        height = _push(stack, height, k1, row1, k, row, depth + 1)
        if not left_first:
            height = _push(stack, height, k, row, k2, row2, depth + 1)
    return best_k, peak, evaluations


@compiled
def choose(order, delta, k, labels, chosen):
    """Mark the k labels with the largest Delta_ik; of equal ones those with the lowest index.

    `order` and `delta` are sorted in descending order of Delta; row i of C belongs to label
    ``labels[i]``.
    """
    smallest = delta[k - 1]
    first = k - 1  # [first, last) are the labels that tie with the last one chosen
    while first > 0 and delta[first - 1] <= smallest * (1.0 + TIE):
        first -= 1
    last = k
    while last < len(order) and delta[last] >= smallest * (1.0 - TIE):
        last += 1
    for j in range(k):
        chosen[labels[order[j]]] = 1
    if last > k:
        for j in range(first, last):
            chosen[labels[order[j]]] = 2  # tied: resolved below, in the order of the indices
        remaining = k - first
        for i in range(len(chosen)):
            if chosen[i] == 2:
                chosen[i] = remaining > 0
                remaining -= 1
