"""One random forest for all targets, with out-of-bag predictions.

The forest is grown on the labels, or on random projections of many labels. Its prediction is a
weighted mean of the training rows that share a leaf with the row: p = W T, with T the targets of
the training rows, so that any target can be predicted and leaves store no statistics.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._kernels import apply_trees, grow_tree
from fgfm._utils.blocks import BLOCK_BYTES, n_threads, run_blocks
from fgfm.learner._features import BinnedFeatures, known_means

__all__ = ["LabelForest"]

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]

_TREES = 200
_LEAVES = (2, 1)  # least numbers of rows of a leaf, the usual one first
_TRIAL = 10  # trees that they are compared by
_DRAWS = 20_000  # rows that a tree is grown on, at most
_COLUMNS = 2000  # features that trees of wide sparse data may split on
_OUTPUTS = 24  # more labels are projected
_PROJECTIONS = 16
_SPARSE = 0.2  # share of labels below which they are stored sparse
_PAD = 8  # outputs that the kernel sums at the same time
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
        labels: Singles,
        targets: Any,
        observed: Any,
        weight: Floats,
        seed: int,
        n_jobs: int | None,
    ) -> Singles:
        """Grow the trees; return the out-of-bag predictions of the targets, (n, T).

        Parameters
        ----------
        X : array or CSR matrix of shape (n, p)
            Features; missing values are NaN.
        labels : ndarray of shape (n, m)
            What the trees are grown on; NaN where a label is not known.
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
        p = X.shape[1]
        self.columns = None
        if sparse.issparse(X) and p > _COLUMNS:
            frequency = np.bincount(X.indices, minlength=p)
            self.columns = np.sort(np.argsort(-frequency, kind="stable")[:_COLUMNS])
        features = BinnedFeatures(self._used(X))
        outputs = _Outputs(labels, weight)
        self.targets, self.observed = targets, observed
        seeds = np.random.default_rng(seed).integers(np.iinfo(np.int32).max, size=_TREES)

        def grow(leaf: int, seeds: npt.NDArray[np.int64]) -> Singles:
            def tree(block: slice) -> _Tree:
                return _grow(features, outputs, weight, leaf, int(seeds[block.start]))

            self._store(features, run_blocks(len(seeds), BLOCK_BYTES, n_threads(n_jobs), tree))
            leaves = self._leaves(X)  # (n, trees)
            self._set_members(leaves, weight, seeds)
            return self._means(leaves)

        usual, single = (
            self._squared_errors(*(grow(leaf, s) for s in seeds[: 2 * _TRIAL].reshape(2, -1)))
            for leaf in _LEAVES
        )
        gain = (usual - single)[np.isfinite(usual + single)]
        # Leaves of one row where the error surely falls, as it does if rows are nearly repeated.
        surely = gain.sum() > 3.0 * np.sqrt((gain**2).sum())
        return grow(_LEAVES[int(surely)], seeds)

    def predict(self, X: Any) -> Singles:
        """Return the predictions (n, T) of all trees."""
        means = self._means(self._leaves(X))
        if self.observed is not None:  # a target may be known in no row of the leaves
            frequency = self.targets.sum(axis=0) / np.maximum(self.observed.sum(axis=0), 1.0)
            means = np.where(np.isnan(means), frequency, means).astype(np.float32)
        return means

    def _used(self, X: Any) -> Any:
        """Return the features that are used, in single precision."""
        with np.errstate(over="ignore"):  # new rows may be far larger than those of `fit`
            return (X if self.columns is None else X[:, self.columns]).astype(np.float32)

    def _store(self, features: BinnedFeatures, trees: list[_Tree]) -> None:
        """Keep the trees as arrays, which can be saved and loaded without running code."""
        sizes = np.array([tree.links.shape[1] for tree in trees])
        self.root = np.cumsum(sizes) - sizes
        for tree, root in zip(trees, self.root, strict=True):
            children = tree.links[:2]
            children[children >= 0] += root
        self.left, self.right, self.feature = np.concatenate([t.links for t in trees], axis=1)
        bins, self.missing_left = np.concatenate([t.bytes for t in trees], axis=1)
        self.threshold = features.edges[self.feature, bins]
        self.threshold[self.left < 0] = 0.0

    def _leaves(self, X: Any) -> npt.NDArray[np.int32]:
        """Return the leaf (n, trees) of each row in each tree."""
        leaves = np.empty((X.shape[0], len(self.root)), dtype=np.int32)
        trees = (self.left, self.right, self.feature, self.threshold, self.missing_left)
        if len({len(array) for array in trees}) > 1:  # the kernel assumes one length
            raise ValueError("the trees of the forest are damaged: their arrays differ in length")
        for start in range(0, len(leaves), _BLOCK):
            rows = self._used(X[start : start + _BLOCK])
            dense = np.ascontiguousarray(rows.toarray() if sparse.issparse(rows) else rows)
            if not apply_trees(dense, self.root, *trees, leaves[start : start + _BLOCK]):
                raise ValueError("the trees of the forest are damaged: a node does not exist")
        return leaves

    def _set_members(
        self, leaves: npt.NDArray[np.int32], weight: Floats, seeds: npt.NDArray[np.int64]
    ) -> None:
        """Set `members`, and -1 as the leaf of the rows that a tree was grown on."""
        nodes, n = len(self.left), len(weight)
        sizes, indices, data = np.zeros(nodes + 1, dtype=np.int32), [], []
        for t, seed in enumerate(seeds):
            counts = _bootstrap(n, int(seed))
            rows = np.flatnonzero(counts)
            leaf = leaves[rows, t] - self.root[t]
            inside = counts[rows] * weight[rows]
            share = inside / np.bincount(leaf, weights=inside)[leaf]
            order = np.argsort(leaf, kind="stable")
            indices.append(rows[order].astype(np.int32))
            data.append(share[order].astype(np.float32))
            own = np.bincount(leaf)
            sizes[self.root[t] + 1 : self.root[t] + 1 + len(own)] = own
            leaves[rows, t] = -1
        self.members = sparse.csr_array(
            (np.concatenate(data), np.concatenate(indices), np.cumsum(sizes, dtype=np.int32)),
            shape=(nodes, n),
        )

    def _squared_errors(self, one: Singles, other: Singles) -> Floats:
        """Return estimates (n,) of the squared error of many trees, from two groups of few.

        The errors of few trees have a variance that those of many trees do not have. It is not in
        the product of errors of independent groups.
        """
        errors = np.empty(len(one))
        for start in range(0, len(one), _BLOCK):
            rows = slice(start, start + _BLOCK)
            y = self.targets[rows].toarray()
            products = (y - one[rows]) * (y - other[rows])
            if self.observed is not None:
                products *= self.observed[rows].toarray()
            errors[rows] = products.sum(axis=1)
        return errors

    def _means(self, leaves: npt.NDArray[np.int32]) -> Singles:
        """Return the means (n, T) of the targets over the leaves of each row, but those of -1."""
        means = np.empty((len(leaves), self.targets.shape[1]), dtype=np.float32)
        for start in range(0, len(leaves), _BLOCK):
            block = slice(start, start + _BLOCK)
            row, tree = np.nonzero(leaves[block] >= 0)
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


