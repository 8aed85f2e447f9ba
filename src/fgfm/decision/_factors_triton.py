"""Decisions from factors of one shape, by a Triton kernel for CUDA tensors of PyTorch.

A warp decides a row: it evaluates the generating functions of all labels at the nodes of a
quadrature rule, and then the best sets of sizes 1, 2, .. until T(k), the sum of all Delta, falls
below the best value. The sum of the k largest Delta is found by bisection, without sorting.
Formulas are those of `fgfm.decision._factors_array_api`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

from fgfm.decision._array_api.backend import Backend, work_bytes
from fgfm.decision._array_api.selection import largest_labels
from fgfm.decision._marginals_triton import multiprocessors
from fgfm.decision._objective import Decision, Objective
from fgfm.decision._quadrature import nodes

__all__ = ["decide_factors"]

_WARPS = 16  # per multiprocessor
_REGISTERS = 128  # per thread, so that a multiprocessor runs 16 warps
_OUTSIDE = -1.0  # in place of a value: the P of a factor is not valid, or only up to rounding


@triton.jit
def _times(a, b):
    return a * b


@triton.jit
def _largest_sum(delta, k, BITS: tl.constexpr, INTEGER: tl.constexpr):
    """Return the sum of the k largest elements, by bisection of their bits."""
    NARROW: tl.constexpr = 8 << (52 if BITS == 64 else 23)
    bits = delta.to(INTEGER, bitcast=True)
    low = tl.zeros([], INTEGER) - 1
    high = tl.maximum(tl.max(bits), NARROW)
    count = k * 0
    step = k * 0
    while (step < BITS) & (count != k):
        # most are within a few powers of two of the largest
        middle = tl.where(step == 0, high - NARROW, low + (high - low) // 2)
        count = tl.sum((bits > middle).to(tl.int32))
        high = tl.where(count <= k, middle, high)
        low = tl.where(count <= k, low, middle)
        step += 1
    above = bits > high
    missing = (k - tl.sum(above.to(tl.int32))).to(delta.dtype)
    least = high.to(delta.dtype, bitcast=True)
    return tl.sum(tl.where(above, delta, 0.0)) + missing * least


@triton.jit(do_not_specialize=["n", "K", "R"])
def _kernel(
    P,
    table,
    powers,
    space,
    values,
    sizes,
    peaks,
    absent,
    deltas,
    n,
    F,
    L,
    S,
    R,
    K,
    slack,
    tie,
    FACTORS: tl.constexpr,
    LABELS: tl.constexpr,
    BITS: tl.constexpr,
    INTEGER: tl.constexpr,
    OUTSIDE: tl.constexpr,
):
    dtype = space.dtype.element_ty
    ALL: tl.constexpr = FACTORS * LABELS
    factor = tl.arange(0, FACTORS)
    label = tl.arange(0, LABELS)
    used = (factor[:, None] < F) & (label[None, :] < L)
    offset = (factor[:, None] * L + label[None, :]) * S
    tile = factor[:, None] * LABELS + label[None, :]
    flat = tl.arange(0, ALL)
    first = tl.program_id(0).to(tl.int64)
    own = space + first * (R * ALL)
    for row in range(first, n, tl.num_programs(0)):
        start = P + row * (F * L * S)
        p = tl.zeros([FACTORS, LABELS], dtype)
        share = tl.zeros([FACTORS, LABELS], dtype)
        least = tl.zeros([FACTORS, LABELS], dtype)
        for s in range(S):
            x = tl.load(start + offset + s, mask=used, other=0.0).to(dtype)
            p += x
            share += x / (s + 1)
            least = tl.minimum(least, x, propagate_nan=tl.PropagateNan.ALL)
        present = tl.sum(share, 1)  # (FACTORS,) sum_s d_s
        valid = tl.sum(tl.sum((least >= 0.0).to(tl.int32), 1)) == ALL
        valid = valid & (tl.max(tl.max(p, 1)) <= 1.0 + slack) & (tl.max(present) <= 1.0 + slack)
        none = tl.maximum(1.0 - present, 0.0)
        gap = 1.0 - present.to(tl.float64)
        log_empty = tl.sum(tl.log(tl.maximum(gap, 1e-30)))

        # C_ir w_r zeta_r (1 + b), at all nodes
        for r in range(R):
            zeta = tl.load(table + r)
            scale = tl.load(table + R + r)
            G = tl.zeros([FACTORS, LABELS], dtype)
            D = tl.zeros([FACTORS, LABELS], dtype)
            for back in range(S):
                s = S - 1 - back
                x = tl.load(start + offset + s, mask=used, other=0.0).to(dtype)
                G = G * zeta + x
                D = (D + x / (s + 1)) * zeta
            own_d = none + tl.sum(D, 1)
            product = tl.reduce(own_d, 0, _times)
            rest = scale * product / tl.where(own_d > 0.0, own_d, 1.0)
            tl.store(own + r * ALL + tile, G * rest[:, None])
        tl.debug_barrier()

        # V_k, k = 1, 2, .., until T(k) < V
        peak = tl.zeros([], dtype)
        bound = tl.zeros([], dtype)
        k = K * 0
        while (k < K) & (bound >= peak):
            d0 = tl.zeros([ALL], dtype)
            d1 = tl.zeros([ALL], dtype)
            d2 = tl.zeros([ALL], dtype)
            d3 = tl.zeros([ALL], dtype)
            for r in range(R):
                c = tl.load(own + r * ALL + flat)
                d0 += c * tl.load(powers + k * R + r)
                d1 += c * tl.load(powers + (k + 1) * R + r)
                d2 += c * tl.load(powers + (k + 2) * R + r)
                d3 += c * tl.load(powers + (k + 3) * R + r)
            v0 = _largest_sum(d0, k + 1, BITS, INTEGER)
            v1 = _largest_sum(d1, k + 2, BITS, INTEGER)
            v2 = _largest_sum(d2, k + 3, BITS, INTEGER)
            v3 = _largest_sum(d3, k + 4, BITS, INTEGER)
            tl.store(values + first * (K + 4) + k, v0)
            tl.store(values + first * (K + 4) + k + 1, v1)
            tl.store(values + first * (K + 4) + k + 2, v2)
            tl.store(values + first * (K + 4) + k + 3, v3)
            peak = tl.maximum(peak, tl.maximum(tl.maximum(v0, v1), tl.maximum(v2, v3)))
            bound = tl.sum(d3) * (1.0 + tie)
            k += 4
        tl.debug_barrier()
        stop = tl.minimum(k, K)
        size = K * 0
        value = tl.zeros([], dtype)
        while value < peak * (1.0 - tie):  # a smaller set wins a tie
            value = tl.load(values + first * (K + 4) + size)
            size += 1
        size = tl.minimum(size, stop)
        delta = tl.zeros([FACTORS, LABELS], dtype)
        for r in range(R):
            delta += tl.load(own + r * ALL + tile) * tl.load(powers + (size - 1) * R + r)
        to = deltas + row * (F * L) + factor[:, None] * L + label[None, :]
        tl.store(to, delta, mask=used)
        tl.store(sizes + row, size)
        tl.store(peaks + row, tl.where(valid, value, OUTSIDE))
        tl.store(absent + row, log_empty)
        tl.debug_barrier()


@lru_cache(maxsize=64)
def _tables(beta: float, m: int, dtype: Any, device: Any) -> tuple[Any, Any, int]:
    """Return zeta_r and the factors of C_ir; z_r^k for k = 1 .. m + 4, (m + 4, R); and R."""
    rule = nodes(beta, m, m)
    zeta = np.exp(beta * beta * rule.log_z)
    scale = (1.0 + beta * beta) * rule.weight * zeta
    powers = np.exp(np.arange(1, m + 5)[:, None] * rule.log_z)
    table = torch.as_tensor(np.concatenate([zeta, scale]), dtype=dtype, device=device)
    return table, torch.as_tensor(powers, dtype=dtype, device=device), len(zeta)


def decide_factors(
    backend: Backend, parts: Sequence[Any], place: Any, objective: Objective
) -> Decision | None:
    """Decide from the P of factors of one shape, each (n, L, S); None if some may not be valid.

    `place` is the position of each label among the labels of the factors.
    """
    n, L, S = parts[0].shape
    row_bytes = len(parts) * L * (S + 8) * max(backend.itemsize, 4)
    rows = max(1, work_bytes(backend) // row_bytes)
    blocks = []
    for start in range(0, n, rows):
        P = torch.stack([part[start : start + rows] for part in parts], dim=1)  # (n, F, L, S)
        block = _decide_block(backend, P, place, objective)
        if block is None:
            return None
        blocks.append(block)
    labels, expected = zip(*blocks, strict=True)
    return Decision(torch.cat(labels), torch.cat(expected))


def _decide_block(
    backend: Backend, P: Any, place: Any, objective: Objective
) -> tuple[Any, Any] | None:
    """Decide a block of rows, (n, F, L, S)."""
    n, F, L, S = P.shape
    m, device, dtype = F * L, P.device, backend.dtype
    table, powers, R = _tables(objective.beta, m, dtype, device)
    labels, factors = triton.next_power_of_2(L), max(32, triton.next_power_of_2(F))
    programs = min(n, _WARPS * multiprocessors(device))
    sizes = torch.empty(n, dtype=torch.int32, device=device)
    peak = torch.empty(n, dtype=dtype, device=device)
    log_empty = torch.empty(n, dtype=torch.float64, device=device)
    delta = torch.empty((n, m), dtype=dtype, device=device)
    double = backend.itemsize == 8
    with torch.cuda.device(device):
        _kernel[(programs,)](
            P,
            table,
            powers,
            torch.empty((programs, R * factors * labels), dtype=dtype, device=device),
            torch.empty((programs, m + 4), dtype=dtype, device=device),
            sizes,
            peak,
            log_empty,
            delta,
            n,
            F,
            L,
            S,
            R,
            m,
            backend.slack,
            backend.tie,
            FACTORS=factors,
            LABELS=labels,
            BITS=64 if double else 32,
            INTEGER=tl.int64 if double else tl.int32,
            OUTSIDE=_OUTSIDE,
            num_warps=max(1, factors * labels // (256 if double else 512)),
            maxnreg=_REGISTERS,
        )
    if bool((peak < 0.0).any()):
        return None
    empty = (torch.exp(log_empty) * objective.empty_value).to(dtype)
    present = -torch.expm1(log_empty).to(dtype)
    if objective.nonempty:
        wins = (peak > 0.0) & (present > 0.0)
        expected = torch.where(wins, peak / torch.where(wins, present, 1.0), torch.nan)
    else:
        wins = peak > empty * (1.0 + backend.tie)
        expected = torch.where(wins, peak, empty)
    size = torch.where(wins, sizes, 0)
    delta = delta[:, place]
    order = delta.sort(dim=1, descending=True).values
    least = order.gather(1, (size.long() - 1).clamp(min=0)[:, None])[:, 0]
    return largest_labels(backend, delta, least, backend.floats(size), backend.tie), expected
