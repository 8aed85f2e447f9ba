"""Assertions and plain computations shared by the tests of fgfm.cardinality."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def close(actual: Any, expected: Any, rtol: float = 1e-12, atol: float = 1e-15) -> None:
    """Assert that two arrays agree up to rounding."""
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol)


def assert_sums_to_s(P: Any, d: Any) -> None:
    """Assert sum_i p_is = s d_s."""
    s = np.arange(1, P.shape[2] + 1)
    close(P.sum(axis=1), s * d[:, 1:], atol=0.0)


def tilt_by_bisection(p: Any, s: int) -> list[float]:
    """Solve sum_i sigmoid(logit p_i + c) = s for 0 < p < 1; return the terms of the sum."""
    logit = [math.log(x) - math.log1p(-x) for x in p]
    low, high = -2000.0, 2000.0
    for _ in range(300):
        c = 0.5 * (low + high)
        total = math.fsum(0.5 * (1.0 + math.tanh(0.5 * (u + c))) for u in logit)
        low, high = (c, high) if total < s else (low, c)
    return [0.5 * (1.0 + math.tanh(0.5 * (u + c))) for u in logit]
