"""The ridge path where the Hessian is too large to form: Newton steps by conjugate gradients.

The problem is that of `fgfm._kernels.ridge`, with one column of weights per class that has its
own: one for two classes, K - 1 beside a reference class, or all K. In the last form the blocks of
the Hessian on its diagonal, one per class, are nearly all of it: they make the preconditioner,
formed once or twice per penalty, and a few products with X then give a Newton step.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve
from scipy.special import logsumexp

__all__ = ["fit_path_iteratively"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_DESCENT = 1e-4  # part of the promised descent that a step must keep
_SHORT = 0.1  # of a full step: one that must be cut to less is damped the next time
_SHORTEST = 1e-6  # of the steps tried: then the direction is given up
_DAMPING = 1e-6  # the first that is tried; a hundred times more each time
_RESIDUAL = 1e-2  # what the conjugate gradients may leave of the gradient
_PRODUCTS = 200  # at most in a step: then it is taken as it is


class _Objective:
    """The penalised likelihood of one set of rows, in theta (q, C)."""

    def __init__(self, Z: Floats, counts: Floats, first: int, symmetric: bool) -> None:
        self.Z = Z
        self.counts = counts if symmetric else counts[:, 1:]  # (G, C)
        self.reference = not symmetric
        self.total = counts.sum(axis=1)  # (G,)
        self.first = first
        self.penalty = 0.0
        self.damping = 0.0
        # the largest curvature that any probabilities could give, (q, 1)
        self.bound = 0.25 * (self.total @ Z**2)[:, None] + 1e-300
        self.prob = np.empty_like(self.counts)

    def log_proba(self, eta: Floats) -> tuple[Floats, Floats]:
        """Give the logarithms of the normaliser (G, 1) and of the probabilities (G, C)."""
        log_mass = np.asarray(logsumexp(eta, axis=1, keepdims=True))
        if self.reference:
            log_mass = np.logaddexp(0.0, log_mass)
        return log_mass, eta - log_mass

    def value(self, eta: Floats, theta: Floats) -> float:
        """Give the objective."""
        log_mass, log_p = self.log_proba(eta)
        value = -float(np.vdot(self.counts, log_p))
        if self.reference:
            value += float((self.total - self.counts.sum(axis=1)) @ log_mass[:, 0])
        return value + self.penalty * float((theta[self.first :] ** 2).sum())

    def gradient(self, eta: Floats, theta: Floats) -> Floats:
        """Give the gradient, and keep the probabilities for `product`."""
        self.prob = np.exp(self.log_proba(eta)[1])
        return self.penalize(self.Z.T @ (self.total[:, None] * self.prob - self.counts), theta)

    def product(self, V: Floats) -> Floats:
        """Multiply by the Hessian."""
        U = self.prob * (self.Z @ V)  # (G, C)
        U -= self.prob * U.sum(axis=1, keepdims=True)
        result = self.penalize(self.Z.T @ (self.total[:, None] * U), V)
        return result + self.damping * self.bound * V if self.damping else result

    def penalize(self, result: Floats, V: Floats) -> Floats:
        """Add the part of the penalty to a gradient, or to a product with the Hessian."""
        result[self.first :] += 2.0 * self.penalty * V[self.first :]
        return result

    def factors(self) -> list[tuple[Floats, bool]]:
        """Give the Cholesky factors of the blocks of the Hessian, class by class."""
        found = []
        for p in self.prob.T:
            root = np.sqrt(self.total * p * (1.0 - p))
            weighted = self.Z * root[:, None]
            block = weighted.T @ weighted  # (q, q)
            diagonal = np.einsum("jj->j", block)
            diagonal[self.first :] += 2.0 * self.penalty
            # a preconditioner may be off: this keeps rounding from making it indefinite
            diagonal += max(self.damping, 1e-13) * self.bound[:, 0]
            found.append(cho_factor(block, lower=True, overwrite_a=True, check_finite=False))
        return found


def _newton_step(
    objective: _Objective, gradient: Floats, factors: list[tuple[Floats, bool]]
) -> Floats:
    """Solve ``Hessian @ step = gradient`` by preconditioned conjugate gradients."""

    def precondition(R: Floats) -> Floats:
        columns = [
            cho_solve(factor, column, check_finite=False)
            for factor, column in zip(factors, R.T, strict=True)
        ]
        return np.stack(columns, axis=1)

    step = np.zeros_like(gradient)
    residual = gradient.copy()
    S = precondition(residual)
    direction = S
    size = first = float(np.vdot(residual, S))
    for _ in range(_PRODUCTS):
        product = objective.product(direction)
        curvature = float(np.vdot(direction, product))
        if not curvature > 0.0:
            break
        length = size / curvature
        step += length * direction
        residual -= length * product
        S = precondition(residual)
        size, before = float(np.vdot(residual, S)), size
        if not size > _RESIDUAL**2 * first:
            break
        direction = S + size / before * direction
    return step


def fit_path_iteratively(
    Z: Floats,
    counts: Floats,
    penalties: Floats,
    first: int,
    symmetric: bool,
    tol: float,
    max_iter: int,
    start: Floats,
) -> tuple[Floats, Integers]:
    """Give weights (L, q, K - 1) over those of the first class, and the numbers of steps (L,).

    Parameters
    ----------
    Z : ndarray of shape (G, q)
        Rows, the constant first.
    counts : ndarray of shape (G, K)
        Weight of each class in each row.
    penalties : ndarray of shape (L,)
        Each starts where the one before ended.
    first : int
        First penalised row of the weights.
    symmetric : bool
        Whether all K classes have penalised weights.
    tol, max_iter : float, int
        A path ends where the logits are known to its square, after so many steps at most.
    start : ndarray of shape (q, K - 1)
        Weights to start from.

    Returns
    -------
    tuple of ndarrays
        Weights, and steps: negative where they did not suffice.
    """
    objective = _Objective(Z, counts, first, symmetric)
    theta = start.copy()
    if symmetric:
        theta = np.column_stack([np.zeros(len(start)), start])
        theta -= theta.mean(axis=1, keepdims=True)
    eta = Z @ theta
    found = np.empty((len(penalties), *start.shape))
    steps = np.full(len(penalties), -max_iter, dtype=np.int64)
    for at, penalty in enumerate(penalties):
        objective.penalty = float(penalty)
        objective.damping = 0.0
        value = objective.value(eta, theta)
        factors: list[tuple[Floats, bool]] = []
        drift = before = np.inf
        for iteration in range(max_iter):
            gradient = objective.gradient(eta, theta)
            if drift > 1.0 or objective.damping:  # far from where the factors were formed
                factors, drift = objective.factors(), 0.0
            step = _newton_step(objective, gradient, factors)
            eta_step = Z @ step
            longest = float(np.abs(eta_step).max())
            descent = float(np.vdot(gradient, step))
            slack = 1e-13 * (abs(value) + 1.0)
            length = 1.0
            while True:
                trial_eta, trial = eta - length * eta_step, theta - length * step
                trial_value = objective.value(trial_eta, trial)
                accepted = trial_value <= value - _DESCENT * length * descent + slack
                if accepted or length < _SHORTEST:
                    break
                length *= 0.5
            if accepted:
                theta, eta, value = trial, trial_eta, trial_value
                drift += length * longest
            exact = accepted and length == 1.0 and not objective.damping
            if length < _SHORT:
                objective.damping = max(_DAMPING, 100.0 * objective.damping)
            elif objective.damping > _DAMPING:
                objective.damping *= 0.01
            else:
                objective.damping = 0.0
            done = exact and longest * (longest + _RESIDUAL) <= tol * tol
            stalled = descent <= 10.0 * slack and longest > 0.5 * before
            if done or stalled:
                steps[at] = iteration + 1
                break
            before = longest
        found[at] = theta[:, 1:] - theta[:, :1] if symmetric else theta
    return found, steps
