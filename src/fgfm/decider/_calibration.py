"""Calibrators of the probabilities of many labels, from validation rows.

A calibrator has ``fit(entries, Y, weight)`` and ``predict(entries)``. A new one is a class here
and a line in `CALIBRATORS`; one with ``predict_left_out`` also gives the probabilities of the
rows of `fit` as if each had been left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.isotonic import IsotonicRegression

from fgfm._kernels import logistic_sums
from fgfm.decider._entries import Entries
from fgfm.decider._quantiles import Quantiles, label_places, quantile_candidates

__all__ = [
    "CALIBRATORS",
    "IsotonicCalibrator",
    "NoCalibrator",
    "ScoreCalibrator",
    "ShrunkCalibrator",
    "half_step",
    "make_calibrator",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
T = TypeVar("T")

_SMALLEST = 1e-300

# Constants of `ShrunkCalibrator`.
_EDGE, _MOST_EDGE = 1e-4, 0.25  # distances from 0 and 1 that probabilities are clipped to
_LOWEST = 0.01  # share of the probabilities that count as the smallest ones
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
_BEND_VARIANCE = 0.04
_BEND_STEP = 0.25  # at most
_PRIOR_LABELS = 2.0
_SLOPE_SPREAD = 0.02
_SHIFT_SPREAD = 0.1
# Constants of `ScoreCalibrator`.
_TAILS = 1e-4, 0.02, 0.1, 0.4, 1.0, 3.0
_GAIN = 1.0  # in log-likelihood, for a reading that is less simple
_CHOICE = 300_000  # entries that it is chosen on, at most


class ShrunkCalibrator:
    r"""Calibrator with a slope and a shift per label, shrunk towards common values.

    With :math:`l_{rj}` the logit of the probability :math:`p_{rj}` of label j in row r,

    .. math:: q_{rj} &= \sigma\bigl(a_j (l_{rj} - c) + b_j + d \log(p_{rj} (1 - p_{rj}))\bigr), \\
              a_j &\sim N(a, \sigma^2), \quad b_j \sim N(b + t z_j, \tau^2), \quad
              d \sim N(0, 0.2^2),

    where :math:`z_j` is the centred logit of the mean probability of the label: rare and frequent
    labels may be wrong in different directions. The bend d, which all labels share, makes the
    slopes of log p and of -log(1 - p) differ: :math:`a_j + d` and :math:`a_j - d` (beta
    calibration; Kull, Silva Filho and Flach, 2017). Where forests and neighbours give
    probabilities of exactly 0, these count as half of the smallest others, and likewise those of
    1.

    The slopes and shifts are posterior modes; the common values and variances maximise the
    marginal likelihood, approximated at these modes (an EM algorithm with Laplace's
    approximation), under weak priors (empirical Bayes): labels are shrunk by as much as the rows
    show that they agree. A probability is the mean of the sigmoid over the posterior,
    approximated by
    :math:`\sigma(\eta / \sqrt{1 + \pi v / 8})` for a logit of mean :math:`\eta` and variance v
    (MacKay, 1992): a label that no row has is not taken to be impossible.

    Attributes
    ----------
    edges_ : tuple of two floats
        The least and the largest probability; others are clipped to them.
    center_ : float
        The centre c.
    bend_ : float
        The bend d.
    slopes_, shifts_ : ndarray of shape (m,)
        The slopes a_j and shifts b_j.
    slope_variances_, shift_variances_, covariances_ : ndarray of shape (m,)
        Their posterior variances and covariances.
    """

    def fit(self, entries: Entries, Y: Floats, weight: Floats) -> ShrunkCalibrator:
        """Fit slopes and shifts to probabilities of n rows and the truth (n, K), 0 or 1.

        Weights are those of rows, or of entries (n, m).
        """
        w = _stored_weights(entries, Y, weight)
        stored = w > 0.0
        self.edges_ = (
            half_step(entries.p[stored], w[stored]),
            1.0 - half_step(1.0 - entries.p[stored], w[stored]),
        )
        x, v = self._features(entries.p)  # (n, K) each
        self.center_ = _center(x, Y, w)
        x = x - self.center_
        # Without its linear part in x the bend hardly depends on slopes and shifts: its Newton
        # steps alternate with theirs.
        level, tilt = _line(x, v, w * np.exp(v))  # exp(v) = p (1 - p)
        v = v - (level + tilt * x)
        rows = _LogisticRows(entries.labels, x, v, Y, np.ascontiguousarray(w))
        mass = np.maximum(weight.sum(axis=0), _SMALLEST)
        z = self._features(entries.by_label(w * entries.p) / mass)[0]  # (m,)
        z = z - z.mean()
        common = _Common(1.0, self.center_, 0.0, 0.05, 0.25)  # the identity
        slopes, shifts = np.full(entries.m, common.slope), np.full(entries.m, common.shift)
        bend, sums = 0.0, rows.sums(slopes, shifts, 0.0)
        for _ in range(_STEPS):
            bend_step = sums.bend_step(bend)
            bend += bend_step
            sums = rows.sums(slopes, shifts, bend)
            step = sums.newton_step(slopes, shifts, common, z)
            length = np.abs(step.slopes) + np.abs(step.shifts)
            damping = 1.0 / np.maximum(1.0, 0.5 * length)
            # Where probabilities are near 0 and 1 the curvature is nearly 0, and a step may lead
            # beyond the mode: it is shortened until the log-posterior of its label does not fall.
            before = sums.likelihood - common.penalty(slopes, shifts, z)
            for _ in range(_HALVINGS):
                new_slopes = slopes + damping * step.slopes
                new_shifts = shifts + damping * step.shifts
                sums = rows.sums(new_slopes, new_shifts, bend)
                after = sums.likelihood - common.penalty(new_slopes, new_shifts, z)
                fell = after < before - _ROUNDING
                if not fell.any():
                    break
                damping = np.where(fell, 0.5 * damping, damping)
            slopes, shifts = new_slopes, new_shifts
            updated = common.update(slopes, shifts, step, z)
            moved = max(updated.distance(common), float((damping * length).max()), abs(bend_step))
            common = updated
            if moved < _CONVERGED:
                break
        self.bend_ = bend
        # Both the slope of log p and that of -log(1 - p) are positive.
        self.slopes_ = np.maximum(slopes - self.bend_ * tilt, abs(self.bend_) + _LEAST_SLOPE)
        self.shifts_ = shifts - self.bend_ * level
        self.slope_variances_ = step.slope_variances
        self.shift_variances_ = step.shift_variances
        self.covariances_ = step.covariances
        return self

    def predict(self, entries: Entries) -> Entries:
        """Return the same entries with calibrated probabilities."""
        return _sigmoid_mean(entries, *self._posterior(entries))

    def predict_left_out(self, entries: Entries, Y: Floats, weight: Floats) -> Entries:
        """Return calibrated probabilities of the rows of `fit` as if each had been left out.

        The posterior without one row follows from that with all by a Newton step; common values
        are kept. Of a weight above 1, which is a row several times, 1 is left out.
        """
        eta, variance = self._posterior(entries)
        q = _sigmoid(eta)
        removed = _entry_weights(np.minimum(weight, 1.0), Y) * variance
        rest = np.maximum(1.0 - removed * q * (1.0 - q), _LEAST_REST)
        return _sigmoid_mean(entries, eta - removed * (Y - q) / rest, variance / rest)

    def _posterior(self, entries: Entries) -> tuple[Floats, Floats]:
        """Return the mean and the variance of the logit of each entry, both (n, K)."""
        x, v = self._features(entries.p)
        x = x - self.center_
        eta = entries.of_label(self.slopes_) * x + entries.of_label(self.shifts_) + self.bend_ * v
        variance = (
            entries.of_label(self.slope_variances_) * x * x
            + 2.0 * entries.of_label(self.covariances_) * x
            + entries.of_label(self.shift_variances_)
        )
        return eta, variance

    def _features(self, p: Floats) -> tuple[Floats, Floats]:
        """Return the difference and the sum of log p and log(1 - p), p clipped."""
        p = np.clip(p, *self.edges_)
        present, absent = np.log(p), np.log1p(-p)
        return present - absent, present + absent


class ScoreCalibrator(ShrunkCalibrator):
    r"""`ShrunkCalibrator` of scores: real numbers of any unit, higher for more probable labels.

    In place of the probability it has

    .. math:: p_{rj} = \frac{u_{rj} + e_0}{1 + e_0 + e_1},

    with :math:`u_{rj}` the quantile of the score among validation rows, which a change of unit and
    offset does not move, and a monotone change of scores hardly. Whether labels share unit and
    offset, as logits of one network do, or only the shape of their distributions, or nothing; and
    the tails e, which are large if the ends of the distributions tell little: that is chosen by
    the likelihood of left-out rows.

    Attributes
    ----------
    quantiles_ : Quantiles
        Maps scores to p.
    """

    def fit(self, entries: Entries, Y: Floats, weight: Floats) -> ScoreCalibrator:
        """Fit to scores of n rows and the truth (n, K), 0 or 1."""
        rows = slice(None, None, -(-Y.size // _CHOICE))
        some = entries.take(rows), Y[rows], weight[rows]
        candidates = quantile_candidates(entries, _stored_weights(entries, Y, weight))
        reading = _most_likely(candidates, lambda c: c.with_tails(*_TAILS[:1] * 2), some)
        low = _most_likely(_TAILS, lambda tail: reading.with_tails(tail, _TAILS[0]), some)
        high = _most_likely(_TAILS, lambda tail: reading.with_tails(low, tail), some)
        self.quantiles_ = reading.with_tails(low, high)
        super().fit(self.quantiles_.read(entries), Y, weight)
        return self

    def _posterior(self, entries: Entries) -> tuple[Floats, Floats]:
        return super()._posterior(self.quantiles_.read(entries))


def _most_likely(choices: Sequence[T], quantiles: Callable[[T], Quantiles], rows: Any) -> T:
    """Return the choice with the largest likelihood of left-out rows, the first if in doubt."""
    best, reached = choices[0], -np.inf
    entries, Y, weight = rows
    for choice in choices:
        read = quantiles(choice).read(entries)
        q = ShrunkCalibrator().fit(read, Y, weight).predict_left_out(read, Y, weight).p
        w = _stored_weights(entries, Y, weight)
        truth = np.maximum(np.where(Y > 0.0, q, 1.0 - q), _SMALLEST)
        likelihood = float((w * np.log(truth)).sum())
        if likelihood > reached + _GAIN:
            best, reached = choice, likelihood
    return best


def _sigmoid_mean(entries: Entries, eta: Floats, variance: Floats) -> Entries:
    """Return the entries with the mean of the sigmoid of normal logits."""
    return entries.with_p(_sigmoid(eta / np.sqrt(1.0 + np.pi / 8.0 * variance)))


def _sigmoid(x: Floats) -> Floats:
    """Return the sigmoid; several numbers at a time, unlike scipy's `expit`."""
    return np.asarray(1.0 / (1.0 + np.exp(np.minimum(-x, 700.0))))


