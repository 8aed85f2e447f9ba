r"""Thresholds with the largest F-measure in the limit of many rows, and its expectation.

In a large batch the numbers of hits and of labels are at their expectations: a label with
probabilities :math:`p_r` in rows of weight :math:`w_r`, predicted in the rows h, has

.. math:: F = \frac{(1 + \beta^2) \sum_{r \in h} w_r p_r}{\beta^2 \sum_r w_r p_r + \sum_{r \in h}
          w_r},

and the best h are the most probable rows. Rows with equal probabilities, a level, are predicted
together, since a threshold cannot tell them apart.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from fgfm.decider._entries import Entries

__all__ = [
    "CLOSE",
    "as_counts",
    "best_cuts",
    "best_cuts_with_floors",
    "cut_between",
    "expectation_shift",
    "large_batch_f",
    "nearest_counts",
    "shifted",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_MOST_COPIES = 10  # of a row, on average
_ROUNDING = 1e-12  # by which an expectation may be below a floor
CLOSE = 1e-9  # relative distance of a threshold from a probability that counts as equal
_ERROR = 0.03  # standard deviation of the mean error of macro expectations, over data sets
_MOST_SHIFT = 3.0  # of their logits


def as_counts(weight: Floats) -> Integers | None:
    """Return weights that are numbers of rows as integers; None if they are not, or too large."""
    if weight.sum() > _MOST_COPIES * len(weight) or (weight % 1.0).any():
        return None
    return weight.astype(np.int64)


def nearest_counts(weight: Floats) -> Integers:
    """Return weights as numbers of rows, rounded where they are not."""
    counts = as_counts(weight)
    if counts is None:
        counts = np.rint(weight * (_MOST_COPIES * len(weight) / weight.sum())).astype(np.int64)
    return counts


def large_batch_f(
    p: Entries, chosen: npt.NDArray[Any], beta: float, empty: float, missed: Any = 0.0
) -> Floats:
    """Return the F-measure (m,) of chosen entries (n, K), 0 or 1; `empty` is that of 0/0.

    `missed` is the number, or numbers (m,), of true items of labels that no entry stands for.
    """
    size = beta**2 * (p.by_label(p.p) + missed) + p.by_label(chosen)
    hits = (1.0 + beta**2) * p.by_label(p.p * chosen)
    of_none = np.full(len(size), float(empty))
    return np.asarray(np.divide(hits, size, out=of_none, where=size > 0.0))


class _Levels(NamedTuple):
    """The distinct probabilities of one label, the largest first, and sums down to each.

    Those that differ by rounding errors are one level.
    """

    p: Floats  # (L,)
    hits: Floats  # (L,) sums of w p
    size: Floats  # (L,) sums of w

    def f(self, beta: float, missed: float = 0.0) -> Floats:
        """Return the F-measure of the rows down to each level."""
        total = self.hits[-1] + missed
        return np.asarray((1.0 + beta**2) * self.hits / (beta**2 * total + self.size))

    def cut(self, k: int) -> float:
        """Return a threshold between level k and the next one."""
        below = self.p[k + 1] if k + 1 < len(self.p) else 0.0
        return float(0.5 * (self.p[k] + below))


def _levels(entries: Entries, weight: Floats) -> list[_Levels | None]:
    """Return the levels of each label; None for a label without a possible row."""
    labels = np.arange(entries.m) if entries.labels is None else entries.labels
    labels = np.broadcast_to(labels, entries.p.shape).ravel()
    p, w = entries.p.ravel(), np.repeat(weight, entries.p.shape[1])
    kept = np.flatnonzero((labels < entries.m) & (p > 0.0) & (w > 0.0))
    order = kept[np.lexsort((-p[kept], labels[kept]))]
    labels, p, w = labels[order], p[order], w[order]
    levels: list[_Levels | None] = []
    bounds = np.searchsorted(labels, np.arange(entries.m + 1))
    for start, stop in itertools.pairwise(bounds):
        if start == stop:
            levels.append(None)
            continue
        of_label, weights = p[start:stop], w[start:stop]
        falls = of_label[1:] < (1.0 - CLOSE) * of_label[:-1]
        last = np.flatnonzero(np.append(falls, True))
        hits, size = np.cumsum(weights * of_label)[last], np.cumsum(weights)[last]
        levels.append(_Levels(of_label[last], hits, size))
    return levels


def best_cuts(
    entries: Entries, weight: Floats, beta: float, empty: float, missed: float = 0.0
) -> Floats:
    r"""Return :math:`\max F / (1 + \beta^2)` of each label (m,); F is `empty` without rows."""
    best = [empty if of is None else of.f(beta, missed).max() for of in _levels(entries, weight)]
    return np.array(best) / (1.0 + beta**2)


def best_cuts_with_floors(
    entries: Entries, weight: Floats, beta: float, empty: float, floors: dict[str, float]
) -> tuple[Floats, list[tuple[int, str, float]]]:
    """Return the best thresholds (m,) whose expected precision and recall have floors.

    The second value lists the labels without such a threshold, which get the threshold 1, with the
    measure that falls short and its largest value.
    """
    precision_floor, recall_floor = (
        floors.get(name, 0.0) - _ROUNDING for name in ("min_precision", "min_recall")
    )
    cuts, short = np.ones(entries.m), []
    for j, levels in enumerate(_levels(entries, weight)):
        if levels is None:
            cuts[j] = empty / (1.0 + beta**2)
            continue
        precision, recall = levels.hits / levels.size, levels.hits / levels.hits[-1]
        f = levels.f(beta)
        enough = recall >= recall_floor
        feasible = enough & (precision >= precision_floor)
        if not feasible.any():
            short.append((j, "precision", float(precision[enough].max())))
            continue
        k = int(np.argmax(np.where(feasible, f, -1.0)))
        usual = f.max() / (1.0 + beta**2)
        below = levels.p[k + 1] if k + 1 < len(f) else 0.0
        # The usual threshold, unless a floor moves it.
        cuts[j] = usual if below < usual < levels.p[k] else levels.cut(k)
    return cuts, short


def cut_between(entries: Entries, cuts: Floats) -> Floats:
    """Return thresholds (m,) that differ from every probability of their label.

    A threshold that equals a probability, which it does not exceed, moves up to the middle between
    this and the next larger one.
    """
    of_entry = entries.of_label(cuts)
    equal = (np.abs(entries.p - of_entry) <= CLOSE * of_entry) & (entries.p > 0.0)
    if not equal.any():
        return cuts
    cuts = cuts.copy()
    for j, levels in enumerate(_levels(entries, np.ones(len(entries.p)))):
        if levels is None or not (np.abs(levels.p - cuts[j]) <= CLOSE * cuts[j]).any():
            continue
        above = levels.p[levels.p > cuts[j] * (1.0 + CLOSE)]
        equal_one = levels.p[np.abs(levels.p - cuts[j]) <= CLOSE * cuts[j]].max()
        cuts[j] = 0.5 * (equal_one + (above.min() if len(above) else 1.0))
    return cuts


def expectation_shift(expected: Floats, obtained: Floats) -> float:
    r"""Return the shift of the logits of expected F-measures that obtained ones call for.

    With the mean difference :math:`\bar\delta` over m labels, whose standard error is at
    most s, :math:`s^2 = \sum_j \delta_j^2 / m^2`, the shifted mean is lower by
    :math:`\bar\delta \, \tau^2 / (\tau^2 + s^2)`, the posterior mean of an error that has
    standard deviation tau over data sets.
    """
    difference = expected - obtained
    error = float(difference @ difference) / len(difference) ** 2
    share = _ERROR**2 / (_ERROR**2 + error)
    target = float(expected.mean() - share * difference.mean())

    def excess(shift: float) -> float:
        return float(shifted(expected, shift).mean()) - target

    # Expectations of 0 and 1 do not change: the target may be out of reach.
    if excess(-_MOST_SHIFT) >= 0.0 or excess(_MOST_SHIFT) <= 0.0:
        return 0.0
    return float(brentq(excess, -_MOST_SHIFT, _MOST_SHIFT))


def shifted(f: Floats, shift: float) -> Floats:
    """Return the values in [0, 1] whose odds are exp(shift) times as large."""
    odds = np.exp(shift) * f
    return np.asarray(odds / (1.0 - f + odds))
