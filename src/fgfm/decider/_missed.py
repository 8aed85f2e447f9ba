"""True items that no candidate of a row stands for: a distribution given the number of labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.stats import poisson

from fgfm._utils.log_linear_pool import LogLinearPool, hats, possible_numbers
from fgfm._utils.names import check_same_index
from fgfm._utils.validation import check_same_rows, label_sets, place, real_array

__all__ = ["MissedItems", "read_missed", "with_missed"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_POWERS = np.linspace(0.0, 1.5, 7)


def read_missed(missed: Any, X: Any, n: int) -> Integers:
    """Validate the numbers (n,) of missed items of the rows of X."""
    check_same_index(X=X, missed=missed)
    counts = real_array(missed, "missed", ("row",))
    check_same_rows([n, len(counts)], ["X", "missed"])
    wrong = ~((counts >= 0) & (counts % 1 == 0) & np.isfinite(counts))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"{place('missed', (row,))} is {counts[row]}: it must be a number of true items, 0 or "
            "more"
        )
    return counts.astype(np.int64)


def with_missed(labels: Any, truth: Any, missed: Integers) -> tuple[Any, Any]:
    """Return labels and truth (n, m) with a column for each missed item, which no row predicts."""
    ends = np.append(0, np.cumsum(missed))
    places = np.arange(ends[-1]) - np.repeat(ends[:-1], missed)
    shape = len(missed), int(missed.max(initial=0))
    items = sparse.csr_array((np.ones(ends[-1], dtype=np.int8), places, ends), shape=shape)
    one, other = (sparse.csr_array(label_sets(table, "y")) for table in (labels, truth))
    none = sparse.csr_array(shape, dtype=np.int8)
    return sparse.hstack([one, none], format="csr"), sparse.hstack([other, items], format="csr")


class MissedItems:
    r"""The number M of missed items of a row with s labels.

    A `LogLinearPool` of the Poisson distribution of mean :math:`c (1 + s)^b`, of which b has the
    largest likelihood and c makes the mean right: the pool learns how much wider M spreads.

    Attributes
    ----------
    rate : float
        The mean number of a row.
    power, scale : float
        The values b and c.
    numbers : ndarray of shape (K,)
        The numbers that are possible.
    pool : LogLinearPool
        Their distribution, given that mean.
    """

    def fit(self, missed: Integers, s: Integers, weight: Floats) -> MissedItems:
        """Fit to the numbers of missed items and of labels of n rows."""
        mass = float(weight.sum())
        self.rate = float(weight @ missed) / mass
        scales = [self.rate * mass / float(weight @ (1.0 + s) ** b) for b in _POWERS]
        likelihoods = [
            weight @ poisson.logpmf(missed, c * (1.0 + s) ** b)
            for b, c in zip(_POWERS, scales, strict=True)
        ]
        best = int(np.argmax(likelihoods))
        self.power, self.scale = float(_POWERS[best]), scales[best]
        self.numbers = possible_numbers(missed, np.iinfo(np.int64).max)
        self.pool = LogLinearPool(self.numbers)
        self.pool.fit(self._poisson(s), np.searchsorted(self.numbers, missed), weight)
        return self

    def given(self, most: int) -> tuple[Floats, Floats]:
        """Return J numbers, and their probabilities (S + 1, J) for each number of labels.

        Between the numbers that the pool has shifts for, probability is divided so that the mean
        stays: the F-measure hardly differs there.
        """
        knots = hats(self.numbers)  # (K, J)
        p = self.pool.predict_proba(self._poisson(np.arange(most + 1)))  # (S + 1, K)
        at = self.numbers[knots.argmax(axis=0)].astype(np.float64)
        return at, np.ascontiguousarray(p @ knots)

    def _poisson(self, s: Integers) -> list[Floats]:
        mean = self.scale * (1.0 + s[:, None]) ** self.power
        return [poisson.pmf(self.numbers, mean)]
