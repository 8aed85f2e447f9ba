"""Independent labels conditioned on the distribution of their number."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardinality_checks import assert_sums_to_s, close
from fgfm import cardinality
from oracle import cardinality_distribution, cardinality_matrix, independent_joint

SETTINGS = settings(deadline=None, max_examples=40, derandomize=True)
seeds = st.integers(0, 2**32 - 1)


def conditioned(p, d):
    """Return the joint distribution of independent labels, reweighted by d_s / pi_s."""
    sets, proba = independent_joint(p)
    pi = cardinality_distribution(sets, proba)  # (n, m + 1)
    size = sets.sum(axis=1)
    ratio = np.zeros_like(pi)
    np.divide(d, pi[:, : d.shape[1]], out=ratio[:, : d.shape[1]], where=d > 0.0)
    return sets, proba * ratio[:, size]


@SETTINGS
@given(seeds, st.integers(0, 3), st.integers(1, 6), st.booleans(), st.booleans())
def test_condition_agrees_with_enumeration(seed, n, m, ties, gaps):
    rng = np.random.default_rng(seed)
    S = int(rng.integers(1, m + 1))
    p = rng.choice([0.2, 0.5, 0.7], size=(n, m)) if ties else rng.uniform(0.01, 0.99, (n, m))
    d = rng.dirichlet(np.ones(S + 1), size=n)
    if gaps:
        d[:, rng.integers(0, S + 1)] = 0.0
        d /= d.sum(axis=1, keepdims=True)
    P = cardinality.of_marginals(p, d, method="condition")
    assert P.shape == (n, m, S)
    assert_sums_to_s(P, d)
    assert cardinality.is_coherent(P, d).all()
    joint = conditioned(p, d)
    close(P, cardinality_matrix(*joint)[:, :, :S])
    close(d, cardinality_distribution(*joint)[:, : S + 1])


@pytest.mark.parametrize("m", range(1, 7))
def test_condition_with_certain_and_impossible_labels(m):
    """Every pattern of p = 0, p = 1 and 0 < p < 1, with a d that is possible for it."""
    patterns = np.stack(np.meshgrid(*[[0.0, 0.3, 1.0]] * m), axis=-1).reshape(-1, m)
    least = (patterns == 1.0).sum(axis=1)
    most = (patterns > 0.0).sum(axis=1)
    s = np.arange(m + 1)
    d = ((least[:, None] <= s) & (s <= most[:, None])) * (1.0 + s)
    d /= d.sum(axis=1, keepdims=True)
    P = cardinality.of_marginals(patterns, d, method="condition")
    close(P, cardinality_matrix(*conditioned(patterns, d)))


BOTH, CONDITION = ("tilt", "condition"), ("condition",)


@pytest.mark.parametrize(
    ("p", "s", "expected", "methods"),
    [
        ([0.0, 0.0, 0.0], 1, [1 / 3, 1 / 3, 1 / 3], BOTH),
        ([1.0, 1.0, 1.0], 2, [2 / 3, 2 / 3, 2 / 3], BOTH),
        ([0.5, 0.5, 0.0], 1, [0.5, 0.5, 0.0], BOTH),
        ([0.5, 0.3, 0.0], 2, [1.0, 1.0, 0.0], BOTH),
        ([0.5, 0.0, 0.0], 2, [1.0, 0.5, 0.5], BOTH),
        ([1.0, 0.4, 0.0], 1, [1.0, 0.0, 0.0], BOTH),
        ([1.0, 0.4, 0.0], 2, [1.0, 1.0, 0.0], BOTH),
        ([1.0, 0.4, 0.4], 2, [1.0, 0.5, 0.5], BOTH),
        ([1.0, 0.0, 0.0], 2, [1.0, 0.5, 0.5], BOTH),
        ([1.0, 1.0, 0.9], 1, [0.5, 0.5, 0.0], BOTH),
        ([0.2, 0.0, 1.0], 3, [1.0, 1.0, 1.0], BOTH),
        ([0.7, 0.7, 1e-300], 3, [1.0, 1.0, 1.0], BOTH),
        ([1e-300, 1e-300, 1e-300], 1, [1 / 3, 1 / 3, 1 / 3], BOTH),
        ([5e-324, 5e-324, 0.0], 1, [0.5, 0.5, 0.0], BOTH),  # tiny is not impossible
        ([0.5, 1 / 11, 0.0], 1, [10 / 11, 1 / 11, 0.0], CONDITION),  # the odds are 1 and 1 / 10
    ],
)
def test_zero_and_one(p, s, expected, methods):
    d = np.zeros((1, 4))
    d[0, s] = 1.0
    for method in methods:
        P = cardinality.of_marginals([p], d, method=method)
        close(P[0, :, s - 1], expected, rtol=1e-13, atol=0.0)
        np.testing.assert_array_equal(np.delete(P, s - 1, axis=2), 0.0)


def test_condition_of_extreme_probabilities():
    """Compare with exact fractions."""
    odds = [Fraction(1, 10**12), Fraction(10**12), Fraction(1), Fraction(1, 3), Fraction(10**12)]
    p = np.array([[float(w / (1 + w)) for w in odds]])
    exact = [Fraction(x) / (1 - Fraction(x)) for x in p[0]]  # the odds of the floating-point p
    d = np.full((1, 6), 1 / 6)
    P = cardinality.of_marginals(p, d, method="condition")
    for s in range(1, 6):
        total, share = Fraction(0), [Fraction(0)] * 5
        for labels in itertools.combinations(range(5), s):
            weight = math.prod(exact[i] for i in labels)
            total += weight
            for i in labels:
                share[i] += weight
        close(P[0, :, s - 1], [float(x / total) / 6 for x in share], rtol=1e-9, atol=1e-16)


@pytest.mark.parametrize("kind", ["spread", "rare", "sure", "extreme"])
def test_condition_of_many_labels(kind):
    rng = np.random.default_rng(8)
    p = {
        "spread": lambda: rng.random((3, 300)),
        "rare": lambda: 10.0 ** -rng.uniform(1, 12, (3, 300)),
        "sure": lambda: 1.0 - 10.0 ** -rng.uniform(1, 12, (3, 300)),
        "extreme": lambda: rng.choice([0.0, 1e-300, 1e-12, 0.5, 1 - 1e-12], (3, 300)),
    }[kind]()
    d = rng.dirichlet(np.ones(41), size=3)
    P = cardinality.of_marginals(p, d, method="condition")
    assert np.isfinite(P).all()
    assert_sums_to_s(P, d)
    assert cardinality.is_coherent(P, d).all()
    order = np.argsort(p, axis=1)
    rising = np.take_along_axis(P, order[:, :, None], axis=1)
    assert (np.diff(rising, axis=1) >= -1e-15).all()  # the order of the labels is that of p


def test_condition_on_their_own_number_keeps_independent_labels():
    p = np.random.default_rng(9).beta(0.4, 0.8, size=(4, 30))
    P = cardinality.of_marginals(p)
    d = cardinality.distribution(P)
    close(cardinality.of_marginals(p, d, method="condition"), P, rtol=1e-9)


def test_condition_is_the_closest_in_relative_entropy():
    p, d = np.array([[0.9, 0.4, 0.1]]), np.array([[0.1, 0.5, 0.3, 0.1]])
    sets, base = independent_joint(p)
    _, joint = conditioned(p, d)
    close(cardinality_matrix(sets, joint), cardinality.of_marginals(p, d, method="condition"))

    def entropy(q):
        return np.sum(q * np.log(q / base[0]))

    rng = np.random.default_rng(0)
    size = sets.sum(axis=1)
    for _ in range(50):
        move = rng.normal(size=len(sets))
        for s in range(4):
            move[size == s] -= move[size == s].mean()  # keeps the distribution of the number
        assert entropy(joint[0] + 1e-3 * move) > entropy(joint[0])
