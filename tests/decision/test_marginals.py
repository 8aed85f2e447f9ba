"""`from_marginals` on dense arrays: against enumeration, and for very many or tiny values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import oracle
from cases import BETAS, MARGINALS, assert_best_of_prefixes, dense, every_option, possible_rows
from fgfm import cardinality, decision

SHORT = 128  # labels of the longest rows of the kernel for short ones
probabilities = st.one_of(
    st.floats(0.0, 1.0, allow_nan=False),
    st.sampled_from([0.0, 1.0, 0.5, 0.25, 1e-300, 1e-16, 1.0 - 1e-16, 1 / 64]),
    st.floats(0.0, 0.02),
)
every_measure = pytest.mark.parametrize("measure", ["f", "jaccard"])


# Against enumeration -----------------------------------------------------------------------------


@pytest.mark.parametrize(("measure", "beta"), [*(("f", b) for b in BETAS), ("jaccard", 1.0)])
@every_option
@pytest.mark.parametrize("name", MARGINALS)
def test_decision_is_optimal(name, measure, beta, zero_division, nonempty):
    p = possible_rows(MARGINALS[name], nonempty)
    kwargs = {
        "measure": measure,
        "beta": beta,
        "zero_division": zero_division,
        "nonempty": nonempty,
    }
    decided = decision.from_marginals(p, **kwargs)
    oracle.check_decision(decided, oracle.independent_joint(p), **kwargs)


@every_measure
@settings(deadline=None, max_examples=150, derandomize=True)
@given(
    p=st.lists(probabilities, min_size=1, max_size=8),
    beta=st.floats(0.1, 10.0),
    zero_division=st.floats(0.0, 1.0),
    nonempty=st.booleans(),
)
def test_any_decision_is_optimal(measure, p, beta, zero_division, nonempty):
    p = np.array([p])
    beta = beta if measure == "f" else 1.0
    options = beta, zero_division, nonempty and bool(p.any())
    kwargs = dict(zip(("beta", "zero_division", "nonempty"), options, strict=True))
    labels, expected_f = decision.from_marginals(p, measure=measure, **kwargs)
    value = oracle.expected_f(oracle.independent_joint(p), *options, measure)[0]
    chosen = value[labels[0] @ (1 << np.arange(p.shape[1])[::-1])]
    assert expected_f[0] == pytest.approx(value.max(), rel=1e-11, abs=1e-305)
    assert chosen == pytest.approx(value.max(), rel=1e-11, abs=1e-305)


@settings(deadline=None, max_examples=300, derandomize=True)
@given(
    row=st.lists(probabilities, min_size=1, max_size=SHORT),
    beta=st.sampled_from([0.3, 0.5, 1.0, 2.0, 5.0]),
    zero_division=st.sampled_from([0.0, 0.5, 1.0]),
    nonempty=st.booleans(),
)
def test_short_and_long_rows_are_decided_alike(row, beta, zero_division, nonempty):
    """Labels of probability 0 change nothing, but longer rows have another kernel."""
    nonempty = nonempty and any(row)
    kwargs = {"beta": beta, "zero_division": zero_division, "nonempty": nonempty}
    short = decision.from_marginals([row], **kwargs)
    long = decision.from_marginals([row + SHORT * [0.0]], **kwargs)
    # an expected F below 1e-290 may be rounded to 0
    np.testing.assert_allclose(short.expected_f, long.expected_f, rtol=1e-11, atol=1e-290)
    sets = short.labels[0], long.labels[0, : len(row)]
    # the same set, unless two sets have the same value up to rounding
    if short.expected_f[0] > 1e-290 and not np.array_equal(*sets):
        P = cardinality.of_marginals([row])[0]
        s = np.arange(1, P.shape[1] + 1)
        empty = zero_division * float(np.prod(1.0 - np.array(row)))
        direct = [
            ((1.0 + beta**2) * P[labels == 1] / (beta**2 * s + labels.sum())).sum()
            if labels.any()
            else empty
            for labels in sets
        ]
        assert direct[0] == pytest.approx(direct[1], rel=3e-12)


@pytest.mark.parametrize("options", [*({"beta": b} for b in BETAS), {"measure": "jaccard"}])
def test_certain_labels_are_decided(options):
    sets = oracle.all_labelsets(6)
    labels, expected_f = decision.from_marginals(sets.astype(float), **options)
    np.testing.assert_array_equal(labels, sets)
    np.testing.assert_allclose(expected_f, 1.0, rtol=1e-13)


# Errors of published implementations -------------------------------------------------------------


def test_empty_set_is_considered():
    labels, expected_f = decision.from_marginals([[0.1, 0.2, 0.05]])
    assert not labels.any()
    assert expected_f[0] == pytest.approx(0.9 * 0.8 * 0.95, rel=1e-13)


def test_empty_set_is_not_preferred():
    """Every p is below 1/2, and d_0 exceeds each of them; still two labels are better."""
    labels, expected_f = decision.from_marginals([[0.45, 0.45]])
    np.testing.assert_array_equal(labels, [[1, 1]])
    assert expected_f[0] > 0.55**2


# Many labels -------------------------------------------------------------------------------------


@every_measure
@pytest.mark.parametrize("power", [0.1, 1, 3, 8, 40])
@pytest.mark.parametrize("m", [70, 150, 600, pytest.param(3000, marks=pytest.mark.slow)])
def test_bounds_on_set_sizes_keep_the_optimum(m, power, measure):
    rng = np.random.default_rng(m)
    p = rng.random((4, m)) ** power
    p[1] = np.round(p[1], 2)  # ties
    p[2, : m // 2] = p[2, 0]  # more ties
    p[3] = np.where(p[3] > 0.5, 1.0, p[3] / 4.0)  # certain labels
    labels, expected = decision.from_marginals(p, measure=measure, zero_division=0.0)
    for row in range(4):
        assert_best_of_prefixes(p[row], labels[row], expected[row], measure)


@every_measure
@pytest.mark.parametrize("scale", [1e-3, 0.015, 1 / 64, 0.02])
@pytest.mark.parametrize("m", [100, 1500])
def test_labels_around_the_limit_of_power_sums(m, scale, measure):
    p = scale * np.random.default_rng(m).random(m) ** 0.2
    labels, expected = decision.from_marginals([p], measure=measure, zero_division=0.0)
    assert_best_of_prefixes(p, labels[0], expected[0], measure)


@pytest.mark.parametrize("beta", [0.3, 1.0, 3.0])
def test_every_label_twice_doubles_the_set(beta):
    """With 50,000 labels the value hardly changes if every label is repeated."""
    rng = np.random.default_rng(1)
    p = rng.random(50_000)
    once = decision.from_marginals([p], beta=beta)
    twice = decision.from_marginals([np.repeat(p, 2)], beta=beta)
    assert twice.expected_f[0] == pytest.approx(once.expected_f[0], rel=1e-4)
    assert twice.labels.sum() == pytest.approx(2 * once.labels.sum(), rel=1e-3)
    # The decision is a threshold: p > F / (1 + beta^2), up to terms of order 1 / m.
    threshold = once.expected_f[0] / (1.0 + beta**2)
    assert p[once.labels[0] == 1].min() == pytest.approx(threshold, rel=1e-3)
    assert p[once.labels[0] == 0].max() == pytest.approx(threshold, rel=1e-3)


@pytest.mark.parametrize("m", [10**5, pytest.param(10**6, marks=pytest.mark.slow)])
def test_equal_labels_have_the_binomial_expectation(m):
    """All labels are chosen, and F is 2 s / (s + m) with s binomial."""
    from scipy.stats import binom

    p = 0.3
    s = np.arange(m + 1)
    expected = float((binom.pmf(s, m, p) * 2.0 * s / (s + m)).sum())
    labels, expected_f = decision.from_marginals(np.full((1, m), p))
    assert labels.all()
    assert expected_f[0] == pytest.approx(expected, rel=2e-12)


# Tiny values and extreme parameters --------------------------------------------------------------


def test_values_that_differ_by_rounding():
    """Differences of a few units in the last place, near the smallest float."""
    rng = np.random.default_rng(22)
    for m in (20, 40, 200):
        p = 1e-300 * (1.0 + 2.2e-16 * rng.integers(0, 4, (3, m)))
        labels, expected_f = decision.from_marginals(p, nonempty=True)
        np.testing.assert_allclose(expected_f, 2.0 / (1.0 + m), rtol=1e-11)
        assert labels.all()
        decided = decision.from_cardinalities(p[:, :, None], nonempty=True)
        np.testing.assert_allclose(decided.expected_f, 2.0 / (1.0 + m), rtol=1e-11)


@pytest.mark.parametrize("beta", [1e-50, 1e-20, 1e-5, 1e5, 1e20, 1e50])
def test_extreme_beta_is_precision_or_recall(beta):
    """Then the most probable label is best, or all possible ones."""
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


@pytest.mark.parametrize("beta", [1e-6, 1e-3, 50.0, 1e4, np.float32(2.0), np.int64(3)])
def test_beta_of_any_number_type(beta):
    p = np.array([[0.9, 0.5, 0.3, 0.01]])
    labels, expected_f = decision.from_marginals(p, beta=beta, nonempty=True)
    assert 0.0 < expected_f[0] <= 1.0
    if beta >= 50:
        assert labels.sum() == 4  # recall alone
    if beta <= 1e-3:
        np.testing.assert_array_equal(labels, [[1, 0, 0, 0]])  # precision alone


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-290])
@pytest.mark.parametrize("options", [{}, {"min_labels": 1}, {"measure": "jaccard"}], ids=str)
def test_rows_of_the_smallest_numbers_keep_their_digits(scale, options):
    """Given that a label is true it is the only one: only ratios of probabilities matter."""
    ratios, wide = np.array([[1.0, 3.0, 2.0]]), ((0, 0), (0, 150))
    beta = 1.0 if "measure" in options else 464.78
    options = {"beta": beta, "nonempty": True, **options}
    expected = decision.from_marginals(ratios * 1e-20, **options)
    p = ratios * scale
    for rows in (p, sparse.csr_array(p), np.pad(p, wide)):
        decided = decision.Decision(*map(dense, decision.from_marginals(rows, **options)))
        np.testing.assert_allclose(decided.expected_f, expected.expected_f, rtol=1e-11)
        assert decided.labels[0, :3].tolist() == expected.labels[0].tolist()
    if "measure" not in options:
        Ps = [p[:, [0, 2], None], p[:, [1], None]]
        for decided in (
            decision.from_cardinalities(p[:, :, None], **options),
            decision.from_factors(Ps, [[0, 2], [1]], **options),
        ):
            np.testing.assert_allclose(decided.expected_f, expected.expected_f, 1e-11)
            assert decided.labels.tolist() == expected.labels.tolist()
    unconditional = {**options, "nonempty": False, "zero_division": 0.0}
    first, second = (decision.from_marginals(ratios * x, **unconditional) for x in (scale, 1e-20))
    assert first.labels.tolist() == second.labels.tolist()
