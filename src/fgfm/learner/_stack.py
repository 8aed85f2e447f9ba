"""Stack of several predictions of many labels, learned from held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_expit

from fgfm._utils.blocks import slices

__all__ = ["MarginalStack"]

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]

_SHIFT_VARIANCE = 1.0  # of the shifts of labels about a common one
_PRIOR_WEIGHT, _PRIOR_SHIFT = 10.0, 0.3  # precisions of a label's weights and shift
_PRIOR_LINK = 5.0  # precision of the calibration about the identity
_STEPS = 40
_CONVERGED = 1e-5
_CELLS = 10_000_000  # of labels and rows that the shared weights are fitted to, at most
_EDGE = 1e-5  # of probabilities in the log-loss
_ROWS = 4096  # that are predicted at the same time
_LABELS = 64  # whose predictions exist in double precision at the same time


class MarginalStack:
    r"""Logistic regression of each label on the predictions of J parts.

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

    def fit(self, parts: Sequence[Singles], Y: Singles, weight: Floats) -> MarginalStack:
        """Fit to held-out predictions.

        Parameters
        ----------
        parts : sequence of ndarray of shape (n, m)
            The predictions of each part, as logits; NaN in rows that it did not hold out.
        Y : ndarray of shape (n, m)
            Labels, 0 or 1, or NaN where a label is not known.
        weight : ndarray of shape (n,)
            Sample weights.

        Returns
        -------
        MarginalStack
            The fitted stack.
        """
        some = slice(None, None, -(-Y.size // _CELLS))  # every k-th row
        F, known_Y, W = _known([part[some] for part in parts], Y[some], weight[some])
        self.shared, common = _fit_shared(F, known_Y, W)
        fits = []
        for start in range(0, Y.shape[1], _LABELS):
            at = slice(start, start + _LABELS)
            F, known_Y, W = _known([part[:, at] for part in parts], Y[:, at], weight)
            for i, shift in enumerate(common[at]):
                prior = np.append(self.shared, shift)
                X = np.vstack([F[:, :, i], np.ones(len(Y))])  # (J + 1, n)
                precision = np.append(np.full(len(parts), _PRIOR_WEIGHT), _PRIOR_SHIFT)
                fits.append(_fit_logistic(X, known_Y[:, i], W[:, i], prior, precision))
        coef = np.stack(fits, axis=1)  # (J + 1, m)
        self.weights, self.shifts = coef[:-1], coef[-1]
        F, known_Y, W = _known([part[some] for part in parts], Y[some], weight[some])
        z = self._logits(F).ravel()
        X = np.stack([log_expit(z), -log_expit(-z), np.ones(len(z))])  # (3, n m)
        identity, precision = np.array([1.0, 1.0, 0.0]), np.full(3, _PRIOR_LINK)
        self.link = _fit_logistic(X, known_Y.ravel(), W.ravel(), identity, precision)
        return self

    def predict(self, parts: Sequence[Singles]) -> Floats:
        """Return the probabilities (n, m) from the predictions (n, m) of the parts."""
        p = np.empty(parts[0].shape)
        a, b, c = self.link
        for rows in slices(len(p), _ROWS):
            z = self._logits([part[rows] for part in parts])
            p[rows] = expit(a * log_expit(z) - b * log_expit(-z) + c)
        return p

    def log_loss(self, parts: Sequence[Singles], Y: Singles, weight: Floats) -> float:
        """Return the sum of the log-loss over all rows and labels that are known."""
        loss = 0.0
        for rows in slices(len(Y), _ROWS):
            p = np.clip(self.predict([part[rows] for part in parts]), _EDGE, 1.0 - _EDGE)
            likelihood = np.where(Y[rows] == 1.0, p, 1.0 - p)
            terms = np.where(np.isnan(Y[rows]), np.nan, np.log(likelihood))
            loss -= float(np.nansum(weight[rows, None] * terms))
        return loss

    def _logits(self, F: Any) -> Floats:
        logits = np.tile(self.shifts, (len(F[0]), 1))
        for weights, f in zip(self.weights, F, strict=True):  # in this order for any block of rows
            logits += weights * f
        return logits


def _known(parts: Sequence[Singles], Y: Singles, weight: Floats) -> tuple[Floats, Floats, Floats]:
    """Return predictions, labels and weights; 0 where a label or a prediction is not known."""
    F = np.stack([part.astype(np.float64) for part in parts])  # (J, n, m)
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


def _fit_logistic(X: Floats, y: Floats, w: Floats, prior: Floats, precision: Floats) -> Floats:
    """Return the logistic regression on the rows of X (K, n), with a ridge penalty about a prior.

    All coefficients but the last, the intercept, are at least 0.
    """
    intercept = np.arange(len(prior)) == len(prior) - 1

    def at(theta: Floats) -> tuple[Floats, float]:
        """Return the probabilities (n,) and the penalised loss."""
        t = theta @ X
        e = np.exp(-np.abs(t))
        loss = np.maximum(t, 0.0) + np.log1p(e) - y * t
        q = np.where(t < 0.0, e, 1.0) / (1.0 + e)
        return q, float(w @ loss + 0.5 * precision @ (theta - prior) ** 2)

    theta = prior
    q, value = at(theta)
    for _ in range(_STEPS):
        gradient = X @ (w * (y - q)) - precision * (theta - prior)
        hessian = (X * (w * q * (1.0 - q))) @ X.T + np.diag(precision)
        # Coefficients that are 0 and would fall are fixed there.
        free = (theta > 0.0) | (gradient > 0.0) | intercept
        step = np.zeros(len(prior))
        step[free] = np.linalg.solve(hessian[np.ix_(free, free)], gradient[free])
        for size in 0.5 ** np.arange(20):  # far from the solution a full step may be too long
            new = theta + size * step
            new = np.where(intercept, new, np.maximum(new, 0.0))
            new_q, new_value = at(new)
            if new_value <= value:
                break
        else:
            return theta
        moved, theta, q, value = np.abs(new - theta).max(), new, new_q, new_value
        if moved < _CONVERGED:
            break
    return theta
