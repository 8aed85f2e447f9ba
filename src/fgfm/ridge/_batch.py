"""Targets whose models are large, many at a time: on the same rows, with the same folds.

The problems of a fold, one per target, are solved side by side (`_conjugate`), for one penalty
after the other, from the largest on. All folds go on together, so that a target can end where it
is plain that smaller penalties only do worse: these take most of the time. Then all rows are
fitted, each target with its own best penalty.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm.ridge._conjugate import Path, Rows, column_sums, logits, probabilities
from fgfm.ridge._design import Design, Fold, Grouped, Part
from fgfm.ridge._problem import (
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
Flags = npt.NDArray[np.bool_]

# Of the fits in folds only the losses are wanted, to choose a penalty by. They end where the
# logits are known to 1e-5, or the mean loss to 1e-8. Losses on held-out rows then were off by 1e-7
# for penalties above 0.1, by 3e-6 at 0.01, and by 1e-4 at 1e-4 (enron, bibtex).
_FOLD_TOLERANCE = 3e-3
_FOLD_GAP = 1e-8

# A loss that has fallen, and then is so much above the least one, in parts of it and beyond what
# it is known to, ends the search of a target. Before it falls it may rise: where many columns tell
# nothing, and one that tells much is small. `python -m benchmarks.penalties` tries all penalties.
_CLEARLY = 0.05
_NOISE = 1e-6

# With more folds than so many each trains on all rows, others than its own with weight 0. For a
# K-fold that is up to a tenth more work, and there is no copy of the rows.
_COPIES = 10


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
        self.design = design
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
        self.best = np.zeros(len(targets), dtype=np.int64)  # the penalties, in the grid
        # the sum of the weights that the folds found with them, and of how many folds
        q = self.groups.Z.shape[1] + (self.extra is not None)
        C = self.n_classes if self.symmetric else self.n_classes - 1
        self.found = np.zeros((q, len(targets), C))
        self.times = np.zeros(len(targets))
        self.parts: list[Part] = []  # of the folds: others on the same rows find them here
        self.held_out: Floats | None = None  # (n, B, K)
        if settings.held_out:
            self.held_out = np.full((design.n, len(targets), self.n_classes), np.nan)
        self.teller = np.full(design.n, -1)  # the last fold that holds a row out speaks of it
        for f, fold in enumerate(targets[0].folds):
            self.teller[fold.test] = f

    def rows_of(self, part: Part, members: Integers) -> Rows:
        """Give rows with the columns that the targets have beside them."""
        extra = None if self.extra is None else self.extra[np.ix_(part.kept, members)]
        return Rows(part.Z, part.weight, extra, len(self.targets[0].folds))

    def counts(self, some: _Some, part: Part) -> Floats:
        """Give the weight of each class in each group of some rows, (G, B, K)."""
        counts = [
            class_counts(self.groups, self.weight, self.targets[b], part.rows)
            for b in some.members
        ]
        cells = [
            count[np.ix_(part.kept, classes)]
            for count, classes in zip(counts, some.classes, strict=True)
        ]
        return np.stack(cells, axis=1)

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

    def follow(
        self, path: Path, members: Integers, penalty: Floats, tol: float, gap: float
    ) -> None:
        """Fit the next penalty, and note how it went."""
        steps = path.follow(penalty, tol, gap, self.settings.max_iter)
        self.n_iter[members] = np.maximum(self.n_iter[members], np.abs(steps))
        self.stuck[members] += steps < 0

    def judges(self, at: int, fold: Fold) -> tuple[list[_Judge], Floats]:
        """Give those of a fold, and the losses (B,) on test rows that no model changes."""
        known = np.zeros(len(self.targets))
        told = fold.test[self.teller[fold.test] == at]
        alike: dict[int, list[tuple[int, Integers]]] = {}
        for b, target in enumerate(self.targets):
            classes, known[b] = constant_losses(target, self.weight, fold)
            alike.setdefault(len(classes), []).append((b, classes))
            if self.held_out is not None:
                self.held_out[told, b] = 0.0
                if len(classes) == 1:
                    self.held_out[told, b, classes[0]] = 1.0
        many = len(self.targets[0].folds) > _COPIES
        train = self.design.part(self.groups, fold.train, whole=many)
        test = self.design.part(self.groups, fold.test)
        self.parts += [train, test]
        place = np.searchsorted(test.kept, self.groups.of_row[told])
        found = []
        for K, pairs in alike.items():
            if K == 1:
                continue
            some = _Some(np.array([b for b, _ in pairs]), [classes for _, classes in pairs])
            rows, counts = self.rows_of(train, some.members), self.counts(some, train)
            start = self.start(rows, counts, K > 2 and self.symmetric)
            path = Path(rows, counts, 1 if self.free else 0, start)
            rows, counts = self.rows_of(test, some.members), self.counts(some, test)
            found.append(_Judge(at, told, place, some, path, rows, counts))
            if self.n_classes == K:
                self.times[some.members] += 1.0
        return found, known

    def judge(self) -> Floats:
        """Find the best penalties; give the mean losses on test rows, (folds, B, L)."""
        folds = self.targets[0].folds
        judges: list[_Judge] = []
        known = np.empty((len(folds), len(self.targets)))
        for f, fold in enumerate(folds):
            found, known[f] = self.judges(f, fold)
            judges += found
        mass = np.array([self.weight[fold.test].sum() for fold in folds])
        losses = np.full((len(folds), len(self.targets), len(self.order)), np.inf)
        least = np.full(len(self.targets), np.inf)
        on = np.ones(len(self.targets), dtype=bool)
        tol = max(self.settings.tol, _FOLD_TOLERANCE)
        for at in self.order:
            sums = known.copy()  # (folds, B)
            for judge in judges:
                penalty = np.full(len(judge.members), self.settings.penalties[at])
                self.follow(judge.path, judge.members, penalty, tol, _FOLD_GAP)
                sums[judge.at, judge.members] += judge.losses()
            losses[:, on, at] = sums[:, on] / mass[:, None]
            mean = losses[:, :, at].mean(axis=0)  # inf where it is not tried
            # of equal ones the first in the grid
            better = on & ((mean < least) | ((mean == least) & (at < self.best)))
            self.best[better], least[better] = at, mean[better]
            self.remember(judges, better)
            fallen = self.best != self.order[0]
            on &= ~fallen | (mean <= (1.0 + _CLEARLY) * least + _NOISE)
            judges = [judge for judge in judges if judge.keep(on)]
            if not on.any():
                break
        return losses

    def remember(self, judges: list[_Judge], better: Flags) -> None:
        """Keep what the folds found for targets whose loss was the least up to now."""
        self.found[:, better] = 0.0
        for judge in judges:
            some = np.flatnonzero(better[judge.members])
            members = judge.members[some]
            if judge.n_classes == self.n_classes:
                self.found[:, members] += judge.path.theta[:, some]
            if self.held_out is not None:
                for j, b in zip(some, members, strict=True):
                    cells = judge.told[:, None], b, judge.classes[j]
                    self.held_out[cells] = judge.proba[judge.place, j]

    def last(self) -> list[tuple[Floats, Floats]]:
        """Fit all rows with the chosen penalties; give weights and intercepts."""
        everyone = np.arange(len(self.targets))
        some = _Some(everyone, [np.arange(self.n_classes)] * len(self.targets))
        part = Part(self.groups, self.weight, slice(None))
        rows, counts = self.rows_of(part, everyone), self.counts(some, part)
        start = self.start(rows, counts, self.symmetric)
        warm = self.times > 0.0
        start[:, warm] = self.found[:, warm] / self.times[warm, None]
        path = Path(rows, counts, 1 if self.free else 0, start)
        self.follow(path, everyone, self.settings.penalties[self.best], self.settings.tol, 0.0)
        return [self.coefficients(path.theta[:, b], b) for b in range(len(everyone))]

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
        losses = self.judge()
        return [
            Fitted(
                coef,
                intercept,
                int(self.best[b]),
                losses[:, b].copy(),
                int(self.n_iter[b]),
                int(self.stuck[b]),
                None if self.held_out is None else self.held_out[:, b].copy(),
            )
            for b, (coef, intercept) in enumerate(self.last())
        ]


class _Judge:
    """Targets with the same number of classes in a fold: their path, and what it is judged by."""

    def __init__(
        self,
        at: int,
        told: Integers,
        place: Integers,
        some: _Some,
        path: Path,
        rows: Rows,
        counts: Floats,
    ) -> None:
        self.at = at  # among the folds
        self.told = told  # rows of which it gives probabilities
        self.place = place  # theirs among the groups
        self.members, self.classes = some
        self.path = path
        self.rows = rows
        self.counts = counts  # (G, B, K)
        self.n_classes = counts.shape[2]
        self.proba = np.empty(0)  # (G, B, K), once there are losses

    def losses(self) -> Floats:
        """Give the losses (B,) on the test rows, with the weights that the path has come to."""
        self.proba = _probabilities(self.rows, self.path.theta, self.n_classes)
        return _clipped_losses(self.proba, self.counts)

    def keep(self, on: Flags) -> bool:
        """Go on with the targets that do; tell whether there are any."""
        some = np.flatnonzero(on[self.members])
        if 0 < len(some) < len(self.members):
            self.path.keep(some)
            self.members = self.members[some]
            self.classes = [self.classes[j] for j in some]
            self.counts = self.counts[:, some]
            if self.rows.extra is not None:
                self.rows = self.rows._replace(extra=self.rows.extra[:, some])
        return len(some) > 0


def _probabilities(rows: Rows, theta: Floats, n_classes: int) -> Floats:
    """Give the probabilities of the classes, (G, B, K)."""
    reference = theta.shape[2] < n_classes
    prob, log_mass = probabilities(logits(rows.Z, rows.extra, theta), reference)
    return np.concatenate([np.exp(-log_mass)[:, :, None], prob], axis=2) if reference else prob


def _clipped_losses(proba: Floats, counts: Floats) -> Floats:
    """Give the negative log-likelihoods (B,) with all probabilities clipped."""
    log_p = np.log(np.clip(proba, CLIP, 1.0 - CLIP))
    return np.asarray(-column_sums(counts * log_p).sum(axis=1))
