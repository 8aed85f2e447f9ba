"""Residuals of the labels given the features, and their conditional moments.

The moments of a residual given x are needed for pairs of labels with few common rows: the observed
products of such a pair say little about the products that could have been observed.
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

__all__ = ["Residuals", "cross_fitted_probabilities", "residual_moments"]

Floats = npt.NDArray[np.float64]

_SMALLEST = 0.1  # smallest conditional probability, as a share of the label's frequency
_ROWS_PER_BIN = 20  # rows with the rarer value of the label
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
    """Estimate the conditional moments of residuals by those of a Bernoulli variable.

    The fitted values are shrunk towards the label's frequency until they are calibrated. With
    the resulting probability p, a Bernoulli variable has variance v = p (1 - p), third moment
    v (1 - 2 p) and fourth moment v (1 - 3 v). These are then scaled to the observed residuals
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
    # Least-squares slope of the label on its fitted value, in [0, 1].
    spread = np.maximum(np.sum(centred**2, axis=0), np.finfo(float).tiny)
    slope = np.clip(np.sum(centred * (Y - frequency), axis=0) / spread, 0.0, 1.0)
    p = np.clip(
        frequency + slope * centred,
        _SMALLEST * frequency,
        1.0 - _SMALLEST * (1.0 - frequency),
    )
    bernoulli2 = p * (1.0 - p)  # (n, m)
    bernoulli4 = bernoulli2 * (1.0 - 3.0 * bernoulli2)
    scale, fourth = np.empty_like(p), np.empty_like(p)
    rarer = np.minimum(Y.sum(axis=0), n - Y.sum(axis=0))
    n_bins = np.clip(rarer // _ROWS_PER_BIN, 1, _MAX_BINS).astype(int)
    for i in range(m):
        bins = _bins(fitted[:, i], n_bins[i])
        scale[:, i] = _ratio(bins, R[:, i] ** 2, bernoulli2[:, i])
        fourth[:, i] = bernoulli4[:, i] * _ratio(bins, R[:, i] ** 4, bernoulli4[:, i])
    variance = scale * bernoulli2
    third = variance * np.sqrt(scale) * (1.0 - 2.0 * p)
    return Residuals(R, variance, third, fourth, fitted, inflation)


def _ratio(bins: npt.NDArray[np.int64], observed: Floats, expected: Floats) -> Floats:
    """Return, for each row, the ratio of two sums over its bin."""
    ratio = np.bincount(bins, observed) / np.maximum(np.bincount(bins, expected), 1e-300)
    return np.asarray(ratio[bins])


def _bins(values: Floats, n_bins: int) -> npt.NDArray[np.int64]:
    """Return the bin of each value: bins of about equal size, equal values in the same bin.

    Values are rounded first: Y - (Y - p) is p up to rounding, and the last digit would depend
    on Y.
    """
    _, place, times = np.unique(np.round(values, 9), return_inverse=True, return_counts=True)
    middle = np.cumsum(times) - times + times // 2
    return np.asarray((middle * n_bins // len(values))[place.reshape(-1)])


def cross_fitted_probabilities(
    estimator: Any,
    X: Any,
    Y: Floats,
    cv: Any,
    seed: int,
    n_jobs: int | None,
    step_done: Callable[[], None],
) -> Floats:
    """Predict all labels of each row by a model that was fitted without the row.

    Parameters
    ----------
    estimator : object
        A classifier with predict_proba, or a regressor; fitted to all labels at once if it
        supports several outputs.
    X : ndarray or sparse matrix of shape (n, d)
        Features.
    Y : ndarray of shape (n, m)
        Labels.
    cv : int, splitter or iterable of splits
        The folds; an integer stands for shuffled ones.
    seed : int
        Seed of the shuffling.
    n_jobs : int, optional
        Number of jobs, over folds, and over labels if they are fitted one by one.
    step_done : callable
        Called twice at the end: the default regression, which this replaces, has two steps.

    Returns
    -------
    ndarray of shape (n, m)
        Probabilities, or the predictions of the regressor.
    """
    folds = _folds(cv, X, Y, seed)
    m = Y.shape[1]
    together = _supports_several_outputs(estimator)
    groups = [np.arange(m)] if together or m == 0 else [np.array([i]) for i in range(m)]
    tasks = [(train, test, labels) for train, test in folds for labels in groups]
    predictions = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(_fit_predict)(estimator, X, Y, train, test, labels)
        for train, test, labels in tasks
    )
    P = np.empty(Y.shape)
    for (_, test, labels), predicted in zip(tasks, predictions, strict=True):
        P[np.ix_(test, labels)] = predicted
    step_done()
    step_done()
    return P


def _folds(cv: Any, X: Any, Y: Floats, seed: int) -> list[tuple[Any, Any]]:
    """Return the folds, after checking that each row is in one test fold."""
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


def _supports_several_outputs(estimator: Any) -> bool:
    tags = get_tags(estimator)
    if is_classifier(estimator):
        return bool(tags.classifier_tags is not None and tags.classifier_tags.multi_label)
    return bool(tags.target_tags.multi_output)


def _fit_predict(estimator: Any, X: Any, Y: Floats, train: Any, test: Any, labels: Any) -> Floats:
    """Fit some labels on one fold; labels that are constant there are predicted as they are."""
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
        predicted = model.predict_proba(X[test])
        if isinstance(predicted, list):  # one array of shape (rows, 2) for each output
            predicted = np.column_stack([p[:, 1] for p in predicted])
        elif len(varied) == 1:
            predicted = predicted[:, -1]
    else:
        predicted = model.predict(X[test])
    P[:, varied] = np.asarray(predicted, dtype=np.float64).reshape(len(test), len(varied))
    return P
