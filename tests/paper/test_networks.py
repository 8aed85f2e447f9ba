"""The paper's networks: samples, exact distributions and optimal decisions."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fgfm
import oracle
from fgfm.paper import STRUCTURES, LabelNetwork, paper_data, random_network

SHAPES = [((2, 1), 2, 1), ((3,), 1, 0), ((1, 1, 1), 3, 2), ((2, 2), 0, 2), ((4, 1), 4, 2)]


def chain_rule_probability(network, x, y):
    """Multiply the conditional probabilities of one label set, label by label."""
    p = 1.0
    for factor in network.factors:
        for k, label in enumerate(factor):
            state = sum(int(x[j]) << j for j in range(network.n_parents))
            before = factor[:k]
            state += sum(int(y[i]) << (network.n_parents + at) for at, i in enumerate(before))
            q = network.tables[label][state]
            p *= q if y[label] else 1.0 - q
    return p


@pytest.mark.parametrize(("sizes", "n_parents", "n_irrelevant"), SHAPES)
def test_exact_distribution_is_the_product_of_the_tables(sizes, n_parents, n_irrelevant):
    network = random_network(sizes, n_parents=n_parents, n_irrelevant=n_irrelevant, random_state=1)
    X, proba = network.inputs()
    assert_allclose(proba.sum(), 1.0)
    labelsets, joint = network.joint(X)
    expected = [[chain_rule_probability(network, x, y) for y in labelsets] for x in X]
    assert_allclose(joint, expected, rtol=1e-12)
    assert_allclose(network.marginals(X), joint @ labelsets, rtol=1e-12)


@pytest.mark.parametrize(("sizes", "n_parents", "n_irrelevant"), SHAPES)
@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
def test_decisions_and_expected_f_agree_with_enumeration(sizes, n_parents, n_irrelevant, beta):
    network = random_network(sizes, n_parents=n_parents, n_irrelevant=n_irrelevant, random_state=2)
    X, proba = network.inputs()
    joint = network.joint(X)
    sets = joint.labelsets
    value = joint.proba @ oracle.f_table(sets.astype(int), beta, 1.0)  # (n, h)
    decision = network.decide(X, beta=beta)
    oracle.check_decision(decision, joint, beta=beta, zero_division=1.0)
    assert_allclose(network.bayes_f(beta=beta), proba @ value.max(axis=1), rtol=1e-12)
    for k, h in enumerate(sets):
        labels = np.tile(h, (len(X), 1))
        assert_allclose(network.expected_f(X, labels, beta=beta), value[:, k], rtol=1e-12)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_bayes_f_agrees_with_a_large_sample(structure):
    network, _, test = paper_data(structure, 1, 50, n_test=200_000, seed=3)
    f = fgfm.f_measure(test.Y, network.decide(test.X).labels, per_row=True)
    error = f.std() / np.sqrt(len(f))
    assert abs(f.mean() - network.bayes_f()) < 4.0 * error
    # frequencies of features, labels and pairs of labels
    X, proba = network.inputs()
    assert_allclose(test.X.mean(axis=0), network.feature_probability, atol=0.006)
    assert_allclose(test.Y.mean(axis=0), proba @ network.marginals(X), atol=0.006)
    labelsets, joint = network.joint(X)
    both = np.einsum("l,li,lj->ij", proba @ joint, labelsets, labelsets)
    assert_allclose((test.Y.T.astype(float) @ test.Y) / len(test.Y), both, atol=0.006)


def test_many_labels_are_supported():
    network = random_network([4] * 50, n_parents=3, n_irrelevant=0, random_state=0)
    X, Y = network.sample(300, 1)
    decision = network.decide(X)
    assert_allclose(network.expected_f(X, decision.labels), decision.expected_f, rtol=1e-12)
    obtained = fgfm.f_measure(Y, decision.labels)
    assert abs(obtained - decision.expected_f.mean()) < 0.02
    with pytest.raises(ValueError, match="the network has 200 labels: joint enumerates"):
        network.joint(X)


def test_data_sets_of_different_sizes_share_network_and_rows():
    small, large = paper_data(2, 5, 50), paper_data(2, 5, 200)
    assert_array_equal(small.network.tables[3], large.network.tables[3])
    assert_array_equal(small.train.Y, large.train.Y[:50])
    assert_array_equal(small.test.Y, large.test.Y)
    assert not np.array_equal(small.train.X, small.test.X[:50])


@pytest.mark.parametrize("other", [{"repetition": 2}, {"seed": 1}, {"structure": 4}])
def test_structure_repetition_and_seed_change_the_network(other):
    first = {"structure": 3, "repetition": 1, "seed": 0}
    a, b = paper_data(n_train=50, **first), paper_data(n_train=50, **first | other)
    assert not np.array_equal(a.network.feature_probability, b.network.feature_probability)


def test_structure_may_be_given_by_its_sizes():
    a, b = paper_data(3, 1, 50), paper_data((6, 2), 1, 50)
    assert_array_equal(a.train.Y, b.train.Y)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: random_network([]), "factor_sizes is empty"),
        (lambda: random_network([2, 0]), r"factor_sizes\[1\] is 0"),
        (lambda: random_network(3), "factor_sizes is 3"),
        (lambda: random_network([20]), r"2\^24 probabilities"),
        (lambda: random_network([2], n_parents=-1), "n_parents is -1"),
        (lambda: random_network([2], n_parents=0, n_irrelevant=0), "at least one feature"),
        (lambda: random_network(random_state=0).sample(2.5), "n is 2.5"),
        (lambda: random_network(random_state=0).marginals([[0, 1]]), "X has 2 columns"),
        (lambda: random_network(random_state=0).marginals([[0, 1, 2, 0, 0, 0]]), r"X\[0, 2\]"),
        (lambda: random_network([2], n_irrelevant=20).inputs(), "24 features"),
        (lambda: paper_data(5, 1, 50), "structure is 5: it must be one of 1, 2, 3, 4"),
        (lambda: paper_data(1, -1, 50), "repetition is -1"),
        (lambda: LabelNetwork([1], [0.5], [[0.5, 1.5]], 1), r"tables\[0\]\[1\] is 1.5"),
        (lambda: LabelNetwork([1], [0.5], [[0.5]], 1), r"tables\[0\] has 1 probabilities"),
        (lambda: LabelNetwork([1], [0.5], [], 1), "tables has 0 elements"),
        (lambda: LabelNetwork([1], [0.5], [[0.5, 0.5]], 2), "n_parents is 2"),
        (lambda: LabelNetwork([1], [1.5], [[0.5, 0.5]], 1), r"feature_probability\[0\] is 1.5"),
        (
            lambda: random_network(random_state=0).expected_f(np.zeros((2, 6)), np.zeros((2, 3))),
            "labels has 3 columns",
        ),
        (
            lambda: random_network(random_state=0).expected_f(np.zeros((2, 6)), np.zeros((3, 8))),
            "rows",
        ),
    ],
)
def test_invalid_arguments_raise(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
