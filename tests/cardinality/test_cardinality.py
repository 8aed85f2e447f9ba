"""The P matrices against exhaustive enumeration, at the edges, and every refusal."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats

from fgfm import cardinality
from fgfm._utils import blocks as _blocks
from oracle import (
    all_labelsets,
    cardinality_distribution,
    cardinality_matrix,
    independent_joint,
    product_joint,
    random_joint,
)

SETTINGS = settings(deadline=None, max_examples=40)
seeds = st.integers(0, 2**32 - 1)


def close(actual, expected, rtol=1e-12, atol=1e-15):
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol)


def random_partition(rng, m):
    """Cut the labels, in a random order, into factors of one to three."""
    labels = rng.permutation(m)
    cuts, at = [], 0
    while at < m:
        size = int(rng.integers(1, 4))
        cuts.append(labels[at : at + size].tolist())
        at += size
    return cuts


def sums_to_s(P, d, tol=1e-12):
    """Assert sum_i p_is = s d_s."""
    s = np.arange(1, P.shape[2] + 1)
    np.testing.assert_allclose(P.sum(axis=1), s * d[:, 1:], rtol=tol, atol=0.0)


def exact_tilt(p, s):
    """Solve sum_i sigmoid(logit p_i + c) = s for 0 < p < 1 by plain bisection."""
    logit = [math.log(x) - math.log1p(-x) for x in p]
    low, high = -2000.0, 2000.0
    for _ in range(300):
        c = 0.5 * (low + high)
        total = math.fsum(0.5 * (1.0 + math.tanh(0.5 * (u + c))) for u in logit)
        low, high = (c, high) if total < s else (low, c)
    return [0.5 * (1.0 + math.tanh(0.5 * (u + c))) for u in logit]


# from_joint


@SETTINGS
@given(seeds, st.integers(0, 4), st.integers(1, 8))
def test_from_joint(seed, n, m):
    labelsets, proba = random_joint(np.random.default_rng(seed), n, m)
    expected = cardinality_matrix(labelsets, proba)
    P = cardinality.from_joint(labelsets, proba)
    assert P.dtype == np.float64
    assert P.shape == (n, m, m)
    close(P, expected)
    for form in ["csr", "csc", "coo"]:
        close(cardinality.from_joint(sparse.csr_array(labelsets).asformat(form), proba), expected)


def test_from_joint_stops_at_the_largest_set():
    labelsets = np.array([[0, 0, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 1, 0]])
    P = cardinality.from_joint(labelsets, [[0.1, 0.2, 0.3, 0.4]])
    close(P, [[[0, 0.6], [0.3, 0], [0, 0.6], [0, 0]]])  # one set is there twice
    nothing = cardinality.from_joint(np.zeros((1, 3), dtype=bool), np.ones((2, 1)))
    np.testing.assert_array_equal(nothing, np.zeros((2, 3, 1)))


def test_from_joint_removes_the_rounding_of_single_precision():
    rng = np.random.default_rng(0)
    labelsets, proba = random_joint(rng, 50, 6)
    P = cardinality.from_joint(labelsets, proba.astype(np.float32) * np.float32(1 + 3e-6))
    close(P, cardinality_matrix(labelsets, proba), rtol=1e-6)
    assert cardinality.is_coherent(P).all()
    close(cardinality.distribution(P).sum(axis=1), 1.0)


def test_from_joint_blocks(monkeypatch):
    labelsets, proba = random_joint(np.random.default_rng(1), 11, 4)
    whole = cardinality.from_joint(labelsets, proba)
    monkeypatch.setattr(_blocks, "BLOCK_BYTES", 560)  # three rows at a time
    close(cardinality.from_joint(labelsets, proba), whole, rtol=1e-15)
    proba[7] *= 1.5
    with pytest.raises(ValueError, match=r"proba\[7\] sums to 1.5: the probabilities of a row"):
        cardinality.from_joint(labelsets, proba)


def test_from_joint_refuses():
    sets = np.eye(3, dtype=int)
    third = np.full((2, 3), 1 / 3)
    with pytest.raises(
        ValueError, match=r"proba\[1\] sums to 0.75: the probabilities of a row mu"
    ):
        cardinality.from_joint(sets, [[0.5, 0.5, 0], [0.25, 0.25, 0.25]])
    with pytest.raises(ValueError, match=r"proba\[0, 1\] is -0.5: probabilities must lie in"):
        cardinality.from_joint(sets, [[1, -0.5, 0.5]])
    with pytest.raises(ValueError, match=r"proba\[0, 2\] is nan: probabilities must lie in"):
        cardinality.from_joint(sets, [[0.5, 0.5, np.nan]])
    with pytest.raises(
        ValueError, match="proba has 3 columns and labelsets has 2 rows: there mus"
    ):
        cardinality.from_joint(sets[:2], third)
    with pytest.raises(ValueError, match=r"labelsets\[1, 1\] is -1: labels must be 0 or 1"):
        cardinality.from_joint(np.diag([1, -1, 1]), third)
    with pytest.raises(ValueError, match=r"labelsets\[1, 1\] is 2: labels must be 0 or 1"):
        cardinality.from_joint(sparse.csc_array(np.diag([1, 2, 3])), third)
    with pytest.raises(
        ValueError, match=r"labelsets has shape \(0, 3\): it must have at least on"
    ):
        cardinality.from_joint(sets[:0], np.zeros((0, 1)))
    with pytest.raises(
        ValueError, match=r"labelsets has shape \(3, 0\): it must have at least on"
    ):
        cardinality.from_joint(sparse.csr_array((3, 0)), third)
    with pytest.raises(ValueError, match=r"labelsets has shape \(3,\): it must have 2 dimensions"):
        cardinality.from_joint([1, 0, 1], third)


# from_samples


@SETTINGS
@given(seeds, st.integers(0, 5), st.integers(1, 9), st.integers(1, 6))
def test_from_samples(seed, n, draws, m):
    rng = np.random.default_rng(seed)
    samples = rng.random((n, draws, m)) < rng.random((n, 1, 1))
    P = cardinality.from_samples(samples)
    expected = np.zeros((n, m, m))
    for r in range(n):
        expected[r] = cardinality_matrix(samples[r].astype(int), np.full((1, draws), 1 / draws))[0]
    S = max([1, *samples.sum(axis=2).ravel()])
    assert P.shape == (n, m, S)
    close(P, expected[:, :, :S])
    np.testing.assert_array_equal(expected[:, :, S:], 0.0)
    for dtype in [np.int8, np.float32]:
        np.testing.assert_array_equal(cardinality.from_samples(samples.astype(dtype)), P)


def test_from_samples_blocks(monkeypatch):
    samples = np.random.default_rng(2).integers(0, 2, size=(11, 5, 4))
    whole = cardinality.from_samples(samples)
    monkeypatch.setattr(_blocks, "BLOCK_BYTES", 560)
    np.testing.assert_array_equal(cardinality.from_samples(samples), whole)
    samples[8, 2, 1] = 3
    with pytest.raises(ValueError, match=r"samples\[8, 2, 1\] is 3: labels must be 0 or 1"):
        cardinality.from_samples(samples)


def test_from_samples_refuses():
    with pytest.raises(ValueError, match=r"samples\[0, 1, 0\] is nan: labels must be 0 or 1"):
        cardinality.from_samples([[[0.0, 1.0], [np.nan, 1.0]]])
    with pytest.raises(ValueError, match=r"samples has shape \(2, 3\): it must have 3 dimensions"):
        cardinality.from_samples(np.zeros((2, 3)))
    with pytest.raises(
        ValueError, match=r"samples has shape \(2, 0, 3\): it must have at least o"
    ):
        cardinality.from_samples(np.zeros((2, 0, 3)))


# from_marginals: independent labels


@SETTINGS
@given(seeds, st.integers(0, 4), st.integers(1, 8))
def test_independent_marginals(seed, n, m):
    rng = np.random.default_rng(seed)
    p = rng.random((n, m)) ** 4
    p[rng.random((n, m)) < 0.1] = 0.0
    p[rng.random((n, m)) < 0.1] = 1.0
    P = cardinality.from_marginals(p)
    assert P.shape == (n, m, m)
    close(P, cardinality_matrix(*independent_joint(p)), atol=1e-300)
    close(P, cardinality.from_joint(*independent_joint(p)), atol=1e-15)
    close(P.sum(axis=2), p)


def test_independent_marginals_keep_relative_accuracy_when_tiny():
    p = np.array([[1e-300, 1e-100, 0.25, 1 - 2.0**-50]])
    P = cardinality.from_marginals(p)
    close(P, cardinality_matrix(*independent_joint(p)), atol=0.0)
    assert P[0, 0, 1] == pytest.approx(0.75e-300, rel=1e-12)  # nothing was subtracted


def test_independent_marginals_of_many_labels():
    p = np.full((2, 200), 0.5)
    P = cardinality.from_marginals(p)
    s = np.arange(1, 201)
    close(P, np.broadcast_to(0.5 * stats.binom.pmf(s - 1, 199, 0.5), P.shape), rtol=1e-11)
    assert cardinality.is_coherent(P).all()


def test_independent_marginals_blocks(monkeypatch):
    p = np.random.default_rng(3).random((11, 5)).astype(np.float32)
    whole = cardinality.from_marginals(p)
    monkeypatch.setattr(_blocks, "BLOCK_BYTES", 960)  # three rows at a time
    np.testing.assert_array_equal(cardinality.from_marginals(p), whole)
    p[9, 2] = 1.2
    with pytest.raises(
        ValueError, match=r"proba\[9, 2\] is 1.2: probabilities must lie in \[0, 1"
    ):
        cardinality.from_marginals(p)


# from_marginals: tilted to a distribution of the number of labels


@SETTINGS
@given(seeds, st.integers(0, 3), st.integers(1, 8), st.booleans())
def test_tilted_marginals(seed, n, m, wide):
    rng = np.random.default_rng(seed)
    S = int(rng.integers(1, m + 1))
    p = 10.0 ** -rng.uniform(0, 300 if wide else 3, size=(n, m))
    d = rng.dirichlet(np.ones(S + 1), size=n)
    P = cardinality.from_marginals(p, d)
    assert P.shape == (n, m, S)
    sums_to_s(P, d)
    close(cardinality.distribution(P), d, atol=1e-14)
    assert cardinality.is_coherent(P, d).all()
    for r in range(n):
        for s in range(1, min(S, m - 1) + 1):
            # 1 - q of a plain solution is no better than rounding
            close(P[r, :, s - 1], d[r, s] * np.array(exact_tilt(p[r], s)), rtol=0, atol=1e-12)


def test_tilted_marginals_of_an_exchangeable_joint():
    rng = np.random.default_rng(4)
    m = 6
    weight = rng.dirichlet(np.ones(m + 1), size=3)  # (n, m + 1) of the number of labels
    labelsets = all_labelsets(m)
    size = labelsets.sum(axis=1)
    proba = weight[:, size] / np.array([math.comb(m, s) for s in size])
    P = cardinality.from_joint(labelsets, proba)
    d = cardinality.distribution(P)
    close(d, weight)
    close(cardinality.from_marginals(P.sum(axis=2), d), P)


def test_tilt_is_the_nearest_in_relative_entropy():
    p = np.array([0.9, 0.4, 0.1, 0.05])
    q = cardinality.from_marginals(p[None], [[0, 0, 1]])[0, :, 1]

    def entropy(q):
        return np.sum(q * np.log(q / p) + (1 - q) * np.log((1 - q) / (1 - p)))

    rng = np.random.default_rng(0)
    for _ in range(50):
        move = rng.normal(size=4)
        move -= move.mean()  # the sum stays 2
        other = q + 1e-3 * move
        assert entropy(other) > entropy(q)


@pytest.mark.parametrize(
    ("p", "s", "expected"),
    [
        ([0.0, 0.0, 0.0], 1, [1 / 3, 1 / 3, 1 / 3]),
        ([1.0, 1.0, 1.0], 2, [2 / 3, 2 / 3, 2 / 3]),
        ([0.5, 0.5, 0.0], 1, [0.5, 0.5, 0.0]),
        ([0.5, 0.3, 0.0], 2, [1.0, 1.0, 0.0]),
        ([0.5, 0.0, 0.0], 2, [1.0, 0.5, 0.5]),
        ([1.0, 0.4, 0.0], 1, [1.0, 0.0, 0.0]),
        ([1.0, 0.4, 0.0], 2, [1.0, 1.0, 0.0]),
        ([1.0, 0.4, 0.4], 2, [1.0, 0.5, 0.5]),
        ([1.0, 0.0, 0.0], 2, [1.0, 0.5, 0.5]),
        ([1.0, 1.0, 0.9], 1, [0.5, 0.5, 0.0]),
        ([0.2, 0.0, 1.0], 3, [1.0, 1.0, 1.0]),
        ([0.7, 0.7, 1e-300], 3, [1.0, 1.0, 1.0]),
        ([1e-300, 1e-300, 1e-300], 1, [1 / 3, 1 / 3, 1 / 3]),
        ([5e-324, 5e-324, 0.0], 1, [0.5, 0.5, 0.0]),  # tiny is not impossible
    ],
)
def test_tilt_at_the_edges(p, s, expected):
    d = np.zeros((1, 4))
    d[0, s] = 1.0
    P = cardinality.from_marginals([p], d)
    close(P[0, :, s - 1], expected, rtol=1e-13, atol=0.0)
    np.testing.assert_array_equal(np.delete(P, s - 1, axis=2), 0.0)


def test_tilt_balances_what_is_tiny():
    # 1 - q of the two likely labels and q of the unlikely one, both about 1e-150, must be equal
    P = cardinality.from_marginals([[0.5, 0.5, 1e-300]], [[0, 0, 1.0]])
    assert P[0, 2, 1] == pytest.approx(math.sqrt(2) * 1e-150, rel=1e-10)


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_tilt_of_one_label(p):
    close(cardinality.from_marginals([[p]], [[0.25, 0.75]]), [[[0.75]]])


def test_tilt_of_many_labels():
    rng = np.random.default_rng(6)
    p = rng.beta(0.5, 0.5, size=(1, 200))
    p *= 100 / p.sum()
    p = np.minimum(p, 1.0)
    d = np.zeros((1, 201))
    d[0, 90:111:4] = stats.binom.pmf(np.arange(90, 111, 4), 200, 0.5)
    d[0, [1, 199, 200]] = 0.1
    d /= d.sum()
    P = cardinality.from_marginals(p, d)
    sums_to_s(P, d)
    assert cardinality.is_coherent(P, d).all()
    order = np.argsort(p[0])
    assert (np.diff(P[0, order], axis=0) >= 0).all()  # the order of the labels is that of p


def test_tilt_permutes_with_the_labels_and_ignores_blocks(monkeypatch):
    rng = np.random.default_rng(7)
    p, d = rng.random((9, 5)), rng.dirichlet(np.ones(4), size=9)
    P = cardinality.from_marginals(p, d)
    order = rng.permutation(5)
    close(cardinality.from_marginals(p[:, order], d), P[:, order], rtol=1e-13)
    monkeypatch.setattr(_blocks, "BLOCK_BYTES", 80)
    np.testing.assert_array_equal(cardinality.from_marginals(p, d), P)
    d[7] *= 0.5
    with pytest.raises(ValueError, match=r"distribution\[7\] sums to 0.5: the probabilities of a"):
        cardinality.from_marginals(p, d)


def test_from_marginals_refuses():
    p = np.full((2, 3), 0.5)
    with pytest.raises(
        ValueError, match=r"distribution has shape \(2, 5\): with 3 labels it must"
    ):
        cardinality.from_marginals(p, np.full((2, 5), 0.2))
    with pytest.raises(
        ValueError, match=r"distribution has shape \(2, 1\): with 3 labels it must"
    ):
        cardinality.from_marginals(p, np.ones((2, 1)))
    with pytest.raises(
        ValueError, match="distribution has 1 rows and proba has 2: they must have"
    ):
        cardinality.from_marginals(p, [[0.5, 0.5]])
    with pytest.raises(ValueError, match=r"distribution\[1\] sums to 0.8: the probabilities of a"):
        cardinality.from_marginals(p, [[0.5, 0.5], [0.5, 0.3]])
    with pytest.raises(ValueError, match=r"distribution\[0, 0\] is -0.5: probabilities must lie"):
        cardinality.from_marginals(p, [[-0.5, 1.5], [0.5, 0.5]])
    with pytest.raises(ValueError, match=r"proba\[1, 0\] is nan: probabilities must lie in"):
        cardinality.from_marginals([[0.5], [np.nan]], [[0.5, 0.5], [0.5, 0.5]])
    with pytest.raises(ValueError, match=r"proba has shape \(3,\): it must have 2 dimensions"):
        cardinality.from_marginals(p[0])
    with pytest.raises(TypeError, match="proba is a sparse matrix: it must be a dense array"):
        cardinality.from_marginals(sparse.csr_array(p))


# distribution


@SETTINGS
@given(seeds, st.integers(0, 4), st.integers(1, 8))
def test_distribution(seed, n, m):
    joint = random_joint(np.random.default_rng(seed), n, m)
    d = cardinality.distribution(cardinality_matrix(*joint))
    assert d.shape == (n, m + 1)
    assert d.dtype == np.float64
    close(d, cardinality_distribution(*joint), atol=1e-14)


def test_distribution_of_integers_and_booleans():
    P = np.array([[[0, 1], [0, 1]], [[1, 0], [0, 0]], [[0, 0], [0, 0]]])
    expected = [[0, 0, 1], [0, 1, 0], [1, 0, 0]]
    np.testing.assert_array_equal(cardinality.distribution(P), expected)
    np.testing.assert_array_equal(cardinality.distribution(P.astype(bool)), expected)


def test_distribution_forgives_rounding_only():
    P = np.array([[[0.6], [0.4 + 1e-12]]])
    np.testing.assert_array_equal(cardinality.distribution(P)[:, 0], 0.0)
    single = np.array([[[0.6], [0.400004]]], dtype=np.float32)
    np.testing.assert_array_equal(cardinality.distribution(single)[:, 0], 0.0)
    with pytest.raises(ValueError, match=r"P\[0\] implies d_0 = -4e-06: the distribution of"):
        cardinality.distribution([[[0.6], [0.400004]]])
    close(cardinality.distribution([[[-1e-12], [0.4]]]), [[0.6, 0.4]])


def test_distribution_refuses(monkeypatch):
    P = np.zeros((4, 2, 2))
    P[3, :, 0] = 0.56
    with pytest.raises(ValueError, match=r"P\[3\] implies d_0 = -0.12: the distribution of the n"):
        cardinality.distribution(P)
    monkeypatch.setattr(_blocks, "BLOCK_BYTES", 32)  # row by row: the row is named all the same
    with pytest.raises(ValueError, match=r"P\[3\] implies d_0 = -0.12"):
        cardinality.distribution(P)
    P[2, 1, 0] = -0.1
    with pytest.raises(ValueError, match=r"P\[2, 1, 0\] is -0.1: probabilities must lie in"):
        cardinality.distribution(P)
    with pytest.raises(ValueError, match=r"P has shape \(1, 2, 3\): 2 labels cannot have a card"):
        cardinality.distribution(np.zeros((1, 2, 3)))


# merge_factors


@SETTINGS
@given(seeds, st.integers(0, 3), st.integers(1, 7))
def test_merge_factors(seed, n, m):
    rng = np.random.default_rng(seed)
    factors = random_partition(rng, m)
    joints = [random_joint(rng, n, len(factor)) for factor in factors]
    Ps = [cardinality.from_joint(*joint) for joint in joints]
    whole = product_joint(joints, factors)
    merged = cardinality.merge_factors(Ps, factors)
    assert merged.P.shape == (n, m, m)
    close(merged.P, cardinality.from_joint(*whole), atol=1e-14)
    close(merged.d, cardinality_distribution(*whole), atol=1e-14)

    order = rng.permutation(len(factors))
    shuffled = cardinality.merge_factors([Ps[f] for f in order], [factors[f] for f in order])
    close(shuffled.P, merged.P, atol=1e-14)
    close(shuffled.d, merged.d, atol=1e-14)

    ds = [cardinality_distribution(*joint) for joint in joints]
    given_d = cardinality.merge_factors(Ps, factors, ds)
    close(given_d.P, merged.P, atol=1e-14)
    close(given_d.d, merged.d, atol=1e-14)


def test_merge_of_single_labels_is_independence():
    p = np.random.default_rng(8).random((3, 9))
    merged = cardinality.merge_factors(
        [p[:, i, None, None] for i in range(9)], np.arange(9)[:, None]
    )
    close(merged.P, cardinality.from_marginals(p), rtol=1e-12)


def test_merge_with_short_factors():
    # the largest sets of the factors have 1, 2 and 1 labels
    rng = np.random.default_rng(9)
    one = np.array([[0, 0, 0], [1, 0, 0], [0, 0, 1]])
    two = np.array([[0, 0], [1, 1]])
    joints = [
        (sets, rng.dirichlet(np.ones(len(sets)), size=4))
        for sets in (one, two, np.array([[0], [1]]))
    ]
    factors = [[5, 1, 3], [0, 4], [2]]
    merged = cardinality.merge_factors([cardinality.from_joint(*j) for j in joints], factors)
    assert merged.P.shape == (4, 6, 4)
    assert merged.d.shape == (4, 5)
    P = cardinality_matrix(*product_joint(joints, factors))
    close(merged.P, P[:, :, :4])
    np.testing.assert_array_equal(P[:, :, 4:], 0.0)


def test_merge_takes_given_distributions_as_they_are():
    Ps = [np.full((1, 1, 1), 0.5), np.full((1, 1, 1), 0.25)]
    merged = cardinality.merge_factors(Ps, [[0], [1]], [[[0.4, 0.6]], [[0.9, 0.1]]])
    close(merged.P, [[[0.5 * 0.9, 0.5 * 0.1], [0.25 * 0.4, 0.25 * 0.6]]])
    close(merged.d, [[0.36, 0.04 + 0.54, 0.06]])


def test_merge_blocks(monkeypatch):
    rng = np.random.default_rng(10)
    factors = [[0, 2], [1, 3]]
    Ps = [cardinality.from_joint(*random_joint(rng, 7, 2)) for _ in factors]
    ds = [cardinality.distribution(P) for P in Ps]
    whole = cardinality.merge_factors(Ps, factors)
    monkeypatch.setattr(_blocks, "BLOCK_BYTES", 256)  # two rows at a time
    np.testing.assert_array_equal(cardinality.merge_factors(Ps, factors).P, whole.P)
    Ps[1][5] = [[0.9, 0.9], [0.9, 0.9]]
    with pytest.raises(ValueError, match=r"Ps\[1\]\[5\] implies d_0 = -1.7: the distribution of"):
        cardinality.merge_factors(Ps, factors)
    ds[0][6] = 0.5
    with pytest.raises(
        ValueError, match=r"distributions\[0\]\[6\] sums to 1.5: the probabilities"
    ):
        cardinality.merge_factors(Ps, factors, ds)


def test_merge_refuses():
    half = np.full((2, 1, 1), 0.5)
    pair = np.full((2, 2, 1), 0.25)
    coin = np.full((2, 2), 0.5)
    with pytest.raises(TypeError, match="it must be a list with the P of each fact"):
        cardinality.merge_factors(half, [[0]])
    with pytest.raises(ValueError, match="Ps is empty: there must be at least one factor"):
        cardinality.merge_factors([], [])
    with pytest.raises(ValueError, match=r"Ps\[1\] has 1 rows and Ps\[0\] has 2: they must have"):
        cardinality.merge_factors([half, half[:1]], [[0], [1]])
    with pytest.raises(ValueError, match=r"Ps\[1\] has shape \(1, 1\): it must have 3 dimensions"):
        cardinality.merge_factors([half, half[0]], [[0], [1]])
    with pytest.raises(
        ValueError, match=r"factors\[0\] and factors\[1\] both hold label 0 and no"
    ):
        cardinality.merge_factors([half, half], [[0], [0]])
    with pytest.raises(
        ValueError, match=r"factors\[1\] has 1 labels and Ps\[1\] has 2: the sizes"
    ):
        cardinality.merge_factors([half, pair], [[0], [1]])
    with pytest.raises(ValueError, match=r"Ps\[1\]\[0, 0, 0\] is 1.5: probabilities must lie in"):
        cardinality.merge_factors([half, 3 * half], [[0], [1]])
    with pytest.raises(TypeError, match="distributions is ndarray: it must be a list with the"):
        cardinality.merge_factors([half, half], [[0], [1]], np.array([coin, coin]))
    with pytest.raises(ValueError, match="distributions has 1 entries and Ps has 2: there must"):
        cardinality.merge_factors([half, half], [[0], [1]], [coin])
    with pytest.raises(
        ValueError, match=r"distributions\[1\] has shape \(1, 2\): with a P of 2 rows and 1 card"
    ):
        cardinality.merge_factors([half, half], [[0], [1]], [coin, coin[:1]])
    with pytest.raises(
        ValueError, match=r"distributions\[1\]\[0, 1\] is -1.0: probabilities must"
    ):
        cardinality.merge_factors([half, half], [[0], [1]], [coin, [[2e-10 + 1, -1], [0, 1]]])


# coherence


@SETTINGS
@given(seeds, st.integers(0, 4), st.integers(1, 7))
def test_a_joint_is_coherent(seed, n, m):
    joint = random_joint(np.random.default_rng(seed), n, m)
    P = cardinality.from_joint(*joint)
    d = cardinality_distribution(*joint)
    for coherent in [cardinality.is_coherent(P), cardinality.is_coherent(P, d)]:
        assert coherent.shape == (n,)
        assert coherent.dtype == np.bool_
        assert coherent.all()
    close(cardinality.make_coherent(P), P, rtol=1e-12, atol=1e-14)
    close(cardinality.make_coherent(P, d), P, rtol=1e-12, atol=1e-14)


def test_what_is_not_coherent():
    good = np.array([[0.3, 0.2], [0.1, 0.2]])
    bad = {
        "good": good,
        "negative": np.array([[0.3, 0.2], [-0.1, 0.2]]),
        "above d_s": np.array([[0.3, 0.2], [0.1, 0.1]]),
        "mass above 1": np.array([[0.5, 0.3], [0.3, 0.3]]),
        "nan": np.array([[0.3, np.nan], [0.1, 0.2]]),
        "infinite": np.array([[0.3, np.inf], [0.1, np.inf]]),
        "above 1": np.array([[0.0, 1.5], [0.0, 1.5]]),
    }
    coherent = cardinality.is_coherent(np.stack(list(bad.values())))
    assert dict(zip(bad, coherent.tolist(), strict=True)) == {name: name == "good" for name in bad}
    twice = np.stack([good, good])
    d = [[0.4, 0.4, 0.2], [0.5, 0.3, 0.2]]
    np.testing.assert_array_equal(cardinality.is_coherent(twice, d), [True, False])
    np.testing.assert_array_equal(cardinality.is_coherent(twice, d, tol=0.11), [True, True])
    # the whole distribution counts, d_0 too
    np.testing.assert_array_equal(cardinality.is_coherent(good[None], [[0.3, 0.4, 0.2]]), [False])


def test_tolerance_of_coherence():
    P = np.array([[[0.3, 0.2], [0.1, 0.2 + 1e-6]]])
    assert not cardinality.is_coherent(P)[0]
    assert cardinality.is_coherent(P, tol=1e-5)[0]
    assert not cardinality.is_coherent(P, tol=1e-7)[0]


@SETTINGS
@given(seeds, st.integers(0, 4), st.integers(1, 7), st.booleans())
def test_make_coherent(seed, n, m, with_d):
    rng = np.random.default_rng(seed)
    S = int(rng.integers(1, m + 1))
    d = rng.dirichlet(np.full(S + 1, 0.5), size=n)
    q = rng.random((n, m, S))
    q[rng.random(q.shape) < 0.2] = 0.0
    q[rng.random(q.shape) < 0.1] = 1.0
    P = d[:, None, 1:] * q
    if not with_d:
        d = None
    repaired = cardinality.make_coherent(P, d)
    assert repaired.shape == (n, m, S)
    assert cardinality.is_coherent(repaired, d, tol=1e-12).all()
    close(cardinality.make_coherent(repaired, d), repaired, rtol=0, atol=1e-12)
    close(cardinality.make_coherent(repaired), repaired, rtol=0, atol=1e-12)


def test_make_coherent_tilts_the_logits():
    rng = np.random.default_rng(11)
    n, m, S = 3, 6, 4
    d = rng.dirichlet(np.ones(S + 1), size=n)
    q = rng.uniform(0.05, 0.95, size=(n, m, S))
    repaired = cardinality.make_coherent(d[:, None, 1:] * q, d) / d[:, None, 1:]
    close(repaired.sum(axis=1), np.broadcast_to(np.arange(1, S + 1), (n, S)))
    shift = np.log(repaired / (1 - repaired)) - np.log(q / (1 - q))
    close(shift, np.broadcast_to(shift[:, :1], shift.shape), rtol=1e-9)  # one c per row and s
    assert np.abs(shift).max() > 0.1
    # with logits that do not depend on s, it is the tilt of marginals
    p = q[:, :, 0]
    close(
        cardinality.make_coherent(d[:, None, 1:] * p[:, :, None], d),
        cardinality.from_marginals(p, d),
        rtol=1e-11,
    )


def test_make_coherent_scales_mass_above_one():
    P = np.array([[[0.5, 0.3], [0.7, 0.3]], [[2.0, 3.0], [2.0, 1.0]]])
    repaired = cardinality.make_coherent(P)
    close(repaired[0], P[0] / 1.5)
    close(repaired[1], [[2 / 6, 2 / 6], [2 / 6, 2 / 6]])
    np.testing.assert_array_equal(cardinality.distribution(repaired)[:, 0].round(15), 0.0)


def test_make_coherent_spreads_evenly_what_no_label_claims():
    repaired = cardinality.make_coherent(np.zeros((1, 4, 2)), [[0.2, 0.3, 0.5]])
    close(repaired, np.broadcast_to([0.3 / 4, 0.5 * 2 / 4], (1, 4, 2)))
    np.testing.assert_array_equal(cardinality.make_coherent(np.zeros((1, 4, 2))), 0.0)
    # where d_s is 0 nothing is left
    np.testing.assert_array_equal(
        cardinality.make_coherent(np.full((1, 2, 2), 0.1), [[1, 0, 0]]), 0.0
    )


def test_make_coherent_at_the_edges():
    # one label claims more than d_s: it gets all of d_s, and the impossible ones share the rest
    close(
        cardinality.make_coherent([[[0.0, 0.4], [0.0, 0.0], [0.0, 0.0]]]),
        [[[0.0, 0.2], [0.0, 0.1], [0.0, 0.1]]],
    )
    tiny = np.full((1, 3, 1), 1e-310)
    close(cardinality.make_coherent(tiny, [[0.4, 0.6]]), np.full((1, 3, 1), 0.2))
    close(cardinality.make_coherent(np.ones((1, 3, 1)) / 3, [[1.0, 1e-320]]), 0.0, atol=1e-319)
    # rounding below 0 is forgiven
    close(cardinality.make_coherent([[[0.5], [-1e-12]]]), [[[0.5], [0.0]]])


def test_make_coherent_blocks(monkeypatch):
    rng = np.random.default_rng(12)
    P, d = rng.random((7, 3, 2)) / 4, rng.dirichlet(np.ones(3), size=7)
    whole = cardinality.make_coherent(P, d), cardinality.make_coherent(P)
    coherent = cardinality.is_coherent(P)
    assert 0 < coherent.sum() < 7
    monkeypatch.setattr(_blocks, "BLOCK_BYTES", 96)
    np.testing.assert_array_equal(cardinality.make_coherent(P, d), whole[0])
    np.testing.assert_array_equal(cardinality.make_coherent(P), whole[1])
    np.testing.assert_array_equal(cardinality.is_coherent(P), coherent)
    P[5, 2, 1] = -0.25
    with pytest.raises(ValueError, match=r"P\[5, 2, 1\] is -0.25: it must be finite and not neg"):
        cardinality.make_coherent(P)
    with pytest.raises(ValueError, match=r"P\[5, 2, 1\] is -0.25: probabilities must lie in"):
        cardinality.make_coherent(P, d)


def test_coherence_refuses():
    P = np.full((2, 3, 2), 0.1)
    for function in [cardinality.make_coherent, cardinality.is_coherent]:
        with pytest.raises(
            ValueError,
            match=r"distribution has shape \(2, 2\): with a P of 2 rows and 2 cardinalities it "
            r"must have shape \(2, 3\), for 0 to 2 labels",
        ):
            function(P, np.full((2, 2), 0.5))
        with pytest.raises(ValueError, match=r"P has shape \(3, 2\): it must have 3 dimensions"):
            function(P[0])
    with pytest.raises(ValueError, match=r"distribution\[1\] sums to 0.9: the probabilities of a"):
        cardinality.make_coherent(P, [[0.5, 0.2, 0.3], [0.5, 0.1, 0.3]])
    with pytest.raises(ValueError, match=r"distribution\[0, 2\] is -0.3: probabilities must lie"):
        cardinality.make_coherent(P, [[0.5, 0.8, -0.3], [0.5, 0.2, 0.3]])
    for value, shown in [(np.inf, "inf"), (np.nan, "nan")]:
        P[1, 0, 1] = value
        with pytest.raises(ValueError, match=rf"P\[1, 0, 1\] is {shown}: it must be finite and"):
            cardinality.make_coherent(P)
    P[1, 0, 1] = 1.5
    with pytest.raises(ValueError, match=r"P\[1, 0, 1\] is 1.5: probabilities must lie in"):
        cardinality.make_coherent(P, [[0.5, 0.2, 0.3], [0.5, 0.2, 0.3]])


# the module


def test_inputs_are_left_alone():
    rng = np.random.default_rng(13)
    labelsets, proba = random_joint(rng, 3, 3)
    P = 1.2 * cardinality.from_joint(labelsets, proba)
    d = rng.dirichlet(np.ones(4), size=3)
    for array in (labelsets, proba, P, d):
        array.setflags(write=False)
    cardinality.from_joint(labelsets, proba)
    cardinality.from_samples(labelsets[None])
    cardinality.from_marginals(proba[:, :3])
    cardinality.from_marginals(proba[:, :3], d)
    cardinality.is_coherent(P, d)
    cardinality.make_coherent(np.minimum(P, 1), d)
    cardinality.make_coherent(P)
    cardinality.merge_factors([P / 2], [[0, 1, 2]], [d])


def test_numba_waits_until_it_is_needed():
    code = (
        "import sys; from fgfm import cardinality as c; "
        "P = c.from_marginals([[0.5, 0.2]]); c.make_coherent(P); c.merge_factors([P], [[0, 1]]); "
        "print([name for name in ('sklearn', 'numba', 'pandas') if name in sys.modules]); "
        "c.from_marginals([[0.5, 0.2]], [[0.5, 0.5]]); print('numba' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split("\n")[:2] == ["[]", "True"]
