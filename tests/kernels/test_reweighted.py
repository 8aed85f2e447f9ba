"""Independent labels reweighted to a distribution of their number, against enumeration and P."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import special

from fgfm import cardinality, decision
from fgfm._kernels import Objective, decide_reweighted_rows, reweight_marginals, softmax
from oracle import all_labelsets, check_decision

NONE_MISSED = np.empty(0), np.empty((0, 0))


def decide(
    p,
    d,
    t=1.0,
    u=1.0,
    beta=1.0,
    zero_division=1.0,
    nonempty=False,
    min_labels=0,
    max_labels=None,
    missed=NONE_MISSED,
):
    labels, expected = np.zeros(p.shape, dtype=np.int8), np.empty(len(p))
    most = p.shape[1] if max_labels is None else max_labels
    objective = Objective(beta**2, zero_division, nonempty)
    arguments = (p, d, t, u, *missed, objective, min_labels, most)
    decide_reweighted_rows(*arguments, labels, expected)
    return labels, expected


def marginals(p, d, t=1.0, u=1.0):
    found = np.empty(p.shape)
    reweight_marginals(p, d, t, u, found)
    return found


def joint_distribution(p, d, t=1.0, u=1.0):
    """Enumerate p(y) = d_s prod w_i^y_i / e_s(w) with w = p^t / (1 - p)^u, in long doubles."""
    sets = all_labelsets(p.shape[1])
    p = p.astype(np.longdouble)
    odds = p**t / (1.0 - p) ** u
    weight = (odds[:, None, :] ** sets).prod(axis=2)  # (n, 2^m)
    size = sets.sum(axis=1)
    for s in range(p.shape[1] + 1):
        share = d[:, [s]] if s < d.shape[1] else 0.0
        weight[:, size == s] *= share / weight[:, size == s].sum(axis=1, keepdims=True)
    return sets, weight.astype(np.float64)


def random_rows(rng, n, m, S, power=2.0, concentration=1.0):
    p = np.maximum(rng.random((n, m)) ** power, 1e-12)  # smaller ones count as this
    return p, rng.dirichlet(np.full(S + 1, concentration), size=n)


@pytest.mark.parametrize(("m", "S"), [(1, 1), (2, 1), (4, 4), (6, 3), (9, 9)])
@pytest.mark.parametrize("power", [0.2, 1.0, 6.0])
@pytest.mark.parametrize(("t", "u"), [(1.0, 1.0), (0.7, 1.6), (1.3, 0.0)])
def test_against_enumeration(m, S, power, t, u):
    rng = np.random.default_rng([m, S])
    p, d = random_rows(rng, 15, m, S, power)
    joint = joint_distribution(p, d, t, u)
    for objective in (
        {},
        {"beta": 2.0, "zero_division": 0.3},
        {"beta": 0.5, "nonempty": True},
        {"min_labels": min(2, m), "max_labels": max(1, m - 1)} if m > 2 else {"max_labels": 1},
    ):
        check_decision(decide(p, d, t, u, **objective), joint, **objective)
    np.testing.assert_allclose(marginals(p, d, t, u), joint[1] @ joint[0], rtol=1e-11)


@pytest.mark.parametrize(
    "objective",
    [{}, {"beta": 2.0, "zero_division": 0.3}, {"beta": 0.5, "nonempty": True}, {"max_labels": 2}],
)
@pytest.mark.parametrize("numbers", [[0.0, 1.0, 4.0], [2.0, 30.0]])
def test_missed_items_against_enumeration(numbers, objective):
    rng = np.random.default_rng(5)
    for m, S in ((1, 1), (4, 4), (7, 5)):
        p, d = random_rows(rng, 10, m, S)
        given = rng.dirichlet(np.ones(len(numbers)), size=S + 1)  # (S + 1, J)
        sets, weight = joint_distribution(p, d)
        labels, expected = decide(p, d, missed=(np.array(numbers), given), **objective)
        size, beta2 = sets.sum(axis=1), objective.get("beta", 1.0) ** 2
        hits = (1.0 + beta2) * (sets @ sets.T)[..., None]  # (true, decided, 1)
        total = beta2 * (size[:, None, None] + numbers) + size[:, None]  # (true, decided, J)
        empty = objective.get("zero_division", 1.0) * (not objective.get("nonempty", False))
        f = np.where(total == 0.0, empty, hits / np.maximum(total, 1e-300))
        value = weight @ np.einsum("ydj,yj->yd", f, given[np.minimum(size, S)])  # (n, decided)
        if objective.get("nonempty"):
            value /= 1.0 - d[:, :1] * given[0, 0] * (numbers[0] == 0.0)
        allowed = (size <= objective.get("max_labels", m)) & (size >= ("nonempty" in objective))
        np.testing.assert_allclose(expected, value[:, allowed].max(axis=1), rtol=1e-11)
        chosen = (labels[:, None] == sets).all(axis=2)
        np.testing.assert_allclose(value[chosen], expected, rtol=1e-11)


@pytest.mark.parametrize(("m", "S"), [(20, 13), (60, 60), (200, 40)])
@pytest.mark.parametrize("concentration", [0.05, 3.0])
def test_equal_to_the_decision_from_P(m, S, concentration):
    rng = np.random.default_rng(m)
    p, d = random_rows(rng, 30, m, S, 3.0, concentration)
    P = cardinality.of_marginals(p, d, method="condition")
    for objective in ({}, {"beta": 2.0}, {"zero_division": 0.0, "max_labels": 3}):
        labels, expected = decision.from_cardinalities(P, distribution=d, **objective)
        found = decide(p, d, **objective)
        np.testing.assert_array_equal(found[0], labels)
        np.testing.assert_allclose(found[1], expected, rtol=1e-11)
    np.testing.assert_allclose(marginals(p, d), P.sum(axis=2), rtol=1e-10)


def test_equal_labels_are_chosen_by_their_index():
    p, d = np.full((1, 40), 0.25), np.eye(13)[[12]]
    labels, expected = decide(p, d)
    np.testing.assert_array_equal(labels[0], np.arange(40) < labels.sum())
    np.testing.assert_allclose(marginals(p, d), 0.3, rtol=1e-12)
    P = cardinality.of_marginals(p, d, method="condition")
    np.testing.assert_allclose(expected, decision.from_cardinalities(P).expected_f)


def test_certain_and_impossible_labels():
    """Labels of probability 0 are never chosen; 1 is 1e-12 less than certain."""
    p = np.array([[1.0, 0.0, 0.5, 1.0, 0.0]])
    labels, expected = decide(p, np.array([[0.0, 0.0, 0.5, 0.5, 0.0, 0.0]]))
    np.testing.assert_array_equal(labels, [[1, 0, 0, 1, 0]])
    np.testing.assert_allclose(expected, 0.5 + 0.5 * 4.0 / 5.0)
    # more labels than are possible: all that are
    labels, expected = decide(p, np.array([[0.0, 0.0, 0.0, 0.0, 0.5, 0.5]]))
    np.testing.assert_array_equal(labels, [[1, 0, 1, 1, 0]])
    np.testing.assert_allclose(expected, 1.0)
    none = np.zeros((1, 5))
    assert decide(none, np.array([[0.5, 0.5]]))[1] == 1.0
    assert decide(none, np.array([[0.5, 0.5]]), nonempty=True)[1] == 0.0
    assert (marginals(none, np.array([[0.5, 0.5]])) == 0.0).all()


@pytest.mark.parametrize("s", [1, 7, 100, 300, 599, 600])
def test_numbers_far_from_those_of_independent_labels(s):
    """Given s, with half of the labels almost certain and half almost impossible."""
    p = np.repeat([[1.0 - 1e-9, 1e-9]], 300, axis=0).reshape(1, -1)
    p[0, ::2] -= np.linspace(0.0, 1e-3, 300)
    d = np.zeros((1, 601))
    d[0, s] = 1.0
    found = marginals(p, d)
    np.testing.assert_allclose(found.sum(), s, rtol=1e-9)
    P = cardinality.of_marginals(p, d, method="condition")
    np.testing.assert_allclose(found, P.sum(axis=2), rtol=1e-5, atol=1e-12)
    labels, expected = decide(p, d)
    reference = decision.from_cardinalities(P, distribution=d)
    np.testing.assert_allclose(expected, reference.expected_f, rtol=1e-6)
    assert abs(int(labels.sum()) - int(reference.labels.sum())) <= 1


def test_many_numbers_that_no_common_factor_serves():
    """Exact fractions: elementary symmetric polynomials of odds that differ by 1e60."""
    w = [Fraction(10) ** 3] * 60 + [Fraction(1, 1000)] * 60
    e = [Fraction(1)]
    for x in w:
        e = [a + x * b for a, b in zip([*e, 0], [0, *e], strict=True)]
    without = [Fraction(1)]
    for x in w[1:]:
        without = [a + x * b for a, b in zip([*without, 0], [0, *without], strict=True)]
    p = np.array([[float(x / (1 + x)) for x in w]])
    numbers = [1, 30, 60, 90, 119, 120]
    d = np.zeros((1, 121))
    d[0, numbers] = 1.0 / len(numbers)
    exact = sum(w[0] * without[s - 1] / e[s] for s in numbers) / len(numbers)
    np.testing.assert_allclose(marginals(p, d)[0, 0], float(exact), rtol=1e-11)


def test_rows_do_not_depend_on_each_other():
    rng = np.random.default_rng(0)
    p, d = random_rows(rng, 40, 33, 20)
    p[::3, 5:] = 0.0  # few labels: other sizes of the work space
    d[1::3, 4:] = 0.0
    labels, expected = decide(p, d)
    for row in range(40):
        one = decide(p[[row]], d[[row]])
        np.testing.assert_array_equal(one[0][0], labels[row])
        assert one[1][0] == expected[row]


@pytest.mark.parametrize("K", [1, 3, 4, 9])
def test_softmax(K):
    x = 30.0 * np.random.default_rng(K).normal(size=(5, K))
    found = x.copy()
    softmax(found)
    np.testing.assert_allclose(found, special.softmax(x, axis=1), rtol=1e-13)
