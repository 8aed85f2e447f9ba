"""Exhaustive enumeration over all 2^m label sets: slow, plain, the reference for everything."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Joint = tuple[Integers, Floats]  # label sets (L, m), probabilities (n, L)


def all_labelsets(m: int) -> Integers:
    """Give the 2^m label sets."""
    return np.array(list(itertools.product([0, 1], repeat=m)), dtype=np.int64)


def random_joint(rng: np.random.Generator, n: int, m: int) -> Joint:
    """Draw n distributions over the 2^m label sets; a few sets have most of the mass."""
    labelsets = all_labelsets(m)  # (2^m, m)
    return labelsets, rng.dirichlet(np.full(len(labelsets), 0.5), size=n)


def independent_joint(marginals: npt.ArrayLike) -> Joint:
    """Give the distribution of independent labels with the given marginals."""
    p = np.asarray(marginals, dtype=np.float64)  # (n, m)
    labelsets = all_labelsets(p.shape[1])
    terms = np.where(labelsets == 1, p[:, None, :], 1.0 - p[:, None, :])  # (n, 2^m, m)
    return labelsets, terms.prod(axis=2)


def cardinality_matrix(labelsets: Integers, proba: Floats) -> Floats:
    """Give P (n, m, m), P[r, i, s - 1] = p(y_i = 1, |y| = s), by its definition."""
    m = labelsets.shape[1]
    P = np.zeros((len(proba), m, m))
    for labelset, weight in zip(labelsets, proba.T, strict=True):
        for i in np.flatnonzero(labelset):
            P[:, i, labelset.sum() - 1] += weight
    return P


def cardinality_distribution(labelsets: Integers, proba: Floats) -> Floats:
    """Give d (n, m + 1), d[r, s] = p(|y| = s), by its definition."""
    d = np.zeros((len(proba), labelsets.shape[1] + 1))
    for labelset, weight in zip(labelsets, proba.T, strict=True):
        d[:, labelset.sum()] += weight
    return d


def product_joint(joints: Sequence[Joint], factors: Sequence[Sequence[int]]) -> Joint:
    """Give the distribution of all labels when the factors are independent."""
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
