"""The distribution that P implies, and the closest coherent P."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardinality_checks import close
from fgfm import cardinality
from oracle import cardinality_distribution, cardinality_matrix, random_joint

SETTINGS = settings(deadline=None, max_examples=40, derandomize=True)
seeds = st.integers(0, 2**32 - 1)


# distribution


@SETTINGS
@given(seeds, st.integers(0, 4), st.integers(1, 8))
def test_distribution_agrees_with_enumeration(seed, n, m):
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


def test_distribution_tolerates_rounding_errors_only():
    P = np.array([[[0.6], [0.4 + 1e-12]]])
    np.testing.assert_array_equal(cardinality.distribution(P)[:, 0], 0.0)
    single = np.array([[[0.6], [0.400004]]], dtype=np.float32)
    np.testing.assert_array_equal(cardinality.distribution(single)[:, 0], 0.0)
    with pytest.raises(ValueError, match=r"P\[0\] implies d_0 = -4e-06: the probabilities"):
        cardinality.distribution([[[0.6], [0.400004]]])
    close(cardinality.distribution([[[-1e-12], [0.4]]]), [[0.6, 0.4]])


# is_coherent and make_coherent


@SETTINGS
@given(seeds, st.integers(0, 4), st.integers(1, 7))
def test_a_joint_is_coherent(seed, n, m):
    joint = random_joint(np.random.default_rng(seed), n, m)
    P = cardinality.of_joint(*joint)
    d = cardinality_distribution(*joint)
    for coherent in [cardinality.is_coherent(P), cardinality.is_coherent(P, d)]:
        assert coherent.shape == (n,)
        assert coherent.dtype == np.bool_
        assert coherent.all()
    close(cardinality.make_coherent(P), P, rtol=1e-12, atol=1e-14)
    close(cardinality.make_coherent(P, d), P, rtol=1e-12, atol=1e-14)


def test_incoherent_rows_are_found():
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
    # d_0 must agree as well
    np.testing.assert_array_equal(cardinality.is_coherent(good[None], [[0.3, 0.4, 0.2]]), [False])


def test_tolerance_of_coherence():
    P = np.array([[[0.3, 0.2], [0.1, 0.2 + 1e-6]]])
    assert not cardinality.is_coherent(P)[0]
    assert cardinality.is_coherent(P, tol=1e-5)[0]
    assert not cardinality.is_coherent(P, tol=1e-7)[0]


@SETTINGS
@given(seeds, st.integers(0, 4), st.integers(1, 7), st.booleans())
def test_make_coherent_is_coherent_and_idempotent(seed, n, m, with_d):
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
        cardinality.of_marginals(p, d),
        rtol=1e-11,
    )


def test_make_coherent_scales_mass_above_one():
    P = np.array([[[0.5, 0.3], [0.7, 0.3]], [[2.0, 3.0], [2.0, 1.0]]])
    repaired = cardinality.make_coherent(P)
    close(repaired[0], P[0] / 1.5)
    close(repaired[1], [[2 / 6, 2 / 6], [2 / 6, 2 / 6]])
    np.testing.assert_array_equal(cardinality.distribution(repaired)[:, 0].round(15), 0.0)


def test_make_coherent_spreads_mass_evenly_over_impossible_labels():
    repaired = cardinality.make_coherent(np.zeros((1, 4, 2)), [[0.2, 0.3, 0.5]])
    close(repaired, np.broadcast_to([0.3 / 4, 0.5 * 2 / 4], (1, 4, 2)))
    np.testing.assert_array_equal(cardinality.make_coherent(np.zeros((1, 4, 2))), 0.0)
    # where d_s is 0, so is P
    np.testing.assert_array_equal(
        cardinality.make_coherent(np.full((1, 2, 2), 0.1), [[1, 0, 0]]), 0.0
    )


def test_make_coherent_of_extreme_values():
    # the mass of one label exceeds d_s: it is clipped to d_s, and impossible labels share the rest
    close(
        cardinality.make_coherent([[[0.0, 0.4], [0.0, 0.0], [0.0, 0.0]]]),
        [[[0.0, 0.2], [0.0, 0.1], [0.0, 0.1]]],
    )
    tiny = np.full((1, 3, 1), 1e-310)
    close(cardinality.make_coherent(tiny, [[0.4, 0.6]]), np.full((1, 3, 1), 0.2))
    close(cardinality.make_coherent(np.ones((1, 3, 1)) / 3, [[1.0, 1e-320]]), 0.0, atol=1e-319)
    # rounding errors below 0 are clipped
    close(cardinality.make_coherent([[[0.5], [-1e-12]]]), [[[0.5], [0.0]]])
