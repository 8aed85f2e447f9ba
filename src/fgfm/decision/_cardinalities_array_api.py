"""Decisions from p(y_i = 1, |y| = s), on arrays of PyTorch, CuPy and JAX."""

from __future__ import annotations

from typing import Any

from fgfm._utils.validation import (
    CARDINALITY_AXES,
    DISTRIBUTION_AXES,
    check_cardinality_shape,
    check_distribution_shape,
)
from fgfm.decision._array_api.backend import common_backend, read_array
from fgfm.decision._array_api.checks import read_cardinalities, read_distribution
from fgfm.decision._array_api.columns import decide_cardinality_columns
from fgfm.decision._array_api.selection import decide_blocks
from fgfm.decision._objective import Decision, Objective

__all__ = ["decide_cardinalities"]

Array = Any


def decide_cardinalities(P: Any, distribution: Any = None, *, objective: Objective) -> Decision:
    """Decide from P, (n, m, S), and perhaps its distribution, (n, S + 1)."""
    P, xp = read_array(P, "P", CARDINALITY_AXES)
    check_cardinality_shape(tuple(P.shape), "P")
    n, m, S = P.shape
    arrays, names = [P], ["P"]
    if distribution is not None:
        distribution, _ = read_array(distribution, "distribution", DISTRIBUTION_AXES)
        check_distribution_shape(tuple(distribution.shape), "distribution", n, S)
        arrays, names = [P, distribution], ["P", "distribution"]
    backend = common_backend(arrays, names, xp)
    objective = backend.representable(objective)
    s = backend.one_to(S)[None, :]  # (1, S)

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
