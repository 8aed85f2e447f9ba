"""Paired t-test, Holm's correction, and scores of label factors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

Floats = npt.NDArray[np.float64]


class PairedTest(NamedTuple):
    """Result of a paired t-test: mean, standard error, 95 % interval and p-value."""

    mean: float
    standard_error: float
    low: float
    high: float
    p_value: float


def standard_error(values: Floats) -> float:
    """Return the standard error of a mean; NaN for a single value."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def paired_t_test(differences: Floats) -> PairedTest:
    """Test the hypothesis that paired differences have mean 0."""
    mean, error = float(differences.mean()), standard_error(differences)
    if not error > 0.0:  # one difference, or all equal: the t statistic is undefined
        p = 1.0 if len(differences) > 1 and mean == 0.0 else float("nan")
        return PairedTest(mean, error, mean - error, mean + error, p)
    t = stats.t(len(differences) - 1)
    width = float(t.ppf(0.975)) * error
    p = float(2.0 * t.sf(abs(mean / error)))
    return PairedTest(mean, error, mean - width, mean + width, p)


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for multiple testing by Holm's method.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    valid = np.flatnonzero(~np.isnan(p))
    order = valid[np.argsort(p[valid], kind="stable")]
    corrected = p.copy()
    # the k-th smallest of K is multiplied by K - k + 1, and must not be below the one before
    scaled = p[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return [float(v) for v in corrected]


def score_factors(
    found: Iterable[Iterable[int]], true: Iterable[Iterable[int]]
) -> tuple[float, float, bool]:
    """Compare two partitions by the pairs of labels that share a factor; 0/0 is 1."""
    learned, expected = _pairs(found), _pairs(true)
    common = len(learned & expected)
    precision = common / len(learned) if learned else 1.0
    return precision, common / len(expected) if expected else 1.0, learned == expected


def _pairs(factors: Iterable[Iterable[int]]) -> frozenset[tuple[int, int]]:
    """Return the pairs of labels that share a factor."""
    parts = [sorted(int(label) for label in factor) for factor in factors]
    return frozenset((i, j) for part in parts for i in part for j in part if i < j)
