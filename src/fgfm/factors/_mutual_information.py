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
from sklearn.utils.parallel import delayed

from fgfm._utils.blocks import n_workers
from fgfm._utils.parallel import Shared, run_jobs
from fgfm.factors._contingency import (
    Columns,
    combine,
    encode,
    encode_labels,
    make_strata,
)
from fgfm.factors._g_test import g_test_columns
from fgfm.factors._markov_boundary import iamb
from fgfm.factors._pairwise import PairwiseResult

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_BATCH_SIZE = 16  # most labels whose tables are computed together


def pairs_given_boundaries(
    X: Any, Y: npt.NDArray[np.bool_], alpha: float, df: str, n_jobs: int | None
) -> PairwiseResult:
    r"""Test all pairs of labels by G tests, for discrete features.

    For each label i, find its Markov boundary :math:`M_i` in the features by IAMB at level
    `alpha`, and test :math:`Y_i \perp Y_j \mid M_i` for every other label j. `df` is as in
    `fgfm.factors.g_test`. The effects are empirical conditional mutual informations in nats.
    """
    data = _TestData(encode(X), Y, alpha, df)
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
