"""Decisions from the P of several independent factors, as NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm._kernels import decide_factor_rows
from fgfm._utils.blocks import run_blocks
from fgfm._utils.validation import check_probabilities, raise_excess_mass, tolerance, unit_rows
from fgfm.decision._marginals_dense import decide_dense_marginals
from fgfm.decision._objective import Decision, Objective, empty_decision, run_kernel

__all__ = ["decide_dense_factors", "decide_singletons", "kernel_shape"]

Real = npt.NDArray[Any]
Integers = npt.NDArray[np.int64]


def kernel_shape(
    parts: Sequence[Real], members: Sequence[Integers], order: Sequence[int], n_multiple: int
) -> tuple[Integers, Integers, Integers, int]:
    """Return the sizes of the factors as the kernels take them.

    Parameters
    ----------
    parts : sequence of ndarray of shape (n, m_f, S_f)
        The P of each factor.
    members : sequence of ndarray of shape (m_f,)
        The labels of each factor.
    order : sequence of int
        The factors in the order in which the kernel reads them, those of one label last.
    n_multiple : int
        The number of factors before those of one label.

    Returns
    -------
    tuple
        m_f and S_f of each factor, the labels of all factors one after the other, `n_multiple`.
    """
    return (
        np.array([parts[f].shape[1] for f in order]),
        np.array([parts[f].shape[2] for f in order]),
        np.concatenate([members[f] for f in order]),
        n_multiple,
    )


def decide_singletons(
    parts: list[Real], members: list[Integers], objective: Objective
) -> Decision:
    """Decide where every factor has one label: the labels are independent."""
    factor_of = np.argsort(np.concatenate(members))  # (m,) the factor of each label
    return decide_dense_marginals(
        len(parts[0]),
        len(parts),
        8,
        objective,
        lambda rows: np.concatenate([parts[f][rows, :, 0] for f in factor_of], axis=1),
        lambda rows: _check_values(parts, rows),
    )


def _check_values(parts: list[Real], rows: slice) -> None:
    for f, P in enumerate(parts):
        check_probabilities(P[rows], f"Ps[{f}]", rows.start)


def decide_dense_factors(
    parts: list[Real],
    members: list[Integers],
    distributions: list[Real] | None,
    objective: Objective,
) -> Decision:
    """Decide from the P of several factors, (n, m_f, S_f), and perhaps their distributions."""
    # The kernel treats factors of one label as marginals, through power sums. A factor with a
    # given distribution is not one of them, since its P need not agree with the distribution.
    single = [distributions is None and P.shape[1] == 1 for P in parts]
    order = sorted(range(len(parts)), key=lambda f: single[f])
    shape = kernel_shape(parts, members, order, len(parts) - sum(single))
    _, depths, labels_in_order, n_multiple = shape
    total_depth = int((depths[:n_multiple] + 1).sum())
    n, m = len(parts[0]), len(labels_in_order)
    slack = max(tolerance(P) for P in parts)
    constraints = objective.constraints(m)
    decision = empty_decision(n, m)

    def read_distributions(rows: slice, count: int) -> Real:
        """Return d of all factors, (rows, sum_f (S_f + 1))."""
        if distributions is None:
            return np.empty((count, total_depth))  # computed by the kernel
        ds = [unit_rows(distributions[f][rows], f"distributions[{f}]", rows.start) for f in order]
        return np.concatenate(ds, axis=1)

    def decide_block(rows: slice) -> None:
        labels, expected_f = decision.at(rows)
        values = np.concatenate(
            [parts[f][rows].reshape(len(labels), -1) for f in order], axis=1, dtype=np.float64
        )  # (rows, sum_f m_f S_f)
        arguments = (
            read_distributions(rows, len(labels)),
            distributions is not None,
            *shape,
            slack,
            *objective.kernel_arguments,
            objective.rules,
            labels,
            expected_f,
            constraints,
        )
        row, factor = run_kernel(
            decide_factor_rows, values, arguments, labels, lambda: _check_values(parts, rows)
        )
        if row >= 0:
            f = order[factor]
            raise_excess_mass(parts[f][rows], row, f"Ps[{f}]", rows.start)

    row_bytes = 8 * sum(P.shape[1] * P.shape[2] for P in parts)
    run_blocks(n, row_bytes, objective.threads, decide_block)
    return decision
