"""From p-values to factors: rules, corrections and cuts against plain loops and SciPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components
from scipy.stats import false_discovery_control

from fgfm.factors import group_labels, published_grouping


def as_lists(factors):
    return [factor.tolist() for factor in factors]


def symmetric(m, edges):
    p = np.ones((m, m))
    for (i, j), value in edges.items():
        p[i, j] = p[j, i] = value
    np.fill_diagonal(p, np.nan)
    return p


def test_one_of_two_tests_suffices():
    p = np.ones((3, 3))
    p[0, 1], p[1, 0], p[1, 2] = 0.001, 0.002, 0.003
    np.fill_diagonal(p, np.nan)
    assert as_lists(group_labels(p, correction=None).factors) == [[0, 1, 2]]
    assert as_lists(group_labels(p, 0.0015, correction=None).factors) == [[0, 1], [2]]


def test_corrections_are_those_of_scipy():
    rng = np.random.default_rng(0)
    p = rng.random((5, 5)) ** 3
    np.fill_diagonal(p, np.nan)
    upper = np.triu_indices(5, 1)

    def corrected(correction):
        return group_labels(p, correction=correction).p_values

    smaller = np.fmin(p, p.T)[upper]
    expected = false_discovery_control(np.minimum(1.0, 2 * smaller))
    np.testing.assert_allclose(corrected("bh")[upper], expected)
    found = corrected("bonferroni")
    np.testing.assert_allclose(found[upper], np.minimum(1.0, 20 * smaller))
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_array_equal(corrected(None)[upper], smaller)


def test_symmetric_test_counts_once():
    p = symmetric(5, {(0, 1): 0.001, (2, 4): 0.02})
    corrected = group_labels(p).p_values
    assert corrected[0, 1] == corrected[1, 0] == pytest.approx(0.01)
    assert corrected[2, 4] == pytest.approx(0.2)


def test_pairs_that_are_not_tested_do_not_count():
    p = symmetric(5, {(0, 1): 0.001, (2, 3): 1e-9})
    tested = np.ones((5, 5), dtype=bool)
    tested[3] = tested[:, 3] = False
    grouping = group_labels(p, tested=tested)
    assert grouping.p_values[0, 1] == pytest.approx(0.006)
    assert grouping.p_values[2, 3] == p[2, 3]
    assert as_lists(grouping.factors) == [[0, 1], [2], [3], [4]]


def test_corrections_remove_edges():
    p = symmetric(4, {(0, 1): 0.003, (1, 2): 0.0001, (2, 3): 0.006})
    expected = {None: 1, "bonferroni": 3, "bh": 2}
    assert {c: len(group_labels(p, correction=c).factors) for c in expected} == expected


def cut_one_by_one(p, effects, alpha, limit):
    """Cut the weakest edge of a component that is too large, until there is none."""
    m = len(p)
    edges = [(i, j) for i, j in itertools.combinations(range(m), 2) if p[i, j] <= alpha]
    while True:
        graph = np.zeros((m, m))
        for i, j in edges:
            graph[i, j] = 1
        _, part = connected_components(graph, directed=False)
        sizes = np.bincount(part)
        large = [e for e in edges if sizes[part[e[0]]] > limit]
        if not large:
            return {frozenset(np.flatnonzero(part == k).tolist()) for k in set(part.tolist())}
        edges.remove(min(large, key=lambda e: (-p[e], effects[e], e)))


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("limit", [1, 2, 3, 5])
def test_cuts_are_those_of_cutting_one_by_one(seed, limit):
    rng = np.random.default_rng(seed)
    m = 10
    p, effects = np.full((m, m), np.nan), np.full((m, m), np.nan)
    for i, j in itertools.combinations(range(m), 2):  # many ties
        p[i, j] = p[j, i] = 0.9 if rng.random() < 0.6 else rng.integers(0, 3) / 300
        effects[i, j] = effects[j, i] = rng.integers(0, 3)
    found = group_labels(p, correction=None, effects=effects, max_factor_size=limit)
    assert {frozenset(f.tolist()) for f in found.factors} == cut_one_by_one(
        p, effects, 0.01, limit
    )
    assert max(map(len, found.factors)) <= limit
    whole = group_labels(p, correction=None)
    cut = {(i, j) for i, j, _ in found.cuts}
    left = set(zip(*np.nonzero(np.triu(found.graph.toarray())), strict=True))
    assert cut | left == set(zip(*np.nonzero(np.triu(whole.graph.toarray())), strict=True))
    assert not cut & left
    owner = {k: f for f, factor in enumerate(found.factors) for k in factor}
    assert all(owner[i] != owner[j] and value == p[i, j] for i, j, value in found.cuts)
    assert [c.p_value for c in found.cuts] == sorted((c.p_value for c in found.cuts), reverse=True)


def test_published_grouping_is_not_a_transitive_closure():
    p = np.ones((4, 4))
    p[0, 3] = p[1, 3] = p[2, 1] = 0.001  # 1 is considered before 3 has joined; (2, 1) is not used
    assert as_lists(published_grouping(p)) == [[0, 3], [1], [2]]
    assert as_lists(group_labels(p, correction=None).factors) == [[0, 1, 2, 3]]


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"alpha": 5}, ValueError, r"^alpha is 5\.0: it must be a number greater"),
        ({"alpha": "5"}, TypeError, r"^alpha is '5': it must be a number greater"),
        ({"correction": "holm"}, ValueError, r"^correction is 'holm': it must be one of None"),
    ],
)
def test_invalid_arguments_raise(options, kind, message):
    with pytest.raises(kind, match=message):
        group_labels(np.ones((3, 3)), **options)
