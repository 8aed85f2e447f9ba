r"""`fit_ridge_logistic`: ridge logistic regressions of many targets on the same features.

This is the base learner of the paper (section 5). Estimating the parameters of F-GFM takes one
choice of a penalty per label and per factor: thousands of small fits on the same rows, which are
computed together.
"""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets

from fgfm._utils.folds import make_folds
from fgfm._utils.rows import on_all_rows
from fgfm._utils.validation import (
    check_flag,
    check_same_rows,
    first_index,
    place,
    real_array,
    row_weights,
)
from fgfm.ridge._design import Design
from fgfm.ridge._solver import RidgeSettings, RidgeTarget, fit_targets

__all__ = [
    "RidgeFit",
    "check_settings",
    "fit_checked_targets",
    "fit_ridge_logistic",
    "softmax_probabilities",
]

Floats = npt.NDArray[np.float64]

_PENALTIES = 10.0 ** np.arange(-4, 4)  # the paper's grid
_LARGEST = 1e60  # magnitude of a feature: products of four must not overflow


class RidgeFit(NamedTuple):
    """The fitted model of one target, as returned by `fit_ridge_logistic`.

    Attributes
    ----------
    classes : ndarray of shape (K,)
        The classes, sorted.
    coef : ndarray of shape (1, p) or (K, p)
        Weights: of the second class against the first if K = 2, of every class if K > 2. Those of
        an extra column come last.
    intercept : ndarray of shape (1,) or (K,)
        Intercepts.
    penalty : float
        The chosen penalty.
    cv_losses : ndarray of shape (folds, L)
        Mean log-loss on the test rows of each fold for each penalty of the grid; inf for
        penalties that were not tried (see `fit_ridge_logistic`).
    n_iter : int
        Largest number of iterations of a fit.
    held_out : ndarray of shape (n, K) or None
        With ``held_out=True``: the probabilities of each row from the fit of the fold that held it
        out, with the chosen penalty; NaN for rows in no test fold.
    """

    classes: npt.NDArray[Any]
    coef: Floats
    intercept: Floats
    penalty: float
    cv_losses: Floats
    n_iter: int
    held_out: Floats | None = None

    def logits(self, X: Any, extra: Any = None) -> Floats:
        """Compute ``X @ coef.T + intercept``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Features, without the extra column.
        extra : float or array-like of shape (n,), optional
            Values of the extra column, if the model has one.

        Returns
        -------
        ndarray of shape (n, 1) or (n, K)
            One logit if there are at most two classes, else one per class.
        """
        if not sparse.issparse(X):
            X = np.asarray(X)
        p = self.coef.shape[1] - (extra is not None)
        if X.ndim != 2 or X.shape[1] != p:
            having = "without" if extra is None else "with"
            raise ValueError(
                f"X has shape {X.shape}: for a model of {self.coef.shape[1]} weights, {having} "
                f"an extra column, it must have 2 dimensions and {p} columns"
            )
        logits = np.asarray(X @ self.coef[:, :p].T + self.intercept)
        if extra is not None:
            logits += np.multiply.outer(np.asarray(extra, dtype=np.float64), self.coef[:, -1])
        return logits

    def predict_proba(self, X: Any, extra: Any = None) -> Floats:
        """Predict the probability of each class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Features, without the extra column.
        extra : float or array-like of shape (n,), optional
            Values of the extra column, if the model has one.

        Returns
        -------
        ndarray of shape (n, K)
            Probabilities; rows sum to 1.
        """
        return softmax_probabilities(self.logits(X, extra), len(self.classes))


