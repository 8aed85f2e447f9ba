"""What no decision depends on: threads, blocks, other rows, their order, and layouts in memory."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from cases import assert_same_decision, dense
from decision_calls import AVERAGES, CALLS, N
from fgfm import decision

CASES = [(name, average) for name, call in CALLS.items() for average in call.averages]
every_case = pytest.mark.parametrize(("name", "average"), CASES)
pytestmark = pytest.mark.filterwarnings("ignore:.* get the empty set:UserWarning")


def assert_same_bits(one, other):
    for first, second in zip(one, other, strict=True):
        assert type(first) is type(second)
        np.testing.assert_array_equal(dense(first), dense(second))
    assert one.gap == other.gap


@every_case
def test_threads_and_blocks_change_no_bit(name, average, monkeypatch):
    whole = CALLS[name](average=average)
    for block_bytes in (1 << 22, 1):
        monkeypatch.setattr("fgfm._utils.blocks.BLOCK_BYTES", block_bytes)
        for n_jobs in (1, 3, N):
            assert_same_bits(CALLS[name](average=average, n_jobs=n_jobs), whole)


@pytest.mark.parametrize("name", [name for name, average in CASES if average == "samples"])
def test_rows_are_decided_independently(name):
    whole = CALLS[name]()
    for row in range(0, N, 7):
        alone = CALLS[name](rows=slice(row, row + 1))
        np.testing.assert_array_equal(dense(alone.labels)[0], dense(whole.labels)[row])
        assert alone.expected_f[0] == whole.expected_f[row]


INEXACT = {"limits", "sparse limits", "limited cardinalities", "classes"}  # see test_budgets


@pytest.mark.parametrize(
    ("name", "average"),
    [c for c in CASES if c[1] == "micro" or (c[0] not in INEXACT and c[1] != "samples")],
)
def test_order_of_rows_does_not_matter(name, average):
    order = np.random.default_rng(0).permutation(N)
    ordered, permuted = CALLS[name](average=average), CALLS[name](rows=order, average=average)
    np.testing.assert_allclose(ordered.expected_f, permuted.expected_f, rtol=1e-12)
    np.testing.assert_array_equal(dense(ordered.labels)[order], dense(permuted.labels))


@every_case
def test_no_rows(name, average):
    options = {} if "floors" in name or name == "missed" else {"zero_division": 0.25}
    labels, expected_f = CALLS[name](rows=slice(0, 0), average=average, **options)
    whole = CALLS[name](average=average)
    assert labels.shape == (0, *whole.labels.shape[1:])
    assert labels.dtype == whole.labels.dtype
    assert np.shape(expected_f) == ((0,) if average == "samples" else np.shape(whole.expected_f))
    if average != "samples" and options:
        np.testing.assert_array_equal(expected_f, 0.25)  # 0/0


# Layouts and dtypes ------------------------------------------------------------------------------


def _unaligned(array):
    copy = np.ndarray(array.shape, array.dtype, buffer=bytearray(array.nbytes + 1), offset=1)
    copy[...] = array
    return copy


def _strided(array):
    every_other = tuple(slice(None, None, 2) for _ in array.shape)
    spread = np.zeros([2 * size for size in array.shape])
    spread[every_other] = array
    return spread[every_other]


def _reversed(array):
    steps = tuple(slice(None, None, -1) for _ in array.shape)
    return np.ascontiguousarray(array[steps])[steps]


def _field(array):
    records = np.zeros(array.shape, dtype=[("flag", "i1"), ("p", "f8")])
    records["p"] = array
    return records["p"]


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
    "records": _field,
    "read-only": _locked,
}


@every_case
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_in_memory_change_no_bit(layout, name, average):
    def to(array):
        if not sparse.issparse(array):
            return LAYOUTS[layout](array.astype(np.float64))
        return array.astype(np.longdouble) if layout == "longdouble" else array

    assert_same_bits(CALLS[name](to, average=average), CALLS[name](average=average))


# Rows of others do not sum to 1 in half precision; SciPy has no sparse float16.
WITH_SUMS = {"joint", "classes", "pairs", "missed", "distribution", "distributions"}


@pytest.mark.parametrize(("name", "average"), [case for case in CASES if case[0] not in WITH_SUMS])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ">f4"])
def test_floats_are_converted_exactly(name, average, dtype):
    dtype = np.float32 if "sparse" in name else dtype
    single = CALLS[name](lambda array: array.astype(dtype), average=average)
    exact = CALLS[name](lambda array: array.astype(dtype).astype(np.float64), average=average)
    assert_same_decision(single, exact, rtol=1e-6)


@pytest.mark.parametrize("average", AVERAGES)
def test_lists_are_arrays(average):
    for name in ("marginals", "factors", "samples", "joint"):
        plain = CALLS[name](average=average)
        assert_same_bits(CALLS[name](np.ndarray.tolist, average=average), plain)
    # a list of the probabilities of both classes of each label
    assert_same_decision(CALLS["pairs"](average=average), CALLS["marginals"](average=average))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_long_columns(layout):
    """Columns have two kernels, by the layout."""
    p = np.random.default_rng(7).random((9000, 5))
    expected = decision.from_marginals(p.T.copy())
    decided = decision.from_marginals(LAYOUTS[layout](p), average="macro")
    np.testing.assert_array_equal(decided.labels, expected.labels.T)
    np.testing.assert_allclose(decided.expected_f, expected.expected_f, rtol=1e-13)
