"""Ridge paths of large models: Newton's method whose steps conjugate gradients solve for.

Many problems on the same rows (`_objective`) are solved side by side, each with its own step
lengths and its own end. Steps are solved for only as closely as the next iteration needs
(Dembo, Eisenstat and Steihaug, *Inexact Newton methods*, 1982).
"""

from __future__ import annotations

import numpy as np

from fgfm.ridge._arrays import Flags, Floats, Integers, columns, copied, counting, namespace
from fgfm.ridge._cg import MAX_PRODUCTS, Hessians, conjugate_gradients
from fgfm.ridge._objective import Objectives, ProblemRows, dots, logits
from fgfm.ridge._preconditioner import Inverses, take

__all__ = ["RidgePath"]

# The line search is that of the compiled kernel, `fgfm._kernels.ridge`.
_DESCENT = 1e-4  # fraction of the predicted descent that a step must reach (Armijo)
_SHORT = 0.1  # a step that must be cut to less than this is damped the next time
_SHORTEST = 1e-6  # the line search gives up below this length
_DAMPING = 1e-6  # the first that is tried; a hundred times more each time
_ACCURACY = (1e-4, 0.1)  # smallest and largest relative accuracy of a Newton step


class RidgePath:
    """Problems on the same rows, followed from one penalty to the next.

    Parameters
    ----------
    rows : ProblemRows
        Features, the constant first, and weights of the rows.
    counts : ndarray of shape (G, B, K)
        Weight of each class in each row.
    first : int
        First penalised row of the weights.
    start : ndarray of shape (q, B, C)
        Weights to start from: of all K classes, or of all but the first.
    """

    def __init__(self, rows: ProblemRows, counts: Floats, first: int, start: Floats) -> None:
        symmetric = start.shape[2] == counts.shape[2]
        own = counts if symmetric else copied(counts[:, :, 1:])
        objectives = Objectives(rows, own, first, not symmetric)
        no_penalty = namespace(start).zeros_like(start[0, :, 0])
        self._iterates = _Iterates(objectives, copied(start), no_penalty)
        self._history: list[tuple[Floats, Floats]] = []  # last two penalties and their weights

    @property
    def theta(self) -> Floats:
        """The weights (q, B, C) at the last penalty."""
        return self._iterates.theta

    def keep(self, some: Integers) -> None:
        """Continue with some of the problems."""
        self._iterates = self._iterates.take(some)
        self._history = [(penalty[some], theta[:, some]) for penalty, theta in self._history]

    def follow(self, penalty: Floats, tol: float, gap: float, max_iter: int) -> Integers:
        """Fit the next penalty, starting from the weights at the last one or extrapolated.

        Parameters
        ----------
        penalty : ndarray of shape (B,)
            One for each problem.
        tol, gap, max_iter : float, float, int
            A fit ends when the logits are accurate to the square of `tol`, or after a step that
            was expected to lower the mean loss by no more than `gap`; after `max_iter` steps at
            the latest.

        Returns
        -------
        ndarray of shape (B,)
            Numbers of steps, negative where they did not suffice.
        """
        self._iterates.set_penalty(penalty)
        if len(self._history) == 2:
            (first, older), (second, newer) = self._history
            # the weights are about linear in the logarithm of the penalty
            xp = namespace(penalty)
            last, next_ = xp.log(second / first), xp.log(penalty / second)
            ratio = xp.where(last == 0.0, 0.0, next_ / xp.where(last == 0.0, 1.0, last))
            self._iterates.try_start(newer + ratio[:, None] * (newer - older))
        steps = self._iterates.minimise(tol, gap, max_iter)
        self._history = [*self._history[-1:], (penalty, copied(self.theta))]
        return steps


