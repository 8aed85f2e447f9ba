"""Stable descending sorts against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fgfm._kernels import native

lists = st.one_of(
    st.lists(st.floats(0.0, 1.0, allow_nan=False), max_size=200),
    st.lists(st.sampled_from([0.0, 1e-300, 0.25, 0.5, 1.0]), max_size=200),
    st.lists(st.floats(1e-9, 1e-8), max_size=60).map(lambda tail: [*tail, 1.0] * 3),
    st.lists(st.floats(0.0, 1.0), max_size=200).map(sorted),
)


@settings(deadline=None, max_examples=150, derandomize=True)
@given(lists)
@pytest.mark.parametrize("repair", [False, True])
def test_sorts_are_stable_and_descending(repair, unsorted):
    unsorted = np.array(unsorted, dtype=np.float64)
    value, index = unsorted.copy(), np.arange(len(unsorted))
    native.sort_descending(value, index, repair)
    expected = np.argsort(-unsorted, kind="stable")
    np.testing.assert_array_equal(index, expected)
    np.testing.assert_array_equal(value, unsorted[expected])
