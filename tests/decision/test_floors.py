"""Floors on precision and recall, and missed items: against enumeration of sets and numbers."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import poisson

import oracle
from cases import MARGINALS, assert_same_decision, dense, every_option, possible_rows
from fgfm import cardinality, decision
from fgfm.decision import Constraints

SLACK = 1e-10  # sets whose precision or recall is that near a floor may be allowed or not
NUMBERS = np.array([0.3, 0.4, 0.2, 0.1])
FLOORS = [
    {"min_precision": 0.6},
    {"min_recall": 0.6},
    {"min_precision": 0.4, "min_recall": 0.5},
    {"min_precision": 0.7, "missed": NUMBERS},
    {"missed": NUMBERS},
]
every_floor = pytest.mark.parametrize("floors", FLOORS, ids=lambda floors: "-".join(floors))


def decide(p, **kwargs):
    """Decide without regard to warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return decision.from_marginals(p, **kwargs)


def check_problem(
    p,
    labels,
    expected_f,
    *,
    beta=1.0,
    zero_division=1.0,
    nonempty=False,
    min_precision=0.0,
    min_recall=0.0,
    missed=(1.0,),
):
    """Assert that one decision is the best of those that satisfy the floors."""
    F, precision, recall = oracle.expected_scores(p, beta, zero_division, nonempty, missed)
    sets = oracle.all_labelsets(len(p))
    if nonempty:
        precision[0] = recall[0] = -1.0  # the empty set is not chosen
    sizes = sets.sum(axis=1)
    if not min_precision:
        precision[0] = 1.0
    at = int(labels @ (1 << np.arange(len(p))[::-1]))
    surely = (precision >= min_precision + SLACK) & (recall >= min_recall + SLACK)
    perhaps = (precision >= min_precision - SLACK) & (recall >= min_recall - SLACK)
    assert expected_f == pytest.approx(
        0.0 if nonempty and at == 0 else F[at], rel=1e-11, abs=1e-300
    )
    if not perhaps.any():
        assert at == 0
        return
    assert perhaps[at] or not surely.any()
    if surely.any():
        assert F[at] >= F[surely].max() * (1.0 - 1e-11)
    tied = surely & (F[at] * (1.0 - 1e-13) <= F)
    if (surely == perhaps).all() and surely.any():
        assert sizes[at] == sizes[tied].min()


@every_floor
@every_option
@pytest.mark.parametrize("beta", [0.5, 2.0])
@pytest.mark.parametrize("name", [name for name, p in MARGINALS.items() if p.shape[1] <= 7])
def test_decision_is_the_best_with_the_floors(name, beta, zero_division, nonempty, floors):
    p = possible_rows(MARGINALS[name], nonempty)
    options = {"beta": beta, "zero_division": zero_division, "nonempty": nonempty, **floors}
    labels, expected_f = decide(p, **options)
    for row, chosen, value in zip(p, labels, expected_f, strict=True):
        check_problem(row, chosen, value, **options)
    rows = decide(sparse.csr_array(p), **options)
    np.testing.assert_array_equal(dense(rows.labels), labels)
    np.testing.assert_array_equal(rows.expected_f, expected_f)


@settings(deadline=None, max_examples=150, derandomize=True)
@given(
    p=st.lists(
        st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, 1.0, 0.5])), min_size=1, max_size=6
    ),
    beta=st.floats(0.1, 10.0),
    zero_division=st.sampled_from([0.0, 0.4, 1.0]),
    nonempty=st.booleans(),
    precision=st.floats(0.0, 1.0),
    recall=st.floats(0.0, 1.0),
    missed=st.lists(st.floats(0.01, 1.0), min_size=1, max_size=5),
)
def test_any_decision_is_the_best(p, beta, zero_division, nonempty, precision, recall, missed):
    p, missed = np.array(p), np.array(missed) / np.sum(missed)
    options = {
        "beta": beta,
        "zero_division": zero_division,
        "nonempty": nonempty and bool(p.any()),
        "min_precision": precision,
        "min_recall": recall,
        "missed": missed,
    }
    labels, expected_f = decide(p[None], **options)
    check_problem(p, labels[0], expected_f[0], **options)


