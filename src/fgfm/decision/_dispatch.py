"""Each kind of probabilities to its kernel, in blocks of rows.

The arguments have been checked for their form; their values are checked here, block by block, by
the kernels themselves where that costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._utils.blocks import float_block, run_blocks
from fgfm._utils.validation import (
    check_labels,
    check_probabilities,
    real_array,
    refuse_mass,
    tolerance,
    unit_rows,
)
from fgfm.decision._objective import Decision, Objective, run_kernel
from fgfm.decision._sparse import decide_sparse_factors, decide_sparse_marginals

__all__ = [
    "Decision",
    "Objective",
    "decide_factors",
    "decide_label_sets",
    "decide_marginals",
    "decide_one_factor",
    "decide_samples",
    "decide_singletons",
    "decide_sparse_factors",
]

Real = npt.NDArray[Any]


def _empty_decision(n: int, m: int) -> Decision:
    return Decision(np.zeros((n, m), dtype=np.int8), np.empty(n))


def decide_marginals(proba: Any, objective: Objective) -> Decision:
    """Decide from marginals, (n, m), dense or sparse."""
    if sparse.issparse(proba):
        return decide_sparse_marginals(proba, objective)
    proba = real_array(proba, "proba", ("row", "label"))
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
    from fgfm._kernels.marginals_short import SHORT, decide_short_rows

    decision = _empty_decision(n, m)
    kernel = decide_short_rows if m <= SHORT else decide_dense_rows

    def decide(rows: slice) -> None:
        known = (*objective.arguments, objective.rules, *decision.at(rows))
        labels = decision.labels[rows]
        run_kernel(kernel, float_block(read(rows)), known, labels, lambda: check(rows))

    run_blocks(n, m * itemsize, objective.threads, decide)
    return decision


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
        row, _ = run_kernel(
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
        row, factor = run_kernel(
            decide_factor_rows, values, known, labels, lambda: _check_parts(parts, rows)
        )
        if row >= 0:
            f = order[factor]
            refuse_mass(parts[f][rows], row, f"Ps[{f}]", rows.start)

    run_blocks(n, 8 * sum(P.shape[1] * P.shape[2] for P in parts), objective.threads, decide)
    return decision


def decide_samples(samples: Real, objective: Objective) -> Decision:
    """Decide from draws of the label set, (n, T, m)."""
    from fgfm._kernels.samples import decide_sample_rows

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
    from fgfm._kernels.joint import decide_joint_rows

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
