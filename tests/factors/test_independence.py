"""G tests: against plain loops, scikit-learn's expectation, drawn tables and their own level."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import chi2, hypergeom
from sklearn.metrics.cluster import expected_mutual_information

from fgfm.factors import GTest, g_test
from fgfm.factors import _counts as counts_module
from fgfm.factors._counts import count_levels, encode, encode_labels, make_strata
from fgfm.factors._expected import expected_cell, moments_2x2
from fgfm.factors._g import Degrees, g_test_columns, g_test_each
from fgfm.factors._random_tables import mean_random_g


def tables(x, y, z):
    """The contingency table of each stratum, without empty rows and columns."""
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
    """G by its definition."""
    total = 0.0
    for table in tables(x, y, z):
        n = table.sum()
        for i, j in np.argwhere(table > 0):
            expected = table[i].sum() * table[:, j].sum() / n
            total += 2.0 * table[i, j] * math.log(table[i, j] / expected)
    return total


def loop_df(x, y, z):
    """E[G] by scikit-learn's expected mutual information."""
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
@settings(max_examples=60, deadline=None)
def test_any_small_sample(rows):
    x, y, z = (np.array(part) for part in zip(*rows, strict=True))
    result = g_test(x, y, z)
    assert result.statistic == pytest.approx(loop_g(x, y, z), abs=1e-8)
    assert result.df == pytest.approx(loop_df(x, y, z), abs=1e-8)
    assert 0.0 <= result.p_value <= 1.0


@pytest.mark.parametrize("n", [2, 9, 40])
def test_moments_of_all_small_tables(n):
    margins = list(itertools.product(range(n + 1), repeat=2))
    r, c = (np.array(part) for part in zip(*margins, strict=True))
    mean, variance = moments_2x2(np.full(len(r), n), r, c)
    for k, (row, column) in enumerate(margins):
        a = np.arange(max(0, row + column - n), min(row, column) + 1)
        mass = hypergeom.pmf(a, n, row, column)
        G = np.array(
            [loop_g_of_table([[v, row - v], [column - v, n - row - column + v]], n) for v in a]
        )
        assert mean[k] == pytest.approx(mass @ G, abs=1e-10)
        assert variance[k] == pytest.approx(mass @ (G - mass @ G) ** 2, abs=1e-9)


def loop_g_of_table(table, n):
    table = np.array(table)
    outer = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
    filled = table > 0
    return 2.0 * (table[filled] * np.log(table[filled] / outer[filled])).sum()


@pytest.mark.parametrize(
    ("n", "r", "c"), [(5000, 2500, 2500), (5000, 3, 4000), (20000, 9000, 700), (100000, 50, 60)]
)
def test_large_tables_lose_no_digits(n, r, c):
    """Only a window of the cell's range is summed over."""
    first = max(0, r + c - n)
    table = np.array([[first, r - first], [c - first, n - r - c + first]])
    expected = 2 * n * expected_mutual_information(table, n)
    mean, _ = moments_2x2([n], [r], [c])
    assert mean[0] == pytest.approx(expected, rel=1e-7)
    cells = expected_cell([n] * 4, [r, r, n - r, n - r], [c, n - c, c, n - c])
    assert cells.sum() == pytest.approx(mean[0], rel=1e-7)


