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


# Every layout in memory --------------------------------------------------------------------------


def _unaligned(array):
    copy = np.ndarray(array.shape, array.dtype, buffer=bytearray(array.nbytes + 1), offset=1)
    copy[...] = array
    return copy


def _strided(array):
    spread = np.zeros([2 * size for size in array.shape])
    spread[tuple(slice(None, None, 2) for _ in array.shape)] = array
    return spread[tuple(slice(None, None, 2) for _ in array.shape)]


def _reversed(array):
    steps = tuple(slice(None, None, -1) for _ in array.shape)
    return np.ascontiguousarray(array[steps])[steps]


def _locked(array):
    copy = array.copy()
    copy.flags.writeable = False
    return copy


LAYOUTS = {
    "column-major": np.asfortranarray,
    "big-endian": lambda a: a.astype(">f8"),
    "big-endian column-major": lambda a: np.asfortranarray(a.astype(">f8")),
    "longdouble": lambda a: a.astype(np.longdouble),
    "longdouble column-major": lambda a: np.asfortranarray(a.astype(np.longdouble)),
    "unaligned": _unaligned,
    "unaligned column-major": lambda a: _unaligned(a.T).T,
    "strided": _strided,
    "reversed": _reversed,
    "read-only": _locked,
}
PARTS_D = [cardinality.distribution(P) for P in PARTS]
PAIRS = np.stack([1.0 - PROBA, PROBA], axis=2)  # (n, m, 2)
EXACT_PAIRS = [PAIRS[:, i] for i in range(12)]
LONG = RNG.random((9000, 5))  # more rows than are transposed
LAYOUT_CALLS = {
    "rows": lambda to, **kwargs: decision.from_marginals(to(PROBA), **kwargs),
    "logits": lambda to, **kwargs: decision.from_marginals(to(PROBA), logits=True, **kwargs),
    "long": lambda to, **kwargs: decision.from_marginals(to(LONG), **kwargs),
    "pairs": lambda to, **kwargs: decision.from_marginals([to(p) for p in EXACT_PAIRS], **kwargs),
    "limits": lambda to, **kwargs: decision.from_marginals(to(PROBA), max_labels=3, **kwargs),
    "floors": lambda to, **kwargs: decision.from_marginals(to(PROBA), min_recall=0.5, **kwargs),
    "flat": lambda to, **_: decision.from_marginals(to(PROBA[:, 0].copy())),
    "flat floors": lambda to, **_: decision.from_marginals(to(PROBA[:, 0].copy()), min_recall=0.5),
    "cardinalities": lambda to, **kwargs: decision.from_cardinalities(
        to(PARTS[0]), distribution=to(PARTS_D[0]), **kwargs
    ),
    "factors": lambda to, **kwargs: decision.from_factors(
        [to(P) for P in PARTS], FACTORS, distributions=[to(d) for d in PARTS_D], **kwargs
    ),
    "samples": lambda to, **kwargs: decision.from_samples(to(DRAWS.astype(float)), **kwargs),
    "joint": lambda to, **kwargs: decision.from_joint(
        to(SETS.astype(float)), to(WEIGHTS), **kwargs
    ),
    "classes": lambda to, **_: decision.from_classes(to(WEIGHTS)),
}


