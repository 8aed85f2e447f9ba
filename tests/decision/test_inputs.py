"""Types of input: dtypes, memory layouts, data frames, blocks of rows, threads."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from cases import assert_same_decision, dense
from fgfm import cardinality, decision

RNG = np.random.default_rng(7)
PROBA = RNG.random((40, 12)) ** 3
PARTS = [cardinality.of_marginals(PROBA[:, :5]), cardinality.of_marginals(PROBA[:, 5:11])]
PARTS.append(PROBA[:, 11:, None])
FACTORS = [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9, 10], [11]]
DRAWS = (RNG.random((40, 15, 12)) < PROBA[:, None]).astype(np.uint8)
SETS = np.unique(DRAWS.reshape(-1, 12), axis=0)[:25]
WEIGHTS = RNG.dirichlet(np.full(25, 0.3), size=40)

CALLS = {
    "marginals": lambda **kwargs: decision.from_marginals(PROBA, **kwargs),
    "sparse marginals": lambda **kwargs: decision.from_marginals(
        sparse.csr_array(PROBA * (PROBA > 0.05)), **kwargs
    ),
    "cardinalities": lambda **kwargs: decision.from_cardinalities(PARTS[0], **kwargs),
    "factors": lambda **kwargs: decision.from_factors(PARTS, FACTORS, **kwargs),
    "singletons": lambda **kwargs: decision.from_factors(
        [PROBA[:, [i], None] for i in range(12)], [[i] for i in range(12)], **kwargs
    ),
    "samples": lambda **kwargs: decision.from_samples(DRAWS, **kwargs),
    "joint": lambda **kwargs: decision.from_joint(SETS, WEIGHTS, **kwargs),
}


def assert_same_bits(one, other):
    np.testing.assert_array_equal(dense(one.labels), dense(other.labels))
    np.testing.assert_array_equal(one.expected_f, other.expected_f)


# Blocks and threads ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("n_jobs", [1, 2, 3, -1, 40])  # 40 threads: blocks of one row
def test_threads_change_no_bit(name, n_jobs):
    assert_same_bits(CALLS[name](n_jobs=n_jobs), CALLS[name]())


def test_blocks_change_no_bit():
    """5 MB of marginals are two blocks, also for one thread."""
    repeats = 1400
    whole = decision.from_marginals(np.tile(PROBA, (repeats, 1)))
    part = decision.from_marginals(PROBA)
    np.testing.assert_array_equal(whole.labels, np.tile(part.labels, (repeats, 1)))
    np.testing.assert_array_equal(whole.expected_f, np.tile(part.expected_f, repeats))


def test_rows_are_decided_independently():
    whole = decision.from_marginals(PROBA)
    for row in range(0, 40, 7):
        alone = decision.from_marginals(PROBA[row : row + 1])
        np.testing.assert_array_equal(alone.labels[0], whole.labels[row])
        assert alone.expected_f[0] == whole.expected_f[row]


# Dtypes and layouts ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.longdouble, ">f8", ">f4"])
def test_floats_are_converted_exactly(dtype):
    given = PROBA.astype(dtype)
    assert_same_bits(
        decision.from_marginals(given), decision.from_marginals(given.astype(np.float64))
    )
    Ps = [P.astype(dtype) for P in PARTS]
    exact = [P.astype(np.float64) for P in Ps]
    assert_same_decision(
        decision.from_factors(Ps, FACTORS), decision.from_factors(exact, FACTORS), rtol=1e-13
    )
    assert_same_decision(
        decision.from_cardinalities(Ps[0]), decision.from_cardinalities(exact[0]), rtol=1e-6
    )


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.int64])
def test_integers_and_booleans_are_certain(dtype):
    sets = (PROBA > 0.3).astype(dtype)
    labels, expected_f = decision.from_marginals(sets)
    np.testing.assert_array_equal(labels, sets)
    np.testing.assert_allclose(expected_f, 1.0, rtol=1e-13)
    drawn = decision.from_samples(DRAWS.astype(dtype))
    np.testing.assert_array_equal(drawn.labels, CALLS["samples"]().labels)


def test_lists_orders_strides_and_read_only_arrays():
    reference = decision.from_marginals(PROBA)
    locked = PROBA.copy()
    locked.flags.writeable = False
    every_other = np.zeros((80, 24))
    every_other[::2, ::2] = PROBA
    for form in (PROBA.tolist(), np.asfortranarray(PROBA), locked, every_other[::2, ::2]):
        assert_same_bits(decision.from_marginals(form), reference)
    decided = decision.from_factors([np.asfortranarray(P) for P in PARTS], FACTORS)
    np.testing.assert_array_equal(decided.labels, CALLS["factors"]().labels)


def test_input_is_not_changed():
    proba, P, draws = PROBA.copy(), [P.copy() for P in PARTS], DRAWS.copy()
    slightly_off = PROBA.copy()
    slightly_off[3, 4] = 1.0 + 1e-12
    before = slightly_off.copy()
    decision.from_marginals(proba)
    decision.from_marginals(slightly_off)
    decision.from_factors(P, FACTORS)
    decision.from_samples(draws)
    np.testing.assert_array_equal(proba, PROBA)
    np.testing.assert_array_equal(slightly_off, before)
    np.testing.assert_array_equal(draws, DRAWS)
    for kept, part in zip(P, PARTS, strict=True):
        np.testing.assert_array_equal(kept, part)


def test_rounding_errors_are_clipped():
    """1 + 1e-12 is 1, and -1e-12 is 0, in every function, and nothing else changes."""
    off = PROBA.copy()
    off[0, 0], off[1, 1] = 1.0 + 1e-12, -1e-12
    expected = decision.from_marginals(np.clip(off, 0.0, 1.0))
    assert_same_bits(decision.from_marginals(off), expected)
    assert_same_bits(decision.from_marginals(sparse.csr_array(off)), expected)
    singles = [off[:, [i], None] for i in range(12)]
    assert_same_bits(decision.from_factors(singles, [[i] for i in range(12)]), expected)
    P = PARTS[0].copy()
    P[0, 0, 0] = -1e-13
    clipped = np.maximum(P, 0.0)
    assert_same_bits(decision.from_cardinalities(P), decision.from_cardinalities(clipped))
    assert_same_bits(
        decision.from_factors([P, *PARTS[1:]], FACTORS),
        decision.from_factors([clipped, *PARTS[1:]], FACTORS),
    )


def test_float32_may_be_off_by_more():
    off = np.full((2, 3), 1.0 + 2e-6, dtype=np.float32)
    np.testing.assert_allclose(decision.from_marginals(off).expected_f, 1.0)
    with pytest.raises(
        ValueError, match=re.escape("proba[0, 0] is 1.0000020265579224: probabilities must lie")
    ):
        decision.from_marginals(off.astype(np.float64))
    with pytest.raises(ValueError, match=re.escape("proba[0, 0] is 1.0001: ")):
        decision.from_marginals(np.full((2, 3), 1.0001, dtype=np.float32))


# Data frames -------------------------------------------------------------------------------------


def test_pandas_columns_of_a_joint_decision_are_those_of_the_label_sets():
    names = [f"label {i}" for i in range(12)]
    weights = pd.DataFrame(WEIGHTS, index=[f"row {i}" for i in range(40)])
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


def test_pandas_nullable_columns():
    frame = pd.DataFrame(PROBA).astype("Float64")
    np.testing.assert_array_equal(
        decision.from_marginals(frame).labels.to_numpy(), decision.from_marginals(PROBA).labels
    )
    frame.iloc[3, 4] = pd.NA
    with pytest.raises(ValueError, match=r"proba\[3, 4\] is nan: probabilities must lie in"):
        decision.from_marginals(frame)


@pytest.mark.parametrize("average", ["samples", "macro", "micro"])
def test_polars_as_many_rows_as_labels(average):
    for seed in range(5):
        p = np.random.default_rng(seed).random((4, 4))
        decided = decision.from_marginals(pl.DataFrame(p), average=average)
        assert_same_bits(decided, decision.from_marginals(p, average=average))


# No rows, and impossible rows --------------------------------------------------------------------


def test_no_rows():
    for decided, m in [
        (decision.from_marginals(np.empty((0, 4))), 4),
        (decision.from_marginals(sparse.csr_array((0, 4))), 4),
        (decision.from_cardinalities(np.empty((0, 3, 2))), 3),
        (decision.from_factors([np.empty((0, 3, 2)), np.empty((0, 1, 1))], [[0, 2, 3], [1]]), 4),
        (decision.from_factors([np.empty((0, 1, 1))] * 2, [[0], [1]]), 2),
        (decision.from_samples(np.empty((0, 5, 4))), 4),
        (decision.from_joint(np.eye(3, dtype=int), np.empty((0, 3))), 3),
    ]:
        assert decided.labels.shape == (0, m)
        assert decided.expected_f.shape == (0,)


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
