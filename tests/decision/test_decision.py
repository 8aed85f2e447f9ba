"""Every route to a decision against exhaustive enumeration, and against the other routes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import oracle
from cases import BETAS, MARGINALS, ZERO_DIVISIONS
from fgfm import cardinality, decision

objectives = pytest.mark.parametrize("beta", BETAS)
options = pytest.mark.parametrize(
    ("zero_division", "nonempty"), [(z, False) for z in ZERO_DIVISIONS] + [(1.0, True)]
)
quick = settings(deadline=None, max_examples=60)
probabilities = st.one_of(
    st.floats(0.0, 1.0, allow_nan=False),
    st.sampled_from([0.0, 1.0, 0.5, 0.25, 1e-300, 1e-16, 1.0 - 1e-16, 1 / 64]),
)


def possible(p, nonempty):
    """Leave out the rows that contradict the condition."""
    return p[p.max(axis=1) > 0.0] if nonempty else p


def random_parts(rng, n, sizes):
    """Draw joints for factors of these sizes, and scatter the labels over them."""
    labels = rng.permutation(sum(sizes))
    factors = np.split(labels, np.cumsum(sizes)[:-1])
    joints = [oracle.random_joint(rng, n, size) for size in sizes]
    return joints, factors, [oracle.cardinality_matrix(*joint) for joint in joints]


# Against enumeration -----------------------------------------------------------------------------


@objectives
@options
@pytest.mark.parametrize("name", MARGINALS)
def test_marginals(name, beta, zero_division, nonempty):
    p = possible(MARGINALS[name], nonempty)
    kwargs = {"beta": beta, "zero_division": zero_division, "nonempty": nonempty}
    decided = decision.from_marginals(p, **kwargs)
    oracle.check_decision(decided, oracle.independent_joint(p), **kwargs)


@quick
@given(
    p=st.lists(probabilities, min_size=1, max_size=7),
    beta=st.floats(0.1, 10.0),
    zero_division=st.floats(0.0, 1.0),
    nonempty=st.booleans(),
)
def test_any_marginals(p, beta, zero_division, nonempty):
    p = np.array([p])
    nonempty = nonempty and bool(p.any())
    kwargs = {"beta": beta, "zero_division": zero_division, "nonempty": nonempty}
    labels, expected_f = decision.from_marginals(p, **kwargs)
    value = oracle.expected_f(oracle.independent_joint(p), beta, zero_division, nonempty)[0]
    chosen = value[labels[0] @ (1 << np.arange(p.shape[1])[::-1])]
    assert expected_f[0] == pytest.approx(value.max(), rel=1e-11, abs=1e-305)
    assert chosen == pytest.approx(value.max(), rel=1e-11, abs=1e-305)


@objectives
@options
@pytest.mark.parametrize("m", [1, 2, 3, 5, 8, 10])
def test_cardinalities(m, beta, zero_division, nonempty):
    joint = oracle.random_joint(np.random.default_rng(m), 4, m)
    kwargs = {"beta": beta, "zero_division": zero_division, "nonempty": nonempty}
    decided = decision.from_cardinalities(oracle.cardinality_matrix(*joint), **kwargs)
    oracle.check_decision(decided, joint, **kwargs)


@objectives
@pytest.mark.parametrize("S", [1, 2, 4])
def test_cardinalities_of_limited_depth(S, beta):
    """No set has more than S labels, so that P has no more columns."""
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


@objectives
@options
@pytest.mark.parametrize(
    "sizes", [[1], [3], [1, 1, 1], [2, 3], [1, 4, 2], [5, 1, 1, 1], [2, 2, 2, 2], [1, 1, 7]]
)
def test_factors(sizes, beta, zero_division, nonempty):
    joints, factors, Ps = random_parts(np.random.default_rng(len(sizes)), 4, sizes)
    kwargs = {"beta": beta, "zero_division": zero_division, "nonempty": nonempty}
    decided = decision.from_factors(Ps, factors, **kwargs)
    oracle.check_decision(decided, oracle.product_joint(joints, factors), **kwargs)


@quick
@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=4).filter(
        lambda sizes: sum(sizes) <= 8
    ),
    beta=st.floats(0.1, 10.0),
    concentration=st.sampled_from([0.02, 0.3, 2.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_factors(sizes, beta, concentration, seed):
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


def test_equal_factors_tie_by_label():
    """Four copies of one factor: what is worth the same is taken by index, not by rounding."""
    joint = oracle.random_joint(np.random.default_rng(3), 5, 2)
    P = oracle.cardinality_matrix(*joint)
    for factors in ([[0, 1], [2, 3], [4, 5], [6, 7]], [[7, 6], [3, 2], [5, 4], [1, 0]]):
        decided = decision.from_factors([P] * 4, factors)
        oracle.check_decision(decided, oracle.product_joint([joint] * 4, factors))


@objectives
@options
def test_samples(beta, zero_division, nonempty):
    rng = np.random.default_rng(5)
    samples = (rng.random((6, 9, 5)) < rng.random((6, 1, 5))).astype(np.int64)
    samples[0, :5] = 0
    samples[1, :, 2:] = 0
    kwargs = {"beta": beta, "zero_division": zero_division, "nonempty": nonempty}
    labels, expected_f = decision.from_samples(samples, **kwargs)
    for row, draws in enumerate(samples):
        decided = labels[[row]], expected_f[[row]]
        oracle.check_decision(decided, (draws, np.full((1, 9), 1 / 9)), **kwargs)


@objectives
@options
def test_joint(beta, zero_division, nonempty):
    rng = np.random.default_rng(6)
    labelsets = oracle.all_labelsets(7)[rng.permutation(128)[:30]]
    labelsets[:3] = [[0] * 7, [1] * 7, [1] * 7]  # the empty set, and one set twice
    proba = rng.dirichlet(np.full(30, 0.2), size=10)
    kwargs = {"beta": beta, "zero_division": zero_division, "nonempty": nonempty}
    decided = decision.from_joint(labelsets, proba, **kwargs)
    oracle.check_decision(decided, (labelsets, proba), **kwargs)
    again = decision.from_joint(sparse.csr_array(labelsets), proba, **kwargs)
    np.testing.assert_array_equal(again.labels, decided.labels)
    np.testing.assert_array_equal(again.expected_f, decided.expected_f)


# Routes that must agree --------------------------------------------------------------------------


def assert_agree(first, second, rtol=1e-11):
    np.testing.assert_allclose(first.expected_f, second.expected_f, rtol=rtol)
    np.testing.assert_array_equal(first.labels, second.labels)


@objectives
@pytest.mark.parametrize("m", [3, 20, 90])
def test_marginals_are_singletons_are_merged(m, beta):
    p = np.random.default_rng(m).random((5, m)) ** np.array([[1], [2], [4], [8], [16]])
    factors = [[i] for i in range(m)]
    Ps = [p[:, [i], None] for i in range(m)]
    direct = decision.from_marginals(p, beta=beta)
    assert_agree(direct, decision.from_factors(Ps, factors, beta=beta))
    d = [np.stack([1.0 - p[:, i], p[:, i]], axis=1) for i in range(m)]
    assert_agree(direct, decision.from_factors(Ps, factors, distributions=d, beta=beta))
    assert_agree(direct, decision.from_cardinalities(cardinality.from_marginals(p), beta=beta))
    merged = cardinality.merge_factors(Ps, factors)
    assert_agree(direct, decision.from_cardinalities(merged.P, beta=beta))
    pairs = [[i, i + 1] for i in range(0, m - 1, 2)] + ([[m - 1]] if m % 2 else [])
    P_pairs = [cardinality.from_marginals(p[:, pair]) for pair in pairs]
    assert_agree(direct, decision.from_factors(P_pairs, pairs, beta=beta))


@objectives
@pytest.mark.parametrize("sizes", [[4] * 10, [1] * 30 + [6, 3], [25, 1, 12], [2, 1] * 8])
def test_factors_are_merged(sizes, beta):
    rng = np.random.default_rng(len(sizes))
    factors = np.split(rng.permutation(sum(sizes)), np.cumsum(sizes)[:-1])
    Ps = []
    for size in sizes:
        sets = (rng.random((12, size)) < rng.random(size) ** 2).astype(int)
        Ps.append(cardinality.from_joint(sets, rng.dirichlet(np.ones(12), size=4)))
    merged = cardinality.merge_factors(Ps, factors)
    direct = decision.from_factors(Ps, factors, beta=beta)
    assert_agree(direct, decision.from_cardinalities(merged.P, beta=beta))
    for row in range(4):
        labels, value = oracle.gfm(merged.P[row], merged.d[row, 0], beta)
        assert direct.expected_f[row] == pytest.approx(value, rel=1e-11)
        np.testing.assert_array_equal(direct.labels[row], labels)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["many expected", "long tail", "all alike", "tiny"])
def test_a_thousand_labels(kind):
    """Underflow: with 500 expected labels, P(s = 0) is far below the smallest float."""
    rng = np.random.default_rng(9)
    p = {
        "many expected": rng.random((2, 1000)),
        "long tail": rng.random((2, 1000)) ** 20,
        "all alike": np.full((2, 1000), 0.004),
        "tiny": rng.random((2, 1000)) * 1e-300,
    }[kind]
    kwargs = {"zero_division": 0.0} if kind == "tiny" else {}
    direct = decision.from_marginals(p, **kwargs)
    blocks = [list(range(i, i + 4)) for i in range(0, 1000, 4)]
    P_blocks = [cardinality.from_marginals(p[:, block]) for block in blocks]
    assert_agree(direct, decision.from_factors(P_blocks, blocks, **kwargs))
    mixed = blocks[:50] + [[i] for i in range(200, 1000)]
    P_mixed = P_blocks[:50] + [p[:, [i], None] for i in range(200, 1000)]
    assert_agree(direct, decision.from_factors(P_mixed, mixed, **kwargs))
    whole = cardinality.from_marginals(p)
    assert_agree(direct, decision.from_cardinalities(whole, **kwargs))
    for row in range(2):
        empty = float(np.exp(np.log1p(-p[row]).sum()))
        labels, value = oracle.gfm(whole[row], empty, **kwargs)
        assert direct.expected_f[row] == pytest.approx(value, rel=1e-11)
        np.testing.assert_array_equal(direct.labels[row], labels)
        value = max(oracle.independent_values(p[row]).max(), 0.0 if kwargs else empty)
        assert direct.expected_f[row] == pytest.approx(value, rel=1e-11)


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("power", [0.1, 1, 3, 8, 40])
@pytest.mark.parametrize("m", [150, 600, 3000])
def test_windows_of_ranks(m, power):
    """Many candidates: the bounds that skip ranks must not skip the optimum."""
    rng = np.random.default_rng(m)
    p = rng.random((3, m)) ** power
    p[1] = np.round(p[1], 2)  # ties
    p[2, : m // 2] = p[2, 0]  # more ties
    labels, expected_f = decision.from_marginals(p)
    for row in range(3):
        value = oracle.independent_values(p[row])
        assert expected_f[row] == pytest.approx(value.max(), rel=1e-11)
        size = labels[row].sum()
        assert value[size - 1] >= value.max() * (1.0 - 1e-11)
        assert size == np.flatnonzero(value >= value.max() * (1.0 - 1e-12))[0] + 1
        chosen = np.lexsort((np.arange(m), -p[row]))[:size]  # the largest, lower index first
        np.testing.assert_array_equal(np.flatnonzero(labels[row]), np.sort(chosen))


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("beta", [0.3, 1.0, 3.0])
def test_a_hundred_thousand_labels_scaled(beta):
    """A row beside which the same row stands twice: the value hardly moves, the set doubles."""
    rng = np.random.default_rng(1)
    p = rng.random(50_000)
    once = decision.from_marginals([p], beta=beta)
    twice = decision.from_marginals([np.repeat(p, 2)], beta=beta)
    assert twice.expected_f[0] == pytest.approx(once.expected_f[0], rel=1e-4)
    assert twice.labels.sum() == pytest.approx(2 * once.labels.sum(), rel=1e-3)
    # A threshold, as theory has it: p > F / (1 + beta^2), up to terms of order 1 / m.
    threshold = once.expected_f[0] / (1.0 + beta**2)
    assert p[once.labels[0] == 1].min() == pytest.approx(threshold, rel=1e-3)
    assert p[once.labels[0] == 0].max() == pytest.approx(threshold, rel=1e-3)


# Invariance --------------------------------------------------------------------------------------


def test_permuted_labels():
    rng = np.random.default_rng(11)
    p = rng.random((20, 40)) ** 3
    order = rng.permutation(40)
    assert_agree(
        decision.from_marginals(p[:, order]),
        decision.Decision(
            decision.from_marginals(p).labels[:, order], decision.from_marginals(p).expected_f
        ),
        rtol=1e-13,
    )
    P = cardinality.from_marginals(p[:5])
    straight = decision.from_cardinalities(P)
    turned = decision.from_cardinalities(P[:, order])
    np.testing.assert_array_equal(turned.labels, straight.labels[:, order])
    np.testing.assert_allclose(turned.expected_f, straight.expected_f, rtol=1e-13)


def test_order_of_factors():
    rng = np.random.default_rng(12)
    _, factors, Ps = random_parts(rng, 6, [3, 1, 4, 2, 1])
    straight = decision.from_factors(Ps, factors)
    for _ in range(5):
        order = rng.permutation(5)
        turned = decision.from_factors([Ps[f] for f in order], [factors[f] for f in order])
        assert_agree(straight, turned, rtol=1e-13)
        inside = [rng.permutation(len(factor)) for factor in factors]
        turned = decision.from_factors(
            [P[:, at] for P, at in zip(Ps, inside, strict=True)],
            [factor[at] for factor, at in zip(factors, inside, strict=True)],
        )
        assert_agree(straight, turned, rtol=1e-13)


@objectives
def test_split_factors(beta):
    """A factor made of two independent parts may as well be given as two."""
    rng = np.random.default_rng(13)
    _, factors, Ps = random_parts(rng, 6, [3, 2, 4])
    joined = cardinality.merge_factors(Ps[:2], [[0, 1, 2], [3, 4]]).P
    together = [np.concatenate(factors[:2]), factors[2]]
    assert_agree(
        decision.from_factors(Ps, factors, beta=beta),
        decision.from_factors([joined, Ps[2]], together, beta=beta),
    )


@objectives
@pytest.mark.parametrize("nonempty", [False, True])
def test_impossible_labels(beta, nonempty):
    p = np.random.default_rng(14).random((10, 8)) ** 2
    padded = np.zeros((10, 30))
    padded[:, 5:13] = p
    kwargs = {"beta": beta, "nonempty": nonempty}
    plain = decision.from_marginals(p, **kwargs)
    wide = decision.from_marginals(padded, **kwargs)
    np.testing.assert_array_equal(wide.labels[:, 5:13], plain.labels)
    assert wide.labels.sum() == plain.labels.sum()
    np.testing.assert_allclose(wide.expected_f, plain.expected_f, rtol=1e-13)
    P = cardinality.from_marginals(p)
    P_padded = np.zeros((10, 11, 10))
    P_padded[:, 2:10, :8] = P
    plain = decision.from_cardinalities(P, **kwargs)
    wide = decision.from_cardinalities(P_padded, **kwargs)
    np.testing.assert_array_equal(wide.labels[:, 2:10], plain.labels)
    np.testing.assert_allclose(wide.expected_f, plain.expected_f, rtol=1e-13)


def test_certain_labels():
    """What is certain is decided, and is worth 1."""
    sets = oracle.all_labelsets(5)
    for beta in BETAS:
        labels, expected_f = decision.from_marginals(sets.astype(float), beta=beta)
        np.testing.assert_array_equal(labels, sets)
        np.testing.assert_allclose(expected_f, 1.0, rtol=1e-13)


# Mistakes that published implementations make ----------------------------------------------------


def test_the_empty_set_is_not_forgotten():
    labels, expected_f = decision.from_marginals([[0.1, 0.2, 0.05]])
    assert not labels.any()
    assert expected_f[0] == pytest.approx(0.9 * 0.8 * 0.95, rel=1e-13)
    P = cardinality.from_marginals([[0.1, 0.2, 0.05]])
    assert not decision.from_cardinalities(P).labels.any()


def test_the_empty_set_is_not_forced():
    """Every p is below 1/2, and d_0 above any of them; still two labels are better."""
    labels, expected_f = decision.from_marginals([[0.45, 0.45]])
    np.testing.assert_array_equal(labels, [[1, 1]])
    assert expected_f[0] > 0.55**2


def test_beta_is_squared():
    """F_beta of {0} for y = {0, 1} is (1 + b^2) / (2 b^2 + 1): at b = 2 that is 5/9, not 3/5."""
    P = np.zeros((1, 2, 2))
    P[0, :, 1] = 1.0  # both labels, surely
    P[0, 1] = 0.0  # of which the second is never credited: an incoherent P, on purpose
    decided = decision.from_cardinalities(P, distribution=[[0.0, 0.0, 1.0]], beta=2.0)
    np.testing.assert_array_equal(decided.labels, [[1, 0]])
    assert decided.expected_f[0] == pytest.approx(5 / 9, rel=1e-14)


def test_the_product_with_weights_is_a_matrix_product():
    """P W, not P * W: with all mass at s = 2 the elementwise product sees one column of three."""
    labelsets = [[1, 1, 0], [1, 0, 1], [0, 1, 1]]
    decided = decision.from_joint(labelsets, [[0.5, 0.3, 0.2]])
    P = cardinality.from_joint(labelsets, [[0.5, 0.3, 0.2]])
    assert_agree(decided, decision.from_cardinalities(P))
    oracle.check_decision(decided, (np.array(labelsets), np.array([[0.5, 0.3, 0.2]])))


@objectives
def test_the_factor_one_plus_beta_squared(beta):
    labels, expected_f = decision.from_marginals([[1.0]], beta=beta)
    assert labels[0, 0] == 1
    assert expected_f[0] == pytest.approx(1.0, rel=1e-13)


# The worth of P is given beside it ---------------------------------------------------------------


def test_distribution_beside_an_incoherent_matrix():
    """The paper's own numbers: d from its model, P need not agree with it."""
    P = np.array([[[0.5, 0.3], [0.5, 0.1]]])  # implies d_1 = 1.0 and d_2 = 0.2
    with pytest.raises(ValueError, match=r"P\[0\] implies d_0 = -0\.2"):
        decision.from_cardinalities(P)
    d = np.array([[0.1, 0.6, 0.3]])
    labels, expected_f = decision.from_cardinalities(P, distribution=d)
    delta_2 = 2.0 * (P[0] @ [1 / 3, 1 / 4])
    np.testing.assert_array_equal(labels, [[1, 1]])
    assert expected_f[0] == pytest.approx(delta_2.sum(), rel=1e-13)
    merged = cardinality.merge_factors([P, P], [[0, 1], [2, 3]], distributions=[d, d])
    one = decision.from_factors([P, P], [[0, 1], [2, 3]], distributions=[d, d])
    other = decision.from_cardinalities(merged.P, distribution=merged.d)
    assert_agree(one, other)


