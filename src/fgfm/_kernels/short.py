"""Independent labels, few of them: all set sizes at a fixed rule, and no exponential in a row.

The values are those of the module `marginals`. With few labels its bounds cost more than they
save: here one rule serves every row, and only labels that a bound leaves in the race are sorted.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fgfm._kernels._compile import compiled, compiled_sums, entry_point_sums
from fgfm._kernels.rule import NOT_PROBABILITY, TIE

__all__ = ["SHORT", "decide_short_row", "decide_short_rows", "load_short_rule", "short_space"]

SHORT = 128  # labels, at most
_LIKELY = 0.25  # labels from here on make the first guess


class ShortSpace(NamedTuple):
    """Arrays that a row may use as it likes, and the rule for its length."""

    scale: Any  # what multiplies A_k in V_k before any label is counted, node by node
    part: Any
    factor: Any
    padded: Any
    value: Any
    place: Any
    set_value: Any


@compiled
def short_space(nodes):
    """Make room for rows of up to ``SHORT`` labels and rules of so many nodes."""
    return ShortSpace(
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
    """Fill in `scale` of the rule for m labels; give where it begins and ends in the table."""
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
    """Mark the F-optimal set of one row in `chosen`; give its expected F, or a status.

    `z` and `u` are those of the rule for its length, which `work` was loaded with.
    """
    m = len(p)
    nodes = len(z)
    scale, part, factor, padded, value, place, set_value = work
    # an optimal set of two labels or more has none below its value times this
    share = (1.0 - 1e-9) / ((1.0 + beta2) * (1.0 + 1.0 / (beta2 + 2.0)))
    for i in range(m, m + 3):
        padded[i] = 0.0
    mean = 0.0
    mass = 0.0
    likely = 0
    empty = 1.0
    wrong = 0
    top = 0.0
    for i in range(m):
        x = float(p[i])
        padded[i] = x
        wrong += not 0.0 <= x <= 1.0
        mean += x
        empty *= 1.0 - x
        counts = x >= _LIKELY
        likely += counts
        mass += x if counts else 0.0
        top = max(top, x)
    if wrong:
        return NOT_PROBABILITY
    present = 1.0
    if nonempty:
        if top < 1.0:
            log_empty = 0.0
            for i in range(m):
                log_empty += math.log1p(-padded[i])
            present = -math.expm1(log_empty)
        if present == 0.0:
            return math.nan
        empty = 0.0
    else:
        empty *= zero_division
        if (1.0 + beta2) * mean <= empty * (1.0 + TIE) * (beta2 * mean + 1.0):
            return empty  # T(1) is no more than the worth of the empty set
    # by Jensen the likely labels, and the first one, are worth this at least
    floor = max(mass / (beta2 * (1.0 + mean) + likely), top / (beta2 * (1.0 + mean) + 1.0))
    least = min(top, max((1.0 + beta2) * floor, empty) * share)
    count = 0
    for i in range(m):
        x = padded[i]
        if x >= least:
            j = count
            while j > 0 and x > value[j - 1]:
                value[j] = value[j - 1]
                place[j] = place[j - 1]
                j -= 1
            value[j] = x
            place[j] = i
            count += 1
    for r in range(nodes):
        part[r] = 0.0
        factor[r] = scale[r]
    for i in range(0, m, 4):
        a, b, c, d = padded[i], padded[i + 1], padded[i + 2], padded[i + 3]
        for r in range(nodes):
            v = u[r]
            factor[r] *= ((1.0 - a * v) * (1.0 - b * v)) * ((1.0 - c * v) * (1.0 - d * v))
    peak = empty
    size = 0
    while size < count and (1.0 + beta2) * mean >= peak * (beta2 * mean + size + 1.0):  # T(k)
        x = value[size]
        result = 0.0
        for r in range(nodes):
            y = part[r] + x / (1.0 - x * u[r])
            part[r] = y
            result += factor[r] * y
            factor[r] *= z[r]
        set_value[size] = result
        peak = max(peak, result)
        size += 1
    if not nonempty and peak <= empty * (1.0 + TIE):
        return empty
    end = 0
    while set_value[end] < peak * (1.0 - TIE):
        end += 1
    for i in range(end + 1):
        chosen[place[i]] = 1
    return set_value[end] / present


@entry_point_sums
def decide_short_rows(proba, beta2, zero_division, nonempty, rules, labels, expected):
    """Decide every row of a dense block; give the first that is wrong, or -1, a status, 0."""
    work = short_space(rules.longest)
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
