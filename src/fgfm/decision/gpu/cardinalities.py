"""GFM on rows of a CUDA device, by Triton kernels.

A program decides one row at a time: it reads P, discards the labels that are in no optimal set,
lists the columns C of the others (P itself, or generating functions at the nodes of a quadrature
rule), and evaluates the best sets of sizes 1, 2, .. of the list until the sum of all Delta of the
list falls below the best value. The sum of the k largest Delta is found by bisection of their
bits, without sorting. docs/design.md, "Decisions on a GPU", has the proof for the labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import triton
import triton.language as tl

from fgfm.decision._objective import Decision, Objective
from fgfm.decision._quadrature import nodes
from fgfm.decision.gpu.functions import (
    TINY,
    Precision,
    above,
    best_or_empty,
    load_four,
    multiprocessors,
    one_minus_exp,
    times,
    work_bytes,
)

_FEW = 64  # candidates in the list of a row; rows with more are decided by a second call
_STEP = 4  # set sizes evaluated at once
_SIZES = tl.constexpr(_STEP)
_ROW = 512  # labels per warp
_REGISTERS = 128  # per thread, so that a multiprocessor runs 16 warps
_MORE_REGISTERS = 168  # for P in float64
_ALL_REGISTERS = 1 << 16  # of a multiprocessor
_MARGIN = tl.constexpr(1e-4)  # of the bound that discards labels, for the rounding of float32
_OUTSIDE = tl.constexpr(-1.0)  # in place of an expected F: P is not valid, or only up to rounding
_POSTPONED = tl.constexpr(-2.0)  # or the row has more candidates than its list


class Tables(NamedTuple):
    """What a kernel needs besides P, on the device."""

    table: Any  # settings; s and 1 / s; for factors scale_q and zeta_q^s
    weights: Any  # (Q, sizes) w_q(k), k = 1, 2, ..
    column: Any  # (positions,) the label at each position of P


@triton.jit
def _add(a1, a2, a3, a4, a5, b1, b2, b3, b4, b5):
    return a1 + b1, a2 + b2, a3 + b3, a4 + b4, a5 + b5


@triton.jit
def _threshold(bits, k):
    """Return t with at most k elements > t and at least k elements >= t, and how many are > t.

    For the rows of integers that are not negative, (N, M), and their k, (N,).
    """
    # most are within a few powers of two of the largest
    NARROW: tl.constexpr = 8 << (52 if bits.dtype.primitive_bitwidth == 64 else 23)
    high = tl.max(bits, 1)
    low = high * 0 - 1
    middle = tl.maximum(high - NARROW, 0)
    count = k * 0
    while tl.max(((count != k) & (low + 1 < high)).to(tl.int32), 0) > 0:
        larger = tl.sum((bits > middle[:, None]).to(tl.int32), 1)
        count = tl.where(larger <= k, larger, count)
        high = tl.where(larger <= k, middle, high)
        low = tl.where(larger <= k, low, middle)
        middle = low + ((high - low) >> 1)
    return high, count


@triton.jit
def _largest_sums(x, k):
    """Return the sums of the k largest elements of the rows of x >= 0, (N, M)."""
    INTEGER: tl.constexpr = tl.core.get_int_dtype(x.dtype.primitive_bitwidth, True)
    bits = x.to(INTEGER, bitcast=True)  # ordered as the numbers
    high, count = _threshold(bits, k)
    least = high.to(x.dtype, bitcast=True)
    above = tl.sum(tl.where(bits > high[:, None], x, 0.0), 1)
    return above + (k - count).to(x.dtype) * least


@triton.jit
def _kth_largest(bits, k):
    """Return the k-th largest of integers that are not negative, (1, M)."""
    high, count = _threshold(bits, k)
    least = tl.min(tl.where(bits > high[:, None], bits, tl.max(bits, 1)[:, None]), 1)
    return tl.where(count == k, least, high)


@triton.jit
def _deltas(C, weights, k, Q, sizes, one, SIZES: tl.constexpr, LIST: tl.constexpr):
    """Return Delta of the labels of the list at sizes k + 1, k + 2, .., (SIZES, LIST)."""
    item = tl.arange(0, LIST) * one
    size = k + tl.arange(0, SIZES) * one
    delta = tl.zeros([SIZES, LIST], C.dtype.element_ty)
    for q in range(Q):
        c = tl.load(C + q * LIST + item)
        delta += tl.load(weights + q * sizes + size)[:, None] * c[None, :]
    return delta


# `one` is 1, unknown to the compiler. With elements known to be consecutive it would distribute
# a tile over threads along the vector of a load, and sums would cross threads.


@triton.jit
def _label_sums(P, position, used, cardinalities, one, ALL, S, PADDED_S, CHUNK, FACTORS):
    """Return p_i, E[y_i s] and sum_s p_is / s of a row of P; NaN if some p_is is not valid."""
    dtype = cardinalities.dtype.element_ty
    total = tl.zeros([ALL], dtype)
    share = tl.zeros([ALL], dtype)
    weighted = tl.zeros([ALL], tl.float32)
    for begin in range(0, S, CHUNK):
        s = begin + tl.arange(0, CHUNK)
        x = tl.load(P + position[None, :] * S + s[:, None], mask=used[None, :], other=0.0)
        x = x.to(dtype)
        x = tl.where(x >= 0.0, x, float("nan"))
        total += tl.sum(x, 0)
        x_s = x * tl.load(cardinalities + s * one)[:, None]
        weighted += tl.sum(x_s.to(tl.float32), 0)
        if FACTORS == 0:
            share += tl.sum(x * tl.load(cardinalities + PADDED_S + s * one)[:, None], 0)
    return total, weighted, share


@triton.jit
def _factor_distributions(P, to, F, L, S, PADDED_S, FACTORS):
    """Return d_1 .. d_S of the factors of a row, (PADDED_S, FACTORS); also store them."""
    factor = tl.arange(0, FACTORS)
    every_s = tl.arange(0, PADDED_S)
    dtype = to.dtype.element_ty
    d = tl.zeros([PADDED_S, FACTORS], dtype)
    inside = (factor < F)[None, :] & (every_s < S)[:, None]
    for member in range(L):
        where = (factor * L + member)[None, :] * S + every_s[:, None]
        d += tl.load(P + where, mask=inside, other=0.0).to(dtype)
    d /= (every_s + 1)[:, None]
    tl.store(to + every_s[:, None] * FACTORS + factor[None, :], d)
    return d


@triton.jit
def _log_absent(present):
    """Return log(1 - y) in float64, without cancellation where y is small."""
    y = present.to(tl.float64)
    series = -y * (1.0 + y * (0.5 + y * (1.0 / 3.0 + y * 0.25)))
    return tl.where(y < 1e-4, series, tl.log(tl.maximum(1.0 - y, 1e-30)))


@triton.jit
def _bounds(p, weighted, mean, b):
    """Return two bounds, by four steps of Dinkelbach's iteration for each.

    The first is the largest lower bound on the value of a set of the most probable labels, divided
    by 1 + b (Jensen). The second is an upper bound on the largest M_k / (b + 1 + k), where M_k is
    the sum of the k largest p.
    """
    level = tl.max(p) / (b * (1.0 + mean) + 1.0)
    ratio = tl.max(p) / (b + 2.0)
    highest = ratio
    floor = mean * 0.0
    for step in tl.static_range(4):  # noqa: B007
        is_above = p > level
        own_mass, marks = above(p, ratio)
        mass, W, number, other_mass, other_number = tl.reduce(
            (
                tl.where(is_above, p, 0.0),
                tl.where(is_above, weighted, 0.0),
                is_above.to(tl.float32),
                own_mass,
                marks.to(tl.float32),
            ),
            0,
            _add,
        )
        level = mass * mass / tl.where(mass > 0.0, b * W + number * mass, 1.0)
        floor = tl.maximum(floor, level)
        rest = tl.maximum(other_mass - (b + 1.0 + other_number) * ratio, 0.0)
        highest = ratio + rest / (b + 1.0)
        ratio += rest / (b + 1.0 + other_number)
    return floor, highest


@triton.jit
def _positions(F, L, LABELS, FACTORS, ALL):
    """Return which elements of a tile are labels of a row, and their positions in it."""
    flat = tl.arange(0, ALL)
    used = flat < L
    position = flat
    if FACTORS > 0:
        used = (flat // LABELS < F) & (flat % LABELS < L)
        position = flat // LABELS * L + flat % LABELS
    return used, position


@triton.jit
def _masses_of_factors(d, slack, FACTORS):
    """Return P(y = 0) and P(y != 0) from d of the factors, and whether each is at most 1."""
    own_present = tl.sum(d, 0)
    fits = tl.sum((own_present <= 1.0 + slack).to(tl.int32)) == FACTORS
    log_empty = tl.sum(_log_absent(own_present))
    return tl.exp(log_empty).to(d.dtype), one_minus_exp(log_empty).to(d.dtype), fits


@triton.jit
def _masses(masses, share, slack, MASSES):
    """Return P(y = 0) and P(y != 0), those that are given or those of P, and whether they fit."""
    present = tl.sum(share)
    fits = present <= 1.0 + slack
    present = tl.minimum(present, 1.0)
    absent = 1.0 - present
    if MASSES:
        absent = tl.load(masses)
        present = tl.load(masses + 1)
        fits = absent >= 0.0
    return absent, present, fits


@triton.jit
def _candidates(p, weighted, mean, empty, beta2):
    """Mark the labels that can be in an optimal set.

    They have p / (beta^2 + 2) + sqrt(ratio p) >= V / (1 + beta^2).
    """
    b = tl.minimum(beta2, 1e18).to(tl.float32)  # beyond it, F equals recall in float32
    floor, highest = _bounds(p, weighted, mean, b)
    floor = tl.maximum(floor, empty.to(tl.float32) / (1.0 + b))
    root = tl.sqrt(highest) + tl.sqrt(highest + 4.0 * floor / (b + 2.0))
    root = 2.0 * floor / tl.where(root > 0.0, root, 1.0)
    return p >= root * root * (1.0 - _MARGIN)


@triton.jit
def _list_positions(marked, positions, to, LIST):
    """List the positions of the candidates; return their number, which may exceed LIST."""
    place = tl.cumsum(marked.to(tl.int32), 0) - 1
    tl.store(to + place, positions, mask=marked & (place < LIST))
    return tl.sum(marked.to(tl.int32))


@triton.jit
def _list_columns(P, own, listed, C, one, S, CHUNK, LIST):
    """Store the columns of the candidates: P itself."""
    item = tl.arange(0, LIST)
    for begin in range(0, S, CHUNK):
        s = begin + tl.arange(0, CHUNK)
        x = tl.load(P + own[None, :] * S + s[:, None], mask=listed[None, :], other=0.0)
        tl.store(C + s[:, None] * LIST + (item * one)[None, :], x.to(C.dtype.element_ty))


@triton.jit
def _list_node_columns(P, own, listed, d, C, scale, L, Q, one, S, PADDED_S, FACTORS, LIST):
    """Store the columns of the candidates: E[y_i zeta^s] at the nodes of the rule."""
    item = tl.arange(0, LIST)
    every_s = tl.arange(0, PADDED_S)
    none = tl.maximum(1.0 - tl.sum(d, 0), 0.0)
    own_d = tl.load(C + Q * LIST + every_s[:, None] * FACTORS + (own // L)[None, :])
    own_none = tl.maximum(1.0 - tl.sum(own_d, 0), 0.0)
    inside = listed[None, :] & (every_s < S)[:, None]
    x = tl.load(P + own[None, :] * S + every_s[:, None], mask=inside, other=0.0).to(d.dtype)
    for q in range(Q):
        zeta_powers = tl.load(scale + Q + q * PADDED_S + every_s * one)[:, None]
        D = none + tl.sum(d * zeta_powers, 0)
        product = tl.reduce(D, 0, times) * tl.load(scale + q)
        own_D = own_none + tl.sum(own_d * zeta_powers, 0)
        G = tl.sum(x * zeta_powers, 0)
        c = G * (product / tl.where(own_D > 0.0, own_D, 1.0))
        tl.store(C + q * LIST + item * one, c)


@triton.jit
def _best_size(C, weights, count, Q, sizes, tie, one, LIST):
    """Return the best size, its value, and the largest value.

    V_k, k = 1, 2, .., until the sum of all Delta is less than the best value.
    """
    peak = tie * 0.0
    best = tie * 0.0
    bound = tie * 0.0
    size = count * 0
    k = count * 0
    ahead = tl.arange(0, _SIZES)
    while (k < count) & (bound >= peak):
        delta = _deltas(C, weights, k, Q, sizes, one, _SIZES, LIST)
        value = _largest_sums(delta, k + 1 + ahead)
        high = tl.max(value)
        if high * (1.0 - tie) > best:  # a smaller set wins a tie
            size = k + 1 + tl.min(tl.where(value >= high * (1.0 - tie), ahead, _SIZES))
            best = tl.sum(tl.where(k + 1 + ahead == size, value, 0.0))
        peak = tl.maximum(peak, high)
        bound = tl.min(tl.sum(delta, 1)) * (1.0 + tie)
        k += _SIZES
    return size, best, peak


@triton.jit
def _mark_labels(labels, label, listed, C, weights, size, m, Q, sizes, tie, one, LIST):
    """Mark the labels of the best set; among equal ones those of lowest index."""
    INTEGER: tl.constexpr = tl.core.get_int_dtype(C.dtype.element_ty.primitive_bitwidth, True)
    gain = _deltas(C, weights, size - 1, Q, sizes, one, 1, LIST)
    chosen_size = size + tl.arange(0, 1)
    bits = _kth_largest(gain.to(INTEGER, bitcast=True), chosen_size)
    last = bits.to(gain.dtype, bitcast=True)[:, None]
    chosen = gain > last * (1.0 + tie)
    equal = (gain >= last * (1.0 - tie)) & (gain <= last * (1.0 + tie))
    left = chosen_size - tl.sum(chosen.to(tl.int32), 1)
    key = tl.where(equal, 1 + m - label[None, :], 0)
    if tl.max(tl.sum(equal.to(tl.int32), 1) - left) > 0:
        equal = key >= _kth_largest(key, left)[:, None]
    ones = tl.full([1, LIST], 1, tl.int8)
    tl.store(labels + label[None, :], ones, mask=(chosen | equal) & listed[None, :])


@triton.jit(do_not_specialize=["n", "F", "L", "Q", "sizes", "one"])
def _cardinalities_kernel(
    P,
    masses,
    rows,
    table,
    weights,
    column,
    candidates,
    space,
    labels,
    expected,
    n,
    row_step,
    m,
    F,
    L,
    Q,
    sizes,
    one,
    S: tl.constexpr,
    PADDED_S: tl.constexpr,
    CHUNK: tl.constexpr,
    FACTORS: tl.constexpr,  # 0: C is P
    LABELS: tl.constexpr,
    LIST: tl.constexpr,
    SPACE: tl.constexpr,
    LISTED: tl.constexpr,  # only the rows of a list
    MASSES: tl.constexpr,  # the probabilities of empty and other sets are given
    NONEMPTY: tl.constexpr,
):
    ALL: tl.constexpr = LABELS * FACTORS if FACTORS > 0 else LABELS
    beta2, zero_division, tie, slack = load_four(table)
    cardinalities = table + 4
    scale = cardinalities + 2 * PADDED_S  # of the nodes of a rule
    used, position = _positions(F, L, LABELS, FACTORS, ALL)
    item = tl.arange(0, LIST)
    first = tl.program_id(0).to(tl.int64)
    candidates += first * LIST
    C = space + first * SPACE
    for index in range(first, n, tl.num_programs(0)):
        row = tl.load(rows + index) if LISTED else index
        start = P + row * row_step
        total, weighted, share = _label_sums(
            start, position, used, cardinalities, one, ALL, S, PADDED_S, CHUNK, FACTORS
        )
        p = total.to(tl.float32)  # bounds with a margin need no more digits
        mean = tl.sum(p)
        if FACTORS > 0:
            weighted += (mean - p) * p  # at least E[y_i s], see docs/design.md
            d = _factor_distributions(start, C + Q * LIST, F, L, S, PADDED_S, FACTORS)
            absent, present, fits = _masses_of_factors(d, slack, FACTORS)
        else:
            absent, present, fits = _masses(masses + 2 * row, share, slack, MASSES)
        valid = fits & (tl.sum((total <= 1.0 + slack).to(tl.int32)) == ALL)
        if NONEMPTY:
            valid &= (present == 0.0) | (present >= TINY)
        empty = absent * 0.0 if NONEMPTY else absent * zero_division
        is_candidate = _candidates(p, weighted, mean, empty, beta2) & (total > 0.0)
        count = _list_positions(is_candidate, position, candidates, LIST)
        postponed = count > LIST
        count = tl.where(valid & (count <= LIST), count, 0)
        tl.debug_barrier()
        listed = item < count
        own = tl.load(candidates + item * one, mask=listed, other=0)
        if FACTORS > 0:
            _list_node_columns(
                start, own, listed, d, C, scale, L, Q, one, S, PADDED_S, FACTORS, LIST
            )
        else:
            _list_columns(start, own, listed, C, one, S, CHUNK, LIST)
        tl.debug_barrier()
        size, best, peak = _best_size(C, weights, count, Q, sizes, tie, one, LIST)
        answer, wins = best_or_empty(best, peak, empty, present, tie, NONEMPTY)
        if wins:
            label = tl.load(column + own, mask=listed, other=0)
            to = labels + row * m
            _mark_labels(to, label, listed, C, weights, size, m, Q, sizes, tie, one, LIST)
        answer = tl.where(postponed, _POSTPONED, answer)
        tl.store(expected + row, tl.where(valid, answer, _OUTSIDE))
        tl.debug_barrier()


def decide_cardinalities(
    precision: Precision, P: Any, masses: Any, objective: Objective
) -> Decision | None:
    """Decide from P, (n, m, S); return None if it may not be valid.

    `masses`, (n, 2), are the probabilities that the true set is empty, and that it is not, if not
    those of P.
    """
    _, m, S = P.shape
    tables = _cardinality_tables(S, m, _settings(precision, objective), precision.dtype, P.device)
    return _decide_table(precision, P, m, tables, objective, masses)


@lru_cache(maxsize=64)
def _cardinality_tables(
    S: int, m: int, settings: tuple[float, ...], dtype: Any, device: Any
) -> Tables:
    """Return the tables for P of m labels: w_s(k) = (1 + b) / (b s + k)."""
    s, beta2 = np.arange(1.0, S + 1.0), settings[0]
    k = np.arange(1, m + _STEP)
    weights = (1.0 + beta2) / (beta2 * s[:, None] + k)  # (S, sizes)
    column = torch.arange(m, dtype=torch.int32, device=device)
    return _make_tables(settings, s, [], weights, column, dtype, device)


def _make_tables(
    settings: tuple[float, ...],
    cardinalities: Any,
    nodes: Sequence[Any],
    weights: Any,
    column: Any,
    dtype: Any,
    device: Any,
) -> Tables:
    """Copy tables to the device; `nodes` are scale_q, (Q,), and zeta_q^s, (Q, padded S)."""
    padded = np.ones(triton.next_power_of_2(len(cardinalities)))
    padded[: len(cardinalities)] = cardinalities
    parts = [np.asarray(settings), padded, 1.0 / padded, *(np.ravel(part) for part in nodes)]
    table = torch.as_tensor(np.concatenate(parts), dtype=dtype, device=device)
    return Tables(table, torch.as_tensor(weights, dtype=dtype, device=device), column)


def _settings(precision: Precision, objective: Objective) -> tuple[float, ...]:
    """Return the settings at the start of a table."""
    return objective.beta2, objective.zero_division, precision.tie, precision.slack


def _decide_table(
    precision: Precision, P: Any, m: int, tables: Tables, objective: Objective, masses: Any = None
) -> Decision | None:
    """Decide a block of rows; return None if P may not be valid.

    P is that of factors, (n, F, L, S), or of all m labels, (n, L, S). `masses`, (n, 2), are the
    probabilities that the true set is empty, and that it is not, if not those of P.
    """
    n = P.shape[0]
    labels = torch.zeros((n, m), dtype=torch.int8, device=P.device)
    expected = torch.empty(n, dtype=precision.dtype, device=P.device)
    results = Decision(labels, expected)
    if not P.is_floating_point() or P.element_size() == 1:
        P = P.to(precision.dtype)
    P = P.contiguous()
    _launch(precision, P, tables, objective, masses, None, results)
    outside, postponed = torch.stack(  # in one transfer
        [(expected == _OUTSIDE.value).sum(), (expected == _POSTPONED.value).sum()]
    ).tolist()
    if outside:
        return None
    if postponed:
        rows = (expected == _POSTPONED.value).nonzero()[:, 0]
        _launch(precision, P, tables, objective, masses, rows, results)
    return results


def _launch(
    precision: Precision,
    P: Any,
    tables: Tables,
    objective: Objective,
    masses: Any,
    rows: Any,
    results: Decision,
) -> None:
    """Decide all rows with few candidates, or the given rows with any number of them."""
    labels, expected = results
    *F, L, S = P.shape[1:]
    wide_L, wide_S = triton.next_power_of_2(L), triton.next_power_of_2(S)
    if F:
        factors = max(32, triton.next_power_of_2(F[0]))
        every = wide_L * factors
    else:
        factors = 0
        every = wide_L = max(32, wide_L)
    Q, sizes = tables.weights.shape
    few = rows is None and every > _FEW
    length = _FEW if few else every
    warps = max(1, every // (_ROW if few else _ROW // 2))
    if not few and F:  # P and d of all candidates are in registers
        warps = max(warps, length * wide_S * precision.itemsize // (16 * _ROW))
    n = P.shape[0] if rows is None else len(rows)
    registers = _REGISTERS if F or precision.itemsize == 4 else _MORE_REGISTERS
    programs = min(
        n, max(1, _ALL_REGISTERS // (32 * registers * warps)) * multiprocessors(P.device)
    )
    space = Q * length + factors * wide_S
    with torch.cuda.device(P.device):
        _cardinalities_kernel[(programs,)](
            P,
            P if masses is None else masses,
            P if rows is None else rows,
            tables.table,
            tables.weights,
            tables.column,
            torch.empty((programs, length), dtype=torch.int32, device=P.device),
            torch.empty((programs, space), dtype=precision.dtype, device=P.device),
            labels,
            expected,
            n,
            P.stride(0),
            labels.shape[1],
            F[0] if F else 1,
            L,
            Q,
            sizes,
            1,
            S=S,
            PADDED_S=wide_S,
            CHUNK=min(S & -S, max(1, 16 // P.element_size())),
            FACTORS=factors,
            LABELS=wide_L,
            LIST=length,
            SPACE=space,
            LISTED=rows is not None,
            MASSES=masses is not None,
            NONEMPTY=objective.nonempty,
            num_warps=warps,
            maxnreg=registers if warps == 1 else None,
        )


@lru_cache(maxsize=64)
def _factor_tables(beta: float, m: int, S: int, settings: Any, dtype: Any, device: Any) -> Tables:
    """Return scale_q, zeta_q^s and the weights z_q^k, (Q, sizes), of the rule for m labels."""
    rule = nodes(beta, m, m)
    s = np.arange(1, triton.next_power_of_2(S) + 1)
    zeta = np.exp(beta * beta * rule.log_z[:, None] * s)  # (Q, padded S)
    scale = (1.0 + beta * beta) * rule.weight
    powers = np.exp(rule.log_z[:, None] * np.arange(1, m + _STEP))
    return _make_tables(settings, s[:S], [scale, zeta], powers, None, dtype, device)


def decide_factors(
    precision: Precision,
    parts: Sequence[Any],
    members: Sequence[npt.NDArray[np.int64]],
    objective: Objective,
) -> Decision | None:
    """Decide from the P of factors, each (n, m_f, S_f); return None if some may not be valid.

    `members` are the labels of each factor. All P are padded to the largest m_f and S_f.
    """
    n, F = parts[0].shape[0], len(parts)
    L, S = (max(part.shape[axis] for part in parts) for axis in (1, 2))
    m = sum(len(own_labels) for own_labels in members)
    settings = _settings(precision, objective)
    tables = _factor_tables(objective.beta, m, S, settings, precision.dtype, parts[0].device)
    column = np.zeros((F, L), dtype=np.int32)
    for positions, own_labels in zip(column, members, strict=True):
        positions[: len(own_labels)] = own_labels
    tables = tables._replace(column=torch.as_tensor(column, device=parts[0].device))
    rows = max(1, work_bytes(parts[0].device) // (F * L * S * precision.itemsize))
    blocks = []
    for start in range(0, n, rows):
        own = parts if rows >= n else [part[start : start + rows] for part in parts]
        P = _stacked(own, L, S, precision.dtype)
        block = _decide_table(precision, P, m, tables, objective)
        if block is None:
            return None
        blocks.append(block)
    labels, expected = zip(*blocks, strict=True)
    return Decision(torch.cat(labels), torch.cat(expected))


def _stacked(parts: Sequence[Any], L: int, S: int, dtype: Any) -> Any:
    """Return the P of all factors, (n, F, L, S), padded with zeros."""
    if len({(part.shape, part.dtype) for part in parts}) == 1:
        return torch.stack(parts, dim=1)
    shape = (parts[0].shape[0], len(parts), L, S)
    P = torch.zeros(shape, dtype=dtype, device=parts[0].device)
    for f, part in enumerate(parts):
        P[:, f, : part.shape[1], : part.shape[2]] = part
    return P
