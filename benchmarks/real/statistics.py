"""Comparison of several systems on several data sets (Demsar, 2006), and bootstrap intervals.

References
----------
Demsar, J. (2006). Statistical comparisons of classifiers over multiple data sets. Journal of
Machine Learning Research 7, 1-30.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

__all__ = [
    "Friedman",
    "bootstrap_means",
    "critical_difference",
    "friedman",
    "groups_within",
    "interval",
]

Floats = npt.NDArray[np.float64]


class Friedman(NamedTuple):
    """Friedman test of the hypothesis that all systems have the same mean rank."""

    statistic: float
    p_value: float


def friedman(ranked: Floats) -> Friedman:
    """Run the Friedman test, corrected for ties."""
    k = ranked.shape[1]
    centred = ranked - (k + 1) / 2.0
    spread = float((centred**2).sum())
    if spread == 0.0:
        return Friedman(float("nan"), float("nan"))
    statistic = (k - 1) * float((centred.sum(axis=0) ** 2).sum()) / spread
    return Friedman(statistic, float(stats.chi2.sf(statistic, k - 1)))


def critical_difference(n_systems: int, n_datasets: int, level: float = 0.05) -> float:
    """Return the critical difference of mean ranks of Nemenyi's test."""
    # the quantile of the studentized range over sqrt(2), as in table 5 of Demsar (2006)
    q = stats.studentized_range.ppf(1.0 - level, n_systems, np.inf) / np.sqrt(2.0)
    return float(q * np.sqrt(n_systems * (n_systems + 1) / (6.0 * n_datasets)))


def groups_within(mean_ranks: Floats, difference: float) -> list[tuple[int, int]]:
    """Find the maximal runs of systems whose mean ranks differ by at most a difference."""
    last = np.searchsorted(mean_ranks, mean_ranks + difference, side="right") - 1
    found: list[tuple[int, int]] = []
    for first, end in enumerate(last.tolist()):
        if end > first and (not found or end > found[-1][1]):
            found.append((first, end))
    return found


def bootstrap_means(values: Floats, n_samples: int, random: np.random.Generator) -> Floats:
    """Return the means of bootstrap samples."""
    # Differences of F-measures take few distinct values: draw how often each occurs.
    distinct, count = np.unique(values, return_counts=True)
    drawn = random.multinomial(len(values), count / len(values), size=n_samples)
    return np.asarray(drawn @ distinct / len(values))


def interval(means: Floats, level: float = 0.95) -> tuple[float, float]:
    """Return the percentile interval of bootstrap means."""
    low, high = np.quantile(means, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return float(low), float(high)
