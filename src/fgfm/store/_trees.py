"""Trees of scikit-learn, rebuilt from checked arrays.

scikit-learn follows the node indices of a tree without bounds checks, also out of its arrays. A
tree is accepted here if its nodes form one tree, with children after their parents, if its splits
are on features that exist, and if its arrays have the sizes that compiled code assumes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
)
from sklearn.ensemble._forest import BaseForest
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.tree import BaseDecisionTree
from sklearn.tree._tree import Tree

_LEAF = -1  # the children of a leaf


def checked_tree(arguments: Any, state: Any) -> Tree:
    """Return a tree of scikit-learn, from what its pickle would contain.

    Parameters
    ----------
    arguments : tuple
        Number of features, number of classes of each output, number of outputs.
    state : dict
        Depth, number of nodes, nodes and values.

    Returns
    -------
    sklearn.tree._tree.Tree
        The tree.
    """
    n_features, n_classes, n_outputs = arguments
    nodes, node_count, max_depth = state["nodes"], state["node_count"], state["max_depth"]
    sizes = (n_features, n_outputs, node_count, max_depth)
    if not all(type(size) is int and size >= 0 for size in sizes):
        raise ValueError(f"a tree has the sizes {sizes!r}: they must be integers from 0")
    if not (
        _is_array(n_classes, 1)
        and n_classes.dtype.kind == "i"
        and len(n_classes) == n_outputs > 0
        and n_classes.min() > 0
    ):
        raise ValueError("a tree has no number of classes for each output")
    if not (_is_array(nodes, 1) and nodes.dtype.names and len(nodes) == node_count):
        raise ValueError(f"a tree must have an array of {node_count} nodes")
    left, right = nodes["left_child"], nodes["right_child"]
    inner = left != _LEAF
    if not (right[~inner] == _LEAF).all():
        raise ValueError("a tree has a node with one child")
    depth = _depth(inner, left.astype(np.int64), right.astype(np.int64))
    if max_depth < depth:  # paths are written into arrays of this length
        raise ValueError(f"a tree of depth {depth} has max_depth {max_depth}")
    _check_features(nodes["feature"][inner], n_features)
    tree = Tree(n_features, n_classes, n_outputs)
    tree.__setstate__(state)  # checks dtypes, and the shape of the values
    return tree


def check_owner_of_trees(owner: Any, children: list[Any]) -> None:
    """Raise ValueError if an object would pass rows to its trees that have too few features.

    Parameters
    ----------
    owner : object
        Any part of a model.
    children : list
        The objects in it.
    """
    if isinstance(owner, (HistGradientBoostingClassifier, HistGradientBoostingRegressor)):
        _check_boosting(owner)
    if isinstance(owner, (BaseForest, IsolationForest)):
        _check_forest(owner)
    for tree in children:
        if isinstance(tree, Tree) and not (
            isinstance(owner, BaseDecisionTree)
            and np.array_equal(vars(owner).get("n_features_in_"), tree.n_features)
        ):
            raise ValueError(
                f"a {type(owner).__name__} has a tree of {tree.n_features} features: it must be "
                "a tree of scikit-learn with as many features"
            )


def _check_forest(forest: Any) -> None:
    """Raise ValueError unless the trees of a forest take its rows, and predict its classes."""
    fitted = vars(forest)
    features = fitted.get("estimators_features_")  # of each tree of an isolation forest
    for at, tree in enumerate(fitted.get("estimators_", [])):
        if not isinstance(tree, BaseDecisionTree):
            raise ValueError(f"a {type(forest).__name__} has a {type(tree).__name__} as a tree")
        p = fitted["n_features_in_"] if features is None else len(features[at])
        given = (vars(tree)["n_features_in_"], vars(tree).get("n_classes_"))
        if not np.array_equal(given[0], p) or not np.array_equal(
            given[1], fitted.get("n_classes_", given[1])
        ):
            raise ValueError(
                f"a {type(forest).__name__} has a tree of {given[0]} features and {given[1]} "
                f"classes: they must be {p} and {fitted.get('n_classes_')}"
            )


def _check_boosting(model: Any) -> None:
    """Raise ValueError unless all trees of a model of gradient boosting are valid."""
    fitted = vars(model)
    if "_predictors" not in fitted:
        return
    if fitted.get("_preprocessor") is not None or fitted.get("_in_fit"):
        raise ValueError("gradient boosting has an encoder of categories, which is not checked")
    p, k = fitted.get("n_features_in_"), fitted.get("n_trees_per_iteration_")
    if not all(len(trees) == k for trees in fitted["_predictors"]):
        raise ValueError(f"gradient boosting must have {k} trees in each iteration")
    for predictor in (tree for trees in fitted["_predictors"] for tree in trees):
        if not (type(predictor) is TreePredictor and type(p) is int):
            raise ValueError("gradient boosting has no trees, or no number of features")
        nodes = predictor.nodes
        if not (_is_array(nodes, 1) and nodes.dtype.names):
            raise ValueError("a tree of gradient boosting has no array of nodes")
        inner = nodes["is_leaf"] == 0
        if nodes["is_categorical"][inner].any():
            raise ValueError("gradient boosting splits on a category without an encoder of them")
        _depth(inner, nodes["left"].astype(np.int64), nodes["right"].astype(np.int64))
        _check_features(nodes["feature_idx"][inner], p)


def _is_array(value: Any, ndim: int) -> bool:
    return type(value) is np.ndarray and value.ndim == ndim


def _depth(
    inner: npt.NDArray[np.bool_], left: npt.NDArray[np.int64], right: npt.NDArray[np.int64]
) -> int:
    """Return the depth of a tree; raise ValueError unless its nodes form a tree from node 0."""
    n = len(inner)
    at = np.flatnonzero(inner)
    children = np.concatenate([left[at], right[at]])
    # Children come after their parent, so that no path is a cycle.
    if n == 0 or (children <= np.tile(at, 2)).any() or (children >= n).any():
        raise ValueError("a tree has a child that is not a later node")
    if (np.bincount(children, minlength=n) != np.r_[0, np.ones(n - 1, dtype=int)]).any():
        raise ValueError("a tree has a node without a parent, or with two")
    depth = 0
    level = at[at == 0]
    while len(level):
        depth += 1
        level = np.concatenate([left[level], right[level]])
        level = level[inner[level]]
    return depth


def _check_features(features: npt.NDArray[Any], p: int) -> None:
    """Raise ValueError unless the features of all splits are among p features."""
    if len(features) and not 0 <= features.min() <= features.max() < p:
        wrong = features[(features < 0) | (features >= p)][0]
        raise ValueError(f"a tree of {p} features splits on feature {wrong}")
