"""Parts of the kernels that could go wrong unseen: orderings, skipped columns, compilation."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fgfm import cardinality
from fgfm._kernels import _compile
from fgfm._kernels.cardinalities import rank_candidates
from fgfm._kernels.marginals import decide_dense_rows
from fgfm._kernels.ordering import repair_order, sort_descending
from fgfm._kernels.search import search
from fgfm._kernels.short import SHORT, decide_short_rows
from fgfm.decision._quadrature import rules


@numba.njit
def call_sort(value, place, spare_value, spare_place, count):
    sort_descending(value, place, spare_value, spare_place, count)


@numba.njit
def call_repair(value, place, spare_value, spare_place, count):
    repair_order(value, place, spare_value, spare_place)


values = st.one_of(
    st.lists(st.floats(0.0, 1.0, allow_nan=False), max_size=200),
    st.lists(st.sampled_from([0.0, 1e-300, 0.25, 0.5, 1.0]), max_size=200),
    st.lists(st.floats(1e-9, 1e-8), max_size=60).map(lambda tail: [*tail, 1.0] * 3),
    st.lists(st.floats(0.0, 1.0), max_size=200).map(sorted),
)


@settings(deadline=None, max_examples=150)
@given(values)
@pytest.mark.parametrize("routine", [call_sort, call_repair])
def test_sorting(routine, unsorted):
    value = np.array(unsorted, dtype=np.float64)
    n = len(value)
    place = np.arange(n)
    routine(value, place, np.empty(n), np.empty(n, dtype=np.int64), np.empty(n + 2, np.int64))
    expected = np.argsort(-np.array(unsorted, dtype=np.float64), kind="stable")
    np.testing.assert_array_equal(place, expected)  # equal values keep their order
    np.testing.assert_array_equal(value, np.array(unsorted, dtype=np.float64)[expected])


def columns_computed(P, beta2=1.0):
    """Run the search on a plain P; compare with all columns; give how many it computed."""
    m, S = P.shape
    s = np.arange(1.0, S + 1.0)
    order = np.empty(m, dtype=np.int64)
    p, weighted = P.sum(axis=1), P @ s
    size, guess, floor = rank_candidates(p, weighted, float(S), beta2, 0.0, order)
    scale = np.full(S, 1.0 + beta2)
    kept = np.empty(size, dtype=np.int64), np.empty(size)
    k, value, count = search(
        P, order[:size], P.sum(axis=0), beta2 * s, scale, False, size, guess, floor, 0.0, *kept
    )
    assert (np.diff(kept[1]) <= 0.0).all()
    assert kept[1][:k].sum() == pytest.approx(value, rel=1e-12)
    sizes = np.arange(1, m + 1)
    delta = (1.0 + beta2) * P @ (1.0 / (beta2 * s[:, None] + sizes))
    every = np.cumsum(-np.sort(-delta, axis=0), axis=0).diagonal()
    assert value == pytest.approx(every.max(), rel=1e-12)
    assert k == np.argmax(every) + 1
    return count


@pytest.mark.parametrize("beta2", [0.01, 1.0, 25.0])
@pytest.mark.parametrize("m", [20, 60, 100])
def test_few_columns_are_computed(m, beta2):
    rng = np.random.default_rng(m)
    counts = []
    for power in (1, 2, 4, 8):
        P = cardinality.from_marginals(rng.random((3, m)) ** power)
        counts += [columns_computed(row, beta2) for row in P]
    assert np.mean(counts) <= 5.0
    assert max(counts) <= 12


def test_few_columns_where_cardinality_is_uncertain():
    """Half of the mass on small sets, half on large ones: the bounds have more to do."""
    rng = np.random.default_rng(2)
    m = 60
    sizes = np.where(rng.random(80) < 0.5, rng.integers(1, 4, 80), rng.integers(40, 60, 80))
    sets = np.array([rng.permutation(np.arange(m) < size) for size in sizes]).astype(int)
    P = cardinality.from_joint(sets, rng.dirichlet(np.full(80, 0.3), size=20))
    counts = [columns_computed(row) for row in P]
    assert max(counts) <= 25  # of 60


def test_equal_values_end():
    """All sets of a size are alike, and the values of sizes are close: the search must end."""
    m = 30
    P = np.zeros((m, m))
    P[:, 0] = 1.0 / m  # exactly one label, any
    assert columns_computed(P) <= m


def test_fingerprint_follows_the_sources(tmp_path):
    for folder in ("_kernels", "decision"):
        (tmp_path / folder).mkdir()
    sources = [tmp_path / name for name in ("decision/_quadrature.py", "_kernels/a.py")]
    for source in sources:
        source.write_text("x = 1\n")
    for source in sources:
        before = _compile._fingerprint(tmp_path)
        assert before == _compile._fingerprint(tmp_path)
        source.write_text("x = 2\n")
        assert before != _compile._fingerprint(tmp_path)


@pytest.mark.compiled
def test_one_machine_code_for_each_kernel():
    """A literal among the arguments, or a read-only array, must not compile a kernel anew."""
    from fgfm import decision
    from fgfm._kernels import marginals, ordering, window

    locked = np.random.default_rng(0).random((3, 400))
    decision.from_marginals(locked)
    locked.flags.writeable = False
    decision.from_marginals(locked)
    decision.from_marginals(locked[:, ::2])
    assert len(marginals.decide_dense_rows.signatures) <= 2  # float64, and float32 elsewhere
    assert len(window.find_window.signatures) <= 2
    # None where the callers were read from the cache, with this kernel inside.
    assert len(ordering.sort_descending.signatures) <= 1


probabilities = st.one_of(
    st.floats(0.0, 1.0),
    st.sampled_from([0.0, 1e-300, 1e-17, 1e-9, 0.25, 0.5, 1.0 - 2.0**-53, 1.0]),
    st.floats(0.0, 0.02),
)


@pytest.mark.compiled  # as plain Python the long kernel warns of what overflows harmlessly
@settings(deadline=None, max_examples=300)
@given(
    row=st.lists(probabilities, min_size=1, max_size=SHORT),
    beta=st.sampled_from([0.3, 0.5, 1.0, 2.0, 5.0]),
    zero_division=st.sampled_from([0.0, 0.5, 1.0]),
    nonempty=st.booleans(),
)
def test_few_labels_are_decided_as_many_are(row, beta, zero_division, nonempty):
    p = np.array([row])
    answers = []
    for kernel in (decide_short_rows, decide_dense_rows):
        labels, expected = np.zeros(p.shape, dtype=np.int8), np.empty(1)
        how = (beta * beta, zero_division, nonempty, rules(beta))
        assert kernel(p, *how, labels, expected)[0] == -1
        answers.append((labels, expected))
    # what is worth less than 1e-290 may be taken for nothing
    np.testing.assert_allclose(answers[0][1], answers[1][1], rtol=1e-11, atol=1e-290)
    if not answers[0][1] > 1e-290:
        return
    # the same set, unless two are worth the same up to rounding
    if not np.array_equal(answers[0][0], answers[1][0]):
        values = [independent_value(row, labels[0], beta, zero_division) for labels, _ in answers]
        assert values[0] == pytest.approx(values[1], rel=3e-12)


def independent_value(row, labels, beta, zero_division):
    """Give the expected F of a set, from the distribution of the number of other labels."""
    P = cardinality.from_marginals([row])[0]
    k = labels.sum()
    if k == 0:
        return zero_division * float(np.prod(1.0 - np.array(row)))
    s = np.arange(1, P.shape[1] + 1)
    return float(((1.0 + beta**2) * P[labels == 1] / (beta**2 * s + k)).sum())
