"""`from_samples` against enumeration."""

from __future__ import annotations

import numpy as np
import pytest

import oracle
from cases import every_beta, every_option
from fgfm import decision


@every_beta
@every_option
def test_decision_is_optimal(beta, zero_division, nonempty):
    rng = np.random.default_rng(5)
    samples = (rng.random((6, 9, 5)) < rng.random((6, 1, 5))).astype(np.int64)
    samples[0, :5] = 0
    samples[1, :, 2:] = 0
    kwargs = {"beta": beta, "zero_division": zero_division, "nonempty": nonempty}
    labels, expected_f = decision.from_samples(samples, **kwargs)
    for row, draws in enumerate(samples):
        decided = labels[[row]], expected_f[[row]]
        oracle.check_decision(decided, (draws, np.full((1, 9), 1 / 9)), **kwargs)


@pytest.mark.parametrize("T", [3, 7, 10, 49, 50, 100, 1000])
def test_equal_draws_are_decided_with_certainty(T):
    """T times 1 / T is not always 1 in floating point."""
    labels, expected_f = decision.from_samples(np.tile([1, 0, 1], (2, T, 1)))
    np.testing.assert_array_equal(labels, [[1, 0, 1]] * 2)
    np.testing.assert_allclose(expected_f, 1.0, rtol=1e-13)
