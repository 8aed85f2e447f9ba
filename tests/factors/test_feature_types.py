"""Properties of features by which ILFCompo chooses its test, and their encoding as numbers."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from fgfm.factors._feature_types import (
    as_numbers,
    has_missing,
    is_discrete,
    rows_in_populated_strata,
)


def test_discrete_features():
    X = np.random.default_rng(0).integers(0, 2, (100, 4))
    assert is_discrete(X, 2)
    assert not is_discrete(X, 1)
    assert is_discrete(sparse.csr_array(X.astype(float)), 2)
    assert is_discrete(np.array([["a", 1.0], ["b", 2.0]], dtype=object), 2)
    assert not is_discrete(np.array([["a", 1.5], ["b", 2.0]], dtype=object), 2)
    assert not is_discrete(0.5 * X, 5)


def test_levels_are_counted():
    many = np.column_stack([np.arange(200), np.arange(200) % 2])
    for form in (np.asarray, sparse.csr_array):
        assert not is_discrete(form(many), 10)
        assert is_discrete(form(many[:, 1:]), 2)
        assert not is_discrete(form(2 * many[:, 1:]), 1)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_columns_with_many_values_are_not_encoded(form):
    """The indicators of 20 000 levels would need 400 MB."""
    X = form(np.arange(20_000)[:, None])
    tracemalloc.start()
    try:
        assert not is_discrete(X, 10)
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()


def test_rows_in_populated_strata():
    X = np.array([[0, 0]] * 6 + [[1, 0]] * 3 + [[1, 1]] * 1)
    assert rows_in_populated_strata(X, [np.array([0])]) == pytest.approx(0.6)
    assert rows_in_populated_strata(X, [np.array([0]), np.array([], dtype=int)]) == pytest.approx(
        0.8
    )


def test_missing_values():
    assert not has_missing(np.array([[1, 2]]))
    assert has_missing(np.array([[1.0, np.nan]]))
    assert has_missing(np.array([["a", None]], dtype=object))
    assert has_missing(np.array([[1, pd.NA]], dtype=object))
    assert has_missing(np.array([[pd.NaT, 1]], dtype=object))
    assert has_missing(sparse.csr_array([[0.0, np.nan]]))


def test_categories_and_missing_numbers():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(300, 2))
    words = np.where(x[:, 1] > 0.0, "left", "right").astype(object)
    mixed = np.column_stack([x[:, 0].astype(object), words])
    mixed[::9, 0] = None
    mixed[::11, 1] = np.nan
    numbers = as_numbers(mixed)
    assert numbers.shape == (300, 5)  # indicator and number; "left", "nan", "right"
    assert numbers.dtype == np.float64
    missing = numbers[:, 0] == 1.0
    assert (np.flatnonzero(missing) == np.arange(0, 300, 9)).all()
    assert np.allclose(numbers[missing, 1], numbers[~missing, 1].mean())
    assert (numbers[:, 2:].sum(axis=1) == 1.0).all()


def test_rare_categories_have_no_column():
    names = np.array([[f"row {i}", "ab"[i % 2]] for i in range(200)], dtype=object)
    assert as_numbers(names).shape == (200, 2)
    assert as_numbers(names[:, :1]).shape == (200, 1)  # a constant, if nothing is left


def test_dates_are_seconds():
    moments = pd.date_range("2026-01-01", periods=4, freq="D")
    for values in (list(moments), list(moments.to_numpy())):
        column = np.empty((4, 1), dtype=object)
        column[:, 0] = values
        np.testing.assert_allclose(np.diff(as_numbers(column)[:, 0]), 86400.0)


def test_numbers_are_returned_as_they_are():
    X = np.ones((3, 2))
    assert as_numbers(X) is X
    mixed = np.array([["a", 1.5], [2, 2.5], [None, 3.5]] * 4, dtype=object)
    assert np.isfinite(as_numbers(mixed)).all()
