"""Ridge-penalised multinomial logistic regression along a path of penalties, by Newton's method.

Equal rows form a group. With logits ``eta = Z theta`` (G, J) relative to the reference class,
whose logit is 0, and N[g, k] the weight of class k in group g, minimise for each penalty in turn

    - sum_gk N[g, k] log p_k(eta_g) + penalty * sum_j (|theta_j|^2 - share * (sum_k theta_jk)^2)

where j runs over the penalised rows of theta. ``share = 1 / K`` is scikit-learn's symmetric
softmax: adding a constant to the weights of all K classes changes no probability, and the penalty
is the sum of their squares at the best constant, with the reference class eliminated.
``share = 0`` penalises the distance to the reference class.

The first column of Z is the constant. It is the first pivot of the Cholesky factor: all later
pivots are then at least the penalty, even if the data are separable and every probability is
almost 0 or 1.
"""

from __future__ import annotations

import math

import numpy as np

from fgfm._kernels._compile import compiled, compiled_sums, entry_point

__all__ = ["fit_path"]

_CLIP = 1e-15  # probabilities are clipped to [_CLIP, 1 - _CLIP] in test losses
_DESCENT = 1e-4  # the fraction of the predicted descent that a step must achieve (Armijo)
_SHORT = 0.1  # after a step cut to less than this fraction of a full one, the next is damped
_SHORTEST = 1e-6  # the shortest fraction of a step that is tried
_DAMPING = 1e-6  # the first damping factor tried; each next one is a hundred times larger


@compiled
def _evaluate(eta, counts, total, prob):
    """Set the probabilities of all classes but the reference; return the negative log-likelihood.

    `eta` and `prob` are (G, J), `counts` is (G, J + 1), the reference class first, and `total`
    (G,) its row sums.
    """
    G, J = eta.shape
    loss = 0.0
    if J == 1:
        for g in range(G):
            u = eta[g, 0]
            e = math.exp(-abs(u))
            prob[g, 0] = 1.0 / (1.0 + e) if u >= 0.0 else e / (1.0 + e)
            # log(1 + exp(u)) = max(u, 0) + log(1 + e): no cancellation where the row is certain
            linear = counts[g, 0] * u if u >= 0.0 else -counts[g, 1] * u
            loss += linear + total[g] * math.log1p(e)
        return loss
    for g in range(G):
        top = 0.0  # the largest logit, the reference class included: no exponential overflows
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
    """Return the negative log-likelihood with all probabilities clipped."""
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
    """Return the penalised squares of theta, without its rows before `first`."""
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
    """Fill the gradient (p, J) with respect to theta; `residual` (G, J) is scratch space."""
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
    """Fill the lower triangle of the Hessian H; theta_jk has the index ``j * J + k``.

    `pairs` (G, p (p + 1) / 2) contains the products of all pairs of columns of Z, or is empty if
    that would take too much memory. `curvature` and `weighted` are scratch space.
    """
    G, J = prob.shape
    p = Z.shape[1]
    # curvature[g, (k, a)] = N_g (p_k [k = a] - p_k p_a), the Hessian of the loss in the logits
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
    """Return the scalar product of the first `length` elements."""
    total = 0.0
    for i in range(length):
        total += a[i] * b[i]
    return total


@compiled
def _factorize(H, damping, bound, L):
    """Set L to the Cholesky factor of ``H + damping * bound``; return False if there is none.

    `bound` (p,) is a diagonal matrix, with one number for all logits of a row of theta.
    """
    J = H.shape[0] // len(bound)
    for i in range(H.shape[0]):
        for j in range(i):
            L[i, j] = (H[i, j] - _dot(L[i], L[j], j)) / L[j, j]
        pivot = H[i, i] + damping * bound[i // J] - _dot(L[i], L[i], i)
        if not pivot > 1e-15 * H[i, i]:  # not positive beyond rounding errors, or NaN
            return False
        L[i, i] = math.sqrt(pivot)
    return True


@compiled
def _solve(L, x):
    """Replace the right-hand side x by the solution of ``L L^T y = x``."""
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
    """Fill `theta` (L, p, J), the test losses (L,) and the numbers of steps (L,).

    ``theta[0]`` is the start for ``penalties[0]``; every other penalty starts from the previous
    solution. `counts` is (G, K), the reference class first; `test_Z` and `test_counts` are the
    groups of the test rows. `first` is the first penalised row of theta.

    A Hessian is reused until the logits have moved by `reuse` since it was computed. The error
    after a step is about the length of the step times that distance; the iteration ends when this
    is below the square of `tol`, or when rounding errors keep it from decreasing. `steps` is
    negative where `max_iter` steps did not suffice.

    If an early step has driven all probabilities to 0 and 1, there is hardly any curvature and a
    Newton step is useless. It is then damped by a multiple of the largest curvature that any
    probabilities could have.
    """
    n_penalties, p, J = theta.shape
    G = Z.shape[0]
    d = p * J
    total = np.zeros(G)
    for g in range(G):
        for k in range(J + 1):
            total[g] += counts[g, k]
    bound = np.full(p, 1e-300)  # on the diagonal of the Hessian, since p (1 - p) <= 1/4
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
    for t in range(n_penalties):
        penalty = penalties[t]
        value = likelihood + penalty * _penalty(current, first, share)
        steps[t] = -max_iter
        moved = np.inf  # how far the logits have moved since the Hessian was computed
        previous_longest = np.inf
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
            longest = 0.0  # the largest change of a logit
            for g in range(G):
                for k in range(J):
                    longest = max(longest, abs(eta_step[g, k]))
            descent = 0.0
            for j in range(p):
                for k in range(J):
                    descent += gradient[j, k] * step[j, k]
            length = 1.0
            slack = 1e-13 * (abs(value) + 1.0)  # rounding error of the two values compared
            while True:  # halve the step until the value decreases enough
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
            moved = moved + longest if exact else np.inf  # inf: compute the Hessian anew
            if length < _SHORT:
                damping = max(_DAMPING, 100.0 * damping)
            else:
                damping = 0.01 * damping if damping > _DAMPING else 0.0
            stalled = descent <= 10.0 * slack and longest > 0.5 * previous_longest
            if longest * moved <= tol * tol or stalled:
                steps[t] = iteration + 1
                break
            previous_longest = longest
        theta[t] = current
        likelihood = value - penalty * _penalty(current, first, share)
        losses[t] = _clipped_loss(np.dot(test_Z, current), test_counts)
