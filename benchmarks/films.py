"""A table of films: ``fgfm fit`` without options against a pipeline made by hand.

    python -m benchmarks.films

The films are generated, as those of ``fgfm demo``: an identifier, title, release date, director,
plot, numbers, a boolean, and genres on which the words of the plot depend, with gaps.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

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

__all__ = ["by_hand", "command_line", "genre_matrix", "main", "make_films"]


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
    model = make_pipeline(columns, fgfm.FGFMClassifier(random_state=0))

    def features(films: pd.DataFrame) -> pd.DataFrame:
        return films.assign(year=pd.to_datetime(films["released"]).dt.year)

    model.fit(features(train), genre_matrix(train))
    predicted = model.predict(features(test))
    return float(fgfm.f_measure(genre_matrix(test).to_numpy(), np.asarray(predicted)))


def command_line(
    train: pd.DataFrame, test: pd.DataFrame, folder: Path, labels: str = "genres"
) -> tuple[float, str]:
    """Return the mean F1 of ``fgfm fit`` and ``fgfm predict``, and what ``fit`` prints."""
    train.to_csv(folder / "films.csv", index=False)
    test.drop(columns="genres").to_csv(folder / "new.csv", index=False)
    program = [sys.executable, "-m", "fgfm.cli"]
    fit = ["fit", "films.csv", "--labels", labels, "-o", "films.fgfm"]
    printed = subprocess.run(
        [*program, *fit], cwd=folder, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ).stdout.decode()
    predict = ["predict", "films.fgfm", "new.csv", "-o", "sets.csv", "--wide"]
    subprocess.run([*program, *predict], cwd=folder, check=True, capture_output=True)
    predicted = pd.read_csv(folder / "sets.csv")[list(GENRES)]
    return float(fgfm.f_measure(genre_matrix(test).to_numpy(), predicted.to_numpy())), printed


def main() -> None:
    """Print the F1 of both on held-out films."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[10, 11, 12, 13])
    options = parser.parse_args()
    for seed in options.seeds:
        films = make_films(options.rows, seed)
        cut = int(0.75 * len(films))
        train, test = films[:cut], films[cut:].reset_index(drop=True)
        start = time.perf_counter()
        hand = by_hand(train, test)
        middle = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            found, printed = command_line(train, test, Path(folder))
        end = time.perf_counter()
        if seed == options.seeds[0]:
            print(printed)
        print(
            f"seed {seed}: by hand F1 {hand:.4f} ({middle - start:.1f} s), fgfm fit F1 "
            f"{found:.4f} ({end - middle:.1f} s)"
        )


if __name__ == "__main__":
    main()
