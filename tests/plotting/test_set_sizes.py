"""Expected F-measure of the best set of each size, against enumeration of all label sets."""

from __future__ import annotations

import numpy as np
import pytest

import oracle
from cases import MARGINALS
from fgfm import cardinality, decision
from fgfm.plotting._set_sizes import sizes_of_factors, sizes_of_marginals

OBJECTIVES = [
    {"beta": 1.0, "zero_division": 1.0, "nonempty": False},
    {"beta": 0.5, "zero_division": 0.4, "nonempty": False},
    {"beta": 2.0, "zero_division": 0.0, "nonempty": False},
    {"beta": 1.7, "zero_division": 1.0, "nonempty": True},
]


def check_sizes(found, joint, row, beta, zero_division, nonempty):
    """Compare values and bounds with those of all 2^m label sets."""
    value = oracle.expected_f(joint, beta, zero_division, nonempty)[row]  # (2^m,)
    m = joint[0].shape[1]
    size = oracle.all_labelsets(m).sum(axis=1)
    best = np.array([value[size == k].max() for k in range(m + 1)])
    if nonempty:
        best[0] = np.nan
    np.testing.assert_allclose(found.values, best, rtol=1e-11, atol=1e-300)
    d = oracle.cardinality_distribution(*joint)[row]  # (m + 1,)
    s, k = np.arange(m + 1), np.arange(1, m + 1)
    bound = d @ ((1.0 + beta**2) * s[:, None] / (beta**2 * s[:, None] + k))
    bound = bound / d[1:].sum() if nonempty else bound
    assert np.isnan(found.bounds[0])
    np.testing.assert_allclose(found.bounds[1:], bound, rtol=1e-11, atol=1e-300)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("case", MARGINALS)
def test_marginals(case, objective):
    proba = MARGINALS[case][:3]
    proba = proba[proba.any(axis=1)]
    joint = oracle.independent_joint(proba)
    for row, p in enumerate(proba):
        check_sizes(sizes_of_marginals(p, **objective), joint, row, **objective)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("factors", [[[3, 0], [1, 4, 2], [5]], [[1], [0], [2]], [[2, 0, 1]]])
def test_factors(factors, objective):
    rng = np.random.default_rng(2)
    joints = [oracle.random_joint(rng, 2, len(factor)) for factor in factors]
    joint = oracle.product_joint(joints, factors)
    Ps = [oracle.cardinality_matrix(*one) for one in joints]
    ds = [oracle.cardinality_distribution(*one) for one in joints]
    for row in range(2):
        found = sizes_of_factors([P[row] for P in Ps], [d[row] for d in ds], **objective)
        check_sizes(found, joint, row, **objective)


@pytest.mark.parametrize("beta", [1e-3, 0.5, 1.0, 2.0, 1e3])
def test_many_labels_by_three_routes(beta):
    p = np.random.default_rng(4).random((1, 150)) ** 6
    objective = {"beta": beta, "zero_division": 1.0, "nonempty": False}
    found = sizes_of_marginals(p[0], **objective)
    best = decision.from_marginals(p, beta=beta).expected_f[0]
    assert np.max(found.values) == pytest.approx(best, rel=1e-11)
    P = cardinality.of_marginals(p)
    other = sizes_of_factors([P[0]], [cardinality.distribution(P)[0]], **objective)
    np.testing.assert_allclose(other.values, found.values, rtol=1e-11, atol=1e-15)
    np.testing.assert_allclose(other.bounds, found.bounds, rtol=1e-11)
    Ps = [cardinality.of_marginals(p[:, k::2]) for k in (0, 1)]
    ds = [cardinality.distribution(part)[0] for part in Ps]
    other = sizes_of_factors([part[0] for part in Ps], ds, **objective)
    np.testing.assert_allclose(other.values, found.values, rtol=1e-11, atol=1e-15)


def test_row_without_labels():
    found = sizes_of_marginals(np.zeros(3), beta=1.0, zero_division=0.5, nonempty=False)
    assert found.values.tolist() == [0.5, 0.0, 0.0, 0.0]
    found = sizes_of_marginals(np.zeros(3), beta=1.0, zero_division=0.5, nonempty=True)
    assert np.isnan(found.values).all()
