"""`from_marginals` on sparse matrices, as models with very many labels return them."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

import oracle
from cases import assert_same_decision, dense
from csr_cases import OBJECTIVES, random_marginals, shuffled
from fgfm import cardinality, decision
from fgfm._kernels import native
from fgfm._utils import blocks

RNG = np.random.default_rng(11)
PROBA = RNG.random((40, 12)) ** 3


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("nonempty", [False, True])
@pytest.mark.parametrize("average", ["samples", "macro", "weighted", "micro"])
@pytest.mark.filterwarnings("ignore:rows without probability")
def test_every_format_gives_the_decision_of_the_dense_array(form, kind, nonempty, average):
    options = {"nonempty": nonempty, "average": average}
    proba = PROBA * (PROBA > 0.02)
    proba[5] = 0.0
    expected = decision.from_marginals(proba, **options)
    given = [getattr(sparse, f"{form}_{kind}")(proba)]
    if form == "csr":
        falling = given[0].copy()
        for row in range(40):
            entries = slice(*falling.indptr[row : row + 2])
            falling.indices[entries] = falling.indices[entries][::-1]
            falling.data[entries] = falling.data[entries][::-1]
        given.append(falling)
    for matrix in given:
        labels, expected_f = decision.from_marginals(matrix, **options)
        assert isinstance(labels, getattr(sparse, f"csr_{kind}"))
        assert labels.dtype == np.int8
        assert labels.has_canonical_format
        assert (labels.data == 1).all()
        np.testing.assert_array_equal(labels.toarray(), expected.labels)
        np.testing.assert_allclose(expected_f, expected.expected_f, rtol=1e-12)


# The order of the entries ------------------------------------------------------------------------


@pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
@pytest.mark.filterwarnings("ignore:rows without probability")
def test_entries_may_be_in_any_order(objective, dtype, kind):
    p = random_marginals(RNG, 20, 8).astype(dtype)
    given = shuffled(kind(p), RNG)
    exact = kind(given).toarray().astype(np.float64)  # duplicates are added in their precision
    decided = decision.from_marginals(given, **objective)
    assert type(decided.labels) is kind
    assert decided.labels.has_canonical_format
    labels, expected_f = dense(decided.labels), decided.expected_f
    keep = ~np.isnan(expected_f)
    assert keep.all() or objective == {"nonempty": True}
    joint = oracle.independent_joint(exact[keep])
    oracle.check_decision((labels[keep], expected_f[keep]), joint, **objective)


def test_input_with_duplicates_and_explicit_zeros_is_not_changed():
    row = [0, 0, 0, 1, 2, 2, 2]
    column = [3, 1, 3, 0, 2, 0, 1]
    data = [0.3, 0.8, 0.4, 0.0, 0.9, 0.5, 0.0]
    given = sparse.csr_array((data, column, [0, 3, 4, 7]), shape=(3, 5))
    assert not given.has_sorted_indices
    before = given.data.copy(), given.indices.copy()
    full = np.zeros((3, 5))
    np.add.at(full, (row, column), data)
    assert_same_decision(decision.from_marginals(given), decision.from_marginals(full), rtol=1e-13)
    np.testing.assert_array_equal(given.data, before[0])
    np.testing.assert_array_equal(given.indices, before[1])


def test_cached_flags_of_the_matrix_are_not_trusted():
    csr = sparse.csr_array([[0.5, 0.6, 0.7], [0.1, 0.2, 0.6]])
    assert csr.has_canonical_format  # cached by SciPy
    csr.indices[:] = [2, 1, 0, 1, 1, 2]
    decided = decision.from_marginals(csr)
    assert decided.labels.has_canonical_format
    joint = oracle.independent_joint([[0.7, 0.6, 0.5], [0.0, 0.3, 0.6]])
    oracle.check_decision((dense(decided.labels), decided.expected_f), joint)


@pytest.mark.parametrize("part", ["data", "indices", "indptr"])
def test_arrays_may_be_read_only(part):
    csr = shuffled(sparse.csr_array(random_marginals(RNG, 6, 5)), RNG)
    expected = decision.from_marginals(csr.copy())
    getattr(csr, part).flags.writeable = False
    decided = decision.from_marginals(csr)
    np.testing.assert_array_equal(dense(decided.labels), dense(expected.labels))


def test_index_types_give_the_same_bits():
    narrow = sparse.csr_array(PROBA)
    wide = sparse.csr_array(
        (narrow.data, narrow.indices.astype(np.int64), narrow.indptr.astype(np.int64)),
        shape=narrow.shape,
    )
    one, other = decision.from_marginals(narrow), decision.from_marginals(wide)
    np.testing.assert_array_equal(dense(one.labels), dense(other.labels))
    np.testing.assert_array_equal(one.expected_f, other.expected_f)


# Short and long rows take different kernels ------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 2, 60])  # 60 threads: blocks of one row
def test_rows_of_any_length(n_jobs):
    m = 3 * native.SHORT
    p = RNG.random((60, m)) ** 4
    for row, length in enumerate(RNG.integers(0, m, size=60)):
        p[row, RNG.permutation(m)[length:]] = 0.0
    p[0] = 0.0
    expected = decision.from_marginals(p)
    csr = sparse.csr_array(p)
    for given in (csr, shuffled(csr, RNG)):
        assert_same_decision(decision.from_marginals(given, n_jobs=n_jobs), expected, rtol=1e-12)
    alone = [decision.from_marginals(csr[[row]]).expected_f[0] for row in range(60)]
    np.testing.assert_array_equal(decision.from_marginals(csr, n_jobs=n_jobs).expected_f, alone)


@pytest.mark.parametrize("width", [native.SHORT - 1, native.SHORT, native.SHORT + 1])
def test_rows_around_the_longest_short_row(width):
    p = RNG.random((30, width)) ** 3
    wide = decision.from_marginals(np.hstack([p, np.zeros((30, 2 * native.SHORT))]))
    for given in (p, sparse.csr_array(p)):
        labels, expected_f = decision.from_marginals(given)
        np.testing.assert_array_equal(dense(labels), wide.labels[:, :width])
        np.testing.assert_allclose(expected_f, wide.expected_f, rtol=1e-12)


# Errors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 9])  # 9 threads: blocks of one row
def test_wrong_entry_raises(n_jobs):
    p = sparse.csr_array(random_marginals(RNG, 9, 6))
    wrong = p.copy()
    wrong.data[wrong.indptr[4]] = 1.5
    label = wrong.indices[wrong.indptr[4]]
    with pytest.raises(ValueError, match=rf"proba\[4, {label}\] is 1.5: probabilities must lie"):
        decision.from_marginals(wrong, n_jobs=n_jobs)
    # each duplicate is a probability, but not their sum
    twice = sparse.csr_array(([0.7, 0.2, 0.7], [3, 1, 3], [0, 0, 3]), shape=(2, 6))
    with pytest.raises(ValueError, match=r"proba\[1, 3\] is 1.4: probabilities must lie in"):
        decision.from_marginals(twice, n_jobs=n_jobs)
    P = np.full((9, 2, 2), 0.1)
    with pytest.raises(ValueError, match=rf"Ps\[1\]\[4, {label}\] is 1.5: probabilities must"):
        decision.from_factors([P, wrong], [[0, 7], [1, 2, 3, 4, 5, 6]], n_jobs=n_jobs)


def changed(part, value):
    """Return a matrix one of whose arrays was replaced."""
    csr = sparse.csr_array([[0.9, 0.8, 0.0], [0.0, 0.0, 0.7]])
    setattr(csr, part, np.asarray(value))
    return csr


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (changed("indices", [0, 1, 3]), r"indices\[2\] is 3: with shape \(2, 3\) .* from 0 to 2"),
        (changed("indices", [0, -2, 2]), r"indices\[1\] is -2"),
        (changed("indices", [0, 1]), r"indptr is invalid: .* 3 entries, from 0 to at most 2"),
        (changed("indptr", [0, 3, 2]), "indptr is invalid: .* none smaller than the one before"),
        (changed("indptr", [1, 2, 3]), "indptr is invalid"),
        (changed("indptr", [0, 2, 4]), "indptr is invalid"),
        (changed("indptr", [0, 3]), "indptr is invalid"),
        (changed("indices", [0, 1, 3]).T, r"indices\[2\] is 3: with shape \(3, 2\)"),
    ],
)
def test_inconsistent_matrix_raises(matrix, message):
    n, m = matrix.shape
    with pytest.raises(ValueError, match=rf"proba\.{message}"):
        decision.from_marginals(matrix)
    with pytest.raises(ValueError, match=rf"Ps\[1\]\.{message}"):
        decision.from_factors([np.zeros((n, 1, 1)), matrix], [[m], range(m)])


# Size --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("function", ["from_marginals", "from_factors"])
def test_memory_is_that_of_a_block(dtype, in_order, function, monkeypatch):
    """A million entries, 8 MB or more, of which a block has 3 %; dense it would be 8 GB."""
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1 << 19)  # else the input must be 8 times as large
    n, m, stored = 10_000, 100_000, 100
    places = RNG.integers(m // stored, size=(n, stored)) + np.arange(stored) * (m // stored)
    if not in_order:
        places = places[:, ::-1]
    p = RNG.random((n, stored)).astype(dtype) ** 20
    indptr = np.arange(n + 1, dtype=np.int32) * stored
    csr = sparse.csr_array((p.ravel(), places.astype(np.int32).ravel(), indptr), shape=(n, m))
    P = np.broadcast_to(cardinality.of_marginals([[0.3, 0.1]]), (n, 2, 2))

    def decide(rows):
        if function == "from_marginals":
            return decision.from_marginals(csr[:rows] if rows < n else csr)
        return decision.from_factors(
            [P[:rows], csr[:rows] if rows < n else csr], [[0, m + 1], np.arange(1, m + 1)]
        )

    decide(10)  # compiles the kernel
    tracemalloc.start()
    labels, expected_f = decide(n)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    result = sum(x.nbytes for x in (labels.data, labels.indices, labels.indptr, expected_f))
    partition = 5 * 8 * m if function == "from_factors" else 0  # the labels of the factors
    assert kept < result + partition + 2**18
    assert peak < 2 * result + partition + 8 * blocks.BLOCK_BYTES


@pytest.mark.slow
def test_large_matrix_is_not_densified():
    """100,000 x 100,000 with 50 entries a row: the dense labels alone would take 10 GB."""
    n = m = 100_000
    rng = np.random.default_rng(0)
    indices = np.sort(rng.integers(0, m // 50, size=(n, 50)) + np.arange(50) * (m // 50))
    data = rng.random((n, 50)) ** 6
    proba = sparse.csr_array((data.ravel(), indices.ravel(), np.arange(n + 1) * 50), shape=(n, m))
    decision.from_marginals(proba[:10])  # compiles the kernel
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
