"""Estimates of P and d of label factors, and decisions from those of all factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm.cardinality import distribution, merge_factors, of_marginals
from fgfm.decision import Decision, from_cardinalities, from_factors, from_marginals

__all__ = [
    "FactorEstimate",
    "concatenate_rows",
    "conditional_marginals",
    "decide_together",
    "label_sums",
    "replace_by_independent",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Labels = npt.NDArray[np.bool_]


class FactorEstimate(NamedTuple):
    """P and d of one label factor, for some rows."""

    P: Floats  # (n, m, S): P[r, i, s - 1] = p(y_i = 1, |y| = s)
    d: Floats  # (n, S + 1): d[r, s] = p(|y| = s)


def label_sums(estimates: Sequence[FactorEstimate], factors: Sequence[Integers]) -> Floats:
    """Return the marginals (n, m) of all labels: the sums of P over the cardinalities."""
    p = np.empty((len(estimates[0].P), sum(map(len, factors))))
    for factor, (P, _) in zip(factors, estimates, strict=True):
        p[:, factor] = P.sum(axis=2)
    return p


def conditional_marginals(
    estimates: Sequence[FactorEstimate], factors: Sequence[Integers], nonempty: bool
) -> Floats:
    """Return the marginals (n, m) of all labels, given y != 0 if `nonempty`."""
    p = label_sums(estimates, factors)
    if nonempty:
        d_0 = np.prod([d[:, 0] for _, d in estimates], axis=0)  # (n,)
        p /= _positive(1.0 - d_0)[:, None]
    return np.minimum(p, 1.0)


def decide_together(
    estimates: Sequence[FactorEstimate], factors: Sequence[Integers], params: dict[str, Any]
) -> Decision:
    """Decide all rows together, for average="macro", "weighted" or "micro"."""
    nonempty = params.pop("nonempty")
    Ps, ds = [P for P, _ in estimates], [d for _, d in estimates]
    places = [factor.tolist() for factor in factors]
    if not nonempty:
        return from_factors(Ps, places, distributions=ds, **params)
    # Given y != 0, the factors of a row depend on each other: p(y_i = 1, s | y != 0) is
    # p_is / (1 - d_0), with P and d of all labels.
    if params["average"] != "micro":
        return from_marginals(conditional_marginals(estimates, factors, True), **params)
    P, d = merge_factors(Ps, places, ds)
    present = d[:, 1:].sum(axis=1)  # (n,)
    P = P / _positive(present)[:, None, None]
    P /= np.maximum(1.0, P.sum(axis=2, keepdims=True))  # where P and d do not agree
    d = np.column_stack([present == 0.0, d[:, 1:] / _positive(present)[:, None]])
    return from_cardinalities(P, distribution=d, **params)


def _positive(present: Floats) -> Floats:
    """Return probabilities with 0 replaced by 1, to divide by."""
    return np.where(present > 0.0, present, 1.0)


def concatenate_rows(blocks: Sequence[FactorEstimate]) -> FactorEstimate:
    """Concatenate the estimates of one factor for consecutive blocks of rows."""
    S = max(P.shape[2] for P, _ in blocks)  # objects of the user may return different S
    parts = zip(*(_pad(block, S) for block in blocks), strict=True)
    return FactorEstimate(*(np.concatenate(part) for part in parts))


def replace_by_independent(estimate: FactorEstimate, rows: Labels, p: Floats) -> FactorEstimate:
    """Replace rows, a mask (n,), by independent labels with marginals p (m,); S becomes m."""
    P, d = _pad(estimate, len(p))
    P_independent = of_marginals(p[None])  # (1, m, m)
    P[rows], d[rows] = P_independent, distribution(P_independent)
    return FactorEstimate(P, d)


def _pad(estimate: FactorEstimate, S: int) -> FactorEstimate:
    """Append cardinalities of probability 0, up to S."""
    P, d = estimate
    more = S - P.shape[2]
    if more == 0:
        return estimate
    return FactorEstimate(np.pad(P, [(0, 0), (0, 0), (0, more)]), np.pad(d, [(0, 0), (0, more)]))
