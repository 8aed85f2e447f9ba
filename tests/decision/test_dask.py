"""Lazy decisions on Dask arrays."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from fgfm import decision
from fgfm.cardinality import distribution, of_marginals

dask = pytest.importorskip("dask", reason="needs dask: pip install 'fgfm[dask]'")
da = pytest.importorskip("dask.array", reason="needs dask: pip install 'fgfm[dask]'")

RNG = np.random.default_rng(0)
PROBA = RNG.random((50, 6)) ** 2
P = of_marginals(PROBA)
PARTS = [of_marginals(PROBA[:, :2]), of_marginals(PROBA[:, 2:])]
HALVES = [of_marginals(PROBA[:, :3]), of_marginals(PROBA[:, 3:])]
FACTORS = [[4, 1], [0, 2, 3, 5]]
DRAWS = RNG.random((50, 9, 4)) < 0.3
SETS = RNG.random((5, 4)) < 0.5
WEIGHTS = RNG.dirichlet(np.ones(5), 50)

CASES = {
    "marginals": (lambda lazy, **kwargs: decision.from_marginals(lazy(PROBA), **kwargs)),
    "cardinalities": (lambda lazy, **kwargs: decision.from_cardinalities(lazy(P), **kwargs)),
    "cardinalities, distribution": (
        lambda lazy, **kwargs: decision.from_cardinalities(
            lazy(P), distribution=distribution(P), **kwargs
        )
    ),
    "factors": (
        lambda lazy, **kwargs: decision.from_factors([lazy(PARTS[0]), PARTS[1]], FACTORS, **kwargs)
    ),
    "factors, distributions": (
        lambda lazy, **kwargs: decision.from_factors(
            [lazy(part) for part in PARTS],
            FACTORS,
            distributions=[lazy(distribution(part)) for part in PARTS],
            **kwargs,
        )
    ),
    "factors, in one array": (
        lambda lazy, **kwargs: decision.from_factors(
            lazy(np.stack(HALVES), axis=1), [[4, 1, 0], [2, 3, 5]], **kwargs
        )
    ),
    "factors in one array, distributions": (
        lambda lazy, **kwargs: decision.from_factors(
            np.stack(HALVES),
            [[4, 1, 0], [2, 3, 5]],
            distributions=[lazy(distribution(part)) for part in HALVES],
            **kwargs,
        )
    ),
    "samples": (lambda lazy, **kwargs: decision.from_samples(lazy(DRAWS), **kwargs)),
    "joint": (lambda lazy, **kwargs: decision.from_joint(SETS, lazy(WEIGHTS), **kwargs)),
}


def assert_computes_to(lazy, expected):
    labels, expected_f = dask.compute(*lazy)
    assert lazy.labels.shape == labels.shape
    assert lazy.labels.dtype == labels.dtype
    assert lazy.expected_f.dtype == expected_f.dtype
    assert_array_equal(labels, expected.labels)
    assert_array_equal(expected_f, expected.expected_f)


@pytest.mark.parametrize("rows", [1, 17, 50, (20, 5, 0, 25)])
@pytest.mark.parametrize("case", CASES)
def test_any_chunks_give_the_decision_of_the_array(case, rows):
    def lazy(array, axis=0):
        chunks = [max(1, size - 1) for size in array.shape]  # labels in two chunks
        chunks[axis] = rows
        return da.from_array(array, chunks=tuple(chunks))

    for kwargs in ({}, {"beta": 2.0, "nonempty": True}):
        assert_computes_to(
            CASES[case](lazy, **kwargs), CASES[case](lambda array, axis=0: array, **kwargs)
        )


@pytest.mark.parametrize("case", CASES)
def test_tasks_can_be_sent_to_other_processes(case):
    def lazy(array, axis=0):
        return da.from_array(array, chunks=20)

    sent = pickle.loads(pickle.dumps(CASES[case](lazy)))
    expected = CASES[case](lambda array, axis=0: array)
    assert_computes_to(sent, expected)


def test_blocks_are_read_when_computed_and_only_once():
    """``labels`` and ``expected_f`` share the work of a block."""
    read = []

    def observed(block):
        read.append(len(block))
        return block

    proba = da.from_array(PROBA, chunks=(20, 6)).map_blocks(observed, meta=np.empty((0, 0)))
    lazy = decision.from_marginals(proba)
    assert read == []
    dask.compute(*lazy)
    assert sorted(read) == [10, 20, 20]


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_blocks_stay_sparse(kind):
    kept = np.where(PROBA < 0.3, 0.0, PROBA)
    lazy = decision.from_marginals(da.from_array(kept, chunks=(20, 6)).map_blocks(kind))
    labels, expected_f = dask.compute(*lazy)
    now = decision.from_marginals(kind(kept))
    assert type(labels) is type(now.labels) is type(lazy.labels._meta)
    assert_array_equal(labels.toarray(), now.labels.toarray())
    assert_array_equal(expected_f, now.expected_f)


def test_number_of_rows_may_be_unknown():
    proba = da.from_array(PROBA, chunks=(20, 4))
    some = decision.from_marginals(proba[proba[:, 0] > 0.2])
    now = decision.from_marginals(PROBA[PROBA[:, 0] > 0.2])
    labels, expected_f = dask.compute(*some)
    assert_array_equal(labels, now.labels)
    assert_array_equal(expected_f, now.expected_f)


def test_rows_that_contradict_nonempty_are_nan_without_a_warning():
    proba = PROBA.copy()
    proba[30] = 0.0
    lazy = decision.from_marginals(da.from_array(proba, chunks=(20, 6)), nonempty=True)
    assert_array_equal(np.flatnonzero(np.isnan(lazy.expected_f.compute())), [30])


def test_error_names_the_first_row_of_the_block():
    proba = PROBA.copy()
    proba[45, 3] = 1.5
    lazy = decision.from_marginals(da.from_array(proba, chunks=(20, 6)))
    with pytest.raises(ValueError, match=r"proba\[5, 3\] is 1.5") as caught:
        lazy.labels.compute()
    assert caught.value.__notes__ == [
        "rows are counted from the first of their block, which is row 40"
    ]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: decision.from_marginals(x[None]), "2 dimensions"),
        (lambda x: decision.from_marginals(x, beta=-1), "beta is -1"),
        (lambda x: decision.from_marginals(x.astype("U3")), "dtype"),
        (lambda x: decision.from_joint(SETS[:, :3], x), "columns"),
        (
            lambda x: decision.from_cardinalities(
                da.from_array(P), distribution=distribution(P)[:5]
            ),
            "distribution has 5 rows and P has 50",
        ),
        (lambda x: decision.from_factors([da.from_array(P)], [[0, 1]]), r"factors\[0\] has 2"),
    ],
)
def test_invalid_arguments_raise_at_once(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call(da.from_array(PROBA, chunks=(20, 3)))


def test_unknown_chunks_beside_other_arrays_raise():
    P = da.from_array(np.full((6, 2, 2), 0.1), chunks=(3, 2, 2))
    d = np.tile([0.6, 0.3, 0.1], (6, 1))
    unknown = P[da.from_array(np.ones(6, dtype=bool), chunks=3)]
    for given in (d, d[:3], da.from_array(d, chunks=(6, 3))):
        with pytest.raises(ValueError, match=r"blocks of P are not known, .*compute_chunk_sizes"):
            decision.from_cardinalities(unknown, distribution=given)
    with pytest.raises(ValueError, match=r"blocks of Ps\[0\] are not known"):
        decision.from_factors([unknown, np.full((3, 2, 2), 0.1)], [[0, 1], [2, 3]])


def test_array_without_rows_beside_a_dask_array_raises():
    P = da.from_array(np.full((6, 2, 2), 0.1), chunks=(3, 2, 2))
    with pytest.raises(TypeError, match=r"Ps\[1\] is a sparse matrix, beside a Dask array"):
        decision.from_factors([P, sparse.csr_array(np.full((6, 1), 0.1))], [[0, 1], [2]])
    with pytest.raises(ValueError, match=r"distribution has shape \(\)"):
        decision.from_cardinalities(P, distribution=0.5)
    for distributions in (np.ones((1, 6, 3)), 5):
        with pytest.raises(TypeError, match="distributions is "):
            decision.from_factors([P], [[0, 1]], distributions=distributions)
    with pytest.raises(ValueError, match="distributions has 0 entries"):
        decision.from_factors([P], [[0, 1]], distributions=[])


def test_dask_data_frame_raises():
    frames = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    frame = frames.from_pandas(pd.DataFrame(PROBA), npartitions=2)
    for call in (decision.from_marginals, lambda proba: decision.from_joint(np.eye(6), proba)):
        with pytest.raises(TypeError, match=r"proba is a Dask data frame: .*to_dask_array"):
            call(frame)
    array = frame.to_dask_array(lengths=True)
    assert_computes_to(decision.from_marginals(array), decision.from_marginals(PROBA))


def test_label_sets_are_computed_at_once():
    lazy = decision.from_joint(da.from_array(SETS), da.from_array(WEIGHTS, chunks=(20, 5)))
    assert_computes_to(lazy, decision.from_joint(SETS, WEIGHTS))
