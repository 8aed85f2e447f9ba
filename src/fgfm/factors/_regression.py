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
measure the factor.

One singular value decomposition of the features serves the ridge regressions of all labels and
all penalties. With left singular vectors U and shrinkage factors :math:`s^2 / (s^2 + c)`, the
leverages are :math:`h_i = 1/n + \sum_k u_{ik}^2 s_k^2 / (s_k^2 + c)`, and the leave-one-out
residual of row i is the ordinary one divided by :math:`1 - h_i`, exactly (Allen, 1974). Logistic
regressions use the same formula in the last step of Newton's method (Rahnama Rad and Maleki,
2020).

References
----------
Allen, D. M. (1974). The Relationship Between Variable Selection and Data Augmentation and a Method
for Prediction. Technometrics 16(1).

Joly, A., Geurts, P. and Wehenkel, L. (2014). Random Forests with Random Projections of the Output
Space for High Dimensional Multi-label Classification. ECML PKDD 2014.

Rahnama Rad, K. and Maleki, A. (2020). A Scalable Estimate of the Out-of-Sample Prediction Error
via Approximate Leave-One-Out Cross-Validation. Journal of the Royal Statistical Society B 82(4).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse
from scipy.special import expit
from sklearn.utils.parallel import delayed

from fgfm._utils.left_out import left_out_residuals
from fgfm._utils.parallel import one_blas_thread, run_jobs
from fgfm.factors._newton import newton

Floats = npt.NDArray[np.float64]

_N_TREES = 100
_MIN_LEAF = 3  # small, since bias costs more than variance
_N_TARGETS = 32  # random combinations of labels that trees are grown for
_N_NOISE = 64  # 2016 pairs of noise columns measure the inflation up to 3 percent
_MAX_LINEAR = 1000  # with more rows and features, ridge regression uses leading components only
_N_COMPONENTS = 500  # number of these components
_PENALTIES = 10.0 ** np.arange(-1, 6)
_LOGISTIC_PENALTIES = np.array([1.0, 0.1, 0.01])  # relative to that of the ridge regression
_MAX_LOGISTIC = 20_000_000_000  # rows x squared features x labels, for full logistic regressions
_NEWTON_STEPS = 12
_MOST_LEVERAGE = 1.0 - 1e-6  # of a row that is left out
_MAX_LEVERAGE = 0.1  # linear predictors with a larger mean leverage follow single rows
_N_INDEX = 5  # principal components of linear predictors


def regress_labels(
    X: Any, Y: Floats, rng: np.random.Generator, n_jobs: int | None
) -> tuple[Floats, float]:
    """Return residuals (n, m) of labels, in which no row takes part in its own prediction.

    The second value is the variance of a sum of products of residuals, over that of its terms.

    The features are finite, standardised or scaled: trees read them in single precision.
    """
    n, m = Y.shape
    noise = rng.choice([-1.0, 1.0], (n, _N_NOISE))
    R = np.hstack([Y, noise])  # (n, m + noise)
    U, s = _feature_basis(X, rng)
    R, penalties = _ridge_residuals(U, s, R, m)
    R, index = _logistic_residuals(U, s, Y, noise, R, penalties, n_jobs)
    R = _forest_residuals(_append_columns(X, index), R, m, rng, n_jobs)
    # var(sum_i r_i r'_i) / sum_i var(r_i r'_i) for independent columns r and r' of noise
    r = R[:, m:]
    r = r / np.maximum(r.std(axis=0), np.finfo(float).tiny)
    pairs = np.triu_indices(_N_NOISE, 1)
    inflation = np.mean((r.T @ r)[pairs] ** 2) / np.mean(((r * r).T @ (r * r))[pairs])
    return np.ascontiguousarray(R[:, :m]), max(1.0, float(inflation))


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


# Ridge and logistic regressions with leave-one-out residuals


def combine_columns(Z: Any, limit: int, rng: np.random.Generator) -> Floats:
    """Return the columns as a dense array, or `limit` random signed sums if there are more."""
    if Z.shape[1] <= limit:
        return np.asarray(Z.toarray() if sparse.issparse(Z) else Z)
    signs = rng.choice([-1.0, 1.0], (Z.shape[1], limit))
    return np.asarray(Z @ signs)


