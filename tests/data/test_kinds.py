"""The kinds of columns, and how each is encoded."""

from __future__ import annotations

import datetime

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

import fgfm
from dataset_files import write_file
from fgfm.data import DataError, FeatureEncoder, load

N = 40
WORDS = ("river", "stone", "cloud", "train", "letter", "garden", "winter")
RNG = np.random.default_rng(0)
TEXTS = [" ".join(RNG.choice(WORDS, 6)) + f" {k}" for k in range(N)]
COLUMNS = {
    "number": RNG.normal(size=N).round(3),
    "count": RNG.integers(0, 9, size=N),
    "revenue": RNG.permutation(10_000 * np.arange(1, N + 1)),
    "yes": RNG.choice(["yes", "no"], size=N),
    "flag": RNG.integers(0, 2, size=N),
    "colour": RNG.choice(["red", "blue", "green"], size=N),
    "name": [f"{WORDS[k % 7]} {WORDS[k // 7]}" for k in range(N)],
    "plot": TEXTS,
    "day": [str(datetime.date(1999, 12, 1) + datetime.timedelta(9 * k)) for k in range(N)],
    "code": [f"tt{7 * k:05d}" for k in range(N)],
    "hash": [f"{k * 7919:08x}-{k}" for k in range(N)],
    "row": RNG.permutation(N),
    "film_id": RNG.permutation(100 * np.arange(N)),
    "after": np.cumsum(RNG.integers(1, 99, size=N)),
}
KINDS = {
    "number": "number",
    "count": "number",
    "revenue": "number",
    "yes": "boolean",
    "flag": "boolean",
    "colour": "category",
    "name": "text",
    "plot": "text",
    "day": "date",
    "code": "identifier",
    "hash": "identifier",
    "row": "identifier",
    "film_id": "identifier",
    "after": "identifier",
}


def kinds_of(encoder):
    return {name: kind for name, kind, _ in encoder.summary()}


def fitted(columns, **params):
    """Fit an encoder; identifiers among the columns are expected."""
    encoder = FeatureEncoder(**params)
    with pytest.warns(UserWarning, match="left out"):
        encoder.fit(columns)
    return encoder


def test_kinds_are_found():
    with pytest.warns(UserWarning, match="left out") as caught:
        encoder = FeatureEncoder().fit(COLUMNS)
    assert kinds_of(encoder) == KINDS
    assert [str(warning.message) for warning in caught] == [
        "X: the columns 'code', 'hash', 'row', 'film_id', 'after' are left out: each row has a "
        "value of its own, without words; to use it, declare the columns text, category or number"
    ]
    assert encoder.left_out_ == ("code", "hash", "row", "film_id", "after")


def test_kinds_of_files_are_those_of_columns(tmp_path):
    pandas = pytest.importorskip("pandas")
    pandas.DataFrame(COLUMNS).to_csv(tmp_path / "a.csv", index=False)
    with pytest.warns(UserWarning, match="left out"):
        found = load(tmp_path / "a.csv")
    assert kinds_of(found.encoder) == KINDS
    assert (fitted(COLUMNS).transform(COLUMNS) != found.X).nnz == 0


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("count", "category"),
        ("code", "category"),
        ("plot", "category"),
        ("code", "text"),
        ("colour", "text"),
        ("row", "number"),
        ("after", "number"),
        ("flag", "category"),
        ("yes", "category"),
        ("yes", "number"),
    ],
)
def test_kinds_are_overridden(column, kind):
    encoder = fitted(COLUMNS, **{kind: [column]})
    expected = "boolean" if (column, kind) == ("yes", "number") else kind
    assert kinds_of(encoder) == KINDS | {column: expected}


def test_identifiers_can_be_kept():
    encoder = FeatureEncoder(drop_identifiers=False).fit(COLUMNS)
    changed = {"code": "category", "hash": "category"}
    changed |= dict.fromkeys(["row", "film_id", "after"], "number")
    assert kinds_of(encoder) == KINDS | changed


