"""Compare ``FClassifier()`` with 28 published methods: ``python -m benchmarks.study``.

Bogatinovski et al. (Expert Systems with Applications, 2022, arXiv:2102.07113) publish the F1 of
rows, micro F1 and macro F1 of 28 methods; ``published.csv`` has those of the data sets that are
read here. Their splits are not published: ours are random, two thirds of the rows for training.
One classifier is fitted for each split, and decides for each of the three averages. On the first
split of each data set, rules that a user could write are compared on the same probabilities, with
thresholds tuned on cross-validated probabilities of the training rows.

Results are stored as they are computed, and a run that was stopped continues. ``--check`` computes
nothing: it verifies the tables and sentences of the documentation from the stored results.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.model_selection import ShuffleSplit, cross_val_predict

from benchmarks.datasets import FOLDER, read
from benchmarks.stored import AVERAGES, DOCS, compute, markdown, publish
from fgfm import FClassifier
from fgfm._utils.atomic import atomic_file
from fgfm.decision import from_marginals
from fgfm.metrics import f_measure

STORED = DOCS / "benchmark" / "study"
OURS = "fgfm"
RULES = {
    "half": "p > 0.5",
    "threshold": "one tuned threshold",
    "thresholds": "one tuned threshold for each label",
    "independent": "F-optimal for independent labels",
    OURS: "the decision of the classifier",
}
FILES = {"tmc2007_500": "tmc2007_500_kdis"}  # the version of the study
FEW_ROWS, MANY, FEW = 2500, 10, 3  # number of splits: MANY below FEW_ROWS rows, otherwise FEW

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[Any]


def run(name: str, split: int) -> list[dict[str, Any]]:
    """Fit the classifier to a split of a data set, and score its decisions, where 0/0 is 0."""
    X, Y = read(FILES.get(name, name))
    n_splits = number_of_splits(len(Y))
    train, test = list(ShuffleSplit(n_splits, train_size=2 / 3, random_state=0).split(Y))[split]
    model = FClassifier(zero_division=0.0, random_state=0)
    start = time.process_time()
    model.fit(X[train], Y[train])
    seconds = time.process_time() - start
    rows = []

    def store(average: str, rule: str, labels: Any, expected: float = np.nan) -> None:
        f1 = f_measure(Y[test], labels, average=average, zero_division=0.0)
        rows.append(
            {"data": name, "split": split, "average": average, "rule": rule, "f1": f1}
            | {"expected_f": expected, "fit_s": seconds}
        )

    for average in AVERAGES:
        labels, expected = model.decide(X[test], average=average)
        store(average, OURS, labels, float(np.mean(expected)))
    if split == 0:
        tuned = cross_val_predict(model, X[train], Y[train], cv=3, method="predict_proba")
        for average, rule, labels in other_rules(tuned, Y[train], model.predict_proba(X[test])):
            store(average, rule, labels)
    return rows


def number_of_splits(n: int) -> int:
    """Return the number of splits of a data set of n rows."""
    return MANY if n < FEW_ROWS else FEW


def other_rules(tuned: Floats, Y: Labels, p: Floats) -> Iterator[tuple[str, str, Labels]]:
    """Yield the decisions of other rules, tuned on other rows with labels Y, for rows with p."""
    cuts = [
        best_threshold(q[:, None], y[:, None], "micro") for q, y in zip(tuned.T, Y.T, strict=True)
    ]
    for average in AVERAGES:
        yield average, "half", p > 0.5
        yield average, "threshold", p >= best_threshold(tuned, Y, average)
        yield average, "independent", from_marginals(p, average=average, zero_division=0.0).labels
        yield average, "thresholds", p >= np.array(cuts)


def best_threshold(p: Floats, Y: Labels, average: str) -> float:
    """Return the best of 0.01, ..., 0.99 and 200 quantiles of the probabilities."""
    quantiles = np.quantile(p, np.linspace(0.0, 1.0, 201))
    grid = np.unique(np.r_[np.arange(1, 100) / 100.0, quantiles[quantiles > 0.0]])
    scores = [f_measure(Y, p >= t, average=average, zero_division=0.0) for t in grid]
    return float(grid[int(np.argmax(scores))])


class Standings:
    """Our F1 beside that of the published methods: frames with a row per data set and average."""

    def __init__(self, published: pd.DataFrame, results: pd.DataFrame) -> None:
        # The study has no result where a cell is empty or zero.
        methods = published.set_index(["data", "average"]).replace(0.0, np.nan)
        of_rule = results[results.rule == OURS].groupby(["data", "average"])
        self.f1, self.spread = of_rule.f1.mean(), of_rule.f1.std()
        self.methods = methods.loc[self.f1.index]
        self.best = self.methods.max(axis=1)
        self.excess = (of_rule.expected_f.mean() - self.f1).unstack("average")
        # Best first; a method without a result is ranked last.
        both = self.methods.assign(**{OURS: self.f1})
        ranks = both.rank(axis=1, ascending=False, na_option="bottom")
        self.ranks = ranks.groupby("average").mean().T
        first = results[results.split == 0]
        self.rules = first.pivot_table("f1", ["data", "average"], "rule")

    def sentences(self) -> list[str]:
        """Return the sentences that the documentation and the README quote."""
        ahead, n = (self.f1 > self.best).sum(), len(self.f1)
        ranks = self.ranks
        others = ranks.drop(OURS)
        means = self.rules.groupby("average").mean()
        gain = means[OURS] - means[["threshold", "thresholds"]].max(axis=1)
        behind = (self.best - self.f1).groupby("data").mean()
        furthest = behind[behind > 0.01].sort_values(ascending=False)
        names = ", ".join(f"{name} {value:.3f}" for name, value in furthest.items()) or "none"
        return [
            f"Ahead of the best of 28 published methods in {ahead} of {n} comparisons.",
            "Mean rank among 29 methods: "
            + ", ".join(
                f"{average} {ranks.loc[OURS, average]:.1f} (the next, "
                f"{others[average].idxmin()}, {others[average].min():.1f})"
                for average in AVERAGES
            )
            + ".",
            f"Behind the best of 28 by more than 0.01, mean of the three averages: {names}.",
            "Gain of the decision over the better of two rules, one tuned threshold and one for "
            "each label, on the same probabilities: "
            + ", ".join(f"{average} {gain[average]:+.3f}" for average in AVERAGES)
            + ".",
        ]

    def table(self) -> str:
        """Return the tables in Markdown."""
        rows = []
        for name in self.f1.index.unique("data"):
            cells = []
            for key in ((name, average) for average in AVERAGES):
                f1, best = f"{self.f1[key]:.3f}", f"{self.best[key]:.3f}"
                f1 = f"**{f1}**" if self.f1[key] > self.best[key] else f1
                method = self.methods.loc[key].idxmax()
                cells += [f"{f1} ± {self.spread[key]:.3f}", f"{best} {method}"]
            rows.append([name, *cells])
        heads = [head for average in AVERAGES for head in (average, "best of 28")]
        return without_zeros(markdown(["data set", *heads], rows))

    def rules_table(self) -> str:
        """Return the tables of rules on the same probabilities, and of what was expected."""
        rules = self.rules.groupby("average").mean()
        rows = [
            [text, *(f"{rules.loc[average, rule]:.3f}" for average in AVERAGES)]
            for rule, text in RULES.items()
        ]
        lines = markdown(["rule, on the same probabilities", *AVERAGES], rows)
        excess = {"mean": self.excess.mean(), "largest": self.excess.max()}
        rows = [
            [f"{text} of the data sets", *(f"{value[average]:+.3f}" for average in AVERAGES)]
            for text, value in excess.items()
        ]
        lines += ["", *markdown(["expected minus obtained F1", *AVERAGES], rows)]
        return without_zeros(lines)

    def draw(self, path: Path) -> None:
        """Draw the differences to the best published method, as PNG."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7.0, 6.2), layout="constrained")
        ax = figure.subplots()
        difference = (self.f1 - self.best).unstack("average")[list(AVERAGES)]
        difference = difference.loc[difference.mean(axis=1).sort_values().index]
        y = np.arange(len(difference))
        ax.axvline(0.0, color="#000000", linewidth=0.8)
        for average, marker, colour in zip(
            AVERAGES, "osD", ("#D55E00", "#0072B2", "#009E73"), strict=True
        ):
            ax.plot(difference[average], y, marker, color=colour, markersize=5, label=average)
        ax.set_yticks(y, difference.index)
        ax.set_xlabel("F1 of FClassifier() minus that of the best of 28 published methods")
        ax.grid(True, axis="x", color="#E5E5E5", linewidth=0.6)
        ax.set_axisbelow(True)
        ax.legend(frameon=False, loc="lower right")
        with atomic_file(path) as file:
            figure.savefig(file, format="png", dpi=150)


