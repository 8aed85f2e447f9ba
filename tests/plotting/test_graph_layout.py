"""Layout of the label graph."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from fgfm.plotting._graph_layout import factor_layout


@pytest.mark.parametrize("seed", range(3))
def test_discs_do_not_overlap_and_contain_their_labels(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 12, 25)
    m = sizes.sum()
    members = np.split(rng.permutation(m), np.cumsum(sizes)[:-1])
    graph = np.zeros((m, m))
    for factor in members:
        for k in range(1, len(factor)):
            a, b = factor[k], factor[rng.integers(k)]
            graph[a, b] = graph[b, a] = 1.0
    places, centres, radii = factor_layout(sparse.csr_array(graph), members)
    assert np.isfinite(places).all()
    for factor, centre, radius in zip(members, centres, radii, strict=True):
        assert np.linalg.norm(places[factor] - centre, axis=1).max() <= radius
    several = np.flatnonzero(sizes > 1)
    for a, b in zip(*np.triu_indices(len(several), 1), strict=True):
        a, b = several[a], several[b]
        assert np.linalg.norm(centres[a] - centres[b]) >= radii[a] + radii[b]
    single = np.flatnonzero(sizes == 1)
    assert len(single)
    assert centres[single, 1].max() < (centres[several, 1] - radii[several]).min()


def test_long_names_need_larger_discs():
    graph = sparse.csr_array(np.ones((4, 4)) - np.eye(4))
    (short,) = factor_layout(graph, [np.arange(4)]).radii
    (long,) = factor_layout(graph, [np.arange(4)], np.full(4, 20)).radii
    assert long > 1.3 * short


def test_complete_graph_of_four_is_a_square():
    graph = sparse.csr_array(np.ones((4, 4)) - np.eye(4))
    places = factor_layout(graph, [np.arange(4)]).labels
    sides = np.linalg.norm(places - np.roll(places, 1, axis=0), axis=1)
    np.testing.assert_allclose(sides, sides[0], rtol=1e-6)