def test_small_tables_have_no_identifiers():
    few = {name: list(values[:19]) for name, values in COLUMNS.items()}
    assert "identifier" not in kinds_of(FeatureEncoder().fit(few)).values()


def test_arrays_without_names_have_no_identifiers():
    X = np.column_stack([COLUMNS["row"], COLUMNS["number"]])
    assert (FeatureEncoder().fit_transform(X) == X).all()


def test_texts_are_tfidf_of_words_and_pairs():
    encoder = FeatureEncoder()
    X = encoder.fit_transform({"plot": TEXTS})
    tfidf = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2)
    expected = tfidf.fit_transform(TEXTS)
    assert sparse.issparse(X)
    assert_allclose(X.toarray(), expected.toarray())
    names = [f"plot: {word}" for word in tfidf.get_feature_names_out()]
    assert encoder.get_feature_names_out().tolist() == names
    assert encoder.transform({"plot": [None, "unknown"]}).nnz == 0


def test_texts_without_repeated_words():
    found = FeatureEncoder(text=["t"]).fit_transform({"t": ["one two", "three four"]})
    assert found.shape == (2, 6)
    with pytest.raises(DataError, match=r"texts are 't', and one of them has no words: declare"):
        FeatureEncoder(text=["t"]).fit({"t": ["1", "2"]})


def test_numbers_beside_texts_are_scaled():
    columns = {"x": np.arange(8.0) ** 2, "t": TEXTS[:8]}
    params = {"text": ["t"], "sparse_output": False}
    x = FeatureEncoder(**params).fit_transform(columns)[:, 0]
    assert_allclose([x.mean(), x.std()], [0, 1], atol=1e-12)
    raw = FeatureEncoder(**params, scale=False)
    assert raw.fit_transform(columns)[:, 0].tolist() == columns["x"].tolist()
    assert not raw.is_scaled_
    assert not FeatureEncoder().fit({"x": [1.0, 5.0]}).is_scaled_


@pytest.mark.parametrize(
    "notation",
    ["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%d.%m.%Y", "%Y/%m/%d", "%d/%m/%Y", "%m/%d/%Y", "%d %B %Y"],
)
def test_dates(notation):
    days = [datetime.datetime(1999, 12, 31), datetime.datetime(2000, 2, 29), None]
    texts = [None if day is None else day.strftime(notation) for day in days]
    encoder = FeatureEncoder()
    X = encoder.fit_transform({"d": texts})
    names = ["d year", "d month", "d weekday", "d days"]
    assert encoder.get_feature_names_out().tolist() == [*names, "d missing"]
    expected = [[day.year, day.month, day.weekday(), (day - days[0]).days] for day in days[:2]]
    medians = np.mean(expected, axis=0).tolist()
    assert X[:, :4].tolist() == [*expected, medians]
    assert X[:, 4:].tolist() == [[0], [0], [1]]
    before = datetime.datetime(1960, 1, 1)
    found = encoder.transform({"d": [before.strftime(notation)]})[0, :4].tolist()
    assert found == [1960, 1, before.weekday(), (before - days[0]).days]


@pytest.mark.parametrize("library", ["pandas", "polars", "numpy", "dates"])
def test_types_of_dates(library):
    days = [datetime.date(2001, 5, 6), None, datetime.date(2003, 1, 2)]
    column = days
    if library == "numpy":
        column = np.array(days, dtype="datetime64[ns]")
    elif library != "dates":
        module = pytest.importorskip(library)
        frame = module.DataFrame({"d": days})
        column = module.to_datetime(frame["d"]) if library == "pandas" else frame["d"]
    X = FeatureEncoder().fit_transform({"d": column})
    assert X[[0, 2], :3].tolist() == [[2001, 5, 6], [2003, 1, 3]]


