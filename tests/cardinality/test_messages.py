"""Invalid input: errors name the argument, the value with its place, and the rule."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy import sparse

from fgfm import cardinality as c


def spoiled(array, index, value):
    """Return a copy of an array with some elements replaced."""
    array = np.array(array, dtype=float)
    array[index] = value
    return array


EYE, THIRD, HALF = np.eye(3, dtype=int), np.full((2, 3), 1 / 3), np.full((2, 3), 0.5)
Q, P, D = np.full((2, 3, 2), 0.5), np.full((2, 3, 2), 0.1), [[0.5, 0.2, 0.3], [0.5, 0.2, 0.3]]
ONE, PAIR, COIN = np.full((2, 1, 1), 0.5), np.full((2, 2, 1), 0.25), np.full((2, 2), 0.5)
OVER = spoiled(np.zeros((4, 2, 2)), (3, slice(None), 0), 0.56)
MASS = spoiled(np.zeros((2, 2, 2)), (1, slice(None), 0), 0.9)
SURE = spoiled(MASS, (1,), 0.9)
UNIT = "probabilities must lie in [0, 1]"
VALUE_ERRORS = [
    (c.of_joint, (EYE, [[0.5, 0.5, 0], [0.25] * 3]), "proba[1] sums to 0.75: the probabilities"),
    (c.of_joint, (EYE, [[1, -0.5, 0.5]]), f"proba[0, 1] is -0.5: {UNIT}"),
    (c.of_joint, (EYE, [[0.5, 0.5, np.nan]]), f"proba[0, 2] is nan: {UNIT}"),
    (c.of_joint, (EYE[:2], THIRD), "proba has 3 columns and labelsets has 2 rows: there must"),
    (c.of_joint, (np.diag([1, -1, 1]), THIRD), "labelsets[1, 1] is -1: labels must be 0 or 1"),
    (c.of_joint, (sparse.csc_array(np.diag([1, 2, 3])), THIRD), "labelsets[1, 1] is 2: labels"),
    (c.of_joint, (EYE[:0], np.zeros((0, 1))), "labelsets has shape (0, 3): it must have at least"),
    (c.of_joint, (sparse.csr_array((3, 0)), THIRD), "labelsets has shape (3, 0): it must have"),
    (c.of_joint, ([1, 0, 1], THIRD), "labelsets has shape (3,): it must have 2 dimensions"),
    (c.of_samples, (np.diag([1, 2, 3])[:, None],), "samples[1, 0, 1] is 2: labels must be 0 or"),
    (c.of_samples, ([[[0.0, 1.0], [np.nan, 1.0]]],), "samples[0, 1, 0] is nan: labels must be 0"),
    (c.of_samples, (np.zeros((2, 3)),), "samples has shape (2, 3): it must have 3 dimensions"),
    (c.of_samples, (np.zeros((2, 0, 3)),), "samples has shape (2, 0, 3): it must have at least"),
    (c.of_marginals, (HALF, np.full((2, 5), 0.2)), "distribution has shape (2, 5): with 3 labels"),
    (c.of_marginals, (HALF, np.ones((2, 1))), "distribution has shape (2, 1): with 3 labels it"),
    (c.of_marginals, (HALF, [[0.5, 0.5]]), "distribution has 1 rows and proba has 2: they must"),
    (c.of_marginals, (HALF, [[0.5, 0.5], [0.5, 0.3]]), "distribution[1] sums to 0.8: the proba"),
    (c.of_marginals, (HALF, [[-0.5, 1.5]] * 2), f"distribution[0, 0] is -0.5: {UNIT}"),
    (c.of_marginals, ([[0.5], [np.nan]], COIN), f"proba[1, 0] is nan: {UNIT}"),
    (c.of_marginals, (spoiled(HALF, (1, 2), 1.2),), f"proba[1, 2] is 1.2: {UNIT}"),
    (c.of_marginals, (HALF[0],), "proba has shape (3,): it must have 2 dimensions"),
    (c.of_conditionals, (spoiled(Q, (1, 2, 0), 1.2), THIRD), f"proba[1, 2, 0] is 1.2: {UNIT}"),
    (c.of_conditionals, (spoiled(Q, (0, 1, 1), np.nan), THIRD), f"proba[0, 1, 1] is nan: {UNIT}"),
    (c.of_conditionals, (Q, spoiled(THIRD, (1, 0), -0.1)), f"distribution[1, 0] is -0.1: {UNIT}"),
    (c.of_conditionals, (Q, spoiled(THIRD, (1, 0), 0.5)), "distribution[1] sums to 1.16667: the"),
    (c.of_conditionals, (Q, THIRD[:, :2]), "it must have shape (2, 3), for 0 to 2 labels"),
    (c.of_conditionals, (Q, THIRD[:1]), "distribution has shape (1, 3)"),
    (c.of_conditionals, (Q[:, :, 0], THIRD), "proba has shape (2, 3): it must have 3 dimensions"),
    (c.of_conditionals, (Q[:, :1], THIRD), "proba has shape (2, 1, 2): 1 labels cannot have a"),
    (c.distribution, (OVER,), "P[3] implies d_0 = -0.12: the probabilities of 1 to 2 labels, d_s"),
    (c.distribution, (spoiled(OVER, (2, 1, 0), -0.1),), f"P[2, 1, 0] is -0.1: {UNIT}"),
    (c.distribution, (np.zeros((1, 2, 3)),), "P has shape (1, 2, 3): 2 labels cannot have a card"),
    (c.make_coherent, (P, COIN), "distribution has shape (2, 2): with a P of 2 rows and 2 card"),
    (c.make_coherent, (P[0],), "P has shape (3, 2): it must have 3 dimensions"),
    (c.make_coherent, (P, spoiled(D, (1, 1), 0.1)), "distribution[1] sums to 0.9: the probabil"),
    (c.make_coherent, (P, spoiled(D, (0, 2), -0.3)), f"distribution[0, 2] is -0.3: {UNIT}"),
    (c.make_coherent, (spoiled(P, (1, 0, 1), np.inf),), "P[1, 0, 1] is inf: it must be finite an"),
    (c.make_coherent, (spoiled(P, (1, 0, 1), np.nan),), "P[1, 0, 1] is nan: it must be finite an"),
    (c.make_coherent, (spoiled(P, (1, 0, 1), -0.2),), "P[1, 0, 1] is -0.2: it must be finite"),
    (c.make_coherent, (spoiled(P, (1, 0, 1), 1.5), D), f"P[1, 0, 1] is 1.5: {UNIT}"),
    (c.is_coherent, (P, COIN), "it must have shape (2, 3), for 0 to 2 labels"),
    (c.is_coherent, (P[0],), "P has shape (3, 2): it must have 3 dimensions"),
    (c.merge_factors, ([], []), "Ps is empty: there must be at least one factor"),
    (c.merge_factors, ([ONE, ONE[:1]], [[0], [1]]), "Ps[1] has 1 rows and Ps[0] has 2: they must"),
    (c.merge_factors, ([ONE, ONE[0]], [[0], [1]]), "Ps[1] has shape (1, 1): it must have 3 dim"),
    (c.merge_factors, ([ONE, ONE], [[0], [0]]), "factors[0] and factors[1] both hold label 0 and"),
    (c.merge_factors, ([ONE, PAIR], [[0], [1]]), "factors[1] has 1 labels and Ps[1] has 2: the"),
    (c.merge_factors, ([ONE, MASS], [[0], [1, 2]]), "Ps[1][1] implies d_0 = -0.8: the probab"),
    (c.merge_factors, ([ONE, SURE], [[0], [1, 2]]), "Ps[1][1, 0] sums to 1.8 over cardinal"),
    (c.merge_factors, ([ONE, 3 * ONE], [[0], [1]]), f"Ps[1][0, 0, 0] is 1.5: {UNIT}"),
    (c.merge_factors, ([ONE] * 2, [[0], [1]], [COIN]), "distributions has 1 entries and Ps has 2"),
    (c.merge_factors, ([ONE] * 2, [[0], [1]], [COIN, COIN[:1]]), "distributions[1] has shape (1,"),
    (c.merge_factors, ([ONE], [[0]], [[[2, -1], [0, 1]]]), f"distributions[0][0, 0] is 2: {UNIT}"),
    (c.merge_distributions, ([[0.5, 0.5]],), "distributions[0] has shape (2,): it must have 2 di"),
    (c.merge_distributions, ([COIN, [[0.5, 0.5], [1.5, -0.5]]],), "distributions[1][1, 0] is 1.5"),
    (c.merge_distributions, ([],), "distributions is empty: there must be at least one factor"),
    (c.merge_distributions, ([COIN[:1], COIN],), "distributions[1] has 2 rows and distributions["),
    (c.merge_distributions, ([COIN, spoiled(COIN, (0, 1), 0.6)],), "distributions[1][0] sums to"),
]
TYPE_ERRORS = [
    (c.of_marginals, (sparse.csr_array(HALF),), "proba is a sparse matrix: it must be a dense"),
    (c.of_conditionals, ([[["a"]]], COIN[:1]), "proba has dtype <U1: it must hold real numbers"),
    (c.of_conditionals, (Q, sparse.csr_array(THIRD)), "distribution is a sparse matrix: it must"),
    (c.merge_factors, (ONE, [[0]]), "it must be a list with the P of each factor"),
    (c.merge_factors, ([ONE], [[0]], np.array([COIN])), "distributions is ndarray: it must be a"),
    (c.merge_distributions, (np.full((1, 2, 2), 0.5),), "distributions is ndarray: it must be a"),
    (c.merge_distributions, ([[["a", "b"]]],), "distributions[0] has dtype <U1"),
    (c.merge_distributions, (5,), "distributions is int: it must be a list"),
]


@pytest.mark.parametrize("block_bytes", [1 << 22, 1])  # 1: blocks of one row
@pytest.mark.parametrize(("function", "arguments", "message"), VALUE_ERRORS)
def test_values_and_shapes(function, arguments, message, block_bytes, monkeypatch):
    monkeypatch.setattr("fgfm._utils.blocks.BLOCK_BYTES", block_bytes)
    with pytest.raises(ValueError, match=re.escape(message)):
        function(*arguments)


@pytest.mark.parametrize(("function", "arguments", "message"), TYPE_ERRORS)
def test_types(function, arguments, message):
    with pytest.raises(TypeError, match=re.escape(message)):
        function(*arguments)


@pytest.mark.parametrize("d", [None, [[0.5, 0.5]]])
def test_unknown_method(d):
    with pytest.raises(ValueError, match="method is 'given': it must be one of 'tilt', 'condi"):
        c.of_marginals([[0.5]], d, method="given")
