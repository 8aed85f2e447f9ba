r"""The default regression of all labels on the features: ridge, then a forest on what is left.

Wanted are residuals :math:`R = Y - \hat p(X)` in which no label's own row takes part in its
prediction. What makes false edges is the *bias* of the regression, for it is shared by all labels;
its variance is not. So methods with different biases follow each other: ridge regression (linear
effects, also of many features) with exact leave-one-out predictions and one penalty per label,
bent to a logistic regression where that predicts better, then a random forest on the residuals
(steps, curves, interactions) with predictions by the trees that did not see the row. One
decomposition and one forest serve all labels: trees are grown for a few random combinations of
the labels (Joly, Geurts and Wehenkel, 2014), and their leaves average every label.

Trees approach a function of a sum of features only slowly, and labels that share the sum share
what they miss. So the trees may also cut along the fitted linear predictors. These are fits with
all rows, functions of x alone: leave-one-out ones would differ between rows with equal features
by what their labels are.

The steps are linear in Y for given trees and weights, so noise goes through them as labels do.
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
from scipy.special import expit
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import RandomForestRegressor
from sklearn.utils.parallel import delayed

from fgfm._utils.parallel import one_blas_thread, run_jobs

__all__ = ["Smooth", "combine_columns", "scale", "smooth", "standardise"]

Floats = npt.NDArray[np.float64]

N_TREES = 100
_MIN_LEAF = 3  # small: bias costs more than variance
_N_TARGETS = 32  # combinations of labels that trees are grown for
_N_NOISE = 64  # 2016 pairs of noise columns: the inflation is known to 3 percent
_MAX_LINEAR = 1000  # features that ridge regression takes as they are
_N_COMPONENTS = 500  # and to which it reduces more of them
_PENALTIES = 10.0 ** np.arange(-1, 6)
_LOGISTIC_PENALTIES = np.array([1.0, 0.1, 0.01])  # times that of the linear regression
_MAX_LOGISTIC = 20_000_000_000  # rows, squared features and labels of logistic regressions
_NEWTON_STEPS = 12
_MAX_LEVERAGE = 0.1  # mean weight of rows in their own fit from which trees do not get to see it
_N_INDEX = 5  # columns of fitted linear predictors for the trees


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
        Features, finite, standardised or scaled: trees read them in single precision.
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
    U, s = _basis(X, rng)
    R, penalties = _ridge_residuals(U, s, R, m)
    R, index = _logistic_residuals(U, s, Y, noise, R, penalties, n_jobs)
    tick()
    R = _forest_residuals(_with_index(X, index), R, m, rng, n_jobs)
    tick()
    r = R[:, m:]
    r = r / np.maximum(r.std(axis=0), np.finfo(float).tiny)
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
    """Give columns of variance 1, centred where they are dense; constant ones become 0.

    What varies by no more than rounding is constant. Gaps (NaN) remain.
    """
    X = scale(X)
    if sparse.issparse(X):
        mean = X.mean(axis=0)
        spread = np.sqrt(np.maximum(X.multiply(X).mean(axis=0) - mean**2, 0.0))
        return X @ sparse.diags_array(_inverse(spread, 1e-7))
    known = ~np.isnan(X)
    count = np.maximum(known.sum(axis=0), 1)
    X = X - np.where(known, X, 0.0).sum(axis=0) / count
    spread = np.sqrt((np.where(known, X, 0.0) ** 2).sum(axis=0) / count)
    return X * _inverse(spread, 1e-15)


def scale(X: Any) -> Any:
    """Divide each column by its largest absolute value, which no number overflows."""
    if sparse.issparse(X):
        X = sparse.csc_array(X, dtype=np.float64, copy=True)
        top = np.asarray(abs(X).max(axis=0).toarray()).reshape(-1)
        X.data /= np.repeat(top, np.diff(X.indptr)) + (X.data == 0.0)
        return sparse.csr_array(X)
    X = np.asarray(X, dtype=np.float64)
    top = np.fmax.reduce(np.abs(X), axis=0, initial=0.0)
    return X / np.where(top > 0.0, top, 1.0)


def _inverse(spread: Floats, least: float) -> Floats:
    known = spread > least
    return np.where(known, 1.0 / np.where(known, spread, 1.0), 0.0)


def _basis(X: Any, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Give the left singular vectors of standardised features, and the singular values.

    Where rows and features are many, of leading components. Wide sparse features never become
    dense: the inner products of their rows tell the same.
    """
    F = standardise(X)
    n, d = F.shape
    if min(n, d) > _MAX_LINEAR:
        reduce = TruncatedSVD(_N_COMPONENTS, random_state=int(rng.integers(2**31)))
        F = np.asarray(reduce.fit_transform(F))
    elif sparse.issparse(F) and d > n:
        G = (F @ F.T).toarray()  # (n, n)
        G -= G.mean(axis=0)
        G -= G.mean(axis=1, keepdims=True)
        s2, U = linalg.eigh(G)
        s2, U = s2[::-1], U[:, ::-1]
        rank = int(np.sum(s2 > 1e-12 * max(1.0, s2.max(initial=0.0))))
        return np.ascontiguousarray(U[:, :rank]), np.sqrt(s2[:rank])
    F = np.asarray(F.toarray() if sparse.issparse(F) else F)
    U, s, _ = linalg.svd(F - F.mean(axis=0), full_matrices=False)  # (n, r), (r,)
    rank = int(np.sum(s > 1e-10 * max(1.0, s.max(initial=0.0))))
    return U[:, :rank], s[:rank]


