"""Agreement of ILFCompo with the stored results of the authors' R scripts."""

from __future__ import annotations

import numpy as np
import pytest

from fgfm.factors import ILFCompo, published_grouping

reference = pytest.importorskip(
    "benchmarks.reference_factors", reason="benchmarks/ is not beside the tests"
)


@pytest.fixture(scope="module")
def stored_cases():
    if not reference.FOLDER.is_dir():
        pytest.skip("the authors' results were not found: set FGFM_REFERENCE to their folder")
    cases = [case for case in reference.cases() if case.n in (50, 500, 5000)]
    return [(case, reference.given_boundaries(case, case.boundaries)) for case in cases]


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