@pytest.mark.parametrize("average", ["samples", "macro", "weighted", "micro"])
@pytest.mark.parametrize("call", LAYOUT_CALLS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_in_memory_change_no_bit(layout, call, average):
    plain = LAYOUT_CALLS[call](np.ascontiguousarray, average=average)
    decided = LAYOUT_CALLS[call](LAYOUTS[layout], average=average)
    if call == "long":  # columns have two kernels, by the layout
        assert_same_decision(decided, plain, rtol=1e-13)
    else:
        assert_same_bits(decided, plain)


@pytest.mark.parametrize("average", ["macro", "weighted"])
def test_sparse_longdouble_with_limits(average):
    given = sparse.csr_array(PROBA * (PROBA > 0.1))
    wide = given.astype(np.longdouble)
    kwargs = {"average": average, "max_labels": 2}
    assert_same_bits(
        decision.from_marginals(wide, **kwargs), decision.from_marginals(given, **kwargs)
    )


def test_half_precision_of_classes():
    """Rows of float16 sum to 1 up to a thousandth."""
    half = WEIGHTS.astype(np.float16)
    decided = decision.from_classes(half)
    assert (decided.labels == decision.from_classes(WEIGHTS).labels).mean() > 0.9
    pairs = [np.stack([1.0 - p, p], axis=1).astype(np.float16) for p in PROBA.T]
    decided = decision.from_marginals(pairs)
    expected = decision.from_marginals(np.stack([pair[:, 1] for pair in pairs], axis=1))
    assert_same_bits(decided, expected)
    with pytest.raises(ValueError, match="the probabilities of the classes of a row must sum"):
        decision.from_classes(0.99 * half)


# Names of rows -----------------------------------------------------------------------------------


def test_rows_of_missed_must_be_those_of_proba():
    proba = pd.DataFrame([[0.9, 0.4], [0.5, 0.3]], index=["a", "b"])
    missed = pd.DataFrame([[1.0, 0.0], [0.1, 0.9]], index=["a", "b"])
    decided = decision.from_marginals(proba, missed=missed)
    assert list(decided.labels.index) == ["a", "b"]
    with pytest.raises(
        ValueError, match="row 0 of proba has index 'a' and that of missed has 'b'"
    ):
        decision.from_marginals(proba, missed=missed.loc[["b", "a"]])
    with pytest.raises(ValueError, match="column 0 of missed is 1: the columns must be in the or"):
        decision.from_marginals(proba, missed=missed[[1, 0]])


def test_rows_of_distributions_must_be_the_same():
    d = pd.DataFrame([[0.5, 0.5], [0.1, 0.9]], index=["a", "b"])
    P = np.array([[[0.5]], [[0.9]]])
    decision.from_factors([P, P], [[0], [1]], distributions=[d, d])
    message = r"row 0 of distributions\[0\] has index 'a' and that of distributions\[1\] has 'b'"
    with pytest.raises(ValueError, match=message):
        decision.from_factors([P, P], [[0], [1]], distributions=[d, d.iloc[::-1]])
    for merge in (
        lambda pair: cardinality.merge_distributions(pair),
        lambda pair: cardinality.merge_factors([P, P], [[0], [1]], pair),
    ):
        merge([d, d])
        with pytest.raises(ValueError, match=message):
            merge([d, d.iloc[::-1]])


@pytest.mark.parametrize("method", ["tilt", "condition"])
def test_rows_of_distribution_must_be_those_of_proba(method):
    proba = pd.DataFrame([[0.9, 0.4], [0.5, 0.3]], index=["a", "b"])
    d = pd.DataFrame([[0.5, 0.5], [0.1, 0.9]], index=["a", "b"])
    cardinality.of_marginals(proba, d, method=method)
    with pytest.raises(ValueError, match="row 0 of proba has index 'a' and that of distribution"):
        cardinality.of_marginals(proba, d.iloc[::-1], method=method)
    with pytest.raises(ValueError, match="column 0 of distribution is 1: the columns must be in"):
        cardinality.of_marginals(proba, d[[1, 0]], method=method)


def test_columns_of_proba_must_be_the_rows_of_labelsets():
    sets = pd.DataFrame([[1, 0], [1, 1]], index=["x", "y"])
    proba = pd.DataFrame([[0.9, 0.1]], columns=["x", "y"])
    cardinality.of_joint(sets, proba)
    with pytest.raises(ValueError, match=r"column 0 of proba is 'y' and that of labelsets\.index"):
        cardinality.of_joint(sets, proba[["y", "x"]])


# Rows that sum to 1 ------------------------------------------------------------------------------

CLASS_ROWS = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])


@pytest.mark.parametrize(
    "form",
    [
        np.ndarray.tolist,
        pd.DataFrame,
        lambda rows: pl.DataFrame(rows),
        lambda rows: rows.astype(np.float16),
        lambda rows: [tuple(row) for row in rows],
    ],
    ids=["list", "pandas", "polars", "float16", "tuples"],
)
def test_three_rows_that_sum_to_one_are_classes(form):
    with pytest.warns(UserWarning, match="all rows of proba sum to 1.*use from_classes"):
        decision.from_marginals(form(CLASS_ROWS))
    other = CLASS_ROWS.copy()
    other[2, 2] = 0.5
    decision.from_marginals(form(other))  # no warning
    decision.from_marginals(form(CLASS_ROWS[:2]))


# Text and the axis of P --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("proba", "message"),
    [
        (
            [["0.5", "0.2"]],
            "hold real numbers (float32 or float64), and proba[0, 0] is the text '0.5'; convert",
        ),
        (np.array([[0.5, "0.2"]], dtype=object), "proba[0, 1] is the text '0.2'"),
        (pd.DataFrame({"a": [0.5, 0.1], "b": ["0.5", "0.1"]}), "proba[0, 1] is the text '0.5'"),
        (pl.DataFrame({"a": ["0.5", "x"]}), "proba[0, 0] is the text '0.5'"),
        (["0.5", "0.2"], "proba[0] is the text '0.5'"),
        ("0.5", "proba is the text '0.5'"),
    ],
)
def test_text_is_named(proba, message):
    with pytest.raises(TypeError, match=re.escape(message)):
        decision.from_marginals(proba)


def test_column_for_no_labels_is_named():
    P = np.zeros((2, 3, 4))
    for call in (decision.from_cardinalities, cardinality.distribution):
        with pytest.raises(
            ValueError, match=r"the last axis starts at s = 1 \(there is no column"
        ):
            call(P)
