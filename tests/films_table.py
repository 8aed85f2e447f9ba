"""A table of films as users have them, and a pipeline made for it by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import fgfm
from fgfm.cli._films import GENRES
from fgfm.cli._films import make_films as demo_films


def make_films(n: int = 2000, seed: int = 0) -> pd.DataFrame:
    """Return the films of ``fgfm demo``, with numbers as titles, a boolean and more gaps."""
    films = demo_films(n, seed).rename(columns={"id": "film_id"})
    rng = np.random.default_rng([seed, 1])
    films.loc[::50, "title"] = [str(1900 + k % 90) for k in films.index[::50]]
    films.loc[rng.random(n) < 0.02, "released"] = None
    films.loc[rng.random(n) < 0.05, "director"] = None
    for name in ("minutes", "budget"):
        films[name] = pd.to_numeric(films[name])
    films["colour"] = rng.random(n) < 0.8
    films["genres"] = films["genres"].str.replace(";", "|")
    return films


def genre_matrix(films: pd.DataFrame) -> pd.DataFrame:
    """Return the genres as columns of 0 and 1."""
    return films["genres"].str.get_dummies("|").reindex(columns=list(GENRES), fill_value=0)


def by_hand(train: pd.DataFrame, test: pd.DataFrame) -> float:
    """Return the mean F1 of a pipeline that knows the columns."""
    tfidf = {"ngram_range": (1, 2), "sublinear_tf": True, "min_df": 2}
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    columns = ColumnTransformer(
        [
            ("title", TfidfVectorizer(**tfidf), "title"),
            ("plot", TfidfVectorizer(**tfidf), "plot"),
            ("director", OneHotEncoder(handle_unknown="ignore", min_frequency=5), ["director"]),
            ("numbers", numbers, ["year", "minutes", "budget", "colour"]),
        ]
    )
    model = make_pipeline(columns, fgfm.FClassifier(random_state=0))

    def features(films: pd.DataFrame) -> pd.DataFrame:
        return films.assign(year=pd.to_datetime(films["released"]).dt.year)

    model.fit(features(train), genre_matrix(train))
    predicted = model.predict(features(test))
    return float(fgfm.f_measure(genre_matrix(test).to_numpy(), np.asarray(predicted)))
