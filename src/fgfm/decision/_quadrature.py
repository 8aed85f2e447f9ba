"""Quadrature rules: the reciprocal 1 / a as a short sum of powers.

Every expected F-measure is a sum of terms ``1 / a`` with ``a = beta^2 s + k``, where ``s`` is a
number of true labels and ``k`` the size of the decided set. A rule

    sum_r w_r z_r^a = 1 / a     (relative error <= 1e-13 for all a in [a_min, a_max])

with positive ``w_r`` and ``0 < z_r < 1`` separates ``s`` from ``k``, and turns an expectation over
``s`` into values of its generating function, which factorises over independent factors
(docs/design.md, "Separating s from k").

There are two kinds of rules; the one with fewer nodes is used:

- *best exponential sums*: ``1 / x`` on ``[1, ratio]`` as a sum of exponentials, the minimax
  approximation of Braess and Hackbusch (2005) at a fixed relative error. It depends on
  ``a_max / a_min`` only. ``scripts/make_quadrature_table.py`` computed the stored table once, in
  extended precision.
- *Gauss-Jacobi*: where ``beta^2`` is an integer, so is ``a``. Then ``z^(a - 1)`` is a polynomial
  times the weight ``z^(beta^2)``, and ``ceil((a_max - beta^2) / 2)`` nodes are exact.

References
----------
Braess, D. and Hackbusch, W. (2005). Approximation of 1/x by exponential sums in [1, infinity).
IMA Journal of Numerical Analysis 25, 685-697. doi:10.1093/imanum/dri015
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from importlib import resources
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm._kernels import Rules

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

ERROR = 1e-13  # bound on the relative error of every rule
_LONGEST_POLYNOMIAL_RULE = 24  # nodes; for longer ranges an exponential sum has fewer
_LARGEST_POLYNOMIAL_BETA2 = 25  # beyond it an exponential sum has fewer nodes for every range
_LONGEST_RATIO = 1e12  # a_max / a_min of the trapezoidal rule after the stored table


class Nodes(NamedTuple):
    """A rule for one range of ``a``: ``sum_r weight_r exp(a log_z_r) = 1 / a``."""

    log_z: Floats  # (R,)
    weight: Floats  # (R,)


class RuleTables(NamedTuple):
    """All rules for one beta.

    The ``fixed_*`` arrays concatenate the rules that start at the smallest possible
    ``a = beta^2 + 1``, with quantities derived from the nodes. The other arrays concatenate the
    exponential sums on ``[1, ratio]``, which the kernels scale to ranges that start elsewhere.
    """

    fixed_reach: Floats  # (T,) the largest a of each rule, increasing
    fixed_start: Integers  # (T + 1,) the first node of each rule
    fixed_log_z: Floats
    fixed_weight: Floats
    fixed_z: Floats
    fixed_zeta: Floats  # z^(beta^2)
    fixed_u: Floats  # 1 - zeta, without cancellation
    ratio: Floats  # (T',) the largest a_max / a_min of each sum, increasing
    start: Integers  # (T' + 1,)
    exponent: Floats
    weight: Floats
    longest: int  # the largest number of nodes of a rule


@cache
def _exponential_sums() -> list[tuple[float, Floats, Floats]]:
    """Return (ratio, exponents, weights) of the stored sums, and of a longer one after them."""
    source = resources.files("fgfm.decision") / "_quadrature_table.npz"
    with source.open("rb") as stream, np.load(stream, allow_pickle=False) as table:
        ends = np.cumsum(table["count"])
        exponents = np.split(table["exponent"], ends[:-1])
        weights = np.split(table["weight"], ends[:-1])
        sums = list(zip(table["ratio"].tolist(), exponents, weights, strict=True))
    # The trapezoidal rule for 1/x = int exp(v - x exp(v)) dv converges like exp(-pi^2 / step) on
    # any range. It has more nodes than a best sum, but needs no table. The range of v is such that
    # the tails left out are below 1e-15 = exp(-34.5).
    v = np.arange(-math.log(_LONGEST_RATIO) - 34.5, 4.0, 0.27)
    sums.append((_LONGEST_RATIO, np.exp(v), 0.27 * np.exp(v)))
    return sums


def _polynomial_rule(count: int, beta2: int) -> Nodes:
    """Return the Gauss-Jacobi rule with weight ``z^beta2`` on [0, 1]."""
    from scipy.special import roots_jacobi

    x, w = roots_jacobi(count, 0.0, beta2)
    z = (x + 1.0) / 2.0
    # 1 / a = int z^(a-1) dz = int z^beta2 z^(a-1-beta2) dz. A rule is applied to z^a, so that the
    # weights are divided by z^(beta2 + 1).
    return Nodes(np.log(z), w * 0.5 ** (beta2 + 1) * z ** -(beta2 + 1.0))


@lru_cache(maxsize=64)
def _shortest_rules(beta2: float) -> list[tuple[float, Nodes]]:
    """Return (reach, rule), each rule the shortest for all ``a`` from beta2 + 1 to its reach."""
    a_min = beta2 + 1.0
    candidates = [
        (ratio * a_min, Nodes(-t / a_min, w / a_min)) for ratio, t, w in _exponential_sums()
    ]
    if beta2 <= _LARGEST_POLYNOMIAL_BETA2 and beta2 == round(beta2):
        candidates += [
            (beta2 + 2.0 * count, _polynomial_rule(count, round(beta2)))
            for count in range(1, _LONGEST_POLYNOMIAL_RULE + 1)
        ]
    candidates.sort(key=lambda rule: (len(rule[1].log_z), -rule[0]))
    useful: list[tuple[float, Nodes]] = []
    for reach, rule in candidates:
        if not useful or reach > useful[-1][0]:
            useful.append((reach, rule))
    return useful


def nodes(beta: float, max_cardinality: int, max_size: int) -> Nodes:
    """Return the shortest rule for ``a = beta^2 s + k``, s from 1 and k from 1 to their largest.

    Examples
    --------
    >>> import numpy as np
    >>> log_z, weight = nodes(1.0, 1000, 1000)
    >>> a = np.arange(2, 2001)
    >>> len(weight), bool(np.abs(np.exp(np.outer(a, log_z)) @ weight * a - 1).max() < 1e-13)
    (29, True)
    """
    beta2 = beta * beta
    a_max = beta2 * max_cardinality + max_size
    for reach, rule in _shortest_rules(beta2):
        if reach >= a_max:
            return rule
    raise ValueError(
        f"max_cardinality and max_size give a = {a_max:g}: the largest a of a rule is "
        f"{_LONGEST_RATIO * (beta2 + 1.0):g}"
    )


def _concatenate(parts: list[Floats]) -> tuple[Integers, Floats]:
    """Concatenate arrays, and return the start of each as well."""
    start = np.zeros(len(parts) + 1, dtype=np.int64)
    np.cumsum([len(part) for part in parts], out=start[1:])
    return start, np.concatenate(parts)


def rule_tables(beta: float) -> RuleTables:
    """Return all rules for one beta, shortest first."""
    beta2 = beta * beta
    fixed = _shortest_rules(beta2)
    fixed_start, log_z = _concatenate([rule.log_z for _, rule in fixed])
    sums = _exponential_sums()
    start, exponent = _concatenate([t for _, t, _ in sums])
    return RuleTables(
        fixed_reach=np.array([reach for reach, _ in fixed]),
        fixed_start=fixed_start,
        fixed_log_z=log_z,
        fixed_weight=np.concatenate([rule.weight for _, rule in fixed]),
        fixed_z=np.exp(log_z),
        fixed_zeta=np.exp(beta2 * log_z),
        fixed_u=-np.expm1(beta2 * log_z),
        ratio=np.array([ratio for ratio, _, _ in sums]),
        start=start,
        exponent=exponent,
        weight=np.concatenate([w for _, _, w in sums]),
        longest=max(len(t) for _, t, _ in sums),
    )


@lru_cache(maxsize=64)
def rules(beta: float) -> Rules:
    """Return all rules for one beta as the object that the kernels take."""
    result = Rules()
    for name, value in rule_tables(beta)._asdict().items():
        setattr(result, name, value.tolist() if isinstance(value, np.ndarray) else value)
    return result