@every_floor
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_averages(kind, floors):
    """Rows, columns, all entries, and a binary classifier."""
    p = np.random.default_rng(3).random((3, 2)) ** 2
    missed = floors.get("missed")
    rows = decide(kind(p), **floors)
    for row in range(3):
        check_problem(p[row], dense(rows.labels)[row], rows.expected_f[row], **floors)
    labels, expected_f = decide(p[:, 0], **floors)
    check_problem(p[:, 0], labels, expected_f, **floors)
    total = floors
    if missed is not None:
        total = {**floors, "missed": np.convolve(np.convolve(missed, missed), missed)}
    batch = decide(kind(p), average="micro", **floors)
    check_problem(p.ravel(), dense(batch.labels).ravel(), batch.expected_f, **total)
    if missed is None:
        columns = decide(kind(p), average="macro", **floors)
        for column in range(2):
            chosen = dense(columns.labels)[:, column]
            check_problem(p[:, column], chosen, columns.expected_f[column], **floors)


def test_forms_of_missed():
    rng = np.random.default_rng(0)
    p = rng.random((6, 5)) ** 2
    each = rng.dirichlet(np.ones(4), size=6)
    own = decision.from_marginals(p, missed=each)
    for row in range(6):
        check_problem(p[row], own.labels[row], own.expected_f[row], missed=each[row])
        alone = decision.from_marginals(p[[row]], missed=each[row])
        np.testing.assert_array_equal(alone.expected_f[0], own.expected_f[row])
    numbers = poisson.pmf(np.arange(60), 2.5)
    rate = decision.from_marginals(p, missed=2.5)
    shared = decision.from_marginals(p, missed=numbers / numbers.sum())
    assert_same_decision(rate, shared)
    assert_same_decision(rate, decision.from_marginals(p, missed=np.tile(numbers, (6, 1))))
    micro = decision.from_marginals(p, missed=each, average="micro")
    total = np.ones(1)
    for row in each:
        total = np.convolve(total, row)
    flat = decision.from_marginals(p.ravel(), missed=total)
    np.testing.assert_array_equal(micro.labels.ravel(), flat.labels)
    np.testing.assert_allclose(micro.expected_f, flat.expected_f, rtol=1e-11)
    for none in (0, 0.0, [1.0], [1.0, 0.0]):
        assert_same_decision(decision.from_marginals(p, missed=none), decision.from_marginals(p))


def test_missed_items_are_labels_that_are_never_chosen():
    rng = np.random.default_rng(1)
    p, others = rng.random((20, 30)) ** 3, rng.random((20, 6)) * 0.3
    joined = np.hstack([p, others])
    numbers = np.array([_convolved(row) for row in others])
    decided = decision.from_marginals(p, missed=numbers)
    forbidden = Constraints(forbidden=range(30, 36))
    expected = decision.from_marginals(joined, constraints=forbidden)
    np.testing.assert_array_equal(decided.labels, expected.labels[:, :30])
    np.testing.assert_allclose(decided.expected_f, expected.expected_f, rtol=1e-11)


def _convolved(p):
    d = np.ones(1)
    for x in p:
        d = np.convolve(d, [1.0 - x, x])
    return d


@pytest.mark.parametrize("power", [0.5, 3, 20])
def test_long_rows(power):
    """Prefixes of the sorted labels: F by integration, precision and recall by definition."""
    m = 300
    p = np.random.default_rng(m).random(m) ** power
    order = np.argsort(-p)
    values, k = oracle.independent_values(p), np.arange(1, m + 1)
    precision = np.cumsum(p[order]) / k
    P = cardinality.of_marginals(p[None])[0]
    recall = np.cumsum((P / k).sum(axis=1)[order])  # sum_s p_is / s is E[y_i / s]
    for least in (0.3, 0.5, 0.8):
        for name, scores in (("min_precision", precision), ("min_recall", recall)):
            options = {"zero_division": 0.0, name: least}
            labels, expected_f = decision.from_marginals(p[None], **options)
            best = int(np.argmax(np.where(scores >= least, values, 0.0)))
            assert labels.sum() == best + 1
            assert labels[0, order[: best + 1]].all()
            assert expected_f[0] == pytest.approx(values[best], rel=1e-11)


def test_floors_that_hold_anyway_change_nothing():
    p = np.random.default_rng(2).random((200, 25)) ** 2
    free = decision.from_marginals(p)
    assert_same_decision(decision.from_marginals(p, min_precision=0.0, min_recall=0.0), free)
    p = np.random.default_rng(2).random((9000, 5))
    free = decision.from_marginals(p, average="macro")
    floors = {"min_precision": 0.1, "min_recall": 0.1, "average": "macro"}
    assert_same_decision(decision.from_marginals(p, **floors), free)


