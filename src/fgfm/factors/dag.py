r"""Label factors of a known directed acyclic graph, by d-separation.

In a distribution that is faithful to the graph, labels i and j are independent given X if and only
if X d-separates them. Such distributions have the Composition property, so the irreducible label
factors are the connected components of the labels that X does not d-separate.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence, Set
from itertools import combinations
from typing import Any

import numpy as np

from fgfm.factors._graph import group_labels

__all__ = ["factors_from_dag"]


def factors_from_dag(
    edges: Iterable[tuple[Hashable, Hashable]],
    labels: Sequence[Hashable],
    given: Iterable[Hashable] = (),
) -> list[list[Any]]:
    r"""Find the irreducible label factors of a directed acyclic graph.

    They are the finest partition :math:`F_1, F_2, ...` of the labels with

    .. math:: F_k \perp \text{the other labels} \mid X

    in every distribution that the graph is faithful to, whatever its parameters. Nodes that are
    neither labels nor given are hidden.

    Parameters
    ----------
    edges : iterable of (parent, child)
        The arrows. Nodes may be anything hashable.
    labels : sequence of nodes
        The labels. One that is in no edge is a factor by itself.
    given : iterable of nodes, optional
        The features X, which are conditioned on. Each must be in an edge.

    Returns
    -------
    list of list
        The factors, ordered by their first label; labels in the order in which they were given.

    Notes
    -----
    Needs networkx: ``pip install fgfm[graph]``.

    Examples
    --------
    Three graphs over one feature and three labels. A common cause that is observed joins nothing;
    an observed common effect joins its causes:

    >>> from fgfm.factors import factors_from_dag
    >>> labels = ["y1", "y2", "y3"]
    >>> factors_from_dag([("x", "y1"), ("x", "y2"), ("y2", "y3")], labels, given=["x"])
    [['y1'], ['y2', 'y3']]
    >>> factors_from_dag([("y1", "x"), ("y2", "x"), ("y2", "y3")], labels, given=["x"])
    [['y1', 'y2', 'y3']]
    >>> factors_from_dag([("y1", "x"), ("y3", "x"), ("x", "y2")], labels, given=["x"])
    [['y1', 'y3'], ['y2']]
    """
    networkx = _networkx()
    graph = networkx.DiGraph()
    for at, edge in enumerate(_items(edges, "edges", "pairs (parent, child)")):
        graph.add_edge(*_checked_edge(edge, at))
    labels = _items(labels, "labels", "nodes")
    conditions = _items(given, "given", "nodes")
    for at, node in enumerate(conditions):
        if node not in graph:
            raise ValueError(f"given[{at}] is {node!r}: what is given must be in one of the edges")
    for at, label in enumerate(labels):
        if label in conditions:
            raise ValueError(f"labels[{at}] is {label!r}, which is in given: it cannot be both")
        if label in labels[:at]:
            raise ValueError(f"labels[{at}] is {label!r}: each label must be listed once")
    if not networkx.is_directed_acyclic_graph(graph):
        cycle = " -> ".join(str(parent) for parent, _ in networkx.find_cycle(graph))
        raise ValueError(f"edges hold the cycle {cycle}: the graph must be acyclic")
    graph.add_nodes_from(labels)
    m = len(labels)
    p_values = np.ones((m, m))
    for i, j in combinations(range(m), 2):
        if not networkx.is_d_separator(graph, {labels[i]}, {labels[j]}, set(conditions)):
            p_values[i, j] = p_values[j, i] = 0.0
    factors = group_labels(p_values, p_values, 0.5).factors
    return [[labels[k] for k in factor] for factor in factors]


def _items(values: Any, name: str, of: str) -> list[Any]:
    """Give the elements of an iterable that is not a string."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"{name} is {values!r}: it must be an iterable of {of}, not a single one")
    return list(values)


def _checked_edge(edge: Any, at: int) -> tuple[Any, Any]:
    """Give the parent and the child."""
    unordered = isinstance(edge, (str, bytes, Set, Mapping))
    if unordered or not isinstance(edge, Collection) or len(edge) != 2:
        raise ValueError(f"edges[{at}] is {edge!r}: an edge must be a pair (parent, child)")
    parent, child = edge
    for node in (parent, child):
        if node is None or not isinstance(node, Hashable):
            raise ValueError(
                f"edges[{at}] has the node {node!r}: a node must be hashable and not None"
            )
    return parent, child


def _networkx() -> Any:
    try:
        import networkx
    except ImportError:
        raise ImportError(
            "factors_from_dag needs networkx, which is not installed: pip install fgfm[graph]"
        ) from None
    return networkx
