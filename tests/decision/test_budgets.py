"""One class per row, and limits on rows with macro and micro: enumeration, gaps, invariances."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.stats import binom

import oracle
from fgfm.decision import Constraints, from_cardinalities, from_classes, from_marginals


def values_of_columns(proba, beta=1.0, zero_division=1.0):
    """Return a function from the marks of a decision to the expected F of its columns."""
    table = oracle.expected_f(oracle.independent_joint(proba.T), beta, zero_division, False)
    bits = 1 << np.arange(len(proba))[::-1]
    return lambda marks: table[np.arange(len(table)), bits @ np.asarray(marks, dtype=np.int64)]


def class_probabilities(rng, n, m):
    proba = rng.dirichlet(np.full(m, rng.choice([0.1, 1.0, 5.0])), size=n)
    if rng.random() < 0.3:  # ties and zeros
        proba = np.round(3.0 * proba) / 3.0
        proba[proba.sum(axis=1) == 0.0, 0] = 1.0
        proba /= proba.sum(axis=1, keepdims=True)
    return proba


@pytest.mark.parametrize("average", ["macro", "weighted"])
@pytest.mark.parametrize("seed", range(30))
def test_classes_are_those_of_enumeration(seed, average):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 7)), int(rng.integers(1, 5))
    parameters = {
        "beta": rng.choice([0.5, 1.0, 2.0]),
        "zero_division": rng.choice([0.0, 0.5, 1.0]),
    }
    proba = class_probabilities(rng, n, m)
    values = values_of_columns(proba, **parameters)
    weight = np.full(m, 1.0 / m) if average == "macro" else proba.mean(axis=0)
    best = max(
        weight @ values(np.eye(m)[list(classes)])
        for classes in itertools.product(range(m), repeat=n)
    )
    decision = from_classes(proba, average=average, **parameters)
    own = values(np.eye(m)[decision.labels])
    assert decision.labels.dtype == np.int64
    assert_allclose(decision.expected_f, own, atol=1e-12)
    check_gap(decision.gap, weight @ own, best)


@pytest.mark.parametrize("seed", range(40))
def test_micro_of_classes_that_count_is_that_of_enumeration(seed):
    rng = np.random.default_rng(seed)
    n, m = [(1, 4), (2, 4), (3, 3), (4, 3), (5, 2)][seed % 5]
    beta, empty = rng.choice([0.5, 1.0, 2.0]), rng.choice([0.0, 0.5, 1.0])
    proba = class_probabilities(rng, n, m)
    counted = rng.permutation(m)[: rng.integers(1, m)]
    classes = np.array(list(itertools.product(range(m), repeat=n)))  # of all rows, (m^n, n)
    weight = proba[np.arange(n), classes].prod(axis=1)
    counts = np.isin(classes, counted)
    size = beta**2 * counts.sum(axis=1)[:, None] + counts.sum(axis=1)  # (true, decided)
    both = ((classes[:, None] == classes) & counts).sum(axis=2)
    f = np.where(size > 0.0, (1.0 + beta**2) * both / np.maximum(size, 1e-9), empty)
    value = weight @ f
    decision = from_classes(proba, average="micro", labels=counted, beta=beta, zero_division=empty)
    own = value[(classes == decision.labels).all(axis=1)].item()
    assert decision.gap == 0.0
    assert_allclose([decision.expected_f, own], value.max(), atol=1e-12)


def test_micro_of_many_rows_is_a_threshold():
    proba = np.random.default_rng(0).dirichlet([8.0, 1.0, 1.0, 0.5], size=30_000)
    labels, f = from_classes(proba, average="micro", labels=[1, 2, 3])
    best = proba[:, 1:].max(axis=1)
    assert (best[labels == 0].max() <= f / 2.0 + 1e-4) & (best[labels > 0].min() >= f / 2.0 - 1e-4)
    hits, decided = best[labels > 0].sum(), (labels > 0).sum()
    assert_allclose(f, 2.0 * hits / (proba[:, 1:].sum() + decided), atol=1e-3)
    frame = pd.DataFrame(proba, columns=["none", "a", "b", "c"])
    series, value = from_classes(frame, average="micro", labels=["c", "a", "b"])
    assert_array_equal(series, frame.columns[labels])
    assert (type(value), value) == (float, f)


def check_gap(gap, value, best, atol=1e-12, missing=0.05):
    """Check that a value is not more than its gap from the best one, and close to it anyway."""
    assert value <= best + atol
    assert best <= value + gap + atol
    assert value >= best * (1.0 - missing)


SHAPES = [(1, 6), (2, 4), (3, 3), (4, 2), (2, 5), (5, 2), (1, 1)]


@pytest.mark.parametrize("average", ["macro", "weighted", "micro"])
@pytest.mark.parametrize("seed", range(14))
def test_limits_are_those_of_enumeration(seed, average):
    rng = np.random.default_rng(seed)
    n, m = SHAPES[seed % len(SHAPES)]
    parameters = {
        "beta": rng.choice([0.5, 1.0, 2.0]),
        "zero_division": rng.choice([0.0, 0.5, 1.0]),
    }
    proba = rng.random((n, m)) ** rng.choice([0.5, 1.0, 4.0])
    proba[rng.random((n, m)) < 0.2] = 0.0
    most = int(rng.integers(1, m + 1))
    least = int(rng.integers(0, most + 1))
    sets = [h for h in itertools.product([0, 1], repeat=m) if least <= sum(h) <= most]
    columns = values_of_columns(proba, **parameters)
    entries = values_of_columns(proba.reshape(-1, 1), **parameters)
    weight = np.full(m, 1.0 / m)
    if average == "weighted":
        weight = proba.sum(axis=0) / max(proba.sum(), 1e-300)

    def value(marks):
        if average == "micro":
            return entries(marks.reshape(-1, 1))[0]
        return weight @ columns(marks)

    best = max(value(np.array(rows)) for rows in itertools.product(sets, repeat=n))
    for given in (proba, sparse.csr_array(proba)):
        decision = from_marginals(
            given, average=average, min_labels=least, max_labels=most, **parameters
        )
        labels = decision.labels if given is proba else decision.labels.toarray()
        assert labels.dtype == np.int8
        assert (labels.sum(axis=1) >= least).all()
        assert (labels.sum(axis=1) <= most).all()
        check_gap(decision.gap, value(labels), best)
        if average == "micro":
            assert decision.gap == 0.0
            assert_allclose(decision.expected_f, best, atol=1e-12)
        else:
            assert_allclose(decision.expected_f, columns(labels), atol=1e-12)


def exact_f(p, h, beta2):
    """Compute E[F | y != 0] of one decision in rational numbers; None if y is 0."""
    p = [Fraction(float(x)) for x in p]
    present = 1 - math.prod(1 - x for x in p)
    if present == 0:
        return None
    value = Fraction(0)
    for i in np.flatnonzero(h):
        d = [Fraction(1)]
        for x in p[:i] + p[i + 1 :]:
            d = [a * (1 - x) + b * x for a, b in zip([*d, 0], [0, *d], strict=True)]
        value += p[i] * sum(x * (1 + beta2) / (beta2 * (1 + s) + sum(h)) for s, x in enumerate(d))
    return float(value / present)


TINY = [1e-8, 1e-16, 1e-20, 1e-120, 1e-310]


@pytest.mark.parametrize("average", ["macro", "weighted"])
@pytest.mark.parametrize("scales", [*((t, t, t) for t in TINY), (1.0, 1e-16, 1e-20)])
def test_nonempty_keeps_the_digits_of_small_probabilities(scales, average):
    """Given y != 0, F and the optimum are those of enumeration, however rare the labels are."""
    rng = np.random.default_rng(TINY.index(scales[1]))
    for most in (1, 2):
        # Of the smallest numbers, a sixteenth of 1e-310 still has three digits
        proba = rng.integers(1, 16, size=(3, 3)) / 16.0 * np.array(scales)
        columns = [
            {h: exact_f(p, h, Fraction(1)) for h in itertools.product([0, 1], repeat=3)}
            for p in proba.T
        ]
        weight = np.full(3, 1 / 3) if average == "macro" else proba.sum(0) / proba.sum()
        sets = [h for h in itertools.product([0, 1], repeat=3) if 1 <= sum(h) <= most]
        best = max(
            weight @ [columns[c][h] for c, h in enumerate(zip(*rows, strict=True))]
            for rows in itertools.product(sets, repeat=3)
        )
        for given in (proba, sparse.csr_array(proba)):
            decision = from_marginals(
                given, average=average, min_labels=1, max_labels=most, nonempty=True
            )
            labels = decision.labels if given is proba else decision.labels.toarray()
            own = [columns[c][tuple(map(int, labels[:, c]))] for c in range(3)]
            assert_allclose(decision.expected_f, own, rtol=1e-12)
            check_gap(decision.gap, weight @ own, best, 1e-12 * best)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("n", "low", "high"), [(9001, 0.3, 0.7), (9001, 0.01, 0.6), (300, 0.2, 0.9)]
)
def test_bounds_of_columns_are_those_of_all_sizes(n, low, high, seed):
    """Of two probabilities, the values of all sizes of a column are known."""
    from fgfm._kernels import native
    from fgfm.decision import _budgets
    from fgfm.decision._objective import Objective

    rng = np.random.default_rng(seed)
    many = rng.random(n) < 0.5
    p = np.where(many, high, low)
    rows = _budgets._Rows(
        np.stack([p, 1.0 - p], 1), Objective.checked(1.0, 1.0, False, None), (1, 1)
    )
    gains = native.GainTable(np.ones(2), np.array([0.0, 0.2 * rng.random()]))
    columns, marks, mu = rows.decide(gains)
    mu = mu * (1.0 + 0.1 * rng.normal(size=n))
    _, bounds = rows.evaluate(columns, marks, mu)
    s = np.arange(n)
    sizes = np.unique(np.geomspace(1, n, 400).astype(int))
    best = 0.0
    value = {}
    for one in (low, high):  # 1 / (1 + s + k), s without a row of this probability
        counts = {high: many.sum() - (one == high), low: n - many.sum() - (one == low)}
        d = np.convolve(*(binom.pmf(np.arange(c + 1), c, q) for q, c in counts.items()))
        value[one] = one * (2.0 / (1.0 + s + sizes[:, None])) @ d / 2.0
    for at, k in enumerate(sizes):
        terms = np.where(many, value[high][at], value[low][at]) - mu
        best = max(best, np.sort(terms)[::-1][:k].sum())
    assert best - 1e-12 <= bounds[0] < best + 1e-3


def large(seed, n=20_000, m=6, noise=1.5):
    rng = np.random.default_rng(seed)
    logits = np.log(rng.dirichlet(np.ones(m))) + noise * rng.normal(size=(n, m))
    proba = np.exp(logits - logits.max(axis=1, keepdims=True))
    return proba / proba.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("n", [20_000, 70_003])
@pytest.mark.parametrize("noise", [0.0, 0.5, 4.0])
def test_many_rows_have_a_small_gap(noise, n):
    proba = large(3, n, noise=noise)
    decision = from_classes(proba)
    assert 0.0 <= decision.gap < 1e-3
    # the exact values of the decided columns, by an independent route
    for c in (0, 5):
        rows = decision.labels == c
        order = np.concatenate([proba[rows, c], proba[~rows, c]])
        assert_allclose(decision.expected_f[c], _prefix_value(order, rows.sum()), rtol=1e-9)
    argmax = proba.argmax(axis=1)
    ratio = [
        2.0 * proba[argmax == c, c].sum() / (proba[:, c].sum() + (argmax == c).sum())
        for c in range(6)
    ]
    assert decision.expected_f.mean() > np.mean(ratio) - 1e-3


def _prefix_value(p, k):
    """Compute the expected F_1 of the first k rows by integration over panels."""
    if k == 0:
        return np.exp(np.log1p(-p).sum())
    x, w = np.polynomial.legendre.leggauss(20)
    edges = np.concatenate([[0.0], 2.0 ** np.arange(-40, 6)])
    half = np.diff(edges)[:, None] / 2.0
    t, weight = (edges[:-1, None] + half * (x + 1.0)).ravel(), (half * w).ravel()
    value = 0.0
    for at, by in zip(t, weight, strict=True):
        u = -np.expm1(-at)
        log = np.log1p(-p * u).sum() - (k + 1) * at
        value += 2.0 * by * np.exp(log) * (p[:k] / (1.0 - p[:k] * u)).sum()
    return value


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_limits_on_many_rows_have_a_small_gap(dtype):
    proba = np.random.default_rng(0).beta(0.3, 2.0, size=(10_000, 12)).astype(dtype)
    # Three labels in each row leave many that no column wants: one column takes them.
    for limits, gap in (
        ({"max_labels": 2}, 1e-3),
        ({"min_labels": 1}, 1e-3),
        ({"min_labels": 3, "max_labels": 3}, 0.03),
    ):
        dense = from_marginals(proba, average="macro", **limits)
        assert dense.gap < gap
        rows = from_marginals(sparse.csr_array(proba), average="macro", **limits)
        assert abs(rows.expected_f.mean() - dense.expected_f.mean()) < 1e-6


def test_sparse_rows_that_store_too_few_labels():
    proba = sparse.random_array((3000, 400), density=0.01, rng=np.random.default_rng(0)).tocsr()
    decision = from_marginals(proba, average="macro", min_labels=3, max_labels=3)
    assert_array_equal(decision.labels.sum(axis=1), 3)
    assert decision.labels.data.max() == 1  # no label twice
    free = from_marginals(proba, average="macro", max_labels=3)
    assert free.expected_f.mean() >= decision.expected_f.mean() - 1e-9
    assert free.gap < 0.05
    micro = from_marginals(proba, average="micro", min_labels=3, max_labels=3)
    assert_array_equal(micro.labels.sum(axis=1), 3)


@pytest.mark.parametrize("n", [3000, 66_000])
def test_threads_and_row_order_change_nothing(n):
    proba = large(1, n)
    order = np.random.default_rng(0).permutation(n)
    decision = from_classes(proba)
    threads = from_classes(proba, n_jobs=3)
    assert_array_equal(threads.labels, decision.labels)
    assert_array_equal(threads.expected_f, decision.expected_f)
    assert threads.gap == decision.gap
    permuted = from_classes(proba[order])
    assert_allclose(permuted.expected_f.mean(), decision.expected_f.mean(), atol=1e-5)
    limits = {"average": "macro", "max_labels": 2, "zero_division": 0.5}
    one, two = (from_marginals(proba[:, :5], n_jobs=jobs, **limits) for jobs in (1, 2))
    assert_array_equal(two.labels, one.labels)
    assert_array_equal(two.expected_f, one.expected_f)


def test_limits_that_do_not_bind_change_nothing():
    proba = np.random.default_rng(0).random((50, 4))
    P = proba[:, :, None] / 4.0
    for average in ("macro", "micro"):
        for decide, given in ((from_marginals, proba), (from_cardinalities, P)):
            free, limited = (decide(given, average=average, max_labels=m) for m in (None, 4))
            assert_array_equal(limited.labels, free.labels)
            assert_array_equal(limited.expected_f, free.expected_f)
            assert limited.gap == 0.0


def test_frames_get_names_of_classes():
    proba = pd.DataFrame(
        [[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.7, 0.3], [0.55, 0.45]],
        columns=["no", "yes"],
        index=list("abcde"),
    )
    labels, values = decision = from_classes(proba)
    assert 0.0 < decision.gap < 0.1
    assert labels.tolist() == ["no", "no", "yes", "no", "yes"]
    assert labels.index.tolist() == list("abcde")
    assert values.index.tolist() == ["no", "yes"]
    assert values.name == "expected_f"


def test_logits_are_those_of_softmax():
    proba = large(0, n=200)
    logits = np.log(proba) + np.arange(200)[:, None]
    assert_array_equal(from_classes(logits, logits=True).labels, from_classes(proba).labels)
    certain = from_classes([[np.inf, 0.0], [0.0, np.inf]], logits=True)
    assert certain.labels.tolist() == [0, 1]
    assert_allclose(certain.expected_f, 1.0)


def test_no_row_and_one_class():
    labels, value = from_classes(np.empty((0, 3)), average="micro", labels=[0], zero_division=0.5)
    assert (labels.shape, value) == ((0,), 0.5)
    labels, values = from_classes(np.empty((0, 3)))
    assert labels.shape == (0,)
    assert labels.dtype == np.int64
    assert_array_equal(values, 1.0)
    one = from_classes(np.ones((5, 1)))
    assert_array_equal(one.labels, 0)
    assert_allclose(one.expected_f, 1.0)
    unused = from_classes(np.array([[0.5, 0.5, 0.0]] * 20), zero_division=0.0)
    assert unused.expected_f.shape == (3,)


@pytest.mark.parametrize(
    ("proba", "message"),
    [
        ([[0.5, 0.5], [0.5, 0.4]], r"proba\[1\] sums to 0.9: the probabilities of the classes"),
        ([[0.5, 0.5], [np.nan, 0.4]], r"proba\[1, 0\] is nan: probabilities must lie in \[0, 1\]"),
        ([[1.5, -0.5]], r"proba\[0, 0\] is 1.5"),
        ([0.5, 0.5], r"proba has shape \(2,\): it must have 2 dimensions \(row, class\)"),
    ],
)
def test_errors_of_classes(proba, message):
    for parameters in ({}, {"average": "micro", "labels": [1]}):
        with pytest.raises(ValueError, match=message):
            from_classes(proba, **parameters)


@pytest.mark.parametrize(
    ("average", "labels", "message"),
    [
        ("samples", None, "average is 'samples': it must be one of 'macro', 'weighted', 'micro'"),
        ("macro", [0], "labels is given and average is 'macro'"),
        ("micro", None, "average is 'micro' and labels is None: it must list the classes"),
        ("micro", [], r"labels is \[\]: it must be a list of the classes that count"),
        ("micro", "a", "labels is 'a': it must be a list"),
        ("micro", [0, 3], r"labels\[1\] is 3: it is no class of proba: 0, 1, 2"),
        ("micro", [0, 0], r"labels\[1\] is 0: it is there already"),
        ("micro", [0, 2, 1], "labels lists all 3 classes of proba"),
    ],
)
def test_errors_of_averages_of_classes(average, labels, message):
    with pytest.raises(ValueError, match=message):
        from_classes(np.full((2, 3), 1.0 / 3.0), average=average, labels=labels)


@pytest.mark.parametrize(
    ("value", "message"), [(0.2, "sums to"), (-0.1, "is -0.1"), (np.nan, "is nan")]
)
def test_errors_in_one_of_very_many_rows(value, message):
    proba = large(0, 70_000)
    proba[60_001, 3] = value
    with pytest.raises(ValueError, match=rf"proba\[60001.* {message}"):
        from_classes(proba)


def test_errors_of_limits():
    proba = np.full((5, 3), 0.4)
    with pytest.raises(ValueError, match="min_labels is 4, but there are 3 labels"):
        from_marginals(proba, average="macro", min_labels=4)
    with pytest.raises(ValueError, match="cannot be combined with average='macro'"):
        from_marginals(proba, average="macro", constraints=Constraints(required=[0]))
    with pytest.raises(ValueError, match="need independent labels"):
        from_cardinalities(np.full((2, 2, 1), 0.3), average="micro", max_labels=1)
    macro = from_cardinalities(np.full((2, 2, 1), 0.45), average="macro", max_labels=1)
    assert macro.labels.sum(axis=1).tolist() == [1, 1]
    with pytest.raises(TypeError, match="sparse matrix"):
        from_classes(sparse.csr_array(np.eye(2)))
