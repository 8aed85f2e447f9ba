"""Behaviour common to the functions of fgfm.cardinality."""

from __future__ import annotations

import numpy as np

from fgfm import cardinality
from oracle import random_joint


def test_inputs_are_not_modified():
    """Every function accepts read-only arrays."""
    rng = np.random.default_rng(13)
    labelsets, proba = random_joint(rng, 3, 3)
    P = 1.2 * cardinality.of_joint(labelsets, proba)
    d = rng.dirichlet(np.ones(4), size=3)
    for array in (labelsets, proba, P, d):
        array.setflags(write=False)
    cardinality.of_joint(labelsets, proba)
    cardinality.of_samples(labelsets[None])
    cardinality.of_marginals(proba[:, :3])
    for method in ("tilt", "condition"):
        cardinality.of_marginals(proba[:, :3], d, method=method)
    cardinality.of_conditionals(np.broadcast_to(proba[:, :3, None], (3, 3, 3)), d)
    cardinality.distribution(P / 2)
    cardinality.is_coherent(P, d)
    cardinality.make_coherent(np.minimum(P, 1), d)
    cardinality.make_coherent(P)
    cardinality.merge_factors([P / 2], [[0, 1, 2]], [d])
    cardinality.merge_distributions([d, d])
