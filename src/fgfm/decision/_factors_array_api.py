"""Decisions from independent factors, on arrays of PyTorch, CuPy and JAX.

Formulas and bounds are those of `fgfm._kernels.factors`: for label i of factor f,

    E[y_i zeta^s] = G_i(zeta) prod_{g != f} D_g(zeta),
    G_i(zeta) = sum_s p^f_is zeta^s,      D_g(zeta) = sum_s d^g_s zeta^s,

at the nodes zeta of a quadrature rule. All factors of a block are padded to the largest S_f.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm._utils.validation import (
    CARDINALITY_AXES,
    DISTRIBUTION_AXES,
    check_cardinality_shape,
    check_distribution_shape,
    check_factors,
    check_same_rows,
)
from fgfm.decision._array_api.backend import Backend, common_backend, read_array
from fgfm.decision._array_api.checks import read_distribution, read_factors
from fgfm.decision._array_api.columns import Columns, decide_columns, gather, rank_candidates
from fgfm.decision._array_api.precision import full_precision
from fgfm.decision._array_api.selection import decide_blocks, power_of_two
from fgfm.decision._averages import Route
from fgfm.decision._marginals_array_api import TAIL, decide_each_label
from fgfm.decision._objective import Decision, Objective
from fgfm.decision._quadrature import nodes

__all__ = ["GROWTH", "ROUTE", "decide_rows_as_factors", "marginals_of", "with_no_label"]

Array = Any
_LONGEST_FACTOR = 16  # labels of a factor that the Triton kernel takes
_MOST_LABELS = 1024  # labels of a row, with numbers padded to powers of two
GROWTH = (2.0, 1.0, 0.5, 0.25, 0.125, 0.0625)  # exponents at which the tail of s is bounded


class _Layout(NamedTuple):
    """How the factors are read: in groups of one shape and dtype, whose labels are then sorted."""

    groups: list[list[int]]  # factors
    place: Array  # (m,) the position of each label in the concatenated groups
    factor: Array  # (m,) the factor of each label, numbered in the order of the groups


class _Factors(NamedTuple):
    """The P of each factor, their distributions if given, and how they are read."""

    backend: Backend
    parts: list[Array]
    distributions: list[Array]
    members: list[npt.NDArray[np.int64]]  # the labels of each factor
    layout: _Layout
    longest: int  # the largest S_f

    def read(self, rows: slice) -> tuple[Array, Array]:
        """Return P of all labels, (n, m, longest), and d of all factors, (n, F, longest + 1)."""
        return _read_block(
            self.backend, self.parts, self.distributions, self.layout, self.longest, rows
        )


def _read(arrays: Sequence[Any], n_factors: int, factors: Any) -> _Factors:
    """Validate the P of each factor, (n, m_f, S_f), followed by their distributions, if any."""
    parts, xp = [], None
    names = [f"Ps[{f}]" for f in range(n_factors)]
    for name, value in zip(names, arrays[:n_factors], strict=True):
        P, namespace = read_array(value, name, CARDINALITY_AXES)
        check_cardinality_shape(tuple(P.shape), name)
        parts.append(P)
        xp = xp or namespace
    check_same_rows([P.shape[0] for P in parts], names)
    members = check_factors(factors, [P.shape[1] for P in parts])
    distributions = []
    for f, value in enumerate(arrays[n_factors:]):
        name = f"distributions[{f}]"
        d, _ = read_array(value, name, DISTRIBUTION_AXES)
        check_distribution_shape(tuple(d.shape), name, parts[f].shape[0], parts[f].shape[2])
        distributions.append(d)
        names.append(name)
    backend = common_backend([*parts, *distributions], names, xp)
    layout = _layout(backend, parts, members)
    longest = max(P.shape[2] for P in parts)
    return _Factors(backend, parts, distributions, list(members), layout, longest)


def _decide_rows(*arrays: Any, n_factors: int, factors: Any, objective: Objective) -> Decision:
    read = _read(arrays, n_factors, factors)
    backend = read.backend
    objective = backend.representable(objective)
    n, m = read.parts[0].shape[0], read.layout.place.shape[0]

    if _has_kernel(read):
        from fgfm.decision._factors_triton import decide_factors

        decided = decide_factors(backend, read.parts, read.members, objective)
        if decided is not None:
            return decided

    def decide(rows: slice) -> tuple[Array, Array]:
        return _decide_block(backend, *read.read(rows), read.layout.factor, objective)

    most_nodes = len(nodes(objective.beta, m, m).log_z)
    row_bytes = (
        2 * m * read.longest + 7 * most_nodes * m + most_nodes * n_factors
    ) * backend.itemsize
    return decide_blocks(backend, n, m, row_bytes, decide)


def _has_kernel(read: _Factors) -> bool:
    """Return True if the Triton kernel for small factors applies."""
    if read.distributions or not read.backend.has_triton:
        return False
    n, F, size = read.parts[0].shape[0], len(read.parts), max(P.shape[1] for P in read.parts)
    padded = power_of_two(size, 1 << 30) * power_of_two(F, 1 << 30)
    return n > 0 and max(size, read.longest) <= _LONGEST_FACTOR and padded <= _MOST_LABELS


def _marginals(*arrays: Any, n_factors: int, factors: Any) -> Array:
    read = _read(arrays, n_factors, factors)
    P, _ = read.read(slice(0, read.parts[0].shape[0]))
    return marginals_of(read.backend, P)


def _decide_batch(*arrays: Any, n_factors: int, factors: Any, objective: Objective) -> Decision:
    read = _read(arrays, n_factors, factors)
    P, d = read.read(slice(0, read.parts[0].shape[0]))
    return decide_rows_as_factors(read.backend, P, d, read.layout.factor, objective)


def marginals_of(backend: Backend, P: Array) -> Array:
    """Return the marginals, (n, m), from P, (n, m, S)."""
    return backend.xp.clip(backend.xp.sum(P, axis=2), 0.0, 1.0)


def with_no_label(backend: Backend, d: Array) -> Array:
    """Prepend d_0 to d_1 .. d_S, (n, F, S)."""
    present = backend.xp.sum(d, axis=2, keepdims=True)
    return backend.xp.concat([backend.xp.clip(1.0 - present, 0.0, None), d], axis=2)


def decide_rows_as_factors(
    backend: Backend, P: Array, d: Array, factor: Array, objective: Objective
) -> Decision:
    """Decide all rows together, where every row has the same factors.

    Parameters
    ----------
    backend : Backend
        Namespace, device and precision.
    P : array of shape (n, m, S)
        The joint probabilities of each label and of the cardinality of its factor.
    d : array of shape (n, F, S + 1)
        The distributions of the factors.
    factor : array of shape (m,)
        The factor of each label.
    objective : Objective
        What is maximised.

    Returns
    -------
    Decision
        With the expectation of the batch.
    """
    xp = backend.xp
    n, m, S = P.shape
    F = d.shape[1]
    if n == 0:
        labels = xp.zeros((0, m), dtype=xp.int8, device=backend.device)
        return Decision(labels, backend.array(objective.value_without_labels))
    first = F * xp.arange(n, dtype=factor.dtype, device=backend.device)[:, None]  # (n, 1)
    with np.errstate(all="ignore"):  # array-api-strict computes with NumPy
        labels, expected_f = _decide_block(
            backend,
            xp.reshape(P, (1, n * m, S)),
            xp.reshape(d, (1, n * F, S + 1)),
            xp.reshape(first + factor[None, :], (n * m,)),
            backend.representable(objective),
        )
    return Decision(xp.reshape(labels, (n, m)), expected_f[0])


def _layout(
    backend: Backend, parts: Sequence[Array], members: Sequence[npt.NDArray[np.int64]]
) -> _Layout:
    """Group factors of the same shape and dtype, so that one operation reads all of a group."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for f, P in enumerate(parts):
        groups.setdefault((*P.shape[1:], str(P.dtype)), []).append(f)
    sequence = [f for group in groups.values() for f in group]
    order = np.argsort(np.concatenate([members[f] for f in sequence]))  # (m,)
    owner = np.repeat(np.arange(len(parts)), [len(members[f]) for f in sequence])[order]
    return _Layout(
        list(groups.values()),
        backend.xp.asarray(order, device=backend.device),
        backend.xp.asarray(owner, device=backend.device),
    )


