"""Newton steps of many problems at a time, by preconditioned conjugate gradients.

The Hessian of a problem is never formed. One product with the rows and one with their transpose
multiply the Hessians of all problems by a direction. On sparse rows of the CPU a compiled loop
does it (`_sparse_cg`); dense rows and tensors are computed with here.

Where few rows have weight (rare classes, small penalties) most of the curvature is the penalty's,
the same in all directions, and plain conjugate gradients need few products. Scaling every column
by its own curvature would spread these directions: it is used only where columns are of very
different size. Where many products are needed nevertheless, inverses of the Hessian's blocks are
computed (`_preconditioner`).
"""

from __future__ import annotations

import copy
import functools
from typing import Any

import numpy as np
from scipy import sparse

from fgfm.ridge._arrays import (
    Flags,
    Floats,
    Integers,
    copied,
    counting,
    indices,
    namespace,
)
from fgfm.ridge._objective import Objectives, dots, logits
from fgfm.ridge._preconditioner import BlockInverses, Inverses, take
from fgfm.ridge._sparse_cg import SparseSystems

__all__ = ["MAX_PRODUCTS", "Hessians", "conjugate_gradients"]

# Most products in a step: then the step is taken as it is, and columns are scaled from there on.
MAX_PRODUCTS = 500
# A preconditioner may be inexact: added to its diagonal, in parts of the largest curvature, this
# keeps rounding from making it indefinite.
_JITTER = 1e-13


class Hessians:
    """The Hessians of B problems and their preconditioners.

    Parameters
    ----------
    objectives : Objectives
        The B problems.
    prob : ndarray of shape (G, B, C)
        Their probabilities.
    penalty : ndarray of shape (B,)
        Their penalties.
    damping : ndarray of shape (B,)
        Multiples of the largest curvature that are added to the diagonals.
    scaled : ndarray of shape (B,)
        Problems whose columns are scaled one by one.
    inverses : dict of int to BlockInverses
        Inverses of earlier Hessians, of the problems that have any.
    """

    def __init__(
        self,
        objectives: Objectives,
        prob: Floats,
        penalty: Floats,
        damping: Floats,
        scaled: Flags,
        inverses: Inverses,
    ) -> None:
        self.objectives = objectives
        self.prob = prob
        self.weight = objectives.weight[:, :, None]  # (G, 1, 1) or (G, B, 1)
        self.single = objectives.reference and prob.shape[2] == 1
        self.ridge = 2.0 * penalty[:, None]  # (B, 1)
        self.damping = damping[:, None]  # (B, 1)
        self.damped = bool(damping.any())
        self.scale = namespace(prob).where(
            scaled[:, None], objectives.bound + self.ridge, objectives.flat_scale
        )
        self.inverses = inverses

    @functools.cached_property
    def curvature(self) -> Floats:
        """Second derivatives (G, B, C) of each logit by itself; if single, there are no others."""
        return self.weight * self.prob * (1.0 - self.prob)

    def take(self, some: Integers) -> Hessians:
        """Return the Hessians of some of the problems."""
        part = copy.copy(self)
        part.objectives = self.objectives.take_for_products(some)
        if not self.single:
            part.prob = self.prob[:, some]
            if self.weight.shape[1] > 1:
                part.weight = self.weight[:, some]
        part.curvature = self.curvature[:, some]
        part.ridge, part.damping = self.ridge[some], self.damping[some]
        part.scale = self.scale[:, some]
        part.inverses = take(self.inverses, some)
        return part

    def product(self, V: Floats) -> Floats:
        """Multiply by the Hessians: ``Z' (diag(w p) - w p p') Z V + (ridge + damping) V``."""
        objectives = self.objectives
        U = logits(objectives.Z, objectives.extra, V)  # (G, B, C)
        if self.single:
            U *= self.curvature
        else:
            U *= self.prob
            U -= self.prob * U.sum(axis=2, keepdims=True)
            U *= self.weight
        result = objectives.multiply_transposed(U)
        result[objectives.first :] += self.ridge * V[objectives.first :]
        if self.damped:
            result += self.damping * objectives.bound * V
        return result

    def precondition(self, R: Floats) -> Floats:
        """Multiply by the approximate inverses."""
        S = R / self.scale
        for b, inverse in self.inverses.items():
            S[:, b] = inverse.solve(R[:, b])
        if not self.objectives.reference:
            # Weights that are the same for all classes change no probability: the Hessian is the
            # penalty's alone along them, unlike its blocks, but no step goes there.
            S -= S.mean(axis=2, keepdims=True)
        return S

    def invert_blocks(self, b: int, single: bool = False) -> BlockInverses:
        """Compute the inverses of the blocks of one problem, and use them from here on."""
        objectives = self.objectives
        inverse = BlockInverses(
            objectives.Z,
            None if objectives.extra is None else np.ascontiguousarray(objectives.extra[:, b]),
            self.curvature[:, b],
            float(self.ridge[b, 0]),
            objectives.bound[:, b, 0] * max(float(self.damping[b, 0]), _JITTER),
            objectives.first,
            single,
        )
        self.inverses[b] = inverse
        return inverse


