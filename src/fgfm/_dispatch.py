"""Each kind of probabilities to its kernel, in blocks of rows.

The arguments have been checked for their form; their values are checked here, block by block, by
the kernels themselves where that costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm._blocks import float_block, run_blocks
from fgfm._quadrature import Rules, rules
from fgfm._validation import (
    check_labels,
    check_probabilities,
    check_stored_probabilities,
    place,
    tolerance,
    unit_rows,
)

__all__ = [
    "Decision",
    "Objective",
    "decide_factors",
    "decide_label_sets",
    "decide_marginals",
    "decide_one_factor",
    "decide_samples",
    "decide_singletons",
    "decide_sparse_marginals",
    "refuse_mass",
]

Real = npt.NDArray[Any]


class Decision(NamedTuple):
    """Decided label sets, and what they are expected to score.

    Attributes
    ----------
    labels : array, sparse array or data frame of shape (n, m)
        The label sets, 0 or 1, as 8-bit integers. Sparse where the probabilities were, a data
        frame with the same index and columns where they were one, an array of the same library on
        the same device where they were one of PyTorch, CuPy or JAX.
    expected_f : array or Series of shape (n,)
        The expected F-measure of each label set, under the given probabilities.
    """

    labels: Any
    expected_f: Any

    def at(self, rows: slice) -> Decision:
        """Give the part of it that some rows have."""
        return Decision(self.labels[rows], self.expected_f[rows])


class Objective(NamedTuple):
    """What is maximised, and by how many threads."""

    beta: float
    beta2: float
    zero_division: float
    nonempty: bool
    threads: int

    @property
    def arguments(self) -> tuple[float, float, bool]:
        """What every kernel takes."""
        return self.beta2, self.zero_division, self.nonempty

    @property
    def rules(self) -> Rules:
        """The quadrature rules for this beta."""
        return rules(self.beta)


def _empty_decision(n: int, m: int) -> Decision:
    return Decision(np.zeros((n, m), dtype=np.int8), np.empty(n))


def decide_marginals(proba: Real, objective: Objective) -> Decision:
    """Decide from marginals, (n, m)."""
    n, m = proba.shape
    return _decide_marginals(
        n,
        m,
        proba.itemsize,
        objective,
        lambda rows: proba[rows],
        lambda rows: check_probabilities(proba[rows], "proba", rows.start),
    )


def decide_singletons(
    parts: list[Real], members: list[npt.NDArray[np.int64]], objective: Objective
) -> Decision:
    """Decide where every factor has one label: the labels are independent."""
    factor_of = np.argsort(np.concatenate(members))
    return _decide_marginals(
        len(parts[0]),
        len(parts),
        8,
        objective,
        lambda rows: np.concatenate([parts[f][rows, :, 0] for f in factor_of], axis=1),
        lambda rows: _check_parts(parts, rows),
    )


def _check_parts(parts: list[Real], rows: slice) -> None:
    for f, P in enumerate(parts):
        check_probabilities(P[rows], f"Ps[{f}]", rows.start)


def _run_kernel(
    kernel: Callable[..., tuple[int, float, int]],
    values: Real,
    known: tuple[Any, ...],
    chosen: Real,
    check: Callable[[], None],
) -> tuple[int, int]:
    """Run a kernel, which takes values in [0, 1] and no others.

    If it refuses one, `check` raises unless rounding is to blame, which is then removed. Gives the
    first row that is refused for another reason, or -1, and its factor.
    """
    from fgfm._kernels.rule import NOT_PROBABILITY

    row, status, factor = kernel(values, *known)
    if status == NOT_PROBABILITY:
        check()
        chosen[...] = 0
        row, status, factor = kernel(np.clip(values, 0.0, 1.0), *known)
    return row, factor


def _decide_marginals(
    n: int,
    m: int,
    itemsize: int,
    objective: Objective,
    read: Callable[[slice], Real],
    check: Callable[[slice], None],
) -> Decision:
    """Decide from the marginals that `read` gives; `check` raises where they are none."""
    from fgfm._kernels.marginals import decide_dense_rows
    from fgfm._kernels.short import SHORT, decide_short_rows

    decision = _empty_decision(n, m)
    kernel = decide_short_rows if m <= SHORT else decide_dense_rows

    def decide(rows: slice) -> None:
        known = (*objective.arguments, objective.rules, *decision.at(rows))
        labels = decision.labels[rows]
        _run_kernel(kernel, float_block(read(rows)), known, labels, lambda: check(rows))

    run_blocks(n, m * itemsize, objective.threads, decide)
    return decision


def decide_sparse_marginals(proba: Any, objective: Objective) -> Decision:
    """Decide from marginals in a sparse matrix; the labels come in CSR."""
    from fgfm._kernels.marginals import decide_csr_rows
    from fgfm._kernels.short import SHORT, decide_short_rows

    if proba.dtype.kind not in "fiub":
        raise TypeError(
            f"proba has dtype {proba.dtype}: it must hold real numbers (float32 or float64)"
        )
    if proba.ndim != 2 or proba.shape[1] == 0:
        raise ValueError(
            f"proba has shape {proba.shape}: it must have 2 dimensions (row, label) "
            "and at least one label"
        )
    csr = proba.tocsr()
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    n = csr.shape[0]
    expected_f = np.empty(n)

    def decide_short(rows: slice) -> tuple[Real, Real]:
        """Do as `decide` does, with the bits of a dense array: few labels cost nothing."""
        block = csr[rows].toarray()
        labels = np.zeros(block.shape, dtype=np.int8)
        known = (*objective.arguments, objective.rules, labels, expected_f[rows])
        _run_kernel(
            decide_short_rows,
            float_block(block),
            known,
            labels,
            lambda: check_stored_probabilities(csr, "proba"),
        )
        row, label = np.nonzero(labels)
        ends = np.searchsorted(row, np.arange(len(block)), side="right")
        return label.astype(csr.indices.dtype), ends

    def decide(rows: slice) -> tuple[Real, Real]:
        """Give the chosen labels of the rows, one after the other, and where each row ends."""
        indptr = csr.indptr[rows.start : rows.stop + 1].astype(np.int64)
        first, last = int(indptr[0]), int(indptr[-1])
        data = float_block(csr.data[first:last])
        chosen = np.zeros(last - first, dtype=np.int8)
        known = (
            indptr - first,
            *objective.arguments,
            objective.rules,
            chosen,
            expected_f[rows],
        )
        _run_kernel(
            decide_csr_rows, data, known, chosen, lambda: check_stored_probabilities(csr, "proba")
        )
        at = np.flatnonzero(chosen)
        return csr.indices[first + at], np.searchsorted(at, indptr[1:] - first)

    short = csr.shape[1] <= SHORT
    row_bytes = 16 * csr.shape[1] if short else 16 * (csr.nnz // max(1, n) + 1)
    blocks = run_blocks(n, row_bytes, objective.threads, decide_short if short else decide)
    indices = np.concatenate([chosen for chosen, _ in blocks] or [csr.indices[:0]])
    indptr = np.zeros(n + 1, dtype=csr.indptr.dtype)
    at = passed = 0
    for chosen, ends in blocks:
        indptr[at + 1 : at + 1 + len(ends)] = passed + ends
        at += len(ends)
        passed += len(chosen)
    ones = np.ones(len(indices), dtype=np.int8)
    return Decision(type(csr)((ones, indices, indptr), shape=csr.shape), expected_f)


def refuse_mass(P: Real, row: int, name: str, first_row: int) -> None:
    """Raise for a row of P with a label, or with sets, of a probability over 1."""
    where = place(name, (first_row + row,))
    p = P[row].sum(axis=1, dtype=np.float64)  # (m,)
    i = int(np.argmax(p))
    if p[i] > 1.0 + tolerance(P):
        raise ValueError(
            f"{where[:-1]}, {i}] sums to {p[i]:.6g} over cardinalities: "
            "the probability of a label must not exceed 1"
        )
    d_0 = 1.0 - (P[row].sum(axis=0, dtype=np.float64) / np.arange(1, P.shape[2] + 1)).sum()
    raise ValueError(
        f"{where} implies d_0 = {d_0:.3g}: the probabilities of 1 to {P.shape[2]} labels, "
        "d_s = sum_i p_is / s, must not sum to more than 1"
    )


def decide_one_factor(
    P: Real,
    distribution: Real | None,
    members: npt.NDArray[np.int64],
    objective: Objective,
    name: str,
    distribution_name: str,
) -> Decision:
    """Decide from one P; its i-th label is label ``members[i]``."""
    from fgfm._kernels.cardinalities import decide_cardinality_rows

    n, m, S = P.shape
    decision = _empty_decision(n, m)

    def decide(rows: slice) -> None:
        block = float_block(P[rows])
        if distribution is None:
            d = np.full((len(block), 2), np.nan)
        else:
            d = unit_rows(distribution[rows], distribution_name, rows.start)
        labels, expected_f = decision.at(rows)
        mass = np.stack([d[:, 0], d[:, 1:].sum(axis=1)])  # of the empty set, and of the others
        known = (mass, members, tolerance(block), *objective.arguments, labels, expected_f)
        row, _ = _run_kernel(
            decide_cardinality_rows,
            block,
            known,
            labels,
            lambda: check_probabilities(block, name, rows.start),
        )
        if row >= 0:
            refuse_mass(block, row, name, rows.start)

    run_blocks(n, m * S * P.itemsize, objective.threads, decide)
    return decision


def decide_factors(
    parts: list[Real],
    members: list[npt.NDArray[np.int64]],
    distributions: list[Real] | None,
    objective: Objective,
) -> Decision:
    """Decide from the P of several factors."""
    from fgfm._kernels.factors import decide_factor_rows

    # Factors of one label come last; with a distribution of its own a factor is never single.
    single = [distributions is None and P.shape[1] == 1 for P in parts]
    order = sorted(range(len(parts)), key=lambda f: single[f])
    multiple = len(parts) - sum(single)
    shape = (
        np.array([parts[f].shape[1] for f in order]),
        np.array([parts[f].shape[2] for f in order]),
        np.concatenate([members[f] for f in order]),
        multiple,
    )
    depth = int((shape[1][:multiple] + 1).sum())
    n, m = len(parts[0]), len(shape[2])
    slack = max(tolerance(P) for P in parts)
    decision = _empty_decision(n, m)

    def decide(rows: slice) -> None:
        labels, expected_f = decision.at(rows)
        values = np.concatenate(
            [parts[f][rows].reshape(len(labels), -1) for f in order], axis=1, dtype=np.float64
        )  # (rows, sum_f m_f S_f)
        if distributions is None:
            d = np.empty((len(labels), depth))  # (rows, sum_f (S_f + 1)), filled by the kernel
        else:
            d = np.concatenate(
                [
                    unit_rows(distributions[f][rows], f"distributions[{f}]", rows.start)
                    for f in order
                ],
                axis=1,
            )
        known = (
            d,
            distributions is not None,
            shape,
            slack,
            *objective.arguments,
            objective.rules,
            labels,
            expected_f,
        )
        row, factor = _run_kernel(
            decide_factor_rows, values, known, labels, lambda: _check_parts(parts, rows)
        )
        if row >= 0:
            f = order[factor]
            refuse_mass(parts[f][rows], row, f"Ps[{f}]", rows.start)

    run_blocks(n, 8 * sum(P.shape[1] * P.shape[2] for P in parts), objective.threads, decide)
    return decision


def decide_samples(samples: Real, objective: Objective) -> Decision:
    """Decide from draws of the label set, (n, T, m)."""
    from fgfm._kernels.cardinalities import decide_sample_rows

    n, T, m = samples.shape
    names = np.arange(m)
    decision = _empty_decision(n, m)

    def decide(rows: slice) -> None:
        block = samples[rows]
        check_labels(block, "samples", rows.start)
        ones = np.require(block, np.uint8, ["C", "W"])
        decide_sample_rows(ones, names, *objective.arguments, *decision.at(rows))

    run_blocks(n, T * m, objective.threads, decide)
    return decision


def decide_label_sets(sets: Any, weights: Real, objective: Objective) -> Decision:
    """Decide from the probabilities, (n, L), of label sets, (L, m) in CSR."""
    from fgfm._kernels.cardinalities import decide_joint_rows

    size = np.diff(sets.indptr)  # (L,)
    s = np.unique(size[size > 0])  # the cardinalities that occur
    column = np.where(size > 0, np.searchsorted(s, size), -1)  # (L,)
    decision = _empty_decision(len(weights), sets.shape[1])
    known = (
        sets.indptr.astype(np.int64),
        sets.indices.astype(np.int64),
        column.astype(np.int64),
        s.astype(np.float64),
        np.arange(sets.shape[1]),
    )

    def decide(rows: slice) -> None:
        block = unit_rows(weights[rows], "proba", rows.start)
        decide_joint_rows(*known, block, *objective.arguments, *decision.at(rows))

    run_blocks(len(weights), weights.shape[1] * 8, objective.threads, decide)
    return decision