def softmax_probabilities(logits: Floats, n_classes: int) -> Floats:
    """Return the probabilities (n, K) of logits (n, 1) or (n, K)."""
    if n_classes == 1:
        return np.ones((len(logits), 1))
    if n_classes == 2:
        return np.column_stack([expit(-logits[:, 0]), expit(logits[:, 0])])
    return np.asarray(softmax(logits, axis=1))


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
    progress: Callable[[int], object] | None = None,
) -> list[RidgeFit]:
    r"""Fit ridge-penalised logistic regressions of many targets on the same features.

    For each target, with K classes and weights W, minimise

    .. math::

        - \sum_i w_i \log p(y_i \mid x_i) + \lambda \sum_{kj} W_{kj}^2

    on the training rows of each fold, for each penalty :math:`\lambda`; take the penalty with the
    least log-loss on test rows, averaged over folds; and minimise the objective on all rows.
    Computations that do not depend on the target are done once. A large model (see Notes) tries
    no smaller penalties once that loss has fallen and then exceeds its least by 5 %.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, p)
        Features.
    targets : sequence of T array-likes of shape (n,), or array of shape (n, T)
        Classes of each row, of any type that sorts.
    extra : array-like of shape (n,), or sequence of T such arrays or None, optional
        A numeric column to append to X: one for all targets, or one per target. Targets with the
        same object share its computations. The two-step estimate appends the number of labels
        this way.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, in the fit and in the log-loss. Weight 0 removes a row.
    penalties : array-like of shape (L,), optional
        The grid, positive; 1e-4, 1e-3, ..., 1e3 by default. Of penalties with the same loss the
        first in the grid is taken.
    cv : int, scikit-learn splitter or iterable of (train, test), default=3
        An integer makes shuffled folds, not stratified, the same for all targets, and at most as
        many as there are rows.
    penalize_intercept : bool, default=False
        Count the intercepts among the weights W.
    reference_class : bool, default=False
        If K > 2, fix the weights of the first class at 0 instead of giving weights to all classes.
    max_iter : int, default=100
        Largest number of Newton steps of a fit.
    tol : float, default=1e-5
        A fit ends with a Newton step after which the expected error of the logits is at most the
        square of `tol`.
    random_state : int, RandomState instance or None, default=None
        Shuffles the folds if `cv` is an integer.
    n_jobs : int or None, default=None
        Number of threads, or of jobs on the workers of a cluster if joblib is configured so;
        -1 uses all cores. Results do not depend on it: the targets are divided into the same
        chunks, and BLAS uses one thread.
    held_out : bool, default=False
        Return the probabilities of held-out rows too. This takes no further fit, and an array of
        up to 64 MB more per chunk.
    progress : callable, optional
        Called with the number of targets fitted so far, after every chunk of them.

    Returns
    -------
    list of RidgeFit
        One model per target.

    See Also
    --------
    RidgeLogistic : The same for one target, as a scikit-learn estimator.

    Notes
    -----
    Equal rows are grouped, and the folds are weights on the groups. Penalties are fitted from the
    largest to the smallest, each with a warm start. A model with at most 300 unknowns,
    (columns + 1) (K - 1), is fitted by Newton steps with a Cholesky factor and a line search.
    Columns beyond the number of rows do not count, because the weights are rotated into the span
    of the rows.

    Larger models, on dense or sparse features, are fitted up to 64 columns of weights at a time
    by Newton steps that conjugate gradients solve for: one product with the features then serves
    many targets. If X is sparse, an extra column takes no copy of X. Where many products are
    needed, and there are at most 1023 columns, inverses of the blocks of the Hessian that belong
    to one class precondition them. With sparse features a Newton step is solved for in single
    precision where twice the penalty is at least 1e-5 of the largest curvature; gradients, losses
    and the stopping rule are in double precision. The bits of a model then do not depend on the
    other targets. All folds proceed together from one penalty to the next. When the mean loss has
    been less than that of the largest penalty, and exceeds the least so far by 5 % (and by 1e-6),
    the target stops, and the losses of smaller penalties are inf. A loss that would fall once
    more, below its least, is missed.

    On a device the same steps are computed for all targets and folds at once, the folds as
    weights of 0 and 1 on all rows, as far as memory allows: rows times columns of weights times
    folds are at most 67 million in a chunk, which takes about 22 arrays of that size. There are no
    inverses of blocks. The fits are those of the CPU up to the tolerance of the stopping rule.

    Besides a copy of the rows of each fold, shared by threads (none if there are more than 10
    folds), a chunk takes at most about 40 arrays of 32 MB, and 256 MB for the inverses; a single
    target may exceed that if it has very many classes or folds.

    A class without training rows in a fold gets the probability 0 there, and the only class of a
    fold the probability 1; probabilities are clipped to [1e-15, 1 - 1e-15]. A target with one
    class in all needs no model.

    Conventions elsewhere, for the same minimum:

    ============================================ =================================================
    here                                         there
    ============================================ =================================================
    ``penalties=[c]``                            ``sklearn.linear_model.LogisticRegression(
                                                 C=1 / (2 * c))``
    ``penalize_intercept=True``,                 ``nnet::multinom(decay = c)`` in R, which the
    ``reference_class=True``                     paper's experiments use
    ============================================ =================================================

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
    X = check_array(X, accept_sparse="csr", dtype=np.float64)
    n = X.shape[0]
    columns = _target_list(targets, n)
    settings = check_settings(penalties, penalize_intercept, reference_class, max_iter, tol)
    return fit_checked_targets(
        X,
        columns,
        _extra_list(extra, len(columns), n),
        row_weights(sample_weight, n, "X"),
        cv,
        random_state,
        settings._replace(held_out=check_flag(held_out, "held_out")),
        n_jobs,
        progress,
    )


def fit_checked_targets(
    X: Any,
    targets: list[npt.NDArray[Any]],
    extras: list[Floats | None],
    weight: Floats,
    cv: Any,
    random_state: Any,
    settings: RidgeSettings,
    n_jobs: Any = None,
    progress: Callable[[int], object] | None = None,
) -> list[RidgeFit]:
    """Fit validated targets on validated features; warn about fits that did not converge."""
    n = X.shape[0]
    for values in (X.data if sparse.issparse(X) else X, *{id(e): e for e in extras}.values()):
        _check_magnitude(values)
    rows = np.flatnonzero(weight > 0.0)
    if len(rows) < n:
        X, weight = X[rows], weight[rows]
        # targets that share an extra column share its remaining rows, too
        kept = {id(extra): extra[rows] for extra in extras if extra is not None}
        extras = [None if extra is None else kept[id(extra)] for extra in extras]
        targets = [y[rows] for y in targets]
    folds_of = make_folds(cv, random_state, X, rows, n)
    design = Design(X, weight, centred=not settings.penalize_intercept)
    classes_of: list[npt.NDArray[Any]] = []
    encoded = []
    for y, extra in zip(targets, extras, strict=True):
        classes, code = _encode(y)
        classes_of.append(classes)
        encoded.append(RidgeTarget(code, len(classes), extra, folds_of(y)))
    fits = fit_targets(design, encoded, settings, n_jobs, progress)
    n_failed = sum(fit.n_failed for fit in fits)
    if n_failed:
        warnings.warn(
            f"{n_failed} ridge fits did not converge within max_iter={settings.max_iter}: "
            "increase max_iter, or scale the features",
            ConvergenceWarning,
            stacklevel=3,
        )
    return [
        RidgeFit(
            classes,
            fit.coef,
            fit.intercept,
            float(settings.penalties[fit.best]),
            fit.losses,
            fit.n_iter,
            None if fit.held_out is None else on_all_rows(fit.held_out, rows, n),
        )
        for classes, fit in zip(classes_of, fits, strict=True)
    ]


def _encode(y: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Return the sorted classes and the index of each row's class, as `numpy.unique` does."""
    if y.dtype.kind in "iu" and y.dtype != np.uint64 and len(y):
        least, largest = int(y.min()), int(y.max())
        if largest - least < len(y):  # counting takes a tenth of the time of sorting
            shifted = y.astype(np.int64) - least
            occurs = np.bincount(shifted) > 0
            classes = (np.flatnonzero(occurs) + least).astype(y.dtype)
            return classes, (np.cumsum(occurs) - 1)[shifted]
    return np.unique(y, return_inverse=True)


