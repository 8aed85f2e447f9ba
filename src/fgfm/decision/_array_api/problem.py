"""`ArrayProblem`: problems of arrays of PyTorch, CuPy and JAX, decided on their device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from fgfm._kernels import find_infeasible_rows
from fgfm.decision._array_api import is_array_api
from fgfm.decision._array_api.backend import Backend, to_host, work_bytes
from fgfm.decision._objective import Decision, Objective
from fgfm.decision._problem import Problem

__all__ = ["ArrayProblem"]

Array = Any


class ArrayProblem(Problem):
    """A problem of arrays of PyTorch, CuPy and JAX."""

    host: ClassVar[type[Problem]]  # the same problem for NumPy arrays
    backend: Backend
    _given: tuple[Sequence[Array], Mapping[str, Any]]  # the arguments of `read`

    @classmethod
    def read(cls, *arrays: Any, **shared: Any) -> Problem:
        """Return the problem of arrays with one entry per row, and what all rows share."""
        problem = cls(*arrays, **shared)
        problem._given = arrays, shared
        return problem

    def decide_block(self, rows: slice, objective: Objective) -> tuple[Array, Array]:
        """Return labels and expectations of some of the rows, without constraints."""
        raise NotImplementedError

    def decide_without_limits(self, objective: Objective) -> Decision:
        """Decide each row by blocks that fit in `work_bytes`, without constraints."""
        xp, n = self.backend.xp, self.shape[0]
        rows = max(1, work_bytes(self.backend) // max(1, self.row_bytes))
        with np.errstate(all="ignore"):  # array-api-strict computes with NumPy
            blocks = [
                self.decide_block(slice(start, min(start + rows, n)), objective)
                for start in range(0, n, rows)
            ]
        if not blocks:
            return Decision(self.no_labels(), self.numbers([]))
        if len(blocks) == 1:
            return Decision(*blocks[0])
        return Decision(*[xp.concat(parts) for parts in zip(*blocks, strict=True)])

    def decide_rows(self, objective: Objective) -> Decision:
        """Decide each row; those whose optimal set is not feasible are decided on the host."""
        constraints = objective.constraints(self.shape[1])
        decision = self.decide_without_limits(self.backend.representable(objective))
        if constraints is None:
            return decision
        xp, device = self.backend.xp, self.backend.device
        labels = np.array(to_host(decision.labels), order="C")  # (n, m), a copy
        infeasible = np.ones(len(labels), dtype=np.bool_)
        if not constraints.has_costs:
            find_infeasible_rows(labels, constraints, infeasible)
        rows = np.flatnonzero(infeasible)
        if len(rows) == 0:
            return decision
        at = xp.asarray(rows, device=device)
        arrays, shared = self._given
        on_host = {name: to_host(v) if is_array_api(v) else v for name, v in shared.items()}
        some_rows = self.host.read(*[to_host(xp.take(a, at, axis=0)) for a in arrays], **on_host)
        expected_f = np.array(to_host(decision.expected_f))
        labels[rows], expected_f[rows] = some_rows.decide_rows(objective)
        return Decision(xp.asarray(labels, device=device), xp.asarray(expected_f, device=device))

    def no_labels(self) -> Array:
        xp = self.backend.xp
        return xp.zeros((0, self.shape[1]), dtype=xp.int8, device=self.backend.device)

    def numbers(self, values: list[float]) -> Array:
        return self.backend.array(values)

    def matrix(self, labels: Array) -> Array:
        return self.backend.xp.reshape(labels, self.shape)
