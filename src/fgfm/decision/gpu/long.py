"""Decisions for rows of any length, by Triton kernels with many programs per row.

Three passes over the probabilities decide a row in which many labels are expected:

1. power sums, and one step of Dinkelbach's iteration from a threshold that a sample suggests
   (rows in which it was not close enough take further steps);
2. the labels near the threshold, and power sums of those above; a single program sorts these few
   labels and compares the sets that end among them (`fgfm.decision.gpu.many`);
3. the chosen labels.

Where few labels are expected, pass 2 lists all labels that are not small or can be chosen, and
`fgfm.decision.gpu.rows` decides from the list.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

from fgfm.decision._objective import Decision, Objective
from fgfm.decision.gpu.functions import (
    SMALL,
    TINY,
    Precision,
    above,
    add_eight,
    add_powers,
    exponent,
    nan_max,
    nan_min,
    next_level,
    work_bytes,
)
from fgfm.decision.gpu.many import (
    MANY,
    RULES,
    best_rank,
    rank_list,
    table_of,
    with_empty_set,
)
from fgfm.decision.gpu.rows import check_rows, decide_listed

_PART = 8192  # labels per program of a pass
_TILE = 128  # labels that a program reads at once
_WRITTEN = 16384  # labels per program of the last pass
_SAMPLES = (2048, 32768)  # labels, in rows of up to _FEW_LABELS and in longer ones
_FEW_LABELS = 1 << 23
_FEW_ROWS = 8
_CAPACITY = 1024  # labels near the threshold of a row
_LONGEST_LIST = 16384  # labels
_STEPS = 4  # of Dinkelbach's iteration over all labels, at most
_LEVELS = tl.constexpr(32)  # intervals of sizes [2^j, 2^(j + 1)]
_SUMS = tl.constexpr(13)  # numbers of a part in the first pass: eight power sums, and
_ABOVE, _MASS, _NEAR, _SMALLEST, _LARGEST = map(tl.constexpr, range(8, 13))
_STATE = tl.constexpr(18)  # numbers of a row: eight power sums, and
_LEVEL, _ACTIVE, _LOW, _HIGH, _LISTED = map(tl.constexpr, range(8, 13))
_LEAST, _TOP, _LAST, _END, _STATUS = map(tl.constexpr, range(13, 18))
_DECIDED, _IN_LIST, _OUTSIDE, _FAILED = map(tl.constexpr, range(4))  # status
_RULES = tl.constexpr(RULES)
_MANY = tl.constexpr(MANY)  # with fewer expected labels, all that are not small are listed
_NEARBY = tl.constexpr(0.125)  # relative distance of labels near the threshold, which are counted
_AROUND = tl.constexpr(24.0)  # labels expected on each side of the threshold in a list


@triton.jit
def _take_sample(
    proba,
    state,
    row_step,
    m,
    stride,
    beta2,
    SAMPLE: tl.constexpr,
    DTYPE: tl.constexpr,
):
    """Estimate the threshold of each row."""
    row = tl.program_id(0).to(tl.int64)
    place = tl.arange(0, SAMPLE).to(tl.int64) * stride + stride // 2
    x = tl.load(proba + row * row_step + place, mask=place < m, other=0.0).to(DTYPE)
    own = state + row * _STATE
    spread = beta2 * (1.0 / stride + tl.sum(x))
    level = spread * 0.0
    for step in range(6):  # noqa: B007
        masses, marks = above(x, level)
        level = next_level(tl.sum(masses), tl.sum(marks), spread)
    tl.store(own + _LEVEL, level.to(tl.float64))
    tl.store(own + _ACTIVE, 1.0)


@triton.jit
def _store_sums(to, step, sums):
    """Store eight power sums, `step` numbers apart."""
    for j in tl.static_range(0, 8):
        tl.store(to + j * step, sums[j].to(tl.float64))


@triton.jit
def _sum_parts(
    proba,
    state,
    sums,
    row_step,
    m,
    parts,
    PART: tl.constexpr,
    TILE: tl.constexpr,
    DTYPE: tl.constexpr,
    FIRST: tl.constexpr,
):
    """Sum over a part of a row: all labels (FIRST), and those above the threshold and near it."""
    row = (tl.program_id(0) // parts).to(tl.int64)
    part = tl.program_id(0) % parts
    own = state + row * _STATE
    level = tl.load(own + _LEVEL)
    start = part.to(tl.int64) * PART
    stop = tl.minimum(start + PART, m)
    if not FIRST:
        stop = tl.where(tl.load(own + _ACTIVE) > 0.0, stop, start)
    level = level.to(DTYPE)
    lower = level * (1.0 - _NEARBY)
    upper = level * (1.0 + _NEARBY)
    item = tl.arange(0, TILE)
    zero = tl.zeros([TILE], tl.float64)
    s1, s2, s3, s4, mass = zero, zero, zero, zero, zero
    # Sums of a list are subtracted from these: float32 would not leave the digits of float64.
    zero = tl.zeros([TILE], DTYPE)
    s5, s6, s7, s8 = zero, zero, zero, zero
    least = tl.zeros([TILE], DTYPE)
    top = tl.zeros([TILE], DTYPE)
    number = item * 0
    near = item * 0
    values = proba + row * row_step + item
    following = tl.load(values + start, mask=start + item < stop, other=0.0)
    for first in range(start, stop, TILE):
        x = following.to(DTYPE)
        place = first + TILE + item
        following = tl.load(values + first + TILE, mask=place < stop, other=0.0)
        own_mass, is_above = above(x, level)
        number += is_above
        mass += own_mass.to(tl.float64)
        near += ((x > lower) & (x < upper)).to(tl.int32)
        if FIRST:
            least = nan_min(least, x)
            top = nan_max(top, x)
            s1, s2, s3, s4, s5, s6, s7, s8 = add_powers(x, s1, s2, s3, s4, s5, s6, s7, s8, DTYPE)
    to = sums + row * parts * _SUMS + part
    tl.store(to + parts * _ABOVE, tl.sum(number).to(tl.float64))
    tl.store(to + parts * _MASS, tl.sum(mass))
    tl.store(to + parts * _NEAR, tl.sum(near).to(tl.float64))
    if FIRST:
        _store_sums(to, parts, tl.reduce((s1, s2, s3, s4, s5, s6, s7, s8), 0, add_eight))
        tl.store(to + parts * _SMALLEST, tl.reduce(least, 0, nan_min).to(tl.float64))
        tl.store(to + parts * _LARGEST, tl.reduce(top, 0, nan_max).to(tl.float64))


@triton.jit
def _total(sums, parts, WIDE: tl.constexpr):
    """Sum the eight power sums of the parts of a row."""
    item = tl.arange(0, WIDE)
    zero = tl.zeros([WIDE], tl.float64)
    s1, s2, s3, s4, s5, s6, s7, s8 = zero, zero, zero, zero, zero, zero, zero, zero
    for start in range(0, parts, WIDE):
        address = sums + start + item
        known = start + item < parts
        s1 += tl.load(address, mask=known, other=0.0)
        s2 += tl.load(address + parts, mask=known, other=0.0)
        s3 += tl.load(address + 2 * parts, mask=known, other=0.0)
        s4 += tl.load(address + 3 * parts, mask=known, other=0.0)
        s5 += tl.load(address + 4 * parts, mask=known, other=0.0)
        s6 += tl.load(address + 5 * parts, mask=known, other=0.0)
        s7 += tl.load(address + 6 * parts, mask=known, other=0.0)
        s8 += tl.load(address + 7 * parts, mask=known, other=0.0)
    return tl.reduce((s1, s2, s3, s4, s5, s6, s7, s8), 0, add_eight)


@triton.jit
def _total_near(sums, parts, WIDE: tl.constexpr):
    """Sum the number of labels above the threshold, their mass, and the number near it."""
    item = tl.arange(0, WIDE)
    zero = tl.zeros([WIDE], tl.float64)
    number, mass, near = zero, zero, zero
    for start in range(0, parts, WIDE):
        address = sums + parts * _ABOVE + start + item
        known = start + item < parts
        number += tl.load(address, mask=known, other=0.0)
        mass += tl.load(address + parts, mask=known, other=0.0)
        near += tl.load(address + 2 * parts, mask=known, other=0.0)
    return tl.sum(number), tl.sum(mass), tl.sum(near)


@triton.jit
def _plan(
    sums,
    state,
    parts,
    m,
    beta2,
    WIDE: tl.constexpr,
    DTYPE: tl.constexpr,
    FIRST: tl.constexpr,
):
    """Take a step of Dinkelbach's iteration, and choose which labels are listed."""
    row = tl.program_id(0).to(tl.int64)
    own = state + row * _STATE
    from_row = sums + row * parts * _SUMS
    if FIRST:
        _store_sums(own, 1, _total(from_row, parts, WIDE))
        item = tl.arange(0, WIDE)
        bottom = tl.zeros([WIDE], tl.float64)
        top = tl.zeros([WIDE], tl.float64)
        for start in range(0, parts, WIDE):
            address = from_row + parts * _SMALLEST + start + item
            known = start + item < parts
            bottom = nan_min(bottom, tl.load(address, mask=known, other=0.0))
            top = nan_max(top, tl.load(address + parts, mask=known, other=0.0))
        tl.store(own + _LEAST, tl.reduce(bottom, 0, nan_min))
        tl.store(own + _TOP, tl.reduce(top, 0, nan_max))
        tl.debug_barrier()
    if tl.load(own + _ACTIVE) > 0.0:
        number, mass, near = _total_near(from_row, parts, WIDE)
        before = tl.load(own + _LEVEL)
        mean = tl.load(own)
        highest = tl.load(own + _TOP)
        weight = beta2 * (1.0 + mean)
        level = tl.maximum(next_level(mass, number, weight), highest / (weight + 1.0))
        density = tl.maximum(near, 1.0) / (tl.maximum(before, 1e-300) * (2.0 * _NEARBY))
        change = tl.abs(level - before)
        # Newton's method for the root of mass - level (weight + number), which is convex in level,
        # ends below the root: by about this error.
        error = density * change * change / (2.0 * (weight + number))
        close = (change < 0.1 * level) & (error * density < 128.0)
        # Labels below least are in no optimal set of two or more labels (Chebyshev): by the bound
        # of Jensen, which level need not be after the next line.
        least = tl.minimum(level / (1.0 + 1.0 / (beta2 + 2.0)) * (1.0 - 1e-6), highest)
        level += tl.where(close, error, 0.0)
        # Sets of nearly the best value, as 6e-12 of it is lost, end this many labels away.
        flat = tl.sqrt(6e-12 * density * (weight + number) * level)
        reach = 1.5 * level / tl.maximum(mean, 1e-300) + (2.0 * flat + _AROUND) / density
        reach += error
        listed = (mean < _MANY) & (number < 4096.0)
        low = tl.maximum(level - reach, least)
        high = level + tl.minimum(reach, 0.5 * tl.maximum(1.0 - level, 0.0))
        tl.store(own + _LEVEL, level)
        tl.store(own + _ACTIVE, tl.where(close | listed, 0.0, 1.0))
        # rounded, so that they can be compared with probabilities
        low = tl.where(listed, tl.minimum(least, SMALL), low)
        low = tl.where(highest > 0.0, low, 2.0).to(DTYPE)  # no list of zeros
        high = tl.where(listed, 2.0, high).to(DTYPE)
        tl.store(own + _LOW, low.to(tl.float64))
        tl.store(own + _HIGH, high.to(tl.float64))
        tl.store(own + _LISTED, tl.where(listed, 1.0, 0.0))


