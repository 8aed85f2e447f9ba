r"""All pairs of labels, tested given the Markov boundary of the first: the paper's test.

For labels i and j and the Markov boundary :math:`M_i` of label i in the features,

.. math::

    Y_i \perp Y_j \mid X \implies Y_i \perp Y_j \mid M_i,

and the G test of the right-hand side has far fewer strata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_random_state
from sklearn.utils.parallel import delayed

from fgfm._utils.blocks import n_workers
from fgfm._utils.parallel import Shared, run_jobs
from fgfm._utils.validation import check_same_rows, label_sets
from fgfm.factors._counts import (
    Columns,
    combine,
    count_levels,
    encode,
    encode_labels,
    make_strata,
    refine,
)
from fgfm.factors._g import Degrees, g_test_columns, g_test_each
from fgfm.factors._iamb import check_alpha, iamb
from fgfm.factors.independence import PairwiseResult

__all__ = ["MutualInformation"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Progress = Callable[[int, int], None]

_IN_STEP = 16  # labels whose tables are computed together, at most


class MutualInformation(BaseEstimator):  # type: ignore[misc]
    r"""Conditional independence of labels by G tests, for discrete features.

    For each label i, find its Markov boundary :math:`M_i` in the features by IAMB, and test

    .. math:: Y_i \perp Y_j \mid M_i \quad \text{for every other label } j.

    Parameters
    ----------
    alpha : float, default=0.01
        Level of the tests that select the boundary.
    df : {"mi", "moments", "g", "permutation"}, default="mi"
        Degrees of freedom of all tests, as in `fgfm.factors.g_test`.
    max_levels : int or None, default=None
        Most levels that a feature may have; None is no limit.
    n_tables : int, default=100
        Number of tables that "permutation" draws.
    random_state : int, RandomState instance or None, default=None
        Seed of "permutation".

    See Also
    --------
    ILFCompo : Turns the p-values into label factors.

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
            Number of jobs, over labels. The answer does not depend on it.
        progress : callable, optional
            Called with the number of labels done and the number of all labels.

        Returns
        -------
        PairwiseResult
            The p-values; the effects are empirical conditional mutual informations, in nats.
        """
        data = self._data(X, Y)
        answers = _each(_rows, data, n_jobs, progress)
        p_values, effects = (np.vstack([a[k] for a in answers]) for k in (1, 2))
        return PairwiseResult(p_values, effects, [b for a in answers for b in a[0]])

    def ordered_pairs(
        self,
        X: Any,
        Y: Any,
        *,
        level: float | None = None,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> PairwiseResult:
        """Test each label against the later ones, given the earlier ones and those not joined.

        For label i the labels j > i are taken in order. Label j is tested given the features, the
        labels before i, and those labels between i and j that were found independent of i so far.
        The components of the resulting graph are the irreducible factors of any distribution
        (Gasse and Aussem, PGM 2016, theorem 10), at the price of very large conditioning sets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Discrete features. The Markov boundaries of all labels at hand stand for them.
        Y : array-like or sparse matrix of shape (n, m)
            Labels, 0 or 1.
        level : float, optional
            Labels with a larger p-value are independent; by default that of the boundaries.
        n_jobs : int, optional
            Number of jobs, over labels. The answer does not depend on it.
        progress : callable, optional
            Called with the number of steps done and the number of all steps.

        Returns
        -------
        PairwiseResult
            The p-values and effects, symmetric.
        """
        data = self._data(X, Y)
        m = data.Y.shape[1]
        steps = None if progress is None else lambda done, _: progress(done, 2 * m)
        boundaries = [b for a in _each(_boundaries, data, n_jobs, steps) for b in a]
        steps = None if progress is None else lambda done, _: progress(m + done, 2 * m)
        data = replace(data, boundaries=boundaries, alpha=data.alpha if level is None else level)
        answers = _each(_ordered_rows, data, n_jobs, steps)
        p_values, effects = (np.vstack([a[k] for a in answers]) for k in (0, 1))
        for matrix in (p_values, effects):
            below = np.tril_indices(m, -1)
            matrix[below] = matrix.T[below]
        return PairwiseResult(p_values, effects, boundaries)

    def _data(self, X: Any, Y: Any) -> _Data:
        degrees = Degrees.checked(self.df, self.n_tables)
        alpha = check_alpha(self.alpha)
        X = check_array(X, accept_sparse="csc", dtype=None)
        labels = label_sets(Y, "Y", allow_flat=True)  # (n, m)
        check_same_rows([X.shape[0], labels.shape[0]], ["X", "Y"])
        if sparse.issparse(labels):
            labels = labels.toarray()
        if self.max_levels is not None:
            levels = count_levels(X)  # before there is an indicator for each of them
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
        return _Data(encode(X), labels.astype(bool), alpha, degrees, seed, [])


@dataclass(frozen=True, eq=False)
class _Data(Shared):
    """What the tests of every label share."""

    columns: Columns
    Y: npt.NDArray[np.bool_]
    alpha: float
    degrees: Degrees
    seed: int
    boundaries: Sequence[Integers]

    def target(self, i: int) -> Integers:
        """Give label i as integers."""
        return self.Y[:, i].astype(np.int64)

    def rngs(self, labels: Iterable[int], step: int) -> list[Any]:
        """Give the generators of labels in a step; nothing is drawn but by "permutation"."""
        if self.degrees.kind != "permutation":
            return [None for _ in labels]
        return [np.random.default_rng([self.seed, i, step]) for i in labels]

    def features(self, chosen: Iterable[int]) -> list[tuple[Integers, int]]:
        """Give the codes and the number of levels of some features."""
        return [(self.columns.codes(int(j)), int(self.columns.levels[j])) for j in chosen]


def _each(
    work: Callable[[_Data, range], Any],
    data: _Data,
    n_jobs: int | None,
    progress: Progress | None,
) -> list[Any]:
    """Call ``work(data, labels)`` for groups of labels, in parallel; answers come in order."""
    m = data.Y.shape[1]
    jobs = n_workers(n_jobs)
    size = _IN_STEP if jobs == 1 else max(1, min(_IN_STEP, m // (4 * jobs)))
    groups = [range(start, min(start + size, m)) for start in range(0, m, size)]
    running: Iterator[Any]
    if jobs == 1:
        running = (work(data, group) for group in groups)
    else:
        running = run_jobs((delayed(work)(data, group) for group in groups), n_jobs)
    answers = []
    for group, answer in zip(groups, running, strict=True):
        answers.append(answer)
        if progress is not None:
            progress(group.stop, m)
    return answers


def _boundaries(data: _Data, labels: range) -> list[Integers]:
    targets = [data.target(i) for i in labels]
    return iamb(data.columns, targets, data.alpha, data.degrees, data.rngs(labels, 0))


def _rows(data: _Data, labels: range) -> tuple[list[Integers], Floats, Floats]:
    """Give the boundaries of labels, and their p-values and effects against all labels."""
    n = len(data.Y)
    boundaries = _boundaries(data, labels)
    problems = [
        make_strata(data.target(i), 2, *combine(data.features(boundary), n))
        for i, boundary in zip(labels, boundaries, strict=True)
    ]
    every = encode_labels(data.Y)
    result = g_test_columns(problems, every, data.degrees, data.rngs(labels, 1))
    p_values, effects = result.p_value, result.statistic / (2.0 * max(1, n))
    own = np.arange(len(labels)), np.array(labels)
    p_values[own] = effects[own] = np.nan
    return boundaries, p_values, effects


def _ordered_rows(data: _Data, labels: range) -> tuple[Floats, Floats]:
    """Give the p-values and effects of labels against the later ones."""
    rows = [
        _ordered_row(data, i, rng) for i, rng in zip(labels, data.rngs(labels, 1), strict=True)
    ]
    p_values, effects = (np.vstack([row[k] for row in rows]) for k in (0, 1))
    return p_values, effects


def _ordered_row(data: _Data, i: int, rng: Any) -> tuple[Floats, Floats]:
    n, m = data.Y.shape
    # The boundary of several labels together, up to what each of them does not show alone.
    features = sorted({int(k) for b in data.boundaries[: i + 1] for k in b})
    strata = combine(data.features(features), n)
    for k in range(i):
        strata = refine(*strata, data.target(k), 2)
    target = data.target(i)
    p_values, effects = np.full(m, np.nan), np.full(m, np.nan)
    for j in range(i + 1, m):
        other = data.target(j)
        problem = make_strata(target, 2, *strata)
        result = g_test_each([problem], [(other, 2)], data.degrees, [rng])
        p_values[j] = result.p_value[0]
        effects[j] = result.statistic[0] / (2.0 * max(1, n))
        if p_values[j] > data.alpha:
            new = [int(k) for k in data.boundaries[j] if int(k) not in features]
            features += new
            for codes, levels in data.features(new):
                strata = refine(*strata, codes, levels)
            strata = refine(*strata, other, 2)
    return p_values, effects
