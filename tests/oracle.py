"""Reference computations: exhaustive enumeration of all 2^m label sets, slow and plain."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Joint = tuple[Integers, Floats]  # label sets (L, m), probabilities (n, L)


def all_labelsets(m: int) -> Integers:
    """Return the 2^m label sets."""
    return np.array(list(itertools.product([0, 1], repeat=m)), dtype=np.int64)


def random_joint(rng: np.random.Generator, n: int, m: int) -> Joint:
    """Draw n distributions over the 2^m label sets, in which a few sets have most of the mass."""
    labelsets = all_labelsets(m)  # (2^m, m)
    return labelsets, rng.dirichlet(np.full(len(labelsets), 0.5), size=n)


def independent_joint(marginals: npt.ArrayLike) -> Joint:
    """Return the joint distribution of independent labels with the given marginals."""
    p = np.asarray(marginals)  # (n, m)
    p = p.astype(np.result_type(p, np.float64))  # long double stays
    labelsets = all_labelsets(p.shape[1])
    terms = np.where(labelsets == 1, p[:, None, :], 1.0 - p[:, None, :])  # (n, 2^m, m)
    return labelsets, terms.prod(axis=2)


def cardinality_matrix(labelsets: Integers, proba: Floats) -> Floats:
    """Compute P (n, m, m), P[r, i, s - 1] = p(y_i = 1, |y| = s), by its definition."""
    m = labelsets.shape[1]
    P = np.zeros((len(proba), m, m))
    for labelset, weight in zip(labelsets, proba.T, strict=True):
        for i in np.flatnonzero(labelset):
            P[:, i, labelset.sum() - 1] += weight
    return P


def cardinality_distribution(labelsets: Integers, proba: Floats) -> Floats:
    """Compute d (n, m + 1), d[r, s] = p(|y| = s), by its definition."""
    d = np.zeros((len(proba), labelsets.shape[1] + 1))
    for labelset, weight in zip(labelsets, proba.T, strict=True):
        d[:, labelset.sum()] += weight
    return d


def product_joint(joints: Sequence[Joint], factors: Sequence[Sequence[int]]) -> Joint:
    """Return the joint distribution of all labels for independent factors."""
    m = sum(len(factor) for factor in factors)
    labelsets: list[Integers] = []
    proba: list[Floats] = []
    for choice in itertools.product(*[range(len(sets)) for sets, _ in joints]):
        labelset = np.zeros(m, dtype=np.int64)
        weight = np.ones(len(joints[0][1]))
        for (sets, w), factor, at in zip(joints, factors, choice, strict=True):
            labelset[list(factor)] = sets[at]
            weight = weight * w[:, at]
        labelsets.append(labelset)
        proba.append(weight)
    return np.array(labelsets), np.stack(proba, axis=1)


def f_table(labelsets: Integers, beta: float, zero_division: float) -> Floats:
    """Compute F_beta(y, h) for every pair of label sets, (true, decided), by its definition."""
    size = labelsets.sum(axis=1)
    both = labelsets @ labelsets.T
    denominator = beta**2 * size[:, None] + size[None, :]
    F = np.full(both.shape, zero_division)
    np.divide((1.0 + beta**2) * both, denominator, out=F, where=denominator > 0.0)
    return F


def jaccard_table(labelsets: Integers, zero_division: float) -> Floats:
    """Compute the Jaccard index of every pair of label sets, (true, decided)."""
    size = labelsets.sum(axis=1)
    both = labelsets @ labelsets.T
    union = size[:, None] + size[None, :] - both
    J = np.full(both.shape, zero_division)
    np.divide(both, union, out=J, where=union > 0)
    return J


def expected_f(
    joint: Joint, beta: float, zero_division: float, nonempty: bool, measure: str = "f"
) -> Floats:
    """Compute the expected F, or Jaccard index, of each of the 2^m sets of `all_labelsets`.

    The empty set comes first. With `nonempty` it cannot be chosen, and gets -1.
    """
    labelsets, proba = joint
    m = labelsets.shape[1]
    # Probabilities of all sets; equal given sets are added.
    full = np.zeros((len(proba), 2**m), dtype=proba.dtype)
    code = labelsets @ (1 << np.arange(m)[::-1])
    np.add.at(full.T, code, proba.T)
    if measure == "jaccard":
        F = jaccard_table(all_labelsets(m), zero_division)
    else:
        F = f_table(all_labelsets(m), beta, zero_division)
    if not nonempty:
        return full @ F
    value = full[:, 1:] @ F[1:] / full[:, 1:].sum(axis=1, keepdims=True)
    value[:, 0] = -1.0
    return value


def expected_scores(
    p: Floats, beta: float, zero_division: float, nonempty: bool, missed: npt.ArrayLike = (1.0,)
) -> Floats:
    """Compute expected F, precision and recall, (3, 2^m), of the sets of `all_labelsets`.

    `p`, (m,), are marginals of independent labels, `missed` the distribution of the number of true
    items beside them.
    """
    sets, proba = independent_joint(p[None])
    size, both = sets.sum(axis=1), sets @ sets.T  # (2^m,), (true, decided)
    scores, total = np.zeros((3, len(sets))), 0.0
    for n, share in enumerate(missed):
        true = (size + n)[:, None] + 0.0 * size  # (true, decided)
        factors = 1.0 + beta**2, 1.0, 1.0
        denominators = beta**2 * true + size, 0.0 * true + size, true
        kept = proba[0] * share * (size + n > 0 if nonempty else 1.0)
        for at, (factor, denominator) in enumerate(zip(factors, denominators, strict=True)):
            value = np.full(both.shape, zero_division)
            np.divide(factor * both, denominator, out=value, where=denominator > 0.0)
            scores[at] += kept @ value
        total += kept.sum()
    return scores / total


def costs_of(constraints: Any, m: int) -> Floats:
    """Return the cost of each label, (m,)."""
    costs = constraints.costs if constraints is not None else None
    if isinstance(costs, dict):
        return np.array([costs.get(i, 0.0) for i in range(m)])
    return np.zeros(m) + (0.0 if costs is None else costs)


def is_allowed(
    labelset: npt.ArrayLike,
    min_labels: int = 0,
    max_labels: int | None = None,
    constraints: Any = None,
    nonempty: bool = False,
) -> bool:
    """Return True if a set satisfies all limits; constraints are by number."""
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


def check_decision(
    decision: tuple[npt.NDArray[np.int8], Floats],
    joint: Joint,
    *,
    beta: float = 1.0,
    zero_division: float = 1.0,
    nonempty: bool = False,
    measure: str = "f",
    tolerance: float = 1e-11,
    tie: float = 1e-13,
    least: float = 1e-305,
    **limits: Any,
) -> None:
    """Assert that a decision is the best feasible one, with its right expectation.

    Where values differ by less than `tie` the smallest set must win, then the one whose labels
    have the lowest indices. Those that differ by more, up to twice the tolerance, may be ties or
    not; with a negative `tie` any two sets. Values below `least` need not have all their digits.
    """
    labels, stated = decision
    constraints = limits.get("constraints")
    m = labels.shape[1]
    sets, cost = all_labelsets(m), costs_of(constraints, m)
    assert labels.dtype == np.int8
    assert set(np.unique(labels)) <= {0, 1}
    allowed = np.array([is_allowed(one, nonempty=nonempty, **limits) for one in sets])
    expected = expected_f(joint, beta, zero_division, nonempty, measure)  # (n, 2^m)
    value = np.where(allowed, expected - sets @ cost, -np.inf)
    best = value.max(axis=1)
    at = np.arange(len(labels)), labels @ (1 << np.arange(m)[::-1])
    assert allowed[at[1]].all(), (limits, labels)
    rtol, atol = (0.0, tolerance) if cost.any() else (tolerance, least)  # costs can cancel
    np.testing.assert_allclose(value[at], best, rtol=rtol, atol=atol)
    np.testing.assert_allclose(stated, expected[at], rtol=tolerance, atol=least)
    for row, chosen in enumerate(labels):
        unit = 1.0 if cost.any() else abs(best[row])
        tied = value[row] >= best[row] - tie * unit
        if (tied != (value[row] >= best[row] - 2.0 * tolerance * unit)).any():
            continue
        smallest = sets[tied][sets[tied].sum(axis=1) == sets[tied].sum(axis=1).min()]
        assert chosen.sum() == smallest[0].sum(), (row, chosen, smallest)
        if constraints is None or not constraints.parents:
            assert tuple(chosen) == max(map(tuple, smallest)), (row, chosen, smallest)


def gfm(
    P: Floats, d_0: float, beta: float = 1.0, zero_division: float = 1.0
) -> tuple[Integers, float]:
    """Decide one row from P (m, S) by GFM, evaluating every column of Delta and every size."""
    m, S = P.shape
    s, k = np.arange(1, S + 1), np.arange(1, m + 1)
    delta = (1.0 + beta**2) * P @ (1.0 / (beta**2 * s[:, None] + k[None, :]))  # (m, k)
    order = np.argsort(-delta, axis=0, kind="stable")
    value = [delta[order[:size, size - 1], size - 1].sum() for size in k]
    labels = np.zeros(m, dtype=np.int64)
    best = int(np.argmax(value))
    if value[best] <= zero_division * d_0:
        return labels, zero_division * d_0
    labels[order[: best + 1, best]] = 1
    return labels, float(value[best])


def independent_values(p: Floats) -> Floats:
    """Compute the expected F_1 of the k most probable labels, k = 1 .. m, by integration.

    1 / a = int_0^inf exp(-a t) dt over panels of doubling width, 20 Gauss-Legendre nodes in each.
    """
    p = np.sort(p)[::-1]
    x, w = np.polynomial.legendre.leggauss(20)
    edges = np.concatenate([[0.0], 2.0 ** np.arange(-40, 6)])
    half = np.diff(edges)[:, None] / 2.0
    t = (edges[:-1, None] + half * (x + 1.0)).ravel()  # (nodes,)
    weight = (half * w).ravel()
    u = -np.expm1(-t)
    product = np.exp(np.log1p(-p[:, None] * u).sum(axis=0))  # E[exp(-t s)]
    values = np.empty(len(p))
    total = np.zeros(len(t))
    for k, p_k in enumerate(p, start=1):
        total += p_k / (1.0 - p_k * u)
        values[k - 1] = 2.0 * (weight * np.exp(-(k + 1) * t) * product * total).sum()
    return values


def jaccard_values(p: Floats) -> Floats:
    """Compute the expected Jaccard index of the k most probable labels, k = 1 .. m, in O(m^2).

    M_k E[1 / (k + S)], S the number of true labels among the others, from the distribution of S.
    """
    p = np.sort(p)[::-1].astype(np.longdouble)
    m = len(p)
    M = np.cumsum(p)
    d = np.zeros(m + 1, dtype=np.longdouble)  # d[s] = p(S = s)
    d[0] = 1.0
    values = np.empty(m)
    for k in range(m, 0, -1):
        values[k - 1] = M[k - 1] * (d / (k + np.arange(m + 1))).sum()
        d[1:] = d[1:] * (1.0 - p[k - 1]) + d[:-1] * p[k - 1]
        d[0] *= 1.0 - p[k - 1]
    return values
