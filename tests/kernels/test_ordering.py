"""Stable descending sorts against NumPy."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fgfm._kernels.ordering import repair_order, sort_descending


@numba.njit
def call_sort(value, index, spare_value, spare_index, count):
    sort_descending(value, index, spare_value, spare_index, count)


@numba.njit
def call_repair(value, index, spare_value, spare_index, count):
    repair_order(value, index, spare_value, spare_index)


lists = st.one_of(
    st.lists(st.floats(0.0, 1.0, allow_nan=False), max_size=200),
    st.lists(st.sampled_from([0.0, 1e-300, 0.25, 0.5, 1.0]), max_size=200),
    st.lists(st.floats(1e-9, 1e-8), max_size=60).map(lambda tail: [*tail, 1.0] * 3),
    st.lists(st.floats(0.0, 1.0), max_size=200).map(sorted),
)


@settings(deadline=None, max_examples=150, derandomize=True)
@given(lists)
@pytest.mark.parametrize("kernel", [call_sort, call_repair])
def test_sorts_are_stable_and_descending(kernel, unsorted):
    unsorted = np.array(unsorted, dtype=np.float64)
    value, n = unsorted.copy(), len(unsorted)
    index = np.arange(n)
    kernel(value, index, np.empty(n), np.empty(n, dtype=np.int64), np.empty(n + 2, np.int64))
    expected = np.argsort(-unsorted, kind="stable")
    np.testing.assert_array_equal(index, expected)
    np.testing.assert_array_equal(value, unsorted[expected])
