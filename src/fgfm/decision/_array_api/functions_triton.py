"""Functions that several Triton kernels call."""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["add_pair", "nan_max", "nan_min", "one_minus_exp", "times"]


@triton.jit
def times(a, b):
    """Return a b, for a product over an axis."""
    return a * b


@triton.jit
def add_pair(a1, a2, b1, b2):
    """Add two pairs, for two sums over an axis."""
    return a1 + b1, a2 + b2


@triton.jit
def nan_min(a, b):
    """Return the smaller number, or NaN if there is one."""
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def nan_max(a, b):
    """Return the larger number, or NaN if there is one."""
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def one_minus_exp(x):
    """Return 1 - exp(x) for x <= 0, without cancellation where x is small."""
    series = x * 0.0 + 1.0  # (exp(x) - 1) / x
    for j in tl.static_range(0, 17):
        series = 1.0 + x * (1.0 / (18 - j)) * series
    return tl.where(x > -0.5, -x * series, 1.0 - tl.exp(x))
