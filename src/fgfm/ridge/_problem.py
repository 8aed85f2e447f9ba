r"""Types shared by the Newton and conjugate-gradient solvers.

For one target with K classes, weights W and the loss

.. math::

    - \sum_i w_i \log p(y_i \mid x_i) + \lambda \sum_{kj} W_{kj}^2

both solvers compute the mean test loss of every penalty :math:`\lambda` on every fold
(`RidgeSettings`, `RidgeTarget`), and the minimum over all rows with the best penalty
(`TargetFit`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm._utils.folds import Fold
from fgfm.ridge._design import GroupedRows

__all__ = [
    "CLIP",
    "RidgeSettings",
    "RidgeTarget",
    "TargetFit",
    "class_counts",
    "untrained_loss",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

CLIP = 1e-15  # test probabilities are clipped to [CLIP, 1 - CLIP] before the logarithm
_LOSS_OF_ZERO = -float(np.log(CLIP))
_LOSS_OF_ONE = -float(np.log(1.0 - CLIP))


class RidgeSettings(NamedTuple):
    """The objective, the grid of penalties and the stopping rule."""

    penalties: Floats  # (L,) in the order of the grid
    penalize_intercept: bool
    reference_class: bool
    max_iter: int
    tol: float
    held_out: bool = False  # return the probabilities of the test rows too
    device: str | None = None  # of PyTorch, for large models


class RidgeTarget(NamedTuple):
    """The classes of the rows, and the folds that choose the penalty."""

    code: Integers  # (n,): 0 to K - 1; every class occurs
    n_classes: int
    extra: Floats | None  # (n,): a column to append to the features
    folds: list[Fold]


class TargetFit(NamedTuple):
    """The fitted model of one target."""

    coef: Floats  # (1, p) for two classes, (K, p) for more
    intercept: Floats  # (1,) or (K,)
    best: int  # index of the chosen penalty
    losses: Floats  # (folds, L)
    n_iter: int  # largest number of iterations of a fit
    n_failed: int  # number of fits that did not converge
    held_out: Floats | None = None  # (n, K): test probabilities; NaN for rows in no test fold


def class_counts(groups: GroupedRows, weight: Floats, target: RidgeTarget, rows: Any) -> Floats:
    """Return the weight of each class in each group of equal rows, (G, K)."""
    shape = groups.Z.shape[0], target.n_classes
    cell = groups.of_row[rows] * target.n_classes + target.code[rows]
    flat = np.bincount(cell, weights=weight[rows], minlength=shape[0] * shape[1])
    return np.asarray(flat, dtype=np.float64).reshape(shape)


def untrained_loss(target: RidgeTarget, weight: Floats, fold: Fold) -> tuple[Integers, float]:
    """Return the classes of the training rows, and the test loss that no fit can change.

    Test rows of a class without training rows have probability 0. If all training rows are of one
    class, its test rows have probability 1.
    """
    K = target.n_classes
    in_train = np.bincount(target.code[fold.train], minlength=K) > 0  # (K,)
    in_test = np.bincount(target.code[fold.test], weights=weight[fold.test], minlength=K)  # (K,)
    loss = float(in_test[~in_train].sum()) * _LOSS_OF_ZERO
    if np.count_nonzero(in_train) == 1:
        loss += float(in_test[in_train].sum()) * _LOSS_OF_ONE
    return np.flatnonzero(in_train), loss
