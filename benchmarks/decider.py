"""Compare ``FDecider`` with tuned thresholds behind models: ``python -m benchmarks.decider``.

A pair is a data set and a learner. The learner is fitted to training rows; every rule is tuned on
the same validation rows (the out-of-bag rows of a forest, otherwise 30 % of the training rows) and
scored on test rows, where 0/0 is 1. "limit" is not a rule: its threshold is tuned on the test rows
themselves. Probabilities are stored in the folder ``--cache``: with them
``--again`` computes the rules only. ``--check`` computes nothing: it verifies the published tables
from the stored results. ``--scores`` compares behind models whose output is no probability:
decision values, raw margins and logits, read with ``FDecider(scores=True)``; "half" is then 0, and
"f-optimal" takes their sigmoid.

The recipe of ``FDecider`` was chosen on the data sets of `DEVELOPMENT`; the others confirm it.
"""

from __future__ import annotations

import argparse
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse
from scipy.special import expit, logit, stdtrit
from scipy.stats import norm
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import LinearSVC

from benchmarks.datasets import FOLDER, load
from benchmarks.stored import AVERAGES, DOCS, compute, markdown, publish
from fgfm import FDecider, f_measure
from fgfm._utils.atomic import atomic_file
from fgfm.decision import from_marginals

STORED = DOCS / "benchmark" / "decider"
CACHE = Path("outputs") / "decider"
DEVELOPMENT = (
    "cal500", "emotions", "enron", "flags", "foodtruck", "genbase", "image", "langlog", "medical",
    "reutersk500", "scene", "stackex_chess", "yeast",
)  # fmt: skip
CONFIRMATION = (
    "bibtex", "corel5k", "eukaryote_go", "gnegativego", "gnegativepseaac", "gpositivego",
    "gpositivepseaac", "ohsumed", "plantgo", "stackex_philosophy", "virusgo", "viruspseaac",
    "yahoo_arts",
)  # fmt: skip
LEVEL = 0.005  # of F1: two rules that differ by less are level
OURS, TUNED = "fdecider", ("threshold", "thresholds", "micromacro")
NEAR = 0.03  # of F1, for expected_f
DRAWS = 20  # of test rows, for the sampling error of F1
MOST_LABELS = 10  # of a pair that are taken as binary problems: the most frequent ones

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[Any]


class Rows(NamedTuple):
    """Probabilities, or scores, and labels of the validation rows and of the test rows."""

    p_val: Floats
    Y_val: Labels
    p_test: Floats
    Y_test: Labels
    scores: bool = False

    def decider(self, average: str = "samples") -> FDecider:
        """Return an unfitted decider."""
        return FDecider(average=average, scores=self.scores)

    @property
    def half(self) -> float:
        """The threshold of models whose output is taken as it is."""
        return 0.0 if self.scores else 0.5


# Learners: training rows and test rows -> validation rows (numbers), their probabilities, and
# those of the test rows.
Fitted = tuple[npt.NDArray[np.int64], Floats, Floats]
TREES, CHUNK = 150, 10  # trees of many labels are large: few are in memory at a time


