"""Label factors of known graphs, by d-separation and by moral graphs."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest

from fgfm.factors import factors_from_dag

LABELS = ["y1", "y2", "y3"]


@pytest.fixture
def _networkx():
    pytest.importorskip("networkx", reason="networkx is not installed: pip install fgfm[graph]")


@pytest.mark.usefixtures("_networkx")
@pytest.mark.parametrize(
    ("edges", "factors"),
    [
        ([("x", "y1"), ("x", "y2"), ("y2", "y3")], [["y1"], ["y2", "y3"]]),
        ([("y1", "x"), ("y2", "x"), ("y2", "y3")], [["y1", "y2", "y3"]]),
        ([("y1", "x"), ("y3", "x"), ("x", "y2")], [["y1", "y3"], ["y2"]]),
        ([], [["y1"], ["y2"], ["y3"]]),
        ([("h", "y1"), ("h", "y3"), ("x", "h")], [["y1", "y3"], ["y2"]]),  # h is hidden
        ([("y1", "c"), ("y2", "c"), ("c", "x")], [["y1", "y2"], ["y3"]]),  # x descends from c
        ([("y1", "c"), ("y2", "c")], [["y1"], ["y2"], ["y3"]]),  # a hidden common effect
        ([("y1", "x"), ("x", "y2"), ("y2", "h"), ("y3", "h")], [["y1"], ["y2"], ["y3"]]),
    ],
)
def test_known_factors(edges, factors):
    given = {"x"} & {node for edge in edges for node in edge}
    assert factors_from_dag(edges, LABELS, list(given)) == factors
    assert factors_from_dag(edges[::-1], LABELS, given) == factors


@pytest.mark.usefixtures("_networkx")
def test_order_of_the_labels_is_kept():
    edges = [("y1", "x"), ("y3", "x"), ("x", "y2")]
    assert factors_from_dag(edges, LABELS[::-1], ["x"]) == [["y3", "y1"], ["y2"]]
    assert factors_from_dag([(1, 0), (3, 0)], [1, 2, 3], [0]) == [[1, 3], [2]]
    assert factors_from_dag([], []) == []


def moral_components(edges, labels, given):
    """Find factors by separation in the moral graph of the ancestors (Lauritzen et al., 1990)."""
    nodes = {node for edge in edges for node in edge} | set(labels) | set(given)
    parents = {node: {a for a, b in edges if b == node} for node in nodes}

    def ancestors(some):
        found, todo = set(), list(some)
        while todo:
            node = todo.pop()
            if node not in found:
                found.add(node)
                todo += parents[node]
        return found

    def dependent(a, b):
        kept = ancestors({a, b} | set(given))
        links = {frozenset((p, node)) for node in kept for p in parents[node]}
        links |= {
            frozenset(pair) for node in kept for pair in itertools.combinations(parents[node], 2)
        }
        reached, todo = set(), [a]
        while todo:
            node = todo.pop()
            if node in reached or node in given:
                continue
            reached.add(node)
            todo += [next(iter(link - {node})) for link in links if node in link]
        return b in reached

    part = {label: {label} for label in labels}
    for a, b in itertools.combinations(labels, 2):
        if dependent(a, b):
            merged = part[a] | part[b]
            for label in merged:
                part[label] = merged
    return {frozenset(p) for p in part.values()}


@pytest.mark.usefixtures("_networkx")
@pytest.mark.parametrize("seed", range(30))
def test_random_graphs_by_moralisation(seed):
    rng = np.random.default_rng(seed)
    order = rng.permutation(8)
    edges = [(int(a), int(b)) for a, b in itertools.combinations(order, 2) if rng.random() < 0.25]
    labels, given = [0, 1, 2, 3, 4], sorted({5, 6} & {node for edge in edges for node in edge})
    found = factors_from_dag(edges, labels, given)
    assert {frozenset(factor) for factor in found} == moral_components(edges, labels, given)


@pytest.mark.usefixtures("_networkx")
@pytest.mark.parametrize(
    ("edges", "labels", "given", "message"),
    [
        ([("a", "b"), ("b", "a")], ["a"], [], r"^edges contain the cycle a -> b: the graph must"),
        (
            [("a", "b", "c")],
            ["a"],
            [],
            r"^edges\[0\] is \('a', 'b', 'c'\): an edge must be a pair",
        ),
        (["ab"], ["a"], [], r"^edges\[0\] is 'ab': an edge must be a pair"),
        ([("a", "b")], ["a", "b"], ["b"], r"^labels\[1\] is 'b', which is in given: it cannot be"),
        ([("a", "b")], ["a", "a"], [], r"^labels\[1\] is 'a': each label must be listed once"),
        ([5], ["a"], [], r"^edges\[0\] is 5: an edge must be a pair \(parent, child\)$"),
        ([("a", "b"), {"a", "c"}], ["a"], [], r"^edges\[1\] is \{.*\}: an edge must be a pair"),
        (
            [("a", "b")],
            ["a"],
            ["b", "x"],
            r"^given\[1\] is 'x': a given node must occur in an edge$",
        ),
    ],
)
def test_invalid_graphs_raise(edges, labels, given, message):
    with pytest.raises(ValueError, match=message):
        factors_from_dag(edges, labels, given)


@pytest.mark.usefixtures("_networkx")
@pytest.mark.parametrize(
    ("edges", "labels", "given", "message"),
    [
        ([("x1", "y")], ["y"], "x1", r"^given is 'x1': it must be an iterable of nodes, not a"),
        ([("x1", "y")], "y", ["x1"], r"^labels is 'y': it must be an iterable of nodes, not a"),
        ([("x1", "y")], ["y"], 5, r"^given is 5: it must be an iterable of nodes, not a single"),
        (5, ["y"], [], r"^edges is 5: it must be an iterable of pairs \(parent, child\), not a"),
    ],
)
def test_single_node_instead_of_an_iterable_raises(edges, labels, given, message):
    with pytest.raises(TypeError, match=message):
        factors_from_dag(edges, labels, given)


def test_without_networkx(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(
        ImportError, match=r"^factors_from_dag needs networkx: pip install 'fgfm\[graph\]'$"
    ):
        factors_from_dag([], LABELS)
