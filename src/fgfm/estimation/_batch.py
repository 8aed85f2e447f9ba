"""Targets whose models are large, many at a time: on the same rows, with the same folds.

The problems of one fold, one per target, are solved side by side along the penalties
(`_conjugate`); then those of all rows, each with its own best penalty.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm.estimation._conjugate import Rows, column_sums, fit_paths, logits, probabilities
from fgfm.estimation._design import Design, Fold, Grouped
from fgfm.estimation._targets import (
    CLIP,
    Fitted,
    Settings,
    Target,
    class_counts,
    constant_losses,
)

__all__ = ["fit_batch"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

# Of the fits in folds only the losses are wanted, to choose a penalty by. They end where the
# logits are known to 1e-5, or the mean loss to 1e-8. Losses on held-out rows then were off by 1e-7
# for penalties above 0.1, by 3e-6 at 0.01, and by 1e-4 at 1e-4 (enron, bibtex).
_FOLD_TOLERANCE = 3e-3
_FOLD_GAP = 1e-8


def fit_batch(design: Design, targets: list[Target], settings: Settings) -> list[Fitted]:
    """Choose the penalties and fit the models of targets that differ in their codes alone.

    Parameters
    ----------
    design : Design
        The features and the weights of the rows.
    targets : list of Target
        With the same number of classes and the same folds; with the same extra column or, if X is
        sparse, each with one or none with one.
    settings : Settings
        What is minimised.

    Returns
    -------
    list of Fitted
        The models.
    """
    return _Batch(design, targets, settings).fit()


class _Some(NamedTuple):
    """Targets of a batch, and those of their classes that are modelled."""

    members: Integers  # (B,)
    classes: list[Integers]  # B of the same length


class _Batch:
    def __init__(self, design: Design, targets: list[Target], settings: Settings) -> None:
        self.weight = design.weight
        self.targets = targets
        self.settings = settings
        self.n_classes = targets[0].n_classes
        self.order = np.argsort(-settings.penalties, kind="stable")  # warm starts: from stiff on
        self.symmetric = self.n_classes > 2 and not settings.reference_class
        self.extra: Floats | None = None  # (n, B), of sparse rows
        self.extra_mean = np.zeros(len(targets))
        if design.is_sparse:
            self.groups: Grouped = design.sparse_rows()
            columns = [target.extra for target in targets if target.extra is not None]
            if columns:
                self.extra = np.stack(columns, axis=1)
                # one by one: NumPy sums one column in another order than several
                means = [design.mean(column[:, None])[0] for column in columns]
                self.extra_mean = np.array(means)
                self.extra -= self.extra_mean
        else:
            self.groups = design.grouped(targets[0].extra)
        # Where all rows are equal, classes get their frequencies, under the paper's penalty too.
        self.free = self.groups.Z.shape[0] == 1 or not settings.penalize_intercept
        self.n_iter = np.zeros(len(targets), dtype=np.int64)
        self.stuck = np.zeros(len(targets), dtype=np.int64)
        # the sum of the weights that the folds found, and of how many
        self.found: Any = 0.0  # (L, q, B, C)
        self.times = np.zeros(len(targets))
        # probabilities (L, n, B, K) of test rows, L in the order of the fits
        self.judged: Floats | None = None
        if settings.held_out:
            shape = len(self.order), len(targets[0].code), len(targets), self.n_classes
            self.judged = np.full(shape, np.nan)

    def counts(self, some: _Some, rows: Any) -> tuple[Rows, Floats]:
        """Give the groups that some rows belong to, and the weight of each class there."""
        G = self.groups.Z.shape[0]
        group = self.groups.of_row[rows]
        total = np.bincount(group, self.weight[rows], minlength=G).astype(np.float64)
        kept = np.flatnonzero(total)
        counts = [
            class_counts(self.groups, self.weight, self.targets[b], rows)[np.ix_(kept, classes)]
            for b, classes in zip(some.members, some.classes, strict=True)
        ]
        extra = None if self.extra is None else self.extra[np.ix_(kept, some.members)]
        return Rows(self.groups.Z[kept], total[kept], extra), np.stack(counts, axis=1)

    def start(self, rows: Rows, counts: Floats, symmetric: bool) -> Floats:
        """Give weights (q, B, C) without features, with the frequencies of the classes."""
        _, B, K = counts.shape
        q = rows.Z.shape[1] + (rows.extra is not None)
        theta = np.zeros((q, B, K if symmetric else K - 1))
        if self.free:
            level = np.log(column_sums(counts))  # (B, K)
            level -= level.mean(axis=1, keepdims=True) if symmetric else level[:, :1]
            theta[0] = level if symmetric else level[:, 1:]
        return theta

    def paths(
        self,
        some: _Some,
        rows: Rows,
        counts: Floats,
        penalties: Floats,
        start: Floats,
        tol: float,
        gap: float,
    ) -> Floats:
        """Fit one penalty after the other; give theta (L, q, B, C)."""
        theta, steps = fit_paths(
            rows,
            counts,
            penalties,
            1 if self.free else 0,
            start.shape[2] == counts.shape[2],
            tol,
            gap,
            self.settings.max_iter,
            start,
        )
        self.n_iter[some.members] = np.maximum(
            self.n_iter[some.members], np.abs(steps).max(axis=0)
        )
        self.stuck[some.members] += np.count_nonzero(steps < 0, axis=0)
        return theta

    def fold_losses(self, fold: Fold) -> Floats:
        """Give the mean loss on the test rows for every target and penalty, (B, L)."""
        sums = np.zeros((len(self.targets), len(self.order)))
        alike: dict[int, list[tuple[int, Integers]]] = {}
        for b, target in enumerate(self.targets):
            classes, sums[b] = constant_losses(target, self.weight, fold)
            alike.setdefault(len(classes), []).append((b, classes))
        if self.judged is not None:
            self.judged[:, fold.test] = 0.0
        for K, pairs in alike.items():
            if K == 1:
                if self.judged is not None:
                    for b, classes in pairs:
                        self.judged[:, fold.test, b, classes[0]] = 1.0
                continue
            some = _Some(np.array([b for b, _ in pairs]), [classes for _, classes in pairs])
            rows, counts = self.counts(some, fold.train)
            penalties = np.repeat(self.settings.penalties[self.order, None], len(pairs), axis=1)
            start = self.start(rows, counts, K > 2 and self.symmetric)
            tol = max(self.settings.tol, _FOLD_TOLERANCE)
            theta = self.paths(some, rows, counts, penalties, start, tol, _FOLD_GAP)
            if self.n_classes == K:
                if len(pairs) < len(self.targets):
                    every = np.zeros((*theta.shape[:2], len(self.targets), theta.shape[3]))
                    every[:, :, some.members] = theta
                    self.found = self.found + every
                else:
                    self.found = self.found + theta
                self.times[some.members] += 1.0
            rows, counts = self.counts(some, fold.test)
            group = self.groups.of_row[fold.test]
            place = np.searchsorted(np.unique(group), group)  # (tests,) among those kept
            for k, (at, weights) in enumerate(zip(self.order, theta, strict=True)):
                proba = _probabilities(rows, weights, K)
                sums[some.members, at] += _clipped_losses(proba, counts)
                if self.judged is not None:
                    for j, (b, classes) in enumerate(pairs):
                        self.judged[k, fold.test[:, None], b, classes] = proba[place, j]
        return np.asarray(sums / self.weight[fold.test].sum())

    def last(self, best: Integers) -> list[tuple[Floats, Floats]]:
        """Fit all rows with the chosen penalties; give weights and intercepts."""
        everyone = np.arange(len(self.targets))
        some = _Some(everyone, [np.arange(self.n_classes)] * len(self.targets))
        rows, counts = self.counts(some, slice(None))
        start = self.start(rows, counts, self.symmetric)
        place = np.argsort(self.order)[best]  # (B,) among descending penalties
        for b in np.flatnonzero(self.times):
            start[:, b] = self.found[place[b], :, b] / self.times[b]
        penalties = self.settings.penalties[None, best]
        theta = self.paths(some, rows, counts, penalties, start, self.settings.tol, 0.0)[0]
        return [self.coefficients(theta[:, b], b) for b in range(len(self.targets))]

    def coefficients(self, theta: Floats, b: int) -> tuple[Floats, Floats]:
        """Give weights and intercepts of a target for the columns as they came."""
        if self.extra is None:
            coef, intercept = self.groups.coefficients(theta)
        else:
            coef, intercept = theta[1:].T.copy(), theta[0] - theta[-1] * self.extra_mean[b]
        if self.symmetric:
            # rounding has kept them from adding up to 0
            return coef - coef.mean(axis=0), intercept - intercept.mean()
        if self.n_classes > 2:
            coef = np.concatenate([np.zeros((1, coef.shape[1])), coef])
            intercept = np.concatenate([[0.0], intercept])
        return np.ascontiguousarray(coef), intercept

    def fit(self) -> list[Fitted]:
        """Judge, choose, fit."""
        folds = self.targets[0].folds
        losses = np.array([self.fold_losses(fold) for fold in folds])  # (folds, B, L)
        best = losses.mean(axis=0).argmin(axis=1)  # the first minima
        held_out: list[Floats | None] = [None] * len(best)
        if self.judged is not None:
            place = np.argsort(self.order)[best]
            held_out = [self.judged[k, :, b].copy() for b, k in enumerate(place)]
            self.judged = None
        return [
            Fitted(coef, intercept, int(at), losses[:, b].copy(), int(n_iter), int(stuck), proba)
            for b, ((coef, intercept), at, n_iter, stuck, proba) in enumerate(
                zip(self.last(best), best, self.n_iter, self.stuck, held_out, strict=True)
            )
        ]


def _probabilities(rows: Rows, theta: Floats, n_classes: int) -> Floats:
    """Give the probabilities of the classes, (G, B, K)."""
    reference = theta.shape[2] < n_classes
    prob, log_mass = probabilities(logits(rows.Z, rows.extra, theta), reference)
    return np.concatenate([np.exp(-log_mass)[:, :, None], prob], axis=2) if reference else prob


def _clipped_losses(proba: Floats, counts: Floats) -> Floats:
    """Give the negative log-likelihoods (B,) with all probabilities clipped."""
    log_p = np.log(np.clip(proba, CLIP, 1.0 - CLIP))
    return np.asarray(-column_sums(counts * log_p).sum(axis=1))
