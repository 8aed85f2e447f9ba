"""Decisions from p(y_i = 1, |y| = s), on arrays of PyTorch, CuPy and JAX."""

from __future__ import annotations

from typing import Any

import numpy as np

from fgfm._utils.validation import (
    CARDINALITY_AXES,
    DISTRIBUTION_AXES,
    check_cardinality_shape,
    check_distribution_shape,
)
from fgfm.decision._array_api.backend import Backend, common_backend, read_array
from fgfm.decision._array_api.checks import read_cardinalities, read_distribution
from fgfm.decision._array_api.columns import decide_by_kernel, decide_cardinality_columns
from fgfm.decision._array_api.selection import decide_blocks
from fgfm.decision._averages import Route
from fgfm.decision._factors_array_api import (
    decide_rows_as_factors,
    marginals_of,
    with_no_label,
)
from fgfm.decision._marginals_array_api import decide_each_label
from fgfm.decision._objective import Decision, Objective

__all__ = ["ROUTE"]

Array = Any


def _read(P: Any, distribution: Any) -> tuple[Array, Array | None, Backend]:
    P, xp = read_array(P, "P", CARDINALITY_AXES)
    check_cardinality_shape(tuple(P.shape), "P")
    n, _, S = P.shape
    if distribution is None:
        return P, None, common_backend([P], ["P"], xp)
    distribution, _ = read_array(distribution, "distribution", DISTRIBUTION_AXES)
    check_distribution_shape(tuple(distribution.shape), "distribution", n, S)
    return P, distribution, common_backend([P, distribution], ["P", "distribution"], xp)


def _decide_rows(P: Any, distribution: Any = None, *, objective: Objective) -> Decision:
    """Decide each row from P, (n, m, S), and perhaps its distribution, (n, S + 1)."""
    P, distribution, backend = _read(P, distribution)
    xp = backend.xp
    n, m, S = P.shape
    objective = backend.representable(objective)
    s = np.arange(1.0, S + 1.0)
    decided = decide_by_kernel(backend, P, s, objective) if distribution is None else None
    if decided is not None:
        return Decision(*decided)

    def decide_block(rows: slice) -> tuple[Array, Array]:
        block, d = read_cardinalities(
            backend, P[rows, ...], "P", rows.start, any_mass=distribution is not None
        )
        if distribution is None:
            present = xp.clip(xp.sum(d, axis=1), 0.0, 1.0)
            absent = 1.0 - present
        else:
            d = read_distribution(backend, distribution[rows, ...], "distribution", rows.start)
            absent, present = d[:, 0], xp.sum(d[:, 1:], axis=1)
        return decide_cardinality_columns(backend, block, s, absent, present, objective)

    # A row needs P, two copies of it, and about 40 vectors of m labels during the search.
    return decide_blocks(backend, n, m, m * (3 * S + 40) * backend.itemsize, decide_block)


def _factors(P: Any, distribution: Any) -> tuple[Backend, Array, Array]:
    """Return P, (n, m, S), and its distribution, (n, 1, S + 1), valid."""
    P, distribution, backend = _read(P, distribution)
    P, d = read_cardinalities(backend, P, "P", 0, any_mass=distribution is not None)
    if distribution is None:
        return backend, P, with_no_label(backend, d[:, None, :])
    return backend, P, read_distribution(backend, distribution, "distribution", 0)[:, None, :]


def _marginals(P: Any, distribution: Any = None) -> Array:
    backend, P, _ = _factors(P, distribution)
    return marginals_of(backend, P)


def _decide_batch(P: Any, distribution: Any = None, *, objective: Objective) -> Decision:
    """Decide all rows together."""
    backend, P, d = _factors(P, distribution)
    factor = backend.xp.zeros((P.shape[1],), dtype=backend.xp.int64, device=backend.device)
    return decide_rows_as_factors(backend, P, d, factor, objective)


ROUTE = Route(_decide_rows, _marginals, _decide_batch, decide_each_label)
