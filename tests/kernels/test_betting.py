"""Bets against a mean: the plain loop, monotonicity."""

from __future__ import annotations

import numpy as np
import pytest

from fgfm._kernels import bet

VALUES = {
    "uniform": lambda rng, n: rng.random(n),
    "bernoulli": lambda rng, n: (rng.random(n) < 0.8).astype(float),
    "narrow": lambda rng, n: rng.beta(60, 20, n),
}
PRIOR = 0.25


def draw(name, n, orders=3):
    rng = np.random.default_rng(n)
    return rng.permuted(np.tile(VALUES[name](rng, n), (orders, 1)), axis=1).T.copy()  # (n, K)


def wealth_after(values, mean, wealth):
    result = np.full(values.shape[1], wealth)
    bet(values, values, mean, result)
    return result


def plain_bet(values, mean, wealth):
    n = len(values)
    for i, x in enumerate(values):
        seen = values[:i]
        largest = len(seen) * seen.mean() * (1 - seen.mean()) if i else 0.0
        v = min((PRIOR + (len(seen) * seen.var() if i else 0.0)) / (PRIOR + largest), 1.0)
        stake = min(wealth / mean, (1 - wealth) / (1 - mean))
        if i < n - 1:
            deviation = np.sqrt(v * mean * (1 - mean) * (n - i))
            stake = min(1.45 * (wealth * (1 - wealth)) ** 0.875 / deviation, stake)
        wealth += stake * (x - mean)
    return wealth


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("n", [0, 1, 2, 7, 200])
def test_bet_is_the_plain_loop(name, n):
    values = draw(name, n)
    for mean in (0.1, 0.6, 0.75, 0.95):
        expected = [plain_bet(column, mean, 0.04) for column in values.T]
        assert wealth_after(values, mean, 0.04) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("n", [3, 30, 300])
def test_wealth_decreases_in_the_mean_and_increases_in_the_wealth_at_the_start(name, n):
    values = draw(name, n)
    means = np.linspace(0.001, 0.999, 2000)
    by_mean = np.array([wealth_after(values, mean, 0.05) for mean in means])
    assert (np.diff(by_mean, axis=0) <= 1e-12).all()
    assert (by_mean[0] > by_mean[-1]).all()
    for mean in (0.3, 0.7, 0.9):
        starts = np.linspace(0.0, 1.0, 1000)
        by_start = np.array([wealth_after(values, mean, w) for w in starts])
        assert (np.diff(by_start, axis=0) >= -1e-12).all()
        assert (by_start[0] == 0.0).all()
        assert (by_start[-1] == 1.0).all()
