"""Marginals tilted to a distribution of the number of labels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from cardinality_checks import (
    assert_sums_to_s,
    close,
    tilt_by_bisection,
)
from fgfm import cardinality
from oracle import all_labelsets

SETTINGS = settings(deadline=None, max_examples=40, derandomize=True)
seeds = st.integers(0, 2**32 - 1)


@SETTINGS
@given(seeds, st.integers(0, 3), st.integers(1, 8), st.booleans())
def test_tilt_agrees_with_bisection(seed, n, m, wide):
    rng = np.random.default_rng(seed)
    S = int(rng.integers(1, m + 1))
    p = 10.0 ** -rng.uniform(0, 300 if wide else 3, size=(n, m))
    d = rng.dirichlet(np.ones(S + 1), size=n)
    P = cardinality.of_marginals(p, d)
    assert P.shape == (n, m, S)
    assert_sums_to_s(P, d)
    close(cardinality.distribution(P), d, atol=1e-14)
    assert cardinality.is_coherent(P, d).all()
    for r in range(n):
        for s in range(1, min(S, m - 1) + 1):
            # the bisection is accurate up to rounding errors of q, not of 1 - q
            close(
                P[r, :, s - 1], d[r, s] * np.array(tilt_by_bisection(p[r], s)), rtol=0, atol=1e-12
            )


def test_tilt_of_an_exchangeable_joint_recovers_its_P():
    rng = np.random.default_rng(4)
    m = 6
    weight = rng.dirichlet(
        np.ones(m + 1), size=3
    )  # (n, m + 1), the distribution of the number of labels
    labelsets = all_labelsets(m)
    size = labelsets.sum(axis=1)
    proba = weight[:, size] / np.array([math.comb(m, s) for s in size])
    P = cardinality.of_joint(labelsets, proba)
    d = cardinality.distribution(P)
    close(d, weight)
    close(cardinality.of_marginals(P.sum(axis=2), d), P)


def test_tilt_is_the_closest_in_relative_entropy():
    p = np.array([0.9, 0.4, 0.1, 0.05])
    q = cardinality.of_marginals(p[None], [[0, 0, 1]])[0, :, 1]

    def entropy(q):
        return np.sum(q * np.log(q / p) + (1 - q) * np.log((1 - q) / (1 - p)))

    rng = np.random.default_rng(0)
    for _ in range(50):
        move = rng.normal(size=4)
        move -= move.mean()  # the sum stays 2
        other = q + 1e-3 * move
        assert entropy(other) > entropy(q)


def test_tilt_is_accurate_for_tiny_probabilities():
    # 1 - q of the two likely labels and q of the unlikely one, both about 1e-150, must be equal
    P = cardinality.of_marginals([[0.5, 0.5, 1e-300]], [[0, 0, 1.0]])
    assert P[0, 2, 1] == pytest.approx(math.sqrt(2) * 1e-150, rel=1e-10)


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_tilt_of_one_label(p):
    close(cardinality.of_marginals([[p]], [[0.25, 0.75]]), [[[0.75]]])


def test_tilt_of_many_labels():
    rng = np.random.default_rng(6)
    p = rng.beta(0.5, 0.5, size=(1, 200))
    p *= 100 / p.sum()
    p = np.minimum(p, 1.0)
    d = np.zeros((1, 201))
    d[0, 90:111:4] = stats.binom.pmf(np.arange(90, 111, 4), 200, 0.5)
    d[0, [1, 199, 200]] = 0.1
    d /= d.sum()
    P = cardinality.of_marginals(p, d)
    assert_sums_to_s(P, d)
    assert cardinality.is_coherent(P, d).all()
    order = np.argsort(p[0])
    assert (np.diff(P[0, order], axis=0) >= 0).all()  # the order of the labels is that of p