def test_long_sums_are_cut_into_parts(monkeypatch):
    rng = np.random.default_rng(0)
    n = rng.integers(2, 200, 50)
    r, c = rng.integers(0, n), rng.integers(0, n)
    whole = moments_2x2(n, r, c)
    monkeypatch.setattr("fgfm.factors._expected._TERMS", 40)
    for a, b in zip(whole, moments_2x2(n, r, c), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("levels", [2, 4])
def test_drawn_tables_have_the_exact_mean(levels):
    x, y, z = sample(200, levels, 5)
    exact, drawn = (
        g_test(x, y, z),
        g_test(x, y, z, df="permutation", n_tables=4000, random_state=1),
    )
    assert drawn.statistic == exact.statistic
    assert drawn.df == pytest.approx(exact.df, abs=5.0 * math.sqrt(2.0 * exact.df / 4000))
    assert drawn.df != exact.df


def test_drawn_tables_keep_their_margins_and_have_the_exact_variance():
    rows, columns = np.array([[4, 6]]), np.array([[5, 5]])
    G = [mean_random_g(rows, columns, 1, np.random.default_rng(k))[0] for k in range(3000)]
    mean, variance = moments_2x2([10], [4], [5])
    assert np.mean(G) == pytest.approx(mean[0], rel=0.1)
    assert np.var(G) == pytest.approx(variance[0], rel=0.15)
    possible = {round(loop_g_of_table([[a, 4 - a], [5 - a, 1 + a]], 10), 9) for a in range(5)}
    assert {round(value, 9) for value in G} <= possible


def test_permutation_is_reproducible():
    x, y, z = sample(80, 2, 3)
    first = g_test(x, y, z, df="permutation", random_state=3)
    assert first == g_test(x, y, z, df="permutation", random_state=3)
    assert first != g_test(x, y, z, df="permutation", random_state=4)


def test_asymptotic_df_counts_the_levels_that_a_stratum_has():
    x = [0, 1, 2, 0, 1, 1, 0, 0]
    y = [0, 1, 0, 1, 0, 1, 0, 1]
    z = [0, 0, 0, 1, 1, 1, 2, 2]  # 3 x 2; 2 x 2; x is constant
    assert g_test(x, y, z, df="g").df == 3.0


def test_moments_equal_mi_but_for_the_variance():
    x, y, z = sample(400, 2, 6)
    mi, moments = g_test(x, y, z), g_test(x, y, z, df="moments")
    assert moments.statistic == mi.statistic
    assert moments.p_value != mi.p_value
    three = sample(400, 3, 2)
    assert g_test(*three, df="moments").p_value == pytest.approx(g_test(*three).p_value)


@pytest.mark.parametrize("df", ["mi", "moments", "g", "permutation"])
@pytest.mark.parametrize(
    ("x", "y", "z"),
    [
        ([0, 0, 0, 0], [0, 1, 0, 1], None),
        ([0, 1, 0, 1], [1, 1, 1, 1], None),
        ([0, 1, 0, 1], [0, 1, 0, 1], [0, 1, 2, 3]),
        ([1], [0], None),
    ],
)
def test_strata_that_tell_nothing(x, y, z, df):
    assert g_test(x, y, z, df=df, random_state=0) == GTest(0.0, 0.0, 1.0)


def test_all_tables_with_these_margins_have_the_same_g():
    """Two rows with margins 1, 1 always look perfectly dependent: they are no evidence."""
    x, y, z = [0, 1] * 50, [0, 1] * 50, np.repeat(np.arange(50), 2)
    assert g_test(x, y, z).p_value > 0.3
    assert g_test(x, y, z, df="moments").p_value == 1.0


def test_rare_values_that_never_meet_are_no_evidence():
    """A chi-square variable of so small a mean would reject: p = 0.008."""
    x, y = np.zeros(10_000, dtype=int), np.zeros(10_000, dtype=int)
    x[0] = y[1] = 1
    result = g_test(x, y)
    assert chi2.sf(result.statistic, result.df) < 0.01
    assert result.p_value > 0.3


@pytest.mark.parametrize("df", ["mi", "moments", "g"])
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
    """Under independence given z, rejections are as frequent as alpha says."""
    rng = np.random.default_rng(n_strata)
    repetitions = 4000
    z = rng.integers(0, n_strata, n)
    y = (rng.random(n) < rng.uniform(0.3, 0.7, n_strata)[z]).astype(np.int64)
    x = rng.random((n, repetitions)) < rng.uniform(0.3, 0.7, n_strata)[z, None]
    problem = make_strata(y, 2, z, n_strata)
    result = g_test_columns([problem], encode_labels(x), Degrees(df), [None])
    rejected = (result.p_value <= alpha).mean()
    assert abs(rejected - alpha) < 4.0 * math.sqrt(alpha * (1.0 - alpha) / repetitions)


def test_level_in_small_strata_needs_the_variance():
    rng = np.random.default_rng(0)
    z = rng.integers(0, 64, 200)
    y = rng.integers(0, 2, 200)
    problem, x = make_strata(y, 2, z, 64), encode_labels(rng.random((200, 4000)) < 0.5)
    rates = {
        df: (g_test_columns([problem], x, Degrees(df), [None]).p_value <= 0.05).mean()
        for df in ("mi", "moments")
    }
    assert rates["mi"] < 0.03
    assert rates["moments"] == pytest.approx(0.05, abs=0.015)


def test_power_grows_with_the_dependence():
    p_values = [g_test(*sample(400, 2, 4, strength=s)).p_value for s in (0.0, 0.2, 0.5)]
    assert p_values[0] > 0.05 > p_values[1] > p_values[2]


def columns_of(kind, n=90, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n, 7)) if kind == "binary" else rng.integers(0, 4, (n, 7))
    X = X * (rng.random((n, 7)) < 0.6)
    X[:, 2] = 0  # constant, at the level that is not stored
    X[:, 4] = 3 if kind != "binary" else 1  # constant, at another one
    return X


