r"""The default regression of all labels on the features: ridge, then a forest on what is left.

Wanted are residuals :math:`R = Y - \hat p(X)` in which no label's own row takes part in its
prediction. What makes false edges is the *bias* of the regression, for it is shared by all labels;
its variance is not. So two methods with different biases follow each other: ridge regression
(linear effects, also of many features) with exact leave-one-out predictions and one penalty per
label, then a random forest on its residuals (steps, curves, interactions) with predictions by the
trees that did not see the row. One decomposition and one forest serve all labels: trees are grown
for a few random combinations of the labels (Joly, Geurts and Wehenkel, 2014), and their leaves
average every label.

Both steps are linear in Y for given trees, so noise goes through them as labels do.
Predictions of one row use the labels of others and the other way round, which makes sums of
products of residuals vary more than the products tell; how much is measured on columns of noise
(`Smooth.inflation`).

References
----------
Joly, A., Geurts, P. and Wehenkel, L. (2014). Random Forests with Random Projections of the Output
Space for High Dimensional Multi-label Classification. ECML PKDD 2014.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import RandomForestRegressor

__all__ = ["Smooth", "combine_columns", "smooth", "standardise"]

Floats = npt.NDArray[np.float64]

N_TREES = 100
_MIN_LEAF = 3  # small: bias costs more than variance
_N_TARGETS = 32  # combinations of labels that trees are grown for
_N_NOISE = 64  # 2016 pairs of noise columns: the inflation is known to 3 percent
_MAX_LINEAR = 1000  # features that ridge regression takes as they are
_N_COMPONENTS = 500  # and to which it reduces more of them
_PENALTIES = 10.0 ** np.arange(-1, 6)


class Smooth(NamedTuple):
    """Residuals of the labels, and the variance of a sum of products over that of its terms."""

    residuals: Floats  # (n, m)
    inflation: float


def smooth(
    X: Any, Y: Floats, rng: np.random.Generator, n_jobs: int | None, tick: Callable[[], None]
) -> Smooth:
    """Regress labels on features, each row predicted without itself.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, d)
        Features, finite.
    Y : ndarray of shape (n, m)
        Labels.
    rng : numpy.random.Generator
        The source of all randomness.
    n_jobs : int, optional
        Number of threads that grow trees. The answer does not depend on it.
    tick : callable
        Called after each of the two steps.

    Returns
    -------
    Smooth
        The residuals of the labels.
    """
    n, m = Y.shape
    noise = rng.choice([-1.0, 1.0], (n, _N_NOISE))
    R = np.hstack([Y, noise])  # (n, m + noise)
    R = _ridge_residuals(_linear_features(X, rng), R, m)
    tick()
    R = _forest_residuals(X, R, m, rng, n_jobs)
    tick()
    r = R[:, m:]
    pairs = np.triu_indices(_N_NOISE, 1)
    inflation = np.mean((r.T @ r)[pairs] ** 2) / np.mean(((r * r).T @ (r * r))[pairs])
    return Smooth(np.ascontiguousarray(R[:, :m]), max(1.0, float(inflation)))


def combine_columns(Z: Any, limit: int, rng: np.random.Generator) -> Floats:
    """Give at most so many columns: random signed sums where there are more."""
    if Z.shape[1] <= limit:
        return np.asarray(Z.toarray() if sparse.issparse(Z) else Z)
    signs = rng.choice([-1.0, 1.0], (Z.shape[1], limit))
    return np.asarray(Z @ signs)


def standardise(X: Any) -> Any:
    """Give columns of variance 1, centred where they are dense; constant ones become 0."""
    if sparse.issparse(X):
        X = sparse.csc_array(X, dtype=np.float64)
        mean = X.mean(axis=0)
        spread = np.sqrt(np.maximum(X.multiply(X).mean(axis=0) - mean**2, 0.0))
        return X @ sparse.diags_array(_inverse(spread))
    X = np.asarray(X, dtype=np.float64)
    X = X - X.mean(axis=0)
    return X * _inverse(X.std(axis=0))


def _inverse(spread: Floats) -> Floats:
    known = spread > 1e-12
    return np.where(known, 1.0 / np.where(known, spread, 1.0), 0.0)


def _linear_features(X: Any, rng: np.random.Generator) -> Floats:
    """Give standardised features, dense; leading components where there are too many."""
    F = standardise(X)
    if min(F.shape) > _MAX_LINEAR:
        reduce = TruncatedSVD(_N_COMPONENTS, random_state=int(rng.integers(2**31)))
        return np.asarray(reduce.fit_transform(F))
    return np.asarray(F.toarray() if sparse.issparse(F) else F)


def _ridge_residuals(F: Floats, A: Floats, m: int) -> Floats:
    """Give leave-one-out residuals of ridge regressions, the penalty of each label its best.

    The columns of noise after the m labels take the penalties of the labels in turn.
    """
    n = len(F)
    U, s, _ = linalg.svd(F - F.mean(axis=0), full_matrices=False)  # (n, r), (r,)
    U = U[:, s > 1e-10 * max(1.0, s.max(initial=0.0))]
    s2 = s[: U.shape[1]] ** 2
    A = A - A.mean(axis=0)
    inner = U.T @ A  # (r, columns)

    def residuals(penalty: float, columns: Any) -> Floats:
        shrink = s2 / (s2 + penalty)
        leverage = 1.0 / n + (U * U) @ shrink  # (n,)
        fitted = U @ (shrink[:, None] * inner[:, columns])
        return np.asarray((A[:, columns] - fitted) / np.maximum(1.0 - leverage, 1e-6)[:, None])

    labels = slice(0, m)
    losses = np.array([np.sum(residuals(c, labels) ** 2, axis=0) for c in _PENALTIES])
    best = np.argmin(losses, axis=0)[np.arange(A.shape[1]) % m]
    best[:m] = np.argmin(losses, axis=0)
    R = np.empty_like(A)
    for at in np.unique(best):
        columns = np.flatnonzero(best == at)
        R[:, columns] = residuals(_PENALTIES[at], columns)
    return R


def _forest_residuals(
    X: Any, A: Floats, m: int, rng: np.random.Generator, n_jobs: int | None
) -> Floats:
    """Subtract from each column its out-of-bag averages over the leaves of a forest."""
    n, d = X.shape
    forest = RandomForestRegressor(
        N_TREES,
        min_samples_leaf=_MIN_LEAF,
        # All features where they are few: pure interactions are found by no subset of them.
        max_features=min(d, max(32, d // 8)),
        n_jobs=n_jobs,
        random_state=int(rng.integers(2**31)),
    )
    forest.fit(X, combine_columns(A[:, :m], _N_TARGETS, rng))
    leaves = forest.apply(X)  # (n, trees)
    total = np.zeros_like(A)
    votes = np.zeros(n)
    for tree, drawn in enumerate(forest.estimators_samples_):
        times = np.bincount(drawn, minlength=n)
        _, leaf = np.unique(leaves[:, tree], return_inverse=True)
        member = sparse.csr_array((times.astype(float), (leaf, np.arange(n))))
        sizes = np.asarray(member.sum(axis=1)).ravel()
        means = (member @ A) / sizes[:, None]  # (leaves, columns)
        unseen = np.flatnonzero(times == 0)
        total[unseen] += means[leaf[unseen]]
        votes[unseen] += 1.0
    return np.asarray(A - total / np.maximum(votes, 1.0)[:, None])