def _read_block(
    backend: Backend,
    parts: Sequence[Array],
    distributions: Sequence[Array],
    layout: _Layout,
    longest: int,
    rows: slice,
) -> tuple[Array, Array]:
    """Return P of all labels, (n, m, longest), and d of all factors, (n, F, longest + 1)."""
    xp = backend.xp
    P_groups, d_groups = [], []
    for group in layout.groups:
        stacked = xp.stack([parts[f][rows, ...] for f in group], axis=1)  # (n, F, m_f, S_f)
        P, d = read_factors(
            backend,
            stacked,
            [f"Ps[{f}]" for f in group],
            rows.start,
            any_mass=bool(distributions),
        )
        if distributions:
            given = [
                read_distribution(
                    backend, distributions[f][rows, ...], f"distributions[{f}]", rows.start
                )
                for f in group
            ]
            d = xp.stack(given, axis=1)  # (n, F, S_f + 1)
        else:
            d = with_no_label(backend, d)  # (n, F, S_f + 1)
        P_groups.append(_padded(backend, xp.reshape(P, (P.shape[0], -1, P.shape[3])), longest))
        d_groups.append(_padded(backend, d, longest + 1))
    P = xp.take(xp.concat(P_groups, axis=1), layout.place, axis=1)
    return P, xp.concat(d_groups, axis=1)


