"""G tests in batches: the same as one by one, and their level under independence."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse

from fgfm.factors import g_test
from fgfm.factors._contingency import encode, encode_labels, make_strata
from fgfm.factors._g_test import g_test_columns, g_test_each


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
