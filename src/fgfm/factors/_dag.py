r"""Label factors of a known directed acyclic graph, by d-separation.

In a distribution that is faithful to the graph, labels i and j are independent given X if and only
if X d-separates them (Pearl, 1988). Such distributions satisfy the Composition property, so that
the irreducible label factors are the connected components of the labels that X does not d-separate
(Gasse, Aussem and Elghazel, 2015).

References
----------
Pearl, J. (1988). Probabilistic Reasoning in Intelligent Systems. Morgan Kaufmann.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from fgfm._utils.optional import import_optional
from fgfm.factors._label_graph import component_members


def factors_from_dag(
    edges: Iterable[tuple[Hashable, Hashable]],
    labels: Sequence[Hashable],
    given: Iterable[Hashable] = (),
) -> list[list[Any]]:
    r"""Find the irreducible label factors of a directed acyclic graph.

    They are the finest partition :math:`F_1, F_2, ...` of the labels with

    .. math:: F_k \perp \text{the other labels} \mid X

    in every distribution that is faithful to the graph, whatever its parameters. Nodes that are
    neither labels nor given are hidden variables.

    Parameters
    ----------
    edges : iterable of (parent, child)
        The edges. Nodes may be any hashable objects.
    labels : sequence of nodes
        The labels. A label without edges is a factor by itself.
    given : iterable of nodes, optional
        The features X to condition on. Each must occur in an edge.

    Returns
    -------
    list of list
        The factors, ordered by their first label; within a factor the order of `labels`.

    Notes
    -----
    Requires networkx: ``pip install fgfm[graph]``.

    Examples
    --------
    Three graphs over one feature and three labels. Conditioning on a common cause separates its
    effects; conditioning on a common effect connects its causes:

    >>> from fgfm.factors import factors_from_dag
    >>> labels = ["y1", "y2", "y3"]
    >>> factors_from_dag([("x", "y1"), ("x", "y2"), ("y2", "y3")], labels, given=["x"])
    [['y1'], ['y2', 'y3']]
    >>> factors_from_dag([("y1", "x"), ("y2", "x"), ("y2", "y3")], labels, given=["x"])
    [['y1', 'y2', 'y3']]
    >>> factors_from_dag([("y1", "x"), ("y3", "x"), ("x", "y2")], labels, given=["x"])
    [['y1', 'y3'], ['y2']]
    """
    networkx = import_optional("networkx", "factors_from_dag", "graph")
    graph = networkx.DiGraph()
    for k, edge in enumerate(_as_list(edges, "edges", "pairs (parent, child)")):
        if not isinstance(edge, (tuple, list)) or len(edge) != 2:
            raise ValueError(f"edges[{k}] is {edge!r}: an edge must be a pair (parent, child)")
        graph.add_edge(*edge)
    labels = _as_list(labels, "labels", "nodes")
    conditions = _as_list(given, "given", "nodes")
    for k, node in enumerate(conditions):
        if node not in graph:
            raise ValueError(f"given[{k}] is {node!r}: a given node must occur in an edge")
    for k, label in enumerate(labels):
        if label in conditions:
            raise ValueError(f"labels[{k}] is {label!r}, which is in given: it cannot be both")
        if label in labels[:k]:
            raise ValueError(f"labels[{k}] is {label!r}: each label must be listed once")
    if not networkx.is_directed_acyclic_graph(graph):
        cycle = " -> ".join(str(parent) for parent, _ in networkx.find_cycle(graph))
        raise ValueError(f"edges contain the cycle {cycle}: the graph must be acyclic")
    graph.add_nodes_from(labels)
    m = len(labels)
    dependent = np.zeros((m, m), dtype=bool)
    for i, j in combinations(range(m), 2):
        dependent[i, j] = not networkx.is_d_separator(
            graph, {labels[i]}, {labels[j]}, set(conditions)
        )
    _, component = connected_components(dependent, directed=False)
    return [[labels[k] for k in factor] for factor in component_members(component)]


def _as_list(values: Any, name: str, of: str) -> list[Any]:
    """Return the elements of an iterable that is not a string."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"{name} is {values!r}: it must be an iterable of {of}, not a single one")
    return list(values)