def test_distribution_decides_about_the_empty_set():
    P = np.array([[[0.3], [0.2]]])
    assert decision.from_cardinalities(P, distribution=[[0.2, 0.8]]).labels.any()
    assert not decision.from_cardinalities(P, distribution=[[0.9, 0.1]]).labels.any()


def test_a_small_given_chance_of_no_label_is_kept():
    """1 less the others, it would be 0."""
    P, d = np.zeros((1, 1, 1)), np.array([[1e-17, 1.0]])
    decided = decision.from_factors([P, P], [[0], [1]], distributions=[d, d])
    assert decided.expected_f[0] == pytest.approx(1e-34, rel=1e-12, abs=0.0)


# Where floating point gives out ------------------------------------------------------------------


@pytest.mark.parametrize("T", [3, 7, 10, 49, 50, 100, 1000])
def test_equal_draws(T):
    """T times 1 / T is not always 1."""
    labels, expected_f = decision.from_samples(np.tile([1, 0, 1], (2, T, 1)))
    np.testing.assert_array_equal(labels, [[1, 0, 1]] * 2)
    np.testing.assert_allclose(expected_f, 1.0, rtol=1e-13)


def test_label_in_every_set():
    rng = np.random.default_rng(21)
    labelsets = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1]])
    proba = rng.dirichlet(np.ones(3), size=300)
    decided = decision.from_joint(labelsets, proba)
    oracle.check_decision(decided, (labelsets, proba))


