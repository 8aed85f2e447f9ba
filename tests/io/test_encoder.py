"""FeatureEncoder: kinds of columns and what they become."""

from __future__ import annotations

import datetime
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError, SkipTestWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

import fgfm
from fgfm.io import DataError, FeatureEncoder

RNG = np.random.default_rng(0)
N = 60
WORDS = ["the", "old", "man", "reads", "a", "long", "letter", "from", "his", "lost", "brother"]


def sentences(n=N, length=9, words=WORDS):
    return [" ".join(RNG.choice(words, length)) for _ in range(n)]


with warnings.catch_warnings():
    warnings.simplefilter("ignore", SkipTestWarning)

    @parametrize_with_checks([FeatureEncoder()])
    def test_scikit_learn_checks(estimator, check):
        check(estimator)


NAMED = sentences(N, 1)
KINDS = {
    "number": (RNG.normal(size=N), "number"),
    "numbers in texts": ([f" {k / 3:.3f}" for k in range(N)], "number"),
    "numbers with gaps": (["", "?", "NA", "n/a", "null"] * 3 + ["7", "8", "9"] * 15, "number"),
    "yes and no": (["yes", "No", ""] * 20, "number"),
    "booleans": ([True, False, None] * 20, "number"),
    "integers": (list(range(N)), "identifier"),
    "sales": (RNG.permutation(10**6)[:N], "number"),
    "user_id": (RNG.permutation(10**6)[:N], "identifier"),
    "year": ([1990 + k % 30 for k in range(N)], "number"),
    "codes": ([f"f{k:04d}" for k in range(N)], "identifier"),
    "colours": (["red", "blue", None] * 20, "category"),
    "postcodes": ([f"E{k % 9}" for k in range(N)], "category"),
    "ISO dates": ([f"2001-02-{1 + k % 28:02d}" for k in range(N)], "date"),
    "German dates": ([f"{1 + k % 28}.2.2001" for k in range(N)], "date"),
    "American dates": ([f"2/{1 + k % 28}/2001" for k in range(N)], "date"),
    "dates with words": ([f"{1 + k % 28} March 2001" for k in range(N)], "date"),
    "durations": (pd.to_timedelta(range(N), unit="h"), "number"),
    "times": ([datetime.time(k % 24, 30) for k in range(N)], "number"),
    "timestamps": (pd.date_range("2001-01-01", periods=N, freq="D"), "date"),
    "sentences": (sentences(), "text"),
    "anonymised words": (sentences(length=40, words=[f"w{k}" for k in range(90)]), "text"),
    "repeated plots": (sentences(3, 12) * 20, "text"),
    "names": ([f"{a} {b}son" for a, b in zip(WORDS * 6, NAMED, strict=False)][:N], "text"),
    "Japanese": ([f"{'猫犬鳥魚'[k % 4]}が{'鳴走飛泳'[k // 15]}く{k}" for k in range(N)], "text"),
    "nothing": ([None] * N, "number"),
    "lists": ([["a"], []] * 30, "identifier"),
}  # fmt: skip


@pytest.mark.parametrize("case", KINDS)
def test_kinds(case):
    values, kind = KINDS[case]
    frame = pd.DataFrame({case: pd.Series(values), "x": RNG.normal(size=N)})
    encoder = FeatureEncoder()
    X = encoder.fit_transform(frame)
    assert encoder.kinds_[case] == kind
    again = clone(encoder).fit(frame.iloc[::-1])
    assert again.kinds_[case] == kind or case == "integers"
    assert X.shape == (N, len(encoder.get_feature_names_out()))
    assert [column.name for column in encoder.summary()] == [case, "x"]


def test_texts_get_words_or_characters():
    def becomes(texts):
        return FeatureEncoder(text=["t"]).fit({"t": texts}).summary()[0].becomes

    assert becomes(sentences()).endswith("words and pairs")
    assert becomes(sentences(length=2)).endswith("character n-grams")
    assert becomes(KINDS["Japanese"][0]).endswith("character n-grams")
    assert becomes([f"เรื่อง{k % 9}ยาว" for k in range(N)]).endswith("character n-grams")
    with pytest.raises(DataError, match="has no words: declare it a category, or leave it out"):
        FeatureEncoder(text=["t"]).fit({"t": [""] * N})


