"""Draws of the label set, on arrays of PyTorch, CuPy and JAX."""

from __future__ import annotations

from typing import Any

from fgfm.decision import _samples
from fgfm.decision._array_api.backend import common_backend, read_array
from fgfm.decision._array_api.checks import read_labels
from fgfm.decision._array_api.columns import Columns, decide_columns, rank_candidates
from fgfm.decision._array_api.precision import full_precision
from fgfm.decision._array_api.problem import ArrayProblem
from fgfm.decision._factors_array_api import GivenFactors, with_no_label
from fgfm.decision._marginals_array_api import Marginals
from fgfm.decision._objective import Objective

__all__ = ["Samples"]

Array = Any


class Samples(ArrayProblem):
    """Draws of the label set of each row, of shape (n, T, m)."""

    host = _samples.Samples

    def __init__(self, samples: Any) -> None:
        self._samples, xp = read_array(samples, "samples", ("row", "draw", "label"))
        self.backend = common_backend([self._samples], ["samples"], xp)
        n, T, m = self._samples.shape
        self.shape = n, m
        self.row_bytes = m * (4 * T + 40) * self.backend.itemsize

    def _draws(self, rows: slice) -> Array:
        """Return the draws of some rows, (n, T, m), valid."""
        return read_labels(self.backend, self._samples[rows, ...], "samples", rows.start)

    def decide_block(self, rows: slice, objective: Objective) -> tuple[Array, Array]:
        """Return labels and expectations of some of the rows."""
        backend, xp, beta2 = self.backend, self.backend.xp, objective.beta2
        draws = self._draws(rows)
        T = draws.shape[1]
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

    def marginals(self) -> Marginals:
        """Return the shares of the draws that have each label."""
        draws = self._draws(slice(0, self.shape[0]))
        return Marginals(self.backend.xp.sum(draws, axis=1) / draws.shape[1])

    def as_one_row(self, threads: int = 1) -> GivenFactors:
        """Return the rows as the factors of one row."""
        backend, xp = self.backend, self.backend.xp
        draws = self._draws(slice(0, self.shape[0]))  # (n, T, m)
        T = draws.shape[1]
        size = xp.sum(draws, axis=2)  # (n, T)
        (largest,) = backend.fetch(xp.max(size))
        s = backend.one_to(max(1, int(largest)))
        has_size = backend.floats(size[:, :, None] == s[None, None, :])  # (n, T, S)
        with full_precision(backend):
            P = xp.permute_dims(draws, (0, 2, 1)) @ has_size / T  # (n, m, S)
        d = with_no_label(backend, xp.sum(has_size, axis=1)[:, None, :] / T)  # (n, 1, S + 1)
        return GivenFactors.of_rows(backend, P, d)
