"""Decide from independent labels, at most 128 of them: every set size, one rule for all rows.

The values are those of `marginals`. With few labels its bounds cost more than they save
(docs/design.md, "Independent labels"): here one rule of the table serves every row, so that no
exponential is computed, and only the labels that can be in an optimal set are sorted.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fgfm._kernels._compile import compiled, compiled_sums, entry_point_sums
from fgfm._kernels.constants import NOT_PROBABILITY, TIE

__all__ = [
    "SHORT",
    "decide_short_row",
    "decide_short_rows",
    "load_short_rule",
    "short_workspace",
]

SHORT = 128  # the largest number of labels
_LIKELY = 0.25  # the labels from this probability on form the first guess of the optimal set


class ShortWorkspace(NamedTuple):
    """Scratch arrays for rows of up to ``SHORT`` labels and rules of R nodes."""

    scale: Any  # (R,) (1 + beta^2) w_r zeta_r z_r, of the loaded rule
    A: Any  # (R,) A_k(u)
    multiplier: Any  # (R,) multiplies A_k(u) in V_k
    padded: Any  # (SHORT + 3,) the marginals, zeros behind them
    sorted_p: Any  # (SHORT + 1,) marginals of the candidates, in descending order
    sorted_index: Any  # (SHORT + 1,) their indices
    set_value: Any  # (SHORT + 1,) V_k


@compiled
def short_workspace(nodes):
    """Allocate a workspace for rules of up to `nodes` nodes."""
    return ShortWorkspace(
        np.empty(nodes),
        np.empty(nodes),
        np.empty(nodes),
        np.zeros(SHORT + 3),
        np.empty(SHORT + 1),
        np.empty(SHORT + 1, dtype=np.int64),
        np.empty(SHORT + 1),
    )


@compiled
def load_short_rule(rules, beta2, m, work):
    """Fill ``work.scale`` for m labels; return where their rule starts and ends in the table.

    The rule covers every a = beta^2 s + k, up to (1 + beta^2) m.
    """
    t = 0
    while rules.fixed_reach[t] < (1.0 + beta2) * m:
        t += 1
    first = rules.fixed_start[t]
    last = rules.fixed_start[t + 1]
    for r in range(last - first):
        scale = (1.0 + beta2) * rules.fixed_weight[first + r] * rules.fixed_zeta[first + r]
        work.scale[r] = scale * rules.fixed_z[first + r]
    return first, last


@compiled_sums
def decide_short_row(p, chosen, beta2, zero_division, nonempty, z, u, work):
    """Mark the F-optimal set of one row in `chosen`; return its expected F, or a status.

    `z` and `u` belong to the rule for the length of the row, with which `work` has been loaded.
    Returns NaN if `nonempty` is set and every p is 0.
    """
    m = len(p)
    nodes = len(z)
    scale, A, multiplier, padded, sorted_p, sorted_index, set_value = work
    # An optimal set of value V and of two or more labels has none with p < share * V.
    share = (1.0 - 1e-9) / ((1.0 + beta2) * (1.0 + 1.0 / (beta2 + 2.0)))
    for i in range(m, m + 3):
        padded[i] = 0.0
    mean = 0.0
    likely_mass = 0.0
    n_likely = 0
    empty_value = 1.0  # p(y = 0), times zero_division below
    n_invalid = 0
    top = 0.0
    for i in range(m):
        x = float(p[i])
        padded[i] = x
        n_invalid += not 0.0 <= x <= 1.0
        mean += x
        empty_value *= 1.0 - x
        is_likely = x >= _LIKELY
        n_likely += is_likely
        likely_mass += x if is_likely else 0.0
        top = max(top, x)
    if n_invalid:
        return NOT_PROBABILITY
    p_nonempty = 1.0
    if nonempty:
        if top < 1.0:
            log_p_empty = 0.0
            for i in range(m):
                log_p_empty += math.log1p(-padded[i])
            p_nonempty = -math.expm1(log_p_empty)
        if p_nonempty == 0.0:
            return math.nan
        empty_value = 0.0
    else:
        empty_value *= zero_division
        if (1.0 + beta2) * mean <= empty_value * (1.0 + TIE) * (beta2 * mean + 1.0):
            return empty_value  # T(1), which bounds every other set, is not above it
    # Lower bounds, by Jensen's inequality, on the values of two sets: the likely labels, and the
    # single most probable label. The common factor 1 + beta^2 follows in the next line.
    floor = max(
        likely_mass / (beta2 * (1.0 + mean) + n_likely), top / (beta2 * (1.0 + mean) + 1.0)
    )
    min_p = min(top, max((1.0 + beta2) * floor, empty_value) * share)
    count = 0
    for i in range(m):  # sort the candidates by insertion; equal labels keep their order
        x = padded[i]
        if x >= min_p:
            j = count
            while j > 0 and x > sorted_p[j - 1]:
                sorted_p[j] = sorted_p[j - 1]
                sorted_index[j] = sorted_index[j - 1]
                j -= 1
            sorted_p[j] = x
            sorted_index[j] = i
            count += 1
    for r in range(nodes):
        A[r] = 0.0
        multiplier[r] = scale[r]
    # Multiply by D(zeta_r) = prod_i (1 - p_i u_r), four labels per pass over the nodes.
    for i in range(0, m, 4):
        p1, p2, p3, p4 = padded[i], padded[i + 1], padded[i + 2], padded[i + 3]
        for r in range(nodes):
            v = u[r]
            multiplier[r] *= ((1.0 - p1 * v) * (1.0 - p2 * v)) * ((1.0 - p3 * v) * (1.0 - p4 * v))
    peak = empty_value
    size = 0
    # V_k of all sizes k = size + 1, until the bound T(k) <= (1 + beta^2) E / (beta^2 E + k) falls
    # below the largest value.
    while size < count and (1.0 + beta2) * mean >= peak * (beta2 * mean + size + 1.0):
        x = sorted_p[size]
        result = 0.0
        for r in range(nodes):
            y = A[r] + x / (1.0 - x * u[r])
            A[r] = y
            result += multiplier[r] * y
            multiplier[r] *= z[r]
        set_value[size] = result
        peak = max(peak, result)
        size += 1
    if not nonempty and peak <= empty_value * (1.0 + TIE):
        return empty_value
    end = 0  # of equal values the smallest set is chosen
    while set_value[end] < peak * (1.0 - TIE):
        end += 1
    for i in range(end + 1):
        chosen[sorted_index[i]] = 1
    return set_value[end] / p_nonempty


@entry_point_sums
def decide_short_rows(proba, beta2, zero_division, nonempty, rules, labels, expected):
    """Decide every row of `proba` (n, m); return the first invalid row or -1, a status, 0.

    The same as ``marginals.decide_dense_rows``, for m <= SHORT.
    """
    work = short_workspace(rules.longest)
    first, last = load_short_rule(rules, beta2, proba.shape[1], work)
    z = rules.fixed_z[first:last]
    u = rules.fixed_u[first:last]
    for row in range(proba.shape[0]):
        expected[row] = decide_short_row(
            proba[row], labels[row], beta2, zero_division, nonempty, z, u, work
        )
        if expected[row] < 0.0:
            return row, expected[row], 0
    return -1, 0.0, 0
