"""The benchmarks: a ratio means something only if both sides solve the problem.

And data that are drawn for them must be what they are said to be.
"""

from __future__ import annotations

import numpy as np
import pytest

from fgfm import cardinality, decision

rivals = pytest.importorskip("benchmarks.rivals", reason="benchmarks/ is not beside the tests")
independence = pytest.importorskip("benchmarks.independence")
recovery = pytest.importorskip("benchmarks.recovery")


@pytest.mark.parametrize("power", [1, 3, 9])
def test_recursion(power):
    p = np.random.default_rng(power).random((5, 30)) ** power
    labels, expected_f = decision.from_marginals(p)
    for row in range(5):
        choice = rivals.ye_recursion(p[row])
        assert choice.expected_f == pytest.approx(expected_f[row], rel=1e-11)
        np.testing.assert_array_equal(choice.labels, np.flatnonzero(labels[row]))


@pytest.mark.parametrize("tuned", [False, True])
def test_algorithm_1(tuned):
    rng = np.random.default_rng(8)
    sizes = [4, 1, 3, 4, 2]
    factors = [part.tolist() for part in np.split(rng.permutation(14), np.cumsum(sizes)[:-1])]
    Ps = [cardinality.from_marginals(rng.random((4, size)) ** 2) for size in sizes]
    labels, expected_f = decision.from_factors(Ps, factors)
    for row in range(4):
        choice = rivals.algorithm_1_and_gfm([P[row] for P in Ps], factors, tuned=tuned)
        assert choice.expected_f == pytest.approx(expected_f[row], rel=1e-11)
        np.testing.assert_array_equal(choice.labels, np.flatnonzero(labels[row]))


def test_recovery_improves_with_rows():
    few, many = (recovery.recovery("4+4", "auto", n, 2)[1] for n in (50, 5000))
    assert few.correction == many.correction == "bonferroni"
    assert few.recall < many.recall == 1.0
    assert 0.0 <= few.exact <= few.precision <= 1.0


@pytest.mark.parametrize("count", [1, 4, 16, 64])
@pytest.mark.parametrize("n", [200, 1000])
def test_g_tests_in_strata_keep_their_level(count, n):
    """By the exact variance; the mean alone is too careful, the textbook's rule too bold."""
    rows = {row.test: row for row in independence.calibration_in_strata(count, n, 20)}
    error = np.sqrt(np.array([0.01, 0.05]) * [0.99, 0.95] / rows["moments"].pairs)
    assert np.all(np.abs(np.array(rows["moments"].rates) - [0.01, 0.05]) < 4.0 * error)
    if (count, n) == (64, 200):
        assert rows["mi"].rates[1] < 0.05 - 4.0 * error[1]
        assert rows["g"].rates[1] > 0.05 + 4.0 * error[1]
