"""Ridge-penalised multinomial logistic regression along a path of penalties, by Newton's method.

Rows that are equal are one group. With logits ``eta = Z theta``, (G, J), over the logit 0 of the
reference class, and N[g, k] the weight of class k in group g, minimise for one penalty after the
other

    - sum_gk N[g, k] log p_k(eta_g) + penalty * sum_j (|theta_j|^2 - share * (sum_k theta_jk)^2)

where j runs over the penalised rows of theta. ``share = 1 / K`` is scikit-learn's symmetric
softmax with its redundant class solved for: adding a constant to the weights of all K classes
changes no probability, and that is what is left of their squares at the best constant.
``share = 0`` penalises the distance to the reference class.

The first column of Z is the constant. It stays the first pivot of the Cholesky factor: all later
pivots are then at least the penalty, also where the data are separable and every probability is
almost 0 or 1.
"""

from __future__ import annotations

import math

import numpy as np

from fgfm._kernels._compile import compiled, compiled_sums, entry_point

__all__ = ["fit_path"]

_CLIP = 1e-15  # of a probability whose logarithm is taken to judge it
_DESCENT = 1e-4  # part of the promised descent that a step must keep
_SHORT = 0.1  # of a full step: one that must be cut to less is damped the next time
_SHORTEST = 1e-6  # of the steps tried: then the direction is given up
_DAMPING = 1e-6  # the first that is tried; a hundred times more each time


@compiled
def _evaluate(eta, counts, total, prob):
    """Set the probabilities of all classes but the reference; give the negative log-likelihood."""
    G, J = eta.shape
    loss = 0.0
    if J == 1:
        for g in range(G):
            u = eta[g, 0]
            e = math.exp(-abs(u))
            prob[g, 0] = 1.0 / (1.0 + e) if u >= 0.0 else e / (1.0 + e)
            # log(1 + exp(u)) = max(u, 0) + log(1 + e): no cancellation where the row is certain
            against = counts[g, 0] * u if u >= 0.0 else -counts[g, 1] * u
            loss += against + total[g] * math.log1p(e)
        return loss
    for g in range(G):
        top = 0.0
        for k in range(J):
            top = max(top, eta[g, k])
        mass = math.exp(-top)
        linear = counts[g, 0] * top
        for k in range(J):
            e = math.exp(eta[g, k] - top)
            prob[g, k] = e
            mass += e
            linear += counts[g, k + 1] * (top - eta[g, k])
        for k in range(J):
            prob[g, k] /= mass
        loss += linear + total[g] * math.log(mass)
    return loss


@compiled
def _clipped_loss(eta, counts):
    """Give the negative log-likelihood with all probabilities clipped."""
    G, J = eta.shape
    loss = 0.0
    for g in range(G):
        top = 0.0
        for k in range(J):
            top = max(top, eta[g, k])
        mass = math.exp(-top)
        for k in range(J):
            mass += math.exp(eta[g, k] - top)
        for k in range(J + 1):
            if counts[g, k] > 0.0:
                u = eta[g, k - 1] if k > 0 else 0.0
                p = math.exp(u - top) / mass
                loss -= counts[g, k] * math.log(min(max(p, _CLIP), 1.0 - _CLIP))
    return loss


@compiled
def _penalty(theta, first, share):
    """Give the penalised squares of the rows of theta from `first` on."""
    squares = 0.0
    for j in range(first, theta.shape[0]):
        row = 0.0
        for k in range(theta.shape[1]):
            squares += theta[j, k] * theta[j, k]
            row += theta[j, k]
        squares -= share * row * row
    return squares


@compiled
def _gradient(Z, counts, total, prob, theta, penalty, first, share, residual, gradient):
    G, J = prob.shape
    for g in range(G):
        for k in range(J):
            residual[g, k] = total[g] * prob[g, k] - counts[g, k + 1]
    np.dot(Z.T, residual, gradient)
    for j in range(first, theta.shape[0]):
        row = 0.0
        for k in range(J):
            row += theta[j, k]
        for k in range(J):
            gradient[j, k] += 2.0 * penalty * (theta[j, k] - share * row)


@compiled
def _hessian(Z, pairs, total, prob, penalty, first, share, curvature, weighted, H):
    """Fill the lower triangle of H, whose index is ``j * J + k``.

    ``pairs`` holds the products of the columns of Z two by two, or nothing where that is too much.
    """
    G, J = prob.shape
    p = Z.shape[1]
    c = 0
    for k in range(J):
        for a in range(k + 1):
            for g in range(G):
                same = prob[g, k] if k == a else 0.0
                curvature[g, c] = total[g] * (same - prob[g, k] * prob[g, a])
            c += 1
    if pairs.shape[0] > 0:
        blocks = np.dot(curvature.T, pairs)  # (J (J + 1) / 2, p (p + 1) / 2)
        c = 0
        for k in range(J):
            for a in range(k + 1):
                b = 0
                for j in range(p):
                    for i in range(j + 1):
                        H[j * J + k, i * J + a] = blocks[c, b]
                        H[j * J + a, i * J + k] = blocks[c, b]
                        b += 1
                c += 1
    else:
        c = 0
        for k in range(J):
            for a in range(k + 1):
                for g in range(G):
                    w = curvature[g, c]
                    for j in range(p):
                        weighted[g, j] = w * Z[g, j]
                block = np.dot(Z.T, weighted)  # (p, p)
                for j in range(p):
                    for i in range(j + 1):
                        H[j * J + k, i * J + a] = block[j, i]
                        H[j * J + a, i * J + k] = block[j, i]
                c += 1
    for j in range(first, p):
        for k in range(J):
            H[j * J + k, j * J + k] += 2.0 * penalty
            for a in range(k + 1):
                H[j * J + k, j * J + a] -= 2.0 * penalty * share


