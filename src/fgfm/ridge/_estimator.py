r"""Ridge-penalised logistic regression, its penalty chosen by cross-validation.

This is the base learner of the paper (section 5). One target y with K classes is modelled by
minimising

.. math::

    - \sum_i w_i \log p(y_i \mid x_i) + \lambda \sum_{kj} W_{kj}^2

for every penalty :math:`\lambda` of a grid, and by taking the penalty whose log-loss on held-out
rows is least. Estimating the parameters of F-GFM takes one such choice per label and per factor:
thousands of small fits on the same rows. `fit_ridge_logistic` makes them together.
"""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from fgfm._utils.parallel import one_blas_thread, run_jobs
from fgfm._utils.rows import on_all_rows
from fgfm._utils.validation import (
    check_flag,
    check_same_rows,
    first_index,
    place,
    real_array,
    row_weights,
)
from fgfm.ridge._design import Design, make_folds
from fgfm.ridge._path import Common, cut, fit_chunks
from fgfm.ridge._problem import Fitted, Settings, Target

__all__ = ["RidgeFit", "RidgeLogistic", "fit_ridge_logistic"]

Floats = npt.NDArray[np.float64]

_PENALTIES = 10.0 ** np.arange(-4, 4)  # the paper's grid
_LARGEST = 1e60  # feature
_TASKS = 8  # per worker: more would share the work no better, and ship what is common more often