def standardise(X: Any) -> Any:
    """Scale columns to variance 1, and centre them if they are dense.

    Constant columns become 0, where a column counts as constant if it varies by no more than
    rounding.
    """
    X = scale(X)
    if sparse.issparse(X):
        mean = X.mean(axis=0)
        spread = np.sqrt(np.maximum(X.multiply(X).mean(axis=0) - mean**2, 0.0))
        # The difference of squares above loses half of the digits.
        return X @ sparse.diags_array(_inverse(spread, 1e-7))
    X = X - X.mean(axis=0)
    return X * _inverse(np.sqrt((X**2).mean(axis=0)), 1e-15)


def scale(X: Any) -> Any:
    """Divide each column by its largest absolute value, so that squares cannot overflow."""
    if sparse.issparse(X):
        X = sparse.csc_array(X, dtype=np.float64, copy=True)
        top = np.asarray(abs(X).max(axis=0).toarray()).reshape(-1)
        X.data /= np.repeat(top, np.diff(X.indptr)) + (X.data == 0.0)
        return sparse.csr_array(X)
    X = np.asarray(X, dtype=np.float64)
    top = np.abs(X).max(axis=0, initial=0.0)
    return X / np.where(top > 0.0, top, 1.0)


def _inverse(spread: Floats, smallest: float) -> Floats:
    """Return 1 / spread, and 0 where the spread is at most `smallest`."""
    varies = spread > smallest
    return np.where(varies, 1.0 / np.where(varies, spread, 1.0), 0.0)


