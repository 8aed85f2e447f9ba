"""P and d of all labels from those of independent factors."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cardinality_checks import close
from fgfm import cardinality
from oracle import cardinality_distribution, cardinality_matrix, product_joint, random_joint

SETTINGS = settings(deadline=None, max_examples=40, derandomize=True)
seeds = st.integers(0, 2**32 - 1)


def random_partition(rng, m):
    """Split the labels, in random order, into factors of one to three."""
    labels = rng.permutation(m)
    cuts, at = [], 0
    while at < m:
        size = int(rng.integers(1, 4))
        cuts.append(labels[at : at + size].tolist())
        at += size
    return cuts


# merge_factors


@SETTINGS
@given(seeds, st.integers(0, 3), st.integers(1, 7))
def test_merge_factors_agrees_with_enumeration(seed, n, m):
    rng = np.random.default_rng(seed)
    factors = random_partition(rng, m)
    joints = [random_joint(rng, n, len(factor)) for factor in factors]
    Ps = [cardinality.of_joint(*joint) for joint in joints]
    whole = product_joint(joints, factors)
    merged = cardinality.merge_factors(Ps, factors)
    assert merged.P.shape == (n, m, m)
    close(merged.P, cardinality.of_joint(*whole), atol=1e-14)
    close(merged.d, cardinality_distribution(*whole), atol=1e-14)

    order = rng.permutation(len(factors))
    shuffled = cardinality.merge_factors([Ps[f] for f in order], [factors[f] for f in order])
    close(shuffled.P, merged.P, atol=1e-14)
    close(shuffled.d, merged.d, atol=1e-14)

    ds = [cardinality_distribution(*joint) for joint in joints]
    given_d = cardinality.merge_factors(Ps, factors, ds)
    close(given_d.P, merged.P, atol=1e-14)
    close(given_d.d, merged.d, atol=1e-14)


def test_merge_of_single_labels_agrees_with_of_marginals():
    p = np.random.default_rng(8).random((3, 9))
    merged = cardinality.merge_factors(
        [p[:, i, None, None] for i in range(9)], np.arange(9)[:, None]
    )
    close(merged.P, cardinality.of_marginals(p), rtol=1e-12)


def test_merge_of_factors_with_fewer_cardinalities_than_labels():
    # the largest sets of the factors have 1, 2 and 1 labels
    rng = np.random.default_rng(9)
    one = np.array([[0, 0, 0], [1, 0, 0], [0, 0, 1]])
    two = np.array([[0, 0], [1, 1]])
    joints = [
        (sets, rng.dirichlet(np.ones(len(sets)), size=4))
        for sets in (one, two, np.array([[0], [1]]))
    ]
    factors = [[5, 1, 3], [0, 4], [2]]
    merged = cardinality.merge_factors([cardinality.of_joint(*j) for j in joints], factors)
    assert merged.P.shape == (4, 6, 4)
    assert merged.d.shape == (4, 5)
    P = cardinality_matrix(*product_joint(joints, factors))
    close(merged.P, P[:, :, :4])
    np.testing.assert_array_equal(P[:, :, 4:], 0.0)


def test_merge_uses_given_distributions_unchanged():
    Ps = [np.full((1, 1, 1), 0.5), np.full((1, 1, 1), 0.25)]
    merged = cardinality.merge_factors(Ps, [[0], [1]], [[[0.4, 0.6]], [[0.9, 0.1]]])
    close(merged.P, [[[0.5 * 0.9, 0.5 * 0.1], [0.25 * 0.4, 0.25 * 0.6]]])
    close(merged.d, [[0.36, 0.04 + 0.54, 0.06]])


# merge_distributions


def distributions_by_loops(ds):
    """Convolve the distributions, one number at a time."""
    n = len(ds[0])
    total = np.ones((n, 1))
    for d in ds:
        longer = np.zeros((n, total.shape[1] + d.shape[1] - 1))
        for r in range(n):
            for a in range(total.shape[1]):
                for b in range(d.shape[1]):
                    longer[r, a + b] += total[r, a] * d[r, b]
        total = longer
    return total


@SETTINGS
@given(seeds)
def test_merge_distributions_agrees_with_loops(seed):
    rng = np.random.default_rng(seed)
    ds = [
        rng.dirichlet(np.ones(int(rng.integers(1, 5))), size=3)
        for _ in range(int(rng.integers(1, 8)))
    ]
    merged = cardinality.merge_distributions(ds)
    np.testing.assert_allclose(merged, distributions_by_loops(ds), rtol=1e-12, atol=1e-16)
    np.testing.assert_allclose(merged.sum(axis=1), 1.0, rtol=1e-12)


def test_merged_distribution_agrees_with_enumeration():
    rng = np.random.default_rng(1)
    joints = [random_joint(rng, 4, m) for m in (2, 1, 3)]
    factors = [[3, 0], [5], [1, 2, 4]]
    ds = [cardinality_distribution(*joint) for joint in joints]
    expected = cardinality_distribution(*product_joint(joints, factors))
    np.testing.assert_allclose(cardinality.merge_distributions(ds), expected, rtol=1e-12)
    Ps = [cardinality_matrix(*joint) for joint in joints]
    np.testing.assert_allclose(
        cardinality.merge_distributions(ds), cardinality.merge_factors(Ps, factors).d, rtol=1e-12
    )


def test_merged_distribution_of_equal_labels_is_binomial():
    merged = cardinality.merge_distributions([np.full((2, 2), 0.5)] * 40)
    expected = [math.comb(40, s) / 2**40 for s in range(41)]
    np.testing.assert_allclose(merged, [expected] * 2, rtol=1e-12)
