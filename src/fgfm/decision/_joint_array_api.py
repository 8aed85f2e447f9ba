"""Decisions from the probabilities of label sets, on arrays of PyTorch, CuPy and JAX."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm._utils.validation import check_one_weight_each
from fgfm.decision._array_api.backend import Backend, common_backend, read_array, to_host
from fgfm.decision._array_api.checks import read_distribution, read_labels
from fgfm.decision._array_api.columns import decide_cardinality_columns
from fgfm.decision._array_api.precision import full_precision
from fgfm.decision._array_api.selection import decide_blocks
from fgfm.decision._averages import Route
from fgfm.decision._factors_array_api import decide_rows_as_factors, with_no_label
from fgfm.decision._marginals_array_api import decide_each_label
from fgfm.decision._objective import Decision, Objective

__all__ = ["ROUTE"]

Array = Any


class _Joint(NamedTuple):
    """Label sets by their size."""

    backend: Backend
    proba: Array  # (n, L)
    sets: Array  # (L, m)
    cardinalities: npt.NDArray[np.float64]  # (Q,) those that occur, and 1
    sets_by_size: list[tuple[Array, Array]]  # for each: which of the sets, and their labels
    is_empty: Array  # (L,)

    def weights(self, rows: slice) -> Array:
        """Return the probabilities of the sets, (n, L), valid."""
        return read_distribution(self.backend, self.proba[rows, ...], "proba", rows.start)

    def by_size(self, weights: Array) -> list[Array]:
        """Return the joint probabilities of labels and each cardinality, Q arrays (n, m)."""
        xp = self.backend.xp
        with full_precision(self.backend):
            return [xp.take(weights, at, axis=1) @ sets for at, sets in self.sets_by_size]

    def all_weights(self) -> Array:
        """Return the probabilities of the sets of all rows."""
        return self.weights(slice(0, self.proba.shape[0]))


def _read(proba: Any, labelsets: Any) -> _Joint:
    proba, xp = read_array(proba, "proba", ("row", "label set"))
    labelsets, _ = read_array(labelsets, "labelsets", ("label set", "label"))
    common_backend([proba, labelsets], ["proba", "labelsets"], xp)  # one library, one device
    backend = common_backend([proba], ["proba"], xp)  # the precision is that of proba
    sets = read_labels(backend, labelsets, "labelsets", 0)  # (L, m)
    check_one_weight_each(proba.shape[1], sets.shape[0])
    size = to_host(xp.sum(sets, axis=1))  # (L,)
    cardinalities = np.unique(np.append(size[size > 0.0], 1.0))  # (Q,)
    where = [xp.asarray(np.flatnonzero(size == c), device=backend.device) for c in cardinalities]
    sets_by_size = [(at, xp.take(sets, at, axis=0)) for at in where]
    return _Joint(backend, proba, sets, cardinalities, sets_by_size, backend.array(size == 0.0))


def _decide_rows(proba: Any, labelsets: Any, objective: Objective) -> Decision:
    """Decide each row from the probabilities, (n, L), of label sets, (L, m)."""
    joint = _read(proba, labelsets)
    backend, is_empty = joint.backend, joint.is_empty
    xp = backend.xp
    objective = backend.representable(objective)
    n, m = joint.proba.shape[0], joint.sets.shape[1]

    def decide_block(rows: slice) -> tuple[Array, Array]:
        weights = joint.weights(rows)  # (n, L)
        P = xp.stack(joint.by_size(weights), axis=2)  # (n, m, Q)
        absent = xp.sum(weights * is_empty[None, :], axis=1)
        present = xp.sum(weights * (1.0 - is_empty)[None, :], axis=1)
        return decide_cardinality_columns(
            backend, P, joint.cardinalities, absent, present, objective
        )

    Q = len(joint.cardinalities)
    row_bytes = (4 * joint.proba.shape[1] + m * (4 * Q + 40)) * backend.itemsize
    return decide_blocks(backend, n, m, row_bytes, decide_block)


def _marginals(proba: Any, labelsets: Any) -> Array:
    joint = _read(proba, labelsets)
    with full_precision(joint.backend):
        return joint.backend.xp.clip(joint.all_weights() @ joint.sets, 0.0, 1.0)


def _decide_batch(proba: Any, labelsets: Any, objective: Objective) -> Decision:
    """Decide all rows together."""
    joint = _read(proba, labelsets)
    backend, xp = joint.backend, joint.backend.xp
    weights = joint.all_weights()
    by_size = dict(zip(joint.cardinalities.astype(int), joint.by_size(weights), strict=True))
    zero = 0.0 * by_size[1]
    P = xp.stack([by_size.get(s, zero) for s in range(1, max(by_size) + 1)], axis=2)  # (n, m, S)
    d = xp.sum(P, axis=1, keepdims=True) / backend.one_to(P.shape[2])  # d_s = sum_i p_is / s
    factor = xp.zeros((P.shape[1],), dtype=xp.int64, device=backend.device)
    return decide_rows_as_factors(backend, P, with_no_label(backend, d), factor, objective)


ROUTE = Route(_decide_rows, _marginals, _decide_batch, decide_each_label)
