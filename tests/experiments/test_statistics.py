"""Paired t-test, Holm's correction and scores of factors, against scipy and by hand."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose
from scipy import stats

from fgfm.experiments._statistics import holm, paired_t_test, score_factors


def test_paired_t_test_agrees_with_scipy():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 30))
    test = paired_t_test(a - b)
    expected = stats.ttest_rel(a, b)
    assert_allclose(test.p_value, expected.pvalue)
    assert_allclose([test.low, test.high], expected.confidence_interval(0.95))


def test_paired_t_test_of_equal_differences():
    assert paired_t_test(np.zeros(5)).p_value == 1.0
    assert np.isnan(paired_t_test(np.ones(1)).p_value)
    assert np.isnan(paired_t_test(np.ones(2)).p_value)


def test_holm_multiplies_by_the_number_of_remaining_tests():
    assert_allclose(holm([0.01, 0.04, 0.03]), [0.03, 0.06, 0.06])
    assert_allclose(holm([0.5, float("nan"), 0.4]), [0.8, float("nan"), 0.8])
    assert holm([]) == []


def test_factors_are_scored_by_pairs_of_labels():
    true = [[0, 1], [2, 3]]
    assert score_factors([[0, 1, 2], [3]], true) == (1 / 3, 1 / 2, False)
    assert score_factors([[3], [2], [1], [0]], true) == (1.0, 0.0, False)
    assert score_factors([[3, 2], [1, 0]], true) == (1.0, 1.0, True)
