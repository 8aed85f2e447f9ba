"""Transposition of strided matrices."""

from __future__ import annotations

import numpy as np
import pytest

from fgfm._kernels import transpose


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (4, 4), (8, 7), (9, 16), (130, 11), (0, 3)])
def test_every_layout(dtype, shape):
    whole = np.random.default_rng(0).integers(0, 100, (2 * shape[0], 3 * shape[1])).astype(dtype)
    for block in (
        whole[: shape[0], : shape[1]],
        whole[::2, 1 : shape[1] + 1],
        whole[::-2, ::3],
        np.asfortranarray(whole)[: shape[0], : shape[1]],
    ):
        for target in (
            np.zeros(shape[::-1], dtype=dtype),
            np.zeros((shape[1] + 2, shape[0] + 5), dtype=dtype)[1:-1, 2:-3],
            np.zeros(shape, dtype=dtype).T,
        ):
            transpose(block, target)
            np.testing.assert_array_equal(target, block.T)
