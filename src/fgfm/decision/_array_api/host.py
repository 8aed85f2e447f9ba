"""Constrained decisions: the rows whose optimal set is not feasible are decided on the host."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fgfm._kernels import find_infeasible_rows
from fgfm.decision._array_api.backend import to_host
from fgfm.decision._array_api.libraries import is_array_api
from fgfm.decision._objective import Decision, Objective

__all__ = ["constrain_on_host"]

Array = Any


def constrain_on_host(
    decision: Decision,
    arrays: Sequence[Array],
    objective: Objective,
    with_numpy: Callable[..., Decision],
    shared: Mapping[str, Any],
) -> Decision:
    """Replace the infeasible label sets of a decision by the best feasible ones.

    Parameters
    ----------
    decision : Decision
        The decision without constraints, on the device.
    arrays : sequence of array
        The arrays with one entry per row, on the device.
    objective : Objective
        What is maximised, with limits.
    with_numpy : callable
        Decides NumPy arrays, as ``with_numpy(*arrays, objective=objective, **shared)``.
    shared : mapping of str to object
        Further arguments, the same for all rows.

    Returns
    -------
    Decision
        On the device.
    """
    from array_api_compat import array_namespace, device

    labels = np.array(to_host(decision.labels), order="C")  # (n, m), a copy that can be changed
    constraints = objective.constraints(labels.shape[1])
    infeasible = np.ones(len(labels), dtype=np.bool_)
    if not constraints.has_costs:
        find_infeasible_rows(labels, constraints, infeasible)
    rows = np.flatnonzero(infeasible)
    if len(rows) == 0:
        return decision
    xp, where = array_namespace(decision.labels), device(decision.labels)
    at = xp.asarray(rows, device=where)
    parts = [to_host(xp.take(array, at, axis=0)) for array in arrays]
    on_host = {name: to_host(v) if is_array_api(v) else v for name, v in shared.items()}
    expected_f = np.array(to_host(decision.expected_f))
    labels[rows], expected_f[rows] = with_numpy(*parts, objective=objective, **on_host)
    return Decision(xp.asarray(labels, device=where), xp.asarray(expected_f, device=where))
