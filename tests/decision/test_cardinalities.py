"""`from_cardinalities`, `from_samples`, `from_joint`: against enumeration, and special cases."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import oracle
from cases import every_beta, every_option
from fgfm import cardinality, decision

SETS = oracle.all_labelsets(7)[np.random.default_rng(6).permutation(128)[:30]]
SETS[:3] = [[0] * 7, [1] * 7, [1] * 7]  # the empty set, and one set twice
WEIGHTS = np.random.default_rng(6).dirichlet(np.full(30, 0.2), size=10)
DRAWS = np.random.default_rng(5).random((6, 9, 5)) < np.random.default_rng(4).random((6, 1, 5))
DRAWS[0, :5] = 0
DRAWS[1, :, 2:] = 0


@every_beta
@every_option
def test_decision_is_optimal(beta, zero_division, nonempty):
    options = {"beta": beta, "zero_division": zero_division, "nonempty": nonempty}
    for m in (1, 2, 3, 5, 8, 10):
        joint = oracle.random_joint(np.random.default_rng(m), 4, m)
        P = oracle.cardinality_matrix(*joint)
        oracle.check_decision(decision.from_cardinalities(P, **options), joint, **options)
    decided = decision.from_joint(SETS, WEIGHTS, **options)
    oracle.check_decision(decided, (SETS, WEIGHTS), **options)
    again = decision.from_joint(sparse.csr_array(SETS), WEIGHTS, **options)
    np.testing.assert_array_equal(again.labels, decided.labels)
    np.testing.assert_array_equal(again.expected_f, decided.expected_f)
    labels, expected_f = decision.from_samples(DRAWS, **options)
    for row, draws in enumerate(DRAWS.astype(np.int64)):
        decided = labels[[row]], expected_f[[row]]
        oracle.check_decision(decided, (draws, np.full((1, 9), 1 / 9)), **options)


@pytest.mark.parametrize("T", [3, 7, 10, 49, 50, 100, 1000])
def test_equal_draws_are_decided_with_certainty(T):
    """T times 1 / T is not always 1 in floating point."""
    labels, expected_f = decision.from_samples(np.tile([1, 0, 1], (2, T, 1)))
    np.testing.assert_array_equal(labels, [[1, 0, 1]] * 2)
    np.testing.assert_allclose(expected_f, 1.0, rtol=1e-13)


def test_label_in_every_set_is_decided():
    labelsets = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1]])
    proba = np.random.default_rng(21).dirichlet(np.ones(3), size=300)
    oracle.check_decision(decision.from_joint(labelsets, proba), (labelsets, proba))


@every_beta
@pytest.mark.parametrize("S", [1, 2, 4])
def test_depth_may_be_smaller_than_the_number_of_labels(S, beta):
    """No set has more than S labels, so that P needs no more columns."""
    labelsets = oracle.all_labelsets(6)
    labelsets = labelsets[labelsets.sum(axis=1) <= S]
    proba = np.random.default_rng(S).dirichlet(np.ones(len(labelsets)), size=8)
    P = oracle.cardinality_matrix(labelsets, proba)
    assert not P[:, :, S:].any()
    decided = decision.from_cardinalities(P[:, :, :S], beta=beta)
    oracle.check_decision(decided, (labelsets, proba), beta=beta)
    full = decision.from_cardinalities(P, beta=beta)
    np.testing.assert_array_equal(full.labels, decided.labels)
    np.testing.assert_allclose(full.expected_f, decided.expected_f, rtol=1e-13)


@every_beta
@pytest.mark.parametrize("m", [2, 9, 30])
def test_labels_of_an_optimal_set_satisfy_the_bound_of_the_gpu_kernel(m, beta):
    """V / (1 + b) <= p_j / (b + 2) + sqrt(r p_j), where r = max_k M_k / (b + 1 + k)."""
    p = np.random.default_rng(m).random((2, 200, m)) ** np.array([[[3.0]], [[12.0]]])
    P = (cardinality.of_marginals(p[0]) + cardinality.of_marginals(p[1])) / 2  # dependent
    labels, value = decision.from_cardinalities(P, beta=beta, zero_division=0.0)
    p, b = P.sum(axis=2), beta**2
    M = np.sort(p, axis=1)[:, ::-1].cumsum(axis=1)
    r = (M / (b + 1 + np.arange(1, m + 1))).max(axis=1)
    bound = (1 + b) * (p / (b + 2) + np.sqrt(r[:, None] * p))
    assert (bound * (1 + 1e-12) >= value[:, None])[labels == 1].all()
    assert (bound < value[:, None]).any()  # labels that it discards


def test_scale_of_tiny_values_does_not_matter():
    rng = np.random.default_rng(23)
    P = rng.random((5, 40, 5))
    P /= (P.sum(axis=1, keepdims=True) / np.arange(1, 6)).sum(axis=2, keepdims=True)
    reference = decision.from_cardinalities(P, nonempty=True)
    for scale in (1e-20, 1e-150, 1e-170, 1e-290):
        scaled = decision.from_cardinalities(P * scale, nonempty=True)
        np.testing.assert_array_equal(scaled.labels, reference.labels)
        np.testing.assert_allclose(scaled.expected_f, reference.expected_f, rtol=1e-10)


# Errors of published implementations -------------------------------------------------------------


def test_beta_is_squared():
    """F_beta of {0} for y = {0, 1} is (1 + b^2) / (2 b^2 + 1): at b = 2 that is 5/9, not 3/5."""
    P = np.zeros((1, 2, 2))
    P[0, 0, 1] = 1.0  # two labels for certain; P omits the second, and is incoherent on purpose
    decided = decision.from_cardinalities(P, distribution=[[0.0, 0.0, 1.0]], beta=2.0)
    np.testing.assert_array_equal(decided.labels, [[1, 0]])
    assert decided.expected_f[0] == pytest.approx(5 / 9, rel=1e-14)


# A separate distribution -------------------------------------------------------------------------


def test_distribution_need_not_agree_with_the_matrix():
    """As in the paper, where d comes from a model of its own."""
    P = np.array([[[0.5, 0.3], [0.5, 0.1]]])  # implies d_1 = 1.0 and d_2 = 0.2
    with pytest.raises(ValueError, match=r"P\[0\] implies d_0 = -0\.2"):
        decision.from_cardinalities(P)
    d = np.array([[0.1, 0.6, 0.3]])
    labels, expected_f = decision.from_cardinalities(P, distribution=d)
    delta_2 = 2.0 * (P[0] @ [1 / 3, 1 / 4])
    np.testing.assert_array_equal(labels, [[1, 1]])
    assert expected_f[0] == pytest.approx(delta_2.sum(), rel=1e-13)


def test_distribution_determines_the_value_of_the_empty_set():
    P = np.array([[[0.3], [0.2]]])
    assert decision.from_cardinalities(P, distribution=[[0.2, 0.8]]).labels.any()
    assert not decision.from_cardinalities(P, distribution=[[0.9, 0.1]]).labels.any()
