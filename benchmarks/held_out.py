"""Could decisions be better on held-out rows? ``python -m benchmarks.held_out [NAME ...]``.

The learner "auto" is fitted once to the training rows of each data set. Its held-out probabilities
are divided into five folds: the distribution of the number of labels and the exponent of the odds
are fitted to four of them, and so is a change of the decision, that of the best mean F1:

- shift: p(y) times exp(c |y|), a shift of all logits;
- slope: another exponent of the odds;
- both of them;
- beta: the decision for another beta;
- sigmoid: the calibration of `fgfm.FDecider` first, a slope and a shift for each label.

The first table has the gain in mean F1 on the fifth fold, the second that of changes that are
kept only if they gain two standard errors on the four folds. Test rows are not used.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.datasets import FOLDER
from benchmarks.deciders.summary import DEVELOPMENT
from benchmarks.environment import show_progress
from benchmarks.real.splits import load_split
from benchmarks.report import Column, Table
from fgfm import f_measure
from fgfm.cardinality import from_marginals
from fgfm.decider._calibration import ShrunkCalibrator
from fgfm.decider._entries import dense_entries
from fgfm.decision import from_cardinalities
from fgfm.estimation._exponent import powered
from fgfm.estimation._fitting import LearnerSettings, fit_models
from fgfm.estimation._models import StackPredictions
from fgfm.estimation._reweighted import ReweightedStrategy

FOLDS = 5
SHIFTS = (-0.4, -0.2, -0.1, 0.0, 0.1, 0.2, 0.4)
SLOPES = (0.5, 0.7, 0.85, 1.0, 1.2, 1.5)
BETAS = (0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0)
CHANGES = ("shift", "slope", "both", "beta", "sigmoid")

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


class _Given:
    """Held-out probabilities of the number of labels and of the labels."""

    left_one_out = True

    def __init__(self, mu: Floats, p: Floats) -> None:
        self.mu, self.p = mu, p

    def predict_proba(self, target: int) -> Floats:
        """Return the probabilities of the numbers of labels."""
        return self.mu

    def positive_proba(self, targets: slice) -> Floats:
        """Return the probabilities of the labels."""
        return self.p


class _Decisions:
    """F1 (n,) of decisions for all rows, by a model of the label set fitted to some rows."""

    def __init__(self, given: _Given, Y: Any, rows: Rows) -> None:
        self.Y = Y
        self.nonempty = bool(Y.any(axis=1).all())
        self.strategy = ReweightedStrategy()
        self.strategy.make_targets(Y, np.ones(len(Y), dtype=np.bool_))
        weight = np.zeros(len(Y))
        weight[rows] = 1.0
        self.strategy.fit_out_of_fold(given, Y, weight)  # type: ignore[arg-type]
        self.p = np.clip(given.p, self.strategy.margin, 1.0 - self.strategy.margin)
        self.d = self.strategy._combine(given).d  # type: ignore[arg-type]

    def f1(self, shift: float = 0.0, slope: float = 1.0, beta: float = 1.0) -> Floats:
        """Return the F1 of each row with a changed decision."""
        d = self.d * np.exp(shift * np.arange(self.d.shape[1]))
        d /= d.sum(axis=1, keepdims=True)
        odds = powered(self.p, slope * self.strategy.exponent)
        P = from_marginals(odds, d, method="condition")
        labels = from_cardinalities(P, distribution=d, beta=beta, nonempty=self.nonempty).labels
        return np.asarray(f_measure(self.Y, labels, per_row=True))


def _held_out(name: str) -> tuple[_Given, Any]:
    """Return held-out probabilities of the training rows, and their labels."""
    split = load_split(FOLDER / f"{name}.npz", features="raw")
    Y = split.Y_train.astype(np.bool_)
    targets = ReweightedStrategy().make_targets(Y, np.ones(len(Y), dtype=np.bool_))
    settings = LearnerSettings("auto", random_state=0)
    held_out = fit_models(split.X_train, targets, None, settings)[1]
    assert isinstance(held_out, StackPredictions)
    return _Given(held_out.predict_proba(0), held_out.positive_proba(slice(1, len(targets)))), Y


def _candidates(given: _Given, Y: Any, rows: Rows) -> Iterator[tuple[str, Floats]]:
    """Yield the F1 of all rows by each change, fitted to some rows; that of none comes first."""
    decisions = _Decisions(given, Y, rows)
    yield "none", decisions.f1()
    for slope in SLOPES:
        for shift in SHIFTS:
            f1 = decisions.f1(shift, slope)
            yield "both", f1
            if slope == 1.0:
                yield "shift", f1
            if shift == 0.0:
                yield "slope", f1
    for beta in BETAS:
        yield "beta", decisions.f1(beta=beta)
    p = dense_entries(given.p)
    calibrator = ShrunkCalibrator().fit(p.at(rows), Y[rows].astype(float), np.ones(len(rows)))
    yield "sigmoid", _Decisions(_Given(given.mu, calibrator.predict(p).p), Y, rows).f1()


def gains(given: _Given, Y: Any) -> tuple[list[float], list[float], float]:
    """Return the gain of each change on held-out rows, plain and if significant, and the F1."""
    fold = np.random.default_rng(0).permutation(len(Y)) % FOLDS
    plain, kept = (np.zeros((len(CHANGES), len(Y))) for _ in range(2))
    base = np.zeros(len(Y))
    for k in range(FOLDS):
        rows, others = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        best: dict[str, Floats] = {}
        for change, f1 in _candidates(given, Y, rows):
            if change not in best or f1[rows].mean() > best[change][rows].mean():
                best[change] = f1
        base[others] = best["none"][others]
        for c, change in enumerate(CHANGES):
            gain = best[change] - best["none"]
            plain[c, others] = gain[others]
            error = gain[rows].std() / np.sqrt(len(rows))
            kept[c, others] = gain[others] * (gain[rows].mean() > 2.0 * error)
    return plain.mean(axis=1).tolist(), kept.mean(axis=1).tolist(), float(base.mean())


def main(arguments: list[str] | None = None) -> None:
    """Measure and print both tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.held_out", description=__doc__)
    names = sorted(DEVELOPMENT)
    parser.add_argument("names", nargs="*", default=names, metavar="NAME", help="data sets")
    columns = [
        Column("data", left=True),
        Column("F1", "{:.4f}".format),
        *(Column(change, "{:+.4f}".format) for change in CHANGES),
    ]
    tables = [Table("Gain on held-out rows", columns), Table("The same, if significant", columns)]
    for name in parser.parse_args(arguments).names:
        show_progress(name)
        *both, f1 = gains(*_held_out(name))
        for table, values in zip(tables, both, strict=True):
            table.rows.append((name, f1, *values))
    show_progress("")
    for table in tables:
        table.rows.append(("mean", *np.mean([row[1:] for row in table.rows], axis=0)))
        print("\n".join(table.lines()) + "\n")


if __name__ == "__main__":
    main()
