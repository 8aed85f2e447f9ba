"""Public types: estimates of one factor, and the protocol of the objects that make them."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

__all__ = ["FactorEstimate", "FactorModel", "Repair"]

Floats = npt.NDArray[np.float64]


class FactorEstimate(NamedTuple):
    """P and d of one label factor, for some rows."""

    P: Floats  # (n, m, S): P[r, i, s - 1] = p(y_i = 1, |y| = s)
    d: Floats  # (n, S + 1): d[r, s] = p(|y| = s)


class Repair(NamedTuple):
    """Incoherence of the predicted P of each row, as returned by `Direct.repair`."""

    d_0: Floats  # (n,) probability of no label that P implies; may be negative
    moved: Floats  # (n,) sum of |p'_is - p_is|, with p' the nearest coherent P


@runtime_checkable
class FactorModel(Protocol):
    """Protocol of the objects that ``FGFMClassifier(method=...)`` accepts: models of one factor.

    They must also be scikit-learn estimators, since each factor gets its own
    ``sklearn.base.clone``.
    """

    def fit(self, X: Any, Y: Any, sample_weight: Any = None) -> Any:
        """Fit the model to the labels of one factor.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, p)
            Features.
        Y : ndarray of shape (n, m)
            Labels of the factor, 0 or 1.
        sample_weight : ndarray of shape (n,), optional
            Sample weights; passed only if the user passed them.
        """

    def estimate(self, X: Any) -> Any:
        """Estimate P for rows of X.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        ndarray of shape (n, m, S), or tuple
            P; or the pair of P and d, of shape (n, S + 1).
        """
