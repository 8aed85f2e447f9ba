"""Marginals that have gone wrong somewhere before, or could: one table for all routes."""

from __future__ import annotations

import numpy as np

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