class _Step(NamedTuple):
    """A Newton step of each label, and the inverse of its Hessian: the posterior variances."""

    slopes: Floats  # (m,)
    shifts: Floats
    slope_variances: Floats
    shift_variances: Floats
    covariances: Floats


class _Common(NamedTuple):
    """The values that labels share: means and variances of slopes and shifts."""

    slope: float
    shift: float
    trend: float
    slope_variance: float
    shift_variance: float

    def penalty(self, slopes: Floats, shifts: Floats, z: Floats) -> Floats:
        """Return minus the logarithm of the prior density (m,), up to a constant."""
        return 0.5 * (
            (slopes - self.slope) ** 2 / self.slope_variance
            + (shifts - (self.shift + self.trend * z)) ** 2 / self.shift_variance
        )

    def update(self, slopes: Floats, shifts: Floats, step: _Step, z: Floats) -> _Common:
        """Return the maximum of the marginal likelihood: the M step."""
        slope = (slopes.sum() / self.slope_variance + 1.0 / _SLOPE_VARIANCE) / (
            len(z) / self.slope_variance + 1.0 / _SLOPE_VARIANCE
        )
        shift = float((shifts - self.trend * z).mean())
        trend = float(z @ (shifts - shift)) / (
            float(z @ z) + self.shift_variance / _TREND_VARIANCE
        )
        return _Common(
            slope,
            shift,
            trend,
            _variance(slopes - slope, step.slope_variances, _SLOPE_SPREAD),
            _variance(shifts - shift - trend * z, step.shift_variances, _SHIFT_SPREAD),
        )

    def distance(self, other: _Common) -> float:
        """Return the largest difference, of variances by their logarithms."""
        one, two = (np.array([*c[:3], *np.log(c[3:])]) for c in (self, other))
        return float(np.abs(one - two).max())


