"""Small models: one target at a time, by Newton's method with a Cholesky factor of the Hessian.

The path of penalties is followed by the compiled kernel `fgfm._kernels.fit_path`, on groups
of equal rows. With K classes it has K - 1 logits, over the logit 0 of the first class.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import cython_blas
from scipy.special import softmax

from fgfm._kernels import fit_path
from fgfm._utils.folds import Fold
from fgfm.ridge._design import Design, GroupedRows
from fgfm.ridge._problem import (
    RidgeSettings,
    RidgeTarget,
    TargetFit,
    class_counts,
    untrained_loss,
)

__all__ = ["fit_newton"]

_GEMM = cython_blas.__pyx_capi__["dgemm"]  # the matrix product that the kernel calls

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

# Up to _SMALL unknowns a new Hessian costs no more than the exponentials of a step. In larger
# models a Hessian is kept until the logits have moved by _REUSE: up to there each step is still
# less than about a fifth of the step before.
_SMALL = 20
_REUSE = 0.2


def fit_newton(design: Design, target: RidgeTarget, settings: RidgeSettings) -> TargetFit:
    """Choose the penalty of one target by cross-validation and fit its model.

    Parameters
    ----------
    design : Design
        The features and the weights of the rows.
    target : RidgeTarget
        The classes of the rows, two or more, and the folds.
    settings : RidgeSettings
        The objective and the stopping rule.

    Returns
    -------
    TargetFit
        The model.
    """
    return _NewtonModel(design, target, settings).fit()


class _NewtonModel:
    def __init__(self, design: Design, target: RidgeTarget, settings: RidgeSettings) -> None:
        self.weight = design.weight
        self.target = target
        self.settings = settings
        # from the largest penalty to the smallest: each is a warm start for the next
        self.order = np.argsort(-settings.penalties, kind="stable")
        self.groups: GroupedRows = design.grouped(target.extra)
        self.complete: list[Floats] = []  # theta (L, q, J) of each fold that has all classes
        # of each fold, the classes of its training rows and theta (None for a single class)
        self.fold_fits: list[tuple[Fold, Integers, Floats | None]] = []
        self.n_iter = 0
        self.n_failed = 0

    def fit(self) -> TargetFit:
        """Compute the test losses, choose the penalty, and fit all rows."""
        losses = np.array([self.fold_losses(fold) for fold in self.target.folds])  # (folds, L)
        best = int(np.argmin(losses.mean(axis=0)))  # the first of equal ones
        coef, intercept = self.refit(best)
        held_out = self.held_out(best) if self.settings.held_out else None
        return TargetFit(coef, intercept, best, losses, self.n_iter, self.n_failed, held_out)

    def counts(self, rows: Any) -> Floats:
        """Return the weight of each class in each group, (G, K)."""
        return class_counts(self.groups, self.weight, self.target, rows)

    def path(
        self, counts: Floats, test_counts: Floats, penalties: Floats, start: Floats | None
    ) -> tuple[Floats, Floats]:
        """Fit one penalty after the other; return theta (L, q, J) and the test losses (L,)."""
        settings = self.settings
        (G, q), K = self.groups.Z.shape, counts.shape[1]
        # If all rows are equal, the probabilities are the class frequencies: the intercept is
        # then not penalised, even under the paper's penalty.
        free_intercept = G == 1 or not settings.penalize_intercept
        theta = np.zeros((len(penalties), q, K - 1))
        if start is not None:
            theta[0] = start
        elif free_intercept:
            total = np.log(counts.sum(axis=0))
            theta[0, 0] = total[1:] - total[0]
        train = counts.any(axis=1)  # (G,)
        test = test_counts.any(axis=1)  # (G,)
        losses = np.empty(len(penalties))
        steps = np.empty(len(penalties), dtype=np.int64)
        pairs = self.groups.pairs
        fit_path(
            _GEMM,
            self.groups.Z[train],
            pairs[train] if len(pairs) else pairs,
            np.ascontiguousarray(counts[train]),
            self.groups.Z[test],
            np.ascontiguousarray(test_counts[test]),
            penalties,
            1.0 / K if K > 2 and not settings.reference_class else 0.0,
            1 if free_intercept else 0,
            settings.tol,
            settings.max_iter,
            _REUSE if q * (K - 1) > _SMALL else 0.0,
            theta,
            losses,
            steps,
        )
        self.n_iter = max(self.n_iter, int(np.abs(steps).max()))
        self.n_failed += int(np.count_nonzero(steps < 0))
        return theta, losses

    def fold_losses(self, fold: Fold) -> Floats:
        """Return the mean loss on the test rows for every penalty, in the order of the grid."""
        in_train, fixed = untrained_loss(self.target, self.weight, fold)
        sums = np.full(len(self.order), fixed)  # (L,)
        theta = None
        if len(in_train) > 1:
            counts, test_counts = self.counts(fold.train), self.counts(fold.test)  # (G, K)
            complete = len(in_train) == self.target.n_classes
            if not complete:
                counts, test_counts = counts[:, in_train], test_counts[:, in_train]
            penalties = self.settings.penalties[self.order]
            theta, losses = self.path(counts, test_counts, penalties, None)
            sums[self.order] += losses
            if complete:
                self.complete.append(theta)
        self.fold_fits.append((fold, in_train, theta))
        return np.asarray(sums / self.weight[fold.test].sum())

    def held_out(self, best: int) -> Floats:
        """Return the test probabilities of the folds with the chosen penalty, (n, K)."""
        at = int(np.flatnonzero(self.order == best)[0])
        proba = np.full((len(self.target.code), self.target.n_classes), np.nan)
        for fold, classes, theta in self.fold_fits:
            proba[fold.test] = 0.0
            if theta is None:
                proba[fold.test, classes[0]] = 1.0
                continue
            eta = self.groups.Z[self.groups.of_row[fold.test]] @ theta[at]  # (tests, J)
            eta = np.column_stack([np.zeros(len(eta)), eta])
            proba[np.ix_(fold.test, classes)] = softmax(eta, axis=1)
        return proba

    def refit(self, best: int) -> tuple[Floats, Floats]:
        """Fit all rows with the chosen penalty; return weights and intercepts."""
        counts = self.counts(slice(None))
        at = int(np.flatnonzero(self.order == best)[0])
        if self.complete:
            penalties = self.settings.penalties[[best]]
            start = np.mean([theta[at] for theta in self.complete], axis=0)
        else:
            penalties = self.settings.penalties[self.order[: at + 1]]
            start = None
        theta = self.path(counts, np.zeros_like(counts), penalties, start)[0][-1]  # (q, J)
        coef, intercept = self.groups.coefficients(theta)
        if self.target.n_classes > 2:
            # add the weights 0 of the first class; symmetric weights sum to 0 over the classes
            coef = np.concatenate([np.zeros((1, coef.shape[1])), coef])
            intercept = np.concatenate([[0.0], intercept])
            if not self.settings.reference_class:
                coef -= coef.mean(axis=0)
                intercept -= intercept.mean()
        return coef, intercept
