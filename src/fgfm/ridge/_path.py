"""Targets: the loss of every penalty on every fold, then the model with the best penalty.

Two ways lead to the same minimum. A small model is fitted by itself, by Newton steps with its
Hessian (`fgfm._kernels.ridge`). Larger ones are fitted many at a time (`_batch`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from fgfm._utils.parallel import Shared, one_blas_thread
from fgfm.ridge._batch import fit_batch
from fgfm.ridge._design import Design, Fold, Grouped
from fgfm.ridge._preconditioner import FACTORED, FACTORS
from fgfm.ridge._problem import Fitted, Settings, Target, class_counts, constant_losses

__all__ = ["Common", "cut", "fit_chunks"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

# In small models a Hessian costs no more than the exponentials. In large ones it serves as long as
# steps still shrink to less than a fifth, about.
_SMALL = 20
_REUSE = 0.2
# Columns of weights in a chunk of large models, and numbers in one of its arrays (32 MB). More
# columns would hardly make products with the rows faster. Each fold has arrays of its own: with
# more folds than so many a chunk has fewer columns.
_COLUMNS = 64
_NUMBERS = 1 << 22
_FOLDS = 3


def cut(design: Design, targets: list[Target]) -> list[list[int]]:
    """Give the chunks in which targets are fitted, as lists of their indices.

    Each small model is a chunk. Larger ones share one with others of as many classes, on the same
    rows and folds. What is in a chunk depends on the targets alone, not on who fits it.
    """
    alone = []
    alike: dict[tuple[int | None, ...], list[int]] = {}
    for t, target in enumerate(targets):
        if is_small(design, target):
            alone.append([t])
        else:
            # beside sparse rows every target may have its own column, or none of them
            rows = None if target.extra is None else 0 if design.is_sparse else id(target.extra)
            alike.setdefault((rows, id(target.folds), target.n_classes), []).append(t)
    smaller = min(design.n, design.p) + 1
    chunks = []
    for (_, _, n_classes), members in alike.items():
        folds = len(targets[members[0]].folds)
        room = _NUMBERS * _FOLDS // max(folds, _FOLDS)
        columns = min(_COLUMNS, room // max(design.n, design.p))
        if smaller <= FACTORED:
            columns = min(columns, FACTORS // (smaller**2 * folds))
        size = max(1, columns // (1 if n_classes == 2 else n_classes or 1))
        chunks += [members[at : at + size] for at in range(0, len(members), size)]
    return alone + chunks


def is_small(design: Design, target: Target) -> bool:
    """Tell whether a target needs no chunk."""
    K = target.n_classes
    return K == 1 or design.suits_newton(K - 1, target.extra)


class Common(Shared):
    """What the jobs of all targets share.

    Parameters
    ----------
    design : Design
        The features and the weights of the rows.
    settings : Settings
        What is minimised.
    targets : list of Target
        The targets: folds that are the same for all are held here, and left out of the jobs.
    """

    def __init__(self, design: Design, settings: Settings, targets: list[Target]) -> None:
        self.design = design
        self.settings = settings
        one = len({id(target.folds) for target in targets}) == 1
        self.folds: list[Fold] | None = targets[0].folds if one else None

    def pack(self, target: Target) -> Target:
        """Give a target as a job gets it."""
        return target if self.folds is None else target._replace(folds=[])

    def unpack(self, target: Target) -> Target:
        """Give a target whole again."""
        return target if self.folds is None else target._replace(folds=self.folds)


def fit_chunks(common: Common, chunks: list[list[Target]]) -> list[Fitted]:
    """Choose the penalties and fit the models of the targets of some chunks.

    Parameters
    ----------
    common : Common
        What all targets share.
    chunks : list of list of Target
        As `cut` has chosen them, packed.

    Returns
    -------
    list of Fitted
        The models.
    """
    with one_blas_thread:
        return [
            model
            for chunk in chunks
            for model in _fit_chunk(
                common.design, [common.unpack(target) for target in chunk], common.settings
            )
        ]


def _fit_chunk(design: Design, targets: list[Target], settings: Settings) -> list[Fitted]:
    first = targets[0]
    if first.n_classes == 1:
        p = design.p + (first.extra is not None)
        nothing = np.zeros((len(first.folds), len(settings.penalties)))
        sure = np.ones((design.n, 1)) if settings.held_out else None
        return [Fitted(np.zeros((1, p)), np.zeros(1), 0, nothing, 0, 0, sure)]
    if is_small(design, first):
        return [_Newton(design, first, settings).fit()]
    return fit_batch(design, targets, settings)


class _Newton:
    """One target on groups of equal rows."""

    def __init__(self, design: Design, target: Target, settings: Settings) -> None:
        self.weight = design.weight
        self.target = target
        self.settings = settings
        self.order = np.argsort(-settings.penalties, kind="stable")  # warm starts: from stiff on
        self.groups: Grouped = design.grouped(target.extra)
        self.found: list[Floats] = []  # one theta (L, q, J) per fold that has all classes
        self.judged: list[tuple[Fold, Integers, Floats | None]] = []  # its classes, its theta
        self.n_iter = 0
        self.stuck = 0

    def counts(self, rows: Any) -> Floats:
        """Give the weight of each class in each group."""
        return class_counts(self.groups, self.weight, self.target, rows)

    def path(
        self, counts: Floats, tests: Floats, penalties: Floats, start: Floats | None
    ) -> tuple[Floats, Floats]:
        """Fit one penalty after the other; give theta (L, q, J), and losses (L,) on the tests."""
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
        train = counts.any(axis=1)  # (G,)
        test = tests.any(axis=1)  # (G,)
        losses = np.empty(len(penalties))
        steps = np.empty(len(penalties), dtype=np.int64)
        pairs = self.groups.pairs
        fit_path(
            self.groups.Z[train],
            pairs[train] if len(pairs) else pairs,
            np.ascontiguousarray(counts[train]),
            self.groups.Z[test],
            np.ascontiguousarray(tests[test]),
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
        self.stuck += int(np.count_nonzero(steps < 0))
        return theta, losses

    def fold_losses(self, fold: Fold) -> Floats:
        """Give the mean loss on the test rows for every penalty, in the order of the grid."""
        in_train, known = constant_losses(self.target, self.weight, fold)
        sums = np.full(len(self.order), known)  # (L,)
        theta = None
        if len(in_train) > 1:
            counts, tests = self.counts(fold.train), self.counts(fold.test)  # (G, K)
            everything = len(in_train) == self.target.n_classes
            if not everything:
                counts, tests = counts[:, in_train], tests[:, in_train]
            theta, losses = self.path(counts, tests, self.settings.penalties[self.order], None)
            sums[self.order] += losses
            if everything:
                self.found.append(theta)
        self.judged.append((fold, in_train, theta))
        return np.asarray(sums / self.weight[fold.test].sum())

    def held_out(self, best: int) -> Floats:
        """Give what the folds say of their test rows, with the chosen penalty; (n, K)."""
        at = int(np.flatnonzero(self.order == best)[0])
        proba = np.full((len(self.target.code), self.target.n_classes), np.nan)
        for fold, classes, theta in self.judged:
            proba[fold.test] = 0.0
            if theta is None:
                proba[fold.test, classes[0]] = 1.0
                continue
            eta = self.groups.Z[self.groups.of_row[fold.test]] @ theta[at]  # (tests, J)
            eta = np.column_stack([np.zeros(len(eta)), eta])
            proba[np.ix_(fold.test, classes)] = softmax(eta, axis=1)
        return proba

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
        theta = self.path(counts, np.zeros_like(counts), penalties, start)[0][-1]  # (q, J)
        coef, intercept = self.groups.coefficients(theta)
        if self.target.n_classes > 2:
            # the reference class comes back; symmetric weights sum to 0 over the classes
            coef = np.concatenate([np.zeros((1, coef.shape[1])), coef])
            intercept = np.concatenate([[0.0], intercept])
            if not self.settings.reference_class:
                coef -= coef.mean(axis=0)
                intercept -= intercept.mean()
        return coef, intercept

    def fit(self) -> Fitted:
        """Judge, choose, fit."""
        losses = np.array([self.fold_losses(fold) for fold in self.target.folds])  # (folds, L)
        best = int(np.argmin(losses.mean(axis=0)))  # the first minimum
        coef, intercept = self.last(best)
        held_out = self.held_out(best) if self.settings.held_out else None
        return Fitted(coef, intercept, best, losses, self.n_iter, self.stuck, held_out)
