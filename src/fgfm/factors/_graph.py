"""From p-values to factors: corrected p-values, edges, connected components, and cuts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.stats import false_discovery_control

__all__ = [
    "CORRECTIONS",
    "Cut",
    "Grouping",
    "edge_p_values",
    "group_labels",
    "published_grouping",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

CORRECTIONS = (None, "bonferroni", "bh", "by")


class Cut(NamedTuple):
    """An edge that was cut so that factors fit."""

    i: int
    j: int
    p_value: float


class Grouping(NamedTuple):
    """Labels in factors."""

    factors: list[Integers]  # ordered by first label
    graph: Any  # CSR, (m, m), bool, symmetric; its components are the factors
    cuts: list[Cut]  # in the order in which they were cut


def edge_p_values(
    p_values: Floats,
    rule: str,
    correction: str | None = None,
    tested: npt.NDArray[np.bool_] | None = None,
) -> Floats:
    """Give the p-value of each possible edge, (m, m), symmetric, corrected for their number.

    Each pair of labels is one hypothesis with two tests. By rule "and" its p-value is the larger
    of the two, by rule "or" the smaller one, which counts twice where p-values are corrected at
    all. A symmetric matrix holds one test for each pair, which counts once. Pairs that are not
    `tested` are left as they are and not counted.
    """
    p = np.fmin(p_values, p_values.T) if rule == "or" else np.fmax(p_values, p_values.T)
    if correction is None:
        return p
    at = np.triu(np.ones(p.shape, dtype=bool) if tested is None else tested, 1)
    family = p[at]
    if rule == "or" and not np.array_equal(p_values, p_values.T, equal_nan=True):
        family = np.minimum(1.0, 2.0 * family)
    if len(family) == 0:
        return p
    if correction == "bonferroni":
        corrected = np.minimum(1.0, family * len(family))
    else:
        corrected = false_discovery_control(family, method=correction)
    p[at] = corrected
    p.T[at] = corrected
    return p


def group_labels(
    p_values: Floats,
    effects: Floats,
    alpha: float,
    rule: str = "or",
    *,
    correction: str | None = None,
    tested: npt.NDArray[np.bool_] | None = None,
    max_factor_size: int | None = None,
) -> Grouping:
    """Join labels whose p-value is at most alpha, and take connected components.

    Rule "or" joins two labels if either of their tests rejects, rule "and" if both do.
    """
    m = len(p_values)
    joined = edge_p_values(p_values, rule, correction, tested) <= alpha
    if tested is not None:
        joined &= tested
    i, j = np.nonzero(np.triu(joined, 1))
    p = edge_p_values(p_values, rule)[i, j]
    cuts: list[Cut] = []
    if max_factor_size is not None:
        stronger = np.fmax if rule == "or" else np.fmin
        weight = stronger(effects, effects.T)[i, j]
        weakest_first = np.lexsort((j, i, weight, -p))
        owner = _fit(i, j, weakest_first[::-1], m, max_factor_size)
        apart = owner[i] != owner[j]
        cuts = [Cut(int(i[e]), int(j[e]), float(p[e])) for e in weakest_first if apart[e]]
        i, j = i[~apart], j[~apart]
    ends = np.concatenate([i, j]), np.concatenate([j, i])
    graph = sparse.csr_array((np.ones(len(ends[0]), dtype=bool), ends), shape=(m, m))
    _, part = connected_components(graph, directed=False)
    return Grouping(_parts(part), graph, cuts)


def _parts(part: npt.NDArray[Any]) -> list[Integers]:
    """Give the members of each part, parts ordered by their first member."""
    _, first = np.unique(part, return_index=True)
    return [np.flatnonzero(part == part[k]).astype(np.int64) for k in np.sort(first)]


def _fit(i: Integers, j: Integers, strongest_first: Integers, m: int, limit: int) -> Integers:
    """Give the part of each label after cutting the weakest edges of what exceeds the limit.

    Cutting edge by edge leaves, at any time, what the edges not yet cut connect, and a part that
    fits is let be. These parts are found from the other end: edges join parts in the order from
    strong to weak, and a part is settled when the next edge would make it too large.
    """
    parent = np.arange(m)
    members = {k: [k] for k in range(m)}  # of the parts that are not settled
    owner = np.arange(m)

    def root(k: int) -> int:
        while parent[k] != k:
            parent[k] = k = int(parent[parent[k]])
        return k

    for e in strongest_first:
        a, b = root(int(i[e])), root(int(j[e]))
        if a == b:
            continue
        parent[b] = a
        first, second = members.pop(a, None), members.pop(b, None)
        if first is not None and second is not None and len(first) + len(second) <= limit:
            members[a] = first + second
            continue
        for settled in (first, second):  # larger than the limit together
            if settled is not None:
                owner[settled] = min(settled)
    for rest in members.values():
        owner[rest] = min(rest)
    return owner


def published_grouping(p_values: Any, alpha: float = 0.01) -> list[Integers]:
    """Group labels as the published toy script does, for comparison with its results.

    The lowest free label opens a group; each later free label, in ascending order, joins if its
    p-value with a member, ``p_values[member, label]`` for member < label, is below alpha. A label
    that does not join is not looked at again when the group grows later, and half of the tests
    are not read: the groups may be smaller than connected components.

    Parameters
    ----------
    p_values : array-like of shape (m, m)
        The p-values of all ordered pairs.
    alpha : float, default=0.01
        Level of the tests.

    Returns
    -------
    list of ndarray
        The groups, ordered by first label.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.ones((3, 3))
    >>> p[0, 2] = p[1, 2] = 0.001  # label 1 comes before 2 has joined 0
    >>> published_grouping(p)
    [array([0, 2]), array([1])]
    """
    p = np.asarray(p_values, dtype=np.float64)
    free = list(range(len(p)))
    groups = []
    while free:
        group = [free.pop(0)]
        for label in list(free):
            if any(p[member, label] < alpha for member in group):
                group.append(label)
                free.remove(label)
        groups.append(np.array(group, dtype=np.int64))
    return groups
