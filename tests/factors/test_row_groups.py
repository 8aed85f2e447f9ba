"""Groups of rows, from the features."""

from __future__ import annotations

import numpy as np
import pytest

from fgfm.factors._gcm import _groups_by_fit, _groups_by_products
from fgfm.factors._residual_products import residual_moments


@pytest.mark.parametrize("maker", [_groups_by_fit, _groups_by_products])
def test_groups_have_20_rows_or_more_and_at_most_eight_numbers(maker):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    p = 1.0 / (1.0 + np.exp(-2.0 * X[:, [0, 0, 1]]))
    Y = (rng.random((300, 3)) < p).astype(float)
    groups = maker(X, residual_moments(Y, Y - p), np.random.default_rng(1))
    sizes = np.bincount(groups)
    assert 2 <= len(sizes) <= 8
    assert (sizes > 0).all()
    assert groups.shape == (300,)
    if maker is not _groups_by_products:  # whose leaves are sized on the other half
        assert sizes.min() >= 20
    again = maker(X, residual_moments(Y, Y - p), np.random.default_rng(1))
    np.testing.assert_array_equal(again, groups)


def test_groups_by_products_find_where_the_sign_changes():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(800, 2))
    Y = rng.integers(0, 2, (800, 2)).astype(float)
    Y[:, 1] = np.where(X[:, 0] > 0, Y[:, 0], 1.0 - Y[:, 0])
    groups = _groups_by_products(X, residual_moments(Y, Y - 0.5), rng)
    share = np.bincount(groups, X[:, 0] > 0) / np.bincount(groups)
    assert (np.minimum(share, 1.0 - share) < 0.1).all()