class RidgeFit(NamedTuple):
    """The model of one target, as `fit_ridge_logistic` gives it.

    Attributes
    ----------
    classes : ndarray of shape (K,)
        The classes, sorted.
    coef : ndarray of shape (1, p) or (K, p)
        Weights: of the second class against the first where K = 2, of every class where K > 2.
        Those of an extra column come last.
    intercept : ndarray of shape (1,) or (K,)
        Intercepts.
    penalty : float
        The chosen penalty.
    cv_losses : ndarray of shape (folds, L)
        Mean log-loss on the test rows of each fold for each penalty of the grid; inf where a
        larger penalty was clearly worse than a still larger one (see `fit_ridge_logistic`).
    n_iter : int
        The most iterations that a fit took.
    held_out : ndarray of shape (n, K) or None
        Where it was asked for: the probabilities of each row from the fit of the fold that held it
        out, with the chosen penalty; NaN for rows that no fold held out.
    """

    classes: npt.NDArray[Any]
    coef: Floats
    intercept: Floats
    penalty: float
    cv_losses: Floats
    n_iter: int
    held_out: Floats | None = None

    def logits(self, X: Any, extra: Any = None) -> Floats:
        """Give ``X @ coef.T + intercept``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Features, without the extra column.
        extra : float or array-like of shape (n,), optional
            Values of the extra column, where the model has one.

        Returns
        -------
        ndarray of shape (n, 1) or (n, K)
            One logit where there are two classes (or one), else one per class.
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
        """Give the probability of each class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Features, without the extra column.
        extra : float or array-like of shape (n,), optional
            Values of the extra column, where the model has one.

        Returns
        -------
        ndarray of shape (n, K)
            Probabilities; rows sum to 1.
        """
        return _probabilities(self.logits(X, extra), len(self.classes))


def _probabilities(logits: Floats, n_classes: int) -> Floats:
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
    _progress: Callable[[int], object] | None = None,
) -> list[RidgeFit]:
    r"""Fit ridge-penalised logistic regressions of many targets on the same features.

    For each target, with K classes and weights W, minimise

    .. math::

        - \sum_i w_i \log p(y_i \mid x_i) + \lambda \sum_{kj} W_{kj}^2

    on the training rows of each fold, for each penalty :math:`\lambda`; take the penalty for which
    the log-loss on test rows, averaged over folds, is least; and minimise it on all rows. What
    does not depend on the target is done once. Of a large model (see Notes) no smaller penalties
    are tried once that loss has fallen, and then is 5 % above its least.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, p)
        Features.
    targets : sequence of T array-likes of shape (n,), or array of shape (n, T)
        Classes of each row, of any type that sorts.
    extra : array-like of shape (n,), or sequence of T such arrays or None, optional
        A numeric column to append to X: one for all targets, or one per target. Targets that are
        given the same object share its work. The two-step estimate appends the cardinality so.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, in the fit and in the log-loss. Weight 0 removes a row.
    penalties : array-like of shape (L,), optional
        The grid, positive; 1e-4, 1e-3, ..., 1e3 by default. Of penalties with the same loss the
        first in the grid is taken.
    cv : int, scikit-learn splitter or iterable of (train, test), default=3
        An int makes shuffled folds, not stratified, the same for all targets, as many as there
        are rows where there are fewer.
    penalize_intercept : bool, default=False
        Count the intercepts among the weights W.
    reference_class : bool, default=False
        Give the first class the weights 0, instead of weights to all K > 2 classes.
    max_iter : int, default=100
        Most Newton steps of a fit.
    tol : float, default=1e-5
        A fit ends with a Newton step after which the logits are expected to be off by no more
        than its square.
    random_state : int, RandomState instance or None, default=None
        Shuffles the folds, where `cv` is an int.
    n_jobs : int or None, default=None
        Number of threads, or of jobs on the workers of a cluster where joblib is configured so;
        -1 uses all cores. It changes no result: the targets are cut into the same chunks, and
        BLAS has one thread.
    held_out : bool, default=False
        Give the probabilities of held-out rows too. They cost no fit, and an array of up to 64 MB
        more in a chunk.
    _progress : callable, optional
        Called with the number of targets that are done, after every chunk of them.

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
    largest to the smallest, each from where the ones before lead. A model with no more than 300
    unknowns, (columns + 1) (K - 1), is fitted by Newton steps with a Cholesky factor and a line
    search. Columns beyond the number of rows do not count, for the weights are turned into the
    span of the rows.

    Larger models, on dense or sparse features, are fitted up to 64 columns of weights at a time
    by Newton steps that conjugate gradients solve for: one product of the features then serves
    many targets. An extra column is no copy of X there, if X is sparse. Where many products are
    needed, and there are no more than 1023 rows or columns, inverses of the blocks of the Hessian
    that belong to one class make them few. With sparse features a model has the same bits
    whatever other targets it is fitted with. All folds go on together from one penalty to the
    next; where the mean loss has been less than that of the largest penalty, and exceeds the least
    so far by 5 % (and by 1e-6), the target ends there, and the losses of smaller penalties are
    inf. A loss that would fall once more, below its least, is missed so.

    Beside a copy of the rows of each fold, shared by threads (none where there are more than 10
    folds), a chunk takes about 40 arrays of 32 MB at most, and 256 MB for the inverses; a single
    target may exceed that if it has more classes or folds than would fit.

    A class that no training row of a fold has gets the probability 0 there, and a fold of one
    class gives it the probability 1; probabilities are clipped to [1e-15, 1 - 1e-15]. A target
    with one class in all needs no model.

    Conventions elsewhere, for the same minimum:

    ============================================ =================================================
    here                                         there
    ============================================ =================================================
    ``penalties=[c]``                            ``sklearn.linear_model.LogisticRegression(
                                                 C=1 / (2 * c))``
    ``penalize_intercept=True``,                 ``nnet::multinom(decay = c)`` in R, on which the
    ``reference_class=True``                     paper's experiments rest
    ============================================ =================================================

    Examples
    --------
    >>> import numpy as np
    >>> from fgfm.estimation import fit_ridge_logistic
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
    return _fit_targets(
        X,
        columns,
        _extra_list(extra, len(columns), n),
        row_weights(sample_weight, n, "X"),
        cv,
        random_state,
        _settings(penalties, penalize_intercept, reference_class, max_iter, tol)._replace(
            held_out=check_flag(held_out, "held_out")
        ),
        n_jobs,
        _progress,
    )


def _fit_targets(
    X: Any,
    targets: list[npt.NDArray[Any]],
    extras: list[Floats | None],
    weight: Floats,
    cv: Any,
    random_state: Any,
    settings: Settings,
    n_jobs: Any = None,
    progress: Callable[[int], object] | None = None,
) -> list[RidgeFit]:
    """Fit checked targets to checked features."""
    n = X.shape[0]
    for values in (X.data if sparse.issparse(X) else X, *{id(e): e for e in extras}.values()):
        _check_size(values)
    rows = np.flatnonzero(weight > 0.0)
    if len(rows) < n:
        X, weight = X[rows], weight[rows]
        shorter = {id(extra): extra[rows] for extra in extras if extra is not None}
        extras = [None if extra is None else shorter[id(extra)] for extra in extras]
        targets = [y[rows] for y in targets]
    folds_of = make_folds(cv, random_state, X, rows, n)
    design = Design(X, weight, centred=not settings.penalize_intercept)
    known: list[npt.NDArray[Any]] = []
    asked = []
    for y, extra in zip(targets, extras, strict=True):
        classes, code = np.unique(y, return_inverse=True)
        known.append(classes)
        asked.append(Target(code, len(classes), extra, folds_of(y)))
    fitted = _fit_chunks(design, asked, settings, n_jobs, progress)
    models = [
        RidgeFit(
            classes,
            one.coef,
            one.intercept,
            float(settings.penalties[one.best]),
            one.losses,
            one.n_iter,
            None if one.held_out is None else on_all_rows(one.held_out, rows, n),
        )
        for classes, one in zip(known, fitted, strict=True)
    ]
    stuck = sum(one.stuck for one in fitted)
    if stuck:
        warnings.warn(
            f"{stuck} ridge fits did not converge within max_iter={settings.max_iter}: "
            "increase max_iter, or scale the features",
            ConvergenceWarning,
            stacklevel=3,
        )
    return models


