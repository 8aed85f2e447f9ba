"""Distribution of sums of residual products: Poisson with three cumulants, and its limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from fgfm.factors._null_distribution import equivalent_count, signed_normal, two_sided


@pytest.mark.parametrize("rate", [0.01, 0.9, 7.0, 200.0])
def test_counts_are_poisson(rate):
    count = np.arange(0.0, math.ceil(rate + 6.0 * math.sqrt(rate) + 3.0))
    above, below = stats.poisson.sf(count - 1, rate), stats.poisson.cdf(count, rate)
    expected = np.minimum(1.0, 2.0 * np.minimum(above, below))
    cumulant = np.full_like(count, rate)
    np.testing.assert_allclose(two_sided(count - rate, cumulant, cumulant), expected, rtol=1e-9)
    # mirrored and scaled
    mirrored = two_sided(3.0 * (rate - count), 9.0 * cumulant, -27.0 * cumulant)
    np.testing.assert_allclose(mirrored, expected, rtol=1e-9)
    assert equivalent_count(9.0 * cumulant, -27.0 * cumulant) == pytest.approx(rate)


def test_without_skewness_it_is_normal():
    S = np.linspace(-6.0, 6.0, 49)
    one, none = np.ones_like(S), np.zeros_like(S)
    expected = 2.0 * stats.norm.sf(np.abs(S))
    np.testing.assert_allclose(two_sided(S, one, none), expected, rtol=0.01)
    np.testing.assert_allclose(signed_normal(S, one, none), S, atol=2e-3)


@pytest.mark.parametrize("z", [-25.0, -6.0, -1.0, 0.3, 2.0, 6.0, 25.0])
def test_large_counts(z):
    """Gamma functions up to 10^4, an expansion beyond: no jump, and positive in far tails."""
    rates = np.array([9.99e3, 1.001e4])
    p = two_sided(z * np.sqrt(rates), rates, rates)
    assert p[0] == pytest.approx(p[1], rel=0.15 if abs(z) > 6.0 else 0.03)
    assert (p > 0.0).all()


def test_if_skewness_cancels_a_single_row_decides():
    """A product that is 1 or -1 with probability 0.01 each, else 0."""
    k2, k3, k4 = np.array(0.02), np.array(0.0), np.array(0.02 - 3 * 0.02**2)
    for S in (1.0, -1.0):
        assert 0.02 <= two_sided(np.array(S), k2, k3, k4) <= 0.05
        assert np.sign(signed_normal(np.array(S), k2, k3, k4)) == S