def test_frames_and_logits():
    pd = pytest.importorskip("pandas")
    p = np.random.default_rng(8).random((5, 3))
    now = decide(p, min_precision=0.6, missed=np.tile(NUMBERS, (5, 1)))
    frame = pd.DataFrame(p, columns=list("abc"))
    named = decide(frame, min_precision=0.6, missed=[NUMBERS.tolist()] * 5)
    assert list(named.labels.columns) == list("abc")
    np.testing.assert_array_equal(named.labels, now.labels)
    logits = np.log(p) - np.log1p(-p)
    assert_same_decision(decide(logits, logits=True, min_precision=0.6, missed=NUMBERS), now, 1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: decision.from_marginals([0.7, 0.2, 0.1], min_precision=0.9),
            "no label is decided for, since no set satisfies min_precision=0.9: the largest "
            "expected precision is 0.7",
        ),
        (
            lambda: decision.from_marginals(
                [[0.95, 0.1], [0.7, 0.2], [0.6, 0.1]], min_precision=0.9
            ),
            "2 rows get the empty set, since no other one satisfies min_precision=0.9: the first "
            "is row 1, where the largest expected precision is 0.7",
        ),
        (
            lambda: decision.from_marginals(
                [[0.9, 0.6], [0.9, 0.5]], average="macro", min_precision=0.8, min_recall=0.3
            ),
            "1 labels get the empty set, since no other one satisfies min_precision=0.8 and "
            "min_recall=0.3: the first is label 1, where the largest expected precision is 0.6 at "
            "that recall",
        ),
        (
            lambda: decision.from_marginals(
                [[0.5, 0.5]], average="micro", min_recall=0.9, zero_division=0.0
            ),
            "no label is decided for, since no set satisfies min_recall=0.9: the largest expected "
            "recall is 0.75",
        ),
        (
            lambda: decision.from_marginals(
                sparse.csr_array([[0.5, 0.0]]), missed=3.0, min_recall=0.9
            ),
            "1 rows get the empty set, since no other one satisfies min_recall=0.9: the first is "
            "row 0, where the largest expected recall is 0.1",
        ),
    ],
)
def test_floors_out_of_reach_warn(call, message):
    with pytest.warns(UserWarning, match=re.escape(message)) as caught:
        labels, _ = call()
    assert caught[0].filename == __file__
    assert len(caught) == 1
    assert not dense(labels)[..., 1:].any()


def test_the_best_empty_set_is_no_reason_to_warn():
    labels, expected_f = decision.from_marginals([[0.1, 0.05]], min_precision=0.9)
    assert not labels.any()
    assert expected_f[0] == pytest.approx(0.9 * 0.95)
    with pytest.warns(UserWarning, match="the largest expected precision is 0.1"):
        decision.from_marginals([[0.1, 0.05]], min_precision=0.9, zero_division=0.0)


HALF = np.full((3, 4), 0.5)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"min_precision": 1.5},
            ValueError,
            "min_precision is 1.5: it must be a number in [0, 1]",
        ),
        ({"min_recall": "a"}, TypeError, "min_recall is 'a': it must be a number in [0, 1]"),
        ({"missed": -1.0}, ValueError, "missed is -1.0: it must be a Poisson rate"),
        ({"missed": np.nan}, ValueError, "missed is nan: it must be a Poisson rate"),
        ({"missed": True}, TypeError, "missed is True: it must be a Poisson rate"),
        ({"missed": [0.5, 0.4]}, ValueError, "missed[0] sums to 0.9: the probabilities of a row"),
        ({"missed": [[1.0]] * 2}, ValueError, "missed has 2 rows and proba has 3"),
        ({"missed": np.ones((3, 1, 1))}, ValueError, "missed has shape (3, 1, 1)"),
        (
            {"missed": 1.0, "average": "macro"},
            ValueError,
            "missed cannot be combined with average='macro'",
        ),
        (
            {"min_recall": 0.5, "measure": "jaccard"},
            ValueError,
            "min_precision, min_recall and missed cannot be combined with measure='jaccard'",
        ),
        (
            {"min_precision": 0.5, "max_labels": 2},
            ValueError,
            "min_precision, min_recall and missed cannot be combined with min_labels, max_labels",
        ),
    ],
)
def test_messages(options, error, message):
    with pytest.raises(error, match=re.escape(message)):
        decision.from_marginals(HALF, **options)


def test_other_messages():
    with pytest.raises(ValueError, match=re.escape("proba[1, 2] is 1.5")):
        decision.from_marginals(np.where(np.arange(12).reshape(3, 4) == 6, 1.5, 0.5), missed=1.0)
    with pytest.raises(ValueError, match="proba is 1-D, one problem"):
        decision.from_marginals([0.5, 0.2], missed=[[0.5, 0.5]] * 2)