def _fit_chunks(
    design: Design,
    targets: list[Target],
    settings: Settings,
    n_jobs: Any,
    progress: Callable[[int], object] | None,
) -> list[Fitted]:
    """Fit the chunks of targets in threads: the libraries leave the interpreter's lock alone."""
    chunks = cut(design, targets)
    jobs = effective_n_jobs(n_jobs)
    size = 1 if jobs == 1 else max(1, len(chunks) // (_TASKS * jobs))
    tasks = [chunks[at : at + size] for at in range(0, len(chunks), size)]
    common = Common(design, settings, targets)
    works = (
        (common, [[common.pack(targets[t]) for t in chunk] for chunk in task]) for task in tasks
    )
    answers: Iterator[list[Fitted]]
    with one_blas_thread:
        if jobs == 1 or len(tasks) == 1:  # the pool costs as much as a few small fits
            answers = (fit_chunks(*work) for work in works)
        else:
            answers = run_jobs((delayed(fit_chunks)(*work) for work in works), n_jobs, "threads")
        found: dict[int, Fitted] = {}
        for task, fitted in zip(tasks, answers, strict=True):
            found.update(zip((t for chunk in task for t in chunk), fitted, strict=True))
            if progress is not None:
                progress(len(found))
    return [found[t] for t in range(len(targets))]


def _check_size(values: Floats | None) -> None:
    """Raise where products of four features could overflow."""
    largest = 0.0 if values is None else float(np.abs(values).max(initial=0.0))
    if largest > _LARGEST:
        raise ValueError(
            f"X or extra holds a number of size {largest:g}: features must not exceed "
            f"{_LARGEST:g}; scale them"
        )


def _settings(
    penalties: Any, penalize_intercept: Any, reference_class: Any, max_iter: Any, tol: Any
) -> Settings:
    grid = np.array(
        _PENALTIES if penalties is None else real_array(penalties, "penalties", ("penalty",)),
        dtype=np.float64,
    )
    if len(grid) == 0:
        raise ValueError("penalties is empty: it must hold one penalty at least")
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
    return Settings(
        grid,
        check_flag(penalize_intercept, "penalize_intercept"),
        check_flag(reference_class, "reference_class"),
        int(max_iter),
        float(tol),
    )


def _target_list(targets: Any, n: int) -> list[npt.NDArray[Any]]:
    """Give the targets as flat arrays."""
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
        if y.dtype.kind not in "biu":  # whole numbers are classes, however many there are
            check_classification_targets(y)
        columns.append(y)
    return columns


def _extra_list(extra: Any, n_targets: int, n: int) -> list[Floats | None]:
    """Give the extra column of each target; those that were one object stay one."""
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
    known: dict[int, Floats] = {}
    for t, column in enumerate(extra):
        if column is not None and id(column) not in known:
            known[id(column)] = _extra_column(column, f"extra[{t}]", n)
    return [None if column is None else known[id(column)] for column in extra]


def _extra_column(column: Any, name: str, n: int) -> Floats:
    values = real_array(column, name, ("row",)).astype(np.float64)
    check_same_rows([n, len(values)], ["X", name])
    wrong = ~np.isfinite(values)
    if wrong.any():
        index = first_index(wrong)
        raise ValueError(f"{place(name, index)} is {values[index]!s}: it must be finite")
    return values


class RidgeLogistic(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Ridge-penalised logistic regression that chooses its penalty by cross-validated log-loss.

    For classes 1..K and weights W it minimises

    .. math::

        - \sum_i w_i \log p(y_i \mid x_i) + \lambda \sum_{kj} W_{kj}^2

    on the training rows of each fold, for each penalty :math:`\lambda`; takes the penalty for
    which the log-loss on test rows, averaged over folds, is least; and minimises it on all rows.
    Penalties are tried from the largest on; a model of more than 300 unknowns tries no smaller
    ones once that loss has fallen, and then is 5 % above its least. Scale your features: the
    penalty is the same for all of them.

    Parameters
    ----------
    penalties : array-like of shape (L,), optional
        The grid, positive; 1e-4, 1e-3, ..., 1e3 by default. Of penalties with the same loss the
        first in the grid is taken.
    cv : int, scikit-learn splitter or iterable of (train, test), default=3
        An int makes shuffled folds, not stratified, as many as there are rows where there are
        fewer. A splitter is given the rows of positive weight.
    penalize_intercept : bool, default=False
        Count the intercepts among the weights W.
    reference_class : bool, default=False
        Give the first class the weights 0, instead of weights to all K > 2 classes.
    max_iter : int, default=100
        Most Newton steps of a fit.
    tol : float, default=1e-5
        A fit ends with a Newton step after which the logits are expected to be off by no more
        than its square.
    random_state : int, RandomState instance or None, default=None
        Shuffles the folds, where `cv` is an int.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes.
    coef_ : ndarray of shape (1, p) or (K, p)
        Weights: of the second class against the first where K = 2, of every class where K > 2.
    intercept_ : ndarray of shape (1,) or (K,)
        Intercepts.
    penalty_ : float
        The chosen penalty.
    penalties_ : ndarray of shape (L,)
        The grid.
    cv_losses_ : ndarray of shape (folds, L)
        Mean log-loss on the test rows of each fold for each penalty; inf for those that were
        not tried.
    n_iter_ : int
        The most iterations that a fit took.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of shape (p,)
        Their names, where X has them.

    See Also
    --------
    fit_ridge_logistic : The same for many targets at once; its notes tell how it is computed.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fgfm.estimation import RidgeLogistic
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RidgeLogistic(random_state=0).fit(X, y)
    >>> model.penalty_
    0.01
    >>> round(model.score(X, y), 2)
    0.98
    >>> RidgeLogistic(penalties=[1.0, -1.0]).fit(X, y)
    Traceback (most recent call last):
        ...
    ValueError: penalties[1] is -1.0: penalties must be finite and greater than 0
    """

    def __init__(
        self,
        penalties: Any = None,
        *,
        cv: Any = 3,
        penalize_intercept: bool = False,
        reference_class: bool = False,
        max_iter: int = 100,
        tol: float = 1e-5,
        random_state: Any = None,
    ) -> None:
        self.penalties = penalties
        self.cv = cv
        self.penalize_intercept = penalize_intercept
        self.reference_class = reference_class
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RidgeLogistic:
        """Choose the penalty and fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.
        y : array-like of shape (n,)
            Classes.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows, in the fit and in the log-loss. Weight 0 removes a row.

        Returns
        -------
        RidgeLogistic
            The estimator itself.
        """
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        settings = _settings(
            self.penalties, self.penalize_intercept, self.reference_class, self.max_iter, self.tol
        )
        weight = row_weights(sample_weight, X.shape[0], "X")
        (model,) = _fit_targets(X, [y], [None], weight, self.cv, self.random_state, settings)
        self.classes_ = model.classes
        self.coef_ = model.coef
        self.intercept_ = model.intercept
        self.penalty_ = model.penalty
        self.penalties_ = settings.penalties
        self.cv_losses_ = model.cv_losses
        self.n_iter_ = model.n_iter
        return self

    def _logits(self, X: Any) -> Floats:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return np.asarray(X @ self.coef_.T + self.intercept_)

    def decision_function(self, X: Any) -> Floats:
        """Give the logits.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        ndarray of shape (n,) or (n, K)
            One logit for the second class where there are two, else one per class.
        """
        logits = self._logits(X)
        return logits[:, 0] if logits.shape[1] == 1 else logits

    def predict_proba(self, X: Any) -> Floats:
        """Give the probability of each class.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        ndarray of shape (n, K)
            Probabilities; rows sum to 1.
        """
        return _probabilities(self._logits(X), len(self.classes_))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Give the most probable class.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        ndarray of shape (n,)
            Classes; of equally probable ones the first.
        """
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])