class _Iterates:
    """The current weights, logits, values and probabilities of B problems."""

    def __init__(self, objectives: Objectives, theta: Floats, penalty: Floats) -> None:
        self.objectives = objectives
        self.penalty = penalty
        self.scaled = penalty < 0.0  # none
        self.inverses: Inverses = {}
        self.theta = theta  # (q, B, C)
        self.eta = logits(objectives.Z, objectives.extra, theta)  # (G, B, C)
        self.value, self.prob = objectives.evaluate(self.eta, theta, penalty)

    def take(self, some: Integers) -> _Iterates:
        """Return some of the problems."""
        part = object.__new__(_Iterates)  # without evaluating them again
        part.objectives = self.objectives.take(some)
        part.penalty, part.scaled = self.penalty[some], self.scaled[some]
        part.inverses = take(self.inverses, some)
        part.theta, part.eta, part.prob = (a[:, some] for a in (self.theta, self.eta, self.prob))
        part.value = self.value[some]
        return part

    def set_penalty(self, penalty: Floats) -> None:
        """Continue with another penalty."""
        penalised = self.theta[self.objectives.first :]
        self.value += (penalty - self.penalty) * dots(penalised, penalised)
        self.penalty = penalty

    def try_start(self, theta: Floats) -> None:
        """Move the problems to other weights where these have lower values."""
        eta = logits(self.objectives.Z, self.objectives.extra, theta)
        value, prob = self.objectives.evaluate(eta, theta, self.penalty)
        self._move(counting(value), theta, eta, value, prob, value < self.value)

    def minimise(self, tol: float, gap: float, max_iter: int) -> Integers:
        """Take Newton steps to the minima; return their numbers, negative if too few."""
        xp = namespace(self.penalty)
        steps = xp.full_like(self.penalty, -max_iter, dtype=xp.int64)
        # change of the logits that is expected of the next step, and that in the last step
        expected = xp.full_like(self.penalty, np.inf)
        before = copied(expected)
        damping = xp.zeros_like(self.penalty)
        goal = tol * tol
        active = counting(self.penalty)
        for iteration in range(max_iter):
            objectives = self.objectives.take(active)
            gradient = objectives.gradient(
                columns(self.prob, active), columns(self.theta, active), self.penalty[active]
            )
            # A relative error of the size of the step keeps the convergence quadratic; one that
            # already reaches the goal may be larger.
            accuracy = xp.clip(
                xp.maximum(0.3 * goal / expected[active], expected[active]), *_ACCURACY
            )
            step, products = self._newton_steps(
                active, objectives, gradient, damping[active], accuracy
            )
            eta_step = logits(objectives.Z, objectives.extra, step)  # (G, B, C)
            longest = xp.amax(xp.abs(eta_step), axis=(0, 2))
            descent = dots(gradient, step)
            slack = 1e-13 * (xp.abs(self.value[active]) + 1.0)  # rounding errors of the values
            length, accepted = self._line_search(
                active, objectives, step, eta_step, descent, slack
            )
            full = accepted & (length == 1.0) & (damping[active] == 0.0)
            exact = full & (products < MAX_PRODUCTS)
            remains = longest * (longest + accuracy)
            expected[active] = xp.where(exact, remains, np.inf)
            smaller = xp.where(damping[active] > _DAMPING, 0.01 * damping[active], 0.0)
            larger = xp.clip(100.0 * damping[active], _DAMPING, None)
            damping[active] = xp.where(length < _SHORT, larger, smaller)
            stalled = (descent <= 10.0 * slack) & (longest > 0.5 * before[active])
            before[active] = longest
            near = descent <= gap * objectives.mass
            done = (exact & (near | (remains <= goal))) | stalled
            steps[active[done]] = iteration + 1
            active = active[~done]
            if not len(active):
                break
        return steps

    def _newton_steps(
        self,
        active: Integers,
        objectives: Objectives,
        gradient: Floats,
        damping: Floats,
        accuracy: Floats,
    ) -> tuple[Floats, Integers]:
        """Return the Newton steps of the active problems, and their numbers of products."""
        hessians = Hessians(
            objectives,
            columns(self.prob, active),
            self.penalty[active],
            damping,
            self.scaled[active],
            take(self.inverses, active),
        )
        step, products, inverses = conjugate_gradients(hessians, gradient, accuracy)
        self.inverses.update((int(active[b]), inverse) for b, inverse in inverses.items())
        self.scaled[active] |= products == MAX_PRODUCTS
        return step, products

    def _line_search(
        self,
        active: Integers,
        objectives: Objectives,
        step: Floats,
        eta_step: Floats,
        descent: Floats,
        slack: Floats,
    ) -> tuple[Floats, Flags]:
        """Halve the steps until they descend; return their lengths and which were taken."""
        length = namespace(descent).ones_like(descent)
        accepted = length < 0.0  # none
        trying = counting(descent)
        while len(trying):
            there = active[trying]
            part = length[trying]
            theta = columns(self.theta, there) - part[:, None] * columns(step, trying)
            eta = columns(self.eta, there) - part[:, None] * columns(eta_step, trying)
            value, prob = objectives.take(trying).evaluate(eta, theta, self.penalty[there])
            limit = self.value[there] - _DESCENT * part * descent[trying] + slack[trying]
            good = value <= limit
            self._move(there, theta, eta, value, prob, good)
            accepted[trying[good]] = True
            trying = trying[~good & (part >= _SHORTEST)]
            length[trying] *= 0.5
        return length, accepted

    def _move(
        self, at: Integers, theta: Floats, eta: Floats, value: Floats, prob: Floats, taken: Flags
    ) -> None:
        """Replace the iterates of the problems `at` where `taken`."""
        there = at[taken]
        if len(there) == len(self.value):
            self.theta, self.eta, self.value, self.prob = theta, eta, value, prob
            return
        self.theta[:, there] = theta[:, taken]
        self.eta[:, there] = eta[:, taken]
        self.value[there] = value[taken]
        self.prob[:, there] = prob[:, taken]
