"""The G test: against plain loops, scikit-learn's expectation and its own level."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import chi2
from sklearn.metrics.cluster import expected_mutual_information

from fgfm.factors import g_test
from fgfm.factors._contingency import encode, encode_labels, make_strata
from fgfm.factors._g_test import g_test_columns, g_test_each


def tables(x, y, z):
    """Return the contingency table of each stratum, without empty rows and columns."""
    found = []
    for stratum in sorted(set(z)):
        rows = [k for k in range(len(z)) if z[k] == stratum]
        table = np.array(
            [
                [sum(x[k] == a and y[k] == b for k in rows) for b in sorted({y[k] for k in rows})]
                for a in sorted({x[k] for k in rows})
            ]
        )
        found.append(table)
    return found


def loop_g(x, y, z):
    """Compute G by its definition."""
    total = 0.0
    for table in tables(x, y, z):
        n = table.sum()
        for i, j in np.argwhere(table > 0):
            expected = table[i].sum() * table[:, j].sum() / n
            total += 2.0 * table[i, j] * math.log(table[i, j] / expected)
    return total


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


def test_power_grows_with_the_dependence():
    p_values = [g_test(*sample(400, 2, 4, strength=s)).p_value for s in (0.0, 0.2, 0.5)]
    assert p_values[0] > 0.05 > p_values[1] > p_values[2]


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


def columns_of(kind, n=90):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (n, 7)) if kind == "binary" else rng.integers(0, 4, (n, 7))
    X = X * (rng.random((n, 7)) < 0.6)
    X[:, 2] = 0  # constant, at the level that is not stored
    X[:, 4] = 3 if kind != "binary" else 1  # constant, at another level
    return X


@pytest.mark.parametrize("kind", ["binary", "levels"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize("df", ["mi", "moments"])
def test_all_columns_at_once_agree_with_one_by_one(kind, form, df):
    X = columns_of(kind)
    rng = np.random.default_rng(1)
    z = rng.integers(0, 3, len(X))
    Y = rng.integers(0, 2, (len(X), 3))
    Y[:, 0] = X[:, 0] > 0
    Y[:, 2] = 1
    problems = [make_strata(y, 2, z, 3) for y in Y.T]
    columns = encode(form(X))
    result = g_test_columns(problems, columns, df)
    for i, j in np.ndindex(3, 7):
        one = g_test(X[:, j], Y[:, i], z, df=df)
        np.testing.assert_allclose([part[i, j] for part in result], one, atol=1e-12)
    others = [(columns.codes(j), int(columns.levels[j])) for j in (0, 1, 3)]
    each = g_test_each(problems, others, df)
    for i, j in enumerate((0, 1, 3)):
        np.testing.assert_allclose([part[i] for part in each], [part[i, j] for part in result])


@pytest.mark.parametrize("df", ["mi", "moments"])
def test_other_columns_and_problems_do_not_change_a_result(df):
    """Columns with more levels, and other problems, change not a single bit."""
    rng = np.random.default_rng(0)
    n = 200
    y, z = rng.integers(0, 2, n), rng.integers(0, 12, n)
    X = np.column_stack([rng.integers(0, levels, n) for levels in (2, 3, 2, 12, 1, 5)])
    X[:, 2] |= (y == 1) & (rng.random(n) < 0.3)
    degrees = df
    problem, plain = make_strata(y, 2, z, 12), make_strata(1 - y, 2, 0 * z, 1)
    wide = g_test_columns([plain, problem], encode(X), degrees)
    others = [(X[:, j], int(X[:, j].max()) + 1) for j in range(X.shape[1])]
    each = g_test_each([problem] * len(others), others, degrees)
    for j in range(X.shape[1]):
        alone = g_test_columns([problem], encode(X[:, [j]]), degrees)
        single = g_test(X[:, j], y, z, df=df)
        for field in range(3):
            assert wide[field][1, j] == alone[field][0, 0] == each[field][j] == single[field]


@pytest.mark.parametrize("levels", [2, 3])
def test_tables_that_do_not_fit_into_memory_at_once(levels):
    """More than 2^20 cells: problems are split into batches, and columns into blocks."""
    rng = np.random.default_rng(2)
    n, d = 1200, 1200
    X = rng.integers(0, levels, (n, d))
    z = rng.integers(0, 600, n)
    problems = [make_strata(rng.integers(0, 2, n), 2, z, 600) for _ in range(2)]
    cells = [problem.counts.size * d * (levels - 1) for problem in problems]
    assert sum(cells) > 1 << 20
    assert (cells[0] > 1 << 20) == (levels == 3)
    df = "mi"
    whole = g_test_columns(problems, encode(X), df)
    some = np.array([0, 1, 599, 600, 1198, 1199])
    for p, problem in enumerate(problems):
        part = g_test_columns([problem], encode(X[:, some]), df)
        np.testing.assert_array_equal(whole.statistic[p, some], part.statistic[0])
        np.testing.assert_array_equal(whole.p_value[p, some], part.p_value[0])
    others = [(X[:, j], levels) for j in some]
    each = g_test_each([problems[0]] * len(some), others, df)
    np.testing.assert_array_equal(each.p_value, whole.p_value[0, some])


@pytest.mark.parametrize("alpha", [0.01, 0.05])
@pytest.mark.parametrize(
    ("df", "n", "n_strata"),
    [
        ("mi", 50, 1),
        ("mi", 200, 4),
        ("mi", 1000, 16),
        ("moments", 50, 1),
        ("moments", 50, 16),
        ("moments", 200, 64),
        ("moments", 1000, 64),
    ],
)
def test_level(df, n, n_strata, alpha):
    """Under independence given z, the rejection rate is alpha."""
    rng = np.random.default_rng(n_strata)
    repetitions = 4000
    z = rng.integers(0, n_strata, n)
    y = (rng.random(n) < rng.uniform(0.3, 0.7, n_strata)[z]).astype(np.int64)
    x = rng.random((n, repetitions)) < rng.uniform(0.3, 0.7, n_strata)[z, None]
    problem = make_strata(y, 2, z, n_strata)
    result = g_test_columns([problem], encode_labels(x), df)
    rejected = (result.p_value <= alpha).mean()
    assert abs(rejected - alpha) < 4.0 * math.sqrt(alpha * (1.0 - alpha) / repetitions)


def test_level_in_small_strata_needs_the_variance():
    rng = np.random.default_rng(0)
    z = rng.integers(0, 64, 200)
    y = rng.integers(0, 2, 200)
    problem, x = make_strata(y, 2, z, 64), encode_labels(rng.random((200, 4000)) < 0.5)
    rates = {
        df: (g_test_columns([problem], x, df).p_value <= 0.05).mean() for df in ("mi", "moments")
    }
    assert rates["mi"] < 0.03
    assert rates["moments"] == pytest.approx(0.05, abs=0.015)