class _LogisticRows(NamedTuple):
    """Logistic regressions of all labels on their own logits x, and on v with one coefficient."""

    labels: Integers | None  # (n, K)
    x: Floats  # (n, K)
    v: Floats  # (n, K)
    Y: Floats  # (n, K)
    w: Floats  # (n, K)

    def sums(self, slopes: Floats, shifts: Floats, bend: float) -> _Sums:
        """Return the sums at some slopes and shifts (m,) and a coefficient of v."""
        by_label, of_bend = np.empty((6, len(slopes))), np.empty(2)
        entries = self.x, self.v, self.Y, self.w, self.labels
        logistic_sums(*entries, slopes, shifts, bend, by_label, of_bend)
        return _Sums(*by_label, *of_bend)


class _Sums(NamedTuple):
    """Log-likelihoods of labels (m,), and sums of r = w (y - q) and c = w q (1 - q)."""

    likelihood: Floats
    r: Floats
    rx: Floats
    c: Floats
    cx: Floats
    cxx: Floats
    rv: float  # over all labels
    cvv: float

    def bend_step(self, bend: float) -> float:
        """Return the Newton step of the bend, slopes and shifts being kept."""
        gradient, curvature = self.rv - bend / _BEND_VARIANCE, self.cvv + 1.0 / _BEND_VARIANCE
        return float(np.clip(gradient / curvature, -_BEND_STEP, _BEND_STEP))

    def newton_step(self, slopes: Floats, shifts: Floats, common: _Common, z: Floats) -> _Step:
        """Return the Newton step of each label: the solution of two equations."""
        prior = common.shift + common.trend * z
        slope_gradient = self.rx - (slopes - common.slope) / common.slope_variance
        shift_gradient = self.r - (shifts - prior) / common.shift_variance
        aa = self.cxx + 1.0 / common.slope_variance
        bb = self.c + 1.0 / common.shift_variance
        ab = self.cx
        det = aa * bb - ab * ab
        return _Step(
            (bb * slope_gradient - ab * shift_gradient) / det,
            (aa * shift_gradient - ab * slope_gradient) / det,
            bb / det,
            aa / det,
            -ab / det,
        )


