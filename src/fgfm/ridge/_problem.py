"""What is asked of a solver, what it answers, and what both solvers do alike."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm.ridge._design import Fold, Grouped

__all__ = ["CLIP", "Fitted", "Settings", "Target", "class_counts", "constant_losses"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

CLIP = 1e-15  # of a probability whose logarithm is taken to judge it
_IMPOSSIBLE = -float(np.log(CLIP))  # the loss of a class that the training rows do not have
_CERTAIN = -float(np.log(1.0 - CLIP))


class Settings(NamedTuple):
    """What is minimised, and how closely."""

    penalties: Floats  # (L,) in the order of the grid
    penalize_intercept: bool
    reference_class: bool
    max_iter: int
    tol: float
    held_out: bool = False  # probabilities of the test rows are wanted too


class Target(NamedTuple):
    """The classes of the rows, and where penalties are judged."""

    code: Integers  # (n,): 0 to K - 1; every class occurs
    n_classes: int
    extra: Floats | None  # (n,): a column to append to the features
    folds: list[Fold]


class Fitted(NamedTuple):
    """A model of one target."""

    coef: Floats  # (1, p) for two classes, (K, p) for more
    intercept: Floats  # (1,) or (K,)
    best: int  # index of the penalty
    losses: Floats  # (folds, L)
    n_iter: int  # the most iterations of a fit
    stuck: int  # number of fits that did not converge
    held_out: Floats | None = None  # (n, K): what the folds say of their test rows; NaN elsewhere


def class_counts(groups: Grouped, weight: Floats, target: Target, rows: Any) -> Floats:
    """Give the weight of each class in each group, (G, K)."""
    shape = groups.Z.shape[0], target.n_classes
    cell = groups.of_row[rows] * target.n_classes + target.code[rows]
    flat = np.bincount(cell, weights=weight[rows], minlength=shape[0] * shape[1])
    return np.asarray(flat, dtype=np.float64).reshape(shape)


def constant_losses(target: Target, weight: Floats, fold: Fold) -> tuple[Integers, float]:
    """Give the classes of the training rows, and the loss on test rows that no model changes."""
    K = target.n_classes
    in_train = np.bincount(target.code[fold.train], minlength=K) > 0  # (K,)
    in_test = np.bincount(target.code[fold.test], weights=weight[fold.test], minlength=K)
    loss = float(in_test[~in_train].sum()) * _IMPOSSIBLE
    if np.count_nonzero(in_train) == 1:
        loss += float(in_test[in_train].sum()) * _CERTAIN
    return np.flatnonzero(in_train), loss
