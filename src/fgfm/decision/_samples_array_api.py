"""Decisions from draws of the label set, on arrays of PyTorch, CuPy and JAX."""

from __future__ import annotations

from typing import Any

from fgfm.decision._array_api.backend import Backend, common_backend, read_array
from fgfm.decision._array_api.checks import read_labels
from fgfm.decision._array_api.columns import Columns, decide_columns, rank_candidates
from fgfm.decision._array_api.precision import full_precision
from fgfm.decision._array_api.selection import decide_blocks
from fgfm.decision._averages import Route
from fgfm.decision._factors_array_api import decide_rows_as_factors, with_no_label
from fgfm.decision._marginals_array_api import decide_each_label
from fgfm.decision._objective import Decision, Objective

__all__ = ["ROUTE"]

Array = Any


def _read(samples: Any) -> tuple[Array, Backend]:
    samples, xp = read_array(samples, "samples", ("row", "draw", "label"))
    return samples, common_backend([samples], ["samples"], xp)


def _decide_rows(samples: Any, objective: Objective) -> Decision:
    """Decide each row from draws of the label set, (n, T, m)."""
    samples, backend = _read(samples)
    xp = backend.xp
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


def _marginals(samples: Any) -> Array:
    samples, backend = _read(samples)
    draws = read_labels(backend, samples, "samples", 0)
    return backend.xp.sum(draws, axis=1) / samples.shape[1]


def _decide_batch(samples: Any, objective: Objective) -> Decision:
    """Decide all rows together."""
    samples, backend = _read(samples)
    xp = backend.xp
    draws = read_labels(backend, samples, "samples", 0)  # (n, T, m)
    n, T, m = draws.shape
    size = xp.sum(draws, axis=2)  # (n, T)
    largest = backend.fetch(xp.max(size))[0] if n else 0.0
    s = backend.one_to(max(1, int(largest)))
    has_size = backend.floats(size[:, :, None] == s[None, None, :])  # (n, T, S)
    with full_precision(backend):
        P = xp.permute_dims(draws, (0, 2, 1)) @ has_size / T  # (n, m, S)
    d = with_no_label(backend, xp.sum(has_size, axis=1)[:, None, :] / T)  # (n, 1, S + 1)
    factor = xp.zeros((m,), dtype=xp.int64, device=backend.device)
    return decide_rows_as_factors(backend, P, d, factor, objective)


ROUTE = Route(_decide_rows, _marginals, _decide_batch, decide_each_label)
