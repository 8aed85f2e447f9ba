"""Constraints on label sets: every decision against the enumeration of the feasible sets."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import oracle
from cases import assert_same_decision, dense, random_factors
from fgfm import decision
from fgfm.decision import Constraints

# Feasible sets by their definition ----------------------------------------------------------------


def costs_of(constraints, m):
    """Return the cost of each label, (m,)."""
    given_costs = constraints.costs if constraints is not None else None
    if isinstance(given_costs, dict):
        return np.array([given_costs.get(i, 0.0) for i in range(m)])
    return np.zeros(m) + (0.0 if given_costs is None else given_costs)


def is_allowed(labelset, min_labels=0, max_labels=None, constraints=None, nonempty=False):
    """Return True if a set satisfies all constraints, which are by number."""
    chosen = set(np.flatnonzero(labelset).tolist())
    least = max(min_labels, int(nonempty))
    if len(chosen) < least or (max_labels is not None and len(chosen) > max_labels):
        return False
    if constraints is None:
        return True
    parents = constraints.parents or {}
    if isinstance(parents, tuple):
        parents = {i: parent for i, parent in enumerate(parents) if parent is not None}
    return (
        set(constraints.required) <= chosen
        and not chosen & set(constraints.forbidden)
        and all(len(chosen & set(group)) <= 1 for group in constraints.groups)
        and all(parents[i] in chosen for i in chosen if i in parents)
    )


def check(decided, joint, *, beta=1.0, zero_division=1.0, nonempty=False, **limits):
    """Assert that a decision is the best feasible one, with its expectation and ties as stated."""
    labels, stated = dense(decided.labels), decided.expected_f
    constraints = limits.get("constraints")
    m = labels.shape[1]
    sets = oracle.all_labelsets(m)
    cost = costs_of(constraints, m)
    allowed = np.array([is_allowed(one, nonempty=nonempty, **limits) for one in sets])
    expected = oracle.expected_f(joint, beta, zero_division, nonempty)  # (n, 2^m)
    value = np.where(allowed, expected - sets @ cost, -np.inf)
    best = value.max(axis=1)
    at = np.arange(len(labels)), labels @ (1 << np.arange(m)[::-1])
    assert allowed[at[1]].all()
    rtol, atol = (0.0, 1e-11) if cost.any() else (1e-11, 1e-305)
    np.testing.assert_allclose(value[at], best, rtol=rtol, atol=atol)
    np.testing.assert_allclose(stated, expected[at], rtol=1e-11, atol=1e-305)
    for row, chosen in enumerate(labels):
        slack = 1e-13 if cost.any() else 1e-13 * abs(best[row])
        tied = sets[value[row] >= best[row] - slack]
        smallest = tied[tied.sum(axis=1) == tied.sum(axis=1).min()]
        assert chosen.sum() == smallest[0].sum(), (row, chosen, smallest)
        if constraints is None or not constraints.parents:
            assert tuple(chosen) == max(map(tuple, smallest)), (row, chosen, smallest)


# Every route --------------------------------------------------------------------------------------


def marginals(rng, n, m):
    p = rng.random((n, m)) ** 2
    return oracle.independent_joint(p), lambda **kwargs: decision.from_marginals(p, **kwargs)


def csr_marginals(rng, n, m):
    p = rng.random((n, m)) ** 2 * (rng.random((n, m)) < 0.5)
    p[:, rng.integers(m)] = 0.01  # no row contradicts nonempty
    rows = sparse.csr_array(p)
    return oracle.independent_joint(p), lambda **kwargs: decision.from_marginals(rows, **kwargs)


def cardinalities(rng, n, m):
    joint = oracle.random_joint(rng, n, m)
    P = oracle.cardinality_matrix(*joint)
    return joint, lambda **kwargs: decision.from_cardinalities(P, **kwargs)


def distribution(rng, n, m):
    joint = oracle.random_joint(rng, n, m)
    P, d = oracle.cardinality_matrix(*joint), oracle.cardinality_distribution(*joint)
    return joint, lambda **kwargs: decision.from_cardinalities(P, distribution=d, **kwargs)


def factors(rng, n, m, *, given_distributions=False):
    sizes = np.diff(np.unique([0, *rng.integers(1, m + 1, 2), m])).tolist()
    joints, members, Ps = random_factors(rng, n, sizes)
    ds = [oracle.cardinality_distribution(*joint) for joint in joints]
    ds = ds if given_distributions else None
    joint = oracle.product_joint(joints, members)
    return joint, lambda **kwargs: decision.from_factors(Ps, members, distributions=ds, **kwargs)


def factor_distributions(rng, n, m):
    return factors(rng, n, m, given_distributions=True)


def sparse_factors(rng, n, m):
    """One factor of several labels beside independent labels in CSR."""
    size = int(rng.integers(1, m + 1))
    joints, members, Ps = random_factors(rng, n, [size] + [1] * (m - size))
    parts, groups = Ps[:1], members[:1]
    if size < m:
        p = np.concatenate([P[:, :, 0] for P in Ps[1:]], axis=1)
        p[rng.random(p.shape) < 0.5] = 0.0
        joints[1:] = [oracle.independent_joint(p[:, [i]]) for i in range(m - size)]
        parts, groups = [*parts, sparse.csr_array(p)], [*groups, sum(members[1:], [])]
    joint = oracle.product_joint(joints, members)
    return joint, lambda **kwargs: decision.from_factors(parts, groups, **kwargs)


def samples(rng, n, m):
    draws = (rng.random((n, 7, m)) < rng.random((n, 1, m))).astype(int)
    draws[:, 0, 0] = 1
    sets = oracle.all_labelsets(m)
    proba = (draws[:, :, None] == sets).all(axis=3).mean(axis=1)  # (n, 2^m)
    return (sets, proba), lambda **kwargs: decision.from_samples(draws, **kwargs)


def joints(rng, n, m):
    sets, proba = oracle.random_joint(rng, n, m)
    return (sets, proba), lambda **kwargs: decision.from_joint(sets, proba, **kwargs)


ROUTES = [
    marginals,
    csr_marginals,
    cardinalities,
    distribution,
    factors,
    factor_distributions,
    sparse_factors,
    samples,
    joints,
]
every_route = pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.__name__)

LIMITS = {
    "at most two": {"max_labels": 2},
    "at least three": {"min_labels": 3},
    "exactly one": {"min_labels": 1, "max_labels": 1},
    "all": {"min_labels": 5},
    "required": {"constraints": Constraints(required=[4, 1])},
    "forbidden": {"constraints": Constraints(forbidden=[0, 2])},
    "required and forbidden": {
        "min_labels": 2,
        "max_labels": 3,
        "constraints": Constraints(required=[3], forbidden=[0]),
    },
    "groups": {"constraints": Constraints(groups=[[0, 3, 1], [2, 4]])},
    "groups and sizes": {
        "min_labels": 2,
        "constraints": Constraints(groups=[[0, 3, 1]], required=[3], forbidden=[2]),
    },
    "chain": {"constraints": Constraints(parents={0: 1, 1: 2, 2: 3, 3: 4})},
    "tree": {"constraints": Constraints(parents=[None, 3, 3, -1, 2])},
    "tree and more": {
        "min_labels": 2,
        "max_labels": 3,
        "constraints": Constraints(parents={1: 3, 2: 3, 4: 2, 0: 4}, required=[2]),
    },
    "forbidden root": {"constraints": Constraints(parents={1: 3, 2: 3, 4: 2}, forbidden=[3])},
    "costs": {"constraints": Constraints(costs=[0.0, 0.2, 0.05, 0.3, 0.01])},
    "one cost": {"constraints": Constraints(costs=0.1)},
    "costs and groups": {
        "max_labels": 2,
        "constraints": Constraints(costs={0: 0.1, 2: 0.2}, groups=[[0, 1, 2], [3, 4]]),
    },
    "costs and required": {"constraints": Constraints(costs={2: 0.5, 1: 0.1}, required=[2])},
    "costs and sizes": {"min_labels": 2, "constraints": Constraints(costs=[0.5, 0.1, 0, 0.1, 0])},
    "costs and a tree": {
        "constraints": Constraints(costs={3: 0.1, 4: 0.3}, parents={1: 3, 2: 3, 4: 2}),
    },
}
OBJECTIVES = [
    {},
    {"beta": 2.0},
    {"beta": 0.5, "zero_division": 0.0},
    {"nonempty": True},
]


@every_route
@pytest.mark.parametrize("name", LIMITS)
def test_decision_is_the_best_feasible_one(route, name):
    if route in (csr_marginals, sparse_factors) and name == "costs and a tree":
        objectives = OBJECTIVES[:-1]  # nonempty is refused
    else:
        objectives = OBJECTIVES
    for at, kwargs in enumerate(objectives):
        joint, decide = route(np.random.default_rng([at, len(name)]), 12, 5)
        check(decide(**LIMITS[name], **kwargs), joint, **LIMITS[name], **kwargs)


@st.composite
def limits_of(draw, m):
    """Draw sizes and constraints, perhaps contradictory, for m labels."""
    labels = st.integers(0, m - 1)
    some = st.lists(labels, unique=True, max_size=2)
    structure = draw(st.sampled_from(["none", "groups", "parents"]))
    arguments = {"required": draw(some)}
    arguments["forbidden"] = sorted(set(draw(some)) - set(arguments["required"]))
    order = draw(st.permutations(range(m)))
    if structure == "groups":
        arguments["groups"] = [order[: m // 2], order[m // 2 : draw(st.integers(m // 2, m))]]
        for group in arguments["groups"]:
            if len(set(group) & set(arguments["required"])) > 1:
                arguments["required"] = []
    elif structure == "parents":
        above = [draw(st.integers(-1, i - 1)) for i in range(m)]  # parents come first in `order`
        arguments["parents"] = {order[i]: order[j] for i, j in enumerate(above) if j >= 0}
    if draw(st.booleans()):
        arguments["costs"] = draw(
            st.lists(st.sampled_from([0.0, 0.01, 0.1, 0.5]), min_size=m, max_size=m)
        )
    least = draw(st.integers(0, m))
    most = draw(st.one_of(st.none(), st.integers(max(1, least), m)))
    return {"min_labels": least, "max_labels": most, "constraints": Constraints(**arguments)}


@settings(deadline=None, max_examples=60, derandomize=True)
@given(data=st.data(), m=st.integers(1, 6), seed=st.integers(0, 2**20))
@every_route
def test_any_constraints_are_met_or_refused(route, data, m, seed):
    limits = data.draw(limits_of(m))
    objective = data.draw(
        st.fixed_dictionaries(
            {
                "beta": st.floats(0.2, 5.0),
                "zero_division": st.sampled_from([0.0, 0.3, 1.0]),
                "nonempty": st.booleans(),
            }
        )
    )
    joint, decide = route(np.random.default_rng(seed), 2, m)
    feasible = any(
        is_allowed(one, nonempty=objective["nonempty"], **limits)
        for one in oracle.all_labelsets(m)
    )
    try:
        decided = decide(**limits, **objective)
    except ValueError as error:
        refused = route in (csr_marginals, sparse_factors) and "dense" in str(error)
        assert refused or not feasible, (limits, error)
        return
    assert feasible
    check(decided, joint, **limits, **objective)
