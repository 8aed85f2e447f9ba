"""Ridge paths where Hessians are too large to form: Newton steps by conjugate gradients.

The problem is that of `fgfm._kernels.ridge`, with one column of weights per class that has its
own: one for two classes, K - 1 beside a reference class, or all K. Many problems on the same rows
are solved side by side. A product with the rows, sparse or dense, then serves all their columns at
once; everything else is done problem by problem, each with its own step lengths and its own end,
so that no problem feels what it is solved with.

Where few rows have weight (rare classes, small penalties) most of the curvature is the penalty's,
the same in all directions, and plain conjugate gradients need few products. Scaling every column
by its own curvature would spread these directions: it is kept for columns of very different size.
Where many products are needed all the same, factors of the Hessian's blocks are made (`_factors`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm.ridge._preconditioner import Common, Factor

__all__ = ["Path", "Rows", "column_sums", "logits", "probabilities"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_DESCENT = 1e-4  # part of the promised descent that a step must keep
_SHORT = 0.1  # of a full step: one that must be cut to less is damped the next time
_SHORTEST = 1e-6  # of the steps tried: then the direction is given up
_DAMPING = 1e-6  # the first that is tried; a hundred times more each time
# What the conjugate gradients may leave of a step, at most and at least.
_RESIDUALS = (1e-4, 0.1)
_JITTER = 1e-13  # a preconditioner may be off: this keeps rounding from making it indefinite
_PRODUCTS = 500  # at most in a step: then it is taken as it is, and columns are scaled


class Rows(NamedTuple):
    """What the problems have in common."""

    Z: Any  # (G, r), dense or CSR: the constant, then the columns
    weight: Floats  # (G,)
    extra: Floats | None  # (G, B): one more column for each problem
    folds: int = 1  # how many there are: each has problems of its own


def column_sums(values: Floats) -> Floats:
    """Sum over the first axis, every column by itself and always in the same order."""
    from fgfm._kernels import add_columns

    sums = np.empty(values.shape[1:])
    add_columns(_flat(values), sums.reshape(-1))
    return sums


def _dots(A: Floats, B: Floats) -> Floats:
    """Give one scalar product for each problem, of two arrays (q, B, C)."""
    from fgfm._kernels import multiply_columns

    sums = np.empty(A.shape[1:])
    multiply_columns(_flat(A), _flat(B), sums.reshape(-1))
    return np.asarray(sums.sum(axis=1))


def _flat(values: Floats) -> Floats:
    """Give the columns of an array side by side, C-contiguous."""
    return np.ascontiguousarray(values).reshape(len(values), -1)


def logits(Z: Any, extra: Floats | None, V: Floats) -> Floats:
    """Multiply weights (q, B, C) by the rows, the extra column last; (G, B, C)."""
    r = Z.shape[1]
    flat = np.ascontiguousarray(V[:r]).reshape(r, -1)
    eta = np.asarray(Z @ flat).reshape(-1, *V.shape[1:])
    if extra is not None:
        eta += extra[:, :, None] * V[r]
    return eta


def probabilities(eta: Floats, reference: bool) -> tuple[Floats, Floats]:
    """Give the probabilities (G, B, C), and the logarithms of the normalisers (G, B)."""
    top = eta.max(axis=2, keepdims=True)  # (G, B, 1)
    if reference:
        top = np.maximum(top, 0.0)
    prob = np.exp(eta - top)
    mass = prob.sum(axis=2, keepdims=True)
    if reference:
        mass += np.exp(-top)
    prob /= mass
    return prob, (top + np.log(mass))[:, :, 0]


class _Problems:
    """The penalised likelihoods of B problems, in theta (q, B, C)."""

    def __init__(self, rows: Rows, counts: Floats, first: int, reference: bool) -> None:
        self.Z, self.weight, self.extra, folds = rows
        self.common = Common(self.Z, folds)
        self.transposed = self.common.transposed
        self.counts = counts  # (G, B, C)
        self.first = first
        self.reference = reference
        squares = self.Z.multiply(self.Z) if sparse.issparse(self.Z) else self.Z**2
        # the largest curvature that any probabilities could give, (q, B, 1)
        bound = 0.25 * np.asarray(squares.T @ self.weight) + 1e-300
        self.bound = np.repeat(bound[:, None, None], counts.shape[1], axis=1)
        if self.extra is not None:
            last = 0.25 * column_sums(self.weight[:, None] * self.extra**2) + 1e-300
            self.bound = np.concatenate([self.bound, last[None, :, None]])
        largest = bound[1:].max(initial=1e-300)
        self.flat = np.maximum(self.bound, largest)
        self.flat[1 : len(bound)] = largest

    def take(self, some: Integers) -> _Problems:
        """Give some of the problems."""
        part = object.__new__(_Problems)
        part.__dict__.update(self.__dict__)
        part.extra = None if self.extra is None else self.extra[:, some]
        part.counts = self.counts[:, some]
        part.bound = self.bound[:, some]
        part.flat = self.flat[:, some]
        return part

    def narrow(self, some: Integers) -> _Problems:
        """Give some of the problems, fit for products only: it is done often."""
        part = object.__new__(_Problems)
        part.__dict__.update(self.__dict__)
        part.extra = None if self.extra is None else self.extra[:, some]
        part.bound = self.bound[:, some]
        return part

    def evaluate(self, eta: Floats, theta: Floats, penalty: Floats) -> tuple[Floats, Floats]:
        """Give the objectives (B,), and the probabilities."""
        prob, log_mass = probabilities(eta, self.reference)
        linear = np.multiply(self.counts, eta).sum(axis=2)
        value = column_sums(self.weight[:, None] * log_mass - linear)
        return value + penalty * _dots(theta[self.first :], theta[self.first :]), prob

    def back(self, U: Floats) -> Floats:
        """Multiply (G, B, C) by the transposed rows."""
        result = np.asarray(self.transposed @ U.reshape(len(U), -1)).reshape(-1, *U.shape[1:])
        if self.extra is None:
            return result
        return np.concatenate([result, column_sums(self.extra[:, :, None] * U)[None]])

    def gradient(self, prob: Floats, theta: Floats, penalty: Floats) -> Floats:
        """Give the gradients."""
        result = self.back(self.weight[:, None, None] * prob - self.counts)
        result[self.first :] += 2.0 * penalty[:, None] * theta[self.first :]
        return result


class _Hessians:
    """The second derivatives of B problems, and what they are preconditioned by."""

    def __init__(
        self,
        problems: _Problems,
        prob: Floats,  # (G, B, C)
        penalty: Floats,
        damping: Floats,
        scaled: Flags,
        factors: list[Factor | None],
    ) -> None:
        self.problems = problems
        self.prob = prob
        # of each logit by itself; where there is one logit, that is all
        self.curvature = problems.weight[:, None, None] * prob * (1.0 - prob)
        self.single = problems.reference and prob.shape[2] == 1
        self.ridge = 2.0 * penalty[:, None]  # (B, 1)
        self.damping = damping[:, None]  # (B, 1)
        self.scale = np.where(scaled[:, None], problems.bound + self.ridge, problems.flat)
        self.factors = factors

    def take(self, some: Integers) -> _Hessians:
        """Give some of them."""
        part = object.__new__(_Hessians)
        part.problems = self.problems.narrow(some)
        part.prob = self.prob if self.single else self.prob[:, some]
        part.curvature = self.curvature[:, some]
        part.single = self.single
        part.ridge, part.damping = self.ridge[some], self.damping[some]
        part.scale = self.scale[:, some]
        part.factors = [self.factors[b] for b in some]
        return part

    def product(self, V: Floats) -> Floats:
        """Multiply by the Hessians."""
        problems = self.problems
        U = logits(problems.Z, problems.extra, V)
        if self.single:
            U *= self.curvature
        else:
            U *= self.prob
            U -= self.prob * U.sum(axis=2, keepdims=True)
            U *= problems.weight[:, None, None]
        result = problems.back(U)
        result[problems.first :] += self.ridge * V[problems.first :]
        if self.damping.any():
            result += self.damping * problems.bound * V
        return result

    def precondition(self, R: Floats) -> Floats:
        """Multiply by what is close to the inverses."""
        S = R / self.scale
        for b, factor in enumerate(self.factors):
            if factor is not None:
                S[:, b] = factor.solve(R[:, b])
        if not self.problems.reference:
            # Along weights that are the same for all classes the Hessian is the penalty's alone,
            # unlike its blocks: but no step goes there.
            S -= S.mean(axis=2, keepdims=True)
        return S

    def factorise(self, b: int) -> None:
        """Form the blocks of a Hessian that belong to one logit, and factorise them."""
        problems = self.problems
        extra = None if problems.extra is None else problems.extra[:, b]
        self.factors[b] = Factor(
            problems.common,
            extra,
            self.curvature[:, b],
            float(self.ridge[b, 0]),
            problems.bound[:, b, 0] * max(float(self.damping[b, 0]), _JITTER),
            problems.first,
        )


def _newton_steps(
    hessians: _Hessians, gradient: Floats, residual: Floats
) -> tuple[Floats, Integers, list[Factor | None]]:
    """Solve ``Hessian @ step = gradient`` by conjugate gradients.

    A problem ends when ten steps like the last would change its square length (in the norm of its
    Hessian) by no more than the square of `residual`. Where it takes as long as new factors would,
    it gets them, and begins again from where it is.

    Parameters
    ----------
    hessians : _Hessians
        Of B problems.
    gradient : ndarray of shape (q, B, C)
        Their gradients.
    residual : ndarray of shape (B,)
        How closely to solve.

    Returns
    -------
    tuple
        Steps (q, B, C), numbers of products (B,), and the factors in use.
    """
    B = gradient.shape[1]
    found = np.zeros_like(gradient)
    products = np.full(B, _PRODUCTS)
    factors = list(hessians.factors)
    at = np.arange(B)  # the problems that go on
    step, left = found.copy(), gradient.copy()
    S = hessians.precondition(left)
    direction = S
    size = _dots(left, S)
    gain = np.zeros(B)
    patience = np.array([hessians.problems.common.patience(f is not None) for f in factors])
    for made in range(1, _PRODUCTS + 1):
        product = hessians.product(direction)
        curvature = _dots(direction, product)
        possible = curvature > 0.0
        length = np.where(possible, size / np.where(possible, curvature, 1.0), 0.0)
        step += length[:, None] * direction
        left -= length[:, None] * product
        gain += length * size
        on = 10.0 * length * size > residual[at] ** 2 * gain
        tired = np.flatnonzero(on & (patience[at] <= made))
        for b in tired:
            hessians.factorise(int(b))
            factors[at[b]] = hessians.factors[b]
            patience[at[b]] = np.inf  # others would be the same
        S = hessians.precondition(left)
        before, size = size, _dots(left, S)
        before[tired] = np.inf  # the old direction is forgotten
        on &= size > 0.0
        if not on.all():
            found[:, at[~on]] = step[:, ~on]
            products[at[~on]] = made
            if not on.any():
                return found, products, factors
            kept = np.flatnonzero(on)
            at, hessians = at[kept], hessians.take(kept)
            step, left, S, direction = (a[:, kept] for a in (step, left, S, direction))
            size, before, gain = size[kept], before[kept], gain[kept]
        direction = S + (size / before)[:, None] * direction
    found[:, at] = step
    return found, products, factors


class _State:
    """Where the problems stand."""

    def __init__(self, problems: _Problems, theta: Floats, penalty: Floats) -> None:
        self.problems = problems
        self.penalty = penalty
        self.scaled = np.zeros(len(penalty), dtype=bool)
        self.factors: list[Factor | None] = [None] * len(penalty)
        self.theta = theta
        self.eta = logits(problems.Z, problems.extra, theta)
        self.value, self.prob = problems.evaluate(self.eta, theta, penalty)

    def take(self, some: Integers) -> _State:
        """Give some of the problems."""
        part = object.__new__(_State)
        part.problems = self.problems.take(some)
        part.penalty, part.scaled = self.penalty[some], self.scaled[some]
        part.factors = [self.factors[b] for b in some]
        part.theta, part.eta, part.prob = (a[:, some] for a in (self.theta, self.eta, self.prob))
        part.value = self.value[some]
        return part

    def put(
        self, at: Integers, theta: Floats, eta: Floats, value: Floats, prob: Floats, taken: Flags
    ) -> None:
        """Move problems `at` where `taken`."""
        there = at[taken]
        self.theta[:, there] = theta[:, taken]
        self.eta[:, there] = eta[:, taken]
        self.value[there] = value[taken]
        self.prob[:, there] = prob[:, taken]

    def stiffen(self, penalty: Floats) -> None:
        """Go on to another penalty."""
        rest = self.theta[self.problems.first :]
        self.value += (penalty - self.penalty) * _dots(rest, rest)
        self.penalty = penalty

    def leap(self, theta: Floats) -> None:
        """Start elsewhere, where that is better."""
        eta = logits(self.problems.Z, self.problems.extra, theta)
        value, prob = self.problems.evaluate(eta, theta, self.penalty)
        everyone = np.arange(len(value))
        self.put(everyone, theta, eta, value, prob, value < self.value)

    def descend(
        self, at: Integers, step: Floats, eta_step: Floats, descent: Floats, slack: Floats
    ) -> tuple[Floats, Flags]:
        """Halve the steps of problems `at` until they descend; give lengths, and which did."""
        length = np.ones(len(at))
        accepted = np.zeros(len(at), dtype=bool)
        trying = np.arange(len(at))
        while len(trying):
            there = at[trying]
            part = length[trying]
            theta = self.theta[:, there] - part[:, None] * step[:, trying]
            eta = self.eta[:, there] - part[:, None] * eta_step[:, trying]
            problems = self.problems.take(there)
            value, prob = problems.evaluate(eta, theta, self.penalty[there])
            promised = self.value[there] - _DESCENT * part * descent[trying] + slack[trying]
            good = value <= promised
            self.put(there, theta, eta, value, prob, good)
            accepted[trying[good]] = True
            trying = trying[~good & (part >= _SHORTEST)]
            length[trying] *= 0.5
        return length, accepted

    def minimise(self, tol: float, gap: float, max_iter: int) -> Integers:
        """Take Newton steps to the minima; give their numbers, negative if too few."""
        B = len(self.penalty)
        steps = np.full(B, -max_iter, dtype=np.int64)
        expected = np.full(B, np.inf)  # what the next step will change the logits by
        before = np.full(B, np.inf)  # what the last one did
        damping = np.zeros(B)
        goal = tol * tol
        at = np.arange(B)
        for iteration in range(max_iter):
            problems = self.problems.take(at)
            gradient = problems.gradient(self.prob[:, at], self.theta[:, at], self.penalty[at])
            residual = np.clip(np.maximum(0.3 * goal / expected[at], expected[at]), *_RESIDUALS)
            hessians = _Hessians(
                problems,
                self.prob[:, at],
                self.penalty[at],
                damping[at],
                self.scaled[at],
                [self.factors[b] for b in at],
            )
            step, products, factors = _newton_steps(hessians, gradient, residual)
            for b, factor in zip(at, factors, strict=True):
                self.factors[b] = factor
            self.scaled[at] |= products == _PRODUCTS
            eta_step = logits(problems.Z, problems.extra, step)
            longest = np.abs(eta_step).max(axis=(0, 2))
            descent = _dots(gradient, step)
            slack = 1e-13 * (np.abs(self.value[at]) + 1.0)  # what rounding does to the values
            length, accepted = self.descend(at, step, eta_step, descent, slack)
            exact = accepted & (length == 1.0) & (damping[at] == 0.0) & (products < _PRODUCTS)
            remains = longest * (longest + residual)
            expected[at] = np.where(exact, remains, np.inf)
            smaller = np.where(damping[at] > _DAMPING, 0.01 * damping[at], 0.0)
            larger = np.maximum(_DAMPING, 100.0 * damping[at])
            damping[at] = np.where(length < _SHORT, larger, smaller)
            stalled = (descent <= 10.0 * slack) & (longest > 0.5 * before[at])
            before[at] = longest
            near = descent <= gap * self.problems.weight.sum()
            done = (exact & (near | (remains <= goal))) | stalled
            steps[at[done]] = iteration + 1
            at = at[~done]
            if not len(at):
                break
        return steps


class Path:
    """Problems on the same rows, followed from one penalty to the next.

    Parameters
    ----------
    rows : Rows
        Features, the constant first, and weights of the rows.
    counts : ndarray of shape (G, B, K)
        Weight of each class in each row.
    first : int
        First penalised row of the weights.
    start : ndarray of shape (q, B, C)
        Weights to start from: of all K classes, or of all but the first.
    """

    def __init__(self, rows: Rows, counts: Floats, first: int, start: Floats) -> None:
        symmetric = start.shape[2] == counts.shape[2]
        own = counts if symmetric else np.ascontiguousarray(counts[:, :, 1:])
        problems = _Problems(rows, own, first, not symmetric)
        self._state = _State(problems, start.copy(), np.zeros(start.shape[1]))
        self._before: list[tuple[Floats, Floats]] = []  # the last two penalties, and their weights

    @property
    def theta(self) -> Floats:
        """The weights (q, B, C) that the last penalty led to."""
        return self._state.theta

    def keep(self, some: Integers) -> None:
        """Go on with some of the problems."""
        self._state = self._state.take(some)
        self._before = [(penalty[some], theta[:, some]) for penalty, theta in self._before]

    def follow(self, penalty: Floats, tol: float, gap: float, max_iter: int) -> Integers:
        """Go on to the next penalty, from where the last ones lead.

        Parameters
        ----------
        penalty : ndarray of shape (B,)
            One for each problem.
        tol, gap, max_iter : float, float, int
            A fit ends where the logits are known to the square of `tol`, or after a step that was
            expected to lower the mean loss by no more than `gap`; after so many steps at most.

        Returns
        -------
        ndarray of shape (B,)
            Numbers of steps, negative where they did not suffice.
        """
        self._state.stiffen(penalty)
        if len(self._before) == 2:
            (first, older), (second, newer) = self._before
            # with the logarithm of the penalty the weights change evenly
            last, next_ = np.log(second / first), np.log(penalty / second)
            ratio = np.where(last == 0.0, 0.0, next_ / np.where(last == 0.0, 1.0, last))
            self._state.leap(newer + ratio[:, None] * (newer - older))
        steps = self._state.minimise(tol, gap, max_iter)
        self._before = [*self._before[-1:], (penalty, self.theta.copy())]
        return steps
