"""Ridge logistic regression of each label, for counts of many rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logit

from fgfm._utils.blocks import slices
from fgfm.ridge import RidgeFit, fit_ridge_logistic

__all__ = ["LabelLogistic"]

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]

_ROWS = 1000  # from which on it is worth its time
_PENALTIES = (0.02, 0.08, 0.3)  # for rows of length 1
_FOLDS = 3
_KNOWN = 30  # rows in which a label must be known; otherwise its frequency predicts it
_WORK = (3e9, 1e8)  # stored values times labels, at most, of one part and of two
_COEFFICIENTS = 5e7  # at most
_TOLERANCE = 0.1  # of the solver; less changes the log-loss by less than 1e-6
_LIMIT = 10.0  # of logits
_BLOCK = 2048  # rows whose logits are computed at the same time


class LabelLogistic:
    """Logistic regressions of all labels, with penalties chosen by cross-validation.

    Parameters
    ----------
    features : CountFeatures
        Transforms the features.
    n_jobs : int or None
        Number of threads, as in joblib.

    Attributes
    ----------
    coef : ndarray of shape (p, m)
        Weights of the transformed features.
    intercept : ndarray of shape (m,)
        Intercepts.
    """

    def __init__(self, features: Any, n_jobs: int | None = None) -> None:
        self.features = features
        self.n_jobs = n_jobs

    @staticmethod
    def most(X: Any, m: int) -> int:
        """Return how many parts of this kind are worth their time and memory: 0, 1 or 2."""
        n, p = X.shape
        if n < _ROWS or m == 0 or p * m > _COEFFICIENTS:
            return 0
        return sum(X.nnz * m <= work for work in _WORK)

    def fit(self, X: Any, labels: Singles, weight: Floats, seed: int) -> Singles:
        """Fit all labels; return their held-out logits (n, m).

        Parameters
        ----------
        X : CSR matrix of shape (n, p)
            Features.
        labels : ndarray of shape (n, m)
            Labels, 0 or 1, or NaN where one is not known.
        weight : ndarray of shape (n,)
            Sample weights, all positive.
        seed : int
            Seeds the folds.

        Returns
        -------
        ndarray of shape (n, m)
            Logits by the model of the other folds, or of all rows if the label is not known.
        """
        Z = self.features.fit(X, weight).transform(X)
        known = ~np.isnan(labels)

        def regress(rows: Any, at: Any) -> list[RidgeFit]:
            return fit_ridge_logistic(
                Z[rows],
                labels[rows][:, at].astype(np.int64),
                sample_weight=weight[rows] / weight.mean(),
                penalties=_PENALTIES,
                cv=_FOLDS,
                tol=_TOLERANCE,
                random_state=seed,
                n_jobs=self.n_jobs,
                held_out=True,
            )

        complete = known.all(axis=0)
        partly = np.flatnonzero(~complete & (known.sum(axis=0) >= _KNOWN))
        fits = dict(zip(np.flatnonzero(complete), regress(slice(None), complete), strict=True))
        fits |= {i: regress(known[:, i], [i])[0] for i in partly}
        self.coef = np.zeros((Z.shape[1], labels.shape[1]), dtype=np.float32)
        self.intercept = logit(np.nanmean(labels, axis=0, dtype=np.float64))
        for i, fit in fits.items():
            self.coef[:, i], self.intercept[i] = fit.coef[0], fit.intercept[0]
        held_out = self._logits(Z)
        for i, fit in fits.items():
            assert fit.held_out is not None
            held_out[known[:, i], i] = _clip(logit(fit.held_out[:, 1]))
        return held_out

    def predict(self, X: Any) -> Singles:
        """Return the logits (n, m)."""
        logits = np.empty((X.shape[0], len(self.intercept)), dtype=np.float32)
        for rows in slices(len(logits), _BLOCK):
            logits[rows] = self._logits(self.features.transform(X[rows]))
        return logits

    def _logits(self, Z: Any) -> Singles:
        return _clip(Z @ self.coef + self.intercept)


def _clip(logits: npt.NDArray[Any]) -> Singles:
    """Return logits none of which is beyond a limit."""
    return np.asarray(np.clip(logits, -_LIMIT, _LIMIT), dtype=np.float32)