def without_zeros(lines: list[str]) -> str:
    """Return lines as a text in which .5 stands for 0.5."""
    return re.sub(r"\b0\.", ".", "\n".join(lines)) + "\n"


def misquoted(sentences: list[str]) -> Iterator[str]:
    """Yield where the README and the first page differ from the sentences that they quote."""
    for page in (DOCS.parent / "README.md", DOCS / "index.md"):
        text = re.sub(r"\s+", " ", page.read_text())
        for sentence in sentences:
            stem = re.split(r"\d|:", sentence)[0]
            if stem in text and sentence not in text:
                yield f"{page.name} has '{stem}...', but not: {sentence}"


def main() -> None:
    """Run the splits, print the standings, and write tables and figure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.study", description=__doc__)
    parser.add_argument("datasets", nargs="*", help="data sets (default: all)")
    parser.add_argument("--out", type=Path, default=STORED, help="folder (default: %(default)s)")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--check", action="store_true", help="verify what is published")
    options = parser.parse_args()
    published = pd.read_csv(STORED / "published.csv")
    if not options.check:
        names = options.datasets or sorted(set(published["data"]))
        missing = [n for n in names if not (FOLDER / f"{FILES.get(n, n)}.npz").exists()]
        if missing:
            parser.error(f"{FOLDER} has no {', '.join(missing)}: set FGFM_DATA")
        sizes = {name: len(read(FILES.get(name, name))[1]) for name in names}
        tasks = [
            (name, split)
            for name in sorted(names, key=sizes.__getitem__)
            for split in range(number_of_splits(sizes[name]))
        ]
        compute(options.out / "results.csv", ("data", "split"), tasks, run, n_jobs=options.jobs)
    standings = Standings(published, pd.read_csv(options.out / "results.csv"))
    sentences = standings.sentences()
    summary = "\n".join(f"- {sentence}" for sentence in sentences) + "\n"
    texts = {"summary.md": summary, "table.md": standings.table()}
    texts["rules.md"] = standings.rules_table()
    publish(options.out, texts, check=options.check, wrong=list(misquoted(sentences)))
    standings.draw(options.out / "differences.png")


if __name__ == "__main__":
    main()