def test_every_column_is_accounted_for():
    frame = pd.DataFrame(
        {
            "id": [f"f{k:04d}" for k in range(N)],
            "x": [None, *range(N - 1)],
            "c": ["u", "v"] * 30,
            "one": ["u"] * N,
            "d": [f"2001-02-{1 + k % 28:02d}" for k in range(N)],
            "url": ["u"] * N,
        }
    )
    encoder = FeatureEncoder(number=["x"], drop=["url", "gone"]).fit(frame)
    assert [tuple(column) for column in encoder.summary()] == [
        ("gone", "identifier", "left out"),
        ("id", "identifier", "left out"),
        ("x", "number", "1 number; 1.7% missing"),
        ("c", "category", "2 categories"),
        ("one", "category", "1 category"),
        ("d", "date", "year, month, weekday, days"),
        ("url", "identifier", "left out"),
    ]
    assert encoder.get_feature_names_out().tolist() == [
        *("number__x", "number__d days", "number__missingindicator_x"),
        *("date__d year", "date__d month", "date__d weekday"),
        *("category__c_u", "category__c_v", "category__one_u"),
    ]


def test_numbers_dates_and_categories():
    train = {"x": [1.0, None, 3.0], "d": ["2001-01-01", "2001-02-03", None], "c": ["u", "v", None]}
    encoder = FeatureEncoder(date=["d"]).fit(train)
    with pytest.warns(UserWarning, match="^X") as caught:
        found = encoder.transform(
            {"c": ["w", "v"], "d": ["2001-01-11", "soon"], "x": ["many", None], "new": [1, 2]}
        )
    assert sorted(str(w.message) for w in caught) == [
        "X, column 'c': 1 of 2 rows have a category that training did not have, such as 'w'",
        "X, row 0, column 'x': 'many' is not a number; 1 more such cells. They are taken as "
        "missing",
        "X: the column 'new' is ignored: training had no such column",
    ]
    np.testing.assert_array_equal(
        found,
        #  x, days, x missing, days missing, year, month, weekday, c=(missing), c=u, c=v
        [[2, 10, 1, 0, 2001, 1, 3, 0, 0, 0], [2, 16.5, 1, 1, 2001, 1.5, 2.5, 0, 0, 1]],
    )
    with pytest.raises(
        DataError, match=r"there is no column 'c' \(did you mean 'C'\?\), which tr"
    ):
        encoder.transform({"C": ["u"], "d": ["2001-01-11"], "x": [1]})
    with pytest.raises(NotFittedError):
        FeatureEncoder().transform(train)


def test_dates_far_away_and_none():
    dates = ["2001-01-01", "9999-12-31", "1066-10-14", "-1", None, "0001-01-01"]
    with pytest.warns(UserWarning, match="'-1' is not a date"):
        found = FeatureEncoder(date=["d"]).fit_transform({"d": dates})
    assert found[:, 2].tolist() == [2001, 9999, 1066, 1533.5, 1533.5, 1]
    assert found[:, 4].tolist() == [0, 4, 6, 2.0, 2.0, 0]


def test_rare_categories_share_a_feature():
    texts = [f"c{k}" for k in np.random.default_rng(0).geometric(0.2, size=2000)]
    counts = pd.Series(texts).value_counts()
    assert len(counts) > 20
    encoder = FeatureEncoder().fit({"c": texts})
    names = encoder.get_feature_names_out().tolist()
    assert {name.removeprefix("category__c_") for name in names[:-1]} == set(
        counts.index[counts >= 5]
    )
    assert encoder.summary()[0].becomes == f"{len(names)} categories"
    with pytest.warns(UserWarning, match="such as 'new'"):
        assert encoder.transform({"c": ["new"]})[0, -1] == 1.0


def test_categories_that_are_numbers_do_not_depend_on_the_type():
    encoder = FeatureEncoder(category=["z"]).fit({"z": ["0", "1", "1234567"]})
    for values in ([0, 1, 1234567], [0.0, 1.0, 1234567.0], ["0", "1", "1234567"]):
        assert encoder.transform({"z": values}).tolist() == np.eye(3).tolist()


