"""Groups of rows in which the dependence of labels may differ, from the features.

Dependence that changes its sign with x cancels in an average over all rows, but not within groups
of similar rows. Groups are the leaves of a small regression tree; what the tree is grown for says
which differences between rows count.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.tree import DecisionTreeRegressor

from fgfm.factors._residuals import Residuals
from fgfm.factors._smoother import combine_columns, standardise

__all__ = ["groups_by_features", "groups_by_fit", "groups_by_products"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_N_TARGETS = 32
_MIN_ROWS = 20


def groups_by_fit(X: Any, residuals: Residuals, rng: np.random.Generator) -> Integers:
    """Give up to 8 groups of rows that differ in the fitted probabilities of the labels."""
    target = combine_columns(residuals.fitted, _N_TARGETS, rng)
    tree = _tree(X.shape[0], 8, 20, rng).fit(X, target)
    return _numbered(tree.apply(X))


def groups_by_products(X: Any, residuals: Residuals, rng: np.random.Generator) -> Integers:
    """Give up to 4 groups of each half of the rows that differ in the products of residuals.

    The tree is grown on the other half, for random signed sums of the products R_i R_j of all
    pairs: otherwise the groups would be chosen by what is tested within them.
    """
    n = X.shape[0]
    half = rng.permutation(n) % 2
    R = residuals.values
    signs = rng.choice([-1.0, 1.0], (R.shape[1], _N_TARGETS))
    target = (R @ signs) ** 2 - np.sum(R * R, axis=1, keepdims=True)  # (n, targets)
    groups = np.empty(n, dtype=np.int64)
    for side in (0, 1):
        grown, cut = np.flatnonzero(half == side), np.flatnonzero(half != side)
        tree = _tree(n, 4, 30, rng).fit(X[grown], target[grown])
        groups[cut] = 2 * tree.apply(X[cut]) + side
    return _numbered(groups)


def groups_by_features(X: Any, residuals: Residuals, rng: np.random.Generator) -> Integers:
    """Give up to 8 groups of rows that differ in the features, whatever the labels."""
    target = combine_columns(standardise(X), _N_TARGETS, rng)
    tree = _tree(X.shape[0], 8, 20, rng).fit(X, target)
    return _numbered(tree.apply(X))


def _tree(n: int, leaves: int, share: int, rng: np.random.Generator) -> DecisionTreeRegressor:
    return DecisionTreeRegressor(
        max_leaf_nodes=leaves,
        min_samples_leaf=max(_MIN_ROWS, n // share),
        random_state=int(rng.integers(2**31)),
    )


def _numbered(leaves: Any) -> Integers:
    return np.unique(leaves, return_inverse=True)[1].reshape(-1).astype(np.int64)
