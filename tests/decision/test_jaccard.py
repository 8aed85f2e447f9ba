"""`from_marginals` with measure="jaccard"; see also `test_marginals`."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from cases import assert_best_of_prefixes, assert_same_decision, dense
from fgfm import decision


def decide(p, **kwargs):
    return decision.from_marginals(p, measure="jaccard", **kwargs)


def test_one_of_tied_sets():
    """Sets {0}, {0, 1} of p = (1, 1/2) have values 3/4: the smaller wins, then the lower index."""
    labels, expected = decide([[1.0, 0.5], [0.5, 1.0]])
    np.testing.assert_array_equal(labels, [[1, 0], [0, 1]])
    np.testing.assert_allclose(expected, 0.75, rtol=1e-13)
    labels, _ = decide([[0.5, 0.0, 0.5, 0.5]], nonempty=True)
    np.testing.assert_array_equal(labels, [[1, 0, 1, 1]])


# Many labels -------------------------------------------------------------------------------------


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
    assert_best_of_prefixes(p, labels[0], expected[0], "jaccard", rtol=1e-12)


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
