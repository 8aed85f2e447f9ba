"""Level and power of the tests of conditional independence.

``python -m benchmarks.independence [--quick]`` prints the rejection rates for labels that are
independent given the features, which should be alpha: of G tests given known strata, and of the
tests of `fgfm.ILFCompo` given the features, among which "mi" and "moments" have to select. It then
prints how often a dependent pair of labels is found; a figure of this table goes to ``outputs/``.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm.factors import GCM, MutualInformation
from fgfm.factors._contingency import encode_labels, make_strata  # faster than g_test one by one
from fgfm.factors._g_batch import DegreesOfFreedom, g_test_columns

__all__ = [
    "DEPENDENT",
    "INDEPENDENT",
    "METHODS",
    "calibration",
    "calibration_in_strata",
    "main",
    "power",
]

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]
Data = tuple[Floats, Labels]

ALPHAS = (0.01, 0.05)
N_LABELS = 12  # 66 pairs


# Data with labels that are independent given X -------------------------------------------------


def _expit(logits: Floats) -> Floats:
    return 1.0 / (1.0 + np.exp(-logits))


def _draw(rng: np.random.Generator, P: Floats) -> Labels:
    return (rng.random(P.shape) < P).astype(np.int64)


def linear(rng: np.random.Generator, n: int, m: int) -> Data:
    """Draw labels by logistic regressions on 6 features."""
    X = rng.normal(size=(n, 6))
    return X, _draw(rng, _expit(0.8 * X @ rng.normal(size=(6, m))))


def wide(rng: np.random.Generator, n: int, m: int) -> Data:
    """Draw labels by logistic regressions on 10 of 60 features."""
    X = rng.normal(size=(n, 60))
    return X, _draw(rng, _expit(0.5 * X[:, :10] @ rng.normal(size=(10, m))))


def smooth(rng: np.random.Generator, n: int, m: int) -> Data:
    """Draw labels by waves along one of 6 features and parabolas along another."""
    X = rng.normal(size=(n, 6))
    wave = 1.5 * np.sin(2.0 * X[:, :1] + 6.0 * rng.random(m))
    return X, _draw(rng, _expit(wave + X[:, 1:2] ** 2 * rng.normal(size=m) - 0.5))


def strong(rng: np.random.Generator, n: int, m: int) -> Data:
    """Draw labels that one of 6 features nearly determines, all of them."""
    X = rng.normal(size=(n, 6))
    logits = 3.0 * X[:, :1] * rng.choice([-1.0, 1.0], m) + 0.5 * rng.normal(size=m)
    return X, _draw(rng, _expit(logits))


def shared(rng: np.random.Generator, n: int, m: int) -> Data:
    """Draw all labels by the same steep logistic regression on 10 features."""
    X = rng.normal(size=(n, 10))
    return X, _draw(rng, _expit(np.repeat(3.0 * X.sum(axis=1, keepdims=True) / 10**0.5, m, 1)))


def steps(rng: np.random.Generator, n: int, m: int) -> Data:
    """Draw all labels by the same step along the sum of 5 features, with some noise."""
    X = rng.normal(size=(n, 5))
    P = np.where(X.sum(axis=1, keepdims=True) > 0.0, 0.9, 0.1)
    return X, _draw(rng, np.repeat(P, m, 1))


def strata(rng: np.random.Generator, n: int, m: int) -> Data:
    """Draw labels with a random probability in each of 64 strata of 6 binary features."""
    X = rng.integers(0, 2, (n, 6))
    P = rng.random((64, m))[X @ 2 ** np.arange(6)]
    return X.astype(float), _draw(rng, P)


def xor(rng: np.random.Generator, n: int, m: int) -> Data:
    """Draw labels by the sign of a product of two of 6 features, uninformative by themselves."""
    X = rng.normal(size=(n, 6))
    effect = 0.4 * rng.random(m) * rng.choice([-1.0, 1.0], m)
    return X, _draw(rng, 0.5 + np.sign(X[:, :1] * X[:, 1:2]) * effect)


def rare(rng: np.random.Generator, n: int, m: int) -> Data:
    """Draw labels with frequencies of 1 to 10 percent, by logistic regressions."""
    X = rng.normal(size=(n, 6))
    return X, _draw(rng, _expit(0.6 * X @ rng.normal(size=(6, m)) - rng.uniform(3.0, 5.0, m)))


INDEPENDENT = {
    f.__name__: f for f in (linear, wide, smooth, strong, shared, steps, strata, rare, xor)
}


# Data with one dependent pair of labels, the first two -----------------------------------------


def constant_sign(rng: np.random.Generator, n: int, strength: float) -> Data:
    """Draw six labels, the second a copy of the first in a share of the rows."""
    X, Y = linear(rng, n, 6)
    Y[:, 1] = np.where(rng.random(n) < strength, Y[:, 0], Y[:, 1])
    return X, Y


def changing_sign(rng: np.random.Generator, n: int, strength: float) -> Data:
    """Draw six labels, the first two equal if a feature is positive, and opposite otherwise."""
    X, Y = linear(rng, n, 6)
    copy = np.where(X[:, 0] > 0, Y[:, 0], 1 - Y[:, 0])
    Y[:, 1] = np.where(rng.random(n) < strength, copy, Y[:, 1])
    return X, Y


def strata_sign(rng: np.random.Generator, n: int, strength: float) -> Data:
    """Draw six labels, the first two equal or opposite at random in 16 strata."""
    X, Y = strata(rng, n, 6)
    alike = rng.random(16) < 0.5
    copy = np.where(alike[X[:, :4].astype(int) @ 2 ** np.arange(4)], Y[:, 0], 1 - Y[:, 0])
    Y[:, 1] = np.where(rng.random(n) < strength, copy, Y[:, 1])
    return X, Y


def strata_copy(rng: np.random.Generator, n: int, strength: float) -> Data:
    """Draw six labels in 64 strata, the second a copy of the first in a share of the rows."""
    X, Y = strata(rng, n, 6)
    Y[:, 1] = np.where(rng.random(n) < strength, Y[:, 0], Y[:, 1])
    return X, Y


DEPENDENT = {f.__name__: f for f in (constant_sign, changing_sign, strata_copy, strata_sign)}


# The tests -------------------------------------------------------------------------------------


def _gcm(X: Floats, Y: Labels, seed: int) -> dict[str, Floats]:
    """Return p-values of the plain and of the weighted test, from the same residuals."""
    return {
        "gcm, plain": GCM(weights=None, random_state=seed).pairs(X, Y).p_values,
        "gcm": GCM(random_state=seed).pairs(X, Y).p_values,
    }


def _discrete(X: Floats, Y: Labels, seed: int) -> dict[str, Floats]:
    """Return p-values of the tests for discrete features, if the features are discrete."""
    if not set(np.unique(X)) <= {0.0, 1.0}:
        return {}
    whole = X.astype(int)
    return {df: MutualInformation(df=df).pairs(whole, Y).p_values for df in ("mi", "moments")}


# Each returns p-values of all pairs, (m, m), by name, for features, labels and seed.
METHODS: list[Callable[[Floats, Labels, int], dict[str, Floats]]] = [_gcm, _discrete]
KINDS = ("mi", "moments", "g")  # degrees of freedom of G tests


class Row(NamedTuple):
    """Rejection rates of a test at each of `ALPHAS`, and the number of pairs."""

    data: str
    n: int
    strength: float
    test: str
    rates: tuple[float, ...]
    pairs: int


def _p_values(X: Floats, Y: Labels, seed: int) -> dict[str, Floats]:
    varied = (Y.min(axis=0) < Y.max(axis=0)).nonzero()[0]
    p_values: dict[str, Floats] = {}
    for method in METHODS:
        for name, p in method(X, Y[:, varied], seed).items():
            p_values[name] = np.ones((Y.shape[1], Y.shape[1]))
            p_values[name][np.ix_(varied, varied)] = p
    return p_values


def _row(data: str, n: int, strength: float, test: str, p: Sequence[Any]) -> Row:
    flat = np.concatenate([np.ravel(part) for part in p])
    rates = tuple(float(np.mean(flat <= alpha)) for alpha in ALPHAS)
    return Row(data, n, strength, test, rates, len(flat))


def calibration(name: str, n: int, repeats: int) -> list[Row]:
    """Return rejection rates under independence, one row for each test."""
    found: dict[str, list[Floats]] = {}
    for seed in range(repeats):
        rng = np.random.default_rng([seed, n])
        for test, p in _p_values(*INDEPENDENT[name](rng, n, N_LABELS), seed).items():
            found.setdefault(test, []).append(p[np.triu_indices(N_LABELS, 1)])
    return [_row(name, n, 0.0, test, p) for test, p in found.items()]


def calibration_in_strata(count: int, n: int, repeats: int, share: float = 1.0) -> list[Row]:
    """Return rejection rates of G tests given strata, for labels that are independent there.

    The probability of a label in a stratum is uniform on [0, share].
    """
    found: dict[str, list[Floats]] = {}
    for seed in range(repeats):
        rng = np.random.default_rng([seed, n, count])
        z = rng.integers(0, count, n)
        Y = _draw(rng, share * rng.random((count, N_LABELS))[z])
        Y = Y[:, Y.min(axis=0) < Y.max(axis=0)]
        m = Y.shape[1]
        problems = [make_strata(y, 2, z, count) for y in Y.T]
        for kind in KINDS:
            df = DegreesOfFreedom(kind)
            test = g_test_columns(problems, encode_labels(Y == 1), df, [None] * m)
            found.setdefault(kind, []).append(test.p_value[np.triu_indices(m, 1)])
    name = f"{count} {'stratum' if count == 1 else 'strata'}" if share == 1.0 else f"{count}, rare"
    return [_row(name, n, 0.0, kind, p) for kind, p in found.items()]


def power(name: str, n: int, strength: float, repeats: int) -> list[Row]:
    """Return how often the dependent pair is found, one row for each test."""
    found: dict[str, list[float]] = {}
    for seed in range(repeats):
        rng = np.random.default_rng([seed, n])
        for test, p in _p_values(*DEPENDENT[name](rng, n, strength), seed).items():
            found.setdefault(test, []).append(p[0, 1])
    return [_row(name, n, strength, test, p) for test, p in found.items()]


# The report ------------------------------------------------------------------------------------


def _beyond(rate: float, alpha: float, pairs: int) -> str:
    """Return a mark for a rate more than three standard errors above or below alpha."""
    error = math.sqrt(alpha * (1.0 - alpha) / pairs)
    return "+" if rate - alpha > 3.0 * error else "-" if alpha - rate > 3.0 * error else " "


def _print_head(title: str, sizes: dict[int, int]) -> None:
    print(f"{title}\nat alpha = 0.01 and 0.05 (error: binomial; + or -: beyond three of them)\n")
    print(f"{'data':<11}{'test':<11}" + "".join(f"{f'n = {n}':>14}" for n in sizes))
    errors = [
        " ".join(f"{math.sqrt(a * (1 - a) / (66 * repeats)):.3f} " for a in ALPHAS)
        for repeats in sizes.values()
    ]
    print((f"{'':<11}{'(error)':<11}" + "".join(f"{text:>14}" for text in errors)).rstrip())


def _print_rows(rows: Sequence[Row]) -> None:
    """Print the rows of one kind of data, one line for each test."""
    by_test: dict[str, list[str]] = {}
    for row in rows:
        cells = [
            f"{rate:.3f}{_beyond(rate, alpha, row.pairs)}"
            for rate, alpha in zip(row.rates, ALPHAS, strict=True)
        ]
        by_test.setdefault(row.test, []).append(" ".join(cells))
    for test, texts in by_test.items():
        name = rows[0].data if test == rows[0].test else ""
        line = f"{name:<11}{test:<11}" + "".join(f"{t:>14}" for t in texts)
        print(line.rstrip(), flush=True)


def _print_strata(sizes: dict[int, int]) -> None:
    _print_head("Rejected by G tests where labels are independent given strata", sizes)
    for share in (1.0, 0.1):  # labels of all kinds, and rare ones
        for count in (1, 4, 16, 64):
            _print_rows(
                [
                    row
                    for n, repeats in sizes.items()
                    for row in calibration_in_strata(count, n, repeats, share)
                ]
            )


def _print_calibration(sizes: dict[int, int], names: Iterable[str]) -> None:
    _print_head("Rejected where labels are independent given all features", sizes)
    for name in names:
        _print_rows([row for n, repeats in sizes.items() for row in calibration(name, n, repeats)])


def _print_power(n: int, strengths: Sequence[float], repeats: int) -> list[Row]:
    print(f"\nFound where the pair depends, alpha = 0.01, n = {n}, {repeats} data sets each\n")
    print(f"{'data':<15}{'test':<11}" + "".join(f"{s:>7g}" for s in strengths))
    rows: list[Row] = []
    for name in DEPENDENT:
        found = [row for s in strengths for row in power(name, n, s, repeats)]
        rows += found
        for test in dict.fromkeys(row.test for row in found):
            rates = [row.rates[0] for row in found if row.test == test]
            print(f"{name:<15}{test:<11}" + "".join(f"{r:>7.2f}" for r in rates), flush=True)
    return rows


def _draw_power(rows: Sequence[Row], path: Path) -> bool:
    """Draw the power curves, if matplotlib is installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    figure = Figure(figsize=(2.8 * len(DEPENDENT), 3.0), layout="constrained")
    axes = figure.subplots(1, len(DEPENDENT), sharey=True, squeeze=False)[0]
    for ax, name in zip(axes, DEPENDENT, strict=True):
        for test in dict.fromkeys(row.test for row in rows):
            curve = [(r.strength, r.rates[0]) for r in rows if (r.data, r.test) == (name, test)]
            if curve:
                ax.plot(*zip(*curve, strict=True), marker="o", markersize=4, label=test)
        ax.axhline(0.01, color="0.6", linewidth=0.8)
        ax.set(title=name.replace("_", " "), xlabel="strength", ylim=(-0.03, 1.03))
    axes[0].set_ylabel("found at alpha = 0.01")
    axes[-1].legend(frameon=False, fontsize="small")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    return True


def main(arguments: list[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.independence")
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, to check that everything runs"
    )
    parser.add_argument(
        "--data",
        nargs="+",
        choices=sorted(INDEPENDENT),
        metavar="NAME",
        help="only the level on these data, at 200 and 1000 rows: " + ", ".join(INDEPENDENT),
    )
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    if options.data:
        _print_calibration({200: 12, 1000: 6}, options.data)
        return
    repeats = 10 if options.quick else 100
    _print_strata(dict.fromkeys((50, 200, 1000, 5000), repeats))
    print()
    sizes = {200: 4, 500: 2} if options.quick else {200: 24, 500: 12, 1500: 6, 5000: 3}
    _print_calibration(sizes, INDEPENDENT)
    strengths = (0.0, 0.2, 0.4) if options.quick else (0.0, 0.1, 0.2, 0.3, 0.4, 0.6)
    rows = _print_power(500, strengths, 5 if options.quick else 25)
    path = Path("outputs") / "independence_power.png"
    if _draw_power(rows, path):
        print(f"\nwritten: {path}")
    print(f"took {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
