"""`from_factors` on dense arrays: against enumeration, and invariances."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from cases import assert_same_decision, every_beta, every_option, random_factors
from fgfm import cardinality, decision


@every_beta
@every_option
@pytest.mark.parametrize(
    "sizes", [[1], [3], [1, 1, 1], [2, 3], [1, 4, 2], [5, 1, 1, 1], [2, 2, 2, 2], [1, 1, 7]]
)
def test_decision_is_optimal(sizes, beta, zero_division, nonempty):
    joints, factors, Ps = random_factors(np.random.default_rng(len(sizes)), 4, sizes)
    kwargs = {"beta": beta, "zero_division": zero_division, "nonempty": nonempty}
    decided = decision.from_factors(Ps, factors, **kwargs)
    oracle.check_decision(decided, oracle.product_joint(joints, factors), **kwargs)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=4).filter(
        lambda sizes: sum(sizes) <= 8
    ),
    beta=st.floats(0.1, 10.0),
    concentration=st.sampled_from([0.02, 0.3, 2.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_decision_is_optimal(sizes, beta, concentration, seed):
    rng = np.random.default_rng(seed)
    factors = np.split(rng.permutation(sum(sizes)), np.cumsum(sizes)[:-1])
    joints = []
    for size in sizes:
        sets = oracle.all_labelsets(size)
        joints.append((sets, rng.dirichlet(np.full(len(sets), concentration), size=2)))
    Ps = [oracle.cardinality_matrix(*joint) for joint in joints]
    labels, expected_f = decision.from_factors(Ps, factors, beta=beta)
    value = oracle.expected_f(oracle.product_joint(joints, factors), beta, 1.0, False)
    chosen = value[[0, 1], labels @ (1 << np.arange(sum(sizes))[::-1])]
    np.testing.assert_allclose(expected_f, value.max(axis=1), rtol=1e-11)
    np.testing.assert_allclose(chosen, value.max(axis=1), rtol=1e-11)


def test_labels_of_equal_factors_are_chosen_by_index():
    """Four copies of one factor: ties are broken by the label index, not by rounding."""
    joint = oracle.random_joint(np.random.default_rng(3), 5, 2)
    P = oracle.cardinality_matrix(*joint)
    for factors in ([[0, 1], [2, 3], [4, 5], [6, 7]], [[7, 6], [3, 2], [5, 4], [1, 0]]):
        decided = decision.from_factors([P] * 4, factors)
        oracle.check_decision(decided, oracle.product_joint([joint] * 4, factors))


@every_beta
@pytest.mark.parametrize("sizes", [[4] * 10, [1] * 30 + [6, 3], [25, 1, 12], [2, 1] * 8])
def test_decision_is_that_of_the_merged_factors(sizes, beta):
    rng = np.random.default_rng(len(sizes))
    factors = np.split(rng.permutation(sum(sizes)), np.cumsum(sizes)[:-1])
    Ps = []
    for size in sizes:
        sets = (rng.random((12, size)) < rng.random(size) ** 2).astype(int)
        Ps.append(cardinality.of_joint(sets, rng.dirichlet(np.ones(12), size=4)))
    merged = cardinality.merge_factors(Ps, factors)
    decided = decision.from_factors(Ps, factors, beta=beta)
    assert_same_decision(decided, decision.from_cardinalities(merged.P, beta=beta))
    for row in range(4):
        labels, value = oracle.gfm(merged.P[row], merged.d[row, 0], beta)
        assert decided.expected_f[row] == pytest.approx(value, rel=1e-11)
        np.testing.assert_array_equal(decided.labels[row], labels)


def test_order_of_factors_and_of_their_labels_does_not_matter():
    rng = np.random.default_rng(12)
    _, factors, Ps = random_factors(rng, 6, [3, 1, 4, 2, 1])
    reference = decision.from_factors(Ps, factors)
    for _ in range(5):
        order = rng.permutation(5)
        permuted = decision.from_factors([Ps[f] for f in order], [factors[f] for f in order])
        assert_same_decision(reference, permuted, rtol=1e-13)
        inside = [rng.permutation(len(factor)) for factor in factors]
        permuted = decision.from_factors(
            [P[:, at] for P, at in zip(Ps, inside, strict=True)],
            [np.array(factor)[at] for factor, at in zip(factors, inside, strict=True)],
        )
        assert_same_decision(reference, permuted, rtol=1e-13)


@every_beta
def test_factor_of_independent_parts_may_be_split(beta):
    rng = np.random.default_rng(13)
    _, factors, Ps = random_factors(rng, 6, [3, 2, 4])
    joined = cardinality.merge_factors(Ps[:2], [[0, 1, 2], [3, 4]]).P
    together = [factors[0] + factors[1], factors[2]]
    assert_same_decision(
        decision.from_factors(Ps, factors, beta=beta),
        decision.from_factors([joined, Ps[2]], together, beta=beta),
    )


# Separate distributions --------------------------------------------------------------------------


def test_distributions_need_not_agree_with_the_matrices():
    P = np.array([[[0.5, 0.3], [0.5, 0.1]]])  # implies d_1 = 1.0 and d_2 = 0.2
    d = np.array([[0.1, 0.6, 0.3]])
    merged = cardinality.merge_factors([P, P], [[0, 1], [2, 3]], distributions=[d, d])
    decided = decision.from_factors([P, P], [[0, 1], [2, 3]], distributions=[d, d])
    assert_same_decision(decided, decision.from_cardinalities(merged.P, distribution=merged.d))


def test_tiny_given_probability_of_no_label_is_kept():
    """It must not be computed as 1 minus the sum of the others, which is 0."""
    P, d = np.zeros((1, 1, 1)), np.array([[1e-17, 1.0]])
    decided = decision.from_factors([P, P], [[0], [1]], distributions=[d, d])
    assert decided.expected_f[0] == pytest.approx(1e-34, rel=1e-12, abs=0.0)


def test_probabilities_that_sum_to_more_than_1_by_rounding_are_no_smaller_sets():
    """For a large beta a set is as good as its recall: a bound must not cut it off."""
    P = np.array([[[1.0 / 3.0], [2.0 / 3.0]]], dtype=np.float32)  # sums to 1 + 3e-8
    labels, expected_f = decision.from_factors([P, 0.0 * P], [[0, 1], [2, 3]], beta=1e6)
    assert labels.tolist() == [[1, 1, 0, 0]]
    np.testing.assert_allclose(expected_f, 1.0, rtol=1e-6)
