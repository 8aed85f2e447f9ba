"""Decisions from marginals of independent labels, on arrays of PyTorch, CuPy and JAX.

Formulas and bounds are those of `fgfm._kernels.marginals`: with the labels in order of falling p,
zeta = z^(beta^2) and u = 1 - zeta, the value of the k first labels is

    V_k = (1 + beta^2) sum_r w_r z_r^k zeta_r D(zeta_r) A_k(u_r),
    D(zeta) = prod_i (1 - p_i u),      A_k(u) = sum_{i <= k} p_i / (1 - p_i u).

For the Jaccard index (`fgfm._kernels.jaccard`), with u = 1 - z and M_k the sum of the first k,

    V_k = M_k sum_r w_r z_r^k prod_{i > k} (1 - p_i u_r).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fgfm._utils.validation import check_logits, check_marginals
from fgfm.decision._array_api.backend import (
    Backend,
    common_backend,
    has_float64,
    read_array,
    to_host,
)
from fgfm.decision._array_api.selection import (
    best_size,
    decide_blocks,
    largest_labels,
    power_of_two,
)
from fgfm.decision._averages import Route
from fgfm.decision._objective import Decision, Objective
from fgfm.decision._quadrature import nodes

__all__ = [
    "POWERS",
    "ROUTE",
    "SMALL",
    "TAIL",
    "decide_each_label",
    "decide_marginals",
    "with_input_dtype",
]

Array = Any
SMALL = 1.0 / 64.0  # labels up to this probability enter products through power sums
POWERS = 8  # number of power sums: SMALL^POWERS / POWERS is below the rounding error
TAIL = 34.0  # cardinalities of probability below exp(-TAIL) need no accurate rule
_LONGEST_TRITON_ROW = 16384  # labels that a Triton program can keep in registers
_LOWEST_FLOAT32 = -80.0  # logits of a sigmoid that float32 keeps, and its products
_TEMPORARIES = 10  # arrays of the size of a block that exist at the same time


def decide_marginals(proba: Any, objective: Objective, logits: bool = False) -> Decision:
    """Decide each row from marginals, (n, m)."""
    proba, xp = read_array(proba, "proba", ("row", "label"))
    backend = common_backend([proba], ["proba"], xp)
    if logits:
        proba = _sigmoid(backend, proba)
        backend = common_backend([proba], ["proba"], xp)
    return _decide_rows(backend, proba, objective)


def _decide_rows(backend: Backend, proba: Array, objective: Objective) -> Decision:
    objective = backend.representable(objective)
    n, m = proba.shape

    def by_library(proba: Array) -> Decision:
        def decide(rows: slice) -> tuple[Array, Array]:
            return _decide_block(backend, proba[rows, ...], objective, rows.start)

        row_bytes = _TEMPORARIES * m * backend.itemsize
        return decide_blocks(backend, proba.shape[0], m, row_bytes, decide)

    if n and objective.measure == "f" and backend.has_triton:
        if not proba.is_floating_point() or proba.element_size() == 1:
            proba = backend.floats(proba)  # kernels load -1 in place of absent labels
        if m <= _LONGEST_TRITON_ROW:
            from fgfm.decision._marginals_triton import decide_rows
        else:
            from fgfm.decision._marginals_triton_long import decide_rows
        return decide_rows(backend, proba, objective, by_library)
    return by_library(proba)


def decide_each_label(marginals: Array, objective: Objective) -> Decision:
    """Decide each label over the rows, from marginals, (n, m), or those of one label, (n,)."""
    table = marginals[:, None] if len(marginals.shape) == 1 else marginals
    return _decide_columns(table, objective, marginals)


def _decide_columns(marginals: Array, objective: Objective, given: Array) -> Decision:
    """Decide each label over the rows; errors name places of `given`, not of a transpose."""
    from array_api_compat import array_namespace

    xp = array_namespace(marginals)
    backend = common_backend([marginals], ["proba"], xp)
    n, m = marginals.shape
    if n == 0:
        value = backend.array([objective.value_without_labels] * m)
        return Decision(xp.zeros((0, m), dtype=xp.int8, device=backend.device), value)
    try:
        labels, expected_f = _decide_rows(backend, xp.permute_dims(marginals, (1, 0)), objective)
    except ValueError:
        check_marginals(to_host(given), "proba", [0] * len(given.shape))
        raise
    return Decision(xp.permute_dims(labels, (1, 0)), expected_f)


def _marginals(proba: Any, logits: bool = False) -> Array:
    """Return the marginals, (n, m), or (n,) for those of one label; they may be invalid."""
    axes = ("row",) if len(proba.shape) == 1 else ("row", "label")
    proba, xp = read_array(proba, "proba", axes)
    return _sigmoid(common_backend([proba], ["proba"], xp), proba) if logits else proba


def _decide_entries(proba: Any, objective: Objective, logits: bool = False) -> Decision:
    """Decide all entries together."""
    from array_api_compat import array_namespace

    marginals = _marginals(proba, logits)
    xp = array_namespace(marginals)
    decided = _decide_columns(xp.reshape(marginals, (-1, 1)), objective, marginals)
    table = (marginals.shape[0], 1) if len(marginals.shape) == 1 else marginals.shape
    return Decision(xp.reshape(decided.labels, table), decided.expected_f[0])


def _sigmoid(backend: Backend, logits: Array) -> Array:
    """Return the sigmoid of logits; raise for NaN.

    It is float64, if the device has that, where float32 would lose the largest probability of a
    row or column.
    """
    xp, dtype = backend.xp, backend.dtype
    values = backend.floats(logits)
    if 0 in logits.shape:
        return values
    tops = [xp.min(xp.max(values, axis=axis)) for axis in range(len(logits.shape))]
    wrong, *lowest = backend.fetch(xp.any(xp.isnan(values)), *tops)
    if wrong:
        check_logits(to_host(logits), "proba", [0] * len(logits.shape))
    if min(lowest) < _LOWEST_FLOAT32 and has_float64(xp, backend.device):
        dtype = xp.float64
    with np.errstate(all="ignore"):  # array-api-strict computes with NumPy
        return 1.0 / (1.0 + xp.exp(-xp.astype(logits, dtype, copy=False)))


def with_input_dtype(decision: Decision, proba: Array) -> Decision:
    """Return a decision from logits with expectations in the type for `proba`."""
    from array_api_compat import array_namespace

    backend = common_backend([proba], ["proba"], array_namespace(proba))
    return Decision(decision.labels, backend.floats(decision.expected_f))


def _decide_block(
    backend: Backend, raw: Array, objective: Objective, first_row: int
) -> tuple[Array, Array]:
    xp, m = backend.xp, raw.shape[1]
    p = backend.floats(raw)
    wrong = xp.any(~((p >= -backend.slack) & (p <= 1.0 + backend.slack)))  # True for NaN
    p = xp.clip(p, 0.0, 1.0)
    x = xp.sort(p, axis=1, descending=True)  # (n, m)
    mean = xp.sum(p, axis=1)  # (n,) E[s]
    log_empty = xp.sum(xp.log1p(-p), axis=1)
    present = -xp.expm1(log_empty)  # without cancellation where all p are tiny
    empty = xp.exp(log_empty) * objective.empty_value
    last = _last_size(backend, x, mean, empty, objective)  # (n,)
    bad, most, large, top_mean = backend.fetch(
        wrong, xp.max(last), xp.max(backend.count_true(p > SMALL, 1)), xp.max(mean)
    )
    if bad:
        check_marginals(to_host(raw), "proba", [first_row, 0])
    K = power_of_two(max(most, 1.0), m)
    reach = math.ceil(min(m, 1.0 + _largest_cardinality(top_mean)))
    width = max(K, power_of_two(large, m))  # labels beyond it are at most SMALL
    if objective.measure == "jaccard":
        V = _jaccard_values(backend, x, K, width, reach)
    else:
        V = _set_values(backend, x, K, width, reach, objective)
    size, expected = best_size(backend, objective, V, empty, present)
    at = backend.indices(xp.clip(size - 1.0, 0.0, None))[:, None]
    least = xp.take_along_axis(x, at, axis=1)[:, 0]
    # Labels are compared by their probabilities, exactly: no tolerance for ties.
    return largest_labels(backend, p, least, size, 0.0), expected


def _last_size(
    backend: Backend, x: Array, mean: Array, empty: Array, objective: Objective
) -> Array:
    """Return an upper bound on the size of an optimal set of each row, (n,); 0 if it is empty."""
    xp, beta2 = backend.xp, objective.beta2
    k = backend.one_to(x.shape[1])[None, :]
    M_k = xp.cumulative_sum(x, axis=1)  # (n, m)
    is_jaccard = objective.measure == "jaccard"
    # Jensen: V_k >= (1 + beta^2) M_k / (beta^2 (1 + E[s]) + k); Jaccard: M_k / (k + E[s] - M_k).
    if is_jaccard:
        union = k + mean[:, None] - M_k
        lower = M_k / xp.where(union > k, union, k)
    else:
        lower = (1.0 + beta2) * M_k / (beta2 * (1.0 + mean[:, None]) + k)
    best = xp.max(lower, axis=1)
    floor = xp.where(best > empty, best, empty)[:, None] * (1.0 - backend.margin)
    # By Chebyshev's sum inequality an optimal set of two or more labels holds none with
    # p (1 + beta^2) (1 + 1 / (beta^2 + 2)) < V; Jaccard: 3/2 p / (1 - p) < V.
    if is_jaccard:
        least = floor / (1.5 + floor)
        bound = mean[:, None] / k
    else:
        least = floor / ((1.0 + beta2) * (1.0 + 1.0 / (beta2 + 2.0)))
        bound = (1.0 + beta2) * mean[:, None] / (beta2 * mean[:, None] + k)  # >= T(k), by Jensen
    possible = (bound >= floor) & ((x >= least) | (k == 1.0)) & (x > 0.0)
    return xp.max(xp.where(possible, k, 0.0), axis=1)


def _set_values(
    backend: Backend, x: Array, K: int, width: int, reach: int, objective: Objective
) -> Array:
    """Compute V_k, (n, K), from the probabilities x, (n, m), in falling order.

    The labels from `width` >= K on are at most SMALL, and no row has more than `reach` labels.
    """
    xp, beta2 = backend.xp, objective.beta2
    rule = nodes(objective.beta, reach, K)
    sums = _power_sums(backend, xp.where(x <= SMALL, x, 0.0))
    head = x[:, :width]
    rest = 1.0 - head
    is_large = head > SMALL
    k = backend.one_to(K)
    V = xp.zeros((x.shape[0], K), dtype=backend.dtype, device=backend.device)
    for log_z, weight in zip(rule.log_z.tolist(), rule.weight.tolist(), strict=True):
        u, zeta = -math.expm1(beta2 * log_z), math.exp(beta2 * log_z)
        own = rest + head * zeta  # 1 - p u without cancellation
        own = xp.where(own > 0.0, own, 1.0)  # 0 where zeta underflows; the weight is 0 there too
        exponent = _small_exponent(sums, u)
        product = xp.prod(xp.where(is_large, own, 1.0), axis=1) * xp.exp(-exponent)  # (n,)
        share = xp.cumulative_sum(head[:, :K] / own[:, :K], axis=1)  # (n, K)
        scale = (1.0 + beta2) * weight * zeta
        V = V + scale * product[:, None] * xp.exp(k * log_z)[None, :] * share
    return V


def _jaccard_values(backend: Backend, x: Array, K: int, width: int, reach: int) -> Array:
    """Compute V_k of the Jaccard index; the arguments are those of `_set_values`."""
    xp = backend.xp
    rule = nodes(0.0, 0, K + reach)  # a = k + S starts at 1, as it does for beta = 0
    sums = _power_sums(backend, x[:, width:])
    head = x[:, :width]
    rest = 1.0 - head
    k = backend.one_to(K)[None, :]
    total = xp.zeros((x.shape[0], K), dtype=backend.dtype, device=backend.device)
    for log_z, weight in zip(rule.log_z.tolist(), rule.weight.tolist(), strict=True):
        u, z = -math.expm1(log_z), math.exp(log_z)
        own = xp.log(xp.where(head < 0.5, 1.0, rest + head * z))
        own = xp.where(head < 0.5, xp.log1p(-xp.clip(head, None, 0.5) * u), own)  # log(1 - p u)
        # sums from the right: over the labels after the k-th one
        after = xp.flip(xp.cumulative_sum(xp.flip(own, axis=1), axis=1), axis=1) - own
        outside = after[:, :K] - _small_exponent(sums, u)[:, None]
        total = total + weight * xp.exp(k * log_z + outside)
    return xp.cumulative_sum(head, axis=1)[:, :K] * total


def _largest_cardinality(mean: float) -> float:
    """Return x with P(s >= x) <= exp(-TAIL) for independent labels (Bernstein)."""
    return mean + TAIL / 3.0 + math.sqrt(TAIL * TAIL / 9.0 + 2.0 * TAIL * mean)


def _small_exponent(sums: list[Array], u: float) -> Array:
    """Return -log prod (1 - p u) = sum_j u^j (sum_i p_i^j) / j of small labels: Horner's rule."""
    exponent = 0.0 * sums[0]
    for j in range(POWERS, 0, -1):
        exponent = (exponent + sums[j - 1] / j) * u
    return exponent


def _power_sums(backend: Backend, small: Array) -> list[Array]:
    """Return sum_i p_i^j, (n,), for j = 1 .. POWERS."""
    sums, power = [], small
    for _ in range(POWERS):
        sums.append(backend.xp.sum(power, axis=1))
        power = power * small
    return sums


ROUTE = Route(decide_marginals, _marginals, _decide_entries, decide_each_label)
