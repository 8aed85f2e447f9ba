"""F1 of a nested family of label factors: ``python -m benchmarks.nested [NAME ...]``.

The p-values of `fgfm.ILFCompo` order all pairs of labels from weak to strong dependence. Each
threshold defines a partition into label factors, and higher thresholds finer ones: a nested
family, from one factor ("single") to one for each label ("independent"). All partitions use the
same models of the labels, fitted once; within a factor the cardinality distribution is learned as
by `fgfm.estimation.Reweighted`, from the distribution of independent labels alone. F1 is printed
for held-out rows of the training data, which could select a partition, and for the test rows.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import connected_components

from benchmarks.datasets import load
from benchmarks.report import Column, Table
from fgfm import ILFCompo, f_measure
from fgfm._kernels import poisson_binomial
from fgfm._utils.log_linear_pool import LogLinearPool
from fgfm.cardinality import from_marginals
from fgfm.decision import from_factors
from fgfm.estimation._fitting import LearnerSettings, fit_models
from fgfm.estimation._models import ModelTarget

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

NAMES = ("flags", "foodtruck", "emotions", "scene", "yeast", "image", "medical")
THRESHOLDS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 100)  # of -log10(p)


def partitions(p_values: Floats) -> list[list[Integers]]:
    """Return the nested family: one factor, components of ever stronger edges, single labels."""
    strength = -np.log10(np.maximum(np.minimum(p_values, p_values.T), 1e-300))
    np.fill_diagonal(strength, 0.0)
    m = len(strength)
    family = {(0,) * m: None}
    for threshold in THRESHOLDS:
        family.setdefault(tuple(connected_components(strength > threshold)[1].tolist()))
    family.setdefault(tuple(range(m)))
    return [[np.flatnonzero(np.array(part) == f) for f in range(max(part) + 1)] for part in family]


def counts(p: Floats, largest: int) -> Floats:
    """Return the distribution of the number of independent labels, 0 to `largest`."""
    d = np.empty((len(p), largest + 1))
    poisson_binomial(np.ascontiguousarray(p), d)
    return d


def estimates(held_out: Floats, Y: npt.NDArray[Any], p: Floats) -> tuple[Any, Any]:
    """Return P and d of one factor, for held-out rows and for test rows."""
    s = Y.sum(axis=1)
    seen = np.unique(s)
    largest = max(1, int(seen[-1]))
    stack = LogLinearPool().fit([counts(held_out, largest)[:, seen]], np.searchsorted(seen, s))
    answers = []
    for marginals in (held_out, p):
        d = np.zeros((len(marginals), largest + 1))
        d[:, seen] = stack.predict_proba([counts(marginals, largest)[:, seen]])
        answers.append((from_marginals(marginals, d, method="condition"), d))
    return answers[0], answers[1]


def measure(name: str) -> list[tuple[Any, ...]]:
    """Return a row for each partition: factors, largest, F1 held out, F1 on the test rows."""
    split = load(name)
    targets = [ModelTarget(y) for y in split.Y_train.T]
    models, judged = fit_models(
        split.X_train, targets, None, LearnerSettings(random_state=0), out_of_fold=True
    )
    assert judged is not None
    every = slice(0, len(targets))
    held_out = judged.positive_proba(every)
    p = models.predictions(split.X_test).positive_proba(every)
    finder = ILFCompo(random_state=0).fit(split.X_train, split.Y_train)
    nonempty = bool(split.Y_train.any(axis=1).all())
    rows = []
    for partition in partitions(finder.p_values_):
        parts = [estimates(held_out[:, f], split.Y_train[:, f], p[:, f]) for f in partition]
        f1 = []
        for k, truth in enumerate((split.Y_train, split.Y_test)):
            decided = from_factors(
                [part[k][0] for part in parts],
                [factor.tolist() for factor in partition],
                distributions=[part[k][1] for part in parts],
                nonempty=nonempty,
            )
            f1.append(f_measure(truth, decided.labels))
        rows.append((name, len(partition), max(map(len, partition)), *f1))
    return rows


def main(arguments: list[str] | None = None) -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nested", description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME", help="data sets")
    table = Table(
        "Mean instance F1 of a nested family of label factors, from one factor to single labels",
        [
            Column("data", left=True),
            Column("factors"),
            Column("largest"),
            Column("held out", lambda f: f"{f:.4f}"),
            Column("test", lambda f: f"{f:.4f}"),
        ],
    )
    for name in parser.parse_args(arguments).names:
        try:
            table.rows += measure(name)
        except FileNotFoundError as error:
            sys.exit(str(error))
    print("\n".join(table.lines()))


if __name__ == "__main__":
    main()
