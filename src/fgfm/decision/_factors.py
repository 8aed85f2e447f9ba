"""Independent factors of labels, with the P of each: GFM for one factor, F-GFM for several."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._utils.blocks import float_block, row_blocks, run_blocks
from fgfm._utils.validation import (
    check_cardinality_matrix,
    check_distributions,
    check_partition,
    check_parts,
    check_probabilities,
    clip_probabilities,
    distribution_array,
    raise_excess_mass,
    tolerance,
    unit_rows,
)
from fgfm.cardinality._build import JointCardinalities, SampleCardinalities
from fgfm.decision._marginals import Marginals, decide_marginal_rows
from fgfm.decision._objective import Decision, Objective
from fgfm.decision._problem import DenseProblem, Problem, run_kernel
from fgfm.decision._quadrature import rules

Real = npt.NDArray[Any]
Integers = npt.NDArray[np.int64]


class Layout(NamedTuple):
    """The sizes of factors in the order of the kernels: those of one label last."""

    sizes: Integers  # m_f
    depths: Integers  # S_f
    members: Integers  # the labels of all factors, one after the other
    n_multiple: int  # factors before those of one label, whose P are marginals

    @property
    def total_depth(self) -> int:
        """The size of all distributions of a row, without those of marginals."""
        return int((self.depths[: self.n_multiple] + 1).sum())


class Factors(DenseProblem):
    """Factors of labels that are independent of each other.

    `parts` are the P of each factor, (n, m_f, S_f), `members` their labels, and `distributions`
    theirs, (n, S_f + 1), if they do not come from P; the names are for error messages, and `m` is
    the number of labels if not all of them are in the factors.
    """

    kernel_on_device = "factors"

    def __init__(
        self,
        parts: Sequence[Any],
        members: Sequence[Integers],
        distributions: Sequence[Real] | None,
        names: Sequence[str],
        distribution_names: Sequence[str] = (),
        m: int | None = None,
    ) -> None:
        self.parts, self.members, self.distributions = parts, members, distributions
        self.names, self._distribution_names = names, distribution_names
        self.shape = len(parts[0]), m or sum(map(len, members))
        self.slack = max(map(tolerance, parts))
        # The kernel treats factors of one label as marginals, through power sums. A factor with a
        # given distribution is not one of them, since its P need not agree with the distribution.
        single = [distributions is None and P.shape[1] == 1 for P in parts]
        self._order = sorted(range(len(parts)), key=lambda f: single[f])
        self.layout = Layout(
            np.array([parts[f].shape[1] for f in self._order]),
            np.array([parts[f].shape[2] for f in self._order]),
            np.concatenate([members[f] for f in self._order]),
            len(parts) - sum(single),
        )
        self.row_bytes = 8 * sum(P.shape[1] * P.shape[2] for P in parts)

    @classmethod
    def read(cls, *arrays: Any, n_factors: int, factors: Any) -> Problem:
        """Return the problem of the P of each factor, followed by their distributions, if any."""
        parts = check_parts(arrays[:n_factors], allow_sparse=True)
        sizes = [P.shape[1] for P in parts]
        members = check_partition(factors, sum(sizes), sizes=sizes)
        distributions = None
        if len(arrays) > n_factors:
            distributions = check_distributions(arrays[n_factors:], parts)
        names = [f"Ps[{f}]" for f in range(n_factors)]
        if any(map(sparse.issparse, parts)):
            from fgfm.decision._factors_sparse import sparse_problem

            return sparse_problem(parts, members, names)
        kind = cls
        if n_factors == 1:
            kind = Cardinalities
        elif distributions is None and all(P.shape[1] == 1 for P in parts):
            kind = _SingleLabels
        distribution_names = [f"distributions[{f}]" for f in range(n_factors)]
        return kind(parts, members, distributions, names, distribution_names)

    def decide_block(
        self, decision: Decision, objective: Objective, constraints: Any, rows: slice
    ) -> None:
        labels, expected_f = decision.labels[rows], decision.expected_f[rows]
        arguments = (
            self.d_rows(rows),
            self.distributions is not None,
            *self.layout,
            self.slack,
            objective.kernel_argument,
            rules(objective.beta),
            labels,
            expected_f,
            constraints,
        )
        kernel = objective.measure.kernels["factors"]
        values = self.P_rows(rows)
        row, factor = run_kernel(kernel, values, arguments, labels, lambda: self.check(rows))
        if row >= 0:
            self.raise_excess(row, factor, rows)

    def P_rows(self, rows: slice) -> Real:
        """Return P of some rows, (rows, sum_f m_f S_f)."""
        return _by_rows([self.parts[f][rows] for f in self._order])

    def d_rows(self, rows: slice) -> Real:
        """Return d of some rows, (rows, sum_f (S_f + 1)), or space in which the kernel has it."""
        if self.distributions is None:
            return np.empty((len(self.parts[0][rows]), self.layout.total_depth))
        return _by_rows([self._unit_rows(f, rows) for f in self._order])

    def _unit_rows(self, f: int, rows: slice) -> Real:
        assert self.distributions is not None
        return unit_rows(self.distributions[f][rows], self._distribution_names[f], rows.start)

    def check(self, rows: slice) -> None:
        """Raise unless all values of some rows are probabilities, up to rounding."""
        for P, name in zip(self.parts, self.names, strict=True):
            check_probabilities(P[rows], name, rows.start)

    def raise_excess(self, row: int, factor: int, rows: slice) -> None:
        """Raise for a factor of a block of rows that has too much probability."""
        f = self._order[factor]
        raise_excess_mass(self.parts[f][rows], row, self.names[f], rows.start)

    def marginals(self) -> Marginals:
        if self.distributions is not None:  # they are not used, but validated
            for f in range(len(self.parts)):
                self._unit_rows(f, slice(0, self.shape[0]))
        columns = [self._factor_marginals(f) for f in range(len(self.parts))]
        order = np.argsort(np.concatenate(self.members))  # (m,) the column of each label
        return Marginals(np.concatenate(columns, axis=1)[:, order])

    def _factor_marginals(self, f: int) -> Real:
        """Return the marginals of a factor, (n, m_f), valid."""
        P, name = self.parts[f], self.names[f]
        n, m, S = P.shape
        marginals = np.empty((n, m))
        s = np.arange(1, S + 1)

        def read_block(rows: slice) -> None:
            block = clip_probabilities(P[rows], name, rows.start)
            p = block.sum(axis=2, dtype=np.float64, out=marginals[rows])
            over = p.max(axis=1)
            if self.distributions is None:  # a given distribution need not agree with P
                d = block.sum(axis=1, dtype=np.float64) / s  # (rows, S), d_s = sum_i p_is / s
                over = np.maximum(over, d.sum(axis=1))
            wrong = over > 1.0 + tolerance(block)
            if wrong.any():
                raise_excess_mass(block, int(wrong.argmax()), name, rows.start)
            np.minimum(p, 1.0, out=p)

        run_blocks(n, m * S * P.itemsize, 1, read_block)
        return marginals

    def as_one_row(self) -> OneRowOfFactors:
        n, m = self.shape
        several = self._order[: self.layout.n_multiple]
        groups = [group for group in (several, self._order[len(several) :]) if group]
        start = m * np.arange(n)[:, None]  # (n, 1) the number of the first entry of each row
        entries = [start + np.concatenate([self.members[f] for f in group]) for group in groups]
        shapes = [[self.parts[f].shape for f in group] for group in groups]
        layout = Layout(
            np.concatenate([np.tile([size for _, size, _ in group], n) for group in shapes]),
            np.concatenate([np.tile([depth for _, _, depth in group], n) for group in shapes]),
            np.concatenate([group.ravel() for group in entries]),
            n * len(several),
        )
        values = [_by_rows([self.parts[f][:] for f in group]).reshape(-1) for group in groups]
        d = None if self.distributions is None else self.d_rows(slice(0, n)).reshape(1, -1)
        joined = values[0] if len(values) == 1 else np.concatenate(values)
        return OneRowOfFactors(joined, d, layout, n * m, self.slack, rows_of=self)


class Cardinalities(Factors):
    """One factor: GFM."""

    kernel_on_device = "cardinalities"

    @classmethod
    def read(cls, P: Any, distribution: Any = None) -> Problem:  # type: ignore[override]
        """Return the problem of P, (n, m, S), and perhaps its distribution, (n, S + 1)."""
        P = check_cardinality_matrix(P)
        n, m, S = P.shape
        if distribution is not None:
            distribution = [distribution_array(distribution, "distribution", n, S)]
        return cls([P], [np.arange(m)], distribution, ["P"], ["distribution"])

    def decide_block(
        self, decision: Decision, objective: Objective, constraints: Any, rows: slice
    ) -> None:
        labels, expected_f = decision.labels[rows], decision.expected_f[rows]
        block = float_block(self.parts[0][rows])
        arguments = (
            self.masses(rows, block),
            self.members[0],
            self.slack,
            objective.kernel_argument,
            labels,
            expected_f,
            constraints,
        )
        kernel = objective.measure.kernels["cardinalities"]
        row, _ = run_kernel(kernel, block, arguments, labels, lambda: self.check(rows))
        if row >= 0:
            self.raise_excess(row, 0, rows)

    def masses(self, rows: slice, P: Real) -> Real:
        """Return the probabilities of the empty set and of all others, or NaN: those of P."""
        if self.distributions is None:
            return np.full((2, len(P)), np.nan)
        d = self._unit_rows(0, rows)
        return np.stack([d[:, 0], d[:, 1:].sum(axis=1)])


class LabelSets(Cardinalities):
    """Draws of the label set of each row, or label sets with probabilities: their P."""

    kernel_on_device = ""

    @classmethod
    def read(cls, array: Any, labelsets: Any = None) -> Problem:  # type: ignore[override]
        """Return the problem of draws, (n, T, m), or of probabilities of label sets, (n, L)."""
        P: Any
        P = (
            SampleCardinalities(array)
            if labelsets is None
            else JointCardinalities(labelsets, array)
        )
        return cls([P], [np.arange(P.shape[1])], None, ["P"])

    def masses(self, rows: slice, P: Real) -> Real:
        masses: Real = self.parts[0].masses(rows, P)
        return masses

    def marginals(self) -> Marginals:
        (P,) = self.parts
        marginals = np.empty(self.shape)
        for rows in row_blocks(len(P), self.row_bytes):
            np.minimum(P.marginals(rows), 1.0, out=marginals[rows])
        return Marginals(marginals)


class _SingleLabels(Factors):
    """Factors of one label each: independent labels."""

    def decide_block(
        self, decision: Decision, objective: Objective, constraints: Any, rows: slice
    ) -> None:
        labels, expected_f = decision.labels[rows], decision.expected_f[rows]
        factor_of = np.argsort(self.layout.members)  # (m,) the factor of each label
        proba = np.concatenate([self.parts[f][rows, :, 0] for f in factor_of], axis=1)
        results = labels, expected_f
        decide_marginal_rows(
            float_block(proba), objective, constraints, results, lambda: self.check(rows)
        )


class OneRowOfFactors(Factors):
    """One row with many factors, whose P are stored one after the other.

    `values` is P of all factors, (sum_f m_f S_f,), `d` their distributions, (1, sum_f S_f + 1), if
    they do not come from P, and `rows_of` the problem whose rows are factors here, if its values
    may not be valid.
    """

    def __init__(
        self,
        values: Real,
        d: Real | None,
        layout: Layout,
        m: int,
        slack: float,
        rows_of: Factors | None = None,
    ) -> None:
        self._values, self._d = values.reshape(1, -1), d
        self.distributions = None if d is None else [d]
        self.layout, self.shape, self.slack, self._rows_of = layout, (1, m), slack, rows_of
        self.row_bytes = values.nbytes

    def P_rows(self, rows: slice) -> Real:
        """Return P of the row, (1, sum_f m_f S_f)."""
        return self._values

    def d_rows(self, rows: slice) -> Real:
        """Return d of the row, (1, sum_f (S_f + 1)), or space in which the kernel has it."""
        return np.empty((1, self.layout.total_depth)) if self._d is None else self._d

    def check(self, rows: slice) -> None:
        """Raise unless all values are probabilities, up to rounding."""
        if self._rows_of is not None:
            self._rows_of.check(slice(0, self._rows_of.shape[0]))

    def raise_excess(self, row: int, factor: int, rows: slice) -> None:
        """Raise for a factor that has too much probability."""
        if self._rows_of is not None:
            row, factor = divmod(factor, self._rows_of.layout.n_multiple)
            self._rows_of.raise_excess(row, factor, slice(0, self._rows_of.shape[0]))


def _by_rows(arrays: Sequence[Real]) -> npt.NDArray[np.float64]:
    """Return the values of several arrays (n, ..) as (n, W); a single one without a copy."""
    flat = [array.reshape(len(array), math.prod(array.shape[1:])) for array in arrays]
    return float_block(flat[0] if len(flat) == 1 else np.concatenate(flat, axis=1), np.float64)
