"""Label sets with probabilities, on arrays of PyTorch, CuPy and JAX."""

from __future__ import annotations

from typing import Any

import numpy as np

from fgfm._utils.validation import check_one_weight_each
from fgfm.decision import _labelsets
from fgfm.decision._array_api.backend import common_backend, full_precision, read_array, to_host
from fgfm.decision._array_api.checks import read_distribution, read_labels
from fgfm.decision._array_api.columns import (
    Columns,
    decide_cardinality_columns,
    decide_columns,
    rank_candidates,
)
from fgfm.decision._array_api.problem import ArrayProblem
from fgfm.decision._factors_array_api import GivenFactors, with_no_label
from fgfm.decision._marginals_array_api import Marginals
from fgfm.decision._objective import Objective

__all__ = ["Joint", "Samples"]

Array = Any


class Samples(ArrayProblem):
    """Draws of the label set of each row, of shape (n, T, m)."""

    host = _labelsets.Samples

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
        draws = self._draws(slice(0, self.shape[0]))
        return Marginals(self.backend.xp.sum(draws, axis=1) / draws.shape[1])

    def as_one_row(self, threads: int = 1) -> GivenFactors:
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


class Joint(ArrayProblem):
    """Label sets that all rows share, (L, m), and their probabilities in each row, (n, L)."""

    host = _labelsets.Joint

    def __init__(self, proba: Any, labelsets: Any) -> None:
        self._proba, xp = read_array(proba, "proba", ("row", "label set"))
        labelsets, _ = read_array(labelsets, "labelsets", ("label set", "label"))
        common_backend([self._proba, labelsets], ["proba", "labelsets"], xp)  # one device
        self.backend = common_backend(
            [self._proba], ["proba"], xp
        )  # the precision is that of proba
        self._sets = read_labels(self.backend, labelsets, "labelsets", 0)  # (L, m)
        n, L = self._proba.shape
        m = self._sets.shape[1]
        check_one_weight_each(L, self._sets.shape[0])
        self.shape = n, m
        size = to_host(xp.sum(self._sets, axis=1))  # (L,)
        self._is_empty = self.backend.array(size == 0.0)  # (L,)
        s = np.unique(np.append(size[size > 0.0], 1.0))
        self._cardinalities = s  # (Q,) those that occur, and 1
        where = [xp.asarray(np.flatnonzero(size == c), device=self.backend.device) for c in s]
        self._sets_by_size = [(at, xp.take(self._sets, at, axis=0)) for at in where]
        self.row_bytes = (4 * L + m * (4 * len(s) + 40)) * self.backend.itemsize

    def _weights(self, rows: slice) -> Array:
        """Return the probabilities of the sets in some rows, (n, L), valid."""
        return read_distribution(self.backend, self._proba[rows, ...], "proba", rows.start)

    def _by_size(self, weights: Array) -> list[Array]:
        """Return the joint probabilities of labels and each cardinality, Q arrays (n, m)."""
        xp = self.backend.xp
        with full_precision(self.backend):
            return [xp.take(weights, at, axis=1) @ sets for at, sets in self._sets_by_size]

    def decide_block(self, rows: slice, objective: Objective) -> tuple[Array, Array]:
        xp = self.backend.xp
        weights = self._weights(rows)  # (n, L)
        P = xp.stack(self._by_size(weights), axis=2)  # (n, m, Q)
        absent = xp.sum(weights * self._is_empty[None, :], axis=1)
        present = xp.sum(weights * (1.0 - self._is_empty)[None, :], axis=1)
        return decide_cardinality_columns(
            self.backend, P, self._cardinalities, absent, present, objective
        )

    def marginals(self) -> Marginals:
        weights = self._weights(slice(0, self.shape[0]))
        with full_precision(self.backend):
            return Marginals(self.backend.xp.clip(weights @ self._sets, 0.0, 1.0))

    def as_one_row(self, threads: int = 1) -> GivenFactors:
        backend, xp = self.backend, self.backend.xp
        weights = self._weights(slice(0, self.shape[0]))
        by_size = dict(zip(self._cardinalities.astype(int), self._by_size(weights), strict=True))
        zero = 0.0 * by_size[1]
        P = [by_size.get(s, zero) for s in range(1, max(by_size) + 1)]
        P = xp.stack(P, axis=2)  # (n, m, S)
        d = xp.sum(P, axis=1, keepdims=True) / backend.one_to(P.shape[2])  # d_s = sum_i p_is / s
        return GivenFactors.of_rows(backend, P, with_no_label(backend, d))
