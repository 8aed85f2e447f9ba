"""The native modules: the same bits for all instruction sets, threads and neighbours."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from importlib import import_module

import numpy as np
import pytest

from fgfm._kernels import native
from fgfm.decision._quadrature import rule_tables

baseline = import_module("fgfm._kernels._native")
INDEPENDENT = [(200, 3), (200, 20), (100, 128), (50, 129), (20, 1000), (2, 20_000)]


def make_rules(module, beta):
    rules = module.Rules()
    for name, value in rule_tables(beta)._asdict().items():
        setattr(rules, name, value.tolist() if isinstance(value, np.ndarray) else value)
    return rules


def marginal_rows(n, m, power):
    return np.random.default_rng([n, m, power]).random((n, m)) ** power


def decide(module, p, beta=1.0, nonempty=False):
    labels, expected = np.zeros(p.shape, dtype=np.int8), np.empty(len(p))
    rules = make_rules(module, beta)
    status = module.decide_dense_rows(p, beta**2, 1.0, nonempty, rules, labels, expected)
    assert status == (-1, 0.0, 0)
    return labels, expected


def assert_same_bits(first, second):
    for a, b in zip(first, second, strict=True):
        assert a.tobytes() == b.tobytes()


@pytest.mark.skipif(native is baseline, reason="this machine runs the baseline only")
@pytest.mark.parametrize(("n", "m"), INDEPENDENT)
@pytest.mark.parametrize("power", [1, 4, 40])
def test_instruction_sets_decide_marginals_alike(n, m, power):
    p = marginal_rows(n, m, power)
    for beta, nonempty in ((1.0, False), (2.0, True), (0.5, False)):
        for dtype in (np.float64, np.float32):
            rows = p.astype(dtype)
            assert_same_bits(
                decide(native, rows, beta, nonempty), decide(baseline, rows, beta, nonempty)
            )


@pytest.mark.skipif(native is baseline, reason="this machine runs the baseline only")
@pytest.mark.parametrize(("n", "m"), INDEPENDENT)
def test_instruction_sets_decide_floors_alike(n, m):
    p, missed = marginal_rows(n, m, 4).reshape(-1), np.tile([0.5, 0.3, 0.2], (n, 1))
    results = []
    for module in (native, baseline):
        arrays = np.zeros(n * m, dtype=np.int8), np.empty(n), np.full((n, 2), np.nan)
        floors = 0.4, 0.3, 1.5, missed, 1
        indptr, rules = m * np.arange(n + 1), make_rules(module, 1.0)
        module.decide_floor_rows(p, indptr, 1.0, 1.0, False, rules, *floors, *arrays)
        results.append(arrays)
    assert_same_bits(*results)


@pytest.mark.skipif(native is baseline, reason="this machine runs the baseline only")
@pytest.mark.parametrize(("m", "S"), [(2, 2), (7, 3), (30, 30), (100, 13)])
def test_instruction_sets_decide_cardinalities_alike(m, S):
    rng = np.random.default_rng(m)
    n, s = 40, np.arange(1, S + 1)
    d = rng.dirichlet(np.ones(S + 1), size=n)
    P = rng.random((n, m, S))
    P = np.minimum(P / P.sum(axis=1, keepdims=True) * (s * d[:, 1:])[:, None], d[:, None, 1:])
    logits = rng.normal(size=(n, m))
    found = []
    for module in (native, baseline):
        labels, expected = np.zeros((n, m), dtype=np.int8), np.empty(n)
        mass = np.full((2, n), np.nan)
        arguments = (P, mass, np.arange(m), 1e-9, 1.0, 1.0, False)
        assert module.decide_cardinality_rows(*arguments, labels, expected)[0] == -1
        filled = np.empty((n, m, S))
        module.condition(logits, d, filled)
        p, sets, values = 1.0 / (1.0 + np.exp(-logits)), np.zeros_like(labels), np.empty(n)
        missed = np.arange(3.0), np.full((d.shape[1], 3), 1.0 / 3.0)
        objective = (1.0, 1.0, False, 0, m)
        module.decide_reweighted_rows(p, d, 1.1, 0.9, *missed, *objective, sets, values)
        marginals = np.empty((n, m))
        module.reweight_marginals(p, d, 1.1, 0.9, marginals)
        soft = logits.copy()
        module.softmax(soft)
        found.append((labels, expected, filled, sets, values, marginals, soft))
    assert_same_bits(*found)


@pytest.mark.parametrize("m", [20, 1000])
def test_threads_and_neighbours_do_not_change_a_bit(m):
    p = marginal_rows(64, m, 3)
    whole = decide(native, p)
    with ThreadPoolExecutor(4) as pool:
        single = list(pool.map(lambda row: decide(native, row[None].copy()), p))
    assert_same_bits(whole, [np.concatenate(parts) for parts in zip(*single, strict=True)])


def test_outputs_of_the_wrong_type_are_refused():
    """A converted output array would lose the result."""
    p = marginal_rows(2, 5, 1)
    rules = make_rules(native, 1.0)
    labels, expected = np.zeros(p.shape, dtype=np.int8), np.zeros(2)
    for wrong_labels, wrong_expected in (
        (labels.astype(np.int64), expected),
        (labels, expected.astype(np.float32)),
        (np.asfortranarray(labels), expected),
    ):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            native.decide_dense_rows(p, 1.0, 1.0, False, rules, wrong_labels, wrong_expected)


@pytest.mark.skipif(native is baseline, reason="this machine runs the baseline only")
@pytest.mark.parametrize("m", [5, 40, 130])
@pytest.mark.parametrize("kind", ["sizes", "groups", "parents", "costs"])
def test_instruction_sets_constrain_alike(m, kind):
    none, tree = np.empty(0, dtype=np.int64), (np.arange(m) - 1) // 3
    tree[0] = -1
    p = marginal_rows(60, m, 3)
    found = []
    for module in (native, baseline):
        constraints = module.Constraints(
            2,
            4 if kind == "sizes" else m,
            ((np.arange(m) == m - 1) & (kind in ("sizes", "costs"))).astype(np.int8),
            np.linspace(0.0, 0.1, m) if kind == "costs" else np.empty(0),
            np.arange(m) // 4 if kind == "groups" else none,
            tree if kind == "parents" else none,
        )
        labels, expected = decide(module, p, 2.0)
        arguments = (4.0, 1.0, False, make_rules(module, 2.0), labels, expected, constraints)
        module.constrain_dense_rows(p, *arguments)
        infeasible = np.ones(len(p), dtype=bool)
        module.find_infeasible_rows(labels, constraints, infeasible)
        assert not infeasible.any()
        found.append((labels, expected))
    assert_same_bits(*found)
