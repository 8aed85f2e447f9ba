"""The algorithms that benchmarks compare with decide alike, and the authors' results agree."""

from __future__ import annotations

import numpy as np
import pytest

from fgfm import cardinality, decision
from fgfm.factors import ILFCompo, published_grouping

rivals = pytest.importorskip("benchmarks.rivals", reason="benchmarks/ is not beside the tests")
reference = pytest.importorskip("benchmarks.reference_factors")
models = pytest.importorskip("benchmarks.reference_models")

with_reference = pytest.mark.skipif(
    not reference.FOLDER.is_dir(), reason="FGFM_REFERENCE must name the folder of their results"
)


@pytest.mark.parametrize("power", [1, 3, 9])
def test_recursion_decides_as_from_marginals(power):
    p = np.random.default_rng(power).random((5, 30)) ** power
    labels, expected_f = decision.from_marginals(p)
    for row in range(5):
        choice = rivals.ye_recursion(p[row])
        assert choice.expected_f == pytest.approx(expected_f[row], rel=1e-11)
        np.testing.assert_array_equal(choice.labels, np.flatnonzero(labels[row]))


@pytest.mark.parametrize("tuned", [False, True])
def test_algorithm_1_decides_as_from_factors(tuned):
    rng = np.random.default_rng(8)
    sizes = [4, 1, 3, 4, 2]
    factors = [part.tolist() for part in np.split(rng.permutation(14), np.cumsum(sizes)[:-1])]
    Ps = [cardinality.of_marginals(rng.random((4, size)) ** 2) for size in sizes]
    labels, expected_f = decision.from_factors(Ps, factors)
    for row in range(4):
        choice = rivals.algorithm_1_and_gfm([P[row] for P in Ps], factors, tuned=tuned)
        assert choice.expected_f == pytest.approx(expected_f[row], rel=1e-11)
        np.testing.assert_array_equal(choice.labels, np.flatnonzero(labels[row]))


@pytest.fixture(scope="module")
def stored_cases():
    cases = [case for case in reference.cases() if case.n in (50, 500, 5000)]
    return [(case, reference.given_boundaries(case, case.boundaries)) for case in cases]


@with_reference
def test_p_values_agree_up_to_the_noise_of_random_tables(stored_cases):
    """Their degrees of freedom are the mean of 100 random tables, ours its expectation."""
    off_diagonal = ~np.eye(8, dtype=bool)
    ours, theirs, inside = [], [], []
    for case, result in stored_cases:
        low, high = reference.monte_carlo_range(result, 5.0)
        within = (low - 1e-9 <= case.p_values) & (case.p_values <= high + 1e-9)
        ours.append(result.p_value[off_diagonal])
        theirs.append(case.p_values[off_diagonal])
        inside.append(within[off_diagonal])
    ours, theirs, inside = (np.concatenate(part) for part in (ours, theirs, inside))
    assert inside.mean() > 0.998
    assert np.corrcoef(ours, theirs)[0, 1] > 0.99
    assert np.abs(ours - theirs).mean() < 0.025
    assert ((ours <= 0.01) != (theirs <= 0.01)).mean() < 0.01


@with_reference
def test_boundaries_and_factors_agree_up_to_noise(stored_cases):
    same, equal, total = 0, 0, 0
    for case, result in stored_cases:
        ilf = ILFCompo("mi", correction=None).fit(case.X, case.Y)
        pairs = zip(ilf.markov_boundaries_, case.boundaries, strict=True)
        same += sum(np.array_equal(a, b) for a, b in pairs)
        groups = sorted(tuple(g.tolist()) for g in published_grouping(result.p_value))
        equal += groups == case.factors
        total += 1
    assert same >= 0.95 * 8 * total
    assert equal >= 0.9 * total


@with_reference
@pytest.mark.slow
def test_f_agrees_with_the_authors_given_their_penalties_and_factors():
    for data in models.data_sets(sizes=(50, 1000, 5000), reps=1):
        for method, estimate in models.by_their_penalties(data).items():
            losses = data.losses(estimate.labels())
            tolerance = 1e-2 if data.n == 50 else 1e-3  # rounding may change one decision
            assert losses == pytest.approx(data.stored[method].losses, rel=0.0, abs=tolerance)


@with_reference
def test_other_settings_change_the_authors_f():
    """Otherwise agreement with their F would show nothing."""
    (data,) = models.data_sets(sizes=(100,), structures=("lp6",), reps=1)
    theirs = data.stored["gfm"].losses[0]
    for rule in (models.Rule(scale=0.5), models.Rule(penalize_intercept=False)):
        estimate = models.by_their_penalties(data, rule)["gfm"]
        assert abs(data.losses(estimate.labels())[0] - theirs) > 1e-3
