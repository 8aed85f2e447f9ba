"""Scores of any unit as quantiles among those of validation rows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from fgfm.decider._entries import Entries

__all__ = ["Quantiles", "inverse_spread", "label_places", "quantile_candidates"]

Floats = npt.NDArray[np.float64]

_KNOTS = 125  # of a table, at most; two more extend it
_FEWEST = 20  # different scores of a label with a table of its own
_TINY, _HUGE = 1e-300, 1e100


class Quantiles:
    """Piecewise linear maps of scores to numbers between 0 and 1, one of each label or of all.

    A score s of label j is standardised, :math:`x = (s - c_j) r_j`, and x is looked up in a table
    of quantiles. Half a knot beyond the range of the validation rows the map is constant.

    Attributes
    ----------
    centers_, rates_ : ndarray of shape (m,)
        The medians c and the inverse interquartile ranges r.
    knots_ : ndarray of shape (1 or m, W)
        Increasing values of x, then infinity at least once; W is a power of two.
    levels_ : ndarray of shape (1 or m, W)
        What they are mapped to.
    """

    def __init__(
        self, centers: Floats, rates: Floats, tables: list[tuple[Floats, Floats]]
    ) -> None:
        self.centers_, self.rates_ = centers, rates
        width = 1 << max(len(knots) for knots, _ in tables).bit_length()
        self.knots_ = np.stack(
            [np.pad(x, (0, width - len(x)), constant_values=np.inf) for x, _ in tables]
        )
        self.levels_ = np.stack([np.pad(u, (0, width - len(u)), mode="edge") for _, u in tables])

    def with_tails(self, low: float, high: float) -> Quantiles:
        """Return maps to ``(u + low) / (1 + low + high)``, whose logits have shorter tails."""
        other = object.__new__(Quantiles)
        levels = (self.levels_ + low) / (1.0 + low + high)
        vars(other).update(vars(self) | {"levels_": levels})
        return other

    def read(self, entries: Entries) -> Entries:
        """Return the same entries with quantiles in place of scores."""
        with np.errstate(over="ignore"):
            x = (entries.p - entries.of_label(self.centers_)) * entries.of_label(self.rates_)
        x = np.clip(x, -_HUGE, _HUGE)
        count, width = self.knots_.shape
        knots, levels = self.knots_.ravel(), self.levels_.ravel()
        start: Any = np.zeros(1, dtype=np.int64)
        if count > 1:
            start = entries.of_label(width * np.arange(count)).astype(np.int64)
        x = np.maximum(x, knots[start])
        below, step = np.broadcast_to(start, x.shape), width // 2
        while step:  # bisection for the last knot that is not above x
            higher = below + step
            below = np.where(x >= knots[higher], higher, below)
            step //= 2
        left = knots[below]
        share = (x - left) / (knots[below + 1] - left)
        return entries.with_p(levels[below] + share * (levels[below + 1] - levels[below]))


def quantile_candidates(entries: Entries, w: Floats) -> list[Quantiles]:
    """Return the ways to read scores, from entries with weights (n, K), simplest first.

    Labels share unit and offset, as the logits of one network; or only the shape of their
    distributions; or nothing.
    """
    m, used = entries.m, w > 0.0
    everything = _distribution(entries.p[used], w[used])
    center, rate = _standard(*everything)
    ones = np.ones(m)
    shared = [_table((everything[0] - center) * rate, everything[1])]
    candidates = [Quantiles(center * ones, rate * ones, shared)]
    if m == 1:
        return candidates
    own = []
    for place in label_places(entries):
        kept = w[place] > 0.0
        own.append(_distribution(entries.p[place][kept], w[place][kept]))
    # A label with few scores is read as the others.
    known = [len(v) >= _FEWEST for v, _ in own]
    standards = [
        _standard(v, u) if k else (center, rate) for k, (v, u) in zip(known, own, strict=True)
    ]
    centers, rates = np.transpose(standards)  # (m,) each
    with np.errstate(over="ignore"):
        x = (entries.p - entries.of_label(centers)) * entries.of_label(rates)
    common = _table(*_distribution(x[used], w[used]))
    candidates.append(Quantiles(centers, rates, [common]))
    tables = [
        _table((v - c) * r, u) if k else common
        for k, (v, u), c, r in zip(known, own, centers, rates, strict=True)
    ]
    return [*candidates, Quantiles(centers, rates, tables)]


def label_places(entries: Entries) -> list[Any]:
    """Return, for each label, the index of its entries."""
    if entries.labels is None:
        return [(slice(None), j) for j in range(entries.m)]
    flat = entries.labels.ravel()
    order = np.argsort(flat, kind="stable")
    bounds = np.searchsorted(flat[order], np.arange(entries.m + 1))
    K = entries.labels.shape[1]
    return [divmod(order[i:j], K) for i, j in pairwise(bounds)]


def inverse_spread(values: Floats, w: Floats) -> float:
    """Return 1 / the interquartile range of weighted values."""
    return _standard(*_distribution(values[w > 0.0], w[w > 0.0]))[1]


def _distribution(values: Floats, w: Floats) -> tuple[Floats, Floats]:
    """Return the different values, increasing, and the quantiles in the middle of their mass."""
    values, code = np.unique(values, return_inverse=True)
    mass = np.bincount(code, w, minlength=len(values))
    return values, (np.cumsum(mass) - 0.5 * mass) / max(float(mass.sum()), _TINY)


def _standard(values: Floats, u: Floats) -> tuple[float, float]:
    """Return the median of a distribution, and 1 / its interquartile range."""
    low, center, high = np.interp([0.25, 0.5, 0.75], u, values)
    spread = max(float(high - low), float(np.abs(values - center).mean()) * (high == low))
    return float(center), 1.0 / spread if spread > _TINY else 1.0


def _table(x: Floats, u: Floats) -> tuple[Floats, Floats]:
    """Return at most `_KNOTS` + 2 points of a distribution, dense in its tails, and extended.

    Beyond the ends the odds of the tail go on as between its last quarter and its end, as far as
    one half.
    """
    if len(x) > _KNOTS:
        grid = expit(np.linspace(logit(u[0]), logit(u[-1]), _KNOTS))
        kept = np.unique(np.minimum(np.searchsorted(u, grid), len(u) - 1))
        x, u = x[kept], u[kept]
    low = 0.5 * (np.interp(4.0 * u[0], u, x) - x[0])
    high = 0.5 * (x[-1] - np.interp(4.0 * u[-1] - 3.0, u, x))
    if low > 0.0:
        x, u = np.append(x[0] - low, x), np.append(0.5 * u[0], u)
    if high > 0.0:
        x, u = np.append(x, x[-1] + high), np.append(u, 0.5 + 0.5 * u[-1])
    return x, u
