"""Bounds that hold for new rows: coverage over many draws, sharpness, known values, errors."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta, binom, norm

from benchmarks.bounds import DISTRIBUTIONS, hoeffding_bentkus
from fgfm.metrics import (
    AbstentionThreshold,
    abstention_threshold,
    f_abstention_threshold,
    f_lower_bound,
    f_measure,
    mean_lower_bound,
)

DRAWS = 1000


def misses(values, mean, confidence=0.95):
    """Return whether the bound exceeds the mean: one test instead of a bisection."""
    return abstention_threshold(np.zeros(len(values)), values, mean, confidence).answered > 0.0


def most_misses(draws, alpha):
    """Return the largest number of misses to expect of a bound that misses alpha of all draws."""
    return binom.ppf(0.9999, draws, alpha)


# The mean ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "n", [1, 2, 3, 5, 9, *(pytest.param(n, marks=pytest.mark.slow) for n in (12, 16))]
)
def test_bound_holds_for_every_mean_of_0_and_1(n):
    # All 2^n data sets. The probability of a miss is largest just below a bound.
    rows = (np.arange(2**n)[:, None] >> np.arange(n)) & 1  # (2^n, n)
    ones = rows.sum(axis=1)
    for alpha in (0.01, 0.05, 0.5):
        bounds = np.array([mean_lower_bound(row, 1.0 - alpha) for row in rows])
        means = np.concatenate([np.unique(bounds) - 1e-9, np.linspace(0.01, 0.99, 99)])
        for mean in np.clip(means, 0.0, 1.0):
            missed = np.bincount(ones[bounds > mean], minlength=n + 1)  # by the number of ones
            p = (missed * mean ** np.arange(n + 1) * (1.0 - mean) ** np.arange(n, -1, -1)).sum()
            assert p <= alpha, (alpha, mean)


@pytest.mark.parametrize(
    "n", [1, 2, 9, 17, 28, 45, 65, 96, pytest.param(500, marks=pytest.mark.slow)]
)
def test_bound_holds_for_sorted_0_and_1(n):
    # A function of the number of ones that increases: valid if and only if it does not exceed the
    # exact bound of Clopper and Pearson.
    for alpha in (0.01, 0.05, 0.5):
        found = {1: [0.0], -1: [0.0]}
        for k in range(1, n + 1):
            exact = beta.ppf(alpha, k, n - k + 1)
            for direction, bounds in found.items():
                values = np.repeat([0.0, 1.0], [n - k, k])[::direction]
                bounds.append(mean_lower_bound(values, 1.0 - alpha))
                assert bounds[-2] < bounds[-1] <= exact + 1e-9
    assert found[1] == pytest.approx(found[-1], abs=0.02)


@pytest.mark.parametrize(
    ("n", "draws"),
    [
        (17, 1000),
        (65, 500),
        *(pytest.param(n, 3000, marks=pytest.mark.slow) for n in (17, 96, 500)),
    ],
)
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_bound_holds_for_rows_as_drawn_and_sorted(name, n, draws):
    sample, mean = DISTRIBUTIONS[name]
    rng = np.random.default_rng(n)
    missed = np.zeros(3)
    for _ in range(draws):
        values = sample(rng, n)
        ascending = np.sort(values)
        missed += [misses(v, mean) for v in (values, ascending, ascending[::-1])]
    assert missed.max() <= most_misses(draws, 0.05)


def test_bound_is_not_trivial_and_holds_for_other_confidences():
    sample, mean = DISTRIBUTIONS["F-measures"]
    rng = np.random.default_rng(1)
    rows = [sample(rng, 300) for _ in range(DRAWS)]
    assert 10 <= sum(misses(row, mean) for row in rows) <= most_misses(DRAWS, 0.05)
    assert 80 <= sum(misses(row, mean, 0.8) for row in rows) <= most_misses(DRAWS, 0.2)


def test_a_miss_is_a_bound_above_the_mean():
    sample, mean = DISTRIBUTIONS["F-measures"]
    rng = np.random.default_rng(2)
    rows = [sample(rng, 40) for _ in range(50)]
    found = [misses(row, mean, 0.5) for row in rows]
    assert found == [mean_lower_bound(row, 0.5) > mean for row in rows]
    assert 5 < sum(found) < 30


@pytest.mark.parametrize("n", [10, 100])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_bound_is_sharper_than_that_of_hoeffding_and_bentkus(name, n):
    sample, _ = DISTRIBUTIONS[name]
    rng = np.random.default_rng(n)
    rows = [sample(rng, n) for _ in range(60)]
    reference = np.mean([hoeffding_bentkus(row) for row in rows])
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


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize(
    ("n", "levels", "target", "draws"),
    [
        (60, None, 0.8, 200),
        (300, 10, 0.8, 200),
        *(
            pytest.param(n, None, target, 2 * DRAWS, marks=pytest.mark.slow)
            for n in (60, 300, 1000)
            for target in (0.7, 0.75, 0.8, 0.9)
        ),
    ],
)
def test_answered_rows_reach_the_target_in_95_percent_of_draws(curve, n, levels, target, draws):
    rng = np.random.default_rng(n)
    misses = 0
    for _ in range(draws):
        threshold, answered, _ = abstention_threshold(
            *draw_rows(rng, CURVES[curve], n, levels), target
        )
        assert (answered > 0.0) == (threshold <= 1.0)
        misses += answered > 0.0 and mean_above(CURVES[curve], threshold) < target - 1e-12
    assert misses <= binom.ppf(0.999, draws, 0.05)


def test_most_rows_that_can_be_answered_are():
    rng = np.random.default_rng(5)
    curve = CURVES["calibrated"]
    best = min(s for s in np.linspace(0, 0.9, 901) if mean_above(curve, s) >= 0.8)
    answered = [
        abstention_threshold(*draw_rows(rng, curve, 3000), 0.8).answered for _ in range(20)
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


# The F-measure of a flat y -----------------------------------------------------------------------

Y_H = np.array([[0, 1], [1, 0], [1, 1]])  # false positive, false negative, hit


@pytest.mark.parametrize(
    ("b", "n"), [(1.0, 9), (2.0, 5), (0.5, 5), pytest.param(2.0, 7, marks=pytest.mark.slow)]
)
def test_f_bound_holds_for_every_distribution_of_few_rows(b, n):
    # All sequences of rows that are positive or decided so, and a grid of their probabilities.
    sequences = np.array(list(itertools.product(range(3), repeat=n)))
    counts = np.stack([(sequences == code).sum(axis=1) for code in range(3)], axis=1)
    grid = np.array([(i, j, 20 - i - j) for i in range(21) for j in range(21 - i)]) / 20.0
    false_positive, false_negative, hit = grid.T
    f = (1.0 + b**2) * hit / ((1.0 + b**2) * hit + b**2 * false_negative + false_positive)
    proba = (grid[:, None] ** counts).prod(axis=2)  # (grid, sequences)
    for alpha in (0.05, 0.4):
        if b == 1.0:  # a function of the counts
            found = {
                tuple(row): f_lower_bound(*Y_H[np.repeat(range(3), row)].T, 1.0 - alpha)
                for row in np.unique(counts, axis=0)
            }
            bounds = np.array([found[tuple(row)] for row in counts])
        else:
            bounds = [f_lower_bound(*Y_H[rows].T, 1.0 - alpha, beta=b) for rows in sequences]
        missed = (proba * (np.array(bounds) > f[:, None] + 1e-12)).sum(axis=1)
        assert missed.max() <= alpha + 1e-12
        assert missed.max() > 0.3 * alpha


def flat_rows(rng, n):
    """Draw probabilities, true labels and decisions."""
    p = rng.beta(0.5, 2.0, size=n)
    return p, rng.random(n) < p, p > 0.3


@pytest.mark.parametrize(("b", "n"), [(1.0, 200), (2.0, 200), (0.5, 2000)])
def test_f_bound_holds_and_is_close_to_the_normal_one(b, n):
    rng = np.random.default_rng(n)
    _, y, h = flat_rows(rng, 10**6)
    f = f_measure(y, h, b, average="binary")
    draws = [flat_rows(rng, n)[1:] for _ in range(300)]
    bounds = np.array([f_lower_bound(y, h, beta=b) for y, h in draws])
    own = np.array([f_measure(y, h, b, average="binary") for y, h in draws])
    assert (bounds > f).sum() <= most_misses(300, 0.05)
    assert 1.3 * own.std() < (own - bounds).mean() < 2.2 * own.std()


def test_f_bound_of_beta_near_1_tends_to_that_of_clopper_and_pearson():
    _, y, h = flat_rows(np.random.default_rng(0), 500)
    exact = f_lower_bound(y, h)
    assert exact - 0.01 < f_lower_bound(y, h, beta=1.0 + 1e-9) <= exact
    k, n = (y & h).sum(), (y | h).sum()
    q = beta.ppf(0.05, k, n - k + 1)
    assert exact == pytest.approx(2.0 * q / (1.0 + q))
    padded = [np.append(a, np.zeros(1000, bool)) for a in (y, h)]  # rows that say nothing
    assert f_lower_bound(*padded) == exact
    assert f_lower_bound(y & ~h, h) == 0.0
    assert f_lower_bound(np.zeros(5), np.zeros(5), beta=2.0) == 0.0


@pytest.mark.parametrize("b", [1.0, 2.0])
def test_answered_rows_of_a_flat_y_reach_the_target(b):
    rng = np.random.default_rng(0)
    everything = flat_rows(rng, 10**6)
    score, y, h = np.abs(everything[0] - 0.3), *everything[1:]
    missed, answered = 0, []
    for _ in range(200):
        p, *labels = flat_rows(rng, 600)
        found = f_abstention_threshold(np.abs(p - 0.3), *labels, 0.75, beta=b)
        rows = score >= found.threshold
        missed += rows.any() and f_measure(y[rows], h[rows], b, average="binary") < 0.75
        answered.append(found.answered)
        kept = np.abs(p - 0.3) >= found.threshold
        assert found.answered == kept.mean()
        if kept.any():
            own = f_measure(labels[0][kept], labels[1][kept], b, average="binary")
            assert found.mean_f == pytest.approx(own)
    assert missed <= most_misses(200, 0.05)
    assert np.mean(answered) > 0.1


def test_nothing_is_answered_without_a_row_that_counts():
    found = f_abstention_threshold([0.5, 0.6], [0, 0], [0, 0], 0.5)
    assert found[:2] == (math.inf, 0.0)


# Errors ------------------------------------------------------------------------------------------

FRACTION = "it must be a number greater than 0 and less than 1"


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (mean_lower_bound, ([0.5, 1.2],), r"values\[1\] is 1\.2: values must lie in \[0, 1\]"),
        (mean_lower_bound, ([-0.1],), r"values\[0\] is -0\.1: values must lie"),
        (mean_lower_bound, ([0.5, math.nan],), r"values\[1\] is nan: values must lie"),
        (mean_lower_bound, ([[0.5]],), r"values has shape \(1, 1\): it must have 1 dim.* \(row\)"),
        (mean_lower_bound, ([],), "values is empty: a bound needs at least one value"),
        *(
            (function, (*arguments, value), f"{name} is {float(value)}: {FRACTION}")
            for value in (0.0, 1.0, 95, -0.1, math.nan)
            for function, arguments, name in (
                (mean_lower_bound, ([0.5],), "confidence"),
                (abstention_threshold, ([0.5], [0.5], 0.5), "confidence"),
                (abstention_threshold, ([0.5], [0.5]), "target"),
                (f_abstention_threshold, ([0.5, 0.6], [0, 1], [0, 1]), "target"),
            )
        ),
        (mean_lower_bound, ([0.5], "0.95"), f"confidence is '0.95': {FRACTION}"),
        (abstention_threshold, ([1, 2, 3], [0.5, 0.5], 0.5), "f has 2 rows and expected_f has 3"),
        (abstention_threshold, ([0, math.nan], [1, 1], 0.5), r"expected_f\[1\] is nan: .* finite"),
        (abstention_threshold, ([0.1, 0.2], [0.5, 2.0], 0.5), r"f\[1\] is 2\.0: values must lie"),
        (abstention_threshold, ([], [], 0.5), "expected_f has no rows: a test needs at least one"),
        (f_lower_bound, ([0, 1], [0, 0.5]), "labels.* is 0.5: labels must be 0 or 1"),
        (f_abstention_threshold, ([0.5], [0, 1], [0, 1], 0.5), "y has 2 rows and score has 1"),
        (f_abstention_threshold, ([0, math.nan], [0, 1], [0, 1], 0.5), r"score\[1\] is nan: it"),
    ],
)
def test_invalid_arguments_raise(function, arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        function(*arguments)
