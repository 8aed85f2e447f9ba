"""`from_joint` against enumeration."""

from __future__ import annotations

import numpy as np
from scipy import sparse

import oracle
from cases import assert_same_decision, every_beta, every_option
from fgfm import cardinality, decision


@every_beta
@every_option
def test_decision_is_optimal(beta, zero_division, nonempty):
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


def test_label_in_every_set_is_decided():
    rng = np.random.default_rng(21)
    labelsets = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1]])
    proba = rng.dirichlet(np.ones(3), size=300)
    decided = decision.from_joint(labelsets, proba)
    oracle.check_decision(decided, (labelsets, proba))


def test_product_with_the_weights_is_a_matrix_product():
    """P W, not P * W: with all mass at s = 2 the elementwise product uses one column of three."""
    labelsets = [[1, 1, 0], [1, 0, 1], [0, 1, 1]]
    decided = decision.from_joint(labelsets, [[0.5, 0.3, 0.2]])
    P = cardinality.of_joint(labelsets, [[0.5, 0.3, 0.2]])
    assert_same_decision(decided, decision.from_cardinalities(P))
    oracle.check_decision(decided, (np.array(labelsets), np.array([[0.5, 0.3, 0.2]])))
