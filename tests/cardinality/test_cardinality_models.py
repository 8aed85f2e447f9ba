"""P from conditionals, and the number of labels in all factors: against plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from fgfm import cardinality
from fgfm._utils import blocks as _blocks
from oracle import cardinality_distribution, cardinality_matrix, product_joint, random_joint

SETTINGS = settings(deadline=None, max_examples=25)
seeds = st.integers(0, 2**32 - 1)


def tilted(q, s):
    """Solve sum_i sigmoid(logit q_i + c) = s for 0 < q < 1 by bisection."""
    logit = [math.log(x) - math.log1p(-x) for x in q]
    low, high = -800.0, 800.0
    for _ in range(200):
        c = 0.5 * (low + high)
        total = math.fsum(0.5 * (1.0 + math.tanh(0.5 * (u + c))) for u in logit)
        low, high = (c, high) if total < s else (low, c)
    return [0.5 * (1.0 + math.tanh(0.5 * (u + c))) for u in logit]


def conditionals_by_loops(q, d):
    """Give d_s times the tilted q(s), one number at a time."""
    P = np.zeros_like(q)
    for r in range(len(q)):
        for s in range(1, q.shape[2] + 1):
            for i, value in enumerate(tilted(q[r, :, s - 1], s)):
                P[r, i, s - 1] = d[r, s] * value
    return P


def distributions_by_loops(ds):
    """Fold one factor after the other in, one number at a time."""
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


def random_case(seed, n=4):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 7))
    S = int(rng.integers(1, m))  # below m: at s = m all are certain
    return rng.uniform(0.01, 0.99, (n, m, S)), rng.dirichlet(np.ones(S + 1), size=n)


# from_conditionals


@SETTINGS
@given(seeds)
def test_conditionals_are_tilted_as_by_loops(seed):
    q, d = random_case(seed)
    P = cardinality.from_conditionals(q, d)
    np.testing.assert_allclose(P, conditionals_by_loops(q, d), rtol=1e-9, atol=1e-14)
    assert cardinality.is_coherent(P, d).all()


@SETTINGS
@given(seeds)
def test_conditionals_of_a_joint_give_back_its_P(seed):
    joint = random_joint(np.random.default_rng(seed), 3, 4)
    P, d = cardinality_matrix(*joint), cardinality_distribution(*joint)
    q = P / d[:, None, 1:]
    np.testing.assert_allclose(cardinality.from_conditionals(q, d), P, rtol=1e-9, atol=1e-13)


def test_conditionals_agree_with_make_coherent():
    q, d = random_case(8)
    expected = cardinality.make_coherent(q * d[:, None, 1:], distribution=d)
    np.testing.assert_allclose(cardinality.from_conditionals(q, d), expected, rtol=1e-9)


def test_conditionals_of_marginals_agree_with_from_marginals():
    rng = np.random.default_rng(5)
    p, d = rng.random((6, 5)), rng.dirichlet(np.ones(4), size=6)
    q = np.repeat(p[:, :, None], 3, axis=2)
    expected = cardinality.from_marginals(p, d)
    np.testing.assert_allclose(cardinality.from_conditionals(q, d), expected, rtol=1e-12)


def test_conditionals_do_not_matter_where_the_number_is_impossible():
    q, d = random_case(3)
    d[:, 1] = 0.0
    d[:, 0] += 1.0 - d.sum(axis=1)
    other = q.copy()
    other[:, :, 0] = [0.0, 1.0] * (q.shape[1] // 2) + [0.5] * (q.shape[1] % 2)
    P = cardinality.from_conditionals(other, d)
    assert not P[:, :, 0].any()
    assert (cardinality.from_conditionals(q, d) == P).all()


def test_conditionals_at_the_ends():
    # 0 and 1 stay where the others can make up the sum, and yield where they cannot
    q = np.array([[[0.0, 0.0, 0.3], [0.4, 0.0, 0.2], [0.4, 0.9, 0.1]]])
    P = cardinality.from_conditionals(q, [[0.1, 0.2, 0.3, 0.4]])[0]
    np.testing.assert_allclose(P[:, 0], [0.0, 0.1, 0.1], atol=1e-12)
    assert P[2, 1] == pytest.approx(0.3)
    assert P[:, 1].sum() == pytest.approx(0.6)
    np.testing.assert_allclose(P[:, 2], [0.4, 0.4, 0.4], atol=1e-12)  # three of three


def test_conditionals_take_a_distribution_off_by_rounding():
    q, d = random_case(4)
    off = d * (1.0 + 5e-10)
    np.testing.assert_allclose(
        cardinality.from_conditionals(q, off), cardinality.from_conditionals(q, d), rtol=1e-12
    )
    single = cardinality.from_conditionals(q.astype(np.float32), d.astype(np.float32))
    assert single.dtype == np.float64
    np.testing.assert_allclose(single, cardinality.from_conditionals(q, d), rtol=1e-4, atol=1e-6)


def test_conditionals_in_blocks_have_the_same_bits(monkeypatch):
    q, d = random_case(6, n=7)
    whole = cardinality.from_conditionals(q, d)
    monkeypatch.setattr(_blocks, "BLOCK_BYTES", 1)
    assert (cardinality.from_conditionals(q, d) == whole).all()


def test_conditionals_of_no_rows():
    assert cardinality.from_conditionals(np.empty((0, 3, 2)), np.empty((0, 3))).shape == (0, 3, 2)


def test_conditionals_leave_their_arguments_alone():
    q, d = random_case(9)
    before = q.copy(), d.copy()
    q.setflags(write=False)
    d.setflags(write=False)
    cardinality.from_conditionals(q, d)
    assert (q == before[0]).all()
    assert (d == before[1]).all()


GOOD = np.full((2, 3, 2), 0.5)
GOOD_D = np.full((2, 3), 1 / 3)


def spoiled(array, index, value):
    array = np.array(array)
    array[index] = value
    return array


@pytest.mark.parametrize(
    ("q", "d", "error", "sentence"),
    [
        (
            spoiled(GOOD, (1, 2, 0), 1.2),
            GOOD_D,
            ValueError,
            r"proba\[1, 2, 0\] is 1.2: probabilities must lie in \[0, 1\]",
        ),
        (
            spoiled(GOOD, (0, 1, 1), np.nan),
            GOOD_D,
            ValueError,
            r"proba\[0, 1, 1\] is nan: probabilities must lie in \[0, 1\]",
        ),
        (
            GOOD,
            spoiled(GOOD_D, (1, 0), -0.1),
            ValueError,
            r"distribution\[1, 0\] is -0.1: probabilities must lie in \[0, 1\]",
        ),
        (
            GOOD,
            spoiled(GOOD_D, (1, 0), 0.5),
            ValueError,
            r"distribution\[1\] sums to 1.16667: the probabilities of a row must sum to 1",
        ),
        (
            GOOD,
            GOOD_D[:, :2],
            ValueError,
            r"distribution has shape \(2, 2\).*it must have shape \(2, 3\), for 0 to 2 labels",
        ),
        (
            GOOD,
            GOOD_D[:1],
            ValueError,
            r"distribution has shape \(1, 3\).*it must have shape \(2, 3\)",
        ),
        (GOOD[:, :, 0], GOOD_D, ValueError, r"proba has shape \(2, 3\): it must have 3 dim"),
        (
            np.full((2, 2, 3), 0.5),
            np.full((2, 4), 0.25),
            ValueError,
            r"proba has shape \(2, 2, 3\): 2 labels cannot have a cardinality of 3",
        ),
        ([[["a"]]], [[0.5, 0.5]], TypeError, r"proba has dtype <U1: it must hold real numbers"),
        (
            GOOD,
            sparse.csr_array(GOOD_D),
            TypeError,
            "distribution is a sparse matrix: it must be a dense array",
        ),
    ],
)
def test_conditionals_refuse(q, d, error, sentence):
    with pytest.raises(error, match=sentence):
        cardinality.from_conditionals(q, d)


def test_conditionals_name_the_row_in_a_later_block(monkeypatch):
    monkeypatch.setattr(_blocks, "BLOCK_BYTES", 1)
    with pytest.raises(ValueError, match=r"proba\[1, 0, 1\] is 7.0"):
        cardinality.from_conditionals(spoiled(GOOD, (1, 0, 1), 7.0), GOOD_D)
    with pytest.raises(ValueError, match=r"distribution\[1\] sums to"):
        cardinality.from_conditionals(GOOD, spoiled(GOOD_D, (1, 2), 0.9))


# merge_distributions


@SETTINGS
@given(seeds)
def test_distributions_are_merged_as_by_loops(seed):
    rng = np.random.default_rng(seed)
    ds = [
        rng.dirichlet(np.ones(int(rng.integers(1, 5))), size=3)
        for _ in range(int(rng.integers(1, 8)))
    ]
    merged = cardinality.merge_distributions(ds)
    np.testing.assert_allclose(merged, distributions_by_loops(ds), rtol=1e-12, atol=1e-16)
    np.testing.assert_allclose(merged.sum(axis=1), 1.0, rtol=1e-12)


def test_merged_distribution_is_that_of_the_joint():
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


def test_merging_does_not_depend_on_the_order_of_factors():
    rng = np.random.default_rng(2)
    ds = [rng.dirichlet(np.ones(k), size=5) for k in (2, 5, 3, 2)]
    np.testing.assert_allclose(
        cardinality.merge_distributions(ds), cardinality.merge_distributions(ds[::-1]), rtol=1e-12
    )


def test_one_factor_stays_as_it_is():
    d = np.random.default_rng(3).dirichlet(np.ones(4), size=6)
    np.testing.assert_allclose(cardinality.merge_distributions([d]), d, rtol=1e-15)


def test_many_singletons_are_a_binomial():
    merged = cardinality.merge_distributions([np.full((2, 2), 0.5)] * 40)
    expected = [math.comb(40, s) / 2**40 for s in range(41)]
    np.testing.assert_allclose(merged, [expected] * 2, rtol=1e-12)


def test_merging_in_blocks_has_the_same_bits(monkeypatch):
    rng = np.random.default_rng(4)
    ds = [rng.dirichlet(np.ones(k), size=9) for k in (2, 4, 3)]
    whole = cardinality.merge_distributions(ds)
    monkeypatch.setattr(_blocks, "BLOCK_BYTES", 1)
    assert (cardinality.merge_distributions(ds) == whole).all()


def test_merging_no_rows():
    assert cardinality.merge_distributions([np.empty((0, 3)), np.empty((0, 2))]).shape == (0, 4)


@pytest.mark.parametrize(
    ("ds", "error", "sentence"),
    [
        ([], ValueError, "distributions is empty: there must be at least one factor"),
        (np.full((1, 2, 2), 0.5), TypeError, "distributions is ndarray: it must be a list"),
        (5, TypeError, "distributions is int: it must be a list"),
        (
            [[[0.5, 0.5]], [[0.5, 0.5], [1.0, 0.0]]],
            ValueError,
            r"distributions\[1\] has 2 rows and distributions\[0\] has 1: they must have the same",
        ),
        (
            [[[0.5, 0.5]], [[0.5, 0.6]]],
            ValueError,
            r"distributions\[1\]\[0\] sums to 1.1: the probabilities of a row must sum to 1",
        ),
        (
            [[[0.5, 0.5], [0.5, 0.5]], [[0.5, 0.5], [1.5, -0.5]]],
            ValueError,
            r"distributions\[1\]\[1, 0\] is 1.5: probabilities must lie in \[0, 1\]",
        ),
        (
            [[[0.5, 0.5]], [[np.nan, 0.5]]],
            ValueError,
            r"distributions\[1\]\[0, 0\] is nan: probabilities must lie in \[0, 1\]",
        ),
        ([[0.5, 0.5]], ValueError, r"distributions\[0\] has shape \(2,\): it must have 2 dim"),
        ([[["a", "b"]]], TypeError, r"distributions\[0\] has dtype <U1"),
    ],
)
def test_merging_refuses(ds, error, sentence):
    with pytest.raises(error, match=sentence):
        cardinality.merge_distributions(ds)