def conjugate_gradients(
    hessians: Hessians, gradient: Floats, accuracy: Floats
) -> tuple[Floats, Integers, Inverses]:
    """Solve ``Hessian @ step = gradient`` for each problem.

    The squared length of a step in the norm of its Hessian is the sum of the terms
    ``length * (r' S r)`` of the iterations (Hestenes and Stiefel, 1952). A problem ends when ten
    times the last term is no more than ``accuracy^2`` times the sum. If it takes as many products
    as pay for new inverses of its blocks, they are computed, and it restarts from where it is.

    Parameters
    ----------
    hessians : Hessians
        Of B problems.
    gradient : ndarray of shape (q, B, C)
        Their gradients.
    accuracy : ndarray of shape (B,)
        Relative accuracy of each step, in the norm of its Hessian.

    Returns
    -------
    tuple
        Steps (q, B, C), numbers of products (B,), and the inverses in use.
    """
    if sparse.issparse(hessians.objectives.Z):
        return _sparse_steps(hessians, gradient, accuracy)
    xp = namespace(gradient)
    solution = xp.zeros_like(gradient)
    products = xp.full_like(accuracy, MAX_PRODUCTS, dtype=xp.int64)
    inverses = dict(hessians.inverses)
    first, again = hessians.objectives.break_even
    patience = xp.full_like(accuracy, first)
    patience[list(inverses)] = again
    active = counting(accuracy)
    step, residual = copied(solution), copied(gradient)
    S = hessians.precondition(residual)
    direction = S
    size = dots(residual, S)
    total = xp.zeros_like(accuracy)
    for n_products in range(1, MAX_PRODUCTS + 1):
        product = hessians.product(direction)
        curvature = dots(direction, product)
        positive = curvature > 0.0
        length = xp.where(positive, size / xp.where(positive, curvature, 1.0), 0.0)
        step += length[:, None] * direction
        residual -= length[:, None] * product
        total += length * size
        unfinished = 10.0 * length * size > accuracy[active] ** 2 * total
        slow: Any = []
        if n_products >= min(first, again):
            slow = indices(unfinished & (patience[active] <= n_products))
        for b in slow:
            inverses[int(active[b])] = hessians.invert_blocks(int(b))
            patience[active[b]] = np.inf  # the Hessian stays the same: once is enough
        S = hessians.precondition(residual)
        before, size = size, dots(residual, S)
        before[slow] = np.inf  # with another preconditioner the old direction is of no use
        unfinished &= size > 0.0
        kept = indices(unfinished)
        if len(kept) < len(active):
            done = indices(~unfinished)
            solution[:, active[done]] = step[:, done]
            products[active[done]] = n_products
            if not len(kept):
                return solution, products, inverses
            active, hessians = active[kept], hessians.take(kept)
            step, residual, S, direction = (a[:, kept] for a in (step, residual, S, direction))
            size, before, total = size[kept], before[kept], total[kept]
        direction = S + (size / before)[:, None] * direction
    solution[:, active] = step
    return solution, products, inverses


def _sparse_steps(
    hessians: Hessians, gradient: Floats, accuracy: Floats
) -> tuple[Floats, Integers, Inverses]:
    """Compute the same on sparse rows of the CPU."""
    systems = SparseSystems(hessians, gradient, accuracy)
    inverses = systems.usable(hessians.inverses)
    first, again = np.ceil(np.minimum(hessians.objectives.break_even, MAX_PRODUCTS))
    limit = np.full(len(accuracy), int(first))
    limit[list(inverses)] = int(again)
    systems.solve(np.arange(len(accuracy)), limit, inverses)
    slow = np.flatnonzero(systems.unfinished & (limit < MAX_PRODUCTS))
    for b in slow:
        inverses[int(b)] = hessians.invert_blocks(int(b), bool(systems.single[b]))
    systems.solve(slow, MAX_PRODUCTS - limit[slow], inverses)
    products = np.where(systems.unfinished, MAX_PRODUCTS, systems.products)
    return systems.step, products, inverses
