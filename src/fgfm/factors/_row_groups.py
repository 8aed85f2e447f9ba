"""Groups of rows within which the dependence of labels may differ, from the features.

A dependence whose sign changes with x cancels in an average over all rows, but not within groups
of similar rows. The groups are the leaves of a small regression tree; the target of the tree
defines which rows are similar.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm.factors._residuals import Residuals
from fgfm.factors._scaling import combine_columns, standardise

__all__ = ["groups_by_features", "groups_by_fit", "groups_by_products"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_N_TARGETS = 32
_MIN_ROWS = 20  # of a leaf


def groups_by_fit(X: Any, residuals: Residuals, rng: np.random.Generator) -> Integers:
    """Return up to 8 groups of rows that differ in the fitted probabilities of the labels."""
    target = combine_columns(residuals.fitted, _N_TARGETS, rng)
    tree = _make_tree(X.shape[0], 8, 20, rng).fit(X, target)
    return _renumber(tree.apply(X))


def groups_by_products(X: Any, residuals: Residuals, rng: np.random.Generator) -> Integers:
    """Return groups of rows that differ in the products of residuals, up to 4 of each half.

    The tree of one half of the rows is grown on the other half: otherwise the products would
    select the groups in which they are tested.
    """
    n = X.shape[0]
    half = rng.permutation(n) % 2
    R = residuals.values
    # (sum_i e_i R_i)^2 - sum_i R_i^2 = sum_{i != j} e_i e_j R_i R_j: random signs e give random
    # signed sums of the products of all pairs.
    signs = rng.choice([-1.0, 1.0], (R.shape[1], _N_TARGETS))
    target = (R @ signs) ** 2 - np.sum(R * R, axis=1, keepdims=True)  # (n, targets)
    groups = np.empty(n, dtype=np.int64)
    for side in (0, 1):
        grown, cut = np.flatnonzero(half == side), np.flatnonzero(half != side)
        tree = _make_tree(n, 4, 30, rng).fit(X[grown], target[grown])
        groups[cut] = 2 * tree.apply(X[cut]) + side
    return _renumber(groups)


def groups_by_features(X: Any, residuals: Residuals, rng: np.random.Generator) -> Integers:
    """Return up to 8 groups of rows that differ in the features, independently of the labels."""
    target = combine_columns(standardise(X), _N_TARGETS, rng)
    tree = _make_tree(X.shape[0], 8, 20, rng).fit(X, target)
    return _renumber(tree.apply(X))


def _make_tree(n: int, leaves: int, share: int, rng: np.random.Generator) -> Any:
    """Return a regression tree whose leaves have n / share rows or more."""
    from sklearn.tree import DecisionTreeRegressor  # slow to import, and used by GCM only

    return DecisionTreeRegressor(
        max_leaf_nodes=leaves,
        min_samples_leaf=max(_MIN_ROWS, n // share),
        random_state=int(rng.integers(2**31)),
    )


def _renumber(leaves: Any) -> Integers:
    return np.unique(leaves, return_inverse=True)[1].reshape(-1).astype(np.int64)
