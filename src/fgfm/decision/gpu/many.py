"""Rows in which many labels are expected, by a Triton kernel that reads a row once.

Dinkelbach's iteration finds the threshold that maximises Jensen's lower bound on the expected F.
The few labels near it are sorted, the sets that end among them are compared, and bounds show that
no other set is better.

Let b = beta^2, N the number of true labels among the k most probable ones, X = b s + k, and
mu = b E + k its mean. With r = b / mu and cumulants of the independent labels,

    E[N / X] = (M - r (C - r (M v + T - r (M c_3 + 3 C v + U)))) / mu + r^4 E[N (s - E)^4 / X],

where M, C, T and U are the sums of the first four cumulants of the k labels, and v and c_3 the
variance and the third cumulant of s. The last term lies between 0 and
r^4 (3 v^2 + v) max(N / X): so a few labels around a threshold remain, which are compared by a
quadrature rule. Where mu / b >= 200, eight power sums of p determine products and sums over the
labels at all of its nodes to 1e-13. Everything is computed in float64. See docs/design.md,
"Decisions on a GPU".
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

from fgfm.decision._objective import Objective
from fgfm.decision._quadrature import rule_tables
from fgfm.decision.gpu.functions import (
    TAIL,
    TINY,
    above,
    add_eight,
    add_pair,
    exponent,
    next_level,
    one_minus_exp,
    powers,
)

RULES = 32  # rules of 1, 2, .., 32 nodes, which serve a_max / a_min up to 3000
_RULES = tl.constexpr(RULES)
_CHUNK = tl.constexpr(8)  # labels of a list that are compared at once
_TIE = 1e-12  # as in the compiled kernels
_BETA2, _ZERO_DIVISION, _TIED, _RATIOS = map(tl.constexpr, range(4))  # places in the table
_AMPLE = tl.constexpr(200.0)  # E[X] / b from which eight power sums suffice
_LOST = tl.constexpr(1e-11)  # relative error of the bounds

MANY = 150.0  # expected labels of a row; with more, it is not empty but for exp(-MANY)
POSTPONED = -2.0  # plus log P(y = 0), in place of the expected F of a row that is not decided
DENSE = POSTPONED - 1000.0  # instead, if more than MANY labels are expected
_MANY, _POSTPONED = map(tl.constexpr, (MANY, POSTPONED))
_LEVELS = tl.constexpr(16)  # intervals of sizes [2^j, 2^(j + 1)]
_WINDOWS = ((32, 4.0), (256, 24.0))  # capacity of the list, labels expected on each side
_REGISTERS = 128  # per thread, so that a multiprocessor runs 16 warps
_STEPS = tl.constexpr(12)  # of Dinkelbach's iteration, at most


@triton.jit
def _bound_of_size(k, m, law, size):
    """Bound mu E[N / X] from above, N the true labels among `size` with power sums m1, m2, .."""
    m1, m2, m3, m4 = m[0], m[1], m[2], m[3]
    base, b, variance, skewness = law
    mu = base + k
    r = b / mu
    c = m1 - m2
    t = m1 - 3.0 * m2 + 2.0 * m3
    u = m1 - 7.0 * m2 + 12.0 * m3 - 6.0 * m4
    fourth = 3.0 * variance * variance + variance
    inner = m1 * variance + t - r * (m1 * skewness + 3.0 * c * variance + u)
    bound = (m1 - r * (c - r * inner)) / mu + r * r * r * r * fourth * size / (b * size + k)
    return (base + k) * bound


@triton.jit
def _intervals(most, LEVELS):
    """Return the ends of the intervals of 1 to `most` labels, and which are not empty."""
    first = tl.exp2(tl.arange(0, LEVELS).to(tl.float64))
    last = tl.minimum(2.0 * first, most)
    return tl.minimum(first, last), last, first <= last


@triton.jit
def _no_larger_above(rank, high, m, law, least, LEVELS):
    """Return True if no set of fewer than `rank` labels has the value `least` or more.

    The `rank` most probable labels are above `high`. A set without d of them has at most
    E[N / X] - d high / (b (1 + E - high) + k), by Jensen. On an interval of sizes mu E[N / X] is
    at most its larger end, since 1 / E[N / X] is concave, and the rest is a linear fraction.
    """
    base, b = law[0], law[1]
    first, last, used = _intervals(rank - 1.0, LEVELS)
    ka = rank - last
    kb = rank - first
    top = tl.maximum(_bound_of_size(ka, m, law, rank), _bound_of_size(kb, m, law, rank))
    loss = high / (1.0 + b * tl.maximum(1.0 - high, 0.0) / (base + ka))
    bound = tl.maximum((top - last * loss) / (base + ka), (top - first * loss) / (base + kb))
    return tl.sum((used & ~(bound < least)).to(tl.int32)) == 0


@triton.jit
def _no_larger_below(rank, labels, low, m, law, least, LEVELS):
    """Return True if no set of more than `rank` of all labels has the value `least` or more.

    All labels after the first `rank` ones are below `low`: d of them add at most
    d low E[1 / (b s + k)].
    """
    base, b, variance, skewness = law
    first, last, used = _intervals(labels - rank, LEVELS)
    ka = rank + first
    kb = rank + last
    top = tl.maximum(_bound_of_size(ka, m, law, rank), _bound_of_size(kb, m, law, rank))
    # E[1 / X]: a set with N = 1
    fourth = 3.0 * variance * variance + variance
    ra = b / (base + ka)
    rb = b / (base + kb)
    one_a = 1.0 + ra * ra * (variance - ra * skewness) + ra * ra * ra * b * fourth / ka
    one_b = 1.0 + rb * rb * (variance - rb * skewness) + rb * rb * rb * b * fourth / kb
    gain = low * tl.maximum(one_a, one_b)
    bound = tl.maximum((top + first * gain) / (base + ka), (top + last * gain) / (base + kb))
    return tl.sum((used & ~(bound < least)).to(tl.int32)) == 0


@triton.jit
def rank_list(values, places, sorted_values, sorted_places, size, CAPACITY):
    """Sort the first `size` values of a list downwards, equal ones by place, by counting."""
    own = tl.arange(0, CAPACITY)
    known = own < size
    x = tl.load(values + own, mask=known, other=-1.0)
    own_place = tl.load(places + own, mask=known, other=0)
    rank = own * 0
    for start in range(0, size, _CHUNK):
        other = start + tl.arange(0, _CHUNK)
        y = tl.load(values + other, mask=other < size, other=-1.0)
        place = tl.load(places + other, mask=other < size, other=0)
        earlier = (y[None, :] == x[:, None]) & (place[None, :] < own_place[:, None])
        rank += tl.sum(((y[None, :] > x[:, None]) | earlier).to(tl.int32), 1)
    tl.store(sorted_values + rank, x, mask=known)
    tl.store(sorted_places + rank, own_place, mask=known)
    tl.debug_barrier()


@triton.jit
def _store_rule(above, size, labels, sums, table, nodes):
    """Store the rule for the numbers of labels that occur but for a probability of exp(-TAIL).

    Returns the number of its nodes, and True if it serves the range.
    """
    s1, s2, s3, s4, s5, s6, s7, s8 = sums
    b = tl.load(table + _BETA2)
    reach = tl.sqrt(s1 * (2.0 * TAIL) + TAIL * TAIL / 9.0) + TAIL / 3.0
    most = tl.minimum(labels, 1.0 + s1 + reach)
    a_min = b * tl.maximum(1.0, s1 - tl.sqrt(s1 * (2.0 * TAIL))) + tl.maximum(above, 1.0)
    a_max = b * most + above + size
    node = tl.arange(0, _RULES)
    rule = tl.sum((tl.load(table + _RATIOS + node) * a_min < a_max).to(tl.int32))
    served = rule < _RULES
    rule = tl.minimum(rule, _RULES - 1)  # it has rule + 1 nodes
    used = node <= rule
    start = table + _RATIOS + _RULES + rule * (rule + 1) // 2
    log_z = -tl.load(start + node, mask=used, other=0.0) / a_min
    shift: tl.constexpr = _RULES * (_RULES + 1) // 2
    weight = tl.load(start + shift + node, mask=used, other=0.0) / a_min
    u = one_minus_exp(b * log_z)
    tl.store(nodes + node, log_z)
    tl.store(nodes + _RULES + node, u)
    tl.store(nodes + 2 * _RULES + node, weight)
    log_product = -exponent(s1, s2, s3, s4, s5, s6, s7, s8, u)
    tl.store(nodes + 3 * _RULES + node, b * log_z + log_product)
    tl.debug_barrier()
    return rule + 1, served


@triton.jit
def _values(sorted_values, size, above, sums_above, nodes, count, CAPACITY):
    """Return V_k / (1 + b) of the sets that end in a sorted list, from k = above on.

    V_k / (1 + b) = sum_r w_r z_r^k zeta_r D(zeta_r) sum_j u_r^j S_(j+1)(k). Also returned: the
    first four power sums of all labels up to the end of the list.
    """
    a1, a2, a3, a4, a5, a6, a7, a8 = sums_above
    item = tl.arange(0, CAPACITY)
    x = tl.load(sorted_values + item - 1, mask=(item > 0) & (item <= size), other=0.0)
    x1, x2, x3, x4, x5, x6, x7, x8 = powers(x, tl.float64, tl.float32)
    t1 = a1 + tl.cumsum(x1, 0)
    t2 = a2 + tl.cumsum(x2, 0)
    t3 = a3 + tl.cumsum(x3, 0)
    t4 = a4 + tl.cumsum(x4, 0)
    t5 = a5 + tl.cumsum(x5, 0).to(tl.float64)
    t6 = a6 + tl.cumsum(x6, 0).to(tl.float64)
    t7 = a7 + tl.cumsum(x7, 0).to(tl.float64)
    t8 = a8 + tl.cumsum(x8, 0).to(tl.float64)
    k = above + item.to(tl.float64)
    value = k * 0.0
    for r in range(count):
        z = tl.load(nodes + r)
        v = tl.load(nodes + _RULES + r)
        scale = tl.load(nodes + 2 * _RULES + r)
        shifted = tl.load(nodes + 3 * _RULES + r)
        total = t5 + v * (t6 + v * (t7 + v * t8))
        total = t1 + v * (t2 + v * (t3 + v * (t4 + v * total)))
        value += scale * tl.exp(k * z + shifted) * total
    value = tl.where((item <= size) & (k > 0.0), value, 0.0)
    end = item == size
    e1 = tl.sum(tl.where(end, t1, 0.0))
    e2 = tl.sum(tl.where(end, t2, 0.0))
    e3 = tl.sum(tl.where(end, t3, 0.0))
    e4 = tl.sum(tl.where(end, t4, 0.0))
    return value, (e1, e2, e3, e4)


@triton.jit
def best_rank(
    sorted_values, size, above, low, high, sums, sums_above, labels, table, nodes, CAPACITY, LEVELS
):
    """Find the best set among those that end in a sorted list, and prove that no other is better.

    Parameters: the list and its length, the number of labels above it; the interval of
    probabilities that it covers; the power sums of all labels, and of those above the list; the
    number of labels; the table of `table_of`; room for 4 `RULES` numbers.

    Returns the value of the best set divided by 1 + b, how many labels of the list are in it, and
    True if the bounds confirm that it is optimal.
    """
    s1, s2, s3 = sums[0], sums[1], sums[2]
    b = tl.load(table + _BETA2)
    tie = tl.load(table + _TIED)
    base = b * s1
    law = (base, b, s1 - s2, s1 - 3.0 * s2 + 2.0 * s3)  # b E, b, variance and third cumulant
    count, served = _store_rule(above, size, labels, sums, table, nodes)
    value, ends = _values(sorted_values, size, above, sums_above, nodes, count, CAPACITY)
    item = tl.arange(0, CAPACITY)
    peak = tl.max(value)
    chosen = tl.min(tl.where(value >= peak * (1.0 - tie), item, CAPACITY))
    best = tl.sum(tl.where(item == chosen, value, 0.0))
    least = peak * (1.0 - _LOST)
    left = _no_larger_above(above, high, sums_above, law, least, LEVELS)
    right = _no_larger_below(above + size, labels, low, ends, law, least, LEVELS)
    return best, chosen, left & right & served & (base + above >= b * _AMPLE)


@triton.jit
def with_empty_set(best, log_empty, table, NONEMPTY: tl.constexpr):
    """Return the expected F, and True if the best set is better than the empty set.

    `best` is the value of the best set divided by 1 + b, `log_empty` is log P(y = 0).
    """
    best *= 1.0 + tl.load(table + _BETA2)
    absent = tl.exp(tl.maximum(log_empty, -700.0))
    if NONEMPTY:
        wins = best > 0.0
        best = best / (1.0 - absent)
    else:
        empty = tl.load(table + _ZERO_DIVISION) * absent
        wins = best > empty * (1.0 + tl.load(table + _TIED))
        best = tl.where(wins, best, empty)
    return best, wins


@lru_cache(maxsize=64)
def table_of(beta: float, zero_division: float, device: Any) -> Any:
    """Return a tensor of beta^2, zero_division, the tolerance for ties, and the rules.

    Kernels take numbers as float32, but tensors as float64. A rule is its largest a_max / a_min;
    then the exponents of all rules follow, and the weights.
    """
    rules = rule_tables(beta)
    count = int(rules.start[RULES])
    head = np.array([beta * beta, zero_division, _TIE])
    flat = [head, rules.ratio[:RULES], rules.exponent[:count], rules.weight[:count]]
    return torch.as_tensor(np.concatenate(flat), dtype=torch.float64, device=device)


@triton.jit
def _window(p, mean, spread, m, NEAR: tl.constexpr):
    """Return the interval of probabilities in which the optimal set can end, by Dinkelbach."""
    level = mean / (spread + m)
    before = level * 0.0
    step = (mean * 0.0).to(tl.int32)
    while (level > before * 1.01) & (step < _STEPS):  # the last step squares the error
        masses, marks = above(p, level)
        mass, number = tl.reduce((tl.sum(masses, 1), tl.sum(marks, 1)), 0, add_pair)
        before = level
        level = next_level(mass, number, spread)
        step += 1
    near = tl.sum(tl.sum((tl.abs(p - level) < 0.125 * level).to(tl.int32), 1))
    # b high / (b E) is what Jensen's inequality loses in the bound on smaller sets
    reach = level * (NEAR * 0.25 / tl.maximum(near, 1).to(p.dtype) + 1.5 / mean)
    low = level - tl.minimum(reach, 0.5 * level)
    return low, level + tl.minimum(reach, 0.5 * tl.maximum(1.0 - level, 0.0))


@triton.jit
def _sum_and_list(own, m, low, high, values, places, TILE: tl.constexpr, CAPACITY: tl.constexpr):
    """Return power sums of all labels and of those above `high`, and their number; list others.

    Labels from `low` on are listed, with their places; the last result is the number of these.
    The row is read again, from the cache: tiles of all powers would not fit into registers.
    """
    item = tl.arange(0, TILE)
    zeros = tl.zeros([TILE], tl.float64)
    ones = zeros + 1.0
    s1, s2, s3, s4, a1, a2, a3, a4 = zeros, zeros, zeros, zeros, zeros, zeros, zeros, zeros
    zero = tl.zeros([TILE], tl.float32)
    s5, s6, s7, s8, a5, a6, a7, a8 = zero, zero, zero, zero, zero, zero, zero, zero
    number = item * 0
    size = m * 0
    for start in range(0, m, TILE):
        x = tl.load(own + start + item, mask=start + item < m, other=-1.0).to(low.dtype)
        is_near = (x >= low) & (x <= high)
        is_above = x > high
        x = tl.maximum(x, 0.0)
        x1, x2, x3, x4, x5, x6, x7, x8 = powers(x, tl.float64, tl.float32)
        s1 += x1
        s2 += x2
        s3 += x3
        s4 += x4
        s5 += x5
        s6 += x6
        s7 += x7
        s8 += x8
        one = tl.where(is_above, 1.0, 0.0)
        a5 += one * x5
        a6 += one * x6
        a7 += one * x7
        a8 += one * x8
        one64 = tl.where(is_above, ones, zeros)  # a conversion would take longer
        a1 += one64 * x1
        a2 += one64 * x2
        a3 += one64 * x3
        a4 += one64 * x4
        number += is_above.to(tl.int32)
        marks = is_near.to(tl.int32)
        n_near = tl.sum(marks)
        if n_near > 0:
            place = size + tl.cumsum(marks, 0) - 1
            is_near = is_near & (place < CAPACITY)
            tl.store(values + place, x1, mask=is_near)
            tl.store(places + place, start + item, mask=is_near)
            size += n_near
    sums = tl.reduce((s1, s2, s3, s4, s5, s6, s7, s8), 0, add_eight)
    sums_above = tl.reduce((a1, a2, a3, a4, a5, a6, a7, a8), 0, add_eight)
    return sums, sums_above, tl.sum(number).to(tl.float64), size


@triton.jit(do_not_specialize=["n", "row_step", "label_step", "m"])
def _many_kernel(
    proba,
    rows,
    labels,
    expected,
    table,
    space,
    places,
    n,
    row_step,
    label_step,
    m,
    WIDTH: tl.constexpr,  # a row is a tile of WIDTH x DEPTH labels, each thread has DEPTH
    DEPTH: tl.constexpr,
    TILE: tl.constexpr,
    CAPACITY: tl.constexpr,
    NEAR: tl.constexpr,
    NONEMPTY: tl.constexpr,
):
    dtype = expected.dtype.element_ty
    column = tl.arange(0, WIDTH)[:, None] + tl.arange(0, DEPTH)[None, :] * WIDTH
    first = tl.program_id(0).to(tl.int64)  # offsets in large arrays exceed 32 bits
    values = space + first * (2 * CAPACITY + 4 * _RULES)
    sorted_values = values + CAPACITY
    nodes = sorted_values + CAPACITY
    own_places = places + first * (2 * CAPACITY)
    sorted_places = own_places + CAPACITY
    b = tl.load(table)
    for index in range(first, n, tl.num_programs(0)):
        row = tl.load(rows + index).to(tl.int64)
        own = proba + row * row_step
        p = tl.load(own + column, mask=column < m, other=0.0).to(dtype)
        mean = tl.sum(tl.sum(p, 1))
        valid = tl.max(tl.max(tl.abs(p - 0.5), 1)) <= 0.5
        low, high = _window(p, mean, b.to(dtype) * (1.0 + mean), m, NEAR)
        sums, sums_above, number, size = _sum_and_list(
            own, m, low, high, values, own_places, TILE, CAPACITY
        )
        fits = size < CAPACITY
        size = tl.where(fits, size, 0)
        tl.debug_barrier()
        rank_list(values, own_places, sorted_values, sorted_places, size, CAPACITY)
        low, high = low.to(tl.float64), high.to(tl.float64)
        best, taken, proven = best_rank(
            sorted_values,
            size,
            number,
            low,
            high,
            sums,
            sums_above,
            b * 0.0 + m,  # float64
            table,
            nodes,
            CAPACITY,
            _LEVELS,
        )
        log_empty = tl.load(expected + row).to(tl.float64) - _POSTPONED
        best, wins = with_empty_set(best, log_empty, table, NONEMPTY)
        last = tl.load(sorted_values + taken - 1, mask=taken > 0, other=high).to(dtype)
        last = tl.where(wins, last, 2.0)
        end = tl.load(sorted_places + taken - 1, mask=taken > 0, other=-1)
        known = (mean > TINY) & ((mean > _MANY) | (log_empty > -1000.0))
        ready = fits & proven & valid & known
        # The row is read again, from the cache: kept in registers, it would leave few to others.
        p = tl.load(own + column, mask=column < m, other=0.0).to(dtype)
        chosen = (p > last) | ((p == last) & (column <= end))
        written = tl.where(ready, m, 0)
        tl.store(labels + row * label_step + column, chosen.to(tl.int8), mask=column < written)
        tl.store(expected + row, best.to(expected.dtype.element_ty), mask=ready)
        tl.debug_barrier()


def decide_dense_rows(
    proba: Any, rows: Any, labels: Any, expected: Any, objective: Objective, programs: int
) -> Any:
    """Decide the given rows in place; return those that remain, whose `expected` is unchanged.

    `expected` of a given row is POSTPONED plus the logarithm of the probability that it is empty,
    or DENSE, if that is not known: then a row with fewer than MANY expected labels remains. So do
    rows with values outside [0, 1].
    """
    m, device = proba.shape[1], proba.device
    block = max(64, triton.next_power_of_2(m))
    warps = max(1, block // 1024)
    for capacity, near in _WINDOWS:
        count = max(1, min(len(rows), programs // warps))
        with torch.cuda.device(device):
            _many_kernel[(count,)](
                proba,
                rows,
                labels,
                expected,
                table_of(objective.beta, objective.zero_division, device),
                torch.empty((count, 2 * capacity + 4 * RULES), dtype=torch.float64, device=device),
                torch.empty((count, 2 * capacity), dtype=torch.int32, device=device),
                len(rows),
                proba.stride(0),
                m,
                m,
                WIDTH=32 * warps,
                DEPTH=block // (32 * warps),
                TILE=32 * warps,
                CAPACITY=capacity,
                NEAR=near,
                NONEMPTY=objective.nonempty,
                num_warps=warps,
                maxnreg=_REGISTERS if warps == 1 else None,
            )
        rows = rows[expected[rows] < 0.0]
        if len(rows) == 0:
            break
    return rows
