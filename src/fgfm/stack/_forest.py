"""One random forest for all targets, with out-of-bag predictions.

The forest is grown on the labels, or on random projections of many labels. Its prediction is a
weighted mean of the training rows that share a leaf with the row: p = W T, with T the targets of
the training rows, so that any target can be predicted and leaves store no statistics.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.parallel import Parallel, delayed

from fgfm._kernels import apply_trees

__all__ = ["LabelForest"]

Floats = npt.NDArray[np.float64]

_TREES = 200
_LEAF = 2  # rows, at least
_DRAWS = 10_000  # rows that a tree is grown on, at most
_COLUMNS = 2000  # features that trees of wide sparse data may split on
_OUTPUTS = 24  # more labels are projected
_PROJECTIONS = 16
_BLOCK = 1024  # rows whose weights W exist at the same time


class LabelForest:
    """A random forest that predicts all targets as means over training rows.

    Attributes
    ----------
    columns : ndarray or None
        The features that are used, if not all.
    root, left, right, feature, threshold, missing_left : ndarray
        The trees, as `fgfm._kernels.apply_trees` takes them.
    members : CSR array of shape (nodes, n)
        Weights of the training rows in each leaf, which sum to 1.
    targets : CSR array of shape (n, T)
        The targets of the training rows.
    observed : CSR array of shape (n, T) or None
        1 where a target is known; None if all are.
    """

    def fit(
        self,
        X: Any,
        labels: Floats,
        targets: Any,
        observed: Any,
        weight: Floats,
        seed: int,
        n_jobs: int | None,
    ) -> Floats:
        """Grow the trees; return the out-of-bag predictions of the targets, (n, T).

        Parameters
        ----------
        X : array or CSR matrix of shape (n, p)
            Features; missing values are NaN.
        labels : ndarray of shape (n, m)
            What the trees are grown on.
        targets : CSR array of shape (n, T)
            What is predicted; 0 where it is not known.
        observed : CSR array of shape (n, T) or None
            1 where a target is known; None if all are.
        weight : ndarray of shape (n,)
            Sample weights, all positive.
        seed : int
            Seeds trees and projections.
        n_jobs : int or None
            Number of threads, as in joblib.

        Returns
        -------
        ndarray of shape (n, T)
            Predictions by the trees that did not see the row; NaN if there is none.
        """
        n, p = X.shape
        self.columns = None
        if sparse.issparse(X) and p > _COLUMNS:
            frequency = np.bincount(X.indices, minlength=p)
            self.columns = np.sort(np.argsort(-frequency, kind="stable")[:_COLUMNS])
        dense = self._dense(X)
        outputs = labels - np.average(labels, axis=0, weights=weight)
        if labels.shape[1] > _OUTPUTS:
            random = np.random.default_rng(seed)
            outputs = outputs @ random.standard_normal((labels.shape[1], _PROJECTIONS))
        # scikit-learn's forests use weights differently from version to version, and do not keep
        # which rows a tree has seen: the trees are grown one by one.
        seeds = np.random.default_rng(seed).integers(np.iinfo(np.int32).max, size=_TREES)
        counts = np.stack([_bootstrap(n, int(s)) for s in seeds], axis=1)  # (n, trees)
        jobs = (
            delayed(_grow)(dense, outputs, counts[:, t], weight, int(s))
            for t, s in enumerate(seeds)
        )
        self._store(Parallel(n_jobs=n_jobs, prefer="threads")(jobs))
        leaves = self._leaves(dense)  # (n, trees)
        row, tree = np.nonzero(counts)
        leaf = leaves[row, tree]
        inside = counts[row, tree] * weight[row]
        total = np.bincount(leaf, weights=inside, minlength=len(self.left))
        self.members = sparse.csr_array(
            ((inside / total[leaf]).astype(np.float32), (leaf, row)), shape=(len(self.left), n)
        )
        self.targets, self.observed = targets, observed
        return self._means(leaves, counts == 0)

    def predict(self, X: Any) -> Floats:
        """Return the predictions (n, T) of all trees."""
        leaves = self._leaves(self._dense(X))
        return self._means(leaves, np.ones(leaves.shape, dtype=np.bool_))

    def _dense(self, X: Any) -> npt.NDArray[np.float32]:
        if sparse.issparse(X):
            X = (X if self.columns is None else X[:, self.columns]).toarray()
        return np.ascontiguousarray(X, dtype=np.float32)

    def _store(self, trees: list[Any]) -> None:
        """Keep the trees as arrays, which can be saved and loaded without running code."""
        sizes = np.array([tree.node_count for tree in trees])
        self.root = np.cumsum(sizes) - sizes
        shift = np.repeat(self.root, sizes)

        def children(name: str) -> npt.NDArray[np.int32]:
            own = np.concatenate([getattr(tree, name) for tree in trees])
            return np.where(own < 0, -1, own + shift).astype(np.int32)

        self.left, self.right = children("children_left"), children("children_right")
        self.feature = np.concatenate([tree.feature for tree in trees]).astype(np.int32)
        self.threshold = np.concatenate([tree.threshold for tree in trees])
        self.missing_left = np.concatenate([tree.missing_go_to_left for tree in trees]).astype(
            np.uint8
        )

    def _leaves(self, dense: npt.NDArray[np.float32]) -> npt.NDArray[np.int32]:
        """Return the leaf (n, trees) of each row in each tree."""
        leaves = np.empty((len(dense), len(self.root)), dtype=np.int32)
        trees = (self.left, self.right, self.feature, self.threshold, self.missing_left)
        same_length = len({len(array) for array in trees}) == 1  # which the kernel assumes
        if not same_length or not apply_trees(dense, self.root, *trees, leaves):
            raise ValueError("the trees of the forest are damaged: a node does not exist")
        return leaves

    def _means(self, leaves: npt.NDArray[np.int32], used: npt.NDArray[np.bool_]) -> Floats:
        """Return the means (n, T) of the targets over the used leaves of each row."""
        means = np.empty((len(leaves), self.targets.shape[1]))
        for start in range(0, len(leaves), _BLOCK):
            block = slice(start, start + _BLOCK)
            row, tree = np.nonzero(used[block])
            paths = sparse.csr_array(
                (np.ones(len(row), np.float32), (row, leaves[block][row, tree])),
                shape=(len(leaves[block]), self.members.shape[0]),
            )
            W = paths @ self.members  # (rows, n)
            if self.observed is None:
                total = np.bincount(row, minlength=len(leaves[block]))[:, None].astype(float)
            else:
                total = (W @ self.observed).toarray()
            values = (W @ self.targets).toarray()
            with np.errstate(invalid="ignore"):
                means[block] = values / total  # NaN where no training row is known
        return means


def _bootstrap(n: int, seed: int) -> npt.NDArray[np.int64]:
    """Return how often each of n rows is drawn with replacement."""
    draws = np.random.default_rng(seed).integers(n, size=min(n, _DRAWS))
    return np.bincount(draws, minlength=n)


def _grow(
    dense: npt.NDArray[np.float32],
    outputs: Floats,
    counts: npt.NDArray[np.int64],
    weight: Floats,
    seed: int,
) -> Any:
    """Return the nodes of one tree, grown on the rows that are drawn."""
    p = dense.shape[1]
    rows = np.flatnonzero(counts)
    tree = DecisionTreeRegressor(
        min_samples_leaf=_LEAF,
        max_features=min(p, max(1, int(max(p**0.5, p / 10)))),
        random_state=seed,
    )
    return tree.fit(dense[rows], outputs[rows], sample_weight=(counts * weight)[rows]).tree_
