"""Residuals of the labels given the features, and what is known of their law.

The moments of a residual given x are needed where few rows have both labels of a pair: there the
products that were seen tell little about those that could have been.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import clone, is_classifier
from sklearn.model_selection import KFold, check_cv
from sklearn.utils import get_tags
from sklearn.utils.parallel import Parallel, delayed

__all__ = ["Residuals", "fitted_values", "residual_moments"]

Floats = npt.NDArray[np.float64]

_LEAST = 0.1  # no conditional probability is taken below this share of the label's frequency
_ROWS_PER_BIN = 20  # of the rarer value of the label
_MAX_BINS = 10


class Residuals(NamedTuple):
    """Residuals of m labels, with their second to fourth moments given x."""

    values: Floats  # (n, m)
    variance: Floats  # (n, m)
    third: Floats  # (n, m)
    fourth: Floats  # (n, m)
    fitted: Floats  # (n, m)
    inflation: float  # variance of a sum of products, over the sum of their variances


def residual_moments(Y: Floats, R: Floats, inflation: float = 1.0) -> Residuals:
    """Estimate the conditional moments of residuals, that of a coin as far as it fits.

    The fitted values are shrunk towards the label's frequency until they are calibrated, and give
    the variance p (1 - p), the third moment and the fourth; they are then scaled to the residuals
    within bins of rows with similar fitted values.

    Parameters
    ----------
    Y : ndarray of shape (n, m)
        Labels, none of them constant.
    R : ndarray of shape (n, m)
        Their residuals.
    inflation : float, default=1.0
        As in `Residuals`.

    Returns
    -------
    Residuals
        The residuals with their moments.
    """
    n, m = Y.shape
    fitted = Y - R
    frequency = Y.mean(axis=0)
    centred = fitted - fitted.mean(axis=0)
    spread = np.maximum(np.sum(centred**2, axis=0), np.finfo(float).tiny)
    slope = np.clip(np.sum(centred * (Y - frequency), axis=0) / spread, 0.0, 1.0)
    p = np.clip(frequency + slope * centred, _LEAST * frequency, 1.0 - _LEAST * (1.0 - frequency))
    coin = p * (1.0 - p)  # (n, m)
    coin4 = coin * (1.0 - 3.0 * coin)
    scale, fourth = np.empty_like(coin), np.empty_like(coin)
    rarer = np.minimum(Y.sum(axis=0), n - Y.sum(axis=0))
    n_bins = np.clip(rarer // _ROWS_PER_BIN, 1, _MAX_BINS).astype(int)
    for i in range(m):
        bins = _bins(fitted[:, i], n_bins[i])
        scale[:, i] = _ratio(bins, R[:, i] ** 2, coin[:, i])
        fourth[:, i] = coin4[:, i] * _ratio(bins, R[:, i] ** 4, coin4[:, i])
    variance = scale * coin
    third = variance * np.sqrt(scale) * (1.0 - 2.0 * p)
    return Residuals(R, variance, third, fourth, fitted, inflation)


def _ratio(bins: npt.NDArray[np.int64], seen: Floats, expected: Floats) -> Floats:
    """Give the ratio of two sums over the bin of each row."""
    ratio = np.bincount(bins, seen) / np.maximum(np.bincount(bins, expected), 1e-300)
    return np.asarray(ratio[bins])


def _bins(values: Floats, n_bins: int) -> npt.NDArray[np.int64]:
    """Cut values into bins of about the same size, equal ones into the same.

    Rounding comes first: Y - (Y - p) is not quite p, and the last digit would tell Y.
    """
    _, place, times = np.unique(np.round(values, 9), return_inverse=True, return_counts=True)
    middle = np.cumsum(times) - times + times // 2
    return np.asarray((middle * n_bins // len(values))[place.reshape(-1)])


def fitted_values(
    estimator: Any,
    X: Any,
    Y: Floats,
    cv: Any,
    seed: int,
    n_jobs: int | None,
    tick: Callable[[], None],
) -> Floats:
    """Predict every label of every row by a model that did not see the row.

    Parameters
    ----------
    estimator : object
        A classifier with predict_proba, or a regressor; with several outputs if it can.
    X : ndarray or sparse matrix of shape (n, d)
        Features.
    Y : ndarray of shape (n, m)
        Labels.
    cv : int, splitter or iterable of splits
        The folds; an integer asks for shuffled ones.
    seed : int
        Shuffles the folds.
    n_jobs : int, optional
        Number of jobs, over folds, and over labels if they are fitted one by one.
    tick : callable
        Called at the end.

    Returns
    -------
    ndarray of shape (n, m)
        Probabilities, or what the regressor takes for them.
    """
    folds = _folds(cv, X, Y, seed)
    m = Y.shape[1]
    together = _takes_many_outputs(estimator)
    groups = [np.arange(m)] if together or m == 0 else [np.array([i]) for i in range(m)]
    tasks = [(train, test, labels) for train, test in folds for labels in groups]
    answers = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(_predict)(estimator, X, Y, train, test, labels) for train, test, labels in tasks
    )
    P = np.empty(Y.shape)
    for (_, test, labels), answer in zip(tasks, answers, strict=True):
        P[np.ix_(test, labels)] = answer
    tick()
    tick()
    return P


def _folds(cv: Any, X: Any, Y: Floats, seed: int) -> list[tuple[Any, Any]]:
    n = len(Y)
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        if not 2 <= cv <= n:
            raise ValueError(f"cv is {cv}: the number of folds must be from 2 to the {n} rows")
        splitter: Any = KFold(int(cv), shuffle=True, random_state=seed)
    else:
        splitter = check_cv(cv)
    folds = [(np.asarray(a), np.asarray(b)) for a, b in splitter.split(X, Y)]
    times = np.bincount(np.concatenate([test for _, test in folds]), minlength=n)
    if (times != 1).any():
        row = int(np.argmax(times != 1))
        raise ValueError(
            f"cv puts row {row} into {times[row]} test folds: every row must be in exactly one"
        )
    return folds


def _takes_many_outputs(estimator: Any) -> bool:
    tags = get_tags(estimator)
    if is_classifier(estimator):
        return bool(tags.classifier_tags is not None and tags.classifier_tags.multi_label)
    return bool(tags.target_tags.multi_output)


def _predict(estimator: Any, X: Any, Y: Floats, train: Any, test: Any, labels: Any) -> Floats:
    """Fit some labels on one fold; a label that is constant there needs no model."""
    P = np.empty((len(test), len(labels)))
    seen = Y[np.ix_(train, labels)]
    P[:] = seen[0]
    varied = np.flatnonzero(seen.min(axis=0) < seen.max(axis=0))
    if len(varied) == 0:
        return P
    target = seen[:, varied]
    if is_classifier(estimator):
        target = target.astype(np.int64)
    model = clone(estimator).fit(X[train], target[:, 0] if len(varied) == 1 else target)
    if is_classifier(estimator):
        answer = model.predict_proba(X[test])
        if isinstance(answer, list):  # one (rows, 2) array for each output
            answer = np.column_stack([a[:, 1] for a in answer])
        elif len(varied) == 1:
            answer = answer[:, -1]
    else:
        answer = model.predict(X[test])
    P[:, varied] = np.asarray(answer, dtype=np.float64).reshape(len(test), len(varied))
    return P
