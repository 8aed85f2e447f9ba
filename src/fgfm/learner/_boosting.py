"""Gradient boosting of each label, for dense features of many rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import KFold
from sklearn.utils.parallel import Parallel, delayed

from fgfm._utils.parallel import limit_openmp

__all__ = ["LabelBoosting"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Singles = npt.NDArray[np.float32]

_ROWS = 5000  # from which on boosting is worth its time
_FEWEST = 2500  # rows that a model is fitted to
_WORK = 4e7  # rows times features times labels of the models of a fold, at most
_POSITIVES = 30  # rows with a label, and without, from which on it is boosted
_FOLDS = 3
_LIMIT = 10.0  # of logits


class LabelBoosting:
    """Boosted trees for each label: the mean of the models of all folds.

    Parameters
    ----------
    n_jobs : int or None
        Number of threads, as in joblib.
    tick : callable
        Called with the share of the work that is done.

    Attributes
    ----------
    models : list of list of HistGradientBoostingClassifier
        The models of each label, one for each fold; none of a rare label.
    rare : ndarray of shape (m,)
        The logits of the frequencies, which rare labels are predicted by.
    """

    def __init__(
        self, n_jobs: int | None = None, tick: Callable[[float], None] = lambda share: None
    ) -> None:
        self._how = n_jobs, tick

    @staticmethod
    def most(X: Floats, m: int) -> int:
        """Return 1 if there are enough rows, and not too many labels for the time; else 0."""
        n, p = X.shape
        return int(n >= _ROWS and 0 < m * p * _FEWEST <= _WORK)

    def fit(self, X: Floats, labels: Singles, weight: Floats, seed: int) -> Singles:
        """Fit the models; return the held-out logits (n, m).

        Parameters
        ----------
        X : ndarray of shape (n, p)
            Features; missing values are NaN.
        labels : ndarray of shape (n, m)
            Labels, 0 or 1, or NaN where one is not known.
        weight : ndarray of shape (n,)
            Sample weights, all positive.
        seed : int
            Seeds the folds.

        Returns
        -------
        ndarray of shape (n, m)
            Logits by the model that did not see the row.
        """
        n_jobs, tick = self.__dict__.pop("_how")  # not to be saved
        n, m = labels.shape
        folds = list(KFold(_FOLDS, shuffle=True, random_state=seed).split(labels))
        most = int(_WORK / (m * X.shape[1]))
        frequency = np.clip(np.nanmean(labels, axis=0), 1.0 / (n + 1), n / (n + 1))
        self.rare = logit(frequency)
        held_out = np.tile(self.rare, (n, 1)).astype(np.float32)
        self.models: list[list[Any]] = [[] for _ in range(m)]
        equal = bool((weight == weight[0]).all())  # with weights a fit takes six times as long

        def boost(label: int, train: Integers, test: Integers) -> Any:
            y = labels[train, label]
            rows = train[~np.isnan(y)]
            rows = rows[:: -(-len(rows) // most)]
            model = HistGradientBoostingClassifier(early_stopping=False, random_state=seed)
            # Sums by several threads would depend on their number in their last bits.
            with limit_openmp(1, 0):
                model.fit(X[rows], labels[rows, label], None if equal else weight[rows])
            held_out[test, label] = _logits(model, X[test])
            return model

        least = np.minimum((labels == 0.0).sum(axis=0), (labels == 1.0).sum(axis=0))
        boosted = np.flatnonzero(least >= _POSITIVES)
        tasks = [(label, fold) for label in boosted.tolist() for fold in folds]
        parallel = Parallel(n_jobs=n_jobs, require="sharedmem", return_as="generator")
        models = parallel(delayed(boost)(label, *fold) for label, fold in tasks)
        for k, ((label, _), model) in enumerate(zip(tasks, models, strict=True), 1):
            self.models[label].append(model)
            tick(k / len(tasks))
        return held_out

    def predict(self, X: Floats) -> Singles:
        """Return the logits (n, m)."""
        logits = np.tile(self.rare, (X.shape[0], 1)).astype(np.float32)
        for i, models in enumerate(self.models):
            if models:
                logits[:, i] = np.mean([_logits(model, X) for model in models], axis=0)
        return logits


def _logits(model: Any, X: Floats) -> Floats:
    """Return the logits (n,) of a model, none of which is beyond a limit."""
    with limit_openmp(1, 0):
        return np.asarray(np.clip(model.decision_function(X), -_LIMIT, _LIMIT))
