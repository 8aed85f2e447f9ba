r"""Distribution of a sum of products of residuals if the labels are independent given x.

A sum S with mean 0, variance :math:`\kappa_2` and third cumulant :math:`\kappa_3` is approximated
by a scaled and centred Poisson variable with the same three cumulants:

.. math::

    S \approx a (N - \lambda), \quad N \sim \mathrm{Poisson}(\lambda), \quad
    a = \kappa_3 / \kappa_2, \quad \lambda = \kappa_2^3 / \kappa_3^2,

since all cumulants of N are :math:`\lambda` and the r-th cumulant of S is
:math:`a^r \lambda`. For two rare labels S is the number of rows that have both, minus its
expectation, and the approximation is its limit distribution; for common labels :math:`\lambda` is
large and the distribution is normal, with the skewness kept.

If the third cumulants of rows cancel but the fourth do not (a rare label, and one that is well
predicted both ways: a single row decides), :math:`\kappa_4` replaces the third cumulant,
:math:`\lambda = \kappa_2^2 / \kappa_4`, and both tails are the long one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import gammainc, gammaincc, ndtr, ndtri

Floats = npt.NDArray[np.float64]

_TINY = np.finfo(float).tiny
_MAX_COUNT = 1e8  # for larger lambda the normal distribution is accurate enough
_SYMMETRIC = 0.5  # ratio of lambda by kurtosis to lambda by skewness; 1 for a Poisson variable
_LARGE_COUNT = 1e4  # for larger lambda SciPy's incomplete gamma functions lose the far tails


def equivalent_count(k2: Floats, k3: Floats, k4: Floats | None = None) -> Floats:
    """Return lambda, from the skewness of a sum, or from its kurtosis if that is more extreme."""
    rate = _rate_by_skewness(k2, k3)
    if k4 is None:
        return rate
    return np.where(_is_symmetric(k2, k3, k4), _rate_by_kurtosis(k2, k4), rate)


def _rate_by_skewness(k2: Floats, k3: Floats) -> Floats:
    """Return lambda = k2^3 / k3^2, at most `_MAX_COUNT`."""
    k2 = np.maximum(k2, _TINY)
    skewness = np.abs(k3) / (k2 * np.sqrt(k2))
    return np.asarray(1.0 / np.maximum(skewness, _MAX_COUNT**-0.5) ** 2)


def _rate_by_kurtosis(k2: Floats, k4: Floats) -> Floats:
    """Return lambda = k2^2 / k4, at most `_MAX_COUNT`."""
    k2 = np.maximum(k2, _TINY)
    return np.asarray(1.0 / np.maximum(k4 / k2 / k2, 1.0 / _MAX_COUNT))


def _is_symmetric(k2: Floats, k3: Floats, k4: Floats | None) -> npt.NDArray[np.bool_]:
    """Return True where the kurtosis is more than the skewness explains."""
    if k4 is None:
        return np.zeros(np.shape(k2), dtype=bool)
    return np.asarray(_rate_by_kurtosis(k2, k4) < _SYMMETRIC * _rate_by_skewness(k2, k3))


def _tails(S: Floats, k2: Floats, k3: Floats, k4: Floats | None) -> tuple[Floats, Floats]:
    """Return P(N >= count) and P(N <= count), where count = lambda + S / a was observed."""
    k2 = np.maximum(k2, _TINY)
    rate = equivalent_count(k2, k3, k4)
    symmetric = _is_symmetric(k2, k3, k4)
    # The side of the long tail is that of the skewness; without skewness that of S itself.
    towards = np.where(symmetric, np.abs(S), np.where(k3 < 0.0, -S, S))
    count = rate + np.sqrt(rate) * towards / np.sqrt(k2)
    count = np.maximum(count, 0.0)  # N >= 0
    # P(N >= c) = P(c, lambda) and P(N <= c) = Q(c + 1, lambda), with the regularised incomplete
    # gamma functions P and Q, which are also defined between the integers.
    large = rate > _LARGE_COUNT
    positive = np.maximum(count, 1e-300)
    small_rate, large_rate = np.where(large, 1.0, rate), np.where(large, rate, 1.0)
    above = np.where(large, ndtr(_temme(positive, large_rate)), gammainc(positive, small_rate))
    below = np.where(
        large, ndtr(-_temme(count + 1.0, large_rate)), gammaincc(count + 1.0, small_rate)
    )
    return np.where(count > 0.0, above, 1.0), np.where(symmetric, 1.0, below)


def _temme(a: Floats, x: Floats) -> Floats:
    """Return z with P(a, x) = Phi(z), by the first term of Temme's uniform expansion.

    z = sign(mu) sqrt(2 a (mu - log(1 + mu))) with mu = (x - a) / a; see DLMF 8.12.
    """
    mu = (x - a) / a
    return np.asarray(np.sign(mu) * np.sqrt(2.0 * a * np.maximum(mu - np.log1p(mu), 0.0)))


def two_sided(S: Floats, k2: Floats, k3: Floats, k4: Floats | None = None) -> Floats:
    """Return the two-sided p-value of each sum, twice the smaller tail.

    Examples
    --------
    Two labels of 30 rows each among 1000 rows, without a common row, are not surprising:

    >>> expected = 1000 * 0.03**2
    >>> round(float(two_sided(np.array(-expected), np.array(expected), np.array(expected))), 3)
    0.813
    """
    above, below = _tails(S, k2, k3, k4)
    return np.asarray(np.minimum(1.0, 2.0 * np.minimum(above, below)))


def signed_normal(S: Floats, k2: Floats, k3: Floats, k4: Floats | None = None) -> Floats:
    """Return the normal quantile with the same p-value and the sign of the deviation."""
    above, below = _tails(S, k2, k3, k4)
    tail = np.clip(np.minimum(above, below), _TINY, 0.5)
    upwards = np.where(_is_symmetric(k2, k3, k4), S > 0.0, (above < below) != (k3 < 0.0))
    z = -ndtri(tail)
    return np.asarray(np.where(upwards, z, -z))
