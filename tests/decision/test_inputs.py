"""Kinds of input: rounding errors, data frames, names of rows and columns, impossible rows."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from cases import assert_same_decision, dense
from decision_calls import AVERAGES, CALLS, DRAWS, FACTORS, PARTS, PROBA, SETS, WEIGHTS
from fgfm import cardinality, decision


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.int64])
def test_integers_and_booleans_are_certain(dtype):
    sets = (PROBA > 0.3).astype(dtype)
    labels, expected_f = decision.from_marginals(sets)
    np.testing.assert_array_equal(labels, sets)
    np.testing.assert_allclose(expected_f, 1.0, rtol=1e-13)
    drawn = decision.from_samples(DRAWS.astype(dtype))
    np.testing.assert_array_equal(drawn.labels, CALLS["samples"]().labels)


# Rounding errors ---------------------------------------------------------------------------------


@pytest.mark.parametrize("average", AVERAGES)
def test_rounding_errors_are_clipped(average):
    """1 + 1e-12 is 1, and -1e-12 is 0, in every function, and nothing else changes."""
    off, P = PROBA.copy(), PARTS[0].copy()
    off[0, 0], off[1, 1], P[0, 0, 0] = 1.0 + 1e-12, -1e-12, -1e-13
    given = off.copy()
    singles = [[i] for i in range(12)]
    for decide in (
        lambda off, P: decision.from_marginals(off, average=average),
        lambda off, P: decision.from_marginals(sparse.csr_array(off), average=average),
        lambda off, P: decision.from_factors(list(off.T[:, :, None, None]), singles),
        lambda off, P: decision.from_cardinalities(P, average=average),
        lambda off, P: decision.from_factors([P, *PARTS[1:]], FACTORS, average=average),
        lambda off, P: decision.from_factors(
            [P, sparse.csr_array(off)], [range(5), range(5, 17)], average=average
        ),
    ):
        clipped = decide(np.clip(off, 0.0, 1.0), np.maximum(P, 0.0))
        assert_same_decision(decide(off, P), clipped)
    np.testing.assert_array_equal(off, given)  # the input is not changed


def test_float32_may_be_off_by_more():
    off = np.full((2, 3), 1.0 + 2e-6, dtype=np.float32)
    np.testing.assert_allclose(decision.from_marginals(off).expected_f, 1.0)
    with pytest.raises(
        ValueError, match=re.escape("proba[0, 0] is 1.0000020265579224: probabilities must lie")
    ):
        decision.from_marginals(off.astype(np.float64))
    with pytest.raises(ValueError, match=re.escape("proba[0, 0] is 1.0001: ")):
        decision.from_marginals(np.full((2, 3), 1.0001, dtype=np.float32))


def test_half_precision_of_classes():
    """Rows of float16 sum to 1 up to a thousandth."""
    half = WEIGHTS.astype(np.float16)
    decided = decision.from_classes(half)
    assert (decided.labels == decision.from_classes(WEIGHTS).labels).mean() > 0.9
    pairs = [np.stack([1.0 - p, p], axis=1).astype(np.float16) for p in PROBA.T]
    decided = decision.from_marginals(pairs)
    expected = decision.from_marginals(np.stack([pair[:, 1] for pair in pairs], axis=1))
    assert_same_decision(decided, expected, rtol=0.0)
    with pytest.raises(ValueError, match="the probabilities of the classes of a row must sum"):
        decision.from_classes(0.99 * half)


# Data frames (see also tests/hostile) ------------------------------------------------------------


def test_class_probabilities_of_labels_may_be_lists():
    pairs = [np.stack([1.0 - p, p], axis=1) for p in PROBA.T]
    mixed = [pairs[0], *(pair.tolist() for pair in pairs[1:])]
    assert np.array_equal(
        decision.from_marginals(mixed).labels, decision.from_marginals(PROBA).labels
    )


def test_pandas_columns_of_a_joint_decision_are_those_of_the_label_sets():
    names = [f"label {i}" for i in range(12)]
    weights = pd.DataFrame(WEIGHTS, index=[f"row {i}" for i in range(len(WEIGHTS))])
    labels, _ = decision.from_joint(pd.DataFrame(SETS, columns=names), weights)
    pd.testing.assert_index_equal(labels.index, weights.index)
    assert list(labels.columns) == names
    np.testing.assert_array_equal(labels.to_numpy(), CALLS["joint"]().labels)
    labels, _ = decision.from_joint(SETS, weights)
    assert list(labels.columns) == list(range(12))
    square = decision.from_joint(
        np.eye(2, dtype=int), pd.DataFrame([[0.5, 0.5]], columns=["set A", "set B"])
    )
    assert list(square.labels.columns) == [0, 1]


ROWS, COLUMNS = pd.DataFrame([[0.5, 0.5], [0.1, 0.9]], index=["a", "b"]), ["x", "y"]
P_ROWS = np.array([[[0.5]], [[0.9]]])
CLASS_SETS = pd.DataFrame([[1, 0], [1, 1]], index=COLUMNS)
TABLES = {  # functions of one table, beside another one with its rows, or columns
    "missed": lambda d: decision.from_marginals(0.9 * ROWS, missed=d),
    "tilt": lambda d: cardinality.of_marginals(0.9 * ROWS, d),
    "condition": lambda d: cardinality.of_marginals(0.9 * ROWS, d, method="condition"),
    "factors": lambda d: decision.from_factors([P_ROWS] * 2, [[0], [1]], distributions=[ROWS, d]),
    "merge_factors": lambda d: cardinality.merge_factors([P_ROWS] * 2, [[0], [1]], [ROWS, d]),
    "merge_distributions": lambda d: cardinality.merge_distributions([ROWS, d]),
}


@pytest.mark.parametrize("name", TABLES)
def test_rows_of_two_tables_must_be_the_same(name):
    TABLES[name](ROWS)
    with pytest.raises(ValueError, match=r"row 0 of \S+ has index 'a' and that of \S+ has 'b'"):
        TABLES[name](ROWS[::-1])
    if name != "merge_distributions":
        with pytest.raises(ValueError, match=r"column 0 of \S+ is 1: the columns must be in the"):
            TABLES[name](ROWS[[1, 0]])


@pytest.mark.parametrize("function", [cardinality.of_joint, decision.from_joint])
def test_columns_of_proba_must_be_the_rows_of_labelsets(function):
    proba = pd.DataFrame([[0.9, 0.1]], columns=COLUMNS)
    function(CLASS_SETS, proba)
    function(CLASS_SETS.reset_index(drop=True), proba)
    with pytest.raises(ValueError, match=r"column 0 of proba is 'y' and that of labelsets\.index"):
        function(CLASS_SETS, proba[["y", "x"]])


# Impossible rows ---------------------------------------------------------------------------------

IMPOSSIBLE = np.array([[0.5, 0.2], [0.0, 0.0], [0.1, 0.0], [0.0, 0.0]])  # rows 1 and 3


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    "call",
    [
        lambda p, **kwargs: decision.from_marginals(p, **kwargs),
        lambda p, **kwargs: decision.from_marginals(sparse.csr_array(p), **kwargs),
        lambda p, **kwargs: decision.from_cardinalities(cardinality.of_marginals(p), **kwargs),
        lambda p, **kwargs: decision.from_factors(
            [p[:, [0], None], p[:, [1], None]], [[0], [1]], **kwargs
        ),
        lambda p, **kwargs: decision.from_factors(
            [cardinality.of_marginals(p), p[:, [1], None]], [[0, 1], [2]], **kwargs
        ),
        lambda p, **kwargs: decision.from_factors(
            [cardinality.of_marginals(p), sparse.csr_array(p[:, [1]])], [[0, 2], [1]], **kwargs
        ),
        lambda p, **kwargs: decision.from_samples(p[:, None] > 0.0, **kwargs),
        lambda p, **kwargs: decision.from_joint(
            [[0, 0], [1, 1]], np.stack([1 - p[:, 0], p[:, 0]], axis=1)[[0, 1, 0, 3]], **kwargs
        ),
    ],
)
def test_rows_that_contradict_nonempty_warn(call, n_jobs):
    message = "although nonempty=True: 2, the first is row 1; they get the empty set"
    with pytest.warns(UserWarning, match=message) as caught:
        labels, expected_f = call(IMPOSSIBLE, nonempty=True, n_jobs=n_jobs)
    assert caught[0].filename == __file__  # the line of the user
    np.testing.assert_array_equal(np.isnan(expected_f), [False, True, False, True])
    assert not dense(labels)[[1, 3]].any()
    assert dense(labels)[[0, 2]].any(axis=1).all()


# Rows that sum to 1 ------------------------------------------------------------------------------

CLASS_ROWS = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])


@pytest.mark.parametrize(
    "form",
    [
        np.asarray,
        np.ndarray.tolist,
        pd.DataFrame,
        lambda rows: pl.DataFrame(rows),
        lambda rows: rows.astype(np.float16),
        lambda rows: [tuple(row) for row in rows],
    ],
    ids=["array", "list", "pandas", "polars", "float16", "tuples"],
)
def test_three_rows_that_sum_to_one_are_classes(form):
    with pytest.warns(UserWarning, match="all rows of proba sum to 1.*use from_classes"):
        decision.from_marginals(form(CLASS_ROWS))
    other = np.vstack([CLASS_ROWS, CLASS_ROWS])
    other[5, 2] = 0.5
    decision.from_marginals(form(other))  # no warning
    decision.from_marginals(form(CLASS_ROWS[:2]))
    decision.from_marginals(form(np.ones((10, 1))))