@pytest.mark.parametrize("kind", ["binary", "levels"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize("df", ["mi", "moments", "g"])
@pytest.mark.parametrize("cells", [1 << 20, 40])
def test_all_columns_at_once_as_one_by_one(monkeypatch, kind, form, df, cells):
    monkeypatch.setattr(counts_module, "MAX_CELLS", cells)
    monkeypatch.setattr("fgfm.factors._g.MAX_CELLS", cells)
    X = columns_of(kind)
    rng = np.random.default_rng(1)
    z = rng.integers(0, 3, len(X))
    Y = rng.integers(0, 2, (len(X), 3))
    Y[:, 0] = X[:, 0] > 0
    Y[:, 2] = 1
    problems = [make_strata(y, 2, z, 3) for y in Y.T]
    columns = encode(form(X))
    result = g_test_columns(problems, columns, Degrees(df), [None] * 3)
    for i, j in np.ndindex(3, 7):
        one = g_test(X[:, j], Y[:, i], z, df=df)
        np.testing.assert_allclose([part[i, j] for part in result], one, atol=1e-12)
    own = g_test_each(
        problems, [(columns.codes(j), int(columns.levels[j])) for j in (0, 1, 3)], Degrees(df),
        [None] * 3,
    )  # fmt: skip
    for i, j in enumerate((0, 1, 3)):
        np.testing.assert_allclose([part[i] for part in own], [part[i, j] for part in result])


@pytest.mark.parametrize("df", ["mi", "moments", "g"])
def test_company_does_not_matter(df):
    """Columns with more levels, and other problems, change not one bit of a column's answer."""
    rng = np.random.default_rng(0)
    n = 200
    y, z = rng.integers(0, 2, n), rng.integers(0, 12, n)
    X = np.column_stack([rng.integers(0, levels, n) for levels in (2, 3, 2, 12, 1, 5)])
    X[:, 2] |= (y == 1) & (rng.random(n) < 0.3)
    degrees = Degrees(df)
    problem, plain = make_strata(y, 2, z, 12), make_strata(1 - y, 2, 0 * z, 1)
    wide = g_test_columns([plain, problem], encode(X), degrees, [None, None])
    others = [(X[:, j], int(X[:, j].max()) + 1) for j in range(X.shape[1])]
    each = g_test_each([problem] * len(others), others, degrees, [None] * len(others))
    for j in range(X.shape[1]):
        alone = g_test_columns([problem], encode(X[:, [j]]), degrees, [None])
        single = g_test(X[:, j], y, z, df=df)
        for field in range(3):
            assert wide[field][1, j] == alone[field][0, 0] == each[field][j] == single[field]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_codes_keep_the_levels_apart(form):
    X = columns_of("levels")
    columns = encode(form(X))
    np.testing.assert_array_equal(count_levels(form(X)), columns.levels)
    for j, levels in enumerate(columns.levels):
        pairs = set(zip(X[:, j].tolist(), columns.codes(j).tolist(), strict=True))
        assert len(pairs) == levels == len(set(X[:, j].tolist()))


def test_wide_sparse_and_dense_data_agree():
    """Above some size, indicators with few ones are kept sparse."""
    rng = np.random.default_rng(0)
    X = rng.random((300, 400)) < 0.05
    columns = encode(X)
    assert sparse.issparse(columns.indicators)
    y = (X[:, 0] | (rng.random(300) < 0.1)).astype(np.int64)
    problem = make_strata(y, 2, rng.integers(0, 2, 300), 2)
    dense = columns._replace(indicators=columns.indicators.toarray().T.astype(np.float64))
    a, b = (g_test_columns([problem], c, Degrees(), [None]) for c in (columns, dense))
    np.testing.assert_array_equal(a.p_value, b.p_value)


def test_many_strata_take_the_sparse_way(monkeypatch):
    rng = np.random.default_rng(0)
    X, z, y = rng.integers(0, 2, (200, 5)), rng.integers(0, 20, 200), rng.integers(0, 2, 200)
    problem = make_strata(y, 2, z, 20)
    a = g_test_columns([problem], encode(X), Degrees(), [None])
    monkeypatch.setattr(counts_module, "_ONE_HOT", 10)
    b = g_test_columns([problem], encode(X), Degrees(), [None])
    np.testing.assert_array_equal(a.p_value, b.p_value)


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        (([0, 1], [0, 1, 1]), {}, r"^y has 3 rows and x has 2: they must have the same number"),
        (([0, 1], [0, 1], [1]), {}, r"^given has 1 rows and x has 2"),
        (([[0, 1]], [0, 1]), {}, r"^x has shape \(1, 2\): it must have 1 dimension"),
        (([0, 1], [0, 1], np.zeros((2, 1, 1))), {}, r"^given has shape \(2, 1, 1\): it must have"),
        (([0, 1], [0, 1]), {"df": "chi"}, r"^df is 'chi': it must be one of 'mi', 'moments', 'g'"),
        (([0, 1], [0, 1]), {"df": 1}, r"^df is 1: it must be one of"),
        (([0, 1], [0, 1]), {"n_tables": 0}, r"^n_tables is 0: it must be an integer greater"),
        (([0, 1], [0, 1]), {"n_tables": True}, r"^n_tables is True: it must be an integer"),
    ],
)
def test_refusals(arguments, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        g_test(*arguments, **options)
