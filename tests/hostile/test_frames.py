"""Data frames and series of all shapes, names and dtypes against the arrays that they hold."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier

from decider_data import independent
from fgfm import FClassifier, FDecider, FGFMClassifier, decision, f_measure

AVERAGES = ["samples", "macro", "micro"]
SHAPES = [(1, 1), (1, 4), (4, 1), (2, 2), (3, 3), (5, 5), (3, 6), (6, 3)]
NAMES = {
    "default": None,
    "text": lambda m: [f"label {j}" for j in range(m)][::-1],
    "numbers": lambda m: [2 * m - j for j in range(m)],
    "floats": lambda m: [0.5 * (m - j) for j in range(m)],
    "tuples": lambda m: pd.MultiIndex.from_tuples([(j // 2, f"b{j}") for j in range(m)]),
    "dates": lambda m: pd.date_range("2026-01-01", periods=m),
    "categories": lambda m: pd.CategoricalIndex([f"c{j}" for j in range(m)]),
    "missing": lambda m: [np.nan, *range(m - 1)],
    "duplicates": lambda m: ["same"] * m,
}
ROWS = {
    "default": None,
    "text": lambda n: [f"row {i}" for i in range(n)],
    "reversed": lambda n: range(n)[::-1],
    "tuples": lambda n: pd.MultiIndex.from_tuples([(i % 2, i) for i in range(n)]),
    "duplicates": lambda n: [0] * n,
}
FLOATS = ["float64", "Float64", "double[pyarrow]", "object"]
LABELS = ["int64", "int8", "bool", "float64", "Int64", "boolean", "int64[pyarrow]",
          "bool[pyarrow]", "category", "object"]  # fmt: skip


def pandas_frame(values, names="default", rows="default", dtype=None):
    """Return a data frame with names and an index of some kind."""
    n, m = values.shape
    columns = NAMES[names] and NAMES[names](m)
    index = ROWS[rows] and ROWS[rows](n)
    if dtype in ("bool", "boolean", "bool[pyarrow]"):
        values = values.astype(bool)
    return pd.DataFrame(values, columns=columns, index=index).astype(dtype or values.dtype)


def polars_frames(values):
    """Return data frames with the rows of an array, built in each way."""
    names = [f"label {j}" for j in range(values.shape[1])][::-1]
    yield pl.DataFrame(values, orient="row")
    yield pl.DataFrame(np.asfortranarray(values), schema=names, orient="row")
    yield pl.DataFrame(dict(zip(names, values.T, strict=True)))
    yield pl.from_pandas(pd.DataFrame(values, columns=names))


def same(frame, array):
    """Assert that a table, a series or a number has the values of an array."""
    found = np.asarray(frame)
    assert found.shape == np.shape(array)
    # The layout of a frame may change the order of sums in a learner, and so the last bits.
    np.testing.assert_allclose(found.astype(np.float64), np.asarray(array, np.float64), 1e-12)


def check_decision(found, plain, like, average):
    """Assert that a decision has the values of that of arrays, and the rows of a table."""
    same(found.labels, plain.labels)
    same(found.expected_f, plain.expected_f)
    assert type(found.labels) is type(like)
    if isinstance(like, pd.DataFrame):
        assert found.labels.index.equals(like.index)
        if average != "micro":
            of = found.labels.index if average == "samples" else found.labels.columns
            assert found.expected_f.index.equals(of)


# Decisions from marginals


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_marginals(shape, average):
    for seed in range(3):
        p = np.random.default_rng(seed).random(shape)
        plain = decision.from_marginals(p, average=average)
        for frame in polars_frames(p):
            found = decision.from_marginals(frame, average=average)
            check_decision(found, plain, frame, average)
            assert found.labels.columns == frame.columns
        for names, rows in itertools.product(NAMES, ROWS):
            frame = pandas_frame(p, names, rows)
            found = decision.from_marginals(frame, average=average)
            check_decision(found, plain, frame, average)
            assert found.labels.columns.equals(frame.columns)
        for dtype in FLOATS:
            frame = pandas_frame(p, dtype=dtype)
            check_decision(decision.from_marginals(frame, average=average), plain, frame, average)


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("n", [1, 2, 7])
def test_marginals_of_one_label(n, average):
    p = np.random.default_rng(n).random(n)
    plain = decision.from_marginals(p, average=average)
    series = [pd.Series(p, dtype=dtype, name=7, index=range(n)[::-1]) for dtype in FLOATS]
    for table in (*series, pl.Series("p", p)):
        found = decision.from_marginals(table, average=average)
        same(found.labels, plain.labels)
        assert found.expected_f == plain.expected_f
        assert type(found.labels) is type(table)
        assert found.labels.name == table.name
    assert all(decision.from_marginals(one).labels.index.equals(one.index) for one in series)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_joint(shape):
    n, m = shape
    rng = np.random.default_rng(0)
    sets = (rng.random((5, m)) < 0.5).astype(int)
    proba = rng.dirichlet(np.ones(5), size=n)
    for average in AVERAGES:
        plain = decision.from_joint(sets, proba, average=average)
        for frame in polars_frames(proba):
            for labelsets in (sets, *polars_frames(sets)):
                found = decision.from_joint(labelsets, frame, average=average)
                check_decision(found, plain, frame, average)
        frame = pandas_frame(proba, "text", "text")
        for names in NAMES:
            found = decision.from_joint(pandas_frame(sets, names), frame, average=average)
            check_decision(found, plain, frame, average)


# FDecider


@pytest.fixture(scope="module")
def validation():
    """Return probabilities and labels, by the number of labels."""
    return {m: independent(60, m, seed=m) for m in (1, 2, 3, 5)}


def check_decider(decider, plain, X, p):
    """Assert that two deciders agree on a table and its array."""
    check_decision(decider.decide(X), plain.decide(p), X, decider.average)
    same(decider.predict(X), plain.predict(p))
    same(decider.predict_proba(X), plain.predict_proba(p))
    frame = decider.predict_frame(X)
    same(frame, plain.predict(p))
    assert type(frame) is type(X)


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("m", [1, 2, 3, 5])
def test_decider(validation, m, average):
    P, Y = validation[m]
    plain = FDecider(average=average).fit(P, pd.DataFrame(Y))
    new = [np.random.default_rng(n).random((n, m)) for n in (1, m, 2 * m)]
    for X, y in zip(polars_frames(P), polars_frames(Y), strict=True):
        decider = FDecider(average=average).fit(X, y)
        for p in new:
            frame = pl.DataFrame(p, schema=X.columns, orient="row")
            check_decider(decider, plain, frame, p)
            assert decider.decide(frame).labels.columns == y.columns
        assert decider.score(X, y) == plain.score(P, Y)
    for names in NAMES:
        if names == "duplicates" and m > 1:
            continue  # scikit-learn refuses them in X
        X, y = (pandas_frame(table, names, "text") for table in (P, Y))
        for labels, probabilities in ((y, X), (y, P), (Y if m > 1 else y, X)):
            decider = FDecider(average=average).fit(probabilities, labels)
            check_decider(decider, plain, X, P)
            assert list(map(str, decider.decide(X).labels.columns)) == list(map(str, X.columns))
            for p in new:
                frame = pandas_frame(p, names)
                check_decider(decider, plain, frame, p)
            assert decider.score(X, y) == plain.score(P, Y)


@pytest.mark.parametrize("names", ["text", "numbers", "floats", "tuples", "dates", "categories"])
def test_decider_with_permuted_columns(validation, names):
    P, Y = validation[3]
    X, y = (pandas_frame(table, names) for table in (P, Y))
    deciders = [FDecider().fit(*pair) for pair in ((X, y), (X, Y), (P, y), (X, pd.DataFrame(Y)))]
    for order in itertools.permutations(range(3)):
        if order == (0, 1, 2):
            continue
        permuted = X.iloc[:, list(order)]
        with pytest.raises(ValueError, match=r"column \d of X is .* and that of y is .*: both"):
            FDecider().fit(permuted, y)
        for decider in deciders:
            for method in (decider.predict, decider.decide, decider.predict_frame):
                with pytest.raises(ValueError, match=r"column \d of X is .* and that of fit is "):
                    method(permuted)
            with pytest.raises(ValueError, match=r"column \d of y is .* and that of fit is .*: b"):
                decider.score(P if decider is deciders[2] else X, y.iloc[:, list(order)])


@pytest.mark.parametrize("order", [[0, 2, 1], [1, 0, 2], [2, 1, 0], [1, 2, 0]])
def test_numbered_columns_in_another_order(validation, order):
    P, Y = validation[3]
    for X in (pd.DataFrame(P), pl.DataFrame(P)):
        for names in (order, [str(j) for j in order]):
            with pytest.raises(
                ValueError, match=r"column \d of X is .* and that of y is .*: both"
            ):
                FDecider().fit(X, pd.DataFrame(Y, columns=names))


@pytest.mark.parametrize("dtype", LABELS)
def test_dtypes_of_labels(validation, dtype):
    P, Y = validation[3]
    y = pandas_frame(Y, "text", dtype=dtype)
    same(FDecider().fit(P, y).predict(P), FDecider().fit(P, Y).predict(P))
    model = FGFMClassifier(random_state=0)
    same(model.fit(P, y).predict(P), model.fit(P, Y).predict(P))
    cv = FClassifier(KNeighborsClassifier(), random_state=0)
    same(cv.fit(P, y).predict(P), cv.fit(P, Y).predict(P))
    H = 1 - Y[::-1]
    for average in AVERAGES:
        expected = f_measure(Y, H, average=average)
        assert f_measure(y, H, average=average) == expected
        assert f_measure(H, y, average=average) == f_measure(H, Y, average=average)
        assert f_measure(y, pandas_frame(H, "text"), average=average) == expected
    if dtype != "object":  # which scikit-learn refuses
        decider = FDecider().fit(P[:, 0], y.iloc[:, 0])
        same(decider.predict(P[:, 0]), FDecider().fit(P[:, 0], Y[:, 0]).predict(P[:, 0]))


@pytest.mark.parametrize("dtype", FLOATS)
def test_dtypes_of_probabilities(validation, dtype):
    P, Y = validation[3]
    plain = FDecider().fit(P, Y)
    for names in ("default", "text"):
        X = pandas_frame(P, names, dtype=dtype)
        check_decider(FDecider().fit(X, Y), plain, X, P)


def test_flat_series(validation):
    P, Y = validation[1]
    p, y = P[:, 0], Y[:, 0]
    plain = FDecider().fit(p, y)
    words = np.array(["no", "yes"])[y]
    for X in (pd.Series(p, index=range(60)[::-1]), pd.Series(p, dtype="Float64"), pl.Series(p)):
        decider = FDecider().fit(X, y)
        same(decider.predict(X), plain.predict(p))
        same(decider.decide(X).labels, plain.decide(p).labels)
        same(np.ravel(decider.predict_frame(X)), plain.predict(p))
    for labels in (pd.Series(words), pd.Series(words).astype("category"), pl.Series(words)):
        decider = FDecider(pos_label="yes").fit(p, labels)
        assert ((decider.predict(p) == "yes") == plain.predict(p)).all()
        for X in (pd.Series(p), pl.Series(p)):
            assert (np.ravel(decider.predict_frame(X)) == decider.predict(p)).all()


# Models with features


@pytest.mark.parametrize("m", [2, 3])
def test_classifiers(validation, m):
    features = validation[5][0]
    Y = validation[m][1]
    new = np.random.default_rng(0).random((m, 5))  # as many rows as labels
    models = [FGFMClassifier(random_state=0)]
    models += [FClassifier(KNeighborsClassifier(), average=a, random_state=0) for a in AVERAGES]
    for prototype in models:
        average = getattr(prototype, "average", "samples")
        plain = clone(prototype).fit(features, Y)
        expected = plain.decide(new)
        tables = [
            (pl.DataFrame(features), pl.DataFrame(Y), pl.DataFrame(new, orient="row")),
            *(
                (pandas_frame(features), pandas_frame(Y, names), pandas_frame(new))
                for names in ("text", "numbers", "duplicates")
            ),
        ]
        for X, y, X_new in tables:
            model = clone(prototype).fit(X, y)
            check_decision(model.decide(X_new), expected, X_new, average)
            same(model.predict_frame(X_new), plain.predict(new))
            assert [*map(str, model.predict_frame(X_new).columns)] == [*map(str, y.columns)]
            assert model.score(X, y) == plain.score(features, Y)


# The F-measure


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_f_measure(shape):
    rng = np.random.default_rng(0)
    Y, H = ((rng.random(shape) < 0.5).astype(int) for _ in range(2))
    for average in AVERAGES:
        expected = f_measure(Y, H, average=average)
        for y, h in itertools.product(polars_frames(Y), polars_frames(H)):
            assert f_measure(y, h, average=average) == expected
        for names, rows in itertools.product(NAMES, ROWS):
            y, h = (pandas_frame(table, names, rows) for table in (Y, H))
            for pair in ((y, h), (y, H), (Y, h), (y, pl.DataFrame(H, orient="row"))):
                assert f_measure(*pair, average=average) == expected
    n = shape[0]
    series = [pd.Series(Y[:, 0], index=ROWS["text"](n)), pl.Series(Y[:, 0])]
    for y in series:
        assert f_measure(y, H[:, 0]) == f_measure(Y[:, 0], H[:, 0])
