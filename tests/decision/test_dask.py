"""Lazy decisions on Dask arrays."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from cases import dense
from decision_calls import (
    CALLS,
    DISTRIBUTIONS,
    FACTORS,
    PARTS,
    PROBA,
    SETS,
    STORED,
    WEIGHTS,
    N,
)
from fgfm import decision

dask = pytest.importorskip("dask", reason="needs dask: pip install 'fgfm[dask]'")
da = pytest.importorskip("dask.array", reason="needs dask: pip install 'fgfm[dask]'")

LAZY = [name for name, call in CALLS.items() if "samples" in call.averages]
# Lists of the probabilities of both classes, and sparse factors, must be in memory.
LAZY = [name for name in LAZY if name not in ("pairs", "sparse factors")]
pytestmark = pytest.mark.filterwarnings("ignore:.* (get|although nonempty):UserWarning")


def assert_computes_to(lazy, expected):
    labels, expected_f = dask.compute(*lazy)
    assert lazy.labels.shape == labels.shape
    assert lazy.labels.dtype == labels.dtype
    assert type(labels) is type(lazy.labels._meta) is type(expected.labels)
    assert lazy.expected_f.dtype == expected_f.dtype
    assert_array_equal(dense(labels), dense(expected.labels))
    assert_array_equal(expected_f, expected.expected_f)


@pytest.mark.parametrize("rows", [1, 17, N, (N - 30, 5, 0, 25)])
@pytest.mark.parametrize("name", LAZY)
def test_any_chunks_give_the_decision_of_the_array(name, rows):
    def lazy(array):
        labels = [max(1, size - 1) for size in array.shape[1:]]  # labels in two chunks
        if sparse.issparse(array):
            whole = da.from_array(array.toarray(), chunks=(rows, *array.shape[1:]))
            return whole.map_blocks(sparse.csr_array)
        return da.from_array(array, chunks=(rows, *labels))

    for kwargs in ({}, {"nonempty": True, "zero_division": 0.5}):
        assert_computes_to(CALLS[name](lazy, **kwargs), CALLS[name](**kwargs))


@pytest.mark.parametrize("name", [name for name in LAZY if "sparse" not in name])
def test_tasks_can_be_sent_to_other_processes(name):
    lazy = CALLS[name](lambda array: da.from_array(array, chunks=(20, *array.shape[1:])))
    assert_computes_to(pickle.loads(pickle.dumps(lazy)), CALLS[name]())


def test_lazy_and_other_arrays_together():
    parts = [PARTS[0], da.from_array(PARTS[1], chunks=17), PARTS[2]]
    expected = decision.from_factors(PARTS, FACTORS, distributions=DISTRIBUTIONS)
    lazy = decision.from_factors(parts, FACTORS, distributions=DISTRIBUTIONS)
    assert_computes_to(lazy, expected)
    both, halves = np.stack(PARTS[:1] * 2), [[4, 1, 0, 8, 9], [2, 3, 5, 7, 6]]
    expected = decision.from_factors(both, halves)
    for chunks in (17, (1, 17, 5, 5)):  # all factors in one array
        lazy = decision.from_factors(da.from_array(both, chunks=chunks), halves)
        assert_computes_to(lazy, expected)
    lazy = decision.from_joint(da.from_array(SETS), da.from_array(WEIGHTS, chunks=(20, 5)))
    assert_computes_to(lazy, decision.from_joint(SETS, WEIGHTS))


def test_blocks_are_read_when_computed_and_only_once():
    """``labels`` and ``expected_f`` share the work of a block."""
    read = []

    def observed(block):
        read.append(len(block))
        return block

    proba = da.from_array(PROBA, chunks=(20, 12)).map_blocks(observed, meta=np.empty((0, 0)))
    lazy = decision.from_marginals(proba)
    assert read == []
    dask.compute(*lazy)
    assert sorted(read) == [20, 20, 20]


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_blocks_stay_sparse(kind):
    lazy = da.from_array(STORED.toarray(), chunks=(20, 12)).map_blocks(kind)
    assert_computes_to(decision.from_marginals(lazy), decision.from_marginals(kind(STORED)))


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
    lazy = decision.from_marginals(da.from_array(proba, chunks=(20, 12)), nonempty=True)
    assert_array_equal(np.flatnonzero(np.isnan(lazy.expected_f.compute())), [30])


def test_error_names_the_first_row_of_the_block():
    proba = PROBA.copy()
    proba[45, 3] = 1.5
    lazy = decision.from_marginals(da.from_array(proba, chunks=(20, 12)))
    with pytest.raises(ValueError, match=r"proba\[5, 3\] is 1.5") as caught:
        lazy.labels.compute()
    assert caught.value.__notes__ == [
        "rows are counted from the first of their block, which is row 40"
    ]


X = da.from_array(PROBA, chunks=(20, 3))
TENTHS, THIRDS = np.full((6, 2, 2), 0.1), np.full((6, 3), 1 / 3)
P = da.from_array(TENTHS, chunks=(3, 2, 2))
UNKNOWN = P[da.from_array(np.ones(6, dtype=bool), chunks=3)]
cardinalities, factors = decision.from_cardinalities, decision.from_factors
STARTED = [
    (lambda: decision.from_marginals(X[None]), "2 dimensions"),
    (lambda: decision.from_marginals(X, beta=-1), "beta is -1"),
    (lambda: decision.from_marginals(X, min_labels=13), "min_labels is 13, but there are 12"),
    (lambda: decision.from_marginals(X.astype("U3")), "dtype"),
    (lambda: decision.from_joint(SETS[:, :3], X), "columns"),
    (lambda: cardinalities(P, distribution=THIRDS[:5]), "distribution has 5 rows and P has 6"),
    (lambda: cardinalities(P, distribution=0.5), r"distribution has shape \(\)"),
    (lambda: cardinalities(P, distribution=da.ones(6)), r"distribution has shape \(0,\): it must"),
    (lambda: factors([P], [[0]]), r"factors\[0\] has 1 labels and Ps\[0\] has 2"),
    (
        lambda: factors([P, sparse.csr_array(TENTHS[:, 0])], [[0, 1], [2, 3]]),
        r"Ps\[1\] is a sparse matrix, beside a Dask array",
    ),
    (lambda: factors([P], [[0, 1]], distributions=THIRDS[None]), "distributions is ndarray"),
    (lambda: factors([P], [[0, 1]], distributions=[]), "distributions has 0 entries"),
    (lambda: decision.from_classes(X), "proba is a dask Array: from_classes decides all rows"),
    (lambda: decision.from_marginals(X[:, 0]), "proba is a Dask array: 1-D probabilities decides"),
    *(
        (
            partial(decision.from_marginals, X, average=average),
            f"proba is a Dask array: average='{average}' decides all rows together, so it must be",
        )
        for average in ("macro", "weighted", "micro")
    ),
    *(
        (
            partial(cardinalities, UNKNOWN, distribution=d),
            "blocks of P are not known, .*compute_chunk_sizes",
        )
        for d in (THIRDS, THIRDS[:3], da.from_array(THIRDS, chunks=(6, 3)))
    ),
    (lambda: factors([UNKNOWN, TENTHS], [[0, 1], [2, 3]]), r"blocks of Ps\[0\] are not known"),
]


@pytest.mark.parametrize(("call", "message"), STARTED)
def test_invalid_arguments_raise_at_once(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_dask_data_frame_raises():
    frames = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    frame = frames.from_pandas(pd.DataFrame(PROBA), npartitions=2)
    for call in (decision.from_marginals, lambda proba: decision.from_joint(np.eye(6), proba)):
        with pytest.raises(TypeError, match=r"proba is a Dask data frame: .*to_dask_array"):
            call(frame)
    array = frame.to_dask_array(lengths=True)
    assert_computes_to(decision.from_marginals(array), decision.from_marginals(PROBA))
