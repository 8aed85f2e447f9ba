"""Decisions from draws of the label set, on arrays of PyTorch, CuPy and JAX."""

from __future__ import annotations

from typing import Any

from fgfm.decision._array_api.backend import common_backend, read_array
from fgfm.decision._array_api.checks import read_labels
from fgfm.decision._array_api.columns import Columns, decide_columns, rank_candidates
from fgfm.decision._array_api.selection import decide_blocks
from fgfm.decision._objective import Decision, Objective

__all__ = ["decide_samples"]

Array = Any


def decide_samples(samples: Any, objective: Objective) -> Decision:
    """Decide from draws of the label set, (n, T, m)."""
    samples, xp = read_array(samples, "samples", ("row", "draw", "label"))
    backend = common_backend([samples], ["samples"], xp)
    objective = backend.representable(objective)
    n, T, m = samples.shape
    beta2 = objective.beta2

    def decide_block(rows: slice) -> tuple[Array, Array]:
        draws = read_labels(backend, samples[rows, ...], "samples", rows.start)  # (n, T, m)
        s = xp.sum(draws, axis=2)  # (n, T)
        is_nonempty = s > 0.0
        present = backend.count_true(is_nonempty, 1) / T
        empty = (1.0 - present) * objective.empty_value
        p = xp.sum(draws, axis=1) / T
        weighted = xp.sum(draws * s[:, :, None], axis=1) / T  # (n, m) E[y_i s]
        candidates = rank_candidates(backend, p, weighted, xp.max(s, axis=1), empty, objective)
        order = candidates.order
        where = xp.broadcast_to(order[:, None, :], (*s.shape, order.shape[1]))
        # One column per draw t: Delta_ik = (1 + beta^2) / T sum_t y_i^t / (beta^2 s_t + k).
        columns = Columns(
            xp.take_along_axis(draws, where, axis=2),
            beta2 * s,
            backend.floats(is_nonempty) * ((1.0 + beta2) / T),
            False,
        )
        return decide_columns(backend, columns, candidates, empty, present, objective)

    return decide_blocks(backend, n, m, m * (4 * T + 40) * backend.itemsize, decide_block)
