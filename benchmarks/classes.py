"""Compare macro F1 of rules for one class per row: ``python -m benchmarks.classes``.

The problems are the rows with exactly one label of real data sets; classes with fewer than 15 rows
are left out. Two thirds of the rows are training rows, 30 % of which are validation rows (of a
forest the out-of-bag rows); every rule is tuned on the validation rows and scored on test rows.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from benchmarks.datasets import FOLDER, read
from benchmarks.decider import NEAR, counts, label_cuts, over_data
from benchmarks.stored import DOCS, markdown, publish, store
from fgfm import FDecider
from fgfm.decision import from_classes

STORED = DOCS / "benchmark" / "classes"
NAMES = (
    "scene", "gnegativego", "gnegativepseaac", "plantgo", "eukaryote_go", "medical", "langlog",
    "reutersk500", "ohsumed", "yahoo_arts", "yahoo_business", "stackex_philosophy",
)  # fmt: skip
LEAST = 15
COLUMNS = ("data", "learner", "rows", "classes", "rule", "expected_f", "f1")
RULES = {
    "argmax": "the most probable class",
    "prior": "p / prior",
    "power": "p / prior^a, a tuned",
    "thresholds": "p / tuned one-vs-rest threshold",
    "ascent": "weights of classes by coordinate ascent on the validation rows",
    "f-optimal": "`from_classes`, probabilities as they are",
    "fdecider": "`FDecider`, rows together",
    "fdecider-rows": "`FDecider`, row by row",
}

Floats = npt.NDArray[np.float64]
Classes = npt.NDArray[np.int64]


def problem(name: str) -> tuple[Any, Classes]:
    """Return the features and classes of the rows with one label."""
    X, Y = read(name)
    single = Y.sum(axis=1) == 1
    y = Y.argmax(axis=1)
    frequent = np.flatnonzero(np.bincount(y[single]) >= LEAST)
    rows = np.flatnonzero(single & np.isin(y, frequent))
    return X[rows], np.searchsorted(frequent, y[rows])


def probabilities(learner: str, X: Any, y: Classes, X_test: Any) -> tuple[Floats, Classes, Floats]:
    """Return probabilities and classes of validation rows, and probabilities of test rows."""
    if learner == "forest":
        forest = RandomForestClassifier(150, oob_score=True, random_state=0).fit(X, y)
        seen = ~np.isnan(forest.oob_decision_function_).any(axis=1)
        return forest.oob_decision_function_[seen], y[seen], forest.predict_proba(X_test)
    train, val = train_test_split(np.arange(len(y)), test_size=0.3, stratify=y, random_state=0)
    scaler = MaxAbsScaler() if sparse.issparse(X) else StandardScaler()
    model = LogisticRegression(max_iter=300).fit(scaler.fit_transform(X[train]), y[train])
    p_val, p_test = (model.predict_proba(scaler.transform(one)) for one in (X[val], X_test))
    return p_val, y[val], p_test


def macro_f1(y: Classes, decided: Classes) -> float:
    """Return macro F1."""
    return float(f1_score(y, decided, average="macro", zero_division=0.0))


def rules(p_val: Floats, y_val: Classes, p: Floats) -> Iterator[tuple[str, Classes, float]]:
    """Yield the decisions of each rule for rows with probabilities p, and the F1 it expects."""
    C = p.shape[1]
    yield "argmax", p.argmax(axis=1), np.nan
    prior = np.bincount(y_val, minlength=C) / len(y_val)
    yield "prior", (p / prior).argmax(axis=1), np.nan
    powers = np.linspace(0.0, 1.5, 31)
    scores = [macro_f1(y_val, (p_val / prior**a).argmax(axis=1)) for a in powers]
    yield "power", (p / prior ** powers[int(np.argmax(scores))]).argmax(axis=1), np.nan
    cuts = np.clip(label_cuts(p_val, np.eye(C, dtype=np.int64)[y_val]), 1e-6, 1.0)
    yield "thresholds", (p / cuts).argmax(axis=1), np.nan
    yield "ascent", (p * ascend(p_val, y_val)).argmax(axis=1), np.nan
    labels, expected = from_classes(p)
    yield "f-optimal", np.asarray(labels), float(np.mean(expected))
    decider = FDecider(average="macro").fit(p_val, y_val)
    labels, expected = decider.decide(p)
    yield "fdecider", np.asarray(labels), float(np.mean(expected))
    yield "fdecider-rows", np.asarray(decider.predict(p)), np.nan


def ascend(p: Floats, y: Classes, sweeps: int = 3) -> Floats:
    """Return weights of classes with the best macro F1, changed one at a time."""
    weights = np.ones(p.shape[1])
    best = macro_f1(y, p.argmax(axis=1))
    for _ in range(sweeps):
        for c in range(len(weights)):
            for factor in (0.5, 0.7, 0.85, 1.2, 1.5, 2.0, 4.0):
                new = weights.copy()
                new[c] *= factor
                score = macro_f1(y, (p * new).argmax(axis=1))
                if score > best:
                    best, weights = score, new
    return weights


def summary(results: pd.DataFrame) -> str:
    """Return the mean macro F1 of each rule, and the table of problems, in Markdown."""
    table = results.pivot(index=["data", "learner"], columns="rule", values="f1")[list(RULES)]
    ranks = table.rank(axis=1, ascending=False).mean()
    rows = [
        [text, f"{table[rule].mean():.3f}", f"{ranks[rule]:.1f}"] for rule, text in RULES.items()
    ]
    lines = markdown(["rule", "macro F1", "rank of 8"], rows)
    best = table.drop(columns=["fdecider", "fdecider-rows"]).mean().idxmax()
    d = table["fdecider"] - table[best]
    lines += [
        "",
        f"`FDecider` against the best other rule by its mean ({RULES[str(best)]}): "
        f"{over_data(d)}; ahead, level, behind by more than .005 on {counts(d)} of {len(d)} "
        "problems.",
        "",
        "Expected minus obtained macro F1: " + ", ".join(_expected(results)) + ".",
    ]
    return "\n".join(lines) + "\n"


def _expected(results: pd.DataFrame) -> Iterator[str]:
    """Yield the mean, the mean absolute value, and the share of small differences."""
    for rule in ("f-optimal", "fdecider"):
        part = results[results["rule"] == rule]
        d = part["expected_f"] - part["f1"]
        yield (
            f"{RULES[rule]} {d.mean():+.3f} (mean absolute value {d.abs().mean():.3f}, "
            f"{(d.abs() <= NEAR).mean():.0%} within {NEAR})"
        )


def main() -> None:
    """Run the problems, print the summary, and write it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.classes", description=__doc__)
    parser.add_argument("datasets", nargs="*", default=NAMES, help="data sets (default: all)")
    parser.add_argument("--out", type=Path, default=STORED, help="folder (default: %(default)s)")
    parser.add_argument("--check", action="store_true", help="verify what is published")
    options = parser.parse_args()
    path = options.out / "results.csv"
    rows = []
    for name in [] if options.check else options.datasets:
        if not (FOLDER / f"{name}.npz").exists():
            parser.error(f"{FOLDER} has no {name}: set FGFM_DATA")
        X, y = problem(name)
        split = train_test_split(np.arange(len(y)), test_size=1 / 3, stratify=y, random_state=0)
        train, test = split
        for learner in ("logistic", "forest"):
            p_val, y_val, p = probabilities(learner, X[train], y[train], X[test])
            key = (name, learner, len(y), p.shape[1])
            for rule, decided, expected in rules(p_val, y_val, p):
                rows.append((*key, rule, expected, macro_f1(y[test], decided)))
            print(f"{name}, {learner}", file=sys.stderr, flush=True)
        store(path, pd.DataFrame(rows, columns=COLUMNS))
    publish(options.out, {"summary.md": summary(pd.read_csv(path))}, check=options.check)


if __name__ == "__main__":
    main()
