"""The distribution of the number of independent labels against convolutions."""

from __future__ import annotations

import numpy as np
import pytest

from fgfm._kernels import poisson_binomial


@pytest.mark.parametrize("m", [1, 2, 7, 40])
def test_poisson_binomial_is_a_convolution(m):
    p = np.random.default_rng(m).random((3, m))
    p[0, 0], p[1, 0] = 0.0, 1.0
    for S in {1, m // 2 + 1, m}:
        d = np.full((3, S + 1), np.nan)
        poisson_binomial(p, d)
        for row, actual in zip(p, d, strict=True):
            expected = np.ones(1)
            for x in row:
                expected = np.convolve(expected, [1.0 - x, x])
            np.testing.assert_allclose(actual, expected[: S + 1], rtol=1e-12, atol=1e-15)
