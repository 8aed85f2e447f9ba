"""Independent factors of labels, on arrays of PyTorch, CuPy and JAX.

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

from fgfm._kernels import native
from fgfm._utils.validation import (
    CARDINALITY_AXES,
    DISTRIBUTION_AXES,
    check_cardinality_shape,
    check_distribution_shape,
    check_factors,
    check_same_rows,
)
from fgfm.decision import _factors
from fgfm.decision._array_api.backend import Backend, common_backend, full_precision, read_array
from fgfm.decision._array_api.checks import read_cardinalities, read_distribution, read_factors
from fgfm.decision._array_api.columns import (
    Columns,
    decide_by_kernel,
    decide_cardinality_columns,
    decide_columns,
    gather,
    rank_candidates,
)
from fgfm.decision._array_api.problem import ArrayProblem
from fgfm.decision._array_api.search import TAIL, power_of_two, scaled_up
from fgfm.decision._marginals_array_api import Marginals
from fgfm.decision._objective import Decision, Objective
from fgfm.decision._quadrature import nodes

__all__ = ["Cardinalities", "Factors", "GivenFactors", "with_no_label"]

Array = Any
_LONGEST_FACTOR = 16  # labels of a factor that the Triton kernel takes
_MOST_LABELS = 1024  # labels of a row, with numbers padded to powers of two
_GROWTH = native.GROWTH  # exponents at which the tail of s is bounded


class FactorProblem(ArrayProblem):
    """Rows with factors, whose P and distributions are padded to one number of cardinalities."""

    def factors(self, rows: slice) -> GivenFactors:
        """Return P, (n, m, S), and the distributions, (n, F, S + 1), of some of the rows."""
        raise NotImplementedError

    def marginals(self) -> Marginals:
        xp = self.backend.xp
        P = self.factors(slice(0, self.shape[0])).P
        return Marginals(xp.clip(xp.sum(P, axis=2), 0.0, 1.0))

    def as_one_row(self, threads: int = 1) -> GivenFactors:
        given = self.factors(slice(0, self.shape[0]))
        return GivenFactors.of_rows(given.backend, given.P, given.d, given.factor)


class GivenFactors(FactorProblem):
    """Factors with valid P, (n, m, S), and distributions, (n, F, S + 1).

    P has the cardinality of the own factor; `factor`, (m,), is the factor of each label.
    """

    def __init__(self, backend: Backend, P: Array, d: Array, factor: Array) -> None:
        self.backend, self.P, self.d, self.factor = backend, P, d, factor
        self.shape = P.shape[0], P.shape[1]
        self.row_bytes = P.shape[1] * P.shape[2] * backend.itemsize

    @classmethod
    def of_rows(
        cls, backend: Backend, P: Array, d: Array, factor: Array | None = None
    ) -> GivenFactors:
        """Return one row with the factors of all rows; by default each row is one factor."""
        xp = backend.xp
        n, m, S = P.shape
        F = d.shape[1]
        if factor is None:
            factor = xp.zeros((m,), dtype=xp.int64, device=backend.device)
        first = F * xp.arange(n, dtype=factor.dtype, device=backend.device)[:, None]  # (n, 1)
        return cls(
            backend,
            xp.reshape(P, (1, n * m, S)),
            xp.reshape(d, (1, n * F, S + 1)),
            xp.reshape(first + factor[None, :], (n * m,)),
        )

    def decide_block(self, rows: slice, objective: Objective) -> tuple[Array, Array]:
        P, d = self.P[rows, ...], self.d[rows, ...]
        return _decide_factor_rows(self.backend, P, d, self.factor, objective)


class Cardinalities(FactorProblem):
    """One factor, with P, (n, m, S), and perhaps its distribution, (n, S + 1): GFM."""

    host = _factors.Cardinalities

    def __init__(self, P: Any, distribution: Any = None) -> None:
        self._P, xp = read_array(P, "P", CARDINALITY_AXES)
        check_cardinality_shape(tuple(self._P.shape), "P")
        n, m, S = self._P.shape
        self.shape = n, m
        arrays, names = [self._P], ["P"]
        self._distribution = distribution
        if distribution is not None:
            self._distribution, _ = read_array(distribution, "distribution", DISTRIBUTION_AXES)
            check_distribution_shape(tuple(self._distribution.shape), "distribution", n, S)
            arrays, names = [self._P, self._distribution], ["P", "distribution"]
        self.backend = common_backend(arrays, names, xp)
        # A row needs P, two copies of it, and about 40 vectors of m labels during the search.
        self.row_bytes = m * (3 * S + 40) * self.backend.itemsize

    def factors(self, rows: slice) -> GivenFactors:
        """Return P, (n, m, S), and its distribution, (n, 1, S + 1), of some of the rows."""
        backend, given = self.backend, self._distribution
        P, d = read_cardinalities(
            backend, self._P[rows, ...], "P", rows.start, any_mass=given is not None
        )
        if given is None:
            d = with_no_label(backend, d[:, None, :])
        else:
            d = read_distribution(backend, given[rows, ...], "distribution", rows.start)
            d = d[:, None, :]
        factor = backend.xp.zeros((P.shape[1],), dtype=backend.xp.int64, device=backend.device)
        return GivenFactors(backend, P, d, factor)

    def decide_without_limits(self, objective: Objective) -> Decision:
        if self._distribution is None:
            decided = decide_by_kernel(self.backend, self._P, self._s, objective)
            if decided is not None:
                return Decision(*decided)
        return super().decide_without_limits(objective)

    @property
    def _s(self) -> npt.NDArray[np.float64]:
        """The cardinalities of P."""
        return np.arange(1.0, self._P.shape[2] + 1.0)

    def decide_block(self, rows: slice, objective: Objective) -> tuple[Array, Array]:
        xp = self.backend.xp
        given = self.factors(rows)
        d = given.d[:, 0, :]
        absent, present = d[:, 0], xp.sum(d[:, 1:], axis=1)
        if self._distribution is None:
            present = xp.clip(present, 0.0, 1.0)
            absent = 1.0 - present
        return decide_cardinality_columns(
            self.backend, given.P, self._s, absent, present, objective
        )


class _Layout(NamedTuple):
    """How the factors are read: in groups of one shape and dtype, whose labels are then sorted."""

    groups: list[list[int]]  # factors
    place: Array  # (m,) the position of each label in the concatenated groups
    factor: Array  # (m,) the factor of each label, numbered in the order of the groups


class Factors(FactorProblem):
    """Factors of labels that are independent of each other.

    `arrays` are the P of each factor, (n, m_f, S_f), followed by their distributions,
    (n, S_f + 1), if any; `factors` are the labels of each.
    """

    host = _factors.Factors

    def __init__(self, *arrays: Any, n_factors: int, factors: Any) -> None:
        names = [f"Ps[{f}]" for f in range(n_factors)]
        parts, xp = [], None
        for name, value in zip(names, arrays[:n_factors], strict=True):
            P, namespace = read_array(value, name, CARDINALITY_AXES)
            check_cardinality_shape(tuple(P.shape), name)
            parts.append(P)
            xp = xp or namespace
        n = check_same_rows([P.shape[0] for P in parts], names)
        self._members = check_factors(factors, [P.shape[1] for P in parts])
        distributions = []
        for f, value in enumerate(arrays[n_factors:]):
            names.append(f"distributions[{f}]")
            d, _ = read_array(value, names[-1], DISTRIBUTION_AXES)
            check_distribution_shape(tuple(d.shape), names[-1], n, parts[f].shape[2])
            distributions.append(d)
        self._parts, self._distributions = parts, distributions
        self.backend = backend = common_backend([*parts, *distributions], names, xp)
        self._layout = _layout(backend, parts, self._members)
        self._longest = max(P.shape[2] for P in parts)  # the largest S_f
        self.shape = n, self._layout.place.shape[0]

    def decide_without_limits(self, objective: Objective) -> Decision:
        if self._has_kernel():
            from fgfm.decision._array_api.columns_triton import decide_factors

            decided = decide_factors(self.backend, self._parts, self._members, objective)
            if decided is not None:
                return decided
        m = self.shape[1]
        R = len(nodes(objective.beta, m, m).log_z)  # nodes, at most
        numbers = 2 * m * self._longest + 7 * R * m + R * len(self._parts)
        self.row_bytes = numbers * self.backend.itemsize
        return super().decide_without_limits(objective)

    def _has_kernel(self) -> bool:
        """Return True if the Triton kernel for small factors applies."""
        if self._distributions or not self.backend.has_triton:
            return False
        F, size = len(self._parts), max(P.shape[1] for P in self._parts)
        padded = power_of_two(size, 1 << 30) * power_of_two(F, 1 << 30)
        is_short = max(size, self._longest) <= _LONGEST_FACTOR
        return self.shape[0] > 0 and is_short and padded <= _MOST_LABELS

    def decide_block(self, rows: slice, objective: Objective) -> tuple[Array, Array]:
        return self.factors(rows).decide_block(slice(None), objective)

    def factors(self, rows: slice) -> GivenFactors:
        backend, xp, longest = self.backend, self.backend.xp, self._longest
        P_groups, d_groups = [], []
        for group in self._layout.groups:
            stacked = xp.stack([self._parts[f][rows, ...] for f in group], axis=1)
            P, d = read_factors(
                backend,
                stacked,  # (n, F, m_f, S_f)
                [f"Ps[{f}]" for f in group],
                rows.start,
                any_mass=bool(self._distributions),
            )
            if self._distributions:
                given = [
                    read_distribution(
                        backend,
                        self._distributions[f][rows, ...],
                        f"distributions[{f}]",
                        rows.start,
                    )
                    for f in group
                ]
                d = xp.stack(given, axis=1)  # (n, F, S_f + 1)
            else:
                d = with_no_label(backend, d)  # (n, F, S_f + 1)
            P_groups.append(_padded(backend, xp.reshape(P, (P.shape[0], -1, P.shape[3])), longest))
            d_groups.append(_padded(backend, d, longest + 1))
        P = xp.take(xp.concat(P_groups, axis=1), self._layout.place, axis=1)
        return GivenFactors(backend, P, xp.concat(d_groups, axis=1), self._layout.factor)


def with_no_label(backend: Backend, d: Array) -> Array:
    """Prepend d_0 to d_1 .. d_S, (n, F, S)."""
    present = backend.xp.sum(d, axis=2, keepdims=True)
    return backend.xp.concat([backend.xp.clip(1.0 - present, 0.0, None), d], axis=2)


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


def _padded(backend: Backend, array: Array, size: int) -> Array:
    """Pad the last axis with zeros."""
    missing = size - array.shape[-1]
    if missing == 0:
        return array
    shape = (*array.shape[:-1], missing)
    zeros = backend.xp.zeros(shape, dtype=backend.dtype, device=backend.device)
    return backend.xp.concat([array, zeros], axis=-1)


def _decide_factor_rows(
    backend: Backend, P: Array, d: Array, factor: Array, objective: Objective
) -> tuple[Array, Array]:
    """Decide from P, (n, m, S), and the distributions of the factors, (n, F, S + 1)."""
    xp, beta2 = backend.xp, objective.beta2
    n, m, S = P.shape
    s = backend.one_to(S)
    P, some = scaled_up(backend, objective, xp.sum(d[:, :, 1:], axis=(1, 2)), P, d[:, :, 1:])
    d = xp.concat([d[:, :, :1], some], axis=2)
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
    for rate in _GROWTH:
        if rate * S < 50.0:  # exp(t S) stays far from overflow
            growth = backend.array(np.expm1(rate * np.arange(1.0, S + 1.0)))
            bound = (TAIL + xp.sum(histogram * growth, axis=1)) / rate + S
            upper = xp.where(bound < upper, bound, upper)
    return xp.where(upper > 1.0, upper, 1.0)
