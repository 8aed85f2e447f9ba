"""Conjugate gradients on sparse rows of the CPU, by `fgfm._kernels.conjugate_gradients`.

A step need only be accurate to four digits, and the gradient that it is solved for is in double
precision. So steps are computed in single precision where the penalty is large enough for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm.ridge._arrays import columns
from fgfm.ridge._preconditioner import Inverses

__all__ = ["SparseSystems"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

# Steps have single precision where the ridge, twice the penalty, is at least this part of the
# largest curvature: errors of products, 1e-7 of that, are small beside the least curvature.
_SINGLE_RIDGE = 1e-5
_SINGLE_RANGE = 1e12  # of values and curvatures


class SparseSystems:
    """The systems ``Hessian @ step = gradient`` of B problems, and what has been reached.

    Parameters
    ----------
    hessians : Hessians
        The Hessians.
    gradient : ndarray of shape (q, B, C)
        The gradients.
    accuracy : ndarray of shape (B,)
        Relative accuracy of each step, in the norm of its Hessian.

    Attributes
    ----------
    step, residual : ndarray of shape (q, B, C)
        The steps, and the gradients less their products with the Hessians.
    products : ndarray of shape (B,)
        Numbers of products.
    unfinished : ndarray of shape (B,)
        Problems that are not solved to their accuracy.
    single : ndarray of shape (B,)
        Problems that are solved in single precision.
    """

    def __init__(self, hessians: Any, gradient: Floats, accuracy: Floats) -> None:
        self.hessians = hessians
        self.accuracy = accuracy
        self.step, self.residual = np.zeros_like(gradient), gradient.copy()
        B = len(accuracy)
        self.total = np.zeros(B)
        self.products = np.zeros(B, dtype=np.int64)
        self.unfinished = np.ones(B, dtype=np.bool_)
        self.single = _suit_single_precision(hessians)

    def usable(self, inverses: Inverses) -> Inverses:
        """Return the inverses that are in the precision in which their problems are solved."""
        return {b: one for b, one in inverses.items() if one.single == self.single[b]}

    def solve(self, some: Integers, limit: Integers, inverses: Inverses) -> None:
        """Continue some problems; `limit` are the most further products of each."""
        preconditioned = np.isin(some, list(inverses))
        for single in (True, False):
            for with_inverse in (True, False):
                chosen = (self.single[some] == single) & (preconditioned == with_inverse)
                if chosen.any():
                    group = some[chosen]
                    matrices = [inverses[int(b)].matrices for b in group] if with_inverse else []
                    self._solve_group(group, limit[chosen], single, matrices)

    def _solve_group(
        self, group: Integers, limit: Integers, single: bool, inverses: list[npt.NDArray[Any]]
    ) -> None:
        """Continue problems that are solved in the same precision."""
        from fgfm._kernels import conjugate_gradients

        hessians, objectives = self.hessians, self.hessians.objectives
        q, _, C = self.step.shape
        diagonal = np.zeros((q, len(group)))
        diagonal[objectives.first :] = hessians.ridge[group, 0]
        if hessians.damped:
            diagonal += hessians.damping[group, 0] * objectives.bound[:, group, 0]
        extra = np.empty((0, 0))
        if objectives.extra is not None:
            extra = np.ascontiguousarray(columns(objectives.extra, group))
        step, residual = (_as_columns(a[:, group]) for a in (self.step, self.residual))
        total, products = self.total[group], np.empty(len(group), dtype=np.int64)
        conjugate_gradients(
            *(objectives.sparse_rows[2:] if single else objectives.sparse_rows[:2]),
            objectives.weight[:, 0],
            _as_columns(columns(hessians.prob, group)),
            extra,
            C,
            objectives.reference,
            diagonal,
            np.ascontiguousarray(hessians.scale[:, group, 0]),
            inverses,
            self.accuracy[group],
            limit,
            step,
            residual,
            total,
            products,
        )
        self.step[:, group] = step.reshape(q, -1, C)
        self.residual[:, group] = residual.reshape(q, -1, C)
        self.total[group] = total
        self.products[group] += np.abs(products)
        self.unfinished[group] = products < 0


def _as_columns(values: Floats) -> Floats:
    return np.ascontiguousarray(values).reshape(len(values), -1)


def _suit_single_precision(hessians: Any) -> npt.NDArray[np.bool_]:
    """Return which problems can be solved in single precision, (B,)."""
    objectives = hessians.objectives
    largest = objectives.bound[:, :, 0].max(axis=0)  # (B,)
    values = float(np.abs(objectives.Z.data).max(initial=0.0))
    in_range = (np.maximum(largest, 1.0 / largest) < _SINGLE_RANGE) & (values < _SINGLE_RANGE)
    return np.asarray(in_range & (hessians.ridge[:, 0] >= _SINGLE_RIDGE * largest))
