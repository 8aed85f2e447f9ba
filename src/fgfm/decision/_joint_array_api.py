"""Decisions from the probabilities of label sets, on arrays of PyTorch, CuPy and JAX."""

from __future__ import annotations

from typing import Any

import numpy as np

from fgfm._utils.validation import check_one_weight_each
from fgfm.decision._array_api.backend import common_backend, read_array, to_host
from fgfm.decision._array_api.checks import read_distribution, read_labels
from fgfm.decision._array_api.columns import decide_cardinality_columns
from fgfm.decision._array_api.precision import full_precision
from fgfm.decision._array_api.selection import decide_blocks
from fgfm.decision._objective import Decision, Objective

__all__ = ["decide_joint"]

Array = Any


def decide_joint(proba: Any, labelsets: Any, objective: Objective) -> Decision:
    """Decide from the probabilities, (n, L), of label sets, (L, m)."""
    proba, xp = read_array(proba, "proba", ("row", "label set"))
    labelsets, _ = read_array(labelsets, "labelsets", ("label set", "label"))
    common_backend([proba, labelsets], ["proba", "labelsets"], xp)  # one library, one device
    backend = common_backend([proba], ["proba"], xp)  # the precision is that of proba
    objective = backend.representable(objective)
    sets = read_labels(backend, labelsets, "labelsets", 0)  # (L, m)
    check_one_weight_each(proba.shape[1], sets.shape[0])
    size = to_host(xp.sum(sets, axis=1))  # (L,)
    cardinalities = np.unique(np.append(size[size > 0.0], 1.0))  # (Q,)
    s = backend.array(cardinalities)[None, :]  # (1, Q)
    where = [xp.asarray(np.flatnonzero(size == c), device=backend.device) for c in cardinalities]
    sets_by_size = [(at, xp.take(sets, at, axis=0)) for at in where]
    is_empty = backend.array(size == 0.0)  # (L,)
    n, m = proba.shape[0], sets.shape[1]

    def decide_block(rows: slice) -> tuple[Array, Array]:
        weights = read_distribution(backend, proba[rows, ...], "proba", rows.start)  # (n, L)
        with full_precision(backend):
            P = xp.stack(
                [xp.take(weights, at, axis=1) @ sets_at for at, sets_at in sets_by_size], axis=2
            )  # (n, m, Q)
        absent = xp.sum(weights * is_empty[None, :], axis=1)
        present = xp.sum(weights * (1.0 - is_empty)[None, :], axis=1)
        return decide_cardinality_columns(backend, P, s, absent, present, objective)

    row_bytes = (4 * proba.shape[1] + m * (4 * len(cardinalities) + 40)) * backend.itemsize
    return decide_blocks(backend, n, m, row_bytes, decide_block)
