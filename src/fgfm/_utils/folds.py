"""Cross-validation folds from an integer, a scikit-learn splitter or an iterable of splits."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import KFold

Integers = npt.NDArray[np.int64]


class Fold(NamedTuple):
    """Row indices of one split: `train` to fit on, `test` to evaluate on."""

    train: Integers
    test: Integers


def make_folds(
    cv: Any, random_state: Any, X: Any, rows: Integers, n: int
) -> Callable[[npt.NDArray[Any]], list[Fold]]:
    """Validate `cv` and return a function from a target to its folds.

    Rows of weight 0 have been removed. All indices in the folds refer to the remaining rows.

    Parameters
    ----------
    cv : int, splitter or iterable of (train, test)
        The argument of the user. An integer makes shuffled folds, the same for all targets, and
        at most as many as there are rows. A splitter is passed the remaining rows only; the
        indices of an iterable refer to all n rows.
    random_state : int, RandomState instance or None
        Shuffles the folds if `cv` is an integer.
    X : ndarray or CSR of shape (n_kept, p)
        Features of the remaining rows.
    rows : ndarray of shape (n_kept,)
        Indices of the remaining rows, those of positive weight.
    n : int
        Number of all rows.

    Returns
    -------
    callable
        From y of shape (n_kept,) to a list of folds.
    """
    kept = np.arange(len(rows))
    if isinstance(cv, (numbers.Integral, np.integer)) and not isinstance(cv, bool):
        if cv < 2:
            raise ValueError(f"cv is {cv}: it must be 2 folds or more")
        n_splits = min(int(cv), len(rows))
        shared: list[Fold] = []
        if n_splits > 1:
            splitter = KFold(n_splits, shuffle=True, random_state=random_state)
            shared = [Fold(train, test) for train, test in splitter.split(kept)]
        return lambda y: shared
    if hasattr(cv, "split") and not isinstance(cv, str):
        return lambda y: _check_folds(cv.split(X, y), len(rows), kept)
    if isinstance(cv, str) or not isinstance(cv, Iterable):
        raise TypeError(
            f"cv is {cv!r}: it must be a number of folds, a scikit-learn splitter, or an iterable "
            "of (train, test) row indices"
        )
    position = np.full(n, -1, dtype=np.int64)  # among the remaining rows
    position[rows] = kept
    folds = _check_folds(cv, n, position)
    return lambda y: folds


def split_by_metadata(cv: Any, X: Any, y: Any, metadata: dict[str, Any]) -> Any:
    """Return the folds of a splitter that takes metadata such as ``groups``; `cv` without any."""
    if not metadata:
        return cv
    if not hasattr(cv, "split") or isinstance(cv, str):
        raise ValueError(
            f"{', '.join(metadata)} is given and cv is {cv!r}: it must be a scikit-learn splitter "
            "that takes it, such as GroupKFold()"
        )
    return list(cv.split(X, y, **metadata))


def _check_folds(splits: Iterable[Any], n: int, position: Integers) -> list[Fold]:
    folds = [_check_fold(train, test, f, n, position) for f, (train, test) in enumerate(splits)]
    if not folds:
        raise ValueError("cv is empty: it must yield at least one fold")
    return folds


def _check_fold(train: Any, test: Any, fold: int, n: int, position: Integers) -> Fold:
    """Validate both parts of a split and map their indices to the remaining rows."""
    parts = []
    for name, part in (("train", train), ("test", test)):
        index = np.asarray(part)
        if index.dtype == bool and index.shape == (n,):
            index = np.flatnonzero(index)
        if index.ndim != 1 or (len(index) and index.dtype.kind not in "iu"):
            raise TypeError(
                f"cv: the {name} rows of fold {fold} have shape {index.shape} and dtype "
                f"{index.dtype}: they must be a flat array of row indices"
            )
        if len(index) and not (-n <= index.min() and index.max() < n):
            raise ValueError(
                f"cv: the {name} rows of fold {fold} run from {index.min()} to {index.max()}; "
                f"with {n} rows, indices must run from 0 to {n - 1}"
            )
        kept = position[index.astype(np.int64)]
        kept = kept[kept >= 0]
        if len(kept) == 0:
            raise ValueError(
                f"cv: fold {fold} has no {name} row of positive weight; it must have at least one"
            )
        parts.append(kept)
    return Fold(parts[0], parts[1])
