"""Intervals of F-measures: against leaving out row by row, the bootstrap and known truths."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse, stats

from fgfm.metrics import FDifference, f_difference, f_interval, f_measure

AVERAGES = ["samples", "macro", "weighted", "micro"]


def draw(rng, n, m, error=0.15, rate=0.3):
    y = rng.random((n, m)) < rate * np.linspace(1.5, 0.5, m)
    return y, y ^ (rng.random((n, m)) < error)


def without_each(y, h, groups, weight, **measure):
    """Return the F-measures without each group, and the number of groups, by f_measure."""
    weight = np.ones(len(y)) if weight is None else np.asarray(weight)
    groups = np.arange(len(y)) if groups is None else np.asarray(groups)
    kept = [(groups != g) & (weight > 0) for g in np.unique(groups[weight > 0])]
    return np.array(
        [f_measure(y[rows], h[rows], sample_weight=weight[rows], **measure) for rows in kept]
    )


def plain_variance(values):
    n = len(values)
    return (n - 1) / n * ((values - values.mean()) ** 2).sum()


# Against leaving out row by row ------------------------------------------------------------------


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("options", [{}, {"groups": True}, {"weight": True}, {"zero": True}])
@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
def test_width_is_that_of_the_jackknife(average, options, beta):
    rng = np.random.default_rng(1)
    n, m = 400, 5
    y, h = draw(rng, n, m)
    groups = rng.integers(0, 150, n) if "groups" in options else None
    weight = rng.integers(0, 4, n) * 0.7 if "weight" in options else None
    measure = {
        "average": average,
        "beta": beta,
        "zero_division": 0.0 if "zero" in options else 1.0,
    }
    f, low, high = f_interval(y, h, groups=groups, sample_weight=weight, **measure)
    assert f == pytest.approx(f_measure(y, h, sample_weight=weight, **measure), rel=1e-12)
    values = without_each(y, h, groups, weight, **measure)
    width = 2.0 * stats.t.ppf(0.975, len(values) - 1) * np.sqrt(plain_variance(values))
    assert high - low == pytest.approx(width, rel=0.01)


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("zero_division", [1.0, 0.25, np.nan])
def test_difference_is_that_of_the_jackknife_with_rare_and_absent_labels(average, zero_division):
    rng = np.random.default_rng(2)
    y, h = draw(rng, 60, 4)
    other = h ^ (rng.random(h.shape) < 0.1)
    y[:, 0] = h[:, 0] = other[:, 0] = False
    y[:, 1] = h[:, 1] = other[:, 1] = False
    y[7, 1] = h[9, 1] = other[7, 1] = True
    measure = {"average": average, "zero_division": zero_division}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = f_difference(y, h, other, **measure)
    one, two = (without_each(y, a, None, None, **measure) for a in (h, other))
    f = [f_measure(y, a, **measure) for a in (h, other)]
    change = one - two - (f[0] - f[1])
    change[np.abs(change) < 1e-14] = 0.0
    one_more = (change**2).sum() / np.count_nonzero(change)
    half = stats.t.ppf(0.975, 59) * np.sqrt(plain_variance(change) + one_more)
    assert found.difference == pytest.approx(f[0] - f[1], abs=1e-14)
    assert found.high - found.difference == pytest.approx(half, rel=1e-9)
    assert found.difference - found.low == pytest.approx(half, rel=1e-9)


@pytest.mark.parametrize("beta", [0.5, 1.0])
def test_flat_interval_is_that_of_jeffreys_for_the_proportion_of_hits(beta):
    rng = np.random.default_rng(3)
    y = rng.random(4000) < 0.2
    h = y ^ (rng.random(4000) < 0.05)
    hits, count = (y & h).sum(), (y | h).sum()
    ends = stats.beta.ppf([0.025, 0.975], hits + 0.5, count - hits + 0.5)
    if beta == 1.0:
        f, *found = f_interval(y, h)
        np.testing.assert_allclose(found, 2 * ends / (1 + ends), rtol=2e-3)
        assert f == f_measure(y, h)
    else:  # the proportion that F of another beta tends to, if errors are of one kind
        only = y & h
        found = f_interval(y, only, beta=beta)[1:]
        ends = stats.beta.ppf([0.025, 0.975], hits + 0.5, y.sum() - hits + 0.5)
        np.testing.assert_allclose(found, 1.25 * ends / (0.25 + ends), rtol=2e-3)


@pytest.mark.parametrize("average", AVERAGES)
def test_width_agrees_with_the_bootstrap(average):
    rng = np.random.default_rng(4)
    y, h = draw(rng, 500, 6)
    rows = rng.integers(0, 500, (1500, 500))
    values = [f_measure(y[r], h[r], average=average) for r in rows]
    found = f_interval(y, h, average=average)
    low, high = np.quantile(values, [0.025, 0.975])
    assert found.high - found.low == pytest.approx(high - low, rel=0.08)
    other = h ^ (rng.random(h.shape) < 0.05)
    others = [f_measure(y[r], other[r], average=average) for r in rows]
    pairs = np.subtract(values, others)
    low, high = np.quantile(pairs, [0.025, 0.975])
    difference = f_difference(y, h, other, average=average)
    assert difference.high - difference.low == pytest.approx(high - low, rel=0.08)


# Coverage ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("confidence", [0.95, pytest.param(0.8, marks=pytest.mark.slow)])
def test_intervals_cover(average, confidence):
    rng = np.random.default_rng(5)
    m = 4
    many = draw(rng, 100_000, m)
    second = many[1] ^ (rng.random(many[0].shape) < 0.05)
    f = f_measure(*many, average=average)
    difference = f - f_measure(many[0], second, average=average)
    draws, covered = 300, np.zeros(2)
    for start in range(0, 100 * draws, 100):
        rows = slice(start, start + 100)
        y, h, other = many[0][rows], many[1][rows], second[rows]
        one = f_interval(y, h, average=average, confidence=confidence)
        pair = f_difference(y, h, other, average=average, confidence=confidence)
        covered += one.low <= f <= one.high, pair.low <= difference <= pair.high
    slack = 3.5 * np.sqrt(confidence * (1.0 - confidence) / draws)
    assert (np.abs(covered / draws - confidence) < slack).all(), covered / draws


@pytest.mark.parametrize(("positives", "n"), [(5, 100), (10, 1000)])
@pytest.mark.parametrize("recall", [0.2, 0.6, 0.95])
def test_few_positives_are_covered(positives, n, recall):
    rng = np.random.default_rng(6)
    rate, extra = positives / n, 0.3 * positives / n
    f = 2 * rate * recall / (rate + rate * recall + (1.0 - rate) * extra)
    draws, covered = 500, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of the draws with fewer than five
        for _ in range(draws):
            y = rng.random(n) < rate
            h = rng.random(n) < np.where(y, recall, extra)
            _, low, high = f_interval(y, h)
            covered += low <= f <= high
    assert covered / draws > 0.92


def test_groups_of_rows_that_depend_on_each_other_are_covered():
    rng = np.random.default_rng(7)
    covered = np.zeros(2)
    groups = np.repeat(np.arange(40), 5)
    chance = rng.beta(2.0, 2.0, 20_000)
    truth = f_measure(*((a := np.ones(100_000, bool)), rng.random(100_000) < np.repeat(chance, 5)))
    for _ in range(200):
        hit = rng.random(200) < np.repeat(rng.beta(2.0, 2.0, 40), 5)
        for k, g in enumerate((groups, None)):
            _, low, high = f_interval(a[:200], hit, groups=g)
            covered[k] += low <= truth <= high
    assert covered[0] / 200 > 0.91
    assert covered[1] / 200 < 0.9  # rows as units would promise too much


# Invariances and forms ---------------------------------------------------------------------------


@pytest.mark.parametrize("average", [*AVERAGES, None])
def test_order_and_form_do_not_matter(average):
    rng = np.random.default_rng(8)
    y, h = draw(rng, 80, 5)
    weight, groups = rng.random(80), rng.integers(0, 30, 80)
    options = {"average": average, "sample_weight": weight, "groups": groups}
    found = f_interval(y, h, **options)
    forms = [
        (sparse.csr_array(y * 1), h),
        (y, sparse.csc_matrix(h * 1.0)),
        (sparse.coo_array(y * 1), sparse.csr_matrix(h * 1)),
        (pd.DataFrame(y), pd.DataFrame(h)),
        (pl.DataFrame(y * 1), h.tolist()),
    ]
    names = np.array(["a", "b", "c", "d", "e"])
    lists = [[names[row].tolist() for row in a] for a in (y, h)]
    forms += [tuple(lists), (pd.DataFrame(y, columns=names), pd.Series(lists[1]))]
    for form in forms:
        np.testing.assert_allclose(f_interval(*form, **options), found, rtol=1e-10)
    order = rng.permutation(80)
    options |= {"sample_weight": 3.0 * weight[order], "groups": groups[order].astype(str)}
    np.testing.assert_allclose(f_interval(y[order], h[order], **options), found, rtol=1e-10)
    if average is not None:
        found = f_interval(y, h, average=average)
        columns = rng.permutation(5)
        other = f_interval(y[:, columns], h[:, columns], average=average)
        np.testing.assert_allclose(other, found, rtol=1e-10)


@pytest.mark.parametrize("average", AVERAGES)
def test_copies_of_rows_in_a_group_add_nothing(average):
    rng = np.random.default_rng(9)
    y, h = draw(rng, 70, 4)
    found = f_interval(y, h, average=average)
    twice = np.repeat(y, 2, axis=0), np.repeat(h, 2, axis=0)
    groups = np.repeat(np.arange(70), 2)
    np.testing.assert_allclose(f_interval(*twice, average=average, groups=groups), found)
    weight = np.r_[np.ones(70), 0.0]
    more = np.vstack([y, y[:1]]), np.vstack([h, ~h[:1]])
    np.testing.assert_allclose(f_interval(*more, average=average, sample_weight=weight), found)
    assert np.diff(f_interval(*twice, average=average)[1:]) < np.diff(found[1:])


def test_labels_one_by_one_are_binary_problems():
    rng = np.random.default_rng(10)
    y, h = draw(rng, 60, 4)
    found = f_interval(y, h, average=None)
    pairs = f_difference(y, h, ~h, average=None)
    for j in range(4):
        one = f_interval(y[:, j], h[:, j])
        assert [a[j] for a in found] == pytest.approx(one)
        for average in ("binary", "macro", "micro", "weighted"):
            assert f_interval(y[:, j], h[:, j], average=average) == pytest.approx(one)
        pair = f_difference(y[:, j], h[:, j], ~h[:, j])
        assert [a[j] for a in pairs] == pytest.approx(pair)
        assert pairs.verdict[j] == pair.verdict
    assert f_interval(y[:, :1], h[:, :1], average="macro") == pytest.approx(
        f_interval(y[:, 0], h[:, 0])
    )


def test_classes_are_labels():
    rng = np.random.default_rng(11)
    code = rng.integers(0, 3, 90)
    decided = np.where(rng.random(90) < 0.3, rng.integers(0, 3, 90), code)
    y, h = (a[:, None] == np.arange(3) for a in (code, decided))
    names = np.array(["x", "y", "z"])
    for average in ("macro", "weighted", "micro", None):
        expected = f_interval(y, h, average=average)
        for form in ((code, decided), (names[code], names[decided].tolist())):
            np.testing.assert_allclose(f_interval(*form, average=average), expected)
            assert np.all(f_measure(*form, average=average) == expected.f)
    with pytest.raises(ValueError, match=r"average is 'samples' and y has 3 classes: it must be"):
        f_interval(code, decided)
    with pytest.raises(ValueError, match="as in y == 'z'"):
        f_interval(names[code], names[decided], average="binary")


# Ends --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("average", [*AVERAGES, None])
@pytest.mark.parametrize("n", [20, 2000])
def test_all_right_and_all_wrong_are_no_points(average, n):
    y = np.tile(np.eye(4, dtype=bool), (n // 4, 1))
    found = f_interval(y, y, average=average)
    assert np.all(found.f == 1.0)
    assert np.all(found.high == 1.0)
    if average != "samples":  # Jeffreys' bound on the rows, by label where there is no average
        count = n // 4 if average is None else n
        np.testing.assert_allclose(found.low, stats.beta.ppf(0.025, count + 0.5, 0.5))
    f, low, high = f_interval(y, np.roll(y, 1, axis=1), average=average)
    assert np.all((f == 0.0) & (low == 0.0))
    assert np.all((high > 1.0 / n) & (high < 40.0 / n))


def test_nothing_is_known_without_labels():
    with pytest.warns(UserWarning, match=r"only 0.0 rows count for the F-measure: the interval"):
        assert f_interval(np.zeros(50, int), np.zeros(50, int)) == (1.0, 0.0, 1.0)
    with pytest.warns(UserWarning, match="only 1.0 rows count"):
        assert f_interval([[1, 0]], [[1, 1]]) == (pytest.approx(2 / 3), 0.0, 1.0)
    found = f_interval(np.eye(3)[:, :2], np.eye(3)[:, :2] * 0, average=None, zero_division=np.nan)
    assert found.low.tolist() == [0.0, 0.0]
    nothing = np.zeros((9, 2), int)
    empty = f_interval(nothing, nothing, average=None, zero_division=np.nan)
    assert np.isnan(np.array(empty)).all()
    with pytest.warns(UserWarning, match="only 0.0 rows"):
        assert np.isnan(f_interval(nothing, nothing, average="macro", zero_division=np.nan)).all()


def test_interval_grows_with_confidence_and_contains_f():
    rng = np.random.default_rng(12)
    for _ in range(50):
        y, h = draw(rng, 40, 3, error=rng.choice([0.01, 0.2, 0.9]))
        for average in AVERAGES:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                found = [f_interval(y, h, average=average, confidence=c) for c in (0.1, 0.6, 0.99)]
            for f, low, high in found:
                assert 0.0 <= low <= f <= high <= 1.0
            widths = [high - low for _, low, high in found]
            assert widths[0] < widths[1] < widths[2]


def test_rules_that_agree_are_level():
    rng = np.random.default_rng(13)
    y, h = draw(rng, 100, 3)
    same = f_difference(y, h, h)
    assert same.difference == 0.0
    assert 0.0 < same.high == -same.low < 0.03
    assert same.verdict == "level"
    one_row = h.copy()
    one_row[0] = ~y[0]
    assert f_difference(y, h, one_row).verdict == "level"
    right = f_difference(y, y, h)
    assert isinstance(right, FDifference)
    assert right.verdict == "better"
    wrong = f_difference(y, h, y)
    assert wrong.verdict == "worse"
    assert wrong == pytest.approx([-right.difference, -right.high, -right.low])


# Warnings and errors -----------------------------------------------------------------------------


def test_warns_of_few_rows_and_rare_labels():
    y = np.zeros(100, int)
    y[:3] = 1
    with pytest.warns(
        UserWarning, match="only 3.0 rows count for the F-measure: the interval may"
    ):
        f_interval(y, y)
    groups = np.arange(100) // 50
    with pytest.warns(UserWarning, match="only 1.0 groups count"):
        f_difference(y, y, 1 - y, groups=groups, average="binary")
    Y = np.zeros((100, 4), int)
    Y[:50, :3] = 1
    Y[:4, 3] = 1
    message = "labels that fewer than 5 rows have or get make up 25% of the average: the interval"
    with pytest.warns(UserWarning, match=message):
        f_interval(Y, Y, average="macro")
    f_interval(Y, Y, average="weighted")  # of which they are 3 %
    f_interval(Y, Y, average=None)


Y = np.eye(3, dtype=int)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((Y, Y * 2), {}, ValueError, "labels[0, 0] is 2: labels must be 0 or 1"),
        ((Y, Y[:2]), {}, ValueError, "labels has shape (2, 3) and y has (3, 3): they must have"),
        ((Y[:0], Y[:0]), {}, ValueError, "y has no rows: the mean needs at least one"),
        ((Y, Y), {"average": "binary"}, ValueError, "average is 'binary' and y is not flat"),
        ((Y, Y), {"average": "all"}, ValueError, "average is 'all': it must be one of"),
        ((Y, Y), {"beta": 0}, ValueError, "beta is 0.0: it must be a number greater than 0"),
        ((Y, Y), {"zero_division": 2}, ValueError, "zero_division is 2.0: it must be a number"),
        ((Y, Y), {"confidence": 1}, ValueError, "confidence is 1.0: it must be a number greater"),
        ((Y, Y), {"groups": [0, 1]}, ValueError, "groups has 2 rows and y has 3: they must"),
        ((Y, Y), {"groups": Y}, ValueError, "groups has shape (3, 3): it must have one group"),
        ((Y, Y), {"groups": [0, np.nan, 1]}, ValueError, "groups[1] is nan: every row must have"),
        ((Y, Y), {"groups": ["a", "b", None]}, ValueError, "groups[2] is None: every row must"),
        ((Y, Y), {"sample_weight": [1, -1, 1]}, ValueError, "sample_weight[1] is -1.0: weights"),
        (([["a"]], [[0]]), {}, ValueError, "labels has no names of labels and y lists them: all"),
        (([["a"]], pd.DataFrame({"b": [1]})), {}, ValueError, "y[0] has the label 'a': it is no"),
        ((["a", "b"], ["a"]), {"average": "macro"}, ValueError, "labels has 1 rows and y has 2"),
        (([0, 1, -1], [0, 1, 2]), {}, ValueError, "y[2] is -1: labels must be 0 or 1"),
    ],
)
def test_invalid_arguments_raise(arguments, options, error, message):
    with pytest.raises(error, match=re.escape(message)):
        f_interval(*arguments, **options)


def test_errors_of_the_other_labels_name_them():
    with pytest.raises(ValueError, match=r"others\[2, 2\] is 0\.5: labels must be 0 or 1"):
        f_difference(Y, Y, np.diag([1, 1, 0.5]))
    y, labels, others = (pd.DataFrame(Y, columns=list(names)) for names in ("abc", "abc", "bac"))
    with pytest.raises(ValueError, match="column 0 of others is 'b' and that of y is 'a'"):
        f_difference(y, labels, others)
    frame = pd.DataFrame(Y, index=[4, 5, 6])
    with pytest.raises(ValueError, match="row 0 of y has index 4 and that of groups has 0"):
        f_interval(frame, frame, groups=pd.Series([0, 1, 2]))
