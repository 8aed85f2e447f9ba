"""The forms in which probabilities come: dtypes, sparse matrices, data frames, blocks, threads."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from fgfm import cardinality, decision
from fgfm._utils import blocks as _blocks

RNG = np.random.default_rng(7)
PROBA = RNG.random((40, 12)) ** 3
PARTS = [cardinality.from_marginals(PROBA[:, :5]), cardinality.from_marginals(PROBA[:, 5:11])]
PARTS.append(PROBA[:, 11:, None])
FACTORS = [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9, 10], [11]]
DRAWS = (RNG.random((40, 15, 12)) < PROBA[:, None]).astype(np.uint8)
SETS = np.unique(DRAWS.reshape(-1, 12), axis=0)[:25]
WEIGHTS = RNG.dirichlet(np.full(25, 0.3), size=40)

ROUTES = {
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


def dense(labels):
    return labels.toarray() if sparse.issparse(labels) else labels


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("n_jobs", [1, 2, 3, -1])
@pytest.mark.parametrize("block_bytes", [1, 700, 1 << 22])
def test_blocks_and_threads_change_no_bit(route, n_jobs, block_bytes, monkeypatch):
    reference = ROUTES[route]()
    monkeypatch.setattr(_blocks, "BLOCK_BYTES", block_bytes)
    decided = ROUTES[route](n_jobs=n_jobs)
    np.testing.assert_array_equal(dense(decided.labels), dense(reference.labels))
    np.testing.assert_array_equal(decided.expected_f, reference.expected_f)


def test_threads_of_a_joblib_context():
    import joblib

    assert _blocks.n_threads(None) == 1
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert _blocks.n_threads(None) == 2
    assert _blocks.n_threads(-1) >= 1


def test_a_row_is_decided_by_itself():
    """The same bits whether a row stands alone or among others."""
    whole = decision.from_marginals(PROBA)
    for row in range(0, 40, 7):
        alone = decision.from_marginals(PROBA[row : row + 1])
        np.testing.assert_array_equal(alone.labels[0], whole.labels[row])
        assert alone.expected_f[0] == whole.expected_f[row]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.longdouble, ">f8", ">f4"])
def test_floats(dtype):
    """A narrower float is widened exactly: what is decided is what the same numbers decide."""
    given = PROBA.astype(dtype)
    exact = given.astype(np.float64)
    for one, other in [
        (decision.from_marginals(given), decision.from_marginals(exact)),
        (
            decision.from_marginals(sparse.csr_array(PROBA.astype(np.float32))),
            decision.from_marginals(PROBA.astype(np.float32).astype(np.float64)),
        ),
    ]:
        np.testing.assert_array_equal(dense(one.labels), other.labels)
        np.testing.assert_array_equal(one.expected_f, other.expected_f)
    Ps = [P.astype(dtype) for P in PARTS]
    one = decision.from_factors(Ps, FACTORS)
    other = decision.from_factors([P.astype(np.float64) for P in Ps], FACTORS)
    np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_allclose(one.expected_f, other.expected_f, rtol=1e-13)
    one = decision.from_cardinalities(Ps[0])
    other = decision.from_cardinalities(Ps[0].astype(np.float64), distribution=None)
    np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_allclose(one.expected_f, other.expected_f, rtol=1e-6)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.int64])
def test_certainties_as_integers(dtype):
    sets = (PROBA > 0.3).astype(dtype)
    labels, expected_f = decision.from_marginals(sets)
    np.testing.assert_array_equal(labels, sets)
    np.testing.assert_allclose(expected_f, 1.0, rtol=1e-13)
    drawn = decision.from_samples(DRAWS.astype(dtype))
    np.testing.assert_array_equal(drawn.labels, ROUTES["samples"]().labels)


def test_layouts():
    """Lists, Fortran order, strides and read-only arrays are as good as any."""
    reference = decision.from_marginals(PROBA)
    locked = PROBA.copy()
    locked.flags.writeable = False
    every_other = np.zeros((80, 24))
    every_other[::2, ::2] = PROBA
    for form in (PROBA.tolist(), np.asfortranarray(PROBA), locked, every_other[::2, ::2]):
        decided = decision.from_marginals(form)
        np.testing.assert_array_equal(decided.labels, reference.labels)
        np.testing.assert_array_equal(decided.expected_f, reference.expected_f)
    strided = [np.asfortranarray(P) for P in PARTS]
    decided = decision.from_factors(strided, FACTORS)
    np.testing.assert_array_equal(decided.labels, ROUTES["factors"]().labels)


def test_input_is_left_alone():
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


def test_rounding_is_forgiven():
    """1 + 1e-12 is 1, and -1e-12 is 0: in every route, and nothing else changes."""
    off = PROBA.copy()
    off[0, 0], off[1, 1] = 1.0 + 1e-12, -1e-12
    right = np.clip(off, 0.0, 1.0)
    expected = decision.from_marginals(right)
    for form in (off, sparse.csr_array(off)):
        decided = decision.from_marginals(form)
        np.testing.assert_array_equal(dense(decided.labels), expected.labels)
        np.testing.assert_array_equal(decided.expected_f, expected.expected_f)
    singles = [off[:, [i], None] for i in range(12)]
    decided = decision.from_factors(singles, [[i] for i in range(12)])
    np.testing.assert_array_equal(decided.expected_f, expected.expected_f)
    P = PARTS[0].copy()
    P[0, 0, 0] = -1e-13
    clipped = np.maximum(P, 0.0)
    for one, other in [
        (decision.from_cardinalities(P), decision.from_cardinalities(clipped)),
        (
            decision.from_factors([P, *PARTS[1:]], FACTORS),
            decision.from_factors([clipped, *PARTS[1:]], FACTORS),
        ),
    ]:
        np.testing.assert_array_equal(one.labels, other.labels)
        np.testing.assert_array_equal(one.expected_f, other.expected_f)


# Sparse matrices ---------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("nonempty", [False, True])
def test_sparse(form, kind, nonempty):
    proba = PROBA * (PROBA > 0.02)
    proba[5] = 0.0
    given = getattr(sparse, f"{form}_{kind}")(proba)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # row 5 contradicts nonempty
        labels, expected_f = decision.from_marginals(given, nonempty=nonempty)
        expected = decision.from_marginals(proba, nonempty=nonempty)
    assert isinstance(labels, getattr(sparse, f"csr_{kind}"))
    assert labels.dtype == np.int8
    assert labels.has_canonical_format
    assert (labels.data == 1).all()
    np.testing.assert_array_equal(labels.toarray(), expected.labels)
    np.testing.assert_allclose(expected_f, expected.expected_f, rtol=1e-13)


def test_sparse_with_duplicates_and_explicit_zeros():
    row = [0, 0, 0, 1, 2, 2, 2]
    column = [3, 1, 3, 0, 2, 0, 1]
    data = [0.3, 0.8, 0.4, 0.0, 0.9, 0.5, 0.0]
    given = sparse.csr_array((data, column, [0, 3, 4, 7]), shape=(3, 5))
    assert not given.has_sorted_indices
    before = given.data.copy(), given.indices.copy()
    full = np.zeros((3, 5))
    np.add.at(full, (row, column), data)
    labels, expected_f = decision.from_marginals(given)
    expected = decision.from_marginals(full)
    np.testing.assert_array_equal(labels.toarray(), expected.labels)
    np.testing.assert_allclose(expected_f, expected.expected_f, rtol=1e-13)
    np.testing.assert_array_equal(given.data, before[0])  # the input was not put in order
    np.testing.assert_array_equal(given.indices, before[1])


def test_sparse_index_types():
    narrow = sparse.csr_array(PROBA)
    wide = sparse.csr_array(
        (narrow.data, narrow.indices.astype(np.int64), narrow.indptr.astype(np.int64)),
        shape=narrow.shape,
    )
    one, other = decision.from_marginals(narrow), decision.from_marginals(wide)
    np.testing.assert_array_equal(one.labels.toarray(), other.labels.toarray())
    np.testing.assert_array_equal(one.expected_f, other.expected_f)


@pytest.mark.slow
@pytest.mark.compiled
def test_sparse_is_never_made_dense():
    """100 000 x 100 000 with 50 non-zeros a row: dense, the labels alone would take 10 GB."""
    n = m = 100_000
    rng = np.random.default_rng(0)
    indices = np.sort(rng.integers(0, m // 50, size=(n, 50)) + np.arange(50) * (m // 50))
    data = rng.random((n, 50)) ** 6
    proba = sparse.csr_array((data.ravel(), indices.ravel(), np.arange(n + 1) * 50), shape=(n, m))
    decision.from_marginals(proba[:10])  # compiled before memory is counted
    tracemalloc.start()
    labels, expected_f = decision.from_marginals(proba)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100 * 2**20
    assert labels.shape == (n, m)
    sample = rng.integers(0, n, size=200)
    expected = decision.from_marginals(data[sample])
    np.testing.assert_array_equal(np.diff(labels.indptr)[sample], expected.labels.sum(axis=1))
    np.testing.assert_allclose(expected_f[sample], expected.expected_f, rtol=1e-12)


# Data frames -------------------------------------------------------------------------------------


def test_pandas():
    frame = pd.DataFrame(
        PROBA, index=[f"row {i}" for i in range(40)], columns=[f"label {i}" for i in range(12)]
    )
    labels, expected_f = decision.from_marginals(frame)
    plain = decision.from_marginals(PROBA)
    assert isinstance(labels, pd.DataFrame)
    assert isinstance(expected_f, pd.Series)
    pd.testing.assert_index_equal(labels.index, frame.index)
    pd.testing.assert_index_equal(labels.columns, frame.columns)
    pd.testing.assert_index_equal(expected_f.index, frame.index)
    np.testing.assert_array_equal(labels.to_numpy(), plain.labels)
    np.testing.assert_array_equal(expected_f.to_numpy(), plain.expected_f)

    sets = pd.DataFrame(SETS, columns=frame.columns)
    weights = pd.DataFrame(WEIGHTS, index=frame.index)
    labels, expected_f = decision.from_joint(sets, weights)
    pd.testing.assert_index_equal(labels.index, frame.index)
    pd.testing.assert_index_equal(labels.columns, frame.columns)
    np.testing.assert_array_equal(labels.to_numpy(), ROUTES["joint"]().labels)
    labels, _ = decision.from_joint(SETS, weights)
    assert list(labels.columns) == list(range(12))
    square = decision.from_joint(
        np.eye(2, dtype=int), pd.DataFrame([[0.5, 0.5]], columns=["set A", "set B"])
    )
    assert list(square.labels.columns) == [0, 1]  # columns are labels, not label sets


def test_pandas_with_nullable_columns():
    frame = pd.DataFrame(PROBA).astype("Float64")
    np.testing.assert_array_equal(
        decision.from_marginals(frame).labels.to_numpy(), decision.from_marginals(PROBA).labels
    )
    frame.iloc[3, 4] = pd.NA
    with pytest.raises(ValueError, match=r"proba\[3, 4\] is nan: probabilities must lie in"):
        decision.from_marginals(frame)


def test_polars():
    labels, expected_f = decision.from_marginals(pl.DataFrame(PROBA))
    plain = decision.from_marginals(PROBA)
    np.testing.assert_array_equal(labels, plain.labels)
    np.testing.assert_array_equal(expected_f, plain.expected_f)


# Nothing at all ----------------------------------------------------------------------------------


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


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_rows_that_contradict_nonempty(n_jobs):
    p = np.array([[0.5, 0.2], [0.0, 0.0], [0.1, 0.0], [0.0, 0.0]])
    message = "which nonempty=True supposes: 2, the first is row 1; they get the empty set"
    calls = [
        lambda: decision.from_marginals(p, nonempty=True, n_jobs=n_jobs),
        lambda: decision.from_marginals(sparse.csr_array(p), nonempty=True, n_jobs=n_jobs),
        lambda: decision.from_cardinalities(
            cardinality.from_marginals(p), nonempty=True, n_jobs=n_jobs
        ),
        lambda: decision.from_factors(
            [p[:, [0], None], p[:, [1], None]], [[0], [1]], nonempty=True, n_jobs=n_jobs
        ),
        lambda: decision.from_factors(
            [cardinality.from_marginals(p), p[:, [1], None]],
            [[0, 1], [2]],
            nonempty=True,
            n_jobs=n_jobs,
        ),
        lambda: decision.from_samples(p[:, None] > 0.0, nonempty=True, n_jobs=n_jobs),
        lambda: decision.from_joint(
            [[0, 0], [1, 1]], np.stack([1 - p[:, 0], p[:, 0]], axis=1)[[0, 1, 0, 3]], nonempty=True
        ),
    ]
    for call in calls:
        with pytest.warns(UserWarning, match=message):
            labels, expected_f = call()
        np.testing.assert_array_equal(np.isnan(expected_f), [False, True, False, True])
        assert not dense(labels)[[1, 3]].any()
        assert dense(labels)[[0, 2]].any(axis=1).all()


def test_nonempty_with_hardly_any_mass():
    """Given that something is there, it does not matter how unlikely that was."""
    p = np.array([[1e-300, 3e-300, 2e-300], [1e-20, 3e-20, 2e-20]])
    labels, expected_f = decision.from_marginals(p, nonempty=True)
    # One label is present, each with its share: {1} is worth 1/2, {1, 2} 2/3 (1/2 + 1/3) = 5/9,
    # and {0, 1, 2} 1/2.
    np.testing.assert_array_equal(labels, [[0, 1, 1]] * 2)
    np.testing.assert_allclose(expected_f, 5 / 9, rtol=1e-13)
    decided = decision.from_cardinalities(cardinality.from_marginals(p), nonempty=True)
    np.testing.assert_array_equal(decided.labels, labels)
    np.testing.assert_allclose(decided.expected_f, 5 / 9, rtol=1e-13)
