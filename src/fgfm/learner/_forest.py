"""One random forest for all labels, with out-of-bag predictions.

The forest is grown on the labels, or on random projections of many labels. Its prediction is a
weighted mean of the training rows that share a leaf with the row: p = W Y, with Y the labels of
the training rows, so that leaves store no statistics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import logit

from fgfm._kernels import apply_trees, grow_tree
from fgfm._utils.blocks import BLOCK_BYTES, n_threads, run_blocks
from fgfm.learner._features import BinnedFeatures, known_means

__all__ = ["LabelForest"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Singles = npt.NDArray[np.float32]

_TREES = 200
_FEW = 50  # trees that are enough if others hardly improve the stack
_LEAVES = (2, 1)  # least numbers of rows of a leaf, the usual one first
_TRIAL = 10  # trees that they are compared by
_DRAWS = 20_000  # rows that a tree is grown on, at most
_COLUMNS = 2000  # features that trees of wide sparse data may split on
_OUTPUTS = 24  # more labels are projected
_PROJECTIONS = 16
_SPARSE = 0.2  # share of labels below which they are stored sparse
_PAD = 8  # outputs that the kernel sums at the same time
_BLOCK = 1024  # rows whose weights W exist at the same time
_FREQUENCY = 0.02  # share of the label's frequency in a probability
_EDGE = 1e-5


class LabelForest:
    """A random forest that predicts all labels as means over training rows.

    Parameters
    ----------
    n_jobs : int or None
        Number of threads, as in joblib.
    enough : callable, optional
        Gets the out-of-bag logits of the first few trees and of twice as many; returns whether no
        more are needed.
    tick : callable
        Called with the share of the work that is done.
    grown : int, optional
        Number of labels, the first ones, that the trees are grown on; all by default.

    Attributes
    ----------
    columns : ndarray or None
        The features that are used, if not all.
    root, left, right, feature, threshold, missing_left : ndarray
        The trees, as `fgfm._kernels.apply_trees` takes them.
    members : CSR array of shape (nodes, n)
        Weights of the training rows in each leaf, which sum to 1.
    labels : CSR array of shape (n, m)
        The labels of the training rows; 0 where one is not known.
    observed : CSR array of shape (n, m) or None
        1 where a label is known; None if all are.
    frequency : ndarray of shape (m,)
        The frequency of each label.
    """

    def __init__(
        self,
        n_jobs: int | None = None,
        enough: Callable[[Singles, Singles], bool] | None = None,
        tick: Callable[[float], None] = lambda share: None,
        grown: int | None = None,
    ) -> None:
        self._how = n_jobs, enough, tick, grown

    def fit(self, X: Any, labels: Singles, weight: Floats, seed: int) -> Singles:
        """Grow the trees; return the out-of-bag logits (n, m).

        Parameters
        ----------
        X : array or CSR matrix of shape (n, p)
            Features; missing values are NaN.
        labels : ndarray of shape (n, m)
            Labels, 0 or 1, or NaN where one is not known.
        weight : ndarray of shape (n,)
            Sample weights, all positive.
        seed : int
            Seeds trees and projections.

        Returns
        -------
        ndarray of shape (n, m)
            Logits by the trees that did not see the row; NaN if there is none.
        """
        n_jobs, enough, tick, grown = self.__dict__.pop("_how")  # not to be saved
        p = X.shape[1]
        self.columns = None
        if sparse.issparse(X) and p > _COLUMNS:
            frequency = np.bincount(X.indices, minlength=p)
            self.columns = np.sort(np.argsort(-frequency, kind="stable")[:_COLUMNS])
        known = ~np.isnan(labels)
        self.observed = None if known.all() else sparse.csr_array(known.astype(np.float32))
        self.labels = sparse.csr_array(np.nan_to_num(labels))
        self.frequency = known_means(labels, weight)
        features = BinnedFeatures(self._used(X))
        outputs = _Outputs(labels[:, :grown], weight)
        seeds = np.random.default_rng(seed).integers(np.iinfo(np.int32).max, size=_TREES)

        def grow(leaf: int, seeds: Integers) -> list[_Tree]:
            def tree(block: slice) -> _Tree:
                return _grow(features, outputs, weight, leaf, int(seeds[block.start]))

            return run_blocks(len(seeds), BLOCK_BYTES, n_threads(n_jobs), tree)

        def held_out(trees: list[_Tree], seeds: Integers) -> Singles:
            self._store(features, trees)
            leaves = self._leaves(X)  # (n, trees)
            self._set_members(leaves, weight, seeds)
            return self._means(leaves)

        trial = seeds[: 2 * _TRIAL]
        groups = slice(0, _TRIAL), slice(_TRIAL, 2 * _TRIAL)
        trees, single = (grow(leaf, trial) for leaf in _LEAVES)
        errors = [
            self._squared_errors(
                *(held_out(some[group], trial[group])[:, :grown] for group in groups)
            )
            for some in (trees, single)
        ]
        gain = (errors[0] - errors[1])[np.isfinite(errors[0] + errors[1])]
        # Leaves of one row where the error surely falls, as it does if rows are nearly repeated.
        leaf = _LEAVES[0]
        if gain.sum() > 3.0 * np.sqrt((gain**2).sum()):
            leaf, trees = _LEAVES[1], single
        half: Singles | None = None
        for end in (*range(_FEW // 2, _TREES, _FEW // 2), _TREES):
            trees += grow(leaf, seeds[len(trees) : end])
            tick(end / _TREES)
            if enough is not None and end in (_FEW // 2, _FEW):
                whole = self._logits(held_out(trees, seeds[:end]))
                if half is not None and enough(half[:, :grown], whole[:, :grown]):
                    return whole
                half = whole
        return self._logits(held_out(trees, seeds))

    def predict(self, X: Any) -> Singles:
        """Return the logits (n, m) of all trees."""
        means = self._means(self._leaves(X))
        if self.observed is not None:  # a label may be known in no row of the leaves
            means = np.where(np.isnan(means), self.frequency, means)
        return self._logits(means)

    def _logits(self, means: npt.NDArray[Any]) -> Singles:
        p = (1.0 - _FREQUENCY) * means.astype(np.float64) + _FREQUENCY * self.frequency
        return np.asarray(logit(np.clip(p, _EDGE, 1.0 - _EDGE)), dtype=np.float32)

    def _used(self, X: Any) -> Any:
        """Return the features that are used, in single precision."""
        with np.errstate(over="ignore"):  # new rows may be far larger than those of `fit`
            return (X if self.columns is None else X[:, self.columns]).astype(np.float32)

    def _store(self, features: BinnedFeatures, trees: list[_Tree]) -> None:
        """Keep the trees as arrays, which can be saved and loaded without running code."""
        sizes = np.array([tree.links.shape[1] for tree in trees])
        self.root = np.cumsum(sizes) - sizes
        links = np.concatenate([tree.links for tree in trees], axis=1)
        links[:2][links[:2] >= 0] += np.repeat(self.root, sizes)[np.nonzero(links[:2] >= 0)[1]]
        self.left, self.right, self.feature = links
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

    def _set_members(self, leaves: npt.NDArray[np.int32], weight: Floats, seeds: Integers) -> None:
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
            y = self.labels[rows, : one.shape[1]].toarray()
            products = (y - one[rows]) * (y - other[rows])
            if self.observed is not None:
                products *= self.observed[rows, : one.shape[1]].toarray()
            errors[rows] = products.sum(axis=1)
        return errors

    def _means(self, leaves: npt.NDArray[np.int32]) -> Singles:
        """Return the means (n, m) of the labels over the leaves of each row, but those of -1."""
        means = np.empty((len(leaves), self.labels.shape[1]), dtype=np.float32)
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
            values = (W @ self.labels).toarray()
            with np.errstate(invalid="ignore"):
                means[block] = values / total  # NaN where no training row is known
        return means


def _bootstrap(n: int, seed: int) -> Integers:
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
