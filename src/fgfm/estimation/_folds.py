"""The folds of a target, in which its models are calibrated and predict held-out rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm._utils.folds import Fold, make_folds
from fgfm._utils.parallel import Shared

__all__ = ["TargetFolds", "is_splitter", "target_folds"]

Integers = npt.NDArray[np.int64]


def is_splitter(value: Any) -> bool:
    """Return True for a scikit-learn splitter."""
    return hasattr(value, "split") and not isinstance(value, str)


def target_folds(
    calibration: Any, cv: Any, X: Any, rows: Integers, n: int, seed: int, n_splits: int
) -> TargetFolds:
    """Return the folds that the user chose; `n_splits` stratified ones by default."""
    if is_splitter(calibration):
        cv = calibration
    if cv is None or (isinstance(cv, (int, np.integer)) and not isinstance(cv, bool) and cv > 1):
        return TargetFolds(n_splits if cv is None else int(cv), seed)
    return TargetFolds(cv if is_splitter(cv) else make_folds(cv, seed, X, rows, n)(rows), seed)


class TargetFolds(Shared):
    """The folds of each target.

    Parameters
    ----------
    cv : int, scikit-learn splitter or list of Fold
        A number of shuffled, stratified folds; the splitter; or the same folds for every target.
    seed : int
        Shuffles the stratified folds.
    """

    def __init__(self, cv: Any, seed: int) -> None:
        self.cv = cv
        self.seed = seed

    def __call__(self, X: Any, y: Integers) -> list[Fold]:
        """Return the folds of one target (n,)."""
        if is_splitter(self.cv):
            return [Fold(train, test) for train, test in self.cv.split(X, y)]
        return _stratified(y, self.cv, self.seed) if isinstance(self.cv, int) else self.cv

    def shared(self, X: Any, Y: Integers) -> list[Fold]:
        """Return folds for all labels (n, m).

        They are stratified by the rarest label of each row. Splitters take one target, and may
        warn of classes with fewer rows than folds: they get the label nearest to a frequency of
        one half.
        """
        if isinstance(self.cv, int):
            return self(X, _rarest_label(Y))
        return self(X, Y[:, np.abs(Y.mean(axis=0) - 0.5).argmin()])


def _stratified(y: Integers, n_splits: int, seed: int) -> list[Fold]:
    """Return shuffled stratified folds, also for classes with fewer rows than folds.

    StratifiedKFold of scikit-learn warns of such classes, and raises if there are no others.
    """
    shuffled = np.random.RandomState(seed).permutation(len(y))
    fold_of_row = np.empty(len(y), dtype=np.int64)
    # Sorted by class, consecutive rows go to different folds.
    fold_of_row[shuffled[np.argsort(y[shuffled], kind="stable")]] = np.arange(len(y)) % n_splits
    return [
        Fold(np.flatnonzero(fold_of_row != f), np.flatnonzero(fold_of_row == f))
        for f in range(min(n_splits, len(y)))
    ]


def _rarest_label(Y: Integers) -> Integers:
    """Return the rarest label (n,) of each row; m for none."""
    rarest_first = np.argsort(Y.sum(axis=0), kind="stable")
    at = Y[:, rarest_first].argmax(axis=1)
    return np.asarray(np.where(Y.any(axis=1), rarest_first[at], Y.shape[1]))
