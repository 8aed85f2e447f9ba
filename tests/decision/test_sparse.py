"""Probabilities in CSR, as models with very many labels give them."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from fgfm import cardinality, decision
from fgfm._kernels.marginals_short import SHORT
from fgfm._utils import blocks as _blocks
from oracle import (
    cardinality_matrix,
    check_decision,
    independent_joint,
    product_joint,
    random_joint,
)

RNG = np.random.default_rng(11)
SETTINGS = [
    {},
    {"beta": 2.0},
    {"beta": 0.5, "zero_division": 0.0},
    {"zero_division": 0.4},
    {"nonempty": True},
]


def shuffled(csr):
    """The same matrix, the entries of a row in any order, and one of them in two pieces."""
    data, indices, indptr = [], [], [0]
    for row in range(csr.shape[0]):
        span = slice(csr.indptr[row], csr.indptr[row + 1])
        p, i = csr.data[span], csr.indices[span]
        if len(p):
            p, i = np.append(p, p[0] / 4), np.append(i, i[0])
            p[0] *= 0.75
        order = RNG.permutation(len(p))
        data.append(p[order])
        indices.append(i[order])
        indptr.append(indptr[-1] + len(p))
    found = type(csr)((np.concatenate(data), np.concatenate(indices), indptr), shape=csr.shape)
    assert not found.has_canonical_format
    return found


def some_marginals(n, m):
    """Marginals of which most are 0, with a row that stores nothing and one of zeros and ones."""
    p = RNG.random((n, m)) ** 2 * (RNG.random((n, m)) < 0.6)
    p[1] = 0.0
    p[2] = np.arange(m) % 2
    return p


def some_factors(n=25):
    """Two factors whose labels depend, and five labels alone: joints, Ps, factors, marginals."""
    alone = some_marginals(n, 5)
    joints = [random_joint(RNG, n, 3), independent_joint(alone), random_joint(RNG, n, 2)]
    factors = [[7, 0, 4], [9, 2, 5, 1, 8], [6, 3]]
    Ps = [cardinality_matrix(*joints[0]), sparse.csr_array(alone), cardinality_matrix(*joints[2])]
    return joints, Ps, factors


def dense(decided):
    return decided.labels.toarray(), decided.expected_f


# Marginals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
@pytest.mark.filterwarnings("ignore:rows without probability")
def test_entries_in_any_order(setting, dtype, kind):
    p = some_marginals(20, 8).astype(dtype)
    given = shuffled(kind(p))
    exact = kind(given).toarray().astype(np.float64)  # the pieces summed in their own precision
    decided = decision.from_marginals(given, **setting)
    assert type(decided.labels) is kind
    assert decided.labels.has_canonical_format
    labels, expected_f = dense(decided)
    keep = ~np.isnan(expected_f)
    assert keep.all() or setting == {"nonempty": True}
    check_decision((labels[keep], expected_f[keep]), independent_joint(exact[keep]), **setting)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("block_bytes", [1, 3000])
def test_rows_of_any_length(n_jobs, block_bytes, monkeypatch):
    """Short rows and long ones take different kernels; with zeros or without, the same sets."""
    m = 3 * SHORT
    p = RNG.random((60, m)) ** 4
    for row, length in enumerate(RNG.integers(0, m, size=60)):
        p[row, RNG.permutation(m)[length:]] = 0.0
    p[0] = 0.0
    expected = decision.from_marginals(p)
    csr = sparse.csr_array(p)
    alone = [decision.from_marginals(csr[[row]]).expected_f[0] for row in range(60)]
    monkeypatch.setattr(_blocks, "BLOCK_BYTES", block_bytes)
    for given in (csr, shuffled(csr)):
        labels, expected_f = dense(decision.from_marginals(given, n_jobs=n_jobs))
        np.testing.assert_array_equal(labels, expected.labels)
        np.testing.assert_allclose(expected_f, expected.expected_f, rtol=1e-12)
    np.testing.assert_array_equal(decision.from_marginals(csr, n_jobs=n_jobs).expected_f, alone)


@pytest.mark.parametrize("width", [SHORT - 1, SHORT, SHORT + 1])
def test_the_longest_short_row(width):
    p = RNG.random((30, width)) ** 3
    wide = decision.from_marginals(np.hstack([p, np.zeros((30, 2 * SHORT))]))
    for given in (p, sparse.csr_array(p)):
        labels, expected_f = decision.from_marginals(given)
        labels = labels.toarray() if sparse.issparse(labels) else labels
        np.testing.assert_array_equal(labels, wide.labels[:, :width])
        np.testing.assert_allclose(expected_f, wide.expected_f, rtol=1e-12)


@pytest.mark.parametrize("block_bytes", [1, 1 << 22])
def test_a_wrong_entry_is_named(block_bytes, monkeypatch):
    monkeypatch.setattr(_blocks, "BLOCK_BYTES", block_bytes)
    p = sparse.csr_array(some_marginals(9, 6))
    wrong = p.copy()
    wrong.data[wrong.indptr[4]] = 1.5
    label = wrong.indices[wrong.indptr[4]]
    with pytest.raises(ValueError, match=rf"proba\[4, {label}\] is 1.5: probabilities must lie"):
        decision.from_marginals(wrong)
    # each piece is a probability, but not their sum
    pieces = sparse.csr_array(([0.7, 0.2, 0.7], [3, 1, 3], [0, 0, 3]), shape=(2, 6))
    with pytest.raises(ValueError, match=r"proba\[1, 3\] is 1.4: probabilities must lie in"):
        decision.from_marginals(pieces)
    P = np.full((9, 2, 2), 0.1)
    with pytest.raises(ValueError, match=rf"Ps\[1\]\[4, {label}\] is 1.5: probabilities must"):
        decision.from_factors([P, wrong], [[0, 7], [1, 2, 3, 4, 5, 6]])


def damaged(part, value):
    """A matrix whose arrays were changed behind its back."""
    csr = sparse.csr_array([[0.9, 0.8, 0.0], [0.0, 0.0, 0.7]])
    setattr(csr, part, np.asarray(value))
    return csr


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (damaged("indices", [0, 1, 3]), r"indices\[2\] is 3: with shape \(2, 3\) .* from 0 to 2"),
        (damaged("indices", [0, -2, 2]), r"indices\[1\] is -2"),
        (damaged("indices", [0, 1]), r"indptr is damaged: .* 3 numbers, from 0 to at most 2"),
        (damaged("indptr", [0, 3, 2]), "indptr is damaged: .* none below the one before"),
        (damaged("indptr", [1, 2, 3]), "indptr is damaged"),
        (damaged("indptr", [0, 2, 4]), "indptr is damaged"),
        (damaged("indptr", [0, 3]), "indptr is damaged"),
        (damaged("indices", [0, 1, 3]).T, r"indices\[2\] is 3: with shape \(3, 2\)"),
    ],
)
def test_a_damaged_matrix_is_refused(matrix, message):
    n, m = matrix.shape
    with pytest.raises(ValueError, match=rf"proba\.{message}"):
        decision.from_marginals(matrix)
    with pytest.raises(ValueError, match=rf"Ps\[1\]\.{message}"):
        decision.from_factors([np.zeros((n, 1, 1)), matrix], [[m], range(m)])


def test_an_order_that_was_known_is_not_relied_on():
    csr = sparse.csr_array([[0.5, 0.6, 0.7], [0.1, 0.2, 0.6]])
    assert csr.has_canonical_format  # which SciPy remembers
    csr.indices[:] = [2, 1, 0, 1, 1, 2]
    decided = decision.from_marginals(csr)
    assert decided.labels.has_canonical_format
    check_decision(dense(decided), independent_joint([[0.7, 0.6, 0.5], [0.0, 0.3, 0.6]]))


@pytest.mark.parametrize("part", ["data", "indices", "indptr"])
def test_what_cannot_be_written_is_read(part):
    csr = shuffled(sparse.csr_array(some_marginals(6, 5)))
    expected = decision.from_marginals(csr.copy())
    getattr(csr, part).flags.writeable = False
    decided = decision.from_marginals(csr)
    np.testing.assert_array_equal(decided.labels.toarray(), expected.labels.toarray())


def test_indices_can_count_what_is_answered(monkeypatch):
    """Dense labels may bring the answer above what the indices of the input can count."""
    asked = []
    choose = sparse.get_index_dtype

    def note(arrays=(), maxval=None, check_contents=False):
        asked.append(maxval)
        return choose(arrays, maxval, check_contents)

    monkeypatch.setattr(sparse, "get_index_dtype", note)
    Ps = [np.ones((30, 1, 1)), sparse.csr_array((30, 2))]
    assert decision.from_factors(Ps, [[0], [1, 2]]).labels.nnz == 30
    assert asked == [30]


@pytest.mark.compiled
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("route", ["marginals", "factors"])
def test_memory_is_that_of_a_block(dtype, in_order, route, monkeypatch):
    """A million entries, 8 MB or more, of which a block has 3 %; dense it would be 8 GB."""
    monkeypatch.setattr(_blocks, "BLOCK_BYTES", 1 << 19)
    n, m, stored = 10_000, 100_000, 100
    places = RNG.integers(m // stored, size=(n, stored)) + np.arange(stored) * (m // stored)
    if not in_order:
        places = places[:, ::-1]
    p = RNG.random((n, stored)).astype(dtype) ** 20
    indptr = np.arange(n + 1, dtype=np.int32) * stored
    csr = sparse.csr_array((p.ravel(), places.astype(np.int32).ravel(), indptr), shape=(n, m))
    P = np.broadcast_to(cardinality.from_marginals([[0.3, 0.1]]), (n, 2, 2))

    def decide(rows):
        if route == "marginals":
            return decision.from_marginals(csr[:rows] if rows < n else csr)
        return decision.from_factors(
            [P[:rows], csr[:rows] if rows < n else csr], [[0, m + 1], np.arange(1, m + 1)]
        )

    decide(10)  # compiled before memory is counted
    tracemalloc.start()
    labels, expected_f = decide(n)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    answer = sum(x.nbytes for x in (labels.data, labels.indices, labels.indptr, expected_f))
    partition = 5 * 8 * m if route == "factors" else 0  # the labels of the factors, checked
    assert kept < answer + partition + 2**18
    assert peak < 2 * answer + partition + 8 * _blocks.BLOCK_BYTES


# Factors -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_factors_by_enumeration(setting):
    joints, Ps, factors = some_factors()
    decided = decision.from_factors(Ps, factors, **setting)
    assert isinstance(decided.labels, sparse.csr_array)
    assert decided.labels.has_canonical_format
    check_decision(dense(decided), product_joint(joints, factors), **setting)


def test_ties_between_stored_and_other_labels():
    """Equal labels: those of lowest index win, wherever their probabilities come from."""
    pair = cardinality.from_marginals(np.full((4, 2), 0.3))
    alone = sparse.csr_array(np.full((4, 3), 0.3))
    joint = independent_joint(np.full((4, 6), 0.3))
    for factors in ([[1, 4], [5, 0, 2], [3]], [[5, 0], [1, 2, 3], [4]]):
        decided = decision.from_factors([pair, alone, np.full((4, 1, 1), 0.3)], factors)
        check_decision(dense(decided), joint)


def test_stored_labels_alone():
    p = some_marginals(30, 9)
    expected = decision.from_marginals(p)
    columns = RNG.permutation(9)
    one = sparse.csr_array(p[:, columns])
    decided = decision.from_factors([one], [columns])
    np.testing.assert_array_equal(decided.labels.toarray(), expected.labels)
    np.testing.assert_allclose(decided.expected_f, expected.expected_f, rtol=1e-13)
    two = [sparse.csc_matrix(p[:, columns[:4]]), sparse.coo_array(p[:, columns[4:]])]
    decided = decision.from_factors(two, [columns[:4], columns[4:]])
    assert isinstance(decided.labels, sparse.csr_matrix)
    np.testing.assert_array_equal(decided.labels.toarray(), expected.labels)
    mixed = [two[0], *(p[:, [i], None] for i in columns[4:])]
    decided = decision.from_factors(mixed, [columns[:4], *([i] for i in columns[4:])])
    np.testing.assert_array_equal(decided.labels.toarray(), expected.labels)
    np.testing.assert_allclose(decided.expected_f, expected.expected_f, rtol=1e-12)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("block_bytes", [1, 1000])
def test_forms_of_stored_labels(n_jobs, block_bytes, monkeypatch):
    _, Ps, factors = some_factors()
    expected = decision.from_factors(Ps, factors)
    monkeypatch.setattr(_blocks, "BLOCK_BYTES", block_bytes)
    wide = Ps[1].copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for given in (Ps[1], wide, Ps[1].tocsc()):
        decided = decision.from_factors([Ps[0], given, Ps[2]], factors, n_jobs=n_jobs)
        np.testing.assert_array_equal(decided.labels.toarray(), expected.labels.toarray())
        np.testing.assert_array_equal(decided.expected_f, expected.expected_f)
    decided = decision.from_factors([Ps[0], shuffled(Ps[1]), Ps[2]], factors, n_jobs=n_jobs)
    np.testing.assert_array_equal(decided.labels.toarray(), expected.labels.toarray())
    np.testing.assert_allclose(decided.expected_f, expected.expected_f, rtol=1e-12)
    single = [Ps[0].astype(np.float32), Ps[1].astype(np.float32), Ps[2].astype(np.float32)]
    exact = [single[0].astype(float), single[1].astype(float), single[2].astype(float)]
    one, other = (decision.from_factors(parts, factors) for parts in (single, exact))
    np.testing.assert_array_equal(one.labels.toarray(), other.labels.toarray())


def test_rounding_of_stored_labels_is_forgiven():
    P = cardinality.from_marginals([[0.2, 0.1]])
    off = sparse.csr_array([[1.0 + 1e-12, 0.0, -1e-12]])
    decided = decision.from_factors([P, off], [[0, 1], [2, 3, 4]])
    right = sparse.csr_array(np.clip(off.toarray(), 0.0, 1.0))
    expected = decision.from_factors([P, right], [[0, 1], [2, 3, 4]])
    np.testing.assert_array_equal(decided.labels.toarray(), expected.labels.toarray())
    np.testing.assert_allclose(decided.expected_f, expected.expected_f, rtol=1e-13)


def test_no_rows():
    empty = sparse.csr_array((0, 4))
    decided = decision.from_factors([np.empty((0, 2, 2)), empty], [[0, 1], [2, 3, 4, 5]])
    assert decided.labels.shape == (0, 6)
    assert decided.expected_f.shape == (0,)
    assert decision.from_factors([empty], [[0, 1, 2, 3]]).labels.shape == (0, 4)


def test_a_row_that_contradicts_nonempty():
    P = np.zeros((2, 2, 2))
    with pytest.warns(UserWarning, match="the first is row 1"):
        decided = decision.from_factors(
            [P, sparse.csr_array([[0.5], [0.0]])], [[0, 2], [1]], nonempty=True
        )
    np.testing.assert_array_equal(decided.labels.toarray(), [[0, 1, 0], [0, 0, 0]])
    np.testing.assert_array_equal(np.isnan(decided.expected_f), [False, True])


@pytest.mark.parametrize(
    ("Ps", "factors", "given", "message"),
    [
        (
            [np.zeros((2, 2, 2)), sparse.csr_array((3, 2))],
            [[0, 1], [2, 3]],
            None,
            r"Ps\[1\] has 3 rows and Ps\[0\] has 2",
        ),
        ([sparse.csr_array((3, 2))], [[0]], None, r"factors\[0\] has 1 labels and Ps\[0\] has 2"),
        (
            [np.zeros((2, 1, 1)), sparse.csr_array((2, 2))],
            [[0], [0, 1]],
            None,
            r"factors\[0\] and factors\[1\] both hold label 0",
        ),
        (
            [np.zeros((2, 1, 1)), sparse.csr_array((2, 1))],
            [[0], [1]],
            [[[1, 0]] * 2, [[1, 0]] * 2],
            r"distributions is given and Ps\[1\] is a sparse matrix",
        ),
        (
            [np.full((2, 2, 2), 0.7), sparse.csr_array((2, 1))],
            [[0, 1], [2]],
            None,
            r"Ps\[0\]\[0, 0\] sums to 1.4 over cardinalities",
        ),
        ([sparse.csr_array((2, 0))], [[]], None, r"Ps\[0\] has shape \(2, 0\): it must have 2"),
    ],
)
def test_refusals(Ps, factors, given, message):
    with pytest.raises(ValueError, match=message):
        decision.from_factors(Ps, factors, distributions=given)
    if given is None and sparse.issparse(Ps[-1]):
        with pytest.raises(TypeError, match="sparse matrix: it must be a dense array"):
            cardinality.merge_factors(Ps, factors)
