"""The G test: against plain loops, scikit-learn's expectation and its own level."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2, hypergeom
from sklearn.metrics.cluster import expected_mutual_information

from fgfm.factors import g_test


def tables(x, y, z):
    """Return the contingency table of each stratum, without empty rows and columns."""
    result = []
    for stratum in sorted(set(z)):
        rows = [k for k in range(len(z)) if z[k] == stratum]
        table = np.array(
            [
                [sum(x[k] == a and y[k] == b for k in rows) for b in sorted({y[k] for k in rows})]
                for a in sorted({x[k] for k in rows})
            ]
        )
        result.append(table)
    return result


def table_g(table):
    """Compute G of a table of counts by its definition."""
    total, n = 0.0, np.sum(table)
    for i, j in np.argwhere(np.asarray(table) > 0):
        expected = np.sum(table[i]) * np.sum(table, axis=0)[j] / n
        total += 2.0 * table[i][j] * math.log(table[i][j] / expected)
    return total


def loop_g(x, y, z):
    """Sum G over the strata."""
    return sum(table_g(table) for table in tables(x, y, z))


def loop_df(x, y, z):
    """Compute E[G] by scikit-learn's expected mutual information."""
    return sum(
        2.0 * t.sum() * expected_mutual_information(t, int(t.sum()))
        for t in tables(x, y, z)
        if min(t.shape) > 1
    )


def sample(n, levels, n_strata, seed=0, strength=0.3):
    rng = np.random.default_rng(seed)
    z = rng.integers(0, n_strata, n)
    x = (rng.integers(0, levels, n) * (1 + z)) % levels
    copied = rng.random(n) < strength
    y = np.where(copied, x, rng.integers(0, levels, n))
    return x, y, z


@pytest.mark.parametrize("n", [1, 2, 7, 60, 300])
@pytest.mark.parametrize("levels", [2, 3, 5])
@pytest.mark.parametrize("n_strata", [1, 4, 30])
def test_statistic_and_exact_df_are_those_of_plain_loops(n, levels, n_strata):
    x, y, z = sample(n, levels, n_strata)
    result = g_test(x, y, z)
    assert result.statistic == pytest.approx(loop_g(x, y, z), abs=1e-9)
    assert result.df == pytest.approx(loop_df(x, y, z), abs=1e-9)
    if result.df > 1.0:
        assert result.p_value == pytest.approx(chi2.sf(result.statistic, result.df), rel=1e-9)


@given(st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=1, max_size=25))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_any_small_sample(rows):
    x, y, z = (np.array(part) for part in zip(*rows, strict=True))
    result = g_test(x, y, z)
    assert result.statistic == pytest.approx(loop_g(x, y, z), abs=1e-8)
    assert result.df == pytest.approx(loop_df(x, y, z), abs=1e-8)
    assert 0.0 <= result.p_value <= 1.0


def test_moments_differ_from_mi_by_the_variance():
    x, y, z = sample(400, 2, 6)
    mi, moments = g_test(x, y, z), g_test(x, y, z, df="moments")
    assert moments.statistic == mi.statistic
    assert moments.p_value != mi.p_value
    three = sample(400, 3, 2)
    assert g_test(*three, df="moments").p_value == pytest.approx(g_test(*three).p_value)


@pytest.mark.parametrize("df", ["mi", "moments"])
@pytest.mark.parametrize(
    ("x", "y", "z"),
    [
        ([0, 0, 0, 0], [0, 1, 0, 1], None),
        ([0, 1, 0, 1], [1, 1, 1, 1], None),
        ([0, 1, 0, 1], [0, 1, 0, 1], [0, 1, 2, 3]),
        ([1], [0], None),
    ],
)
def test_uninformative_strata(x, y, z, df):
    assert g_test(x, y, z, df=df) == (0.0, 0.0, 1.0)


def test_margins_with_a_single_possible_g():
    """Two rows with margins 1, 1 always look perfectly dependent: this is not evidence."""
    x, y, z = [0, 1] * 50, [0, 1] * 50, np.repeat(np.arange(50), 2)
    assert g_test(x, y, z).p_value > 0.3
    assert g_test(x, y, z, df="moments").p_value == 1.0


def test_rare_values_without_a_common_row_are_not_evidence():
    """A chi-square variable with such a small mean would reject: p = 0.008."""
    x, y = np.zeros(10_000, dtype=int), np.zeros(10_000, dtype=int)
    x[0] = y[1] = 1
    result = g_test(x, y)
    assert chi2.sf(result.statistic, result.df) < 0.01
    assert result.p_value > 0.3


