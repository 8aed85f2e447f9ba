r"""The law of a sum of products of residuals when the labels are independent given x.

A sum S with mean 0, variance :math:`\kappa_2` and third cumulant :math:`\kappa_3` is taken for a
scaled and centred Poisson variable with the same three cumulants:

.. math::

    S \approx a (N - \lambda), \quad N \sim \mathrm{Poisson}(\lambda), \quad
    a = \kappa_3 / \kappa_2, \quad \lambda = \kappa_2^3 / \kappa_3^2.

Where the third cumulants of rows cancel but the fourth do not (a rare label and one that is well
predicted both ways: one row decides), :math:`\kappa_4` takes the place of the third,
:math:`\lambda = \kappa_2^2 / \kappa_4`, and both tails are the long one.

For two rare labels S is the number of rows that have both, less its expectation, and this is its
law; for common labels :math:`\lambda` is large and the law is normal, with its skewness kept.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import gammainc, gammaincc, ndtr, ndtri

__all__ = ["equivalent_count", "signed_normal", "two_sided"]

Floats = npt.NDArray[np.float64]

_MAX_COUNT = 1e8  # beyond it the law is normal to all digits that matter
_SYMMETRIC = 0.5  # for Poisson variables the counts by skewness and by kurtosis are the same
_LARGE_COUNT = 1e4  # beyond it SciPy's incomplete gamma functions lose the far tails


def equivalent_count(k2: Floats, k3: Floats, k4: Floats | None = None) -> Floats:
    """Give lambda, the Poisson mean that has the skewness of the sum, or its kurtosis if less."""
    rate = _rate(k2, k3)
    return rate if k4 is None else np.where(_symmetric(k2, k3, k4), _rate4(k2, k4), rate)


def _rate(k2: Floats, k3: Floats) -> Floats:
    k2 = np.maximum(k2, np.finfo(float).tiny)
    skewness = np.abs(k3) / (k2 * np.sqrt(k2))
    return np.asarray(1.0 / np.maximum(skewness, _MAX_COUNT**-0.5) ** 2)


def _rate4(k2: Floats, k4: Floats) -> Floats:
    k2 = np.maximum(k2, np.finfo(float).tiny)
    return np.asarray(1.0 / np.maximum(k4 / k2 / k2, 1.0 / _MAX_COUNT))


def _symmetric(k2: Floats, k3: Floats, k4: Floats | None) -> npt.NDArray[np.bool_]:
    """Say where the kurtosis is more than skewness explains."""
    if k4 is None:
        return np.zeros(np.shape(k2), dtype=bool)
    return np.asarray(_rate4(k2, k4) < _SYMMETRIC * _rate(k2, k3))


def _tails(S: Floats, k2: Floats, k3: Floats, k4: Floats | None) -> tuple[Floats, Floats]:
    """Give P(N >= count) and P(N <= count), both at least the mass of what was seen."""
    k2 = np.maximum(k2, np.finfo(float).tiny)
    rate = equivalent_count(k2, k3, k4)
    both = _symmetric(k2, k3, k4)
    towards = np.where(both, np.abs(S), np.where(k3 < 0.0, -S, S))  # the side of the long tail
    count = rate + np.sqrt(rate) * towards / np.sqrt(k2)
    # The Poisson tails are incomplete gamma functions, which are defined between integers too.
    count = np.maximum(count, 0.0)  # nothing lies below N = 0
    large = rate > _LARGE_COUNT
    some = np.maximum(count, 1e-300)
    near, far = np.where(large, 1.0, rate), np.where(large, rate, 1.0)
    above = np.where(large, ndtr(_temme(some, far)), gammainc(some, near))
    below = np.where(large, ndtr(-_temme(count + 1.0, far)), gammaincc(count + 1.0, near))
    return np.where(count > 0.0, above, 1.0), np.where(both, 1.0, below)


def _temme(a: Floats, x: Floats) -> Floats:
    """Give z with gammainc(a, x) = ndtr(z), the first term of Temme's uniform expansion."""
    mu = (x - a) / a
    return np.asarray(np.sign(mu) * np.sqrt(2.0 * a * np.maximum(mu - np.log1p(mu), 0.0)))


def two_sided(S: Floats, k2: Floats, k3: Floats, k4: Floats | None = None) -> Floats:
    """Give the two-sided p-value of each sum.

    Examples
    --------
    Two labels that 30 of 1000 rows have each, but never together: that is no surprise.

    >>> expected = 1000 * 0.03**2
    >>> round(float(two_sided(np.array(-expected), np.array(expected), np.array(expected))), 3)
    0.813
    """
    above, below = _tails(S, k2, k3, k4)
    return np.asarray(np.minimum(1.0, 2.0 * np.minimum(above, below)))


def signed_normal(S: Floats, k2: Floats, k3: Floats, k4: Floats | None = None) -> Floats:
    """Give the normal quantile with the same p-value and the sign of the deviation."""
    above, below = _tails(S, k2, k3, k4)
    tail = np.clip(np.minimum(above, below), np.finfo(float).tiny, 0.5)
    upwards = np.where(_symmetric(k2, k3, k4), S > 0.0, (above < below) != (k3 < 0.0))
    z = -ndtri(tail)
    return np.asarray(np.where(upwards, z, -z))
