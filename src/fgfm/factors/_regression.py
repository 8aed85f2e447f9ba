r"""Default regression of all labels on the features: ridge or logistic, then a random forest.

It returns residuals :math:`R = Y - \hat p(X)` in which no row takes part in its own prediction.
The *bias* of a regression makes false edges, since all labels share it; its variance does not.
Methods with different biases are therefore chained: linear ridge regression (linear effects, also
of many features) with exact leave-one-out predictions and one penalty per label, replaced by
logistic regression where that predicts better; then a random forest on the residuals (steps,
curves, interactions) with out-of-bag predictions. One decomposition and one forest serve all
labels: trees are grown for a few random combinations of the labels (Joly, Geurts and Wehenkel,
2014), and their leaves average every label.

Trees approximate a function of a sum of features slowly, and labels that depend on the same sum
share the error. The trees may therefore also split on the fitted linear predictors. These are fits
to all rows, hence functions of x alone: leave-one-out predictors would differ between rows with
equal features but different labels.

For given trees and weights all steps are linear in Y, so that noise is propagated in the same way
as labels. The prediction of one row uses the labels of others and vice versa, so that sums of
products of residuals vary more than the variances of the products add up to; columns of noise
measure the factor (`RegressionResult.inflation`).

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
from scipy import sparse

from fgfm.factors._leave_one_out import (
    combine_columns,
    feature_basis,
    logistic_residuals,
    ridge_residuals,
)

Floats = npt.NDArray[np.float64]

_N_TREES = 100
_MIN_LEAF = 3  # small, since bias costs more than variance
_N_TARGETS = 32  # random combinations of labels that trees are grown for
_N_NOISE = 64  # 2016 pairs of noise columns measure the inflation up to 3 percent


class RegressionResult(NamedTuple):
    """Residuals of the labels, and the variance of a sum of products over that of its terms."""

    residuals: Floats  # (n, m)
    inflation: float


def regress_labels(
    X: Any,
    Y: Floats,
    rng: np.random.Generator,
    n_jobs: int | None,
    step_done: Callable[[], None],
) -> RegressionResult:
    """Regress labels on features, predicting each row without itself.

    The features are finite, standardised or scaled: trees read them in single precision.
    `step_done` is called after each of the two steps.
    """
    n, m = Y.shape
    noise = rng.choice([-1.0, 1.0], (n, _N_NOISE))
    R = np.hstack([Y, noise])  # (n, m + noise)
    U, s = feature_basis(X, rng)
    R, penalties = ridge_residuals(U, s, R, m)
    R, index = logistic_residuals(U, s, Y, noise, R, penalties, n_jobs)
    step_done()
    R = _forest_residuals(_append_columns(X, index), R, m, rng, n_jobs)
    step_done()
    # var(sum_i r_i r'_i) / sum_i var(r_i r'_i) for independent columns r and r' of noise
    r = R[:, m:]
    r = r / np.maximum(r.std(axis=0), np.finfo(float).tiny)
    pairs = np.triu_indices(_N_NOISE, 1)
    inflation = np.mean((r.T @ r)[pairs] ** 2) / np.mean(((r * r).T @ (r * r))[pairs])
    return RegressionResult(np.ascontiguousarray(R[:, :m]), max(1.0, float(inflation)))


def _append_columns(X: Any, index: Floats) -> Any:
    if index.shape[1] == 0:
        return X
    return sparse.hstack([X, index], "csr") if sparse.issparse(X) else np.hstack([X, index])


def _forest_residuals(
    X: Any, A: Floats, m: int, rng: np.random.Generator, n_jobs: int | None
) -> Floats:
    """Subtract from each column of A its out-of-bag averages over the leaves of a forest."""
    from sklearn.ensemble import RandomForestRegressor  # slow to import, and used by GCM only

    n, d = X.shape
    forest = RandomForestRegressor(
        _N_TREES,
        min_samples_leaf=_MIN_LEAF,
        # All features if they are few: random subsets miss pure interactions.
        max_features=min(d, max(32, d // 8)),
        n_jobs=n_jobs,
        random_state=int(rng.integers(2**31)),
    )
    forest.fit(X, combine_columns(A[:, :m], _N_TARGETS, rng))
    leaves = forest.apply(X)  # (n, trees)
    total = np.zeros_like(A)
    votes = np.zeros(n)
    for tree, drawn in enumerate(forest.estimators_samples_):
        times = np.bincount(drawn, minlength=n)  # how often the bootstrap drew each row
        _, leaf = np.unique(leaves[:, tree], return_inverse=True)
        member = sparse.csr_array((times.astype(float), (leaf, np.arange(n))))  # (leaves, n)
        sizes = np.asarray(member.sum(axis=1)).ravel()
        means = (member @ A) / sizes[:, None]  # (leaves, columns)
        out_of_bag = np.flatnonzero(times == 0)
        total[out_of_bag] += means[leaf[out_of_bag]]
        votes[out_of_bag] += 1.0
    return np.asarray(A - total / np.maximum(votes, 1.0)[:, None])
