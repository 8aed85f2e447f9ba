"""Learners of marginal probabilities: ridge, forests, neighbours, boosting and a neural network.

Each function fits on training rows and returns the probabilities of the labels (n, m) for each of
several sets of rows. A label that is constant on the training rows keeps its constant, except in
the network, which models it like the others. Those of `OUT_OF_BAG` return, for the first set of
rows, which are the training rows, predictions of models that have not seen them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

from fgfm.ridge import fit_ridge_logistic

__all__ = ["LEARNERS", "OUT_OF_BAG", "Learner", "TooMuchWorkError"]

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[Any]
Learner = Callable[[Any, Labels, Sequence[Any], int], list[Floats]]

_TREES, _TREES_AT_A_TIME = 200, 20  # trees of many labels are large: few are in memory at a time
_FULL_TREES = 150
_NEIGHBOURS = 10
_MAX_BOOSTING_SECONDS = 400.0  # estimated, on one core
_HIDDEN, _BATCH = 128, 32
_MAX_EPOCHS, _PATIENCE = 500, 10


class TooMuchWorkError(ValueError):
    """The estimated work of a learner exceeds its limit."""


def fit_ridge(X: Any, Y: Labels, rows: Sequence[Any], seed: int) -> list[Floats]:
    """Fit a ridge logistic regression per label, all labels together."""
    fits = fit_ridge_logistic(X, Y, random_state=seed)
    return [
        np.column_stack([_of_class_1(fit.classes, fit.predict_proba(one)) for fit in fits])
        for one in rows
    ]


def fit_forest(X: Any, Y: Labels, rows: Sequence[Any], seed: int) -> list[Floats]:
    """Fit a random forest of all labels."""
    sums = [np.zeros((one.shape[0], Y.shape[1])) for one in rows]
    seeds = np.random.SeedSequence(seed).generate_state(_TREES // _TREES_AT_A_TIME)
    for part in seeds:
        forest = RandomForestClassifier(
            _TREES_AT_A_TIME, min_samples_leaf=2, random_state=int(part)
        ).fit(X, Y)
        for one, total in zip(rows, sums, strict=True):
            probabilities = zip(forest.classes_, forest.predict_proba(one), strict=True)
            total += np.column_stack([_of_class_1(*pair) for pair in probabilities])
    return [total / len(seeds) for total in sums]


def fit_out_of_bag(X: Any, Y: Labels, rows: Sequence[Any], seed: int) -> list[Floats]:
    """Fit a forest of full trees; the training rows are predicted by trees without them."""
    n = len(Y)
    train, test = (one.toarray() if sparse.issparse(one) else one for one in (X, rows[1]))
    varies = np.flatnonzero(Y.any(axis=0) & ~Y.all(axis=0))
    sums = [np.zeros((len(one), len(varies))) for one in (train, test)]
    unseen = np.zeros(n)
    rng = np.random.default_rng(seed)
    for k in range(_FULL_TREES):
        copies = np.bincount(rng.integers(n, size=n), minlength=n)
        tree = DecisionTreeClassifier(max_features="sqrt", random_state=seed + k)
        tree.fit(train, Y[:, varies], sample_weight=copies)
        out = np.flatnonzero(copies == 0)
        unseen[out] += 1.0
        for total, at, one in ((sums[0], out, train[out]), (sums[1], slice(None), test)):
            total[at] += np.stack([p[:, 1] for p in tree.predict_proba(one)], axis=1)
    parts = []
    for total, trees in zip(sums, (unseen[:, None], float(_FULL_TREES)), strict=True):
        p = np.tile(Y[0].astype(np.float64), (len(total), 1))
        p[:, varies] = total / trees
        parts.append(p)
    return parts


def fit_neighbours(X: Any, Y: Labels, rows: Sequence[Any], seed: int) -> list[Floats]:
    """Take the frequency of each label among the nearest training rows."""
    nearest = KNeighborsClassifier(_NEIGHBOURS).fit(X, Y)
    return [Y[nearest.kneighbors(one, return_distance=False)].mean(axis=1) for one in rows]


def fit_boosting(X: Any, Y: Labels, rows: Sequence[Any], seed: int) -> list[Floats]:
    """Fit gradient boosted trees per label."""
    (n, p), m = X.shape, Y.shape[1]
    seconds = _boosting_seconds(n, p, m)
    if seconds > _MAX_BOOSTING_SECONDS:
        raise TooMuchWorkError(
            f"{n} rows, {p} features and {m} labels take about {seconds:.0f} s: the limit is "
            f"{_MAX_BOOSTING_SECONDS:.0f} s"
        )
    X, *rows = [one.toarray() if sparse.issparse(one) else one for one in (X, *rows)]
    probabilities = [np.empty((one.shape[0], Y.shape[1])) for one in rows]
    for k, y in enumerate(Y.T):
        if len(np.unique(y)) == 1:
            for one in probabilities:
                one[:, k] = y[0]
            continue
        model = HistGradientBoostingClassifier(early_stopping=False, random_state=seed).fit(X, y)
        for X_new, one in zip(rows, probabilities, strict=True):
            one[:, k] = model.predict_proba(X_new)[:, 1]
    return probabilities


def fit_network(X: Any, Y: Labels, rows: Sequence[Any], seed: int) -> list[Floats]:
    """Fit a neural network of all labels, stopped early by the log-loss of a tenth of the rows.

    The early stopping of scikit-learn compares whole label sets, which are never all correct if
    there are many labels.
    """
    order = np.random.default_rng(seed).permutation(len(Y))
    held_out, fitted = np.split(order, [max(1, len(Y) // 10)])
    network = MLPClassifier(_HIDDEN, batch_size=_BATCH, random_state=seed)
    best, best_epoch, probabilities = np.inf, 0, []
    for epoch in range(_MAX_EPOCHS):
        network.partial_fit(X[fitted], Y[fitted], classes=np.arange(Y.shape[1]))
        p = network.predict_proba(X[held_out])
        loss = log_loss(Y[held_out].ravel(), p.ravel(), labels=[0, 1])
        if loss < best:
            best, best_epoch = loss, epoch
            probabilities = [network.predict_proba(one) for one in rows]
        elif epoch - best_epoch >= _PATIENCE:
            break
    return probabilities


LEARNERS: dict[str, Learner] = {
    "ridge": fit_ridge,
    "forest": fit_forest,
    "boosting": fit_boosting,
    "mlp": fit_network,
    "out-of-bag": fit_out_of_bag,
    "neighbours": fit_neighbours,
}
OUT_OF_BAG = frozenset({"out-of-bag"})


def _of_class_1(classes: Labels, probabilities: Floats) -> Floats:
    """Return the column of class 1, or zeros if there is none."""
    found = np.flatnonzero(np.asarray(classes) == 1)
    return probabilities[:, found[0]] if len(found) else np.zeros(len(probabilities))


def _boosting_seconds(n: int, p: int, m: int) -> float:
    """Estimate the time of 100 trees per label: scans of rows, and histograms of 31 leaves."""
    return m * p * (6e-7 * n + 2e-3)