class _Outputs:
    """What trees are grown on: centred labels, or random projections of many of them.

    Parameters
    ----------
    labels : ndarray of shape (n, m)
        Labels; NaN where one is not known, which counts as its mean.
    weight : ndarray of shape (n,)
        Sample weights.
    """

    def __init__(self, labels: Singles, weight: Floats) -> None:
        self.mean = known_means(labels, weight).astype(np.float32)
        self.values: Any = np.where(np.isnan(labels), self.mean, labels)
        if labels.shape[1] <= _OUTPUTS:
            width = -labels.shape[1] % _PAD
            self.values = np.pad(self.values - self.mean, ((0, 0), (0, width)))
        elif np.count_nonzero(self.values) < _SPARSE * self.values.size:
            self.values = sparse.csr_array(self.values)

    def projected(self, seed: int) -> Singles:
        """Return the outputs (n, K) of a tree."""
        if len(self.mean) <= _OUTPUTS:
            return np.asarray(self.values)
        random = np.random.default_rng([seed, 1])
        directions = random.standard_normal((len(self.mean), _PROJECTIONS), dtype=np.float32)
        return np.asarray(self.values @ directions - self.mean @ directions)


class _Tree(NamedTuple):
    """The nodes of a tree: left, right and feature (3, nodes); bin and missing_left (2, nodes)."""

    links: npt.NDArray[np.int32]
    bytes: npt.NDArray[np.uint8]


def _grow(
    features: BinnedFeatures, outputs: _Outputs, weight: Floats, leaf: int, seed: int
) -> _Tree:
    """Return one tree, grown on the rows that are drawn."""
    p = features.edges.shape[0]
    counts = _bootstrap(len(weight), seed)
    rows = np.flatnonzero(counts)
    w = (counts * weight).astype(np.float32)
    values = outputs.projected(seed) * w[:, None]
    room = max(1, 2 * (len(rows) // leaf))
    links, small = np.empty((3, room), np.int32), np.empty((2, room), np.uint8)
    most = min(p, max(1, int(max(p**0.5, p / 10))))
    size = grow_tree(*features.arrays, values, w, rows, most, leaf, seed, links, small)
    return _Tree(links[:, :size], small[:, :size])
