"""Functions that must agree on the same distribution, and invariances of all of them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import oracle
from cases import assert_same_decision, every_beta
from fgfm import cardinality, decision


@every_beta
@pytest.mark.parametrize("m", [3, 20, 90])
def test_independent_labels_as_marginals_factors_and_cardinalities(m, beta):
    p = np.random.default_rng(m).random((5, m)) ** np.array([[1], [2], [4], [8], [16]])
    factors = [[i] for i in range(m)]
    Ps = [p[:, [i], None] for i in range(m)]
    reference = decision.from_marginals(p, beta=beta)
    assert_same_decision(reference, decision.from_factors(Ps, factors, beta=beta))
    d = [np.stack([1.0 - p[:, i], p[:, i]], axis=1) for i in range(m)]
    assert_same_decision(reference, decision.from_factors(Ps, factors, distributions=d, beta=beta))
    P = cardinality.of_marginals(p)
    assert_same_decision(reference, decision.from_cardinalities(P, beta=beta))
    merged = cardinality.merge_factors(Ps, factors)
    assert_same_decision(reference, decision.from_cardinalities(merged.P, beta=beta))
    pairs = [[i, i + 1] for i in range(0, m - 1, 2)] + ([[m - 1]] if m % 2 else [])
    P_pairs = [cardinality.of_marginals(p[:, pair]) for pair in pairs]
    assert_same_decision(reference, decision.from_factors(P_pairs, pairs, beta=beta))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["many expected", "long tail", "all alike", "tiny"])
def test_a_thousand_independent_labels(kind):
    """Underflow: with 500 expected labels, P(s = 0) is far below the smallest float."""
    rng = np.random.default_rng(9)
    p = {
        "many expected": rng.random((2, 1000)),
        "long tail": rng.random((2, 1000)) ** 20,
        "all alike": np.full((2, 1000), 0.004),
        "tiny": rng.random((2, 1000)) * 1e-300,
    }[kind]
    kwargs = {"zero_division": 0.0} if kind == "tiny" else {}
    reference = decision.from_marginals(p, **kwargs)
    blocks = [list(range(i, i + 4)) for i in range(0, 1000, 4)]
    P_blocks = [cardinality.of_marginals(p[:, block]) for block in blocks]
    assert_same_decision(reference, decision.from_factors(P_blocks, blocks, **kwargs))
    mixed = blocks[:50] + [[i] for i in range(200, 1000)]
    P_mixed = P_blocks[:50] + [p[:, [i], None] for i in range(200, 1000)]
    assert_same_decision(reference, decision.from_factors(P_mixed, mixed, **kwargs))
    P = cardinality.of_marginals(p)
    assert_same_decision(reference, decision.from_cardinalities(P, **kwargs))
    for row in range(2):
        empty = float(np.exp(np.log1p(-p[row]).sum()))
        labels, value = oracle.gfm(P[row], empty, **kwargs)
        assert reference.expected_f[row] == pytest.approx(value, rel=1e-11)
        np.testing.assert_array_equal(reference.labels[row], labels)
        value = max(oracle.independent_values(p[row]).max(), 0.0 if kwargs else empty)
        assert reference.expected_f[row] == pytest.approx(value, rel=1e-11)


@pytest.mark.parametrize("m", [40, 100, 300, 1000])
@pytest.mark.parametrize("scale", [1e-10, 1e-17, 1e-100, 1e-280, 1e-300])
@pytest.mark.parametrize("equal", [False, True])
def test_scale_of_tiny_probabilities_does_not_matter(m, scale, equal):
    """Given that one label is present, only the ratios of the probabilities count."""
    rng = np.random.default_rng(m)
    shares = np.ones((2, m)) if equal else rng.random((2, m)) ** 4
    expected = decision.from_joint(
        np.eye(m, dtype=int), shares / shares.sum(axis=1, keepdims=True)
    )
    rtol = max(1e-11, 10 * scale * m)
    labels, expected_f = decision.from_marginals(shares * scale, nonempty=True)
    np.testing.assert_allclose(expected_f, expected.expected_f, rtol=rtol)
    np.testing.assert_array_equal(labels, expected.labels)
    sparse_labels, _ = decision.from_marginals(sparse.csr_array(shares * scale), nonempty=True)
    np.testing.assert_array_equal(sparse_labels.toarray(), labels)
    P = (shares * scale)[:, :, None]
    decided = decision.from_cardinalities(P / 2, nonempty=True)
    np.testing.assert_array_equal(decided.labels, expected.labels)
    np.testing.assert_allclose(decided.expected_f, expected.expected_f, rtol=rtol)
    halves = [np.arange(m // 2), np.arange(m // 2, m)]
    decided = decision.from_factors([P[:, half] for half in halves], halves, nonempty=True)
    np.testing.assert_array_equal(decided.labels, expected.labels)


def test_permuted_labels_give_permuted_decisions():
    rng = np.random.default_rng(11)
    p = rng.random((20, 40)) ** 3
    order = rng.permutation(40)
    reference = decision.from_marginals(p)
    permuted = decision.from_marginals(p[:, order])
    np.testing.assert_array_equal(permuted.labels, reference.labels[:, order])
    np.testing.assert_allclose(permuted.expected_f, reference.expected_f, rtol=1e-13)
    P = cardinality.of_marginals(p[:5])
    reference = decision.from_cardinalities(P)
    permuted = decision.from_cardinalities(P[:, order])
    np.testing.assert_array_equal(permuted.labels, reference.labels[:, order])
    np.testing.assert_allclose(permuted.expected_f, reference.expected_f, rtol=1e-13)


@every_beta
@pytest.mark.parametrize("nonempty", [False, True])
def test_impossible_labels_change_nothing(beta, nonempty):
    p = np.random.default_rng(14).random((10, 8)) ** 2
    padded = np.zeros((10, 30))
    padded[:, 5:13] = p
    kwargs = {"beta": beta, "nonempty": nonempty}
    plain = decision.from_marginals(p, **kwargs)
    wide = decision.from_marginals(padded, **kwargs)
    np.testing.assert_array_equal(wide.labels[:, 5:13], plain.labels)
    assert wide.labels.sum() == plain.labels.sum()
    np.testing.assert_allclose(wide.expected_f, plain.expected_f, rtol=1e-13)
    P = cardinality.of_marginals(p)
    P_padded = np.zeros((10, 11, 10))
    P_padded[:, 2:10, :8] = P
    plain = decision.from_cardinalities(P, **kwargs)
    wide = decision.from_cardinalities(P_padded, **kwargs)
    np.testing.assert_array_equal(wide.labels[:, 2:10], plain.labels)
    np.testing.assert_allclose(wide.expected_f, plain.expected_f, rtol=1e-13)


def test_expected_f_lies_in_the_unit_interval():
    rng = np.random.default_rng(24)
    for k in range(200):
        p = rng.random((3, 6)) ** rng.integers(1, 9)
        p[rng.random((3, 6)) < 0.3] = rng.integers(0, 2)
        draws = (rng.random((3, 30, 6)) < p[:, None]).astype(int)
        for _, expected_f in (
            decision.from_marginals(p, beta=1 + k % 3),
            decision.from_samples(draws),
            decision.from_cardinalities(cardinality.of_samples(draws)),
        ):
            assert (expected_f >= 0.0).all()
            assert (expected_f <= 1.0 + 1e-12).all()
