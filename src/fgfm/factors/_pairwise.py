"""Interface of tests of all pairs of labels: `PairwiseTest` and `PairwiseResult`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["PairwiseResult", "PairwiseTest", "Progress"]

Progress = Callable[[int, int], None]  # steps done, steps in all


class PairwiseResult(NamedTuple):
    """Tests of all pairs of m labels given the features.

    Attributes
    ----------
    p_values : ndarray of shape (m, m)
        ``p_values[i, j]`` is the p-value of label i against label j; NaN on the diagonal.
    effects : ndarray of shape (m, m)
        Strength of the dependence, in the unit of the test; NaN on the diagonal.
    markov_boundaries : list of ndarray, or None
        The features conditioned on for each label, if the test selects features.
    """

    p_values: npt.NDArray[np.float64]
    effects: npt.NDArray[np.float64]
    markov_boundaries: list[npt.NDArray[Any]] | None = None


class PairwiseTest(Protocol):
    """Interface of the tests that `fgfm.factors.ILFCompo` accepts."""

    def pairs(
        self,
        X: Any,
        Y: Any,
        *,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> PairwiseResult:
        """Test all pairs of labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Features.
        Y : array-like or sparse matrix of shape (n, m)
            Labels, 0 or 1.
        n_jobs : int, optional
            Number of jobs, as in joblib.
        progress : callable, optional
            Called with the number of steps done and the number of steps in all.

        Returns
        -------
        PairwiseResult
            The p-values and effects.
        """
        ...
