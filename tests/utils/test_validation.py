"""Validation of user input, where no public function reaches all cases."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from fgfm._utils.validation import (
    check_choice,
    check_count,
    check_partition,
    label_sets,
    row_weights,
    tolerance,
)


@pytest.mark.parametrize("dtype", [np.float64, np.longdouble, np.int8, bool])
def test_tolerance_of_precise_types(dtype):
    assert tolerance(np.ones(1, dtype=dtype)) == 1e-9


@pytest.mark.parametrize(("dtype", "slack"), [(np.float16, 1e-3), (np.float32, 1e-5)])
def test_tolerance_of_other_floats(dtype, slack):
    assert tolerance(np.ones(1, dtype=dtype)) == slack


def test_label_sets_are_booleans_or_canonical_csr():
    labels = label_sets([[0, 1], [1, 0]], "Y")
    np.testing.assert_array_equal(labels, [[False, True], [True, False]])
    assert labels.dtype == bool
    stored = sparse.csr_array(([0, 1, 1], [0, 1, 0], [0, 2, 3]), shape=(2, 2))  # an explicit zero
    ones = label_sets(stored, "Y")
    assert ones.has_canonical_format
    assert ones.nnz == 2
    np.testing.assert_array_equal(ones.toarray(), labels)
    assert stored.nnz == 3  # the input is not changed


@pytest.mark.parametrize("form", [list, sparse.coo_array])
def test_flat_labels_become_a_column(form):
    flat = form(np.array([0, 1, 1]))
    labels = label_sets(flat, "y", allow_flat=True)
    assert labels.shape == (3, 1)
    with pytest.raises(ValueError, match=r"y has shape \(3,\): it must have 2 dimensions"):
        label_sets(flat, "y")


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_label_that_is_not_zero_or_one_raises(form):
    with pytest.raises(ValueError, match=r"^Y\[1, 0\] is 2: labels must be 0 or 1$"):
        label_sets(form([[0, 1], [2, 1]]), "Y")


def test_row_weights_are_ones_by_default():
    np.testing.assert_array_equal(row_weights(None, 3, "X"), np.ones(3))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (
            [1.0, -1.0, 0.0],
            r"^sample_weight\[1\] is -1.0: weights must be finite and not",
        ),
        ([1.0, 2.0, np.inf], r"^sample_weight\[2\] is inf: weights must be finite"),
        ([0.0, 0.0, 0.0], r"^sample_weight is zero in every row: one weight must be positive$"),
        (
            [1.0, 1e300, 2.0],
            r"^sample_weight\[1\] is 1e\+300: the largest weight must lie between",
        ),
        (
            [0.0, 0.0, 1e-99],
            r"^sample_weight\[2\] is 1e-99: the largest .* 1e-15 and 1e\+15, since",
        ),
        ([1.0, 2.0], r"^sample_weight has 2 rows and X has 3: they must have the same number"),
    ],
)
def test_invalid_row_weights_raise(weights, message):
    with pytest.raises(ValueError, match=message):
        row_weights(weights, 3, "X")


@pytest.mark.parametrize("value", [0, 1.0, True, None])
def test_invalid_count_raises(value):
    with pytest.raises(ValueError, match=r"^n is .*: it must be an integer, 1 or more$"):
        check_count(value, "n", 1)
    assert check_count(np.int64(1), "n", 1) == 1


@pytest.mark.parametrize("value", ["c", 1, ["a"]])
def test_invalid_choice_raises(value):
    with pytest.raises(ValueError, match=r"^kind is .*: it must be one of 'a', None$"):
        check_choice(value, "kind", ("a", None))


def test_partition_of_no_label():
    assert check_partition([], 0) == []