def half_step(p: Floats, w: Floats) -> float:
    """Return what probabilities of exactly 0 count as: half of the smallest others."""
    zero = p == 0.0
    if not zero.any() or zero.all():
        return _EDGE
    order = np.argsort(p[~zero])
    mass = np.cumsum(w[~zero][order])
    share = min(_LOWEST, float(w[zero].sum() / w.sum()))  # a few zeros are rounding errors
    smallest = p[~zero][order[np.searchsorted(mass, share * mass[-1])]]
    return float(np.clip(0.5 * smallest, _EDGE, _MOST_EDGE))


def _line(x: Floats, y: Floats, w: Floats) -> tuple[float, float]:
    """Return the level at x = 0 and the slope of the weighted regression of y on x."""
    mass = float(w.sum())
    center, level = float((w * x).sum()) / mass, float((w * y).sum()) / mass
    slope = float((w * (x - center) * (y - level)).sum())
    slope /= max(float((w * (x - center) ** 2).sum()), _SMALLEST)
    return level - slope * center, slope


def _center(x: Floats, Y: Floats, w: Floats) -> float:
    """Return the middle between the mean logits of absent and of present labels.

    Slopes and shifts about this centre are nearly uncorrelated.
    """
    present, absent = w * Y, w * (1.0 - Y)
    means = [float((part * x).sum()) / max(1.0, float(part.sum())) for part in (present, absent)]
    return 0.5 * (means[0] + means[1])


