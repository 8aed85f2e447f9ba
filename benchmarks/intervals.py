"""Coverage and width of 95 % intervals for F-measures, by simulation.

``python -m benchmarks.intervals [--draws N]`` draws test sets of labels and of decisions by a
noisy model, and compares with the F-measure of a million rows: the coverage of
`fgfm.metrics.f_interval` and of the percentile bootstrap (2000 resamples, in the first 30
draws), the ratio of their widths and of their times, the coverage of `f_difference` against the
decisions of a second model, and the share of draws with a warning.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm.metrics import f_difference, f_interval, f_measure

__all__ = ["SETTINGS", "Setting", "main", "truth"]

Floats = npt.NDArray[np.float64]
RESAMPLES, RESAMPLED, POPULATION, PART = 2000, 30, 1_000_000, 50_000


class Setting(NamedTuple):
    """Test sets of n rows and m labels."""

    average: str
    n: int
    m: int
    rarest: float  # expected number of positives of the rarest label, and of the most common one
    common: float

    def draw(self, rng: np.random.Generator, n: int) -> tuple[Any, Any, Any]:
        """Return labels, and the decisions of two models."""
        mean = np.geomspace(self.rarest, self.common, self.m) / self.n
        level = rng.gamma(4.0, 0.25, size=(n, 1))  # some rows have more labels
        p = np.clip(rng.beta(4.0 * mean, 4.0 * (1.0 - mean), size=(n, self.m)) * level, 0.0, 1.0)
        y = rng.random(p.shape) < p
        decided = [p + noise * rng.normal(size=p.shape) > 0.4 for noise in (0.08, 0.12)]
        return y, *decided


SETTINGS = [
    *(Setting("binary", 100, 1, k, k) for k in (5, 10, 30)),
    *(Setting("binary", 500, 1, k, k) for k in (5, 10, 100)),
    Setting("binary", 5000, 1, 10, 10),
    *(Setting("samples", n, m, 0.05 * n, 0.4 * n) for n in (100, 500) for m in (8, 40)),
    *(Setting("micro", n, m, 0.05 * n, 0.4 * n) for n in (100, 500) for m in (8, 40)),
    *(Setting("macro", n, m, 10, 0.4 * n) for n in (100, 500) for m in (8, 40)),
    *(Setting("weighted", n, 8, 10, 0.4 * n) for n in (100, 500)),
    *(Setting("macro", 500, m, k, 100) for m in (8, 40) for k in (2, 1)),
]


def truth(setting: Setting) -> tuple[float, float]:
    """Return the F-measure of a million rows, and its difference to that of the second model."""
    counts = np.zeros((2, 3, setting.m))
    rows = np.zeros(2)
    rng = np.random.default_rng(1)
    for _ in range(POPULATION // PART):
        y, *decided = setting.draw(rng, PART)
        for k, h in enumerate(decided):
            counts[k] += [(y & h).sum(axis=0), y.sum(axis=0), h.sum(axis=0)]
            rows[k] += f_measure(y, h) * PART / POPULATION
    f = rows
    if setting.average != "samples":
        if setting.average == "micro":
            counts = counts.sum(axis=2, keepdims=True)
        both, of_true, of_decided = np.moveaxis(counts, 1, 0)  # (2, m)
        share = of_true / of_true.sum(axis=1, keepdims=True)
        share = share if setting.average == "weighted" else 1.0 / both.shape[1]
        f = (share * 2.0 * both / (of_true + of_decided)).sum(axis=1)
    return float(f[0]), float(f[0] - f[1])


def _bootstrap(rng: np.random.Generator, y: Any, h: Any, average: str) -> tuple[Any, float]:
    """Return the percentile interval of resampled rows, and the seconds it took."""
    start = time.perf_counter()
    n = len(y)
    values = []
    for _ in range(RESAMPLES):
        rows = rng.integers(0, n, n)
        values.append(f_measure(y[rows], h[rows], average=average))
    return np.quantile(values, [0.025, 0.975]), time.perf_counter() - start


def _line(setting: Setting, draws: int) -> str:
    """Return one line of the table."""
    f, difference = truth(setting)
    rng = np.random.default_rng(setting.n + setting.m)
    average = setting.average
    covered, warned, pairs = np.zeros(3)
    widths, resampled, seconds, hits = [], [], [], 0
    for draw in range(draws):
        y, h, other = (a[:, 0] if setting.m == 1 else a for a in setting.draw(rng, setting.n))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            start = time.perf_counter()
            found = f_interval(y, h, average=average)
            own = time.perf_counter() - start
            pair = f_difference(y, h, other, average=average)
        warned += len(caught) > 0
        covered += found.low <= f <= found.high
        pairs += pair.low <= difference <= pair.high
        if draw < RESAMPLED:
            (low, high), spent = _bootstrap(rng, y, h, average)
            hits += low <= f <= high
            widths.append(found.high - found.low)
            resampled.append(high - low)
            seconds.append(spent / own)
    return (
        f"{average:9}{setting.n:6}{setting.m:4}{setting.rarest:8.0f}{f:8.3f}"
        f"{np.mean(widths):8.3f}{covered / draws:10.3f}{hits / len(widths):11.3f}"
        f"{np.mean(widths) / np.mean(resampled):8.2f}{np.median(seconds):7.0f}"
        f"{pairs / draws:12.3f}{warned / draws:9.2f}"
    )


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.intervals")
    parser.add_argument("--draws", type=int, default=2000)
    draws = parser.parse_args(arguments).draws
    print(
        f"{'average':9}{'rows':>6}{'m':>4}{'rarest':>8}{'F':>8}{'width':>8}{'coverage':>10}"
        f"{'bootstrap':>11}{'width/':>8}{'time':>7}{'difference':>12}{'warned':>9}"
    )
    for setting in SETTINGS:
        print(_line(setting, draws), flush=True)


if __name__ == "__main__":
    main()