@pytest.mark.parametrize("text", ["0,5", "1,500", "12 %", "$5", "5 €"])
def test_numbers_in_another_notation_raise(text):
    rule = rf"row 1, column 'x': '{text}' is not a number, although .* \(arguments: decimal, cat"
    with pytest.raises(DataError, match=rule.replace("$", r"\$")):
        FeatureEncoder().fit({"x": [None, text] * 15})
    FeatureEncoder(category=["x"]).fit({"x": [text] * 30})


@pytest.mark.parametrize("kind", ["pandas", "arrow strings", "polars", "pyarrow", "mapping"])
def test_libraries_agree(kind):
    frame = pd.DataFrame(
        {
            "i": pd.array([1, None, 3], dtype="Int64"),
            "s": pd.array(["u", None, "v"], dtype="string"),
            "b": [True, False, True],
        }
    )
    X = {
        "pandas": lambda: frame,
        "arrow strings": lambda: frame.astype({"s": "object"}),
        "polars": lambda: pl.from_pandas(frame),
        "pyarrow": lambda: pl.from_pandas(frame).to_arrow(),
        "mapping": lambda: {"i": [1, None, 3], "s": ["u", None, "v"], "b": [True, False, True]},
    }[kind]()
    expected = [[1, 1, 0, 0, 1, 0], [2, 0, 1, 1, 0, 0], [3, 1, 0, 0, 0, 1]]
    assert FeatureEncoder().fit_transform(X).tolist() == expected


def test_sparse_and_unnamed_features():
    X = sparse.csr_array(np.eye(3))
    encoder = FeatureEncoder().fit(X)
    assert (encoder.transform(X) != X).nnz == 0
    assert encoder.summary() == []
    assert FeatureEncoder(dense=True).fit_transform(X).tolist() == np.eye(3).tolist()
    with pytest.raises(DataError, match="X has 2 features, but FeatureEncoder is expecting 3"):
        encoder.transform(X[:, :2])
    numbers = np.arange(60.0).reshape(30, 2)  # ascending, but columns without names
    encoder = FeatureEncoder().fit(numbers)
    assert (encoder.transform(numbers) == numbers).all()
    assert (encoder.transform(sparse.csr_array(numbers)) == numbers).all()
    table = {"t": sentences()}
    assert sparse.issparse(FeatureEncoder().fit_transform(table))
    assert isinstance(FeatureEncoder(dense=True).fit_transform(table), np.ndarray)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"text": ["plot"]}, r"there is no column 'plot'.* \(argument: text\)"),
        ({"text": ["x"], "date": ["x"]}, "the column 'x' is both date and text: it must have one"),
        ({"date": ["c"]}, "'u' is not a date such as 1999-12-31, nor are 29 further cells of 30"),
        (
            {"number": ["c"]},
            r"column 'c': 'u' is not a number, nor are 29.*: category, text, drop",
        ),
    ],
)
def test_invalid_declarations_raise(options, message):
    with pytest.raises(DataError, match=message):
        FeatureEncoder(**options).fit({"x": RNG.normal(size=30), "c": ["u"] * 30})


def test_saved_encoder_encodes_alike(tmp_path):
    frame = pd.DataFrame({case: pd.Series(KINDS[case][0]) for case in KINDS if case != "lists"})
    frame["zip"] = [f"z{k % 30}" for k in range(N)]
    encoder = FeatureEncoder(drop=["names"]).fit(frame)
    fgfm.save(encoder, tmp_path / "e.fgfm")
    loaded = fgfm.load(tmp_path / "e.fgfm")  # without trust
    assert (loaded.transform(frame) != encoder.transform(frame)).nnz == 0
    assert loaded.summary() == encoder.summary()


def test_names_of_columns_may_have_two_underscores():
    table = {"a__b": sentences(), "c__d": ["u", "v"] * 30, "__x": [None, *range(N - 1)]}
    encoder = FeatureEncoder(number=["__x"]).fit(table)
    assert [column.kind for column in encoder.summary()] == ["text", "category", "number"]
    names = encoder.get_feature_names_out().tolist()
    assert "category__c__d_v" in names
    assert "text a__b__the" in names
