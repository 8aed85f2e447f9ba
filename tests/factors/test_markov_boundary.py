"""Markov boundaries: against a plain IAMB, on data with a known boundary, and invariances."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from fgfm.factors import g_test, markov_boundary

DATA = Path(os.environ.get("FGFM_DATA", Path(__file__).parents[3] / "shared" / "data"))


def network(n, seed=0, noise=0.1):
    """Return a label with the boundary 0, 1, 3: y depends on 1 and 3, 0 on y, and 5 on 1."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n, 7))

    def flip(values):
        return values ^ (rng.random(n) < noise)

    y = flip(X[:, 1] | X[:, 3])
    X[:, 5] = flip(X[:, 1])
    X[:, 0] = flip(y)
    return X, y.astype(int)


def plain_iamb(X, y, alpha, df):
    """IAMB, one test at a time."""
    members = []
    while len(members) < X.shape[1]:
        rest = [j for j in range(X.shape[1]) if j not in members]
        results = [g_test(X[:, j], y, X[:, members], df=df) for j in rest]
        best = min(range(len(rest)), key=lambda k: (results[k].p_value, -results[k].statistic))
        if results[best].p_value > alpha:
            break
        members.append(rest[best])
    while len(members) > 1:
        p = [
            g_test(X[:, j], y, X[:, [k for k in members if k != j]], df=df).p_value
            for j in members
        ]
        worst = max(range(len(p)), key=lambda k: (p[k], k))
        if p[worst] <= alpha:
            break
        del members[worst]
    return sorted(members)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("df", ["mi", "moments"])
@pytest.mark.parametrize("levels", [2, 3])
def test_agrees_with_one_test_at_a_time(seed, df, levels):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, levels, (150, 6))
    y = ((X[:, :3].sum(axis=1) + rng.integers(0, 2, 150)) > levels).astype(int)
    X[:, 4] = np.where(rng.random(150) < 0.8, X[:, 0], X[:, 4])
    found = markov_boundary(X, y, 0.05, df=df)
    assert found.tolist() == plain_iamb(X, y, 0.05, df)
    assert len(found) > 0


def test_member_that_became_irrelevant_is_removed():
    """Column 2 is the strongest by itself, but irrelevant given the two it is made of."""
    rng = np.random.default_rng(0)
    A, B = rng.integers(0, 2, (2, 4000))
    y = (A + B + (rng.random(4000) < 0.15)) >= 2
    C = (A & B) ^ (rng.random(4000) < 0.02)
    by_itself = [g_test(column, y).statistic for column in (A, B, C)]
    assert max(by_itself) == by_itself[2]
    assert markov_boundary(np.column_stack([A, B, C]), y.astype(int)).tolist() == [0, 1]


def test_first_of_equal_columns_is_added():
    X, y = network(1000)
    doubled = np.column_stack([X, 1 - X])  # the same columns with levels exchanged
    assert markov_boundary(doubled, y).tolist() == [0, 1, 3]
    assert markov_boundary(doubled[:, ::-1], y).tolist() == [3, 5, 6]


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_matrix, np.asfortranarray])
def test_types_of_x(form):
    X, y = network(800)
    assert markov_boundary(form(X), y).tolist() == markov_boundary(X, y).tolist()
    assert markov_boundary(form(2.0 * X), y).tolist() == markov_boundary(X, y).tolist()


def test_invariances():
    X, y = network(800)
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(800), rng.permutation(7)
    assert markov_boundary(X[rows], y[rows]).tolist() == [0, 1, 3]
    assert sorted(columns[markov_boundary(X[:, columns], y)].tolist()) == [0, 1, 3]
    assert markov_boundary(np.array(["b", "a"])[X], y).tolist() == [0, 1, 3]
    assert markov_boundary(X, 1 - y).tolist() == [0, 1, 3]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows(n):
    X, y = network(n)
    assert markov_boundary(X, y).tolist() == []


@pytest.mark.parametrize(
    ("X", "y", "options", "kind", "message"),
    [
        ([[0], [1]], [0, 2], {}, ValueError, r"^y\[1\] is 2: labels must be 0 or 1"),
        ([[0], [1]], [[0, 1], [1, 0]], {}, ValueError, r"^y has shape \(2, 2\): it must have 1"),
        ([[0], [1]], [0, 1, 1], {}, ValueError, r"^y has 3 rows and X has 2: they must have"),
        (
            [[0], [1]],
            [0, 1],
            {"alpha": 0},
            ValueError,
            r"^alpha is 0\.0: it must be a number greater",
        ),
        (
            [[0], [1]],
            [0, 1],
            {"alpha": "1"},
            TypeError,
            r"^alpha is '1': it must be a number greater",
        ),
        ([[0], [1]], [0, 1], {"df": "x"}, ValueError, r"^df is 'x': it must be one of"),
    ],
)
def test_invalid_arguments_raise(X, y, options, kind, message):
    with pytest.raises(kind, match=message):
        markov_boundary(X, y, **options)


@pytest.mark.slow
def test_wide_text_data():
    """1836 words of bibtex; the boundary of the tag "amperometry" contains related words."""
    path = DATA / "bibtex.npz"
    if not path.exists():
        pytest.skip("bibtex.npz not found: set FGFM_DATA to the folder of the data sets")
    with np.load(path, allow_pickle=False) as stored:
        shape = tuple(stored["X_shape"])
        X = sparse.csr_matrix(
            (stored["X_data"], stored["X_indices"], stored["X_indptr"]), shape=shape
        )
        Y, names = stored["Y"], stored["feature_names"]
    y = Y[:, 5]
    found = markov_boundary(X, y)
    assert 1 <= len(found) <= 40
    dense = markov_boundary(X.toarray(), y)
    assert found.tolist() == dense.tolist()
    assert {"amperometric", "electrode"} <= set(names[found].tolist())
