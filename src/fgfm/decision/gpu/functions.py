"""What several Triton kernels use: precision of a decision, device functions, host functions."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

from fgfm._kernels import native

SMALL = tl.constexpr(native.SMALL)  # labels up to this probability enter through power sums
TAIL = tl.constexpr(native.TAIL)  # numbers of labels of probability exp(-TAIL) are negligible
TINY = tl.constexpr(1e-30)  # rows of less probability, given a label, are decided on the host


class Precision(NamedTuple):
    """In which precision a decision is computed."""

    dtype: Any
    itemsize: int  # its bytes
    tie: float  # values with a smaller relative difference count as equal
    margin: float  # relative rounding error of bounds: candidates beyond it are discarded
    slack: float  # rounding error of a probability, or a sum, in the least precise array


SINGLE = Precision(torch.float32, 4, tie=2e-6, margin=1e-4, slack=1e-5)
DOUBLE = Precision(torch.float64, 8, tie=1e-12, margin=1e-9, slack=1e-9)


@cache
def multiprocessors(device: Any) -> int:
    """Return the number of multiprocessors of a device."""
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


def work_bytes(device: Any) -> int:
    """Return the memory for the temporary arrays of one block of rows."""
    free, _ = torch.cuda.mem_get_info(device)
    return int(min(1 << 32, free // 4))


def largest_labels(value: Any, least: Any, size: Any) -> Any:
    """Mark the labels of largest value; among equal ones those of lowest index: (n, m), int8.

    `value` is (n, m), `least`, (n,), the smallest value among the labels to choose, and `size`,
    (n,), their number.
    """
    larger, equal = value > least[:, None], value == least[:, None]
    left = size - larger.sum(dim=1)  # (n,) how many of the equal ones are chosen
    chosen = larger | (equal & (equal.cumsum(dim=1) <= left[:, None]))
    return (chosen & (size > 0)[:, None]).to(torch.int8)


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


@triton.jit
def load_four(table):
    """Return the first four numbers of a table."""
    return tl.load(table), tl.load(table + 1), tl.load(table + 2), tl.load(table + 3)


@triton.jit
def best_or_empty(best, peak, empty, present, tie, NONEMPTY):
    """Return the expected F, and True if the best set is better than the empty one.

    `peak` is the largest value, `empty` that of the empty set, and `present` P(y != 0).
    """
    if NONEMPTY:
        wins = (peak > 0.0) & (present > 0.0)
        answer = tl.where(wins, best / tl.where(wins, present, 1.0), float("nan"))
    else:
        wins = peak > empty * (1.0 + tie)
        answer = tl.where(wins, best, empty)
    return answer, wins


# Dinkelbach's iteration for the maximum of mass / (spread + number) over the sets of the most
# probable labels: Jensen's lower bound on the optimum, divided by 1 + beta^2.


@triton.jit
def above(x, level):
    """Return what each label adds to the mass and the number of the labels above a level."""
    held = x > level
    return tl.where(held, x, 0.0), held.to(tl.int32)


@triton.jit
def next_level(mass, number, spread):
    """Return the next level from the mass and the number of the labels above the last one."""
    return mass / tl.maximum(spread + number, 1e-30)  # spread underflows where beta is tiny


# Power sums S_j = sum_i p_i^j, j = 1 .. 8.


@triton.jit
def powers(x, LOW: tl.constexpr, HIGH: tl.constexpr):
    """Return x, x^2, .., x^8: four powers in LOW, and four that matter less in HIGH."""
    y = x.to(HIGH)
    y2 = y * y
    y4 = y2 * y2
    y6 = y4 * y2
    x = x.to(LOW)
    x2 = x * x
    return x, x2, x2 * x, x2 * x2, y4 * y, y6, y6 * y, y4 * y4


@triton.jit
def add_eight(a1, a2, a3, a4, a5, a6, a7, a8, b1, b2, b3, b4, b5, b6, b7, b8):
    """Add two tuples of power sums."""
    return a1 + b1, a2 + b2, a3 + b3, a4 + b4, a5 + b5, a6 + b6, a7 + b7, a8 + b8


@triton.jit
def add_powers(x, s1, s2, s3, s4, s5, s6, s7, s8, HIGH: tl.constexpr):
    """Add the powers of x to sums in float64, and in HIGH from the fifth on."""
    x1, x2, x3, x4, x5, x6, x7, x8 = powers(x, tl.float64, HIGH)
    return s1 + x1, s2 + x2, s3 + x3, s4 + x4, s5 + x5, s6 + x6, s7 + x7, s8 + x8


@triton.jit
def exponent(s1, s2, s3, s4, s5, s6, s7, s8, u):
    """Return -log prod_i (1 - p_i u) from the power sums, by Horner's rule."""
    high = s5 * (1.0 / 5) + u * (s6 * (1.0 / 6) + u * (s7 * (1.0 / 7) + u * (s8 * (1.0 / 8))))
    return u * (s1 + u * (s2 / 2 + u * (s3 * (1.0 / 3) + u * (s4 / 4 + u * high))))
