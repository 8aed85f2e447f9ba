"""Simulated probabilities and labels for the tests of FDecider."""

from __future__ import annotations

import numpy as np
from scipy.special import expit


def independent(n=400, m=4, seed=0):
    """Draw probabilities, and labels that are independent given them."""
    rng = np.random.default_rng(seed)
    p = expit(1.5 * rng.normal(size=(n, m)) - 0.8)
    return p, (rng.random((n, m)) < p).astype(int)


def exclusive(n=400, m=4, seed=0):
    """Draw probabilities that sum to 1, and one label per row."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(m, 0.5), size=n)
    label = (rng.random((n, 1)) > np.cumsum(p, axis=1)).sum(axis=1).clip(0, m - 1)
    return p, np.eye(m, dtype=int)[label]


def distorted(p, slope, shift):
    """Return probabilities whose calibration has the given slope and shift of the logits."""
    logit = np.log(p) - np.log1p(-p)
    return expit((logit - shift) / slope)
