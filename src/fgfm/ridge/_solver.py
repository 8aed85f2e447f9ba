"""Fit targets by the compiled solver, in chunks that run in parallel.

A chunk is a call of `fgfm._kernels.fit_ridge` for targets with the same rows, folds and number of
classes. Chunks of large models, which are fitted side by side, depend on the targets alone, not on
the number of jobs, so that neither do results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from scipy.special import expit, softmax
from sklearn.utils.parallel import delayed

from fgfm._kernels import RidgeOptions, fit_ridge
from fgfm._utils.folds import Fold
from fgfm._utils.parallel import Shared, one_blas_thread, run_jobs
from fgfm.ridge._design import Design

__all__ = ["RidgeFit", "RidgeSettings", "RidgeTarget", "fit_targets", "softmax_probabilities"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_TASKS = 8  # per worker: more would balance the load no better, and send the inputs more often
# Columns of weights in a chunk of large models: more would hardly make products with the rows
# faster.
_COLUMNS = 64
# Entries of an array of a chunk, (n or p, columns): 32 MB. Each fold has its arrays, so
# that a chunk has fewer columns if there are more folds than _FOLDS.
_ENTRIES = 1 << 22
_FOLDS = 3


class RidgeSettings(NamedTuple):
    """The objective, the grid of penalties and the stopping rule."""

    penalties: Floats  # (L,) in the order of the grid
    penalize_intercept: bool
    reference_class: bool
    max_iter: int
    tol: float
    held_out: bool = False  # return the probabilities of the test rows too


class RidgeTarget(NamedTuple):
    """The classes of the rows, and the folds that choose the penalty."""

    classes: npt.NDArray[Any]  # (K,), sorted
    code: Integers  # (n,): 0 to K - 1; every class occurs
    extra: Floats | None  # (n,): a column to append to the features
    folds: list[Fold]


class RidgeFit(NamedTuple):
    """The fitted model of one target."""

    classes: npt.NDArray[Any]  # (K,), sorted
    # (1, p) or (K, p) and (1,) or (K,): of the second class against the first if K = 2, of every
    # class if K > 2. Weights of an extra column come last.
    coef: Floats
    intercept: Floats
    penalty: float  # the chosen one
    cv_losses: Floats  # (folds, L): mean log-loss of test rows; inf for penalties not tried
    n_iter: int  # largest number of iterations of a fit
    n_failed: int  # fits that did not converge
    # (n, K) or None: probabilities of each row from the fold that held it out, with the chosen
    # penalty; NaN for rows in no test fold
    held_out: Floats | None

    def predict_proba(self, X: Any, extra: Any = None) -> Floats:
        """Predict the probabilities (n, K) of the classes; `extra` is a number or a column."""
        p = X.shape[1]
        logits = np.asarray(X @ self.coef[:, :p].T + self.intercept)
        if extra is not None:
            logits += np.multiply.outer(np.asarray(extra, dtype=np.float64), self.coef[:, p])
        return softmax_probabilities(logits, len(self.classes))


def softmax_probabilities(logits: Floats, n_classes: int) -> Floats:
    """Return the probabilities (n, K) of logits (n, 1) or (n, K)."""
    if n_classes == 1:
        return np.ones((len(logits), 1))
    if n_classes == 2:
        return np.column_stack([expit(-logits[:, 0]), expit(logits[:, 0])])
    return np.asarray(softmax(logits, axis=1))


class _Inputs(Shared):
    """What chunks share, sent to a worker once."""

    def __init__(self, design: Design, settings: RidgeSettings, folds: list[Fold]) -> None:
        self.design = design
        self.settings = settings
        self.folds = folds


def fit_targets(
    design: Design,
    targets: list[RidgeTarget],
    settings: RidgeSettings,
    n_jobs: Any,
) -> list[RidgeFit]:
    """Choose the penalties and fit the models of all targets, in order."""
    fits: dict[int, RidgeFit] = {}
    groups: dict[Any, list[int]] = {}
    for t, target in enumerate(targets):
        K, folds, extra = len(target.classes), target.folds, target.extra
        if K == 1:
            fits[t] = _certain_fit(design, target, settings)
            continue
        small = design.is_small(K, extra)
        # Sparse rows of large models are kept apart from the extra columns: targets with different
        # ones can be fitted together, but not with targets that have none.
        same = id(extra) if design.is_dense(K, small=small) else extra is None
        groups.setdefault((small, K, id(folds), same), []).append(t)
    jobs = effective_n_jobs(n_jobs)
    chunks = []
    for (small, K, _, _), members in groups.items():
        size = len(members) if jobs == 1 else 1 + len(members) // (_TASKS * jobs)
        if not small:
            size = _batch_size(design, K, len(targets[members[0]].folds))
        chunks += [members[at : at + size] for at in range(0, len(members), size)]
    shared = {id(target.folds): _Inputs(design, settings, target.folds) for target in targets}
    arguments = (
        (
            shared[id(targets[chunk[0]].folds)],
            (
                np.stack([targets[t].code for t in chunk], dtype=np.int32, casting="same_kind"),
                [targets[t].classes for t in chunk],
                [targets[t].extra for t in chunk],
            ),
        )
        for chunk in chunks
    )
    results: Iterator[list[RidgeFit]]
    # kernels release the GIL; a single job is run here, because the pool costs as much as a few
    # small fits
    with one_blas_thread:
        if jobs == 1 or len(chunks) == 1:
            results = (_fit_chunk(*args) for args in arguments)
        else:
            calls = (delayed(_fit_chunk)(*args) for args in arguments)
            results = run_jobs(calls, n_jobs, "threads")
        for chunk, fitted in zip(chunks, results, strict=True):
            fits.update(zip(chunk, fitted, strict=True))
    return [fits[t] for t in range(len(targets))]


def _certain_fit(design: Design, target: RidgeTarget, settings: RidgeSettings) -> RidgeFit:
    """Return the model of a target with one class."""
    p = design.p + (target.extra is not None)
    losses = np.zeros((len(target.folds), len(settings.penalties)))
    certain = np.ones((design.n, 1)) if settings.held_out else None
    penalty = float(settings.penalties[0])
    return RidgeFit(target.classes, np.zeros((1, p)), np.zeros(1), penalty, losses, 0, 0, certain)


def _batch_size(design: Design, n_classes: int, n_folds: int) -> int:
    """Return the most large models that are fitted side by side, for bounded memory."""
    columns = min(_COLUMNS, _ENTRIES * _FOLDS // max(n_folds, _FOLDS) // max(design.n, design.p))
    return max(1, columns // (1 if n_classes == 2 else n_classes))


def _fit_chunk(
    inputs: _Inputs,
    targets: tuple[npt.NDArray[np.int32], Sequence[npt.NDArray[Any]], Sequence[Floats | None]],
) -> list[RidgeFit]:
    """Fit targets (T, n) with equally many classes; large sparse models may differ in `extras`."""
    code, classes, extras = targets
    design, settings, folds = inputs.design, inputs.settings, inputs.folds
    T, K, L = len(code), len(classes[0]), len(settings.penalties)
    small = design.is_small(K, extras[0])
    own = np.empty((0, 0))  # (T, n): extra columns beside sparse rows
    own_mean = np.empty((T, 0))
    if design.is_dense(K, small=small):
        groups = design.grouped(extras[0], principal=not small)
    else:
        groups = design.sparse_rows()
        if extras[0] is not None:
            own_mean = np.array([design.mean(np.asarray(extra)[:, None]) for extra in extras])
            own = np.stack(extras) - own_mean  # type: ignore[arg-type]
    C = K if K > 2 and not small and not settings.reference_class else K - 1
    theta = np.empty((T, (groups.n_columns + len(own_mean.T)) * C))
    best, steps, failed = np.zeros((3, T), dtype=np.int64)
    losses = np.full((T, len(folds) * L), np.inf)
    held_out = np.full((T, design.n * K) if settings.held_out else (0, 0), np.nan)
    options = RidgeOptions(
        penalties=settings.penalties,
        penalize_intercept=settings.penalize_intercept,
        reference_class=settings.reference_class,
        tol=settings.tol,
        max_iter=settings.max_iter,
        cholesky=small,
        batch=1 if small else T,
    )
    with one_blas_thread:
        fit_ridge(
            groups.rows,
            groups.of_row,
            design.weight,
            [(fold.train, fold.test) for fold in folds],
            code,
            K,
            own,
            options,
            theta=theta,
            best=best,
            losses=losses,
            steps=steps,
            failed=failed,
            held_out=held_out,
        )
    fits = []
    for t in range(T):
        fitted = groups._replace(mean=np.append(groups.mean, own_mean[t])) if own.size else groups
        coef, intercept = fitted.coefficients(theta[t].reshape(-1, C))
        if K > 2 and C < K:  # add the weights 0 of the first class
            coef = np.concatenate([np.zeros((1, coef.shape[1])), coef])
            intercept = np.concatenate([[0.0], intercept])
        if K > 2 and not settings.reference_class:  # symmetric weights sum to 0 over the classes
            coef -= coef.mean(axis=0)
            intercept -= intercept.mean()
        fits.append(
            RidgeFit(
                classes[t],
                coef,
                intercept,
                float(settings.penalties[best[t]]),
                losses[t].reshape(-1, L).copy(),
                int(steps[t]),
                int(failed[t]),
                held_out[t].reshape(-1, K) if settings.held_out else None,
            )
        )
    return fits
