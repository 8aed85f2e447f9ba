"""True items that no candidate of a row stands for: a distribution given the number of labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.stats import poisson

from fgfm._utils.names import check_same_index
from fgfm._utils.validation import check_same_rows, label_sets, place, real_array
from fgfm.decider._log_linear_pool import LogLinearPool, hats, possible_numbers

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
    numbers : ndarray of shape (J,)
        The numbers that the pool has shifts for. Probability between them is divided so that the
        mean stays: the F-measure hardly differs there.
    given : ndarray of shape (S + 1, J)
        Their probabilities for each number of labels.
    """

    def fit(self, missed: Integers, s: Integers, weight: Floats, most: int) -> MissedItems:
        """Fit to the numbers of missed items and of labels, up to S = `most`, of n rows."""
        mass = float(weight.sum())
        self.rate = float(weight @ missed) / mass
        scales = [self.rate * mass / float(weight @ (1.0 + s) ** b) for b in _POWERS]
        likelihoods = [
            weight @ poisson.logpmf(missed, c * (1.0 + s) ** b)
            for b, c in zip(_POWERS, scales, strict=True)
        ]
        best = int(np.argmax(likelihoods))
        numbers = possible_numbers(missed, np.iinfo(np.int64).max)

        def distribution(s: Integers) -> list[Floats]:
            mean = scales[best] * (1.0 + s[:, None]) ** _POWERS[best]
            return [poisson.pmf(numbers, mean)]

        pool = LogLinearPool(numbers)
        pool.fit(distribution(s), np.searchsorted(numbers, missed), weight)
        knots = hats(numbers)  # (K, J)
        self.numbers = numbers[knots.argmax(axis=0)].astype(np.float64)
        self.given = pool.predict_proba(distribution(np.arange(most + 1))) @ knots
        return self
