r"""Tests of all pairs of labels given the Markov boundary of the first label: the paper's test.

For labels i and j and the Markov boundary :math:`M_i` of label i in the features,

.. math::

    Y_i \perp Y_j \mid X \implies Y_i \perp Y_j \mid M_i,

and the G test given :math:`M_i` has far fewer strata than the one given X (Gasse, Aussem and
Elghazel, 2015).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils.parallel import delayed

from fgfm._utils.blocks import n_workers
from fgfm._utils.parallel import Shared, run_jobs
from fgfm._utils.validation import check_choice, check_fraction
from fgfm.factors._contingency import (
    Columns,
    combine,
    count_levels,
    encode,
    encode_labels,
    make_strata,
)
from fgfm.factors._g_test import KINDS, g_test_columns
from fgfm.factors._markov_boundary import iamb
from fgfm.factors._pairwise import PairwiseResult, check_labels

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_BATCH_SIZE = 16  # most labels whose tables are computed together


class MutualInformation(BaseEstimator):  # type: ignore[misc]
    r"""Test all pairs of labels for conditional independence by G tests, for discrete features.

    For each label i, find its Markov boundary :math:`M_i` in the features by IAMB, and test

    .. math:: Y_i \perp Y_j \mid M_i \quad \text{for every other label } j.

    Parameters
    ----------
    alpha : float, default=0.01
        Level of the tests that select the boundary.
    df : {"mi", "moments"}, default="mi"
        Degrees of freedom of all tests, as in `fgfm.factors.g_test`.
    max_levels : int or None, default=None
        Largest number of levels of a feature; None for no limit.

    See Also
    --------
    ILFCompo : Derives label factors from the p-values.

    Examples
    --------
    >>> import numpy as np
    >>> from fgfm.factors import MutualInformation
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (500, 3))
    >>> Y = X[:, [0, 0, 1]] ^ (rng.random((500, 3)) < 0.2)
    >>> Y[:, 2] |= Y[:, 1]
    >>> result = MutualInformation().pairs(X, Y)
    >>> (result.p_values <= 0.01).astype(int)
    array([[0, 0, 0],
           [0, 0, 1],
           [0, 1, 0]])
    >>> result.markov_boundaries
    [array([0]), array([0]), array([0, 1])]
    """

    def __init__(
        self, alpha: float = 0.01, df: str = "mi", *, max_levels: int | None = None
    ) -> None:
        self.alpha = alpha
        self.df = df
        self.max_levels = max_levels

    def pairs(self, X: Any, Y: Any, *, n_jobs: int | None = None) -> PairwiseResult:
        """Test all pairs of labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Discrete features.
        Y : array-like or sparse matrix of shape (n, m)
            Labels, 0 or 1.
        n_jobs : int, optional
            Number of jobs, over labels. The result does not depend on it.

        Returns
        -------
        PairwiseResult
            The p-values; the effects are empirical conditional mutual informations in nats.
        """
        check_choice(self.df, "df", KINDS)
        check_fraction(self.alpha, "alpha")
        X = check_array(X, accept_sparse="csc", dtype=None)
        return self._pairs(X, check_labels(Y, X.shape[0]), n_jobs)

    def _pairs(self, X: Any, Y: npt.NDArray[np.bool_], n_jobs: int | None) -> PairwiseResult:
        if self.max_levels is not None:
            levels = count_levels(X)  # before encoding, which allocates an indicator per level
            wide = np.flatnonzero(levels > self.max_levels)
            if len(wide):
                raise ValueError(
                    f"X[:, {wide[0]}] has {levels[wide[0]]} levels: discrete features "
                    f"must not have more than max_levels={self.max_levels}; discretise it, or "
                    "use a test for continuous features (test='gcm')"
                )
        data = _TestData(encode(X), Y, float(self.alpha), self.df)
        m, jobs = Y.shape[1], n_workers(n_jobs)
        size = _BATCH_SIZE if jobs == 1 else max(1, min(_BATCH_SIZE, m // (4 * jobs)))
        batches = [range(start, min(start + size, m)) for start in range(0, m, size)]
        results = run_jobs((delayed(_test_batch)(data, part) for part in batches), n_jobs)
        boundaries, p_values, effects = zip(*results, strict=True)
        return PairwiseResult(
            np.vstack(p_values), np.vstack(effects), [b for part in boundaries for b in part]
        )


@dataclass(frozen=True, eq=False)
class _TestData(Shared):
    """Data and settings that the jobs of all labels share."""

    columns: Columns
    Y: npt.NDArray[np.bool_]
    alpha: float
    df: str


def _test_batch(data: _TestData, labels: range) -> tuple[list[Integers], Floats, Floats]:
    """Return the boundaries of labels, and their p-values and effects against all labels."""
    n, columns = len(data.Y), data.columns
    targets = [data.Y[:, i].astype(np.int64) for i in labels]
    boundaries = iamb(columns, targets, data.alpha, data.df)
    problems = [
        make_strata(target, 2, *combine([columns.column(j) for j in boundary], n))
        for target, boundary in zip(targets, boundaries, strict=True)
    ]
    result = g_test_columns(problems, encode_labels(data.Y), data.df)
    # G = 2 n I(Y_i; Y_j | M_i), in nats
    p_values, effects = result.p_value, result.statistic / (2.0 * max(1, n))  # (labels, m)
    own = np.arange(len(labels)), np.array(labels)
    p_values[own] = effects[own] = np.nan
    return boundaries, p_values, effects
