"""Large models: many targets at a time, on the same rows and with the same folds.

The problems of a fold, one per target, are solved side by side (`_newton_cg`), for one penalty
after the other from the largest to the smallest. All folds proceed together, so that a target can
stop where smaller penalties are clearly worse: these take most of the time. Then all rows are
fitted, each target with its own best penalty.

`python -m benchmarks.ridge_solvers` fits the same models one by one with Cholesky factors. On real
data that took 6 to 180 times as long or did not end (2 times on genbase, where few rows differ),
and for several classes on text it would need up to 42 GiB. The penalties were the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm._utils.folds import Fold
from fgfm.ridge._arrays import Floats, contiguous, filled, namespace, to_device, to_host
from fgfm.ridge._design import Design, GroupedRows, RowSubset
from fgfm.ridge._newton_cg import RidgePath
from fgfm.ridge._objective import ProblemRows, column_sums, logits, probabilities
from fgfm.ridge._problem import (
    CLIP,
    RidgeSettings,
    RidgeTarget,
    TargetFit,
    class_counts,
    untrained_loss,
)

__all__ = ["fit_batch"]

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

# Fits in folds only serve to choose a penalty. They end when the logits are accurate to 1e-5, or
# the mean loss to 1e-8. The losses on held-out rows were then off by 1e-7 for penalties above 0.1,
# by 3e-6 at 0.01, and by 1e-4 at 1e-4 (enron, bibtex).
_FOLD_TOLERANCE = 3e-3
_FOLD_GAP = 1e-8

# A target stops when its mean loss has fallen below that of the largest penalty, and then exceeds
# the least by this fraction, and by more than its inaccuracy. It may rise before it falls: where
# many columns are irrelevant, and a relevant one is small. `python -m benchmarks.penalties`
# compares with trying all penalties.
_CLEARLY_WORSE = 0.05
_LOSS_NOISE = 1e-6

# With more folds than this each trains on all rows, those of others with weight 0: up to a tenth
# more work in a K-fold, and no copies of the rows.
_COPIED_FOLDS = 10


def fit_batch(
    design: Design, targets: list[RidgeTarget], settings: RidgeSettings
) -> list[TargetFit]:
    """Choose the penalties and fit the models of targets that differ in their classes alone.

    Parameters
    ----------
    design : Design
        The features and the weights of the rows.
    targets : list of RidgeTarget
        With the same number of classes and the same folds. If X is dense, with the same extra
        column; if it is sparse, all with one or all without.
    settings : RidgeSettings
        The objective and the stopping rule.

    Returns
    -------
    list of TargetFit
        The models.
    """
    return _Batch(design, targets, settings).fit()


class _Members(NamedTuple):
    """Some targets of a batch, and those of their classes that occur in some rows."""

    targets: Integers  # (B,): indices
    classes: Integers  # (B, K)


class _FoldProblems(NamedTuple):
    """Targets with equally many classes in the training rows of a fold."""

    fold: Integers  # (B,)
    members: _Members
    train: ProblemRows
    train_counts: Floats  # (G, B, K)
    start: Floats  # (q, B, C)
    test: ProblemRows
    test_counts: Floats  # (G, B, K)


class _Batch:
    def __init__(
        self, design: Design, targets: list[RidgeTarget], settings: RidgeSettings
    ) -> None:
        self.design = design
        self.weight = design.weight
        self.targets = targets
        self.settings = settings
        self.device = settings.device
        self.n_classes = targets[0].n_classes
        # from the largest penalty to the smallest: each is a warm start for the next
        self.order = np.argsort(-settings.penalties, kind="stable")
        self.symmetric = self.n_classes > 2 and not settings.reference_class
        self.extra, self.extra_mean = _extra_columns(design, targets)
        self.groups: GroupedRows = (
            design.sparse_rows() if design.is_sparse else design.grouped(targets[0].extra)
        )
        # If all rows are equal, the probabilities are the class frequencies: the intercept is
        # then not penalised, even under the paper's penalty.
        self.free_intercept = self.groups.Z.shape[0] == 1 or not settings.penalize_intercept
        B = len(targets)
        self.n_iter = np.zeros(B, dtype=np.int64)
        self.n_failed = np.zeros(B, dtype=np.int64)
        self.best = np.zeros(B, dtype=np.int64)  # indices of the best penalties so far
        # weights with these penalties, summed over the folds that have all classes
        q = self.groups.Z.shape[1] + (self.extra is not None)
        C = self.n_classes if self.symmetric else self.n_classes - 1
        self.fold_theta = filled((q, B, C), 0.0, self.device)
        self.n_complete = np.zeros(B)  # number of these folds
        self.subsets: list[RowSubset] = []  # keeps the rows of the folds alive for other batches
        self.held_out: Floats | None = None  # (n, B, K)
        if settings.held_out:
            self.held_out = filled((design.n, B, self.n_classes), np.nan, self.device)
        self.last_fold = np.full(design.n, -1)  # the last one that holds a row out
        for f, fold in enumerate(targets[0].folds):
            self.last_fold[fold.test] = f
        self.reported = [  # rows whose held-out probabilities come from a fold
            fold.test[self.last_fold[fold.test] == f] for f, fold in enumerate(targets[0].folds)
        ]
        self.position: list[Integers] = []  # of these rows, among the groups of the test rows
        self.Z: Any = None  # the rows on the device
        self.codes: Any = None  # (B, n), the classes on the device
        if self.device is not None:
            self.Z = self.on_device(self.groups.Z)
            self.codes = self.on_device(np.stack([target.code for target in targets]))

    def on_device(self, array: Any) -> Any:
        """Copy an array to the device, if there is one."""
        return to_device(array, self.device)

    def fit(self) -> list[TargetFit]:
        """Compute the test losses, choose the penalties, and fit all rows."""
        losses = self.cross_validate()
        held_out = None  # (B, n, K)
        if self.held_out is not None:
            held_out = to_host(contiguous(self.held_out.swapaxes(0, 1)))
        return [
            TargetFit(
                coef,
                intercept,
                int(self.best[b]),
                losses[:, b].copy(),
                int(self.n_iter[b]),
                int(self.n_failed[b]),
                None if held_out is None else held_out[b],
            )
            for b, (coef, intercept) in enumerate(self.refit())
        ]

    def cross_validate(self) -> Floats:
        """Find the best penalties; return the mean losses on test rows, (folds, B, L)."""
        folds = self.targets[0].folds
        B = len(self.targets)
        problems: list[_FoldProblems] = []
        fixed = np.empty((len(folds), B))  # losses that no fit can change
        for f, fold in enumerate(folds):
            of_fold, fixed[f] = self.fold_problems(f, fold)
            problems += of_fold
        if self.device is not None:
            problems = _join_folds(problems)
        first = 1 if self.free_intercept else 0
        paths = [_FoldPath(some, first, self.device) for some in problems]
        del problems  # their training counts
        mass = np.array([self.weight[fold.test].sum() for fold in folds])
        losses = np.full((len(folds), B, len(self.order)), np.inf)
        least = np.full(B, np.inf)
        active = np.ones(B, dtype=bool)
        tol = max(self.settings.tol, _FOLD_TOLERANCE)
        for at in self.order:
            sums = fixed.copy()  # (folds, B)
            for path in paths:
                penalty = np.full(len(path.members), self.settings.penalties[at])
                self.follow(path.path, path.members, penalty, tol, _FOLD_GAP)
                sums[path.fold, path.members] += path.losses()
            losses[:, active, at] = sums[:, active] / mass[:, None]
            mean = losses[:, :, at].mean(axis=0)  # inf for targets that have stopped
            # of equal ones the first in the grid
            better = active & ((mean < least) | ((mean == least) & (at < self.best)))
            self.best[better], least[better] = at, mean[better]
            self.store_fold_fits(paths, better)
            fallen = self.best != self.order[0]
            active &= ~fallen | (mean <= (1.0 + _CLEARLY_WORSE) * least + _LOSS_NOISE)
            paths = [path for path in paths if path.keep(active)]
            if not active.any():
                break
        return losses

    def fold_problems(self, f: int, fold: Fold) -> tuple[list[_FoldProblems], Floats]:
        """Return the problems of a fold, and the test losses (B,) that no fit can change."""
        fixed = np.zeros(len(self.targets))
        by_size: dict[int, list[tuple[int, Integers]]] = {}
        for b, target in enumerate(self.targets):
            classes, fixed[b] = untrained_loss(target, self.weight, fold)
            by_size.setdefault(len(classes), []).append((b, classes))
        if self.held_out is not None:
            there = self.on_device(self.reported[f])
            self.held_out[there] = 0.0
            for b, classes in by_size.get(1, []):
                self.held_out[there, b, int(classes[0])] = 1.0
        on_device = self.device is not None
        many = len(self.targets[0].folds) > _COPIED_FOLDS
        train = self.design.subset(self.groups, fold.train, keep_all=many or on_device)
        test = self.design.subset(self.groups, fold.test, keep_all=on_device)
        self.subsets += [train, test]
        self.position.append(
            np.searchsorted(test.kept, self.groups.of_row[self.reported[f]]).astype(np.int64)
        )
        problems = []
        for K, pairs in by_size.items():
            if K == 1:
                continue
            members = _Members(
                np.array([b for b, _ in pairs]), np.array([classes for _, classes in pairs])
            )
            rows, counts = self.rows(train, members.targets), self.counts(members, train)
            start = self.start(rows, counts, K > 2 and self.symmetric)
            test_rows, test_counts = self.rows(test, members.targets), self.counts(members, test)
            fold_of = np.full(len(pairs), f)
            problems.append(
                _FoldProblems(fold_of, members, rows, counts, start, test_rows, test_counts)
            )
            if self.n_classes == K:
                self.n_complete[members.targets] += 1.0
        return problems, fixed

    def rows(self, subset: RowSubset, members: Integers) -> ProblemRows:
        """Return the rows of a subset with the extra columns of some targets."""
        extra = None
        if self.extra is not None:
            extra = self.on_device(self.extra[np.ix_(subset.kept, members)])
        Z = subset.Z if self.device is None else self.Z
        return ProblemRows(Z, self.on_device(subset.weight), extra, len(self.targets[0].folds))

    def counts(self, members: _Members, subset: RowSubset) -> Floats:
        """Return the weight of each class in each group of a subset, (G, B, K)."""
        if self.device is not None:
            return self.device_counts(members, subset)
        cells = [
            class_counts(self.groups, self.weight, self.targets[b], subset.rows)[
                np.ix_(subset.kept, classes)
            ]
            for b, classes in zip(*members, strict=True)
        ]
        return np.stack(cells, axis=1)

    def device_counts(self, members: _Members, subset: RowSubset) -> Any:
        """Return the same as `counts`, computed on the device."""
        code = self.codes[self.on_device(members.targets)].T  # (n, B)
        weight = self.on_device(self.weight[subset.rows])
        group = self.on_device(np.searchsorted(subset.kept, self.groups.of_row[subset.rows]))
        rows = slice(None) if isinstance(subset.rows, slice) else self.on_device(subset.rows)
        classes = self.on_device(members.classes)
        shape = len(subset.kept), *members.classes.shape
        counts = weight.new_zeros(shape)  # (G, B, K)
        for k in range(shape[2]):
            of_class = weight[:, None] * (code[rows] == classes[:, k])
            counts[:, :, k].index_put_((group,), of_class, accumulate=True)
        return counts

    def start(self, rows: ProblemRows, counts: Floats, symmetric: bool) -> Floats:
        """Return weights (q, B, C) of 0, with intercepts that give the class frequencies."""
        _, B, K = counts.shape
        q = rows.Z.shape[1] + (rows.extra is not None)
        theta = np.zeros((q, B, K if symmetric else K - 1))
        if self.free_intercept:
            level = np.log(to_host(column_sums(counts)))  # (B, K)
            level -= level.mean(axis=1, keepdims=True) if symmetric else level[:, :1]
            theta[0] = level if symmetric else level[:, 1:]
        return self.on_device(theta)

    def follow(
        self, path: RidgePath, members: Integers, penalty: Floats, tol: float, gap: float
    ) -> None:
        """Fit the next penalty, and update the numbers of iterations and failures."""
        steps = to_host(path.follow(self.on_device(penalty), tol, gap, self.settings.max_iter))
        self.n_iter[members] = np.maximum(self.n_iter[members], np.abs(steps))
        self.n_failed[members] += steps < 0

    def store_fold_fits(self, paths: list[_FoldPath], better: Flags) -> None:
        """Store the weights and test probabilities of targets with a new least loss."""
        self.fold_theta[:, self.on_device(better)] = 0.0
        for path in paths:
            for f in np.unique(path.fold):
                chosen = np.flatnonzero(better[path.members] & (path.fold == f))
                some, members = self.on_device(chosen), self.on_device(path.members[chosen])
                if path.n_classes == self.n_classes:
                    self.fold_theta[:, members] += path.path.theta[:, some]
                if self.held_out is not None:
                    reported = self.on_device(self.reported[f])[:, None, None]
                    position = self.on_device(self.position[f])[:, None]
                    classes = self.on_device(path.classes[chosen])
                    self.held_out[reported, members[:, None], classes] = path.proba[position, some]

    def refit(self) -> list[tuple[Floats, Floats]]:
        """Fit all rows with the chosen penalties; return weights and intercepts."""
        B = len(self.targets)
        members = _Members(np.arange(B), np.tile(np.arange(self.n_classes), (B, 1)))
        subset = RowSubset(self.groups, self.weight, slice(None))
        rows, counts = self.rows(subset, members.targets), self.counts(members, subset)
        start = self.start(rows, counts, self.symmetric)
        found = self.n_complete > 0.0
        at, n_complete = self.on_device(found), self.on_device(self.n_complete[found, None])
        start[:, at] = self.fold_theta[:, at] / n_complete
        path = RidgePath(rows, counts, 1 if self.free_intercept else 0, start)
        penalty = self.settings.penalties[self.best]
        self.follow(path, members.targets, penalty, self.settings.tol, 0.0)
        theta = to_host(path.theta)
        return [self.coefficients(theta[:, b], b) for b in range(B)]

    def coefficients(self, theta: Floats, b: int) -> tuple[Floats, Floats]:
        """Return the weights and intercepts of a target for the columns of X."""
        if self.extra is None:
            coef, intercept = self.groups.coefficients(theta)
        else:
            coef, intercept = theta[1:].T.copy(), theta[0] - theta[-1] * self.extra_mean[b]
        if self.symmetric:
            # they sum to 0 up to rounding errors
            return coef - coef.mean(axis=0), intercept - intercept.mean()
        if self.n_classes > 2:
            coef = np.concatenate([np.zeros((1, coef.shape[1])), coef])
            intercept = np.concatenate([[0.0], intercept])
        return np.ascontiguousarray(coef), intercept


def _extra_columns(design: Design, targets: list[RidgeTarget]) -> tuple[Floats | None, Floats]:
    """Return the centred extra columns beside a sparse X, (n, B) or None, and their means (B,)."""
    columns = [target.extra for target in targets if target.extra is not None]
    if not design.is_sparse or not columns:
        return None, np.zeros(len(targets))
    # one by one: NumPy sums a single column in another order than several
    means = np.array([design.mean(column[:, None])[0] for column in columns])
    return np.stack(columns, axis=1) - means, means


def _join_folds(problems: list[_FoldProblems]) -> list[_FoldProblems]:
    """Join the problems of all folds that have equally many classes; all are on the same rows."""
    by_size: dict[int, list[_FoldProblems]] = {}
    for some in problems:
        by_size.setdefault(some.train_counts.shape[2], []).append(some)
    joined = []
    for parts in by_size.values():
        fold, members, train, train_counts, start, _, test_counts = zip(*parts, strict=True)
        xp = namespace(start[0])
        weight = [
            rows.weight[:, None] * xp.ones_like(theta[:1, :, 0])  # (G, B)
            for rows, theta in zip(train, start, strict=True)
        ]
        extra = [rows.extra for rows in train]
        rows = train[0]._replace(
            weight=xp.concatenate(weight, axis=1),
            extra=None if extra[0] is None else xp.concatenate(extra, axis=1),
        )
        joined.append(
            _FoldProblems(
                np.concatenate(fold),
                _Members(*(np.concatenate(arrays) for arrays in zip(*members, strict=True))),
                rows,
                xp.concatenate(train_counts, axis=1),
                xp.concatenate(start, axis=1),
                rows,
                xp.concatenate(test_counts, axis=1),
            )
        )
    return joined


class _FoldPath:
    """The path of targets with equally many classes in the training rows of their folds."""

    def __init__(self, problems: _FoldProblems, first: int, device: str | None) -> None:
        self.device = device
        self.fold, (self.members, self.classes) = problems.fold, problems.members
        self.path = RidgePath(problems.train, problems.train_counts, first, problems.start)
        self.rows = problems.test
        self.counts = problems.test_counts  # (G, B, K)
        self.n_classes = self.counts.shape[2]
        self.proba = np.empty(0)  # (G, B, K), set by `losses`

    def losses(self) -> Floats:
        """Return the losses (B,) on the test rows at the last penalty of the path."""
        theta = self.path.theta
        reference = theta.shape[2] < self.n_classes
        prob, log_mass = probabilities(logits(self.rows.Z, self.rows.extra, theta), reference)
        xp = namespace(theta)
        if reference:
            prob = xp.concatenate([xp.exp(-log_mass)[:, :, None], prob], axis=2)
        self.proba = prob
        log_p = xp.log(xp.clip(prob, CLIP, 1.0 - CLIP))
        return to_host(-column_sums(self.counts * log_p).sum(axis=1))

    def keep(self, active: Flags) -> bool:
        """Continue with the active targets; return False if there are none."""
        kept = np.flatnonzero(active[self.members])
        if 0 < len(kept) < len(self.members):
            self.fold = self.fold[kept]
            self.members, self.classes = self.members[kept], self.classes[kept]
            some = to_device(kept, self.device)
            self.path.keep(some)
            self.counts = self.counts[:, some]
            if self.rows.extra is not None:
                self.rows = self.rows._replace(extra=self.rows.extra[:, some])
        return len(kept) > 0
