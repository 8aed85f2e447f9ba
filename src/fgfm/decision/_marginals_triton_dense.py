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

from fgfm.decision._marginals_triton_window import (
    RULES,
    add_eight,
    best_rank,
    powers,
    rank_list,
    table_of,
)
from fgfm.decision._objective import Objective

__all__ = ["POSTPONED", "decide_dense_rows"]

POSTPONED = -2.0
_LEVELS = 16  # intervals of sizes [2^j, 2^(j + 1)]
_WINDOWS = ((32, 4.0), (256, 24.0))  # capacity of the list, labels expected on each side
_REGISTERS = 128  # per thread, so that a multiprocessor runs 16 warps
_STEPS = 12  # of Dinkelbach's iteration, at most


@triton.jit
def _sum_powers(x):
    """Return the eight power sums of a tile."""
    p1, p2, p3, p4, p5, p6, p7, p8 = powers(x)
    return tl.reduce(
        (
            tl.sum(p1, 1),
            tl.sum(p2, 1),
            tl.sum(p3, 1),
            tl.sum(p4, 1),
            tl.sum(p5, 1),
            tl.sum(p6, 1),
            tl.sum(p7, 1),
            tl.sum(p8, 1),
        ),
        0,
        add_eight,
    )


@triton.jit
def _add_two(a1, a2, b1, b2):
    return a1 + b1, a2 + b2


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
    CAPACITY: tl.constexpr,
    CHUNK: tl.constexpr,
    RULES: tl.constexpr,
    LEVELS: tl.constexpr,
    STEPS: tl.constexpr,
    NEAR: tl.constexpr,
    POSTPONED: tl.constexpr,
    NONEMPTY: tl.constexpr,
):
    dtype = expected.dtype.element_ty
    column = tl.arange(0, WIDTH)[:, None] + tl.arange(0, DEPTH)[None, :] * WIDTH
    first = tl.program_id(0).to(tl.int64)  # offsets in large arrays exceed 32 bits
    values = space + first * (2 * CAPACITY + 4 * RULES)
    sorted_values = values + CAPACITY
    nodes = sorted_values + CAPACITY
    own_places = places + first * (2 * CAPACITY)
    sorted_places = own_places + CAPACITY
    b = tl.load(table)
    size_limit = b * 0.0 + m  # float64
    for at in range(first, n, tl.num_programs(0)):
        row = tl.load(rows + at).to(tl.int64)
        inside = column < m
        p = tl.load(proba + row * row_step + column, mask=inside, other=0.0).to(dtype)
        s = _sum_powers(p)
        mean = s[0]
        spread = (b * (1.0 + mean)).to(dtype)
        level = mean.to(dtype) / (spread + m)
        before = level * 0.0
        step = n * 0
        while (level > before * (1.0 + 1e-3)) & (step < STEPS):
            held = p > level
            mass, number = tl.reduce(
                (tl.sum(tl.where(held, p, 0.0), 1), tl.sum(held.to(tl.int32), 1)), 0, _add_two
            )
            before = level
            level = mass / (spread + number)
            step += 1
        close = tl.abs(p - level) < 0.125 * level
        near = tl.sum(tl.sum(close.to(tl.int32), 1))
        # b high / (b E) is what Jensen's inequality loses in the bound on smaller sets
        reach = level * (NEAR * 0.25 / tl.maximum(near, 1).to(dtype) + 1.5 / mean.to(dtype))
        low = level - tl.minimum(reach, 0.5 * level)
        high = level + reach
        is_above = p > high
        above = tl.sum(tl.sum(is_above.to(tl.int32), 1)).to(tl.float64)
        a = _sum_powers(tl.where(is_above, p, 0.0))
        is_near = (p >= low) & (p <= high)
        marks = is_near.to(tl.int32)
        inner = tl.cumsum(marks, 1)
        own_count = tl.sum(marks, 1)
        place = tl.cumsum(own_count)[:, None] - own_count[:, None] + inner - 1
        size = tl.sum(own_count)
        fits = size < CAPACITY
        is_near = is_near & (place < CAPACITY)
        tl.store(values + place, p.to(tl.float64), mask=is_near)
        tl.store(own_places + place, column, mask=is_near)
        size = tl.where(fits, size, 0)
        tl.debug_barrier()
        rank_list(values, own_places, sorted_values, sorted_places, size, CAPACITY, CHUNK)
        best, taken, proven = best_rank(
            sorted_values,
            size,
            above,
            low.to(tl.float64),
            high.to(tl.float64),
            s,
            a,
            size_limit,
            table,
            nodes,
            RULES,
            CAPACITY,
            LEVELS,
        )
        best *= 1.0 + b
        log_empty = tl.load(expected + row).to(tl.float64) - POSTPONED
        absent = tl.exp(tl.maximum(log_empty, -700.0))
        if NONEMPTY:
            wins = best > 0.0
            best = best / (1.0 - absent)
        else:
            empty = tl.load(table + 1) * absent
            wins = best > empty * (1.0 + tl.load(table + 2))
            best = tl.where(wins, best, empty)
        # The row is read again, from the cache: kept in registers, it would leave few to others.
        p = tl.load(proba + row * row_step + column, mask=inside, other=0.0).to(dtype)
        high = high.to(tl.float64)
        last = tl.load(sorted_values + taken - 1, mask=taken > 0, other=high).to(dtype)
        end = tl.load(sorted_places + taken - 1, mask=taken > 0, other=-1)
        chosen = (p > last) | ((p == last) & (column <= end))
        chosen = tl.where(wins, chosen.to(tl.int8), 0)
        ready = fits & proven
        written = tl.where(ready, m, 0)
        tl.store(labels + row * label_step + column, chosen, mask=column < written)
        tl.store(expected + row, best.to(expected.dtype.element_ty), mask=ready)
        tl.debug_barrier()


def decide_dense_rows(
    proba: Any, rows: Any, labels: Any, expected: Any, objective: Objective, programs: int
) -> Any:
    """Decide the given rows in place; return those that remain, whose `expected` is unchanged.

    `expected` of a given row is POSTPONED plus the logarithm of the probability that it is empty.
    """
    m, device = proba.shape[1], proba.device
    block = max(64, triton.next_power_of_2(m))
    warps = max(1, block // 1024)
    for capacity, near in _WINDOWS:
        count = max(1, min(len(rows), programs // warps))
        _dense_kernel[(count,)](
            proba,
            rows,
            labels,
            expected,
            table_of(objective, device),
            torch.empty((count, 2 * capacity + 4 * RULES), dtype=torch.float64, device=device),
            torch.empty((count, 2 * capacity), dtype=torch.int32, device=device),
            len(rows),
            proba.stride(0),
            m,
            m,
            WIDTH=32 * warps,
            DEPTH=block // (32 * warps),
            CAPACITY=capacity,
            CHUNK=8,
            RULES=RULES,
            LEVELS=_LEVELS,
            STEPS=_STEPS,
            NEAR=near,
            POSTPONED=POSTPONED,
            NONEMPTY=objective.nonempty,
            num_warps=warps,
            maxnreg=_REGISTERS if warps == 1 else None,
        )
        rows = rows[expected[rows] < 0.0]
        if len(rows) == 0:
            break
    return rows
