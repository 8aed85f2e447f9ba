"""Compare ``FDecider(scores=True)`` with tuned thresholds on simulated scores.

``python -m benchmarks.scores`` prints what `docs/benchmark/scores.txt` has (10 minutes). Rows have
8 labels. Their scores are drawn in one of two ways:

- *latent*: y has the probability sigmoid(s), and scores are a monotone change of s, to a
  distribution with heavy tails (Student's t with 2 degrees of freedom, Cauchy) or a one-sided one;
- *classes*: scores of rows with the label, and of those without, are drawn from two such
  distributions, shifted or stretched. What is most probable need not have the largest score: with
  the last two, extreme scores say little.

The first table has the F1 for 2000 validation rows minus that of the best of two thresholds, one
for all labels and one for each, tuned on the same rows: the least and the mean difference over
shifts of -50 and 100 and scales of .01 and 100. The second table has few validation rows, and
labels with units and offsets of their own: the mean F1 minus that of a threshold per label.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit
from scipy.stats import cauchy, expon, norm, t

from benchmarks.decider import label_cuts, one_cut
from fgfm import FDecider, f_measure

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[Any]

AVERAGES = "samples", "macro", "micro", "weighted"
UNITS = tuple(product((-50.0, 100.0), (0.01, 100.0)))  # shift, scale
ROWS, FEW, NEW = 2000, (50, 100, 300), 6000
M = 8


def _quantiles(distribution: Any) -> Callable[[Floats], Floats]:
    """Return the change of normal scores to those of another distribution."""
    return lambda z: np.asarray(distribution.ppf(norm.cdf(z)))


LATENT: dict[str, Callable[[Floats], Floats]] = {
    "normal": lambda z: z,
    "t, 2 df": _quantiles(t(2)),
    "Cauchy": _quantiles(cauchy),
    "exponential": _quantiles(expon),
    "log-normal": np.exp,
}
# Scores of rows, from standard ones, labels and their strengths.
CLASSES: dict[str, Callable[[Any, Labels, Floats], Floats]] = {
    "normal": lambda rng, y, d: rng.normal(size=y.shape) + d * y,
    "exponential": lambda rng, y, d: rng.exponential(size=y.shape) * (1.0 + d * y),
    "log-normal": lambda rng, y, d: np.exp(rng.normal(size=y.shape) + d * y),
    "t, 2 df": lambda rng, y, d: rng.standard_t(2, size=y.shape) + 1.5 * d * y,
    "Cauchy": lambda rng, y, d: rng.standard_t(1, size=y.shape) + 2.0 * d * y,
}


def draw(way: str, kind: str, n: int, seed: int) -> tuple[Floats, Labels]:
    """Return scores and labels of n validation rows and of the new rows."""
    rng = np.random.default_rng(seed)
    frequency = np.exp(rng.uniform(np.log(0.03), np.log(0.4), M))
    strength = rng.uniform(1.0, 3.0, M)
    n += NEW
    common = 0.7 * rng.normal(size=(n, 1)) * rng.normal(size=M)
    if way == "classes":
        Y = rng.random((n, M)) < expit(logit(frequency) + common)
        return CLASSES[kind](rng, Y, strength), Y.astype(int)
    z = rng.normal(size=(n, M))
    Y = rng.random((n, M)) < expit(logit(frequency) + strength * z)
    return LATENT[kind](z + logit(frequency) / strength), Y.astype(int)


def differences(X: Floats, Y: Labels, n: int, *, one: bool) -> list[float]:
    """Return the F1 of `FDecider` minus that of thresholds, for each average.

    `one` threshold for all labels is tried too, and the better one on new rows is compared.
    """
    found = []
    each = X[n:] >= label_cuts(X[:n], Y[:n])
    for average in AVERAGES:
        f = [f_measure(Y[n:], each, average=average)]
        if one:
            f.append(f_measure(Y[n:], X[n:] >= one_cut(X[:n], Y[:n], average), average=average))
        decider = FDecider(average=average, scores=True).fit(X[:n], Y[:n])
        found.append(decider.score(X[n:], Y[n:]) - max(f))
    return found


def many_rows(seeds: int) -> None:
    """Print the table of 2000 validation rows."""
    print(f"{ROWS} validation rows: least (mean) difference over shifts and scales")
    _heads()
    for way, kinds in (("latent", LATENT), ("classes", CLASSES)):
        for kind in kinds:
            found = []
            for seed in range(seeds):
                X, Y = draw(way, kind, ROWS, seed)
                found.append([differences(a + b * X, Y, ROWS, one=True) for a, b in UNITS])
            mean = np.mean(found, axis=0)  # (U, A)
            least = zip(mean.min(axis=0), mean.mean(axis=0), strict=True)
            _line(f"{way}, {kind}", [f"{low:+.4f} ({middle:+.4f})" for low, middle in least])


def few_rows(seeds: int) -> None:
    """Print the table of few validation rows, and labels with units of their own."""
    print("\nUnits and offsets of their own: mean difference to a threshold per label")
    _heads()
    total = []
    for n in FEW:
        for way, kinds in (("latent", LATENT), ("classes", CLASSES)):
            for kind in kinds:
                found = []
                for seed in range(seeds):
                    X, Y = draw(way, kind, n, seed)
                    rng = np.random.default_rng(seed)
                    X = 10.0 * rng.normal(size=M) + np.exp(2.0 * rng.normal(size=M)) * X
                    found.append(differences(X, Y, n, one=False))
                total.append(np.mean(found, axis=0))
                _line(f"{n} rows, {way}, {kind}", [f"{d:+.4f}" for d in total[-1]])
    _line("mean", [f"{d:+.4f}" for d in np.mean(total, axis=0)])


def _heads() -> None:
    _line("", list(AVERAGES))


def _line(name: str, cells: list[str]) -> None:
    print(f"{name:<32}" + "".join(f"{cell:>20}" for cell in cells), flush=True)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="draws of each problem")
    seeds = parser.parse_args().seeds
    many_rows(seeds)
    few_rows(5 * seeds)


if __name__ == "__main__":
    main()
