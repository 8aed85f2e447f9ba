"""Ranks, Friedman test, critical differences and bootstrap, against published values and scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from benchmarks.real.statistics import (
    bootstrap_means,
    critical_difference,
    friedman,
    groups_within,
    interval,
    ranks,
)

# Demsar (2006), table 6: AUC of C4.5 with and without two parameters tuned, 14 data sets.
DEMSAR = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9751, 0.9750],  # printed as equal, but with different ranks
        [0.957, 0.978, 0.946, 0.970],
    ]
)


def test_published_ranks_and_critical_difference():
    assert_allclose(ranks(DEMSAR).mean(axis=0), [3.143, 2.000, 2.893, 1.964], atol=5e-4)
    assert_allclose(critical_difference(4, 14), 1.25, atol=5e-3)
    assert_allclose(critical_difference(4, 14, 0.1), 1.12, atol=5e-3)


@pytest.mark.parametrize(
    ("k", "q"),
    [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (6, 2.850), (8, 3.031), (10, 3.164)],
)
def test_published_critical_values(k, q):
    assert_allclose(critical_difference(k, 1) / math.sqrt(k * (k + 1) / 6.0), q, atol=1.5e-3)


def test_friedman_agrees_with_scipy():
    expected = stats.friedmanchisquare(*DEMSAR.T)
    assert_allclose(friedman(ranks(DEMSAR)), (expected.statistic, expected.pvalue), rtol=1e-9)
    assert math.isnan(friedman(ranks(np.ones((3, 2)))).p_value)


def test_missing_scores_share_the_last_ranks():
    table = np.array([[0.5, np.nan, 0.6, np.nan], [np.nan] * 4])
    assert_array_equal(ranks(table), [[2, 3.5, 1, 3.5], [2.5] * 4])


def test_groups_are_maximal():
    assert groups_within(np.array([1.0, 2.0, 3.0, 3.5, 9.0]), 1.6) == [(0, 1), (1, 3)]
    assert groups_within(np.array([1.0, 3.0]), 1.0) == []


def test_bootstrap_means_of_binary_values_are_binomial():
    values = np.repeat([0.0, 1.0], [60, 40])
    means = bootstrap_means(values, 20000, np.random.default_rng(0))
    assert_allclose(interval(means), stats.binom(100, 0.4).ppf([0.025, 0.975]) / 100, atol=0.011)
    assert_allclose(means.std(), math.sqrt(0.4 * 0.6 / 100), rtol=0.03)
    assert_array_equal(bootstrap_means(np.full(7, 0.25), 5, np.random.default_rng(0)), [0.25] * 5)
