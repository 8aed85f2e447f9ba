"""`from_marginals` with measure="jaccard": against enumeration, and for many labels."""

from __future__ import annotations

import re
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import oracle
from cases import MARGINALS, assert_same_decision, dense, every_option, possible_rows
from fgfm import decision
from fgfm._kernels import native
from fgfm.decision._quadrature import rule_tables

probabilities = st.one_of(
    st.floats(0.0, 1.0, allow_nan=False),
    st.sampled_from([0.0, 1.0, 0.5, 0.25, 1e-300, 1e-16, 1.0 - 1e-16, 1 / 64]),
    st.floats(0.0, 0.02),
)


def decide(p, **kwargs):
    return decision.from_marginals(p, measure="jaccard", **kwargs)


# Against enumeration -----------------------------------------------------------------------------


@every_option
@pytest.mark.parametrize("name", MARGINALS)
def test_decision_is_optimal(name, zero_division, nonempty):
    p = possible_rows(MARGINALS[name], nonempty)
    kwargs = {"zero_division": zero_division, "nonempty": nonempty}
    joint = oracle.independent_joint(p)
    oracle.check_decision(decide(p, **kwargs), joint, measure="jaccard", **kwargs)


@settings(deadline=None, max_examples=200, derandomize=True)
@given(
    p=st.lists(probabilities, min_size=1, max_size=8),
    zero_division=st.floats(0.0, 1.0),
    nonempty=st.booleans(),
)
def test_any_decision_is_optimal(p, zero_division, nonempty):
    p = np.array([p])
    nonempty = nonempty and bool(p.any())
    labels, expected = decide(p, zero_division=zero_division, nonempty=nonempty)
    joint = oracle.independent_joint(p)
    value = oracle.expected_f(joint, 1.0, zero_division, nonempty, "jaccard")[0]
    chosen = value[labels[0] @ (1 << np.arange(p.shape[1])[::-1])]
    assert expected[0] == pytest.approx(value.max(), rel=1e-11, abs=1e-305)
    assert chosen == pytest.approx(value.max(), rel=1e-11, abs=1e-305)


def test_certain_labels_are_decided():
    sets = oracle.all_labelsets(6)
    labels, expected = decide(sets.astype(float))
    np.testing.assert_array_equal(labels, sets)
    np.testing.assert_allclose(expected, 1.0, rtol=1e-13)


def test_one_of_tied_sets():
    """Sets {0}, {0, 1} of p = (1, 1/2) have values 3/4: the smaller wins, then the lower index."""
    labels, expected = decide([[1.0, 0.5], [0.5, 1.0]])
    np.testing.assert_array_equal(labels, [[1, 0], [0, 1]])
    np.testing.assert_allclose(expected, 0.75, rtol=1e-13)
    labels, _ = decide([[0.5, 0.0, 0.5, 0.5]], nonempty=True)
    np.testing.assert_array_equal(labels, [[1, 0, 1, 1]])


# Many labels -------------------------------------------------------------------------------------


def assert_best_of_prefixes(p, labels, expected, rtol=1e-12):
    value = oracle.jaccard_values(p)
    assert expected == pytest.approx(value.max(), rel=rtol)
    size = labels.sum()
    assert size == np.flatnonzero(value >= value.max() * (1.0 - 1e-12))[0] + 1
    chosen = np.lexsort((np.arange(len(p)), -p))[:size]  # the largest, lower index first
    np.testing.assert_array_equal(np.flatnonzero(labels), np.sort(chosen))