@triton.jit
def _list_parts(
    proba,
    rows,
    state,
    sums,
    counts,
    values,
    places,
    row_step,
    m,
    parts,
    capacity,
    PART: tl.constexpr,
    TILE: tl.constexpr,
    DTYPE: tl.constexpr,
):
    """List the labels between low and high, in any order, and sum powers of those above."""
    at_row = (tl.program_id(0) // parts).to(tl.int64)
    part = tl.program_id(0) % parts
    row = tl.load(rows + at_row).to(tl.int64)
    low = tl.load(state + row * _STATE + _LOW).to(DTYPE)
    high = tl.load(state + row * _STATE + _HIGH).to(DTYPE)
    start = part.to(tl.int64) * PART
    stop = tl.minimum(start + PART, m)
    item = tl.arange(0, TILE)
    zero = tl.zeros([TILE], tl.float64)
    s1, s2, s3, s4 = zero, zero, zero, zero
    zero = tl.zeros([TILE], tl.float32)
    s5, s6, s7, s8 = zero, zero, zero, zero
    number = item * 0
    from_row = proba + row * row_step + item
    following = tl.load(from_row + start, mask=start + item < stop, other=-1.0)
    for first in range(start, stop, TILE):
        x = following.to(DTYPE)
        place = first + TILE + item
        following = tl.load(from_row + first + TILE, mask=place < stop, other=-1.0)
        is_above = x > high
        is_listed = (x >= low) & (x <= high)
        marks = is_listed.to(tl.int32)
        some = tl.sum(marks + (TILE + 1) * is_above.to(tl.int32))
        if some > 0:
            number += is_above.to(tl.int32)
            s1, s2, s3, s4, s5, s6, s7, s8 = add_powers(
                tl.where(is_above, x, 0.0), s1, s2, s3, s4, s5, s6, s7, s8, tl.float32
            )
            n_listed = some % (TILE + 1)
            if n_listed > 0:
                to = tl.atomic_add(counts + at_row, n_listed) + tl.cumsum(marks, 0) - 1
                is_listed = is_listed & (to < capacity)
                to = at_row * capacity + to
                tl.store(values + to, x.to(tl.float64), mask=is_listed)
                tl.store(places + to, first + item, mask=is_listed)
    to = sums + at_row * parts * _SUMS + part
    _store_sums(to, parts, tl.reduce((s1, s2, s3, s4, s5, s6, s7, s8), 0, add_eight))
    tl.store(to + parts * _ABOVE, tl.sum(number).to(tl.float64))


@triton.jit
def _compare(
    sums,
    state,
    counts,
    values,
    places,
    sorted_values,
    sorted_places,
    nodes,
    expected,
    table,
    parts,
    m,
    WIDE: tl.constexpr,
    CAPACITY: tl.constexpr,
    NONEMPTY: tl.constexpr,
):
    """Decide each row from its list."""
    row = tl.program_id(0).to(tl.int64)
    own = state + row * _STATE
    from_row = sums + row * parts * _SUMS
    listed = tl.load(own + _LISTED) > 0.0
    size = tl.load(counts + row)
    fits = (size < CAPACITY) & (tl.load(own + _ACTIVE) == 0.0)
    size = tl.where(fits & ~listed, size, 0).to(tl.int32)
    to = row * CAPACITY
    rank_list(values + to, places + to, sorted_values + to, sorted_places + to, size, CAPACITY)
    s1 = tl.load(own)
    s2 = tl.load(own + 1)
    s3 = tl.load(own + 2)
    s4 = tl.load(own + 3)
    s5 = tl.load(own + 4)
    s6 = tl.load(own + 5)
    s7 = tl.load(own + 6)
    s8 = tl.load(own + 7)
    a = _total(from_row, parts, WIDE)
    number = _total_near(from_row, parts, WIDE)[0]
    high = tl.load(own + _HIGH)
    best, taken, proven = best_rank(
        sorted_values + to,
        size,
        number,
        tl.load(own + _LOW),
        high,
        (s1, s2, s3, s4, s5, s6, s7, s8),
        a,
        s1 * 0.0 + m,
        table,
        nodes + row * (4 * _RULES),
        CAPACITY,
        _LEVELS,
    )
    # log P(y = 0), where all labels are small
    certain = (s1 > 100.0) | (tl.load(own + _TOP) <= SMALL)
    log_empty = -exponent(s1, s2, s3, s4, s5, s6, s7, s8, 1.0)
    best, wins = with_empty_set(best, log_empty, table, NONEMPTY)
    last = tl.load(sorted_values + to + taken - 1, mask=taken > 0, other=high)
    end = tl.load(sorted_places + to + taken - 1, mask=taken > 0, other=-1)
    status = tl.where(fits & proven & certain, _DECIDED, _FAILED)
    status = tl.where(listed, _IN_LIST, status)
    valid = (tl.load(own + _LEAST) >= 0.0) & (tl.load(own + _TOP) <= 1.0)  # False for NaN
    status = tl.where(valid, status, _OUTSIDE)
    tl.store(own + _LAST, tl.where(wins, last, 2.0))
    tl.store(own + _END, end.to(tl.float64))
    tl.store(own + _STATUS, status.to(tl.float64))
    tl.store(expected + row, best.to(expected.dtype.element_ty))


@triton.jit
def _mark(
    proba,
    labels,
    state,
    row_step,
    m,
    parts,
    PART: tl.constexpr,
    TILE: tl.constexpr,
    DTYPE: tl.constexpr,
    INTEGER: tl.constexpr,
):
    """Write the labels of the rows that are decided."""
    row = (tl.program_id(0) // parts).to(tl.int64)
    part = tl.program_id(0) % parts
    own = state + row * _STATE
    start = part.to(tl.int64) * PART
    stop = tl.where(tl.load(own + _STATUS) == _DECIDED, tl.minimum(start + PART, m), start)
    # Labels of probability `last` are chosen up to the place `end`; after it, larger ones.
    last = tl.load(own + _LAST).to(DTYPE)
    end = tl.load(own + _END).to(tl.int64)
    larger = (last.to(INTEGER, bitcast=True) + 1).to(DTYPE, bitcast=True)
    item = tl.arange(0, TILE)
    from_row = proba + row * row_step + item
    following = tl.load(from_row + start, mask=start + item < stop, other=0.0)
    for first in range(start, stop, TILE):
        x = following.to(DTYPE)
        place = first + TILE + item
        following = tl.load(from_row + first + TILE, mask=place < stop, other=0.0)
        if (end >= first) & (end < first + TILE):
            least = tl.where(item <= (end - first).to(tl.int32), last, larger)
        else:
            least = item.to(DTYPE) * 0.0 + tl.where(end < first, larger, last)
        to = labels + row * m + first + item
        tl.store(to, (x >= least).to(tl.int8), mask=first + item < stop)


def decide_rows(
    precision: Precision, proba: Any, objective: Objective, on_host: Callable[[Any], Decision]
) -> Decision:
    """Decide from long rows of marginals, (n, m), on a CUDA device.

    `on_host` decides rows with the compiled kernels: those that no kernel here can decide.
    """
    if proba.stride(1) != 1:
        proba = proba.contiguous()
    n, m = proba.shape
    labels = torch.empty((n, m), dtype=torch.int8, device=proba.device)
    expected = torch.empty((n,), dtype=precision.dtype, device=proba.device)
    row_bytes = 8 * (4 * _CAPACITY + _SUMS.value * triton.cdiv(m, _PART))
    rows = n if n * row_bytes < 1 << 28 else max(1, work_bytes(proba.device) // row_bytes)
    for start in range(0, n, rows):
        part = slice(start, start + rows)
        _decide_block(
            precision, proba[part], labels[part], expected[part], objective, start, on_host
        )
    return Decision(labels, expected)


def _decide_block(
    precision: Precision,
    proba: Any,
    labels: Any,
    expected: Any,
    objective: Objective,
    first_row: int,
    on_host: Callable[[Any], Decision],
) -> None:
    """Decide a block of rows in place."""
    # One step suffices for nearly every row: where they are few, the others are only launched if
    # that was not so.
    attempts = (1, _STEPS) if len(proba) < _FEW_ROWS else (_STEPS,)
    with torch.cuda.device(proba.device):
        state = _sample_thresholds(proba, objective)
        step = 0
        for steps in attempts:
            _find_thresholds(proba, objective, state, range(step, steps))
            # The kernels launched so far run in the meantime.
            every = torch.arange(len(proba), device=proba.device)
            lists = _list_labels(proba, every, state, _CAPACITY)
            _decide_near_thresholds(proba, labels, expected, objective, state, lists)
            status, step = state[:, _STATUS.value], steps
            worst = int(status.max())
            if worst < _FAILED.value:
                break
    if worst == _DECIDED.value:
        return
    numbers = (status == _OUTSIDE.value).nonzero()[:, 0]
    if len(numbers):
        check_rows(precision, proba, numbers, first_row)
        again = decide_rows(precision, proba[numbers].clamp(0.0, 1.0), objective, on_host)
        labels[numbers], expected[numbers] = again
    numbers = (status == _IN_LIST.value).nonzero()[:, 0]
    counts = lists.counts[numbers]
    short = counts <= _LONGEST_LIST
    if objective.nonempty:
        short &= ~((state[numbers, 0] > 0.0) & (state[numbers, 0] < TINY.value))
    failed = torch.cat([numbers[~short], (status == _FAILED.value).nonzero()[:, 0]])
    numbers, counts = numbers[short], counts[short]
    if len(numbers):
        longest = int(counts.max())
        if longest <= _CAPACITY:
            lists = _Lists(lists.sums, counts, lists.values[numbers], lists.places[numbers])
        else:
            with torch.cuda.device(proba.device):
                lists = _list_labels(proba, numbers, state, triton.next_power_of_2(longest))
        _decide_lists(precision, labels, expected, objective, state, numbers, lists)
    if len(failed):
        labels[failed], expected[failed] = on_host(proba[failed])


class _Lists(NamedTuple):
    """The labels of each row between two thresholds, in any order; they may exceed 2^31."""

    sums: Any  # power sums and number of the labels above, part by part
    counts: Any  # (n,) more than the capacity if not all are listed
    values: Any  # (n, capacity) float64
    places: Any  # (n, capacity)


def _wide(parts: int) -> int:
    """Return how many parts of a row a program adds at once."""
    return 1024 if parts > 512 else 128


def _dtype(proba: Any) -> Any:
    """Return the type in which probabilities are compared."""
    return tl.float64 if proba.dtype == torch.float64 else tl.float32


def _sample_thresholds(proba: Any, objective: Objective) -> Any:
    """Return the state of each row, (n, _STATE.value), with thresholds that a sample suggests."""
    n, m = proba.shape
    state = torch.empty((n, _STATE.value), dtype=torch.float64, device=proba.device)
    sample = _SAMPLES[m > _FEW_LABELS]
    _take_sample[(n,)](
        proba,
        state,
        proba.stride(0),
        m,
        triton.cdiv(m, sample),
        objective.beta2,
        SAMPLE=sample,
        DTYPE=_dtype(proba),
        num_warps=max(4, sample // 1024),
    )
    return state


def _find_thresholds(proba: Any, objective: Objective, state: Any, steps: range) -> None:
    """Take steps of Dinkelbach's iteration for the rows whose thresholds are not close enough."""
    n, m = proba.shape
    parts = triton.cdiv(m, _PART)
    sums = torch.empty((n, parts, _SUMS.value), dtype=torch.float64, device=proba.device)
    dtype, wide = _dtype(proba), _wide(parts)
    for step in steps:
        _sum_parts[(n * parts,)](
            proba,
            state,
            sums,
            proba.stride(0),
            m,
            parts,
            PART=_PART,
            TILE=_TILE,
            DTYPE=dtype,
            FIRST=step == 0,
            num_warps=1,
        )
        _plan[(n,)](
            sums,
            state,
            parts,
            m,
            objective.beta2,
            WIDE=wide,
            DTYPE=dtype,
            FIRST=step == 0,
            num_warps=wide // 128,
        )


def _list_labels(proba: Any, rows: Any, state: Any, capacity: int) -> _Lists:
    """List the labels of the given rows between their thresholds."""
    m, device = proba.shape[1], proba.device
    parts = triton.cdiv(m, _PART)
    lists = _Lists(
        torch.empty((len(rows), parts, _SUMS.value), dtype=torch.float64, device=device),
        torch.zeros(len(rows), dtype=torch.int64, device=device),
        torch.empty((len(rows), capacity), dtype=torch.float64, device=device),
        torch.empty((len(rows), capacity), dtype=torch.int64, device=device),
    )
    _list_parts[(len(rows) * parts,)](
        proba,
        rows,
        state,
        *lists,
        proba.stride(0),
        m,
        parts,
        capacity,
        PART=_PART,
        TILE=_TILE,
        DTYPE=_dtype(proba),
        num_warps=1,
    )
    return lists


def _decide_near_thresholds(
    proba: Any, labels: Any, expected: Any, objective: Objective, state: Any, lists: _Lists
) -> None:
    """Decide the rows with many expected labels in place; `state` has the status of every row."""
    n, m = proba.shape
    device = proba.device
    _compare[(n,)](
        lists.sums,
        state,
        lists.counts,
        lists.values,
        lists.places,
        torch.empty_like(lists.values),
        torch.empty_like(lists.places),
        torch.empty((n, 4 * RULES), dtype=torch.float64, device=device),
        expected,
        table_of(objective.beta, objective.zero_division, device),
        triton.cdiv(m, _PART),
        m,
        WIDE=_wide(triton.cdiv(m, _PART)),
        CAPACITY=_CAPACITY,
        NONEMPTY=objective.nonempty,
        num_warps=8,
    )
    parts = triton.cdiv(m, _WRITTEN)
    dtype = _dtype(proba)
    _mark[(n * parts,)](
        proba,
        labels,
        state,
        proba.stride(0),
        m,
        parts,
        PART=_WRITTEN,
        TILE=512,
        DTYPE=dtype,
        INTEGER=tl.int64 if dtype is tl.float64 else tl.int32,
        num_warps=4,
    )


def _decide_lists(
    precision: Precision,
    labels: Any,
    expected: Any,
    objective: Objective,
    state: Any,
    numbers: Any,
    lists: _Lists,
) -> None:
    """Decide the rows `at` in place, in which few labels are expected."""
    m = labels.shape[1]
    item = torch.arange(lists.values.shape[1], device=labels.device)
    used = item < lists.counts[:, None]
    places, order = torch.where(used, lists.places, m).sort(dim=1)
    x = torch.where(used, lists.values, 0.0).gather(1, order)  # (n, capacity), by place
    rest, power = state[numbers, :8].clone(), x
    for j in range(8):
        rest[:, j] -= power.sum(dim=1)
        power = power * x
    rest = rest.clamp_(min=0.0).to(precision.dtype)
    reach = int(min(m, 400 + lists.values.shape[1]))  # fewer than 150 labels are expected
    decided = decide_listed(precision, x.to(precision.dtype), objective, rest, reach)
    labels[numbers] = 0
    row, chosen = decided.labels.nonzero(as_tuple=True)
    labels[numbers[row], places[row, chosen]] = 1
    expected[numbers] = decided.expected_f