@compiled_sums
def _dot(a, b, length):
    total = 0.0
    for i in range(length):
        total += a[i] * b[i]
    return total


@compiled
def _factorize(H, damping, bound, L):
    """Set L to the Cholesky factor of ``H + damping * bound``; False where there is none.

    ``bound`` is a diagonal, one number for all logits of a row of theta.
    """
    J = H.shape[0] // len(bound)
    for i in range(H.shape[0]):
        for j in range(i):
            L[i, j] = (H[i, j] - _dot(L[i], L[j], j)) / L[j, j]
        pivot = H[i, i] + damping * bound[i // J] - _dot(L[i], L[i], i)
        if not pivot > 1e-15 * H[i, i]:
            return False
        L[i, i] = math.sqrt(pivot)
    return True


@compiled
def _solve(L, x):
    """Solve ``L L^T x = x`` in place."""
    d = len(x)
    for i in range(d):
        x[i] = (x[i] - _dot(L[i], x, i)) / L[i, i]
    for i in range(d - 1, -1, -1):
        x[i] /= L[i, i]
        for j in range(i):
            x[j] -= L[i, j] * x[i]


@entry_point
def fit_path(
    Z,
    pairs,
    counts,
    test_Z,
    test_counts,
    penalties,
    share,
    first,
    tol,
    max_iter,
    reuse,
    theta,
    losses,
    steps,
):
    """Fill ``theta`` (L, p, J), the test losses (L,) and the numbers of steps (L,).

    ``theta[0]`` is the start for ``penalties[0]``; every other penalty starts where the one before
    ended. ``counts`` is (G, K), the reference class first; ``test_Z`` and ``test_counts`` have
    rows of their own. ``first`` is the first penalised row of theta.

    A Hessian serves until the logits have moved by ``reuse`` since it was formed. What a step
    leaves undone is about its own length times what they have moved; an iteration ends where that
    is below the square of ``tol``, or where rounding lets it shrink no more. ``steps`` is negative
    where ``max_iter`` steps were too few.

    Where an early step has driven all probabilities to 0 and 1, hardly any curvature is left and
    a Newton step leads astray. It is then damped by a multiple of the largest curvature that any
    probabilities could give.
    """
    n_penalties, p, J = theta.shape
    G = Z.shape[0]
    d = p * J
    total = np.zeros(G)
    for g in range(G):
        for k in range(J + 1):
            total[g] += counts[g, k]
    bound = np.full(p, 1e-300)
    for g in range(G):
        for j in range(p):
            bound[j] += 0.25 * total[g] * Z[g, j] * Z[g, j]
    prob = np.empty((G, J))
    trial_prob = np.empty((G, J))
    residual = np.empty((G, J))
    eta_step = np.empty((G, J))
    curvature = np.empty((G, J * (J + 1) // 2))
    weighted = np.empty((G, p) if pairs.shape[0] == 0 else (0, 0))
    gradient = np.empty((p, J))
    step = np.empty((p, J))
    H = np.empty((d, d))
    L = np.empty((d, d))
    current = theta[0].copy()
    eta = np.dot(Z, current)
    trial = np.empty((p, J))
    trial_eta = np.empty((G, J))
    likelihood = _evaluate(eta, counts, total, prob)
    for at in range(n_penalties):
        penalty = penalties[at]
        value = likelihood + penalty * _penalty(current, first, share)
        steps[at] = -max_iter
        moved = np.inf
        before = np.inf
        damping = 0.0
        for iteration in range(max_iter):
            _gradient(Z, counts, total, prob, current, penalty, first, share, residual, gradient)
            if moved > reuse:
                _hessian(Z, pairs, total, prob, penalty, first, share, curvature, weighted, H)
                moved = 0.0
                while not _factorize(H, damping, bound, L) and damping < 1e100:
                    damping = max(_DAMPING, 100.0 * damping)
            step[:] = gradient
            _solve(L, step.reshape(d))
            np.dot(Z, step, eta_step)
            longest = 0.0
            for g in range(G):
                for k in range(J):
                    longest = max(longest, abs(eta_step[g, k]))
            descent = 0.0
            for j in range(p):
                for k in range(J):
                    descent += gradient[j, k] * step[j, k]
            length = 1.0
            slack = 1e-13 * (abs(value) + 1.0)  # what rounding does to the two values compared
            while True:
                for g in range(G):
                    for k in range(J):
                        trial_eta[g, k] = eta[g, k] - length * eta_step[g, k]
                for j in range(p):
                    for k in range(J):
                        trial[j, k] = current[j, k] - length * step[j, k]
                trial_value = _evaluate(trial_eta, counts, total, trial_prob)
                trial_value += penalty * _penalty(trial, first, share)
                accepted = trial_value <= value - _DESCENT * length * descent + slack
                if accepted or length < _SHORTEST:
                    break
                length *= 0.5
            if accepted:
                current, trial = trial, current
                eta, trial_eta = trial_eta, eta
                prob, trial_prob = trial_prob, prob
                value = trial_value
            exact = accepted and length == 1.0 and damping == 0.0
            moved = moved + longest if exact else np.inf
            if length < _SHORT:
                damping = max(_DAMPING, 100.0 * damping)
            else:
                damping = 0.01 * damping if damping > _DAMPING else 0.0
            stalled = descent <= 10.0 * slack and longest > 0.5 * before
            if longest * moved <= tol * tol or stalled:
                steps[at] = iteration + 1
                break
            before = longest
        theta[at] = current
        likelihood = value - penalty * _penalty(current, first, share)
        losses[at] = _clipped_loss(np.dot(test_Z, current), test_counts)