def test_invalid_dates_raise(tmp_path):
    encoder = load(write_file(tmp_path, "d,x\n2001-02-03,1\n2002-02-03,2\n")).encoder
    new = write_file(tmp_path, "d,x\n2001-02-03,1\n3.2.2002,2\n", "new.csv")
    rule = r"new.csv, line 3, column 'd': '3.2.2002' is not a date in the notation of training"
    with pytest.raises(DataError, match=rule):
        load(new, encoder=encoder)
    with pytest.raises(DataError, match=r"X, row 1, column 'd': 'soon': a column of dates must"):
        FeatureEncoder(date=["d"]).fit({"d": ["2001-02-03", "soon"]})


def test_texts_may_look_like_numbers(tmp_path):
    titles = "title,x\nThe River,1\n1917,2\nStone,3\n300,4\nCloud Atlas,5\n"
    encoder = load(write_file(tmp_path, titles)).encoder
    assert encoder.get_feature_names_out().tolist()[1:3] == ["title=1917", "title=300"]
    new = write_file(tmp_path, "title,x\n300,1\n", "new.csv")
    assert load(new, encoder=encoder).X.tolist() == [[1, 0, 1, 0, 0, 0]]
    mostly_numbers = write_file(tmp_path, "x,y\n1,1\n2,2\nsoon,3\n")
    with pytest.raises(DataError, match=r"line 4, column 'x': 'soon' is not a number, and line 2"):
        load(mostly_numbers)


def test_names_of_columns_and_kinds_are_checked():
    for kind in ("text", "category", "number", "date"):
        rule = rf"no column 'colou' \(did you mean 'colour'\?\) \(argument: {kind}\)$"
        with pytest.raises(DataError, match=rule):
            FeatureEncoder(**{kind: ["colou"]}).fit(COLUMNS)
    with pytest.raises(DataError, match=r"'plot' is both text and category: .* one kind"):
        FeatureEncoder(text=["plot"], category=["plot"]).fit(COLUMNS)
    with pytest.raises(DataError, match=r"row 0, column 'colour': '.*' is not a number"):
        FeatureEncoder(number=["colour"]).fit(COLUMNS)


def test_further_columns_are_ignored_and_identifiers_may_be_absent():
    encoder = fitted(COLUMNS)
    used = {name: COLUMNS[name] for name in KINDS if KINDS[name] != "identifier"}
    expected = encoder.transform(COLUMNS)
    assert (encoder.transform(used) != expected).nnz == 0
    with pytest.warns(UserWarning, match=r"X: the columns 'more', 'yet' are ignored: training"):
        found = encoder.transform({"more": TEXTS, **used, "yet": TEXTS})
    assert (found != expected).nnz == 0


def test_rows_are_encoded_by_themselves():
    encoder = fitted(COLUMNS)
    whole = encoder.transform(COLUMNS)
    for k in range(0, N, 7):
        part = encoder.transform({name: values[k : k + 7] for name, values in COLUMNS.items()})
        assert (part != whole[k : k + 7]).nnz == 0


def test_saved_encoder_encodes_alike(tmp_path):
    pytest.importorskip("skops.io")
    encoder = fitted(COLUMNS, category=["count"])
    fgfm.save(encoder, tmp_path / "encoder")
    assert fgfm.store.foreign_classes(tmp_path / "encoder") == []
    again = fgfm.load(tmp_path / "encoder")
    assert (again.transform(COLUMNS) != encoder.transform(COLUMNS)).nnz == 0
    assert again.summary() == encoder.summary()
    assert again.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()


def test_summary_of_columns():
    columns = dict(COLUMNS, number=[None, *COLUMNS["number"][1:]])
    found = {name: becomes for name, _, becomes in fitted(columns).summary()}
    assert found["number"] == "1 number; 2.5% missing"
    assert found["colour"] == "3 categories"
    assert found["day"] == "year, month, weekday, days"
    assert found["plot"].endswith(" words and pairs")
    assert found["code"] == "left out"
    assert found["yes"] == "1 number"
