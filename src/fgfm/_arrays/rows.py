"""Independent labels on a CUDA device of PyTorch: one program of a Triton kernel decides a row.

The row is read once, into registers. What is needed of it at every node of the quadrature rule
comes from power sums of its small labels and from a short list of the others; what can be in an
optimal set comes from a second list, sorted by counting. Formulas and bounds are those of
`fgfm._kernels.marginals`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

from fgfm._arrays.marginals import POWERS, SMALL
from fgfm._arrays.space import Space, to_host
from fgfm._dispatch import Decision, Objective
from fgfm._quadrature import nodes
from fgfm._validation import check_probabilities

__all__ = ["decide_rows"]

_CHUNK = 32  # labels of a list that are worked on at once
_LISTS = 4  # of a row's length, that a program has as work space
_ROW = 1024  # labels per warp
_WARPS = 32  # per multiprocessor, that are asked for


@triton.jit
def _times(a, b):
    return a * b


@triton.jit
def _kernel(
    proba,
    labels,
    expected,
    table,
    space,
    n,
    row_step,
    label_step,
    m,
    ALIGN: tl.constexpr,
    BLOCK: tl.constexpr,
    NODES: tl.constexpr,
    CHUNK: tl.constexpr,
    POWERS: tl.constexpr,
    NONEMPTY: tl.constexpr,
):
    dtype = expected.dtype.element_ty
    column = tl.arange(0, BLOCK)
    lane = tl.arange(0, NODES)
    item = tl.arange(0, CHUNK)
    zeta = tl.load(table + lane)
    u = tl.load(table + NODES + lane)
    scale = tl.load(table + 2 * NODES + lane)
    leap = tl.load(table + 3 * NODES + lane)
    z_powers = table + 4 * NODES + item[:, None] * NODES + lane[None, :]
    settings = table + (4 + CHUNK) * NODES
    beta2 = tl.load(settings)
    zero_division = tl.load(settings + 1)
    slack = tl.load(settings + 2)
    tie = tl.load(settings + 3)
    margin = tl.load(settings + 4)
    share = tl.load(settings + 5)
    small = tl.load(settings + 6)
    is_empty = lane == NODES - 1  # the last node has zeta = 0: the probability of the empty set
    first = tl.program_id(0).to(tl.int64)  # places in large arrays exceed 32 bits
    large_list = space + first * (4 * BLOCK)
    found_list = large_list + BLOCK
    sorted_list = found_list + BLOCK
    values = sorted_list + BLOCK
    for row in range(first, n, tl.num_programs(0)):
        start_of_row = row * (row_step * ALIGN)
        inside = column < m
        p = tl.load(proba + start_of_row + column, mask=inside, other=0.0).to(dtype)
        valid = (p >= -slack) & (p <= 1.0 + slack)
        wrong = tl.sum(1 - valid.to(tl.int32))
        p = tl.where(valid, tl.minimum(tl.maximum(p, 0.0), 1.0), 0.0)
        mean = tl.sum(p)
        top = tl.max(p)

        # D(zeta): power sums of the small labels, products of the large ones
        is_large = p > small
        few = tl.where(is_large, 0.0, p)
        power = few
        u_power = u
        exponent = u * 0.0
        for j in tl.static_range(1, POWERS + 1):
            exponent += tl.sum(power) / j * u_power
            power *= few
            u_power *= u
        flags = is_large.to(tl.int32)
        count = tl.sum(flags)
        tl.store(large_list + tl.cumsum(flags) - 1, p, mask=is_large)
        tl.debug_barrier()
        tile = tl.full([CHUNK, NODES], 1.0, dtype)
        for start in range(0, count, CHUNK):
            x = tl.load(large_list + start + item, mask=start + item < count, other=0.0)
            tile *= (1.0 - x)[:, None] + x[:, None] * zeta[None, :]
        product = tl.reduce(tile, 0, _times)
        log_empty = -tl.sum(tl.where(is_empty, exponent, 0.0))
        none_large = tl.sum(tl.where(is_empty, product, 0.0))
        product *= tl.exp(-exponent)
        if NONEMPTY:
            empty = mean * 0.0
            log_empty += tl.log(none_large)
            # 1 - exp(x), without cancellation where x is small
            present = mean * 0.0 + 1.0
            for j in tl.static_range(0, 17):
                present = 1.0 + log_empty / (18 - j) * present
            present = tl.where(log_empty > -0.5, -log_empty * present, 1.0 - tl.exp(log_empty))
        else:
            empty = zero_division * none_large * tl.exp(log_empty)
            present = mean * 0.0 + 1.0

        # the best value of mass / (spread + size), by Dinkelbach's iteration: a lower bound
        spread = beta2 * (1.0 + mean)
        level = top / (spread + 1.0)
        for _ in tl.static_range(4):
            held = p > level
            mass = tl.sum(tl.where(held, p, 0.0))
            level = tl.maximum(level, mass / (spread + tl.sum(held.to(dtype))))
        floor = tl.maximum((1.0 + beta2) * level, empty)
        least = tl.minimum(top, floor * share)
        beaten = (1.0 + beta2) * mean <= empty * (1.0 + tie) * (beta2 * mean + 1.0)
        least = tl.where(beaten, 2.0, least)

        # the candidates, sorted: the place of each is the number of those before it
        is_found = (p >= least) & (p > 0.0)
        flags = is_found.to(tl.int32)
        found = tl.sum(flags)
        tl.store(found_list + tl.cumsum(flags) - 1, p, mask=is_found)
        tl.debug_barrier()
        for start in range(0, found, CHUNK):
            own = start + item
            x = tl.load(found_list + own, mask=own < found, other=-1.0)
            place = item * 0
            for other_start in range(0, found, CHUNK):
                other = other_start + item
                y = tl.load(found_list + other, mask=other < found, other=-1.0)
                earlier = other[None, :] < own[:, None]
                before = (y[None, :] > x[:, None]) | ((y[None, :] == x[:, None]) & earlier)
                place += tl.sum(before.to(tl.int32), 1)
            tl.store(sorted_list + place, x, mask=own < found)
        tl.debug_barrier()

        # V_k
        most = mean * ((1.0 + beta2) / floor * (1.0 + margin) - beta2) + 1.0
        most = tl.where(most < m, most, m * 1.0)
        limit = tl.where(found > 0, tl.minimum(found, most.to(tl.int32)), 0)
        factor = scale * product
        total = u * 0.0
        peak = mean * 0.0
        for start in range(0, limit, CHUNK):
            k = start + item
            x = tl.load(sorted_list + k, mask=k < limit, other=0.0)
            own_factor = (1.0 - x)[:, None] + x[:, None] * zeta[None, :]
            part = x[:, None] / tl.where(own_factor > 0.0, own_factor, 1.0)
            sums = tl.cumsum(part, 0) + total[None, :]
            value = tl.sum(sums * (factor[None, :] * tl.load(z_powers)), 1)
            tl.store(values + k, value, mask=k < limit)
            peak = tl.maximum(peak, tl.max(tl.where(k < limit, value, 0.0)))
            total += tl.sum(part, 0)
            factor *= leap
        tl.debug_barrier()
        size = limit
        for start in range(0, limit, CHUNK):
            k = start + item
            value = tl.load(values + k, mask=k < limit, other=0.0)
            size = tl.minimum(size, tl.min(tl.where(value >= peak * (1.0 - tie), k + 1, limit)))
        if NONEMPTY:
            wins = (peak > 0.0) & (present > 0.0)
        else:
            wins = peak > empty * (1.0 + tie)
        size = tl.where(wins, size, 0)
        last = tl.load(sorted_list + size - 1, mask=size > 0, other=2.0)
        best = tl.load(values + size - 1, mask=size > 0, other=0.0)

        chosen = (p >= last).to(tl.int32)
        if tl.sum(chosen) > size:  # of equal labels the first ones
            equal = (p == last).to(tl.int32)
            above = (p > last).to(tl.int32)
            left = size - tl.sum(above)
            chosen = above + tl.where(tl.cumsum(equal) <= left, equal, 0)
        if NONEMPTY:
            answer = tl.where(wins, best / present, float("nan"))
        else:
            answer = tl.where(wins, best, empty)
        answer = tl.where(wrong > 0, -1.0, answer)
        tl.store(expected + row, answer)
        start_of_row = row * (label_step * ALIGN)
        tl.store(labels + start_of_row + column, chosen.to(tl.int8), mask=inside)
        tl.debug_barrier()


@lru_cache(maxsize=64)
def _table(beta: float, m: int, settings: tuple[float, ...], dtype: Any, device: Any) -> Any:
    """Give what the kernel reads of the rule for rows of m labels, and of the settings."""
    rule = nodes(beta, m, m)
    beta2 = beta * beta
    width = max(_CHUNK, triton.next_power_of_2(len(rule.log_z) + 1))
    log_z = np.zeros(width)
    log_z[: len(rule.log_z)] = rule.log_z
    zeta, u = np.exp(beta2 * log_z), -np.expm1(beta2 * log_z)
    scale = np.zeros(width)
    scale[: len(rule.weight)] = (1.0 + beta2) * rule.weight
    scale *= zeta * np.exp(log_z)
    zeta[-1], u[-1] = 0.0, 1.0
    z_powers = np.exp(np.arange(_CHUNK)[:, None] * log_z)  # (chunk, width)
    table = np.vstack([zeta, u, scale, np.exp(_CHUNK * log_z), z_powers])
    flat = np.concatenate([table.ravel(), settings])
    return torch.as_tensor(flat, dtype=dtype, device=device), width


def decide_rows(space: Space, proba: Any, objective: Objective) -> Decision:
    """Decide from marginals, (n, m), of a CUDA device."""
    n, m = proba.shape
    if proba.stride(1) != 1:
        proba = proba.contiguous()
    beta2, margin = objective.beta2, space.margin
    double = space.itemsize == 8
    settings = (
        beta2,
        objective.zero_division,
        space.slack,
        space.tie,
        margin,
        (1.0 - margin) / ((1.0 + beta2) * (1.0 + 1.0 / (beta2 + 2.0))),
        SMALL,
    )
    table, width = _table(objective.beta, m, settings, space.dtype, proba.device)
    labels = torch.empty((n, m), dtype=torch.int8, device=proba.device)
    expected = torch.empty((n,), dtype=space.dtype, device=proba.device)
    block = max(128, triton.next_power_of_2(m))
    warps = max(1, block // _ROW)
    programs = min(n, _multiprocessors(proba.device) * max(1, _WARPS // warps))
    lists = torch.empty((programs, _LISTS * block), dtype=space.dtype, device=proba.device)
    align = 4 if m % 4 == 0 and proba.stride(0) % 4 == 0 else 1
    with torch.cuda.device(proba.device):
        _kernel[(programs,)](
            proba,
            labels,
            expected,
            table,
            lists,
            n,
            proba.stride(0) // align,
            m // align,
            m,
            ALIGN=align,
            BLOCK=block,
            NODES=width,
            CHUNK=_CHUNK,
            POWERS=POWERS if double else POWERS // 2,
            NONEMPTY=objective.nonempty,
            num_warps=warps,
        )
    wrong = expected < 0.0
    if bool(wrong.any()):
        row = int(wrong.to(torch.int8).argmax())
        check_probabilities(to_host(proba[row : row + 1]), "proba", row)
    return Decision(labels, expected)


@lru_cache(maxsize=16)
def _multiprocessors(device: Any) -> int:
    return int(torch.cuda.get_device_properties(device).multi_processor_count)
