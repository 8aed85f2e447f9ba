"""What a test of all pairs of labels gives."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["PairwiseResult"]


class PairwiseResult(NamedTuple):
    """Tests of all pairs of m labels given the features.

    Attributes
    ----------
    p_values : ndarray of shape (m, m)
        ``p_values[i, j]`` is the p-value of label i against label j; NaN on the diagonal.
    effects : ndarray of shape (m, m)
        How strongly the labels depend on each other, in the test's own unit; NaN on the diagonal.
    markov_boundaries : list of ndarray, or None
        The features that were conditioned on for each label, where the test selects any.
    """

    p_values: npt.NDArray[np.float64]
    effects: npt.NDArray[np.float64]
    markov_boundaries: list[npt.NDArray[Any]] | None = None
