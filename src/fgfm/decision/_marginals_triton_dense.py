"""Decisions for rows in which many labels are expected, by a Triton kernel that reads a row once.

Dinkelbach's iteration finds the threshold that maximises Jensen's lower bound on the expected F.
The few labels near it are sorted, the sets that end among them are compared, and bounds show that
no other set is better (`fgfm.decision._marginals_triton_window`).
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from fgfm.decision._array_api.functions_triton import (
    TINY,
    above,
    add_eight,
    add_pair,
    next_level,
    powers,
)
from fgfm.decision._marginals_triton_window import (
    RULES,
    best_rank,
    rank_list,
    table_of,
    with_empty_set,
)
from fgfm.decision._objective import Objective

__all__ = ["DENSE", "MANY", "POSTPONED", "decide_dense_rows"]

MANY = 150.0  # expected labels of a row; with more, it is not empty but for exp(-MANY)
POSTPONED = -2.0  # plus log P(y = 0), in place of the expected F of a row that is not decided
DENSE = POSTPONED - 1000.0  # instead, if more than MANY labels are expected
_MANY, _POSTPONED, _RULES = map(tl.constexpr, (MANY, POSTPONED, RULES))
_LEVELS = tl.constexpr(16)  # intervals of sizes [2^j, 2^(j + 1)]
_WINDOWS = ((32, 4.0), (256, 24.0))  # capacity of the list, labels expected on each side
_REGISTERS = 128  # per thread, so that a multiprocessor runs 16 warps
_STEPS = tl.constexpr(12)  # of Dinkelbach's iteration, at most


@triton.jit(do_not_specialize=["n", "row_step", "label_step", "m"])
def _dense_kernel(
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
    item = tl.arange(0, TILE)
    zeros = tl.zeros([TILE], tl.float64)
    ones = zeros + 1.0
    first = tl.program_id(0).to(tl.int64)  # offsets in large arrays exceed 32 bits
    values = space + first * (2 * CAPACITY + 4 * _RULES)
    sorted_values = values + CAPACITY
    nodes = sorted_values + CAPACITY
    own_places = places + first * (2 * CAPACITY)
    sorted_places = own_places + CAPACITY
    b = tl.load(table)
    beta2 = b.to(dtype)
    size_limit = b * 0.0 + m  # float64
    for at in range(first, n, tl.num_programs(0)):
        row = tl.load(rows + at).to(tl.int64)
        own = proba + row * row_step
        p = tl.load(own + column, mask=column < m, other=0.0).to(dtype)
        mean = tl.sum(tl.sum(p, 1))
        valid = tl.max(tl.max(tl.abs(p - 0.5), 1)) <= 0.5
        spread = beta2 * (1.0 + mean)
        level = mean / (spread + m)
        before = level * 0.0
        step = n * 0
        while (level > before * 1.01) & (step < _STEPS):  # the last step squares the error
            masses, marks = above(p, level)
            mass, number = tl.reduce((tl.sum(masses, 1), tl.sum(marks, 1)), 0, add_pair)
            before = level
            level = next_level(mass, number, spread)
            step += 1
        near = tl.sum(tl.sum((tl.abs(p - level) < 0.125 * level).to(tl.int32), 1))
        # b high / (b E) is what Jensen's inequality loses in the bound on smaller sets
        reach = level * (NEAR * 0.25 / tl.maximum(near, 1).to(dtype) + 1.5 / mean)
        low = level - tl.minimum(reach, 0.5 * level)
        high = level + tl.minimum(reach, 0.5 * tl.maximum(1.0 - level, 0.0))

        # Power sums of all labels and of those above, and the list of those between. The row is
        # read again, from the cache: tiles of all powers would not fit into registers.
        s1, s2, s3, s4, a1, a2, a3, a4 = zeros, zeros, zeros, zeros, zeros, zeros, zeros, zeros
        zero = tl.zeros([TILE], tl.float32)
        s5, s6, s7, s8, a5, a6, a7, a8 = zero, zero, zero, zero, zero, zero, zero, zero
        number = item * 0
        size = n * 0
        for start in range(0, m, TILE):
            x = tl.load(own + start + item, mask=start + item < m, other=-1.0).to(dtype)
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
            found = tl.sum(marks)
            if found > 0:
                place = size + tl.cumsum(marks, 0) - 1
                is_near = is_near & (place < CAPACITY)
                tl.store(values + place, x1, mask=is_near)
                tl.store(own_places + place, start + item, mask=is_near)
                size += found
        s = tl.reduce((s1, s2, s3, s4, s5, s6, s7, s8), 0, add_eight)
        a = tl.reduce((a1, a2, a3, a4, a5, a6, a7, a8), 0, add_eight)
        number_above = tl.sum(number).to(tl.float64)
        fits = size < CAPACITY
        size = tl.where(fits, size, 0)
        tl.debug_barrier()
        rank_list(values, own_places, sorted_values, sorted_places, size, CAPACITY)
        best, taken, proven = best_rank(
            sorted_values,
            size,
            number_above,
            low.to(tl.float64),
            high.to(tl.float64),
            s,
            a,
            size_limit,
            table,
            nodes,
            CAPACITY,
            _LEVELS,
        )
        log_empty = tl.load(expected + row).to(tl.float64) - _POSTPONED
        best, wins = with_empty_set(best, log_empty, table, NONEMPTY)
        high = high.to(tl.float64)
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
            _dense_kernel[(count,)](
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
