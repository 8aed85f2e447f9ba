"""Stack of several predictions of many binary labels, learned from held-out rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_expit

__all__ = ["MarginalStack"]

Floats = npt.NDArray[np.float64]

_SHIFT_VARIANCE = 1.0  # of the shifts of labels about a common one
_PRIOR_WEIGHT, _PRIOR_SHIFT = 10.0, 0.3  # precisions of a label's weights and shift
_PRIOR_LINK = 5.0  # precision of the calibration about the identity
_STEPS = 40
_CONVERGED = 1e-5
_CELLS = 10_000_000  # of labels and rows that the shared weights are fitted to, at most
_LABELS = 64  # whose predictions exist in double precision at the same time

Logits = Callable[[slice, slice], Floats]  # (rows, labels) to predictions (J, n, m)


class MarginalStack:
    r"""Logistic regression of each label on the predictions of J learners.

    .. math:: \operatorname{logit} p_i = \sum_j a_{ij} f_{ij} + b_i, \qquad a_{ij} \ge 0.

    First all labels share the weights, and their shifts are shrunk to a common one; then each
    label is fitted with a ridge penalty on the distance from this solution. Last, all labels share
    a beta calibration of these probabilities (Kull, Silva Filho and Flach, 2017),

    .. math:: \operatorname{logit} q_i = c_1 \log p_i - c_2 \log(1 - p_i) + c_3:

    features may prove a label but never exclude it, and a sigmoid has the same slope at both ends.

    Attributes
    ----------
    shared : ndarray of shape (J,)
        The shared weights.
    weights : ndarray of shape (J, m)
        The weights a of each label.
    shifts : ndarray of shape (m,)
        The shifts b.
    link : ndarray of shape (3,)
        The coefficients c of the calibration.
    """

    def fit(self, logits: Logits, Y: npt.NDArray[Any], weight: Floats) -> MarginalStack:
        """Fit to held-out predictions.

        Parameters
        ----------
        logits : callable
            Returns the predictions (J, n, m) of some rows and labels, as logits; NaN in rows that
            no learner held out.
        Y : ndarray of shape (n, m)
            Labels, 0 or 1, or NaN where a label is not known.
        weight : ndarray of shape (n,)
            Sample weights.

        Returns
        -------
        MarginalStack
            The fitted stack.
        """
        m = Y.shape[1]
        some = slice(None, None, -(-Y.size // _CELLS))  # every k-th row
        F, known_Y, W = _known(logits(some, slice(None)), Y[some], weight[some])
        self.shared, common = _fit_shared(F, known_Y, W)
        fits = []
        for start in range(0, m, _LABELS):
            at = slice(start, start + _LABELS)
            F, known_Y, W = _known(logits(slice(None), at), Y[:, at], weight)
            fits += [
                _fit_label(F[:, :, i], known_Y[:, i], W[:, i], self.shared, common[start + i])
                for i in range(F.shape[2])
            ]
        self.weights = np.stack([a for a, _ in fits], axis=1)
        self.shifts = np.array([b for _, b in fits])
        F, known_Y, W = _known(logits(some, slice(None)), Y[some], weight[some])
        self.link = _fit_link(self._logits(F), known_Y, W)
        return self

    def predict(self, F: Floats) -> Floats:
        """Return the probabilities (n, m) from the predictions (J, n, m) of the learners."""
        z = self._logits(F)
        a, b, c = self.link
        return np.asarray(expit(a * log_expit(z) - b * log_expit(-z) + c))

    def _logits(self, F: Floats) -> Floats:
        logits = np.tile(self.shifts, (F.shape[1], 1))
        for weights, f in zip(self.weights, F, strict=True):  # in this order for any block of rows
            logits += weights * f
        return logits


def _known(F: Floats, Y: npt.NDArray[Any], weight: Floats) -> tuple[Floats, Floats, Floats]:
    """Return predictions, labels and weights; 0 where a label or a prediction is not known."""
    known = ~np.isnan(Y) & ~np.isnan(F).any(axis=0)  # (n, m)
    return (
        np.where(known, F, 0.0),
        np.where(known, Y, 0.0).astype(np.float64),
        np.where(known, weight[:, None], 0.0),
    )


def _fit_shared(F: Floats, Y: Floats, W: Floats) -> tuple[Floats, Floats]:
    """Return shared weights (J,) >= 0 and a shift (m,) per label, shrunk to their mean.

    Newton steps for all parameters; the Hessian of the shifts is diagonal and is eliminated.
    """
    J, _, m = F.shape
    a, b = np.full(J, 1.0 / J), np.zeros(m)
    for _ in range(_STEPS):
        q = expit(np.tensordot(a, F, axes=1) + b)
        residual, curvature = W * (Y - q), W * q * (1.0 - q)
        shift_hessian = curvature.sum(axis=0) + 1.0 / _SHIFT_VARIANCE  # (m,)
        shift_gradient = residual.sum(axis=0) - (b - b.mean()) / _SHIFT_VARIANCE
        gradient = np.array([float((residual * f).sum()) for f in F])
        cross = np.stack([(curvature * f).sum(axis=0) for f in F])  # (J, m)
        hessian = np.array([[float((curvature * f * g).sum()) for g in F] for f in F])
        reduced = hessian - (cross / shift_hessian) @ cross.T + 1e-6 * np.eye(J)
        target = gradient - cross @ (shift_gradient / shift_hessian)
        step = _step(a, reduced, target)
        shift_step = (shift_gradient - cross.T @ step) / shift_hessian
        a = a + step
        b = b + np.clip(shift_step, -2.0, 2.0)
        if max(np.abs(step).max(), np.abs(shift_step).max()) < _CONVERGED:
            break
    return a, b


def _fit_link(z: Floats, Y: Floats, W: Floats) -> Floats:
    """Return the calibration (3,) of logits (n, m), with a ridge penalty about the identity."""
    identity = np.array([1.0, 1.0, 0.0])
    X = np.stack([log_expit(z).ravel(), -log_expit(-z).ravel(), np.ones(z.size)])  # (3, n m)
    y, w = Y.ravel(), W.ravel()

    def loss(link: Floats) -> float:
        t = link @ X
        distance = float(((link - identity) ** 2).sum())
        return float(w @ (np.logaddexp(0.0, t) - y * t)) + 0.5 * _PRIOR_LINK * distance

    link, value = identity, loss(identity)
    for _ in range(_STEPS):
        q = expit(link @ X)
        gradient = X @ (w * (y - q)) - _PRIOR_LINK * (link - identity)
        hessian = (X * (w * q * (1.0 - q))) @ X.T + _PRIOR_LINK * np.eye(3)
        # Slopes that are 0 and would fall are fixed there: the calibration is monotone.
        free = (link > 0.0) | (gradient > 0.0) | [False, False, True]
        step = np.zeros(3)
        step[free] = np.linalg.solve(hessian[np.ix_(free, free)], gradient[free])
        for size in 0.5 ** np.arange(20):  # far from the solution a full step may be too long
            new = link + size * step
            new[:2] = np.maximum(new[:2], 0.0)
            if (new_value := loss(new)) <= value:
                break
        else:
            return link
        moved, link, value = np.abs(new - link).max(), new, new_value
        if moved < _CONVERGED:
            break
    return link


def _step(a: Floats, hessian: Floats, gradient: Floats) -> Floats:
    """Return a damped Newton step that keeps a >= 0, weights that would be negative fixed at 0."""
    free = np.ones(len(a), dtype=np.bool_)
    while True:
        step = -a.copy()  # fixed weights go to 0
        right = gradient[free] - hessian[np.ix_(free, ~free)] @ step[~free]
        step[free] = np.linalg.solve(hessian[np.ix_(free, free)], right)
        step[free] = np.clip(step[free], -1.0, 1.0)
        negative = free & (a + step < 0.0)
        if not negative.any():
            return step
        free &= ~negative
        if not free.any():
            return -a


def _fit_label(
    F: Floats, y: Floats, w: Floats, a_prior: Floats, b_prior: float
) -> tuple[Floats, float]:
    """Return weights (J,) >= 0 and shift of one label, with a ridge penalty about the prior.

    Where a weight is negative it is fixed at 0, and the others are fitted again.
    """
    J = len(F)
    X = np.vstack([F, np.ones(F.shape[1])])  # (J + 1, n)
    prior = np.append(a_prior, b_prior)
    precision = np.append(np.full(J, _PRIOR_WEIGHT), _PRIOR_SHIFT)
    theta = prior.copy()
    free = np.ones(J + 1, dtype=np.bool_)
    while True:
        for _ in range(_STEPS):
            q = expit(theta @ X)
            gradient = X[free] @ (w * (y - q)) - (precision * (theta - prior))[free]
            hessian = (X[free] * (w * q * (1.0 - q))) @ X[free].T + np.diag(precision[free])
            step = np.linalg.solve(hessian, gradient)
            step *= min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-300))
            theta[free] += step
            if np.abs(step).max() < _CONVERGED:
                break
        negative = free & (theta < 0.0)
        negative[-1] = False
        if not negative.any():
            return theta[:-1], float(theta[-1])
        free &= ~negative
        theta[negative] = 0.0