@pytest.mark.parametrize("m", [40, 100, 300, 1000])
@pytest.mark.parametrize("scale", [1e-10, 1e-17, 1e-100, 1e-280, 1e-300])
@pytest.mark.parametrize("equal", [False, True])
def test_scale_does_not_matter(m, scale, equal):
    """Given that one label is present, its odds alone count, however small all p are."""
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


def test_values_that_hardly_differ():
    """Differences of a few last places, near the smallest float: no index may run away."""
    rng = np.random.default_rng(22)
    for size in (20, 40, 200):
        p = 1e-300 * (1.0 + 2.2e-16 * rng.integers(0, 4, (3, size)))
        labels, expected_f = decision.from_marginals(p, nonempty=True)
        np.testing.assert_allclose(expected_f, 2.0 / (1.0 + size), rtol=1e-11)
        assert labels.all()
        decided = decision.from_cardinalities(p[:, :, None], nonempty=True)
        np.testing.assert_allclose(decided.expected_f, 2.0 / (1.0 + size), rtol=1e-11)


def test_large_cardinality_matrix_of_tiny_values():
    rng = np.random.default_rng(23)
    P = rng.random((5, 40, 5))
    P /= (P.sum(axis=1, keepdims=True) / np.arange(1, 6)).sum(axis=2, keepdims=True)
    reference = decision.from_cardinalities(P, nonempty=True)
    for scale in (1e-20, 1e-150, 1e-170, 1e-290):
        scaled = decision.from_cardinalities(P * scale, nonempty=True)
        np.testing.assert_array_equal(scaled.labels, reference.labels)
        np.testing.assert_allclose(scaled.expected_f, reference.expected_f, rtol=1e-10)