def _check_magnitude(values: Floats | None) -> None:
    """Raise if products of four features could overflow."""
    largest = 0.0 if values is None else float(np.abs(values).max(initial=0.0))
    if largest > _LARGEST:
        raise ValueError(
            f"X or extra has a value of magnitude {largest:g}: features must not exceed "
            f"{_LARGEST:g}; scale them"
        )


def check_settings(
    penalties: Any,
    penalize_intercept: Any,
    reference_class: Any,
    max_iter: Any,
    tol: Any,
) -> RidgeSettings:
    """Validate the options of a fit."""
    grid = np.array(
        _PENALTIES if penalties is None else real_array(penalties, "penalties", ("penalty",)),
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
    if isinstance(max_iter, bool) or not isinstance(max_iter, numbers.Integral):
        raise TypeError(f"max_iter is {max_iter!r}: it must be an integer greater than 0")
    if max_iter < 1:
        raise ValueError(f"max_iter is {max_iter}: it must be an integer greater than 0")
    if isinstance(tol, bool) or not isinstance(tol, numbers.Real):
        raise TypeError(f"tol is {tol!r}: it must be a finite number greater than 0")
    if not 0.0 < float(tol) < math.inf:
        raise ValueError(f"tol is {tol!r}: it must be a finite number greater than 0")
    return RidgeSettings(
        grid,
        check_flag(penalize_intercept, "penalize_intercept"),
        check_flag(reference_class, "reference_class"),
        int(max_iter),
        float(tol),
    )


def _target_list(targets: Any, n: int) -> list[npt.NDArray[Any]]:
    """Validate the targets; return them as flat arrays."""
    if hasattr(targets, "iloc") or hasattr(targets, "to_numpy"):
        targets = targets.to_numpy()
    if isinstance(targets, np.ndarray):
        if targets.ndim != 2:
            raise ValueError(
                f"targets has shape {targets.shape}: it must be an array of shape (n, T), "
                "or a list of T arrays of shape (n,)"
            )
        targets = list(targets.T)
    if isinstance(targets, (str, bytes)) or not isinstance(targets, Sequence):
        raise TypeError(
            f"targets is {type(targets).__name__}: it must be an array of shape (n, T), "
            "or a list of T arrays of shape (n,)"
        )
    columns = []
    for t, target in enumerate(targets):
        y = np.asarray(target)
        if y.ndim != 1:
            raise ValueError(f"targets[{t}] has shape {y.shape}: it must have 1 dimension (row)")
        check_same_rows([n, len(y)], ["X", f"targets[{t}]"])
        if y.dtype.kind not in "biu":  # integers are classes, however many there are
            check_classification_targets(y)
        columns.append(y)
    return columns


def _extra_list(extra: Any, n_targets: int, n: int) -> list[Floats | None]:
    """Return the extra column of each target; equal objects give equal objects."""
    if extra is None:
        return [None] * n_targets
    is_list = isinstance(extra, (list, tuple))
    per_target = is_list and any(e is None or np.ndim(e) == 1 for e in extra)
    if not per_target:
        return [_extra_column(extra, "extra", n)] * n_targets
    if len(extra) != n_targets:
        raise ValueError(
            f"extra has {len(extra)} entries and targets has {n_targets}: "
            "there must be one column, or None, for each target"
        )
    checked: dict[int, Floats] = {}
    for t, column in enumerate(extra):
        if column is not None and id(column) not in checked:
            checked[id(column)] = _extra_column(column, f"extra[{t}]", n)
    return [None if column is None else checked[id(column)] for column in extra]


def _extra_column(column: Any, name: str, n: int) -> Floats:
    values = real_array(column, name, ("row",)).astype(np.float64)
    check_same_rows([n, len(values)], ["X", name])
    wrong = ~np.isfinite(values)
    if wrong.any():
        index = first_index(wrong)
        raise ValueError(f"{place(name, index)} is {values[index]!s}: it must be finite")
    return values
