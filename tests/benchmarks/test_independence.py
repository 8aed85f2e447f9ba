"""Benchmarks of the tests of independence."""

from __future__ import annotations

import numpy as np
import pytest

independence = pytest.importorskip(
    "benchmarks.independence", reason="benchmarks/ is not beside the tests"
)
side_by_side = pytest.importorskip("benchmarks.side_by_side")


def test_level_and_power_have_a_row_for_each_test():
    rows = independence.calibration("linear", 100, 1)
    assert {row.test for row in rows} >= {"gcm", "gcm, plain"}
    assert all(row.pairs == 66 and row.rates[0] <= row.rates[1] for row in rows)
    (found,) = (
        row for row in independence.power("constant_sign", 100, 1.0, 1) if row.test == "gcm"
    )
    assert found.rates == (1.0, 1.0)


def test_halves_are_separate_if_no_path_joins_them():
    edges = np.zeros((6, 6), dtype=bool)
    edges[0, 1] = edges[3, 5] = True
    assert side_by_side.separate_halves(edges, 3) == (True, 4)
    edges[1, 5] = True
    assert side_by_side.separate_halves(edges, 3) == (False, 3)
    X, Y = side_by_side.side_by_side(np.arange(8.0).reshape(4, 2), np.eye(4), 0)
    assert X.shape == (4, 4)
    assert sorted(X[:, 2]) == [0.0, 2.0, 4.0, 6.0]
    np.testing.assert_array_equal(Y[:, 4:], np.eye(4)[(X[:, 2] / 2).astype(int)])