def _ridge_residuals(U: Floats, s: Floats, A: Floats, m: int) -> tuple[Floats, Floats]:
    """Give leave-one-out residuals of ridge regressions, and the penalty of each label, its best.

    The columns of noise after the m labels take the penalties of the labels in turn.
    """
    n = len(U)
    s2 = s**2
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
    R = np.empty_like(A)
    for at in np.unique(best):
        columns = np.flatnonzero(best == at)
        R[:, columns] = residuals(_PENALTIES[at], columns)
    return R, _PENALTIES[best[:m]]


class _Logistic(NamedTuple):
    """A penalised logistic regression, and what it makes of rows that are left out."""

    coefficients: Floats  # (1 + r,), the intercept first
    predictor: Floats  # (n,), linear, with all rows
    residuals: Floats  # (n,), of the label, each row predicted without it
    noise: Floats  # (n, k), residuals of noise with the variance of the label
    leverage: float  # mean over rows


def _logistic_residuals(
    U: Floats,
    s: Floats,
    Y: Floats,
    noise: Floats,
    R: Floats,
    penalties: Floats,
    n_jobs: int | None,
) -> tuple[Floats, Floats]:
    """Bend the link of the ridge regressions where that predicts better.

    Where the features are few, a logistic regression takes the place of the linear one; else a
    logistic curve of two parameters is laid through its leave-one-out predictions.

    Parameters
    ----------
    U, s : ndarray of shape (n, r) and (r,)
        Left singular vectors of the centred features, and singular values.
    Y : ndarray of shape (n, m)
        Labels.
    noise : ndarray of shape (n, k)
        Signs at random, which go with the labels in turn.
    R : ndarray of shape (n, m + k)
        Residuals of labels and noise by ridge regression.
    penalties : ndarray of shape (m,)
        The penalties of these.
    n_jobs : int, optional
        Number of threads.

    Returns
    -------
    residuals : ndarray of shape (n, m + k)
        Those with the smaller sum of squares.
    index : ndarray of shape (n, k)
        Linear predictors of the labels; none of those that follow single rows.
    """
    n, r = U.shape
    m = Y.shape[1]
    full = n * (r + 1) ** 2 * m <= _MAX_LOGISTIC
    design = U * s
    tasks = []
    for i, y in enumerate(Y.T):
        if full:
            grid = penalties[i] * np.var(y) * _LOGISTIC_PENALTIES
            tasks.append((design, (y, noise[:, i::m]), grid))
        else:
            fitted = y - R[:, i]
            column = (fitted - fitted.mean())[:, None]
            tasks.append((column, (y, noise[:, :0]), _LOGISTIC_PENALTIES))
    with one_blas_thread:
        models = list(
            run_jobs((delayed(_best_logistic)(*task) for task in tasks), n_jobs, "threads")
        )
    R = R.copy()
    columns = []
    for i, model in enumerate(models):
        if full and model.leverage <= _MAX_LEVERAGE:
            columns.append(model.predictor)
        if np.sum(model.residuals**2) < np.sum(R[:, i] ** 2):
            R[:, i] = model.residuals
            if full:
                R[:, m + i :: m] = model.noise
    return R, _leading(columns, n)


