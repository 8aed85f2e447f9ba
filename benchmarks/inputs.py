"""Generated probabilities of three kinds.

sparse
    A long tail: few labels are likely, most are not, about 5 labels expected. The common case.
dense
    As many labels present as absent. The largest label sets.
flat
    All labels about equally likely, 2 labels expected in all. No label stands out.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm import cardinality

__all__ = [
    "FactorRows",
    "cardinality_rows",
    "factor_rows",
    "marginal_rows",
    "sparse_rows",
]

Floats = npt.NDArray[np.float64]


class FactorRows(NamedTuple):
    """The arguments of `fgfm.decision.from_factors`."""

    Ps: list[Floats]  # (n, m_f, S_f) each
    factors: list[list[int]]


def _long_tail(rng: np.random.Generator, n: int, size: int, total: float) -> Floats:
    """Draw rows of probabilities that fall like 1 / rank, in random order, with about this sum."""
    likely = 1.0 / np.arange(1.0, size + 1.0)
    likely *= total / likely.sum()
    p = np.minimum(likely * rng.exponential(size=(n, size)), 0.98)  # (n, size)
    return rng.permuted(p, axis=1, out=p)


def marginal_rows(kind: str, n: int, m: int, seed: int = 0) -> Floats:
    """Draw marginals, (n, m), of one of the three kinds."""
    rng = np.random.default_rng([seed, n, m])
    if kind == "sparse":
        return _long_tail(rng, n, m, total=min(5.0, m / 4))
    if kind == "dense":
        return rng.random((n, m))
    return (min(2.0, m / 4) / m) * rng.uniform(0.99, 1.01, size=(n, m))


def sparse_rows(n: int, m: int, stored: int, seed: int = 0) -> sparse.csr_array:
    """Draw marginals in CSR, (n, m), with `stored` entries per row and 5 expected labels."""
    rng = np.random.default_rng([seed, n, m])
    stride = m // stored
    first = np.arange(stored) * stride
    indices = (first + rng.integers(stride, size=(n, stored))).astype(np.int32)  # ascending
    data = _long_tail(rng, n, stored, total=5.0)
    indptr = np.arange(n + 1, dtype=np.int32) * stored
    return sparse.csr_array((data.ravel(), indices.ravel(), indptr), shape=(n, m))


def factor_rows(kind: str, n: int, singletons: int, fours: int, seed: int = 0) -> FactorRows:
    """Draw factors of one label and factors of four, of labels in random order.

    Within a factor of four the 15 non-empty label sets have random probabilities, so that its
    labels depend on each other.
    """
    rng = np.random.default_rng([seed, n, singletons, fours])
    m = singletons + 4 * fours
    labelsets = np.array(list(itertools.product([0, 1], repeat=4)))[1:]  # (15, 4)
    # A factor of four that is not empty has about 2 labels.
    present = marginal_rows(kind, n, singletons + fours, seed)  # (n, factors)
    if kind == "sparse":
        present /= (singletons + 2.0 * fours) / (singletons + fours)
    Ps: list[Floats] = []
    for f in range(singletons + fours):
        if f < singletons:
            Ps.append(present[:, f, None, None])
            continue
        share = rng.exponential(size=(n, 15)) ** 2
        share *= present[:, f, None] / share.sum(axis=1, keepdims=True)
        empty = 1.0 - present[:, f, None]
        sets = np.vstack([np.zeros((1, 4), dtype=int), labelsets])
        Ps.append(cardinality.of_joint(sets, np.hstack([empty, share])))
    places = rng.permutation(m).tolist()
    ends = np.cumsum([P.shape[1] for P in Ps]).tolist()
    factors = [places[end - P.shape[1] : end] for P, end in zip(Ps, ends, strict=True)]
    return FactorRows(Ps, factors)


def cardinality_rows(kind: str, n: int, m: int, seed: int = 0) -> Floats:
    """Draw P, (n, m, m), of mixtures of three models of independent labels."""
    parts = (cardinality.of_marginals(marginal_rows(kind, n, m, seed + c)) for c in range(3))
    P = sum(parts, start=np.zeros((n, m, m)))
    P /= 3.0
    return P
