"""Constrained decisions from marginals of independent labels.

The kernels of the other routes find the best feasible set of a row themselves. Marginals have
kernels of their own, which know no constraints: rows whose optimal set is not feasible are decided
again, by the kernels for label factors, with one label in each factor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm._kernels import decide_factor_rows, decide_sparse_factor_rows, find_infeasible_rows
from fgfm.decision._objective import Decision, Objective, run_kernel

__all__ = ["constrain_marginals", "decide_constrained_csr", "most_chosen"]

Real = npt.NDArray[Any]
Integers = npt.NDArray[np.int64]
_NONE = np.empty(0, dtype=np.int64)
_NO_FACTORS = (_NONE, _NONE, _NONE, 0)  # sizes, depths, labels and number, as kernels take them


def constrain_marginals(
    proba: Real, decision: Decision, objective: Objective, constraints: Any
) -> None:
    """Replace the infeasible label sets of a block of rows by the best feasible ones, in place.

    Parameters
    ----------
    proba : ndarray of shape (n, m)
        The marginals.
    decision : Decision
        The decision without constraints.
    objective : Objective
        What is maximised.
    constraints : fgfm._kernels.Constraints
        Which sets are feasible.
    """
    labels, expected_f = decision
    n, m = labels.shape
    rows = np.ones(n, dtype=np.bool_)
    if not constraints.has_costs:
        find_infeasible_rows(labels, constraints, rows)
    at = np.flatnonzero(rows)
    if len(at) == 0:
        return
    values = np.clip(proba[at], 0.0, 1.0, dtype=np.float64)
    chosen, value = np.zeros((len(at), m), dtype=np.int8), np.empty(len(at))
    decide_factor_rows(
        values,
        np.empty((len(at), 0)),  # the distributions of factors of several labels
        False,
        _NONE,
        _NONE,
        np.arange(m),
        0,
        0.0,
        *objective.kernel_arguments,
        objective.rules,
        chosen,
        value,
        constraints,
    )
    labels[at], expected_f[at] = chosen, value


def decide_constrained_csr(
    entries: Any,
    objective: Objective,
    constraints: Any,
    expected_f: Real,
    check: Callable[[], None],
) -> tuple[Integers, Integers]:
    """Decide a block of rows of marginals in CSR, and fill in `expected_f`.

    Parameters
    ----------
    entries : CSRRows
        The marginals.
    objective : Objective
        What is maximised.
    constraints : fgfm._kernels.Constraints
        Which sets are feasible.
    expected_f : ndarray of shape (n,)
        Is filled in.
    check : callable
        Raises unless all values are probabilities, up to rounding.

    Returns
    -------
    chosen : ndarray
        The chosen labels, row after row.
    ends : ndarray of shape (n,)
        The end of each row among them.
    """
    ends = np.empty(len(expected_f), dtype=np.int64)
    chosen = np.zeros(most_chosen(np.diff(entries.indptr), constraints), dtype=np.int64)
    arguments = (
        entries.indices.astype(np.int64),
        entries.indptr,
        np.empty(0),
        0,
        *_NO_FACTORS,
        0.0,
        *objective.kernel_arguments,
        objective.rules,
        chosen,
        ends,
        expected_f,
        constraints,
    )
    values = np.require(entries.data, np.float64, ["C"])
    run_kernel(decide_sparse_factor_rows, values, arguments, chosen, check)
    return chosen[: ends[-1]].copy(), ends  # a copy, so that the rest of `chosen` is freed


def most_chosen(stored: Integers, constraints: Any) -> int:
    """Return a bound on the number of chosen labels, for the numbers of stored labels of rows."""
    implied = constraints.n_required + max(1, constraints.min_labels)
    most = stored * (1 + constraints.depth) + implied
    return int(np.minimum(most, constraints.max_labels).sum())
