"""Constraints on label sets: invariances, messages; `tests/hostile` enumerates feasible sets."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse

import oracle
from cases import assert_same_decision, dense
from fgfm import cardinality, decision
from fgfm.decision import Constraints

# Invariances -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def long_rows():
    return np.random.default_rng(8).random((40, 60)) ** 6


def many_limits(m):
    """Return limits of each kind for m labels."""
    tree = {i: (i - 1) // 3 for i in range(1, m)}
    groups = np.arange(m).reshape(-1, 4).tolist()
    costs = np.random.default_rng(m).random(m) * 0.02
    return {
        "sizes": {"min_labels": 3, "max_labels": 7},
        "required": {"constraints": Constraints(required=[m - 1], forbidden=[0, 5])},
        "groups": {"constraints": Constraints(groups=groups)},
        "parents": {"constraints": Constraints(parents=tree)},
        "costs": {"constraints": Constraints(costs=costs)},
        "costs and groups": {"constraints": Constraints(costs=costs, groups=groups)},
        "costs and parents": {"constraints": Constraints(costs=costs, parents=tree)},
    }


every_kind = pytest.mark.parametrize("kind", many_limits(8))


@every_kind
@pytest.mark.parametrize("options", [{}, {"beta": 3.0}, {"nonempty": True}], ids=str)
def test_routes_agree_on_long_rows(long_rows, kind, options):
    p, limits = long_rows, many_limits(60)[kind]
    decided = decision.from_marginals(p, **limits, **options)
    P = cardinality.of_marginals(p)
    assert_same_decision(decided, decision.from_cardinalities(P, **limits, **options))
    halves = [cardinality.of_marginals(p[:, ::2]), cardinality.of_marginals(p[:, 1::2])]
    members = [range(0, 60, 2), range(1, 60, 2)]
    assert_same_decision(decided, decision.from_factors(halves, members, **limits, **options))
    single = [p[:, [i], None] for i in range(60)]
    members = [[i] for i in range(60)]
    assert_same_decision(decided, decision.from_factors(single, members, **limits, **options))


@every_kind
def test_csr_is_decided_as_dense_rows(long_rows, kind):
    p = np.where(long_rows > 0.05, long_rows, 0.0)
    p[0] = 0.0
    limits = many_limits(60)[kind]
    expected = decision.from_marginals(p, **limits)
    for rows in (sparse.csr_array(p), sparse.csr_matrix(p), sparse.coo_array(p)):
        assert_same_decision(decision.from_marginals(rows, **limits), expected)
    parts = [cardinality.of_marginals(p[:, :4]), sparse.csr_array(p[:, 4:])]
    decided = decision.from_factors(parts, [range(4), range(4, 60)], **limits)
    assert_same_decision(decided, expected)


def test_csr_rows_get_labels_that_they_do_not_store():
    """Required labels, ancestors, and labels that fill up a set have probability 0 here."""
    rows = sparse.csr_array(([0.9, 0.8], ([0, 0], [7, 500_000])), shape=(2, 1_000_000))
    tree = Constraints(parents={500_000: 3, 3: 900_000}, required=[11])
    labels, expected_f = decision.from_marginals(rows, min_labels=3, constraints=tree)
    assert labels[[0]].indices.tolist() == [3, 7, 11, 500_000, 900_000]
    assert labels[[1]].indices.tolist() == [0, 1, 11]
    assert expected_f[1] == 0.0
    groups = Constraints(groups=[[7, 0], [1, 2]], costs={4: 0.0, 3: 0.5})
    labels, _ = decision.from_marginals(rows, min_labels=4, constraints=groups)
    assert labels[[0]].indices.tolist() == [1, 4, 7, 500_000]
    assert labels[[1]].indices.tolist() == [0, 1, 4, 5]


def test_permuted_labels_are_decided_alike(long_rows):
    order = np.random.default_rng(0).permutation(60)
    number = np.argsort(order)  # label i of the rows is number[i] of the permuted rows
    costs = np.linspace(0.0, 0.02, 60)
    tree = {i: (i - 1) // 3 for i in range(1, 60)}
    first = decision.from_marginals(
        long_rows, max_labels=9, constraints=Constraints(costs=costs, parents=tree)
    )
    permuted = {int(number[child]): int(number[parent]) for child, parent in tree.items()}
    second = decision.from_marginals(
        long_rows[:, order],
        max_labels=9,
        constraints=Constraints(costs=costs[order], parents=permuted),
    )
    np.testing.assert_array_equal(first.labels[:, order], second.labels)
    np.testing.assert_allclose(first.expected_f, second.expected_f, rtol=1e-12)


def test_constraints_that_exclude_nothing_change_nothing(long_rows):
    free = decision.from_marginals(long_rows)
    for limits in (
        {"max_labels": 60},
        {"constraints": Constraints()},
        {"constraints": Constraints(costs=0.0)},
        {"constraints": Constraints(groups=[[i] for i in range(60)])},
        {"constraints": Constraints(parents=[-1] * 60)},
    ):
        assert_same_decision(decision.from_marginals(long_rows, **limits), free)


@every_kind
def test_a_hierarchy_or_another_constraint_never_gains(long_rows, kind):
    limits = many_limits(60)[kind]
    free = decision.from_marginals(long_rows)
    decided = decision.from_marginals(long_rows, **limits)
    cost = oracle.costs_of(limits.get("constraints"), 60)
    assert (decided.expected_f - decided.labels @ cost <= free.expected_f * (1 + 1e-12)).all()
    for labels in decided.labels:
        assert oracle.is_allowed(labels, **limits)


# Ties, impossible rows ---------------------------------------------------------------------------


def test_ties_go_to_the_lower_label():
    p = np.full((1, 6), 0.5)
    decide = decision.from_marginals
    assert decide(p, max_labels=2).labels[0].tolist() == [1, 1, 0, 0, 0, 0]
    constraints = Constraints(groups=[[5, 0], [1, 2, 3]], forbidden=[0])
    assert decide(p, min_labels=3, constraints=constraints).labels[0].tolist() == [
        0,
        1,
        0,
        0,
        1,
        1,
    ]
    constraints = Constraints(required=[4])
    labels = decide(p, max_labels=2, constraints=constraints).labels[0]
    assert labels.tolist() == [1, 0, 0, 0, 1, 0]


@pytest.mark.parametrize("k", [1, 2, 4])
def test_sets_have_the_decided_size_where_values_nearly_tie(k):
    rng = np.random.default_rng(k)
    p = rng.random((3000, 1)) * (1.0 - 1e-13 * rng.integers(0, 30, (3000, 5)))
    p[0, :4] = [0.4720929233837412, 0.4720929233843077, 0.4720929233838828, 0.4720929233834107]
    members, groups = [[2, 0], [3], [4, 1]], Constraints(groups=[[0], [3], [1], [4], [2]])
    Ps = [cardinality.of_marginals(p[:, factor]) for factor in members]
    for limits in ({}, {"constraints": groups}, {"constraints": Constraints(parents={3: 1})}):
        limits = {"min_labels": k, "max_labels": k, **limits}
        for decided in (
            decision.from_marginals(p, **limits),
            decision.from_marginals(sparse.csr_array(p), **limits),
            decision.from_cardinalities(cardinality.of_marginals(p), **limits),
            decision.from_factors(Ps, members, **limits),
        ):
            assert (dense(decided.labels).sum(axis=1) == k).all()


def test_max_labels_may_exceed_every_integer_type():
    p = [[0.9, 0.2, 0.8]]
    expected = decision.from_marginals(p, max_labels=3)
    assert_same_decision(decision.from_marginals(p, max_labels=2**70), expected)
    with pytest.raises(ValueError, match=f"min_labels is {2**70}, but there are 3 labels"):
        decision.from_marginals(p, min_labels=2**70)


def test_the_empty_set_wins_its_ties():
    draws = [[[1, 0], [0, 0]]]  # the set {0} has the value 1/2, as the empty set
    assert decision.from_samples(draws, max_labels=1).labels.tolist() == [[0, 0]]
    assert decision.from_samples(draws, min_labels=1).labels.tolist() == [[1, 0]]
    forbidden = Constraints(forbidden=[0])
    labels, expected_f = decision.from_samples(draws, constraints=forbidden)
    assert labels.tolist() == [[0, 0]]
    assert expected_f.tolist() == [0.5]


def test_min_labels_does_not_condition_expectations():
    p = [[0.1, 0.2]]
    labels, expected_f = decision.from_marginals(p, min_labels=1)
    assert labels.tolist() == [[0, 1]]
    assert expected_f[0] == pytest.approx(0.2 * (0.9 + 0.1 * 2 / 3))
    conditioned = decision.from_marginals(p, min_labels=1, nonempty=True)
    assert conditioned.expected_f[0] == pytest.approx(expected_f[0] / (1 - 0.9 * 0.8))


@pytest.mark.parametrize(
    "decide",
    [
        lambda **kwargs: decision.from_marginals([[0.0, 0.0, 0.0]], **kwargs),
        lambda **kwargs: decision.from_marginals(sparse.csr_array((1, 3)), **kwargs),
        lambda **kwargs: decision.from_cardinalities(np.zeros((1, 3, 2)), **kwargs),
        lambda **kwargs: decision.from_factors(
            [np.zeros((1, 2, 2)), np.zeros((1, 1, 1))], [[0, 1], [2]], **kwargs
        ),
        lambda **kwargs: decision.from_samples(np.zeros((1, 2, 3)), **kwargs),
        lambda **kwargs: decision.from_joint([[0, 0, 0]], [[1.0]], **kwargs),
    ],
)
def test_rows_without_any_possible_label(decide):
    labels, expected_f = decide(min_labels=2)
    assert dense(labels).tolist() == [[1, 1, 0]]
    assert expected_f.tolist() == [0.0]
    assert decide(max_labels=2).expected_f.tolist() == [1.0]
    required = Constraints(required=[2], costs={0: 0.0, 1: 0.5})
    with pytest.warns(UserWarning, match="the smallest allowed set"):
        labels, expected_f = decide(constraints=required, nonempty=True)
    assert dense(labels).tolist() == [[0, 0, 1]]
    assert np.isnan(expected_f).all()
    with pytest.warns(UserWarning, match="the smallest allowed set"):
        labels, _ = decide(max_labels=2, nonempty=True)
    assert dense(labels).tolist() == [[0, 0, 0]]


# Other arrays ------------------------------------------------------------------------------------


def test_data_frames_have_names():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame([[0.9, 0.8, 0.1]], columns=["dark", "night", "rain"], index=["x"])
    by_name = Constraints(required=["rain"], groups=[["dark", "night"]])
    labels, _ = decision.from_marginals(frame, constraints=by_name)
    assert labels.loc["x"].to_dict() == {"dark": 1, "night": 0, "rain": 1}
    by_number = Constraints(required=[2], groups=[[0, 1]])
    assert decision.from_marginals(frame, constraints=by_number).labels.equals(labels)
    sets = pd.DataFrame([[1, 1], [1, 0]], columns=["a", "b"])
    labels = decision.from_joint(sets, [[0.5, 0.5]], constraints=Constraints(forbidden=["a"]))[0]
    assert labels.tolist() == [[0, 1]]
    with pytest.raises(ValueError, match="'nigth': there is no such label; did you mean 'night'"):
        decision.from_marginals(frame, constraints=Constraints(required=["nigth"]))
    twice = pd.DataFrame([[0.5, 0.5]], columns=["a", "a"])
    with pytest.raises(ValueError, match="several labels have this name"):
        decision.from_marginals(twice, constraints=Constraints(required=["a"]))


# The class, and messages -------------------------------------------------------------------------


def test_constraints_are_values():
    constraints = Constraints(
        required=np.array([2, 1]), groups=[(3, 4)], costs=np.array([0.0, 0.1, 0.2, 0.0, 0.0])
    )
    assert constraints.required == (2, 1)
    assert repr(constraints) == (
        "Constraints(required=(2, 1), groups=((3, 4),), costs=(0.0, 0.1, 0.2, 0.0, 0.0))"
    )
    for same in (
        copy.deepcopy(constraints),
        pickle.loads(pickle.dumps(constraints)),
        eval(repr(constraints)),
    ):
        assert same == constraints
    with pytest.raises(AttributeError, match="cannot assign"):
        constraints.required = [1]
    assert repr(Constraints()) == "Constraints()"
    assert Constraints(parents={1: 0, 2: None}) == Constraints(parents={1: 0})


def test_json_keys_are_label_numbers():
    constraints = Constraints.from_mapping({"parents": {"1": "0"}, "costs": {"0": 0.1}})
    labels = decision.from_marginals([[0.1, 0.9]], constraints=constraints).labels
    assert labels.tolist() == [[1, 1]]
    with pytest.raises(TypeError, match="it must be a mapping"):
        Constraints.from_mapping([1])
    with pytest.raises(ValueError, match=r"there is no 'group'; did you mean 'groups'\?"):
        Constraints.from_mapping({"group": []})
    with pytest.raises(ValueError, match="there is no 'x'; there are 'required', 'forbidden'"):
        Constraints.from_mapping({"x": 1})


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"required": 3}, TypeError, "required is 3: it must be a list of labels"),
        ({"required": "dark"}, TypeError, "required is 'dark': it must be a list of labels"),
        ({"forbidden": [True]}, TypeError, "forbidden has True: labels must be numbers"),
        ({"forbidden": [-1]}, TypeError, "forbidden has -1: labels must be numbers, 0 or more"),
        ({"groups": [1, 2]}, TypeError, r"groups\[0\] is 1: it must be a list of labels"),
        ({"groups": "ab"}, TypeError, "groups is 'ab': it must be a list of lists"),
        (
            {"parents": {1: [0, 2]}},
            TypeError,
            r"the parent of 1 is .*: a label can have",
        ),
        ({"parents": 3}, TypeError, "parents is 3: it must be a mapping"),
        ({"parents": [None, 0.5]}, TypeError, r"parents\[1\] has 0.5: labels must be"),
        ({"costs": {1: -0.5}}, ValueError, r"costs\[1\] is -0.5: a cost must be a finite number"),
        ({"costs": [0.1, np.nan]}, ValueError, r"costs\[1\] is nan: a cost must be"),
        ({"costs": "high"}, TypeError, "costs is 'high': a cost must be"),
        ({"required": [1, 2], "forbidden": [2]}, ValueError, "label 2 is required and forbidden"),
        ({"groups": [[0, 1], [1]]}, ValueError, r"label 1 is in groups\[0\] and in groups\[1\]"),
        (
            {"groups": [[0, 1]], "required": [1, 0]},
            ValueError,
            r"labels 1 and 0 are required, but groups\[0\] allows one",
        ),
        ({"parents": {0: 1, 1: 2, 2: 0}}, ValueError, "parents has the cycle 0 -> 1 -> 2 -> 0"),
        ({"parents": {"a": "a"}}, ValueError, "parents has the cycle 'a' -> 'a'"),
        ({"parents": {0: 1}, "groups": [[2, 3]]}, ValueError, "cannot be combined"),
    ],
)
def test_invalid_constraints_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        Constraints(**arguments)


@pytest.mark.parametrize(
    ("limits", "error", "message"),
    [
        ({"min_labels": -1}, ValueError, "min_labels is -1: it must be an integer, 0 or more"),
        ({"max_labels": 0}, ValueError, "max_labels is 0: it must be an integer, 1 or more"),
        ({"max_labels": 1.5}, ValueError, "max_labels is 1.5: it must be an integer"),
        (
            {"min_labels": 3, "max_labels": 2},
            ValueError,
            "min_labels is 3: it must not be greater",
        ),
        ({"min_labels": 6}, ValueError, "min_labels is 6, but there are 5 labels"),
        ({"constraints": {"required": [1]}}, TypeError, "it must be a fgfm.decision.Constraints"),
        (
            {"required": [5]},
            ValueError,
            "required has label 5: it must be less than the number of",
        ),
        ({"required": ["a"]}, ValueError, "required has label 'a': the labels have no names here"),
        (
            {"parents": [None, 0]},
            ValueError,
            "parents has 2 elements: it must have one for each of",
        ),
        ({"costs": [0.1]}, ValueError, "costs has 1 elements: it must have one for each of the 5"),
        (
            {"min_labels": 4, "groups": [[0, 1, 2]]},
            ValueError,
            "min_labels is 4, but the constraints allow at most 3 labels",
        ),
        (
            {"max_labels": 1, "required": [4], "parents": {4: 2, 2: 0}},
            ValueError,
            "max_labels is 1, but 3 labels are required: 0, 2, 4",
        ),
        (
            {"required": [4], "forbidden": [0], "parents": {4: 2, 2: 0}},
            ValueError,
            "label 4 is required, but 0, which is above it in parents, is forbidden",
        ),
        (
            {"nonempty": True, "forbidden": range(5)},
            ValueError,
            "nonempty=True excludes the empty set, but the constraints forbid every label",
        ),
    ],
)
def test_contradictions_are_refused(limits, error, message):
    sizes = {name: limits[name] for name in limits if name in ARGUMENTS}
    rest = {name: limits[name] for name in limits if name not in ARGUMENTS}
    if rest:
        sizes["constraints"] = Constraints(**rest)
    with pytest.raises(error, match=message):
        decision.from_marginals([[0.5] * 5], **sizes)


ARGUMENTS = ("min_labels", "max_labels", "constraints", "nonempty")


def test_names_and_numbers_of_one_label_are_compared():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame([[0.9, 0.8]], columns=["a", "b"])
    for arguments, message in (
        ({"required": ["a"], "forbidden": [0]}, r"label 0 \('a'\) is required and forbidden"),
        ({"parents": {"a": "b", 1: 0}}, r"cycle 0 \('a'\) -> 1 \('b'\) -> 0 \('a'\)"),
        ({"parents": {"a": "b", 0: 1}}, r"has label 0 \('a'\) twice"),
        ({"groups": [["a"], [0, 1]]}, r"label 0 \('a'\) is in groups\[0\] and in groups\[1\]"),
    ):
        with pytest.raises(ValueError, match=message):
            decision.from_marginals(frame, constraints=Constraints(**arguments))
    same = Constraints(groups=[["a", 0, "b"]])
    assert decision.from_marginals(frame, constraints=same).labels.to_numpy().sum() == 1


def test_sparse_rows_refuse_to_fill_up_sets_of_a_hierarchy_at_least_cost():
    rows = sparse.csr_array([[0.5, 0.0, 0.2]])
    constraints = Constraints(parents={0: 1}, costs=0.1)
    assert decision.from_marginals(rows, constraints=constraints).labels.shape == (1, 3)
    for arguments in ({"min_labels": 2}, {"nonempty": True}):
        with pytest.raises(ValueError, match="need dense probabilities; these are sparse"):
            decision.from_marginals(rows, constraints=constraints, **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"average": "macro"}, "cannot be combined with average='macro'"),
        ({"average": "micro"}, "cannot be combined with average='micro'"),
        ({"measure": "jaccard"}, "cannot be combined with measure='jaccard'"),
    ],
)
def test_other_problems_refuse_constraints(arguments, message):
    with pytest.raises(ValueError, match=message):
        decision.from_marginals([[0.5, 0.2]], constraints=Constraints(forbidden=[0]), **arguments)
    assert decision.from_marginals([[0.5, 0.2]], min_labels=0, **arguments).labels.shape == (1, 2)


def test_binary_classifiers_refuse_constraints():
    with pytest.raises(ValueError, match="cannot be combined with 1-D probabilities"):
        decision.from_marginals([0.5, 0.2], max_labels=1)
