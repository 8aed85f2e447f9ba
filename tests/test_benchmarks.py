"""The rivals of the benchmarks: a ratio means something only if both sides solve the problem."""

from __future__ import annotations

import numpy as np
import pytest

from fgfm import cardinality, decision

rivals = pytest.importorskip("benchmarks.rivals", reason="benchmarks/ is not beside the tests")


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
