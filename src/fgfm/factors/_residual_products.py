r"""Tests of all pairs of labels from their residuals: the generalised covariance measure.

For labels i and j the products :math:`R_i R_j` of residuals have mean 0 given x if the labels are
independent given x. Tested are their sum over all rows, and whether their mean differs between
groups of rows. The moments of a residual given x are needed for pairs of labels with few common
rows: the observed products of such a pair say little about those that could have been observed.

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

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import gammainc, gammaincc, ndtr, ndtri

from fgfm.factors._pairwise import PairwiseResult

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_SMALLEST = 0.1  # smallest conditional probability, as a share of the label's frequency
_ROWS_PER_BIN = 20  # rows with the rarer value of the label
_MAX_BINS = 10
_ENOUGH = 30.0  # equivalent number of common rows from which the variance is the observed one
_TINY = np.finfo(float).tiny
_MAX_COUNT = 1e8  # for larger lambda the normal distribution is accurate enough
_SYMMETRIC = 0.5  # ratio of lambda by kurtosis to lambda by skewness; 1 for a Poisson variable
_LARGE_COUNT = 1e4  # for larger lambda SciPy's incomplete gamma functions lose the far tails


class Residuals(NamedTuple):
    """Residuals of m labels, with their second to fourth moments given x."""

    values: Floats  # (n, m)
    variance: Floats  # (n, m)
    third: Floats  # (n, m)
    fourth: Floats  # (n, m)
    fitted: Floats  # (n, m)
    inflation: float  # variance of a sum of products, over the sum of their variances


def residual_moments(Y: Floats, R: Floats, inflation: float = 1.0) -> Residuals:
    """Estimate the conditional moments of residuals by those of a Bernoulli variable.

    The fitted values are shrunk towards the label's frequency until they are calibrated. With
    the resulting probability p, a Bernoulli variable has variance v = p (1 - p), third moment
    v (1 - 2 p) and fourth moment v (1 - 3 v). These are then scaled to the observed residuals
    within bins of rows with similar fitted values. No label is constant.
    """
    n, m = Y.shape
    fitted = Y - R
    frequency = Y.mean(axis=0)
    centred = fitted - fitted.mean(axis=0)
    # Least-squares slope of the label on its fitted value, in [0, 1].
    spread = np.maximum(np.sum(centred**2, axis=0), _TINY)
    slope = np.clip(np.sum(centred * (Y - frequency), axis=0) / spread, 0.0, 1.0)
    p = np.clip(
        frequency + slope * centred,
        _SMALLEST * frequency,
        1.0 - _SMALLEST * (1.0 - frequency),
    )
    bernoulli2 = p * (1.0 - p)  # (n, m)
    bernoulli4 = bernoulli2 * (1.0 - 3.0 * bernoulli2)
    scale, fourth = np.empty_like(p), np.empty_like(p)
    rarer = np.minimum(Y.sum(axis=0), n - Y.sum(axis=0))
    n_bins = np.clip(rarer // _ROWS_PER_BIN, 1, _MAX_BINS).astype(int)
    for i in range(m):
        bins = _bins(fitted[:, i], n_bins[i])
        scale[:, i] = _ratio(bins, R[:, i] ** 2, bernoulli2[:, i])
        fourth[:, i] = bernoulli4[:, i] * _ratio(bins, R[:, i] ** 4, bernoulli4[:, i])
    variance = scale * bernoulli2
    third = variance * np.sqrt(scale) * (1.0 - 2.0 * p)
    return Residuals(R, variance, third, fourth, fitted, inflation)


def _ratio(bins: npt.NDArray[np.int64], observed: Floats, expected: Floats) -> Floats:
    """Return, for each row, the ratio of two sums over its bin."""
    ratio = np.bincount(bins, observed) / np.maximum(np.bincount(bins, expected), 1e-300)
    return np.asarray(ratio[bins])


def _bins(values: Floats, n_bins: int) -> npt.NDArray[np.int64]:
    """Return the bin of each value: bins of about equal size, equal values in the same bin.

    Values are rounded first: Y - (Y - p) is p up to rounding, and the last digit would depend
    on Y.
    """
    _, place, times = np.unique(np.round(values, 9), return_inverse=True, return_counts=True)
    middle = np.cumsum(times) - times + times // 2
    return np.asarray((middle * n_bins // len(values))[place.reshape(-1)])


def pairwise_p_values(residuals: Residuals, groupings: Sequence[Integers]) -> PairwiseResult:
    """Test all pairs of labels by the mean, and by its differences between groups of rows.

    Each grouping, groups of rows numbered from 0, is one more test. The result has the smallest
    p-value of each pair, Sidak-corrected for the number of tests, and as the effect an estimate of
    the root mean square correlation of the residuals given x.
    """
    n = len(residuals.values)
    smallest, z = _test_sum(residuals)
    n_tests = 1
    # z^2 exceeds 1, its mean under independence, by about n times the squared mean correlation of
    # the residuals; Q exceeds df by about n times the variance of the correlation over groups.
    effect = np.maximum(z**2 - 1.0, 0.0)
    for groups in groupings:
        Q, df = _heterogeneity(residuals, groups)
        if df == 0:
            continue
        n_tests += 1
        smallest = np.minimum(smallest, gammaincc(df / 2.0, Q / 2.0))  # P(chi-square_df > Q)
        effect = np.maximum(effect, np.maximum(z**2 - 1.0, 0.0) + np.maximum(Q - df, 0.0))
    with np.errstate(divide="ignore"):  # log1p(-1), where p is 1
        p_values = -np.expm1(n_tests * np.log1p(-smallest))  # Sidak: 1 - (1 - p)^tests
    return PairwiseResult(p_values, np.sqrt(np.minimum(effect / n, 1.0)), None)


class _Cumulants(NamedTuple):
    """Sums of products over rows for all pairs, and their cumulants under independence."""

    S: Floats  # (m, m)
    k2: Floats  # (m, m)
    k3: Floats  # (m, m)
    k4: Floats  # (m, m)


def _cumulants(residuals: Residuals, rows: Any) -> _Cumulants:
    """Sum R_i R_j over some rows, and the cumulants of the terms, by matrix products.

    Under independence the r-th moment of R_i R_j given x is the product of the moments of R_i and
    R_j. The mean is 0, so that the second and third cumulants are the moments, and the fourth is
    E[R_i^4] E[R_j^4] - 3 (var R_i var R_j)^2. Inflated standard deviations scale the r-th cumulant
    by inflation^(r/2).
    """
    R, V = residuals.values[rows], residuals.variance[rows]
    K, M = residuals.third[rows], residuals.fourth[rows]
    a = residuals.inflation

    V2 = V * V
    k4 = M.T @ M - 3.0 * (V2.T @ V2)
    return _Cumulants(R.T @ R, a * (V.T @ V), a**1.5 * (K.T @ K), a**2 * k4)


def _test_sum(residuals: Residuals) -> tuple[Floats, Floats]:
    """Test whether the mean of R_i R_j is zero: p-values and standardised sums.

    The variance of the sum is that of the observed products, as in Shah and Peters (2020), if
    enough rows have both labels; otherwise it is the expected one.
    """
    S, k2, k3, k4 = _cumulants(residuals, slice(None))
    R2 = residuals.values**2
    observed = R2.T @ R2
    observed = residuals.inflation * (observed + observed.T) / 2.0
    z = S / np.sqrt(np.maximum(k2, _TINY))
    k2 = np.where(_equivalent_count(k2, k3, k4) >= _ENOUGH, observed, k2)
    return two_sided(S, k2, k3, k4), z


def _heterogeneity(residuals: Residuals, groups: Integers) -> tuple[Floats, int]:
    r"""Return Cochran's Q of the sums of R_i R_j over groups of rows, and its degrees of freedom.

    With standardised sums z_g and variances k_g of the groups,
    Q = sum_g z_g^2 - (sum_g sqrt(k_g) z_g)^2 / sum_g k_g (Cochran, 1954, Biometrics 10).

    Differences between groups are not inflated like the sum over all rows: under independence the
    mean of Q over its degrees of freedom was 1.00 without the factor, and 0.82 with a factor of
    1.21.
    """
    residuals = residuals._replace(inflation=1.0)
    m = residuals.values.shape[1]
    squares, total, weight = np.zeros((m, m)), np.zeros((m, m)), np.zeros((m, m))
    n_groups = int(groups.max(initial=0)) + 1
    for g in range(n_groups):
        S, k2, k3, k4 = _cumulants(residuals, groups == g)
        z = signed_normal(S, k2, k3, k4)
        squares += z**2
        total += np.sqrt(k2) * z
        weight += k2
    Q = squares - total**2 / np.maximum(weight, _TINY)
    return np.maximum(Q, 0.0), n_groups - 1


# The distribution of a sum if the labels are independent given x


def _equivalent_count(k2: Floats, k3: Floats, k4: Floats) -> Floats:
    """Return lambda, from the skewness of a sum, or from its kurtosis if that is more extreme."""
    rate = _rate_by_skewness(k2, k3)
    return np.where(_is_symmetric(k2, k3, k4), _rate_by_kurtosis(k2, k4), rate)


def _rate_by_skewness(k2: Floats, k3: Floats) -> Floats:
    """Return lambda = k2^3 / k3^2, at most `_MAX_COUNT`."""
    k2 = np.maximum(k2, _TINY)
    skewness = np.abs(k3) / np.maximum(k2 * np.sqrt(k2), _TINY)  # of a certain label 0 / 0
    return np.asarray(1.0 / np.maximum(skewness, _MAX_COUNT**-0.5) ** 2)


def _rate_by_kurtosis(k2: Floats, k4: Floats) -> Floats:
    """Return lambda = k2^2 / k4, at most `_MAX_COUNT`."""
    k2 = np.maximum(k2, _TINY)
    return np.asarray(1.0 / np.maximum(k4 / k2 / k2, 1.0 / _MAX_COUNT))


def _is_symmetric(k2: Floats, k3: Floats, k4: Floats) -> npt.NDArray[np.bool_]:
    """Return True where the kurtosis is more than the skewness explains."""
    return np.asarray(_rate_by_kurtosis(k2, k4) < _SYMMETRIC * _rate_by_skewness(k2, k3))


def _tails(S: Floats, k2: Floats, k3: Floats, k4: Floats) -> tuple[Floats, Floats]:
    """Return P(N >= count) and P(N <= count), where count = lambda + S / a was observed."""
    k2 = np.maximum(k2, _TINY)
    rate = _equivalent_count(k2, k3, k4)
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


def two_sided(S: Floats, k2: Floats, k3: Floats, k4: Floats) -> Floats:
    """Return the two-sided p-value of each sum, twice the smaller tail.

    Examples
    --------
    Two labels of 30 rows each among 1000 rows, without a common row, are not surprising:

    >>> expected = np.array(1000 * 0.03**2)
    >>> round(float(two_sided(-expected, expected, expected, expected)), 3)
    0.813
    """
    above, below = _tails(S, k2, k3, k4)
    return np.asarray(np.minimum(1.0, 2.0 * np.minimum(above, below)))


def signed_normal(S: Floats, k2: Floats, k3: Floats, k4: Floats) -> Floats:
    """Return the normal quantile with the same p-value and the sign of the deviation."""
    above, below = _tails(S, k2, k3, k4)
    tail = np.clip(np.minimum(above, below), _TINY, 0.5)
    upwards = np.where(_is_symmetric(k2, k3, k4), S > 0.0, (above < below) != (k3 < 0.0))
    z = -ndtri(tail)
    return np.asarray(np.where(upwards, z, -z))