def _best_logistic(Z: Floats, own: tuple[Floats, Floats], penalties: Floats) -> _Logistic:
    """Fit with each penalty, from the largest; the best is that with the least squared error.

    The label and its noise are the job's own: in a tuple they travel with it.
    """
    y, noise = own
    start = np.zeros(Z.shape[1] + 1)
    start[0] = np.log(y.sum() / (len(y) - y.sum()))
    models = []
    with one_blas_thread:  # on a worker of its own, too
        for penalty in penalties:
            models.append(_fit_logistic(Z, y, noise, penalty, start))
            start = models[-1].coefficients
    return min(models, key=lambda model: float(np.sum(model.residuals**2)))


def _fit_logistic(Z: Floats, y: Floats, noise: Floats, penalty: float, start: Floats) -> _Logistic:
    """Fit by Newton's method; leave each row out by one step of it.

    To first order the fit is linear in the label, so noise can go the same way.
    """
    D = np.column_stack([np.ones(len(y)), Z])
    shrink = np.full(D.shape[1], penalty)
    shrink[0] = 1e-8  # the intercept is free

    def objective(coefficients: Floats) -> float:
        eta = D @ coefficients
        return float(np.sum(np.logaddexp(0.0, eta) - y * eta) + shrink @ coefficients**2 / 2.0)

    def newton(coefficients: Floats) -> tuple[Floats, Floats, Any]:
        p = expit(D @ coefficients)
        w = np.maximum(p * (1.0 - p), 1e-10)
        return p, w, linalg.cho_factor((D.T * w) @ D + np.diag(shrink), lower=True)

    at, value = start, objective(start)
    for _ in range(_NEWTON_STEPS):
        p, _, hessian = newton(at)
        step = linalg.cho_solve(hessian, D.T @ (y - p) - shrink * at)
        size = 1.0
        while (new := objective(at + size * step)) > value and size > 1e-3:
            size /= 2.0
        gain = value - new
        if gain > 0.0:
            at, value = at + size * step, new
        if gain < 1e-6:
            break
    p, w, hessian = newton(at)
    eta = D @ at
    half = linalg.solve_triangular(hessian[0], D.T, lower=True)  # (1 + r, n)
    spread = np.sum(half * half, axis=0)  # (n,), variance of eta
    left = np.maximum(1.0 - w * spread, 1e-6)
    e = np.sqrt(w)[:, None] * noise
    e = (e - w[:, None] * (half.T @ (half @ e))) / left[:, None]
    return _Logistic(at, eta, y - expit(eta - spread * (y - p) / left), e, 1.0 - left.mean())


def _leading(columns: list[Floats], n: int) -> Floats:
    """Give the leading principal components of columns, at most so many."""
    if not columns:
        return np.empty((n, 0))
    C = np.column_stack(columns)
    C -= C.mean(axis=0)
    C /= np.maximum(C.std(axis=0), 1e-12)
    _, V = linalg.eigh(C.T @ C)
    return np.asarray(C @ V[:, ::-1][:, :_N_INDEX])


def _with_index(X: Any, index: Floats) -> Any:
    """Add columns to the features."""
    if index.shape[1] == 0:
        return X
    return sparse.hstack([X, index], "csr") if sparse.issparse(X) else np.hstack([X, index])


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