def _padded(backend: Backend, array: Array, size: int) -> Array:
    """Pad the last axis with zeros."""
    missing = size - array.shape[-1]
    if missing == 0:
        return array
    shape = (*array.shape[:-1], missing)
    zeros = backend.xp.zeros(shape, dtype=backend.dtype, device=backend.device)
    return backend.xp.concat([array, zeros], axis=-1)


def _decide_block(
    backend: Backend, P: Array, d: Array, factor: Array, objective: Objective
) -> tuple[Array, Array]:
    """Decide from P, (n, m, S), and the distributions of the factors, (n, F, S + 1)."""
    xp, beta2 = backend.xp, objective.beta2
    n, m, S = P.shape
    s = backend.one_to(S)
    own_present = xp.sum(d[:, :, 1:], axis=2)  # (n, F)
    # A given d_0 may be far smaller than the rounding error of 1 - own_present.
    log_absent = xp.where(
        own_present < 0.5, xp.log1p(-xp.clip(own_present, 0.0, 0.5)), xp.log(d[:, :, 0])
    )
    log_empty = xp.sum(log_absent, axis=1)
    present = -xp.expm1(log_empty)
    empty = xp.exp(log_empty) * objective.empty_value
    own_mean = xp.sum(d[:, :, 1:] * s, axis=2)  # (n, F)
    others = xp.sum(own_mean, axis=1)[:, None] - xp.take(own_mean, factor, axis=1)  # (n, m)
    p = xp.sum(P, axis=2)
    weighted = xp.sum(P * s, axis=2) + others * p  # (n, m) E[y_i s]
    s_max = _cardinality_bound(backend, xp.sum(d[:, :, 1:], axis=1), m)
    candidates = rank_candidates(backend, p, weighted, s_max, empty, objective)
    M = candidates.order.shape[1]
    (reach,) = backend.fetch(xp.max(s_max))
    rule = nodes(objective.beta, math.ceil(reach), M)
    log_zeta = beta2 * rule.log_z  # (R,)
    powers = np.exp(np.arange(S + 1)[:, None] * log_zeta)  # (S + 1, R)
    with full_precision(backend):
        D = d @ backend.array(powers)[None, :, :]  # (n, F, R)
        G = xp.permute_dims(gather(backend, P, candidates.order), (0, 2, 1))  # (n, M, S)
        G = G @ backend.array(powers[:-1])[None, :, :]  # (n, M, R) G_i(zeta) / zeta
    product = xp.prod(D, axis=1)[:, None, :]  # (n, 1, R)
    at = xp.take(factor, xp.reshape(candidates.order, (-1,)))
    at = xp.reshape(at, (n, M, 1))
    own = xp.take_along_axis(D, xp.broadcast_to(at, G.shape), axis=1)  # (n, M, R)
    C = xp.where(own > 0.0, G * product / xp.where(own > 0.0, own, 1.0), 0.0)  # where D is 0, G is
    scale = (1.0 + beta2) * rule.weight * np.exp(log_zeta)
    columns = Columns(
        xp.permute_dims(C, (0, 2, 1)),
        backend.array(rule.log_z)[None, :],
        backend.array(scale)[None, :],
        True,
    )
    return decide_columns(backend, columns, candidates, empty, present, objective)


def _cardinality_bound(backend: Backend, histogram: Array, total: int) -> Array:
    """Bound s up to a probability of exp(-TAIL), also given any y_i = 1; (n,).

    `histogram` (n, S) sums d_1 .. d_S over the factors. Chernoff's bound, with log(1 + x) <= x:
    log E[exp(t s)] <= sum_s histogram_s (exp(t s) - 1), at several rates t.
    """
    xp, S = backend.xp, histogram.shape[1]
    upper = xp.sum(histogram, axis=1) * 0.0 + float(total)
    for rate in GROWTH:
        if rate * S < 50.0:  # exp(t S) stays far from overflow
            growth = backend.array(np.expm1(rate * np.arange(1.0, S + 1.0)))
            bound = (TAIL + xp.sum(histogram * growth, axis=1)) / rate + S
            upper = xp.where(bound < upper, bound, upper)
    return xp.where(upper > 1.0, upper, 1.0)


ROUTE = Route(_decide_rows, _marginals, _decide_batch, decide_each_label)
