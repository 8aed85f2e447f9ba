"""`from_factors` with sparse matrices of factors of one label."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import oracle
from cases import assert_same_decision, dense
from csr_cases import OBJECTIVES, random_marginals, shuffled
from fgfm import cardinality, decision

RNG = np.random.default_rng(11)


def random_mixture(n=25):
    """Draw two factors of dependent labels and five labels alone: joints, Ps and factors."""
    alone = random_marginals(RNG, n, 5)
    joints = [
        oracle.random_joint(RNG, n, 3),
        oracle.independent_joint(alone),
        oracle.random_joint(RNG, n, 2),
    ]
    factors = [[7, 0, 4], [9, 2, 5, 1, 8], [6, 3]]
    Ps = [
        oracle.cardinality_matrix(*joints[0]),
        sparse.csr_array(alone),
        oracle.cardinality_matrix(*joints[2]),
    ]
    return joints, Ps, factors


@pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
def test_decision_is_optimal(objective):
    joints, Ps, factors = random_mixture()
    decided = decision.from_factors(Ps, factors, **objective)
    assert isinstance(decided.labels, sparse.csr_array)
    assert decided.labels.has_canonical_format
    joint = oracle.product_joint(joints, factors)
    oracle.check_decision((dense(decided.labels), decided.expected_f), joint, **objective)


def test_ties_between_stored_and_dense_labels():
    """Among equal labels those of lowest index win, in whatever form they are given."""
    pair = cardinality.of_marginals(np.full((4, 2), 0.3))
    alone = sparse.csr_array(np.full((4, 3), 0.3))
    joint = oracle.independent_joint(np.full((4, 6), 0.3))
    for factors in ([[1, 4], [5, 0, 2], [3]], [[5, 0], [1, 2, 3], [4]]):
        decided = decision.from_factors([pair, alone, np.full((4, 1, 1), 0.3)], factors)
        oracle.check_decision((dense(decided.labels), decided.expected_f), joint)


def test_sparse_matrices_only():
    p = random_marginals(RNG, 30, 9)
    expected = decision.from_marginals(p)
    columns = RNG.permutation(9)
    decided = decision.from_factors([sparse.csr_array(p[:, columns])], [columns])
    assert_same_decision(decided, expected, rtol=1e-13)
    two = [sparse.csc_matrix(p[:, columns[:4]]), sparse.coo_array(p[:, columns[4:]])]
    decided = decision.from_factors(two, [columns[:4], columns[4:]])
    assert isinstance(decided.labels, sparse.csr_matrix)
    assert_same_decision(decided, expected, rtol=1e-13)
    mixed = [two[0], *(p[:, [i], None] for i in columns[4:])]
    decided = decision.from_factors(mixed, [columns[:4], *([i] for i in columns[4:])])
    assert_same_decision(decided, expected, rtol=1e-12)


def test_formats_and_index_types():
    _, Ps, factors = random_mixture()
    expected = decision.from_factors(Ps, factors)
    wide = Ps[1].copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for given in (Ps[1], wide, Ps[1].tocsc()):
        decided = decision.from_factors([Ps[0], given, Ps[2]], factors)
        np.testing.assert_array_equal(dense(decided.labels), dense(expected.labels))
        np.testing.assert_array_equal(decided.expected_f, expected.expected_f)
    given = [Ps[0], shuffled(Ps[1], RNG), Ps[2]]
    decided = decision.from_factors(given, factors)
    assert_same_decision(decided, expected, rtol=1e-12)
    single = [P.astype(np.float32) for P in Ps]
    exact = [P.astype(np.float64) for P in single]
    one, other = (decision.from_factors(parts, factors) for parts in (single, exact))
    np.testing.assert_array_equal(dense(one.labels), dense(other.labels))


def test_index_type_can_count_all_chosen_labels(monkeypatch):
    """Dense factors may add more chosen labels than the index type of the input can count.

    A real overflow takes 2^31 labels, so that the call of SciPy is observed instead.
    """
    calls = []
    get_index_dtype = sparse.get_index_dtype

    def observed(arrays=(), maxval=None, check_contents=False):
        calls.append(maxval)
        return get_index_dtype(arrays, maxval, check_contents)

    monkeypatch.setattr(sparse, "get_index_dtype", observed)
    Ps = [np.ones((30, 1, 1)), sparse.csr_array((30, 2))]
    assert decision.from_factors(Ps, [[0], [1, 2]]).labels.nnz == 30
    assert max(calls) == 30
