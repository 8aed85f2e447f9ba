"""The folds of a target, in which its models are calibrated and predict held-out rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm._utils.folds import Fold, make_folds
from fgfm._utils.parallel import Shared

__all__ = ["StratifiedFolds", "is_splitter", "target_folds"]

Integers = npt.NDArray[np.int64]


def is_splitter(value: Any) -> bool:
    """Return True for a scikit-learn splitter."""
    return hasattr(value, "split") and not isinstance(value, str)


def target_folds(
    calibration: Any, cv: Any, X: Any, rows: Integers, n: int, seed: int, n_splits: int
) -> StratifiedFolds | _SplitterFolds | _GivenFolds:
    """Return a callable from (X, y) to the folds of one target.

    Its method `shared` returns folds for a matrix of labels.
    """
    if is_splitter(calibration):
        cv = calibration
    if cv is None or (isinstance(cv, (int, np.integer)) and not isinstance(cv, bool) and cv > 1):
        return StratifiedFolds(n_splits if cv is None else int(cv), seed)
    if is_splitter(cv):
        return _SplitterFolds(cv)
    return _GivenFolds(make_folds(cv, seed, X, rows, n)(rows))


class StratifiedFolds:
    """Shuffled stratified folds, also for classes with fewer rows than folds.

    StratifiedKFold of scikit-learn warns of such classes, and raises if there are no others.
    """

    def __init__(self, n_splits: int, seed: int) -> None:
        self.n_splits = n_splits
        self.seed = seed

    def __call__(self, X: Any, y: Integers) -> list[Fold]:
        n = len(y)
        shuffled = np.random.RandomState(self.seed).permutation(n)
        fold_of_row = np.empty(n, dtype=np.int64)
        # Sorted by class, consecutive rows go to different folds.
        fold_of_row[shuffled[np.argsort(y[shuffled], kind="stable")]] = (
            np.arange(n) % self.n_splits
        )
        return [
            Fold(np.flatnonzero(fold_of_row != f), np.flatnonzero(fold_of_row == f))
            for f in range(min(self.n_splits, n))
        ]

    def shared(self, X: Any, Y: Integers) -> list[Fold]:
        """Return folds for all labels (n, m), stratified by the rarest label of each row."""
        return self(X, _rarest_label(Y))


class _SplitterFolds:
    """The folds of a scikit-learn splitter."""

    def __init__(self, splitter: Any) -> None:
        self.splitter = splitter

    def __call__(self, X: Any, y: Integers) -> list[Fold]:
        return [Fold(train, test) for train, test in self.splitter.split(X, y)]

    def shared(self, X: Any, Y: Integers) -> list[Fold]:
        """Return folds for all labels (n, m), by the label nearest to a frequency of one half.

        Stratified splitters take one target, and warn of classes with fewer rows than folds.
        """
        return self(X, Y[:, np.abs(Y.mean(axis=0) - 0.5).argmin()])


class _GivenFolds(Shared):
    """The same folds for every target."""

    def __init__(self, folds: list[Fold]) -> None:
        self.folds = folds

    def __call__(self, X: Any, y: Integers) -> list[Fold]:
        return self.folds

    shared = __call__


def _rarest_label(Y: Integers) -> Integers:
    """Return the rarest label (n,) of each row; m for none."""
    rarest_first = np.argsort(Y.sum(axis=0), kind="stable")
    at = Y[:, rarest_first].argmax(axis=1)
    return np.asarray(np.where(Y.any(axis=1), rarest_first[at], Y.shape[1]))
