"""Bounds that hold for new rows: coverage over many draws, sharpness, known values, errors."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, norm

from fgfm.metrics import AbstentionThreshold, abstention_threshold, mean_lower_bound

DRAWS = 1000
MOST_MISSES = int(binom.ppf(0.999, DRAWS, 0.05))  # of a bound that misses 5 % of all draws


def mixture(zeros, ones, a, b):
    """Return a sampler of 0, 1 and Beta(a, b), as F-measures are, and its mean."""

    def sample(rng, n):
        u = rng.random(n)
        return np.where(u < zeros, 0.0, np.where(u > 1.0 - ones, 1.0, rng.beta(a, b, n)))

    return sample, ones + (1.0 - zeros - ones) * a / (a + b)


DISTRIBUTIONS = {
    "rare ones": mixture(0.9, 0.1, 1, 1),
    "frequent ones": mixture(0.15, 0.85, 1, 1),
    "wide": mixture(0.0, 0.0, 0.6, 0.3),
    "narrow": mixture(0.0, 0.0, 24, 8),
    "F-measures": mixture(0.2, 0.3, 5, 2),
    "good F-measures": mixture(0.02, 0.8, 3, 1),
}


def hoeffding_bentkus(values, alpha):
    """Return the bound of Bates et al. (2021), proposition 8, by a fine grid of means."""
    n, mean = len(values), np.mean(values)
    m = np.linspace(0.0, mean, 2001)[1:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = mean * np.log(mean / m) + (
            0.0 if mean == 1.0 else (1.0 - mean) * np.log((1.0 - mean) / (1.0 - m))
        )
    hoeffding = np.exp(-n * entropy)
    bentkus = math.e * binom.sf(math.floor(n * mean + 1e-9) - 1, n, m)
    rejected = np.minimum(hoeffding, bentkus) <= alpha
    return float(m[rejected].max(initial=0.0))


# The mean ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [30, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_bound_holds_in_95_percent_of_draws(name, n):
    sample, mean = DISTRIBUTIONS[name]
    rng = np.random.default_rng(n)
    bounds = np.array([mean_lower_bound(sample(rng, n)) for _ in range(DRAWS)])
    assert (bounds > mean).sum() <= MOST_MISSES
    assert bounds.mean() > mean - 6.0 * math.sqrt(mean * (1.0 - mean) / n)  # and is not trivial


def test_bound_holds_for_other_confidences_and_more_values():
    sample, mean = DISTRIBUTIONS["F-measures"]
    rng = np.random.default_rng(1)
    rows = [sample(rng, 300) for _ in range(DRAWS)]
    assert sum(mean_lower_bound(row) > mean for row in rows) <= MOST_MISSES
    misses = sum(mean_lower_bound(row, confidence=0.8) > mean for row in rows)
    assert 100 <= misses <= binom.ppf(0.999, DRAWS, 0.2)


@pytest.mark.parametrize("direction", [1, -1])
def test_bound_holds_for_sorted_values(direction):
    sample, mean = DISTRIBUTIONS["F-measures"]
    rng = np.random.default_rng(2)
    rows = [np.sort(sample(rng, 60))[::direction] for _ in range(DRAWS)]
    assert sum(mean_lower_bound(row) > mean for row in rows) <= MOST_MISSES


@pytest.mark.parametrize("n", [10, 100])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_bound_is_sharper_than_that_of_hoeffding_and_bentkus(name, n):
    sample, _ = DISTRIBUTIONS[name]
    rng = np.random.default_rng(n)
    rows = [sample(rng, n) for _ in range(60)]
    reference = np.mean([hoeffding_bentkus(row, 0.05) for row in rows])
    assert np.mean([mean_lower_bound(row) for row in rows]) > reference


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_width_tends_to_that_of_the_normal_approximation(name):
    sample, _ = DISTRIBUTIONS[name]
    rng = np.random.default_rng(0)
    n = 10_000
    rows = [sample(rng, n) for _ in range(5)]
    width = np.mean([row.mean() - mean_lower_bound(row) for row in rows])
    normal = norm.ppf(0.95) * np.mean([row.std() for row in rows]) / math.sqrt(n)
    assert normal * 0.9 < width < normal * 1.15


@pytest.mark.parametrize("n", [5, 10, 100, 3000])
def test_bound_of_ones_is_the_largest_possible(n):
    # P(all n values are 1) = mu^n for Bernoulli(mu): no valid bound exceeds alpha^(1/n)
    largest = 0.05 ** (1.0 / n)
    bound = mean_lower_bound(np.ones(n))
    assert bound <= largest
    assert 1.0 - bound == pytest.approx(1.0 - largest, rel=0.1)


def test_one_value():
    # Bernoulli(mu) and Markov's inequality: alpha x is the best bound of one value
    assert mean_lower_bound([1.0]) == pytest.approx(0.05, rel=1e-6)
    assert mean_lower_bound([0.5]) == pytest.approx(0.025, rel=1e-6)
    assert mean_lower_bound([0.0]) == 0.0


def test_bound_is_monotone_in_confidence_and_at_most_the_mean():
    sample, _ = DISTRIBUTIONS["F-measures"]
    values = sample(np.random.default_rng(3), 200)
    confidences = [1e-9, 0.1, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0 - 1e-9]
    bounds = [mean_lower_bound(values, confidence) for confidence in confidences]
    assert (np.diff(bounds) <= 0.0).all()
    assert (np.diff(bounds[2:]) < 0.0).all()
    assert 0.0 < bounds[-1] < bounds[0] <= values.mean()


def test_bound_is_reproducible_for_every_type_of_input():
    values = np.random.default_rng(4).integers(0, 9, size=50) / 8.0
    bound = mean_lower_bound(values)
    assert type(bound) is float
    for same in (values.astype(np.float32), values.tolist(), pd.Series(values), values.copy()):
        assert mean_lower_bound(same) == bound
    assert mean_lower_bound(np.ones(4, dtype=bool)) == mean_lower_bound([1.0 + 1e-12] * 4)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.5, 1.2], r"values\[1\] is 1\.2: values must lie in \[0, 1\]"),
        ([-0.1], r"values\[0\] is -0\.1: values must lie"),
        ([0.5, math.nan], r"values\[1\] is nan: values must lie"),
        ([[0.5]], r"values has shape \(1, 1\): it must have 1 dimensions \(row\)"),
        ([], r"values is empty: a bound needs at least one value"),
    ],
)
def test_invalid_values_raise(values, message):
    with pytest.raises(ValueError, match=message):
        mean_lower_bound(values)


@pytest.mark.parametrize("value", [0.0, 1.0, 95, -0.1, math.nan])
def test_invalid_fractions_raise(value):
    rule = "it must be a number greater than 0 and less than 1"
    with pytest.raises(ValueError, match=f"confidence is {float(value)}: {rule}"):
        mean_lower_bound([0.5], value)
    with pytest.raises(ValueError, match=f"confidence is {float(value)}: {rule}"):
        abstention_threshold([0.5], [0.5], 0.5, value)
    with pytest.raises(ValueError, match=f"target is {float(value)}: {rule}"):
        abstention_threshold([0.5], [0.5], value)
    with pytest.raises(TypeError, match=f"confidence is '0.95': {rule}"):
        mean_lower_bound([0.5], "0.95")


# Abstention --------------------------------------------------------------------------------------

# The mean of F given a score in steps of 0.1 from 0 to 1; scores are uniform.
CURVES = {
    "calibrated": np.linspace(0.4, 0.95, 10),
    "useless": np.full(10, 0.75),
    "overconfident": np.linspace(0.2, 0.8, 10),
    "up and down": np.array([0.9, 0.6, 0.6, 0.95, 0.3, 0.9, 0.9, 0.55, 0.8, 0.8]),
    "bad at the top": np.array([0.2, 0.3, 0.4, 0.9, 1.0, 1.0, 0.9, 0.8, 0.7, 0.5]),
}


def mean_above(curve, threshold):
    """Return E[F | S >= threshold]."""
    width = np.clip((np.arange(1, 11) / 10 - threshold), 0.0, 0.1)  # of each step
    return (width * curve).sum() / width.sum()


def draw_rows(rng, curve, n, levels=None):
    score = rng.random(n) if levels is None else rng.integers(0, levels, n) / levels
    mean = curve[(score * 10 + 1e-9).astype(int)]
    return score, np.where(rng.random(n) < 0.6, (rng.random(n) < mean), mean)


@pytest.mark.parametrize("target", [0.8])
@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize(("n", "levels"), [(60, None), (300, 10)])
def test_answered_rows_reach_the_target_in_95_percent_of_draws(curve, n, levels, target):
    rng = np.random.default_rng(n)
    misses, draws = 0, 200
    for _ in range(draws):
        threshold, answered, _ = abstention_threshold(
            *draw_rows(rng, CURVES[curve], n, levels), target
        )
        assert (answered > 0.0) == (threshold <= 1.0)
        misses += answered > 0.0 and mean_above(CURVES[curve], threshold) < target - 1e-12
    assert misses <= binom.ppf(0.999, draws, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("target", [0.7, 0.75, 0.8, 0.9])
@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("n", [60, 300, 1000])
def test_answered_rows_reach_the_target_in_many_draws(curve, n, target):
    rng = np.random.default_rng(n + 1)
    thresholds = [
        abstention_threshold(*draw_rows(rng, CURVES[curve], n), target).threshold
        for _ in range(2 * DRAWS)
    ]
    misses = sum(s <= 1.0 and mean_above(CURVES[curve], s) < target - 1e-12 for s in thresholds)
    assert misses <= binom.ppf(0.999, 2 * DRAWS, 0.05)


def test_most_rows_that_can_be_answered_are():
    rng = np.random.default_rng(5)
    curve = CURVES["calibrated"]
    best = min(s for s in np.linspace(0, 0.9, 901) if mean_above(curve, s) >= 0.8)
    answered = [
        abstention_threshold(*draw_rows(rng, curve, 3000), 0.8).answered for _ in range(50)
    ]
    assert 0.8 * (1.0 - best) < np.mean(answered) < 1.0 - best


def test_result_describes_the_answered_rows():
    score, f = draw_rows(np.random.default_rng(6), CURVES["calibrated"], 400)
    found = abstention_threshold(score, f, 0.75)
    chosen = score >= found.threshold
    assert isinstance(found, AbstentionThreshold)
    assert 0.2 < found.answered < 1.0
    assert found.threshold in score
    assert found.answered == chosen.mean()
    assert found.mean_f == pytest.approx(f[chosen].mean(), rel=1e-12)
    assert mean_lower_bound(f[chosen]) > 0.7


def test_scores_matter_through_their_order_only():
    score, f = draw_rows(np.random.default_rng(7), CURVES["calibrated"], 300)
    found = abstention_threshold(score, f, 0.75)
    other = abstention_threshold(np.exp(5.0 * score) - 40.0, f, 0.75)
    assert other.threshold == np.exp(5.0 * found.threshold) - 40.0
    assert other[1:] == found[1:]


def test_all_rows_or_none():
    score = np.linspace(0.0, 1.0, 100)
    assert abstention_threshold(score, np.ones(100), 0.9) == (0.0, 1.0, 1.0)
    assert abstention_threshold(np.zeros(100), np.ones(100), 0.9) == (0.0, 1.0, 1.0)
    for f, target in ((np.zeros(100), 0.1), (np.ones(100), 0.999)):
        none = abstention_threshold(score, f, target)
        assert none[:2] == (math.inf, 0.0)
        assert math.isnan(none.mean_f)


def test_invalid_rows_raise():
    with pytest.raises(ValueError, match=r"f has 2 rows and expected_f has 3"):
        abstention_threshold([0.1, 0.2, 0.3], [0.5, 0.5], 0.5)
    with pytest.raises(ValueError, match=r"expected_f\[1\] is nan: it must be finite"):
        abstention_threshold([0.1, math.nan], [0.5, 0.5], 0.5)
    with pytest.raises(ValueError, match=r"f\[1\] is 2\.0: values must lie in \[0, 1\]"):
        abstention_threshold([0.1, 0.2], [0.5, 2.0], 0.5)
    with pytest.raises(ValueError, match=r"expected_f has no rows: a test needs at least one"):
        abstention_threshold([], [], 0.5)
