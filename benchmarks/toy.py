"""The toy networks of the paper, drawn anew: six features and eight labels, all binary.

Features x1 to x4 are parents of every label, x5 and x6 of none. The labels of a factor are fully
connected, each with all earlier ones as parents. Every conditional distribution is drawn
uniformly from the simplex.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["STRUCTURES", "draw_toy", "factors_of", "precision_and_recall", "same_factor"]

Labels = npt.NDArray[np.int64]

STRUCTURES = {"2+2+2+2": (2, 2, 2, 2), "4+4": (4, 4), "6+2": (6, 2), "8": (8,)}
_PARENTS, _OTHERS = 4, 2


def factors_of(sizes: Sequence[int]) -> list[list[int]]:
    """Give the true factors: consecutive labels."""
    ends = np.cumsum(sizes)
    return [list(range(end - size, end)) for size, end in zip(sizes, ends, strict=True)]


def draw_toy(sizes: Sequence[int], n: int, seed: Any) -> tuple[Labels, Labels]:
    """Draw a network and n rows of it: features, (n, 6), and labels, (n, m)."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n, _PARENTS + _OTHERS)) < rng.random(_PARENTS + _OTHERS)).astype(np.int64)
    Y = np.empty((n, sum(sizes)), dtype=np.int64)
    for factor in factors_of(sizes):
        state = X[:, :_PARENTS] @ (1 << np.arange(_PARENTS))  # of the parents
        for k, label in enumerate(factor):
            p = rng.random(1 << (_PARENTS + k))  # uniform on the simplex of two values
            Y[:, label] = rng.random(n) < p[state]
            state += Y[:, label] << (_PARENTS + k)
    return X, Y


def same_factor(factors: Sequence[Sequence[int]], m: int) -> npt.NDArray[np.bool_]:
    """Tell for each pair i < j, in a row, whether the two are in one factor."""
    owner = np.empty(m, dtype=np.int64)
    for k, factor in enumerate(factors):
        owner[np.asarray(factor)] = k
    i, j = np.triu_indices(m, 1)
    return np.asarray(owner[i] == owner[j])


def precision_and_recall(
    found: npt.NDArray[np.bool_], true: npt.NDArray[np.bool_]
) -> tuple[float, float]:
    """Give the share of found pairs that are true, and of true pairs that are found; 0/0 = 1."""
    both = int((found & true).sum())
    return (
        both / int(found.sum()) if found.any() else 1.0,
        both / int(true.sum()) if true.any() else 1.0,
    )