def _feature_basis(X: Any, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return left singular vectors (n, r) and values (r,) of the standardised, centred features.

    If rows and features are many, those of leading components. Wide sparse features are never
    densified: the Gram matrix of the rows has the same left singular vectors.
    """
    F = standardise(X)
    n, d = F.shape
    if min(n, d) > _MAX_LINEAR:
        from sklearn.decomposition import TruncatedSVD  # slow to import, and needed here only

        reduce = TruncatedSVD(_N_COMPONENTS, random_state=int(rng.integers(2**31)))
        F = np.asarray(reduce.fit_transform(F))
    elif sparse.issparse(F) and d > n:
        G = (F @ F.T).toarray()  # (n, n)
        G -= G.mean(axis=0)  # centring the columns of F centres rows and columns of F F^T
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
    """Return leave-one-out residuals (n, m + k) of ridge regressions, and the penalties (m,).

    U and s are those of `_feature_basis`. The columns of A are m labels, then k columns of noise,
    which take the penalties of the labels in turn. The penalty of a label is that with the
    smallest sum of squared residuals.
    """
    A = A - A.mean(axis=0)
    inner, squares, of_mean = U.T @ A, U * U, 1.0 / len(U)

    def residuals(penalty: float, columns: Any) -> Floats:
        own = A[:, columns], inner[:, columns]
        return left_out_residuals(U, squares, s**2, of_mean, *own, penalty, _MOST_LEVERAGE)

    labels = slice(0, m)
    losses = np.array([np.sum(residuals(c, labels) ** 2, axis=0) for c in _PENALTIES])
    best = np.argmin(losses, axis=0)[np.arange(A.shape[1]) % m]
    R = np.empty_like(A)
    for k in np.unique(best):
        columns = np.flatnonzero(best == k)
        R[:, columns] = residuals(_PENALTIES[k], columns)
    return R, _PENALTIES[best[:m]]


class _Logistic(NamedTuple):
    """A penalised logistic regression with approximate leave-one-out residuals."""

    coefficients: Floats  # (1 + r,), the intercept first
    predictor: Floats  # (n,), linear predictor of the fit to all rows
    residuals: Floats  # (n,), leave-one-out residuals of the label
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
    """Replace ridge by logistic regression for the labels that it predicts better.

    If the features are few, a logistic regression on all of them; otherwise a logistic curve with
    two parameters through the leave-one-out predictions of the ridge regression.

    R holds the residuals (n, m + k) of the ridge regressions of labels Y and noise (random signs,
    assigned to the labels in turn). Returns those with the smaller sum of squares, and the leading
    principal components (n, q) of the linear predictors, q <= 5, without predictors that follow
    single rows.
    """
    n, r = U.shape
    m = Y.shape[1]
    full = n * (r + 1) ** 2 * m <= _MAX_LOGISTIC
    design = U * s
    tasks = []
    for i, y in enumerate(Y.T):
        if full:
            # Near the optimum, logistic loss is squared loss weighted by p (1 - p) = var(y).
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
    predictors = []
    for i, model in enumerate(models):
        if full and model.leverage <= _MAX_LEVERAGE:
            predictors.append(model.predictor)
        if np.sum(model.residuals**2) < np.sum(R[:, i] ** 2):
            R[:, i] = model.residuals
            if full:
                R[:, m + i :: m] = model.noise
    return R, _principal_components(predictors, n)


def _best_logistic(Z: Floats, own: tuple[Floats, Floats], penalties: Floats) -> _Logistic:
    """Fit with each penalty, the largest first, and return the fit with the smallest error.

    The label and its noise come as one tuple, which joblib sends with the job; `Z` is an argument
    by itself, which it sends once.
    """
    y, noise = own
    start = np.zeros(Z.shape[1] + 1)
    start[0] = np.log(y.sum() / (len(y) - y.sum()))
    models = []
    with one_blas_thread:  # in a worker process, too
        for penalty in penalties:
            models.append(_fit_logistic(Z, y, noise, penalty, start))
            start = models[-1].coefficients
    return min(models, key=lambda model: float(np.sum(model.residuals**2)))


def _fit_logistic(Z: Floats, y: Floats, noise: Floats, penalty: float, start: Floats) -> _Logistic:
    """Fit by Newton's method, and approximate leave-one-out residuals by one step of it.

    The step is linear in the label, so that noise can be propagated the same way.
    """
    D = np.column_stack([np.ones(len(y)), Z])  # (n, 1 + r)
    ridge = np.full(D.shape[1], penalty)
    ridge[0] = 1e-8  # the intercept is free

    def loss(coefficients: Floats) -> float:
        eta = D @ coefficients
        return float(np.sum(np.logaddexp(0.0, eta) - y * eta) + ridge @ coefficients**2 / 2.0)

    def curvature(coefficients: Floats) -> tuple[Floats, Floats, Any]:
        p = expit(D @ coefficients)
        w = np.maximum(p * (1.0 - p), 1e-10)
        return p, w, linalg.cho_factor((D.T * w) @ D + np.diag(ridge), lower=True)

    def direction(coefficients: Floats) -> Floats:
        p, _, hessian = curvature(coefficients)
        return np.asarray(linalg.cho_solve(hessian, D.T @ (y - p) - ridge * coefficients))

    coefficients = newton(loss, direction, start, steps=_NEWTON_STEPS, tolerance=1e-6)
    p, w, hessian = curvature(coefficients)
    eta = D @ coefficients
    # With H = L L^T and columns L^-1 d_i: spread_i = d_i^T H^-1 d_i, leverage_i = w_i spread_i,
    # and the linear predictor without row i is about eta_i - spread_i (y_i - p_i) / left_i.
    half = linalg.solve_triangular(hessian[0], D.T, lower=True)  # (1 + r, n)
    spread = np.sum(half * half, axis=0)  # (n,)
    left = np.maximum(1.0 - w * spread, 1e-6)
    e = np.sqrt(w)[:, None] * noise  # (n, k), with the variance w of the label
    e = (e - w[:, None] * (half.T @ (half @ e))) / left[:, None]
    return _Logistic(
        coefficients, eta, y - expit(eta - spread * (y - p) / left), e, 1.0 - left.mean()
    )


def _principal_components(columns: list[Floats], n: int) -> Floats:
    """Return the leading principal components of standardised columns, at most `_N_INDEX`."""
    if not columns:
        return np.empty((n, 0))
    C = np.column_stack(columns)
    C -= C.mean(axis=0)
    C /= np.maximum(C.std(axis=0), 1e-12)
    _, V = linalg.eigh(C.T @ C)
    return np.asarray(C @ V[:, ::-1][:, :_N_INDEX])