def fit_forest(X: Any, Y: Labels, X_test: Any) -> Fitted:
    """Fit 150 full trees of all labels; validation rows are those that a tree has not seen."""
    held_out, count = np.zeros(Y.shape), np.zeros(len(Y))
    test = np.zeros((X_test.shape[0], Y.shape[1]))
    X, X_test = (one.astype(np.float32) for one in (X, X_test))
    for seed in range(TREES // CHUNK):
        forest = RandomForestClassifier(CHUNK, random_state=seed).fit(X, Y)
        for tree, rows in zip(forest.estimators_, forest.estimators_samples_, strict=True):
            unseen = np.setdiff1d(np.arange(len(Y)), rows)
            held_out[unseen] += _of_class_1(forest.classes_, tree.predict_proba(X[unseen]))
            count[unseen] += 1.0
            test += _of_class_1(forest.classes_, tree.predict_proba(X_test))
    rows = np.flatnonzero(count)
    return rows, held_out[rows] / count[rows, None], test / TREES


def _of_class_1(classes: Sequence[Any], proba: Sequence[Floats]) -> Floats:
    """Return the probabilities of class 1 of each label, zeros where it does not occur."""
    columns = [
        p[:, list(c).index(1)] if 1 in c else np.zeros(len(p))
        for c, p in zip(classes, proba, strict=True)
    ]
    return np.column_stack(columns)


def _held_out(fit: Callable[[Any, Labels, list[Any]], list[Floats]]) -> Callable[..., Fitted]:
    """Return a learner that keeps 30 % of the training rows for validation."""

    def fitted(X: Any, Y: Labels, X_test: Any) -> Fitted:
        order = np.random.default_rng(0).permutation(len(Y))
        val, train = np.split(order, [round(0.3 * len(Y))])
        p_val, p_test = fit(X[train], Y[train], [X[val], X_test])
        return val, p_val, p_test

    return fitted


def _neighbours(X: Any, Y: Labels, rows: list[Any]) -> list[Floats]:
    model = KNeighborsClassifier(10).fit(X, Y)
    return [_of_class_1(model.classes_, model.predict_proba(one)) for one in rows]


def _each_label(
    estimator: Any, method: str = "predict_proba", *, dense: bool = False
) -> Callable[[Any, Labels, list[Any]], list[Floats]]:
    """Return a function that fits an estimator to each label."""

    def fit(X: Any, Y: Labels, rows: list[Any]) -> list[Floats]:
        if dense:
            X, *rows = [one.toarray() if sparse.issparse(one) else one for one in (X, *rows)]
        varies = np.ptp(Y, axis=0) > 0
        model = OneVsRestClassifier(clone(estimator)).fit(X, Y[:, varies])
        return [_with_constants(getattr(model, method)(one), Y, varies) for one in rows]

    return fit


def _logits(X: Any, Y: Labels, rows: list[Any]) -> list[Floats]:
    return [logit(np.clip(p, 1e-15, 1.0 - 1e-15)) for p in _network(X, Y, rows)]


def _network(X: Any, Y: Labels, rows: list[Any]) -> list[Floats]:
    # Early stopping of scikit-learn compares whole label sets: it would stop at once.
    model = MLPClassifier(128, batch_size=32, max_iter=40, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, Y)
    return [model.predict_proba(one) for one in rows]


def _with_constants(p: Floats, Y: Labels, varies: npt.NDArray[np.bool_]) -> Floats:
    """Insert the labels that are constant on the training rows."""
    whole = np.tile(Y[0].astype(np.float64), (len(p), 1))
    whole[:, varies] = p.reshape(len(p), -1)
    return whole


_BOOSTING = HistGradientBoostingClassifier(early_stopping=False, random_state=0)
LEARNERS: dict[str, Callable[..., Fitted]] = {
    "forest": fit_forest,
    "neighbours": _held_out(_neighbours),
    "logistic": _held_out(_each_label(LogisticRegression(max_iter=300))),
    "boosting": _held_out(_each_label(_BOOSTING, dense=True)),
    "network": _held_out(_network),
}
SCORES: dict[str, Callable[..., Fitted]] = {
    "svm margins": _held_out(_each_label(LinearSVC(random_state=0), "decision_function")),
    "boosting margins": _held_out(_each_label(_BOOSTING, "decision_function", dense=True)),
    "network logits": _held_out(_logits),
}
MAX_SECONDS = 20.0  # of boosting, estimated


def too_large(name: str, learner: str) -> bool:
    """Return True for boosting whose estimated time exceeds the limit."""
    X, Y, *_ = load(name)
    (n, features), m = X.shape, Y.shape[1]
    return learner.startswith("boosting") and m * features * (6e-7 * n + 2e-3) > MAX_SECONDS


def probabilities(name: str, learner: str, cache: Path) -> Rows:
    """Return the probabilities of a learner, fitted unless they are stored."""
    path = cache / f"{name}-{learner.replace(' ', '-')}.npz"
    if not path.exists():
        split = load(name)
        val, p_val, p_test = (LEARNERS | SCORES)[learner](
            split.X_train, split.Y_train, split.X_test
        )
        cache.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as file:
            np.savez_compressed(
                file,
                p_val=p_val.astype(np.float32),
                Y_val=split.Y_train[val].astype(np.uint8),
                p_test=p_test.astype(np.float32),
                Y_test=split.Y_test.astype(np.uint8),
            )
    with np.load(path) as file:
        p_val, p_test = (file[key].astype(np.float64) for key in ("p_val", "p_test"))
        return Rows(p_val, file["Y_val"], p_test, file["Y_test"], learner in SCORES)


def rules(rows: Rows) -> Iterator[tuple[str, str, Labels, float]]:
    """Yield average, rule, decisions for the test rows, and the F1 that the rule expects."""
    p_val, Y_val, p, Y, scores = rows
    cuts, micromacro = label_cuts(p_val, Y_val), micromacro_cuts(p_val, Y_val)
    for average in AVERAGES:
        yield average, "half", p > rows.half, np.nan
        yield average, "threshold", p >= one_cut(p_val, Y_val, average), np.nan
        yield average, "thresholds", p >= cuts, np.nan
        yield average, "micromacro", p >= micromacro, np.nan
        yield average, "limit", p >= one_cut(p, Y, average), np.nan
        labels, expected = from_marginals(expit(p) if scores else p, average=average)
        yield average, "f-optimal", labels, float(np.mean(expected))
        decider = rows.decider(average).fit(p_val, Y_val)
        labels, expected = decider.decide(p)
        yield average, OURS, labels, float(np.mean(expected))
        yield average, "fdecider-rows", decider.predict(p), np.nan
        if average == "micro":
            q = decider.predict_proba(p)
            yield average, "limit, calibrated", q >= one_cut(q, Y, average), np.nan


def one_cut(p: Floats, Y: Labels, average: str) -> float:
    """Return the best single threshold: of 0.01, ..., 0.99 and percentiles of p."""
    quantiles = np.linspace(0.0, 1.0, 101)
    grid = np.r_[np.arange(1, 100) / 100.0, np.quantile(p, quantiles)]
    if Y.any():
        grid = np.r_[grid, np.quantile(p[Y.astype(bool)], quantiles)]
    grid = np.unique(grid)
    return float(grid[int(np.argmax([f_measure(Y, p >= t, average=average) for t in grid]))])


def label_cuts(p: Floats, Y: Labels) -> Floats:
    """Return the threshold of each label with the best F1, of all that separate two rows."""
    n, m = p.shape
    order = np.argsort(-p, axis=0, kind="stable")
    p = np.take_along_axis(p, order, axis=0)  # (n, m), decreasing
    hits = np.cumsum(np.take_along_axis(Y, order, axis=0), axis=0, dtype=np.int64)
    f = np.empty((n + 1, m))  # of the first k rows, for k = 0, ..., n
    f[0] = hits[-1] == 0
    f[1:] = 2.0 * hits / (np.arange(1, n + 1)[:, None] + hits[-1])
    f[1:n][p[1:] == p[:-1]] = -1.0  # no threshold separates equal probabilities
    edges = np.vstack([np.full(m, np.inf), (p[1:] + p[:-1]) / 2.0, np.minimum(p[-1], p[-1] / 2.0)])
    return np.asarray(np.take_along_axis(edges, f.argmax(axis=0)[None], axis=0)[0])


def micromacro_cuts(p: Floats, Y: Labels) -> Floats:
    """Return the thresholds of LibMultiLabel's `train_thresholding`, "micromacro-freq".

    From the most frequent label on, the threshold of a label maximises the micro F1 of the labels
    so far plus its share of their macro F1, where 0/0 is 0; it is the mean over three folds (Lin
    and Lin, "On the thresholding strategy for infrequent labels in multi-label classification",
    CIKM 2023). Folds are those of the validation rows, which the model has not seen.
    """
    fold = np.random.default_rng(0).permutation(len(p)) % 3
    cuts = np.zeros(p.shape[1])
    hits, sizes = 0, 0  # of the labels so far, in all folds
    for number, j in enumerate(np.argsort(-Y.sum(axis=0, dtype=np.int64), kind="stable"), start=1):
        best_hits, best_sizes, edges = 0, 0, []
        for k in range(3):
            x, y = p[fold == k, j], Y[fold == k, j].astype(np.int64)
            order = np.argsort(-x, kind="stable")
            x = x[order]
            tp = np.append(0, np.cumsum(y[order]))  # of the first 0, ..., n rows
            size = np.arange(len(tp)) + y.sum()
            macro = 2.0 * tp / np.maximum(size, 1)
            value = macro / number + 2.0 * (tp + hits) / np.maximum(size + sizes, 1)
            value[1:-1][x[1:] == x[:-1]] = -1.0  # no threshold separates equal probabilities
            best = int(np.argmax(value))
            ends = np.nextafter(x[0], np.inf), np.nextafter(x[-1], -np.inf)
            edges.append(np.concatenate([ends[:1], (x[1:] + x[:-1]) / 2.0, ends[1:]])[best])
            best_hits, best_sizes = best_hits + tp[best], best_sizes + size[best]
        cuts[j] = np.mean(edges)
        hits, sizes = hits + best_hits, sizes + best_sizes
    return cuts


def binary(rows: Rows) -> Iterator[tuple[str, float]]:
    """Yield rule and mean F1 of the most frequent labels, each a binary problem by itself."""
    frequent = np.argsort(-rows.Y_val.sum(axis=0, dtype=np.int64), kind="stable")[:MOST_LABELS]
    frequent = frequent[np.ptp(rows.Y_val[:, frequent], axis=0) > 0]
    p_val, Y_val, p, Y = (part[:, frequent] for part in rows[:4])
    deciders = [rows.decider().fit(a, y) for a, y in zip(p_val.T, Y_val.T, strict=True)]
    decided = [decider.predict(x) for decider, x in zip(deciders, p.T, strict=True)]
    yield "half", f_measure(Y, p > rows.half, average="macro")
    yield "threshold", f_measure(Y, p >= label_cuts(p_val, Y_val), average="macro")
    yield OURS, f_measure(Y, np.column_stack(decided), average="macro")
    yield "limit", f_measure(Y, p >= label_cuts(p, Y), average="macro")


def random_split(rows: Rows) -> Iterator[dict[str, Any]]:
    """Yield what `FDecider` expects and obtains if validation and test rows are drawn alike.

    Half of the standard splits are stratified: few labels are absent from the test rows.
    "error" is the standard deviation of F1 over bootstrap samples of the test rows.
    """
    rng = np.random.default_rng(0)
    n = len(rows.Y_val)
    order = rng.permutation(n + len(rows.Y_test))
    p, Y = np.vstack([rows.p_val, rows.p_test])[order], np.vstack([rows.Y_val, rows.Y_test])[order]
    draws = [rng.integers(len(order) - n, size=len(order) - n) for _ in range(DRAWS)]
    for average in AVERAGES:
        labels, expected = rows.decider(average).fit(p[:n], Y[:n]).decide(p[n:])
        scores = [f_measure(Y[n:][drawn], labels[drawn], average=average) for drawn in draws]
        yield {
            "average": average,
            "rule": "random split",
            "expected_f": float(np.mean(expected)),
        } | {"f1": f_measure(Y[n:], labels, average=average), "error": float(np.std(scores))}


def run(name: str, learner: str, cache: Path) -> list[dict[str, Any]]:
    """Score all rules on a pair, and the guarantee of `FDecider` at 95 % confidence."""
    rows = probabilities(name, learner, cache)
    found = [
        {"average": average, "rule": rule, "expected_f": expected}
        | {"f1": f_measure(rows.Y_test, labels, average=average)}
        for average, rule, labels, expected in rules(rows)
    ]
    found += random_split(rows)
    found += [{"average": "binary", "rule": rule, "f1": f1} for rule, f1 in binary(rows)]
    order = np.random.default_rng(0).permutation(len(rows.Y_val))
    fit, bound = np.array_split(order, 2)
    decider = rows.decider().fit(rows.p_val[fit], rows.Y_val[fit])
    found.append(
        {"average": "samples", "rule": "guarantee"}
        | {"bound": decider.lower_bound(rows.p_val[bound], rows.Y_val[bound], confidence=0.95)}
        | {"f1": f_measure(rows.Y_test, decider.predict(rows.p_test))}
    )
    columns = ("average", "rule", "expected_f", "bound", "error", "f1")
    missing = dict.fromkeys(columns, np.nan)
    return [{"data": name, "learner": learner} | missing | row for row in found]


def over_data(gain: pd.Series[float]) -> str:
    """Format the mean of a gain by pair, and its 95 % interval, with data sets as the units."""
    sums = (gain - gain.mean()).groupby(level="data").sum()
    error = np.sqrt(len(sums) / (len(sums) - 1) * (sums**2).sum()) / len(gain)
    width = float(stdtrit(len(sums) - 1, 0.975)) * error
    return f"{gain.mean():+.4f} ({gain.mean() - width:+.4f} to {gain.mean() + width:+.4f})"


def counts(gain: pd.Series[float]) -> str:
    """Format the numbers of pairs that are ahead, level and behind."""
    ahead, behind = (gain > LEVEL).sum(), (gain < -LEVEL).sum()
    return f"{ahead}, {len(gain) - ahead - behind}, {behind}"


class Scores:
    """The stored results, summarised for the data sets of development, the others, and all."""

    def __init__(self, results: pd.DataFrame) -> None:
        self.results = results
        chosen = results["data"].isin(DEVELOPMENT)
        groups = {"development": chosen, "confirmation": ~chosen, "all": chosen | ~chosen}
        self.groups = {name: results[mask] for name, mask in groups.items() if mask.any()}

    def matrix(self, group: str, average: str, value: str = "f1") -> pd.DataFrame:
        """Return a value by pair (rows) and rule (columns)."""
        part = self.groups[group].query("average == @average and rule != 'guarantee'")
        return part.pivot(index=["data", "learner"], columns="rule", values=value)

    def gain(self, group: str, average: str) -> pd.Series[float]:
        """Return the F1 of FDecider minus that of the better of the tuned thresholds."""
        f1 = self.matrix(group, average)
        # The better kind is chosen by its mean, not for each pair by its test rows.
        best = f1[list(TUNED)].mean().idxmax()
        return f1[OURS] - f1[best]

    def hardest(self) -> list[str]:
        """Return the lines of a table of gains where the better threshold is known in advance."""
        two = ["threshold", "thresholds"]
        rows = []
        for average in AVERAGES:
            f1 = self.matrix("all", average)
            for name, rival in (
                (f"{average}, for the average", f1[f1[two].mean().idxmax()]),
                (f"{average}, for each pair", f1[two].max(axis=1)),
            ):
                rows.append([name, over_data(f1[OURS] - rival), counts(f1[OURS] - rival)])
        heads = ["gain over the better of one threshold and one per label", "gain"]
        return markdown([*heads, "ahead, level, behind"], rows)

    def texts(self) -> dict[str, str]:
        """Return the files that pages include."""
        tables = {
            "summary.md": self.summary(),
            "hardest.md": self.hardest(),
            "limits.md": self.limits(),
            "expected.md": self.expected() + self.guarantee(),
        }
        return {name: re.sub(r"\b0\.", ".", "\n".join(t)) + "\n" for name, t in tables.items()}

    def summary(self) -> list[str]:
        """Return the lines of the table of F1 and gains."""
        names = (*TUNED, "f-optimal", "half")
        heads = ["data sets", "average", OURS, "gain", "ahead, level, behind", *names, "pairs"]
        rows = []
        for group in self.groups:
            for average in AVERAGES:
                f1, d = self.matrix(group, average), self.gain(group, average)
                means = [f"{f1[name].mean():.3f}" for name in (OURS, *names)]
                cells = [means[0], over_data(d), counts(d), *means[1:], str(len(f1))]
                rows.append([group, average, *cells])
        return markdown(heads, rows, left=2)

    def limits(self) -> list[str]:
        """Return the lines of a table of what a threshold tuned on the test rows would gain."""
        heads = {"threshold": "threshold", OURS: OURS, "limit": "tuned on the test rows"}
        heads["limit, calibrated"] = "the same, calibrated"
        rows = []
        for average in ("micro", "binary"):
            f1 = self.matrix("all", average)
            means = [f"{f1[rule].mean():.3f}" if rule in f1 else "" for rule in heads]
            rows.append([average, *means])
        return markdown(["what is left", *heads.values()], rows)

    def expected(self) -> list[str]:
        """Return the lines of a table of the F1 that FDecider expects minus what it obtains."""
        heads = ["expected minus obtained"]
        heads += [head for average in AVERAGES for head in (average, f"within {NEAR}")]
        rows = []
        for group in self.groups:
            cells: dict[str, list[str]] = {group: [], f"{group}, random split": []}
            exact = []
            for average in AVERAGES:
                d = self.matrix(group, average, "expected_f") - self.matrix(group, average)
                for name, rule in zip(cells, (OURS, "random split"), strict=True):
                    share = (d[rule].abs() <= NEAR).mean()
                    cells[name] += [f"{d[rule].mean():+.3f}", f"{share:.0%}"]
                error = self.matrix(group, average, "error")["random split"]
                exact += ["", f"{(2.0 * norm.cdf(NEAR / error) - 1.0).mean():.0%}"]
            cells["the same, if the expectation were known"] = exact
            rows += [[name, *row] for name, row in cells.items()]
        return markdown(heads, rows)

    def guarantee(self) -> list[str]:
        """Return a sentence on the lower bound."""
        bound = self.results.query("rule == 'guarantee'")
        missed = bound.bound - bound.f1
        held = f"The lower bound at 95 % held in {(missed <= 0.0).sum()} of {len(bound)} pairs"
        return ["", f"{held}, and was missed by at most {missed.max():.3f} in the others."]


def main() -> None:
    """Run the pairs without a stored result, print the summary, and write it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decider", description=__doc__)
    parser.add_argument("datasets", nargs="*", help="data sets (default: all)")
    parser.add_argument("--scores", action="store_true", help="learners whose output are scores")
    parser.add_argument("--learners", help="separated by commas (default: all)")
    parser.add_argument("--out", type=Path, help=f"folder (default: {STORED}, or its scores)")
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder (default: %(default)s)")
    parser.add_argument("--again", action="store_true", help="compute stored results again")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--check", action="store_true", help="verify what is published")
    options = parser.parse_args()
    options.out = options.out or (STORED / "scores" if options.scores else STORED)
    learners = list(SCORES if options.scores else LEARNERS)
    learners = options.learners.split(",") if options.learners else learners
    path = options.out / "results.csv"
    if not options.check:
        pairs = [
            (name, learner)
            for name in options.datasets or (*DEVELOPMENT, *CONFIRMATION)
            for learner in learners
            if (FOLDER / f"{name}.npz").exists() and not too_large(name, learner)
        ]
        if not pairs:
            parser.error(f"{FOLDER} has none of the data sets: set FGFM_DATA")
        run_pair = partial(run, cache=options.cache)
        how = {"n_jobs": options.jobs, "again": options.again}
        compute(path, ("data", "learner"), pairs, run_pair, **how)
    texts = Scores(pd.read_csv(path)).texts()
    texts = {"summary.md": texts["summary.md"]} if options.scores else texts
    publish(options.out, texts, check=options.check)


if __name__ == "__main__":
    main()
