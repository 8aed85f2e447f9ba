r"""Calibration of the probabilities of many labels from few validation rows.

Each label has a slope and a shift of its own on the logits, and all of them are shrunk towards
common values, by as much as the validation rows show that labels agree (empirical Bayes).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression

from fgfm.decider._entries import Entries

__all__ = ["IsotonicCalibrator", "NoCalibrator", "ShrunkCalibrator"]

Floats = npt.NDArray[np.float64]

_EDGE = 1e-4  # probabilities are clipped to [_EDGE, 1 - _EDGE] before their logits are taken
_STEPS = 60  # alternations of a Newton step and an update of the common values
_CONVERGED = 1e-4
_HALVINGS = 12  # of a step, at most
_ROUNDING = 1e-9  # a fall of the log-posterior that may be a rounding error
_LEAST_SLOPE = 0.02
_LEAST_REST = 0.1  # of the information about a logit if a row is left out

# Priors of the common values. The slope is 1 for calibrated probabilities; the variances count as
# _PRIOR_LABELS more labels would, so that few labels do not make them 0.
_SLOPE_VARIANCE = 0.25
_TREND_VARIANCE = 0.04
_PRIOR_LABELS = 2.0
_SLOPE_SPREAD = 0.02
_SHIFT_SPREAD = 0.1


def logits(p: Floats) -> Floats:
    """Return the logits of clipped probabilities."""
    return np.asarray(logit(np.clip(p, _EDGE, 1.0 - _EDGE)))


class ShrunkCalibrator:
    r"""Calibrator with a slope and a shift per label, shrunk towards common values.

    With :math:`l_{rj}` the logit of the probability of label j in row r, centred at c,

    .. math:: q_{rj} = \sigma(a_j (l_{rj} - c) + b_j), \qquad
              a_j \sim N(a, \sigma^2), \quad b_j \sim N(b + t z_j, \tau^2),

    where :math:`z_j` is the centred logit of the mean probability of the label: rare and frequent
    labels may be wrong in different directions. The slopes and shifts are posterior modes; the
    common values and variances maximise the marginal likelihood, approximated at these modes
    (an EM algorithm with Laplace's approximation), under weak priors. A probability is the mean of
    the sigmoid over the posterior, approximated by
    :math:`\sigma(\eta / \sqrt{1 + \pi v / 8})` for a logit of mean :math:`\eta` and variance v
    (MacKay, 1992): a label that no validation row has is not taken to be impossible.

    Attributes
    ----------
    center_ : float
        The centre c.
    slopes_, shifts_ : ndarray of shape (m,)
        The slopes a_j and shifts b_j.
    slope_variances_, shift_variances_, covariances_ : ndarray of shape (m,)
        Their posterior variances and covariances.
    """

    def fit(self, entries: Entries, Y: Floats, weight: Floats) -> ShrunkCalibrator:
        """Fit slopes and shifts to validation rows.

        Parameters
        ----------
        entries : Entries
            Probabilities of n rows.
        Y : ndarray of shape (n, K)
            The true labels at these entries, 0 or 1.
        weight : ndarray of shape (n,)
            Sample weights.

        Returns
        -------
        ShrunkCalibrator
            The fitted calibrator.
        """
        m = entries.m
        w = np.broadcast_to(weight[:, None], Y.shape)
        if entries.labels is not None:
            w = w * (entries.labels < m)
        x = logits(entries.p)  # (n, K)
        self.center_ = _center(x, Y, w)
        x = x - self.center_
        mean = entries.by_label(w * entries.p) / weight.sum()
        z = logits(mean)  # (m,)
        z = z - z.mean()
        a, b, trend = 1.0, self.center_, 0.0  # the identity
        slope_variance, shift_variance = 0.05, 0.25
        slopes, shifts = np.full(m, a), np.full(m, b)

        def log_likelihood(slopes: Floats, shifts: Floats) -> Floats:
            eta = entries.of_label(slopes) * x + entries.of_label(shifts)
            return entries.by_label(w * (Y * eta - np.logaddexp(0.0, eta)))  # (m,)

        likelihood = log_likelihood(slopes, shifts)
        for _ in range(_STEPS):
            prior = b + trend * z  # (m,)
            penalty = _Penalty(a, prior, slope_variance, shift_variance)
            q = expit(entries.of_label(slopes) * x + entries.of_label(shifts))
            residual, curvature = w * (Y - q), w * q * (1.0 - q)
            slope_gradient = entries.by_label(residual * x) - (slopes - a) / slope_variance
            shift_gradient = entries.by_label(residual) - (shifts - prior) / shift_variance
            cx = curvature * x
            aa = entries.by_label(cx * x) + 1.0 / slope_variance
            bb = entries.by_label(curvature) + 1.0 / shift_variance
            ab = entries.by_label(cx)
            # A Newton step for each label: a system of two equations.
            det = aa * bb - ab * ab
            slope_step = (bb * slope_gradient - ab * shift_gradient) / det
            shift_step = (aa * shift_gradient - ab * slope_gradient) / det
            length = np.abs(slope_step) + np.abs(shift_step)
            damping = 1.0 / np.maximum(1.0, 0.5 * length)
            # Where probabilities are near 0 and 1 the curvature is nearly 0, and a step may lead
            # beyond the mode: it is shortened until the log-posterior of its label does not fall.
            before_step = likelihood - penalty(slopes, shifts)
            for _ in range(_HALVINGS):
                new_slopes = slopes + damping * slope_step
                new_shifts = shifts + damping * shift_step
                likelihood = log_likelihood(new_slopes, new_shifts)
                fell = likelihood - penalty(new_slopes, new_shifts) < before_step - _ROUNDING
                if not fell.any():
                    break
                damping = np.where(fell, 0.5 * damping, damping)
            slopes, shifts = new_slopes, new_shifts
            # The inverse of the Hessian has the posterior variances of slopes and shifts.
            before = np.array([a, b, trend, np.log(slope_variance), np.log(shift_variance)])
            a = (slopes.sum() / slope_variance + 1.0 / _SLOPE_VARIANCE) / (
                m / slope_variance + 1.0 / _SLOPE_VARIANCE
            )
            b = float((shifts - trend * z).mean())
            trend = float(z @ (shifts - b)) / (float(z @ z) + shift_variance / _TREND_VARIANCE)
            slope_variance = _variance(slopes - a, bb / det, _SLOPE_SPREAD)
            shift_variance = _variance(shifts - b - trend * z, aa / det, _SHIFT_SPREAD)
            after = np.array([a, b, trend, np.log(slope_variance), np.log(shift_variance)])
            moved = max(float(np.abs(after - before).max()), float((damping * length).max()))
            if moved < _CONVERGED:
                break
        self.slopes_ = np.maximum(slopes, _LEAST_SLOPE)
        self.shifts_ = shifts
        self.slope_variances_, self.shift_variances_, self.covariances_ = (
            bb / det,
            aa / det,
            -ab / det,
        )
        return self

    def predict(self, entries: Entries) -> Entries:
        """Return calibrated probabilities.

        Parameters
        ----------
        entries : Entries
            Probabilities.

        Returns
        -------
        Entries
            The same entries with calibrated probabilities.
        """
        return _sigmoid_mean(entries, *self._posterior(entries))

    def predict_left_out(self, entries: Entries, Y: Floats, weight: Floats) -> Entries:
        """Return calibrated probabilities of the rows of `fit` as if each had been left out.

        The posterior without one row follows from that with all by a Newton step; common values
        are kept.

        Parameters
        ----------
        entries : Entries
            Probabilities of n rows.
        Y : ndarray of shape (n, K)
            The true labels at these entries, 0 or 1.
        weight : ndarray of shape (n,)
            Sample weights; of a weight above 1, which is a row several times, 1 is left out.

        Returns
        -------
        Entries
            The same entries with calibrated probabilities.
        """
        eta, variance = self._posterior(entries)
        q = expit(eta)
        removed = np.minimum(weight, 1.0)[:, None] * variance
        rest = np.maximum(1.0 - removed * q * (1.0 - q), _LEAST_REST)
        return _sigmoid_mean(entries, eta - removed * (Y - q) / rest, variance / rest)

    def _posterior(self, entries: Entries) -> tuple[Floats, Floats]:
        """Return the mean and the variance of the logit of each entry, both (n, K)."""
        x = logits(entries.p) - self.center_
        eta = entries.of_label(self.slopes_) * x + entries.of_label(self.shifts_)
        variance = (
            entries.of_label(self.slope_variances_) * x * x
            + 2.0 * entries.of_label(self.covariances_) * x
            + entries.of_label(self.shift_variances_)
        )
        return eta, variance


def _sigmoid_mean(entries: Entries, eta: Floats, variance: Floats) -> Entries:
    """Return the entries with the mean of the sigmoid of normal logits."""
    return entries.with_p(np.asarray(expit(eta / np.sqrt(1.0 + np.pi / 8.0 * variance))))


class _Penalty(NamedTuple):
    """Minus the logarithm of the prior density of slopes and shifts, up to a constant."""

    slope: float
    shifts: Floats  # (m,)
    slope_variance: float
    shift_variance: float

    def __call__(self, slopes: Floats, shifts: Floats) -> Floats:
        return 0.5 * (
            (slopes - self.slope) ** 2 / self.slope_variance
            + (shifts - self.shifts) ** 2 / self.shift_variance
        )


def _center(x: Floats, Y: Floats, w: Floats) -> float:
    """Return the middle between the mean logits of absent and of present labels.

    Slopes and shifts about this centre are nearly uncorrelated.
    """
    present, absent = w * Y, w * (1.0 - Y)
    means = [float((part * x).sum()) / max(1.0, float(part.sum())) for part in (present, absent)]
    return 0.5 * (means[0] + means[1])


def _variance(deviations: Floats, posterior: Floats, spread: float) -> float:
    """Return the variance of a parameter over labels: the M step, with its prior."""
    total = float((deviations**2 + posterior).sum()) + _PRIOR_LABELS * spread
    return total / (len(deviations) + _PRIOR_LABELS)


class IsotonicCalibrator:
    """Calibrator with an isotonic regression per label, for thousands of validation rows.

    Attributes
    ----------
    regressors_ : list of IsotonicRegression or None
        One per label; None for a label without stored entries, which stays as it is.
    margin_ : float
        Calibrated probabilities keep this distance from 0 and 1.
    """

    def fit(self, entries: Entries, Y: Floats, weight: Floats) -> IsotonicCalibrator:
        """Fit the regressions to validation rows.

        Parameters
        ----------
        entries : Entries
            Probabilities of n rows.
        Y : ndarray of shape (n, K)
            The true labels at these entries, 0 or 1.
        weight : ndarray of shape (n,)
            Sample weights.

        Returns
        -------
        IsotonicCalibrator
            The fitted calibrator.
        """
        self.margin_ = 1.0 / (float(weight.sum()) + 2.0)
        self.regressors_: list[Any] = []
        w = np.broadcast_to(weight[:, None], Y.shape)
        for place in _places(entries):
            known = bool((w[place] > 0.0).any())
            regressor = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
            self.regressors_.append(
                regressor.fit(entries.p[place], Y[place], sample_weight=w[place])
                if known
                else None
            )
        return self

    def predict(self, entries: Entries) -> Entries:
        """Return calibrated probabilities.

        Parameters
        ----------
        entries : Entries
            Probabilities.

        Returns
        -------
        Entries
            The same entries with calibrated probabilities.
        """
        q = entries.p.copy()
        for place, regressor in zip(_places(entries), self.regressors_, strict=True):
            if regressor is not None and entries.p[place].size:
                q[place] = regressor.predict(entries.p[place])
        return entries.with_p(np.clip(q, self.margin_, 1.0 - self.margin_))


def _places(entries: Entries) -> list[Any]:
    """Return, for each label, the index of its entries."""
    if entries.labels is None:
        return [(slice(None), j) for j in range(entries.m)]
    flat = entries.labels.ravel()
    order = np.argsort(flat, kind="stable")
    bounds = np.searchsorted(flat[order], np.arange(entries.m + 1))
    K = entries.labels.shape[1]
    return [divmod(order[i:j], K) for i, j in pairwise(bounds)]


class NoCalibrator:
    """Probabilities as they are, kept away from 0 and 1 by a rounding error."""

    def fit(self, entries: Entries, Y: Floats, weight: Floats) -> NoCalibrator:
        """Fit nothing.

        Parameters
        ----------
        entries : Entries
            Probabilities; not used.
        Y : ndarray of shape (n, K)
            Not used.
        weight : ndarray of shape (n,)
            Not used.

        Returns
        -------
        NoCalibrator
            The calibrator itself.
        """
        return self

    def predict(self, entries: Entries) -> Entries:
        """Return the probabilities.

        Parameters
        ----------
        entries : Entries
            Probabilities.

        Returns
        -------
        Entries
            The same entries.
        """
        return entries.with_p(np.clip(entries.p, 1e-12, 1.0 - 1e-12))
