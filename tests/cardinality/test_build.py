"""P from joint distributions, samples, independent labels and conditionals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats

from cardinality_checks import close, tilt_by_bisection
from fgfm import cardinality
from oracle import (
    cardinality_distribution,
    cardinality_matrix,
    independent_joint,
    random_joint,
)

SETTINGS = settings(deadline=None, max_examples=40, derandomize=True)
seeds = st.integers(0, 2**32 - 1)


# of_joint


@SETTINGS
@given(seeds, st.integers(0, 4), st.integers(1, 8))
def test_of_joint_agrees_with_enumeration(seed, n, m):
    labelsets, proba = random_joint(np.random.default_rng(seed), n, m)
    expected = cardinality_matrix(labelsets, proba)
    P = cardinality.of_joint(labelsets, proba)
    assert P.dtype == np.float64
    assert P.shape == (n, m, m)
    close(P, expected)
    for form in ["csr", "csc", "coo"]:
        close(cardinality.of_joint(sparse.csr_array(labelsets).asformat(form), proba), expected)


def test_of_joint_stops_at_the_largest_set():
    labelsets = np.array([[0, 0, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 1, 0]])
    P = cardinality.of_joint(labelsets, [[0.1, 0.2, 0.3, 0.4]])
    close(P, [[[0, 0.6], [0.3, 0], [0, 0.6], [0, 0]]])  # one set is there twice
    nothing = cardinality.of_joint(np.zeros((1, 3), dtype=bool), np.ones((2, 1)))
    np.testing.assert_array_equal(nothing, np.zeros((2, 3, 1)))


def test_of_joint_normalises_float32_probabilities():
    rng = np.random.default_rng(0)
    labelsets, proba = random_joint(rng, 50, 6)
    P = cardinality.of_joint(labelsets, proba.astype(np.float32) * np.float32(1 + 3e-6))
    close(P, cardinality_matrix(labelsets, proba), rtol=1e-6)
    assert cardinality.is_coherent(P).all()
    close(cardinality.distribution(P).sum(axis=1), 1.0)


# of_samples


@SETTINGS
@given(seeds, st.integers(0, 5), st.integers(1, 9), st.integers(1, 6))
def test_of_samples_agrees_with_frequencies(seed, n, draws, m):
    rng = np.random.default_rng(seed)
    samples = rng.random((n, draws, m)) < rng.random((n, 1, 1))
    P = cardinality.of_samples(samples)
    expected = np.zeros((n, m, m))
    for r in range(n):
        expected[r] = cardinality_matrix(samples[r].astype(int), np.full((1, draws), 1 / draws))[0]
    S = max([1, *samples.sum(axis=2).ravel()])
    assert P.shape == (n, m, S)
    close(P, expected[:, :, :S])
    np.testing.assert_array_equal(expected[:, :, S:], 0.0)
    for dtype in [np.int8, np.float32]:
        np.testing.assert_array_equal(cardinality.of_samples(samples.astype(dtype)), P)


# of_marginals: independent labels


@SETTINGS
@given(seeds, st.integers(0, 4), st.integers(1, 8))
def test_independent_marginals_agree_with_enumeration(seed, n, m):
    rng = np.random.default_rng(seed)
    p = rng.random((n, m)) ** 4
    p[rng.random((n, m)) < 0.1] = 0.0
    p[rng.random((n, m)) < 0.1] = 1.0
    P = cardinality.of_marginals(p)
    assert P.shape == (n, m, m)
    close(P, cardinality_matrix(*independent_joint(p)), atol=1e-300)
    close(P, cardinality.of_joint(*independent_joint(p)), atol=1e-15)
    close(P.sum(axis=2), p)


def test_independent_marginals_keep_relative_accuracy_when_tiny():
    p = np.array([[1e-300, 1e-100, 0.25, 1 - 2.0**-50]])
    P = cardinality.of_marginals(p)
    close(P, cardinality_matrix(*independent_joint(p)), atol=0.0)
    assert P[0, 0, 1] == pytest.approx(0.75e-300, rel=1e-12)  # nothing was subtracted


def test_independent_marginals_of_many_labels():
    p = np.full((2, 200), 0.5)
    P = cardinality.of_marginals(p)
    s = np.arange(1, 201)
    close(P, np.broadcast_to(0.5 * stats.binom.pmf(s - 1, 199, 0.5), P.shape), rtol=1e-11)
    assert cardinality.is_coherent(P).all()


# of_conditionals


def conditionals_by_loops(q, d):
    """Return d_s times the tilted q(s), one number at a time."""
    P = np.zeros_like(q)
    for r in range(len(q)):
        for s in range(1, q.shape[2] + 1):
            for i, value in enumerate(tilt_by_bisection(q[r, :, s - 1], s)):
                P[r, i, s - 1] = d[r, s] * value
    return P


def random_case(seed, n=4):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 7))
    S = int(rng.integers(1, m))  # less than m: at s = m all labels are certain
    return rng.uniform(0.01, 0.99, (n, m, S)), rng.dirichlet(np.ones(S + 1), size=n)


@SETTINGS
@given(seeds)
def test_conditionals_are_tilted_as_by_loops(seed):
    q, d = random_case(seed)
    P = cardinality.of_conditionals(q, d)
    np.testing.assert_allclose(P, conditionals_by_loops(q, d), rtol=1e-9, atol=1e-14)
    assert cardinality.is_coherent(P, d).all()


@SETTINGS
@given(seeds)
def test_conditionals_of_a_joint_recover_its_P(seed):
    joint = random_joint(np.random.default_rng(seed), 3, 4)
    P, d = cardinality_matrix(*joint), cardinality_distribution(*joint)
    q = P / d[:, None, 1:]
    np.testing.assert_allclose(cardinality.of_conditionals(q, d), P, rtol=1e-9, atol=1e-13)


def test_conditionals_agree_with_make_coherent():
    q, d = random_case(8)
    expected = cardinality.make_coherent(q * d[:, None, 1:], distribution=d)
    np.testing.assert_allclose(cardinality.of_conditionals(q, d), expected, rtol=1e-9)


def test_conditionals_of_marginals_agree_with_of_marginals():
    rng = np.random.default_rng(5)
    p, d = rng.random((6, 5)), rng.dirichlet(np.ones(4), size=6)
    q = np.repeat(p[:, :, None], 3, axis=2)
    expected = cardinality.of_marginals(p, d)
    np.testing.assert_allclose(cardinality.of_conditionals(q, d), expected, rtol=1e-12)


def test_conditionals_have_no_effect_where_the_number_is_impossible():
    q, d = random_case(3)
    d[:, 1] = 0.0
    d[:, 0] += 1.0 - d.sum(axis=1)
    other = q.copy()
    other[:, :, 0] = [0.0, 1.0] * (q.shape[1] // 2) + [0.5] * (q.shape[1] % 2)
    P = cardinality.of_conditionals(other, d)
    assert not P[:, :, 0].any()
    assert (cardinality.of_conditionals(q, d) == P).all()


def test_conditionals_of_zero_and_one():
    # 0 and 1 are kept where the other labels can make up the sum, and changed where they cannot
    q = np.array([[[0.0, 0.0, 0.3], [0.4, 0.0, 0.2], [0.4, 0.9, 0.1]]])
    P = cardinality.of_conditionals(q, [[0.1, 0.2, 0.3, 0.4]])[0]
    np.testing.assert_allclose(P[:, 0], [0.0, 0.1, 0.1], atol=1e-12)
    assert P[2, 1] == pytest.approx(0.3)
    assert P[:, 1].sum() == pytest.approx(0.6)
    np.testing.assert_allclose(P[:, 2], [0.4, 0.4, 0.4], atol=1e-12)  # three of three


def test_conditionals_accept_rounding_errors_of_the_distribution():
    q, d = random_case(4)
    off = d * (1.0 + 5e-10)
    np.testing.assert_allclose(
        cardinality.of_conditionals(q, off), cardinality.of_conditionals(q, d), rtol=1e-12
    )
    single = cardinality.of_conditionals(q.astype(np.float32), d.astype(np.float32))
    assert single.dtype == np.float64
    np.testing.assert_allclose(single, cardinality.of_conditionals(q, d), rtol=1e-4, atol=1e-6)