@pytest.mark.parametrize("beta", [1e-50, 1e-20, 1e-5, 1e5, 1e20, 1e50])
def test_extreme_betas(beta):
    """Precision or recall alone: the surest label, or all that are possible."""
    p = np.array([[0.1, 0.6, 0.3], [0.5, 0.2, 0.0]])
    labels, expected_f = decision.from_marginals(p, beta=beta)
    factored = decision.from_factors(
        [p[:, [0], None], p[:, 1:, None] / 2], [[0], [1, 2]], beta=beta
    )
    assert np.isfinite(factored.expected_f).all()
    if beta > 1.0:
        np.testing.assert_array_equal(labels, [[1, 1, 1], [1, 1, 0]])
        expected = 1.0 - (1.0 - p).prod(axis=1)
    else:
        np.testing.assert_array_equal(labels, [[0, 1, 0], [1, 0, 0]])
        expected = p.max(axis=1)
    np.testing.assert_allclose(expected_f, expected, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("m", [10**5, 10**6])
def test_a_million_equal_labels(m):
    """All labels are taken, and F is 2 m p / (s + m) on average, with s binomial."""
    from scipy.stats import binom

    p = 0.3
    s = np.arange(m + 1)
    expected = float((binom.pmf(s, m, p) * 2.0 * s / (s + m)).sum())
    labels, expected_f = decision.from_marginals(np.full((1, m), p))
    assert labels.all()
    assert expected_f[0] == pytest.approx(expected, rel=2e-12)


def test_no_label_is_worth_more_than_certainty():
    """Whatever is passed, an expected F lies in [0, 1]."""
    rng = np.random.default_rng(24)
    for route in range(200):
        p = rng.random((3, 6)) ** rng.integers(1, 9)
        p[rng.random((3, 6)) < 0.3] = rng.integers(0, 2)
        draws = (rng.random((3, 30, 6)) < p[:, None]).astype(int)
        for _, expected_f in (
            decision.from_marginals(p, beta=1 + route % 3),
            decision.from_samples(draws),
            decision.from_cardinalities(cardinality.from_samples(draws)),
        ):
            assert (expected_f >= 0.0).all()
            assert (expected_f <= 1.0 + 1e-12).all()
