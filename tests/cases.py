"""Cases that all implementations of a decision are tested on, and helpers to compare decisions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from scipy import sparse

import oracle

_rng = np.random.default_rng(20161)

MARGINALS: dict[str, np.ndarray] = {
    "one label": np.array([[0.0], [0.3], [0.5], [0.7], [1.0]]),
    "zeros and ones": np.array(
        [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [1.0, 0.0, 0.5], [0.0, 0.2, 0.0]]
    ),
    "equal": np.array([[0.1] * 6, [0.25] * 6, [0.5] * 6, [0.9] * 6]),
    "ties of sizes": np.array([[1.0, 0.5], [0.5, 1.0], [0.5, 0.0]]),
    "near-deterministic": np.array(
        [[1e-12, 1.0 - 1e-12, 1e-9], [1.0 - 1e-15, 1e-15, 0.5], [1e-300, 1.0, 1e-8]]
    ),
    "tiny": np.array([[1e-300, 2e-300, 1e-299], [1e-20, 1e-10, 1e-30], [1e-3, 1e-4, 1e-5]]),
    "small and large": np.array(
        [[1 / 64, 0.9, 1 / 64 + 1e-9, 0.01, 0.02, 0.7], [0.015] * 3 + [0.016] * 3]
    ),
    "tenths": np.round(_rng.random((12, 7)), 1),
    "uniform": _rng.random((12, 8)),
    "long tail": _rng.random((12, 9)) ** 6,
    "mostly present": 1.0 - _rng.random((6, 8)) ** 5,
    "ten labels": _rng.random((3, 10)) ** 2,
}
BETAS = [0.1, 0.5, 1.0, 2.0, 5.0]
ZERO_DIVISIONS = [0.0, 0.4, 1.0]

every_beta = pytest.mark.parametrize("beta", BETAS)
every_option = pytest.mark.parametrize(
    ("zero_division", "nonempty"), [(z, False) for z in ZERO_DIVISIONS] + [(1.0, True)]
)


def possible_rows(p: np.ndarray, nonempty: bool) -> np.ndarray:
    """Leave out the rows without any possible label, if these contradict `nonempty`."""
    return p[p.max(axis=1) > 0.0] if nonempty else p


def random_factors(
    rng: np.random.Generator, n: int, sizes: Sequence[int]
) -> tuple[list[oracle.Joint], list[list[int]], list[np.ndarray]]:
    """Draw joint distributions of factors of these sizes; return them, the factors and their P."""
    factors = np.split(rng.permutation(sum(sizes)), np.cumsum(sizes)[:-1])
    joints = [oracle.random_joint(rng, n, size) for size in sizes]
    Ps = [oracle.cardinality_matrix(*joint) for joint in joints]
    return joints, [factor.tolist() for factor in factors], Ps


def dense(labels):
    """Return labels as a dense array."""
    return labels.toarray() if sparse.issparse(labels) else np.asarray(labels)


def assert_same_decision(first, second, rtol=1e-11):
    """Assert that two decisions have the same labels, and nearly the same expectations."""
    np.testing.assert_allclose(first.expected_f, second.expected_f, rtol=rtol)
    np.testing.assert_array_equal(dense(first.labels), dense(second.labels))


def assert_best_of_prefixes(p, labels, expected, measure, rtol=1e-11):
    """Assert that the best number of the most probable labels is decided."""
    values = {"f": oracle.independent_values, "jaccard": oracle.jaccard_values}
    value = values[measure](p)
    assert expected == pytest.approx(value.max(), rel=rtol)
    size = labels.sum()
    assert size == np.flatnonzero(value >= value.max() * (1.0 - 1e-12))[0] + 1
    chosen = np.lexsort((np.arange(len(p)), -p))[:size]  # the largest, lower index first
    np.testing.assert_array_equal(np.flatnonzero(labels), np.sort(chosen))
