"""Decisions from marginals of independent labels, by a Triton kernel for CUDA tensors of PyTorch.

One program decides one row at a time. The row is read once, into registers. The values at the
nodes of the quadrature rule are computed from power sums of its small labels and from a short list
of the large ones; the candidates for an optimal set are a second list, sorted by counting.
Formulas and bounds are those of `fgfm._kernels.marginals`. Rows in which many labels are expected
are left to `fgfm.decision.gpu.many`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

from fgfm._utils.validation import check_probabilities
from fgfm.decision._arrays import to_host
from fgfm.decision._objective import Decision, Objective
from fgfm.decision._quadrature import nodes
from fgfm.decision.gpu.functions import (
    SMALL,
    TINY,
    Precision,
    above,
    add_pair,
    best_or_empty,
    exponent,
    largest_labels,
    load_four,
    multiprocessors,
    nan_min,
    next_level,
    one_minus_exp,
    powers,
    times,
)
from fgfm.decision.gpu.many import DENSE, MANY, POSTPONED, decide_dense_rows

_CHUNK = tl.constexpr(8)  # labels of a list processed at once, at all nodes
_PLACES = tl.constexpr(64)  # labels of a list processed at once otherwise
_LISTS = 6  # work space of a program, in row lengths
_FEW = 128  # rows with more candidates, or more than MANY labels expected, need a second call
_REGISTERS = 128  # per thread; with more, a multiprocessor could run too few threads
_OUTSIDE = tl.constexpr(-1.0)  # in place of an expected F: a value outside [0, 1]
_POSTPONED, _DENSE = map(tl.constexpr, (POSTPONED, DENSE))
_ROW = 1024  # labels per warp
_WARPS = 64  # warps per multiprocessor to launch
_PROBED = 16384  # rows of a large array that are decided first


@triton.jit
def _add_four(a1, a2, a3, a4, b1, b2, b3, b4):
    return a1 + b1, a2 + b2, a3 + b3, a4 + b4


# Lists and tables store every other element: with consecutive elements the compiler would
# distribute a tile over threads along the labels, and sums over labels would cross threads.


@triton.jit
def _list_tile(p, marked, to):
    """List the marked labels of a tile; return their number."""
    gaps = tl.where(marked, 2, 0)
    before = tl.cumsum(gaps, 1)
    own_count = tl.sum(gaps, 1)
    start = tl.cumsum(own_count) - own_count - 2
    tl.store(to + start[:, None] + before, p, mask=marked)
    return tl.sum(own_count) // 2


@triton.jit
def _small_exponent(p, u, rest, DOUBLE, REST):
    """Return -log prod (1 - p u) at the nodes, over a tile of small labels.

    With REST, `rest` has the power sums of labels that are not in the tile.
    """
    # four more powers in float64, small enough to be summed in float32
    x1, x2, x3, x4, x5, x6, x7, x8 = powers(p, p.dtype, tl.float32)
    s1, s2, s3, s4 = tl.reduce(
        (tl.sum(x1, 1), tl.sum(x2, 1), tl.sum(x3, 1), tl.sum(x4, 1)), 0, _add_four
    )
    s5, s6, s7, s8 = 0.0, 0.0, 0.0, 0.0
    if DOUBLE:
        s5, s6, s7, s8 = tl.reduce(
            (tl.sum(x5, 1), tl.sum(x6, 1), tl.sum(x7, 1), tl.sum(x8, 1)), 0, _add_four
        )
    if REST:
        s1 += tl.load(rest)
        s2 += tl.load(rest + 1)
        s3 += tl.load(rest + 2)
        s4 += tl.load(rest + 3)
        if DOUBLE:
            s5 += tl.load(rest + 4).to(tl.float32)
            s6 += tl.load(rest + 5).to(tl.float32)
            s7 += tl.load(rest + 6).to(tl.float32)
            s8 += tl.load(rest + 7).to(tl.float32)
    return exponent(s1, s2, s3, s4, s5, s6, s7, s8, u)


@triton.jit
def _product_and_top(values, count, zeta, NODES):
    """Return prod (1 - p u) at the nodes, over a list of labels, and the largest of them."""
    k = tl.arange(0, _CHUNK)[None, :] * 2 + tl.arange(0, NODES)[:, None] * 0
    tile = tl.full([NODES, _CHUNK], 1.0, zeta.dtype)
    for start in range(0, count, _CHUNK):
        x = tl.load(values + 2 * start + k, mask=k < 2 * (count - start), other=0.0)
        tile *= (1.0 - x) + x * zeta[:, None]
    place = tl.arange(0, _PLACES)
    highest = tl.zeros([_PLACES], zeta.dtype)
    for start in range(0, count, _PLACES):
        x = tl.load(values + 2 * (start + place), mask=start + place < count, other=0.0)
        highest = tl.maximum(highest, x)
    return tl.reduce(tile, 1, times), tl.max(highest)


@triton.jit
def _lower_bound(values, count, top, spread):
    """Return a lower bound on the optimum / (1 + beta^2), by two steps of Dinkelbach's iteration.

    The labels are a list, and `top` is the largest one of the row.
    """
    place = tl.arange(0, _PLACES)
    level = top / (spread + 1.0)
    for step in tl.static_range(2):  # noqa: B007
        mass = tl.zeros([_PLACES], values.dtype.element_ty)
        number = tl.zeros([_PLACES], tl.int32)
        for start in range(0, count, _PLACES):
            x = tl.load(values + 2 * (start + place), mask=start + place < count, other=0.0)
            own_mass, marks = above(x, level)
            mass += own_mass
            number += marks
        total_mass, total_number = tl.reduce((mass, number), 0, add_pair)
        level = tl.maximum(level, next_level(total_mass, total_number, spread))
    return level


@triton.jit
def _list_again(values, count, least, to):
    """List the labels of a list that are at least `least`; return their number."""
    place = tl.arange(0, _PLACES)
    n_listed = count * 0
    for start in range(0, count, _PLACES):
        x = tl.load(values + 2 * (start + place), mask=start + place < count, other=0.0)
        marks = (x >= least).to(tl.int32)
        tl.store(to + 2 * (n_listed + tl.cumsum(marks) - 1), x, mask=x >= least)
        n_listed += tl.sum(marks)
    return n_listed


@triton.jit
def _sort(values, count, to, NODES):
    """Sort a list by counting: a rank is the number of larger or earlier equal labels."""
    lane = tl.arange(0, NODES)
    other = tl.arange(0, _CHUNK)[None, :] * 2 + lane[:, None] * 0
    for start in range(0, count, NODES):
        own = start + lane
        x = tl.load(values + 2 * own, mask=own < count, other=-1.0)
        place = lane * 0
        for other_start in range(0, count, _CHUNK):
            known = other < 2 * (count - other_start)
            y = tl.load(values + 2 * other_start + other, mask=known, other=-1.0)
            earlier = (y == x[:, None]) & (other < 2 * (own - other_start)[:, None])
            place += tl.sum(((y > x[:, None]) | earlier).to(tl.int32), 1)
        tl.store(to + 2 * place, x, mask=own < count)


@triton.jit
def _best_size(values, limit, factor, zeta, leap, z_powers, tie, NODES):
    """Return the best size up to a limit, its value, and the largest value, from a sorted list.

    V_k = sum_r factor_r z_r^(k - 1) sum_{i <= k} p_i / (1 - p_i u_r), a chunk of sizes at a time.
    `leap` is z_r to the number of sizes of a chunk.
    """
    item = tl.arange(0, _CHUNK)
    k = item[None, :] * 2 + tl.arange(0, NODES)[:, None] * 0
    total = zeta * 0.0
    peak = tie * 0.0
    best = tie * 0.0
    size = limit * 0
    for start in range(0, limit, _CHUNK):
        x = tl.load(values + 2 * start + k, mask=k < 2 * (limit - start), other=0.0)
        own_factor = (1.0 - x) + x * zeta[:, None]
        part = x / tl.where(own_factor > 0.0, own_factor, 1.0)
        sums = tl.cumsum(part, 1) + total[:, None]
        value = tl.sum(sums * (factor[:, None] * tl.load(z_powers)), 0)
        value = tl.where(start + item < limit, value, 0.0)
        high = tl.max(value)
        if high * (1.0 - tie) > peak:  # a smaller set wins a tie
            size = start + 1 + tl.min(tl.where(value >= high * (1.0 - tie), item, _CHUNK))
            best = tl.sum(tl.where(start + 1 + item == size, value, 0.0))
        peak = tl.maximum(peak, high)
        total += tl.sum(part, 1)
        factor *= leap
    return size, best, peak


@triton.jit
def _mark(p, to, inside, sorted_list, size, n_candidates, tied):
    """Mark the labels of the best set, the first `size` of a sorted list."""
    last = tl.load(sorted_list + 2 * size - 2, mask=size > 0, other=2.0)
    following = tl.load(sorted_list + 2 * size, mask=size < n_candidates, other=-1.0)
    # Labels equal to the last chosen one are all marked; another call keeps the first.
    tl.store(tied, tl.where(following == last, size, 0))
    tl.store(to, (p >= last).to(tl.int8), mask=inside)


@triton.jit
def _load_rule(table, NODES):
    """Return zeta, u, scale and z^chunk of the nodes, and pointers to z^0, .., (NODES, chunk)."""
    lane = tl.arange(0, NODES)
    zeta = tl.load(table + lane)
    u = tl.load(table + NODES + lane)
    scale = tl.load(table + 2 * NODES + lane)
    leap = tl.load(table + 3 * NODES + lane)
    z_powers = table + 4 * NODES
    z_powers += tl.arange(0, _CHUNK)[None, :] * (2 * NODES) + lane[:, None] * 2
    return zeta, u, scale, leap, z_powers


@triton.jit
def _masses(small_part, product, zero_division, NODES, NONEMPTY):
    """Return D(zeta) at the nodes, the value of the empty set, P(y != 0) and log P(y = 0).

    D(zeta) = prod_i (1 - p_i u): of the large labels, and of the small ones the exponent.
    """
    is_empty = tl.arange(0, NODES) == NODES - 1  # the last node has zeta = 0
    small_at_empty, none_large = tl.reduce(
        (tl.where(is_empty, small_part, 0.0), tl.where(is_empty, product, 0.0)), 0, add_pair
    )
    log_empty = tl.log(none_large) - small_at_empty
    if NONEMPTY:
        empty = none_large * 0.0
        present = one_minus_exp(log_empty)
    else:
        empty = zero_division * none_large * tl.exp(-small_at_empty)
        present = none_large * 0.0 + 1.0
    return product * tl.exp(-small_part), empty, present, log_empty


@triton.jit
def _least_candidate(large_list, count, top, mean, empty, beta2, tie, share):
    """Return a lower bound on the optimum, and the least probability of a label that can be in it.

    The candidates have p (1 + beta^2) (1 + 1 / (beta^2 + 2)) >= V, i.e. p >= V share.
    """
    level = _lower_bound(large_list, count, top, beta2 * (1.0 + mean))
    floor = tl.maximum((1.0 + beta2) * level, empty)
    least = tl.minimum(top, floor * share)
    beaten = (1.0 + beta2) * mean <= empty * (1.0 + tie) * (beta2 * mean + 1.0)
    return floor, tl.where(beaten, 2.0, least)


@triton.jit(do_not_specialize=["n", "row_step", "label_step", "m"])
def _rows_kernel(
    proba,
    labels,
    expected,
    tied,
    table,
    lists,
    rest,
    n,
    row_step,
    label_step,
    m,
    WIDTH: tl.constexpr,  # a row is a tile of WIDTH x DEPTH labels, each thread has DEPTH
    DEPTH: tl.constexpr,
    NODES: tl.constexpr,
    FEW: tl.constexpr,
    MANY: tl.constexpr,
    REST: tl.constexpr,
    DOUBLE: tl.constexpr,
    NONEMPTY: tl.constexpr,
):
    dtype = expected.dtype.element_ty
    BLOCK: tl.constexpr = DEPTH * WIDTH
    column = tl.arange(0, WIDTH)[:, None] + tl.arange(0, DEPTH)[None, :] * WIDTH
    zeta, u, scale, leap, z_powers = _load_rule(table, NODES)
    settings = table + (4 + 2 * _CHUNK) * NODES
    beta2, zero_division, tie, margin = load_four(settings)
    share = tl.load(settings + 4)
    first = tl.program_id(0).to(tl.int64)  # offsets in large arrays exceed 32 bits
    large_list = lists + first * (6 * BLOCK)
    candidate_list = large_list + 2 * BLOCK
    sorted_list = candidate_list + 2 * BLOCK
    for row in range(first, n, tl.num_programs(0)):
        p = tl.load(proba + row * row_step + column, mask=column < m, other=0.0).to(dtype)
        mean = tl.sum(tl.sum(p, 1))
        if REST:  # the row does not list all labels
            mean += tl.load(rest + 8 * row)
        least_spread = tl.reduce(tl.reduce(p - p * p, 1, nan_min), 0, nan_min)
        if mean > MANY:  # left to the second call; P(y = 0) is negligible
            tl.store(tied + row, 0)
            tl.store(expected + row, tl.where(least_spread >= 0.0, _DENSE, _OUTSIDE))
        else:
            is_large = p > SMALL
            count = _list_tile(p, is_large, large_list)
            small = tl.where(is_large, 0.0, p)
            small_part = _small_exponent(small, u, rest + 8 * row, DOUBLE, REST)
            tl.debug_barrier()
            product, top = _product_and_top(large_list, count, zeta, NODES)
            if count == 0:
                top = tl.max(tl.max(p, 1))
            product, empty, present, log_empty = _masses(
                small_part, product, zero_division, NODES, NONEMPTY
            )
            floor, least = _least_candidate(large_list, count, top, mean, empty, beta2, tie, share)
            if least > SMALL:
                n_candidates = _list_again(large_list, count, least, candidate_list)
            else:
                n_candidates = _list_tile(p, (p >= least) & (p > 0.0), candidate_list)
            postponed = n_candidates > FEW
            if NONEMPTY and not REST:
                postponed = postponed | ((mean > 0.0) & (mean < TINY))
            n_candidates = tl.where(postponed, 0, n_candidates)
            tl.debug_barrier()
            _sort(candidate_list, n_candidates, sorted_list, NODES)
            tl.debug_barrier()

            # all sizes up to the bound of T(k)
            most = mean * ((1.0 + beta2) / floor * (1.0 + margin) - beta2) + 1.0
            most = tl.where(most < m, most, m * 1.0)
            limit = tl.where(n_candidates > 0, tl.minimum(n_candidates, most.to(tl.int32)), 0)
            size, best, peak = _best_size(
                sorted_list, limit, scale * product, zeta, leap, z_powers, tie, NODES
            )
            answer, wins = best_or_empty(best, peak, empty, present, tie, NONEMPTY)
            size = tl.where(wins, size, 0)
            to = labels + row * label_step + column
            stop = tl.where(postponed, 0, m)
            _mark(p, to, column < stop, sorted_list, size, n_candidates, tied + row)
            answer = tl.where(postponed, tl.maximum(log_empty, -999.0) + _POSTPONED, answer)
            tl.store(expected + row, tl.where(least_spread >= 0.0, answer, _OUTSIDE))


@lru_cache(maxsize=64)
def _table(beta: float, m: int, settings: tuple[float, ...], dtype: Any, device: Any) -> Any:
    """Return the rule for rows of m labels with the settings as one tensor, and its width."""
    rule = nodes(beta, m, m)
    beta2 = beta * beta
    width = max(32, triton.next_power_of_2(len(rule.log_z) + 1))
    log_z = np.zeros(width)
    log_z[: len(rule.log_z)] = rule.log_z
    zeta, u = np.exp(beta2 * log_z), -np.expm1(beta2 * log_z)
    scale = np.zeros(width)
    scale[: len(rule.weight)] = (1.0 + beta2) * rule.weight
    scale *= zeta * np.exp(log_z)
    zeta[-1], u[-1] = 0.0, 1.0
    z_powers = np.exp(np.arange(_CHUNK.value)[:, None] * log_z)  # (chunk, width)
    heads = np.concatenate([zeta, u, scale, np.exp(_CHUNK.value * log_z)])
    flat = np.concatenate([heads, np.repeat(z_powers, 2, axis=1).ravel(), settings])
    return torch.as_tensor(flat, dtype=dtype, device=device), width


def decide_rows(
    precision: Precision, proba: Any, objective: Objective, on_host: Callable[[Any], Decision]
) -> Decision:
    """Decide from marginals, (n, m), on a CUDA device.

    `on_host` decides rows with the compiled kernels: those that no kernel here can decide.
    """
    if proba.stride(1) != 1:
        proba = proba.contiguous()
    return _decide(precision, proba, objective, on_host, probing=True)


def _decide(
    precision: Precision,
    proba: Any,
    objective: Objective,
    on_host: Callable[[Any], Decision],
    *,
    probing: bool,
) -> Decision:
    """Decide from marginals, (n, m), with contiguous rows.

    With `probing`, all rows are first tried by the kernel for rows in which many labels are
    expected, if the first rows of a large array are such.
    """
    n, m = proba.shape
    device = proba.device
    labels = torch.empty((n, m), dtype=torch.int8, device=device)
    expected = torch.empty((n,), dtype=precision.dtype, device=device)
    tied = torch.empty((n,), dtype=torch.int32, device=device)
    first = _PROBED if probing and n >= 4 * _PROBED else n
    _launch(precision, proba[:first], labels[:first], expected[:first], tied[:first], objective)
    if first < n and bool((expected[:first] == DENSE).all()):
        expected[first:] = DENSE
        numbers = torch.arange(n, device=device)
        numbers = decide_dense_rows(proba, numbers, labels, expected, objective, _programs(device))
        if len(numbers):
            check_rows(precision, proba, numbers)
            labels[numbers], expected[numbers] = _decide(
                precision, proba[numbers], objective, on_host, probing=False
            )
        return Decision(labels, expected)
    if first < n:
        _launch(
            precision, proba[first:], labels[first:], expected[first:], tied[first:], objective
        )
    outside, postponed, ties = torch.stack(  # in one transfer
        [(expected == _OUTSIDE.value).sum(), (expected <= POSTPONED).sum(), tied.count_nonzero()]
    ).tolist()
    if ties:
        _resolve_ties(precision, proba, labels, tied)
    if outside:
        numbers = (expected == _OUTSIDE.value).nonzero()[:, 0]
        check_rows(precision, proba, numbers)
        labels[numbers], expected[numbers] = _decide(
            precision, proba[numbers].clamp(0.0, 1.0), objective, on_host, probing=False
        )
    if postponed:
        numbers = (expected <= POSTPONED).nonzero()[:, 0]
        numbers = decide_dense_rows(proba, numbers, labels, expected, objective, _programs(device))
        if len(numbers):
            labels[numbers], expected[numbers] = on_host(proba[numbers])
    return Decision(labels, expected)


def check_rows(precision: Precision, proba: Any, numbers: Any, first_row: int = 0) -> None:
    """Raise unless the values of the rows `at` lie in [0, 1], up to rounding."""
    rows = proba[numbers]
    wrong = ~((rows >= -precision.slack) & (rows <= 1.0 + precision.slack)).all(dim=1)
    if bool(wrong.any()):
        row = int(numbers[wrong.nonzero()[0, 0]])
        check_probabilities(to_host(proba[row : row + 1]), "proba", first_row + row)


def decide_listed(
    precision: Precision, proba: Any, objective: Objective, rest: Any, reach: int
) -> Decision:
    """Decide rows that list their larger labels, given the power sums of the others, (n, 8).

    A row has at most `reach` labels but for a negligible probability.
    """
    n = len(proba)
    labels = torch.empty(proba.shape, dtype=torch.int8, device=proba.device)
    expected = torch.empty((n,), dtype=precision.dtype, device=proba.device)
    tied = torch.empty((n,), dtype=torch.int32, device=proba.device)
    _launch(precision, proba, labels, expected, tied, objective, rest, reach)
    _resolve_ties(precision, proba, labels, tied)
    return Decision(labels, expected)


def _resolve_ties(precision: Precision, proba: Any, labels: Any, tied: Any) -> None:
    """Choose the first ones among the labels equal to the last chosen one.

    `tied` is the number of chosen labels of rows in which all of these are marked, else 0.
    """
    numbers = tied.nonzero()[:, 0]
    if len(numbers):
        p, marked = proba[numbers].to(precision.dtype), labels[numbers] > 0
        least = torch.where(marked, p, 2.0).amin(dim=1)
        labels[numbers] = largest_labels(p, least, tied[numbers])


def _launch(
    precision: Precision,
    proba: Any,
    labels: Any,
    expected: Any,
    tied: Any,
    objective: Objective,
    rest: Any = None,
    reach: int = 0,
) -> None:
    """Write labels, expected F, negative for rows that are not decided, and ties."""
    n, m = proba.shape
    beta2, margin = objective.beta2, precision.margin
    settings = (
        beta2,
        objective.zero_division,
        precision.tie,
        margin,
        (1.0 - margin) / ((1.0 + beta2) * (1.0 + 1.0 / (beta2 + 2.0))),
    )
    table, nodes_wide = _table(
        objective.beta, max(m, reach), settings, precision.dtype, proba.device
    )
    block = max(64, triton.next_power_of_2(m))
    warps = max(1, block // _ROW)
    programs = min(n, multiprocessors(proba.device) * max(1, _WARPS // warps))
    lists = torch.empty((programs, _LISTS * block), dtype=precision.dtype, device=proba.device)
    with torch.cuda.device(proba.device):
        _rows_kernel[(programs,)](
            proba,
            labels,
            expected,
            tied,
            table,
            lists,
            lists if rest is None else rest,
            n,
            proba.stride(0),
            m,
            m,
            WIDTH=32 * warps,
            DEPTH=block // (32 * warps),
            NODES=nodes_wide,
            FEW=_FEW if rest is None else m,
            MANY=MANY if rest is None else 1e9,
            REST=rest is not None,
            DOUBLE=precision.itemsize == 8,
            NONEMPTY=objective.nonempty,
            num_warps=warps,
            maxnreg=_REGISTERS if warps == 1 else None,
        )


def _programs(device: Any) -> int:
    """Return how many programs of one warp to launch."""
    return _WARPS * multiprocessors(device)
