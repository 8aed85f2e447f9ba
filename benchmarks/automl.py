"""Compare ``FClassifier()`` with AutoML systems of five minutes: ``python -m benchmarks.automl``.

Aragao et al. (Scientific Reports, 2025, doi:10.1038/s41598-025-02149-x) publish micro and macro F1
of AutoML systems for 20 seeds, ``train_test_split(X, y, test_size=0.2, random_state=seed)``, with
five minutes on all cores each; ``published.csv`` has the two best ones on the data sets that are
read here. Whether their rows had the order of ours is not known, so that seeds cannot be paired:
means over seeds are compared. F1 is scikit-learn's, 0/0 is 0.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import pandas as pd
from joblib import Parallel, delayed
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split

from benchmarks.datasets import read
from benchmarks.stored import DOCS, markdown, publish, store
from fgfm import FClassifier

STORED = DOCS / "benchmark" / "automl"
SYSTEMS = {"autosklearn": "auto-sklearn", "fedot": "FEDOT"}
AVERAGES = ("micro", "macro")


def run(name: str, seed: int) -> dict[str, Any]:
    """Fit the classifier to the training rows of a seed, and score both averages."""
    X, Y = read(name)
    X, X_test, Y, Y_test = train_test_split(X, Y, test_size=0.2, random_state=seed)
    start = time.process_time()
    model = FClassifier(zero_division=0.0, random_state=0).fit(X, Y)
    result: dict[str, Any] = {"data": name, "seed": seed, "fit_s": time.process_time() - start}
    for average in AVERAGES:
        labels = model.decide(X_test, average=average).labels
        result[average] = f1_score(Y_test, labels, average=average, zero_division=0)
    return result


def summary(published: pd.DataFrame, results: pd.DataFrame) -> str:
    """Return the table of means in Markdown, and what it amounts to."""
    rivals = published.groupby(["data", "framework"])[list(AVERAGES)].mean()
    ours = results.groupby("data").mean()
    table, above = [], 0
    for name, of_set in results.groupby("data"):
        for average in AVERAGES:
            others = [rivals.loc[(name, system), average] for system in SYSTEMS]
            above += int((of_set[average] > max(others)).sum())
            values = [ours.loc[name, average], of_set[average].min(), *others]
            cells = [f"{value:.3f}".lstrip("0") for value in values]
            seconds = f"{ours.loc[name, 'fit_s']:.1f} s"
            table.append([str(name), average, *cells, seconds])
    heads = ["data set", "F1", "fgfm", "least of 20 seeds", *SYSTEMS.values(), "fit"]
    lines = markdown(heads, table, left=2)
    n = len(results) * len(AVERAGES)
    text = f"{above} of our {n} results are above the mean of the better system"
    return "\n".join([*lines, "", f"{text}, which had 300 s of all cores for each."]) + "\n"


def main() -> None:
    """Run all seeds, store the results and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.automl", description=__doc__)
    parser.add_argument("--out", type=Path, default=STORED, help="folder (default: %(default)s)")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="processes (default: 1)")
    options = parser.parse_args()
    published = pd.read_csv(STORED / "published.csv")
    tasks = published[["data", "seed"]].drop_duplicates().itertuples(index=False)
    rows = Parallel(n_jobs=options.jobs)(delayed(run)(name, seed) for name, seed in tasks)
    results = pd.DataFrame(rows)
    store(options.out / "results.csv", results)
    publish(options.out, {"summary.md": summary(published, results)}, check=False)


if __name__ == "__main__":
    main()
