"""One target: the loss of every penalty on every fold, then the model with the best penalty.

Three ways lead to the same minimum: on groups of equal rows, Newton steps with the Hessian formed
(`fgfm._kernels.ridge`) or not (`fgfm.estimation._conjugate`); and scikit-learn's solver for
sparse or very wide features.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from fgfm.estimation import _design
from fgfm.estimation._conjugate import fit_path_iteratively
from fgfm.estimation._design import Design, Fold, Grouped

__all__ = ["Fitted", "Settings", "fit_target"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_CLIP = 1e-15
_IMPOSSIBLE = -float(np.log(_CLIP))  # the loss of a class that the training rows do not have
_CERTAIN = -float(np.log(1.0 - _CLIP))
# In small models a Hessian costs no more than the exponentials. In large ones it serves as long as
# steps still shrink to less than a fifth, about.
_SMALL = 20
_REUSE = 0.2
# Of scikit-learn's solvers for large models this one is faster than L-BFGS and ends closer to the
# minimum (enron, bibtex). Its tolerance is that of the derivatives of the mean loss.
_SOLVER = "newton-cg"
_SOLVER_ITERATIONS = 10
_SOLVER_TOLERANCE = 1e-3


class Settings(NamedTuple):
    """What is minimised, and how closely."""

    penalties: Floats  # (L,) in the order of the grid
    penalize_intercept: bool
    reference_class: bool
    max_iter: int
    tol: float


class Fitted(NamedTuple):
    """A model of one target."""

    coef: Floats  # (1, p) for two classes, (K, p) for more
    intercept: Floats  # (1,) or (K,)
    best: int  # index of the penalty
    losses: Floats  # (folds, L)
    n_iter: int  # the most iterations of a fit
    stuck: int  # number of fits that did not converge


class _Path(NamedTuple):
    """The fits of one set of rows along descending penalties."""

    theta: Floats  # (L, q, J)
    losses: Floats  # (L,), sums over the test rows
    steps: Integers  # (L,), negative where a fit did not converge


def fit_target(
    design: Design,
    code: Integers,
    n_classes: int,
    extra: Floats | None,
    folds: list[Fold],
    settings: Settings,
) -> Fitted:
    """Choose the penalty and fit the model of one target.

    Parameters
    ----------
    design : Design
        The features and the weights of the rows.
    code : ndarray of shape (n,)
        Class of each row, 0 to K - 1; every class occurs.
    n_classes : int
        K.
    extra : ndarray of shape (n,) or None
        A column to append to the features.
    folds : list of Fold
        Where the penalties are judged.
    settings : Settings
        What is minimised.

    Returns
    -------
    Fitted
        The model.
    """
    n_logits = max(1, n_classes - 1)
    if n_classes == 1:
        p = design.p + (extra is not None)
        nothing = np.zeros((len(folds), len(settings.penalties)))
        return Fitted(np.zeros((1, p)), np.zeros(1), 0, nothing, 0, 0)
    if design.suits_newton(n_logits, extra) or (settings.reference_class and n_logits > 1):
        # scikit-learn knows no reference class: such models take Newton steps, whatever their size
        return _Newton(design, code, n_classes, extra, settings).fit(folds)
    return _Wide(design, code, n_classes, extra, settings).fit(folds)


class _Solver:
    """What the two ways have in common: losses by fold, the first best penalty, the last fit."""

    def __init__(
        self, design: Design, code: Integers, n_classes: int, extra: Any, settings: Settings
    ) -> None:
        self.weight = design.weight
        self.code = code
        self.n_classes = n_classes
        self.settings = settings
        self.order = np.argsort(-settings.penalties, kind="stable")  # warm starts: from stiff on
        self.n_iter = 0
        self.stuck = 0

    def note(self, steps: Integers) -> None:
        """Count iterations, and fits that did not converge."""
        self.n_iter = max(self.n_iter, int(np.abs(steps).max()))
        self.stuck += int(np.count_nonzero(steps < 0))

    def fold_losses(self, fold: Fold) -> Floats:
        """Give the mean loss on the test rows for every penalty, in the order of the grid."""
        in_train = np.bincount(self.code[fold.train], minlength=self.n_classes) > 0  # (K,)
        weight = self.weight[fold.test]
        in_test = np.bincount(self.code[fold.test], weights=weight, minlength=self.n_classes)
        missed = float(in_test[~in_train].sum())
        sums = np.full(len(self.order), missed * _IMPOSSIBLE)  # (L,)
        if np.count_nonzero(in_train) == 1:
            sums += float(in_test[in_train].sum()) * _CERTAIN
        else:
            sums[self.order] += self.path_losses(fold, np.flatnonzero(in_train))
        return np.asarray(sums / weight.sum())

    def path_losses(self, fold: Fold, classes: Integers) -> Floats:
        """Give the sums of the losses on test rows of these classes, penalties descending."""
        raise NotImplementedError

    def last(self, best: int) -> tuple[Floats, Floats]:
        """Fit all rows with the chosen penalty; give weights and intercepts."""
        raise NotImplementedError

    def fit(self, folds: list[Fold]) -> Fitted:
        """Judge, choose, fit."""
        losses = np.array([self.fold_losses(fold) for fold in folds])  # (folds, L)
        best = int(np.argmin(losses.mean(axis=0)))  # the first minimum
        coef, intercept = self.last(best)
        return Fitted(coef, intercept, best, losses, self.n_iter, self.stuck)


class _Newton(_Solver):
    """Newton steps on groups of equal rows, the Hessian formed or not."""

    def __init__(
        self, design: Design, code: Integers, n_classes: int, extra: Any, settings: Settings
    ) -> None:
        super().__init__(design, code, n_classes, extra, settings)
        self.groups: Grouped = design.grouped(extra)
        self.cell = self.groups.of_row * n_classes + code  # (n,)
        self.found: list[Floats] = []  # one theta (L, q, J) per fold that has all classes

    def counts(self, rows: Any) -> Floats:
        """Give the weight of each class in each group."""
        G = len(self.groups.Z)
        cells = G * self.n_classes
        flat = np.bincount(self.cell[rows], weights=self.weight[rows], minlength=cells)
        return np.asarray(flat, dtype=np.float64).reshape(G, self.n_classes)

    def path(
        self, counts: Floats, tests: Floats, penalties: Floats, start: Floats | None
    ) -> _Path:
        """Fit one penalty after the other."""
        from fgfm._kernels.ridge import fit_path

        settings = self.settings
        (G, q), K = self.groups.Z.shape, counts.shape[1]
        # Where all rows are equal, classes get their frequencies, under the paper's penalty too.
        free_intercept = G == 1 or not settings.penalize_intercept
        theta = np.zeros((len(penalties), q, K - 1))
        if start is not None:
            theta[0] = start
        elif free_intercept:
            total = np.log(counts.sum(axis=0))
            theta[0, 0] = total[1:] - total[0]
        symmetric = K > 2 and not settings.reference_class
        first = 1 if free_intercept else 0
        train = counts.any(axis=1)  # (G,)
        test = tests.any(axis=1)  # (G,)
        losses = np.empty(len(penalties))
        steps = np.empty(len(penalties), dtype=np.int64)
        if q * (K - 1) > _design.NEWTON_LIMIT:
            theta, steps = fit_path_iteratively(
                self.groups.Z[train],
                counts[train],
                penalties,
                first,
                symmetric,
                settings.tol,
                settings.max_iter,
                theta[0],
            )
            for at, weights in enumerate(theta):
                losses[at] = _clipped_loss(self.groups.Z[test] @ weights, tests[test])
        else:
            pairs = self.groups.pairs
            fit_path(
                self.groups.Z[train],
                pairs[train] if len(pairs) else pairs,
                np.ascontiguousarray(counts[train]),
                self.groups.Z[test],
                np.ascontiguousarray(tests[test]),
                penalties,
                1.0 / K if symmetric else 0.0,
                first,
                settings.tol,
                settings.max_iter,
                _REUSE if q * (K - 1) > _SMALL else 0.0,
                theta,
                losses,
                steps,
            )
        self.note(steps)
        return _Path(theta, losses, steps)

    def path_losses(self, fold: Fold, classes: Integers) -> Floats:
        """Give the sums of the losses on test rows of these classes, penalties descending."""
        counts, tests = self.counts(fold.train), self.counts(fold.test)  # (G, K)
        if len(classes) < self.n_classes:
            counts, tests = counts[:, classes], tests[:, classes]
        path = self.path(counts, tests, self.settings.penalties[self.order], None)
        if len(classes) == self.n_classes:
            self.found.append(path.theta)
        return path.losses

    def last(self, best: int) -> tuple[Floats, Floats]:
        """Fit all rows with the chosen penalty; give weights and intercepts."""
        counts = self.counts(slice(None))
        at = int(np.flatnonzero(self.order == best)[0])
        if self.found:
            penalties = self.settings.penalties[[best]]
            start = np.mean([theta[at] for theta in self.found], axis=0)
        else:
            penalties = self.settings.penalties[self.order[: at + 1]]
            start = None
        theta = self.path(counts, np.zeros_like(counts), penalties, start).theta[-1]  # (q, J)
        coef, intercept = self.groups.coefficients(theta)
        if self.n_classes > 2:
            # the reference class comes back; symmetric weights sum to 0 over the classes
            coef = np.concatenate([np.zeros((1, coef.shape[1])), coef])
            intercept = np.concatenate([[0.0], intercept])
            if not self.settings.reference_class:
                coef -= coef.mean(axis=0)
                intercept -= intercept.mean()
        return coef, intercept


def _clipped_loss(eta: Floats, counts: Floats) -> float:
    """Give the negative log-likelihood with all probabilities clipped."""
    proba = softmax(np.column_stack([np.zeros(len(eta)), eta]), axis=1)  # (G, K)
    return -float(np.vdot(counts, np.log(np.clip(proba, _CLIP, 1.0 - _CLIP))))


class _Wide(_Solver):
    """scikit-learn's solver, row by row."""

    def __init__(
        self, design: Design, code: Integers, n_classes: int, extra: Any, settings: Settings
    ) -> None:
        super().__init__(design, code, n_classes, extra, settings)
        self.X, self.mean = design.rows(extra)

    def models(self, rows: Any, penalties: Floats) -> Any:
        """Yield the model of each penalty, started from the one before."""
        settings = self.settings
        model = LogisticRegression(
            fit_intercept=not settings.penalize_intercept,
            max_iter=settings.max_iter * _SOLVER_ITERATIONS,
            solver=_SOLVER,
            tol=settings.tol * _SOLVER_TOLERANCE,
            warm_start=True,
        )
        X = self.with_constant(self.X[rows])
        for penalty in penalties:
            model.set_params(C=0.5 / penalty)
            with warnings.catch_warnings():
                # Counted below. A line search that ends early has met the limits of rounding.
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(X, self.code[rows], sample_weight=self.weight[rows])
            steps = model.n_iter_.astype(np.int64)
            self.note(np.where(steps < model.max_iter, steps, -steps))
            yield model

    def with_constant(self, X: Any) -> Any:
        """Append the column whose weight is the intercept, where that is penalised."""
        if not self.settings.penalize_intercept:
            return X
        one = np.ones((X.shape[0], 1))
        if sparse.issparse(X):
            return sparse.hstack([X, sparse.csr_array(one)], format="csr")
        return np.column_stack([X, one])

    def path_losses(self, fold: Fold, classes: Integers) -> Floats:
        """Give the sums of the losses on test rows of these classes, penalties descending."""
        known = fold.test[np.isin(self.code[fold.test], classes)]
        losses = np.zeros(len(self.order))
        if len(known) == 0:
            return losses
        X = self.with_constant(self.X[known])
        column = np.searchsorted(classes, self.code[known])
        models = self.models(fold.train, self.settings.penalties[self.order])
        for at, model in enumerate(models):
            proba = model.predict_proba(X)[np.arange(len(known)), column]
            losses[at] = -(self.weight[known] @ np.log(np.clip(proba, _CLIP, 1.0 - _CLIP)))
        return losses

    def last(self, best: int) -> tuple[Floats, Floats]:
        """Fit all rows with the chosen penalty; give weights and intercepts."""
        at = int(np.flatnonzero(self.order == best)[0])
        everything = np.arange(len(self.code))
        for model in self.models(everything, self.settings.penalties[self.order[: at + 1]]):
            coef, intercept = model.coef_, model.intercept_
        if self.settings.penalize_intercept:
            return coef[:, :-1].copy(), coef[:, -1].copy()
        return coef, intercept - coef @ self.mean
