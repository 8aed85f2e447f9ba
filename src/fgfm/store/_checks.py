"""Checks of loaded models: compiled code follows their indices without looking at array bounds.

A tree of scikit-learn is accepted if its nodes form one tree, with children after their parents,
if its splits are on features that exist, and if its arrays have the sizes that compiled code
assumes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
)
from sklearn.ensemble._forest import BaseForest
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import BaseDecisionTree
from sklearn.tree._tree import Tree

_LEAF = -1  # the children of a leaf


def check_loaded(model: Any, *, trees: bool) -> None:
    """Raise an error if compiled code could leave an array of a model; call none of its methods.

    `trees`: check trees of scikit-learn, too.
    """
    pending, seen = [model], {}
    while pending:
        part = pending.pop()
        if id(part) in seen or isinstance(part, str | bytes | int | float | type):
            continue
        seen[id(part)] = part  # keeps it alive, so that its id is not used again
        children = list(getattr(part, "__dict__", {}).values())
        if isinstance(part, dict):
            children.extend([*part.keys(), *part.values()])
        elif isinstance(part, list | tuple | set):
            children.extend(part)
        elif isinstance(part, np.ndarray) and part.dtype == object:
            children.extend(part.ravel().tolist())
        pending.extend(children)
        _check_indices(part)
        if trees:
            _check_trees(part, children)


def _check_indices(part: Any) -> None:
    """Raise ValueError if indices in an object are not below the sizes that it has."""
    name, attributes = type(part).__name__, getattr(part, "__dict__", {})
    if sparse.issparse(part):
        if part.format not in ("csr", "csc"):
            raise ValueError(f"a sparse matrix has format {part.format}: it must be csr or csc")
        part.check_format(full_check=True)
    elif isinstance(part, np.random.RandomState | np.random.Generator):
        if isinstance(part, np.random.RandomState):
            state: Any = part.get_state(legacy=False)
        else:
            state = part.bit_generator.state
        inner = state["state"] if isinstance(state["state"], dict) else {}
        position, most = inner.get("pos", state.get("buffer_pos", 0)), 624 if "pos" in inner else 4
        if not 0 <= position <= most:
            raise ValueError(f"a random generator has the position {position}, not 0 to {most}")
    words = attributes.get("vocabulary_", {})
    if not isinstance(words, dict) or set(words.values()) != set(range(len(words))):
        raise ValueError(f"the vocabulary of a {name} has no column for each word")
    for attribute in ("_fit_X", "cluster_centers_"):  # compared with rows of n_features_in_
        rows, p = attributes.get(attribute), attributes.get("n_features_in_")
        if rows is not None and p is not None and (np.shape(rows)[1:] != (p,) or not len(rows)):
            raise ValueError(
                f"{attribute} of a {name} must have rows of {p} columns: {np.shape(rows)}"
            )
    if isinstance(part, OneHotEncoder) and "categories_" in attributes:
        _check_categories(attributes)


def _check_categories(encoder: dict[str, Any]) -> None:
    """Raise ValueError if categories would get columns that an encoder does not have."""
    categories, widths = encoder["categories_"], encoder["_n_features_outs"]
    nothing = [None] * len(categories)
    groups = encoder.get("_default_to_infrequent_mappings", nothing)
    dropped = encoder.get("drop_idx_")
    dropped = nothing if dropped is None else dropped
    for kinds, group, drop, width in zip(categories, groups, dropped, widths, strict=True):
        columns = range(len(kinds)) if group is None else np.asarray(group)
        least = max(columns, default=-1) + 1 - (drop is not None)
        if min(columns, default=0) < 0 or least > width:
            raise ValueError(f"a OneHotEncoder has {width} columns for {least} categories")


# Trees


def _check_tree(tree: Tree) -> None:
    """Raise ValueError unless the nodes of a tree of scikit-learn form a tree."""
    if tree.node_count != tree.capacity:  # that of its arrays
        raise ValueError(f"a tree has {tree.capacity} nodes, and its node_count is not as many")
    left, right = tree.children_left, tree.children_right
    inner = left != _LEAF
    if not (right[~inner] == _LEAF).all():
        raise ValueError("a tree has a node with one child")
    depth = _checked_depth(inner, left, right, tree.feature, tree.n_features)
    if tree.max_depth < depth:  # paths are written into arrays of this length
        raise ValueError(f"a tree of depth {depth} has max_depth {tree.max_depth}")


def _check_trees(owner: Any, children: list[Any]) -> None:
    """Raise ValueError if an object would pass rows to its trees that have too few features."""
    fitted = getattr(owner, "__dict__", {})
    if isinstance(owner, HistGradientBoostingClassifier | HistGradientBoostingRegressor):
        _check_boosting(fitted)
    if isinstance(owner, BaseForest | IsolationForest):
        features = fitted.get("estimators_features_")  # of each tree of an isolation forest
        for i, tree in enumerate(fitted.get("estimators_", [])):
            p = fitted["n_features_in_"] if features is None else len(features[i])
            known = vars(tree)["n_features_in_"] if isinstance(tree, BaseDecisionTree) else None
            if known is None or not np.array_equal(known, p):
                raise ValueError(
                    f"a {type(owner).__name__} has a {type(tree).__name__} of {known} features: "
                    f"it must be a tree of {p}"
                )
    for tree in (child for child in children if isinstance(child, Tree)):
        known = fitted.get("n_features_in_", -1)
        if not isinstance(owner, BaseDecisionTree) or not np.array_equal(known, tree.n_features):
            raise ValueError(
                f"a {type(owner).__name__} has a tree of {tree.n_features} features: it must be "
                "a tree of scikit-learn with as many features"
            )
        _check_tree(tree)


def _check_boosting(fitted: dict[str, Any]) -> None:
    """Raise ValueError unless all trees of a model of gradient boosting are valid."""
    if "_predictors" not in fitted:
        return
    if fitted.get("_preprocessor") is not None or fitted.get("_in_fit"):
        raise ValueError("gradient boosting has an encoder of categories, which is not checked")
    p, k = fitted.get("n_features_in_"), fitted.get("n_trees_per_iteration_")
    if type(p) is not int or not all(len(trees) == k for trees in fitted["_predictors"]):
        raise ValueError(f"gradient boosting must have {k} trees in each iteration")
    for predictor in (tree for trees in fitted["_predictors"] for tree in trees):
        if type(predictor) is not TreePredictor or not _is_nodes(predictor.nodes):
            raise ValueError("a tree of gradient boosting has no array of nodes")
        nodes = predictor.nodes
        inner = nodes["is_leaf"] == 0
        if nodes["is_categorical"][inner].any():
            raise ValueError("gradient boosting splits on a category without an encoder of them")
        _checked_depth(inner, nodes["left"], nodes["right"], nodes["feature_idx"], p)


def _is_nodes(value: Any) -> bool:
    return type(value) is np.ndarray and value.ndim == 1 and bool(value.dtype.names)


def _checked_depth(
    inner: npt.NDArray[np.bool_],
    left: npt.NDArray[Any],
    right: npt.NDArray[Any],
    features: npt.NDArray[Any],
    p: int,
) -> int:
    """Return the depth of a tree; raise ValueError unless its nodes form a tree on p features."""
    n = len(inner)
    left, right = left.astype(np.int64), right.astype(np.int64)
    parents = np.flatnonzero(inner)
    children = np.concatenate([left[parents], right[parents]])
    # Children come after their parent, so that no path is a cycle.
    if n == 0 or (children <= np.tile(parents, 2)).any() or (children >= n).any():
        raise ValueError("a tree has a child that is not a later node")
    if (np.bincount(children, minlength=n) != np.r_[0, np.ones(n - 1, dtype=int)]).any():
        raise ValueError("a tree has a node without a parent, or with two")
    wrong = features[inner][(features[inner] < 0) | (features[inner] >= p)]
    if len(wrong):
        raise ValueError(f"a tree of {p} features splits on feature {wrong[0]}")
    depth, level = 0, parents[parents == 0]
    while len(level):
        depth += 1
        level = np.concatenate([left[level], right[level]])
        level = level[inner[level]]
    return depth
