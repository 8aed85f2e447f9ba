"""Averages: columns and batches against enumeration of all label matrices, and types of input."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from scipy.special import expit, logit

import oracle
from cases import assert_same_decision, dense, every_option
from fgfm import cardinality, decision, f_measure

RNG = np.random.default_rng(17)


def batch_joint(joint):
    """Return the distribution of all entries of the label matrix, for independent rows."""
    sets, proba = joint
    n, m = len(proba), sets.shape[1]
    rows = [(sets, proba[r : r + 1]) for r in range(n)]
    return oracle.product_joint(rows, [list(range(r * m, (r + 1) * m)) for r in range(n)])


AVERAGES = ["macro", "weighted", "micro"]
every_average = pytest.mark.parametrize("average", AVERAGES)


# Against enumeration (see also tests/hostile) ----------------------------------------------------


@pytest.mark.parametrize("beta", [0.5, 1.0])
@every_option
def test_binary_classifier(beta, zero_division, nonempty):
    p = np.array([0.3, 0.9, 0.05, 0.55, 0.5])
    kwargs = {"beta": beta, "zero_division": zero_division, "nonempty": nonempty}
    for average in ("samples", *AVERAGES):
        labels, expected_f = decision.from_marginals(p, average=average, **kwargs)
        assert labels.shape == (5,)
        assert np.ndim(expected_f) == 0
        decided = labels[None], np.atleast_1d(expected_f)
        oracle.check_decision(decided, oracle.independent_joint(p[None]), **kwargs)


@every_average
def test_expected_f_is_the_mean_of_the_measure(average):
    """The mean of `f_measure` over all label matrices, weighted by their probabilities."""
    joint = oracle.random_joint(np.random.default_rng(9), 2, 3)
    labels, expected_f = decision.from_joint(*joint, average=average, beta=2.0)
    matrices, weights = batch_joint(joint)
    scores = [
        f_measure(Y.reshape(2, 3), labels, 2.0, average=average if average == "micro" else None)
        for Y in matrices
    ]
    np.testing.assert_allclose(expected_f, weights[0] @ scores, rtol=1e-12)


# Larger batches ----------------------------------------------------------------------------------

PROBA = RNG.random((300, 37)) ** 3
LOGITS = logit(PROBA)
PARTS = [cardinality.of_marginals(PROBA[:, :5]), PROBA[:, 5:6, None]]
FACTORS = [[5, 0, 1, 2, 4], [3]]
DRAWS = (RNG.random((300, 15, 6)) < PROBA[:, None, :6]).astype(np.uint8)
SETS = RNG.permutation(np.unique(DRAWS.reshape(-1, 6), axis=0))[:25]
WEIGHTS = RNG.dirichlet(np.full(25, 0.3), size=300)
SINGLES = sparse.csr_array(PROBA[:, 6:] * (PROBA[:, 6:] > 0.1))
CALLS = {
    "marginals": lambda rows, **kw: decision.from_marginals(PROBA[rows], **kw),
    "logits": lambda rows, **kw: decision.from_marginals(LOGITS[rows], logits=True, **kw),
    "sparse marginals": lambda rows, **kw: decision.from_marginals(SINGLES[rows], **kw),
    "cardinalities": lambda rows, **kw: decision.from_cardinalities(PARTS[0][rows], **kw),
    "factors": lambda rows, **kw: decision.from_factors([P[rows] for P in PARTS], FACTORS, **kw),
    "sparse factors": lambda rows, **kw: decision.from_factors(
        [PARTS[0][rows], SINGLES[rows]], [range(5), range(5, 36)], **kw
    ),
    "samples": lambda rows, **kw: decision.from_samples(DRAWS[rows], **kw),
    "joint": lambda rows, **kw: decision.from_joint(SETS, WEIGHTS[rows], **kw),
}
every_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


@every_average
@every_call
@pytest.mark.parametrize("n_jobs", [2, 3, 40])
def test_threads_change_no_bit(call, average, n_jobs):
    one, other = (call(slice(None), average=average, n_jobs=jobs) for jobs in (1, n_jobs))
    np.testing.assert_array_equal(dense(one.labels), dense(other.labels))
    np.testing.assert_array_equal(one.expected_f, other.expected_f)


@every_average
@every_call
def test_order_of_rows_does_not_matter(call, average):
    order = np.random.default_rng(0).permutation(300)
    ordered, permuted = call(slice(None), average=average), call(order, average=average)
    np.testing.assert_allclose(ordered.expected_f, permuted.expected_f, rtol=1e-12)
    np.testing.assert_array_equal(dense(ordered.labels)[order], dense(permuted.labels))


@every_average
@every_call
@pytest.mark.filterwarnings("ignore:labels without:UserWarning")
def test_no_rows(call, average):
    """Nothing is to decide: 0/0."""
    labels, expected_f = call(slice(0, 0), average=average, zero_division=0.25)
    assert labels.shape[0] == 0
    np.testing.assert_array_equal(expected_f, 0.25)
    assert np.shape(expected_f) == (() if average == "micro" else (labels.shape[1],))


def test_layouts_and_dtypes_of_columns():
    expected = decision.from_marginals(PROBA.T.copy())
    wide = np.zeros((600, 74))
    wide[::2, ::2] = PROBA
    records = np.zeros((300, 37), dtype=[("flag", "i1"), ("p", "f8")])
    records["p"] = PROBA
    locked = PROBA.copy()
    locked.flags.writeable = False
    forms = [PROBA, np.asfortranarray(PROBA), wide[::2, ::2], records["p"], locked]
    for form in [*forms, PROBA[::-1][::-1], PROBA.astype(">f8"), PROBA.astype(np.longdouble)]:
        decided = decision.from_marginals(form, average="macro")
        np.testing.assert_array_equal(decided.labels, expected.labels.T)
        np.testing.assert_array_equal(decided.expected_f, expected.expected_f)
    for dtype in (np.float32, np.float16):
        single = PROBA.astype(dtype)
        decided = decision.from_marginals(single, average="macro")
        exact = decision.from_marginals(single.astype(np.float64), average="macro")
        np.testing.assert_array_equal(decided.labels, exact.labels)


def test_rounding_errors_are_clipped():
    off = PROBA.copy()
    off[3, 4], off[5, 36] = 1.0 + 1e-12, -1e-12
    for average in AVERAGES:
        assert_same_decision(
            decision.from_marginals(off, average=average),
            decision.from_marginals(np.clip(off, 0.0, 1.0), average=average),
        )


def test_sparse_labels_keep_type_and_order():
    for kind in (sparse.csr_array, sparse.csr_matrix):
        shuffled = kind(SINGLES)
        shuffled.indices, shuffled.data = shuffled.indices.copy(), shuffled.data.copy()
        for row in range(300):  # the entries of a row in falling order
            at = slice(*shuffled.indptr[row : row + 2])
            shuffled.indices[at] = shuffled.indices[at][::-1]
            shuffled.data[at] = shuffled.data[at][::-1]
        for average in AVERAGES:
            labels, expected_f = decision.from_marginals(shuffled, average=average)
            assert type(labels) is kind
            assert labels.dtype == np.int8
            assert labels.has_canonical_format
            dense_decision = decision.from_marginals(SINGLES.toarray(), average=average)
            np.testing.assert_array_equal(labels.toarray(), dense_decision.labels)
            np.testing.assert_allclose(expected_f, dense_decision.expected_f, rtol=1e-12)


# Data frames, series, lists, logits --------------------------------------------------------------


@pytest.mark.parametrize("average", ["samples", *AVERAGES])
def test_data_frames(average):
    expected = decision.from_marginals(PROBA[:, :3], average=average)
    columns, index = ["a", "b", "c"], [f"row {r}" for r in range(300)]
    labels, expected_f = decision.from_marginals(
        pd.DataFrame(PROBA[:, :3], index, columns), average=average
    )
    pd.testing.assert_frame_equal(labels, pd.DataFrame(expected.labels, index, columns))
    if average == "micro":
        assert expected_f == expected.expected_f
    else:
        of = index if average == "samples" else columns
        series = pd.Series(expected.expected_f, of, name="expected_f")
        pd.testing.assert_series_equal(expected_f, series)
    labels, expected_f = decision.from_marginals(
        pl.DataFrame(PROBA[:, :3], schema=columns), average=average
    )
    assert labels.equals(pl.DataFrame(expected.labels, schema=columns))
    if average == "micro":
        assert expected_f == expected.expected_f
    else:
        assert expected_f.equals(pl.Series("expected_f", expected.expected_f))


def test_series_and_lists_of_numbers():
    p = PROBA[:, 0]
    expected = decision.from_marginals(p)
    series = pd.Series(p, index=np.arange(300) * 2, name="spam")
    labels, expected_f = decision.from_marginals(series)
    pd.testing.assert_series_equal(
        labels, pd.Series(expected.labels, index=series.index, name="spam")
    )
    assert expected_f == expected.expected_f
    labels, expected_f = decision.from_marginals(pl.Series("spam", p))
    assert labels.equals(pl.Series("spam", expected.labels))
    np.testing.assert_array_equal(decision.from_marginals(p.tolist()).labels, expected.labels)
    np.testing.assert_array_equal(
        decision.from_marginals(LOGITS[:, 0], logits=True).labels, expected.labels
    )


@pytest.mark.parametrize("average", ["samples", *AVERAGES])
def test_class_probabilities_of_each_label(average):
    listed = [np.column_stack([1.0 - p, p]) for p in PROBA.T]
    assert_same_decision(
        decision.from_marginals(listed, average=average),
        decision.from_marginals(PROBA, average=average),
    )


@pytest.mark.parametrize("average", ["samples", *AVERAGES])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_logits(average, dtype):
    logits = LOGITS.astype(dtype)
    before = logits.copy()
    decided = decision.from_marginals(logits, logits=True, average=average)
    expected = decision.from_marginals(expit(logits, dtype=np.float64), average=average)
    np.testing.assert_array_equal(decided.labels, expected.labels)
    np.testing.assert_array_equal(decided.expected_f, expected.expected_f)
    np.testing.assert_array_equal(logits, before)
    certain = decision.from_marginals([[np.inf, -np.inf, 800.0]], logits=True, average=average)
    np.testing.assert_array_equal(certain.labels, [[1, 0, 1]])


# Other libraries ---------------------------------------------------------------------------------


@pytest.mark.parametrize("average", ["macro", "weighted", "micro"])
def test_dask_arrays_must_be_in_memory(average):
    da = pytest.importorskip("dask.array")
    message = f"proba is a Dask array: average={average!r} decides all rows together, so it must"
    with pytest.raises(TypeError, match=re.escape(message)):
        decision.from_marginals(da.from_array(PROBA), average=average)
    with pytest.raises(TypeError, match="1-D probabilities decides all rows together"):
        decision.from_marginals(da.from_array(PROBA[:, 0]), average=average)


# Errors and warnings -----------------------------------------------------------------------------


MACRO, MICRO, LOGIT = {"average": "macro"}, {"average": "micro"}, {"logits": True}
PAIR, TOO_MUCH = np.full((4, 2), 0.5), [[[0.5], [0.2]], [[0.9], [0.9]]]
WIDE = np.pad(TOO_MUCH, ((0, 0), (0, 0), (0, 1)))
UNIT, HINT = (
    "probabilities must lie in [0, 1]",
    "; these look like logits: apply a sigmoid, or pass",
)
MARGINALS = [
    (PROBA, {"average": "binary"}, "average is 'binary': it must be one of 'samples', 'macro',"),
    ([[0.5, 0.5], [0.5, 1.5]], MACRO, f"proba[1, 1] is 1.5: {UNIT}"),
    (np.r_[PROBA[:20, 0], 1.5], {}, f"proba[20] is 1.5: {UNIT}"),
    (np.c_[PROBA, np.full(300, -3.0)], MACRO, f"proba[0, 37] is -3.0: {UNIT}{HINT}"),
    (sparse.csr_array([[0.5, 0], [0, 2]]), MICRO, f"proba[1, 1] is 2.0: {UNIT}"),
    ([[0.0, 1.0], [np.nan, 2.0]], LOGIT, "proba[1, 0] is nan: logits must be numbers"),
    (SINGLES, LOGIT, "proba is a sparse matrix and logits is True: entries that are not stored"),
    (
        np.zeros((3, 100, 2)),
        {},
        "(label, row, class), as in np.array(predict_proba(X)), pass prob",
    ),
    ([PAIR, np.ones((4, 1))], {}, "proba[1] has shape (4, 1): label 1 had one class in training"),
    ([PAIR, PAIR[:3]], {}, "proba[1] has shape (3, 2): in a list with the class probabilities of"),
    ([0.8 * PAIR], {}, "proba[0][0] sums to 0.8: the probabilities of a row must sum to 1"),
]
OTHERS = [
    (decision.from_cardinalities, (WIDE,), MICRO, "P[1] implies d_0 = -0.8"),
    (decision.from_cardinalities, (WIDE,), MACRO, "P[1] implies d_0 = -0.8"),
    (
        decision.from_factors,
        ([[[[0.5]], [[0.5]]], TOO_MUCH], [[2], [0, 1]]),
        MICRO,
        "Ps[1][1] implies d_0 = -0.8",
    ),
    (
        decision.from_factors,
        ([SINGLES[:2], TOO_MUCH], [range(31), [31, 32]]),
        MICRO,
        "Ps[1][1] implies d_0 = -0.8",
    ),
    (decision.from_samples, ([[[0, 1]], [[2, 0]]],), MICRO, "samples[1, 0, 0] is 2: labels must"),
    (decision.from_joint, ([[0, 1]], [[1.0], [0.5]]), MICRO, "proba[1] sums to 0.5"),
]


@pytest.mark.parametrize(
    ("function", "arguments", "kwargs", "message"),
    [*((decision.from_marginals, (proba,), *rest) for proba, *rest in MARGINALS), *OTHERS],
)
def test_messages(function, arguments, kwargs, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        function(*arguments, **kwargs)


@pytest.mark.parametrize("average", ["samples", "macro", "micro"])
def test_small_logits_of_single_precision_keep_their_probability(average):
    values = np.array([[-120.0, -110.0], [-300.0, -120.0], [-110.0, -310.0]])
    options = {"logits": True, "nonempty": True, "average": average}
    expected = decision.from_marginals(values, **options)
    assert expected.labels.any()
    single = values.astype(np.float32)
    decided = decision.from_marginals(single, **options)
    np.testing.assert_array_equal(decided.labels, expected.labels)
    np.testing.assert_allclose(decided.expected_f, expected.expected_f, rtol=1e-12)


def test_lists_of_class_probabilities_are_not_logits():
    listed = [np.column_stack([1.0 - p, p]) for p in PROBA.T]
    with pytest.raises(ValueError, match="logits is True and proba is a list of arrays"):
        decision.from_marginals(listed, logits=True)


def test_percentages_are_not_taken_for_logits():
    with pytest.raises(ValueError, match=re.escape("must lie in [0, 1]")) as caught:
        decision.from_marginals(PROBA * 100.0)
    assert "logits" not in str(caught.value)


def test_impossible_problems_warn():
    p = np.array([[0.0, 0.4], [0.0, 0.2]])
    with pytest.warns(UserWarning, match="labels without probability in any row.*: 1, the first"):
        labels, expected_f = decision.from_marginals(p, average="macro", nonempty=True)
    assert not labels[:, 0].any()
    np.testing.assert_array_equal(np.isnan(expected_f), [True, False])
    for call in (
        lambda: decision.from_marginals(0.0 * p, average="micro", nonempty=True),
        lambda: decision.from_samples(np.zeros((2, 2, 2)), average="micro", nonempty=True),
        lambda: decision.from_cardinalities(0.0 * p[:, :, None], average="micro", nonempty=True),
    ):
        with pytest.warns(UserWarning, match="no label has a probability in any row"):
            labels, expected_f = call()
        assert not labels.any()
        assert np.isnan(expected_f)


def long_columns(kind: str, n: int = 9001) -> np.ndarray:
    """Return (n, 7) probabilities, of which some columns have few expected rows."""
    rng = np.random.default_rng(5)
    p = rng.random((n, 7))
    if kind == "rounded":
        p = np.round(p, 2)
    elif kind == "certain":
        p = np.where(p > 0.7, 1.0, 0.3 * p)
    elif kind == "mixed":
        p[:, 2] = 0.001 * p[:, 2]
        p[:, 4] = 0.0
        p[:, 5] **= 6
    elif kind == "sorted":
        p = np.sort(p, axis=0)
    return p


@pytest.mark.parametrize("kind", ["uniform", "rounded", "certain", "mixed", "sorted"])
@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_long_columns_are_decided_as_rows(kind: str, beta: float, dtype: type) -> None:
    p = long_columns(kind).astype(dtype)
    labels, expected_f = decision.from_marginals(p, average="macro", beta=beta)
    of_rows = decision.from_marginals(np.ascontiguousarray(p.T), beta=beta)
    np.testing.assert_array_equal(labels, of_rows.labels.T)
    np.testing.assert_allclose(expected_f, of_rows.expected_f, rtol=1e-12)
    for other in (np.asfortranarray(p), np.hstack([p, p])[:, :7]):
        again = decision.from_marginals(other, average="macro", beta=beta)
        np.testing.assert_array_equal(again.labels, labels)


def test_long_columns_have_the_same_bits_for_any_number_of_threads() -> None:
    p = np.hstack([long_columns(kind) for kind in ("uniform", "mixed", "rounded", "certain")])
    one = decision.from_marginals(p, average="macro")
    for n_jobs in (2, 3):
        other = decision.from_marginals(p, average="macro", n_jobs=n_jobs)
        np.testing.assert_array_equal(one.labels, other.labels)
        np.testing.assert_array_equal(one.expected_f, other.expected_f)


@pytest.mark.parametrize("value", [1.5, -0.5, np.nan])
def test_long_columns_name_an_invalid_value(value: float) -> None:
    p = long_columns("uniform")
    p[8000, 3] = value
    with pytest.raises(ValueError, match=r"^proba\[8000, 3\] is"):
        decision.from_marginals(p, average="macro")
    p[8000, 3] = 1.0 + 1e-12  # a rounding error
    assert decision.from_marginals(p, average="macro").labels[8000, 3] == 1
