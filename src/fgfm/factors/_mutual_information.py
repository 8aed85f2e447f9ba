r"""Tests of all pairs of labels given the Markov boundary of the first label: the paper's test.

For labels i and j and the Markov boundary :math:`M_i` of label i in the features,

.. math::

    Y_i \perp Y_j \mid X \implies Y_i \perp Y_j \mid M_i,

and the G test given :math:`M_i` has far fewer strata than the one given X (Gasse, Aussem and
Elghazel, 2015).

References
----------
Gasse, M., Aussem, A. and Elghazel, H. (2015). On the Optimality of Multi-Label Classification
under Subset Zero-One Loss for Distributions Satisfying the Composition Property. ICML 2015.

Gasse, M. and Aussem, A. (2016). Identifying the Irreducible Disjoint Factors of a Multivariate
Probability Distribution. PGM 2016.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_random_state
from sklearn.utils.parallel import delayed

from fgfm._utils.blocks import n_workers
from fgfm._utils.parallel import Shared, run_jobs
from fgfm.factors._contingency import (
    Columns,
    combine,
    count_levels,
    encode,
    encode_labels,
    make_strata,
    refine,
)
from fgfm.factors._g_batch import DegreesOfFreedom, g_test_columns, g_test_each
from fgfm.factors._markov_boundary import iamb
from fgfm.factors._pairwise import PairwiseResult, Progress
from fgfm.factors._validation import check_alpha, check_labels

__all__ = ["MutualInformation"]

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
    df : {"mi", "moments", "g", "permutation"}, default="mi"
        Degrees of freedom of all tests, as in `fgfm.factors.g_test`.
    max_levels : int or None, default=None
        Largest number of levels of a feature; None for no limit.
    n_tables : int, default=100
        Number of random tables for "permutation".
    random_state : int, RandomState instance or None, default=None
        Seed for "permutation".

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
        self,
        alpha: float = 0.01,
        df: str = "mi",
        *,
        max_levels: int | None = None,
        n_tables: int = 100,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.df = df
        self.max_levels = max_levels
        self.n_tables = n_tables
        self.random_state = random_state

    def pairs(
        self, X: Any, Y: Any, *, n_jobs: int | None = None, progress: Progress | None = None
    ) -> PairwiseResult:
        """Test all pairs of labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Discrete features.
        Y : array-like or sparse matrix of shape (n, m)
            Labels, 0 or 1.
        n_jobs : int, optional
            Number of jobs, over labels. The result does not depend on it.
        progress : callable, optional
            Called with the number of labels done and the number of labels in all.

        Returns
        -------
        PairwiseResult
            The p-values; the effects are empirical conditional mutual informations in nats.
        """
        data = self._validate(X, Y)
        results = _run_batches(_test_batch, data, n_jobs, progress)
        p_values, effects = (np.vstack([result[k] for result in results]) for k in (1, 2))
        return PairwiseResult(p_values, effects, [b for result in results for b in result[0]])

    def ordered_pairs(
        self,
        X: Any,
        Y: Any,
        *,
        level: float | None = None,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> PairwiseResult:
        """Test each label against the later ones, with growing conditioning sets.

        For label i the labels j > i are tested in order. Label j is tested given the features, the
        labels before i, and those labels between i and j that were found independent of i. The
        connected components of the resulting graph are the irreducible factors of any distribution
        (Gasse and Aussem, 2016, theorem 10), without the Composition property; the price is very
        large conditioning sets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Discrete features, represented by the Markov boundaries of the labels involved.
        Y : array-like or sparse matrix of shape (n, m)
            Labels, 0 or 1.
        level : float, optional
            Labels with a larger p-value count as independent; by default `alpha`.
        n_jobs : int, optional
            Number of jobs, over labels. The result does not depend on it.
        progress : callable, optional
            Called with the number of steps done and the number of steps in all.

        Returns
        -------
        PairwiseResult
            The p-values and effects, symmetric.
        """
        data = self._validate(X, Y)
        m = data.Y.shape[1]
        steps = None if progress is None else lambda done, _: progress(done, 2 * m)
        boundaries = [b for batch in _run_batches(_boundaries, data, n_jobs, steps) for b in batch]
        steps = None if progress is None else lambda done, _: progress(m + done, 2 * m)
        data = replace(data, boundaries=boundaries, alpha=data.alpha if level is None else level)
        results = _run_batches(_test_later_labels, data, n_jobs, steps)
        p_values, effects = (np.vstack([result[k] for result in results]) for k in (0, 1))
        for matrix in (p_values, effects):
            below = np.tril_indices(m, -1)
            matrix[below] = matrix.T[below]
        return PairwiseResult(p_values, effects, boundaries)

    def _validate(self, X: Any, Y: Any) -> _TestData:
        df = DegreesOfFreedom.validate(self.df, self.n_tables)
        alpha = check_alpha(self.alpha)
        X = check_array(X, accept_sparse="csc", dtype=None)
        labels = check_labels(Y, X.shape[0])  # (n, m)
        if self.max_levels is not None:
            levels = count_levels(X)  # before encoding, which allocates an indicator per level
            wide = np.flatnonzero(levels > self.max_levels)
            if len(wide):
                raise ValueError(
                    f"X[:, {wide[0]}] has {levels[wide[0]]} levels: discrete features "
                    f"must not have more than max_levels={self.max_levels}; discretise it, or "
                    "use a test for continuous features (test='gcm')"
                )
        seed = 0
        if self.df == "permutation":
            seed = int(check_random_state(self.random_state).randint(2**31))
        return _TestData(encode(X), labels, alpha, df, seed, [])


@dataclass(frozen=True, eq=False)
class _TestData(Shared):
    """Data and settings that the jobs of all labels share."""

    columns: Columns
    Y: npt.NDArray[np.bool_]
    alpha: float
    df: DegreesOfFreedom
    seed: int
    boundaries: Sequence[Integers]

    def target(self, i: int) -> Integers:
        """Return label i as integers."""
        return self.Y[:, i].astype(np.int64)

    def rngs(self, labels: Iterable[int], step: int) -> list[Any]:
        """Return a generator for each label, which depends on the label and the step only."""
        if self.df.kind != "permutation":  # no other kind draws random numbers
            return [None for _ in labels]
        return [np.random.default_rng([self.seed, i, step]) for i in labels]

    def features(self, chosen: Iterable[int]) -> list[tuple[Integers, int]]:
        """Return the codes and the number of levels of some features."""
        return [(self.columns.codes(int(j)), int(self.columns.levels[j])) for j in chosen]


def _run_batches(
    function: Callable[[_TestData, range], Any],
    data: _TestData,
    n_jobs: int | None,
    progress: Progress | None,
) -> list[Any]:
    """Call ``function(data, labels)`` for batches of labels, in parallel; keep their order."""
    m = data.Y.shape[1]
    jobs = n_workers(n_jobs)
    size = _BATCH_SIZE if jobs == 1 else max(1, min(_BATCH_SIZE, m // (4 * jobs)))
    batches = [range(start, min(start + size, m)) for start in range(0, m, size)]
    running: Iterator[Any]
    if jobs == 1:
        running = (function(data, batch) for batch in batches)
    else:
        running = run_jobs((delayed(function)(data, batch) for batch in batches), n_jobs)
    results = []
    for batch, result in zip(batches, running, strict=True):
        results.append(result)
        if progress is not None:
            progress(batch.stop, m)
    return results


def _boundaries(data: _TestData, labels: range) -> list[Integers]:
    targets = [data.target(i) for i in labels]
    return iamb(data.columns, targets, data.alpha, data.df, data.rngs(labels, 0))


def _test_batch(data: _TestData, labels: range) -> tuple[list[Integers], Floats, Floats]:
    """Return the boundaries of labels, and their p-values and effects against all labels."""
    n = len(data.Y)
    boundaries = _boundaries(data, labels)
    problems = [
        make_strata(data.target(i), 2, *combine(data.features(boundary), n))
        for i, boundary in zip(labels, boundaries, strict=True)
    ]
    result = g_test_columns(problems, encode_labels(data.Y), data.df, data.rngs(labels, 1))
    # G = 2 n I(Y_i; Y_j | M_i), in nats
    p_values, effects = result.p_value, result.statistic / (2.0 * max(1, n))  # (labels, m)
    own = np.arange(len(labels)), np.array(labels)
    p_values[own] = effects[own] = np.nan
    return boundaries, p_values, effects


def _test_later_labels(data: _TestData, labels: range) -> tuple[Floats, Floats]:
    """Return the p-values and effects of labels against the later ones, NaN elsewhere."""
    rows = [_test_later(data, i, rng) for i, rng in zip(labels, data.rngs(labels, 1), strict=True)]
    p_values, effects = (np.vstack([row[k] for row in rows]) for k in (0, 1))
    return p_values, effects


def _test_later(data: _TestData, i: int, rng: Any) -> tuple[Floats, Floats]:
    n, m = data.Y.shape
    # The union of the boundaries of single labels stands for the boundary of all of them
    # together; it misses features that matter to several labels jointly, but to none alone.
    features = sorted({int(k) for b in data.boundaries[: i + 1] for k in b})
    strata = combine(data.features(features), n)
    for k in range(i):
        strata = refine(*strata, data.target(k), 2)
    target = data.target(i)
    p_values, effects = np.full(m, np.nan), np.full(m, np.nan)
    for j in range(i + 1, m):
        other = data.target(j)
        problem = make_strata(target, 2, *strata)
        result = g_test_each([problem], [(other, 2)], data.df, [rng])
        p_values[j] = result.p_value[0]
        effects[j] = result.statistic[0] / (2.0 * max(1, n))
        if p_values[j] > data.alpha:  # independent: condition on label j from now on
            new = [int(k) for k in data.boundaries[j] if int(k) not in features]
            features += new
            for codes, levels in data.features(new):
                strata = refine(*strata, codes, levels)
            strata = refine(*strata, other, 2)
    return p_values, effects
