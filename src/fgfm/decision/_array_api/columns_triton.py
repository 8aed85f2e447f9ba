"""Sums of the largest elements of a row, by a Triton kernel."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

__all__ = ["largest_sums"]


@triton.jit
def _kernel(
    delta,
    admitted,
    values,
    M,
    first,
    LABELS: tl.constexpr,
    SIZES: tl.constexpr,
    BITS: tl.constexpr,
    INTEGER: tl.constexpr,
):
    """Sum the k largest elements of a row, k = first + 1, first + 2, .., or 0 if not admitted."""
    at = tl.program_id(0).to(tl.int64)
    k = first + at % SIZES
    label = tl.arange(0, LABELS)
    value = tl.zeros([], delta.dtype.element_ty)
    if k < tl.load(admitted + at // SIZES):
        x = tl.load(delta + at * M + label, mask=label < M, other=0.0)
        # The k-th largest by bisection: numbers that are not negative are ordered as their bits.
        bits = x.to(INTEGER, bitcast=True)
        low = tl.zeros([], INTEGER) - 1
        high = tl.max(bits)
        for step in range(BITS):  # noqa: B007
            middle = low + (high - low) // 2
            enough = tl.sum((bits > middle).to(tl.int32)) <= k
            high = tl.where(enough, middle, high)
            low = tl.where(enough, low, middle)
        above = bits > high
        missing = k + 1 - tl.sum(above.to(tl.int32))
        least = high.to(delta.dtype.element_ty, bitcast=True)
        value = tl.sum(tl.where(above, x, 0.0)) + missing.to(delta.dtype.element_ty) * least
    tl.store(values + at, value)


def largest_sums(delta: Any, first: int, admitted: Any) -> Any:
    """Return the sum of the ``first + 1 + j`` largest elements of ``delta[:, j]``, (n, sizes).

    Sizes beyond ``admitted``, (n,), have the value 0.
    """
    n, sizes, M = delta.shape
    values = torch.empty((n, sizes), dtype=delta.dtype, device=delta.device)
    double = delta.dtype == torch.float64
    labels = max(32, triton.next_power_of_2(M))
    with torch.cuda.device(delta.device):
        _kernel[(n * sizes,)](
            delta,
            admitted,
            values,
            M,
            first,
            LABELS=labels,
            SIZES=sizes,
            BITS=64 if double else 32,
            INTEGER=tl.int64 if double else tl.int32,
            num_warps=max(1, min(8, labels // 1024)),
        )
    return values