@pytest.mark.parametrize("power", [0.1, 1, 3, 8, 40])
@pytest.mark.parametrize("m", [70, 150, 600, pytest.param(2000, marks=pytest.mark.slow)])
def test_bounds_on_set_sizes_keep_the_optimum(m, power):
    rng = np.random.default_rng(m)
    p = rng.random((4, m)) ** power
    p[1] = np.round(p[1], 2)  # ties
    p[2, : m // 2] = p[2, 0]  # more ties
    p[3] = np.where(p[3] > 0.5, 1.0, p[3] / 4.0)  # certain labels
    labels, expected = decide(p, zero_division=0.0)
    for row in range(4):
        assert_best_of_prefixes(p[row], labels[row], expected[row])


@pytest.mark.parametrize("scale", [1e-3, 0.015, 1 / 64, 0.02])
@pytest.mark.parametrize("m", [100, 1500])
def test_labels_around_the_limit_of_power_sums(m, scale):
    p = scale * np.random.default_rng(m).random(m) ** 0.2
    labels, expected = decide([p], zero_division=0.0)
    assert_best_of_prefixes(p, labels[0], expected[0])


@pytest.mark.slow
@pytest.mark.parametrize("case", ["uniform", "certain", "equal", "rare", "near"])
def test_rows_searched_by_threshold(case):
    """Lists of more than 8192 labels."""
    rng = np.random.default_rng(9)
    m = 9000
    x = rng.random(m)
    p = {
        "uniform": x,
        "certain": np.where(rng.random(m) < 0.5, 1.0, 0.9 * x),
        "equal": np.full(m, 0.3),
        "rare": x**12,
        "near": 0.4 + 1e-7 * x,
    }[case]
    labels, expected = decide([p])
    assert_best_of_prefixes(p, labels[0], expected[0])


def test_threshold_of_a_mask():
    """With many labels the decision tends to p > J / (1 + J)."""
    p = np.random.default_rng(1).random(262_144)
    labels, expected = decide([p])
    threshold = expected[0] / (1.0 + expected[0])
    assert p[labels[0] == 1].min() == pytest.approx(threshold, rel=1e-4)
    assert p[labels[0] == 0].max() == pytest.approx(threshold, rel=1e-4)


@pytest.mark.parametrize("m", [10**5, pytest.param(10**6, marks=pytest.mark.slow)])
def test_equal_and_certain_labels_have_their_expectation(m):
    labels, expected = decide([np.full(m, 0.3)])  # all: E|y| / m
    assert labels.all()
    assert expected[0] == pytest.approx(0.3, rel=1e-12)
    mask = np.arange(m) % 3 == 0
    labels, expected = decide([mask.astype(float)])
    np.testing.assert_array_equal(labels[0], mask)
    assert expected[0] == pytest.approx(1.0, rel=1e-12)


# Kinds of input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "power"), [(5, 1), (130, 4), (700, 20), (9000, 1)])
def test_sparse_rows_are_decided_as_dense_ones(m, power):
    rng = np.random.default_rng(m)
    p = rng.random((6, m)) ** power * (rng.random((6, m)) < 0.4)
    decided = decide(sparse.csr_array(p))
    assert sparse.issparse(decided.labels)
    assert_same_decision(decided, decide(p), rtol=1e-12)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_averages_are_columns_and_all_entries(kind):
    p = np.random.default_rng(7).random((50, 40)) ** 3
    p[p < 0.05] = 0.0
    macro, columns = decide(kind(p), average="macro"), decide(p.T)
    np.testing.assert_array_equal(dense(macro.labels), columns.labels.T)
    np.testing.assert_allclose(macro.expected_f, columns.expected_f, rtol=1e-12)
    micro, entries = decide(kind(p), average="micro"), decide(p.reshape(1, -1))
    np.testing.assert_array_equal(dense(micro.labels).ravel(), entries.labels[0])
    np.testing.assert_allclose(micro.expected_f, entries.expected_f[0], rtol=1e-12)


# Invariances -------------------------------------------------------------------------------------


def test_impossible_labels_and_order_do_not_matter():
    rng = np.random.default_rng(5)
    p = rng.random((20, 300)) ** 3
    order = rng.permutation(300)
    whole = decide(p)
    permuted = decide(p[:, order])
    np.testing.assert_array_equal(permuted.labels, whole.labels[:, order])
    np.testing.assert_allclose(permuted.expected_f, whole.expected_f, rtol=1e-13)
    padded = decide(np.hstack([p, np.zeros((20, 500))]))
    np.testing.assert_array_equal(padded.labels[:, :300], whole.labels)
    np.testing.assert_allclose(padded.expected_f, whole.expected_f, rtol=1e-12)


@pytest.mark.parametrize(("n", "m"), [(200, 3), (50, 129), (20, 1000), (2, 20_000)])
@pytest.mark.parametrize("power", [1, 4, 40])
def test_instruction_sets_decide_alike(n, m, power):
    baseline = import_module("fgfm._kernels._native")
    if native is baseline:
        pytest.skip("this machine runs the baseline only")
    p = np.random.default_rng([n, m, power]).random((n, m)) ** power
    results = []
    for module in (native, baseline):
        rules = module.Rules()
        for name, value in rule_tables(1.0)._asdict().items():
            setattr(rules, name, value.tolist() if isinstance(value, np.ndarray) else value)
        labels, expected = np.zeros(p.shape, dtype=np.int8), np.empty(n)
        status = module.decide_jaccard_dense_rows(p, 1.0, 1.0, False, rules, labels, expected)
        assert status == (-1, 0.0, 0)
        results.append((labels.tobytes(), expected.tobytes()))
    assert results[0] == results[1]


# Errors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [1.2, -0.3, np.nan])
@pytest.mark.parametrize("m", [4, 500])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_values_that_are_not_probabilities(bad, m, kind):
    p = np.random.default_rng(6).random((3, m))
    p[1, 2] = bad
    with pytest.raises(ValueError, match=re.escape("proba[1, 2]")):
        decide(kind(p))