@pytest.mark.parametrize("df", ["mi", "moments"])
def test_invariances(df):
    x, y, z = sample(150, 3, 4)
    result = np.array(g_test(x, y, z, df=df))
    order = np.random.default_rng(0).permutation(len(x))
    renamed = (
        np.array(["c", "a", "b"])[x],
        np.array([7.5, -1.0, 3.0])[y],
        np.array([3, 2, 0, 1])[z],
    )
    split = np.column_stack([z // 2, z % 2, np.ones_like(z)])
    for other in (
        g_test(x[order], y[order], z[order], df=df),
        g_test(*renamed, df=df),
        g_test(y, x, z, df=df),
        g_test(x, y, split, df=df),
    ):
        np.testing.assert_allclose(other, result, rtol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([0, 1], [0, 1, 1]), {}, r"^y has 3 rows and x has 2: they must have the same number"),
        (([0, 1], [0, 1], [1]), {}, r"^given has 1 rows and x has 2"),
        (([[0, 1]], [0, 1]), {}, r"^x has shape \(1, 2\): it must have 1 dimension"),
        (([0, 1], [0, 1], np.zeros((2, 1, 1))), {}, r"^given has shape \(2, 1, 1\): it must have"),
        (([0, 1], [0, 1]), {"df": "chi"}, r"^df is 'chi': it must be one of 'mi', 'moments'$"),
        (([0, 1], [0, 1]), {"df": 1}, r"^df is 1: it must be one of"),
    ],
)
def test_invalid_arguments_raise(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        g_test(*arguments, **options)


def with_margins(n, r, c):
    """Return two 0/1 variables of n rows, of which r and c are 1."""
    return (np.arange(n) < r).astype(int), (np.arange(n) >= n - c).astype(int)


@pytest.mark.parametrize("n", [2, 9, 24])
def test_both_moments_of_all_small_tables(n):
    for r, c in itertools.product(range(1, n), repeat=2):
        a = np.arange(max(0, r + c - n), min(r, c) + 1)
        mass = hypergeom.pmf(a, n, r, c)
        G = np.array([table_g([[v, r - v], [c - v, n - r - c + v]]) for v in a])
        mean, variance = mass @ G, mass @ (G - mass @ G) ** 2
        assert g_test(*with_margins(n, r, c)).df == pytest.approx(mean, abs=1e-10)
        result = g_test(*with_margins(n, r, c), df="moments")
        if variance > 1e-9 * mean**2:
            assert result.df == pytest.approx(2.0 * mean**2 / variance, rel=1e-7)
        else:
            assert result.df == 0.0


@pytest.mark.parametrize(
    ("n", "r", "c"), [(5000, 2500, 2500), (5000, 3, 4000), (20000, 9000, 700), (100000, 50, 60)]
)
def test_mean_of_large_tables(n, r, c):
    """The sum extends over a window of the cell's range only."""
    x, y = with_margins(n, r, c)
    first = max(0, r + c - n)
    table = np.array([[first, r - first], [c - first, n - r - c + first]])
    expected = 2 * n * expected_mutual_information(table, n)
    assert g_test(x, y).df == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize(
    ("df", "n", "n_strata"),
    [
        ("mi", 50, 1),
        ("mi", 200, 4),
        pytest.param("mi", 1000, 16, marks=pytest.mark.slow),
        ("moments", 50, 16),
        ("moments", 200, 64),
        pytest.param("moments", 1000, 64, marks=pytest.mark.slow),
    ],
)
def test_level(df, n, n_strata):
    """Under independence given z, the rejection rate is alpha."""
    rng = np.random.default_rng(n_strata)
    z = rng.integers(0, n_strata, n)
    y = rng.random(n) < rng.uniform(0.3, 0.7, n_strata)[z]
    p = rng.uniform(0.3, 0.7, n_strata)[z]
    tests = np.array([g_test(rng.random(n) < p, y, z, df=df).p_value for _ in range(1000)])
    for alpha in (0.01, 0.05):
        error = math.sqrt(alpha * (1.0 - alpha) / len(tests))
        assert abs((tests <= alpha).mean() - alpha) < 4.0 * error


def test_level_in_small_strata_needs_the_variance():
    rng = np.random.default_rng(0)
    y, z = rng.integers(0, 2, 200), rng.integers(0, 64, 200)
    X = rng.integers(0, 2, (1000, 200))
    rates = {
        df: np.mean([g_test(x, y, z, df=df).p_value <= 0.05 for x in X])
        for df in ("mi", "moments")
    }
    assert rates["mi"] < 0.03
    assert rates["moments"] == pytest.approx(0.05, abs=0.025)
