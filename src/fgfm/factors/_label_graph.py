"""From p-values to label factors: corrections, edges, connected components and cuts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.stats import false_discovery_control

from fgfm._utils.validation import check_choice, check_fraction

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

CORRECTIONS = (None, "bonferroni", "bh")


class Cut(NamedTuple):
    """An edge that was removed to keep a factor within the size limit."""

    i: int
    j: int
    p_value: float  # not corrected


class Grouping(NamedTuple):
    """Labels grouped into factors."""

    factors: list[Integers]  # ordered by their first label
    graph: Any  # sparse, Boolean and symmetric (m, m); its connected components are the factors
    cuts: list[Cut]  # the edges that `max_factor_size` removed, weakest first
    p_values: Floats  # (m, m), symmetric and corrected for the number of pairs


def group_labels(
    p_values: Any,
    alpha: float = 0.01,
    *,
    correction: str | None = "bonferroni",
    effects: Any = None,
    tested: npt.NDArray[np.bool_] | None = None,
    max_factor_size: int | None = None,
) -> Grouping:
    """Join labels with small p-values by edges, and return the connected components.

    Parameters
    ----------
    p_values : array-like of shape (m, m)
        ``p_values[i, j]`` is the p-value of label i against label j; the diagonal is not used. The
        smaller one of the two tests of a pair counts.
    alpha : float, default=0.01
        Two labels are joined if their p-value, corrected, is at most alpha.
    correction : {None, "bonferroni", "bh"}, default="bonferroni"
        Correction for the number of pairs, as in `fgfm.ILFCompo`.
    effects : array-like of shape (m, m), optional
        Strength of each dependence, which decides between edges with equal p-values when edges
        are cut. By default all are equal.
    tested : ndarray of bool of shape (m, m), optional
        The pairs that were tested. Other pairs have no edge and do not count in the correction.
        By default all pairs.
    max_factor_size : int, optional
        Largest number of labels in a factor. The weakest edges of larger factors are cut: those
        with the largest p-value first, then with the smallest effect, then by index.

    Returns
    -------
    Grouping
        ``factors``, ordered by their first label; ``graph``, the edges as a sparse array;
        ``cuts``, the edges (i, j, p_value) that `max_factor_size` removed, weakest first;
        ``p_values``, one for each possible edge, symmetric and corrected.

    See Also
    --------
    ILFCompo : Tests all pairs of labels and groups them.

    Examples
    --------
    >>> import numpy as np
    >>> from fgfm.factors import group_labels
    >>> p = np.ones((3, 3))
    >>> p[0, 2] = 1e-6
    >>> group_labels(p).factors
    [array([0, 2]), array([1])]
    """
    p_values = np.asarray(p_values, dtype=np.float64)
    alpha = check_fraction(alpha, "alpha")
    check_choice(correction, "correction", CORRECTIONS)
    m = len(p_values)
    uncorrected = np.fmin(p_values, p_values.T)
    corrected = _correct(p_values, uncorrected, correction, tested)
    joined = corrected <= alpha
    if tested is not None:
        joined &= tested
    i, j = np.nonzero(np.triu(joined, 1))
    cuts: list[Cut] = []
    if max_factor_size is not None:
        p = uncorrected[i, j]
        effects = np.zeros((m, m)) if effects is None else np.asarray(effects)
        weight = np.fmax(effects, effects.T)[i, j]
        weakest_first = np.lexsort((j, i, weight, -p))
        factor = _bounded_components(i, j, weakest_first[::-1], m, max_factor_size)
        cut = factor[i] != factor[j]
        cuts = [Cut(int(i[e]), int(j[e]), float(p[e])) for e in weakest_first if cut[e]]
        i, j = i[~cut], j[~cut]
    ends = np.concatenate([i, j]), np.concatenate([j, i])
    graph = sparse.csr_array((np.ones(len(ends[0]), dtype=bool), ends), shape=(m, m))
    _, component = connected_components(graph, directed=False)
    return Grouping(component_members(component), graph, cuts, corrected)


def _correct(
    p_values: Floats,
    combined: Floats,
    correction: str | None,
    tested: npt.NDArray[np.bool_] | None,
) -> Floats:
    """Correct the p-values of pairs for their number.

    Each pair is one hypothesis with two tests: the smaller p-value is valid after doubling
    (Bonferroni within the pair). A symmetric matrix holds one test per pair, which is not doubled.
    Pairs that were not tested are neither changed nor counted.
    """
    if correction is None:
        return combined
    pairs = np.triu(np.ones(combined.shape, dtype=bool) if tested is None else tested, 1)
    family = combined[pairs]
    if len(family) == 0:
        return combined
    if not np.array_equal(p_values, p_values.T, equal_nan=True):
        family = np.minimum(1.0, 2.0 * family)
    if correction == "bonferroni":
        family = np.minimum(1.0, family * len(family))
    else:
        family = false_discovery_control(family)  # Benjamini-Hochberg
    corrected = combined.copy()
    corrected[pairs] = family
    corrected.T[pairs] = family
    return corrected


def component_members(component: npt.NDArray[Any]) -> list[Integers]:
    """Return the members of each component, ordered by their first member."""
    _, first = np.unique(component, return_index=True)
    return [np.flatnonzero(component == component[k]).astype(np.int64) for k in np.sort(first)]


def _bounded_components(
    i: Integers, j: Integers, strongest_first: Integers, m: int, limit: int
) -> Integers:
    """Return the factor of each label after cutting the weakest edges of large components.

    Cutting edges one by one, weakest first, and leaving alone each component that has become small
    enough, is the reverse of Kruskal's algorithm: edges merge components from strong to weak, and
    a factor is final once a merge would exceed the limit.
    """
    component, factor, final = np.arange(m), np.arange(m), np.zeros(m, dtype=bool)
    for e in strongest_first:
        a, b = component[i[e]], component[j[e]]
        if a == b:
            continue
        merged = (component == a) | (component == b)
        component[merged] = a
        if final[merged].any() or np.count_nonzero(merged) > limit:
            final[merged] = True
        else:
            factor[merged] = a
    return factor


def published_grouping(p_values: Any, alpha: float = 0.01) -> list[Integers]:
    """Group labels as the paper's published toy script does, to compare with its results.

    The lowest free label opens a group; each later free label, in ascending order, joins if its
    p-value with a member, ``p_values[member, label]`` for member < label, is below alpha. A label
    that does not join is not considered again when the group grows later, and half of the tests
    are not used: the groups may be smaller than connected components.

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

    See Also
    --------
    group_labels : Connected components, as `fgfm.ILFCompo` uses them.

    Examples
    --------
    >>> import numpy as np
    >>> from fgfm.factors import published_grouping
    >>> p = np.ones((3, 3))
    >>> p[0, 2] = p[1, 2] = 0.001  # label 1 is considered before label 2 has joined label 0
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
