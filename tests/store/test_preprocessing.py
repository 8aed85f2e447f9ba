"""scikit-learn's preprocessing is saved and loaded without trust; functions of a user are not."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.feature_selection import SelectKBest, chi2
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)
from sklearn.random_projection import SparseRandomProjection

import fgfm
from fgfm import FClassifier
from fgfm.ridge import RidgeLogistic
from fgfm.store import foreign_classes
from model_files import assert_refused, read_members, rewrite

skops_io = pytest.importorskip("skops.io")
pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
N = 40
NUMBERS = RNG.normal(size=(N, 3))
NUMBERS[3, 1] = np.nan
TEXTS = [" ".join(RNG.choice(["love", "war", "Zürich", "space"], 4)) for _ in range(N)]
FRAME = pd.DataFrame(
    {
        "length": NUMBERS[:, 0],
        "width": NUMBERS[:, 1],
        "plot": TEXTS,
        "country": np.where(RNG.random(N) < 0.1, None, RNG.choice(["fr", "de", "it"], N)),
        "kind": pd.Categorical(RNG.choice(["a", "b"], N)),
    }
)
FLAT = (NUMBERS[:, 0] > 0).astype(int)
Y = np.column_stack([FLAT, NUMBERS[:, 2] > 0, RNG.random(N) < 0.5]).astype(int)

TRANSFORMERS = {
    "tf-idf": (TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2), TEXTS),
    "tf-idf, float32": (TfidfVectorizer(stop_words="english", dtype=np.float32), TEXTS),
    "characters": (CountVectorizer(analyzer="char_wb", ngram_range=(2, 3)), TEXTS),
    "counts and weights": (make_pipeline(CountVectorizer(), TfidfTransformer()), TEXTS),
    "hashing": (HashingVectorizer(n_features=64), TEXTS),
    "dictionaries": (DictVectorizer(), [{"a": 1.0, "b": text} for text in TEXTS]),
    "union": (FeatureUnion([("w", TfidfVectorizer()), ("c", CountVectorizer())]), TEXTS),
    "svd": (make_pipeline(TfidfVectorizer(), TruncatedSVD(2, random_state=0)), TEXTS),
    "rare categories": (
        OneHotEncoder(min_frequency=5, handle_unknown="infrequent_if_exist"),
        FRAME[["country", "kind"]],
    ),
    "dense categories": (
        OneHotEncoder(sparse_output=False, dtype=np.float32, drop="if_binary"),
        FRAME[["country", "kind"]],
    ),
    "ordinal": (
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        FRAME[["country", "kind"]],
    ),
    "imputed": (SimpleImputer(strategy="median", add_indicator=True), NUMBERS),
    "imputed texts": (SimpleImputer(strategy="most_frequent"), FRAME[["country"]]),
    "imputed by neighbours": (KNNImputer(), NUMBERS),
    "scaled": (make_pipeline(SimpleImputer(), StandardScaler(), PCA(2)), NUMBERS),
    "scaled sparse": (MaxAbsScaler(), sparse.csr_array(NUMBERS[:, :1])),
    "bins": (KBinsDiscretizer(quantile_method="averaged_inverted_cdf"), NUMBERS[:, :1]),
    "projected": (SparseRandomProjection(2, random_state=0), NUMBERS[:, ::2]),
    "selected": (SelectKBest(chi2, k=2), NUMBERS[:, ::2] ** 2),
    "identity": (FunctionTransformer(), NUMBERS),
    "ufunc": (FunctionTransformer(np.log1p, feature_names_out="one-to-one"), NUMBERS**2),
    "table": (
        ColumnTransformer(
            [
                ("number", make_pipeline(SimpleImputer(), StandardScaler()), ["length", "width"]),
                ("text", TfidfVectorizer(), "plot"),
                ("category", OneHotEncoder(handle_unknown="ignore"), ["country", "kind"]),
            ]
        ),
        FRAME,
    ),
    "table by type": (
        ColumnTransformer(
            [("number", StandardScaler(), make_column_selector(dtype_include=np.number))],
            remainder="drop",
        ),
        FRAME,
    ),
    "table of frames": (
        ColumnTransformer(
            [("category", OneHotEncoder(sparse_output=False), ["country"])],
            remainder="passthrough",
            verbose_feature_names_out=False,
        ).set_output(transform="pandas"),
        FRAME[["length", "country"]],
    ),
}


def values(transformed):
    """Return a transformed table as an array."""
    return np.asarray(transformed.toarray() if sparse.issparse(transformed) else transformed)


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_preprocessing_is_loaded_without_trust(name, path):
    model, rows = TRANSFORMERS[name]
    model.fit(rows, FLAT)
    fgfm.save(model, path)
    assert foreign_classes(path) == []
    again = fgfm.load(path)
    expected = model.transform(rows)
    found = again.transform(rows)
    assert type(found) is type(expected)
    np.testing.assert_array_equal(values(found), values(expected))
    if hasattr(model, "get_feature_names_out"):
        assert list(again.get_feature_names_out()) == list(model.get_feature_names_out())
    again.fit(rows, FLAT)


LEARNERS = {
    "default": (make_pipeline(TfidfVectorizer(), FClassifier(random_state=0)), TEXTS, Y),
    "ridge": (make_pipeline(TfidfVectorizer(), FClassifier(RidgeLogistic([1.0]))), TEXTS, Y),
    "logistic": (make_pipeline(TfidfVectorizer(), FClassifier(LogisticRegression())), TEXTS, Y),
    "adam": (MLPClassifier((4,), max_iter=5, random_state=0), NUMBERS[:, ::2], FLAT),
    "sgd": (MLPClassifier((4,), solver="sgd", max_iter=5), NUMBERS[:, ::2], FLAT),
    "sigmoid": (CalibratedClassifierCV(GaussianNB(), cv=2), NUMBERS[:, ::2], FLAT),
    "isotonic": (
        CalibratedClassifierCV(GaussianNB(), cv=2, method="isotonic"),
        NUMBERS[:, ::2],
        FLAT,
    ),
}


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
@pytest.mark.parametrize("name", LEARNERS)
def test_learners_are_loaded_without_trust(name, path):
    model, rows, labels = LEARNERS[name]
    fgfm.save(model.fit(rows, labels), path)
    again = fgfm.load(path)
    assert (again.predict(rows) == model.predict(rows)).all()
    assert (again.predict_proba(rows) == model.predict_proba(rows)).all()


# Vocabularies


def many_texts(n=150):
    return [f'word{i} word{(7 * i) % n} Zürich\u2028 "quoted"' for i in range(n)]


def test_large_vocabularies_are_one_text(path):
    texts = many_texts()
    union = FeatureUnion([("words", TfidfVectorizer()), ("pairs", CountVectorizer())])
    shared = {word: i for i, word in enumerate(TfidfVectorizer().fit(texts).vocabulary_)}
    union.transformer_list.append(("fixed", CountVectorizer(vocabulary=shared)))
    model = make_pipeline(union, FClassifier(RidgeLogistic([1.0]), random_state=0)).fit(
        texts, [[1, 0], [0, 1]] * 75
    )
    before = str(vars(union))
    fgfm.save(model, path)
    assert str(vars(union)) == before
    schema = read_members(path)["schema.json"]
    assert schema.count(b'"Vocabulary"') == 4  # the last vectorizer has a parameter, too
    again = fgfm.load(path)
    assert (again.predict_proba(texts) == model.predict_proba(texts)).all()
    for (_, one), (_, other) in zip(
        again[0].transformer_list, union.transformer_list, strict=True
    ):
        assert type(one.vocabulary_) is dict
        assert one.vocabulary_ == other.vocabulary_
    assert fgfm.load(path).fit(texts, [[1, 0], [0, 1]] * 75)


@pytest.mark.parametrize("change", [["zero"] * 2, [1], [None], [["a"]], {"a": 1}, "a", 3], ids=str)
def test_large_vocabulary_that_is_no_list_of_words_is_refused(change, path):
    fgfm.save(CountVectorizer().fit(many_texts()), path)

    def changed(_, schema):
        text = schema["content"]["content"]["vocabulary_"]["content"]["content"][0]
        words = json.loads(json.loads(text["content"]))
        wrong = words + change if isinstance(change, list) else change
        text["content"] = json.dumps(json.dumps(wrong))

    rewrite(path, changed)
    assert_refused(path, "vocabulary")
