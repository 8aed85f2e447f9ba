"""`from_samples` and `from_joint` against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import oracle
from cases import every_beta, every_option
from fgfm import decision


@every_beta
@every_option
def test_decision_from_samples_is_optimal(beta, zero_division, nonempty):
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


@every_beta
@every_option
def test_decision_from_joint_is_optimal(beta, zero_division, nonempty):
    rng = np.random.default_rng(6)
    labelsets = oracle.all_labelsets(7)[rng.permutation(128)[:30]]
    labelsets[:3] = [[0] * 7, [1] * 7, [1] * 7]  # the empty set, and one set twice
    proba = rng.dirichlet(np.full(30, 0.2), size=10)
    kwargs = {"beta": beta, "zero_division": zero_division, "nonempty": nonempty}
    decided = decision.from_joint(labelsets, proba, **kwargs)
    oracle.check_decision(decided, (labelsets, proba), **kwargs)
    again = decision.from_joint(sparse.csr_array(labelsets), proba, **kwargs)
    np.testing.assert_array_equal(again.labels, decided.labels)
    np.testing.assert_array_equal(again.expected_f, decided.expected_f)


def test_label_in_every_set_is_decided():
    rng = np.random.default_rng(21)
    labelsets = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1]])
    proba = rng.dirichlet(np.ones(3), size=300)
    decided = decision.from_joint(labelsets, proba)
    oracle.check_decision(decided, (labelsets, proba))