def _variance(deviations: Floats, posterior: Floats, spread: float) -> float:
    """Return the variance of a parameter over labels, with its prior."""
    total = float((deviations**2 + posterior).sum()) + _PRIOR_LABELS * spread
    return total / (len(deviations) + _PRIOR_LABELS)


class IsotonicCalibrator:
    """Calibrator with an isotonic regression per label.

    It assumes less than `ShrunkCalibrator` and needs more rows: about a thousand.

    Attributes
    ----------
    regressors_ : list of IsotonicRegression or None
        One per label; None for a label without stored entries, whose probabilities do not change.
    margin_ : float
        The distance of probabilities from 0 and 1: 1 / (n + 2), n the sum of the weights.
    """

    def fit(self, entries: Entries, Y: Floats, weight: Floats) -> IsotonicCalibrator:
        """Fit the regressions to scores of n rows and the truth (n, K) at them, 0 or 1.

        Weights are those of rows, or of entries (n, K).
        """
        n = float(np.max(weight.sum(axis=0)))
        self.margin_ = 1.0 / (n + 2.0)
        self.regressors_: list[Any] = []
        w = _entry_weights(weight, Y)
        for place in label_places(entries):
            regressor = None
            if (w[place] > 0.0).any():
                regressor = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
                regressor.fit(entries.p[place], Y[place], sample_weight=w[place])
            self.regressors_.append(regressor)
        return self

    def predict(self, entries: Entries) -> Entries:
        """Return the same entries with calibrated probabilities."""
        q = entries.p.copy()
        for place, regressor in zip(label_places(entries), self.regressors_, strict=True):
            if regressor is not None and entries.p[place].size:
                q[place] = regressor.predict(entries.p[place])
        return entries.with_p(np.clip(q, self.margin_, 1.0 - self.margin_))


def _entry_weights(weight: Floats, Y: Floats) -> Floats:
    """Return weights of rows, or of entries, as those of entries (n, K)."""
    return np.broadcast_to(weight if weight.ndim == 2 else weight[:, None], Y.shape)


def _stored_weights(entries: Entries, Y: Floats, weight: Floats) -> Floats:
    """Return weights of rows, or of entries, as those of entries (n, K), 0 for padding."""
    w = _entry_weights(weight, Y)
    return w if entries.labels is None else w * (entries.labels < entries.m)


class NoCalibrator:
    """Keep probabilities, but away from 0 and 1 by a rounding error."""

    def fit(self, entries: Entries, Y: Floats, weight: Floats) -> NoCalibrator:
        """Fit nothing."""
        return self

    def predict(self, entries: Entries) -> Entries:
        """Return the same entries, clipped."""
        return entries.with_p(np.clip(entries.p, 1e-12, 1.0 - 1e-12))


# "auto" is the default; None keeps probabilities.
CALIBRATORS: dict[str | None, type] = {
    "auto": ShrunkCalibrator,
    "sigmoid": ShrunkCalibrator,
    "isotonic": IsotonicCalibrator,
    None: NoCalibrator,
}
# Others take scores as they are.
_OF_SCORES: dict[type, type] = {ShrunkCalibrator: ScoreCalibrator}


def make_calibrator(name: str | None, *, scores: bool) -> Any:
    """Return the calibrator of probabilities, or of scores, that a parameter names."""
    kind = CALIBRATORS[name]
    return (_OF_SCORES.get(kind, kind) if scores else kind)()
