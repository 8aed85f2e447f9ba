"""Bets against a mean: the plain loop, the same bits for all instruction sets, monotonicity."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

from fgfm._kernels import bet, native

baseline = import_module("fgfm._kernels._native")
VALUES = {
    "uniform": lambda rng, n: rng.random(n),
    "bernoulli": lambda rng, n: (rng.random(n) < 0.8).astype(float),
    "narrow": lambda rng, n: rng.beta(60, 20, n),
}


def draw(name, n):
    rng = np.random.default_rng(n)
    return VALUES[name](rng, n), 1.0 / np.sqrt(rng.uniform(0.05, 1.0, n) * np.arange(n, 0, -1))


def plain_bet(values, precision, mean, wealth, target):
    for x, p in zip(values, precision, strict=True):
        if wealth >= target:
            break
        shape = 1.45 * (wealth * (1 - wealth)) ** 0.875
        limit = min(wealth / mean, (1 - wealth) / (1 - mean))
        wealth += min(shape * p / np.sqrt(mean * (1 - mean)), limit) * (x - mean)
    return wealth


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("n", [0, 1, 7, 200])
def test_bet_is_the_plain_loop(name, n):
    values, precision = draw(name, n)
    for mean in (0.1, 0.6, 0.75, 0.95):
        expected = plain_bet(values, precision, mean, 0.04, 0.9)
        assert bet(values, precision, mean, 0.04, 0.9) == pytest.approx(
            expected, rel=1e-9, abs=1e-12
        )


@pytest.mark.skipif(native is baseline, reason="this machine runs the baseline only")
@pytest.mark.parametrize("name", VALUES)
def test_instruction_sets_bet_alike(name):
    values, precision = draw(name, 5000)
    for mean in (0.6, 0.74, 0.8):
        args = (values, precision, mean, 0.05, 0.97)
        assert native.bet(*args) == baseline.bet(*args)


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("n", [3, 30, 300])
def test_wealth_decreases_in_the_mean_and_increases_in_the_wealth_at_the_start(name, n):
    values, precision = draw(name, n)
    by_mean = [bet(values, precision, m, 0.05, 1.0) for m in np.linspace(0.001, 0.999, 2000)]
    assert (np.diff(by_mean) <= 1e-12).all()
    assert by_mean[0] > by_mean[-1]
    for mean in (0.3, 0.7, 0.9):
        by_start = [bet(values, precision, mean, w, 1.0) for w in np.linspace(0.0, 1.0, 1000)]
        assert (np.diff(by_start) >= -1e-12).all()
        assert by_start[0] == 0.0
        assert by_start[-1] == 1.0  # bets end at once
