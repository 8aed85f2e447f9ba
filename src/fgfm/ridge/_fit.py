"""`fit_ridge_logistic`: ridge logistic regressions of many targets on the same features.

This is the base learner of the paper (section 5). Estimating the parameters of F-GFM takes one
choice of a penalty per label and per factor: thousands of small fits on the same rows, which are
computed together.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from fgfm._utils.folds import make_folds
from fgfm._utils.rows import on_all_rows
from fgfm._utils.validation import (
    check_count,
    check_flag,
    check_positive,
    first_index,
    place,
    real_array,
    row_weights,
)
from fgfm.ridge._design import Design
from fgfm.ridge._solver import RidgeFit, RidgeSettings, RidgeTarget, fit_targets

__all__ = ["PENALTIES", "fit_ridge_logistic"]

Floats = npt.NDArray[np.float64]

PENALTIES = np.array([1e-4, 1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3])  # the paper's grid
_LARGEST = 1e60  # magnitude of a feature: products of four must not overflow


def fit_ridge_logistic(
    X: Any,
    targets: Any,
    *,
    extra: Any = None,
    sample_weight: Any = None,
    penalties: Any = None,
    cv: Any = 3,
    penalize_intercept: bool = False,
    reference_class: bool = False,
    max_iter: int = 100,
    tol: float = 1e-5,
    random_state: Any = None,
    n_jobs: int | None = None,
    held_out: bool = False,
) -> list[RidgeFit]:
    """Fit ridge logistic regressions of many targets on the same features.

    Each is that of `RidgeLogistic`, whose notes describe the algorithms. Computations that do not
    depend on the target are done once.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
        Features, validated.
    targets : sequence of T arrays of shape (n,), or array of shape (n, T)
        Classes of each row, of any type that sorts.
    extra : array of shape (n,), or list of T such arrays or None, optional
        A numeric column to append to X: one for all targets, or one per target. Targets with the
        same object share its computations. The two-step estimate appends the number of labels
        this way.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, in the fit and in the log-loss. Weight 0 removes a row.
    penalties, cv, penalize_intercept, reference_class, max_iter, tol, random_state
        As in `RidgeLogistic`; folds of an integer `cv` are the same for all targets.
    n_jobs : int or None, default=None
        Number of threads, or of jobs on the workers of a cluster if joblib is configured so;
        -1 uses all cores. Results do not depend on it.
    held_out : bool, default=False
        Return the probabilities of held-out rows too. This takes no further fit.

    Returns
    -------
    list of RidgeFit
        One model per target.

    Examples
    --------
    >>> import numpy as np
    >>> from fgfm.ridge import fit_ridge_logistic
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (500, 3))
    >>> Y = (rng.random((500, 2)) < 0.2 + 0.6 * X[:, :2]).astype(int)
    >>> s = Y.sum(axis=1)
    >>> first, second, cardinality = fit_ridge_logistic(
    ...     X, [Y[:, 0], Y[:, 1], s], extra=[s, s, None], random_state=0
    ... )
    >>> cardinality.predict_proba(X[:2]).shape
    (2, 3)
    >>> first.predict_proba(X[:1], extra=2).round(2)
    array([[0., 1.]])
    """
    settings = _check_settings(
        penalties, penalize_intercept, reference_class, max_iter, tol, held_out
    )
    X = X.tocsr().astype(np.float64) if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    n = X.shape[0]
    weight = row_weights(sample_weight, n, "X")
    rows = np.flatnonzero(weight > 0.0)
    kept = slice(None) if len(rows) == n else rows
    columns = list(targets.T) if isinstance(targets, np.ndarray) else targets
    extras = extra if isinstance(extra, list) else [extra] * len(columns)
    # targets that share an extra column share its remaining rows, too
    own = {id(e): np.asarray(e, dtype=np.float64)[kept] for e in extras if e is not None}
    _check_magnitude(X.data if sparse.issparse(X) else X, *own.values())
    if len(rows) < n:
        X, weight = X[rows], weight[rows]
    folds_of = make_folds(cv, random_state, X, rows, n)
    encoded = []
    for target, column in zip(columns, extras, strict=True):
        y = np.asarray(target)[kept]
        classes, code = np.unique(y, return_inverse=True)
        encoded.append(RidgeTarget(classes, code, own.get(id(column)), folds_of(y)))
    design = Design(X, weight, centred=not settings.penalize_intercept)
    fits = fit_targets(design, encoded, settings, n_jobs)
    n_failed = sum(fit.n_failed for fit in fits)
    if n_failed:
        warnings.warn(
            f"{n_failed} ridge fits did not converge within max_iter={settings.max_iter}: "
            "increase max_iter, or scale the features",
            ConvergenceWarning,
            stacklevel=3,
        )
    return [
        fit if fit.held_out is None else fit._replace(held_out=on_all_rows(fit.held_out, rows, n))
        for fit in fits
    ]


def _check_magnitude(*arrays: Floats) -> None:
    """Raise if products of four features could overflow."""
    largest = max(float(np.abs(values).max(initial=0.0)) for values in arrays)
    if largest > _LARGEST:
        raise ValueError(
            f"X or extra has a value of magnitude {largest:g}: features must not exceed "
            f"{_LARGEST:g}; scale them"
        )


def _check_settings(
    penalties: Any,
    penalize_intercept: Any,
    reference_class: Any,
    max_iter: Any,
    tol: Any,
    held_out: bool = False,
) -> RidgeSettings:
    """Validate the options of a fit."""
    grid = np.array(
        PENALTIES if penalties is None else real_array(penalties, "penalties", ("penalty",)),
        dtype=np.float64,
    )
    if len(grid) == 0:
        raise ValueError("penalties is empty: it must hold at least one penalty")
    wrong = ~((grid > 0.0) & np.isfinite(grid))
    if wrong.any():
        index = first_index(wrong)
        raise ValueError(
            f"{place('penalties', index)} is {grid[index]!s}: "
            "penalties must be finite and greater than 0"
        )
    return RidgeSettings(
        grid,
        check_flag(penalize_intercept, "penalize_intercept"),
        check_flag(reference_class, "reference_class"),
        check_count(max_iter, "max_iter", 1),
        check_positive(tol, "tol"),
        held_out,
    )
