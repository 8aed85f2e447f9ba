"""Independent labels from marginals, on arrays of PyTorch, CuPy and JAX."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fgfm._utils.validation import check_logits, check_marginals, is_flat
from fgfm.decision import _marginals
from fgfm.decision._array_api import measure_f, measure_jaccard
from fgfm.decision._array_api.backend import (
    Backend,
    common_backend,
    has_float64,
    read_array,
    to_host,
)
from fgfm.decision._array_api.problem import ArrayProblem
from fgfm.decision._array_api.search import (
    SMALL,
    best_size,
    largest_cardinality,
    largest_labels,
    power_of_two,
    scaled_up,
)
from fgfm.decision._objective import Decision, Objective

__all__ = ["MEASURES", "Marginals"]

Array = Any
MEASURES: dict[str, Any] = {"f": measure_f, "jaccard": measure_jaccard}
_LONGEST_TRITON_ROW = 16384  # labels that a Triton program can keep in registers
_LOWEST_FLOAT32 = -80.0  # logits of a sigmoid that float32 keeps, and its products
_TEMPORARIES = 10  # arrays of the size of a block that exist at the same time


class Marginals(ArrayProblem):
    """Independent labels with marginals of shape (n, m), or (n,) for one label.

    `given` is the problem whose entries `proba` has in another order: errors name its places.
    """

    host = _marginals.Marginals

    def __init__(self, proba: Any, logits: bool = False, given: Marginals | None = None) -> None:
        axes = ("row",) if is_flat(proba) else ("row", "label")
        proba, xp = read_array(proba, "proba", axes)
        self.backend = self._output = common_backend([proba], ["proba"], xp)
        if logits:
            proba = _sigmoid(self.backend, proba)
            self.backend = common_backend([proba], ["proba"], xp)
        self._places = proba
        if given is not None:
            self._places, self._output = given._places, given._output
        self.values = proba[:, None] if len(axes) == 1 else proba
        self.shape = tuple(self.values.shape)
        self.row_bytes = _TEMPORARIES * self.shape[1] * self.backend.itemsize

    def decide_without_limits(self, objective: Objective) -> Decision:
        try:
            labels, expected_f = self._decide(objective)
        except ValueError:
            self._check_places()
            raise
        return Decision(labels, self._output.floats(expected_f))

    def _decide(self, objective: Objective) -> Decision:
        n, m = self.shape
        if not (n and objective.measure.name == "f" and self.backend.has_triton):
            return super().decide_without_limits(objective)
        proba = self.values
        if not proba.is_floating_point() or proba.element_size() == 1:
            proba = self.backend.floats(proba)  # kernels load -1 in place of absent labels
        if m <= _LONGEST_TRITON_ROW:
            from fgfm.decision._marginals_triton import decide_rows
        else:
            from fgfm.decision._marginals_triton_long import decide_rows
        return decide_rows(
            self.backend,
            proba,
            objective,
            lambda rest: super(Marginals, Marginals(rest)).decide_without_limits(objective),
        )

    def _check_places(self) -> None:
        """Raise for the first value that is not a probability, by its place in the given array."""
        check_marginals(to_host(self._places), "proba", [0] * len(self._places.shape))

    def decide_block(self, rows: slice, objective: Objective) -> tuple[Array, Array]:
        raw, backend = self.values[rows, ...], self.backend
        measure, xp, m = MEASURES[objective.measure.name], backend.xp, raw.shape[1]
        p = backend.floats(raw)
        wrong = xp.any(~((p >= -backend.slack) & (p <= 1.0 + backend.slack)))  # True for NaN
        p = xp.clip(p, 0.0, 1.0)
        (p,) = scaled_up(backend, objective, xp.sum(p, axis=1), p)
        x = xp.sort(p, axis=1, descending=True)  # (n, m)
        mean = xp.sum(p, axis=1)  # (n,) E[s]
        log_empty = xp.sum(xp.log1p(-p), axis=1)
        present = -xp.expm1(log_empty)  # without cancellation where all p are tiny
        empty = xp.exp(log_empty) * objective.empty_value
        last = _last_size(backend, x, mean, empty, measure, objective)  # (n,)
        bad, most, large, top_mean = backend.fetch(
            wrong, xp.max(last), xp.max(backend.count_true(p > SMALL, 1)), xp.max(mean)
        )
        if bad:
            self._check_places()
        K = power_of_two(max(most, 1.0), m)
        reach = math.ceil(min(m, 1.0 + largest_cardinality(top_mean)))
        width = max(K, power_of_two(large, m))  # labels beyond it are at most SMALL
        V = measure.values(backend, x, K, width, reach, objective)  # (n, K)
        size, expected = best_size(backend, objective, V, empty, present)
        at = backend.indices(xp.clip(size - 1.0, 0.0, None))[:, None]
        least = xp.take_along_axis(x, at, axis=1)[:, 0]
        # Labels are compared by their probabilities, exactly: no tolerance for ties.
        return largest_labels(backend, p, least, size, 0.0), expected

    def marginals(self) -> Marginals:
        return self

    def decide_columns(self, objective: Objective) -> Decision:
        """Decide each column: one problem per label, over the rows."""
        xp = self.backend.xp
        columns = Marginals(xp.permute_dims(self.values, (1, 0)), given=self)
        labels, expected_f = columns.decide_rows(objective)
        return Decision(xp.permute_dims(labels, (1, 0)), expected_f)

    def as_one_row(self, threads: int = 1) -> Marginals:
        return Marginals(self.backend.xp.reshape(self.values, (1, -1)), given=self)


def _sigmoid(backend: Backend, logits: Array) -> Array:
    """Return the sigmoid of logits; raise for NaN.

    It is float64, if the device has that, where float32 would lose the largest probability of a
    row or column.
    """
    xp, dtype = backend.xp, backend.dtype
    values = backend.floats(logits)
    if 0 in logits.shape:
        return values
    tops = [xp.min(xp.max(values, axis=axis)) for axis in range(len(logits.shape))]
    wrong, *lowest = backend.fetch(xp.any(xp.isnan(values)), *tops)
    if wrong:
        check_logits(to_host(logits), "proba", [0] * len(logits.shape))
    if min(lowest) < _LOWEST_FLOAT32 and has_float64(xp, backend.device):
        dtype = xp.float64
    with np.errstate(all="ignore"):  # array-api-strict computes with NumPy
        return 1.0 / (1.0 + xp.exp(-xp.astype(logits, dtype, copy=False)))


def _last_size(
    backend: Backend, x: Array, mean: Array, empty: Array, measure: Any, objective: Objective
) -> Array:
    """Return an upper bound on the size of an optimal set of each row, (n,); 0 if it is empty."""
    xp, beta2 = backend.xp, objective.beta2
    k = backend.one_to(x.shape[1])[None, :]
    M_k = xp.cumulative_sum(x, axis=1)  # (n, m)
    best = xp.max(measure.lower_bound(backend, M_k, mean[:, None], k, beta2), axis=1)
    floor = xp.where(best > empty, best, empty)[:, None] * (1.0 - backend.margin)
    least = measure.least_probability(floor, beta2)
    bound = measure.upper_bound(mean[:, None], k, beta2)
    possible = (bound >= floor) & ((x >= least) | (k == 1.0)) & (x > 0.0)
    return xp.max(xp.where(possible, k, 0.0), axis=1)
